// SPDX-License-Identifier: BSD-3-Clause
//! Paths to a peer that are used at once: probes of them, what comes over them, and what the log says of them.

use std::net::SocketAddr;
use std::ops::Range;

use linkweir_config::units::{self, Kind};
use linkweir_plane::bytes::numbered::{self, Number};
use linkweir_plane::bytes::outbox::Source;
use linkweir_plane::bytes::superpacket::Packet;
use linkweir_plane::feedback::{Message, PathProbe, Probe, Reporter, Sent, MESSAGE_BYTES};
use linkweir_plane::link::Link;
use linkweir_plane::paths::{differs, Over};
use linkweir_plane::restoring::{Dropped, Held, WINDOW};

use super::bond::{PathOf, PROMISES_NS, TOO_FAR_PKTS};
use super::probes::see_outages;
use super::station::{count, Station};
use super::Gateway;
use crate::linux::journal::{tell, Event};
use crate::linux::tunnel_socket::Local;

impl Gateway {
    /// A probe of a path of this name came from the peer: that is where the path leads. It is answered there.
    pub(super) fn path_probed(
        &mut self,
        now_ns: u64,
        at: usize,
        (session_index, probe): (u32, PathProbe),
        (from, to): (SocketAddr, Option<Local>),
    ) {
        let Station {
            underlays,
            bond,
            endpoint,
            source,
            loop_is_doubted,
            session,
            dropped,
            link,
            ..
        } = &mut self.peers.stations[at];
        if bond.is_none() {
            // That it came shows the peer that its path works, though not that its numbers are known: until the agreement ends it
            // probes its paths in no other way.
            let probe = Probe {
                sent_ns: probe.sent_ns,
                way: probe.path.into(),
            };
            return self.echo(at, probe, from, to.map(Source::from).unwrap_or_default());
        }
        let (Some(underlays), Some(bond), Some(session)) = (underlays, bond, session) else {
            return count(dropped, "unasked");
        };
        let Some(way) = bond.paths.iter().position(|path| path.name == probe.name) else {
            return count(dropped, "unasked");
        };
        let released = &mut self.ingress.released;
        let probed = bond.probed(now_ns, way, (session_index, probe), |held| {
            released.push(held);
        });
        if probed.is_stale {
            return count(dropped, "unasked");
        }
        if probed.drew {
            underlays.choice.probe_all(now_ns);
        }
        let path = &mut bond.paths[way];
        // A probe that was overtaken must not lead the path back.
        if probed.is_latest {
            let place = (from, to);
            if path.came != Some(place) {
                path.came = Some(place);
                underlays.learn(way, from, to, true);
                *endpoint = underlays.endpoint();
                *source = underlays.source();
                *loop_is_doubted = true;
            }
        }
        self.peers.wakes.wake(at);
        let classes = probe.classes;
        if classes != bond.classes {
            if bond.other_classes.replace(classes) != Some(classes) {
                let what = format!(
                    "has {classes} classes and this end {}: packets use one path at a time until both list the same",
                    bond.classes
                );
                tell(Event::ClassesDiffer, &self.config.peers[at].name, &what);
            }
            return;
        }
        bond.other_classes = None;
        see_outages(now_ns, way, &mut underlays.choice, link);
        if !underlays.choice.answers_now(now_ns, way) {
            return;
        }
        let here = (from, to.map(Source::from).unwrap_or_default());
        let (to, from) = underlays.path(way).unwrap_or(here);
        let echo = Message::PathEcho(probe).packet();
        if let Some(datagram) = session.seal(&echo, &mut self.peers.scratch) {
            let _ = self.socket.send(datagram, to, from, 0);
            link.occupy_path(now_ns, way, self.config.wire_bytes(MESSAGE_BYTES));
        }
    }

