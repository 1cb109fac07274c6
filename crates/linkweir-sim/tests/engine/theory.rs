// SPDX-License-Identifier: BSD-3-Clause
//! Mean waits that queueing theory knows exactly. Packets of 1250 bytes at 10 Mbit/s: service takes 1 ms.

use crate::build::*;
use linkweir_sim::experiment::{Signal, Sizes, Traffic};

const SERVICE_S: f64 = 1e-3;

fn poisson(load: f64) -> Traffic {
    Traffic::Poisson {
        rate_bps: Signal::Constant(load * 10e6),
        packet: Sizes::Fixed(1250),
    }
}

fn close(found: f64, expected: f64, relative: f64, what: &str) {
    assert!(
        (found - expected).abs() <= relative * expected,
        "{what}: {found} instead of {expected}"
    );
}

/// Pollaczek and Khinchine: W = rho S / (2 (1 - rho)) for constant service.
#[test]
fn m_d_1_waits_as_pollaczek_and_khinchine_say() {
    for rho in [0.5, 0.7] {
        let mut e = experiment(
            rate(10e6),
            10_000_000,
            scheduler("fifo", &[], &[&[]]),
            1,
            3_000 * S,
        );
        e.classes[0].limit_pkts = None;
        e.flows = vec![flow(0, poisson(rho))];
        let wait = tables(&e).numbers("classes", "delay_mean_s")[0];
        close(
            wait,
            rho * SERVICE_S / (2.0 * (1.0 - rho)),
            0.02,
            &format!("M/D/1 at {rho}"),
        );
    }
}

/// Kleinrock 1964 and 1976: sum of rho_i W_i is the same for every work-conserving order of equal packets, and
/// time-dependent priorities wait as the recursion says.
#[test]
fn wtp_obeys_the_conservation_law_and_kleinrocks_waits() {
    let (loads, d) = ([0.2, 0.3, 0.25], [1, 2, 8]);
    let queues: [&[_]; 3] = [&[("delay", d[0])], &[("delay", d[1])], &[("delay", d[2])]];
    let pds = scheduler("pds", &[("limit", "1048576")], &queues);
    let mut e = experiment(rate(10e6), 10_000_000, pds, 3, 3_000 * S);
    e.flows = (0..3)
        .map(|class| flow(class, poisson(loads[class])))
        .collect();
    for class in &mut e.classes {
        class.limit_pkts = None;
    }
    let waits = tables(&e).numbers("classes", "delay_mean_s");
    let rho: f64 = loads.iter().sum();
    let residual = rho * SERVICE_S / 2.0;
    let conserved: f64 = loads
        .iter()
        .zip(&waits)
        .map(|(load, wait)| load * wait)
        .sum();
    close(
        conserved,
        rho * residual / (1.0 - rho),
        0.02,
        "sum of rho W",
    );

    // Classes in order of increasing priority: what the less urgent cost the more urgent, and the other way round.
    let mut exact = [0.0; 3];
    for p in 0..3 {
        let ratio = |a: usize, b: usize| d[a] as f64 / d[b] as f64;
        let below: f64 = (0..p)
            .map(|i| loads[i] * exact[i] * (1.0 - ratio(i, p)))
            .sum();
        let above: f64 = (p + 1..3).map(|i| loads[i] * (1.0 - ratio(p, i))).sum();
        exact[p] = (residual / (1.0 - rho) - below) / (1.0 - above);
        close(waits[p], exact[p], 0.03, &format!("class {p}"));
    }
}

/// What `make check` leaves out.
mod slow {
    use super::*;

    /// Two sizes: W = lambda E[S^2] / (2 (1 - rho)).
    #[test]
    fn m_g_1_waits_by_the_second_moment() {
        let mut e = experiment(
            rate(10e6),
            10_000_000,
            scheduler("fifo", &[], &[&[]]),
            1,
            3_000 * S,
        );
        e.classes[0].limit_pkts = None;
        let packet = Sizes::Mix([(125, 3.0), (1250, 1.0)].into());
        e.flows = vec![flow(
            0,
            Traffic::Poisson {
                rate_bps: Signal::Constant(6e6),
                packet,
            },
        )];
        // S is 0.1 ms three times of four and 1 ms once: E[S] = 0.325 ms, E[S^2] = 0.2575 ms^2.
        let lambda = 0.6 / 0.325e-3;
        let wait = tables(&e).numbers("classes", "delay_mean_s")[0];
        close(wait, lambda * 0.2575e-6 / (2.0 * 0.4), 0.02, "M/G/1");
    }
}
