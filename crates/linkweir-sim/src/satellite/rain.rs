// SPDX-License-Identifier: BSD-3-Clause
//! Rain on the way to the terminals of a beam, in dB over time.
//!
//! Maseng and Bakken 1981, as in ITU-R P.1853-1, annex 1, section 2: a normal process x of first order that loses its
//! memory with a time constant (1 / beta), and from it the attenuation `max(0, exp(m + sigma x) - offset)`, at most
//! [`MOST_DB`], where no receiver works anyway. With the offset the attenuation is above 0 for the given part of the time.
//! The process starts in its stationary state, so no warm-up need be discarded.
//!
//! Terminals of a beam share weather: x is `sqrt(c)` times a process they have in common and `sqrt(1 - c)` times one of
//! their own, so that any two are correlated with c at any distance.

use std::sync::Arc;

use crate::random::Random;

/// Deepest fade accepted or generated, dB.
pub const MOST_DB: f64 = 300.0;

/// Statistics of rain attenuation.
#[derive(Clone, Debug, PartialEq)]
pub struct Rain {
    /// Mean of the logarithm of the attenuation in dB.
    pub m: f64,
    /// Its standard deviation.
    pub sigma: f64,
    /// Part of the time with rain, above 0 and at most 1; with 1 there is no offset.
    pub probability: f64,
    /// Time over which x loses its memory (1/e), s.
    pub correlation_time_s: f64,
    /// Correlation of x between any two terminals, 0 .. 1.
    pub correlation: f64,
    /// The common process starts at the value it exceeds with this probability; drawn when not given.
    pub start: Option<f64>,
}

impl Rain {
    /// `m` and `sigma` from pairs of a part of the time and the attenuation (dB) exceeded in it: the straight line of least
    /// squares of ln(attenuation) over the normal quantile, as in P.1853-1. None unless there are two different parts,
    /// between 0 and 1, and the line falls.
    ///
    /// The offset is not part of the fit, in the Recommendation either. Taken off later, it lowers every attenuation, so
    /// that a pair near the probability of rain is exceeded less often than given; [`Rain::exceedance`] gives how often.
    #[must_use]
    pub fn fitted(exceeded: &[(f64, f64)]) -> Option<(f64, f64)> {
        let points: Vec<(f64, f64)> = exceeded
            .iter()
            .map(|&(part, db)| (quantile(part), libm::log(db)))
            .collect();
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (mean_q, mean_ln) = (mean(|p| p.0), mean(|p| p.1));
        let spread: f64 = points.iter().map(|p| (p.0 - mean_q) * (p.0 - mean_q)).sum();
        let common: f64 = points
            .iter()
            .map(|p| (p.0 - mean_q) * (p.1 - mean_ln))
            .sum();
        let sigma = common / spread;
        (sigma.is_finite() && sigma > 0.0).then_some((mean_ln - sigma * mean_q, sigma))
    }

    /// The offset taken off every attenuation, dB.
    #[must_use]
    pub fn offset_db(&self) -> f64 {
        if self.probability >= 1.0 {
            return 0.0;
        }
        libm::exp(self.m + self.sigma * quantile(self.probability))
    }

    /// Part of the time, in the long run, in which the attenuation exceeds this one.
    #[must_use]
    pub fn exceedance(&self, attenuation_db: f64) -> f64 {
        if attenuation_db >= MOST_DB {
            return 0.0;
        }
        let all_db = attenuation_db + self.offset_db();
        tail((libm::log(all_db) - self.m) / self.sigma)
    }

    /// The attenuation at x, dB.
    fn attenuation_db(&self, x: f64, offset_db: f64) -> f64 {
        (libm::exp(self.m + self.sigma * x) - offset_db).clamp(0.0, MOST_DB)
    }
}

/// Probability that a normal number exceeds `x`.
fn tail(x: f64) -> f64 {
    0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The number that a normal number exceeds with a probability in 1e-15 .. 1 - 1e-15.
fn quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0_f64, 8.0_f64);
    // Halved to the last bit.
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if tail(middle) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Rain as it falls: attenuations at instants one step apart.
#[derive(Debug)]
pub(crate) struct Shower {
    rain: Rain,
    offset_db: f64,
    memory: f64,
    fresh: f64,
    common: f64,
    own: Vec<f64>,
    random: Random,
}

impl Shower {
    /// At its first instant.
    pub(crate) fn new(rain: &Rain, terminals: usize, step_ns: u64, mut random: Random) -> Shower {
        let memory = libm::exp(-(step_ns as f64) * 1e-9 / rain.correlation_time_s);
        let drawn = random.normal();
        Shower {
            offset_db: rain.offset_db(),
            memory,
            fresh: libm::sqrt(1.0 - memory * memory),
            common: rain.start.map_or(drawn, quantile),
            own: (0..terminals).map(|_| random.normal()).collect(),
            random,
            rain: rain.clone(),
        }
    }

