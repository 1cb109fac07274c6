// SPDX-License-Identifier: BSD-3-Clause
//! The figures that a running gateway shows. Keys carry their units; counters begin at 0 when the gateway starts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use linkweir_config::queue;
use linkweir_config::units::{self, Kind};
use linkweir_core::{Limit, PolicyInfo, UNSET};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use linkweir_plane::feedback::Feedback;
use linkweir_plane::hub::Hub;
use linkweir_plane::link::Link;
use linkweir_plane::waits::Waits;

/// A gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Show {
    /// Its version.
    pub version: String,
    /// Its device.
    pub device: String,
    /// How packets travel.
    pub mode: String,
    /// Its policy.
    pub policy: String,
    /// The policy among peers; none where each has a link of its own.
    pub across: Option<String>,
    /// Time since its start, s.
    pub uptime_s: f64,
    /// Packets from the device that no peer is responsible for or that are no IP, by reason.
    pub dropped_pkts: BTreeMap<String, u64>,
    /// Lines of the log that were lost, because it was not read in time or could not be written.
    #[serde(default)]
    pub log_lost_lines: u64,
    /// The interface below; none without `link.below`.
    pub below: Option<BelowShow>,
    /// The flight recorder; none without `[record]`.
    #[serde(default)]
    pub record: Option<RecordShow>,
    /// What the gateway has in the system's network.
    #[serde(default = "NetworkShow::new")]
    pub network: NetworkShow,
    /// Its peers.
    pub peers: Vec<PeerShow>,
}

/// Rules, routes and addresses of a gateway in the system's network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkShow {
    /// Whether they are watched and restored.
    pub watched: bool,
    /// Rules that another program removed, and that were added again.
    pub restored_rules: u64,
    /// Routes, likewise.
    pub restored_routes: u64,
    /// Addresses, likewise.
    pub restored_addresses: u64,
    /// How often the device's MTU was set again.
    pub restored_mtus: u64,
    /// Whether another program removes them as fast as they are added.
    pub contested: bool,
    /// Number of things that are missing and cannot be added now.
    pub missing: u64,
    /// The first of them, in sentences.
    pub missing_first: Vec<String>,
}

/// The interface below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BelowShow {
    /// Its rate when it was last full, bit/s on the link; none: it never was.
    pub capacity_bps: Option<u64>,
    /// Number of times it was full.
    pub fulls: u64,
}

/// The flight recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordShow {
    /// Where its files are.
    pub folder: String,
    /// Bytes written since the start.
    pub written_bytes: u64,
    /// Blocks, of a second each, that the disk did not take in time.
    pub lost_blocks: u64,
    /// Files that another program removed, replaced or changed while they were being written.
    #[serde(default)]
    pub changed_files: u64,
    /// Whether the last attempt to write failed.
    pub fails: bool,
}

