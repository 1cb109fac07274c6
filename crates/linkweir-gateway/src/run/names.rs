// SPDX-License-Identifier: BSD-3-Clause
//! Endpoints that are given by name: the questions to the resolver's process, and its answers. A name is asked for at the
//! start, and again while its peer has no session or does not answer, since its address may have changed.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::resolver;
use crate::config::{Config, HostName};

/// Time between two questions for a name, ns.
pub(super) const AGAIN_NS: u64 = 10_000_000_000;
/// The same while there is a session whose peer is silent, ns. A session with nothing but keepalives is always silent.
pub(super) const SILENT_AGAIN_NS: u64 = 20_000_000_000;
/// How long the start waits for names where the resolver may be beyond the tunnel.
const FIRST: Duration = Duration::from_secs(5);
/// Longest line of an answer, bytes.
pub(super) const LINE_BYTES: usize = 16 << 10;

/// The names of the endpoints of a configuration.
pub(super) fn of(config: &Config) -> impl Iterator<Item = &HostName> {
    config.peers.iter().filter_map(|peer| peer.host.as_ref())
}

/// An answer: the addresses of a name, or why there are none.
pub(super) type Answer = (HostName, Result<Vec<SocketAddr>, String>);

/// Questions to the resolver and its answers.
pub(super) struct Names {
    /// None: it has ended, and is started again with the next questions.
    process: Option<Process>,
    /// Names whose answer has not come yet.
    asked: BTreeSet<HostName>,
    /// Answers that were waited for and not taken yet.
    early: Vec<Answer>,
    /// When names are asked for again, ns.
    pub(super) again_ns: u64,
}

/// The resolver's process.
struct Process {
    child: Child,
    stream: UnixStream,
    /// What was read of an answer that is not complete.
    text: Vec<u8>,
}

impl Names {
    /// Names that are asked for from now on. The process is started by [`Names::start`].
    pub(super) fn new(now_ns: u64) -> Names {
        Names {
            process: None,
            asked: BTreeSet::new(),
            early: Vec::new(),
            again_ns: now_ns,
        }
    }

    /// Starts the process unless it runs; it becomes this user. Returns whether it was started.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn start(&mut self, user: Option<&str>) -> io::Result<bool> {
        if self.process.is_some() {
            return Ok(false);
        }
        let (stream, theirs) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        let child = Command::new("/proc/self/exe")
            .arg(resolver::NAME)
            .arg(user.unwrap_or_default())
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // Ctrl-C at a terminal is for the gateway.
            .process_group(0)
            .spawn()?;
        self.process = Some(Process {
            child,
            stream,
            text: Vec::new(),
        });
        Ok(true)
    }

    /// Asks for a name unless its answer is awaited.
    pub(super) fn ask(&mut self, name: &HostName) {
        let Some(process) = &mut self.process else {
            return;
        };
        if self.asked.contains(name) {
            return;
        }
        let line = format!("{} {}\n", name.port, name.host);
        // A stream without room has hundreds of questions; this one is asked later.
        if process.stream.write_all(line.as_bytes()).is_ok() {
            self.asked.insert(name.clone());
        }
    }

    /// Whether names are to be asked for again; then they are next after a while.
    pub(super) fn is_due(&mut self, now_ns: u64) -> bool {
        let due = self.again_ns <= now_ns;
        if due {
            self.again_ns = now_ns + AGAIN_NS;
        }
        due
    }

    /// Finds names before there are routes to all addresses, after which the resolver may be beyond the tunnel. It does not
    /// wait for ever.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn find_first(now_ns: u64, config: &Config) -> io::Result<Option<Names>> {
        if config.fwmark.is_none() || of(config).next().is_none() {
            return Ok(None);
        }
        let mut names = Names::new(now_ns);
        names.start(config.user.as_deref())?;
        let until = Instant::now() + FIRST;
        of(config).for_each(|name| names.ask(name));
        while !names.asked.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !names.await_answers(left)? {
                break;
            }
        }
        Ok(Some(names))
    }

    /// Waits for answers, but not longer than this; false: the process has ended.
    fn await_answers(&mut self, left: Duration) -> io::Result<bool> {
        let Some(process) = &self.process else {
            return Ok(false);
        };
        process.stream.set_nonblocking(false)?;
        process.stream.set_read_timeout(Some(left))?;
        let mut answers = self.read_once();
        self.early.append(&mut answers);
        let Some(process) = &self.process else {
            return Ok(false);
        };
        process.stream.set_read_timeout(None)?;
        process.stream.set_nonblocking(true)?;
        Ok(true)
    }

    /// The answers that came.
    pub(super) fn answers(&mut self) -> Vec<Answer> {
        let mut answers = std::mem::take(&mut self.early);
        answers.append(&mut self.read_once());
        answers
    }

    /// Whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.process.is_none()
    }

    /// Reads what came, once: the poll tells if there is more.
    fn read_once(&mut self) -> Vec<Answer> {
        let Some(process) = &mut self.process else {
            return Vec::new();
        };
        let mut part = [0; LINE_BYTES];
        match process.stream.read(&mut part) {
            Ok(count) if count > 0 => process.text.extend_from_slice(&part[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::TimedOut
                ) => {}
            _ => self.end(),
        }
        self.complete()
    }

    /// The answers whose lines are complete.
    fn complete(&mut self) -> Vec<Answer> {
        let Some(process) = &mut self.process else {
            return Vec::new();
        };
        let Some(end) = process.text.iter().rposition(|byte| *byte == b'\n') else {
            if process.text.len() > LINE_BYTES {
                self.end();
            }
            return Vec::new();
        };
        let rest = process.text.split_off(end + 1);
        let lines = std::mem::replace(&mut process.text, rest);
        let lines = String::from_utf8_lossy(&lines);
        let answers: Vec<Answer> = lines.lines().filter_map(answer).collect();
        for (name, _) in &answers {
            self.asked.remove(name);
        }
        answers
    }

    /// Its process has ended or cannot be understood. What was asked is asked again.
    fn end(&mut self) {
        self.process = None;
        self.asked.clear();
    }
}

