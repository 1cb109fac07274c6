// SPDX-License-Identifier: BSD-3-Clause
//! Puts packets back into the order in which they were sent, behind a decoder that needs several attempts for some of them.
//!
//! Two rules, without clock or events of their own: the caller reports each event with its time, and takes the packets that
//! are released.
//!
//! **Shared**, as the simulations of Tauran et al. had it for TCP. Packets carry the numbers of their flows, which a
//! retransmission repeats and a packet dropped in a queue leaves out. One buffer holds packets of all flows.
//!
//! * The first number seen of a flow is the one expected. The expected one is delivered, with those held that follow it; a
//!   lower one is delivered at once; a higher one is held.
//! * When there is no room for it, it is delivered, the next number is expected, and the whole buffer is emptied. The same happens
//!   when the decoder gives up any flow's packet. Emptying releases every packet of every flow, flow by flow and in the order
//!   of numbers, and moves the number expected past them.
//! * A packet held for longer than the timeout is dropped; this is checked at arrivals only. A flow of which nothing
//!   arrived for as long is forgotten, which drops nothing more: what it has held is older still.
//!
//! So a packet that was dropped in a queue and never reached the link blocks its flow until TCP repeats it, a packet of
//! another flow is given up or finds no room and so empties the buffer, or the packets behind it time out.
//!
//! **Per flow**, corrected. Packets are numbered as they enter the link, so that the only holes are packets still being
//! repeated, and the decoder reports the end of each. Every flow has a buffer of its own, so that no flow pays for another.
//!
//! * The expected one is delivered, with those that follow it; a higher one is held; a lower one, passed over before, is
//!   delivered.
//! * When the decoder gives a packet up, its number is no longer expected: packets that waited only for it are delivered.
//! * A packet held for the whole timeout is delivered, after those held below it: late is better than lost, and what is missing
//!   is no longer waited for.
//! * When the buffer has no room for one more, the lowest hole is no longer waited for.

use std::collections::VecDeque;

/// Which rule, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordering {
    /// See [`Rule`].
    pub rule: Rule,
    /// Packets the buffer holds, at least 1: all flows together ([`Rule::Shared`]) or each ([`Rule::PerFlow`]).
    pub buffer_pkts: u32,
    /// How long one is held at most, ns.
    pub timeout_ns: u64,
}

/// Which flows share a buffer; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// All flows.
    Shared,
    /// None: each flow has its own.
    PerFlow,
}

/// Packets that leave the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving<P> {
    /// Released now, in this order.
    pub on: Vec<P>,
    /// These are dropped.
    pub dropped: Vec<P>,
}

impl<P> Default for Leaving<P> {
    fn default() -> Self {
        Leaving {
            on: Vec::new(),
            dropped: Vec::new(),
        }
    }
}

/// The receiver's buffer. Times never decrease.
#[derive(Clone, Debug)]
pub struct Reorder<P>(Machine<P>);

#[derive(Clone, Debug)]
enum Machine<P> {
    Shared(Shared<P>),
    PerFlow(PerFlow<P>),
}

impl<P> Reorder<P> {
    /// An empty buffer for flows 0 .. `nflows`.
    #[must_use]
    pub fn new(reordering: &Reordering, nflows: usize) -> Reorder<P> {
        Reorder(match reordering.rule {
            Rule::Shared => Machine::Shared(Shared {
                reordering: *reordering,
                flows: vec![None; nflows],
                held: Vec::new(),
                oldest_ns: u64::MAX,
            }),
            Rule::PerFlow => Machine::PerFlow(PerFlow {
                reordering: *reordering,
                flows: (0..nflows).map(|_| Window::default()).collect(),
                patience: VecDeque::new(),
            }),
        })
    }

    /// A packet was decoded; `leaving` gets the packets that this releases or drops.
    pub fn decoded(
        &mut self,
        now_ns: u64,
        flow: usize,
        number: u64,
        packet: P,
        leaving: &mut Leaving<P>,
    ) {
        match &mut self.0 {
            Machine::Shared(shared) => shared.decoded(now_ns, flow, number, packet, leaving),
            Machine::PerFlow(flows) => flows.decoded(now_ns, flow, number, packet, leaving),
        }
    }

