// SPDX-License-Identifier: BSD-3-Clause
//! Scenarios with several links: the tables `[[link]]`, each with its scheduler and classes.
//!
//! A link that is like another one has the other's keys in place of those it does not give, with their places in the file, so
//! that a fault still names the line that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use linkweir_config::keys::link::{RATE, TRACE};
use linkweir_config::reader::{nearest, quote, Entry, Section, Value, Written};
use linkweir_config::trace::keys::DESCRIBED;
use linkweir_config::Fault;
use toml::de::DeTable;

use crate::experiment::{Flow, Member};
use crate::network::{Network, OnBreak, Routed, Station, Way};
use crate::random;

use super::bond;
use super::checked::Scenario;
use super::crossed::{Crossed, Made, Passing};
use super::inputs::Told;
use super::keys;
use super::keys::link::{BEAM, CLASS, COST, LIKE, NAME, NOMINAL, SATELLITE, SCHEDULER};
use super::keys::satellite::{CONSTELLATION, DELAYS, REORDER};
use super::limits;
use super::link;
use super::overrides::Overrides;
use super::queued::{held, series_rows, Context, Queued, Tables};
use super::route::{Place, Places, Route, Stop, Ways};
use super::run_keys::RunKeys;
use super::sources::{flow_tables, Sources};

/// The table of a link with all its keys, also those it takes from another one.
pub(super) struct Full<'i> {
    name: String,
    table: DeTable<'i>,
    /// Where it begins in the document.
    start: usize,
}

/// The tables `[[link]]`; none for a scenario with one `[link]`.
///
/// # Errors
/// Tables of the one form in a scenario of the other, names that are missing, unknown or there twice, a link that is like
/// itself.
pub(super) fn tables<'i>(
    document: &DeTable<'i>,
    top: &mut Section<'_, 'i>,
) -> Result<Option<Vec<Full<'i>>>, Fault> {
    let links = match top.find(keys::top::LINK.name) {
        Some(entry) if entry.is_list() => document.get(keys::top::LINK.name),
        _ => None,
    };
    let Some(items) = links.and_then(|links| links.get_ref().as_array()) else {
        return Ok(None);
    };
    for (key, written) in [
        (SCHEDULER.name, "[link.scheduler]"),
        (CLASS.name, "[[link.class]]"),
    ] {
        if let Some(entry) = top.stray(key) {
            return Err(of_table(
                &entry,
                &format!("belongs to a scenario with one [link], and this one has [[link]]; write {written} below the [[link]] that it belongs to"),
            ));
        }
    }
    let mut sections = top.tables(keys::top::LINK.name, limits::LINKS)?;
    let mut numbers = BTreeMap::new();
    for (at, section) in sections.iter_mut().enumerate() {
        let entry = section.entry_of(&NAME)?;
        let name = entry.name()?;
        if numbers.insert(name, at).is_some() {
            return Err(entry.fault("two links have this name; rename one"));
        }
    }
    let likes = sections
        .iter_mut()
        .map(|section| like(section, &numbers))
        .collect::<Result<Vec<_>, _>>()?;
    refuse_cycles(&mut sections, &likes)?;
    let own: Vec<(&DeTable<'i>, usize)> = items
        .iter()
        .filter_map(|item| Some((item.get_ref().as_table()?, item.span().start)))
        .collect();
    let mut names = vec![""; own.len()];
    for (name, at) in &numbers {
        names[*at] = name;
    }
    let full = own.iter().enumerate().map(|(at, (table, start))| Full {
        name: names[at].to_owned(),
        table: full(table, at, &likes, &own),
        start: *start,
    });
    Ok(Some(full.collect()))
}

/// The number of the link that a link is like.
fn like(
    section: &mut Section<'_, '_>,
    numbers: &BTreeMap<&str, usize>,
) -> Result<Option<usize>, Fault> {
    let Some(entry) = section.find(LIKE.name) else {
        return Ok(None);
    };
    let wanted = entry.text()?;
    if let Some(at) = numbers.get(wanted) {
        return Ok(Some(*at));
    }
    let names: Vec<&str> = numbers.keys().copied().collect();
    let cure = match nearest(wanted, &names) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => format!("there are {}", names.join(", ")),
    };
    Err(entry.fault(format!("no link has this name; {cure}")))
}

/// Refuses links that are like each other in a circle.
fn refuse_cycles(sections: &mut [Section<'_, '_>], likes: &[Option<usize>]) -> Result<(), Fault> {
    let mut sound = vec![false; likes.len()];
    for first in 0..likes.len() {
        let mut trail = BTreeSet::new();
        let mut at = Some(first);
        while let Some(here) = at.filter(|here| !sound[*here]) {
            if !trail.insert(here) {
                let message = "leads back to this link; give the keys in one of the links that are like each other";
                return Err(sections[here].fault_at(LIKE.name, message));
            }
            at = likes[here];
        }
        for here in trail {
            sound[here] = true;
        }
    }
    Ok(())
}

