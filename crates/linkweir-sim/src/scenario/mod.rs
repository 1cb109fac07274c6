// SPDX-License-Identifier: BSD-3-Clause
//! Scenarios: experiments as people write them, in TOML, with units.
//!
//! [`parse`] checks everything before anything runs: units, names, ranges, keys that exclude or need each other, the trace
//! file, and, with the core's own tables, every parameter of the policy. Its result needs no further check. The first error
//! is returned as a [`Fault`] with file, line, key and cure.
//!
//! ```
//! use std::path::Path;
//!
//! let text = r#"
//! duration = "10s"
//! [link]
//! rate = "20Mbit"
//! [scheduler]
//! policy = "fifo"
//! [[class]]
//! name = "all"
//! [[flow]]
//! class = "all"
//! kind = "greedy"
//! "#;
//! let scenario = linkweir_sim::scenario::parse(text, Path::new("one.toml")).unwrap();
//! assert_eq!(scenario.experiment.link.nominal_bps, 20_000_000);
//!
//! let fault = linkweir_sim::scenario::parse(&text.replace("20Mbit", "20"), Path::new("one.toml")).unwrap_err();
//! assert!(fault.to_string().starts_with("one.toml:4: link.rate = \"20\": needs a unit"));
//! ```

mod across;
mod attenuation;
mod beam;
mod brought;
mod constellation;
mod fading;
mod finder;
mod inputs;
pub mod keys;
mod limits;
mod link;
mod measures;
mod overrides;
mod satellite;
mod scheduler;
mod traffic;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use linkweir_config::keys::Form;
use linkweir_config::reader::{quote, Section, Source};
use linkweir_config::{queue, trace};
use toml::de::DeTable;

use crate::experiment::{self, first_classes, Class, Experiment, Flow, Link, Scheduler};

use inputs::Told;

pub use finder::{Finder, Found};
pub use inputs::Input;
pub use linkweir_config::fault::Fault;
pub use linkweir_config::parameters::show as show_parameter;
pub use linkweir_config::trace::{
    parse as parse_trace, read as read_trace, Column, Format, Hints, NamedColumns, Place, Trace,
    TraceEnd,
};
pub use linkweir_config::units::{
    parse as parse_quantity, show_real as show_quantity, Decimal, Kind,
};
pub use overrides::Overrides;

/// A scenario that was checked and is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The experiment to run.
    pub experiment: Experiment,
    /// The same scenario with every default written out; traces are named as in a run directory, `inputs/...`.
    pub resolved_toml: String,
    /// The files the scenario names.
    pub inputs: Vec<Input>,
    /// Notes where a model differs from what the scenario's writer may expect, a sentence each.
    pub notes: Vec<String>,
    /// What each measured series was taken for, a line each.
    pub readings: Vec<String>,
}

/// Reads a scenario; paths in it are relative to the folder of `file`.
///
/// # Errors
/// The first thing wrong with it.
pub fn parse(text: &str, file: &Path) -> Result<Scenario, Fault> {
    parse_with(text, Some(file), &Overrides::default())
}

/// As [`parse`]; without a file, paths are relative to the working directory and faults carry no line.
///
/// # Errors
/// The first thing wrong with it.
pub fn parse_with(
    text: &str,
    file: Option<&Path>,
    overrides: &Overrides,
) -> Result<Scenario, Fault> {
    let source = Source::new(text, file);
    let document = source.parse(limits::SCENARIO_BYTES)?;
    read(&source, document.get_ref(), overrides)
}

/// Reads a scenario file.
///
/// # Errors
/// When it cannot be read, or the first thing wrong with it.
pub fn load(file: &Path, overrides: &Overrides) -> Result<Scenario, Fault> {
    let text = trace::read_text(file, limits::SCENARIO_BYTES)?;
    parse_with(&text, Some(file), overrides)
}

