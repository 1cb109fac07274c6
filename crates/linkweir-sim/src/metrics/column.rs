// SPDX-License-Identifier: BSD-3-Clause
//! Tables as lists of columns, each with its name, its unit, a help text, and the function that gives its value.

use crate::table::{Sink, Table};

use super::rows::{Kind, Rows};

/// The unit of a column; the column's name ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Nanoseconds,
    Packets,
    Bytes,
    Bits,
    BitsPerSecond,
    Decibels,
    /// A name, a part of something, or a number of times.
    None,
}

impl Unit {
    const fn heading(self, name: &'static str, help: &'static str) -> Heading {
        Heading {
            name,
            unit: self,
            help,
        }
    }

    #[cfg(test)]
    pub(super) const ALL: [Unit; 8] = [
        Unit::Seconds,
        Unit::Nanoseconds,
        Unit::Packets,
        Unit::Bytes,
        Unit::Bits,
        Unit::BitsPerSecond,
        Unit::Decibels,
        Unit::None,
    ];

    pub(super) fn suffix(self) -> &'static str {
        match self {
            Unit::Seconds => "_s",
            Unit::Nanoseconds => "_ns",
            Unit::Packets => "_pkts",
            Unit::Bytes => "_bytes",
            Unit::Bits => "_bits",
            Unit::BitsPerSecond => "_bps",
            Unit::Decibels => "_db",
            Unit::None => "",
        }
    }
}

/// A column of a table with one row per `T`: how its value follows from that and from the context of the table, `C`.
///
/// It is written `unit(name, help).kind(function)`: `packets("sent_pkts", "Packets sent.").count(|class, _| class.sent)`.
pub(super) struct Column<T, C: ?Sized> {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) help: &'static str,
    pub(super) value: Value<T, C>,
}

/// Functions that give a cell. A real one is empty where it is undefined.
pub(super) enum Value<T, C: ?Sized> {
    Real(fn(&T, &C) -> Option<f64>),
    Count(fn(&T, &C) -> u64),
    Name(for<'t> fn(&'t T, &C) -> &'t str),
    /// A name that the context of the table has.
    Context(for<'c> fn(&T, &'c C) -> &'c str),
}

/// A column whose value is still missing.
#[derive(Clone, Copy)]
pub(super) struct Heading {
    name: &'static str,
    unit: Unit,
    help: &'static str,
}

impl Heading {
    /// The column of a number that may be undefined.
    pub(super) const fn real<T, C: ?Sized>(self, value: fn(&T, &C) -> Option<f64>) -> Column<T, C> {
        self.column(Value::Real(value))
    }

    /// The column of a number of packets, bytes or events.
    pub(super) const fn count<T, C: ?Sized>(self, value: fn(&T, &C) -> u64) -> Column<T, C> {
        self.column(Value::Count(value))
    }

    /// The column of a name that the item of a row has.
    pub(super) const fn name<T, C: ?Sized>(
        self,
        value: for<'t> fn(&'t T, &C) -> &'t str,
    ) -> Column<T, C> {
        self.column(Value::Name(value))
    }

    /// The column of a name that the context of the table has.
    pub(super) const fn context_name<T, C: ?Sized>(
        self,
        value: for<'c> fn(&T, &'c C) -> &'c str,
    ) -> Column<T, C> {
        self.column(Value::Context(value))
    }

    const fn column<T, C: ?Sized>(self, value: Value<T, C>) -> Column<T, C> {
        let Heading { name, unit, help } = self;
        Column {
            name,
            unit,
            help,
            value,
        }
    }
}

pub(super) const fn seconds(name: &'static str, help: &'static str) -> Heading {
    Unit::Seconds.heading(name, help)
}

pub(super) const fn nanoseconds(name: &'static str, help: &'static str) -> Heading {
    Unit::Nanoseconds.heading(name, help)
}

pub(super) const fn packets(name: &'static str, help: &'static str) -> Heading {
    Unit::Packets.heading(name, help)
}

