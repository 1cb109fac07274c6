// SPDX-License-Identifier: BSD-3-Clause
//! All columns of the result tables, and these tables without rows.

use crate::table::Table;

use super::application::{COMPLETIONS, TRANSFERS, VIDEO};
use super::beam::{CARRIER, CHANNEL, TERMINALS};
use super::bond::{BOND_PATHS, BOND_RECEIVERS, MEMBERS};
use super::class::{CLASSES, CLASSES_OF_LINKS, SERIES, SERIES_OF_LINKS};
use super::column::{Column, TableOf, LINK_NAME};
use super::delays::DELAYS;
use super::flow::{FLOWS, FLOWS_OF_LINKS, FLOW_SERIES, HARQ};
use super::link::LINK;
use super::log::{PACKETS, PACKETS_OF_LINKS};
use super::network::HOPS;
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

/// Every table but `levels`, whose columns are the statistics of the policy: without rows, and with its columns described.
fn tables() -> Vec<(Table, Vec<ColumnInfo>)> {
    vec![
        described("series", SERIES),
        described("link", LINK),
        described("flow_series", FLOW_SERIES),
        described("classes", CLASSES),
        described("flows", FLOWS),
        described("harq", HARQ),
        described("delays", DELAYS),
        described("voice", VOICE),
        described("packets", PACKETS),
        described("channel", CHANNEL),
        described("carrier", CARRIER),
        described("terminals", TERMINALS),
        described("members", MEMBERS),
        described("bond_paths", BOND_PATHS),
        described("bond_receivers", BOND_RECEIVERS),
        described("transfers", TRANSFERS),
        described("completions", COMPLETIONS),
        described("video", VIDEO),
    ]
}

/// The same of a run over several links: tables of links have a column with the link's name, and there is table `hops`.
fn network_tables() -> Vec<(Table, Vec<ColumnInfo>)> {
    vec![
        of_links("series", SERIES, SERIES_OF_LINKS),
        of_links("link", LINK, &[]),
        described("flow_series", FLOW_SERIES),
        of_links("classes", CLASSES, CLASSES_OF_LINKS),
        described("hops", HOPS),
        with("flows", FLOWS, FLOWS_OF_LINKS),
        described("harq", HARQ),
        of_links("delays", DELAYS, &[]),
        described("voice", VOICE),
        of_links("packets", PACKETS, PACKETS_OF_LINKS),
        of_links("channel", CHANNEL, &[]),
        of_links("carrier", CARRIER, &[]),
        of_links("terminals", TERMINALS, &[]),
        of_links("members", MEMBERS, &[]),
        of_links("bond_paths", BOND_PATHS, &[]),
        of_links("bond_receivers", BOND_RECEIVERS, &[]),
        described("transfers", TRANSFERS),
        described("completions", COMPLETIONS),
        described("video", VIDEO),
    ]
}

fn described<T, C: ?Sized>(
    table: &'static str,
    columns: &'static [Column<T, C>],
) -> (Table, Vec<ColumnInfo>) {
    (
        TableOf::new(table, columns).into_table(),
        infos(table, columns),
    )
}

fn with<T, C: ?Sized>(
    table: &'static str,
    columns: &'static [Column<T, C>],
    more: &'static [Column<T, C>],
) -> (Table, Vec<ColumnInfo>) {
    let mut all = infos(table, columns);
    all.extend(infos(table, more));
    (TableOf::with(table, columns, more).into_table(), all)
}

fn of_links<T, C: ?Sized>(
    table: &'static str,
    columns: &'static [Column<T, C>],
    more: &'static [Column<T, C>],
) -> (Table, Vec<ColumnInfo>) {
    let mut all = vec![ColumnInfo {
        table,
        name: LINK_NAME,
        unit: "",
        help: "Name of the link.",
    }];
    all.extend(infos(table, columns));
    all.extend(infos(table, more));
    (TableOf::of_links(table, columns, more).into_table(), all)
}

fn infos<T, C: ?Sized>(table: &'static str, columns: &[Column<T, C>]) -> Vec<ColumnInfo> {
    let infos = columns.iter().map(|column| ColumnInfo {
        table,
        name: column.name,
        unit: column.unit.suffix(),
        help: column.help,
    });
    infos.collect()
}

/// The columns of every table but `levels`, whose columns are the statistics of the policy.
#[must_use]
pub fn columns() -> Vec<ColumnInfo> {
    tables().into_iter().flat_map(|(_, infos)| infos).collect()
}

/// The tables of [`columns`], without rows.
#[must_use]
pub fn empty_tables() -> Vec<Table> {
    tables().into_iter().map(|(table, _)| table).collect()
}

/// The columns of every table of a run over several links but `levels`, whose columns are the statistics of all policies.
#[must_use]
pub fn network_columns() -> Vec<ColumnInfo> {
    let tables = network_tables().into_iter();
    tables.flat_map(|(_, infos)| infos).collect()
}

/// The tables of [`network_columns`], without rows.
#[must_use]
pub fn empty_network_tables() -> Vec<Table> {
    let tables = network_tables().into_iter();
    tables.map(|(table, _)| table).collect()
}

#[cfg(test)]
mod tests {
    use super::super::column::Unit;
    use super::*;

    #[test]
    fn a_column_is_named_once_and_ends_with_its_unit() {
        for all in [columns(), network_columns()] {
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
    }

    #[test]
    fn every_described_table_can_be_had_without_rows() {
        for (columns, tables) in [
            (columns(), empty_tables()),
            (network_columns(), empty_network_tables()),
        ] {
            let described: Vec<(&str, &str)> = columns.iter().map(|c| (c.table, c.name)).collect();
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
}
