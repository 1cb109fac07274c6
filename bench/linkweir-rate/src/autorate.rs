// SPDX-License-Identifier: BSD-3-Clause
//! A model of cake-autorate's rule, for comparison: written from its README and the comments of its defaults (cake-autorate 3.2.1,
//! <https://github.com/lynxthecat/cake-autorate>), with these defaults. It is no copy of the program.
//!
//! Six hosts answer a probe each, one every 50 ms, and tell how long the way there took. A host's baseline follows this time, slowly
//! upwards and fast downwards. Where three of the last six answers are late against it, the rate falls; while much of the rate is
//! used, it rises; otherwise it goes back to a base rate.
//!
//! Where the documentation leaves a choice, the model takes the one that is better for the rule: the probes tell the time of one way
//! (its `tsping`), bypass the queue of the router, and the three rates a user has to give are the least, the mean and the greatest
//! capacity of the link that follows.

use std::collections::VecDeque;

use crate::trace::{MS, S};

/// How often a probe is sent, ns: `reflector_ping_interval_s` over `no_pingers`.
pub const PROBE_NS: u64 = 50 * MS;
/// How often the achieved rate is measured, ns: `monitor_achieved_rates_interval_ms`.
pub const ACHIEVED_NS: u64 = 200 * MS;
/// `no_pingers`.
const HOSTS: usize = 6;
/// `alpha_baseline_increase` and `alpha_baseline_decrease`.
const BASELINE: (f64, f64) = (0.001, 0.9);
/// `bufferbloat_detection_window` and `bufferbloat_detection_thr`.
const WINDOW: usize = 6;
const LATE: usize = 3;
/// `avg_owd_delta_max_adjust_up_thr_ms`, `owd_delta_delay_thr_ms`, `avg_owd_delta_max_adjust_down_thr_ms`, in ms.
const UP_MS: f64 = 10.0;
const LATE_MS: f64 = 30.0;
const DOWN_MS: f64 = 60.0;
/// `shaper_rate_min_adjust_down_bufferbloat` and `shaper_rate_max_adjust_down_bufferbloat`.
const DOWN: (f64, f64) = (0.99, 0.75);
/// `shaper_rate_min_adjust_up_load_high` and `shaper_rate_max_adjust_up_load_high`.
const UP: (f64, f64) = (1.0, 1.04);
/// `shaper_rate_adjust_down_load_low` and `shaper_rate_adjust_up_load_low`.
const DECAY: (f64, f64) = (0.99, 1.01);
/// `high_load_thr`.
const HIGH_LOAD: f64 = 0.75;
/// `bufferbloat_refractory_period_ms` and `decay_refractory_period_ms`, ns.
const AFTER_DOWN_NS: u64 = 300 * MS;
const AFTER_DECAY_NS: u64 = S;
/// The longest packet, bits: its time is added to the threshold, which matters at low rates only.
const PACKET_BITS: f64 = 8.0 * 1500.0;

/// The rates that a user gives, bit/s.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub least: f64,
    pub base: f64,
    pub greatest: f64,
}

/// The rule and what it knows.
#[derive(Clone, Debug)]
pub struct Autorate {
    rates: Rates,
    bps: f64,
    achieved_bps: f64,
    baseline_ms: [Option<f64>; HOSTS],
    /// The last answers: by how much each was above its baseline, ms.
    above_ms: VecDeque<f64>,
    down_ns: Option<u64>,
    decay_ns: Option<u64>,
}

impl Autorate {
    pub fn new(rates: Rates) -> Autorate {
        Autorate {
            rates,
            bps: rates.base,
            achieved_bps: 0.0,
            baseline_ms: [None; HOSTS],
            above_ms: VecDeque::new(),
            down_ns: None,
            decay_ns: None,
        }
    }

    /// The rate to send at, bit/s.
    pub fn bps(&self) -> f64 {
        self.bps
    }

    /// Takes how much was sent since it was last told, bit/s.
    pub fn achieved(&mut self, bps: f64) {
        self.achieved_bps = bps;
    }

    /// Takes an answer: the probe's number, and how long it took there, ns. Clocks need not agree.
    pub fn answered(&mut self, now_ns: u64, probe: u64, took_ns: u64) {
        let took_ms = took_ns as f64 / 1e6;
        let baseline = self.baseline_ms[(probe % HOSTS as u64) as usize].get_or_insert(took_ms);
        let alpha = if took_ms > *baseline {
            BASELINE.0
        } else {
            BASELINE.1
        };
        *baseline += alpha * (took_ms - *baseline);
        if self.above_ms.len() == WINDOW {
            self.above_ms.pop_front();
        }
        self.above_ms.push_back(took_ms - *baseline);
        self.bps = (self.bps * self.factor(now_ns)).clamp(self.rates.least, self.rates.greatest);
    }

