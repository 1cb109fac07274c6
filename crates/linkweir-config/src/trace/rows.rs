// SPDX-License-Identifier: BSD-3-Clause
//! The lines of a table as steps of values over time, by the rules that the user chooses for equal and earlier times, for
//! gaps, and for the interval to which a line belongs.

use std::sync::Arc;

use crate::fault::{shorten, Fault};
use crate::limits;
use crate::reader::quote;
use crate::signal::Signal;
use crate::table::{Clock, Dialect};
use crate::units::{self, Decimal, Kind};

use super::choices::{Covers, EarlierTimes, EqualTimes, Gap};
use super::columns::{ColumnUse, Columns, Role, TimeUse};
use super::described::Hints;
use super::file::Reader;
use super::format::{Format, TraceEnd};
use super::spans::{Spans, GAP, LEAST};
use super::understood::Understood;

/// Times without a unit may be ms if lines are so far apart.
const FAR_NS: u64 = 30_000_000_000;
/// Later times are those of clocks, ns.
const CLOCK_NS: u64 = 1_000_000_000_000_000_000;

/// How a table is read.
pub(super) struct Table<'h> {
    pub(super) columns: Columns,
    pub(super) dialect: Dialect,
    pub(super) format: Format,
    pub(super) hints: &'h Hints,
    pub(super) end: TraceEnd,
    /// Length of a round that the file states, ns, and its line.
    pub(super) period: Option<(usize, u64)>,
    /// Of lines at the same time the last counts, and the file's user has no keys.
    pub(super) repeats: bool,
}

/// What the lines hold.
struct Rows {
    /// Times, ns, from any origin.
    times_ns: Vec<u64>,
    /// Line of each.
    lines: Vec<usize>,
    /// Values by column.
    values: Vec<Vec<f64>>,
    /// First time, as it is written.
    start: String,
    /// What the first line covers if lines cover the time before them, ns: as much as the second.
    lead_ns: u64,
    /// Whether times are those of clocks that do not name their zone.
    is_local: bool,
    /// Whether times are numbers.
    is_number: bool,
    changed: Vec<String>,
}

impl Rows {
    /// Makes times relative to the first, which is the earliest.
    fn begin_at_zero(&mut self) {
        let origin_ns = self.times_ns[0];
        for time_ns in &mut self.times_ns {
            *time_ns -= origin_ns;
        }
    }
}

impl Reader {
    /// One signal per column of values, and what they were taken for.
    pub(super) fn signals<'t>(
        &self,
        lines: impl Iterator<Item = (usize, &'t str)>,
        table: &Table<'_>,
    ) -> Result<(Vec<Signal>, Understood), Fault> {
        let mut rows = self.rows(lines, table)?;
        let Some(first_ns) = rows.times_ns.first().copied() else {
            return Err(self.whole_fault("has a header but no values"));
        };
        if table.hints.earlier_times == EarlierTimes::Sort {
            self.sort(&mut rows, table)?;
        }
        rows.begin_at_zero();
        merge(&mut rows, table);
        rows.begin_at_zero();
        self.steps(rows, table, first_ns)
    }

