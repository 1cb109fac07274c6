// SPDX-License-Identifier: BSD-3-Clause
//! The links that a flow passes, and the classes that its packets join there.

use std::collections::BTreeMap;
use std::ops::Range;

use linkweir_config::matching;
use linkweir_config::reader::{nearest, quote, Entry, Section, Value, Written};
use linkweir_config::Fault;

use crate::experiment::{Class, Link};
use crate::network::Hop;

use super::keys::flow::{BACK, CLASS, DSCP, FROM, PATH, TO};
use super::scheduler::Matched;
use super::users;

/// A name's classes: one, or all copies of an entry.
pub(super) type Names = BTreeMap<String, Range<usize>>;

/// A link on a flow's way.
#[derive(Clone)]
pub(super) struct Stop<'a> {
    /// Its place among the links.
    pub(super) at: usize,
    /// How messages call it, such as `link` or `link.feeder`.
    pub(super) key: &'a str,
    /// The link.
    pub(super) link: &'a Link,
    /// The classes that copies of the flow join in turn.
    pub(super) classes: Range<usize>,
    /// The longest packet that is coded for them, bytes; none where nothing is coded.
    pub(super) coded_bytes: Option<u32>,
}

impl Stop<'_> {
    /// The class of a copy of the flow.
    pub(super) fn class_of(&self, copy: u64) -> usize {
        self.classes.start + (copy % self.classes.len() as u64) as usize
    }

    /// The link, by its number in the network, and the class of a copy of the flow.
    pub(super) fn hop(&self, numbers: &[usize], copy: u64) -> Hop {
        Hop {
            link: numbers[self.at] as u32,
            class: self.class_of(copy) as u32,
        }
    }
}

/// The way of a flow there, one link at least, and the one back.
#[derive(Clone)]
pub(super) struct Route<'a> {
    pub(super) there: Vec<Stop<'a>>,
    pub(super) back: Vec<Stop<'a>>,
    /// In a constellation, the stations at its ends; the stops are then the kinds of links between them.
    pub(super) stations: Option<(u32, u32)>,
}

/// Where flows may go: over the one link of a scenario, or over links with names.
pub(super) enum Ways<'a> {
    One {
        link: &'a Link,
        names: &'a Names,
        classes: &'a [Class],
    },
    Network(&'a Places<'a>),
    /// Over satellites, between stations with these names.
    Constellation(&'a [Place<'a>], &'a [String]),
}

/// The links of a network.
pub(super) struct Places<'a> {
    all: Vec<Place<'a>>,
    /// Their numbers by name.
    numbers: BTreeMap<&'a str, usize>,
}

impl<'a> Places<'a> {
    pub(super) fn new(all: Vec<Place<'a>>) -> Places<'a> {
        let numbers = all.iter().map(|place| place.name).zip(0..).collect();
        Places { all, numbers }
    }

    /// The name of the bond that a link of this name is in.
    fn bond_of(&self, member: &str) -> Option<&'a str> {
        let has = |place: &&Place<'_>| {
            let bond = place.link.bond.iter();
            let mut members = bond.flat_map(|bond| &bond.members);
            members.any(|other| other.name == member)
        };
        self.all.iter().find(has).map(|place| place.name)
    }
}

/// A link of a network as flows see it.
pub(super) struct Place<'a> {
    pub(super) name: &'a str,
    /// How messages call it.
    pub(super) key: String,
    pub(super) link: &'a Link,
    pub(super) names: &'a Names,
    pub(super) classes: &'a [Class],
    pub(super) matched: &'a Matched<'a>,
}

impl<'a> Ways<'a> {
    /// Reads `class` and, in a network, `path`, `back` and `dscp`.
    pub(super) fn read(&self, section: &mut Section<'_, '_>) -> Result<Route<'a>, Fault> {
        match self {
            Ways::One {
                link,
                names,
                classes,
            } => one(section, link, names, classes),
            Ways::Network(places) => network(section, places),
            Ways::Constellation(kinds, stations) => between(section, kinds, stations),
        }
    }
}

fn one<'a>(
    section: &mut Section<'_, '_>,
    link: &'a Link,
    names: &Names,
    classes: &[Class],
) -> Result<Route<'a>, Fault> {
    refuse_stations(section, "leave it out")?;
    for key in [DSCP.name, PATH.name, BACK.name] {
        if let Some(entry) = section.find(key) {
            return Err(entry.fault(
                "is for links with names: write [[link]] with a name, [link.scheduler] and [[link.class]], or leave this out",
            ));
        }
    }
    let entry = section.need(
        CLASS.name,
        &quote(names.keys().next().map_or("", String::as_str)),
    )?;
    let wanted = entry.text()?;
    section.write(CLASS.name, wanted);
    let joined = class_called(&entry, wanted, names, "")?;
    let there = Stop {
        at: 0,
        key: "link",
        link,
        coded_bytes: users::longest_coded_bytes(link, &classes[joined.start]),
        classes: joined,
    };
    Ok(Route {
        there: vec![there],
        back: Vec::new(),
        stations: None,
    })
}

