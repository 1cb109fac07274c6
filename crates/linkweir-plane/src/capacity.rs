// SPDX-License-Identifier: BSD-3-Clause
//! What a link is known to carry. The configuration gives a capacity; a program, the control socket or the far end may report
//! another, and the interface below may be measured. Reports and measurements expire after `stale`, and then `floor` holds.

use crate::feedback::Steer;
use crate::pace::{Outages, Pace};
use crate::setup::Capacity;

/// Whether a rate differs from a known one by more than 1 %. Smaller changes are not passed on to the
/// scheduler.
#[must_use]
pub fn differs(bps: u64, known_bps: u64) -> bool {
    bps.abs_diff(known_bps) > known_bps / 100
}

/// The capacity of a link, as far as it is known, and its pace.
#[derive(Debug)]
pub(crate) struct KnownCapacity {
    /// The pace at the configured or reported capacity.
    pub(crate) pace: Pace,
    /// How long a report or a measurement holds, ns; none: for ever.
    stale_ns: Option<u64>,
    /// The capacity once it has expired, bit/s.
    floor_bps: u64,
    /// When the capacity expires, ns; none: never, or it has.
    until_ns: Option<u64>,
    /// Rate of the interface below, bit/s, and until when it holds, ns; none before the first measurement.
    below: Option<(u64, Option<u64>)>,
    /// Whether that rate is measured. The configured capacity then does not expire.
    measured: bool,
    /// Whether a capacity has expired since the last report.
    expired: bool,
    /// The capacity that feedback estimates, bit/s, while it sends at another pace; none: the pace is the capacity.
    estimated_bps: Option<u64>,
}

impl KnownCapacity {
    /// The configured capacity of a free link.
    pub(crate) fn new(now_ns: u64, capacity: &Capacity, measured: bool) -> KnownCapacity {
        let stale_ns = capacity.stale_ns.filter(|_| !measured);
        KnownCapacity {
            pace: Pace::new(&capacity.offered, now_ns),
            stale_ns: capacity.stale_ns,
            floor_bps: capacity.floor_bps,
            until_ns: stale_ns.map(|ns| now_ns + ns),
            below: None,
            measured,
            expired: false,
            estimated_bps: None,
        }
    }

