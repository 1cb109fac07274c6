// SPDX-License-Identifier: BSD-3-Clause
//! BBR version 1 as in Linux 6.12 (Cardwell, Cheng, Gunn, Yeganeh and Jacobson 2017): paces at the greatest delivery rate of
//! the last ten round trips and keeps twice the product of that rate and the least RTT in the network.
//!
//! Startup at 2/ln 2 until the rate stops growing by a quarter for three rounds, then drain, then cycles of eight phases
//! (5/4, 3/4, six times 1) that begin at a random phase. Every ten seconds without a smaller RTT it sends four segments for
//! 200 ms to measure it. Included: long-term rates of policers, compensation of acknowledgements that come in bursts.

use super::clock::Clock;
use super::minmax::{Greatest, Window};
use super::rate::Sample;

/// Rates are in segments per microsecond, times 2^24.
const RATE_SHIFT: u32 = 24;
/// Gains are in 256ths.
const UNIT: u64 = 256;
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = 2 * UNIT;
const CYCLE: [u64; 8] = [
    UNIT * 5 / 4,
    UNIT * 3 / 4,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
];
const RATE_ROUNDS: u64 = CYCLE.len() as u64 + 2;
const LEAST_RTT_NS: u64 = 10_000_000_000;
const PROBE_RTT_NS: u64 = 200_000_000;
const LEAST_CWND: u64 = 4;
const INITIAL_CWND: u64 = 10;
const LONG_TERM_ROUNDS: u64 = 4;
const LONG_TERM_USE_ROUNDS: u64 = 48;
/// Lost of delivered, 256ths.
const LONG_TERM_LOSS: u64 = 50;
/// Bytes per second by which two long-term rates may differ.
const LONG_TERM_DIFFERENCE: u64 = 500;
const EXTRA_ROUNDS: u64 = 5;
const EXTRA_RESET: u64 = 1 << 20;
const EXTRA_US: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeRate,
    ProbeRtt,
}

/// The connection as it is after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub now_ns: u64,
    pub in_flight: u64,
    pub delivered: u64,
    pub delivered_ns: u64,
    pub losses: u64,
    pub srtt_ns: u64,
    /// When pacing lets the next segment leave.
    pub paced_ns: u64,
    pub state: Trouble,
}

/// How the connection recovers from losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    None,
    Recovery,
    Loss,
}

/// What an acknowledgement changes in the connection.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub cwnd: u64,
    /// Holds back the rate samples, as if the application limited the rate.
    pub limits_rate: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Bbr {
    clock: Clock,
    mss_bytes: u64,
    random: u64,
    mode: Mode,
    pacing_gain: u64,
    cwnd_gain: u64,
    pub pacing_bytes_per_s: u64,
    has_seen_rtt: bool,
    rate: Window<Greatest>,
    rounds: u64,
    round_delivered: u64,
    round_start: bool,
    least_rtt_ns: u64,
    least_rtt_tick: u64,
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,
    prior_cwnd: u64,
    prior_trouble: Trouble,
    packet_conservation: bool,
    idle_restart: bool,
    full: Full,
    phase: usize,
    phase_ns: u64,
    long_term: LongTerm,
    extra: Extra,
}

/// Whether startup has filled the path.
#[derive(Clone, Debug, Default)]
struct Full {
    reached: bool,
    rate: u64,
    rounds: u64,
}

/// The rate of a policer, from intervals with many losses.
#[derive(Clone, Debug, Default)]
struct LongTerm {
    is_sampling: bool,
    is_used: bool,
    rounds: u64,
    rate: u64,
    began_ms: u64,
    delivered: u64,
    losses: u64,
}

/// Segments acknowledged beyond what the rate explains.
#[derive(Clone, Debug, Default)]
struct Extra {
    began_ns: u64,
    acked: u64,
    most: [u64; 2],
    rounds: u64,
    index: usize,
}

