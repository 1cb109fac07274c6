// SPDX-License-Identifier: BSD-3-Clause
//! A checked scenario as Python's numbers: the declared keys of each table, with their units in the names.
//!
//! A key that the scenario does not have is None; a delay that a satellite's delays replace is 0. Parameters of the policy
//! are in a dict of their own, `params`, because each policy has others.

use linkweir_config::keys::{Shape, Table};
use linkweir_config::reader::{Entry, Section, Source};
use linkweir_config::units::Kind;
use linkweir_config::Fault;
use linkweir_core::{Param, Unit};
use linkweir_sim::scenario::keys::sources::KINDS;
use linkweir_sim::scenario::keys::{class, flow, link, top};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// As much as a run directory's scenario may have.
const MOST_BYTES: u64 = 1 << 32;

/// The tables of a scenario: `top`, `link`, `scheduler`, `classes` and `flows`; of a network only `top` and `flows`, as its
/// links have tables of their own.
pub(crate) fn tables<'py>(py: Python<'py>, resolved: &str) -> PyResult<Bound<'py, PyDict>> {
    let source = Source::new(resolved, None);
    let document = source.parse(MOST_BYTES).map_err(wrong)?;
    let mut all = Section::new(&source, document.get_ref(), String::new(), 0);
    let dict = PyDict::new(py);
    dict.set_item("top", filled(py, &mut all, &[&OWN_OF_TOP])?)?;
    let several = all
        .find(top::LINK.name)
        .is_some_and(|entry| entry.is_list());
    if !several {
        one_link(py, &mut all, &dict)?;
    }

    let flows = PyList::empty(py);
    let none = all.find(top::FLOW.name).is_none();
    let sections = if none {
        Ok(Vec::new())
    } else {
        all.tables(top::FLOW.name, usize::MAX)
    };
    for mut section in sections.map_err(wrong)? {
        let kind = section.find(flow::KIND.name);
        let kind = kind.and_then(|entry| entry.text().ok().map(str::to_owned));
        let of_kind = KINDS
            .iter()
            .find(|known| Some(known.name) == kind.as_deref())
            .ok_or_else(|| PyValueError::new_err("a flow without a kind"))?;
        flows.append(filled(py, &mut section, &[&flow::FLOW, of_kind.keys])?)?;
    }
    dict.set_item("flows", flows)?;
    Ok(dict)
}

/// The tables of the one link, its scheduler and its classes.
fn one_link(py: Python<'_>, all: &mut Section<'_, '_>, dict: &Bound<'_, PyDict>) -> PyResult<()> {
    let mut of_link = all.need_table(top::LINK.name, "").map_err(wrong)?;
    dict.set_item("link", filled(py, &mut of_link, &[&link::LINK])?)?;

    let mut scheduler = all.need_table(top::SCHEDULER.name, "").map_err(wrong)?;
    let policy = scheduler.find(class::POLICY.name);
    let policy = policy.and_then(|entry| entry.text().ok().map(str::to_owned));
    let info = linkweir_core::policies()
        .iter()
        .find(|info| Some(info.name) == policy.as_deref());
    let params = info.map_or(&[][..], |info| &info.params);
    let filled_scheduler = filled(py, &mut scheduler, &[&class::SCHEDULER])?;
    filled_scheduler.set_item(
        "params",
        others(py, &scheduler, &[&class::SCHEDULER], params)?,
    )?;
    dict.set_item("scheduler", filled_scheduler)?;

    let qparams = info.map_or(&[][..], |info| &info.qparams);
    let classes = PyList::empty(py);
    for mut section in all.tables(top::CLASS.name, usize::MAX).map_err(wrong)? {
        let one = filled(py, &mut section, &[&class::CLASS])?;
        one.set_item("params", others(py, &section, &[&class::CLASS], qparams)?)?;
        classes.append(one)?;
    }
    dict.set_item("classes", classes)
}

/// The top level without its tables.
static OWN_OF_TOP: Table = Table {
    path: top::TOP.path,
    after: &[],
    own: &[
        &top::NAME,
        &top::DURATION,
        &top::WARMUP,
        &top::INTERVAL,
        &top::SEED,
        &top::LOG,
        &top::LOG_ROWS,
    ],
};

