// SPDX-License-Identifier: BSD-3-Clause
//! Scenarios: experiments as people write them, in TOML, with units.
//!
//! [`parse`] checks everything before anything runs: units, names, ranges, what belongs together, the trace file, and
//! through the core's own tables and checks every parameter of the policy. What it returns needs no further check. The
//! first thing wrong comes back as a [`Fault`] with file, line, key and cure.
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

mod attenuation;
mod beam;
mod constellation;
mod fading;
mod inputs;
mod limits;
mod link;
mod overrides;
mod satellite;
mod scheduler;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use linkweir_config::reader::{quote, Section, Source};
use linkweir_config::{trace, units};
use toml::de::DeTable;

use crate::experiment::{Experiment, Scheduler};

pub use inputs::Input;
pub use linkweir_config::fault::Fault;
pub use linkweir_config::parameters::show as show_parameter;
pub use linkweir_config::trace::{
    parse as parse_trace, read as read_trace, Column, Format, Hints, NamedColumns, Trace, TraceEnd,
};
pub use linkweir_config::units::{
    parse as parse_quantity, show_real as show_quantity, Decimal, Kind,
};
pub use overrides::Overrides;

/// A scenario that was found to be sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What to run.
    pub experiment: Experiment,
    /// The same scenario with every default written out; traces are named as in a run directory, `inputs/...`.
    pub resolved_toml: String,
    /// The files the scenario names.
    pub inputs: Vec<Input>,
    /// What the models made of the scenario that its writer may not expect, a sentence each.
    pub notes: Vec<String>,
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
    let file_name = source
        .file()
        .and_then(Path::file_stem)
        .map(|stem| stem.to_string_lossy().into_owned());
    let name = top.text("name", file_name.as_deref().unwrap_or("scenario"))?;
    let duration_ns = top
        .need("duration", "\"100s\"")?
        .whole(Kind::Time, (1000, limits::DURATION_NS))?;
    top.write(
        "duration",
        quote(&units::show_whole(duration_ns, Kind::Time)),
    );
    let warmup_ns = top.whole("warmup", Kind::Time, (0, duration_ns - 1), 0)?;
    let interval_ns = top.whole(
        "interval",
        Kind::Time,
        (1000, duration_ns),
        duration_ns.min(1_000_000_000),
    )?;
    let seed_key = top.find("seed");
    let seed = match (overrides.seed, seed_key) {
        (Some(seed), _) => seed,
        (None, Some(entry)) => entry.number((0, i64::MAX.unsigned_abs()))?,
        (None, None) => 1,
    };
    top.write("seed", seed.to_string());
    let bins = duration_ns.div_ceil(interval_ns);
    if bins > limits::BINS {
        let message = format!(
            "would give {bins} bins; at most {} are possible: raise interval",
            limits::BINS
        );
        return Err(top.fault_at("interval", message));
    }

    let mut link_section = top.need_table("link", "rate = \"20Mbit\"")?;
    let mut inputs = Vec::new();
    let mut notes = Vec::new();
    let (link, channel) = link::read(
        &mut link_section,
        duration_ns,
        seed,
        overrides,
        &mut inputs,
        &mut notes,
    )?;
    let link_lines = link_section.finish()?;

    let mut scheduler_section = top.need_table("scheduler", "policy = \"pss\"")?;
    let (policy, params) = scheduler::policy(&mut scheduler_section)?;

    let mut classes = Vec::new();
    let mut qparams = Vec::new();
    let mut class_sections = top.tables("class", limits::CLASSES)?;
    // Which entry a class comes from.
    let mut owners = Vec::new();
    let mut class_ranges: BTreeMap<String, Range<usize>> = BTreeMap::new();
    for (index, section) in class_sections.iter_mut().enumerate() {
        let (name, copies, row) = scheduler::class(section, policy, &params)?;
        let first = classes.len();
        let range = first..first + copies.len();
        if range.end > limits::CLASSES {
            let message = format!(
                "there would be more than {} classes; use fewer",
                limits::CLASSES
            );
            return Err(section.fault_at("count", message));
        }
        let single = copies
            .iter()
            .zip(first..)
            .map(|(class, at)| (class.name.clone(), at..at + 1));
        let family = (copies.len() > 1).then(|| (name.clone(), range.clone()));
        for (name, range) in single.chain(family) {
            if class_ranges.insert(name, range).is_some() {
                return Err(section.fault_at("name", "two classes have this name; rename one"));
            }
        }
        for class in copies {
            owners.push(index);
            classes.push(class);
            qparams.extend_from_slice(&row);
        }
    }
    beam::fits(&mut top, &link, classes.len())?;
    let held: u64 = classes
        .iter()
        .map(|c| u64::from(c.limit_pkts.unwrap_or(0)))
        .sum();
    if held > limits::QUEUED_PKTS {
        let message = format!(
            "the queues together may hold {held} packets, more than {}; lower limit",
            limits::QUEUED_PKTS
        );
        return Err(top.fault_at("class", message));
    }

    let mut flows = Vec::new();
    let mut entries = Vec::new();
    let mut flow_sections =
        top.tables("flow", usize::try_from(limits::FLOWS).unwrap_or(usize::MAX))?;
    top.known()?; // before the flows, which may name a class of a misspelt table
    for (index, section) in flow_sections.iter_mut().enumerate() {
        let before = flows.len();
        traffic::read(
            section,
            index,
            &class_ranges,
            &link,
            duration_ns,
            &mut flows,
        )?;
        entries.resize(entries.len() + flows.len() - before, index);
    }
    let mut flow_names = BTreeSet::new();
    for (flow, entry) in flows.iter().zip(entries) {
        if !flow_names.insert(flow.name.as_str()) {
            let message = format!("two flows are called {}; rename one", quote(&flow.name));
            return Err(flow_sections[entry].fault_at("name", message));
        }
    }
    // In a beam each class has a row of what it hears, too.
    let terminals = link.beam.as_ref().map_or(0, |_| classes.len());
    let rows = bins.saturating_mul((classes.len() + terminals + flows.len()) as u64);
    if rows > limits::SERIES_ROWS {
        let twice = if terminals > 0 {
            " (two rows each)"
        } else {
            ""
        };
        let message = format!(
            "{bins} bins for {} classes{twice} and {} flows are more than {} rows; raise interval",
            classes.len(),
            flows.len(),
            limits::SERIES_ROWS
        );
        return Err(top.fault_at("interval", message));
    }

    let scheduler = Scheduler {
        policy: policy.name.to_string(),
        params,
        qparams,
    };
    let mut resolved = top.finish()?;
    // Keys nobody knows are named before the core is asked: they may be what the core misses.
    let scheduler_lines = scheduler_section.known()?;
    let class_lines = class_sections
        .iter()
        .map(Section::known)
        .collect::<Result<Vec<_>, _>>()?;
    let flow_lines = flow_sections
        .into_iter()
        .map(Section::finish)
        .collect::<Result<Vec<_>, _>>()?;
    let places: Vec<&Section<'_, '_>> = owners.iter().map(|at| &class_sections[*at]).collect();
    scheduler::check(policy, &scheduler, &link, &scheduler_section, &places)?;
    traffic::fits(&classes, &flows, &link, &places)?;
    if let Some(limit_pkts) = scheduler::shared_limit_pkts(policy, &scheduler) {
        traffic::fits_all(limit_pkts, &flows, &scheduler_section)?;
    }

    let mut part = |header: &str, lines: &str| {
        resolved.push('\n');
        resolved.push_str(header);
        resolved.push('\n');
        resolved.push_str(lines);
    };
    part("[link]", &link_lines);
    if let Some((header, lines)) = &channel {
        part(header, lines);
    }
    part("[scheduler]", scheduler_lines);
    class_lines
        .iter()
        .for_each(|lines| part("[[class]]", lines));
    flow_lines.iter().for_each(|lines| part("[[flow]]", lines));

    let experiment = Experiment {
        name,
        duration_ns,
        warmup_ns,
        interval_ns,
        seed,
        link,
        scheduler,
        classes,
        flows,
    };
    Ok(Scenario {
        experiment,
        resolved_toml: resolved,
        inputs,
        notes,
    })
}
