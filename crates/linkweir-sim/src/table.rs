// SPDX-License-Identifier: BSD-3-Clause
//! Result tables, handed out in chunks of rows so that a run's memory does not grow with simulated time.

use std::ops::ControlFlow;

/// Some rows of a result table; all columns have the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Which table the rows belong to, such as `series`.
    pub name: &'static str,
    /// Column names and values, in order.
    pub columns: Vec<(String, Column)>,
}

/// Values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Numbers; `None` where undefined, never NaN.
    Real(Vec<Option<f64>>),
    /// Counts.
    Count(Vec<u64>),
    /// Signed whole numbers.
    Whole(Vec<i64>),
    /// Names.
    Name(Vec<String>),
}

impl Column {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Column::Real(v) => v.len(),
            Column::Count(v) => v.len(),
            Column::Whole(v) => v.len(),
            Column::Name(v) => v.len(),
        }
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where a run's results go while it runs.
pub trait Sink {
    /// Takes the next rows of a table.
    ///
    /// # Errors
    /// A message that ends the run.
    fn chunk(&mut self, table: Table) -> Result<(), String>;

    /// Called now and then with the simulated time; `Break` ends the run early and keeps what was recorded.
    ///
    /// `sent_bytes` gives what each class has sent since the start, in the scenario's order, to those who ask.
    fn progress(
        &mut self,
        now_ns: u64,
        sent_bytes: &mut dyn Iterator<Item = u64>,
    ) -> ControlFlow<()> {
        let _ = (now_ns, sent_bytes);
        ControlFlow::Continue(())
    }
}
