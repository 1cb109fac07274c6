// SPDX-License-Identifier: BSD-3-Clause
//! The delay from a flow's source to its queue: fixed, or that of the path through a constellation at the time.

use linkweir_config::signal::Track;

use crate::experiment::Delays;

use super::varying::nanoseconds;

#[derive(Clone, Debug)]
pub(super) enum Access {
    Fixed(u64),
    Varying(Box<Behind>),
}

/// A delay over time; flows see it with different lags.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    delay: Track,
    start_ns: u64,
    lag_ns: u64,
    before_s: f64,
}

impl Behind {
    /// For flow 0.
    pub(super) fn new(delays: &Delays) -> Behind {
        Behind {
            delay: Track::new(&delays.to_satellite_s),
            start_ns: delays.start_ns,
            lag_ns: 0,
            before_s: delays.before_s,
        }
    }

    pub(super) fn lag(&self, lag_ns: u64) -> Box<Behind> {
        Box::new(Behind {
            lag_ns,
            ..self.clone()
        })
    }

    /// Delay of a packet that starts now, ns.
    pub(super) fn delay_ns(&mut self, now_ns: u64) -> u64 {
        let time_ns = now_ns.saturating_add(self.start_ns);
        nanoseconds(match time_ns.checked_sub(self.lag_ns) {
            Some(time_ns) => self.delay.value(time_ns),
            None => self.before_s,
        })
    }
}

impl Access {
    /// Delay of a packet that starts now, ns.
    #[inline]
    pub(super) fn delay_ns(&mut self, now_ns: u64) -> u64 {
        match self {
            Access::Fixed(delay_ns) => *delay_ns,
            Access::Varying(behind) => behind.delay_ns(now_ns),
        }
    }

    /// The delay, if it never changes.
    pub(super) fn fixed_ns(&self) -> Option<u64> {
        match self {
            Access::Fixed(delay_ns) => Some(*delay_ns),
            Access::Varying(_) => None,
        }
    }
}
