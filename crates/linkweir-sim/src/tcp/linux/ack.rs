// SPDX-License-Identifier: BSD-3-Clause
//! What an acknowledgement changes: which segments it reports, whether some are lost, the state and the window.

use super::clock::stamp_ms;
use super::control::Cause;
use super::flight::{EVER, SACKED};
use super::plan::Plan;
use super::rate::Sample;
use super::sender::{Sender, State, Undo, INFINITE, MOST_REORDERING, REORDERING};
use crate::tcp::segment::Ack;

/// The information in an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    advances: bool,
    /// A segment sent once, below `high`, was reported.
    original: bool,
    sacks: bool,
    dsack: bool,
    dsack_of_probe: bool,
    echo: bool,
    /// Marks reported, if they are counted.
    marked: u64,
    lost_retransmission: bool,
    sets_timer: bool,
    echo_ms: Option<u64>,
    rate: Sample,
}

/// What may be sent after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Nothing,
    Lost,
    /// New segments first, to see whether a timeout was spurious.
    New,
}

impl Sender {
    #[inline]
    pub fn on_ack(&mut self, now_ns: u64, ack: &Ack) {
        if !self.is_established() {
            self.establish(now_ns, ack);
            return;
        }
        let prior_una = self.flight.una();
        if ack.cumulative < prior_una || ack.cumulative > self.flight.next() {
            return;
        }
        self.window_end = self.window_end.max(ack.cumulative + ack.window);
        let marked = ack.marked.saturating_sub(self.ecn.marked);
        self.ecn.marked += marked;
        let mut news = News {
            advances: ack.cumulative > prior_una,
            echo: (ack.echoes_mark || marked > 0) && self.ecn.is_on,
            marked,
            echo_ms: ack.echo_ns.map(stamp_ms),
            ..News::default()
        };
        if news.advances {
            self.timeouts = 0;
        }
        let (prior_delivered, prior_losses) = (self.delivery.delivered, self.flight.losses());
        let prior_outstanding = self.flight.outstanding();
        let prior_sacked_below = self.flight.sacked_below();
        news.rate.prior_in_flight = self.flight.in_flight();
        let sacked_ns = self.take_sacks(now_ns, ack, prior_una, &mut news);
        if prior_outstanding == 0 {
            let acked = self.delivery.delivered - prior_delivered;
            self.control_counts(now_ns, acked, news.marked);
            if news.dsack {
                self.judge(now_ns, prior_una, &mut news);
            }
            self.answer_probe(now_ns, ack.cumulative, &news);
            self.plan = Plan::New;
            return;
        }
        self.acknowledge(
            now_ns,
            ack.cumulative,
            prior_sacked_below,
            sacked_ns,
            &mut news,
        );
        self.rack
            .adapt(news.rate.prior_delivered, self.delivery.delivered);
        self.answer_probe(now_ns, ack.cumulative, &news);
        let acked = self.delivery.delivered - prior_delivered;
        self.control_counts(now_ns, acked, news.marked);
        let mut repair = Repair::Nothing;
        if self.state != State::Open || news.sacks || news.dsack || news.echo || !news.advances {
            repair = self.judge(now_ns, prior_una, &mut news);
        }
        if news.sets_timer {
            self.set_timer_after_ack(now_ns);
        }
        let rate = &mut news.rate;
        rate.acked = self.delivery.delivered - prior_delivered;
        rate.losses = self.flight.losses() - prior_losses;
        self.delivery.complete(now_ns, rate, self.rtt.least_ns());
        self.set_window(now_ns, &news);
        self.plan = match repair {
            Repair::Nothing => Plan::New,
            Repair::Lost => Plan::Lost { then_new: true },
            Repair::New => Plan::NewFirst,
        };
    }

    fn establish(&mut self, now_ns: u64, ack: &Ack) {
        if ack.cumulative == 0 {
            return;
        }
        self.window_end = ack.cumulative + ack.window;
        let sent = *self.flight.sent(0);
        let repeated = self.flight.marks(0) & EVER != 0;
        self.flight.acknowledge();
        let sample_ns = match ack.echo_ns {
            Some(echo_ns) if repeated => Some(now_ns - echo_ns),
            _ => (!repeated).then(|| now_ns - sent.at_ns),
        };
        if let Some(rtt_ns) = sample_ns {
            self.rtt.sample_least(now_ns, rtt_ns);
            self.rtt
                .sample(rtt_ns, self.flight.una(), self.flight.next());
        }
        self.timeouts = 0;
        self.undo = Undo::default();
        let original = ack
            .echo_ns
            .is_some_and(|echo_ns| stamp_ms(echo_ns) == self.syn_ms);
        self.cwnd = if self.counters.retransmitted_rto > 1 && !original {
            1
        } else {
            self.initial_window
        };
        self.usage.stamp_ns = now_ns;
        self.delivery.delivered_ns = now_ns;
        self.delivery.delivered = 1;
        self.timer.stop();
        self.begin_control(now_ns);
        self.plan = Plan::Confirm;
    }

