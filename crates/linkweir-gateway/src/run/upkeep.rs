// SPDX-License-Identifier: BSD-3-Clause
//! Keeps what the gateway set up in the system's network as it is: the keeper hears of changes, adds what other programs
//! removed, and reports it to the gateway.
//!
//! Rules have a thread of their own: without them packets may leave in the clear, so they must not wait while the other
//! thread compares tens of thousands of routes.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use ipnet::IpNet;
use nix::errno::Errno;
use nix::sys::socket::{send, MsgFlags};
use serde::{Deserialize, Serialize};

use crate::linux::network::{Entry, Missing, Network, Restored};
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
/// Largest report, bytes.
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

impl Report {
    /// As it is sent: without its last sentences, if it would be longer than [`REPORT_BYTES`].
    fn bytes(&mut self) -> Vec<u8> {
        loop {
            let bytes = serde_json::to_vec(self).unwrap_or_default();
            if bytes.len() <= REPORT_BYTES || self.sentences.pop().is_none() {
                return bytes;
            }
        }
    }
}

/// What a thread keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Rules,
    /// Routes, addresses and the MTU.
    Rest,
}

/// Reports what both threads found.
struct Reporter {
    restored: Restored,
    /// What is missing and whether another program removes things again and again, by part.
    missing: [BTreeSet<Missing>; 2],
    contested: [bool; 2],
    /// The last one.
    report: Report,
    /// Whether the gateway had no room for it.
    is_unsent: bool,
    reports: OwnedFd,
}

impl Reporter {
    /// Reports to the gateway if there is news; returns when to call this again, ns.
    fn send(&mut self) -> Option<u64> {
        let missing: BTreeSet<&Missing> = self.missing.iter().flatten().collect();
        let sentences = missing.iter().take(SENTENCES).map(|missing| {
            let sentence = missing.to_string();
            sentence.chars().take(SENTENCE).collect()
        });
        let mut report = Report {
            rules: self.restored.rules,
            routes: self.restored.routes,
            addresses: self.restored.addresses,
            mtus: self.restored.mtus,
            contested: self.contested.contains(&true),
            missing: missing.len() as u64,
            sentences: sentences.collect(),
        };
        let bytes = report.bytes();
        if report == self.report && !self.is_unsent {
            return None;
        }
        self.report = report;
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        // If the gateway has gone, this process ends, too.
        self.is_unsent = send(self.reports.as_raw_fd(), &bytes, flags) == Err(Errno::EAGAIN);
        self.is_unsent.then(|| now_ns() + RESEND_NS)
    }
}

/// What a reload may change of a network.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Prefixes that are routed through the device.
    pub(super) nets: BTreeSet<IpNet>,
    /// Whether what would leave in the clear is refused.
    pub(super) refuses: bool,
    /// The device's MTU, bytes.
    pub(super) mtu: u32,
}

impl Wanted {
    /// What a network is already.
    pub(super) fn of(network: &Network) -> Wanted {
        Wanted {
            nets: network.nets.clone(),
            refuses: network.refuses,
            mtu: network.mtu,
        }
    }
}

/// What is wanted, and the number of this change.
type Routes = (Wanted, u64);

/// Asks for other routes. When it is dropped, the threads end.
pub(super) struct Changes {
    /// Number of changes so far.
    count: u64,
    // Each is dropped before its bell, whose end rings.
    parts: Vec<(Sender<Routes>, ShutDown)>,
}

impl Changes {
    /// Changes to what is wanted, soon.
    pub(super) fn route(&mut self, wanted: &Wanted) {
        self.count += 1;
        for (sender, bell) in &self.parts {
            // If a thread has ended, so will this process.
            let _ = sender.send((wanted.clone(), self.count));
            let _ = (&bell.0).write(&[0]);
        }
    }
}

/// A thread of the upkeep; it returns what stays when the device disappears.
pub(super) type Thread = JoinHandle<io::Result<BTreeSet<Entry>>>;

/// The other thread: what it adds must be there before this one removes what it replaces.
struct Other {
    /// The number of the last change for which it, and this thread, added what was missing.
    added: Arc<AtomicU64>,
    own_added: Arc<AtomicU64>,
    bell: UnixStream,
}

impl Other {
    /// Tells it that this thread added what was missing for this change.
    fn tell(&self, change: u64) {
        if self.own_added.swap(change, Ordering::AcqRel) != change {
            // If it is full, the other thread has been rung for.
            let _ = (&self.bell).write(&[0]);
        }
    }
}