    /// A packet was given up after its last attempt.
    pub fn given_up(&mut self, flow: usize, number: u64, leaving: &mut Leaving<P>) {
        match &mut self.0 {
            Machine::Shared(shared) => shared.empty(leaving),
            Machine::PerFlow(flows) => flows.given_up(flow, number, leaving),
        }
    }

    /// When [`Reorder::on_timer`] is due. It never moves earlier while packets are held.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        match &self.0 {
            Machine::Shared(_) => None,
            Machine::PerFlow(flows) => flows.patience.front().map(|waiting| waiting.until_ns),
        }
    }

    /// Time has passed.
    pub fn on_timer(&mut self, now_ns: u64, leaving: &mut Leaving<P>) {
        if let Machine::PerFlow(flows) = &mut self.0 {
            flows.on_timer(now_ns, leaving);
        }
    }
}

#[derive(Clone, Debug)]
struct Shared<P> {
    reordering: Reordering,
    /// Expected number and time of the last arrival, of flows that are known.
    flows: Vec<Option<(u64, u64)>>,
    /// In the order of flows and numbers.
    held: Vec<Held<P>>,
    /// No packet has been held since before this.
    oldest_ns: u64,
}

#[derive(Clone, Debug)]
struct Held<P> {
    flow: usize,
    number: u64,
    since_ns: u64,
    packet: P,
}

impl<P> Shared<P> {
    fn decoded(
        &mut self,
        now_ns: u64,
        flow: usize,
        number: u64,
        packet: P,
        leaving: &mut Leaving<P>,
    ) {
        self.drop_old(now_ns, leaving);
        let timeout_ns = self.reordering.timeout_ns;
        let known = self.flows[flow].filter(|(_, last_ns)| now_ns - last_ns <= timeout_ns);
        let expected = known.map_or(number, |(expected, _)| expected);
        self.flows[flow] = Some((expected, now_ns));
        if number > expected {
            if self.held.len() < self.reordering.buffer_pkts as usize {
                let at = self
                    .held
                    .partition_point(|held| (held.flow, held.number) <= (flow, number));
                self.oldest_ns = self.oldest_ns.min(now_ns);
                self.held.insert(
                    at,
                    Held {
                        flow,
                        number,
                        since_ns: now_ns,
                        packet,
                    },
                );
            } else {
                leaving.on.push(packet);
                self.flows[flow] = Some((number + 1, now_ns));
                self.empty(leaving);
            }
            return;
        }
        leaving.on.push(packet);
        if number == expected {
            self.let_go(flow, number + 1, now_ns, leaving);
        }
    }

    /// Releases what is held of a flow from `expected` on without a hole; a second copy follows the first.
    fn let_go(&mut self, flow: usize, mut expected: u64, now_ns: u64, leaving: &mut Leaving<P>) {
        let begin = self.held.partition_point(|held| held.flow < flow);
        let mut end = begin;
        while let Some(held) = self.held.get(end) {
            if held.flow != flow || held.number > expected {
                break;
            }
            expected = expected.max(held.number + 1);
            end += 1;
        }
        let gone = self.held.drain(begin..end);
        leaving.on.extend(gone.map(|held| held.packet));
        self.flows[flow] = Some((expected, now_ns));
    }

    /// Lets go everything.
    fn empty(&mut self, leaving: &mut Leaving<P>) {
        for held in self.held.drain(..) {
            if let Some((expected, _)) = &mut self.flows[held.flow] {
                *expected = (*expected).max(held.number + 1);
            }
            leaving.on.push(held.packet);
        }
        self.oldest_ns = u64::MAX;
    }

