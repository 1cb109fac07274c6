// SPDX-License-Identifier: BSD-3-Clause
//! Signal level over time, dB relative to the line of sight: samples on a regular grid, repeated for ever. A fade is negative.

use std::sync::Arc;

/// Samples of a fading channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Fading {
    step_ns: u64,
    /// All of a round, or as many of its first ones as will be asked for.
    samples_db: Arc<[f32]>,
    /// Samples in a round.
    round: usize,
}

impl Fading {
    /// Samples `step_ns` apart; `None` when there are none, the step is 0, all last longer than 2^63 ns or a sample is no
    /// number.
    #[must_use]
    pub fn new(step_ns: u64, samples_db: Vec<f32>) -> Option<Fading> {
        let period_ns = step_ns.checked_mul(samples_db.len() as u64);
        let times = period_ns.is_some_and(|ns| (1..=1 << 63).contains(&ns));
        let sound = times && samples_db.iter().all(|a| a.is_finite());
        sound.then(|| Fading {
            step_ns,
            round: samples_db.len(),
            samples_db: samples_db.into(),
        })
    }

    /// The same samples as the beginning of a longer round, of `round` samples; the rest is never looked up.
    pub(crate) fn beginning_of(self, round: usize) -> Fading {
        debug_assert!(round >= self.samples_db.len());
        Fading { round, ..self }
    }

    /// Gain in dB at a time; the sample that began last holds, and the list starts again at its end.
    #[inline]
    #[must_use]
    pub fn at(&self, time_ns: u64) -> f64 {
        f64::from(self.samples_db[self.index(time_ns)])
    }

    /// Which sample that is.
    #[inline]
    pub(crate) fn index(&self, time_ns: u64) -> usize {
        let at = time_ns / self.step_ns;
        let round = self.round as u64;
        // Within two rounds, as nearly always, without another division.
        (if at / 2 < round {
            at.min(at.wrapping_sub(round))
        } else {
            at % round
        }) as usize
    }

    /// Samples in a round.
    pub(crate) fn round(&self) -> usize {
        self.round
    }

    /// How long one round lasts, ns.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.step_ns * self.round as u64
    }

    /// The samples of a round, as far as they will be asked for, dB.
    #[must_use]
    pub fn samples_db(&self) -> &[f32] {
        &self.samples_db
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_hold_and_repeat() {
        let fading = Fading::new(1_000_000, vec![-1.0, -2.5, 3.0]).unwrap();
        assert_eq!(fading.period_ns(), 3_000_000);
        for (t_ns, db) in [
            (0, -1.0),
            (999_999, -1.0),
            (1_000_000, -2.5),
            (2_999_999, 3.0),
            (3_000_000, -1.0),
        ] {
            assert_eq!(fading.at(t_ns), db, "{t_ns}");
        }
    }

    #[test]
    fn a_round_lasts_at_most_2_to_the_63_ns() {
        let sound = |step_ns: u64, samples| Fading::new(step_ns, vec![0.0; samples]).is_some();
        assert!(sound(1 << 62, 2) && sound(1, 1));
        assert!(!sound(1 << 62, 3) && !sound(1 << 62, 4) && !sound(0, 1) && !sound(1, 0));
    }
}
