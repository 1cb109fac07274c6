// SPDX-License-Identifier: BSD-3-Clause
//! The bottleneck: flows, their queues behind the scheduler, the device that sends, and the delay line to the
//! receivers. Media act on it.

use linkweir_core::{Arrival, Departure, DropReason, Mux};

use crate::experiment::{Experiment, Link};
use crate::metrics::Recorder;
use crate::policies::AnyPolicy;

use super::agenda::Agenda;
use super::device::Device;
use super::event;
use super::flow::{Flow, Kind};
use super::greedy::Lacking;
use super::line::DelayLine;
use super::member::Members;
use super::packet::Packet;
use super::station::Station;

pub(super) struct Bottleneck {
    pub(super) link: Link,
    pub(super) times: Times,
    pub(super) now_ns: u64,
    pub(super) agenda: Agenda,
    pub(super) mux: Mux<AnyPolicy, Packet>,
    /// Of each flow of the experiment, and of packets from outside.
    pub(super) codepoints: Vec<Codepoint>,
    /// When packets that are too old are looked for next, ns; never where no class has a bound.
    pub(super) age_ns: u64,
    pub(super) device: Device,
    /// The flows of the experiment, and behind them the connections of applications.
    pub(super) flows: Vec<Flow>,
    pub(super) members: Members,
    /// Some flow is greedy. Without one, the flow of a departing packet need not be looked up.
    pub(super) any_greedy: bool,
    pub(super) lacking: Lacking,
    /// Packets on their way to the receivers.
    pub(super) propagation: DelayLine<Packet>,
    pub(super) recorder: Recorder,
    /// Packets the scheduler handed to the device.
    pub(super) packets: u64,
    /// What the link knows of the network it is part of, if it is.
    pub(super) station: Option<Box<Station>>,
}

/// What is known of the ECN codepoints of a flow's packets before they come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Codepoint {
    /// Nothing: TCP decides for each packet. Without TCP, none can be marked.
    Own,
    /// They carry ECT(1), as those without TCP in classes of L4S packets ([`crate::experiment::Scheduler::l4s`]).
    Ect1,
    /// Their class sorts them; what its sender lets mark carries ECT(1) if it is scalable, and ECT(0) if not.
    Sorted { scalable: bool },
    /// Their class sorts them; a program that drives the link says of each what it is.
    PerPacket,
}

/// When a run ends, when its totals begin, and how wide its bins are, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) duration_ns: u64,
    pub(super) warmup_ns: u64,
    pub(super) interval_ns: u64,
}

impl Times {
    pub(super) fn of(experiment: &Experiment) -> Times {
        Times {
            duration_ns: experiment.duration_ns,
            warmup_ns: experiment.warmup_ns,
            interval_ns: experiment.interval_ns,
        }
    }
}

impl Bottleneck {
    /// A packet arrives at its queue. The device is not started.
    #[inline]
    pub(super) fn enqueue(&mut self, mut packet: Packet) {
        let now_ns = self.now_ns;
        if now_ns >= self.times.warmup_ns {
            packet.segment |= Packet::IN_TOTALS;
        }
        let wire_bytes = wire_bytes(&self.link, packet.bytes);
        let Bottleneck {
            mux,
            recorder,
            flows,
            lacking,
            codepoints,
            ..
        } = self;
        let flow = &flows[packet.flow as usize];
        let mut sorted = None;
        match codepoints.get(packet.flow as usize) {
            Some(Codepoint::Ect1) => packet.segment |= Packet::ECN_CAPABLE,
            Some(Codepoint::Sorted { scalable }) => {
                let ect1 = *scalable && packet.has(Packet::ECN_CAPABLE);
                sorted = Some(u32::from(ect1 || packet.has(Packet::MARKED)));
            }
            Some(Codepoint::PerPacket) => sorted = Some(u32::from(packet.has(Packet::L4S))),
            Some(Codepoint::Own) | None => {}
        }
        // Each connection of an application is a flow of its own, if its class isolates flows.
        let mut of = flow.number;
        match &flow.kind {
            Kind::Tcp(_) => {}
            kind => {
                if let Kind::Application(_) | Kind::Crossing { application: true } = kind {
                    of = of.wrapping_add(packet.address().0);
                }
                packet.segment |= recorder.number(packet.flow);
            }
        }
        recorder.arrived(now_ns, &packet);
        let arrival = Arrival {
            class: flows[packet.flow as usize].class,
            flow: sorted.unwrap_or(of),
            bytes: wire_bytes,
            pkts: 1,
        };
        mux.arrive(now_ns, arrival, packet, |dropped, _, reason| {
            recorder.dropped(now_ns, &dropped, dropped.is_in_totals(), reason);
            lacking.left(flows, dropped.flow);
        });
        if let Some(age_ns) = self.mux.aged_ns() {
            self.look_at(age_ns);
        }
    }

    /// Looks for packets that are too old at this time, ns, if that is not later than the next look anyway.
    #[cold]
    fn look_at(&mut self, age_ns: u64) {
        if age_ns < self.age_ns {
            self.age_ns = age_ns.max(self.now_ns);
            self.agenda.push(self.age_ns, event::AGE);
        }
    }

