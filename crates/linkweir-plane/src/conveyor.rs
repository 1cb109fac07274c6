// SPDX-License-Identifier: BSD-3-Clause
//! One direction of an emulated link: a queue, the link's pace, losses, delay and jitter. No input or output and no clock.
//!
//! Packets move at the computed times, not when the emulator wakes. However late it wakes, rate and delay are exact up
//! to the delivery of a packet. It measures how late deliveries are.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use linkweir_config::signal::Track;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::pace::Pace;
use crate::setup::Direction;

/// One direction of a link.
pub struct Conveyor {
    pace: Pace,
    delay_s: Track,
    loss: Track,
    jitter_ns: u64,
    limit_pkts: usize,
    overhead_bytes: i64,
    random: Pcg64,
    origin_ns: u64,
    queue: VecDeque<Box<[u8]>>,
    /// The packet on the link, when it ends, and whether it began when the one before it ended.
    sending: Option<(Box<[u8]>, u64, bool)>,
    way: VecDeque<Travelling>,
    /// Counters.
    pub tally: Tally,
}

struct Travelling {
    packet: Box<[u8]>,
    due_ns: u64,
    ended_ns: u64,
    follows: bool,
}

/// Counters of one direction.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Packets that arrived.
    pub arrived_pkts: u64,
    /// Packets for which the queue had no room.
    pub dropped_pkts: u64,
    /// Packets lost.
    pub lost_pkts: u64,
    /// Losses to be expected, as a sum of probabilities, and its variance.
    pub expected_losses: (f64, f64),
    /// Packets delivered.
    pub delivered_pkts: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Time between packets that were sent back to back: as asked and as measured, ns.
    pub between_ns: (u64, u64),
    /// How late packets were delivered, ns.
    pub late_ns: Histogram<u64>,
    /// Sum of the delays that the delivered packets should have had, ns.
    pub delays_ns: u128,
    /// The last delivered packet: when it ended on the link, and when it was delivered.
    last: Option<(u64, u64)>,
}

impl Tally {
    fn new() -> Tally {
        Tally {
            arrived_pkts: 0,
            dropped_pkts: 0,
            lost_pkts: 0,
            expected_losses: (0.0, 0.0),
            delivered_pkts: 0,
            delivered_bytes: 0,
            between_ns: (0, 0),
            late_ns: Histogram::new(3).expect("three significant figures are allowed"),
            delays_ns: 0,
            last: None,
        }
    }
}

impl Conveyor {
    /// An empty direction whose signals begin at `now_ns`.
    #[must_use]
    pub fn new(direction: &Direction, now_ns: u64, seed: u64) -> Conveyor {
        Conveyor {
            pace: Pace::new(&direction.offered, now_ns),
            delay_s: Track::new(&direction.delay_s),
            loss: Track::new(&direction.loss),
            jitter_ns: direction.jitter_ns,
            limit_pkts: direction.limit_pkts as usize,
            overhead_bytes: direction.overhead_bytes,
            random: Pcg64::seed_from_u64(seed),
            origin_ns: now_ns,
            queue: VecDeque::new(),
            sending: None,
            way: VecDeque::new(),
            tally: Tally::new(),
        }
    }

    /// Takes a packet.
    pub fn arrive(&mut self, now_ns: u64, packet: &[u8]) {
        self.catch_up(now_ns);
        self.tally.arrived_pkts += 1;
        if self.sending.is_none() {
            self.pace.idle();
            self.begin(now_ns, packet.into(), false);
        } else if self.queue.len() < self.limit_pkts {
            self.queue.push_back(packet.into());
        } else {
            self.tally.dropped_pkts += 1;
        }
    }

    /// Delivers the packets that are due; `now_ns` reads the time, once per packet.
    pub fn deliver(&mut self, mut now_ns: impl FnMut() -> u64, mut hand_on: impl FnMut(&[u8])) {
        let mut now = now_ns();
        self.catch_up(now);
        while self
            .way
            .front()
            .is_some_and(|travelling| travelling.due_ns <= now)
        {
            let Some(Travelling {
                packet,
                due_ns,
                ended_ns,
                follows,
            }) = self.way.pop_front()
            else {
                return;
            };
            hand_on(&packet);
            let tally = &mut self.tally;
            tally.delivered_pkts += 1;
            tally.delivered_bytes += packet.len() as u64;
            tally.delays_ns += u128::from(due_ns - ended_ns);
            let _ = tally.late_ns.record(now - due_ns);
            if let (Some((last_ended_ns, last_ns)), true) = (tally.last, follows) {
                tally.between_ns.0 += ended_ns - last_ended_ns;
                tally.between_ns.1 += now - last_ns;
            }
            tally.last = Some((ended_ns, now));
            now = now_ns();
        }
    }