    /// The peer answered a probe of a path.
    pub(super) fn path_echoed(
        &mut self,
        now_ns: u64,
        at: usize,
        probe: PathProbe,
        (from, to): (SocketAddr, Option<Local>),
    ) {
        let station = &mut self.peers.stations[at];
        let (Some(underlays), Some(bond)) = (&mut station.underlays, &mut station.bond) else {
            return count(&mut station.dropped, "unasked");
        };
        let way = usize::from(probe.path);
        // An answer to what was not asked says nothing.
        see_outages(now_ns, way, &mut underlays.choice, &mut station.link);
        if underlays.choice.answered(now_ns, way, probe.sent_ns) {
            station.silence.hear();
            bond.answered(now_ns, way, probe, underlays.choice.measured_ns(way));
            if let Some(path) = bond.paths.get_mut(way).filter(|path| path.came.is_none()) {
                path.came = Some((from, to));
            }
        }
        self.peers.wakes.wake(at);
    }

    /// Takes a packet with a number at `place` of what was opened, which came over a path: what may be handed out now is in `released`.
    pub(super) fn take_numbered(
        &mut self,
        now_ns: u64,
        at: usize,
        over: Option<usize>,
        (place, outer_tos): (Range<usize>, u8),
    ) {
        let opened = &self.ingress.opened[place];
        let station = &mut self.peers.stations[at];
        let Some(number) = Number::read(opened) else {
            return count(&mut station.dropped, "malformed");
        };
        let held = Held {
            packet: opened[numbered::HEADER_BYTES..].into(),
            outer_tos,
        };
        let released = &mut self.ingress.released;
        let out = |held| released.push(held);
        let dropped = match (&mut station.bond, &mut station.former) {
            (Some(bond), _) => bond.take(now_ns, over, (number, held), out),
            (None, Some(former)) => former.arrive(now_ns, number, held, out),
            (None, None) => return count(&mut station.dropped, "malformed"),
        };
        match dropped {
            // These are counted for each class.
            None | Some(Dropped::Duplicate | Dropped::Late) => {}
            Some(Dropped::Unknown) => count(&mut station.dropped, "unknown_number"),
            Some(Dropped::Congested) => count(&mut station.dropped, "congested"),
        }
    }

    /// Hands out packets of a peer that must not wait for earlier ones any longer. Returns when more must be, ns.
    pub(super) fn release_late(&mut self, now_ns: u64, at: usize) -> Option<u64> {
        let restorer = self.peers.stations[at].restorer()?;
        let due_ns = restorer.due_ns()?;
        if now_ns < due_ns {
            return Some(due_ns);
        }
        let released = &mut self.ingress.released;
        restorer.expire(now_ns, |held| released.push(held));
        let due_ns = restorer.due_ns();
        self.deliver_released(at);
        due_ns
    }

    /// Sees to the paths to a peer: which of them carry packets, and what can be promised over these. Returns when to look
    /// again, ns.
    pub(super) fn check_paths(&mut self, now_ns: u64, at: usize) -> Option<u64> {
        let (own, peer) = (&self.peers.own, &self.config.peers[at]);
        let station = &mut self.peers.stations[at];
        let sent_pkts = station.sent.pkts;
        let underlays = station.underlays.as_mut()?;
        let bond = station.bond.as_mut()?;
        let usable: Vec<bool> = (0..peer.paths.len())
            .map(|way| underlays.path(way).is_some() && !underlays.is_looped(way, own))
            .collect();
        let choice = &underlays.choice;
        for way in bond.find_too_far(now_ns, sent_pkts, |way| choice.is_good(way)) {
            let name = &peer.paths[way].name;
            let what = if bond.paths[way].is_too_far {
                format!(
                    "{name} is left out: at {} packets/s its packets would come more than {TOO_FAR_PKTS} behind those of \
                     the fastest path, and the far end drops what is {WINDOW} behind",
                    bond.pkts_per_s
                )
            } else {
                format!("{name} is no longer left out")
            };
            tell(Event::PathChanged, &peer.name, &what);
        }
        for what in bond.find_late(now_ns, &self.config, peer) {
            tell(Event::PathLate, &peer.name, &what);
        }
        let was_agreed = station.link.is_agreed();
        let changed = bond.tell_link(
            now_ns,
            (choice, underlays.current()),
            |way| usable[way],
            &mut station.link,
        );
        let ends_ns = bond.ends_ns();
        if changed {
            self.tell_paths(now_ns, at, was_agreed);
        }
        let again_ns = self.tell_promises(now_ns, at, changed);
        ends_ns.into_iter().chain(again_ns).min()
    }

