// SPDX-License-Identifier: BSD-3-Clause
//! A parsed scenario as Python holds it.

use std::path::PathBuf;
use std::sync::Arc;

use linkweir_sim::experiment::{as_steps, Capacity, Class, End, Reorder, Signal, Traffic};
use linkweir_sim::network::{Hop, Routed, Station, Way};
use linkweir_sim::scenario::{self, Fault, Overrides};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::brought::Brought;
use crate::errors::{raise, RunError};
use crate::inputs::hints;
use crate::panics::caught;
use crate::typed;

/// A scenario that was checked and is valid.
#[pyclass(frozen, module = "linkweir._native")]
pub struct Scenario {
    pub inner: Arc<scenario::Scenario>,
}

/// A flow's name, and the links with their classes that it passes there and back.
type FlowsWay<'a> = (&'a str, Vec<(&'a str, &'a str)>, Vec<(&'a str, &'a str)>);

/// The links with their classes that packets pass from a time on, s.
type Since<'a> = (f64, Vec<(&'a str, &'a str)>);

/// A flow's name, and its ways there and back over time.
type FlowsWays<'a> = (&'a str, Vec<Since<'a>>, Vec<Since<'a>>);

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[pymethods]
impl Scenario {
    /// Each link of a network alone, in the network's order: a scenario with the flows that pass the link on their way
    /// there. None for a scenario with one link.
    #[getter]
    fn links(&self) -> Vec<Scenario> {
        let alone = self.inner.links.iter().cloned();
        alone.map(|inner| Scenario { inner }).collect()
    }

    /// Names of the links of a network, in the network's order; None for one link.
    #[getter]
    fn link_names(&self) -> Option<Vec<&str>> {
        let network = self.inner.network.as_ref()?;
        Some(
            network
                .links
                .iter()
                .map(|link| link.name.as_str())
                .collect(),
        )
    }

