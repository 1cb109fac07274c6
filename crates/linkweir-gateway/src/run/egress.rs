// SPDX-License-Identifier: BSD-3-Clause
//! What packets pass on their way out: the outbox, and what is known of the socket and the interface below it.

use linkweir_plane::below::Below;
use linkweir_plane::bytes::numbered;
use linkweir_plane::bytes::outbox::{Destination, Outbox};
use linkweir_plane::bytes::superpacket::Packet;
use linkweir_plane::paths::Over;

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
    /// A packet with its number in front of it.
    numbered: Vec<u8>,
    /// The longest packet with which a number fits into a datagram, bytes: what waited while a reload lowered the MTU goes without.
    pub(super) numbered_most: usize,
}

impl Egress {
    pub(super) fn new(below: Option<Below>, mtu: u32) -> Egress {
        Egress {
            below,
            numbered_most: mtu as usize,
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

    /// Seals a packet towards the station with number `at` that goes over one of its paths, with its number in front of it.
    pub(super) fn add_over(
        &mut self,
        at: usize,
        station: &mut Station,
        packet: Packet,
        tos: u8,
        over: Over,
    ) {
        let Station {
            underlays: Some(underlays),
            bond: Some(bond),
            session: Some(session),
            dropped,
            ..
        } = station
        else {
            return;
        };
        let Some((to, from)) = underlays.path(over.path) else {
            count_all(dropped, "no_endpoint", packet.pkts());
            return;
        };
        let most = self.numbered_most;
        if over.is_again && packet.len() > most {
            // The far end could not tell it from the first.
            return;
        }
        underlays.choice.carries(over.path);
        let destination = Destination {
            station: at,
            to,
            from,
            tos,
        };
        let number = bond.number(over);
        let numbered = &mut self.numbered;
        let overhead_bytes = seal::OVERHEAD_BYTES as usize + numbered::HEADER_BYTES;
        let refused =
            self.outbox
                .add_sealed(destination, packet, overhead_bytes, |clear, sealed| {
                    let Some(number) = number.filter(|_| clear.len() <= most) else {
                        return session.seal(clear, sealed).map(|datagram| datagram.len());
                    };
                    numbered.clear();
                    numbered.extend_from_slice(&number.header(clear.len())?);
                    numbered.extend_from_slice(clear);
                    session
                        .seal(numbered, sealed)
                        .map(|datagram| datagram.len())
                });
        if refused > 0 {
            count_all(dropped, "no_session", refused);
        }
    }
}