    fn rows<'t>(
        &self,
        lines: impl Iterator<Item = (usize, &'t str)>,
        table: &Table<'_>,
    ) -> Result<Rows, Fault> {
        let Table { columns, hints, .. } = table;
        let mut clock = Clock::new(hints.zone.as_deref(), hints.dates)
            .map_err(|what| self.whole_fault(format!("zone: {what}")))?;
        let mut rows = Rows {
            times_ns: Vec::new(),
            lines: Vec::new(),
            values: vec![Vec::new(); columns.values.len()],
            start: String::new(),
            lead_ns: 0,
            is_local: false,
            is_number: true,
            changed: Vec::new(),
        };
        let mut order = Order::new(table);
        let mut earliest_ns = None;
        let mut fields: Vec<&str> = Vec::new();
        let mut both;
        for (line, text) in lines {
            table.dialect.split(text, &mut fields);
            if let (true, Some(time)) = (fields.len() > columns.names.len(), &columns.time) {
                join_time(text, &mut fields, columns.names.len(), time, &table.dialect);
            }
            if fields.len() != columns.names.len() {
                let message = format!(
                    "has {} fields where the {} has {}",
                    fields.len(),
                    if columns.has_header {
                        "header"
                    } else {
                        "first line"
                    },
                    columns.names.len()
                );
                return Err(self.fault(line, message));
            }
            let time_ns = match &columns.time {
                None => {
                    let interval_ns = hints.interval_ns.unwrap_or(1);
                    Some(interval_ns.saturating_mul(rows.lines.len() as u64))
                        .filter(|ns| *ns <= limits::DURATION_NS)
                        .ok_or_else(|| self.fault(line, "lies after ten years"))?
                }
                Some(time) => {
                    let name = &columns.names[time.index];
                    let field = match time.time_of_day {
                        None => fields[time.index],
                        Some(index) => {
                            both = format!("{} {}", fields[time.index], fields[index]);
                            &both
                        }
                    };
                    let (stamp_ns, is_number) =
                        self.stamp(line, name, field, time, table, &mut clock)?;
                    rows.is_number &= is_number;
                    let placed = order
                        .place(stamp_ns, field, rows.times_ns.last().copied())
                        .map_err(|message| self.field_fault(line, name, field, message))?;
                    let is_sorted = hints.earlier_times == EarlierTimes::Sort;
                    if earliest_ns.is_none_or(|earliest| is_sorted && stamp_ns < earliest) {
                        earliest_ns = Some(stamp_ns);
                        rows.start = shorten(field);
                        rows.is_local = !is_number && !names_zone(field) && hints.zone.is_none();
                    }
                    match placed {
                        Placed::Drop => continue,
                        Placed::Instead(ns) => {
                            rows.times_ns.pop();
                            rows.lines.pop();
                            for list in &mut rows.values {
                                list.pop();
                            }
                            ns
                        }
                        Placed::Next(ns) => ns,
                    }
                }
            };
            for (column, list) in columns.values.iter().zip(&mut rows.values) {
                let (name, field) = (&columns.names[column.index], fields[column.index]);
                list.push(self.value(line, name, field, column, &table.dialect)?);
            }
            rows.times_ns.push(time_ns);
            rows.lines.push(line);
        }
        rows.changed = order.changed();
        Ok(rows)
    }

    /// Sorts lines by time, those of the same time as they are in the file.
    fn sort(&self, rows: &mut Rows, table: &Table<'_>) -> Result<(), Fault> {
        let mut order: Vec<usize> = (0..rows.times_ns.len()).collect();
        order.sort_by_key(|at| rows.times_ns[*at]);
        let moved = order.windows(2).filter(|pair| pair[1] < pair[0]).count();
        if moved > 0 {
            rows.changed.push("lines sorted by time".to_string());
        }
        rows.times_ns = order.iter().map(|at| rows.times_ns[*at]).collect();
        rows.lines = order.iter().map(|at| rows.lines[*at]).collect();
        for list in &mut rows.values {
            *list = order.iter().map(|at| list[*at]).collect();
        }
        let (first, last) = (rows.times_ns[0], rows.times_ns[rows.times_ns.len() - 1]);
        if last - first > limits::DURATION_NS {
            let line = rows.lines[rows.lines.len() - 1];
            return Err(self.fault(line, "is more than ten years after the first"));
        }
        let equal = rows.times_ns.windows(2).position(|pair| pair[0] == pair[1]);
        match (equal, table.hints.equal_times) {
            (Some(at), EqualTimes::Refuse) => Err(self.fault(
                rows.lines[at + 1],
                format!("has the time of line {}; {EQUAL}", rows.lines[at]),
            )),
            _ => Ok(()),
        }
    }

