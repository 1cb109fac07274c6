// SPDX-License-Identifier: BSD-3-Clause
//! Which columns of a table are used, and in which units.

use crate::fault::{shorten, Fault};
use crate::reader::nearest;
use crate::table::header::{self, RateUnit};
use crate::table::{Clock, Dialect};

use super::described::Hints;
use super::file::Reader;
use super::format::Format;
use super::named::{NamedColumns, Place};

pub(super) const HEADER: &str = "a header t_s,capacity_bps[,delay_s][,loss]";
/// Names of the column of times in `mbit` files.
pub(super) const MBIT_TIMES: [&str; 4] = ["t_s", "time_s", "t", "time"];

/// What a column of values holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Capacity,
    Delay,
    Loss,
}

/// A column of values.
pub(super) struct ColumnUse {
    pub(super) index: usize,
    pub(super) role: Role,
    /// Of its numbers.
    pub(super) unit: String,
}

/// A column of times.
pub(super) struct TimeUse {
    pub(super) index: usize,
    /// Column of the times of day, where this one has dates.
    pub(super) time_of_day: Option<usize>,
    /// Of its numbers.
    pub(super) unit: String,
    /// Whether the file or the user states the unit.
    pub(super) stated: bool,
}

/// The columns of a table that are used.
pub(super) struct Columns {
    /// None where lines have a fixed interval.
    pub(super) time: Option<TimeUse>,
    pub(super) values: Vec<ColumnUse>,
    /// Names of all columns, or their numbers.
    pub(super) names: Vec<String>,
    /// Whether the first line of data is a header.
    pub(super) has_header: bool,
}

impl Columns {
    /// Its columns and units, for the user.
    pub(super) fn show(&self) -> String {
        let mut parts = Vec::new();
        if let Some(time) = &self.time {
            parts.push(format!("t from {}", shorten(&self.names[time.index])));
        }
        for column in &self.values {
            let name = shorten(&self.names[column.index]);
            let (role, unit) = match column.role {
                Role::Capacity => ("capacity", format!("{}/s", column.unit)),
                Role::Delay => ("delay", column.unit.clone()),
                Role::Loss if column.unit.is_empty() => ("loss", "fractions".to_string()),
                Role::Loss => ("loss", column.unit.clone()),
            };
            parts.push(format!("{role} from {name} in {unit}"));
        }
        parts.join(", ")
    }
}

impl Reader {
    /// The columns of a table whose first line of data is `first`.
    pub(super) fn columns(
        &self,
        line: usize,
        first: &[&str],
        dialect: &Dialect,
        format: Format,
        hints: &Hints,
    ) -> Result<Columns, Fault> {
        if let Some(named) = &hints.columns {
            self.named_columns(line, first, dialect, named)
        } else if format == Format::Rates {
            self.only_column(line, first, dialect, hints)
        } else if format == Format::Mbit {
            self.mbit_columns(line, first, hints)
        } else {
            self.own_columns(line, first)
        }
    }

    /// The columns that a scenario names.
    fn named_columns(
        &self,
        line: usize,
        first: &[&str],
        dialect: &Dialect,
        named: &NamedColumns,
    ) -> Result<Columns, Fault> {
        let place = |place: &Place| self.placed(line, first, place);
        let capacity = place(&named.capacity.place)?;
        let mut values = vec![ColumnUse {
            index: capacity,
            role: Role::Capacity,
            unit: named.capacity.unit.clone(),
        }];
        for (column, role) in [(&named.delay, Role::Delay), (&named.loss, Role::Loss)] {
            if let Some(column) = column {
                let (index, unit) = (place(&column.place)?, column.unit.clone());
                values.push(ColumnUse { index, role, unit });
            }
        }
        let time = match &named.time {
            None => None,
            Some(column) => Some(TimeUse {
                index: place(&column.place)?,
                time_of_day: named.time_of_day.as_ref().map(place).transpose()?,
                unit: column.unit.clone(),
                stated: column.stated,
            }),
        };
        let named_places = [
            named.time.as_ref().map(|column| &column.place),
            named.time_of_day.as_ref(),
            Some(&named.capacity.place),
            named.delay.as_ref().map(|column| &column.place),
            named.loss.as_ref().map(|column| &column.place),
        ];
        let is_named = named_places
            .into_iter()
            .flatten()
            .any(|place| matches!(place, Place::Named(_)));
        let is_header = || {
            let mut times = time.iter().map(|time| first[time.index]);
            may_name(first[capacity], dialect)
                && times.all(|field| field.is_empty() || may_name(field, dialect))
        };
        let has_header = is_named || is_header();
        if has_header && is_named {
            self.once(line, first)?;
        }
        Ok(Columns {
            time,
            values,
            names: names_of(first, has_header),
            has_header,
        })
    }

