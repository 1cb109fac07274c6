// SPDX-License-Identifier: BSD-3-Clause
//! The sender of the `Ns2` profile: Agent/TCP/Linux of ns-2.35 (Wei and Cao 2006) with an endless source.
//!
//! It differs from the RFCs in these points:
//!
//! * A segment is lost once data four or more above it is SACKed (forward acknowledgement, Mathis and Mahdavi 1996). A
//!   retransmission is lost once a segment first sent after it is SACKed, or a retransmission made five or more later is
//!   acknowledged.
//! * A loss opens a recovery: ssthresh by the algorithm, cwnd to ssthresh (CUBIC) or half of it (NewReno), both at once,
//!   while a second limit walks down from the old window by one for every two acknowledgements (rate halving).
//!   A loss during the phase after a timeout opens a recovery too.
//! * A recovery or that phase ends when all that was outstanding at its start is acknowledged. The board is emptied, SACKed
//!   segments above included, and a cwnd below ssthresh becomes ssthresh, or flight + 3 if that is less.
//! * The window grows by one per acknowledgement while cwnd <= ssthresh, whatever the acknowledgement covers, and only if the
//!   flight before the acknowledgement filled the window.
//! * Every acknowledgement restarts the timer. A timeout always reduces ssthresh.
//! * The window is bounded by `max_window_segments` as a congestion window, not as a receive window.
//! * One segment at a time is timed; the back-off ends when a segment so timed is acknowledged.
//!
//! * What an acknowledgement brings is worked in by one pass along the board. A retransmission acknowledged in that pass
//!   overtakes others only from the next pass on. A pass that brings nothing above the highest SACKed segment and no
//!   retransmission ends at the first segment not SACKed beyond the blocks reported: if no lost segment came into sight by
//!   then, new data is sent instead, until the next pass.
//!
//! After a slow start that overran the buffer, these rules and the emptied board keep the original busy with needless
//! retransmissions for many round trips. The model does the same, for about as long.

use std::collections::VecDeque;

use super::config::{Algorithm, Config};
use super::ns2_cubic::Ns2Cubic;
use super::ns2_rto::TickRto;
use super::scoreboard::{Scoreboard, Standing};
use super::segment::{Ack, Segment};
use super::state::{Counters, Phase, Window};

/// A hole is lost once SACKed data lies this far above it: DupThresh + 1.
const REACH: u64 = 4;
/// Most segments beyond the flight that the end of a recovery allows.
const MAX_BURST: u64 = 3;

#[derive(Clone, Debug)]
enum Control {
    /// Segments acknowledged since the last growth.
    NewReno(u64),
    Cubic(Ns2Cubic),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Recovery,
    Loss,
}

/// A retransmission in the order made.
#[derive(Clone, Copy, Debug)]
struct Retransmission {
    sequence: u64,
    id: u32,
    /// Next new segment when it was made.
    next: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Sender {
    una: u64,
    next: u64,
    limit: u64,
    cwnd_clamp: u64,
    cwnd: u64,
    /// Acknowledgements since the last growth.
    cwnd_acks: u64,
    ssthresh: u64,
    state: State,
    /// Flight allowed while it walks down to the new window.
    halving: u64,
    /// Recovery or loss ends when all below is acknowledged.
    recover: u64,
    board: Scoreboard,
    /// One past the highest SACKed segment; 0: none.
    fack_end: u64,
    /// All outstanding segments below, unless SACKed or retransmitted, are marked.
    marked_below: u64,
    /// Retransmissions outstanding, oldest first; entries of segments acknowledged or lost meanwhile are stale.
    retransmissions: VecDeque<Retransmission>,
    /// Number of the last retransmission of each segment, by its place in the board's rings.
    ids: Vec<u32>,
    next_id: u32,
    /// Highest number among retransmissions acknowledged.
    acked_id: Option<u32>,
    /// Where the search for the next retransmission starts; `u64::MAX`: nothing is to be retransmitted now.
    search_from: u64,
    control: Control,
    rto: TickRto,
    /// The segment being timed and when it was sent.
    timed: Option<(u64, u64)>,
    deadline_ns: u64,
    timestamps: bool,
    counters: Counters,
}

impl Sender {
    pub fn new(config: &Config) -> Sender {
        let cwnd_clamp = u64::from(config.max_window_segments.max(1));
        Sender {
            una: 0,
            next: 0,
            limit: config.segments_to_send(),
            cwnd_clamp,
            cwnd: u64::from(config.initial_window_segments.max(1)),
            cwnd_acks: 0,
            ssthresh: cwnd_clamp,
            state: State::Open,
            halving: 0,
            recover: 0,
            board: Scoreboard::default(),
            fack_end: 0,
            marked_below: 0,
            retransmissions: VecDeque::new(),
            ids: Vec::new(),
            next_id: 0,
            acked_id: None,
            search_from: u64::MAX,
            control: match config.algorithm {
                Algorithm::Cubic => Control::Cubic(Ns2Cubic::new()),
                // It has no other one.
                Algorithm::NewReno
                | Algorithm::Reno
                | Algorithm::Bbr
                | Algorithm::Prague
                | Algorithm::Dctcp => Control::NewReno(0),
            },
            rto: TickRto::new(config),
            timed: None,
            deadline_ns: u64::MAX,
            timestamps: config.timestamps,
            counters: Counters::default(),
        }
    }