/// A peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerShow {
    /// Its name.
    pub name: String,
    /// Where its datagrams are sent; none: not known yet.
    pub endpoint: Option<SocketAddr>,
    /// Whether there is a session; none in cleartext mode.
    pub session: Option<bool>,
    /// Whether nothing is sent, because the route to its endpoint leads into the tunnel itself.
    #[serde(default)]
    pub looped: bool,
    /// How long ago its keys were agreed on, s; none without a session.
    pub handshake_age_s: Option<f64>,
    /// Capacity of the way there, bit/s.
    pub capacity_bps: u64,
    /// Whether it is the floor, because nothing has reported a capacity for too long.
    #[serde(default)]
    pub capacity_expired: bool,
    /// The capacity that the scheduler was given, bit/s.
    pub told_bps: u64,
    /// Packets received from it.
    pub received_pkts: u64,
    /// Their bytes, without outer headers.
    pub received_bytes: u64,
    /// Datagrams from it and packets to it that were dropped outside the queues, by reason.
    pub dropped_pkts: BTreeMap<String, u64>,
    /// Its part of the link that peers share; none where each has a link of its own.
    pub across: Option<AcrossShow>,
    /// Its reports; none without `feedback`.
    pub feedback: Option<FeedbackShow>,
    /// The longest packet that the path to it carries, bytes; none without `probe_mtu`.
    #[serde(default)]
    pub path_mtu_bytes: Option<u32>,
    /// Lines that its program printed and the log left out; none without `command`.
    #[serde(default)]
    pub program_unlogged_lines: Option<u64>,
    /// The ways to it, in the order of preference; empty where there is but one.
    #[serde(default)]
    pub underlays: Vec<UnderlayShow>,
    /// Whether it has agreed to use several paths at once; none: none are configured.
    #[serde(default)]
    pub paths_agreed: Option<bool>,
    /// The paths to it that are used at once.
    #[serde(default)]
    pub paths: Vec<PathShow>,
    /// Its classes.
    pub classes: Vec<ClassShow>,
    /// Settings that do not do at this capacity what they seem to, with the cure.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// One of several ways to a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderlayShow {
    /// Its name.
    pub name: String,
    /// Where its datagrams are sent.
    pub endpoint: SocketAddr,
    /// Whether packets are sent over it.
    pub in_use: bool,
    /// Whether it answers at present.
    pub answers_now: bool,
    /// Number of probes that were answered.
    pub answers: u64,
    /// Round trip of the last of them, ns; none: there was none.
    pub rtt_ns: Option<u64>,
}

/// One of several paths to a peer that are used at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathShow {
    /// Its name.
    pub name: String,
    /// Where its datagrams are sent; none: the peer has not sent over it yet.
    pub endpoint: Option<SocketAddr>,
    /// Whether packets are sent over it.
    pub in_use: bool,
    /// Whether it answers at present.
    pub answers_now: bool,
    /// Whether the system cannot use it at present.
    pub broken: bool,
    /// Whether it is left out as its packets would come behind the far end's window.
    pub too_far: bool,
    /// Its round trip, smoothed, ns; none: it does not answer.
    pub rtt_ns: Option<u64>,
    /// Its capacity, bit/s.
    pub capacity_bps: u64,
    /// Whether that is the floor, because nothing has reported a capacity for too long.
    pub capacity_expired: bool,
    /// Its cost.
    pub cost: u32,
    /// Packets sent over it, copies and repetitions included.
    pub sent_pkts: u64,
    /// Their bytes on the link.
    pub sent_bytes: u64,
    /// Copies among them.
    pub copied_pkts: u64,
    /// Packets among them that were sent again as another path died.
    pub resent_pkts: u64,
    /// Copies that were dropped, as too many waited.
    pub dropped_copies_pkts: u64,
    /// Packets that came over it.
    pub received_pkts: u64,
    /// Their bytes, without outer headers.
    pub received_bytes: u64,
    /// Its reports; none without `feedback`.
    pub feedback: Option<FeedbackShow>,
}

/// What happened to numbered packets of a class of the peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestoredShow {
    /// Packets that were handed out.
    pub delivered_pkts: u64,
    /// Packets that came a second time, and were dropped.
    pub duplicate_pkts: u64,
    /// Packets that came after they were given up, and were dropped.
    pub late_pkts: u64,
    /// Numbers that were given up.
    pub given_up_pkts: u64,
    /// Packets that came after one with a later number.
    pub reordered_pkts: u64,
    /// Packets that are held now.
    pub held_pkts: u64,
    /// Their bytes.
    pub held_bytes: u64,
}

/// A reservation of which the paths that are up cannot carry all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromiseShow {
    /// What is reserved, bit/s.
    pub reserved_bps: u64,
    /// What of it they carry, bit/s.
    pub kept_bps: u64,
}

/// Figures from a peer's reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedbackShow {
    /// Reports accepted.
    pub reports: u64,
    /// The last queueing delay on the path, ns.
    pub queue_ns: u64,
    /// The rate that it received last, bit/s on the link.
    pub received_bps: u64,
    /// The period at which the path changes by schedule, ns; none is known.
    #[serde(default)]
    pub period_ns: Option<u64>,
}

/// A peer's part of a link that peers share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcrossShow {
    /// Time for which its packets occupied the link, ns.
    pub airtime_ns: u64,
    /// State of the policy among peers, by name and unit.
    pub state: BTreeMap<String, i64>,
}

