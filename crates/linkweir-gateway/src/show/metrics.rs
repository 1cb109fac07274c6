// SPDX-License-Identifier: BSD-3-Clause
//! Figures of a gateway for Prometheus (text format 0.0.4). A process of its own serves them and asks at the control socket,
//! so that packets never wait for HTTP.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use crate::show::control::{self, Request, Response};
use crate::show::figures::{
    ClassShow, FeedbackShow, PathShow, PeerShow, PromiseShow, Show, UnderlayShow,
};
use crate::show::http::{self, Answer};
use crate::show::totals;
use linkweir_plane::waits::BOUNDS_NS;

/// Most peers whose figures are written one by one unless that is asked for: each has a hundred samples and more.
pub const MOST_PEERS: usize = 100;

/// A family of samples being written.
struct Family<'t> {
    text: &'t mut String,
    name: &'static str,
}

impl Family<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.sample_of("", labels, value);
    }

    /// A sample whose name has this ending.
    fn sample_of(&mut self, ending: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let _ = writeln!(
            self.text,
            "{}{ending}{{{}}} {value}",
            self.name,
            labels.join(",")
        );
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn family<'t>(text: &'t mut String, name: &'static str, kind: &str, help: &str) -> Family<'t> {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    Family { text, name }
}

/// A sample of a peer.
type OfPeer = (
    &'static str,
    &'static str,
    &'static str,
    fn(&PeerShow) -> f64,
);
/// A sample of a way to a peer; none: it is not known.
type OfUnderlay = (
    &'static str,
    &'static str,
    &'static str,
    fn(&UnderlayShow) -> Option<f64>,
);
/// A sample of a class.
type OfClass = (
    &'static str,
    &'static str,
    &'static str,
    fn(&ClassShow) -> f64,
);
/// A sample of a peer's reports.
type OfFeedback = (
    &'static str,
    &'static str,
    &'static str,
    fn(&FeedbackShow) -> f64,
);

const OF_PEER: &[OfPeer] = &[
    (
        "linkweir_link_capacity_bytes_per_second",
        "gauge",
        "Capacity of the link to the peer.",
        |peer| peer.capacity_bps as f64 / 8.0,
    ),
    (
        "linkweir_link_capacity_expired",
        "gauge",
        "1 while that is the floor, because nothing has reported a capacity for too long.",
        |peer| f64::from(u8::from(peer.capacity_expired)),
    ),
    (
        "linkweir_peer_received_packets_total",
        "counter",
        "Packets received from the peer.",
        |peer| peer.received_pkts as f64,
    ),
    (
        "linkweir_peer_received_bytes_total",
        "counter",
        "Bytes received from the peer, without outer headers.",
        |peer| peer.received_bytes as f64,
    ),
    (
        "linkweir_peer_looped",
        "gauge",
        "1 while nothing is sent to the peer, because the route to it leads into the tunnel itself.",
        |peer| f64::from(u8::from(peer.looped)),
    ),
    (
        "linkweir_peer_session",
        "gauge",
        "1 while packets can be sent to the peer.",
        |peer| f64::from(u8::from(peer.session.unwrap_or(true))),
    ),
];

const OF_FEEDBACK: &[OfFeedback] = &[
    (
        "linkweir_feedback_reports_total",
        "counter",
        "Reports of the peer that were accepted.",
        |feedback| feedback.reports as f64,
    ),
    (
        "linkweir_feedback_queue_seconds",
        "gauge",
        "Last queueing delay on the path to the peer.",
        |feedback| feedback.queue_ns as f64 * 1e-9,
    ),
    (
        "linkweir_feedback_received_bytes_per_second",
        "gauge",
        "Rate that the peer received last, in bytes on the link.",
        |feedback| feedback.received_bps as f64 / 8.0,
    ),
];

const OF_CLASS: &[OfClass] = &[
    (
        "linkweir_class_backlog_packets",
        "gauge",
        "Packets that wait.",
        |class| f64::from(class.backlog_pkts),
    ),
    (
        "linkweir_class_backlog_bytes",
        "gauge",
        "Bytes that wait, outer headers included.",
        |class| class.backlog_bytes as f64,
    ),
    (
        "linkweir_class_arrived_packets_total",
        "counter",
        "Packets that arrived, dropped ones included.",
        |class| class.arrived_pkts as f64,
    ),
    (
        "linkweir_class_sent_packets_total",
        "counter",
        "Packets that left.",
        |class| class.sent_pkts as f64,
    ),
    (
        "linkweir_class_sent_bytes_total",
        "counter",
        "Bytes that left, outer headers included.",
        |class| class.sent_bytes as f64,
    ),
    (
        "linkweir_class_sojourn_p50_seconds",
        "gauge",
        "Half of the packets that left in the last 10 s waited no longer.",
        |class| class.recent_p50_ns as f64 * 1e-9,
    ),
    (
        "linkweir_class_sojourn_p99_seconds",
        "gauge",
        "99 of 100 packets that left in the last 10 s waited no longer.",
        |class| class.recent_p99_ns as f64 * 1e-9,
    ),
    (
        "linkweir_class_sojourn_max_seconds",
        "gauge",
        "No packet that left in the last 10 s waited longer.",
        |class| class.recent_max_ns as f64 * 1e-9,
    ),
    (
        "linkweir_class_starved_seconds_total",
        "counter",
        "How long packets waited while only other classes sent, beyond the first second of each time.",
        |class| class.starved_ns as f64 * 1e-9,
    ),
];

/// Everything a gateway shows; of more than [`MOST_PEERS`] peers the figures of all together, unless each is asked for.
#[must_use]
pub fn summary(show: &Show, per_peer: bool) -> String {
    if per_peer || show.peers.len() <= MOST_PEERS {
        text(show)
    } else {
        text(&totals::of_all(show))
    }
}

/// Everything a gateway shows, peer by peer.
#[must_use]
pub fn text(show: &Show) -> String {
    let mut text = String::new();
    write_gateway(&mut text, show);
    write_peers(&mut text, show);
    write_underlays(&mut text, show);
    write_paths(&mut text, show);
    write_shared_link(&mut text, show);
    write_classes(&mut text, show);
    text
}

fn write_gateway(text: &mut String, show: &Show) {
    let device = show.device.as_str();
    let mut info = family(
        text,
        "linkweir_build_info",
        "gauge",
        "The gateway's version.",
    );
    info.sample(
        &[
            ("device", device),
            ("version", &show.version),
            ("policy", &show.policy),
            ("mode", &show.mode),
        ],
        1.0,
    );
    let help = "Packets and datagrams that belong to no peer and were dropped.";
    let mut dropped = family(text, "linkweir_dropped_packets_total", "counter", help);
    for (reason, count) in &show.dropped_pkts {
        dropped.sample(&[("device", device), ("reason", reason)], *count as f64);
    }
    write_network(text, show);
    let name = "linkweir_log_lost_lines_total";
    let help =
        "Lines of the log that were lost, because it was not read in time or could not be written.";
    family(text, name, "counter", help).sample(&[("device", device)], show.log_lost_lines as f64);
    if let Some(below) = &show.below {
        let labels = [("device", device)];
        let name = "linkweir_below_full_total";
        let help = "How often the interface below was full.";
        family(text, name, "counter", help).sample(&labels, below.fulls as f64);
        if let Some(bps) = below.capacity_bps {
            let name = "linkweir_below_capacity_bytes_per_second";
            let help = "Rate of the interface below when it was last full.";
            family(text, name, "gauge", help).sample(&labels, bps as f64 / 8.0);
        }
    }
    if let Some(record) = &show.record {
        let labels = [("device", device)];
        let name = "linkweir_record_written_bytes_total";
        let help = "Bytes of recordings written.";
        family(text, name, "counter", help).sample(&labels, record.written_bytes as f64);
        let name = "linkweir_record_lost_blocks_total";
        let help = "Blocks of recordings, of a second each, that the disk did not take in time.";
        family(text, name, "counter", help).sample(&labels, record.lost_blocks as f64);
        let name = "linkweir_record_changed_files_total";
        let help = "Files of recordings that another program removed, replaced or changed while they were written.";
        family(text, name, "counter", help).sample(&labels, record.changed_files as f64);
        let name = "linkweir_record_fails";
        let help = "1 while recordings cannot be written.";
        let fails = f64::from(u8::from(record.fails));
        family(text, name, "gauge", help).sample(&labels, fails);
    }
}

/// Samples of what the gateway has in the system's network.
fn write_network(text: &mut String, show: &Show) {
    let device = show.device.as_str();
    let network = &show.network;
    let help = "What another program removed of the tunnel's network, and the gateway restored.";
    let name = "linkweir_network_restored_total";
    let mut restored = family(text, name, "counter", help);
    for (what, count) in [
        ("rule", network.restored_rules),
        ("route", network.restored_routes),
        ("address", network.restored_addresses),
        ("mtu", network.restored_mtus),
    ] {
        restored.sample(&[("device", device), ("what", what)], count as f64);
    }
    let labels = [("device", device)];
    let help = "Addresses, routes and rules of the tunnel that are missing and cannot be added.";
    family(text, "linkweir_network_missing", "gauge", help).sample(&labels, network.missing as f64);
    let help = "1 while another program removes them as fast as they are added, until 10 s without a removal.";
    family(text, "linkweir_network_contested", "gauge", help)
        .sample(&labels, f64::from(u8::from(network.contested)));
    let help = "1 while the tunnel's rules, routes and addresses are watched and restored.";
    family(text, "linkweir_network_watched", "gauge", help)
        .sample(&labels, f64::from(u8::from(network.watched)));
}

fn write_peers(text: &mut String, show: &Show) {
    let device = show.device.as_str();
    for (name, kind, help, value) in OF_PEER {
        let mut family = family(text, name, kind, help);
        for peer in &show.peers {
            family.sample(&[("device", device), ("peer", &peer.name)], value(peer));
        }
    }
    let name = "linkweir_peer_handshake_age_seconds";
    let help = "How long ago the keys of the peer's session were agreed on.";
    let mut age = family(text, name, "gauge", help);
    for peer in &show.peers {
        if let Some(age_s) = peer.handshake_age_s {
            age.sample(&[("device", device), ("peer", &peer.name)], age_s);
        }
    }
    let help = "Longest packet that the path to the peer carries, where that is probed.";
    let mut path_mtu = family(text, "linkweir_peer_path_mtu_bytes", "gauge", help);
    for peer in &show.peers {
        if let Some(bytes) = peer.path_mtu_bytes {
            let labels = [("device", device), ("peer", peer.name.as_str())];
            path_mtu.sample(&labels, bytes.into());
        }
    }
    let name = "linkweir_program_unlogged_lines_total";
    let help = "Lines that the program of a peer printed and the log left out.";
    let mut unlogged = family(text, name, "counter", help);
    for peer in &show.peers {
        if let Some(lines) = peer.program_unlogged_lines {
            let labels = [("device", device), ("peer", peer.name.as_str())];
            unlogged.sample(&labels, lines as f64);
        }
    }
    let help = "Packets of a peer dropped outside the queues.";
    let mut dropped = family(text, "linkweir_peer_dropped_packets_total", "counter", help);
    for peer in &show.peers {
        for (reason, count) in &peer.dropped_pkts {
            let labels = [("device", device), ("peer", &peer.name), ("reason", reason)];
            dropped.sample(&labels, *count as f64);
        }
    }
    for (name, kind, help, value) in OF_FEEDBACK {
        let mut family = family(text, name, kind, help);
        for peer in &show.peers {
            if let Some(feedback) = &peer.feedback {
                family.sample(&[("device", device), ("peer", &peer.name)], value(feedback));
            }
        }
    }
}

/// Samples of the ways to peers that have several.
fn write_underlays(text: &mut String, show: &Show) {
    const FAMILIES: [OfUnderlay; 4] = [
        (
            "linkweir_underlay_in_use",
            "gauge",
            "Whether packets to the peer are sent over this way.",
            |way| Some(f64::from(u8::from(way.in_use))),
        ),
        (
            "linkweir_underlay_answers",
            "gauge",
            "Whether the peer answers over this way.",
            |way| Some(f64::from(u8::from(way.answers_now))),
        ),
        (
            "linkweir_underlay_answers_total",
            "counter",
            "Probes that the peer answered over this way.",
            |way| Some(way.answers as f64),
        ),
        (
            "linkweir_underlay_round_trip_seconds",
            "gauge",
            "Round trip of the last probe that was answered over this way.",
            |way| way.rtt_ns.map(|ns| ns as f64 * 1e-9),
        ),
    ];
    for (name, kind, help, value) in FAMILIES {
        let mut family = family(text, name, kind, help);
        for peer in &show.peers {
            for way in &peer.underlays {
                let labels = [
                    ("device", show.device.as_str()),
                    ("peer", &peer.name),
                    ("underlay", &way.name),
                ];
                if let Some(value) = value(way) {
                    family.sample(&labels, value);
                }
            }
        }
    }
}

/// Name, kind, help and value of a figure of a path.
type OfPath = (
    &'static str,
    &'static str,
    &'static str,
    fn(&PathShow) -> Option<f64>,
);

/// Samples of the paths to peers that are used at once, and of what comes over them.
fn write_paths(text: &mut String, show: &Show) {
    const FAMILIES: [OfPath; 10] = [
        (
            "linkweir_path_in_use",
            "gauge",
            "Whether packets to the peer are sent over this path.",
            |path| Some(f64::from(u8::from(path.in_use))),
        ),
        (
            "linkweir_path_answers",
            "gauge",
            "Whether the peer answers over this path.",
            |path| Some(f64::from(u8::from(path.answers_now))),
        ),
        (
            "linkweir_path_round_trip_seconds",
            "gauge",
            "Round trip of probes over this path, smoothed.",
            |path| path.rtt_ns.map(|ns| ns as f64 * 1e-9),
        ),
        (
            "linkweir_path_capacity_bytes_per_second",
            "gauge",
            "Capacity of this path.",
            |path| Some(path.capacity_bps as f64 / 8.0),
        ),
        (
            "linkweir_path_sent_packets_total",
            "counter",
            "Packets sent over this path, copies and repetitions included.",
            |path| Some(path.sent_pkts as f64),
        ),
        (
            "linkweir_path_sent_bytes_total",
            "counter",
            "Their bytes on the link.",
            |path| Some(path.sent_bytes as f64),
        ),
        (
            "linkweir_path_copied_packets_total",
            "counter",
            "Copies among them.",
            |path| Some(path.copied_pkts as f64),
        ),
        (
            "linkweir_path_resent_packets_total",
            "counter",
            "Packets among them that were sent again as another path died.",
            |path| Some(path.resent_pkts as f64),
        ),
        (
            "linkweir_path_dropped_copies_total",
            "counter",
            "Copies that were dropped, as too many waited.",
            |path| Some(path.dropped_copies_pkts as f64),
        ),
        (
            "linkweir_path_received_packets_total",
            "counter",
            "Packets that came over this path.",
            |path| Some(path.received_pkts as f64),
        ),
    ];
    for (name, kind, help, value) in FAMILIES {
        let mut family = family(text, name, kind, help);
        for peer in &show.peers {
            for path in &peer.paths {
                let labels = [
                    ("device", show.device.as_str()),
                    ("peer", &peer.name),
                    ("path", &path.name),
                ];
                if let Some(value) = value(path) {
                    family.sample(&labels, value);
                }
            }
        }
    }
    write_restored(text, show);
}

/// Samples of numbered packets that came, and of reservations that the paths cannot carry.
fn write_restored(text: &mut String, show: &Show) {
    let device = show.device.as_str();
    let classes = || {
        let peers = show.peers.iter();
        peers.flat_map(|peer| peer.classes.iter().map(|class| (peer.name.as_str(), class)))
    };
    let help = "What became of numbered packets of the peer's class: in order, or dropped.";
    let name = "linkweir_class_restored_packets_total";
    let mut packets = family(text, name, "counter", help);
    for (peer, class) in classes() {
        let Some(restored) = &class.restored else {
            continue;
        };
        for (what, pkts) in [
            ("delivered", restored.delivered_pkts),
            ("duplicate", restored.duplicate_pkts),
            ("late", restored.late_pkts),
            ("given_up", restored.given_up_pkts),
            ("reordered", restored.reordered_pkts),
        ] {
            let labels = [
                ("device", device),
                ("peer", peer),
                ("class", &class.name),
                ("what", what),
            ];
            packets.sample(&labels, pkts as f64);
        }
    }
    type OfPromise = (&'static str, &'static str, fn(&PromiseShow) -> u64);
    const PARTS: [OfPromise; 2] = [
        (
            "linkweir_class_reserved_bytes_per_second",
            "Reservation of which the paths that are up cannot carry all.",
            |promise| promise.reserved_bps,
        ),
        (
            "linkweir_class_kept_bytes_per_second",
            "What of it they can carry.",
            |promise| promise.kept_bps,
        ),
    ];
    for (name, help, value) in PARTS {
        let mut rates = family(text, name, "gauge", help);
        for (peer, class) in classes() {
            if let Some(promise) = &class.promise {
                let labels = [("device", device), ("peer", peer), ("class", &class.name)];
                rates.sample(&labels, value(promise) as f64 / 8.0);
            }
        }
    }
}

/// Samples of the link that peers share.
fn write_shared_link(text: &mut String, show: &Show) {
    let device = show.device.as_str();
    let shared = || {
        let peers = show.peers.iter();
        peers.filter_map(|peer| Some((peer.name.as_str(), peer.across.as_ref()?)))
    };
    let name = "linkweir_peer_airtime_seconds_total";
    let help = "How long the peer's packets occupied the link that peers share.";
    let mut airtime = family(text, name, "counter", help);
    for (peer, across) in shared() {
        let labels = [("device", device), ("peer", peer)];
        airtime.sample(&labels, across.airtime_ns as f64 * 1e-9);
    }
    let help = "What the policy among peers shows of a peer, in the unit its name says.";
    let mut state = family(text, "linkweir_peer_state", "gauge", help);
    for (peer, across) in shared() {
        for (what, value) in &across.state {
            let labels = [("device", device), ("peer", peer), ("state", what)];
            state.sample(&labels, *value as f64);
        }
    }
}

fn write_classes(text: &mut String, show: &Show) {
    let device = show.device.as_str();
    let classes = || {
        let peers = show.peers.iter();
        peers.flat_map(|peer| {
            peer.classes
                .iter()
                .map(move |class| (peer.name.as_str(), class))
        })
    };
    for (name, kind, help, value) in OF_CLASS {
        let mut family = family(text, name, kind, help);
        for (peer, class) in classes() {
            let labels = [("device", device), ("peer", peer), ("class", &class.name)];
            family.sample(&labels, value(class));
        }
    }
    let help = "Packets dropped in the queues.";
    let mut dropped = family(
        text,
        "linkweir_class_dropped_packets_total",
        "counter",
        help,
    );
    for (peer, class) in classes() {
        for (reason, count) in [
            ("limit", class.dropped_limit_pkts),
            ("age", class.dropped_age_pkts),
            ("policy", class.dropped_policy_pkts),
        ] {
            let labels = [
                ("device", device),
                ("peer", peer),
                ("class", &class.name),
                ("reason", reason),
            ];
            dropped.sample(&labels, count as f64);
        }
    }
    write_histograms(text, show);
    let help = "What the policy shows of a class, in the unit its name says.";
    let mut state = family(text, "linkweir_class_state", "gauge", help);
    for (peer, class) in classes() {
        for (what, value) in &class.state {
            let labels = [
                ("device", device),
                ("peer", peer),
                ("class", &class.name),
                ("state", what),
            ];
            state.sample(&labels, *value as f64);
        }
    }
    let help =
        "1 for each class whose flows have queues of their own; the label names their policy.";
    let mut flows = family(text, "linkweir_class_flows", "gauge", help);
    for (peer, class) in classes() {
        if let Some(policy) = &class.flows {
            let labels = [
                ("device", device),
                ("peer", peer),
                ("class", &class.name),
                ("policy", policy),
            ];
            flows.sample(&labels, 1.0);
        }
    }
}

/// Waiting times since the start, of classes that have sent something.
fn write_histograms(text: &mut String, show: &Show) {
    let device = show.device.as_str();
    let name = "linkweir_class_sojourn_seconds";
    let help = "How long packets that left waited.";
    let mut waits = family(text, name, "histogram", help);
    for peer in &show.peers {
        let sent = peer.classes.iter();
        for class in sent.filter(|class| !class.sojourn_buckets_pkts.is_empty()) {
            let labels = [
                ("device", device),
                ("peer", peer.name.as_str()),
                ("class", class.name.as_str()),
            ];
            let bounds = BOUNDS_NS.iter().map(|ns| (*ns as f64 / 1e9).to_string());
            let counts = class.sojourn_buckets_pkts.iter().chain([&class.sent_pkts]);
            for (bound, count) in bounds.chain(["+Inf".to_string()]).zip(counts) {
                let [device, peer, class] = labels;
                let labels = [device, peer, class, ("le", bound.as_str())];
                waits.sample_of("_bucket", &labels, *count as f64);
            }
            waits.sample_of("_sum", &labels, class.sojourn_sum_ns as f64 / 1e9);
            waits.sample_of("_count", &labels, class.sent_pkts as f64);
        }
    }
}

/// Serves `/metrics` of the gateway at a control socket, for ever, to those who ask for an address, for localhost or for
/// one of these names. A browser that another site made ask here by a name of its own gets nothing.
///
/// # Errors
/// When the address cannot be listened on.
pub fn serve(
    listen: SocketAddr,
    names: &[String],
    per_peer: bool,
    control: &Path,
) -> io::Result<()> {
    let is_here = |host: &str| {
        let mut names = names.iter().map(String::as_str).chain(["localhost"]);
        http::is_address(host) || names.any(|name| http::is_name(host, name))
    };
    http::serve(listen, "", |request| {
        if !request.host.is_some_and(is_here) {
            return Answer::misdirected(
                "ask for an address or localhost, or serve this with --name HOST",
            );
        }
        if request.path != "/metrics" {
            return Answer::refusal("404 Not Found", "not found; ask for /metrics");
        }
        match control::ask(control, &Request::Show) {
            Ok(Response::Show(show)) => Answer::ok(
                "text/plain; version=0.0.4",
                summary(&show, per_peer).into_bytes(),
            ),
            Ok(_) => Answer::refusal(
                "502 Bad Gateway",
                "the gateway is of another version than this program; restart the gateway",
            ),
            Err(error) => Answer::refusal("502 Bad Gateway", &error.to_string()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::figures::{
        AcrossShow, BelowShow, LimitShow, NetworkShow, RecordShow, RestoredShow,
    };
    use std::collections::{BTreeMap, BTreeSet};

    fn show() -> Show {
        let class = |name: &str| ClassShow {
            name: name.to_string(),
            backlog_pkts: 3,
            backlog_bytes: 4500,
            arrived_pkts: 10,
            arrived_bytes: 15_000,
            sent_pkts: 5,
            sent_bytes: 7500,
            dropped_limit_pkts: 1,
            dropped_policy_pkts: 1,
            dropped_age_pkts: 4,
            sojourn_p50_ns: 1_500_000,
            sojourn_p99_ns: 20_000_000,
            sojourn_max_ns: 30_000_000,
            recent_p50_ns: 1_500_000,
            recent_p99_ns: 20_000_000,
            recent_max_ns: 30_000_000,
            recent_pkts: 5,
            sojourn_buckets_pkts: vec![0, 0, 1, 2, 3, 3, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5],
            sojourn_sum_ns: 60_000_000,
            starved_ns: 2_500_000_000,
            limit: LimitShow::default(),
            flows: (name == "rest").then(|| "fq_codel".to_string()),
            restored: (name == "ef").then_some(RestoredShow {
                delivered_pkts: 20,
                duplicate_pkts: 19,
                late_pkts: 1,
                given_up_pkts: 2,
                reordered_pkts: 3,
                held_pkts: 4,
                held_bytes: 5,
            }),
            promise: (name == "ef").then_some(PromiseShow {
                reserved_bps: 8000,
                kept_bps: 4000,
            }),
            state: BTreeMap::from([("credit_bits".to_string(), -5)]),
            parameters: BTreeMap::from([("level".to_string(), 2)]),
        };
        Show {
            version: "1.2.3".to_string(),
            device: "lw0".to_string(),
            mode: "wireguard".to_string(),
            policy: "pss".to_string(),
            across: Some("pf".to_string()),
            uptime_s: 1.0,
            dropped_pkts: BTreeMap::from([("forged".to_string(), 7)]),
            log_lost_lines: 11,
            below: Some(BelowShow {
                capacity_bps: Some(8000),
                fulls: 6,
            }),
            network: NetworkShow {
                restored_rules: 6,
                contested: true,
                missing: 2,
                ..NetworkShow::new()
            },
            record: Some(RecordShow {
                folder: "/var/lib/linkweir".to_string(),
                written_bytes: 12_345,
                lost_blocks: 3,
                changed_files: 2,
                fails: true,
            }),
            peers: vec![PeerShow {
                name: "a \"ship\"\\".to_string(),
                endpoint: None,
                session: Some(false),
                handshake_age_s: Some(3.5),
                looped: false,
                path_mtu_bytes: Some(1300),
                program_unlogged_lines: Some(12),
                capacity_expired: false,
                capacity_bps: 20_000_000,
                told_bps: 20_000_000,
                received_pkts: 4,
                received_bytes: 400,
                dropped_pkts: BTreeMap::from([("malformed".to_string(), 2)]),
                across: Some(AcrossShow {
                    airtime_ns: 1_250_000_000,
                    state: BTreeMap::from([("mean".to_string(), 8)]),
                }),
                feedback: Some(FeedbackShow {
                    reports: 9,
                    queue_ns: 4_000_000,
                    received_bps: 800,
                    period_ns: None,
                }),
                warnings: Vec::new(),
                underlays: vec![UnderlayShow {
                    name: "lte".to_string(),
                    endpoint: "192.0.2.1:51820".parse().unwrap(),
                    in_use: true,
                    answers_now: true,
                    answers: 7,
                    rtt_ns: Some(40_000_000),
                }],
                paths_agreed: Some(true),
                paths: vec![PathShow {
                    name: "sat".to_string(),
                    endpoint: None,
                    in_use: true,
                    answers_now: true,
                    broken: false,
                    too_far: false,
                    rtt_ns: Some(20_000_000),
                    capacity_bps: 16_000,
                    capacity_expired: false,
                    cost: 3,
                    sent_pkts: 30,
                    sent_bytes: 3000,
                    copied_pkts: 10,
                    resent_pkts: 2,
                    dropped_copies_pkts: 1,
                    received_pkts: 40,
                    received_bytes: 4000,
                    feedback: None,
                }],
                classes: vec![class("ef"), class("rest")],
            }],
        }
    }

    #[test]
    fn samples_are_written_as_prometheus_reads_them() {
        let text = text(&show());
        for line in [
            "linkweir_link_capacity_bytes_per_second{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\"} 2500000",
            "linkweir_peer_session{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\"} 0",
            "linkweir_peer_path_mtu_bytes{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\"} 1300",
            "linkweir_peer_handshake_age_seconds{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\"} 3.5",
            "linkweir_dropped_packets_total{device=\"lw0\",reason=\"forged\"} 7",
            "linkweir_peer_airtime_seconds_total{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\"} 1.25",
            "linkweir_feedback_reports_total{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\"} 9",
            "linkweir_feedback_queue_seconds{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\"} 0.004",
            "linkweir_feedback_received_bytes_per_second{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\"} 100",
            "linkweir_below_capacity_bytes_per_second{device=\"lw0\"} 1000",
            "linkweir_below_full_total{device=\"lw0\"} 6",
            "linkweir_network_restored_total{device=\"lw0\",what=\"rule\"} 6",
            "linkweir_network_restored_total{device=\"lw0\",what=\"mtu\"} 0",
            "linkweir_network_missing{device=\"lw0\"} 2",
            "linkweir_network_contested{device=\"lw0\"} 1",
            "linkweir_network_watched{device=\"lw0\"} 1",
            "linkweir_record_written_bytes_total{device=\"lw0\"} 12345",
            "linkweir_record_lost_blocks_total{device=\"lw0\"} 3",
            "linkweir_record_changed_files_total{device=\"lw0\"} 2",
            "linkweir_log_lost_lines_total{device=\"lw0\"} 11",
            "linkweir_program_unlogged_lines_total{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\"} 12",
            "linkweir_record_fails{device=\"lw0\"} 1",
            "linkweir_underlay_round_trip_seconds{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",underlay=\"lte\"} 0.04",
            "linkweir_path_round_trip_seconds{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",path=\"sat\"} 0.02",
            "linkweir_path_capacity_bytes_per_second{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",path=\"sat\"} 2000",
            "linkweir_path_copied_packets_total{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",path=\"sat\"} 10",
            "linkweir_class_restored_packets_total{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"ef\",what=\"duplicate\"} 19",
            "linkweir_class_kept_bytes_per_second{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"ef\"} 500",
            "linkweir_peer_state{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",state=\"mean\"} 8",
            "linkweir_class_sojourn_p99_seconds{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"ef\"} 0.02",
            "linkweir_class_dropped_packets_total{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"rest\",reason=\"limit\"} 1",
            "linkweir_class_dropped_packets_total{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"rest\",reason=\"age\"} 4",
            "linkweir_class_starved_seconds_total{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"rest\"} 2.5",
            "linkweir_class_sojourn_seconds_bucket{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"ef\",le=\"0.0005\"} 1",
            "linkweir_class_sojourn_seconds_bucket{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"ef\",le=\"10\"} 5",
            "linkweir_class_sojourn_seconds_bucket{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"ef\",le=\"+Inf\"} 5",
            "linkweir_class_sojourn_seconds_sum{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"ef\"} 0.06",
            "linkweir_class_sojourn_seconds_count{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"ef\"} 5",
            "linkweir_class_flows{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"rest\",policy=\"fq_codel\"} 1",
            "linkweir_class_state{device=\"lw0\",peer=\"a \\\"ship\\\"\\\\\",class=\"ef\",state=\"credit_bits\"} -5",
        ] {
            assert!(text.lines().any(|written| written == line), "{line}\n{text}");
        }
    }

    #[test]
    fn many_peers_are_written_as_one_unless_each_is_asked_for() {
        let mut show = show();
        let peer = show.peers[0].clone();
        let named = |number: usize| PeerShow {
            name: format!("peer{number}"),
            ..peer.clone()
        };
        show.peers = (0..MOST_PEERS).map(named).collect();
        assert_eq!(summary(&show, false), text(&show), "a hundred are few");
        show.peers.push(named(MOST_PEERS));
        show.peers[7].classes[0].recent_p99_ns = 70_000_000;
        assert_eq!(summary(&show, true), text(&show));
        let all = summary(&show, false);
        let sent = 101 * peer.classes[0].sent_pkts;
        for line in [
            format!("linkweir_class_sent_packets_total{{device=\"lw0\",peer=\"all\",class=\"ef\"}} {sent}"),
            "linkweir_peer_dropped_packets_total{device=\"lw0\",peer=\"all\",reason=\"malformed\"} 202".to_string(),
            format!("linkweir_class_sojourn_seconds_count{{device=\"lw0\",peer=\"all\",class=\"ef\"}} {sent}"),
        ] {
            assert!(all.lines().any(|written| written == line), "{line}\n{all}");
        }
        assert!(
            all.contains("class=\"ef\"} 0.07\n"),
            "the longest of all: {all}"
        );
        assert!(!all.contains("peer7"), "{all}");
    }

    #[test]
    fn families_are_declared_once_and_named_as_is_the_custom() {
        let text = text(&show());
        let mut declared = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(declared.insert(name, kind), None, "{name} twice");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
                continue;
            }
            if line.starts_with("# HELP ") {
                continue;
            }
            let (name, rest) = line.split_once('{').unwrap();
            let histogram = ["_bucket", "_sum", "_count"];
            let base = histogram.iter().find_map(|end| name.strip_suffix(end));
            let is_part = base.is_some_and(|base| declared.get(base) == Some(&"histogram"));
            assert!(is_part || declared.contains_key(name), "{line}");
            let (labels, value) = rest.rsplit_once("} ").unwrap();
            value.parse::<f64>().unwrap();
            assert!(seen.insert((name, labels)), "twice: {line}");
        }
        assert!(text.ends_with('\n'));
    }
}
