// SPDX-License-Identifier: BSD-3-Clause
//! The state of a peer: link, session, endpoint, and counters.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use linkweir_core::Fault;

use super::bond::Bond;
use super::candidates::Candidates;
use super::peer_programs::{self, Program};
use super::silence::Silence;
use super::underlays::{Devices, PeerUnderlays};

use crate::config::{Config, Peer};
use crate::linux::calls;
use crate::linux::journal::{tell, Event};
use crate::linux::leads::Own;
use crate::linux::paths;
use crate::linux::tunnel_socket::Local;
use crate::show::figures::{self, ClassShow, FeedbackShow, PeerShow, PromiseShow};
use crate::tunnel::indices::Indices;
use crate::tunnel::seal::{Identity, Secret, Session};
use linkweir_plane::bytes::outbox::{Destination, Source};
use linkweir_plane::bytes::packet::{self, Header};
use linkweir_plane::feedback::{Feedback, Message, Reporter, Sent};
use linkweir_plane::link::Link;
use linkweir_plane::mss;
use linkweir_plane::path_mtu::PathMtu;
use linkweir_plane::restoring::Restorer;
use linkweir_plane::routing::Routing;
use linkweir_plane::tos::Model;

/// The least MTU that is looked for, bytes: what IPv6 needs (RFC 8200, section 5).
const LEAST_MTU: u32 = 1280;

/// Counters of drops by reason.
pub(super) type Reasons = BTreeMap<&'static str, u64>;

/// Counts a drop.
pub(super) fn count(reasons: &mut Reasons, reason: &'static str) {
    *reasons.entry(reason).or_default() += 1;
}

/// Counts several drops.
pub(super) fn count_all(reasons: &mut Reasons, reason: &'static str, pkts: usize) {
    *reasons.entry(reason).or_default() += pkts as u64;
}

/// The counters as they are shown.
pub(super) fn shown(reasons: &Reasons) -> BTreeMap<String, u64> {
    let shown = reasons
        .iter()
        .map(|(reason, count)| ((*reason).to_string(), *count));
    shown.collect()
}

/// The state of a peer.
pub(super) struct Station {
    /// The link to it.
    pub link: Link,
    /// None in cleartext mode.
    pub session: Option<Session>,
    /// Where it last sent from, or its configured endpoint.
    pub endpoint: Option<SocketAddr>,
    /// What it is sent from: the address of this end that it last sent to, and so expects answers from, unless the way to the
    /// peer is through another device than that of this address.
    pub source: Source,
    /// The ways to it, where there are several.
    pub underlays: Option<PeerUnderlays>,
    /// What belongs to them if they are paths that are used at once.
    pub bond: Option<Box<Bond>>,
    /// What came over them if a reload has removed them: the peer numbers its packets until it knows, and some may be held.
    pub former: Option<Box<Restorer>>,
    /// The endpoint and the place where its last datagram came in, as of which `source` was found.
    pub came: Option<(SocketAddr, Option<Local>)>,
    /// Whether what is sent to it would come back through the tunnel's own device: then nothing is.
    pub is_looped: bool,
    /// Whether `is_looped` is to be found again, since the endpoint, the source or the system's routes may have changed. Who
    /// changes one of these sets it.
    pub loop_is_doubted: bool,
    /// The mark of datagrams to it, which may have routes of their own.
    mark: Option<u32>,
    /// Whether addresses or routes have changed since `source` was found.
    path_is_doubted: bool,
    /// The addresses of its name, where it has one.
    pub candidates: Candidates,
    /// Whether it answers.
    pub silence: Silence,
    /// Whether it was silent when that was last looked at.
    pub was_silent: bool,
    /// When another way was tried as it is silent, ns.
    pub skipped_ns: Option<u64>,
    /// Whether there was a session when that was last looked at.
    pub was_open: bool,
    /// Whether its reported capacity had expired then.
    pub had_expired: bool,
    /// Whether packets to it came since its session was looked at.
    pub has_news: bool,
    /// Whether it is to be asked for a session as soon as it is its turn.
    pub is_asking: bool,
    /// Whether it was tried and has not answered.
    pub is_tried: bool,
    /// The programs that report its capacity or that of its paths.
    pub programs: Vec<Program>,
    /// Lines about the programs that the log left out.
    pub unlogged_lines: u64,
    /// Counts what came from it, where it is sent reports.
    pub reporter: Option<Reporter>,
    /// Its reports, where it is sent marks.
    pub feedback: Option<Feedback>,
    /// What is known of the longest packet that the path to it carries, where that is probed.
    pub path_mtu: Option<PathMtu>,
    /// Packets and bytes sent to it.
    pub sent: Sent,
    /// Drops outside the queues.
    pub dropped: Reasons,
    /// The key shared with it, which its session has.
    preshared: Option<Secret>,
    received_pkts: u64,
    received_bytes: u64,
}

