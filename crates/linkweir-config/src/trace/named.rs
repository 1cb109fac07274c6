// SPDX-License-Identifier: BSD-3-Clause
//! Columns of a table that a scenario names, by the words of the header or by numbers.

use std::fmt;

use crate::fault::Fault;
use crate::reader::{Entry, Value, Written};
use crate::table::header::{self, RateUnit};
use crate::units::{self, Kind};

/// Most columns of a table.
const COLUMNS: u64 = 10_000;

/// Where a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Under this name in the header.
    Named(String),
    /// The column of this number, from 1.
    Numbered(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Named(name) => f.write_str(name),
            Place::Numbered(number) => write!(f, "{number}"),
        }
    }
}

impl Place {
    fn read(entry: &Entry<'_, '_>) -> Result<Place, Fault> {
        if entry.is_whole() {
            let number = entry.number((1, COLUMNS))?;
            return Ok(Place::Numbered(usize::try_from(number).unwrap_or(1)));
        }
        Ok(Place::Named(entry.text()?.to_string()))
    }

    fn written(&self) -> Value {
        match self {
            Place::Named(name) => name.as_str().into(),
            Place::Numbered(number) => Value::Number(*number as u64),
        }
    }

    fn name(&self) -> &str {
        match self {
            Place::Named(name) => name,
            Place::Numbered(_) => "",
        }
    }
}

/// A column of a table, and the unit of its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Where it is.
    pub place: Place,
    /// As in quantities of a scenario: `ms`, `Mbit`, of a capacity `kB` for kB/s; of a loss `%` or nothing.
    pub unit: String,
    /// Whether the file or the user states the unit.
    pub stated: bool,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Time,
    Capacity,
    Delay,
    Loss,
}

impl Measure {
    fn kinds(self) -> &'static [Kind] {
        match self {
            Measure::Time | Measure::Delay => &[Kind::Time],
            Measure::Capacity => &[Kind::Rate, Kind::Size],
            Measure::Loss => &[Kind::Fraction],
        }
    }

    fn units(self) -> &'static str {
        match self {
            Measure::Time | Measure::Delay => "one of s, ms, us, ns, min, h",
            Measure::Capacity => {
                "one of Gbit, Mbit, kbit, bit, or GB, MB, kB, B for bytes per second"
            }
            Measure::Loss => "% or 1, of which 1 is for fractions",
        }
    }

    /// Whether a word is a unit of it.
    pub(super) fn has_unit(self, unit: &str) -> bool {
        if self == Measure::Loss {
            return ["%", "1"].contains(&unit);
        }
        let is_unit = |kind: &Kind| units::parse(&format!("1{unit}"), *kind).is_ok();
        let word = unit.bytes().all(|byte| byte.is_ascii_alphabetic()); // "0ms" is none
        word && self.kinds().iter().any(is_unit)
    }

    /// The unit that a name states.
    ///
    /// # Errors
    /// Two units of which it may state either.
    fn stated(self, name: &str) -> Result<Option<&'static str>, [&'static str; 2]> {
        match self {
            Measure::Time | Measure::Delay => Ok(header::time_unit(name)),
            Measure::Loss => Ok(header::loss_unit(name)),
            Measure::Capacity => match header::rate_unit(name) {
                RateUnit::Is(unit) => Ok(Some(unit)),
                RateUnit::Missing => Ok(None),
                RateUnit::Unclear(units) => Err(units),
            },
        }
    }
}

impl Column {
    /// A column whose name states its unit.
    pub(super) fn of_header(name: &str, measure: Measure, unit: Option<&str>) -> Option<Column> {
        let stated = measure.stated(name).ok()?;
        let unit = unit.or(stated);
        Some(Column {
            place: Place::Named(name.to_string()),
            stated: unit.is_some(),
            unit: match (unit, measure) {
                (Some(unit), _) => unit.to_string(),
                (None, Measure::Time) => "s".to_string(),
                (None, _) => return None,
            },
        })
    }

