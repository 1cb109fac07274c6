// SPDX-License-Identifier: BSD-3-Clause
//! Capacity traces from files: our own CSV, mahimahi's delivery opportunities, other CSV, and what iperf3 and Starlink
//! record (`recorded.rs`).
//!
//! Ours: a header `t_s,capacity_bps[,delay_s][,loss]`, one line per change, and lines starting with `#`. Of those,
//! `# end=loop|hold|stop` says what follows the last line and `# period_s=600` how long one round is; without it the last
//! value lasts as long as the one before it.
//!
//! Delays through a constellation are the same with the header `t_s,to_satellite_s,to_ground_s`, and do not stop. Of lines
//! of one time the last counts: recorders write what changes at once one after another.
//!
//! Times of a CSV are seconds, or another unit that its scenario names, or ISO 8601; without a zone they are UTC. All
//! times are relative to the first, which may be a clock's; in our own notation it is 0 or a clock's.
//!
//! mahimahi (Netravali et al. 2015): a whole number of ms per line, non-decreasing; at each, 1500 bytes may leave. The list
//! wraps at its last number.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::signal::{Capacity, End, Signal};

use crate::fault::{shorten, Fault};
use crate::limits;
use crate::reader::{nearest, quote, Entry, Section};
use crate::recorded;
use crate::units::{self, Decimal, Kind};

/// Notation of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own CSV.
    Linkweir,
    /// One millisecond number per delivery opportunity.
    Mahimahi,
    /// CSV with a time column and columns in Mbit/s.
    Mbit,
    /// CSV of which the scenario names the columns.
    Csv,
    /// JSON of `iperf3 --json`.
    Iperf3,
    /// JSON of a Starlink dish's history.
    Starlink,
}

impl Format {
    /// Names in scenarios, in the order of the variants.
    pub const NAMES: [&'static str; 6] =
        ["linkweir", "mahimahi", "mbit", "csv", "iperf3", "starlink"];
    const ALL: [Format; 6] = [
        Format::Linkweir,
        Format::Mahimahi,
        Format::Mbit,
        Format::Csv,
        Format::Iperf3,
        Format::Starlink,
    ];

    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        Format::NAMES[self as usize]
    }
}

/// What follows the last line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEnd {
    /// It starts again.
    Loop,
    /// The last value stays.
    Hold,
    /// Nothing leaves any more.
    Stop,
}

impl TraceEnd {
    /// Names in scenarios and files, in the order of the variants.
    pub const NAMES: [&'static str; 3] = ["loop", "hold", "stop"];

    /// Its name in scenarios and files.
    pub fn name(self) -> &'static str {
        TraceEnd::NAMES[self as usize]
    }
}

/// A column of a CSV file, and the unit of its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As in the header.
    pub name: String,
    /// As in quantities of a scenario: `ms`, `Mbit`, or of a capacity `kB` for kB/s.
    pub unit: String,
}

impl Column {
    /// Reads `"NAME"` or `{ column = "NAME", unit = "UNIT" }`; `implied` is the unit that a name alone implies.
    fn read(
        entry: &Entry<'_, '_>,
        kinds: &[Kind],
        implied: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<Column, Fault> {
        let units = "one of Gbit, Mbit, kbit, bit, or GB, MB, kB, B for bytes per second";
        let units = if kinds.contains(&Kind::Time) {
            "one of s, ms, us, ns, min, h"
        } else {
            units
        };
        let Some(mut table) = entry.table() else {
            let name = entry.text()?.to_string();
            let unit = implied(&name).ok_or_else(|| {
                entry.fault(format!(
                    "does not say its unit; write {{ column = {}, unit = ... }} with {units}",
                    quote(&name)
                ))
            })?;
            return Ok(Column {
                name,
                unit: unit.to_string(),
            });
        };
        let name = table
            .need("column", "\"name in the header\"")?
            .text()?
            .to_string();
        let unit = match table.find("unit") {
            None => implied(&name)
                .ok_or_else(|| table.fault_at("unit", format!("is missing; write {units}")))?,
            Some(entry) => {
                let unit = entry.text()?;
                let is_unit = |kind: &Kind| units::parse(&format!("1{unit}"), *kind).is_ok();
                let word = unit.bytes().all(|byte| byte.is_ascii_alphabetic()); // "0ms" is none
                if !word || !kinds.iter().any(is_unit) {
                    return Err(entry.fault(format!("must be {units}")));
                }
                unit
            }
        };
        let unit = unit.to_string();
        table.known()?;
        Ok(Column { name, unit })
    }

    fn show(&self) -> String {
        format!(
            "{{ column = {}, unit = {} }}",
            quote(&self.name),
            quote(&self.unit)
        )
    }
}

/// The columns of a CSV file that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedColumns {
    /// Times; also ISO 8601.
    pub time: Column,
    /// Capacities.
    pub capacity: Column,
}

