// SPDX-License-Identifier: BSD-3-Clause
//! Runs a program that reports a link's capacity: it writes a line whenever the capacity changes. It is started again when
//! it ends.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::signal::{killpg, Signal};
use nix::unistd::{getpgrp, Pid};

/// The argument that makes this program a guard.
pub const GUARD: &str = "guard-for-gateway";
/// How long after its end a program is started again, ns.
pub(crate) const RESTART_NS: u64 = 1_000_000_000;
/// Longest line, bytes; the rest of a longer one is left out.
const LINE_BYTES: usize = 256;

/// A program that runs, with a guard above it: a process that ends it, with all it started, when the gateway ends, however
/// that ends. They form one process group.
pub(crate) struct Running {
    /// The guard; its standard input stays open as long as this.
    child: Child,
    output: ChildStdout,
    line: Vec<u8>,
}

impl Running {
    /// Starts a program in this folder; it learns the peer's name from `LINKWEIR_PEER`.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn start(words: &[String], folder: &Path, peer: &str) -> io::Result<Running> {
        let mut guard = Command::new("/proc/self/exe");
        guard.arg(GUARD).arg(folder).args(words);
        guard.env("LINKWEIR_PEER", peer);
        Running::guarded(guard)
    }

    fn guarded(mut guard: Command) -> io::Result<Running> {
        let mut child = guard
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let output = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("it has no output"))?;
        fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Running {
            child,
            output,
            line: Vec::new(),
        })
    }

    /// Reads its output; returns the last whole line in it.
    ///
    /// # Errors
    /// `UnexpectedEof` when it has ended.
    pub(crate) fn read(&mut self) -> io::Result<Option<String>> {
        let mut part = [0; 4096];
        let mut last = None;
        loop {
            match self.output.read(&mut part) {
                Ok(0) if last.is_some() => return Ok(last),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    for byte in &part[..count] {
                        if *byte == b'\n' {
                            last = Some(String::from_utf8_lossy(&self.line).into_owned());
                            self.line.clear();
                        } else if self.line.len() < LINE_BYTES {
                            self.line.push(*byte);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(last),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Running {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
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
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .spawn();
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
    use crate::linux::poll::{now_ns, Poll};

    /// All lines that a script printed until its end.
    fn lines(script: &str) -> Vec<String> {
        // The program of these tests cannot be a guard.
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env("LINKWEIR_PEER", "ship");
        let mut running = Running::guarded(shell).unwrap();
        let mut poll = Poll::new().unwrap();
        poll.add(&running, 0).unwrap();
        let mut happened = Vec::new();
        let mut read = Vec::new();
        loop {
            poll.wait(Some(now_ns() + 20_000_000_000), &mut happened)
                .unwrap();
            assert!(!happened.is_empty(), "the program neither wrote nor ended");
            match running.read() {
                Ok(line) => read.extend(line),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                    return read;
                }
            }
        }
    }

    #[test]
    fn the_last_line_counts_and_the_end_is_noticed() {
        assert_eq!(
            lines("printf '5Mbit\\n1'; printf '8Mbit\\n'")
                .last()
                .unwrap(),
            "18Mbit"
        );
        assert_eq!(
            lines("echo 7Mbit; printf 9Mbit").last().unwrap(),
            "7Mbit",
            "no line"
        );
        assert_eq!(lines("test $LINKWEIR_PEER = ship && echo 6Mbit"), ["6Mbit"]);
        assert_eq!(lines("true"), [""; 0]);
        let long = lines("head -c 1000 /dev/zero | tr '\\0' 7; echo");
        assert_eq!(long, ["7".repeat(LINE_BYTES)], "the rest is left out");
        let here = Path::new("");
        assert!(guard(here, &["/nowhere/modem".to_string()]).is_err());
    }
}
