// SPDX-License-Identifier: BSD-3-Clause
//! Builds result tables row by row and passes them on in chunks.

use crate::table::{Column, Sink, Table};

/// Rows per chunk.
const CHUNK: usize = 2048;

/// The values of a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Real,
    Count,
    Whole,
    Name,
}

/// Rows of one table that were not handed out yet.
#[derive(Debug)]
pub(super) struct Rows {
    table: Table,
    at: usize,
}

impl Rows {
    pub(super) fn new<'n>(
        name: &'static str,
        columns: impl IntoIterator<Item = (&'n str, Kind)>,
    ) -> Rows {
        let columns = columns
            .into_iter()
            .map(|(name, kind)| {
                let column = match kind {
                    Kind::Real => Column::Real(Vec::new()),
                    Kind::Count => Column::Count(Vec::new()),
                    Kind::Whole => Column::Whole(Vec::new()),
                    Kind::Name => Column::Name(Vec::new()),
                };
                (name.to_owned(), column)
            })
            .collect();
        Rows {
            table: Table { name, columns },
            at: 0,
        }
    }

    /// The next cell of the row: a number, nothing where it is undefined.
    pub(super) fn real(&mut self, value: Option<f64>) -> &mut Rows {
        if let Column::Real(column) = self.cell() {
            column.push(value.filter(|v| v.is_finite()));
        }
        self
    }

    pub(super) fn count(&mut self, value: u64) -> &mut Rows {
        if let Column::Count(column) = self.cell() {
            column.push(value);
        }
        self
    }

    pub(super) fn whole(&mut self, value: i64) -> &mut Rows {
        if let Column::Whole(column) = self.cell() {
            column.push(value);
        }
        self
    }

    pub(super) fn name(&mut self, value: &str) -> &mut Rows {
        if let Column::Name(column) = self.cell() {
            column.push(value.to_owned());
        }
        self
    }

    /// Hands a full chunk out.
    pub(super) fn flush_full(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        if self.rows() >= CHUNK {
            return self.flush(sink);
        }
        Ok(())
    }

    /// Hands out what there is.
    pub(super) fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        let rows = self.rows();
        assert!(
            self.at == 0 && self.table.columns.iter().all(|(_, c)| c.len() == rows),
            "rows are complete"
        );
        if rows == 0 {
            return Ok(());
        }
        let empty = self
            .table
            .columns
            .iter()
            .map(|(name, column)| (name.clone(), emptied(column)))
            .collect();
        let full = std::mem::replace(&mut self.table.columns, empty);
        sink.chunk(Table {
            name: self.table.name,
            columns: full,
        })
    }

    /// The rows there are.
    pub(super) fn into_table(self) -> Table {
        self.table
    }

    fn rows(&self) -> usize {
        self.table
            .columns
            .first()
            .map_or(0, |(_, column)| column.len())
    }

    fn cell(&mut self) -> &mut Column {
        let at = self.at;
        self.at = (at + 1) % self.table.columns.len();
        &mut self.table.columns[at].1
    }
}

fn emptied(column: &Column) -> Column {
    match column {
        Column::Real(_) => Column::Real(Vec::new()),
        Column::Count(_) => Column::Count(Vec::new()),
        Column::Whole(_) => Column::Whole(Vec::new()),
        Column::Name(_) => Column::Name(Vec::new()),
    }
}
