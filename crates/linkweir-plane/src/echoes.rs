// SPDX-License-Identifier: BSD-3-Clause
//! The same rule where no far end reports: hosts that echo probes, called reflectors, take its place.
//!
//! An echo comes back after everything sent before its probe has left the link's queue. So it counts as the report of a
//! receiver to which all of that came, at the time when the echo came back. A gateway's report says more:
//!
//! * Losses are not seen. Where the link drops packets, more seems to be received than is, until the queue has drained.
//! * The queue of the way back is taken for one of the way there.
//!
//! One reflector is used at a time, because each has a delay of its own. The others are asked once a second, and all are
//! asked while the one in use is late. If another answers what was sent later, that one is used from then on; if none does,
//! the link is interrupted. If packets keep arriving on the device nevertheless, only the reflectors are gone, and the link
//! is used at its last known capacity.

use crate::feedback::{Feedback, Known, Message, Report, Sent, Steer};
use crate::setup::{Bounds, Wire};

/// How much later than the shortest round trip an echo may be before all reflectors are asked, ns.
const LATE_NS: u64 = 60_000_000;
/// How long an answer may still be missing after another reflector's to a later probe, ns.
const LATER_NS: u64 = 50_000_000;
/// Time between probes to reflectors that are not used, ns.
const OTHERS_NS: u64 = 1_000_000_000;
/// So many packets a second show that a link carries something, and how long they are counted, ns.
const LIVELY_PKTS: u64 = 20;
const LIVELY_NS: u64 = 1_000_000_000;
/// Bytes are counted as they take room on the link.
const AS_COUNTED: Wire = Wire {
    overhead_bytes: 0,
    mpu_bytes: 0,
};

/// Feedback by echoes.
#[derive(Debug)]
pub struct Echoes {
    feedback: Feedback,
    /// The shortest round trip to each reflector, ns; none before its first answer.
    rtts_ns: Vec<Option<u64>>,
    /// The reflector that is used; none before the first answer.
    used: Option<usize>,
    /// When another reflector first answered a later probe than one that is not answered, and when that one was sent, ns.
    overtaken: Option<(u64, u64)>,
    /// When the others were asked last, ns.
    others_ns: Option<u64>,
    /// What the device had received when it was counted last, packets, and when that was, ns.
    received: Option<(u64, u64)>,
    /// Whether no reflector answers although packets arrive.
    blind: bool,
}

impl Echoes {
    /// Begins with this capacity and so many reflectors, none of which has answered yet.
    #[must_use]
    pub fn new(bounds: Bounds, capacity_bps: u64, reflectors: usize) -> Echoes {
        Echoes {
            feedback: Feedback::new(bounds, capacity_bps),
            rtts_ns: vec![None; reflectors],
            used: None,
            overtaken: None,
            others_ns: None,
            received: None,
            blind: false,
        }
    }

    /// When to call [`Echoes::turn`] or [`Echoes::probe`], ns, if `sent_pkts` packets were sent so far.
    #[must_use]
    pub fn due_ns(&self, sent_pkts: u64) -> u64 {
        self.feedback.due_ns(sent_pkts).min(self.feedback.turn_ns())
    }

    /// Makes the probe that is due now, if one is: `now_ns` is what it carries. Returns the reflectors it is sent to. It takes
    /// `wire_bytes` on the link; `sent` is what was sent before it.
    pub fn probe(&mut self, now_ns: u64, sent: Sent, wire_bytes: u32) -> Vec<usize> {
        if self.feedback.due_ns(sent.pkts) > now_ns {
            return Vec::new();
        }
        let late = self.feedback.unanswered_ns().is_some_and(|sent_ns| {
            now_ns.saturating_sub(sent_ns) > self.feedback.rtt_ns() + LATE_NS
        });
        let Message::Mark { .. } = self.feedback.mark(now_ns, sent, wire_bytes) else {
            return Vec::new();
        };
        let others = self
            .others_ns
            .is_none_or(|ns| now_ns.saturating_sub(ns) >= OTHERS_NS);
        match self.used {
            Some(at) if !late && !others => vec![at],
            _ => {
                self.others_ns = Some(now_ns);
                (0..self.rtts_ns.len()).collect()
            }
        }
    }

    /// Takes the echo of a probe that was sent at `sent_ns`; `sent` is what was sent until now. Returns how fast to send; none
    /// if the echo says nothing.
    pub fn answered(
        &mut self,
        now_ns: u64,
        reflector: usize,
        sent_ns: u64,
        sent: Sent,
    ) -> Option<Steer> {
        let bytes = self.feedback.sent_before(sent_ns)?;
        let rtt_ns = now_ns.saturating_sub(sent_ns);
        let shortest_ns = self.rtts_ns.get_mut(reflector)?;
        *shortest_ns = Some(shortest_ns.map_or(rtt_ns, |ns| ns.min(rtt_ns)));
        if self.used != Some(reflector) {
            if self.used.is_some() && !self.is_gone(now_ns, reflector, sent_ns) {
                return None;
            }
            self.used = Some(reflector);
            self.overtaken = None;
            self.feedback.other_path();
        }
        self.blind = false;
        self.received = None;
        let report = Report {
            sent_ns,
            received_ns: now_ns,
            pkts: 0,
            bytes,
        };
        self.feedback.reported(now_ns, report, sent, AS_COUNTED)
    }