impl Bbr {
    /// `random` is the seed of its random phases.
    pub fn new(clock: Clock, mss_bytes: u64, random: u64) -> Bbr {
        Bbr {
            clock,
            mss_bytes,
            random,
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_bytes_per_s: 0,
            has_seen_rtt: false,
            rate: Window::new(0, 0),
            rounds: 0,
            round_delivered: 0,
            round_start: false,
            least_rtt_ns: u64::MAX,
            least_rtt_tick: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0,
            prior_trouble: Trouble::None,
            packet_conservation: false,
            idle_restart: false,
            full: Full::default(),
            phase: 0,
            phase_ns: 0,
            long_term: LongTerm::default(),
            extra: Extra::default(),
        }
    }

    /// The connection is established.
    pub fn begin(&mut self, view: &View, cwnd: u64, least_rtt_ns: u64) {
        self.round_delivered = view.delivered;
        self.least_rtt_ns = least_rtt_ns;
        self.least_rtt_tick = self.clock.ticks(view.now_ns);
        self.pace_from_rtt(cwnd, view.srtt_ns);
        self.forget_long_term(view);
        self.extra.began_ns = view.now_ns;
    }

    /// An acknowledgement was taken in. The slow start threshold is set when draining begins.
    pub fn on_ack(
        &mut self,
        view: &View,
        sample: &Sample,
        cwnd: u64,
        ssthresh: &mut u64,
    ) -> Outcome {
        self.measure_rate(view, sample);
        self.measure_bursts(view, sample, cwnd);
        if self.mode == Mode::ProbeRate && self.ends_phase(view, sample) {
            self.advance_phase(view);
        }
        self.look_for_full_path(sample);
        self.drain(view, ssthresh);
        let mut cwnd = cwnd;
        let limits_rate = self.measure_least_rtt(view, sample, &mut cwnd);
        self.set_gains();
        let rate = self.rate_used();
        self.pace(cwnd, view.srtt_ns, rate);
        cwnd = self.window(view, sample, rate, cwnd);
        Outcome { cwnd, limits_rate }
    }

    /// Keeps the window for after a recovery, which begins; the slow start threshold stays.
    pub fn save_window(&mut self, cwnd: u64) {
        self.prior_cwnd = if self.prior_trouble == Trouble::None && self.mode != Mode::ProbeRtt {
            cwnd
        } else {
            self.prior_cwnd.max(cwnd)
        };
    }

    /// A timeout.
    pub fn timed_out(&mut self, view: &View) {
        self.prior_trouble = Trouble::Loss;
        self.full.rate = 0;
        self.round_start = true;
        let mut sample = Sample::default();
        sample.losses = 1;
        self.sample_long_term(view, &sample);
    }

    /// The recovery was not needed.
    pub fn undo(&mut self, view: &View) {
        self.full.rate = 0;
        self.full.rounds = 0;
        self.forget_long_term(view);
    }

    /// Sending begins after the network was empty because the application had nothing to send. Returns the window.
    pub fn resume(&mut self, view: &View, cwnd: u64) -> u64 {
        self.idle_restart = true;
        self.extra.began_ns = view.now_ns;
        self.extra.acked = 0;
        let mut cwnd = cwnd;
        match self.mode {
            Mode::ProbeRate => {
                let rate = self.rate_used();
                self.pacing_gain = UNIT;
                self.pace(cwnd, view.srtt_ns, rate);
            }
            Mode::ProbeRtt => self.end_probe_rtt(view, &mut cwnd),
            _ => {}
        }
        cwnd
    }

    // Rates.

    fn rate_used(&self) -> u64 {
        if self.long_term.is_used {
            self.long_term.rate
        } else {
            self.rate.value()
        }
    }

    /// Bytes per second, a hundredth below the rate times the gain.
    fn bytes_per_s(&self, rate: u64, gain: u64) -> u64 {
        let scaled = (u128::from(rate) * u128::from(self.mss_bytes) * u128::from(gain)) >> 8;
        ((scaled * (1_000_000 / 100 * 99)) >> RATE_SHIFT) as u64
    }

