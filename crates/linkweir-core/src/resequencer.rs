// SPDX-License-Identifier: BSD-3-Clause
//! The receiving end of a [`Bond`](crate::Bond): drops duplicates, and puts the packets of a class back in order within a
//! stated time.
//!
//! Packets of a class carry numbers that grow by one and wrap at 2^32. A packet behind a missing one is held until the missing
//! one comes, or until it has been held for the stated time; then the missing ones before it are given up. What is given up
//! and comes even so is dropped, since packets behind it have passed. So no packet is handed out twice or out of order, none
//! is held longer than the time, and what is held has a bound in packets and in bytes: what would exceed it gives up the
//! missing ones at once. The memory follows what is held, whatever numbers come ([`Resequencer::memory_bytes`]). The terms are
//! those of RFC 4737.
//!
//! Without a time, packets are handed out as they come and only duplicates are dropped.

use std::collections::{BTreeMap, VecDeque};

/// What a [`Resequencer`] may take to restore the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restoring {
    /// How long a packet may be held, ns; none: the order is not restored, and only duplicates are dropped.
    pub wait_ns: Option<u64>,
    /// Most packets that are held.
    pub most_pkts: u32,
    /// Most bytes that are held.
    pub most_bytes: u64,
    /// How many of the latest numbers are remembered. A packet that is further behind the latest one is dropped as late, so
    /// this must be above what comes over the fastest path while a packet travels over the slowest.
    pub window: u32,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived<T> {
    /// It is handed out.
    Delivered(T),
    /// It came before.
    Duplicate(T),
    /// It was given up, or is behind the window.
    Late(T),
}

/// Counters of a [`Resequencer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResequencerCounters {
    /// Packets that were handed out.
    pub delivered_pkts: u64,
    /// Packets that came a second time.
    pub duplicate_pkts: u64,
    /// Packets that came after they were given up.
    pub late_pkts: u64,
    /// Numbers that were given up, whether or not the packet came later.
    pub given_up_pkts: u64,
    /// Packets that came after one with a later number (RFC 4737, section 3), duplicates left out.
    pub reordered_pkts: u64,
    /// Packets that were held for a missing one.
    pub held_pkts: u64,
}

#[derive(Debug)]
struct Held<T> {
    bytes: u32,
    item: T,
}

/// The receiver of a class.
#[derive(Debug)]
pub struct Resequencer<T> {
    restoring: Restoring,
    /// The number that is handed out next, in a count that does not wrap.
    next: u64,
    /// One more than the greatest number that has come.
    top: u64,
    /// A bit for each number of the window: it has come.
    seen: Vec<u64>,
    /// What is held, all behind `next`.
    held: BTreeMap<u64, Held<T>>,
    held_bytes: u64,
    /// When each packet that is held must be handed out, in the order in which they came; also of some that were already, at
    /// most as many and [`WORD`].
    deadlines: VecDeque<(u64, u64)>,
    counters: ResequencerCounters,
}

/// Bits of a word of the window.
const WORD: u64 = 64;
/// The count begins here, so that the first packets may be behind the first number.
const ORIGIN: u64 = 1 << 32;

impl<T> Resequencer<T> {
    /// A receiver whose first packet has the number 0.
    ///
    /// # Panics
    /// When the window holds no number, or more than 2^24.
    #[must_use]
    pub fn new(restoring: Restoring) -> Resequencer<T> {
        let words = u64::from(restoring.window)
            .div_ceil(WORD)
            .next_power_of_two();
        assert!(
            (1..=1 << 24).contains(&restoring.window),
            "a window of {} numbers; it holds 1 .. 2^24",
            restoring.window
        );
        Resequencer {
            restoring,
            next: ORIGIN,
            top: ORIGIN,
            seen: vec![0; words as usize],
            held: BTreeMap::new(),
            held_bytes: 0,
            deadlines: VecDeque::new(),
            counters: ResequencerCounters::default(),
        }
    }

