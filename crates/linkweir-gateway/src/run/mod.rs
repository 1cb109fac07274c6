// SPDX-License-Identifier: BSD-3-Clause
//! The running gateway: packets between the device, the queues and the socket, and whoever asks.
//!
//! One thread waits for whatever comes first. What can be read is read in batches, so that neither side starves the other;
//! what may leave leaves; then it sleeps until the next packet may leave.

pub mod emulate;
pub mod station;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::config::{self, Config, Mode, Peer};
use crate::linux::command::{self, Running};
use crate::linux::device::Device;
use crate::linux::poll::{now_ns, Poll};
use crate::linux::privileges;
use crate::linux::service::Service;
use crate::linux::tun;
use crate::linux::underlay::{Received, Underlay};
use crate::show::control::{Control, Request, Response};
use crate::show::figures::{self, BelowShow, Show};
use crate::tunnel::endpoints::Endpoints;
use crate::tunnel::seal::{self, Claim, Identity, Key, Opened, Refused, Session};
use linkweir_plane::below::{self, Below};
use linkweir_plane::bytes::coalesce::Coalescer;
use linkweir_plane::bytes::outbox::{self, Outbox, Way};
use linkweir_plane::bytes::packet;
use linkweir_plane::bytes::superpacket::{Malformed, Packet};
use linkweir_plane::classify::Classifier;
use linkweir_plane::feedback::{self, Message};
use linkweir_plane::hub::Hub;
use linkweir_plane::link::{Link, Next};
use linkweir_plane::mss;
use linkweir_plane::routing::Routing;
use linkweir_plane::setup::Wire;
use linkweir_plane::tos;
use station::{count, count_all, shown, Decapsulation, Reasons, Station};

/// Packets read from one side before the other has its turn.
const BATCH: usize = 64;
/// Largest datagram and packet, bytes.
const PACKET_BYTES: usize = 65_536;

const DEVICE: u64 = 0;
const UNDERLAY: u64 = 1;
const SIGNALS: u64 = 2;
const CONTROL: u64 = 3;
const COMMANDS: u64 = 1 << 16;
const CLIENTS: u64 = 1 << 32;

/// A gateway that is set up.
pub struct Gateway {
    file: PathBuf,
    config: Config,
    device: Device,
    underlay: Underlay,
    signals: SignalFd,
    control: Control,
    poll: Poll,
    classifier: Classifier,
    routing: Routing,
    /// None in cleartext mode.
    identity: Option<Identity>,
    by_endpoint: HashMap<SocketAddr, usize>,
    by_index: HashMap<u32, usize>,
    by_key: HashMap<Key, usize>,
    /// Where peers are found again by who comes after this one.
    endpoints: Endpoints,
    /// Index of the last new session.
    last_index: u32,
    /// When sessions are looked after again, ns.
    tick_at_ns: u64,
    stations: Vec<Station>,
    /// The link they share; none where each has one of its own.
    hub: Option<Hub>,
    /// What leaves next.
    outbox: Outbox,
    /// Whether the socket had no room for it.
    blocked: bool,
    /// When to try again, as the interface below dropped it, ns.
    retry_ns: Option<u64>,
    /// What the interface below takes, where it is to push back.
    below: Option<Below>,
    /// What came and goes into the device next.
    inbox: Coalescer,
    /// Source of the packet before, and the peer behind it, within one batch.
    last_source: Option<(IpAddr, usize)>,
    /// Station that has the first turn.
    turn: usize,
    started_ns: u64,
    dropped: Reasons,
    /// Until when packets may still leave, once it stops, ns.
    stop_at_ns: Option<u64>,
    buffer: Vec<u8>,
    /// What a session makes of it.
    other: Vec<u8>,
}

/// The signals the gateway heeds. They must be blocked before any thread begins.
fn handled_signals() -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .collect()
}

/// Says something to whoever started the gateway.
fn log(message: &str) {
    eprintln!("linkweir-gateway: {message}");
}

