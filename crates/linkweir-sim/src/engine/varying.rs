// SPDX-License-Identifier: BSD-3-Clause
//! A quantity of the link over time that mostly does not change.

use linkweir_config::signal::{Signal, Track};

#[derive(Debug)]
pub(super) enum Varying {
    Fixed(f64),
    Track(Track),
}

impl Varying {
    pub(super) fn new(signal: &Signal) -> Varying {
        match signal {
            Signal::Constant(value) => Varying::Fixed(*value),
            _ => Varying::Track(Track::new(signal)),
        }
    }

    #[inline]
    pub(super) fn value(&mut self, now_ns: u64) -> f64 {
        match self {
            Varying::Fixed(value) => *value,
            Varying::Track(track) => track.value(now_ns),
        }
    }
}

/// Whole nanoseconds.
#[inline]
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9 + 0.5) as u64
}
