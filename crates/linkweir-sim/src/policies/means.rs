// SPDX-License-Identifier: BSD-3-Clause
//! Mean throughput of each queue with exponential decay, to which the reconstructed policies relate a channel's rate.

use linkweir_core::{Queue, View};

/// Time constant of the means, s.
const TC_S: f64 = 1.0;

/// After this time the common factor starts again, so that it does not overflow.
const EPOCH_NS: u64 = 100_000_000_000;

/// All means decay at the same rate, so each is kept times exp(t / Tc), which stays as it is while nothing is sent.
#[derive(Debug)]
pub(super) struct Means {
    sums: Vec<f64>,
    since_ns: u64,
    /// exp((t - since) / Tc) at the time asked for last.
    factor: (u64, f64),
}

impl Means {
    pub(super) fn new(nqueues: usize) -> Means {
        Means {
            sums: vec![0.0; nqueues],
            since_ns: 0,
            factor: (0, 1.0),
        }
    }

    /// Takes note of the time; whether all sums were changed.
    pub(super) fn clock(&mut self, now_ns: u64) -> bool {
        if self.factor.0 == now_ns {
            return false;
        }
        let mut grown = libm::exp((now_ns - self.since_ns) as f64 * 1e-9 / TC_S);
        let restarted = now_ns - self.since_ns > EPOCH_NS;
        if restarted {
            for sum in &mut self.sums {
                *sum /= grown;
            }
            self.since_ns = now_ns;
            grown = 1.0;
        }
        self.factor = (now_ns, grown);
        restarted
    }

    /// Recent throughput, bytes/s, as of the time noted last.
    pub(super) fn bytes_s(&self, q: usize) -> f64 {
        self.sums[q] / self.factor.1 / TC_S
    }

    /// The stored value of a queue: its mean times [`Means::grown`].
    pub(super) fn sum(&self, q: usize) -> f64 {
        self.sums[q]
    }

    /// By how much sums are greater than means, as of the time noted last.
    pub(super) fn grown(&self) -> f64 {
        self.factor.1 * TC_S
    }

    pub(super) fn sent(&mut self, q: usize, now_ns: u64, bytes: u32) {
        self.clock(now_ns);
        self.sums[q] += f64::from(bytes) * self.factor.1;
    }
}

/// Whether a queue may be served.
pub(super) fn eligible(queue: &Queue) -> bool {
    queue.backlog_pkts > 0 && queue.rate_bps > 0
}

/// Age of the head packet of a queue, ns.
pub(super) fn age_ns(view: &View<'_>, q: usize) -> u64 {
    view.now_ns.saturating_sub(view.queues[q].head_arrival_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_decay_also_beyond_an_epoch() {
        const S: u64 = 1_000_000_000;
        let mut means = Means::new(2);
        means.sent(0, S, 1000);
        assert!((means.bytes_s(0) - 1000.0).abs() < 1e-9);
        means.clock(2 * S);
        assert!((means.bytes_s(0) - 1000.0 / std::f64::consts::E).abs() < 1e-9);
        means.sent(1, 2 * S, 1000);
        means.clock(250 * S);
        assert!(means.bytes_s(0) > 0.0);
        let apart = means.bytes_s(1) / means.bytes_s(0);
        assert!((apart - std::f64::consts::E).abs() < 1e-9);
        means.sent(1, 250 * S, 500);
        assert!((means.bytes_s(1) - 500.0).abs() < 1e-9);
    }
}