impl Station {
    /// A peer as it is configured. Its session, if it needs one, has no keys yet.
    ///
    /// # Errors
    /// Parameters the policy refuses.
    pub(super) fn new(
        now_ns: u64,
        config: &Config,
        peer: &Peer,
        (identity, preshared): (Option<&Identity>, Option<Secret>),
        indices: &mut Indices,
    ) -> io::Result<Station> {
        let session = match (identity, peer.public_key) {
            (Some(identity), Some(key)) => {
                let keepalive_s = peer.keepalive_s;
                Some(Session::new(
                    identity,
                    key,
                    preshared.as_ref(),
                    keepalive_s,
                    indices.draw()?,
                ))
            }
            _ => None,
        };
        let calls = calls::of(&peer.name)?;
        let link = Link::recorded(now_ns, config.link_setup(peer), calls)
            .map_err(|fault| io::Error::other(fault.to_string()))?;
        let mut station = Station {
            link,
            session,
            endpoint: peer.endpoint,
            source: Source::default(),
            underlays: None,
            bond: None,
            former: None,
            came: None,
            is_looped: false,
            loop_is_doubted: true,
            mark: config.fwmark,
            path_is_doubted: false,
            candidates: Candidates::default(),
            silence: Silence::default(),
            was_silent: false,
            skipped_ns: None,
            was_open: false,
            had_expired: false,
            has_news: false,
            is_asking: false,
            is_tried: false,
            programs: peer_programs::programs(now_ns, peer),
            unlogged_lines: 0,
            reporter: peer.report.then(Reporter::default),
            feedback: None,
            path_mtu: path_mtu(now_ns, config, peer),
            sent: Sent::default(),
            dropped: Reasons::new(),
            preshared,
            received_pkts: 0,
            received_bytes: 0,
        };
        station.set_feedback(now_ns, peer);
        station.set_ways(now_ns, config, peer);
        Ok(station)
    }

    /// Sets feedback up as it is configured. What was learned stays unless the link was set back to its configured
    /// capacity: then feedback begins with that.
    fn set_feedback(&mut self, now_ns: u64, peer: &Peer) {
        let (bounds, known) = (peer.capacity.feedback, self.feedback.take());
        self.feedback = bounds.map(|bounds| match known {
            Some(mut known) => {
                known.set_bounds(bounds);
                known
            }
            None => Feedback::new(bounds, self.link.capacity_bps(now_ns)),
        });
    }