/// A class towards a peer. Bytes are those on the link, with outer headers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassShow {
    /// Its name.
    pub name: String,
    /// Packets that wait.
    pub backlog_pkts: u32,
    /// Their bytes.
    pub backlog_bytes: u64,
    /// Packets that arrived, dropped ones included.
    pub arrived_pkts: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Packets that left.
    pub sent_pkts: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets dropped by the limit: refused, or the oldest to make room.
    pub dropped_limit_pkts: u64,
    /// Packets the policy dropped.
    pub dropped_policy_pkts: u64,
    /// Packets that had waited too long.
    #[serde(default)]
    pub dropped_age_pkts: u64,
    /// Half of the packets that left waited no longer, ns.
    pub sojourn_p50_ns: u64,
    /// 99 of 100 waited no longer, ns.
    pub sojourn_p99_ns: u64,
    /// None waited longer, ns.
    pub sojourn_max_ns: u64,
    /// As `sojourn_p50_ns`, of the packets that left in the last 10 s.
    #[serde(default)]
    pub recent_p50_ns: u64,
    /// As `sojourn_p99_ns`, of the last 10 s.
    #[serde(default)]
    pub recent_p99_ns: u64,
    /// As `sojourn_max_ns`, of the last 10 s.
    #[serde(default)]
    pub recent_max_ns: u64,
    /// Packets that left in the last 10 s.
    #[serde(default)]
    pub recent_pkts: u64,
    /// Packets that waited no longer than each bound of the histogram; empty before the first left.
    #[serde(default)]
    pub sojourn_buckets_pkts: Vec<u64>,
    /// All waiting times together, ns.
    #[serde(default)]
    pub sojourn_sum_ns: u64,
    /// How long packets waited while only other classes sent, beyond the first second of each time, ns.
    #[serde(default)]
    pub starved_ns: u64,
    /// What it may hold.
    #[serde(default)]
    pub limit: LimitShow,
    /// The policy of its flows; none: they share one queue.
    #[serde(default)]
    pub flows: Option<String>,
    /// What happened to numbered packets of this class of the peer; none: none came.
    #[serde(default)]
    pub restored: Option<RestoredShow>,
    /// Its reservation, where the paths that are up cannot carry all of it.
    #[serde(default)]
    pub promise: Option<PromiseShow>,
    /// State of the policy, by name and unit.
    pub state: BTreeMap<String, i64>,
    /// Its parameters that are set, by name and unit.
    #[serde(default)]
    pub parameters: BTreeMap<String, u64>,
}

/// What a class may hold towards a peer; null: no such limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitShow {
    /// Packets.
    pub pkts: Option<u32>,
    /// Bytes now; a limit by time changes with the capacity.
    pub bytes: Option<u64>,
    /// The limit by time, ns.
    pub time_ns: Option<u64>,
    /// How long packets may wait, ns.
    pub max_age_ns: Option<u64>,
    /// The end that a full class drops, head or tail.
    pub full: String,
    /// Least share, millionths.
    pub least_ppm: u32,
}

impl LimitShow {
    fn new(limit: &Limit, most_bytes: Option<u64>) -> LimitShow {
        LimitShow {
            pkts: limit.pkts,
            bytes: most_bytes,
            time_ns: limit.time.map(|time| time.ns),
            max_age_ns: limit.max_age_ns,
            full: queue::end_of(limit).to_string(),
            least_ppm: limit.least_ppm,
        }
    }
}

/// State of a policy, by name and unit.
fn named(info: &PolicyInfo, values: &[i64]) -> BTreeMap<String, i64> {
    let named = info.stats.iter().zip(values);
    named
        .map(|(stat, value)| (format!("{}{}", stat.name, stat.unit.suffix()), *value))
        .collect()
}

/// A peer's part of a shared link as of `now_ns`.
pub fn across(now_ns: u64, info: &PolicyInfo, hub: &mut Hub, at: usize) -> AcrossShow {
    let mut values = vec![0; info.stats.len()];
    hub.observe(now_ns, at, &mut values);
    AcrossShow {
        airtime_ns: hub.airtime_ns(at),
        state: named(info, &values),
    }
}