    #[inline]
    pub fn on_ack(&mut self, now_ns: u64, ack: &Ack) {
        self.counters.spurious += u64::from(ack.dsack.is_some());
        if ack.cumulative < self.una || ack.cumulative > self.next {
            return;
        }
        let flight_before = self.flight();
        let acked = ack.cumulative - self.una;
        let mut sacked = false;
        let mut lost = false;
        let mut thorough = acked > 0 && self.advance(ack.cumulative);
        if ack.nsack > 0 || thorough {
            let overtaking = self.acked_id;
            let blocks_end = self.take_sack(ack, &mut sacked, &mut thorough);
            if !self.board.is_empty() {
                lost = self.mark_losses(overtaking);
                self.search_from = self.first_lost_seen(blocks_end, thorough);
            }
        }
        self.measure(now_ns, ack);
        self.deadline_ns = if self.una < self.limit {
            now_ns + self.rto.timeout_ns()
        } else {
            u64::MAX
        };
        if acked > 0 && self.state == State::Open {
            if let Control::Cubic(cubic) = &mut self.control {
                cubic.acked(acked);
            }
        }
        if acked > 0 {
            if let Control::NewReno(count) = &mut self.control {
                *count += acked;
            }
            if self.state != State::Recovery {
                self.grow(now_ns, ack, flight_before);
            }
        }
        if acked == 0 || sacked || self.state != State::Open {
            self.change_state(lost);
        }
        self.halving = self.halving.min(self.flight() + 1);
    }

    pub fn on_timer(&mut self, now_ns: u64) {
        if now_ns < self.deadline_ns {
            return;
        }
        self.counters.timeouts += 1;
        self.reduce();
        if let Control::Cubic(cubic) = &mut self.control {
            *cubic = Ns2Cubic::new();
        }
        self.cwnd = 1;
        self.halving = 0;
        self.recover = self.next;
        self.state = State::Loss;
        let grown = self.board.mark_all_lost(self.next);
        self.forget_retransmissions();
        if grown {
            self.ids.resize(self.board.capacity() as usize, 0);
        }
        self.marked_below = self.next;
        self.search_from = self.una;
        self.timed = None;
        self.rto.back_off();
        self.deadline_ns = now_ns + self.rto.timeout_ns();
    }

    pub fn supply(&mut self, segments: u64) {
        self.limit = self.limit.saturating_add(segments);
    }

    #[inline]
    pub fn next_segment(&mut self, now_ns: u64) -> Option<Segment> {
        if self.flight() >= self.cwnd.max(self.halving) {
            return None;
        }
        let segment = match self.board.next_lost(self.search_from) {
            Some(sequence) => self.retransmit(now_ns, sequence),
            None if self.next < self.limit => self.send_new(now_ns),
            None => return None,
        };
        self.halving = self.halving.min((self.flight() - 1).max(1));
        Some(segment)
    }

    #[inline]
    pub fn deadline_ns(&self) -> Option<u64> {
        (self.deadline_ns != u64::MAX).then_some(self.deadline_ns)
    }

    pub fn window(&self) -> Window {
        Window {
            cwnd_segments: self.cwnd.max(self.halving) as f64,
            ssthresh_segments: (self.ssthresh < self.cwnd_clamp).then_some(self.ssthresh as f64),
            flight_segments: self.flight(),
            srtt_ns: self.rto.srtt_ns(),
            rto_ns: self.rto.timeout_ns(),
            phase: match self.state {
                State::Recovery => Phase::Recovery,
                State::Loss => Phase::Loss,
                State::Open if self.cwnd <= self.ssthresh => Phase::SlowStart,
                State::Open => Phase::CongestionAvoidance,
            },
        }
    }

    pub fn counters(&self) -> Counters {
        Counters {
            retransmitted: self.counters.retransmitted_fast + self.counters.retransmitted_rto,
            ..self.counters
        }
    }