/// A link's keys, and for those it does not give the keys of the links it is like, the nearest first.
fn full<'i>(
    table: &DeTable<'i>,
    at: usize,
    likes: &[Option<usize>],
    own: &[(&DeTable<'i>, usize)],
) -> DeTable<'i> {
    let mut full = table.clone();
    let mut liked = likes[at];
    while let Some(other) = liked {
        let settled = settled(&full);
        for (key, value) in own[other].0 {
            let name = key.get_ref().as_ref();
            let taken = full.contains_key(name) || settled.contains(&name) || name == LIKE.name;
            if !taken {
                full.insert(key.clone(), value.clone());
            }
        }
        liked = likes[other];
    }
    full
}

/// The keys that a link does not take from another one, as those it has leave no room for them.
fn settled(table: &DeTable<'_>) -> Vec<&'static str> {
    let has = |key: &str| table.contains_key(key);
    let mut keys = Vec::new();
    if has(RATE.name) || has(TRACE.name) || has(BEAM.name) {
        keys.extend([RATE.name, TRACE.name, BEAM.name, NOMINAL.name]);
        keys.extend(DESCRIBED.keys().iter().map(|key| key.name()));
    }
    if has(SATELLITE.name) {
        keys.push(BEAM.name);
    }
    if has(BEAM.name) {
        keys.push(SATELLITE.name);
    }
    keys
}

/// A fault of a table, or of the first of several.
pub(super) fn of_table(entry: &Entry<'_, '_>, message: &str) -> Fault {
    let first = entry
        .list(usize::MAX)
        .ok()
        .and_then(|all| all.into_iter().next());
    match first.as_ref().unwrap_or(entry).table() {
        Some(table) => table.fault(message),
        None => entry.fault(message),
    }
}

/// Refuses `[link.scheduler]` and `[[link.class]]` below the one `[link]`.
pub(super) fn refuse_tables_of_links(section: &Section<'_, '_>) -> Result<(), Fault> {
    for (key, written, above) in [
        (CLASS.name, "[[link.class]]", "[[class]]"),
        (SCHEDULER.name, "[link.scheduler]", "[scheduler]"),
    ] {
        if let Some(entry) = section.stray(key) {
            return Err(of_table(
                &entry,
                &format!("{written} must be below a [[link]] with a name; write [[link]] above it, or {above} for one [link]"),
            ));
        }
    }
    for key in [NAME.name, LIKE.name] {
        if let Some(entry) = section.stray(key) {
            return Err(entry.fault(
                "is for several links; write [[link]] with two brackets, or leave this out",
            ));
        }
    }
    Ok(())
}

/// Refuses what is simulated for one link only.
fn refuse_what_needs_one_link(section: &Section<'_, '_>) -> Result<(), Fault> {
    let satellite = section.stray(SATELLITE.name);
    let Some(satellite) = satellite.and_then(|entry| entry.table()) else {
        return Ok(());
    };
    for key in [CONSTELLATION.name, DELAYS.name] {
        if let Some(entry) = satellite.stray(key) {
            return Err(of_table(
                &entry,
                "is for one [link]: among several, the path to a satellite has a fixed delay; leave this out and give delay to the [[link]], or write one [link]",
            ));
        }
    }
    match satellite.stray(REORDER.name) {
        Some(entry) if entry.text() == Ok("shared") => Err(entry.fault(
            "is for one [link]: among several, each flow has a buffer of its own; write reorder = \"per_flow\", or one [link]",
        )),
        _ => Ok(()),
    }
}

/// Refuses what a member of a bond does not have.
fn refuse_of_a_member(section: &Section<'_, '_>, bond: &str) -> Result<(), Fault> {
    for (key, message) in [
        (
            SCHEDULER.name,
            "a link of a bond has no scheduler of its own; write [bond.scheduler] below [[bond]]",
        ),
        (
            CLASS.name,
            "a link of a bond has no classes of its own; write [[bond.class]] below [[bond]]",
        ),
        (
            SATELLITE.name,
            "repetitions are simulated behind a scheduler of their own; leave satellite out, or the link out of the bond",
        ),
        (
            BEAM.name,
            "a beam is simulated behind a scheduler of its own; leave beam out, or the link out of the bond",
        ),
    ] {
        if let Some(entry) = section.stray(key) {
            return Err(of_table(&entry, &format!("is in bond {}: {message}", quote(bond))));
        }
    }
    Ok(())
}

/// Reads the rest of a scenario with these links.
pub(super) fn read<'s, 'i>(
    mut top: Section<'s, 'i>,
    tables: &'s [Full<'i>],
    run: &RunKeys,
    overrides: &Overrides,
) -> Result<Scenario, Fault> {
    if let Some(path) = &overrides.trace {
        let message = format!(
            "{} cannot take the place of several links' rates; write it as trace of one of them",
            path.display()
        );
        return Err(top.fault_at(keys::top::LINK.name, message));
    }
    let mut inputs = Vec::new();
    let mut told = Told::default();
    let link_names: Vec<&str> = tables.iter().map(|full| full.name.as_str()).collect();
    let bonds = bond::tables(&mut top, &link_names)?;
    let bond_of = |at: usize| bonds.iter().position(|bond| bond.members.contains(&at));
    let mut links = Vec::new();
    let mut places = Vec::new();
    let mut members: Vec<Option<(Member, Section<'s, 'i>)>> = Vec::new();
    for (at, full) in tables.iter().enumerate() {
        let path = format!("link[{at}]");
        let mut section = Section::new(top.source(), &full.table, path, full.start);
        section.expect(&[NAME.name, LIKE.name]);
        refuse_what_needs_one_link(&section)?;
        let notes = told.notes.len();
        let mut context = Context {
            duration_ns: run.times.duration_ns,
            seed: random::of_name(run.seed, &full.name),
            overrides,
            inputs: &mut inputs,
            told: &mut told,
        };
        if let Some(bond) = bond_of(at) {
            refuse_of_a_member(&section, &bonds[bond].name)?;
            members.push(Some(member(section, full, &mut context)?));
        } else {
            if let Some(entry) = section.find(COST.name) {
                return Err(entry.fault(format!(
                    "is for a link of a bond, and no [[bond]] has this one among its links; add {} to links of a [[bond]], or leave it out",
                    quote(&full.name)
                )));
            }
            links.push(Queued::read(section, None, &mut context)?);
            places.push((full.name.clone(), "link"));
            members.push(None);
        }
        for note in &mut told.notes[notes..] {
            if let Some(rest) = note.strip_prefix("link.") {
                *note = format!("link.{}.{rest}", full.name);
            }
        }
    }
    let mut of_members = Vec::new();
    for bond in bonds {
        let own: Vec<_> = bond
            .members
            .iter()
            .filter_map(|at| members[*at].take())
            .collect();
        let mut context = Context {
            duration_ns: run.times.duration_ns,
            seed: random::of_name(run.seed, &bond.name),
            overrides,
            inputs: &mut inputs,
            told: &mut told,
        };
        for (at, (_, section)) in bond.members.iter().zip(&own) {
            of_members.push((*at, named(&tables[*at].name, section.known()?.clone())));
        }
        let queued = Queued::read_bond(bond.section, own, &mut context)?;
        if let Some(known) = &queued.link.bond {
            let (classes, promised_bps) = (&queued.classes.classes, queued.reserved_bps());
            let notes = bond::broken_promises(&bond.name, known, classes, &promised_bps);
            told.notes.extend(notes);
        }
        links.push(queued);
        places.push((bond.name, "bond"));
    }
    of_members.sort_unstable_by_key(|(at, _)| *at);
    let names = places;
    held(&top, &links.iter().collect::<Vec<_>>())?;
    let mut flow_sections = flow_tables(&mut top)?;
    top.known()?;
    let places = names
        .iter()
        .zip(&links)
        .map(|((name, kind), queued)| Place {
            name,
            key: format!("{kind}.{name}"),
            link: &queued.link,
            names: &queued.classes.names,
            classes: &queued.classes.classes,
            matched: &queued.classes.matched,
        });
    let places = Places::new(places.collect());
    let ways = Ways::Network(&places);
    let files = (&mut inputs, &mut told);
    let sources = Sources::read(&mut flow_sections, &ways, &run.times, files)?;
    series_rows(&top, run.bins, links.iter(), sources.flows.len())?;

    let read = Read {
        crossed: Crossed {
            run,
            links: &links,
            sources: &sources,
        },
        names: &names,
        order: order(&sources.routes, links.len()),
    };
    read.crossed.ways_back_fit(&flow_sections)?;
    let files = (inputs, told);
    let make = |top: &Written, of_links: &[(Written, Tables)], of_flows: &[Written]| {
        let with_name = |at: &usize| {
            let (link, of_queues) = of_links[*at].clone();
            let mut table = match names[*at].1 {
                "bond" => link,
                _ => named(&names[*at].0, link),
            };
            of_queues.into(&mut table);
            table
        };
        let of_kind = |kind: &str| -> Vec<Written> {
            let order = read.order.iter().filter(|at| names[**at].1 == kind);
            order.map(with_name).collect()
        };
        let mut in_order = of_kind("link");
        in_order.extend(of_members.into_iter().map(|(_, table)| table));
        let mut written = vec![(keys::top::LINK.name, Value::Tables(in_order))];
        let bonds = of_kind("bond");
        if !bonds.is_empty() {
            written.push((keys::top::BOND.name, Value::Tables(bonds)));
        }
        Ok(Made {
            network: read.network(),
            links: read.alone(top, of_links, of_flows)?,
            first: read.order[0],
            written,
        })
    };
    read.crossed.scenario(top, &flow_sections, files, make)
}

