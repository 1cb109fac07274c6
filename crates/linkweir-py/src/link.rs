// SPDX-License-Identifier: BSD-3-Clause
//! A link that a Python program drives.

use std::sync::{Mutex, MutexGuard, TryLockError};

use linkweir_link::Packet;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::RunError;
use crate::panics::caught;
use crate::scenario::Scenario;

type Inner = linkweir_link::Link<Py<PyAny>>;
/// Payload, class, bytes; when it was sent, left its queue and arrived, ns; whether it is marked.
type Received = (Py<PyAny>, usize, u32, u64, u64, u64, bool);
/// Payload, class, bytes; when it was sent and dropped, ns; why.
type Dropped = (Py<PyAny>, usize, u32, u64, u64, &'static str);

/// The link of a scenario.
#[pyclass(frozen, module = "linkweir._native")]
pub struct Link {
    inner: Mutex<Driven>,
}

/// The link, and what the policy did that broke it.
struct Driven {
    link: Inner,
    fault: Option<String>,
}

impl Link {
    /// Never waits: the one that has the link may be a policy which calls it, or wait for the interpreter's lock.
    fn take(&self) -> PyResult<MutexGuard<'_, Driven>> {
        match self.inner.try_lock() {
            Ok(taken) => Ok(taken),
            Err(TryLockError::Poisoned(broken)) => Ok(broken.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "the link is in use: by another thread, or by the call that asks its policy",
            )),
        }
    }

    /// What a call gives. A panic, as a user's policy may cause one, becomes an error, which each later call gives too.
    fn call<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> PyResult<T> {
        let mut driven = self.take()?;
        let Driven { link, fault } = &mut *driven;
        if fault.is_none() {
            match caught(|| work(link)) {
                Ok(given) => return Ok(given),
                Err(message) => *fault = Some(message),
            }
        }
        Err(RunError::new_err(fault.clone().unwrap_or_default()))
    }
}

#[pymethods]
impl Link {
    #[new]
    fn new(scenario: &Scenario) -> PyResult<Link> {
        let made = caught(|| linkweir_link::Link::new(&scenario.inner.experiment));
        let made = made.map_err(RunError::new_err)?;
        let link = made.map_err(|error| RunError::new_err(error.to_string()))?;
        Ok(Link {
            inner: Mutex::new(Driven { link, fault: None }),
        })
    }

    /// Names of the classes.
    #[getter]
    fn classes(&self) -> PyResult<Vec<String>> {
        Ok(self.take()?.link.classes().to_vec())
    }

    /// The time at which the link ends, ns.
    #[getter]
    fn end_ns(&self) -> PyResult<u64> {
        Ok(self.take()?.link.end_ns())
    }

    /// Sends a packet.
    fn send(
        &self,
        now_ns: u64,
        class_: usize,
        length: u32,
        flow: u32,
        codepoint: (bool, bool),
        payload: Py<PyAny>,
    ) -> PyResult<()> {
        let packet = Packet {
            class: class_,
            bytes: length,
            flow,
            ecn_capable: codepoint.0,
            l4s: codepoint.1,
        };
        self.call(|link| link.send_packet(now_ns, packet, payload))?
            .map_err(|refused| PyValueError::new_err(refused.to_string()))
    }

    /// When to ask again, ns.
    fn next_ns(&self) -> PyResult<Option<u64>> {
        self.call(|link| link.next_ns())
    }

    /// Does not keep what is dropped.
    fn forget_dropped(&self) -> PyResult<()> {
        self.call(Inner::forget_dropped)
    }

    /// The next packet that has arrived.
    fn receive(&self, now_ns: u64) -> PyResult<Option<Received>> {
        let packet = self.call(|link| link.receive(now_ns))?;
        Ok(packet.map(|packet| {
            (
                packet.payload,
                packet.class,
                packet.bytes,
                packet.sent_ns,
                packet.left_ns,
                packet.arrived_ns,
                packet.marked,
            )
        }))
    }

    /// The next packet that was dropped or lost.
    fn dropped(&self, now_ns: u64) -> PyResult<Option<Dropped>> {
        let packet = self.call(|link| link.dropped(now_ns))?;
        Ok(packet.map(|packet| {
            (
                packet.payload,
                packet.class,
                packet.bytes,
                packet.sent_ns,
                packet.dropped_ns,
                packet.reason.name(),
            )
        }))
    }

    /// Packets of a class that were sent, have arrived, with a mark among these, and were dropped.
    fn counts(&self, class_: usize) -> PyResult<Option<(u64, u64, u64, u64)>> {
        let counts = self.call(|link| link.counts(class_))?;
        Ok(counts.map(|counts| {
            (
                counts.sent_pkts,
                counts.arrived_pkts,
                counts.marked_pkts,
                counts.dropped_pkts,
            )
        }))
    }
}