    /// Takes over the shared key and the keepalive. With another key it needs another session, which has no keys yet; packets
    /// wait for it as at the start. Returns whether it has one.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn change_session(
        &mut self,
        peer: &Peer,
        (identity, preshared): (Option<&Identity>, Option<Secret>),
        indices: &mut Indices,
    ) -> io::Result<bool> {
        let (Some(identity), Some(key), Some(session)) =
            (identity, peer.public_key, &mut self.session)
        else {
            return Ok(false);
        };
        if self.preshared == preshared {
            session.set_keepalive(peer.keepalive_s);
            return Ok(false);
        }
        let index = indices.draw()?;
        *session = Session::new(identity, key, preshared.as_ref(), peer.keepalive_s, index);
        self.preshared = preshared;
        Ok(true)
    }

    /// Sets the ways up as they are configured; the first is used until it fails, or that in use before.
    fn set_ways(&mut self, now_ns: u64, config: &Config, peer: &Peer) {
        let before = self.underlays.take();
        self.underlays = PeerUnderlays::new(now_ns, peer);
        if let (Some(underlays), Some(before)) = (&mut self.underlays, before) {
            underlays.inherit(now_ns, &before);
        }
        let before = self.bond.take();
        self.bond = Bond::new(config, peer).map(Box::new);
        match (&mut self.bond, before) {
            (Some(bond), Some(before)) => bond.inherit(config, *before),
            (None, Some(before)) => self.former = Some(Box::new(before.restorer)),
            (Some(bond), None) => {
                if let Some(former) = self.former.take() {
                    bond.take_over(config, *former);
                }
            }
            (None, None) => {}
        }
        self.loop_is_doubted = true;
        if let Some(underlays) = &self.underlays {
            self.source = underlays.source();
            self.endpoint = underlays.endpoint();
        }
    }

    /// Changes what may change while packets wait. What feedback learned stays if the configured rate does, and the
    /// endpoint stays if the configured one does.
    ///
    /// # Errors
    /// Parameters that the running policy refuses; then the link stays as it was.
    pub(super) fn change(
        &mut self,
        now_ns: u64,
        config: &Config,
        (old, new): (&Peer, &Peer),
    ) -> Result<(), Fault> {
        let capacities = (&old.capacity, &new.capacity);
        let changed = self
            .link
            .change(now_ns, &config.scheduler, &config.classes, capacities);
        if old.capacity != new.capacity {
            if old.capacity.offered != new.capacity.offered {
                self.feedback = None;
            }
            self.set_feedback(now_ns, new);
        }
        if old.probe_mtu != new.probe_mtu {
            self.path_mtu = path_mtu(now_ns, config, new);
        } else if let Some(path) = &mut self.path_mtu {
            path.set_full(now_ns, config.mtu);
        }
        if old.report != new.report {
            self.reporter = new.report.then(Reporter::default);
        }
        let place = |peer: &Peer| {
            let ways = (peer.underlays.clone(), peer.probing);
            (peer.endpoint, peer.host.clone(), ways)
        };
        self.link
            .change_paths(now_ns, (&old.paths, &new.paths), &config.classes);
        if let Some(bond) = &mut self.bond {
            bond.change(config, (old, new));
        }
        if place(old) != place(new) {
            self.candidates = Candidates::default();
            // With the first path or without the last the peer is where it was.
            let has_turned = old.paths.is_empty() != new.paths.is_empty();
            let was = self.endpoint.filter(|_| has_turned);
            let came_to = was.and_then(|was| self.came_to(was));
            let source = self.source;
            self.endpoint = new.endpoint;
            self.forget_path();
            self.set_ways(now_ns, config, new);
            if let (None, Some(was)) = (self.endpoint, was) {
                self.stay(was, came_to, source);
            }
            self.path_changed(now_ns);
            self.has_news = self.link.waiting_pkts() > 0;
        }
        changed
    }

    /// Where what it last sent from there came in; none: that is not known.
    fn came_to(&self, from: SocketAddr) -> Option<Local> {
        let over = self.bond.as_ref().zip(self.underlays.as_ref());
        let over = over.and_then(|(bond, underlays)| bond.paths.get(underlays.current())?.came);
        let mut known = over.into_iter().chain(self.came);
        known.find(|(other, _)| *other == from)?.1
    }

    /// It is sent there as before, over other ways, of which none has an endpoint, or without any.
    fn stay(&mut self, endpoint: SocketAddr, came_to: Option<Local>, source: Source) {
        self.endpoint = Some(endpoint);
        if let Some(underlays) = &mut self.underlays {
            underlays.follow(endpoint, came_to);
            self.source = underlays.source();
        } else if came_to.is_some() {
            self.came = Some((endpoint, came_to));
            self.find_source();
        } else {
            self.source = source;
        }
    }

    /// What restores the order of its packets, if they have numbers.
    pub(super) fn restorer(&mut self) -> Option<&mut Restorer> {
        match &mut self.bond {
            Some(bond) => Some(&mut bond.restorer),
            None => self.former.as_deref_mut(),
        }
    }

    /// Whether there is a session with it.
    pub(super) fn is_open(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_open)
    }

    /// Whether it cannot be reached at present, as far as is known.
    pub(super) fn is_lost(&self, now_ns: u64) -> bool {
        self.endpoint.is_none() || !self.is_open() || self.silence.is_silent(now_ns)
    }

    /// A handshake is to be sent to it. Where it has a name, another address of that may have its turn; returns whether it has.
    pub(super) fn count_handshake(&mut self, now_ns: u64, peer: &Peer) -> bool {
        self.silence.sent(now_ns);
        let (Some(host), Some(present)) = (&peer.host, self.endpoint) else {
            return false;
        };
        let next = self.candidates.attempt(present);
        if let Some(next) = next {
            let what = format!(
                "{} does not answer at {present}; {next} is tried",
                host.host
            );
            tell(Event::EndpointFound, &peer.name, &what);
            self.move_to(next);
        }
        next.is_some()
    }

    /// A datagram that only the peer of this name can have sent came from there to here. Returns whether its endpoint is
    /// another now.
    pub(super) fn came(&mut self, from: SocketAddr, to: Option<Local>, name: &str) -> bool {
        self.silence.hear();
        if self.came == Some((from, to)) {
            return false;
        }
        if let Some(underlays) = &mut self.underlays {
            if self.bond.is_none() || !underlays.choice.is_mute() {
                return false;
            }
            self.came = Some((from, to));
            let Some(other) = underlays.follow(from, to) else {
                return false;
            };
            if let Some(way) = other {
                let what = format!("the peer sends over {way}; {way} is used");
                tell(Event::UnderlayChanged, name, &what);
            }
            self.source = underlays.source();
        } else {
            self.came = Some((from, to));
            self.find_source();
        }
        self.loop_is_doubted = true;
        let before = self.endpoint.replace(from);
        if let Some(before) = before.filter(|before| *before != from) {
            tell(
                Event::PeerMoved,
                name,
                &format!("moved from {before} to {from}"),
            );
        }
        before != Some(from)
    }

    /// Finds what it is sent from and whether that would come back through the tunnel's own device, if the endpoint, addresses
    /// or routes may have changed.
    #[inline]
    pub(super) fn check_path(&mut self, own: &Own, name: &str) {
        if self.loop_is_doubted {
            self.confirm_path();
            self.find_loop(own, name);
        }
    }

    /// Finds whether what is sent to it would come back through the tunnel's own device, and says so.
    #[cold]
    fn find_loop(&mut self, own: &Own, name: &str) {
        self.loop_is_doubted = false;
        let Some(to) = self.endpoint else {
            self.is_looped = false;
            return;
        };
        let before = std::mem::replace(&mut self.is_looped, own.leads_into_itself(to, self.source));
        if self.is_looped {
            let what = format!(
                "nothing is sent: the route to its endpoint {to} leads into the tunnel itself; \
                 add a route to {} past the tunnel, or take it out of allowed_ips",
                to.ip()
            );
            tell(Event::TunnelLooped, name, &what);
        } else if before {
            let what = format!("the route to its endpoint {to} leads past the tunnel again");
            tell(Event::TunnelUnlooped, name, &what);
            self.has_news |= self.link.waiting_pkts() > 0;
        }
    }

    /// It is sent from the address that it last sent to while this end has the address, and the route to the peer leads
    /// through the device of that address. Otherwise the system chooses.
    fn find_source(&mut self) {
        self.path_is_doubted = false;
        let (from, to) = self.came.unzip();
        let leads_there = |to: &Local| {
            from.is_some_and(|from: SocketAddr| {
                paths::device_to(from.ip(), Some(to.address), self.mark)
                    .is_ok_and(|device| device == to.device)
            })
        };
        let to = to.flatten().filter(leads_there);
        self.source = to.map(Source::from).unwrap_or_default();
    }

    /// Routes or addresses may have changed: what it is sent from is found again before the next packet.
    /// Returns whether a way is broken now, or no longer.
    pub(super) fn doubt_path(&mut self, now_ns: u64, devices: &mut Devices) -> bool {
        self.path_is_doubted = true;
        self.loop_is_doubted = true;
        let Some(underlays) = &mut self.underlays else {
            return false;
        };
        let is_news = underlays.find_devices(now_ns, devices);
        self.came = None;
        self.source = underlays.source();
        is_news
    }

    /// The system refused to send over one of several paths: it is used no more until a probe is answered.
    #[cold]
    pub(super) fn path_failed(&mut self, now_ns: u64, to: &Destination) {
        if let Some(underlays) = &mut self.underlays {
            if let Some(way) = underlays.way_of(to.to, to.from) {
                underlays.choice.refused(now_ns, way);
            }
        }
    }

    /// Finds what it is sent from, if addresses or routes have changed.
    #[inline]
    pub(super) fn confirm_path(&mut self) {
        if self.path_is_doubted && self.underlays.is_none() {
            self.find_source();
        }
    }

    /// It is sent there from now on, until it sends from elsewhere. The system chooses the address to send from.
    pub(super) fn move_to(&mut self, endpoint: SocketAddr) {
        self.endpoint = Some(endpoint);
        self.forget_path();
    }

    fn forget_path(&mut self) {
        self.came = None;
        self.loop_is_doubted = true;
        self.source = Source::default();
    }

    /// The path to it may be another.
    pub(super) fn path_changed(&mut self, now_ns: u64) {
        if let Some(path) = &mut self.path_mtu {
            path.changed(now_ns);
        }
    }

    /// The longest packet that TCP may use towards it, bytes, if it is limited to so many in general.
    pub(super) fn mss_mtu(&self, general: Option<u32>) -> Option<u32> {
        let found = self.path_mtu.as_ref().map_or(u32::MAX, PathMtu::found);
        general.map(|mtu| mtu.min(found))
    }

    /// Counts a packet from it, also one that is dropped later.
    pub(super) fn arrived(&mut self, bytes: usize) {
        if let Some(reporter) = &mut self.reporter {
            reporter.count(bytes);
        }
    }

    /// When the next message to it is due, a mark or a report, ns.
    #[must_use]
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.endpoint.filter(|_| !self.is_looped)?;
        if !self.session.as_ref().is_none_or(Session::is_open) {
            return None;
        }
        let mark = self.feedback.as_ref();
        let mark_ns = mark.map(|feedback| feedback.due_ns(self.sent.pkts));
        let report_ns = self.reporter.as_ref().and_then(Reporter::due_ns);
        mark_ns.into_iter().chain(report_ns).min()
    }

    /// The message to it that is due now, after so much was sent. It takes `wire_bytes` on the link, which so many peers share.
    pub(super) fn message(
        &mut self,
        now_ns: u64,
        sent: Sent,
        wire_bytes: u32,
        peers: u64,
    ) -> Option<Message> {
        if let Some(reporter) = &mut self.reporter {
            if reporter.due_ns().is_some_and(|ns| ns <= now_ns) {
                let capacity_bps = self.link.known_bps(now_ns);
                return reporter.report(now_ns, wire_bytes, capacity_bps, peers);
            }
        }
        let feedback = self.feedback.as_mut()?;
        Some(feedback.mark(now_ns, sent, wire_bytes))
    }

    /// Counts packets of this peer that were written into the device.
    pub(super) fn received(&mut self, pkts: usize, bytes: usize) {
        self.received_pkts += pkts as u64;
        self.received_bytes += bytes as u64;
    }

    /// Its figures, without its part of a shared link.
    pub(super) fn show(&mut self, now_ns: u64, config: &Config, peer: &Peer) -> PeerShow {
        let capacity_bps = self.link.capacity_bps(now_ns);
        PeerShow {
            name: peer.name.clone(),
            endpoint: self.endpoint,
            session: self.session.as_ref().map(Session::is_open),
            looped: self.is_looped,
            handshake_age_s: self.session.as_ref().and_then(Session::age_s),
            capacity_bps,
            capacity_expired: self.had_expired,
            told_bps: self.link.mux().link_bps(),
            received_pkts: self.received_pkts,
            received_bytes: self.received_bytes,
            dropped_pkts: shown(&self.dropped),
            across: None,
            feedback: self.feedback.as_ref().map(FeedbackShow::new),
            path_mtu_bytes: self.path_mtu.as_ref().map(PathMtu::found),
            program_unlogged_lines: peer_programs::has_programs(peer)
                .then_some(self.unlogged_lines),
            underlays: match (&self.underlays, &self.bond) {
                (Some(underlays), None) => underlays.show(peer),
                _ => Vec::new(),
            },
            paths_agreed: self.bond.as_ref().map(|_| self.link.is_agreed()),
            paths: match (&self.underlays, &self.bond) {
                (Some(underlays), Some(bond)) => bond.show(now_ns, peer, underlays, &mut self.link),
                _ => Vec::new(),
            },
            classes: self.classes(now_ns, config),
            warnings: self.warnings(config, peer, capacity_bps),
        }
    }

    /// Settings that do not do what they seem to at the present capacity and round trips.
    fn warnings(&self, config: &Config, peer: &Peer, capacity_bps: u64) -> Vec<String> {
        let mut warnings = config.warnings_at(&peer.name, capacity_bps);
        let rtt_ns = match (&self.underlays, &self.bond) {
            (Some(underlays), Some(bond)) => {
                bond.longest_rtt_ns(|way| underlays.choice.is_good(way))
            }
            _ => 0,
        };
        warnings.extend(config.sent_again_late(peer, rtt_ns));
        warnings
    }

    /// The figures of its classes.
    fn classes(&mut self, now_ns: u64, config: &Config) -> Vec<ClassShow> {
        let mut classes = figures::classes(now_ns, config, &mut self.link);
        if let Some(bond) = &self.bond {
            for (at, class) in classes.iter_mut().enumerate() {
                class.restored = bond.restored(at);
            }
            for kept in self.link.broken_promises() {
                classes[kept.class].promise = Some(PromiseShow {
                    reserved_bps: kept.promised_bps,
                    kept_bps: kept.kept_bps,
                });
            }
        }
        classes
    }
}