    /// Drops what is too old; greedy flows that lost packets put new ones in.
    pub(super) fn drop_aged(&mut self) {
        let Bottleneck {
            mux,
            recorder,
            flows,
            lacking,
            now_ns,
            ..
        } = self;
        mux.drop_aged(*now_ns, u32::MAX, |packet, _, reason| {
            recorder.dropped(*now_ns, &packet, packet.is_in_totals(), reason);
            lacking.left(flows, packet.flow);
        });
        if !self.lacking.is_empty() {
            self.refill();
        }
    }

    /// When to look for packets that are too old next, after this look, ns. A look that was scheduled later is not needed
    /// then, but does no harm.
    pub(super) fn next_age(&mut self) -> Option<u64> {
        let next_ns = self.mux.aged_ns();
        if self.age_ns <= self.now_ns {
            self.age_ns = u64::MAX;
        }
        let next_ns = next_ns.filter(|ns| *ns < self.age_ns)?;
        self.age_ns = next_ns.max(self.now_ns + 1);
        Some(self.age_ns)
    }

    /// The packet that the scheduler lets go next, if any; a greedy flow that lacks it is listed.
    #[inline]
    pub(super) fn dequeue(&mut self) -> Option<Departure<Packet>> {
        let mut departure = self.take();
        if departure.is_none() && !self.lacking.is_empty() {
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
            self.lacking.left(&mut self.flows, departure.item.flow);
        }
        Some(departure)
    }

    /// Asks the scheduler, and records what it drops.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Departure<Packet>> {
        let Bottleneck {
            mux,
            recorder,
            flows,
            lacking,
            now_ns,
            ..
        } = self;
        let mut departure = mux.dequeue(
            *now_ns,
            |packet| packet.has(Packet::ECN_CAPABLE),
            |packet, _, reason| {
                recorder.dropped(*now_ns, &packet, packet.is_in_totals(), reason);
                lacking.left(flows, packet.flow);
            },
        )?;
        if departure.marked {
            departure.item.segment |= Packet::MARKED;
            recorder.marked(departure.class);
        }
        Some(departure)
    }

    /// Drops the packets that have waited for longer than the policy lets them.
    pub(super) fn expire(&mut self) {
        let Bottleneck {
            mux,
            recorder,
            flows,
            lacking,
            now_ns,
            ..
        } = self;
        while let Some((class, most_ns)) = mux.policy_mut().overdue(*now_ns) {
            mux.expire(*now_ns, class, most_ns, |packet| {
                let in_totals = packet.is_in_totals();
                recorder.dropped(*now_ns, &packet, in_totals, DropReason::Policy);
                lacking.left(flows, packet.flow);
            });
        }
    }

    /// Lets greedy flows that lack packets put some into their queues, as far as there is room. Each has one turn: where
    /// one flow's packet drives out another's, that one waits for the next departure.
    pub(super) fn refill(&mut self) {
        if self.is_absent() {
            return;
        }
        for at in 0..self.lacking.begin_turns(&mut self.flows) {
            let flow = self.lacking.turn(at);
            if !self.fill(flow as usize) {
                self.lacking.add(&mut self.flows, flow);
            }
        }
        self.lacking.end_turns();
    }

    /// Whether this greedy flow has all its packets waiting now, or has stopped.
    fn fill(&mut self, index: usize) -> bool {
        loop {
            let Flow {
                class,
                stop_ns,
                access,
                kind: Kind::Greedy { source, .. },
                ..
            } = &mut self.flows[index]
            else {
                return true;
            };
            let created_ns = self.now_ns.saturating_sub(access.delay_ns(self.now_ns));
            if source.is_full() || created_ns >= *stop_ns {
                return true;
            }
            let bytes = source.next_bytes();
            if !self.mux.has_room(*class, wire_bytes(&self.link, bytes)) {
                return false;
            }
            source.create();
            let waiting_pkts = source.waiting_pkts();
            self.enqueue(Packet {
                created_ns,
                segment: 0,
                flow: index as u32,
                bytes,
            });
            // The policy may have dropped one of the flow's packets for the new one; trying again might never end.
            if matches!(&self.flows[index].kind, Kind::Greedy { source, .. } if source.waiting_pkts() < waiting_pkts)
            {
                return false;
            }
        }
    }

    /// Sends a packet on to its receiver, which it reaches at `out_ns`.
    #[inline(always)] // it has callers for one link and for several, and is no longer inlined by itself
    pub(super) fn send_on(&mut self, out_ns: u64, packet: Packet) {
        if self.station.is_some() {
            return self.pass_on(out_ns, packet);
        }
        if let Some(first_ns) = self.propagation.push(out_ns, packet) {
            self.agenda.push(first_ns, event::ARRIVAL);
        }
    }
}

/// Accounted length of a packet.
#[inline]
pub(super) fn wire_bytes(link: &Link, bytes: u32) -> u32 {
    bytes
        .saturating_add_signed(link.overhead_bytes)
        .max(link.mpu_bytes)
}
