// SPDX-License-Identifier: BSD-3-Clause
//! Measurements that are made packet by packet: distributions of delays.

use linkweir_sim::experiment::{Experiment, Signal};
use linkweir_sim::table::Column;

use crate::build::*;

const BPS: u64 = 12_000_000;

/// 12 Mbit/s, on which 1500 bytes take 1 ms, and 10 ms on the way.
fn strict(nclasses: usize, duration_ns: u64) -> Experiment {
    let queues = vec![&[][..]; nclasses];
    let policy = scheduler("strict", &[], &queues);
    let mut e = experiment(rate(BPS as f64), BPS, policy, nclasses, duration_ns);
    e.link.delay_s = Signal::Constant(0.01);
    e
}

fn names(found: &Tables, table: &str, column: &str) -> Vec<String> {
    match found.column(table, column) {
        Column::Name(values) => values.clone(),
        other => panic!("{table}.{column} is {other:?}"),
    }
}

/// Packets and bounds, ms, of the buckets of one distribution.
fn buckets(found: &Tables, class: &str, flow: &str, kind: &str) -> Vec<(u64, f64, f64)> {
    let owners = names(found, "delays", "class")
        .into_iter()
        .zip(names(found, "delays", "flow"))
        .zip(names(found, "delays", "kind"));
    let bounds = found
        .numbers("delays", "lower_s")
        .into_iter()
        .zip(found.numbers("delays", "upper_s"));
    owners
        .zip(bounds)
        .zip(found.numbers("delays", "count_pkts"))
        .filter(|((((c, f), k), _), _)| (c.as_str(), f.as_str(), k.as_str()) == (class, flow, kind))
        .map(|((_, (lower_s, upper_s)), pkts)| (pkts as u64, lower_s * 1e3, upper_s * 1e3))
        .collect()
}

/// Whether a distribution holds these delays, ms, with these numbers of packets.
fn holds(found: &[(u64, f64, f64)], wanted: &[(u64, f64)]) {
    assert_eq!(found.len(), wanted.len(), "{found:?}, not {wanted:?}");
    for ((pkts, lower_ms, upper_ms), (wanted_pkts, delay_ms)) in found.iter().zip(wanted) {
        assert_eq!(pkts, wanted_pkts, "{found:?}, not {wanted:?}");
        let within = *lower_ms <= *delay_ms && *delay_ms < *upper_ms;
        assert!(within, "{found:?}, not {wanted:?}");
        assert!(
            upper_ms - lower_ms <= lower_ms.max(256e-6) / 128.0,
            "{found:?}"
        );
    }
}

#[test]
fn delays_of_classes_and_of_a_flow() {
    let mut e = strict(2, S);
    // 0..1 ms f1, 1..2 ms the urgent one, 2..3 and 3..4 ms the other two.
    e.flows = vec![
        packet(1, 0, 1500),
        packet(1, 0, 1500),
        packet(1, 0, 1500),
        packet(0, 500_000, 1500),
    ];
    e.flows[2].name = "asked".to_owned();
    e.flows[2].measures.delays = true;
    let found = tables(&e);
    let of = |class, flow, kind| buckets(&found, class, flow, kind);
    holds(&of("c0", "", "queueing"), &[(1, 0.5)]);
    holds(&of("c0", "", "one-way"), &[(1, 11.5)]);
    holds(&of("c1", "", "queueing"), &[(1, 0.0), (1, 2.0), (1, 3.0)]);
    holds(&of("c1", "", "one-way"), &[(1, 11.0), (1, 13.0), (1, 14.0)]);
    holds(&of("c1", "asked", "queueing"), &[(1, 3.0)]);
    holds(&of("c1", "asked", "one-way"), &[(1, 14.0)]);
    assert_eq!(found.numbers("delays", "count_pkts").len(), 10);
}

#[test]
fn delays_count_from_the_warm_up() {
    let mut e = strict(1, S);
    e.flows = vec![packet(0, 0, 1500), packet(0, 500 * MS, 1500)];
    e.flows[0].measures.delays = true;
    e.flows[1].name = "later".to_owned();
    e.flows[1].measures.delays = true;
    e.warmup_ns = 400 * MS;
    let found = tables(&e);
    holds(&buckets(&found, "c0", "", "queueing"), &[(1, 0.0)]);
    assert_eq!(buckets(&found, "c0", "f0", "queueing"), []);
    assert_eq!(buckets(&found, "c0", "f0", "one-way"), []);
    holds(&buckets(&found, "c0", "later", "queueing"), &[(1, 0.0)]);
    holds(&buckets(&found, "c0", "later", "one-way"), &[(1, 11.0)]);
}