/// What is kept by a thread, and how.
pub(super) struct Upkeep {
    part: Part,
    network: Network,
    watch: Watch,
    /// Whether something may be missing.
    is_touched: bool,
    /// When everything is compared again because something failed, ns.
    retry_ns: Option<u64>,
    /// What the last change no longer needs and is not removed yet, and the number of that change.
    stale: BTreeSet<Entry>,
    change: u64,
    other: Other,
    pace: Pace,
    missing: BTreeSet<Missing>,
    reporter: Arc<Mutex<Reporter>>,
    /// When the report is sent again, ns.
    resend_ns: Option<u64>,
}

impl Upkeep {
    /// Watches from now on in threads, until what it returns is dropped. If one of them ends before, `gateway` is shut down:
    /// then the keeper ends, and the gateway says that nothing is kept.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn start(
        network: &Network,
        reports: OwnedFd,
        gateway: &UnixStream,
    ) -> io::Result<(Vec<Thread>, Changes)> {
        let reporter = Arc::new(Mutex::new(Reporter {
            restored: Restored::default(),
            missing: Default::default(),
            contested: Default::default(),
            report: Report::default(),
            is_unsent: false,
            reports,
        }));
        let mut threads = Vec::new();
        let mut parts = Vec::new();
        let added = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let bells = [UnixStream::pair()?, UnixStream::pair()?];
        for (bell, rings) in &bells {
            bell.set_nonblocking(true)?;
            rings.set_nonblocking(true)?;
        }
        for part in [Part::Rules, Part::Rest] {
            let (own, other) = (part as usize, 1 - part as usize);
            let upkeep = Upkeep {
                part,
                network: network.clone(),
                watch: match part {
                    Part::Rules => Watch::of_rules()?,
                    Part::Rest => Watch::of_rest()?,
                },
                // Everything is compared at first.
                is_touched: true,
                retry_ns: None,
                stale: BTreeSet::new(),
                change: 0,
                other: Other {
                    added: Arc::clone(&added[other]),
                    own_added: Arc::clone(&added[own]),
                    bell: bells[other].0.try_clone()?,
                },
                pace: Pace::of(part),
                missing: BTreeSet::new(),
                reporter: Arc::clone(&reporter),
                resend_ns: None,
            };
            let (sender, todo) = mpsc::channel();
            let rings = bells[own].1.try_clone()?;
            let end = ShutDown(gateway.try_clone()?);
            threads.push(thread::Builder::new().spawn(move || {
                let _end = end;
                upkeep.run(&todo, &rings)
            })?);
            parts.push((sender, ShutDown(bells[own].0.try_clone()?)));
        }
        Ok((threads, Changes { count: 0, parts }))
    }

    /// Restores what changes, and changes what it is asked to, until the asking end is dropped.
    fn run(mut self, todo: &Receiver<Routes>, rings: &UnixStream) -> io::Result<BTreeSet<Entry>> {
        let mut poll = Poll::new()?;
        poll.add(&self.watch, NETWORK)?;
        poll.add(rings, BELL)?;
        let mut happened = Vec::new();
        loop {
            let again_ns = self.restore_in_time();
            poll.wait(again_ns, &mut happened)?;
            if happened.contains(&NETWORK) {
                self.hear();
            }
            if happened.contains(&BELL) {
                let _ = (&*rings).read(&mut [0; 64]);
            }
            loop {
                match todo.try_recv() {
                    Ok(routes) => self.change(routes),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(self.left()),
                }
            }
            // The other thread rings when it has added what takes the place of stale entries.
            if happened.contains(&BELL) && !self.stale.is_empty() {
                self.remove_stale();
                self.report(Restored::default());
            }
        }
    }

    /// Takes the kernel's messages.
    fn hear(&mut self) {
        let (network, missing) = (&self.network, !self.missing.is_empty());
        let mut is_touched = self.is_touched;
        self.watch.take(|message| {
            is_touched |= message.is_none_or(|message| network.is_touched(&message, missing));
        });
        self.is_touched = is_touched;
    }

    /// Adds what is missing, if it is time; returns when to call this again, ns.
    fn restore_in_time(&mut self) -> Option<u64> {
        let now_ns = now_ns();
        if self.resend_ns.is_some_and(|ns| ns <= now_ns) {
            self.report(Restored::default());
        }
        if self.retry_ns.is_some_and(|ns| ns <= now_ns) {
            self.is_touched = true;
            self.retry_ns = None;
        }
        if self.pace.calm_ns().is_some_and(|ns| ns <= now_ns) {
            self.pace = Pace::of(self.part);
            self.report(Restored::default());
        }
        if self.is_touched && self.pace.again_ns <= now_ns {
            let restored = self.restore();
            let some = restored != Restored::default();
            self.pace.spent(now_ns, self::now_ns(), some);
            self.report(restored);
        }
        let again_ns = self.is_touched.then_some(self.pace.again_ns);
        let others_ns = [again_ns, self.resend_ns, self.retry_ns, self.pace.calm_ns()];
        others_ns.into_iter().flatten().min()
    }

    /// Adds what is missing.
    fn restore(&mut self) -> Restored {
        self.is_touched = false;
        let done = match self.part {
            Part::Rules => self.network.restore_rules(),
            Part::Rest => self.network.restore_rest(),
        };
        let mut restored = Restored::default();
        match done {
            Ok(outcome) => {
                self.missing = outcome.missing;
                restored = outcome.restored;
                self.other.tell(self.change);
                self.remove_stale();
            }
            // Without its device the gateway ends, which is no fault of the network.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => {}
            Err(error) => {
                let what = format!("the tunnel's rules, routes and addresses cannot be compared with the system's: {error}");
                self.missing.insert(Missing::Failed(what));
            }
        }
        let failed = |missing: &Missing| matches!(missing, Missing::Failed(_));
        let fails = self.missing.iter().any(failed);
        self.retry_ns = fails.then(|| now_ns() + RETRY_NS);
        restored
    }

    /// Keeps what is wanted from now on. What is new is added first.
    fn change(&mut self, (wanted, change): Routes) {
        let mut stale = self.entries();
        self.network.nets = wanted.nets;
        self.network.refuses = wanted.refuses;
        self.network.mtu = wanted.mtu;
        self.change = change;
        stale.append(&mut self.stale);
        self.stale = stale.difference(&self.entries()).copied().collect();
        // What the reload adds was not removed by another program.
        self.restore();
        self.report(Restored::default());
    }

    /// The rules or routes that this thread keeps.
    fn entries(&self) -> BTreeSet<Entry> {
        match self.part {
            Part::Rules => self.network.rule_entries().collect(),
            Part::Rest => self.network.route_entries().collect(),
        }
    }

    /// Removes what the last change no longer needs, once the other thread has added what takes its place: a rule that goes
    /// before the routes instead of it are there would let packets leave in the clear.
    fn remove_stale(&mut self) {
        if self.stale.is_empty() || self.other.added.load(Ordering::Acquire) < self.change {
            return;
        }
        let why = match self.network.remove_entries(&self.stale) {
            Ok(failed) => {
                self.stale.retain(|entry| failed.contains_key(entry));
                failed.into_values().next()
            }
            Err(error) => Some(error),
        };
        if let Some(error) = why {
            let count = self.stale.len();
            let what =
                format!("cannot remove {count} rules or routes that are no longer needed: {error}");
            self.missing.insert(Missing::Failed(what));
            self.retry_ns = Some(now_ns() + RETRY_NS);
        }
    }

    /// What stays when the device disappears.
    fn left(&self) -> BTreeSet<Entry> {
        let all = self.entries().into_iter().chain(self.stale.clone());
        all.filter(Entry::outlives_device).collect()
    }

    /// Reports to the gateway if there is news.
    fn report(&mut self, restored: Restored) {
        let mut reporter = self.reporter.lock().unwrap_or_else(PoisonError::into_inner);
        let part = self.part as usize;
        reporter.restored.add(restored);
        reporter.missing[part].clone_from(&self.missing);
        reporter.contested[part] = self.pace.is_contested();
        self.resend_ns = reporter.send();
    }
}

