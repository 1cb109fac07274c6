// SPDX-License-Identifier: BSD-3-Clause
//! A peer at work: its link, its session, where it is, and what became of its packets.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::command::Running;
use crate::config::{Config, Peer};
use crate::feedback::{Feedback, Reporter};
use crate::link::Link;
use crate::mss;
use crate::packet::{self, Header};
use crate::routing::Routing;
use crate::seal::{self, Identity, Session};
use crate::show::{self, FeedbackShow, PeerShow};
use crate::tos::Model;

/// Bits of a session's index.
const SESSION_INDEX: u32 = 0xff_ffff;

/// How often something was dropped, by reason.
pub type Reasons = BTreeMap<&'static str, u64>;

/// One more was dropped.
pub fn count(reasons: &mut Reasons, reason: &'static str) {
    *reasons.entry(reason).or_default() += 1;
}

/// Several more were dropped.
pub fn count_all(reasons: &mut Reasons, reason: &'static str, pkts: usize) {
    *reasons.entry(reason).or_default() += pkts as u64;
}

/// The same, to be shown.
pub fn shown(reasons: &Reasons) -> BTreeMap<String, u64> {
    let shown = reasons
        .iter()
        .map(|(reason, count)| ((*reason).to_string(), *count));
    shown.collect()
}

/// A peer at work.
pub struct Station {
    /// The way there.
    pub link: Link,
    /// None in cleartext mode.
    pub session: Option<Session>,
    /// Where it was heard from last, or is said to be.
    pub endpoint: Option<SocketAddr>,
    /// The program that knows its capacity, while it runs.
    pub command: Option<Running>,
    /// When that is started again, ns.
    pub command_at_ns: Option<u64>,
    /// What came from it, where it is told.
    pub reporter: Option<Reporter>,
    /// What it says came of what it was sent, where it is asked.
    pub feedback: Option<Feedback>,
    /// Packets sent to it.
    pub sent_pkts: u64,
    /// What was dropped outside the queues.
    pub dropped: Reasons,
    received_pkts: u64,
    received_bytes: u64,
}

impl Station {
    /// A peer as it is configured; its session, if it needs one, is not open and takes the next index.
    ///
    /// # Errors
    /// A key that cannot be read, or parameters the policy refuses.
    pub fn new(
        now_ns: u64,
        config: &Config,
        peer: &Peer,
        identity: Option<&Identity>,
        next_index: &mut u32,
    ) -> io::Result<Station> {
        let session = match (identity, peer.public_key) {
            (Some(identity), Some(key)) => {
                let file = peer.preshared_key_file.as_deref();
                let preshared = file.map(seal::read_key).transpose()?;
                *next_index = (*next_index + 1) & SESSION_INDEX;
                let keepalive_s = peer.keepalive_s;
                Some(Session::new(
                    identity,
                    key,
                    preshared,
                    keepalive_s,
                    *next_index,
                ))
            }
            _ => None,
        };
        let link = Link::new(now_ns, config, &peer.capacity)
            .map_err(|fault| io::Error::other(fault.to_string()))?;
        Ok(Station {
            link,
            session,
            endpoint: peer.endpoint,
            command: None,
            command_at_ns: peer.capacity.command.as_ref().map(|_| now_ns),
            reporter: peer.report.then(Reporter::default),
            feedback: Station::asks(peer),
            sent_pkts: 0,
            dropped: Reasons::new(),
            received_pkts: 0,
            received_bytes: 0,
        })
    }

    /// What asks a peer, as it is configured.
    pub fn asks(peer: &Peer) -> Option<Feedback> {
        let bounds = peer.capacity.feedback?;
        Some(Feedback::new(bounds, peer.capacity.nominal_bps))
    }

    /// Whether it is said anything beside packets.
    #[must_use]
    pub fn converses(&self) -> bool {
        self.reporter.is_some() || self.feedback.is_some()
    }

    /// A packet came from it, whatever becomes of it.
    pub fn came(&mut self, bytes: usize) {
        if let Some(reporter) = &mut self.reporter {
            reporter.count(bytes);
        }
    }

    /// When the next mark is due, ns.
    #[must_use]
    pub fn mark_ns(&self) -> Option<u64> {
        let feedback = self.feedback.as_ref()?;
        self.endpoint?;
        self.session
            .as_ref()
            .is_none_or(Session::is_open)
            .then(|| feedback.due_ns(self.sent_pkts))
    }

    /// Packets of this peer went into the device.
    pub fn received(&mut self, pkts: usize, bytes: usize) {
        self.received_pkts += pkts as u64;
        self.received_bytes += bytes as u64;
    }

    /// Everything there is to see, but for its part of a shared link.
    pub fn show(&mut self, now_ns: u64, config: &Config, peer: &Peer) -> PeerShow {
        PeerShow {
            name: peer.name.clone(),
            endpoint: self.endpoint,
            session: self.session.as_ref().map(Session::is_open),
            capacity_bps: self.link.capacity_bps(now_ns),
            told_bps: self.link.mux().link_bps(),
            received_pkts: self.received_pkts,
            received_bytes: self.received_bytes,
            dropped_pkts: shown(&self.dropped),
            across: None,
            feedback: self.feedback.as_ref().map(|feedback| {
                let known = feedback.known();
                FeedbackShow {
                    reports: known.reports,
                    queue_ns: known.queue_ns,
                    received_bps: known.received_bps,
                }
            }),
            classes: show::classes(now_ns, config, &mut self.link),
        }
    }
}

impl AsMut<Link> for Station {
    fn as_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// What packets of peers pass before they go into the device.
pub struct Inside<'g> {
    /// What peers may send from.
    pub routing: &'g Routing,
    /// Address that was looked up last, and the peer behind it.
    pub last: Option<(IpAddr, usize)>,
    /// What inner headers learn of outer ones.
    pub dscp: Model,
    /// Largest packet that TCP may ask for, bytes; none: as it likes.
    pub mss_mtu: Option<u32>,
}

impl Inside<'_> {
    /// Looks at a packet of the peer with this number, whose outer header had this services field; returns its header when
    /// it may pass.
    pub fn admit(
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
        if let Some(mtu) = self.mss_mtu {
            mss::clamp(packet, &header, mtu);
        }
        Some(header)
    }
}
