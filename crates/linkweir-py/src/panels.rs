// SPDX-License-Identifier: BSD-3-Clause
//! What the charts of a run show, from tables that Python holds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use linkweir_panels::e_model::{self as model, Line};
use linkweir_panels::{Cells, Limits, Panel, Rows, Run};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::scenario::Scenario;

/// A column: doubles in little-endian bytes, NaN for none; or `u32` numbers of words, and the words.
type Crossed = (String, PyBackedBytes, Option<Vec<String>>);

/// Tables of a run on their way to panels.
#[pyclass(module = "linkweir._native")]
pub struct Panels {
    inner: linkweir_panels::Panels,
}

#[pymethods]
impl Panels {
    #[new]
    #[pyo3(signature = (scenario, simulated_s, comes_and_goes, most_classes, most_points, sent_bytes=None))]
    fn new(
        scenario: &Scenario,
        simulated_s: f64,
        comes_and_goes: bool,
        most_classes: usize,
        most_points: usize,
        sent_bytes: Option<BTreeMap<String, f64>>,
    ) -> Panels {
        let run = Run {
            simulated_s,
            comes_and_goes,
        };
        let limits = Limits {
            classes: most_classes,
            points: most_points,
        };
        let scenario = Arc::clone(&scenario.inner);
        Panels {
            inner: linkweir_panels::Panels::new(scenario, run, limits, sent_bytes.as_ref()),
        }
    }

    /// Names of the classes that are drawn, in the order of the legend.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.inner.classes().to_vec()
    }

    /// How many other classes the run has.
    #[getter]
    fn left_out(&self) -> usize {
        self.inner.left_out()
    }

    /// How many intervals of the run become one point.
    #[getter]
    fn step(&self) -> usize {
        self.inner.step()
    }

    /// The tables whose rows are wanted, with the columns: for panels over time, or for distributions.
    fn wanted(&self, distributions: bool) -> Vec<(&'static str, Vec<&str>)> {
        self.inner.wanted(distributions)
    }

    /// Takes rows of a table, in their order.
    fn take(&mut self, table: &str, columns: Vec<Crossed>) -> PyResult<()> {
        let columns = columns
            .into_iter()
            .map(|(name, bytes, words)| (Cow::Owned(name), cells(&bytes, words)))
            .collect();
        let taken = self.inner.take(table, &Rows::new(columns));
        taken.map_err(PyValueError::new_err)
    }

    /// The panels over time.
    fn over_time<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        described(py, &self.inner.over_time())
    }

    /// The distributions of delays.
    fn distributions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        described(py, &self.inner.distributions())
    }
}

fn cells(bytes: &[u8], words: Option<Vec<String>>) -> Cells<'static> {
    match words {
        Some(words) => Cells::Names {
            words: words.into_iter().map(Cow::Owned).collect(),
            places: bytes
                .chunks_exact(4)
                .map(|four| u32::from_le_bytes(four.try_into().expect("four bytes")))
                .collect(),
        },
        None => Cells::Numbers(
            bytes
                .chunks_exact(8)
                .map(|eight| f64::from_le_bytes(eight.try_into().expect("eight bytes")))
                .collect(),
        ),
    }
}

fn doubles<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    PyBytes::new(py, &bytes)
}

fn described<'py>(py: Python<'py>, panels: &[Panel]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for panel in panels {
        let dict = PyDict::new(py);
        dict.set_item("name", &panel.name)?;
        dict.set_item("title", &panel.title)?;
        dict.set_item("x", doubles(py, &panel.x))?;
        dict.set_item("x_label", &panel.x_label)?;
        dict.set_item("y_label", &panel.y_label)?;
        dict.set_item("over_time", panel.over_time)?;
        dict.set_item("steps", panel.steps)?;
        dict.set_item("log_x", panel.log_x)?;
        dict.set_item("log_y", panel.log_y)?;
        dict.set_item("y_range", panel.y_range)?;
        dict.set_item("from_zero", panel.from_zero)?;
        dict.set_item("note", &panel.note)?;
        let lines = PyList::empty(py);
        for line in &panel.lines {
            let look = line.look.name();
            let y = doubles(py, &line.y);
            lines.append((&line.label, y, line.of, look, line.off, line.turn))?;
        }
        dict.set_item("lines", lines)?;
        dict.set_item("json", linkweir_panels::written(panel))?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Ro, Is, Id and Ie,eff of the E-model; `line` has its other parameters by name, or the usual ones.
#[pyfunction]
#[pyo3(signature = (delay_s, loss, factors, burst_r, line=None))]
pub fn e_model(
    delay_s: f64,
    loss: f64,
    factors: (f64, f64),
    burst_r: f64,
    line: Option<BTreeMap<String, f64>>,
) -> PyResult<(f64, f64, f64, f64)> {
    let line = line.as_ref().map(line_of).transpose()?;
    let found = model::rate(delay_s, loss, factors, burst_r, &line.unwrap_or_default());
    Ok((
        found.basic,
        found.simultaneous,
        found.delay,
        found.equipment,
    ))
}

fn line_of(line: &BTreeMap<String, f64>) -> PyResult<Line> {
    let get = |name: &str| {
        let found = line.get(name).copied();
        found.ok_or_else(|| PyValueError::new_err(format!("line has no {name}")))
    };
    Ok(Line {
        slr: get("slr")?,
        rlr: get("rlr")?,
        stmr: get("stmr")?,
        lstr: get("lstr")?,
        ds: get("ds")?,
        telr: get("telr")?,
        wepl: get("wepl")?,
        qdu: get("qdu")?,
        nc: get("nc")?,
        nfor: get("nfor")?,
        ps: get("ps")?,
        pr: get("pr")?,
    })
}

/// Mean opinion score of a rating.
#[pyfunction]
pub fn mos(rating: f64) -> f64 {
    model::mos(rating)
}
