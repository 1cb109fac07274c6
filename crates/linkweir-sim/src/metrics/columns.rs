// SPDX-License-Identifier: BSD-3-Clause
//! All columns of the result tables, and these tables without rows.

use crate::table::Table;

use super::application::{COMPLETIONS, TRANSFERS, VIDEO};
use super::beam::{CARRIER, CHANNEL, TERMINALS};
use super::class::{CLASSES, SERIES};
use super::column::{Column, TableOf};
use super::delays::DELAYS;
use super::flow::{FLOWS, FLOW_SERIES, HARQ};
use super::link::LINK;
use super::log::PACKETS;
use super::playout::VOICE;

/// A column of a result table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// The table.
    pub table: &'static str,
    /// The column's name.
    pub name: &'static str,
    /// Suffix of the name that gives its unit, such as `_s`; empty for names and pure numbers.
    pub unit: &'static str,
    /// A sentence.
    pub help: &'static str,
}

/// The columns of every table but `levels`, whose columns are the statistics of the policy.
#[must_use]
pub fn columns() -> Vec<ColumnInfo> {
    let mut all = Vec::new();
    describe("series", SERIES, &mut all);
    describe("link", LINK, &mut all);
    describe("flow_series", FLOW_SERIES, &mut all);
    describe("classes", CLASSES, &mut all);
    describe("flows", FLOWS, &mut all);
    describe("harq", HARQ, &mut all);
    describe("delays", DELAYS, &mut all);
    describe("voice", VOICE, &mut all);
    describe("packets", PACKETS, &mut all);
    describe("channel", CHANNEL, &mut all);
    describe("carrier", CARRIER, &mut all);
    describe("terminals", TERMINALS, &mut all);
    describe("transfers", TRANSFERS, &mut all);
    describe("completions", COMPLETIONS, &mut all);
    describe("video", VIDEO, &mut all);
    all
}

fn describe<T, C: ?Sized>(
    table: &'static str,
    columns: &[Column<T, C>],
    all: &mut Vec<ColumnInfo>,
) {
    all.extend(columns.iter().map(|column| ColumnInfo {
        table,
        name: column.name,
        unit: column.unit.suffix(),
        help: column.help,
    }));
}

/// The tables of [`columns`], without rows.
#[must_use]
pub fn empty_tables() -> Vec<Table> {
    vec![
        TableOf::new("series", SERIES).into_table(),
        TableOf::new("link", LINK).into_table(),
        TableOf::new("flow_series", FLOW_SERIES).into_table(),
        TableOf::new("classes", CLASSES).into_table(),
        TableOf::new("flows", FLOWS).into_table(),
        TableOf::new("harq", HARQ).into_table(),
        TableOf::new("delays", DELAYS).into_table(),
        TableOf::new("voice", VOICE).into_table(),
        TableOf::new("packets", PACKETS).into_table(),
        TableOf::new("channel", CHANNEL).into_table(),
        TableOf::new("carrier", CARRIER).into_table(),
        TableOf::new("terminals", TERMINALS).into_table(),
        TableOf::new("transfers", TRANSFERS).into_table(),
        TableOf::new("completions", COMPLETIONS).into_table(),
        TableOf::new("video", VIDEO).into_table(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::column::Unit;
    use super::*;

    #[test]
    fn a_column_is_named_once_and_ends_with_its_unit() {
        let all = columns();
        for (i, column) in all.iter().enumerate() {
            let mut suffixes = Unit::ALL.iter().map(|unit| unit.suffix());
            let ends = suffixes.find(|s| column.name.ends_with(s));
            assert_eq!(ends, Some(column.unit), "{column:?}");
            assert!(column.help.ends_with('.'), "{column:?}");
            let same =
                |other: &ColumnInfo| (other.table, other.name) == (column.table, column.name);
            assert!(!all[..i].iter().any(same), "{column:?}");
        }
    }

    #[test]
    fn every_described_table_can_be_had_without_rows() {
        let described: Vec<(&str, &str)> = columns().iter().map(|c| (c.table, c.name)).collect();
        let tables = empty_tables();
        let empty: Vec<(&str, &str)> = tables
            .iter()
            .flat_map(|table| {
                let names = table.columns.iter();
                names.map(|(name, _)| (table.name, name.as_str()))
            })
            .collect();
        assert_eq!(empty, described);
    }
}
