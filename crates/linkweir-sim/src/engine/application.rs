// SPDX-License-Identifier: BSD-3-Clause
//! Applications over TCP in the engine: their connections, their timers, and what they ask for.
//!
//! Requests and SYNs of the receiver go the way of acknowledgements: they take its delay and never wait. What the sender
//! sends, its SYN or its answer to the receiver's included, are packets in the queue of the flow's class, which may be
//! lost. Closing takes no packets.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::experiment;
use crate::random::Random;
use crate::tcp;
use crate::traffic::{Action, Opener, Session};

use super::bottleneck::Bottleneck;
use super::connection::Connection;
use super::flow::{Flow, Kind};
use super::medium::Medium;
use super::member::{Handshake, Member};
use super::packet::Packet;
use super::{event, Engine};

/// An application of a flow.
pub(super) struct Application {
    session: Session,
    tcp: tcp::Config,
    handshake: bool,
    /// Delay line for its segments, and for its acknowledgements.
    access: Option<u32>,
    ack: u32,
    /// Place of each of its connections.
    places: Vec<u32>,
    /// What is to be done later, with an event of the flow each.
    pending: BinaryHeap<Reverse<(u64, u32, Pending)>>,
    scheduled: u32,
    /// Of the connections that are closed.
    past: tcp::Counters,
    past_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pending {
    Begin,
    Wake,
    /// A SYN of the receiver reaches the sender.
    Syn(Address),
    /// The receiver's answer to a SYN reaches the sender.
    Open(Address),
    /// The server has the response to a request, of this many bytes.
    Write(Address, u64),
}

/// A connection, by place and generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Address {
    place: u32,
    generation: u16,
}

/// The connections of all applications.
pub(super) struct Members {
    /// Number of the experiment's flows, behind which the connections are.
    first: u32,
    /// Places without a connection, the one that became free first in front.
    free: VecDeque<u32>,
    /// The generation of the next connection at each place.
    generations: Vec<u16>,
    actions: Vec<Action>,
}

impl Members {
    pub(super) fn new(flows: usize) -> Members {
        Members {
            first: flows as u32,
            free: VecDeque::new(),
            generations: Vec::new(),
            actions: Vec::new(),
        }
    }
}

impl Application {
    pub(super) fn new(
        application: &experiment::Application,
        (start_ns, stop_ns): (u64, u64),
        (access, ack): (Option<u32>, u32),
        random: Random,
    ) -> Application {
        let mut new = Application {
            session: Session::new(&application.session, start_ns, stop_ns, random),
            tcp: application.tcp.clone(),
            handshake: application.handshake && application.tcp.profile == tcp::Profile::Linux,
            access,
            ack,
            places: Vec::new(),
            pending: BinaryHeap::new(),
            scheduled: 0,
            past: tcp::Counters::default(),
            past_bytes: 0,
        };
        new.later(start_ns, Pending::Begin);
        new
    }

    /// Needs an event of the flow at the same time.
    fn later(&mut self, at_ns: u64, pending: Pending) {
        self.scheduled = self.scheduled.wrapping_add(1);
        self.pending.push(Reverse((at_ns, self.scheduled, pending)));
    }

    fn due(&mut self, now_ns: u64) -> Option<Pending> {
        let Reverse((at_ns, _, pending)) = *self.pending.peek()?;
        if at_ns > now_ns {
            return None;
        }
        self.pending.pop();
        Some(pending)
    }

    /// Counters and bytes in order of its closed connections.
    pub(super) fn past(&self) -> (tcp::Counters, u64) {
        (self.past, self.past_bytes)
    }

    /// What the viewer of a video saw.
    pub(super) fn playback(&mut self, now_ns: u64) -> Option<crate::metrics::Playback> {
        let seen = self.session.playback(now_ns)?;
        Some(crate::metrics::Playback {
            segments: seen.segments,
            rates_bps: seen.rates_bps,
            switches: seen.switches,
            startup_ns: seen.startup_ns,
            stalls: seen.stalls,
            stalled_ns: seen.stalled_ns,
            played_ns: seen.played_ns,
        })
    }
}

