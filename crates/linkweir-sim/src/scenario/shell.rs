// SPDX-License-Identifier: BSD-3-Clause
//! The table `[constellation]`: a network whose links and ways are computed from where satellites are.
//!
//! Positions are computed at equal intervals; until the next one, links, delays and ways stay as they are. Only links that some way
//! uses are links of the network.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use linkweir_config::keys::link::{RATE, TRACE};
use linkweir_config::keys::Form;
use linkweir_config::reader::{quote, Entry, Section, Value, Written};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{End, Flow, Link, Outages, Signal};
use crate::network::{Hop, Network, OnBreak, Routed, Station, Way};
use crate::satellite::constellation::Place as Site;
use crate::satellite::routes::{Mesh, Metric, Node, Since};

use super::checked::Scenario;
use super::constellation::walker;
use super::crossed::{Crossed, Passing};
use super::inputs::Told;
use super::keys;
use super::keys::constellation::{
    EVERY, GROUND, ISL, LATITUDE, LONGITUDE, MASK, METRIC, NAME, NEIGHBOURS, ON_BREAK, ROUTES,
    STATIONS,
};
use super::keys::link::{BEAM, DELAY, LIKE, NAME as LINK_NAME, RETURN_DELAY, SATELLITE};
use super::limits;
use super::network::of_table;
use super::overrides::Overrides;
use super::queued::{all_written, held, series_rows, Context, Queued, Tables};
use super::route::{Place, Route, Stop, Ways};
use super::run_keys::RunKeys;
use super::sources::{flow_tables, Sources};

/// The kinds of links, by their places among what flows pass.
const TO_GROUND: usize = 0;
const BETWEEN: usize = 1;

/// Satellites and stations.
struct Sky<'n> {
    mesh: Mesh,
    stations: &'n [String],
    on_break: OnBreak,
    every_ns: u64,
    /// How often positions are computed.
    steps: u64,
    /// How many satellites there are.
    satellites: u64,
}

/// A link that some way uses.
type Ends = (Node, Node);

