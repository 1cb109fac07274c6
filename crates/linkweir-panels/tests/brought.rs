// SPDX-License-Identifier: BSD-3-Clause
//! A policy that the user brings along and calls `pss` is not the core's `pss`: its columns and parameters are its own.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use linkweir_core::{Declaration, Fault, Maker, Param, Pick, Policy, Stat, Unit, View};
use linkweir_panels::{Limits, Panels, Rows, Run};
use linkweir_sim::scenario::{parse_with, Files, Finder, Found, Overrides};
use linkweir_sim::{run, table};

const CLASSES: usize = 12;

/// Serves the first queue that has a packet.
struct First;

impl Policy for First {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        let first = view.queues.iter().position(|queue| queue.backlog_pkts > 0);
        first.map_or(Pick::Nothing { retry_ns: None }, Pick::Queue)
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        values[0] = i64::from(view.queues[q].backlog_pkts);
    }
}

#[derive(Debug)]
struct Mine(&'static Declaration);

impl Maker for Mine {
    fn declaration(&self) -> &'static Declaration {
        self.0
    }

    fn check(&self, _: &View<'_>, _: &[u64], _: &[u64]) -> Result<(), Fault> {
        Ok(())
    }

    fn start(&self, _: &View<'_>, _: &[u64], _: &[u64]) -> Result<Box<dyn Policy + Send>, Fault> {
        Ok(Box::new(First))
    }
}

#[derive(Debug)]
struct Folder;

impl Files for Folder {
    fn read(&self, _: &Path, _: u64) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }
}

impl Finder for Folder {
    fn c(&self, _: &Path, _: &[u8], _: bool) -> Result<Found, String> {
        let param = |name| Param {
            name,
            help: "a number",
            unit: Unit::Number,
            choices: Vec::new(),
            min: 0,
            max: 1000,
            default: 0,
            at_init: false,
        };
        let declaration = Declaration {
            name: "pss",
            help: "the first queue that has a packet",
            params: Vec::new(),
            qparams: vec![param("low_level"), param("weight")],
            stats: vec![Stat {
                name: "waiting",
                help: "packets that wait",
                unit: Unit::Pkts,
            }],
            max_queues: 100,
            ignores_rates: true,
            shared_limit: None,
            sorted_by_ecn: false,
        };
        Ok(Found {
            maker: Arc::new(Mine(Box::leak(Box::new(declaration)))),
            notes: Vec::new(),
        })
    }

    fn python(&self, _: &Path, _: &[u8], _: &str) -> Result<Found, String> {
        Err("is not C".to_owned())
    }
}

struct Kept(Vec<table::Table>);

impl table::Sink for Kept {
    fn chunk(&mut self, table: table::Table) -> Result<(), String> {
        self.0.push(table);
        Ok(())
    }
}

#[test]
fn it_has_neither_the_columns_nor_the_promises_of_the_cores_policy() {
    let mut text =
        "duration = \"5s\"\n[link]\nrate = \"12Mbit\"\n[scheduler]\npolicy = { c = \"pss.c\" }\n"
            .to_owned();
    for class in 0..CLASSES {
        writeln!(
            text,
            "[[class]]\nname = \"k{class}\"\nlow_level = 7\nweight = 3\n\
             [[flow]]\nclass = \"k{class}\"\nkind = \"cbr\"\nrate = \"1Mbit\""
        )
        .unwrap();
    }
    let overrides = Overrides {
        files: Some(Arc::new(Folder)),
        policies: Some(Arc::new(Folder)),
        ..Overrides::default()
    };
    let scenario = parse_with(&text, Some(Path::new("one.toml")), &overrides).unwrap();
    let scenario = Arc::new(scenario);
    let mut kept = Kept(Vec::new());
    run(&scenario.experiment, &mut kept).unwrap();
    let of_a_run = Run {
        simulated_s: 5.0,
        comes_and_goes: false,
    };
    let limits = Limits {
        classes: CLASSES,
        points: 5000,
    };
    let mut panels = Panels::new(scenario, of_a_run, limits, None);
    for table in &kept.0 {
        panels.take(table.name, &Rows::of(table)).unwrap();
    }
    let over_time = panels.over_time();
    let rates = over_time
        .iter()
        .find(|panel| panel.name == "rates")
        .unwrap();
    let promised = rates
        .lines
        .iter()
        .find(|line| line.label.contains("promised"));
    assert_eq!(promised, None);
    assert!(!rates.note.contains("reserves"), "{}", rates.note);
}
