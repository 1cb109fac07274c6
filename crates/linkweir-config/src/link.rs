// SPDX-License-Identifier: BSD-3-Clause
//! What a link offers: the keys `rate` and `trace`, of which a table has one, and those that describe the trace.
//!
//! The caller finds the file of a trace, as only it knows what paths are relative to, and gives the least capacity.

use std::path::Path;

use crate::fault::Fault;
use crate::keys::link::{RATE, TRACE};
use crate::limits;
use crate::reader::{Entry, Files, Section};
use crate::signal::{Capacity, Signal};
use crate::trace::{self, Described, Hints};
use crate::values;

/// The keys that a table may have.
pub struct Given<'s, 'i> {
    rate: Option<Entry<'s, 'i>>,
    trace: Option<Entry<'s, 'i>>,
    described: Described<'s, 'i>,
}

/// The one that it has.
pub enum Source<'s, 'i> {
    /// None of them.
    None,
    /// A rate over time and its key.
    Rate(Signal, Entry<'s, 'i>),
    /// The key of a trace, and how it is described.
    Trace(Entry<'s, 'i>, Box<Hints>),
}

impl<'s, 'i> Given<'s, 'i> {
    /// Looks for the keys.
    pub fn find(section: &mut Section<'s, 'i>) -> Given<'s, 'i> {
        Given {
            rate: section.find(RATE.name),
            trace: section.find(TRACE.name),
            described: Described::find(section),
        }
    }

    /// One of the keys that are given, if any is.
    pub fn any(&self) -> Option<&Entry<'s, 'i>> {
        let given = self.rate.as_ref().or(self.trace.as_ref());
        given.or(self.described.any())
    }

    /// Reads what is given.
    ///
    /// # Errors
    /// Both a rate and a trace, a description without a trace, a rate that is none, or none that is `least_bps` at some time;
    /// `too_low` is what is then wrong.
    pub fn read(self, least_bps: f64, too_low: &str) -> Result<Source<'s, 'i>, Fault> {
        let Given {
            rate,
            trace,
            described,
        } = self;
        if let Some(entry) = trace {
            if rate.is_some() {
                return Err(entry.fault("rate and trace exclude each other; leave one out"));
            }
            return Ok(Source::Trace(entry, Box::new(described.read()?)));
        }
        if let Some(entry) = described.any() {
            return Err(entry.fault("is only for a link with a trace"));
        }
        let Some(entry) = rate else {
            return Ok(Source::None);
        };
        let signal = values::read(&entry, RATE.form)?;
        if values::greatest(&signal) < least_bps {
            return Err(entry.fault(too_low));
        }
        Ok(Source::Rate(signal, entry))
    }
}

/// The content of a file that a key names. A file that cannot be read is the fault of the line that names it.
///
/// # Errors
/// As for [`bytes`].
pub fn content(entry: &Entry<'_, '_>, path: &Path) -> Result<Vec<u8>, Fault> {
    let found = bytes(entry.source().files(), path);
    found.map_err(|fault| entry.fault(format!("{}: {}", path.display(), fault.message)))
}

/// The content of a file, which is in the file system unless `files` are given.
///
/// # Errors
/// As for [`trace::read_limited`], or why `files` cannot read it.
pub fn bytes(files: Option<&dyn Files>, path: &Path) -> Result<Vec<u8>, Fault> {
    let Some(files) = files else {
        return trace::read_limited(path, limits::TRACE_BYTES);
    };
    let found = files.read(path, limits::TRACE_BYTES);
    let fault = |message| Fault::in_file(path.to_path_buf(), None, message);
    let found = found.map_err(fault)?;
    trace::limited(found, path, limits::TRACE_BYTES)
}

/// Mean of a capacity, bit/s: of a rate over `span_ns`, of opportunities over a round.
pub fn mean_bps(capacity: &Capacity, span_ns: u64) -> f64 {
    match capacity {
        Capacity::Rate(signal) => values::mean(signal, span_ns),
        Capacity::Opportunities { at_ns, bytes } => {
            let period_s = at_ns.last().copied().unwrap_or(1).max(1) as f64 * 1e-9;
            at_ns.len() as f64 * f64::from(*bytes) * 8.0 / period_s
        }
    }
}
