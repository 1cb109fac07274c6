// SPDX-License-Identifier: BSD-3-Clause
//! Packet sizes: draws from their distribution, and its mean.

use crate::experiment::Sizes;
use crate::random::Random;

impl Sizes {
    /// A packet's size, bytes.
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Mix(parts) => {
                let total: f64 = parts.iter().map(|part| part.1).sum();
                let mut left = random.unit() * total;
                for &(bytes, weight) in parts.iter() {
                    if left < weight {
                        return bytes;
                    }
                    left -= weight;
                }
                // Rounding may leave a little of the total.
                parts[parts.len() - 1].0
            }
            Sizes::Uniform(least, most) => {
                least + (random.unit() * f64::from(most - least + 1)) as u32
            }
        }
    }

    /// Mean of the sizes, bytes.
    pub(crate) fn mean_bytes(&self) -> f64 {
        match self {
            Sizes::Fixed(bytes) => f64::from(*bytes),
            Sizes::Mix(parts) => {
                let total: f64 = parts.iter().map(|part| part.1).sum();
                parts
                    .iter()
                    .map(|part| f64::from(part.0) * part.1)
                    .sum::<f64>()
                    / total
            }
            Sizes::Uniform(least, most) => (f64::from(*least) + f64::from(*most)) / 2.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_means() {
        let mut random = Random::new(1, 0);
        let n = 1_000_000;
        let mut mean = |sizes: &Sizes| {
            (0..n)
                .map(|_| f64::from(sizes.draw(&mut random)))
                .sum::<f64>()
                / f64::from(n)
        };
        // Four standard errors: sd 632.2 (two sizes), 1.118 (four sizes).
        let mix = Sizes::Mix([(40, 1.0), (1500, 3.0)].into());
        assert!((mix.mean_bytes() - 1135.0).abs() < 1e-9);
        assert!((mean(&mix) - 1135.0).abs() < 4.0 * 632.2e-3);
        let uniform = Sizes::Uniform(64, 67);
        assert!((mean(&uniform) - 65.5).abs() < 4.0 * 1.118e-3);
    }
}
