// SPDX-License-Identifier: BSD-3-Clause
//! Explicit congestion notification (RFC 3168) of the `Linux` profile over a queue that marks, and outages.

mod tcp_link;

use linkweir_sim::tcp::{Ack, Algorithm, Config, Phase, Profile, Segment, Sender};
use tcp_link::{run, Observer, Path};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// 10 Mbit/s and 40 ms: 33 segments in the network. The buffer holds far more than the queue that marks lets through.
const PATH: Path = Path {
    rate_bps: 10_000_000,
    buffer_segments: 2000,
    forward_ns: 20 * MS,
    reverse_ns: 20 * MS,
};

/// Marks what finds at least so many segments waiting, and checks the sequence of CE, ECE and CWR.
struct Marker {
    threshold: usize,
    /// The receiver has seen CE and no CWR since.
    echoing: bool,
    echoes: u64,
    /// The last acknowledgement carried an echo.
    echo: bool,
    /// A reduction whose CWR has not been sent.
    reduced: bool,
    phase: Phase,
    una: u64,
    /// The last segment with CWR.
    last_answer: u64,
    reductions: u64,
    answers: u64,
}

impl Marker {
    fn new(threshold: usize) -> Marker {
        Marker {
            threshold,
            echoing: false,
            echoes: 0,
            echo: false,
            reduced: false,
            phase: Phase::SlowStart,
            una: 0,
            last_answer: 0,
            reductions: 0,
            answers: 0,
        }
    }
}

impl Observer for Marker {
    fn marks(&mut self, waiting: usize) -> bool {
        waiting >= self.threshold
    }

    fn drops(&mut self, _nth: u64, segment: &Segment) -> bool {
        // Section 6.1.5: no retransmission is ECN-capable, and neither is the SYN (6.1.1).
        let is_new_data = !segment.retransmission && segment.sequence > 0;
        assert_eq!(segment.ecn_capable, is_new_data);
        if is_new_data {
            // Section 6.1.2: CWR is on the first new segment after the reduction, and there is one reduction per window
            // of data: that is, not before the last CWR is acknowledged.
            assert!(segment.reduced || !self.reduced, "{}", segment.sequence);
            if segment.reduced {
                assert!(self.una > self.last_answer, "{}", segment.sequence);
                assert!(self.echo, "nothing else reduces the window here");
                self.last_answer = segment.sequence;
            }
            self.answers += u64::from(segment.reduced);
            self.reduced = false;
        } else {
            assert!(!segment.reduced);
        }
        false
    }

    fn on_receipt(&mut self, _now_ns: u64, segment: &Segment, ack: Option<&Ack>) {
        // Section 6.1.3.
        if segment.reduced {
            self.echoing = false;
        }
        self.echoing |= segment.marked;
        if let Some(ack) = ack {
            assert_eq!(ack.echoes_mark, self.echoing);
        }
    }

    fn on_ack(&mut self, _now_ns: u64, ack: &Ack, sender: &Sender) {
        self.echoes += u64::from(ack.echoes_mark);
        self.una = self.una.max(ack.cumulative);
        self.echo = ack.echoes_mark;
        let phase = sender.window().phase;
        if phase == Phase::Recovery && self.phase != phase {
            self.reductions += 1;
            self.reduced = true;
        }
        self.phase = phase;
    }
}

fn config(algorithm: Algorithm) -> Config {
    Config {
        ecn: true,
        hystart: false,
        ..Config::new(algorithm, Profile::Linux)
    }
}

#[test]
fn marks_take_the_place_of_losses() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
        let mut marker = Marker::new(20);
        let outcome = run(&config(algorithm), PATH, 60 * S, &mut marker);
        assert_eq!(outcome.buffer_drops, 0);
        assert_eq!(outcome.counters.retransmitted, 0);
        assert!(outcome.marked > 20, "{algorithm:?} {}", outcome.marked);
        assert!(marker.reductions > 10, "{}", marker.reductions);
        assert!(marker.echoes >= marker.reductions);
        assert!(marker.answers >= marker.reductions);
        // A window of data is at least the 33 segments of the path or the reduced window.
        assert!(marker.answers < outcome.delivered / 25);
        // Segments behind the one with CWR are marked as well, so that two windows in a row are reduced.
        let busy = outcome.delivered as f64 * 1500.0 * 8.0 / 60.0 / 10e6;
        assert!(busy > 0.8, "{algorithm:?} {busy}");
    }
}