    /// When to deliver next, ns. Packets keep their order, so nothing happens before the first is due; until then it need
    /// not be computed when later ones ended on the link.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let due_ns = self.way.front().map(|travelling| travelling.due_ns);
        due_ns.or_else(|| self.sending.as_ref().map(|(_, ends_ns, _)| *ends_ns))
    }

    fn begin(&mut self, now_ns: u64, packet: Box<[u8]>, follows: bool) {
        let bytes = (packet.len() as i64 + self.overhead_bytes).max(1);
        let from_ns = self.pace.ready_ns(now_ns).max(now_ns);
        let ends_ns = self.pace.begin(from_ns, bytes as u32);
        self.sending = Some((packet, ends_ns, follows));
    }

    /// Ends the packets whose time on the link is over.
    fn catch_up(&mut self, now_ns: u64) {
        while let Some((packet, ends_ns, follows)) =
            self.sending.take_if(|(_, ends_ns, _)| *ends_ns <= now_ns)
        {
            self.leave(packet, ends_ns, follows);
            if let Some(packet) = self.queue.pop_front() {
                self.begin(ends_ns, packet, true);
            }
        }
    }

    fn leave(&mut self, packet: Box<[u8]>, ended_ns: u64, follows: bool) {
        let at_ns = ended_ns - self.origin_ns;
        let loss = self.loss.value(at_ns).clamp(0.0, 1.0);
        self.tally.expected_losses.0 += loss;
        self.tally.expected_losses.1 += loss * (1.0 - loss);
        if loss > 0.0 && self.unit() < loss {
            self.tally.lost_pkts += 1;
            return;
        }
        let mut due_ns = ended_ns + (self.delay_s.value(at_ns).max(0.0) * 1e9 + 0.5) as u64;
        if self.jitter_ns > 0 {
            due_ns += (self.unit() * self.jitter_ns as f64) as u64;
        }
        // Packets keep their order.
        let due_ns = self
            .way
            .back()
            .map_or(due_ns, |last| last.due_ns.max(due_ns));
        self.way.push_back(Travelling {
            packet,
            due_ns,
            ended_ns,
            follows,
        });
    }

    /// A random number, 0 <= x < 1.
    fn unit(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_config::signal::{Capacity, Signal};

    const START_NS: u64 = 1_000_000_000_000;
    const MS: u64 = 1_000_000;

    fn direction(mbit: f64, delay_s: f64) -> Direction {
        Direction {
            offered: Capacity::Rate(Signal::Constant(mbit * 1e6)),
            delay_s: Signal::Constant(delay_s),
            jitter_ns: 0,
            loss: Signal::Constant(0.0),
            limit_pkts: 1000,
            overhead_bytes: 0,
        }
    }

    /// Numbered packets of `bytes`, all at once.
    fn fill(conveyor: &mut Conveyor, now_ns: u64, count: u32, bytes: usize) {
        for number in 0..count {
            let mut packet = vec![0; bytes];
            packet[..4].copy_from_slice(&number.to_be_bytes());
            conveyor.arrive(now_ns, &packet);
        }
    }

    /// Looks at the times the conveyor asks for, each `late_ns` later; returns numbers and times.
    fn run(conveyor: &mut Conveyor, late_ns: impl Fn(u64) -> u64) -> Vec<(u32, u64)> {
        let mut out = Vec::new();
        let mut look = 0;
        while let Some(next_ns) = conveyor.next_ns() {
            let now_ns = next_ns + late_ns(look);
            look += 1;
            conveyor.deliver(
                || now_ns,
                |packet| out.push((u32::from_be_bytes(packet[..4].try_into().unwrap()), now_ns)),
            );
        }
        out
    }

    #[test]
    fn rate_and_delay_are_the_configured_ones() {
        for mbit in [5.0, 20.0, 100.0] {
            for delay_ms in [10, 250] {
                let mut conveyor =
                    Conveyor::new(&direction(mbit, delay_ms as f64 * 1e-3), START_NS, 1);
                fill(&mut conveyor, START_NS, 500, 1250);
                for (at, (number, ns)) in run(&mut conveyor, |_| 0).into_iter().enumerate() {
                    // 10 000 bits take 10 / mbit ms.
                    let ends_ns = START_NS + (at as u64 + 1) * (10.0 * MS as f64 / mbit) as u64;
                    assert_eq!((number as usize, ns), (at, ends_ns + delay_ms * MS));
                }
                assert_eq!(conveyor.tally.delivered_pkts, 500);
            }
        }
    }

    #[test]
    fn lateness_is_measured_and_does_not_add_up() {
        let mut conveyor = Conveyor::new(&direction(20.0, 0.01), START_NS, 1);
        fill(&mut conveyor, START_NS, 900, 1250);
        let out = run(&mut conveyor, |look| look % 7 * 20_000);
        let (number, last_ns) = *out.last().unwrap();
        assert_eq!(number, 899);
        let due_ns = START_NS + 900 * 500_000 + 10 * MS;
        assert!((due_ns..=due_ns + 120_000).contains(&last_ns));
        let tally = &conveyor.tally;
        assert!(tally.late_ns.max() >= 100_000 && tally.late_ns.max() <= 121_000);
        assert_eq!(tally.between_ns.0, 899 * 500_000);
        assert!(tally.between_ns.1.abs_diff(tally.between_ns.0) <= 120_000);
    }

    #[test]
    fn a_full_queue_drops_and_an_idle_link_begins_at_once() {
        let mut conveyor = Conveyor::new(&direction(10.0, 0.0), START_NS, 1);
        fill(&mut conveyor, START_NS, 1002, 1250);
        assert_eq!(
            conveyor.tally.dropped_pkts, 1,
            "one is on the link, 1000 wait"
        );
        assert_eq!(run(&mut conveyor, |_| 0).len(), 1001);
        let later_ns = START_NS + 5000 * MS;
        fill(&mut conveyor, later_ns, 1, 1250);
        assert_eq!(run(&mut conveyor, |_| 0), [(0, later_ns + MS)]);
    }

    #[test]
    fn losses_have_the_configured_probability_and_repeat_with_the_seed() {
        let lossy = Direction {
            loss: Signal::Constant(0.1),
            limit_pkts: 100_000,
            ..direction(100.0, 0.01)
        };
        let survivors = |seed| {
            let mut conveyor = Conveyor::new(&lossy, START_NS, seed);
            fill(&mut conveyor, START_NS, 20_000, 100);
            let out = run(&mut conveyor, |_| 0);
            assert_eq!(conveyor.tally.lost_pkts + out.len() as u64, 20_000);
            assert!((conveyor.tally.expected_losses.0 - 2000.0).abs() < 1e-6);
            out
        };
        // Five standard deviations: 5 * sqrt(20000 * 0.1 * 0.9) = 212.
        assert!(survivors(1).len().abs_diff(18_000) < 212);
        assert_eq!(survivors(2), survivors(2));
        assert_ne!(survivors(2), survivors(3));
    }

    #[test]
    fn jitter_stays_in_its_range_and_packets_in_order() {
        let shaky = Direction {
            jitter_ns: 5 * MS,
            ..direction(10.0, 0.02)
        };
        let mut conveyor = Conveyor::new(&shaky, START_NS, 1);
        fill(&mut conveyor, START_NS, 500, 1250);
        let out = run(&mut conveyor, |_| 0);
        let extra: Vec<u64> = out
            .iter()
            .enumerate()
            .map(|(at, (number, ns))| {
                assert_eq!(*number as usize, at);
                ns - (START_NS + (at as u64 + 1) * MS + 20 * MS)
            })
            .collect();
        assert!(extra.iter().all(|ns| *ns < 5 * MS));
        assert!(extra.iter().any(|ns| *ns > 4 * MS) && extra.iter().any(|ns| *ns < 2 * MS));
    }

    #[test]
    fn a_trace_is_followed() {
        // 1 Mbit/s for a second, 3 Mbit/s for a second, and again.
        let steps = Signal::Steps {
            points: vec![(0, 1e6), (1000 * MS, 3e6)].into(),
            end: linkweir_config::signal::End::Loop {
                period_ns: 2000 * MS,
            },
        };
        let varying = Direction {
            offered: Capacity::Rate(steps),
            ..direction(1.0, 0.0)
        };
        let mut conveyor = Conveyor::new(&varying, START_NS, 1);
        fill(&mut conveyor, START_NS, 1000, 1250);
        let mut by_second = [0; 4];
        for (_, ns) in run(&mut conveyor, |look| look % 3 * 100_000) {
            if let Some(count) = by_second.get_mut(((ns - START_NS) / (1000 * MS)) as usize) {
                *count += 1;
            }
        }
        for (count, expected) in by_second.into_iter().zip([100_i32, 300, 100, 300]) {
            assert!((count - expected).abs() <= 1, "{by_second:?}");
        }
    }
}
