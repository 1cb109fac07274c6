// SPDX-License-Identifier: BSD-3-Clause
//! The link to one peer: its queues, its policy and its pace.
//!
//! Where peers share one link, the hub ([`crate::hub`]) has the pace. The pace here then only says what the channel to the
//! peer carries, and what happens to the queues is recorded for the policy across peers. Where several paths lead to the peer at
//! once, each has a pace of its own ([`crate::paths`]).

use linkweir_config::signal::Instant;
use linkweir_core::{
    Arrival, CorePolicy, Departure, DropReason, Event, Fault, Kept, Limit, Mux, Queue, Recorded,
    Step, MAX_PACKET_BYTES, MOST_DROPS,
};

use crate::bytes::numbered;
use crate::bytes::packet;
use crate::bytes::superpacket::Packet;
use crate::capacity::{differs, KnownCapacity};
use crate::classify::Label;
use crate::deciding::{Deciding, Out};
use crate::feedback::Steer;
use crate::pace::{Outages, MOST_OCCUPIED_NS};
use crate::paths::{Carried, Over, Paths, State};
use crate::recorder::{self, Tap};
use crate::reservation::Reservation;
use crate::setup::{Capacity, Class, LinkSetup, PathSetup, Scheduler};
use crate::starved::Starved;
use crate::waiting::Waiting;
use crate::waits::Waits;

/// Longest time that a super-packet may occupy the link, ns. One that would take longer is cut before it is scheduled, so
/// that an urgent packet never waits longer than this behind it.
pub const SUPER_PACKET_NS: u64 = 1_000_000;

/// Least capacity given to the scheduler, bit/s: below it, also in an outage, the scheduler gets this value.
pub const LEAST_BPS: u64 = 1000;

/// A packet is dropped so long before it has waited for `max_age`, but at most a tenth of that: what is left of the time is
/// for sealing, sending and receiving it.
const AGE_MARGIN_NS: u64 = 5_000_000;

/// The limit of a class as its queue applies it.
fn applied(limit: Limit) -> Limit {
    let max_age_ns = limit.max_age_ns;
    Limit {
        max_age_ns: max_age_ns.map(|ns| ns - AGE_MARGIN_NS.min(ns / 10)),
        ..limit
    }
}

/// Queues, policy and pace towards one peer.
#[derive(Debug)]
pub struct Link {
    mux: Mux<Deciding, Waiting>,
    capacity: KnownCapacity,
    /// Whether the scheduler is given changes of the capacity.
    follow: bool,
    waiting_pkts: u32,
    /// Whether there is a session to send packets in.
    open: bool,
    /// Events of the queues since the hub asked last; none where peers have links of their own.
    events: Option<Vec<Event>>,
    /// How long packets of each class waited; none before the first left.
    waits: Vec<Option<Box<Waits>>>,
    /// Which classes send nothing while others do.
    starved: Starved,
    /// Where all this is recorded, if it is.
    tap: Option<Box<Tap>>,
    /// The paths to the peer, where several are used at once, and over which the last packet was sent.
    paths: Option<Box<Paths>>,
    over: Option<Over>,
}

/// The answer to: which packet is sent next?
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// This packet, now; `true` if it is to be marked as having met congestion.
    Send(Packet, bool),
    /// None before this time, ns. If that is now, the caller does other work and asks again.
    At(u64),
    /// None: nothing waits.
    Nothing,
}

impl Next {
    /// This, or a look at the queues at this time if that is sooner, ns.
    pub(crate) fn or_at(self, ns: Option<u64>) -> Next {
        match (self, ns) {
            (Next::At(at_ns), Some(ns)) => Next::At(at_ns.min(ns)),
            (Next::Nothing, Some(ns)) => Next::At(ns),
            (next, _) => next,
        }
    }
}

impl Link {
    /// Empty queues towards a peer.
    ///
    /// # Errors
    /// Parameters the policy refuses.
    pub fn new(now_ns: u64, setup: LinkSetup<'_>) -> Result<Link, Fault> {
        Link::recorded(now_ns, setup, None)
    }

