// SPDX-License-Identifier: BSD-3-Clause
//! What panels need of a run: which classes are drawn, in which order and with how many points, and thinned columns of its
//! tables. A run may have thousands of classes and millions of rows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use linkweir_sim::scenario::Scenario;

use crate::outline::Outline;
use crate::rows::Rows;

/// Classes that are visible at first: colours and line styles still tell so many apart.
pub const SHOWN: usize = 8;

/// How much is drawn at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Classes.
    pub classes: usize,
    /// Points of a line.
    pub points: usize,
}

/// What is known of a run besides its scenario and tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Simulated time reached, s.
    pub simulated_s: f64,
    /// Whether it is of a link of a constellation, of which packets may be lost while it does not exist.
    pub comes_and_goes: bool,
}

/// Thinned columns of a run over one link, or of one link of a network.
pub(crate) struct Collected {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) run: Run,
    /// Names of the classes that are drawn, in the order of the legend: that of the scenario, or the busiest first if there are
    /// many.
    pub(crate) classes: Vec<String>,
    pub(crate) left_out: usize,
    pub(crate) step: usize,
    /// Columns over time, by table.
    outlines: BTreeMap<&'static str, Outline>,
    /// Columns of tables with a row for each class, by table and name.
    whole: BTreeMap<(&'static str, &'static str), Vec<f64>>,
}

/// Tables without a column of classes.
const WITHOUT_CLASSES: [&str; 2] = ["link", "carrier"];
/// Columns that are kept whole, by table.
const WHOLE: [(&str, &[&str]); 2] = [
    ("classes", &["rate_bps"]),
    ("terminals", &["channel_rate_bps", "airtime"]),
];

impl Collected {
    /// Nothing yet of a run of this scenario; `columns` has those over time, by table.
    pub(crate) fn new(
        scenario: Arc<Scenario>,
        run: Run,
        limits: Limits,
        sent_bytes: Option<&BTreeMap<String, f64>>,
        columns: Vec<(&'static str, Vec<String>)>,
    ) -> Collected {
        let all = scenario.experiment.classes.iter();
        let mut classes: Vec<String> = all.map(|class| class.name.clone()).collect();
        if let Some(sent) = sent_bytes.filter(|_| classes.len() > SHOWN) {
            let of = |name: &String| sent.get(name).copied().unwrap_or(0.0);
            classes.sort_by(|a, b| of(b).total_cmp(&of(a)));
        }
        let left_out = classes.len().saturating_sub(limits.classes);
        classes.truncate(limits.classes);
        let interval_s = scenario.experiment.interval_ns as f64 / 1e9;
        let intervals = (run.simulated_s / interval_s).ceil();
        let step = ((intervals / limits.points as f64).ceil() as usize).max(1);
        let outline = |(table, columns): (&'static str, Vec<String>)| {
            let parts = if WITHOUT_CLASSES.contains(&table) {
                1
            } else {
                classes.len()
            };
            let columns = std::iter::once("t_s".to_owned()).chain(columns).collect();
            (table, Outline::new(columns, parts, step))
        };
        Collected {
            outlines: columns.into_iter().map(outline).collect(),
            scenario,
            run,
            classes,
            left_out,
            step,
            whole: BTreeMap::new(),
        }
    }

    /// The tables whose rows are wanted, with the columns.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (&'static str, Vec<&str>)> {
        let outlines = self.outlines.iter().map(|(table, outline)| {
            let classes = (!WITHOUT_CLASSES.contains(table)).then_some("class");
            let columns = outline.columns().iter().map(String::as_str);
            (*table, classes.into_iter().chain(columns).collect())
        });
        let whole = WHOLE
            .iter()
            .map(|(table, columns)| (*table, columns.to_vec()));
        outlines.chain(whole)
    }

    /// Takes rows of a table, if they are wanted; the name of a missing column if there is one.
    pub(crate) fn take(&mut self, table: &str, rows: &Rows<'_>) -> Result<(), String> {
        if let Some(outline) = self.outlines.get_mut(table) {
            let columns = outline.columns().iter();
            let columns = columns.map(|name| rows.numbers(name).ok_or_else(|| name.clone()));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            if WITHOUT_CLASSES.contains(&table) {
                (0..rows.len()).for_each(|at| outline.take(0, |column| columns[column][at]));
                return Ok(());
            }
            let (words, places) = rows.names("class").ok_or("class")?;
            let numbers = numbered(words, &self.classes);
            for (at, place) in places.iter().enumerate() {
                if let Some(class) = numbers[*place as usize] {
                    outline.take(class, |column| columns[column][at]);
                }
            }
        } else if let Some((table, columns)) = WHOLE.iter().find(|(name, _)| *name == table) {
            for column in *columns {
                let values = rows.numbers(column).ok_or(*column)?;
                self.whole
                    .entry((table, column))
                    .or_default()
                    .extend(values);
            }
        }
        Ok(())
    }

    /// Ends the last means.
    pub(crate) fn end(&mut self) {
        self.outlines.values_mut().for_each(Outline::end);
    }

    /// The thinned columns of a table, if it has rows.
    pub(crate) fn outline(&self, table: &str) -> Option<&Outline> {
        let outline = self.outlines.get(table)?;
        let classes = if WITHOUT_CLASSES.contains(&table) {
            1
        } else {
            self.classes.len()
        };
        (0..classes)
            .any(|class| outline.has(class))
            .then_some(outline)
    }

    /// Numbers and names of the drawn classes of which an outline has rows.
    pub(crate) fn drawn<'a>(
        &'a self,
        of: &'a Outline,
    ) -> impl Iterator<Item = (usize, &'a str)> + Clone {
        let all = self.classes.iter().map(String::as_str).enumerate();
        all.filter(|(class, _)| of.has(*class))
    }

    /// A column that is kept whole, if its table has rows.
    pub(crate) fn whole(&self, table: &'static str, column: &'static str) -> Option<&[f64]> {
        self.whole.get(&(table, column)).map(Vec::as_slice)
    }

    /// Width of the bins of series, s.
    pub(crate) fn interval_s(&self) -> f64 {
        self.scenario.experiment.interval_ns as f64 / 1e9
    }
}

/// The number of each word among the classes.
fn numbered(words: &[Cow<'_, str>], classes: &[String]) -> Vec<Option<usize>> {
    let numbers: BTreeMap<&str, usize> = classes
        .iter()
        .enumerate()
        .map(|(number, name)| (name.as_str(), number))
        .collect();
    words
        .iter()
        .map(|word| numbers.get(word.as_ref()).copied())
        .collect()
}
