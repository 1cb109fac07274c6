// SPDX-License-Identifier: BSD-3-Clause
//! Answers to requests at the control socket.

use linkweir_plane::below::Below;

use super::flight_recorder::FlightRecorder;
use super::peers::Peers;
use super::station::{shown, Reasons};
use super::Gateway;
use crate::config::{self, Config, Peer};
use crate::linux::journal;
use crate::show::control::{Answers, Reply, Request, Response};
use crate::show::figures::{self, BelowShow, NetworkShow, RecordShow, Show};

impl Gateway {
    /// Serves the client with this key.
    pub(super) fn answer(&mut self, now_ns: u64, key: u64) {
        if self.reloading.holds(now_ns) {
            return self.control.hold(key, &self.poll);
        }
        let Gateway {
            control,
            poll,
            config,
            peers,
            egress,
            dropped,
            started_ns,
            recording,
            network,
            ..
        } = self;
        let mut answers = Figures {
            now_ns,
            uptime_s: (now_ns - *started_ns) as f64 * 1e-9,
            config,
            peers,
            below: egress.below.as_ref(),
            record: recording.as_ref().map(FlightRecorder::show),
            dropped,
            network,
        };
        control.serve(now_ns, key, poll, &mut answers);
    }
}

impl Gateway {
    /// Serves clients again that were held during a reload; returns when to look again, ns. Who asks after a reload was
    /// signalled gets figures of the new configuration.
    pub(super) fn release_clients(&mut self, now_ns: u64) -> Option<u64> {
        if !self.control.holds() {
            return None;
        }
        if self.reloading.holds(now_ns) {
            return Some(self.reloading.holds_until_ns());
        }
        self.control.release(&self.poll);
        None
    }
}

/// What a gateway is asked about.
struct Figures<'g> {
    now_ns: u64,
    uptime_s: f64,
    config: &'g Config,
    peers: &'g mut Peers,
    below: Option<&'g Below>,
    record: Option<RecordShow>,
    dropped: &'g Reasons,
    network: &'g NetworkShow,
}

impl Answers for Figures<'_> {
    fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::Show => Reply::Figures(Box::new(self.show())),
            Request::SetCapacity {
                peer,
                path,
                capacity_bps,
            } => {
                let (config, peers) = (self.config, &mut *self.peers);
                let place = (peer, path);
                Reply::Whole(set_capacity(
                    self.now_ns,
                    config,
                    peers,
                    place,
                    capacity_bps,
                ))
            }
        }
    }

    fn peer(&mut self, at: usize) -> Option<Vec<u8>> {
        let (now_ns, config) = (self.now_ns, self.config);
        let station = self.peers.stations.get_mut(at)?;
        let mut show = station.show(now_ns, config, config.peers.get(at)?);
        if let (Some(hub), Some(across)) = (&mut self.peers.hub, &config.across) {
            show.across = Some(figures::across(now_ns, across.info, hub, at));
        }
        serde_json::to_vec(&show).ok()
    }
}

impl Figures<'_> {
    /// All but the figures of peers.
    fn show(&self) -> Show {
        let config = self.config;
        let across = config.across.as_ref();
        Show {
            version: env!("CARGO_PKG_VERSION").to_string(),
            device: config.device.clone(),
            mode: config.mode.name().to_string(),
            policy: config.scheduler.info.name.to_string(),
            across: across.map(|across| across.info.name.to_string()),
            uptime_s: self.uptime_s,
            dropped_pkts: shown(self.dropped),
            log_lost_lines: journal::lost_lines(),
            below: self.below.map(|below| BelowShow {
                capacity_bps: below.capacity_bps(),
                fulls: below.fulls(),
            }),
            record: self.record.clone(),
            network: self.network.clone(),
            peers: Vec::new(),
        }
    }
}

/// Sets the capacity towards the peer of this name, or towards all; where they have several paths, that of the path of this
/// name.
fn set_capacity(
    now_ns: u64,
    config: &Config,
    peers: &mut Peers,
    (name, path): (Option<String>, Option<String>),
    bps: u64,
) -> Response {
    if let Err(fault) = config::reported_bps(bps) {
        return Response::Refused(format!("the capacity {fault}"));
    }
    let asked = |peer: &&Peer| name.as_ref().is_none_or(|name| *name == peer.name);
    if let Some(name) = name
        .as_ref()
        .filter(|_| !config.peers.iter().any(|peer| asked(&peer)))
    {
        return Response::Refused(format!(
            "there is no peer {name}; `linkweir-gateway show` lists them"
        ));
    }
    let place = |peer: &Peer| match &path {
        None => peer.paths.is_empty().then_some(None),
        Some(path) => {
            let at = peer.paths.iter().position(|other| other.name == *path);
            at.map(Some)
        }
    };
    for peer in config.peers.iter().filter(asked) {
        if place(peer).is_none() {
            return Response::Refused(match &path {
                None => format!("peer {} has several paths; name one with --path", peer.name),
                Some(path) => format!("peer {} has no path {path}", peer.name),
            });
        }
    }
    for (at, peer) in config.peers.iter().enumerate() {
        match place(peer).filter(|_| asked(&peer)) {
            None => {}
            Some(None) => peers.set_capacity(now_ns, at, bps),
            Some(Some(path)) => peers.set_path_capacity(now_ns, at, path, bps),
        }
    }
    Response::Done
}
