// SPDX-License-Identifier: BSD-3-Clause
//! Sessions with peers: when they are asked for, their timers, and endpoints that outlive the gateway.

use std::net::SocketAddr;

use super::peers::Peers;
use crate::config::{Config, Peer};
use crate::linux::journal::{log, tell, Event};
use crate::linux::poll;
use crate::linux::tunnel_socket::TunnelSocket;
use crate::tunnel::endpoints::{Endpoints, Saver};
use crate::tunnel::seal::{self, Key};

impl Peers {
    /// Wants a session with every peer whose endpoint is known, so that a gateway that was restarted is found again.
    pub(super) fn want_sessions(&mut self, now_ns: u64) {
        for station in &mut self.stations {
            if let (Some(session), Some(_)) = (&mut station.session, station.endpoint) {
                session.want(now_ns);
            }
        }
    }

    /// Sees to the session with a peer: its link is open if the session is; the timers of an open one run, and where there is
    /// none although packets came, one is asked for. Returns when to look again, ns.
    pub(super) fn check_session(
        &mut self,
        now_ns: u64,
        at: usize,
        socket: &mut TunnelSocket,
        configured: &[Peer],
    ) -> Option<u64> {
        let station = &mut self.stations[at];
        let heard = station.silence.look(now_ns, station.sent.pkts);
        if let Some(endpoint) = station.endpoint.filter(|_| heard) {
            station.candidates.answered(endpoint);
        }
        let silent = station.silence.is_silent(now_ns);
        if silent && !station.was_silent && configured[at].host.is_some() {
            self.named_is_silent = true;
        }
        station.was_silent = silent;
        station.check_path(&self.own, &configured[at].name);
        let sends = !station.is_looped;
        let Some(session) = &mut station.session else {
            station.link.set_open(sends);
            return None;
        };
        let mut open = session.is_open();
        if open && session.due_ns().is_some_and(|ns| ns <= now_ns) {
            let datagram = session.tick(now_ns, &mut self.scratch);
            open = session.is_open();
            if let Some(datagram) = datagram {
                if seal::begins_handshake(datagram) {
                    let ended_ns = poll::now_ns();
                    self.handshakes
                        .spent(ended_ns, ended_ns.saturating_sub(now_ns));
                    self.endpoints_changed |= station.count_handshake(now_ns, &configured[at]);
                }
                let of_keys = seal::begins_handshake(datagram);
                let is_heard = station.silence.is_heard(now_ns);
                let mut ways = station.underlays.as_mut().filter(|_| of_keys);
                let preferred = ways.as_mut().and_then(|ways| {
                    let way = ways.for_new_keys(&self.own, is_heard);
                    let (to, from) = ways.path(way).filter(|_| way != ways.current())?;
                    Some((to, from, Some(way)))
                });
                let usual = station.endpoint.map(|to| (to, station.source, None));
                if let Some((to, from, preferred)) = preferred.or(usual).filter(|_| sends) {
                    station.silence.sent(now_ns);
                    let sent = socket.send(datagram, to, from, 0);
                    if let (Some(ways), Some(way)) = (ways, preferred) {
                        ways.sent(now_ns, way, &sent);
                    }
                }
            }
        }
        station.link.set_open(open && sends);
        if open != station.was_open {
            station.was_open = open;
            station.link.record_capacity(now_ns);
            let heard_age_s = station.silence.heard_age_s(now_ns);
            tell_session(&configured[at], open, station.endpoint, heard_age_s);
        }
        let Some(session) = &mut station.session else {
            return None;
        };
        let news = std::mem::take(&mut station.has_news);
        // An address that leads into the tunnel counts as one that does not answer, so the next one has its turn.
        let may_ask = sends || station.candidates.has_other();
        let known = station.endpoint.is_some() && may_ask;
        if !open && news && known {
            session.want(now_ns);
        }
        let due_ns = session.due_ns().filter(|_| open || known);
        let tried = !open && session.is_tried();
        if tried != station.is_tried {
            station.is_tried = tried;
            self.away = if tried { self.away + 1 } else { self.away - 1 };
        }
        if !open && due_ns.is_some_and(|ns| ns <= now_ns) {
            if !station.is_asking {
                station.is_asking = true;
                self.handshakes.ask(at);
            }
            return None;
        }
        due_ns
    }

    /// Begins another period of the limits of handshakes, and saves endpoints that have changed.
    pub(super) fn tick(&mut self, configured: &[Peer]) {
        if let Some(identity) = &mut self.identity {
            identity.tick();
        }
        if !std::mem::take(&mut self.endpoints_changed) {
            return;
        }
        let peers = configured.iter().zip(&self.stations);
        let now = peers.filter_map(|(peer, station)| Some((peer.public_key?, station.endpoint?)));
        self.save_endpoints(now.collect());
    }

    fn save_endpoints(&mut self, now: Vec<(Key, SocketAddr)>) {
        if let Some(file) = self.saved_endpoints.take() {
            self.saver = Some(Saver::new(file, log));
        }
        if let Some(saver) = &self.saver {
            saver.save(now);
        }
    }

    /// Gives peers without a configured endpoint the one that an earlier gateway saved.
    pub(super) fn restore_endpoints(&mut self, config: &Config, socket: &TunnelSocket) {
        if self.identity.is_none() {
            return;
        }
        let path = config.control.with_extension("peers");
        let saved = match Endpoints::open(&path) {
            Ok(saved) => saved,
            Err(fault) => return log(&fault),
        };
        for (peer, station) in config.peers.iter().zip(&mut self.stations) {
            if station.endpoint.is_none() {
                let known = peer.public_key.and_then(|key| saved.of(&key));
                station.endpoint = known.filter(|at| socket.carries(at));
                station.loop_is_doubted = true;
                if let Some(endpoint) = station.endpoint {
                    station.candidates.answered(endpoint);
                    if let Some(underlays) = &mut station.underlays {
                        underlays.learn(underlays.current(), endpoint, None, false);
                    }
                }
            }
        }
        self.saved_endpoints = Some(saved);
    }
}

/// Says that there is a session with a peer, or none any more.
fn tell_session(peer: &Peer, open: bool, endpoint: Option<SocketAddr>, heard_age_s: Option<u64>) {
    if open {
        let at = endpoint.map_or_else(String::new, |at| format!(" at {at}"));
        tell(
            Event::SessionOpened,
            &peer.name,
            &format!("has a session{at}"),
        );
    } else {
        let age = heard_age_s.map_or_else(String::new, |s| {
            format!("; the last datagram of it came {s} s ago")
        });
        let what = format!("has no session any more{age}");
        tell(Event::SessionEnded, &peer.name, &what);
    }
}