/// Losses and marks together: a retransmission never carries ECT.
#[test]
fn retransmissions_are_not_ecn_capable() {
    struct Both(bool, u64);
    impl Observer for Both {
        fn marks(&mut self, waiting: usize) -> bool {
            waiting >= 20
        }
        fn drops(&mut self, nth: u64, segment: &Segment) -> bool {
            let is_new_data = !segment.retransmission && segment.sequence > 0;
            assert_eq!(segment.ecn_capable, is_new_data);
            assert!(!segment.reduced || is_new_data);
            self.1 += u64::from(segment.retransmission);
            nth % 300 == 299
        }
        fn on_receipt(&mut self, _now_ns: u64, segment: &Segment, ack: Option<&Ack>) {
            if segment.reduced {
                self.0 = false;
            }
            self.0 |= segment.marked;
            if let Some(ack) = ack {
                assert_eq!(ack.echoes_mark, self.0);
            }
        }
    }
    for algorithm in [Algorithm::Reno, Algorithm::Cubic, Algorithm::Bbr] {
        let mut both = Both(false, 0);
        run(&config(algorithm), PATH, 30 * S, &mut both);
        assert!(both.1 > 20);
    }
}

/// BBR version 1 takes no notice of marks, as in Linux.
#[test]
fn bbr_does_not_respond_to_marks() {
    struct All(bool);
    impl Observer for All {
        fn marks(&mut self, _waiting: usize) -> bool {
            self.0
        }
    }
    let config = config(Algorithm::Bbr);
    let [with, without] = [true, false].map(|marks| {
        let outcome = run(&config, PATH, 20 * S, &mut All(marks));
        (outcome.delivered, outcome.marked > 0)
    });
    assert!(with.1 && !without.1);
    let ratio = with.0 as f64 / without.0 as f64;
    assert!((0.97..1.03).contains(&ratio), "{ratio}");
    // CUBIC, whose every segment is marked, is reduced to next to nothing.
    let cubic = Config {
        algorithm: Algorithm::Cubic,
        ..config
    };
    assert!(run(&cubic, PATH, 20 * S, &mut All(true)).delivered < without.0 / 2);
}

/// Without negotiation nothing is marked.
#[test]
fn without_ecn_no_segment_can_be_marked() {
    struct All;
    impl Observer for All {
        fn marks(&mut self, _waiting: usize) -> bool {
            true
        }
        fn on_receipt(&mut self, _now_ns: u64, segment: &Segment, ack: Option<&Ack>) {
            assert!(!segment.ecn_capable && !segment.reduced);
            assert!(ack.is_none_or(|ack| !ack.echoes_mark));
        }
    }
    let config = Config::new(Algorithm::Cubic, Profile::Linux);
    assert_eq!(run(&config, PATH, 5 * S, &mut All).marked, 0);
}

/// The link stands still for a while and loses nothing.
struct Outage {
    from_ns: u64,
    to_ns: u64,
    before: Option<(f64, Option<f64>)>,
    after: Option<(f64, Option<f64>)>,
}

impl Observer for Outage {
    fn serves_from(&mut self, now_ns: u64) -> u64 {
        if (self.from_ns..self.to_ns).contains(&now_ns) {
            self.to_ns
        } else {
            now_ns
        }
    }

    fn on_ack(&mut self, now_ns: u64, _ack: &Ack, sender: &Sender) {
        let window = sender.window();
        let state = (window.cwnd_segments, window.ssthresh_segments);
        if now_ns <= self.from_ns {
            self.before = Some(state);
        } else if now_ns >= self.to_ns + 200 * MS {
            self.after.get_or_insert(state);
        }
    }
}

/// The kernel retransmitted three segments in such a run: a probe, and the head at each timeout.
#[test]
fn an_outage_without_losses_costs_a_handful_of_retransmissions_and_no_window() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic, Algorithm::Bbr] {
        for timestamps in [true, false] {
            let mut outage = Outage {
                from_ns: 10 * S,
                to_ns: 12 * S,
                before: None,
                after: None,
            };
            let mut config = Config::new(algorithm, Profile::Linux);
            config.timestamps = timestamps;
            config.max_window_segments = 60;
            let outcome = run(&config, PATH, 20 * S, &mut outage);
            let counters = outcome.counters;
            let tag = format!("{algorithm:?} {timestamps} {counters:?}");
            assert_eq!(outcome.buffer_drops, 0, "{tag}");
            assert!((1..=4).contains(&counters.timeouts), "{tag}");
            assert!((1..=5).contains(&counters.retransmitted), "{tag}");
            let (before, after) = (outage.before.unwrap(), outage.after.unwrap());
            if algorithm != Algorithm::Bbr {
                assert!(after.0 >= before.0, "{tag} {before:?} {after:?}");
                assert_eq!(after.1.is_none(), before.1.is_none(), "{tag}");
                assert!(after.1 >= before.1, "{tag}");
            }
        }
    }
}
