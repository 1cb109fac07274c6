// SPDX-License-Identifier: BSD-3-Clause
//! CUBIC as Linux 6.12 computes it: the window function of RFC 9438 in whole segments and ticks, and HyStart (Ha and Rhee
//! 2011) at the end of slow start.
//!
//! Differences from RFC 9438: the target is one least RTT ahead; the window grows by one segment per `count` segments
//! acknowledged, a whole number computed at most 32 times a second while the window stays; the Reno-friendly estimate grows
//! by a constant 0.53 segments per window, also above the former window; the plateau of the first epoch grows by at least
//! one segment per 20; a timeout forgets all. HyStart ends slow start when acknowledgements have come back to back for half
//! the least RTT, or when eight round-trip times of a round exceed the least one by an eighth (4 to 16 ms).

use super::clock::Clock;

/// beta, in 1024ths.
const BETA_1024: u64 = 717;
/// C = 0.4 segments per second cubed, in 1024ths.
const C_1024: f64 = 410.0;
/// Segments acknowledged per segment of Reno-friendly growth, as eighths of the window: 8 (1 + beta) / (3 (1 - beta)).
const FRIENDLY_8: u64 = 8 * (1024 + BETA_1024) / (3 * (1024 - BETA_1024));
/// Time in the window function is counted in 1024ths of a second.
const TIME_HZ: u64 = 1024;

const HYSTART_LOW_WINDOW: u64 = 16;
const HYSTART_SAMPLES: u32 = 8;
const ACK_DELTA_NS: u64 = 2_000_000;
/// A train of acknowledgements may be longer by the time of two super-packets each way, at most a millisecond.
const BURST_BYTES: u64 = 4 * 65536;
const BURST_NS: u64 = 1_000_000;
const DELAY_MIN_NS: u64 = 4_000_000;
const DELAY_MAX_NS: u64 = 16_000_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Cubic {
    clock: Clock,
    /// Window before the last reduction, less where it converges; 0 if none is remembered.
    last_max: u64,
    /// Tick at which the epoch began.
    epoch: Option<u64>,
    /// Plateau of this epoch, and when it is reached, 1024ths of a second.
    origin: u64,
    k: u64,
    /// Segments acknowledged per segment of growth.
    count: u64,
    /// Window and tick of the last computation.
    last_cwnd: u64,
    last_tick: u64,
    /// Segments acknowledged that the Reno-friendly estimate has not used, and that estimate.
    acked: u64,
    friendly: u64,
    /// Least RTT since the last timeout; 0 before the first.
    delay_min_ns: u64,
    hystart: Option<HyStart>,
}

/// What HyStart looks at besides times.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub una: u64,
    pub next: u64,
    pub cwnd: u64,
    /// Twice the window per smoothed RTT.
    pub pacing_bytes_per_s: u64,
}

#[derive(Clone, Debug, Default)]
struct HyStart {
    /// It has found the end of slow start.
    found: bool,
    round_began_ns: u64,
    round_end: u64,
    last_ack_ns: u64,
    least_ns: u64,
    samples: u32,
}

impl HyStart {
    fn begin_round(&mut self, now_ns: u64, next: u64) {
        self.round_began_ns = now_ns;
        self.last_ack_ns = now_ns;
        self.round_end = next;
        self.least_ns = u64::MAX;
        self.samples = 0;
    }
}

impl Cubic {
    pub fn new(clock: Clock, hystart: bool) -> Cubic {
        Cubic {
            clock,
            last_max: 0,
            epoch: None,
            origin: 0,
            k: 0,
            count: 0,
            last_cwnd: 0,
            last_tick: 0,
            acked: 0,
            friendly: 0,
            delay_min_ns: 0,
            hystart: hystart.then(HyStart::default),
        }
    }

    /// The connection is established, with `next` the first segment to send.
    pub fn begin(&mut self, now_ns: u64, next: u64) {
        if let Some(hystart) = &mut self.hystart {
            hystart.begin_round(now_ns, next);
        }
    }

    /// Segments acknowledged per segment of growth, when `acked` were acknowledged in congestion avoidance.
    #[inline]
    pub fn growth_count(&mut self, now_ns: u64, cwnd: u64, acked: u64) -> u64 {
        let tick = self.clock.ticks(now_ns);
        self.acked += acked;
        if self.last_cwnd == cwnd && tick - self.last_tick <= self.clock.ticks_in_a_32nd() {
            return self.count;
        }
        if self.epoch.is_none() || tick != self.last_tick {
            self.last_cwnd = cwnd;
            self.last_tick = tick;
            self.follow_curve(tick, cwnd, acked);
        }
        self.follow_reno(cwnd);
        self.count = self.count.max(2);
        self.count
    }