impl NamedColumns {
    /// Reads `columns = { t = ..., capacity = ... }`.
    fn read(entry: &Entry<'_, '_>) -> Result<NamedColumns, Fault> {
        let mut table = entry.table().ok_or_else(|| {
            entry.fault("must be a table like { t = \"time_s\", capacity = \"down_mbit\" }")
        })?;
        let time = table.need("t", "\"name of the column of times\"")?;
        let capacity = table.need("capacity", "\"name of the column of capacities\"")?;
        table.known()?;
        let found = NamedColumns {
            time: Column::read(&time, &[Kind::Time], |name| {
                let ends = |unit: &&&str| name.ends_with(&format!("_{unit}"));
                Some(["ms", "us", "ns"].iter().find(ends).unwrap_or(&"s"))
            })?,
            capacity: Column::read(&capacity, &[Kind::Rate, Kind::Size], |name| {
                let name = name.to_ascii_lowercase();
                let prefixed = ["Gbit", "Mbit", "kbit"].into_iter();
                prefixed
                    .chain(name.ends_with("_bps").then_some("bit"))
                    .find(|unit| *unit == "bit" || name.contains(&unit.to_ascii_lowercase()))
            })?,
        };
        if found.time.name == found.capacity.name {
            return Err(capacity.fault("must not be the column of the times"));
        }
        Ok(found)
    }

    /// As TOML.
    pub fn show(&self) -> String {
        format!(
            "{{ t = {}, capacity = {} }}",
            self.time.show(),
            self.capacity.show()
        )
    }
}

/// What a table says of its trace.
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
                return Err(entry.fault("is only for trace_format = \"csv\"; leave either out"));
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

/// What the reader of a trace may say about it.
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
}

