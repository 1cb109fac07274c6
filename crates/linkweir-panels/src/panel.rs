// SPDX-License-Identifier: BSD-3-Clause
//! The parts of a panel: lines over one horizontal axis, with units.

/// Delays below are drawn here, ms, as a logarithmic axis has no 0.
pub(crate) const SHORTEST_MS: f64 = 0.001;

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A line.
    Line,
    /// Filled down to 0.
    Area,
    /// Points.
    Points,
    /// Thin and grey.
    Guide,
    /// A thin bound above the line of the same class.
    Upper,
    /// A thin bound below it.
    Lower,
}

impl Look {
    /// Its name in the data of a page.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Look::Line => "line",
            Look::Area => "area",
            Look::Points => "points",
            Look::Guide => "guide",
            Look::Upper => "upper",
            Look::Lower => "lower",
        }
    }
}

/// One line of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it shows.
    pub label: String,
    /// A value for each place of the panel's `x`; NaN where there is none.
    pub y: Vec<f64>,
    /// Number of the drawn class whose colour it has, and with which it is shown and hidden.
    pub of: Option<usize>,
    /// How it is drawn.
    pub look: Look,
    /// Whether it is hidden at first, as it would make the other lines flat.
    pub off: bool,
    /// Its place among lines that are equal to it, and how many these are; none for a line that is alone. The first is drawn
    /// whole, the others with gaps, so that all are seen in turns.
    pub turn: Option<(usize, usize)>,
}

impl Line {
    /// A line of a class, or of none.
    #[must_use]
    pub fn new(label: impl Into<String>, y: Vec<f64>, of: Option<usize>, look: Look) -> Line {
        Line {
            label: label.into(),
            y,
            of,
            look,
            off: false,
            turn: None,
        }
    }
}

/// Lines in one pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The name of its file, unique in a run.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Places on the horizontal axis, rising.
    pub x: Vec<f64>,
    /// The horizontal axis, with its unit.
    pub x_label: String,
    /// The vertical axis, with its unit.
    pub y_label: String,
    /// The lines.
    pub lines: Vec<Line>,
    /// The horizontal axis is the time of the run.
    pub over_time: bool,
    /// Each value lasts until the next place.
    pub steps: bool,
    /// The horizontal axis is logarithmic.
    pub log_x: bool,
    /// The vertical axis is logarithmic.
    pub log_y: bool,
    /// Ends of the vertical axis; none where the values decide.
    pub y_range: Option<(f64, f64)>,
    /// The vertical axis begins at 0, unless it is logarithmic.
    pub from_zero: bool,
    /// How to read it, in sentences.
    pub note: String,
}

impl Panel {
    /// A panel over the time of the run, in steps from 0.
    pub(crate) fn over_time(name: &str, title: &str, x: Vec<f64>, y_label: String) -> Panel {
        Panel {
            name: name.to_owned(),
            title: title.to_owned(),
            x,
            x_label: "time (s)".to_owned(),
            y_label,
            lines: Vec::new(),
            over_time: true,
            steps: true,
            log_x: false,
            log_y: false,
            y_range: None,
            from_zero: true,
            note: String::new(),
        }
    }
}

/// The factor and the unit with which values up to `most` are read easily.
pub(crate) fn prefixed(most: f64, unit: &str) -> (f64, String) {
    for (size, prefix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if most >= size {
            return (1.0 / size, format!("{prefix}{unit}"));
        }
    }
    (1.0, unit.to_owned())
}

/// The largest magnitude in several columns; 0 if there is none.
pub(crate) fn largest<'a>(columns: impl IntoIterator<Item = &'a [f64]>) -> f64 {
    let all = columns.into_iter().flatten();
    all.filter(|value| value.is_finite())
        .fold(0.0, |most, value| most.max(value.abs()))
}

/// The starts of intervals, and the end of the run, at which the last one ends: all panels over time end there.
pub(crate) fn to_end(times: &[f64], end_s: f64) -> Vec<f64> {
    let last = times.last().copied().unwrap_or(0.0);
    let mut x = times.to_vec();
    x.push(end_s.max(last));
    x
}

/// The values of intervals, the last one again at the end of the run.
pub(crate) fn held(mut values: Vec<f64>) -> Vec<f64> {
    values.extend(values.last().copied());
    values
}

/// Values times a factor.
pub(crate) fn scaled(values: &[f64], factor: f64) -> Vec<f64> {
    values.iter().map(|value| value * factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_prefix_with_which_they_are_read_easily() {
        assert_eq!(prefixed(20e6, "bit/s"), (1e-6, "Mbit/s".to_owned()));
        assert_eq!(prefixed(12.0, "bit/s"), (1.0, "bit/s".to_owned()));
    }

    #[test]
    fn the_largest_is_that_of_the_known_magnitudes() {
        let columns: [&[f64]; 2] = [&[1.0, f64::NAN], &[-3.0]];
        assert_eq!(largest(columns), 3.0);
        assert_eq!(largest([&[f64::NAN][..]]), 0.0);
    }
}