    fn drop_old(&mut self, now_ns: u64, leaving: &mut Leaving<P>) {
        let timeout_ns = self.reordering.timeout_ns;
        if now_ns.saturating_sub(self.oldest_ns) <= timeout_ns {
            return;
        }
        for held in std::mem::take(&mut self.held) {
            if now_ns - held.since_ns > timeout_ns {
                leaving.dropped.push(held.packet);
            } else {
                self.held.push(held);
            }
        }
        let since_ns = self.held.iter().map(|held| held.since_ns);
        self.oldest_ns = since_ns.min().unwrap_or(u64::MAX);
    }
}

#[derive(Clone, Debug)]
struct PerFlow<P> {
    reordering: Reordering,
    flows: Vec<Window<P>>,
    /// Packets in the order in which they were first held; some have been delivered since.
    patience: VecDeque<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    until_ns: u64,
    flow: usize,
    number: u64,
}

/// The state of a flow's packets from the expected one on.
#[derive(Clone, Debug)]
struct Window<P> {
    expected: u64,
    /// The first, of number `expected`, is missing, or there is none.
    places: VecDeque<Place<P>>,
    held_pkts: usize,
}

#[derive(Clone, Debug)]
enum Place<P> {
    Missing,
    Held(P),
    /// Given up.
    Gone,
}

impl<P> Default for Window<P> {
    fn default() -> Self {
        Window {
            expected: 0,
            places: VecDeque::new(),
            held_pkts: 0,
        }
    }
}

impl<P> PerFlow<P> {
    fn decoded(
        &mut self,
        now_ns: u64,
        flow: usize,
        number: u64,
        packet: P,
        leaving: &mut Leaving<P>,
    ) {
        let window = &mut self.flows[flow];
        if number <= window.expected {
            leaving.on.push(packet);
            if number == window.expected {
                window.pass(number, leaving);
            }
        } else {
            *window.place(number) = Place::Held(packet);
            window.held_pkts += 1;
            if window.held_pkts > self.reordering.buffer_pkts as usize {
                window.pass_hole(leaving);
            }
            if number >= window.expected {
                self.patience.push_back(Waiting {
                    until_ns: now_ns.saturating_add(self.reordering.timeout_ns),
                    flow,
                    number,
                });
            }
        }
        self.forget_gone();
    }

    fn given_up(&mut self, flow: usize, number: u64, leaving: &mut Leaving<P>) {
        let window = &mut self.flows[flow];
        if number == window.expected {
            window.pass(number, leaving);
        } else if number > window.expected {
            *window.place(number) = Place::Gone;
        }
        self.forget_gone();
    }

    fn on_timer(&mut self, now_ns: u64, leaving: &mut Leaving<P>) {
        while let Some(waiting) = self.patience.front() {
            let window = &mut self.flows[waiting.flow];
            if waiting.number >= window.expected {
                if waiting.until_ns > now_ns {
                    break;
                }
                window.pass(waiting.number, leaving);
            }
            self.patience.pop_front();
        }
    }

    /// Packets that have gone on need no patience; the first in the list is one that is held.
    fn forget_gone(&mut self) {
        while let Some(waiting) = self.patience.front() {
            if waiting.number >= self.flows[waiting.flow].expected {
                break;
            }
            self.patience.pop_front();
        }
    }
}

impl<P> Window<P> {
    /// The place of a number not below the expected one.
    fn place(&mut self, number: u64) -> &mut Place<P> {
        let at = (number - self.expected) as usize;
        while self.places.len() <= at {
            self.places.push_back(Place::Missing);
        }
        &mut self.places[at]
    }

    /// Numbers up to this one are no longer waited for; what is held up to the next hole is delivered.
    fn pass(&mut self, number: u64, leaving: &mut Leaving<P>) {
        while let Some(place) = self.places.front() {
            if matches!(place, Place::Missing) && self.expected > number {
                break;
            }
            if let Some(Place::Held(packet)) = self.places.pop_front() {
                self.held_pkts -= 1;
                leaving.on.push(packet);
            }
            self.expected += 1;
        }
        self.expected = self.expected.max(number + 1);
    }