    /// Writes what the paths to a peer carry now into the log.
    fn tell_paths(&mut self, now_ns: u64, at: usize, was_agreed: bool) {
        let peer = &self.config.peers[at];
        let station = &mut self.peers.stations[at];
        let is_agreed = station.link.is_agreed();
        let sum = units::show_whole(station.link.capacity_bps(now_ns), Kind::Rate);
        let Some(bond) = &station.bond else {
            return;
        };
        let states = bond.states.iter().zip(&peer.paths);
        let up: Vec<&str> = states
            .filter(|(state, _)| state.is_up)
            .map(|(_, path)| path.name.as_str())
            .collect();
        let how = match (was_agreed, is_agreed) {
            (false, true) => "has agreed to several paths; ",
            (true, false) => "does not answer as to several paths any more; ",
            _ => "",
        };
        let what = match &up[..] {
            [] => format!("{how}no path carries packets"),
            _ => format!("{how}packets use {}: {sum}", up.join(", ")),
        };
        tell(Event::PathChanged, &peer.name, &what);
    }

    /// Writes into the log which promises to a peer cannot be kept, if the paths or the sum of their capacities have changed; of
    /// capacities that change often, once a second. Returns when to look again, ns.
    fn tell_promises(&mut self, now_ns: u64, at: usize, paths_changed: bool) -> Option<u64> {
        let (config, peer) = (&self.config, &self.config.peers[at]);
        let station = &mut self.peers.stations[at];
        let sum_bps = station.link.capacity_bps(now_ns);
        let bond = station.bond.as_mut()?;
        if !paths_changed {
            if !differs(sum_bps, bond.told_bps) {
                return None;
            }
            let again_ns = bond.told_ns + PROMISES_NS;
            if now_ns < again_ns {
                return Some(again_ns);
            }
        }
        (bond.told_ns, bond.told_bps) = (now_ns, sum_bps);
        let broken = station.link.broken_promises();
        let now: Vec<(usize, u64)> = broken
            .iter()
            .map(|kept| (kept.class, kept.kept_bps))
            .collect();
        let classes =
            |kept: &[(usize, u64)]| kept.iter().map(|(class, _)| *class).collect::<Vec<_>>();
        let is_known = if paths_changed {
            now == bond.told
        } else {
            classes(&now) == classes(&bond.told)
        };
        if is_known {
            return None;
        }
        let before = std::mem::replace(&mut bond.told, now);
        for kept in &broken {
            let what = format!(
                "class {}: {} are reserved, and the paths that are up carry {} of it",
                config.classes[kept.class].name,
                units::show_whole(kept.promised_bps, Kind::Rate),
                units::show_whole(kept.kept_bps, Kind::Rate)
            );
            tell(Event::PromiseBroken, &peer.name, &what);
        }
        for (class, _) in before {
            if broken.iter().all(|kept| kept.class != class) {
                let name = &config.classes[class].name;
                let what =
                    format!("class {name}: the paths that are up carry its reservation again");
                tell(Event::PromiseKept, &peer.name, &what);
            }
        }
        None
    }

    /// Takes a mark or report of a peer with several paths, which came over one of them.
    pub(super) fn receive_path_message(
        &mut self,
        now_ns: u64,
        at: usize,
        over: Option<usize>,
        message: Option<Message>,
    ) {
        self.peers.wakes.wake(at);
        let wire = self.config.wire();
        let station = &mut self.peers.stations[at];
        let link = &mut station.link;
        let path = station
            .bond
            .as_mut()
            .zip(over)
            .and_then(|(bond, over)| bond.paths.get_mut(over));
        let (Some(path), Some(over)) = (path, over) else {
            return count(&mut station.dropped, "unasked");
        };
        match (message, &mut path.reporter, &mut path.feedback) {
            (Some(Message::Mark { sent_ns }), Some(reporter), _) => {
                reporter.marked(now_ns, sent_ns);
            }
            (Some(Message::Report(report)), _, Some(feedback)) => {
                let sent = sent_over(link, over);
                if let Some(steer) = feedback.reported(now_ns, report, sent, wire) {
                    link.steer_path(now_ns, over, steer);
                }
            }
            (Some(_), ..) => count(&mut station.dropped, "unasked"),
            (None, ..) => count(&mut station.dropped, "malformed"),
        }
    }