    /// As [`Link::new`]; the calls of the policy are recorded, too, if there is somewhere to write them.
    ///
    /// # Errors
    /// Parameters the policy refuses.
    pub fn recorded(now_ns: u64, setup: LinkSetup<'_>, calls: Option<Out>) -> Result<Link, Fault> {
        let LinkSetup {
            capacity, measured, ..
        } = setup;
        let Scheduler {
            info,
            params,
            qparams,
        } = setup.scheduler;
        let limits: Vec<_> = setup
            .classes
            .iter()
            .map(|class| applied(class.limit))
            .collect();
        let mut mux = Mux::new(now_ns, capacity.nominal_bps, &limits, |view| {
            let policy = CorePolicy::new(info, view, params, qparams)?;
            Ok::<_, Fault>(match calls {
                None => Deciding::Plain(policy),
                Some(out) => Deciding::Recorded(Box::new(Recorded::new(
                    policy, info, view, params, qparams, out,
                ))),
            })
        })?
        .unmeasured();
        for (at, class) in setup.classes.iter().enumerate() {
            mux.isolate(at, class.flows);
        }
        Ok(Link {
            mux,
            capacity: KnownCapacity::new(now_ns, capacity, measured),
            follow: capacity.follow,
            waiting_pkts: 0,
            open: true,
            events: setup.shared.then(Vec::new),
            waits: vec![None; setup.classes.len()],
            starved: Starved::new(Reservation::all(setup.scheduler, setup.classes.len())),
            tap: None,
            paths: Link::new_paths(now_ns, setup.paths, setup.classes),
            over: None,
        })
    }

    fn new_paths(now_ns: u64, paths: &[PathSetup], classes: &[Class]) -> Option<Box<Paths>> {
        (!paths.is_empty()).then(|| Box::new(Paths::new(now_ns, paths, classes)))
    }

    /// Records what happens from now on, or no longer.
    pub fn record_to(&mut self, tap: Option<Tap>) {
        self.tap = tap.map(Box::new);
    }

    /// Records the capacity, 0 without a session, where the queues are recorded.
    pub fn record_capacity(&mut self, now_ns: u64) {
        if !self.tap.as_ref().is_some_and(|tap| tap.is_used()) {
            return;
        }
        let bps = if self.open { self.known_bps(now_ns) } else { 0 };
        self.record_known(now_ns, bps);
    }

    /// Records the capacity that is known.
    fn record_known(&mut self, now_ns: u64, bps: u64) {
        if let Some(tap) = &mut self.tap {
            tap.capacity(now_ns, bps);
            if tap.passes(now_ns) {
                tap.set_change(self.capacity.pace.next_change_ns(now_ns));
            }
            if let Some(paths) = &mut self.paths {
                paths.record(now_ns, self.open, tap);
            }
        }
    }

    /// Records a capacity that was reported just now.
    fn record_report(&mut self, now_ns: u64) {
        if let Some(tap) = &mut self.tap {
            tap.set_change(None);
        }
        self.record_capacity(now_ns);
    }

    /// A packet arrives that takes `wire_bytes` on the link.
    pub fn arrive(&mut self, now_ns: u64, label: impl Into<Label>, wire_bytes: u32, packet: &[u8]) {
        let bytes = (wire_bytes, wire_bytes);
        self.enqueue(now_ns, label.into(), bytes, packet.into());
    }

    /// A packet or super-packet arrives; `wire_bytes` gives the bytes on the link of a packet of some length. A
    /// super-packet is scheduled as a whole if it occupies the link for at most 1 ms and its class has room for all of it.
    /// Otherwise it is cut into packets.
    pub fn arrive_any(
        &mut self,
        now_ns: u64,
        label: impl Into<Label>,
        packet: Packet,
        wire_bytes: impl Fn(usize) -> u32,
    ) {
        let label = label.into();
        self.drop_aged(now_ns);
        let pkts = packet.pkts();
        if pkts == 1 && packet.header_bytes() == 0 {
            let bytes = wire_bytes(packet.len());
            self.enqueue(now_ns, label, (bytes, bytes), packet);
            return;
        }
        let bytes = packet.sum(&wire_bytes);
        let whole_bytes =
            u128::from(self.known_bps(now_ns)) * u128::from(SUPER_PACKET_NS) / 8_000_000_000;
        // Each packet has a number of its own, and the next may go over another path.
        let whole = self.paths.is_none() && bytes < u64::from(MAX_PACKET_BYTES);
        let short = whole && u128::from(bytes) <= whole_bytes;
        let (bytes, pkts) = (bytes as u32, pkts as u32);
        if short && self.mux.has_room_for(label.class, pkts, bytes) {
            let each_bytes = wire_bytes(packet.pkt_bytes(0));
            self.enqueue(now_ns, label, (bytes, each_bytes), packet);
            return;
        }
        for packet in packet.split() {
            let bytes = wire_bytes(packet.len());
            self.enqueue(now_ns, label, (bytes, bytes), packet);
        }
    }

