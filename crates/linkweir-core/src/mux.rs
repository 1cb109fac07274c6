// SPDX-License-Identifier: BSD-3-Clause
//! Packet queues around a policy: one FIFO per class, or one per flow of a class ([`Mux::isolate`]), limits, the arrival and
//! departure protocol, counters.
//!
//! There is no input or output and no clock: callers pass the time. They also choose what a packet is (`T`); the queues
//! know only its class and its accounted length.
//!
//! ```
//! use linkweir_core::{policy, CorePolicy, Limit, Mux};
//!
//! let strict = policy("strict").unwrap();
//! let limits = [Limit { pkts: Some(100), ..Limit::NONE }; 3];
//! let mut mux = Mux::new(0, 20_000_000, &limits, |view| {
//!     CorePolicy::new(strict, view, &strict.default_params(), &strict.default_qparams(3))
//! })
//! .unwrap();
//! for (class, packet) in [(2, "rest"), (1, "assured"), (0, "urgent")] {
//!     mux.enqueue(1_000, class, 1500, packet, |_, class, reason| println!("{class}: {reason:?}"));
//! }
//! let next = mux.dequeue(2_000, |_| false, |_, class, reason| println!("{class}: {reason:?}")).unwrap();
//! assert_eq!((next.class, next.item, next.sojourn_ns), (0, "urgent", 1_000));
//! ```

use std::collections::VecDeque;

use crate::core_policy::{Adjust, Fault};
use crate::distribution::Distribution;
use crate::ffi::Queue;
use crate::flows::{End, FlowQueues, Isolation};
use crate::info::{MAX_PACKET_BYTES, MOST_DROPS};
use crate::policy::{Pick, Policy, Verdict, View};
use crate::waiting::Waiting;

/// Most a class may hold, for how long, and what is dropped where there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Packets.
    pub pkts: Option<u32>,
    /// Accounted bytes.
    pub bytes: Option<u64>,
    /// Accounted bytes, by the time in which the link carries them.
    pub time: Option<TimeLimit>,
    /// How long a packet may wait, ns: one that has waited longer is dropped.
    pub max_age_ns: Option<u64>,
    /// What is dropped where there is no room.
    pub full: Full,
    /// Least share of what leaves while packets of the class wait, millionths; 0: what the policy gives it. Once the class
    /// is owed its next packet, that goes before the policy is asked, whatever else waits.
    pub least_ppm: u32,
}

impl Limit {
    /// No limit.
    pub const NONE: Limit = Limit {
        pkts: None,
        bytes: None,
        time: None,
        max_age_ns: None,
        full: Full::Tail,
        least_ppm: 0,
    };
}

/// As many bytes as the link carries in a time, at the capacity reported to the scheduler. Where classes have channels of
/// their own ([`Mux::set_rate`]), the rate is that of the class's channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// The time, ns.
    pub ns: u64,
    /// The limit is never below these bytes, however low the capacity is.
    pub least_bytes: u64,
}

/// What a class drops when it has no room for a packet that comes. Where flows are isolated, it is a packet of the flow that
/// would have the most bytes, unless the class sorts by ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Full {
    /// The packet that comes, or the newest of another flow.
    #[default]
    Tail,
    /// Its oldest packets, until the new one has room.
    Head,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The limit of its class refused it on arrival.
    Limit,
    /// It was the oldest of its class, whose limit had no room for a newer one ([`Full::Head`]). Or it made room for another
    /// flow's packet.
    Head,
    /// It had waited longer than its class lets it ([`Limit::max_age_ns`]).
    Age,
    /// The policy named its class as victim, or dropped it because it had waited too long.
    Policy,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its class.
    pub class: usize,
    /// A number of its flow, or a hash; it counts only where the flows of the class are isolated ([`Mux::isolate`]). Where the
    /// class [sorts by ECN](Isolation::sorts_by_ecn): 1 for a packet with ECT(1) or CE, 0 for any other.
    pub flow: u32,
    /// Its accounted length.
    pub bytes: u32,
    /// Packets in it: more than one in a train.
    pub pkts: u32,
}

/// A packet that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<T> {
    /// Its class.
    pub class: usize,
    /// The packet.
    pub item: T,
    /// Its accounted length.
    pub bytes: u32,
    /// How long it waited, ns.
    pub sojourn_ns: u64,
    /// Whether it must carry a congestion mark.
    pub marked: bool,
}

/// The outcome of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// It leaves.
    Leaves(Departure<T>),
    /// It was dropped.
    Dropped {
        /// Its class.
        class: usize,
        /// The packet.
        item: T,
        /// Its accounted length.
        bytes: u32,
        /// Why.
        reason: DropReason,
    },
}

/// Counters of a class since the start or the last reset.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Packets that came, dropped ones included.
    pub arrived_pkts: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Packets that left.
    pub sent_pkts: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets dropped by the limit: refused, or the oldest to make room.
    pub dropped_limit_pkts: u64,
    /// Their bytes.
    pub dropped_limit_bytes: u64,
    /// Packets that had waited too long.
    pub dropped_age_pkts: u64,
    /// Their bytes.
    pub dropped_age_bytes: u64,
    /// Packets the policy dropped.
    pub dropped_policy_pkts: u64,
    /// Their bytes.
    pub dropped_policy_bytes: u64,
    /// Waiting times of the packets that left; empty where they are not measured ([`Mux::unmeasured`]).
    pub sojourn_ns: Distribution,
}

