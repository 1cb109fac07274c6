// SPDX-License-Identifier: BSD-3-Clause
//! Runs a program that reports a link's capacity: it writes one rate per line, such as `18Mbit`, whenever the capacity
//! changes. It is started again when it ends.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdout, Command, Stdio};

use linkweir_config::limits;
use linkweir_config::units::{self, Kind};
use nix::fcntl::{fcntl, FcntlArg, OFlag};

/// How long after its end a program is started again, ns.
pub const RESTART_NS: u64 = 1_000_000_000;
/// Longest line, bytes.
const LINE_BYTES: usize = 256;

/// A program that runs.
pub struct Running {
    child: Child,
    output: ChildStdout,
    line: Vec<u8>,
}

impl Running {
    /// Starts a program; it learns the peer's name from `LINKWEIR_PEER`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(words: &[String], peer: &str) -> io::Result<Running> {
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

    /// Reads its output; returns the last rate in it, or why the last line is none.
    ///
    /// # Errors
    /// `UnexpectedEof` when it has ended.
    pub fn read(&mut self) -> io::Result<Option<Result<u64, String>>> {
        let mut part = [0; 4096];
        let mut last = None;
        loop {
            match self.output.read(&mut part) {
                Ok(0) if last.is_some() => return Ok(last),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    for byte in &part[..count] {
                        if *byte == b'\n' {
                            last = Some(rate(&self.line));
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

fn rate(line: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(line);
    bps(&text).map_err(|what| format!("{:?}: {what}", text.trim()))
}

/// A capacity with its unit, bit/s.
///
/// # Errors
/// What is wrong and how to write it.
pub fn bps(text: &str) -> Result<u64, String> {
    let range = || {
        format!(
            "must be {} .. {}",
            units::show_whole(0, Kind::Rate),
            units::show_whole(limits::RATE_BPS, Kind::Rate)
        )
    };
    let (bps, _) = units::parse(text, Kind::Rate)?.whole().ok_or_else(range)?;
    if bps > limits::RATE_BPS {
        return Err(range());
    }
    Ok(bps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::poll::{now_ns, Poll};

    /// All that a script said until its end.
    fn said(script: &str) -> Vec<Result<u64, String>> {
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
                Ok(rate) => read.extend(rate),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                    return read;
                }
            }
        }
    }

    #[test]
    fn the_last_rate_counts_and_the_end_is_noticed() {
        assert_eq!(
            said("printf '5Mbit\\n1'; printf '8Mbit\\n'").last(),
            Some(&Ok(18_000_000))
        );
        assert_eq!(
            said("echo 7Mbit; printf 9Mbit").last(),
            Some(&Ok(7_000_000)),
            "no line"
        );
        assert_eq!(
            said("test $LINKWEIR_PEER = ship && echo 6Mbit"),
            [Ok(6_000_000)]
        );
        let refused = said("echo abc");
        assert!(
            refused[0]
                .as_ref()
                .unwrap_err()
                .starts_with("\"abc\": is not a number"),
            "{refused:?}"
        );
        assert_eq!(said("true"), []);
        assert!(Running::start(&["/nowhere/modem".to_string()], "ship").is_err());
    }

    #[test]
    fn capacities_have_units() {
        assert_eq!(bps("18Mbit"), Ok(18_000_000));
        assert_eq!(bps("0bit"), Ok(0));
        assert_eq!(bps("500Gbit"), Err("must be 0bit .. 400Gbit".to_string()));
        assert!(bps("18").unwrap_err().contains("needs a unit"));
        assert_eq!(bps("-1Mbit"), Err("must be 0bit .. 400Gbit".to_string()));
    }
}
