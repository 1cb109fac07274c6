// SPDX-License-Identifier: BSD-3-Clause
//! A network as one experiment for each link, and where packets go behind each.
//!
//! `station/entries.rs` says what the entries of a link are.

use std::collections::{BTreeMap, BTreeSet};

use crate::experiment::{Experiment, Flow, Link, Measures, Signal, Sizes, Traffic};
use crate::metrics::network::{FlowEntries, HopEntry};
use crate::network::{Network, Routed, Station, Way};
use crate::random::{mixed, of_name};
use crate::satellite::reorder::Rule;

use super::super::beam::BeamLink;
use super::super::bond::BondLink;
use super::super::build;
use super::super::medium::{ImpairedLink, PlainLink};
use super::super::satellite::SatelliteLink;
use super::super::station::{Ends, Entry, First, Hop, Role, StationPlan, Target, UNKNOWN};
use super::super::varying::nanoseconds;
use super::super::{Engine, RunError};
use super::fifo::FifoLink;
use super::process::Process;

/// A network, link by link.
pub(super) struct Plan {
    experiments: Vec<Experiment>,
    stations: Vec<StationPlan>,
    /// Where each flow is.
    pub(super) flows: Vec<FlowEntries>,
    /// The least time from the device of each link to what is behind it, ns.
    least_delay_ns: Vec<u64>,
}

impl Plan {
    /// # Errors
    /// What contradicts itself, or does not run over several links.
    pub(super) fn new(network: &Network) -> Result<Plan, String> {
        validate(network)?;
        let mut plan = Plan {
            experiments: network
                .links
                .iter()
                .map(|link| experiment(network, link))
                .collect(),
            stations: (0..)
                .zip(&network.links)
                .map(|(place, link)| StationPlan {
                    place,
                    absent: link.absent.clone(),
                    on_break: network.on_break,
                    seed: network.seed,
                    entries: Vec::new(),
                    ends: Vec::new(),
                })
                .collect(),
            flows: Vec::new(),
            least_delay_ns: network
                .links
                .iter()
                .map(|link| least_delay_ns(link, network.duration_ns))
                .collect(),
        };
        for (number, routed) in network.flows.iter().enumerate() {
            plan.add_ends(number as u32, routed);
        }
        for (number, routed) in network.flows.iter().enumerate() {
            plan.add_hops(number as u32, routed)?;
        }
        plan.number_lines();
        for experiment in &plan.experiments {
            build::validate(experiment)?;
        }
        Ok(plan)
    }

    pub(super) fn links(&self) -> usize {
        self.experiments.len()
    }

    pub(super) fn name(&self, place: usize) -> &str {
        &self.experiments[place].name
    }

    /// The flow of each entry of each link, and whether it goes back.
    pub(super) fn entries(&self) -> Vec<Vec<(usize, bool)>> {
        let entries = |station: &StationPlan| {
            let all = station.entries.iter();
            all.map(|entry| (entry.flow as usize, entry.hop.is_some_and(|hop| hop.back)))
                .collect()
        };
        self.stations.iter().map(entries).collect()
    }

    /// Pairs of links between which messages go, with the least time they take, ns.
    pub(super) fn edges(&self) -> BTreeSet<(u32, u32, u64)> {
        let mut edges = BTreeSet::new();
        for station in &self.stations {
            let place = station.place as usize;
            // What a satellite sent is passed on when it is decoded: the event that does so has only the way to the user ahead.
            let link = &self.experiments[place].link;
            let delay_ns = match (&link.satellite, &link.bond) {
                (Some(satellite), _) => satellite.ground_delay_ns,
                // So does the receiver of a bond, behind which nothing is left.
                (None, Some(_)) => 0,
                (None, None) => self.least_delay_ns[place],
            };
            for entry in &station.entries {
                if let Some(hop) = entry.hop {
                    edges.insert((station.place, hop.next.place, delay_ns));
                }
            }
            for ends in &station.ends {
                let firsts = ends.there.iter().chain(&ends.back);
                for target in firsts.filter_map(|first| first.target) {
                    edges.insert((station.place, target.place, 0));
                }
            }
        }
        edges
    }

