// SPDX-License-Identifier: BSD-3-Clause
//! The senders' incremental accounts against naive ones that look at every outstanding segment.

mod tcp_link;

use std::collections::{BTreeMap, BTreeSet};

use linkweir_sim::tcp::{Ack, Algorithm, Config, Phase, Profile, Segment, Sender};
use tcp_link::{run, Draw, Observer, Path};

/// The `Linux` sender by brute force, from nothing but the segments and acknowledgements seen: bounds of what is in the
/// network, and whether each retransmission was justified by RACK (RFC 8985, section 6.2), a timeout or a probe.
struct Rack {
    draw: Draw,
    harm: Harm,
    /// Outstanding segments that are not SACKed, and all their transmissions.
    open: BTreeMap<u64, Vec<u64>>,
    sacked: BTreeSet<u64>,
    /// Outstanding segments that were retransmitted.
    again: BTreeSet<u64>,
    una: u64,
    next: u64,
    window_end: u64,
    /// The newest transmission that may have been delivered: time and number.
    newest: (u64, u64),
    /// Least time from a transmission to the acknowledgement that delivered it.
    least_ns: u64,
    timeouts: u64,
    /// All below was outstanding at the last timeout.
    timed_out_below: u64,
    last_ack_ns: u64,
    retransmissions: u64,
    received: BTreeSet<u64>,
    checks: u64,
}

/// What happens to segments and acknowledgements, each in 10000 of them.
#[derive(Clone, Copy)]
struct Harm {
    lost: u64,
    late: u64,
    acks_lost: u64,
    acks_repeated: u64,
    /// Every second an outage of so long.
    outage_ns: u64,
}

impl Rack {
    fn new(seed: u64, harm: Harm) -> Rack {
        Rack {
            draw: Draw(seed),
            harm,
            open: BTreeMap::new(),
            sacked: BTreeSet::new(),
            again: BTreeSet::new(),
            una: 0,
            next: 0,
            window_end: 1,
            newest: (0, 0),
            least_ns: u64::MAX,
            timeouts: 0,
            timed_out_below: 0,
            last_ack_ns: 0,
            retransmissions: 0,
            received: BTreeSet::new(),
            checks: 0,
        }
    }

    fn happens(&mut self, per_10000: u64) -> bool {
        self.draw.below(10_000) < per_10000
    }

    /// Takes the segment from the open ones; its copies are in the network no more.
    fn deliver(&mut self, now_ns: u64, sequence: u64) {
        for sent_ns in self.open.remove(&sequence).unwrap_or_default() {
            self.newest = self.newest.max((sent_ns, sequence));
            self.least_ns = self.least_ns.min(now_ns - sent_ns);
        }
    }

    fn has_been_overtaken(&self, sequence: u64) -> bool {
        let last_ns = *self.open[&sequence].last().unwrap();
        self.newest > (last_ns, sequence)
    }

    /// At most one copy of each open segment counts, and one more where the first was held for lost and then was not:
    /// Linux then believes the copy to be in the network even when the first is SACKed. At least those count that nothing
    /// sent later has overtaken.
    fn check(&mut self, sender: &Sender) {
        let flight = sender.window().flight_segments;
        let open = self.open.len() as u64;
        let again = self.again.len() as u64;
        assert!(flight <= open + again, "{flight} of {open} and {again}");
        let suspected = self
            .open
            .keys()
            .filter(|&&n| n < self.timed_out_below || self.has_been_overtaken(n))
            .count() as u64;
        assert!(flight + suspected >= open, "{flight} {suspected} {open}");
        self.checks += 1;
    }
}

impl Observer for Rack {
    fn drops(&mut self, _nth: u64, _segment: &Segment) -> bool {
        self.happens(self.harm.lost)
    }

    fn drops_ack(&mut self) -> bool {
        self.happens(self.harm.acks_lost)
    }

    fn repeats_ack(&mut self) -> bool {
        self.happens(self.harm.acks_repeated)
    }

    fn delays(&mut self, _segment: &Segment) -> u64 {
        if self.happens(self.harm.late) {
            self.draw.below(80_000_000)
        } else {
            0
        }
    }

    fn serves_from(&mut self, now_ns: u64) -> u64 {
        let second_ns = now_ns - now_ns % S;
        let ends_ns = second_ns + self.harm.outage_ns;
        if second_ns > 0 {
            now_ns.max(ends_ns)
        } else {
            now_ns
        }
    }

    fn on_receipt(&mut self, _now_ns: u64, segment: &Segment, ack: Option<&Ack>) {
        let known = !self.received.insert(segment.sequence);
        if let Some(ack) = ack.filter(|_| segment.sequence > 0) {
            assert_eq!(ack.dsack, known.then_some(segment.sequence));
            let gap = (ack.cumulative.saturating_sub(1)..).find(|n| !self.received.contains(n));
            assert_eq!(Some(ack.cumulative), gap);
        }
    }

