// SPDX-License-Identifier: BSD-3-Clause
//! Frames of packets for users whose channels differ, inspired by Chaput et al. 2013 (BBS and BPS), of which only the
//! abstract was at hand. A reconstruction: what a frame may hold and how it is searched are this project's own.
//!
//! A frame lasts [`FRAME_S`] and is coded for the rate of one of the queues that wait; every user whose channel gives at
//! least that rate can read it. It holds rate x time bits. A byte for a queue has the value 1 / R, where R is the queue's
//! mean throughput: proportional fairness maximises the sum of these values.
//!
//! * **best frame** (`bbs_like`): for every rate, a frame is filled from the queues that can read it, by falling value; the
//!   frame with the greatest value is sent.
//! * **best packet** (`bps_like`): the frame for the rate of the queue with the largest rate x value, filled in the same
//!   way.
//!
//! The packets of a frame are then sent one after another. Queues are taken in whole packets as long as their head; of
//! equal value the earliest head goes first, then the lowest index.

use std::cmp::Reverse;
use std::collections::VecDeque;

use linkweir_core::{Pick, Policy, View};

use super::means::{eligible, Means};
use super::servable::Servable;

/// How long a frame lasts, s.
const FRAME_S: f64 = 0.002;

/// More than what sums lose in their last bits.
const ROUNDING: f64 = 1.0 + 1e-9;

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
    servable: Servable,
    /// Queues whose heads go next.
    frame: VecDeque<usize>,
    /// Queues that wait, with their rates, while a frame is built.
    waiting: Vec<Waiting>,
    rates_bps: Vec<u64>,
    /// The shortest and the longest of their heads.
    shortest_bytes: f64,
    longest_bytes: f64,
}

/// A queue that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    q: usize,
    /// Of a byte.
    value: f64,
    head_ns: u64,
    rate_bps: u64,
    head_bytes: u32,
    pkts: u32,
}

impl Waiting {
    /// Falling value, then the earliest head, then the lowest index. Values are positive, so their bits are in order.
    fn turn(&self) -> (Reverse<u64>, u64, usize) {
        (Reverse(self.value.to_bits()), self.head_ns, self.q)
    }
}

/// The number of bits that a frame holds.
fn room_bytes(rate_bps: u64) -> f64 {
    rate_bps as f64 * FRAME_S / 8.0
}

impl FrameLike {
    pub(super) fn new(nqueues: usize, search: Search) -> FrameLike {
        FrameLike {
            search,
            means: Means::new(nqueues),
            servable: Servable::new(nqueues),
            frame: VecDeque::new(),
            waiting: Vec::new(),
            rates_bps: Vec::new(),
            shortest_bytes: 0.0,
            longest_bytes: 0.0,
        }
    }

    fn build(&mut self, view: &View<'_>) {
        self.look(view);
        let rate_bps = match self.search {
            Search::BestPacket => {
                let rate_bps = self.best_packet();
                self.waiting.retain(|entry| entry.rate_bps >= rate_bps);
                self.waiting.sort_unstable_by_key(Waiting::turn);
                rate_bps
            }
            Search::BestFrame => {
                self.waiting.sort_unstable_by_key(Waiting::turn);
                self.best_frame()
            }
        };
        let frame = &mut self.frame;
        fill(&self.waiting, rate_bps, self.shortest_bytes, |q| {
            frame.push_back(q);
        });
    }

    /// Lists the queues that wait.
    fn look(&mut self, view: &View<'_>) {
        self.waiting.clear();
        self.waiting.extend(self.servable.iter().map(|q| {
            let queue = &view.queues[q];
            Waiting {
                q,
                // A queue that was never served has the mean of one byte per second.
                value: 1.0 / self.means.bytes_s(q).max(1.0),
                head_ns: queue.head_arrival_ns,
                rate_bps: queue.rate_bps,
                head_bytes: queue.head_bytes.max(1),
                pkts: queue.backlog_pkts,
            }
        }));
        let heads_bytes = || self.waiting.iter().map(|entry| entry.head_bytes);
        self.shortest_bytes = f64::from(heads_bytes().min().unwrap_or(0));
        self.longest_bytes = f64::from(heads_bytes().max().unwrap_or(0));
    }

    /// The rate of the queue with the largest rate x value.
    fn best_packet(&self) -> u64 {
        let products = self.waiting.iter().map(|entry| {
            let product = entry.value * entry.rate_bps as f64;
            (product, entry)
        });
        let best = products.reduce(|best, next| {
            let better = next.0 > best.0 || (next.0 == best.0 && next.1.turn() < best.1.turn());
            if better {
                next
            } else {
                best
            }
        });
        best.map_or(0, |(_, entry)| entry.rate_bps)
    }