/// The classes of a link as of `now_ns`.
pub fn classes(now_ns: u64, config: &Config, link: &mut Link) -> Vec<ClassShow> {
    let info = config.scheduler.info;
    let mut values = vec![0; info.stats.len()];
    let mut rows = Vec::with_capacity(config.classes.len());
    for (at, class) in config.classes.iter().enumerate() {
        link.mux().observe(now_ns, at, &mut values);
        let parameters = info
            .qparams
            .iter()
            .zip(&config.scheduler.qparams[at * info.qparams.len()..])
            .filter(|(_, value)| **value != UNSET)
            .map(|(param, value)| (format!("{}{}", param.name, param.unit.suffix()), *value))
            .collect();
        let queue = link.mux().queues()[at];
        let backlog_pkts = link.mux().waiting_pkts(at);
        let most_bytes = link.mux().most_bytes(at);
        let starved_ns = link.starved_ns(at);
        let waits = link.waits(at);
        let whole = waits.map(Waits::whole).unwrap_or_default();
        let recent = waits.map(|waits| waits.recent(now_ns)).unwrap_or_default();
        let sojourn_buckets_pkts = waits.map(Waits::cumulative).unwrap_or_default();
        let sojourn_sum_ns = waits.map_or(0, Waits::sum_ns);
        let counters = link.mux().counters(at);
        rows.push(ClassShow {
            name: class.name.clone(),
            backlog_pkts,
            backlog_bytes: queue.backlog_bytes,
            arrived_pkts: counters.arrived_pkts,
            arrived_bytes: counters.arrived_bytes,
            sent_pkts: counters.sent_pkts,
            sent_bytes: counters.sent_bytes,
            dropped_limit_pkts: counters.dropped_limit_pkts,
            dropped_policy_pkts: counters.dropped_policy_pkts,
            dropped_age_pkts: counters.dropped_age_pkts,
            sojourn_p50_ns: whole.p50_ns,
            sojourn_p99_ns: whole.p99_ns,
            sojourn_max_ns: whole.max_ns,
            recent_p50_ns: recent.p50_ns,
            recent_p99_ns: recent.p99_ns,
            recent_max_ns: recent.max_ns,
            recent_pkts: recent.pkts,
            sojourn_buckets_pkts,
            sojourn_sum_ns,
            starved_ns,
            limit: LimitShow::new(&class.limit, most_bytes),
            flows: class.flows.map(|flows| flows.name().to_string()),
            restored: None,
            promise: None,
            state: named(info, &values),
            parameters,
        });
    }
    rows
}

