// SPDX-License-Identifier: BSD-3-Clause
//! Policies a run may have: those of the core, and those that only reproduce a paper and stay in the simulator.

mod frame_like;
mod means;
mod servable;
mod tauran_pf;
mod tournament;
mod ubmt_like;

use std::fmt;

use linkweir_core::{
    CorePolicy, Declaration, Fault, Nested, Pick, Policy, PolicyInfo, Settings, Stat, Verdict,
    Victim, View,
};

use crate::experiment::{users, Experiment};
use crate::satellite::fading::Fading;

use frame_like::{FrameLike, Search};
use tauran_pf::TauranPf;
use ubmt_like::{Target, UbmtLike};

/// Those that only the simulator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    TauranPf,
    TauranCodes,
    UbmtLike,
    BbsLike,
    BpsLike,
}

/// Their names.
pub(crate) const OWN: [(&str, Own); 5] = [
    ("tauran_pf", Own::TauranPf),
    ("tauran_codes", Own::TauranCodes),
    ("ubmt_like", Own::UbmtLike),
    ("bbs_like", Own::BbsLike),
    ("bps_like", Own::BpsLike),
];

impl Own {
    /// The name of its only parameter, if it has one: how long a packet may wait, ns. [`Own::UbmtLike`] has two values per
    /// class besides: the same for the class, 0 when it is elastic, and then the mean rate it aims at in bit/s, 0 when not given.
    pub(crate) fn timeout_parameter(self) -> Option<&'static str> {
        match self {
            Own::TauranCodes => Some("timeout"),
            Own::UbmtLike => Some("target"),
            _ => None,
        }
    }

    /// Whether it reads a satellite's channel directly, without reports.
    pub(crate) fn needs_satellite(self) -> bool {
        matches!(self, Own::TauranPf | Own::TauranCodes)
    }
}

/// A running policy that the user brought along.
pub(crate) struct Brought {
    declaration: &'static Declaration,
    policy: Box<dyn Policy + Send>,
}

impl fmt::Debug for Brought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brought")
            .field("policy", &self.declaration.name)
            .finish_non_exhaustive()
    }
}

/// The scheduler of a run.
#[derive(Debug)]
pub(crate) enum AnyPolicy {
    Core(CorePolicy),
    Brought(Brought),
    Nested(Box<Nested>),
    TauranPf(TauranPf),
    UbmtLike(UbmtLike),
    FrameLike(FrameLike),
}

/// Calls the variant at hand.
macro_rules! ask {
    ($policy:expr, $inner:ident => $answer:expr) => {
        match $policy {
            AnyPolicy::Core($inner) => $answer,
            AnyPolicy::Brought(Brought { policy: $inner, .. }) => $answer,
            AnyPolicy::Nested($inner) => $answer,
            AnyPolicy::TauranPf($inner) => $answer,
            AnyPolicy::UbmtLike($inner) => $answer,
            AnyPolicy::FrameLike($inner) => $answer,
        }
    };
}

/// Why there is no policy.
pub(crate) enum Missing {
    Unknown(String),
    NeedsSatellite(&'static str),
    Refused(Fault),
}

impl AnyPolicy {
    /// The policy of an experiment, with the channel it may look at: fading, and the offset of each class in it, ns.
    pub(crate) fn new(
        experiment: &Experiment,
        channel: Option<(&Fading, &[u64])>,
        view: &View<'_>,
    ) -> Result<AnyPolicy, Missing> {
        let scheduler = &experiment.scheduler;
        if let Some(brought) = &scheduler.brought {
            let policy = brought.0.start(view, &scheduler.params, &scheduler.qparams);
            return Ok(AnyPolicy::Brought(Brought {
                declaration: brought.declaration(),
                policy: policy.map_err(Missing::Refused)?,
            }));
        }
        let own = OWN.into_iter().find(|(name, _)| *name == scheduler.policy);
        if let Some((name, own)) = own {
            let nqueues = view.queues.len();
            let timeout_ns = scheduler.params.first().copied();
            return Ok(match own {
                Own::UbmtLike => {
                    let rows = scheduler.qparams.chunks_exact(2);
                    let targets: Vec<Target> =
                        rows.map(|row| Target::new(row[0], row[1])).collect();
                    if targets.len() != nqueues {
                        return Err(Missing::Unknown(format!("{name} without targets")));
                    }
                    AnyPolicy::UbmtLike(UbmtLike::new(targets))
                }
                Own::BbsLike => AnyPolicy::FrameLike(FrameLike::new(nqueues, Search::BestFrame)),
                Own::BpsLike => AnyPolicy::FrameLike(FrameLike::new(nqueues, Search::BestPacket)),
                Own::TauranPf | Own::TauranCodes => {
                    let Some((fading, offsets_ns)) = channel else {
                        return Err(Missing::NeedsSatellite(name));
                    };
                    AnyPolicy::TauranPf(TauranPf::new(fading.clone(), offsets_ns, timeout_ns))
                }
            });
        }
        let known = |name: &str| {
            linkweir_core::policy(name).ok_or_else(|| Missing::Unknown(name.to_owned()))
        };
        let info = known(&scheduler.policy)?;
        let Some(across) = &scheduler.across else {
            return CorePolicy::new(info, view, &scheduler.params, &scheduler.qparams)
                .map(AnyPolicy::Core)
                .map_err(Missing::Refused);
        };
        let across = Settings {
            info: known(&across.policy)?,
            params: &across.params,
            qparams: &across.qparams,
        };
        let inside = Settings {
            info,
            params: &scheduler.params,
            qparams: &scheduler.qparams,
        };
        Nested::new(view, &users(&experiment.classes), across, inside)
            .map(|nested| AnyPolicy::Nested(Box::new(nested)))
            .map_err(Missing::Refused)
    }