/// The answer in a line.
fn answer(line: &str) -> Option<Answer> {
    let mut words = line.splitn(3, ' ');
    let port = words.next()?.parse().ok()?;
    let host = words.next()?.to_string();
    let name = HostName { host, port };
    let found = words.next()?;
    if let Some(why) = found.strip_prefix("! ") {
        return Some((name, Err(why.to_string())));
    }
    let found = found.split_whitespace().map(|at| at.parse().ok());
    Some((name, Ok(found.collect::<Option<Vec<_>>>()?)))
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Names {
    /// Readable when there is an answer; none: there is no process.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(Process::as_fd)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use rand_pcg::rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    #[test]
    fn answers_are_understood_and_nothing_else() {
        let name = HostName {
            host: "hub.example".to_string(),
            port: 7,
        };
        let found = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let two = Ok(found(&["192.0.2.1:7", "[2001:db8::1]:7"]));
        let line = "7 hub.example 192.0.2.1:7 [2001:db8::1]:7";
        assert_eq!(answer(line), Some((name.clone(), two)));
        assert_eq!(
            answer("7 hub.example "),
            Some((name.clone(), Ok(Vec::new())))
        );
        let why = Err("Name or service not known".to_string());
        assert_eq!(
            answer("7 hub.example ! Name or service not known"),
            Some((name, why))
        );
        for line in [
            "",
            "7",
            "7 hub.example",
            "x hub.example ",
            "7 hub.example 192.0.2.1",
        ] {
            assert_eq!(answer(line), None, "{line}");
        }
    }

    /// Names whose process writes what the other end is given.
    fn fed() -> (Names, UnixStream) {
        let (here, there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let mut names = Names::new(0);
        names.process = Some(Process {
            child: Command::new("true").spawn().unwrap(),
            stream: here,
            text: Vec::new(),
        });
        (names, there)
    }

    /// Lines like those of the resolver, with some bytes changed: whoever takes the resolver over may write anything.
    fn rubbish(random: &mut Pcg64) -> Vec<u8> {
        let parts: [&[u8]; 8] = [
            b"51820 ",
            b"hub.example ",
            b"192.0.2.1:7 ",
            b"[2001:db8::1]:7 ",
            b"! no such name",
            b"\n",
            b" ",
            b"\xf0\x9f",
        ];
        let mut bytes = Vec::new();
        for _ in 0..random.next_u32() % 40 {
            bytes.extend_from_slice(parts[random.next_u32() as usize % parts.len()]);
        }
        for _ in 0..random.next_u32() % 4 {
            let at = random.next_u32() as usize % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = (random.next_u32() % 256) as u8;
            }
        }
        bytes
    }

    #[test]
    fn whatever_a_resolver_writes_is_answers_or_left_out_however_it_is_cut() {
        let mut random = Pcg64::seed_from_u64(11);
        let (mut names, mut there) = fed();
        let (mut taken, mut left_out) = (0, 0);
        for _ in 0..4000 {
            let mut bytes = rubbish(&mut random);
            bytes.push(b'\n');
            // Each line alone, as the reference has it.
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let expected: Vec<Answer> = text.lines().filter_map(answer).collect();
            let mut rest = bytes.as_slice();
            let mut answers = Vec::new();
            while !rest.is_empty() {
                let count = 1 + random.next_u32() as usize % rest.len();
                there.write_all(&rest[..count]).unwrap();
                answers.append(&mut names.answers());
                rest = &rest[count..];
            }
            assert_eq!(answers, expected, "{text:?}");
            for (name, found) in &answers {
                let found = match found {
                    Ok(found) => found.iter().map(|at| format!("{at} ")).collect(),
                    Err(why) => format!("! {why}"),
                };
                let line = format!("{} {} {found}", name.port, name.host);
                assert!(answer(&line).is_some(), "{line:?} is written as it is read");
            }
            taken += answers.len();
            left_out += text.lines().count() - answers.len();
            let waits = names.process.as_ref().map(|process| process.text.len());
            assert_eq!(waits, Some(0), "nothing is left of whole lines");
        }
        assert!(
            taken > 100 && left_out > 100,
            "{taken} taken, {left_out} left out"
        );
    }

    #[test]
    fn a_line_that_comes_in_parts_is_one_answer_and_an_endless_one_is_none() {
        let (mut names, mut there) = fed();
        let hub = HostName {
            host: "hub.example".to_string(),
            port: 7,
        };
        names.ask(&hub);
        names.ask(&hub);
        assert!(names.asked.contains(&hub));
        let mut asked = [0; 64];
        let count = there.read(&mut asked).unwrap();
        assert_eq!(&asked[..count], b"7 hub.example\n", "once");
        there.write_all(b"7 hub.exa").unwrap();
        assert_eq!(names.answers(), []);
        there.write_all(b"mple 192.0.2.1:7\n7 hub").unwrap();
        let found = Ok(vec!["192.0.2.1:7".parse().unwrap()]);
        assert_eq!(names.answers(), [(hub, found)]);
        assert!(names.asked.is_empty());
        there.write_all(&[b'x'; 2 * LINE_BYTES]).unwrap();
        for _ in 0..2 {
            assert_eq!(names.answers(), []);
        }
        assert!(names.has_ended());
    }
}
