// SPDX-License-Identifier: BSD-3-Clause
//! Frames of packets for users whose channels differ, inspired by Chaput et al. 2013 (BBS and BPS), of which only the
//! abstract was at hand. A reconstruction: what a frame may hold and how it is searched are this project's own.
//!
//! A frame lasts [`FRAME_S`] and is coded for some rate, one of those of the queues that wait; whoever's channel gives at
//! least that rate can read it. It holds rate x time bits. A byte for a queue is worth 1 / R, R its mean throughput, which
//! is what proportional fairness maximises.
//!
//! * **best frame** (`bbs_like`): for every rate the frame that takes the queues that can read it by falling worth; the
//!   one that is worth most is sent.
//! * **best packet** (`bps_like`): the frame for the rate of the queue with the largest rate x worth, filled in the same
//!   way.
//!
//! The packets of a frame are then sent one after another. Queues are taken in whole packets as long as their head; of
//! equal worth the earliest head goes first, then the lowest index.

use std::collections::VecDeque;

use linkweir_core::{Pick, Policy, View};

use super::means::{eligible, Means};

/// How long a frame lasts, s.
const FRAME_S: f64 = 0.002;

/// How frames are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    BestFrame,
    BestPacket,
}

#[derive(Debug)]
pub(crate) struct FrameLike {
    search: Search,
    means: Means,
    /// Queues whose heads go next.
    frame: VecDeque<usize>,
}

/// A queue that waits.
#[derive(Clone, Copy)]
struct Waiting {
    q: usize,
    worth: f64,
    head_ns: u64,
    rate_bps: u64,
}

impl FrameLike {
    pub(super) fn new(nqueues: usize, search: Search) -> FrameLike {
        FrameLike {
            search,
            means: Means::new(nqueues),
            frame: VecDeque::new(),
        }
    }

    /// Who waits, by falling worth.
    fn waiting(&self, view: &View<'_>) -> Vec<Waiting> {
        let mut waiting: Vec<Waiting> = (0..view.queues.len())
            .filter(|&q| eligible(&view.queues[q]))
            .map(|q| Waiting {
                q,
                // A queue that was never served has the mean of one byte per second.
                worth: 1.0 / self.means.bytes_s(q).max(1.0),
                head_ns: view.queues[q].head_arrival_ns,
                rate_bps: view.queues[q].rate_bps,
            })
            .collect();
        waiting.sort_by(|a, b| {
            b.worth
                .total_cmp(&a.worth)
                .then(a.head_ns.cmp(&b.head_ns))
                .then(a.q.cmp(&b.q))
        });
        waiting
    }

    /// Fills a frame for a rate, with at least one packet, each given to `take`; returns what it is worth.
    fn fill(
        view: &View<'_>,
        waiting: &[Waiting],
        rate_bps: u64,
        mut take: impl FnMut(usize),
    ) -> f64 {
        let mut room_bytes = rate_bps as f64 * FRAME_S / 8.0;
        let (mut empty, mut worth) = (true, 0.0);
        for entry in waiting.iter().filter(|entry| entry.rate_bps >= rate_bps) {
            let queue = &view.queues[entry.q];
            let head_bytes = f64::from(queue.head_bytes.max(1));
            for _ in 0..queue.backlog_pkts {
                if head_bytes > room_bytes && !empty {
                    break;
                }
                room_bytes -= head_bytes;
                worth += entry.worth * head_bytes;
                empty = false;
                take(entry.q);
            }
            if room_bytes <= 0.0 {
                break;
            }
        }
        worth
    }

    fn frame(view: &View<'_>, waiting: &[Waiting], rate_bps: u64) -> VecDeque<usize> {
        let mut frame = VecDeque::new();
        FrameLike::fill(view, waiting, rate_bps, |q| frame.push_back(q));
        frame
    }

