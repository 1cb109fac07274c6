// SPDX-License-Identifier: BSD-3-Clause
//! What the policy shows of each class over time: credits with their bounds, and parts of the time in a state.

use std::collections::BTreeMap;

use linkweir_core::Stat;
use linkweir_sim::scenario::keys::top;
use linkweir_sim::scenario::Scenario;

use crate::collected::Collected;
use crate::outline::Outline;
use crate::panel::{held, largest, prefixed, scaled, to_end, Line, Look, Panel};
use crate::reservation::bounds_bits;
use crate::words::{short, thousands};

/// The help of a column that is 1 in a state, and 0 otherwise, begins so.
const STATE: &str = "1 while ";
/// A part of the time comes from so many instants at least.
const LEAST_INSTANTS: usize = 10;
const MOST_PARTS: usize = 100;
/// Units by the suffix of a column.
const UNITS: [(&str, &str); 6] = [
    ("bits", "bit"),
    ("bytes", "B"),
    ("pkts", "packets"),
    ("bps", "bit/s"),
    ("s", "s"),
    ("ns", "ns"),
];
/// Units of what policies that serve in proportion show, by their key `unit`.
const MEANS: [(&str, &str); 3] = [
    ("bytes", "bit/s"),
    ("airtime", "ppm of the time"),
    ("packets", "packets per 1000 s"),
];
const SCALED: [&str; 3] = ["bit", "B", "bit/s"];

fn column(stat: &Stat) -> String {
    format!("{}{}", stat.name, stat.unit.suffix())
}

fn stats(scenario: &Scenario) -> &'static [Stat] {
    let policy = scenario.experiment.scheduler.core();
    policy.map_or(&[], |policy| &policy.stats)
}

/// The columns that are wanted of table `levels`.
pub(crate) fn columns(scenario: &Scenario) -> Vec<String> {
    stats(scenario).iter().map(column).collect()
}

/// A panel for each statistic of the policy that is ever other than 0.
pub(crate) fn panels(all: &Collected) -> Vec<Panel> {
    let Some(found) = all.outline("levels") else {
        return Vec::new();
    };
    let made = stats(&all.scenario).iter().filter_map(|stat| {
        let column = column(stat);
        let is_shown =
            |(class, _): &(usize, &str)| found.get(*class, &column).iter().any(|v| *v != 0.0);
        let shown: Vec<(usize, &str)> = all.drawn(found).filter(is_shown).collect();
        let make = if stat.help.starts_with(STATE) {
            part
        } else {
            level
        };
        (!shown.is_empty()).then(|| make(all, found, stat, &column, &shown))
    });
    made.collect()
}

/// Where the rows of the table are: the instants of all classes are the same.
fn instants<'a>(all: &'a Collected, found: &'a Outline) -> &'a [f64] {
    all.drawn(found)
        .next()
        .map_or(&[], |(class, _)| found.times(class))
}