/// The classes of a name; `place` says in messages where there are none, such as ` on link.feeder`.
fn class_called(
    entry: &Entry<'_, '_>,
    wanted: &str,
    classes: &Names,
    place: &str,
) -> Result<Range<usize>, Fault> {
    classes.get(wanted).cloned().ok_or_else(|| {
        let cure = others(wanted, classes.keys().map(String::as_str));
        entry.fault(format!("no class{place} has this name; {cure}"))
    })
}

/// What there is in place of an unknown name.
fn others<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    const LISTED: usize = 20;
    let names: Vec<&str> = names.collect();
    match nearest(wanted, &names) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None if names.len() > LISTED => format!("there are {}, {} and so on", names[0], names[1]),
        None => format!("there are {}", names.join(", ")),
    }
}

/// Refuses `from` and `to` where there are no stations.
fn refuse_stations(section: &mut Section<'_, '_>, cure: &str) -> Result<(), Fault> {
    for key in [FROM.name, TO.name] {
        if let Some(entry) = section.find(key) {
            return Err(entry.fault(format!("is for the stations of a [constellation]; {cure}")));
        }
    }
    Ok(())
}

/// The way between two stations, by the kinds of links that it passes.
fn between<'a>(
    section: &mut Section<'_, '_>,
    kinds: &'a [Place<'a>],
    names: &[String],
) -> Result<Route<'a>, Fault> {
    for key in [PATH.name, BACK.name] {
        if let Some(entry) = section.find(key) {
            return Err(entry
                .fault("is for [[link]]; with a [constellation], name stations in from and to"));
        }
    }
    section.expect(&[FROM.name, TO.name]);
    let from = station(section, FROM.name, names)?;
    let to = station(section, TO.name, names)?;
    if from == to {
        let message = "is the station of from, too; name another one";
        return Err(section.fault_at(TO.name, message));
    }
    let classes = Chosen::read(section, kinds, 0..kinds.len())?;
    let stops = kinds.iter().enumerate();
    let stops = stops.map(|(at, kind)| kind.stop(at, &classes));
    let there = stops.collect::<Result<Vec<_>, _>>()?;
    Ok(Route {
        back: there.clone(),
        there,
        stations: Some((from, to)),
    })
}

/// The station that a key names.
fn station(
    section: &mut Section<'_, '_>,
    key: &'static str,
    names: &[String],
) -> Result<u32, Fault> {
    let example = quote(names.first().map_or("", String::as_str));
    let entry = section.need(key, &example)?;
    let wanted = entry.text()?;
    let Some(at) = names.iter().position(|name| name == wanted) else {
        let cure = others(wanted, names.iter().map(String::as_str));
        return Err(entry.fault(format!("no station has this name; {cure}")));
    };
    section.write(key, wanted);
    Ok(at as u32)
}

impl<'a> Place<'a> {
    /// The link as one on a flow's way.
    fn stop(&'a self, at: usize, classes: &Chosen<'_, '_>) -> Result<Stop<'a>, Fault> {
        let joined = classes.on(self)?;
        Ok(Stop {
            at,
            key: &self.key,
            link: self.link,
            coded_bytes: users::longest_coded_bytes(self.link, &self.classes[joined.start]),
            classes: joined,
        })
    }
}

fn network<'a>(section: &mut Section<'_, '_>, known: &'a Places<'a>) -> Result<Route<'a>, Fault> {
    refuse_stations(section, "list links in path")?;
    let places = &known.all[..];
    let path = match (section.find(PATH.name), places) {
        (Some(entry), _) => links(&entry, known)?,
        (None, [_]) => vec![0],
        (None, _) => {
            let first = places.first().map_or("", |place| place.name);
            let message = format!(
                "is missing; list the links that the packets pass, such as path = [{}]",
                quote(first)
            );
            return Err(section.missing(PATH.name, message));
        }
    };
    let back = match section.find(BACK.name) {
        Some(entry) => links(&entry, known)?,
        None => Vec::new(),
    };
    let classes = Chosen::read(section, places, path.iter().chain(&back).copied())?;
    write_links(section, PATH.name, &path, places);
    if !back.is_empty() {
        write_links(section, BACK.name, &back, places);
    }
    let stops = |numbers: &[usize]| -> Result<Vec<Stop<'a>>, Fault> {
        let stop = |at: &usize| places[*at].stop(*at, &classes);
        numbers.iter().map(stop).collect()
    };
    Ok(Route {
        there: stops(&path)?,
        back: stops(&back)?,
        stations: None,
    })
}

