// SPDX-License-Identifier: BSD-3-Clause
//! What to simulate: link, scheduler, classes, flows and time, as plain values in base units.
//!
//! This is the resolved form. People write scenarios (see [`crate::scenario`]), whose parser checks units, names and
//! ranges once; an [`Experiment`] needs no further check.

use std::collections::BTreeMap;
use std::sync::Arc;

use linkweir_core::{Declaration, Isolation, Limit, Maker, PolicyInfo};
pub use linkweir_core::{Full, Paths, TimeLimit, MAX_PACKET_BYTES};

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
    /// The paths, when the link is a bond of several. Their rates, delays and losses then take the place of those above, of
    /// which the capacity and the nominal rate are sums.
    pub bond: Option<Box<Bond>>,
}

/// Several links behind one scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Bond {
    /// Its members, in the order in which they were named.
    pub members: Vec<Member>,
    /// How each class of the scheduler uses them.
    pub classes: Vec<Bonded>,
    /// How long a packet of a class that prefers some members may wait for them before it may take another, ns.
    pub room_ns: u64,
    /// After how long it is known that a member loses all packets, or loses them no longer, ns.
    pub detect_ns: u64,
}

impl Bond {
    /// What the sender knows while all members are up and have their nominal rates: their costs and how classes use them.
    #[must_use]
    pub fn nominal(&self) -> linkweir_core::Bond {
        let path = |member: &Member| linkweir_core::Path {
            cost: member.cost,
            up: true,
            rate_bps: member.link.nominal_bps,
            delay_ns: 0,
        };
        let paths: Vec<linkweir_core::Path> = self.members.iter().map(path).collect();
        let uses: Vec<Paths> = self.classes.iter().map(|class| class.paths).collect();
        linkweir_core::Bond::new(&paths, &uses, self.room_ns)
    }

    /// How much of what is promised to each class, bit/s, its members can carry: all together, then without each one.
    #[must_use]
    pub fn kept(&self, promised_bps: &[u64]) -> Vec<Vec<linkweir_core::Kept>> {
        let mut known = self.nominal();
        let mut all = vec![known.kept(promised_bps)];
        for at in 0..self.members.len() {
            let path = known.paths()[at];
            known.set_path(at, linkweir_core::Path { up: false, ..path });
            all.push(known.kept(promised_bps));
            known.set_path(at, path);
        }
        all
    }
}

/// A link of a bond.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name. The random numbers of its losses come from the seed and this name.
    pub name: String,
    /// The link. While its rate is 0 it is known to be down; while its loss is 1 it loses all, and that is found out later.
    pub link: Link,
    /// What it costs, in any unit.
    pub cost: u64,
}

/// How a class uses the members of a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bonded {
    /// Which of them its packets may take.
    pub paths: Paths,
    /// How long the receiver may hold a packet to restore the order, ns; none: it is not restored.
    pub reorder_ns: Option<u64>,
    /// Whether what a member held when it was found to be dead is sent again.
    pub resend: bool,
}

impl Link {
    /// A link of a constant rate, bit/s, without delay, losses and overhead.
    #[must_use]
    pub fn of_rate(bps: u64) -> Link {
        Link {
            capacity: Capacity::Rate(Signal::Constant(bps as f64)),
            nominal_bps: bps,
            follow: false,
            delay_s: Signal::Constant(0.0),
            return_delay_ns: 0,
            loss: Signal::Constant(0.0),
            loss_burst_pkts: None,
            reorder: None,
            ring: 1,
            overhead_bytes: 0,
            mpu_bytes: 0,
            satellite: None,
            beam: None,
            bond: None,
        }
    }
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
/// terminal lets it. A user ([`users`]) is a terminal.
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
    /// Users look into the same fading this far apart, ns: user k at k times as much. Users are those of the classes
    /// ([`users`]), unless `flows_are_users`.
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
    /// A policy that looks at channels knows them as they were so long before the packet that it may choose meets them, ns.
    /// None: as they are when it looks or, from reports, as old as those; the packet meets its channel at its reception.
    pub csi_age_ns: Option<u64>,
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
    /// Flow i is this much times i behind in the first, ns. Where a class names its user, it is the number of its user that
    /// counts.
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

/// A policy that the user brings along. Two are equal if they are the same object.
#[derive(Clone, Debug)]
pub struct Brought(pub Arc<dyn Maker>);

impl Brought {
    /// Its name, its parameters and what it shows.
    #[must_use]
    pub fn declaration(&self) -> &'static Declaration {
        self.0.declaration()
    }
}

