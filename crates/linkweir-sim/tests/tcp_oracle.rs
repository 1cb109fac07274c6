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
        let entry = self
            .outstanding
            .entry(segment.sequence)
            .or_insert((false, false));
        assert!(!entry.0, "a SACKed segment was sent again");
        if segment.retransmission {
            assert!(
                !entry.1,
                "a segment was retransmitted twice without a timeout"
            );
            entry.1 = true;
        }
        self.check(sender);
    }

    fn on_timeout(&mut self, _now_ns: u64, sender: &Sender) {
        for (_, retransmitted) in self.outstanding.values_mut() {
            *retransmitted = false;
        }
        self.lost_below = self
            .outstanding
            .keys()
            .next_back()
            .map_or(0, |last| last + 1);
        self.check(sender);
    }
}

/// The board of Agent/TCP/Linux by brute force: every segment is looked at after each acknowledgement.
struct ForwardAck {
    draw: Draw,
    per_10000: u64,
    una: u64,
    next: u64,
    outstanding: BTreeMap<u64, Standing>,
    /// One past the highest segment SACKed, or declared lost by a timeout, since the board was last empty.
    known_below: u64,
    fack_end: u64,
    next_id: u64,
    acked_id: Option<u64>,
    recover: Option<u64>,
    phase: Phase,
    checks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Flight,
    Sacked,
    Lost,
    Again { id: u64, next: u64 },
}

impl Standing {
    fn id(&self) -> Option<u64> {
        match self {
            Standing::Again { id, .. } => Some(*id),
            _ => None,
        }
    }
}

impl ForwardAck {
    fn flight(&self) -> u64 {
        self.outstanding
            .values()
            .filter(|s| !matches!(s, Standing::Sacked | Standing::Lost))
            .count() as u64
    }

    fn reset(&mut self) {
        for standing in self.outstanding.values_mut() {
            *standing = Standing::Flight;
        }
        self.known_below = 0;
        self.fack_end = 0;
        self.next_id = 0;
        self.acked_id = None;
    }

    fn advance(&mut self, una: u64) -> bool {
        let kept = self.outstanding.split_off(&una);
        let gone = std::mem::replace(&mut self.outstanding, kept);
        self.una = una;
        let before = self.acked_id;
        self.acked_id = before.max(gone.values().filter_map(Standing::id).max());
        if una >= self.known_below && self.known_below > 0 {
            self.reset();
            return false;
        }
        self.acked_id > before
    }

    fn take_sack(&mut self, ack: &Ack) {
        for block in &ack.sack[..usize::from(ack.nsack)] {
            if block.end > self.una {
                self.fack_end = self.fack_end.max(block.end);
                self.known_below = self.known_below.max(block.end);
            }
            for (_, standing) in self.outstanding.range_mut(block.start..block.end) {
                self.acked_id = self.acked_id.max(standing.id());
                *standing = Standing::Sacked;
            }
        }
    }

    fn mark(&mut self, overtaking: Option<u64>) {
        for (&sequence, standing) in &mut self.outstanding {
            let lost = match *standing {
                Standing::Flight => sequence + 4 < self.fack_end,
                Standing::Again { id, next } => {
                    next < self.fack_end || overtaking.is_some_and(|acked| id + 4 < acked)
                }
                _ => false,
            };
            if lost {
                *standing = Standing::Lost;
            }
        }
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
        if ack.cumulative >= self.una {
            let overtook = self.advance(ack.cumulative);
            if ack.nsack > 0 || overtook {
                let overtaking = self.acked_id;
                self.take_sack(ack);
                self.mark(overtaking);
            }
            if self.recover.is_some_and(|recover| self.una >= recover) {
                self.reset();
                self.recover = None;
            }
            let phase = sender.window().phase;
            match phase {
                Phase::Recovery if self.phase != phase => self.recover = Some(self.next),
                Phase::Recovery | Phase::Loss => assert!(self.recover.is_some()),
                _ => assert_eq!(self.recover, None),
            }
            self.phase = phase;
        }
        self.check(sender);
    }

    fn on_segment(&mut self, _now_ns: u64, segment: &Segment, sender: &Sender) {
        let standing = if segment.retransmission {
            assert_eq!(self.outstanding[&segment.sequence], Standing::Lost);
            self.next_id += 1;
            Standing::Again {
                id: self.next_id - 1,
                next: self.next,
            }
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
        self.known_below = self.next;
        self.next_id = 0;
        self.acked_id = None;
        self.recover = Some(self.next);
        self.phase = Phase::Loss;
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
    for seed in 1..=30 {
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
            run(&config, path(seed), 6 * S, &mut oracle);
            checks += oracle.checks;
        }
    }
    assert!(checks > 100_000, "{checks}");
}

#[test]
fn flight_is_that_of_forward_acknowledgement() {
    let mut checks = 0;
    for seed in 1..=30 {
        for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
            let mut oracle = ForwardAck {
                draw: Draw(seed),
                per_10000: [0, 10, 100, 500, 2000][seed as usize % 5],
                una: 0,
                next: 0,
                outstanding: BTreeMap::new(),
                known_below: 0,
                fack_end: 0,
                next_id: 0,
                acked_id: None,
                recover: None,
                phase: Phase::SlowStart,
                checks: 0,
            };
            run(
                &Config::new(algorithm, Profile::Ns2),
                path(seed),
                6 * S,
                &mut oracle,
            );
            checks += oracle.checks;
        }
    }
    assert!(checks > 100_000, "{checks}");
}
