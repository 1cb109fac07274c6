// SPDX-License-Identifier: BSD-3-Clause
//! Runs a request.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use linkweir_panels::{quoted, reserved_bps, written, Limits, Panel, Panels, Rows, Run, SHOWN};
use linkweir_sim::experiment::{Class, Experiment, Traffic};
use linkweir_sim::network::Station;
use linkweir_sim::scenario::{changed, parse_with, Fault, Knob, Scenario};
use linkweir_sim::table::{Column, Sink, Table};
use linkweir_sim::Outcome;

use crate::parts;
use crate::request::Request;

/// Much as a page can show.
const LIMITS: Limits = Limits {
    classes: 120,
    points: 1000,
};
/// The column that names the link of a network.
const LINK: &str = "link";
const CLASSES: &str = "classes";
/// Panels whose names begin so, and the tables that only these are made of.
const MADE_OF: [(&str, &str); 2] = [("distribution-", "delays"), ("levels-", "levels")];
/// Links of a network that has charts.
const MOST_LINKS: usize = 50;

/// Runs a request; `go_on` is called now and then with the simulated time, s, and ends the run early with `false`.
///
/// The answer is a list of [`parts`], pairs of a name and a content:
///
/// | name | content |
/// |---|---|
/// | `text` | the scenario with the changed keys |
/// | `knobs` | JSON, if knobs are wanted: `key`, `table`, `name`, `meaning`, `stops` and `at` of each, see [`Knob`] |
/// | `table` | rows of a table, if tables are wanted: its name, then name, kind, values, validity and words of each column |
/// | `outcome` | JSON: whether the run was complete, the simulated time and the warmup in s, events, packets |
/// | `notes` | JSON: notes on models, a sentence each |
/// | `promised` | JSON: the rate, bit/s, that each class with a reservation is promised at first; of a network by `link: class` |
/// | `open_loop` | JSON: the classes whose flows all send at rates of their own, and so may want less than is promised |
/// | `classes` | JSON: table `classes`, by column |
/// | `charts` | JSON that `report.js` draws, if charts are wanted; none of a network of more than 50 links |
/// | `fault` | JSON: the sentence, and `line` and `key`, in place of what comes after the fault |
///
/// If knobs are wanted and neither charts nor tables, nothing runs, and the answer ends with them.
#[must_use]
pub fn answer(request: &[u8], go_on: &mut dyn FnMut(f64) -> bool) -> Vec<u8> {
    let mut answer = Vec::new();
    let request = match Request::read(request) {
        Ok(request) => request,
        Err(message) => {
            add(&mut answer, "fault", about(&message, None, "").as_bytes());
            return answer;
        }
    };
    if let Err(fault) = run(&request, go_on, &mut answer) {
        add(&mut answer, "fault", fault.as_bytes());
    }
    answer
}

fn run(
    request: &Request,
    go_on: &mut dyn FnMut(f64) -> bool,
    answer: &mut Vec<u8>,
) -> Result<(), String> {
    let (text, file) = (&request.text, Some(request.file.as_path()));
    let whole = changed(text, file, &request.overrides.keys).map_err(described)?;
    add(answer, "text", whole.as_bytes());
    let scenario = parse_with(text, file, &request.overrides).map_err(described)?;
    let scenario = Arc::new(scenario);
    if request.knobs {
        let knobs = scenario.knobs();
        add(answer, "knobs", listed(knobs.iter().map(knob)).as_bytes());
    }
    if request.knobs && !request.charts && !request.tables {
        return Ok(());
    }
    let drawn = if request.charts {
        drawn(&scenario, request)
    } else {
        Vec::new()
    };
    let mut stream = Stream {
        go_on,
        tables: request.tables.then_some(&mut *answer),
        classes: Vec::new(),
        takes: taken(&drawn, &request.panels),
        drawn,
    };
    let outcome = match &scenario.network {
        Some(network) => linkweir_sim::run_network(network, 1, &mut stream),
        None => linkweir_sim::run(&scenario.experiment, &mut stream),
    };
    let Stream { classes, drawn, .. } = stream;
    let outcome = outcome.map_err(|error| about(&error.to_string(), None, ""))?;
    add(answer, "outcome", ended(outcome, &scenario).as_bytes());
    let notes = scenario.notes.iter().map(|note| quoted(note));
    add(answer, "notes", listed(notes).as_bytes());
    add(answer, "promised", promised(&scenario).as_bytes());
    add(answer, "open_loop", open_loop(&scenario).as_bytes());
    add(answer, "classes", columns(&classes).as_bytes());
    if !drawn.is_empty() {
        add(
            answer,
            "charts",
            charts(drawn, &request.panels, &scenario).as_bytes(),
        );
    }
    Ok(())
}

