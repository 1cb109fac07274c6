// SPDX-License-Identifier: BSD-3-Clause
//! The example with QUIC does the same twice, and a run of the simulator does to its datagrams what the link did.

#[path = "../examples/quic/main.rs"]
#[allow(dead_code)]
mod example;

use std::path::Path;
use std::sync::Arc;

use example::{Decision, DURATION_NS};
use linkweir_link::experiment::{Flow, Measures, Traffic};
use linkweir_sim::scenario::{parse_with, Overrides};
use linkweir_sim::table::{Column, Sink, Table};

/// The datagrams in the run's log of packets: when each arrived or was dropped, and whether it arrived.
#[derive(Default)]
struct Ends(Vec<(Option<u64>, bool)>);

impl Sink for Ends {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        if table.name != "packets" {
            return Ok(());
        }
        let column = |wanted: &str| {
            &table
                .columns
                .iter()
                .find(|(name, _)| name == wanted)
                .unwrap()
                .1
        };
        let (Column::Count(t_ns), Column::Count(number)) = (column("t_ns"), column("number"))
        else {
            panic!("times and numbers");
        };
        let (Column::Name(event), Column::Name(flow)) = (column("event"), column("flow")) else {
            panic!("names");
        };
        for row in (0..t_ns.len()).filter(|row| flow[*row] == "quic") {
            let arrived = event[row] == "delivered";
            if arrived || event[row] == "dropped" {
                self.0[number[row] as usize] = (Some(t_ns[row]), arrived);
            }
        }
        Ok(())
    }
}

#[test]
fn a_run_does_to_the_datagrams_of_quic_what_the_link_did() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lte-drive.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let done = example::drive(&text, &file);
    assert_eq!(example::drive(&text, &file), done);

    // It shares 5 Mbit/s with four downloads and more, so it got some of that, and lost some.
    let dropped = done
        .decisions
        .iter()
        .filter(|d| d.ended_ns.is_some() && !d.arrived)
        .count();
    assert!(
        done.received_bytes > 2_000_000 && dropped > 10,
        "{} and {dropped}",
        done.received_bytes
    );

    let mut scenario = parse_with(&text, Some(&file), &Overrides::default()).unwrap();
    let experiment = &mut scenario.experiment;
    (experiment.duration_ns, experiment.log_rows) = (DURATION_NS, Some(1 << 24));
    for flow in &mut experiment.flows {
        flow.stop_ns = flow.stop_ns.min(DURATION_NS);
    }
    let packets: Arc<[(u64, u32)]> = done
        .decisions
        .iter()
        .map(|d| (d.sent_ns, d.bytes))
        .collect();
    experiment.flows.push(Flow {
        name: "quic".to_owned(),
        class: 2,
        start_ns: 0,
        stop_ns: DURATION_NS,
        access_delay_ns: 0,
        traffic: Traffic::Replay {
            packets,
            period_ns: None,
        },
        measures: Measures::default(),
    });
    let mut ends = Ends(vec![(None, false); done.decisions.len()]);
    linkweir_sim::run(experiment, &mut ends).unwrap();
    let of_link: Vec<_> = done
        .decisions
        .iter()
        .map(|d: &Decision| (d.ended_ns, d.arrived))
        .collect();
    let differs = (0..of_link.len()).find(|at| ends.0[*at] != of_link[*at]);
    let shown = differs.map(|at| (at, done.decisions[at], ends.0[at]));
    assert_eq!(shown, None, "the first that differs");
}
