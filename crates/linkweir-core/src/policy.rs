// SPDX-License-Identifier: BSD-3-Clause
//! The contract between a scheduling policy and a data plane, in Rust's terms.
//!
//! The rules are those of `core/include/linkweir/policy.h`: the data plane keeps the view true, reports
//! events after they happened and never lets time decrease, and two picks with nothing between them agree.

use std::panic;

use crate::ffi::Queue;

/// A policy's view of the queues.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Time now, ns.
    pub now_ns: u64,
    /// Capacity of the link as it was reported to the scheduler, bit/s.
    pub link_bps: u64,
    /// The queues, by index.
    pub queues: &'a [Queue],
}

/// Answer to "which queue next?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// This queue's head.
    Queue(usize),
    /// Nothing now; ask again at this time (ns) at the latest, or only after an event.
    Nothing {
        /// When the answer may change by itself.
        retry_ns: Option<u64>,
    },
}

/// A queue that must give up a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its index.
    pub queue: usize,
    /// Whether it loses its head, not its tail.
    pub head: bool,
}

/// The verdict on the packet that was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent.
    Pass,
    /// It is sent with a congestion mark (ECN), which it can carry.
    Mark,
    /// It is dropped, and the policy is asked for the next one.
    Drop,
}

/// A scheduling policy.
pub trait Policy {
    /// Which queue's head goes next.
    fn pick(&mut self, view: &View<'_>) -> Pick;

    /// A packet of `bytes` was put at the tail of queue `q`.
    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        let _ = (view, q, bytes);
    }

    /// The head of queue `q` was handed to the lower layer.
    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        let _ = (view, q, bytes);
    }

    /// A packet of queue `q` was dropped.
    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        let _ = (view, q, bytes);
    }

    /// The capacity or the rate of some queue changed.
    fn rated(&mut self, view: &View<'_>) {
        let _ = view;
    }

    /// The queue that must give up a packet after queue `q` took one of `bytes`, if any.
    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        let _ = (view, q, bytes);
        None
    }

    /// The verdict on the head of queue `q`, which was picked; `ecn`: whether it can carry a congestion mark.
    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        let _ = (view, q, ecn);
        Verdict::Pass
    }

    /// Whether the head of queue `q`, which has a packet, may be dropped to make room for another.
    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        let _ = (view, q);
        false
    }

    /// Writes the policy's statistics of queue `q` into `values`, as many as it declares.
    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        let _ = (view, q, values);
    }
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        (**self).pick(view)
    }

    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        (**self).enqueued(view, q, bytes);
    }

    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        (**self).sent(view, q, bytes);
    }

    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        (**self).dropped(view, q, bytes);
    }

    fn rated(&mut self, view: &View<'_>) {
        (**self).rated(view);
    }

    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        (**self).victim(view, q, bytes)
    }

    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        (**self).leaving(view, q, ecn)
    }

    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        (**self).expired(view, q)
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        (**self).observe(view, q, values);
    }
}

/// What a user's policy did against the contract. It ends the run by unwinding, because no question to a policy can fail
/// otherwise; whoever runs it catches this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

impl Broken {
    /// Ends the run.
    pub fn end_run(self) -> ! {
        panic::resume_unwind(Box::new(self))
    }
}
