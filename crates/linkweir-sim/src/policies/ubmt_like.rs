// SPDX-License-Identifier: BSD-3-Clause
//! Utility times relative channel, inspired by Fairhurst et al. 2009 (UBMT), of which Tauran et al. 2018 say that it
//! weighs throughput and time in the buffer. A reconstruction: the formula is this project's own.
//!
//! The queue with the largest U r / R is served; r is the rate of its channel, R its mean throughput, U its utility. A
//! real-time queue has a target T for the age W of its head packet: U = 1 / (1 + exp(-10 (W / T - 1/2))) is its urgency, and
//! packets older than T are dropped. An elastic queue has a target for R: U = 1 - R / target, 0.1 at least. Of equals the
//! earliest head goes, then the lowest index.

use linkweir_core::{Pick, Policy, Queue, Verdict, View};

use super::means::{age_ns, eligible, Means};
use super::tournament::{Tournament, ABSENT};

/// How sharply urgency rises around half of the target.
const STEEPNESS: f64 = 10.0;
/// Ages up to the target for which urgency is tabulated; between them it is a line, to 1e-5.
const STEPS: usize = 1024;

/// How long a bound on a queue's claim is valid.
const BOUND_NS: u64 = 1_000_000;
/// More than what quotients and products lose in their last bits.
const ROUNDING: f64 = 1.0 + 1e-12;

/// Least utility of an elastic queue.
const LEAST_UTILITY: f64 = 0.1;

/// The target of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Real-time: packets wait no longer, ns.
    Wait(u64),
    /// Elastic: mean throughput, bit/s; an equal part of the link when not given.
    Rate(Option<u64>),
}

impl Target {
    /// From the two values a class has: longest wait, 0 for none, and rate, 0 when not given.
    pub(super) fn new(wait_ns: u64, rate_bps: u64) -> Target {
        match wait_ns {
            0 => Target::Rate((rate_bps > 0).then_some(rate_bps)),
            _ => Target::Wait(wait_ns),
        }
    }
}

/// Few claims are computed: those whose bound is at least the greatest claim. A bound is the claim over what all means
/// have in common ([`Means::grown`]), with the utility that the queue will have by `bounds_until_ns` at most.
#[derive(Debug)]
pub(crate) struct UbmtLike {
    targets: Vec<Target>,
    means: Means,
    urgency: Box<[f64; STEPS + 2]>,
    /// Steps of `urgency` per ns for a real-time queue; 0 for an elastic one.
    steps_per_ns: Vec<f64>,
    /// Rates over sums of the means, which time alone does not change.
    channels: Vec<f64>,
    bounds: Tournament,
    bounds_until_ns: u64,
}

impl UbmtLike {
    /// For queues with these targets.
    pub(super) fn new(targets: Vec<Target>) -> UbmtLike {
        UbmtLike {
            means: Means::new(targets.len()),
            steps_per_ns: targets
                .iter()
                .map(|target| match *target {
                    Target::Wait(ns) => STEPS as f64 / ns as f64,
                    Target::Rate(_) => 0.0,
                })
                .collect(),
            channels: vec![f64::INFINITY; targets.len()],
            bounds: Tournament::new(targets.len()),
            bounds_until_ns: 0,
            targets,
            urgency: Box::new(std::array::from_fn(|i| {
                1.0 / (1.0 + libm::exp(-STEEPNESS * (i as f64 / STEPS as f64 - 0.5)))
            })),
        }
    }

    fn utility(&self, view: &View<'_>, q: usize) -> f64 {
        match self.targets[q] {
            Target::Wait(target_ns) => self.urgency(age_ns(view, q), target_ns),
            Target::Rate(target_bps) => {
                let share_bps = view.link_bps as f64 / view.queues.len() as f64;
                let target_bps = target_bps.map_or(share_bps, |bps| bps as f64);
                (1.0 - 8.0 * self.means.bytes_s(q) / target_bps).max(LEAST_UTILITY)
            }
        }
    }

    /// The urgency of a head of this age; one beyond its target is dropped.
    fn urgency(&self, age_ns: u64, target_ns: u64) -> f64 {
        let at = (age_ns as f64 / target_ns as f64).min(1.0) * STEPS as f64;
        let step = at as usize;
        let (before, after) = (self.urgency[step], self.urgency[step + 1]);
        before + (after - before) * (at - step as f64)
    }

    fn claim(&self, view: &View<'_>, q: usize) -> f64 {
        // A queue that was never served has the mean of one byte per second.
        let mean = self.means.bytes_s(q).max(1.0);
        self.utility(view, q) * view.queues[q].rate_bps as f64 / mean
    }

    fn channel(&self, view: &View<'_>, q: usize) -> f64 {
        view.queues[q].rate_bps as f64 / self.means.sum(q)
    }

