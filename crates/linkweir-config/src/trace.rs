// SPDX-License-Identifier: BSD-3-Clause
//! Capacity traces from files: our own CSV, mahimahi's delivery opportunities, and CSV of seconds and Mbit/s.
//!
//! Ours: a header `t_s,capacity_bps[,delay_s][,loss]`, one line per change, and lines starting with `#`. Of those,
//! `# end=loop|hold|stop` says what follows the last line and `# period_s=600` how long one round is; without it the last
//! value lasts as long as the one before it.
//!
//! Delays through a constellation are the same with the header `t_s,to_satellite_s,to_ground_s`, and do not stop. Of lines
//! of one time the last counts: recorders write what changes at once one after another.
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
use crate::reader::{nearest, Entry};
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
}

impl Format {
    /// Names in scenarios, in the order of the variants.
    pub const NAMES: [&'static str; 3] = ["linkweir", "mahimahi", "mbit"];

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

/// What the reader of a trace may say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Notation; found out from the content when not given.
    pub format: Option<Format>,
    /// Column of an `mbit` file; the first that has `mbit` in its name when not given.
    pub column: Option<String>,
    /// What follows the last line; the file's own word when not given.
    pub end: Option<TraceEnd>,
}

impl Hints {
    /// Reads what a table says of its trace in `trace_format`, `trace_column` and `end`.
    ///
    /// # Errors
    /// A word that is none of those allowed.
    pub fn read(
        format: Option<Entry<'_, '_>>,
        column: Option<Entry<'_, '_>>,
        end: Option<Entry<'_, '_>>,
    ) -> Result<Hints, Fault> {
        let [linkweir, mahimahi, mbit] = Format::NAMES;
        let format = match format {
            Some(entry) => match entry.choice(&["auto", linkweir, mahimahi, mbit])? {
                0 => None,
                1 => Some(Format::Linkweir),
                2 => Some(Format::Mahimahi),
                _ => Some(Format::Mbit),
            },
            None => None,
        };
        let column = column
            .map(|entry| entry.text().map(str::to_string))
            .transpose()?;
        let end = match end {
            Some(entry) => Some(match entry.choice(&TraceEnd::NAMES)? {
                0 => TraceEnd::Loop,
                1 => TraceEnd::Hold,
                _ => TraceEnd::Stop,
            }),
            None => None,
        };
        Ok(Hints {
            format,
            column,
            end,
        })
    }
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
    /// Column used of an `mbit` file.
    pub column: Option<String>,
    /// What follows the last line.
    pub end: TraceEnd,
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
        Format::Linkweir | Format::Mbit => reader.csv(text, format, hints),
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
const FORMATS: &str = "a header t_s,capacity_bps (Linkweir), a header t_s,..._mbit (mbit) or one whole number of ms per line (mahimahi)";

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
        let columns: Vec<&str> = first.split(',').map(str::trim).collect();
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
            end: TraceEnd::Loop,
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
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
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
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        self.known(line, &names, &DELAY_COLUMNS, DELAYS_HEADER)?;
        let [time, to_satellite, to_ground] = DELAY_COLUMNS;
        let index = |name| self.index(line, &names, name, DELAYS_HEADER);
        let delay = |index| ColumnUse {
            index,
            role: Role::Delay,
            shift: 0,
        };
        let columns = Columns {
            time: index(time)?,
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
        for (line, text) in lines {
            let fields: Vec<&str> = text.split(',').map(str::trim).collect();
            if fields.len() != names.len() {
                let message = format!(
                    "has {} fields where the header has {}",
                    fields.len(),
                    names.len()
                );
                return Err(self.fault(line, message));
            }
            let t = self.time(line, names[columns.time], fields[columns.time])?;
            match times.last() {
                None if format == Format::Mbit => origin = t, // recorded clocks start anywhere
                None if t != 0 => {
                    return Err(self.field_fault(
                        line,
                        "t_s",
                        fields[columns.time],
                        "the first time must be 0",
                    ));
                }
                Some(before) if columns.repeat && t == *before + origin => {
                    times.pop();
                    for list in &mut values {
                        list.pop();
                    }
                }
                Some(before) if t <= *before + origin => {
                    let before = units::show_whole(*before + origin, Kind::Time);
                    let message = format!("must be later than the line before, {before}");
                    return Err(self.field_fault(
                        line,
                        names[columns.time],
                        fields[columns.time],
                        message,
                    ));
                }
                _ => {}
            }
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
                return Err(self.fault(line, "period_s must be larger than the last t_s"))
            }
            None if line_count > 1 => Some(last + (last - times[line_count - 2])),
            None => None,
        };
        let end_of_steps = match (end, round_ns) {
            (TraceEnd::Hold, _) => End::Hold,
            (TraceEnd::Loop, Some(period_ns)) => End::Loop { period_ns },
            (TraceEnd::Stop, Some(at_ns)) => End::Stop { at_ns },
            (_, None) => {
                let message = format!(
                    "has one line only, so end={} needs a line # period_s=...",
                    end.name()
                );
                return Err(self.whole_fault(message));
            }
        };
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
                values: vec![ColumnUse {
                    index,
                    role: Role::Capacity,
                    shift: 6,
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
            shift: 0,
        }];
        for (name, role) in [("delay_s", Role::Delay), ("loss", Role::Loss)] {
            if let Some(index) = find(&[name]) {
                values.push(ColumnUse {
                    index,
                    role,
                    shift: 0,
                });
            }
        }
        Ok(Columns {
            time,
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
        let (max, range) = match column.role {
            Role::Capacity if column.shift == 6 => {
                (limits::RATE_BPS as f64, "must be Mbit/s, 0 .. 400000")
            }
            Role::Capacity => (limits::RATE_BPS as f64, "must be bit/s, 0 .. 400e9"),
            Role::Delay => (limits::DELAY_S, "must be seconds, 0 .. 3600"),
            Role::Loss => (1.0, "must be a probability, 0 .. 1"),
        };
        let value = Decimal::parse(field)
            .map_err(|what| self.field_fault(line, name, field, format!("{what}; {range}")))?
            .shifted(column.shift)
            .real();
        let stalled = column.role == Role::Capacity && value > 0.0 && value < 1.0;
        if stalled {
            let message = format!("is below 1 bit/s: write 0 for an outage; a capacity {range}");
            return Err(self.field_fault(line, name, field, message));
        }
        if !(0.0..=max).contains(&value) {
            return Err(self.field_fault(line, name, field, range));
        }
        Ok(value)
    }
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
    /// Power of ten from the file's unit to the base unit.
    shift: i32,
}

struct Columns {
    time: usize,
    values: Vec<ColumnUse>,
    /// Whether lines may follow one another at the same time; the last of them counts.
    repeat: bool,
}

impl Columns {
    fn has(&self, role: Role) -> bool {
        self.values.iter().any(|c| c.role == role)
    }
}
