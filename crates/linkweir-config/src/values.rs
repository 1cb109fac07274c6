// SPDX-License-Identifier: BSD-3-Clause
//! Values as functions of time: a constant, a cosine, steps or straight lines.

use crate::signal::{End, Signal};

use crate::fault::Fault;
use crate::keys::time::{AMPLITUDE, AT, END, LINES, MEAN, PERIOD, PHASE, STEPS};
use crate::keys::{Form, Shape};
use crate::limits;
use crate::reader::{Entry, Value};
use crate::units::{self, Kind};

/// The kind of the values of a signal, and their range.
#[derive(Clone, Copy)]
pub struct Values {
    /// The kind of quantity.
    pub kind: Kind,
    /// Smallest value, base units.
    pub min: f64,
    /// Largest value, base units.
    pub max: f64,
}

/// A value over time.
impl Form for Values {
    type Value = Signal;

    fn read(&self, entry: &Entry<'_, '_>) -> Result<Signal, Fault> {
        read(entry, *self)
    }

    fn written(&self, value: &Signal) -> Value {
        Value::OverTime(value.clone(), self.kind)
    }

    fn shape(&self) -> Shape {
        Shape::OverTime(self.kind, self.min, self.max)
    }
}

impl Values {
    fn value(self, entry: &Entry<'_, '_>) -> Result<f64, Fault> {
        entry.quantity(self.kind, self.min, self.max)
    }
}

/// Reads a signal.
///
/// # Errors
/// A value or a time that is wrong, or keys that do not go together.
pub fn read(entry: &Entry<'_, '_>, values: Values) -> Result<Signal, Fault> {
    let Some(mut table) = entry.table() else {
        return Ok(Signal::Constant(values.value(entry)?));
    };
    let signal = if let Some(mean) = table.find(MEAN.name) {
        Signal::Cosine {
            mean: values.value(&mean)?,
            amplitude: table.given(&AMPLITUDE)?.ok_or_else(|| {
                table.fault_at(AMPLITUDE.name, "is missing; write amplitude = 0.3")
            })?,
            period_ns: PERIOD.form.read(&table.need(PERIOD.name, "\"15s\"")?)?,
            phase_rad: table.given(&PHASE)?.unwrap_or(0.0),
        }
    } else if let Some(steps) = table.find(STEPS.name) {
        let points = points(&steps, values)?;
        let last = points.last().map_or(0, |p| p.0);
        let end = match table.given(&END)? {
            Some(0) => End::Loop {
                period_ns: after(&table.need(PERIOD.name, "\"20s\"")?, last)?,
            },
            None | Some(1) => End::Hold,
            Some(_) => End::Stop {
                at_ns: after(&table.need(AT.name, "\"20s\"")?, last)?,
            },
        };
        Signal::Steps {
            points: points.into(),
            end,
        }
    } else if let Some(lines) = table.find(LINES.name) {
        Signal::Lines {
            points: points(&lines, values)?.into(),
        }
    } else {
        return Err(entry.fault("must be a value or a table with one of mean, steps or lines"));
    };
    table.finish()?;
    Ok(signal)
}

fn after(entry: &Entry<'_, '_>, last: u64) -> Result<u64, Fault> {
    let at = AT.form.read(entry)?;
    if at > last {
        Ok(at)
    } else {
        Err(entry.fault(format!(
            "must be later than the last step, {}",
            units::show_whole(last, Kind::Time)
        )))
    }
}

fn points(list: &Entry<'_, '_>, values: Values) -> Result<Vec<(u64, f64)>, Fault> {
    let mut points: Vec<(u64, f64)> = Vec::new();
    for [at, value] in list.pairs("[time, value]", limits::POINTS)? {
        let t = AT.form.read(&at)?;
        match points.last() {
            None if t != 0 => return Err(at.fault("the first time must be 0s")),
            Some((before, _)) if t <= *before => {
                return Err(at.fault(format!(
                    "must be later than {}",
                    units::show_whole(*before, Kind::Time)
                )));
            }
            _ => {}
        }
        points.push((t, values.value(&value)?));
    }
    Ok(points)
}

/// Value at t = 0.
pub fn first(signal: &Signal) -> f64 {
    match signal {
        Signal::Constant(value) => *value,
        Signal::Cosine {
            mean,
            amplitude,
            phase_rad,
            ..
        } => mean * (1.0 + amplitude * libm::cos(*phase_rad)),
        Signal::Steps { points, .. } | Signal::Lines { points } => {
            points.first().map_or(0.0, |p| p.1)
        }
    }
}

/// No value exceeds this.
pub fn greatest(signal: &Signal) -> f64 {
    match signal {
        Signal::Constant(value) => *value,
        Signal::Cosine {
            mean, amplitude, ..
        } => mean * (1.0 + amplitude),
        Signal::Steps { points, .. } | Signal::Lines { points } => {
            points.iter().fold(0.0, |m, p| m.max(p.1))
        }
    }
}

/// Mean over one round where the signal repeats itself, else over the run.
pub fn mean(signal: &Signal, duration_ns: u64) -> f64 {
    let duration = duration_ns.max(1);
    match signal {
        Signal::Constant(value) => *value,
        Signal::Cosine { mean, .. } => *mean,
        Signal::Steps { points, end } => {
            let (until, length) = match end {
                End::Loop { period_ns } => (*period_ns, *period_ns),
                End::Hold => (duration, duration),
                End::Stop { at_ns } => (duration.min(*at_ns), duration),
            };
            let ends = points.iter().skip(1).map(|p| p.0).chain([u64::MAX]);
            let area: f64 = points
                .iter()
                .zip(ends)
                .map(|((start, value), end)| end.min(until).saturating_sub(*start) as f64 * value)
                .sum();
            area / length as f64
        }
        Signal::Lines { points } => {
            let mut area = 0.0;
            for pair in points.windows(2) {
                let ((t0, v0), (t1, v1)) = (pair[0], pair[1]);
                let end = t1.min(duration);
                if end > t0 {
                    let share = (end - t0) as f64 / (t1 - t0) as f64;
                    area += (end - t0) as f64 * (v0 + 0.5 * (v1 - v0) * share);
                }
            }
            if let Some((t, v)) = points.last() {
                area += duration.saturating_sub(*t) as f64 * v;
            }
            area / duration as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn means_are_areas() {
        let steps = |end| Signal::Steps {
            points: vec![(0, 10.0), (2 * S, 4.0)].into(),
            end,
        };
        assert_eq!(mean(&steps(End::Loop { period_ns: 4 * S }), 100 * S), 7.0);
        assert_eq!(mean(&steps(End::Hold), 8 * S), (20.0 + 24.0) / 8.0);
        assert_eq!(mean(&steps(End::Stop { at_ns: 3 * S }), 8 * S), 24.0 / 8.0);
        assert_eq!(mean(&steps(End::Hold), S), 10.0);
        let lines = Signal::Lines {
            points: vec![(0, 0.0), (4 * S, 8.0)].into(),
        };
        assert_eq!(mean(&lines, 4 * S), 4.0);
        assert_eq!(mean(&lines, 2 * S), 2.0);
        assert_eq!(mean(&lines, 8 * S), (16.0 + 32.0) / 8.0);
    }
}
