// SPDX-License-Identifier: BSD-3-Clause
//! TCP over a bottleneck: what it repairs, how fast, and at what rate it runs.

mod tcp_link;

use std::collections::{BTreeMap, BTreeSet};

use linkweir_sim::tcp::{Ack, Algorithm, Block, Config, Phase, Profile, Segment, Sender};
use tcp_link::{run, Draw, Observer, Outcome, Path};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const ALL: [(Algorithm, Profile); 4] = [
    (Algorithm::NewReno, Profile::Linux),
    (Algorithm::Cubic, Profile::Linux),
    (Algorithm::NewReno, Profile::Ns2),
    (Algorithm::Cubic, Profile::Ns2),
];

/// 100 ms round trip, no queue to speak of, no overflow.
const WIDE: Path = Path {
    rate_bps: 10_000_000_000,
    buffer_segments: 100_000,
    forward_ns: 50 * MS,
    reverse_ns: 50 * MS,
};

/// Watches nothing.
struct Blind;

impl Observer for Blind {}

/// Drops the listed transmissions (by sequence: how many times) and notes what the sender did.
#[derive(Default)]
struct Script {
    losses: BTreeMap<u64, u32>,
    ack_times_ns: Vec<u64>,
    cwnd_at_loss: f64,
    cwnd_after: Vec<f64>,
    phases: Vec<Phase>,
}

impl Script {
    fn dropping(sequences: impl IntoIterator<Item = u64>) -> Script {
        Script {
            losses: sequences.into_iter().map(|n| (n, 1)).collect(),
            ..Script::default()
        }
    }
}