    /// The lowest hole is no longer waited for, nor are those right after it.
    fn pass_hole(&mut self, leaving: &mut Leaving<P>) {
        let held = |place: &Place<P>| matches!(place, Place::Held(_));
        if let Some(at) = self.places.iter().position(held) {
            self.pass(self.expected + at as u64, leaving);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A buffer and what left it; packets are (flow, number).
    struct Bench {
        reorder: Reorder<(usize, u64)>,
        leaving: Leaving<(usize, u64)>,
    }

    impl Bench {
        fn new(rule: Rule, buffer_pkts: u32, timeout_ns: u64) -> Bench {
            let reordering = Reordering {
                rule,
                buffer_pkts,
                timeout_ns,
            };
            Bench {
                reorder: Reorder::new(&reordering, 3),
                leaving: Leaving::default(),
            }
        }

        fn taken(&mut self) -> Vec<(usize, u64)> {
            std::mem::take(&mut self.leaving.on)
        }

        fn dropped(&mut self) -> Vec<(usize, u64)> {
            std::mem::take(&mut self.leaving.dropped)
        }

        fn decoded(&mut self, now_ns: u64, flow: usize, number: u64) -> Vec<(usize, u64)> {
            let packet = (flow, number);
            self.reorder
                .decoded(now_ns, flow, number, packet, &mut self.leaving);
            self.taken()
        }

        fn given_up(&mut self, flow: usize, number: u64) -> Vec<(usize, u64)> {
            self.reorder.given_up(flow, number, &mut self.leaving);
            self.taken()
        }

        fn timer(&mut self, now_ns: u64) -> Vec<(usize, u64)> {
            self.reorder.on_timer(now_ns, &mut self.leaving);
            self.taken()
        }
    }

    fn shared(buffer_pkts: u32) -> Bench {
        Bench::new(Rule::Shared, buffer_pkts, 1000 * MS)
    }

    fn per_flow(buffer_pkts: u32) -> Bench {
        Bench::new(Rule::PerFlow, buffer_pkts, 1000 * MS)
    }

    #[test]
    fn shared_begins_with_the_first_number_seen() {
        let mut bench = shared(125);
        assert_eq!(bench.decoded(0, 0, 7), [(0, 7)]);
        assert_eq!(bench.decoded(0, 0, 8), [(0, 8)]);
        // Flow 1 begins elsewhere.
        assert_eq!(bench.decoded(0, 1, 3), [(1, 3)]);
    }

    #[test]
    fn shared_holds_what_is_ahead_until_the_hole_is_filled() {
        let mut bench = shared(125);
        bench.decoded(0, 0, 0);
        assert_eq!(bench.decoded(1, 0, 3), []);
        assert_eq!(bench.decoded(2, 0, 2), []);
        assert_eq!(bench.decoded(3, 0, 5), []);
        assert_eq!(bench.decoded(4, 0, 1), [(0, 1), (0, 2), (0, 3)]);
        assert_eq!(bench.decoded(5, 0, 4), [(0, 4), (0, 5)]);
    }

    #[test]
    fn shared_lets_what_is_behind_go_on_at_once() {
        let mut bench = shared(125);
        bench.decoded(0, 0, 5);
        bench.decoded(0, 0, 8);
        assert_eq!(bench.decoded(1, 0, 2), [(0, 2)]);
        // Nothing else moved.
        assert_eq!(bench.decoded(2, 0, 6), [(0, 6)]);
        assert_eq!(bench.decoded(3, 0, 7), [(0, 7), (0, 8)]);
    }

    #[test]
    fn shared_lets_both_copies_of_a_number_go_on() {
        let mut bench = shared(125);
        bench.decoded(0, 0, 0);
        bench.decoded(1, 0, 2);
        bench.decoded(2, 0, 2);
        assert_eq!(bench.decoded(3, 0, 1), [(0, 1), (0, 2), (0, 2)]);
        assert_eq!(bench.decoded(4, 0, 3), [(0, 3)]);
    }

    #[test]
    fn a_full_shared_buffer_is_emptied_of_all_flows() {
        let mut bench = shared(3);
        bench.decoded(0, 0, 0);
        bench.decoded(0, 1, 0);
        bench.decoded(1, 1, 4);
        bench.decoded(2, 0, 3);
        bench.decoded(3, 1, 2);
        assert_eq!(
            bench.decoded(4, 0, 9),
            [(0, 9), (0, 3), (1, 2), (1, 4)],
            "the one without room first"
        );
        // 10 and 5 are expected now; the packets missing below are delivered when they come.
        assert_eq!(bench.decoded(5, 0, 10), [(0, 10)]);
        assert_eq!(bench.decoded(6, 1, 5), [(1, 5)]);
        assert_eq!(bench.decoded(7, 1, 3), [(1, 3)]);
        assert_eq!(bench.decoded(8, 1, 7), []);
    }

    #[test]
    fn a_packet_given_up_empties_the_shared_buffer_whosever_it_was() {
        let mut bench = shared(125);
        for flow in 0..2 {
            bench.decoded(0, flow, 0);
            bench.decoded(1, flow, 2);
        }
        assert_eq!(bench.given_up(2, 77), [(0, 2), (1, 2)]);
        assert_eq!(bench.decoded(2, 0, 3), [(0, 3)]);
        // What was given up is still expected of a flow that had nothing behind it.
        bench.decoded(3, 2, 0);
        assert_eq!(bench.given_up(2, 1), []);
        assert_eq!(bench.decoded(4, 2, 2), []);
    }

    #[test]
    fn shared_drops_what_it_held_for_longer_than_the_timeout_at_the_next_arrival() {
        let mut bench = shared(125);
        bench.decoded(0, 0, 0);
        bench.decoded(0, 1, 0);
        bench.decoded(10 * MS, 0, 2);
        bench.decoded(20 * MS, 0, 3);
        assert_eq!(bench.reorder.deadline_ns(), None);
        // Held for just the timeout: stays.
        bench.decoded(1010 * MS, 1, 1);
        assert_eq!(bench.dropped(), []);
        bench.decoded(1010 * MS + 1, 1, 2);
        assert_eq!(bench.dropped(), [(0, 2)]);
        // The hole is filled in time for 3, but 2 is missing now.
        assert_eq!(bench.decoded(1020 * MS, 0, 1), [(0, 1)]);
        assert_eq!(bench.decoded(1020 * MS, 0, 2), [(0, 2), (0, 3)]);
        assert_eq!(bench.dropped(), []);
    }

    #[test]
    fn shared_forgets_a_flow_that_was_quiet_for_longer_than_the_timeout() {
        let mut bench = shared(125);
        bench.decoded(0, 0, 0);
        bench.decoded(10 * MS, 0, 2);
        // Quiet for just the timeout: 1 is still expected.
        assert_eq!(bench.decoded(1010 * MS, 0, 4), []);
        assert_eq!(bench.dropped(), []);
        assert_eq!(bench.decoded(2010 * MS + 1, 0, 9), [(0, 9)]);
        assert_eq!(bench.dropped(), [(0, 2), (0, 4)]);
        assert_eq!(bench.decoded(2010 * MS + 1, 0, 10), [(0, 10)]);
    }

    #[test]
    fn per_flow_begins_with_0_and_holds_until_the_hole_is_filled() {
        let mut bench = per_flow(125);
        assert_eq!(bench.decoded(0, 0, 1), []);
        assert_eq!(bench.decoded(0, 0, 3), []);
        assert_eq!(bench.decoded(0, 0, 0), [(0, 0), (0, 1)]);
        assert_eq!(bench.decoded(0, 0, 2), [(0, 2), (0, 3)]);
        assert_eq!(bench.reorder.deadline_ns(), None);
    }

    #[test]
    fn a_packet_given_up_lets_go_only_what_waits_for_it() {
        let mut bench = per_flow(125);
        for flow in 0..2 {
            bench.decoded(0, flow, 1);
            bench.decoded(0, flow, 4);
        }
        // 3 is known to be gone before it is expected.
        assert_eq!(bench.given_up(0, 3), []);
        assert_eq!(bench.given_up(0, 0), [(0, 1)]);
        assert_eq!(bench.decoded(0, 0, 2), [(0, 2), (0, 4)]);
        assert_eq!(bench.decoded(0, 1, 0), [(1, 0), (1, 1)]);
        // Given up at the head with nothing behind.
        assert_eq!(bench.given_up(0, 5), []);
        assert_eq!(bench.decoded(0, 0, 6), [(0, 6)]);
    }

    #[test]
    fn per_flow_lets_go_after_the_timeout_and_drops_nothing() {
        let mut bench = per_flow(125);
        bench.decoded(0, 0, 2);
        bench.decoded(5 * MS, 0, 4);
        bench.decoded(6 * MS, 0, 5);
        assert_eq!(bench.reorder.deadline_ns(), Some(1000 * MS));
        assert_eq!(bench.timer(999 * MS), []);
        assert_eq!(bench.timer(1000 * MS), [(0, 2)]);
        assert_eq!(bench.reorder.deadline_ns(), Some(1005 * MS));
        // 3 is still waited for, 0 and 1 are not.
        assert_eq!(bench.decoded(1001 * MS, 0, 1), [(0, 1)]);
        assert_eq!(bench.timer(1005 * MS), [(0, 4), (0, 5)]);
        assert_eq!(bench.reorder.deadline_ns(), None);
        assert_eq!(bench.decoded(1006 * MS, 0, 3), [(0, 3)]);
        assert_eq!(bench.decoded(1006 * MS, 0, 6), [(0, 6)]);
        assert_eq!(bench.dropped(), []);
    }

    #[test]
    fn a_full_buffer_of_a_flow_gives_its_lowest_hole_up() {
        let mut bench = per_flow(2);
        bench.decoded(0, 0, 2);
        bench.decoded(0, 0, 5);
        bench.decoded(0, 1, 1);
        assert_eq!(bench.decoded(1, 0, 3), [(0, 2), (0, 3)]);
        assert_eq!(bench.decoded(2, 0, 7), []);
        // What has no room can be the lowest of all.
        assert_eq!(bench.decoded(3, 0, 4), [(0, 4), (0, 5)]);
        assert_eq!(bench.decoded(4, 1, 0), [(1, 0), (1, 1)]);
        assert_eq!(bench.dropped(), []);
    }

    #[test]
    fn what_had_no_room_is_held_no_longer_than_the_timeout_either() {
        let mut bench = Bench::new(Rule::PerFlow, 2, 10 * MS);
        bench.decoded(0, 0, 2);
        bench.decoded(MS, 0, 4);
        assert_eq!(bench.decoded(2 * MS, 0, 6), [(0, 2)]);
        assert_eq!(bench.timer(11 * MS), [(0, 4)]);
        assert_eq!(bench.reorder.deadline_ns(), Some(12 * MS));
        assert_eq!(bench.timer(12 * MS), [(0, 6)]);
        assert_eq!(bench.reorder.deadline_ns(), None);
    }

    /// Whatever is decoded late or given up, per flow each packet leaves once and, with time and room enough, in order.
    #[test]
    fn per_flow_loses_nothing_and_keeps_order() {
        let mut state = 1u64;
        let mut draw = move |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let mut bench = per_flow(125);
        // (when it ends, flow, number, whether it is given up), 1 ms between packets and up to 60 ms to their ends.
        let mut ends: Vec<(u64, usize, u64, bool)> = (0..6000)
            .map(|n| {
                let end_ns = (n + 20 * draw(4)) * MS + n;
                (end_ns, n as usize % 3, n / 3, draw(50) == 0)
            })
            .collect();
        ends.sort_unstable();
        let (mut next, mut left) = ([0; 3], 0);
        for (end_ns, flow, number, given_up) in &ends {
            let gone = if *given_up {
                bench.given_up(*flow, *number)
            } else {
                bench.decoded(*end_ns, *flow, *number)
            };
            for (flow, number) in gone {
                assert!(number >= next[flow]);
                next[flow] = number + 1;
                left += 1;
            }
        }
        let lost = ends.iter().filter(|end| end.3).count();
        assert_eq!(left, ends.len() - lost);
        assert_eq!(bench.reorder.deadline_ns(), None);
    }
}
