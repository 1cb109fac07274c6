// SPDX-License-Identifier: BSD-3-Clause
//! The event engine: sources, scheduler, device, medium, receivers and the way back, driven by one agenda of events.
//!
//! ```text
//!  source --access delay--> Mux(policy) --pull--> device --> medium --> receiver
//!  sender <------- access delay + return delay, no queue, no loss -------- acks
//! ```
//!
//! Where a satellite has delays of its own, they take the place of all three.
//!
//! Events of the same time run in the order in which they were scheduled. A delay line has one entry, for its first item;
//! timers stay where they are and compare their deadline when they fire. Nothing is allocated per packet once queues
//! have grown.
//!
//! | module | holds |
//! |---|---|
//! | `build` | checks of an experiment; its flows |
//! | `event`, `agenda` | kinds of events; those that are pending |
//! | `packet`, `line`, `varying` | what all use |
//! | `flow`, `access`, `connection`, `greedy` | one source; its way to the queue; TCP; whose turn it is to fill a queue |
//! | `application`, `member`, `transport` | an application over TCP; one of its connections; what is done for them |
//! | `device`, `carrier` | the transmitter; that of a beam |
//! | `bottleneck` | queues and device, for media to act on |
//! | `medium`, `satellite`, `beam`, `bond` | what lies between the scheduler and the receivers |
//! | `csi`, `codes` | what a scheduler knows of channels at a fixed age; how a satellite codes packets |
//! | `reported` | the capacity as it is reported to a scheduler that follows it |
//! | `bins` | when tables are written |
//! | `driven` | an engine that takes packets from outside, for a caller with a time of its own |
//! | `station`, `network` | a link's part of a network; several links |

mod access;
mod agenda;
mod application;
mod beam;
mod bins;
mod bond;
mod bottleneck;
mod build;
mod carrier;
mod codes;
mod connection;
mod csi;
mod device;
pub(crate) mod driven;
mod event;
mod flow;
mod greedy;
mod line;
mod medium;
mod member;
pub(crate) mod network;
mod packet;
mod reported;
mod satellite;
mod station;
mod transport;
mod varying;

pub use medium::{fates, Fate};

use std::fmt;
use std::ops::ControlFlow;

use linkweir_core::{Fault, Limit, Mux};

use crate::experiment::{users, Class, Experiment, Outages};
use crate::metrics::Recorder;
use crate::policies::{AnyPolicy, Missing};
use crate::table::Sink;
use crate::tcp;

use access::Access;
use agenda::Agenda;
use beam::BeamLink;
use bins::Bins;
use bond::BondLink;
use bottleneck::{Bottleneck, Times};
use build::Flows;
use connection::Timer;
use device::Device;
use flow::{Flow, Kind};
use greedy::Lacking;
use line::DelayLine;
use medium::{ImpairedLink, Medium, PlainLink};
use member::Members;
use packet::Packet;
use reported::Reported;
use satellite::SatelliteLink;
use station::{Letter, Station, StationPlan};
use transport::Transport;

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
    /// When the log of packets was full, ns, if it was: later steps are not in it.
    pub log_cut_ns: Option<u64>,
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
    build::validate(experiment).map_err(RunError::Invalid)?;
    let link = &experiment.link;
    if let Some(satellite) = &link.satellite {
        let medium = SatelliteLink::new(satellite, experiment);
        Engine::new(experiment, medium)?.run(sink)
    } else if let Some(beam) = &link.beam {
        let medium = BeamLink::new(beam, experiment);
        Engine::new(experiment, medium)?.run(sink)
    } else if let Some(bond) = &link.bond {
        let medium = BondLink::new(bond, experiment, experiment.seed);
        Engine::new(experiment, medium)?.run(sink)
    } else if ImpairedLink::is_needed(link) {
        let medium = ImpairedLink::new(link, experiment.seed);
        Engine::new(experiment, medium)?.run(sink)
    } else {
        let medium = PlainLink::new(link, experiment.seed);
        Engine::new(experiment, medium)?.run(sink)
    }
}

/// A run over one medium.
struct Engine<M> {
    bottleneck: Bottleneck,
    medium: M,
    /// From TCP senders to their queues.
    access: Vec<DelayLine<Packet>>,
    /// From TCP receivers to their senders.
    acks: Vec<DelayLine<(u32, tcp::Ack)>>,
    reported: Reported,
    bins: Bins,
}

