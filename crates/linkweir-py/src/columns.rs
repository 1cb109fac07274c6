// SPDX-License-Identifier: BSD-3-Clause
//! Columns as the buffers Arrow has: values, and a bit per row for whether there is one.

use std::collections::BTreeMap;

use linkweir_sim::table::{Column, Table};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// One column: (name, kind, rows, values, validity or None, words or None).
///
/// `kind` is `real`, `count`, `whole` or `name`; values are little-endian f64, u64, i64, or u32 indices into `words`.
type Crossed<'py> = (
    String,
    &'static str,
    usize,
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyList>>,
);

fn bytes<'py, T, const N: usize>(
    py: Python<'py>,
    values: &[T],
    encode: impl Fn(&T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * N, |buffer| {
        for (slot, value) in buffer.chunks_exact_mut(N).zip(values) {
            slot.copy_from_slice(&encode(value));
        }
        Ok(())
    })
}

/// Least significant bit first, as in Arrow; none when every row has a value.
fn validity<'py>(py: Python<'py>, values: &[Option<f64>]) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if values.iter().all(Option::is_some) {
        return Ok(None);
    }
    let bitmap = PyBytes::new_with(py, values.len().div_ceil(8), |buffer| {
        for (i, value) in values.iter().enumerate() {
            buffer[i / 8] |= u8::from(value.is_some()) << (i % 8);
        }
        Ok(())
    })?;
    Ok(Some(bitmap))
}

fn column<'py>(py: Python<'py>, name: &str, column: &Column) -> PyResult<Crossed<'py>> {
    let name = name.to_string();
    Ok(match column {
        Column::Real(v) => {
            let values = bytes(py, v, |x| x.unwrap_or(0.0).to_le_bytes())?;
            (name, "real", v.len(), values, validity(py, v)?, None)
        }
        Column::Count(v) => (
            name,
            "count",
            v.len(),
            bytes(py, v, |x| x.to_le_bytes())?,
            None,
            None,
        ),
        Column::Whole(v) => (
            name,
            "whole",
            v.len(),
            bytes(py, v, |x| x.to_le_bytes())?,
            None,
            None,
        ),
        Column::Name(v) => {
            let mut known: BTreeMap<&str, u32> = BTreeMap::new();
            let mut words: Vec<&str> = Vec::new();
            let indices: Vec<u32> = v
                .iter()
                .map(|word| {
                    *known.entry(word).or_insert_with(|| {
                        words.push(word);
                        u32::try_from(words.len() - 1).unwrap_or(u32::MAX)
                    })
                })
                .collect();
            let words = PyList::new(py, words)?;
            (
                name,
                "name",
                v.len(),
                bytes(py, &indices, |x| x.to_le_bytes())?,
                None,
                Some(words),
            )
        }
    })
}

/// The columns of a chunk, in order.
pub fn chunk<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (name, values) in &table.columns {
        list.append(
            column(py, name, values)?
                .into_pyobject(py)?
                .cast_into::<PyTuple>()?,
        )?;
    }
    Ok(list)
}

/// Chunks by table name, in the order in which they came.
pub fn chunks<'py>(py: Python<'py>, tables: &[Table]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for table in tables {
        let list = match dict.get_item(table.name)? {
            Some(list) => list.cast_into::<PyList>()?,
            None => {
                let list = PyList::empty(py);
                dict.set_item(table.name, &list)?;
                list
            }
        };
        list.append(chunk(py, table)?)?;
    }
    Ok(dict)
}