    /// The ways of the flows of a network at the start: its name, and the links with their classes there and back.
    fn ways(&self) -> Vec<FlowsWay<'_>> {
        let Some(network) = &self.inner.network else {
            return Vec::new();
        };
        let hop = |hop: &Hop| {
            let link = &network.links[hop.link as usize];
            let class = &link.classes[hop.class as usize];
            (link.name.as_str(), class.name.as_str())
        };
        let first = |ways: &[Way]| {
            let hops = ways.first().map(|way| way.hops.iter().map(hop).collect());
            hops.unwrap_or_default()
        };
        let way = |routed: &'_ Routed| (first(&routed.there), first(&routed.back));
        let named = |routed| {
            let (there, back) = way(routed);
            (routed.flow.name.as_str(), there, back)
        };
        network.flows.iter().map(named).collect()
    }

    /// The same over time: of each flow, its ways there and back with the time in s from which packets are sent over them. No
    /// links: there is no way from then on.
    fn ways_over_time(&self) -> Vec<FlowsWays<'_>> {
        let Some(network) = &self.inner.network else {
            return Vec::new();
        };
        let hop = |hop: &Hop| {
            let link = &network.links[hop.link as usize];
            let class = &link.classes[hop.class as usize];
            (link.name.as_str(), class.name.as_str())
        };
        let since = |way: &Way| (seconds(way.from_ns), way.hops.iter().map(hop).collect());
        let all = |ways: &[Way]| ways.iter().map(since).collect();
        let routed = network.flows.iter();
        routed
            .map(|flow| (flow.flow.name.as_str(), all(&flow.there), all(&flow.back)))
            .collect()
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.experiment.name
    }

    /// Simulated time, s.
    #[getter]
    fn duration_s(&self) -> f64 {
        seconds(self.inner.experiment.duration_ns)
    }

    /// Start of what totals cover, s.
    #[getter]
    fn warmup_s(&self) -> f64 {
        seconds(self.inner.experiment.warmup_ns)
    }

    /// Width of the bins of series, s.
    #[getter]
    fn interval_s(&self) -> f64 {
        seconds(self.inner.experiment.interval_ns)
    }

    /// How long the capacity is given for, s, when it comes in steps or opportunities, as from a trace. The last step of
    /// one that holds its last value counts as long as the one before.
    #[getter]
    fn capacity_length_s(&self) -> Option<f64> {
        let end_ns = match &self.inner.experiment.link.capacity {
            Capacity::Opportunities { at_ns, .. } => *at_ns.last()?,
            Capacity::Rate(Signal::Steps { points, end }) => match (end, &points[..]) {
                (End::Loop { period_ns }, _) => *period_ns,
                (End::Stop { at_ns }, _) => *at_ns,
                (End::Hold, [.., (before_ns, _), (last_ns, _)]) => 2 * last_ns - before_ns,
                (End::Hold, _) => return None,
            },
            Capacity::Rate(_) => return None,
        };
        Some(seconds(end_ns))
    }

    /// Capacity (`rate`, bit/s), propagation delay (`delay`, s) or loss of the link as steps: starts in ns and values. What
    /// changes smoothly is cut into steps of `finest_s` with its means. Opportunities have none; see `opportunities`.
    fn link_steps(&self, of: &str, finest_s: f64) -> PyResult<(Vec<u64>, Vec<f64>)> {
        let link = &self.inner.experiment.link;
        let signal = match (of, &link.capacity) {
            ("rate", Capacity::Rate(signal)) => signal,
            ("rate", Capacity::Opportunities { .. }) => return Ok((Vec::new(), Vec::new())),
            ("delay", _) => &link.delay_s,
            ("loss", _) => &link.loss,
            _ => return Err(PyValueError::new_err(format!("no link has a {of}"))),
        };
        let finest_ns = ((finest_s * 1e9) as u64).max(1);
        let until_ns = self.inner.experiment.duration_ns;
        Ok(as_steps(signal, until_ns, finest_ns).into_iter().unzip())
    }

    /// Of a bond alone: how much of what is promised to each class, bit/s, its links can carry. First with all, then without
    /// each one: the numbers of the classes that are promised something, and bit/s. Empty for other scenarios.
    fn kept(&self, promised_bps: Vec<u64>) -> Vec<Vec<(usize, u64)>> {
        let Some(bond) = &self.inner.experiment.link.bond else {
            return Vec::new();
        };
        let all = bond.kept(&promised_bps).into_iter();
        all.map(|all| all.iter().map(|kept| (kept.class, kept.kept_bps)).collect())
            .collect()
    }

    /// The part of the packets that is held back, and for how long, s.
    #[getter]
    fn reorder(&self) -> Option<(f64, f64)> {
        let held = |held: &Reorder| (held.probability, seconds(held.delay_ns));
        self.inner.experiment.link.reorder.as_ref().map(held)
    }

    /// What becomes of the first `count` packets that leave the device of a plain link: a byte each, 0 if it travels on, 1 if
    /// it is lost, 2 if it is held back first; None where the loss changes over time.
    fn fates<'py>(&self, py: Python<'py>, count: usize) -> Option<Bound<'py, PyBytes>> {
        let experiment = &self.inner.experiment;
        let fates = linkweir_sim::fates(&experiment.link, experiment.seed, count)?;
        let bytes: Vec<u8> = fates.iter().map(|fate| *fate as u8).collect();
        Some(PyBytes::new(py, &bytes))
    }

    /// Instants in ns at which bytes may leave, up to the end, and how many at each; none where the capacity is a rate.
    fn opportunities(&self) -> (Vec<u64>, u32) {
        let experiment = &self.inner.experiment;
        let Capacity::Opportunities { at_ns, bytes } = &experiment.link.capacity else {
            return (Vec::new(), 0);
        };
        let period_ns = at_ns.last().copied().unwrap_or(0).max(1);
        let rounds = experiment.duration_ns / period_ns;
        let all = (0..=rounds).flat_map(|round| at_ns.iter().map(move |at| round * period_ns + at));
        let inside = all.take_while(|at_ns| *at_ns < experiment.duration_ns);
        (inside.collect(), *bytes)
    }

    /// The packets of a flow of kind replay, or of the first of its copies: ns after its start, and bytes; None for others.
    fn replayed(&self, flow: &str) -> Option<Vec<(u64, u32)>> {
        let single = self.inner.experiment.flows.iter();
        let network = self.inner.network.iter();
        let routed = network.flat_map(|network| network.flows.iter().map(|routed| &routed.flow));
        let named = |name: &str| name == flow || name.strip_prefix(flow) == Some("-1");
        match &single.chain(routed).find(|f| named(&f.name))?.traffic {
            Traffic::Replay { packets, .. } => Some(packets.to_vec()),
            _ => None,
        }
    }

    /// Seed of all random numbers.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.experiment.seed
    }

    /// Name of the policy; of a network, those of its links that differ, joined by commas.
    #[getter]
    fn policy(&self) -> String {
        let Some(network) = &self.inner.network else {
            return self.inner.experiment.scheduler.policy.clone();
        };
        let mut names: Vec<&str> = Vec::new();
        for link in &network.links {
            if !names.contains(&link.scheduler.policy.as_str()) {
                names.push(&link.scheduler.policy);
            }
        }
        names.join(", ")
    }

    /// Names of the classes, in queue order; of a network, those of its links in turn, each with its link in front:
    /// `feeder: voice`.
    #[getter]
    fn classes(&self) -> Vec<String> {
        let Some(network) = &self.inner.network else {
            let classes = self.inner.experiment.classes.iter();
            return classes.map(|class| class.name.clone()).collect();
        };
        let of_link = |link: &Station| {
            let name = |class: &Class| format!("{}: {}", link.name, class.name);
            link.classes.iter().map(name).collect::<Vec<_>>()
        };
        network.links.iter().flat_map(of_link).collect()
    }

    /// Names of the flows, copies counted.
    #[getter]
    fn flows(&self) -> Vec<&str> {
        match &self.inner.network {
            Some(network) => network.flows.iter().map(|f| f.flow.name.as_str()).collect(),
            None => {
                let flows = self.inner.experiment.flows.iter();
                flows.map(|flow| flow.name.as_str()).collect()
            }
        }
    }

    /// The scenario as TOML with every default written out.
    #[getter]
    fn resolved(&self) -> &str {
        &self.inner.resolved_toml
    }

    /// Its declared keys as numbers, with their units in the names.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        typed::tables(py, &self.inner.written)
    }

    /// Its keys as the resolved form has them.
    fn written<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        typed::written(py, &self.inner.written)
    }

    /// Notes on results of the models that its writer may not expect, a sentence each.
    #[getter]
    fn notes(&self) -> Vec<&str> {
        self.inner.notes.iter().map(String::as_str).collect()
    }

    /// What each measured series was taken for, a line each.
    #[getter]
    fn readings(&self) -> Vec<&str> {
        self.inner.readings.iter().map(String::as_str).collect()
    }

    /// The files it names: (name in a run directory, path, content).
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> Vec<(&str, String, Bound<'py, PyBytes>)> {
        let shown = |path: &PathBuf| path.display().to_string();
        self.inner
            .inputs
            .iter()
            .map(|i| (i.name.as_str(), shown(&i.path), PyBytes::new(py, &i.bytes)))
            .collect()
    }

    fn __repr__(&self) -> String {
        let e = &self.inner.experiment;
        let links = self
            .link_names()
            .map(|all| format!("{} links, ", all.len()));
        let links = links.unwrap_or_default();
        format!(
            "<Scenario {:?}: {}, {}{} classes, {} flows, {} s>",
            e.name,
            self.policy(),
            links,
            self.classes().len(),
            self.flows().len(),
            seconds(e.duration_ns)
        )
    }
}

