// SPDX-License-Identifier: BSD-3-Clause
//! Runs a scenario file and prints one JSON object: what each class and, over several links, each flow got, how many events
//! it took, and how many seconds without start-up.
//!
//! `cargo run --release --example run_scenario -- scenario.toml`; over several links a number of threads may follow.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use linkweir_sim::table::{Column, Sink, Table};
use linkweir_sim::{run, run_network, scenario};

/// Keeps the totals of classes and flows.
#[derive(Default)]
struct Totals {
    classes: Option<Table>,
    flows: Option<Table>,
}

impl Sink for Totals {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        match table.name {
            "classes" => self.classes = Some(table),
            "flows" => self.flows = Some(table),
            _ => (),
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(file), Ok(threads)) = (
        words.next(),
        words.next().map_or(Ok(1), |word| word.parse()),
    ) else {
        eprintln!("usage: run_scenario scenario.toml [threads]");
        return ExitCode::from(2);
    };
    let scenario = match scenario::load(Path::new(&file), &scenario::Overrides::default()) {
        Ok(scenario) => scenario,
        Err(fault) => {
            eprintln!("{fault}");
            return ExitCode::from(2);
        }
    };
    let mut totals = Totals::default();
    #[allow(clippy::disallowed_methods)] // the time of the run, which the simulation does not see
    let began = Instant::now();
    let ended = match &scenario.network {
        Some(network) => run_network(network, threads, &mut totals),
        None => run(&scenario.experiment, &mut totals),
    };
    let took_s = began.elapsed().as_secs_f64();
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let flows = totals
        .flows
        .filter(|_| scenario.network.is_some())
        .map(|table| format!(", \"flows\": [{}]", rows(&table).join(", ")));
    println!(
        "{{\"simulated_s\": {}, \"events\": {}, \"packets\": {}, \"run_s\": {took_s}, \"classes\": [{}]{}}}",
        outcome.simulated_ns as f64 / 1e9,
        outcome.events,
        outcome.packets,
        totals.classes.map_or(String::new(), |table| rows(&table).join(", ")),
        flows.unwrap_or_default()
    );
    ExitCode::SUCCESS
}

/// Each row of the table as a JSON object.
fn rows(table: &Table) -> Vec<String> {
    let nrows = table.columns.first().map_or(0, |(_, column)| column.len());
    let cell = |column: &Column, row: usize| match column {
        Column::Real(values) => values[row].map_or("null".to_owned(), |value| value.to_string()),
        Column::Count(values) => values[row].to_string(),
        Column::Whole(values) => values[row].to_string(),
        Column::Name(values) => quoted(&values[row]),
    };
    (0..nrows)
        .map(|row| {
            let cells: Vec<String> = table
                .columns
                .iter()
                .map(|(name, column)| format!("\"{name}\": {}", cell(column, row)))
                .collect();
            format!("{{{}}}", cells.join(", "))
        })
        .collect()
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if (c as u32) < 0x20 => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