    /// The next instant.
    pub(crate) fn step(&mut self) {
        let Shower {
            memory,
            fresh,
            common,
            own,
            random,
            ..
        } = self;
        for x in std::iter::once(common).chain(own) {
            *x = *memory * *x + *fresh * random.normal();
        }
    }

    /// Attenuation of a terminal now, dB.
    pub(crate) fn attenuation_db(&self, terminal: usize) -> f64 {
        let common = libm::sqrt(self.rain.correlation) * self.common;
        let own = libm::sqrt(1.0 - self.rain.correlation) * self.own[terminal];
        self.rain.attenuation_db(common + own, self.offset_db)
    }
}

/// Attenuation as it was recorded or computed elsewhere: values that hold until the next ones, the last for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct Attenuation {
    times_ns: Arc<[u64]>,
    /// A row per time, of one value for all terminals or one each.
    values_db: Arc<[f32]>,
}

impl Attenuation {
    /// `None` unless times rise from 0 and all rows have the same length.
    #[must_use]
    pub fn new(times_ns: Vec<u64>, values_db: Vec<f32>) -> Option<Attenuation> {
        let rising = times_ns.first() == Some(&0) && times_ns.windows(2).all(|t| t[0] < t[1]);
        let whole = rising && !values_db.is_empty() && values_db.len() % times_ns.len() == 0;
        whole.then(|| Attenuation {
            times_ns: times_ns.into(),
            values_db: values_db.into(),
        })
    }

