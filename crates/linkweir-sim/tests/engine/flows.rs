// SPDX-License-Identifier: BSD-3-Clause
//! Flows inside a class: the class keeps what its policy guarantees, and a sparse flow waits about as long as behind FQ-CoDel
//! alone at the class's rate.

use linkweir_core::Isolation;
use linkweir_sim::experiment::{Experiment, Flow, Scheduler, Signal, Sizes, Traffic};
use linkweir_sim::tcp;

use crate::build::*;

const SPARSE_BYTES: u32 = 172;
const LARGE_BYTES: u32 = 1500;
const DURATION_NS: u64 = 60 * S;
const MBIT: f64 = 1e6;

/// A voice call's rate in packets at random times: the first flow of each experiment.
fn sparse() -> Flow {
    flow(
        0,
        Traffic::Poisson {
            rate_bps: Signal::Constant(64e3),
            packet: Sizes::Fixed(SPARSE_BYTES),
        },
    )
}

fn cubic(class: usize) -> Flow {
    let config = tcp::Config::new(tcp::Algorithm::Cubic, tcp::Profile::Linux);
    Flow {
        access_delay_ns: 10 * MS,
        ..flow(class, Traffic::Tcp(config))
    }
}

/// What loads a class of this rate: connections that take what they get, and a source that sends more than its share
/// whatever is lost.
fn load(class: usize, bps: f64) -> Vec<Flow> {
    let mut flows: Vec<Flow> = (0..4).map(|_| cubic(class)).collect();
    flows.push(flow(class, cbr(0.5 * bps, LARGE_BYTES)));
    flows
}

fn with_flows(link_bps: f64, policy: Scheduler, nclasses: usize, flows: Vec<Flow>) -> Experiment {
    let mut e = experiment(
        rate(link_bps),
        link_bps as u64,
        policy,
        nclasses,
        DURATION_NS,
    );
    e.warmup_ns = 5 * S;
    e.flows = flows;
    for (at, flow) in e.flows.iter_mut().enumerate() {
        flow.name = format!("f{at}");
    }
    e
}

/// Mean, 99th percentile and maximum of the delay of an experiment's first flow, s.
fn delays(e: &Experiment) -> [f64; 3] {
    let found = tables(e);
    ["delay_mean_s", "delay_p99_s", "delay_max_s"].map(|name| found.numbers("flows", name)[0])
}

/// The delays of the sparse flow behind FQ-CoDel alone, each flow in a queue of its own.
fn alone(bps: f64) -> [f64; 3] {
    let mut flows = vec![sparse()];
    flows.extend(load(0, bps));
    let n = flows.len();
    for (at, flow) in flows.iter_mut().enumerate() {
        flow.class = at;
    }
    let queues = vec![&[][..]; n];
    delays(&with_flows(
        bps,
        scheduler("fq_codel", &[], &queues),
        n,
        flows,
    ))
}

fn within(found: [f64; 3], bounds: [f64; 3], what: &str) {
    println!("{what}: {found:?} of {bounds:?} s");
    for (found, bound) in found.into_iter().zip(bounds) {
        assert!(found <= bound, "{what}: {found} s, not {bound} s");
    }
}

#[test]
fn a_class_with_the_link_to_itself_delays_a_sparse_flow_as_fq_codel_does() {
    for bps in [2.0 * MBIT, 10.0 * MBIT, 100.0 * MBIT] {
        let mut flows = vec![sparse()];
        flows.extend(load(0, bps));
        let mut e = with_flows(bps, scheduler("drr", &[], &[&[]]), 1, flows);
        e.classes[0].flows = Some(Isolation::FqCodel);
        within(
            delays(&e),
            alone(bps).map(|s| 1.2 * s),
            &format!("{bps} bit/s"),
        );
    }
}

#[test]
fn a_class_with_a_share_delays_a_sparse_flow_as_fq_codel_does_at_its_rate() {
    for nclasses in [2, 4] {
        let bps = 10.0 * MBIT;
        let mut flows = vec![sparse()];
        for class in 0..nclasses {
            flows.extend(load(class, bps));
        }
        let queues = vec![&[("quantum", 1514)][..]; nclasses];
        let policy = scheduler("drr", &[], &queues);
        let mut e = with_flows(nclasses as f64 * bps, policy, nclasses, flows);
        e.classes[0].flows = Some(Isolation::FqCodel);
        within(
            delays(&e),
            alone(bps).map(|s| 1.2 * s),
            &format!("{nclasses} classes"),
        );
    }
}