/// Reads the rest of a scenario with this table.
pub(super) fn read(
    mut top: Section<'_, '_>,
    entry: &Entry<'_, '_>,
    run: &RunKeys,
    overrides: &Overrides,
) -> Result<Scenario, Fault> {
    let mut section = entry
        .table()
        .ok_or_else(|| entry.fault("must be a table [constellation]"))?;
    refuse_others(&top)?;
    if let Some(path) = &overrides.trace {
        let message = format!(
            "{} cannot take the place of several links' rates; write it as trace of ground or isl",
            path.display()
        );
        return Err(section.fault(message));
    }
    section.expect(&[GROUND.name, ISL.name]);
    let mut inputs = Vec::new();
    let mut told = Told::default();
    let mut shell = walker(&mut section)?;
    let stations = stations(&mut section)?;
    let (every_ns, metric) = routes(&mut section)?;
    let on_break = match section.take(&ON_BREAK)? {
        0 => OnBreak::Lose,
        _ => OnBreak::Deliver,
    };
    let mut context = Context {
        duration_ns: run.times.duration_ns,
        seed: run.seed,
        overrides,
        inputs: &mut inputs,
        told: &mut told,
    };
    let mut ground = section.need_table(GROUND.name, keys::constellation::GROUND.default.0)?;
    shell.min_elevation_deg = ground.take(&MASK)?;
    let mut kinds = vec![kind(ground, GROUND.name, &mut context)?];
    let mut neighbours = 0;
    if let Some(entry) = section.find(ISL.name) {
        let mut isl = entry
            .table()
            .ok_or_else(|| entry.fault("must be a table [constellation.isl]"))?;
        neighbours = links_of_each(&mut isl)?;
        kinds.push(kind(isl, ISL.name, &mut context)?);
    }
    let steps = run.times.duration_ns.div_ceil(every_ns);
    let satellites = shell.count() as u64;
    few_places(&section, satellites, steps)?;
    let mut flow_sections = flow_tables(&mut top)?;
    top.known()?;
    section.known()?;
    let places = places(&kinds);
    let (names, sites): (Vec<String>, Vec<Site>) = stations.into_iter().unzip();
    let ways = Ways::Constellation(&places, &names);
    let files = (&mut inputs, &mut told);
    let sources = Sources::read(&mut flow_sections, &ways, &run.times, files)?;
    let ends = sources.routes.iter().filter_map(|route| route.stations);
    // Only places of stations that flows name are computed.
    let named = ends.flat_map(|(from, to)| [from, to]);
    let named = named.map(|at| (at, sites[at as usize])).collect();
    let sky = Sky {
        mesh: Mesh::new(shell, named, neighbours, metric),
        stations: &names,
        on_break,
        every_ns,
        steps,
        satellites,
    };
    let crossed = Crossed {
        run,
        links: &kinds,
        sources: &sources,
    };
    crossed.ways_back_fit(&flow_sections)?;
    let joined = sky.joined(&section, &crossed, &flow_sections, &mut told.notes)?;
    few_hops(&crossed, &flow_sections, &joined)?;
    let passed = sky.passed(&sources, &joined);
    let used = sky.used(&section, &passed)?;
    let of_links: Vec<&Queued<'_, '_>> =
        used.all.iter().map(|ends| &kinds[kind_of(*ends)]).collect();
    held(&section, &of_links)?;
    series_rows(
        &top,
        run.bins,
        of_links.iter().copied(),
        sources.flows.len(),
    )?;

    let mut written = top.finish()?;
    let of_flows = all_written(&flow_sections)?;
    let of_kinds = kinds
        .iter()
        .map(Queued::written)
        .collect::<Result<Vec<_>, _>>()?;
    let made = Made {
        sky: &sky,
        crossed: &crossed,
        passed: &passed,
        used: &used,
    };
    let alone = made.alone(&written, &of_kinds, &of_flows)?;
    let mut table = section.finish()?;
    for (of_kind, key) in of_kinds.into_iter().zip([GROUND.name, ISL.name]) {
        table.write(key, Value::Table(one_table(of_kind)));
    }
    written.write(keys::top::CONSTELLATION.name, Value::Table(table));
    written.write(keys::top::FLOW.name, Value::Tables(of_flows));
    Ok(Scenario {
        experiment: crossed.keys_of_the_run(TO_GROUND),
        network: Some(made.network()),
        links: alone,
        resolved_toml: written.toml(),
        written,
        inputs,
        notes: told.notes,
        readings: told.readings,
    })
}

/// Refuses tables of scenarios with other links.
fn refuse_others(top: &Section<'_, '_>) -> Result<(), Fault> {
    let of_links = "write [constellation.ground.scheduler] and [[constellation.ground.class]], and the same below isl";
    for (key, cure) in [
        (keys::top::LINK.name, "leave it or [constellation] out"),
        (keys::top::SCHEDULER.name, of_links),
        (keys::top::CLASS.name, of_links),
    ] {
        if let Some(entry) = top.stray(key) {
            let message = format!(
                "is not for a scenario with [constellation], which makes the links; {cure}"
            );
            return Err(of_table(&entry, &message));
        }
    }
    Ok(())
}

/// Reads the stations: names and places.
fn stations(section: &mut Section<'_, '_>) -> Result<Vec<(String, Site)>, Fault> {
    let entry = section.need(STATIONS.name, STATIONS.default.0)?;
    let few = || entry.fault("must have two stations at least");
    if entry.is_empty_list() {
        return Err(few());
    }
    let items = entry.list(limits::STATIONS)?;
    if items.len() < 2 {
        return Err(few());
    }
    let mut stations = Vec::new();
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for item in items {
        let mut table = item.table().ok_or_else(|| {
            item.fault(
                "must be a station like { name = \"paris\", latitude = 48.9, longitude = 2.4 }",
            )
        })?;
        table.expect(&[NAME.name, LATITUDE.name, LONGITUDE.name]);
        let name = table.demand(&NAME)?;
        if name.is_empty() || name.split('-').any(is_satellite) {
            return Err(table.fault_at(
                NAME.name,
                "must not be empty, nor have a part like s17, as satellites are called",
            ));
        }
        if !names.insert(name.clone()) {
            return Err(table.fault_at(NAME.name, "two stations have this name; rename one"));
        }
        let site = Site {
            lat_deg: table.demand(&LATITUDE)?,
            lon_deg: table.demand(&LONGITUDE)?,
        };
        all.push(Value::Inline(table.finish()?));
        stations.push((name, site));
    }
    section.write(STATIONS.name, Value::List(all));
    Ok(stations)
}