    /// By what the rate is multiplied now.
    fn factor(&mut self, now_ns: u64) -> f64 {
        let within = |since_ns: Option<u64>, period_ns| {
            since_ns.is_some_and(|ns| now_ns.saturating_sub(ns) < period_ns)
        };
        let late_ms = LATE_MS + 1e3 * PACKET_BITS / self.bps;
        let late = self.above_ms.iter().filter(|ms| **ms > late_ms).count();
        let mean_ms = self.above_ms.iter().sum::<f64>() / self.above_ms.len() as f64;
        if within(self.down_ns, AFTER_DOWN_NS) {
            return 1.0;
        }
        if late >= LATE {
            self.down_ns = Some(now_ns);
            return between(DOWN, (mean_ms - late_ms) / (DOWN_MS - LATE_MS));
        }
        if self.achieved_bps > HIGH_LOAD * self.bps {
            return between(UP, (late_ms - mean_ms) / (late_ms - UP_MS));
        }
        if within(self.decay_ns, AFTER_DECAY_NS) || self.bps == self.rates.base {
            return 1.0;
        }
        self.decay_ns = Some(now_ns);
        // It does not pass the base rate.
        let to_base = self.rates.base / self.bps;
        if to_base < 1.0 {
            DECAY.0.max(to_base)
        } else {
            DECAY.1.min(to_base)
        }
    }
}

/// A value between two, by a part that is cut to 0 .. 1.
fn between((from, to): (f64, f64), part: f64) -> f64 {
    from + part.clamp(0.0, 1.0) * (to - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates {
        least: 5e6,
        base: 20e6,
        greatest: 80e6,
    };

    /// An answer every 50 ms from the given time on, each this long above a way of 20 ms.
    fn answers(rule: &mut Autorate, from_ns: u64, above_ms: &[u64]) -> u64 {
        for (at, ms) in (0..).zip(above_ms) {
            rule.answered(from_ns + at * PROBE_NS, at, (20 + ms) * MS);
        }
        from_ns + above_ms.len() as u64 * PROBE_NS
    }

    #[test]
    fn it_rises_by_a_twenty_fifth_an_answer_while_it_is_used() {
        let mut rule = Autorate::new(RATES);
        rule.achieved(19e6);
        answers(&mut rule, 0, &[0; 3]);
        assert!(
            (rule.bps() - 20e6 * 1.04_f64.powi(3)).abs() < 1.0,
            "{}",
            rule.bps()
        );
        rule.achieved(79e6);
        answers(&mut rule, 0, &[0; 100]);
        assert_eq!(rule.bps(), 80e6);
    }

    #[test]
    fn three_late_answers_of_six_lower_it_and_nothing_changes_for_300_ms() {
        let mut rule = Autorate::new(RATES);
        let now_ns = answers(&mut rule, 0, &[0; 6]);
        rule.achieved(20e6);
        let before = rule.bps();
        // The mean is 60 ms and more above: the greatest step.
        let now_ns = answers(&mut rule, now_ns, &[200, 200]);
        let raised = rule.bps();
        assert!(raised >= before, "two late answers are none");
        answers(&mut rule, now_ns, &[200]);
        assert!(
            (rule.bps() / raised - 0.75).abs() < 1e-9,
            "{}",
            rule.bps() / raised
        );
        let lowered = rule.bps();
        let now_ns = answers(&mut rule, now_ns + PROBE_NS, &[200; 5]);
        assert_eq!(rule.bps(), lowered);
        answers(&mut rule, now_ns, &[200]);
        assert!((rule.bps() / lowered - 0.75).abs() < 1e-9);
        for round in 1..40 {
            answers(&mut rule, now_ns + round * S, &[200]);
        }
        assert_eq!(rule.bps(), RATES.least);
    }

    #[test]
    fn without_load_it_goes_back_to_its_base_by_a_hundredth_a_second() {
        for (begin, factor) in [(40e6, 0.99_f64), (10e6, 1.01)] {
            let mut rule = Autorate::new(RATES);
            rule.bps = begin;
            let now_ns = answers(&mut rule, 0, &[0; 61]);
            let changes = (now_ns - PROBE_NS) / S + 1;
            assert!((rule.bps() - begin * factor.powi(changes as i32)).abs() < 1.0);
            answers(&mut rule, now_ns, &[0; 4000]);
            assert_eq!(rule.bps(), RATES.base);
        }
    }

    #[test]
    fn a_baseline_follows_a_longer_way_slowly_and_a_shorter_at_once() {
        let mut rule = Autorate::new(RATES);
        answers(&mut rule, 0, &[50]);
        answers(&mut rule, 0, &[0]);
        // 70 ms less nine tenths of the difference.
        assert!((rule.baseline_ms[0].unwrap() - 25.0).abs() < 1e-9);
        answers(&mut rule, 0, &[100]);
        assert!((rule.baseline_ms[0].unwrap() - 25.095).abs() < 1e-9);
    }
}