    fn follow_curve(&mut self, tick: u64, cwnd: u64, acked: u64) {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.acked = acked;
                self.friendly = cwnd;
                self.origin = self.last_max.max(cwnd);
                let rise = (self.origin - cwnd) as f64;
                self.k = (libm::cbrt(rise * 1024.0 / C_1024) * TIME_HZ as f64) as u64;
                self.epoch = Some(tick);
                tick
            }
        };
        let ahead = self.clock.ticks_for(self.delay_min_ns);
        let elapsed_ns = self.clock.ns(tick - epoch + ahead);
        let t = (u128::from(elapsed_ns) * u128::from(TIME_HZ) / 1_000_000_000) as u64;
        let offset = t.abs_diff(self.k) as f64 / TIME_HZ as f64;
        let delta = (C_1024 / 1024.0 * offset * offset * offset) as u64;
        let target = if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin + delta
        };
        self.count = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            100 * cwnd
        };
        if self.last_max == 0 {
            self.count = self.count.min(20);
        }
    }

    fn follow_reno(&mut self, cwnd: u64) {
        let per_segment = (cwnd * FRIENDLY_8) >> 3;
        if self.acked > per_segment && per_segment > 0 {
            // As many whole steps as leave something.
            let steps = (self.acked - 1) / per_segment;
            self.acked -= steps * per_segment;
            self.friendly += steps;
        }
        if self.friendly > cwnd {
            self.count = self.count.min(cwnd / (self.friendly - cwnd));
        }
    }

    /// Slow start threshold after a congestion event, with fast convergence.
    pub fn reduce(&mut self, cwnd: u64) -> u64 {
        self.epoch = None;
        self.last_max = if cwnd < self.last_max {
            cwnd * (1024 + BETA_1024) / 2048
        } else {
            cwnd
        };
        (cwnd * BETA_1024 / 1024).max(2)
    }

    /// A timeout: all but the parameters is forgotten.
    pub fn forget(&mut self, now_ns: u64, next: u64) {
        let mut hystart = self.hystart.take();
        if let Some(hystart) = &mut hystart {
            hystart.found = false;
            hystart.begin_round(now_ns, next);
        }
        *self = Cubic {
            hystart,
            ..Cubic::new(self.clock, false)
        };
    }

    /// The sender was idle since `last_ns`: the curve stands still.
    pub fn resume(&mut self, now_ns: u64, last_ns: u64) {
        let now = self.clock.ticks(now_ns);
        let idle = now - self.clock.ticks(last_ns);
        if let Some(epoch) = &mut self.epoch {
            *epoch = (*epoch + idle).min(now);
        }
    }

    /// A round-trip time was measured; false if it does not count, in the second after a recovery.
    #[inline]
    pub fn measured(&mut self, now_ns: u64, rtt_ns: u64) -> bool {
        let second = self.clock.ticks_for(1_000_000_000);
        if self
            .epoch
            .is_some_and(|epoch| self.clock.ticks(now_ns) - epoch < second)
        {
            return false;
        }
        let rtt_ns = rtt_ns.max(1);
        if self.delay_min_ns == 0 || rtt_ns < self.delay_min_ns {
            self.delay_min_ns = rtt_ns;
        }
        true
    }

    /// Whether slow start ends with this round-trip time, after [`measured`](Cubic::measured).
    pub fn ends_slow_start(&mut self, now_ns: u64, rtt_ns: u64, round: Round) -> bool {
        let delay_min_ns = self.delay_min_ns;
        let Some(hystart) = self.hystart.as_mut().filter(|hystart| !hystart.found) else {
            return false;
        };
        if round.una > hystart.round_end {
            hystart.begin_round(now_ns, round.next);
        }
        if round.cwnd < HYSTART_LOW_WINDOW {
            return false;
        }
        let burst_ns = (BURST_BYTES * 1_000_000_000)
            .checked_div(round.pacing_bytes_per_s)
            .map_or(0, |ns| ns.min(BURST_NS));
        if now_ns - hystart.last_ack_ns <= ACK_DELTA_NS {
            hystart.last_ack_ns = now_ns;
            hystart.found |= now_ns - hystart.round_began_ns > (delay_min_ns + burst_ns) / 2;
        }
        hystart.least_ns = hystart.least_ns.min(rtt_ns);
        if hystart.samples < HYSTART_SAMPLES {
            hystart.samples += 1;
        } else {
            let rise_ns = (delay_min_ns / 8).clamp(DELAY_MIN_NS, DELAY_MAX_NS);
            hystart.found |= hystart.least_ns > delay_min_ns + rise_ns;
        }
        hystart.found
    }
}