    fn build(&self, view: &View<'_>) -> VecDeque<usize> {
        let waiting = self.waiting(view);
        if self.search == Search::BestPacket {
            let best = waiting
                .iter()
                .map(|entry| (entry.worth * entry.rate_bps as f64, entry))
                .reduce(|best, next| if next.0 > best.0 { next } else { best });
            return best.map_or_else(VecDeque::new, |(_, entry)| {
                FrameLike::frame(view, &waiting, entry.rate_bps)
            });
        }
        let mut rates: Vec<u64> = waiting.iter().map(|entry| entry.rate_bps).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
            .into_iter()
            .map(|rate_bps| (FrameLike::fill(view, &waiting, rate_bps, |_| ()), rate_bps))
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map_or_else(VecDeque::new, |(_, rate_bps)| {
                FrameLike::frame(view, &waiting, rate_bps)
            })
    }
}

impl Policy for FrameLike {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        while self
            .frame
            .front()
            .is_some_and(|&q| !eligible(&view.queues[q]))
        {
            self.frame.pop_front();
        }
        if self.frame.is_empty() {
            self.means.clock(view.now_ns);
            self.frame = self.build(view);
        }
        match self.frame.front() {
            Some(&q) => Pick::Queue(q),
            None => Pick::Nothing { retry_ns: None },
        }
    }

    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.means.sent(q, view.now_ns, bytes);
        if self.frame.front() == Some(&q) {
            self.frame.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_core::Queue;

    /// One packet of 250 bytes each; 1 Mbit/s is a packet per frame.
    fn waiting(rates_bps: &[u64]) -> Vec<Queue> {
        rates_bps
            .iter()
            .map(|&rate_bps| Queue {
                backlog_bytes: 250,
                head_arrival_ns: 0,
                rate_bps,
                backlog_pkts: 1,
                head_bytes: 250,
            })
            .collect()
    }

    fn served(policy: &mut FrameLike, queues: &mut [Queue]) -> Vec<usize> {
        let mut order = Vec::new();
        loop {
            let view = View {
                now_ns: 1_000_000_000,
                link_bps: 10_000_000,
                queues,
            };
            let Pick::Queue(q) = policy.pick(&view) else {
                return order;
            };
            assert_eq!(policy.pick(&view), Pick::Queue(q));
            policy.sent(&view, q, 250);
            queues[q].backlog_pkts = 0;
            order.push(q);
        }
    }

    #[test]
    fn the_best_frame_holds_many_and_the_best_packet_is_fast() {
        // A frame at 3 Mbit/s holds three packets, for the three that can read it; one at 4 Mbit/s has but one reader.
        let rates = [1_000_000, 3_000_000, 3_000_000, 4_000_000];
        let mut bbs = FrameLike::new(4, Search::BestFrame);
        assert_eq!(served(&mut bbs, &mut waiting(&rates)), [1, 2, 3, 0]);
        let mut bps = FrameLike::new(4, Search::BestPacket);
        assert_eq!(served(&mut bps, &mut waiting(&rates)), [3, 1, 2, 0]);
    }

    #[test]
    fn who_had_much_is_worth_little() {
        let mut bps = FrameLike::new(2, Search::BestPacket);
        let mut queues = waiting(&[2_000_000, 1_000_000]);
        let view = View {
            now_ns: 1_000_000_000,
            link_bps: 10_000_000,
            queues: &queues,
        };
        bps.sent(&view, 0, 250);
        bps.sent(&view, 0, 250);
        bps.sent(&view, 1, 100);
        // 2 / 500 against 1 / 100
        assert_eq!(served(&mut bps, &mut queues), [1, 0]);
    }

    #[test]
    fn a_packet_longer_than_a_frame_goes_alone() {
        let mut bbs = FrameLike::new(2, Search::BestFrame);
        let mut queues = waiting(&[1000, 1000]);
        assert_eq!(served(&mut bbs, &mut queues), [0, 1]);
    }
}
