// SPDX-License-Identifier: BSD-3-Clause
//! Answers to requests at the control socket.

use linkweir_plane::below::Below;

use super::peers::Peers;
use super::station::{shown, Reasons};
use super::Gateway;
use crate::config::Config;
use crate::show::control::{Request, Response};
use crate::show::figures::{self, BelowShow, Show};

impl Gateway {
    /// Serves the client with this key.
    pub(super) fn answer(&mut self, now_ns: u64, key: u64) {
        let Gateway {
            control,
            poll,
            config,
            peers,
            egress,
            dropped,
            started_ns,
            ..
        } = self;
        control.serve(key, poll, |request| match request {
            Request::Show => {
                let uptime_s = (now_ns - *started_ns) as f64 * 1e-9;
                let below = egress.below.as_ref();
                let show = show(now_ns, config, peers, below, dropped, uptime_s);
                Response::Show(Box::new(show))
            }
            Request::SetCapacity { peer, capacity_bps } => {
                set_capacity(now_ns, config, peers, peer, capacity_bps)
            }
        });
    }
}

fn show(
    now_ns: u64,
    config: &Config,
    peers: &mut Peers,
    below: Option<&Below>,
    dropped: &Reasons,
    uptime_s: f64,
) -> Show {
    let stations = config.peers.iter().zip(&mut peers.stations);
    let mut shows: Vec<_> = stations
        .map(|(peer, station)| station.show(now_ns, config, peer))
        .collect();
    if let (Some(hub), Some(across)) = (&mut peers.hub, &config.across) {
        for (at, show) in shows.iter_mut().enumerate() {
            show.across = Some(figures::across(now_ns, across.info, hub, at));
        }
    }
    let across = config.across.as_ref();
    Show {
        version: env!("CARGO_PKG_VERSION").to_string(),
        device: config.device.clone(),
        mode: config.mode.name().to_string(),
        policy: config.scheduler.info.name.to_string(),
        across: across.map(|across| across.info.name.to_string()),
        uptime_s,
        dropped_pkts: shown(dropped),
        below: below.map(|below| BelowShow {
            capacity_bps: below.capacity_bps(),
            fulls: below.fulls(),
        }),
        peers: shows,
    }
}

/// Sets the capacity towards the peer of this name, or towards all.
fn set_capacity(
    now_ns: u64,
    config: &Config,
    peers: &mut Peers,
    name: Option<String>,
    bps: u64,
) -> Response {
    let mut known = false;
    for (at, peer) in config.peers.iter().enumerate() {
        if name.as_ref().is_none_or(|name| *name == peer.name) {
            peers.set_capacity(now_ns, at, bps);
            known = true;
        }
    }
    match name {
        Some(name) if !known => Response::Refused(format!(
            "there is no peer {name}; `linkweir-gateway show` lists them"
        )),
        _ => Response::Done,
    }
}
