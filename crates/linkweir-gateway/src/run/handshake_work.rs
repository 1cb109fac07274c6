// SPDX-License-Identifier: BSD-3-Clause
//! Works on the handshakes that wait: those that peers began, and those that peers are to be asked for.

use linkweir_plane::bytes::outbox::Source;

use super::handshake_queue::{Incoming, Turn};
use super::peers::Peers;
use super::station::count;
use super::Gateway;
use crate::config::Peer;
use crate::linux::journal::{tell, Event};
use crate::linux::poll;
use crate::linux::tunnel_socket::TunnelSocket;
use crate::tunnel::seal::{self, Opened};

impl Gateway {
    /// Works on one handshake, if one waits and it is time.
    pub(super) fn shake_hands(&mut self, now_ns: u64) {
        if self.peers.handshakes.next_ns().is_none_or(|ns| now_ns < ns) {
            return;
        }
        let had_ns = poll::thread_ns();
        match self.peers.handshakes.next() {
            Some(Turn::Incoming(incoming)) => self.open_incoming(&incoming),
            Some(Turn::Ask(at)) => {
                let peer = &self.config.peers[at];
                self.peers.ask(now_ns, at, &mut self.socket, peer);
            }
            None => {}
        }
        let took_ns = poll::thread_ns() - had_ns;
        self.peers.handshakes.spent(poll::now_ns(), took_ns);
    }

    fn open_incoming(&mut self, incoming: &Incoming) {
        let Incoming { datagram, from, to } = incoming;
        let Some(identity) = &self.peers.identity else {
            return;
        };
        let Some(key) = identity.initiator(datagram) else {
            count(&mut self.dropped, "forged");
            return;
        };
        let Some(at) = self.peers.of_key(&key) else {
            count(&mut self.dropped, "stranger");
            let key = seal::show_key(&key);
            let what = format!(
                "an unknown peer with the public key {key} asked for a session from {from}"
            );
            tell(Event::UnknownPeer, "", &what);
            return;
        };
        let Peers {
            stations,
            scratch,
            endpoints_changed,
            ..
        } = &mut self.peers;
        let station = &mut stations[at];
        let Some(session) = &mut station.session else {
            return;
        };
        let source = to.map(Source::from).unwrap_or_default();
        match session.open(datagram, *from, scratch) {
            Opened::Answer(answer) => {
                let _ = self.socket.send(answer, *from, source, 0);
                *endpoints_changed |= station.came(*from, *to, &self.config.peers[at].name);
                self.peers.wakes.wake(at);
            }
            Opened::Unproven(answer) => {
                count(&mut station.dropped, "handshake_unproven");
                if let Some(answer) = answer {
                    let _ = self.socket.send(answer, *from, source, 0);
                }
            }
            Opened::Refused | Opened::Nothing | Opened::Packet(_) => {
                count(&mut station.dropped, "not_genuine");
            }
        }
    }
}

impl Peers {
    /// Asks a peer for a session.
    fn ask(&mut self, now_ns: u64, at: usize, socket: &mut TunnelSocket, peer: &Peer) {
        let (Some(identity), station) = (&self.identity, &mut self.stations[at]) else {
            return;
        };
        station.is_asking = false;
        self.wakes.wake(at);
        let (Some(session), Some(_)) = (&mut station.session, station.endpoint) else {
            return;
        };
        // A session may have begun while it waited.
        if session.is_open() {
            return;
        }
        if let Some(datagram) = session.attempt(identity, now_ns, self.away, &mut self.scratch) {
            self.endpoints_changed |= station.count_handshake(now_ns, peer);
            station.check_path(&self.own, &peer.name);
            let is_looped = station.is_looped;
            let Some(to) = station.endpoint else {
                return;
            };
            match &mut station.underlays {
                None if is_looped => {}
                None => drop(socket.send(datagram, to, station.source, 0)),
                Some(underlays) => {
                    for way in underlays.for_handshake(&self.own) {
                        let Some((to, from)) = underlays.path(way) else {
                            continue;
                        };
                        let sent = socket.send(datagram, to, from, 0);
                        underlays.sent(now_ns, way, &sent);
                    }
                }
            }
        }
    }
}
