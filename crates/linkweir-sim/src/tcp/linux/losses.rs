// SPDX-License-Identifier: BSD-3-Clause
//! Which segments RACK holds for lost.

use super::flight::EVER;
use super::sender::{Sender, State};

impl Sender {
    /// A transmission of `sent_ns` was delivered, of the segment before `end`.
    #[inline]
    pub(super) fn advance_rack(&mut self, now_ns: u64, marks: u8, end: u64, sent_ns: u64) {
        let rtt_ns = now_ns - sent_ns;
        if marks & EVER != 0 && rtt_ns < self.rtt.least_ns() {
            return; // the original, rather than the retransmission
        }
        self.rack.has_advanced = true;
        self.rack.rtt_ns = rtt_ns;
        if (sent_ns, end) > (self.rack.sent_ns, self.rack.end) {
            self.rack.sent_ns = sent_ns;
            self.rack.end = end;
        }
    }

    fn reordering_window_ns(&self) -> u64 {
        if self.reorderings_seen == 0
            && (self.state >= State::Recovery || self.flight.sacked() >= self.reordering)
        {
            return 0;
        }
        (self.rtt.least_ns() / 4)
            .saturating_mul(self.rack.steps)
            .min(self.rtt.srtt_ns())
    }

    /// Marks what is lost; returns how long the next segment may still stay out, if one may.
    pub(super) fn detect_losses(&mut self, now_ns: u64) -> Option<u64> {
        let window_ns = self.reordering_window_ns();
        let rack = &self.rack;
        let mut wait_ns = 0;
        self.flight
            .each_sent_before((rack.sent_ns, rack.end), |sent_ns| {
                let remaining_ns = rack.remaining_ns(now_ns, sent_ns, window_ns);
                wait_ns = wait_ns.max(remaining_ns);
                remaining_ns <= 0
            });
        (wait_ns > 0).then_some(wait_ns as u64)
    }
}
