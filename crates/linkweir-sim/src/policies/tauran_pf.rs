// SPDX-License-Identifier: BSD-3-Clause
//! The proportional fairness that the simulations of Tauran et al. 2018 used, to reproduce them.
//!
//! A queue's rate is its channel's present attenuation in dB, raised by 11 dB and not below 0: linear in dB, known
//! without delay; or as it was at a fixed time before the packet meets it, if the link says so. Its mean is at least 1 and moves twice at every choice, by a twentieth: towards the rate for the queue
//! that was served last, in the first move, towards 0 otherwise. The queue with a packet and the largest rate / mean is
//! served, the first of equals. With many queues nearly all means are at their least, so the best channel wins, and a
//! queue that was just served waits a little.
//!
//! With a timeout it is CoDeS: before each choice, heads of queues that have waited longer are dropped.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use linkweir_core::{Pick, Policy, View};

use super::means::eligible;
use crate::satellite::fading::Fading;

/// Added to an attenuation, dB.
const RAISED_DB: f64 = 11.0;
const KEPT: f64 = 0.95;
/// Rates are measured by it until a mean has grown.
const LEAST_MEAN: f64 = 1.0;

/// Below every score.
const NO_CLAIM: f64 = -1.0;

/// When the head of an empty queue came, ns.
const NO_HEAD: u64 = u64::MAX;

/// Claims that are compared at a time.
const LANES: usize = 8;

#[derive(Debug)]
pub(crate) struct TauranPf {
    fading: Fading,
    /// Offset of each queue into the fading, rounded down to whole samples.
    offsets: Vec<usize>,
    /// The sample by which each queue's channel is known, if not by the present one.
    foreseen: Option<Vec<usize>>,
    means: Vec<f64>,
    /// Rate / mean at the sample `at` of each queue that may be served, [`NO_CLAIM`] of the others; a sample holds for
    /// several choices.
    claims: Vec<f64>,
    at: Option<usize>,
    /// The queues whose mean is not at its least: few, since a mean falls to it in some dozens of choices.
    raised: Vec<usize>,
    served: Option<usize>,
    timeout_ns: Option<u64>,
    /// When the head of each queue came, ns, or [`NO_HEAD`].
    heads_ns: Vec<u64>,
    /// With a timeout: one entry for each queue with packets, and a time at which or after which its head came, ns. Heads
    /// that leave in time are not looked up here, so entries of queues that became empty may be among them.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// The queues that have an entry in `heads`.
    listed: Vec<bool>,
    /// The answer since the last event.
    answer: Option<Pick>,
}

impl TauranPf {
    /// `offsets_ns`: of each queue into the fading.
    pub(super) fn new(fading: Fading, offsets_ns: &[u64], timeout_ns: Option<u64>) -> TauranPf {
        TauranPf {
            offsets: offsets_ns.iter().map(|ns| fading.index(*ns)).collect(),
            fading,
            foreseen: None,
            means: vec![LEAST_MEAN; offsets_ns.len()],
            claims: vec![NO_CLAIM; offsets_ns.len()],
            at: None,
            raised: Vec::new(),
            served: None,
            timeout_ns,
            heads_ns: vec![NO_HEAD; offsets_ns.len()],
            heads: BinaryHeap::new(),
            listed: vec![false; offsets_ns.len()],
            answer: None,
        }
    }

    /// From now on each queue's channel is known by its sample here.
    pub(super) fn foresee(&mut self, samples: &[usize]) {
        match &mut self.foreseen {
            Some(foreseen) => foreseen.copy_from_slice(samples),
            None => self.foreseen = Some(samples.to_vec()),
        }
        self.at = None;
        self.answer = None;
    }

    /// A queue whose head has waited longer than the timeout, and that timeout, ns: the queue whose head came first.
    pub(super) fn overdue(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        let timeout_ns = self.timeout_ns?;
        while let Some(mut first) = self.heads.peek_mut() {
            let Reverse((since_ns, q)) = *first;
            if now_ns - since_ns <= timeout_ns {
                return None;
            }
            match self.heads_ns[q] {
                NO_HEAD => {
                    PeekMut::pop(first);
                    self.listed[q] = false;
                }
                head_ns if head_ns > since_ns => *first = Reverse((head_ns, q)),
                _ => return Some((q, timeout_ns)),
            }
        }
        None
    }

    fn choose(&mut self, now_ns: u64) -> Pick {
        // What is foreseen does not depend on the present sample.
        let now = match self.foreseen {
            Some(_) => 0,
            None => self.fading.index(now_ns),
        };
        self.look(now);
        self.move_means(now);
        match greatest(&self.claims) {
            Some(q) => Pick::Queue(q),
            None => Pick::Nothing { retry_ns: None },
        }
    }

