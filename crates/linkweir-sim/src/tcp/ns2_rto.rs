// SPDX-License-Identifier: BSD-3-Clause
//! Retransmission timeouts of the `Ns2` profile.

use super::config::Config;

/// ns-2.35's estimator: whole ticks, SRTT in eighths and RTTVAR in quarters of a tick, a fall of the RTT counted for
/// an eighth in the variance, timeout SRTT + 4 RTTVAR, least timeout applied before the back-off, SRTT folded
/// into RTTVAR after four timeouts in a row. ns-2 starts its ticks at a random phase; here the phase is 0.
#[derive(Clone, Debug)]
pub struct TickRto {
    srtt_8: i64,
    rttvar_4: i64,
    current_ns: u64,
    backoff: u64,
    tick_ns: u64,
    min_ns: u64,
    max_ns: u64,
    timestamps: bool,
}

impl TickRto {
    /// Before the first sample.
    pub fn new(config: &Config) -> TickRto {
        TickRto {
            srtt_8: 0,
            rttvar_4: 0,
            current_ns: config.initial_rto_ns,
            backoff: 1,
            tick_ns: config.tick_ns.max(1),
            min_ns: config.min_rto_ns,
            max_ns: config.max_rto_ns,
            timestamps: config.timestamps,
        }
    }

    /// A segment sent at `sent_ns` was acknowledged now.
    pub fn sample(&mut self, sent_ns: u64, now_ns: u64) {
        let rtt_ns = now_ns - sent_ns;
        let ticks = if self.timestamps {
            (rtt_ns + self.tick_ns / 2) / self.tick_ns
        } else {
            (rtt_ns + sent_ns % self.tick_ns) / self.tick_ns
        };
        let rtt = (ticks as i64).max(1);
        if self.srtt_8 == 0 {
            self.srtt_8 = rtt * 8;
            self.rttvar_4 = rtt * 2;
        } else {
            let error = rtt - (self.srtt_8 >> 3);
            self.srtt_8 = (self.srtt_8 + error).max(1);
            let mut change = error.abs() - (self.rttvar_4 >> 2);
            if error < 0 && change > 0 {
                change >>= 3;
            }
            self.rttvar_4 += change;
        }
        self.current_ns = ((self.rttvar_4 * 8 + self.srtt_8) >> 3) as u64 * self.tick_ns;
    }

    /// Ends the back-off.
    pub fn reset_backoff(&mut self) {
        self.backoff = 1;
    }

    /// The timer expired.
    pub fn back_off(&mut self) {
        if self.backoff < 64 || self.timeout_ns() < self.max_ns {
            self.backoff *= 2;
        }
        if self.backoff > 8 {
            self.rttvar_4 += self.srtt_8 >> 3;
            self.srtt_8 = 0;
        }
    }

    /// Timeout to arm.
    #[inline]
    pub fn timeout_ns(&self) -> u64 {
        let least_ns = 2 * self.tick_ns;
        (self.current_ns.max(self.min_ns))
            .saturating_mul(self.backoff)
            .min(self.max_ns)
            .max(least_ns)
    }

    /// Smoothed round-trip time.
    pub fn srtt_ns(&self) -> Option<u64> {
        (self.srtt_8 > 0).then(|| self.srtt_8 as u64 * self.tick_ns / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Algorithm, Profile};

    const MS: u64 = 1_000_000;

    #[test]
    fn ticks_of_ns2() {
        let mut config = Config::new(Algorithm::NewReno, Profile::Ns2);
        config.tick_ns = 10 * MS;
        let mut rto = TickRto::new(&config);
        assert_eq!(rto.timeout_ns(), 3000 * MS);
        // Sent at 5 ms, back at 108 ms: (103 + 5) / 10 = 10 ticks; SRTT 10, RTTVAR 5: 30 ticks.
        rto.sample(5 * MS, 108 * MS);
        assert_eq!(
            (rto.srtt_ns(), rto.timeout_ns()),
            (Some(100 * MS), 300 * MS)
        );
        // 20 ticks: error 10; SRTT 90/8, RTTVAR (20 + 10 - 5)/4 = 25/4: (8 * 25 + 90) / 8 = 36 ticks.
        rto.sample(200 * MS, 400 * MS);
        assert_eq!(rto.timeout_ns(), 360 * MS);
        // 2 ticks: error 2 - 11 = -9; SRTT 81/8; 9 - 6 = 3, an eighth of it is 0; (200 + 81) / 8 = 35 ticks.
        rto.sample(500 * MS, 520 * MS);
        assert_eq!(rto.timeout_ns(), 350 * MS);
        for _ in 0..4 {
            rto.back_off();
        }
        assert_eq!(rto.timeout_ns(), 5600 * MS);
        assert_eq!(rto.srtt_ns(), None);
        rto.reset_backoff();
        assert_eq!(rto.timeout_ns(), 350 * MS);
    }
}
