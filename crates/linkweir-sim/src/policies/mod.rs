// SPDX-License-Identifier: BSD-3-Clause
//! Policies a run may have: those of the core, and those that only reproduce a paper and stay in the simulator.

mod tauran_pf;

use linkweir_core::{CorePolicy, Fault, Pick, Policy, Stat, Verdict, Victim, View};

use crate::experiment::Experiment;
use crate::satellite::fading::Fading;

use tauran_pf::TauranPf;

/// Names of those that only the simulator has. The second has a parameter: how long a packet may wait, ns.
pub(crate) const OWN: [&str; 2] = ["tauran_pf", CODES];
pub(crate) const CODES: &str = "tauran_codes";

/// What schedules a run.
#[derive(Debug)]
pub(crate) enum AnyPolicy {
    Core(CorePolicy),
    TauranPf(TauranPf),
}

/// Why there is no policy.
pub(crate) enum Missing {
    Unknown(String),
    NeedsSatellite(&'static str),
    Refused(Fault),
}

impl AnyPolicy {
    /// The policy of an experiment.
    pub(crate) fn new(
        experiment: &Experiment,
        fading: Option<&Fading>,
        view: &View<'_>,
    ) -> Result<AnyPolicy, Missing> {
        let scheduler = &experiment.scheduler;
        if let Some(name) = OWN.into_iter().find(|name| *name == scheduler.policy) {
            let (Some(satellite), Some(fading)) = (&experiment.link.satellite, fading) else {
                return Err(Missing::NeedsSatellite(name));
            };
            return Ok(AnyPolicy::TauranPf(TauranPf::new(
                fading.clone(),
                satellite.user_offset_ns,
                view.queues.len(),
                scheduler.params.first().copied(),
            )));
        }
        let info = linkweir_core::policy(&scheduler.policy)
            .ok_or_else(|| Missing::Unknown(scheduler.policy.clone()))?;
        CorePolicy::new(info, view, &scheduler.params, &scheduler.qparams)
            .map(AnyPolicy::Core)
            .map_err(Missing::Refused)
    }

    /// After how long in its queue a packet is to be thrown away, ns.
    pub(crate) fn timeout_ns(&self) -> Option<u64> {
        match self {
            AnyPolicy::Core(_) => None,
            AnyPolicy::TauranPf(policy) => policy.timeout_ns,
        }
    }

    /// Whether it is told what the channel gives each class; the simulator's own look for themselves.
    pub(crate) fn hears_rates(&self) -> bool {
        matches!(self, AnyPolicy::Core(_))
    }

    /// What it shows of each class.
    pub(crate) fn stats(&self) -> &'static [Stat] {
        match self {
            AnyPolicy::Core(policy) => &policy.info().stats,
            AnyPolicy::TauranPf(_) => &[],
        }
    }
}

impl Policy for AnyPolicy {
    #[inline]
    fn pick(&mut self, view: &View<'_>) -> Pick {
        match self {
            AnyPolicy::Core(policy) => policy.pick(view),
            AnyPolicy::TauranPf(policy) => policy.pick(view),
        }
    }

    #[inline]
    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        match self {
            AnyPolicy::Core(policy) => policy.enqueued(view, q, bytes),
            AnyPolicy::TauranPf(policy) => policy.enqueued(view, q, bytes),
        }
    }

    #[inline]
    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        match self {
            AnyPolicy::Core(policy) => policy.sent(view, q, bytes),
            AnyPolicy::TauranPf(policy) => policy.sent(view, q, bytes),
        }
    }

    #[inline]
    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        match self {
            AnyPolicy::Core(policy) => policy.dropped(view, q, bytes),
            AnyPolicy::TauranPf(policy) => policy.dropped(view, q, bytes),
        }
    }

    fn rated(&mut self, view: &View<'_>) {
        match self {
            AnyPolicy::Core(policy) => policy.rated(view),
            AnyPolicy::TauranPf(policy) => policy.rated(view),
        }
    }

    #[inline]
    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        match self {
            AnyPolicy::Core(policy) => policy.victim(view, q, bytes),
            AnyPolicy::TauranPf(policy) => policy.victim(view, q, bytes),
        }
    }

    #[inline]
    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        match self {
            AnyPolicy::Core(policy) => policy.leaving(view, q, ecn),
            AnyPolicy::TauranPf(policy) => policy.leaving(view, q, ecn),
        }
    }

    #[inline]
    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        match self {
            AnyPolicy::Core(policy) => policy.expired(view, q),
            AnyPolicy::TauranPf(policy) => policy.expired(view, q),
        }
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        match self {
            AnyPolicy::Core(policy) => policy.observe(view, q, values),
            AnyPolicy::TauranPf(policy) => policy.observe(view, q, values),
        }
    }
}
