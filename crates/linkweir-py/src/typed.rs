// SPDX-License-Identifier: BSD-3-Clause
//! A checked scenario as Python's numbers: the declared keys of each table, with their units in the names.
//!
//! A key that the scenario does not have is None; a delay that a satellite's delays replace is 0. Parameters of the policy
//! are in a dict of their own, `params`, because each policy has others.

use linkweir_config::keys::{Shape, Table};
use linkweir_config::reader::{Value, Written};
use linkweir_config::signal::{End, Signal};
use linkweir_config::units::Kind;
use linkweir_sim::scenario::keys::sources::KINDS;
use linkweir_sim::scenario::keys::{class, flow, link, top};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// The tables of a scenario: `top`, `link`, `scheduler`, `classes` and `flows`; of a network only `top` and `flows`, as each of
/// its links has tables of its own.
pub(crate) fn tables<'py>(py: Python<'py>, all: &Written) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("top", filled(py, all, &[&OWN_OF_TOP])?)?;
    if let Some(Value::Table(table)) = all.get(top::LINK.name) {
        dict.set_item("link", filled(py, table, &[&link::LINK])?)?;
        for table in all.tables(top::SCHEDULER.name) {
            dict.set_item("scheduler", with_params(py, table, &class::SCHEDULER)?)?;
        }
        let classes = PyList::empty(py);
        for table in all.tables(top::CLASS.name) {
            classes.append(with_params(py, table, &class::CLASS)?)?;
        }
        dict.set_item("classes", classes)?;
    }

    let flows = PyList::empty(py);
    for table in all.tables(top::FLOW.name) {
        let kind = table.get(flow::KIND.name);
        let of_kind = KINDS
            .iter()
            .find(|known| kind == Some(&Value::from(known.name)))
            .ok_or_else(|| PyValueError::new_err("a flow without a kind"))?;
        flows.append(filled(py, table, &[&flow::FLOW, of_kind.keys])?)?;
    }
    dict.set_item("flows", flows)?;
    Ok(dict)
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
pub(crate) fn written<'py>(py: Python<'py>, all: &Written) -> PyResult<Bound<'py, PyDict>> {
    plain_table(py, all)
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
    table: &Written,
    declared: &[&Table],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for row in declared.iter().flat_map(|table| table.keys()) {
        let (name, shape) = (row.name(), row.shape());
        let value = table.get(name);
        match shape {
            Shape::Limit(..) => {
                let is_time = matches!(value, Some(Value::Whole(_, Kind::Time)));
                let (pkts, time) = if is_time {
                    (None, value)
                } else {
                    (value, None)
                };
                for (kind, value) in [(Kind::Packets, pkts), (Kind::Seconds, time)] {
                    let value = value.map(|value| number(py, value)).transpose()?;
                    dict.set_item(named(name, kind), value)?;
                }
            }
            Shape::Quantity(kind, ..)
            | Shape::OverTime(kind, ..)
            | Shape::Random(Some(kind), ..) => {
                let value = match value {
                    Some(value) => Some(amount(py, value)?),
                    None if row.always() => Some(0.0_f64.into_pyobject(py)?.into_any()),
                    None => None,
                };
                dict.set_item(named(name, kind), value)?;
            }
            Shape::Losses(_) => {
                let value = value.map(|value| amount(py, value)).transpose()?;
                dict.set_item(name, value)?;
            }
            Shape::Packets(_) => {
                let value = value.map(|value| amount(py, value)).transpose()?;
                dict.set_item(named(name, Kind::Size), value)?;
            }
            Shape::Rates => {
                let value = value.map(|value| numbers(py, value)).transpose()?;
                dict.set_item(named(name, Kind::Rate), value)?;
            }
            Shape::Nested(declared) => {
                let inner = value.and_then(Value::table);
                let inner = inner.map(|inner| filled(py, inner, &[declared]));
                dict.set_item(name, inner.transpose()?)?;
            }
            _ => dict.set_item(name, value.map(|value| plain(py, value)).transpose()?)?,
        }
    }
    Ok(dict)
}

/// A table with parameters of the policy, which the tables of keys do not declare, in their base units.
fn with_params<'py>(
    py: Python<'py>,
    table: &Written,
    declared: &Table,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = filled(py, table, &[declared])?;
    let params = PyDict::new(py);
    let rows = declared.keys();
    for (name, value) in table.keys() {
        if rows.iter().all(|row| row.name() != name) {
            params.set_item(name, number(py, value)?)?;
        }
    }
    dict.set_item("params", params)?;
    Ok(dict)
}

/// A quantity in the unit that its name says; any other value as it is written.
pub(crate) fn number<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let Some((kind, amount)) = value.amount() else {
        return plain(py, value);
    };
    let counts = matches!(kind, Kind::Size | Kind::Packets);
    if counts && amount.fract() == 0.0 && amount.abs() < 9e15 {
        return Ok((amount as i64).into_pyobject(py)?.into_any());
    }
    Ok(amount.into_pyobject(py)?.into_any())
}

