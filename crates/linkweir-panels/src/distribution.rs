// SPDX-License-Identifier: BSD-3-Clause
//! Distributions of delays: the part of the packets with at most each delay.

use crate::panel::{scaled, Line, Look, Panel, SHORTEST_MS};
use crate::rows::Rows;

const KINDS: [(&str, &str); 2] = [
    ("queueing", "Distribution of the queueing delay"),
    ("one-way", "Distribution of the one-way delay"),
];
const MOST_DELAYS: usize = 400;
const MOST_FLOWS: usize = 40;
/// The axis begins by this factor before the first packets, so that the first rise is seen.
const LEFT: f64 = 1.05;

/// The distributions of table `delays`.
#[derive(Default)]
pub(crate) struct Distributions {
    found: Vec<Distribution>,
}

struct Distribution {
    class: String,
    /// Empty for all flows of the class.
    flow: String,
    kind: String,
    /// Upper bounds of its buckets, rising.
    upper_s: Vec<f64>,
    /// Packets in each bucket.
    packets: Vec<f64>,
}

impl Distribution {
    /// The percentage of the packets up to each bound: exact, as bounds of all histograms are the same.
    fn below(&self, bounds: &[f64]) -> Vec<f64> {
        let mut sum = 0.0;
        let mut cumulative = vec![0.0];
        for packets in &self.packets {
            sum += packets;
            cumulative.push(sum);
        }
        let part = |bound: &f64| {
            let place = self.upper_s.partition_point(|upper| upper <= bound);
            100.0 * (cumulative[place] / sum)
        };
        bounds.iter().map(part).collect()
    }
}

impl Distributions {
    pub(crate) const COLUMNS: [&'static str; 5] =
        ["class", "flow", "kind", "upper_s", "count_pkts"];

    /// Takes buckets; the name of a missing column if there is one.
    pub(crate) fn take<'c>(&mut self, rows: &Rows<'_>) -> Result<(), &'c str> {
        let (classes, class_of) = rows.names("class").ok_or("class")?;
        let (flows, flow_of) = rows.names("flow").ok_or("flow")?;
        let (kinds, kind_of) = rows.names("kind").ok_or("kind")?;
        let upper_s = rows.numbers("upper_s").ok_or("upper_s")?;
        let packets = rows.numbers("count_pkts").ok_or("count_pkts")?;
        for at in 0..rows.len() {
            let class = &classes[class_of[at] as usize];
            let flow = &flows[flow_of[at] as usize];
            let kind = &kinds[kind_of[at] as usize];
            let is_last =
                |one: &Distribution| one.class == *class && one.flow == *flow && one.kind == *kind;
            if !self.found.last().is_some_and(is_last) {
                self.found.push(Distribution {
                    class: class.clone().into_owned(),
                    flow: flow.clone().into_owned(),
                    kind: kind.clone().into_owned(),
                    upper_s: Vec::new(),
                    packets: Vec::new(),
                });
            }
            if let Some(one) = self.found.last_mut() {
                one.upper_s.push(upper_s[at]);
                one.packets.push(packets[at]);
            }
        }
        Ok(())
    }

    /// A panel for each kind of delay of which the run has distributions.
    pub(crate) fn panels(&self, classes: &[String]) -> Vec<Panel> {
        let made = KINDS.iter().filter_map(|(kind, title)| {
            let of_kind = || self.found.iter().filter(move |one| one.kind == *kind);
            let of_class =
                |name: &String| of_kind().find(|one| one.flow.is_empty() && one.class == *name);
            let numbered = classes.iter().enumerate();
            let mut shown: Vec<(Option<usize>, &Distribution)> = numbered
                .filter_map(|(class, name)| Some((Some(class), of_class(name)?)))
                .collect();
            let flows = of_kind().filter(|one| !one.flow.is_empty());
            shown.extend(flows.take(MOST_FLOWS).map(|one| (None, one)));
            (!shown.is_empty()).then(|| panel(&format!("distribution-{kind}"), title, &shown))
        });
        made.collect()
    }
}

fn panel(name: &str, title: &str, shown: &[(Option<usize>, &Distribution)]) -> Panel {
    let bounds = bounds(shown);
    let mut panel = Panel::over_time(name, title, scaled(&bounds, 1e3), "packets (%)".to_owned());
    let line = |(class, one): &(Option<usize>, &Distribution)| {
        let label = if one.flow.is_empty() {
            &one.class
        } else {
            &one.flow
        };
        Line::new(label, one.below(&bounds), *class, Look::Line)
    };
    panel.lines = shown.iter().map(line).collect();
    panel.x_label = "delay (ms)".to_owned();
    panel.over_time = false;
    panel.log_x = true;
    panel.y_range = Some((0.0, 100.0));
    panel.note = "The part of the packets with at most each delay.".to_owned();
    panel
}

/// The delays at which the lines have values, s: edges of buckets, of many of them some.
fn bounds(shown: &[(Option<usize>, &Distribution)]) -> Vec<f64> {
    let mut all: Vec<f64> = shown
        .iter()
        .flat_map(|(_, one)| one.upper_s.iter().copied())
        .collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    if all.len() > MOST_DELAYS {
        let last = all.len() - 1;
        let gap = last as f64 / (MOST_DELAYS - 1) as f64;
        let even = (0..MOST_DELAYS - 1).map(|at| (at as f64 * gap) as usize);
        let mut places: Vec<usize> = even.chain([last]).collect();
        places.dedup();
        all = places.into_iter().map(|at| all[at]).collect();
    }
    let first = all
        .first()
        .map_or(0.0, |first| (first / LEFT).max(SHORTEST_MS / 1e3));
    let drawn = all.into_iter().filter(|bound| bound * 1e3 > SHORTEST_MS);
    std::iter::once(first).chain(drawn).collect()
}
