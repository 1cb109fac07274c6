// SPDX-License-Identifier: BSD-3-Clause
//! CUBIC as Linux 2.6.22 had it (v2.1; Ha, Rhee, Xu 2008) and ns-2.35 runs it, in its integer arithmetic.
//!
//! Facts: beta 819/1024, C = 410/1024 per second cubed (scaled for RTTs of 100 ms), time in 1/1024 s from a
//! millisecond clock, fast convergence, Reno-friendly estimate, increase of at most 16 segments per 100 ms past
//! the plateau, window recomputed when it changed or 31 ms passed, no growth faster than 1 in 50 acknowledgements before
//! the first loss, all memory erased by a timeout. Two quirks of the original matter to throughput. The ratio of segments per
//! acknowledgement starts at 2, and with one acknowledgement per segment its integer average stops at 31/16, so the
//! window grows 1.94 times as fast as the curve asks. Without timestamps no minimum delay is measured: the curve
//! is not advanced by it and the cap on the increase is off.

const BETA_1024: u64 = 819;
/// 8 (1024 + beta) / 3 / (1024 - beta).
const RENO_SCALE_8: u64 = 8 * (1024 + BETA_1024) / 3 / (1024 - BETA_1024);
/// C in 1/1024 for an RTT of 100 ms.
const C_1024: u64 = 410;
const MAX_INCREMENT: u64 = 16;
/// Least time between recomputations with an unchanged window: a 32nd of a second.
const UPDATE_MS: u64 = 31;

/// See the module.
#[derive(Clone, Debug)]
pub struct Ns2Cubic {
    /// Acknowledgements per segment of growth.
    count: u64,
    w_max: u64,
    lost_before: bool,
    last_cwnd: u64,
    last_ms: u64,
    origin: u64,
    /// 1/1024 s.
    k: u64,
    /// Least RTT in 1/8 ms; 0: unknown.
    delay_min_8: u64,
    epoch_ms: u64,
    acks: u64,
    reno_cwnd: u64,
    /// Segments per acknowledgement, 1/16.
    ratio_16: u64,
}

impl Ns2Cubic {
    pub fn new() -> Ns2Cubic {
        Ns2Cubic {
            count: 0,
            w_max: 0,
            lost_before: false,
            last_cwnd: 0,
            last_ms: 0,
            origin: 0,
            k: 0,
            delay_min_8: 0,
            epoch_ms: 0,
            acks: 0,
            reno_cwnd: 0,
            ratio_16: 2 * 16,
        }
    }

    /// An acknowledgement moved the window by `acked` segments outside recovery.
    #[inline]
    pub fn acked(&mut self, acked: u64) {
        self.ratio_16 = (self.ratio_16 + acked).saturating_sub(self.ratio_16 >> 4);
    }

    /// A round-trip time from a timestamp.
    pub fn measure(&mut self, now_ms: u64, rtt_ms: u64) {
        if now_ms < self.epoch_ms + 1000 {
            return;
        }
        let delay_8 = (rtt_ms * 8).max(1);
        if self.delay_min_8 == 0 || delay_8 < self.delay_min_8 {
            self.delay_min_8 = delay_8;
        }
    }

    /// Acknowledgements per segment of growth, in congestion avoidance; to be asked once per acknowledgement.
    #[inline]
    pub fn acks_per_segment(&mut self, now_ms: u64, cwnd: u64) -> u64 {
        self.acks += 1;
        if self.last_cwnd != cwnd || now_ms > self.last_ms + UPDATE_MS {
            self.last_cwnd = cwnd;
            self.last_ms = now_ms;
            self.recompute(now_ms, cwnd);
        }
        self.count
    }

    /// Slow start threshold after a congestion event.
    pub fn reduce(&mut self, cwnd: u64) -> u64 {
        self.epoch_ms = 0;
        self.w_max = if cwnd < self.w_max {
            cwnd * (1024 + BETA_1024) / 2048
        } else {
            cwnd
        };
        self.lost_before = true;
        (cwnd * BETA_1024 / 1024).max(2)
    }

    fn recompute(&mut self, now_ms: u64, cwnd: u64) {
        if self.epoch_ms == 0 {
            self.epoch_ms = now_ms;
            self.acks = 1;
            self.reno_cwnd = cwnd;
            self.k = if self.w_max <= cwnd {
                0
            } else {
                cube_root((1 << 40) / C_1024 * (self.w_max - cwnd))
            };
            self.origin = self.w_max.max(cwnd);
        }
        let t = (now_ms + (self.delay_min_8 >> 3) - self.epoch_ms) * 1024 / 1000;
        let offset = u128::from(t.abs_diff(self.k));
        let delta = (u128::from(C_1024) * offset * offset * offset) >> 40;
        let delta = u64::try_from(delta)
            .unwrap_or(u64::MAX / 2)
            .min(u64::MAX / 2);
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
        if self.delay_min_8 > 0 && t >= self.k {
            self.count = self
                .count
                .max(cwnd * 1000 * 8 / (10 * MAX_INCREMENT * self.delay_min_8));
        }
        if !self.lost_before {
            self.count = 50;
        }
        self.follow_reno(cwnd);
        self.count = (self.count * 16 / self.ratio_16).max(1);
    }

