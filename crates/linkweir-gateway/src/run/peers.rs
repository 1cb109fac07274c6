// SPDX-License-Identifier: BSD-3-Clause
//! The peers of a running gateway, and how one is found by its endpoint, key or session.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use linkweir_plane::feedback::{Sent, Steer};
use linkweir_plane::hub::Hub;
use linkweir_plane::routing::Routing;

use super::handshake_queue::Handshakes;
use super::peer_programs::has_programs;
use super::secrets::Secrets;
use super::station::Station;
use super::underlays::Devices;
use super::wakes::Wakes;
use crate::config::{Config, Peer};
use crate::linux::leads::Own;
use crate::tunnel::endpoints::{Endpoints, Saver};
use crate::tunnel::indices::Indices;
use crate::tunnel::seal::{Identity, Key};

/// Room for a handshake or a keepalive, bytes.
const SCRATCH_BYTES: usize = 2048;

/// Which addresses are behind which peer of a configuration.
pub(super) fn routing(config: &Config) -> Routing {
    Routing::new(config.peers.iter().map(|peer| peer.allowed.as_slice()))
}

/// All peers.
pub(super) struct Peers {
    /// One per peer, in the order of the configuration.
    pub(super) stations: Vec<Station>,
    /// The link that peers share; none where each has a link of its own.
    pub(super) hub: Option<Hub>,
    /// This end's keys; none in cleartext mode.
    pub(super) identity: Option<Identity>,
    /// Bytes sent on the link to all peers.
    pub(super) sent_bytes: u64,
    /// Which addresses are behind which peer.
    pub(super) routing: Routing,
    by_endpoint: HashMap<SocketAddr, usize>,
    by_index: HashMap<u32, usize>,
    /// The session of `by_index` found last, and its peer: the next datagram is mostly of the same.
    last_session: Option<(u32, usize)>,
    by_key: HashMap<Key, usize>,
    /// Endpoints in a file, for the gateway that runs after this one; none once `saver` has it.
    pub(super) saved_endpoints: Option<Endpoints>,
    /// The thread that saves them, which begins when privileges were given up.
    pub(super) saver: Option<Saver>,
    /// Whether an endpoint has changed since they were saved.
    pub(super) endpoints_changed: bool,
    /// Which peers are served next, and when.
    pub(super) wakes: Wakes,
    pub(super) handshakes: Handshakes,
    /// Number of peers that are tried and have not answered.
    pub(super) away: usize,
    /// Whether a peer with a name fell silent, so that its name is asked for at once.
    pub(super) named_is_silent: bool,
    /// Peers whose capacity a program reports.
    pub(super) with_commands: Vec<usize>,
    /// Indices of sessions.
    pub(super) indices: Indices,
    /// When the timers of sessions are due again, ns.
    pub(super) tick_at_ns: u64,
    pub(super) scratch: Vec<u8>,
    /// What this end's datagrams are known by.
    pub(super) own: Own,
}

