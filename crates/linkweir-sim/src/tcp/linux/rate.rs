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
    /// Segments delivered in the interval; `None` if the acknowledgement gives no delivery rate.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// An acknowledgement of these transmissions.
    fn acknowledge(delivery: &mut Delivery, now_ns: u64, sent: &[(u64, Sent)]) -> Sample {
        let mut sample = Sample::default();
        for (sequence, sent) in sent {
            delivery.delivered += 1;
            delivery.arrived(&mut sample, *sequence, sent);
        }
        sample.acked = sent.len() as u64;
        delivery.complete(now_ns, &mut sample, 100 * MS);
        sample
    }

    #[test]
    fn the_interval_is_the_longer_of_sending_and_acknowledging() {
        let mut delivery = Delivery::default();
        // Ten segments leave within 90 ms, and are acknowledged in two groups, 100 and 105 ms after the first.
        let sent: Vec<(u64, Sent)> = (0..10)
            .map(|n| (n, delivery.sent((1000 + 10 * n) * MS, n == 0)))
            .collect();
        let first = acknowledge(&mut delivery, 1100 * MS, &sent[..5]);
        // Five in 100 ms; they took 40 ms to send.
        assert_eq!((first.delivered, first.interval_ns), (Some(5), 100 * MS));
        assert_eq!((first.prior_delivered, first.is_app_limited), (0, false));
        let later = delivery.sent(1100 * MS, false);
        let second = acknowledge(&mut delivery, 1105 * MS, &sent[5..]);
        assert_eq!((second.delivered, second.interval_ns), (Some(10), 105 * MS));
        // Of this one, the window of sending began with the newest segment of the first group, at 1040 ms.
        let third = acknowledge(&mut delivery, 1240 * MS, &[(10, later)]);
        assert_eq!((third.delivered, third.prior_delivered), (Some(6), 5));
        assert_eq!(third.interval_ns, 140 * MS);
    }

    #[test]
    fn sending_may_take_longer_than_acknowledging() {
        let mut delivery = Delivery::default();
        let first = delivery.sent(0, true);
        acknowledge(&mut delivery, 100 * MS, &[(0, first)]);
        delivery.first_ns = 0;
        let second = delivery.sent(300 * MS, false);
        let sample = acknowledge(&mut delivery, 400 * MS, &[(1, second)]);
        // Sent 300 ms after the segment whose delivery began the window; acknowledged 300 ms after that.
        assert_eq!((sample.delivered, sample.interval_ns), (Some(1), 300 * MS));
    }

    #[test]
    fn an_interval_below_the_least_rtt_tells_no_rate() {
        let mut delivery = Delivery::default();
        let sent = delivery.sent(10 * MS, true);
        assert_eq!(
            acknowledge(&mut delivery, 109 * MS, &[(0, sent)]).delivered,
            None
        );
        let sent = delivery.sent(200 * MS, true);
        assert_eq!(
            acknowledge(&mut delivery, 300 * MS, &[(1, sent)]).delivered,
            Some(1)
        );
        // Nothing was acknowledged.
        assert_eq!(acknowledge(&mut delivery, 500 * MS, &[]).delivered, None);
    }

    #[test]
    fn samples_are_marked_until_what_was_in_the_network_is_delivered() {
        let mut delivery = Delivery::default();
        delivery.limit(0);
        assert!(delivery.is_app_limited(), "also with nothing delivered yet");
        let sent = [0, 1].map(|n| (n, delivery.sent(0, n == 0)));
        delivery.limit(2);
        let later = delivery.sent(10 * MS, false);
        assert!(acknowledge(&mut delivery, 100 * MS, &sent).is_app_limited);
        assert!(delivery.is_app_limited());
        acknowledge(&mut delivery, 110 * MS, &[(2, later)]);
        assert!(!delivery.is_app_limited());
        let sent = delivery.sent(120 * MS, true);
        assert!(!acknowledge(&mut delivery, 220 * MS, &[(3, sent)]).is_app_limited);
    }
}