impl Trace {
    /// Writes the keys with which [`Described`] reads the same again.
    pub fn write(&self, section: &mut Section<'_, '_>) {
        section.write("trace_format", quote(self.format.name()));
        if let Some(column) = &self.column {
            section.write("trace_column", quote(column));
        }
        if let Some(columns) = &self.columns {
            section.write("columns", columns.show());
        }
        section.write("end", quote(self.end.name()));
    }
}

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
    if bytes.len() as u64 > max_bytes {
        return Err(fault(format!(
            "is too large; at most {} MiB are read",
            max_bytes >> 20
        )));
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

/// Reads a trace file.
///
/// # Errors
/// When it cannot be read, or the first line that is wrong.
pub fn read(path: &Path, hints: &Hints) -> Result<Trace, Fault> {
    parse(&read_limited(path, limits::TRACE_BYTES)?, path, hints)
}

/// Reads the content of a trace file; `path` is for messages only.
///
/// # Errors
/// The first line that is wrong.
pub fn parse(bytes: &[u8], path: &Path, hints: &Hints) -> Result<Trace, Fault> {
    let reader = Reader {
        path: path.to_path_buf(),
    };
    let text = reader.text(bytes)?;
    let format = match hints.format {
        Some(format) => format,
        None => reader.recognise(text)?,
    };
    match format {
        Format::Mahimahi => reader.mahimahi(text, hints),
        Format::Linkweir | Format::Mbit | Format::Csv => reader.csv(text, format, hints),
        Format::Iperf3 | Format::Starlink => reader.recorded(text, format, hints),
    }
}

/// Reads the content of a file of delays through a constellation, to the last satellite and from there to the ground, in
/// seconds; `path` is for messages only.
pub fn parse_delays(bytes: &[u8], path: &Path) -> Result<[Signal; 2], Fault> {
    let reader = Reader {
        path: path.to_path_buf(),
    };
    reader.delays(reader.text(bytes)?)
}

/// Reads the content of a file and names its faults.
pub struct Reader {
    /// Where the content came from, for faults.
    pub path: PathBuf,
}

/// Lines that hold data, with their numbers from 1.
pub fn data_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

const HEADER: &str = "a header t_s,capacity_bps[,delay_s][,loss]";
const DELAY_COLUMNS: [&str; 3] = ["t_s", "to_satellite_s", "to_ground_s"];
const DELAYS_HEADER: &str = "a header t_s,to_satellite_s,to_ground_s";
const FORMATS: &str = "a header t_s,capacity_bps (Linkweir), a header t_s,..._mbit (mbit), one whole number of ms per line (mahimahi), or JSON of iperf3 or Starlink; of other CSV, name the columns: columns = { t = \"...\", capacity = \"...\" }";

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

    /// The content as text of not too many lines.
    pub fn text<'t>(&self, bytes: &'t [u8]) -> Result<&'t str, Fault> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = 1 + bytes[..error.valid_up_to()]
                .iter()
                .filter(|b| **b == b'\n')
                .count();
            self.fault(line, "is not text (UTF-8)")
        })?;
        if text.bytes().filter(|b| *b == b'\n').count() > limits::TRACE_LINES {
            return Err(self.whole_fault(format!(
                "has too many lines; at most {} are read",
                limits::TRACE_LINES
            )));
        }
        Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    fn recognise(&self, text: &str) -> Result<Format, Fault> {
        let Some((line, first)) = data_lines(text).next() else {
            return Err(self.whole_fault(format!("is empty; it must hold {FORMATS}")));
        };
        if let Some(found) = recorded::recognise(self, text) {
            return found;
        }
        let columns = fields(first);
        if columns.contains(&"capacity_bps") {
            Ok(Format::Linkweir)
        } else if columns.iter().any(|c| is_mbit(c)) {
            Ok(Format::Mbit)
        } else if columns.len() == 1 && Decimal::parse(first).is_ok() {
            Ok(Format::Mahimahi)
        } else {
            Err(self.fault(
                line,
                format!("cannot tell the trace's format; it must start with {FORMATS}"),
            ))
        }
    }

    fn mahimahi(&self, text: &str, hints: &Hints) -> Result<Trace, Fault> {
        if hints.end.is_some_and(|end| end != TraceEnd::Loop) {
            return Err(self.whole_fault(
                "a mahimahi trace always starts again; only end = \"loop\" is possible",
            ));
        }
        let mut at_ns: Vec<u64> = Vec::new();
        let mut last_ms = 0_u64;
        for (line, field) in data_lines(text) {
            let ms = self.milliseconds(line, field)?;
            if ms < last_ms {
                return Err(self.field_fault(
                    line,
                    "ms",
                    field,
                    format!("must not be less than the line before, {last_ms}"),
                ));
            }
            last_ms = ms;
            at_ns.push(ms * 1_000_000);
        }
        if at_ns.is_empty() {
            return Err(self.whole_fault("is empty; it must hold one whole number of ms per line"));
        }
        if last_ms == 0 {
            return Err(self.whole_fault("the last number is the period and must be larger than 0"));
        }
        Ok(Trace {
            capacity: Capacity::Opportunities {
                at_ns: at_ns.into(),
                bytes: 1500,
            },
            delay_s: None,
            loss: None,
            format: Format::Mahimahi,
            column: None,
            columns: None,
            end: TraceEnd::Loop,
        })
    }

    /// What another program recorded.
    fn recorded(&self, text: &str, format: Format, hints: &Hints) -> Result<Trace, Fault> {
        let found = recorded::read(self, text, format, hints.column.as_deref())?;
        let end = hints.end.unwrap_or(TraceEnd::Hold);
        let capacity = Signal::Steps {
            points: found.points.into(),
            end: self.after(end, Some(found.end_ns))?,
        };
        Ok(Trace {
            capacity: Capacity::Rate(capacity),
            delay_s: None,
            loss: None,
            format,
            column: Some(found.column.to_string()),
            columns: None,
            end,
        })
    }

    fn milliseconds(&self, line: usize, field: &str) -> Result<u64, Fault> {
        let max = limits::DURATION_NS / 1_000_000;
        let range = format!("must be a whole number of ms, 0 .. {max}");
        let decimal = Decimal::parse(field)
            .map_err(|what| self.field_fault(line, "ms", field, format!("{what}; {range}")))?;
        match decimal.whole() {
            Some((ms, true)) if ms <= max => Ok(ms),
            _ => Err(self.field_fault(line, "ms", field, range)),
        }
    }

    fn csv(&self, text: &str, format: Format, hints: &Hints) -> Result<Trace, Fault> {
        let metadata = self.metadata(text, format)?;
        let mut lines = data_lines(text);
        let Some((header_line, header)) = lines.next() else {
            return Err(self.whole_fault(format!("is empty; it must hold {FORMATS}")));
        };
        let names = fields(header);
        let columns = self.columns(header_line, &names, format, hints)?;
        let end = hints.end.or(metadata.end()).unwrap_or(TraceEnd::Hold);
        let signals = self.signals(lines, &names, &columns, format, end, metadata.period)?;
        let mut signals = signals.into_iter();
        let mut next = |role: Role| {
            if columns.has(role) {
                signals.next()
            } else {
                None
            }
        };
        let capacity = next(Role::Capacity)
            .ok_or_else(|| self.fault(header_line, format!("must be {HEADER}")))?;
        Ok(Trace {
            capacity: Capacity::Rate(capacity),
            delay_s: next(Role::Delay),
            loss: next(Role::Loss),
            format,
            column: (format == Format::Mbit).then(|| names[columns.values[0].index].to_string()),
            columns: hints.columns.clone(),
            end,
        })
    }

    /// Delays to the last satellite and from there to the ground.
    fn delays(&self, text: &str) -> Result<[Signal; 2], Fault> {
        let metadata = self.metadata(text, Format::Linkweir)?;
        if metadata.end() == Some(TraceEnd::Stop) {
            return Err(
                self.whole_fault("says end=stop, and delays do not stop: write loop or hold")
            );
        }
        let mut lines = data_lines(text);
        let Some((line, header)) = lines.next() else {
            return Err(self.whole_fault(format!("is empty; it must hold {DELAYS_HEADER}")));
        };
        let names = fields(header);
        self.known(line, &names, &DELAY_COLUMNS, DELAYS_HEADER)?;
        let [time, to_satellite, to_ground] = DELAY_COLUMNS;
        let index = |name| self.index(line, &names, name, DELAYS_HEADER);
        let delay = |index| ColumnUse {
            index,
            role: Role::Delay,
            unit: "s".to_string(),
        };
        let columns = Columns {
            time: index(time)?,
            unit: "s".to_string(),
            values: vec![delay(index(to_satellite)?), delay(index(to_ground)?)],
            repeat: true,
        };
        let end = metadata.end().unwrap_or(TraceEnd::Hold);
        let signals = self.signals(
            lines,
            &names,
            &columns,
            Format::Linkweir,
            end,
            metadata.period,
        )?;
        <[Signal; 2]>::try_from(signals)
            .map_err(|_| self.fault(line, format!("must be {DELAYS_HEADER}")))
    }

    /// One signal per column of values.
    fn signals<'t>(
        &self,
        lines: impl Iterator<Item = (usize, &'t str)>,
        names: &[&str],
        columns: &Columns,
        format: Format,
        end: TraceEnd,
        period: Option<(usize, u64)>,
    ) -> Result<Vec<Signal>, Fault> {
        let mut times: Vec<u64> = Vec::new();
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); columns.values.len()];
        let mut origin = 0_u64;
        let mut before = "";
        for (line, text) in lines {
            let fields = fields(text);
            if fields.len() != names.len() {
                let message = format!(
                    "has {} fields where the header has {}",
                    fields.len(),
                    names.len()
                );
                return Err(self.fault(line, message));
            }
            let time_fault = |message: &str| {
                self.field_fault(line, names[columns.time], fields[columns.time], message)
            };
            let t = self.stamp(
                line,
                names[columns.time],
                fields[columns.time],
                &columns.unit,
                format,
            )?;
            if times.is_empty() {
                if format == Format::Linkweir && t != 0 && t <= limits::DURATION_NS {
                    return Err(time_fault(
                        "the first time must be 0, or a UNIX or ISO 8601 time stamp",
                    ));
                }
                origin = t;
            }
            if t.saturating_sub(origin) > limits::DURATION_NS {
                return Err(time_fault(&format!(
                    "must be at most {} seconds after the first",
                    limits::DURATION_NS / 1_000_000_000
                )));
            }
            match times.last() {
                Some(last) if columns.repeat && t == *last + origin => {
                    times.pop();
                    for list in &mut values {
                        list.pop();
                    }
                }
                Some(last) if t <= *last + origin => {
                    let before = shorten(before);
                    return Err(time_fault(&format!(
                        "must be later than the line before, {before}"
                    )));
                }
                _ => {}
            }
            before = fields[columns.time];
            times.push(t - origin);
            for (column, list) in columns.values.iter().zip(&mut values) {
                list.push(self.value(line, names[column.index], fields[column.index], column)?);
            }
        }
        let (Some(last), line_count) = (times.last().copied(), times.len()) else {
            return Err(self.whole_fault("has a header but no values"));
        };

        let round_ns = match period {
            Some((_, period)) if period > last => Some(period),
            Some((line, _)) => {
                return Err(self.fault(
                    line,
                    "period_s must be larger than the time from the first line to the last",
                ))
            }
            None if line_count > 1 => Some(last + (last - times[line_count - 2])),
            None => None,
        };
        let end_of_steps = self.after(end, round_ns)?;
        let signals = values.into_iter().map(|list| Signal::Steps {
            points: times
                .iter()
                .copied()
                .zip(list)
                .collect::<Arc<[(u64, f64)]>>(),
            end: end_of_steps,
        });
        Ok(signals.collect())
    }

    /// What steps do at their end; `round_ns` is when the last one ends.
    fn after(&self, end: TraceEnd, round_ns: Option<u64>) -> Result<End, Fault> {
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

    /// Refuses what says that the last values do not stay.
    pub fn holds(&self, text: &str) -> Result<(), Fault> {
        const ONLY: &str = "the last values of this file stay; leave this line out";
        let metadata = self.metadata(text, Format::Mbit)?;
        match (metadata.end, metadata.period) {
            (Some((line, end)), _) if end != TraceEnd::Hold => {
                Err(self.field_fault(line, "end", end.name(), ONLY))
            }
            (_, Some((line, _))) => Err(self.fault(line, format!("period_s: {ONLY}"))),
            _ => Ok(()),
        }
    }

    fn metadata(&self, text: &str, format: Format) -> Result<Metadata, Fault> {
        let mut metadata = Metadata::default();
        for (i, line) in text.lines().enumerate() {
            let Some((key, value)) = line
                .trim()
                .strip_prefix('#')
                .and_then(|l| l.split_once('='))
            else {
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            let is_word = |w: &str| !w.is_empty() && !w.contains(char::is_whitespace);
            if !is_word(key) || !is_word(value) {
                continue; // prose
            }
            match key {
                "end" => {
                    let found = TraceEnd::NAMES.iter().position(|n| *n == value);
                    let end = match found {
                        Some(0) => TraceEnd::Loop,
                        Some(1) => TraceEnd::Hold,
                        Some(2) => TraceEnd::Stop,
                        _ => {
                            return Err(self.field_fault(
                                i + 1,
                                "end",
                                value,
                                "must be one of loop, hold, stop",
                            ))
                        }
                    };
                    metadata.end = Some((i + 1, end));
                }
                "period_s" => metadata.period = Some((i + 1, self.time(i + 1, "period_s", value)?)),
                _ if format == Format::Linkweir => {
                    let cure = match nearest(key, &["end", "period_s"]) {
                        Some(near) => format!("did you mean {near}?"),
                        None => "known are end and period_s".to_string(),
                    };
                    return Err(self.field_fault(
                        i + 1,
                        &shorten(key),
                        value,
                        format!("unknown key; {cure}"),
                    ));
                }
                _ => {}
            }
        }
        Ok(metadata)
    }

    fn columns(
        &self,
        line: usize,
        names: &[&str],
        format: Format,
        hints: &Hints,
    ) -> Result<Columns, Fault> {
        let find = |wanted: &[&str]| names.iter().position(|name| wanted.contains(name));
        if let Some(named) = &hints.columns {
            self.once(line, names)?;
            let find = |name: &str| {
                let missing = || {
                    let message = format!(
                        "has no column {}; it has {}",
                        shorten(name),
                        shorten(&names.join(", "))
                    );
                    self.fault(line, message)
                };
                names.iter().position(|n| *n == name).ok_or_else(missing)
            };
            return Ok(Columns {
                time: find(&named.time.name)?,
                unit: named.time.unit.clone(),
                values: vec![ColumnUse {
                    index: find(&named.capacity.name)?,
                    role: Role::Capacity,
                    unit: named.capacity.unit.clone(),
                }],
                repeat: false,
            });
        }
        if format == Format::Mbit {
            self.once(line, names)?;
            let time = find(&["t_s", "time_s", "t", "time"])
                .ok_or_else(|| self.fault(line, "needs a column t_s: time in seconds"))?;
            let index = match &hints.column {
                Some(wanted) => find(&[wanted]).ok_or_else(|| {
                    self.fault(
                        line,
                        format!(
                            "has no column {}; it has {}",
                            shorten(wanted),
                            shorten(&names.join(", "))
                        ),
                    )
                })?,
                None => names
                    .iter()
                    .position(|name| is_mbit(name))
                    .ok_or_else(|| self.fault(line, "has no column with mbit in its name"))?,
            };
            if index == time {
                return Err(self.fault(line, "the column of times cannot be the capacity"));
            }
            return Ok(Columns {
                time,
                unit: "s".to_string(),
                values: vec![ColumnUse {
                    index,
                    role: Role::Capacity,
                    unit: "Mbit".to_string(),
                }],
                repeat: false,
            });
        }
        const KNOWN: [&str; 4] = ["t_s", "capacity_bps", "delay_s", "loss"];
        self.known(line, names, &KNOWN, HEADER)?;
        let time = self.index(line, names, "t_s", HEADER)?;
        let capacity = self.index(line, names, "capacity_bps", HEADER)?;
        let mut values = vec![ColumnUse {
            index: capacity,
            role: Role::Capacity,
            unit: "bit".to_string(),
        }];
        for (name, role, unit) in [("delay_s", Role::Delay, "s"), ("loss", Role::Loss, "")] {
            if let Some(index) = find(&[name]) {
                let unit = unit.to_string();
                values.push(ColumnUse { index, role, unit });
            }
        }
        Ok(Columns {
            time,
            unit: "s".to_string(),
            values,
            repeat: false,
        })
    }

    /// Refuses a column that is there twice.
    fn once(&self, line: usize, names: &[&str]) -> Result<(), Fault> {
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(self.fault(line, format!("column {} is there twice", shorten(name))));
            }
        }
        Ok(())
    }

    /// Refuses a header with other columns than these.
    fn known(
        &self,
        line: usize,
        names: &[&str],
        known: &[&str],
        header: &str,
    ) -> Result<(), Fault> {
        self.once(line, names)?;
        let Some(unknown) = names.iter().find(|name| !known.contains(name)) else {
            return Ok(());
        };
        let cure = match nearest(unknown, known) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("expected {header}"),
        };
        let message = format!("unknown column \"{}\"; {cure}", shorten(unknown));
        Err(self.fault(line, message))
    }

    /// Where a column stands that must be there.
    fn index(&self, line: usize, names: &[&str], name: &str, header: &str) -> Result<usize, Fault> {
        let missing = || self.fault(line, format!("has no column {name}; expected {header}"));
        names.iter().position(|n| *n == name).ok_or_else(missing)
    }

    /// A time as a clock or a stopwatch shows it, in ns since 1970 or since it was started.
    fn stamp(
        &self,
        line: usize,
        name: &str,
        field: &str,
        unit: &str,
        format: Format,
    ) -> Result<u64, Fault> {
        let fault = |message: String| self.field_fault(line, name, field, message);
        if let Ok(number) = Decimal::parse(field) {
            let ns = in_unit(field, unit, Kind::Time)
                .ok()
                .and_then(Decimal::whole);
            return ns.map(|(ns, _)| ns).ok_or_else(|| {
                let mut message =
                    format!("must be a time in {unit} that is not negative and before the year 2500");
                // Only these may have another unit, and too large a number may be in a smaller one.
                if matches!(format, Format::Mbit | Format::Csv) && !number.is_negative() {
                    message.push_str(&format!(
                        "; is it in another unit? Say so: columns = {{ t = {{ column = {}, unit = \"ms\" }}, capacity = ... }}",
                        quote(name)
                    ));
                }
                fault(message)
            });
        }
        let zoned = field.parse::<jiff::Timestamp>();
        let utc = || {
            let civil = field
                .parse::<jiff::civil::DateTime>()
                .ok()
                .filter(|_| !field.contains('['))?;
            civil
                .to_zoned(jiff::tz::TimeZone::UTC)
                .ok()
                .map(|zoned| zoned.timestamp())
        };
        let stamp = zoned.ok().or_else(utc).ok_or_else(|| {
            fault("is not a number; must be seconds or ISO 8601 like 2026-01-31T12:00:00Z (UTC without a zone)".to_string())
        })?;
        u64::try_from(stamp.as_nanosecond()).map_err(|_| fault("must be after 1970".to_string()))
    }

    /// A time in s, as ns.
    pub fn time(&self, line: usize, name: &str, field: &str) -> Result<u64, Fault> {
        let range = format!(
            "must be seconds, 0 .. {}",
            limits::DURATION_NS / 1_000_000_000
        );
        Decimal::parse(field)
            .map_err(|what| self.field_fault(line, name, field, format!("{what}; {range}")))?
            .shifted(9)
            .whole()
            .map(|(ns, _)| ns)
            .filter(|ns| *ns <= limits::DURATION_NS)
            .ok_or_else(|| self.field_fault(line, name, field, range))
    }

    fn value(
        &self,
        line: usize,
        name: &str,
        field: &str,
        column: &ColumnUse,
    ) -> Result<f64, Fault> {
        let unit = &column.unit;
        let (kind, max, range) = match column.role {
            Role::Capacity if unit.ends_with('B') => (
                Kind::Size,
                limits::RATE_BPS as f64 / 8.0,
                format!("must be {unit}/s, up to 400 Gbit/s"),
            ),
            Role::Capacity if unit == "Mbit" => (
                Kind::Rate,
                limits::RATE_BPS as f64,
                "must be Mbit/s, 0 .. 400000".to_string(),
            ),
            Role::Capacity if unit == "bit" => (
                Kind::Rate,
                limits::RATE_BPS as f64,
                "must be bit/s, 0 .. 400e9".to_string(),
            ),
            Role::Capacity => (
                Kind::Rate,
                limits::RATE_BPS as f64,
                format!("must be {unit}/s, up to 400 Gbit/s"),
            ),
            Role::Delay => (
                Kind::Seconds,
                limits::DELAY_S,
                "must be seconds, 0 .. 3600".to_string(),
            ),
            Role::Loss => (
                Kind::Fraction,
                1.0,
                "must be a probability, 0 .. 1".to_string(),
            ),
        };
        let number = in_unit(field, unit, kind)
            .map_err(|what| self.field_fault(line, name, field, format!("{what}; {range}")))?
            .real();
        if !(0.0..=max).contains(&number) {
            return Err(self.field_fault(line, name, field, range));
        }
        let value = if kind == Kind::Size {
            8.0 * number
        } else {
            number
        };
        let stalled = column.role == Role::Capacity && value > 0.0 && value < 1.0;
        if stalled {
            let message = format!("is below 1 bit/s: write 0 for an outage; a capacity {range}");
            return Err(self.field_fault(line, name, field, message));
        }
        Ok(value)
    }
}