/// A quantity, or a table with more of them: over time, in bursts, random, or a mix.
fn amount<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let table = match value {
        Value::OverTime(signal, kind) => return over_time(py, signal, *kind, Style::Typed),
        Value::Inline(table) => table,
        _ => return number(py, value),
    };
    let dict = PyDict::new(py);
    for (key, value) in table.keys() {
        let (name, value) = match (key, value) {
            ("burst", _) => (named(key, Kind::Packets), number(py, value)?),
            ("cdf", Value::List(points)) => (key.to_owned(), pairs(py, points)?),
            ("sizes", _) => (key.to_owned(), numbers(py, value)?),
            _ => (key.to_owned(), number(py, value)?),
        };
        dict.set_item(name, value)?;
    }
    Ok(dict.into_any())
}

fn numbers<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let Value::List(members) = value else {
        return number(py, value);
    };
    let members: PyResult<Vec<_>> = members.iter().map(|value| number(py, value)).collect();
    Ok(PyList::new(py, members?)?.into_any())
}

/// The points of a distribution.
fn pairs<'py>(py: Python<'py>, points: &[Value]) -> PyResult<Bound<'py, PyAny>> {
    let list = PyList::empty(py);
    for point in points {
        if let Value::List(pair) = point {
            let pair: PyResult<Vec<_>> = pair.iter().map(|value| number(py, value)).collect();
            list.append(PyTuple::new(py, pair?)?)?;
        }
    }
    Ok(list.into_any())
}

/// How a value over time is given.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// As numbers, times in s; points are tuples.
    Typed,
    /// As it is written.
    Written,
}

impl Style {
    fn leaf(self, py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Style::Typed => number(py, &value),
            Style::Written => plain(py, &value),
        }
    }

    fn time(self, py: Python<'_>, ns: u64) -> PyResult<Bound<'_, PyAny>> {
        self.leaf(py, Value::Whole(ns, Kind::Time))
    }

    fn name(self, key: &str) -> String {
        match self {
            Style::Typed => named(key, Kind::Seconds),
            Style::Written => key.to_owned(),
        }
    }

    fn point<'py>(
        self,
        py: Python<'py>,
        point: [Bound<'py, PyAny>; 2],
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Style::Typed => PyTuple::new(py, point)?.into_any(),
            Style::Written => PyList::new(py, point)?.into_any(),
        })
    }
}

/// A value over time: a number if it is constant, else a dict.
fn over_time<'py>(
    py: Python<'py>,
    signal: &Signal,
    kind: Kind,
    style: Style,
) -> PyResult<Bound<'py, PyAny>> {
    let value = |value: f64| style.leaf(py, Value::Amount(value, kind));
    let list = |points: &[(u64, f64)]| {
        let list = PyList::empty(py);
        for (at_ns, of_point) in points {
            let point = [style.time(py, *at_ns)?, value(*of_point)?];
            list.append(style.point(py, point)?)?;
        }
        Ok::<_, PyErr>(list)
    };
    let dict = PyDict::new(py);
    match signal {
        Signal::Constant(constant) => return value(*constant),
        Signal::Cosine {
            mean,
            amplitude,
            period_ns,
            phase_rad,
        } => {
            dict.set_item("mean", value(*mean)?)?;
            dict.set_item("amplitude", amplitude)?;
            dict.set_item(style.name("period"), style.time(py, *period_ns)?)?;
            dict.set_item("phase", phase_rad)?;
        }
        Signal::Steps { points, end } => {
            dict.set_item("steps", list(points)?)?;
            let (word, time) = match end {
                End::Loop { period_ns } => ("loop", Some(("period", *period_ns))),
                End::Hold => ("hold", None),
                End::Stop { at_ns } => ("stop", Some(("at", *at_ns))),
            };
            dict.set_item("end", word)?;
            if let Some((key, ns)) = time {
                dict.set_item(style.name(key), style.time(py, ns)?)?;
            }
        }
        Signal::Lines { points } => dict.set_item("lines", list(points)?)?,
    }
    Ok(dict.into_any())
}

/// A value as it is written: a quantity as a string with its unit.
fn plain<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    if let Some(quantity) = value.quantity() {
        return Ok(quantity.into_pyobject(py)?.into_any());
    }
    Ok(match value {
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(value) | Value::Bytes(value) | Value::Ppm(value) => {
            value.into_pyobject(py)?.into_any()
        }
        Value::Whole(value, _) => value.into_pyobject(py)?.into_any(),
        Value::Signed(value, _) => value.into_pyobject(py)?.into_any(),
        Value::Real(value) | Value::Amount(value, _) => value.into_pyobject(py)?.into_any(),
        Value::OverTime(signal, kind) => over_time(py, signal, *kind, Style::Written)?,
        Value::List(members) => {
            let members: PyResult<Vec<_>> = members.iter().map(|value| plain(py, value)).collect();
            PyList::new(py, members?)?.into_any()
        }
        Value::Inline(table) | Value::Table(table) => plain_table(py, table)?.into_any(),
        Value::Tables(tables) => {
            let tables: PyResult<Vec<_>> =
                tables.iter().map(|table| plain_table(py, table)).collect();
            PyList::new(py, tables?)?.into_any()
        }
    })
}

fn plain_table<'py>(py: Python<'py>, table: &Written) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in table.keys() {
        dict.set_item(name, plain(py, value)?)?;
    }
    Ok(dict)
}
