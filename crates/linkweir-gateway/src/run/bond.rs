// SPDX-License-Identifier: BSD-3-Clause
//! Paths to a peer that are used at once: what both ends have agreed on, and what is known of each path.
//!
//! Each end probes each path with a message that names it, and the other end answers over the path it came. The answer shows
//! that the path works and that the peer knows the numbers of this end's epoch; from then on packets have numbers and use all
//! paths. A peer that answers no such probe gets packets without numbers over one path at a time.

use std::net::SocketAddr;

use linkweir_config::units::{self, Kind};
use linkweir_plane::bytes::numbered::Number;
use linkweir_plane::feedback::{Feedback, Message, PathName, PathProbe, Reporter};
use linkweir_plane::late_paths::{Cause, Late, LatePaths};
use linkweir_plane::link::Link;
use linkweir_plane::paths::{Over, State};
use linkweir_plane::restoring::{Begun, Dropped, Held, Restorer, USUAL_NS, WINDOW};
use linkweir_plane::underlays::Underlays;

use super::underlays::PeerUnderlays;
use crate::config::{Config, Peer};
use crate::linux::tunnel_socket::Local;
use crate::show::figures::{FeedbackShow, PathShow, RestoredShow};

/// How long the agreement holds without an answer, ns, and at least so many times what is between two probes of a busy path.
const AGREED_NS: u64 = 5_000_000_000;
const AGREED_PROBES: u64 = 100;
/// Of capacities that change often, what that means for promises is said after so long, ns.
pub(super) const PROMISES_NS: u64 = 1_000_000_000;
/// How often the number of packets is looked at, ns.
const COUNTED_NS: u64 = 1_000_000_000;
/// A path is left out when so many packets pass while its packets are behind those of the fastest one, and used again below so
/// many: the far end takes nothing that is `WINDOW` packets behind.
pub(super) const TOO_FAR_PKTS: u64 = WINDOW as u64 * 3 / 4;
const NEAR_PKTS: u64 = WINDOW as u64 / 2;
/// The delay of a path counts as changed when it differs by so much, ns, and by a quarter: paths of about the same delay must not
/// take turns at being the first.
const DELAY_NS: u64 = 2_000_000;
/// Most bytes that are held for all peers, and for one.
const HELD_BYTES: u64 = 1_000_000_000;
const HELD_FOR_PEER_BYTES: (u64, u64) = (64_000, 16_000_000);

/// What is known of a path.
pub(super) struct PathOf {
    pub(super) name: PathName,
    /// Where the peer sends from over it, and where that came in: two modems may have the same address.
    pub(super) came: Option<(SocketAddr, Option<Local>)>,
    /// When the peer sent the last probe that came over it, on its clock, ns.
    pub(super) probed_ns: u64,
    /// The round trip, smoothed, and the delay that counts, ns.
    pub(super) rtt_ns: Option<u64>,
    pub(super) delay_ns: u64,
    pub(super) is_too_far: bool,
    pub(super) received_pkts: u64,
    pub(super) received_bytes: u64,
    pub(super) reporter: Option<Reporter>,
    /// In memory of its own, since it is large and most paths have none.
    pub(super) feedback: Option<Box<Feedback>>,
    pub(super) had_expired: bool,
}

/// What belongs to the paths to a peer.
pub(super) struct Bond {
    pub(super) epoch: u32,
    /// How many classes this end has, and the peer if it has another number.
    pub(super) classes: u8,
    pub(super) other_classes: Option<u8>,
    /// When the peer last answered a probe of this epoch, ns.
    pub(super) agreed_ns: Option<u64>,
    pub(super) agreed_for_ns: u64,
    pub(super) paths: Vec<PathOf>,
    pub(super) restorer: Restorer,
    pub(super) late_paths: LatePaths,
    /// When the packets were counted, ns, how many had been sent then, and how many are sent in a second.
    pub(super) counted: (u64, u64),
    pub(super) pkts_per_s: u64,
    pub(super) states: Vec<State>,
    /// What was said of the promises that cannot be kept.
    pub(super) told: Vec<(usize, u64)>,
    /// The sum of the capacities then, bit/s, and when, ns.
    pub(super) told_bps: u64,
    pub(super) told_ns: u64,
}

/// What a probe of the peer has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probed {
    /// Nothing: it is of an epoch that is over.
    pub(super) is_stale: bool,
    /// It was sent after all others that came over its path.
    pub(super) is_latest: bool,
    /// The peer has forgotten this end's numbers, so these begin anew.
    pub(super) drew: bool,
}

/// How long packets of each class wait at this end, ns.
fn waits(config: &Config) -> Vec<u64> {
    let classes = config.classes.iter();
    classes
        .map(|class| class.reorder_ns.unwrap_or(USUAL_NS))
        .collect()
}

