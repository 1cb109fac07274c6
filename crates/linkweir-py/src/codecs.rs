// SPDX-License-Identifier: BSD-3-Clause
//! The codecs of voice, for the E-model and for checks of packet sizes.

use linkweir_sim::codec::CODECS;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Every codec: name, payload of a packet in bytes, time from packet to packet in s, time from the mouth to the end of a packet in
/// s, and Ie and Bpl of ITU-T G.113, if it has them.
#[pyfunction]
pub fn codecs(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for codec in CODECS {
        let dict = PyDict::new(py);
        dict.set_item("name", codec.name)?;
        dict.set_item("payload_bytes", codec.payload_bytes)?;
        dict.set_item("interval_s", codec.interval_ns as f64 / 1e9)?;
        dict.set_item("delay_s", codec.delay_s())?;
        dict.set_item("impairment", codec.impairment)?;
        list.append(dict)?;
    }
    Ok(list)
}