    fn follow_reno(&mut self, cwnd: u64) {
        let per_segment = cwnd * RENO_SCALE_8 / 8;
        if self.acks > per_segment && per_segment > 0 {
            let grown = (self.acks - 1) / per_segment;
            self.acks -= grown * per_segment;
            self.reno_cwnd += grown;
        }
        if self.reno_cwnd > cwnd {
            self.count = self.count.min(cwnd / (self.reno_cwnd - cwnd));
        }
    }
}

/// Greatest integer whose cube is at most `a`; the original's table is within 0.2 % of it.
fn cube_root(a: u64) -> u64 {
    let mut root = libm::cbrt(a as f64) as u64;
    while u128::from(root).pow(3) > u128::from(a) {
        root -= 1;
    }
    while u128::from(root + 1).pow(3) <= u128::from(a) {
        root += 1;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots() {
        for (a, root) in [
            (0, 0),
            (1, 1),
            (7, 1),
            (8, 2),
            (26, 2),
            (27, 3),
            (1 << 60, 1 << 20),
            ((1 << 60) - 1, (1 << 20) - 1),
        ] {
            assert_eq!(cube_root(a), root);
        }
    }

    #[test]
    fn beta_and_fast_convergence() {
        let mut cubic = Ns2Cubic::new();
        assert_eq!(cubic.reduce(1000), 799);
        assert_eq!(cubic.w_max, 1000);
        assert_eq!(cubic.reduce(900), 719);
        // 900 (1024 + 819) / 2048
        assert_eq!(cubic.w_max, 809);
        assert_eq!(cubic.reduce(2), 2);
    }

    #[test]
    fn the_ratio_of_segments_per_acknowledgement_stops_at_31_sixteenths() {
        let mut cubic = Ns2Cubic::new();
        for _ in 0..100 {
            cubic.acked(1);
        }
        assert_eq!(cubic.ratio_16, 31);
    }

    #[test]
    fn growth_follows_the_curve() {
        let mut cubic = Ns2Cubic::new();
        for _ in 0..10 {
            cubic.acked(1);
        }
        let cwnd = cubic.reduce(1000);
        // K = cbrt(201 / (410 / 1024)) s = 7.9481 s = 8138 units.
        cubic.acks_per_segment(10_000, cwnd);
        assert!(cubic.k.abs_diff(8138) <= 2, "{}", cubic.k);
        // 4 s on: target 1000 - 0.4004 (3.948)^3 = 975.4: 976 from integers; 800 / 176 = 4, times 16/31.
        assert_eq!(cubic.acks_per_segment(14_000, 800), 4 * 16 / 31);
        // On the plateau the window rests: 100 cwnd, times 16/31.
        assert_eq!(cubic.acks_per_segment(17_948, 1000), 100_000 * 16 / 31);
    }

    #[test]
    fn before_a_loss_one_segment_per_fifty() {
        let mut cubic = Ns2Cubic::new();
        for _ in 0..10 {
            cubic.acked(1);
        }
        assert_eq!(cubic.acks_per_segment(1000, 100), 50 * 16 / 31);
    }

    #[test]
    fn the_increase_is_capped_when_a_delay_is_known() {
        let mut cubic = Ns2Cubic::new();
        cubic.ratio_16 = 16;
        cubic.measure(5000, 100);
        cubic.reduce(1000);
        cubic.acks_per_segment(10_000, 1000);
        // 30 s past the plateau, far above: 16 per RTT of 100 ms, so cwnd / 16.
        assert_eq!(cubic.acks_per_segment(40_000, 1000), 1000 / 16);
    }

    #[test]
    fn follows_reno_when_it_is_faster() {
        let mut cubic = Ns2Cubic::new();
        cubic.ratio_16 = 16;
        let cwnd = cubic.reduce(20);
        assert_eq!(cwnd, 15);
        cubic.acks_per_segment(1000, cwnd);
        for _ in 0..100 {
            cubic.acked(1);
            cubic.acks_per_segment(1001, cwnd);
        }
        // 101 acknowledgements at 15 * 23 / 8 = 43 each: two segments ahead; 15 / 2 acknowledgements per segment.
        assert_eq!(cubic.acks_per_segment(1040, cwnd), 7);
    }
}
