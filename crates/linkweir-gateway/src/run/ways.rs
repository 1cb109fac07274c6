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
struct Place {
    endpoint: SocketAddr,
    /// Name of the device, and its number.
    device: Option<String>,
    number: u32,
    /// Whether it leads into the tunnel itself; none: routes may have changed.
    is_looped: Option<bool>,
}

/// The ways to a peer.
pub(super) struct Ways {
    pub(super) underlays: Underlays,
    places: Vec<Place>,
}

impl Ways {
    /// The ways to a peer as they are configured; none: there is but one.
    pub(super) fn new(now_ns: u64, peer: &Peer) -> Option<Ways> {
        let probing = peer.probing?;
        let place = |underlay: &crate::config::Way| Place {
            endpoint: underlay.endpoint,
            device: underlay.device.clone(),
            number: 0,
            is_looped: None,
        };
        let mut ways = Ways {
            underlays: Underlays::new(now_ns, probing, peer.underlays.len()),
            places: peer.underlays.iter().map(place).collect(),
        };
        ways.find_devices();
        Some(ways)
    }

    /// Finds the numbers of the devices, which may have come or gone.
    pub(super) fn find_devices(&mut self) {
        for place in &mut self.places {
            place.is_looped = None;
            place.number = match &place.device {
                Some(name) => paths::number_or_none(name),
                None => 0,
            };
        }
    }

    /// Where the way in use leads.
    pub(super) fn endpoint(&self) -> SocketAddr {
        self.places[self.underlays.in_use()].endpoint
    }

    /// What the way in use sends from.
    pub(super) fn source(&self) -> Source {
        self.source_of(self.underlays.in_use())
    }

    /// Where a way leads, and what it sends from.
    pub(super) fn place(&self, way: usize) -> (SocketAddr, Source) {
        (self.places[way].endpoint, self.source_of(way))
    }

    /// Whether a way leads into the tunnel itself.
    pub(super) fn is_looped(&mut self, way: usize, own: &Own) -> bool {
        let (to, from) = self.place(way);
        let place = &mut self.places[way];
        *place
            .is_looped
            .get_or_insert_with(|| own.leads_into_itself(to, from))
    }

    fn source_of(&self, way: usize) -> Source {
        Source {
            address: None,
            device: self.places[way].number,
        }
    }

    /// The endpoints of all ways that lead past the tunnel, and what they send from.
    pub(super) fn all(&mut self, own: &Own) -> Vec<(SocketAddr, Source)> {
        let ways = 0..self.places.len();
        let past: Vec<usize> = ways.filter(|way| !self.is_looped(*way, own)).collect();
        past.into_iter().map(|way| self.place(way)).collect()
    }

    /// Their figures.
    pub(super) fn show(&self, peer: &Peer) -> Vec<UnderlayShow> {
        let numbered = peer.underlays.iter().enumerate();
        let show = |(way, configured): (usize, &crate::config::Way)| {
            let (answers, rtt_ns) = self.underlays.answers(way);
            UnderlayShow {
                name: configured.name.clone(),
                endpoint: configured.endpoint,
                in_use: way == self.underlays.in_use(),
                answers_now: self.underlays.is_good(way),
                answers,
                rtt_ns,
            }
        };
        numbered.map(show).collect()
    }
}