    fn steps(
        &self,
        rows: Rows,
        table: &Table<'_>,
        first_ns: u64,
    ) -> Result<(Vec<Signal>, Understood), Fault> {
        let Table {
            columns,
            hints,
            format,
            ..
        } = table;
        let times_ns = &rows.times_ns;
        let count = times_ns.len();
        let last_ns = times_ns[count - 1];
        let step_ns = (count > 1).then(|| last_ns - times_ns[count - 2]);
        let spans = Spans::of(times_ns);
        let lead_ns = match (hints.covers, columns.time.is_some()) {
            (Covers::Before, true) if count > 1 && spans.is_gap(rows.lead_ns) => spans.usual_ns,
            (Covers::Before, true) if count > 1 => rows.lead_ns,
            (Covers::Before, true) => {
                return Err(self.whole_fault(
                    "has one line only, so covers = \"before\" does not say how long it lasts",
                ))
            }
            _ => 0,
        };
        let round_ns = match (table.period, hints.interval_ns) {
            (Some((_, period)), _) if period > last_ns + lead_ns => Some(period),
            (Some((line, _)), _) => {
                return Err(self.fault(
                    line,
                    "period_s must be larger than the time from the first line to the last",
                ))
            }
            (None, Some(interval_ns)) if columns.time.is_none() => Some(last_ns + interval_ns),
            (None, _) if lead_ns > 0 => Some(last_ns + lead_ns),
            (None, _) => step_ns.map(|step| last_ns + step),
        };
        let end = self.after(table.end, round_ns)?;
        // Our own notation has a line per change, so that a long time without one is no gap unless the user says so.
        let looks_for_gaps =
            hints.gap.is_some() || (*format != Format::Linkweir && spans.is_regular);
        let gaps = if looks_for_gaps {
            spans.gaps(times_ns)
        } else {
            Vec::new()
        };
        if let (Some(Gap::Refuse), Some(at)) = (hints.gap, gaps.first()) {
            let (span, usual) = (times_ns[*at + 1] - times_ns[*at], spans.usual_ns);
            return Err(self.fault(
                rows.lines[*at + 1],
                format!(
                    "comes {} after the line before, where {} is usual; write gap = \"hold\" or gap = \"outage\"",
                    units::show_whole(span, Kind::Time),
                    units::show_whole(usual, Kind::Time)
                ),
            ));
        }
        let signals: Vec<Signal> = columns
            .values
            .iter()
            .zip(&rows.values)
            .map(|(column, list)| {
                let outage = column.role == Role::Capacity && hints.gap == Some(Gap::Outage);
                let points = points(times_ns, list, lead_ns, outage.then_some(&spans));
                Signal::Steps {
                    points: Arc::from(points),
                    end,
                }
            })
            .collect();
        let doubts = self.doubts(&rows, table, &spans, &gaps, first_ns);
        let longest = gaps.iter().map(|at| times_ns[at + 1] - times_ns[*at]).max();
        let mut shown = columns.show();
        if lead_ns > 0 {
            shown.push_str(", each for the time before its line");
        }
        for change in &rows.changed {
            shown.push_str(", ");
            shown.push_str(change);
        }
        let understood = Understood {
            columns: shown,
            start: rows.start,
            values: count,
            usual_ns: (count >= LEAST || columns.time.is_none())
                .then_some(hints.interval_ns.unwrap_or(spans.usual_ns)),
            gaps: gaps.len(),
            longest_gap_ns: longest.unwrap_or(0),
            doubts,
            ..Understood::default()
        };
        Ok((signals, understood))
    }