impl<M: Medium> Engine<'_, M> {
    /// Does what is due of an application.
    #[inline(never)] // keeps the paths of other flows short
    pub(super) fn run_application(&mut self, index: usize) {
        let now_ns = self.bottleneck.now_ns;
        loop {
            let Kind::Application(application) = &mut self.bottleneck.flows[index].kind else {
                return;
            };
            let Some(pending) = application.due(now_ns) else {
                return;
            };
            let actions = &mut self.members.actions;
            match pending {
                Pending::Begin => application.session.begin(now_ns, actions),
                Pending::Wake => application.session.on_wake(now_ns, actions),
                Pending::Syn(address) => self.send_syn(address),
                Pending::Open(address) => self.open_sender(address),
                Pending::Write(address, bytes) => self.write(address, bytes),
            }
            self.act(index);
        }
    }

    /// A packet of an application has arrived.
    #[inline(never)] // keeps the paths of other flows short
    pub(super) fn deliver_to_application(&mut self, packet: &Packet) {
        let now_ns = self.bottleneck.now_ns;
        let (place, generation) = packet.address();
        let address = Address { place, generation };
        let Some((index, connection)) = member_at(&mut self.bottleneck, &self.members, address)
        else {
            return;
        };
        if packet.is_syn() {
            self.open_receiver(address);
            return;
        }
        let ack = connection.receive_member(now_ns, packet);
        self.acknowledge(index, ack);
        let Some((_, connection)) = member_at(&mut self.bottleneck, &self.members, address) else {
            return;
        };
        let delivered = connection.receiver.delivered_segments();
        let Some(member) = &mut connection.member else {
            return;
        };
        if member.waiting && delivered == member.stream.segments() {
            member.waiting = false;
            let (owner, number) = (member.owner as usize, member.connection);
            if let Kind::Application(application) = &mut self.bottleneck.flows[owner].kind {
                let actions = &mut self.members.actions;
                application.session.on_received(now_ns, number, actions);
            }
            self.act(owner);
        }
    }

    /// An acknowledgement has reached the sender of a connection, which may thereby be closed.
    #[inline(never)] // keeps the paths of other flows short
    pub(super) fn acknowledged(&mut self, index: usize, cumulative: u64) {
        let Kind::Tcp(connection) = &mut self.bottleneck.flows[index].kind else {
            return;
        };
        let Some(member) = &mut connection.member else {
            return;
        };
        member.acks_on_the_way -= 1;
        member.stream.acknowledged(cumulative);
        if member.closed {
            self.free(index);
        }
    }

    /// Whether this is the timer of a SYN, which is then sent again if it is due.
    pub(super) fn syn_timer(&mut self, index: usize) -> bool {
        let Kind::Tcp(connection) = &self.bottleneck.flows[index].kind else {
            return false;
        };
        let Some(member) = &connection.member else {
            return false;
        };
        let Handshake {
            sender_open,
            deadline_ns,
            sent_ns,
            ..
        } = member.handshake;
        if sender_open {
            return false;
        }
        if sent_ns.is_some() && self.bottleneck.now_ns >= deadline_ns {
            let address = Address {
                place: index as u32 - self.members.first,
                generation: member.generation,
            };
            self.send_syn(address);
        }
        true
    }

    /// Carries out what an application asked for.
    fn act(&mut self, owner: usize) {
        let mut actions = std::mem::take(&mut self.members.actions);
        for action in actions.drain(..) {
            let now_ns = self.bottleneck.now_ns;
            match action {
                Action::Open { connection, by } => self.open(owner, connection, by),
                Action::Write { connection, bytes } => {
                    let address = self.address(owner, connection);
                    self.write(address, bytes);
                }
                Action::Ask {
                    connection,
                    bytes,
                    server_ns,
                } => {
                    let address = self.address(owner, connection);
                    self.ask(owner, address, bytes, server_ns);
                }
                Action::Close { connection } => {
                    let place = self.address(owner, connection).place;
                    let index = (self.members.first + place) as usize;
                    if let Kind::Tcp(connection) = &mut self.bottleneck.flows[index].kind {
                        if let Some(member) = &mut connection.member {
                            member.closed = true;
                        }
                    }
                    self.free(index);
                }
                Action::Wake { at_ns } => self.later(owner, at_ns, Pending::Wake),
                Action::Begun => self.bottleneck.recorder.begun(now_ns, owner),
                Action::Refused => self.bottleneck.recorder.refused(now_ns, owner),
                Action::Finished { start_ns, bytes } => {
                    let recorder = &mut self.bottleneck.recorder;
                    recorder.finished(now_ns, owner, start_ns, bytes);
                }
            }
        }
        // Keeps its room. Nothing above asks an application, so none was added.
        self.members.actions = actions;
    }

    fn later(&mut self, owner: usize, at_ns: u64, pending: Pending) {
        let at = &mut self.bottleneck;
        if let Kind::Application(application) = &mut at.flows[owner].kind {
            application.later(at_ns, pending);
            at.agenda.push(at_ns, event::SOURCE | owner as u32);
        }
    }

    /// The present connection of this number.
    fn address(&self, owner: usize, connection: u32) -> Address {
        let place = match &self.bottleneck.flows[owner].kind {
            Kind::Application(application) => application.places[connection as usize],
            _ => unreachable!("only applications have connections with numbers"),
        };
        let index = (self.members.first + place) as usize;
        let generation = match &self.bottleneck.flows[index].kind {
            Kind::Tcp(found) => found.member.as_ref().map_or(0, |m| m.generation),
            _ => unreachable!("a connection is open until the application has closed it"),
        };
        Address { place, generation }
    }

    fn open(&mut self, owner: usize, connection: u32, by: Opener) {
        let now_ns = self.bottleneck.now_ns;
        let Bottleneck { flows, .. } = &mut self.bottleneck;
        let place = self.members.free.pop_front().unwrap_or_else(|| {
            flows.push(Flow::default());
            self.members.generations.push(0);
            flows.len() as u32 - 1 - self.members.first
        });
        let generation = self.members.generations[place as usize];
        let Flow {
            class,
            stop_ns,
            access,
            kind: Kind::Application(application),
        } = &mut flows[owner]
        else {
            return;
        };
        let number = connection as usize;
        if application.places.len() <= number {
            application.places.resize(number + 1, 0);
        }
        application.places[number] = place;
        let exchanged = application.handshake;
        let handshake = if exchanged {
            Handshake::default()
        } else {
            Handshake::skipped()
        };
        let mut new = Connection::new(&application.tcp, application.access, application.ack);
        new.member = Some(Box::new(Member::new(
            (owner as u32, connection),
            (place, generation),
            &application.tcp,
            handshake,
        )));
        let flow = Flow {
            class: *class,
            stop_ns: *stop_ns,
            access: access.clone(),
            kind: Kind::Tcp(Box::new(new)),
        };
        flows[(self.members.first + place) as usize] = flow;
        if exchanged {
            let address = Address { place, generation };
            match by {
                Opener::Sender => self.send_syn(address),
                Opener::Receiver => {
                    let back_ns = self.back_ns(owner);
                    self.later(owner, now_ns + back_ns, Pending::Syn(address));
                }
            }
        }
    }

    /// The sender sends its SYN, or its answer to the receiver's, and waits for the answer.
    #[inline(never)] // keeps the paths of other flows short
    fn send_syn(&mut self, address: Address) {
        let now_ns = self.bottleneck.now_ns;
        let Some((index, connection)) = member_at(&mut self.bottleneck, &self.members, address)
        else {
            return;
        };
        let Connection {
            config,
            access: line,
            member: Some(member),
            ..
        } = connection
        else {
            return;
        };
        let first = member.handshake.send(now_ns, config);
        let deadline_ns = member.handshake.deadline_ns;
        let (packet, line) = (member.syn(now_ns, first, config), *line);
        if now_ns >= self.bottleneck.flows[index].stop_ns {
            return;
        }
        self.launch(index, packet, line);
        self.bottleneck
            .agenda
            .push(deadline_ns, event::SENDER_TIMER | index as u32);
    }

    /// The sender's SYN has reached the receiver.
    fn open_receiver(&mut self, address: Address) {
        let now_ns = self.bottleneck.now_ns;
        let Some((_, connection)) = member_at(&mut self.bottleneck, &self.members, address) else {
            return;
        };
        let Some(member) = &mut connection.member else {
            return;
        };
        // One that comes twice is answered twice, and the sender ignores the second answer.
        member.handshake.receiver_open = true;
        let (owner, asks) = (member.owner as usize, std::mem::take(&mut member.asks));
        let back_ns = self.back_ns(owner);
        self.later(owner, now_ns + back_ns, Pending::Open(address));
        for (bytes, server_ns) in asks {
            self.ask(owner, address, bytes, server_ns);
        }
    }

    /// The receiver's answer has reached the sender.
    fn open_sender(&mut self, address: Address) {
        let now_ns = self.bottleneck.now_ns;
        let Some((_, connection)) = member_at(&mut self.bottleneck, &self.members, address) else {
            return;
        };
        let Some(member) = &mut connection.member else {
            return;
        };
        if std::mem::replace(&mut member.handshake.sender_open, true) {
            return;
        }
        let writes = std::mem::take(&mut member.writes);
        if let (Some(sent_ns), 0) = (member.handshake.sent_ns, member.handshake.again) {
            connection.sender.on_handshake(now_ns - sent_ns);
        }
        for bytes in writes {
            self.write(address, bytes);
        }
    }

    /// The receiver asks, as soon as the connection is open.
    fn ask(&mut self, owner: usize, address: Address, bytes: u64, server_ns: u64) {
        let now_ns = self.bottleneck.now_ns;
        let Some((_, connection)) = member_at(&mut self.bottleneck, &self.members, address) else {
            return;
        };
        let Some(member) = &mut connection.member else {
            return;
        };
        if member.handshake.receiver_open {
            let at_ns = now_ns + self.back_ns(owner) + server_ns;
            self.later(owner, at_ns, Pending::Write(address, bytes));
        } else {
            member.asks.push((bytes, server_ns));
        }
    }

    /// The sender writes, as soon as the connection is open.
    fn write(&mut self, address: Address, bytes: u64) {
        let Some((index, connection)) = member_at(&mut self.bottleneck, &self.members, address)
        else {
            return;
        };
        let Some(member) = &mut connection.member else {
            return;
        };
        if !member.handshake.sender_open {
            member.writes.push(bytes);
            return;
        }
        member.waiting = true;
        let segments = member.stream.supply(bytes);
        connection.sender.supply(segments);
        self.transmit(index);
    }

    /// Ends a connection that the application has closed, when the sender knows that all has arrived.
    fn free(&mut self, index: usize) {
        let Kind::Tcp(connection) = &mut self.bottleneck.flows[index].kind else {
            return;
        };
        let Some(member) = &connection.member else {
            return;
        };
        if member.acks_on_the_way > 0 || !connection.sender.is_done() {
            return;
        }
        let (owner, number) = (member.owner as usize, member.connection);
        let (counters, bytes) = (connection.sender.counters(), connection.in_order_bytes());
        let place = index as u32 - self.members.first;
        let generation = &mut self.members.generations[place as usize];
        *generation = (*generation + 1) % Packet::GENERATIONS;
        self.members.free.push_back(place);
        self.bottleneck.flows[index].kind = Kind::Free;
        if let Kind::Application(application) = &mut self.bottleneck.flows[owner].kind {
            application.past.add(&counters);
            application.past_bytes += bytes;
            application.session.on_closed(number);
        }
    }
}

