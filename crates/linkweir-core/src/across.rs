// SPDX-License-Identifier: BSD-3-Clause
//! One policy across users, each of whom has queues behind a policy of its own.
//!
//! The policy across users sees each user as one queue ([`Across`]). The backlog is that of all the user's queues. The head
//! is the packet that the user's own policy would send next. The rate is that of the channel to the user; 0 blocks this user
//! and no other. If the policy drops, it drops that head, so only policies that drop heads can be used here
//! ([`PolicyInfo::nests`]).
//!
//! The caller of [`Across`] keeps the users' queues. The gateway's hub has a [`Mux`](crate::Mux) for each peer. [`Nested`] is
//! for a single [`Mux`](crate::Mux) that holds the classes of all users: it is a policy of all these classes.

use crate::core_policy::{Adjust, CorePolicy, Fault};
use crate::ffi::Queue;
use crate::info::PolicyInfo;
use crate::policy::{Pick, Policy, Verdict, Victim, View};

/// An event of a packet in a user's queues, with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was enqueued.
    Enqueued(u32),
    /// It was sent.
    Sent(u32),
    /// It was dropped from its queue.
    Dropped(u32),
}

impl Event {
    /// Length of the packet.
    #[must_use]
    pub fn bytes(self) -> u32 {
        let (Event::Enqueued(bytes) | Event::Sent(bytes) | Event::Dropped(bytes)) = self;
        bytes
    }
}

/// A policy of the core with values for its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The policy.
    pub info: &'static PolicyInfo,
    /// One value per parameter.
    pub params: &'a [u64],
    /// One row per queue.
    pub qparams: &'a [u64],
}

/// The policy across users, and what it sees of them.
#[derive(Debug)]
pub struct Across {
    policy: CorePolicy,
    queues: Vec<Queue>,
    now_ns: u64,
    link_bps: u64,
    /// Packets in all queues.
    waiting_pkts: u64,
}

impl Across {
    /// A policy across users who have these queues.
    ///
    /// # Errors
    /// Parameters that the policy refuses.
    pub fn new(
        now_ns: u64,
        link_bps: u64,
        queues: Vec<Queue>,
        settings: Settings<'_>,
    ) -> Result<Across, Fault> {
        let Settings {
            info,
            params,
            qparams,
        } = settings;
        let view = View {
            now_ns,
            link_bps,
            queues: &queues,
        };
        let policy = CorePolicy::new(info, &view, params, qparams)?;
        let waiting_pkts = queues.iter().map(|q| u64::from(q.backlog_pkts)).sum();
        Ok(Across {
            policy,
            queues,
            now_ns,
            link_bps,
            waiting_pkts,
        })
    }

