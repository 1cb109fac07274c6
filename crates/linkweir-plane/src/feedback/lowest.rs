// SPDX-License-Identifier: BSD-3-Clause
//! How far the capacity may grow if falls are to be anticipated.
//!
//! A fall is known one round trip and the time between two marks late. Until then the queue below grows by
//! `rate / capacity - 1` of that time. A link that was slower a moment ago may become so again at any time, so the estimate
//! grows only to the capacity from which a fall to the lowest one of the last seconds fills the queue by no more than is
//! allowed. This changes nothing for a link that did not vary in this time, and is left out where delays jitter. After a deep
//! fall the estimate takes one such step each time that the memory lasts.

use std::collections::VecDeque;

/// For how long the lowest capacity is remembered, ns.
const MEMORY_NS: u64 = 3_000_000_000;
/// By how much a fall to it may fill the queue, ns: with the queue that is aimed at and a packet before it, voice then waits for
/// 20 ms.
const ALLOWED_NS: f64 = 15e6;

/// The lowest capacity of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Lowest {
    /// When a capacity was known, ns, and the capacity, bit/s: only those that no later one is below, so the first is the
    /// lowest.
    known: VecDeque<(u64, f64)>,
}

impl Lowest {
    /// Takes the capacity that is known now.
    pub(super) fn add(&mut self, now_ns: u64, bps: f64) {
        while self
            .known
            .back()
            .is_some_and(|(_, last_bps)| *last_bps >= bps)
        {
            self.known.pop_back();
        }
        self.known.push_back((now_ns, bps));
        while self
            .known
            .front()
            .is_some_and(|(ns, _)| now_ns.saturating_sub(*ns) > MEMORY_NS)
        {
            self.known.pop_front();
        }
    }

    /// The capacity up to which the estimate may grow if a fall is known `unseen_ns` late, bit/s; infinite if none is known.
    pub(super) fn most_bps(&self, unseen_ns: u64) -> f64 {
        self.known.front().map_or(f64::INFINITY, |(_, bps)| {
            bps * (1.0 + ALLOWED_NS / unseen_ns as f64)
        })
    }

    /// Forgets all: the path is another one.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_lowest_of_the_last_seconds_counts() {
        let mut lowest = Lowest::default();
        assert_eq!(lowest.most_bps(80_000_000), f64::INFINITY);
        lowest.add(0, 10e6);
        lowest.add(S, 6e6);
        lowest.add(2 * S, 8e6);
        // 15 ms in 80 ms: 3/16 more.
        assert_eq!(lowest.most_bps(80_000_000), 7.125e6);
        lowest.add(4 * S, 9e6);
        assert_eq!(lowest.most_bps(80_000_000), 7.125e6);
        lowest.add(4 * S + 1, 9e6);
        assert_eq!(lowest.most_bps(80_000_000), 9.5e6);
        lowest.forget();
        assert_eq!(lowest.most_bps(80_000_000), f64::INFINITY);
    }

    #[test]
    fn over_a_longer_path_less_is_risked() {
        let mut lowest = Lowest::default();
        lowest.add(0, 10e6);
        assert!(lowest.most_bps(500_000_000) < lowest.most_bps(50_000_000));
    }
}