/// A link's keys in the resolved form, behind its name.
fn named(name: &str, keys: Written) -> Written {
    let mut named = Written::default();
    named.write(NAME.name, name);
    named.extend(keys);
    named
}

/// Reads a link of a bond: what it is, and the table it was read from.
fn member<'s, 'i>(
    mut section: Section<'s, 'i>,
    full: &Full<'_>,
    context: &mut Context<'_>,
) -> Result<(Member, Section<'s, 'i>), Fault> {
    let cost = section.take(&COST)?;
    let link = link::read(
        &mut section,
        context.duration_ns,
        context.seed,
        context.overrides,
        context.inputs,
        context.told,
    )?;
    section.known()?;
    let member = Member {
        name: full.name.clone(),
        link,
        cost,
    };
    Ok((member, section))
}

/// The links in the order in which flows first use them, then those that none uses.
fn order(routes: &[Route<'_>], links: usize) -> Vec<usize> {
    let mut known = vec![false; links];
    let mut order = Vec::with_capacity(links);
    let stops = routes.iter().flat_map(|r| r.there.iter().chain(&r.back));
    for at in stops.map(|stop| stop.at).chain(0..links) {
        if !std::mem::replace(&mut known[at], true) {
            order.push(at);
        }
    }
    order
}

/// A network as it was read.
struct Read<'r, 's, 'i> {
    crossed: Crossed<'r, 's, 'i>,
    /// The name of each link, and the key of its table.
    names: &'r [(String, &'static str)],
    /// The numbers of the links as they were written, in the order of the network.
    order: Vec<usize>,
}

