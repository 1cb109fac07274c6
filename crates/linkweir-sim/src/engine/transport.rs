// SPDX-License-Identifier: BSD-3-Clause
//! Carries out what applications ask for: opens connections, sends requests and data, and tells the application what has
//! arrived.
//!
//! Requests and SYNs of the receiver go the way of acknowledgements: they take its delay and never wait. What the sender
//! sends, its SYN or its answer to the receiver's included, are packets in the queue of the flow's class, which may be
//! lost. Closing takes no packets.

use crate::tcp;
use crate::traffic::{Action, Opener};

use super::application::{Address, Pending, Request};
use super::bottleneck::Bottleneck;
use super::connection::Connection;
use super::event;
use super::flow::{Flow, Kind};
use super::member::Member;
use super::packet::Packet;
use super::station::Letter;

/// The engine as applications need it: what it must have, and what it then does for them.
pub(super) trait Transport {
    fn at(&mut self) -> &mut Bottleneck;

    /// Sends what a TCP sender may send now.
    fn transmit(&mut self, index: usize);

    /// Sends an acknowledgement back and arms the receiver's timer.
    fn acknowledge(&mut self, index: usize, ack: Option<tcp::Ack>);

    /// Time that an acknowledgement or a request which leaves now takes back to the sender, ns.
    fn back_ns(&mut self, index: usize) -> u64;

    /// Sends a letter of an application's receiver by the way back of the flow, where it has one.
    fn post(&mut self, index: usize, letter: Letter) -> bool;

    /// Does what is due of an application.
    #[cold] // keeps the paths of other flows short
    #[inline(never)]
    fn run_application(&mut self, index: usize) {
        let now_ns = self.at().now_ns;
        loop {
            let Bottleneck { flows, members, .. } = self.at();
            let Kind::Application(application) = &mut flows[index].kind else {
                return;
            };
            let Some(pending) = application.due(now_ns) else {
                return;
            };
            let actions = &mut members.actions;
            match pending {
                Pending::Begin => application.session.begin(now_ns, actions),
                Pending::Wake => application.session.on_wake(now_ns, actions),
                Pending::Syn(address) => self.answer(address),
                Pending::SynAgain(address, times) => self.open_again(index, address, times),
                Pending::AskAgain(request, times) => self.ask_again(index, request, times),
                Pending::Write(address, bytes) => self.write(address, bytes),
            }
            self.act(index);
        }
    }

    /// A packet of an application has arrived.
    #[cold] // keeps the paths of other flows short
    #[inline(never)]
    fn deliver_to_application(&mut self, packet: &Packet) {
        let now_ns = self.at().now_ns;
        let (place, generation) = packet.address();
        let address = Address { place, generation };
        let Some((index, connection)) = member_at(self.at(), address) else {
            return;
        };
        let ack = connection.receive_member(now_ns, packet);
        self.acknowledge(index, ack);
        let Some((_, connection)) = member_at(self.at(), address) else {
            return;
        };
        let delivered = connection.receiver.delivered_segments();
        let Some(member) = &mut connection.member else {
            return;
        };
        if !member.open {
            member.open = true;
            member.opening_ns = now_ns - member.began_ns;
            let (owner, asks) = (member.owner as usize, std::mem::take(&mut member.asks));
            for (bytes, server_ns) in asks {
                self.ask(owner, address, bytes, server_ns);
            }
            return;
        }
        if member.waiting && delivered == member.stream.segments() {
            member.waiting = false;
            let (owner, number) = (member.owner as usize, member.connection);
            let Bottleneck { flows, members, .. } = self.at();
            if let Kind::Application(application) = &mut flows[owner].kind {
                let actions = &mut members.actions;
                application.session.on_received(now_ns, number, actions);
            }
            self.act(owner);
        }
    }

    /// An acknowledgement has reached the sender of a connection, which may thereby be closed.
    #[cold] // keeps the paths of other flows short
    #[inline(never)]
    fn acknowledged(&mut self, index: usize, cumulative: u64) {
        let Kind::Tcp(connection) = &mut self.at().flows[index].kind else {
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

    /// An acknowledgement of a connection will never arrive. That may have been the last thing a closed one waited for.
    fn ack_lost(&mut self, index: usize) {
        let Kind::Tcp(connection) = &mut self.at().flows[index].kind else {
            return;
        };
        let Some(member) = &mut connection.member else {
            return;
        };
        member.acks_on_the_way -= 1;
        if member.closed {
            self.free(index);
        }
    }

    /// Carries out what an application asked for.
    fn act(&mut self, owner: usize) {
        let mut actions = std::mem::take(&mut self.at().members.actions);
        for action in actions.drain(..) {
            let now_ns = self.at().now_ns;
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
                    let index = (self.at().members.first + place) as usize;
                    if let Kind::Tcp(connection) = &mut self.at().flows[index].kind {
                        if let Some(member) = &mut connection.member {
                            member.closed = true;
                        }
                    }
                    self.free(index);
                }
                Action::Wake { at_ns } => self.later(owner, at_ns, Pending::Wake),
                Action::Begun => self.at().recorder.begun(now_ns, owner),
                Action::Refused => self.at().recorder.refused(now_ns, owner),
                Action::Finished { start_ns, bytes } => {
                    let recorder = &mut self.at().recorder;
                    recorder.finished(now_ns, owner, start_ns, bytes);
                }
            }
        }
        // Keeps its room. Nothing above asks an application, so none was added.
        self.at().members.actions = actions;
    }

