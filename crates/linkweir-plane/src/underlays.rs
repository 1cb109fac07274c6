// SPDX-License-Identifier: BSD-3-Clause
//! Several ways to one peer, such as Starlink and LTE: which of them works, and which is used if it is one at a time.
//!
//! Probes go out over every way, inside the tunnel, and the peer answers each over the way it came. The ways are listed in
//! the order of preference.
//!
//! * The way in use fails when a probe, and all after it, had no answer for `failover`, or for twice the last round trip if
//!   that is longer. The first other way that answers is used from then on; if none does, the one in use stays.
//! * A way that is preferred to the one in use is used again when it has answered for `failback` without failing.
//! * A way that the system cannot use is broken: it fails at once.
//!
//! Ways that are used at once ([`crate::paths`]) fail and answer alike; of these, one that carries packets is probed as often
//! as one in use. The peer may be one that answers no probes and sends to where the last datagram came from, as any WireGuard
//! does. So until it has answered one it counts as mute:
//!
//! * Nothing is sent to it but over the way in use, not even a probe.
//! * Ways fail only when they are broken, or when the peer is silent; then the next way that is not broken has its turn.
//! * A way is used again when the system can use it again and for `failback` nothing has failed, or when the peer sends over it.

use std::collections::VecDeque;

use crate::pace::{Outages, MOST_OCCUPIED_NS};

/// Most probes of a way that are remembered without an answer.
const UNANSWERED: usize = 64;
/// Ways that are not in use are probed so many times more seldom, as they may cost money, and paths that carry nothing.
const SPARED: u64 = 5;
const SPARED_AT_ONCE: u64 = 20;
/// A peer that answered before is mute when it has answered none of so many probes since a session began, so long ago, ns: it
/// may have been replaced.
const MUTE_PROBES: u32 = 10;
const MUTE_NS: u64 = 15_000_000_000;

/// When ways are probed and changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Time between two probes of the way in use, ns.
    pub every_ns: u64,
    /// How long a probe may have no answer, ns.
    pub failover_ns: u64,
    /// How long a preferred way must have answered, ns.
    pub failback_ns: u64,
    /// Whether several ways may carry packets at once.
    pub at_once: bool,
}

/// A probe without an answer.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    /// When it was sent, ns.
    sent_ns: u64,
    /// For how long its way had had no capacity by then, ns.
    empty_ns: u64,
}

/// What is known of a way.
#[derive(Clone, Debug, Default)]
struct Underlay {
    /// Whether it leads nowhere yet: the peer must send over it first.
    leads_nowhere: bool,
    /// When the next probe is due, ns.
    probe_ns: u64,
    /// The probes that have no answer, the earliest first.
    unanswered: VecDeque<Unanswered>,
    /// For how long it had no capacity so far, ns, and the same without an outage that lasts.
    empty_ns: u64,
    over_ns: u64,
    /// Since when an outage lasts in which it is spared, ns, and when the last one ended, ns.
    out_ns: Option<u64>,
    filled_ns: u64,
    /// Since when it answers, ns.
    good_ns: Option<u64>,
    rtt_ns: Option<u64>,
    /// The round trip of the last answer, ns, unless the probe may have waited for capacity.
    measured_ns: Option<u64>,
    answers: u64,
    /// When the last probe was sent that was answered, ns.
    arrived_ns: u64,
    /// Whether the system cannot use it at present, and since when it can again, ns.
    is_broken: bool,
    mended_ns: Option<u64>,
    /// When the system refused a datagram, ns, if it is broken by that and not by its device, or was and nothing has been heard
    /// of the system or over it since.
    refused_ns: Option<u64>,
    /// When the last probe was sent, ns, and whether packets were since.
    probed_ns: u64,
    is_used: bool,
}

