// SPDX-License-Identifier: BSD-3-Clause
//! The policy of a link, whose calls can be recorded: then another program can check that the core, given the same calls,
//! decides the same.

use std::fmt;
use std::io::Write;

use linkweir_core::{Adjust, CorePolicy, Fault, Pick, Policy, Recorded, Verdict, Victim, View};

/// Where calls are recorded.
pub type Out = Box<dyn Write + Send>;

/// A policy of the core, recorded or not. A link that is not recorded pays a branch for each call.
pub enum Deciding {
    /// It decides.
    Plain(CorePolicy),
    /// It decides, and each call and answer is written ([`Recorded`]).
    Recorded(Box<Recorded<CorePolicy, Out>>),
}

impl fmt::Debug for Deciding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deciding::Plain(policy) => policy.fmt(f),
            Deciding::Recorded(policy) => policy.fmt(f),
        }
    }
}

/// The same call of the policy, whichever it is.
macro_rules! decide {
    ($self:ident, $policy:ident => $call:expr) => {
        match $self {
            Deciding::Plain($policy) => $call,
            Deciding::Recorded($policy) => $call,
        }
    };
}

impl Policy for Deciding {
    #[inline]
    fn pick(&mut self, view: &View<'_>) -> Pick {
        decide!(self, policy => policy.pick(view))
    }

    #[inline]
    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        decide!(self, policy => policy.enqueued(view, q, bytes));
    }

    #[inline]
    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        decide!(self, policy => policy.sent(view, q, bytes));
    }

    #[inline]
    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        decide!(self, policy => policy.dropped(view, q, bytes));
    }

    fn rated(&mut self, view: &View<'_>) {
        decide!(self, policy => policy.rated(view));
    }

    #[inline]
    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        decide!(self, policy => policy.victim(view, q, bytes))
    }

    #[inline]
    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        decide!(self, policy => policy.leaving(view, q, ecn))
    }

    #[inline]
    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        decide!(self, policy => policy.expired(view, q))
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        decide!(self, policy => policy.observe(view, q, values));
    }
}

impl Adjust for Deciding {
    fn change(&mut self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        decide!(self, policy => policy.change(view, params, qparams))
    }

    fn accepts(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        decide!(self, policy => policy.accepts(view, params, qparams))
    }
}