impl Counters {
    fn new() -> Counters {
        Counters {
            arrived_pkts: 0,
            arrived_bytes: 0,
            sent_pkts: 0,
            sent_bytes: 0,
            dropped_limit_pkts: 0,
            dropped_limit_bytes: 0,
            dropped_age_pkts: 0,
            dropped_age_bytes: 0,
            dropped_policy_pkts: 0,
            dropped_policy_bytes: 0,
            sojourn_ns: Distribution::default(),
        }
    }

    fn reset(&mut self) {
        let mut sojourn_ns = std::mem::take(&mut self.sojourn_ns);
        sojourn_ns.reset();
        *self = Counters {
            sojourn_ns,
            ..Counters::new()
        };
    }
}

/// Queues of items `T` scheduled by `P`.
#[derive(Debug)]
pub struct Mux<P, T> {
    policy: P,
    scene: Scene,
    classes: Vec<Class<T>>,
    retry_ns: Option<u64>,
    /// No packet is too old before this time, ns; [`NEVER`] where no class has a bound. It is looked for when this time has
    /// come, not on each packet.
    aged_ns: u64,
    /// Classes whose flows are isolated, with events since the policy of their flows was asked which packet goes next.
    unlooked: Vec<usize>,
    /// Whether a class has a least share.
    assured: bool,
    /// Whether a class has a limit by time.
    timed: bool,
    /// Whether classes have channels of their own.
    channels: bool,
    /// Whether waiting times are counted.
    measured: bool,
    /// Which classes are withheld from departures, if any was ever ([`Mux::allow`]).
    withheld: Option<Box<Withheld>>,
}

/// Classes that may not leave at present, although packets of theirs wait.
#[derive(Debug)]
struct Withheld {
    /// Of each class.
    classes: Vec<bool>,
    /// The rate of each class's channel, which the policy sees as 0 while the class is withheld.
    rates_bps: Vec<u64>,
}

const NEVER: u64 = u64::MAX;
const MILLION: u64 = 1_000_000;

/// The view for the policy.
#[derive(Debug)]
struct Scene {
    queues: Vec<Queue>,
    now_ns: u64,
    link_bps: u64,
}

impl Scene {
    #[inline]
    fn view(&self) -> View<'_> {
        View {
            now_ns: self.now_ns,
            link_bps: self.link_bps,
            queues: &self.queues,
        }
    }
}

#[derive(Debug)]
struct Class<T> {
    /// Its packets. If its flows are isolated, a packet is here only while it is handed over to `flows` or from there, so
    /// that the code for other classes stays as short as it is without flows.
    waiting: VecDeque<Waiting<T>>,
    /// How its flows are isolated, if they are.
    isolation: Option<Isolation>,
    /// Its packets if its flows are isolated; those of many queues are made for the first packet, so that a class without any
    /// takes no memory.
    flows: Option<Box<FlowQueues<T>>>,
    /// Packets that wait, each of a train counted.
    waiting_pkts: u32,
    limit: Limit,
    /// Most bytes now, by the limits in bytes and by time.
    most_bytes: u64,
    /// What the class is owed of its least share, millionths of a byte.
    owed: u64,
    counters: Counters,
}

impl<T> Class<T> {
    /// Sets the most bytes for a link or channel of this rate.
    fn limit_at(&mut self, bps: u64) {
        let by_time = self.limit.time.map_or(u64::MAX, |time| {
            let bytes = u128::from(bps) * u128::from(time.ns) / 8_000_000_000;
            u64::try_from(bytes)
                .unwrap_or(u64::MAX)
                .max(time.least_bytes)
        });
        self.most_bytes = self.limit.bytes.unwrap_or(u64::MAX).min(by_time);
    }

    /// The packet that goes next.
    fn head(&self) -> Option<&Waiting<T>> {
        match &self.flows {
            None => self.waiting.front(),
            Some(flows) => flows.head(),
        }
    }

    /// Whether the class, where it is full, may drop a packet that waits for one that comes.
    #[inline]
    fn gives_way(&self) -> bool {
        self.limit.full == Full::Head || self.isolation.is_some()
    }

    /// Which packet of the full class makes room for one that comes; none: that one is refused.
    fn end_that_gives_way(&self, flow: u32, bytes: u32) -> Option<End> {
        let Some(flows) = &self.flows else {
            return (self.limit.full == Full::Head).then_some(End::Head);
        };
        flows.gives_way(self.limit.full == Full::Head, flow, bytes)
    }

    /// When the packet that has waited for longest arrived, ns.
    fn oldest_ns(&self) -> Option<u64> {
        let oldest = match &self.flows {
            None => self.waiting.front(),
            Some(flows) => flows.oldest(),
        };
        oldest.map(|oldest| oldest.arrival_ns)
    }
}

