// SPDX-License-Identifier: BSD-3-Clause
//! The figures of many peers as those of one, class by class: counters are added up, and of waiting times the longest is
//! taken.

use std::collections::BTreeMap;

use crate::show::figures::{ClassShow, PeerShow, Show};

/// How the peers are called together.
const ALL: &str = "all";

/// The figures with one peer in place of all.
#[must_use]
pub(super) fn of_all(show: &Show) -> Show {
    let mut all = PeerShow {
        name: ALL.to_string(),
        endpoint: None,
        looped: show.peers.iter().any(|peer| peer.looped),
        session: None,
        handshake_age_s: None,
        path_mtu_bytes: None,
        program_unlogged_lines: None,
        capacity_expired: show.peers.iter().any(|peer| peer.capacity_expired),
        capacity_bps: 0,
        told_bps: 0,
        received_pkts: 0,
        received_bytes: 0,
        dropped_pkts: BTreeMap::new(),
        across: None,
        feedback: None,
        underlays: Vec::new(),
        paths_agreed: None,
        paths: Vec::new(),
        classes: Vec::new(),
        warnings: Vec::new(),
    };
    for peer in &show.peers {
        all.capacity_bps += peer.capacity_bps;
        all.told_bps += peer.told_bps;
        all.received_pkts += peer.received_pkts;
        all.received_bytes += peer.received_bytes;
        if let Some(lines) = peer.program_unlogged_lines {
            *all.program_unlogged_lines.get_or_insert(0) += lines;
        }
        for (reason, count) in &peer.dropped_pkts {
            *all.dropped_pkts.entry(reason.clone()).or_default() += count;
        }
        if all.classes.is_empty() {
            all.classes = peer.classes.iter().map(only_counted).collect();
        } else {
            for (total, class) in all.classes.iter_mut().zip(&peer.classes) {
                add(total, class);
            }
        }
    }
    Show {
        peers: vec![all],
        version: show.version.clone(),
        device: show.device.clone(),
        mode: show.mode.clone(),
        policy: show.policy.clone(),
        across: show.across.clone(),
        uptime_s: show.uptime_s,
        dropped_pkts: show.dropped_pkts.clone(),
        log_lost_lines: show.log_lost_lines,
        below: show.below.clone(),
        record: show.record.clone(),
        network: show.network.clone(),
    }
}

/// A class without what cannot be added up.
fn only_counted(class: &ClassShow) -> ClassShow {
    ClassShow {
        state: BTreeMap::new(),
        parameters: BTreeMap::new(),
        ..class.clone()
    }
}

fn add(total: &mut ClassShow, class: &ClassShow) {
    total.backlog_pkts += class.backlog_pkts;
    total.backlog_bytes += class.backlog_bytes;
    total.arrived_pkts += class.arrived_pkts;
    total.arrived_bytes += class.arrived_bytes;
    total.sent_pkts += class.sent_pkts;
    total.sent_bytes += class.sent_bytes;
    total.dropped_limit_pkts += class.dropped_limit_pkts;
    total.dropped_policy_pkts += class.dropped_policy_pkts;
    total.dropped_age_pkts += class.dropped_age_pkts;
    total.recent_pkts += class.recent_pkts;
    total.sojourn_sum_ns += class.sojourn_sum_ns;
    total.starved_ns += class.starved_ns;
    if total.sojourn_buckets_pkts.is_empty() {
        total
            .sojourn_buckets_pkts
            .clone_from(&class.sojourn_buckets_pkts);
    } else {
        let buckets = total.sojourn_buckets_pkts.iter_mut();
        for (total, count) in buckets.zip(&class.sojourn_buckets_pkts) {
            *total += count;
        }
    }
    for (total_ns, ns) in [
        (&mut total.sojourn_p50_ns, class.sojourn_p50_ns),
        (&mut total.sojourn_p99_ns, class.sojourn_p99_ns),
        (&mut total.sojourn_max_ns, class.sojourn_max_ns),
        (&mut total.recent_p50_ns, class.recent_p50_ns),
        (&mut total.recent_p99_ns, class.recent_p99_ns),
        (&mut total.recent_max_ns, class.recent_max_ns),
    ] {
        *total_ns = ns.max(*total_ns);
    }
}
