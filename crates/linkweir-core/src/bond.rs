// SPDX-License-Identifier: BSD-3-Clause
//! A bond: one scheduler in front of several paths to the same receiver. This is the sending end; a
//! [`Resequencer`](crate::Resequencer) for each class is the receiving one.
//!
//! There is no clock, no input and no output. The data plane has a transmitter for each path, which takes a packet when it is
//! free. It then asks the policy of the [`Mux`] for the next packet of the classes that may use this path now
//! ([`Sender::allow`]), and reports what left ([`Sender::left`]). So nothing waits below the scheduler, and a promise of the
//! policy holds for the sum of the paths.
//!
//! # Which classes may use a path
//!
//! Only paths that are up take anything. `stripe` and a list of names let a class use each of its paths whenever it is free.
//! `all` sends a copy over every path. `best` and `spill` let a class use the first path of an order, and each further one only
//! while those before it are *full* for this class; the order is by delay for `best` and by cost for `spill`, and equal ones
//! are in the order of their names. That a transmitter is busy does not make a path full. Paths are full for a class when a
//! packet that comes now would wait longer than a stated time, the *room*: its oldest packet has waited for some time, its
//! backlog takes some time at the sum of their rates, and both together exceed the room. Thus a short burst waits for the
//! first path, and a lasting overload uses the next one after the room at the latest.
//!
//! # Copies, numbers, and what a dead path held
//!
//! Packets of a class get consecutive numbers as they leave. A packet for all paths leaves the [`Mux`] once, when the first of
//! them takes it, and the policy charges it once. Its copies for the other paths go when the policy would pick their class if
//! they were in its queue: before what it ranks behind them, after what it ranks before them. A path holds at most
//! [`MOST_COPIES`] of them, after which the oldest is dropped, and none is sent that came longer ago than its class lets packets
//! wait ([`Limit::max_age_ns`](crate::Limit::max_age_ns)) or that waited for the path longer than the sender's *memory*.
//!
//! Of classes that ask for it, the packets that a path has sent within the memory are kept; when it dies, those that another
//! path may carry are sent again with their numbers. On each path they take every second turn at most, so that they delay
//! others by one packet. None is sent again later than twice the memory after it was first sent.

use std::collections::VecDeque;

use crate::ffi::Queue;
use crate::mux::{Departure, Mux};
use crate::policy::Policy;

/// Most paths of a bond.
pub const MOST_PATHS: usize = 8;

/// Most copies that wait for one path.
pub const MOST_COPIES: usize = 64;

const SECOND_NS: u128 = 1_000_000_000;

/// A path, as it is known now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// What it costs, in any unit; `spill` takes cheaper ones first.
    pub cost: u64,
    /// Whether it carries packets.
    pub up: bool,
    /// Its rate, bit/s.
    pub rate_bps: u64,
    /// Its one-way delay, ns; `best` takes shorter ones first.
    pub delay_ns: u64,
}

/// How a class uses the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// The one with the least delay that is not full.
    Best,
    /// Every one: each packet is sent over each.
    All,
    /// The cheapest one that is not full.
    Spill,
    /// Each as it is free.
    Stripe,
    /// Each of these as it is free: bit `p` is path `p`.
    Named(u32),
}

/// The paths, and how classes use them.
#[derive(Clone, Debug)]
pub struct Bond {
    paths: Vec<Path>,
    classes: Vec<Paths>,
    room_ns: u64,
    by_delay: Vec<usize>,
    by_cost: Vec<usize>,
}

/// A reservation, and how much of it the paths that are up can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The class.
    pub class: usize,
    /// What is promised, bit/s.
    pub promised_bps: u64,
    /// What can be kept of it, bit/s.
    pub kept_bps: u64,
}