fn read<'i>(
    source: &Source<'i>,
    document: &DeTable<'i>,
    overrides: &Overrides,
) -> Result<Scenario, Fault> {
    let mut top = Section::new(source, document, String::new(), 0);
    let name = name(&mut top, source)?;
    let times = Times::read(&mut top)?;
    let seed = seed(&mut top, overrides)?;
    let bins = times.bins(&top)?;
    let log_rows = measures::log(&mut top)?;

    let mut link_section = top.need_table(keys::top::LINK.name, keys::top::LINK.default.0)?;
    let mut inputs = Vec::new();
    let mut told = Told::default();
    let (link, channel) = link::read(
        &mut link_section,
        times.duration_ns,
        seed,
        overrides,
        &mut inputs,
        &mut told,
    )?;
    let link_lines = link_section.finish()?;

    let mut scheduler_section =
        top.need_table(keys::top::SCHEDULER.name, keys::top::SCHEDULER.default.0)?;
    let (policy, params) = scheduler::policy(
        &mut scheduler_section,
        overrides,
        &mut inputs,
        &mut told.notes,
    )?;
    let mut class_sections = top.tables(keys::top::CLASS.name, limits::CLASSES)?;
    let Classes {
        classes,
        qparams,
        ranges,
        owners,
    } = Classes::read(&mut class_sections, &policy, &params)?;
    let across = across::AcrossUsers::read(&mut scheduler_section, &policy, &mut class_sections)?;
    let nusers = first_classes(&experiment::users(&classes)).len();
    beam::fits(&mut top, &link, (nusers, classes.len()))?;
    held(&top, &classes)?;
    let mut flow_sections = top.tables(
        keys::top::FLOW.name,
        usize::try_from(limits::FLOWS).unwrap_or(usize::MAX),
    )?;
    top.known()?; // before the flows, which may name a class of a misspelt table
    let flows = flows(
        &mut flow_sections,
        (&ranges, &classes),
        &link,
        &times,
        (&mut inputs, &mut told),
    )?;
    series_rows(&top, bins, &link, (classes.len(), nusers), flows.len())?;

    let places: Vec<&Section<'_, '_>> = owners.iter().map(|at| &class_sections[*at]).collect();
    users::fit(&classes, &link, &places)?;
    let across_users = across.as_ref().map(|across| {
        let tables = (&owners[..], &class_sections[..]);
        across.scheduler(&classes, tables, &link)
    });
    let scheduler = Scheduler {
        across: across_users.transpose()?,
        policy: policy.name.to_string(),
        brought: policy.brought.clone(),
        params,
        qparams,
    };
    let resolved = top.finish()?;
    // Unknown keys are refused before the core checks: one of them may be a misspelt key that the core needs.
    let mut scheduler_lines = scheduler_section.known()?.to_owned();
    let mut class_lines = all_lines(&class_sections)?;
    if let Some(across) = &across {
        scheduler_lines.push_str(&across.lines()?);
        for (at, lines) in class_lines.iter_mut().enumerate() {
            lines.push_str(&across.lines_of(at)?);
        }
    }
    let flow_lines = all_lines(&flow_sections)?;
    let experiment = Experiment {
        name,
        duration_ns: times.duration_ns,
        warmup_ns: times.warmup_ns,
        interval_ns: times.interval_ns,
        seed,
        link,
        scheduler,
        classes,
        flows,
        log_rows,
    };
    fits(&experiment, &policy, &scheduler_section, &places)?;

    let mut parts = vec![("[link]", link_lines)];
    parts.extend(channel);
    parts.push(("[scheduler]", scheduler_lines));
    parts.extend(class_lines.into_iter().map(|lines| ("[[class]]", lines)));
    parts.extend(flow_lines.into_iter().map(|lines| ("[[flow]]", lines)));
    Ok(Scenario {
        experiment,
        resolved_toml: resolved_form(resolved, &parts),
        inputs,
        notes: told.notes,
        readings: told.readings,
    })
}

/// The name; without one, that of the file.
fn name(top: &mut Section<'_, '_>, source: &Source<'_>) -> Result<String, Fault> {
    let file_name = source
        .file()
        .and_then(Path::file_stem)
        .map(|stem| stem.to_string_lossy().into_owned());
    let name = file_name.unwrap_or_else(|| "scenario".to_owned());
    top.take_or(&keys::top::NAME, name)
}