impl Show {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        self.text_since(None)
    }

    /// As [`Show::text`], with the rate of each class since `before`, which the same gateway showed earlier.
    #[must_use]
    pub fn text_since(&self, before: Option<&Show>) -> String {
        let before = before.filter(|before| before.uptime_s < self.uptime_s);
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{}: {}{}, {}, up {:.0} s{}",
            self.device,
            self.policy,
            self.across
                .as_ref()
                .map_or_else(String::new, |across| format!(" within {across}")),
            self.mode,
            self.uptime_s,
            listed(&self.dropped_pkts)
        );
        if let Some(record) = &self.record {
            let _ = writeln!(text, "{}", record.text());
        }
        text.push_str(&self.network.text());
        if self.log_lost_lines > 0 {
            let _ = writeln!(text, "lines of the log lost: {}", self.log_lost_lines);
        }
        for peer in &self.peers {
            let _ = writeln!(
                text,
                "\npeer {} at {}{}: {}{}, received {} packets{}",
                peer.name,
                peer.endpoint
                    .map_or_else(|| "an unknown endpoint".to_string(), |at| at.to_string()),
                match (peer.session, peer.handshake_age_s) {
                    _ if peer.looped => ", which is routed into the tunnel itself".to_string(),
                    (Some(true), Some(age_s)) => format!(", handshake {age_s:.0} s ago"),
                    (Some(false), _) => ", no session".to_string(),
                    _ => String::new(),
                },
                units::show_whole(peer.capacity_bps, Kind::Rate),
                peer.across.as_ref().map_or_else(String::new, |across| {
                    format!(", air time {:.1} s", across.airtime_ns as f64 * 1e-9)
                }),
                peer.received_pkts,
                listed(&peer.dropped_pkts)
            );
            for way in &peer.underlays {
                let _ = writeln!(text, "  {}", way.text());
            }
            if peer.paths_agreed == Some(false) {
                text.push_str("  it has not agreed to several paths: one is used at a time\n");
            }
            for path in &peer.paths {
                let _ = writeln!(text, "  {}", path.text());
            }
            let _ = writeln!(
                text,
                "  {:<12} {:>12} {:>8} {:>12} {:>14} {:>9} {:>8} {:>10} {:>10} {:>10}  state",
                "class",
                "rate",
                "waiting",
                "sent pkts",
                "sent bytes",
                "dropped",
                "too old",
                "p50 10s",
                "p99 10s",
                "max 10s"
            );
            for class in &peer.classes {
                let mut state: Vec<String> = class
                    .state
                    .iter()
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect();
                if let Some(flows) = &class.flows {
                    state.push(format!("flows {flows}"));
                }
                if let Some(restored) = &class.restored {
                    state.push(restored.text());
                }
                if class.starved_ns > 0 {
                    state.push(format!("starved {:.1} s", class.starved_ns as f64 * 1e-9));
                }
                let _ = writeln!(
                    text,
                    "  {:<12} {:>12} {:>8} {:>12} {:>14} {:>9} {:>8} {:>10} {:>10} {:>10}  {}",
                    class.name,
                    before.map_or_else(
                        || "-".to_string(),
                        |before| self.rate(before, &peer.name, class)
                    ),
                    class.backlog_pkts,
                    class.sent_pkts,
                    class.sent_bytes,
                    class.dropped_limit_pkts + class.dropped_policy_pkts + class.dropped_age_pkts,
                    class.dropped_age_pkts,
                    micros(class.recent_p50_ns),
                    micros(class.recent_p99_ns),
                    micros(class.recent_max_ns),
                    state.join(", ")
                );
            }
            for warning in &peer.warnings {
                let _ = writeln!(text, "  warning: {warning}");
            }
            for class in &peer.classes {
                if let Some(promise) = &class.promise {
                    let _ = writeln!(
                        text,
                        "  warning: class {}: {} are reserved, and the paths that are up carry {} of it",
                        class.name,
                        units::show_whole(promise.reserved_bps, Kind::Rate),
                        units::show_whole(promise.kept_bps, Kind::Rate)
                    );
                }
            }
        }
        text
    }
}

impl Default for NetworkShow {
    fn default() -> NetworkShow {
        NetworkShow::new()
    }
}

impl NetworkShow {
    /// Nothing was removed, and nothing is missing.
    #[must_use]
    pub fn new() -> NetworkShow {
        NetworkShow {
            watched: true,
            restored_rules: 0,
            restored_routes: 0,
            restored_addresses: 0,
            restored_mtus: 0,
            contested: false,
            missing: 0,
            missing_first: Vec::new(),
        }
    }

    /// For people: a line for each thing that is not as it was set up; mostly none.
    fn text(&self) -> String {
        let mut text = String::new();
        let counts = [
            (self.restored_rules, "rules"),
            (self.restored_routes, "routes"),
            (self.restored_addresses, "addresses"),
            (self.restored_mtus, "MTUs"),
        ];
        let some = counts.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = some
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !words.is_empty() {
            let _ = writeln!(
                text,
                "changed by another program and restored: {}",
                words.join(", ")
            );
        }
        if self.contested {
            text.push_str("another program removes them as fast as they are added\n");
        }
        for sentence in &self.missing_first {
            let _ = writeln!(text, "missing: {sentence}");
        }
        if !self.watched {
            text.push_str("rules, routes and addresses are not watched; restart the gateway\n");
        }
        text
    }
}

