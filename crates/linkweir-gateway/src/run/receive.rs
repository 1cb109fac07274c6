// SPDX-License-Identifier: BSD-3-Clause
//! Receiving: packets from the device into the queues, and datagrams from the socket into the device.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use linkweir_plane::bytes::coalesce::Coalescer;
use linkweir_plane::bytes::packet::{self, Header};
use linkweir_plane::bytes::superpacket::{Malformed, Packet};
use linkweir_plane::feedback::{self, Message};
use linkweir_plane::mss;

use super::ingress::Ingress;
use super::station::{count, count_all, Decapsulation, Station};
use super::Gateway;
use crate::config::Mode;
use crate::linux::device::Device;
use crate::linux::underlay::Received;
use crate::tunnel::seal::{Opened, Refused};

/// Packets read from one side before the other has its turn.
const BATCH: usize = 64;

impl Gateway {
    /// Reads packets from the device into the queues.
    pub(super) fn read_device(&mut self, now_ns: u64) -> io::Result<()> {
        let mut pkts = 0;
        // Destination of the last packet, and the peer behind it.
        let mut last = None;
        while pkts < BATCH {
            let received = match self.device.receive() {
                Ok(received) => received,
                Err(error) => match error.raw_os_error() {
                    // The device is down. Packets come again when it is up.
                    Some(nix::libc::EIO | nix::libc::EAGAIN | nix::libc::EINTR) => return Ok(()),
                    _ => {
                        let message =
                            format!("the device {} has gone: {error}", self.config.device);
                        return Err(io::Error::new(error.kind(), message));
                    }
                },
            };
            let header = match &received {
                Ok(packet) => packet::parse(packet),
                Err(Malformed) => None,
            };
            let (Ok(packet), Some(header)) = (received, header) else {
                count(&mut self.dropped, "malformed");
                pkts += 1;
                continue;
            };
            pkts += packet.pkts();
            self.enqueue(now_ns, packet, &header, &mut last);
        }
        Ok(())
    }

    /// Puts a packet of the device into the queue of its class towards the peer behind its destination.
    fn enqueue(
        &mut self,
        now_ns: u64,
        mut packet: Packet,
        header: &Header,
        last: &mut Option<(IpAddr, usize)>,
    ) {
        // Only gateways send these, so one that comes from the device is forged.
        if feedback::is_message(&packet) {
            count(&mut self.dropped, "unasked");
            return;
        }
        let at = match *last {
            Some((destination, at)) if destination == header.destination => at,
            _ => {
                let Some(at) = self.peers.routing.peer(header.destination) else {
                    count_all(&mut self.dropped, "no_peer", packet.pkts());
                    return;
                };
                *last = Some((header.destination, at));
                at
            }
        };
        if let Some(mtu) = self.config.mss_mtu() {
            mss::clamp(&mut packet, header, mtu);
        }
        let class = self.ingress.classifier.class(now_ns, header);
        let config = &self.config;
        let link = &mut self.peers.stations[at].link;
        link.arrive_any(now_ns, class, packet, |bytes| config.wire_bytes(bytes));
        if let Some(hub) = &mut self.peers.hub {
            hub.update(now_ns, at, link);
        }
    }

