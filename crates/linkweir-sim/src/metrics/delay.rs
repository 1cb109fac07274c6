// SPDX-License-Identifier: BSD-3-Clause
//! Delays of a flow's packets: mean, percentiles, largest, and two measures of their variation.
//!
//! Jitter is the absolute difference between the one-way delays of two packets of a flow that were delivered one after
//! the other: its mean (mad) and percentiles, and the running estimate of RFC 3550. A class collects that of its flows.

use hdrhistogram::Histogram;
use linkweir_core::Distribution;

/// The variation of delays from packet to packet.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    count: u64,
    sum_ns: u128,
    max_ns: u64,
    distribution_ns: Distribution,
}

impl Jitter {
    pub(super) fn new() -> Jitter {
        Jitter {
            count: 0,
            sum_ns: 0,
            max_ns: 0,
            distribution_ns: Distribution::default(),
        }
    }

    #[inline]
    pub(super) fn record(&mut self, difference_ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(difference_ns);
        self.max_ns = self.max_ns.max(difference_ns);
        self.distribution_ns.record(difference_ns);
    }

    /// Takes in what another one counted.
    pub(super) fn add(&mut self, other: &Jitter) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.distribution_ns.add(&other.distribution_ns);
    }

    pub(super) fn reset(&mut self) {
        *self = Jitter {
            distribution_ns: emptied(&mut self.distribution_ns),
            ..Jitter::new()
        };
    }

    pub(super) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e9)
    }

    pub(super) fn quantile_s(&self, q: f64) -> Option<f64> {
        quantile_s(&self.distribution_ns.whole(), q).map(|s| s.min(self.max_ns as f64 / 1e9))
    }
}

/// The same distribution without its values, so that it keeps its room.
fn emptied(distribution: &mut Distribution) -> Distribution {
    let mut found = std::mem::take(distribution);
    found.reset();
    found
}

#[derive(Clone, Debug)]
pub(super) struct Delays {
    count: u64,
    sum_ns: u128,
    max_ns: u64,
    distribution_ns: Distribution,
    previous_ns: Option<u64>,
    /// The running estimate of RFC 3550, section 6.4.1, ns.
    jitter_ns: f64,
    pub(super) jitter: Jitter,
}

impl Delays {
    pub(super) fn new() -> Delays {
        Delays {
            count: 0,
            sum_ns: 0,
            max_ns: 0,
            distribution_ns: Distribution::default(),
            previous_ns: None,
            jitter_ns: 0.0,
            jitter: Jitter::new(),
        }
    }

    #[inline(always)] // it has a caller for each medium, and is no longer inlined by itself
    pub(super) fn record(&mut self, delay_ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(delay_ns);
        self.max_ns = self.max_ns.max(delay_ns);
        self.distribution_ns.record(delay_ns);
        if let Some(previous_ns) = self.previous_ns.replace(delay_ns) {
            let difference_ns = delay_ns.abs_diff(previous_ns);
            self.jitter_ns += (difference_ns as f64 - self.jitter_ns) / 16.0;
            self.jitter.record(difference_ns);
        }
    }

    /// All delays.
    pub(super) fn distribution_ns(&self) -> &Distribution {
        &self.distribution_ns
    }

    /// To be called before several quantiles are asked for: it saves a copy for each.
    pub(super) fn settle(&mut self) {
        self.distribution_ns.settle();
        self.jitter.distribution_ns.settle();
    }

    pub(super) fn reset(&mut self) {
        self.jitter.reset();
        *self = Delays {
            distribution_ns: emptied(&mut self.distribution_ns),
            jitter: std::mem::replace(&mut self.jitter, Jitter::new()),
            ..Delays::new()
        };
    }

    pub(super) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e9)
    }

    pub(super) fn quantile_s(&self, q: f64) -> Option<f64> {
        quantile_s(&self.distribution_ns.whole(), q).map(|s| s.min(self.max_ns as f64 / 1e9))
    }

    pub(super) fn max_s(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max_ns as f64 / 1e9)
    }

    pub(super) fn jitter_rfc3550_s(&self) -> Option<f64> {
        (self.jitter.count > 0).then_some(self.jitter_ns * 1e-9)
    }
}

/// A quantile of a histogram of ns, to within 1 %.
pub(super) fn quantile_s(histogram: &Histogram<u64>, q: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(q) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_worked_by_hand() {
        let mut delays = Delays::new();
        assert_eq!(delays.mean_s(), None);
        assert_eq!(delays.quantile_s(0.5), None);
        for ms in [10, 26, 10] {
            delays.record(ms * 1_000_000);
        }
        assert_eq!((delays.jitter.count, delays.jitter.sum_ns), (2, 32_000_000));
        assert_eq!(delays.max_s(), Some(0.026));
        assert!((delays.mean_s().unwrap() - 46e-3 / 3.0).abs() < 1e-12);
        // 16 ms, then 1 + (16 - 1) / 16.
        assert!((delays.jitter_rfc3550_s().unwrap() - 1.9375e-3).abs() < 1e-12);
        assert!((delays.jitter.mean_s().unwrap() - 16e-3).abs() < 1e-12);
        assert_eq!(delays.jitter.quantile_s(0.99), Some(16e-3));
        delays.reset();
        assert_eq!(delays.max_s(), None);
        assert_eq!(delays.jitter.mean_s(), None);
        assert_eq!(delays.jitter.quantile_s(0.5), None);
    }

    #[test]
    fn jitter_of_two_flows_taken_together() {
        let (mut one, mut other, mut both) = (Jitter::new(), Jitter::new(), Jitter::new());
        for ms in [1u64, 2, 3] {
            one.record(ms * 1_000_000);
        }
        other.record(90_000_000_000);
        both.add(&one);
        both.add(&other);
        both.add(&Jitter::new());
        assert!((both.mean_s().unwrap() - 90.006 / 4.0).abs() < 1e-12);
        assert_eq!(both.quantile_s(1.0), Some(90.0));
        assert!((both.quantile_s(0.5).unwrap() - 2e-3).abs() < 2e-5);
    }

    #[test]
    fn percentiles_of_jitter_worked_by_hand() {
        // Delays that step by 1, 2, ... 100 ms, up and down in turn.
        let mut delays = Delays::new();
        let mut delay_ms = 1000u64;
        delays.record(delay_ms * 1_000_000);
        for step_ms in 1..=100u64 {
            delay_ms = if step_ms % 2 == 0 {
                delay_ms - step_ms
            } else {
                delay_ms + step_ms
            };
            delays.record(delay_ms * 1_000_000);
        }
        assert!((delays.jitter.mean_s().unwrap() - 50.5e-3).abs() < 1e-12);
        for (q, ms) in [(0.5, 50.0), (0.95, 95.0), (0.99, 99.0)] {
            let found = delays.jitter.quantile_s(q).unwrap() * 1e3;
            assert!(
                (found - ms).abs() <= 0.01 * ms,
                "{q}: {found} ms instead of {ms}"
            );
        }
    }

    #[test]
    fn quantiles_are_within_one_percent() {
        let mut delays = Delays::new();
        for i in 1..=100_000u64 {
            delays.record(i * 12_345);
        }
        for q in [0.5, 0.95, 0.99] {
            let exact = q * 100_000.0 * 12_345e-9;
            let found = delays.quantile_s(q).unwrap();
            assert!(
                (found - exact).abs() <= 0.01 * exact,
                "{q}: {found} instead of {exact}"
            );
        }
    }
}
