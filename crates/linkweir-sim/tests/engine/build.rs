// SPDX-License-Identifier: BSD-3-Clause
//! Short ways to write experiments, and a sink that keeps tables.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use linkweir_sim::experiment::{
    Capacity, Class, Experiment, Flow, Link, Measures, Scheduler, Signal, Sizes, Traffic,
};
use linkweir_sim::table::{Column, Sink, Table};
use linkweir_sim::{run, Outcome};

pub const S: u64 = 1_000_000_000;
pub const MS: u64 = 1_000_000;

/// A policy with some of its parameters: `("level", "1")` of the policy, or of one queue in `queues`.
pub fn scheduler(policy: &str, set: &[(&str, &str)], queues: &[&[(&str, u64)]]) -> Scheduler {
    let info = linkweir_core::policy(policy).unwrap_or_else(|| panic!("the core has {policy}"));
    let mut params = info.default_params();
    for (name, word) in set {
        let index = info
            .param(name)
            .unwrap_or_else(|| panic!("{policy} has {name}"));
        params[index] = match info.params[index]
            .choices
            .iter()
            .position(|choice| choice == word)
        {
            Some(choice) => choice as u64,
            None => word.parse().unwrap(),
        };
    }
    let mut qparams = info.default_qparams(queues.len());
    for (queue, values) in queues.iter().enumerate() {
        for (name, value) in *values {
            let index = info
                .qparam(name)
                .unwrap_or_else(|| panic!("{policy} has {name} per queue"));
            qparams[queue * info.qparams.len() + index] = *value;
        }
    }
    Scheduler {
        policy: policy.to_owned(),
        brought: None,
        params,
        qparams,
        across: None,
    }
}

/// A link without delay or loss, classes of up to 1000 packets, no flows, one bin.
pub fn experiment(
    capacity: Capacity,
    nominal_bps: u64,
    scheduler: Scheduler,
    nclasses: usize,
    duration_ns: u64,
) -> Experiment {
    Experiment {
        name: "test".to_owned(),
        duration_ns,
        warmup_ns: 0,
        interval_ns: duration_ns,
        seed: 1,
        link: Link {
            capacity,
            ..Link::of_rate(nominal_bps)
        },
        scheduler,
        classes: (0..nclasses)
            .map(|i| Class {
                limit_pkts: Some(1000),
                ..Class::named(&format!("c{i}"))
            })
            .collect(),
        flows: Vec::new(),
        log_rows: None,
    }
}

/// A rate that never changes.
pub fn rate(bps: f64) -> Capacity {
    Capacity::Rate(Signal::Constant(bps))
}

/// Traffic of a class for the whole run.
pub fn flow(class: usize, traffic: Traffic) -> Flow {
    Flow {
        name: format!("f{class}"),
        class,
        start_ns: 0,
        stop_ns: u64::MAX,
        access_delay_ns: 0,
        traffic,
        measures: Measures::default(),
    }
}

/// Constant spacing without jitter.
pub fn cbr(bps: f64, bytes: u32) -> Traffic {
    Traffic::Cbr {
        rate_bps: Signal::Constant(bps),
        jitter: 0.0,
        packet: Sizes::Fixed(bytes),
    }
}

/// Always backlogged.
pub fn greedy(bytes: u32) -> Traffic {
    Traffic::Greedy {
        backlog_pkts: 20,
        packet: Sizes::Fixed(bytes),
    }
}

/// One packet at one instant.
pub fn packet(class: usize, at_ns: u64, bytes: u32) -> Flow {
    Flow {
        start_ns: at_ns,
        stop_ns: at_ns + 1,
        ..flow(class, cbr(1.0, bytes))
    }
}

/// All rows of a run, by table.
#[derive(Default)]
pub struct Tables {
    pub tables: BTreeMap<&'static str, Vec<(String, Column)>>,
    pub chunks: Vec<Table>,
    pub keep_chunks: bool,
    pub stop_at_ns: Option<u64>,
    pub unwanted: Option<&'static str>,
}

impl Sink for Tables {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        if self.keep_chunks {
            self.chunks.push(table.clone());
        }
        let Some(columns) = self.tables.get_mut(table.name) else {
            self.tables.insert(table.name, table.columns);
            return Ok(());
        };
        for ((_, all), (_, more)) in columns.iter_mut().zip(table.columns) {
            match (all, more) {
                (Column::Real(all), Column::Real(more)) => all.extend(more),
                (Column::Count(all), Column::Count(more)) => all.extend(more),
                (Column::Whole(all), Column::Whole(more)) => all.extend(more),
                (Column::Name(all), Column::Name(more)) => all.extend(more),
                _ => return Err("a column changed its type".to_owned()),
            }
        }
        Ok(())
    }

    fn wants(&self, table: &str) -> bool {
        self.unwanted != Some(table)
    }

    fn progress(&mut self, now_ns: u64, _: &mut dyn Iterator<Item = u64>) -> ControlFlow<()> {
        match self.stop_at_ns {
            Some(stop_at_ns) if now_ns >= stop_at_ns => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Tables {
    pub fn column(&self, table: &str, column: &str) -> &Column {
        let columns = self
            .tables
            .get(table)
            .unwrap_or_else(|| panic!("there is a table {table}"));
        &columns
            .iter()
            .find(|(name, _)| name == column)
            .unwrap_or_else(|| panic!("{table} has {column}"))
            .1
    }

    pub fn columns(&self, table: &str) -> &[(String, Column)] {
        &self.tables[table]
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.tables.keys().copied().collect()
    }

    pub fn reals(&self, table: &str, column: &str) -> Vec<Option<f64>> {
        match self.column(table, column) {
            Column::Real(values) => values.clone(),
            other => panic!("{table}.{column} is {other:?}"),
        }
    }

    /// Numbers of a column without gaps.
    pub fn numbers(&self, table: &str, column: &str) -> Vec<f64> {
        match self.column(table, column) {
            Column::Real(values) => values.iter().map(|v| v.expect("a value")).collect(),
            Column::Count(values) => values.iter().map(|v| *v as f64).collect(),
            Column::Whole(values) => values.iter().map(|v| *v as f64).collect(),
            Column::Name(_) => panic!("{table}.{column} has names"),
        }
    }
}

/// Runs to the end.
pub fn tables(experiment: &Experiment) -> Tables {
    run_into(experiment, Tables::default()).0
}

pub fn run_into(experiment: &Experiment, mut sink: Tables) -> (Tables, Outcome) {
    let outcome = run(experiment, &mut sink).unwrap_or_else(|e| panic!("{e}"));
    (sink, outcome)
}

/// Rates of the classes over warmup..duration, Mbit/s.
pub fn class_mbps(experiment: &Experiment) -> Vec<f64> {
    tables(experiment)
        .numbers("classes", "rate_bps")
        .iter()
        .map(|bps| bps / 1e6)
        .collect()
}