fn level(
    all: &Collected,
    found: &Outline,
    stat: &Stat,
    column: &str,
    shown: &[(usize, &str)],
) -> Panel {
    let times = instants(all, found);
    let values = |class: usize| found.get(class, column);
    let bounds = match column {
        "credit_bits" => bounds_bits(&all.scenario, times),
        _ => BTreeMap::new(),
    };
    let (words, unit) = words(column);
    let unit = if unit.is_empty() {
        unit_of_mean(&all.scenario)
    } else {
        unit
    };
    let (scale, unit) = if SCALED.contains(&unit) {
        let known = shown.iter().filter_map(|(_, name)| bounds.get(*name));
        let known = known.flat_map(|(lower, upper)| [lower.as_slice(), upper.as_slice()]);
        prefixed(
            largest(shown.iter().map(|(class, _)| values(*class)).chain(known)),
            unit,
        )
    } else {
        (1.0, unit.to_owned())
    };
    let mut lines = Vec::new();
    let mut note = "";
    for &(class, name) in shown {
        lines.push(Line::new(
            name,
            scaled(values(class), scale),
            Some(class),
            Look::Line,
        ));
        if let Some((lower, upper)) = bounds.get(name) {
            let bound = |what: &str, bits: &[f64], look| {
                Line::new(
                    format!("{name}, {what}"),
                    scaled(bits, scale),
                    Some(class),
                    look,
                )
            };
            lines.push(bound("LM", upper, Look::Upper));
            lines.push(bound("LR", lower, Look::Lower));
            note = "Thin dashed line: LM, from which on the class is at its low level. Thin dotted line: LR, at which it is \
                    back at its high level.";
        }
    }
    let help = stat
        .help
        .split(':')
        .next()
        .unwrap_or("")
        .replace(" lr ", " LR ");
    let title = if help.starts_with(&words) {
        help
    } else {
        format!("{words}: {help}")
    };
    let y_label = if unit.is_empty() {
        words
    } else {
        format!("{words} ({unit})")
    };
    let mut x = times.to_vec();
    if x.last().is_some_and(|last| *last < all.run.simulated_s) {
        // The last instant was thinned out.
        x = to_end(&x, all.run.simulated_s);
        lines
            .iter_mut()
            .for_each(|line| line.y = held(std::mem::take(&mut line.y)));
    }
    let mut panel = Panel::over_time(&format!("levels-{column}"), &capital(&title), x, y_label);
    panel.lines = lines;
    panel.from_zero = false;
    panel.note = note.to_owned();
    panel
}

/// The part of the time in a state, from the instants at which the simulator looks.
fn part(
    all: &Collected,
    found: &Outline,
    stat: &Stat,
    column: &str,
    shown: &[(usize, &str)],
) -> Panel {
    let times = instants(all, found);
    let each = match times {
        [first, second, ..] => ((second - first) / all.interval_s())
            .round_ties_even()
            .max(1.0) as usize,
        _ => 1,
    };
    let count = LEAST_INSTANTS
        .div_ceil(each)
        .max(times.len().div_ceil(MOST_PARTS));
    // The last instant is the end of the run, where no part begins.
    let begins = &times[..times.len().saturating_sub(1).max(1).min(times.len())];
    let starts: Vec<f64> = begins.iter().step_by(count).copied().collect();
    let state = stat
        .help
        .trim_start_matches(STATE)
        .replace("the queue is", "the class is");
    let title = format!("Part of the time in which {state}");
    let x = to_end(&starts, all.run.simulated_s);
    let y_label = "part of the time (%)".to_owned();
    let mut panel = Panel::over_time(&format!("levels-{column}"), &title, x, y_label);
    for &(class, name) in shown {
        let values = found.get(class, column);
        let parts = values.chunks(count).take(starts.len());
        let parts = parts.map(|part| 100.0 * (part.iter().sum::<f64>() / part.len() as f64));
        panel.lines.push(Line::new(
            name,
            held(parts.collect()),
            Some(class),
            Look::Line,
        ));
    }
    panel.y_range = Some((0.0, 100.0));
    panel.note = format!(
        "Each value is the part of {} instants, {} s apart, in which {state}.",
        thousands(count * each),
        short(all.interval_s())
    );
    panel
}

/// The unit of what policies that serve in proportion show; empty for other policies.
fn unit_of_mean(scenario: &Scenario) -> &'static str {
    let scheduler = scenario.written.tables(top::SCHEDULER.name).first();
    let unit = scheduler
        .and_then(|table| table.get("unit"))
        .map(ToString::to_string);
    let unit = unit.unwrap_or_default();
    let known = MEANS.iter().find(|(key, _)| unit.trim_matches('"') == *key);
    known.map_or("", |(_, unit)| unit)
}

/// The name of a statistic in words, and its unit.
fn words(column: &str) -> (String, &'static str) {
    let known = column.rsplit_once('_').and_then(|(name, suffix)| {
        let unit = UNITS.iter().find(|(known, _)| *known == suffix)?;
        Some((name.replace('_', " "), unit.1))
    });
    known.unwrap_or_else(|| (column.replace('_', " "), ""))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_column_has_its_unit_at_the_end() {
        assert_eq!(words("credit_bits"), ("credit".to_owned(), "bit"));
        assert_eq!(words("mean"), ("mean".to_owned(), ""));
        assert_eq!(capital("mean service"), "Mean service");
    }
}
