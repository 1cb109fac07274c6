// SPDX-License-Identifier: BSD-3-Clause
//! Probes of the ways to peers that have several: sent, answered, and taken account of.

use std::net::SocketAddr;

use linkweir_plane::bytes::outbox::Source;
use linkweir_plane::feedback::{Message, Probe, MESSAGE_BYTES};
use linkweir_plane::link::Link;
use linkweir_plane::pace::Outages;
use linkweir_plane::underlays::{Change, Underlays};

use super::peers::Peers;
use super::Gateway;
use crate::config::Config;
use crate::linux::journal::{tell, Event};
use crate::linux::tunnel_socket::TunnelSocket;

impl Peers {
    /// Sends the probes to a peer that are due, and uses another way to it if it is time. Returns when to look again, ns.
    pub(super) fn check_ways(
        &mut self,
        now_ns: u64,
        at: usize,
        socket: &mut TunnelSocket,
        config: &Config,
    ) -> Option<u64> {
        let station = &mut self.stations[at];
        let (Some(underlays), Some(session)) = (&mut station.underlays, &mut station.session)
        else {
            return None;
        };
        let is_open = session.is_open();
        if !is_open && station.bond.is_none() {
            return None;
        }
        let agreed = station.link.is_agreed();
        let paths = station
            .bond
            .as_ref()
            .map_or(0, |_| config.peers[at].paths.len());
        let mut outage_ends_ns = u64::MAX;
        for way in 0..paths {
            let outages = see_outages(now_ns, way, &mut underlays.choice, &mut station.link);
            outage_ends_ns = outage_ends_ns.min(outages.ends_ns.unwrap_or(u64::MAX));
        }
        while let Some(way) = is_open.then(|| underlays.choice.probe(now_ns)).flatten() {
            // Without an answer another way is used.
            if underlays.is_looped(way, &self.own) {
                continue;
            }
            let Some((to, from)) = underlays.path(way) else {
                continue;
            };
            let probe = Message::Probe(Probe {
                sent_ns: now_ns,
                way: way as u64,
            });
            // A peer that knows no paths answers the other one.
            let bond = station.bond.as_ref().filter(|_| underlays.is_named(way));
            let of_path = bond.map(|bond| bond.probe(now_ns, way));
            if station.bond.is_some() && underlays.choice.is_mute() {
                // Any peer sends something after 10 s to show that it came.
                station.silence.sent(now_ns);
            }
            let probe = Some(probe).filter(|_| !agreed);
            for probe in of_path.into_iter().chain(probe) {
                let Some(datagram) = session.seal(&probe.packet(), &mut self.scratch) else {
                    continue;
                };
                let sent = socket.send(datagram, to, from, 0);
                underlays.sent(now_ns, way, &sent);
                // The slower a path, the larger the part of it that probes take.
                let wire_bytes = config.wire_bytes(MESSAGE_BYTES);
                station.link.occupy_path(now_ns, way, wire_bytes);
            }
        }
        let silence = &station.silence;
        let skips = is_open && silence.is_lost(now_ns, station.skipped_ns);
        let mut change = None;
        if station.bond.is_some() && skips {
            station.skipped_ns = Some(now_ns);
            change = underlays.fell_silent();
            if change.is_none() && station.endpoint != underlays.endpoint() {
                station.endpoint = underlays.endpoint();
                station.loop_is_doubted = true;
                station.came = None;
            }
        }
        let is_silent = change.is_some();
        let change = change.or_else(|| underlays.choice.decide(now_ns));
        if let Some(Change { from, to }) = change {
            station.endpoint = underlays.endpoint();
            station.source = underlays.source();
            station.loop_is_doubted = true;
            station.came = None;
            // The peer sends to where the last datagram came from, so one goes out at once.
            let is_looped = underlays.is_looped(to, &self.own);
            let datagram = session.seal(&[], &mut self.scratch);
            if let (Some(datagram), Some(to)) =
                (datagram.filter(|_| !is_looped), underlays.endpoint())
            {
                let _ = socket.send(datagram, to, underlays.source(), 0);
            }
            let (is_broken, is_mute) =
                (underlays.choice.is_broken(from), underlays.choice.is_mute());
            station.path_changed(now_ns);
            let peer = &config.peers[at];
            let name = |way: usize| &peer.underlays[way].name;
            let why = if is_broken {
                format!("{} cannot be used", name(from))
            } else if is_silent || from < to {
                format!("{} does not answer", name(from))
            } else if is_mute {
                format!("{} can be used again", name(to))
            } else {
                format!("{} answers again", name(to))
            };
            let what = format!("{why}; {} is used", name(to));
            // Of paths that are used at once the log has those that come and go.
            if station.bond.is_none() || !agreed {
                tell(Event::UnderlayChanged, &peer.name, &what);
            }
        }
        let underlays = station.underlays.as_ref().filter(|_| is_open);
        underlays.map(|underlays| underlays.choice.due_ns().min(outage_ends_ns))
    }
}

/// Lets what is known of the ways to a peer with paths know in which times one of these had no capacity.
pub(super) fn see_outages(
    now_ns: u64,
    way: usize,
    choice: &mut Underlays,
    link: &mut Link,
) -> Outages {
    let outages = link.path_outages(now_ns, way);
    choice.set_outages(now_ns, way, outages, link.is_agreed());
    outages
}

impl Gateway {
    /// Answers a probe of a peer over the way it came.
    pub(super) fn echo(&mut self, at: usize, probe: Probe, to: SocketAddr, from: Source) {
        let Peers {
            stations, scratch, ..
        } = &mut self.peers;
        let Some(session) = &mut stations[at].session else {
            return;
        };
        if let Some(datagram) = session.seal(&Message::Echo(probe).packet(), scratch) {
            let _ = self.socket.send(datagram, to, from, 0);
        }
    }

    /// A peer answered a probe.
    pub(super) fn echoed(&mut self, now_ns: u64, at: usize, Probe { sent_ns, way }: Probe) {
        let station = &mut self.peers.stations[at];
        if let Some(underlays) = &mut station.underlays {
            let way = usize::try_from(way).unwrap_or(usize::MAX);
            let is_known = underlays.choice.answered(now_ns, way, sent_ns);
            if is_known {
                station.silence.hear();
            }
            self.peers.wakes.wake(at);
        }
    }
}
