// SPDX-License-Identifier: BSD-3-Clause
//! Packets that are sent, that have arrived, and that were dropped.

use std::fmt;

/// What a link needs to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index of its class, in the order of the scenario ([`Link::class`](crate::Link::class)).
    pub class: usize,
    /// Its length, without what the link adds (`overhead`).
    pub bytes: u32,
    /// Tells it apart from the packets of other flows, where its class isolates flows (`flows`). A class has 1,024 queues for
    /// flows, so numbers that differ by 1,024 share one; numbers below 512 never share one with 512 connections of other traffic.
    /// Behind a satellite whose delays change, all packets of a class on their way to the queue take the last one's number.
    pub flow: u32,
    /// Whether a policy may mark it instead of dropping it (ECT).
    pub ecn_capable: bool,
    /// Whether it is an L4S packet (ECT(1) or CE), where its class sorts them (`flows = "dualpi2"`). A policy may mark it, too.
    pub l4s: bool,
}

impl Packet {
    /// A classic packet of flow 0 that cannot be marked.
    #[must_use]
    pub fn new(class: usize, bytes: u32) -> Packet {
        Packet {
            class,
            bytes,
            flow: 0,
            ecn_capable: false,
            l4s: false,
        }
    }
}

/// A packet that has arrived at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<P> {
    /// What it carries.
    pub payload: P,
    /// Index of its class.
    pub class: usize,
    /// Its length, as it was sent.
    pub bytes: u32,
    /// When it was sent into the link, ns.
    pub sent_ns: u64,
    /// When the policy let it go from its queue, ns.
    pub left_ns: u64,
    /// When it arrived, ns.
    pub arrived_ns: u64,
    /// Whether the policy marked it (CE).
    pub marked: bool,
}

/// A packet that the link dropped or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// What it carried.
    pub payload: P,
    /// Index of its class.
    pub class: usize,
    /// Its length, as it was sent.
    pub bytes: u32,
    /// When it was sent into the link, ns.
    pub sent_ns: u64,
    /// When it was dropped or lost, ns.
    pub dropped_ns: u64,
    /// Why.
    pub reason: Reason,
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Its queue was full.
    Limit,
    /// The policy dropped it.
    Policy,
    /// It waited longer than its class allows (`max_age`).
    Age,
    /// It was lost on the link.
    Link,
    /// The decoder behind a satellite gave it up.
    Decoder,
    /// The buffer that restores the order gave up waiting for it.
    Order,
}

impl Reason {
    /// The name in table `packets` of a run.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::Limit => "limit",
            Reason::Policy => "policy",
            Reason::Age => "age",
            Reason::Link => "link",
            Reason::Decoder => "decoder",
            Reason::Order => "order",
        }
    }

    pub(crate) fn named(name: &str) -> Reason {
        let all = [
            Reason::Limit,
            Reason::Policy,
            Reason::Age,
            Reason::Decoder,
            Reason::Order,
        ];
        let found = all.into_iter().find(|reason| reason.name() == name);
        found.unwrap_or(Reason::Link)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What became of the packets of a class so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sent into the link.
    pub sent_pkts: u64,
    /// Arrived.
    pub arrived_pkts: u64,
    /// Arrived with a mark.
    pub marked_pkts: u64,
    /// Dropped or lost.
    pub dropped_pkts: u64,
}

impl Counts {
    /// Packets that wait in the queue or are under way.
    #[must_use]
    pub fn inside_pkts(&self) -> u64 {
        self.sent_pkts - self.arrived_pkts - self.dropped_pkts
    }
}
