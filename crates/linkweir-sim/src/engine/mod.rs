// SPDX-License-Identifier: BSD-3-Clause
//! The event engine: sources, scheduler, link, propagation, receivers and the way back, driven by one agenda of events.
//!
//! ```text
//!  source --access delay--> Mux(policy) --pull--> ring --rate--> loss --propagation--> receiver
//!  sender <------------- access delay + return delay, no queue, no loss ------------------ acks
//! ```
//!
//! A satellite's delays, where it has some, take the place of all three.
//!
//! Events of one time run in the order in which they were scheduled. A pipe that keeps order has one entry, for its
//! first item; timers are left where they are and looked at when they fire; intervals of the series are not events: an
//! interval ends before the first event at or after its end. Nothing is allocated per packet once queues have grown.

mod access;
mod agenda;
mod beam;
mod device;
mod line;
mod satellite;

use std::fmt;
use std::ops::ControlFlow;

use linkweir_core::{Departure, Fault, Limit, Mux};

use crate::experiment::{Capacity, Experiment, Signal, Sizes, Traffic};
use crate::metrics::Recorder;
use crate::policies::{AnyPolicy, Missing};
use crate::random::Random;
use linkweir_config::signal::Track;
use crate::table::Sink;
use crate::tcp;
use crate::traffic::Source;

use access::{Access, Behind};
use agenda::Agenda;
use beam::Terminals;
use device::Device;
use line::DelayLine;
use satellite::Sky;

/// How often a scheduler that follows a smoothly changing or recorded capacity is told of it, ns.
const TELL_NS: u64 = 10_000_000;
/// Width of the window over which recorded opportunities become a rate, in tellings.
const TELL_WINDOW: usize = 10;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether all of the experiment was simulated.
    pub complete: bool,
    /// Simulated time, ns.
    pub simulated_ns: u64,
    /// Events that were run.
    pub events: u64,
    /// Packets the scheduler handed to the link.
    pub packets: u64,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq)]