impl Observer for Script {
    fn drops(&mut self, _nth: u64, segment: &Segment) -> bool {
        match self.losses.get_mut(&segment.sequence) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    fn on_ack(&mut self, now_ns: u64, _ack: &Ack, sender: &Sender) {
        let window = sender.window();
        self.ack_times_ns.push(now_ns);
        if self.phases.last() != Some(&window.phase) {
            self.phases.push(window.phase);
        }
        if !self.phases.contains(&Phase::Recovery) {
            self.cwnd_at_loss = window.cwnd_segments;
        } else if window.phase != Phase::Recovery {
            self.cwnd_after.push(window.cwnd_segments);
        }
    }
}

/// Sends so many segments, of which the first one of ns-2 is a SYN without payload.
fn finite(algorithm: Algorithm, profile: Profile, segments: u64) -> Config {
    let mut config = Config::new(algorithm, profile);
    let syn = u64::from(profile == Profile::Ns2);
    config.bytes_to_send = Some((segments - syn) * u64::from(config.mss_bytes));
    config
}

fn without_hystart(mut config: Config) -> Config {
    config.hystart = false;
    config
}

#[test]
fn the_initial_window_leaves_at_once() {
    for (algorithm, profile) in ALL {
        let mut sender = Sender::new(&Config::new(algorithm, profile));
        let burst = std::iter::from_fn(|| sender.next_segment(0)).count();
        assert_eq!(burst, if profile == Profile::Linux { 10 } else { 2 });
        assert_eq!(sender.window().flight_segments, burst as u64);
    }
}

#[test]
fn slow_start_doubles_each_round_trip() {
    for (algorithm, profile) in ALL {
        let mut config = without_hystart(Config::new(algorithm, profile));
        config.delayed_ack = false;
        let outcome = run(&config, WIDE, 5 * 100 * MS + 50 * MS, &mut Blind);
        // Rounds 0 to 5 have left when the sixth arrives: 10 (2^6 - 1), or 2 (2^6 - 1).
        let first = u64::from(config.initial_window_segments);
        assert_eq!(outcome.counters.sent, first * 63);
    }
}

#[test]
fn one_loss_one_fast_retransmission() {
    for (algorithm, profile) in ALL {
        let config = without_hystart(finite(algorithm, profile, 2000));
        let mut script = Script::dropping([100]);
        let outcome = run(&config, WIDE, 60 * S, &mut script);
        let counters = outcome.counters;
        assert_eq!(outcome.delivered, 2000);
        assert_eq!(
            (
                counters.sent,
                counters.retransmitted_fast,
                counters.retransmitted_rto
            ),
            (2001, 1, 0)
        );
        assert_eq!(
            (counters.recoveries, counters.timeouts, counters.spurious),
            (1, 0, 0)
        );
        let after = script.cwnd_after[0];
        let share = after / script.cwnd_at_loss.floor();
        match (algorithm, profile) {
            (Algorithm::NewReno, Profile::Linux) => assert_eq!(share, 0.5),
            (Algorithm::Cubic, Profile::Linux) => assert!((share - 0.7).abs() < 1e-12, "{share}"),
            // Half of it rounded down, or less by the rule of flight + 3.
            (Algorithm::NewReno, Profile::Ns2) => assert!(share <= 0.5, "{share}"),
            (Algorithm::Cubic, Profile::Ns2) => {
                assert_eq!(after, (script.cwnd_at_loss * 819.0 / 1024.0).floor())
            }
        }
    }
}

#[test]
fn many_losses_of_one_window_one_recovery() {
    for (algorithm, profile) in ALL {
        let config = without_hystart(finite(algorithm, profile, 3000));
        let losses = [100, 101, 102, 105, 110, 111, 120, 130, 131, 132, 133, 140];
        let outcome = run(&config, WIDE, 60 * S, &mut Script::dropping(losses));
        assert_eq!(outcome.delivered, 3000);
        assert_eq!(
            (outcome.counters.sent, outcome.counters.retransmitted_fast),
            (3012, 12)
        );
        assert_eq!(
            (outcome.counters.recoveries, outcome.counters.timeouts),
            (1, 0)
        );
    }
}

/// Acknowledges up to `cumulative` and one block above it, if it holds any; returns what the sender sends then.
fn answered(sender: &mut Sender, cumulative: u64, sacked: std::ops::Range<u64>) -> Vec<u64> {
    let mut ack = Ack {
        cumulative,
        sack: [Block::default(); 4],
        nsack: u8::from(!sacked.is_empty()),
        echo_ns: None,
        duplicate: false,
    };
    ack.sack[0] = Block {
        start: sacked.start,
        end: sacked.end,
    };
    sender.on_ack(100 * MS, &ack);
    let sent = std::iter::from_fn(|| sender.next_segment(100 * MS));
    sent.map(|segment| segment.sequence).collect()
}

/// RFC 6675, section 4, NextSeg, rule 4.
#[test]
fn a_recovery_has_one_rescue_retransmission_and_the_next_recovery_another() {
    let mut config = without_hystart(finite(Algorithm::NewReno, Profile::Linux, 35));
    config.timestamps = false;
    config.initial_window_segments = 20;
    config.max_window_segments = 20;
    let mut sender = Sender::new(&config);
    assert_eq!(std::iter::from_fn(|| sender.next_segment(0)).count(), 20);
    // The receive window is used up. Segment 0 is lost, and sent again; the last one outstanding is the rescue.
    assert_eq!(answered(&mut sender, 0, 1..4), [0, 19]);
    // 0 comes in behind 4, the window opens by five segments. 5 is lost as well; all up to 23 come in one by one, while
    // the window is used up again, with 24 as the last segment outstanding. It is not rescued.
    let mut sent = answered(&mut sender, 5, 0..0);
    for end in 7..=24 {
        sent.extend(answered(&mut sender, 5, 6..end));
    }
    sent.sort_unstable();
    assert_eq!(sent, [5, 20, 21, 22, 23, 24]);
    assert_eq!(sender.window().phase, Phase::Recovery);

    // The recovery ends. The data ends with the ten segments of the new window, of which the first is lost.
    assert_eq!(
        answered(&mut sender, 25, 0..0),
        (25..35).collect::<Vec<_>>()
    );
    assert_eq!(answered(&mut sender, 25, 26..29), [25, 34]);
    assert_eq!(sender.counters().recoveries, 2);
}

#[test]
fn a_lost_retransmission_waits_for_the_timeout_or_is_marked_again() {
    for (algorithm, profile) in ALL {
        let config = without_hystart(finite(algorithm, profile, 2000));
        let mut script = Script {
            losses: BTreeMap::from([(100, 2)]),
            ..Script::default()
        };
        let outcome = run(&config, WIDE, 60 * S, &mut script);
        assert_eq!(outcome.delivered, 2000);
        match profile {
            Profile::Linux => assert_eq!(
                (
                    outcome.counters.timeouts,
                    outcome.counters.retransmitted_fast
                ),
                (1, 1)
            ),
            Profile::Ns2 => assert_eq!(
                (
                    outcome.counters.timeouts,
                    outcome.counters.retransmitted_fast
                ),
                (0, 2)
            ),
        }
    }
}

#[test]
fn a_lost_tail_waits_for_the_timeout() {
    for (algorithm, profile) in ALL {
        let config = finite(algorithm, profile, 200);
        let mut script = Script::dropping([199]);
        let outcome = run(&config, WIDE, 60 * S, &mut script);
        assert_eq!(
            (
                outcome.delivered,
                outcome.counters.timeouts,
                outcome.counters.recoveries
            ),
            (200, 1, 0)
        );
        // SRTT 100 ms and no variance: 300 ms from the last acknowledgement with Linux's floor, the least timeout of
        // 200 ms with ns-2; then a round trip.
        let acks = &script.ack_times_ns;
        let wait_ns = acks[acks.len() - 1] - acks[acks.len() - 2];
        let timeout_ms = if profile == Profile::Linux { 300 } else { 200 };
        let excess_ns = wait_ns
            .checked_sub((timeout_ms + 100) * MS)
            .expect("too early");
        // A few microseconds of transmission, ns-2's whole ticks, a timer set when the last acknowledgement came.
        assert!(excess_ns < 60 * MS, "{wait_ns}");
    }
}

#[test]
fn the_timer_backs_off_while_nothing_gets_through() {
    struct Dead(Vec<u64>);
    impl Observer for Dead {
        fn drops(&mut self, _nth: u64, _segment: &Segment) -> bool {
            true
        }
        fn on_timeout(&mut self, now_ns: u64, _sender: &Sender) {
            self.0.push(now_ns / MS);
        }
    }
    let mut dead = Dead(Vec::new());
    run(
        &Config::new(Algorithm::Cubic, Profile::Linux),
        WIDE,
        200 * S,
        &mut dead,
    );
    assert_eq!(dead.0, [1000, 3000, 7000, 15_000, 31_000, 63_000, 127_000]);
    let mut dead = Dead(Vec::new());
    run(
        &Config::new(Algorithm::Cubic, Profile::Ns2),
        WIDE,
        400 * S,
        &mut dead,
    );
    assert_eq!(
        dead.0,
        [3000, 9000, 21_000, 45_000, 93_000, 189_000, 309_000]
    );
}

#[test]
fn hystart_leaves_slow_start_before_the_buffer_overflows() {
    // 20 Mbit/s, 100 ms: 167 segments in flight. The delay shows when the window has passed that twice over, 640, and the
    // five rounds that follow multiply it by 1.25^5 at most, to 1953.
    let path = Path {
        rate_bps: 20_000_000,
        buffer_segments: 2500,
        forward_ns: 50 * MS,
        reverse_ns: 50 * MS,
    };
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        let config = Config::new(algorithm, Profile::Linux);
        let mut script = Script::default();
        assert_eq!(run(&config, path, 10 * S, &mut script).buffer_drops, 0);
        assert_eq!(
            script.phases,
            [Phase::SlowStart, Phase::CongestionAvoidance]
        );
        let mut script = Script::default();
        assert!(run(&without_hystart(config), path, 10 * S, &mut script).buffer_drops > 1000);
        assert_eq!(script.phases[..2], [Phase::SlowStart, Phase::Recovery]);
    }
}

