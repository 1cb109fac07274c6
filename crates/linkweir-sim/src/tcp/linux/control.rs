// SPDX-License-Identifier: BSD-3-Clause
//! Congestion control of the `Linux` profile: what differs between the algorithms.

use super::bbr::Bbr;
use super::clock::Clock;
use super::cubic::Cubic;
use super::dctcp::Dctcp;
use super::prague::Prague;
use crate::tcp::config::{Algorithm, Config};

#[derive(Clone, Debug)]
pub enum Control {
    Reno,
    Cubic(Cubic),
    Bbr(Box<Bbr>),
    Prague(Box<Prague>),
    Dctcp(Dctcp),
}

/// What the window shrinks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Mark,
    Loss,
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
            Algorithm::Prague => Control::Prague(Box::new(Prague::new(config.mss_bytes))),
            Algorithm::Dctcp => Control::Dctcp(Dctcp::new()),
        }
    }

    /// It sets window and pace itself, in all states.
    pub fn sets_window(&self) -> bool {
        matches!(self, Control::Bbr(_) | Control::Prague(_))
    }
}