impl Bond {
    /// What belongs to the paths to a peer as they are configured; none: it has none.
    pub(super) fn new(config: &Config, peer: &Peer) -> Option<Bond> {
        let probing = peer.probing.filter(|probing| probing.at_once)?;
        let with_paths = config.peers.iter().filter(|peer| !peer.paths.is_empty());
        let each_bytes = HELD_BYTES / with_paths.count().max(1) as u64;
        let (least, most) = HELD_FOR_PEER_BYTES;
        let path = |setup: &linkweir_plane::setup::PathSetup| {
            Some(PathOf {
                name: PathName::new(&setup.name)?,
                came: None,
                probed_ns: 0,
                rtt_ns: None,
                delay_ns: 0,
                is_too_far: false,
                received_pkts: 0,
                received_bytes: 0,
                reporter: peer.report.then(Reporter::default),
                feedback: setup
                    .capacity
                    .feedback
                    .map(|bounds| Box::new(Feedback::new(bounds, setup.capacity.nominal_bps))),
                had_expired: false,
            })
        };
        Some(Bond {
            epoch: new_epoch(),
            classes: u8::try_from(config.classes.len()).unwrap_or(u8::MAX),
            other_classes: None,
            agreed_ns: None,
            agreed_for_ns: AGREED_NS.max(AGREED_PROBES * probing.every_ns),
            paths: peer.paths.iter().filter_map(path).collect(),
            restorer: Restorer::new(waits(config), each_bytes.clamp(least, most)),
            late_paths: LatePaths::new(peer.paths.len()),
            counted: (0, 0),
            pkts_per_s: 0,
            states: Vec::new(),
            told: Vec::new(),
            told_bps: 0,
            told_ns: 0,
        })
    }

    /// Takes over what came from the same peer, over other paths or from elsewhere: the numbers of packets under way are known,
    /// and those that are held stay.
    pub(super) fn inherit(&mut self, config: &Config, before: Bond) {
        self.take_over(config, before.restorer);
        (self.told, self.told_bps) = (before.told, before.told_bps);
        for path in &mut self.paths {
            let mut known = before.paths.iter();
            if let Some(known) = known.find(|known| known.name == path.name) {
                path.probed_ns = known.probed_ns;
            }
        }
    }

    /// Takes over what is known of the numbers of the same peer.
    pub(super) fn take_over(&mut self, config: &Config, restorer: Restorer) {
        // A path that is added again has forgotten its last probe. All probes carry the peer's one clock, so nothing sent before the
        // latest probe of any path is news.
        for path in &mut self.paths {
            path.probed_ns = restorer.latest_ns();
        }
        self.restorer = restorer;
        self.restorer.set_waits(waits(config));
    }

    /// Takes over settings that leave names and places of the paths as they are.
    pub(super) fn change(&mut self, config: &Config, (old, new): (&Peer, &Peer)) {
        self.restorer.set_waits(waits(config));
        let setups = old.paths.iter().zip(&new.paths);
        for (path, (old_setup, setup)) in self.paths.iter_mut().zip(setups) {
            if old.report != new.report {
                path.reporter = new.report.then(Reporter::default);
            }
            let (before, now) = (&old_setup.capacity, &setup.capacity);
            let known = path.feedback.take();
            path.feedback = now.feedback.map(|bounds| match known {
                Some(mut known) if before.offered == now.offered => {
                    known.set_bounds(bounds);
                    known
                }
                _ => Box::new(Feedback::new(bounds, now.nominal_bps)),
            });
        }
    }

    /// The probe of a path.
    pub(super) fn probe(&self, now_ns: u64, way: usize) -> Message {
        Message::PathProbe(PathProbe {
            sent_ns: now_ns,
            epoch: self.epoch,
            path: way as u8,
            classes: self.classes,
            known: self.restorer.epoch().map_or(0, PathProbe::tag),
            name: self.paths[way].name,
        })
    }

    /// Whether the peer has agreed.
    pub(super) fn is_agreed(&self, now_ns: u64) -> bool {
        self.agreed_ns
            .is_some_and(|ns| now_ns < ns + self.agreed_for_ns)
    }

    /// The longest round trip of the paths that are good, ns; 0: none is known.
    pub(super) fn longest_rtt_ns(&self, is_good: impl Fn(usize) -> bool) -> u64 {
        let good = self.paths.iter().enumerate().filter(|(at, _)| is_good(*at));
        good.filter_map(|(_, path)| path.rtt_ns).max().unwrap_or(0)
    }

    /// The number in front of a packet that goes over a path.
    pub(super) fn number(&self, over: Over) -> Option<Number> {
        let (stream, sequence) = over.number?;
        Some(Number {
            stream,
            epoch: self.epoch,
            sequence,
        })
    }

