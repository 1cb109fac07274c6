// SPDX-License-Identifier: BSD-3-Clause
//! The capacity as it is reported to a scheduler that follows it: every step when it happens, a smooth change every 10 ms,
//! opportunities every 10 ms as the mean over the last 100 ms.

use linkweir_config::signal::{Capacity, Signal, Track};

/// From one report of a smoothly changing or recorded capacity to the next, ns.
const REPORT_NS: u64 = 10_000_000;
/// Width of the window over which opportunities become a rate, in reports.
const WINDOW: usize = 10;

#[derive(Debug)]
pub(super) struct Reported {
    rate: Track,
    /// Bits offered up to each of the last reports.
    offered_bits: [f64; WINDOW],
    reports: usize,
}

impl Reported {
    pub(super) fn new(capacity: &Capacity) -> Reported {
        Reported {
            rate: match capacity {
                Capacity::Rate(signal) => Track::new(signal),
                Capacity::Opportunities { .. } => Track::new(&Signal::Constant(0.0)),
            },
            offered_bits: [0.0; WINDOW],
            reports: 0,
        }
    }

    /// The rate to report now, bit/s, if any, and when the next report is due; `offered_bits` is what opportunities have
    /// offered since the start.
    pub(super) fn next(
        &mut self,
        now_ns: u64,
        capacity: &Capacity,
        offered_bits: f64,
    ) -> (Option<u64>, Option<u64>) {
        let (rate_bps, next_ns) = match capacity {
            Capacity::Rate(signal) => {
                let rate_bps = self.rate.value(now_ns);
                let next_ns = match signal {
                    Signal::Constant(_) => None,
                    Signal::Steps { .. } => self.rate.next_change_ns(now_ns),
                    Signal::Cosine { .. } | Signal::Lines { .. } => Some(now_ns + REPORT_NS),
                };
                (Some(rate_bps), next_ns)
            }
            Capacity::Opportunities { .. } => {
                let slot = self.reports % WINDOW;
                let bits =
                    offered_bits - std::mem::replace(&mut self.offered_bits[slot], offered_bits);
                self.reports += 1;
                // Until the first window is over, the nominal rate stays.
                let rate_bps = (self.reports > WINDOW)
                    .then(|| bits / (REPORT_NS as f64 * 1e-9 * WINDOW as f64));
                (rate_bps, Some(now_ns + REPORT_NS))
            }
        };
        (rate_bps.map(|bps| (bps + 0.5) as u64), next_ns)
    }
}