    /// Enqueues a packet or super-packet that takes `wire_bytes` on the link, each of its packets but the last `each_bytes`.
    fn enqueue(
        &mut self,
        now_ns: u64,
        label: Label,
        (wire_bytes, each_bytes): (u32, u32),
        packet: Packet,
    ) {
        if self.waiting_pkts == 0 {
            self.capacity.pace.idle_if_free(now_ns);
            if let Some(paths) = &mut self.paths {
                paths.idle_if_free(now_ns);
            }
        }
        let pkts = packet.pkts() as u32;
        self.waiting_pkts += pkts;
        if let Some(tap) = &mut self.tap {
            if tap.lacks_capacity(now_ns) {
                self.record_capacity(now_ns);
            }
        }
        let Link {
            mux,
            waiting_pkts,
            events,
            tap,
            ..
        } = self;
        if let Some(tap) = tap {
            let arrival = recorder::Arrival {
                pkts,
                bytes: wire_bytes,
                each_bytes,
                tcp: packet::is_tcp(&packet),
            };
            tap.arrived(now_ns, label.class, arrival);
        }
        let first = events.as_mut().map_or(0, |events| {
            events.push(Event::Enqueued(wire_bytes));
            events.len() - 1
        });
        let mut refused = false;
        let waiting = Waiting {
            packet,
            wire_bytes,
            marked: false,
        };
        let arrival = Arrival {
            class: label.class,
            flow: label.flow,
            bytes: wire_bytes,
            pkts,
        };
        mux.arrive(now_ns, arrival, waiting, |dropped, class, reason| {
            let pkts = dropped.packet.pkts() as u32;
            *waiting_pkts -= pkts;
            if let Some(tap) = tap {
                tap.dropped(now_ns, class, pkts, dropped.wire_bytes);
            }
            match reason {
                DropReason::Limit => refused = true,
                DropReason::Head | DropReason::Age | DropReason::Policy => {
                    if let Some(events) = events {
                        events.push(Event::Dropped(dropped.wire_bytes));
                    }
                }
            }
        });
        // A packet refused by its own limit was never in the queue, as far as the hub is concerned.
        if let (true, Some(events)) = (refused, &mut self.events) {
            events.remove(first);
        }
    }

    /// Drops packets that have waited longer than their class lets them, [`MOST_DROPS`] at most.
    pub fn drop_aged(&mut self, now_ns: u64) {
        let Link {
            mux,
            waiting_pkts,
            events,
            tap,
            ..
        } = self;
        mux.drop_aged(now_ns, MOST_DROPS, |dropped, class, _| {
            let pkts = dropped.packet.pkts() as u32;
            *waiting_pkts -= pkts;
            if let Some(tap) = tap {
                tap.dropped(now_ns, class, pkts, dropped.wire_bytes);
            }
            if let Some(events) = events {
                events.push(Event::Dropped(dropped.wire_bytes));
            }
        });
    }

    /// When a packet may have waited for too long at the earliest, ns; none: nothing waits that ever does.
    #[must_use]
    pub fn aged_ns(&self) -> Option<u64> {
        self.mux.aged_ns().filter(|_| self.waiting_pkts > 0)
    }

    /// Opens or closes the link, as the session does. A closed link sends nothing.
    pub fn set_open(&mut self, open: bool) {
        if !open || !self.open {
            // Time without a session must not be made good later.
            self.capacity.pace.idle();
            let paths = self
                .paths
                .iter_mut()
                .flat_map(|paths| &mut paths.capacities);
            paths.for_each(|capacity| capacity.pace.idle());
        }
        self.open = open;
    }

    /// Sets the measured rate of the interface below, bit/s. The scheduler gets the lower of it and the capacity.
    pub fn set_below(&mut self, now_ns: u64, bps: u64) {
        self.capacity.set_below(now_ns, bps);
        self.record_report(now_ns);
        if self.follow {
            self.update_scheduler(now_ns);
        }
    }

    /// The measured rate of the interface below, bit/s; none before the first measurement.
    pub fn below_bps(&mut self, now_ns: u64) -> Option<u64> {
        self.capacity.below_bps(now_ns)
    }

    /// The lower of the link's capacity and the measured rate of the interface below, bit/s; of several paths, the sum of those
    /// that are up.
    pub fn known_bps(&mut self, now_ns: u64) -> u64 {
        match &mut self.paths {
            None => self.capacity.known_bps(now_ns),
            Some(paths) => paths.sum_bps(now_ns),
        }
    }