    /// The path over which a datagram came, as far as the peer's probes have shown.
    #[inline]
    pub(super) fn came_over(&self, from: SocketAddr, to: Option<Local>) -> Option<usize> {
        let place = Some((from, to));
        self.paths.iter().position(|path| path.came == place)
    }

    /// Counts a packet that came.
    pub(super) fn arrived(&mut self, over: Option<usize>, bytes: usize) {
        let Some((over, path)) = over.and_then(|over| Some((over, self.paths.get_mut(over)?)))
        else {
            return;
        };
        path.received_pkts += 1;
        path.received_bytes += bytes as u64;
        if let Some(reporter) = &mut path.reporter {
            reporter.count(bytes);
        }
        self.late_paths.came(over);
    }

    /// A datagram that came over a path was refused as a replay or as forged.
    pub(super) fn refused(&mut self, over: Option<usize>) {
        if let Some(path) = over {
            self.late_paths.refused(path);
        }
    }

    /// Takes a packet with a number that came over a path. What may be handed out now is handed to `out`. Returns why it was
    /// dropped, if it was.
    pub(super) fn take(
        &mut self,
        now_ns: u64,
        over: Option<usize>,
        (number, held): (Number, Held),
        out: impl FnMut(Held),
    ) -> Option<Dropped> {
        let dropped = self.restorer.arrive(now_ns, number, held, out);
        let is_known = !matches!(dropped, Some(Dropped::Unknown | Dropped::Congested));
        if let Some(path) = over.filter(|_| is_known) {
            let is_late = dropped == Some(Dropped::Late);
            let class = usize::from(number.stream);
            self.late_paths.came_of(now_ns, path, class, is_late);
        }
        dropped
    }

    /// A probe of the peer came over a path, in a session with this index. What was held of an epoch that is over is handed to
    /// `out`.
    pub(super) fn probed(
        &mut self,
        now_ns: u64,
        way: usize,
        (session, probe): (u32, PathProbe),
        out: impl FnMut(Held),
    ) -> Probed {
        let sent = (session, probe.sent_ns);
        let begun = self.restorer.begin(now_ns, probe.epoch, sent, out);
        if begun == Begun::New {
            // The clock of a peer that began anew may have, too.
            self.paths.iter_mut().for_each(|path| path.probed_ns = 0);
            self.late_paths.forget();
        }
        let path = &mut self.paths[way];
        // Times of an epoch that is over may be those of another clock.
        let is_now = matches!(begun, Begun::Known | Begun::New);
        let is_latest = is_now && path.probed_ns < probe.sent_ns;
        if is_latest {
            path.probed_ns = probe.sent_ns;
            // A probe that was overtaken shows how long it was kept, not the way.
            self.late_paths.probed(now_ns, way, probe.sent_ns);
        }
        // It had agreed to numbers that it does not know any more: it was started again.
        let forgot = self.agreed_ns.is_some() && probe.known != PathProbe::tag(self.epoch);
        let drew = begun == Begun::New && forgot;
        if drew {
            self.begin_epoch();
        }
        Probed {
            is_stale: begun == Begun::Stale,
            is_latest,
            drew,
        }
    }

    /// An answer to a probe came over a path; `rtt_ns` is the round trip that it measures, if the probe did not wait for an outage to
    /// end.
    pub(super) fn answered(
        &mut self,
        now_ns: u64,
        way: usize,
        probe: PathProbe,
        rtt_ns: Option<u64>,
    ) {
        let Some(path) = self.paths.get_mut(way) else {
            return;
        };
        if let Some(rtt_ns) = rtt_ns {
            let before_ns = path.rtt_ns.unwrap_or(rtt_ns);
            let smooth_ns = before_ns - before_ns / 8 + rtt_ns / 8;
            path.rtt_ns = Some(smooth_ns);
            let changed_ns = (smooth_ns / 2).abs_diff(path.delay_ns);
            if path.delay_ns == 0 || changed_ns > DELAY_NS.max(path.delay_ns / 4) {
                path.delay_ns = smooth_ns / 2;
            }
        }
        if probe.epoch == self.epoch {
            self.agreed_ns = Some(now_ns);
        }
    }