    pub fn is_done(&self) -> bool {
        self.una == self.limit
    }

    #[inline]
    fn flight(&self) -> u64 {
        self.next - self.una - self.board.sacked() - self.board.queued()
    }

    #[inline]
    fn measure(&mut self, now_ns: u64, ack: &Ack) {
        if let Some(sent_ns) = ack.echo_ns.filter(|_| self.timestamps) {
            self.rto.sample(sent_ns, now_ns);
            self.rto.reset_backoff();
        }
        if let Some((_, sent_ns)) = self.timed.take_if(|timed| timed.0 < ack.cumulative) {
            self.rto.reset_backoff();
            if !self.timestamps {
                self.rto.sample(sent_ns, now_ns);
            }
        }
    }

    /// Moves `una`; true if that acknowledged a retransmission later than all acknowledged before.
    #[inline]
    fn advance(&mut self, una: u64) -> bool {
        let known = !self.board.is_empty();
        let before = self.acked_id;
        let (ids, acked_id) = (&self.ids, &mut self.acked_id);
        self.board.advance(una, |sequence| {
            let id = ids[sequence as usize & (ids.len() - 1)];
            *acked_id = (*acked_id).max(Some(id));
        });
        self.una = una;
        if known && self.board.is_empty() {
            self.clear();
            return false;
        }
        self.acked_id > before
    }

    /// Takes in the SACK blocks and returns the end of the highest; sets `sacked` if they report anything new, `thorough`
    /// if they reach higher than all before or acknowledge a retransmission.
    fn take_sack(&mut self, ack: &Ack, sacked: &mut bool, thorough: &mut bool) -> u64 {
        let mut blocks_end = 0;
        for block in &ack.sack[..usize::from(ack.nsack).min(4)] {
            let end = block.end.min(self.next);
            if end <= self.una {
                continue;
            }
            blocks_end = blocks_end.max(end);
            self.cover(end);
            *thorough |= end > self.fack_end;
            self.fack_end = self.fack_end.max(end);
            let (ids, acked_id) = (&self.ids, &mut self.acked_id);
            self.board.sack(block.start, end, |sequence, standing| {
                *sacked = true;
                if standing == Standing::Retransmitted {
                    *thorough = true;
                    let id = ids[sequence as usize & (ids.len() - 1)];
                    *acked_id = (*acked_id).max(Some(id));
                }
            });
        }
        blocks_end
    }

    /// The original looks for the first lost segment along the board, but unless the acknowledgement was `thorough` no
    /// further than the first segment not SACKed beyond the blocks reported.
    fn first_lost_seen(&self, blocks_end: u64, thorough: bool) -> u64 {
        let Some(lost) = self.board.next_lost(0) else {
            return u64::MAX;
        };
        if thorough || lost < blocks_end || self.board.next_pending(blocks_end, lost).is_none() {
            return lost;
        }
        if blocks_end == 0 {
            return self.search_from;
        }
        u64::MAX
    }

    /// Marks what is lost by now, `overtaking` being the highest retransmission acknowledged before this acknowledgement's
    /// blocks; true if anything was.
    fn mark_losses(&mut self, overtaking: Option<u32>) -> bool {
        let mut found = false;
        // A segment s is lost when the highest SACKed one, fack_end - 1, is at least REACH above it.
        let below = self.fack_end.saturating_sub(REACH);
        if below > self.marked_below {
            let mut at = self.marked_below.max(self.una);
            while let Some(sequence) = self.board.next_pending(at, below) {
                if !self.board.is_lost(sequence) && !self.board.is_retransmitted(sequence) {
                    self.board.mark_lost(sequence);
                    found = true;
                }
                at = sequence + 1;
            }
            self.marked_below = below;
        }
        while let Some(&oldest) = self.retransmissions.front() {
            if self.is_outstanding(&oldest) {
                let overtaken = overtaking.is_some_and(|acked| oldest.id + (REACH as u32) < acked);
                if oldest.next >= self.fack_end && !overtaken {
                    break;
                }
                self.board.mark_lost(oldest.sequence);
                found = true;
            }
            self.retransmissions.pop_front();
        }
        found
    }

    fn is_outstanding(&self, retransmission: &Retransmission) -> bool {
        let sequence = retransmission.sequence;
        sequence >= self.una
            && sequence < self.board.high()
            && self.board.is_retransmitted(sequence)
            && self.ids[sequence as usize & (self.ids.len() - 1)] == retransmission.id
    }

