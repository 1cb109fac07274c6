// SPDX-License-Identifier: BSD-3-Clause
//! Many runs on several threads, each with its results kept until Python takes them.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use linkweir_sim::table::{Sink, Table};
use linkweir_sim::{scenario, Outcome};
use pyo3::prelude::*;

use crate::columns;
use crate::errors::RunError;
use crate::panics::caught;
use crate::run::{describe, simulate};
use crate::scenario::Scenario;

/// How often the waiting thread looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

struct Kept<'a> {
    tables: Vec<Table>,
    stop: &'a AtomicBool,
}

impl Sink for Kept<'_> {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        self.tables.push(table);
        Ok(())
    }

    fn progress(&mut self, _: u64, _: &mut dyn Iterator<Item = u64>) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn one(scenario: &scenario::Scenario, stop: &AtomicBool) -> Result<(Outcome, Vec<Table>), String> {
    let mut sink = Kept {
        tables: Vec::new(),
        stop,
    };
    let outcome = caught(|| simulate(scenario, 1, &mut sink))?
        .map_err(|error| format!("{}: {error}", scenario.experiment.name))?;
    Ok((outcome, sink.tables))
}

/// Runs scenarios on `threads` threads and calls `on_done(index, outcome, chunks by table)` as each ends, from this thread.
///
/// The first run that fails, an exception of `on_done` and Ctrl-C end all runs and are raised.
#[pyfunction]
pub fn run_batch(
    py: Python<'_>,
    scenarios: Vec<PyRef<'_, Scenario>>,
    threads: usize,
    on_done: Py<PyAny>,
) -> PyResult<()> {
    let scenarios: Vec<Arc<scenario::Scenario>> =
        scenarios.iter().map(|s| Arc::clone(&s.inner)).collect();
    py.detach(|| {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            for _ in 0..threads.clamp(1, scenarios.len().max(1)) {
                let sender = sender.clone();
                let (next, stop, scenarios) = (&next, &stop, &scenarios);
                scope.spawn(move || loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(scenario) = scenarios
                        .get(index)
                        .filter(|_| !stop.load(Ordering::Relaxed))
                    else {
                        break;
                    };
                    if sender.send((index, one(scenario, stop))).is_err() {
                        break;
                    }
                });
            }
            drop(sender);
            loop {
                let result = match receiver.recv_timeout(LOOK) {
                    Ok((index, Ok((outcome, tables)))) => Python::attach(|py| {
                        let arguments =
                            (index, describe(py, outcome)?, columns::chunks(py, &tables)?);
                        drop(tables);
                        on_done.call1(py, arguments)?;
                        py.check_signals()
                    }),
                    Ok((_, Err(message))) => Err(RunError::new_err(message)),
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals()),
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                };
                if let Err(error) = result {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        })
    })
}
