// SPDX-License-Identifier: BSD-3-Clause
//! Packets that are longer than the path to their peer carries: probes find that length, and packets are made to fit.

use std::io::IoSlice;

use linkweir_plane::bytes::coalesce::Whole;
use linkweir_plane::bytes::fit::{fit, Fit};
use linkweir_plane::bytes::packet::Header;
use linkweir_plane::bytes::superpacket::Packet;
use linkweir_plane::bytes::vnet::VnetHeader;
use linkweir_plane::feedback::{Message, Probe, OF_LENGTH};

use super::peers::Peers;
use super::station::{count_all, Station};
use super::Gateway;
use crate::config::Peer;
use crate::linux::journal::{tell, Event};
use crate::linux::tunnel_socket::TunnelSocket;

/// Room for what encryption adds, and more, bytes.
const SEAL_BYTES: usize = 128;

impl Peers {
    /// Sends a probe of a length to a peer if one is due. Returns when to look again, ns.
    pub(super) fn check_length(
        &mut self,
        now_ns: u64,
        at: usize,
        socket: &mut TunnelSocket,
        configured: &[Peer],
    ) -> Option<u64> {
        let station = &mut self.stations[at];
        let (Some(path), Some(session), Some(to)) = (
            &mut station.path_mtu,
            &mut station.session,
            station.endpoint,
        ) else {
            return None;
        };
        if !session.is_open() || station.is_looped {
            return None;
        }
        let before = path.found();
        if let Some(bytes) = path.probe(now_ns) {
            for length in [0, bytes] {
                let way = OF_LENGTH | u64::from(length);
                let message = Message::Probe(Probe {
                    sent_ns: now_ns,
                    way,
                });
                let mut packet = message.packet().to_vec();
                packet.resize(packet.len().max(length as usize), 0);
                let mut room = vec![0; packet.len() + SEAL_BYTES];
                if let Some(datagram) = session.seal(&packet, &mut room) {
                    let _ = socket.send(datagram, to, station.source, 0);
                }
            }
        }
        let due_ns = path.due_ns();
        tell_length(station, before, &configured[at]);
        Some(due_ns)
    }

    /// A peer answered a probe of a length.
    pub(super) fn length_answered(
        &mut self,
        now_ns: u64,
        at: usize,
        Probe { sent_ns, way }: Probe,
        configured: &[Peer],
    ) {
        let station = &mut self.stations[at];
        if let Some(path) = &mut station.path_mtu {
            let before = path.found();
            let length = u32::try_from(way & !OF_LENGTH).unwrap_or(u32::MAX);
            path.answered(now_ns, sent_ns, length);
            tell_length(station, before, &configured[at]);
            self.wakes.wake(at);
        }
    }
}

/// Says that another length was found.
fn tell_length(station: &Station, before: u32, peer: &Peer) {
    let Some(found) = station.path_mtu.as_ref().map(|path| path.found()) else {
        return;
    };
    if found != before {
        let what = format!(
            "the path carries packets of {found} bytes; before, {before} were thought to pass"
        );
        tell(Event::PathMtuFound, &peer.name, &what);
    }
}

impl Gateway {
    /// A packet of the device to a peer, as the path to the peer carries it: what passes. Its sender is told otherwise.
    pub(super) fn fitting(&mut self, at: usize, packet: Packet, header: &Header) -> Vec<Packet> {
        let station = &mut self.peers.stations[at];
        let Some(path) = &station.path_mtu else {
            return vec![packet];
        };
        let pkts = packet.pkts();
        match fit(packet, header, path.found()) {
            Fit::Whole(packet) => return vec![packet],
            Fit::Fragments(fragments) => return fragments,
            Fit::Answer(answer) => {
                let header = VnetHeader::default().bytes();
                let parts = [IoSlice::new(&header), IoSlice::new(&answer)];
                let whole = Whole {
                    parts: parts.into_iter().collect(),
                    pkts: 1,
                    bytes: answer.len(),
                };
                // If the device takes nothing, its sender will send another one that is too long.
                let _ = self.device.send(&whole);
            }
            Fit::Drop => {}
        }
        count_all(&mut station.dropped, "too_big", pkts);
        Vec::new()
    }
}
