// SPDX-License-Identifier: BSD-3-Clause
//! An engine that its caller drives: packets come from outside, at the times that the caller says, and what happens to them
//! goes back to it. The rest is as in a run: the same queues, device, medium and order of events. Flows of the experiment
//! are other traffic on the link.

use std::sync::Arc;

use linkweir_core::FLOW_QUEUES;

use crate::experiment::{Experiment, Flow, Measures, Traffic};
use crate::metrics::Noted;

use super::access::Access;
use super::agenda::Entry;
use super::beam::BeamLink;
use super::bottleneck::{wire_bytes, Codepoint};
use super::build;
use super::event;
use super::flow::Kind;
use super::line::DelayLine;
use super::medium::{ImpairedLink, Medium, PlainLink};
use super::packet::Packet;
use super::satellite::SatelliteLink;
use super::{Engine, RunError};

/// A link that is driven from outside: no clock, no thread, no file.
pub struct Driven {
    engine: Box<dyn Steps + Send>,
    /// The first of the flows that bring packets from outside, one for each class.
    first: u32,
    classes: u32,
    now_ns: u64,
    end_ns: u64,
}

/// A packet from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Index of its class.
    pub class: u32,
    /// Tells it apart from the packets of other flows, where its class isolates them; numbers that are the same by remainder of
    /// `FLOW_QUEUES` share a queue. Behind a satellite's own delays, all
    /// packets of a class have the number of the last one.
    pub flow: u32,
    /// Its own bytes, without the link's overhead.
    pub bytes: u32,
    /// Whether it can carry a congestion mark (ECT).
    pub ecn_capable: bool,
    /// Whether it is an L4S packet (ECT(1) or CE), where its class sorts by ECN.
    pub l4s: bool,
}

/// Why a packet from outside was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// There is no such class.
    Class,
    /// It has no bytes, or too many with the link's overhead.
    Bytes,
    /// The link's time is over.
    Over,
}

/// A step of a packet from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Happened {
    /// When, ns.
    pub at_ns: u64,
    /// Index of its class.
    pub class: u32,
    /// Its number among the packets of its class, from 0.
    pub number: u64,
    /// The step.
    pub step: Happening,
}

/// Steps of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The scheduler handed it to the device.
    Left,
    /// It has arrived; whether it carries a congestion mark (CE).
    Arrived {
        /// It carries one.
        marked: bool,
    },
    /// It was dropped or lost, for a reason as in table `packets`.
    Gone(&'static str),
}

impl Driven {
    /// The link of an experiment, at time 0. Series, logs and measurements that the experiment asks for are not made.
    ///
    /// # Errors
    /// An experiment that contradicts itself, or parameters that the policy refuses.
    pub fn new(experiment: &Experiment) -> Result<Driven, RunError> {
        let mut experiment = Experiment {
            warmup_ns: 0,
            log_rows: None,
            ..experiment.clone()
        };
        for flow in &mut experiment.flows {
            flow.measures = Measures::default();
        }
        build::validate(&experiment).map_err(RunError::Invalid)?;
        let first = experiment.flows.len() as u32;
        // Behind all others, so that these have the same random numbers as in a run.
        let outside = experiment
            .classes
            .iter()
            .enumerate()
            .map(|(class, named)| Flow {
                name: named.name.clone(),
                class,
                start_ns: 0,
                stop_ns: experiment.duration_ns,
                access_delay_ns: 0,
                traffic: Traffic::Replay {
                    packets: Arc::from([]),
                    period_ns: None,
                },
                measures: Measures::default(),
            });
        let outside: Vec<Flow> = outside.collect();
        experiment.flows.extend(outside);
        Ok(Driven {
            engine: engine(&experiment)?,
            first,
            classes: experiment.classes.len() as u32,
            now_ns: 0,
            end_ns: experiment.duration_ns,
        })
    }

    /// Whether the link would take a packet at a time. Nothing is changed by it.
    ///
    /// # Errors
    /// Why it would not.
    pub fn takes(&self, now_ns: u64, packet: Outside) -> Result<(), NotTaken> {
        if packet.class >= self.classes {
            return Err(NotTaken::Class);
        }
        if !self.engine.carries(packet.bytes) {
            return Err(NotTaken::Bytes);
        }
        if self.now_ns.max(now_ns) >= self.end_ns {
            return Err(NotTaken::Over);
        }
        Ok(())
    }

    /// A packet comes to its queue. Everything that is due by then happens first, in `happened`; then what its arrival
    /// causes at once. Packets of a class have numbers from 0, in the order in which they come. A time before the last one
    /// counts as that.
    ///
    /// # Errors
    /// A packet that the link does not take. Nothing is changed by it, the time neither.
    pub fn arrive(
        &mut self,
        now_ns: u64,
        packet: Outside,
        happened: &mut dyn FnMut(Happened),
    ) -> Result<(), NotTaken> {
        self.takes(now_ns, packet)?;
        self.advance(now_ns, happened);
        let flow = self.first + packet.class;
        self.engine.arrive(self.now_ns, flow, packet);
        self.hand_out(happened);
        Ok(())
    }

    /// Lets everything happen that is due by a time, that time included.
    pub fn advance(&mut self, until_ns: u64, happened: &mut dyn FnMut(Happened)) {
        self.now_ns = self.now_ns.max(until_ns);
        let last_ns = self.now_ns.min(self.end_ns - 1);
        while self.engine.next_ns().is_some_and(|ns| ns <= last_ns) {
            self.engine.step();
            self.hand_out(happened);
        }
    }

