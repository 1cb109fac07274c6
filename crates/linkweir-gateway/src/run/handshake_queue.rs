// SPDX-License-Identifier: BSD-3-Clause
//! Handshakes that wait for their turn. Each costs multiplications on an elliptic curve, a tenth of a millisecond and more,
//! in which no packet leaves. So there is at most one between two looks at the packets, and together they take at most a
//! quarter of the time. Those that wait together are worked on together, so that the processor sleeps in between.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::linux::tunnel_socket::Local;
use crate::tunnel::seal::{self, INITIATION_BYTES};

/// Most beginnings of handshakes that wait to be opened.
const INCOMING: usize = 1024;
/// Handshakes take one part in so many of the time.
const PARTS: u64 = 4;
/// Time of which handshakes may still take their part later, when several wait, ns.
const SAVED_NS: u64 = seal::TICK_NS;

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

    /// Counts the processor time that one took. What other programs had in between is not its doing.
    pub(super) fn spent(&mut self, ended_ns: u64, took_ns: u64) {
        let since_ns = self.free_ns.max(ended_ns.saturating_sub(SAVED_NS));
        self.free_ns = since_ns + PARTS * took_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many handshakes, of which each takes 1 ms, are worked on until a time, ms, and how often the
    /// processor sleeps.
    fn worked_on(
        handshakes: &mut Handshakes,
        from_ms: u64,
        until_ms: u64,
        count: usize,
    ) -> (usize, usize) {
        const MS: u64 = 1_000_000;
        for at in 0..count {
            handshakes.ask(at);
        }
        let (mut now_ns, mut done, mut sleeps) = (from_ms * MS, 0, 0);
        while let Some(ns) = handshakes.next_ns() {
            if now_ns < ns {
                now_ns = ns;
                sleeps += 1;
            }
            if until_ms * MS <= now_ns {
                break;
            }
            handshakes.next();
            handshakes.spent(now_ns + MS, MS);
            now_ns += MS;
            done += 1;
        }
        handshakes.forget_peers();
        (done, sleeps)
    }

    #[test]
    fn they_take_a_quarter_of_the_time_and_those_that_wait_together_need_one_wake_up() {
        let mut handshakes = Handshakes::default();
        assert_eq!(worked_on(&mut handshakes, 10_000, 11_000, 50), (50, 0));
        assert_eq!(worked_on(&mut handshakes, 11_000, 12_000, 50), (50, 0));
        // More than a quarter is asked for: what was saved, and a quarter from then on.
        let (done, _) = worked_on(&mut handshakes, 20_000, 30_000, 10_000);
        assert!((2500..2590).contains(&done), "{done}");
    }
}