const LINK_BPS: f64 = 20.0 * MBIT;
const RESERVED_BPS: f64 = 5.0 * MBIT;
const EF_BPS: f64 = 2.0 * MBIT;
const EF_BYTES: u32 = 500;
/// Packets of EF that come at once.
const EF_BURST: u32 = 10;

/// AF with a reserved rate, loaded by `af`, between bursts of EF and a best effort that takes what is left. AF sends `burst`
/// packets back to back.
fn reserved(af: Vec<Flow>, burst: u64) -> Experiment {
    let policy = scheduler(
        "pss",
        &[],
        &[
            &[
                ("level", 1),
                ("low_level", 3),
                ("rate", RESERVED_BPS as u64),
                ("burst", burst),
                ("mtu", u64::from(LARGE_BYTES)),
            ],
            &[("level", 0)],
            &[("level", 2)],
        ],
    );
    let mut flows = vec![sparse()];
    flows.extend(af);
    for _ in 0..EF_BURST {
        flows.push(flow(1, cbr(EF_BPS / f64::from(EF_BURST), EF_BYTES)));
    }
    flows.push(flow(2, greedy(LARGE_BYTES)));
    with_flows(LINK_BPS, policy, 3, flows)
}

#[test]
fn a_reserved_rate_delays_a_sparse_flow_by_its_bound() {
    for burst in [2, 20] {
        let mut e = reserved(load(0, RESERVED_BPS), burst);
        e.classes[0].flows = Some(Isolation::FqCodel);
        // LM - LR = (burst - 1) mtu (1 - rho/C); the bursts of EF and a packet that has begun go before.
        let large_bits = 8.0 * f64::from(LARGE_BYTES);
        let ahead_bits = (burst - 1) as f64 * large_bits * (1.0 - RESERVED_BPS / LINK_BPS);
        let burst_bits = 8.0 * f64::from(EF_BURST * EF_BYTES);
        let above_s = (burst_bits + large_bits) / (LINK_BPS - EF_BPS);
        let more_s = (ahead_bits + large_bits) / RESERVED_BPS + above_s;
        within(
            delays(&e),
            alone(RESERVED_BPS).map(|s| 1.2 * s + more_s),
            &format!("pss with bursts of {burst}"),
        );
    }
}

fn near(found: f64, wanted: f64, what: &str) {
    println!("{what}: {found} of {wanted} bit/s");
    assert!(
        (found / wanted - 1.0).abs() < 0.01,
        "{what}: {found} bit/s, not {wanted} bit/s"
    );
}

#[test]
fn a_reserved_rate_is_kept_with_flows_as_without() {
    let flows: [(&str, Vec<Flow>); 3] = [
        (
            "sources that never lack packets",
            (0..3).map(|_| flow(0, greedy(LARGE_BYTES))).collect(),
        ),
        ("connections and a source", load(0, RESERVED_BPS)),
        ("connections", (0..8).map(|_| cubic(0)).collect()),
    ];
    for (what, af) in flows {
        for isolation in [None, Some(Isolation::FqCodel), Some(Isolation::Drr)] {
            let mut e = reserved(af.clone(), 20);
            e.classes[0].flows = isolation;
            let found = tables(&e).numbers("classes", "rate_bps");
            near(found[0], RESERVED_BPS, &format!("{what}, {isolation:?}"));
            near(found[1], EF_BPS, "EF");
        }
    }
}

#[test]
fn shares_of_drr_are_kept_with_flows_as_without() {
    for isolation in [None, Some(Isolation::FqCodel), Some(Isolation::Drr)] {
        let queues = [&[("quantum", 3000)][..], &[("quantum", 1000)][..]];
        let mut flows = vec![sparse()];
        flows.extend(load(0, 15.0 * MBIT));
        flows.extend(load(1, 5.0 * MBIT));
        let mut e = with_flows(20.0 * MBIT, scheduler("drr", &[], &queues), 2, flows);
        e.classes[0].flows = isolation;
        e.classes[1].flows = isolation;
        let found = tables(&e).numbers("classes", "rate_bps");
        near(
            found[0],
            15.0 * MBIT,
            &format!("three quarters, {isolation:?}"),
        );
        near(found[1], 5.0 * MBIT, &format!("one quarter, {isolation:?}"));
    }
}
