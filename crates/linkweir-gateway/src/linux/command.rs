// SPDX-License-Identifier: BSD-3-Clause
//! Runs a program that reports a link's capacity: it writes a line whenever the capacity changes. It is started again when
//! it ends.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread;

use nix::sys::signal::{killpg, Signal};
use nix::unistd::{getpgrp, Pid};

use crate::linux::poll::Poll;
use crate::linux::printed::Printed;
use crate::linux::signals;

/// The argument that makes this program a guard.
pub const GUARD: &str = "guard-for-gateway";
/// How long after its end a program is started again, ns.
pub(crate) const RESTART_NS: u64 = 1_000_000_000;
/// Most lines of standard error that are returned at once; more are counted.
const LINES: usize = 32;

/// A program that runs, with a guard above it: a process that ends it, with all it started, when the gateway ends, however
/// that ends. They form one process group.
pub(crate) struct Running {
    /// The guard; its standard input stays open as long as this.
    child: Child,
    /// Keys by which the poll knows output and errors.
    keys: (u64, u64),
    output: Printed<ChildStdout>,
    /// Standard error; none once it is closed.
    errors: Option<Printed<ChildStderr>>,
}

/// Lines of standard error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) lines: Vec<String>,
    /// How many more there were.
    pub(crate) left_out: u64,
}

impl Said {
    fn add(&mut self, line: &[u8]) {
        if self.lines.len() < LINES {
            self.lines.push(text_of(line));
        } else {
            self.left_out += 1;
        }
    }
}

fn text_of(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

impl Running {
    /// Starts a program in this folder; it learns the peer's name from `LINKWEIR_PEER`, and that of the path, if it is for one,
    /// from `LINKWEIR_PATH`. The poll waits for its output and for its errors, under these keys.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn start(
        words: &[String],
        folder: &Path,
        (peer, path): (&str, Option<&str>),
        poll: &Poll,
        keys: (u64, u64),
    ) -> io::Result<Running> {
        let mut guard = Command::new("/proc/self/exe");
        guard.arg(GUARD).arg(folder).args(words);
        guard.env("LINKWEIR_PEER", peer);
        if let Some(path) = path {
            guard.env("LINKWEIR_PATH", path);
        }
        Running::guarded(guard, poll, keys)
    }

    fn guarded(mut guard: Command, poll: &Poll, keys: (u64, u64)) -> io::Result<Running> {
        let mut child = guard
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let no_pipe = || io::Error::other("it has no output");
        let output = Printed::new(child.stdout.take().ok_or_else(no_pipe)?)?;
        let errors = Printed::new(child.stderr.take().ok_or_else(no_pipe)?)?;
        poll.add(&output, keys.0)?;
        poll.add(&errors, keys.1)?;
        Ok(Running {
            child,
            keys,
            output,
            errors: Some(errors),
        })
    }

    /// Reads a part of its output; returns the last line that ended in it.
    ///
    /// # Errors
    /// `UnexpectedEof` when it has ended.
    pub(crate) fn read(&mut self, now_ns: u64, poll: &Poll) -> io::Result<Option<String>> {
        let mut last = None;
        self.output.read(now_ns, |line| {
            let text: &mut Vec<u8> = last.get_or_insert_default();
            text.clear();
            text.extend_from_slice(line);
        })?;
        rest(&mut self.output, now_ns, poll, self.keys.0);
        Ok(last.map(|line| text_of(&line)))
    }

    /// Reads a part of what it wrote to standard error.
    pub(crate) fn read_errors(&mut self, now_ns: u64, poll: &Poll) -> Said {
        let mut said = Said::default();
        let Some(errors) = &mut self.errors else {
            return said;
        };
        if errors.read(now_ns, |line| said.add(line)).is_ok() {
            rest(errors, now_ns, poll, self.keys.1);
        } else if let Some(errors) = self.errors.take() {
            let _ = poll.remove(&errors);
            errors.read_rest(|line| said.add(line));
        }
        said
    }

    /// When a pipe that rests is read again, ns.
    pub(crate) fn resume_ns(&self, now_ns: u64) -> Option<u64> {
        let errors = self.errors.as_ref().filter(|errors| errors.rests);
        let errors_ns = errors.map(|errors| errors.rest_ns(now_ns).unwrap_or(now_ns));
        let output = Some(&self.output).filter(|output| output.rests);
        let output_ns = output.map(|output| output.rest_ns(now_ns).unwrap_or(now_ns));
        output_ns.into_iter().chain(errors_ns).min()
    }

    /// Waits again for pipes whose rest is over.
    pub(crate) fn resume(&mut self, now_ns: u64, poll: &Poll) {
        rest(&mut self.output, now_ns, poll, self.keys.0);
        if let Some(errors) = &mut self.errors {
            rest(errors, now_ns, poll, self.keys.1);
        }
    }

    /// Ends it; returns what was left on standard error.
    pub(crate) fn end(mut self, poll: &Poll) -> Said {
        let mut said = Said::default();
        let _ = poll.remove(&self.output);
        if let Some(errors) = self.errors.take() {
            let _ = poll.remove(&errors);
            errors.read_rest(|line| said.add(line));
        }
        said
    }
}

