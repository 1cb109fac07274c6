// SPDX-License-Identifier: BSD-3-Clause
//! What reports say about the link below: its capacity, the delay of the empty path, and the queue in front of the link.
//!
//! All packets pass one queue in the order in which they were sent. So the delay of a mark is that of the empty path and the
//! time that the queue takes to send what was before it. While there is a queue, the delay grows by the time that the packets
//! sent take beyond the time in which they were sent; that is how capacity and delay are told apart.

use std::collections::VecDeque;

use super::lowest::Lowest;
use super::schedule::Surprise;

/// Most samples kept.
const SAMPLES: usize = 64;
/// Most differences from which the jitter is estimated.
const JERKS: usize = 32;
/// Shortest time over which a rate is measured, and the longest, ns.
const LEAST_WINDOW_NS: u64 = 20_000_000;
const MOST_WINDOW_NS: u64 = 150_000_000;
/// Half of the longest time for which the base delay is remembered where little is sent, ns.
const HALF_MEMORY_NS: u64 = 5_000_000_000;
/// How long marks must be late before they count where less is sent than the rule allows, ns.
const LATE_NS: u64 = 1_000_000_000;
/// Marks further apart do not say when the path changed, ns.
const CLOSE_NS: u64 = 60_000_000;
/// A delay that rises by more than this from one mark to the next is an outage, ns.
const OUTAGE_NS: i64 = 400_000_000;
/// By how much one report may raise the capacity at the most.
const MOST_RISE: f64 = 1.5;
/// A queue of so little is none, ns.
const EMPTY_NS: f64 = 1e6;
/// A change of the delay by this many standard deviations of the jitter is no jitter. With more of them a fall of the capacity
/// is seen later; with fewer, jitter is taken for it, and less of the link is used.
const CLEAR: f64 = 2.0;
/// Above this jitter falls are not anticipated, ns: a packet of 1250 bytes at 10 Mbit/s.
const STEADY_NS: f64 = 1e6;
/// Greatest round trip in which the capacity grows as fast as it may, ns.
const NEAR_NS: f64 = 100e6;
/// The part of what the rule allows that must be sent for the link to count as used.
const USED: f64 = 0.85;

/// A report, with what was known of its mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// When the mark was sent and when it came, ns by two clocks.
    pub sent_ns: u64,
    pub received_ns: u64,
    /// What was sent before the mark, what the rule allowed to be sent, and what was received, bits on the link.
    pub sent_bits: f64,
    pub allowed_bits: f64,
    pub received_bits: f64,
}

impl Sample {
    /// How long it took, ns by two clocks that may differ by any amount.
    fn way_ns(&self) -> i64 {
        self.received_ns.wrapping_sub(self.sent_ns) as i64
    }
}

/// What happened between two marks.
#[derive(Clone, Copy, Debug)]
struct Since {
    sent_bps: f64,
    allowed_bps: f64,
    received_bps: f64,
    /// The received rate without what noise alone may add: of many rates the greatest is too great.
    surely_bps: f64,
    /// By how much the delay rose, ns.
    rose_ns: f64,
}

impl Since {
    fn new(first: &Sample, last: &Sample, noise_ns: f64) -> Since {
        let rate = |bits: f64, ns: u64| 1e9 * bits / ns.max(1) as f64;
        let sent_ns = last.sent_ns - first.sent_ns;
        let received_ns = last.received_ns.saturating_sub(first.received_ns);
        let received_bits = last.received_bits - first.received_bits;
        let doubtful_ns = (2.0 * noise_ns) as u64;
        Since {
            sent_bps: rate(last.sent_bits - first.sent_bits, sent_ns),
            allowed_bps: rate(last.allowed_bits - first.allowed_bits, sent_ns),
            received_bps: rate(received_bits, received_ns),
            surely_bps: rate(received_bits, received_ns.saturating_add(doubtful_ns)),
            rose_ns: last.way_ns().saturating_sub(first.way_ns()) as f64,
        }
    }
}

