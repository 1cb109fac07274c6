// SPDX-License-Identifier: BSD-3-Clause
//! Capacities from outside: reports of the far end, and programs that know what a link carries.

use linkweir_config::units::{self, Kind};
use linkweir_plane::bytes::superpacket::Packet;
use linkweir_plane::feedback::{self, Message};

use super::station::count;
use super::Gateway;
use crate::config::Peer;
use crate::linux::journal::{tell, Event};
use crate::linux::poll::now_ns;

impl Gateway {
    /// Takes a mark or a report of a peer; none is a malformed message.
    pub(super) fn receive_message(&mut self, at: usize, message: Option<Message>) {
        let now_ns = now_ns();
        self.peers.wakes.wake(at);
        let sent = self.peers.sent(at);
        let station = &mut self.peers.stations[at];
        match (message, &mut station.reporter, &mut station.feedback) {
            (Some(Message::Mark { sent_ns }), Some(reporter), _) => {
                reporter.marked(now_ns, sent_ns);
            }
            (Some(Message::Report(report)), _, Some(feedback)) => {
                if let Some(steer) = feedback.reported(now_ns, report, sent, self.config.wire()) {
                    self.peers.steer(now_ns, at, steer);
                }
            }
            (Some(_), ..) => count(&mut station.dropped, "unasked"),
            (None, ..) => count(&mut station.dropped, "malformed"),
        }
    }

    /// Sends a mark or report that is due to a peer, before the packets that wait; a link that is busy delays it.
    pub(super) fn send_message(&mut self, now_ns: u64, at: usize) {
        if self.message_due_ns(now_ns, at).is_none_or(|ns| now_ns < ns) {
            return;
        }
        let stations = self.peers.stations.len();
        let sharing = self.peers.hub.as_ref().map_or(1, |_| stations as u64);
        let wire_bytes = self.config.wire_bytes(feedback::MESSAGE_BYTES);
        let sent = self.peers.sent(at);
        let station = &mut self.peers.stations[at];
        let Some(message) = station.message(now_ns, sent, wire_bytes, sharing) else {
            return;
        };
        self.peers.sent_bytes += u64::from(wire_bytes);
        match &mut self.peers.hub {
            Some(hub) => hub.occupy(now_ns, at, wire_bytes, &mut station.link),
            None => station.link.occupy(now_ns, wire_bytes),
        }
        self.send(at, Packet::from(&message.packet()[..]), 0);
    }

    /// Says when the reported capacity towards a peer has expired. Returns when it will, ns.
    pub(super) fn check_capacity(&mut self, now_ns: u64, at: usize) -> Option<u64> {
        let station = &mut self.peers.stations[at];
        let expired = station.link.has_expired(now_ns);
        if expired && !station.had_expired {
            let Peer { name, capacity, .. } = &self.config.peers[at];
            let floor = units::show_whole(capacity.floor_bps, Kind::Rate);
            let what = format!(
                "nothing has reported its capacity for too long; the floor of {floor} holds"
            );
            tell(Event::CapacityExpired, name, &what);
        }
        station.had_expired = expired;
        Some(station.link.or_expiry_ns(u64::MAX)).filter(|ns| *ns != u64::MAX)
    }

    /// Changes the pace towards a peer as time passes, where its reports set it. Returns when it changes next, ns.
    pub(super) fn check_feedback(&mut self, now_ns: u64, at: usize) -> Option<u64> {
        let sent = self.peers.sent(at);
        let feedback = self.peers.stations[at].feedback.as_mut()?;
        let mut turn_ns = feedback.turn_ns();
        if turn_ns <= now_ns {
            let steer = feedback.turn(now_ns, sent);
            turn_ns = feedback.turn_ns();
            self.peers.steer(now_ns, at, steer);
        }
        Some(turn_ns).filter(|ns| *ns != u64::MAX)
    }

    /// When a message to a peer is due and the link is free, ns.
    pub(super) fn message_due_ns(&mut self, now_ns: u64, at: usize) -> Option<u64> {
        let station = &mut self.peers.stations[at];
        let due_ns = station.due_ns()?;
        let link = &mut station.link;
        let free_ns = match &self.peers.hub {
            Some(hub) => hub.free_ns(now_ns, link),
            None => link.channel_free_ns(now_ns),
        };
        Some(due_ns.max(free_ns?))
    }
}