pub enum RunError {
    /// The experiment contradicts itself.
    Invalid(String),
    /// The policy refuses its parameters.
    Policy(Fault),
    /// The sink refused a chunk, with its message.
    Sink(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Invalid(message) | RunError::Sink(message) => f.write_str(message),
            RunError::Policy(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

/// Simulates an experiment; its tables go to `sink` as they fill.
///
/// # Errors
/// An experiment that contradicts itself, parameters the policy refuses, a sink that refuses a chunk.
pub fn run(experiment: &Experiment, sink: &mut dyn Sink) -> Result<Outcome, RunError> {
    Engine::new(experiment)?.run(sink)
}

/// A packet in the simulator, copied at every step of its way.
#[derive(Clone, Copy, Debug)]
struct Packet {
    created_ns: u64,
    /// TCP: number of the segment. Above it are two bits, `SENT_BEFORE` and, of any packet, `IN_TOTALS`.
    segment: u64,
    flow: u32,
    /// Its own bytes, without the link's overhead.
    bytes: u32,
}

impl Packet {
    const SENT_BEFORE: u64 = 1 << 63;
    const IN_TOTALS: u64 = 1 << 62;

    /// TCP: number of the segment.
    fn sequence(&self) -> u64 {
        self.segment & !(Packet::SENT_BEFORE | Packet::IN_TOTALS)
    }

    /// It arrived at its queue after the warm-up.
    fn is_in_totals(&self) -> bool {
        self.segment & Packet::IN_TOTALS != 0
    }

    fn is_retransmission(&self) -> bool {
        self.segment & Packet::SENT_BEFORE != 0
    }
}

/// What an event's number says: the kind in the upper four bits, an index below.
mod event {
    // Those of which, at index 0, one at most is pending: they have lanes (agenda.rs).
    pub(super) const SENT: u32 = 0;
    pub(super) const ARRIVAL: u32 = 1 << 28;
    pub(super) const DECODE: u32 = 2 << 28;
    pub(super) const ANSWER: u32 = 3 << 28;
    pub(super) const ACCESS: u32 = 4 << 28;
    pub(super) const ACK: u32 = 5 << 28;
    pub(super) const LANES: usize = 6;

    pub(super) const SOURCE: u32 = 6 << 28;
    pub(super) const SENDER_TIMER: u32 = 7 << 28;
    pub(super) const RECEIVER_TIMER: u32 = 8 << 28;
    pub(super) const OPPORTUNITY: u32 = 9 << 28;
    pub(super) const TELL: u32 = 10 << 28;
    pub(super) const RETRY: u32 = 11 << 28;
    pub(super) const ORDER: u32 = 12 << 28;
    pub(super) const CSI: u32 = 13 << 28;
    pub(super) const CHANNEL: u32 = 14 << 28;
    pub(super) const INDEX: u32 = (1 << 28) - 1;

    /// The lane of an event that has one.
    pub(super) fn lane(event: u32) -> Option<usize> {
        let kind = (event >> 28) as usize;
        (kind < LANES && event & INDEX == 0).then_some(kind)
    }
}

struct Engine<'a> {
    experiment: &'a Experiment,
    now_ns: u64,
    agenda: Agenda,
    mux: Mux<AnyPolicy, Packet>,
    device: Device,
    /// What is between satellite and users, when the link is from one.
    sky: Option<Sky>,
    /// What the terminals hear, when the link is a beam's.
    terminals: Option<Terminals>,
    /// The device is being served: what arrives now does not start it.
    pulling: bool,
    flows: Vec<Flow>,
    /// Some flow is greedy; else nobody asks whose packets leave.
    any_greedy: bool,
    /// Greedy flows that lack packets.
    short: Vec<u32>,
    /// Those of them that are having their turn.
    refilling: Vec<u32>,
    access: Vec<DelayLine<Packet>>,
    acks: Vec<DelayLine<(u32, tcp::Ack)>>,
    propagation: DelayLine<Packet>,
    delay: Varying,
    loss: Varying,
    loss_random: Random,
    told: Track,
    told_window: [f64; TELL_WINDOW],
    told_count: usize,
    recorder: Recorder,
    packets: u64,
    values: Vec<i64>,
}

struct Flow {
    class: usize,
    stop_ns: u64,
    access: Access,
    kind: Kind,
}

enum Kind {
    Open(Source),
    Greedy {
        backlog_pkts: u32,
        waiting_pkts: u32,
        /// Stands in the engine's list of those that lack packets.
        short: bool,
        next_bytes: u32,
        sizes: Sizes,
        random: Random,
    },
    Tcp(Box<Connection>),
}

struct Connection {
    sender: tcp::Sender,
    receiver: tcp::Receiver,
    config: tcp::Config,
    /// Line for its segments; none when there is no access delay.
    access: Option<u32>,
    /// Line for its acknowledgements.
    ack: u32,
    /// Times of the timers' entries among the pending events.
    sender_timer_ns: Option<u64>,
    receiver_timer_ns: Option<u64>,
}

/// A signal that mostly does not change.
#[derive(Debug)]
enum Varying {
    Fixed(f64),
    Track(Track),
}

impl Varying {
    fn new(signal: &Signal) -> Varying {
        match signal {
            Signal::Constant(value) => Varying::Fixed(*value),
            _ => Varying::Track(Track::new(signal)),
        }
    }

    #[inline]
    fn value(&mut self, now_ns: u64) -> f64 {
        match self {
            Varying::Fixed(value) => *value,
            Varying::Track(track) => track.value(now_ns),
        }
    }
}

impl<'a> Engine<'a> {
    fn new(experiment: &'a Experiment) -> Result<Engine<'a>, RunError> {
        validate(experiment).map_err(RunError::Invalid)?;
        let limits: Vec<Limit> = experiment
            .classes
            .iter()
            .map(|class| Limit {
                pkts: class.limit_pkts,
                bytes: class.limit_bytes,
            })
            .collect();
        let link = &experiment.link;
        let heard = link.satellite.as_ref().map(|s| {
            let ahead = satellite::Ahead::new(s, experiment);
            let until_ns = ahead.furthest_ns(experiment.duration_ns);
            (s, s.channel.fading(until_ns), ahead)
        });
        let mux = Mux::new(0, link.nominal_bps, &limits, |view| {
            let channel = heard.as_ref();
            let channel = channel.map(|(_, fading, ahead)| (fading, &ahead.classes_ns[..]));
            AnyPolicy::new(experiment, channel, view)
        })
        .map_err(|missing| match missing {
            Missing::Unknown(name) => RunError::Invalid(format!("there is no policy named {name}")),
            Missing::NeedsSatellite(name) => RunError::Invalid(format!(
                "{name} knows its users by a satellite's channel, and the link has none"
            )),
            Missing::Refused(fault) => RunError::Policy(fault),
        })?;
        let stats = mux.policy().stats();

        let delays = link.satellite.as_ref().and_then(|s| s.delays.as_ref());
        let behind = delays.map(|delays| (Behind::new(delays), delays.shift_ns));
        // Flows of the same delay share a line; a delay that varies has one for each flow.
        let mut access_delays = Vec::new();
        let mut ack_delays = Vec::new();
        let line_of = |delays: &mut Vec<Option<u64>>, delay_ns: Option<u64>| {
            let shared = delay_ns.and_then(|_| delays.iter().position(|d| *d == delay_ns));
            shared.unwrap_or_else(|| {
                delays.push(delay_ns);
                delays.len() - 1
            }) as u32
        };
        let mut flows = Vec::with_capacity(experiment.flows.len());
        for (index, flow) in experiment.flows.iter().enumerate() {
            let mut random = Random::new(experiment.seed, index as u64 + 1);
            let stop_ns = flow.stop_ns.min(experiment.duration_ns);
            let access = match &behind {
                Some((behind, shift_ns)) => {
                    Access::Varying(behind.lag(shift_ns.saturating_mul(index as u64)))
                }
                None => Access::Fixed(flow.access_delay_ns),
            };
            let fixed_ns = access.fixed_ns();
            let kind = match &flow.traffic {
                Traffic::Greedy {
                    backlog_pkts,
                    packet,
                } => Kind::Greedy {
                    backlog_pkts: *backlog_pkts,
                    waiting_pkts: 0,
                    short: false,
                    next_bytes: packet.draw(&mut random),
                    sizes: packet.clone(),
                    random,
                },
                Traffic::Tcp(config) => Kind::Tcp(Box::new(Connection {
                    sender: tcp::Sender::new(config),
                    receiver: tcp::Receiver::new(config),
                    config: config.clone(),
                    access: (fixed_ns != Some(0)).then(|| line_of(&mut access_delays, fixed_ns)),
                    ack: line_of(
                        &mut ack_delays,
                        fixed_ns.map(|delay_ns| delay_ns + link.return_delay_ns),
                    ),
                    sender_timer_ns: None,
                    receiver_timer_ns: None,
                })),
                open => Kind::Open(
                    Source::new(open, flow.start_ns, stop_ns, random)
                        .expect("the other kinds are above"),
                ),
            };
            flows.push(Flow {
                class: flow.class,
                stop_ns,
                access,
                kind,
            });
        }

        let told = match &link.capacity {
            Capacity::Rate(signal) => Track::new(signal),
            Capacity::Opportunities { .. } => Track::new(&Signal::Constant(0.0)),
        };
        let flow_classes: Vec<usize> = flows.iter().map(|flow| flow.class).collect();
        Ok(Engine {
            experiment,
            now_ns: 0,
            agenda: Agenda::new(),
            mux,
            device: Device::new(link, &flow_classes, experiment.duration_ns),
            sky: heard.map(|(s, fading, ahead)| Sky::new(s, fading, ahead, experiment)),
            terminals: link
                .beam
                .as_ref()
                .map(|beam| Terminals::new(beam, experiment)),
            pulling: false,
            any_greedy: flows
                .iter()
                .any(|flow| matches!(flow.kind, Kind::Greedy { .. })),
            flows,
            short: Vec::new(),
            refilling: Vec::new(),
            access: access_delays.iter().map(|_| DelayLine::new()).collect(),
            acks: ack_delays.iter().map(|_| DelayLine::new()).collect(),
            propagation: DelayLine::new(),
            delay: Varying::new(&link.delay_s),
            loss: Varying::new(&link.loss),
            loss_random: Random::new(experiment.seed, 0),
            told,
            told_window: [0.0; TELL_WINDOW],
            told_count: 0,
            recorder: Recorder::new(experiment, stats),
            packets: 0,
            values: vec![0; stats.len()],
        })
    }

    fn run(mut self, sink: &mut dyn Sink) -> Result<Outcome, RunError> {
        let end_ns = self.experiment.duration_ns;
        let mut events = 0u64;
        let mut complete = true;
        self.schedule_first();
        self.sample_levels();
        let mut boundary_ns = self.boundary_ns();
        loop {
            let first = self.agenda.first().filter(|first| first.time_ns() < end_ns);
            let until_ns = first.map_or(end_ns, agenda::Entry::time_ns);
            let mut boundaries = 0u32;
            while until_ns >= boundary_ns && boundary_ns < end_ns {
                self.cross(boundary_ns, sink).map_err(RunError::Sink)?;
                boundary_ns = self.boundary_ns();
                boundaries += 1;
                if boundaries % 1024 == 0 && sink.progress(self.now_ns).is_break() {
                    complete = false;
                    break;
                }
            }
            let Some(first) = first.filter(|_| complete) else {
                break;
            };
            self.now_ns = first.time_ns();
            // What an event schedules comes after it, so it is still the first entry when it has run.
            let again_ns = self.handle(first.event());
            self.agenda.done(first.event(), again_ns);
            events += 1;
            if events % (1 << 16) == 0 && sink.progress(self.now_ns) == ControlFlow::Break(()) {
                complete = false;
                break;
            }
        }
        if complete {
            self.now_ns = end_ns;
        }
        self.finish(sink).map_err(RunError::Sink)?;
        Ok(Outcome {
            complete,
            simulated_ns: self.now_ns,
            events,
            packets: self.packets,
        })
    }

    fn schedule_first(&mut self) {
        if self.terminals.is_some() {
            self.agenda.push(0, event::CHANNEL);
        }
        if self.experiment.link.follow {
            self.agenda.push(0, event::TELL);
        }
        if let Some(at_ns) = self.device.opportunity_ns() {
            self.agenda.push(at_ns, event::OPPORTUNITY);
        }
        if self.sky.is_some() && self.mux.policy().hears_rates() {
            self.agenda.push(0, event::CSI);
        }
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let created_ns = match &flow.kind {
                Kind::Open(source) => source.next_ns(),
                Kind::Greedy { .. } | Kind::Tcp(_) => Some(self.experiment.flows[index].start_ns),
            };
            if let Some(created_ns) = created_ns {
                // What an open-loop source creates is next seen when it arrives; TCP's segments have lines.
                let travels_ns = if matches!(flow.kind, Kind::Tcp(_)) {
                    0
                } else {
                    flow.access.delay_ns(created_ns)
                };
                self.agenda.push(
                    created_ns.saturating_add(travels_ns),
                    event::SOURCE | index as u32,
                );
            }
        }
    }

    /// Runs an event; returns when it is to run again.
    #[inline]
    fn handle(&mut self, event: u32) -> Option<u64> {
        let index = (event & event::INDEX) as usize;
        match event & !event::INDEX {
            event::SOURCE => self.source(index),
            event::ACCESS => {
                let packet = self.access[index].pop()?;
                self.arrive(packet);
                self.access[index].next_ns()
            }
            event::SENT => {
                let packet = self.device.end()?;
                self.leave(packet);
                self.serve(true)
            }
            event::ARRIVAL => {
                let packet = self.propagation.pop()?;
                self.deliver(packet);
                self.propagation.next_ns()
            }
            event::ACK => {
                let (flow, ack) = self.acks[index].pop()?;
                if let Kind::Tcp(connection) = &mut self.flows[flow as usize].kind {
                    connection.sender.on_ack(self.now_ns, &ack);
                }
                self.transmit(flow as usize);
                self.acks[index].next_ns()
            }
            event::SENDER_TIMER => self.sender_timer(index),
            event::RECEIVER_TIMER => self.receiver_timer(index),
            event::OPPORTUNITY => self.opportunity(),
            event::TELL => self.tell(),
            event::RETRY => {
                self.start_device();
                None
            }
            event::DECODE => self.decode(),
            event::ANSWER => self.answer(),
            event::ORDER => self.order_timer(),
            event::CSI => self.tell_channels(),
            event::CHANNEL => self.channel(),
            _ => unreachable!("every event has a kind"),
        }
    }

    // Sources.

    fn source(&mut self, index: usize) -> Option<u64> {
        let flow = &mut self.flows[index];
        match &mut flow.kind {
            Kind::Open(source) => {
                let now_ns = self.now_ns;
                let created_ns = match flow.access {
                    Access::Fixed(travels_ns) => now_ns - travels_ns,
                    Access::Varying(_) => source.next_ns()?,
                };
                let bytes = source.create();
                let next_ns = source.next_ns().map(|next_ns| match &mut flow.access {
                    Access::Fixed(travels_ns) => next_ns.saturating_add(*travels_ns),
                    // It does not overtake this packet.
                    Access::Varying(behind) => {
                        next_ns.saturating_add(behind.delay_ns(next_ns)).max(now_ns)
                    }
                });
                self.arrive(Packet {
                    created_ns,
                    segment: 0,
                    flow: index as u32,
                    bytes,
                });
                next_ns
            }
            Kind::Greedy { short, .. } => {
                if !std::mem::replace(short, true) {
                    self.short.push(index as u32);
                }
                self.pulling = true;
                self.refill();
                self.pulling = false;
                self.start_device();
                None
            }
            Kind::Tcp(_) => {
                self.transmit(index);
                None
            }
        }
    }

    /// Lets greedy flows that lack packets put some into their queues, as far as there is room. Each has one turn: where
    /// one flow's packet drives out another's, that one waits for the next departure.
    fn refill(&mut self) {
        std::mem::swap(&mut self.short, &mut self.refilling);
        for index in &self.refilling {
            if let Kind::Greedy { short, .. } = &mut self.flows[*index as usize].kind {
                *short = false;
            }
        }
        for at in 0..self.refilling.len() {
            let index = self.refilling[at];
            let filled = self.fill(index as usize);
            if let Kind::Greedy { short, .. } = &mut self.flows[index as usize].kind {
                if !filled && !std::mem::replace(short, true) {
                    self.short.push(index);
                }
            }
        }
        self.refilling.clear();
    }

    /// Whether this greedy flow has all its packets waiting now, or has stopped.
    fn fill(&mut self, index: usize) -> bool {
        loop {
            let Flow {
                class,
                stop_ns,
                access,
                kind,
            } = &mut self.flows[index];
            let Kind::Greedy {
                backlog_pkts,
                waiting_pkts,
                next_bytes,
                sizes,
                random,
                ..
            } = kind
            else {
                return true;
            };
            let created_ns = self.now_ns.saturating_sub(access.delay_ns(self.now_ns));
            if waiting_pkts >= backlog_pkts || created_ns >= *stop_ns {
                return true;
            }
            let bytes = *next_bytes;
            if !self
                .mux
                .has_room(*class, wire_bytes(self.experiment, bytes))
            {
                return false;
            }
            *next_bytes = sizes.draw(random);
            *waiting_pkts += 1;
            let waiting = *waiting_pkts;
            self.arrive(Packet {
                created_ns,
                segment: 0,
                flow: index as u32,
                bytes,
            });
            if matches!(self.flows[index].kind, Kind::Greedy { waiting_pkts, .. } if waiting_pkts < waiting)
            {
                return false;
            }
        }
    }

    /// Sends what a TCP sender may send now.
    fn transmit(&mut self, index: usize) {
        let Flow { stop_ns, kind, .. } = &mut self.flows[index];
        let stop_ns = *stop_ns;
        let Kind::Tcp(connection) = kind else { return };
        let access = connection.access;
        if self.now_ns < stop_ns {
            loop {
                let Kind::Tcp(connection) = &mut self.flows[index].kind else {
                    return;
                };
                let Some(segment) = connection.sender.next_segment(self.now_ns) else {
                    break;
                };
                let packet = Packet {
                    created_ns: segment.sent_ns,
                    segment: segment.sequence
                        | (u64::from(segment.retransmission) * Packet::SENT_BEFORE),
                    flow: index as u32,
                    bytes: connection.config.segment_wire_bytes(&segment),
                };
                match access {
                    None => self.arrive(packet),
                    Some(line) => {
                        let delay_ns = self.flows[index].access.delay_ns(self.now_ns);
                        let out_ns = self.now_ns + delay_ns;
                        if let Some(first_ns) = self.access[line as usize].push(out_ns, packet) {
                            self.agenda.push(first_ns, event::ACCESS | line);
                        }
                    }
                }
            }
        }
        let Kind::Tcp(connection) = &mut self.flows[index].kind else {
            return;
        };
        let window = connection.sender.window();
        self.recorder
            .window(self.now_ns, index, window.cwnd_segments, window.srtt_ns);
        if self.now_ns >= stop_ns {
            return;
        }
        if let Some(deadline_ns) = connection.sender.deadline_ns() {
            if connection
                .sender_timer_ns
                .is_none_or(|timer_ns| deadline_ns < timer_ns)
            {
                connection.sender_timer_ns = Some(deadline_ns);
                self.agenda.push(
                    deadline_ns.max(self.now_ns),
                    event::SENDER_TIMER | index as u32,
                );
            }
        }
    }

    fn sender_timer(&mut self, index: usize) -> Option<u64> {
        let now_ns = self.now_ns;
        let Kind::Tcp(connection) = &mut self.flows[index].kind else {
            return None;
        };
        if connection
            .sender_timer_ns
            .is_none_or(|timer_ns| timer_ns > now_ns)
        {
            return None;
        }
        match connection.sender.deadline_ns() {
            None => {
                connection.sender_timer_ns = None;
                None
            }
            Some(deadline_ns) if deadline_ns > now_ns => {
                connection.sender_timer_ns = Some(deadline_ns);
                Some(deadline_ns)
            }
            Some(_) => {
                connection.sender_timer_ns = None;
                connection.sender.on_timer(now_ns);
                self.transmit(index);
                None
            }
        }
    }

    fn receiver_timer(&mut self, index: usize) -> Option<u64> {
        let now_ns = self.now_ns;
        let Kind::Tcp(connection) = &mut self.flows[index].kind else {
            return None;
        };
        if connection
            .receiver_timer_ns
            .is_none_or(|timer_ns| timer_ns > now_ns)
        {
            return None;
        }
        let due = connection.receiver.deadline_ns();
        let ack = match due {
            Some(deadline_ns) if deadline_ns > now_ns => {
                connection.receiver_timer_ns = Some(deadline_ns);
                return Some(deadline_ns);
            }
            Some(_) => connection.receiver.on_timer(now_ns),
            None => None,
        };
        connection.receiver_timer_ns = None;
        self.acknowledge(index, ack);
        None
    }

    // Scheduler and link.

    #[inline]
    fn arrive(&mut self, mut packet: Packet) {
        let now_ns = self.now_ns;
        if now_ns >= self.experiment.warmup_ns {
            packet.segment |= Packet::IN_TOTALS;
        }
        let wire_bytes = wire_bytes(self.experiment, packet.bytes);
        let Engine {
            mux,
            recorder,
            flows,
            short,
            ..
        } = self;
        recorder.arrived(now_ns, packet.flow as usize, packet.bytes);
        let class = flows[packet.flow as usize].class;
        mux.enqueue(now_ns, class, wire_bytes, packet, |dropped, _, reason| {
            let Packet { flow, bytes, .. } = dropped;
            recorder.dropped(now_ns, flow as usize, bytes, dropped.is_in_totals(), reason);
            left(flows, short, flow);
        });
        if !self.pulling {
            self.start_device();
        }
    }

    /// Lets an idle device pull packets.
    #[inline]
    fn start_device(&mut self) {
        // With opportunities, the next one pulls.
        if self.device.is_busy() || self.device.opportunity_ns().is_some() {
            return;
        }
        if let Some(ends_ns) = self.serve(false) {
            self.agenda.push(ends_ns, event::SENT);
        }
    }

    /// Begins the next packet of the ring, pulling when it is empty. Returns when the packet will have left.
    #[inline]
    fn serve(&mut self, follows: bool) -> Option<u64> {
        if !self.device.is_busy() {
            self.pull();
        }
        self.device.begin(self.now_ns, follows)
    }

    fn pull(&mut self) {
        self.pulling = true;
        if self.sky.is_some() {
            self.pull_attempt();
            self.pulling = false;
            return;
        }
        for _ in 0..self.experiment.link.ring {
            let Some(Departure {
                class,
                item,
                bytes,
                sojourn_ns,
                ..
            }) = self.dequeue()
            else {
                break;
            };
            self.recorder
                .sent(self.now_ns, class, item.bytes, sojourn_ns);
            self.device.ring.push_back((bytes, item));
            if !self.short.is_empty() {
                self.refill();
            }
        }
        self.pulling = false;
    }

    /// What the scheduler lets go next, if anything; a greedy flow that lacks it is listed.
    #[inline]
    fn dequeue(&mut self) -> Option<Departure<Packet>> {
        let mut departure = self.take();
        if departure.is_none() && !self.short.is_empty() {
            // Greedy flows lost all they had.
            self.refill();
            departure = self.take();
        }
        let Some(departure) = departure else {
            if let Some(retry_ns) = self.mux.retry_ns() {
                self.agenda
                    .push(retry_ns.max(self.now_ns + 1), event::RETRY);
            }
            return None;
        };
        self.packets += 1;
        if self.any_greedy {
            left(&mut self.flows, &mut self.short, departure.item.flow);
        }
        Some(departure)
    }

    /// Asks the scheduler, and records what it throws away.
    #[inline]
    fn take(&mut self) -> Option<Departure<Packet>> {
        let Engine {
            mux,
            recorder,
            flows,
            short,
            now_ns,
            ..
        } = self;
        // No source sends packets that can carry a mark.
        mux.dequeue(
            *now_ns,
            |_| false,
            |packet, _, reason| {
                let Packet { flow, bytes, .. } = packet;
                recorder.dropped(*now_ns, flow as usize, bytes, packet.is_in_totals(), reason);
                left(flows, short, flow);
            },
        )
    }

    /// All opportunities of this instant.
    fn opportunity(&mut self) -> Option<u64> {
        while self.device.opportunity_ns() == Some(self.now_ns) {
            let mut budget = self.device.take_opportunity(self.now_ns);
            while budget > 0 {
                if !self.device.is_busy() {
                    self.serve(false);
                    if !self.device.is_busy() {
                        break;
                    }
                }
                if self.device.spend(&mut budget) {
                    if let Some(packet) = self.device.end() {
                        self.leave(packet);
                    }
                    if self.device.is_busy() {
                        self.device.begin(self.now_ns, false);
                    }
                }
            }
        }
        self.device.opportunity_ns()
    }

    /// Tells a following scheduler the capacity: every step as it happens; a smooth change every 10 ms; opportunities
    /// every 10 ms as the mean over the last 100 ms.
    fn tell(&mut self) -> Option<u64> {
        let (rate_bps, next_ns) = match &self.experiment.link.capacity {
            Capacity::Rate(signal) => {
                let rate_bps = self.told.value(self.now_ns);
                let next_ns = match signal {
                    Signal::Constant(_) => None,
                    Signal::Steps { .. } => self.told.next_change_ns(self.now_ns),
                    Signal::Cosine { .. } | Signal::Lines { .. } => Some(self.now_ns + TELL_NS),
                };
                (rate_bps, next_ns)
            }
            Capacity::Opportunities { .. } => {
                let offered_bits = self.device.offered_bits();
                let slot = self.told_count % TELL_WINDOW;
                let bits =
                    offered_bits - std::mem::replace(&mut self.told_window[slot], offered_bits);
                self.told_count += 1;
                if self.told_count <= TELL_WINDOW {
                    // The first window is not over: the nominal rate stands.
                    return Some(self.now_ns + TELL_NS);
                }
                (
                    bits / (TELL_NS as f64 * 1e-9 * TELL_WINDOW as f64),
                    Some(self.now_ns + TELL_NS),
                )
            }
        };
        let rate_bps = (rate_bps + 0.5) as u64;
        if rate_bps != self.mux.link_bps() {
            self.mux.set_link(self.now_ns, rate_bps);
        }
        next_ns
    }

    /// One-way propagation delay now, ns.
    #[inline]
    fn delay_ns(&mut self) -> u64 {
        nanoseconds(self.delay.value(self.now_ns))
    }

    /// A packet has left the link.
    #[inline]
    fn leave(&mut self, packet: Packet) {
        if self.sky.is_some() {
            self.leave_sky(packet);
            return;
        }
        let loss = self.loss.value(self.now_ns);
        if loss > 0.0 && self.loss_random.unit() < loss {
            self.recorder.lost(packet.flow as usize);
            return;
        }
        let out_ns = self.now_ns + self.delay_ns();
        if let Some(first_ns) = self.propagation.push(out_ns, packet) {
            self.agenda.push(first_ns, event::ARRIVAL);
        }
    }

    // Receivers.

    fn deliver(&mut self, packet: Packet) {
        let index = packet.flow as usize;
        self.recorder
            .delivered(index, packet.bytes, self.now_ns - packet.created_ns);
        if let Kind::Tcp(connection) = &mut self.flows[index].kind {
            let segment = tcp::Segment {
                sequence: packet.sequence(),
                retransmission: packet.is_retransmission(),
                sent_ns: packet.created_ns,
            };
            let ack = connection.receiver.on_segment(self.now_ns, &segment);
            self.acknowledge(index, ack);
        }
    }

    /// Sends an acknowledgement back and looks after the receiver's timer.
    fn acknowledge(&mut self, index: usize, ack: Option<tcp::Ack>) {
        let Engine {
            experiment,
            now_ns,
            agenda,
            flows,
            acks,
            sky,
            ..
        } = self;
        let now_ns = *now_ns;
        let Flow {
            access,
            kind: Kind::Tcp(connection),
            ..
        } = &mut flows[index]
        else {
            return;
        };
        if let Some(ack) = ack {
            let link = &experiment.link;
            let back_ns = match access {
                Access::Fixed(delay_ns) => link.return_delay_ns + *delay_ns,
                Access::Varying(behind) => {
                    let down_ns = sky.as_mut().map_or(0, |sky| sky.receiver_delay_ns(now_ns));
                    down_ns + behind.delay_ns(now_ns)
                }
            };
            let line = &mut acks[connection.ack as usize];
            if let Some(first_ns) = line.push(now_ns + back_ns, (index as u32, ack)) {
                agenda.push(first_ns, event::ACK | connection.ack);
            }
        }
        if let Some(deadline_ns) = connection.receiver.deadline_ns() {
            if connection
                .receiver_timer_ns
                .is_none_or(|timer_ns| deadline_ns < timer_ns)
            {
                connection.receiver_timer_ns = Some(deadline_ns);
                agenda.push(
                    deadline_ns.max(now_ns),
                    event::RECEIVER_TIMER | index as u32,
                );
            }
        }
    }

    // Intervals and totals.

    /// The next time at which something is written or begins to count.
    fn boundary_ns(&self) -> u64 {
        let bin_ns = self
            .recorder
            .bin_ns()
            .saturating_add(self.experiment.interval_ns);
        let warmup_ns = self.experiment.warmup_ns;
        if warmup_ns > self.now_ns {
            return bin_ns.min(warmup_ns);
        }
        bin_ns
    }

    fn cross(&mut self, boundary_ns: u64, sink: &mut dyn Sink) -> Result<(), String> {
        self.now_ns = boundary_ns;
        self.ask_connections();
        if boundary_ns
            == self
                .recorder
                .bin_ns()
                .saturating_add(self.experiment.interval_ns)
        {
            self.end_bin(sink)?;
            self.sample_levels();
        }
        if boundary_ns == self.experiment.warmup_ns {
            self.recorder.begin_totals(boundary_ns);
            self.begin_terminal_totals();
            self.mux.reset_counters();
        }
        Ok(())
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.ask_connections();
        if self.now_ns > self.recorder.bin_ns() {
            self.end_bin(sink)?;
            self.sample_levels();
        }
        let Engine {
            recorder,
            mux,
            now_ns,
            ..
        } = self;
        recorder.finish(*now_ns, |class| &mux.counters(class).sojourn_ns, sink)?;
        self.finish_terminals(sink)
    }

    fn end_bin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.end_terminal_bin(sink)?;
        let (offered, carried) = self.device.measure(self.now_ns);
        self.recorder.end_bin(self.now_ns, offered, carried, sink)
    }

    fn ask_connections(&mut self) {
        for (index, flow) in self.flows.iter().enumerate() {
            if let Kind::Tcp(connection) = &flow.kind {
                let in_order = connection.receiver.delivered_segments();
                let in_order_bytes = connection.config.payload_bytes(in_order);
                self.recorder
                    .connection(index, connection.sender.counters(), in_order_bytes);
            }
        }
    }

    fn sample_levels(&mut self) {
        if self.values.is_empty() {
            return;
        }
        for class in 0..self.experiment.classes.len() {
            self.mux.observe(self.now_ns, class, &mut self.values);
            self.recorder.level(self.now_ns, class, &self.values);
        }
    }
}

/// Whole nanoseconds.
#[inline]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9 + 0.5) as u64
}