    /// The rate whose frame has the greatest value, the lowest of equals.
    fn best_frame(&mut self) -> u64 {
        self.rates_bps.clear();
        let rates_bps = self.waiting.iter().map(|entry| entry.rate_bps);
        self.rates_bps.extend(rates_bps);
        self.rates_bps.sort_unstable();
        self.rates_bps.dedup();
        let (mut most, mut best_bps) = (0.0, 0);
        for &rate_bps in self.rates_bps.iter().rev() {
            // From here on frames are too short, even if all users can read them.
            let room_bytes = room_bytes(rate_bps).max(self.longest_bytes);
            if self.value_for_all(room_bytes) * ROUNDING < most {
                break;
            }
            let value = fill(&self.waiting, rate_bps, self.shortest_bytes, |_| ());
            if value >= most {
                (most, best_bps) = (value, rate_bps);
            }
        }
        best_bps
    }

    /// The greatest value of a number of bytes, if all can read them and packets may be cut.
    fn value_for_all(&self, mut room_bytes: f64) -> f64 {
        let mut value = 0.0;
        for entry in &self.waiting {
            let bytes = f64::from(entry.head_bytes) * f64::from(entry.pkts);
            if bytes >= room_bytes {
                return value + entry.value * room_bytes;
            }
            value += entry.value * bytes;
            room_bytes -= bytes;
        }
        value
    }
}

