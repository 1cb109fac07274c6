// SPDX-License-Identifier: BSD-3-Clause
//! TCP over a bottleneck: what it repairs, how fast, and at what rate it runs.

mod tcp_link;

use std::collections::{BTreeMap, BTreeSet};

use linkweir_sim::tcp::{Ack, Algorithm, Config, Phase, Profile, Receiver, Segment, Sender};
use tcp_link::{run, Draw, Observer, Outcome, Path};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const ALL: [(Algorithm, Profile); 4] = [
    (Algorithm::Reno, Profile::Linux),
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

/// Sends so many segments, of which the first one is a SYN without payload.
fn finite(algorithm: Algorithm, profile: Profile, segments: u64) -> Config {
    let mut config = Config::new(algorithm, profile);
    config.bytes_to_send = Some((segments - 1) * u64::from(config.mss_bytes));
    config
}

/// Segments of which `Counters::sent` counts one transmission each: without the SYN with Linux.
fn counted(profile: Profile, segments: u64) -> u64 {
    segments - u64::from(profile == Profile::Linux)
}

fn without_hystart(mut config: Config) -> Config {
    config.hystart = false;
    config
}

#[test]
fn the_initial_window_leaves_at_once() {
    for (algorithm, profile) in ALL {
        let config = Config::new(algorithm, profile);
        let mut sender = Sender::new(&config);
        let mut burst = Vec::new();
        burst.extend(std::iter::from_fn(|| sender.next_segment(0)));
        if profile == Profile::Linux {
            // The SYN alone; the window follows its answer. RFC 6928: ten segments.
            assert_eq!(burst.len(), 1);
            let ack = Receiver::new(&config).on_segment(50 * MS, &burst[0]);
            sender.on_ack(100 * MS, &ack.expect("a SYN is answered"));
            burst = std::iter::from_fn(|| sender.next_segment(100 * MS)).collect();
        }
        let expected = if profile == Profile::Linux { 10 } else { 2 };
        assert_eq!(burst.len(), expected);
        assert_eq!(sender.window().flight_segments, expected as u64);
    }
}

#[test]
fn slow_start_doubles_each_round_trip() {
    for (algorithm, profile) in ALL {
        let mut config = without_hystart(Config::new(algorithm, profile));
        config.delayed_ack = false;
        let handshakes = u64::from(profile == Profile::Linux);
        let end_ns = (5 + handshakes) * 100 * MS + 50 * MS;
        let outcome = run(&config, WIDE, end_ns, &mut Blind);
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
            (counted(profile, 2001), 1, 0)
        );
        assert_eq!(
            (counters.recoveries, counters.timeouts, counters.spurious),
            (1, 0, 0)
        );
        let after = script.cwnd_after[0];
        let share = after / script.cwnd_at_loss.floor();
        match (algorithm, profile) {
            (Algorithm::Reno, Profile::Linux) => {
                assert_eq!(after, (script.cwnd_at_loss / 2.0).floor())
            }
            // beta is 717 / 1024, in whole segments.
            (Algorithm::Cubic, Profile::Linux) => {
                assert_eq!(after, (script.cwnd_at_loss * 717.0 / 1024.0).floor())
            }
            // Half of it rounded down, or less by the rule of flight + 3.
            (Algorithm::NewReno, Profile::Ns2) => assert!(share <= 0.5, "{share}"),
            (Algorithm::Cubic, Profile::Ns2) => {
                assert_eq!(after, (script.cwnd_at_loss * 819.0 / 1024.0).floor())
            }
            _ => unreachable!("not in the list"),
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
            (counted(profile, 3012), 12)
        );
        assert_eq!(
            (outcome.counters.recoveries, outcome.counters.timeouts),
            (1, 0)
        );
    }
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    for (algorithm, profile) in ALL {
        let config = without_hystart(finite(algorithm, profile, 2000));
        let mut script = Script {
            losses: BTreeMap::from([(100, 2)]),
            ..Script::default()
        };
        let outcome = run(&config, WIDE, 60 * S, &mut script);
        assert_eq!(outcome.delivered, 2000);
        let counters = outcome.counters;
        assert_eq!((counters.timeouts, counters.retransmitted_fast), (0, 2));
    }
}

