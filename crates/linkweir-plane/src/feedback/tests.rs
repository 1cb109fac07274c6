// SPDX-License-Identifier: BSD-3-Clause
//! Tests of feedback over a simulated path, in virtual time.

use super::reporter::REPORT_NS;
use super::*;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const BOUNDS: Bounds = Bounds {
    floor_bps: 1_000_000,
    ceiling_bps: 40_000_000,
    delay_ns: 25 * MS,
    anticipate: false,
};
const WIRE: Wire = Wire {
    overhead_bytes: 40,
    mpu_bytes: 0,
};
/// The receiver's clock is behind by more than the way takes.
const BEHIND_NS: u64 = 90 * S;

/// A sender, a queue below whose link has a capacity of its own, and a receiver.
struct Path {
    feedback: Feedback,
    reporter: Reporter,
    capacity_bps: f64,
    /// Time through the empty link, either way, ns.
    way_ns: u64,
    /// Most the queue below may be long, ns.
    queue_ns: u64,
    /// Rate of the sender's traffic, bit/s.
    offered_bps: f64,
    /// By how much a mark comes later, at the most and at random, ns.
    jitter_ns: u64,
    random: Pcg64,
    now_ns: u64,
    free_ns: u64,
    /// What is on its way to the receiver: when it comes, and the mark's time or none for a packet of 1000 bytes.
    there: VecDeque<(u64, Option<u64>)>,
    back: VecDeque<(u64, Report)>,
    lost_pkts: u64,
    sent: Sent,
    longest_ns: u64,
}

impl Path {
    fn new(capacity_mbit: f64, begin_mbit: u64) -> Path {
        Path {
            feedback: Feedback::new(BOUNDS, begin_mbit * 1_000_000),
            reporter: Reporter::default(),
            capacity_bps: capacity_mbit * 1e6,
            way_ns: 30 * MS,
            queue_ns: 10 * S,
            offered_bps: f64::INFINITY,
            jitter_ns: 0,
            random: Pcg64::seed_from_u64(5),
            now_ns: 100 * S,
            free_ns: 0,
            there: VecDeque::new(),
            back: VecDeque::new(),
            lost_pkts: 0,
            sent: Sent::default(),
            longest_ns: 0,
        }
    }

    fn put(&mut self, bytes: f64, mark: Option<u64>) {
        let begin_ns = self.free_ns.max(self.now_ns);
        if begin_ns - self.now_ns > self.queue_ns {
            self.lost_pkts += 1;
            return;
        }
        self.longest_ns = self.longest_ns.max(begin_ns - self.now_ns);
        self.free_ns = begin_ns + (bytes * 8e9 / self.capacity_bps) as u64;
        let mut at_ns = self.free_ns + self.way_ns;
        if mark.is_some() && self.jitter_ns > 0 {
            at_ns += self.random.next_u64() % self.jitter_ns;
        }
        // Packets keep their order.
        at_ns = at_ns.max(self.there.back().map_or(0, |(ns, _)| ns + 1));
        self.there.push_back((at_ns, mark));
    }

    /// Runs for some seconds; returns the mean received rate, Mbit/s.
    fn run(&mut self, seconds: f64) -> f64 {
        let end_ns = self.now_ns + (seconds * 1e9) as u64;
        let before = self.reporter.bytes;
        self.longest_ns = 0;
        while self.now_ns < end_ns {
            self.sent.pkts += 1;
            self.sent.bytes += 1000;
            self.put(1000.0, None);
            if self.feedback.due_ns(self.sent.pkts) <= self.now_ns {
                self.feedback.mark(self.now_ns, self.sent, 140);
                self.put(140.0, Some(self.now_ns));
            }
            self.now_ns += (8e12 / self.feedback.rate_bps.min(self.offered_bps)) as u64;
            if self.feedback.turn_ns() <= self.now_ns {
                self.feedback.turn(self.now_ns, self.sent);
            }
            while let Some((at_ns, mark)) = self.there.front().copied() {
                if at_ns > self.now_ns {
                    break;
                }
                self.there.pop_front();
                let Some(sent_ns) = mark else {
                    self.reporter.count(960);
                    continue;
                };
                let clock_ns = at_ns - BEHIND_NS;
                self.reporter.marked(clock_ns, sent_ns);
                let answer = self.reporter.report(clock_ns, 140, 10_000_000, 1);
                let Some(Message::Report(report)) = answer else {
                    panic!("a mark waits for a report");
                };
                self.back.push_back((at_ns + self.way_ns, report));
            }
            while let Some((at_ns, report)) = self.back.front().copied() {
                if at_ns > self.now_ns {
                    break;
                }
                self.back.pop_front();
                if let Some(steer) = self.feedback.reported(at_ns, report, self.sent, WIRE) {
                    let Bounds {
                        floor_bps,
                        ceiling_bps,
                        ..
                    } = BOUNDS;
                    assert!((floor_bps..=ceiling_bps).contains(&steer.pace_bps));
                    assert!((floor_bps..=ceiling_bps).contains(&steer.capacity_bps));
                }
            }
        }
        (self.reporter.bytes - before) as f64 / 960.0 * 8e-3 / seconds
    }
}

