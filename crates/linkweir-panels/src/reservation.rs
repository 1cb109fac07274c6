// SPDX-License-Identifier: BSD-3-Clause
//! Promised rates, and LR and LM, of the controlled classes of `pss` over time, by the rules of core/src/pss_reserve.h.

use std::collections::BTreeMap;

use linkweir_core::UNSET;
use linkweir_sim::experiment::{as_steps, Capacity, Experiment};
use linkweir_sim::scenario::Scenario;

const LEAST_BPS: f64 = 10.0;

/// What a class has in the policy's table.
struct Settings<'a> {
    names: &'a [&'static str],
    values: &'a [u64],
}

impl Settings<'_> {
    fn get(&self, name: &str) -> Option<f64> {
        let at = self.names.iter().position(|known| *known == name)?;
        Some(self.values[at])
            .filter(|value| *value != UNSET)
            .map(|value| value as f64)
    }

    fn need(&self, name: &str) -> f64 {
        self.get(name).unwrap_or(0.0)
    }

    /// The reserved part of the capacity, if it is one.
    fn share(&self) -> Option<f64> {
        Some(self.need("share") / 1e6).filter(|share| *share > 0.0)
    }

    fn reserved_bps(&self, known_bps: f64) -> f64 {
        let reserved = self
            .share()
            .map_or(self.need("rate"), |share| known_bps * share);
        reserved.max(LEAST_BPS)
    }
}

/// Calls `each` with the classes that have a reservation; with none unless the policy is `pss`.
fn each_reserved(experiment: &Experiment, mut each: impl FnMut(&str, &Settings<'_>)) {
    let policy = experiment.scheduler.core();
    let Some(policy) = policy.filter(|policy| policy.name == "pss") else {
        return;
    };
    let names: Vec<&'static str> = policy.qparams.iter().map(|param| param.name).collect();
    let rows = experiment.scheduler.qparams.chunks_exact(names.len());
    for (class, values) in experiment.classes.iter().zip(rows) {
        let names = &names;
        let settings = Settings { names, values };
        if settings.get("low_level").is_some() {
            each(&class.name, &settings);
        }
    }
}

/// The rate, bit/s, that each class with a reservation in `pss` was promised at some instants, s; empty for other policies.
#[must_use]
pub fn reserved_bps(scenario: &Scenario, times_s: &[f64]) -> BTreeMap<String, Vec<f64>> {
    let known_bps = known_bps(&scenario.experiment, times_s);
    let mut found = BTreeMap::new();
    each_reserved(&scenario.experiment, |name, settings| {
        let rates = known_bps.iter().map(|known| settings.reserved_bps(*known));
        found.insert(name.to_owned(), rates.collect());
    });
    found
}

/// LR and LM of each class with a reservation at some instants, bits.
///
/// Unless they are given, they follow from the capacity that the scheduler knows: a `share` moves with it, and a `rate` takes
/// the largest one so far.
pub(crate) fn bounds_bits(
    scenario: &Scenario,
    times_s: &[f64],
) -> BTreeMap<String, (Vec<f64>, Vec<f64>)> {
    let known_bps = known_bps(&scenario.experiment, times_s);
    let mut found = BTreeMap::new();
    each_reserved(&scenario.experiment, |name, settings| {
        let mut best_bps = 0.0_f64;
        let bounds = known_bps.iter().map(|known| {
            best_bps = best_bps.max(*known);
            let link_bps = if settings.share().is_some() {
                *known
            } else {
                best_bps
            };
            bounds_at(settings, *known, link_bps)
        });
        found.insert(name.to_owned(), bounds.unzip());
    });
    found
}

fn bounds_at(settings: &Settings<'_>, known_bps: f64, link_bps: f64) -> (f64, f64) {
    let reserved_bps = settings.reserved_bps(known_bps);
    let mtu_bits = 8.0 * settings.need("mtu");
    let lower = settings.get("lr").unwrap_or_else(|| {
        let memory_bits = reserved_bps * (settings.need("memory") / 1e9);
        memory_bits.max(2.0 * mtu_bits * reserved_bps / link_bps)
    });
    let upper = settings.get("lm").unwrap_or_else(|| {
        let burst_bits = (settings.need("burst") - 1.0) * mtu_bits;
        lower + burst_bits * (1.0 - reserved_bps / link_bps)
    });
    (lower, upper)
}

/// The capacity that the scheduler knows at each instant: the nominal one, or what was reported last.
fn known_bps(experiment: &Experiment, times_s: &[f64]) -> Vec<f64> {
    let link = &experiment.link;
    let nominal_bps = link.nominal_bps as f64;
    let steps = match &link.capacity {
        Capacity::Rate(signal) if link.follow => {
            let finest_ns = (experiment.interval_ns / 10).max(1);
            as_steps(signal, experiment.duration_ns, finest_ns)
        }
        _ => Vec::new(),
    };
    let at = |time_s: &f64| {
        let place = steps.partition_point(|(start_ns, _)| *start_ns as f64 / 1e9 <= *time_s);
        let reported = place.checked_sub(1).map(|last| steps[last].1);
        reported.filter(|rate| *rate > 0.0).unwrap_or(nominal_bps)
    };
    times_s.iter().map(at).collect()
}