    fn pace_from_rtt(&mut self, cwnd: u64, srtt_ns: u64) {
        let rtt_us = if srtt_ns > 0 {
            self.has_seen_rtt = true;
            (srtt_ns / 1000).max(1)
        } else {
            1000
        };
        self.pacing_bytes_per_s = self.bytes_per_s((cwnd << RATE_SHIFT) / rtt_us, HIGH_GAIN);
    }

    fn pace(&mut self, cwnd: u64, srtt_ns: u64, rate: u64) {
        let paced = self.bytes_per_s(rate, self.pacing_gain);
        if !self.has_seen_rtt && srtt_ns > 0 {
            self.pace_from_rtt(cwnd, srtt_ns);
        }
        if self.full.reached || paced > self.pacing_bytes_per_s {
            self.pacing_bytes_per_s = paced;
        }
    }

    fn measure_rate(&mut self, view: &View, sample: &Sample) {
        self.round_start = false;
        let Some(delivered) = sample.delivered.filter(|_| sample.interval_ns >= 1000) else {
            return;
        };
        if sample.prior_delivered >= self.round_delivered {
            self.round_delivered = view.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(view, sample);
        let rate = (delivered << RATE_SHIFT) / (sample.interval_ns / 1000);
        if !sample.is_app_limited || rate >= self.rate.value() {
            self.rate.add(RATE_ROUNDS, self.rounds, rate);
        }
    }

    // Policers.

    fn begin_long_term(&mut self, view: &View) {
        self.long_term.began_ms = view.delivered_ns / 1_000_000;
        self.long_term.delivered = view.delivered;
        self.long_term.losses = view.losses;
        self.long_term.rounds = 0;
    }

    fn forget_long_term(&mut self, view: &View) {
        self.long_term.rate = 0;
        self.long_term.is_used = false;
        self.long_term.is_sampling = false;
        self.begin_long_term(view);
    }

    fn sample_long_term(&mut self, view: &View, sample: &Sample) {
        if self.long_term.is_used {
            if self.mode == Mode::ProbeRate && self.round_start {
                self.long_term.rounds += 1;
                if self.long_term.rounds >= LONG_TERM_USE_ROUNDS {
                    self.forget_long_term(view);
                    self.begin_probe_rate(view);
                }
            }
            return;
        }
        if !self.long_term.is_sampling {
            if sample.losses == 0 {
                return;
            }
            self.begin_long_term(view);
            self.long_term.is_sampling = true;
        }
        if sample.is_app_limited {
            self.forget_long_term(view);
            return;
        }
        self.long_term.rounds += u64::from(self.round_start);
        if self.long_term.rounds < LONG_TERM_ROUNDS {
            return;
        }
        if self.long_term.rounds > 4 * LONG_TERM_ROUNDS {
            self.forget_long_term(view);
            return;
        }
        if sample.losses == 0 {
            return;
        }
        let losses = view.losses - self.long_term.losses;
        let delivered = view.delivered - self.long_term.delivered;
        if delivered == 0 || losses << 8 < LONG_TERM_LOSS * delivered {
            return;
        }
        let elapsed_ms = (view.delivered_ns / 1_000_000).saturating_sub(self.long_term.began_ms);
        if elapsed_ms == 0 {
            return;
        }
        self.end_long_term(view, (delivered << RATE_SHIFT) / (1000 * elapsed_ms));
    }

    fn end_long_term(&mut self, view: &View, rate: u64) {
        let before = self.long_term.rate;
        if before > 0 {
            let difference = rate.abs_diff(before);
            if difference * UNIT <= UNIT / 8 * before
                || self.bytes_per_s(difference, UNIT) <= LONG_TERM_DIFFERENCE
            {
                self.long_term.rate = (rate + before) >> 1;
                self.long_term.is_used = true;
                self.pacing_gain = UNIT;
                self.long_term.rounds = 0;
                return;
            }
        }
        self.long_term.rate = rate;
        self.begin_long_term(view);
    }

    // Acknowledgements in bursts.

    fn measure_bursts(&mut self, view: &View, sample: &Sample, cwnd: u64) {
        if sample.acked == 0 || sample.delivered.is_none() || sample.interval_ns < 1000 {
            return;
        }
        let rate = self.rate_used();
        let extra = &mut self.extra;
        if self.round_start {
            extra.rounds = (extra.rounds + 1).min(31);
            if extra.rounds >= EXTRA_ROUNDS {
                extra.rounds = 0;
                extra.index ^= 1;
                extra.most[extra.index] = 0;
            }
        }
        let elapsed_us = (view.delivered_ns - extra.began_ns.min(view.delivered_ns)) / 1000;
        let mut expected = ((u128::from(rate) * u128::from(elapsed_us)) >> RATE_SHIFT) as u64;
        if extra.acked <= expected || extra.acked + sample.acked >= EXTRA_RESET {
            extra.acked = 0;
            extra.began_ns = view.delivered_ns;
            expected = 0;
        }
        extra.acked = (extra.acked + sample.acked).min(EXTRA_RESET - 1);
        let surplus = extra.acked.saturating_sub(expected).min(cwnd);
        extra.most[extra.index] = extra.most[extra.index].max(surplus);
    }

    fn burst_window(&self, rate: u64) -> u64 {
        if !self.full.reached {
            return 0;
        }
        let most = (rate * EXTRA_US) >> RATE_SHIFT;
        self.extra.most[0].max(self.extra.most[1]).min(most)
    }

    // Windows.

    fn product(&self, rate: u64, gain: u64) -> u64 {
        if self.least_rtt_ns == u64::MAX {
            return INITIAL_CWND;
        }
        let w = u128::from(rate) * u128::from(self.least_rtt_ns / 1000);
        ((w * u128::from(gain)) >> 8).div_ceil(1 << RATE_SHIFT) as u64
    }

    fn segments_at_once(&self) -> u64 {
        let least = if self.pacing_bytes_per_s < 1_200_000 / 8 {
            1
        } else {
            2
        };
        ((self.pacing_bytes_per_s >> 10).min(65_535) / self.mss_bytes).max(least)
    }

    fn with_quanta(&self, cwnd: u64) -> u64 {
        let cwnd = (cwnd + 3 * self.segments_at_once() + 1) & !1;
        cwnd + 2 * u64::from(self.mode == Mode::ProbeRate && self.phase == 0)
    }

    fn inflight(&self, rate: u64, gain: u64) -> u64 {
        self.with_quanta(self.product(rate, gain))
    }

    /// Segments in the network when pacing lets the next one leave.
    fn in_network(&self, view: &View, in_flight: u64) -> u64 {
        let wait_us = view.paced_ns.saturating_sub(view.now_ns) / 1000;
        let delivered = ((u128::from(self.rate_used()) * u128::from(wait_us)) >> RATE_SHIFT) as u64;
        let mut then = in_flight;
        if self.pacing_gain > UNIT {
            then += self.segments_at_once();
        }
        then.saturating_sub(delivered)
    }

    fn window(&mut self, view: &View, sample: &Sample, rate: u64, cwnd: u64) -> u64 {
        let mut cwnd = cwnd;
        if sample.acked > 0 {
            if let Some(conserved) = self.recover(view, sample, &mut cwnd) {
                cwnd = conserved;
            } else {
                let target =
                    self.with_quanta(self.product(rate, self.cwnd_gain) + self.burst_window(rate));
                if self.full.reached {
                    cwnd = (cwnd + sample.acked).min(target);
                } else if cwnd < target || view.delivered < INITIAL_CWND {
                    cwnd += sample.acked;
                }
                cwnd = cwnd.max(LEAST_CWND);
            }
        }
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(LEAST_CWND);
        }
        cwnd
    }

