// SPDX-License-Identifier: BSD-3-Clause
//! The sender of the `Linux` profile: SACK loss recovery of RFC 6675 with proportional rate reduction (RFC 6937).
//!
//! All segments are full-sized, so IsLost of RFC 6675 (section 4) means: three or more segments above are SACKed.
//! The lower bound of the three highest SACKed segments therefore separates lost from unsettled, and only ever rises.
//! A retransmission that is lost again waits for the timeout. Deviations, all as in Linux: the slow start
//! threshold comes from cwnd; a timeout during a recovery does not reduce it a second time; after a timeout the SACK
//! information is kept and everything else outstanding counts as lost; losses seen in that phase are
//! retransmitted at once and answered by a recovery when the phase ends. The initial window is not validated for idle
//! periods: the source is bulk data.

use super::config::{Algorithm, Config};
use super::cubic::Cubic;
use super::hystart::HyStart;
use super::newreno;
use super::rto::Rto;
use super::scoreboard::{Scoreboard, Standing};
use super::segment::{Ack, Segment};
use super::state::{Counters, Phase, Window};

#[derive(Clone, Debug)]
enum Control {
    NewReno,
    Cubic(Cubic),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Recovery,
    Loss,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Next segment the receiver expects.
    una: u64,
    /// Next new segment to send.
    next: u64,
    /// Segments there are to send.
    limit: u64,
    max_window: u64,
    cwnd: f64,
    ssthresh: f64,
    state: State,
    /// The window was what stopped the last transmission.
    window_limited: bool,
    /// Recovery or loss ends when all below is acknowledged.
    recovery_point: u64,
    board: Scoreboard,
    /// Segments retransmitted although not lost (NextSeg rule 3): twice in the network.
    doubled: u64,
    /// The three highest SACKed segments, highest first, and how many there have been (up to three).
    highest: [u64; 3],
    nhighest: u8,
    /// All outstanding segments below, unless SACKed, are lost.
    lost_below: u64,
    /// Highest segment retransmitted in this recovery, plus 1.
    high_rxt: u64,
    /// The one rescue retransmission of this recovery is used up.
    rescued: bool,
    prr: Prr,
    control: Control,
    hystart: Option<HyStart>,
    rto: Rto,
    /// `u64::MAX`: not armed.
    deadline_ns: u64,
    timestamps: bool,
    /// Without timestamps: the segment being timed and when it was sent.
    timed: Option<(u64, u64)>,
    counters: Counters,
}

/// Proportional rate reduction, RFC 6937, section 3.1, slow start reduction bound.
#[derive(Clone, Debug, Default)]
struct Prr {
    recover_fs: u64,
    delivered: u64,
    out: u64,
}

impl Prr {
    /// Segments that may be sent after an acknowledgement that delivered `delivered`.
    fn quota(&mut self, delivered: u64, pipe: u64, ssthresh: u64) -> u64 {
        self.delivered += delivered;
        let quota = if pipe > ssthresh {
            (self.delivered * ssthresh)
                .div_ceil(self.recover_fs)
                .saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + 1;
            limit.min(ssthresh - pipe)
        };
        // The fast retransmission itself is sent even if the ratio allows nothing.
        quota.max(u64::from(self.out == 0))
    }
}

impl Sender {
    pub fn new(config: &Config) -> Sender {
        Sender {
            una: 0,
            next: 0,
            limit: config.segments_to_send(),
            max_window: u64::from(config.max_window_segments.max(1)),
            cwnd: f64::from(config.initial_window_segments.max(1)),
            ssthresh: f64::INFINITY,
            state: State::Open,
            window_limited: false,
            recovery_point: 0,
            board: Scoreboard::default(),
            doubled: 0,
            highest: [0; 3],
            nhighest: 0,
            lost_below: 0,
            high_rxt: 0,
            rescued: false,
            prr: Prr::default(),
            control: match config.algorithm {
                Algorithm::NewReno => Control::NewReno,
                Algorithm::Cubic => Control::Cubic(Cubic::default()),
            },
            hystart: config.hystart.then(HyStart::new),
            rto: Rto::new(config),
            deadline_ns: u64::MAX,
            timestamps: config.timestamps,
            timed: None,
            counters: Counters::default(),
        }
    }

