// SPDX-License-Identifier: BSD-3-Clause
//! Reads what a program prints, as lines. A program may print without end, and packets do not wait for that: one call reads one
//! part, and after so many bytes the pipe is left alone for a while, so that the program waits instead.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use nix::fcntl::{fcntl, FcntlArg, OFlag};

/// Most bytes of one call.
const PART_BYTES: usize = 4096;
/// Most bytes in a window of time: what a pipe holds.
const WINDOW_BYTES: usize = 16 * PART_BYTES;
/// A window, ns.
const WINDOW_NS: u64 = 10_000_000;
/// Longest line, bytes; the rest of a longer one is left out.
const LINE_BYTES: usize = 256;

/// The end of a pipe to which a program prints.
pub(crate) struct Printed<R> {
    pipe: R,
    /// The line that has no end yet.
    line: Vec<u8>,
    /// Bytes that may be read until the window ends, and when that is, ns.
    left_bytes: usize,
    until_ns: u64,
    /// Whether it is not waited for at present.
    pub(crate) rests: bool,
}

impl<R: Read + AsFd> Printed<R> {
    /// # Errors
    /// Those of the system.
    pub(crate) fn new(pipe: R) -> io::Result<Printed<R>> {
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Printed {
            pipe,
            line: Vec::new(),
            left_bytes: 0,
            until_ns: 0,
            rests: false,
        })
    }

    /// Reads a part, and calls `visit` with each line that ends in it.
    ///
    /// # Errors
    /// `UnexpectedEof` when the program has closed it.
    pub(crate) fn read(&mut self, now_ns: u64, visit: impl FnMut(&[u8])) -> io::Result<()> {
        if self.until_ns <= now_ns {
            self.until_ns = now_ns + WINDOW_NS;
            self.left_bytes = WINDOW_BYTES;
        }
        let mut part = [0; PART_BYTES];
        let most = self.left_bytes.min(PART_BYTES);
        if most == 0 {
            return Ok(());
        }
        match self.pipe.read(&mut part[..most]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.left_bytes -= count;
                self.split(&part[..count], visit);
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Reads what is left when the program has ended, of which a pipe holds no more than a window, also a line without end.
    pub(crate) fn read_rest(mut self, mut visit: impl FnMut(&[u8])) {
        self.left_bytes = WINDOW_BYTES;
        self.until_ns = u64::MAX;
        let mut before = usize::MAX;
        while self.left_bytes < before {
            before = self.left_bytes;
            if self.read(0, &mut visit).is_err() {
                break;
            }
        }
        if !self.line.is_empty() {
            visit(&self.line);
        }
    }

    /// When it may be read again, ns; none: now.
    pub(crate) fn rest_ns(&self, now_ns: u64) -> Option<u64> {
        Some(self.until_ns).filter(|ns| self.left_bytes == 0 && now_ns < *ns)
    }

    fn split(&mut self, part: &[u8], mut visit: impl FnMut(&[u8])) {
        for byte in part {
            if *byte == b'\n' {
                visit(&self.line);
                self.line.clear();
            } else if self.line.len() < LINE_BYTES {
                self.line.push(*byte);
            }
        }
    }
}

impl<R: AsFd> AsFd for Printed<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn lines(printed: &mut Printed<UnixStream>, now_ns: u64) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        let read = printed.read(now_ns, |line| {
            lines.push(String::from_utf8_lossy(line).into_owned());
        });
        read.map(|()| lines)
    }

    /// A program that floods: `/dev/zero` always has more.
    #[test]
    fn a_flood_is_read_in_bounded_parts() {
        let mut printed = Printed::new(File::open("/dev/zero").unwrap()).unwrap();
        let mut read_in = |turns: u64, begin_ns: u64, step_ns: u64| {
            let mut most_bytes = 0;
            let mut all_bytes = 0;
            for turn in 0..turns {
                let before = printed.left_bytes;
                let now_ns = begin_ns + turn * step_ns;
                let before = if printed.until_ns <= now_ns {
                    WINDOW_BYTES
                } else {
                    before
                };
                printed.read(now_ns, |_| ()).unwrap();
                let bytes = before - printed.left_bytes;
                most_bytes = most_bytes.max(bytes);
                all_bytes += bytes;
            }
            (most_bytes, all_bytes)
        };
        // A turn reads a part, and a second of 10,000 turns no more than 100 windows.
        assert_eq!(read_in(10, 1, 0), (4096, 10 * 4096));
        assert_eq!(
            read_in(10_000, 1_000_000_000, 100_000),
            (4096, 100 * 65_536)
        );
        assert_eq!(printed.line.len(), LINE_BYTES);
        let now_ns = 1_999_900_000;
        assert_eq!(printed.rest_ns(now_ns), Some(2_000_000_000));
        assert_eq!(printed.rest_ns(2_000_000_000), None);
    }

    #[test]
    fn lines_are_whole_and_the_last_may_lack_its_end() {
        let (pipe, mut program) = UnixStream::pair().unwrap();
        let mut printed = Printed::new(pipe).unwrap();
        assert_eq!(lines(&mut printed, 0).unwrap(), [""; 0]);
        program.write_all(b"5Mbit\n1").unwrap();
        assert_eq!(lines(&mut printed, 0).unwrap(), ["5Mbit"]);
        let long = "7".repeat(300);
        write!(program, "8Mbit\n\n{long}\nthe last").unwrap();
        let cut = &long[..LINE_BYTES];
        assert_eq!(lines(&mut printed, 0).unwrap(), ["18Mbit", "", cut]);
        write!(program, " line\nand more").unwrap();
        drop(program);
        let mut rest = Vec::new();
        printed.read_rest(|line| rest.push(line.to_vec()));
        assert_eq!(rest, [&b"the last line"[..], b"and more"]);
    }

    #[test]
    fn the_end_is_noticed_behind_everything() {
        let (pipe, mut program) = UnixStream::pair().unwrap();
        let mut printed = Printed::new(pipe).unwrap();
        program.write_all(b"last\n").unwrap();
        drop(program);
        assert_eq!(lines(&mut printed, 0).unwrap(), ["last"]);
        let end = lines(&mut printed, 0).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }
}
