// SPDX-License-Identifier: BSD-3-Clause
//! The packets of a class whose flows are isolated from each other, or whose L4S packets are told apart from classic ones.
//!
//! A policy of the core schedules the flows below the policy of the classes, as a hub's peers are scheduled below the policy
//! across peers. It sees [`FLOW_QUEUES`] queues, of which a flow has the one that its number gives, or two: one for classic and
//! one for L4S packets. The policy of the classes sees one queue, whose head is the packet that the policy of the flows picks next.
//!
//! That policy is asked when the link is free ([`FlowQueues::look`]), not after each event. This matters: a connection's next
//! packet often comes while its last one is on the link. If FQ-CoDel were asked before, it would find the connection's queue
//! empty, forget it, and take it for a new flow a moment later, which goes before others.
//!
//! Packets are kept in one pool, so that the memory is bounded by the class's limits however many flows there were.

use crate::core_policy::CorePolicy;
use crate::ffi::Queue;
use crate::info::{policy, PolicyInfo, MIN_RATE_BPS};
use crate::policy::{Pick, Policy, Verdict, View};
use crate::waiting::Waiting;

/// Queues of a class whose flows are isolated, as many as Linux's `fq_codel` has by default. Flows whose numbers have the
/// same remainder share a queue.
pub const FLOW_QUEUES: usize = 1024;

/// How the flows of a class are isolated from each other: the policy that schedules them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Flow queues with controlled delay, new flows first (RFC 8290).
    FqCodel,
    /// Deficit round robin.
    Drr,
    /// Two queues with coupled queue management (RFC 9332), for L4S packets and classic ones. It uses
    /// waiting times only, so the class may have any share of a link.
    DualPi2 {
        /// How long an L4S packet may wait unmarked, ns; none: as long as by default.
        step_ns: Option<u64>,
    },
}

impl Isolation {
    /// All of them, with default parameters.
    pub const ALL: [Isolation; 3] = [
        Isolation::FqCodel,
        Isolation::Drr,
        Isolation::DualPi2 { step_ns: None },
    ];

    /// Name of the policy.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Isolation::FqCodel => "fq_codel",
            Isolation::Drr => "drr",
            Isolation::DualPi2 { .. } => "dualpi2",
        }
    }

    /// Whether a packet's queue is chosen by its ECN codepoint. Its number is then 1 with ECT(1) or CE, and 0 without.
    #[must_use]
    pub const fn sorts_by_ecn(self) -> bool {
        matches!(self, Isolation::DualPi2 { .. })
    }

    /// Queues of a class, a power of two.
    const fn queues(self) -> usize {
        if self.sorts_by_ecn() {
            2
        } else {
            FLOW_QUEUES
        }
    }

    /// The policy of the core.
    ///
    /// # Panics
    /// When the core was built without it.
    #[must_use]
    pub fn info(self) -> &'static PolicyInfo {
        policy(self.name()).expect("the core has the policy")
    }

    /// Its parameters in the class of this number: the defaults where none are given, but without limits of its own, because the
    /// class has limits. Each class has a seed of its own: with the same one, two would draw the same numbers.
    fn params(self, class: usize) -> Vec<u64> {
        let table = self.info().params.iter();
        let values = table.map(|param| match (self, param.name) {
            (_, "limit" | "memory") => param.max,
            (_, "seed") => param.default + class as u64,
            (Isolation::DualPi2 { step_ns: Some(ns) }, "step") => ns,
            _ => param.default,
        });
        values.collect()
    }

    /// The parameters of its queues: the defaults, but the second of two queues is that of L4S packets.
    fn qparams(self) -> Vec<u64> {
        let info = self.info();
        let mut values = info.default_qparams(self.queues());
        if self.sorts_by_ecn() {
            let l4s = info.qparam("l4s").expect("the policy sorts by ECN");
            values[info.qparams.len() + l4s] = 1;
        }
        values
    }
}

/// Which packet of a class is taken out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// The one that would go next.
    Head,
    /// The one that has waited for longest.
    Oldest,
    /// The one that came last.
    Newest,
    /// The oldest of this flow's queue.
    OldestOf(usize),
    /// The newest of this flow's queue.
    NewestOf(usize),
}

const NONE: u32 = u32::MAX;

/// Both ends of a list of packets, or the neighbours of a packet in one; [`NONE`] where there is nothing.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

impl Ends {
    const EMPTY: Ends = Ends {
        first: NONE,
        last: NONE,
    };
}

#[derive(Debug)]
struct Slot<T> {
    /// None while the place is free.
    waiting: Option<Waiting<T>>,
    flow: u32,
    /// The packets before and after it in its list of each kind; of a free place, `last` of the first is the next free one.
    beside: [Ends; LISTS],
}

/// A packet is in two lists: that of its flow and that of the class, both in order of arrival.
const LISTS: usize = 2;
const OF_FLOW: usize = 0;
const OF_CLASS: usize = 1;

