// SPDX-License-Identifier: BSD-3-Clause
//! CSV: our own notation, columns in Mbit/s, columns that a scenario names, and delays through a constellation.

use std::sync::Arc;

use crate::fault::{shorten, Fault};
use crate::limits;
use crate::reader::{nearest, quote};
use crate::signal::{Capacity, Signal};
use crate::units::{self, Decimal, Kind};

use super::described::Hints;
use super::file::{data_lines, Reader};
use super::format::{Format, TraceEnd, FORMATS};
use super::found::Trace;
use super::named::NamedColumns;

const HEADER: &str = "a header t_s,capacity_bps[,delay_s][,loss]";
const DELAY_COLUMNS: [&str; 3] = ["t_s", "to_satellite_s", "to_ground_s"];
const DELAYS_HEADER: &str = "a header t_s,to_satellite_s,to_ground_s";
impl Reader {
    pub(super) fn csv(&self, text: &str, format: Format, hints: &Hints) -> Result<Trace, Fault> {
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
    pub(super) fn delays(&self, text: &str) -> Result<[Signal; 2], Fault> {
        let metadata = self.metadata(text, Format::Linkweir)?;
        if metadata.end() == Some(TraceEnd::Stop) {
            return Err(
                self.whole_fault("has end=stop, but delays cannot stop: write loop or hold")
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
        let mut steps = Steps::new(columns.values.len());
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
            let (name, field) = (names[columns.time], fields[columns.time]);
            let stamp_ns = self.stamp(line, name, field, &columns.unit, format)?;
            steps
                .begin(stamp_ns, field, format, columns.repeat)
                .map_err(|message| self.field_fault(line, name, field, message))?;
            for (column, list) in columns.values.iter().zip(&mut steps.values) {
                list.push(self.value(line, names[column.index], fields[column.index], column)?);
            }
        }
        let Steps { times, values, .. } = steps;
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

    /// Refuses metadata by which the last values do not stay.
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
                        None => "the keys are end and period_s".to_string(),
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
        if let Some(named) = &hints.columns {
            self.named_columns(line, names, named)
        } else if format == Format::Mbit {
            self.mbit_columns(line, names, hints.column.as_deref())
        } else {
            self.own_columns(line, names)
        }
    }

    /// The columns that a scenario names.
    fn named_columns(
        &self,
        line: usize,
        names: &[&str],
        named: &NamedColumns,
    ) -> Result<Columns, Fault> {
        self.once(line, names)?;
        Ok(Columns {
            time: self.wanted(line, names, &named.time.name)?,
            unit: named.time.unit.clone(),
            values: vec![ColumnUse {
                index: self.wanted(line, names, &named.capacity.name)?,
                role: Role::Capacity,
                unit: named.capacity.unit.clone(),
            }],
            repeat: false,
        })
    }

    /// A column of times, and the first one in Mbit/s or the one wanted.
    fn mbit_columns(
        &self,
        line: usize,
        names: &[&str],
        wanted: Option<&str>,
    ) -> Result<Columns, Fault> {
        self.once(line, names)?;
        let is_time = |name: &&str| ["t_s", "time_s", "t", "time"].contains(name);
        let time = names
            .iter()
            .position(is_time)
            .ok_or_else(|| self.fault(line, "needs a column t_s: time in seconds"))?;
        let index = match wanted {
            Some(wanted) => self.wanted(line, names, wanted)?,
            None => names
                .iter()
                .position(|name| is_mbit(name))
                .ok_or_else(|| self.fault(line, "has no column with mbit in its name"))?,
        };
        if index == time {
            return Err(self.fault(line, "the column of times cannot be the capacity"));
        }
        Ok(Columns {
            time,
            unit: "s".to_string(),
            values: vec![ColumnUse {
                index,
                role: Role::Capacity,
                unit: "Mbit".to_string(),
            }],
            repeat: false,
        })
    }

    /// The columns of our own notation.
    fn own_columns(&self, line: usize, names: &[&str]) -> Result<Columns, Fault> {
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
            if let Some(index) = names.iter().position(|n| *n == name) {
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

    /// Where the column is that the user wants.
    fn wanted(&self, line: usize, names: &[&str], name: &str) -> Result<usize, Fault> {
        let missing = || {
            let message = format!(
                "has no column {}; it has {}",
                shorten(name),
                shorten(&names.join(", "))
            );
            self.fault(line, message)
        };
        names.iter().position(|n| *n == name).ok_or_else(missing)
    }

    /// Refuses a column that is there twice.
    fn once(&self, line: usize, names: &[&str]) -> Result<(), Fault> {
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(self.fault(line, format!("column {} appears twice", shorten(name))));
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

    /// Index of a column that must be there.
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
        if has_leap_second(field) {
            let message = "is a leap second, which the clocks of other stamps leave out; write second 59, or 00 of the next minute";
            return Err(fault(message.to_string()));
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
        // After the range, which includes 0: a positive capacity below 1 bit/s would keep one packet on the link for hours.
        let stalled = column.role == Role::Capacity && value > 0.0 && value < 1.0;
        if stalled {
            let message = format!("is below 1 bit/s: write 0 for an outage; a capacity {range}");
            return Err(self.field_fault(line, name, field, message));
        }
        Ok(value)
    }
}

/// The fields of a line of CSV, without blanks or double quotes around them.
pub(super) fn fields(line: &str) -> Vec<&str> {
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

pub(super) fn is_mbit(name: &str) -> bool {
    name.to_ascii_lowercase().contains("mbit")
}

/// Lines as steps: the time at which each begins, and its value in each column.
struct Steps<'t> {
    /// From the first line on, ns.
    times: Vec<u64>,
    values: Vec<Vec<f64>>,
    /// Time stamp of the first line, ns.
    origin: u64,
    /// Time of the line before, as it is written.
    before: &'t str,
}

impl<'t> Steps<'t> {
    fn new(columns: usize) -> Steps<'t> {
        Steps {
            times: Vec::new(),
            values: vec![Vec::new(); columns],
            origin: 0,
            before: "",
        }
    }

    /// Begins a step at a time stamp, which is written as `field`. With `repeat` it takes the place of a step of the same
    /// time.
    fn begin(
        &mut self,
        stamp_ns: u64,
        field: &'t str,
        format: Format,
        repeat: bool,
    ) -> Result<(), String> {
        if self.times.is_empty() {
            if format == Format::Linkweir && stamp_ns != 0 && stamp_ns <= limits::DURATION_NS {
                return Err(
                    "the first time must be 0, or a UNIX or ISO 8601 time stamp".to_string()
                );
            }
            self.origin = stamp_ns;
        }
        if stamp_ns.saturating_sub(self.origin) > limits::DURATION_NS {
            return Err(format!(
                "must be at most {} seconds after the first",
                limits::DURATION_NS / 1_000_000_000
            ));
        }
        match self.times.last() {
            Some(last) if repeat && stamp_ns == *last + self.origin => {
                self.times.pop();
                for list in &mut self.values {
                    list.pop();
                }
            }
            Some(last) if stamp_ns <= *last + self.origin => {
                let before = shorten(self.before);
                return Err(format!("must be later than the line before, {before}"));
            }
            _ => {}
        }
        self.before = field;
        self.times.push(stamp_ns - self.origin);
        Ok(())
    }
}

#[derive(Default)]
struct Metadata {
    /// What follows the last line, and the line with that key.
    end: Option<(usize, TraceEnd)>,
    /// Length of a round, ns, and the line with that key.
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
/// Whether an ISO 8601 time has the second 60, which the parser would read as 59.
fn has_leap_second(field: &str) -> bool {
    let Some((_, time)) = field.trim().split_once(['T', 't', ' ']) else {
        return false;
    };
    let digits: String = time
        .chars()
        .take_while(|letter| letter.is_ascii_digit() || *letter == ':')
        .filter(|letter| *letter != ':')
        .collect();
    digits.get(4..6) == Some("60")
}