impl Underlay {
    /// When it fails if there is no further answer, ns.
    fn fails_ns(&self, probing: &Probing) -> Option<u64> {
        let rtt_ns = self.rtt_ns.unwrap_or_default();
        let patience_ns = probing.failover_ns.max(2 * rtt_ns);
        let first = self.unanswered.front()?;
        if self
            .out_ns
            .is_some_and(|out_ns| first.sent_ns + rtt_ns >= out_ns)
        {
            return None; // it may wait, or its answer, until the outage ends
        }
        let excused_ns = self.over_ns.saturating_sub(first.empty_ns);
        Some(first.sent_ns + patience_ns + excused_ns)
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
    /// Whether the peer answers probes, as far as is known.
    answers: bool,
    /// When a session began in which it has answered none, ns, and how many were sent since.
    met: Option<(u64, u32)>,
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
            answers: false,
            met: None,
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

    /// The round trip that the last answer over a way has measured, ns; none: the probe may have waited for capacity.
    #[must_use]
    pub fn measured_ns(&self, underlay: usize) -> Option<u64> {
        self.underlays[underlay].measured_ns
    }

    /// When the last probe was sent over a way that was answered, ns; 0: none was.
    #[must_use]
    pub fn arrived_ns(&self, underlay: usize) -> u64 {
        self.underlays[underlay].arrived_ns
    }

    /// Whether a way answers.
    #[must_use]
    pub fn is_good(&self, underlay: usize) -> bool {
        self.underlays[underlay].good_ns.is_some()
    }

    /// Whether several ways may carry packets at once.
    #[must_use]
    pub fn are_at_once(&self) -> bool {
        self.probing.at_once
    }

    /// Whether the system cannot use a way at present.
    #[must_use]
    pub fn is_broken(&self, underlay: usize) -> bool {
        self.underlays[underlay].is_broken
    }

    /// The way in use, or the first that leads somewhere while that one does not.
    #[must_use]
    pub fn current(&self) -> usize {
        let leads = |way: &usize| !self.underlays[*way].leads_nowhere;
        let mut ways = std::iter::once(self.in_use).chain(0..self.underlays.len());
        ways.find(leads).unwrap_or(self.in_use)
    }

    /// Sets whether a way leads somewhere.
    pub fn set_leads(&mut self, at: usize, leads: bool) {
        self.underlays[at].leads_nowhere = !leads;
    }

    /// The ways are others of the same peer: this one is in use, and whether it answers probes is known. To one that is mute those
    /// that are preferred can be used again from now on.
    pub fn inherit(&mut self, now_ns: u64, before: &Underlays, in_use: Option<usize>) {
        self.answers = before.answers;
        self.in_use = in_use.unwrap_or(self.in_use);
        for underlay in &mut self.underlays[..self.in_use] {
            underlay.mended_ns = Some(now_ns).filter(|_| !underlay.is_broken);
        }
    }

    /// Whether the device of a way carries nothing at present.
    #[must_use]
    pub fn has_no_carrier(&self, at: usize) -> bool {
        let underlay = &self.underlays[at];
        underlay.is_broken && underlay.refused_ns.is_none()
    }

    /// The system refused to send over a way: that breaks it until the system can use it again, an answer comes or, if the
    /// peer is mute, for a while.
    pub fn refused(&mut self, now_ns: u64, at: usize) {
        let is_known = |underlay: &Underlay| underlay.refused_ns.is_some();
        let was_refused = self.underlays.get(at).is_some_and(is_known);
        if self.set_broken(now_ns, at, true) || was_refused {
            self.underlays[at].refused_ns = Some(now_ns);
        }
    }

    /// The system can no longer use a way, or it can again, which a probe is to confirm at once. Returns whether that is news.
    pub fn set_broken(&mut self, now_ns: u64, at: usize, is_broken: bool) -> bool {
        let Some(underlay) = self.underlays.get_mut(at) else {
            return false;
        };
        let was_refused = underlay.refused_ns.take().is_some();
        let is_news = underlay.is_broken != is_broken || was_refused && !is_broken;
        underlay.is_broken = is_broken;
        if is_broken {
            underlay.good_ns = None;
            underlay.mended_ns = None;
            underlay.unanswered.clear();
        } else if is_news {
            underlay.mended_ns = Some(now_ns);
            underlay.probe_ns = now_ns;
        }
        is_news
    }

    /// Sets in which times a way had no capacity. An outage that is over does not count as silence. Where the way is `spared`, as others
    /// carry its packets, no probes are sent in one, as they would wait. When there is capacity again, one is sent as soon as the time
    /// between two probes allows.
    pub fn set_outages(&mut self, now_ns: u64, at: usize, outages: Outages, spared: bool) {
        let Some(underlay) = self.underlays.get_mut(at) else {
            return;
        };
        underlay.empty_ns = outages.sum_ns;
        if outages.lasts {
            let since_ns = underlay.out_ns.unwrap_or(now_ns);
            underlay.out_ns = spared.then_some(since_ns);
        } else if underlay.out_ns.take().is_some() || underlay.over_ns != outages.sum_ns {
            underlay.over_ns = outages.sum_ns;
            underlay.filled_ns = now_ns;
            if underlay.good_ns.is_some() && !underlay.is_used && underlay.unanswered.is_empty() {
                return; // it carries nothing
            }
            // Capacities may be told in quick succession.
            let soonest_ns = now_ns.max(underlay.probed_ns + self.probing.every_ns);
            underlay.probe_ns = underlay.probe_ns.min(soonest_ns);
        }
    }

    /// Whether a probe of the peer that came over a way is answered there. After so long without capacity it is not: what is sent
    /// waits in the queue below, takes its time of the way afterwards, and tells the peer nothing by then.
    #[must_use]
    pub fn answers_now(&self, now_ns: u64, at: usize) -> bool {
        let out_ns = self.underlays.get(at).and_then(|way| way.out_ns);
        out_ns.is_none_or(|since_ns| now_ns < since_ns + MOST_OCCUPIED_NS)
    }

    /// Whether the peer answers no probes at all, as far as is known.
    #[must_use]
    pub fn is_mute(&self) -> bool {
        !self.answers
    }

    /// A session with the peer has begun: if it answers no probe of that, it is another one, which is mute.
    pub fn met(&mut self, now_ns: u64) {
        self.met = Some((now_ns, 0));
    }

    /// Finds whether a peer that answered before is mute now.
    fn doubt(&mut self, now_ns: u64) {
        let is_mute = self.met.is_some_and(|(began_ns, probes)| {
            probes >= MUTE_PROBES && now_ns.saturating_sub(began_ns) >= MUTE_NS
        });
        if is_mute && self.probing.at_once {
            self.met = None;
            if !std::mem::replace(&mut self.answers, false) {
                return;
            }
            for underlay in &mut self.underlays {
                underlay.good_ns = None;
                underlay.mended_ns = None;
            }
        }
    }

    /// The only way that may be probed; none: all may.
    fn only(&self) -> Option<usize> {
        (self.is_mute() && self.probing.at_once).then(|| self.current())
    }

    /// A mute peer sends over a way: that is used from now on, unless its device carries nothing.
    pub fn follow(&mut self, at: usize) -> Option<Change> {
        let underlay = &mut self.underlays[at];
        if underlay.refused_ns.take().is_some() {
            underlay.is_broken = false;
        }
        if at == self.in_use || underlay.is_broken || !self.is_mute() {
            return None;
        }
        // What the peer says is later than what the system has said.
        for underlay in &mut self.underlays {
            underlay.mended_ns = None;
        }
        Some(self.change(at))
    }

    fn change(&mut self, to: usize) -> Change {
        let from = self.current();
        self.in_use = to;
        self.changes += 1;
        Change { from, to }
    }

    /// Since when a way may be used again, ns: it answers, or, if the peer never does, the system can use it.
    fn ripens_ns(&self, at: usize) -> Option<u64> {
        let underlay = &self.underlays[at];
        let is_usable = self.is_mute() && !underlay.leads_nowhere;
        let mended_ns = underlay.mended_ns.filter(|_| is_usable);
        underlay.good_ns.or(mended_ns)
    }

    /// Probes every way at once.
    pub fn probe_all(&mut self, now_ns: u64) {
        for underlay in &mut self.underlays {
            underlay.probe_ns = now_ns;
        }
    }

    /// A packet is sent over a way. If it carried none before, its next probe is due sooner.
    #[inline]
    pub fn carries(&mut self, at: usize) {
        let (every_ns, answers) = (self.probing.every_ns, self.answers);
        let underlay = &mut self.underlays[at];
        if !underlay.is_used && answers && underlay.answers > 0 {
            underlay.is_used = true;
            underlay.probe_ns = underlay.probe_ns.min(underlay.probed_ns + every_ns);
        }
    }

    /// The peer sends nothing: if it answers no probes either, the next way that is not broken is used.
    pub fn fell_silent(&mut self) -> Option<Change> {
        let change = self.is_mute().then(|| self.skip())??;
        // That its device can be used again says nothing of the silence since.
        self.underlays[change.from].mended_ns = None;
        Some(change)
    }

    /// Uses the next way that is not broken.
    fn skip(&mut self) -> Option<Change> {
        let ways = self.underlays.len();
        let current = self.current();
        let mut others = (1..ways).map(|step| (current + step) % ways);
        let can = |underlay: &Underlay| !underlay.is_broken && !underlay.leads_nowhere;
        let to = others.find(|at| can(&self.underlays[*at]))?;
        self.underlays[to].probe_ns = 0;
        Some(self.change(to))
    }

    /// When a probe or a change is due, ns.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        let only = self.only();
        let probed = self.underlays.iter().enumerate();
        let probed = probed.filter(|(at, _)| only.is_none_or(|only| only == *at));
        let probed = probed.filter(|(_, underlay)| underlay.out_ns.is_none());
        let probes = probed.map(|(_, underlay)| underlay.probe_ns);
        let fails = self
            .underlays
            .iter()
            .filter(|underlay| underlay.good_ns.is_some());
        let fails = fails.filter_map(|underlay| underlay.fails_ns(&self.probing));
        let back = (0..self.current())
            .filter_map(|at| Some(self.ripens_ns(at)? + self.probing.failback_ns));
        probes.chain(fails).chain(back).min().unwrap_or(u64::MAX)
    }