/// What is known of the path.
#[derive(Debug)]
pub(super) struct Estimate {
    /// The capacity, bit/s.
    pub capacity_bps: f64,
    /// The queueing delay that the last mark met, ns.
    pub queue_ns: f64,
    /// How much delays differ without reason, ns: a standard deviation.
    pub noise_ns: f64,
    /// The received rate, bit/s.
    pub received_bps: f64,
    /// Whether what the rule allowed was sent.
    pub used: bool,
    /// The shortest delay in this half of the memory and the half before, ns by two clocks, and when this half began, ns.
    base_ns: [Option<i64>; 2],
    half_ns: u64,
    samples: VecDeque<Sample>,
    jerks: VecDeque<f64>,
    /// Since when every mark was late, ns, and the shortest queueing delay since then, ns.
    late: Option<(u64, f64)>,
    /// Since when the link was full of packets without a queue, ns.
    empty_since_ns: Option<u64>,
    /// Since when the queue is longer than it is meant to be, ns.
    over_since_ns: Option<u64>,
    /// While the queue should shrink: by how much it should have, ns, and how long it was, ns.
    shrinking: (f64, f64),
    /// How many times in a row the delay rose.
    rises: u32,
    /// The greatest rate received lately, bit/s.
    best_bps: f64,
    /// Whether the capacity is unknown, so that it grows faster.
    pub searching: bool,
    /// The lowest capacity of late, and up to which the capacity may grow for its sake, bit/s.
    lowest: Lowest,
    most_bps: f64,
}

impl Estimate {
    pub(super) fn new(capacity_bps: f64) -> Estimate {
        Estimate {
            capacity_bps,
            queue_ns: 0.0,
            noise_ns: 0.0,
            received_bps: 0.0,
            used: false,
            base_ns: [None, None],
            half_ns: 0,
            samples: VecDeque::new(),
            jerks: VecDeque::new(),
            late: None,
            empty_since_ns: None,
            over_since_ns: None,
            shrinking: (0.0, 0.0),
            rises: 0,
            best_bps: 0.0,
            searching: true,
            lowest: Lowest::default(),
            most_bps: f64::INFINITY,
        }
    }

    /// Bounds the growth of the capacity, so that a fall to its lowest value of late, known `unseen_ns` late, makes a
    /// short queue only.
    ///
    /// While the capacity is looked for nothing is known of how it varies. Where delays differ by themselves, a low value may
    /// be an error; bounds by errors would lower the capacity step by step.
    pub(super) fn anticipate(&mut self, now_ns: u64, unseen_ns: u64) {
        if self.searching || self.noise_ns > STEADY_NS {
            self.lowest.forget();
        } else {
            self.lowest.add(now_ns, self.capacity_bps);
        }
        self.most_bps = self.lowest.most_bps(unseen_ns);
    }

    /// Lifts that bound.
    pub(super) fn do_not_anticipate(&mut self) {
        self.lowest.forget();
        self.most_bps = f64::INFINITY;
    }

    /// Forgets the path; the capacity stays.
    pub(super) fn forget_path(&mut self) {
        *self = Estimate {
            noise_ns: self.noise_ns,
            ..Estimate::new(self.capacity_bps)
        };
    }

    pub(super) fn last(&self) -> Option<&Sample> {
        self.samples.back()
    }

    fn base(&self) -> Option<i64> {
        match self.base_ns {
            [Some(one), Some(other)] => Some(one.min(other)),
            [one, other] => one.or(other),
        }
    }

    /// Takes the delay of the mark sent at this time for that of the empty path, ns.
    pub(super) fn rebase(&mut self, sent_ns: u64, now_ns: u64) {
        let mark = self.samples.iter().find(|sample| sample.sent_ns >= sent_ns);
        let (Some(mark), Some(last)) = (mark, self.samples.back()) else {
            return;
        };
        let base_ns = mark.way_ns();
        self.queue_ns = last.way_ns().saturating_sub(base_ns).max(0) as f64;
        self.base_ns = [Some(base_ns), None];
        self.half_ns = now_ns;
        self.settle();
    }

    /// The shortest delay remembered, ns by two clocks.
    pub(super) fn base_ns(&self) -> i64 {
        self.base().unwrap_or(0)
    }

    /// Ends all observations of the queue.
    fn settle(&mut self) {
        self.late = None;
        self.over_since_ns = None;
        self.shrinking = (0.0, 0.0);
        self.rises = 0;
    }

