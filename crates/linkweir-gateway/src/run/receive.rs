// SPDX-License-Identifier: BSD-3-Clause
//! Receiving: packets from the device into the queues, and datagrams from the socket into the device.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use linkweir_plane::bytes::coalesce::Coalescer;
use linkweir_plane::bytes::numbered;
use linkweir_plane::bytes::outbox::Source;
use linkweir_plane::bytes::packet::{self, Header};
use linkweir_plane::bytes::superpacket::{Malformed, Packet};
use linkweir_plane::classify::Label;
use linkweir_plane::feedback::{self, Message, OF_LENGTH};
use linkweir_plane::mss;
use linkweir_plane::restoring::Held;

use super::handshake_queue::Incoming;
use super::ingress::{Ingress, PACKET_BYTES};
use super::station::{count, count_all, Decapsulation, Station};
use super::{Gateway, DEVICE};
use crate::config::Mode;
use crate::linux::device::Device;
use crate::linux::journal::{log, tell, Event};
use crate::linux::paths;
use crate::linux::poll;
use crate::linux::tunnel_socket::{Local, Received};
use crate::tunnel::seal::{self, Claim, Opened, Refused};

/// Packets read from one side before the other has its turn.
const BATCH: usize = 64;
/// How long the device is left alone after an error, ns.
const DEVICE_REST_NS: u64 = 10_000_000;