    fn change_state(&mut self, lost: bool) {
        if self.state != State::Open && self.una >= self.recover {
            self.clear();
            if self.cwnd < self.ssthresh {
                self.cwnd = self.ssthresh.min(self.flight() + MAX_BURST);
            }
            self.state = State::Open;
            self.halving = 0;
            return;
        }
        if self.state != State::Recovery && lost {
            self.counters.recoveries += 1;
            self.state = State::Recovery;
            self.recover = self.next;
            self.halving = self.cwnd;
            self.reduce();
            self.cwnd = match self.control {
                Control::NewReno(_) => self.ssthresh / 2,
                Control::Cubic(_) => self.ssthresh,
            };
        }
    }

    /// A congestion event: sets ssthresh and restarts the counts of growth.
    fn reduce(&mut self) {
        self.cwnd_acks = 0;
        self.ssthresh = match &mut self.control {
            Control::NewReno(count) => {
                *count = 0;
                (self.cwnd / 2).max(2)
            }
            Control::Cubic(cubic) => cubic.reduce(self.cwnd),
        };
    }

    #[inline]
    fn grow(&mut self, now_ns: u64, ack: &Ack, flight_before: u64) {
        let now_ms = now_ns / 1_000_000;
        if let Control::Cubic(cubic) = &mut self.control {
            if let Some(sent_ns) = ack.echo_ns.filter(|_| self.state == State::Open) {
                cubic.measure(now_ms, (now_ns - sent_ns) / 1_000_000);
            }
        }
        if flight_before < self.cwnd {
            return;
        }
        if self.cwnd <= self.ssthresh {
            self.slow_start();
            return;
        }
        match &mut self.control {
            Control::NewReno(count) => {
                if *count >= self.cwnd {
                    *count -= self.cwnd;
                    self.cwnd = (self.cwnd + 1).min(self.cwnd_clamp);
                }
            }
            Control::Cubic(cubic) => {
                let acks = cubic.acks_per_segment(now_ms, self.cwnd);
                if self.cwnd_acks >= acks {
                    self.cwnd = (self.cwnd + 1).min(self.cwnd_clamp);
                    self.cwnd_acks = 0;
                } else {
                    self.cwnd_acks += 1;
                }
            }
        }
    }

    fn slow_start(&mut self) {
        if let Control::NewReno(count) = &mut self.control {
            *count = 0;
        }
        self.cwnd_acks += self.cwnd;
        while self.cwnd_acks >= self.cwnd {
            self.cwnd_acks -= self.cwnd;
            if self.cwnd == self.cwnd_clamp {
                break;
            }
            self.cwnd += 1;
        }
    }

    #[inline]
    fn send_new(&mut self, now_ns: u64) -> Segment {
        let sequence = self.next;
        if self.una == sequence || self.deadline_ns == u64::MAX {
            self.deadline_ns = now_ns + self.rto.timeout_ns();
        }
        self.next += 1;
        self.counters.sent += 1;
        if self.timed.is_none() {
            self.timed = Some((sequence, now_ns));
        }
        Segment {
            sequence,
            retransmission: false,
            sent_ns: now_ns,
            bare: false,
            ecn_capable: false,
            marked: false,
            reduced: false,
        }
    }

    fn retransmit(&mut self, now_ns: u64, sequence: u64) -> Segment {
        self.board.mark_retransmitted(sequence);
        let slot = sequence as usize & (self.ids.len() - 1);
        self.ids[slot] = self.next_id;
        self.retransmissions.push_back(Retransmission {
            sequence,
            id: self.next_id,
            next: self.next,
        });
        self.next_id += 1;
        self.counters.sent += 1;
        if self.state == State::Loss {
            self.counters.retransmitted_rto += 1;
        } else {
            self.counters.retransmitted_fast += 1;
        }
        Segment {
            sequence,
            retransmission: true,
            sent_ns: now_ns,
            bare: false,
            ecn_capable: false,
            marked: false,
            reduced: false,
        }
    }

    fn cover(&mut self, to: u64) {
        if self.board.cover(to) {
            self.ids.clear();
            self.ids.resize(self.board.capacity() as usize, 0);
            let mask = self.ids.len() - 1;
            for retransmission in &self.retransmissions {
                self.ids[retransmission.sequence as usize & mask] = retransmission.id;
            }
        }
    }

    /// Empties the board.
    fn clear(&mut self) {
        self.board.clear();
        self.fack_end = 0;
        self.marked_below = 0;
        self.search_from = u64::MAX;
        self.forget_retransmissions();
    }

    fn forget_retransmissions(&mut self) {
        self.retransmissions.clear();
        self.next_id = 0;
        self.acked_id = None;
    }
}
