// SPDX-License-Identifier: BSD-3-Clause
//! Rates the published schedulers must give (Finzi, Perrier, Frances and Lochin 2023, equations 1, 6, 7, 8, and what
//! follows from the definition of PSS).

use crate::build::*;
use linkweir_sim::experiment::{Capacity, Experiment, Signal, Sizes, Traffic};

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

/// Packets pulled in bursts: time a packet finished before its nominal end is charged, so the reservation holds for
/// every size of ring. The older algorithm forgets it and gives AF ever more.
#[test]
fn bursts_pulled_by_the_device_do_not_change_a_reservation() {
    for (ring, older) in [(1, 8.0), (2, 9.19), (4, 10.91), (8, 12.0), (16, 12.63)] {
        let af = |early| {
            let mut e = three_classes(pss(8e6, 100 * MS, &[("early", early)]), 5e6, 100 * S);
            e.link.ring = ring;
            class_mbps(&e)[1]
        };
        close(af("charge"), 8.0, 0.005, &format!("ring of {ring}"));
        close(
            af("ignore"),
            older,
            0.01,
            &format!("ring of {ring}, older algorithm"),
        );
    }
}

/// Below the sum of the reservations the controlled queues get what is left in order of their urgent levels.
#[test]
fn two_reservations_on_too_little_capacity_give_6_2_0() {
    let queues: [&[_]; 4] = [
        &[("level", 0)],
        &[("level", 1), ("low_level", 4), ("rate", 6_000_000)],
        &[("level", 2), ("low_level", 5), ("rate", 4_000_000)],
        &[("level", 3)],
    ];
    let mut e = experiment(rate(C), C as u64, scheduler("pss", &[], &queues), 4, 30 * S);
    e.flows = vec![
        flow(0, cbr(12e6, 1500)),
        flow(1, greedy(1500)),
        flow(2, greedy(1500)),
        flow(3, greedy(1500)),
    ];
    let found = class_mbps(&e);
    for (class, expected) in [12.0, 6.0, 2.0, 0.0].into_iter().enumerate() {
        close(found[class], expected, 0.005, &format!("class {class}"));
    }
}

/// What `make check` leaves out.
mod slow {
    use super::*;

    /// Capacity and EF both swing; with a memory of the capacity's period AF gets its mean, without one it does not.
    #[test]
    fn varying_capacity_figure_7() {
        let swing = |mean: f64, amplitude, period_ms| Signal::Cosine {
            mean,
            amplitude,
            period_ns: period_ms * MS,
            phase_rad: 0.0,
        };
        let af = |memory: &[(&str, u64)]| {
            let mut queue = vec![
                ("level", 1),
                ("low_level", 3),
                ("rate", 8_100_000),
                ("mtu", 1500),
            ];
            queue.extend_from_slice(memory);
            let pss = scheduler("pss", &[], &[&[("level", 0)], &queue, &[("level", 2)]]);
            let mut e = three_classes(pss, 10e6, 915 * S);
            e.link.capacity = Capacity::Rate(swing(C, 0.3, 15_000));
            e.flows[0].traffic = Traffic::Cbr {
                rate_bps: swing(10e6, 0.6, 6_100),
                jitter: 0.0,
                packet: Sizes::Fixed(1500),
            };
            class_mbps(&e)[1]
        };
        close(af(&[("memory", 15 * S)]), 8.10, 0.01, "with memory");
        // LR of one packet of the reserved share.
        close(
            af(&[("lr", 12_000 * 81 / 200)]),
            6.47,
            0.01,
            "without memory",
        );
    }
}