    /// The next way to which a probe is to be sent now; it counts as sent.
    pub fn probe(&mut self, now_ns: u64) -> Option<usize> {
        let is_due = |at: &usize| {
            let underlay = &self.underlays[*at];
            underlay.probe_ns <= now_ns && underlay.out_ns.is_none()
        };
        let at = match self.only() {
            Some(only) => Some(only).filter(is_due)?,
            None => (0..self.underlays.len()).find(is_due)?,
        };
        let is_mute = self.is_mute();
        if let Some((_, probes)) = &mut self.met {
            *probes = probes.saturating_add(1);
        }
        let underlay = &mut self.underlays[at];
        let often = match self.probing.at_once {
            true if underlay.is_used && !is_mute => 1,
            true => SPARED_AT_ONCE,
            false if at == self.in_use => 1,
            false => SPARED,
        };
        underlay.is_used = false;
        underlay.probed_ns = now_ns;
        underlay.probe_ns = now_ns + often * self.probing.every_ns;
        if underlay.unanswered.len() == UNANSWERED {
            // The earliest says since when there is no answer.
            underlay.unanswered.pop_back();
        }
        underlay.unanswered.push_back(Unanswered {
            sent_ns: now_ns,
            empty_ns: underlay.empty_ns,
        });
        Some(at)
    }

