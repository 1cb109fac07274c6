// SPDX-License-Identifier: BSD-3-Clause
//! Mean throughput of each queue, forgotten exponentially: what the reconstructions measure a channel by.

use linkweir_core::{Queue, View};

/// Time constant of the means, s.
const TC_S: f64 = 1.0;

#[derive(Debug)]
pub(super) struct Means {
    /// Bytes, each counted less the longer ago it was sent, and the time of which that is true.
    sums: Vec<(f64, u64)>,
}

impl Means {
    pub(super) fn new(nqueues: usize) -> Means {
        Means {
            sums: vec![(0.0, 0); nqueues],
        }
    }

    /// Bytes per second lately.
    pub(super) fn bytes_s(&self, q: usize, now_ns: u64) -> f64 {
        let (sum, at_ns) = self.sums[q];
        sum / TC_S * libm::exp(-((now_ns - at_ns) as f64) * 1e-9 / TC_S)
    }

    pub(super) fn sent(&mut self, q: usize, now_ns: u64, bytes: u32) {
        let sum = self.bytes_s(q, now_ns) * TC_S + f64::from(bytes);
        self.sums[q] = (sum, now_ns);
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
