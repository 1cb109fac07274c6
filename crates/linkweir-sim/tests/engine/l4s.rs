// SPDX-License-Identifier: BSD-3-Clause
//! DualPI2 below a simulated link: L4S packets hardly wait, classic ones for about the target, and both are marked, not dropped.

use linkweir_core::Isolation;
use linkweir_sim::experiment::{Experiment, Flow, Scheduler, Signal, Sizes, Traffic};
use linkweir_sim::tcp;

use crate::build::*;

const CLASSIC: usize = 0;
const L4S: usize = 1;

/// Downloads over classic TCP with ECN, and packets at random times in the L4S queue.
fn shared(link_bps: f64, l4s_bps: f64) -> Experiment {
    let policy = scheduler("dualpi2", &[], &[&[], &[("l4s", 1)]]);
    let mut e = experiment(rate(link_bps), link_bps as u64, policy, 2, 60 * S);
    e.warmup_ns = 20 * S;
    let mut config = tcp::Config::new(tcp::Algorithm::Cubic, tcp::Profile::Linux);
    config.ecn = true;
    let download = Flow {
        access_delay_ns: 10 * MS,
        ..flow(CLASSIC, Traffic::Tcp(config))
    };
    let stream = Traffic::Poisson {
        rate_bps: Signal::Constant(l4s_bps),
        packet: Sizes::Fixed(1200),
    };
    e.flows = vec![download; 4];
    e.flows.push(flow(L4S, stream));
    for (at, flow) in e.flows.iter_mut().enumerate() {
        flow.name = format!("f{at}");
    }
    e
}

/// RFC 9332, section 2.5.1 and appendix A.1: a step of 1 ms for L4S, and a target of 15 ms for classic packets.
#[test]
fn l4s_packets_hardly_wait_and_classic_ones_for_the_target() {
    for link_bps in [20e6, 100e6] {
        let found = tables(&shared(link_bps, link_bps / 10.0));
        let of = |name: &str| found.numbers("classes", name);
        let (p99, mean) = (of("delay_p99_s"), of("delay_mean_s"));
        println!("{link_bps} bit/s: p99 {p99:?} s, means {mean:?} s");
        assert!(p99[L4S] <= 0.002, "{link_bps} bit/s: {} s", p99[L4S]);
        assert!(
            (0.012..0.018).contains(&mean[CLASSIC]),
            "{link_bps} bit/s: {} s",
            mean[CLASSIC]
        );
        assert!(of("marked_pkts").iter().all(|pkts| *pkts > 0.0));
        assert_eq!(of("dropped_policy_pkts"), [0.0, 0.0]);
        let busy: f64 = of("rate_bps").iter().sum();
        assert!(busy >= 0.9 * link_bps, "{busy} of {link_bps} bit/s");
    }
}

/// A minute of a link, after 30 s, whose classes hold more packets than ever wait.
fn roomy_link(link_bps: f64, round_trip_ns: u64, policy: Scheduler, classes: usize) -> Experiment {
    let mut e = experiment(rate(link_bps), link_bps as u64, policy, classes, 90 * S);
    e.warmup_ns = 30 * S;
    e.link.delay_s = Signal::Constant(round_trip_ns as f64 / 2e9);
    e.link.return_delay_ns = round_trip_ns / 2;
    for class in &mut e.classes {
        class.limit_pkts = Some(10_000);
    }
    e
}

/// One download of each kind over the same round trip.
fn two_downloads(link_bps: f64, round_trip_ns: u64, l4s: tcp::Algorithm) -> Experiment {
    let policy = scheduler("dualpi2", &[], &[&[], &[("l4s", 1)]]);
    let mut e = roomy_link(link_bps, round_trip_ns, policy, 2);
    for (class, algorithm) in [(CLASSIC, tcp::Algorithm::Cubic), (L4S, l4s)] {
        let mut config = tcp::Config::new(algorithm, tcp::Profile::Linux);
        config.ecn = true;
        e.flows.push(flow(class, Traffic::Tcp(config)));
    }
    e
}