impl Gateway {
    /// Makes the device, its routes and the sockets, and gives up the privileges they needed.
    ///
    /// # Errors
    /// What could not be set up, and why.
    pub fn set_up(file: &Path, config: Config) -> io::Result<Gateway> {
        let signals = handled_signals();
        signals.thread_block()?;
        let signals =
            SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let identity = match &config.private_key_file {
            Some(file) => Some(Identity::new(seal::read_key(file)?)),
            None => None,
        };
        let now_ns = now_ns();
        let mut last_index = 0;
        let mut stations = config
            .peers
            .iter()
            .map(|peer| Station::new(now_ns, &config, peer, identity.as_ref(), &mut last_index))
            .collect::<io::Result<Vec<_>>>()?;
        let shown = stations
            .iter_mut()
            .map(|station| station.link.as_queue(now_ns))
            .collect();
        let hub = config
            .across
            .as_ref()
            .map(|across| Hub::new(now_ns, across, config.fastest_bps(), shown))
            .transpose()
            .map_err(|fault| io::Error::other(fault.to_string()))?;
        let mut underlay = Underlay::bind_with(config.listen, config.offload)?;
        let below = match config.below_bytes {
            Some(bytes) => {
                underlay.limit_below(bytes)?;
                Some(Below::default())
            }
            None => None,
        };
        let device = Device::create(
            &config.device,
            config.mtu,
            &config.addresses,
            super_packet_bytes(&config),
            config.offload,
        )?;
        if config.routes {
            let index = device.index()?;
            for net in config.peers.iter().flat_map(|peer| &peer.allowed) {
                if !config.addresses.iter().any(|own| own.contains(net)) {
                    tun::add_route(index, net)?;
                }
            }
        }
        let control = Control::listen(&config.control, CLIENTS)?;
        let endpoints = match &identity {
            Some(_) => restore_endpoints(&config, &mut stations),
            None => Endpoints::default(),
        };
        privileges::drop_all(config.user.as_deref())?;

        let poll = Poll::new()?;
        poll.add(&device, DEVICE)?;
        poll.add(&underlay, UNDERLAY)?;
        poll.add(&signals, SIGNALS)?;
        poll.add(&control, CONTROL)?;
        let mut gateway = Gateway {
            file: file.to_path_buf(),
            classifier: Classifier::new(config.rules.clone()),
            routing: Routing::default(),
            identity,
            by_endpoint: HashMap::new(),
            by_index: HashMap::new(),
            by_key: HashMap::new(),
            endpoints,
            last_index,
            tick_at_ns: now_ns,
            config,
            inbox: device.coalescer(),
            last_source: None,
            device,
            underlay,
            signals,
            control,
            poll,
            stations,
            hub,
            outbox: Outbox::default(),
            blocked: false,
            retry_ns: None,
            below,
            turn: 0,
            started_ns: now_ns,
            dropped: Reasons::new(),
            stop_at_ns: None,
            buffer: vec![0; PACKET_BYTES],
            other: vec![0; 2 * PACKET_BYTES],
        };
        gateway.index_peers();
        for at in 0..gateway.stations.len() {
            gateway.start_handshake(at);
        }
        Ok(gateway)
    }

    fn index_peers(&mut self) {
        let peers = &self.config.peers;
        self.routing = Routing::new(peers.iter().map(|peer| peer.allowed.as_slice()));
        let numbered = peers.iter().enumerate();
        self.by_endpoint = numbered
            .filter_map(|(at, peer)| Some((peer.endpoint?, at)))
            .collect();
        let numbered = peers.iter().enumerate();
        self.by_key = numbered
            .filter_map(|(at, peer)| Some((peer.public_key?, at)))
            .collect();
        let numbered = self.stations.iter().enumerate();
        self.by_index = numbered
            .filter_map(|(at, station)| Some((station.session.as_ref()?.index(), at)))
            .collect();
    }

    /// Carries packets until it is told to stop.
    ///
    /// # Errors
    /// What makes it impossible to go on, such as the end of its device.
    pub fn run(mut self) -> io::Result<()> {
        let mut happened = Vec::new();
        let mut alarm_ns = Some(0);
        let mut service = Service::ready(now_ns());
        loop {
            self.poll.wait(alarm_ns, &mut happened)?;
            let mut now_ns = now_ns();
            for key in &happened {
                match *key {
                    DEVICE => self.read_device(now_ns)?,
                    UNDERLAY => self.read_underlay(),
                    SIGNALS => self.handle_signals(now_ns),
                    CONTROL => self.control.accept(&self.poll),
                    key if key >= CLIENTS => self.answer(now_ns, key),
                    key => self.read_command(now_ns, (key - COMMANDS) as usize),
                }
            }
            if !happened.is_empty() {
                now_ns = self::now_ns();
            }
            self.start_commands(now_ns);
            if self.identity.is_some() && self.tick_at_ns <= now_ns {
                self.tick();
                self.tick_at_ns = now_ns + seal::TICK_NS;
            }
            alarm_ns = self.serve(now_ns);
            if let Some(ns) = service.alive(now_ns) {
                alarm_ns = Some(alarm_ns.map_or(ns, |alarm| alarm.min(ns)));
            }
            if let Some(stop_at_ns) = self.stop_at_ns {
                let waiting: u32 = self.stations.iter().map(|s| s.link.waiting_pkts()).sum();
                if stop_at_ns <= now_ns || (waiting == 0 && self.outbox.is_empty()) {
                    service.stopping();
                    log(&format!(
                        "stopped; {waiting} packets waited and were dropped"
                    ));
                    return Ok(());
                }
                alarm_ns = Some(alarm_ns.map_or(stop_at_ns, |ns| ns.min(stop_at_ns)));
            }
        }
    }