/// Refuses a policy whose values do not fit together, and packets that do not fit into their queues. `places` has the
/// table of each class.
fn fits(
    experiment: &Experiment,
    policy: &scheduler::Chosen,
    section: &Section<'_, '_>,
    places: &[&Section<'_, '_>],
) -> Result<(), Fault> {
    let Experiment {
        link,
        scheduler,
        classes,
        flows,
        ..
    } = experiment;
    scheduler::check(policy, scheduler, (classes, link), section, places)?;
    traffic::fits(classes, flows, link, places)?;
    if let Some(limit) = scheduler::shared_limit(policy, scheduler) {
        traffic::fits_all(limit, flows, section)?;
    }
    Ok(())
}

/// The resolved lines of several tables, of which all keys must be known.
fn all_lines(sections: &[Section<'_, '_>]) -> Result<Vec<String>, Fault> {
    let lines = sections.iter().map(|section| section.known());
    lines.map(|lines| lines.map(str::to_owned)).collect()
}

/// The scenario's own keys, then its tables.
fn resolved_form(mut top: String, parts: &[(&str, String)]) -> String {
    for (header, lines) in parts {
        top.push('\n');
        top.push_str(header);
        top.push('\n');
        top.push_str(lines);
    }
    top
}

/// The length of the run, and its parts.
struct Times {
    duration_ns: u64,
    warmup_ns: u64,
    interval_ns: u64,
}

impl Times {
    fn read(top: &mut Section<'_, '_>) -> Result<Times, Fault> {
        let duration_ns = top.demand(&keys::top::DURATION)?;
        Ok(Times {
            duration_ns,
            warmup_ns: top.whole(
                keys::top::WARMUP.name,
                Kind::Time,
                (keys::top::WARMUP.form.min, duration_ns - 1),
                keys::top::WARMUP.default.0,
            )?,
            interval_ns: top.whole(
                keys::top::INTERVAL.name,
                Kind::Time,
                (keys::top::INTERVAL.form.min, duration_ns),
                duration_ns.min(1_000_000_000),
            )?,
        })
    }

    /// Bins of each series.
    fn bins(&self, top: &Section<'_, '_>) -> Result<u64, Fault> {
        let bins = self.duration_ns.div_ceil(self.interval_ns);
        if bins > limits::BINS {
            let message = format!(
                "would give {bins} bins; at most {} are possible: raise interval",
                limits::BINS
            );
            return Err(top.fault_at(keys::top::INTERVAL.name, message));
        }
        Ok(bins)
    }
}

fn seed(top: &mut Section<'_, '_>, overrides: &Overrides) -> Result<u64, Fault> {
    let seed_key = top.find(keys::top::SEED.name);
    let seed = match (overrides.seed, seed_key) {
        (Some(seed), _) => seed,
        (None, Some(entry)) => keys::top::SEED.form.read(&entry)?,
        (None, None) => keys::top::SEED.default.0,
    };
    top.write(keys::top::SEED.name, seed.to_string());
    Ok(seed)
}

/// All classes, copies counted.
#[derive(Default)]
struct Classes {
    classes: Vec<Class>,
    qparams: Vec<u64>,
    /// The classes that a name means: one, or all copies of an entry.
    ranges: BTreeMap<String, Range<usize>>,
    /// Which entry each class comes from.
    owners: Vec<usize>,
}