/// What is known of the path to a peer at first.
fn path_mtu(now_ns: u64, config: &Config, peer: &Peer) -> Option<PathMtu> {
    peer.probe_mtu
        .then(|| PathMtu::new(now_ns, LEAST_MTU, config.mtu))
}

impl AsMut<Link> for Station {
    fn as_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The checks and changes of packets from peers before they go into the device.
pub(super) struct Decapsulation<'g> {
    /// Which addresses are behind which peer.
    pub routing: &'g Routing,
    /// The source looked up last, and the peer behind it.
    pub last: Option<(IpAddr, usize)>,
    /// The changes that inner headers take from outer ones.
    pub dscp: Model,
    /// Largest packet that TCP may use, bytes; none: not limited.
    pub mss_mtu: Option<u32>,
}

impl Decapsulation<'_> {
    /// Checks a packet of the peer with number `at` that came with this outer services field; returns its header if it may
    /// pass.
    pub(super) fn admit(
        &mut self,
        at: usize,
        station: &mut Station,
        packet: &mut [u8],
        outer_tos: u8,
    ) -> Option<Header> {
        let Some(mut header) = packet::parse(packet) else {
            count(&mut station.dropped, "malformed");
            return None;
        };
        if self.last != Some((header.source, at)) {
            if self.routing.peer(header.source) != Some(at) {
                count(&mut station.dropped, "not_allowed");
                return None;
            }
            self.last = Some((header.source, at));
        }
        match self.dscp.decapsulate(header.tos, outer_tos) {
            Some(tos) if tos == header.tos => {}
            Some(tos) => {
                packet::set_tos(packet, tos);
                header.tos = tos;
            }
            None => {
                count(&mut station.dropped, "congested");
                return None;
            }
        }
        if let Some(mtu) = station.mss_mtu(self.mss_mtu) {
            mss::clamp(packet, &header, mtu);
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_plane::feedback::Report;
    use std::path::Path;

    const MS: u64 = 1_000_000;
    const ASKS: &str =
        "rate = \"20Mbit\"\nstale = \"5s\"\nfloor = \"1Mbit\"\nfeedback = { ceiling = \"40Mbit\" }";

    /// The configuration of the ground station with these further keys of its peer.
    fn config(keys: &str) -> Config {
        let text = include_str!("../../configs/ground.toml");
        let text = text.replacen("endpoint =", &format!("{keys}\nendpoint ="), 1);
        crate::config::parse(&text, Path::new("ground.toml")).unwrap()
    }

    fn station(config: &Config) -> Station {
        Station::new(
            0,
            config,
            &config.peers[0],
            (None, None),
            &mut Indices::default(),
        )
        .unwrap()
    }

    /// A station that sent a mark at 0 and got a report on it.
    fn with_report(config: &Config) -> Station {
        let mut station = station(config);
        let mark = station.message(0, Sent::default(), 140, 1);
        assert_eq!(mark, Some(Message::Mark { sent_ns: 0 }));
        let report = Report {
            received_ns: 7,
            ..Report::default()
        };
        let feedback = station.feedback.as_mut().unwrap();
        feedback.reported(10 * MS, report, Sent::default(), config.wire());
        assert_eq!(feedback.known().reports, 1);
        station
    }

    #[test]
    fn a_report_is_sent_before_a_mark() {
        let config = config(&format!("{ASKS}\nreport = true"));
        let mut station = station(&config);
        assert_eq!(station.due_ns(), Some(0), "a mark");
        station.arrived(1000);
        station.reporter.as_mut().unwrap().marked(3, 77);
        let report = Report {
            sent_ns: 77,
            received_ns: 3,
            pkts: 1,
            bytes: 1000,
        };
        let sent: Vec<_> = (0..2)
            .map(|_| station.message(5, Sent::default(), 140, 1))
            .collect();
        let expected = [Message::Report(report), Message::Mark { sent_ns: 5 }];
        assert_eq!(sent, expected.map(Some));
        assert_eq!(station.due_ns(), Some(5 + 1000 * MS), "nothing is sent");
        // 140 bytes are 1 % of 20 Mbit/s for 5.6 ms; so many peers have to share that.
        station.reporter.as_mut().unwrap().marked(60 * MS, 78);
        assert!(matches!(
            station.message(60 * MS, Sent::default(), 140, 50),
            Some(Message::Report(_))
        ));
        station.reporter.as_mut().unwrap().marked(61 * MS, 79);
        assert_eq!(station.due_ns(), Some((60 + 280) * MS));
    }

    #[test]
    fn no_message_is_due_without_an_endpoint() {
        let config = config(ASKS);
        let mut station = station(&config);
        station.endpoint = None;
        assert_eq!(station.due_ns(), None);
    }

    /// The boat, whose peer nobody knows a place of, with its paths and without.
    fn with_and_without_paths() -> (Config, Config) {
        let text = include_str!("../../configs/boat.toml");
        let text = text.replace("endpoint = \"192.0.2.1:51820\"\n", "");
        // No such devices are here.
        let text = text.replace("device = \"eth1\"\n", "");
        let text = text.replace("device = \"wwan0\"\n", "");
        let with = crate::config::parse(&text, Path::new("boat.toml")).unwrap();
        let mut without = with.clone();
        without.peers[0].paths.clear();
        without.peers[0].underlays.clear();
        without.peers[0].probing = None;
        (with, without)
    }

    /// A reload removes all paths: what is held for order stays and goes out in its time, numbered packets are taken, and the peer
    /// is where it was. With paths again their numbers are known.
    #[test]
    fn what_is_held_survives_the_last_path() {
        use linkweir_plane::bytes::numbered::Number;
        use linkweir_plane::restoring::Held;

        let (with, without) = with_and_without_paths();
        let mut station = station(&with);
        let at = "192.0.2.9:1".parse().unwrap();
        assert!(station.came(at, None, "base"));
        let arrive = |station: &mut Station, now_ns: u64, sequence| {
            let number = Number {
                stream: 1, // video, which waits 400 ms for its order
                epoch: 7,
                sequence,
            };
            let held = Held {
                packet: vec![sequence as u8; 40].into(),
                outer_tos: 0,
            };
            let mut out = Vec::new();
            let restorer = station.restorer().unwrap();
            let dropped = restorer.arrive(now_ns, number, held, |held| out.push(held.packet[0]));
            assert_eq!(dropped, None);
            out
        };
        let restorer = station.restorer().unwrap();
        restorer.begin(0, 7, (1, 1), |_| panic!("nothing is held"));
        assert_eq!(arrive(&mut station, 0, 1), [0_u8; 0]);
        let turn = |station: &mut Station, old: &Config, new: &Config| {
            let peers = (&old.peers[0], &new.peers[0]);
            station.change(MS, new, peers).unwrap();
        };
        turn(&mut station, &with, &without);
        assert!(station.bond.is_none() && station.underlays.is_none());
        assert_eq!(station.endpoint, Some(at));
        assert_eq!(arrive(&mut station, 2 * MS, 3), [0_u8; 0]);
        assert_eq!(arrive(&mut station, 3 * MS, 0), [0, 1]);
        turn(&mut station, &without, &with);
        assert_eq!(station.endpoint, Some(at));
        assert_eq!(arrive(&mut station, 4 * MS, 2), [2, 3]);
        assert!(station.former.is_none());
        // What never comes is not waited for.
        assert_eq!(arrive(&mut station, 5 * MS, 5), [0_u8; 0]);
        turn(&mut station, &with, &without);
        let mut out = Vec::new();
        let due_ns = station.restorer().unwrap().due_ns().unwrap();
        assert!(due_ns <= 405 * MS);
        let restorer = station.restorer().unwrap();
        restorer.expire(due_ns, |held| out.push(held.packet[0]));
        assert_eq!(out, [5]);
    }

    /// A hub with several addresses answers from the one that was asked, also when a reload removes the paths to a peer.
    #[test]
    fn the_last_path_leaves_the_address_that_it_is_sent_from() {
        let (with, without) = with_and_without_paths();
        let at: SocketAddr = "127.0.0.9:1".parse().unwrap();
        let here = Local {
            address: "127.0.0.5".parse().unwrap(),
            device: 1,
        };
        for names_its_path in [false, true] {
            let mut station = station(&with);
            if names_its_path {
                let underlays = station.underlays.as_mut().unwrap();
                underlays.learn(0, at, Some(here), true);
                let path = &mut station.bond.as_mut().unwrap().paths[0];
                path.came = Some((at, Some(here)));
                station.endpoint = underlays.endpoint();
                station.source = underlays.source();
            } else {
                assert!(station.came(at, Some(here), "base"));
            }
            assert_eq!(station.source.address, Some(here.address));
            let peers = (&with.peers[0], &without.peers[0]);
            station.change(MS, &without, peers).unwrap();
            // The keeper changes the device's MTU, so the system tells of a change.
            station.doubt_path(2 * MS, &mut Devices::new());
            station.confirm_path();
            assert_eq!(station.endpoint, Some(at));
            assert_eq!(station.source.address, Some(here.address));
        }
    }

    /// The first device of every network namespace is its loopback, which stands for the tunnel's own here.
    #[test]
    fn each_change_of_the_path_is_looked_at() {
        let own = Own {
            device: 1,
            ..Own::default()
        };
        let config = config("");
        let (inside, past) = ("127.0.0.1:9", "[2001:db8::77]:9");
        let mut station = station(&config);
        let mut found = |change: &mut dyn FnMut(&mut Station)| {
            change(&mut station);
            station.check_path(&own, "ship");
            station.is_looped
        };
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert!(found(&mut |station| station.move_to(at(inside))));
        assert!(!found(&mut |station| station.move_to(at(past))));
        assert!(found(&mut |station| {
            assert!(station.came(at(inside), None, "ship"));
        }));
        let mut new = config.peers[0].clone();
        new.endpoint = Some(at(past));
        assert!(!found(&mut |station| {
            station
                .change(0, &config, (&config.peers[0], &new))
                .unwrap();
        }));
        assert!(found(&mut |station| station.move_to(at(inside))));
        assert!(!found(&mut |station| {
            station.endpoint = None;
            station.doubt_path(0, &mut Devices::new());
        }));
    }

    #[test]
    fn feedback_survives_a_reload_that_keeps_the_rate() {
        let reports = |station: &Station| {
            let feedback = station.feedback.as_ref();
            feedback.map(|feedback| feedback.known().reports)
        };
        let asks = config(ASKS);
        let mut station = with_report(&asks);
        let moved = "192.0.2.99:1".parse().ok();
        station.endpoint = moved;
        station.link.set_capacity(20 * MS, 15_000_000);
        let mut old = asks;
        for (old_text, new_text, left, capacity_bps) in [
            ("40Mbit", "30Mbit", Some(1), 15_000_000),
            ("5s", "4s", Some(1), 15_000_000),
            ("20Mbit", "25Mbit", Some(0), 25_000_000),
            (ASKS, "", None, 20_000_000),
        ] {
            let new = config(&ASKS.replace(old_text, new_text));
            let peers = (&old.peers[0], &new.peers[0]);
            station.change(30 * MS, &new, peers).unwrap();
            assert_eq!(reports(&station), left, "{new_text}");
            assert_eq!(
                station.link.capacity_bps(30 * MS),
                capacity_bps,
                "{new_text}"
            );
            assert_eq!(station.endpoint, moved);
            old = new;
        }
        let mut new = old.clone();
        new.peers[0].endpoint = "192.0.2.3:51820".parse().ok();
        let peers = (&old.peers[0], &new.peers[0]);
        station.change(40 * MS, &new, peers).unwrap();
        assert_eq!(station.endpoint, new.peers[0].endpoint);
    }

    #[test]
    fn counting_survives_a_reload_that_keeps_reports() {
        let reports = config("report = true");
        let mut station = station(&reports);
        station.arrived(500);
        let mut new = reports.clone();
        new.peers[0].capacity.stale_ns = Some(1000 * MS);
        let peers = (&reports.peers[0], &new.peers[0]);
        station.change(MS, &new, peers).unwrap();
        station.reporter.as_mut().unwrap().marked(2 * MS, 1);
        let Some(Message::Report(report)) = station.message(2 * MS, Sent::default(), 140, 1) else {
            panic!("a report is due");
        };
        assert_eq!((report.pkts, report.bytes), (1, 500));
        let silent = config("");
        let peers = (&new.peers[0], &silent.peers[0]);
        station.change(3 * MS, &silent, peers).unwrap();
        assert!(station.reporter.is_none());
    }
}
