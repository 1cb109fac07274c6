// SPDX-License-Identifier: BSD-3-Clause
//! Handshakes that wait for their turn. Each costs multiplications on an elliptic curve, a tenth of a millisecond and more,
//! in which no packet leaves. So there is at most one between two looks at the packets, and together they take at most a
//! quarter of the time.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::linux::underlay::Local;
use crate::tunnel::seal::INITIATION_BYTES;

/// Most beginnings of handshakes that wait to be opened.
const INCOMING: usize = 1024;
/// After a handshake there is none for so many times as long as it took.
const REST: u64 = 3;

/// The beginning of a handshake that someone sent.
pub(super) struct Incoming {
    pub(super) datagram: [u8; INITIATION_BYTES],
    /// The sender.
    pub(super) from: SocketAddr,
    /// Where it came in.
    pub(super) to: Option<Local>,
}

/// A handshake whose turn it is.
pub(super) enum Turn {
    /// Somebody began it.
    Incoming(Incoming),
    /// The peer of this number is to be asked for a session.
    Ask(usize),
}

/// Handshakes that wait, and when the next may be worked on.
#[derive(Default)]
pub(super) struct Handshakes {
    incoming: VecDeque<Incoming>,
    /// Peers that are to be asked for a session.
    asking: VecDeque<usize>,
    free_ns: u64,
}

impl Handshakes {
    /// Lets an incoming one wait; false: too many do.
    pub(super) fn take(&mut self, incoming: Incoming) -> bool {
        let room = self.incoming.len() < INCOMING;
        if room {
            self.incoming.push_back(incoming);
        }
        room
    }

    /// Lets a peer wait that is to be asked for a session.
    pub(super) fn ask(&mut self, at: usize) {
        self.asking.push_back(at);
    }

    /// The peers have other numbers: those that were to be asked are looked at again.
    pub(super) fn forget_peers(&mut self) {
        self.asking.clear();
    }

    /// When the next may be worked on, ns; none: none waits.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let waits = !self.incoming.is_empty() || !self.asking.is_empty();
        waits.then_some(self.free_ns)
    }

    /// Takes the one whose turn it is. A peer that asks goes before one that is to be asked.
    pub(super) fn next(&mut self) -> Option<Turn> {
        let incoming = self.incoming.pop_front().map(Turn::Incoming);
        incoming.or_else(|| self.asking.pop_front().map(Turn::Ask))
    }

    /// Counts the time that one took.
    pub(super) fn spent(&mut self, began_ns: u64, ended_ns: u64) {
        self.free_ns = ended_ns + REST * (ended_ns - began_ns);
    }
}