    fn doubts(
        &self,
        rows: &Rows,
        table: &Table<'_>,
        spans: &Spans,
        gaps: &[usize],
        first_ns: u64,
    ) -> Vec<String> {
        let Table { columns, hints, .. } = table;
        let mut doubts = Vec::new();
        let span = |at: &&usize| rows.times_ns[**at + 1] - rows.times_ns[**at];
        if let (Some(longest), None) = (gaps.iter().max_by_key(span), hints.gap) {
            let span_ns = span(&longest);
            let shown = units::show_whole(span_ns, Kind::Time);
            let usual = units::show_whole(spans.usual_ns, Kind::Time);
            let more = match gaps.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more gaps"),
            };
            let hour_ns = 3_600_000_000_000;
            let summer = if rows.is_local && span_ns.abs_diff(hour_ns) <= GAP * spans.usual_ns {
                ". If its clock changed to summer time there, name the zone: zone = \"Europe/Paris\""
            } else {
                ""
            };
            doubts.push(format!(
                "no lines for {shown} before line {}, where {usual} is usual{more}: the capacity is held. If nothing was \
                 received, write gap = \"outage\", else gap = \"hold\"{summer}",
                rows.lines[longest + 1]
            ));
        }
        if let Some(time) = columns.time.as_ref().filter(|time| !time.stated) {
            let far = rows.times_ns.len() >= LEAST && spans.usual_ns >= FAR_NS;
            if rows.is_number && far && first_ns < CLOCK_NS {
                doubts.push(format!(
                    "times without a unit are taken for seconds, so that a value lasts {}; if they are ms, write columns = {{ t \
                     = {{ column = {}, unit = \"ms\" }}, ... }}",
                    units::show_whole(spans.usual_ns, Kind::Time),
                    quote(&columns.names[time.index])
                ));
            }
        }
        for (column, list) in columns.values.iter().zip(&rows.values) {
            let name = &columns.names[column.index];
            let rises = list.windows(2).all(|pair| pair[0] < pair[1]);
            if column.role == Role::Capacity && list.len() >= 10 && rises {
                doubts.push(format!(
                    "{name} rises from line to line to the end, as a running total does and a rate does not"
                ));
            }
            let total = list.iter().filter(|value| **value >= 1.0).count();
            if column.role == Role::Loss && total > 0 {
                let (everything, cure) = match column.unit.as_str() {
                    "%" => ("100 %", String::new()),
                    _ => (
                        "1",
                        format!(
                            "; if it is in percent, write loss = {{ column = {}, unit = \"%\" }} in columns",
                            quote(name)
                        ),
                    ),
                };
                doubts.push(format!(
                    "{name} is {everything}, so that everything is lost, in {total} of {} lines{cure}",
                    list.len()
                ));
            }
        }
        doubts
    }

    /// A time in ns, since 1970 or since a stopwatch was started, and whether it is a number.
    fn stamp(
        &self,
        line: usize,
        name: &str,
        field: &str,
        time: &TimeUse,
        table: &Table<'_>,
        clock: &mut Clock,
    ) -> Result<(u64, bool), Fault> {
        let fault = |message: String| self.field_fault(line, name, field, message);
        let plain = table.dialect.plain(field);
        let unit = &time.unit;
        if let Ok(number) = Decimal::parse(&plain) {
            let ns = in_unit(&plain, unit, Kind::Time)
                .ok()
                .and_then(Decimal::whole);
            let ns = ns.map(|(ns, _)| ns).ok_or_else(|| {
                let mut message =
                    format!("must be a time in {unit} that is not negative and before the year 2500");
                // Only these may have another unit, and too large a number may be in a smaller one.
                if matches!(table.format, Format::Mbit | Format::Csv) && !number.is_negative() {
                    message.push_str(&format!(
                        "; is it in another unit? Say so: columns = {{ t = {{ column = {}, unit = \"ms\" }}, capacity = ... }}",
                        quote(name)
                    ));
                }
                fault(message)
            })?;
            return Ok((ns, true));
        }
        let ns = clock.read(field).map_err(fault)?;
        let ns = u64::try_from(ns).map_err(|_| fault("must be after 1970".to_string()))?;
        Ok((ns, false))
    }

    fn value(
        &self,
        line: usize,
        name: &str,
        field: &str,
        column: &ColumnUse,
        dialect: &Dialect,
    ) -> Result<f64, Fault> {
        let unit = &column.unit;
        let rate = limits::RATE_BPS as f64;
        let (kind, max, range) = match column.role {
            Role::Capacity if unit.ends_with('B') => (
                Kind::Size,
                rate / 8.0,
                format!("must be {unit}/s, up to 400 Gbit/s"),
            ),
            Role::Capacity if unit == "Mbit" => {
                (Kind::Rate, rate, "must be Mbit/s, 0 .. 400000".to_string())
            }
            Role::Capacity if unit == "bit" => {
                (Kind::Rate, rate, "must be bit/s, 0 .. 400e9".to_string())
            }
            Role::Capacity => (
                Kind::Rate,
                rate,
                format!("must be {unit}/s, up to 400 Gbit/s"),
            ),
            Role::Delay if unit == "s" => (
                Kind::Seconds,
                limits::DELAY_S,
                "must be seconds, 0 .. 3600".to_string(),
            ),
            Role::Delay => (
                Kind::Seconds,
                limits::DELAY_S,
                format!("must be {unit}, 0s .. 3600s"),
            ),
            Role::Loss if unit.is_empty() => (
                Kind::Fraction,
                1.0,
                "must be a probability, 0 .. 1".to_string(),
            ),
            Role::Loss => (Kind::Fraction, 1.0, "must be %, 0 .. 100".to_string()),
        };
        let number = in_unit(&dialect.plain(field), unit, kind)
            .map_err(|what| self.field_fault(line, name, field, format!("{what}; {range}")))?
            .real();
        if !(0.0..=max).contains(&number) {
            let cure = match column.role {
                Role::Loss if unit.is_empty() && number > 1.0 => {
                    "; if it is in percent, write loss = { column = ..., unit = \"%\" } in columns"
                }
                _ => "",
            };
            return Err(self.field_fault(line, name, field, format!("{range}{cure}")));
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

const EQUAL: &str =
    "write equal_times = \"last\", \"mean\", \"sum\" or \"spread\" for what lines of the same time mean";
const EARLIER: &str = "write earlier_times = \"append\" if a new recording begins here, \"sort\" if lines are out of order, or \
                       \"drop\" to leave such lines out";

/// Where a line goes.
enum Placed {
    Next(u64),
    /// In the place of the line before, which has the same time.
    Instead(u64),
    Drop,
}

/// Follows the times from line to line.
struct Order<'t> {
    table: &'t Table<'t>,
    /// First time, ns.
    origin_ns: Option<u64>,
    /// Time of the line before, ns, and as it is written.
    before_ns: u64,
    before: String,
    /// What is added to times behind the start of another recording, ns.
    shift_ns: i128,
    /// The last time from line to line, ns.
    step_ns: u64,
    dropped: usize,
    appended: usize,
    equal: usize,
}

impl<'t> Order<'t> {
    fn new(table: &'t Table<'t>) -> Order<'t> {
        Order {
            table,
            origin_ns: None,
            before_ns: 0,
            before: String::new(),
            shift_ns: 0,
            step_ns: 1_000_000_000,
            dropped: 0,
            appended: 0,
            equal: 0,
        }
    }

    /// Places a line with a time, which is written as `field`, behind that of `last_ns`.
    fn place(
        &mut self,
        stamp_ns: u64,
        field: &str,
        last_ns: Option<u64>,
    ) -> Result<Placed, String> {
        let hints = self.table.hints;
        let sorted = hints.earlier_times == EarlierTimes::Sort;
        let Some(origin_ns) = self.origin_ns else {
            if self.table.format == Format::Linkweir
                && stamp_ns != 0
                && stamp_ns <= limits::DURATION_NS
                && hints.covers == Covers::After
            {
                return Err(
                    "the first time must be 0, or a UNIX or ISO 8601 time stamp".to_string()
                );
            }
            self.origin_ns = Some(stamp_ns);
            self.keep(stamp_ns, field);
            return Ok(Placed::Next(stamp_ns));
        };
        let before = shorten(&self.before);
        if sorted {
            self.keep(stamp_ns, field);
            return Ok(Placed::Next(stamp_ns));
        }
        let last_ns = last_ns.unwrap_or(origin_ns);
        if stamp_ns < self.before_ns {
            match hints.earlier_times {
                EarlierTimes::Refuse if self.table.repeats => {
                    return Err(format!("must be later than the line before, {before}"))
                }
                EarlierTimes::Refuse => {
                    return Err(format!(
                        "must be later than the line before, {before}; {EARLIER}"
                    ))
                }
                EarlierTimes::Drop => {
                    self.dropped += 1;
                    return Ok(Placed::Drop);
                }
                EarlierTimes::Append | EarlierTimes::Sort => {
                    self.appended += 1;
                    self.shift_ns =
                        i128::from(last_ns) + i128::from(self.step_ns) - i128::from(stamp_ns);
                    self.before_ns = stamp_ns;
                }
            }
        } else if stamp_ns == self.before_ns {
            self.equal += 1;
            if self.table.repeats || hints.equal_times == EqualTimes::Last {
                return Ok(Placed::Instead(last_ns));
            }
            if hints.equal_times == EqualTimes::Refuse {
                return Err(format!(
                    "must be later than the line before, {before}; {EQUAL}"
                ));
            }
            return Ok(Placed::Next(last_ns));
        } else {
            self.step_ns = stamp_ns - self.before_ns;
        }
        let shifted = i128::from(stamp_ns) + self.shift_ns;
        let placed_ns = u64::try_from(shifted).unwrap_or(u64::MAX);
        if placed_ns.saturating_sub(origin_ns) > limits::DURATION_NS {
            return Err(format!(
                "must be at most {} seconds after the first",
                limits::DURATION_NS / 1_000_000_000
            ));
        }
        self.keep(stamp_ns, field);
        Ok(Placed::Next(placed_ns))
    }

    fn keep(&mut self, stamp_ns: u64, field: &str) {
        self.before_ns = stamp_ns;
        self.before.clear();
        self.before.push_str(field);
    }

    /// What was done to lines, in words.
    fn changed(&self) -> Vec<String> {
        let lines = |count: usize| if count == 1 { "line" } else { "lines" };
        let mut changed = Vec::new();
        if self.dropped > 0 {
            changed.push(format!(
                "{} earlier {} left out",
                self.dropped,
                lines(self.dropped)
            ));
        }
        if self.appended > 0 {
            changed.push(format!("{} recordings joined", self.appended + 1));
        }
        if self.equal > 0 && !self.table.repeats {
            let rule = self.table.hints.equal_times.name();
            changed.push(format!(
                "{} {} at the time of the line before ({rule})",
                self.equal,
                lines(self.equal)
            ));
        }
        changed
    }
}

