// SPDX-License-Identifier: BSD-3-Clause
//! The sender's dealings with its congestion control.

use super::bbr::{Outcome, Trouble, View};
use super::control::Control;
use super::cubic::Round;
use super::rate::Sample;
use super::sender::{Sender, State};

impl Sender {
    fn view(&self, now_ns: u64) -> View {
        View {
            now_ns,
            in_flight: self.flight.in_flight(),
            delivered: self.delivery.delivered,
            delivered_ns: self.delivery.delivered_ns,
            losses: self.flight.losses(),
            srtt_ns: self.rtt.srtt_ns(),
            paced_ns: self.paced_ns,
            state: match self.state {
                State::Loss => Trouble::Loss,
                State::Recovery => Trouble::Recovery,
                _ => Trouble::None,
            },
        }
    }

    pub(super) fn begin_control(&mut self, now_ns: u64) {
        let (view, least_ns) = (self.view(now_ns), self.rtt.least_ns());
        match &mut self.control {
            Control::Reno => {}
            Control::Cubic(cubic) => cubic.begin(now_ns, self.flight.next()),
            Control::Bbr(bbr) => bbr.begin(&view, self.cwnd, least_ns),
        }
    }

    /// The threshold after a congestion event.
    pub(super) fn reduced_ssthresh(&mut self) -> u64 {
        match &mut self.control {
            Control::Reno => (self.cwnd >> 1).max(2),
            Control::Cubic(cubic) => cubic.reduce(self.cwnd),
            Control::Bbr(bbr) => {
                bbr.save_window(self.cwnd);
                self.ssthresh
            }
        }
    }

    /// The window when a reduction turns out not to have been needed.
    pub(super) fn undone_window(&mut self, now_ns: u64) -> u64 {
        let view = self.view(now_ns);
        match &mut self.control {
            Control::Bbr(bbr) => {
                bbr.undo(&view);
                self.cwnd
            }
            _ => self.cwnd.max(self.prr.prior_cwnd),
        }
    }

    pub(super) fn control_timed_out(&mut self, now_ns: u64) {
        let view = self.view(now_ns);
        match &mut self.control {
            Control::Reno => {}
            Control::Cubic(cubic) => cubic.forget(now_ns, self.flight.next()),
            Control::Bbr(bbr) => bbr.timed_out(&view),
        }
    }

    /// Sending begins with nothing in the network.
    pub(super) fn control_resumes(&mut self, now_ns: u64) {
        let view = self.view(now_ns);
        let limited = self.delivery.is_app_limited();
        match &mut self.control {
            Control::Cubic(cubic) => cubic.resume(now_ns, self.last_sent_ns),
            Control::Bbr(bbr) if limited => self.cwnd = bbr.resume(&view, self.cwnd),
            _ => {}
        }
    }

    #[inline]
    pub(super) fn control_measured(&mut self, now_ns: u64, rtt_ns: u64) {
        let slow_start = self.in_slow_start();
        let Control::Cubic(cubic) = &mut self.control else {
            return;
        };
        if !cubic.measured(now_ns, rtt_ns) || !slow_start {
            return;
        }
        let round = Round {
            una: self.flight.una(),
            next: self.flight.next(),
            cwnd: self.cwnd,
            pacing_bytes_per_s: (2 * self.cwnd * self.mss_bytes)
                .saturating_mul(1_000_000_000)
                .checked_div(self.rtt.srtt_ns())
                .unwrap_or(0),
        };
        if cubic.ends_slow_start(now_ns, rtt_ns, round) {
            self.ssthresh = self.cwnd;
        }
    }

    /// BBR's part of an acknowledgement.
    pub(super) fn control_by_rate(&mut self, now_ns: u64, sample: &Sample) {
        let view = self.view(now_ns);
        let Control::Bbr(bbr) = &mut self.control else {
            return;
        };
        let Outcome { cwnd, limits_rate } =
            bbr.on_ack(&view, sample, self.cwnd, &mut self.ssthresh);
        self.cwnd = cwnd;
        if limits_rate {
            self.delivery.limit(self.flight.in_flight());
        }
    }

    /// Lets the window grow for `acked` segments.
    #[inline]
    pub(super) fn grow(&mut self, now_ns: u64, acked: u64) {
        if !self.is_window_limited() {
            return;
        }
        let mut left = acked;
        if self.in_slow_start() {
            let cwnd = (self.cwnd + acked).min(self.ssthresh);
            left -= cwnd - self.cwnd;
            self.cwnd = cwnd;
            if left == 0 {
                return;
            }
        }
        let count = match &mut self.control {
            Control::Cubic(cubic) => cubic.growth_count(now_ns, self.cwnd, left),
            _ => self.cwnd,
        };
        if self.cwnd_count >= count {
            self.cwnd_count = 0;
            self.cwnd += 1;
        }
        self.cwnd_count += left;
        if self.cwnd_count >= count {
            let steps = self.cwnd_count / count;
            self.cwnd_count -= steps * count;
            self.cwnd += steps;
        }
    }
}