/// Whether this is what a satellite is called.
fn is_satellite(name: &str) -> bool {
    name.strip_prefix('s')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()))
}

/// Reads how often ways are computed, ns, and which ones.
fn routes(section: &mut Section<'_, '_>) -> Result<(u64, Metric), Fault> {
    let (mut every_ns, mut metric) = (EVERY.default.0, METRIC.default.0);
    let mut written = Value::inline([
        (EVERY.name, EVERY.form.written(&every_ns)),
        (METRIC.name, METRIC.form.written(&metric)),
    ]);
    if let Some(entry) = section.find(ROUTES.name) {
        let mut table = entry.table().ok_or_else(|| {
            entry.fault("must be a table like { every = \"100ms\", metric = \"delay\" }")
        })?;
        every_ns = table.take(&EVERY)?;
        metric = table.take(&METRIC)?;
        written = Value::Inline(table.finish()?);
    }
    section.write(ROUTES.name, written);
    let metric = match metric {
        0 => Metric::Delay,
        _ => Metric::Hops,
    };
    Ok((every_ns, metric))
}

/// How many links each satellite keeps.
fn links_of_each(section: &mut Section<'_, '_>) -> Result<usize, Fault> {
    let count = match section.find(NEIGHBOURS.name) {
        Some(entry) => match entry.number((2, 4)) {
            Ok(count @ (2 | 4)) => count,
            _ => return Err(entry.fault("must be 2 or 4")),
        },
        None => 4,
    };
    section.write(NEIGHBOURS.name, Value::Number(count));
    Ok(count as usize)
}

/// Reads what links of a kind have in common.
fn kind<'s, 'i>(
    section: Section<'s, 'i>,
    name: &str,
    context: &mut Context<'_>,
) -> Result<Queued<'s, 'i>, Fault> {
    for key in [DELAY.name, RETURN_DELAY.name] {
        if let Some(entry) = section.stray(key) {
            return Err(entry.fault("is computed from where the satellites are; leave it out"));
        }
    }
    for key in [SATELLITE.name, BEAM.name] {
        if let Some(entry) = section.stray(key) {
            return Err(entry.fault("is not possible on links of a constellation; leave it out"));
        }
    }
    for key in [LINK_NAME.name, LIKE.name] {
        if let Some(entry) = section.stray(key) {
            return Err(
                entry.fault("is for [[link]]; links of a constellation have names like s17-s18")
            );
        }
    }
    let trace = section.stray(TRACE.name);
    if trace.is_none() && section.stray(RATE.name).is_none() {
        let message = "is missing; write rate = \"20Mbit\" or trace = \"capacity.csv\"";
        return Err(section.missing(RATE.name, message));
    }
    let notes = context.told.notes.len();
    let queued = Queued::read(section, None, context)?;
    if let Some(trace) = trace.filter(|_| queued.link.delay_s != Signal::Constant(0.0)) {
        return Err(trace.fault(
            "has a column of delays, which are computed from where the satellites are; leave delay out of columns, or remove the column",
        ));
    }
    for note in &mut context.told.notes[notes..] {
        if let Some(rest) = note.strip_prefix("link.") {
            *note = format!("constellation.{name}.{rest}");
        }
    }
    Ok(queued)
}

/// Refuses positions that take too long to compute.
fn few_places(section: &Section<'_, '_>, satellites: u64, steps: u64) -> Result<(), Fault> {
    if satellites.saturating_mul(steps) <= limits::SATELLITE_STEPS {
        return Ok(());
    }
    let message = format!(
        "{satellites} satellites at {steps} times are more than {} places to compute; raise every, or shorten duration",
        limits::SATELLITE_STEPS
    );
    Err(section.fault_at(ROUTES.name, message))
}

