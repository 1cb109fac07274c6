// SPDX-License-Identifier: BSD-3-Clause
//! Several ways to one peer, such as Starlink and LTE: which of them is used.
//!
//! Probes go out over every way, inside the tunnel, and the peer answers each over the way it came. The ways are listed in
//! the order of preference.
//!
//! * The way in use fails when a probe, and all after it, had no answer for `failover`, or for twice the last round trip if
//!   that is longer. The first other way that answers is used from then on; if none does, the one in use stays.
//! * A way that is preferred to the one in use is used again when it has answered for `failback` without failing.

use std::collections::VecDeque;

/// Most probes of a way that are remembered without an answer.
const UNANSWERED: usize = 64;
/// Ways that are not in use are probed so many times more seldom, as they may cost money.
const SPARED: u64 = 5;

/// When ways are probed and changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Time between two probes of the way in use, ns.
    pub every_ns: u64,
    /// How long a probe may have no answer, ns.
    pub failover_ns: u64,
    /// How long a preferred way must have answered, ns.
    pub failback_ns: u64,
}

/// What is known of a way.
#[derive(Clone, Debug, Default)]
struct Underlay {
    /// When the next probe is due, ns.
    probe_ns: u64,
    /// When the probes were sent that have no answer, ns, the earliest first.
    unanswered: VecDeque<u64>,
    /// Since when it answers, ns.
    good_ns: Option<u64>,
    rtt_ns: Option<u64>,
    answers: u64,
}

impl Underlay {
    /// When it fails if there is no further answer, ns.
    fn fails_ns(&self, probing: &Probing) -> Option<u64> {
        let patience_ns = probing.failover_ns.max(2 * self.rtt_ns.unwrap_or_default());
        self.unanswered.front().map(|sent_ns| sent_ns + patience_ns)
    }
}

/// Another way is used from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The way used before.
    pub from: usize,
    /// The way used now.
    pub to: usize,
}

/// The ways to a peer, by number.
#[derive(Clone, Debug)]
pub struct Underlays {
    probing: Probing,
    underlays: Vec<Underlay>,
    in_use: usize,
    changes: u64,
}

impl Underlays {
    /// So many ways, of which the first is in use.
    #[must_use]
    pub fn new(now_ns: u64, probing: Probing, underlays: usize) -> Underlays {
        let underlay = Underlay {
            probe_ns: now_ns,
            ..Underlay::default()
        };
        Underlays {
            probing,
            underlays: vec![underlay; underlays],
            in_use: 0,
            changes: 0,
        }
    }

    /// The way in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// How often another way was used.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The number of answers over a way, and the last round trip, ns; none: none yet.
    #[must_use]
    pub fn answers(&self, underlay: usize) -> (u64, Option<u64>) {
        let Underlay {
            answers, rtt_ns, ..
        } = self.underlays[underlay];
        (answers, rtt_ns)
    }

    /// Whether a way answers.
    #[must_use]
    pub fn is_good(&self, underlay: usize) -> bool {
        self.underlays[underlay].good_ns.is_some()
    }