    /// Takes in the SACK blocks; returns when the first and the last of the segments were sent that were sent once and are
    /// now SACKed.
    #[inline]
    fn take_sacks(
        &mut self,
        now_ns: u64,
        ack: &Ack,
        prior_una: u64,
        news: &mut News,
    ) -> Option<(u64, u64)> {
        if ack.nsack == 0 && ack.dsack.is_none() {
            return None;
        }
        let mut lowest = self.flight.next();
        if let Some(sequence) = ack.dsack {
            self.take_dsack(sequence, ack.cumulative, prior_una, &mut lowest, news);
        }
        let mut times: Option<(u64, u64)> = None;
        let mut blocks = ack.sack;
        let blocks = &mut blocks[..usize::from(ack.nsack).min(4)];
        blocks.sort_unstable_by_key(|block| block.start);
        for block in blocks {
            let end = block.end.min(self.flight.next());
            let mut at = block.start.max(ack.cumulative);
            while let Some(sequence) = self.flight.next_open(at, end) {
                let sent = *self.flight.sent(sequence);
                let marks = self.flight.marks(sequence);
                self.advance_rack(now_ns, marks, sequence + 1, sent.at_ns);
                if marks & EVER == 0 {
                    if sequence < self.flight.sacked_below() {
                        lowest = lowest.min(sequence);
                    }
                    news.original |= sequence < self.high;
                    times = Some((times.map_or(sent.at_ns, |times| times.0), sent.at_ns));
                }
                self.flight.sack(sequence);
                self.delivery.arrived(&mut news.rate, sequence, &sent);
                self.flight.count(sequence);
                self.delivery.delivered += 1;
                news.sacks = true;
                at = sequence + 1;
            }
        }
        if self.state != State::Loss || self.undo.marker.is_some() {
            self.see_reordering(lowest);
        }
        times
    }

    fn take_dsack(
        &mut self,
        sequence: u64,
        cumulative: u64,
        prior_una: u64,
        lowest: &mut u64,
        news: &mut News,
    ) {
        self.counters.spurious += 1;
        let retransmitted = self.counters.retransmitted_fast + self.counters.retransmitted_rto;
        let end = sequence + 1;
        let of_probe = self.probe.is_some_and(|probe| probe.end == end);
        news.dsack_of_probe = of_probe;
        if self.counters.spurious > retransmitted {
            return;
        }
        if self.reorderings_seen > 0 && !of_probe {
            self.rack.see_dsack();
        }
        news.dsack = true;
        self.delivery.delivered += 1;
        let counts =
            self.undo.retransmissions > 0 && self.undo.marker.is_some_and(|marker| end > marker);
        if end <= prior_una {
            self.undo.retransmissions -= i64::from(counts);
        } else if self.flight.marks(sequence) & EVER != 0 {
            self.undo.retransmissions -= i64::from(counts);
            if sequence < cumulative {
                return;
            }
            if self.flight.marks(sequence) & SACKED != 0 {
                *lowest = (*lowest).min(sequence);
            }
            self.flight.end_retransmission(sequence);
        }
    }

    /// A segment sent once arrived after a higher one: `lowest` is the lowest such segment.
    fn see_reordering(&mut self, lowest: u64) {
        let highest = self.flight.sacked_below();
        if lowest >= highest {
            return;
        }
        if highest - lowest > self.reordering {
            self.reordering = (highest - lowest).min(MOST_REORDERING);
        }
        self.reorderings_seen += 1;
    }

