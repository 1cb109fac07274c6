// SPDX-License-Identifier: BSD-3-Clause
//! Runs over several links.

use std::path::Path;

use linkweir_sim::experiment::{Experiment, Flow, Outages};
use linkweir_sim::network::{Hop, Network, OnBreak, Routed, Station, Way};
use linkweir_sim::table::Column;
use linkweir_sim::{run_network, scenario, RunError};

use crate::build::*;

/// The experiment as a network of one link.
pub fn of_one_link(e: &Experiment) -> Network {
    let routed = |flow: &Flow| Routed {
        there: vec![Way {
            from_ns: 0,
            hops: vec![Hop {
                link: 0,
                class: flow.class as u32,
            }],
        }],
        back: Vec::new(),
        flow: flow.clone(),
    };
    Network {
        name: e.name.clone(),
        duration_ns: e.duration_ns,
        warmup_ns: e.warmup_ns,
        interval_ns: e.interval_ns,
        seed: e.seed,
        flows: e.flows.iter().map(routed).collect(),
        links: vec![Station {
            name: "link".to_owned(),
            link: e.link.clone(),
            scheduler: e.scheduler.clone(),
            classes: e.classes.clone(),
            absent: Outages::default(),
        }],
        on_break: OnBreak::Lose,
        log_rows: e.log_rows,
    }
}

pub fn network_tables(network: &Network, threads: usize) -> Tables {
    let mut sink = Tables::default();
    run_network(network, threads, &mut sink).unwrap_or_else(|e| panic!("{e}"));
    sink
}

/// The columns of a network's table, without that of the link.
fn without_link(t: &Tables, table: &str) -> Vec<(String, Column)> {
    let Some(columns) = t.tables.get(table) else {
        panic!("there is no {table}, only {:?}", t.names());
    };
    let columns = columns.iter();
    columns
        .filter(|(name, _)| name != "link")
        .cloned()
        .collect()
}

/// A column of numbers as real ones: statistics are whole with one link.
fn real(column: &Column) -> Column {
    match column {
        Column::Whole(values) => Column::Real(values.iter().map(|v| Some(*v as f64)).collect()),
        other => other.clone(),
    }
}

/// One link gives what it gives alone.
pub fn is_the_same_as_alone(name: &str, e: &Experiment) {
    let (alone, among) = (tables(e), network_tables(&of_one_link(e), 1));
    for table in alone.names() {
        let found = without_link(&among, table);
        let expected = alone.columns(table);
        assert_eq!(found.len(), expected.len(), "{name}: {table}");
        for ((column, found), (_, expected)) in found.iter().zip(expected) {
            assert_eq!(real(found), real(expected), "{name}: {table}.{column}");
        }
    }
}

#[test]
fn networks_of_one_link_are_the_same_as_the_link() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let scenario = scenario::load(&path, &scenario::Overrides::default()).unwrap();
        let mut e = scenario.experiment;
        e.duration_ns = e.duration_ns.min(12 * S);
        e.warmup_ns = e.warmup_ns.min(3 * S);
        for flow in &mut e.flows {
            flow.measures = Default::default();
        }
        match run_network(&of_one_link(&e), 1, &mut Tables::default()) {
            Ok(_) => {}
            Err(RunError::Invalid(message)) => {
                println!("{}: {message}", path.display());
                continue;
            }
            Err(other) => panic!("{other}"),
        }
        is_the_same_as_alone(&path.display().to_string(), &e);
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} scenarios fit");
}
