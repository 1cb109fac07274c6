// SPDX-License-Identifier: BSD-3-Clause
//! Sessions with peers: handshakes, timers, and endpoints that outlive the gateway.

use super::log;
use super::peers::Peers;
use super::station::Station;
use crate::config::{Config, Peer};
use crate::linux::underlay::Underlay;
use crate::tunnel::endpoints::Endpoints;
use crate::tunnel::seal::Session;

impl Peers {
    /// Starts a handshake with a peer unless one is under way.
    pub(super) fn start_handshake(&mut self, at: usize, underlay: &mut Underlay) {
        let Station {
            session, endpoint, ..
        } = &mut self.stations[at];
        if let (Some(session), Some(endpoint)) = (session, *endpoint) {
            if let Some(datagram) = session.start_handshake(&mut self.scratch) {
                let _ = underlay.send(datagram, endpoint, 0);
            }
        }
    }

    /// Runs the timers of all sessions, and saves endpoints that have changed.
    pub(super) fn tick(&mut self, configured: &[Peer], underlay: &mut Underlay) {
        for station in &mut self.stations {
            let Some(session) = &mut station.session else {
                continue;
            };
            let waiting = station.link.waiting_pkts() > 0;
            if let (Some(datagram), Some(endpoint)) =
                (session.tick(waiting, &mut self.scratch), station.endpoint)
            {
                let _ = underlay.send(datagram, endpoint, 0);
            }
        }
        if let Some(identity) = &mut self.identity {
            identity.tick();
        }
        let peers = configured.iter().zip(&self.stations);
        let now = peers.filter_map(|(peer, station)| Some((peer.public_key?, station.endpoint?)));
        if let Err(fault) = self.endpoints.save(now) {
            log(&fault);
        }
    }

    /// Closes links to peers without a session, and starts a handshake where packets wait for one.
    pub(super) fn check_sessions(&mut self, underlay: &mut Underlay) {
        for at in 0..self.stations.len() {
            let Station { link, session, .. } = &mut self.stations[at];
            let open = session.as_ref().is_none_or(Session::is_open);
            link.set_open(open);
            if !open && link.waiting_pkts() > 0 {
                self.start_handshake(at, underlay);
            }
        }
    }

    /// Gives peers without a configured endpoint the one that an earlier gateway saved.
    pub(super) fn restore_endpoints(&mut self, config: &Config) {
        if self.identity.is_none() {
            return;
        }
        let path = config.control.with_extension("peers");
        self.endpoints = Endpoints::open(&path).unwrap_or_else(|fault| {
            log(&fault);
            Endpoints::default()
        });
        for (peer, station) in config.peers.iter().zip(&mut self.stations) {
            if station.endpoint.is_none() {
                let known = peer.public_key.and_then(|key| self.endpoints.of(&key));
                // A socket of IPv4 cannot send to IPv6, nor the other way round.
                station.endpoint = known.filter(|at| at.is_ipv4() == config.listen.is_ipv4());
            }
        }
    }
}
