// SPDX-License-Identifier: BSD-3-Clause
//! A reload in steps, so that packets do not wait: a thread has the keeper read the file, parses it, and later has the keeper
//! change the routes. Between these the gateway takes the configuration over.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
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
        let (ready, mut bell) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let (steps, todo) = mpsc::channel();
        let (sender, done) = mpsc::channel();
        thread::spawn(move || {
            for step in todo {
                let outcome = match step {
                    Step::Read => Done::Read(keeper.read().and_then(|(text, preshared)| {
                        let config = config::parse(&text, &file);
                        let config = config.map_err(|fault| fault.to_string())?;
                        Ok(Loaded {
                            routing: routing(&config),
                            config: Box::new(config),
                            preshared,
                        })
                    })),
                    Step::Free(before) => {
                        drop(before);
                        continue;
                    }
                    Step::Route => Done::Routed(keeper.route()),
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
        let _ = self.steps.send(step);
    }
}

impl AsFd for Reloading {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}
