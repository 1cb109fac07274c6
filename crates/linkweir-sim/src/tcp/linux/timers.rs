// SPDX-License-Identifier: BSD-3-Clause
//! The one timer of a sender, which is at a time retransmission timeout (RFC 6298), tail loss probe (RFC 8985, section 7) or
//! the time after which an overtaken segment counts as lost.

use super::control::Cause;
use super::plan::Plan;
use super::sender::{Sender, State, REORDERING};
use super::timer::Purpose;

/// Least distance of a probe, and of the end of a reordering window, to what it waits for.
const TIMEOUT_MIN_NS: u64 = 2_000_000;
/// Timeouts of a SYN before they begin to back off.
const LINEAR_SYN_TIMEOUTS: u64 = 4;

impl Sender {
    #[inline]
    pub fn deadline_ns(&self) -> Option<u64> {
        let mut at_ns = self.timer.fires_ns;
        if self.waits_for_pace {
            at_ns = at_ns.min(self.paced_ns);
        }
        (at_ns != u64::MAX).then_some(at_ns)
    }

    pub fn on_timer(&mut self, now_ns: u64) {
        if self.waits_for_pace && now_ns >= self.paced_ns {
            self.waits_for_pace = false;
            self.plan = Plan::Lost { then_new: true };
        }
        if now_ns < self.timer.fires_ns {
            return;
        }
        let purpose = self.timer.purpose;
        self.timer.fires_ns = u64::MAX;
        match purpose {
            Purpose::None => {}
            Purpose::Retransmission => {
                self.timer.stop();
                self.time_out(now_ns);
            }
            Purpose::Probe => self.probe_tail(now_ns),
            Purpose::Reordering => self.end_reordering(now_ns),
        }
    }

    #[inline]
    fn set_timer(&mut self, now_ns: u64, purpose: Purpose, ticks: u64) {
        self.timer.purpose = purpose;
        self.timer.fires_ns = self.clock.fires_ns(now_ns, ticks);
    }

    /// Ticks until pacing lets a segment leave, by which timers wait longer.
    #[inline]
    fn pacing_ticks(&self, now_ns: u64) -> u64 {
        self.clock.ticks_for(self.paced_ns.saturating_sub(now_ns))
    }

    pub(super) fn set_retransmission_timer(&mut self, now_ns: u64) {
        let ticks = self.rtt.rto_ticks() + self.pacing_ticks(now_ns);
        self.set_timer(now_ns, Purpose::Retransmission, ticks);
    }

    /// Starts the retransmission timer. Where a probe or a reordering window was pending, it runs since the lowest
    /// outstanding segment was sent.
    pub(super) fn rearm_timer(&mut self, now_ns: u64) {
        if self.flight.outstanding() == 0 {
            self.timer.stop();
            return;
        }
        let mut ticks = self.rtt.rto_ticks();
        if matches!(self.timer.purpose, Purpose::Probe | Purpose::Reordering) {
            ticks = self.clock.ticks_for(self.rto_left_ns(now_ns).unwrap_or(1));
        }
        ticks += self.pacing_ticks(now_ns);
        self.set_timer(now_ns, Purpose::Retransmission, ticks);
    }

    /// How long the lowest outstanding segment may still stay out; `None` if no longer.
    fn rto_left_ns(&self, now_ns: u64) -> Option<u64> {
        let ends_ns = self.flight.sent(self.flight.una()).at_ns + self.rtt.rto_ns();
        ends_ns.checked_sub(now_ns).filter(|left_ns| *left_ns > 0)
    }

    #[inline]
    pub(super) fn set_timer_after_ack(&mut self, now_ns: u64) {
        if !self.schedule_probe(now_ns, true) {
            self.rearm_timer(now_ns);
        }
    }