    /// Whether the reflector in use is silent although this one has just answered a probe that was sent at `sent_ns`. Both
    /// answers pass one queue, so that of the earlier probe is late by the difference of the ways at the most.
    fn is_gone(&mut self, now_ns: u64, reflector: usize, sent_ns: u64) -> bool {
        let first_ns = self.feedback.unanswered_ns();
        let Some(first_ns) = first_ns.filter(|first_ns| *first_ns <= sent_ns) else {
            return false;
        };
        let since = self.overtaken.filter(|(_, mark_ns)| *mark_ns >= first_ns);
        let (at_ns, _) = *self.overtaken.insert(since.unwrap_or((now_ns, sent_ns)));
        let rtt_ns = |at: usize| self.rtts_ns[at].unwrap_or(0);
        let nearer_ns = self
            .used
            .map_or(0, |used| rtt_ns(used).saturating_sub(rtt_ns(reflector)));
        now_ns >= at_ns + nearer_ns + LATER_NS
    }

    /// Changes the rate as time passes; `received_pkts` is what the device has received so far. None if nothing is due.
    pub fn turn(&mut self, now_ns: u64, sent: Sent, received_pkts: u64) -> Option<Steer> {
        let was_blind = self.blind;
        if self.feedback.is_out() && !self.blind {
            let (pkts, since_ns) = *self.received.get_or_insert((received_pkts, now_ns));
            if now_ns.saturating_sub(since_ns) >= LIVELY_NS {
                self.blind = received_pkts.saturating_sub(pkts) >= LIVELY_PKTS;
                self.received = Some((received_pkts, now_ns));
            }
        }
        let due = self.feedback.turn_ns() <= now_ns;
        if !due && self.blind == was_blind {
            return None;
        }
        let steer = self.feedback.turn(now_ns, sent);
        Some(if self.blind {
            Steer {
                pace_bps: steer.capacity_bps,
                ..steer
            }
        } else {
            steer
        })
    }

    /// The reflector that is used.
    #[must_use]
    pub fn reflector(&self) -> Option<usize> {
        self.used
    }

