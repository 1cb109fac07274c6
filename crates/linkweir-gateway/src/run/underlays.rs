// SPDX-License-Identifier: BSD-3-Clause
//! Several ways to a peer: where each leads, and which of them is in use.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use linkweir_plane::bytes::outbox::Source;
use linkweir_plane::underlays::Underlays;

use crate::config::Peer;
use crate::linux::leads::Own;
use crate::linux::paths;
use crate::linux::tunnel_socket::Local;
use crate::show::figures::UnderlayShow;

/// Where a way leads.
struct UnderlayPath {
    name: String,
    /// None: the peer has not sent over it yet.
    endpoint: Option<SocketAddr>,
    /// Name of the device, and its number.
    device: Option<String>,
    number: u32,
    /// The address of this end.
    address: Option<IpAddr>,
    /// Whether that is configured, or else the one that the peer last sent to.
    is_fixed: bool,
    /// Whether it leads into the tunnel itself; none: routes may have changed.
    is_looped: Option<bool>,
}

/// The numbers of devices by name, and whether they carry packets, while they are looked for.
pub(super) type Devices = HashMap<String, (u32, bool)>;

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
            name: underlay.name.clone(),
            endpoint: underlay.endpoint,
            device: underlay.device.clone(),
            number: 0,
            address: underlay.source,
            is_fixed: underlay.source.is_some() || underlay.device.is_some(),
            is_looped: None,
        };
        let mut found = PeerUnderlays {
            choice: Underlays::new(now_ns, probing, peer.underlays.len()),
            underlay_paths: peer.underlays.iter().map(path).collect(),
        };
        found.find_devices(now_ns, &mut Devices::new());
        Some(found)
    }

    /// Takes over where the peer has sent from over ways of the same name, which are not configured.
    pub(super) fn inherit(&mut self, before: &PeerUnderlays) {
        for path in &mut self.underlay_paths {
            let mut known = before.underlay_paths.iter();
            let known = known.find(|other| other.name == path.name);
            if let (None, Some(known)) = (path.endpoint, known) {
                path.endpoint = known.endpoint;
                if !path.is_fixed {
                    path.address = known.address;
                }
            }
        }
    }

    /// Finds the numbers of the devices, which may have come or gone, and those that carry nothing. Returns whether a way is
    /// broken now, or no longer.
    pub(super) fn find_devices(&mut self, now_ns: u64, devices: &mut Devices) -> bool {
        let mut is_news = false;
        for (at, path) in self.underlay_paths.iter_mut().enumerate() {
            path.is_looped = None;
            let Some(name) = &path.device else {
                continue;
            };
            if !self.choice.are_at_once() {
                path.number = paths::number_or_none(name);
                continue;
            }
            let (number, carries) = *devices.entry(name.clone()).or_insert_with(|| {
                let number = paths::number_or_none(name);
                (number, paths::carries(number))
            });
            path.number = number;
            is_news |= self.choice.set_broken(now_ns, at, !carries);
        }
        is_news
    }

    /// The way in use, or the first that leads somewhere while that one does not.
    pub(super) fn current(&self) -> usize {
        let in_use = self.choice.in_use();
        let known = |way: &usize| self.underlay_paths[*way].endpoint.is_some();
        let mut ways = std::iter::once(in_use).chain(0..self.underlay_paths.len());
        ways.find(known).unwrap_or(in_use)
    }

    /// Where the way in use leads.
    pub(super) fn endpoint(&self) -> Option<SocketAddr> {
        self.underlay_paths[self.current()].endpoint
    }

    /// What the way in use sends from.
    pub(super) fn source(&self) -> Source {
        self.source_of(self.current())
    }

    /// Where a way leads, and what it sends from; none: the peer has not sent over it yet.
    pub(super) fn path(&self, way: usize) -> Option<(SocketAddr, Source)> {
        let endpoint = self.underlay_paths[way].endpoint?;
        Some((endpoint, self.source_of(way)))
    }

    /// The way that leads there.
    pub(super) fn way_of(&self, to: SocketAddr, from: Source) -> Option<usize> {
        let mut ways = 0..self.underlay_paths.len();
        ways.find(|way| self.path(*way) == Some((to, from)))
    }

    /// Whether the peer, which answers no probes, now sends from elsewhere.
    pub(super) fn moves_to(&self, from: SocketAddr) -> bool {
        let mut ends = self.underlay_paths.iter().map(|path| path.endpoint);
        self.choice.is_mute() && ends.all(|end| end != Some(from))
    }

    /// The peer has sent over a way from there to here.
    pub(super) fn learn(&mut self, way: usize, from: SocketAddr, to: Option<Local>) {
        let path = &mut self.underlay_paths[way];
        let address = match to {
            _ if path.is_fixed => path.address,
            Some(to) => Some(to.address),
            None => path.address,
        };
        if (path.endpoint, path.address) != (Some(from), address) {
            path.endpoint = Some(from);
            path.address = address;
            path.is_looped = None;
        }
    }

    /// Whether a way leads into the tunnel itself.
    pub(super) fn is_looped(&mut self, way: usize, own: &Own) -> bool {
        let Some((to, from)) = self.path(way) else {
            return false;
        };
        let path = &mut self.underlay_paths[way];
        *path
            .is_looped
            .get_or_insert_with(|| own.leads_into_itself(to, from))
    }

    fn source_of(&self, way: usize) -> Source {
        let path = &self.underlay_paths[way];
        Source {
            address: path.address,
            device: path.number,
        }
    }

    /// The endpoints of all ways that lead past the tunnel, and what they send from.
    pub(super) fn all(&mut self, own: &Own) -> Vec<(SocketAddr, Source)> {
        let ways = 0..self.underlay_paths.len();
        let past: Vec<usize> = ways.filter(|way| !self.is_looped(*way, own)).collect();
        past.into_iter().filter_map(|way| self.path(way)).collect()
    }

    /// Their figures.
    pub(super) fn show(&self, peer: &Peer) -> Vec<UnderlayShow> {
        let numbered = peer.underlays.iter().enumerate();
        let show = |(way, configured): (usize, &crate::config::Underlay)| {
            let (answers, rtt_ns) = self.choice.answers(way);
            Some(UnderlayShow {
                name: configured.name.clone(),
                endpoint: configured.endpoint?,
                in_use: way == self.choice.in_use(),
                answers_now: self.choice.is_good(way),
                answers,
                rtt_ns,
            })
        };
        numbered.filter_map(show).collect()
    }
}
