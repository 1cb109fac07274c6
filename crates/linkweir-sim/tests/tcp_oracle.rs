// SPDX-License-Identifier: BSD-3-Clause
//! The senders' incremental accounts against naive ones that look at every outstanding segment.

mod tcp_link;

use std::collections::BTreeMap;

use linkweir_sim::tcp::{Ack, Algorithm, Config, Phase, Profile, Segment, Sender};
use tcp_link::{run, Draw, Observer, Path};

/// SetPipe and IsLost of RFC 6675, section 4, by brute force, from nothing but the segments and acknowledgements seen.
struct Rfc6675 {
    draw: Draw,
    per_10000: u64,
    /// Outstanding segments: SACKed, and retransmitted since the last timeout.
    outstanding: BTreeMap<u64, (bool, bool)>,
    /// A timeout declared everything below lost.
    lost_below: u64,
    checks: u64,
}

impl Rfc6675 {
    fn pipe(&self) -> u64 {
        let mut pipe = 0;
        let mut sacked_above = 0;
        for (&sequence, &(sacked, retransmitted)) in self.outstanding.iter().rev() {
            if sacked {
                sacked_above += 1;
                continue;
            }
            let lost = sacked_above >= 3 || sequence < self.lost_below;
            pipe += u64::from(!lost) + u64::from(retransmitted);
        }
        pipe
    }

    fn check(&mut self, sender: &Sender) {
        assert_eq!(sender.window().flight_segments, self.pipe());
        self.checks += 1;
    }
}

impl Observer for Rfc6675 {
    fn drops(&mut self, _nth: u64, _segment: &Segment) -> bool {
        self.draw.below(10_000) < self.per_10000
    }

    fn on_ack(&mut self, _now_ns: u64, ack: &Ack, sender: &Sender) {
        self.outstanding = self.outstanding.split_off(&ack.cumulative);
        for block in &ack.sack[..usize::from(ack.nsack)] {
            for (_, (sacked, _)) in self.outstanding.range_mut(block.start..block.end) {
                *sacked = true;
            }
        }
        self.check(sender);
    }

    fn on_segment(&mut self, _now_ns: u64, segment: &Segment, sender: &Sender) {
        let entry = self.outstanding.entry(segment.sequence).or_insert((false, false));
        assert!(!entry.0, "a SACKed segment was sent again");
        if segment.retransmission {
            assert!(!entry.1, "a segment was retransmitted twice without a timeout");
            entry.1 = true;
        }
        self.check(sender);
    }

    fn on_timeout(&mut self, _now_ns: u64, sender: &Sender) {
        for (_, retransmitted) in self.outstanding.values_mut() {
            *retransmitted = false;
        }
        self.lost_below = self.outstanding.keys().next_back().map_or(0, |last| last + 1);
        self.check(sender);
    }
}

/// The marking rules of Agent/TCP/Linux by brute force: all segments are looked at after each acknowledgement.
struct ForwardAck {
    draw: Draw,
    per_10000: u64,
    una: u64,
    next: u64,
    outstanding: BTreeMap<u64, Standing>,
    fack_end: u64,
    next_id: u64,
    acked_id: Option<u64>,
    recover: Option<u64>,
    checks: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Standing {
    Flight,
    Sacked,
    Lost,
    Again { id: u64, next: u64 },
}

impl ForwardAck {
    fn flight(&self) -> u64 {
        self.outstanding.values().filter(|s| !matches!(s, Standing::Sacked | Standing::Lost)).count() as u64
    }

    fn reset(&mut self) {
        for standing in self.outstanding.values_mut() {
            *standing = Standing::Flight;
        }
        self.fack_end = 0;
        self.next_id = 0;
        self.acked_id = None;
    }

    fn check(&mut self, sender: &Sender) {
        assert_eq!(sender.window().flight_segments, self.flight());
        self.checks += 1;
    }
}

impl Observer for ForwardAck {
    fn drops(&mut self, _nth: u64, _segment: &Segment) -> bool {
        self.draw.below(10_000) < self.per_10000
    }