    #[inline]
    pub fn on_ack(&mut self, now_ns: u64, ack: &Ack) {
        self.counters.spurious += u64::from(ack.duplicate);
        if ack.cumulative < self.una || ack.cumulative > self.next {
            return;
        }
        let acked = ack.cumulative - self.una;
        let mut rtt_ns = None;
        let mut delivered = acked;
        if acked > 0 {
            rtt_ns = self.measure(now_ns, ack);
            delivered -= self.advance(ack.cumulative);
            self.deadline_ns = if self.una < self.next {
                now_ns + self.rto.timeout_ns()
            } else {
                u64::MAX
            };
        }
        if ack.nsack > 0 {
            delivered += self.take_sack(ack);
        }
        match self.state {
            State::Open if !self.has_loss() => {
                if acked > 0 {
                    self.grow(now_ns, delivered, rtt_ns);
                }
            }
            State::Open => self.enter_recovery(delivered),
            State::Recovery | State::Loss => self.on_ack_in_recovery(now_ns, acked, delivered),
        }
    }

    pub fn on_timer(&mut self, now_ns: u64) {
        if now_ns < self.deadline_ns {
            return;
        }
        self.counters.timeouts += 1;
        if self.state == State::Open || (self.state == State::Loss && self.rto.backoff() == 0) {
            self.reduce();
        }
        if let Control::Cubic(cubic) = &mut self.control {
            cubic.forget();
        }
        self.cwnd = 1.0;
        self.board.mark_all_lost(self.next);
        self.doubled = 0;
        self.lost_below = self.next;
        self.recovery_point = self.next;
        self.state = State::Loss;
        self.timed = None;
        self.rto.back_off();
        self.deadline_ns = now_ns + self.rto.timeout_ns();
    }

    pub fn supply(&mut self, segments: u64) {
        self.limit = self.limit.saturating_add(segments);
    }

    pub fn on_handshake(&mut self, rtt_ns: u64) {
        self.rto.sample(rtt_ns);
    }

    #[inline]
    pub fn next_segment(&mut self, now_ns: u64) -> Option<Segment> {
        if self.pipe() >= self.cwnd as u64 {
            self.window_limited = true;
            return None;
        }
        if self.board.queued() == 0
            && self.next < self.limit
            && self.next - self.una < self.max_window
        {
            return Some(self.send_new(now_ns));
        }
        let Some(sequence) = self.next_to_retransmit() else {
            self.window_limited = false;
            return None;
        };
        Some(self.retransmit(now_ns, sequence))
    }

    #[inline]
    pub fn deadline_ns(&self) -> Option<u64> {
        (self.deadline_ns != u64::MAX).then_some(self.deadline_ns)
    }

