// SPDX-License-Identifier: BSD-3-Clause
//! Land-mobile-satellite channel: a vehicle drives through clearings and shadows.
//!
//! Perez-Fontan et al. 1998 and 2001: three states (line of sight, moderate and deep shadowing) follow one another as a
//! Markov chain over the distance driven. In each state the signal has Loo's distribution (1985): a direct ray whose
//! level is normal in dB, with mean `alpha_db` and deviation `psi_db`, and scattered rays with the mean power `mp_db`, all
//! relative to the unobstructed line of sight.
//!
//! A state lasts its frame and then draws the next one, which may be itself. The direct ray's level is a first-order
//! autoregression over distance. Scattered rays come from 20 points around the vehicle, each with a Doppler shift of its
//! own, and beat with the direct ray; their sum is close to complex Gaussian. First-order statistics do not depend on
//! frames, correlation length or speed; how long fades last does.

use std::f64::consts::TAU;

use crate::random::Random;

use super::fading::Fading;

/// Loo's distribution in one state, and how far the vehicle drives before the next draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Mean level of the direct ray, dB.
    pub alpha_db: f64,
    /// Its standard deviation, dB.
    pub psi_db: f64,
    /// Mean power of the scattered rays, dB.
    pub mp_db: f64,
    /// Distance between draws, m.
    pub frame_m: f64,
}

/// A drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Lms {
    /// Line of sight, moderate and deep shadowing.
    pub states: [State; 3],
    /// Probability of each state.
    pub stationary: [f64; 3],
    /// Probability of the next state, a row per present one.
    pub transitions: [[f64; 3]; 3],
    /// Distance over which the direct ray's level loses its memory (1/e), m.
    pub correlation_m: f64,
    /// Carrier, Hz.
    pub carrier_hz: f64,
    /// Speed of the vehicle, m/s.
    pub speed_m_s: f64,
    /// Elevation of the satellite, degrees; it shifts the direct ray's frequency.
    pub elevation_deg: f64,
    /// Angle between the drive and the satellite on the ground, degrees.
    pub azimuth_deg: f64,
}

/// Where the vehicle drives, at 40 degrees of elevation in the S band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Wooded country with clearings: the tables of Perez-Fontan et al. for intermediate tree shadowing.
    IntermediateTrees,
    /// Open country.
    Open,
    /// Suburbs.
    Suburban,
    /// Streets of a town.
    Urban,
}

impl Environment {
    #[allow(clippy::approx_constant)] // 3.14 dB is a deviation
    fn loo(self) -> [(f64, f64, f64); 3] {
        match self {
            Environment::IntermediateTrees => {
                [(-0.4, 1.5, -13.2), (-8.2, 3.9, -12.7), (-17.0, 3.14, -10.0)]
            }
            Environment::Open => [(0.1, 0.37, -22.0), (-1.0, 0.5, -22.0), (-2.25, 0.13, -21.2)],
            Environment::Suburban => [(-1.0, 0.5, -13.0), (-3.7, 0.98, -12.2), (-15.0, 5.9, -13.0)],
            Environment::Urban => [(-0.3, 0.73, -15.9), (-8.0, 4.5, -19.2), (-24.4, 4.5, -19.0)],
        }
    }
}

const LIGHT_M_S: f64 = 299_792_458.0;
const SCATTERERS: usize = 20;

impl Lms {
    /// An environment at 60 km/h and 2.2 GHz. The chain and the frames are those of intermediate tree shadowing.
    #[must_use]
    pub fn new(environment: Environment) -> Lms {
        let frames_m = [6.3, 6.3, 4.5];
        let loo = environment.loo();
        Lms {
            states: std::array::from_fn(|i| State {
                alpha_db: loo[i].0,
                psi_db: loo[i].1,
                mp_db: loo[i].2,
                frame_m: frames_m[i],
            }),
            stationary: [0.3929, 0.3571, 0.25],
            transitions: [
                [0.7193, 0.1865, 0.0942],
                [0.1848, 0.7269, 0.0883],
                [0.1771, 0.0971, 0.7258],
            ],
            correlation_m: 1.5,
            carrier_hz: 2.2e9,
            speed_m_s: 60.0 / 3.6,
            elevation_deg: 40.0,
            azimuth_deg: 0.0,
        }
    }

