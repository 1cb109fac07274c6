// SPDX-License-Identifier: BSD-3-Clause
//! What the sender sends next. An acknowledgement or a timer makes a plan; [`Sender::next_segment`] then carries it out
//! one segment at a time.

use super::clock::stamp_ms;
use super::control::Control;
use super::plan::Plan;
use super::sender::{Probe, Sender, State};
use crate::tcp::segment::Segment;

impl Sender {
    #[inline]
    pub fn next_segment(&mut self, now_ns: u64) -> Option<Segment> {
        loop {
            match self.plan {
                Plan::Nothing => return None,
                Plan::New | Plan::NewFirst => {
                    if self.may_send_new()
                        && self.flight.in_flight() < self.cwnd
                        && self.is_paced(now_ns)
                    {
                        return Some(self.send_new(now_ns));
                    }
                    self.end_new(now_ns);
                }
                Plan::Lost { then_new } => {
                    if self.flight.in_flight() < self.cwnd {
                        if let Some(sequence) =
                            self.flight.next_lost().filter(|_| self.is_paced(now_ns))
                        {
                            return Some(self.send_lost(now_ns, sequence));
                        }
                    }
                    if std::mem::take(&mut self.head_sent) {
                        self.set_retransmission_timer(now_ns);
                    } else if self.timer.is_over() {
                        self.rearm_timer(now_ns);
                    }
                    self.plan = if then_new { Plan::New } else { Plan::Nothing };
                }
                Plan::Open => {
                    self.plan = Plan::Nothing;
                    return Some(self.open(now_ns));
                }
                Plan::Confirm => {
                    self.plan = Plan::New;
                    return Some(Segment {
                        sequence: 0,
                        retransmission: false,
                        sent_ns: now_ns,
                        bare: true,
                        ecn_capable: self.ecn.is_on_all(),
                        marked: false,
                        reduced: false,
                    });
                }
                Plan::Head => {
                    self.plan = Plan::Nothing;
                    let sequence = self.flight.una();
                    return Some(self.retransmit(now_ns, sequence, true));
                }
                Plan::Probe => {
                    self.plan = Plan::Nothing;
                    return Some(self.send_probe(now_ns));
                }
            }
        }
    }

    /// There are new segments, and the receive window allows one.
    pub(super) fn may_send_new(&self) -> bool {
        self.flight.next() < self.limit.min(self.window_end)
    }

    /// Pacing lets a segment leave now.
    fn is_paced(&mut self, now_ns: u64) -> bool {
        self.waits_for_pace = self.paced_ns > now_ns;
        !self.waits_for_pace
    }

    fn open(&mut self, now_ns: u64) -> Segment {
        let sent = self.delivery.sent(now_ns, true);
        self.flight.push(sent);
        self.syn_ms = stamp_ms(now_ns);
        self.set_retransmission_timer(now_ns);
        Segment {
            sequence: 0,
            retransmission: false,
            sent_ns: now_ns,
            bare: false,
            ecn_capable: self.ecn.is_on_all(),
            marked: false,
            reduced: false,
        }
    }

    fn send_new(&mut self, now_ns: u64) -> Segment {
        let outstanding = self.flight.outstanding();
        self.note_data(now_ns);
        let sent = self.delivery.sent(now_ns, outstanding == 0);
        let sequence = self.flight.push(sent);
        self.counters.sent += 1;
        self.burst += 1;
        self.pace(now_ns);
        if outstanding == 0 || self.timer.is_probe() {
            self.rearm_timer(now_ns);
        }
        let reduced = std::mem::take(&mut self.ecn.queues_cwr);
        Segment {
            sequence,
            retransmission: false,
            sent_ns: now_ns,
            bare: false,
            ecn_capable: self.ecn.is_on,
            marked: false,
            reduced,
        }
    }

    /// A segment with data leaves now.
    #[inline]
    fn note_data(&mut self, now_ns: u64) {
        if self.flight.in_flight() == 0 {
            self.control_resumes(now_ns);
        }
        self.last_sent_ns = now_ns;
    }

    /// No further new segment is sent now.
    fn end_new(&mut self, now_ns: u64) {
        let sent = std::mem::take(&mut self.burst);
        // Prague's pace is that of its window, which it may keep from being quite filled.
        let spared = match self.control {
            Control::Prague(_) if self.waits_for_pace => (self.cwnd >> 3).max(2),
            _ => 0,
        };
        let limited = self.flight.in_flight() + spared >= self.cwnd;
        if sent > 0 || limited {
            self.judge_usage(now_ns, limited);
        }
        if sent > 0 {
            if self.is_reducing() {
                self.prr.out += sent;
            }
            self.schedule_probe(now_ns, false);
        }
        let first = self.plan == Plan::NewFirst;
        self.plan = Plan::Nothing;
        if first && self.flight.next() <= self.high {
            self.frto = false;
            self.plan = Plan::Lost { then_new: true };
        }
    }