    /// Moves `una`, and measures round trips.
    #[inline]
    fn acknowledge(
        &mut self,
        now_ns: u64,
        cumulative: u64,
        prior_sacked_below: u64,
        sacked_ns: Option<(u64, u64)>,
        news: &mut News,
    ) {
        let mut times: Option<(u64, u64)> = None;
        let mut lowest = self.flight.next();
        let mut repeated = false;
        for sequence in self.flight.una()..cumulative {
            let sent = *self.flight.sent(sequence);
            let marks = self.flight.acknowledge();
            if marks & EVER != 0 {
                repeated = true;
            } else if marks & SACKED == 0 {
                times = Some((times.map_or(sent.at_ns, |times| times.0), sent.at_ns));
                lowest = lowest.min(sequence);
                news.original |= sequence < self.high;
            }
            if marks & SACKED == 0 {
                self.delivery.delivered += 1;
                let spurious = marks & EVER != 0
                    && news
                        .echo_ms
                        .is_some_and(|echo_ms| echo_ms < stamp_ms(sent.at_ns));
                if !spurious {
                    self.advance_rack(now_ns, marks, sequence + 1, sent.at_ns);
                }
            }
            self.delivery.arrived(&mut news.rate, sequence, &sent);
        }
        let mut sample_ns = None;
        let mut newest_ns = None;
        if let Some((first_ns, last_ns)) = times.filter(|_| !repeated) {
            sample_ns = Some(now_ns - first_ns);
            newest_ns = Some(now_ns - last_ns);
        }
        if let Some((first_ns, last_ns)) = sacked_ns {
            sample_ns = sample_ns.or(Some(now_ns - first_ns));
            newest_ns = Some(now_ns - last_ns);
        }
        if sample_ns.is_none() && news.advances {
            let echoed = news
                .echo_ms
                .map(|echo_ms| (stamp_ms(now_ns) - echo_ms).max(1) * 1_000_000);
            (sample_ns, newest_ns) = (echoed, echoed);
        }
        news.rate.rtt_ns = newest_ns;
        if let Some(rtt_ns) = sample_ns {
            if let Some(newest_ns) = newest_ns {
                self.rtt.sample_least(now_ns, newest_ns);
            }
            self.rtt.sample(rtt_ns, cumulative, self.flight.next());
        }
        if news.advances {
            news.sets_timer = true;
            if lowest < prior_sacked_below {
                self.see_reordering(lowest);
            }
        } else if let Some((first_ns, _)) = sacked_ns {
            // Not if that segment was sent after the head was sent last: the timeout would move on and on.
            let head_ns = self.flight.sent(cumulative).at_ns;
            news.sets_timer = self.flight.outstanding() > 0 && now_ns - first_ns > now_ns - head_ns;
        }
        if let Some(rtt_ns) = newest_ns {
            self.control_measured(now_ns, rtt_ns);
        }
    }

    /// Ends a tail loss probe that is answered.
    #[inline]
    fn answer_probe(&mut self, now_ns: u64, cumulative: u64, news: &News) {
        let Some(probe) = self.probe.filter(|probe| cumulative >= probe.end) else {
            return;
        };
        if !probe.retransmitted || news.dsack_of_probe {
            self.probe = None;
        } else if cumulative > probe.end {
            // The tail was lost, and the probe repaired it.
            self.begin_reduction(now_ns, Cause::Loss);
            self.state = State::Reduced;
            self.end_reduction(now_ns);
            self.keep_open();
        } else if !news.advances && !news.sacks {
            self.probe = None;
        }
    }

    /// The state machine, for acknowledgements that are not plain progress in the open state.
    fn judge(&mut self, now_ns: u64, prior_una: u64, news: &mut News) -> Repair {
        if news.echo {
            self.undo.prior_ssthresh = 0;
        }
        let una = self.flight.una();
        if self.state == State::Open {
            self.undo.first_ms = None;
        } else if una >= self.high {
            match self.state {
                State::Reduced if una > self.high => {
                    self.end_reduction(now_ns);
                    self.state = State::Open;
                }
                State::Recovery => {
                    self.undo_recovery(now_ns, news);
                    self.end_reduction(now_ns);
                }
                _ => {}
            }
        }
        match self.state {
            State::Recovery => {
                if news.advances && self.undo_partly(now_ns, prior_una, news) {
                    return Repair::Nothing;
                }
                if self.undo_by_dsack(now_ns) {
                    self.try_to_open(now_ns, news);
                }
                self.find_losses(now_ns, news);
                if self.state != State::Recovery {
                    if self.flight.lost() == 0 {
                        return Repair::Nothing;
                    }
                    self.enter_recovery(now_ns, news.echo);
                }
                Repair::Lost
            }
            State::Loss => {
                let repair = self.repair_after_timeout(now_ns, news);
                self.find_losses(now_ns, news);
                if self.state == State::Open || news.lost_retransmission {
                    self.judge_losses(now_ns, news).unwrap_or(repair)
                } else {
                    repair
                }
            }
            _ => self.judge_losses(now_ns, news).unwrap_or(Repair::Nothing),
        }
    }

