// SPDX-License-Identifier: BSD-3-Clause
//! Learns the period at which a path changes by schedule, as each 15 s between a Starlink terminal and its satellites.
//!
//! A surprise is a mark that is much earlier or later than predicted. The greatest surprises are kept. If they keep coming in
//! one period, the next is predicted.

use std::collections::VecDeque;

/// Surprises kept, and for how long, ns.
const KEPT: usize = 96;
const MEMORY_NS: u64 = 150_000_000_000;
/// The shortest and the longest period that is looked for, ns.
const SHORTEST_NS: u64 = 4_000_000_000;
const LONGEST_NS: u64 = 40_000_000_000;
/// Only the greatest surprises count: one in so many ns on average.
const APART_NS: u64 = 5_000_000_000;
/// How far from its time a surprise may be, ns.
const NEAR_NS: u64 = 25_000_000;
/// How many surprises must have come in a period.
const HITS: usize = 4;
/// How many times in a row nothing may change before the period is forgotten.
const MISSES: u32 = 4;
/// Schedules are made by people: their periods are whole multiples of this, ns.
const ROUND_NS: u64 = 500_000_000;

/// A mark that was earlier or later than predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Surprise {
    /// When it was sent, ns.
    pub at_ns: u64,
    /// By how much it differed, ns.
    pub size_ns: f64,
}

/// When the path changes next.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Period {
    period_ns: u64,
    next_ns: u64,
    /// How many times in a row nothing changed.
    misses: u32,
}

/// What is known of the times at which the path changes.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    surprises: VecDeque<Surprise>,
    first_ns: Option<u64>,
    period: Option<Period>,
}

impl Schedule {
    /// Takes a surprise. Those that follow one at once belong to it.
    pub(super) fn surprised(&mut self, surprise: Surprise) {
        let at_ns = surprise.at_ns;
        self.first_ns.get_or_insert(at_ns);
        while self
            .surprises
            .front()
            .is_some_and(|first| at_ns.saturating_sub(first.at_ns) > MEMORY_NS)
        {
            self.surprises.pop_front();
        }
        if let Some(last) = self.surprises.back_mut() {
            if at_ns.saturating_sub(last.at_ns) < 300_000_000 {
                last.size_ns = last.size_ns.max(surprise.size_ns);
                return;
            }
        }
        if self.surprises.len() == KEPT {
            self.surprises.pop_front();
        }
        self.surprises.push_back(surprise);
        self.correct(at_ns);
        if self.period.is_none() {
            self.learn(at_ns);
        }
    }

    /// Moves the next change a little when this one came earlier or later than predicted.
    fn correct(&mut self, at_ns: u64) {
        let Some(period) = &mut self.period else {
            return;
        };
        // A surprise near the last change, or near the next.
        for expected_ns in [period.next_ns - period.period_ns, period.next_ns] {
            let error_ns = at_ns as i64 - expected_ns as i64;
            if error_ns.unsigned_abs() <= NEAR_NS {
                period.next_ns = period.next_ns.saturating_add_signed(error_ns / 4);
                return;
            }
        }
    }

    /// Looks for a period that ends with the last surprise.
    fn learn(&mut self, last_ns: u64) {
        let Some(first_ns) = self.surprises.front().map(|first| first.at_ns) else {
            return;
        };
        let span_ns = last_ns - first_ns;
        let most = (span_ns / APART_NS + 1) as usize;
        let mut sizes: Vec<f64> = self.surprises.iter().map(|one| one.size_ns).collect();
        sizes.sort_by(|one, other| other.total_cmp(one));
        let least_ns = sizes[most.min(sizes.len()) - 1];
        let greatest: Vec<Surprise> = self
            .surprises
            .iter()
            .filter(|one| one.size_ns >= least_ns)
            .copied()
            .collect();
        if greatest.last().is_none_or(|one| one.at_ns != last_ns) {
            return;
        }
        let periods = greatest.iter().rev().map(|one| last_ns - one.at_ns);
        let periods = periods.filter(|ns| (SHORTEST_NS..=LONGEST_NS).contains(ns));
        for period_ns in periods.filter_map(whole) {
            if let Some(next_ns) = next_of(&greatest, period_ns, span_ns) {
                self.period = Some(Period {
                    period_ns,
                    next_ns,
                    misses: 0,
                });
                return;
            }
        }
    }

    /// When the path changes next, ns.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.period.map(|period| period.next_ns)
    }

    /// The period that was learned, ns.
    pub(super) fn period_ns(&self) -> Option<u64> {
        self.period.map(|period| period.period_ns)
    }

    /// The time of a change has passed.
    pub(super) fn passed(&mut self, now_ns: u64) {
        if let Some(period) = &mut self.period {
            while period.next_ns <= now_ns {
                period.next_ns += period.period_ns;
            }
        }
    }

    /// Whether the path changed at the time that has passed.
    pub(super) fn changed(&mut self, changed: bool) {
        if let Some(period) = &mut self.period {
            period.misses = if changed { 0 } else { period.misses + 1 };
            if period.misses >= MISSES {
                *self = Schedule::default();
            }
        }
    }
}

/// A period as a whole multiple of half a second; none if it is none.
fn whole(period_ns: u64) -> Option<u64> {
    let whole_ns = (period_ns + ROUND_NS / 2) / ROUND_NS * ROUND_NS;
    (whole_ns.abs_diff(period_ns) <= NEAR_NS).then_some(whole_ns)
}