impl RecordShow {
    /// For people.
    fn text(&self) -> String {
        let mut text = format!(
            "recorded to {}: {}",
            self.folder,
            units::show_whole(self.written_bytes / 1000 * 1000, Kind::Size)
        );
        if self.lost_blocks > 0 {
            let _ = write!(text, ", {} s left out", self.lost_blocks);
        }
        if self.changed_files > 0 {
            let _ = write!(text, ", {} files changed by others", self.changed_files);
        }
        if self.fails {
            text.push_str(", cannot be written now");
        }
        text
    }
}

impl FeedbackShow {
    /// What is known from reports.
    pub(crate) fn new(feedback: &Feedback) -> FeedbackShow {
        let known = feedback.known();
        FeedbackShow {
            reports: known.reports,
            queue_ns: known.queue_ns,
            received_bps: known.received_bps,
            period_ns: known.period_ns,
        }
    }
}

impl PathShow {
    /// For people.
    fn text(&self) -> String {
        let state = match (self.in_use, self.answers_now) {
            _ if self.too_far => "left out: too far behind the others",
            _ if self.broken => "the system cannot use it",
            (true, true) => "in use",
            (true, false) => "in use, does not answer",
            (false, true) => "answers",
            (false, false) => "does not answer",
        };
        let to = self
            .endpoint
            .map_or_else(|| "an unknown endpoint".to_string(), |to| to.to_string());
        let mut text = format!(
            "path {} to {to}: {state}, {}",
            self.name,
            units::show_whole(self.capacity_bps, Kind::Rate)
        );
        if let Some(ns) = self.rtt_ns {
            let _ = write!(text, ", round trip {}", micros(ns));
        }
        let _ = write!(
            text,
            ", sent {} packets, received {}",
            self.sent_pkts, self.received_pkts
        );
        let parts = [
            (self.copied_pkts, "copies"),
            (self.resent_pkts, "sent again"),
            (self.dropped_copies_pkts, "copies dropped"),
        ];
        for (pkts, what) in parts.into_iter().filter(|(pkts, _)| *pkts > 0) {
            let _ = write!(text, ", {pkts} {what}");
        }
        text
    }
}

impl RestoredShow {
    /// For people.
    fn text(&self) -> String {
        format!(
            "in order {}, duplicates {}, late {}, given up {}",
            self.delivered_pkts, self.duplicate_pkts, self.late_pkts, self.given_up_pkts
        )
    }
}

impl UnderlayShow {
    /// For people.
    fn text(&self) -> String {
        let state = match (self.in_use, self.answers_now) {
            (true, true) => "in use",
            (true, false) => "in use, does not answer",
            (false, true) => "answers",
            (false, false) => "does not answer",
        };
        let rtt = match self.rtt_ns {
            Some(ns) if self.answers_now => format!(", round trip {}", micros(ns)),
            _ => String::new(),
        };
        format!("underlay {} to {}: {state}{rtt}", self.name, self.endpoint)
    }
}

impl Show {
    /// Text for people: traffic of a class since `before`.
    fn rate(&self, before: &Show, peer: &str, class: &ClassShow) -> String {
        let earlier = before
            .peers
            .iter()
            .find(|other| other.name == peer)
            .and_then(|peer| peer.classes.iter().find(|other| other.name == class.name))
            .and_then(|other| class.sent_bytes.checked_sub(other.sent_bytes));
        match earlier {
            Some(bytes) => {
                let bps = bytes as f64 * 8.0 / (self.uptime_s - before.uptime_s);
                // Whole kbit/s are enough: one packet makes more difference.
                units::show_whole((bps / 1000.0).round() as u64 * 1000, Kind::Rate)
            }
            None => "-".to_string(),
        }
    }
}

fn micros(ns: u64) -> String {
    format!("{}us", ns.div_ceil(1000))
}

fn listed(dropped: &BTreeMap<String, u64>) -> String {
    if dropped.is_empty() {
        return String::new();
    }
    let reasons: Vec<String> = dropped
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    format!("; dropped {}", reasons.join(", "))
}