impl Bond {
    /// A bond of these paths, in the order of their names.
    ///
    /// # Panics
    /// When there is no path or more than [`MOST_PATHS`], or a class names a path that there is not, or none.
    #[must_use]
    pub fn new(paths: &[Path], classes: &[Paths], room_ns: u64) -> Bond {
        assert!(
            (1..=MOST_PATHS).contains(&paths.len()),
            "a bond has 1 .. {MOST_PATHS} paths"
        );
        for class in classes {
            if let Paths::Named(named) = class {
                let fits = *named != 0 && *named < 1 << paths.len();
                assert!(fits, "a class names paths of the bond, at least one");
            }
        }
        let mut bond = Bond {
            paths: paths.to_vec(),
            classes: classes.to_vec(),
            room_ns,
            by_delay: (0..paths.len()).collect(),
            by_cost: (0..paths.len()).collect(),
        };
        bond.order();
        bond
    }

    /// The paths.
    #[must_use]
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// The paths by delay, equal ones by name: where several are free, the first of them takes a packet first.
    #[must_use]
    pub fn by_delay(&self) -> &[usize] {
        &self.by_delay
    }

    /// How each class uses them.
    #[must_use]
    pub fn classes(&self) -> &[Paths] {
        &self.classes
    }

    /// A path is as given from now on. Where its rate or whether it is up changes, report [`Bond::rate_bps`] to the policy.
    pub fn set_path(&mut self, path: usize, now: Path) {
        self.paths[path] = now;
        self.order();
    }

    /// A class uses paths in this way from now on.
    pub fn set_class(&mut self, class: usize, paths: Paths) {
        self.classes[class] = paths;
    }

    fn order(&mut self) {
        let paths = &self.paths;
        self.by_delay
            .sort_unstable_by_key(|at| (paths[*at].delay_ns, *at));
        self.by_cost
            .sort_unstable_by_key(|at| (paths[*at].cost, *at));
    }

    /// The sum of the rates of the paths that are up, bit/s: the capacity to report to the policy.
    #[must_use]
    pub fn rate_bps(&self) -> u64 {
        let up = self.paths.iter().filter(|path| path.up);
        up.map(|path| path.rate_bps).sum()
    }

    /// Whether a class with this queue may send its head over a path now.
    #[inline]
    #[must_use]
    pub fn may_use(&self, path: usize, class: usize, queue: &Queue, now_ns: u64) -> bool {
        self.ready_ns(path, class, queue)
            .is_some_and(|ready_ns| ready_ns <= now_ns)
    }

    /// From when on a class with this queue may send its head over a path if nothing else happens, ns; none: never.
    #[inline]
    #[must_use]
    pub fn ready_ns(&self, path: usize, class: usize, queue: &Queue) -> Option<u64> {
        if !self.paths[path].up {
            return None;
        }
        match self.classes[class] {
            Paths::All | Paths::Stripe => Some(0),
            Paths::Named(named) => (named & 1 << path != 0).then_some(0),
            Paths::Best => Some(self.overflows_ns(path, &self.by_delay, queue)),
            Paths::Spill => Some(self.overflows_ns(path, &self.by_cost, queue)),
        }
    }

    /// From when on the paths before this one are full for a queue.
    fn overflows_ns(&self, path: usize, order: &[usize], queue: &Queue) -> u64 {
        let before = order.iter().take_while(|at| **at != path);
        let before = before.map(|at| &self.paths[*at]).filter(|path| path.up);
        let ahead_bps: u64 = before.map(|path| path.rate_bps).sum();
        if ahead_bps == 0 {
            return 0;
        }
        let drained_ns = 8 * SECOND_NS * u128::from(queue.backlog_bytes) / u128::from(ahead_bps);
        let drained_ns = u64::try_from(drained_ns).unwrap_or(u64::MAX);
        match self.room_ns.checked_sub(drained_ns) {
            // The room is exceeded one nanosecond later.
            Some(left_ns) => queue
                .head_arrival_ns
                .saturating_add(left_ns)
                .saturating_add(1),
            None => 0,
        }
    }

