// SPDX-License-Identifier: BSD-3-Clause
//! Draws of random amounts: bytes of a transfer, ns of a pause, objects of a page.

use crate::experiment::{Amount, Distribution};
use crate::random::Random;

impl Amount {
    /// A draw, rounded to a whole number.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        let drawn = match &self.distribution {
            Distribution::Fixed(amount) => *amount,
            Distribution::Exponential { mean } => mean * random.exponential(),
            Distribution::Pareto { mean, shape } => mean * random.pareto(*shape),
            Distribution::Lognormal { mean, deviation } => {
                let ratio = deviation / mean;
                let variance = libm::log1p(ratio * ratio);
                mean * libm::exp(libm::sqrt(variance) * random.normal() - variance / 2.0)
            }
            Distribution::Empirical(points) => empirical(points, random.unit()),
        };
        (drawn.max(self.least).min(self.most) + 0.5) as u64
    }
}

/// The amount up to which this part of the draws lies.
fn empirical(points: &[(f64, f64)], part: f64) -> f64 {
    let at = points.partition_point(|(_, cumulative)| *cumulative <= part);
    let (above, above_part) = points[at.min(points.len() - 1)];
    match at.checked_sub(1).map(|before| points[before]) {
        Some((below, below_part)) if above_part > below_part => {
            below + (above - below) * (part - below_part) / (above_part - below_part)
        }
        _ => above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(distribution: Distribution) -> Amount {
        Amount {
            distribution,
            least: 1.0,
            most: 1e12,
        }
    }

    /// Mean of a million draws.
    fn mean(distribution: Distribution) -> f64 {
        let (amount, mut random) = (amount(distribution), Random::new(3, 1));
        (0..1_000_000)
            .map(|_| amount.draw(&mut random) as f64)
            .sum::<f64>()
            / 1e6
    }

    #[test]
    fn amounts_have_their_means() {
        assert_eq!(mean(Distribution::Fixed(1e4)), 1e4);
        // Four standard errors: deviation 1e4 (exponential), 5773.5 (Pareto with shape 3), 2.5e4 (lognormal).
        assert!((mean(Distribution::Exponential { mean: 1e4 }) - 1e4).abs() < 40.0);
        let pareto = Distribution::Pareto {
            mean: 1e4,
            shape: 3.0,
        };
        assert!((mean(pareto) - 1e4).abs() < 4.0 * 5.7735);
        let lognormal = Distribution::Lognormal {
            mean: 1e4,
            deviation: 2.5e4,
        };
        assert!((mean(lognormal) - 1e4).abs() < 4.0 * 25.0);
        // A fifth is 100; three tenths lie from there to 300, half from there to 1000: deviation 345.
        let points = [(100.0, 0.2), (300.0, 0.5), (1000.0, 1.0)].into();
        assert!((mean(Distribution::Empirical(points)) - 405.0).abs() < 4.0 * 0.345);
    }

    #[test]
    fn an_empirical_distribution_is_followed_between_its_points() {
        let points = [(100.0, 0.2), (300.0, 0.5), (1000.0, 1.0)];
        for (part, expected) in [
            (0.0, 100.0),
            (0.19, 100.0),
            (0.2, 100.0),
            (0.35, 200.0),
            (0.5, 300.0),
            (0.75, 650.0),
        ] {
            let found = empirical(&points, part);
            assert!((found - expected).abs() < 1e-9, "{part}: {found}");
        }
        assert_eq!(empirical(&[(7.0, 1.0)], 0.5), 7.0);
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut random = Random::new(1, 1);
        let bounded = Amount {
            distribution: Distribution::Exponential { mean: 100.0 },
            least: 50.0,
            most: 120.0,
        };
        let draws: Vec<u64> = (0..1000).map(|_| bounded.draw(&mut random)).collect();
        assert_eq!(
            (draws.iter().min(), draws.iter().max()),
            (Some(&50), Some(&120))
        );
    }
}