pub(super) const fn bytes(name: &'static str, help: &'static str) -> Heading {
    Unit::Bytes.heading(name, help)
}

pub(super) const fn bits(name: &'static str, help: &'static str) -> Heading {
    Unit::Bits.heading(name, help)
}

pub(super) const fn bits_per_second(name: &'static str, help: &'static str) -> Heading {
    Unit::BitsPerSecond.heading(name, help)
}

pub(super) const fn decibels(name: &'static str, help: &'static str) -> Heading {
    Unit::Decibels.heading(name, help)
}

/// Of a name, a part of something, or a number of times.
pub(super) const fn unitless(name: &'static str, help: &'static str) -> Heading {
    Unit::None.heading(name, help)
}

impl<T, C: ?Sized> Value<T, C> {
    fn kind(&self) -> Kind {
        match self {
            Value::Real(_) => Kind::Real,
            Value::Count(_) => Kind::Count,
            Value::Name(_) | Value::Context(_) => Kind::Name,
        }
    }
}

/// The first column of the tables of links, in a run over several.
pub(super) const LINK_NAME: &str = "link";

/// A table whose columns compute their own values.
pub(super) struct TableOf<T: 'static, C: ?Sized + 'static> {
    columns: &'static [Column<T, C>],
    /// Those that only a run over several links has.
    more: &'static [Column<T, C>],
    /// The link of the next rows, where the first column is its name.
    link: Option<String>,
    rows: Rows,
}

impl<T, C: ?Sized> TableOf<T, C> {
    pub(super) fn new(name: &'static str, columns: &'static [Column<T, C>]) -> TableOf<T, C> {
        TableOf::with(name, columns, &[])
    }

    /// The same table of a run over several links, with more columns at its end.
    pub(super) fn with(
        name: &'static str,
        columns: &'static [Column<T, C>],
        more: &'static [Column<T, C>],
    ) -> TableOf<T, C> {
        let all = columns.iter().chain(more);
        let kinds = all.map(|column| (column.name, column.value.kind()));
        TableOf {
            columns,
            more,
            link: None,
            rows: Rows::new(name, kinds),
        }
    }

    /// The same table for several links: its first column is the name of the link, and there may be more at its end.
    pub(super) fn of_links(
        name: &'static str,
        columns: &'static [Column<T, C>],
        more: &'static [Column<T, C>],
    ) -> TableOf<T, C> {
        let kinds = columns
            .iter()
            .chain(more)
            .map(|column| (column.name, column.value.kind()));
        TableOf {
            columns,
            more,
            link: Some(String::new()),
            rows: Rows::new(name, [(LINK_NAME, Kind::Name)].into_iter().chain(kinds)),
        }
    }

    /// The next rows are of this link; of no meaning in a table of one link.
    pub(super) fn set_link(&mut self, name: &str) {
        if let Some(link) = &mut self.link {
            name.clone_into(link);
        }
    }

    /// Adds the row of an item.
    pub(super) fn add(&mut self, item: &T, context: &C) {
        if let Some(link) = &self.link {
            self.rows.name(link);
        }
        for column in self.columns.iter().chain(self.more) {
            match column.value {
                Value::Real(value) => self.rows.real(value(item, context)),
                Value::Count(value) => self.rows.count(value(item, context)),
                Value::Name(value) => self.rows.name(value(item, context)),
                Value::Context(value) => self.rows.name(value(item, context)),
            };
        }
    }

    /// As [`Rows::flush_full`].
    pub(super) fn flush_full(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.rows.flush_full(sink)
    }

    /// As [`Rows::flush`].
    pub(super) fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.rows.flush(sink)
    }

    /// The rows there are.
    pub(super) fn into_table(self) -> Table {
        self.rows.into_table()
    }
}

impl<T, C: ?Sized> std::fmt::Debug for TableOf<T, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.rows.fmt(f)
    }
}
