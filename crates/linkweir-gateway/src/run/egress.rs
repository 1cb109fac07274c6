// SPDX-License-Identifier: BSD-3-Clause
//! What packets pass on their way out: the outbox, and what is known of the socket and the interface below it.

use linkweir_plane::below::Below;
use linkweir_plane::bytes::outbox::{Destination, Outbox};
use linkweir_plane::bytes::superpacket::Packet;

use super::station::{count_all, Station};
use crate::tunnel::seal;

/// The parts that packets pass on their way out.
#[derive(Default)]
pub(super) struct Egress {
    /// Sealed packets that are sent next.
    pub(super) outbox: Outbox,
    /// Whether the socket has no room, so that it reports when there is some.
    pub(super) blocked: bool,
    /// When to send again after the interface below dropped a datagram, ns.
    pub(super) retry_ns: Option<u64>,
    /// Measures the interface below, where it pushes back.
    pub(super) below: Option<Below>,
}

impl Egress {
    pub(super) fn new(below: Option<Below>) -> Egress {
        Egress {
            below,
            ..Egress::default()
        }
    }

    /// Whether no more should be gathered before the outbox is sent.
    pub(super) fn is_full(&self, now_ns: u64) -> bool {
        let gather_bytes = self.below.as_ref().map(|below| below.gather_bytes(now_ns));
        self.outbox.is_full() || gather_bytes.is_some_and(|bytes| self.outbox.bytes() >= bytes)
    }

    /// Seals a packet towards the station with number `at`, where there are sessions, and puts it into the outbox.
    pub(super) fn add(&mut self, at: usize, station: &mut Station, packet: Packet, tos: u8) {
        let Some(to) = station.endpoint else {
            count_all(&mut station.dropped, "no_endpoint", packet.pkts());
            return;
        };
        station.confirm_path();
        let destination = Destination {
            station: at,
            to,
            from: station.source,
            tos,
        };
        let Some(session) = &mut station.session else {
            self.outbox.add_clear(destination, packet);
            return;
        };
        let overhead_bytes = seal::OVERHEAD_BYTES as usize;
        let refused =
            self.outbox
                .add_sealed(destination, packet, overhead_bytes, |clear, sealed| {
                    session.seal(clear, sealed).map(|datagram| datagram.len())
                });
        if refused > 0 {
            count_all(&mut station.dropped, "no_session", refused);
        }
    }
}