    /// For each process, whether a message may arrive after it has run its own events of the same time. That needs a process that
    /// is later in order, and a way from there that takes no time, directly or through others.
    fn late(&self) -> Vec<bool> {
        let edges = self.edges();
        let mut latest: Vec<u32> = (0..self.stations.len() as u32).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for (from, to, _) in edges.iter().filter(|edge| edge.2 == 0) {
                let found = latest[*from as usize].max(latest[*to as usize]);
                changed |= found > latest[*to as usize];
                latest[*to as usize] = found;
            }
        }
        (0..)
            .zip(&latest)
            .map(|(place, last)| *last > place)
            .collect()
    }

    /// A process for each link; `simple` says whether those that can be are simple ones, which changes no result.
    pub(super) fn processes(
        &self,
        network: &Network,
        simple: bool,
    ) -> Result<Vec<Box<dyn Process + '_>>, RunError> {
        let late = self.late();
        let links = self.experiments.iter().zip(&self.stations);
        links
            .map(|(experiment, station)| {
                process(experiment, station, simple && !late[station.place as usize]).map_err(
                    |error| match error {
                        RunError::Invalid(message) => {
                            let name = &network.links[station.place as usize].name;
                            RunError::Invalid(format!("link {name}: {message}"))
                        }
                        other => other,
                    },
                )
            })
            .collect()
    }

    /// Adds a flow's ends to the first link of its first way.
    fn add_ends(&mut self, number: u32, routed: &Routed) {
        let first = routed.there.iter().find_map(|way| way.hops.first());
        let (home, class) = first.map_or((0, 0), |hop| (hop.link, hop.class));
        let last = routed.there.iter().find_map(|way| way.hops.last());
        let station = &mut self.stations[home as usize];
        self.flows.push(FlowEntries {
            home: (home, station.entries.len() as u32),
            last: last.map_or((0, 0), |hop| (hop.link, hop.class)),
            hops: Vec::new(),
        });
        let greedy = matches!(routed.flow.traffic, Traffic::Greedy { .. });
        station.entries.push(Entry {
            flow: number,
            role: if greedy { Role::End } else { Role::Source },
            number,
            scalable: routed.flow.traffic.is_scalable(),
            hop: None,
        });
        station.ends.push(Ends::new());
        self.experiments[home as usize].flows.push(Flow {
            class: class as usize,
            ..routed.flow.clone()
        });
    }

    /// Adds the entries of a flow at the links of its ways.
    fn add_hops(&mut self, number: u32, routed: &Routed) -> Result<(), String> {
        let mut known = BTreeMap::new();
        let mut there = Vec::new();
        for way in &routed.there {
            there.push(self.add_way(number, (routed, way, false), &mut known));
        }
        let mut back = Vec::new();
        for way in &routed.back {
            back.push(self.add_way(number, (routed, way, true), &mut known));
        }
        let (home, entry) = self.flows[number as usize].home;
        if let Traffic::Greedy { .. } = routed.flow.traffic {
            let mut firsts = there.iter();
            let first = firsts.next().and_then(|first| first.target);
            let Some(first) = first.filter(|first| firsts.all(|next| next.target == Some(*first)))
            else {
                return Err(format!(
                    "flow {} is greedy: it fills one queue, so it needs one way that does not change",
                    routed.flow.name
                ));
            };
            self.stations[home as usize].entries[first.entry as usize].role = Role::Source;
            self.experiments[home as usize].flows[first.entry as usize].traffic =
                routed.flow.traffic.clone();
        }
        let ends = &mut self.stations[home as usize].ends[entry as usize];
        ends.there = there;
        ends.back = back;
        let mut hops = std::mem::take(&mut self.flows[number as usize].hops);
        hops.sort_unstable();
        self.flows[number as usize].hops = hops;
        Ok(())
    }

    /// Adds the entries of one way, from its end to its beginning.
    fn add_way(
        &mut self,
        number: u32,
        (routed, way, back): (&Routed, &Way, bool),
        known: &mut BTreeMap<(bool, u32, u32, usize, Target), u32>,
    ) -> First {
        let (home, home_entry) = self.flows[number as usize].home;
        let mut next = Target::new(home, home_entry);
        let (mut rest_ns, mut return_delay_ns) = (0u64, 0u64);
        for (position, hop) in way.hops.iter().enumerate().rev() {
            let place = hop.link as usize;
            rest_ns = rest_ns.saturating_add(self.least_delay_ns[place]);
            return_delay_ns += self.experiments[place].link.return_delay_ns;
            let key = (back, hop.link, hop.class, position, next);
            let entry = *known.entry(key).or_insert_with(|| {
                let experiment = &mut self.experiments[place];
                let station = &mut self.stations[place];
                let entry = station.entries.len() as u32;
                experiment.flows.push(crossing(routed, hop.class, back));
                station.entries.push(Entry {
                    flow: number,
                    role: Role::Crossing {
                        application: !back
                            && matches!(routed.flow.traffic, Traffic::Application(_)),
                    },
                    number: isolated(number, back),
                    scalable: routed.flow.traffic.is_scalable(),
                    hop: Some(Hop {
                        next,
                        back,
                        watched: !back && !routed.flow.measures.playout.is_empty(),
                        home,
                        home_entry,
                        rest_ns,
                    }),
                });
                self.flows[number as usize].hops.push(HopEntry {
                    back,
                    hop: position as u32,
                    link: hop.link,
                    entry,
                });
                entry
            });
            next = Target::new(hop.link, entry);
        }
        First {
            from_ns: way.from_ns,
            target: (!way.hops.is_empty()).then_some(next),
            return_delay_ns,
        }
    }

    /// Gives each process that sends messages to another a line there: in the order of their places, what comes from a link
    /// before what its ends send.
    fn number_lines(&mut self) {
        let mut senders: Vec<BTreeSet<(u32, bool)>> = vec![BTreeSet::new(); self.stations.len()];
        self.each_target(|from, ends, target| {
            if from != target.place {
                senders[target.place as usize].insert((from, ends));
            }
        });
        let lines: Vec<BTreeMap<(u32, bool), u32>> = senders
            .iter()
            .map(|senders| senders.iter().copied().zip(0..).collect())
            .collect();
        self.each_target(|from, ends, target| {
            let line = lines[target.place as usize].get(&(from, ends));
            target.line = line.copied().unwrap_or(UNKNOWN);
        });
    }

    /// Calls with the place that a target is known at, whether its ends know it, and the target.
    fn each_target(&mut self, mut each: impl FnMut(u32, bool, &mut Target)) {
        for station in &mut self.stations {
            for entry in &mut station.entries {
                if let Some(hop) = &mut entry.hop {
                    each(station.place, false, &mut hop.next);
                }
            }
            for ends in &mut station.ends {
                let firsts = ends.there.iter_mut().chain(&mut ends.back);
                for target in firsts.filter_map(|first| first.target.as_mut()) {
                    each(station.place, true, target);
                }
            }
        }
    }
}

