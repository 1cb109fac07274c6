// SPDX-License-Identifier: BSD-3-Clause
//! The ways of a constellation's flows: where satellites are at equal intervals, which ways join stations then, and which links
//! these use.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use linkweir_config::reader::{quote, Section};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::network::OnBreak;
use crate::satellite::routes::{Mesh, Node, Since};

use super::crossed::Crossed;
use super::keys;
use super::keys::constellation::{ROUTES, STATIONS};
use super::limits;
use super::route::Route;
use super::sources::Sources;

/// Satellites and stations.
pub(super) struct Sky<'n> {
    pub(super) mesh: Mesh,
    pub(super) stations: &'n [String],
    pub(super) on_break: OnBreak,
    pub(super) every_ns: u64,
    /// How often positions are computed.
    pub(super) steps: u64,
    /// How many satellites there are.
    pub(super) satellites: u64,
}

/// A link that some way uses.
pub(super) type Ends = (Node, Node);

/// The ways of all pairs of stations between which flows go, the station of lower number first.
pub(super) type Joined = BTreeMap<(u32, u32), Since<Vec<u32>>>;

/// The links of a way with the step from which it is taken.
pub(super) type Links = (u64, Vec<Ends>);

/// The ways of an entry of flows there and back, in the order of time.
pub(super) struct Passed {
    pub(super) there: Vec<Links>,
    pub(super) back: Vec<Links>,
}

/// The links that ways use, in the order in which flows first do.
#[derive(Default)]
pub(super) struct Used {
    pub(super) all: Vec<Ends>,
    pub(super) numbers: BTreeMap<Ends, u32>,
    pub(super) delays_ns: Vec<Since<u64>>,
}

impl Sky<'_> {
    fn times_s(&self) -> impl Iterator<Item = f64> + use<'_> {
        (0..self.steps).map(|step| (step * self.every_ns) as f64 * 1e-9)
    }

    /// Computes the ways of all flows, which must have one at some time. Times without one are noted.
    pub(super) fn joined(
        &self,
        section: &Section<'_, '_>,
        crossed: &Crossed<'_, '_, '_>,
        flow_sections: &[Section<'_, '_>],
        notes: &mut Vec<String>,
    ) -> Result<Joined, Fault> {
        let routes = crossed.sources.routes.iter();
        let pairs: BTreeSet<(u32, u32)> = routes
            .filter_map(|route| route.stations)
            .map(sorted)
            .collect();
        let pairs: Vec<(u32, u32)> = pairs.into_iter().collect();
        self.few_ways(section, pairs.len() as u64)?;
        let ways = self.mesh.ways(&pairs, self.times_s());
        let mut lacking = Vec::new();
        for ((from, to), ways) in pairs.iter().zip(&ways) {
            let away = self.without(ways, crossed.run.times.duration_ns);
            if away.is_empty() {
                continue;
            }
            let names = [*from, *to].map(|at| self.stations[at as usize].as_str());
            if ways.iter().all(|(_, way)| way.is_none()) {
                let routes = crossed.sources.routes.iter();
                let mut all = routes.zip(flow_sections);
                let first = all.find(|(route, _)| route.stations.map(sorted) == Some((*from, *to)));
                let message = "at no time of the run do satellites join the two stations; lower constellation.ground.mask, add [constellation.isl], or take more satellites";
                if let Some((_, section)) = first {
                    return Err(section.fault_at(keys::flow::TO.name, message));
                }
            }
            lacking.push((names, away));
        }
        notes.extend(note_of_times_without(
            &lacking,
            crossed.run.times.duration_ns,
        ));
        Ok(pairs.into_iter().zip(ways).collect())
    }

    /// Refuses ways that take too long to compute.
    fn few_ways(&self, section: &Section<'_, '_>, pairs: u64) -> Result<(), Fault> {
        let ways = pairs * self.steps;
        let visits = ways.saturating_mul(self.satellites);
        let message = if ways > limits::WAYS {
            format!(
                "{pairs} pairs of stations at {} times are more than {} ways to compute; raise every, or shorten duration",
                self.steps, limits::WAYS
            )
        } else if visits > limits::VISITS {
            format!(
                "ways of {pairs} pairs of stations through {} satellites at {} times take too long to compute, more than {} satellites to visit; raise every, or shorten duration",
                self.satellites, self.steps, limits::VISITS
            )
        } else {
            return Ok(());
        };
        Err(section.fault_at(ROUTES.name, message))
    }

    /// Times without a way or a link, ns.
    pub(super) fn without<T>(&self, since: &Since<T>, duration_ns: u64) -> Vec<(u64, u64)> {
        let ends = since.iter().skip(1).map(|(step, _)| step * self.every_ns);
        since
            .iter()
            .zip(ends.chain([duration_ns]))
            .filter(|((_, value), _)| value.is_none())
            .map(|((step, _), end_ns)| (step * self.every_ns, end_ns))
            .collect()
    }

    /// The links of the ways of each entry of flows.
    pub(super) fn passed(&self, sources: &Sources<'_>, joined: &Joined) -> Vec<Passed> {
        let routes = sources.routes.iter();
        let passed = routes.map(|route| Passed {
            there: self.links_of(route, joined, true),
            back: self.links_of(route, joined, false),
        });
        passed.collect()
    }

    /// The links that flows use, with their delays.
    pub(super) fn used(&self, section: &Section<'_, '_>, passed: &[Passed]) -> Result<Used, Fault> {
        let mut used = Used::default();
        let ways = passed.iter().flat_map(|of| of.there.iter().chain(&of.back));
        for ends in ways.flat_map(|(_, links)| links) {
            let next = used.all.len() as u32;
            used.numbers.entry(*ends).or_insert_with(|| {
                used.all.push(*ends);
                next
            });
        }
        if used.all.len() > limits::LINKS {
            let message = format!(
                "flows use {} links, more than {}; use fewer stations, raise every, or shorten duration",
                used.all.len(),
                limits::LINKS
            );
            return Err(section.fault_at(STATIONS.name, message));
        }
        if used.all.len() as u64 * self.steps > limits::LINK_STEPS {
            let message = format!(
                "{} links at {} times are more than {} delays to compute; raise every, or shorten duration",
                used.all.len(), self.steps, limits::LINK_STEPS
            );
            return Err(section.fault_at(ROUTES.name, message));
        }
        used.delays_ns = self.mesh.delays_ns(&used.all, self.times_s());
        Ok(used)
    }

    /// The links of a flow's ways there or back, with the step from which it takes them; no links: there is no way.
    fn links_of(&self, route: &Route<'_>, joined: &Joined, there: bool) -> Vec<Links> {
        let Some((from, to)) = route.stations else {
            return Vec::new();
        };
        if !there && route.back.is_empty() {
            return Vec::new();
        }
        let (from, to) = if there { (from, to) } else { (to, from) };
        let Some(ways) = joined.get(&sorted((from, to))) else {
            return Vec::new();
        };
        let links = |satellites: &Vec<u32>| {
            let mut nodes = vec![Node::Station(from.min(to))];
            nodes.extend(satellites.iter().map(|number| Node::Satellite(*number)));
            nodes.push(Node::Station(from.max(to)));
            if from > to {
                nodes.reverse();
            }
            nodes.windows(2).map(|two| (two[0], two[1])).collect()
        };
        ways.iter()
            .map(|(step, way)| (*step, way.as_ref().map(links).unwrap_or_default()))
            .collect()
    }

    pub(super) fn name(&self, node: Node) -> String {
        match node {
            Node::Satellite(number) => format!("s{number}"),
            Node::Station(index) => self.stations[index as usize].clone(),
        }
    }
}