#[test]
fn a_lost_tail_of_ns_2_waits_for_the_timeout() {
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        let config = finite(algorithm, Profile::Ns2, 200);
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
        // SRTT 100 ms and no variance: the least timeout of 200 ms; then a round trip.
        let wait_ns = last_gap_ns(&script.ack_times_ns);
        let excess_ns = wait_ns.checked_sub(300 * MS).expect("too early");
        // A few microseconds of transmission, whole ticks, a timer set when the last acknowledgement came.
        assert!(excess_ns < 60 * MS, "{wait_ns}");
    }
}

/// RFC 8985, section 7.2: the probe leaves after two smoothed round-trip times. Linux adds 2 ms; its timer may be an
/// eighth late.
#[test]
fn a_lost_tail_of_linux_is_repaired_by_a_probe_after_two_round_trips() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic, Algorithm::Bbr] {
        let config = finite(algorithm, Profile::Linux, 200);
        let mut script = Script::dropping([197, 198, 199]);
        let outcome = run(&config, WIDE, 60 * S, &mut script);
        let counters = outcome.counters;
        assert_eq!((outcome.delivered, counters.timeouts), (200, 0));
        // The probe is a copy of 199; its SACK shows that 197 and 198 are lost.
        assert_eq!((counters.retransmitted, counters.recoveries), (3, 1));
        let wait_ns = greatest_gap_ns(&script.ack_times_ns);
        let probe_ns = wait_ns.checked_sub(100 * MS).expect("too early");
        assert!(
            (202 * MS..=240 * MS).contains(&probe_ns),
            "{algorithm:?} {probe_ns}"
        );
    }
}

fn greatest_gap_ns(times_ns: &[u64]) -> u64 {
    let gaps = times_ns.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max().unwrap_or(0)
}

fn last_gap_ns(times_ns: &[u64]) -> u64 {
    times_ns[times_ns.len() - 1] - times_ns[times_ns.len() - 2]
}

/// Loses all.
struct Dead(Vec<u64>);

impl Observer for Dead {
    fn drops(&mut self, _nth: u64, _segment: &Segment) -> bool {
        true
    }

    fn on_timeout(&mut self, now_ns: u64, _sender: &Sender) {
        self.0.push(now_ns / MS);
    }
}