    /// A class whose head has waited too long, and how long it may wait, ns; the same class until that head is gone. None
    /// when there is no such class.
    pub(crate) fn overdue(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        match self {
            AnyPolicy::TauranPf(policy) => policy.overdue(now_ns),
            _ => None,
        }
    }

    /// Whether its choices depend on the reported rates of the channels, beyond whether one is blocked.
    pub(crate) fn is_channel_aware(&self) -> bool {
        match self {
            AnyPolicy::Core(policy) => !policy.info().ignores_rates,
            AnyPolicy::Brought(brought) => !brought.declaration.ignores_rates,
            AnyPolicy::Nested(nested) => {
                let ignores = |info: &PolicyInfo| info.ignores_rates;
                !ignores(nested.across().info()) || !ignores(nested.inside())
            }
            AnyPolicy::UbmtLike(_) | AnyPolicy::FrameLike(_) => true,
            // It reads the channel directly.
            AnyPolicy::TauranPf(_) => false,
        }
    }

    /// Whether it reads a satellite's channels directly, without reports.
    pub(crate) fn reads_channels(&self) -> bool {
        matches!(self, AnyPolicy::TauranPf(_))
    }

    /// From now on it knows the channels of the classes by these samples of the fading instead of reading the present ones.
    pub(crate) fn foresee(&mut self, samples: &[usize]) {
        if let AnyPolicy::TauranPf(policy) = self {
            policy.foresee(samples);
        }
    }

    /// The values it shows of each class.
    pub(crate) fn stats(&self) -> &'static [Stat] {
        match self {
            AnyPolicy::Core(policy) => &policy.info().stats,
            AnyPolicy::Brought(brought) => &brought.declaration.stats,
            AnyPolicy::Nested(nested) => &nested.inside().stats,
            _ => &[],
        }
    }
}

impl Policy for AnyPolicy {
    #[inline]
    fn pick(&mut self, view: &View<'_>) -> Pick {
        ask!(self, policy => policy.pick(view))
    }

    #[inline]
    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        ask!(self, policy => policy.enqueued(view, q, bytes))
    }

    #[inline]
    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        ask!(self, policy => policy.sent(view, q, bytes))
    }

    #[inline]
    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        ask!(self, policy => policy.dropped(view, q, bytes))
    }

    fn rated(&mut self, view: &View<'_>) {
        ask!(self, policy => policy.rated(view))
    }

    #[inline]
    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        ask!(self, policy => policy.victim(view, q, bytes))
    }

    #[inline]
    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        ask!(self, policy => policy.leaving(view, q, ecn))
    }

    #[inline]
    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        ask!(self, policy => policy.expired(view, q))
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        ask!(self, policy => policy.observe(view, q, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use linkweir_core::{Limit, Mux};

    const CLASSES: usize = 6;
    const LINK_BPS: u64 = 50_000_000;

    /// Classes in the order in which a core policy serves them. Rates change before each choice, never to 0, or not at all.
    fn order(policy: &str, rates_change: bool) -> Vec<Option<usize>> {
        let info = linkweir_core::policy(policy).unwrap();
        let limits = [Limit::default(); CLASSES];
        let mut mux = Mux::new(0, LINK_BPS, &limits, |view| {
            let qparams = info.default_qparams(CLASSES);
            CorePolicy::new(info, view, &info.default_params(), &qparams)
        })
        .unwrap();
        let (mut packets, mut channels) = (Random::new(1, 0), Random::new(2, 0));
        let below = |random: &mut Random, most: usize| (random.unit() * most as f64) as usize;
        let choices = (1..=3_000u64).map(|step| {
            let now_ns = 100_000 * step;
            for _ in 0..below(&mut packets, 3) {
                let class = below(&mut packets, CLASSES);
                let bytes = 40 + below(&mut packets, 1_400) as u32;
                mux.enqueue(now_ns, class, bytes, (), |(), _, _| {});
            }
            if rates_change {
                let rates = [(); CLASSES].map(|()| 1 + below(&mut channels, 90_000_000) as u64);
                mux.set_rates(now_ns, rates);
            }
            let departure = mux.dequeue(now_ns, |()| false, |(), _, _| {});
            departure.map(|departure| departure.class)
        });
        choices.collect()
    }

    #[test]
    fn policies_that_say_so_ignore_rates() {
        for info in linkweir_core::policies() {
            let same = order(info.name, true) == order(info.name, false);
            assert!(same || !info.ignores_rates, "{} reads rates", info.name);
        }
        // The order differs where a policy does read them, so that the test can fail.
        for name in ["pf", "codes", "mlwdf", "exp_pf", "exp_rule"] {
            assert_ne!(order(name, true), order(name, false), "{name}");
        }
    }
}