    /// Calls the policy with its view.
    #[inline]
    fn ask<A>(&mut self, call: impl FnOnce(&mut CorePolicy, &View<'_>) -> A) -> A {
        let Across {
            policy,
            queues,
            now_ns,
            link_bps,
            ..
        } = self;
        let view = View {
            now_ns: *now_ns,
            link_bps: *link_bps,
            queues,
        };
        call(policy, &view)
    }

    /// Moves the time on. It never goes back.
    #[inline]
    pub fn clock(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Reports an event of a user's queues, with the packet that goes next after it. Of several events without a look at the
    /// queues in between, each is reported with the head there is after the last of them.
    #[inline]
    pub fn happened(&mut self, user: usize, event: Event, head: Option<Queue>) {
        let bytes = event.bytes();
        let queue = &mut self.queues[user];
        if let Event::Enqueued(_) = event {
            self.waiting_pkts += 1;
            queue.backlog_pkts += 1;
            queue.backlog_bytes += u64::from(bytes);
        } else {
            self.waiting_pkts -= 1;
            queue.backlog_pkts -= 1;
            queue.backlog_bytes -= u64::from(bytes);
        }
        // If none is left, a packet that was enqueued and dropped since is shown as its own head.
        match (head, event) {
            (Some(head), _) => {
                queue.head_bytes = head.head_bytes;
                queue.head_arrival_ns = head.head_arrival_ns;
            }
            (None, Event::Enqueued(_)) => {
                queue.head_bytes = bytes;
                queue.head_arrival_ns = self.now_ns;
            }
            (None, _) => {}
        }
        self.ask(|policy, view| match event {
            Event::Enqueued(_) => policy.enqueued(view, user, bytes),
            Event::Sent(_) => policy.sent(view, user, bytes),
            Event::Dropped(_) => policy.dropped(view, user, bytes),
        });
    }

    /// Shows the rate of a user's channel, bit/s, and the packet that goes next, either as before if it is none. Returns
    /// whether this differs from what the policy has seen; then [`Across::rated`] must follow before the next question.
    #[inline]
    pub fn show(&mut self, user: usize, rate_bps: Option<u64>, head: Option<Queue>) -> bool {
        let queue = &mut self.queues[user];
        let before = *queue;
        if let Some(rate_bps) = rate_bps {
            queue.rate_bps = rate_bps;
        }
        if let Some(head) = head {
            // Another packet may have become the head without an event.
            queue.head_bytes = head.head_bytes;
            queue.head_arrival_ns = head.head_arrival_ns;
        }
        *queue != before
    }

    /// Reports what [`Across::show`] changed, and this capacity of the link, bit/s.
    pub fn rated(&mut self, link_bps: u64) {
        self.link_bps = link_bps;
        self.ask(|policy, view| policy.rated(view));
    }

    /// The user who is served next.
    #[inline]
    pub fn pick(&mut self) -> Pick {
        self.ask(|policy, view| policy.pick(view))
    }

    /// The verdict on the head of a user who was picked; `ecn`: whether it can carry a congestion mark. The user's own policy
    /// judges a packet that is not dropped here, too.
    #[inline]
    pub fn leaving(&mut self, user: usize, ecn: bool) -> Verdict {
        self.ask(|policy, view| policy.leaving(view, user, ecn))
    }

    /// The users as the policy sees them.
    #[must_use]
    pub fn users(&self) -> &[Queue] {
        &self.queues
    }

    /// The capacity of the link as the policy knows it, bit/s.
    #[must_use]
    pub fn link_bps(&self) -> u64 {
        self.link_bps
    }

    /// Packets in all queues.
    #[must_use]
    pub fn waiting_pkts(&self) -> u64 {
        self.waiting_pkts
    }

    /// The core's declaration of the policy.
    #[must_use]
    pub fn info(&self) -> &'static PolicyInfo {
        self.policy.info()
    }

    /// Whether the policy would accept these parameters.
    ///
    /// # Errors
    /// A setting that it refuses.
    pub fn accepts(&self, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        let view = View {
            now_ns: self.now_ns,
            link_bps: self.link_bps,
            queues: &self.queues,
        };
        self.policy.accepts(&view, params, qparams)
    }

    /// Gives the running policy new parameters; queues and credit stay.
    ///
    /// # Errors
    /// Parameters that it refuses; it then keeps its old ones.
    pub fn change(&mut self, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        self.ask(|policy, view| Adjust::change(policy, view, params, qparams))
    }

    /// Writes the policy's statistics of a user.
    pub fn observe(&mut self, user: usize, values: &mut [i64]) {
        self.ask(|policy, view| policy.observe(view, user, values));
    }
}

/// A policy of classes that belong to users: one policy across the users, and one inside each of them.
///
/// ```
/// use linkweir_core::{policy, Limit, Mux, Nested, Settings};
///
/// // Two users, each with a call and a transfer: users take turns, and calls go first inside each.
/// let (rr, strict) = (policy("rr").unwrap(), policy("strict").unwrap());
/// let qparams = strict.default_qparams(4);
/// let mut mux = Mux::new(0, 20_000_000, &[Limit::NONE; 4], |view| {
///     let across = Settings { info: rr, params: &[], qparams: &[] };
///     let inside = Settings { info: strict, params: &strict.default_params(), qparams: &qparams };
///     Nested::new(view, &[0, 0, 1, 1], across, inside)
/// })
/// .unwrap();
/// for (class, packet) in [(1, "data of 0"), (0, "call of 0"), (3, "data of 1")] {
///     mux.enqueue(0, class, 1000, packet, |_, _, _| {});
/// }
/// let order = [(); 3].map(|()| mux.dequeue(0, |_| false, |_, _, _| {}).unwrap().item);
/// assert_eq!(order, ["call of 0", "data of 1", "data of 0"]);
/// ```
#[derive(Debug)]
pub struct Nested {
    across: Across,
    users: Vec<User>,
    /// The user of each class, and its place among that user's classes.
    places: Vec<(usize, usize)>,
    /// The capacity of the link as the policies inside know it, bit/s.
    link_bps: u64,
}

/// The classes of a user behind their policy.
#[derive(Debug)]
struct User {
    policy: CorePolicy,
    /// Its classes among all.
    classes: Vec<usize>,
    /// What its policy sees of them.
    queues: Vec<Queue>,
}

impl User {
    /// Shows the policy its classes; returns whether a rate or, without an event, a head changed.
    #[inline]
    fn follow(&mut self, view: &View<'_>) -> bool {
        let mut changed = false;
        for (queue, &class) in self.queues.iter_mut().zip(&self.classes) {
            let seen = as_inside(view.queues[class], queue.rate_bps);
            changed |= *queue != seen;
            *queue = seen;
        }
        changed
    }