    /// The column of a list of rates.
    fn only_column(
        &self,
        line: usize,
        first: &[&str],
        dialect: &Dialect,
        hints: &Hints,
    ) -> Result<Columns, Fault> {
        if first.len() > 1 {
            let message = format!(
                "has {} columns; write which has the capacities: columns = {{ capacity = {{ column = 1, unit = \"Mbit\" }} }}",
                first.len()
            );
            return Err(self.fault(line, message));
        }
        let has_header = may_name(first[0], dialect);
        let stated = match header::rate_unit(first[0]) {
            RateUnit::Is(unit) if has_header => Some(unit),
            _ => None,
        };
        let unit = hints.unit.as_deref().or(stated).ok_or_else(|| {
            self.whole_fault(
                "does not say the unit of its rates; write trace_unit = \"Mbit\", or what it is",
            )
        })?;
        Ok(Columns {
            time: None,
            values: vec![ColumnUse {
                index: 0,
                role: Role::Capacity,
                unit: unit.to_string(),
            }],
            names: names_of(first, has_header),
            has_header,
        })
    }

    /// A column of times, and the first one in Mbit/s or the one wanted.
    fn mbit_columns(&self, line: usize, names: &[&str], hints: &Hints) -> Result<Columns, Fault> {
        self.once(line, names)?;
        let time = names
            .iter()
            .position(|name| MBIT_TIMES.contains(name))
            .ok_or_else(|| self.fault(line, "needs a column t_s: time in seconds"))?;
        let index = match &hints.column {
            Some(wanted) => self.wanted(line, names, wanted)?,
            None => names
                .iter()
                .position(|name| is_mbit(name))
                .ok_or_else(|| self.fault(line, "has no column with mbit in its name"))?,
        };
        if index == time {
            return Err(self.fault(line, "the column of times cannot be the capacity"));
        }
        let stated = match header::rate_unit(names[index]) {
            RateUnit::Is(unit) => unit,
            _ => "Mbit",
        };
        Ok(Columns {
            time: Some(TimeUse {
                index: time,
                time_of_day: None,
                unit: "s".to_string(),
                stated: names[time].ends_with("_s"),
            }),
            values: vec![ColumnUse {
                index,
                role: Role::Capacity,
                unit: hints.unit.as_deref().unwrap_or(stated).to_string(),
            }],
            names: names_of(names, true),
            has_header: true,
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
            time: Some(TimeUse {
                index: time,
                time_of_day: None,
                unit: "s".to_string(),
                stated: true,
            }),
            values,
            names: names_of(names, true),
            has_header: true,
        })
    }

    fn placed(&self, line: usize, first: &[&str], place: &Place) -> Result<usize, Fault> {
        match place {
            Place::Named(name) => self.wanted(line, first, name),
            Place::Numbered(number) if *number <= first.len() => Ok(number - 1),
            Place::Numbered(number) => {
                let message = format!("has no column {number}; it has {} columns", first.len());
                Err(self.fault(line, message))
            }
        }
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
            if !name.is_empty() && names[..i].contains(name) {
                return Err(self.fault(line, format!("column {} appears twice", shorten(name))));
            }
        }
        Ok(())
    }

    /// Refuses a header with other columns than these.
    pub(super) fn known(
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
    pub(super) fn index(
        &self,
        line: usize,
        names: &[&str],
        name: &str,
        header: &str,
    ) -> Result<usize, Fault> {
        let missing = || self.fault(line, format!("has no column {name}; expected {header}"));
        names.iter().position(|n| *n == name).ok_or_else(missing)
    }
}

/// Whether a field of the first line may be the name of a column: neither a number nor a time, nor a word for a missing value.
fn may_name(field: &str, dialect: &Dialect) -> bool {
    const MISSING: [&str; 9] = [
        "nan", "inf", "infinity", "na", "n/a", "null", "nil", "none", "missing",
    ];
    let begins =
        field.starts_with(|letter: char| letter.is_alphabetic() || "#_([\"".contains(letter));
    let is_missing = MISSING.contains(&field.to_lowercase().as_str());
    begins && !is_missing && dialect.number(field).is_err() && !Clock::is_time(field)
}

fn names_of(first: &[&str], has_header: bool) -> Vec<String> {
    if has_header {
        return first.iter().map(|name| (*name).to_string()).collect();
    }
    (1..=first.len())
        .map(|number| format!("column {number}"))
        .collect()
}

/// Whether a column's name says that it holds rates in Mbit/s.
pub(super) fn is_mbit(name: &str) -> bool {
    name.to_ascii_lowercase().contains("mbit")
        && header::rate_unit(name) == RateUnit::Is("Mbit")
        && !header::is_no_rate(name)
}