    pub fn window(&self) -> Window {
        Window {
            cwnd_segments: self.cwnd,
            ssthresh_segments: self.ssthresh.is_finite().then_some(self.ssthresh),
            flight_segments: self.pipe(),
            srtt_ns: self.rto.srtt_ns(),
            rto_ns: self.rto.timeout_ns(),
            phase: match self.state {
                State::Recovery => Phase::Recovery,
                State::Loss => Phase::Loss,
                State::Open if self.cwnd < self.ssthresh => Phase::SlowStart,
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

    /// Pipe of RFC 6675, section 4.
    #[inline]
    fn pipe(&self) -> u64 {
        self.next - self.una - self.board.sacked() - self.board.queued() + self.doubled
    }

    /// The round-trip time that this acknowledgement gives.
    #[inline]
    fn measure(&mut self, now_ns: u64, ack: &Ack) -> Option<u64> {
        let sent_ns = if self.timestamps {
            ack.echo_ns
        } else {
            self.timed
                .take_if(|timed| timed.0 < ack.cumulative)
                .map(|timed| timed.1)
        };
        let rtt_ns = now_ns.saturating_sub(sent_ns?);
        self.rto.sample(rtt_ns);
        Some(rtt_ns)
    }

    /// Moves `una`; returns how many of the segments passed had been SACKed.
    #[inline]
    fn advance(&mut self, una: u64) -> u64 {
        let (lost_below, doubled) = (self.lost_below, &mut self.doubled);
        let sacked = self.board.advance(una, |sequence| {
            *doubled -= u64::from(sequence >= lost_below)
        });
        self.una = una;
        sacked
    }

    /// Takes in the SACK blocks and marks what they prove lost; returns the segments newly SACKed.
    fn take_sack(&mut self, ack: &Ack) -> u64 {
        let mut delivered = 0;
        for block in &ack.sack[..usize::from(ack.nsack).min(4)] {
            let end = block.end.min(self.next);
            if end <= self.una {
                continue;
            }
            self.board.cover(end);
            let (lost_below, doubled, highest) =
                (self.lost_below, &mut self.doubled, &mut self.highest);
            let nhighest = &mut self.nhighest;
            self.board.sack(block.start, end, |sequence, standing| {
                delivered += 1;
                if standing == Standing::Retransmitted && sequence >= lost_below {
                    *doubled -= 1;
                }
                *nhighest = (*nhighest + 1).min(3);
                let mut entering = sequence;
                for slot in highest.iter_mut() {
                    if entering > *slot {
                        std::mem::swap(&mut entering, slot);
                    }
                }
            });
        }
        if self.nhighest == 3 && self.highest[2] > self.lost_below {
            let mut at = self.lost_below.max(self.una);
            self.lost_below = self.highest[2];
            while let Some(sequence) = self.board.next_pending(at, self.lost_below) {
                if self.board.is_retransmitted(sequence) {
                    self.doubled -= 1;
                } else {
                    self.board.mark_lost(sequence);
                }
                at = sequence + 1;
            }
        }
        delivered
    }

    /// The first outstanding segment is lost.
    #[inline]
    fn has_loss(&self) -> bool {
        self.lost_below > self.una && !self.board.is_empty()
    }

    fn on_ack_in_recovery(&mut self, now_ns: u64, acked: u64, delivered: u64) {
        if self.una < self.recovery_point {
            if self.state == State::Recovery {
                self.reduce_in_proportion(delivered);
            } else if acked > 0 {
                self.grow(now_ns, delivered, None);
            }
            return;
        }
        if self.state == State::Recovery {
            self.cwnd = self.ssthresh;
        }
        self.state = State::Open;
        if self.has_loss() {
            self.enter_recovery(delivered);
        }
    }

    fn enter_recovery(&mut self, delivered: u64) {
        self.counters.recoveries += 1;
        self.state = State::Recovery;
        self.recovery_point = self.next;
        self.high_rxt = self.una;
        self.rescued = false;
        self.prr = Prr {
            recover_fs: self.next - self.una,
            delivered: 0,
            out: 0,
        };
        self.reduce();
        self.reduce_in_proportion(delivered);
    }

    fn reduce_in_proportion(&mut self, delivered: u64) {
        let pipe = self.pipe();
        let quota = self.prr.quota(delivered, pipe, self.ssthresh as u64);
        self.cwnd = (pipe + quota) as f64;
    }

    /// A congestion event: sets the slow start threshold.
    fn reduce(&mut self) {
        self.hystart = None;
        self.ssthresh = match &mut self.control {
            Control::NewReno => newreno::reduce(self.cwnd),
            Control::Cubic(cubic) => cubic.reduce(self.cwnd),
        };
    }

    #[inline]
    fn grow(&mut self, now_ns: u64, delivered: u64, rtt_ns: Option<u64>) {
        if !self.window_limited {
            if let Control::Cubic(cubic) = &mut self.control {
                cubic.pause(now_ns);
            }
            return;
        }
        let mut left = delivered;
        if self.cwnd < self.ssthresh {
            left = self.slow_start(delivered, rtt_ns);
            if left == 0 {
                return;
            }
        }
        self.cwnd = match &mut self.control {
            Control::NewReno => newreno::grow(self.cwnd, left),
            Control::Cubic(cubic) => {
                cubic.grow(now_ns, self.rto.srtt_ns().unwrap_or(0), self.cwnd, left)
            }
        };
    }

    /// Returns the segments left for congestion avoidance.
    fn slow_start(&mut self, delivered: u64, rtt_ns: Option<u64>) -> u64 {
        if let Some(hystart) = &mut self.hystart {
            match hystart.grow(delivered, rtt_ns, self.una, self.next) {
                Some(growth) => self.cwnd += growth,
                None => {
                    self.ssthresh = self.cwnd;
                    self.hystart = None;
                }
            }
            return 0;
        }
        let grown = self.cwnd + delivered as f64;
        self.cwnd = grown.min(self.ssthresh);
        (grown - self.cwnd) as u64
    }

    #[inline]
    fn send_new(&mut self, now_ns: u64) -> Segment {
        let sequence = self.next;
        self.next += 1;
        self.counters.sent += 1;
        self.prr.out += 1;
        if !self.timestamps && self.timed.is_none() {
            self.timed = Some((sequence, now_ns));
        }
        if self.deadline_ns == u64::MAX {
            self.deadline_ns = now_ns + self.rto.timeout_ns();
        }
        Segment {
            sequence,
            retransmission: false,
            sent_ns: now_ns,
        }
    }

    /// NextSeg of RFC 6675 but for its rule 2, new data.
    fn next_to_retransmit(&mut self) -> Option<u64> {
        if let Some(sequence) = self.board.next_lost(0) {
            self.high_rxt = self.high_rxt.max(sequence + 1);
            return Some(sequence);
        }
        if self.state != State::Recovery || self.nhighest == 0 {
            return None;
        }
        // Rule 3: unsettled segments below the highest SACKed one.
        let mut at = self.high_rxt.max(self.una);
        while let Some(sequence) = self
            .board
            .next_pending(at, self.highest[0].min(self.board.high()))
        {
            if !self.board.is_retransmitted(sequence) {
                self.high_rxt = sequence + 1;
                self.doubled += 1;
                return Some(sequence);
            }
            at = sequence + 1;
        }
        if self.rescued {
            return None;
        }
        self.rescued = true;
        self.rescue()
    }

    /// Rule 4, once per recovery: the last segment outstanding, unless it is SACKed or retransmitted. RFC 6675 leaves
    /// this one out of pipe; here it counts.
    fn rescue(&mut self) -> Option<u64> {
        self.board.cover(self.next);
        let last = self.next - 1;
        let open = self.board.next_pending(last, self.next).is_some()
            && !self.board.is_retransmitted(last);
        self.doubled += u64::from(open);
        open.then_some(last)
    }

    fn retransmit(&mut self, now_ns: u64, sequence: u64) -> Segment {
        self.board.mark_retransmitted(sequence);
        self.timed = None;
        self.prr.out += 1;
        self.counters.sent += 1;
        if self.state == State::Loss {
            self.counters.retransmitted_rto += 1;
        } else {
            self.counters.retransmitted_fast += 1;
        }
        if self.deadline_ns == u64::MAX {
            self.deadline_ns = now_ns + self.rto.timeout_ns();
        }
        Segment {
            sequence,
            retransmission: true,
            sent_ns: now_ns,
        }
    }
}
