// SPDX-License-Identifier: BSD-3-Clause
//! Lines that wait to be written: a bounded queue and the loop of the thread that empties it, so that no caller waits for a
//! terminal, a pipe or a disk.
//!
//! When the queue is full, further lines are dropped until all that wait are written. Then one line states how many were
//! lost, at their place in the order. A line whose write fails is lost, too, and counted in the next statement.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::linux::privileges;

/// How long the writer waits before it tries again, if the file does not wait by itself.
const RETRY: Duration = Duration::from_millis(100);

/// Lines for one writer.
pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
    /// Most lines that wait.
    most: usize,
    /// Makes the line that states how many were lost.
    state_lost: fn(u64) -> T,
}

struct Waiting<T> {
    lines: VecDeque<T>,
    /// Lines dropped behind those that wait.
    dropped: u64,
    /// Whether a line was taken and its writing has not ended.
    writing: bool,
    /// Lines that were lost since the start.
    lost: u64,
}

/// What is written next.
#[derive(Debug, PartialEq, Eq)]
enum Next<T> {
    Line(T),
    /// So many lines were dropped here.
    Dropped(u64),
}

impl<T> Queue<T> {
    /// An empty queue.
    pub(crate) const fn new(most: usize, state_lost: fn(u64) -> T) -> Queue<T> {
        Queue {
            waiting: Mutex::new(Waiting {
                lines: VecDeque::new(),
                dropped: 0,
                writing: false,
                lost: 0,
            }),
            changed: Condvar::new(),
            most,
            state_lost,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line, or drops it if there is no room.
    pub(crate) fn push(&self, line: T) {
        let mut waiting = self.lock();
        if waiting.dropped > 0 || waiting.lines.len() >= self.most {
            waiting.dropped += 1;
            waiting.lost += 1;
            return;
        }
        waiting.lines.push_back(line);
        drop(waiting);
        self.changed.notify_all();
    }

    /// Lines that were lost since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.lock().lost
    }

    /// Waits until everything is written or has failed, but no longer than `patience`.
    pub(crate) fn flush(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut waiting = self.lock();
        while waiting.writing || !waiting.lines.is_empty() || waiting.dropped > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            waiting = self
                .changed
                .wait_timeout(waiting, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Writes the lines one after another, for ever.
    fn write_all(&self, mut write: impl FnMut(&T) -> io::Result<()>) -> ! {
        let mut failed = 0;
        loop {
            let next = self.take();
            self.write_next(next, &mut failed, &mut write);
        }
    }

    /// The next line; waits for it.
    fn take(&self) -> Next<T> {
        let mut waiting = self.lock();
        waiting.writing = false;
        self.changed.notify_all();
        loop {
            let next = match waiting.lines.pop_front() {
                Some(line) => Some(Next::Line(line)),
                None if waiting.dropped > 0 => {
                    Some(Next::Dropped(std::mem::take(&mut waiting.dropped)))
                }
                None => None,
            };
            if let Some(next) = next {
                waiting.writing = true;
                return next;
            }
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes a line; `failed` are the lines that failed since one was written last.
    fn write_next(
        &self,
        next: Next<T>,
        failed: &mut u64,
        write: &mut impl FnMut(&T) -> io::Result<()>,
    ) {
        if let Next::Dropped(lines) = next {
            *failed += lines;
        }
        if *failed > 0 && write(&(self.state_lost)(*failed)).is_ok() {
            *failed = 0;
        }
        if let Next::Line(line) = next {
            if *failed > 0 || write(&line).is_err() {
                *failed += 1;
                self.lock().lost += 1;
            }
        }
    }
}

/// Starts the thread that writes the lines of a queue. It has no capabilities.
///
/// # Errors
/// When the system starts no thread.
pub(crate) fn start<T: Send + 'static>(
    queue: impl Deref<Target = Queue<T>> + Send + 'static,
    mut write: impl FnMut(&T) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let thread = thread::Builder::new().name("log".into());
    let started = thread.spawn(move || {
        let _ = privileges::clear_capabilities();
        queue.write_all(&mut write)
    });
    started.map(drop).map_err(|error| {
        let message = format!("cannot start the thread that writes lines: {error}");
        io::Error::new(error.kind(), message)
    })
}

/// A file, pipe or terminal to which lines are written.
pub(crate) struct LineWriter {
    pub(crate) file: File,
    /// Whether the last line lacks its end.
    cut: bool,
}

impl LineWriter {
    pub(crate) fn new(file: File) -> LineWriter {
        LineWriter { file, cut: false }
    }

    /// Writes to what is open here, without the standard library's lock, which a stuck writer would keep.
    ///
    /// # Errors
    /// When the process may open no more files.
    pub(crate) fn of(open: impl AsFd) -> io::Result<LineWriter> {
        let copy = open.as_fd().try_clone_to_owned()?;
        Ok(LineWriter::new(copy.into()))
    }

    /// Writes a line in one piece, since other programs may write there, too. Waits for its reader.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn write(&mut self, line: &str) -> io::Result<()> {
        let end = if self.cut { "\n" } else { "" };
        let line = format!("{end}{line}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(count) => {
                    rest = &rest[count..];
                    self.cut = !rest.is_empty();
                }
                // Another program that shares the terminal may have made it so that it does not wait.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(RETRY),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn queue(most: usize) -> Queue<String> {
        Queue::new(most, |lost| format!("{lost} lost"))
    }

    /// Writes what waits, without a thread; `fails` says of each line whether its write fails.
    fn write(queue: &Queue<String>, failed: &mut u64, fails: impl Fn(&str) -> bool) -> Vec<String> {
        let mut written = Vec::new();
        while !queue.lock().lines.is_empty() || queue.lock().dropped > 0 {
            let next = queue.take();
            queue.write_next(next, failed, &mut |line: &String| {
                if fails(line) {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                written.push(line.clone());
                Ok(())
            });
        }
        written
    }

    #[test]
    fn a_full_queue_drops_lines_and_states_how_many_at_their_place() {
        let queue = queue(3);
        for line in 0..10 {
            queue.push(line.to_string());
        }
        assert_eq!(queue.lost(), 7);
        let written = write(&queue, &mut 0, |_| false);
        assert_eq!(written, ["0", "1", "2", "7 lost"]);
        queue.push("10".to_string());
        assert_eq!(write(&queue, &mut 0, |_| false), ["10"]);
        assert_eq!(queue.lost(), 7);
    }

    #[test]
    fn no_line_overtakes_those_that_were_dropped() {
        let queue = queue(2);
        for line in ["a", "b", "dropped"] {
            queue.push(line.to_string());
        }
        assert_eq!(queue.take(), Next::Line("a".to_string()));
        // There is room again, but what was dropped came before this.
        queue.push("later".to_string());
        assert_eq!(write(&queue, &mut 0, |_| false), ["b", "2 lost"]);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_once() {
        let (queue, mut failed) = (queue(3), 0);
        for line in 0..4 {
            queue.push(line.to_string());
        }
        assert_eq!(write(&queue, &mut failed, |_| true), [""; 0]);
        assert_eq!((queue.lost(), failed), (4, 4));
        queue.push("4".to_string());
        assert_eq!(
            write(&queue, &mut failed, |line| line == "5"),
            ["4 lost", "4"]
        );
        queue.push("5".to_string());
        queue.push("6".to_string());
        let written = write(&queue, &mut failed, |line| line == "5");
        assert_eq!(written, ["1 lost", "6"]);
        assert_eq!((queue.lost(), failed), (5, 0));
    }

    #[test]
    fn a_flush_waits_for_all_lines_but_not_for_a_writer_that_is_stuck() {
        let queue = Arc::new(queue(3));
        let written = Arc::new(Mutex::new(Vec::new()));
        let stuck = Arc::new(Mutex::new(()));
        let (writing, lines, block) = (queue.clone(), written.clone(), stuck.clone());
        thread::spawn(move || {
            writing.write_all(|line| {
                drop(block.lock());
                lines.lock().unwrap().push(line.clone());
                Ok(())
            })
        });
        queue.push("a".to_string());
        queue.push("b".to_string());
        queue.flush(Duration::from_secs(20));
        assert_eq!(*written.lock().unwrap(), ["a", "b"]);
        let held = stuck.lock().unwrap();
        queue.push("c".to_string());
        queue.flush(Duration::from_millis(1));
        assert_eq!(written.lock().unwrap().len(), 2);
        drop(held);
        queue.flush(Duration::from_secs(20));
        assert_eq!(*written.lock().unwrap(), ["a", "b", "c"]);
    }
}