impl Gateway {
    /// Reads packets from the device into the queues.
    pub(super) fn read_device(&mut self, now_ns: u64) -> io::Result<()> {
        let mut pkts = 0;
        // Destination of the last packet, and the peer behind it.
        let mut last = None;
        while pkts < BATCH {
            let received = match self.device.receive() {
                Ok(received) => received,
                Err(error) => return self.device_failed(now_ns, &error),
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

    /// Reading from the device failed. Only its removal ends the gateway.
    fn device_failed(&mut self, now_ns: u64, error: &io::Error) -> io::Result<()> {
        use nix::libc::{EAGAIN, EBADF, EBADFD, EINTR, EIO, ENODEV};

        match error.raw_os_error() {
            // The device is down. Packets come again when it is up.
            Some(EIO | EAGAIN | EINTR) => {}
            Some(EBADF | EBADFD | ENODEV) => {
                let message = format!("the device {} has gone: {error}", self.config.device);
                return Err(io::Error::new(error.kind(), message));
            }
            _ => {
                if !self.dropped.contains_key("device_error") {
                    let device = &self.config.device;
                    log(&format!("cannot read from {device}: {error}; it is tried again, and counted as device_error"));
                }
                count(&mut self.dropped, "device_error");
                // The device may stay ready to be read, which would be tried for ever.
                let _ = self.poll.interest(&self.device, DEVICE, false, false);
                self.device_again_ns = Some(now_ns + DEVICE_REST_NS);
            }
        }
        Ok(())
    }

    /// Sees whether the device went down or came up: then the system has taken its routes and addresses of IPv6, which the
    /// keeper gives back.
    /// `was_down`: it was down since this was called last.
    pub(super) fn check_device(&mut self, was_down: bool) {
        let Ok(up) = self.device.index().and_then(paths::is_up) else {
            return;
        };
        let was_up = std::mem::replace(&mut self.device_up, up);
        let name = &self.config.device;
        if was_up && (!up || was_down) {
            let what =
                format!("the device {name} is down; nothing enters the tunnel until it is up");
            tell(Event::DeviceDown, "", &what);
        }
        if !up || (was_up && !was_down) {
            return;
        }
        let what = format!("the device {name} is up again; addresses and routes that it lost are being added again");
        tell(Event::DeviceUp, "", &what);
    }

    /// Reads from the device again after an error.
    pub(super) fn retry_device(&mut self, now_ns: u64) {
        if self.device_again_ns.is_some_and(|ns| ns <= now_ns) {
            self.device_again_ns = None;
            if self.stop_at_ns.is_none() {
                let _ = self.poll.interest(&self.device, DEVICE, true, false);
            }
        }
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
                if self.is_own(header, at) {
                    count_all(&mut self.dropped, "looped", packet.pkts());
                    self.peers.stations[at].loop_is_doubted = true;
                    self.peers.wakes.wake(at);
                    return;
                }
                let is_endpoint = |endpoint: SocketAddr| endpoint.ip() == header.destination;
                let no_endpoint = !self.peers.stations[at].endpoint.is_some_and(is_endpoint);
                *last = no_endpoint.then_some((header.destination, at));
                at
            }
        };
        if let Some(mtu) = self.peers.stations[at].mss_mtu(self.config.mss_mtu()) {
            mss::clamp(&mut packet, header, mtu);
        }
        let label = self.ingress.classifier.label(now_ns, header);
        if self.peers.stations[at].path_mtu.is_some() {
            for packet in self.fitting(at, packet, header) {
                self.enqueue_as(now_ns, at, label, packet);
            }
        } else {
            self.enqueue_as(now_ns, at, label, packet);
        }
    }

    /// Whether a packet of the device is a datagram of this end to a peer: the route to the peer was just lost, and it would
    /// go round and round. Packets to an endpoint are never the `last`, so each of them is looked at.
    fn is_own(&self, header: &Header, at: usize) -> bool {
        let station = &self.peers.stations[at];
        let to = (header.destination, header.ports);
        let Some(endpoint) = station.endpoint.filter(|endpoint| endpoint.ip() == to.0) else {
            return false;
        };
        header.protocol == packet::UDP && to.1 == Some((self.peers.own.port, endpoint.port()))
    }

    /// Puts a packet into the queue of this class and flow towards a peer.
    fn enqueue_as(&mut self, now_ns: u64, at: usize, label: Label, packet: Packet) {
        let config = &self.config;
        let link = &mut self.peers.stations[at].link;
        let number_bytes = link.number_bytes(label.class);
        link.arrive_any(now_ns, label, packet, |bytes| {
            config.wire_bytes(bytes + number_bytes)
        });
        if let Some(hub) = &mut self.peers.hub {
            hub.update(now_ns, at, link);
        }
        self.peers.stations[at].has_news = true;
        self.peers.wakes.wake(at);
    }

    /// Reads datagrams from the socket into the device.
    pub(super) fn read_underlay(&mut self) {
        self.socket.discard_errors();
        let mut pkts = 0;
        while pkts < BATCH {
            let received = match self.socket.receive(&mut self.ingress.datagrams) {
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
            if received.is_elsewhere {
                count_all(&mut self.dropped, "other_device", received.datagrams());
                continue;
            }
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
        self.peers.stations[at].came(received.from, received.to, &self.config.peers[at].name);
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
            if let Some((at, bytes)) = self.open_datagram(received, place, &mut gathered, &mut of) {
                of = Some(at);
                gathered += bytes;
            }
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
        gathered: &mut usize,
        of: &mut Option<usize>,
    ) -> Option<(usize, usize)> {
        let Received { from, to, tos, .. } = received;
        let source = to.map(Source::from).unwrap_or_default();
        let at = self.claimed_peer(place.clone(), from, to)?;
        if of.is_some_and(|of| of != at) {
            self.deliver_opened(of.take()?);
        }
        self.make_room(at, gathered, PACKET_BYTES);
        let datagram = &self.ingress.datagrams[place];
        // A datagram of a session names it behind its kind.
        let index = datagram.get(4..8).and_then(|index| index.try_into().ok());
        let index = index.map_or(0, u32::from_le_bytes);
        let is_of_session = seal::is_of_session(datagram);
        let opened = &mut self.ingress.opened;
        let station = &mut self.peers.stations[at];
        let session = station.session.as_mut()?;
        let bytes = match session.open(datagram, from, &mut opened[*gathered..]) {
            Opened::Refused => {
                count(&mut station.dropped, "not_genuine");
                if let Some(bond) = &mut station.bond {
                    let over = bond.came_over(from, to);
                    bond.refused(over);
                }
                return None;
            }
            Opened::Unproven(answer) => {
                if let Some(answer) = answer {
                    count(&mut station.dropped, "handshake_unproven");
                    let _ = self.socket.send(answer, from, source, 0);
                }
                return None;
            }
            Opened::Nothing => 0,
            Opened::Answer(answer) => {
                let _ = self.socket.send(answer, from, source, 0);
                0
            }
            Opened::Packet(packet) => packet.len(),
        };
        if let Some(underlays) = station.underlays.as_mut().filter(|_| is_of_session) {
            if underlays.meets(index) {
                underlays.choice.met(poll::now_ns());
            }
        }
        let inside = &opened[*gathered..*gathered + bytes];
        let message = feedback::is_message(inside).then(|| Message::read(inside));
        // Probes come over ways that are not in use, too.
        match message {
            Some(Some(Message::Probe(probe))) => {
                self.echo(at, probe, from, source);
                return None;
            }
            Some(Some(Message::PathProbe(probe))) => {
                if let Some(of) = of.take() {
                    self.deliver_opened(of);
                }
                self.path_probed(poll::now_ns(), at, (index, probe), (from, to));
                // Those of the epoch before may go on now. Nothing else lies in `opened`.
                self.deliver_released(at);
                *gathered = 0;
                return None;
            }
            Some(Some(Message::PathEcho(probe))) => {
                self.path_echoed(poll::now_ns(), at, probe, (from, to));
                return None;
            }
            Some(Some(Message::Echo(probe))) => {
                let now_ns = poll::now_ns();
                if probe.way & OF_LENGTH == 0 {
                    self.echoed(now_ns, at, probe);
                } else {
                    let peers = &self.config.peers;
                    self.peers.length_answered(now_ns, at, probe, peers);
                }
                return None;
            }
            _ => {}
        }
        // Only a sender that holds the key moves the endpoint of a peer.
        if station.came(from, to, &self.config.peers[at].name) {
            self.peers.endpoints_changed = true;
            station.path_changed(poll::now_ns());
        }
        // A session may have begun, or its next keepalive is due later.
        self.peers.wakes.wake(at);
        if bytes == 0 {
            return None;
        }
        let place = *gathered..*gathered + bytes;
        let over = station.bond.as_mut().map(|bond| {
            let over = bond.came_over(from, to);
            if message.is_none() {
                bond.arrived(over, bytes);
            }
            over
        });
        if let Some(message) = message {
            match over {
                None => self.receive_message(at, message),
                Some(over) => self.receive_path_message(poll::now_ns(), at, over, message),
            }
            return None;
        }
        station.arrived(bytes);
        if numbered::is_numbered(&opened[place.clone()]) {
            let now_ns = poll::now_ns();
            self.take_numbered(now_ns, at, over.flatten(), (place, tos));
            *of = Some(at);
            self.gather_released(at, gathered);
            return None;
        }
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

    /// The peer whose session the datagram at `place` claims to belong to. The beginning of a handshake waits for its turn.
    /// What no peer sent is counted and, where that proves an address, answered.
    fn claimed_peer(
        &mut self,
        place: Range<usize>,
        from: SocketAddr,
        to: Option<Local>,
    ) -> Option<usize> {
        let source = to.map(Source::from).unwrap_or_default();
        let identity = self.peers.identity.as_mut()?;
        let claim = match identity.claim(&self.ingress.datagrams[place.clone()], from) {
            Ok(claim) => claim,
            Err(Refused::Cookie(answer)) => {
                count(&mut self.dropped, "handshake_unproven");
                let _ = self.socket.send(&answer, from, source, 0);
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
        let Claim::Session(index) = claim else {
            self.take_initiation(place, from, to);
            return None;
        };
        let at = self.peers.of_session(index);
        if at.is_none() {
            count(&mut self.dropped, "stranger");
        }
        at
    }

    /// Lets the beginning of a handshake at `place` wait for its turn.
    fn take_initiation(&mut self, place: Range<usize>, from: SocketAddr, to: Option<Local>) {
        let datagram = self.ingress.datagrams[place].try_into();
        let incoming = datagram.map(|datagram| Incoming { datagram, from, to });
        let taken = incoming.is_ok_and(|incoming| self.peers.handshakes.take(incoming));
        if !taken {
            count(&mut self.dropped, "handshake_excess");
        }
    }

    /// Puts packets of a peer that may be handed out behind what is gathered of it.
    fn gather_released(&mut self, at: usize, gathered: &mut usize) {
        let mut released = std::mem::take(&mut self.ingress.released);
        for Held { packet, outer_tos } in released.drain(..) {
            self.make_room(at, gathered, packet.len());
            let place = *gathered..*gathered + packet.len();
            let Some(room) = self.ingress.opened.get_mut(place.clone()) else {
                continue;
            };
            room.copy_from_slice(&packet);
            let mut decapsulation = Decapsulation {
                routing: &self.peers.routing,
                last: self.ingress.last_source,
                dscp: self.config.dscp,
                mss_mtu: self.config.mss_mtu(),
            };
            let station = &mut self.peers.stations[at];
            let header = decapsulation.admit(at, station, room, outer_tos);
            self.ingress.last_source = decapsulation.last;
            if let Some(header) = header {
                *gathered = place.end;
                self.ingress.inbox.add(&self.ingress.opened, place, &header);
            }
        }
        self.ingress.released = released;
    }

    /// Delivers what is gathered of a peer unless so many bytes fit behind it. What was held comes on top of what a read
    /// brings, so that both together may be longer than `opened`.
    fn make_room(&mut self, at: usize, gathered: &mut usize, bytes: usize) {
        if self.ingress.opened.len() - *gathered < bytes {
            self.deliver_opened(at);
            *gathered = 0;
        }
    }

    /// Writes packets of a peer that may be handed out into the device. Nothing is gathered.
    pub(super) fn deliver_released(&mut self, at: usize) {
        if self.ingress.released.is_empty() {
            return;
        }
        self.ingress.last_source = None;
        let mut gathered = 0;
        self.gather_released(at, &mut gathered);
        self.deliver_opened(at);
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
    inbox.deliver(buffer, |whole| match device.send(&whole) {
        Ok(()) => station.received(whole.pkts, whole.bytes),
        Err(_) => count_all(&mut station.dropped, "device_down", whole.pkts),
    });
}