    /// Lets a window recover from losses; returns the window while packets are conserved.
    fn recover(&mut self, view: &View, sample: &Sample, cwnd: &mut u64) -> Option<u64> {
        if sample.losses > 0 {
            *cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        let (before, now) = (self.prior_trouble, view.state);
        if now == Trouble::Recovery && before != Trouble::Recovery {
            self.packet_conservation = true;
            self.round_delivered = view.delivered;
            *cwnd = view.in_flight + sample.acked;
        } else if before >= Trouble::Recovery && now < Trouble::Recovery {
            *cwnd = (*cwnd).max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prior_trouble = now;
        self.packet_conservation
            .then(|| (*cwnd).max(view.in_flight + sample.acked))
    }

    // Modes.

    fn ends_phase(&self, view: &View, sample: &Sample) -> bool {
        let elapsed_ns = view.delivered_ns.saturating_sub(self.phase_ns);
        let is_full_length = elapsed_ns > self.least_rtt_ns;
        if self.pacing_gain == UNIT {
            return is_full_length;
        }
        let in_flight = self.in_network(view, sample.prior_in_flight);
        let rate = self.rate.value();
        if self.pacing_gain > UNIT {
            return is_full_length
                && (sample.losses > 0 || in_flight >= self.inflight(rate, self.pacing_gain));
        }
        is_full_length || in_flight <= self.inflight(rate, UNIT)
    }

    fn advance_phase(&mut self, view: &View) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_ns = view.delivered_ns;
    }

    fn begin_probe_rate(&mut self, view: &View) {
        self.mode = Mode::ProbeRate;
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.phase = CYCLE.len() - 1 - ((self.random >> 33) % 7) as usize;
        self.advance_phase(view);
    }

    fn look_for_full_path(&mut self, sample: &Sample) {
        if self.full.reached || !self.round_start || sample.is_app_limited {
            return;
        }
        if self.rate.value() >= self.full.rate * 5 / 4 {
            self.full.rate = self.rate.value();
            self.full.rounds = 0;
            return;
        }
        self.full.rounds += 1;
        self.full.reached = self.full.rounds >= 3;
    }

    fn drain(&mut self, view: &View, ssthresh: &mut u64) {
        let rate = self.rate.value();
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
            *ssthresh = self.inflight(rate, UNIT);
        }
        if self.mode == Mode::Drain
            && self.in_network(view, view.in_flight) <= self.inflight(rate, UNIT)
        {
            self.begin_probe_rate(view);
        }
    }

