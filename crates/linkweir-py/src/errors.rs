// SPDX-License-Identifier: BSD-3-Clause
//! Exceptions of the Python package that this module raises, and faults as one of them.

use linkweir_sim::scenario::Fault;
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(linkweir.fault, RunError);
import_exception!(linkweir.fault, ScenarioError);

/// A fault as Python's exception.
pub fn raise(py: Python<'_>, fault: &Fault) -> PyErr {
    let error = ScenarioError::new_err(fault.to_string());
    let value = error.value(py);
    let set = || -> PyResult<()> {
        value.setattr("file", fault.file.as_ref().map(|f| f.display().to_string()))?;
        value.setattr("line", fault.line)?;
        value.setattr("key", &fault.key)?;
        value.setattr("value", &fault.value)?;
        value.setattr("message", &fault.message)
    };
    match set() {
        Ok(()) => error,
        Err(other) => other,
    }
}
