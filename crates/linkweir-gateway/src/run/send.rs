// SPDX-License-Identifier: BSD-3-Clause
//! Sending: packets whose turn it is leave the queues, are sealed, gathered in the outbox and sent.

use linkweir_config::units::{self, Kind};
use linkweir_plane::below;
use linkweir_plane::bytes::packet;
use linkweir_plane::bytes::superpacket::Packet;
use linkweir_plane::link::Next;
use linkweir_plane::paths::Over;
use linkweir_plane::reservation::Reservation;
use linkweir_plane::setup::Wire;
use linkweir_plane::tos::{self, Model};

use super::egress::Egress;
use super::peers::Peers;
use super::station::count_all;
use super::{Gateway, UNDERLAY};
use crate::linux::journal::{tell, Event};
use crate::linux::poll;

/// The outcome of serving a link.
enum Served {
    /// Nothing may leave before this time, ns; none: nothing waits.
    Until(Option<u64>),
    /// The socket has no room.
    NoRoom,
}

impl Gateway {
    /// Sends what may leave now; returns when more may leave, ns.
    pub(super) fn serve(&mut self, mut now_ns: u64) -> Option<u64> {
        self.peers.wakes.take_due(now_ns);
        let mut shared_ns = None;
        let mut has_room = self.flush(now_ns);
        if has_room {
            for _ in 0..self.peers.wakes.ready() {
                let Some(at) = self.peers.wakes.pop() else {
                    break;
                };
                has_room = self.serve_peer(&mut now_ns, at);
                if !has_room {
                    break;
                }
            }
            if has_room && self.peers.hub.is_some() {
                match self.serve_link(&mut now_ns, None) {
                    Served::Until(ns) => shared_ns = ns,
                    Served::NoRoom => has_room = false,
                }
            }
            has_room &= self.flush(now_ns);
            self.note_idle();
        }
        let has_sessions = self.peers.identity.is_some();
        let ready_ns = (has_room && self.peers.wakes.ready() > 0).then_some(now_ns);
        let times = [
            ready_ns,
            shared_ns,
            self.peers.wakes.next_ns().filter(|_| has_room),
            self.peers.handshakes.next_ns(),
            has_sessions.then_some(self.peers.tick_at_ns),
            self.commands_ns(now_ns),
            self.egress.retry_ns,
        ];
        times.into_iter().flatten().min()
    }

    /// Sees to the session with a peer, and sends what may leave towards it. False: the socket has no room.
    fn serve_peer(&mut self, now_ns: &mut u64, at: usize) -> bool {
        let mut next_ns =
            self.peers
                .check_session(*now_ns, at, &mut self.socket, &self.config.peers);
        let ways_ns = self
            .peers
            .check_ways(*now_ns, at, &mut self.socket, &self.config);
        let length_ns = self
            .peers
            .check_length(*now_ns, at, &mut self.socket, &self.config.peers);
        let expiry_ns = self.check_capacity(*now_ns, at);
        let turn_ns = self.check_feedback(*now_ns, at);
        let times = [next_ns, ways_ns, length_ns, expiry_ns, turn_ns];
        next_ns = times.into_iter().flatten().min();
        if self.peers.stations[at].bond.is_some() {
            let times = [
                next_ns,
                self.check_paths(*now_ns, at),
                self.release_late(*now_ns, at),
                self.serve_paths(*now_ns, at),
            ];
            next_ns = times.into_iter().flatten().min();
        }
        if self.peers.stations[at].former.is_some() {
            let late_ns = self.release_late(*now_ns, at);
            next_ns = next_ns.into_iter().chain(late_ns).min();
        }
        self.send_message(*now_ns, at);
        if self.peers.hub.is_none() {
            match self.serve_link(now_ns, Some(at)) {
                Served::Until(ns) => next_ns = next_ns.into_iter().chain(ns).min(),
                Served::NoRoom => {
                    self.peers.wakes.wake(at);
                    return false;
                }
            }
        }
        let message_ns = self.message_due_ns(*now_ns, at);
        let next_ns = next_ns.into_iter().chain(message_ns).min();
        self.peers.wakes.set(at, next_ns);
        true
    }

