// SPDX-License-Identifier: BSD-3-Clause
//! CUBIC (RFC 9438): the window as a cubic function of the time since the last congestion event.
//!
//! Windows are in segments, times in seconds inside, nanoseconds outside. Floating point is limited to sums,
//! products, quotients and `libm::cbrt`, so that every machine computes the same bits. Deviations: the slow start
//! threshold comes from cwnd instead of flight size, as in Linux, and so the window grows only while it limits the
//! sender; an acknowledgement in the Reno-friendly region never shrinks the window.

/// C of section 5, segments per second cubed.
const C: f64 = 0.4;
/// Multiplicative decrease of section 4.6.
const BETA: f64 = 0.7;
/// Reno-friendly increase of section 4.3: 3 (1 - beta) / (1 + beta).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    /// Plateau of the curve; 0 when no reduction is remembered.
    w_max: f64,
    /// Seconds from the epoch to the plateau.
    k_s: f64,
    /// Start of this congestion avoidance; `None`: starts at the next growth.
    epoch_ns: Option<u64>,
    /// Reno-friendly estimate.
    w_est: f64,
    /// Window before the last reduction.
    cwnd_prior: f64,
    /// Last time the window could have grown.
    last_ns: u64,
}

impl Cubic {
    /// Window after `acked` segments in congestion avoidance.
    #[inline]
    pub fn grow(&mut self, now_ns: u64, rtt_ns: u64, cwnd: f64, acked: u64) -> f64 {
        let epoch_ns = match self.epoch_ns {
            Some(epoch_ns) => epoch_ns,
            None => self.begin(now_ns, cwnd),
        };
        self.last_ns = now_ns;
        let acked = acked as f64;
        let t_s = seconds(now_ns - epoch_ns);
        let alpha = if self.w_est < self.cwnd_prior {
            ALPHA
        } else {
            1.0
        };
        self.w_est += alpha * acked / cwnd;
        if self.at(t_s) < self.w_est {
            return self.w_est.max(cwnd);
        }
        let target = self.at(t_s + seconds(rtt_ns)).min(1.5 * cwnd).max(cwnd);
        cwnd + acked * (target - cwnd) / cwnd
    }

    /// Time passed in which the window did not limit the sender: the curve stands still (section 4.2).
    pub fn pause(&mut self, now_ns: u64) {
        if let Some(epoch_ns) = &mut self.epoch_ns {
            *epoch_ns += now_ns - self.last_ns;
        }
        self.last_ns = now_ns;
    }

