// SPDX-License-Identifier: BSD-3-Clause
//! One run, its results handed to Python as they come.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linkweir_sim::table::{Sink, Table};
use linkweir_sim::{scenario, Outcome};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::calls;
use crate::columns;
use crate::errors::RunError;
use crate::panics::caught;
use crate::scenario::Scenario;

/// How a run ended, for Python.
pub fn describe(py: Python<'_>, outcome: Outcome) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("complete", outcome.complete)?;
    dict.set_item("simulated_s", outcome.simulated_ns as f64 / 1e9)?;
    dict.set_item("events", outcome.events)?;
    dict.set_item("packets", outcome.packets)?;
    dict.set_item(
        "log_cut_s",
        outcome.log_cut_ns.map(|cut_ns| cut_ns as f64 / 1e9),
    )?;
    Ok(dict)
}

struct Stream {
    on_chunk: Py<PyAny>,
    on_progress: Option<Py<PyAny>>,
    on_sent: Option<Py<PyAny>>,
    /// When `on_sent` was called last.
    sent_at: Option<Instant>,
    error: Option<PyErr>,
}

/// Time between two calls of `on_sent`.
const SENT_EVERY: Duration = Duration::from_millis(200);

impl Stream {
    /// Calls `on_sent` if it is time to.
    fn tell_sent(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        sent_bytes: &mut dyn Iterator<Item = u64>,
    ) -> PyResult<()> {
        let Some(callback) = &self.on_sent else {
            return Ok(());
        };
        if self.sent_at.is_some_and(|at| at.elapsed() < SENT_EVERY) {
            return Ok(());
        }
        self.sent_at = Some(Instant::now());
        let sent_bytes: Vec<u64> = sent_bytes.collect();
        callback
            .call1(py, (now_ns as f64 / 1e9, sent_bytes))
            .map(drop)
    }
}

impl Sink for Stream {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        Python::attach(|py| {
            let columns = columns::chunk(py, &table)?;
            self.on_chunk.call1(py, (table.name, columns)).map(drop)
        })
        .map_err(|error: PyErr| {
            let message = error.to_string();
            self.error = Some(error);
            message
        })
    }

    fn progress(
        &mut self,
        now_ns: u64,
        sent_bytes: &mut dyn Iterator<Item = u64>,
    ) -> ControlFlow<()> {
        let result = Python::attach(|py| {
            py.check_signals()?;
            self.tell_sent(py, now_ns, sent_bytes)?;
            match &self.on_progress {
                Some(callback) => callback.call1(py, (now_ns as f64 / 1e9,)).map(drop),
                None => Ok(()),
            }
        });
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                // Ctrl-C is an early end like any other; the caller sees that the run is not complete.
                if !Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                    self.error = Some(error);
                }
                ControlFlow::Break(())
            }
        }
    }
}

/// Simulates a scenario: its network on some threads, or its one link.
pub(crate) fn simulate(
    scenario: &scenario::Scenario,
    threads: usize,
    sink: &mut dyn Sink,
) -> Result<Outcome, linkweir_sim::RunError> {
    match &scenario.network {
        Some(network) => linkweir_sim::run_network(network, threads, sink),
        None => linkweir_sim::run(&scenario.experiment, sink),
    }
}

/// Runs a scenario. `on_chunk(table, columns)` takes rows as they come, `on_progress(simulated_s)` is called now and then,
/// `on_sent(simulated_s, bytes of each class)` at most five times a second. The calls of the policy are recorded in the file
/// `calls` as a vector (`vectors/README.md`). A network is run on `threads` threads, with the same results for any number.
///
/// Ctrl-C ends the run early: what was recorded is handed out and `complete` is False.
#[pyfunction]
#[pyo3(signature = (scenario, on_chunk, on_progress=None, on_sent=None, calls=None, threads=1))]
pub fn run<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    on_chunk: Py<PyAny>,
    on_progress: Option<Py<PyAny>>,
    on_sent: Option<Py<PyAny>>,
    calls: Option<PathBuf>,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = Arc::clone(&scenario.inner);
    let recorded = calls.map(|path| calls::recorded(&scenario, &path));
    let recorded = recorded.transpose().map_err(RunError::new_err)?;
    let mut stream = Stream {
        on_chunk,
        on_progress,
        on_sent,
        sent_at: None,
        error: None,
    };
    let result = py.detach(|| {
        caught(|| match &recorded {
            Some(experiment) => linkweir_sim::run(experiment, &mut stream),
            None => simulate(&scenario, threads, &mut stream),
        })
    });
    if let Some(error) = stream.error {
        return Err(error);
    }
    match result {
        Ok(Ok(outcome)) => describe(py, outcome),
        Ok(Err(error)) => Err(RunError::new_err(error.to_string())),
        Err(panic) => Err(RunError::new_err(panic)),
    }
}

/// All tables but `levels`, whose columns are those of the policy, without rows; of a network or of one link.
#[pyfunction]
#[pyo3(signature = (network=false))]
pub fn empty_tables(py: Python<'_>, network: bool) -> PyResult<Bound<'_, PyDict>> {
    let tables = PyDict::new(py);
    let all = if network {
        linkweir_sim::empty_network_tables()
    } else {
        linkweir_sim::empty_tables()
    };
    for table in all {
        tables.set_item(table.name, columns::chunk(py, &table)?)?;
    }
    Ok(tables)
}