fn finish(
    py: Python<'_>,
    parsed: Result<Result<scenario::Scenario, Fault>, String>,
) -> PyResult<Scenario> {
    match parsed {
        Ok(Ok(inner)) => Ok(Scenario {
            inner: Arc::new(inner),
        }),
        Ok(Err(fault)) => Err(raise(py, &fault)),
        Err(panic) => Err(RunError::new_err(panic)),
    }
}

/// Parses TOML; `path` is for messages and for paths in it, and need not exist.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Python names them
#[pyo3(signature = (text, path=None, *, seed=None, trace=None, trace_content=None, trace_keys="", driven=false))]
pub fn parse(
    py: Python<'_>,
    text: &str,
    path: Option<PathBuf>,
    seed: Option<u64>,
    trace: Option<PathBuf>,
    trace_content: Option<Vec<u8>>,
    trace_keys: &str,
    driven: bool,
) -> PyResult<Scenario> {
    let overrides = Overrides {
        seed,
        trace,
        trace_content,
        hints: hints(py, trace_keys)?,
        policies: Some(Arc::new(Brought)),
        driven,
        ..Overrides::default()
    };
    let parsed = py.detach(|| caught(|| scenario::parse_with(text, path.as_deref(), &overrides)));
    finish(py, parsed)
}

/// Reads and parses a scenario file.
#[pyfunction]
#[pyo3(signature = (path, *, seed=None, trace=None, trace_content=None, trace_keys="", driven=false))]
pub fn load(
    py: Python<'_>,
    path: PathBuf,
    seed: Option<u64>,
    trace: Option<PathBuf>,
    trace_content: Option<Vec<u8>>,
    trace_keys: &str,
    driven: bool,
) -> PyResult<Scenario> {
    let overrides = Overrides {
        seed,
        trace,
        trace_content,
        hints: hints(py, trace_keys)?,
        policies: Some(Arc::new(Brought)),
        driven,
        ..Overrides::default()
    };
    let parsed = py.detach(|| caught(|| scenario::load(&path, &overrides)));
    finish(py, parsed)
}