impl<P: Policy, T> Mux<P, T> {
    /// Empty queues, one per limit, for a link whose capacity is reported to the scheduler as `link_bps`; `start` makes
    /// the policy from the first view.
    ///
    /// # Errors
    /// Those of `start`.
    pub fn new<E>(
        now_ns: u64,
        link_bps: u64,
        limits: &[Limit],
        start: impl FnOnce(&View<'_>) -> Result<P, E>,
    ) -> Result<Mux<P, T>, E> {
        let queue = Queue {
            rate_bps: link_bps,
            ..Queue::default()
        };
        let scene = Scene {
            queues: vec![queue; limits.len()],
            now_ns,
            link_bps,
        };
        let policy = start(&scene.view())?;
        let classes = limits
            .iter()
            .map(|&limit| Class {
                waiting: VecDeque::new(),
                isolation: None,
                flows: None,
                waiting_pkts: 0,
                limit,
                most_bytes: u64::MAX,
                owed: 0,
                counters: Counters::new(),
            })
            .collect();
        let mut mux = Mux {
            policy,
            scene,
            classes,
            retry_ns: None,
            aged_ns: NEVER,
            unlooked: Vec::new(),
            assured: false,
            timed: false,
            channels: false,
            measured: true,
            withheld: None,
        };
        mux.limits_changed();
        Ok(mux)
    }

    /// Counts no waiting times from now on; each departure still has its own.
    #[must_use]
    pub fn unmeasured(mut self) -> Mux<P, T> {
        self.measured = false;
        self
    }

    /// Isolates the flows of a class from each other. Its packets wait in [`FLOW_QUEUES`](crate::FLOW_QUEUES) queues then, or in
    /// two, by the number of their flow, which a policy of the core schedules; the policy of the classes sees one queue, whose head
    /// is the packet that goes next. That policy must be one that [nests](crate::PolicyInfo::nests).
    ///
    /// # Panics
    /// When packets of the class wait.
    pub fn isolate(&mut self, class: usize, isolation: Option<Isolation>) {
        self.unlooked.retain(|unlooked| *unlooked != class);
        let now_ns = self.scene.now_ns;
        // Two queues take little memory, and their controller counts time from the same start as a policy of its own does.
        let small = isolation.filter(|isolation| isolation.sorts_by_ecn());
        let small = small.map(|isolation| Box::new(FlowQueues::new(now_ns, isolation, class)));
        let class = &mut self.classes[class];
        assert_eq!(class.waiting_pkts, 0, "packets of the class wait");
        class.isolation = isolation;
        class.flows = small;
    }

    /// Takes a packet that arrives. Every packet dropped because of it, this one or another, goes to `dropped` with its
    /// class and the reason. These are at most [`MOST_DROPS`] packets that are too old, as many expired ones, as many that
    /// make room at the head, and as many victims; later arrivals drop the rest.
    ///
    /// # Panics
    /// When there is no such class, or `bytes` is [`MAX_PACKET_BYTES`] or more.
    #[inline]
    pub fn enqueue(
        &mut self,
        now_ns: u64,
        class: usize,
        bytes: u32,
        item: T,
        dropped: impl FnMut(T, usize, DropReason),
    ) {
        let arrival = Arrival {
            class,
            flow: 0,
            bytes,
            pkts: 1,
        };
        self.arrive(now_ns, arrival, item, dropped);
    }

    /// As [`Mux::enqueue`], also for a packet of a flow, and for a train: one item that holds several packets, `bytes` long
    /// together. Limits and counters count each of them; the policy schedules them as one.
    ///
    /// # Panics
    /// As [`Mux::enqueue`], and when it holds no packets.
    #[inline]
    pub fn arrive(
        &mut self,
        now_ns: u64,
        arrival: Arrival,
        item: T,
        mut dropped: impl FnMut(T, usize, DropReason),
    ) {
        let Arrival {
            class,
            flow,
            bytes,
            pkts,
        } = arrival;
        assert!(
            bytes < MAX_PACKET_BYTES,
            "a packet of {bytes} bytes is too long to be scheduled"
        );
        assert!(pkts > 0, "a train has at least one packet");
        self.drop_aged(now_ns, MOST_DROPS, &mut dropped);
        let mut room = self.has_room_for(class, pkts, bytes);
        // `expired` is asked only while the class's own limit refuses the packet. One arrival drops at most MOST_DROPS here
        // and as many after `enqueued`, so its time is bounded however far a limit was lowered.
        for _ in 0..MOST_DROPS {
            if room
                || self.scene.queues[class].backlog_pkts == 0
                || !self.policy.expired(&self.scene.view(), class)
            {
                break;
            }
            let Some(item) = self.drop_one(class, DropReason::Policy, End::Head) else {
                break;
            };
            dropped(item, class, DropReason::Policy);
            room = self.has_room_for(class, pkts, bytes);
        }
        if !room && self.classes[class].gives_way() {
            room = self.make_room((class, flow), pkts, bytes, &mut dropped);
        }
        let counters = &mut self.classes[class].counters;
        counters.arrived_pkts += u64::from(pkts);
        counters.arrived_bytes += u64::from(bytes);
        if !room {
            counters.dropped_limit_pkts += u64::from(pkts);
            counters.dropped_limit_bytes += u64::from(bytes);
            dropped(item, class, DropReason::Limit);
            return;
        }
        let queue = &mut self.scene.queues[class];
        if queue.backlog_pkts == 0 {
            queue.head_arrival_ns = self.scene.now_ns;
            queue.head_bytes = bytes;
            if let Some(most_ns) = self.classes[class].limit.max_age_ns {
                self.aged_ns = self.aged_ns.min(aged_at(self.scene.now_ns, most_ns));
            }
        }
        queue.backlog_pkts += 1;
        queue.backlog_bytes += u64::from(bytes);
        let waiting = Waiting {
            arrival_ns: self.scene.now_ns,
            bytes,
            pkts,
            item,
        };
        let to = &mut self.classes[class];
        to.waiting_pkts += pkts;
        to.waiting.push_back(waiting);
        if to.isolation.is_some() {
            self.hand_over(class, flow);
        }

        // The packet is at the tail when the policy names victims, so it may be the victim itself. What is above a limit after
        // MOST_DROPS is dropped by later arrivals.
        self.policy.enqueued(&self.scene.view(), class, bytes);
        for _ in 0..MOST_DROPS {
            let Some(victim) = self.policy.victim(&self.scene.view(), class, bytes) else {
                break;
            };
            let end = if victim.head { End::Head } else { End::Newest };
            let Some(item) = self.drop_one(victim.queue, DropReason::Policy, end) else {
                debug_assert!(false, "the policy named an empty queue as victim");
                break;
            };
            dropped(item, victim.queue, DropReason::Policy);
        }
    }

    /// The packet that goes next, or none when there is nothing to send now. `ecn` says which packets can carry a
    /// congestion mark. Packets that are too old or that the policy drops go to `dropped`, with class and reason. Their number has no
    /// bound; a caller that needs one uses [`Mux::step`].
    #[inline]
    pub fn dequeue(
        &mut self,
        now_ns: u64,
        ecn: impl Fn(&T) -> bool,
        mut dropped: impl FnMut(T, usize, DropReason),
    ) -> Option<Departure<T>> {
        loop {
            match self.step(now_ns, &ecn)? {
                Step::Leaves(departure) => return Some(departure),
                Step::Dropped {
                    class,
                    item,
                    reason,
                    ..
                } => dropped(item, class, reason),
            }
        }
    }

    /// As [`Mux::dequeue`], but a drop ends the step, too. A caller that serves several [`Mux`]es can then choose among
    /// them again.
    #[inline]
    pub fn step(&mut self, now_ns: u64, ecn: impl Fn(&T) -> bool) -> Option<Step<T>> {
        self.clock(now_ns);
        if self.aged_ns <= self.scene.now_ns {
            let mut aged = None;
            self.look_for_aged(1, |item, class, bytes| {
                let reason = DropReason::Age;
                aged = Some(Step::Dropped {
                    class,
                    item,
                    bytes,
                    reason,
                });
            });
            if aged.is_some() {
                return aged;
            }
        }
        let (class, picked) = self.choose(now_ns)?;
        let isolated = self.classes[class].flows.is_some();
        let ecn = if isolated {
            self.head(class).is_some_and(ecn)
        } else {
            let head = self.classes[class].waiting.front();
            head.is_some_and(|head| ecn(&head.item))
        };
        // Asked once for each departure, while the head is still in the view: a policy counts its judgements. What it did
        // not pick it does not judge.
        let mut verdict = if picked {
            self.policy.leaving(&self.scene.view(), class, ecn)
        } else {
            Verdict::Pass
        };
        if isolated && verdict != Verdict::Drop {
            // The policy of the flows has picked the head in any case.
            let own = self.hand_back(class, ecn);
            verdict = if own == Verdict::Pass { verdict } else { own };
        }
        let marked = match verdict {
            Verdict::Pass => false,
            Verdict::Mark => true,
            Verdict::Drop => return self.drop_head(now_ns, class),
        };
        let Class {
            waiting,
            waiting_pkts,
            counters,
            ..
        } = &mut self.classes[class];
        let Some(Waiting {
            arrival_ns,
            bytes,
            pkts,
            item,
        }) = waiting.pop_front()
        else {
            debug_assert!(false, "the policy picked an empty queue");
            return None;
        };
        let sojourn_ns = self.scene.now_ns - arrival_ns;
        *waiting_pkts -= pkts;
        counters.sent_pkts += u64::from(pkts);
        counters.sent_bytes += u64::from(bytes);
        if self.measured {
            counters.sojourn_ns.record_n(sojourn_ns, pkts.into());
        }
        let queue = &mut self.scene.queues[class];
        queue.backlog_pkts -= 1;
        queue.backlog_bytes -= u64::from(bytes);
        if let Some(head) = waiting.front() {
            queue.head_arrival_ns = head.arrival_ns;
            queue.head_bytes = head.bytes;
        }
        if self.assured {
            self.pay_shares(class, bytes);
        }
        // `sent` comes after the view shows the queue without the packet.
        self.policy.sent(&self.scene.view(), class, bytes);
        Some(Step::Leaves(Departure {
            class,
            item,
            bytes,
            sojourn_ns,
            marked,
        }))
    }

    /// The class that would go next, if any. Nothing is taken out, but [`Mux::retry_ns`] is set.
    #[inline]
    pub fn next_class(&mut self, now_ns: u64) -> Option<usize> {
        self.choose(now_ns).map(|(class, _)| class)
    }

    /// The class that goes next, and whether the policy picked it.
    #[inline]
    fn choose(&mut self, now_ns: u64) -> Option<(usize, bool)> {
        self.clock(now_ns);
        if !self.unlooked.is_empty() {
            self.look();
        }
        self.choose_as_shown()
    }

    /// As [`Mux::next_class`], but the head of a class whose flows are isolated is the one that it had when its policy was last
    /// asked, or the oldest packet. So the answer may change, and the flows' policy is not asked before the link is free.
    pub fn next_class_so_far(&mut self, now_ns: u64) -> Option<usize> {
        self.clock(now_ns);
        self.choose_as_shown().map(|(class, _)| class)
    }

    #[inline]
    fn choose_as_shown(&mut self) -> Option<(usize, bool)> {
        if self.assured {
            if let Some(class) = self.owed_class() {
                self.retry_ns = None;
                return Some((class, false));
            }
        }
        match self.policy.pick(&self.scene.view()) {
            Pick::Queue(class) => {
                self.retry_ns = None;
                Some((class, true))
            }
            Pick::Nothing { retry_ns } => {
                self.retry_ns = retry_ns;
                None
            }
        }
    }

    /// Hands a packet that has arrived over to its flow.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self, class: usize, flow: u32) {
        let Class {
            waiting,
            isolation: Some(isolation),
            flows,
            ..
        } = &mut self.classes[class]
        else {
            return;
        };
        let Some(packet) = waiting.pop_back() else {
            return;
        };
        flows
            .get_or_insert_with(|| Box::new(FlowQueues::new(packet.arrival_ns, *isolation, class)))
            .push(flow, packet);
        self.touch(class);
    }

