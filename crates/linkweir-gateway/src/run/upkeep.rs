// SPDX-License-Identifier: BSD-3-Clause
//! Keeps what the gateway set up in the system's network as it is: the keeper hears of changes, adds what other programs
//! removed, and reports it to the gateway.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};

use ipnet::IpNet;
use nix::errno::Errno;
use nix::sys::socket::{send, MsgFlags};
use serde::{Deserialize, Serialize};

use crate::linux::network::{Missing, Network, Outcome, Restored, Touched};
use crate::linux::poll::{now_ns, Poll};
use crate::linux::watch::Watch;

/// Keys of the kernel's messages and of requests among the events.
const NETWORK: u64 = 0;
const BELL: u64 = 1;
/// Most sentences about what is missing in a report.
const SENTENCES: usize = 64;
/// When a report is sent again that the gateway had no room for, ns.
const RESEND_NS: u64 = 1_000_000_000;
/// When what failed is tried again, ns: no message of the kernel need follow.
const RETRY_NS: u64 = 1_000_000_000;
/// Largest report, bytes: so many sentences of 500 bytes each.
pub(super) const REPORT_BYTES: usize = 1 << 15;
/// Longest sentence in a report, characters.
const SENTENCE: usize = 400;

/// What the keeper reports. Counters begin at 0 when the gateway starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    /// Rules that other programs removed, and that were added again.
    pub(super) rules: u64,
    /// Routes, likewise.
    pub(super) routes: u64,
    /// Addresses, likewise.
    pub(super) addresses: u64,
    /// How often the device's MTU was set again.
    pub(super) mtus: u64,
    /// Whether another program removes them again and again.
    pub(super) contested: bool,
    /// Number of things that are missing and cannot be added now.
    pub(super) missing: u64,
    /// The first of them, in sentences.
    pub(super) sentences: Vec<String>,
}

/// Prefixes to route, and whether what would leave in the clear is refused.
type Routes = (BTreeSet<IpNet>, bool);

/// Asks for other routes. When it is dropped, the upkeep ends.
pub(super) struct Changes {
    // Dropped before the bell, whose end rings.
    sender: Sender<Routes>,
    bell: UnixStream,
}

impl Changes {
    /// Routes these prefixes soon, and `refuses` what would leave in the clear.
    pub(super) fn route(&self, nets: BTreeSet<IpNet>, refuses: bool) {
        // If the thread has ended, so will this process.
        let _ = self.sender.send((nets, refuses));
        let _ = (&self.bell).write(&[0]);
    }
}

/// What is kept, and how.
pub(super) struct Upkeep {
    network: Network,
    watch: Watch,
    touched: Touched,
    /// When everything is compared again because something failed, ns.
    retry_ns: Option<u64>,
    pace: Pace,
    restored: Restored,
    missing: BTreeSet<Missing>,
    report: Report,
    reports: OwnedFd,
    /// When the report is sent again, ns.
    resend_ns: Option<u64>,
}

