// SPDX-License-Identifier: BSD-3-Clause
//! Result tables, handed out in chunks of rows so that a run's memory does not grow with simulated time.

use std::collections::BTreeMap;
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

/// A column as the buffers that Arrow has, for programs that are not in Rust. Numbers are little-endian.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffers<'a> {
    /// `real`: f64. `count`: u64. `whole`: i64. `name`: u32, each the number of a word.
    pub kind: &'static str,
    /// The values, 0 where there is none.
    pub values: Vec<u8>,
    /// A bit for each row, the least significant first: whether there is a value. None if all rows have one.
    pub validity: Option<Vec<u8>>,
    /// The words of a column of names, in the order in which they come.
    pub words: Vec<&'a str>,
}

impl Column {
    /// The column as buffers.
    #[must_use]
    pub fn buffers(&self) -> Buffers<'_> {
        let plain = |kind, values| Buffers {
            kind,
            values,
            validity: None,
            words: Vec::new(),
        };
        match self {
            Column::Real(v) => Buffers {
                validity: validity(v),
                ..plain("real", bytes(v, |x| x.unwrap_or(0.0).to_le_bytes()))
            },
            Column::Count(v) => plain("count", bytes(v, |x| x.to_le_bytes())),
            Column::Whole(v) => plain("whole", bytes(v, |x| x.to_le_bytes())),
            Column::Name(v) => {
                let mut known: BTreeMap<&str, u32> = BTreeMap::new();
                let mut words: Vec<&str> = Vec::new();
                let mut number = |word| {
                    *known.entry(word).or_insert_with(|| {
                        words.push(word);
                        u32::try_from(words.len() - 1).unwrap_or(u32::MAX)
                    })
                };
                let values = v.iter().flat_map(|word| number(word).to_le_bytes());
                let values = values.collect();
                Buffers {
                    words,
                    ..plain("name", values)
                }
            }
        }
    }
}

fn bytes<T, const N: usize>(values: &[T], encode: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(encode).collect()
}

fn validity(values: &[Option<f64>]) -> Option<Vec<u8>> {
    let mut bits = vec![0; values.len().div_ceil(8)];
    for (row, _) in values.iter().enumerate().filter(|(_, x)| x.is_some()) {
        bits[row / 8] |= 1 << (row % 8);
    }
    let has_all = values.iter().all(Option::is_some);
    (!has_all).then_some(bits)
}

/// Where a run's results go while it runs.
pub trait Sink {
    /// Takes the next rows of a table.
    ///
    /// # Errors
    /// A message that ends the run.
    fn chunk(&mut self, table: Table) -> Result<(), String>;

    /// Whether rows of a table are wanted. A run may leave out the others that take long to make.
    fn wants(&self, table: &str) -> bool {
        let _ = table;
        true
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_those_of_arrow() {
        let real = Column::Real(vec![Some(1.5), None]);
        let found = real.buffers();
        let values = [1.5_f64.to_le_bytes(), [0; 8]].concat();
        assert_eq!((found.kind, found.values), ("real", values));
        assert_eq!(found.validity, Some(vec![0b01]));
        let nine = vec![Some(0.0); 9];
        assert_eq!(Column::Real(nine).buffers().validity, None);
        let whole = Column::Whole(vec![-2]);
        assert_eq!(
            whole.buffers().values,
            [254, 255, 255, 255, 255, 255, 255, 255]
        );
        let names = Column::Name(["b", "a", "b"].map(str::to_owned).to_vec());
        let found = names.buffers();
        assert_eq!(found.words, ["b", "a"]);
        assert_eq!(found.values, [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
