// SPDX-License-Identifier: BSD-3-Clause
//! CUBIC as Linux 6.12 computes it: the window function of RFC 9438 in whole segments and ticks, and HyStart (Ha and Rhee
//! 2011) at the end of slow start.
//!
//! Differences from RFC 9438: the target is one least RTT ahead; the window grows by one segment per `count` segments
//! acknowledged, a whole number computed at most 32 times a second while the window stays; the Reno-friendly estimate grows
//! by a constant 0.53 segments per window, also above the former window; the plateau of the first epoch grows by at least
//! one segment per 20; a timeout forgets all. HyStart ends slow start when acknowledgements have come back to back for half
//! the least RTT, or when eight round-trip times of a round exceed the least one by an eighth (4 to 16 ms).

use super::clock::Clock;

/// beta, in 1024ths.
const BETA_1024: u64 = 717;
/// C = 0.4 segments per second cubed, in 1024ths.
const C_1024: f64 = 410.0;
/// Segments acknowledged per segment of Reno-friendly growth, as eighths of the window: 8 (1 + beta) / (3 (1 - beta)).
const FRIENDLY_8: u64 = 8 * (1024 + BETA_1024) / (3 * (1024 - BETA_1024));
/// Time in the window function is counted in 1024ths of a second.
const TIME_HZ: u64 = 1024;

const HYSTART_LOW_WINDOW: u64 = 16;
const HYSTART_SAMPLES: u32 = 8;
const ACK_DELTA_NS: u64 = 2_000_000;
/// A train of acknowledgements may be longer by the time of two super-packets each way, at most a millisecond.
const BURST_BYTES: u64 = 4 * 65536;
const BURST_NS: u64 = 1_000_000;
const DELAY_MIN_NS: u64 = 4_000_000;
const DELAY_MAX_NS: u64 = 16_000_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Cubic {
    clock: Clock,
    /// Window before the last reduction, less where it converges; 0 if none is remembered.
    last_max: u64,
    /// Tick at which the epoch began.
    epoch: Option<u64>,
    /// Plateau of this epoch, and when it is reached, 1024ths of a second.
    origin: u64,
    k: u64,
    /// Segments acknowledged per segment of growth.
    count: u64,
    /// Window and tick of the last computation.
    last_cwnd: u64,
    last_tick: u64,
    /// Segments acknowledged that the Reno-friendly estimate has not used, and that estimate.
    acked: u64,
    friendly: u64,
    /// Least RTT since the last timeout; 0 before the first.
    delay_min_ns: u64,
    hystart: Option<HyStart>,
}

/// What HyStart looks at besides times.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub una: u64,
    pub next: u64,
    pub cwnd: u64,
    /// Twice the window per smoothed RTT.
    pub pacing_bytes_per_s: u64,
}

#[derive(Clone, Debug, Default)]
struct HyStart {
    /// It has found the end of slow start.
    found: bool,
    round_began_ns: u64,
    round_end: u64,
    last_ack_ns: u64,
    least_ns: u64,
    samples: u32,
}

impl HyStart {
    fn begin_round(&mut self, now_ns: u64, next: u64) {
        self.round_began_ns = now_ns;
        self.last_ack_ns = now_ns;
        self.round_end = next;
        self.least_ns = u64::MAX;
        self.samples = 0;
    }
}

impl Cubic {
    pub fn new(clock: Clock, hystart: bool) -> Cubic {
        Cubic {
            clock,
            last_max: 0,
            epoch: None,
            origin: 0,
            k: 0,
            count: 0,
            last_cwnd: 0,
            last_tick: 0,
            acked: 0,
            friendly: 0,
            delay_min_ns: 0,
            hystart: hystart.then(HyStart::default),
        }
    }

    /// The connection is established, with `next` the first segment to send.
    pub fn begin(&mut self, now_ns: u64, next: u64) {
        if let Some(hystart) = &mut self.hystart {
            hystart.begin_round(now_ns, next);
        }
    }

    /// Segments acknowledged per segment of growth, when `acked` were acknowledged in congestion avoidance.
    #[inline]
    pub fn growth_count(&mut self, now_ns: u64, cwnd: u64, acked: u64) -> u64 {
        let tick = self.clock.ticks(now_ns);
        self.acked += acked;
        if self.last_cwnd == cwnd && tick - self.last_tick <= self.clock.ticks_in_a_32nd() {
            return self.count;
        }
        if self.epoch.is_none() || tick != self.last_tick {
            self.last_cwnd = cwnd;
            self.last_tick = tick;
            self.follow_curve(tick, cwnd, acked);
        }
        self.follow_reno(cwnd);
        self.count = self.count.max(2);
        self.count
    }

