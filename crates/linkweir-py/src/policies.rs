// SPDX-License-Identifier: BSD-3-Clause
//! The policies as the core's tables describe them.

use linkweir_core::{Param, Unit, UNSET};
use linkweir_sim::scenario::written_parameter;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::typed;

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Number => "number",
        Unit::Bps => "rate",
        Unit::Ns => "time",
        Unit::Bytes => "size",
        Unit::Bits => "bits",
        Unit::Pkts => "packets",
        Unit::Ppm => "fraction",
        Unit::Choice => "choice",
    }
}

fn written(param: &Param, value: u64) -> Option<String> {
    (value != UNSET).then(|| {
        let written = written_parameter(param, value).to_string();
        written.trim_matches('"').to_string()
    })
}

/// The default as the typed tables of a scenario have it.
fn usual<'py>(py: Python<'py>, param: &Param) -> PyResult<Option<Bound<'py, PyAny>>> {
    let set = (param.default != UNSET).then(|| written_parameter(param, param.default));
    set.map(|value| typed::number(py, &value)).transpose()
}

fn describe<'py>(py: Python<'py>, param: &Param) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", param.name)?;
    dict.set_item("help", param.help)?;
    dict.set_item("unit", unit(param.unit))?;
    dict.set_item("choices", &param.choices)?;
    dict.set_item("min", written(param, param.min))?;
    dict.set_item("max", written(param, param.max))?;
    dict.set_item("default", written(param, param.default))?;
    dict.set_item("usual", usual(py, param)?)?;
    dict.set_item("at_init", param.at_init)?;
    Ok(dict)
}

/// Every policy with its parameters, per-class parameters and statistics.
#[pyfunction]
pub fn policies(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for info in linkweir_core::policies() {
        let dict = PyDict::new(py);
        dict.set_item("name", info.name)?;
        dict.set_item("help", info.help)?;
        dict.set_item("max_classes", info.max_queues)?;
        dict.set_item("isolates_flows", info.nests())?;
        dict.set_item("sorted_by_ecn", info.sorted_by_ecn)?;
        for (key, params) in [("params", &info.params), ("class_params", &info.qparams)] {
            let described = params
                .iter()
                .map(|p| describe(py, p))
                .collect::<PyResult<Vec<_>>>()?;
            dict.set_item(key, described)?;
        }
        let stats = PyList::empty(py);
        for stat in &info.stats {
            let entry = PyDict::new(py);
            entry.set_item("name", stat.name)?;
            entry.set_item("help", stat.help)?;
            entry.set_item("unit", unit(stat.unit))?;
            entry.set_item("column", format!("{}{}", stat.name, stat.unit.suffix()))?;
            stats.append(entry)?;
        }
        dict.set_item("stats", stats)?;
        list.append(dict)?;
    }
    Ok(list)
}
