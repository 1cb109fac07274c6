// SPDX-License-Identifier: BSD-3-Clause
//! The native half of the Python package `linkweir`, imported there as `linkweir._native`; not a public interface.
//!
//! Nothing is decided here: scenarios are parsed and run by `linkweir-sim`, results cross as Arrow-shaped buffers, and
//! long calls run without the interpreter lock, looking for Ctrl-C now and then.
#![deny(unsafe_code)]

mod batch;
mod brought;
mod calls;
mod codecs;
mod columns;
mod errors;
mod inputs;
mod keys;
mod link;
mod panels;
mod panics;
mod policies;
mod python_policy;
mod recording;
mod run;
mod scenario;
mod typed;

use pyo3::prelude::*;
use pyo3::PyTypeInfo;

/// The native half of linkweir.
#[pymodule]
mod _native {
    use super::errors::{RunError, ScenarioError};
    use super::{panics, PyModule, PyModuleMethods, PyResult, PyTypeInfo};
    use pyo3::Bound;

    #[pymodule_export]
    use super::batch::run_batch;
    #[pymodule_export]
    use super::codecs::codecs;
    #[pymodule_export]
    use super::inputs::{quantity, reading, show, trace};
    #[pymodule_export]
    use super::keys::{tables, traffic_kinds, units};
    #[pymodule_export]
    use super::link::Link;
    #[pymodule_export]
    use super::panels::{e_model, mos, Panels};
    #[pymodule_export]
    use super::policies::policies;
    #[pymodule_export]
    use super::recording::Recording;
    #[pymodule_export]
    use super::run::{empty_tables, run};
    #[pymodule_export]
    use super::scenario::{load, parse, Scenario};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        panics::keep_quiet();
        module.add("RunError", RunError::type_object(module.py()))?;
        module.add("ScenarioError", ScenarioError::type_object(module.py()))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("commit", env!("LINKWEIR_COMMIT"))?;
        module.add("shown_classes", linkweir_panels::SHOWN)?;
        module.add("sources", env!("LINKWEIR_SOURCES"))
    }
}
