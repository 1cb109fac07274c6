// SPDX-License-Identifier: BSD-3-Clause
//! The table `[constellation]`: a network whose links and ways are computed from where satellites are, in a pattern or as a file
//! lists them.
//!
//! Positions are computed at equal intervals; until the next one, links, delays and ways stay as they are. Only links that some way
//! uses are links of the network.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linkweir_config::keys::link::{RATE, TRACE};
use linkweir_config::keys::Form;
use linkweir_config::reader::{Entry, Section, Value, Written};
use linkweir_config::units::Kind;
use linkweir_config::Fault;

use crate::experiment::{End, Flow, Link, Outages, Signal};
use crate::network::{Hop, Network, OnBreak, Routed, Station, Way};
use crate::satellite::catalogue::Catalogue;
use crate::satellite::constellation::Place as Site;
use crate::satellite::routes::{Mesh, Metric, Node, Orbits};

use super::checked::Scenario;
use super::constellation::walker;
use super::crossed::{Crossed, Made, Passing};
use super::inputs::{self, Input, Told};
use super::keys;
use super::keys::constellation::{
    EVERY, GROUND, ISL, LATITUDE, LONGITUDE, MASK, METRIC, NAME, NEIGHBOURS, ON_BREAK, ROUTES,
    STATIONS, TLE,
};
use super::keys::link::{BEAM, DELAY, LIKE, NAME as LINK_NAME, RETURN_DELAY, SATELLITE};
use super::keys::satellite::WALKER;
use super::limits;
use super::link::folder;
use super::network::of_table;
use super::overrides::Overrides;
use super::queued::{held, series_rows, Context, Queued, Tables};
use super::route::{Place, Route, Stop, Ways};
use super::run_keys::RunKeys;
use super::sky::{few_hops, Ends, Links, Passed, Sky, Used};
use super::sources::{flow_tables, Sources};
use super::tle;

/// The kinds of links, by their places among what flows pass.
const TO_GROUND: usize = 0;
const BETWEEN: usize = 1;

/// Satellites of one plane of a list whose nodes are spread further are of several planes, most likely, degrees.
const SPREAD_DEG: f64 = 3.0;

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
    let (mut orbits, list) = orbits(&mut section, run, &mut inputs, &mut told)?;
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
    orbits.set_mask(ground.take(&MASK)?);
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
    let satellites = orbits.count() as u64;
    few_places(&section, satellites, steps)?;
    if let (Orbits::Listed(catalogue), Some((path, listed))) = (&orbits, &list) {
        let times_s = (0..steps).map(|step| (step * every_ns) as f64 * 1e-9);
        stay_up(catalogue, (path, listed), times_s)?;
    }
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
        mesh: Mesh::new(orbits, named, neighbours, metric),
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

    let read = Read {
        sky: &sky,
        crossed: &crossed,
        passed: &passed,
        used: &used,
    };
    let files = (inputs, told);
    let make = |top: &Written, of_kinds: &[(Written, Tables)], of_flows: &[Written]| {
        let links = read.alone(top, of_kinds, of_flows)?;
        let mut table = section.finish()?;
        for (of_kind, key) in of_kinds.iter().zip([GROUND.name, ISL.name]) {
            table.write(key, Value::Table(one_table(of_kind.clone())));
        }
        Ok(Made {
            network: read.network(),
            links,
            first: TO_GROUND,
            written: vec![(keys::top::CONSTELLATION.name, Value::Table(table))],
        })
    };
    crossed.scenario(top, &flow_sections, files, make)
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

/// Reads where satellites are: in a pattern, or as a file lists them.
fn orbits(
    section: &mut Section<'_, '_>,
    run: &RunKeys,
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<(Orbits, Option<List>), Fault> {
    let Some(file) = section.find(TLE.name) else {
        if WALKER
            .keys()
            .iter()
            .all(|key| section.stray(key.name()).is_none())
        {
            let message = "lacks satellites; write planes, per_plane, altitude_km and inclination_deg, or tle = \"elements.tle\"";
            return Err(section.fault(message));
        }
        return Ok((walker(section).map(Orbits::Walker)?, None));
    };
    for key in WALKER.keys() {
        if let Some(entry) = section.stray(key.name()) {
            return Err(entry.fault(
                "is of a pattern of satellites, and tle lists them; leave one of the two out",
            ));
        }
    }
    let (path, bytes) = inputs::read(&file, "two-line elements", &folder(section))?;
    let listed = tle::parse(&bytes, &path)?;
    let of_all: Vec<_> = listed.iter().map(|satellite| satellite.orbit).collect();
    let catalogue = Catalogue::new(&of_all);
    stay_up(
        &catalogue,
        (&path, &listed),
        [0.0, run.times.duration_ns as f64 * 1e-9],
    )?;
    let divided = catalogue.divided();
    if divided.spread_deg > SPREAD_DEG {
        told.notes.push(format!(
            "constellation.tle: the satellites of a plane are spread over {:.1} degrees of node, because each is less than 1 degree from the next; links between planes may lack. Remove satellites that are between planes",
            divided.spread_deg
        ));
    }
    let many =
        |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let latest = listed.iter().max_by(|a, b| a.orbit.1.total_cmp(&b.orbit.1));
    told.read(format!(
        "{}: two-line elements, {}, {}, {}; time 0 is the latest epoch, {}",
        path.display(),
        many(listed.len(), "satellite"),
        many(divided.shells, "shell"),
        many(divided.planes, "plane"),
        latest.map_or("", |satellite| &satellite.epoch)
    ));
    section.write(TLE.name, inputs::keep(path.clone(), bytes, inputs));
    Ok((Orbits::Listed(catalogue), Some((path, listed))))
}

/// A list that was read.
type List = (PathBuf, Vec<tle::Listed>);

/// Refuses satellites that have come down at one of these times.
fn stay_up(
    catalogue: &Catalogue,
    (path, listed): (&Path, &[tle::Listed]),
    times_s: impl IntoIterator<Item = f64>,
) -> Result<(), Fault> {
    let mut down = times_s
        .into_iter()
        .filter_map(|time_s| catalogue.down(time_s));
    match down.next() {
        None => Ok(()),
        Some(at) => Err(tle::down(path, &listed[at])),
    }
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

/// All of a network that was read and computed.
struct Read<'m, 's, 'i> {
    sky: &'m Sky<'m>,
    crossed: &'m Crossed<'m, 's, 'i>,
    passed: &'m [Passed],
    used: &'m Used,
}

impl Read<'_, '_, '_> {
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
