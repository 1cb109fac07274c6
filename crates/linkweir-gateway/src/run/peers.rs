// SPDX-License-Identifier: BSD-3-Clause
//! The peers of a running gateway, and how one is found by its endpoint, key or session.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use linkweir_plane::hub::Hub;
use linkweir_plane::routing::Routing;

use super::station::Station;
use crate::config::{Config, Peer};
use crate::tunnel::endpoints::Endpoints;
use crate::tunnel::seal::{self, Claim, Identity, Key};

/// Room for a handshake or a keepalive, bytes.
const SCRATCH_BYTES: usize = 2048;

/// All peers.
pub(super) struct Peers {
    /// One per peer, in the order of the configuration.
    pub(super) stations: Vec<Station>,
    /// The link that peers share; none where each has a link of its own.
    pub(super) hub: Option<Hub>,
    /// This end's keys; none in cleartext mode.
    pub(super) identity: Option<Identity>,
    /// Which addresses are behind which peer.
    pub(super) routing: Routing,
    by_endpoint: HashMap<SocketAddr, usize>,
    by_index: HashMap<u32, usize>,
    by_key: HashMap<Key, usize>,
    /// Endpoints in a file, for the gateway that runs after this one.
    pub(super) endpoints: Endpoints,
    /// Index of the last new session.
    pub(super) last_index: u32,
    /// When the timers of sessions are due again, ns.
    pub(super) tick_at_ns: u64,
    pub(super) scratch: Vec<u8>,
}

impl Peers {
    /// Peers as they are configured, with empty queues and without sessions.
    ///
    /// # Errors
    /// A key that cannot be read, or parameters that a policy refuses.
    pub(super) fn new(now_ns: u64, config: &Config) -> io::Result<Peers> {
        let identity = match &config.private_key_file {
            Some(file) => Some(Identity::new(seal::read_key(file)?)),
            None => None,
        };
        let mut last_index = 0;
        let mut stations = config
            .peers
            .iter()
            .map(|peer| Station::new(now_ns, config, peer, identity.as_ref(), &mut last_index))
            .collect::<io::Result<Vec<_>>>()?;
        let queues = stations
            .iter_mut()
            .map(|station| station.link.as_queue(now_ns))
            .collect();
        let hub = config
            .across
            .as_ref()
            .map(|across| Hub::new(now_ns, across, config.fastest_bps(), queues))
            .transpose()
            .map_err(|fault| io::Error::other(fault.to_string()))?;
        let mut peers = Peers {
            stations,
            hub,
            identity,
            routing: Routing::default(),
            by_endpoint: HashMap::new(),
            by_index: HashMap::new(),
            by_key: HashMap::new(),
            endpoints: Endpoints::default(),
            last_index,
            tick_at_ns: now_ns,
            scratch: vec![0; SCRATCH_BYTES],
        };
        peers.index(&config.peers);
        Ok(peers)
    }

    /// Builds the tables by which peers are found.
    pub(super) fn index(&mut self, peers: &[Peer]) {
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

    /// The peer whose configured endpoint this is.
    pub(super) fn at_endpoint(&self, endpoint: &SocketAddr) -> Option<usize> {
        self.by_endpoint.get(endpoint).copied()
    }

    /// The peer that a datagram claims to come from.
    pub(super) fn claimed(&self, claim: &Claim) -> Option<usize> {
        match claim {
            Claim::Session(index) => self.by_index.get(index).copied(),
            Claim::Peer(key) => self.by_key.get(key).copied(),
        }
    }

    /// Packets that wait in all queues.
    pub(super) fn waiting_pkts(&self) -> u32 {
        let links = self.stations.iter().map(|station| &station.link);
        links.map(linkweir_plane::link::Link::waiting_pkts).sum()
    }

    /// Sets the capacity towards a peer, as reported by a program, the control socket or the peer.
    pub(super) fn set_capacity(&mut self, now_ns: u64, at: usize, bps: u64) {
        let link = &mut self.stations[at].link;
        link.set_capacity(now_ns, bps);
        if let Some(hub) = &mut self.hub {
            hub.channel_changed(now_ns, at, link);
        }
    }
}