    /// The next packet. It occupies the link from now on. The call drops at most [`MOST_DROPS`] packets: after that it
    /// returns [`Next::At`] with the time now, so that other work is not delayed.
    pub fn next(&mut self, now_ns: u64, ecn: impl Fn(&Packet) -> bool) -> Next {
        if self.paths.is_some() {
            return self.next_over_paths(now_ns, ecn);
        }
        self.capacity.expire(now_ns);
        self.drop_aged(now_ns);
        if self.waiting_pkts == 0 || !self.open {
            return self.aged_ns().map_or(Next::Nothing, Next::At);
        }
        let ready_ns = self.capacity.pace.ready_ns(now_ns);
        if now_ns < ready_ns {
            return Next::At(self.or_expiry_ns(ready_ns)).or_at(self.aged_ns());
        }
        if self.follow || self.tap.is_some() {
            let bps = self.known_bps(now_ns);
            if self.follow {
                self.give_scheduler(now_ns, bps);
            }
            self.record_known(now_ns, bps);
        }
        for _ in 0..MOST_DROPS {
            match self.mux.step(now_ns, |waiting| ecn(&waiting.packet)) {
                Some(Step::Leaves(departure)) => {
                    self.left(now_ns, &departure);
                    let Waiting { packet, .. } = departure.item;
                    self.waiting_pkts -= packet.pkts() as u32;
                    self.capacity.pace.begin(now_ns, departure.bytes);
                    return Next::Send(packet, departure.marked);
                }
                Some(Step::Dropped {
                    class, item, bytes, ..
                }) => {
                    self.lost(now_ns, class, &item, bytes);
                    self.waiting_pkts -= item.packet.pkts() as u32;
                }
                None => {
                    self.capacity.pace.idle();
                    let retry = self.mux.retry_ns().map_or(Next::Nothing, Next::At);
                    return retry.or_at(self.aged_ns());
                }
            }
        }
        Next::At(now_ns)
    }

    /// As [`Link::next`], over whichever path is free for it ([`Link::over`]).
    fn next_over_paths(&mut self, now_ns: u64, ecn: impl Fn(&Packet) -> bool) -> Next {
        self.drop_aged(now_ns);
        let aged_ns = self.aged_ns();
        let Some(mut paths) = self.open.then(|| self.paths.take()).flatten() else {
            return aged_ns.map_or(Next::Nothing, Next::At);
        };
        paths.refresh(now_ns);
        let bps = paths.sum_bps(now_ns);
        if self.follow {
            self.give_scheduler(now_ns, bps);
        }
        if self.tap.as_ref().is_some_and(|tap| tap.is_used()) {
            self.record_known(now_ns, bps);
            if let Some(tap) = &mut self.tap {
                paths.record(now_ns, self.open, tap);
            }
        }
        let mut next = Next::Nothing;
        for place in 0..paths.capacities.len() {
            let at = paths.sender.bond.by_delay()[place];
            let waits = self.waiting_pkts > 0 || paths.sender.waits(at);
            if !waits {
                paths.capacities[at].pace.idle_if_free(now_ns);
                continue;
            }
            if !paths.sender.bond.paths()[at].up {
                continue;
            }
            let ready_ns = paths.capacities[at].pace.ready_ns(now_ns);
            if now_ns < ready_ns {
                next = next.or_at(Some(paths.capacities[at].or_expiry_ns(ready_ns)));
                continue;
            }
            next = self.next_over(now_ns, &mut paths, at, next, &ecn);
            if matches!(next, Next::Send(..)) {
                break;
            }
        }
        self.paths = Some(paths);
        next.or_at(aged_ns)
    }

    /// The next packet over a path that is free; `or` if it has none.
    fn next_over(
        &mut self,
        now_ns: u64,
        paths: &mut Paths,
        at: usize,
        or: Next,
        ecn: &impl Fn(&Packet) -> bool,
    ) -> Next {
        while let Some(carried) = paths.before(&mut self.mux, now_ns, at) {
            if let Some(next) = self.send_carried(now_ns, paths, at, carried) {
                return next;
            }
        }
        if self.waiting_pkts > 0 {
            paths.sender.allow(&mut self.mux, now_ns, at);
        }
        for _ in 0..MOST_DROPS {
            let step = (self.waiting_pkts > 0)
                .then(|| self.mux.step(now_ns, |waiting| ecn(&waiting.packet)));
            match step.flatten() {
                Some(Step::Leaves(mut departure)) => {
                    departure.item.marked = departure.marked;
                    self.left(now_ns, &departure);
                    self.over = paths.left(now_ns, at, &departure);
                    let Waiting { packet, .. } = departure.item;
                    let pkts = packet.pkts() as u32;
                    self.waiting_pkts -= pkts;
                    if let Some(tap) = &mut self.tap {
                        tap.carried(now_ns, (departure.class, at), (pkts, departure.bytes));
                    }
                    paths.capacities[at].pace.begin(now_ns, departure.bytes);
                    return Next::Send(packet, departure.marked);
                }
                Some(Step::Dropped {
                    class, item, bytes, ..
                }) => {
                    self.lost(now_ns, class, &item, bytes);
                    self.waiting_pkts -= item.packet.pkts() as u32;
                }
                None => {
                    while let Some(carried) = paths.after(now_ns, at) {
                        if let Some(next) = self.send_carried(now_ns, paths, at, carried) {
                            return next;
                        }
                    }
                    paths.capacities[at].pace.idle();
                    let retry_ns = paths.retry_ns(at, self.mux.queues(), now_ns);
                    return or.or_at(retry_ns).or_at(self.mux.retry_ns());
                }
            }
        }
        Next::At(now_ns)
    }

