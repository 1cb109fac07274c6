// SPDX-License-Identifier: BSD-3-Clause
//! Delays of a flow's packets: mean, percentiles, largest, and two measures of their variation.

use hdrhistogram::Histogram;

#[derive(Clone, Debug)]
pub(super) struct Delays {
    count: u64,
    sum_ns: u128,
    max_ns: u64,
    distribution_ns: Histogram<u64>,
    previous_ns: Option<u64>,
    /// The running estimate of RFC 3550, section 6.4.1, ns.
    jitter_ns: f64,
    difference_count: u64,
    difference_sum_ns: u128,
}

impl Delays {
    pub(super) fn new() -> Delays {
        Delays {
            count: 0,
            sum_ns: 0,
            max_ns: 0,
            distribution_ns: Histogram::new(2).expect("two significant figures are allowed"),
            previous_ns: None,
            jitter_ns: 0.0,
            difference_count: 0,
            difference_sum_ns: 0,
        }
    }

    #[inline]
    pub(super) fn record(&mut self, delay_ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(delay_ns);
        self.max_ns = self.max_ns.max(delay_ns);
        self.distribution_ns
            .record(delay_ns)
            .expect("a growing histogram takes every value");
        if let Some(previous_ns) = self.previous_ns {
            let difference_ns = delay_ns.abs_diff(previous_ns);
            self.jitter_ns += (difference_ns as f64 - self.jitter_ns) / 16.0;
            self.difference_count += 1;
            self.difference_sum_ns += u128::from(difference_ns);
        }
        self.previous_ns = Some(delay_ns);
    }

    pub(super) fn reset(&mut self) {
        let mut distribution_ns =
            std::mem::replace(&mut self.distribution_ns, Delays::new().distribution_ns);
        distribution_ns.reset();
        *self = Delays {
            distribution_ns,
            ..Delays::new()
        };
    }

    pub(super) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e9)
    }

    pub(super) fn quantile_s(&self, q: f64) -> Option<f64> {
        quantile_s(&self.distribution_ns, q).map(|s| s.min(self.max_ns as f64 / 1e9))
    }

    pub(super) fn max_s(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max_ns as f64 / 1e9)
    }

    pub(super) fn jitter_rfc3550_s(&self) -> Option<f64> {
        (self.difference_count > 0).then_some(self.jitter_ns * 1e-9)
    }

    pub(super) fn jitter_mad_s(&self) -> Option<f64> {
        (self.difference_count > 0)
            .then(|| self.difference_sum_ns as f64 / self.difference_count as f64 / 1e9)
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
        assert_eq!(delays.max_s(), Some(0.026));
        assert!((delays.mean_s().unwrap() - 46e-3 / 3.0).abs() < 1e-12);
        // 16 ms, then 1 + (16 - 1) / 16.
        assert!((delays.jitter_rfc3550_s().unwrap() - 1.9375e-3).abs() < 1e-12);
        assert!((delays.jitter_mad_s().unwrap() - 16e-3).abs() < 1e-12);
        delays.reset();
        assert_eq!(delays.max_s(), None);
        assert_eq!(delays.jitter_mad_s(), None);
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
