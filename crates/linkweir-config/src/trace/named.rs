// SPDX-License-Identifier: BSD-3-Clause
//! Columns of a CSV file that a scenario names.

use crate::fault::Fault;
use crate::reader::{quote, Entry};
use crate::units::{self, Kind};

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
    pub(super) fn read(entry: &Entry<'_, '_>) -> Result<NamedColumns, Fault> {
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