    /// Attenuation of a drive of `samples` steps of `step_ns`; the same seed gives the same bytes on any machine.
    ///
    /// # Panics
    /// When there are no samples or the step is 0.
    #[must_use]
    pub fn generate(&self, seed: u64, step_ns: u64, samples: usize) -> Fading {
        let mut random = Random::new(seed, u64::MAX);
        let step_s = step_ns as f64 * 1e-9;
        let step_m = self.speed_m_s * step_s;
        let doppler_hz = self.speed_m_s * self.carrier_hz / LIGHT_M_S;
        let degree = TAU / 360.0;

        let memory = libm::exp(-step_m / self.correlation_m);
        let fresh = libm::sqrt(1.0 - memory * memory);
        let mut level = random.normal();
        let direct_hz = doppler_hz
            * libm::cos(self.elevation_deg * degree)
            * libm::cos(self.azimuth_deg * degree);
        let mut direct = Rotor::new(0.0, TAU * direct_hz * step_s);
        let mut scattered: [Rotor; SCATTERERS] = std::array::from_fn(|_| {
            let phase = TAU * random.unit();
            Rotor::new(
                phase,
                TAU * doppler_hz * libm::cos(TAU * random.unit()) * step_s,
            )
        });

        let mut state = drawn(&self.stationary, random.unit());
        let mut left_m = self.states[state].frame_m;
        let spread = libm::sqrt(1.0 / SCATTERERS as f64);
        let samples_db = (0..samples)
            .map(|_| {
                let now = &self.states[state];
                let ray = amplitude(now.alpha_db + now.psi_db * level);
                let scatter = amplitude(now.mp_db) * spread;
                let (mut re, mut im) = (ray * direct.re, ray * direct.im);
                for rotor in &mut scattered {
                    re += scatter * rotor.re;
                    im += scatter * rotor.im;
                    rotor.turn();
                }
                direct.turn();
                level = memory * level + fresh * random.normal();
                left_m -= step_m;
                while left_m <= 0.0 {
                    state = drawn(&self.transitions[state], random.unit());
                    left_m += self.states[state].frame_m;
                }
                (10.0 * libm::log10((re * re + im * im).max(1e-30))) as f32
            })
            .collect();
        Fading::new(step_ns, samples_db).expect("a step and samples")
    }
}

/// An amplitude from dB.
fn amplitude(db: f64) -> f64 {
    libm::exp(db * (std::f64::consts::LN_10 / 20.0))
}

/// The index that a uniform number selects.
fn drawn(probabilities: &[f64; 3], uniform: f64) -> usize {
    if uniform < probabilities[0] {
        0
    } else if uniform < probabilities[0] + probabilities[1] {
        1
    } else {
        2
    }
}

/// `e^(j phase)`, turned by the same angle at every step.
struct Rotor {
    re: f64,
    im: f64,
    cos: f64,
    sin: f64,
}

impl Rotor {
    fn new(phase: f64, angle: f64) -> Rotor {
        Rotor {
            re: libm::cos(phase),
            im: libm::sin(phase),
            cos: libm::cos(angle),
            sin: libm::sin(angle),
        }
    }

    /// One step; the length is pulled back to 1, so that it does not drift in a long drive.
    fn turn(&mut self) {
        let re = self.re * self.cos - self.im * self.sin;
        let im = self.re * self.sin + self.im * self.cos;
        let pull = 1.5 - 0.5 * (re * re + im * im);
        self.re = re * pull;
        self.im = im * pull;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the samples that are at least so strong.
    fn part_at_least(fadings: &[Fading], db: f64) -> f64 {
        let all: usize = fadings.iter().map(|f| f.samples_db().len()).sum();
        let strong: usize = fadings
            .iter()
            .map(|f| {
                f.samples_db()
                    .iter()
                    .filter(|a| f64::from(**a) >= db)
                    .count()
            })
            .sum();
        strong as f64 / all as f64
    }

    #[test]
    fn the_chain_is_stationary() {
        let lms = Lms::new(Environment::IntermediateTrees);
        assert!((lms.stationary.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for to in 0..3 {
            let after: f64 = (0..3)
                .map(|from| lms.stationary[from] * lms.transitions[from][to])
                .sum();
            assert!((after - lms.stationary[to]).abs() < 3e-4, "{to}: {after}");
        }
    }

    /// The quantiles of the channel that Tauran et al. designed their code lengths on, by which it was recognised: this one
    /// at 40 degrees, each state weighted with how long its frames last.
    #[test]
    fn quantiles_at_forty_degrees() {
        let lms = Lms::new(Environment::IntermediateTrees);
        let fadings: Vec<Fading> = (0..12)
            .map(|seed| lms.generate(seed, 4_000_000, 150_000))
            .collect();
        for (db, part) in [
            (-2.87, 0.432),
            (-3.51, 0.469),
            (-4.00, 0.496),
            (-4.36, 0.515),
            (-5.06, 0.552),
            (-5.62, 0.581),
            (-6.16, 0.609),
        ] {
            let found = part_at_least(&fadings, db);
            // 7200 s at 16.7 m/s are 19 000 frames; the state persists for about 3.6 of them: 3 sd of the mean is 0.016.
            assert!((found - part).abs() < 0.016, "{db} dB: {found}, not {part}");
        }
    }

    #[test]
    fn local_mean_keeps_its_memory() {
        let fading = Lms::new(Environment::IntermediateTrees).generate(3, 1_000_000, 600_000);
        let means: Vec<f64> = fading
            .samples_db()
            .chunks_exact(25)
            .map(|c| c.iter().map(|a| f64::from(*a)).sum::<f64>() / 25.0)
            .collect();
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let at = |lag: usize| {
            means
                .iter()
                .zip(&means[lag..])
                .map(|(a, b)| (a - mean) * (b - mean))
                .sum::<f64>()
                / (means.len() - lag) as f64
        };
        let correlation = |lag| at(lag) / at(0);
        assert!(correlation(1) > 0.8 && correlation(4) > 0.5 && correlation(40) < 0.4);
        assert!(correlation(1) > correlation(4) && correlation(4) > correlation(16));
    }

    #[test]
    fn same_seed_same_bytes() {
        let lms = Lms::new(Environment::Suburban);
        assert_eq!(
            lms.generate(5, 1_000_000, 1000),
            lms.generate(5, 1_000_000, 1000)
        );
        assert_ne!(
            lms.generate(5, 1_000_000, 1000),
            lms.generate(6, 1_000_000, 1000)
        );
    }
}