/// The packets that wait in one class, by flow.
#[derive(Debug)]
pub(crate) struct FlowQueues<T> {
    isolation: Isolation,
    policy: CorePolicy,
    queues: Vec<Queue>,
    of_flow: Vec<Ends>,
    of_class: Ends,
    pool: Vec<Slot<T>>,
    free: u32,
    /// The packet that goes next, as of the last look. If it has left or was dropped since, the oldest packet.
    head: u32,
    /// Whether there was no event since the last look.
    looked: bool,
    /// Bit `q % 64` of word `q / 64`: queue `q` has packets.
    busy: [u64; FLOW_QUEUES / 64],
}

impl<T> FlowQueues<T> {
    /// Empty queues of the class of this number.
    pub(crate) fn new(now_ns: u64, isolation: Isolation, class: usize) -> FlowQueues<T> {
        // The rates are constant: a blocked class is not asked for packets at all. That time counts as waiting: in DualPI2 a
        // packet waits from its arrival on, whatever holds it up (`timestamp` in RFC 9332, appendix A.1, and `ts` in Linux).
        let queue = Queue {
            rate_bps: MIN_RATE_BPS,
            ..Queue::default()
        };
        let queues = vec![queue; isolation.queues()];
        let policy = CorePolicy::new(
            isolation.info(),
            &view(now_ns, &queues),
            &isolation.params(class),
            &isolation.qparams(),
        )
        .expect("a policy accepts its defaults");
        FlowQueues {
            isolation,
            policy,
            of_flow: vec![Ends::EMPTY; queues.len()],
            queues,
            of_class: Ends::EMPTY,
            pool: Vec::new(),
            free: NONE,
            head: NONE,
            looked: true,
            busy: [0; FLOW_QUEUES / 64],
        }
    }

    /// The queue of the flow of this number.
    fn queue_of(&self, flow: u32) -> usize {
        flow as usize & (self.queues.len() - 1)
    }

    /// The packet that goes next. It may be another one after the next look.
    pub(crate) fn head(&self) -> Option<&Waiting<T>> {
        self.at(self.head)
    }

    /// The packet that has waited for longest.
    pub(crate) fn oldest(&self) -> Option<&Waiting<T>> {
        self.at(self.of_class.first)
    }

    fn at(&self, place: u32) -> Option<&Waiting<T>> {
        self.pool.get(place as usize)?.waiting.as_ref()
    }

    /// A packet of the flow of this number arrives.
    pub(crate) fn push(&mut self, flow: u32, waiting: Waiting<T>) {
        let (now_ns, bytes) = (waiting.arrival_ns, waiting.bytes);
        let at = self.queue_of(flow);
        let place = self.keep(at, waiting);
        self.append(OF_FLOW, at, place);
        self.append(OF_CLASS, at, place);
        self.busy[at / 64] |= 1 << (at % 64);
        self.queues[at].backlog_pkts += 1;
        self.queues[at].backlog_bytes += u64::from(bytes);
        self.refresh(at);
        self.policy.enqueued(&view(now_ns, &self.queues), at, bytes);
        if self.head == NONE {
            self.head = place;
        }
    }

    /// The verdict of the flows' policy on the packet that goes next.
    pub(crate) fn verdict(&mut self, now_ns: u64, ecn: bool) -> Verdict {
        let Some(head) = self.pool.get(self.head as usize) else {
            return Verdict::Pass;
        };
        let at = head.flow as usize;
        self.policy.leaving(&view(now_ns, &self.queues), at, ecn)
    }

    /// Takes out the packet that goes next, which is sent.
    pub(crate) fn send(&mut self, now_ns: u64) -> Option<Waiting<T>> {
        let (at, waiting) = self.take(self.head)?;
        let view = view(now_ns, &self.queues);
        self.policy.sent(&view, at, waiting.bytes);
        Some(waiting)
    }

    /// Takes out a packet, which is dropped.
    pub(crate) fn drop_one(&mut self, now_ns: u64, end: End) -> Option<Waiting<T>> {
        let place = match end {
            End::Head => self.head,
            End::Oldest => self.of_class.first,
            End::Newest => self.of_class.last,
            End::OldestOf(queue) => self.of_flow[queue].first,
            End::NewestOf(queue) => self.of_flow[queue].last,
        };
        let (at, waiting) = self.take(place)?;
        let view = view(now_ns, &self.queues);
        self.policy.dropped(&view, at, waiting.bytes);
        Some(waiting)
    }

    /// Which packet of the full class makes room for one of this flow, an old one or a new one; none: that one is refused. It is
    /// one of the flow that would have the most bytes. L4S and classic packets share one buffer, as in Linux, so neither kind is.
    pub(crate) fn gives_way(&self, oldest: bool, flow: u32, bytes: u32) -> Option<End> {
        if self.isolation.sorts_by_ecn() {
            return oldest.then_some(End::Oldest);
        }
        let coming = self.queue_of(flow);
        let longest = self.longest(coming, bytes);
        if oldest {
            return self.is_busy(longest).then_some(End::OldestOf(longest));
        }
        (longest != coming).then_some(End::NewestOf(longest))
    }

