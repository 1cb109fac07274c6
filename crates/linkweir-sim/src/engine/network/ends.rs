// SPDX-License-Identifier: BSD-3-Clause
//! Sources and receivers in a network: they are at a link as with one link, but their packets may begin elsewhere, and what
//! the receiver sends may go by links.

use crate::metrics::Seen;
use crate::tcp;

use super::super::access::Access;
use super::super::application::Pending;
use super::super::connection::Connection;
use super::super::event;
use super::super::flow::{Flow, Kind};
use super::super::medium::Medium;
use super::super::packet::Packet;
use super::super::station::{Letter, Notice};
use super::super::transport::Transport;
use super::super::Engine;

impl<M: Medium> Engine<M> {
    /// Whether a packet that its source has sent goes to the queue of this link; if not, it has been taken care of.
    #[inline]
    pub(in super::super) fn enter(&mut self, packet: &mut Packet) -> bool {
        let at = &mut self.bottleneck;
        let Some(station) = &mut at.station else {
            return true;
        };
        if at.recorder.is_watched() && !packet.has(Packet::LETTER) {
            packet.segment |= at.recorder.number(packet.flow);
            at.recorder.entered(at.now_ns, packet);
        }
        let Some(target) = station.first(packet, at.now_ns) else {
            self.lose(packet);
            return false;
        };
        packet.flow = target.entry;
        if target.place == station.place {
            return self.admit(packet);
        }
        station
            .mail
            .messages
            .push(target.message(at.now_ns, *packet));
        false
    }

    /// Whether the link is there for a packet that comes to its queue.
    #[inline]
    pub(super) fn admit(&mut self, packet: &Packet) -> bool {
        let at = &mut self.bottleneck;
        let is_absent = at.is_absent();
        if is_absent {
            at.recorder.lost_on_arrival(at.now_ns, packet);
        }
        !is_absent
    }

    /// The link goes, or is there again. Returns when that changes next.
    pub(in super::super) fn change_presence(&mut self) -> Option<u64> {
        let at = &mut self.bottleneck;
        let station = at.station.as_ref()?;
        let again_ns = station.next_change_ns(Some(at.now_ns));
        if !at.is_absent() {
            at.refill();
            self.medium.start_device(at);
        } else if at.loses_all() {
            at.lose_all();
        }
        again_ns
    }

    /// There is no way for a packet that begins it now.
    #[cold]
    fn lose(&mut self, packet: &Packet) {
        if packet.has(Packet::LETTER) {
            self.forget_letter(packet.sequence());
        } else {
            let at = &mut self.bottleneck;
            at.recorder.astray(at.now_ns, packet);
        }
    }

    /// Sends a letter back, if the flow has a way back.
    pub(in super::super) fn send_letter(&mut self, entry: usize, letter: Letter) -> bool {
        let at = &mut self.bottleneck;
        let Some(station) = at.station.as_mut().filter(|s| s.has_way_back(entry)) else {
            return false;
        };
        let tcp = match &at.flows[entry].kind {
            Kind::Tcp(connection) => &connection.config,
            Kind::Application(application) => &application.tcp,
            _ => return false,
        };
        let bytes = match &letter {
            Letter::Ack(_, ack) => tcp.ack_wire_bytes(ack),
            Letter::Syn(_) => tcp.syn_bytes(),
            Letter::Ask(..) => tcp.header_bytes + tcp::REQUEST_BYTES,
        };
        let number = station.letters.keep(letter);
        self.arrive(Packet {
            created_ns: self.bottleneck.now_ns,
            segment: u64::from(number) | Packet::LETTER,
            flow: entry as u32,
            bytes,
        });
        true
    }