#[test]
fn a_steady_link_is_found_and_used() {
    for (capacity, begin) in [(10.0, 10), (10.0, 40), (10.0, 2), (3.0, 10)] {
        let mut path = Path::new(capacity, begin);
        path.run(20.0);
        let mbit = path.run(60.0);
        assert!(mbit > 0.93 * capacity, "{mbit} of {capacity} from {begin}");
        assert!(path.longest_ns < 100 * MS, "{} ns", path.longest_ns);
    }
}

/// What is tried over a long path is seen late, so less is tried there.
#[test]
fn the_queue_of_a_steady_link_is_short_over_a_long_path() {
    for way_ms in [100, 250] {
        let mut path = Path::new(20.0, 10);
        path.way_ns = way_ms * MS;
        path.run(60.0);
        let mbit = path.run(120.0);
        assert!(mbit > 0.93 * 20.0, "{mbit} over {way_ms} ms");
        assert!(
            path.longest_ns < 40 * MS,
            "{} ns over {way_ms} ms",
            path.longest_ns
        );
    }
}

#[test]
fn a_fade_is_followed_and_its_end_as_well() {
    let mut path = Path::new(20.0, 20);
    path.run(20.0);
    path.capacity_bps = 5e6;
    path.run(5.0);
    let mbit = path.run(20.0);
    assert!(mbit > 0.9 * 5.0, "{mbit}");
    assert!(path.longest_ns < 150 * MS, "{} ns", path.longest_ns);
    path.capacity_bps = 20e6;
    // 5 % less than 5 Mbit/s grows by 10 % a second to 18 within 15 s.
    path.run(15.0);
    let mbit = path.run(20.0);
    assert!(mbit > 0.9 * 20.0, "{mbit}");
}

/// A link that varies between two capacities: what is sent until a fall is known waits in its queue.
#[test]
fn anticipated_falls_to_a_capacity_of_late_make_short_queues() {
    let [(often, usual_ns), (seldom, anticipated_ns)] = [false, true].map(|anticipate| {
        let mut path = Path::new(10.0, 10);
        path.feedback.set_bounds(Bounds {
            anticipate,
            ..BOUNDS
        });
        path.run(20.0);
        // At times without a period, which would be learned. Nothing is known of the first fall.
        let mut times = Pcg64::seed_from_u64(3);
        let (mut mbit, mut longest_ns) = (0.0, 0);
        for (change, capacity_bps) in [7e6, 10e6].into_iter().cycle().take(62).enumerate() {
            path.capacity_bps = capacity_bps;
            let seconds = 0.4 + 0.2 * (times.next_u64() % 1000) as f64 / 1000.0;
            let received_mbit = path.run(seconds);
            if change >= 2 {
                mbit += received_mbit / 60.0;
                longest_ns = longest_ns.max(path.longest_ns);
            }
        }
        (mbit, longest_ns)
    });
    // In 60 ms of round trip and 20 ms between marks a fall from 10 to 7 Mbit/s fills 34 ms, one from 3/16 above the lowest
    // 15 ms; 3 ms were there before, and packets take 1 ms each.
    assert!(usual_ns > 30 * MS, "{usual_ns} ns");
    assert!(anticipated_ns < 22 * MS, "{anticipated_ns} ns");
    assert!(seldom > 0.85 * often, "{seldom} of {often} Mbit/s");
}