impl Peers {
    /// Peers as they are configured, with empty queues and without sessions.
    ///
    /// # Errors
    /// Parameters that a policy refuses.
    pub(super) fn new(now_ns: u64, config: &Config, secrets: Secrets) -> io::Result<Peers> {
        let identity = secrets.private.map(Identity::new);
        let mut preshared = secrets.preshared.into_iter();
        let mut indices = Indices::default();
        let mut stations = config
            .peers
            .iter()
            .map(|peer| {
                let secrets = (identity.as_ref(), preshared.next().flatten());
                Station::new(now_ns, config, peer, secrets, &mut indices)
            })
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
            sent_bytes: 0,
            routing: Routing::default(),
            by_endpoint: HashMap::new(),
            by_index: HashMap::new(),
            last_session: None,
            by_key: HashMap::new(),
            saved_endpoints: None,
            saver: None,
            endpoints_changed: false,
            wakes: Wakes::default(),
            handshakes: Handshakes::default(),
            away: 0,
            named_is_silent: false,
            with_commands: Vec::new(),
            indices,
            tick_at_ns: now_ns,
            scratch: vec![0; SCRATCH_BYTES],
            own: Own::default(),
        };
        let routing = routing(config);
        peers.index(&config.peers, routing);
        Ok(peers)
    }

    /// Builds the tables by which peers are found, but the `routing`, which may have tens of thousands of prefixes. Returns that
    /// of before.
    pub(super) fn index(&mut self, peers: &[Peer], routing: Routing) -> Routing {
        let before = std::mem::replace(&mut self.routing, routing);
        self.index_peers(peers);
        before
    }

    /// Builds the tables by which peers are found from their endpoint, key and session.
    pub(super) fn index_peers(&mut self, peers: &[Peer]) {
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
        self.last_session = None;
        self.indices.keep(self.by_index.keys().copied());
        let numbered = peers.iter().enumerate();
        self.with_commands = numbered
            .filter_map(|(at, peer)| has_programs(peer).then_some(at))
            .collect();
        self.wakes = Wakes::new(self.stations.len());
        self.handshakes.forget_peers();
        for station in &mut self.stations {
            station.is_asking = false;
        }
        self.away = self
            .stations
            .iter()
            .filter(|station| station.is_tried)
            .count();
        self.endpoints_changed = true;
    }

    /// The peer whose configured endpoint this is.
    pub(super) fn at_endpoint(&self, endpoint: &SocketAddr) -> Option<usize> {
        self.by_endpoint.get(endpoint).copied()
    }

    /// The peer whose session has this index.
    pub(super) fn of_session(&mut self, index: u32) -> Option<usize> {
        if let Some((_, at)) = self.last_session.filter(|(last, _)| *last == index) {
            return Some(at);
        }
        let at = self.by_index.get(&index).copied()?;
        self.last_session = Some((index, at));
        Some(at)
    }

    /// The peer with this public key.
    pub(super) fn of_key(&self, key: &Key) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    /// Packets that wait in all queues.
    pub(super) fn waiting_pkts(&self) -> u32 {
        let links = self.stations.iter().map(|station| &station.link);
        links.map(linkweir_plane::link::Link::waiting_pkts).sum()
    }

    /// Sets the capacity towards a peer, as reported by a program, the control socket or the peer.
    pub(super) fn set_capacity(&mut self, now_ns: u64, at: usize, bps: u64) {
        self.wakes.wake(at);
        let link = &mut self.stations[at].link;
        link.set_capacity(now_ns, bps);
        if let Some(hub) = &mut self.hub {
            hub.channel_changed(now_ns, at, link);
        }
    }

    /// Sets the capacity of a path to a peer, as reported at the control socket.
    pub(super) fn set_path_capacity(&mut self, now_ns: u64, at: usize, path: usize, bps: u64) {
        self.wakes.wake(at);
        let link = &mut self.stations[at].link;
        link.set_path_capacity(now_ns, path, bps);
    }

    /// Sets the pace towards a peer, and the capacity that its reports show.
    pub(super) fn steer(&mut self, now_ns: u64, at: usize, steer: Steer) {
        self.wakes.wake(at);
        let link = &mut self.stations[at].link;
        link.steer(now_ns, steer);
        if let Some(hub) = &mut self.hub {
            hub.channel_changed(now_ns, at, link);
        }
    }

    /// Routes or addresses may have changed; datagrams leave through the device of this number `only`. Peers to which nothing
    /// could be sent are looked at again.
    pub(super) fn doubt_paths(&mut self, now_ns: u64, only: Option<u32>) {
        self.own.only = only;
        let mut devices = Devices::new();
        for (at, station) in self.stations.iter_mut().enumerate() {
            if station.doubt_path(now_ns, &mut devices) || station.is_looped {
                self.wakes.wake(at);
            }
        }
    }

    /// What was sent to a peer so far.
    pub(super) fn sent(&self, at: usize) -> Sent {
        let hub = self.hub.as_ref();
        Sent {
            shared_bytes: hub.map(|_| self.sent_bytes),
            ..self.stations[at].sent
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const TWO: &str = r#"[gateway]
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
name = "all"
[[peer]]
name = "ship"
public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
allowed_ips = "10.77.0.2/32"
[[peer]]
name = "hub"
public_key = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="
allowed_ips = "10.77.0.3/32"
"#;

    /// The session found last is remembered, but not across a reload that puts peers into another order.
    #[test]
    fn a_session_is_found_also_where_its_peer_has_another_number() {
        let config = crate::config::parse(TWO, Path::new("up.toml")).unwrap();
        let secrets = Secrets {
            private: Some([7; 32].into()),
            preshared: vec![None; 2],
        };
        let mut peers = Peers::new(0, &config, secrets).unwrap();
        let index = |peers: &Peers, at: usize| peers.stations[at].session.as_ref().unwrap().index();
        let (first, second) = (index(&peers, 0), index(&peers, 1));
        for _ in 0..2 {
            assert_eq!(peers.of_session(first), Some(0));
            assert_eq!(peers.of_session(second), Some(1));
            assert_eq!(peers.of_session(second), Some(1));
        }
        peers.stations.swap(0, 1);
        peers.index_peers(&config.peers);
        assert_eq!(peers.of_session(second), Some(0));
        assert_eq!(peers.of_session(first), Some(1));
        let last = peers.stations.pop();
        peers.index_peers(&config.peers);
        assert!(last.is_some());
        assert_eq!(peers.of_session(first), None);
    }
}