impl PartialEq for Brought {
    fn eq(&self, other: &Brought) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A policy and its parameters, complete and accepted by its own checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduler {
    /// Name of the policy.
    pub policy: String,
    /// The policy, if it is neither one of the core nor one of the simulator.
    pub brought: Option<Brought>,
    /// One value per parameter of the policy's table.
    pub params: Vec<u64>,
    /// One row per class, one value per per-queue parameter.
    pub qparams: Vec<u64>,
    /// The policy across users, if there is one; then the policy above is the one inside each user.
    pub across: Option<Across>,
}

impl Scheduler {
    /// The policy, if it is one of the core. One that the user brought along may have the name of one.
    #[must_use]
    pub fn core(&self) -> Option<&'static PolicyInfo> {
        match self.brought {
            Some(_) => None,
            None => linkweir_core::policy(&self.policy),
        }
    }

    /// Which classes hold the packets with ECT(1) or CE; empty if the policy does not sort packets by ECN.
    #[must_use]
    pub fn l4s(&self) -> Vec<bool> {
        let core = self.core().map(|info| &**info);
        let declared = self.brought.as_ref().map(Brought::declaration).or(core);
        let Some(declared) = declared.filter(|declared| declared.sorted_by_ecn) else {
            return Vec::new();
        };
        let Some(at) = declared.qparam("l4s") else {
            return Vec::new();
        };
        let rows = self.qparams.chunks(declared.qparams.len());
        rows.map(|row| row[at] != 0).collect()
    }

    /// The first-in-first-out queue.
    #[must_use]
    pub fn fifo() -> Scheduler {
        Scheduler {
            policy: "fifo".to_owned(),
            brought: None,
            params: Vec::new(),
            qparams: Vec::new(),
            across: None,
        }
    }
}

/// A policy of the core across users ([`users`]), and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Across {
    /// Its name.
    pub policy: String,
    /// One value per parameter of its table.
    pub params: Vec<u64>,
    /// One row per user, one value per per-queue parameter.
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
    /// Queue limit in accounted bytes, by the time in which the link carries them.
    pub limit_time: Option<TimeLimit>,
    /// How long a packet may wait, ns: one that has waited longer is dropped.
    pub max_age_ns: Option<u64>,
    /// What is dropped where there is no room.
    pub full: Full,
    /// Least share of what leaves while packets of the class wait, millionths.
    pub least_ppm: u32,
    /// How its flows are isolated from each other, if they are.
    pub flows: Option<Isolation>,
    /// The user it belongs to: classes of one user share a channel. None: it is a user of its own.
    pub user: Option<String>,
    /// How its packets are coded on a satellite link; none: as the link's are.
    pub coded: Option<Coded>,
}

/// The length of the packets that are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coded {
    /// All have these bytes; shorter ones are filled up.
    Bytes(u32),
    /// Each has its own.
    Each,
}

/// The user of each class, numbered from 0 in the order of their first classes.
#[must_use]
pub fn users(classes: &[Class]) -> Vec<usize> {
    let mut numbers = BTreeMap::new();
    let mut count = 0;
    let mut next = || {
        count += 1;
        count - 1
    };
    let numbered = classes.iter().map(|class| match &class.user {
        Some(name) => *numbers.entry(name.as_str()).or_insert_with(&mut next),
        None => next(),
    });
    numbered.collect()
}

/// The first class of each user.
#[must_use]
pub fn first_classes(users: &[usize]) -> Vec<usize> {
    let mut firsts = Vec::new();
    for (class, &user) in users.iter().enumerate() {
        if user == firsts.len() {
            firsts.push(class);
        }
    }
    firsts
}

impl Class {
    /// A class of this name without limits.
    #[must_use]
    pub fn named(name: &str) -> Class {
        Class {
            name: name.to_owned(),
            limit_pkts: None,
            limit_bytes: None,
            limit_time: None,
            max_age_ns: None,
            full: Full::Tail,
            least_ppm: 0,
            flows: None,
            user: None,
            coded: None,
        }
    }

    /// Whether its packets are sorted by their ECN codepoints.
    #[must_use]
    pub fn sorts_by_ecn(&self) -> bool {
        self.flows.is_some_and(Isolation::sorts_by_ecn)
    }

    /// What its queue may hold.
    #[must_use]
    pub fn limit(&self) -> Limit {
        Limit {
            pkts: self.limit_pkts,
            bytes: self.limit_bytes,
            time: self.limit_time,
            max_age_ns: self.max_age_ns,
            full: self.full,
            least_ppm: self.least_ppm,
        }
    }
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

/// Length of the intervals in which calls are counted, ns.
pub const CALL_INTERVAL_NS: u64 = 10_000_000_000;

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
    /// A codec's packets at even intervals.
    Voice {
        /// Length of a packet, IP, UDP and RTP headers included.
        packet_bytes: u32,
        /// From packet to packet, ns.
        interval_ns: u64,
        /// Mean lengths of talk spurts and pauses, ns, when nothing is sent in pauses.
        talkspurts_ns: Option<(u64, u64)>,
        /// Each interval is multiplied by a random number of 1 - jitter .. 1 + jitter.
        jitter: f64,
    },
    /// Packets at the times at which they were recorded.
    Replay {
        /// Time after the start, ns, and bytes, in order.
        packets: Arc<[(u64, u32)]>,
        /// After how long they start again, ns.
        period_ns: Option<u64>,
    },
    /// TCP connections that an application opens, and what it writes into them.
    Application(Box<Application>),
}

