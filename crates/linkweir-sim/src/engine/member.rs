// SPDX-License-Identifier: BSD-3-Clause
//! A connection of an application: to whom it belongs, the exchange of SYNs that opens it, and the data written into it.
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
    pub(super) handshake: Handshake,
    /// Some data has not arrived that was written.
    pub(super) waiting: bool,
    /// The application writes nothing more.
    pub(super) closed: bool,
    pub(super) acks_on_the_way: u32,
    /// Written before the connection was open, bytes.
    pub(super) writes: Vec<u64>,
    /// Asked before the connection was open: bytes and the server's time, ns.
    pub(super) asks: Vec<(u64, u64)>,
}

/// The exchange of SYNs, as far as the bottleneck sees it: the sender's SYN, or its answer to the receiver's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    /// When the sender sent it first.
    pub(super) sent_ns: Option<u64>,
    /// How often it has sent it again.
    pub(super) again: u32,
    /// When it sends it again.
    pub(super) deadline_ns: u64,
    /// It has reached the receiver, who may ask now.
    pub(super) receiver_open: bool,
    /// The receiver's answer has reached the sender, who may write now.
    pub(super) sender_open: bool,
}

impl Handshake {
    /// There is none.
    pub(super) fn skipped() -> Handshake {
        Handshake {
            receiver_open: true,
            sender_open: true,
            ..Handshake::default()
        }
    }

    /// The SYN is sent; returns whether for the first time. The time-out doubles with each (RFC 6298).
    pub(super) fn send(&mut self, now_ns: u64, config: &tcp::Config) -> bool {
        let first = self.sent_ns.is_none();
        if first {
            self.sent_ns = Some(now_ns);
        } else {
            self.again += 1;
        }
        let timeout_ns = config
            .initial_rto_ns
            .saturating_mul(1 << self.again.min(20));
        self.deadline_ns = now_ns + timeout_ns.min(config.max_rto_ns.max(config.initial_rto_ns));
        first
    }
}

impl Member {
    pub(super) fn new(
        (owner, connection): (u32, u32),
        (place, generation): (u32, u16),
        config: &tcp::Config,
        handshake: Handshake,
    ) -> Member {
        Member {
            owner,
            connection,
            generation,
            tag: Packet::tag(place, generation),
            stream: tcp::Stream::new(config),
            handshake,
            waiting: false,
            closed: false,
            acks_on_the_way: 0,
            writes: Vec::new(),
            asks: Vec::new(),
        }
    }

    /// A segment as a packet of the application's flow.
    pub(super) fn packet(&self, config: &tcp::Config, segment: &tcp::Segment) -> Packet {
        Packet {
            created_ns: segment.sent_ns,
            segment: Packet::sequence_bits(segment.sequence)
                | (u64::from(segment.retransmission) * Packet::SENT_BEFORE)
                | self.tag,
            flow: self.owner,
            bytes: config.header_bytes + self.stream.segment_bytes(segment.sequence),
        }
    }

    /// The sender's SYN, with the options of Linux: 8 bytes more than those of a segment.
    pub(super) fn syn(&self, now_ns: u64, first: bool, config: &tcp::Config) -> Packet {
        Packet {
            created_ns: now_ns,
            segment: Packet::SYN | (u64::from(!first) * Packet::SENT_BEFORE) | self.tag,
            flow: self.owner,
            bytes: config.syn_bytes(),
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
