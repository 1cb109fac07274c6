// SPDX-License-Identifier: BSD-3-Clause
//! Endpoints that are given by name: a thread asks the resolver, as packets cannot wait for it. A name is asked for at the
//! start, and again while there is no session with its peer, since its address may have changed.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::config::{Config, HostName};

/// Time between two questions for a name, ns.
const AGAIN_NS: u64 = 10_000_000_000;
/// How long the start waits for names where the resolver may be beyond the tunnel.
const FIRST: Duration = Duration::from_secs(5);

/// The names of the endpoints of a configuration.
pub(super) fn of(config: &Config) -> impl Iterator<Item = &HostName> {
    config.peers.iter().filter_map(|peer| peer.host.as_ref())
}

/// An answer: the addresses of a name, or why there are none.
pub(super) type Answer = (HostName, Result<Vec<SocketAddr>, String>);

/// Questions to the resolver and its answers.
pub(super) struct Names {
    questions: Sender<HostName>,
    answers: Receiver<Answer>,
    /// Readable when there is an answer.
    ready: UnixStream,
    /// Answers that were waited for and not taken yet.
    early: Vec<Answer>,
    /// When names are asked for again, ns.
    pub(super) again_ns: u64,
}

impl Names {
    /// Begins the thread.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn new(now_ns: u64) -> io::Result<Names> {
        let (ready, mut bell) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let (questions, asked) = mpsc::channel::<HostName>();
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            for name in asked {
                let found = (name.host.as_str(), name.port).to_socket_addrs();
                let found = found
                    .map(Iterator::collect)
                    .map_err(|error| error.to_string());
                if sender.send((name, found)).is_err() {
                    return;
                }
                // If it is full, the other end will look all the same.
                let _ = bell.write(&[0]);
            }
        });
        Ok(Names {
            questions,
            answers,
            ready,
            early: Vec::new(),
            again_ns: now_ns,
        })
    }
}

impl Names {
    /// Asks for a name.
    pub(super) fn ask(&self, name: &HostName) {
        let _ = self.questions.send(name.clone());
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
        let mut names = Names::new(now_ns)?;
        let until = Instant::now() + FIRST;
        let asked = of(config).map(|name| names.ask(name)).count();
        while names.early.len() < asked {
            let left = until.saturating_duration_since(Instant::now());
            match names.answers.recv_timeout(left) {
                Ok(answer) => names.early.push(answer),
                Err(_) => break,
            }
        }
        Ok(Some(names))
    }

    /// The answers that came.
    pub(super) fn answers(&mut self) -> Vec<Answer> {
        let _ = self.ready.read(&mut [0; 256]);
        let mut answers = std::mem::take(&mut self.early);
        answers.extend(self.answers.try_iter());
        answers
    }
}

impl AsFd for Names {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}
