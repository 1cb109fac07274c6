// SPDX-License-Identifier: BSD-3-Clause
//! Runs a scenario file and prints one JSON object: what each class got, and how many events it took.
//!
//! `cargo run --release --example run_scenario -- scenario.toml`

use std::path::Path;
use std::process::ExitCode;

use linkweir_sim::table::{Column, Sink, Table};
use linkweir_sim::{run, scenario};

/// Keeps the totals of the classes.
#[derive(Default)]
struct Totals {
    classes: Option<Table>,
}

impl Sink for Totals {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        if table.name == "classes" {
            self.classes = Some(table);
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: run_scenario scenario.toml");
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
    let outcome = match run(&scenario.experiment, &mut totals) {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let classes = totals.classes.map(|table| rows(&table)).unwrap_or_default();
    println!(
        "{{\"simulated_s\": {}, \"events\": {}, \"packets\": {}, \"classes\": [{}]}}",
        outcome.simulated_ns as f64 / 1e9,
        outcome.events,
        outcome.packets,
        classes.join(", ")
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
