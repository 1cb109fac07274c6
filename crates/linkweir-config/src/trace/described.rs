// SPDX-License-Identifier: BSD-3-Clause
//! Keys of a table that describe its trace.

use crate::fault::Fault;
use crate::keys::Form;
use crate::limits;
use crate::reader::{Entry, Section, Source, Value};
use crate::table::{Clock, Dates};
use crate::units::Kind;

use super::choices::{Covers, EarlierTimes, EqualTimes, Gap};
use super::format::{Format, TraceEnd};
use super::keys;
use super::named::{Measure, NamedColumns};

/// Keys of a table that describe its trace.
pub struct Described<'s, 'i> {
    /// In the order of [`keys::DESCRIBED`].
    entries: [Option<Entry<'s, 'i>>; 13],
}

impl<'s, 'i> Described<'s, 'i> {
    /// Looks for the keys.
    pub fn find(section: &mut Section<'s, 'i>) -> Self {
        Described {
            entries: [
                section.find(keys::FORMAT.name),
                section.find(keys::COLUMN.name),
                section.find(keys::COLUMNS.name),
                section.find(keys::END.name),
                section.find(keys::UNIT.name),
                section.find(keys::INTERVAL.name),
                section.find(keys::DECIMAL.name),
                section.find(keys::ZONE.name),
                section.find(keys::DATES.name),
                section.find(keys::COVERS.name),
                section.find(keys::EQUAL_TIMES.name),
                section.find(keys::EARLIER_TIMES.name),
                section.find(keys::GAP.name),
            ],
        }
    }

    /// One of the keys that are given, if any is: a table without a trace must have none.
    pub fn any(&self) -> Option<&Entry<'s, 'i>> {
        self.entries.iter().flatten().next()
    }

    /// Reads them.
    ///
    /// # Errors
    /// A word that is none of those allowed, or keys that do not go together.
    pub fn read(&self) -> Result<Hints, Fault> {
        let [format_entry, column, columns, end, unit, interval, decimal, zone, dates, covers, equal, earlier, gap] =
            &self.entries;
        let mut format = match format_entry {
            Some(entry) => {
                let chosen = keys::FORMAT.form.read(entry)?;
                chosen.checked_sub(1).map(|index| Format::ALL[index])
            }
            None => None,
        };
        let unit = unit.as_ref().map(capacity_unit).transpose()?;
        let interval_ns = interval
            .as_ref()
            .map(|entry| keys::INTERVAL.form.read(entry))
            .transpose()?;
        let named = columns
            .as_ref()
            .map(|entry| NamedColumns::read(entry, unit.as_deref(), interval_ns.is_none()))
            .transpose()?;
        let given = format;
        let is_of = |known: &[Format]| given.is_none_or(|format| known.contains(&format));
        if let Some(entry) = columns {
            if !is_of(&[Format::Csv, Format::Rates]) {
                return Err(
                    entry.fault("is only for trace_format = \"csv\"; leave one of them out")
                );
            }
            if let Some(column) = column {
                return Err(column.fault("columns names it already; leave it out"));
            }
            format = Some(match interval_ns {
                Some(_) => Format::Rates,
                None => Format::Csv,
            });
        } else if let (Some(Format::Csv), Some(entry)) = (format, format_entry) {
            return Err(entry.fault(
                "needs the names of its columns, such as columns = { t = \"time_s\", capacity = \"down_mbit\" }",
            ));
        }
        if let Some(entry) = interval {
            if !is_of(&[Format::Csv, Format::Rates]) {
                return Err(
                    entry.fault("is only for trace_format = \"rates\"; leave one of them out")
                );
            }
            format = Some(Format::Rates);
        } else if let (Some(Format::Rates), Some(entry)) = (format, format_entry) {
            return Err(
                entry.fault("needs trace_interval, the time from line to line, such as \"1s\"")
            );
        }
        Ok(Hints {
            format,
            column: column
                .as_ref()
                .map(|entry| entry.text().map(str::to_string))
                .transpose()?,
            columns: named,
            end: word(
                end,
                &[TraceEnd::Loop, TraceEnd::Hold, TraceEnd::Stop],
                &TraceEnd::NAMES,
            )?,
            unit,
            interval_ns,
            decimal: word(decimal, &['.', ','], &[".", ","])?,
            zone: zone.as_ref().map(zone_name).transpose()?,
            dates: word(dates, &[Dates::DayFirst, Dates::MonthFirst], &Dates::NAMES)?,
            covers: word(covers, Covers::ALL, Covers::NAMES)?.unwrap_or_default(),
            equal_times: word(equal, EqualTimes::ALL, EqualTimes::NAMES)?.unwrap_or_default(),
            earlier_times: word(earlier, EarlierTimes::ALL, EarlierTimes::NAMES)?
                .unwrap_or_default(),
            gap: word(gap, Gap::ALL, Gap::NAMES)?,
        })
    }
}

