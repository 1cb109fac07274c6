// SPDX-License-Identifier: BSD-3-Clause
//! A trace as it was read.

use std::path::Path;

use crate::reader::Section;
use crate::signal::{Capacity, Signal};

use super::described::Hints;
use super::format::{Format, TraceEnd};
use super::named::NamedColumns;
use super::understood::Understood;

/// A trace that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Rate over time or delivery opportunities.
    pub capacity: Capacity,
    /// Propagation delay, where the file has a column for it.
    pub delay_s: Option<Signal>,
    /// Loss probability, where the file has a column for it.
    pub loss: Option<Signal>,
    /// Notation of the file.
    pub format: Format,
    /// Column used of an `mbit`, `iperf3` or `starlink` file.
    pub column: Option<String>,
    /// Columns used of a `csv` file.
    pub columns: Option<NamedColumns>,
    /// What follows the last line.
    pub end: TraceEnd,
    /// What the user said of it.
    pub hints: Hints,
    /// What it was taken for.
    pub understood: Understood,
    /// What of the file was not read, or not as it lies, a sentence each.
    pub notes: Vec<String>,
}

impl Trace {
    /// What the file at `path` was taken for, in one line.
    pub fn reading(&self, path: &Path) -> String {
        let shown = self.understood.show(self.format.name(), self.end.name());
        format!("{}: {shown}", path.display())
    }

    /// What of the file is doubtful or was not read as it lies, a sentence each.
    pub fn doubts(&self) -> impl Iterator<Item = &String> {
        self.understood.doubts.iter().chain(&self.notes)
    }

    /// What the file at `path` was taken for and what of it is doubtful, a line each.
    pub fn told(&self, path: &Path) -> Vec<String> {
        let reading = format!("read: {}", self.reading(path));
        let note = |doubt| format!("note: {}: {doubt}", path.display());
        [reading]
            .into_iter()
            .chain(self.doubts().map(note))
            .collect()
    }

    /// Writes the keys with which [`Described`](super::Described) reads the same again.
    pub fn write(&self, section: &mut Section<'_, '_>) {
        section.write("trace_format", self.format.name());
        if let Some(column) = &self.column {
            section.write("trace_column", column.as_str());
        }
        if let Some(columns) = &self.columns {
            section.write("columns", columns.written());
        }
        section.write("end", self.end.name());
        self.hints.write(section);
    }
}