/// Shuts a stream down when it is dropped.
struct ShutDown(UnixStream);

impl Drop for ShutDown {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// How soon things are added again, so that two programs of which each wants its way do not take the processor.
struct Pace {
    /// When they may be added next, ns.
    again_ns: u64,
    /// The pause after they were added last, and when it ended, ns.
    pause_ns: u64,
    paused_ns: u64,
    /// The longest rest after work, ns.
    most_rest_ns: u64,
}

impl Pace {
    /// The first pause, the longest, and the time without removals after which the first holds again, ns.
    const LEAST_NS: u64 = 1_000_000;
    const MOST_NS: u64 = 100_000_000;
    const QUIET_NS: u64 = 10_000_000_000;
    /// A removal that comes no later after a pause makes the next one longer, ns.
    const FIGHT_NS: u64 = 1_000_000_000;
    /// A rest is so many times as long as the work before it.
    const REST: u64 = 4;

    fn of(part: Part) -> Pace {
        Pace {
            again_ns: 0,
            pause_ns: 0,
            paused_ns: 0,
            most_rest_ns: match part {
                // Work with rules is short, but may wait long for the kernel's lock, which costs nothing.
                Part::Rules => Pace::MOST_NS,
                Part::Rest => u64::MAX,
            },
        }
    }