    /// Asks the policy of a class's flows for its verdict on the packet that goes next. Unless it is dropped, it is handed back
    /// to be sent, and the next one is the head.
    #[cold]
    #[inline(never)]
    fn hand_back(&mut self, class: usize, ecn: bool) -> Verdict {
        let now_ns = self.scene.now_ns;
        let Class { waiting, flows, .. } = &mut self.classes[class];
        let Some(flows) = flows else {
            return Verdict::Pass;
        };
        let verdict = flows.verdict(now_ns, ecn);
        if verdict != Verdict::Drop {
            waiting.extend(flows.send(now_ns));
            self.touch(class);
        }
        verdict
    }

    /// Takes a packet out of the flows of a class, to be dropped.
    #[cold]
    #[inline(never)]
    fn hand_back_dropped(&mut self, class: usize, end: End) {
        let Class { waiting, flows, .. } = &mut self.classes[class];
        if let Some(flows) = flows {
            waiting.extend(flows.drop_one(self.scene.now_ns, end));
            self.touch(class);
        }
    }

    /// Notes that the flows of a class have changed, and shows the policy its head.
    fn touch(&mut self, class: usize) {
        if let Some(flows) = &mut self.classes[class].flows {
            if flows.touch() {
                self.unlooked.push(class);
            }
            self.show_head(class);
        }
    }