    /// After anything that happened to a queue.
    fn follow(&mut self, view: &View<'_>, q: usize) {
        let bound = self.bound(&view.queues[q], self.channels[q], self.steps_per_ns[q]);
        self.bounds.set(q, bound);
    }

    /// Bounds hold for a while from now.
    fn renew(&mut self, view: &View<'_>) {
        self.bounds_until_ns = view.now_ns + BOUND_NS;
        let mut bounds = std::mem::take(&mut self.bounds);
        let own = self.channels.iter().zip(&self.steps_per_ns);
        let queues = view.queues.iter().zip(own);
        bounds.set_all(queues.map(|(queue, (channel, steps))| self.bound(queue, *channel, *steps)));
        self.bounds = bounds;
    }

    /// With the next greater urgency of the table, or 1 for an elastic queue.
    #[inline]
    fn bound(&self, queue: &Queue, channel: f64, steps_per_ns: f64) -> f64 {
        if !eligible(queue) {
            return ABSENT;
        }
        if steps_per_ns == 0.0 {
            return channel;
        }
        let age_ns = self.bounds_until_ns.saturating_sub(queue.head_arrival_ns);
        let step = (age_ns as i64 as f64 * steps_per_ns).min(STEPS as f64);
        channel * self.urgency[step as u32 as usize + 1]
    }
}

