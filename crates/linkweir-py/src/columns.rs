// SPDX-License-Identifier: BSD-3-Clause
//! Columns as the buffers Arrow has: values, and a bit per row for whether there is one.

use linkweir_sim::table::{Column, Table};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// One column: (name, kind, rows, values, validity or None, words or None); see [`Column::buffers`].
type Crossed<'py> = (
    String,
    &'static str,
    usize,
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyList>>,
);

fn column<'py>(py: Python<'py>, name: &str, column: &Column) -> PyResult<Crossed<'py>> {
    let buffers = column.buffers();
    let has_words = matches!(column, Column::Name(_));
    Ok((
        name.to_owned(),
        buffers.kind,
        column.len(),
        PyBytes::new(py, &buffers.values),
        buffers.validity.map(|bits| PyBytes::new(py, &bits)),
        has_words
            .then(|| PyList::new(py, buffers.words))
            .transpose()?,
    ))
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
