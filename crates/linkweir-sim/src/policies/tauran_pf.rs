// SPDX-License-Identifier: BSD-3-Clause
//! The proportional fairness that the simulations of Tauran et al. 2018 used, to reproduce them.
//!
//! A queue's rate is its channel's present attenuation in dB, raised by 11 dB and not below 0: linear in dB, known
//! without delay. Its mean is at least 1 and moves twice at every choice, by a twentieth: towards the rate for the queue
//! that was served last, in the first move, towards 0 otherwise. The queue with a packet and the largest rate / mean is
//! served, the first of equals. With many queues nearly all means are at their least, so the best channel wins, and who
//! was just served waits a little.
//!
//! With a timeout it is CoDeS: before each choice, what has waited longer at the head of a queue is thrown away.

use std::collections::VecDeque;

use linkweir_core::{Pick, Policy, View};

use super::means::eligible;
use crate::satellite::fading::Fading;

/// What is added to an attenuation, dB.
const RAISED_DB: f64 = 11.0;
const KEPT: f64 = 0.95;
/// Rates are measured by it until a mean has grown, so scores are then rates.
const LEAST_MEAN: f64 = 1.0;

/// Below every score.
const NO_CLAIM: f64 = -1.0;

/// Claims that are compared at a time.
const LANES: usize = 8;

#[derive(Debug)]
pub(crate) struct TauranPf {
    fading: Fading,
    /// How many samples ahead each queue looks; what it is ahead is rounded down to whole samples.
    ahead: Vec<usize>,
    means: Vec<f64>,
    /// Rates at the sample `at`, and rate / mean; a sample holds for several choices.
    rates: Vec<f64>,
    scores: Vec<f64>,
    at: Option<usize>,
    /// The scores of queues that may be served, [`NO_CLAIM`] of the others.
    claims: Vec<f64>,
    /// The queues whose mean is not at its least: few, since a mean falls to it in some dozens of choices.
    raised: Vec<usize>,
    served: Option<usize>,
    timeout_ns: Option<u64>,
    /// With a timeout: when packets came and to which queue, those that may still wait.
    arrivals: VecDeque<(u64, usize)>,
    /// The answer since the last event.
    answer: Option<Pick>,
}

impl TauranPf {
    /// Queues look so far ahead into the fading, ns.
    pub(super) fn new(fading: Fading, ahead_ns: &[u64], timeout_ns: Option<u64>) -> TauranPf {
        TauranPf {
            ahead: ahead_ns.iter().map(|ns| fading.index(*ns)).collect(),
            fading,
            means: vec![LEAST_MEAN; ahead_ns.len()],
            rates: vec![0.0; ahead_ns.len()],
            scores: vec![0.0; ahead_ns.len()],
            claims: vec![NO_CLAIM; ahead_ns.len()],
            at: None,
            raised: Vec::new(),
            served: None,
            timeout_ns,
            arrivals: VecDeque::new(),
            answer: None,
        }
    }

    /// A queue whose head may have waited longer than the timeout, and that timeout, ns.
    pub(super) fn overdue(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        let timeout_ns = self.timeout_ns?;
        let &(arrival_ns, q) = self.arrivals.front()?;
        if now_ns - arrival_ns <= timeout_ns {
            return None;
        }
        self.arrivals.pop_front();
        Some((q, timeout_ns))
    }

    fn choose(&mut self, now_ns: u64) -> Pick {
        self.look(self.fading.index(now_ns));
        self.move_means();
        let most = greatest(&self.claims);
        if most == NO_CLAIM {
            return Pick::Nothing { retry_ns: None };
        }
        let first = self.claims.iter().position(|&claim| claim == most);
        Pick::Queue(first.expect("it is one of them"))
    }

    /// After anything that happened to a queue.
    fn follow(&mut self, view: &View<'_>, q: usize) {
        self.claims[q] = if eligible(&view.queues[q]) {
            self.scores[q]
        } else {
            NO_CLAIM
        };
        self.answer = None;
    }

    fn score(&mut self, q: usize) {
        self.scores[q] = self.rates[q] / self.means[q];
        if self.claims[q] != NO_CLAIM {
            self.claims[q] = self.scores[q];
        }
    }

    fn rate(&self, now: usize, q: usize) -> f64 {
        let at = now + self.ahead[q];
        let wrapped = at.wrapping_sub(self.fading.round());
        (f64::from(self.fading.samples_db()[at.min(wrapped)]) + RAISED_DB).max(0.0)
    }

    /// Takes note of the channels.
    fn look(&mut self, now: usize) {
        if self.at == Some(now) {
            return;
        }
        self.at = Some(now);
        for q in 0..self.rates.len() {
            self.rates[q] = self.rate(now, q);
        }
        self.scores.copy_from_slice(&self.rates);
        for (claim, &score) in self.claims.iter_mut().zip(&self.scores) {
            *claim = if *claim == NO_CLAIM { NO_CLAIM } else { score };
        }
        for at in 0..self.raised.len() {
            self.score(self.raised[at]);
        }
    }

    /// Moves all means twice: those at their least stay there, unless their queue was served.
    fn move_means(&mut self) {
        if let Some(q) = self.served.filter(|q| !self.raised.contains(q)) {
            self.raised.push(q);
        }
        let mut raised = std::mem::take(&mut self.raised);
        raised.retain(|&q| {
            let served = self.served == Some(q);
            let reward = if served { self.rates[q] } else { 0.0 };
            let mean = (KEPT * self.means[q] + (1.0 - KEPT) * reward).max(LEAST_MEAN);
            self.means[q] = (KEPT * mean).max(LEAST_MEAN);
            self.score(q);
            self.means[q] > LEAST_MEAN
        });
        self.raised = raised;
    }
}

