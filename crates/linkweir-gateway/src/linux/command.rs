// SPDX-License-Identifier: BSD-3-Clause
//! Runs a program that reports a link's capacity: it writes a line whenever the capacity changes. It is started again when
//! it ends.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::fcntl::{fcntl, FcntlArg, OFlag};

/// How long after its end a program is started again, ns.
pub(crate) const RESTART_NS: u64 = 1_000_000_000;
/// Longest line, bytes; the rest of a longer one is left out.
const LINE_BYTES: usize = 256;

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    output: ChildStdout,
    line: Vec<u8>,
}

impl Running {
    /// Starts a program; it learns the peer's name from `LINKWEIR_PEER`.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn start(words: &[String], peer: &str) -> io::Result<Running> {
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .env("LINKWEIR_PEER", peer)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
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
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::poll::{now_ns, Poll};

    /// All lines that a script printed until its end.
    fn lines(script: &str) -> Vec<String> {
        let words = ["sh", "-c", script].map(str::to_string);
        let mut running = Running::start(&words, "ship").unwrap();
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
        assert!(Running::start(&["/nowhere/modem".to_string()], "ship").is_err());
    }
}