    /// When something happens next, ns: to a packet, or to the link; none if nothing will without another packet.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.engine.next_ns().filter(|ns| *ns < self.end_ns)
    }

    /// When the link's time is over, ns.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    fn hand_out(&mut self, happened: &mut dyn FnMut(Happened)) {
        for noted in self.engine.noted().drain(..) {
            let Some(class) = noted.packet.flow.checked_sub(self.first) else {
                continue; // other traffic
            };
            let step = match noted.event {
                "sent" => Happening::Left,
                "delivered" => Happening::Arrived {
                    marked: noted.packet.marked,
                },
                "dropped" => Happening::Gone(noted.reason),
                _ => continue,
            };
            happened(Happened {
                at_ns: noted.t_ns,
                class,
                number: noted.packet.number,
                step,
            });
        }
    }
}

fn engine(experiment: &Experiment) -> Result<Box<dyn Steps + Send>, RunError> {
    let link = &experiment.link;
    Ok(if let Some(satellite) = &link.satellite {
        driven(experiment, SatelliteLink::new(satellite, experiment))?
    } else if let Some(beam) = &link.beam {
        driven(experiment, BeamLink::new(beam, experiment))?
    } else if link.bond.is_some() {
        return Err(RunError::Invalid(
            "a bond is simulated by a run, and not driven from outside".to_owned(),
        ));
    } else if ImpairedLink::is_needed(link) {
        driven(experiment, ImpairedLink::new(link, experiment.seed))?
    } else {
        driven(experiment, PlainLink::new(link, experiment.seed))?
    })
}

fn driven<M: Medium + Send + 'static>(
    experiment: &Experiment,
    medium: M,
) -> Result<Box<dyn Steps + Send>, RunError> {
    let mut engine = Engine::new(experiment, medium)?;
    engine.bottleneck.recorder.note_steps(experiment);
    // The program says of each packet from outside whether it can be marked.
    let own = experiment.flows.len() - experiment.classes.len();
    for outside in &mut engine.bottleneck.codepoints[own..] {
        *outside = match outside {
            Codepoint::Sorted { .. } => Codepoint::PerPacket,
            _ => Codepoint::Own,
        };
    }
    let first_line = engine.access.len() as u32;
    let lines = experiment.classes.iter().map(|_| DelayLine::new());
    engine.access.extend(lines);
    // Numbers from outside begin where those of connections did, so the connections get other queues than the first of them.
    for flow in &mut engine.bottleneck.flows {
        if let Kind::Application(_) = flow.kind {
            flow.number = flow.number.wrapping_add(FLOW_QUEUES as u32 / 2);
        }
    }
    Ok(Box::new(Fed { engine, first_line }))
}

/// An engine, and the lines by which packets from outside come to its queues.
struct Fed<M> {
    engine: Engine<M>,
    /// The number of the first; each class has one. Only a satellite with delays of its own needs them.
    first_line: u32,
}

/// An engine over some medium.
trait Steps {
    /// When the next event is.
    fn next_ns(&self) -> Option<u64>;

    /// Runs it.
    fn step(&mut self);

    /// Whether the link can carry a packet of this length.
    fn carries(&self, bytes: u32) -> bool;

    /// A packet arrives at its queue now.
    fn arrive(&mut self, now_ns: u64, flow: u32, packet: Outside);

    /// What has happened to packets since this was last emptied.
    fn noted(&mut self) -> &mut Vec<Noted>;
}

impl<M: Medium> Steps for Fed<M> {
    fn next_ns(&self) -> Option<u64> {
        self.engine.bottleneck.agenda.first().map(Entry::time_ns)
    }

    fn step(&mut self) {
        let engine = &mut self.engine;
        let Some(first) = engine.bottleneck.agenda.first() else {
            return;
        };
        engine.bottleneck.now_ns = first.time_ns();
        let again_ns = engine.handle(first.event());
        engine.bottleneck.agenda.done(first.event(), again_ns);
    }

    fn carries(&self, bytes: u32) -> bool {
        let on_link = wire_bytes(&self.engine.bottleneck.link, bytes);
        bytes > 0 && (1..linkweir_core::MAX_PACKET_BYTES).contains(&on_link)
    }

    fn arrive(&mut self, now_ns: u64, flow: u32, packet: Outside) {
        let engine = &mut self.engine;
        let at = &mut engine.bottleneck;
        at.now_ns = now_ns;
        let entering = Packet {
            created_ns: now_ns,
            segment: (u64::from(packet.ecn_capable || packet.l4s) * Packet::ECN_CAPABLE)
                | (u64::from(packet.l4s) * Packet::L4S),
            flow,
            bytes: packet.bytes,
        };
        let from = &mut at.flows[flow as usize];
        // Behind the numbers of the other traffic's flows.
        from.number = (flow - packet.class).wrapping_add(packet.flow);
        match &mut from.access {
            Access::Fixed(_) => engine.arrive(entering),
            Access::Varying(behind) => {
                let out_ns = now_ns.saturating_add(behind.delay_ns(now_ns));
                let line = self.first_line + packet.class;
                let first_ns = engine.access[line as usize].push(out_ns, entering);
                if let Some(first_ns) = first_ns {
                    at.agenda.push(first_ns, event::ACCESS | line);
                }
            }
        }
    }

    fn noted(&mut self) -> &mut Vec<Noted> {
        self.engine.bottleneck.recorder.noted()
    }
}