#[test]
fn a_full_buffer_keeps_the_link_busy() {
    // One bandwidth-delay product of buffer: once the first overshoot is repaired the link does not idle.
    let path = Path {
        rate_bps: 20_000_000,
        buffer_segments: 200,
        forward_ns: 50 * MS,
        reverse_ns: 50 * MS,
    };
    for (algorithm, profile) in ALL {
        let config = Config::new(algorithm, profile);
        let [early, late] = [40, 80].map(|end_s| run(&config, path, end_s * S, &mut Blind));
        let delivered = late.delivered - early.delivered;
        let busy = delivered as f64 * f64::from(config.segment_bytes()) * 8.0 / 40.0 / 20e6;
        assert!(busy > 0.98, "{algorithm:?} {profile:?} {busy}");
        assert_eq!(late.counters.timeouts, 0, "{algorithm:?} {profile:?}");
    }
}

#[test]
fn the_receive_window_bounds_what_is_outstanding() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        let mut config = Config::new(algorithm, Profile::Linux);
        config.max_window_segments = 64;
        let outcome = run(&config, WIDE, 20 * S, &mut Blind);
        // 64 segments per round trip, less the first rounds.
        let expected = 64 * 200;
        assert!(
            outcome.delivered <= expected && outcome.delivered > expected - 64 * 5,
            "{}",
            outcome.delivered
        );
    }
}

/// Loses each transmission with a fixed probability, acknowledgements too, and checks that the receiver gets all.
struct Lossy {
    draw: Draw,
    per_10000: u64,
    ack_per_10000: u64,
    seen: BTreeSet<u64>,
}

impl Observer for Lossy {
    fn drops(&mut self, _nth: u64, segment: &Segment) -> bool {
        assert_eq!(segment.retransmission, !self.seen.insert(segment.sequence));
        self.draw.below(10_000) < self.per_10000
    }

    fn drops_ack(&mut self) -> bool {
        self.draw.below(10_000) < self.ack_per_10000
    }
}

