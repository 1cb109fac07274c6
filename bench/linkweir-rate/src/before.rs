// SPDX-License-Identifier: BSD-3-Clause
//! The rule as it was before: capacity by delay above a threshold and growth of 10 % a second. It is kept to be compared with
//! the one of today, and to see that both understand each other's ends.

use std::collections::VecDeque;

use linkweir_plane::feedback::{Message, Report, Sent};
use linkweir_plane::setup::{Bounds, Wire};

/// Marks take at most one part in this many of the capacity.
const MARK_PART: f64 = 100.0;
/// Least time between reports of its far end, ns.
pub const REPORT_NS: u64 = 50_000_000;

/// Time between marks while packets are sent, ns.
const MARK_NS: u64 = 100_000_000;
/// Time between marks while no packets are sent, ns.
const IDLE_MARK_NS: u64 = 1_000_000_000;
/// Most marks remembered that have no report yet.
const UNANSWERED: usize = 256;
/// Most reports over which a rate is measured.
const SEEN: usize = 64;
/// Shortest time over which a rate is measured, ns.
const RATE_NS: u64 = 200_000_000;
/// Half of the longest time for which the base delay is remembered, ns.
const HALF_MEMORY_NS: u64 = 5_000_000_000;
/// How long marks must be late before they count on a link that is little used, ns.
const LATE_NS: u64 = 1_000_000_000;
/// A queueing delay shorter than this counts as empty whatever `delay` is, as timers are no finer, ns.
const EMPTY_NS: u64 = 1_000_000;
/// Growth of the capacity in a second.
const RAISE: f64 = 0.1;
/// Part of the capacity that must be received for it to grow, and sent or received for it to fall.
const USED: f64 = 0.9;

/// Whether the link has a queue that is being drained.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Open,
    Full {
        /// When the capacity was lowered, ns.
        since_ns: u64,
        /// The queueing delay at that time, ns.
        queue_ns: u64,
        /// The shortest queueing delay since, ns.
        shortest_ns: u64,
        /// When that was measured, ns.
        shrank_ns: u64,
    },
}

/// The sender's end: what the reports of a peer say about the path to it.
#[derive(Debug)]
pub struct Feedback {
    bounds: Bounds,
    capacity_bps: f64,
    state: State,
    /// Marks without a report, the earliest first: when each was sent, ns, and the bytes sent on the link before it.
    unanswered: VecDeque<(u64, u64)>,
    /// When the last mark was sent, ns, the packets sent before it, and the least time until the next, ns.
    marked_ns: Option<u64>,
    marked_pkts: u64,
    apart_ns: u64,
    /// The last reports, and the bytes sent on the link before the mark of each.
    seen: VecDeque<(Report, u64)>,
    /// Shortest delay in this half of the memory and the half before, ns by two clocks, and when this half began, ns.
    base_delay_ns: [Option<i64>; 2],
    half_ns: u64,
    /// Whether the capacity was used, as of the last report.
    used: bool,
    /// Since when every mark was late, ns, and the shortest queueing delay since then, ns.
    late: Option<(u64, u64)>,
    /// When the queue was last empty, ns.
    empty_ns: u64,
    /// When the last report came, ns.
    last_report_ns: u64,
    queue_ns: u64,
}

impl Feedback {
    /// Begins with this capacity and no reports.
    #[must_use]
    pub fn new(bounds: Bounds, capacity_bps: u64) -> Feedback {
        let mut begins = Feedback {
            bounds,
            capacity_bps: capacity_bps as f64,
            state: State::Open,
            unanswered: VecDeque::new(),
            marked_ns: None,
            marked_pkts: 0,
            apart_ns: 0,
            seen: VecDeque::new(),
            base_delay_ns: [None, None],
            half_ns: 0,
            used: false,
            late: None,
            empty_ns: 0,
            last_report_ns: 0,
            queue_ns: 0,
        };
        begins.clamp();
        begins
    }

    /// Keeps the capacity within its bounds.
    fn clamp(&mut self) {
        let Bounds {
            floor_bps,
            ceiling_bps,
            ..
        } = self.bounds;
        self.capacity_bps = self
            .capacity_bps
            .clamp(floor_bps as f64, ceiling_bps as f64);
    }