    /// When a probe or a change is due, ns.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        let probes = self.underlays.iter().map(|underlay| underlay.probe_ns);
        let fails = self
            .underlays
            .iter()
            .filter(|underlay| underlay.good_ns.is_some());
        let fails = fails.filter_map(|underlay| underlay.fails_ns(&self.probing));
        let back = self.underlays[..self.in_use].iter();
        let back = back.filter_map(|underlay| Some(underlay.good_ns? + self.probing.failback_ns));
        probes.chain(fails).chain(back).min().unwrap_or(u64::MAX)
    }

    /// The next way to which a probe is to be sent now; it counts as sent.
    pub fn probe(&mut self, now_ns: u64) -> Option<usize> {
        let at = self
            .underlays
            .iter()
            .position(|underlay| underlay.probe_ns <= now_ns)?;
        let often = if at == self.in_use { 1 } else { SPARED };
        let underlay = &mut self.underlays[at];
        underlay.probe_ns = now_ns + often * self.probing.every_ns;
        if underlay.unanswered.len() == UNANSWERED {
            // The earliest says since when there is no answer.
            underlay.unanswered.pop_back();
        }
        underlay.unanswered.push_back(now_ns);
        Some(at)
    }

    /// The answer to a probe that was sent over a way at a time came. What was never sent is ignored.
    pub fn answered(&mut self, now_ns: u64, at: usize, sent_ns: u64) {
        let Some(underlay) = self.underlays.get_mut(at) else {
            return;
        };
        if !underlay.unanswered.contains(&sent_ns) {
            return;
        }
        // An answer to a later probe shows that an earlier one was lost by chance.
        underlay.unanswered.retain(|other_ns| *other_ns > sent_ns);
        underlay.rtt_ns = Some(now_ns.saturating_sub(sent_ns));
        underlay.answers += 1;
        underlay.good_ns.get_or_insert(now_ns);
    }

    /// Uses another way if it is time.
    pub fn decide(&mut self, now_ns: u64) -> Option<Change> {
        for underlay in &mut self.underlays {
            if underlay
                .fails_ns(&self.probing)
                .is_some_and(|ns| ns <= now_ns)
            {
                underlay.good_ns = None;
            }
        }
        let good = |underlay: &Underlay| underlay.good_ns.is_some();
        let failback_ns = self.probing.failback_ns;
        let ripe = |underlay: &Underlay| {
            underlay
                .good_ns
                .is_some_and(|ns| ns + failback_ns <= now_ns)
        };
        let in_use = &self.underlays[self.in_use];
        let failed = in_use
            .fails_ns(&self.probing)
            .is_some_and(|ns| ns <= now_ns);
        let to = if failed {
            self.underlays.iter().position(good)?
        } else {
            self.underlays[..self.in_use].iter().position(ripe)?
        };
        let from = std::mem::replace(&mut self.in_use, to);
        self.underlays[to].probe_ns = now_ns;
        self.changes += 1;
        Some(Change { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const PROBING: Probing = Probing {
        every_ns: 200 * MS,
        failover_ns: 800 * MS,
        failback_ns: 10_000 * MS,
    };

    /// Two ways from a time to another, each with a round trip while it is there; returns the changes, ms.
    fn run(
        underlays: &mut Underlays,
        (from_ms, to_ms): (u64, u64),
        rtts_ms: [Option<u64>; 2],
    ) -> Vec<(u64, usize)> {
        let mut coming: Vec<(u64, usize, u64)> = Vec::new();
        let mut changes = Vec::new();
        for ms in from_ms..to_ms {
            let now_ns = ms * MS;
            let (come, later): (Vec<_>, Vec<_>) =
                coming.into_iter().partition(|(at_ns, ..)| *at_ns <= now_ns);
            coming = later;
            for (_, underlay, sent_ns) in come {
                underlays.answered(now_ns, underlay, sent_ns);
            }
            if let Some(change) = underlays.decide(now_ns) {
                changes.push((ms, change.to));
            }
            while let Some(underlay) = underlays.probe(now_ns) {
                if let Some(rtt_ms) = rtts_ms[underlay] {
                    coming.push((now_ns + rtt_ms * MS, underlay, now_ns));
                }
            }
            assert!(underlays.due_ns() > now_ns, "{ms} ms: {underlays:?}");
        }
        changes
    }

    #[test]
    fn the_second_is_used_within_a_second_and_the_first_after_ten_of_answers() {
        let mut underlays = Underlays::new(0, PROBING, 2);
        let both = [Some(40), Some(60)];
        assert_eq!(run(&mut underlays, (0, 30_000), both), []);
        assert_eq!(underlays.answers(0).1, Some(40 * MS));
        // The first probe without an answer is sent at 30 s.
        let changes = run(&mut underlays, (30_000, 60_000), [None, Some(60)]);
        assert_eq!(changes, [(30_800, 1)]);
        assert!(!underlays.is_good(0) && underlays.is_good(1));
        let changes = run(&mut underlays, (60_000, 80_000), both);
        let [(back_ms, 0)] = changes[..] else {
            panic!("{changes:?}");
        };
        assert!((70_040..71_100).contains(&back_ms), "{back_ms}");
        assert_eq!(underlays.changes(), 2);
    }

    #[test]
    fn a_preferred_way_that_comes_and_goes_is_not_used() {
        let mut underlays = Underlays::new(0, PROBING, 2);
        run(&mut underlays, (0, 5000), [Some(40), Some(60)]);
        run(&mut underlays, (5000, 10_000), [None, Some(60)]);
        for round in 0..5 {
            let from_ms = 10_000 + round * 12_000;
            let there = run(
                &mut underlays,
                (from_ms, from_ms + 9000),
                [Some(40), Some(60)],
            );
            let gone = run(
                &mut underlays,
                (from_ms + 9000, from_ms + 12_000),
                [None, Some(60)],
            );
            assert_eq!((there, gone), (vec![], vec![]));
        }
        assert_eq!(underlays.in_use(), 1);
    }

    #[test]
    fn one_lost_probe_and_a_long_way_are_no_failure() {
        let mut underlays = Underlays::new(0, PROBING, 2);
        let mut sent = Vec::new();
        for ms in 0..5000 {
            while let Some(underlay) = underlays.probe(ms * MS) {
                sent.push((ms, underlay));
            }
            // Every second probe is lost.
            for (_, (sent_ms, underlay)) in sent.iter().enumerate().filter(|(at, _)| at % 2 == 0) {
                if sent_ms + 40 == ms {
                    underlays.answered(ms * MS, *underlay, sent_ms * MS);
                }
            }
            assert_eq!(underlays.decide(ms * MS), None, "{ms}");
        }
        let mut far = Underlays::new(0, PROBING, 2);
        assert_eq!(run(&mut far, (0, 10_000), [Some(700), Some(700)]), []);
        // Twice the round trip passes first, and answers under way still come.
        let changes = run(&mut far, (10_000, 20_000), [None, Some(700)]);
        assert!((10_700..11_500).contains(&changes[0].0), "{changes:?}");
    }

    #[test]
    fn without_an_answer_anywhere_nothing_changes_and_forged_answers_count_nothing() {
        let mut underlays = Underlays::new(0, PROBING, 2);
        assert_eq!(run(&mut underlays, (0, 30_000), [None, None]), []);
        underlays.answered(30_000 * MS, 7, 0);
        underlays.answered(30_000 * MS, 1, 12_345);
        assert_eq!(underlays.decide(30_000 * MS), None);
        assert_eq!(underlays.answers(1), (0, None));
        assert!(underlays.underlays[0].unanswered.len() <= UNANSWERED);
    }
}