    /// Sends a copy or a repetition over a path.
    fn send_carried(
        &mut self,
        now_ns: u64,
        paths: &mut Paths,
        at: usize,
        carried: linkweir_core::Carried<Waiting>,
    ) -> Option<Next> {
        let over = paths.over(at, carried.class, carried.number)?;
        self.over = Some(Over {
            is_again: true,
            ..over
        });
        paths.capacities[at].pace.begin(now_ns, carried.bytes);
        let Waiting { packet, marked, .. } = carried.item;
        if let Some(tap) = &mut self.tap {
            let sent = (packet.pkts() as u32, carried.bytes);
            tap.carried(now_ns, (carried.class, at), sent);
        }
        Some(Next::Send(packet, marked))
    }

    /// Over which of several paths the last packet is sent; none: there is but one.
    #[inline]
    #[must_use]
    pub fn over(&self) -> Option<Over> {
        self.over
    }

    /// Sets what is known of each path, and whether the peer has agreed to several: until then one path at most is up. Returns
    /// whether a path came up or died, or the peer agreed or is not known to any more.
    pub fn set_paths(&mut self, now_ns: u64, agreed: bool, states: &[State]) -> bool {
        let Some(paths) = &mut self.paths else {
            return false;
        };
        let mut changed = paths.set_agreed(agreed);
        for (at, state) in states.iter().enumerate() {
            changed |= paths.set_state(now_ns, at, *state);
        }
        if changed && self.follow {
            self.update_scheduler(now_ns);
        }
        if changed {
            self.record_capacity(now_ns);
        }
        changed
    }

