// SPDX-License-Identifier: BSD-3-Clause
//! The one timer of a sender, and what it is for at the moment.

/// What the timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    None,
    Retransmission,
    Probe,
    Reordering,
}

/// See the module; `u64::MAX`: it does not run.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    pub purpose: Purpose,
    pub fires_ns: u64,
}

impl Default for Timer {
    fn default() -> Timer {
        Timer {
            purpose: Purpose::None,
            fires_ns: u64::MAX,
        }
    }
}

impl Timer {
    pub fn stop(&mut self) {
        *self = Timer::default();
    }

    /// The timer runs on, but a new timeout counts from now.
    pub fn forget(&mut self) {
        self.purpose = Purpose::None;
    }

    pub fn is_probe(&self) -> bool {
        self.purpose == Purpose::Probe
    }

    /// A reordering window has ended, and nothing runs since.
    pub fn is_over(&self) -> bool {
        self.purpose == Purpose::Reordering && self.fires_ns == u64::MAX
    }

    pub fn waits_for_reordering(&self) -> bool {
        self.purpose == Purpose::Reordering
    }
}