    /// When an idle path may take a packet that waits already, ns, if that is not now; none: only an event can change it.
    #[must_use]
    pub fn retry_ns(&self, path: usize, queues: &[Queue], now_ns: u64) -> Option<u64> {
        let waiting = queues
            .iter()
            .enumerate()
            .filter(|(_, queue)| queue.backlog_pkts > 0);
        let ready = waiting.filter_map(|(class, queue)| self.ready_ns(path, class, queue));
        ready.filter(|ready_ns| *ready_ns > now_ns).min()
    }

    /// The paths that a class may use if it has much to send, as bits.
    #[must_use]
    pub fn usable(&self, class: usize) -> u32 {
        let up = self.paths.iter().enumerate().filter(|(_, path)| path.up);
        let up: u32 = up.map(|(at, _)| 1 << at).sum();
        match self.classes[class] {
            Paths::Named(named) => named & up,
            _ => up,
        }
    }

    /// How much of each class's reservation the paths that are up can carry together, bit/s. Classes of all paths come first, as
    /// their copies take the reserved rate on every path; then earlier classes come first. Classes without a reservation are left
    /// out: what they send, copies too, goes when the policy has nothing reserved for the path, unless it ranks them higher.
    ///
    /// A set of reservations can be carried if for every set of paths those that can use no other path are not above its rate
    /// (Hall's theorem); what is left of each such set bounds the next class.
    #[must_use]
    pub fn kept(&self, promised_bps: &[u64]) -> Vec<Kept> {
        let sets = 1u32 << self.paths.len();
        let mut left_bps: Vec<u64> = self
            .paths
            .iter()
            .map(|path| if path.up { path.rate_bps } else { 0 })
            .collect();
        let mut kept: Vec<Kept> = Vec::new();
        let given = promised_bps.iter().enumerate().filter(|(_, bps)| **bps > 0);
        for (class, promised_bps) in given.clone() {
            if self.classes[class] == Paths::All {
                let kept_bps = left_bps
                    .iter()
                    .copied()
                    .max()
                    .unwrap_or(0)
                    .min(*promised_bps);
                for left_bps in &mut left_bps {
                    *left_bps = left_bps.saturating_sub(*promised_bps);
                }
                kept.push(Kept {
                    class,
                    promised_bps: *promised_bps,
                    kept_bps,
                });
            }
        }
        let mut shared: Vec<Kept> = Vec::new();
        for (class, promised_bps) in given {
            if self.classes[class] == Paths::All {
                continue;
            }
            let usable = self.usable(class);
            let containing = (0..sets).filter(|set| set & usable == usable);
            let left = containing.map(|set| {
                let rate: u64 = (0..self.paths.len())
                    .filter(|path| set & 1 << path != 0)
                    .map(|path| left_bps[path])
                    .sum();
                let inside = shared
                    .iter()
                    .filter(|other| self.usable(other.class) & !set == 0);
                rate.saturating_sub(inside.map(|other| other.kept_bps).sum())
            });
            let kept_bps = if usable == 0 {
                0
            } else {
                left.min().unwrap_or(0).min(*promised_bps)
            };
            shared.push(Kept {
                class,
                promised_bps: *promised_bps,
                kept_bps,
            });
        }
        kept.extend(shared);
        kept.sort_unstable_by_key(|kept| kept.class);
        kept
    }
}

/// Why a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A copy of it left over another path.
    Copy,
    /// The path that had it died.
    Again,
}

/// A packet that is sent over a path without leaving the queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried<T> {
    /// Its class.
    pub class: usize,
    /// Its number in the class.
    pub number: u32,
    /// Its accounted length.
    pub bytes: u32,
    /// The packet.
    pub item: T,
    /// Why it is sent.
    pub why: Why,
}