/// A low estimate may be an error there, and what is bounded by errors becomes lower and lower.
#[test]
fn jitter_is_not_anticipated() {
    let [usual, anticipated] = [false, true].map(|anticipate| {
        let mut path = Path::new(10.0, 10);
        path.feedback.set_bounds(Bounds {
            anticipate,
            ..BOUNDS
        });
        path.jitter_ns = 15 * MS;
        path.run(20.0);
        path.run(60.0)
    });
    assert!(
        anticipated > 0.95 * usual,
        "{anticipated} of {usual} Mbit/s"
    );
}

#[test]
fn falls_that_are_no_longer_anticipated_bound_nothing() {
    let mut path = Path::new(7.0, 7);
    path.feedback.set_bounds(Bounds {
        anticipate: true,
        ..BOUNDS
    });
    path.run(20.0);
    path.feedback.set_bounds(BOUNDS);
    path.capacity_bps = 14e6;
    path.run(2.0);
    assert!(path.feedback.estimate.capacity_bps > 0.9 * 14e6);
}

/// The capacity from which a fall is harmless grows by 1 + 15 ms / (round trip + 20 ms) every 3 s, as each lowest capacity is
/// remembered for that long.
#[test]
fn after_a_deep_fall_the_bound_of_anticipated_falls_rises_step_by_step() {
    for (way_ms, steps_s) in [(30, 3.0 * steps(60.0)), (250, 3.0 * steps(500.0))] {
        let [usual_s, anticipated_s] = [false, true].map(|anticipate| {
            let mut path = Path::new(16.0, 10);
            path.way_ns = way_ms * MS;
            path.feedback.set_bounds(Bounds {
                anticipate,
                ..BOUNDS
            });
            path.run(60.0);
            path.capacity_bps = 3.5e6;
            path.run(11.3);
            path.capacity_bps = 16e6;
            let mut seconds = 1.0;
            while path.run(1.0) < 0.9 * 16.0 {
                seconds += 1.0;
            }
            seconds
        });
        // Full seconds are measured, and one step may begin late.
        assert!(
            (anticipated_s - steps_s).abs() <= 4.0,
            "{anticipated_s} s, not {steps_s} s, over {way_ms} ms"
        );
        assert!(
            usual_s < 0.2 * anticipated_s,
            "{usual_s} s over {way_ms} ms"
        );
    }
}

/// How many such steps it takes from 3.5 to 90 % of 16 Mbit/s.
fn steps(rtt_ms: f64) -> f64 {
    (0.9_f64 * 16.0 / 3.5).ln() / (1.0 + 15.0 / (rtt_ms + 20.0)).ln()
}

#[test]
fn a_link_that_does_not_vary_loses_nothing_where_falls_are_anticipated() {
    for (capacity, begin) in [(10.0, 10), (10.0, 40), (10.0, 2), (3.0, 10)] {
        let [usual, anticipated] = [false, true].map(|anticipate| {
            let mut path = Path::new(capacity, begin);
            path.feedback.set_bounds(Bounds {
                anticipate,
                ..BOUNDS
            });
            path.run(20.0);
            path.run(60.0)
        });
        assert!(
            anticipated >= 0.995 * usual,
            "{anticipated} of {usual} from {begin}"
        );
    }
}

#[test]
fn a_sender_with_little_traffic_keeps_its_capacity() {
    let mut path = Path::new(10.0, 8);
    path.offered_bps = 2.4e6;
    path.run(30.0);
    assert_eq!(path.feedback.estimate.capacity_bps, 8e6);
    path.offered_bps = f64::INFINITY;
    assert!(path.run(20.0) > 8.0);
}

#[test]
fn late_marks_prove_nothing_on_a_link_little_used() {
    let mut path = Path::new(10.0, 8);
    path.offered_bps = 0.05 * 8e6;
    // More than `delay`: one of three marks is late.
    path.jitter_ns = 40 * MS;
    path.run(120.0);
    assert!(path.feedback.known().reports > 1000);
    assert_eq!(path.feedback.estimate.capacity_bps, 8e6);
    // Nor does a way that has become longer, as with another satellite.
    path.jitter_ns = 20 * MS;
    path.way_ns += 40 * MS;
    path.run(120.0);
    assert_eq!(path.feedback.estimate.capacity_bps, 8e6);
}