/// A packet of this flow no longer waits: a greedy flow lacks it.
#[inline]
fn left(flows: &mut [Flow], short: &mut Vec<u32>, flow: u32) {
    if let Kind::Greedy {
        waiting_pkts,
        short: listed,
        ..
    } = &mut flows[flow as usize].kind
    {
        *waiting_pkts -= 1;
        if !std::mem::replace(listed, true) {
            short.push(flow);
        }
    }
}

/// Accounted length of a packet.
#[inline]
fn wire_bytes(experiment: &Experiment, bytes: u32) -> u32 {
    let link = &experiment.link;
    bytes
        .saturating_add_signed(link.overhead_bytes)
        .max(link.mpu_bytes)
}

/// What the engine relies on.
fn validate(experiment: &Experiment) -> Result<(), String> {
    let refuse = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
    refuse(
        experiment.duration_ns > 0,
        "the duration must be longer than 0",
    )?;
    refuse(
        experiment.interval_ns > 0,
        "the interval must be longer than 0",
    )?;
    refuse(
        experiment.warmup_ns < experiment.duration_ns,
        "the warm-up must be shorter than the duration",
    )?;
    refuse(
        experiment.link.ring > 0,
        "the ring must hold at least one packet",
    )?;
    refuse(!experiment.classes.is_empty(), "there must be a class")?;
    refuse(
        experiment.link.satellite.is_none() || experiment.link.ring == 1,
        "a satellite's device pulls one packet at a time",
    )?;
    if let Some(beam) = &experiment.link.beam {
        beam::validate(beam, experiment)?;
    }
    refuse(
        experiment.flows.len() <= event::INDEX as usize,
        "there are too many flows",
    )?;
    if let Capacity::Opportunities { at_ns, bytes } = &experiment.link.capacity {
        let ordered = at_ns.windows(2).all(|pair| pair[0] <= pair[1]);
        refuse(
            at_ns.last().is_some_and(|last| *last > 0) && ordered,
            "opportunities must be in order and end after 0",
        )?;
        refuse(*bytes > 0, "an opportunity must carry at least one byte")?;
    }
    for flow in &experiment.flows {
        if flow.class >= experiment.classes.len() {
            return Err(format!(
                "flow {} belongs to class {}, which does not exist",
                flow.name, flow.class
            ));
        }
        let sizes = match &flow.traffic {
            Traffic::Cbr { packet, .. }
            | Traffic::Poisson { packet, .. }
            | Traffic::OnOff { packet, .. }
            | Traffic::Greedy { packet, .. } => packet.clone(),
            Traffic::Tcp(config) => {
                Sizes::Uniform(config.least_segment_bytes(), config.segment_bytes())
            }
        };
        let (least, most) = match &sizes {
            Sizes::Fixed(bytes) => (*bytes, *bytes),
            Sizes::Uniform(least, most) => (*least, *most),
            Sizes::Mix(parts) => {
                let sizes = || parts.iter().map(|part| part.0);
                (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
            }
        };
        let carried = wire_bytes(experiment, most) < linkweir_core::MAX_PACKET_BYTES;
        if least == 0 || least > most || !carried || wire_bytes(experiment, least) == 0 {
            return Err(format!(
                "flow {}: packets must have 1 .. {} bytes, the link's overhead included",
                flow.name,
                linkweir_core::MAX_PACKET_BYTES - 1
            ));
        }
    }
    Ok(())
}
