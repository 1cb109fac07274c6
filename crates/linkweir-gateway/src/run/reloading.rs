// SPDX-License-Identifier: BSD-3-Clause
//! A reload in steps, so that packets do not wait: a thread has the keeper read the file, parses it, and later has the keeper
//! change the routes. Between these the gateway takes the configuration over.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use linkweir_plane::routing::Routing;

use super::keeper::Requests;
use super::peers::routing;
use crate::config::{self, Config};
use crate::tunnel::seal::Secret;

/// How long clients of the control socket wait for a reload at most, ns.
const HOLD_NS: u64 = 4_000_000_000;

/// A step of a reload, for the thread.
enum Step {
    Read,
    Route,
    /// Frees what the gateway no longer uses.
    Free(Box<Before>),
}

/// What was read. What takes the longer the more prefixes there are is done here, so that packets do not wait for it.
pub(super) struct Loaded {
    /// The configuration.
    pub config: Box<Config>,
    /// The keys shared with its peers.
    pub preshared: Vec<Option<Secret>>,
    /// Which addresses are behind which of its peers.
    pub routing: Routing,
}

/// What a configuration that was taken over has replaced.
pub(super) type Before = (Config, Routing);

/// What became of a step.
pub(super) enum Done {
    Read(Result<Loaded, String>),
    Routed(Result<(), String>),
}

impl Done {
    /// What is said of a step that ended in a panic, which is a fault of this program. The thread goes on with the next.
    fn panicked(step: &Step) -> Option<Done> {
        let fault = "the thread that reloads panicked, which is a fault of linkweir-gateway: please report the lines before \
                     this one; the gateway runs on, and SIGHUP tries again";
        match step {
            Step::Read => Some(Done::Read(Err(fault.to_string()))),
            Step::Route => Some(Done::Routed(Err(fault.to_string()))),
            Step::Free(_) => None,
        }
    }
}

/// Reloads, one after the other.
pub(super) struct Reloading {
    steps: Sender<Step>,
    done: Receiver<Done>,
    /// Readable when a step is done.
    ready: UnixStream,
    is_under_way: bool,
    /// Whether the file is being read, so that the configuration in force is that of before.
    is_reading: bool,
    began_ns: u64,
    /// Whether it was said that the file is not read yet.
    is_slow: bool,
    /// Whether the file may have changed since it was read.
    is_wanted_again: bool,
    /// What the running policies refused of the configuration that was taken over.
    refused: Vec<String>,
}