    /// Whether the peer has agreed to several paths.
    #[must_use]
    pub fn is_agreed(&self) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.is_agreed())
    }

    /// Bytes that the number of a packet of a class takes, if its packets may have numbers.
    #[inline]
    #[must_use]
    pub fn number_bytes(&self, class: usize) -> usize {
        let paths = self.paths.as_ref();
        let numbered = paths.is_some_and(|paths| paths.is_numbered(class));
        if numbered {
            numbered::HEADER_BYTES
        } else {
            0
        }
    }

    /// What a path has carried.
    #[must_use]
    pub fn carried(&self, path: usize) -> Carried {
        let paths = self.paths.as_ref();
        paths.map_or_else(Carried::default, |paths| paths.carried(path))
    }

    /// The reservations, bit/s, of which the paths that are up cannot carry all, and how much they can.
    pub fn broken_promises(&self) -> Vec<Kept> {
        let Some(paths) = &self.paths else {
            return Vec::new();
        };
        let link_bps = self.mux.link_bps();
        let promised = self.starved.reservations();
        let promised: Vec<u64> = promised
            .map(|of| of.map_or(0, |of| of.rate_bps(link_bps)))
            .collect();
        let mut kept = paths.kept(&promised);
        kept.retain(|kept| kept.kept_bps < kept.promised_bps);
        kept
    }

    /// The capacity of a path now, bit/s, and whether a reported one has expired.
    pub fn path_bps(&mut self, now_ns: u64, path: usize) -> (u64, bool) {
        self.paths.as_mut().map_or((0, false), |paths| {
            let capacity = &mut paths.capacities[path];
            (capacity.capacity_bps(now_ns), capacity.has_expired(now_ns))
        })
    }

    /// Times in which a path had no capacity, as it was configured or reported.
    pub fn path_outages(&mut self, now_ns: u64, path: usize) -> Outages {
        let paths = self.paths.as_mut();
        let path = paths.and_then(|paths| paths.capacities.get_mut(path));
        path.map_or_else(Outages::default, |path| path.outages(now_ns))
    }

    /// As [`Link::set_capacity`], of a path.
    pub fn set_path_capacity(&mut self, now_ns: u64, path: usize, bps: u64) {
        self.change_path(now_ns, path, |capacity| capacity.report(now_ns, bps));
    }

    /// As [`Link::steer`], of a path.
    pub fn steer_path(&mut self, now_ns: u64, path: usize, steer: Steer) {
        self.change_path(now_ns, path, |capacity| capacity.steer(now_ns, steer));
    }

    fn change_path(&mut self, now_ns: u64, path: usize, change: impl FnOnce(&mut KnownCapacity)) {
        let Some(paths) = &mut self.paths else {
            return;
        };
        change(&mut paths.capacities[path]);
        paths.refresh(now_ns);
        if let Some(tap) = &mut self.tap {
            tap.set_path_change(path, None);
        }
        self.record_capacity(now_ns);
        if self.follow {
            self.update_scheduler(now_ns);
        }
    }

    /// As [`Link::channel_free_ns`], of a path.
    pub fn path_free_ns(&mut self, now_ns: u64, path: usize) -> Option<u64> {
        let paths = self.paths.as_mut().filter(|_| self.open)?;
        let capacity = &mut paths.capacities[path];
        capacity.expire(now_ns);
        let ready_ns = capacity.pace.ready_ns(now_ns);
        Some(capacity.or_expiry_ns(ready_ns))
    }

    /// As [`Link::occupy`], of a path, which may be occupied. In an outage the packet waits for its end. One that is down or
    /// occupied for more than [`MOST_OCCUPIED_NS`] is left alone: probes sent there must not accumulate.
    pub fn occupy_path(&mut self, now_ns: u64, path: usize, wire_bytes: u32) {
        if let Some(paths) = &mut self.paths {
            let is_up = paths.sender.bond.paths()[path].up;
            let capacity = &mut paths.capacities[path];
            if capacity.rate_bps(now_ns) == 0 {
                capacity.pace.hold(now_ns, wire_bytes);
                return;
            }
            if !is_up || capacity.pace.free_ns() > now_ns + MOST_OCCUPIED_NS {
                return;
            }
            if self.waiting_pkts == 0 && !paths.sender.waits(path) {
                capacity.pace.idle_if_free(now_ns);
            }
            capacity.pace.begin(now_ns, wire_bytes);
        }
    }

    /// Takes over other paths. With those of before, their states stay; otherwise none is up, and numbers begin anew.
    pub fn change_paths(
        &mut self,
        now_ns: u64,
        (old, new): (&[PathSetup], &[PathSetup]),
        classes: &[Class],
    ) {
        let names = |paths: &[PathSetup]| -> Vec<String> {
            paths.iter().map(|path| path.name.clone()).collect()
        };
        match &mut self.paths {
            Some(paths) if names(old) == names(new) => paths.change(now_ns, (old, new), classes),
            _ => {
                self.paths = Link::new_paths(now_ns, new, classes);
                self.over = None;
                // What was withheld for the paths of before may leave again.
                self.mux.allow(now_ns, |_, _| true);
            }
        }
        if self.paths.is_some() && self.follow {
            self.update_scheduler(now_ns);
        }
    }

    /// Whether a reported capacity has expired, so that the floor holds.
    pub fn has_expired(&mut self, now_ns: u64) -> bool {
        self.capacity.has_expired(now_ns)
    }

    /// This time, or when the reported capacity expires if that is sooner, ns.
    pub fn or_expiry_ns(&self, ns: u64) -> u64 {
        self.capacity.or_expiry_ns(ns)
    }

    /// The rate of the channel to the peer now, bit/s; 0 while there is no session.
    pub fn channel_bps(&mut self, now_ns: u64) -> u64 {
        let bps = self.capacity.rate_bps(now_ns);
        if self.open {
            bps
        } else {
            0
        }
    }

    /// When a packet that begins at `from` ends: at the present rate of the channel, or sooner where its configured rate
    /// rises before.
    pub fn finish_time(&mut self, now_ns: u64, from: Instant, bytes: u32) -> Instant {
        let rate_bps = self.channel_bps(now_ns).max(1);
        let end = from.plus(8e9 * f64::from(bytes) / rate_bps as f64);
        let sooner = self.capacity.pace.would_end(from, bytes);
        sooner
            .filter(|sooner| end.since(*sooner) >= 1.0)
            .unwrap_or(end)
    }

    /// When the link is free and its rate is not zero, ns; none while there is no session.
    pub fn channel_free_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.capacity.expire(now_ns);
        if !self.open {
            return None;
        }
        let ready_ns = self.capacity.pace.ready_ns(now_ns);
        Some(self.or_expiry_ns(ready_ns))
    }

    /// The queue whose head is sent next, as far as that is known before the policies of flows are asked
    /// ([`Mux::next_class_so_far`]).
    pub fn head_so_far(&mut self, now_ns: u64) -> Option<Queue> {
        if self.waiting_pkts == 0 {
            return None;
        }
        if self.follow {
            self.update_scheduler(now_ns);
        }
        let class = self.mux.next_class_so_far(now_ns)?;
        Some(self.mux.queues()[class])
    }

    /// The queue whose head is sent next, and whether that packet can carry an ECN mark.
    pub fn head(&mut self, now_ns: u64, ecn: impl Fn(&Packet) -> bool) -> Option<(Queue, bool)> {
        if self.waiting_pkts == 0 {
            return None;
        }
        if self.follow {
            self.update_scheduler(now_ns);
        }
        let class = self.mux.next_class(now_ns)?;
        let head = self.mux.head(class)?;
        Some((self.mux.queues()[class], ecn(&head.packet)))
    }

    /// All queues as one, as the policy across peers sees them.
    pub fn as_queue(&mut self, now_ns: u64) -> Queue {
        let rate_bps = self.channel_bps(now_ns);
        let head = self.head_so_far(now_ns);
        let queues = self.mux.queues();
        Queue {
            backlog_bytes: queues.iter().map(|queue| queue.backlog_bytes).sum(),
            backlog_pkts: queues.iter().map(|queue| queue.backlog_pkts).sum(),
            rate_bps,
            ..head.unwrap_or_default()
        }
    }

    /// Takes the next packet without a look at the pace; none when its policy dropped it. The last event has its bytes on
    /// the link.
    pub fn take(&mut self, now_ns: u64, ecn: impl Fn(&Packet) -> bool) -> Option<(Packet, bool)> {
        let step = self.mux.step(now_ns, |waiting| ecn(&waiting.packet))?;
        self.record(now_ns, step)
    }

    /// Drops the next packet: it has waited too long for the policy across peers.
    pub fn drop_head(&mut self, now_ns: u64) {
        let step = self
            .mux
            .next_class(now_ns)
            .and_then(|class| self.mux.drop_head(now_ns, class));
        if let Some(step) = step {
            self.record(now_ns, step);
        }
    }

    /// Counts packets that leave.
    fn left(&mut self, now_ns: u64, departure: &Departure<Waiting>) {
        let class = departure.class;
        let pkts = departure.item.packet.pkts();
        self.waits[class]
            .get_or_insert_default()
            .record(now_ns, departure.sojourn_ns, pkts as u64);
        let sent = (class, departure.bytes);
        let link_bps = self.mux.link_bps();
        self.starved.left(now_ns, sent, link_bps, self.mux.queues());
        if let Some(tap) = &mut self.tap {
            tap.sent(now_ns, class, pkts as u32, departure.bytes);
        }
    }

    /// Counts packets that a step dropped.
    fn lost(&mut self, now_ns: u64, class: usize, waiting: &Waiting, bytes: u32) {
        if let Some(tap) = &mut self.tap {
            tap.dropped(now_ns, class, waiting.packet.pkts() as u32, bytes);
        }
    }

    /// How long packets of a class waited; none before the first left.
    #[must_use]
    pub fn waits(&self, class: usize) -> Option<&Waits> {
        self.waits[class].as_deref()
    }

    /// For how long packets of a class waited while only other classes sent, ns, without the first second of each time, what
    /// its reserved rate covers, and the turns of others.
    #[must_use]
    pub fn starved_ns(&self, class: usize) -> u64 {
        self.starved.total_ns(class)
    }

    /// A class that has sent nothing for a second although packets of it wait and other classes sent; each once per time.
    pub fn take_starved(&mut self) -> Option<usize> {
        self.starved.take()
    }

    fn record(&mut self, now_ns: u64, step: Step<Waiting>) -> Option<(Packet, bool)> {
        self.record_capacity(now_ns);
        match &step {
            Step::Leaves(departure) => self.left(now_ns, departure),
            Step::Dropped {
                class, item, bytes, ..
            } => self.lost(now_ns, *class, item, *bytes),
        }
        let (waiting, event, sent) = match step {
            Step::Leaves(departure) => (
                departure.item,
                Event::Sent(departure.bytes),
                Some(departure.marked),
            ),
            Step::Dropped { item, bytes, .. } => (item, Event::Dropped(bytes), None),
        };
        self.waiting_pkts -= waiting.packet.pkts() as u32;
        if let Some(events) = &mut self.events {
            events.push(event);
        }
        sent.map(|marked| (waiting.packet, marked))
    }

    /// Events of the queues since the last call, in order.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.iter_mut().flat_map(|events| events.drain(..))
    }

    /// Gives the scheduler the capacity if it differs by more than 1 % from the one it has.
    fn update_scheduler(&mut self, now_ns: u64) {
        let bps = self.known_bps(now_ns);
        self.give_scheduler(now_ns, bps);
    }

    /// Gives the scheduler this capacity if it differs by more than 1 % from the one it has.
    fn give_scheduler(&mut self, now_ns: u64, bps: u64) {
        let bps = bps.max(LEAST_BPS);
        if differs(bps, self.mux.link_bps()) {
            self.set_scheduler_rate(now_ns, bps);
        }
    }

    /// Gives the scheduler a capacity, bit/s.
    fn set_scheduler_rate(&mut self, now_ns: u64, bps: u64) {
        self.mux.set_link(now_ns, bps);
        self.mux
            .set_rates(now_ns, std::iter::repeat_n(bps, self.mux.nclasses()));
    }

    /// Sets a reported capacity, bit/s. It holds for `stale_ns`.
    pub fn set_capacity(&mut self, now_ns: u64, bps: u64) {
        self.capacity.report(now_ns, bps);
        self.record_report(now_ns);
        if self.follow {
            self.update_scheduler(now_ns);
        }
    }

    /// Sets the pace that feedback asks for, and the capacity that it estimates.
    pub fn steer(&mut self, now_ns: u64, steer: Steer) {
        self.capacity.steer(now_ns, steer);
        if self.follow {
            self.update_scheduler(now_ns);
        }
    }

    /// Occupies the link, which must be free ([`Link::channel_free_ns`]), with a packet that was in no queue.
    pub fn occupy(&mut self, now_ns: u64, wire_bytes: u32) {
        if self.waiting_pkts == 0 {
            self.capacity.pace.idle();
        }
        self.capacity.pace.begin(now_ns, wire_bytes);
    }

    /// Whether [`Link::change`] would accept these parameters.
    ///
    /// # Errors
    /// A setting that the policy refuses.
    pub fn accepts(
        &self,
        scheduler: &Scheduler,
        (old, new): (&Capacity, &Capacity),
    ) -> Result<(), Fault> {
        let scheduler_bps = if self.capacity.restarts(old, new) {
            new.nominal_bps
        } else {
            self.mux.link_bps()
        };
        self.mux
            .accepts(scheduler_bps, &scheduler.params, &scheduler.qparams)
    }

    /// Changes what may change while packets wait: parameters, limits, and the capacity if its configuration changed.
    /// Queues and credit stay.
    ///
    /// # Errors
    /// Parameters that the running policy refuses; [`Link::accepts`] finds them before.
    pub fn change(
        &mut self,
        now_ns: u64,
        scheduler: &Scheduler,
        classes: &[Class],
        (old, new): (&Capacity, &Capacity),
    ) -> Result<(), Fault> {
        if self.capacity.restarts(old, new) {
            // The policy checks reservations against it, so it comes before the new parameters.
            self.set_scheduler_rate(now_ns, new.nominal_bps);
        }
        self.mux
            .change(now_ns, &scheduler.params, &scheduler.qparams)?;
        self.starved
            .change(&Reservation::all(scheduler, classes.len()));
        for (at, class) in classes.iter().enumerate() {
            self.mux.set_limit(at, applied(class.limit));
        }
        self.follow = new.follow;
        self.capacity.change(now_ns, old, new);
        Ok(())
    }

    /// Packets that wait.
    #[must_use]
    pub fn waiting_pkts(&self) -> u32 {
        self.waiting_pkts
    }

    /// The capacity now, bit/s; of several paths, the sum of those that are up.
    pub fn capacity_bps(&mut self, now_ns: u64) -> u64 {
        match &mut self.paths {
            None => self.capacity.capacity_bps(now_ns),
            Some(paths) => {
                paths.refresh(now_ns);
                paths.sum_bps(now_ns)
            }
        }
    }

    /// The queues, for statistics.
    pub fn mux(&mut self) -> &mut Mux<Deciding, Waiting> {
        &mut self.mux
    }
}

#[cfg(test)]
pub(crate) mod tests;
