// SPDX-License-Identifier: BSD-3-Clause
//! Capacity traces from files: our own CSV, mahimahi's delivery opportunities, other tables, lists of rates, and what iperf3
//! and Starlink record. Each is returned with what it was taken for, which its user should see.
//!
//! Ours: a header `t_s,capacity_bps[,delay_s][,loss]`, one line per change, and lines starting with `#`. Of those,
//! `# end=loop|hold|stop` says what follows the last line and `# period_s=600` how long one round is; without it the last
//! value lasts as long as the one before it.
//!
//! Delays through a constellation are the same with the header `t_s,to_satellite_s,to_ground_s`, and do not stop. Of lines
//! with the same time the last counts, as recorders write simultaneous changes one after another.
//!
//! Times of a table are seconds, or in another unit that its header or scenario names, or as clocks write them; without a
//! zone they are UTC. All times are relative to the first, which may be a clock's; in our own notation it is 0 or a clock's.
//!
//! mahimahi (Netravali et al. 2015): a whole number of ms per line, non-decreasing; at each, 1500 bytes may leave. The list
//! wraps at its last number.
//!
//! A notation is recognised by what only it can be. What may be two things is refused with the keys that decide.

mod choices;
mod columns;
mod csv;
mod described;
mod file;
mod format;
mod found;
pub mod keys;
mod mahimahi;
mod named;
mod recognise;
mod recorded;
mod rows;
mod spans;
#[cfg(test)]
mod tests;
mod understood;

use std::path::Path;

use crate::fault::Fault;
use crate::limits;
use crate::reader::Section;
use crate::signal::{Capacity, Signal};

pub use choices::{Covers, EarlierTimes, EqualTimes, Gap};
pub use described::{Described, Hints};
pub use file::{limited, read_limited, read_text, Reader};
pub use format::{Format, TraceEnd};
pub use found::Trace;
pub use named::{Column, NamedColumns, Place};
pub use understood::{Series, Understood};

/// Reads a trace file.
///
/// # Errors
/// When it cannot be read, or the first line that is wrong.
pub fn read(path: &Path, hints: &Hints) -> Result<Trace, Fault> {
    parse(&read_limited(path, limits::TRACE_BYTES)?, path, hints)
}

/// Reads the content of a trace file; `path` is for messages, and its ending for recognising mahimahi's.
///
/// # Errors
/// The first line that is wrong.
pub fn parse(bytes: &[u8], path: &Path, hints: &Hints) -> Result<Trace, Fault> {
    let reader = Reader {
        path: path.to_path_buf(),
    };
    let text = reader.text(bytes)?;
    let text = text.as_ref();
    let mut hints = hints.clone();
    let format = match hints.format {
        Some(format) => format,
        None => {
            let found = reader.recognise(text, &hints)?;
            hints.columns = found.columns.or(hints.columns);
            found.format
        }
    };
    let hints = &hints;
    match format {
        Format::Mahimahi => reader.mahimahi(text, hints),
        Format::Linkweir | Format::Mbit | Format::Csv | Format::Rates => {
            reader.csv(text, format, hints)
        }
        Format::Iperf3 | Format::Starlink => reader.recorded(text, format, hints),
    }
}

/// Reads the content of a file of delays through a constellation, to the last satellite and from there to the ground, in
/// seconds, and what it was taken for; `path` is for messages only, and `decimal` is the mark in front of decimals, if the
/// user names it.
///
/// # Errors
/// The first line that is wrong.
pub fn parse_delays(
    bytes: &[u8],
    path: &Path,
    decimal: Option<char>,
) -> Result<([Signal; 2], Series), Fault> {
    let reader = Reader {
        path: path.to_path_buf(),
    };
    reader.delays(&reader.text(bytes)?, decimal)
}

/// The mark in front of decimals of the files that a table names, if the table names it.
///
/// # Errors
/// It is neither a point nor a comma.
pub fn decimal(section: &mut Section<'_, '_>) -> Result<Option<char>, Fault> {
    const MARKS: [&str; 2] = [".", ","];
    let Some(entry) = section.find("decimal") else {
        return Ok(None);
    };
    let mark = MARKS[entry.choice(&MARKS)?];
    section.write("decimal", mark);
    Ok(mark.chars().next())
}

impl Reader {
    /// What another program recorded.
    fn recorded(&self, text: &str, format: Format, hints: &Hints) -> Result<Trace, Fault> {
        let found = recorded::read(self, text, format, hints.column.as_deref())?;
        let end = hints.end.unwrap_or(TraceEnd::Hold);
        let capacity = Capacity::Rate(Signal::Steps {
            points: found.points.into(),
            end: self.after(end, Some(found.end_ns))?,
        });
        let understood = Understood {
            columns: format!("capacity from {}", found.column),
            length_ns: Some(found.end_ns),
            ..Understood::of(&capacity)
        };
        Ok(Trace {
            capacity,
            delay_s: None,
            loss: None,
            format,
            column: Some(found.column.to_string()),
            columns: None,
            end,
            hints: hints.clone(),
            understood,
            notes: found.notes,
        })
    }
}