    /// Asks the policies of flows which packets go next, and shows these as heads. As they are others without an event of
    /// the class, the policy of the classes learns of them from `rated`.
    #[cold]
    fn look(&mut self) {
        let mut changed = false;
        for at in 0..self.unlooked.len() {
            let class = self.unlooked[at];
            let Some(flows) = &mut self.classes[class].flows else {
                continue;
            };
            flows.look(self.scene.now_ns);
            let queue = &self.scene.queues[class];
            let before = (queue.head_arrival_ns, queue.head_bytes);
            self.show_head(class);
            let queue = &self.scene.queues[class];
            changed |= before != (queue.head_arrival_ns, queue.head_bytes);
        }
        self.unlooked.clear();
        if changed {
            self.policy.rated(&self.scene.view());
        }
    }

    /// The class that is owed its head; of several the one that is owed most.
    fn owed_class(&self) -> Option<usize> {
        let queues = self.scene.queues.iter().zip(&self.classes).enumerate();
        let owed = queues.filter(|(_, (queue, class))| {
            class.limit.least_ppm > 0
                && queue.backlog_pkts > 0
                && queue.rate_bps > 0
                && class.owed >= u64::from(queue.head_bytes) * MILLION
        });
        owed.max_by_key(|(at, (_, class))| (class.owed, std::cmp::Reverse(*at)))
            .map(|(at, _)| at)
    }

    /// Counts a packet that left in what classes are owed of their least shares.
    fn pay_shares(&mut self, sent: usize, bytes: u32) {
        let queues = self.scene.queues.iter();
        for (at, (class, queue)) in self.classes.iter_mut().zip(queues).enumerate() {
            if class.limit.least_ppm == 0 {
                continue;
            }
            let mut owed = class.owed + u64::from(bytes) * u64::from(class.limit.least_ppm);
            if at == sent {
                owed = owed.saturating_sub(u64::from(bytes) * MILLION);
            }
            // Who has nothing to send is owed nothing.
            class.owed = if queue.backlog_pkts > 0 {
                owed.min(u64::from(MAX_PACKET_BYTES) * MILLION)
            } else {
                0
            };
        }
    }

