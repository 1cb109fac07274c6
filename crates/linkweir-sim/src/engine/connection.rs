// SPDX-License-Identifier: BSD-3-Clause
//! A TCP connection in the engine: sender, receiver, and the timers of both.
//!
//! Deadlines move with nearly every segment, mostly later. So a timer's event is left where it is, and the deadline is
//! compared when it fires; only an earlier deadline needs an event of its own. The superfluous event then finds
//! that another one is in charge, and does nothing.

use crate::tcp;

use super::member::Member;
use super::packet::Packet;

pub(super) struct Connection {
    pub(super) sender: tcp::Sender,
    pub(super) receiver: tcp::Receiver,
    pub(super) config: tcp::Config,
    /// Delay line for its segments; none when there is no access delay.
    pub(super) access: Option<u32>,
    /// Delay line for its acknowledgements.
    pub(super) ack: u32,
    /// Times of the timers' events in charge.
    sender_timer_ns: Option<u64>,
    receiver_timer_ns: Option<u64>,
    /// It belongs to an application.
    pub(super) member: Option<Box<Member>>,
}

/// The purpose of a timer's event.
pub(super) enum Timer<T> {
    /// Nothing: another event is in charge, or there is no deadline any more.
    Idle,
    /// The same event again at this time, ns.
    Later(u64),
    /// The deadline is over.
    Due(T),
}

impl Connection {
    pub(super) fn new(config: &tcp::Config, access: Option<u32>, ack: u32) -> Connection {
        Connection {
            sender: tcp::Sender::new(config),
            receiver: tcp::Receiver::new(config),
            config: config.clone(),
            access,
            ack,
            sender_timer_ns: None,
            receiver_timer_ns: None,
            member: None,
        }
    }

    /// The next segment that window and data allow, as a packet of this flow.
    #[inline(always)] // it has a caller for each medium, and is no longer inlined by itself
    pub(super) fn next_packet(&mut self, now_ns: u64, flow: u32) -> Option<Packet> {
        let mut segment = self.sender.next_segment(now_ns)?;
        if let Some(member) = &self.member {
            if segment.bare && member.answers {
                segment = self.sender.next_segment(now_ns)?;
            }
            return Some(member.packet(&self.config, &segment));
        }
        Some(Packet {
            created_ns: segment.sent_ns,
            segment: segment.sequence | Packet::marks(&segment),
            flow,
            bytes: self.config.segment_wire_bytes(&segment),
        })
    }

    /// A segment has arrived; returns the acknowledgement to send at once, if any.
    #[inline]
    pub(super) fn receive(&mut self, now_ns: u64, packet: &Packet) -> Option<tcp::Ack> {
        let segment = packet.as_segment(packet.sequence());
        self.receiver.on_segment(now_ns, &segment)
    }

    /// As [`Connection::receive`], for a connection of an application.
    pub(super) fn receive_member(&mut self, now_ns: u64, packet: &Packet) -> Option<tcp::Ack> {
        let sequence = packet.sequence_near(self.receiver.delivered_segments());
        self.receiver
            .on_segment(now_ns, &packet.as_segment(sequence))
    }

    /// Payload delivered in order, bytes.
    pub(super) fn in_order_bytes(&self) -> u64 {
        let segments = self.receiver.delivered_segments();
        match &self.member {
            Some(member) => member.stream.payload_bytes(segments),
            None => self.config.payload_bytes(segments),
        }
    }

    /// The time of a new event for the sender's timer, if it needs one.
    #[inline]
    pub(super) fn arm_sender(&mut self) -> Option<u64> {
        armed(&mut self.sender_timer_ns, self.sender.deadline_ns())
    }

    /// The time of a new event for the receiver's timer, if it needs one.
    #[inline]
    pub(super) fn arm_receiver(&mut self) -> Option<u64> {
        armed(&mut self.receiver_timer_ns, self.receiver.deadline_ns())
    }

    /// An event of the sender's timer. When it is due the sender has acted on it, and may send.
    pub(super) fn sender_timer(&mut self, now_ns: u64) -> Timer<()> {
        match fired(&mut self.sender_timer_ns, self.sender.deadline_ns(), now_ns) {
            Timer::Due(()) => {
                self.sender.on_timer(now_ns);
                Timer::Due(())
            }
            other => other,
        }
    }

    /// An event of the receiver's timer. When it is due there may be an acknowledgement to send.
    pub(super) fn receiver_timer(&mut self, now_ns: u64) -> Timer<Option<tcp::Ack>> {
        match fired(
            &mut self.receiver_timer_ns,
            self.receiver.deadline_ns(),
            now_ns,
        ) {
            Timer::Due(()) => Timer::Due(self.receiver.on_timer(now_ns)),
            Timer::Later(again_ns) => Timer::Later(again_ns),
            Timer::Idle => Timer::Idle,
        }
    }
}

/// Puts a new event in charge of the deadline, if that comes before the event in charge; returns its time.
#[inline]
fn armed(timer_ns: &mut Option<u64>, deadline_ns: Option<u64>) -> Option<u64> {
    let deadline_ns = deadline_ns?;
    if timer_ns.is_some_and(|timer_ns| timer_ns <= deadline_ns) {
        return None;
    }
    *timer_ns = Some(deadline_ns);
    Some(deadline_ns)
}

fn fired(timer_ns: &mut Option<u64>, deadline_ns: Option<u64>, now_ns: u64) -> Timer<()> {
    if timer_ns.is_none_or(|timer_ns| timer_ns > now_ns) {
        return Timer::Idle;
    }
    *timer_ns = deadline_ns.filter(|deadline_ns| *deadline_ns > now_ns);
    match (*timer_ns, deadline_ns) {
        (Some(again_ns), _) => Timer::Later(again_ns),
        (None, Some(_)) => Timer::Due(()),
        (None, None) => Timer::Idle,
    }
}
