// SPDX-License-Identifier: BSD-3-Clause
//! Loo's distribution (1985) of a signal's level, and a vehicle that drives from one such distribution to the next. Models of
//! shadowing give both to [`lms`](super::lms).

use crate::random::Random;

/// Loo's distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loo {
    /// Mean level of the direct ray, dB.
    pub alpha_db: f64,
    /// Its standard deviation, dB.
    pub psi_db: f64,
    /// Mean power of the scattered rays, dB.
    pub mp_db: f64,
}

/// A vehicle on its way through a model.
pub(super) trait Vehicle {
    /// The distribution where it is.
    fn loo(&self) -> Loo;
    /// Drives on.
    fn drive(&mut self, step_m: f64, random: &mut Random);
}
