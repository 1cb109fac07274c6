// SPDX-License-Identifier: BSD-3-Clause
//! Distributions of times, of which there may be thousands.
//!
//! The counts of one histogram lie far apart in memory, and those of thousands do not fit into a cache, so each value
//! counted is a cache miss. Values are therefore first noted in a small array and then counted in batches.

use std::borrow::Cow;

use hdrhistogram::Histogram;

/// Values noted before they are counted.
const NOTED: usize = 32;

/// A distribution of times in ns, to within 1 %.
#[derive(Clone, Debug)]
pub struct Distribution {
    noted: [u64; NOTED],
    nnoted: usize,
    /// Grows with the largest value seen, to [`Distribution::MOST_BYTES`] at the very most. None before the first is counted.
    counted: Option<Histogram<u64>>,
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution {
            noted: [0; NOTED],
            nnoted: 0,
            counted: None,
        }
    }
}

impl Distribution {
    /// Most bytes that its counts take.
    pub const MOST_BYTES: u64 = 58 << 10;

    /// Adds a value, ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.noted[self.nnoted] = ns;
        self.nnoted += 1;
        if self.nnoted == NOTED {
            self.settle();
        }
    }

    /// Adds the same value `times` times, ns.
    #[inline]
    pub fn record_n(&mut self, ns: u64, times: u64) {
        if times == 1 {
            self.record(ns);
        } else {
            count(self.counted.get_or_insert_with(empty), ns, times);
        }
    }

    /// Adds all values of another distribution.
    pub fn add(&mut self, other: &Distribution) {
        self.counted
            .get_or_insert_with(empty)
            .add(&*other.whole())
            .expect("a growing histogram takes every value");
    }

    /// Forgets all values and keeps its memory.
    pub fn reset(&mut self) {
        self.nnoted = 0;
        if let Some(counted) = &mut self.counted {
            counted.reset();
        }
    }

    /// All values so far.
    #[must_use]
    pub fn whole(&self) -> Cow<'_, Histogram<u64>> {
        let mut whole = self
            .counted
            .as_ref()
            .map_or_else(|| Cow::Owned(empty()), Cow::Borrowed);
        for &ns in &self.noted[..self.nnoted] {
            count(whole.to_mut(), ns, 1);
        }
        whole
    }

    /// Counts the values noted, so that [`Distribution::whole`] need not do it each time.
    #[inline(never)]
    pub fn settle(&mut self) {
        for &ns in &self.noted[..self.nnoted] {
            count(self.counted.get_or_insert_with(empty), ns, 1);
        }
        self.nnoted = 0;
    }
}

fn empty() -> Histogram<u64> {
    Histogram::new(2).expect("two significant figures are allowed")
}

fn count(histogram: &mut Histogram<u64>, ns: u64, times: u64) {
    histogram
        .record_n(ns, times)
        .expect("a growing histogram takes every value");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_times_takes_no_more_than_is_said() {
        let mut found = Distribution::default();
        found.record(1);
        found.record(u64::MAX);
        let bytes = 8 * found.whole().distinct_values() as u64;
        assert_eq!(bytes, Distribution::MOST_BYTES);
    }

    #[test]
    fn counts_what_is_noted_like_what_is_counted() {
        let mut found = Distribution::default();
        let mut wanted = Histogram::<u64>::new(2).unwrap();
        for i in 0..=2 * NOTED as u64 {
            assert_eq!(*found.whole(), wanted);
            found.record(i * 1_000_000_007);
            wanted.record(i * 1_000_000_007).unwrap();
        }
        found.record_n(5, 3);
        found.record_n(6, 1);
        wanted.record_n(5, 3).unwrap();
        wanted.record(6).unwrap();
        assert_eq!(*found.whole(), wanted);

        let mut sum = Distribution::default();
        sum.record(7);
        sum.add(&found);
        wanted.record(7).unwrap();
        assert_eq!(*sum.whole(), wanted);
        sum.reset();
        assert!(sum.whole().is_empty());
    }
}