    /// The queue with the most bytes, those of a packet that comes to `coming` counted; of several `coming`, or the first.
    fn longest(&self, coming: usize, bytes: u32) -> usize {
        let mut longest = (self.queues[coming].backlog_bytes + u64::from(bytes), coming);
        for (word, bits) in self.busy.iter().enumerate() {
            let mut left = *bits;
            while left != 0 {
                let at = word * 64 + left.trailing_zeros() as usize;
                let backlog_bytes = self.queues[at].backlog_bytes;
                if backlog_bytes > longest.0 {
                    longest = (backlog_bytes, at);
                }
                left &= left - 1;
            }
        }
        longest.1
    }

    /// Whether a queue has packets.
    fn is_busy(&self, queue: usize) -> bool {
        self.queues[queue].backlog_pkts > 0
    }

    /// Notes an event; returns whether it is the first since the last look.
    pub(crate) fn touch(&mut self) -> bool {
        std::mem::replace(&mut self.looked, false)
    }

    /// Asks the policy which packet goes next.
    pub(crate) fn look(&mut self, now_ns: u64) {
        self.looked = true;
        self.head = match self.policy.pick(&view(now_ns, &self.queues)) {
            Pick::Queue(at) => self.of_flow[at].first,
            Pick::Nothing { .. } => NONE,
        };
        debug_assert_eq!(self.head == NONE, self.of_class.first == NONE);
    }

    /// Takes out the packet at a place; also returns its queue. The view shows the queue without it.
    fn take(&mut self, place: u32) -> Option<(usize, Waiting<T>)> {
        let taken = self.pool.get_mut(place as usize)?;
        let (waiting, at) = (taken.waiting.take()?, taken.flow as usize);
        self.unlink(OF_FLOW, at, place);
        self.unlink(OF_CLASS, at, place);
        self.pool[place as usize].beside[OF_FLOW].last = self.free;
        self.free = place;
        let queue = &mut self.queues[at];
        queue.backlog_pkts -= 1;
        queue.backlog_bytes -= u64::from(waiting.bytes);
        if queue.backlog_pkts == 0 {
            self.busy[at / 64] &= !(1 << (at % 64));
        }
        self.refresh(at);
        if place == self.head {
            self.head = self.of_class.first;
        }
        Some((at, waiting))
    }

    /// Shows the policy the head of a queue.
    fn refresh(&mut self, at: usize) {
        let head = self.of_flow[at].first;
        if let Some(Slot {
            waiting: Some(head),
            ..
        }) = self.pool.get(head as usize)
        {
            self.queues[at].head_bytes = head.bytes;
            self.queues[at].head_arrival_ns = head.arrival_ns;
        }
    }

    /// Puts a packet into the pool, in no list yet.
    fn keep(&mut self, at: usize, waiting: Waiting<T>) -> u32 {
        let kept = Slot {
            waiting: Some(waiting),
            flow: at as u32,
            beside: [Ends::EMPTY; LISTS],
        };
        let place = self.free;
        if let Some(free) = self.pool.get_mut(place as usize) {
            self.free = free.beside[OF_FLOW].last;
            *free = kept;
            return place;
        }
        self.pool.push(kept);
        self.pool.len() as u32 - 1
    }

    fn ends(&mut self, list: usize, at: usize) -> &mut Ends {
        if list == OF_FLOW {
            &mut self.of_flow[at]
        } else {
            &mut self.of_class
        }
    }

    fn append(&mut self, list: usize, at: usize, place: u32) {
        let ends = self.ends(list, at);
        let before = std::mem::replace(&mut ends.last, place);
        if before == NONE {
            ends.first = place;
        } else {
            self.pool[before as usize].beside[list].last = place;
        }
        self.pool[place as usize].beside[list].first = before;
    }

    fn unlink(&mut self, list: usize, at: usize, place: u32) {
        let Ends {
            first: before,
            last: after,
        } = self.pool[place as usize].beside[list];
        if before == NONE {
            self.ends(list, at).first = after;
        } else {
            self.pool[before as usize].beside[list].last = after;
        }
        if after == NONE {
            self.ends(list, at).last = before;
        } else {
            self.pool[after as usize].beside[list].first = before;
        }
    }
}

fn view(now_ns: u64, queues: &[Queue]) -> View<'_> {
    View {
        now_ns,
        link_bps: MIN_RATE_BPS,
        queues,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_holds_no_more_than_waited_at_once() {
        let mut flows = FlowQueues::new(0, Isolation::FqCodel, 0);
        for number in 0..100_000 {
            flows.push(
                number,
                Waiting {
                    arrival_ns: u64::from(number),
                    bytes: 100,
                    pkts: 1,
                    item: (),
                },
            );
            if number >= 50 {
                let end = [End::Head, End::Oldest, End::Newest][number as usize % 3];
                assert!(flows.drop_one(u64::from(number), end).is_some());
            }
        }
        assert_eq!(flows.pool.len(), 51);
        let left = std::iter::from_fn(|| flows.send(100_000));
        assert_eq!(left.count(), 50);
        assert!(flows.head().is_none() && flows.oldest().is_none());
    }
}