    /// Returns whether rate samples are held back.
    fn measure_least_rtt(&mut self, view: &View, sample: &Sample, cwnd: &mut u64) -> bool {
        let tick = self.clock.ticks(view.now_ns);
        let expired = tick > self.least_rtt_tick + self.clock.ticks_for(LEAST_RTT_NS);
        if let Some(rtt_ns) = sample
            .rtt_ns
            .filter(|rtt_ns| *rtt_ns < self.least_rtt_ns || expired)
        {
            self.least_rtt_ns = rtt_ns;
            self.least_rtt_tick = tick;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window(*cwnd);
            self.probe_rtt_done = None;
        }
        let probes = self.mode == Mode::ProbeRtt;
        if probes {
            if self.probe_rtt_done.is_none() && view.in_flight <= LEAST_CWND {
                self.probe_rtt_done = Some(tick + self.clock.ticks_for(PROBE_RTT_NS));
                self.probe_rtt_round_done = false;
                self.round_delivered = view.delivered;
            } else if self.probe_rtt_done.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.end_probe_rtt(view, cwnd);
                }
            }
        }
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
        probes
    }

    fn end_probe_rtt(&mut self, view: &View, cwnd: &mut u64) {
        let tick = self.clock.ticks(view.now_ns);
        if self.probe_rtt_done.is_none_or(|done| tick <= done) {
            return;
        }
        self.least_rtt_tick = tick;
        *cwnd = (*cwnd).max(self.prior_cwnd);
        if self.full.reached {
            self.begin_probe_rate(view);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn set_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeRate if self.long_term.is_used => (UNIT, CWND_GAIN),
            Mode::ProbeRate => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// A segment per millisecond.
    const RATE: u64 = (1 << RATE_SHIFT) / 1000;

    fn view(now_ms: u64, delivered: u64, in_flight: u64) -> View {
        View {
            now_ns: now_ms * MS,
            in_flight,
            delivered,
            delivered_ns: now_ms * MS,
            losses: 0,
            srtt_ns: 100 * MS,
            paced_ns: 0,
            state: Trouble::None,
        }
    }

    fn sample(prior_delivered: u64, delivered: u64, interval_ms: u64) -> Sample {
        let mut sample = Sample::default();
        sample.prior_delivered = prior_delivered;
        sample.delivered = Some(delivered);
        sample.interval_ns = interval_ms * MS;
        sample.acked = 1;
        sample.rtt_ns = Some(100 * MS);
        sample.prior_in_flight = 100;
        sample
    }

    fn begun() -> Bbr {
        let mut bbr = Bbr::new(Clock::new(MS), 1448, 1);
        bbr.begin(&view(100, 1, 0), 10, 100 * MS);
        bbr
    }

    /// One acknowledgement each round trip of 100 ms, in which `rate` segments per ms are delivered.
    struct Rounds {
        bbr: Bbr,
        now_ms: u64,
        delivered: u64,
        cwnd: u64,
        ssthresh: u64,
    }

    impl Rounds {
        fn new() -> Rounds {
            Rounds {
                bbr: begun(),
                now_ms: 100,
                delivered: 1,
                cwnd: 10,
                ssthresh: 1000,
            }
        }

        fn pass(&mut self, segments: u64, in_flight: u64) {
            let prior = self.delivered;
            self.now_ms += 100;
            self.delivered += segments;
            let (view, mut sample) = (
                view(self.now_ms, self.delivered, in_flight),
                sample(prior, segments, 100),
            );
            sample.acked = segments;
            sample.prior_in_flight = in_flight;
            let outcome = self
                .bbr
                .on_ack(&view, &sample, self.cwnd, &mut self.ssthresh);
            self.cwnd = outcome.cwnd;
        }

        /// Three rounds without growth fill the path.
        fn filled() -> Rounds {
            let mut rounds = Rounds::new();
            for segments in [10, 20, 40, 80, 100, 100, 100, 100] {
                rounds.pass(segments, 300);
            }
            rounds
        }
    }

    #[test]
    fn the_first_pace_is_the_initial_window_per_rtt_at_the_gain_of_startup() {
        let bbr = begun();
        // 10 segments of 1448 bytes per 100 ms, times 739 / 256, less a hundredth.
        let expected = 144_800.0 * 739.0 / 256.0 * 0.99;
        assert!((bbr.pacing_bytes_per_s as f64 / expected - 1.0).abs() < 1e-3);
        assert_eq!((HIGH_GAIN, DRAIN_GAIN), (739, 88));
    }

    #[test]
    fn startup_ends_after_three_rounds_without_a_quarter_of_growth() {
        let mut rounds = Rounds::new();
        for segments in [10, 20, 40, 80, 100, 110, 120] {
            rounds.pass(segments, 300);
            assert_eq!(rounds.bbr.mode, Mode::Startup, "{segments}");
        }
        // 125 is a quarter more than 100, the rate of the last growth.
        rounds.pass(125, 300);
        rounds.pass(130, 300);
        rounds.pass(130, 300);
        assert_eq!(rounds.bbr.mode, Mode::Startup);
        rounds.pass(130, 300);
        assert_eq!(rounds.bbr.mode, Mode::Drain);
        assert_eq!(rounds.bbr.pacing_gain, DRAIN_GAIN);
    }

    #[test]
    fn it_drains_to_one_product_and_then_cycles() {
        let mut rounds = Rounds::filled();
        assert_eq!(rounds.bbr.mode, Mode::Drain);
        // 1 segment per ms for 100 ms, three super-packets (of 2 at this rate), made even.
        let product = rounds.bbr.inflight(RATE, UNIT);
        assert_eq!(product, 106);
        assert_eq!(rounds.ssthresh, 106);
        rounds.pass(100, 107);
        assert_eq!(rounds.bbr.mode, Mode::Drain);
        rounds.pass(100, 106);
        assert_eq!(rounds.bbr.mode, Mode::ProbeRate);
        assert_ne!(
            rounds.bbr.phase, 1,
            "never begins with the drain of a cycle"
        );
        let mut gains = Vec::new();
        for _ in 0..20 {
            // In flight is enough for the probe, and too much for the end of its drain: each phase takes its round trip.
            rounds.now_ms += 1;
            rounds.pass(100, 140);
            gains.push(rounds.bbr.pacing_gain);
        }
        let up = gains.iter().position(|gain| *gain == 320).unwrap();
        assert_eq!(
            gains[up..up + 9],
            [320, 192, 256, 256, 256, 256, 256, 256, 320]
        );
        // Twice the product, the quanta, and what came in one acknowledgement: at most 100 ms at the rate.
        assert_eq!(rounds.bbr.cwnd_gain, 512);
        assert!((305..=310).contains(&rounds.cwnd), "{}", rounds.cwnd);
    }

    #[test]
    fn the_rate_is_the_greatest_of_ten_rounds() {
        let mut rounds = Rounds::filled();
        assert_eq!(rounds.bbr.rate.value(), (100 << RATE_SHIFT) / 100_000);
        let mut halved_after = 0;
        while rounds.bbr.rate.value() == (100 << RATE_SHIFT) / 100_000 {
            rounds.pass(50, 100);
            halved_after += 1;
        }
        assert_eq!(halved_after, 11);
        assert_eq!(rounds.bbr.rate.value(), (50 << RATE_SHIFT) / 100_000);
    }

    #[test]
    fn ten_seconds_without_a_smaller_rtt_leave_four_segments_for_200_ms() {
        let mut rounds = Rounds::filled();
        rounds.pass(100, 100);
        let before = rounds.cwnd;
        while rounds.bbr.mode != Mode::ProbeRtt {
            rounds.pass(100, 100);
            assert!(rounds.now_ms < 11_000);
        }
        assert!(rounds.now_ms > 10_100, "{}", rounds.now_ms);
        assert_eq!(rounds.cwnd, LEAST_CWND);
        rounds.pass(4, 4);
        let began_ms = rounds.now_ms;
        while rounds.bbr.mode == Mode::ProbeRtt {
            rounds.pass(4, 4);
        }
        assert_eq!(
            rounds.now_ms - began_ms,
            300,
            "the first round after 200 ms"
        );
        assert!(rounds.cwnd >= before, "{} {before}", rounds.cwnd);
    }

    #[test]
    fn two_intervals_with_many_losses_at_one_rate_show_a_policer() {
        let mut bbr = begun();
        let (mut now_ms, mut delivered, mut losses) = (1000, 100, 0);
        let mut rounds = 0;
        while !bbr.long_term.is_used {
            now_ms += 100;
            delivered += 50;
            // A quarter of the delivered: more than 50 / 256.
            losses += 13;
            let view = View {
                losses,
                ..view(now_ms, delivered, 100)
            };
            let mut sample = sample(delivered - 50, 50, 100);
            sample.losses = 13;
            bbr.on_ack(&view, &sample, 100, &mut 1000);
            rounds += 1;
            assert!(rounds < 20);
        }
        // 50 segments per 100 ms.
        assert!(bbr.long_term.rate.abs_diff(RATE / 2) < RATE / 100);
        assert_eq!(bbr.rate_used(), bbr.long_term.rate);
        // Two intervals of at least four rounds.
        assert!(rounds >= 8, "{rounds}");
    }
}