    /// A packet comes. It and what it lets go, or what makes room for it, are handed to `out`, in order.
    pub fn arrive(
        &mut self,
        now_ns: u64,
        number: u32,
        bytes: u32,
        item: T,
        mut out: impl FnMut(Arrived<T>),
    ) {
        self.expire(now_ns, &mut out);
        let reference = if self.restoring.wait_ns.is_some() {
            self.next
        } else {
            self.top
        };
        // The nearest count with this number, in either direction.
        let ahead = number.wrapping_sub(reference as u32) as i32;
        let at = reference.wrapping_add_signed(i64::from(ahead));
        if at + self.window() < self.top {
            self.counters.late_pkts += 1;
            return out(Arrived::Late(item));
        }
        if at < self.top && self.has_seen(at) {
            self.counters.duplicate_pkts += 1;
            return out(Arrived::Duplicate(item));
        }
        let in_order = self.restoring.wait_ns.is_some();
        if in_order && at < self.next {
            self.counters.late_pkts += 1;
            return out(Arrived::Late(item));
        }
        self.counters.reordered_pkts += u64::from(at < self.top);
        self.see(at);
        let Some(wait_ns) = self.restoring.wait_ns else {
            self.next = self.top;
            self.counters.delivered_pkts += 1;
            return out(Arrived::Delivered(item));
        };
        if at > self.next && wait_ns > 0 {
            self.hold(
                now_ns.saturating_add(wait_ns),
                at,
                Held { bytes, item },
                &mut out,
            );
        } else {
            self.pass_up_to(at, &mut out);
            self.next = at + 1;
            self.counters.delivered_pkts += 1;
            out(Arrived::Delivered(item));
        }
        self.pass_consecutive(&mut out);
    }

    /// Hands out what must not be held any longer.
    pub fn expire(&mut self, now_ns: u64, mut out: impl FnMut(Arrived<T>)) {
        while let Some(&(due_ns, at)) = self.deadlines.front() {
            if at >= self.next {
                if due_ns > now_ns {
                    return;
                }
                self.pass_up_to(at + 1, &mut out);
                self.pass_consecutive(&mut out);
            }
            self.deadlines.pop_front();
        }
        if self.deadlines.is_empty() && self.deadlines.capacity() > WORD as usize {
            self.deadlines = VecDeque::new();
        }
    }