/// When the path changes next, ns, if surprises came in this period: [`HITS`] at least up to the last one, with few misses
/// between them, and greater ones than come at other times.
fn next_of(surprises: &[Surprise], period_ns: u64, span_ns: u64) -> Option<u64> {
    let last = surprises.last()?;
    let (mut misses, mut errors_ns) = (0_usize, 0_i64);
    let mut sizes = vec![last.size_ns];
    for back in 1..=span_ns / period_ns {
        // Below 0 where that was before the clock began.
        let expected_ns = last.at_ns as i64 - (back * period_ns) as i64;
        let error_ns = |one: &Surprise| one.at_ns as i64 - expected_ns;
        let nearest = surprises
            .iter()
            .min_by_key(|one| error_ns(one).unsigned_abs())?;
        if error_ns(nearest).unsigned_abs() <= NEAR_NS {
            sizes.push(nearest.size_ns);
            errors_ns += error_ns(nearest);
        } else {
            misses += 1;
        }
        if misses > sizes.len() / 4 + 1 {
            return None;
        }
        if sizes.len() >= HITS && misses <= sizes.len() / 4 {
            let mean_ns = errors_ns / sizes.len() as i64;
            let great = of(0.5, &mut sizes) > others(surprises, expected_ns, period_ns);
            return great.then_some((last.at_ns + period_ns).saturating_add_signed(mean_ns));
        }
    }
    None
}

/// The size of great surprises since a time that did not come in its period, ns: seven in ten are smaller. 0: there are none.
fn others(surprises: &[Surprise], from_ns: i64, period_ns: u64) -> f64 {
    let other = |one: &&Surprise| {
        let late_ns = (one.at_ns + NEAR_NS) as i64 - from_ns;
        u64::try_from(late_ns).is_ok_and(|ns| ns % period_ns > 2 * NEAR_NS)
    };
    let mut sizes: Vec<f64> = surprises
        .iter()
        .filter(other)
        .map(|one| one.size_ns)
        .collect();
    of(0.7, &mut sizes)
}

/// The value that this part of all are less than; 0: there are none.
fn of(part: f64, values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (part * values.len() as f64) as usize;
    values.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    const MS: u64 = 1_000_000;
    const S: u64 = 1000 * MS;

    fn surprise(at_ns: u64, size_ms: f64) -> Surprise {
        Surprise {
            at_ns,
            size_ns: size_ms * 1e6,
        }
    }

    #[test]
    fn a_period_is_found_between_smaller_surprises() {
        let mut random = Pcg64::seed_from_u64(9);
        let mut schedule = Schedule::default();
        // One change of the path of every fifteen seconds in eight cannot be seen; a ripple of 0.5 s often can.
        for half in 0..200_u64 {
            let at_ns = 7 * S + half * S / 2 + random.next_u64() % (20 * MS);
            if half % 30 == 0 && half != 60 {
                schedule.surprised(surprise(at_ns, 30.0));
            } else if random.next_u64() % 8 == 0 {
                schedule.surprised(surprise(at_ns, 6.0));
            }
        }
        assert_eq!(schedule.period_ns(), Some(15 * S));
        let next_ns = schedule.next_ns().unwrap();
        let late_ns = (next_ns - 7 * S) % (15 * S);
        let early = 25 * MS..=15 * S - 5 * MS;
        assert!(!early.contains(&late_ns), "{late_ns}");
    }

    #[test]
    fn changes_at_any_time_have_no_period() {
        for seed in 0..20 {
            let mut random = Pcg64::seed_from_u64(seed);
            let mut schedule = Schedule::default();
            let mut at_ns = 0;
            for _ in 0..100 {
                at_ns += 3 * S + random.next_u64() % (20 * S);
                schedule.surprised(surprise(at_ns, (random.next_u64() % 50) as f64));
            }
            assert_eq!(schedule.period_ns(), None, "seed {seed}");
        }
    }

    #[test]
    fn a_period_in_which_nothing_changes_any_more_is_forgotten() {
        let mut schedule = Schedule::default();
        for at in 0..6 {
            schedule.passed(15 * S * at);
            schedule.surprised(surprise(15 * S * at, 30.0));
        }
        assert_eq!(schedule.next_ns(), Some(90 * S));
        for at in 0..4 {
            assert_eq!(schedule.next_ns(), Some((90 + 15 * at) * S));
            schedule.passed(schedule.next_ns().unwrap());
            schedule.changed(false);
        }
        assert_eq!(schedule.next_ns(), None);
    }

    #[test]
    fn a_small_surprise_at_the_end_teaches_nothing() {
        let mut schedule = Schedule::default();
        for at in 0..3 {
            schedule.surprised(surprise(15 * S * at, 30.0 + at as f64));
        }
        // Counted from this one, the first would be at 30.5 s.
        schedule.surprised(surprise(30 * S + 500 * MS, 1.0));
        assert_eq!(schedule.period_ns(), None);
    }

    #[test]
    fn the_time_of_the_next_change_is_corrected_by_the_last() {
        let mut schedule = Schedule::default();
        for at in 0..5 {
            schedule.passed(10 * S * at);
            schedule.surprised(surprise(10 * S * at, 30.0));
        }
        // The far end's clock differs by 1 ms in 10 s.
        for at in 5..60 {
            let at_ns = (10 * S + MS) * (at - 4) + 40 * S;
            assert!(schedule.next_ns().unwrap().abs_diff(at_ns) < 6 * MS);
            schedule.passed(at_ns);
            schedule.surprised(surprise(at_ns, 20.0));
        }
    }
}
