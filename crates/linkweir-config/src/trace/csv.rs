// SPDX-License-Identifier: BSD-3-Clause
//! Tables: our own notation, columns in Mbit/s, columns that a scenario or a header names, lists of rates, and delays through
//! a constellation.

use crate::fault::{shorten, Fault};
use crate::reader::nearest;
use crate::signal::{Capacity, Signal};
use crate::table::{data_lines, Dialect};
use crate::units::{self, Kind};

use super::columns::{ColumnUse, Columns, Role, TimeUse, HEADER};
use super::described::Hints;
use super::file::Reader;
use super::format::{Format, TraceEnd, FORMATS};
use super::found::Trace;
use super::rows::{is_milliseconds, join, Table};
use super::understood::{mean_of, Series, Understood};

const DELAY_COLUMNS: [&str; 3] = ["t_s", "to_satellite_s", "to_ground_s"];
const DELAYS_HEADER: &str = "a header t_s,to_satellite_s,to_ground_s";

impl Reader {
    pub(super) fn csv(&self, text: &str, format: Format, hints: &Hints) -> Result<Trace, Fault> {
        let metadata = self.metadata(text, format)?;
        let dialect = self.dialect(text, hints.decimal)?;
        let mut lines = data_lines(text).peekable();
        let Some(&(first_line, first)) = lines.peek() else {
            return Err(self.whole_fault(format!("is empty; it must hold {FORMATS}")));
        };
        let first_text = first;
        let mut first = dialect.fields(first);
        if let Some(at) = milliseconds(text, &dialect) {
            join(first_text, &mut first, at, at + 1);
        }
        let columns = self.columns(first_line, &first, &dialect, format, hints)?;
        if columns.has_header {
            lines.next();
        }
        let roles: Vec<Role> = columns.values.iter().map(|column| column.role).collect();
        let used = roles.iter().position(|role| *role == Role::Capacity);
        let used = used.map_or(0, |at| columns.values[at].index);
        let end = hints.end.or(metadata.end()).unwrap_or(TraceEnd::Hold);
        let table = Table {
            columns,
            dialect,
            format,
            hints,
            end,
            period: metadata.period,
            repeats: false,
        };
        let (signals, understood) = self.signals(lines, &table)?;
        let of = |wanted: Role| {
            let at = roles.iter().position(|role| *role == wanted)?;
            signals.get(at).cloned()
        };
        let capacity = of(Role::Capacity)
            .ok_or_else(|| self.fault(first_line, format!("must be {HEADER}")))?;
        let (delay_s, loss) = (of(Role::Delay), of(Role::Loss));
        let capacity = Capacity::Rate(capacity);
        let facts = Understood::of(&capacity);
        Ok(Trace {
            understood: Understood {
                length_ns: facts.length_ns,
                mean_bps: facts.mean_bps,
                ..understood
            },
            capacity,
            delay_s,
            loss,
            format,
            column: (format == Format::Mbit).then(|| table.columns.names[used].clone()),
            columns: hints.columns.clone(),
            end,
            hints: hints.clone(),
            notes: Vec::new(),
        })
    }

    /// Delays to the last satellite and from there to the ground.
    pub(super) fn delays(
        &self,
        text: &str,
        decimal: Option<char>,
    ) -> Result<([Signal; 2], Series), Fault> {
        let metadata = self.metadata(text, Format::Linkweir)?;
        if metadata.end() == Some(TraceEnd::Stop) {
            return Err(
                self.whole_fault("has end=stop, but delays cannot stop: write loop or hold")
            );
        }
        let dialect = self.dialect(text, decimal)?;
        let mut lines = data_lines(text);
        let Some((line, header)) = lines.next() else {
            return Err(self.whole_fault(format!("is empty; it must hold {DELAYS_HEADER}")));
        };
        let names = dialect.fields(header);
        self.known(line, &names, &DELAY_COLUMNS, DELAYS_HEADER)?;
        let [time, to_satellite, to_ground] = DELAY_COLUMNS;
        let index = |name| self.index(line, &names, name, DELAYS_HEADER);
        let delay = |index| ColumnUse {
            index,
            role: Role::Delay,
            unit: "s".to_string(),
        };
        let columns = Columns {
            time: Some(TimeUse {
                index: index(time)?,
                time_of_day: None,
                unit: "s".to_string(),
                stated: true,
            }),
            values: vec![delay(index(to_satellite)?), delay(index(to_ground)?)],
            names: names.iter().map(|name| (*name).to_string()).collect(),
            has_header: true,
        };
        let table = Table {
            columns,
            dialect,
            format: Format::Linkweir,
            hints: &Hints::default(),
            end: metadata.end().unwrap_or(TraceEnd::Hold),
            period: metadata.period,
            repeats: true,
        };
        let (signals, understood) = self.signals(lines, &table)?;
        let signals = <[Signal; 2]>::try_from(signals)
            .map_err(|_| self.fault(line, format!("must be {DELAYS_HEADER}")))?;
        let series = delays_series(&signals, understood, table.end, table.period);
        Ok((signals, series))
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
                "period_s" => {
                    let plain = Dialect::default();
                    metadata.period = Some((i + 1, self.time(i + 1, "period_s", value, &plain)?));
                }
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
}

/// What delays were taken for.
fn delays_series(
    signals: &[Signal; 2],
    understood: Understood,
    end: TraceEnd,
    period: Option<(usize, u64)>,
) -> Series {
    let points = |signal: &Signal| match signal {
        Signal::Steps { points, .. } => points.to_vec(),
        _ => Vec::new(),
    };
    let times_ns: Vec<u64> = points(&signals[0]).iter().map(|point| point.0).collect();
    let series = Series::at(&times_ns);
    let length_ns = period.map(|(_, ns)| ns).or(series.length_ns);
    let [to_satellite, to_ground] = signals.each_ref().map(|signal| {
        let mean_us = (mean_of(&points(signal), length_ns) * 1e6).round();
        units::show_real(mean_us / 1e6, Kind::Seconds)
    });
    Series {
        notation: "delays".to_string(),
        columns: understood.columns,
        start: understood.start,
        length_ns,
        end: end.name().to_string(),
        mean: format!("{to_satellite} to the satellite, {to_ground} to the ground"),
        ..series
    }
}

/// The column of times of a table without header whose milliseconds are behind a comma, as in `12:11:21,050`: in every line
/// three digits follow the time, and not all of them can be another column's number.
fn milliseconds(text: &str, dialect: &Dialect) -> Option<usize> {
    const LOOKED_AT: usize = 1000;
    let mut found = None;
    let mut has_zeros = false;
    let mut fields = Vec::new();
    for (_, line) in data_lines(text).take(LOOKED_AT) {
        dialect.split(line, &mut fields);
        let at = found.or(fields
            .windows(2)
            .position(|pair| is_milliseconds(pair[0], pair[1])))?;
        if !is_milliseconds(fields.get(at)?, fields.get(at + 1)?) {
            return None;
        }
        has_zeros |= fields[at + 1].starts_with('0');
        found = Some(at);
    }
    found.filter(|_| has_zeros && dialect.separator() == ",")
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