    /// When [`Resequencer::expire`] has something to hand out, ns; none: not without another packet.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        let mut waiting = self.deadlines.iter().filter(|(_, at)| *at >= self.next);
        waiting.next().map(|(due_ns, _)| *due_ns)
    }

    /// Hands out all that is held, in order, as the path to it is gone.
    pub fn flush(&mut self, mut out: impl FnMut(Arrived<T>)) {
        self.pass_up_to(self.top, &mut out);
        self.deadlines = VecDeque::new();
    }

    /// Packets that come from now on are held for up to this time, ns, if that is longer than so far and the order is restored at
    /// all. A shorter time would put their deadlines before those of packets that came earlier, so it changes nothing.
    pub fn raise_wait(&mut self, wait_ns: u64) {
        if let Some(known_ns) = &mut self.restoring.wait_ns {
            *known_ns = wait_ns.max(*known_ns);
        }
    }

    /// How long a packet may be held, ns; none: the order is not restored.
    #[must_use]
    pub fn wait_ns(&self) -> Option<u64> {
        self.restoring.wait_ns
    }

    /// The packet with this number, if it is held: what its duplicate knew can be added to it.
    pub fn held_mut(&mut self, number: u32) -> Option<&mut T> {
        let ahead = number.wrapping_sub(self.next as u32) as i32;
        let at = self.next.wrapping_add_signed(i64::from(ahead));
        self.held.get_mut(&at).map(|held| &mut held.item)
    }

    /// Packets that are held now.
    #[must_use]
    pub fn held_pkts(&self) -> u32 {
        self.held.len() as u32
    }

    /// Bytes that are held now.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Memory that it takes beside the packets themselves, about, bytes: for the window, and for what is held.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        // Nodes of the map have room for 11 and hold 5 or more, but for one; the rest is for what links them.
        let of_held = 3 * size_of::<(u64, Held<T>)>() * self.held.len();
        let of_deadlines = size_of::<(u64, u64)>() * self.deadlines.capacity();
        (8 * self.seen.len() + of_held + of_deadlines) as u64
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> &ResequencerCounters {
        &self.counters
    }

    fn window(&self) -> u64 {
        u64::from(self.restoring.window)
    }

    fn bit(&self, at: u64) -> (usize, u64) {
        let word = (at / WORD) as usize & (self.seen.len() - 1);
        (word, 1 << (at % WORD))
    }

    fn has_seen(&self, at: u64) -> bool {
        let (word, bit) = self.bit(at);
        self.seen[word] & bit != 0
    }

    /// Notes that a number has come; those between it and the greatest so far have not.
    fn see(&mut self, at: u64) {
        if at >= self.top {
            if at - self.top >= self.seen.len() as u64 * WORD {
                self.seen.fill(0);
            } else {
                for between in self.top..at {
                    let (word, bit) = self.bit(between);
                    self.seen[word] &= !bit;
                }
            }
            self.top = at + 1;
        }
        let (word, bit) = self.bit(at);
        self.seen[word] |= bit;
    }

    /// Holds a packet in front of which others are missing.
    fn hold(&mut self, due_ns: u64, at: u64, packet: Held<T>, out: &mut impl FnMut(Arrived<T>)) {
        let Restoring {
            most_pkts,
            most_bytes,
            ..
        } = self.restoring;
        // So far behind the packet, numbers are not remembered any more.
        if at - self.next >= self.window() {
            self.pass_up_to(at + 1 - self.window(), out);
            self.pass_consecutive(out);
        }
        let mut fits = most_pkts > 0 && u64::from(packet.bytes) <= most_bytes;
        while fits
            && !self.held.is_empty()
            && (self.held_pkts() >= most_pkts
                || self.held_bytes + u64::from(packet.bytes) > most_bytes)
        {
            let first = self.held.first_key_value().map_or(at, |(first, _)| *first);
            // The packet itself comes before all that is held.
            fits = first < at;
            if fits {
                self.pass_up_to(first + 1, out);
                self.pass_consecutive(out);
            }
        }
        // It may have become the next one.
        if at <= self.next || !fits {
            self.pass_up_to(at, out);
            self.next = at + 1;
            self.counters.delivered_pkts += 1;
            return out(Arrived::Delivered(packet.item));
        }
        self.counters.held_pkts += 1;
        self.held_bytes += u64::from(packet.bytes);
        self.held.insert(at, packet);
        self.deadlines.push_back((due_ns, at));
        if self.deadlines.len() > 2 * self.held.len() + WORD as usize {
            // Those that are left are half of them or fewer, so this is rare.
            let next = self.next;
            self.deadlines.retain(|(_, at)| *at >= next);
        }
    }

    /// Hands out what is held below a number, and gives up what is missing there.
    fn pass_up_to(&mut self, end: u64, out: &mut impl FnMut(Arrived<T>)) {
        while let Some(first) = self.held.first_entry().filter(|first| *first.key() < end) {
            let (at, packet) = first.remove_entry();
            self.counters.given_up_pkts += at - self.next;
            self.next = at + 1;
            self.pass(packet, out);
        }
        self.counters.given_up_pkts += end.saturating_sub(self.next);
        self.next = self.next.max(end);
    }

    /// Hands out what is held without a gap.
    fn pass_consecutive(&mut self, out: &mut impl FnMut(Arrived<T>)) {
        while let Some(packet) = self.held.remove(&self.next) {
            self.next += 1;
            self.pass(packet, out);
        }
    }

    fn pass(&mut self, packet: Held<T>, out: &mut impl FnMut(Arrived<T>)) {
        self.held_bytes -= u64::from(packet.bytes);
        self.counters.delivered_pkts += 1;
        out(Arrived::Delivered(packet.item));
    }
}
