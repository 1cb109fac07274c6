// SPDX-License-Identifier: BSD-3-Clause
//! A connection of an application: to whom it belongs, and the data written into it.
//!
//! The connections of all applications are entries of the engine's list of flows behind the experiment's own, so that
//! timers and acknowledgements find them as they find any other connection. A packet names its flow, which class and
//! results go by, and carries the connection's place as a tag. Places are used again: a generation in the tag tells a
//! segment that comes after its connection is closed.

use std::collections::VecDeque;

use crate::tcp;
use crate::traffic::Action;

use super::packet::Packet;

pub(super) struct Member {
    /// The application's flow.
    pub(super) owner: u32,
    /// Its number in the application.
    pub(super) connection: u32,
    pub(super) generation: u16,
    /// Place and generation, for packets.
    tag: u64,
    pub(super) stream: tcp::Stream,
    /// The sender's SYN, or its answer to the receiver's, has reached the receiver, who may ask now.
    pub(super) open: bool,
    /// The receiver opened it, so the sender does not confirm the answer to its SYN.
    pub(super) answers: bool,
    /// Some data has not arrived that was written.
    pub(super) waiting: bool,
    /// The application writes nothing more.
    pub(super) closed: bool,
    pub(super) acks_on_the_way: u32,
    /// Asked before the connection was open: bytes and the server's time, ns.
    pub(super) asks: Vec<(u64, u64)>,
    /// When the receiver opened it, and how long it took until it was open, ns.
    pub(super) began_ns: u64,
    pub(super) opening_ns: u64,
    /// In a network: requests sent, and those that have reached the sender.
    pub(super) asked: u32,
    pub(super) heard: u32,
}

impl Member {
    pub(super) fn new(
        (owner, connection): (u32, u32),
        (place, generation): (u32, u16),
        config: &tcp::Config,
        answers: bool,
    ) -> Member {
        Member {
            owner,
            connection,
            generation,
            tag: Packet::tag(place, generation),
            stream: tcp::Stream::new(config),
            // ns-2 sends data with its SYN.
            open: config.profile == tcp::Profile::Ns2,
            answers,
            waiting: false,
            closed: false,
            acks_on_the_way: 0,
            asks: Vec::new(),
            began_ns: 0,
            opening_ns: 0,
            asked: 0,
            heard: 0,
        }
    }

    /// A segment as a packet of the application's flow.
    #[cold] // keeps the path of other connections short
    #[inline(never)]
    pub(super) fn packet(&self, config: &tcp::Config, segment: &tcp::Segment) -> Packet {
        let bytes = if segment.sequence == 0 {
            config.segment_wire_bytes(segment) // a SYN, or the acknowledgement of its answer
        } else {
            config.header_bytes + self.stream.segment_bytes(segment.sequence)
        };
        Packet {
            created_ns: segment.sent_ns,
            segment: Packet::sequence_bits(segment.sequence) | Packet::marks(segment) | self.tag,
            flow: self.owner,
            bytes,
        }
    }
}

/// The connections of all applications.
pub(super) struct Members {
    /// Number of the experiment's flows, behind which the connections are.
    pub(super) first: u32,
    /// Places without a connection, the one that became free first in front.
    pub(super) free: VecDeque<u32>,
    /// The generation of the next connection at each place.
    pub(super) generations: Vec<u16>,
    /// What an application asks for at this moment; kept for its room.
    pub(super) actions: Vec<Action>,
}

impl Members {
    pub(super) fn new(flows: usize) -> Members {
        Members {
            first: flows as u32,
            free: VecDeque::new(),
            generations: Vec::new(),
            actions: Vec::new(),
        }
    }
}