/// Counters of a path of a [`Sender`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BondCounters {
    /// Packets that it carried, copies and repetitions included.
    pub carried_pkts: u64,
    /// Their accounted bytes.
    pub carried_bytes: u64,
    /// Copies among them.
    pub copied_pkts: u64,
    /// Repetitions among them.
    pub resent_pkts: u64,
    /// Copies that were dropped: the path had [`MOST_COPIES`] of newer packets, or they became too old.
    pub dropped_copies: u64,
}

/// A copy that waits for a path.
#[derive(Debug)]
struct Copied<T> {
    /// When the packet came.
    arrival_ns: u64,
    /// Until when it may be sent.
    until_ns: u64,
    packet: Carried<T>,
}

/// A packet that was sent and may be sent again.
#[derive(Debug)]
struct Sent<T> {
    /// When the path took it.
    at_ns: u64,
    /// Until when it may be sent again.
    until_ns: u64,
    packet: Carried<T>,
}

#[derive(Debug)]
struct Line<T> {
    copies: VecDeque<Copied<T>>,
    /// What it has sent lately of classes that ask for repetition.
    sent: VecDeque<Sent<T>>,
    sent_bytes: u64,
    /// The last packet was a repetition, so the next one is none.
    repeated: bool,
    counters: BondCounters,
}

/// How much a [`Sender`] remembers of each path for repetition, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    ns: u64,
    most_bytes: u64,
}

/// A packet that waits to be sent again, and which one it is of all that were found lost.
#[derive(Debug)]
struct Again<T> {
    place: u64,
    until_ns: u64,
    packet: Carried<T>,
}

/// The sending end of a bond: numbers, copies and repetitions.
#[derive(Debug)]
pub struct Sender<T> {
    /// The paths and classes.
    pub bond: Bond,
    /// The number of each class's next packet.
    numbers: Vec<u32>,
    /// Whether what a dead path held is sent again, for each class.
    resend: Vec<bool>,
    memory: Memory,
    lines: Vec<Line<T>>,
    /// What dead paths held, to be sent again: of each class, in the order in which it was found lost.
    again: Vec<VecDeque<Again<T>>>,
    again_bytes: u64,
    again_pkts: usize,
    /// Packets that were found lost so far.
    found: u64,
    /// How the queues look with the first copy of each class; empty between two calls.
    seen: Vec<(usize, Queue)>,
}

impl<T: Clone> Sender<T> {
    /// A sender over a bond whose packets begin with number 0. Classes with `resend` are repeated when a path dies; for this,
    /// each path remembers what it sent in the last `memory_ns`, at most `most_bytes`.
    ///
    /// # Panics
    /// When `resend` has not a word for each class.
    #[must_use]
    pub fn new(bond: Bond, resend: &[bool], memory_ns: u64, most_bytes: u64) -> Sender<T> {
        assert_eq!(resend.len(), bond.classes.len(), "a word for each class");
        let line = || Line {
            copies: VecDeque::new(),
            sent: VecDeque::new(),
            sent_bytes: 0,
            repeated: false,
            counters: BondCounters::default(),
        };
        Sender {
            numbers: vec![0; bond.classes.len()],
            resend: resend.to_vec(),
            memory: Memory {
                ns: memory_ns,
                most_bytes,
            },
            lines: bond.paths.iter().map(|_| line()).collect(),
            again: bond.classes.iter().map(|_| VecDeque::new()).collect(),
            again_bytes: 0,
            again_pkts: 0,
            found: 0,
            seen: Vec::new(),
            bond,
        }
    }

    /// What a path sends instead of a packet from the queues, if anything: a copy that the policy ranks before all that waits
    /// in them for this path, or on every second turn a repetition.
    pub fn before<P: Policy, U>(
        &mut self,
        mux: &mut Mux<P, U>,
        now_ns: u64,
        path: usize,
    ) -> Option<Carried<T>> {
        if !self.bond.paths[path].up {
            return None;
        }
        if !self.lines[path].copies.is_empty() {
            if let Some(copy) = self.take_copy(mux, now_ns, path) {
                let counters = &mut self.lines[path].counters;
                counters.carried_pkts += 1;
                counters.carried_bytes += u64::from(copy.bytes);
                counters.copied_pkts += 1;
                return Some(copy);
            }
        }
        if self.again_pkts == 0 || self.lines[path].repeated {
            self.lines[path].repeated = false;
            return None;
        }
        self.take_again(now_ns, path)
    }