    /// Reads datagrams from the socket into the device.
    pub(super) fn read_underlay(&mut self) {
        self.underlay.discard_errors();
        let mut pkts = 0;
        while pkts < BATCH {
            let received = match self.underlay.receive(&mut self.ingress.datagrams) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An ICMP message about a datagram sent earlier. The next one read may be good.
                Err(_) => {
                    count(&mut self.dropped, "unreachable");
                    pkts += 1;
                    continue;
                }
            };
            pkts += received.datagrams();
            match self.config.mode {
                Mode::Wireguard => self.receive_sealed(received),
                Mode::Cleartext => self.receive_clear(received),
            }
        }
    }

    /// Takes datagrams that are packets in the clear.
    fn receive_clear(&mut self, received: Received) {
        let Some(at) = self.peers.at_endpoint(&received.from) else {
            count_all(&mut self.dropped, "stranger", received.datagrams());
            return;
        };
        self.ingress.last_source = None;
        for place in received.places() {
            let packet = &mut self.ingress.datagrams[place.clone()];
            if feedback::is_message(packet) {
                let message = Message::read(packet);
                self.receive_message(at, message);
                continue;
            }
            let station = &mut self.peers.stations[at];
            station.arrived(packet.len());
            let mut decapsulation = Decapsulation {
                routing: &self.peers.routing,
                last: self.ingress.last_source,
                dscp: self.config.dscp,
                mss_mtu: self.config.mss_mtu(),
            };
            let header = decapsulation.admit(at, station, packet, received.tos);
            self.ingress.last_source = decapsulation.last;
            if let Some(header) = header {
                let Ingress {
                    inbox, datagrams, ..
                } = &mut self.ingress;
                inbox.add(datagrams, place, &header);
            }
        }
        let Ingress {
            inbox, datagrams, ..
        } = &mut self.ingress;
        let station = &mut self.peers.stations[at];
        deliver(inbox, datagrams, &self.device, station);
    }

    /// Takes datagrams of sessions, and handshakes.
    fn receive_sealed(&mut self, received: Received) {
        // Opened packets of one peer are gathered in `opened`, back to back, and delivered together.
        let mut gathered = 0;
        let mut of = None;
        self.ingress.last_source = None;
        for place in received.places() {
            let Some((at, bytes)) = self.open_datagram(received, place, gathered, &mut of) else {
                continue;
            };
            of = Some(at);
            gathered += bytes;
        }
        if let Some(at) = of {
            self.deliver_opened(at);
        }
    }

    /// Opens the datagram at `place`. A packet in it then lies behind the first `gathered` bytes of `opened`; returns its peer
    /// and its length. Packets gathered `of` another peer are delivered before.
    fn open_datagram(
        &mut self,
        received: Received,
        place: Range<usize>,
        gathered: usize,
        of: &mut Option<usize>,
    ) -> Option<(usize, usize)> {
        let Received { from, tos, .. } = received;
        let at = self.claimed_peer(place.clone(), from)?;
        if of.is_some_and(|of| of != at) {
            self.deliver_opened(of.take()?);
        }
        let datagram = &self.ingress.datagrams[place];
        let opened = &mut self.ingress.opened;
        let station = &mut self.peers.stations[at];
        let session = station.session.as_mut()?;
        let bytes = match session.open(datagram, from, &mut opened[gathered..]) {
            Opened::Refused => {
                count(&mut station.dropped, "not_genuine");
                return None;
            }
            Opened::Unproven(answer) => {
                if let Some(answer) = answer {
                    count(&mut station.dropped, "handshake_unproven");
                    let _ = self.underlay.send(answer, from, 0);
                }
                return None;
            }
            Opened::Nothing => 0,
            Opened::Answer(answer) => {
                let _ = self.underlay.send(answer, from, 0);
                0
            }
            Opened::Packet(packet) => packet.len(),
        };
        // Only a sender that holds the key moves the endpoint of a peer.
        station.endpoint = Some(from);
        if bytes == 0 {
            return None;
        }
        let place = gathered..gathered + bytes;
        if feedback::is_message(&opened[place.clone()]) {
            let message = Message::read(&opened[place]);
            self.receive_message(at, message);
            return None;
        }
        station.arrived(bytes);
        let mut decapsulation = Decapsulation {
            routing: &self.peers.routing,
            last: self.ingress.last_source,
            dscp: self.config.dscp,
            mss_mtu: self.config.mss_mtu(),
        };
        let header = decapsulation.admit(at, station, &mut opened[place.clone()], tos)?;
        self.ingress.last_source = decapsulation.last;
        self.ingress.inbox.add(opened, place, &header);
        Some((at, bytes))
    }

    /// The peer that the datagram at `place` claims to come from. What no peer sent is counted and, where that proves an
    /// address, answered.
    fn claimed_peer(&mut self, place: Range<usize>, from: SocketAddr) -> Option<usize> {
        let identity = self.peers.identity.as_mut()?;
        let claim = match identity.claim(&self.ingress.datagrams[place], from) {
            Ok(claim) => claim,
            Err(Refused::Cookie(answer)) => {
                count(&mut self.dropped, "handshake_unproven");
                let _ = self.underlay.send(&answer, from, 0);
                return None;
            }
            Err(Refused::TooMany) => {
                count(&mut self.dropped, "handshake_excess");
                return None;
            }
            Err(Refused::Forged) => {
                count(&mut self.dropped, "forged");
                return None;
            }
        };
        let at = self.peers.claimed(&claim);
        if at.is_none() {
            count(&mut self.dropped, "stranger");
        }
        at
    }

    /// Writes the opened packets of a peer into the device.
    fn deliver_opened(&mut self, at: usize) {
        let Ingress { inbox, opened, .. } = &mut self.ingress;
        let station = &mut self.peers.stations[at];
        deliver(inbox, opened, &self.device, station);
    }
}

/// Writes packets of a peer into the device.
fn deliver(inbox: &mut Coalescer, buffer: &mut [u8], device: &Device, station: &mut Station) {
    inbox.deliver(buffer, |mut whole| match device.send(&mut whole) {
        Ok(()) => station.received(whole.pkts, whole.bytes),
        Err(_) => count_all(&mut station.dropped, "device_down", whole.pkts),
    });
}
