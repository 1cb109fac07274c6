// SPDX-License-Identifier: BSD-3-Clause
//! What to simulate: link, scheduler, classes, flows and time, as plain values in base units.
//!
//! This is the resolved form. People write scenarios (see [`crate::scenario`]), whose parser checks units, names and
//! ranges once; an [`Experiment`] needs no further check.

use std::sync::Arc;

use crate::satellite::rain::{Attenuation, Rain};
use crate::satellite::recent;
use crate::satellite::{
    fading::Fading, harq::Harq, lms::Lms, modcod::Adaptation, reorder::Reordering,
};
use crate::tcp;

pub use linkweir_config::signal::{as_steps, Capacity, End, Outages, Signal};

/// One simulation run.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Name shown in reports.
    pub name: String,
    /// Simulated time, ns.
    pub duration_ns: u64,
    /// Start of the time that totals and distributions cover, ns; series always start at 0.
    pub warmup_ns: u64,
    /// Width of the bins of every series, ns.
    pub interval_ns: u64,
    /// Seed of every random number of the run.
    pub seed: u64,
    /// The bottleneck.
    pub link: Link,
    /// Policy and its parameters.
    pub scheduler: Scheduler,
    /// Classes in queue order: class `i` is the scheduler's queue `i`.
    pub classes: Vec<Class>,
    /// Traffic, already expanded: one entry per source.
    pub flows: Vec<Flow>,
    /// Most rows of the log of packets, if there is one.
    pub log_rows: Option<u64>,
}

/// The bottleneck link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The capacity that the link offers over time.
    pub capacity: Capacity,
    /// Capacity that the scheduler assumes, bit/s.
    pub nominal_bps: u64,
    /// Whether every change of the capacity is reported to the scheduler (else only the nominal rate, once).
    pub follow: bool,
    /// One-way propagation delay over time, seconds. Packets never overtake each other. A satellite's own delays take its
    /// place.
    pub delay_s: Signal,
    /// Propagation delay of the way back (acknowledgements), ns. A satellite's own delays take its place.
    pub return_delay_ns: u64,
    /// Probability that a packet is lost behind the scheduler.
    pub loss: Signal,
    /// Mean number of packets in a burst of losses, at least 1; none: each packet is lost independently. With bursts, `loss` is
    /// constant, below 1, and at most burst / (burst + 1).
    pub loss_burst_pkts: Option<f64>,
    /// Packets that are held back behind the scheduler, so that later ones overtake them.
    pub reorder: Option<Reorder>,
    /// Packets the device pulls from the scheduler at once; it asks again when all have left.
    pub ring: u32,
    /// Bytes added to every packet on the wire (may be negative).
    pub overhead_bytes: i32,
    /// Smallest accounted packet, bytes.
    pub mpu_bytes: u32,
    /// Channel, coding and repetitions, when the link is one from a satellite.
    pub satellite: Option<Satellite>,
    /// Channels of the terminals, when the link is a beam. Their rates then take the place of the capacity, which is only
    /// the greatest of them that is possible.
    pub beam: Option<Beam>,
}

/// Reordering: some packets take longer than others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Part of the packets that are held back.
    pub probability: f64,
    /// By how much, ns.
    pub delay_ns: u64,
}

/// One carrier to many terminals, one after another in time: a packet takes as long as the modulation and code of its
/// terminal lets it. A class is a terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Beam {
    /// Symbols per second.
    pub symbol_rate_bd: f64,
    /// Es/N0 of the terminals without rain.
    pub clear_sky: ClearSky,
    /// How modulation and code follow Es/N0.
    pub adaptation: Adaptation,
    /// How often channel, modulation and code change, ns.
    pub tick_ns: u64,
    /// The attenuation by rain.
    pub weather: Weather,
    /// Seed of what is drawn of the channel.
    pub seed: u64,
}

/// Es/N0 of terminals without rain, dB.
#[derive(Clone, Debug, PartialEq)]
pub enum ClearSky {
    /// The same for all.
    Same(f64),
    /// One each.
    Each(Arc<[f64]>),
    /// Drawn for each, uniform between these.
    Between(f64, f64),
}

/// Where a beam's attenuation comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Weather {
    /// There is none.
    Clear,
    /// Generated during the run.
    Rain(Rain),
    /// As it was recorded.
    Recorded(Attenuation),
}

/// A link from a satellite to moving users, whose packets are coded, fade, and are repeated until they are decoded.
/// The receiver's answer takes the propagation delay and no bandwidth; repetitions go before everything that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Satellite {
    /// The fading.
    pub channel: Channel,
    /// Users look into the same fading this far apart, ns: user k at k times as much. A class is a user, unless `flows_are_users`.
    pub user_offset_ns: u64,
    /// Coding and repetitions.
    pub harq: Harq,
    /// Delay from the satellite's receiver to the user, ns.
    pub ground_delay_ns: u64,
    /// Delays before and behind the satellite, in place of the link's and of the flows' access delays.
    pub delays: Option<Delays>,
    /// A flow is a user, not a class: packets meet the channel of their flow, whatever queue they share.
    pub flows_are_users: bool,
    /// From one report of each class's channel to the scheduler to the next, ns (the channel of its first flow, where flows
    /// are users). A report is as old as it takes to reach the satellite.
    pub csi_tick_ns: u64,
    /// Repetitions for every user see the channel of user 0, as in the simulations of Tauran et al. 2018.
    pub repeats_see_first_user: bool,
    /// The first attempt also carries the packet uncoded, as there.
    pub uncoded_too: bool,
    /// The buffer that puts packets back into order behind the decoder, if there is one.
    pub reordering: Option<Reordering>,
}

