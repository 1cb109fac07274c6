// SPDX-License-Identifier: BSD-3-Clause
//! Round-trip times as Linux keeps them: smoothed RTT, variance and retransmission timeout, and the least RTT of the last
//! five minutes. RFC 6298 but for three things: the variance never counts less than `min_rto`, it falls at most once per
//! round trip, and an RTT below the smoothed one raises it by an eighth only.

use super::clock::Clock;
use super::minmax::{Least, Window};
use crate::tcp::config::Config;

/// How long the least RTT counts (tcp_min_rtt_wlen).
const MIN_RTT_WINDOW_NS: u64 = 300_000_000_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Rtt {
    /// Smoothed RTT times 8; 0 before the first sample.
    srtt_8_ns: i64,
    /// Mean deviation times 4.
    mdev_4_ns: i64,
    /// Greatest mean deviation of this round trip, and the variance that follows it; both times 4.
    mdev_max_4_ns: i64,
    rttvar_4_ns: i64,
    /// The round trip ends when this segment is acknowledged.
    round_end: u64,
    least: Option<Window<Least>>,
    clock: Clock,
    min_ns: i64,
    max_ticks: u64,
    /// Timeout in ticks, with its back-off.
    rto_ticks: u64,
}

impl Rtt {
    pub fn new(config: &Config) -> Rtt {
        let clock = Clock::new(config.tick_ns);
        Rtt {
            srtt_8_ns: 0,
            mdev_4_ns: 0,
            mdev_max_4_ns: 0,
            rttvar_4_ns: 0,
            round_end: 0,
            least: None,
            clock,
            min_ns: config.min_rto_ns as i64,
            max_ticks: clock.ticks_for(config.max_rto_ns),
            rto_ticks: clock.ticks_for(config.initial_rto_ns),
        }
    }

    /// Takes in a sample and computes the timeout from it; ends a back-off.
    #[inline]
    pub fn sample(&mut self, rtt_ns: u64, una: u64, next: u64) {
        let sample_ns = rtt_ns as i64;
        if self.srtt_8_ns == 0 {
            self.srtt_8_ns = (sample_ns << 3).max(1);
            self.mdev_4_ns = sample_ns << 1;
            self.rttvar_4_ns = self.mdev_4_ns.max(self.min_ns);
            self.mdev_max_4_ns = self.rttvar_4_ns;
            self.round_end = next;
        } else {
            self.smooth(sample_ns, una, next);
        }
        let rto_ns = (self.srtt_8_ns >> 3) + self.rttvar_4_ns;
        self.rto_ticks = self.clock.ticks_for(rto_ns as u64).min(self.max_ticks);
    }

    #[inline]
    fn smooth(&mut self, sample_ns: i64, una: u64, next: u64) {
        let error_ns = sample_ns - (self.srtt_8_ns >> 3);
        self.srtt_8_ns = (self.srtt_8_ns + error_ns).max(1);
        let mut change_ns = error_ns.abs() - (self.mdev_4_ns >> 2);
        if error_ns < 0 && change_ns > 0 {
            change_ns >>= 3;
        }
        self.mdev_4_ns += change_ns;
        if self.mdev_4_ns > self.mdev_max_4_ns {
            self.mdev_max_4_ns = self.mdev_4_ns;
            self.rttvar_4_ns = self.rttvar_4_ns.max(self.mdev_max_4_ns);
        }
        if una > self.round_end {
            if self.mdev_max_4_ns < self.rttvar_4_ns {
                self.rttvar_4_ns -= (self.rttvar_4_ns - self.mdev_max_4_ns) >> 2;
            }
            self.round_end = next;
            self.mdev_max_4_ns = self.min_ns;
        }
    }

    /// Takes in a sample for the least RTT.
    #[inline]
    pub fn sample_least(&mut self, now_ns: u64, rtt_ns: u64) {
        let at = self.clock.ticks(now_ns);
        let length = self.clock.ticks_for(MIN_RTT_WINDOW_NS);
        match &mut self.least {
            Some(least) => least.add(length, at, rtt_ns),
            None => self.least = Some(Window::new(at, rtt_ns)),
        }
    }

    /// The least RTT; `u64::MAX` before the first sample.
    #[inline]
    pub fn least_ns(&self) -> u64 {
        self.least.as_ref().map_or(u64::MAX, Window::value)
    }

    /// The smoothed RTT; 0 before the first sample.
    #[inline]
    pub fn srtt_ns(&self) -> u64 {
        self.srtt_8_ns as u64 >> 3
    }

    #[inline]
    pub fn rto_ticks(&self) -> u64 {
        self.rto_ticks
    }

    #[inline]
    pub fn rto_ns(&self) -> u64 {
        self.clock.ns(self.rto_ticks)
    }

    #[inline]
    pub fn min_rto_ns(&self) -> u64 {
        self.min_ns as u64
    }

    /// The timer expired: the timeout doubles until the next sample.
    pub fn back_off(&mut self) {
        self.rto_ticks = (self.rto_ticks << 1).min(self.max_ticks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Algorithm, Profile};

    const MS: u64 = 1_000_000;

    fn with_ticks_of_1_ms() -> Rtt {
        let mut config = Config::new(Algorithm::Reno, Profile::Linux);
        config.tick_ns = MS;
        Rtt::new(&config)
    }

    #[test]
    fn the_first_sample_gives_three_times_the_rtt() {
        let mut rtt = with_ticks_of_1_ms();
        assert_eq!(rtt.rto_ns(), 1000 * MS);
        rtt.sample(400 * MS, 0, 10);
        assert_eq!((rtt.srtt_ns(), rtt.rto_ns()), (400 * MS, 1200 * MS));
    }

    #[test]
    fn a_steady_rtt_leaves_the_floor_above_it() {
        let mut rtt = with_ticks_of_1_ms();
        for n in 0..1000 {
            rtt.sample(500 * MS, 10 * n + 1, 10 * n + 10);
        }
        // 500 + 200; a quarter of the excess goes per round trip.
        assert_eq!(rtt.rto_ns(), 701 * MS);
    }

    #[test]
    fn a_fall_of_the_rtt_counts_for_an_eighth_in_the_variance() {
        let (mut up, mut down) = (with_ticks_of_1_ms(), with_ticks_of_1_ms());
        for rtt in [&mut up, &mut down] {
            for n in 0..1000 {
                rtt.sample(2000 * MS, 10 * n + 1, 10 * n + 10);
            }
        }
        // The deviation is 0 by now: 1600 of error count whole upwards, and 200 downwards.
        up.sample(3600 * MS, 0, 0);
        down.sample(400 * MS, 0, 0);
        // The last nanosecond takes a tick.
        assert_eq!(up.rto_ns(), 2200 * MS + 1600 * MS + MS);
        assert_eq!(down.rto_ns(), 1800 * MS + 200 * MS + MS);
    }

    #[test]
    fn back_off_doubles_up_to_the_greatest_and_a_sample_ends_it() {
        let mut rtt = with_ticks_of_1_ms();
        rtt.sample(400 * MS, 0, 0);
        let mut timeouts_ms = Vec::new();
        for _ in 0..8 {
            rtt.back_off();
            timeouts_ms.push(rtt.rto_ns() / MS);
        }
        assert_eq!(
            timeouts_ms,
            [2400, 4800, 9600, 19_200, 38_400, 76_800, 120_000, 120_000]
        );
        rtt.sample(400 * MS, 0, 0);
        assert_eq!(rtt.rto_ns(), 1200 * MS);
    }
}