    /// Packets from the device into the queues.
    fn read_device(&mut self, now_ns: u64) -> io::Result<()> {
        let mut pkts = 0;
        // Destination of the packet before, and the peer behind it.
        let mut last = None;
        while pkts < BATCH {
            let received = match self.device.receive() {
                Ok(received) => received,
                Err(error) => match error.raw_os_error() {
                    // The device is down; packets come again when it is up.
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
            let (Ok(mut packet), Some(header)) = (received, header) else {
                count(&mut self.dropped, "malformed");
                pkts += 1;
                continue;
            };
            pkts += packet.pkts();
            // Nobody but a gateway says these.
            if feedback::is_message(&packet) {
                count(&mut self.dropped, "unasked");
                continue;
            }
            let known = last.filter(|(destination, _)| *destination == header.destination);
            let at = match known {
                Some((_, at)) => at,
                None => {
                    let Some(at) = self.routing.peer(header.destination) else {
                        count_all(&mut self.dropped, "no_peer", packet.pkts());
                        continue;
                    };
                    last = Some((header.destination, at));
                    at
                }
            };
            if let Some(mtu) = self.config.mss_mtu() {
                mss::clamp(&mut packet, &header, mtu);
            }
            let class = self.classifier.class(now_ns, &header);
            let config = &self.config;
            let link = &mut self.stations[at].link;
            link.arrive_any(now_ns, class, packet, |bytes| config.wire_bytes(bytes));
            if let Some(hub) = &mut self.hub {
                hub.update(now_ns, at, link);
            }
        }
        Ok(())
    }

    /// Datagrams from the socket into the device.
    fn read_underlay(&mut self) {
        self.underlay.forget_errors();
        let mut pkts = 0;
        while pkts < BATCH {
            let received = match self.underlay.receive(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An ICMP message about what was sent; the next datagram may be a good one.
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

    /// Datagrams that are packets as they are.
    fn receive_clear(&mut self, received: Received) {
        let Some(&at) = self.by_endpoint.get(&received.from) else {
            count_all(&mut self.dropped, "stranger", received.datagrams());
            return;
        };
        self.last_source = None;
        for place in received.places() {
            let packet = &mut self.buffer[place.clone()];
            let station = &mut self.stations[at];
            if feedback::is_message(packet) {
                let message = Message::read(packet);
                self.receive_message(at, message);
                continue;
            }
            station.arrived(packet.len());
            let mut decapsulation = Decapsulation {
                routing: &self.routing,
                last: self.last_source,
                dscp: self.config.dscp,
                mss_mtu: self.config.mss_mtu(),
            };
            let header = decapsulation.admit(at, station, packet, received.tos);
            self.last_source = decapsulation.last;
            if let Some(header) = header {
                self.inbox.add(&self.buffer, place, &header);
            }
        }
        let station = &mut self.stations[at];
        deliver(&mut self.inbox, &mut self.buffer, &self.device, station);
    }

    /// Datagrams of sessions, or that ask for a session.
    fn receive_sealed(&mut self, received: Received) {
        // Packets of one peer are gathered in `other`, one behind the other.
        let mut gathered = 0;
        let mut of = None;
        self.last_source = None;
        for place in received.places() {
            let Some((at, bytes)) = self.open_datagram(received, place, gathered, &mut of) else {
                continue;
            };
            of = Some(at);
            gathered += bytes;
        }
        if let Some(at) = of {
            let station = &mut self.stations[at];
            deliver(&mut self.inbox, &mut self.other, &self.device, station);
        }
    }

    /// Opens the datagram at `place`. A packet in it lies behind the first `gathered` bytes of `other` then; returns whose
    /// it is and its length. What was gathered `of` another peer is handed on before.
    fn open_datagram(
        &mut self,
        received: Received,
        place: Range<usize>,
        gathered: usize,
        of: &mut Option<usize>,
    ) -> Option<(usize, usize)> {
        let Some(identity) = &mut self.identity else {
            return None;
        };
        let Received { from, tos, .. } = received;
        let datagram = &self.buffer[place];
        let at = match identity.claim(datagram, from) {
            Ok(Claim::Session(index)) => self.by_index.get(&index),
            Ok(Claim::Peer(key)) => self.by_key.get(&key),
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
        let Some(&at) = at else {
            count(&mut self.dropped, "stranger");
            return None;
        };
        if of.is_some_and(|of| of != at) {
            let station = &mut self.stations[of.take()?];
            deliver(&mut self.inbox, &mut self.other, &self.device, station);
        }
        let station = &mut self.stations[at];
        let session = station.session.as_mut()?;
        let opened = session.open(datagram, from, &mut self.other[gathered..]);
        let bytes = match opened {
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
        // Only who holds the key moves a peer.
        station.endpoint = Some(from);
        if bytes == 0 {
            return None;
        }
        let mut decapsulation = Decapsulation {
            routing: &self.routing,
            last: self.last_source,
            dscp: self.config.dscp,
            mss_mtu: self.config.mss_mtu(),
        };
        let place = gathered..gathered + bytes;
        if feedback::is_message(&self.other[place.clone()]) {
            let message = Message::read(&self.other[place]);
            self.receive_message(at, message);
            return None;
        }
        station.arrived(bytes);
        let header = decapsulation.admit(at, station, &mut self.other[place.clone()], tos)?;
        self.last_source = decapsulation.last;
        self.inbox.add(&self.other, place, &header);
        Some((at, bytes))
    }

    /// A peer said something about the way there or back, or something broken.
    fn receive_message(&mut self, at: usize, message: Option<Message>) {
        let now_ns = now_ns();
        let station = &mut self.stations[at];
        match (message, &mut station.reporter, &mut station.feedback) {
            (Some(Message::Mark { sent_ns }), Some(reporter), _) => {
                reporter.marked(now_ns, sent_ns);
            }
            (Some(Message::Report(report)), _, Some(feedback)) => {
                let heard = feedback.reported(now_ns, report, self.config.wire());
                if let Some(bps) = heard {
                    set_capacity(now_ns, self.hub.as_mut(), at, &mut station.link, bps);
                }
            }
            (Some(_), ..) => count(&mut station.dropped, "unasked"),
            (None, ..) => count(&mut station.dropped, "malformed"),
        }
    }

    /// Says to peers what is to be said, marks and reports: it leaves before what waits, where the link is free. Returns when
    /// something is to be said again.
    fn send_messages(&mut self, now_ns: u64) -> Option<u64> {
        let peers = self.hub.as_ref().map_or(1, |_| self.stations.len() as u64);
        let wire_bytes = self.config.wire_bytes(feedback::MESSAGE_BYTES);
        let mut next_ns: Option<u64> = None;
        for at in 0..self.stations.len() {
            let Some(mut due_ns) = self.due_ns(now_ns, at) else {
                continue;
            };
            if due_ns <= now_ns {
                let station = &mut self.stations[at];
                let Some(message) = station.message(now_ns, wire_bytes, peers) else {
                    continue;
                };
                match &mut self.hub {
                    Some(hub) => hub.occupy(now_ns, at, wire_bytes, &mut station.link),
                    None => station.link.occupy(now_ns, wire_bytes),
                }
                self.send(at, Packet::from(&message.packet()[..]), 0);
                let Some(retry_ns) = self.due_ns(now_ns, at) else {
                    continue;
                };
                due_ns = retry_ns;
            }
            next_ns = next_ns.into_iter().chain([due_ns]).min();
        }
        next_ns
    }

    /// When something is to be said to a peer and the link is free, ns.
    fn due_ns(&mut self, now_ns: u64, at: usize) -> Option<u64> {
        let station = &mut self.stations[at];
        let due_ns = station.due_ns()?;
        let link = &mut station.link;
        let free_ns = match &self.hub {
            Some(hub) => hub.free_ns(now_ns, link),
            None => link.channel_free_ns(now_ns),
        };
        Some(due_ns.max(free_ns?))
    }

    /// Asks a peer for a session unless that is under way.
    fn start_handshake(&mut self, at: usize) {
        let Station {
            session, endpoint, ..
        } = &mut self.stations[at];
        if let (Some(session), Some(endpoint)) = (session, *endpoint) {
            if let Some(datagram) = session.start_handshake(&mut self.other) {
                let _ = self.underlay.send(datagram, endpoint, 0);
            }
        }
    }

    /// Looks after all sessions.
    fn tick(&mut self) {
        for station in &mut self.stations {
            let Some(session) = &mut station.session else {
                continue;
            };
            let waiting = station.link.waiting_pkts() > 0;
            if let (Some(datagram), Some(endpoint)) =
                (session.tick(waiting, &mut self.other), station.endpoint)
            {
                let _ = self.underlay.send(datagram, endpoint, 0);
            }
        }
        if let Some(identity) = &mut self.identity {
            identity.tick();
        }
        let peers = self.config.peers.iter().zip(&self.stations);
        let now = peers.filter_map(|(peer, station)| Some((peer.public_key?, station.endpoint?)));
        if let Err(error) = self.endpoints.keep(now) {
            log(&format!("cannot remember where peers are: {error}"));
        }
    }

    /// Lets leave what may leave; returns when there will be more.
    fn serve(&mut self, mut now_ns: u64) -> Option<u64> {
        let ticks = self.identity.is_some().then_some(self.tick_at_ns);
        let commands = self
            .stations
            .iter()
            .filter_map(|station| station.command_at_ns);
        let mut earliest_ns = commands.chain(ticks).min();
        if self.flush(now_ns) {
            self.check_sessions();
            earliest_ns = earliest_ns
                .into_iter()
                .chain(self.send_messages(now_ns))
                .min();
            let stations = self.stations.len();
            let links = if self.hub.is_some() { 1 } else { stations };
            for step in 0..links {
                let of = match self.hub {
                    Some(_) => None,
                    None => Some((self.turn + step) % stations),
                };
                let Some(more_ns) = self.serve_link(&mut now_ns, of) else {
                    break;
                };
                earliest_ns = earliest_ns.into_iter().chain(more_ns).min();
            }
            self.turn = (self.turn + 1) % stations.max(1);
            self.flush(now_ns);
            self.check_idle();
        }
        earliest_ns.into_iter().chain(self.retry_ns).min()
    }

    /// Only who has a session can be sent to; where somebody waits for one, it is asked for.
    fn check_sessions(&mut self) {
        for at in 0..self.stations.len() {
            let Station { link, session, .. } = &mut self.stations[at];
            let open = session.as_ref().is_none_or(Session::is_open);
            link.set_open(open);
            if !open && link.waiting_pkts() > 0 {
                self.start_handshake(at);
            }
        }
    }

    /// Lets leave what may leave over the link of one peer, or over the one that all share. Says when there will be more, if
    /// that is known; none when there is no room below.
    fn serve_link(&mut self, now_ns: &mut u64, of: Option<usize>) -> Option<Option<u64>> {
        let ecn = |packet: &Packet| tos_of(packet) & 3 != 0;
        loop {
            let (next, at) = match (&mut self.hub, of) {
                (Some(hub), _) => hub.next(*now_ns, &mut self.stations, ecn),
                (None, Some(at)) => (self.stations[at].link.next(*now_ns, ecn), at),
                (None, None) => return Some(None),
            };
            match next {
                Next::Send(packet, marked) => {
                    let tos = tos_of(&packet);
                    let tos = if marked { tos | tos::CE } else { tos };
                    let sent = &mut self.stations[at].sent;
                    sent.pkts += packet.pkts() as u64;
                    sent.bytes += packet.sum(|bytes| self.config.wire_bytes(bytes));
                    self.send(at, packet, tos);
                    let below = self.below.as_ref();
                    let gather_bytes = below.map(|below| below.gather_bytes(*now_ns));
                    let full = self.outbox.is_full()
                        || gather_bytes.is_some_and(|bytes| self.outbox.bytes() >= bytes);
                    if full && !self.flush(*now_ns) {
                        return None;
                    }
                }
                Next::At(ns) => {
                    // On a fast link it has come meanwhile, and what may leave leaves together. When it was there before,
                    // the call only ended early: the timer expires at once, after what has arrived was received.
                    let later_ns = self::now_ns();
                    if later_ns < ns || ns <= *now_ns {
                        return Some(Some(ns));
                    }
                    *now_ns = later_ns;
                }
                Next::Nothing => return Some(None),
            }
        }
    }

    /// Seals a packet and puts it to what leaves next.
    fn send(&mut self, at: usize, mut packet: Packet, tos: u8) {
        if tos != tos_of(&packet) {
            packet::set_tos(&mut packet, tos);
        }
        let tos = self.config.dscp.encapsulate(tos);
        let station = &mut self.stations[at];
        let Some(to) = station.endpoint else {
            count_all(&mut station.dropped, "no_endpoint", packet.pkts());
            return;
        };
        let way = Way {
            station: at,
            to,
            tos,
        };
        let Some(session) = &mut station.session else {
            self.outbox.add_clear(way, packet);
            return;
        };
        let overhead_bytes = seal::OVERHEAD_BYTES as usize;
        let refused = self
            .outbox
            .add_sealed(way, packet, overhead_bytes, |clear, sealed| {
                session.seal(clear, sealed).map(|datagram| datagram.len())
            });
        if refused > 0 {
            count_all(&mut station.dropped, "no_session", refused);
        }
    }

    /// Sends what is ready; whether the socket has room for more.
    fn flush(&mut self, now_ns: u64) -> bool {
        if self.outbox.is_empty() {
            self.retry_ns = None;
            self.wait_for_room(false);
            return true;
        }
        if self.retry_ns.is_some_and(|ns| now_ns < ns) {
            return false;
        }
        let stations = &mut self.stations;
        let sent = self
            .underlay
            .send_all(&mut self.outbox, |at, datagrams, reason| {
                count_all(&mut stations[at].dropped, reason, datagrams)
            });
        let full = sent.is_err();
        let dropped = sent.is_err_and(|error| error.raw_os_error() == Some(nix::libc::ENOBUFS));
        // The socket tells when there is room again; the interface that drops does not.
        self.retry_ns = dropped.then_some(now_ns + below::RETRY_NS);
        if full {
            self.measure_below(now_ns, dropped);
        } else {
            let device = &mut self.device;
            self.outbox.clear(|packet| device.recycle(packet));
        }
        self.wait_for_room(full && !dropped);
        !full
    }

    /// Whether the socket is to tell when it has room.
    fn wait_for_room(&mut self, blocked: bool) {
        if blocked != self.blocked {
            let _ = self.poll.interest(&self.underlay, UNDERLAY, true, blocked);
            self.blocked = blocked;
        }
    }

    /// There is no room below; `dropped`: the interface said so of the next call.
    fn measure_below(&mut self, now_ns: u64, dropped: bool) {
        let Some(below) = &mut self.below else {
            return;
        };
        let gone = self.outbox.gone();
        match self.outbox.call() {
            Some(call) if dropped => {
                let (station, datagrams) = (call.way.station, call.datagrams);
                if below.gives_up(now_ns, call.segment_bytes * datagrams, gone.0) {
                    count_all(
                        &mut self.stations[station].dropped,
                        "underlay_down",
                        datagrams,
                    );
                    self.outbox.given_up(datagrams);
                }
            }
            _ => below.accepted(),
        }
        let sealed_bytes = i64::from(self.config.mode.overhead_bytes());
        let wire = Wire {
            overhead_bytes: self.config.overhead_bytes - sealed_bytes,
            mpu_bytes: self.config.mpu_bytes,
        };
        let peers = self.config.peers.iter();
        let stale_ns = peers.filter_map(|peer| peer.capacity.stale_ns).min();
        let Some(bps) = below.no_room(now_ns, gone, wire, stale_ns) else {
            return;
        };
        for station in &mut self.stations {
            station.link.set_below(now_ns, bps);
        }
    }

    /// Nothing waits here: the interface below may be idle from now on.
    fn check_idle(&mut self) {
        let Some(below) = &mut self.below else {
            return;
        };
        let mut stations = self.stations.iter();
        if self.outbox.is_empty() && stations.all(|station| station.link.waiting_pkts() == 0) {
            below.idle();
        }
    }

    fn handle_signals(&mut self, now_ns: u64) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo == Signal::SIGHUP as u32 {
                match self.reload(now_ns) {
                    Ok(refused) => {
                        log(&format!("took over {}", self.file.display()));
                        refused.iter().for_each(|message| log(message));
                    }
                    Err(message) => log(&format!("nothing changed: {message}")),
                }
            } else if self.stop_at_ns.is_none() {
                self.stop_at_ns = Some(now_ns + self.config.drain_ns);
                // What comes from now on stays where it is.
                let _ = self.poll.remove(&self.device);
            } else {
                self.stop_at_ns = Some(now_ns);
            }
        }
    }

    /// Takes the configuration over anew; queues and credit stay. Returns what was not taken over all the same.
    ///
    /// # Errors
    /// Why nothing was.
    fn reload(&mut self, now_ns: u64) -> Result<Vec<String>, String> {
        let new = config::load(&self.file).map_err(|fault| fault.to_string())?;
        fixed(&self.config, &new)?;
        // A peer with another key is another peer.
        let same = |old: &Peer, peer: &Peer| {
            old.name == peer.name
                && old.public_key == peer.public_key
                && old.preshared_key_file == peer.preshared_key_file
                && old.keepalive_s == peer.keepalive_s
        };
        let place = |peer: &Peer| self.config.peers.iter().position(|old| same(old, peer));
        // What may fail comes before anything changes.
        let mut fresh = new
            .peers
            .iter()
            .filter(|peer| place(peer).is_none())
            .map(|peer| {
                Station::new(
                    now_ns,
                    &new,
                    peer,
                    self.identity.as_ref(),
                    &mut self.last_index,
                )
            })
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| error.to_string())?
            .into_iter();
        let places: Vec<Option<usize>> = new.peers.iter().map(place).collect();
        for (peer, place) in new.peers.iter().zip(&places) {
            if let Some(place) = *place {
                let old = &self.config.peers[place];
                let capacities = (&old.capacity, &peer.capacity);
                let accepts = self.stations[place]
                    .link
                    .accepts(&new.scheduler, capacities);
                accepts.map_err(|fault| format!("peer {}: {fault}", peer.name))?;
            }
        }
        let unmoved = places.len() == self.stations.len()
            && places
                .iter()
                .enumerate()
                .all(|(at, place)| *place == Some(at));
        // Other queues are another state of the policy across peers.
        let hub = match &new.across {
            Some(across) if !unmoved => {
                let shown = places
                    .iter()
                    .map(|place| {
                        place.map_or_else(Default::default, |place| {
                            self.stations[place].link.as_queue(now_ns)
                        })
                    })
                    .collect();
                let hub = Hub::new(now_ns, across, new.fastest_bps(), shown);
                Some(hub.map_err(|fault| fault.to_string())?)
            }
            _ => None,
        };
        if let (Some(across), Some(running), None) = (&new.across, &self.hub, &hub) {
            let accepts = running.accepts(across);
            accepts.map_err(|fault| format!("link.across: {fault}"))?;
        }
        let mut old: Vec<Option<Station>> = self.stations.drain(..).map(Some).collect();
        let mut refused = Vec::new();
        for (at, (peer, place)) in new.peers.iter().zip(&places).enumerate() {
            let Some(mut station) = place
                .and_then(|place| old[place].take())
                .or_else(|| fresh.next())
            else {
                continue;
            };
            if let Some(place) = *place {
                let peers = (&self.config.peers[place], peer);
                if let Err(fault) = station.change(now_ns, &new, peers) {
                    refused.push(format!("peer {} keeps its parameters: {fault}", peer.name));
                }
                if place != at || peers.0.capacity.command != peer.capacity.command {
                    station.command = None;
                    station.command_at_ns = peer.capacity.command.as_ref().map(|_| now_ns);
                }
            }
            self.stations.push(station);
        }
        if let (Some(across), Some(running)) = (&new.across, &mut self.hub) {
            if let Some(hub) = hub {
                let before = std::mem::replace(running, hub);
                running.take_over(before, &places);
            } else if let Err(fault) = running.change(now_ns, across) {
                refused.push(format!("link.across keeps its parameters: {fault}"));
            }
        }
        if let Some(hub) = &mut self.hub {
            for (at, station) in self.stations.iter_mut().enumerate() {
                hub.channel_changed(now_ns, at, &mut station.link);
            }
        }
        self.outbox
            .move_stations(|old| places.iter().position(|place| *place == Some(old)));
        self.classifier.set_rules(new.rules.clone());
        self.config = new;
        self.index_peers();
        Ok(refused)
    }

    fn answer(&mut self, now_ns: u64, key: u64) {
        let Gateway {
            control,
            poll,
            config,
            stations,
            hub,
            below,
            dropped,
            started_ns,
            ..
        } = self;
        control.serve(key, poll, |request| match request {
            Request::Show => {
                let mut peers: Vec<_> = config
                    .peers
                    .iter()
                    .zip(stations)
                    .map(|(peer, station)| station.show(now_ns, config, peer))
                    .collect();
                if let (Some(hub), Some(across)) = (hub, &config.across) {
                    for (at, peer) in peers.iter_mut().enumerate() {
                        peer.across = Some(figures::across(now_ns, across.info, hub, at));
                    }
                }
                Response::Show(Box::new(Show {
                    version: env!("CARGO_PKG_VERSION").to_string(),
                    device: config.device.clone(),
                    mode: config.mode.name().to_string(),
                    policy: config.scheduler.info.name.to_string(),
                    across: config
                        .across
                        .as_ref()
                        .map(|across| across.info.name.to_string()),
                    uptime_s: (now_ns - *started_ns) as f64 * 1e-9,
                    dropped_pkts: shown(dropped),
                    below: below.as_ref().map(|below| BelowShow {
                        capacity_bps: below.capacity_bps(),
                        fulls: below.fulls(),
                    }),
                    peers,
                }))
            }
            Request::SetCapacity { peer, capacity_bps } => {
                let mut known = false;
                for (at, (config, station)) in config.peers.iter().zip(stations).enumerate() {
                    if peer.as_ref().is_none_or(|name| *name == config.name) {
                        set_capacity(now_ns, hub.as_mut(), at, &mut station.link, capacity_bps);
                        known = true;
                    }
                }
                match peer {
                    Some(name) if !known => Response::Refused(format!("there is no peer {name}")),
                    _ => Response::Done,
                }
            }
        });
    }

    fn start_commands(&mut self, now_ns: u64) {
        for (at, station) in self.stations.iter_mut().enumerate() {
            if station.command_at_ns.is_none_or(|at_ns| now_ns < at_ns) {
                continue;
            }
            let peer = &self.config.peers[at];
            let Some(words) = &peer.capacity.command else {
                station.command_at_ns = None;
                continue;
            };
            let started = Running::start(words, &peer.name).and_then(|running| {
                self.poll
                    .add(&running, COMMANDS + at as u64)
                    .map(|()| running)
            });
            match started {
                Ok(running) => {
                    station.command = Some(running);
                    station.command_at_ns = None;
                }
                Err(error) => {
                    log(&format!("{}: cannot be started: {error}", words[0]));
                    station.command_at_ns = Some(now_ns + command::RESTART_NS);
                }
            }
        }
    }

    fn read_command(&mut self, now_ns: u64, at: usize) {
        let Some(station) = self.stations.get_mut(at) else {
            return;
        };
        let Some(running) = &mut station.command else {
            return;
        };
        match running.read() {
            Ok(Some(Ok(bps))) => {
                set_capacity(now_ns, self.hub.as_mut(), at, &mut station.link, bps)
            }
            Ok(Some(Err(what))) => log(&format!(
                "the program of peer {}: {what}",
                self.config.peers[at].name
            )),
            Ok(None) => {}
            Err(_) => {
                let _ = self.poll.remove(&*running);
                station.command = None;
                station.command_at_ns = Some(now_ns + command::RESTART_NS);
            }
        }
    }
}

/// Somebody said the capacity towards a peer.
fn set_capacity(now_ns: u64, hub: Option<&mut Hub>, at: usize, link: &mut Link, bps: u64) {
    link.set_capacity(now_ns, bps);
    if let Some(hub) = hub {
        hub.channel_changed(now_ns, at, link);
    }
}

/// Peers whose endpoints are not configured are where a gateway before this one heard from them.
fn restore_endpoints(config: &Config, stations: &mut [Station]) -> Endpoints {
    let path = config.control.with_extension("peers");
    let endpoints = Endpoints::open(&path).unwrap_or_else(|error| {
        log(&format!(
            "cannot remember where peers are: {}: {error}",
            path.display()
        ));
        Endpoints::default()
    });
    for (peer, station) in config.peers.iter().zip(stations) {
        if station.endpoint.is_none() {
            let known = peer.public_key.and_then(|key| endpoints.of(&key));
            station.endpoint = known.filter(|at| at.is_ipv4() == config.listen.is_ipv4());
        }
    }
    endpoints
}

/// Hands what came from a peer on into the device.
fn deliver(inbox: &mut Coalescer, buffer: &mut [u8], device: &Device, station: &mut Station) {
    inbox.deliver(buffer, |mut whole| match device.send(&mut whole) {
        Ok(()) => station.received(whole.pkts, whole.bytes),
        Err(_) => count_all(&mut station.dropped, "device_down", whole.pkts),
    });
}

/// Largest super-packet of the device, so that what it is cut into leaves in one system call.
fn super_packet_bytes(config: &Config) -> u32 {
    /// What TCP's headers take at least of each packet, with timestamps, and what Linux takes off for headers of its own.
    const TCP_BYTES: u32 = 52;
    const LINUX_BYTES: u32 = 330;
    let datagram_bytes = config.mtu + config.mode.overhead_bytes();
    let datagrams = outbox::MOST_BYTES as u32 / datagram_bytes;
    datagrams * (config.mtu - TCP_BYTES) + LINUX_BYTES
}

/// The differentiated services field of a packet that was parsed before.
fn tos_of(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 4 {
        packet[1]
    } else {
        packet[0] << 4 | packet[1] >> 4
    }
}

/// Refuses changes of what only a restart can change.
fn fixed(old: &Config, new: &Config) -> Result<(), String> {
    let names = |config: &Config| -> Vec<String> {
        config
            .classes
            .iter()
            .map(|class| class.name.clone())
            .collect()
    };
    let across = |config: &Config| config.across.as_ref().map(|across| across.info.name);
    let changed = [
        ("gateway.device", old.device != new.device),
        ("gateway.address", old.addresses != new.addresses),
        ("gateway.mtu", old.mtu != new.mtu),
        ("gateway.listen", old.listen != new.listen),
        ("gateway.mode", old.mode != new.mode),
        (
            "gateway.private_key_file",
            old.private_key_file != new.private_key_file,
        ),
        ("gateway.control", old.control != new.control),
        ("gateway.offload", old.offload != new.offload),
        ("gateway.routes", old.routes != new.routes),
        ("gateway.user", old.user != new.user),
        (
            "scheduler.policy",
            old.scheduler.info.name != new.scheduler.info.name,
        ),
        ("link.below", old.below_bytes != new.below_bytes),
        (
            "link.across.policy, or whether there is one,",
            across(old) != across(new),
        ),
        (
            "the names and the order of the classes",
            names(old) != names(new),
        ),
    ];
    match changed.iter().find(|(_, changed)| *changed) {
        Some((what, _)) => Err(format!(
            "{what} cannot change while the gateway runs; restart it"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: &str = r#"[gateway]
device = "lw0"
address = "10.77.0.1/24"
listen = "192.0.2.1:51820"
mode = "wireguard"
private_key_file = "key"
[link]
rate = "20Mbit"
[scheduler]
policy = "rr"
[[class]]
name = "first"
match = [{ dscp = "EF" }]
[[class]]
name = "rest"
[[peer]]
name = "ship"
public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
allowed_ips = "10.77.0.2/32"
"#;

    fn changed(old: &str, new: &str) -> Config {
        assert!(RUNNING.contains(old), "{old}");
        config::parse(&RUNNING.replacen(old, new, 1), Path::new("up.toml")).unwrap()
    }

    #[test]
    fn what_was_set_up_changes_with_a_restart_alone() {
        let running = changed("", "");
        let mut cleartext = changed("rate", "nominal = \"20Mbit\"\nrate");
        cleartext.mode = Mode::Cleartext;
        let why = fixed(&running, &cleartext).unwrap_err();
        assert!(why.starts_with("gateway.mode cannot change"), "{why}");
        for (old, new, what) in [
            ("lw0", "lw1", "gateway.device"),
            ("10.77.0.1", "10.77.0.3", "gateway.address"),
            ("[link]", "mtu = \"1300B\"\n[link]", "gateway.mtu"),
            ("[link]", "underlay_mtu = \"1400B\"\n[link]", "gateway.mtu"),
            ("51820", "51821", "gateway.listen"),
            ("\"key\"", "\"another\"", "gateway.private_key_file"),
            ("[link]", "control = \"/run/lw\"\n[link]", "gateway.control"),
            ("[link]", "offload = false\n[link]", "gateway.offload"),
            ("[link]", "routes = false\n[link]", "gateway.routes"),
            ("[link]", "user = \"root\"\n[link]", "gateway.user"),
            ("\"rr\"", "\"drr\"", "scheduler.policy"),
            ("rate", "below = \"16kB\"\nrate", "link.below"),
            (
                "rate",
                "across = { policy = \"pf\" }\nrate",
                "link.across.policy,",
            ),
            (
                "\"rest\"",
                "\"last\"",
                "the names and the order of the classes",
            ),
        ] {
            let why = fixed(&running, &changed(old, new)).unwrap_err();
            assert!(why.starts_with(&format!("{what} ")), "{new}: {why}");
        }
        let across = |policy: &str| changed("rate", &format!("across = {{ {policy} }}\nrate"));
        let (pf, drr) = (across("policy = \"pf\""), across("policy = \"drr\""));
        assert!(fixed(&pf, &drr).is_err());
        assert_eq!(fixed(&pf, &across("policy = \"pf\", tc = \"1s\"")), Ok(()));
        for (old, new) in [
            ("20Mbit", "5Mbit"),
            ("\"rest\"", "\"rest\"\nlimit = \"7p\""),
            ("\"EF\"", "\"AF11\""),
            ("\"ship\"", "\"boat\""),
            ("[link]", "drain = \"5s\"\ndscp = \"uniform\"\n[link]"),
        ] {
            assert_eq!(fixed(&running, &changed(old, new)), Ok(()), "{new}");
        }
    }
}
