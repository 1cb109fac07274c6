// SPDX-License-Identifier: BSD-3-Clause
//! The keys of scenarios and of the gateway's files, as their declarations describe them.

use linkweir_config::keys::{gateway, Hosts, Row, Shape, Table};
use linkweir_config::units::Kind;
use linkweir_sim::scenario::keys::sources::KINDS;
use linkweir_sim::scenario::keys::TABLES;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A quantity as Python calls it.
fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Rate => "rate",
        Kind::Time | Kind::Seconds => "time",
        Kind::Size => "size",
        Kind::Bits => "bits",
        Kind::Packets => "packets",
        Kind::Fraction => "fraction",
        Kind::SymbolRate => "symbol rate",
    }
}

/// What a value may be: `form`, and what else the form has.
fn shape<'py>(py: Python<'py>, shape: Shape) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let form = match shape {
        Shape::Quantity(kind, least, most) => quantity(&dict, "quantity", kind, least, most)?,
        Shape::OverTime(kind, least, most) => quantity(&dict, "over_time", kind, least, most)?,
        Shape::Random(Some(kind), least, most) => quantity(&dict, "random", kind, least, most)?,
        Shape::Random(None, least, most) => numbers(&dict, "random_number", least, most)?,
        Shape::Packets(most) => quantity(&dict, "packets", Kind::Size, 1.0, most as f64)?,
        Shape::Losses(table) => {
            dict.set_item("table", table.path)?;
            quantity(&dict, "losses", Kind::Fraction, 0.0, 1.0)?
        }
        Shape::Number(least, most) => {
            dict.set_item("least", least)?;
            dict.set_item("most", most)?;
            "number"
        }
        Shape::Real(least, most) => numbers(&dict, "real", least, most)?,
        Shape::PerTerminal(least, most) => numbers(&dict, "per_terminal", least, most)?,
        Shape::Flag => "flag",
        Shape::Text(_) => "text",
        Shape::Words(words) => {
            dict.set_item("words", words)?;
            "words"
        }
        Shape::Nested(table) => {
            dict.set_item("table", table.path)?;
            "table"
        }
        Shape::Tables(table) => {
            dict.set_item("table", table.path)?;
            "tables"
        }
        Shape::OneOrSeveral(one, several) => {
            dict.set_item("table", one.path)?;
            dict.set_item("tables", several.path)?;
            "table_or_tables"
        }
        Shape::Names => "names",
        Shape::WordsOrNames(words) => {
            dict.set_item("words", words)?;
            "words_or_names"
        }
        Shape::ClassName => "class_name",
        Shape::Columns => "columns",
        Shape::Rules => "rules",
        Shape::TimeOr(word, most) => {
            dict.set_item("words", [word])?;
            quantity(&dict, "quantity_or_word", Kind::Time, 0.0, most)?
        }
        Shape::SizeOr(word, most) => {
            dict.set_item("words", [word])?;
            quantity(&dict, "quantity_or_word", Kind::Size, 1.0, most)?
        }
        Shape::Policy => "policy",
        Shape::Limit(..) => "limit",
        Shape::Playout => "playout",
        Shape::Arrivals => "arrivals",
        Shape::Rates => "rates",
        Shape::Value => "value",
        Shape::Nets => "nets",
        Shape::Socket => "socket",
        Shape::Endpoint => "endpoint",
        Shape::Device => "device",
        Shape::Word => "word",
        Shape::PublicKey => "public_key",
        Shape::CodePoint => "code_point",
        Shape::CodePoints => "code_points",
        Shape::Protocols => "protocols",
        Shape::Ports => "ports",
        Shape::FlagOr(table) => {
            dict.set_item("table", table.path)?;
            "flag_or_table"
        }
        Shape::Across => "across",
        Shape::OfScenario(key) => {
            dict.set_item("key", key)?;
            "of_scenario"
        }
        Shape::Other(_) => "other",
    };
    dict.set_item("form", form)?;
    Ok(dict)
}

fn quantity(
    dict: &Bound<'_, PyDict>,
    form: &'static str,
    kind: Kind,
    least: f64,
    most: f64,
) -> PyResult<&'static str> {
    dict.set_item("noun", noun(kind))?;
    numbers(dict, form, least, most)
}

fn numbers(
    dict: &Bound<'_, PyDict>,
    form: &'static str,
    least: f64,
    most: f64,
) -> PyResult<&'static str> {
    dict.set_item("least", least)?;
    dict.set_item("most", most)?;
    Ok(form)
}

fn hosts<'py>(py: Python<'py>, hosts: &Hosts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, treatment) in hosts.by_name() {
        dict.set_item(name, treatment.parts())?;
    }
    Ok(dict)
}

fn row<'py>(py: Python<'py>, row: &dyn Row) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", row.name())?;
    dict.set_item("values", row.values())?;
    dict.set_item("default", row.default())?;
    dict.set_item("second_default", row.second_default())?;
    dict.set_item("always", row.always())?;
    dict.set_item("meaning", row.meaning())?;
    dict.set_item("shape", shape(py, row.shape())?)?;
    dict.set_item("hosts", hosts(py, row.hosts())?)?;
    Ok(dict)
}

fn table<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let rows = |keys: &[&'static dyn Row]| {
        keys.iter()
            .map(|key| row(py, *key))
            .collect::<PyResult<Vec<_>>>()
    };
    let dict = PyDict::new(py);
    dict.set_item("path", table.path)?;
    dict.set_item("keys", rows(&table.keys())?)?;
    dict.set_item("own", rows(table.own)?)?;
    Ok(dict)
}

/// The tables of a kind of file, `scenario` or `gateway`, in the order of the reference.
#[pyfunction]
pub fn tables<'py>(py: Python<'py>, of: &str) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let tables: &[&Table] = if of == "gateway" {
        &gateway::TABLES
    } else {
        &TABLES
    };
    for each in tables {
        list.append(table(py, each)?)?;
    }
    Ok(list)
}

/// The units of each quantity.
#[pyfunction]
pub fn units(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for kind in [
        Kind::Rate,
        Kind::Time,
        Kind::Size,
        Kind::Bits,
        Kind::Packets,
        Kind::Fraction,
        Kind::SymbolRate,
    ] {
        dict.set_item(noun(kind), kind.unit_names())?;
    }
    Ok(dict)
}

/// The kinds of traffic: name, path of the table of their keys, and what each host does with them.
#[pyfunction]
pub fn traffic_kinds(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for kind in &KINDS {
        let dict = PyDict::new(py);
        dict.set_item("name", kind.name)?;
        dict.set_item("table", kind.keys.path)?;
        dict.set_item("hosts", hosts(py, &kind.hosts)?)?;
        list.append(dict)?;
    }
    Ok(list)
}