    /// The oldest copy of the class that the policy picks for a path, if it picks one that has copies.
    fn take_copy<P: Policy, U>(
        &mut self,
        mux: &mut Mux<P, U>,
        now_ns: u64,
        path: usize,
    ) -> Option<Carried<T>> {
        self.allow(mux, now_ns, path);
        let Sender { lines, seen, .. } = self;
        let Line {
            copies, counters, ..
        } = &mut lines[path];
        let before = copies.len();
        copies.retain(|copy| {
            let aged_ns = mux.max_age_ns(copy.packet.class);
            let aged_ns = aged_ns.map_or(u64::MAX, |ns| copy.arrival_ns.saturating_add(ns));
            now_ns <= copy.until_ns.min(aged_ns)
        });
        counters.dropped_copies += (before - copies.len()) as u64;
        for Copied {
            arrival_ns, packet, ..
        } in copies.iter()
        {
            if seen.iter().any(|(class, _)| *class == packet.class) {
                continue;
            }
            let queue = mux.queues()[packet.class];
            let with_copy = Queue {
                head_arrival_ns: *arrival_ns,
                head_bytes: packet.bytes,
                backlog_pkts: queue.backlog_pkts.saturating_add(1),
                backlog_bytes: queue.backlog_bytes + u64::from(packet.bytes),
                ..queue
            };
            seen.push((packet.class, with_copy));
        }
        let picked = mux.next_class_if(now_ns, seen);
        seen.clear();
        let at = copies
            .iter()
            .position(|copy| Some(copy.packet.class) == picked)?;
        copies.remove(at).map(|copy| copy.packet)
    }

    /// What a path sends when the policy had nothing for it, if anything: a repetition.
    pub fn after(&mut self, now_ns: u64, path: usize) -> Option<Carried<T>> {
        if !self.bond.paths[path].up {
            return None;
        }
        self.take_again(now_ns, path)
    }

    /// Takes what was found lost first of all that a path may carry.
    #[cold]
    fn take_again(&mut self, now_ns: u64, path: usize) -> Option<Carried<T>> {
        if self.again_pkts == 0 {
            return None;
        }
        self.forget_again(now_ns);
        let fronts = self.again.iter().enumerate();
        let fronts = fronts.filter_map(|(class, again)| Some((again.front()?.place, class)));
        let carried = fronts.filter(|(_, class)| self.bond.usable(*class) & 1 << path != 0);
        let (_, class) = carried.min()?;
        let Again {
            until_ns, packet, ..
        } = self.again[class].pop_front()?;
        self.again_bytes -= u64::from(packet.bytes);
        self.again_pkts -= 1;
        let line = &mut self.lines[path];
        line.repeated = true;
        line.counters.carried_pkts += 1;
        line.counters.carried_bytes += u64::from(packet.bytes);
        line.counters.resent_pkts += 1;
        let again = Sent {
            at_ns: now_ns,
            until_ns,
            packet: packet.clone(),
        };
        self.remember(now_ns, path, again);
        Some(packet)
    }

    /// Frees what is too old to be sent: copies, what paths remember, and what waits to be sent again. Without it, that of a
    /// path stays until it takes another packet, so a caller whose paths fall idle calls it now and then.
    pub fn forget(&mut self, now_ns: u64) {
        for line in &mut self.lines {
            while line
                .copies
                .front()
                .is_some_and(|copy| copy.until_ns < now_ns)
            {
                line.copies.pop_front();
                line.counters.dropped_copies += 1;
            }
            line.forget_sent(now_ns, self.memory);
        }
        self.forget_again(now_ns);
        for again in &mut self.again {
            if again.is_empty() {
                again.shrink_to_fit();
            }
        }
    }