    /// A letter has reached the end of its way. The access delay of the sender is left.
    #[cold]
    #[inline(never)]
    pub(in super::super) fn receive_letter(&mut self, packet: Packet) {
        let at = &mut self.bottleneck;
        let access_ns = at.flows[packet.flow as usize].access.delay_ns(at.now_ns);
        if access_ns == 0 {
            return self.open_letter(&packet);
        }
        if let Some(station) = &mut at.station {
            let out_ns = at.now_ns + access_ns;
            station.held.push(out_ns, packet);
            at.agenda.push(out_ns, event::LETTER);
        }
    }

    /// The letter that was to be first has taken the access delay.
    #[cold]
    pub(in super::super) fn open_first(&mut self) {
        let station = self.bottleneck.station.as_mut();
        if let Some(packet) = station.and_then(|station| station.held.pop()) {
            self.open_letter(&packet);
        }
    }

    fn open_letter(&mut self, packet: &Packet) {
        let owner = packet.flow as usize;
        let at = &mut self.bottleneck;
        let station = at.station.as_mut();
        match station.and_then(|station| station.letters.take(packet.sequence())) {
            Some(Letter::Ack(flow, ack)) => self.take_ack(flow as usize, &ack),
            Some(Letter::Syn(address)) => {
                let now_ns = at.now_ns;
                self.later(owner, now_ns, Pending::Syn(address));
            }
            Some(Letter::Ask(request)) => self.hear(owner, request),
            None => {}
        }
    }

    /// A letter is lost.
    #[cold]
    fn forget_letter(&mut self, number: u64) {
        let station = self.bottleneck.station.as_mut();
        let letter = station.and_then(|station| station.letters.take(number));
        if let Some(Letter::Ack(flow, _)) = letter {
            self.ack_lost(flow as usize);
        }
    }

    /// A packet of a flow whose ends are here was dropped or lost somewhere.
    #[cold]
    pub(super) fn learn(&mut self, notice: &Notice) {
        if notice.is_letter {
            self.forget_letter(notice.packet.number);
        } else {
            self.bottleneck.recorder.learned(&Seen {
                flow: notice.entry,
                ..notice.packet
            });
        }
    }

    /// As [`Engine::acknowledge`], for a connection in a network.
    #[inline(never)]
    pub(in super::super) fn acknowledge_over_links(&mut self, index: usize, ack: Option<tcp::Ack>) {
        if let Some(ack) = ack {
            self.send_ack(index, ack);
        }
        let at = &mut self.bottleneck;
        let Kind::Tcp(connection) = &mut at.flows[index].kind else {
            return;
        };
        if let Some(deadline_ns) = connection.arm_receiver() {
            at.agenda.push(
                deadline_ns.max(at.now_ns),
                event::RECEIVER_TIMER | index as u32,
            );
        }
    }

    fn send_ack(&mut self, index: usize, ack: tcp::Ack) {
        let Some(owner) = self.owner(index) else {
            return;
        };
        if let Kind::Tcp(connection) = &mut self.bottleneck.flows[index].kind {
            if let Some(member) = &mut connection.member {
                member.acks_on_the_way += 1;
            }
        }
        if self.send_letter(owner, Letter::Ack(index as u32, ack)) {
            return;
        }
        let at = &mut self.bottleneck;
        let return_delay_ns = match &at.station {
            Some(station) => station.return_delay_ns(owner, at.now_ns),
            None => 0,
        };
        let Flow {
            access: Access::Fixed(access_ns),
            kind: Kind::Tcp(connection),
            ..
        } = &at.flows[index]
        else {
            return;
        };
        let back_ns = return_delay_ns + access_ns;
        let line = connection.ack;
        if let Some(first_ns) =
            self.acks[line as usize].push(at.now_ns + back_ns, (index as u32, ack))
        {
            at.agenda.push(first_ns, event::ACK | line);
        }
    }

    /// The entry of the flow that a connection belongs to.
    fn owner(&self, index: usize) -> Option<usize> {
        let Kind::Tcp(connection) = &self.bottleneck.flows[index].kind else {
            return None;
        };
        let Connection { member, .. } = &**connection;
        Some(
            member
                .as_ref()
                .map_or(index, |member| member.owner as usize),
        )
    }
}