    /// From now on only the classes for which `may_leave` is true can be picked, until this is called again. The others keep
    /// their packets, and the policy sees their channels as blocked. A caller with several transmitters, each of which carries
    /// some of the classes, calls this before each question. What was withheld in between must leave no trace, so the policy
    /// must be one that [bonds](crate::PolicyInfo::bonds). If no class changes, this is one comparison for each.
    pub fn allow(&mut self, now_ns: u64, may_leave: impl Fn(usize, &Queue) -> bool) {
        self.clock(now_ns);
        let Scene { queues, .. } = &mut self.scene;
        let mut changed = false;
        for (class, queue) in queues.iter_mut().enumerate() {
            // A class without packets is never picked. It is not withheld, and given back if it lost its last packet meanwhile.
            let withhold = queue.backlog_pkts > 0 && !may_leave(class, queue);
            let was = self
                .withheld
                .as_ref()
                .is_some_and(|withheld| withheld.classes[class]);
            if withhold == was {
                continue;
            }
            let withheld = self.withheld.get_or_insert_with(|| {
                Box::new(Withheld {
                    classes: vec![false; self.classes.len()],
                    rates_bps: vec![0; self.classes.len()],
                })
            });
            withheld.classes[class] = withhold;
            if withhold {
                withheld.rates_bps[class] = std::mem::take(&mut queue.rate_bps);
            } else {
                queue.rate_bps = withheld.rates_bps[class];
            }
            changed = true;
        }
        if changed {
            self.policy.rated(&self.scene.view());
        }
    }

    /// The class that would go next if the queues of these classes looked like this; their rates stay as they are. A caller
    /// that has packets of its own beside the queues learns so how the policy ranks them. Nothing is taken out, and it must
    /// leave no trace, so the policy must be one that [bonds](crate::PolicyInfo::bonds). `seen` is as before afterwards.
    pub fn next_class_if(&mut self, now_ns: u64, seen: &mut [(usize, Queue)]) -> Option<usize> {
        self.clock(now_ns);
        if !self.unlooked.is_empty() {
            self.look();
        }
        for (class, queue) in &mut *seen {
            queue.rate_bps = self.scene.queues[*class].rate_bps;
        }
        let mut exchange = |mux: &mut Mux<P, T>| {
            for (class, queue) in &mut *seen {
                std::mem::swap(&mut mux.scene.queues[*class], queue);
            }
            mux.policy.rated(&mux.scene.view());
        };
        exchange(self);
        let found = self.choose_as_shown();
        exchange(self);
        found.map(|(class, _)| class)
    }

    /// The packet at the head of a class, if any. Where flows are isolated, [`Mux::next_class`] may change it.
    #[must_use]
    pub fn head(&self, class: usize) -> Option<&T> {
        self.classes[class].head().map(|head| &head.item)
    }

    /// Drops the head of a class, if it has one. It counts as a drop by the policy, to which it is reported.
    pub fn drop_head(&mut self, now_ns: u64, class: usize) -> Option<Step<T>> {
        self.clock(now_ns);
        let bytes = self.scene.queues[class].head_bytes;
        let reason = DropReason::Policy;
        let item = self.drop_one(class, reason, End::Head)?;
        Some(Step::Dropped {
            class,
            item,
            bytes,
            reason,
        })
    }

    /// Drops packets that have waited longer than their class lets them, `most` of them at most; each goes to `dropped`
    /// with its class and [`DropReason::Age`]. Returns how many were dropped. Arrivals and departures do this as well; a
    /// caller whose queues must hold nothing too old meanwhile calls it at [`Mux::aged_ns`].
    #[inline]
    pub fn drop_aged(
        &mut self,
        now_ns: u64,
        most: u32,
        mut dropped: impl FnMut(T, usize, DropReason),
    ) -> u32 {
        self.clock(now_ns);
        if self.scene.now_ns < self.aged_ns {
            return 0;
        }
        self.look_for_aged(most, |item, class, _| dropped(item, class, DropReason::Age))
    }

    /// Class by class, oldest first; `dropped` is given class and bytes.
    #[cold]
    fn look_for_aged(&mut self, most: u32, mut dropped: impl FnMut(T, usize, u32)) -> u32 {
        let now_ns = self.scene.now_ns;
        let mut count = 0;
        let mut next_ns = NEVER;
        for class in 0..self.classes.len() {
            let Some(most_ns) = self.classes[class].limit.max_age_ns else {
                continue;
            };
            while let Some(oldest_ns) = self.classes[class].oldest_ns() {
                let at_ns = aged_at(oldest_ns, most_ns);
                if now_ns < at_ns {
                    next_ns = next_ns.min(at_ns);
                    break;
                }
                if count == most {
                    // It stays due.
                    return count;
                }
                let held_bytes = self.scene.queues[class].backlog_bytes;
                let Some(item) = self.drop_one(class, DropReason::Age, End::Oldest) else {
                    break;
                };
                count += 1;
                let bytes = held_bytes - self.scene.queues[class].backlog_bytes;
                dropped(item, class, bytes as u32);
            }
        }
        self.aged_ns = next_ns;
        count
    }

    /// When the next packet may become too old, ns; it may leave before. None: nothing that waits ever does.
    #[inline]
    #[must_use]
    pub fn aged_ns(&self) -> Option<u64> {
        (self.aged_ns != NEVER).then_some(self.aged_ns)
    }

