// SPDX-License-Identifier: BSD-3-Clause
//! How long packets of a class waited: since the start, over the last 10 s, and in fixed buckets for Prometheus.
//!
//! A gateway may have 10,000 peers with several classes each, so a class takes memory when it first sends a packet, and
//! then only for the range of times that it has seen.

/// Upper bounds of the fixed buckets, ns; the last bucket has none.
pub const BOUNDS_NS: [u64; 16] = [
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Seconds of the window.
pub const WINDOW_S: u64 = 10;
const SECOND_NS: u64 = 1_000_000_000;
/// Times are counted in units of 1024 ns.
const UNIT_BITS: u32 = 10;
/// A count since the start has 128 steps in each octave, so it is exact to 1 %; one of a second has 32, for 3 %.
const WHOLE_BITS: u32 = 7;
const RECENT_BITS: u32 = 5;

/// Percentiles, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Half of the packets waited no longer.
    pub p50_ns: u64,
    /// 99 of 100 waited no longer.
    pub p99_ns: u64,
    /// None waited longer.
    pub max_ns: u64,
    /// Packets.
    pub pkts: u64,
}

/// Waiting times of a class that has sent packets.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    whole: Counts,
    seconds: [Second; WINDOW_S as usize],
    /// Packets in each fixed bucket, not added up; the last is beyond all bounds.
    buckets: [u64; BOUNDS_NS.len() + 1],
    sum_ns: u64,
}

/// Counts of one second of the window.
#[derive(Clone, Debug, Default)]
struct Second {
    number: u64,
    counts: Counts,
}

/// Counts by logarithm, of the range between the shortest and the longest time seen.
#[derive(Clone, Debug, Default)]
struct Counts {
    first: usize,
    counts: Vec<u64>,
    max_ns: u64,
}

impl Waits {
    /// Counts packets that waited so long.
    pub fn record(&mut self, now_ns: u64, waited_ns: u64, pkts: u64) {
        self.whole.add(waited_ns, pkts, WHOLE_BITS);
        let number = now_ns / SECOND_NS;
        let second = &mut self.seconds[(number % WINDOW_S) as usize];
        if second.number != number {
            second.number = number;
            second.counts.clear();
        }
        second.counts.add(waited_ns, pkts, RECENT_BITS);
        self.buckets[BOUNDS_NS.partition_point(|bound| *bound < waited_ns)] += pkts;
        self.sum_ns = self.sum_ns.saturating_add(waited_ns.saturating_mul(pkts));
    }

    /// Since the start, to 1 %.
    #[must_use]
    pub fn whole(&self) -> Percentiles {
        percentiles(&[&self.whole], WHOLE_BITS)
    }

    /// Over the last 10 s, the present second included, to 3 %.
    #[must_use]
    pub fn recent(&self, now_ns: u64) -> Percentiles {
        let number = now_ns / SECOND_NS;
        let seconds = self.seconds.iter();
        let recent: Vec<&Counts> = seconds
            .filter(|second| second.number + WINDOW_S > number)
            .map(|second| &second.counts)
            .collect();
        percentiles(&recent, RECENT_BITS)
    }

    /// Packets that waited no longer than each of [`BOUNDS_NS`].
    #[must_use]
    pub fn cumulative(&self) -> Vec<u64> {
        let mut sum = 0;
        let buckets = self.buckets[..BOUNDS_NS.len()].iter();
        buckets
            .map(|count| {
                sum += count;
                sum
            })
            .collect()
    }

    /// All waiting times together, ns.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }
}