#[test]
fn a_link_slower_than_little_traffic_is_found() {
    for (offered_bps, capacity) in [(12e6, 5.0), (6e6, 5.0), (5.1e6, 5.0)] {
        let mut path = Path::new(20.0, 20);
        path.offered_bps = offered_bps;
        path.run(10.0);
        assert_eq!(path.feedback.estimate.capacity_bps, 20e6);
        path.capacity_bps = capacity * 1e6;
        path.run(20.0);
        let mbit = path.run(30.0);
        assert!(mbit > 0.9 * capacity, "{mbit} of {offered_bps}");
        assert!(path.longest_ns < 150 * MS, "{} ns", path.longest_ns);
    }
}

/// A standing queue must not be taken for the base delay: it would grow each time that is forgotten.
#[test]
fn the_queue_below_stays_short_for_ever() {
    for delay_ms in [25, 50, 100, 200] {
        for (capacity, ceiling) in [(10.0, 40), (2.0, 40), (39.2, 40)] {
            let mut path = Path::new(capacity, 10);
            path.feedback.set_bounds(Bounds {
                floor_bps: 1_000_000,
                ceiling_bps: ceiling * 1_000_000,
                delay_ns: delay_ms * MS,
                ..BOUNDS
            });
            path.run(40.0);
            let mbit = path.run(360.0);
            assert!(
                mbit > 0.93 * capacity,
                "{mbit} of {capacity}, {delay_ms} ms"
            );
            // Beyond `delay`, packets sent until that was noticed are in the queue, at 10 % a second too much.
            let most_ns = (2 * delay_ms + 50) * MS;
            assert!(
                path.longest_ns < most_ns,
                "{} ns of {capacity}, {delay_ms} ms",
                path.longest_ns
            );
        }
    }
}

#[test]
fn small_packets_take_what_the_link_takes_at_least() {
    let wire = Wire {
        overhead_bytes: 28,
        mpu_bytes: 84,
    };
    assert_eq!(wire.bytes(10, 10 * 20), 840.0);
    assert_eq!(wire.bytes(10, 10 * 972), 10_000.0);
}

#[test]
fn other_bounds_keep_what_was_learned() {
    let mut path = Path::new(10.0, 40);
    path.run(20.0);
    let before_bps = path.feedback.estimate.capacity_bps;
    assert!(before_bps < 12e6);
    let narrower = |ceiling_bps| Bounds {
        ceiling_bps,
        ..BOUNDS
    };
    path.feedback.set_bounds(narrower(30_000_000));
    assert_eq!(path.feedback.estimate.capacity_bps, before_bps);
    path.feedback.set_bounds(narrower(5_000_000));
    assert_eq!(path.feedback.estimate.capacity_bps, 5e6);
}

#[test]
fn a_longer_path_is_not_taken_for_a_queue() {
    let mut path = Path::new(100.0, 40);
    path.run(20.0);
    path.way_ns += 40 * MS;
    path.run(3.0);
    // 5 % less, once, and 10 % a second more.
    assert!(path.run(1.0) > 0.94 * 40.0);
    path.way_ns -= 60 * MS;
    assert!(path.run(5.0) > 0.99 * 40.0);
}

#[test]
fn a_queue_too_short_to_be_seen_costs_a_tenth_at_the_most() {
    let mut path = Path::new(10.0, 10);
    path.queue_ns = 10 * MS;
    path.run(20.0);
    let (lost, sent) = (path.lost_pkts, path.sent.pkts);
    path.run(60.0);
    let part = (path.lost_pkts - lost) as f64 / (path.sent.pkts - sent) as f64;
    assert!(part < 0.11, "{part}");
}

