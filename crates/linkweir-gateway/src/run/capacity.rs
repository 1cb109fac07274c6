// SPDX-License-Identifier: BSD-3-Clause
//! Capacities from outside: reports of the far end, and programs that know what a link carries.

use linkweir_config::units::{self, Kind};
use linkweir_plane::bytes::superpacket::Packet;
use linkweir_plane::feedback::{self, Message};

use super::station::count;
use super::{Gateway, COMMANDS};
use crate::config::{self, Peer};
use crate::linux::command::{self, Running};
use crate::linux::journal::{log, tell, Event};
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

    /// Starts the programs that are due.
    pub(super) fn start_commands(&mut self, now_ns: u64) {
        for &at in &self.peers.with_commands {
            let station = &mut self.peers.stations[at];
            if station.command_at_ns.is_none_or(|at_ns| now_ns < at_ns) {
                continue;
            }
            let peer = &self.config.peers[at];
            let Some(words) = &peer.capacity.command else {
                station.command_at_ns = None;
                continue;
            };
            let folder = config::paths::folder_of(&self.file);
            let started = Running::start(words, &folder, &peer.name).and_then(|running| {
                self.poll
                    .add(&running, COMMANDS + at as u64)
                    .map(|()| running)
            });
            match started {
                Ok(running) => {
                    station.command = Some(running);
                    station.command_at_ns = None;
                }
                Err(error) => {
                    log(&format!("{}: cannot be started: {error}", words[0]));
                    station.command_at_ns = Some(now_ns + command::RESTART_NS);
                }
            }
        }
    }

    /// Reads a capacity from the program of a peer; one that ended is started again later.
    pub(super) fn read_command(&mut self, now_ns: u64, at: usize) {
        let Some(station) = self.peers.stations.get_mut(at) else {
            return;
        };
        let Some(running) = &mut station.command else {
            return;
        };
        match running.read() {
            Ok(Some(line)) => match config::capacity_bps(&line) {
                Ok(bps) => self.peers.set_capacity(now_ns, at, bps),
                Err(fault) => log(&format!(
                    "the program of peer {}: {:?}: {fault}",
                    self.config.peers[at].name,
                    line.trim()
                )),
            },
            Ok(None) => {}
            Err(_) => {
                let _ = self.poll.remove(&*running);
                station.command = None;
                station.command_at_ns = Some(now_ns + command::RESTART_NS);
            }
        }
    }
}