/// A scenario as its resolved form has it: strings, numbers, lists and dicts.
pub(crate) fn written<'py>(py: Python<'py>, resolved: &str) -> PyResult<Bound<'py, PyDict>> {
    let source = Source::new(resolved, None);
    let document = source.parse(MOST_BYTES).map_err(wrong)?;
    let all = Section::new(&source, document.get_ref(), String::new(), 0);
    plain_table(py, &all)
}

fn wrong(fault: Fault) -> PyErr {
    PyValueError::new_err(fault.to_string())
}

/// The name of a key with its unit at the end, which some keys have already.
fn named(name: &str, kind: Kind) -> String {
    let unit = match kind {
        Kind::Rate => "bps",
        Kind::Time | Kind::Seconds => "s",
        Kind::Size => "bytes",
        Kind::Bits => "bits",
        Kind::Packets => "pkts",
        Kind::Fraction => return name.to_owned(),
        Kind::SymbolRate => "baud",
    };
    match name == unit || name.ends_with(&format!("_{unit}")) {
        true => name.to_owned(),
        false => format!("{name}_{unit}"),
    }
}

fn filled<'py>(
    py: Python<'py>,
    section: &mut Section<'_, '_>,
    tables: &[&Table],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for row in tables.iter().flat_map(|table| table.keys()) {
        let (name, shape) = (row.name(), row.shape());
        let entry = section.find(name);
        let entry = entry.as_ref();
        match shape {
            Shape::Limit(_) => {
                let is_time = entry.is_some_and(is_time);
                let (pkts, time) = if is_time {
                    (None, entry)
                } else {
                    (entry, None)
                };
                let pkts = pkts.map(|e| number(py, e, Kind::Packets)).transpose()?;
                let time = time.map(|e| number(py, e, Kind::Time)).transpose()?;
                dict.set_item(named(name, Kind::Packets), pkts)?;
                dict.set_item(named(name, Kind::Seconds), time)?;
            }
            Shape::Quantity(kind, ..)
            | Shape::OverTime(kind, ..)
            | Shape::Random(Some(kind), ..) => {
                let value = match entry {
                    Some(entry) => Some(amount(py, entry, kind)?),
                    None if row.always() => Some(0.0_f64.into_pyobject(py)?.into_any()),
                    None => None,
                };
                dict.set_item(named(name, kind), value)?;
            }
            Shape::Losses(_) => {
                let value = entry.map(|e| amount(py, e, Kind::Fraction)).transpose()?;
                dict.set_item(name, value)?;
            }
            Shape::Packets(_) => {
                let value = entry.map(|e| amount(py, e, Kind::Size)).transpose()?;
                dict.set_item(named(name, Kind::Size), value)?;
            }
            Shape::Rates => {
                let value = entry.map(|e| list_of(py, e, Kind::Rate)).transpose()?;
                dict.set_item(named(name, Kind::Rate), value)?;
            }
            Shape::Nested(table) => {
                let inner = entry.and_then(|entry| entry.table());
                let value = inner.map(|mut inner| filled(py, &mut inner, &[table]));
                dict.set_item(name, value.transpose()?)?;
            }
            _ => dict.set_item(name, entry.map(|e| plain(py, e)).transpose()?)?,
        }
    }
    Ok(dict)
}

fn is_time(entry: &Entry<'_, '_>) -> bool {
    entry.quantity(Kind::Seconds, 0.0, f64::MAX).is_ok()
}

/// A quantity in the unit that its name says.
fn number<'py>(py: Python<'py>, entry: &Entry<'_, '_>, kind: Kind) -> PyResult<Bound<'py, PyAny>> {
    let kind = if kind == Kind::Time {
        Kind::Seconds
    } else {
        kind
    };
    let value = entry
        .quantity(kind, f64::NEG_INFINITY, f64::INFINITY)
        .map_err(wrong)?;
    let counts = matches!(kind, Kind::Size | Kind::Packets);
    if counts && value.fract() == 0.0 && value.abs() < 9e15 {
        return Ok((value as i64).into_pyobject(py)?.into_any());
    }
    Ok(value.into_pyobject(py)?.into_any())
}

