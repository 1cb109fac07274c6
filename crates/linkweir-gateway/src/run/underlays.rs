// SPDX-License-Identifier: BSD-3-Clause
//! Several ways to a peer: where each leads, and which of them is in use.

use std::net::SocketAddr;

use linkweir_plane::bytes::outbox::Source;
use linkweir_plane::underlays::Underlays;

use crate::config::Peer;
use crate::linux::leads::Own;
use crate::linux::paths;
use crate::show::figures::UnderlayShow;

/// Where a way leads.
struct UnderlayPath {
    endpoint: SocketAddr,
    /// Name of the device, and its number.
    device: Option<String>,
    number: u32,
    /// Whether it leads into the tunnel itself; none: routes may have changed.
    is_looped: Option<bool>,
}

/// The ways to a peer.
pub(super) struct PeerUnderlays {
    pub(super) choice: Underlays,
    underlay_paths: Vec<UnderlayPath>,
}

impl PeerUnderlays {
    /// The ways to a peer as they are configured; none: there is but one.
    pub(super) fn new(now_ns: u64, peer: &Peer) -> Option<PeerUnderlays> {
        let probing = peer.probing?;
        let path = |underlay: &crate::config::Underlay| UnderlayPath {
            endpoint: underlay.endpoint,
            device: underlay.device.clone(),
            number: 0,
            is_looped: None,
        };
        let mut found = PeerUnderlays {
            choice: Underlays::new(now_ns, probing, peer.underlays.len()),
            underlay_paths: peer.underlays.iter().map(path).collect(),
        };
        found.find_devices();
        Some(found)
    }

    /// Finds the numbers of the devices, which may have come or gone.
    pub(super) fn find_devices(&mut self) {
        for path in &mut self.underlay_paths {
            path.is_looped = None;
            path.number = match &path.device {
                Some(name) => paths::number_or_none(name),
                None => 0,
            };
        }
    }

    /// Where the way in use leads.
    pub(super) fn endpoint(&self) -> SocketAddr {
        self.underlay_paths[self.choice.in_use()].endpoint
    }

    /// What the way in use sends from.
    pub(super) fn source(&self) -> Source {
        self.source_of(self.choice.in_use())
    }

    /// Where a way leads, and what it sends from.
    pub(super) fn path(&self, way: usize) -> (SocketAddr, Source) {
        (self.underlay_paths[way].endpoint, self.source_of(way))
    }

    /// Whether a way leads into the tunnel itself.
    pub(super) fn is_looped(&mut self, way: usize, own: &Own) -> bool {
        let (to, from) = self.path(way);
        let path = &mut self.underlay_paths[way];
        *path
            .is_looped
            .get_or_insert_with(|| own.leads_into_itself(to, from))
    }

    fn source_of(&self, way: usize) -> Source {
        Source {
            address: None,
            device: self.underlay_paths[way].number,
        }
    }

    /// The endpoints of all ways that lead past the tunnel, and what they send from.
    pub(super) fn all(&mut self, own: &Own) -> Vec<(SocketAddr, Source)> {
        let ways = 0..self.underlay_paths.len();
        let past: Vec<usize> = ways.filter(|way| !self.is_looped(*way, own)).collect();
        past.into_iter().map(|way| self.path(way)).collect()
    }

    /// Their figures.
    pub(super) fn show(&self, peer: &Peer) -> Vec<UnderlayShow> {
        let numbered = peer.underlays.iter().enumerate();
        let show = |(way, configured): (usize, &crate::config::Underlay)| {
            let (answers, rtt_ns) = self.choice.answers(way);
            UnderlayShow {
                name: configured.name.clone(),
                endpoint: configured.endpoint,
                in_use: way == self.choice.in_use(),
                answers_now: self.choice.is_good(way),
                answers,
                rtt_ns,
            }
        };
        numbered.map(show).collect()
    }
}