    /// After anything that happened to a queue.
    fn follow(&mut self, view: &View<'_>, q: usize) {
        let queue = &view.queues[q];
        if !eligible(queue) {
            self.claims[q] = NO_CLAIM;
        } else if self.claims[q] == NO_CLAIM {
            self.claims[q] = self.at.map_or(0.0, |now| self.claim(now, q));
        }
        self.heads_ns[q] = if queue.backlog_pkts > 0 {
            queue.head_arrival_ns
        } else {
            NO_HEAD
        };
        self.answer = None;
    }

    fn claim(&self, now: usize, q: usize) -> f64 {
        self.rate(now, q) / self.means[q]
    }

    fn rate(&self, now: usize, q: usize) -> f64 {
        let at = match &self.foreseen {
            Some(samples) => samples[q],
            None => {
                let at = now + self.offsets[q];
                at.min(at.wrapping_sub(self.fading.round()))
            }
        };
        (f64::from(self.fading.samples_db()[at]) + RAISED_DB).max(0.0)
    }

    /// Updates the claims of the queues that may be served. The claim of a queue whose mean rises falls when means move.
    fn look(&mut self, now: usize) {
        if self.at == Some(now) {
            return;
        }
        self.at = Some(now);
        const { assert!(LEAST_MEAN == 1.0) };
        for q in 0..self.claims.len() {
            if self.claims[q] != NO_CLAIM {
                self.claims[q] = self.rate(now, q);
            }
        }
    }

    /// Moves all means twice: those at their least stay there, unless their queue was served.
    fn move_means(&mut self, now: usize) {
        if let Some(q) = self.served.filter(|q| !self.raised.contains(q)) {
            self.raised.push(q);
        }
        let mut raised = std::mem::take(&mut self.raised);
        raised.retain(|&q| {
            let served = self.served == Some(q);
            let reward = if served { self.rate(now, q) } else { 0.0 };
            let mean = (KEPT * self.means[q] + (1.0 - KEPT) * reward).max(LEAST_MEAN);
            self.means[q] = (KEPT * mean).max(LEAST_MEAN);
            if self.claims[q] != NO_CLAIM {
                self.claims[q] = self.claim(now, q);
            }
            self.means[q] > LEAST_MEAN
        });
        self.raised = raised;
    }
}