impl Upkeep {
    /// Watches from now on in a thread, until what it returns is dropped; then it removes what would stay.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn start(
        network: Network,
        reports: OwnedFd,
    ) -> io::Result<(JoinHandle<io::Result<()>>, Changes)> {
        let mut upkeep = Upkeep {
            network,
            watch: Watch::new()?,
            // Everything is compared at first.
            touched: Touched::ALL,
            retry_ns: None,
            pace: Pace::default(),
            restored: Restored::default(),
            missing: BTreeSet::new(),
            report: Report::default(),
            reports,
            resend_ns: None,
        };
        let (sender, todo) = mpsc::channel();
        let (bell, rings) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        let thread = thread::spawn(move || upkeep.run(&todo, &rings));
        let changes = Changes { sender, bell };
        Ok((thread, changes))
    }

    /// Restores what changes, and changes what it is asked to, until the asking end is dropped.
    fn run(&mut self, todo: &Receiver<Routes>, rings: &UnixStream) -> io::Result<()> {
        let mut poll = Poll::new()?;
        poll.add(&self.watch, NETWORK)?;
        poll.add(rings, BELL)?;
        let mut happened = Vec::new();
        loop {
            let again_ns = self.restore();
            poll.wait(again_ns, &mut happened)?;
            if happened.contains(&NETWORK) {
                self.hear();
            }
            if happened.contains(&BELL) {
                let _ = (&*rings).read(&mut [0; 64]);
            }
            loop {
                match todo.try_recv() {
                    Ok((nets, refuses)) => self.change(nets, refuses),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.network.remove(),
                }
            }
        }
    }

    /// Takes the kernel's messages.
    fn hear(&mut self) {
        let (network, missing) = (&self.network, !self.missing.is_empty());
        let mut touched = self.touched;
        self.watch.take(|message| {
            let more = message.map_or(Touched::ALL, |message| network.touched(&message, missing));
            touched = touched.and(more);
        });
        self.touched = touched;
    }

    /// Adds what is missing, if it is time; returns when to call this again, ns.
    fn restore(&mut self) -> Option<u64> {
        let now_ns = now_ns();
        if self.resend_ns.is_some_and(|ns| ns <= now_ns) {
            self.send_report();
        }
        if self.retry_ns.is_some_and(|ns| ns <= now_ns) {
            self.touched = Touched::ALL;
            self.retry_ns = None;
        }
        if self.touched.any() && self.pace.again_ns <= now_ns {
            let restored = self.restore_touched();
            self.restored.add(restored);
            let some = restored != Restored::default();
            self.pace.spent(now_ns, self::now_ns(), some);
            self.send_report();
        }
        let again_ns = self.touched.any().then_some(self.pace.again_ns);
        let others_ns = self.resend_ns.into_iter().chain(self.retry_ns);
        again_ns.into_iter().chain(others_ns).min()
    }

    fn restore_touched(&mut self) -> Restored {
        let touched = std::mem::take(&mut self.touched);
        let mut outcome = Outcome::default();
        let done = if touched.rest {
            self.network.restore().map(|all| {
                self.missing = all.missing.clone();
                outcome = all;
            })
        } else {
            self.network.add_rules(&mut outcome).map(|()| {
                self.missing.extend(outcome.missing.iter().cloned());
            })
        };
        if let Err(error) = done {
            // Without its device the gateway ends, which is no fault of the network.
            if error.raw_os_error() != Some(nix::libc::ENODEV) {
                let what = format!("the tunnel's rules, routes and addresses cannot be compared with the system's: {error}");
                self.missing.insert(Missing::Failed(what));
            }
        }
        let failed = |missing: &Missing| matches!(missing, Missing::Failed(_));
        let fails = self.missing.iter().any(failed);
        self.retry_ns = fails.then(|| now_ns() + RETRY_NS);
        outcome.restored
    }

    /// Routes these prefixes from now on, and `refuses` what would leave in the clear.
    fn change(&mut self, nets: BTreeSet<IpNet>, refuses: bool) {
        if let Err(error) = self.network.change(nets, refuses) {
            let what = format!("cannot remove routes: {error}");
            self.missing.insert(Missing::Failed(what));
        }
        self.touched = Touched::ALL;
        self.restore_touched();
        self.send_report();
    }

    /// Reports to the gateway if there is news.
    fn send_report(&mut self) {
        let sentences = self.missing.iter().take(SENTENCES).map(|missing| {
            let sentence = missing.to_string();
            sentence.chars().take(SENTENCE).collect()
        });
        let report = Report {
            rules: self.restored.rules,
            routes: self.restored.routes,
            addresses: self.restored.addresses,
            mtus: self.restored.mtus,
            contested: self.pace.is_contested(),
            missing: self.missing.len() as u64,
            sentences: sentences.collect(),
        };
        if report == self.report && self.resend_ns.is_none() {
            return;
        }
        let bytes = serde_json::to_vec(&report).unwrap_or_default();
        self.report = report;
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        self.resend_ns = match send(self.reports.as_raw_fd(), &bytes, flags) {
            Err(Errno::EAGAIN) => Some(now_ns() + RESEND_NS),
            // If the gateway has gone, this process ends, too.
            _ => None,
        };
    }
}

/// How soon things are added again, so that two programs of which each wants its way do not take the processor.
#[derive(Default)]
struct Pace {
    /// When they may be added next, ns.
    again_ns: u64,
    /// The pause after they were added last, ns.
    pause_ns: u64,
}

impl Pace {
    /// The first pause, the longest, and the time without removals after which the first holds again, ns.
    const LEAST_NS: u64 = 1_000_000;
    const MOST_NS: u64 = 100_000_000;
    const QUIET_NS: u64 = 10_000_000_000;
    /// A pause is at least so many times as long as the work before it.
    const REST: u64 = 4;

    /// Counts work; `restored`: something had been removed.
    fn spent(&mut self, began_ns: u64, ended_ns: u64, restored: bool) {
        if restored {
            let quiet = began_ns > self.again_ns + Pace::QUIET_NS;
            let pause_ns = if quiet { 0 } else { self.pause_ns * 2 };
            self.pause_ns = pause_ns.clamp(Pace::LEAST_NS, Pace::MOST_NS);
        }
        let rest_ns = Pace::REST * (ended_ns - began_ns);
        let pause_ns = if restored { self.pause_ns } else { 0 };
        self.again_ns = ended_ns + pause_ns.max(rest_ns);
    }

    /// Whether another program removes things as fast as they are added.
    fn is_contested(&self) -> bool {
        self.pause_ns == Pace::MOST_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_removes_again_and_again_is_answered_ten_times_a_second() {
        let mut pace = Pace::default();
        let (mut now_ns, mut count) = (20_000_000_000, 0);
        while now_ns < 30_000_000_000 {
            pace.spent(now_ns, now_ns, true);
            now_ns = pace.again_ns;
            count += 1;
        }
        // 1, 2, 4 ... 64 ms, then 100 ms.
        assert_eq!(count, 7 + 99);
        assert!(pace.is_contested());
        pace.spent(
            now_ns + Pace::QUIET_NS + 1,
            now_ns + Pace::QUIET_NS + 1,
            true,
        );
        assert_eq!(pace.again_ns, now_ns + Pace::QUIET_NS + 1 + Pace::LEAST_NS);
        assert!(!pace.is_contested());
    }

    #[test]
    fn comparing_takes_at_most_a_fifth_of_the_time() {
        let mut pace = Pace::default();
        pace.spent(1_000_000, 51_000_000, false);
        assert_eq!(pace.again_ns, 251_000_000);
        assert!(!pace.is_contested());
    }
}