    /// The answer to a probe that was sent over a way at a time came. What was never sent is ignored; returns whether it was.
    pub fn answered(&mut self, now_ns: u64, at: usize, sent_ns: u64) -> bool {
        let Some(underlay) = self.underlays.get_mut(at) else {
            return false;
        };
        let is_known = |probe: &&Unanswered| probe.sent_ns == sent_ns;
        let Some(probe) = underlay.unanswered.iter().find(is_known).copied() else {
            return false;
        };
        // An answer to a later probe shows that an earlier one was lost by chance.
        underlay.unanswered.retain(|other| other.sent_ns > sent_ns);
        // What may have waited for capacity says only how long the round trip is at least, which is better than nothing.
        let took_ns = now_ns.saturating_sub(sent_ns);
        let waited_ns = underlay.empty_ns.saturating_sub(probe.empty_ns);
        let is_long = |rtt_ns: u64| took_ns > 2 * rtt_ns;
        let may_have_waited =
            sent_ns < underlay.filled_ns || waited_ns > 0 && underlay.rtt_ns.is_none_or(is_long);
        underlay.measured_ns = if may_have_waited {
            let least_ns = took_ns.saturating_sub(waited_ns);
            Some(least_ns).filter(|_| underlay.rtt_ns.is_none())
        } else {
            Some(took_ns)
        };
        underlay.rtt_ns = underlay.measured_ns.or(underlay.rtt_ns);
        underlay.answers += 1;
        underlay.arrived_ns = sent_ns;
        underlay.is_broken = false;
        underlay.refused_ns = None;
        underlay.good_ns.get_or_insert(now_ns);
        self.met = None;
        if !std::mem::replace(&mut self.answers, true) && self.probing.at_once {
            self.probe_all(now_ns);
        }
        true
    }