impl<M: Medium> Engine<M> {
    fn new(experiment: &Experiment, medium: M) -> Result<Engine<M>, RunError> {
        Engine::with_station(experiment, medium, None)
    }

    /// The engine of an experiment, or of one link of a network.
    fn with_station(
        experiment: &Experiment,
        medium: M,
        plan: Option<&StationPlan>,
    ) -> Result<Engine<M>, RunError> {
        let limits: Vec<Limit> = experiment.classes.iter().map(Class::limit).collect();
        let link = &experiment.link;
        let mut mux = Mux::new(0, link.nominal_bps, &limits, |view| {
            AnyPolicy::new(experiment, medium.channel(), view)
        })
        .map_err(|missing| match missing {
            Missing::Unknown(name) => RunError::Invalid(format!("there is no policy named {name}")),
            Missing::NeedsSatellite(name) => RunError::Invalid(format!(
                "{name} knows its users by a satellite's channel, and the link has none"
            )),
            Missing::Refused(fault) => RunError::Policy(fault),
        })?;
        for (at, class) in experiment.classes.iter().enumerate() {
            mux.isolate(at, class.flows);
        }
        let stats = mux.policy().stats();
        let Flows {
            flows,
            access,
            acks,
        } = Flows::new(experiment, plan);
        let users = users(&experiment.classes);
        let terminals: Vec<usize> = flows.iter().map(|flow| users[flow.class]).collect();
        let delays = link.satellite.as_ref().and_then(|s| s.delays.as_ref());
        let outages = match plan {
            None => delays.map_or_else(Outages::default, |delays| delays.outages.clone()),
            Some(plan) => plan.outages(),
        };
        let recorder = Recorder::new(experiment, stats);
        let recorder = match plan {
            None => recorder,
            Some(plan) => recorder.in_network(plan.nends(), plan.told(), &plan.sources()),
        };
        let mut engine = Engine {
            bottleneck: Bottleneck {
                link: link.clone(),
                times: Times::of(experiment),
                now_ns: 0,
                agenda: Agenda::new(),
                mux,
                codepoints: build::codepoints(experiment, plan),
                device: Device::new(link, &terminals, outages, experiment.duration_ns),
                age_ns: u64::MAX,
                any_greedy: flows
                    .iter()
                    .any(|flow| matches!(flow.kind, Kind::Greedy { .. })),
                flows,
                members: Members::new(experiment.flows.len()),
                lacking: Lacking::default(),
                propagation: DelayLine::new(),
                recorder,
                packets: 0,
                station: plan.map(Station::new),
            },
            medium,
            access,
            acks,
            reported: Reported::new(&link.capacity),
            bins: Bins::new(stats.len()),
        };
        engine.schedule_first(experiment);
        Ok(engine)
    }

    fn run(mut self, sink: &mut dyn Sink) -> Result<Outcome, RunError> {
        let end_ns = self.bottleneck.times.duration_ns;
        let mut events = 0u64;
        let mut complete = true;
        self.bins.begin(&mut self.bottleneck);
        let mut boundary_ns = self.bins.next_ns(&self.bottleneck);
        loop {
            let first = self.bottleneck.agenda.first();
            let first = first.filter(|first| first.time_ns() < end_ns);
            let until_ns = first.map_or(end_ns, agenda::Entry::time_ns);
            let mut boundaries = 0u32;
            while until_ns >= boundary_ns && boundary_ns < end_ns {
                self.bins
                    .cross(boundary_ns, &mut self.bottleneck, &mut self.medium, sink)
                    .map_err(RunError::Sink)?;
                boundary_ns = self.bins.next_ns(&self.bottleneck);
                boundaries += 1;
                if boundaries % 1024 == 0 && self.progress(sink).is_break() {
                    complete = false;
                    break;
                }
            }
            let Some(first) = first.filter(|_| complete) else {
                break;
            };
            self.bottleneck.now_ns = first.time_ns();
            // What an event schedules comes after it, so it is still the first entry when it has run.
            let again_ns = self.handle(first.event());
            self.bottleneck.agenda.done(first.event(), again_ns);
            events += 1;
            if events % (1 << 12) == 0 {
                let recorder = &mut self.bottleneck.recorder;
                recorder.flush_watch(sink).map_err(RunError::Sink)?;
                if events % (1 << 16) == 0 {
                    recorder.flush_transfers(sink).map_err(RunError::Sink)?;
                    if self.progress(sink).is_break() {
                        complete = false;
                        break;
                    }
                }
            }
        }
        if complete {
            self.bottleneck.now_ns = end_ns;
        }
        self.bins
            .finish(&mut self.bottleneck, &mut self.medium, sink)
            .map_err(RunError::Sink)?;
        Ok(Outcome {
            complete,
            simulated_ns: self.bottleneck.now_ns,
            events,
            packets: self.bottleneck.packets,
            log_cut_ns: self.bottleneck.recorder.log_cut_ns(),
        })
    }