    /// Slow start threshold after a congestion event, with fast convergence (sections 4.6 and 4.7).
    pub fn reduce(&mut self, cwnd: f64) -> f64 {
        self.w_max = if cwnd < self.w_max {
            cwnd * (1.0 + BETA) / 2.0
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        self.epoch_ns = None;
        (cwnd * BETA).max(2.0)
    }

    /// After a timeout the next congestion avoidance starts on its own plateau (section 4.8).
    pub fn forget(&mut self) {
        self.w_max = 0.0;
        self.epoch_ns = None;
    }

    fn begin(&mut self, now_ns: u64, cwnd: f64) -> u64 {
        if self.w_max > cwnd {
            self.k_s = libm::cbrt((self.w_max - cwnd) / C);
        } else {
            self.k_s = 0.0;
            self.w_max = cwnd;
        }
        self.w_est = cwnd;
        self.epoch_ns = Some(now_ns);
        now_ns
    }

    /// W_cubic(t) of section 4.2.
    #[inline]
    fn at(&self, t_s: f64) -> f64 {
        let d = t_s - self.k_s;
        C * d * d * d + self.w_max
    }
}

#[inline]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_loss_at(w_max: f64) -> (Cubic, f64) {
        let mut cubic = Cubic::default();
        let ssthresh = cubic.reduce(w_max);
        (cubic, ssthresh)
    }

    fn near(value: f64, expected: f64) {
        assert!(
            (value - expected).abs() <= 1e-9 * expected.abs().max(1.0),
            "{value} is not {expected}"
        );
    }

    #[test]
    fn curve_of_section_4_2() {
        // W_max 1000: cwnd_epoch 700, K = cbrt(300 / 0.4) = 9.0856029641606...
        let (mut cubic, ssthresh) = after_loss_at(1000.0);
        near(ssthresh, 700.0);
        cubic.begin(5_000_000_000, 700.0);
        near(cubic.k_s, 9.085_602_964_160_7);
        near(cubic.at(0.0), 700.0);
        // 0.4 (4 - K)^3 + 1000
        near(cubic.at(4.0), 947.387_692_955_469_8);
        near(cubic.at(cubic.k_s), 1000.0);
        // 0.4 (12 - K)^3 + 1000
        near(cubic.at(12.0), 1_009.901_617_395_097);
    }

    #[test]
    fn growth_aims_at_the_window_one_rtt_ahead() {
        let (mut cubic, _) = after_loss_at(1000.0);
        cubic.begin(0, 700.0);
        // t = 1 s, RTT 100 ms: target W(1.1) = 0.4 (1.1 - K)^3 + 1000.
        let d = 1.1 - 9.085_602_964_160_698;
        let target = 1000.0 + 0.4 * d * d * d;
        near(
            cubic.grow(1_000_000_000, 100_000_000, 720.0, 3),
            720.0 + 3.0 * (target - 720.0) / 720.0,
        );
    }

    #[test]
    fn growth_per_rtt_is_at_most_half_the_window() {
        let (mut cubic, _) = after_loss_at(10.0);
        cubic.begin(0, 7.0);
        // 100 s later the curve is far above: target 1.5 cwnd, so half a segment per segment acknowledged.
        near(cubic.grow(100_000_000_000, 1_000_000, 7.0, 1), 7.5);
    }

    #[test]
    fn fast_convergence() {
        let (mut cubic, _) = after_loss_at(1000.0);
        near(cubic.reduce(900.0), 630.0);
        near(cubic.w_max, 765.0);
        // 800 exceeds the plateau of 765: no further concession.
        cubic.reduce(800.0);
        near(cubic.w_max, 800.0);
    }

    #[test]
    fn reno_friendly_region() {
        near(ALPHA, 9.0 / 17.0);
        // Small window, short RTT: the cubic hardly moves, the estimate rises by alpha per window.
        let (mut cubic, ssthresh) = after_loss_at(10.0);
        let mut cwnd = cubic.grow(0, 1_000_000, ssthresh, 0);
        near(cwnd, 7.0);
        let mut expected = 7.0;
        for step in 1..=100 {
            let alpha = if expected < 10.0 { 9.0 / 17.0 } else { 1.0 };
            expected += alpha / cwnd;
            cwnd = cubic.grow(step * 100_000, 1_000_000, cwnd, 1);
            near(cwnd, expected);
        }
        assert!(cwnd > 10.0);
    }

    #[test]
    fn after_a_timeout_the_curve_starts_on_its_plateau() {
        let (mut cubic, _) = after_loss_at(1000.0);
        cubic.forget();
        cubic.begin(7_000_000_000, 300.0);
        near(cubic.at(0.0), 300.0);
        near(cubic.at(2.0), 303.2);
    }

    #[test]
    fn a_pause_does_not_count() {
        let (mut cubic, _) = after_loss_at(1000.0);
        let mut twin = cubic.clone();
        let cwnd = cubic.grow(0, 100_000_000, 700.0, 1);
        assert_eq!(twin.grow(0, 100_000_000, 700.0, 1), cwnd);
        cubic.pause(50_000_000_000);
        let later = cubic.grow(51_000_000_000, 100_000_000, cwnd, 1);
        assert_eq!(later, twin.grow(1_000_000_000, 100_000_000, cwnd, 1));
    }
}