    fn on_ack(&mut self, _now_ns: u64, ack: &Ack, sender: &Sender) {
        if ack.cumulative < self.una {
            return;
        }
        let kept = self.outstanding.split_off(&ack.cumulative);
        let gone = std::mem::replace(&mut self.outstanding, kept);
        self.una = ack.cumulative;
        let mut ids: Vec<u64> = Vec::new();
        let note = |standing: &Standing, ids: &mut Vec<u64>| {
            if let Standing::Again { id, .. } = standing {
                ids.push(*id);
            }
        };
        gone.values().for_each(|standing| note(standing, &mut ids));
        self.acked_id = self.acked_id.max(ids.iter().max().copied());
        let known = |s: &Standing| *s != Standing::Flight;
        if !gone.is_empty() && !self.outstanding.values().any(known) && self.una >= self.fack_end {
            self.reset();
        }
        ids.clear();
        for block in &ack.sack[..usize::from(ack.nsack)] {
            if block.end > self.una {
                self.fack_end = self.fack_end.max(block.end);
            }
            for (_, standing) in self.outstanding.range_mut(block.start..block.end) {
                note(standing, &mut ids);
                *standing = Standing::Sacked;
            }
        }
        self.acked_id = self.acked_id.max(ids.iter().max().copied());
        for (&sequence, standing) in &mut self.outstanding {
            let lost = match *standing {
                Standing::Flight => sequence + 4 < self.fack_end,
                Standing::Again { id, next } => {
                    next < self.fack_end || self.acked_id.is_some_and(|acked| id + 4 < acked)
                }
                _ => false,
            };
            if lost {
                *standing = Standing::Lost;
            }
        }
        if self.recover.is_some_and(|recover| self.una >= recover) {
            self.reset();
            self.recover = None;
        }
        match sender.window().phase {
            Phase::Recovery | Phase::Loss => {
                self.recover.get_or_insert(self.next);
            }
            _ => assert_eq!(self.recover, None),
        }
        self.check(sender);
    }

    fn on_segment(&mut self, _now_ns: u64, segment: &Segment, sender: &Sender) {
        let standing = if segment.retransmission {
            assert!(self.outstanding[&segment.sequence] == Standing::Lost);
            let lower = self.outstanding.range(..segment.sequence);
            assert!(!lower.into_iter().any(|(_, s)| *s == Standing::Lost), "not the lowest lost one first");
            self.next_id += 1;
            Standing::Again { id: self.next_id - 1, next: self.next }
        } else {
            assert_eq!(segment.sequence, self.next);
            self.next += 1;
            Standing::Flight
        };
        self.outstanding.insert(segment.sequence, standing);
        self.check(sender);
    }

    fn on_timeout(&mut self, _now_ns: u64, sender: &Sender) {
        for standing in self.outstanding.values_mut() {
            if *standing != Standing::Sacked {
                *standing = Standing::Lost;
            }
        }
        self.next_id = 0;
        self.acked_id = None;
        self.recover = Some(self.next);
        self.check(sender);
    }
}

const S: u64 = 1_000_000_000;

fn path(seed: u64) -> Path {
    let mut draw = Draw(seed ^ 0x5bd1_e995);
    Path {
        rate_bps: 1_000_000 + draw.below(30_000_000),
        buffer_segments: 5 + draw.below(200) as usize,
        forward_ns: 1_000_000 + draw.below(100_000_000),
        reverse_ns: 1_000_000 + draw.below(100_000_000),
    }
}

#[test]
fn pipe_is_that_of_rfc_6675() {
    let mut checks = 0;
    for seed in 1..=60 {
        for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
            let mut oracle = Rfc6675 {
                draw: Draw(seed),
                per_10000: [0, 10, 100, 500, 2000][seed as usize % 5],
                outstanding: BTreeMap::new(),
                lost_below: 0,
                checks: 0,
            };
            let mut config = Config::new(algorithm, Profile::Linux);
            config.hystart = seed % 2 == 0;
            run(&config, path(seed), 10 * S, &mut oracle);
            checks += oracle.checks;
        }
    }
    assert!(checks > 200_000, "{checks}");
}

#[test]
fn flight_is_that_of_forward_acknowledgement() {
    let mut checks = 0;
    for seed in 1..=60 {
        for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
            let mut oracle = ForwardAck {
                draw: Draw(seed),
                per_10000: [0, 10, 100, 500, 2000][seed as usize % 5],
                una: 0,
                next: 0,
                outstanding: BTreeMap::new(),
                fack_end: 0,
                next_id: 0,
                acked_id: None,
                recover: None,
                checks: 0,
            };
            run(&Config::new(algorithm, Profile::Ns2), path(seed), 10 * S, &mut oracle);
            checks += oracle.checks;
        }
    }
    assert!(checks > 200_000, "{checks}");
}