#[test]
fn the_timer_of_ns_2_backs_off_while_nothing_gets_through() {
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

/// tcp_syn_linear_timeouts is 4: Linux sends a SYN again after a second, four times more at that distance, and only then
/// doubles it; ip-sysctl.rst gives 67 s for the tenth retransmission.
#[test]
fn a_lost_syn_is_sent_again_each_second_before_linux_backs_off() {
    let mut dead = Dead(Vec::new());
    run(
        &Config::new(Algorithm::Cubic, Profile::Linux),
        WIDE,
        140 * S,
        &mut dead,
    );
    let expected_s = [1, 2, 3, 4, 5, 7, 11, 19, 35, 67, 131];
    assert_eq!(dead.0.len(), expected_s.len(), "{:?}", dead.0);
    for (at_ms, expected_s) in dead.0.into_iter().zip(expected_s) {
        // The timer wheel is up to an eighth late.
        let expected_ms = 1000 * expected_s;
        assert!(
            (expected_ms..=expected_ms * 9 / 8).contains(&at_ms),
            "{at_ms} {expected_ms}"
        );
    }
}

#[test]
fn hystart_leaves_slow_start_before_the_buffer_overflows() {
    // 20 Mbit/s, 100 ms: 167 segments in flight. HyStart looks at trains and delays once a round, so that the window may
    // double once more after it has passed that; without it, slow start ends with the buffer.
    let path = Path {
        rate_bps: 20_000_000,
        buffer_segments: 2500,
        forward_ns: 50 * MS,
        reverse_ns: 50 * MS,
    };
    let config = Config::new(Algorithm::Cubic, Profile::Linux);
    let mut script = Script::default();
    let outcome = run(&config, path, 10 * S, &mut script);
    assert_eq!(outcome.buffer_drops, 0);
    assert_eq!(
        script.phases,
        [Phase::SlowStart, Phase::CongestionAvoidance]
    );
    let threshold = outcome.window.ssthresh_segments.expect("it was set");
    assert!((84.0..668.0).contains(&threshold), "{threshold}");
    let mut script = Script::default();
    assert!(run(&without_hystart(config), path, 10 * S, &mut script).buffer_drops > 1000);
    assert_eq!(script.phases[..2], [Phase::SlowStart, Phase::Recovery]);
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
    for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
        let mut config = Config::new(algorithm, Profile::Linux);
        config.max_window_segments = 64;
        let outcome = run(&config, WIDE, 20 * S, &mut Blind);
        // 64 segments per round trip. The SYN takes one, slow start and the growth of the receive buffer some more.
        let expected = 64 * 200;
        assert!(
            outcome.delivered <= expected && outcome.delivered > expected - 64 * 10,
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
    /// Retransmissions of the SYN, with Linux.
    syns: u64,
}

impl Observer for Lossy {
    fn drops(&mut self, _nth: u64, segment: &Segment) -> bool {
        assert_eq!(segment.retransmission, !self.seen.insert(segment.sequence));
        self.syns += u64::from(segment.retransmission && segment.sequence == 0);
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
                syns: 0,
            };
            let mut config = finite(algorithm, profile, 1500);
            config.timestamps = (seed % 3 == 0) != (profile == Profile::Linux);
            let outcome = run(&config, WIDE, 100_000 * S, &mut lossy);
            assert_eq!(
                outcome.delivered, 1500,
                "seed {seed} {algorithm:?} {profile:?}"
            );
            let counters = outcome.counters;
            // A SYN sent again counts as retransmitted and not as sent.
            let syns = match profile {
                Profile::Linux => lossy.syns,
                Profile::Ns2 => 0,
            };
            assert_eq!(
                counters.sent + syns,
                counted(profile, 1500) + counters.retransmitted
            );
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
                syns: 0,
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
fn reno_follows_the_square_root_law() {
    let mut config = Config::new(Algorithm::Reno, Profile::Linux);
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
/// of section 5.2 knows. Linux rounds the distance to the plateau down, so the window reaches the plateau when less than
/// one segment is missing; a loss from then on does not count as convergence. Coming from a large window, Linux
/// therefore stays at the largest plateau, of those on its way down, that it reaches between two losses.
fn cubic_fluid(period: u64, rtt_s: f64) -> f64 {
    const C: f64 = 0.4;
    const BETA: f64 = 717.0 / 1024.0;
    const STEPS_PER_RTT: f64 = 100.0;
    let (mut w_max, mut w_start) = (10_000.0, 10_000.0 * BETA);
    let (mut sent_in_all, mut steps) = (0.0, 0.0);
    for cycle in 0..400 {
        let k = libm::cbrt((w_max - w_start) / C);
        let (mut sent, mut step, mut w) = (0.0, 0.0, w_start);
        while sent < period as f64 {
            let growing_s = (step / STEPS_PER_RTT - 1.0).max(0.0) * rtt_s;
            let from_max = growing_s - k;
            let distance = C * from_max * from_max * from_max;
            w = if distance > -1.0 && distance < 0.0 {
                w_max
            } else {
                (distance + w_max).max(w_start)
            };
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
            (measured / expected - 1.0).abs() < 0.07,
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