/// Delays through a constellation, over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Delays {
    /// From the sources to the last satellite, seconds. A flow's packets never overtake each other.
    pub to_satellite_s: Signal,
    /// From there to the ground, seconds, for every flow.
    pub to_ground_s: Signal,
    /// Where in both the run starts, ns.
    pub start_ns: u64,
    /// Flow i is this much times i behind in the first, ns.
    pub shift_ns: u64,
    /// Delay to the satellite of flows whose shift is longer than the time passed, for which `to_satellite_s` has no value yet,
    /// seconds.
    pub before_s: f64,
    /// Times of the run at which no path joins the two ends, so that nothing is sent.
    pub outages: Outages,
}

/// Where fading comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Channel {
    /// Samples, as they are.
    Recorded(Fading),
    /// A drive, generated when the run starts: 1 ms from sample to sample.
    Drive {
        /// Where it leads.
        lms: Box<Lms>,
        /// Its random numbers.
        seed: u64,
        /// After how long it starts again, ns.
        period_ns: u64,
    },
}

impl Channel {
    /// From sample to sample of a drive, ns.
    const STEP_NS: u64 = 1_000_000;

    /// After how long it starts again, ns: whole samples.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        match self {
            Channel::Recorded(fading) => fading.period_ns(),
            Channel::Drive { period_ns, .. } => period_ns / Channel::STEP_NS * Channel::STEP_NS,
        }
    }

    /// The samples; of a drive only those up to a time in a round, ns, as later ones are not needed.
    ///
    /// # Panics
    /// When a drive is shorter than a sample.
    #[must_use]
    pub fn fading(&self, until_ns: u64) -> Fading {
        match self {
            Channel::Recorded(fading) => fading.clone(),
            Channel::Drive {
                lms,
                seed,
                period_ns,
            } => {
                let round = (period_ns / Channel::STEP_NS) as usize;
                let samples = (until_ns / Channel::STEP_NS) as usize + 1;
                recent::generate(lms, *seed, Channel::STEP_NS, samples.min(round))
                    .beginning_of(round)
            }
        }
    }
}

/// A policy of the core and its parameters, complete and accepted by the core's own checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduler {
    /// Name of the policy.
    pub policy: String,
    /// One value per parameter of the policy's table.
    pub params: Vec<u64>,
    /// One row per class, one value per per-queue parameter.
    pub qparams: Vec<u64>,
}

/// A traffic class: one queue of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name shown in results.
    pub name: String,
    /// Queue limit in packets; a packet that would exceed it is dropped on arrival.
    pub limit_pkts: Option<u32>,
    /// Queue limit in accounted bytes.
    pub limit_bytes: Option<u64>,
}

/// One source and its sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Name shown in results; copies of one entry are numbered.
    pub name: String,
    /// Index of its class.
    pub class: usize,
    /// First instant, ns.
    pub start_ns: u64,
    /// No packet is created from this instant on, ns.
    pub stop_ns: u64,
    /// One-way delay between source and bottleneck queue (and of acknowledgements on the way back), ns. A satellite's own
    /// delays take its place.
    pub access_delay_ns: u64,
    /// The traffic of the source.
    pub traffic: Traffic,
    /// Measurements of this flow that are made only where they are asked for.
    pub measures: Measures,
}

/// Measurements of a flow that are made only where they are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    /// The flow has distributions of its own in table `delays`.
    pub delays: bool,
    /// Play-out buffers of receivers, whose doings are in table `voice`.
    pub playout: Vec<Playout>,
}

/// A play-out buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Playout {
    /// Name shown in results.
    pub name: String,
    /// Length of a fixed one, ns; none of an adaptive one.
    pub buffer_ns: Option<u64>,
}

/// Kinds of sources. Rates count the packets' own bytes, without the link's overhead.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// Constant spacing, from a rate that may itself change over time.
    Cbr {
        /// bit/s.
        rate_bps: Signal,
        /// Each gap is multiplied by a uniform number in `1 +- jitter`; 0 is none.
        jitter: f64,
        /// Packet sizes.
        packet: Sizes,
    },
    /// Exponential gaps.
    Poisson {
        /// bit/s.
        rate_bps: Signal,
        /// Packet sizes.
        packet: Sizes,
    },
    /// Alternating bursts at a constant rate and silences.
    OnOff {
        /// Rate while on, bit/s.
        rate_bps: f64,
        /// Mean length of a burst, ns.
        on_ns: u64,
        /// Mean length of a silence, ns.
        off_ns: u64,
        /// Distribution of both.
        lengths: Lengths,
        /// Packet sizes.
        packet: Sizes,
    },
    /// Always backlogged: keeps this many packets waiting in its queue.
    Greedy {
        /// Packets kept waiting.
        backlog_pkts: u32,
        /// Packet sizes.
        packet: Sizes,
    },
    /// A bulk TCP transfer.
    Tcp(tcp::Config),
}

/// Distribution of burst and silence lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lengths {
    /// Exponential.
    Exponential,
    /// Pareto with this shape (> 1).
    Pareto {
        /// Shape parameter.
        shape: f64,
    },
}

/// Packet sizes in bytes, drawn independently.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// The same for every packet.
    Fixed(u32),
    /// (bytes, weight) with weights > 0.
    Mix(Arc<[(u32, f64)]>),
    /// Uniform between two values, inclusive.
    Uniform(u32, u32),
}
