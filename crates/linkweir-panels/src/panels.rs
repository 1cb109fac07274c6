// SPDX-License-Identifier: BSD-3-Clause
//! From tables to panels.

use std::collections::BTreeMap;
use std::sync::Arc;

use linkweir_sim::scenario::Scenario;

use crate::apart::told_apart;
use crate::calls::Calls;
use crate::collected::{Collected, Limits, Run};
use crate::distribution::Distributions;
use crate::panel::Panel;
use crate::rows::Rows;
use crate::{beam, levels, series};

/// Tables of a run over one link, or of one link of a network, on their way to panels.
pub struct Panels {
    collected: Collected,
    calls: Calls,
    distributions: Distributions,
}

impl Panels {
    /// Nothing yet of a run of this scenario.
    ///
    /// `sent_bytes` is what each class sent, by its name: of more than [`SHOWN`](crate::SHOWN) classes, the busiest come first.
    #[must_use]
    pub fn new(
        scenario: Arc<Scenario>,
        run: Run,
        limits: Limits,
        sent_bytes: Option<&BTreeMap<String, f64>>,
    ) -> Panels {
        let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let mut columns = vec![
            ("series", series::columns(&scenario, run)),
            ("link", named(&["capacity_bps"])),
            ("channel", named(&["rate_bps"])),
            ("carrier", named(&["occupancy", "outage"])),
        ];
        let levels = levels::columns(&scenario);
        if !levels.is_empty() {
            columns.push(("levels", levels));
        }
        Panels {
            calls: Calls::new(&scenario),
            collected: Collected::new(scenario, run, limits, sent_bytes, columns),
            distributions: Distributions::default(),
        }
    }

    /// Names of the classes that are drawn, in the order of the legend: that of the scenario, or the busiest first if there are
    /// many.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.collected.classes
    }

    /// How many other classes the run has.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.collected.left_out
    }

    /// How many intervals of the run become one point.
    #[must_use]
    pub fn step(&self) -> usize {
        self.collected.step
    }

    /// The tables whose rows are wanted, with the columns: for panels over time, or for distributions.
    #[must_use]
    pub fn wanted(&self, distributions: bool) -> Vec<(&'static str, Vec<&str>)> {
        if distributions {
            return vec![("delays", Distributions::COLUMNS.to_vec())];
        }
        let voice = std::iter::once(("voice", Calls::COLUMNS.to_vec()));
        self.collected.wanted().chain(voice).collect()
    }

    /// Takes rows of a table, in their order; those of other tables than the wanted ones are passed over.
    ///
    /// # Errors
    /// A wanted column is missing.
    pub fn take(&mut self, table: &str, rows: &Rows<'_>) -> Result<(), String> {
        let taken = match table {
            "voice" => self.calls.take(rows).map_err(str::to_owned),
            "delays" => self.distributions.take(rows).map_err(str::to_owned),
            _ => self.collected.take(table, rows),
        };
        taken.map_err(|column| format!("table {table} has no column {column}"))
    }

    /// The panels of the run over its time, and those of a beam; panels without data are left out.
    pub fn over_time(&mut self) -> Vec<Panel> {
        self.collected.end();
        let mut found = series::panels(&self.collected);
        found.extend(beam::panels(&self.collected));
        found.extend(levels::panels(&self.collected));
        found.extend(self.calls.panel(self.collected.run.simulated_s));
        found.into_iter().map(told_apart).collect()
    }

    /// The distributions of delays.
    #[must_use]
    pub fn distributions(&self) -> Vec<Panel> {
        let found = self.distributions.panels(&self.collected.classes);
        found.into_iter().map(told_apart).collect()
    }
}