    /// Expires a capacity and a measured rate whose time has come.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        if self.until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            self.until_ns = None;
            self.expired = true;
            self.estimated_bps = None;
            self.pace.set_rate(now_ns, self.floor_bps);
        }
        if let Some((bps, Some(until_ns))) = self.below {
            if until_ns <= now_ns {
                self.below = Some((bps.min(self.floor_bps), None));
            }
        }
    }

    /// Whether it has expired, so that the floor holds.
    pub(crate) fn has_expired(&mut self, now_ns: u64) -> bool {
        self.expire(now_ns);
        self.expired
    }

    /// This time, or when the capacity expires if that is sooner, ns.
    pub(crate) fn or_expiry_ns(&self, ns: u64) -> u64 {
        self.until_ns.map_or(ns, |until_ns| until_ns.min(ns))
    }

    /// Sets a reported capacity, bit/s.
    pub(crate) fn report(&mut self, now_ns: u64, bps: u64) {
        self.pace.set_rate(now_ns, bps);
        self.hold(now_ns);
    }

    /// What was reported holds from now on, for `stale`.
    fn hold(&mut self, now_ns: u64) {
        self.estimated_bps = None;
        self.expired = false;
        self.until_ns = self.stale_ns.map(|ns| now_ns + ns);
    }

    /// Sets the pace that feedback asks for and the capacity that it estimates. Only a report makes them hold for `stale`, or
    /// takes over from another source.
    pub(crate) fn steer(&mut self, now_ns: u64, steer: Steer) {
        if steer.reported {
            self.hold(now_ns);
        } else if self.has_expired(now_ns) || self.estimated_bps.is_none() {
            return;
        }
        self.pace.steer(now_ns, steer.pace_bps);
        self.estimated_bps = Some(steer.capacity_bps);
    }

    /// The capacity now, bit/s: the estimate where feedback has one, otherwise the pace.
    pub(crate) fn capacity_bps(&mut self, now_ns: u64) -> u64 {
        let bps = self.rate_bps(now_ns);
        self.estimated_bps.unwrap_or(bps)
    }

    /// Sets the measured rate of the interface below, bit/s.
    pub(crate) fn set_below(&mut self, now_ns: u64, bps: u64) {
        self.below = Some((bps, self.stale_ns.map(|ns| now_ns + ns)));
    }

    /// The measured rate of the interface below, bit/s; none before the first measurement.
    pub(crate) fn below_bps(&mut self, now_ns: u64) -> Option<u64> {
        self.expire(now_ns);
        self.below.map(|(bps, _)| bps)
    }

    /// Times without capacity, configured and reported. One that was reported may end when the report expires.
    pub(crate) fn outages(&mut self, now_ns: u64) -> Outages {
        self.expire(now_ns);
        let outages = self.pace.outages(now_ns);
        let expires_ns = self.until_ns.filter(|_| outages.lasts);
        let ends_ns = outages.ends_ns.into_iter().chain(expires_ns).min();
        Outages { ends_ns, ..outages }
    }

    /// The rate at which packets leave now, bit/s.
    pub(crate) fn rate_bps(&mut self, now_ns: u64) -> u64 {
        self.expire(now_ns);
        self.pace.rate_bps(now_ns)
    }

    /// The lower of the capacity and the measured rate of the interface below, bit/s.
    pub(crate) fn known_bps(&mut self, now_ns: u64) -> u64 {
        let bps = self.capacity_bps(now_ns);
        self.below.map_or(bps, |(below_bps, _)| below_bps.min(bps))
    }

    /// Whether [`KnownCapacity::change`] sets the capacity back to its configured value.
    pub(crate) fn restarts(&self, old: &Capacity, new: &Capacity) -> bool {
        let other_source =
            old.command != new.command || old.feedback.is_some() != new.feedback.is_some();
        old.offered != new.offered
            || other_source
            // Otherwise the floor would hold for ever.
            || (self.at_floor(old) && new.stale_ns.is_none())
    }

    /// Whether the capacity has expired, so that the floor holds.
    fn at_floor(&self, capacity: &Capacity) -> bool {
        capacity.stale_ns.is_some() && self.until_ns.is_none() && !self.measured
    }

    /// Changes the configuration. A reported capacity survives and expires after the new `stale`, counted from its report.
    pub(crate) fn change(&mut self, now_ns: u64, old: &Capacity, new: &Capacity) {
        let (restarts, at_floor) = (self.restarts(old, new), self.at_floor(old));
        self.stale_ns = new.stale_ns;
        self.floor_bps = new.floor_bps;
        self.expired &= !restarts && new.stale_ns.is_some();
        if restarts {
            // The packet on the link gets 1 ms to finish: at the old rate it might take for ever.
            let free_ns = self.pace.free_ns();
            let at_ns = now_ns.max(free_ns.min(now_ns + 1_000_000));
            self.pace.restart(now_ns, &new.offered, at_ns);
            self.estimated_bps = None;
            let stale_ns = new.stale_ns.filter(|_| !self.measured);
            self.until_ns = stale_ns.map(|ns| now_ns + ns);
        } else if at_floor && old.floor_bps != new.floor_bps {
            self.pace.set_rate(now_ns, new.floor_bps);
        } else if let (Some(until_ns), Some(old_ns)) = (self.until_ns, old.stale_ns) {
            let reported_ns = until_ns.saturating_sub(old_ns);
            self.until_ns = new.stale_ns.map(|ns| reported_ns + ns);
        } else if old.stale_ns.is_none() && !self.measured {
            self.until_ns = new.stale_ns.map(|ns| now_ns + ns);
        }
        if let (Some((_, until_ns)), None) = (&mut self.below, new.stale_ns) {
            *until_ns = None;
        }
    }
}