/// A quantity, or a table with more of them: over time, in bursts, random, or a mix.
fn amount<'py>(py: Python<'py>, entry: &Entry<'_, '_>, kind: Kind) -> PyResult<Bound<'py, PyAny>> {
    let Some(table) = entry.table() else {
        return number(py, entry, kind);
    };
    let dict = PyDict::new(py);
    for key in table.names() {
        let Some(entry) = table.stray(key) else {
            continue;
        };
        let (name, value) = match key {
            "period" | "at" => (named(key, Kind::Seconds), number(py, &entry, Kind::Time)?),
            "burst" => ("burst_pkts".to_owned(), number(py, &entry, Kind::Packets)?),
            "mean" | "max" | "min" | "deviation" => (key.to_owned(), number(py, &entry, kind)?),
            "steps" | "lines" => (key.to_owned(), pairs(py, &entry, Kind::Time, kind)?),
            "cdf" => (key.to_owned(), pairs(py, &entry, kind, Kind::Fraction)?),
            "sizes" => (key.to_owned(), list_of(py, &entry, kind)?),
            _ => (key.to_owned(), plain(py, &entry)?),
        };
        dict.set_item(name, value)?;
    }
    Ok(dict.into_any())
}

fn list_of<'py>(py: Python<'py>, entry: &Entry<'_, '_>, kind: Kind) -> PyResult<Bound<'py, PyAny>> {
    let values = entry.list(usize::MAX).map_err(wrong)?;
    let values: PyResult<Vec<_>> = values.iter().map(|value| number(py, value, kind)).collect();
    Ok(PyList::new(py, values?)?.into_any())
}

fn pairs<'py>(
    py: Python<'py>,
    entry: &Entry<'_, '_>,
    first: Kind,
    second: Kind,
) -> PyResult<Bound<'py, PyAny>> {
    let list = PyList::empty(py);
    for [a, b] in entry.pairs("", usize::MAX).map_err(wrong)? {
        list.append(PyTuple::new(
            py,
            [number(py, &a, first)?, number(py, &b, second)?],
        )?)?;
    }
    Ok(list.into_any())
}

/// The keys that the tables do not declare: parameters of the policy, in their base units.
fn others<'py>(
    py: Python<'py>,
    section: &Section<'_, '_>,
    tables: &[&Table],
    params: &[Param],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let declared = |name: &str| {
        let rows = tables.iter().flat_map(|table| table.keys());
        rows.into_iter().any(|row| row.name() == name)
    };
    for name in section.names() {
        let (false, Some(entry)) = (declared(name), section.stray(name)) else {
            continue;
        };
        let unit = params.iter().find(|p| p.name == name).map(|p| p.unit);
        let value = match unit {
            Some(Unit::Bps) => number(py, &entry, Kind::Rate)?,
            Some(Unit::Ns) => number(py, &entry, Kind::Time)?,
            Some(Unit::Bytes) => number(py, &entry, Kind::Size)?,
            Some(Unit::Bits) => number(py, &entry, Kind::Bits)?,
            Some(Unit::Pkts) => number(py, &entry, Kind::Packets)?,
            Some(Unit::Ppm) => number(py, &entry, Kind::Fraction)?,
            Some(Unit::Number | Unit::Choice) | None => plain(py, &entry)?,
        };
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

fn plain<'py>(py: Python<'py>, entry: &Entry<'_, '_>) -> PyResult<Bound<'py, PyAny>> {
    if let Some(table) = entry.table() {
        return Ok(plain_table(py, &table)?.into_any());
    }
    if let Ok(text) = entry.text() {
        return Ok(text.into_pyobject(py)?.into_any());
    }
    if let Ok(flag) = entry.flag() {
        return Ok(flag.into_pyobject(py)?.to_owned().into_any());
    }
    if entry.is_whole() {
        let value = entry
            .real(f64::NEG_INFINITY, f64::INFINITY)
            .map_err(wrong)?;
        return match entry.number((0, u64::MAX)) {
            Ok(value) => Ok(value.into_pyobject(py)?.into_any()),
            Err(_) => Ok((value as i64).into_pyobject(py)?.into_any()),
        };
    }
    if entry.is_empty_list() {
        return Ok(PyList::empty(py).into_any());
    }
    if entry.is_list() {
        let values = entry.list(usize::MAX).map_err(wrong)?;
        let values: PyResult<Vec<_>> = values.iter().map(|value| plain(py, value)).collect();
        return Ok(PyList::new(py, values?)?.into_any());
    }
    let value = entry
        .real(f64::NEG_INFINITY, f64::INFINITY)
        .map_err(wrong)?;
    Ok(value.into_pyobject(py)?.into_any())
}

fn plain_table<'py>(py: Python<'py>, table: &Section<'_, '_>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for name in table.names() {
        if let Some(entry) = table.stray(name) {
            dict.set_item(name, plain(py, &entry)?)?;
        }
    }
    Ok(dict)
}