    /// Schedules the first events.
    fn schedule_first(&mut self, experiment: &Experiment) {
        let at = &mut self.bottleneck;
        if at.link.follow {
            at.agenda.push(0, event::REPORT);
        }
        if let Some(at_ns) = at.device.opportunity_ns() {
            at.agenda.push(at_ns, event::OPPORTUNITY);
        }
        if let Some(change_ns) = at.station.as_ref().and_then(|s| s.next_change_ns(None)) {
            at.agenda.push(change_ns, event::ABSENCE);
        }
        self.medium.begin(at);
        for (index, flow) in at.flows.iter_mut().enumerate() {
            let start_ns = experiment.flows[index].start_ns;
            // What a source other than TCP creates is next seen when it arrives; TCP's segments have lines.
            let (created_ns, travels_ns) = match &flow.kind {
                Kind::Open(source) => match source.next_ns() {
                    Some(created_ns) => (created_ns, flow.access.delay_ns(created_ns)),
                    None => continue,
                },
                Kind::Greedy { .. } => (start_ns, flow.access.delay_ns(start_ns)),
                Kind::Replay(replay) => match replay.next_ns() {
                    Some(created_ns) => (created_ns, flow.access.delay_ns(created_ns)),
                    None => continue,
                },
                Kind::Tcp(_) | Kind::Application(_) => (start_ns, 0),
                Kind::Crossing { .. } | Kind::Free => continue,
            };
            at.agenda.push(
                created_ns.saturating_add(travels_ns),
                event::SOURCE | index as u32,
            );
        }
    }

    /// Tells the sink how far the run is.
    fn progress(&self, sink: &mut dyn Sink) -> ControlFlow<()> {
        let mut sent_bytes = self.bottleneck.recorder.sent_bytes();
        sink.progress(self.bottleneck.now_ns, &mut sent_bytes)
    }