    /// The queue that is aimed at, ns.
    pub(super) fn target_ns(&self, delay_ns: u64) -> f64 {
        (3e6 + self.noise_ns).min(delay_ns as f64 / 2.0)
    }

    /// Takes a report that came after a round trip of `rtt_ns`. Returns a change that came at once.
    pub(super) fn add(
        &mut self,
        now_ns: u64,
        sample: Sample,
        (rtt_ns, delay_ns): (u64, u64),
    ) -> Option<Surprise> {
        self.update_noise(&sample);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        let way_ns = self.smooth_way_ns();
        self.update_base(now_ns, way_ns);
        let base_ns = self.base().unwrap_or(way_ns);
        let measured_ns = sample.way_ns().saturating_sub(base_ns) as f64;
        let before = self
            .samples
            .len()
            .checked_sub(2)
            .map(|at| self.samples[at])?;
        if sample.way_ns().saturating_sub(before.way_ns()) > OUTAGE_NS {
            // The link stood still meanwhile, which says nothing about its rate.
            self.samples.clear();
            self.samples.push_back(sample);
            self.queue_ns = measured_ns.max(0.0);
            self.settle();
            return None;
        }
        let wrong_ns = sample.way_ns().saturating_sub(before.way_ns()) as f64
            - self.predicted_change_ns(&before, &sample);
        self.observe_queue(&before, &sample, measured_ns);
        self.measure(now_ns, &before, &sample, rtt_ns, delay_ns);
        let close = sample.sent_ns - before.sent_ns <= CLOSE_NS;
        (close && wrong_ns.abs() > 4e6 + 4.0 * self.noise_ns).then_some(Surprise {
            at_ns: before.sent_ns + (sample.sent_ns - before.sent_ns) / 2,
            size_ns: wrong_ns.abs(),
        })
    }

    /// By how much the delay should have changed between two marks, ns.
    fn predicted_change_ns(&self, before: &Sample, sample: &Sample) -> f64 {
        let time_ns = (sample.sent_ns - before.sent_ns) as f64;
        let takes_ns = 1e9 * (sample.sent_bits - before.sent_bits) / self.capacity_bps;
        (takes_ns - time_ns).max(-self.queue_ns)
    }

    /// The capacity between two marks between which only a short burst was sent, bit/s.
    pub(super) fn of_burst(&mut self, begun_ns: u64, most_bps: f64) {
        let Some(last) = self.samples.back().copied() else {
            return;
        };
        let first = self
            .samples
            .iter()
            .find(|sample| sample.sent_ns == begun_ns);
        let Some(first) = first.filter(|first| first.sent_ns < last.sent_ns) else {
            return;
        };
        let bits = last.received_bits - first.received_bits;
        let time_ns = last.received_ns.saturating_sub(first.received_ns).max(1);
        self.capacity_bps = (1e9 * bits / time_ns as f64).min(most_bps);
        // A burst that came as it was sent says only that the link is not slower.
        let longer_ns = time_ns as f64 - (last.sent_ns - first.sent_ns) as f64;
        self.searching = longer_ns < 0.5e6;
    }

    fn update_noise(&mut self, sample: &Sample) {
        let len = self.samples.len();
        if len < 2 {
            return;
        }
        let ways = [
            self.samples[len - 2].way_ns(),
            self.samples[len - 1].way_ns(),
            sample.way_ns(),
        ]
        .map(|ns| ns as f64);
        if self.jerks.len() == JERKS {
            self.jerks.pop_front();
        }
        self.jerks
            .push_back((ways[2] - 2.0 * ways[1] + ways[0]).abs());
        let mut sorted: Vec<f64> = self.jerks.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        // The second difference of independent values has sqrt(6) times their deviation, and the median of its size is
        // 0.67 of its own.
        self.noise_ns = (sorted[sorted.len() / 2] / 1.65).min(30e6);
    }

    /// The delay of the last marks, ns: their mean where delays differ.
    fn smooth_way_ns(&self) -> i64 {
        let Some(last) = self.samples.back() else {
            return 0;
        };
        let window_ns = (15.0 * self.noise_ns).min(MOST_WINDOW_NS as f64) as u64;
        let ways = self
            .samples
            .iter()
            .rev()
            .take_while(|sample| last.sent_ns - sample.sent_ns <= window_ns);
        let first = last.way_ns();
        let (mut sum, mut count) = (0_i64, 0_i64);
        for sample in ways {
            sum = sum.saturating_add(sample.way_ns().saturating_sub(first));
            count += 1;
        }
        first.saturating_add(sum / count.max(1))
    }

