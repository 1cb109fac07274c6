// SPDX-License-Identifier: BSD-3-Clause
//! How the calls of a run sound over time: MOS of flows with play-out buffers.

use std::collections::BTreeMap;

use linkweir_sim::codec::{Codec, CODECS};
use linkweir_sim::scenario::keys::{flow, top};
use linkweir_sim::scenario::{Scenario, Value};

use crate::e_model;
use crate::panel::{Line, Look, Panel};
use crate::rows::Rows;
use crate::words::{short, thousands};

const MOST_CALLS: usize = 40;
const MOST_VALUES: usize = 40_000;
/// The codec of flows that name none.
const USUAL: &str = "g711";

/// The rated intervals of the calls of a run.
pub(crate) struct Calls {
    /// Codecs that the scenario names, by flow.
    codecs: BTreeMap<String, &'static Codec>,
    /// Place of each call in `rated`, by its label.
    places: BTreeMap<String, usize>,
    /// Of each call its label, and MOS by the start of the interval, ns.
    rated: Vec<(String, BTreeMap<u64, f64>)>,
}

impl Calls {
    pub(crate) const COLUMNS: [&'static str; 6] =
        ["t_s", "flow", "buffer", "loss", "burst_r", "delay_s"];

    pub(crate) fn new(scenario: &Scenario) -> Calls {
        let mut codecs = BTreeMap::new();
        for table in scenario.written.tables(top::FLOW.name) {
            let text = |key: &str| match table.get(key) {
                Some(Value::Text(text)) => Some(text.as_str()),
                _ => None,
            };
            let codec =
                text("codec").and_then(|name| CODECS.iter().find(|codec| codec.name == name));
            let (Some(codec), Some(kind)) = (codec, text(flow::KIND.name)) else {
                continue;
            };
            if kind == "voice" {
                let name = text("name").unwrap_or_default();
                let count = match table.get("count") {
                    Some(Value::Number(count)) => *count,
                    _ => 1,
                };
                let numbered = (1..=count).map(|copy| format!("{name}-{copy}"));
                match count {
                    1 => codecs.extend([(name.to_owned(), codec)]),
                    _ => codecs.extend(numbered.map(|name| (name, codec))),
                }
            }
        }
        Calls {
            codecs,
            places: BTreeMap::new(),
            rated: Vec::new(),
        }
    }

    /// Takes intervals; the name of a missing column if there is one.
    pub(crate) fn take<'c>(&mut self, rows: &Rows<'_>) -> Result<(), &'c str> {
        let (flows, flow_of) = rows.names("flow").ok_or("flow")?;
        let (buffers, buffer_of) = rows.names("buffer").ok_or("buffer")?;
        let t_s = rows.numbers("t_s").ok_or("t_s")?;
        let loss = rows.numbers("loss").ok_or("loss")?;
        let burst_r = rows.numbers("burst_r").ok_or("burst_r")?;
        let delay_s = rows.numbers("delay_s").ok_or("delay_s")?;
        let usual = CODECS.iter().find(|codec| codec.name == USUAL);
        for at in 0..rows.len() {
            let flow = flows[flow_of[at] as usize].as_ref();
            let buffer = &buffers[buffer_of[at] as usize];
            let Some(codec) = self.codecs.get(flow).copied().or(usual) else {
                continue;
            };
            let Some(mos) = e_model::of_codec(codec, delay_s[at], loss[at], burst_r[at]) else {
                continue;
            };
            let label = format!("{flow}, {buffer}, {}", codec.name);
            let place = *self.places.entry(label).or_insert_with_key(|label| {
                self.rated.push((label.clone(), BTreeMap::new()));
                self.rated.len() - 1
            });
            self.rated[place]
                .1
                .insert((t_s[at] * 1e9).round() as u64, mos);
        }
        Ok(())
    }

    /// The panel; none if no flow has a play-out buffer or no codec can be rated.
    pub(crate) fn panel(&self, simulated_s: f64) -> Option<Panel> {
        let drawn = &self.rated[..self.rated.len().min(MOST_CALLS)];
        let mut starts: Vec<u64> = drawn
            .iter()
            .flat_map(|(_, values)| values.keys().copied())
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let seconds = |start_ns: u64| start_ns as f64 / 1e9;
        let (first, last) = (seconds(*starts.first()?), seconds(*starts.last()?));
        let step = (starts.len() * drawn.len()).div_ceil(MOST_VALUES).max(1);
        let width_s = match starts[..] {
            [one, other, ..] => (seconds(other) - seconds(one)) * step as f64,
            _ => simulated_s - first,
        };
        let mut x: Vec<f64> = starts
            .iter()
            .step_by(step)
            .map(|start| seconds(*start))
            .collect();
        x.push(simulated_s.max(last));
        let late = first > 0.0; // the other panels over time begin at 0
        if late {
            x.insert(0, 0.0);
        }
        let line = |(label, values): &(String, BTreeMap<u64, f64>)| {
            let means = starts
                .chunks(step)
                .map(|part| mean(part.iter().filter_map(|start| values.get(start))));
            let before = late.then_some(f64::NAN);
            let mut y: Vec<f64> = before.into_iter().chain(means).collect();
            y.extend(y.last().copied());
            Line::new(label, y, None, Look::Line)
        };
        let mut panel =
            Panel::over_time("mos", "How the calls sound", x, "MOS, 1 to 4.5".to_owned());
        panel.lines = drawn.iter().map(line).collect();
        panel.y_range = Some((1.0, 4.5));
        panel.note = format!(
            "Each value is the E-model's (ITU-T G.107) over {} s; the table of calls says how it is made up.",
            short(width_s)
        );
        if self.rated.len() > drawn.len() {
            let more = thousands(self.rated.len() - drawn.len());
            panel.note += &format!(" {more} more calls are in the table only.");
        }
        Some(panel)
    }
}

fn mean<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    if count > 0 {
        sum / f64::from(count)
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use linkweir_sim::scenario::parse;

    use super::*;

    #[test]
    fn codecs_of_flows_are_found_by_their_whole_names_and_by_the_numbers_of_copies() {
        let text = r#"
duration = "1s"
[link]
rate = "1Mbit"
[scheduler]
policy = "fifo"
[[class]]
name = "all"
[[flow]]
class = "all"
name = 'the "red" \one'
kind = "voice"
codec = "g729"
[[flow]]
class = "all"
name = "desk"
count = 2
kind = "voice"
codec = "gsm-efr"
"#;
        let scenario = parse(text, Path::new("one.toml")).unwrap();
        let calls = Calls::new(&scenario);
        let found: Vec<(&str, &str)> = calls
            .codecs
            .iter()
            .map(|(name, codec)| (name.as_str(), codec.name))
            .collect();
        let wanted = [
            ("desk-1", "gsm-efr"),
            ("desk-2", "gsm-efr"),
            ("the \"red\" \\one", "g729"),
        ];
        assert_eq!(found, wanted);
    }
}
