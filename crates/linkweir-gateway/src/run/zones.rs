// SPDX-License-Identifier: BSD-3-Clause
//! Link-local endpoints: such an address is valid on one device, which the configuration names and the system numbers. The
//! device may come and go, and has another number then.

use std::net::SocketAddr;

use super::peers::Peers;
use crate::config::Config;
use crate::linux::paths;

/// Gives link-local endpoints the present number of their device; returns what was and what is.
pub(super) fn number(config: &mut Config) -> Vec<(usize, SocketAddr, SocketAddr)> {
    let mut changed = Vec::new();
    for (at, peer) in config.peers.iter_mut().enumerate() {
        let (Some(zone), Some(SocketAddr::V6(endpoint))) = (&peer.zone, &mut peer.endpoint) else {
            continue;
        };
        let before = SocketAddr::V6(*endpoint);
        endpoint.set_scope_id(paths::number_or_none(zone));
        let after = SocketAddr::V6(*endpoint);
        if before != after {
            changed.push((at, before, after));
        }
    }
    changed
}

impl Peers {
    /// Follows devices that came or went.
    pub(super) fn renumber_zones(&mut self, config: &mut Config) {
        let changed = number(config);
        if changed.is_empty() {
            return;
        }
        for (at, before, after) in changed {
            let station = &mut self.stations[at];
            // Where it moved to stays.
            if station.endpoint == Some(before) {
                station.endpoint = Some(after);
                station.loop_is_doubted = true;
            }
        }
        self.index_peers(&config.peers);
    }
}