    fn update_base(&mut self, now_ns: u64, way_ns: i64) {
        let old = now_ns.saturating_sub(self.half_ns) > HALF_MEMORY_NS;
        if old && !self.used {
            self.base_ns = [None, self.base_ns[0]];
            self.half_ns = now_ns;
        }
        self.base_ns[0] = Some(self.base_ns[0].map_or(way_ns, |ns| ns.min(way_ns)));
    }

    /// Corrects the queue that was predicted by the one measured, the more so the less the jitter explains the difference.
    fn observe_queue(&mut self, before: &Sample, sample: &Sample, measured_ns: f64) {
        let time_ns = (sample.sent_ns - before.sent_ns) as f64;
        let takes_ns = 1e9 * (sample.sent_bits - before.sent_bits) / self.capacity_bps;
        let predicted_ns = (self.queue_ns + takes_ns - time_ns).max(0.0);
        let error_ns = measured_ns - predicted_ns;
        let noise = (2.0 * self.noise_ns).powi(2);
        let gain = (error_ns * error_ns / (error_ns * error_ns + noise + 1.0)).max(0.25);
        self.queue_ns = (predicted_ns + gain * error_ns).max(0.0);
    }

    /// The sample since which to measure: from the shortest time in which the delay clearly changed, where delays differ.
    fn window(&self, before: &Sample, last: &Sample, clear_ns: f64) -> Sample {
        let window_ns = ((15.0 * self.noise_ns) as u64).clamp(LEAST_WINDOW_NS, MOST_WINDOW_NS);
        let since = |ns: u64| {
            let mut samples = self.samples.iter().rev().skip(1);
            samples
                .find(|sample| last.sent_ns - sample.sent_ns >= ns)
                .copied()
        };
        let clear = |first: &Sample| {
            last.way_ns().saturating_sub(first.way_ns()).unsigned_abs() as f64 > clear_ns
        };
        let nearest = since(window_ns).unwrap_or(*before);
        if self.noise_ns < 0.5e6 || clear(&nearest) {
            return nearest;
        }
        [2, 4]
            .into_iter()
            .filter_map(|times| since(times * window_ns))
            .find(clear)
            .unwrap_or(nearest)
    }

    /// Measures the capacity where the delay shows it.
    fn measure(&mut self, now_ns: u64, before: &Sample, last: &Sample, rtt_ns: u64, delay_ns: u64) {
        let clear_ns = 0.7e6 + CLEAR * self.noise_ns;
        let since = Since::new(&self.window(before, last, clear_ns), last, self.noise_ns);
        self.received_bps = since.received_bps;
        self.used = since.sent_bps >= USED * since.allowed_bps;
        let time_ns = (last.sent_ns - before.sent_ns) as f64;
        self.best_bps = since
            .received_bps
            .max(self.best_bps * (-time_ns / 1e9).exp());
        let target_ns = self.target_ns(delay_ns);
        let empty_ns = (EMPTY_NS + 1.5 * self.noise_ns).max(target_ns / 2.0);
        self.follow_delay(&since, clear_ns, empty_ns);
        if !self.used {
            self.empty_since_ns = None;
            self.over_since_ns = None;
            self.shrinking = (0.0, self.queue_ns);
            if self.is_growing(now_ns, delay_ns) {
                self.capacity_bps = self.capacity_bps.min(since.received_bps);
                self.late = None;
            }
            return;
        }
        self.late = None;
        if self.queue_ns > target_ns + 2e6 + 2.0 * self.noise_ns {
            self.over_since_ns.get_or_insert(now_ns);
        } else {
            self.over_since_ns = None;
        }
        if self.queue_ns <= empty_ns {
            let since_ns = *self.empty_since_ns.get_or_insert(now_ns);
            self.grow(now_ns - since_ns, time_ns, rtt_ns);
            self.shrinking = (0.0, self.queue_ns);
        } else {
            self.empty_since_ns = None;
            self.test_base(before, last, now_ns);
        }
    }