/// Makes one line of those that have the same time, or spreads them over the interval to which they belong.
fn merge(rows: &mut Rows, table: &Table<'_>) {
    let rule = table.hints.equal_times;
    let covers = table.hints.covers;
    let at_first = rows.times_ns.iter().take_while(|ns| **ns == 0).count();
    let first_step_ns = rows.times_ns.get(at_first).copied().unwrap_or(0);
    let is_spread = rule == EqualTimes::Spread;
    rows.lead_ns = match is_spread {
        true => first_step_ns - part(first_step_ns, at_first - 1, at_first),
        false => first_step_ns,
    };
    let is_equal = rows.times_ns.windows(2).any(|pair| pair[0] == pair[1]);
    if !is_equal {
        return;
    }
    // What is spread over the time before the first line gets room there.
    let room_ns = match covers {
        Covers::Before if is_spread => first_step_ns,
        _ => 0,
    };
    let mut merged = Rows {
        times_ns: Vec::new(),
        lines: Vec::new(),
        values: vec![Vec::new(); rows.values.len()],
        start: std::mem::take(&mut rows.start),
        lead_ns: rows.lead_ns,
        changed: std::mem::take(&mut rows.changed),
        is_local: rows.is_local,
        is_number: rows.is_number,
    };
    let mut from = 0;
    let mut step_ns = match covers {
        Covers::After => 1_000_000_000,
        Covers::Before => first_step_ns,
    };
    while from < rows.times_ns.len() {
        let time_ns = rows.times_ns[from];
        let same = rows.times_ns[from..]
            .iter()
            .take_while(|ns| **ns == time_ns);
        let until = from + same.count();
        let count = until - from;
        match (covers, rows.times_ns.get(until)) {
            (Covers::After, Some(next_ns)) => step_ns = next_ns - time_ns,
            (Covers::Before, _) if from > 0 => step_ns = time_ns - rows.times_ns[from - 1],
            _ => {}
        }
        if is_spread {
            for at in from..until {
                let ns = match covers {
                    Covers::After => time_ns + part(step_ns, at - from, count),
                    Covers::Before => time_ns + room_ns - part(step_ns, until - 1 - at, count),
                };
                if merged.times_ns.last() == Some(&ns) {
                    continue; // more lines than nanoseconds
                }
                merged.times_ns.push(ns);
                merged.lines.push(rows.lines[at]);
                for (list, all) in merged.values.iter_mut().zip(&rows.values) {
                    list.push(all[at]);
                }
            }
        } else {
            merged.times_ns.push(time_ns);
            merged.lines.push(rows.lines[until - 1]);
            let columns = merged.values.iter_mut().zip(&rows.values);
            for ((list, all), column) in columns.zip(&table.columns.values) {
                let sum: f64 = all[from..until].iter().sum();
                list.push(match rule {
                    EqualTimes::Sum if column.role == Role::Capacity => {
                        sum.min(limits::RATE_BPS as f64)
                    }
                    EqualTimes::Mean | EqualTimes::Sum => sum / count as f64,
                    _ => all[until - 1],
                });
            }
        }
        from = until;
    }
    *rows = merged;
}