    /// Uses another way if it is time.
    pub fn decide(&mut self, now_ns: u64) -> Option<Change> {
        self.doubt(now_ns);
        let is_mute = self.is_mute();
        let failback_ns = self.probing.failback_ns;
        for underlay in &mut self.underlays {
            // A mute peer confirms nothing, so what was refused once may be tried again when the way in use fails.
            let is_over = |ns: u64| is_mute && ns + failback_ns <= now_ns;
            if underlay.refused_ns.is_some_and(is_over) {
                underlay.is_broken = false;
            }
            if underlay
                .fails_ns(&self.probing)
                .is_some_and(|ns| ns <= now_ns)
            {
                underlay.good_ns = None;
            }
        }
        let good = |underlay: &Underlay| underlay.good_ns.is_some();
        let ripe = |at: &usize| {
            self.ripens_ns(*at)
                .is_some_and(|ns| ns + failback_ns <= now_ns)
        };
        let current = self.current();
        let in_use = &self.underlays[current];
        let failed = in_use
            .fails_ns(&self.probing)
            .is_some_and(|ns| ns <= now_ns);
        let is_broken = in_use.is_broken;
        let to = if failed || is_broken {
            match self.underlays.iter().position(good) {
                None if is_broken => return self.skip(),
                None if self.is_mute() => (0..current).find(ripe)?,
                found => found?,
            }
        } else {
            (0..current).find(ripe)?
        };
        self.underlays[to].probe_ns = now_ns;
        Some(self.change(to))
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
        at_once: false,
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
    fn a_broken_way_fails_at_once_and_is_probed_as_soon_as_it_works() {
        let mut underlays = Underlays::new(0, PROBING, 2);
        let both = [Some(40), Some(60)];
        run(&mut underlays, (0, 5000), both);
        assert!(underlays.set_broken(5000 * MS, 0, true));
        assert!(!underlays.set_broken(5000 * MS, 0, true), "no news");
        assert!(!underlays.is_good(0));
        let changes = run(&mut underlays, (5000, 8000), [None, Some(60)]);
        assert_eq!(changes, [(5000, 1)]);
        assert!(underlays.set_broken(8000 * MS, 0, false));
        assert_eq!(run(&mut underlays, (8000, 18_039), both), []);
        assert_eq!(run(&mut underlays, (18_039, 18_100), both), [(18_040, 0)]);
    }

    #[test]
    fn a_peer_that_answers_no_probes_has_ways_that_are_broken_or_silent() {
        let mut underlays = Underlays::new(0, PROBING, 3);
        run3(&mut underlays, (0, 5000));
        underlays.set_broken(5000 * MS, 0, true);
        underlays.set_broken(5000 * MS, 1, true);
        assert_eq!(run3(&mut underlays, (5000, 6000)), [(5000, 2)]);
        assert_eq!(underlays.fell_silent(), None, "all others are broken");
        underlays.set_broken(6000 * MS, 0, false);
        assert_eq!(run3(&mut underlays, (6000, 17_000)), [(16_000, 0)]);
        assert_eq!(underlays.fell_silent(), Some(Change { from: 0, to: 2 }));
        // A peer that answers is not skipped for being silent.
        let mut answers = Underlays::new(0, PROBING, 2);
        run(&mut answers, (0, 1000), [Some(40), None]);
        assert_eq!(answers.fell_silent(), None);
    }

    const AT_ONCE: Probing = Probing {
        at_once: true,
        ..PROBING
    };

    /// A way that is silent is left, however often the system says that its device works, until it says so again.
    #[test]
    fn what_was_said_before_the_silence_leads_nowhere() {
        let mut underlays = Underlays::new(0, AT_ONCE, 2);
        underlays.set_broken(0, 0, true);
        assert_eq!(run3(&mut underlays, (0, 1000)), [(0, 1)]);
        underlays.set_broken(1000 * MS, 0, false);
        assert_eq!(run3(&mut underlays, (1000, 12_000)), [(11_000, 0)]);
        assert_eq!(underlays.fell_silent(), Some(Change { from: 0, to: 1 }));
        assert_eq!(run3(&mut underlays, (12_000, 60_000)), []);
        assert!(underlays.set_broken(60_000 * MS, 0, true));
        assert!(underlays.set_broken(61_000 * MS, 0, false));
        assert_eq!(run3(&mut underlays, (61_000, 90_000)), [(71_000, 0)]);
    }

    /// A reload comes while the preferred way can be used again and is not used yet.
    #[test]
    fn other_ways_of_a_mute_peer_leave_none_for_good() {
        let mut before = Underlays::new(0, AT_ONCE, 2);
        before.set_broken(0, 0, true);
        assert_eq!(run3(&mut before, (0, 1000)), [(0, 1)]);
        before.set_broken(1000 * MS, 0, false);
        let mut ways = Underlays::new(5000 * MS, AT_ONCE, 3);
        ways.set_broken(5000 * MS, 0, true);
        ways.inherit(5000 * MS, &before, Some(2));
        assert_eq!(run3(&mut ways, (5000, 16_000)), [(15_000, 1)]);
        assert!(ways.set_broken(16_000 * MS, 0, false));
        assert_eq!(run3(&mut ways, (16_000, 60_000)), [(26_000, 0)]);
        // Of one that answers, answers alone say which can be used.
        let mut answers = Underlays::new(0, AT_ONCE, 2);
        assert_eq!(answers.probe(0), Some(0));
        assert!(answers.answered(MS, 0, 0));
        let mut ways = Underlays::new(5000 * MS, AT_ONCE, 2);
        ways.inherit(5000 * MS, &answers, Some(1));
        assert_eq!(run3(&mut ways, (5000, 60_000)), []);
    }

    /// The way in use leads nowhere, so another one is used for now, which then is silent, or breaks.
    #[test]
    fn the_next_way_is_the_one_behind_that_which_is_used_now() {
        for breaks in [false, true] {
            let mut underlays = Underlays::new(0, AT_ONCE, 3);
            underlays.set_leads(0, false);
            assert_eq!(underlays.current(), 1);
            let change = if breaks {
                underlays.set_broken(0, 1, true);
                underlays.decide(0)
            } else {
                underlays.fell_silent()
            };
            assert_eq!(change, Some(Change { from: 1, to: 2 }));
            assert_eq!(underlays.current(), 2);
            assert!(run3(&mut underlays, (0, 60_000)).is_empty());
        }
    }

    /// Each probe makes a peer that knows none send back over its way.
    #[test]
    fn a_mute_peer_is_probed_over_the_way_in_use_alone() {
        let mut underlays = Underlays::new(0, AT_ONCE, 3);
        let probed = |underlays: &mut Underlays, from_s: u64, to_s: u64| {
            let mut ways = vec![0; 3];
            for now_ns in (from_s * 1000..to_s * 1000).map(|ms| ms * MS) {
                underlays.decide(now_ns);
                while let Some(way) = underlays.probe(now_ns) {
                    ways[way] += 1;
                }
                assert!(underlays.due_ns() > now_ns);
            }
            ways
        };
        assert_eq!(probed(&mut underlays, 0, 20), [5, 0, 0]);
        underlays.set_leads(1, false);
        let to_last = Change { from: 0, to: 2 };
        assert_eq!(
            underlays.fell_silent(),
            Some(to_last),
            "the second leads nowhere"
        );
        assert_eq!(probed(&mut underlays, 20, 40), [0, 0, 5]);
        assert_eq!(underlays.follow(2), None);
        assert_eq!(underlays.follow(0), Some(Change { from: 2, to: 0 }));
        underlays.set_leads(1, true);
        // One that answers is probed over all.
        assert!(probed(&mut underlays, 40, 44)[0] > 0);
        assert!(underlays.answered(44_000 * MS, 0, 40_000 * MS));
        assert_eq!(probed(&mut underlays, 44, 45), [1, 1, 1]);
        assert_eq!(underlays.follow(1), None, "its probes say which works");
    }

    /// Another peer took the place of one that answered: the session is another one, too.
    #[test]
    fn a_peer_that_answers_no_more_in_a_new_session_is_mute() {
        let mut underlays = Underlays::new(0, AT_ONCE, 2);
        assert_eq!(underlays.probe(0), Some(0));
        assert!(underlays.answered(MS, 0, 0));
        let probes = |underlays: &mut Underlays, from_ms: u64, to_ms: u64| {
            for now_ns in (from_ms..to_ms).map(|ms| ms * MS) {
                underlays.decide(now_ns);
                while underlays.probe(now_ns).is_some() {}
            }
        };
        probes(&mut underlays, 1, 100_000);
        assert!(!underlays.is_mute(), "silence alone says nothing");
        underlays.met(100_000 * MS);
        probes(&mut underlays, 100_000, 114_000);
        assert!(!underlays.is_mute());
        probes(&mut underlays, 114_000, 130_000);
        assert!(underlays.is_mute());
        // One answer is enough.
        underlays.met(130_000 * MS);
        assert_eq!(underlays.probe(140_000 * MS), Some(0));
        assert!(underlays.answered(140_001 * MS, 0, 140_000 * MS));
        probes(&mut underlays, 140_001, 200_000);
        assert!(!underlays.is_mute());
    }

    /// That it answered nothing in its first session, either, is no news, so what the system has said before still counts.
    #[test]
    fn a_peer_that_was_mute_all_the_time_comes_back_when_a_device_works_again() {
        let probing = Probing {
            every_ns: 50 * MS,
            ..AT_ONCE
        };
        let mut underlays = Underlays::new(0, probing, 2);
        underlays.met(0);
        assert!(run3(&mut underlays, (0, 11_000)).is_empty());
        underlays.set_broken(11_000 * MS, 0, true);
        assert_eq!(run3(&mut underlays, (11_000, 14_000)), [(11_000, 1)]);
        underlays.set_broken(14_000 * MS, 0, false);
        assert_eq!(run3(&mut underlays, (14_000, 60_000)), [(24_000, 0)]);
    }

    /// Where datagrams are refused nothing is sent for a while; a device without a carrier is not used whatever comes from it.
    #[test]
    fn the_word_of_a_mute_peer_counts_more_than_a_refusal_and_less_than_a_carrier() {
        let mut underlays = Underlays::new(0, AT_ONCE, 2);
        underlays.refused(1000 * MS, 0);
        underlays.refused(1000 * MS, 0);
        assert_eq!(run3(&mut underlays, (1000, 2000)), [(1000, 1)]);
        assert!(underlays.is_broken(0));
        assert_eq!(underlays.follow(0), Some(Change { from: 1, to: 0 }));
        assert!(!underlays.is_broken(0));
        underlays.refused(3000 * MS, 0);
        assert_eq!(run3(&mut underlays, (3000, 14_000)), [(3000, 1)]);
        assert!(
            !underlays.is_broken(0),
            "it may be tried when the other fails"
        );
        assert!(
            underlays.set_broken(14_000 * MS, 0, false),
            "it has changed"
        );
        assert_eq!(run3(&mut underlays, (14_000, 25_000)), [(24_000, 0)]);
        underlays.refused(25_000 * MS, 0);
        assert_eq!(run3(&mut underlays, (25_000, 26_000)), [(25_000, 1)]);
        underlays.set_broken(26_000 * MS, 0, true);
        assert_eq!(underlays.follow(0), None);
        underlays.refused(27_000 * MS, 0);
        assert_eq!(run3(&mut underlays, (27_000, 60_000)), []);
        assert_eq!(underlays.follow(0), None, "its device carries nothing");
    }

    /// Ways that answer nothing; returns the changes, ms.
    fn run3(underlays: &mut Underlays, (from_ms, to_ms): (u64, u64)) -> Vec<(u64, usize)> {
        let mut changes = Vec::new();
        for ms in from_ms..to_ms {
            let change = underlays.decide(ms * MS);
            changes.extend(change.map(|change| (ms, change.to)));
            while underlays.probe(ms * MS).is_some() {}
        }
        changes
    }

    #[test]
    fn of_ways_used_at_once_those_that_carry_packets_are_probed_more_often() {
        let probing = Probing {
            at_once: true,
            ..PROBING
        };
        let mut underlays = Underlays::new(0, probing, 2);
        let mut probes = [0, 0];
        for ms in 0..10_000 {
            underlays.carries(1);
            while let Some(way) = underlays.probe(ms * MS) {
                probes[way] += 1;
            }
        }
        assert_eq!(probes, [3, 0], "the peer has not answered yet");
        underlays.answered(9000 * MS, 0, 8000 * MS);
        for ms in 10_000..20_000 {
            underlays.carries(1);
            while let Some(way) = underlays.probe(ms * MS) {
                probes[way] += 1;
            }
            if ms == 10_000 {
                assert!(underlays.answered(ms * MS, 1, ms * MS));
            }
        }
        assert_eq!(probes, [6, 50]);
        // One that begins to carry packets need not wait for its next probe.
        let due_ns = underlays.underlays[0].probe_ns;
        underlays.carries(0);
        assert_eq!(underlays.underlays[0].probe_ns, due_ns - 3800 * MS);
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

    /// A path of 60 ms that answers when it `carries`, and is told to have no capacity at some times, from 0 to 2000 ms; returns when
    /// it was found dead, ms.
    fn found_dead(carries: impl Fn(u64) -> bool, has_none: impl Fn(u64) -> bool) -> Option<u64> {
        let at_once = Probing {
            every_ns: 50 * MS,
            failover_ns: 200 * MS,
            at_once: true,
            ..PROBING
        };
        let mut underlays = Underlays::new(0, at_once, 1);
        let mut waiting: VecDeque<u64> = VecDeque::new();
        let mut coming: VecDeque<(u64, u64)> = VecDeque::new();
        let mut outages = Outages::default();
        for ms in 0..2000 {
            let now_ns = ms * MS;
            outages.sum_ns += u64::from(outages.lasts) * MS;
            outages.lasts = has_none(ms);
            underlays.set_outages(now_ns, 0, outages, true);
            underlays.carries(0);
            if carries(ms) {
                coming.extend(waiting.drain(..).map(|sent_ns| (now_ns + 60 * MS, sent_ns)));
            }
            while coming.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
                let (_, sent_ns) = coming.pop_front().unwrap();
                underlays.answered(now_ns, 0, sent_ns);
            }
            underlays.decide(now_ns);
            if ms > 500 && !underlays.is_good(0) {
                return Some(ms);
            }
            while underlays.probe(now_ns).is_some() {
                waiting.push_back(now_ns);
            }
        }
        None
    }

    /// A probe that waited for the end of an outage of 190 ms has its answer 250 ms after it was sent, if the outage began just
    /// after that.
    #[test]
    fn an_outage_that_is_told_is_not_taken_for_silence() {
        for begin in 1000..1050 {
            let outage = |ms: u64| (begin..begin + 190).contains(&ms);
            assert_eq!(found_dead(|ms| !outage(ms), outage), None, "{begin}");
        }
        let outage = |ms: u64| (1000..1190).contains(&ms);
        let found_ms = found_dead(|ms| !outage(ms), |_| false).unwrap();
        assert!((1100..1250).contains(&found_ms), "{found_ms}");
    }

    /// A reload takes place in an outage, and the ways are listed anew.
    #[test]
    fn an_outage_in_which_ways_are_listed_anew_is_not_taken_for_silence() {
        let mut before = Underlays::new(0, AT_ONCE, 1);
        assert_eq!(before.probe(0), Some(0));
        assert!(before.answered(0, 0, 0));
        before.set_outages(1000 * MS, 0, outage(0, true), true);
        let mut underlays = Underlays::new(1100 * MS, AT_ONCE, 1);
        underlays.inherit(1100 * MS, &before, Some(0));
        underlays.set_outages(1100 * MS, 0, outage(100, true), true);
        assert_eq!(underlays.probe(1100 * MS), None);
        underlays.set_outages(3000 * MS, 0, outage(2000, false), true);
        assert_eq!(underlays.probe(3000 * MS), Some(0));
        // What has no answer is silence since the end of the outage.
        let fails_ns = underlays.underlays[0].fails_ns(&AT_ONCE);
        assert_eq!(fails_ns, Some((3000 + 800) * MS));
    }

    fn outage(sum_ms: u64, lasts: bool) -> Outages {
        Outages {
            sum_ns: sum_ms * MS,
            lasts,
            ends_ns: None,
        }
    }

    /// Nor is a long one: what was sent before it is answered in it, or may wait for its end, and nothing is sent in it.
    #[test]
    fn a_path_is_as_good_after_a_long_outage_that_is_told_as_before() {
        for begin in 1000..1050 {
            let outage = |ms: u64| (begin..begin + 900).contains(&ms);
            assert_eq!(found_dead(|ms| !outage(ms), outage), None, "{begin}");
        }
        let outage = |ms: u64| (1000..1900).contains(&ms);
        // Unless it had fallen silent before.
        let found_ms = found_dead(|ms| ms < 900, outage).unwrap();
        assert!((1050..1150).contains(&found_ms), "{found_ms}");
    }

    /// A path that answers, of 60 ms.
    fn answering() -> Underlays {
        let mut underlays = Underlays::new(0, AT_ONCE, 1);
        assert_eq!(underlays.probe(0), Some(0));
        assert!(underlays.answered(60 * MS, 0, 0));
        while underlays.probe(900 * MS).is_some() {}
        underlays
    }

    #[test]
    fn nothing_is_probed_while_it_is_told_to_have_no_capacity() {
        let mut underlays = answering();
        underlays.set_outages(1000 * MS, 0, outage(0, true), true);
        underlays.probe_all(1000 * MS);
        for now_ns in (1000..50_000).map(|ms| ms * MS) {
            assert_eq!(underlays.probe(now_ns), None);
            underlays.decide(now_ns);
            assert!(underlays.due_ns() > now_ns);
        }
        underlays.set_outages(50_000 * MS, 0, outage(49_000, false), true);
        assert_eq!(underlays.probe(50_000 * MS), Some(0));
    }

    /// The last probe before an outage of 49 s comes through after it.
    #[test]
    fn a_round_trip_across_an_outage_does_not_count() {
        let mut underlays = answering();
        underlays.set_outages(901 * MS, 0, outage(0, true), true);
        underlays.set_outages(49_901 * MS, 0, outage(49_000, false), true);
        assert!(underlays.answered(49_961 * MS, 0, 900 * MS));
        assert_eq!(underlays.measured_ns(0), None);
        assert_eq!(underlays.answers(0), (2, Some(60 * MS)));
        assert_eq!(underlays.probe(50_000 * MS), Some(0));
        assert!(underlays.answered(50_070 * MS, 0, 50_000 * MS));
        assert_eq!(underlays.answers(0), (3, Some(70 * MS)));
        assert_eq!(underlays.measured_ns(0), Some(70 * MS));
        // What is answered in an outage within about a round trip has not waited for it.
        underlays.carries(0);
        assert_eq!(underlays.probe(51_000 * MS), Some(0));
        underlays.set_outages(51_001 * MS, 0, outage(49_000, true), true);
        underlays.set_outages(51_080 * MS, 0, outage(49_079, true), true);
        assert!(underlays.answered(51_080 * MS, 0, 51_000 * MS));
        assert_eq!(underlays.measured_ns(0), Some(80 * MS));
    }

    /// The end of an outage may be known later than the answer that it held.
    #[test]
    fn an_answer_that_comes_before_its_outage_is_known_to_be_over_does_not_count() {
        let mut underlays = answering();
        underlays.set_outages(901 * MS, 0, outage(0, true), true);
        underlays.set_outages(49_961 * MS, 0, outage(49_060, true), true);
        assert!(underlays.answered(49_961 * MS, 0, 900 * MS));
        assert_eq!(underlays.answers(0), (2, Some(60 * MS)));
    }

    /// Every probe waits: the round trip is at least what is left without the outages.
    #[test]
    fn a_way_that_is_out_within_each_round_trip_is_measured_all_the_same() {
        let mut underlays = Underlays::new(0, AT_ONCE, 1);
        assert_eq!(underlays.probe(0), Some(0));
        for at_ms in [100, 200, 300, 400, 500, 600] {
            let sum_ms = at_ms / 10;
            underlays.set_outages((at_ms - 10) * MS, 0, outage(sum_ms - 10, true), true);
            underlays.set_outages(at_ms * MS, 0, outage(sum_ms, false), true);
        }
        assert!(underlays.answered(600 * MS, 0, 0));
        assert_eq!(underlays.answers(0), (1, Some(540 * MS)));
        assert_eq!(underlays.measured_ns(0), Some(540 * MS));
    }

    /// Nothing else carries what a mute peer gets, or one with which this end has not agreed.
    #[test]
    fn a_way_of_a_mute_peer_is_left_in_an_outage() {
        let mut underlays = Underlays::new(0, AT_ONCE, 2);
        let silent = |now_ns: u64, underlays: &mut Underlays| {
            underlays.set_outages(now_ns, 0, outage(now_ns / MS, true), false);
            underlays.probe(now_ns)
        };
        assert_eq!(silent(0, &mut underlays), Some(0));
        let mut probes = (1..20_000).filter(|ms| silent(ms * MS, &mut underlays).is_some());
        assert!(probes.next().is_some());
        assert!(underlays.fell_silent().is_some_and(|change| change.to == 1));
        // One that answers, but not as one of several.
        let mut underlays = answering();
        for ms in 901..3000 {
            underlays.set_outages(ms * MS, 0, outage(ms - 900, true), false);
            underlays.probe(ms * MS);
            underlays.decide(ms * MS);
        }
        assert!(!underlays.is_good(0));
    }

    #[test]
    fn the_peer_is_answered_in_the_first_second_of_an_outage_only() {
        let mut underlays = answering();
        underlays.set_outages(1000 * MS, 0, outage(0, true), true);
        for (ms, answers) in [(1000, true), (1999, true), (2000, false), (9000, false)] {
            assert_eq!(underlays.answers_now(ms * MS, 0), answers, "{ms} ms");
        }
        underlays.set_outages(9000 * MS, 0, outage(8000, false), true);
        assert!(underlays.answers_now(9000 * MS, 0));
    }

    #[test]
    fn capacities_told_in_quick_succession_cause_no_more_probes() {
        let mut underlays = Underlays::new(0, AT_ONCE, 1);
        assert_eq!(underlays.probe(0), Some(0));
        assert!(underlays.answered(0, 0, 0));
        assert_eq!(underlays.probe(0), Some(0));
        let mut probes = 0;
        let mut outages = Outages::default();
        for now_ns in (1..=1000).map(|ms| ms * MS) {
            for lasts in [true, false] {
                outages.sum_ns += 1;
                outages.lasts = lasts;
                underlays.set_outages(now_ns, 0, outages, true);
            }
            while underlays.probe(now_ns).is_some() {
                probes += 1;
            }
        }
        assert_eq!(probes, 5, "one in each of 200 ms");
    }

    /// Nor does it hide that a path is dead, though half of the time it is told to have no capacity.
    #[test]
    fn a_dead_path_is_found_between_outages() {
        let found_ms = found_dead(|ms| ms < 1000, |ms| ms >= 1000 && ms / 50 % 2 == 0).unwrap();
        assert!((1100..1500).contains(&found_ms), "{found_ms}");
    }
}