    /// Takes the rate received for the capacity while the delay rises or falls, because there is a queue then. Otherwise the
    /// capacity is that rate at least.
    fn follow_delay(&mut self, since: &Since, clear_ns: f64, empty_ns: f64) {
        // A path that became shorter looks as if the link had been faster.
        let most_bps = MOST_RISE * self.capacity_bps;
        let is_there = if since.rose_ns > clear_ns {
            self.rises += 1;
            let full = since.sent_bps >= 0.9 * self.capacity_bps || self.rises > 1;
            self.shrinking = (0.0, self.queue_ns);
            since.received_bps > self.capacity_bps || (self.used && full)
        } else {
            self.rises = 0;
            self.used && since.rose_ns < -clear_ns && self.queue_ns > empty_ns
        };
        if is_there {
            self.shrinking = (0.0, self.queue_ns);
            self.capacity_bps = since.received_bps.min(most_bps);
            self.searching = false;
        } else if self.rises == 0 {
            let surely_bps = since.surely_bps.min(most_bps).min(self.most_bps);
            self.capacity_bps = self.capacity_bps.max(surely_bps);
        }
    }

    /// Lets the capacity grow: this end is the bottleneck for `empty_ns` now.
    ///
    /// A growth by the part `g` in a second makes a queue of `g t * t / 2` in a round trip of `t`, before it is seen to be too
    /// much. So `g` falls with the square of the round trip, and less fast while the capacity is unknown, which ends sooner.
    fn grow(&mut self, empty_ns: u64, time_ns: f64, rtt_ns: u64) {
        let near = (NEAR_NS / rtt_ns.max(1) as f64).min(1.0);
        let per_second = if self.searching {
            4.0 * near
        } else if empty_ns > 150_000_000 + rtt_ns {
            2.5 * near * near
        } else {
            0.6 * near * near
        };
        let most_bps = (1.3 * self.best_bps).min(self.most_bps);
        let most_bps = self.capacity_bps.max(most_bps);
        let grown = self.capacity_bps * (per_second * time_ns.min(1e8) * 1e-9).exp();
        self.capacity_bps = grown.min(most_bps);
    }

    /// Less is sent than the link carries, and yet the queue does not shrink: then it is none, and the path has become longer.
    fn test_base(&mut self, before: &Sample, last: &Sample, now_ns: u64) {
        let time_ns = (last.sent_ns - before.sent_ns) as f64;
        let takes_ns = 1e9 * (last.sent_bits - before.sent_bits) / self.capacity_bps.max(1.0);
        let clearly = (0.9 - self.noise_ns / 20e6).max(0.7);
        if takes_ns < clearly * time_ns {
            self.shrinking.0 += time_ns - takes_ns;
        }
        let (expected_ns, was_ns) = self.shrinking;
        let fell_ns = was_ns - self.queue_ns;
        let seen = expected_ns > (4e6 + 3.0 * self.noise_ns).max(0.4 * self.queue_ns);
        if seen && fell_ns < 0.3 * expected_ns {
            self.base_ns = [Some(self.smooth_way_ns()), None];
            self.half_ns = now_ns;
            self.settle();
            self.queue_ns = 0.0;
        }
    }

    /// Whether marks were late for a second and the queueing delay has grown by `delay` since.
    fn is_growing(&mut self, now_ns: u64, delay_ns: u64) -> bool {
        let delay_ns = delay_ns as f64;
        if self.queue_ns <= delay_ns {
            self.late = None;
            return false;
        }
        let (since_ns, shortest_ns) = self.late.get_or_insert((now_ns, self.queue_ns));
        *shortest_ns = self.queue_ns.min(*shortest_ns);
        now_ns.saturating_sub(*since_ns) >= LATE_NS && self.queue_ns > *shortest_ns + delay_ns
    }

    /// Whether the queue has been too long for so long that it may be none.
    pub(super) fn doubts(&self, now_ns: u64, rtt_ns: u64) -> bool {
        self.over_since_ns
            .is_some_and(|since_ns| now_ns.saturating_sub(since_ns) > rtt_ns + 200_000_000)
    }
}
