// SPDX-License-Identifier: BSD-3-Clause
//! Random numbers that are the same on every machine: PCG (O'Neill 2014) and `libm`, one stream per flow, so that one
//! more flow does not disturb the others.

use rand_pcg::rand_core::Rng;
use rand_pcg::Pcg64;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(Pcg64);

impl Random {
    /// The stream of this number among those of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Random {
        let high = mixed(seed ^ mixed(stream));
        let low = mixed(high);
        Random(Pcg64::new(
            u128::from(high) << 64 | u128::from(low),
            u128::from(stream),
        ))
    }

    /// Uniform over all whole numbers.
    pub(crate) fn whole(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Pareto with mean 1.
    pub(crate) fn pareto(&mut self, shape: f64) -> f64 {
        (shape - 1.0) / shape * libm::pow(1.0 - self.unit(), -1.0 / shape)
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

/// The seed of what has a name, such as a link of a network: nothing else that is added or moved changes it.
/// With a seed below 2^63 it is below 2^63, so that a scenario can hold it. Of the name `link`, as the one link of a
/// scenario is called, it is the seed itself.
pub(crate) fn of_name(seed: u64, name: &str) -> u64 {
    let hash = |name: &str| {
        let bytes = name.bytes().map(u64::from);
        bytes.fold(0, |hash, byte| mixed(hash ^ byte)) >> 1
    };
    seed ^ hash(name) ^ hash("link")
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_their_means() {
        let mut random = Random::new(1, 0);
        let n = 1_000_000;
        let mean =
            |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        // Four standard errors: sd 1 (exponential), 0.2887 (uniform), 1.155 (Pareto with shape 3: variance 1/3 of 4/3).
        assert!((mean(&mut || random.unit()) - 0.5).abs() < 4.0 * 0.2887e-3);
        assert!((mean(&mut || random.exponential()) - 1.0).abs() < 4.0 * 1e-3);
        assert!((mean(&mut || random.pareto(3.0)) - 1.0).abs() < 4.0 * 0.5774e-3);
    }

    #[test]
    fn names_have_seeds_of_their_own() {
        let all = [(1, "a"), (2, "a"), (1, "b"), (1, "ab"), (1, "ba"), (1, "")];
        for (at, (seed, name)) in all.iter().enumerate() {
            let others = all[at + 1..].iter();
            let own = of_name(*seed, name);
            assert!(others.clone().all(|(s, n)| of_name(*s, n) != own));
        }
        assert_eq!(of_name(7, "feeder"), of_name(7, "feeder"));
        assert_eq!(of_name(7, "link"), 7);
    }

    #[test]
    fn streams_and_seeds_differ() {
        let draw = |seed, stream| Random::new(seed, stream).0.next_u64();
        let all = [draw(1, 0), draw(1, 1), draw(2, 0), draw(2, 1), draw(0, 3)];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        assert_eq!(draw(7, 7), draw(7, 7));
    }
}
