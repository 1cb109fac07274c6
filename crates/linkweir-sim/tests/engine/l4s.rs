// SPDX-License-Identifier: BSD-3-Clause
//! DualPI2 below a simulated link: L4S packets hardly wait, classic ones for about the target, and both are marked, not dropped.

use linkweir_sim::experiment::{Experiment, Flow, Signal, Sizes, Traffic};
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
