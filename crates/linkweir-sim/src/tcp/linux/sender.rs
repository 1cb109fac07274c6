// SPDX-License-Identifier: BSD-3-Clause
//! The state of a sender. What changes it is in `ack`, `send`, `timers`, `losses` and `congestion`.

use crate::tcp::config::Config;
use crate::tcp::state::{Counters, Phase, Window};

use super::clock::Clock;
use super::control::Control;
use super::flight::Flight;
use super::plan::Plan;
use super::rack::Rack;
use super::rate::Delivery;
use super::rtt::Rtt;
use super::timer::Timer;

/// No congestion event has set a threshold yet.
pub const INFINITE: u64 = 0x7fff_ffff;
/// Segments by which a segment may be overtaken before it counts as lost, at first and at most.
pub const REORDERING: u64 = 3;
pub const MOST_REORDERING: u64 = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Open,
    Disorder,
    Reduced,
    Recovery,
    Loss,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Sender {
    pub(super) clock: Clock,
    pub(super) flight: Flight,
    /// Segments there are to send, the SYN included.
    pub(super) limit: u64,
    /// One past the last segment that the receive window allows.
    pub(super) window_end: u64,
    pub(super) mss_bytes: u64,

    pub(super) cwnd: u64,
    /// Segments acknowledged since the window last grew.
    pub(super) cwnd_count: u64,
    pub(super) ssthresh: u64,
    pub(super) state: State,
    /// A reduction ends when all below is acknowledged.
    pub(super) high: u64,
    pub(super) control: Control,
    pub(super) prr: Prr,
    pub(super) usage: Usage,
    pub(super) initial_window: u64,

    pub(super) undo: Undo,
    pub(super) reordering: u64,
    pub(super) reorderings_seen: u64,
    pub(super) rack: Rack,
    /// A timeout may have been spurious (F-RTO).
    pub(super) frto: bool,
    /// Segment after the highest one when a tail loss probe was sent, and whether the probe was a retransmission.
    pub(super) probe: Option<Probe>,
    pub(super) ecn: Ecn,

    pub(super) rtt: Rtt,
    pub(super) delivery: Delivery,
    pub(super) timer: Timer,
    /// Timeouts in a row.
    pub(super) timeouts: u64,
    pub(super) plan: Plan,
    /// Segments of the present call of `next_segment` until it returns `None`.
    pub(super) burst: u64,
    pub(super) head_sent: bool,
    /// Pacing: when the next segment may leave, and whether one waits for that.
    pub(super) paced_ns: u64,
    pub(super) waits_for_pace: bool,
    pub(super) last_sent_ns: u64,
    pub(super) syn_ms: u64,
    pub(super) counters: Counters,
}

#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub(super) end: u64,
    pub(super) retransmitted: bool,
}

/// Proportional rate reduction.
#[derive(Clone, Debug, Default)]
pub struct Prr {
    pub(super) prior_cwnd: u64,
    pub(super) delivered: u64,
    pub(super) out: u64,
}

/// Whether the window limits the sender.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub(super) is_limited: bool,
    pub(super) most_outstanding: u64,
    pub(super) round_end: u64,
    pub(super) used: u64,
    pub(super) stamp_ns: u64,
}

/// What may show that a reduction was not needed.
#[derive(Clone, Debug, Default)]
pub struct Undo {
    /// `una` when the reduction began.
    pub(super) marker: Option<u64>,
    /// Retransmissions not yet reported as received twice; negative: none was sent yet.
    pub(super) retransmissions: i64,
    /// Timestamp, ms, of the first retransmission of this recovery.
    pub(super) first_ms: Option<u64>,
    /// 0: it must not be undone.
    pub(super) prior_ssthresh: u64,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecn {
    pub(super) is_on: bool,
    /// Marks are counted (RFC 9768), not echoed: how many the receiver has reported.
    pub(super) counts: bool,
    pub(super) marked: u64,
    /// The next new segment tells that the window was reduced.
    pub(super) queues_cwr: bool,
}

impl Ecn {
    /// The receiver echoes a mark until it is told that the window was reduced (RFC 3168).
    pub(super) fn echoes(&self) -> bool {
        self.is_on && !self.counts
    }

    /// Whether a segment other than new data can carry a mark. RFC 3168 leaves that out; senders that count marks do not
    /// (draft-ietf-tcpm-generalized-ecn).
    pub(super) fn is_on_all(&self) -> bool {
        self.is_on && self.counts
    }
}

impl Sender {
    pub fn new(config: &Config) -> Sender {
        let clock = Clock::new(config.tick_ns);
        Sender {
            clock,
            flight: Flight::new(),
            limit: config.segments_to_send(),
            window_end: 1,
            mss_bytes: u64::from(config.mss_bytes),
            cwnd: 1,
            cwnd_count: 0,
            ssthresh: INFINITE,
            state: State::Open,
            high: 0,
            control: Control::new(config, clock),
            prr: Prr::default(),
            usage: Usage::default(),
            initial_window: u64::from(config.initial_window_segments.max(1)),
            undo: Undo::default(),
            reordering: REORDERING,
            reorderings_seen: 0,
            rack: Rack::default(),
            frto: false,
            probe: None,
            ecn: Ecn {
                is_on: config.ecn,
                counts: config.has_accurate_ecn(),
                marked: 0,
                queues_cwr: false,
            },
            rtt: Rtt::new(config),
            delivery: Delivery::default(),
            timer: Timer::default(),
            timeouts: 0,
            plan: Plan::Open,
            burst: 0,
            head_sent: false,
            paced_ns: 0,
            waits_for_pace: false,
            last_sent_ns: 0,
            syn_ms: 0,
            counters: Counters::default(),
        }
    }

    pub fn window(&self) -> Window {
        Window {
            cwnd_segments: self.cwnd as f64,
            ssthresh_segments: (self.ssthresh < INFINITE).then_some(self.ssthresh as f64),
            flight_segments: self.flight.in_flight(),
            srtt_ns: Some(self.rtt.srtt_ns()).filter(|srtt_ns| *srtt_ns > 0),
            rto_ns: self.rtt.rto_ns(),
            phase: match self.state {
                State::Recovery | State::Reduced => Phase::Recovery,
                State::Loss => Phase::Loss,
                _ if self.cwnd < self.ssthresh => Phase::SlowStart,
                _ => Phase::CongestionAvoidance,
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
        self.flight.una() == self.limit
    }

    /// The SYN was answered.
    pub(super) fn is_established(&self) -> bool {
        self.flight.una() > 0
    }

    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.state, State::Reduced | State::Recovery)
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The threshold as it would be if a reduction in progress were over.
    pub(super) fn current_ssthresh(&self) -> u64 {
        if self.is_reducing() {
            self.ssthresh
        } else {
            self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
        }
    }

    /// The window is what limits the sender; in slow start, half of it is enough.
    pub(super) fn is_window_limited(&self) -> bool {
        self.usage.is_limited
            || (self.in_slow_start() && self.cwnd < 2 * self.usage.most_outstanding)
    }
}
