// SPDX-License-Identifier: BSD-3-Clause
//! Files as text: their lines, and faults that name the line and the field.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::fault::{shorten, Fault};
use crate::limits;
use crate::signal::End;
use crate::table::{decode, Dialect};

use super::format::TraceEnd;

/// Reads a file whole, within limits.
///
/// # Errors
/// When it cannot be read, is no regular file or is too large.
pub fn read_limited(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Fault> {
    let fault = |message: String| Fault::in_file(path.to_path_buf(), None, message);
    let unreadable = |error: std::io::Error| fault(format!("cannot be read: {error}"));
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() {
        return Err(fault("is not a regular file".to_string()));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|f| f.take(max_bytes + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    limited(bytes, path, max_bytes)
}

/// These bytes of a file, if they are not too many.
///
/// # Errors
/// More than `max_bytes`.
pub fn limited(bytes: Vec<u8>, path: &Path, max_bytes: u64) -> Result<Vec<u8>, Fault> {
    if bytes.len() as u64 > max_bytes {
        let message = format!("is too large; at most {} MiB are read", max_bytes >> 20);
        return Err(Fault::in_file(path.to_path_buf(), None, message));
    }
    Ok(bytes)
}

/// Reads a file whole, as text.
///
/// # Errors
/// As for [`read_limited`], or the line where it is no text.
pub fn read_text(path: &Path, max_bytes: u64) -> Result<String, Fault> {
    let bytes = read_limited(path, max_bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        Fault::in_file(path.to_path_buf(), Some(line), "is not text (UTF-8)")
    })
}

/// Reads the content of a file and names its faults.
pub struct Reader {
    /// Where the content came from, for faults.
    pub path: PathBuf,
}

impl Reader {
    /// A fault of a line.
    pub fn fault(&self, line: usize, message: impl Into<String>) -> Fault {
        Fault::in_file(self.path.clone(), Some(line), message)
    }

    /// A fault of one field of a line.
    pub fn field_fault(
        &self,
        line: usize,
        key: &str,
        value: &str,
        message: impl Into<String>,
    ) -> Fault {
        let quoted = format!("\"{}\"", shorten(value));
        Fault {
            key: key.to_string(),
            value: quoted,
            ..self.fault(line, message)
        }
    }

    /// A fault of the file as a whole.
    pub fn whole_fault(&self, message: impl Into<String>) -> Fault {
        Fault::in_file(self.path.clone(), None, message)
    }

    /// The content as text of not too many lines: UTF-8 or UTF-16, and perhaps compressed by gzip.
    pub fn text<'t>(&self, bytes: &'t [u8]) -> Result<Cow<'t, str>, Fault> {
        let text = decode::text(bytes, limits::TRACE_BYTES)
            .map_err(|(line, message)| Fault::in_file(self.path.clone(), line, message))?;
        if text.bytes().filter(|b| *b == b'\n').count() > limits::TRACE_LINES {
            return Err(self.whole_fault(format!(
                "has too many lines; at most {} are read",
                limits::TRACE_LINES
            )));
        }
        Ok(text)
    }

    /// How the file separates fields and decimals, unless `decimal` says it.
    pub fn dialect(&self, text: &str, decimal: Option<char>) -> Result<Dialect, Fault> {
        Dialect::find(text, decimal).map_err(|(line, message)| {
            self.fault(
                line,
                format!("{message}; write decimal = \",\", or take the commas out"),
            )
        })
    }

    /// A time in s, as ns.
    pub fn time(
        &self,
        line: usize,
        name: &str,
        field: &str,
        dialect: &Dialect,
    ) -> Result<u64, Fault> {
        let range = format!(
            "must be seconds, 0 .. {}",
            limits::DURATION_NS / 1_000_000_000
        );
        dialect
            .number(field)
            .map_err(|what| self.field_fault(line, name, field, format!("{what}; {range}")))?
            .shifted(9)
            .whole()
            .map(|(ns, _)| ns)
            .filter(|ns| *ns <= limits::DURATION_NS)
            .ok_or_else(|| self.field_fault(line, name, field, range))
    }

    /// What steps do at their end; `round_ns` is when the last one ends.
    pub(super) fn after(&self, end: TraceEnd, round_ns: Option<u64>) -> Result<End, Fault> {
        match (end, round_ns) {
            (TraceEnd::Hold, _) => Ok(End::Hold),
            (TraceEnd::Loop, Some(period_ns)) => Ok(End::Loop { period_ns }),
            (TraceEnd::Stop, Some(at_ns)) => Ok(End::Stop { at_ns }),
            (_, None) => Err(self.whole_fault(format!(
                "has one line only, so end={} needs a line # period_s=...",
                end.name()
            ))),
        }
    }
}