    /// Values per time: 1, or one per terminal.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.values_db.len() / self.times_ns.len()
    }

    /// Attenuation of a terminal at a time, dB.
    #[must_use]
    pub fn at(&self, time_ns: u64, terminal: usize) -> f64 {
        let row = self.times_ns.partition_point(|t| *t <= time_ns) - 1;
        let columns = self.columns();
        f64::from(self.values_db[row * columns + terminal % columns])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 GHz at 38 degrees of elevation in the south-west of France, by ITU-R P.618-13 and P.837-7.
    const KA: [(f64, f64); 4] = [
        (0.0001, 14.487),
        (0.001, 5.038),
        (0.005, 1.956),
        (0.01, 1.235),
    ];

    fn ka() -> Rain {
        let (m, sigma) = Rain::fitted(&KA).unwrap();
        Rain {
            m,
            sigma,
            probability: 0.0483,
            correlation_time_s: 5000.0,
            correlation: 0.4,
            start: None,
        }
    }

    #[test]
    fn quantiles_of_tables() {
        for (probability, x) in [
            (0.5, 0.0),
            (0.158_655_253_931_457, 1.0),
            (0.05, 1.644_853_626_951_473),
            (0.01, 2.326_347_874_040_841),
            (0.0001, 3.719_016_485_455_709),
            (0.999, -3.090_232_306_167_814),
        ] {
            let found = quantile(probability);
            assert!((found - x).abs() < 1e-12, "{probability}: {found}");
        }
    }

    #[test]
    fn a_fit_goes_through_points_on_a_line() {
        // exp(-4 + 1.8 x) at x = 3.0902.., 2.3263.. and 1.6448..
        let points = [
            (0.001, 4.770_342_718_694),
            (0.01, 1.206_141_200_677),
            (0.05, 0.353_715_107_305),
        ];
        let (m, sigma) = Rain::fitted(&points).unwrap();
        assert!(
            (m + 4.0).abs() < 1e-9 && (sigma - 1.8).abs() < 1e-9,
            "{m} {sigma}"
        );
        // Computed apart with other quantiles and the normal equations.
        let (m, sigma) = Rain::fitted(&KA).unwrap();
        assert!((m + 3.889_435_467_766).abs() < 1e-9, "{m}");
        assert!((sigma - 1.770_064_152_798).abs() < 1e-9, "{sigma}");
        assert_eq!(Rain::fitted(&[(0.01, 3.0)]), None);
        assert_eq!(Rain::fitted(&[(0.01, 3.0), (0.01, 4.0)]), None);
        assert_eq!(Rain::fitted(&[(0.01, 3.0), (0.1, 4.0)]), None);
    }

    #[test]
    fn it_rains_as_often_as_asked() {
        let rain = ka();
        assert!((rain.exceedance(0.0) - 0.0483).abs() < 1e-12);
        assert!((rain.offset_db() - 0.387_376_343_378).abs() < 1e-9);
        assert!((rain.exceedance(5.0) - 8.198_449_373e-4).abs() < 1e-12);
        let always = Rain {
            probability: 1.0,
            ..ka()
        };
        assert_eq!(always.offset_db(), 0.0);
        assert_eq!(always.exceedance(0.0), 1.0);
    }

    /// Long series against the distribution they are to have.
    #[test]
    fn the_long_run_is_lognormal() {
        let rain = ka();
        // 600 terminals each with 20 memories of its own, four samples per memory.
        let independent = Rain {
            correlation: 0.0,
            ..rain.clone()
        };
        let mut shower = Shower::new(&independent, 600, 1_250_000_000_000, Random::new(3, 0));
        let mut samples_db = Vec::new();
        for _ in 0..80 {
            samples_db.extend((0..600).map(|k| shower.attenuation_db(k)));
            shower.step();
        }
        let n = samples_db.len() as f64;
        for db in [0.0, 0.2, 0.5, 1.0, 2.0, 4.0] {
            let found = samples_db.iter().filter(|a| **a > db).count() as f64 / n;
            let part = rain.exceedance(db);
            // Samples of a terminal are correlated with exp(-1/4): about 8 make one. Four standard errors of that.
            let slack = 4.0 * libm::sqrt(8.0 * part * (1.0 - part) / n);
            assert!((found - part).abs() < slack, "{db} dB: {found}, not {part}");
        }
    }

    /// x over time and over terminals: what is left of it after some steps, and what two terminals share.
    #[test]
    fn memory_and_company() {
        // With sigma 1, m 0 and no offset the logarithm of the attenuation is x.
        let rain = Rain {
            m: 0.0,
            sigma: 1.0,
            probability: 1.0,
            ..ka()
        };
        let (mut now, mut later, mut other, mut square) = (0.0, 0.0, 0.0, 0.0);
        let beams = 20_000;
        for seed in 0..beams {
            let mut shower = Shower::new(&rain, 2, 500_000_000_000, Random::new(seed, 0));
            let x = |shower: &Shower, k| libm::log(shower.attenuation_db(k));
            let (first, second) = (x(&shower, 0), x(&shower, 1));
            for _ in 0..4 {
                shower.step();
            }
            now += first;
            square += first * first;
            other += first * second;
            later += first * x(&shower, 0);
        }
        let n = beams as f64;
        // A product of normal numbers has a deviation of at most sqrt 2: four standard errors are 0.04.
        assert!((now / n).abs() < 0.03, "{}", now / n);
        assert!((square / n - 1.0).abs() < 0.04, "{}", square / n);
        assert!((other / n - 0.4).abs() < 0.04, "{}", other / n);
        // After 2000 s of a memory of 5000 s: exp(-0.4).
        assert!((later / n - 0.67032).abs() < 0.04, "{}", later / n);
    }

    #[test]
    fn weather_may_start_bad() {
        let rain = Rain {
            correlation: 1.0,
            start: Some(0.001),
            ..ka()
        };
        let shower = Shower::new(&rain, 3, 1_000_000, Random::new(1, 0));
        for terminal in 0..3 {
            let db = shower.attenuation_db(terminal);
            assert!((rain.exceedance(db) - 0.001).abs() < 1e-9, "{db}");
        }
    }

    #[test]
    fn no_fade_is_deeper_than_believed() {
        // Half of x gives more than e^10 dB, whatever its deviation.
        let rain = Rain {
            m: 10.0,
            sigma: 10.0,
            probability: 1.0,
            correlation: 0.0,
            ..ka()
        };
        let shower = Shower::new(&rain, 1000, 1_000_000, Random::new(1, 0));
        let all_db: Vec<f64> = (0..1000).map(|k| shower.attenuation_db(k)).collect();
        let deepest = all_db.iter().filter(|db| **db == 300.0).count();
        // x exceeds (ln 300 - 10) / 10 = -0.4296 with 0.6663: four deviations are 0.06.
        assert!((deepest as f64 / 1000.0 - 0.6663).abs() < 0.06, "{deepest}");
        assert!(all_db.iter().all(|db| (0.0..=300.0).contains(db)));
        assert!((rain.exceedance(299.999) - 0.6663).abs() < 1e-4);
        assert_eq!(rain.exceedance(300.0), 0.0);
    }

    #[test]
    fn recorded_values_hold() {
        let all = Attenuation::new(vec![0, 10, 20], vec![1.0, 2.5, 0.0]).unwrap();
        let found: Vec<f64> = [0, 9, 10, 19, 20, 1000].map(|t| all.at(t, 7)).to_vec();
        assert_eq!(found, [1.0, 1.0, 2.5, 2.5, 0.0, 0.0]);
        let each = Attenuation::new(vec![0, 10], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(
            (each.columns(), each.at(5, 1), each.at(10, 0)),
            (2, 2.0, 3.0)
        );
        assert_eq!(Attenuation::new(vec![], vec![]), None);
        assert_eq!(Attenuation::new(vec![5], vec![1.0]), None);
        assert_eq!(Attenuation::new(vec![0, 0], vec![1.0, 2.0]), None);
        assert_eq!(Attenuation::new(vec![0, 1], vec![1.0, 2.0, 3.0]), None);
    }
}
