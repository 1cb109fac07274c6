// SPDX-License-Identifier: BSD-3-Clause
//! Flows at a link of a network, and where their packets go behind it.
//!
//! In a link's experiment, the first entries are those of the flows whose ends are at the link. Then comes an entry for each
//! flow that crosses the link, one for each way on from there: ways that have the rest in common share their entries. A packet
//! carries the entry it has at the link where it is, so its next place needs no search.

use crate::experiment::Outages;
use crate::metrics::Seen;
use crate::network::OnBreak;

use super::super::packet::Packet;
use super::inbox::{Message, Notice};

/// The place of a line that is not known yet.
pub(in super::super) const UNKNOWN: u32 = u32::MAX;

/// Where a packet goes: a link, the entry it has there, and the line of its inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Ord, PartialOrd)]
pub(in super::super) struct Target {
    pub(in super::super) place: u32,
    pub(in super::super) entry: u32,
    pub(in super::super) line: u32,
}

impl Target {
    pub(in super::super) fn new(place: u32, entry: u32) -> Target {
        Target {
            place,
            entry,
            line: UNKNOWN,
        }
    }

    #[inline]
    pub(in super::super) fn message(&self, at_ns: u64, packet: Packet) -> Message {
        Message {
            at_ns,
            to: self.place,
            line: self.line,
            packet,
        }
    }
}

/// An entry that crosses a link.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Hop {
    pub(in super::super) next: Target,
    pub(in super::super) back: bool,
    /// The receiver has play-out buffers, which must know of each packet.
    pub(in super::super) watched: bool,
    /// The flow's ends: the link, and its entry there.
    pub(in super::super) home: u32,
    pub(in super::super) home_entry: u32,
    /// The least time from the device of this link to the end of the way, ns.
    pub(in super::super) rest_ns: u64,
}

impl Hop {
    /// Tells the ends that a packet was dropped or lost now: when it would have arrived at the earliest. `from` is the link and
    /// the number of its notices before.
    pub(in super::super) fn notice(&self, now_ns: u64, from: (u32, u64), packet: Seen) -> Notice {
        Notice {
            at_ns: now_ns.saturating_add(self.rest_ns),
            to: self.home,
            entry: self.home_entry,
            from: from.0,
            number: from.1,
            is_letter: self.back,
            packet,
        }
    }
}

/// The first link of a way.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct First {
    pub(in super::super) from_ns: u64,
    pub(in super::super) target: Option<Target>,
    /// Sum of the return delays of the way, ns.
    pub(in super::super) return_delay_ns: u64,
}

/// The ways of a flow, as its ends need them.
#[derive(Clone, Debug)]
pub(in super::super) struct Ends {
    pub(in super::super) there: Vec<First>,
    pub(in super::super) back: Vec<First>,
    /// The ways in use.
    at_there: usize,
    at_back: usize,
}

impl Ends {
    /// Ends whose ways are not known yet.
    pub(in super::super) fn new() -> Ends {
        Ends {
            there: Vec::new(),
            back: Vec::new(),
            at_there: 0,
            at_back: 0,
        }
    }

    pub(in super::super) fn has_way_back(&self) -> bool {
        !self.back.is_empty()
    }

    pub(in super::super) fn return_delay_ns(&self, now_ns: u64) -> u64 {
        let at = self.there.partition_point(|way| way.from_ns <= now_ns);
        self.there[at.saturating_sub(1)].return_delay_ns
    }

    #[inline]
    pub(in super::super) fn first_there(&mut self, now_ns: u64) -> Option<Target> {
        first_of(&self.there, &mut self.at_there, now_ns)
    }

    #[inline]
    pub(in super::super) fn first_back(&mut self, now_ns: u64) -> Option<Target> {
        first_of(&self.back, &mut self.at_back, now_ns)
    }
}

/// The way of a packet that begins it now; `at` is that of the packet before it, which began no later.
#[inline]
fn first_of(ways: &[First], at: &mut usize, now_ns: u64) -> Option<Target> {
    while ways.get(*at + 1).is_some_and(|next| next.from_ns <= now_ns) {
        *at += 1;
    }
    ways[*at].target
}

/// What an entry is at its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Role {
    /// Its source is here.
    Source,
    /// The two ends of a flow whose source is an entry of its own: a greedy one, which fills the queue itself.
    End,
    /// It comes from elsewhere or goes elsewhere.
    Crossing { application: bool },
}

/// A flow, or a part of one, at a link.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Entry {
    /// Number of the flow in the network.
    pub(in super::super) flow: u32,
    pub(in super::super) role: Role,
    /// Its number for classes that isolate flows.
    pub(in super::super) number: u32,
    /// What its sender lets mark carries ECT(1).
    pub(in super::super) scalable: bool,
    pub(in super::super) hop: Option<Hop>,
}

/// What a link needs beyond its experiment.
#[derive(Clone, Debug)]
pub(in super::super) struct StationPlan {
    pub(in super::super) place: u32,
    /// Seed of the sources.
    pub(in super::super) seed: u64,
    pub(in super::super) entries: Vec<Entry>,
    /// Those of the first entries, whose ends are here.
    pub(in super::super) ends: Vec<Ends>,
    /// Times at which the link does not exist, and what becomes of its packets then.
    pub(in super::super) absent: Outages,
    pub(in super::super) on_break: OnBreak,
}

impl StationPlan {
    /// The return delay of an entry's flow, ns, if it never changes.
    pub(in super::super) fn return_delay_ns(&self, entry: usize) -> Option<u64> {
        let Some(ends) = self.ends.get(entry) else {
            return Some(0);
        };
        let first = ends.there.first()?.return_delay_ns;
        let same = |way: &First| way.return_delay_ns == first;
        ends.there.iter().all(same).then_some(first)
    }

    /// Times at which the link sends nothing.
    pub(in super::super) fn outages(&self) -> Outages {
        match self.on_break {
            OnBreak::Lose => self.absent.clone(),
            OnBreak::Deliver => Outages::default(),
        }
    }

    /// How many of the entries are those of flows' ends.
    pub(in super::super) fn nends(&self) -> usize {
        self.ends.len()
    }

    /// Whether the source of each entry is here.
    pub(in super::super) fn sources(&self) -> Vec<bool> {
        let entries = self.entries.iter();
        entries.map(|entry| entry.role == Role::Source).collect()
    }

    /// Whether the ends of each entry's flow must learn of packets that are dropped or lost.
    pub(in super::super) fn told(&self) -> Vec<bool> {
        let entries = self.entries.iter();
        let told = |hop: Hop| hop.back || hop.watched;
        entries.map(|entry| entry.hop.is_some_and(told)).collect()
    }
}
