// SPDX-License-Identifier: BSD-3-Clause
//! Quantities and capacity traces outside a scenario, read by the same rules.

use std::path::{Path, PathBuf};

use linkweir_sim::experiment::{Capacity, End, Signal};
use linkweir_sim::scenario::{parse_quantity, read_trace, show_quantity, Hints, Kind, Trace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{raise, RunError};
use crate::panics::caught;

fn kind_of(name: &str) -> PyResult<Kind> {
    Ok(match name {
        "rate" => Kind::Rate,
        "time" => Kind::Seconds,
        "size" => Kind::Size,
        "bits" => Kind::Bits,
        "packets" => Kind::Packets,
        "fraction" => Kind::Fraction,
        "symbol_rate" => Kind::SymbolRate,
        _ => {
            return Err(PyValueError::new_err(format!(
                "no quantity is called {name}"
            )))
        }
    })
}

/// A quantity in base units: bit/s, s, bytes, bits, packets, symbols/s or a pure number.
#[pyfunction]
pub fn quantity(text: &str, kind: &str) -> PyResult<f64> {
    parse_quantity(text, kind_of(kind)?)
        .map(|decimal| decimal.real())
        .map_err(PyValueError::new_err)
}

/// A finite number of base units, not negative, written so that it reads back the same.
#[pyfunction]
pub fn show(value: f64, kind: &str) -> PyResult<String> {
    Ok(show_quantity(value, kind_of(kind)?))
}

/// Starts in s, values in bit/s or bytes, the end in s, and what follows it.
type Steps = (Vec<f64>, Vec<f64>, Option<f64>, &'static str);

/// What the keys of a trace say, which are the lines of a TOML table.
pub fn hints(py: Python<'_>, keys: &str) -> PyResult<Hints> {
    Hints::parse(keys).map_err(|fault| raise(py, &fault))
}

fn read(py: Python<'_>, path: &Path, keys: &str) -> PyResult<Trace> {
    let hints = hints(py, keys)?;
    py.detach(|| caught(|| read_trace(path, &hints)))
        .map_err(RunError::new_err)?
        .map_err(|fault| raise(py, &fault))
}

/// What a capacity trace is taken for, in one line, and what is doubtful about it. The mean (bit/s) and length (s) of a round.
#[pyfunction]
#[pyo3(signature = (path, keys=""))]
pub fn reading(
    py: Python<'_>,
    path: PathBuf,
    keys: &str,
) -> PyResult<(String, Vec<String>, f64, Option<f64>)> {
    let read = read(py, &path, keys)?;
    let doubts = [read.understood.doubts.clone(), read.notes.clone()].concat();
    let length_s = read.understood.length_ns.map(|ns| ns as f64 * 1e-9);
    let line = read.reading(&path);
    Ok((line, doubts, read.understood.mean_bps, length_s))
}

/// A capacity trace: steps of a rate (`rate`) or opportunities of so many bytes (`opportunities`).
#[pyfunction]
#[pyo3(signature = (path, keys=""))]
pub fn trace(py: Python<'_>, path: PathBuf, keys: &str) -> PyResult<(&'static str, Steps)> {
    let read = read(py, &path, keys)?;
    let seconds = |ns: &u64| *ns as f64 * 1e-9;
    Ok(match read.capacity {
        Capacity::Opportunities { at_ns, bytes } => {
            let times: Vec<f64> = at_ns.iter().map(seconds).collect();
            let end_s = times.last().copied();
            let sizes = vec![f64::from(bytes); times.len()];
            ("opportunities", (times, sizes, end_s, "loop"))
        }
        Capacity::Rate(Signal::Steps { points, end }) => {
            let (end_s, after) = match end {
                End::Loop { period_ns } => (Some(seconds(&period_ns)), "loop"),
                End::Hold => (None, "hold"),
                End::Stop { at_ns } => (Some(seconds(&at_ns)), "stop"),
            };
            let starts = points.iter().map(|(ns, _)| seconds(ns)).collect();
            let rates = points.iter().map(|(_, bps)| *bps).collect();
            ("rate", (starts, rates, end_s, after))
        }
        Capacity::Rate(_) => unreachable!("a trace is a list of steps"),
    })
}