#[test]
fn marks_are_few() {
    let mut feedback = Feedback::new(BOUNDS, 10_000_000);
    assert_eq!(feedback.due_ns(0), 0);
    feedback.mark(S, Sent::default(), 140);
    assert_eq!(feedback.due_ns(0), 2 * S, "idle");
    assert_eq!(feedback.due_ns(1), S + 20 * MS);
    // 140 bytes of 1 Mbit/s take 1.12 ms, which is one hundredth of 112 ms.
    let mut feedback = Feedback::new(BOUNDS, 1_000_000);
    feedback.mark(S, Sent::default(), 140);
    assert_eq!(feedback.due_ns(1), S + 112 * MS);
    // Reports are no closer than 10 ms, and take one hundredth of their own link: 112 ms of 10 kbit/s in 11.2 s, and a
    // third of that where three peers share it.
    for (capacity_bps, peers, apart_ns) in [
        (100_000_000, 1, REPORT_NS),
        (10_000, 1, 11_200 * MS),
        (10_000, 3, 33_600 * MS),
    ] {
        let mut reporter = Reporter::default();
        assert_eq!(reporter.due_ns(), None);
        assert_eq!(reporter.report(0, 140, capacity_bps, peers), None);
        reporter.marked(S, 1);
        assert!(reporter.due_ns().is_some_and(|ns| ns <= S));
        assert!(reporter.report(S, 140, capacity_bps, peers).is_some());
        assert_eq!(reporter.due_ns(), None, "one for each mark");
        // Of two marks received between reports the later one is answered.
        reporter.marked(S + 1, 2);
        reporter.count(1000);
        reporter.marked(S + 2, 3);
        assert_eq!(reporter.due_ns(), Some(S + apart_ns));
        let Some(Message::Report(report)) = reporter.report(S + apart_ns, 140, capacity_bps, peers)
        else {
            panic!("a mark waits for a report");
        };
        assert_eq!(
            (report.sent_ns, report.received_ns, report.pkts),
            (3, S + 2, 1)
        );
    }
}

#[test]
fn messages_are_read_back_as_written() {
    let report = Report {
        sent_ns: 1,
        received_ns: u64::MAX,
        pkts: 3,
        bytes: 1 << 40,
    };
    let probe = Probe {
        sent_ns: 1 << 50,
        way: 3,
    };
    for message in [
        Message::Mark { sent_ns: 77 },
        Message::Report(report),
        Message::Probe(probe),
        Message::Echo(probe),
        Message::PathProbe(of_path("lte")),
        Message::PathEcho(of_path("a name of 16 b.s")),
    ] {
        let packet = message.packet();
        assert_eq!(Message::read(&packet), Some(message));
        let header = crate::bytes::packet::parse(&packet).expect("it passes for IPv6");
        assert_eq!((packet.len(), header.protocol), (80, 253));
    }
    let mut mark = Message::Mark { sent_ns: 77 }.packet();
    mark[60] = 1;
    assert!(is_message(&mark) && Message::read(&mark).is_none());
    let mut echo = Message::Echo(probe).packet();
    echo[79] = 1;
    assert_eq!(
        Message::read(&echo),
        None,
        "a number that echoes do not have"
    );
}

fn of_path(name: &str) -> PathProbe {
    PathProbe {
        sent_ns: 1 << 50,
        epoch: 0xdead_beef,
        path: 7,
        classes: 8,
        known: 0xfedc,
        name: PathName::new(name).unwrap(),
    }
}

#[test]
fn probes_of_paths_have_a_name_and_a_number() {
    for name in ["", "a name of 17 byts", "a\0b"] {
        assert_eq!(PathName::new(name), None, "{name:?}");
    }
    let good = Message::PathProbe(of_path("lte")).packet();
    assert_eq!(
        Message::read(&good),
        Some(Message::PathProbe(of_path("lte")))
    );
    // The kind's three zeros, no name, and something behind its end.
    for (at, byte) in [(45, 1), (64, 0), (79, 1)] {
        let mut packet = good;
        packet[at] = byte;
        assert_eq!(Message::read(&packet), None, "byte {at}");
    }
}

#[test]
fn only_probes_may_be_longer_than_they_need() {
    let probe = Probe {
        sent_ns: 1 << 50,
        way: OF_LENGTH | 1440,
    };
    for (message, may) in [
        (Message::Probe(probe), true),
        (Message::Echo(probe), false),
        (Message::Mark { sent_ns: 77 }, false),
    ] {
        let mut long = message.packet().to_vec();
        assert_eq!(Message::read(&long[..79]), None);
        long.resize(1440, 0);
        assert!(is_message(&long));
        assert_eq!(Message::read(&long), may.then_some(message));
    }
}