/// Fills a frame for a rate from the queues that wait, by falling value, with at least one packet; `take` gets each packet.
/// Returns the frame's value. No head is shorter than `shortest_bytes`.
fn fill(
    waiting: &[Waiting],
    rate_bps: u64,
    shortest_bytes: f64,
    mut take: impl FnMut(usize),
) -> f64 {
    let mut room_bytes = room_bytes(rate_bps);
    let (mut empty, mut value) = (true, 0.0);
    for entry in waiting.iter().filter(|entry| entry.rate_bps >= rate_bps) {
        let head_bytes = f64::from(entry.head_bytes);
        for _ in 0..entry.pkts {
            if head_bytes > room_bytes && !empty {
                break;
            }
            room_bytes -= head_bytes;
            value += entry.value * head_bytes;
            empty = false;
            take(entry.q);
        }
        if room_bytes < shortest_bytes {
            break;
        }
    }
    value
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
            self.build(view);
        }
        match self.frame.front() {
            Some(&q) => Pick::Queue(q),
            None => Pick::Nothing { retry_ns: None },
        }
    }

    fn enqueued(&mut self, view: &View<'_>, q: usize, _: u32) {
        self.servable.follow(view, q);
    }

    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.means.sent(q, view.now_ns, bytes);
        self.servable.follow(view, q);
        if self.frame.front() == Some(&q) {
            self.frame.pop_front();
        }
    }

    fn dropped(&mut self, view: &View<'_>, q: usize, _: u32) {
        self.servable.follow(view, q);
    }

    fn rated(&mut self, view: &View<'_>) {
        for q in 0..view.queues.len() {
            self.servable.follow(view, q);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::random::Random;
    use linkweir_core::{Limit, Mux, Queue};

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

    fn view(queues: &[Queue]) -> View<'_> {
        View {
            now_ns: 1_000_000_000,
            link_bps: 10_000_000,
            queues,
        }
    }

    fn served(policy: &mut FrameLike, queues: &mut [Queue]) -> Vec<usize> {
        let mut order = Vec::new();
        policy.rated(&view(queues));
        loop {
            let Pick::Queue(q) = policy.pick(&view(queues)) else {
                return order;
            };
            assert_eq!(policy.pick(&view(queues)), Pick::Queue(q));
            queues[q].backlog_pkts = 0;
            policy.sent(&view(queues), q, 250);
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
    fn who_had_much_has_little_value() {
        let mut bps = FrameLike::new(2, Search::BestPacket);
        let mut queues = waiting(&[2_000_000, 1_000_000]);
        for (q, bytes) in [(0, 250), (0, 250), (1, 100)] {
            bps.sent(&view(&queues), q, bytes);
        }
        // 2 / 500 against 1 / 100
        assert_eq!(served(&mut bps, &mut queues), [1, 0]);
    }

    #[test]
    fn a_packet_longer_than_a_frame_goes_alone() {
        let mut bbs = FrameLike::new(2, Search::BestFrame);
        let mut queues = waiting(&[1000, 1000]);
        assert_eq!(served(&mut bbs, &mut queues), [0, 1]);
    }

    /// Looks at all queues for every packet, and fills a frame for every rate.
    struct Plain {
        search: Search,
        means: Means,
        frame: VecDeque<usize>,
        /// How many frames could have been told apart by rate.
        chosen: usize,
    }

    impl Plain {
        fn choose(&mut self, queues: &[Queue], now_ns: u64) -> Option<usize> {
            while self.frame.front().is_some_and(|&q| !eligible(&queues[q])) {
                self.frame.pop_front();
            }
            if self.frame.is_empty() {
                self.means.clock(now_ns);
                self.build(queues);
            }
            self.frame.front().copied()
        }

        fn value(&self, q: usize) -> f64 {
            1.0 / self.means.bytes_s(q).max(1.0)
        }

        fn build(&mut self, queues: &[Queue]) {
            let mut order: Vec<usize> = (0..queues.len())
                .filter(|&q| eligible(&queues[q]))
                .collect();
            order.sort_by(|&a, &b| {
                let heads = queues[a].head_arrival_ns.cmp(&queues[b].head_arrival_ns);
                self.value(b).total_cmp(&self.value(a)).then(heads)
            });
            let mut best: Option<(f64, Vec<usize>)> = None;
            let mut rates: Vec<u64> = order.iter().map(|&q| queues[q].rate_bps).collect();
            if self.search == Search::BestPacket {
                let product = |q: usize| self.value(q) * queues[q].rate_bps as f64;
                let mut first = order.first().copied();
                for &q in &order {
                    first = first
                        .filter(|&first| product(q) <= product(first))
                        .or(Some(q));
                }
                rates = first.into_iter().map(|q| queues[q].rate_bps).collect();
            }
            rates.sort_unstable();
            rates.dedup();
            self.chosen += usize::from(rates.len() > 1);
            for rate_bps in rates {
                let mut room_bytes = rate_bps as f64 * FRAME_S / 8.0;
                let (mut value, mut frame) = (0.0, Vec::new());
                for &q in order.iter().filter(|&&q| queues[q].rate_bps >= rate_bps) {
                    let head_bytes = f64::from(queues[q].head_bytes);
                    for _ in 0..queues[q].backlog_pkts {
                        if frame.is_empty() || head_bytes <= room_bytes {
                            room_bytes -= head_bytes;
                            value += self.value(q) * head_bytes;
                            frame.push(q);
                        }
                    }
                }
                if best.as_ref().is_none_or(|(most, _)| value > *most) {
                    best = Some((value, frame));
                }
            }
            self.frame = best.map_or_else(VecDeque::new, |(_, frame)| frame.into());
        }
    }

    /// A random life of queues with packets of several lengths, many of them equal, over epochs of the means.
    #[test]
    fn chooses_as_when_every_queue_and_frame_is_looked_at() {
        const QUEUES: usize = 70;
        for search in [Search::BestFrame, Search::BestPacket] {
            let mut random = Random::new(1, 1);
            let mut below = |most: u64| (most as f64 * random.unit()) as u64;
            let mut mux = Mux::new(0, 1_000_000, &[Limit::default(); QUEUES], |_| {
                Ok::<_, Infallible>(FrameLike::new(QUEUES, search))
            })
            .unwrap();
            let mut plain = Plain {
                search,
                means: Means::new(QUEUES),
                frame: VecDeque::new(),
                chosen: 0,
            };
            let mut sent = [0; QUEUES];
            let mut now_ns = 0;
            for _ in 0..60_000 {
                now_ns += below(8_000_000);
                let q = below(QUEUES as u64) as usize;
                match below(100) {
                    0..50 => {
                        for _ in 0..=below(3) {
                            let bytes = [40, 250, 250, 1500][below(4) as usize];
                            mux.enqueue(now_ns, q, bytes, (), |(), _, _| unreachable!());
                        }
                    }
                    50..60 => {
                        let rates = (0..QUEUES).map(|_| 300_000 * below(12) + below(2));
                        mux.set_rates(now_ns, rates.collect::<Vec<_>>());
                    }
                    60..65 => {
                        mux.drop_head(now_ns, q);
                    }
                    _ => {
                        for _ in 0..below(8) {
                            let wanted = plain.choose(mux.queues(), now_ns);
                            let found = mux.dequeue(now_ns, |()| false, |(), _, _| unreachable!());
                            let found = found.map(|departure| (departure.class, departure.bytes));
                            assert_eq!(found.map(|(q, _)| q), wanted, "{now_ns} ns");
                            if let Some((q, bytes)) = found {
                                plain.means.sent(q, now_ns, bytes);
                                plain.frame.pop_front();
                                sent[q] += 1;
                            }
                        }
                    }
                }
            }
            assert!(sent.iter().all(|&pkts| pkts > 100), "{sent:?}");
            assert!(search == Search::BestPacket || plain.chosen > 1000);
        }
    }
}