impl Traffic {
    /// Its TCP, if it has one.
    #[must_use]
    pub fn tcp(&self) -> Option<&tcp::Config> {
        match self {
            Traffic::Tcp(config) => Some(config),
            Traffic::Application(application) => Some(&application.tcp),
            _ => None,
        }
    }

    /// Whether it is TCP that answers the number of marks, and says so by ECT(1) (RFC 9331).
    #[must_use]
    pub fn is_scalable(&self) -> bool {
        self.tcp().is_some_and(tcp::Config::has_accurate_ecn)
    }
}

/// An application over TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// Every connection; `bytes_to_send` is `Some(0)`, as the application supplies all data.
    pub tcp: tcp::Config,
    /// What the application does.
    pub session: Session,
}

impl Application {
    /// Most connections at once.
    #[must_use]
    pub fn connections(&self) -> u32 {
        match &self.session {
            Session::Transfers { concurrent, .. } => *concurrent,
            Session::Web { connections, .. } => *connections,
            Session::Requests { .. } | Session::Video(_) => 1,
        }
    }
}

/// Kinds of applications.
#[derive(Clone, Debug, PartialEq)]
pub enum Session {
    /// Transfers of finite size, a connection each, opened by the sender.
    Transfers {
        /// When they begin.
        arrivals: Arrivals,
        /// Bytes of each.
        size: Amount,
        /// Most connections at once; a transfer that would be one more is refused.
        concurrent: u32,
    },
    /// Requests over one connection, each after a pause that follows the response before it.
    Requests {
        /// Bytes of a response.
        response: Amount,
        /// Time the server needs for a response, ns.
        server_ns: Amount,
        /// Pause between a response and the next request, ns.
        think_ns: Amount,
    },
    /// Pages, each of a main object that names further objects, over new connections.
    Web {
        /// Bytes of the main object.
        main: Amount,
        /// Number of further objects.
        objects: Amount,
        /// Bytes of each.
        object: Amount,
        /// Most connections at once.
        connections: u32,
        /// Time the server needs for a response, ns.
        server_ns: Amount,
        /// Pause between a page and the next one, ns.
        think_ns: Amount,
    },
    /// Segments of a video over one connection, each encoded at one of several rates.
    Video(Video),
}

/// An adaptive video.
#[derive(Clone, Debug, PartialEq)]
pub struct Video {
    /// Rates at which every segment exists, bit/s, rising.
    pub ladder_bps: Arc<[f64]>,
    /// Playing time of a segment, ns.
    pub segment_ns: u64,
    /// Most playing time the player keeps, ns.
    pub buffer_ns: u64,
    /// Playing time that must be there before playing begins, and begins again after a stall, ns.
    pub startup_ns: u64,
    /// How the player chooses rates.
    pub adaptation: RateRule,
    /// Time the server needs for a response, ns.
    pub server_ns: Amount,
}

/// How a video player chooses the rate of the next segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateRule {
    /// BBA-0 of Huang et al. 2014, from the buffer alone.
    Buffer {
        /// Up to this level the lowest rate, ns.
        reservoir_ns: u64,
        /// From the reservoir to the highest rate, ns.
        cushion_ns: u64,
    },
    /// The highest rate below a part of the harmonic mean of the last throughputs (Jiang et al. 2012).
    Throughput {
        /// Segments in the mean.
        segments: u32,
        /// The part.
        safety: f64,
    },
}

/// When transfers begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// With exponential gaps of this mean, ns.
    Poisson {
        /// Mean gap.
        mean_ns: f64,
    },
    /// One gap after another, the first one at the start, ns.
    Periodic {
        /// The gap.
        every_ns: u64,
    },
    /// At these times after the start, ns, in order.
    At(Arc<[u64]>),
}

/// A random amount, such as the bytes of a transfer or the ns of a pause.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// What is drawn.
    pub distribution: Distribution,
    /// A smaller draw counts as this.
    pub least: f64,
    /// A greater draw counts as this.
    pub most: f64,
}

/// Distributions of amounts.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(f64),
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Pareto.
    Pareto {
        /// Mean.
        mean: f64,
        /// Shape, above 1.
        shape: f64,
    },
    /// The logarithm is normal.
    Lognormal {
        /// Mean.
        mean: f64,
        /// Standard deviation of the amount itself.
        deviation: f64,
    },
    /// (amount, part of all draws up to it), rising to 1. Between two of them all amounts are as likely; the part of the
    /// first one is that amount's.
    Empirical(Arc<[(f64, f64)]>),
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