/// Anything that a hostile peer may send.
#[test]
fn the_capacity_stays_within_its_bounds_for_any_input() {
    let mut random = Pcg64::seed_from_u64(3);
    let mut feedback = Feedback::new(BOUNDS, 10_000_000);
    let mut reporter = Reporter::default();
    let mut now_ns = 5 * S;
    let mut last = Report::default();
    let mut believed = 0;
    for round in 0..300_000_u64 {
        now_ns += random.next_u64() % (300 * MS);
        let Message::Mark { sent_ns } = feedback.mark(
            now_ns,
            Sent {
                pkts: round,
                bytes: 0,
                shared_bytes: None,
            },
            140,
        ) else {
            panic!("it is a mark");
        };
        let mut any = || match random.next_u64() % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => sent_ns,
            3 => last.received_ns,
            4 => last.received_ns.wrapping_add(random.next_u64() % S),
            5 => last.bytes.wrapping_add(random.next_u64() % 1_000_000),
            6 => now_ns,
            _ => random.next_u64(),
        };
        let report = Report {
            sent_ns: [any(), sent_ns][usize::from(round % 4 > 0)],
            received_ns: any(),
            pkts: any(),
            bytes: any(),
        };
        last = report;
        let mut packet = Message::Report(report).packet().to_vec();
        if round % 3 == 0 {
            let at = random.next_u64() as usize % packet.len();
            packet[at] ^= 1 << (random.next_u64() % 8);
        }
        if round % 5 == 0 {
            packet.truncate(random.next_u64() as usize % 90);
        }
        match Message::read(&packet) {
            Some(Message::Report(report)) => {
                let wire = Wire {
                    overhead_bytes: [60, -1000, 1000][(round % 3) as usize],
                    mpu_bytes: [0, 84][(round % 2) as usize],
                };
                let sent = Sent {
                    pkts: round,
                    bytes: round,
                    shared_bytes: None,
                };
                if let Some(steer) = feedback.reported(now_ns, report, sent, wire) {
                    let bounds = BOUNDS.floor_bps..=BOUNDS.ceiling_bps;
                    assert!(bounds.contains(&steer.pace_bps));
                    assert!(bounds.contains(&steer.capacity_bps));
                    believed += 1;
                }
            }
            Some(Message::Mark { sent_ns }) => reporter.marked(now_ns, sent_ns),
            Some(
                Message::Probe(_) | Message::Echo(_) | Message::PathProbe(_) | Message::PathEcho(_),
            )
            | None => {}
        }
        assert!(feedback.unanswered.len() <= UNANSWERED);
        let _ = feedback.due_ns(round);
    }
    assert!(believed > 1000, "{believed}");
}

#[test]
fn reports_of_unsent_marks_and_of_another_receiver_are_refused() {
    let mut feedback = Feedback::new(BOUNDS, 10_000_000);
    let report = |sent_ns, received_ns, pkts| Report {
        sent_ns,
        received_ns,
        pkts,
        bytes: pkts * 1000,
    };
    for at in [0, 300 * MS, 600 * MS] {
        feedback.mark(at, Sent::default(), 140);
    }
    let mut accepts = |report| {
        let steer = feedback.reported(S, report, Sent::default(), WIRE);
        (steer.is_some(), feedback.known().reports)
    };
    assert_eq!(accepts(report(1, 5, 5)), (false, 0), "no such mark");
    assert_eq!(accepts(report(300 * MS, 5 * S, 10)), (true, 1), "the first");
    assert_eq!(accepts(report(300 * MS, 6 * S, 10)), (false, 1), "twice");
    assert_eq!(accepts(report(0, 6 * S, 10)), (false, 1), "an earlier one");
    // Counters that go back are those of a restarted receiver, of which nothing is known.
    feedback.estimate.queue_ns = 5e6;
    assert!(feedback
        .reported(S, report(600 * MS, 7 * S, 3), Sent::default(), WIRE)
        .is_some());
    assert_eq!(feedback.estimate.queue_ns, 0.0);
}

/// The last known rate is taken up again, whether the packets of the outage are lost or come late.
#[test]
fn an_outage_does_not_cost_what_was_learned() {
    for kept_ns in [50 * MS, 10 * S] {
        let mut path = Path::new(10.0, 10);
        path.run(20.0);
        path.queue_ns = kept_ns;
        // One packet occupies the link for 6.5 s.
        path.free_ns = path.now_ns + 6500 * MS;
        path.run(6.5);
        path.run(1.0);
        let mbit = path.run(2.0);
        assert!(mbit > 9.0, "{mbit}");
    }
}