    /// Enters recovery if something is lost; otherwise the state follows from what is outstanding.
    fn judge_losses(&mut self, now_ns: u64, news: &mut News) -> Option<Repair> {
        if self.state <= State::Disorder {
            self.undo_by_dsack(now_ns);
        }
        self.find_losses(now_ns, news);
        if self.flight.lost() == 0 {
            self.try_to_open(now_ns, news);
            return None;
        }
        self.enter_recovery(now_ns, news.echo);
        Some(Repair::Lost)
    }

    fn find_losses(&mut self, now_ns: u64, news: &mut News) {
        if self.flight.outstanding() == 0 {
            return;
        }
        let before = self.flight.retrans();
        if self.rack.has_advanced {
            self.rack.has_advanced = false;
            if let Some(wait_ns) = self.detect_losses(now_ns) {
                self.wait_for_reordering(now_ns, wait_ns);
                news.sets_timer = false;
            }
        }
        news.lost_retransmission |= before > self.flight.retrans();
    }

    fn try_to_open(&mut self, now_ns: u64, news: &News) {
        if !self.has_retransmitted() {
            self.undo.first_ms = None;
        }
        if news.echo {
            self.enter_reduced(now_ns);
        }
        if self.state != State::Reduced {
            self.keep_open();
        }
    }

    fn keep_open(&mut self) {
        let disorder = self.flight.sacked() + self.flight.lost() > 0 || self.has_retransmitted();
        let state = if disorder {
            State::Disorder
        } else {
            State::Open
        };
        if self.state != state {
            self.state = state;
            self.high = self.flight.next();
        }
    }

    /// A retransmission is in the network, or the head was retransmitted.
    fn has_retransmitted(&self) -> bool {
        self.flight.retrans() > 0
            || (self.flight.outstanding() > 0 && self.flight.marks(self.flight.una()) & EVER != 0)
    }

    // Reductions.

    pub(super) fn begin_reduction(&mut self, now_ns: u64, cause: Cause) {
        self.high = self.flight.next();
        self.probe = None;
        self.cwnd_count = 0;
        self.prr.prior_cwnd = self.cwnd;
        self.prr.delivered = 0;
        self.prr.out = 0;
        self.ssthresh = self.reduced_ssthresh(now_ns, cause);
        self.ecn.queues_cwr = self.ecn.echoes();
    }

    fn end_reduction(&mut self, now_ns: u64) {
        if self.control.sets_window() {
            return;
        }
        if self.ssthresh < INFINITE && (self.state == State::Reduced || self.undo.marker.is_some())
        {
            self.cwnd = self.ssthresh;
            self.usage.stamp_ns = now_ns;
        }
    }

    /// A congestion mark was echoed; its reduction is never undone.
    fn enter_reduced(&mut self, now_ns: u64) {
        self.undo.prior_ssthresh = 0;
        if self.state < State::Reduced {
            self.undo.marker = None;
            self.begin_reduction(now_ns, Cause::Mark);
            self.state = State::Reduced;
        }
    }

    pub(super) fn enter_recovery(&mut self, now_ns: u64, echo: bool) {
        self.counters.recoveries += 1;
        if !self.has_retransmitted() {
            self.undo.first_ms = None;
        }
        self.undo.prior_ssthresh = 0;
        self.begin_undo();
        if !self.is_reducing() {
            if !echo {
                self.undo.prior_ssthresh = self.current_ssthresh();
            }
            self.begin_reduction(now_ns, Cause::Loss);
        } else if self.ecn.counts {
            // Marks alone had reduced it less.
            self.ssthresh = self.reduced_ssthresh(now_ns, Cause::Loss);
        }
        self.state = State::Recovery;
    }

    /// Lets the window follow from the acknowledgement.
    #[inline]
    fn set_window(&mut self, now_ns: u64, news: &News) {
        if self.control.sets_window() {
            self.control_by_rate(now_ns, &news.rate);
            self.control_by_marks(now_ns, news.rate.acked, news.marked);
        } else if self.is_reducing() {
            let clean = news.advances && news.rate.losses == 0;
            self.reduce_in_proportion(news.rate.acked, clean);
        } else if self.may_grow(news) {
            self.grow(now_ns, news.rate.acked);
            self.usage.stamp_ns = now_ns;
        }
    }

    fn may_grow(&self, news: &News) -> bool {
        news.advances || (self.reordering > REORDERING && news.sacks)
    }