    /// Notes whether the window limits the sender, and lets an unused one shrink (RFC 2861).
    fn judge_usage(&mut self, now_ns: u64, limited: bool) {
        let outstanding = self.flight.outstanding();
        let usage = &mut self.usage;
        if self.flight.una() >= usage.round_end
            || limited
            || (!usage.is_limited && outstanding > usage.most_outstanding)
        {
            usage.is_limited = limited;
            usage.most_outstanding = outstanding;
            usage.round_end = self.flight.next();
        }
        if self.is_window_limited() {
            self.usage.used = 0;
            self.usage.stamp_ns = now_ns;
            return;
        }
        self.usage.used = self.usage.used.max(outstanding);
        let unused_ticks = self.clock.ticks(now_ns) - self.clock.ticks(self.usage.stamp_ns);
        if unused_ticks < self.rtt.rto_ticks() || self.control.sets_window() {
            return;
        }
        if self.state == State::Open {
            let used = self.usage.used.max(self.initial_window);
            if used < self.cwnd {
                self.ssthresh = self.current_ssthresh();
                self.cwnd = (self.cwnd + used) >> 1;
            }
            self.usage.used = 0;
        }
        self.usage.stamp_ns = now_ns;
    }

    fn send_lost(&mut self, now_ns: u64, sequence: u64) -> Segment {
        self.head_sent |= sequence == self.flight.una() && !self.timer.waits_for_reordering();
        if self.is_reducing() {
            self.prr.out += 1;
        }
        self.retransmit(now_ns, sequence, true)
    }

    fn retransmit(&mut self, now_ns: u64, sequence: u64, counted: bool) -> Segment {
        if sequence > 0 {
            self.note_data(now_ns);
        }
        let sent = self.delivery.sent(now_ns, false);
        self.flight.retransmit(sequence, sent, counted);
        self.pace(now_ns);
        if self.state == State::Loss || !self.is_established() {
            self.counters.retransmitted_rto += 1;
        } else {
            self.counters.retransmitted_fast += 1;
        }
        if sequence > 0 {
            self.counters.sent += 1;
        }
        if counted {
            self.undo.first_ms.get_or_insert(stamp_ms(now_ns));
            self.undo.retransmissions = self.undo.retransmissions.max(0) + 1;
        }
        Segment {
            sequence,
            retransmission: true,
            sent_ns: now_ns,
            bare: false,
            ecn_capable: self.ecn.is_on_all(),
            marked: false,
            reduced: false,
        }
    }

    fn send_probe(&mut self, now_ns: u64) -> Segment {
        let new = self.may_send_new();
        let segment = if new {
            let segment = self.send_new(now_ns);
            self.burst = 0;
            let limited = self.flight.in_flight() >= self.cwnd;
            self.judge_usage(now_ns, limited);
            self.prr.out += u64::from(self.is_reducing());
            segment
        } else {
            let last = self.flight.next() - 1;
            self.retransmit(now_ns, last, false)
        };
        self.probe = Some(Probe {
            end: self.flight.next(),
            retransmitted: !new,
        });
        self.timer.forget();
        self.rearm_timer(now_ns);
        segment
    }

    /// Accounts a segment that leaves now with the pace of BBR or Prague.
    #[inline]
    fn pace(&mut self, now_ns: u64) {
        let length_ns = match &self.control {
            Control::Bbr(bbr) => {
                (self.mss_bytes * 1_000_000_000).checked_div(bbr.pacing_bytes_per_s)
            }
            Control::Prague(prague) => {
                let in_flight = self.flight.in_flight();
                Some(prague.gap_ns(self.rtt.srtt_ns(), in_flight))
            }
            _ => return,
        };
        let prior_ns = self.paced_ns;
        self.paced_ns = prior_ns.max(now_ns);
        if let Some(length_ns) = length_ns.filter(|_| self.counters.sent >= 10) {
            let credit_ns = self.paced_ns - prior_ns;
            self.paced_ns += length_ns - credit_ns.min(length_ns / 2);
        }
    }

    /// There are so many more segments to send.
    pub fn supply(&mut self, now_ns: u64, segments: u64) {
        if self.flight.next() == self.limit
            && self.flight.in_flight() < self.cwnd
            && self.flight.lost() <= self.flight.retrans()
        {
            self.delivery.limit(self.flight.in_flight());
        }
        self.limit = self.limit.saturating_add(segments);
        if self.is_established() {
            self.restart_after_idle(now_ns);
            if self.plan == Plan::Nothing {
                self.plan = Plan::New;
            }
        }
    }

    /// Idle for longer than the timeout: the window halves for each timeout, down to the initial window (RFC 2861).
    fn restart_after_idle(&mut self, now_ns: u64) {
        if self.flight.outstanding() > 0 || self.control.sets_window() {
            return;
        }
        let rto = self.rtt.rto_ticks();
        let mut idle = self.clock.ticks(now_ns) - self.clock.ticks(self.last_sent_ns);
        if idle <= rto {
            return;
        }
        self.ssthresh = self.current_ssthresh();
        let least = self.initial_window.min(self.cwnd);
        let mut cwnd = self.cwnd;
        while idle > rto && cwnd > least {
            idle -= rto;
            cwnd >>= 1;
        }
        self.cwnd = cwnd.max(least);
        self.usage.stamp_ns = now_ns;
        self.usage.used = 0;
    }
}