    /// Sends marks and reports that are due over the paths to a peer, and follows what reports have shown. Returns when more
    /// is due, ns.
    pub(super) fn serve_paths(&mut self, now_ns: u64, at: usize) -> Option<u64> {
        let wire_bytes = self.config.wire_bytes(MESSAGE_BYTES);
        let paths = self.config.peers[at].paths.len();
        let mut next_ns: Option<u64> = None;
        for way in 0..paths {
            let times = [
                self.steer_path(now_ns, at, way),
                self.send_path_message(now_ns, at, way, wire_bytes),
            ];
            next_ns = next_ns.into_iter().chain(times.into_iter().flatten()).min();
        }
        next_ns
    }

    /// Follows what feedback of a path finds with time. Returns when to look again, ns.
    fn steer_path(&mut self, now_ns: u64, at: usize, way: usize) -> Option<u64> {
        let peer = &self.config.peers[at];
        let station = &mut self.peers.stations[at];
        let link = &mut station.link;
        let path = station.bond.as_mut()?.paths.get_mut(way)?;
        let (_, expired) = link.path_bps(now_ns, way);
        if expired && !path.had_expired {
            let setup = &peer.paths[way];
            let floor = units::show_whole(setup.capacity.floor_bps, Kind::Rate);
            let what = format!(
                "nothing has reported the capacity of {} for too long; the floor of {floor} holds",
                setup.name
            );
            tell(Event::CapacityExpired, &peer.name, &what);
        }
        path.had_expired = expired;
        let feedback = path.feedback.as_mut()?;
        if feedback.turn_ns() <= now_ns {
            let steer = feedback.turn(now_ns, sent_over(link, way));
            link.steer_path(now_ns, way, steer);
        }
        Some(feedback.turn_ns()).filter(|ns| *ns != u64::MAX)
    }

    /// Sends a mark or report that is due over a path. Returns when the next is, ns.
    fn send_path_message(
        &mut self,
        now_ns: u64,
        at: usize,
        way: usize,
        wire_bytes: u32,
    ) -> Option<u64> {
        let station = &mut self.peers.stations[at];
        let link = &mut station.link;
        let bond = station.bond.as_mut()?;
        bond.states.get(way).filter(|state| state.is_up)?;
        let path = bond.paths.get_mut(way)?;
        let due = |path: &PathOf, link: &mut Link| {
            let sent_pkts = link.carried(way).pkts;
            let mark_ns = path.feedback.as_ref().map(|of| of.due_ns(sent_pkts));
            let report_ns = path.reporter.as_ref().and_then(Reporter::due_ns);
            let due_ns = mark_ns.into_iter().chain(report_ns).min()?;
            Some(due_ns.max(link.path_free_ns(now_ns, way)?))
        };
        let due_ns = due(path, link)?;
        if now_ns < due_ns {
            return Some(due_ns);
        }
        let report = match &mut path.reporter {
            Some(reporter) if reporter.due_ns().is_some_and(|ns| ns <= now_ns) => {
                let (capacity_bps, _) = link.path_bps(now_ns, way);
                reporter.report(now_ns, wire_bytes, capacity_bps, 1)
            }
            _ => None,
        };
        let message = match (report, &mut path.feedback) {
            (Some(report), _) => report,
            (None, Some(feedback)) => feedback.mark(now_ns, sent_over(link, way), wire_bytes),
            (None, None) => return None,
        };
        link.occupy_path(now_ns, way, wire_bytes);
        let next_ns = due(path, link);
        self.peers.sent_bytes += u64::from(wire_bytes);
        let packet = Packet::from(&message.packet()[..]);
        let over = Over {
            path: way,
            number: None,
            is_again: false,
        };
        self.send_over(at, packet, 0, Some(over));
        next_ns
    }
}

/// What was sent over a path so far.
fn sent_over(link: &Link, path: usize) -> Sent {
    let carried = link.carried(path);
    Sent {
        pkts: carried.pkts,
        bytes: carried.bytes,
        shared_bytes: None,
    }
}
