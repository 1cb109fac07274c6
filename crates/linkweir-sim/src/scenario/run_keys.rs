// SPDX-License-Identifier: BSD-3-Clause
//! The keys at the top level of a scenario, which say how long what is run and with which seed.

use std::path::Path;

use linkweir_config::keys::Form;
use linkweir_config::reader::{Section, Source};
use linkweir_config::units::Kind;
use linkweir_config::Fault;

use crate::experiment::{Experiment, Flow};

use super::overrides::Overrides;
use super::queued::Queued;
use super::{keys, limits, measures};

/// The keys of the run, whatever it runs over.
pub(super) struct RunKeys {
    pub(super) name: String,
    pub(super) times: Times,
    pub(super) seed: u64,
    /// Bins of each series.
    pub(super) bins: u64,
    pub(super) log_rows: Option<u64>,
}

impl RunKeys {
    /// Reads them.
    pub(super) fn read(
        top: &mut Section<'_, '_>,
        source: &Source<'_>,
        overrides: &Overrides,
    ) -> Result<RunKeys, Fault> {
        let name = name(top, source)?;
        let times = Times::read(top, overrides)?;
        let seed = seed(top, overrides)?;
        let bins = times.bins(top)?;
        let log_rows = measures::log(top)?;
        Ok(RunKeys {
            name,
            times,
            seed,
            bins,
            log_rows,
        })
    }

    /// The run over a link.
    pub(super) fn experiment(&self, queued: &Queued<'_, '_>, flows: Vec<Flow>) -> Experiment {
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

/// The name; without one, that of the file.
fn name(top: &mut Section<'_, '_>, source: &Source<'_>) -> Result<String, Fault> {
    let file_name = source
        .file()
        .and_then(Path::file_stem)
        .map(|stem| stem.to_string_lossy().into_owned());
    let name = file_name.unwrap_or_else(|| "scenario".to_owned());
    top.take_or(&keys::top::NAME, name)
}

/// How long a link to which the caller brings packets exists, ns, unless the scenario has a duration.
const DRIVEN_NS: u64 = 3_600_000_000_000;

/// The length of the run, and its parts.
pub(super) struct Times {
    pub(super) duration_ns: u64,
    pub(super) warmup_ns: u64,
    pub(super) interval_ns: u64,
}

impl Times {
    fn read(top: &mut Section<'_, '_>, overrides: &Overrides) -> Result<Times, Fault> {
        let duration_ns = if overrides.driven {
            top.take_or(&keys::top::DURATION, DRIVEN_NS)?
        } else {
            top.demand(&keys::top::DURATION)?
        };
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
    top.write(keys::top::SEED.name, keys::top::SEED.form.written(&seed));
    Ok(seed)
}