    fn later(&mut self, owner: usize, at_ns: u64, pending: Pending) {
        let at = self.at();
        if let Kind::Application(application) = &mut at.flows[owner].kind {
            application.later(at_ns, pending);
            at.agenda.push(at_ns, event::SOURCE | owner as u32);
        }
    }

    /// The present connection of this number.
    fn address(&mut self, owner: usize, connection: u32) -> Address {
        let at = self.at();
        let place = match &at.flows[owner].kind {
            Kind::Application(application) => application.places[connection as usize],
            _ => unreachable!("only applications have connections with numbers"),
        };
        let index = (at.members.first + place) as usize;
        let generation = match &at.flows[index].kind {
            Kind::Tcp(found) => found.member.as_ref().map_or(0, |m| m.generation),
            _ => unreachable!("a connection is open until the application has closed it"),
        };
        Address { place, generation }
    }

    fn open(&mut self, owner: usize, connection: u32, by: Opener) {
        let now_ns = self.at().now_ns;
        let Bottleneck { flows, members, .. } = self.at();
        let place = members.free.pop_front().unwrap_or_else(|| {
            flows.push(Flow::default());
            members.generations.push(0);
            flows.len() as u32 - 1 - members.first
        });
        let generation = members.generations[place as usize];
        let Flow {
            class,
            number: isolated,
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
        application.seed = application.seed.wrapping_add(1);
        let config = tcp::Config {
            random: application.seed,
            ..application.tcp.clone()
        };
        let profile = config.profile;
        let mut new = Connection::new(&config, application.access, application.ack);
        new.member = Some(Box::new(Member::new(
            (owner as u32, connection),
            (place, generation),
            &config,
            by == Opener::Receiver,
        )));
        if let Some(member) = &mut new.member {
            member.began_ns = now_ns;
        }
        let flow = Flow {
            class: *class,
            number: isolated.wrapping_add(place),
            stop_ns: *stop_ns,
            access: access.clone(),
            kind: Kind::Tcp(Box::new(new)),
        };
        flows[(members.first + place) as usize] = flow;
        let index = (members.first + place) as usize;
        match (by, profile) {
            (Opener::Sender, _) => self.transmit(index),
            (Opener::Receiver, tcp::Profile::Linux) => {
                let address = Address { place, generation };
                if self.post(owner, Letter::Syn(address)) {
                    self.open_later(owner, address, 1);
                } else {
                    let back_ns = self.back_ns(owner);
                    self.later(owner, now_ns + back_ns, Pending::Syn(address));
                }
            }
            // It answers together with the first data.
            (Opener::Receiver, tcp::Profile::Ns2) => {}
        }
    }

    /// The receiver's SYN has reached the sender, which answers.
    fn answer(&mut self, address: Address) {
        if let Some((index, _)) = member_at(self.at(), address) {
            self.transmit(index);
        }
    }

    /// The receiver asks, as soon as the connection is open.
    fn ask(&mut self, owner: usize, address: Address, bytes: u64, server_ns: u64) {
        let now_ns = self.at().now_ns;
        let Some((_, connection)) = member_at(self.at(), address) else {
            return;
        };
        let Some(member) = &mut connection.member else {
            return;
        };
        if member.open {
            let request = Request {
                address,
                number: member.asked,
                bytes,
                server_ns,
            };
            member.asked += 1;
            if self.post(owner, Letter::Ask(request)) {
                self.ask_later(owner, request, 1);
            } else {
                let at_ns = now_ns + self.back_ns(owner) + server_ns;
                self.later(owner, at_ns, Pending::Write(address, bytes));
            }
        } else {
            member.asks.push((bytes, server_ns));
        }
    }

    /// Looks at a SYN that goes by links after its timeout. As in Linux since 6.5, five timeouts are of the same length before
    /// they double.
    fn open_later(&mut self, owner: usize, address: Address, times: u32) {
        let now_ns = self.at().now_ns;
        let Some((_, connection)) = member_at(self.at(), address) else {
            return;
        };
        let tcp = &connection.config;
        let doublings = times.saturating_sub(SAME_SYN_TIMEOUTS);
        let timeout_ns = backed_off(tcp.initial_rto_ns, doublings, tcp.max_rto_ns);
        let pending = Pending::SynAgain(address, times);
        self.later(owner, now_ns + timeout_ns, pending);
    }

    /// The receiver has waited for the answer to its SYN for a timeout, and sends another one if there is none.
    fn open_again(&mut self, owner: usize, address: Address, times: u32) {
        let waits = match member_at(self.at(), address) {
            Some((_, connection)) => connection.member.as_ref().is_some_and(|m| !m.open),
            None => false,
        };
        if waits && self.post(owner, Letter::Syn(address)) {
            self.open_later(owner, address, times + 1);
        }
    }

    /// Looks at a request that goes by links after the timeout that its sender has after one measured round trip (RFC 6298),
    /// doubled each time.
    fn ask_later(&mut self, owner: usize, request: Request, times: u32) {
        let now_ns = self.at().now_ns;
        let Some((_, connection)) = member_at(self.at(), request.address) else {
            return;
        };
        let tcp = &connection.config;
        let measured_ns = connection.member.as_ref().map_or(0, |m| m.opening_ns);
        let first_ns = match measured_ns {
            0 => tcp.initial_rto_ns,
            // Four times the variation, which begins with half of the first round trip.
            rtt_ns => rtt_ns + (2 * rtt_ns).max(tcp.min_rto_ns),
        };
        let timeout_ns = backed_off(first_ns, times - 1, tcp.max_rto_ns);
        let pending = Pending::AskAgain(request, times);
        self.later(owner, now_ns + timeout_ns, pending);
    }

    /// The timeout of a request is over: it is sent again if it has not reached the sender.
    fn ask_again(&mut self, owner: usize, request: Request, times: u32) {
        let waits = match member_at(self.at(), request.address) {
            Some((_, connection)) => {
                let member = connection.member.as_ref();
                member.is_some_and(|member| member.heard <= request.number)
            }
            None => false,
        };
        if waits && self.post(owner, Letter::Ask(request)) {
            self.ask_later(owner, request, times + 1);
        }
    }

    /// A request has reached the sender by links. Its copies, and those that overtook the one before them, count for nothing.
    fn hear(&mut self, owner: usize, request: Request) {
        let now_ns = self.at().now_ns;
        let Some((_, connection)) = member_at(self.at(), request.address) else {
            return;
        };
        let Some(member) = &mut connection.member else {
            return;
        };
        if member.heard == request.number {
            member.heard += 1;
            let write = Pending::Write(request.address, request.bytes);
            self.later(owner, now_ns + request.server_ns, write);
        }
    }

    /// The sender writes; TCP sends it when the connection is open.
    fn write(&mut self, address: Address, bytes: u64) {
        let now_ns = self.at().now_ns;
        let Some((index, connection)) = member_at(self.at(), address) else {
            return;
        };
        let Some(member) = &mut connection.member else {
            return;
        };
        member.waiting = true;
        let segments = member.stream.supply(bytes);
        connection.sender.supply(now_ns, segments);
        self.transmit(index);
    }

    /// Ends a connection that the application has closed, when the sender knows that all has arrived.
    fn free(&mut self, index: usize) {
        let Bottleneck { flows, members, .. } = self.at();
        let Kind::Tcp(connection) = &mut flows[index].kind else {
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
        let place = index as u32 - members.first;
        let generation = &mut members.generations[place as usize];
        *generation = (*generation + 1) % Packet::GENERATIONS;
        members.free.push_back(place);
        flows[index].kind = Kind::Free;
        if let Kind::Application(application) = &mut flows[owner].kind {
            application.past.add(&counters);
            application.past_bytes += bytes;
            application.session.on_closed(number);
        }
    }
}

/// Timeouts of a SYN before they double (`tcp_syn_linear_timeouts`, and the one after them).
const SAME_SYN_TIMEOUTS: u32 = 5;

/// A timeout after so many doublings, ns.
fn backed_off(first_ns: u64, doublings: u32, most_ns: u64) -> u64 {
    first_ns.saturating_mul(1 << doublings.min(30)).min(most_ns)
}

/// The connection of an address with its place among the flows, if it is still there.
fn member_at(at: &mut Bottleneck, address: Address) -> Option<(usize, &mut Connection)> {
    let index = (at.members.first + address.place) as usize;
    match &mut at.flows.get_mut(index)?.kind {
        Kind::Tcp(connection) => {
            let member = connection.member.as_ref()?;
            (member.generation == address.generation).then_some((index, connection))
        }
        _ => None,
    }
}

/// Hands the counters of connections to the recorder, those of an application together.
pub(super) fn record(at: &mut Bottleneck) {
    let flows = at.members.first as usize;
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
