// SPDX-License-Identifier: BSD-3-Clause
//! A scenario as the parser hands it out.

use std::sync::Arc;

use linkweir_config::reader::Written;

use crate::experiment::Experiment;
use crate::network::Network;

use super::inputs::Input;

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
    /// The same scenario with every default written out, as values; traces are named as in a run directory, `inputs/...`.
    pub written: Written,
    /// The same in TOML.
    pub resolved_toml: String,
    /// The files the scenario names.
    pub inputs: Vec<Input>,
    /// Notes where a model differs from what the scenario's writer may expect, a sentence each.
    pub notes: Vec<String>,
    /// What each measured series was taken for, a line each.
    pub readings: Vec<String>,
}