impl Classes {
    fn read(
        sections: &mut [Section<'_, '_>],
        policy: &scheduler::Chosen,
        params: &[u64],
    ) -> Result<Classes, Fault> {
        let mut all = Classes::default();
        let mut matched = scheduler::Matched::default();
        for (index, section) in sections.iter_mut().enumerate() {
            let (name, copies, row) = scheduler::class(section, policy, params, &mut matched)?;
            let first = all.classes.len();
            let range = first..first + copies.len();
            if range.end > limits::CLASSES {
                let message = format!(
                    "there would be more than {} classes; use fewer",
                    limits::CLASSES
                );
                return Err(section.fault_at(keys::class::COUNT.name, message));
            }
            let single = copies
                .iter()
                .zip(first..)
                .map(|(class, at)| (class.name.clone(), at..at + 1));
            let family = (copies.len() > 1).then(|| (name.clone(), range.clone()));
            for (name, range) in single.chain(family) {
                if all.ranges.insert(name, range).is_some() {
                    return Err(section.fault_at(
                        keys::class::NAME.name,
                        "two classes have this name; rename one",
                    ));
                }
            }
            let limits: Vec<_> = all
                .classes
                .iter()
                .chain(&copies)
                .map(Class::limit)
                .collect();
            queue::shares(limits.iter(), |message| {
                section.fault_at(keys::class::LEAST.name, message)
            })?;
            for class in copies {
                all.owners.push(index);
                all.classes.push(class);
                all.qparams.extend_from_slice(&row);
            }
        }
        Ok(all)
    }
}

/// Refuses queues that may hold too many packets together.
fn held(top: &Section<'_, '_>, classes: &[Class]) -> Result<(), Fault> {
    let held: u64 = classes
        .iter()
        .map(|c| u64::from(c.limit_pkts.unwrap_or(0)))
        .sum();
    if held > limits::QUEUED_PKTS {
        let message = format!(
            "the queues together may hold {held} packets, more than {}; lower limit",
            limits::QUEUED_PKTS
        );
        return Err(top.fault_at(keys::top::CLASS.name, message));
    }
    Ok(())
}

/// All flows, copies counted, with names of their own.
fn flows(
    sections: &mut [Section<'_, '_>],
    (ranges, classes): (&BTreeMap<String, Range<usize>>, &[Class]),
    link: &Link,
    times: &Times,
    (inputs, told): (&mut Vec<Input>, &mut Told),
) -> Result<Vec<Flow>, Fault> {
    let mut flows = Vec::new();
    let mut entries = Vec::new();
    for (index, section) in sections.iter_mut().enumerate() {
        let before = flows.len();
        let entry = (index, times.duration_ns);
        let class = section.stray(keys::flow::CLASS.name);
        let range = class.and_then(|class| ranges.get(class.text().ok()?));
        let link = users::link_of(link, range.map(|range| &classes[range.start]));
        traffic::read(
            section,
            entry,
            ranges,
            &link,
            (&mut *inputs, &mut *told),
            &mut flows,
        )?;
        entries.resize(entries.len() + flows.len() - before, index);
    }
    let too_large = traffic::too_many_connections(&flows)
        .or_else(|| measures::too_large(&flows, (times.warmup_ns, times.duration_ns)));
    if let Some((at, key, message)) = too_large {
        return Err(sections[entries[at]].fault_at(key, message));
    }
    let mut names = BTreeSet::new();
    for (flow, entry) in flows.iter().zip(entries) {
        if !names.insert(flow.name.as_str()) {
            let message = format!("two flows are called {}; rename one", quote(&flow.name));
            return Err(sections[entry].fault_at(keys::flow::NAME.name, message));
        }
    }
    Ok(flows)
}

/// Refuses series with too many rows.
fn series_rows(
    top: &Section<'_, '_>,
    bins: u64,
    link: &Link,
    (classes, users): (usize, usize),
    flows: usize,
) -> Result<(), Fault> {
    // In a beam each user also has a row in table `channel`.
    let terminals = link.beam.as_ref().map_or(0, |_| users);
    let rows = bins.saturating_mul((classes + terminals + flows) as u64);
    if rows > limits::SERIES_ROWS {
        let twice = if terminals > 0 {
            " (two rows each)"
        } else {
            ""
        };
        let message = format!(
            "{bins} bins for {classes} classes{twice} and {flows} flows are more than {} rows; raise interval",
            limits::SERIES_ROWS
        );
        return Err(top.fault_at(keys::top::INTERVAL.name, message));
    }
    Ok(())
}
