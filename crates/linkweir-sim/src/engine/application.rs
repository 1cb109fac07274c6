// SPDX-License-Identifier: BSD-3-Clause
//! An application of a flow: what it does, its connections, and what is to be done for it later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::experiment;
use crate::metrics;
use crate::random::Random;
use crate::tcp;
use crate::traffic::Session;

/// An application of a flow.
pub(super) struct Application {
    pub(super) session: Session,
    pub(super) tcp: tcp::Config,
    /// Seed of the next connection.
    pub(super) seed: u64,
    /// Delay line for its segments, and for its acknowledgements.
    pub(super) access: Option<u32>,
    pub(super) ack: u32,
    /// Place of each of its connections.
    pub(super) places: Vec<u32>,
    /// What is to be done later, with an event of the flow each.
    pending: BinaryHeap<Reverse<(u64, u32, Pending)>>,
    scheduled: u32,
    /// Of the connections that are closed.
    pub(super) past: tcp::Counters,
    pub(super) past_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pending {
    Begin,
    Wake,
    /// A SYN of the receiver reaches the sender.
    Syn(Address),
    /// The server has the response to a request, of this many bytes.
    Write(Address, u64),
    /// A SYN of the receiver may be lost; it has been sent so many times.
    SynAgain(Address, u32),
    /// A request may be lost; it has been sent so many times.
    AskAgain(Request, u32),
}

/// A request of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) address: Address,
    /// Position among those of its connection.
    pub(super) number: u32,
    /// Bytes of the response, and the time the server needs for it, ns.
    pub(super) bytes: u64,
    pub(super) server_ns: u64,
}

/// A connection, by place and generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) place: u32,
    pub(super) generation: u16,
}

impl Application {
    pub(super) fn new(
        application: &experiment::Application,
        (start_ns, stop_ns): (u64, u64),
        (access, ack): (Option<u32>, u32),
        mut random: Random,
    ) -> Application {
        let seed = random.whole();
        let mut new = Application {
            session: Session::new(&application.session, start_ns, stop_ns, random),
            tcp: application.tcp.clone(),
            seed,
            access,
            ack,
            places: Vec::new(),
            pending: BinaryHeap::new(),
            scheduled: 0,
            past: tcp::Counters::default(),
            past_bytes: 0,
        };
        new.later(start_ns, Pending::Begin);
        new
    }

    /// Needs an event of the flow at the same time.
    pub(super) fn later(&mut self, at_ns: u64, pending: Pending) {
        self.scheduled = self.scheduled.wrapping_add(1);
        self.pending.push(Reverse((at_ns, self.scheduled, pending)));
    }

    pub(super) fn due(&mut self, now_ns: u64) -> Option<Pending> {
        let Reverse((at_ns, _, pending)) = *self.pending.peek()?;
        if at_ns > now_ns {
            return None;
        }
        self.pending.pop();
        Some(pending)
    }

    /// Counters and bytes in order of its closed connections.
    pub(super) fn past(&self) -> (tcp::Counters, u64) {
        (self.past, self.past_bytes)
    }

    /// What the viewer of a video saw.
    pub(super) fn playback(&mut self, now_ns: u64) -> Option<metrics::Playback> {
        let seen = self.session.playback(now_ns)?;
        Some(metrics::Playback {
            segments: seen.segments,
            rates_bps: seen.rates_bps,
            switches: seen.switches,
            startup_ns: seen.startup_ns,
            stalls: seen.stalls,
            stalled_ns: seen.stalled_ns,
            played_ns: seen.played_ns,
        })
    }
}