    /// PRR.
    pub(super) fn reduce_in_proportion(&mut self, acked: u64, clean: bool) {
        if acked == 0 {
            return;
        }
        let in_flight = self.flight.in_flight();
        let prr = &mut self.prr;
        prr.delivered += acked;
        let quota = if in_flight > self.ssthresh {
            (self.ssthresh * prr.delivered)
                .div_ceil(prr.prior_cwnd.max(1))
                .saturating_sub(prr.out)
        } else {
            let limit = prr.delivered.saturating_sub(prr.out).max(acked) + u64::from(clean);
            limit.min(self.ssthresh - in_flight)
        };
        // The fast retransmission is sent in any case.
        self.cwnd = in_flight + quota.max(u64::from(prr.out == 0));
    }

    // Undo.

    pub(super) fn begin_undo(&mut self) {
        self.undo.marker = Some(self.flight.una());
        self.undo.retransmissions = self.flight.retrans() as i64;
        if self.probe.is_some_and(|probe| probe.retransmitted) {
            self.undo.retransmissions += 1;
        }
        if self.undo.retransmissions == 0 {
            self.undo.retransmissions = -1;
        }
    }

    /// What was retransmitted had only been late.
    fn was_delayed(&self, news: &News) -> bool {
        match (self.undo.first_ms, news.echo_ms) {
            (None, _) => true,
            (Some(first_ms), Some(echo_ms)) => echo_ms < first_ms,
            (Some(_), None) => false,
        }
    }

    fn may_undo(&self, news: &News) -> bool {
        self.undo.marker.is_some() && (self.undo.retransmissions == 0 || self.was_delayed(news))
    }

    fn undo_reduction(&mut self, now_ns: u64, unmarks: bool) {
        if unmarks {
            self.flight.unmark_lost();
        }
        if self.undo.prior_ssthresh > 0 {
            self.cwnd = self.undone_window(now_ns);
            if self.undo.prior_ssthresh > self.ssthresh {
                self.ssthresh = self.undo.prior_ssthresh;
                self.ecn.queues_cwr = false;
            }
        }
        self.usage.stamp_ns = now_ns;
        self.undo.marker = None;
        self.rack.has_advanced = true;
    }

    /// All that was outstanding when the recovery began is acknowledged.
    fn undo_recovery(&mut self, now_ns: u64, news: &News) {
        if self.may_undo(news) {
            self.undo_reduction(now_ns, false);
        } else {
            self.rack.persist_less();
        }
        // The reduction ends in this state; `end_reduction` looks at the marker.
        self.state = State::Open;
    }

    fn undo_by_dsack(&mut self, now_ns: u64) -> bool {
        if self.undo.marker.is_none() || self.undo.retransmissions != 0 {
            return false;
        }
        self.rack.persist_more();
        self.undo_reduction(now_ns, false);
        true
    }

    /// Progress in recovery; true: nothing is to be marked or retransmitted now.
    fn undo_partly(&mut self, now_ns: u64, prior_una: u64, news: &News) -> bool {
        if self.undo.marker.is_none() || !self.was_delayed(news) {
            return false;
        }
        self.see_reordering(prior_una);
        if self.flight.retrans() > 0 {
            return true;
        }
        if !self.has_retransmitted() {
            self.undo.first_ms = None;
        }
        self.undo_reduction(now_ns, true);
        self.keep_open();
        false
    }

    fn undo_loss(&mut self, now_ns: u64, news: &News, spurious: bool) -> bool {
        if !spurious && !self.may_undo(news) {
            return false;
        }
        self.undo_reduction(now_ns, true);
        self.timeouts = 0;
        self.state = State::Open;
        true
    }

    /// An acknowledgement after a timeout: was it spurious (F-RTO), or what is retransmitted next?
    fn repair_after_timeout(&mut self, now_ns: u64, news: &News) -> Repair {
        let recovered = self.flight.una() >= self.high;
        if news.advances && self.undo_loss(now_ns, news, false) {
            return Repair::Nothing;
        }
        if self.frto {
            if news.original && self.undo_loss(now_ns, news, true) {
                return Repair::Nothing;
            }
            if self.flight.next() > self.high {
                if news.sacks || !(news.advances || news.dsack) {
                    self.frto = false;
                }
            } else if news.advances && !recovered {
                self.high = self.flight.next();
                if self.may_send_new() {
                    return Repair::New;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.undo_recovery(now_ns, news);
            return Repair::Nothing;
        }
        Repair::Lost
    }
}
