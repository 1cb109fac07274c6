// SPDX-License-Identifier: BSD-3-Clause
//! Land-mobile-satellite channel: a vehicle drives through clearings and shadows.
//!
//! At every place the signal has Loo's distribution (1985): a direct ray whose level is normal in dB, and scattered rays, all
//! relative to the unobstructed line of sight. A model gives the distribution from place to place: [`perez_fontan`]
//! or [`p681`].
//!
//! The direct ray's level is a first-order autoregression over distance. Scattered rays come from 20 points around the
//! vehicle, each with a Doppler shift of its own, and beat with the direct ray; their sum is close to complex Gaussian.
//! A drive begins in the stationary state, but for the first state of [`perez_fontan`]. First-order statistics do not depend
//! on correlation length, carrier or speed; the duration of fades does.
//!
//! [`perez_fontan`]: super::perez_fontan
//! [`p681`]: super::p681

use std::f64::consts::TAU;

use crate::random::Random;

use super::fading::Fading;
use super::loo::Vehicle;
use super::p681::P681;
use super::perez_fontan::{Environment, PerezFontan};
use super::LIGHT_M_S;

/// The surroundings of the vehicle.
#[derive(Clone, Debug, PartialEq)]
pub enum Shadowing {
    /// Three states that follow one another as a Markov chain.
    PerezFontan(PerezFontan),
    /// Two states that alternate, with new parameters drawn each time.
    P681(P681),
}

/// A drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Lms {
    /// Loo's distribution from place to place.
    pub shadowing: Shadowing,
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

const SCATTERERS: usize = 20;

impl Lms {
    /// The model of Perez-Fontan et al. for an environment, at 40 degrees, 60 km/h and 2.2 GHz.
    #[must_use]
    pub fn new(environment: Environment) -> Lms {
        Lms::driving(
            Shadowing::PerezFontan(PerezFontan::new(environment)),
            1.5,
            40.0,
        )
    }

    /// The model of ITU-R P.681 for rural wooded country at 60 km/h and 2.2 GHz; `None` for an elevation in degrees that it
    /// has no parameters for, see [`P681::ELEVATIONS_DEG`](super::p681::P681::ELEVATIONS_DEG).
    #[must_use]
    pub fn rural_wooded(elevation_deg: u32) -> Option<Lms> {
        let (p681, correlation_m) = P681::rural_wooded(elevation_deg)?;
        let shadowing = Shadowing::P681(p681);
        Some(Lms::driving(shadowing, correlation_m, elevation_deg.into()))
    }

    fn driving(shadowing: Shadowing, correlation_m: f64, elevation_deg: f64) -> Lms {
        Lms {
            shadowing,
            correlation_m,
            carrier_hz: 2.2e9,
            speed_m_s: 60.0 / 3.6,
            elevation_deg,
            azimuth_deg: 0.0,
        }
    }

    /// Attenuation of a drive of `samples` steps of `step_ns`; the same seed gives the same bytes on any machine.
    ///
    /// # Panics
    /// When there are no samples or the step is 0.
    #[must_use]
    pub fn generate(&self, seed: u64, step_ns: u64, samples: usize) -> Fading {
        let drive = (seed, step_ns, samples);
        match &self.shadowing {
            Shadowing::PerezFontan(model) => self.along(drive, |random| model.vehicle(random)),
            Shadowing::P681(model) => self.along(drive, |random| model.vehicle(random)),
        }
    }

    fn along<V: Vehicle>(
        &self,
        (seed, step_ns, samples): (u64, u64, usize),
        vehicle: impl FnOnce(&mut Random) -> V,
    ) -> Fading {
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

        let mut vehicle = vehicle(&mut random);
        let spread = libm::sqrt(1.0 / SCATTERERS as f64);
        let samples_db = (0..samples)
            .map(|_| {
                let now = vehicle.loo();
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
                vehicle.drive(step_m, &mut random);
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
pub(super) mod tests {
    use super::*;
    use crate::satellite::loo::Loo;

    /// Part of the samples that are at least this strong.
    pub(in crate::satellite) fn part_at_least(fadings: &[Fading], db: f64) -> f64 {
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

    /// Scattered rays alone: twice as many waves in the same time are twice as many fades.
    #[test]
    fn fades_come_as_often_as_waves() {
        let mut scattered = PerezFontan::new(Environment::Urban);
        for state in &mut scattered.states {
            state.loo = Loo {
                alpha_db: -80.0,
                psi_db: 0.0,
                mp_db: 0.0,
            };
        }
        let fades = |carrier_hz: f64| {
            let lms = Lms {
                shadowing: Shadowing::PerezFontan(scattered.clone()),
                carrier_hz,
                ..Lms::new(Environment::Urban)
            };
            let fading = lms.generate(7, 200_000, 500_000);
            let pairs = fading.samples_db().windows(2);
            pairs
                .filter(|pair| pair[0] >= -3.0 && pair[1] < -3.0)
                .count() as f64
        };
        // 7 000 to 10 000 fades, and twice as many: over twelve seeds the ratio has a deviation of 0.007.
        let ratio = fades(3.0e9) / fades(1.5e9);
        assert!((ratio - 2.0).abs() < 0.021, "{ratio}");
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