    /// Whether no probe is answered.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.used.is_none() || self.feedback.is_out()
    }

    /// Whether no probe is answered although packets arrive.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// The shortest round trip of late, ns.
    #[must_use]
    pub fn rtt_ns(&self) -> u64 {
        self.feedback.rtt_ns()
    }

    /// Facts known about the path.
    #[must_use]
    pub fn known(&self) -> Known {
        self.feedback.known()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const MS: u64 = 1_000_000;
    const S: u64 = 1000 * MS;
    const BOUNDS: Bounds = Bounds {
        floor_bps: 64_000,
        ceiling_bps: 1_000_000_000,
        delay_ns: 25 * MS,
        anticipate: false,
    };

    /// A device under full load, a link with a queue of its own, and hosts behind it that echo.
    struct Path {
        echoes: Echoes,
        capacity_bps: f64,
        /// The round trip to each reflector, ns; none: it does not answer.
        rtts_ns: Vec<Option<u64>>,
        /// Packets that arrive on the device in a second.
        arriving_pkts: u64,
        now_ns: u64,
        free_ns: u64,
        rate_bps: f64,
        sent: Sent,
        back: VecDeque<(u64, usize, u64)>,
        longest_ns: u64,
        probes: u64,
    }

    impl Path {
        fn new(mbit: f64, begin_mbit: u64, rtts_ms: &[Option<u64>]) -> Path {
            Path {
                echoes: Echoes::new(BOUNDS, begin_mbit * 1_000_000, rtts_ms.len()),
                capacity_bps: mbit * 1e6,
                rtts_ns: rtts_ms.iter().map(|ms| ms.map(|ms| ms * MS)).collect(),
                arriving_pkts: 0,
                now_ns: 100 * S,
                free_ns: 0,
                rate_bps: begin_mbit as f64 * 1e6,
                sent: Sent::default(),
                back: VecDeque::new(),
                longest_ns: 0,
                probes: 0,
            }
        }

        /// Sends for some seconds; returns the mean rate that the link carried, Mbit/s.
        fn run(&mut self, seconds: f64) -> f64 {
            let end_ns = self.now_ns + (seconds * 1e9) as u64;
            let mut bytes = 0.0;
            self.longest_ns = 0;
            let mut next_ns = self.now_ns;
            while self.now_ns < end_ns {
                while self.now_ns >= next_ns {
                    let begin_ns = self.free_ns.max(self.now_ns);
                    self.longest_ns = self.longest_ns.max(begin_ns - self.now_ns);
                    self.free_ns = begin_ns + (1000.0 * 8e9 / self.capacity_bps) as u64;
                    self.sent.pkts += 1;
                    self.sent.bytes += 1000;
                    bytes += 1000.0;
                    next_ns += (8e12 / self.rate_bps) as u64;
                }
                let mut steers = Vec::new();
                while let Some((at_ns, from, sent_ns)) = self.back.front().copied() {
                    if at_ns > self.now_ns {
                        break;
                    }
                    self.back.pop_front();
                    steers.extend(self.echoes.answered(at_ns, from, sent_ns, self.sent));
                }
                let received = self.arriving_pkts * (self.now_ns / MS) / 1000;
                steers.extend(self.echoes.turn(self.now_ns, self.sent, received));
                for at in self.echoes.probe(self.now_ns, self.sent, 64) {
                    self.probes += 1;
                    let left_ns = self.free_ns.max(self.now_ns);
                    if let Some(rtt_ns) = self.rtts_ns[at] {
                        self.back.push_back((left_ns + rtt_ns, at, self.now_ns));
                    }
                }
                self.back.make_contiguous().sort_unstable();
                if let Some(steer) = steers.last() {
                    self.rate_bps = steer.pace_bps as f64;
                }
                self.now_ns += MS / 4;
            }
            bytes * 8e-6 / seconds
        }
    }

    #[test]
    fn a_class_follows_a_link_whose_rate_steps() {
        let mut path = Path::new(8.0, 20, &[Some(40)]);
        path.run(20.0);
        for mbit in [8.0, 3.0, 8.0] {
            path.capacity_bps = mbit * 1e6;
            path.run(5.0);
            let carried = path.run(10.0);
            assert!((0.9..1.02).contains(&(carried / mbit)), "{carried}");
            assert!(path.longest_ns < 60 * MS, "{} ns", path.longest_ns);
        }
    }

    #[test]
    fn another_reflector_replaces_one_that_is_gone() {
        for rtts in [[Some(20), Some(90)], [Some(90), Some(20)]] {
            let mut path = Path::new(10.0, 10, &rtts);
            path.run(10.0);
            let near = path.echoes.reflector().expect("both answer");
            assert_eq!(rtts[near], Some(20), "the first to answer is used");
            path.rtts_ns[near] = None;
            path.run(0.5);
            assert_eq!(path.echoes.reflector(), Some(1 - near));
            assert!(path.run(5.0) > 9.0);
            // A link that becomes slow delays both, which changes nothing.
            path.rtts_ns[near] = Some(20 * MS);
            path.capacity_bps = 1e6;
            path.run(10.0);
            assert_eq!(path.echoes.reflector(), Some(1 - near));
        }
    }

    #[test]
    fn little_is_sent_in_an_outage_and_the_last_capacity_is_used_after_it() {
        let mut path = Path::new(10.0, 10, &[Some(40), Some(60)]);
        path.run(20.0);
        let rtts_ns = std::mem::replace(&mut path.rtts_ns, vec![None, None]);
        path.run(1.0);
        assert!(path.run(5.0) < 0.5);
        assert!(path.echoes.is_silent() && !path.echoes.is_blind());
        path.rtts_ns = rtts_ns;
        path.run(0.5);
        assert!(path.run(2.0) > 9.0);
    }

    #[test]
    fn a_link_that_works_is_used_though_no_reflector_answers() {
        let mut path = Path::new(10.0, 10, &[Some(40)]);
        path.arriving_pkts = 200;
        path.run(20.0);
        path.rtts_ns = vec![None];
        path.run(2.0);
        let mbit = path.run(5.0);
        assert!(path.echoes.is_blind() && mbit > 8.0, "{mbit}");
        // Nothing arrives either: but the class stays as it is until an echo says more.
        path.rtts_ns = vec![Some(40 * MS)];
        path.run(1.0);
        assert!(!path.echoes.is_blind());
        assert!(path.run(5.0) > 9.0);
    }

    #[test]
    fn a_reflector_is_asked_fifty_times_a_second_at_the_most() {
        let mut path = Path::new(10.0, 10, &[Some(40), Some(60), Some(80)]);
        path.run(10.0);
        path.probes = 0;
        path.run(10.0);
        assert!((400..560).contains(&path.probes), "{}", path.probes);
    }

    #[test]
    fn echoes_of_nothing_are_ignored() {
        let mut echoes = Echoes::new(BOUNDS, 1_000_000, 1);
        let sent = Sent::default();
        assert_eq!(echoes.answered(S, 0, S - 1, sent), None, "not probed");
        assert_eq!(echoes.probe(S, sent, 64), [0]);
        assert_eq!(echoes.answered(2 * S, 7, S, sent), None, "no reflector");
        assert!(echoes.answered(2 * S, 0, S, sent).is_some());
        assert_eq!(echoes.answered(2 * S, 0, S, sent), None, "twice");
    }
}
