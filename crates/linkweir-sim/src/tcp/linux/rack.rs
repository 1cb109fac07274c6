// SPDX-License-Identifier: BSD-3-Clause
//! RACK (RFC 8985, section 6): a segment is lost if one sent after it was delivered and its own round trip is over, by more
//! than the reordering window once reordering was seen.

/// Recoveries for which a widened reordering window stays.
const PERSIST: u32 = 16;

/// The newest delivered transmission, and the reordering window.
#[derive(Clone, Debug)]
pub struct Rack {
    pub sent_ns: u64,
    pub end: u64,
    pub rtt_ns: u64,
    /// There is news since losses were last looked for.
    pub has_advanced: bool,
    /// Width of the reordering window, quarters of the least RTT.
    pub steps: u64,
    persist: u32,
    dsack_seen: bool,
    last_delivered: u64,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            sent_ns: 0,
            end: 0,
            rtt_ns: 0,
            has_advanced: false,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            last_delivered: 0,
        }
    }
}

impl Rack {
    /// A retransmission arrived that was not needed, and reordering was seen before.
    pub fn see_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// A recovery was undone because of D-SACKs.
    pub fn persist_more(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// A recovery ended without being undone.
    pub fn persist_less(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// How long a transmission of `sent_ns` may still stay out at `now_ns`; 0 or less: it is over.
    pub fn remaining_ns(&self, now_ns: u64, sent_ns: u64, window_ns: u64) -> i64 {
        (self.rtt_ns + window_ns) as i64 - (now_ns - sent_ns) as i64
    }

    /// Widens the window when spurious retransmissions were seen, at most once per round trip.
    pub fn adapt(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered == 0 {
            return;
        }
        if prior_delivered < self.last_delivered {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.steps = (self.steps + 1).min(255);
            self.dsack_seen = false;
            self.last_delivered = delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8985, section 6.2, step 4.
    #[test]
    fn the_window_widens_once_per_round_trip_and_stays_for_sixteen_recoveries() {
        let mut rack = Rack::default();
        rack.adapt(5, 10);
        assert_eq!(rack.steps, 1);
        rack.see_dsack();
        rack.adapt(0, 10);
        assert_eq!(rack.steps, 1, "nothing was delivered");
        rack.adapt(5, 10);
        assert_eq!(rack.steps, 2);
        // 9 were delivered when the newest segment was sent: it is of the same round trip.
        rack.see_dsack();
        rack.adapt(9, 20);
        assert_eq!(rack.steps, 2);
        rack.see_dsack();
        rack.adapt(10, 20);
        assert_eq!(rack.steps, 3);
        for _ in 0..15 {
            rack.persist_less();
            rack.adapt(30, 40);
        }
        assert_eq!(rack.steps, 3);
        rack.persist_less();
        rack.adapt(30, 40);
        assert_eq!(rack.steps, 1);
        for n in 1..=300 {
            rack.see_dsack();
            rack.adapt(100 * n, 100 * n);
        }
        assert_eq!(rack.steps, 255);
    }

    #[test]
    fn a_transmission_is_over_after_the_round_trip_and_the_window() {
        let rack = Rack {
            rtt_ns: 100,
            ..Rack::default()
        };
        let remaining = [1100, 1124, 1125, 1200].map(|now| rack.remaining_ns(now, 1000, 25));
        assert_eq!(remaining, [25, 1, 0, -75]);
    }
}