/// Where the results of a run go.
struct Stream<'a> {
    go_on: &'a mut dyn FnMut(f64) -> bool,
    /// The answer, if tables are wanted in it.
    tables: Option<&'a mut Vec<u8>>,
    /// Table `classes`.
    classes: Vec<Table>,
    /// What is drawn: the one link, without a name, or each link of a network.
    drawn: Vec<(String, Panels)>,
    /// The tables that this takes.
    takes: BTreeSet<&'static str>,
}

impl Sink for Stream<'_> {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        let is_drawn = self.takes.contains(table.name);
        for (link, panels) in self.drawn.iter_mut().filter(|_| is_drawn) {
            let rows = Rows::of(&table);
            if link.is_empty() {
                panels.take(table.name, &rows)?;
            } else if rows.names(LINK).is_some() {
                panels.take(table.name, &rows.with(LINK, link))?;
            }
        }
        if let Some(answer) = &mut self.tables {
            add(answer, "table", &rows(&table));
        }
        if table.name == CLASSES {
            self.classes.push(table);
        }
        Ok(())
    }

    fn wants(&self, table: &str) -> bool {
        self.tables.is_some() || table == CLASSES || self.takes.contains(table)
    }

    fn progress(&mut self, now_ns: u64, _: &mut dyn Iterator<Item = u64>) -> ControlFlow<()> {
        if (self.go_on)(now_ns as f64 / 1e9) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

fn add(answer: &mut Vec<u8>, name: &str, content: &[u8]) {
    parts::add(answer, name.as_bytes());
    parts::add(answer, content);
}

/// Rows of a table as parts; words are parts in one.
fn rows(table: &Table) -> Vec<u8> {
    let mut found = Vec::new();
    parts::add(&mut found, table.name.as_bytes());
    for (name, column) in &table.columns {
        let buffers = column.buffers();
        let mut words = Vec::new();
        for word in buffers.words {
            parts::add(&mut words, word.as_bytes());
        }
        let validity = buffers.validity.unwrap_or_default();
        for part in [
            name.as_bytes(),
            buffers.kind.as_bytes(),
            &buffers.values,
            &validity,
            &words,
        ] {
            parts::add(&mut found, part);
        }
    }
    found
}

/// Panels without numbers of a run that reaches its end; one that was stopped ends earlier in them, too. Of many classes those
/// that sent most, `sent`, come first.
fn drawn(scenario: &Arc<Scenario>, request: &Request) -> Vec<(String, Panels)> {
    let limits = Limits {
        points: request.points.unwrap_or(LIMITS.points),
        ..LIMITS
    };
    let alone = |scenario: &Arc<Scenario>, link: &str, comes_and_goes: bool| {
        let run = Run {
            simulated_s: scenario.experiment.duration_ns as f64 / 1e9,
            comes_and_goes,
        };
        let known = |class: &Class| {
            let bytes = request.sent.get(&named(link, &class.name))?;
            Some((class.name.clone(), *bytes))
        };
        let classes = scenario.experiment.classes.iter();
        let sent: BTreeMap<String, f64> = classes.filter_map(known).collect();
        let sent = (!sent.is_empty()).then_some(&sent);
        let panels = Panels::new(Arc::clone(scenario), run, limits, sent);
        (link.to_owned(), panels)
    };
    let Some(network) = &scenario.network else {
        return vec![alone(scenario, "", false)];
    };
    if network.links.len() > MOST_LINKS {
        return Vec::new();
    }
    let computed = scenario.written.get("constellation").is_some();
    let links = network.links.iter().zip(&scenario.links);
    links
        .map(|(link, scenario)| alone(scenario, &link.name, computed))
        .collect()
}

/// The name of a class; of a network `link: class`.
fn named(link: &str, class: &str) -> String {
    if link.is_empty() {
        class.to_owned()
    } else {
        format!("{link}: {class}")
    }
}

/// The tables of which panels with these names are made; of all panels if there is no name.
fn taken(drawn: &[(String, Panels)], names: &[String]) -> BTreeSet<&'static str> {
    let panels = drawn.iter().map(|(_, panels)| panels);
    let wanted = panels.flat_map(|panels| [panels.wanted(false), panels.wanted(true)].concat());
    let mut tables: BTreeSet<&'static str> = wanted.map(|(table, _)| table).collect();
    for (begin, table) in MADE_OF {
        if !names.is_empty() && !names.iter().any(|name| name.starts_with(begin)) {
            tables.remove(table);
        }
    }
    tables
}

