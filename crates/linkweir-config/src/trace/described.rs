// SPDX-License-Identifier: BSD-3-Clause
//! Keys of a table that describe its trace.

use crate::fault::Fault;
use crate::reader::{Entry, Section};

use super::format::{Format, TraceEnd};
use super::named::NamedColumns;

/// Keys of a table that describe its trace.
pub struct Described<'s, 'i> {
    format: Option<Entry<'s, 'i>>,
    column: Option<Entry<'s, 'i>>,
    columns: Option<Entry<'s, 'i>>,
    end: Option<Entry<'s, 'i>>,
}

impl<'s, 'i> Described<'s, 'i> {
    /// Looks for `trace_format`, `trace_column`, `columns` and `end`.
    pub fn find(section: &mut Section<'s, 'i>) -> Self {
        Described {
            format: section.find("trace_format"),
            column: section.find("trace_column"),
            columns: section.find("columns"),
            end: section.find("end"),
        }
    }

    /// One of the keys that are given, if any is: a table without a trace must have none.
    pub fn any(&self) -> Option<&Entry<'s, 'i>> {
        let Described {
            format,
            column,
            columns,
            end,
        } = self;
        format
            .as_ref()
            .or(column.as_ref())
            .or(columns.as_ref())
            .or(end.as_ref())
    }

    /// Reads them.
    ///
    /// # Errors
    /// A word that is none of those allowed, or keys that do not go together.
    pub fn read(&self) -> Result<Hints, Fault> {
        let mut format = match &self.format {
            Some(entry) => {
                let mut words = vec!["auto"];
                words.extend(Format::NAMES);
                entry
                    .choice(&words)?
                    .checked_sub(1)
                    .map(|index| Format::ALL[index])
            }
            None => None,
        };
        let columns = self.columns.as_ref().map(NamedColumns::read).transpose()?;
        if let Some(entry) = &self.columns {
            if format.is_some_and(|format| format != Format::Csv) {
                return Err(
                    entry.fault("is only for trace_format = \"csv\"; leave one of them out")
                );
            }
            if let Some(column) = &self.column {
                return Err(column.fault("columns names it already; leave it out"));
            }
            format = Some(Format::Csv);
        } else if let (Some(Format::Csv), Some(entry)) = (format, &self.format) {
            return Err(entry.fault(
                "needs the names of its columns, such as columns = { t = \"time_s\", capacity = \"down_mbit\" }",
            ));
        }
        let column = self
            .column
            .as_ref()
            .map(|entry| entry.text().map(str::to_string));
        let end = match &self.end {
            Some(entry) => Some(match entry.choice(&TraceEnd::NAMES)? {
                0 => TraceEnd::Loop,
                1 => TraceEnd::Hold,
                _ => TraceEnd::Stop,
            }),
            None => None,
        };
        Ok(Hints {
            format,
            column: column.transpose()?,
            columns,
            end,
        })
    }
}

/// Facts about a trace that the caller knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Notation; found out from the content when not given.
    pub format: Option<Format>,
    /// Column of an `mbit`, `iperf3` or `starlink` file; the first that fits when not given.
    pub column: Option<String>,
    /// Columns of a `csv` file, which needs them.
    pub columns: Option<NamedColumns>,
    /// What follows the last line; the file's own word when not given.
    pub end: Option<TraceEnd>,
}