impl Policy for UbmtLike {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        if self.means.clock(view.now_ns) {
            self.rated(view);
        } else if view.now_ns > self.bounds_until_ns {
            self.renew(view);
        }
        let Some(first) = self.bounds.first() else {
            return Pick::Nothing { retry_ns: None };
        };
        let of = |q: usize| (self.claim(view, q), view.queues[q].head_arrival_ns, q);
        let enough = |claim: f64| claim / self.means.grown() / ROUNDING;
        let mut best = of(first);
        let mut next = self.bounds.next(0, enough(best.0));
        while let Some(q) = next {
            let (claim, head_ns, _) = of(q);
            if claim > best.0 || (claim == best.0 && (head_ns, q) < (best.1, best.2)) {
                best = (claim, head_ns, q);
            }
            next = self.bounds.next(q + 1, enough(best.0));
        }
        Pick::Queue(best.2)
    }

    fn enqueued(&mut self, view: &View<'_>, q: usize, _: u32) {
        self.follow(view, q);
    }

    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        if self.means.clock(view.now_ns) {
            self.rated(view);
        }
        self.means.sent(q, view.now_ns, bytes);
        self.channels[q] = self.channel(view, q);
        self.follow(view, q);
    }

    fn dropped(&mut self, view: &View<'_>, q: usize, _: u32) {
        self.follow(view, q);
    }

    fn rated(&mut self, view: &View<'_>) {
        for q in 0..self.channels.len() {
            self.channels[q] = self.channel(view, q);
        }
        self.renew(view);
    }

    fn leaving(&mut self, view: &View<'_>, q: usize, _: bool) -> Verdict {
        if self.expired(view, q) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    }

    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        matches!(self.targets[q], Target::Wait(target_ns) if age_ns(view, q) > target_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use linkweir_core::Queue;

    fn view(queues: &[Queue], now_ns: u64) -> View<'_> {
        View {
            now_ns,
            link_bps: 8_000_000,
            queues,
        }
    }

    fn queue(head_arrival_ns: u64, rate_bps: u64) -> Queue {
        Queue {
            backlog_bytes: 100,
            head_arrival_ns,
            rate_bps,
            backlog_pkts: 1,
            head_bytes: 100,
        }
    }

    #[test]
    fn urgency_times_channel_over_mean() {
        const MS: u64 = 1_000_000;
        let mut policy = UbmtLike::new(vec![Target::Wait(100 * MS); 3]);
        // Ages 50, 20 and 0 ms: urgencies 1/2, 1 / (1 + e^3) = 0.0474, 1 / (1 + e^5) = 0.00669.
        let mut queues = [
            queue(0, 1000),
            queue(30 * MS, 10_500),
            queue(50 * MS, 74_000),
        ];
        policy.rated(&view(&queues, 50 * MS));
        assert_eq!(policy.pick(&view(&queues, 50 * MS)), Pick::Queue(0));
        queues[1].rate_bps = 10_600; // 502.7 against 500
        policy.rated(&view(&queues, 50 * MS));
        assert_eq!(policy.pick(&view(&queues, 50 * MS)), Pick::Queue(1));
        policy.sent(&view(&queues, 50 * MS), 1, 100);
        assert_eq!(policy.pick(&view(&queues, 50 * MS)), Pick::Queue(0));
        queues[0].rate_bps = 0;
        policy.rated(&view(&queues, 50 * MS));
        assert_eq!(policy.pick(&view(&queues, 50 * MS)), Pick::Queue(2));
        assert!(!policy.expired(&view(&queues, 100 * MS), 0));
        assert_eq!(
            policy.leaving(&view(&queues, 100 * MS + 1), 0, false),
            Verdict::Drop
        );
    }

    #[test]
    fn elastic_queues_want_less_the_more_they_had() {
        const MS: u64 = 1_000_000;
        let targets = [(0, 4000), (0, 0), (100 * MS, 0)].map(|(ns, bps)| Target::new(ns, bps));
        let mut policy = UbmtLike::new(targets.to_vec());
        let queues = [queue(0, 1000), queue(0, 1000), queue(0, 1000)];
        // 100 bytes in a mean of 1 s are 800 bit/s: 1 - 800 / 4000, and a third of 8 Mbit/s is the other's target.
        for q in 0..3 {
            policy.sent(&view(&queues, 0), q, 100);
        }
        let utility = |policy: &UbmtLike, q| policy.utility(&view(&queues, 0), q);
        assert!((utility(&policy, 0) - 0.8).abs() < 1e-12);
        assert!((utility(&policy, 1) - (1.0 - 800.0 / (8e6 / 3.0))).abs() < 1e-12);
        assert_eq!(policy.pick(&view(&queues, 0)), Pick::Queue(1));
        policy.sent(&view(&queues, 0), 0, 1000);
        assert_eq!(utility(&policy, 0), 0.1);
        // Only the real-time queue drops what is old.
        let expired = [0, 1, 2].map(|q| policy.expired(&view(&queues, 101 * MS), q));
        assert_eq!(expired, [false, false, true]);
    }

    /// Claims are compared one with all: the largest, then the earliest head, then the lowest index.
    fn plain(policy: &UbmtLike, view: &View<'_>) -> Option<usize> {
        let order = |&a: &usize, &b: &usize| {
            let (claim_a, claim_b) = (policy.claim(view, a), policy.claim(view, b));
            let (head_a, head_b) = (
                view.queues[a].head_arrival_ns,
                view.queues[b].head_arrival_ns,
            );
            claim_b.total_cmp(&claim_a).then(head_a.cmp(&head_b))
        };
        let all = 0..view.queues.len();
        all.filter(|&q| eligible(&view.queues[q])).min_by(order)
    }

    /// Two random lives of 250 s, in which the common factor of the means starts again twice: in one at a pick, in the other
    /// when a packet was sent.
    #[test]
    fn chooses_as_when_every_claim_is_known() {
        const MS: u64 = 1_000_000;
        const QUEUES: usize = 40;
        for time_passes_before_asking in [true, false] {
            let mut random = Random::new(1, 1);
            let mut below = |most: u64| (most as f64 * random.unit()) as u64;
            let targets = (0..QUEUES).map(|q| match q % 4 {
                0 => Target::new(100 * MS, 0),
                1 => Target::new(400 * MS, 0),
                2 => Target::new(0, 100_000),
                _ => Target::new(0, 0),
            });
            let mut policy = UbmtLike::new(targets.collect());
            let mut queues = [queue(0, 1_000_000); QUEUES];
            policy.rated(&view(&queues, 0));
            let mut served = [0; QUEUES];
            let mut now_ns = 0;
            while now_ns < 250_000 * MS {
                // Many choices by the same bounds, and breaks.
                let longest_ns = if below(4) > 0 { MS / 2 } else { 40 * MS };
                let step_ns = below(longest_ns);
                if time_passes_before_asking {
                    now_ns += step_ns;
                }
                for _ in 0..3 {
                    let q = below(QUEUES as u64) as usize;
                    queues[q].backlog_pkts = u32::from(below(4) > 0);
                    // Older than any target, too.
                    queues[q].head_arrival_ns = now_ns - below(500 * MS).min(now_ns);
                    if queues[q].backlog_pkts > 0 {
                        policy.enqueued(&view(&queues, now_ns), q, 100);
                    } else {
                        policy.dropped(&view(&queues, now_ns), q, 100);
                    }
                }
                if below(200) == 0 {
                    queues[below(QUEUES as u64) as usize].rate_bps = 500_000 * below(5);
                    policy.rated(&view(&queues, now_ns));
                }
                let picked = policy.pick(&view(&queues, now_ns));
                let wanted = plain(&policy, &view(&queues, now_ns));
                let Some(q) = wanted else {
                    assert_eq!(picked, Pick::Nothing { retry_ns: None });
                    continue;
                };
                assert_eq!(picked, Pick::Queue(q), "{now_ns} ns");
                if !time_passes_before_asking {
                    now_ns += step_ns;
                }
                queues[q].head_arrival_ns = now_ns;
                policy.sent(&view(&queues, now_ns), q, 40 + below(1460) as u32);
                served[q] += 1;
            }
            assert!(served.iter().all(|&times| times > 100), "{served:?}");
        }
    }
}