impl Read<'_, '_, '_> {
    /// Each link as a scenario of its own, checked, in the order of the network.
    fn alone(
        &self,
        top: &Written,
        of_links: &[(Written, Tables)],
        of_flows: &[Written],
    ) -> Result<Vec<Arc<Scenario>>, Fault> {
        let Crossed { links, sources, .. } = &self.crossed;
        let mut passing: Vec<Passing> = links.iter().map(|_| Passing::default()).collect();
        for (flow, route, copy) in self.crossed.flows() {
            for (number, stop) in route.there.iter().enumerate() {
                passing[stop.at].add(flow, stop.class_of(copy), number == 0);
            }
        }
        for (route, table) in sources.routes.iter().zip(of_flows) {
            for stop in &route.there {
                let table = self.crossed.of_one_link(table, stop);
                passing[stop.at].tables.push(table);
            }
        }
        let alone = |at: &usize| {
            let queued = &links[*at];
            let (mut keys, of_queues) = of_links[*at].clone();
            if queued.link.bond.is_some() {
                keys = bond::as_one_link(&queued.link);
            }
            let link = (queued.link.clone(), (keys, of_queues));
            let passing = std::mem::take(&mut passing[*at]);
            self.crossed.alone(top, queued, link, passing)
        };
        self.order.iter().map(alone).collect()
    }

    fn network(&self) -> Network {
        let mut numbers = vec![0; self.order.len()];
        for (number, at) in self.order.iter().enumerate() {
            numbers[*at] = number;
        }
        let way = |stops: &[Stop<'_>], copy: u64| Way {
            from_ns: 0,
            hops: stops.iter().map(|stop| stop.hop(&numbers, copy)).collect(),
        };
        let routed = |(flow, route, copy): (&Flow, &Route<'_>, u64)| Routed {
            flow: flow.clone(),
            there: vec![way(&route.there, copy)],
            back: match &route.back[..] {
                [] => Vec::new(),
                stops => vec![way(stops, copy)],
            },
        };
        let Crossed { run, links, .. } = &self.crossed;
        let station = |at: &usize| Station {
            name: self.names[*at].0.clone(),
            link: links[*at].link.clone(),
            scheduler: links[*at].scheduler(),
            classes: links[*at].classes.classes.clone(),
            absent: Default::default(),
        };
        Network {
            name: run.name.clone(),
            duration_ns: run.times.duration_ns,
            warmup_ns: run.times.warmup_ns,
            interval_ns: run.times.interval_ns,
            seed: run.seed,
            links: self.order.iter().map(station).collect(),
            flows: self.crossed.flows().map(routed).collect(),
            on_break: OnBreak::default(),
            log_rows: run.log_rows,
        }
    }
}