    /// Drops packets of a class for one that its limit has no room for; returns whether it has room then.
    #[cold]
    fn make_room(
        &mut self,
        (class, flow): (usize, u32),
        pkts: u32,
        bytes: u32,
        mut dropped: impl FnMut(T, usize, DropReason),
    ) -> bool {
        let Class {
            limit, most_bytes, ..
        } = &self.classes[class];
        let fits_alone =
            limit.pkts.is_none_or(|most| pkts <= most) && u64::from(bytes) <= *most_bytes;
        for _ in 0..MOST_DROPS {
            // What would not fit into an empty queue drives nothing out.
            if !fits_alone || self.has_room_for(class, pkts, bytes) {
                break;
            }
            let Some(end) = self.classes[class].end_that_gives_way(flow, bytes) else {
                break;
            };
            let Some(item) = self.drop_one(class, DropReason::Head, end) else {
                break;
            };
            dropped(item, class, DropReason::Head);
        }
        self.has_room_for(class, pkts, bytes)
    }

    /// Drops packets at the head of a class that have waited longer than `most_ns`; each goes to `dropped`. These drops
    /// are reported to the policy like any other.
    pub fn expire(&mut self, now_ns: u64, class: usize, most_ns: u64, mut dropped: impl FnMut(T)) {
        self.clock(now_ns);
        loop {
            let queue = &self.scene.queues[class];
            let waited_ns = self.scene.now_ns - queue.head_arrival_ns;
            if queue.backlog_pkts == 0 || waited_ns <= most_ns {
                return;
            }
            match self.drop_one(class, DropReason::Policy, End::Head) {
                Some(item) => dropped(item),
                None => return,
            }
        }
    }

    /// When to ask again at the latest after [`Mux::dequeue`], [`Mux::step`] or [`Mux::next_class`] gave nothing, ns;
    /// `None`: after an event.
    #[must_use]
    pub fn retry_ns(&self) -> Option<u64> {
        self.retry_ns
    }

    /// Whether the limit of a class has room for a packet of `bytes` now.
    #[inline]
    #[must_use]
    pub fn has_room(&self, class: usize, bytes: u32) -> bool {
        self.has_room_for(class, 1, bytes)
    }

    /// As [`Mux::has_room`], for `pkts` packets that are `bytes` long together.
    #[inline]
    #[must_use]
    pub fn has_room_for(&self, class: usize, pkts: u32, bytes: u32) -> bool {
        let queue = &self.scene.queues[class];
        let Class {
            limit,
            most_bytes,
            waiting_pkts,
            ..
        } = &self.classes[class];
        let waiting_pkts = u64::from(*waiting_pkts) + u64::from(pkts);
        limit.pkts.is_none_or(|most| waiting_pkts <= most.into())
            && queue.backlog_bytes + u64::from(bytes) <= *most_bytes
            && waiting_pkts <= u32::MAX.into()
    }

    /// Reports a new capacity of the link to the scheduler.
    pub fn set_link(&mut self, now_ns: u64, link_bps: u64) {
        self.clock(now_ns);
        self.scene.link_bps = link_bps;
        self.rated();
    }

    /// Sets the rate of the channel to one class, bit/s; 0 blocks it.
    pub fn set_rate(&mut self, now_ns: u64, class: usize, rate_bps: u64) {
        self.clock(now_ns);
        self.show_rate(class, rate_bps);
        self.channels = true;
        self.rated();
    }

    /// As [`Mux::set_rate`] for the first class, the second, and so on, with a single report to the policy.
    pub fn set_rates(&mut self, now_ns: u64, rates_bps: impl IntoIterator<Item = u64>) {
        self.clock(now_ns);
        for (class, rate_bps) in (0..self.classes.len()).zip(rates_bps) {
            self.show_rate(class, rate_bps);
        }
        self.channels = true;
        self.rated();
    }

    /// Sets the rate of a class's channel, which the policy sees unless the class is withheld.
    fn show_rate(&mut self, class: usize, rate_bps: u64) {
        match &mut self.withheld {
            Some(withheld) if withheld.classes[class] => withheld.rates_bps[class] = rate_bps,
            _ => self.scene.queues[class].rate_bps = rate_bps,
        }
    }

    /// The rate of a class's channel, bit/s, also while the class is withheld.
    fn channel_bps(&self, class: usize) -> u64 {
        match &self.withheld {
            Some(withheld) if withheld.classes[class] => withheld.rates_bps[class],
            _ => self.scene.queues[class].rate_bps,
        }
    }

    /// Sets the limits of a class. Packets that wait already stay unless they are too old.
    pub fn set_limit(&mut self, class: usize, limit: Limit) {
        self.classes[class].limit = limit;
        self.classes[class].owed = 0;
        self.limits_changed();
    }

    fn limits_changed(&mut self) {
        let mut limits = self.classes.iter().map(|class| &class.limit);
        self.aged_ns = if limits.any(|limit| limit.max_age_ns.is_some()) {
            self.scene.now_ns
        } else {
            NEVER
        };
        let mut limits = self.classes.iter().map(|class| &class.limit);
        self.timed = limits.any(|limit| limit.time.is_some());
        let mut limits = self.classes.iter().map(|class| &class.limit);
        self.assured = limits.any(|limit| limit.least_ppm > 0);
        self.limit_by_rate();
    }