    /// Sends what may leave over the link `of` one peer, or over the link that all share.
    fn serve_link(&mut self, now_ns: &mut u64, of: Option<usize>) -> Served {
        let ecn = |packet: &Packet| tos_of(packet) & 3 != 0;
        loop {
            let (next, at) = match (&mut self.peers.hub, of) {
                (Some(hub), _) => hub.next(*now_ns, &mut self.peers.stations, ecn),
                (None, Some(at)) => (self.peers.stations[at].link.next(*now_ns, ecn), at),
                (None, None) => return Served::Until(None),
            };
            match next {
                Next::Send(packet, marked) => {
                    let tos = tos_of(&packet);
                    let tos = if marked { tos | tos::CE } else { tos };
                    let sent = &mut self.peers.stations[at].sent;
                    sent.pkts += packet.pkts() as u64;
                    let bytes = packet.sum(|bytes| self.config.wire_bytes(bytes));
                    sent.bytes += bytes;
                    self.peers.sent_bytes += bytes;
                    let over = self.peers.stations[at].link.over();
                    self.send_over(at, packet, tos, over);
                    if let Some(class) = self.peers.stations[at].link.take_starved() {
                        self.tell_starved(*now_ns, at, class);
                    }
                    if self.egress.is_full(*now_ns) && !self.flush(*now_ns) {
                        return Served::NoRoom;
                    }
                }
                Next::At(ns) => {
                    // On a fast link that time has passed meanwhile, and packets that may leave are sent together. A time
                    // that had come before the call means that the call stopped at its bound of drops: then the timer
                    // expires at once, after what has arrived was received.
                    let later_ns = poll::now_ns();
                    if later_ns < ns || ns <= *now_ns {
                        return Served::Until(Some(ns));
                    }
                    *now_ns = later_ns;
                }
                Next::Nothing => return Served::Until(None),
            }
        }
    }

    /// Says that a class gets nothing, as in a fade below what is reserved for others.
    fn tell_starved(&mut self, now_ns: u64, at: usize, class: usize) {
        let bps = self.peers.stations[at].link.known_bps(now_ns);
        let others = (0..self.config.classes.len()).filter(|other| *other != class);
        let reserved_bps = others
            .filter_map(|other| Reservation::of(&self.config.scheduler, other))
            .fold(0u64, |sum, of| sum.saturating_add(of.rate_bps(bps)));
        let what = format!(
            "class {} has sent nothing for 1 s, though it has packets and other classes send; the link carries {}{}",
            self.config.classes[class].name,
            units::show_whole(bps, Kind::Rate),
            cure_of_starvation(bps, reserved_bps),
        );
        tell(Event::ClassStarved, &self.config.peers[at].name, &what);
    }

    /// Sends a packet to a peer with this services field: it is in the outbox then.
    pub(super) fn send(&mut self, at: usize, packet: Packet, tos: u8) {
        self.send_over(at, packet, tos, None);
    }

    /// As [`Gateway::send`], over one of several paths that are used at once.
    pub(super) fn send_over(&mut self, at: usize, mut packet: Packet, tos: u8, over: Option<Over>) {
        if tos != tos_of(&packet) {
            packet::set_tos(&mut packet, tos);
        }
        let dscp: Model = self.config.dscp;
        let tos = dscp.encapsulate(tos);
        let station = &mut self.peers.stations[at];
        match over {
            None => self.egress.add(at, station, packet, tos),
            Some(over) => self.egress.add_over(at, station, packet, tos, over),
        }
    }

