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
mod network;
mod overrides;
mod queued;
mod route;
mod satellite;
mod scheduler;
mod traffic;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use linkweir_config::keys::Form;
use linkweir_config::reader::{quote, Section, Source};
use linkweir_config::trace;
use toml::de::DeTable;

use crate::experiment::{Experiment, Flow};
use crate::network::Network;

use inputs::Told;
use queued::{Context, Headers, Part, Queued};
use route::{Route, Ways};

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
    /// The experiment to run. Of several links it has the keys of the run only, and [`run`](crate::run) refuses it, as it has
    /// neither classes nor flows: what is run then is `network`.
    pub experiment: Experiment,
    /// The network to run, if the scenario has `[[link]]`.
    pub network: Option<Network>,
    /// Each link of the network alone, in its order, with the flows that pass it on their way there; empty for one link. An
    /// acknowledgement that waits there is no flow.
    pub links: Vec<Arc<Scenario>>,
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
    let run = RunKeys {
        name,
        times,
        seed,
        bins,
        log_rows,
    };
    if let Some(tables) = network::tables(document, &mut top)? {
        return network::read(top, &tables, &run, overrides);
    }
    one_link(top, &run, overrides)
}

/// The keys of the run, whatever it runs over.
struct RunKeys {
    name: String,
    times: Times,
    seed: u64,
    /// Bins of each series.
    bins: u64,
    log_rows: Option<u64>,
}

impl RunKeys {
    /// The run over a link.
    fn experiment(&self, queued: &Queued<'_, '_>, flows: Vec<Flow>) -> Experiment {
        Experiment {
            name: self.name.clone(),
            duration_ns: self.times.duration_ns,
            warmup_ns: self.times.warmup_ns,
            interval_ns: self.times.interval_ns,
            seed: self.seed,
            link: queued.link.clone(),
            scheduler: queued.scheduler(),
            classes: queued.classes.classes.clone(),
            flows,
            log_rows: self.log_rows,
        }
    }
}

/// Reads the rest of a scenario with one link.
fn one_link(
    mut top: Section<'_, '_>,
    run: &RunKeys,
    overrides: &Overrides,
) -> Result<Scenario, Fault> {
    let mut inputs = Vec::new();
    let mut told = Told::default();
    let section = top.need_table(keys::top::LINK.name, keys::top::LINK.default.0)?;
    network::refuse_tables_of_links(&section)?;
    let mut context = Context {
        duration_ns: run.times.duration_ns,
        seed: run.seed,
        overrides,
        inputs: &mut inputs,
        told: &mut told,
    };
    let queued = Queued::read(section, Some(&mut top), &mut context)?;
    held(&top, std::slice::from_ref(&queued))?;
    let mut flow_sections = flow_tables(&mut top)?;
    top.known()?; // before the flows, which may name a class of a misspelt table
    let ways = Ways::One {
        link: &queued.link,
        classes: &queued.classes.names,
    };
    let sources = Sources::read(
        &mut flow_sections,
        &ways,
        &run.times,
        (&mut inputs, &mut told),
    )?;
    series_rows(
        &top,
        run.bins,
        std::slice::from_ref(&queued),
        sources.flows.len(),
    )?;

    let resolved = top.finish()?;
    // Unknown keys are refused before the core checks: one of them may be a misspelt key that the core needs.
    let mut parts = queued.parts(&Headers::ONE)?;
    parts.extend(flow_parts(&flow_sections)?);
    let experiment = run.experiment(&queued, sources.flows);
    queued.fits(&experiment, &|_| true)?;
    Ok(Scenario {
        experiment,
        network: None,
        links: Vec::new(),
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

/// The tables of flows.
fn flow_tables<'s, 'i>(top: &mut Section<'s, 'i>) -> Result<Vec<Section<'s, 'i>>, Fault> {
    let most = usize::try_from(limits::FLOWS).unwrap_or(usize::MAX);
    top.tables(keys::top::FLOW.name, most)
}

/// The resolved lines of the flows, of which all keys must be known.
fn flow_parts(sections: &[Section<'_, '_>]) -> Result<Vec<Part>, Fault> {
    let part = |section: &Section<'_, '_>| Ok((FLOW_HEADER, section.known()?.to_owned()));
    sections.iter().map(part).collect()
}

/// How a flow is headed in the resolved form.
const FLOW_HEADER: &str = "[[flow]]";

/// The scenario's own keys, then its tables.
fn resolved_form(mut top: String, parts: &[Part]) -> String {
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

/// Refuses queues that may hold too many packets together.
fn held(top: &Section<'_, '_>, links: &[Queued<'_, '_>]) -> Result<(), Fault> {
    let held: u64 = links
        .iter()
        .flat_map(|queued| &queued.classes.classes)
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
struct Sources<'a> {
    flows: Vec<Flow>,
    /// Which entry each comes from.
    entries: Vec<usize>,
    /// The way of each entry.
    routes: Vec<Route<'a>>,
}

impl<'a> Sources<'a> {
    fn read(
        sections: &mut [Section<'_, '_>],
        ways: &Ways<'a>,
        times: &Times,
        (inputs, told): (&mut Vec<Input>, &mut Told),
    ) -> Result<Sources<'a>, Fault> {
        let mut flows = Vec::new();
        let mut entries = Vec::new();
        let mut routes = Vec::new();
        for (index, section) in sections.iter_mut().enumerate() {
            let before = flows.len();
            let entry = (index, times.duration_ns);
            let files = (&mut *inputs, &mut *told);
            routes.push(traffic::read(section, entry, ways, files, &mut flows)?);
            entries.resize(entries.len() + flows.len() - before, index);
        }
        let too_large = traffic::too_many_connections(&flows)
            .or_else(|| measures::too_large(&flows, (times.warmup_ns, times.duration_ns)));
        if let Some((at, key, message)) = too_large {
            return Err(sections[entries[at]].fault_at(key, message));
        }
        let mut names = BTreeSet::new();
        for (flow, entry) in flows.iter().zip(&entries) {
            if !names.insert(flow.name.as_str()) {
                let message = format!("two flows are called {}; rename one", quote(&flow.name));
                return Err(sections[*entry].fault_at(keys::flow::NAME.name, message));
            }
        }
        Ok(Sources {
            flows,
            entries,
            routes,
        })
    }
}

/// Refuses series with too many rows.
fn series_rows(
    top: &Section<'_, '_>,
    bins: u64,
    links: &[Queued<'_, '_>],
    flows: usize,
) -> Result<(), Fault> {
    let (mut classes, mut terminals) = (0, 0);
    for queued in links {
        classes += queued.classes.classes.len();
        // In a beam each class also has a row in table `channel`.
        terminals += queued
            .link
            .beam
            .as_ref()
            .map_or(0, |_| queued.classes.classes.len());
    }
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