/// The queue with the greatest claim, the first of equals; none when no queue has one.
fn greatest(claims: &[f64]) -> Option<usize> {
    let mut most = [NO_CLAIM; LANES];
    let rows = claims.chunks_exact(LANES);
    let rest = rows.remainder();
    for row in rows {
        for (most, &claim) in most.iter_mut().zip(row) {
            *most = if claim > *most { claim } else { *most };
        }
    }
    let all = most.iter().chain(rest);
    let most = all.fold(NO_CLAIM, |a, &b| if b > a { b } else { a });
    if most == NO_CLAIM {
        return None;
    }
    let has = |row: &[f64]| row.iter().fold(false, |has, &claim| has | (claim == most));
    let before = LANES * claims.chunks(LANES).position(has)?;
    let within = claims[before..].iter().position(|&claim| claim == most)?;
    Some(before + within)
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
        self.follow(view, q);
        if self.timeout_ns.is_some() && !std::mem::replace(&mut self.listed[q], true) {
            self.heads.push(Reverse((self.heads_ns[q], q)));
        }
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
    use std::convert::Infallible;

    use super::*;
    use crate::random::Random;
    use linkweir_core::{Limit, Mux, Queue};

    const STEP_NS: u64 = 1_000;
    const OFFSET_NS: u64 = 7_000;
    const TIMEOUT_NS: u64 = 4_000;
    const USERS: usize = LANES + 3;

    /// Every mean moves at every choice, as the head of this file says.
    struct Plain {
        samples_db: Vec<f32>,
        means: [f64; USERS],
        /// Rates over means at the last choice.
        scores: [f64; USERS],
        served: Option<usize>,
        /// The last choice, if nothing has happened since.
        choice: Option<Option<usize>>,
    }

    impl Plain {
        fn choose(&mut self, queues: &[Queue], now_ns: u64) -> Option<usize> {
            if let Some(choice) = self.choice {
                return choice;
            }
            for q in 0..USERS {
                let at = ((now_ns + q as u64 * OFFSET_NS) / STEP_NS) as usize;
                let rate_db = f64::from(self.samples_db[at % self.samples_db.len()]) + 11.0;
                let rate_db = rate_db.max(0.0);
                let served = f64::from(u8::from(self.served == Some(q)));
                let mean = &mut self.means[q];
                for reward in [served * rate_db, 0.0] {
                    *mean = (0.95 * *mean + (1.0 - 0.95) * reward).max(1.0);
                }
                self.scores[q] = rate_db / *mean;
            }
            let mut waiting: Vec<usize> = (0..USERS).filter(|&q| may_go(&queues[q])).collect();
            waiting.sort_by(|&a, &b| self.scores[b].total_cmp(&self.scores[a]));
            self.choice = Some(waiting.first().copied());
            waiting.first().copied()
        }
    }

    fn may_go(queue: &Queue) -> bool {
        queue.backlog_pkts > 0 && queue.rate_bps > 0
    }

    /// A random life of queues whose packets arrive, leave and are dropped.
    #[test]
    fn chooses_as_when_every_mean_moves_and_leaves_no_late_head() {
        let mut random = Random::new(1, 1);
        let samples_db: Vec<f32> = (0..100)
            .map(|_| (-15.0 + 55.0 * random.unit()) as f32)
            .collect();
        let fading = Fading::new(STEP_NS, samples_db.clone()).unwrap();
        let offsets_ns: [u64; USERS] = std::array::from_fn(|q| q as u64 * OFFSET_NS);
        let mut mux = Mux::new(0, 1, &[Limit::default(); USERS], |_| {
            Ok::<_, Infallible>(TauranPf::new(fading, &offsets_ns, Some(TIMEOUT_NS)))
        })
        .unwrap();
        let mut plain = Plain {
            samples_db,
            means: [1.0; USERS],
            scores: [0.0; USERS],
            served: None,
            choice: None,
        };
        let (mut sent, mut expired) = ([0; USERS], [0; USERS]);
        let mut now_ns = 0;
        for _ in 0..200_000 {
            now_ns += (300.0 * random.unit()) as u64;
            let class = (USERS as f64 * random.unit()) as usize;
            match (100.0 * random.unit()) as u32 {
                0..40 => {
                    mux.enqueue(now_ns, class, 1, (), |(), _, _| unreachable!());
                    plain.choice = None;
                }
                40..75 => {
                    let wanted = plain.choose(mux.queues(), now_ns);
                    let found = mux.dequeue(now_ns, |()| false, |(), _, _| unreachable!());
                    assert_eq!(found.map(|departure| departure.class), wanted);
                    if let Some(q) = wanted {
                        plain.served = Some(q);
                        plain.choice = None;
                        sent[q] += 1;
                    }
                }
                75..85 => {
                    let wanted = plain.choose(mux.queues(), now_ns);
                    assert_eq!(mux.next_class(now_ns), wanted);
                }
                85..98 => {
                    while let Some((q, most_ns)) = mux.policy_mut().overdue(now_ns) {
                        let before = expired[q];
                        mux.expire(now_ns, q, most_ns, |()| expired[q] += 1);
                        assert_ne!(expired[q], before, "its head is late");
                        plain.choice = None;
                    }
                    for queue in mux.queues().iter().filter(|queue| queue.backlog_pkts > 0) {
                        assert!(now_ns - queue.head_arrival_ns <= TIMEOUT_NS);
                    }
                }
                _ => {
                    mux.set_rate(now_ns, class, u64::from(random.unit() < 0.7));
                    plain.choice = None;
                }
            }
            let (queues, policy) = (mux.queues(), mux.policy());
            for (q, queue) in queues.iter().enumerate() {
                let score = plain.scores[q];
                let claim = if may_go(queue) { score } else { NO_CLAIM };
                assert_eq!(policy.claims[q], claim);
            }
            assert!(policy.heads.len() <= USERS);
        }
        assert!(sent.iter().all(|&pkts| pkts > 1000), "{sent:?}");
        assert!(expired.iter().all(|&pkts| pkts > 1000), "{expired:?}");
    }

    #[test]
    fn nothing_is_late_without_a_timeout() {
        let fading = Fading::new(STEP_NS, vec![0.0]).unwrap();
        let mut mux = Mux::new(0, 1, &[Limit::default()], |_| {
            Ok::<_, Infallible>(TauranPf::new(fading, &[0], None))
        })
        .unwrap();
        mux.enqueue(0, 0, 1, (), |(), _, _| unreachable!());
        assert_eq!(mux.policy_mut().overdue(u64::MAX), None);
    }
}