    fn follow_curve(&mut self, tick: u64, cwnd: u64, acked: u64) {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.acked = acked;
                self.friendly = cwnd;
                self.origin = self.last_max.max(cwnd);
                let rise = (self.origin - cwnd) as f64;
                self.k = (libm::cbrt(rise * 1024.0 / C_1024) * TIME_HZ as f64) as u64;
                self.epoch = Some(tick);
                tick
            }
        };
        let ahead = self.clock.ticks_for(self.delay_min_ns);
        let elapsed_ns = self.clock.ns(tick - epoch + ahead);
        let t = (u128::from(elapsed_ns) * u128::from(TIME_HZ) / 1_000_000_000) as u64;
        let offset = t.abs_diff(self.k) as f64 / TIME_HZ as f64;
        let delta = (C_1024 / 1024.0 * offset * offset * offset) as u64;
        let target = if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin + delta
        };
        self.count = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            100 * cwnd
        };
        if self.last_max == 0 {
            self.count = self.count.min(20);
        }
    }

    fn follow_reno(&mut self, cwnd: u64) {
        let per_segment = (cwnd * FRIENDLY_8) >> 3;
        if self.acked > per_segment && per_segment > 0 {
            // As many whole steps as leave something.
            let steps = (self.acked - 1) / per_segment;
            self.acked -= steps * per_segment;
            self.friendly += steps;
        }
        if self.friendly > cwnd {
            self.count = self.count.min(cwnd / (self.friendly - cwnd));
        }
    }

    /// Slow start threshold after a congestion event, with fast convergence.
    pub fn reduce(&mut self, cwnd: u64) -> u64 {
        self.epoch = None;
        self.last_max = if cwnd < self.last_max {
            cwnd * (1024 + BETA_1024) / 2048
        } else {
            cwnd
        };
        (cwnd * BETA_1024 / 1024).max(2)
    }

    /// A timeout: all but the parameters is forgotten.
    pub fn forget(&mut self, now_ns: u64, next: u64) {
        let mut hystart = self.hystart.take();
        if let Some(hystart) = &mut hystart {
            hystart.found = false;
            hystart.begin_round(now_ns, next);
        }
        *self = Cubic {
            hystart,
            ..Cubic::new(self.clock, false)
        };
    }

    /// The sender was idle since `last_ns`: the curve stands still.
    pub fn resume(&mut self, now_ns: u64, last_ns: u64) {
        let now = self.clock.ticks(now_ns);
        let idle = now - self.clock.ticks(last_ns);
        if let Some(epoch) = &mut self.epoch {
            *epoch = (*epoch + idle).min(now);
        }
    }

    /// A round-trip time was measured; false if it does not count, in the second after a recovery.
    #[inline]
    pub fn measured(&mut self, now_ns: u64, rtt_ns: u64) -> bool {
        let second = self.clock.ticks_for(1_000_000_000);
        if self
            .epoch
            .is_some_and(|epoch| self.clock.ticks(now_ns) - epoch < second)
        {
            return false;
        }
        let rtt_ns = rtt_ns.max(1);
        if self.delay_min_ns == 0 || rtt_ns < self.delay_min_ns {
            self.delay_min_ns = rtt_ns;
        }
        true
    }

    /// Whether slow start ends with this round-trip time, after [`measured`](Cubic::measured).
    pub fn ends_slow_start(&mut self, now_ns: u64, rtt_ns: u64, round: Round) -> bool {
        let delay_min_ns = self.delay_min_ns;
        let Some(hystart) = self.hystart.as_mut().filter(|hystart| !hystart.found) else {
            return false;
        };
        if round.una > hystart.round_end {
            hystart.begin_round(now_ns, round.next);
        }
        if round.cwnd < HYSTART_LOW_WINDOW {
            return false;
        }
        let burst_ns = (BURST_BYTES * 1_000_000_000)
            .checked_div(round.pacing_bytes_per_s)
            .map_or(0, |ns| ns.min(BURST_NS));
        if now_ns - hystart.last_ack_ns <= ACK_DELTA_NS {
            hystart.last_ack_ns = now_ns;
            hystart.found |= now_ns - hystart.round_began_ns > (delay_min_ns + burst_ns) / 2;
        }
        hystart.least_ns = hystart.least_ns.min(rtt_ns);
        if hystart.samples < HYSTART_SAMPLES {
            hystart.samples += 1;
        } else {
            let rise_ns = (delay_min_ns / 8).clamp(DELAY_MIN_NS, DELAY_MAX_NS);
            hystart.found |= hystart.least_ns > delay_min_ns + rise_ns;
        }
        hystart.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn cubic(hystart: bool) -> Cubic {
        Cubic::new(Clock::new(MS), hystart)
    }

    /// The kernel's growth in whole numbers, with its loops (HZ = 1000, an RTT of 100 ms).
    struct Naive {
        last_max: u64,
        epoch: u64,
        origin: u64,
        k: u64,
        friendly: u64,
        acked: u64,
    }

    impl Naive {
        fn begin(now_ms: u64, last_max: u64, cwnd: u64) -> Naive {
            let rise = last_max.saturating_sub(cwnd);
            let mut k = 0_u64;
            while (k + 1).pow(3) <= rise * (1 << 40) / 410 {
                k += 1;
            }
            Naive {
                last_max,
                epoch: now_ms,
                origin: last_max.max(cwnd),
                k,
                friendly: cwnd,
                acked: 0,
            }
        }

        fn count(&mut self, now_ms: u64, cwnd: u64, acked: u64) -> u64 {
            self.acked += acked;
            let t = (now_ms - self.epoch + 100) * 1024 / 1000;
            let delta = (410 * t.abs_diff(self.k).pow(3)) >> 40;
            let target = if t < self.k {
                self.origin - delta.min(self.origin)
            } else {
                self.origin + delta
            };
            let mut count = if target > cwnd {
                cwnd / (target - cwnd)
            } else {
                100 * cwnd
            };
            if self.last_max == 0 {
                count = count.min(20);
            }
            // 15 eighths of the window for one segment: 8 (1 + 0.7) / 3 (1 - 0.7) is 15.1.
            let step = cwnd * 15 / 8;
            while self.acked > step {
                self.acked -= step;
                self.friendly += 1;
            }
            if self.friendly > cwnd {
                count = count.min(cwnd / (self.friendly - cwnd));
            }
            count.max(2)
        }
    }

    #[test]
    fn a_reduction_is_717_of_1024_with_fast_convergence() {
        let mut cubic = cubic(false);
        assert_eq!((cubic.reduce(100), cubic.last_max), (70, 100));
        // 90 is less than the 100 of last time: (1 + beta) / 2 of it are remembered.
        assert_eq!((cubic.reduce(90), cubic.last_max), (63, 76));
        assert_eq!((cubic.reduce(2), cubic.last_max), (2, 1));
    }

    #[test]
    fn the_window_grows_along_the_curve_of_the_kernel() {
        for (before, start_ms) in [(0, 5000), (60, 5000), (1000, 7777), (8000, 12_345)] {
            let mut cubic = cubic(false);
            cubic.measured(MS, 100 * MS);
            let mut cwnd = 50;
            if before > 0 {
                cwnd = cubic.reduce(before);
            }
            let mut naive = Naive::begin(start_ms, before, cwnd);
            for round in 0..300 {
                let now_ms = start_ms + 100 * round;
                // The former window changes in each round, so that nothing is taken from a cache.
                let count = cubic.growth_count(now_ms * MS, cwnd, cwnd / 2);
                let expected = naive.count(now_ms, cwnd, cwnd / 2);
                // The cube root is a float here and may be one smaller or larger: one segment of the target.
                assert!(cubic.k.abs_diff(naive.k) <= 1);
                let others: Vec<u64> = [naive.k.saturating_sub(1), naive.k + 1]
                    .into_iter()
                    .map(|k| Naive {
                        k,
                        acked: naive.acked,
                        ..Naive::begin(start_ms, before, naive.friendly)
                    })
                    .map(|mut other| {
                        (other.origin, other.friendly) = (naive.origin, naive.friendly);
                        other.count(now_ms, cwnd, 0)
                    })
                    .collect();
                assert!(
                    count == expected || others.contains(&count),
                    "{before} {round}: {count} {expected} {others:?}"
                );
                cwnd += (cwnd / count).max(1);
            }
            assert!(cwnd > before, "the plateau was passed");
        }
    }

    #[test]
    fn the_count_is_kept_for_a_32nd_of_a_second_while_the_window_stays() {
        let mut cubic = cubic(false);
        cubic.measured(MS, 100 * MS);
        let cwnd = cubic.reduce(1000);
        let first = cubic.growth_count(5000 * MS, cwnd, 1);
        assert_eq!(cubic.growth_count(5031 * MS, cwnd, 1), first);
        assert_ne!(cubic.growth_count(5500 * MS, cwnd, 1), first);
    }

    fn round(cwnd: u64) -> Round {
        Round {
            una: 50,
            next: 100,
            cwnd,
            // Four super-packets take 262 us.
            pacing_bytes_per_s: 1_000_000_000,
        }
    }

    /// The first time of a train of acknowledgements, one each `gap_ms`, at which slow start ends.
    fn train_ends_ms(cubic: &mut Cubic, gap_ms: u64, rtt_ms: u64, cwnd: u64) -> Option<u64> {
        cubic.begin(1000 * MS, 100);
        (1..60).map(|n| n * gap_ms).find(|ms| {
            let now_ns = (1000 + ms) * MS;
            cubic.measured(now_ns, rtt_ms * MS);
            cubic.ends_slow_start(now_ns, rtt_ms * MS, round(cwnd))
        })
    }

    #[test]
    fn a_train_of_acknowledgements_for_half_the_least_rtt_ends_slow_start() {
        // Half of 40.262 ms.
        let ends = train_ends_ms(&mut cubic(true), 1, 40, 16);
        assert_eq!(ends, Some(21));
        assert_eq!(train_ends_ms(&mut cubic(true), 2, 40, 16), Some(22));
        // 3 ms apart they are no train; below 16 segments HyStart does nothing.
        assert_eq!(train_ends_ms(&mut cubic(true), 3, 40, 16), None);
        assert_eq!(train_ends_ms(&mut cubic(true), 1, 40, 15), None);
        assert_eq!(train_ends_ms(&mut cubic(false), 1, 40, 16), None);
    }

    #[test]
    fn eight_delayed_samples_end_slow_start() {
        // An eighth of 40 ms; at least 4 ms, at most 16 ms.
        for (least_ms, rise_us) in [(40_u64, 5000_u64), (8, 4000), (400, 16_000)] {
            for (extra_us, ends) in [(rise_us, None), (rise_us + 1, Some(9))] {
                let mut cubic = cubic(true);
                cubic.measured(0, least_ms * MS);
                cubic.begin(1000 * MS, 100);
                let rtt_ns = least_ms * MS + extra_us * 1000;
                let found = (1..30_u64).find(|n| {
                    let now_ns = 1000 * MS + 3 * n * MS;
                    cubic.measured(now_ns, rtt_ns);
                    cubic.ends_slow_start(now_ns, rtt_ns, round(100))
                });
                assert_eq!(found, ends, "{least_ms} ms and {extra_us} us");
            }
        }
    }

    #[test]
    fn samples_of_the_first_second_after_a_recovery_do_not_count() {
        let mut cubic = cubic(true);
        assert!(cubic.measured(0, 40 * MS));
        let cwnd = cubic.reduce(100);
        cubic.growth_count(5000 * MS, cwnd, 1);
        assert!(!cubic.measured(5999 * MS, 30 * MS));
        assert_eq!(cubic.delay_min_ns, 40 * MS);
        assert!(cubic.measured(6000 * MS, 30 * MS));
        assert_eq!(cubic.delay_min_ns, 30 * MS);
    }

    #[test]
    fn a_timeout_forgets_all_but_the_clock_and_looks_for_the_end_of_slow_start_again() {
        let mut cubic = cubic(true);
        assert!(train_ends_ms(&mut cubic, 1, 40, 16).is_some());
        cubic.reduce(100);
        cubic.forget(9000 * MS, 200);
        assert_eq!(
            (cubic.last_max, cubic.delay_min_ns, cubic.epoch),
            (0, 0, None)
        );
        assert!(train_ends_ms(&mut cubic, 1, 40, 16).is_some());
    }

    #[test]
    fn the_curve_stands_still_while_the_sender_is_idle() {
        let mut cubic = cubic(false);
        let cwnd = cubic.reduce(100);
        cubic.growth_count(5000 * MS, cwnd, 1);
        cubic.resume(9000 * MS, 6000 * MS);
        assert_eq!(cubic.epoch, Some(8000));
        // Never into the future.
        cubic.resume(9500 * MS, 7000 * MS);
        assert_eq!(cubic.epoch, Some(9500));
    }
}
