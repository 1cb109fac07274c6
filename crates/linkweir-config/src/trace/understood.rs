// SPDX-License-Identifier: BSD-3-Clause
//! What a file was taken for, in words that its user can check.

use std::path::Path;

use crate::signal::{Capacity, End, Signal};
use crate::units::{self, Kind};

use super::spans::Spans;

/// What a measured series is, in one line without a point at its end: a trace, delays, attenuations or a fading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The notation, or what the file holds.
    pub notation: String,
    /// The columns and their units.
    pub columns: String,
    /// Values, one per line or interval.
    pub values: usize,
    /// The usual time from one to the next, ns.
    pub usual_ns: Option<u64>,
    /// The first time, as it is written; empty if lines have none.
    pub start: String,
    /// How long one round is, ns; None where nothing says it.
    pub length_ns: Option<u64>,
    /// What follows.
    pub end: String,
    /// The mean, with its unit.
    pub mean: String,
    /// Times without lines, longer than three times the usual interval.
    pub gaps: usize,
    /// The longest of them, ns.
    pub longest_gap_ns: u64,
}

impl Series {
    /// Of values at these times, ns; the last counts as long as the one before.
    pub fn at(times_ns: &[u64]) -> Series {
        let spans = Spans::of(times_ns);
        let gaps = spans.gaps(times_ns);
        let longest = gaps.iter().map(|at| times_ns[at + 1] - times_ns[*at]).max();
        let length_ns = match times_ns {
            [first, .., before, last] => Some(2 * last - before - first),
            [first, last] => Some(2 * (last - first)),
            _ => None,
        };
        Series {
            values: times_ns.len(),
            usual_ns: spans.is_known().then_some(spans.usual_ns),
            length_ns,
            gaps: gaps.len(),
            longest_gap_ns: longest.unwrap_or(0),
            ..Series::default()
        }
    }

    /// With the file's name in front.
    pub fn of_file(&self, path: &Path) -> String {
        format!("{}: {}", path.display(), self.show())
    }

    /// In one line, without a point at its end.
    pub fn show(&self) -> String {
        let time = |ns| units::show_whole(ns, Kind::Time);
        let mut parts = vec![self.notation.clone(), self.columns.clone()];
        let every = self
            .usual_ns
            .map_or_else(String::new, |ns| format!(", mostly every {}", time(ns)));
        let noun = if self.values == 1 { "value" } else { "values" };
        parts.push(format!("{} {noun}{every}", self.values));
        if !self.start.is_empty() {
            parts.push(format!("from {}", self.start));
        }
        if let Some(ns) = self.length_ns {
            parts.push(format!("{} long", time(ns)));
        }
        parts.push(format!("then {}", self.end));
        parts.push(format!("mean {}", self.mean));
        parts.push(match self.gaps {
            0 => "no gaps".to_string(),
            1 => format!("1 gap of {}", time(self.longest_gap_ns)),
            many => format!("{many} gaps of up to {}", time(self.longest_gap_ns)),
        });
        parts.join("; ")
    }
}

/// What a trace was taken for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Understood {
    /// The columns and their units.
    pub columns: String,
    /// The first time, as it is written; empty if lines have none.
    pub start: String,
    /// Values, one per line or interval.
    pub values: usize,
    /// The usual time from one to the next, ns.
    pub usual_ns: Option<u64>,
    /// How long one round is, ns; the last value counts as long as the one before. None where nothing says it.
    pub length_ns: Option<u64>,
    /// Mean over a round, bit/s.
    pub mean_bps: f64,
    /// Times without lines, longer than three times the usual interval.
    pub gaps: usize,
    /// The longest of them, ns.
    pub longest_gap_ns: u64,
    /// What was changed or is doubtful, a sentence each.
    pub doubts: Vec<String>,
}

impl Understood {
    /// Of a capacity alone.
    pub(super) fn of(capacity: &Capacity) -> Understood {
        match capacity {
            Capacity::Opportunities { at_ns, bytes } => {
                let period_ns = at_ns.last().copied().unwrap_or(0).max(1);
                let bits = at_ns.len() as f64 * 8.0 * f64::from(*bytes);
                Understood {
                    values: at_ns.len(),
                    length_ns: Some(period_ns),
                    mean_bps: bits / (period_ns as f64 * 1e-9),
                    ..Understood::default()
                }
            }
            Capacity::Rate(Signal::Steps { points, end }) => {
                let length_ns = match (end, &points[..]) {
                    (End::Loop { period_ns }, _) => Some(*period_ns),
                    (End::Stop { at_ns }, _) => Some(*at_ns),
                    (End::Hold, [.., (before_ns, _), (last_ns, _)]) => {
                        Some(2 * last_ns - before_ns)
                    }
                    (End::Hold, _) => None,
                };
                Understood {
                    values: points.len(),
                    length_ns,
                    mean_bps: mean_of(points, length_ns),
                    ..Understood::default()
                }
            }
            Capacity::Rate(_) => Understood::default(),
        }
    }

    /// In one line, without a point at its end.
    pub fn show(&self, notation: &str, end: &str) -> String {
        let series = Series {
            notation: notation.to_string(),
            columns: self.columns.clone(),
            values: self.values,
            usual_ns: self.usual_ns,
            start: self.start.clone(),
            length_ns: self.length_ns,
            end: end.to_string(),
            mean: rounded(self.mean_bps),
            gaps: self.gaps,
            longest_gap_ns: self.longest_gap_ns,
        };
        series.show()
    }
}

/// A rate with four digits.
fn rounded(bps: f64) -> String {
    let scale = libm::pow(10.0, libm::log10(bps.max(1.0)).floor() - 3.0).max(1.0);
    let whole = (bps / scale).round() * scale;
    units::show_whole(whole as u64, Kind::Rate)
}

/// Mean over a round; without one, the only value.
pub(super) fn mean_of(points: &[(u64, f64)], length_ns: Option<u64>) -> f64 {
    let Some(length_ns) = length_ns.filter(|ns| *ns > 0) else {
        return points.first().map_or(0.0, |point| point.1);
    };
    let ends = points
        .iter()
        .skip(1)
        .map(|point| point.0)
        .chain([length_ns]);
    let area: f64 = points
        .iter()
        .zip(ends)
        .map(|((start, value), end)| end.min(length_ns).saturating_sub(*start) as f64 * value)
        .sum();
    area / length_ns as f64
}
