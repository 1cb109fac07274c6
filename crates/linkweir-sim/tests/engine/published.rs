// SPDX-License-Identifier: BSD-3-Clause
//! Rates the published schedulers must give (Finzi, Perrier, Frances and Lochin 2023, equations 1, 6, 7, 8, and what
//! follows from the definition of PSS).

use crate::build::*;
use linkweir_sim::experiment::{Capacity, End, Experiment, Signal};

const C: f64 = 20e6;

/// EF, AF and CS0 on 20 Mbit/s: EF a constant stream, AF and CS0 always backlogged.
fn three_classes(
    scheduler: linkweir_sim::experiment::Scheduler,
    ef_bps: f64,
    duration_ns: u64,
) -> Experiment {
    let mut e = experiment(rate(C), C as u64, scheduler, 3, duration_ns);
    e.classes[0].limit_pkts = Some(500);
    e.flows = vec![
        flow(0, cbr(ef_bps, 1500)),
        flow(1, greedy(1500)),
        flow(2, greedy(1500)),
    ];
    e
}

fn pss(rho_bps: f64, memory_ns: u64, set: &[(&str, &str)]) -> linkweir_sim::experiment::Scheduler {
    let af = [
        ("level", 1),
        ("low_level", 3),
        ("rate", rho_bps as u64),
        ("memory", memory_ns),
        ("mtu", 1500),
    ];
    scheduler("pss", set, &[&[("level", 0)], &af, &[("level", 2)]])
}

fn drr(k: f64) -> linkweir_sim::experiment::Scheduler {
    let total = (1500.0 / k.min(1.0 - k)).ceil();
    let quantum = |share: f64| ("quantum", (share * total).round() as u64);
    scheduler(
        "drr",
        &[],
        &[
            &[("level", 0)],
            &[("level", 1), quantum(k)],
            &[("level", 1), quantum(1.0 - k)],
        ],
    )
}

fn close(found: f64, expected: f64, relative: f64, what: &str) {
    // A rate of 0 may differ by the same fraction of the link.
    let slack = relative * if expected > 0.0 { expected } else { 20.0 };
    assert!(
        (found - expected).abs() <= slack,
        "{what}: {found} Mbit/s instead of {expected}"
    );
}

#[test]
fn fixed_capacity_figures_5_and_6() {
    for tenth in 1..=9 {
        let k = f64::from(tenth) / 10.0;
        for ef in [0.25, 0.5, 0.75] {
            let rest = 20.0 * (1.0 - ef);
            let rho = k * 10.0;
            let (af, cs0) = (rho.min(rest), rest - rho.min(rest));
            let found = class_mbps(&three_classes(pss(rho * 1e6, 10 * MS, &[]), ef * C, 30 * S));
            close(found[1], af, 0.005, &format!("PSS AF, K {k}, EF {ef}"));
            close(found[2], cs0, 0.005, &format!("PSS CS0, K {k}, EF {ef}"));
            let found = class_mbps(&three_classes(drr(k), ef * C, 30 * S));
            close(
                found[1],
                k * rest,
                0.005,
                &format!("DRR AF, K {k}, EF {ef}"),
            );
            close(
                found[2],
                (1.0 - k) * rest,
                0.005,
                &format!("DRR CS0, K {k}, EF {ef}"),
            );
        }
    }
}