/// The kinds of links as flows see them.
fn places<'a>(kinds: &'a [Queued<'_, '_>]) -> Vec<Place<'a>> {
    let names = [GROUND.name, ISL.name];
    let place = |(name, queued): (&'static str, &'a Queued<'_, '_>)| Place {
        name,
        key: format!("constellation.{name}"),
        link: &queued.link,
        names: &queued.classes.names,
        classes: &queued.classes.classes,
        matched: &queued.classes.matched,
    };
    names.into_iter().zip(kinds).map(place).collect()
}

/// The table of a kind of links in the resolved form.
fn one_table((link, of_queues): (Written, Tables)) -> Written {
    let mut table = link.without(&[DELAY.name, RETURN_DELAY.name]);
    of_queues.into(&mut table);
    table
}

fn kind_of(ends: Ends) -> usize {
    match ends {
        (Node::Satellite(_), Node::Satellite(_)) => BETWEEN,
        _ => TO_GROUND,
    }
}

/// The ways of all pairs of stations between which flows go, the station of lower number first.
type Joined = BTreeMap<(u32, u32), Since<Vec<u32>>>;

/// The links of a way with the step from which it is taken.
type Links = (u64, Vec<Ends>);

/// The ways of an entry of flows there and back, in the order of time.
struct Passed {
    there: Vec<Links>,
    back: Vec<Links>,
}

/// The links that ways use, in the order in which flows first do.
#[derive(Default)]
struct Used {
    all: Vec<Ends>,
    numbers: BTreeMap<Ends, u32>,
    delays_ns: Vec<Since<u64>>,
}

