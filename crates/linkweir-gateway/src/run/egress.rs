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
        // Packets that waited as one when a reload added the first path left with one number for all of them.
        let is_one = packet.pkts() == 1;
        if over.is_again && (!is_one || packet.len() > most) {
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
        let number = bond.number(over).filter(|_| is_one);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use linkweir_plane::bytes::numbered::Number;
    use linkweir_plane::bytes::superpacket;
    use linkweir_plane::bytes::vnet::{VnetHeader, GSO_UDP_L4, NEEDS_CSUM};
    use linkweir_plane::restoring::{Held, Restorer};

    use super::*;
    use crate::tunnel::indices::Indices;
    use crate::tunnel::seal::{Identity, Opened, Session};

    const FROM: &str = "192.0.2.1:51820";

    /// A station whose peer is the session.
    fn open() -> (Station, Session) {
        let text = include_str!("../../configs/boat.toml");
        let config = crate::config::parse(text, Path::new("boat.toml")).unwrap();
        let [own, others] = [[1; 32], [2; 32]].map(Identity::new);
        let mut peer = config.peers[0].clone();
        peer.public_key = Some(others.public());
        let mut indices = Indices::default();
        let mut station =
            Station::new(0, &config, &peer, (Some(&own), None), &mut indices).unwrap();
        let mut other = Session::new(&others, own.public(), None, None, 9);
        let session = station.session.as_mut().unwrap();
        let (mut here, mut there) = ([0; 2048], [0; 2048]);
        session.want(0);
        let asked = session.attempt(&own, 0, 1, &mut here).unwrap();
        let from = FROM.parse().unwrap();
        let Opened::Answer(answer) = other.open(asked, from, &mut there) else {
            panic!("it is answered");
        };
        let Opened::Answer(last) = session.open(answer, from, &mut here) else {
            panic!("it is confirmed");
        };
        other.open(last, from, &mut there);
        assert!(session.is_open());
        (station, other)
    }

    /// What waited as a super-packet when the first path came by a reload leaves with one number.
    #[test]
    fn each_packet_of_a_super_packet_comes_once() {
        const SEGMENT: usize = 100;
        let (mut station, mut other) = open();
        let mut bytes = vec![0; 28 + 3 * SEGMENT];
        let whole = bytes.len() as u16;
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&whole.to_be_bytes());
        bytes[8..10].copy_from_slice(&[64, 17]);
        bytes[12..20].copy_from_slice(&[10, 77, 0, 2, 10, 77, 0, 1]);
        bytes[24..26].copy_from_slice(&(whole - 20).to_be_bytes());
        let work = VnetHeader {
            flags: NEEDS_CSUM,
            kind: GSO_UDP_L4,
            header_bytes: 28,
            segment_bytes: SEGMENT as u16,
            checksum_start: 20,
            checksum_offset: 6,
        };
        let train = superpacket::finish(work, &mut bytes).unwrap();
        let packet = Packet::copy(&bytes, train);
        assert_eq!(packet.pkts(), 3);
        let mut egress = Egress::new(None, 1428);
        let epoch = station.bond.as_ref().unwrap().epoch;
        let mut restorer = Restorer::new(vec![0; 3], 64_000);
        restorer.begin(0, epoch, (1, 1), |_| panic!("nothing is held"));
        let mut came = 0;
        for is_again in [false, true] {
            let over = Over {
                path: 0,
                number: Some((2, 0)),
                is_again,
            };
            egress.add_over(0, &mut station, packet.clone(), 0, over);
        }
        while let Some(call) = egress.outbox.call() {
            let count = call.datagrams;
            for datagram in egress.outbox.parts(count) {
                let mut buffer = [0; 2048];
                let Opened::Packet(opened) =
                    other.open(&datagram, FROM.parse().unwrap(), &mut buffer)
                else {
                    panic!("it is genuine");
                };
                let Some(number) = Number::read(opened) else {
                    came += 1;
                    continue;
                };
                let held = Held {
                    packet: opened[numbered::HEADER_BYTES..].into(),
                    outer_tos: 0,
                };
                restorer.arrive(0, number, held, |_| came += 1);
            }
            egress.outbox.sent(count);
        }
        assert_eq!(came, 3);
    }
}
