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

use linkweir_core::{Pick, Policy, View};

use crate::satellite::fading::Fading;

/// What is added to an attenuation, dB.
const RAISED_DB: f64 = 11.0;
const KEPT: f64 = 0.95;
const LEAST_MEAN: f64 = 1.0;

#[derive(Debug)]
pub(crate) struct TauranPf {
    fading: Fading,
    /// How many samples ahead each user looks; offsets are rounded down to whole samples.
    ahead: Vec<usize>,
    means: Vec<f64>,
    served: Option<usize>,
    pub(super) timeout_ns: Option<u64>,
    /// The answer since the last event.
    answer: Option<Pick>,
}

impl TauranPf {
    pub(super) fn new(
        fading: Fading,
        user_offset_ns: u64,
        nqueues: usize,
        timeout_ns: Option<u64>,
    ) -> TauranPf {
        TauranPf {
            ahead: (0..nqueues as u64)
                .map(|q| fading.index(q * user_offset_ns))
                .collect(),
            fading,
            means: vec![LEAST_MEAN; nqueues],
            served: None,
            timeout_ns,
            answer: None,
        }
    }

    fn choose(&mut self, view: &View<'_>) -> Pick {
        // Without branches that depend on the channel; a score is never negative.
        let (mut best, mut most) = (usize::MAX, -1.0);
        let served = self.served.unwrap_or(usize::MAX);
        let (samples_db, now) = (self.fading.samples_db(), self.fading.index(view.now_ns));
        let queues = view.queues.iter();
        for (q, ((mean, ahead), queue)) in self
            .means
            .iter_mut()
            .zip(&self.ahead)
            .zip(queues)
            .enumerate()
        {
            let at = now + ahead;
            let wrapped = at.wrapping_sub(samples_db.len());
            let rate = (f64::from(samples_db[at.min(wrapped)]) + RAISED_DB).max(0.0);
            let reward = if q == served { rate } else { 0.0 };
            *mean = (KEPT * *mean + (1.0 - KEPT) * reward).max(LEAST_MEAN);
            *mean = (KEPT * *mean).max(LEAST_MEAN);
            let waits = (queue.backlog_pkts > 0) & (queue.rate_bps > 0);
            let score = if waits { rate / *mean } else { -1.0 };
            if score > most {
                (best, most) = (q, score);
            }
        }
        if best < view.queues.len() {
            Pick::Queue(best)
        } else {
            Pick::Nothing { retry_ns: None }
        }
    }
}

impl Policy for TauranPf {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        if let Some(answer) = self.answer {
            return answer;
        }
        let answer = self.choose(view);
        self.answer = Some(answer);
        answer
    }

    fn enqueued(&mut self, _: &View<'_>, _: usize, _: u32) {
        self.answer = None;
    }

    fn sent(&mut self, _: &View<'_>, q: usize, _: u32) {
        self.served = Some(q);
        self.answer = None;
    }

    fn dropped(&mut self, _: &View<'_>, _: usize, _: u32) {
        self.answer = None;
    }

    fn rated(&mut self, _: &View<'_>) {
        self.answer = None;
    }
}