impl Reloading {
    /// Begins the thread, which asks for the `file`. It must not begin before privileges were given up: a thread keeps its
    /// own.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn new(file: PathBuf, mut keeper: Requests) -> io::Result<Reloading> {
        Reloading::with(move |step| match step {
            Step::Read => Some(Done::Read(keeper.read().and_then(|(text, preshared)| {
                let config = config::parse(&text, &file).map_err(|fault| fault.to_string())?;
                Ok(Loaded {
                    routing: routing(&config),
                    config: Box::new(config),
                    preshared,
                })
            }))),
            Step::Route => Some(Done::Routed(keeper.route())),
            Step::Free(before) => {
                drop(before);
                None
            }
        })
    }

    /// The same with other work for each step. A step without an outcome is not answered.
    fn with(mut work: impl FnMut(Step) -> Option<Done> + Send + 'static) -> io::Result<Reloading> {
        let (ready, mut bell) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let (steps, todo) = mpsc::channel();
        let (sender, done) = mpsc::channel();
        thread::spawn(move || {
            for step in todo {
                let panicked = Done::panicked(&step);
                let outcome = panic::catch_unwind(AssertUnwindSafe(|| work(step)));
                let Some(outcome) = outcome.unwrap_or(panicked) else {
                    continue;
                };
                if sender.send(outcome).is_err() {
                    return;
                }
                // If it is full, the other end will look all the same.
                let _ = bell.write(&[0]);
            }
        });
        Ok(Reloading {
            steps,
            done,
            ready,
            is_under_way: false,
            is_reading: false,
            began_ns: 0,
            is_slow: false,
            is_wanted_again: false,
            refused: Vec::new(),
        })
    }

    /// Begins a reload, or lets one follow that under way: the file may have been read already.
    pub(super) fn want(&mut self, now_ns: u64) {
        self.is_wanted_again = self.is_under_way;
        if !self.is_under_way {
            self.is_under_way = true;
            self.is_reading = true;
            self.began_ns = now_ns;
            self.is_slow = false;
            self.next(Step::Read);
        }
    }

    /// Whether clients of the control socket wait until the file is read.
    pub(super) fn holds(&self, now_ns: u64) -> bool {
        self.is_reading && now_ns < self.holds_until_ns()
    }

    /// Until when they wait at most, ns.
    pub(super) fn holds_until_ns(&self) -> u64 {
        self.began_ns + HOLD_NS
    }

    /// When it is to be said that the file is not read yet, ns.
    pub(super) fn slow_ns(&self) -> Option<u64> {
        (self.is_reading && !self.is_slow).then(|| self.holds_until_ns())
    }

    /// It was said.
    pub(super) fn note_slow(&mut self) {
        self.is_slow = true;
    }

    /// What became of a step that is done.
    pub(super) fn take(&mut self) -> Option<Done> {
        let _ = self.ready.read(&mut [0; 16]);
        let done = self.done.try_recv().ok()?;
        self.is_reading = false;
        Some(done)
    }

    /// The configuration was taken over, except what the running policies `refused`: its routes are next, and what was
    /// `before` is no longer needed.
    pub(super) fn route(&mut self, refused: Vec<String>, before: Before) {
        self.refused = refused;
        self.next(Step::Free(Box::new(before)));
        self.next(Step::Route);
    }

    /// Ends a reload; returns what the running policies refused of it.
    pub(super) fn end(&mut self, now_ns: u64) -> Vec<String> {
        self.is_under_way = false;
        let refused = std::mem::take(&mut self.refused);
        if self.is_wanted_again {
            self.want(now_ns);
        }
        refused
    }

    fn next(&self, step: Step) {
        // The thread ends only when this is dropped.
        let _ = self.steps.send(step);
    }
}

impl AsFd for Reloading {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What became of the next step.
    fn wait_for(reloading: &mut Reloading) -> Done {
        reloading.ready.set_nonblocking(false).unwrap();
        let timeout = std::time::Duration::from_secs(10);
        reloading.ready.set_read_timeout(Some(timeout)).unwrap();
        reloading.take().expect("the thread answers")
    }

    #[test]
    fn a_reload_that_panics_is_said_and_the_next_one_works() {
        let mut count = 0;
        let work = move |step| {
            count += 1;
            match step {
                Step::Read => assert!(count != 1, "planted in a test"),
                Step::Route => assert!(count != 2, "planted in a test"),
                Step::Free(_) => {}
            }
            Some(Done::Routed(Ok(())))
        };
        let mut reloading = Reloading::with(work).unwrap();
        reloading.want(0);
        let Done::Read(Err(fault)) = wait_for(&mut reloading) else {
            panic!("the file cannot have been read");
        };
        assert!(fault.contains("SIGHUP"), "{fault}");
        assert!(!reloading.holds(0), "clients wait for no reload");
        reloading.next(Step::Route);
        assert!(matches!(
            wait_for(&mut reloading),
            Done::Routed(Err(fault)) if fault.contains("SIGHUP")
        ));
        reloading.end(0);
        reloading.want(0);
        assert!(matches!(wait_for(&mut reloading), Done::Routed(Ok(()))));
    }

    #[test]
    fn a_file_that_is_not_read_is_said_once() {
        let (step, steps) = mpsc::channel::<()>();
        let work = move |_| {
            let _ = steps.recv();
            Some(Done::Routed(Ok(())))
        };
        let mut reloading = Reloading::with(work).unwrap();
        assert_eq!(reloading.slow_ns(), None);
        reloading.want(7);
        assert_eq!(reloading.slow_ns(), Some(7 + HOLD_NS));
        reloading.note_slow();
        assert_eq!(reloading.slow_ns(), None);
        step.send(()).unwrap();
        wait_for(&mut reloading);
        reloading.end(9);
        reloading.want(9);
        assert_eq!(reloading.slow_ns(), Some(9 + HOLD_NS));
    }
}
