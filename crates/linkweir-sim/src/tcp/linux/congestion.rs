// SPDX-License-Identifier: BSD-3-Clause
//! The sender's dealings with its congestion control.

use super::bbr::{Outcome, Trouble, View};
use super::control::{Cause, Control};
use super::cubic::Round;
use super::prague;
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

    #[inline]
    fn prague_view(&self, now_ns: u64) -> prague::View {
        prague::View {
            now_ns,
            una: self.flight.una(),
            next: self.flight.next(),
            srtt_ns: self.rtt.srtt_ns(),
        }
    }

    pub(super) fn begin_control(&mut self, now_ns: u64) {
        let (view, least_ns) = (self.view(now_ns), self.rtt.least_ns());
        let of_prague = self.prague_view(now_ns);
        match &mut self.control {
            Control::Reno => {}
            Control::Cubic(cubic) => cubic.begin(now_ns, self.flight.next()),
            Control::Bbr(bbr) => bbr.begin(&view, self.cwnd, least_ns),
            Control::Prague(prague) => prague.begin(&of_prague, self.cwnd),
            Control::Dctcp(dctcp) => dctcp.begin(self.flight.next()),
        }
    }

    /// The threshold after a congestion event.
    pub(super) fn reduced_ssthresh(&mut self, now_ns: u64, cause: Cause) -> u64 {
        let of_prague = self.prague_view(now_ns);
        match (&mut self.control, cause) {
            (Control::Prague(prague), Cause::Mark) => prague.answer_marks(&of_prague),
            (Control::Prague(prague), Cause::Loss) => prague.answer_loss(&of_prague),
            (Control::Dctcp(dctcp), Cause::Mark) => dctcp.reduced(self.cwnd),
            (Control::Reno | Control::Dctcp(_), _) => (self.cwnd >> 1).max(2),
            (Control::Cubic(cubic), _) => cubic.reduce(self.cwnd),
            (Control::Bbr(bbr), _) => {
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
            Control::Prague(prague) => {
                prague.undo();
                self.cwnd.max(self.prr.prior_cwnd)
            }
            _ => self.cwnd.max(self.prr.prior_cwnd),
        }
    }

    pub(super) fn control_timed_out(&mut self, now_ns: u64) {
        let view = self.view(now_ns);
        match &mut self.control {
            Control::Reno | Control::Prague(_) | Control::Dctcp(_) => {}
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

    /// What algorithms that count marks learn from an acknowledgement, before the state follows from it.
    #[inline]
    pub(super) fn control_counts(&mut self, now_ns: u64, acked: u64, marked: u64) {
        if !self.ecn.counts {
            return;
        }
        let of_prague = self.prague_view(now_ns);
        match &mut self.control {
            Control::Prague(prague) => prague.count(&of_prague, acked, marked),
            Control::Dctcp(dctcp) => dctcp.count(of_prague.una, of_prague.next, acked, marked),
            _ => {}
        }
    }

    /// Prague's part of an acknowledgement: its window changes, and `cwnd` moves one segment towards it.
    pub(super) fn control_by_marks(&mut self, now_ns: u64, acked: u64, marked: u64) {
        let of_prague = self.prague_view(now_ns);
        let grows =
            self.is_window_limited() && !matches!(self.state, State::Recovery | State::Loss);
        let Control::Prague(prague) = &mut self.control else {
            return;
        };
        if marked > 0 && self.state == State::Reduced {
            self.ssthresh = prague.answer_marks(&of_prague);
        }
        let unmarked = acked.saturating_sub(marked);
        if unmarked > 0 && grows {
            prague.grow(&of_prague, unmarked);
        }
        let window = prague.whole_window();
        let step = if self.cwnd < self.ssthresh {
            unmarked.max(1)
        } else {
            1
        };
        self.cwnd = if self.cwnd <= window {
            (self.cwnd + step).min(window)
        } else {
            self.cwnd - 1
        };
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
