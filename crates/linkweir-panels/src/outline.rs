// SPDX-License-Identifier: BSD-3-Clause
//! Series thinned while they are read, so that drawing a long run takes no more memory than drawing a short one.

/// Columns of a table, by class if it has classes, as means over `step` rows of a class. The first column is the time, of which
/// the first of the `step` values is kept. NaN is no value.
pub(crate) struct Outline {
    columns: Vec<String>,
    step: usize,
    /// Of each class, or of the table.
    of: Vec<Thinned>,
}

#[derive(Clone)]
struct Thinned {
    /// Rows of the last mean so far.
    rows: usize,
    /// Of each column the sum and number of known values in these rows; of the time the first one.
    open: Vec<(f64, usize)>,
    /// Of each column the means.
    kept: Vec<Vec<f64>>,
}

impl Outline {
    /// Nothing yet, for so many classes; one for a table without classes.
    pub(crate) fn new(columns: Vec<String>, classes: usize, step: usize) -> Outline {
        let empty = Thinned {
            rows: 0,
            open: vec![(0.0, 0); columns.len()],
            kept: vec![Vec::new(); columns.len()],
        };
        Outline {
            columns,
            step,
            of: vec![empty; classes],
        }
    }

    /// Names of the columns, the time first.
    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Takes a row of a class; `value` gives that of each column.
    pub(crate) fn take(&mut self, class: usize, value: impl Fn(usize) -> f64) {
        let mine = &mut self.of[class];
        for (at, (sum, known)) in mine.open.iter_mut().enumerate() {
            let value = value(at);
            if !value.is_nan() && (at > 0 || mine.rows == 0) {
                *sum += value;
                *known += 1;
            }
        }
        mine.rows += 1;
        if mine.rows == self.step {
            mine.close();
        }
    }

    /// Ends the last means, of fewer rows.
    pub(crate) fn end(&mut self) {
        for mine in self.of.iter_mut().filter(|mine| mine.rows > 0) {
            mine.close();
        }
    }

    /// Whether there are rows of a class.
    pub(crate) fn has(&self, class: usize) -> bool {
        self.of
            .get(class)
            .is_some_and(|mine| !mine.kept[0].is_empty())
    }

    /// The means of a column of a class.
    pub(crate) fn get(&self, class: usize, column: &str) -> &[f64] {
        let at = self.columns.iter().position(|name| name == column);
        &self.of[class].kept[at.expect("a column that was asked for")]
    }

    /// Where the means of a class begin.
    pub(crate) fn times(&self, class: usize) -> &[f64] {
        &self.of[class].kept[0]
    }
}

impl Thinned {
    fn close(&mut self) {
        for (kept, open) in self.kept.iter_mut().zip(&mut self.open) {
            let (sum, known) = std::mem::take(open);
            kept.push(if known > 0 {
                sum / known as f64
            } else {
                f64::NAN
            });
        }
        self.rows = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_is_the_mean_of_the_known_values_of_its_rows() {
        let columns = || vec!["t_s".to_owned(), "x".to_owned()];
        let mut outline = Outline::new(columns(), 2, 2);
        for t in 0..5 {
            let x = if t == 1 { f64::NAN } else { f64::from(t) };
            outline.take(1, |column| if column == 0 { f64::from(t) } else { x });
        }
        outline.end();
        assert!(!outline.has(0) && outline.has(1));
        assert_eq!(outline.times(1), [0.0, 2.0, 4.0]);
        assert_eq!(outline.get(1, "x"), [0.0, 2.5, 4.0]);
        let mut unknown = Outline::new(columns(), 1, 1);
        unknown.take(0, |_| f64::NAN);
        assert!(unknown.get(0, "x")[0].is_nan());
    }
}
