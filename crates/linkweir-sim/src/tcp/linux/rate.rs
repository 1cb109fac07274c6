// SPDX-License-Identifier: BSD-3-Clause
//! The delivery rate that an acknowledgement shows (Cheng and Cardwell, draft-cheng-iccrg-delivery-rate-estimation): the
//! segments delivered between the sending of the newest segment acknowledged and now, over the longer of the time it took
//! to send them and the time it took to acknowledge them.

use super::flight::Sent;

/// What an acknowledgement shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Segments delivered when the newest segment acknowledged was sent; 0 if nothing was.
    pub prior_delivered: u64,
    prior_ns: u64,
    last: u64,
    /// The sending of these segments took so long, then: sending or acknowledging.
    pub interval_ns: u64,
    pub is_app_limited: bool,
    /// Segments delivered in the interval; `None` if no rate can be told.
    pub delivered: Option<u64>,
    /// Segments that this acknowledgement reports for the first time.
    pub acked: u64,
    /// Segments that it showed to be lost.
    pub losses: u64,
    /// RTT of the newest segment acknowledged, if it is known.
    pub rtt_ns: Option<u64>,
    /// Segments in the network before.
    pub prior_in_flight: u64,
}

/// The connection's counters for delivery rates.
#[derive(Clone, Debug, Default)]
pub struct Delivery {
    /// Segments delivered ever.
    pub delivered: u64,
    pub delivered_ns: u64,
    /// When the segment was sent that was delivered last.
    first_ns: u64,
    /// The application limits the rate until so many are delivered; 0: it does not.
    app_limited: u64,
}

impl Delivery {
    /// The record of a transmission now.
    #[inline]
    pub fn sent(&mut self, now_ns: u64, nothing_outstanding: bool) -> Sent {
        if nothing_outstanding {
            self.first_ns = now_ns;
            self.delivered_ns = now_ns;
        }
        Sent::new(
            now_ns,
            self.delivered,
            // 0 means counted; at time 0 a nanosecond does not matter.
            self.delivered_ns.max(1),
            self.first_ns,
            self.app_limited > 0,
        )
    }

    /// A segment was delivered whose last transmission was `sent`.
    #[inline]
    pub fn arrived(&mut self, sample: &mut Sample, sequence: u64, sent: &Sent) {
        if sent.delivered_ns == 0 {
            return;
        }
        let newest = sample.prior_ns == 0
            || sent.at_ns > self.first_ns
            || (sent.at_ns == self.first_ns && sequence > sample.last);
        if newest {
            sample.prior_delivered = sent.delivered();
            sample.prior_ns = sent.delivered_ns;
            sample.is_app_limited = sent.is_app_limited();
            sample.last = sequence;
            self.first_ns = sent.at_ns;
            sample.interval_ns = sent.at_ns.saturating_sub(sent.first_ns);
        }
    }

    /// Completes the sample of an acknowledgement.
    #[inline]
    pub fn complete(&mut self, now_ns: u64, sample: &mut Sample, least_rtt_ns: u64) {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if sample.acked > 0 {
            self.delivered_ns = now_ns;
        }
        if sample.prior_ns == 0 {
            return;
        }
        sample.interval_ns = sample.interval_ns.max(now_ns - sample.prior_ns.min(now_ns));
        if sample.interval_ns >= least_rtt_ns {
            sample.delivered = Some(self.delivered - sample.prior_delivered);
        }
    }

    /// The application has nothing more to send, with so many segments in the network.
    pub fn limit(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }
}
