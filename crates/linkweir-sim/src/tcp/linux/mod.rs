// SPDX-License-Identifier: BSD-3-Clause
//! The sender of the `Linux` profile: TCP as Linux 6.12 sends it, in whole segments.
//!
//! | file | holds |
//! |---|---|
//! | `ack` | what an acknowledgement changes: SACK, the states, PRR, undo |
//! | `send` | what is sent next: retransmissions, new segments, probes; pacing |
//! | `timers` | retransmission timeout, tail loss probe, reordering timeout |
//! | `rack` | losses by time |
//! | `flight`, `rate`, `rtt`, `clock`, `minmax` | outstanding segments, delivery rates, round trips, ticks, extremes over time |
//! | `control`, `cubic`, `bbr` | congestion control |
//! | `receiver`, `buffer` | the other end, and its window |
//!
//! The states are those of the kernel: open; disorder (SACKs, no loss yet); reduced after a congestion mark (CWR); recovery;
//! loss (after a timeout). Sources: RFC 5681, 6298, 6675, 6937 (PRR with the slow start bound), 8985 (RACK-TLP), 5682
//! (F-RTO), 3522 and 4015 (undo by timestamps), 2883 and 3708 (undo by D-SACK), 3168 (ECN), 7323, 2861 (windows after
//! idle times), and the behaviour of Linux 6.12 where that differs.

mod ack;
mod bbr;
mod buffer;
mod clock;
mod control;
mod cubic;
mod flight;
mod minmax;
mod rack;
mod rate;
mod receiver;
mod rtt;
mod send;
mod timers;

pub use receiver::Receiver;

use super::config::Config;
use super::state::{Counters, Phase, Window};
use clock::Clock;
use control::Control;
use flight::Flight;
use rack::Rack;
use rate::Delivery;
use rtt::Rtt;
use send::Plan;
use timers::Timer;

/// No congestion event has set a threshold yet.
const INFINITE: u64 = 0x7fff_ffff;
/// Segments by which a segment may be overtaken before it counts as lost, at first and at most.
const REORDERING: u64 = 3;
const MOST_REORDERING: u64 = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Open,
    Disorder,
    Reduced,
    Recovery,
    Loss,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Sender {
    clock: Clock,
    flight: Flight,
    /// Segments there are to send, the SYN included.
    limit: u64,
    /// One past the last segment that the receive window allows.
    window_end: u64,
    mss_bytes: u64,

    cwnd: u64,
    /// Segments acknowledged since the window last grew.
    cwnd_count: u64,
    ssthresh: u64,
    state: State,
    /// A reduction ends when all below is acknowledged.
    high: u64,
    control: Control,
    prr: Prr,
    usage: Usage,
    initial_window: u64,

    undo: Undo,
    reordering: u64,
    reorderings_seen: u64,
    rack: Rack,
    /// A timeout may have been spurious (F-RTO).
    frto: bool,
    /// Segment after the highest one when a tail loss probe was sent, and whether the probe was a retransmission.
    probe: Option<Probe>,
    ecn: Ecn,

    rtt: Rtt,
    delivery: Delivery,
    timer: Timer,
    /// Timeouts in a row.
    timeouts: u64,
    plan: Plan,
    /// Segments of the present call of `next_segment` until it returns `None`.
    burst: u64,
    head_sent: bool,
    /// Pacing: when the next segment may leave, and whether one waits for that.
    paced_ns: u64,
    waits_for_pace: bool,
    last_sent_ns: u64,
    syn_ms: u64,
    counters: Counters,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    end: u64,
    retransmitted: bool,
}

/// Proportional rate reduction.
#[derive(Clone, Debug, Default)]
struct Prr {
    prior_cwnd: u64,
    delivered: u64,
    out: u64,
}

/// Whether the window limits the sender.
#[derive(Clone, Debug, Default)]
struct Usage {
    is_limited: bool,
    most_outstanding: u64,
    round_end: u64,
    used: u64,
    stamp_ns: u64,
}

/// What may show that a reduction was not needed.
#[derive(Clone, Debug, Default)]
struct Undo {
    /// `una` when the reduction began.
    marker: Option<u64>,
    /// Retransmissions not yet reported as received twice; negative: none was sent yet.
    retransmissions: i64,
    /// Timestamp, ms, of the first retransmission of this recovery.
    first_ms: Option<u64>,
    /// 0: it must not be undone.
    prior_ssthresh: u64,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Default)]
struct Ecn {
    is_on: bool,
    /// The next new segment tells that the window was reduced.
    queues_cwr: bool,
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
    fn is_established(&self) -> bool {
        self.flight.una() > 0
    }

    fn is_reducing(&self) -> bool {
        matches!(self.state, State::Reduced | State::Recovery)
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The threshold as it would be if a reduction in progress were over.
    fn current_ssthresh(&self) -> u64 {
        if self.is_reducing() {
            self.ssthresh
        } else {
            self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
        }
    }

    /// The window is what limits the sender; in slow start, half of it is enough.
    fn is_window_limited(&self) -> bool {
        self.usage.is_limited
            || (self.in_slow_start() && self.cwnd < 2 * self.usage.most_outstanding)
    }
}

/// Timestamps of the timestamps option: milliseconds.
fn stamp_ms(ns: u64) -> u64 {
    ns / 1_000_000
}