    /// Frees what waits to be sent again and is too old for it. Each class has it in the order of its age, nearly: what is
    /// behind a younger one goes after that.
    fn forget_again(&mut self, now_ns: u64) {
        for again in &mut self.again {
            let is_old = |old: &Again<T>| old.until_ns < now_ns;
            while again.front().is_some_and(is_old) {
                if let Some(old) = again.pop_front() {
                    self.again_bytes -= u64::from(old.packet.bytes);
                    self.again_pkts -= 1;
                }
            }
        }
    }

    /// Lets only those classes leave `mux` that may use a path now.
    #[inline]
    pub fn allow<P: Policy, U>(&self, mux: &mut Mux<P, U>, now_ns: u64, path: usize) {
        mux.allow(now_ns, |class, queue| {
            self.bond.may_use(path, class, queue, now_ns)
        });
    }

    /// A packet has left the queues for a path; returns its number. Copies for the other paths wait from now on.
    pub fn left(&mut self, now_ns: u64, path: usize, departure: &Departure<T>) -> u32 {
        let class = departure.class;
        let number = self.numbers[class];
        self.numbers[class] = number.wrapping_add(1);
        let to_all = self.bond.classes[class] == Paths::All;
        let counters = &mut self.lines[path].counters;
        counters.carried_pkts += 1;
        counters.carried_bytes += u64::from(departure.bytes);
        if !to_all && !self.resend[class] {
            return number;
        }
        let carried = |why| Carried {
            class,
            number,
            bytes: departure.bytes,
            item: departure.item.clone(),
            why,
        };
        if to_all {
            let others = self.lines.iter_mut().zip(&self.bond.paths).enumerate();
            for (_, (line, _)) in others.filter(|(at, (_, other))| *at != path && other.up) {
                if line.copies.len() == MOST_COPIES {
                    line.copies.pop_front();
                    line.counters.dropped_copies += 1;
                }
                line.copies.push_back(Copied {
                    arrival_ns: now_ns.saturating_sub(departure.sojourn_ns),
                    until_ns: now_ns.saturating_add(self.memory.ns),
                    packet: carried(Why::Copy),
                });
            }
        } else {
            let sent = Sent {
                at_ns: now_ns,
                until_ns: now_ns.saturating_add(self.memory.ns.saturating_mul(2)),
                packet: carried(Why::Again),
            };
            self.remember(now_ns, path, sent);
        }
        number
    }

    /// Whether copies or repetitions wait for a path; they may have become too old.
    #[must_use]
    pub fn waits(&self, path: usize) -> bool {
        let carries = |class: usize| self.bond.usable(class) & 1 << path != 0;
        let mut again = self.again.iter().enumerate();
        self.bond.paths[path].up
            && (!self.lines[path].copies.is_empty()
                || self.again_pkts > 0
                    && again.any(|(class, again)| !again.is_empty() && carries(class)))
    }

    /// Whether a packet waits as a copy or to be sent again, or is remembered for it.
    #[must_use]
    pub fn keeps(&self, class: usize, number: u32) -> bool {
        let is = |packet: &Carried<T>| packet.class == class && packet.number == number;
        let of_line = |line: &Line<T>| {
            line.copies.iter().any(|copy| is(&copy.packet))
                || line.sent.iter().any(|sent| is(&sent.packet))
        };
        let mut again = self.again[class].iter();
        again.any(|again| is(&again.packet)) || self.lines.iter().any(of_line)
    }

