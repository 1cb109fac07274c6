// SPDX-License-Identifier: BSD-3-Clause
//! Recordings of gateways as Python reads them.

use std::collections::BTreeMap;

use linkweir_config::recording::{self, Bin, PathState};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::errors::RunError;
use crate::panics::caught;

/// Arrived packets and bytes, TCP's packets among them, sent packets and bytes, dropped packets and bytes.
type Sums = (u64, u64, u64, u64, u64, u64, u64);
/// Settings, origin in ns of UNIX time, begin and end in ns, texts of the peers, gaps.
type Section = (String, u64, u64, u64, Vec<String>, Vec<(u64, u64)>);

fn sums(bin: &Bin) -> Sums {
    (
        bin.arrived_pkts,
        bin.arrived_bytes,
        bin.tcp_pkts,
        bin.sent_pkts,
        bin.sent_bytes,
        bin.dropped_pkts,
        bin.dropped_bytes,
    )
}

/// A recording.
#[pyclass(frozen, module = "linkweir._native")]
pub struct Recording {
    inner: recording::Recording,
}

#[pymethods]
impl Recording {
    #[new]
    fn new(py: Python<'_>, files: Vec<PyBackedBytes>) -> PyResult<Recording> {
        let files: Vec<Vec<u8>> = files.iter().map(|file| file.to_vec()).collect();
        let read = py.detach(|| caught(|| recording::Recording::new(files)));
        let inner = read.map_err(RunError::new_err)?;
        let inner = inner.map_err(PyValueError::new_err)?;
        Ok(Recording { inner })
    }

    /// Its sections.
    #[getter]
    fn sections(&self) -> Vec<Section> {
        let section = |one: &recording::Section| {
            (
                one.settings.clone(),
                one.origin_unix_ns,
                one.from_ns,
                one.to_ns,
                one.peers.values().cloned().collect(),
                one.gaps.clone(),
            )
        };
        self.inner.sections.iter().map(section).collect()
    }

    /// When it begins and ends, ns.
    #[getter]
    fn span_ns(&self) -> (u64, u64) {
        self.inner.span_ns()
    }

    /// Bytes that could not be read: number of the file, where they begin, how many.
    #[getter]
    fn damages(&self) -> Vec<(usize, usize, usize)> {
        let damages = self.inner.damages.iter();
        damages
            .map(|(file, damage)| (*file, damage.at, damage.bytes))
            .collect()
    }

    /// Peers with the sums of all their classes.
    #[getter]
    fn peers(&self, py: Python<'_>) -> PyResult<BTreeMap<String, Sums>> {
        let peers = py.detach(|| caught(|| self.inner.peers()));
        let peers = peers.map_err(RunError::new_err)?;
        Ok(peers
            .into_iter()
            .map(|(name, bin)| (name, sums(&bin)))
            .collect())
    }

    /// Sums of classes over intervals: a list per interval.
    fn sums(
        &self,
        py: Python<'_>,
        peer: &str,
        classes: Vec<String>,
        span_ns: (u64, u64),
        interval_ns: u64,
    ) -> PyResult<Vec<Vec<Sums>>> {
        let found = py.detach(|| caught(|| self.inner.sums(peer, &classes, span_ns, interval_ns)));
        let found = found.map_err(RunError::new_err)?;
        Ok(found
            .iter()
            .map(|row| row.iter().map(sums).collect())
            .collect())
    }

    /// Changes of the capacity: ns after the begin of the span, and bit/s.
    fn capacity(
        &self,
        py: Python<'_>,
        peer: &str,
        span_ns: (u64, u64),
    ) -> PyResult<Vec<(u64, u64)>> {
        let found = py.detach(|| caught(|| self.inner.capacity(peer, span_ns)));
        found.map_err(RunError::new_err)
    }

    /// Changes of paths, a list per path: ns after the begin of the span, bit/s, and delay in ns.
    fn path_states(
        &self,
        py: Python<'_>,
        peer: &str,
        paths: Vec<String>,
        span_ns: (u64, u64),
    ) -> PyResult<Vec<Vec<(u64, u64, u64)>>> {
        let found = py.detach(|| caught(|| self.inner.path_states(peer, &paths, span_ns)));
        let found = found.map_err(RunError::new_err)?;
        let flat = |(at_ns, state): &(u64, PathState)| (*at_ns, state.bps, state.delay_ns);
        Ok(found
            .iter()
            .map(|path| path.iter().map(flat).collect())
            .collect())
    }

    /// For each section whether it says what each of the paths to a peer was.
    fn knows_paths(&self, py: Python<'_>, peer: &str) -> PyResult<Vec<bool>> {
        let found = py.detach(|| caught(|| self.inner.knows_paths(peer)));
        found.map_err(RunError::new_err)
    }

    /// Packets and bytes that each path sent of each class: a list per path.
    fn carried(
        &self,
        py: Python<'_>,
        peer: &str,
        names: (Vec<String>, Vec<String>),
        span_ns: (u64, u64),
    ) -> PyResult<Vec<Vec<(u64, u64)>>> {
        let names = (&names.0[..], &names.1[..]);
        let found = py.detach(|| caught(|| self.inner.carried(peer, names, span_ns)));
        found.map_err(RunError::new_err)
    }

    /// The part about a peer and a time, as a recording with the settings of a section.
    fn cut<'py>(
        &self,
        py: Python<'py>,
        peer: &str,
        section: usize,
        span_ns: (u64, u64),
    ) -> PyResult<Bound<'py, PyBytes>> {
        let cut = py.detach(|| caught(|| self.inner.cut(peer, section, span_ns)));
        let cut = cut.map_err(RunError::new_err)?;
        let cut = cut.map_err(PyValueError::new_err)?;
        Ok(PyBytes::new(py, &cut))
    }
}