    /// Leaves out paths whose packets would come behind the far end's window. Returns those for which that is news.
    pub(super) fn find_too_far(
        &mut self,
        now_ns: u64,
        sent_pkts: u64,
        is_good: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let (at_ns, pkts) = self.counted;
        let passed_ns = now_ns.saturating_sub(at_ns);
        if passed_ns < COUNTED_NS {
            return Vec::new();
        }
        let sent = u128::from(sent_pkts.saturating_sub(pkts)) * 1_000_000_000;
        self.counted = (now_ns, sent_pkts);
        self.pkts_per_s = (sent / u128::from(passed_ns)) as u64;
        let good = self.paths.iter().enumerate().filter(|(at, _)| is_good(*at));
        let Some(least_ns) = good.filter_map(|(_, path)| path.rtt_ns).min() else {
            return Vec::new();
        };
        let mut news = Vec::new();
        for (at, path) in self.paths.iter_mut().enumerate() {
            // The ways back are taken to be alike; where they are not, the far end counts the packets of a path as late.
            let behind_ns = path.rtt_ns.unwrap_or(0).saturating_sub(least_ns);
            let behind = u128::from(behind_ns) * u128::from(self.pkts_per_s) / 1_000_000_000;
            let most = if path.is_too_far {
                NEAR_PKTS
            } else {
                TOO_FAR_PKTS
            };
            let is_too_far = behind > u128::from(most);
            if is_too_far != path.is_too_far {
                path.is_too_far = is_too_far;
                news.push(at);
            }
        }
        news
    }

    /// Looks whether packets of the peer come too late. Returns a sentence for each path of which that is news.
    pub(super) fn find_late(&mut self, now_ns: u64, config: &Config, peer: &Peer) -> Vec<String> {
        if !self.late_paths.is_due(now_ns) {
            return Vec::new();
        }
        // A shorter time may hold later than it is configured.
        let waits_ns: Vec<u64> = (0..config.classes.len())
            .map(|class| self.restorer.wait_ns(class))
            .collect();
        let found = self.late_paths.find(now_ns, &waits_ns);
        found
            .into_iter()
            .map(|late| said_of_late(late, config, peer))
            .collect()
    }

    /// Tells the link which paths carry packets now. Returns whether that has changed.
    pub(super) fn tell_link(
        &mut self,
        now_ns: u64,
        (choice, current): (&Underlays, usize),
        has_endpoint: impl Fn(usize) -> bool,
        link: &mut Link,
    ) -> bool {
        let agreed = self.is_agreed(now_ns);
        if !agreed && self.agreed_ns.is_some() {
            self.begin_epoch();
        }
        self.states.clear();
        for (at, path) in self.paths.iter().enumerate() {
            let is_used = if agreed {
                choice.is_good(at) && !path.is_too_far
            } else {
                at == current
            };
            self.states.push(State {
                is_up: is_used && has_endpoint(at),
                delay_ns: path.delay_ns,
                arrived_ns: choice.arrived_ns(at),
            });
        }
        link.set_paths(now_ns, agreed, &self.states)
    }

    /// Numbers begin anew, once the peer has agreed again.
    fn begin_epoch(&mut self) {
        self.agreed_ns = None;
        self.epoch = new_epoch();
    }

    /// When the agreement ends without another answer, ns.
    pub(super) fn ends_ns(&self) -> Option<u64> {
        self.agreed_ns.map(|ns| ns + self.agreed_for_ns)
    }

    /// The figures of the paths.
    pub(super) fn show(
        &self,
        now_ns: u64,
        peer: &Peer,
        underlays: &PeerUnderlays,
        link: &mut Link,
    ) -> Vec<PathShow> {
        let choice = &underlays.choice;
        let agreed = link.is_agreed();
        let setups = peer.paths.iter().zip(&self.paths).enumerate();
        let show = |(at, (setup, path)): (usize, (&linkweir_plane::setup::PathSetup, &PathOf))| {
            let carried = link.carried(at);
            let (capacity_bps, capacity_expired) = link.path_bps(now_ns, at);
            let is_good = choice.is_good(at);
            PathShow {
                name: setup.name.clone(),
                endpoint: underlays.path(at).map(|(to, _)| to),
                in_use: if agreed {
                    is_good && !path.is_too_far
                } else {
                    at == underlays.current()
                },
                answers_now: is_good,
                broken: choice.is_broken(at),
                too_far: path.is_too_far,
                rtt_ns: path.rtt_ns.filter(|_| is_good),
                capacity_bps,
                capacity_expired,
                cost: setup.cost,
                sent_pkts: carried.pkts,
                sent_bytes: carried.bytes,
                copied_pkts: carried.copied_pkts,
                resent_pkts: carried.resent_pkts,
                dropped_copies_pkts: carried.dropped_copies,
                received_pkts: path.received_pkts,
                received_bytes: path.received_bytes,
                feedback: path.feedback.as_deref().map(FeedbackShow::new),
            }
        };
        setups.map(show).collect()
    }