/// The connection of an address with its place among the flows, if it is still there.
fn member_at<'f>(
    at: &'f mut Bottleneck<'_>,
    members: &Members,
    address: Address,
) -> Option<(usize, &'f mut Connection)> {
    let index = (members.first + address.place) as usize;
    match &mut at.flows.get_mut(index)?.kind {
        Kind::Tcp(connection) => {
            let member = connection.member.as_ref()?;
            (member.generation == address.generation).then_some((index, connection))
        }
        _ => None,
    }
}

/// Hands the counters of connections to the recorder, those of an application together.
pub(super) fn record(at: &mut Bottleneck<'_>) {
    let flows = at.experiment.flows.len();
    let mut together: Vec<(tcp::Counters, u64)> = Vec::new();
    for flow in at.flows.iter().skip(flows) {
        if let Kind::Tcp(connection) = &flow.kind {
            let Some(member) = &connection.member else {
                continue;
            };
            together.resize(flows, (tcp::Counters::default(), 0));
            let (counters, bytes) = &mut together[member.owner as usize];
            counters.add(&connection.sender.counters());
            *bytes += connection.in_order_bytes();
        }
    }
    for (index, flow) in at.flows.iter().take(flows).enumerate() {
        let (counters, in_order_bytes) = match &flow.kind {
            Kind::Tcp(connection) => (connection.sender.counters(), connection.in_order_bytes()),
            Kind::Application(application) => {
                let (mut counters, mut bytes) = application.past();
                if let Some((more, more_bytes)) = together.get(index) {
                    counters.add(more);
                    bytes += more_bytes;
                }
                (counters, bytes)
            }
            _ => continue,
        };
        at.recorder.connection(index, counters, in_order_bytes);
    }
}
