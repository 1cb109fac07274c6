// SPDX-License-Identifier: BSD-3-Clause
//! Rates with the capacity, queueing delays, and packets dropped and lost, over time.

use linkweir_sim::scenario::Scenario;

use crate::collected::{Collected, Run, SHOWN};
use crate::outline::Outline;
use crate::panel::{held, largest, prefixed, scaled, to_end, Line, Look, Panel, SHORTEST_MS};
use crate::reservation;

/// Rates below this part of the capacity cannot be told apart under it.
const FLAT: f64 = 0.25;
const GONE: [&str; 3] = [
    "dropped_limit_pkts",
    "dropped_policy_pkts",
    "lost_link_pkts",
];
/// Of runs with a max_age; the results of older versions have no such column.
const TOO_OLD: &str = "dropped_age_pkts";
/// Of links of a constellation; the laboratory's networks have no such column.
const ABSENT: &str = "absent_pkts";
const PROMISED: &str =
    "Dotted: the rate that a class reserves, of which the link's overhead is a part.";

/// The columns that are wanted of table `series`.
pub(crate) fn columns(scenario: &Scenario, run: Run) -> Vec<String> {
    let all = ["sent_bps", "delay_mean_s"]
        .into_iter()
        .chain(gone(scenario, run));
    all.map(str::to_owned).collect()
}

/// The columns of packets that did not arrive.
fn gone(scenario: &Scenario, run: Run) -> impl Iterator<Item = &'static str> {
    let mut classes = scenario.experiment.classes.iter();
    let too_old = classes
        .any(|class| class.max_age_ns.is_some())
        .then_some(TOO_OLD);
    GONE.into_iter()
        .chain(too_old)
        .chain(run.comes_and_goes.then_some(ABSENT))
}

/// The panels that every run has.
pub(crate) fn panels(all: &Collected) -> Vec<Panel> {
    match all.outline("series") {
        Some(found) => vec![rates(all, found), delays(all, found), drops(all, found)],
        None => Vec::new(),
    }
}

/// Where the intervals begin, the same for all classes, and the end of the run.
fn time(all: &Collected, found: &Outline) -> Vec<f64> {
    to_end(times(all, found), all.run.simulated_s)
}

fn times<'a>(all: &'a Collected, found: &'a Outline) -> &'a [f64] {
    let first = all.drawn(found).next();
    first.map_or(&[], |(class, _)| found.times(class))
}

fn rates(all: &Collected, found: &Outline) -> Panel {
    let rate_of = |class| found.get(class, "sent_bps");
    let capacity = all.outline("link").map(|link| link.get(0, "capacity_bps"));
    let known = all.drawn(found).map(|(class, _)| rate_of(class));
    let (scale, unit) = prefixed(largest(known.clone().chain(capacity)), "bit/s");
    let title = "Rate of each class and capacity of the link";
    let mut panel = Panel::over_time("rates", title, time(all, found), format!("rate ({unit})"));
    let line = |(class, name): (usize, &str)| {
        Line::new(
            name,
            held(scaled(rate_of(class), scale)),
            Some(class),
            Look::Line,
        )
    };
    panel.lines = all.drawn(found).map(line).collect();
    let promised = reservation::reserved_bps(&all.scenario, times(all, found));
    for (class, name) in all.drawn(found) {
        if let Some(rates) = promised.get(name) {
            let label = format!("{name}, promised");
            panel.lines.push(Line::new(
                label,
                held(scaled(rates, scale)),
                Some(class),
                Look::Lower,
            ));
        }
    }
    let mut notes = Vec::new();
    if !promised.is_empty() {
        notes.push(PROMISED);
    }
    if let Some(capacity) = capacity.filter(|capacity| capacity.len() + 1 == panel.x.len()) {
        let flat = largest(known.take(SHOWN)) < FLAT * largest([capacity]);
        let mut area = Line::new("capacity", held(scaled(capacity, scale)), None, Look::Area);
        area.off = flat;
        panel.lines.insert(0, area);
        if flat {
            notes.push(
                "The capacity is hidden, as these rates would be flat under it; its key shows it.",
            );
        }
    }
    panel.note = notes.join(" ");
    panel
}

fn delays(all: &Collected, found: &Outline) -> Panel {
    let title = "Mean queueing delay of the packets sent";
    let mut panel = Panel::over_time("delays", title, time(all, found), "delay (ms)".to_owned());
    panel.log_y = true;
    let mut below = false;
    for (class, name) in all.drawn(found) {
        let delay_ms = scaled(found.get(class, "delay_mean_s"), 1e3);
        below |= delay_ms.iter().any(|delay| *delay < SHORTEST_MS);
        let drawn = delay_ms.iter().map(|delay| {
            if *delay < SHORTEST_MS {
                SHORTEST_MS
            } else {
                *delay
            }
        });
        let line = Line::new(name, held(drawn.collect()), Some(class), Look::Line);
        panel.lines.push(line);
    }
    if below {
        panel.note = format!("Delays below {SHORTEST_MS} ms are drawn at {SHORTEST_MS} ms.");
    }
    panel
}

fn drops(all: &Collected, found: &Outline) -> Panel {
    let y_label = "rate (packets/s)".to_owned();
    let title = "Packets dropped and lost";
    let mut panel = Panel::over_time("drops", title, time(all, found), y_label);
    for (class, name) in all.drawn(found) {
        let mut rate = vec![0.0; found.times(class).len()];
        for column in gone(&all.scenario, all.run) {
            for (sum, count) in rate.iter_mut().zip(found.get(class, column)) {
                *sum += count;
            }
        }
        rate.iter_mut().for_each(|count| *count /= all.interval_s());
        panel
            .lines
            .push(Line::new(name, held(rate), Some(class), Look::Line));
    }
    panel
}
