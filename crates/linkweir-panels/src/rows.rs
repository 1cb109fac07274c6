// SPDX-License-Identifier: BSD-3-Clause
//! Some rows of a table, as a run hands them out or as they were stored.

use std::borrow::Cow;
use std::collections::BTreeMap;

use linkweir_sim::table::{Column, Table};

/// The values of a column.
#[derive(Clone, Debug)]
pub enum Cells<'a> {
    /// Numbers; NaN where there is none.
    Numbers(Cow<'a, [f64]>),
    /// Names, each as its number in a list of words.
    Names {
        /// The words.
        words: Vec<Cow<'a, str>>,
        /// A number of a word for each row.
        places: Cow<'a, [u32]>,
    },
}

impl Cells<'_> {
    fn len(&self) -> usize {
        match self {
            Cells::Numbers(values) => values.len(),
            Cells::Names { places, .. } => places.len(),
        }
    }
}

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    columns: Vec<(Cow<'a, str>, Cells<'a>)>,
}

impl<'a> Rows<'a> {
    /// Of some columns, all equally long.
    #[must_use]
    pub fn new(columns: Vec<(Cow<'a, str>, Cells<'a>)>) -> Rows<'a> {
        Rows { columns }
    }

    /// Those of a chunk of a run.
    #[must_use]
    pub fn of(table: &'a Table) -> Rows<'a> {
        let columns = table.columns.iter();
        Rows {
            columns: columns
                .map(|(name, column)| (Cow::Borrowed(name.as_str()), cells(column)))
                .collect(),
        }
    }

    /// Those with this word in a column of names, without this column.
    #[must_use]
    pub fn with(&self, column: &str, word: &str) -> Rows<'static> {
        let wanted: Vec<usize> = match self.names(column) {
            Some((words, places)) => {
                let place = words.iter().position(|known| known == word);
                let is_wanted = |at: &usize| Some(places[*at] as usize) == place;
                (0..places.len()).filter(is_wanted).collect()
            }
            None => Vec::new(),
        };
        let others = self.columns.iter().filter(|(name, _)| name != column);
        Rows {
            columns: others
                .map(|(name, cells)| (Cow::Owned(name.clone().into_owned()), taken(cells, &wanted)))
                .collect(),
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |(_, cells)| cells.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn cells(&self, column: &str) -> Option<&Cells<'a>> {
        let mut all = self.columns.iter();
        all.find_map(|(name, cells)| (name == column).then_some(cells))
    }

    /// A column of numbers.
    #[must_use]
    pub fn numbers(&self, column: &str) -> Option<&[f64]> {
        match self.cells(column)? {
            Cells::Numbers(values) => Some(values),
            Cells::Names { .. } => None,
        }
    }

    /// The words of a column of names, and a number of one for each row.
    #[must_use]
    pub fn names(&self, column: &str) -> Option<(&[Cow<'a, str>], &[u32])> {
        match self.cells(column)? {
            Cells::Names { words, places } => Some((words, places)),
            Cells::Numbers(_) => None,
        }
    }
}

fn cells(column: &Column) -> Cells<'_> {
    match column {
        Column::Real(values) => {
            Cells::Numbers(values.iter().map(|v| v.unwrap_or(f64::NAN)).collect())
        }
        Column::Count(values) => Cells::Numbers(values.iter().map(|v| *v as f64).collect()),
        Column::Whole(values) => Cells::Numbers(values.iter().map(|v| *v as f64).collect()),
        Column::Name(values) => {
            let mut known: BTreeMap<&str, u32> = BTreeMap::new();
            let mut words = Vec::new();
            let places = values.iter().map(|word| {
                *known.entry(word).or_insert_with(|| {
                    words.push(Cow::Borrowed(word.as_str()));
                    words.len() as u32 - 1
                })
            });
            let places = places.collect();
            Cells::Names { words, places }
        }
    }
}

fn taken(cells: &Cells<'_>, wanted: &[usize]) -> Cells<'static> {
    match cells {
        Cells::Numbers(values) => Cells::Numbers(wanted.iter().map(|at| values[*at]).collect()),
        Cells::Names { words, places } => Cells::Names {
            words: words
                .iter()
                .map(|word| Cow::Owned(word.clone().into_owned()))
                .collect(),
            places: wanted.iter().map(|at| places[*at]).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_link_are_those_with_its_name() {
        let table = Table {
            name: "series",
            columns: vec![
                (
                    "link".to_owned(),
                    Column::Name(vec!["a".into(), "b".into(), "a".into()]),
                ),
                ("x".to_owned(), Column::Real(vec![Some(1.0), None, None])),
            ],
        };
        let rows = Rows::of(&table).with("link", "a");
        assert_eq!(rows.len(), 2);
        let x = rows.numbers("x").unwrap();
        assert!(x[0] == 1.0 && x[1].is_nan());
        assert!(rows.names("link").is_none());
        assert!(Rows::of(&table).with("link", "c").is_empty());
    }
}