    /// Runs an event; returns when it is to run again.
    #[inline(always)] // it has callers for one link and for several, and is no longer inlined by itself
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
                let packet = self.bottleneck.device.end()?;
                self.medium.leave(&mut self.bottleneck, packet);
                self.medium.serve(&mut self.bottleneck)
            }
            event::ARRIVAL => {
                let packet = self.bottleneck.propagation.pop()?;
                self.deliver(packet);
                self.bottleneck.propagation.next_ns()
            }
            event::ACK => {
                let (flow, ack) = self.acks[index].pop()?;
                self.take_ack(flow as usize, &ack);
                self.acks[index].next_ns()
            }
            event::SENDER_TIMER => self.sender_timer(index),
            event::RECEIVER_TIMER => self.receiver_timer(index),
            event::OPPORTUNITY => self.opportunity(),
            event::REPORT => self.report(),
            event::RETRY if event == event::AGE => {
                let at = &mut self.bottleneck;
                at.drop_aged();
                self.medium.start_device(at);
                self.bottleneck.next_age()
            }
            event::RETRY if event == event::ABSENCE => self.change_presence(),
            event::RETRY if event == event::LETTER => {
                self.open_first();
                None
            }
            event::RETRY => {
                self.medium.start_device(&mut self.bottleneck);
                None
            }
            _ => self.medium.handle(&mut self.bottleneck, event),
        }
    }

    /// An acknowledgement has reached its sender.
    #[inline]
    fn take_ack(&mut self, flow: usize, ack: &tcp::Ack) {
        let mut member = false;
        if let Kind::Tcp(connection) = &mut self.bottleneck.flows[flow].kind {
            connection.sender.on_ack(self.bottleneck.now_ns, ack);
            member = connection.member.is_some();
        }
        self.transmit(flow);
        if member {
            self.acknowledged(flow, ack.cumulative);
        }
    }

    // From the sources to the queues.

    fn source(&mut self, index: usize) -> Option<u64> {
        let now_ns = self.bottleneck.now_ns;
        let Flow { access, kind, .. } = &mut self.bottleneck.flows[index];
        match kind {
            Kind::Open(source) => {
                let created_ns = match access {
                    Access::Fixed(travels_ns) => now_ns - *travels_ns,
                    Access::Varying(_) => source.next_ns()?,
                };
                let bytes = source.create();
                let next_ns = source.next_ns().map(|next_ns| match access {
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
            Kind::Greedy { .. } => {
                let Bottleneck { lacking, flows, .. } = &mut self.bottleneck;
                lacking.add(flows, index as u32);
                self.bottleneck.refill();
                self.medium.start_device(&mut self.bottleneck);
                None
            }
            Kind::Tcp(_) => {
                self.transmit(index);
                None
            }
            Kind::Replay(_) => self.replay(index),
            Kind::Application(_) => {
                self.run_application(index);
                None
            }
            Kind::Crossing { .. } | Kind::Free => None,
        }
    }

    /// A recorded packet arrives; returns when the next one does.
    #[cold] // keeps the path of the other sources short
    #[inline(never)]
    fn replay(&mut self, index: usize) -> Option<u64> {
        let now_ns = self.bottleneck.now_ns;
        let Flow { access, kind, .. } = &mut self.bottleneck.flows[index];
        let Kind::Replay(replay) = kind else {
            return None;
        };
        let created_ns = replay.next_ns()?;
        let bytes = replay.create();
        let next_ns = replay
            .next_ns()
            .map(|next_ns| next_ns.saturating_add(access.delay_ns(next_ns)).max(now_ns));
        self.arrive(Packet {
            created_ns,
            segment: 0,
            flow: index as u32,
            bytes,
        });
        next_ns
    }

    /// A packet arrives at its queue; an idle device begins to send.
    #[inline(always)] // it has callers for one link and for several, and is no longer inlined by itself
    fn arrive(&mut self, mut packet: Packet) {
        if self.bottleneck.station.is_some() && !self.enter(&mut packet) {
            return;
        }
        self.bottleneck.enqueue(packet);
        self.medium.start_device(&mut self.bottleneck);
    }

    /// Sends what a TCP sender may send now.
    fn transmit(&mut self, index: usize) {
        let now_ns = self.bottleneck.now_ns;
        let stop_ns = self.bottleneck.flows[index].stop_ns;
        if now_ns < stop_ns {
            loop {
                let Flow { access, kind, .. } = &mut self.bottleneck.flows[index];
                let Kind::Tcp(connection) = kind else { return };
                let Some(packet) = connection.next_packet(now_ns, index as u32) else {
                    break;
                };
                match connection.access {
                    None => self.arrive(packet),
                    Some(line) => {
                        let out_ns = now_ns + access.delay_ns(now_ns);
                        if let Some(first_ns) = self.access[line as usize].push(out_ns, packet) {
                            self.bottleneck.agenda.push(first_ns, event::ACCESS | line);
                        }
                    }
                }
            }
        }
        let Bottleneck {
            agenda,
            flows,
            recorder,
            ..
        } = &mut self.bottleneck;
        let Kind::Tcp(connection) = &mut flows[index].kind else {
            return;
        };
        if connection.member.is_none() {
            let window = connection.sender.window();
            recorder.window(now_ns, index, window.cwnd_segments, window.srtt_ns);
        }
        if now_ns >= stop_ns {
            return;
        }
        if let Some(deadline_ns) = connection.arm_sender() {
            agenda.push(deadline_ns.max(now_ns), event::SENDER_TIMER | index as u32);
        }
    }

    fn sender_timer(&mut self, index: usize) -> Option<u64> {
        let Kind::Tcp(connection) = &mut self.bottleneck.flows[index].kind else {
            return None;
        };
        match connection.sender_timer(self.bottleneck.now_ns) {
            Timer::Idle => None,
            Timer::Later(again_ns) => Some(again_ns),
            Timer::Due(()) => {
                self.transmit(index);
                None
            }
        }
    }

    // Capacity.

    /// All opportunities of this instant.
    fn opportunity(&mut self) -> Option<u64> {
        let Engine {
            bottleneck: at,
            medium,
            ..
        } = self;
        while at.device.opportunity_ns() == Some(at.now_ns) {
            let mut budget = at.device.take_opportunity(at.now_ns);
            while budget > 0 {
                if !at.device.is_busy() {
                    at.device.offer(budget);
                    medium.serve(at);
                    if !at.device.is_busy() {
                        break;
                    }
                }
                if at.device.spend(&mut budget) {
                    if let Some(packet) = at.device.end() {
                        medium.leave(at, packet);
                    }
                    if at.device.is_busy() {
                        at.device.begin(at.now_ns);
                    }
                }
            }
        }
        at.device.opportunity_ns()
    }

    /// Reports the capacity to a scheduler that follows it.
    fn report(&mut self) -> Option<u64> {
        let at = &mut self.bottleneck;
        let capacity = &at.link.capacity;
        let offered_bits = at.device.offered_bits();
        let (rate_bps, next_ns) = self.reported.next(at.now_ns, capacity, offered_bits);
        if let Some(rate_bps) = rate_bps.filter(|bps| *bps != at.mux.link_bps()) {
            at.mux.set_link(at.now_ns, rate_bps);
        }
        next_ns
    }

    // From the receivers back.

    #[inline(always)] // it has callers for one link and for several, and is no longer inlined by itself
    fn deliver(&mut self, packet: Packet) {
        if packet.has(Packet::LETTER) {
            return self.receive_letter(packet);
        }
        let index = packet.flow as usize;
        let at = &mut self.bottleneck;
        at.recorder.delivered(at.now_ns, &packet);
        match &mut at.flows[index].kind {
            Kind::Tcp(connection) => {
                let ack = connection.receive(at.now_ns, &packet);
                self.acknowledge(index, ack);
            }
            Kind::Application(_) => self.deliver_to_application(&packet),
            _ => {}
        }
    }

    fn receiver_timer(&mut self, index: usize) -> Option<u64> {
        let Kind::Tcp(connection) = &mut self.bottleneck.flows[index].kind else {
            return None;
        };
        match connection.receiver_timer(self.bottleneck.now_ns) {
            Timer::Idle => None,
            Timer::Later(again_ns) => Some(again_ns),
            Timer::Due(ack) => {
                self.acknowledge(index, ack);
                None
            }
        }
    }

    /// Sends an acknowledgement back and arms the receiver's timer.
    fn acknowledge(&mut self, index: usize, ack: Option<tcp::Ack>) {
        if self.bottleneck.station.is_some() {
            return self.acknowledge_over_links(index, ack);
        }
        let Bottleneck {
            link,
            now_ns,
            agenda,
            flows,
            ..
        } = &mut self.bottleneck;
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
            let back_ns = match access {
                Access::Fixed(delay_ns) => link.return_delay_ns + *delay_ns,
                Access::Varying(behind) => {
                    self.medium.receiver_delay_ns(now_ns) + behind.delay_ns(now_ns)
                }
            };
            if let Some(member) = &mut connection.member {
                member.acks_on_the_way += 1;
            }
            let line = &mut self.acks[connection.ack as usize];
            if let Some(first_ns) = line.push(now_ns + back_ns, (index as u32, ack)) {
                agenda.push(first_ns, event::ACK | connection.ack);
            }
        }
        if let Some(deadline_ns) = connection.arm_receiver() {
            agenda.push(
                deadline_ns.max(now_ns),
                event::RECEIVER_TIMER | index as u32,
            );
        }
    }
}

impl<M: Medium> Transport for Engine<M> {
    fn at(&mut self) -> &mut Bottleneck {
        &mut self.bottleneck
    }

    fn transmit(&mut self, index: usize) {
        Engine::transmit(self, index);
    }

    fn acknowledge(&mut self, index: usize, ack: Option<tcp::Ack>) {
        Engine::acknowledge(self, index, ack);
    }

    fn post(&mut self, index: usize, letter: Letter) -> bool {
        self.bottleneck.station.is_some() && self.send_letter(index, letter)
    }

    fn back_ns(&mut self, index: usize) -> u64 {
        let at = &mut self.bottleneck;
        let return_delay_ns = match &at.station {
            None => at.link.return_delay_ns,
            Some(station) => station.return_delay_ns(index, at.now_ns),
        };
        match &mut at.flows[index].access {
            Access::Fixed(delay_ns) => return_delay_ns + *delay_ns,
            Access::Varying(behind) => {
                self.medium.receiver_delay_ns(at.now_ns) + behind.delay_ns(at.now_ns)
            }
        }
    }
}