/// So many of `count` equal parts of a time, ns.
fn part(span_ns: u64, parts: usize, count: usize) -> u64 {
    (u128::from(span_ns) * parts as u128 / count as u128) as u64
}

/// Values as steps: from each line to the next, or with a lead from the line before. In the gaps of `outages` a value lasts as
/// long as usual, and otherwise the value is 0.
fn points(
    times_ns: &[u64],
    values: &[f64],
    lead_ns: u64,
    outages: Option<&Spans>,
) -> Vec<(u64, f64)> {
    let mut points = Vec::with_capacity(values.len());
    for (at, value) in values.iter().enumerate() {
        let (from_ns, until_ns) = if lead_ns > 0 {
            let from_ns = at
                .checked_sub(1)
                .map_or(0, |before| times_ns[before] + lead_ns);
            (from_ns, Some(times_ns[at] + lead_ns))
        } else {
            (times_ns[at], times_ns.get(at + 1).copied())
        };
        let gap = outages
            .zip(until_ns)
            .filter(|(spans, until_ns)| spans.is_gap(until_ns - from_ns));
        match gap {
            None => points.push((from_ns, *value)),
            Some((spans, until_ns)) if lead_ns > 0 => {
                points.push((from_ns, 0.0));
                points.push((until_ns - spans.usual_ns, *value));
            }
            Some((spans, _)) => {
                points.push((from_ns, *value));
                points.push((from_ns + spans.usual_ns, 0.0));
            }
        }
    }
    points
}