fn word<T: Copy>(
    entry: &Option<Entry<'_, '_>>,
    values: &[T],
    names: &[&str],
) -> Result<Option<T>, Fault> {
    let chosen = entry
        .as_ref()
        .map(|entry| entry.choice(names))
        .transpose()?;
    Ok(chosen.map(|index| values[index]))
}

fn capacity_unit(entry: &Entry<'_, '_>) -> Result<String, Fault> {
    let unit = entry.text()?;
    if Measure::Capacity.has_unit(unit) {
        return Ok(unit.to_string());
    }
    Err(entry.fault("must be one of Gbit, Mbit, kbit, bit, or GB, MB, kB, B for bytes per second"))
}

fn zone_name(entry: &Entry<'_, '_>) -> Result<String, Fault> {
    let name = entry.text()?;
    Clock::new(Some(name), None).map_err(|what| entry.fault(what))?;
    Ok(name.to_string())
}

/// Facts about a trace that the caller knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Notation; found out from the content when not given.
    pub format: Option<Format>,
    /// Column of an `mbit`, `iperf3` or `starlink` file; the first that fits when not given.
    pub column: Option<String>,
    /// Columns of a `csv` file, which needs them unless its header states units.
    pub columns: Option<NamedColumns>,
    /// What follows the last line; the file's own word when not given.
    pub end: Option<TraceEnd>,
    /// Unit of capacities, where neither `columns` nor a header has it.
    pub unit: Option<String>,
    /// Time from line to line of a file without times, ns.
    pub interval_ns: Option<u64>,
    /// The mark in front of decimals; found out from the content when not given.
    pub decimal: Option<char>,
    /// Zone of times that name none; UTC when not given.
    pub zone: Option<String>,
    /// Order of dates whose year is last.
    pub dates: Option<Dates>,
    /// Which interval a value belongs to.
    pub covers: Covers,
    /// What becomes of lines with the same time.
    pub equal_times: EqualTimes,
    /// What becomes of a line that is earlier than the line before.
    pub earlier_times: EarlierTimes,
    /// What the capacity is where lines are missing; that of the line before when not given.
    pub gap: Option<Gap>,
}

impl Hints {
    /// Reads the keys of a table `[link]` that describe a trace, as TOML.
    ///
    /// # Errors
    /// The first thing wrong with it; a key that describes no trace.
    pub fn parse(text: &str) -> Result<Hints, Fault> {
        let source = Source::new(text, None);
        let document = source.parse(limits::HINTS_BYTES)?;
        let mut section = Section::new(&source, document.get_ref(), String::new(), 0);
        let described = Described::find(&mut section);
        section.known()?;
        described.read()
    }

    /// Writes the keys that are not written with the trace's format, columns and end, and differ from their defaults.
    pub(super) fn write(&self, section: &mut Section<'_, '_>) {
        let text = |value: &Option<String>| value.as_deref().map(Value::from);
        let changed = |is_default: bool, name: &str| (!is_default).then(|| Value::from(name));
        let lines = [
            (keys::UNIT.name, text(&self.unit)),
            (
                keys::INTERVAL.name,
                self.interval_ns.map(|ns| Value::Whole(ns, Kind::Time)),
            ),
            (
                keys::DECIMAL.name,
                self.decimal.map(|mark| Value::from(mark.to_string())),
            ),
            (keys::ZONE.name, text(&self.zone)),
            (
                keys::DATES.name,
                self.dates.map(|dates| Value::from(dates.name())),
            ),
            (
                keys::COVERS.name,
                changed(self.covers == Covers::default(), self.covers.name()),
            ),
            (
                keys::EQUAL_TIMES.name,
                changed(
                    self.equal_times == EqualTimes::default(),
                    self.equal_times.name(),
                ),
            ),
            (
                keys::EARLIER_TIMES.name,
                changed(
                    self.earlier_times == EarlierTimes::default(),
                    self.earlier_times.name(),
                ),
            ),
            (keys::GAP.name, self.gap.map(|gap| Value::from(gap.name()))),
        ];
        for (key, value) in lines {
            if let Some(value) = value {
                section.write(key, value);
            }
        }
    }
}