/// The number by which classes that isolate flows know a flow, or its acknowledgements, on links where it does not begin. The
/// connections of an application have numbers from there on. It is a hash, so that they do not follow those of the link's own
/// flows, which are small.
fn isolated(number: u32, back: bool) -> u32 {
    mixed(u64::from(number) << 1 | u64::from(back)) as u32
}

/// A flow as a link sees it that it crosses: packets of its sizes.
fn crossing(routed: &Routed, class: u32, back: bool) -> Flow {
    let flow = &routed.flow;
    let (least, most) = match (&flow.traffic, back) {
        (_, false) => build::sizes_bytes(&flow.traffic),
        (Traffic::Tcp(tcp), true) => tcp.sizes_back_bytes(false),
        (Traffic::Application(application), true) => application.tcp.sizes_back_bytes(true),
        (_, true) => (1, 1),
    };
    Flow {
        name: flow.name.clone(),
        class: class as usize,
        start_ns: flow.start_ns,
        stop_ns: flow.stop_ns,
        access_delay_ns: flow.access_delay_ns,
        traffic: Traffic::Poisson {
            rate_bps: Signal::Constant(0.0),
            packet: Sizes::Uniform(least, most),
        },
        measures: Measures::default(),
    }
}

/// The experiment of a link, without flows. Its seed is that of the link's losses: it depends on the link's name, and is that
/// of the network for a link named as the one of a single-link scenario is.
fn experiment(network: &Network, station: &Station) -> Experiment {
    Experiment {
        name: station.name.clone(),
        duration_ns: network.duration_ns,
        warmup_ns: network.warmup_ns,
        interval_ns: network.interval_ns,
        seed: of_name(network.seed, &station.name),
        link: station.link.clone(),
        scheduler: station.scheduler.clone(),
        classes: station.classes.clone(),
        flows: Vec::new(),
        log_rows: network.log_rows,
    }
}