/// The first of these whose time has come.
fn due<T>(coming: &mut VecDeque<(u64, usize, T)>, now_ns: u64) -> Option<(u64, usize, T)> {
    let is_due = coming.front().is_some_and(|(ns, ..)| *ns <= now_ns);
    is_due.then(|| coming.pop_front()).flatten()
}

/// Peers that share one link each find what it carries.
#[test]
fn peers_that_share_a_link_find_what_it_carries() {
    const CARRIES_BPS: f64 = 12e6;
    let mut feedbacks = [10_000_000, 4_000_000].map(|bps| Feedback::new(BOUNDS, bps));
    let mut reporters = [Reporter::default(), Reporter::default()];
    let mut sent = [Sent::default(); 2];
    let (mut now_ns, mut free_ns, mut all_bytes) = (100 * S, 0, 0);
    let mut back = VecDeque::new();
    let mut there = VecDeque::new();
    let mut carried = 0.0;
    let (mut longest_ns, mut turn) = (0, 0);
    while now_ns < 160 * S {
        // Two packets to one peer, then one to the other; each takes as long as its rate says.
        turn = (turn + 1) % 3;
        let at = usize::from(turn == 0);
        let takes_ns = (8e12 / feedbacks[at].rate_bps) as u64;
        all_bytes += 1000;
        sent[at].pkts += 1;
        sent[at].bytes += 1000;
        for sent in &mut sent {
            sent.shared_bytes = Some(all_bytes);
        }
        let mut put = |bytes: f64, mark: Option<u64>| {
            free_ns = now_ns.max(free_ns) + (bytes * 8e9 / CARRIES_BPS) as u64;
            there.push_back((free_ns + 30 * MS, at, mark));
        };
        put(1000.0, None);
        if feedbacks[at].due_ns(sent[at].pkts) <= now_ns {
            feedbacks[at].mark(now_ns, sent[at], 140);
            put(140.0, Some(now_ns));
        }
        if now_ns > 130 * S {
            longest_ns = longest_ns.max(free_ns.saturating_sub(now_ns));
            carried += 8e-6 * 1000.0 / 30.0;
        }
        now_ns += takes_ns;
        while let Some((at_ns, at, mark)) = due(&mut there, now_ns) {
            let Some(sent_ns) = mark else {
                reporters[at].count(960);
                continue;
            };
            reporters[at].marked(at_ns, sent_ns);
            if let Some(Message::Report(report)) = reporters[at].report(at_ns, 140, 100_000_000, 1)
            {
                back.push_back((at_ns + 25 * MS, at, report));
            }
        }
        while let Some((at_ns, at, report)) = due(&mut back, now_ns) {
            feedbacks[at].reported(at_ns, report, sent[at], WIRE);
        }
        for at in 0..2 {
            if feedbacks[at].turn_ns() <= now_ns {
                feedbacks[at].turn(now_ns, sent[at]);
            }
        }
    }
    assert!(carried > 0.9 * CARRIES_BPS / 1e6, "{carried}");
    assert!(longest_ns < 60 * MS, "{longest_ns}");
    for feedback in &feedbacks {
        let bps = feedback.estimate.capacity_bps;
        assert!((0.8..1.3).contains(&(bps / CARRIES_BPS)), "{bps}");
    }
}

/// Gateways of the version before read and write the same messages: these bytes are theirs.
#[test]
fn messages_are_those_of_the_version_before() {
    let header = "6000000000 28fd01 fe800000000000000000000000000001 fe800000000000000000000000000002 4c776662";
    let message = |kind: &str, numbers: [u64; 4]| -> String {
        let numbers = numbers.map(|number| format!("{number:016x}")).concat();
        format!("{header}{kind}{numbers}").replace(' ', "")
    };
    let hex = |message: Message| -> String {
        let bytes = message.packet();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    assert_eq!(
        hex(Message::Mark { sent_ns: 77 }),
        message("01000000", [77, 0, 0, 0])
    );
    let report = Report {
        sent_ns: 77,
        received_ns: 1 << 60,
        pkts: 3,
        bytes: 4000,
    };
    assert_eq!(
        hex(Message::Report(report)),
        message("02000000", [77, 1 << 60, 3, 4000])
    );
}