    /// A path is as given from now on. If it dies, its copies are dropped, and what it sent from `since_ns` on is sent again
    /// for classes that ask for it and may use another path that is up; what it sent before is taken to have arrived.
    pub fn set_path(&mut self, path: usize, now: Path, since_ns: u64) {
        let died = self.bond.paths[path].up && !now.up;
        self.bond.set_path(path, now);
        if died {
            for class in 0..self.again.len() {
                if self.bond.usable(class) == 0 {
                    self.again_pkts -= self.again[class].len();
                    let again = self.again[class].drain(..);
                    let bytes = again.map(|again| u64::from(again.packet.bytes));
                    self.again_bytes -= bytes.sum::<u64>();
                }
            }
            self.lose(path, since_ns, |bond, class| bond.usable(class) != 0);
            let line = &mut self.lines[path];
            line.copies.clear();
            line.sent_bytes = 0;
            line.sent = VecDeque::new();
        }
    }

    /// As [`Sender::set_path`] where a path that is down carries nothing for some time. Its copies, and what waits to be sent
    /// again, stay until they are too old. What it has under way waits for it if no other path may carry it. All that is
    /// remembered may still be found lost ([`Sender::lost_since`]).
    pub fn pause_path(&mut self, path: usize, now: Path, since_ns: u64) {
        let died = self.bond.paths[path].up && !now.up;
        self.bond.set_path(path, now);
        if died {
            self.lose(path, since_ns, |bond, class| bond.usable(class) != 0);
        }
    }

    /// What a path that is down sent from `since_ns` on, and has not been sent again, is sent again as far as it is remembered,
    /// over paths that are up or come up before it is too old. Drops the copies that wait for the path, and what does not fit
    /// into the memory; what waits to be sent again already stays.
    pub fn lost_since(&mut self, path: usize, since_ns: u64) {
        self.lines[path].copies.clear();
        self.lose(path, since_ns, |_, _| true);
    }

    /// Moves what a path sent from `since_ns` on, of classes that `may` be sent again, to what waits for that. The rest stays
    /// remembered.
    fn lose(&mut self, path: usize, since_ns: u64, may: impl Fn(&Bond, usize) -> bool) {
        let line = &mut self.lines[path];
        let first = line.sent.partition_point(|sent| sent.at_ns < since_ns);
        for sent in line.sent.split_off(first) {
            if !may(&self.bond, sent.packet.class) {
                line.sent.push_back(sent);
                continue;
            }
            let Sent {
                until_ns, packet, ..
            } = sent;
            let bytes = u64::from(packet.bytes);
            line.sent_bytes -= bytes;
            if self.again_bytes + bytes > self.memory.most_bytes {
                continue;
            }
            self.again_bytes += bytes;
            self.again_pkts += 1;
            self.found += 1;
            self.again[packet.class].push_back(Again {
                place: self.found,
                until_ns,
                packet,
            });
        }
    }

    /// Counters of a path.
    #[must_use]
    pub fn counters(&self, path: usize) -> &BondCounters {
        &self.lines[path].counters
    }

    /// Bytes that are kept to be sent again: those that paths remember, and those that wait.
    #[must_use]
    pub fn remembered_bytes(&self) -> u64 {
        let remembered = self.lines.iter().map(|line| line.sent_bytes);
        remembered.sum::<u64>() + self.again_bytes
    }

    fn remember(&mut self, now_ns: u64, path: usize, sent: Sent<T>) {
        let line = &mut self.lines[path];
        line.sent_bytes += u64::from(sent.packet.bytes);
        line.sent.push_back(sent);
        line.forget_sent(now_ns, self.memory);
    }
}

impl<T> Line<T> {
    /// Frees what it has sent and need not remember any more.
    fn forget_sent(&mut self, now_ns: u64, memory: Memory) {
        let Memory { ns, most_bytes } = memory;
        while self.sent.front().is_some_and(|oldest| {
            oldest.at_ns.saturating_add(ns) < now_ns || self.sent_bytes > most_bytes
        }) {
            if let Some(old) = self.sent.pop_front() {
                self.sent_bytes -= u64::from(old.packet.bytes);
            }
        }
        if self.sent.is_empty() {
            self.sent.shrink_to_fit();
        }
    }
}