fn write_links(section: &mut Section<'_, '_>, key: &str, numbers: &[usize], places: &[Place<'_>]) {
    let names = numbers.iter().map(|at| Value::from(places[*at].name));
    section.write(key, Value::List(names.collect()));
}

/// The numbers of the links that a list names, each once.
fn links(entry: &Entry<'_, '_>, places: &Places<'_>) -> Result<Vec<usize>, Fault> {
    if entry.is_empty_list() {
        return Err(entry.fault("must name one link at least"));
    }
    let mut found: Vec<usize> = Vec::new();
    for item in entry.list(usize::MAX)? {
        let wanted = item.text()?;
        let Some(&at) = places.numbers.get(wanted) else {
            if let Some(bond) = places.bond_of(wanted) {
                return Err(item.fault(format!(
                    "is a link of bond {0}; flows name the bond: write [{0}]",
                    quote(bond)
                )));
            }
            let cure = others(wanted, places.all.iter().map(|place| place.name));
            return Err(item.fault(format!("no link has this name; {cure}")));
        };
        if found.contains(&at) {
            return Err(item.fault("the way passes this link a second time, a loop; leave one out"));
        }
        found.push(at);
    }
    Ok(found)
}

/// How a flow says which class it joins on each link.
enum Chosen<'s, 'i> {
    /// `dscp`.
    Matched(Entry<'s, 'i>, u8),
    /// `class = "voice"`.
    Everywhere(Entry<'s, 'i>, &'s str),
    /// `class = { feeder = "voice" }`: by the links' names.
    Each(Entry<'s, 'i>, BTreeMap<&'s str, Entry<'s, 'i>>),
}

impl<'s, 'i> Chosen<'s, 'i> {
    /// Reads `dscp` or `class` of a flow that passes the links with these numbers.
    fn read(
        section: &mut Section<'s, 'i>,
        places: &[Place<'_>],
        passed: impl Iterator<Item = usize> + Clone,
    ) -> Result<Chosen<'s, 'i>, Fault> {
        let class = section.find(CLASS.name);
        match (section.find(DSCP.name), class) {
            (Some(entry), Some(_)) => {
                Err(entry.fault("class and dscp exclude each other; leave one out"))
            }
            (Some(entry), None) => {
                let point = matching::code_point(&entry)?;
                section.write(DSCP.name, matching::written_code_point(point));
                Ok(Chosen::Matched(entry, point))
            }
            (None, Some(entry)) => match entry.table() {
                Some(table) => Chosen::each(section, entry, &table, places, passed),
                None => {
                    let wanted = entry.text()?;
                    section.write(CLASS.name, wanted);
                    Ok(Chosen::Everywhere(entry, wanted))
                }
            },
            (None, None) => {
                let first = passed.clone().next().and_then(|at| places.get(at));
                let example = first.and_then(|place| place.names.keys().next());
                let message = format!(
                    "is missing; write class = {}, or dscp = \"EF\" for the class that matches it on each link",
                    quote(example.map_or("", String::as_str))
                );
                Err(section.missing(CLASS.name, message))
            }
        }
    }

    fn each(
        section: &mut Section<'s, 'i>,
        entry: Entry<'s, 'i>,
        table: &Section<'s, 'i>,
        places: &[Place<'_>],
        passed: impl Iterator<Item = usize>,
    ) -> Result<Chosen<'s, 'i>, Fault> {
        let names: Vec<&str> = passed.map(|at| places[at].name).collect();
        let mut classes = BTreeMap::new();
        let mut written = Written::default();
        for link in table.names() {
            let Some(class) = table.stray(link) else {
                continue;
            };
            if !names.contains(&link) {
                let cure = others(link, names.iter().copied());
                return Err(class.fault(format!("the flow passes no link of this name; {cure}")));
            }
            written.write(link, class.text()?);
            classes.insert(link, class);
        }
        section.write(CLASS.name, Value::Inline(written));
        Ok(Chosen::Each(entry, classes))
    }

    /// The classes on a link.
    fn on(&self, place: &Place<'_>) -> Result<Range<usize>, Fault> {
        let there = format!(" on {}", place.key);
        match self {
            Chosen::Everywhere(entry, wanted) => {
                class_called(entry, wanted, place.names, &there).map_err(|mut fault| {
                    fault.message.push_str(&format!(
                        "; where links call their classes differently, write class = {{ {} = ..., ... }}",
                        quote(place.name)
                    ));
                    fault
                })
            }
            Chosen::Each(entry, classes) => match classes.get(place.name) {
                Some(class) => class_called(class, class.text()?, place.names, &there),
                None => Err(entry.fault(format!(
                    "does not say which class{there}; add {} = {}",
                    quote(place.name),
                    quote(place.names.keys().next().map_or("", String::as_str))
                ))),
            },
            Chosen::Matched(entry, point) => {
                let name = place.matched.class_of(*point).ok_or_else(|| {
                    entry.fault(format!(
                        "matches no class{there}; add match = [{{ dscp = {} }}] to one of its classes, or leave match out of one, which then takes the rest",
                        matching::written_code_point(*point)
                    ))
                })?;
                class_called(entry, name, place.names, &there)
            }
        }
    }
}