    /// Sets the timer to a tail loss probe if the state allows one; `advances`: the timeout starts again, too.
    #[inline]
    pub(super) fn schedule_probe(&mut self, now_ns: u64, advances: bool) -> bool {
        let outstanding = self.flight.outstanding();
        if outstanding == 0 || !matches!(self.state, State::Open | State::Reduced) {
            return false;
        }
        let srtt_ns = self.rtt.srtt_ns();
        let mut ticks = if srtt_ns > 0 {
            let late_ns = if outstanding == 1 {
                self.rtt.min_rto_ns()
            } else {
                TIMEOUT_MIN_NS
            };
            self.clock.ticks_for(2 * srtt_ns + late_ns)
        } else {
            self.rtt.rto_ticks()
        };
        let rto = if advances {
            Some(self.rtt.rto_ticks())
        } else {
            self.rto_left_ns(now_ns)
                .map(|left_ns| self.clock.ticks_for(left_ns))
        };
        if let Some(rto) = rto {
            ticks = ticks.min(rto);
        }
        ticks += self.pacing_ticks(now_ns);
        self.set_timer(now_ns, Purpose::Probe, ticks);
        true
    }

    pub(super) fn wait_for_reordering(&mut self, now_ns: u64, wait_ns: u64) {
        let ticks = self.clock.ticks_for(wait_ns + TIMEOUT_MIN_NS);
        self.set_timer(now_ns, Purpose::Reordering, ticks);
    }

    fn probe_tail(&mut self, now_ns: u64) {
        if self.probe.is_some() || self.flight.outstanding() == 0 {
            self.rearm_timer(now_ns);
            return;
        }
        self.plan = Plan::Probe;
    }

    fn end_reordering(&mut self, now_ns: u64) {
        let before = self.flight.in_flight();
        // What is still within the window then waits for the retransmission timer, as in the kernel.
        self.detect_losses(now_ns);
        if before != self.flight.in_flight() {
            if self.state != State::Recovery {
                self.enter_recovery(now_ns, false);
                if !self.control.sets_window() {
                    self.reduce_in_proportion(1, false);
                }
            }
            // The timer starts once they are sent.
            self.plan = Plan::Lost { then_new: false };
        } else {
            self.rearm_timer(now_ns);
        }
    }

    fn time_out(&mut self, now_ns: u64) {
        if self.flight.outstanding() == 0 {
            return;
        }
        self.counters.timeouts += 1;
        if !self.is_established() {
            if self.counters.timeouts > LINEAR_SYN_TIMEOUTS {
                self.rtt.back_off();
            }
            self.set_retransmission_timer(now_ns);
            self.plan = Plan::Head;
            return;
        }
        self.enter_loss(now_ns);
        self.timeouts += 1;
        self.rtt.back_off();
        let ticks = self.rtt.rto_ticks();
        self.set_timer(now_ns, Purpose::Retransmission, ticks);
        self.plan = Plan::Head;
    }

    fn enter_loss(&mut self, now_ns: u64) {
        let is_new = self.state < State::Recovery;
        let una = self.flight.una();
        self.flight.mark_lost(una);
        for sequence in una + 1..self.flight.next() {
            let sent_ns = self.flight.sent(sequence).at_ns;
            if self.rack.remaining_ns(now_ns, sent_ns, 0) <= 0 {
                self.flight.mark_lost(sequence);
            }
        }
        if self.state <= State::Disorder
            || self.high <= una
            || (self.state == State::Loss && self.timeouts == 0)
            // Counted marks alone had reduced it less.
            || (self.state == State::Reduced && self.ecn.counts)
        {
            self.undo.prior_ssthresh = self.current_ssthresh();
            self.prr.prior_cwnd = self.cwnd;
            self.ssthresh = self.reduced_ssthresh(now_ns, Cause::Loss);
            self.begin_undo();
        }
        self.cwnd = self.flight.in_flight() + 1;
        self.cwnd_count = 0;
        self.usage.stamp_ns = now_ns;
        if self.state <= State::Disorder && self.flight.sacked() >= REORDERING {
            self.reordering = self.reordering.min(REORDERING);
        }
        self.state = State::Loss;
        self.control_timed_out(now_ns);
        self.high = self.flight.next();
        self.probe = None;
        self.ecn.queues_cwr = self.ecn.echoes();
        self.frto = is_new || self.timeouts > 0;
    }
}
