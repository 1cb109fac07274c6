// SPDX-License-Identifier: BSD-3-Clause
//! Distributions of times, of which there may be millions.
//!
//! The counts of one histogram lie far apart in memory, and those of thousands do not fit into a cache, so each value
//! counted is a cache miss. Values are therefore first noted in a small array and then counted in batches. A histogram takes
//! 2 to 58 kB, so a distribution begins as a list of the buckets that have values, and becomes a histogram when they are many.

use std::borrow::Cow;

use hdrhistogram::Histogram;

/// Values noted before they are counted.
const NOTED: usize = 32;
/// Most buckets of a list; it then takes as much as the smallest histogram.
const LISTED: usize = 256;
/// Values below are buckets of their own; of others the first eight bits count, as in a histogram with two significant figures.
const EXACT: u64 = 256;

/// A distribution of times in ns, to within 1 %.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// Has no room before the first value.
    noted: Vec<u64>,
    counted: Counted,
}

#[derive(Clone, Debug)]
enum Counted {
    List(List),
    /// Grows with the largest value seen, to [`Distribution::MOST_BYTES`] at the very most.
    Histogram(Box<Histogram<u64>>),
}

impl Default for Counted {
    fn default() -> Counted {
        Counted::List(List::default())
    }
}

/// Buckets with values.
#[derive(Clone, Debug, Default)]
struct List {
    /// In the order of values, with how often each was counted.
    buckets: Vec<(u16, u32)>,
    /// How many values were counted.
    values: u32,
    /// The least value but 0, and the largest, which histograms know exactly.
    least_ns: u64,
    most_ns: u64,
}

impl Distribution {
    /// Most bytes that its counts take.
    pub const MOST_BYTES: u64 = 58 << 10;

    /// Adds a value, ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        if self.noted.len() == self.noted.capacity() {
            self.make_room();
        }
        self.noted.push(ns);
    }

    /// Adds the same value `times` times, ns.
    #[inline]
    pub fn record_n(&mut self, ns: u64, times: u64) {
        if times == 1 {
            return self.record(ns);
        }
        if let Counted::List(list) = &mut self.counted {
            if list.count_same(ns, times) {
                return;
            }
        }
        count(self.histogram(), ns, times);
    }

    /// Adds all values of another distribution.
    pub fn add(&mut self, other: &Distribution) {
        match &other.counted {
            Counted::List(list) if list.buckets.is_empty() => {
                for ns in &other.noted {
                    self.record(*ns);
                }
            }
            _ => self
                .histogram()
                .add(&*other.whole())
                .expect("a growing histogram takes every value"),
        }
    }

    /// Forgets all values and keeps its memory.
    pub fn reset(&mut self) {
        self.noted.clear();
        match &mut self.counted {
            Counted::List(list) => list.reset(),
            Counted::Histogram(histogram) => histogram.reset(),
        }
    }

    /// All values so far.
    #[must_use]
    pub fn whole(&self) -> Cow<'_, Histogram<u64>> {
        let mut whole = match &self.counted {
            Counted::List(list) => Cow::Owned(list.histogram()),
            Counted::Histogram(histogram) => Cow::Borrowed(&**histogram),
        };
        for &ns in &self.noted {
            count(whole.to_mut(), ns, 1);
        }
        whole
    }

    /// Counts the values noted, so that [`Distribution::whole`] need not do it each time.
    pub fn settle(&mut self) {
        if let Counted::List(list) = &mut self.counted {
            if list.count(&self.noted) {
                self.noted.clear();
                return;
            }
        }
        let mut noted = std::mem::take(&mut self.noted);
        let histogram = self.histogram();
        for &ns in &noted {
            count(histogram, ns, 1);
        }
        noted.clear();
        self.noted = noted;
    }

    /// Makes room for more values to be noted.
    #[inline(never)]
    fn make_room(&mut self) {
        if self.noted.capacity() == 0 {
            self.noted.reserve_exact(NOTED);
        } else {
            self.settle();
        }
    }

    /// The counts as a histogram, which they are from now on.
    fn histogram(&mut self) -> &mut Histogram<u64> {
        if let Counted::List(list) = &self.counted {
            self.counted = Counted::Histogram(Box::new(list.histogram()));
        }
        match &mut self.counted {
            Counted::Histogram(histogram) => histogram,
            Counted::List(_) => unreachable!("it was made a histogram above"),
        }
    }
}

impl List {
    /// Counts values, unless the list may become too long for them.
    fn count(&mut self, noted: &[u64]) -> bool {
        let mut buckets = [0; NOTED];
        let Some(buckets) = buckets.get_mut(..noted.len()) else {
            return false;
        };
        let sum = self.values.checked_add(noted.len() as u32);
        let Some(sum) = sum.filter(|_| self.buckets.len() + noted.len() <= LISTED) else {
            return false;
        };
        self.values = sum;
        for (bucket, ns) in buckets.iter_mut().zip(noted) {
            *bucket = bucket_of(*ns);
            self.widen(*ns);
        }
        buckets.sort_unstable();
        for same in buckets.chunk_by(|a, b| a == b) {
            self.add(same[0], same.len() as u32);
        }
        true
    }