fn process<'p>(
    experiment: &'p Experiment,
    plan: &StationPlan,
    simple: bool,
) -> Result<Box<dyn Process + 'p>, RunError> {
    if simple {
        if let Some(link) = FifoLink::new(experiment, plan) {
            return Ok(Box::new(link));
        }
    }
    let link = &experiment.link;
    let plan = Some(plan);
    Ok(if let Some(satellite) = &link.satellite {
        let medium = SatelliteLink::new(satellite, experiment);
        Box::new(Engine::with_station(experiment, medium, plan)?)
    } else if let Some(beam) = &link.beam {
        let medium = BeamLink::new(beam, experiment).in_network(&experiment.name);
        Box::new(Engine::with_station(experiment, medium, plan)?)
    } else if let Some(bond) = &link.bond {
        let medium = BondLink::new(bond, experiment, plan.map_or(0, |plan| plan.seed));
        let medium = medium.in_network(&experiment.name);
        Box::new(Engine::with_station(experiment, medium, plan)?)
    } else if ImpairedLink::is_needed(link) {
        let medium = ImpairedLink::new(link, experiment.seed);
        Box::new(Engine::with_station(experiment, medium, plan)?)
    } else {
        let medium = PlainLink::new(link, experiment.seed);
        Box::new(Engine::with_station(experiment, medium, plan)?)
    })
}

/// The least time that a packet takes from a link's device to the next queue or its end, ns.
fn least_delay_ns(station: &Station, until_ns: u64) -> u64 {
    let Link {
        delay_s,
        satellite,
        bond,
        ..
    } = &station.link;
    if let Some(bond) = bond {
        let delays = bond.members.iter().map(|member| &member.link.delay_s);
        let least_s = delays.map(|delay_s| delay_s.least(until_ns).max(0.0));
        return nanoseconds(least_s.fold(f64::INFINITY, f64::min));
    }
    let ground_ns = satellite.as_ref().map_or(0, |s| s.ground_delay_ns);
    nanoseconds(delay_s.least(until_ns).max(0.0)).saturating_add(ground_ns)
}

/// Checks what the engine of one link does not.
fn validate(network: &Network) -> Result<(), String> {
    let refuse = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
    refuse(!network.links.is_empty(), "there must be a link")?;
    for station in &network.links {
        validate_station(station)?;
    }
    for routed in &network.flows {
        for (ways, direction) in [(&routed.there, "there"), (&routed.back, "back")] {
            validate_ways(ways, network).map_err(|message| {
                format!("flow {}: way {direction}: {message}", routed.flow.name)
            })?;
        }
        if routed.there.is_empty() {
            return Err(format!("flow {} has no way", routed.flow.name));
        }
        let greedy = matches!(routed.flow.traffic, Traffic::Greedy { .. });
        if greedy && !routed.flow.measures.playout.is_empty() {
            return Err(format!(
                "flow {} is greedy: over several links it has no play-out buffer",
                routed.flow.name
            ));
        }
    }
    Ok(())
}

fn validate_station(station: &Station) -> Result<(), String> {
    let refuse = |message: &str| Err(format!("link {}: {message}", station.name));
    let apart = |two: &[(u64, u64)]| two[0].1 < two[1].0;
    let rising = station.absent.iter().all(|(from, until)| from < until);
    if !rising || !station.absent.windows(2).all(apart) {
        return refuse("its absences must be in the order of time and apart from each other");
    }
    if station.link.beam.is_some() && !station.absent.is_empty() {
        return refuse("a beam is always there");
    }
    let Some(satellite) = &station.link.satellite else {
        return Ok(());
    };
    if !station.absent.is_empty() {
        return refuse("a satellite's link with repetitions is always there");
    }
    if satellite.delays.is_some() {
        return refuse(
            "a satellite's path through a constellation is simulated alone, not with other links",
        );
    }
    let shared =
        |reordering: &crate::satellite::reorder::Reordering| reordering.rule == Rule::Shared;
    if satellite.reordering.as_ref().is_some_and(shared) {
        return refuse("one reordering buffer for all flows is simulated for one link only");
    }
    Ok(())
}

fn validate_ways(ways: &[Way], network: &Network) -> Result<(), String> {
    if ways.first().is_some_and(|way| way.from_ns != 0) {
        return Err("the first one must begin at 0".to_owned());
    }
    if ways.windows(2).any(|two| two[0].from_ns >= two[1].from_ns) {
        return Err("they must be in the order of time".to_owned());
    }
    for way in ways {
        let mut seen = BTreeSet::new();
        for hop in &way.hops {
            let Some(station) = network.links.get(hop.link as usize) else {
                return Err(format!("there is no link {}", hop.link));
            };
            if hop.class as usize >= station.classes.len() {
                return Err(format!("link {} has no class {}", station.name, hop.class));
            }
            if !seen.insert(hop.link) {
                return Err(format!("it crosses link {} twice", station.name));
            }
        }
    }
    Ok(())
}