    #[inline]
    fn view<'a>(queues: &'a [Queue], view: &View<'_>) -> View<'a> {
        View { queues, ..*view }
    }

    /// The queue that goes next, by its place.
    #[inline]
    fn next(&mut self, view: &View<'_>) -> Option<usize> {
        match self.policy.pick(&User::view(&self.queues, view)) {
            Pick::Queue(at) => Some(at),
            Pick::Nothing { .. } => None,
        }
    }

    /// The rate of the channel, bit/s: all classes have the same, but one that is known by when its head arrives.
    fn rate_bps(&self, view: &View<'_>, head: Option<usize>) -> u64 {
        view.queues[self.classes[head.unwrap_or(0)]].rate_bps
    }
}

/// A queue as the policy inside the user sees it. An outage blocks the user as a whole, so inside nothing is blocked, and
/// the rate stays as it was.
#[inline]
fn as_inside(queue: Queue, before_bps: u64) -> Queue {
    let rate_bps = if queue.rate_bps > 0 {
        queue.rate_bps
    } else {
        before_bps
    };
    Queue { rate_bps, ..queue }
}

impl Nested {
    /// Starts the policies for the queues of `view`. `users` has the user of each queue, numbered from 0 without a gap.
    /// `across` has a row for each user, `inside` one for each queue.
    ///
    /// # Errors
    /// A value that a policy refuses. A queue in the fault is a user's number if the policy across users refuses it, else
    /// the number of the queue.
    ///
    /// # Panics
    /// When a queue has no user, a number is missing, or the policy across users does not nest.
    pub fn new(
        view: &View<'_>,
        users: &[usize],
        across: Settings<'_>,
        inside: Settings<'_>,
    ) -> Result<Nested, Fault> {
        assert_eq!(users.len(), view.queues.len(), "each queue has a user");
        assert!(across.info.nests(), "{} does not nest", across.info.name);
        let nusers = users.iter().max().map_or(0, |last| last + 1);
        let mut places = Vec::with_capacity(users.len());
        let mut classes = vec![Vec::new(); nusers];
        for (class, &user) in users.iter().enumerate() {
            places.push((user, classes[user].len()));
            classes[user].push(class);
        }
        let mut made = Vec::with_capacity(nusers);
        for classes in classes {
            assert!(!classes.is_empty(), "each user has a queue");
            made.push(start(view, classes, inside)?);
        }
        let shown = made.iter_mut().map(|user| shown(user, view)).collect();
        Ok(Nested {
            across: Across::new(view.now_ns, view.link_bps, shown, across)?,
            users: made,
            places,
            link_bps: view.link_bps,
        })
    }

    /// The policy across users.
    #[must_use]
    pub fn across(&self) -> &Across {
        &self.across
    }

    /// The policy inside each user.
    ///
    /// # Panics
    /// Never: there is a user.
    #[must_use]
    pub fn inside(&self) -> &'static PolicyInfo {
        self.users[0].policy.info()
    }

    /// Shows the policy across users the channel and the next packet of each; returns whether it has seen others.
    #[inline]
    fn look(&mut self, view: &View<'_>) -> bool {
        let mut changed = false;
        for (at, user) in self.users.iter_mut().enumerate() {
            let waits = user.queues.iter().any(|queue| queue.backlog_pkts > 0);
            let head = if waits { user.next(view) } else { None };
            let rate_bps = user.rate_bps(view, head);
            let head = head.map(|place| user.queues[place]);
            changed |= self.across.show(at, Some(rate_bps), head);
        }
        changed
    }