    fn on_ack(&mut self, now_ns: u64, ack: &Ack, sender: &Sender) {
        self.last_ack_ns = now_ns;
        if ack.cumulative >= self.una {
            self.window_end = self.window_end.max(ack.cumulative + ack.window);
            for sequence in self.una..ack.cumulative {
                self.deliver(now_ns, sequence);
                self.sacked.remove(&sequence);
            }
            self.una = ack.cumulative;
            self.again = self.again.split_off(&self.una);
            for block in &ack.sack[..usize::from(ack.nsack)] {
                for sequence in block.start.max(self.una)..block.end {
                    self.deliver(now_ns, sequence);
                    self.sacked.insert(sequence);
                }
            }
        }
        self.check(sender);
    }

    fn on_segment(&mut self, now_ns: u64, segment: &Segment, sender: &Sender) {
        let sequence = segment.sequence;
        assert!(sequence < self.window_end, "beyond the receive window");
        assert!(!self.sacked.contains(&sequence), "a SACKed segment again");
        if segment.retransmission {
            let last_ns = *self.open[&sequence].last().expect("it was sent");
            let is_rack =
                self.has_been_overtaken(sequence) && now_ns - last_ns >= self.least_ns.min(now_ns);
            let is_after_timeout = sequence < self.timed_out_below;
            // A probe: the last segment, after silence.
            let is_probe = sequence + 1 == self.next && now_ns > self.last_ack_ns;
            assert!(
                is_rack || is_after_timeout || is_probe,
                "{sequence} was retransmitted at {now_ns}"
            );
            self.retransmissions += 1;
            self.again.insert(sequence);
        } else {
            assert_eq!(sequence, self.next);
            self.next += 1;
        }
        self.open.entry(sequence).or_default().push(now_ns);
        self.check(sender);
    }

    fn on_timeout(&mut self, _now_ns: u64, sender: &Sender) {
        self.timeouts += 1;
        assert!(!self.open.is_empty());
        self.timed_out_below = self.next;
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

const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::Reno,
    Algorithm::Cubic,
    Algorithm::Bbr,
    Algorithm::Prague,
    Algorithm::Dctcp,
];

fn harm(seed: u64) -> Harm {
    let pick = |list: [u64; 5], shift: u64| list[(seed >> shift) as usize % 5];
    Harm {
        lost: pick([0, 10, 100, 500, 2000], 0),
        late: pick([0, 0, 50, 500, 2000], 1),
        acks_lost: pick([0, 100, 0, 1000, 3000], 2),
        acks_repeated: pick([0, 0, 1000, 0, 300], 3),
        outage_ns: pick([0, 0, 0, 300_000_000, 700_000_000], 1),
    }
}

#[test]
fn every_retransmission_of_linux_has_a_reason_and_flight_is_within_its_bounds() {
    let (mut checks, mut retransmissions) = (0, 0);
    for seed in 1..=40 {
        for algorithm in ALGORITHMS {
            let mut oracle = Rack::new(seed, harm(seed));
            let mut config = Config::new(algorithm, Profile::Linux);
            config.hystart = seed % 2 == 0;
            config.timestamps = seed % 3 != 0;
            config.random = seed;
            run(&config, path(seed), 6 * S, &mut oracle);
            checks += oracle.checks;
            retransmissions += oracle.retransmissions;
        }
    }
    assert!(checks > 100_000, "{checks}");
    assert!(retransmissions > 5000, "{retransmissions}");
}

/// No life stalls, and the receiver gets each segment, whatever the network does.
#[test]
fn random_lives_of_linux_deliver_everything() {
    for seed in 1..=100 {
        for algorithm in ALGORITHMS {
            let mut oracle = Rack::new(seed, harm(seed * 7));
            let mut config = Config::new(algorithm, Profile::Linux);
            config.timestamps = seed % 3 != 0;
            config.delayed_ack = seed % 5 != 0;
            config.ecn = seed % 2 == 0;
            config.max_window_segments = [1, 10, 100, 50_000][seed as usize % 4];
            let segments = 1 + Draw(seed).below(1500);
            config.bytes_to_send = Some(segments * u64::from(config.mss_bytes));
            let outcome = run(&config, path(seed), 1_000_000 * S, &mut oracle);
            assert_eq!(outcome.delivered, segments + 1, "seed {seed} {algorithm:?}");
            assert_eq!(oracle.received, (0..=segments).collect());
            assert!(oracle.open.is_empty());
            assert_eq!(outcome.window.flight_segments, 0);
            assert_eq!(oracle.timeouts, outcome.counters.timeouts);
        }
    }
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