/// The greatest of the claims, or [`NO_CLAIM`].
fn greatest(claims: &[f64]) -> f64 {
    let mut most = [NO_CLAIM; LANES];
    let rows = claims.chunks_exact(LANES);
    let rest = rows.remainder();
    for row in rows {
        for (most, &claim) in most.iter_mut().zip(row) {
            *most = if claim > *most { claim } else { *most };
        }
    }
    most.iter()
        .chain(rest)
        .fold(NO_CLAIM, |a, &b| if b > a { b } else { a })
}

impl Policy for TauranPf {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        if let Some(answer) = self.answer {
            return answer;
        }
        let answer = self.choose(view.now_ns);
        self.answer = Some(answer);
        answer
    }

    fn enqueued(&mut self, view: &View<'_>, q: usize, _: u32) {
        if self.timeout_ns.is_some() {
            self.arrivals.push_back((view.now_ns, q));
        }
        self.follow(view, q);
    }

    fn sent(&mut self, view: &View<'_>, q: usize, _: u32) {
        self.served = Some(q);
        self.follow(view, q);
    }

    fn dropped(&mut self, view: &View<'_>, q: usize, _: u32) {
        self.follow(view, q);
    }

    fn rated(&mut self, view: &View<'_>) {
        for q in 0..self.claims.len() {
            self.follow(view, q);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use linkweir_core::Queue;

    const STEP_NS: u64 = 1_000;
    const OFFSET_NS: u64 = 7_000;
    const USERS: usize = LANES + 3;

    /// Every mean moves at every choice, as the head of this file says.
    struct Plain {
        means: [f64; USERS],
        served: Option<usize>,
    }

    impl Plain {
        fn choose(&mut self, samples_db: &[f32], queues: &[Queue], now_ns: u64) -> Option<usize> {
            let rates: Vec<f64> = (0..USERS)
                .map(|q| (now_ns + q as u64 * OFFSET_NS) / STEP_NS)
                .map(|index| samples_db[index as usize % samples_db.len()])
                .map(|db| (f64::from(db) + 11.0).max(0.0))
                .collect();
            for (q, (mean, rate)) in self.means.iter_mut().zip(&rates).enumerate() {
                let served = f64::from(u8::from(self.served == Some(q)));
                for reward in [served * rate, 0.0] {
                    *mean = (0.95 * *mean + (1.0 - 0.95) * reward).max(1.0);
                }
            }
            let mut waiting: Vec<usize> =
                (0..USERS).filter(|&q| queues[q].backlog_pkts > 0).collect();
            waiting.sort_by(|&a, &b| {
                (rates[b] / self.means[b]).total_cmp(&(rates[a] / self.means[a]))
            });
            waiting.first().copied()
        }
    }

    #[test]
    fn names_queues_whose_heads_may_be_late() {
        let fading = Fading::new(STEP_NS, vec![0.0; 100]).unwrap();
        let queues = [Queue::default(); 2];
        let view = |now_ns| View {
            now_ns,
            link_bps: 1,
            queues: &queues,
        };
        let mut pf = TauranPf::new(fading.clone(), &[0, 0], None);
        let mut codes = TauranPf::new(fading, &[0, 0], Some(50));
        for policy in [&mut pf, &mut codes] {
            policy.enqueued(&view(10), 1, 1);
            policy.enqueued(&view(10), 0, 1);
            policy.enqueued(&view(30), 1, 1);
        }
        assert_eq!(pf.overdue(1000), None);
        assert_eq!(codes.overdue(60), None);
        assert_eq!(codes.overdue(61), Some((1, 50)));
        assert_eq!(codes.overdue(61), Some((0, 50)));
        assert_eq!(codes.overdue(61), None);
        assert_eq!(codes.overdue(81), Some((1, 50)));
    }

    #[test]
    fn chooses_as_when_every_mean_moves() {
        let mut random = Random::new(1, 1);
        let samples_db: Vec<f32> = (0..100)
            .map(|_| (-15.0 + 55.0 * random.unit()) as f32)
            .collect();
        let fading = Fading::new(STEP_NS, samples_db.clone()).unwrap();
        let ahead_ns: [u64; USERS] = std::array::from_fn(|q| q as u64 * OFFSET_NS);
        let mut policy = TauranPf::new(fading, &ahead_ns, None);
        let mut plain = Plain {
            means: [1.0; USERS],
            served: None,
        };
        let mut queues = [Queue::default(); USERS];
        let mut chosen = [0; USERS];
        for now_ns in (0..20_000_000).step_by(300) {
            for queue in &mut queues {
                queue.rate_bps = 1;
                queue.backlog_pkts = u32::from(random.unit() < 0.6);
            }
            let view = View {
                now_ns,
                link_bps: 1,
                queues: &queues,
            };
            for q in 0..USERS {
                policy.enqueued(&view, q, 1);
            }
            let wanted = plain.choose(&samples_db, &queues, now_ns);
            let found = policy.pick(&view);
            assert_eq!(
                found,
                wanted.map_or(Pick::Nothing { retry_ns: None }, Pick::Queue)
            );
            assert_eq!(policy.pick(&view), found);
            policy.enqueued(&view, 0, 1);
            if let Some(q) = wanted.filter(|_| random.unit() < 0.8) {
                policy.sent(&view, q, 1);
                plain.served = Some(q);
                chosen[q] += 1;
            }
        }
        assert!(chosen.iter().all(|&times| times > 1000), "{chosen:?}");
    }
}