impl Sky<'_> {
    fn times_s(&self) -> impl Iterator<Item = f64> + use<'_> {
        (0..self.steps).map(|step| (step * self.every_ns) as f64 * 1e-9)
    }

    /// Computes the ways of all flows, which must have one at some time. Times without one are noted.
    fn joined(
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
    fn without<T>(&self, since: &Since<T>, duration_ns: u64) -> Vec<(u64, u64)> {
        let ends = since.iter().skip(1).map(|(step, _)| step * self.every_ns);
        since
            .iter()
            .zip(ends.chain([duration_ns]))
            .filter(|((_, value), _)| value.is_none())
            .map(|((step, _), end_ns)| (step * self.every_ns, end_ns))
            .collect()
    }

    /// The links of the ways of each entry of flows.
    fn passed(&self, sources: &Sources<'_>, joined: &Joined) -> Vec<Passed> {
        let routes = sources.routes.iter();
        let passed = routes.map(|route| Passed {
            there: self.links_of(route, joined, true),
            back: self.links_of(route, joined, false),
        });
        passed.collect()
    }

    /// The links that flows use, with their delays.
    fn used(&self, section: &Section<'_, '_>, passed: &[Passed]) -> Result<Used, Fault> {
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

    fn name(&self, node: Node) -> String {
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
fn few_hops(
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
        "the ways of all flows during the run pass {all} links, more than {}; lower count, raise constellation.routes.every, or shorten duration",
        limits::HOPS
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

/// All of a network that was read and computed.
struct Made<'m, 's, 'i> {
    sky: &'m Sky<'m>,
    crossed: &'m Crossed<'m, 's, 'i>,
    passed: &'m [Passed],
    used: &'m Used,
}

impl Made<'_, '_, '_> {
    /// The delay of a link over time.
    fn delay_s(&self, number: usize) -> Signal {
        let since = &self.used.delays_ns[number];
        let known = since.iter().filter_map(|(step, ns)| {
            let ns = (*ns)?;
            Some((step * self.sky.every_ns, ns as f64 / 1e9))
        });
        let mut points: Vec<(u64, f64)> = Vec::new();
        for (at_ns, delay_s) in known {
            match points.last() {
                // A link that goes and comes again.
                Some((_, last_s)) if *last_s == delay_s => {}
                // Before it is there for the first time, the link has the delay that it has then.
                None => points.push((0, delay_s)),
                Some(_) => points.push((at_ns, delay_s)),
            }
        }
        match points[..] {
            [(_, only_s)] => Signal::Constant(only_s),
            _ => Signal::Steps {
                points: points.into(),
                end: End::Hold,
            },
        }
    }

    fn link(&self, number: usize) -> Link {
        let kind = kind_of(self.used.all[number]);
        Link {
            delay_s: self.delay_s(number),
            return_delay_ns: 0,
            ..self.crossed.links[kind].link.clone()
        }
    }

    fn absent(&self, number: usize) -> Outages {
        let duration_ns = self.crossed.run.times.duration_ns;
        self.sky
            .without(&self.used.delays_ns[number], duration_ns)
            .into()
    }

    /// Ways of a flow, by the links that it passes, the classes of their kinds, and its number among the copies of an entry.
    fn ways(&self, ways: &[Links], stops: &[Stop<'_>], copy: u64) -> Vec<Way> {
        let hop = |ends: &Ends| Hop {
            link: self.used.numbers[ends],
            class: stops[kind_of(*ends)].class_of(copy) as u32,
        };
        ways.iter()
            .map(|(step, links)| Way {
                from_ns: step * self.sky.every_ns,
                hops: links.iter().map(hop).collect(),
            })
            .collect()
    }

    fn network(&self) -> Network {
        let run = self.crossed.run;
        let station = |(number, ends): (usize, &Ends)| {
            let queued = &self.crossed.links[kind_of(*ends)];
            Station {
                name: self.name(*ends),
                link: self.link(number),
                scheduler: queued.scheduler(),
                classes: queued.classes.classes.clone(),
                absent: self.absent(number),
            }
        };
        let entries = self.crossed.sources.entries.iter();
        let routed = |((flow, route, copy), entry): ((&Flow, &Route<'_>, u64), &usize)| {
            let passed = &self.passed[*entry];
            Routed {
                flow: flow.clone(),
                there: self.ways(&passed.there, &route.there, copy),
                back: self.ways(&passed.back, &route.back, copy),
            }
        };
        Network {
            name: run.name.clone(),
            duration_ns: run.times.duration_ns,
            warmup_ns: run.times.warmup_ns,
            interval_ns: run.times.interval_ns,
            seed: run.seed,
            links: self.used.all.iter().enumerate().map(station).collect(),
            flows: self.crossed.flows().zip(entries).map(routed).collect(),
            on_break: self.sky.on_break,
            log_rows: run.log_rows,
        }
    }

    fn name(&self, (from, to): Ends) -> String {
        format!("{}-{}", self.sky.name(from), self.sky.name(to))
    }

    /// Each link as a scenario of its own, checked.
    fn alone(
        &self,
        top: &Written,
        of_kinds: &[(Written, Tables)],
        of_flows: &[Written],
    ) -> Result<Vec<Arc<Scenario>>, Fault> {
        let mut passing = vec![Passing::default(); self.used.all.len()];
        let entries = &self.crossed.sources.entries;
        for ((flow, route, copy), entry) in self.crossed.flows().zip(entries) {
            let mut seen = BTreeSet::new();
            for (_, links) in &self.passed[*entry].there {
                for (hop, ends) in links.iter().enumerate() {
                    let number = self.used.numbers[ends];
                    if !seen.insert(number) {
                        continue;
                    }
                    let stop = &route.there[kind_of(*ends)];
                    let passing = &mut passing[number as usize];
                    passing.add(flow, stop.class_of(copy), hop == 0);
                    if copy == 0 {
                        passing
                            .tables
                            .push(self.crossed.of_one_link(&of_flows[*entry], stop));
                    }
                }
            }
        }
        let mut alone = Vec::with_capacity(passing.len());
        for (number, passing) in passing.into_iter().enumerate() {
            let kind = kind_of(self.used.all[number]);
            let link = self.link(number);
            let (table, of_queues) = of_kinds[kind].clone();
            let delay = Value::OverTime(link.delay_s.clone(), Kind::Seconds);
            let table = table
                .without(&[MASK.name, NEIGHBOURS.name])
                .replaced(&[DELAY.name], DELAY.name, delay)
                .replaced(
                    &[RETURN_DELAY.name],
                    RETURN_DELAY.name,
                    Value::Whole(0, Kind::Time),
                );
            let queued = &self.crossed.links[kind];
            alone.push(
                self.crossed
                    .alone(top, queued, (link, (table, of_queues)), passing)?,
            );
        }
        Ok(alone)
    }
}