    /// Sets the most bytes of each class for the present rates.
    fn limit_by_rate(&mut self) {
        for class in 0..self.classes.len() {
            let bps = if self.channels {
                self.channel_bps(class)
            } else {
                self.scene.link_bps
            };
            self.classes[class].limit_at(bps);
        }
    }

    /// Most bytes that a class may hold now, by its limits in bytes and by time; none: no such limit.
    #[must_use]
    pub fn most_bytes(&self, class: usize) -> Option<u64> {
        Some(self.classes[class].most_bytes).filter(|most| *most != u64::MAX)
    }

    /// How long a packet of a class may wait, ns; none: any time.
    #[must_use]
    pub fn max_age_ns(&self, class: usize) -> Option<u64> {
        self.classes[class].limit.max_age_ns
    }

    /// Packets of a class that wait, each of a train counted.
    #[must_use]
    pub fn waiting_pkts(&self, class: usize) -> u32 {
        self.classes[class].waiting_pkts
    }

    /// Number of classes.
    #[must_use]
    pub fn nclasses(&self) -> usize {
        self.classes.len()
    }

    /// The queues as the policy sees them.
    #[must_use]
    pub fn queues(&self) -> &[Queue] {
        &self.scene.queues
    }

    /// The capacity last reported to the scheduler, bit/s.
    #[must_use]
    pub fn link_bps(&self) -> u64 {
        self.scene.link_bps
    }

    /// Counters of a class.
    #[must_use]
    pub fn counters(&self, class: usize) -> &Counters {
        &self.classes[class].counters
    }

    /// Sets all counters to zero. Packets that wait will be counted when they leave.
    pub fn reset_counters(&mut self) {
        for class in &mut self.classes {
            class.counters.reset();
        }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The policy, for what no event of the queues reports to it.
    #[must_use]
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// The policy's statistics of a class, as of `now_ns`.
    pub fn observe(&mut self, now_ns: u64, class: usize, values: &mut [i64]) {
        self.clock(now_ns);
        self.policy.observe(&self.scene.view(), class, values);
    }

    /// Drops a packet of a class.
    fn drop_one(&mut self, class: usize, reason: DropReason, end: End) -> Option<T> {
        if self.classes[class].flows.is_some() {
            self.hand_back_dropped(class, end);
        }
        let Class {
            waiting,
            waiting_pkts,
            counters,
            ..
        } = &mut self.classes[class];
        let Waiting {
            bytes, pkts, item, ..
        } = match end {
            End::Newest | End::NewestOf(_) => waiting.pop_back(),
            End::Head | End::Oldest | End::OldestOf(_) => waiting.pop_front(),
        }?;
        *waiting_pkts -= pkts;
        let (counted_pkts, counted_bytes) = match reason {
            DropReason::Policy => (
                &mut counters.dropped_policy_pkts,
                &mut counters.dropped_policy_bytes,
            ),
            DropReason::Age => (
                &mut counters.dropped_age_pkts,
                &mut counters.dropped_age_bytes,
            ),
            DropReason::Limit | DropReason::Head => (
                &mut counters.dropped_limit_pkts,
                &mut counters.dropped_limit_bytes,
            ),
        };
        *counted_pkts += u64::from(pkts);
        *counted_bytes += u64::from(bytes);
        let queue = &mut self.scene.queues[class];
        queue.backlog_pkts -= 1;
        queue.backlog_bytes -= u64::from(bytes);
        if let Some(head) = waiting.front() {
            queue.head_arrival_ns = head.arrival_ns;
            queue.head_bytes = head.bytes;
        }
        self.policy.dropped(&self.scene.view(), class, bytes);
        Some(item)
    }

    /// Shows the policy the packet of a class that goes next.
    fn show_head(&mut self, class: usize) {
        if let Some(head) = self.classes[class].head() {
            let queue = &mut self.scene.queues[class];
            queue.head_arrival_ns = head.arrival_ns;
            queue.head_bytes = head.bytes;
        }
    }

    fn rated(&mut self) {
        if self.timed {
            self.limit_by_rate();
        }
        self.policy.rated(&self.scene.view());
    }

    /// Moves the time on. It never goes back.
    #[inline]
    fn clock(&mut self, now_ns: u64) {
        self.scene.now_ns = self.scene.now_ns.max(now_ns);
    }
}

/// When a packet that arrived then is first older than `most_ns`, ns.
#[inline]
fn aged_at(arrival_ns: u64, most_ns: u64) -> u64 {
    arrival_ns.saturating_add(most_ns).saturating_add(1)
}

impl<P: Adjust, T> Mux<P, T> {
    /// Gives the running policy new parameters; queues and credit stay.
    ///
    /// # Errors
    /// Values that the policy refuses; it then keeps its old ones.
    pub fn change(&mut self, now_ns: u64, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        self.clock(now_ns);
        self.policy.change(&self.scene.view(), params, qparams)
    }

    /// Whether the running policy would accept these parameters once `link_bps` is reported as the link's capacity.
    ///
    /// # Errors
    /// Why not.
    pub fn accepts(&self, link_bps: u64, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        let view = View {
            link_bps,
            ..self.scene.view()
        };
        self.policy.accepts(&view, params, qparams)
    }
}