    /// What happened to a class of the peer.
    pub(super) fn restored(&self, class: usize) -> Option<RestoredShow> {
        let counters = self.restorer.counters(class)?;
        let (held_pkts, held_bytes) = self.restorer.held(class);
        Some(RestoredShow {
            delivered_pkts: counters.delivered_pkts,
            duplicate_pkts: counters.duplicate_pkts,
            late_pkts: counters.late_pkts,
            given_up_pkts: counters.given_up_pkts,
            reordered_pkts: counters.reordered_pkts,
            held_pkts,
            held_bytes,
        })
    }
}

/// What the log has of a path whose packets come too late, with the cure.
fn said_of_late(late: Late, config: &Config, peer: &Peer) -> String {
    let name = |path: usize| &peer.paths[path].name;
    let (path, first) = (name(late.path), name(late.first));
    let behind = millis(late.behind_ns);
    let lost = late.late_pkts;
    match late.cause {
        Cause::Order { class, wait_ns } => {
            let class = &config.classes[class].name;
            let wait = units::show_whole(wait_ns, Kind::Time);
            let other = format!("leave {path} out of its paths at the other end");
            let cure = match late.reorder_ns() {
                Some(ns) => format!("raise its reorder at this end to {}, or {other}", millis(ns)),
                None => other,
            };
            format!(
                "packets over {path} come {behind} later than those over {first}, and class {class} waits {wait} for earlier ones, \
                 so {lost} came too late; {cure}"
            )
        }
        Cause::Window { behind_pkts } => format!(
            "packets over {path} come {behind} later than those over {first}, while {behind_pkts} others pass, and what is {WINDOW} \
             behind is dropped: {lost} were; at the other end leave {path} out of the paths of classes that send most"
        ),
    }
}

/// A time in whole milliseconds, rounded up.
fn millis(ns: u64) -> String {
    let ns = ns.div_ceil(1_000_000).saturating_mul(1_000_000);
    units::show_whole(ns, Kind::Time)
}