/// RFC 9332, section 1.2: a scalable and a classic sender get about the same rates, and the scalable one's packets hardly
/// wait. `bench/l4s.py` has more cells; there are those in which the rates differ more.
#[test]
fn prague_and_cubic_share_a_link_and_prague_hardly_waits() {
    for (mbit, round_trip_ms) in [(12, 10), (12, 20), (40, 5), (40, 10), (120, 5)] {
        let e = two_downloads(
            f64::from(mbit) * 1e6,
            round_trip_ms * MS,
            tcp::Algorithm::Prague,
        );
        let found = tables(&e);
        let of = |name: &str| found.numbers("classes", name);
        let (rates, p99) = (of("rate_bps"), of("delay_p99_s"));
        let (ratio, busy) = (rates[L4S] / rates[CLASSIC], rates[L4S] + rates[CLASSIC]);
        println!("{mbit} Mbit/s, {round_trip_ms} ms: {ratio}, p99 {p99:?} s, {busy} bit/s");
        assert!(
            (0.5..=2.0).contains(&ratio),
            "{mbit} {round_trip_ms}: {ratio}"
        );
        assert!(p99[L4S] <= 0.002, "{mbit} {round_trip_ms}: {} s", p99[L4S]);
        assert!(
            busy >= 0.9e6 * f64::from(mbit),
            "{mbit} {round_trip_ms}: {busy}"
        );
        assert_eq!(of("dropped_policy_pkts"), [0.0, 0.0]);
    }
}

const AF: usize = 0;

/// Prague and CUBIC in AF, which sorts them; `policy` gives AF two thirds of the link. EF goes before it, and a source that never
/// lacks packets takes what is left.
fn inside_a_class(policy: &str, af_bps: f64, round_trip_ns: u64) -> Experiment {
    let link_bps = 1.5 * af_bps;
    let reserved = [
        ("level", 1),
        ("low_level", 3),
        ("rate", af_bps as u64),
        ("burst", 2),
    ];
    let policy = match policy {
        "pss" => scheduler("pss", &[], &[&reserved, &[("level", 0)], &[("level", 2)]]),
        _ => scheduler(
            policy,
            &[],
            &[
                &[("quantum", 3000)],
                &[("quantum", 400)],
                &[("quantum", 1100)],
            ],
        ),
    };
    let mut e = roomy_link(link_bps, round_trip_ns, policy, 3);
    e.classes[AF].flows = Some(Isolation::DualPi2 { step_ns: None });
    for algorithm in [tcp::Algorithm::Cubic, tcp::Algorithm::Prague] {
        let mut config = tcp::Config::new(algorithm, tcp::Profile::Linux);
        config.ecn = true;
        e.flows.push(flow(AF, Traffic::Tcp(config)));
    }
    e.flows.push(flow(1, cbr(0.05 * link_bps, 200)));
    e.flows.push(flow(2, greedy(1500)));
    for (at, flow) in e.flows.iter_mut().enumerate() {
        flow.name = format!("f{at}");
    }
    e
}

/// ECT(0) of classic TCP is no sign of L4S (RFC 9331, section 5.1).
#[test]
fn only_senders_that_count_marks_have_l4s_packets() {
    let mut e = inside_a_class("pss", 40e6, 10 * MS);
    let behind_s = |e: &Experiment| {
        let found = tables(e);
        let waits = found.numbers("flows", "delay_mean_s");
        waits[L4S] - waits[CLASSIC]
    };
    assert!(behind_s(&e) < -0.005, "an L4S packet hardly waits");
    let Traffic::Tcp(config) = &mut e.flows[L4S].traffic else {
        panic!("it is a download")
    };
    config.algorithm = tcp::Algorithm::Cubic;
    assert!(behind_s(&e).abs() < 0.002, "both are in one queue");
}

/// What `make check` leaves out.
mod slow {
    use super::*;

    /// The policy of the classes keeps the rate of AF; inside it, the two senders share as they do alone with `dualpi2`, and L4S
    /// packets wait as little. `bench/l4s.py --inside` has more cells.
    #[test]
    fn prague_and_cubic_share_a_class_that_keeps_its_rate() {
        for (policy, mbit, round_trip_ms) in [
            ("pss", 40, 5),
            ("pss", 40, 10),
            ("pss", 120, 5),
            ("drr", 40, 10),
        ] {
            let af_bps = f64::from(mbit) * 1e6;
            let found = tables(&inside_a_class(policy, af_bps, round_trip_ms * MS));
            let of_class = found.numbers("classes", "rate_bps")[AF];
            let rates = found.numbers("flows", "rate_bps");
            let wait_s = found.numbers("flows", "delay_p99_s")[L4S] - round_trip_ms as f64 / 2e3;
            let ratio = rates[L4S] / rates[CLASSIC];
            let what = format!("{policy}, {mbit} Mbit/s, {round_trip_ms} ms");
            assert!((0.5..=2.0).contains(&ratio), "{what}: {ratio}");
            assert!(wait_s <= 0.002, "{what}: {wait_s} s");
            assert!(of_class >= 0.99 * af_bps, "{what}: {of_class} bit/s");
            let lost = found.numbers("classes", "dropped_policy_pkts");
            assert_eq!(lost, [0.0; 3], "{what}");
        }
    }
}