impl Counts {
    fn add(&mut self, ns: u64, pkts: u64, bits: u32) {
        let step = step_of(ns, bits);
        if self.counts.is_empty() {
            self.first = step;
        }
        if step < self.first {
            let more = std::iter::repeat_n(0, self.first - step);
            self.counts.splice(0..0, more);
            self.first = step;
        }
        let at = step - self.first;
        if at >= self.counts.len() {
            // Exactly as much as is needed: thousands of these exist.
            self.counts.reserve_exact(at + 1 - self.counts.len());
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += pkts;
        self.max_ns = self.max_ns.max(ns);
    }

    fn clear(&mut self) {
        self.counts.clear();
        self.max_ns = 0;
    }
}

fn percentiles(parts: &[&Counts], bits: u32) -> Percentiles {
    let pkts: u64 = parts.iter().flat_map(|part| &part.counts).sum();
    let max_ns = parts.iter().map(|part| part.max_ns).max().unwrap_or(0);
    let (mut p50_ns, mut p99_ns) = (None, None);
    let used = parts.iter().filter(|part| !part.counts.is_empty());
    let first = used.clone().map(|part| part.first).min().unwrap_or(0);
    let end = used.map(|part| part.first + part.counts.len()).max();
    let mut sum = 0;
    for step in first..end.unwrap_or(0) {
        let at = parts
            .iter()
            .map(|part| step.checked_sub(part.first).map(|at| part.counts.get(at)));
        sum += at.flatten().flatten().sum::<u64>();
        let longest_ns = longest_of(step, bits).min(max_ns);
        if p50_ns.is_none() && sum >= pkts.div_ceil(2) {
            p50_ns = Some(longest_ns);
        }
        if p99_ns.is_none() && u128::from(sum) * 100 >= u128::from(pkts) * 99 {
            p99_ns = Some(longest_ns);
        }
    }
    Percentiles {
        p50_ns: p50_ns.unwrap_or(0),
        p99_ns: p99_ns.unwrap_or(0),
        max_ns,
        pkts,
    }
}

/// The step of a time: equal steps up to 2^(bits + 1) units, from there on 2^bits in each octave.
fn step_of(ns: u64, bits: u32) -> usize {
    let units = ns >> UNIT_BITS;
    let shift = (u64::BITS - units.leading_zeros()).saturating_sub(bits + 1);
    ((u64::from(shift) << bits) + (units >> shift)) as usize
}

/// The longest time of a step, ns.
fn longest_of(step: usize, bits: u32) -> u64 {
    let step = step as u64;
    let shift = (step >> bits).saturating_sub(1);
    let next = (step - (shift << bits) + 1) << shift;
    (next << UNIT_BITS) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = SECOND_NS;

    #[test]
    fn every_time_lies_in_its_step_and_no_step_is_wider_than_is_said() {
        for bits in [WHOLE_BITS, RECENT_BITS] {
            let mut before = None;
            for power in 0..54 {
                for part in 0..16u64 {
                    let ns = (1 << power) + (part << power >> 4);
                    let step = step_of(ns, bits);
                    let longest = longest_of(step, bits);
                    assert!(ns <= longest, "{ns} {longest}");
                    assert!(longest - ns <= (ns >> bits).max(1 << UNIT_BITS), "{ns}");
                    assert!(step == 0 || longest_of(step - 1, bits) < ns);
                    assert!(before <= Some(step), "later");
                    before = Some(step);
                }
            }
        }
    }

    #[test]
    fn percentiles_are_those_of_a_sorted_list() {
        let mut waits = Waits::default();
        let mut times: Vec<u64> = (1..=1000u64).map(|n| n * n * 1000 + 7).collect();
        for ns in times.iter().rev() {
            waits.record(5 * S, *ns, 1);
        }
        times.sort_unstable();
        let near = |found: u64, exact: u64, part: u64| {
            assert!(found >= exact && found - exact <= exact / part + 1024);
        };
        for (found, part) in [(waits.whole(), 100), (waits.recent(6 * S), 30)] {
            near(found.p50_ns, times[499], part);
            near(found.p99_ns, times[989], part);
            assert_eq!((found.max_ns, found.pkts), (times[999], 1000));
        }
    }

    #[test]
    fn what_is_older_than_ten_seconds_is_no_longer_in_the_window() {
        let mut waits = Waits::default();
        waits.record(3 * S, 20 * S, 5);
        waits.record(4 * S, MS, 100);
        assert_eq!(waits.recent(12 * S + 9).max_ns, 20 * S);
        assert_eq!(waits.recent(13 * S).max_ns, MS);
        assert_eq!(waits.recent(14 * S), Percentiles::default());
        assert_eq!(waits.whole().max_ns, 20 * S, "that of all stays");
        waits.record(23 * S, 2 * MS, 1);
        assert_eq!(waits.recent(23 * S).pkts, 1, "an old second is emptied");
    }

    #[test]
    fn buckets_add_up_as_prometheus_has_it() {
        let mut waits = Waits::default();
        for (ns, pkts) in [(100_000, 2), (100_001, 3), (11 * S, 4)] {
            waits.record(0, ns, pkts);
        }
        let cumulative = waits.cumulative();
        assert_eq!((cumulative[0], cumulative[1], cumulative[15]), (2, 5, 5));
        assert_eq!(waits.sum_ns(), 200_000 + 300_003 + 44 * S);
    }

    #[test]
    fn a_class_of_one_packet_takes_little() {
        let mut waits = Waits::default();
        waits.record(0, 30 * S, 1);
        let counted = waits.whole.counts.capacity() + waits.seconds[0].counts.counts.capacity();
        assert_eq!(counted, 2);
        assert!(size_of::<Waits>() < 800, "{}", size_of::<Waits>());
    }
}