/// Lets the poll wait for a pipe unless that rests.
fn rest<R: io::Read + AsFd>(pipe: &mut Printed<R>, now_ns: u64, poll: &Poll, key: u64) {
    let rests = pipe.rest_ns(now_ns).is_some();
    if rests == pipe.rests {
        return;
    }
    // Removed, since the end of the program would wake the poll in any case.
    let changed = if rests {
        poll.remove(&*pipe)
    } else {
        poll.add(&*pipe, key)
    };
    if changed.is_ok() {
        pipe.rests = rests;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.child.id() as i32);
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// The guard of a program: runs it in this folder, and ends it with the rest of its process group when it has ended or
/// standard input is closed.
///
/// # Errors
/// When the program cannot be started.
pub fn guard(folder: &Path, words: &[String]) -> io::Result<()> {
    // Without the right to enter it, the program starts where the gateway did.
    let _ = std::env::set_current_dir(folder);
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let started = signals::unblocked(|| command.spawn())?;
    let mut child = started.map_err(|error| {
        let message = format!("{program}: cannot be started: {error}");
        io::Error::new(error.kind(), message)
    })?;
    let end_group = || killpg(getpgrp(), Signal::SIGKILL).map(drop);
    thread::spawn(move || {
        let _ = child.wait();
        end_group()
    });
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    Ok(end_group()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::poll::now_ns;

    /// All lines that a script printed until its end: each that counted, and those of standard error.
    fn lines(script: &str) -> (Vec<String>, Said) {
        // The program of these tests cannot be a guard.
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env("LINKWEIR_PEER", "ship");
        let mut poll = Poll::new().unwrap();
        let mut running = Running::guarded(shell, &poll, (1, 2)).unwrap();
        let mut happened = Vec::new();
        let (mut read, mut said) = (Vec::new(), Said::default());
        let mut say = |more: Said| {
            said.lines.extend(more.lines);
            said.left_out += more.left_out;
        };
        loop {
            let patience_ns = now_ns() + 20_000_000_000;
            let alarm_ns = running.resume_ns(now_ns()).unwrap_or(patience_ns);
            poll.wait(Some(alarm_ns), &mut happened).unwrap();
            assert!(now_ns() < patience_ns, "it neither wrote nor ended");
            running.resume(now_ns(), &poll);
            for key in &happened {
                if *key == 2 {
                    say(running.read_errors(now_ns(), &poll));
                    continue;
                }
                match running.read(now_ns(), &poll) {
                    Ok(line) => read.extend(line),
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                        say(running.end(&poll));
                        return (read, said);
                    }
                }
            }
        }
    }

    #[test]
    fn the_last_line_counts_and_the_end_is_noticed() {
        let last = |script: &str| lines(script).0.pop().unwrap();
        assert_eq!(last("printf '5Mbit\\n1'; printf '8Mbit\\n'"), "18Mbit");
        assert_eq!(last("echo 7Mbit; printf 9Mbit"), "7Mbit", "no line");
        let named = lines("test $LINKWEIR_PEER = ship && echo 6Mbit");
        assert_eq!(named, (vec!["6Mbit".to_string()], Said::default()));
        assert_eq!(lines("true"), (vec![], Said::default()));
        let here = Path::new("");
        assert!(guard(here, &["/nowhere/modem".to_string()]).is_err());
    }

    #[test]
    fn the_newest_value_counts_behind_a_flood() {
        let flood = "yes 5Mbit | head -c 3000000; echo 7Mbit";
        let (read, _) = lines(flood);
        assert_eq!(read.last().unwrap(), "7Mbit");
        // At most one of a part counts.
        assert!(read.len() < 5000, "{} of 500,000", read.len());
    }

    #[test]
    fn standard_error_is_read_also_behind_the_end_and_cut() {
        let (read, said) = lines("echo no modem >&2; printf 'no end' >&2");
        assert_eq!((read.len(), said.left_out), (0, 0));
        assert_eq!(said.lines, ["no modem", "no end"]);
        let (read, said) = lines("exec 2>&-; echo 5Mbit; sleep 0.1; echo 6Mbit");
        assert_eq!(
            (read.last().unwrap().as_str(), said),
            ("6Mbit", Said::default())
        );
        let (_, said) = lines("yes | head -n 100000 >&2");
        let lines = said.lines.len() as u64 + said.left_out;
        assert_eq!(lines, 100_000);
        assert!(said.left_out > 90_000, "{}", said.left_out);
    }

    #[test]
    fn a_program_begins_without_blocked_signals() {
        signals::survive_writes().unwrap();
        let mut shell = Command::new("grep");
        shell.args(["SigBlk", "/proc/self/status"]);
        let output = signals::unblocked(|| shell.output()).unwrap().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            text.trim_start_matches("SigBlk:").trim(),
            "0000000000000000"
        );
        // And this thread has them blocked as before: SIGTTOU is 22, SIGXFSZ 25.
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert!(status.contains("SigBlk:\t0000000001200000"), "{status}");
    }
}
