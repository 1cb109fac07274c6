// SPDX-License-Identifier: BSD-3-Clause
//! Congestion control of the `Linux` profile: what differs between Reno, CUBIC and BBR.

use super::bbr::Bbr;
use super::clock::Clock;
use super::cubic::Cubic;
use crate::tcp::config::{Algorithm, Config};

#[derive(Clone, Debug)]
pub enum Control {
    Reno,
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

impl Control {
    pub fn new(config: &Config, clock: Clock) -> Control {
        match config.algorithm {
            Algorithm::Reno | Algorithm::NewReno => Control::Reno,
            Algorithm::Cubic => Control::Cubic(Cubic::new(clock, config.hystart)),
            Algorithm::Bbr => Control::Bbr(Box::new(Bbr::new(
                clock,
                u64::from(config.mss_bytes),
                config.random,
            ))),
        }
    }

    /// It sets window and rate itself, in all states.
    pub fn is_bbr(&self) -> bool {
        matches!(self, Control::Bbr(_))
    }
}