    /// Reads `"NAME"`, a number, or `{ column = "NAME", unit = "UNIT" }`; `given` is the unit that another key gives.
    fn read(entry: &Entry<'_, '_>, measure: Measure, given: Option<&str>) -> Result<Column, Fault> {
        let units = measure.units();
        let (place, unit) = match entry.table() {
            None => (Place::read(entry)?, None),
            Some(mut table) => {
                let place = Place::read(&table.need("column", "\"name in the header\"")?)?;
                let unit = table.find("unit");
                table.known()?;
                (place, unit)
            }
        };
        if let Some(entry) = unit {
            let unit = entry.text()?;
            if !measure.has_unit(unit) {
                return Err(entry.fault(format!("must be {units}")));
            }
            let unit = if unit == "1" { "" } else { unit };
            return Ok(Column {
                place,
                unit: unit.to_string(),
                stated: true,
            });
        }
        let stated = measure.stated(place.name());
        let unit = match (given, stated) {
            (Some(unit), _) | (None, Ok(Some(unit))) => Some(unit),
            (None, Ok(None)) => None,
            (None, Err([bits, bytes])) => {
                return Err(entry.fault(format!(
                    "may say bits or bytes; write {{ column = {}, unit = \"{bits}\" }} or unit = \"{bytes}\"",
                    place.written()
                )))
            }
        };
        let is_stated = unit.is_some();
        let implied = (measure == Measure::Time).then_some("s");
        let unit = unit.or(implied).ok_or_else(|| match entry.table() {
            Some(table) => table.fault_at("unit", format!("is missing; write {units}")),
            None => entry.fault(format!(
                "does not say its unit; write {{ column = {}, unit = ... }} with {units}",
                place.written()
            )),
        })?;
        Ok(Column {
            place,
            unit: unit.to_string(),
            stated: is_stated,
        })
    }

    fn written(&self) -> Value {
        let unit = if self.unit.is_empty() {
            "1"
        } else {
            &self.unit
        };
        Value::inline([("column", self.place.written()), ("unit", unit.into())])
    }
}

/// The columns of a table that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedColumns {
    /// Times; also as clocks write them. None where the lines have a fixed interval.
    pub time: Option<Column>,
    /// Times of day, where the column of times holds dates only.
    pub time_of_day: Option<Place>,
    /// Capacities.
    pub capacity: Column,
    /// Delays.
    pub delay: Option<Column>,
    /// Loss probabilities.
    pub loss: Option<Column>,
}

impl NamedColumns {
    /// Reads `columns = { t = ..., capacity = ... }`; `unit` is that of capacities which another key gives, and `timed` says
    /// that lines have times.
    pub(super) fn read(
        entry: &Entry<'_, '_>,
        unit: Option<&str>,
        timed: bool,
    ) -> Result<NamedColumns, Fault> {
        let mut table = entry.table().ok_or_else(|| {
            entry.fault("must be a table like { t = \"time_s\", capacity = \"down_mbit\" }")
        })?;
        let time = if timed {
            Some(table.need("t", "\"name of the column of times\"")?)
        } else {
            table.find("t")
        };
        if let (Some(time), false) = (&time, timed) {
            return Err(time.fault("trace_interval says the times; leave one of them out"));
        }
        let capacity = table.need("capacity", "\"name of the column of capacities\"")?;
        let delay = table.find("delay");
        let loss = table.find("loss");
        table.known()?;
        let mut time_of_day = None;
        let time = match &time {
            Some(entry) if entry.is_list() => {
                let both = entry.list(2)?;
                let [date, clock] = &both[..] else {
                    return Err(entry.fault("must be a column of dates and one of times of day"));
                };
                time_of_day = Some(Place::read(clock)?);
                Some(Column {
                    place: Place::read(date)?,
                    unit: "s".to_string(),
                    stated: true,
                })
            }
            Some(entry) => Some(Column::read(entry, Measure::Time, None)?),
            None => None,
        };
        let found = NamedColumns {
            time,
            time_of_day,
            capacity: Column::read(&capacity, Measure::Capacity, unit)?,
            delay: delay
                .map(|entry| Column::read(&entry, Measure::Delay, None))
                .transpose()?,
            loss: loss
                .map(|entry| Column::read(&entry, Measure::Loss, None))
                .transpose()?,
        };
        let time_place = found.time.as_ref().map(|column| &column.place);
        if time_place == Some(&found.capacity.place) {
            return Err(capacity.fault("must not be the column of the times"));
        }
        Ok(found)
    }

    /// As the key `columns` has them.
    #[must_use]
    pub fn written(&self) -> Value {
        let time = match (&self.time, &self.time_of_day) {
            (Some(date), Some(clock)) => {
                Some(Value::List(vec![date.place.written(), clock.written()]))
            }
            (Some(time), None) => Some(time.written()),
            (None, _) => None,
        };
        let columns = [
            ("t", time),
            ("capacity", Some(self.capacity.written())),
            ("delay", self.delay.as_ref().map(Column::written)),
            ("loss", self.loss.as_ref().map(Column::written)),
        ];
        let mut table = Written::default();
        for (key, column) in columns {
            if let Some(column) = column {
                table.write(key, column);
            }
        }
        Value::Inline(table)
    }
}