    /// Reports an event to the policy inside the user, then to the one across users.
    #[inline]
    fn report(&mut self, view: &View<'_>, q: usize, event: Event) {
        let (at, place) = self.places[q];
        let user = &mut self.users[at];
        user.follow(view);
        let own = User::view(&user.queues, view);
        match event {
            Event::Enqueued(bytes) => user.policy.enqueued(&own, place, bytes),
            Event::Sent(bytes) => user.policy.sent(&own, place, bytes),
            Event::Dropped(bytes) => user.policy.dropped(&own, place, bytes),
        }
        let head = user.next(view).map(|place| user.queues[place]);
        self.across.clock(view.now_ns);
        self.across.happened(at, event, head);
    }
}

/// The policy of a user, with its classes as they are.
fn start(view: &View<'_>, classes: Vec<usize>, inside: Settings<'_>) -> Result<User, Fault> {
    let n = inside.info.qparams.len();
    let rows = classes.iter().map(|at| at * n..(at + 1) * n);
    let qparams: Vec<u64> = rows.flat_map(|row| &inside.qparams[row]).copied().collect();
    let queues: Vec<Queue> = classes.iter().map(|at| view.queues[*at]).collect();
    let own = User::view(&queues, view);
    let policy = CorePolicy::new(inside.info, &own, inside.params, &qparams);
    let policy = policy.map_err(|fault| Fault {
        queue: fault.queue.map(|place| classes[place]),
        ..fault
    })?;
    Ok(User {
        policy,
        classes,
        queues,
    })
}

/// All queues of a user as one.
fn shown(user: &mut User, view: &View<'_>) -> Queue {
    let head = user.next(view);
    Queue {
        backlog_bytes: user.queues.iter().map(|q| q.backlog_bytes).sum(),
        backlog_pkts: user.queues.iter().map(|q| q.backlog_pkts).sum(),
        rate_bps: user.rate_bps(view, head),
        ..head.map_or_else(Queue::default, |place| user.queues[place])
    }
}

impl Policy for Nested {
    /// Looks at every user once, as another packet may have become its head as time passed.
    fn pick(&mut self, view: &View<'_>) -> Pick {
        self.across.clock(view.now_ns);
        if self.look(view) {
            self.across.rated(view.link_bps);
        }
        let Nested { across, users, .. } = self;
        match across.pick() {
            Pick::Queue(at) => {
                let user = &mut users[at];
                let next = user.next(view);
                debug_assert!(next.is_some(), "a user with packets has one that goes next");
                next.map_or(Pick::Nothing { retry_ns: None }, |place| {
                    Pick::Queue(user.classes[place])
                })
            }
            nothing => nothing,
        }
    }

    #[inline]
    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.report(view, q, Event::Enqueued(bytes));
    }

    #[inline]
    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.report(view, q, Event::Sent(bytes));
    }

    #[inline]
    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.report(view, q, Event::Dropped(bytes));
    }

    fn rated(&mut self, view: &View<'_>) {
        let link_changed = view.link_bps != self.link_bps;
        self.link_bps = view.link_bps;
        for user in &mut self.users {
            if user.follow(view) || link_changed {
                user.policy.rated(&User::view(&user.queues, view));
            }
        }
        self.across.clock(view.now_ns);
        self.look(view);
        self.across.rated(view.link_bps);
    }

    #[inline]
    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        let (at, place) = self.places[q];
        let user = &mut self.users[at];
        let own = User::view(&user.queues, view);
        let victim = user.policy.victim(&own, place, bytes)?;
        Some(Victim {
            queue: user.classes[victim.queue],
            ..victim
        })
    }

    #[inline]
    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        let (at, place) = self.places[q];
        let of_user = self.across.leaving(at, ecn);
        if of_user == Verdict::Drop {
            return Verdict::Drop;
        }
        let user = &mut self.users[at];
        let own = user
            .policy
            .leaving(&User::view(&user.queues, view), place, ecn);
        if own == Verdict::Pass {
            of_user
        } else {
            own
        }
    }

    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        let (at, place) = self.places[q];
        let user = &self.users[at];
        user.policy.expired(&User::view(&user.queues, view), place)
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        let (at, place) = self.places[q];
        let user = &self.users[at];
        user.policy
            .observe(&User::view(&user.queues, view), place, values);
    }
}