    /// When the next mark is due, ns, if `sent_pkts` packets were sent so far.
    #[must_use]
    pub fn due_ns(&self, sent_pkts: u64) -> u64 {
        let idle = sent_pkts == self.marked_pkts;
        let apart_ns = if idle { IDLE_MARK_NS } else { MARK_NS };
        self.marked_ns
            .map_or(0, |ns| ns + apart_ns.max(self.apart_ns))
    }

    /// Makes the mark that is due now. It takes `wire_bytes` on the link; `sent` is what was sent before it.
    pub fn mark(&mut self, now_ns: u64, sent: Sent, wire_bytes: u32) -> Message {
        self.apart_ns = (8e9 * f64::from(wire_bytes) * MARK_PART / self.capacity_bps) as u64;
        self.marked_ns = Some(now_ns);
        self.marked_pkts = sent.pkts;
        if self.unanswered.len() == UNANSWERED {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back((now_ns, sent.bytes));
        Message::Mark { sent_ns: now_ns }
    }

    /// Takes a report; `wire` is what a packet takes on the link. Returns the capacity, bit/s; none if no mark waits for
    /// this report or too few reports came to measure a rate.
    pub fn reported(&mut self, now_ns: u64, report: Report, wire: Wire) -> Option<u64> {
        let mut marks = self.unanswered.iter();
        let place = marks.position(|(ns, _)| *ns == report.sent_ns)?;
        // Earlier marks are dropped with it: of several, the receiver answers only the last.
        let (_, sent_bytes) = self.unanswered.drain(..=place).next_back()?;
        if let Some((last, _)) = self.seen.back() {
            let continues = report.received_ns > last.received_ns
                && report.pkts >= last.pkts
                && report.bytes >= last.bytes;
            if !continues {
                // The counters went back, so the receiver was restarted, and nothing is known about it.
                self.seen.clear();
                self.reset_base_delay(now_ns);
            }
        }
        if self.seen.len() == SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back((report, sent_bytes));
        let rtt_ns = now_ns.saturating_sub(report.sent_ns);
        let since_ns = now_ns.saturating_sub(self.last_report_ns).min(IDLE_MARK_NS);
        self.last_report_ns = now_ns;
        self.queue_ns = self.queueing_delay(now_ns, report);
        let (received_bps, sent_bps) = self.rates(wire)?;
        let used_bps = USED * self.capacity_bps;
        self.used = received_bps >= used_bps || sent_bps >= used_bps;
        self.decide(now_ns, rtt_ns, since_ns, received_bps);
        self.clamp();
        Some(self.capacity_bps as u64)
    }

    /// Forgets the base delay, so that the present delay becomes it.
    fn reset_base_delay(&mut self, now_ns: u64) {
        self.base_delay_ns = [None, None];
        self.state = State::Open;
        self.late = None;
        self.empty_ns = now_ns;
    }

    /// The queueing delay of a report, ns.
    fn queueing_delay(&mut self, now_ns: u64, report: Report) -> u64 {
        // The clocks may differ by any amount, so the difference wraps.
        let way_ns = report.received_ns.wrapping_sub(report.sent_ns) as i64;
        let old = now_ns.saturating_sub(self.half_ns) > HALF_MEMORY_NS;
        if old && !self.used && self.state == State::Open {
            self.base_delay_ns = [None, self.base_delay_ns[0]];
            self.half_ns = now_ns;
        }
        let shortest_ns = self.base_delay_ns[0].map_or(way_ns, |ns| ns.min(way_ns));
        self.base_delay_ns[0] = Some(shortest_ns);
        let shortest_ns = self.base_delay_ns[1].map_or(shortest_ns, |ns| ns.min(shortest_ns));
        way_ns.abs_diff(shortest_ns)
    }

    /// The received rate, and the sent rate of the same packets, bit/s; none while there are too few reports.
    fn rates(&mut self, wire: Wire) -> Option<(f64, f64)> {
        let (last, last_bytes) = *self.seen.back()?;
        let long = |(report, _): &(Report, u64)| last.received_ns - report.received_ns >= RATE_NS;
        while self.seen.get(1).is_some_and(long) {
            self.seen.pop_front();
        }
        let (first, first_bytes) = *self.seen.front().filter(|seen| long(seen))?;
        let came_bytes = wire.bytes(last.pkts - first.pkts, last.bytes - first.bytes);
        let rate = |bytes: f64, time_ns: u64| 8e9 * bytes / time_ns.max(1) as f64;
        Some((
            rate(came_bytes, last.received_ns - first.received_ns),
            rate(
                last_bytes.saturating_sub(first_bytes) as f64,
                last.sent_ns.saturating_sub(first.sent_ns),
            ),
        ))
    }

    /// Whether marks were late for a second and the queueing delay has grown by `delay` since.
    fn is_growing(&mut self, now_ns: u64) -> bool {
        let (queue_ns, delay_ns) = (self.queue_ns, self.bounds.delay_ns);
        if queue_ns <= delay_ns {
            self.late = None;
            return false;
        }
        let (since_ns, shortest_ns) = self.late.get_or_insert((now_ns, queue_ns));
        *shortest_ns = queue_ns.min(*shortest_ns);
        now_ns.saturating_sub(*since_ns) >= LATE_NS
            && queue_ns > shortest_ns.saturating_add(delay_ns)
    }

    /// Applies the rule at the head of this file to a report that came `since_ns` after the last.
    fn decide(&mut self, now_ns: u64, rtt_ns: u64, since_ns: u64, received_bps: f64) {
        let queue_ns = self.queue_ns;
        let delay_ns = self.bounds.delay_ns;
        let empty_limit_ns = (delay_ns / 8).max(EMPTY_NS).min(delay_ns / 2);
        if queue_ns <= empty_limit_ns {
            self.empty_ns = now_ns;
        }
        let bottleneck = self.is_growing(now_ns) || self.used;
        // A queue of q seconds drains within a second if the sender leaves out the part q of the received rate.
        let draining_bps = received_bps * (1.0 - (queue_ns as f64 * 1e-9).clamp(0.05, 0.5));
        let full = State::Full {
            since_ns: now_ns,
            queue_ns,
            shortest_ns: queue_ns,
            shrank_ns: now_ns,
        };
        match &mut self.state {
            State::Open => {
                // A queue that was never empty for so long may stand since before the base delay was measured.
                let standing =
                    self.used && now_ns.saturating_sub(self.empty_ns) > 2 * HALF_MEMORY_NS;
                if standing || (bottleneck && queue_ns > delay_ns) {
                    self.state = full;
                    self.capacity_bps = self.capacity_bps.min(draining_bps);
                } else if queue_ns <= delay_ns / 2 && received_bps >= USED * self.capacity_bps {
                    // In proportion to the time since the last report, so that lost reports do not slow the growth.
                    self.capacity_bps *= 1.0 + RAISE * since_ns as f64 * 1e-9;
                }
            }
            State::Full {
                since_ns,
                queue_ns: was_ns,
                shortest_ns,
                shrank_ns,
            } => {
                let wait_ns = rtt_ns.saturating_add(1_000_000_000);
                if queue_ns < *shortest_ns {
                    *shortest_ns = queue_ns;
                    *shrank_ns = now_ns;
                }
                // What was sent before the capacity was lowered is seen for a round trip more.
                let waited = now_ns.saturating_sub(*since_ns) > wait_ns;
                let shrinks = now_ns.saturating_sub(*shrank_ns) <= HALF_MEMORY_NS;
                if queue_ns <= empty_limit_ns {
                    self.state = State::Open;
                } else if bottleneck && queue_ns > shortest_ns.saturating_add(delay_ns) {
                    self.state = full;
                    self.capacity_bps = self.capacity_bps.min(draining_bps);
                } else if (waited && *shortest_ns > *was_ns - *was_ns / 4) || !shrinks {
                    self.reset_base_delay(now_ns);
                } else {
                    // The queue shrinks, so less has to be left out.
                    self.capacity_bps = self.capacity_bps.max(draining_bps);
                }
            }
        }
    }
}