/// The fields of a line of CSV, without blanks or double quotes around them.
fn fields(line: &str) -> Vec<&str> {
    line.split(',').map(|field| bare(field.trim())).collect()
}

fn bare(field: &str) -> &str {
    let quoted = field
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    quoted.unwrap_or(field)
}

/// A number of such a unit in base units.
fn in_unit(field: &str, unit: &str, kind: Kind) -> Result<Decimal, String> {
    Decimal::parse(field)?;
    units::parse(&format!("{field}{unit}"), kind)
}

fn is_mbit(name: &str) -> bool {
    name.to_ascii_lowercase().contains("mbit")
}

#[derive(Default)]
struct Metadata {
    /// What follows the last line, and the line that says so.
    end: Option<(usize, TraceEnd)>,
    /// Length of a round, ns, and the line that says so.
    period: Option<(usize, u64)>,
}

impl Metadata {
    fn end(&self) -> Option<TraceEnd> {
        self.end.map(|(_, end)| end)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Capacity,
    Delay,
    Loss,
}

struct ColumnUse {
    index: usize,
    role: Role,
    /// Of its numbers.
    unit: String,
}

struct Columns {
    time: usize,
    /// Of the times.
    unit: String,
    values: Vec<ColumnUse>,
    /// Whether lines may follow one another at the same time; the last of them counts.
    repeat: bool,
}

impl Columns {
    fn has(&self, role: Role) -> bool {
        self.values.iter().any(|c| c.role == role)
    }
}