fn sorted((a, b): (u32, u32)) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// Refuses ways of flows, copies counted, that take too much memory.
pub(super) fn few_hops(
    crossed: &Crossed<'_, '_, '_>,
    flow_sections: &[Section<'_, '_>],
    joined: &Joined,
) -> Result<(), Fault> {
    let hops_of = |route: &Route<'_>| -> u64 {
        let ways = route.stations.and_then(|pair| joined.get(&sorted(pair)));
        let hops = ways.into_iter().flatten();
        let there: u64 = hops
            .map(|(_, way)| {
                way.as_ref()
                    .map_or(1, |satellites| satellites.len() as u64 + 1)
            })
            .sum();
        there * (1 + u64::from(!route.back.is_empty()))
    };
    let mut hops: Vec<u64> = crossed.sources.routes.iter().map(hops_of).collect();
    let mut copies = vec![0; hops.len()];
    for entry in &crossed.sources.entries {
        copies[*entry] += 1;
    }
    for (hops, copies) in hops.iter_mut().zip(&copies) {
        *hops *= copies;
    }
    let all: u64 = hops.iter().sum();
    if all <= limits::HOPS {
        return Ok(());
    }
    let most = (0..hops.len())
        .max_by_key(|entry| hops[*entry])
        .unwrap_or(0);
    let message = format!(
        "the ways of all flows during the run pass {all} links, more than {}, which take {} GB of memory, and {} GB if many packets wait on each; lower count, raise constellation.routes.every, or shorten duration",
        limits::HOPS, limits::HOPS_GB.0, limits::HOPS_GB.1
    );
    Err(flow_sections[most].fault_at(keys::flow::COUNT.name, message))
}

/// Two stations, and times at which no way joins them, ns.
type Lacking<'n> = ([&'n str; 2], Vec<(u64, u64)>);

/// What a user should know of times without a way: how many pairs have some, and those of the pair that lacks one for longest.
fn note_of_times_without(lacking: &[Lacking<'_>], duration_ns: u64) -> Option<String> {
    let time = |ns| units::show_whole(ns, Kind::Time);
    let sum_ns = |away: &[(u64, u64)]| -> u64 {
        away.iter()
            .map(|(begin_ns, end_ns)| end_ns - begin_ns)
            .sum()
    };
    let (names, away) = lacking
        .iter()
        .min_by_key(|(_, away)| Reverse(sum_ns(away)))?;
    let (begin_ns, end_ns) = away[0];
    let all_ns = sum_ns(away);
    let names = names.map(quote);
    let times = match away.len() {
        1 => format!("from {} to {}", time(begin_ns), time(end_ns)),
        n => format!(
            "{n} times, first from {} to {}",
            time(begin_ns),
            time(end_ns)
        ),
    };
    let pairs = match lacking.len() {
        1 => format!("no satellites join {} and {} for", names[0], names[1]),
        n => format!(
            "at times no satellites join {n} pairs of stations, {} and {} for longest:",
            names[0], names[1]
        ),
    };
    Some(format!(
        "constellation: {pairs} {} of {}, {times}; what is sent then is lost and counted as lost. Lower constellation.ground.mask or take more satellites to avoid it",
        time(all_ns),
        time(duration_ns)
    ))
}