/// Joins a time that holds the separator: a date and a time with a blank between them, or milliseconds after a comma.
fn join_time<'t>(
    line: &'t str,
    fields: &mut Vec<&'t str>,
    expected: usize,
    time: &TimeUse,
    dialect: &Dialect,
) {
    let more = fields.len() - expected;
    let (from, until) = (time.index, time.index + more);
    if until >= fields.len() {
        return;
    }
    let is_clock = |field: &str| field.contains(':') || field.contains('.');
    let is_blank = dialect.has_blanks() && fields[from..=until].iter().any(|field| is_clock(field));
    let is_ms =
        more == 1 && dialect.separator() == "," && is_milliseconds(fields[from], fields[until]);
    if is_blank || is_ms {
        join(line, fields, from, until);
    }
}

/// Whether a field is a time without a fraction, and the next may be its milliseconds.
pub(super) fn is_milliseconds(time: &str, field: &str) -> bool {
    let seconds = time.rsplit(':').next().unwrap_or_default();
    time.contains(':')
        && seconds.len() == 2
        && field.len() == 3
        && field.bytes().all(|byte| byte.is_ascii_digit())
}

/// Makes one field of several, which are parts of the line, and of what is between them.
pub(super) fn join<'t>(line: &'t str, fields: &mut Vec<&'t str>, from: usize, until: usize) {
    let offset = |field: &str| field.as_ptr() as usize - line.as_ptr() as usize;
    let (start, end) = (
        offset(fields[from]),
        offset(fields[until]) + fields[until].len(),
    );
    if let Some(joined) = line.get(start..end) {
        fields.splice(from..=until, [joined]);
    }
}

/// Whether a time as a clock writes it names its zone, in letters or as an offset.
fn names_zone(field: &str) -> bool {
    let behind = field.rsplit([':', '.']).next().unwrap_or_default();
    behind.contains(['+', '-']) || behind.chars().any(|letter| letter.is_ascii_alphabetic())
}

/// A number of such a unit in base units.
fn in_unit(field: &str, unit: &str, kind: Kind) -> Result<Decimal, String> {
    Decimal::parse(field)?;
    units::parse(&format!("{field}{unit}"), kind)
}