/// A number for an epoch, which differs from those before with all but certainty.
fn new_epoch() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0_u8) as u32
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const MS: u64 = 1_000_000;

    fn bond() -> Bond {
        let text = include_str!("../../configs/boat.toml");
        let config = crate::config::parse(text, Path::new("boat.toml")).unwrap();
        Bond::new(&config, &config.peers[0]).unwrap()
    }

    fn probe(bond: &Bond, sent_ns: u64, path: u8) -> PathProbe {
        let Message::PathProbe(probe) = bond.probe(sent_ns, path.into()) else {
            panic!("a probe of a path");
        };
        probe
    }

    /// What the far end would drop as too old is not sent: 6,144 packets within the difference of the round trips.
    #[test]
    fn a_path_whose_packets_would_come_behind_the_window_is_left_out() {
        let mut bond = bond();
        for (path, rtt_ms) in [(0, 20), (1, 620)] {
            let sent_ns = 1000 * MS;
            let sent = probe(&bond, sent_ns, path);
            bond.answered(sent_ns + rtt_ms * MS, path.into(), sent, Some(rtt_ms * MS));
        }
        // In 0.6 s, so many a second are the bound.
        let most = TOO_FAR_PKTS * 10 / 6;
        let (mut now_ns, mut pkts) = (10_000 * MS, 0);
        bond.find_too_far(now_ns, pkts, |_| true);
        let mut second = |bond: &mut Bond, sent: u64| {
            now_ns += 1000 * MS;
            pkts += sent;
            bond.find_too_far(now_ns, pkts, |_| true)
        };
        assert_eq!(second(&mut bond, most), [0; 0]);
        assert_eq!(second(&mut bond, most + 2), [1]);
        assert!(bond.paths[1].is_too_far && !bond.paths[0].is_too_far);
        assert_eq!(second(&mut bond, most), [0; 0], "not at once again");
        assert_eq!(second(&mut bond, NEAR_PKTS * 10 / 6), [1]);
        assert!(!bond.paths[1].is_too_far);
    }

    #[test]
    fn the_agreement_holds_while_probes_of_the_epoch_are_answered() {
        let mut bond = bond();
        assert!(!bond.is_agreed(0));
        let mut of_before = probe(&bond, 0, 0);
        of_before.epoch ^= 1;
        bond.answered(20 * MS, 0, of_before, Some(20 * MS));
        assert!(!bond.is_agreed(20 * MS), "another epoch");
        let sent = probe(&bond, 0, 0);
        bond.answered(20 * MS, 0, sent, Some(20 * MS));
        assert!(bond.is_agreed(20 * MS));
        let end_ns = bond.ends_ns().unwrap();
        assert!(bond.is_agreed(end_ns - 1) && !bond.is_agreed(end_ns));
        assert!(end_ns >= 5000 * MS);
    }

    /// Both ends of paths on which each way takes `way_ms`, from now on for so long; returns the epochs that each drew.
    fn live(ends: &mut [Bond; 2], (from_ms, to_ms): (u64, u64), way_ms: u64) -> [Vec<u32>; 2] {
        let mut under_way: Vec<(u64, usize, bool, PathProbe)> = Vec::new();
        let mut drawn = [vec![ends[0].epoch], vec![ends[1].epoch]];
        for ms in (from_ms..to_ms).step_by(50) {
            let now_ns = ms * MS;
            let (come, later): (Vec<_>, Vec<_>) =
                under_way.into_iter().partition(|(at_ms, ..)| *at_ms <= ms);
            under_way = later;
            for (_, to, is_echo, sent) in come {
                if is_echo {
                    ends[to].answered(now_ns, 0, sent, Some(now_ns - sent.sent_ns));
                    continue;
                }
                if !ends[to].probed(now_ns, 0, (1, sent), |_| {}).is_stale {
                    under_way.push((ms + way_ms, 1 - to, true, sent));
                }
            }
            for at in [0, 1] {
                if !ends[at].is_agreed(now_ns) && ends[at].agreed_ns.is_some() {
                    ends[at].begin_epoch();
                }
                if drawn[at].last() != Some(&ends[at].epoch) {
                    drawn[at].push(ends[at].epoch);
                }
                let sent = probe(&ends[at], now_ns, 0);
                under_way.push((ms + way_ms, 1 - at, false, sent));
            }
        }
        drawn
    }

    /// Each end draws one epoch, however long the way is; one that has forgotten makes the other draw one more.
    #[test]
    fn both_ends_agree_over_long_ways_and_after_one_was_started_again() {
        for way_ms in [20, 300, 1000, 3000] {
            let mut ends = [bond(), bond()];
            let drawn = live(&mut ends, (0, 60_000), way_ms);
            assert_eq!([drawn[0].len(), drawn[1].len()], [1, 1], "{way_ms} ms");
            let end_ns = 60_000 * MS;
            assert!(ends.iter().all(|end| end.is_agreed(end_ns)), "{way_ms} ms");
            ends[1] = bond();
            let drawn = live(&mut ends, (60_000, 120_000), way_ms);
            assert_eq!([drawn[0].len(), drawn[1].len()], [2, 1], "{way_ms} ms");
            let end_ns = 120_000 * MS;
            assert!(ends.iter().all(|end| end.is_agreed(end_ns)), "{way_ms} ms");
        }
    }

    /// What came before other paths were configured is known afterwards.
    #[test]
    fn other_paths_leave_what_is_held() {
        let text = include_str!("../../configs/boat.toml");
        let config = crate::config::parse(text, Path::new("boat.toml")).unwrap();
        let (mut before, peer) = (bond(), bond());
        let sent = probe(&peer, 5 * MS, 0);
        before.probed(0, 0, (1, sent), |_| {});
        let number = Number {
            stream: 1, // video, which waits for its order
            epoch: peer.epoch,
            sequence: 1,
        };
        let held = Held {
            packet: vec![0; 40].into(),
            outer_tos: 0,
        };
        before
            .restorer
            .arrive(0, number, held, |_| panic!("it waits"));
        let mut after = bond();
        after.inherit(&config, before);
        assert_eq!(after.restorer.held(1), (1, 40));
        let again = after.probed(0, 0, (1, sent), |_| {});
        assert!(!again.is_stale && !again.is_latest);
    }

    /// A path that was removed is added again: a probe that was withheld since does not lead it anywhere.
    #[test]
    fn a_path_that_comes_again_remembers_when_the_peer_probed_last() {
        let text = include_str!("../../configs/boat.toml");
        let config = crate::config::parse(text, Path::new("boat.toml")).unwrap();
        let peer = bond();
        let mut before = bond();
        for (path, sent_ns) in [(1, 5), (0, 9)] {
            let sent = probe(&peer, sent_ns * MS, path);
            assert!(before.probed(0, path.into(), (1, sent), |_| {}).is_latest);
        }
        let mut one = bond();
        one.paths.truncate(1);
        one.inherit(&config, before);
        let mut again = bond();
        again.inherit(&config, one);
        for (sent_ns, is_latest) in [(6, false), (9, false), (10, true)] {
            let sent = probe(&peer, sent_ns * MS, 1);
            let probed = again.probed(0, 1, (1, sent), |_| {});
            assert_eq!(probed.is_latest, is_latest, "{sent_ns} ms");
        }
    }

    /// So do the first paths that come again after the last had gone.
    #[test]
    fn the_first_path_remembers_when_the_peer_probed_before_the_last_went() {
        let text = include_str!("../../configs/boat.toml");
        let config = crate::config::parse(text, Path::new("boat.toml")).unwrap();
        let (peer, mut before, mut again) = (bond(), bond(), bond());
        for (path, sent_ns) in [(1, 5), (0, 9)] {
            let sent = probe(&peer, sent_ns * MS, path);
            assert!(before.probed(0, path.into(), (1, sent), |_| {}).is_latest);
        }
        again.take_over(&config, before.restorer);
        for (sent_ns, is_latest) in [(6, false), (9, false), (10, true)] {
            let sent = probe(&peer, sent_ns * MS, 1);
            let probed = again.probed(0, 1, (1, sent), |_| {});
            assert_eq!(probed.is_latest, is_latest, "{sent_ns} ms");
        }
    }

    const SECOND_NS: u64 = 1000 * MS;
    /// The peer's clock is ahead of this end's by this.
    const AHEAD_NS: u64 = 5_000_000 * MS;

    /// The configuration of the boat with another `reorder` of its class 1, video.
    fn config(reorder: &str) -> Config {
        let text = include_str!("../../configs/boat.toml");
        let text = text.replace("reorder = \"400ms\"", &format!("reorder = \"{reorder}\""));
        crate::config::parse(&text, Path::new("boat.toml")).unwrap()
    }

    /// A peer whose packets of class 1 come over two ways in turn, 200 a second, and what the receiving end says.
    struct Coming {
        bond: Bond,
        probe: PathProbe,
        /// How long each second probe over path 1 is kept, ns.
        kept_ns: u64,
    }

    impl Coming {
        fn new(config: &Config) -> Coming {
            Coming {
                bond: Bond::new(config, &config.peers[0]).unwrap(),
                probe: probe(&bond(), 0, 0),
                kept_ns: 0,
            }
        }

        /// What is sent in some seconds comes, of which path 0 takes the first way. Returns what was said, and how many came too late.
        fn live(
            &mut self,
            config: &Config,
            seconds: std::ops::Range<u64>,
            ways_ns: [u64; 2],
        ) -> (Vec<String>, u64) {
            let mut coming: Vec<(u64, usize, bool, u64)> = Vec::new();
            for number in seconds.start * 200..seconds.end * 200 {
                let way = (number % 2) as usize;
                coming.push((number * 5 * MS + ways_ns[way], way, false, number));
            }
            for step in seconds.start * 20..seconds.end * 20 {
                for (way, way_ns) in ways_ns.into_iter().enumerate() {
                    let kept_ns = self.kept_ns * (step % 2) * way as u64;
                    coming.push((step * 50 * MS + way_ns + kept_ns, way, true, step * 50 * MS));
                }
            }
            coming.sort_unstable();
            let peer = &config.peers[0];
            let (mut said, before) = (Vec::new(), self.late_pkts());
            for (now_ns, way, is_probe, value) in coming {
                self.bond.restorer.expire(now_ns, |_| {});
                if is_probe {
                    let sent = PathProbe {
                        sent_ns: AHEAD_NS + value,
                        path: way as u8,
                        ..self.probe
                    };
                    self.bond.probed(now_ns, way, (1, sent), |_| {});
                } else {
                    self.packet(now_ns, way, value as u32);
                }
                said.extend(self.bond.find_late(now_ns, config, peer));
            }
            (said, self.late_pkts() - before)
        }

        fn packet(&mut self, now_ns: u64, way: usize, sequence: u32) {
            let number = Number {
                stream: 1,
                epoch: self.probe.epoch,
                sequence,
            };
            let held = Held {
                packet: vec![0; 40].into(),
                outer_tos: 0,
            };
            self.bond.arrived(Some(way), 40);
            self.bond.take(now_ns, Some(way), (number, held), |_| {});
        }

        fn late_pkts(&self) -> u64 {
            self.bond.restorer.counters(1).map_or(0, |of| of.late_pkts)
        }
    }

    /// 620 ms and 20 ms there: the log names the cure, and a reload to the advised time is enough.
    #[test]
    fn what_comes_too_late_is_said_with_a_cure_that_a_reload_takes() {
        let ways_ns = [620 * MS, 20 * MS];
        let before = config("400ms");
        let mut coming = Coming::new(&before);
        let (said, late) = coming.live(&before, 1..5, ways_ns);
        assert!(late > 200, "{late}");
        let [of] = &said[..] else {
            panic!("said once: {said:?}");
        };
        let (_, lost) = of.split_once("so ").unwrap();
        let (lost, _) = lost.split_once(' ').unwrap();
        assert!(lost.parse::<u64>().unwrap() >= 10, "{of}");
        assert_eq!(
            *of,
            format!(
                "packets over starlink come 600ms later than those over lte, and class video waits 400ms for earlier ones, so \
                 {lost} came too late; raise its reorder at this end to 900ms, or leave starlink out of its paths at the other end"
            )
        );
        let after = config("900ms");
        coming
            .bond
            .change(&after, (&before.peers[0], &after.peers[0]));
        assert_eq!(coming.live(&after, 6..80, ways_ns), (Vec::new(), 0));
        // A shorter time does not hold yet, so it is not what packets exceed.
        let shorter = config("400ms");
        coming
            .bond
            .change(&shorter, (&after.peers[0], &shorter.peers[0]));
        assert_eq!(coming.live(&shorter, 81..90, ways_ns), (Vec::new(), 0));
    }

    /// What comes late of a class is laid to the path over which it came, not to one that is slower and has nothing of this class.
    #[test]
    fn a_path_that_a_class_does_not_use_is_not_blamed() {
        let third = "[[peer.path]]\nname = \"geo\"\nrate = \"1Mbit\"\n";
        let text = include_str!("../../configs/boat.toml");
        let text = format!("{text}\n{third}");
        let config = crate::config::parse(&text, Path::new("boat.toml")).unwrap();
        let mut coming = Coming::new(&config);
        for step in 0..100 {
            let sent = PathProbe {
                sent_ns: AHEAD_NS + step * 50 * MS,
                path: 2,
                ..coming.probe
            };
            let now_ns = step * 50 * MS + 700 * MS;
            coming.bond.probed(now_ns, 2, (1, sent), |_| {});
            coming.bond.arrived(Some(2), 40);
        }
        let (said, _) = coming.live(&config, 1..5, [620 * MS, 20 * MS]);
        let [of] = &said[..] else {
            panic!("of one path: {said:?}");
        };
        assert!(
            of.starts_with("packets over starlink come 600ms later"),
            "{of}"
        );
    }

    /// Probes that are kept for 2 s and overtaken by others do not show how long the way of packets is.
    #[test]
    fn probes_that_were_overtaken_blame_no_path() {
        let config = config("400ms");
        let mut coming = Coming::new(&config);
        coming.kept_ns = 2000 * MS;
        coming.live(&config, 1..6, [20 * MS; 2]);
        // Packets come late for another reason.
        for sequence in 0..100 {
            coming.packet(9 * SECOND_NS, 0, sequence);
        }
        assert_eq!(coming.late_pkts(), 100);
        let now_ns = 10 * SECOND_NS;
        assert!(coming.bond.late_paths.is_due(now_ns));
        let said = coming.bond.find_late(now_ns, &config, &config.peers[0]);
        assert_eq!(said, [""; 0]);
    }

    /// The peer chooses the time in a probe.
    #[test]
    fn any_time_can_be_said() {
        assert_eq!(millis(1), "1ms");
        assert!(!millis(u64::MAX).is_empty());
    }

    /// A path that answers no more has no round trip that counts.
    #[test]
    fn the_longest_round_trip_is_one_of_the_paths_that_answer() {
        let mut bond = bond();
        for (path, rtt_ms) in [(0, 20), (1, 620)] {
            let sent = probe(&bond, SECOND_NS, path);
            bond.answered(
                SECOND_NS + rtt_ms * MS,
                path.into(),
                sent,
                Some(rtt_ms * MS),
            );
        }
        assert_eq!(bond.longest_rtt_ns(|_| true), 620 * MS);
        assert_eq!(bond.longest_rtt_ns(|way| way != 1), 20 * MS);
        assert_eq!(bond.longest_rtt_ns(|_| false), 0);
    }

    /// After an outage of 48 s a path would be the one with the longest delay for seconds, and left out as too far.
    #[test]
    fn an_answer_that_waited_for_an_outage_says_nothing_of_the_delay() {
        let mut bond = bond();
        for (rtt_ms, measures) in [(60, true), (48_000, false)] {
            let sent = probe(&bond, 0, 0);
            bond.answered(rtt_ms * MS, 0, sent, Some(rtt_ms * MS).filter(|_| measures));
            assert_eq!(bond.paths[0].delay_ns, 30 * MS);
        }
        assert_eq!(bond.longest_rtt_ns(|_| true), 60 * MS);
        assert!(bond.is_agreed(48_000 * MS), "though the peer has answered");
    }

    /// Paths of about the same delay must not take turns at being the first.
    #[test]
    fn small_changes_of_the_delay_do_not_count() {
        let mut bond = bond();
        let answer = |bond: &mut Bond, rtt_ms: u64| {
            let sent = probe(bond, 0, 0);
            bond.answered(rtt_ms * MS, 0, sent, Some(rtt_ms * MS));
            bond.paths[0].delay_ns
        };
        assert_eq!(answer(&mut bond, 40), 20 * MS);
        for rtt_ms in [42, 38, 44, 36] {
            assert_eq!(answer(&mut bond, rtt_ms), 20 * MS);
        }
        for _ in 0..30 {
            answer(&mut bond, 100);
        }
        assert!(bond.paths[0].delay_ns > 40 * MS);
    }
}