fn charts(drawn: Vec<(String, Panels)>, names: &[String], scenario: &Scenario) -> String {
    let of_link = |(link, mut panels): (String, Panels)| {
        let classes = listed(panels.classes().iter().map(|name| quoted(name)));
        let found = [panels.over_time(), panels.distributions()].concat();
        let is_wanted = |panel: &&Panel| names.is_empty() || names.contains(&panel.name);
        let found = listed(found.iter().filter(is_wanted).map(written));
        let keys = format!("\"classes\":{classes},\"panels\":{found}");
        if link.is_empty() {
            keys
        } else {
            format!("{{\"name\":{},{keys}}}", quoted(&link))
        }
    };
    let all: Vec<String> = drawn.into_iter().map(of_link).collect();
    let warmup_s = scenario.experiment.warmup_ns as f64 / 1e9;
    let links = if scenario.network.is_some() {
        format!("\"links\":[{}]", all.join(","))
    } else {
        all.concat()
    };
    format!("{{\"shown\":{SHOWN},\"warmup\":{warmup_s},{links}}}")
}

fn knob(knob: &Knob) -> String {
    let stops = listed(knob.stops.iter().map(|stop| quoted(stop)));
    let texts = [
        ("key", knob.key.as_str()),
        ("table", &knob.table),
        ("name", knob.name),
        ("meaning", knob.meaning),
    ];
    let texts = texts.map(|(name, text)| (name, quoted(text)));
    let others = [("stops", stops), ("at", knob.at.to_string())];
    object(texts.into_iter().chain(others))
}

fn ended(outcome: Outcome, scenario: &Scenario) -> String {
    format!(
        "{{\"complete\":{},\"simulated_s\":{},\"warmup_s\":{},\"events\":{},\"packets\":{}}}",
        outcome.complete,
        outcome.simulated_ns as f64 / 1e9,
        scenario.experiment.warmup_ns as f64 / 1e9,
        outcome.events,
        outcome.packets
    )
}

fn promised(scenario: &Scenario) -> String {
    let alone = |scenario: &Scenario| reserved_bps(scenario, &[0.0]);
    let found: Vec<(String, f64)> = match &scenario.network {
        None => alone(scenario)
            .into_iter()
            .map(|(class, rates)| (class, rates[0]))
            .collect(),
        Some(network) => {
            let links = network.links.iter().zip(&scenario.links);
            let of_link = |(link, scenario): (&Station, &Arc<Scenario>)| {
                let rates = alone(scenario).into_iter();
                let rates = rates.map(|(class, rates)| (named(&link.name, &class), rates[0]));
                rates.collect::<Vec<_>>()
            };
            links.flat_map(of_link).collect()
        }
    };
    let pairs = found.iter();
    object(pairs.map(|(class, bps)| (class.as_str(), bps.to_string())))
}

fn open_loop(scenario: &Scenario) -> String {
    let Experiment { classes, flows, .. } = &scenario.experiment;
    let is_open = |traffic: &Traffic| {
        !matches!(
            traffic,
            Traffic::Greedy { .. } | Traffic::Tcp(_) | Traffic::Application(_)
        )
    };
    let open = classes.iter().enumerate().filter(|(at, _)| {
        let mut of_class = flows.iter().filter(|flow| flow.class == *at);
        of_class.all(|flow| is_open(&flow.traffic))
    });
    listed(open.map(|(_, class)| quoted(&class.name)))
}

/// Rows of a table by column; null where there is no value.
fn columns(chunks: &[Table]) -> String {
    let names = chunks.first().map_or(&[][..], |first| &first.columns[..]);
    object(names.iter().enumerate().map(|(at, (name, _))| {
        let all = chunks.iter().flat_map(|chunk| values(&chunk.columns[at].1));
        (name.as_str(), listed(all))
    }))
}

fn values(column: &Column) -> Vec<String> {
    let real = |value: &Option<f64>| value.map_or("null".to_owned(), |value| value.to_string());
    match column {
        Column::Real(v) => v.iter().map(real).collect(),
        Column::Count(v) => v.iter().map(ToString::to_string).collect(),
        Column::Whole(v) => v.iter().map(ToString::to_string).collect(),
        Column::Name(v) => v.iter().map(|word| quoted(word)).collect(),
    }
}

fn object<'a>(pairs: impl Iterator<Item = (&'a str, String)>) -> String {
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{}:{value}", quoted(name)))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

fn listed(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

fn described(fault: Fault) -> String {
    about(&fault.to_string(), fault.line, &fault.key)
}

fn about(sentence: &str, line: Option<usize>, key: &str) -> String {
    let line = line.map_or("null".to_owned(), |line| line.to_string());
    format!(
        "{{\"sentence\":{},\"line\":{line},\"key\":{}}}",
        quoted(sentence),
        quoted(key)
    )
}