    /// Counts work; `restored`: something had been removed.
    fn spent(&mut self, began_ns: u64, ended_ns: u64, restored: bool) {
        let rest_ns = (Pace::REST * (ended_ns - began_ns)).min(self.most_rest_ns);
        self.again_ns = ended_ns + rest_ns;
        if restored {
            let since_ns = began_ns.saturating_sub(self.paused_ns);
            let pause_ns = if since_ns > Pace::QUIET_NS {
                0
            } else if since_ns > Pace::FIGHT_NS {
                self.pause_ns
            } else {
                self.pause_ns * 2
            };
            self.pause_ns = pause_ns.clamp(Pace::LEAST_NS, Pace::MOST_NS);
            self.again_ns = ended_ns + self.pause_ns.max(rest_ns);
            self.paused_ns = self.again_ns;
        }
    }

    /// When another program has left things alone for long enough, ns; none: there was no such program.
    fn calm_ns(&self) -> Option<u64> {
        let calm_ns = self.paused_ns + Pace::QUIET_NS;
        self.is_contested().then_some(calm_ns)
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
        let mut pace = Pace::of(Part::Rest);
        let (mut now_ns, mut count) = (20_000_000_000, 0);
        while now_ns < 30_000_000_000 {
            pace.spent(now_ns, now_ns, true);
            now_ns = pace.again_ns;
            count += 1;
        }
        // 1, 2, 4 ... 64 ms, then 100 ms.
        assert_eq!(count, 7 + 99);
        assert!(pace.is_contested());
        assert_eq!(pace.calm_ns(), Some(now_ns + Pace::QUIET_NS));
        pace.spent(
            now_ns + Pace::QUIET_NS + 1,
            now_ns + Pace::QUIET_NS + 1,
            true,
        );
        assert_eq!(pace.again_ns, now_ns + Pace::QUIET_NS + 1 + Pace::LEAST_NS);
        assert!(!pace.is_contested());
        assert_eq!(pace.calm_ns(), None);
    }

    #[test]
    fn a_report_keeps_its_size_whatever_other_programs_call_their_devices() {
        // A device's name may have any bytes but white space and `/`; JSON writes some of them as six.
        for character in ["a", "€", "\u{1}", "\u{1f980}"] {
            let mut report = Report {
                missing: 1000,
                sentences: vec![character.repeat(SENTENCE); SENTENCES],
                ..Report::default()
            };
            let bytes = report.bytes();
            assert!(bytes.len() <= REPORT_BYTES, "{character}: {}", bytes.len());
            let read: Report = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(read, report);
            assert!(!read.sentences.is_empty());
        }
    }

    #[test]
    fn a_fight_ends_ten_seconds_after_the_last_removal() {
        let mut pace = Pace::of(Part::Rules);
        let mut now_ns = 20_000_000_000;
        while !pace.is_contested() {
            pace.spent(now_ns, now_ns, true);
            now_ns = pace.again_ns;
        }
        // Another program removes its own rules each second.
        for second in 1..=11 {
            let calm_ns = pace.calm_ns().unwrap();
            assert_eq!(calm_ns, now_ns + Pace::QUIET_NS);
            let at_ns = now_ns + second * 1_000_000_000;
            pace.spent(at_ns, at_ns, false);
        }
        assert_eq!(pace.again_ns, now_ns + 11_000_000_000, "no pause");
    }

    #[test]
    fn what_is_removed_now_and_then_is_no_fight() {
        let mut pace = Pace::of(Part::Rules);
        for round in 1..=20 {
            pace.spent(round * 9_000_000_000, round * 9_000_000_000, true);
            assert!(!pace.is_contested(), "round {round}");
            assert_eq!(
                pace.again_ns,
                round * 9_000_000_000 + Pace::LEAST_NS,
                "round {round}"
            );
        }
    }

    #[test]
    fn rules_wait_a_tenth_of_a_second_at_most_also_after_the_kernel_was_slow() {
        for restored in [false, true] {
            let mut pace = Pace::of(Part::Rules);
            pace.spent(1_000_000, 5_001_000_000, restored);
            assert_eq!(pace.again_ns, 5_001_000_000 + Pace::MOST_NS);
        }
    }

    #[test]
    fn comparing_takes_at_most_a_fifth_of_the_time() {
        let mut pace = Pace::of(Part::Rest);
        pace.spent(1_000_000, 51_000_000, false);
        assert_eq!(pace.again_ns, 251_000_000);
        assert!(!pace.is_contested());
    }
}