    /// Counts a value several times, unless there is no room for it.
    fn count_same(&mut self, ns: u64, times: u64) -> bool {
        let sum = u32::try_from(times)
            .ok()
            .and_then(|times| self.values.checked_add(times));
        let Some(sum) = sum.filter(|_| self.buckets.len() < LISTED) else {
            return false;
        };
        self.values = sum;
        if times > 0 {
            self.widen(ns);
            self.add(bucket_of(ns), times as u32);
        }
        true
    }

    fn add(&mut self, bucket: u16, times: u32) {
        match self.buckets.binary_search_by_key(&bucket, |known| known.0) {
            Ok(at) => self.buckets[at].1 += times,
            Err(at) => self.buckets.insert(at, (bucket, times)),
        }
    }

    fn widen(&mut self, ns: u64) {
        self.most_ns = self.most_ns.max(ns);
        if ns > 0 && (self.least_ns == 0 || ns < self.least_ns) {
            self.least_ns = ns;
        }
    }

    fn reset(&mut self) {
        self.buckets.clear();
        (self.values, self.least_ns, self.most_ns) = (0, 0, 0);
    }

    fn histogram(&self) -> Histogram<u64> {
        let mut histogram = empty();
        let (least, most) = (bucket_of(self.least_ns), bucket_of(self.most_ns));
        for &(bucket, times) in &self.buckets {
            let mut times = u64::from(times);
            if bucket == most && (most != least || times > 1) {
                count(&mut histogram, self.most_ns, 1);
                times -= 1;
            }
            let ns = if bucket == least {
                self.least_ns
            } else if bucket == most {
                self.most_ns
            } else {
                lowest_ns(bucket)
            };
            if times > 0 {
                count(&mut histogram, ns, times);
            }
        }
        histogram
    }
}

/// The bucket of a value: the number of values and buckets below it.
fn bucket_of(ns: u64) -> u16 {
    if ns < EXACT {
        return ns as u16;
    }
    let shift = 56 - ns.leading_zeros();
    // 8 bits, of which the first is 1.
    (shift * 128) as u16 + (ns >> shift) as u16
}

/// The least value of a bucket.
fn lowest_ns(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < EXACT {
        return bucket;
    }
    let shift = bucket / 128 - 1;
    (bucket - shift * 128) << shift
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
    fn buckets_are_those_of_a_histogram() {
        let histogram = {
            let mut histogram = empty();
            count(&mut histogram, u64::MAX, 1);
            histogram
        };
        for bits in 0..64 {
            for below in 0..300 {
                for ns in [
                    (1u64 << bits).wrapping_add(below),
                    (1u64 << bits).wrapping_mul(below | 1),
                ] {
                    let bucket = bucket_of(ns);
                    assert_eq!(lowest_ns(bucket), histogram.lowest_equivalent(ns), "{ns}");
                    assert_eq!(bucket_of(lowest_ns(bucket)), bucket, "{ns}");
                }
            }
        }
        assert_eq!(bucket_of(u64::MAX), 56 * 128 + 255);
        // No bucket lacks values, and each is that of its least one: their order is that of values.
        let all = 0..=bucket_of(u64::MAX);
        let least: Vec<u64> = all.clone().map(lowest_ns).collect();
        assert!(least.is_sorted_by(|a, b| a < b));
        assert!(all.zip(&least).all(|(bucket, ns)| bucket_of(*ns) == bucket));
    }

    #[test]
    fn lists_are_histograms_whatever_is_counted() {
        let mut state = 1u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 33
        };
        for bits in [1, 4, 9, 14, 31] {
            let mut found = Distribution::default();
            let mut wanted = Histogram::<u64>::new(2).unwrap();
            for round in 0..2_000 {
                let ns = draw() % (1 << bits);
                found.record(ns);
                wanted.record(ns).unwrap();
                let times = 1 + draw() % 3;
                found.record_n(ns / 2, times);
                wanted.record_n(ns / 2, times).unwrap();
                if round % 97 == 0 {
                    assert_eq!(*found.whole(), wanted);
                    assert_eq!(found.whole().max(), wanted.max());
                    assert_eq!(found.whole().min_nz(), wanted.min_nz());
                }
                if round == 1_000 {
                    found.reset();
                    wanted.reset();
                }
            }
        }
    }

    #[test]
    fn few_buckets_take_little_memory() {
        let mut found = Distribution::default();
        assert_eq!(found.noted.capacity(), 0);
        for i in 0..100_000 {
            found.record(1_000_000 + i % 100_000);
        }
        let Counted::List(list) = &found.counted else {
            panic!("{found:?}");
        };
        assert!(list.buckets.len() < 20);
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