    /// Sends the outbox; returns whether the socket has room for more.
    fn flush(&mut self, now_ns: u64) -> bool {
        if self.egress.outbox.is_empty() {
            self.egress.retry_ns = None;
            self.wait_for_room(false);
            return true;
        }
        if self.egress.retry_ns.is_some_and(|ns| now_ns < ns) {
            return false;
        }
        let Peers {
            stations, wakes, ..
        } = &mut self.peers;
        let sent =
            self.socket
                .send_all(&mut self.egress.outbox, |to, datagrams, reason, passes| {
                    let station = &mut stations[to.station];
                    count_all(&mut station.dropped, reason, datagrams);
                    if station.bond.is_some() && !passes {
                        station.path_failed(now_ns, to);
                        wakes.wake(to.station);
                    }
                });
        let full = sent.is_err();
        let dropped = sent.is_err_and(|error| error.raw_os_error() == Some(nix::libc::ENOBUFS));
        // A socket without room reports when it has some. An interface that drops does not.
        self.egress.retry_ns = dropped.then_some(now_ns + below::RETRY_NS);
        if full {
            self.measure_below(now_ns, dropped);
        } else {
            let device = &mut self.device;
            self.egress.outbox.clear(|packet| device.recycle(packet));
        }
        self.wait_for_room(full && !dropped);
        !full
    }

    /// Sets whether the socket reports when it has room.
    fn wait_for_room(&mut self, blocked: bool) {
        if blocked != self.egress.blocked {
            let _ = self.poll.interest(&self.socket, UNDERLAY, true, blocked);
            self.egress.blocked = blocked;
        }
    }

    /// Measures the interface below, which has no room; `dropped`: it dropped the first datagram of the next call.
    fn measure_below(&mut self, now_ns: u64, dropped: bool) {
        let Egress { below, outbox, .. } = &mut self.egress;
        let Some(below) = below else {
            return;
        };
        let sent = outbox.sent_total();
        match outbox.call() {
            Some(call) if dropped => {
                let (station, datagrams) = (call.destination.station, call.datagrams);
                if below.gives_up(now_ns, call.segment_bytes * datagrams, sent.0) {
                    let reasons = &mut self.peers.stations[station].dropped;
                    count_all(reasons, "underlay_down", datagrams);
                    outbox.given_up(datagrams);
                }
            }
            _ => below.accepted(),
        }
        // The outbox holds sealed datagrams, so their seal is no overhead any more.
        let sealed_bytes = i64::from(self.config.mode.overhead_bytes());
        let wire = Wire {
            overhead_bytes: self.config.overhead_bytes - sealed_bytes,
            mpu_bytes: self.config.mpu_bytes,
        };
        let peers = self.config.peers.iter();
        let stale_ns = peers.filter_map(|peer| peer.capacity.stale_ns).min();
        let Some(bps) = below.no_room(now_ns, sent, wire, stale_ns) else {
            return;
        };
        for (at, station) in self.peers.stations.iter_mut().enumerate() {
            station.link.set_below(now_ns, bps);
            self.peers.wakes.wake(at);
        }
    }

    /// Reports to the measurement below when nothing waits here, as the interface may be idle from then on.
    fn note_idle(&mut self) {
        let Some(below) = &mut self.egress.below else {
            return;
        };
        let mut stations = self.peers.stations.iter();
        let nothing_waits = stations.all(|station| station.link.waiting_pkts() == 0);
        if self.egress.outbox.is_empty() && nothing_waits {
            below.idle();
        }
    }
}

/// What helps a class that gets nothing of a link of `bps` of which so much is reserved for the others.
fn cure_of_starvation(bps: u64, reserved_bps: u64) -> String {
    let least = "give the class a least share, such as least = \"5%\"";
    if reserved_bps < bps {
        return format!(
            ", and classes that go first take all of it: {least}, or send less in these"
        );
    }
    let reserved = units::show_whole(reserved_bps, Kind::Rate);
    format!(", and {reserved} are reserved for the others: reserve less for them, or {least}")
}

/// The differentiated services field of a packet that was parsed before.
fn tos_of(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 4 {
        packet[1]
    } else {
        packet[0] << 4 | packet[1] >> 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_to_be_reserved_only_where_others_reserve_all() {
        let fade = cure_of_starvation(3_000_000, 5_000_000);
        assert!(
            fade.contains("5Mbit are reserved for the others: reserve less for them"),
            "{fade}"
        );
        for reserved_bps in [0, 2_999_999] {
            let urgent = cure_of_starvation(3_000_000, reserved_bps);
            assert!(!urgent.contains("reserve less"), "{urgent}");
            assert!(urgent.contains("least = \"5%\""), "{urgent}");
        }
    }
}