#[test]
fn everything_arrives_whatever_is_lost() {
    for seed in 1..=20 {
        for (algorithm, profile) in ALL {
            let per_10000 = seed * 100;
            let ack_per_10000 = if seed % 2 == 0 { 0 } else { per_10000 / 2 };
            let mut lossy = Lossy {
                draw: Draw(seed),
                per_10000,
                ack_per_10000,
                seen: BTreeSet::new(),
            };
            let mut config = finite(algorithm, profile, 1500);
            config.timestamps = (seed % 3 == 0) != (profile == Profile::Linux);
            let outcome = run(&config, WIDE, 100_000 * S, &mut lossy);
            assert_eq!(
                outcome.delivered, 1500,
                "seed {seed} {algorithm:?} {profile:?}"
            );
            let counters = outcome.counters;
            assert_eq!(counters.sent, 1500 + counters.retransmitted);
            assert_eq!(lossy.seen.len(), 1500);
        }
    }
}

#[test]
fn a_run_repeats_itself() {
    for (algorithm, profile) in ALL {
        let once = || -> Outcome {
            let mut lossy = Lossy {
                draw: Draw(7),
                per_10000: 100,
                ack_per_10000: 100,
                seen: BTreeSet::new(),
            };
            run(
                &finite(algorithm, profile, 5000),
                WIDE,
                100_000 * S,
                &mut lossy,
            )
        };
        assert_eq!(once(), once());
    }
}

/// Loses every n-th transmission, the loss the response functions assume, and averages the window by round-trip.
struct Periodic {
    period: u64,
}

impl Observer for Periodic {
    fn drops(&mut self, nth: u64, _segment: &Segment) -> bool {
        nth % self.period == self.period - 1
    }
}

/// The mean window over the second half of a run of `rtts` round trips.
fn segments_per_rtt(config: &Config, period: u64, rtts: u64) -> f64 {
    let [half, whole] = [rtts / 2, rtts]
        .map(|n| run(config, WIDE, n * 100 * MS, &mut Periodic { period }).delivered);
    (whole - half) as f64 / (rtts - rtts / 2) as f64
}

#[test]
fn newreno_follows_the_square_root_law() {
    let mut config = Config::new(Algorithm::NewReno, Profile::Linux);
    config.delayed_ack = false;
    for period in [100, 200, 500, 1000] {
        let expected = (1.5 * period as f64).sqrt();
        let measured = segments_per_rtt(&config, period, 3000);
        assert!(
            (measured / expected - 1.0).abs() < 0.25,
            "1/{period}: {measured} against {expected}"
        );
    }
}

/// The mean window of CUBIC as a fluid that loses one segment in `period`: the window function of RFC 9438, section 4.2,
/// with fast convergence (4.7) and one round trip at the reduced window in each recovery, none of which the closed form
/// of section 5.2 knows.
fn cubic_fluid(period: u64, rtt_s: f64) -> f64 {
    const C: f64 = 0.4;
    const BETA: f64 = 0.7;
    const STEPS_PER_RTT: f64 = 100.0;
    let (mut w_max, mut w_start) = (100.0, 70.0);
    let (mut sent_in_all, mut steps) = (0.0, 0.0);
    for cycle in 0..400 {
        let k = libm::cbrt((w_max - w_start) / C);
        let (mut sent, mut step, mut w) = (0.0, 0.0, w_start);
        while sent < period as f64 {
            let growing_s = (step / STEPS_PER_RTT - 1.0).max(0.0) * rtt_s;
            let from_max = growing_s - k;
            w = (C * from_max * from_max * from_max + w_max).max(w_start);
            sent += w / STEPS_PER_RTT;
            step += 1.0;
        }
        if cycle >= 200 {
            sent_in_all += sent;
            steps += step;
        }
        w_max = if w < w_max { w * (1.0 + BETA) / 2.0 } else { w };
        w_start = w * BETA;
    }
    sent_in_all / (steps / STEPS_PER_RTT)
}

#[test]
fn cubic_follows_its_response_function() {
    let mut config = Config::new(Algorithm::Cubic, Profile::Linux);
    config.delayed_ack = false;
    for period in [10_000_u64, 20_000, 50_000] {
        // RFC 9438, section 5.2: 1.054 (RTT/p)^(3/4) segments where that exceeds Reno's, RTT in seconds.
        let closed_form = 1.054 * libm::pow(0.1 * period as f64, 0.75);
        let expected = cubic_fluid(period, 0.1);
        let rtts = (60.0 * period as f64 / closed_form) as u64;
        let measured = segments_per_rtt(&config, period, rtts);
        assert!(
            (measured / expected - 1.0).abs() < 0.05,
            "1/{period}: {measured} against {expected} (closed form {closed_form})"
        );
    }
}

#[test]
fn cubic_is_as_fast_as_reno_where_that_is_faster() {
    let mut config = Config::new(Algorithm::Cubic, Profile::Linux);
    config.delayed_ack = false;
    for period in [100, 300, 1000] {
        let reno = (1.5 * period as f64).sqrt();
        let measured = segments_per_rtt(&config, period, 3000);
        assert!(
            (measured / reno - 1.0).abs() < 0.25,
            "1/{period}: {measured} against {reno}"
        );
    }
}
