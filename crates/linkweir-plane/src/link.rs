// SPDX-License-Identifier: BSD-3-Clause
//! The way to one peer: its queues, its policy and its pace. No input or output and no clock.
//!
//! Where peers share one link ([`crate::hub`]) the pace is that link's, and this one says only what the channel to the peer
//! carries; what happens to the queues is then noted for the policy across peers.

use linkweir_config::signal::Instant;
use linkweir_core::{
    CorePolicy, DropReason, Fault, Mux, Queue, Step, MAX_PACKET_BYTES, MOST_DROPS,
};

use crate::bytes::superpacket::Packet;
use crate::pace::Pace;
use crate::setup::{Capacity, Class, LinkSetup, Scheduler};

/// Longest time a super-packet may occupy the link, ns: one that would take longer is cut before it is scheduled.
pub const SUPER_PACKET_NS: u64 = 1_000_000;

/// Capacities below this are told to the scheduler as this, bit/s.
pub const LEAST_BPS: u64 = 1000;

/// A packet that waits.
#[derive(Debug)]
pub struct Waiting {
    packet: Packet,
    /// What it takes on the link.
    wire_bytes: u32,
}

/// What happened to a packet towards a peer, with its bytes on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It waits.
    Enqueued(u32),
    /// It was sent.
    Sent(u32),
    /// It waited and was dropped.
    Dropped(u32),
}

/// Whether a rate differs enough from what was told to be told: by more than 1 %.
#[must_use]
pub fn differs(bps: u64, known_bps: u64) -> bool {
    bps.abs_diff(known_bps) > known_bps / 100
}

/// Queues, policy and pace towards one peer.
#[derive(Debug)]
pub struct Link {
    mux: Mux<CorePolicy, Waiting>,
    pace: Pace,
    follow: bool,
    /// What was said from outside, and until when it holds, ns.
    stale_ns: Option<u64>,
    floor_bps: u64,
    reported_until_ns: Option<u64>,
    /// What the interface below takes, bit/s, and until when that holds, ns; none where nobody measures.
    below: Option<(u64, Option<u64>)>,
    /// Whether that is measured; nobody says the pace then, so it does not become stale.
    measured: bool,
    waiting_pkts: u32,
    /// Whether packets can be sent at all, as far as the session goes.
    open: bool,
    /// What happened since it was taken note of; none where the link is the peer's own.
    events: Option<Vec<Event>>,
}

/// What becomes of a link's next packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// It goes now: the packet, and whether it is to be marked as having met congestion.
    Send(Packet, bool),
    /// Nothing goes before this time, ns. When it is now, other things have their turn before this is asked again.
    At(u64),
    /// Nothing waits.
    Nothing,
}

impl Link {
    /// Empty queues towards a peer.
    ///
    /// # Errors
    /// Parameters the policy refuses.
    pub fn new(now_ns: u64, setup: LinkSetup<'_>) -> Result<Link, Fault> {
        let LinkSetup {
            capacity, measured, ..
        } = setup;
        let Scheduler {
            info,
            params,
            qparams,
        } = setup.scheduler;
        let limits: Vec<_> = setup.classes.iter().map(|class| class.limit).collect();
        let mux = Mux::new(now_ns, capacity.nominal_bps, &limits, |view| {
            CorePolicy::new(info, view, params, qparams)
        })?;
        Ok(Link {
            mux,
            pace: Pace::new(&capacity.offered, now_ns),
            follow: capacity.follow,
            stale_ns: capacity.stale_ns,
            floor_bps: capacity.floor_bps,
            // What the interface below takes is no part of the pace.
            reported_until_ns: capacity
                .stale_ns
                .filter(|_| !measured)
                .map(|ns| now_ns + ns),
            below: None,
            measured,
            waiting_pkts: 0,
            open: true,
            events: setup.shared.then(Vec::new),
        })
    }

    /// A packet arrives that takes `wire_bytes` on the link.
    pub fn arrive(&mut self, now_ns: u64, class: usize, wire_bytes: u32, packet: &[u8]) {
        self.enqueue(now_ns, class, wire_bytes, packet.into());
    }

    /// A packet or super-packet arrives; `wire_bytes` says what a packet of some bytes takes on the link. A super-packet
    /// is scheduled whole when it occupies the link for 1 ms at the most and its class has room for all of it, and packet
    /// by packet otherwise.
    pub fn arrive_any(
        &mut self,
        now_ns: u64,
        class: usize,
        packet: Packet,
        wire_bytes: impl Fn(usize) -> u32,
    ) {
        let pkts = packet.pkts();
        if pkts == 1 && packet.header_bytes() == 0 {
            self.enqueue(now_ns, class, wire_bytes(packet.len()), packet);
            return;
        }
        let bytes = packet.sum(&wire_bytes);
        let whole_bytes =
            u128::from(self.known_bps(now_ns)) * u128::from(SUPER_PACKET_NS) / 8_000_000_000;
        let short = u128::from(bytes) <= whole_bytes && bytes < u64::from(MAX_PACKET_BYTES);
        let (bytes, pkts) = (bytes as u32, pkts as u32);
        if short && self.mux.has_room_for(class, pkts, bytes) {
            self.enqueue(now_ns, class, bytes, packet);
            return;
        }
        for packet in packet.split() {
            self.enqueue(now_ns, class, wire_bytes(packet.len()), packet);
        }
    }

    fn enqueue(&mut self, now_ns: u64, class: usize, wire_bytes: u32, packet: Packet) {
        if self.waiting_pkts == 0 && self.pace.free_ns() <= now_ns {
            self.pace.idle();
        }
        let pkts = packet.pkts() as u32;
        self.waiting_pkts += pkts;
        let Link {
            mux,
            waiting_pkts,
            events,
            ..
        } = self;
        let first = events.as_mut().map_or(0, |events| {
            events.push(Event::Enqueued(wire_bytes));
            events.len() - 1
        });
        let mut refused = false;
        let waiting = Waiting { packet, wire_bytes };
        mux.enqueue_train(
            now_ns,
            class,
            wire_bytes,
            pkts,
            waiting,
            |dropped, _, reason| {
                *waiting_pkts -= dropped.packet.pkts() as u32;
                match reason {
                    DropReason::Limit => refused = true,
                    DropReason::Policy => {
                        if let Some(events) = events {
                            events.push(Event::Dropped(dropped.wire_bytes));
                        }
                    }
                }
            },
        );
        // What its own limit refuses never waited.
        if let (true, Some(events)) = (refused, &mut self.events) {
            events.remove(first);
        }
    }

    /// Whether packets can be sent at all; while they cannot, none is asked for.
    pub fn set_open(&mut self, open: bool) {
        self.open = open;
        if !open {
            // Nothing is missed until it is open again.
            self.pace.idle();
        }
    }

    /// What was said of the capacity is believed no more, if its time has come.
    fn expire(&mut self, now_ns: u64) {
        if self
            .reported_until_ns
            .is_some_and(|until_ns| until_ns <= now_ns)
        {
            self.reported_until_ns = None;
            self.pace.set_rate(now_ns, self.floor_bps);
        }
        if let Some((bps, Some(until_ns))) = self.below {
            if until_ns <= now_ns {
                self.below = Some((bps.min(self.floor_bps), None));
            }
        }
    }

    /// The interface below takes so much, bit/s: the scheduler is told no more than that.
    pub fn set_below(&mut self, now_ns: u64, bps: u64) {
        self.below = Some((bps, self.stale_ns.map(|ns| now_ns + ns)));
        if self.follow {
            self.update_scheduler(now_ns);
        }
    }

    /// What the interface below takes as far as it is known, bit/s; none where nobody measures.
    pub fn below_bps(&mut self, now_ns: u64) -> Option<u64> {
        self.expire(now_ns);
        self.below.map(|(bps, _)| bps)
    }

    /// The capacity as far as it is known, bit/s: that of the link, and that of the interface below.
    pub fn known_bps(&mut self, now_ns: u64) -> u64 {
        self.expire(now_ns);
        let bps = self.pace.rate_bps(now_ns);
        self.below.map_or(bps, |(below_bps, _)| below_bps.min(bps))
    }

    /// What goes next. A packet that is sent occupies the link from now on. After [`MOST_DROPS`] drops without a packet it
    /// is time for other things: the answer is to ask again now.
    pub fn next(&mut self, now_ns: u64, ecn: impl Fn(&Packet) -> bool) -> Next {
        self.expire(now_ns);
        if self.waiting_pkts == 0 || !self.open {
            return Next::Nothing;
        }
        let ready_ns = self.pace.ready_ns(now_ns);
        if now_ns < ready_ns {
            return Next::At(self.or_expiry_ns(ready_ns));
        }
        if self.follow {
            self.update_scheduler(now_ns);
        }
        for _ in 0..MOST_DROPS {
            match self.mux.step(now_ns, |waiting| ecn(&waiting.packet)) {
                Some(Step::Leaves(departure)) => {
                    let Waiting { packet, .. } = departure.item;
                    self.waiting_pkts -= packet.pkts() as u32;
                    self.pace.begin(now_ns, departure.bytes);
                    return Next::Send(packet, departure.marked);
                }
                Some(Step::Dropped { item, .. }) => {
                    self.waiting_pkts -= item.packet.pkts() as u32;
                }
                None => {
                    self.pace.idle();
                    return self.mux.retry_ns().map_or(Next::Nothing, Next::At);
                }
            }
        }
        Next::At(now_ns)
    }

    /// This time, or when what was said is believed no more, if that is sooner.
    pub fn or_expiry_ns(&self, ns: u64) -> u64 {
        self.reported_until_ns
            .map_or(ns, |until_ns| until_ns.min(ns))
    }

    /// What the channel to the peer carries now, bit/s; 0 while nothing can be sent.
    pub fn channel_bps(&mut self, now_ns: u64) -> u64 {
        self.expire(now_ns);
        if self.open {
            self.pace.rate_bps(now_ns)
        } else {
            0
        }
    }

    /// When a packet towards the peer that begins at `from` ends: at the rate the channel has now, or sooner where it becomes
    /// faster by itself.
    pub fn finish_time(&mut self, now_ns: u64, from: Instant, bytes: u32) -> Instant {
        let rate_bps = self.channel_bps(now_ns).max(1);
        let end = from.plus(8e9 * f64::from(bytes) / rate_bps as f64);
        let sooner = self.pace.would_end(from, bytes);
        sooner
            .filter(|sooner| end.since(*sooner) >= 1.0)
            .unwrap_or(end)
    }

    /// When a link that is the peer's own is free, and a channel that carries nothing may carry something again by itself, ns.
    pub fn channel_free_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.expire(now_ns);
        if !self.open {
            return None;
        }
        let ready_ns = self.pace.ready_ns(now_ns);
        Some(self.or_expiry_ns(ready_ns))
    }

    /// The queue whose head goes next, and whether that packet can carry a mark.
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

    /// All that waits as one queue, as the policy across peers sees it.
    pub fn as_queue(&mut self, now_ns: u64) -> Queue {
        let rate_bps = self.channel_bps(now_ns);
        let head = self.head(now_ns, |_| false);
        let queues = self.mux.queues();
        Queue {
            backlog_bytes: queues.iter().map(|queue| queue.backlog_bytes).sum(),
            backlog_pkts: queues.iter().map(|queue| queue.backlog_pkts).sum(),
            rate_bps,
            ..head.map(|(head, _)| head).unwrap_or_default()
        }
    }

    /// Takes the packet whose turn it is, whatever the pace; none when its policy dropped it. Its bytes on the link are what
    /// the last event says.
    pub fn take(&mut self, now_ns: u64, ecn: impl Fn(&Packet) -> bool) -> Option<(Packet, bool)> {
        let step = self.mux.step(now_ns, |waiting| ecn(&waiting.packet))?;
        self.record(step)
    }

    /// Drops the packet whose turn it is: it has waited too long for the policy across peers.
    pub fn drop_head(&mut self, now_ns: u64) {
        let step = self
            .mux
            .next_class(now_ns)
            .and_then(|class| self.mux.drop_head(now_ns, class));
        if let Some(step) = step {
            self.record(step);
        }
    }

    fn record(&mut self, step: Step<Waiting>) -> Option<(Packet, bool)> {
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

    /// What happened since this was last asked, in its order.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.iter_mut().flat_map(|events| events.drain(..))
    }

    /// Tells the scheduler a capacity that differs by more than 1 % from what it was told.
    fn update_scheduler(&mut self, now_ns: u64) {
        let bps = self.known_bps(now_ns).max(LEAST_BPS);
        if differs(bps, self.mux.link_bps()) {
            self.set_scheduler_rate(now_ns, bps);
        }
    }

    /// The scheduler hears that the link carries so much, bit/s.
    fn set_scheduler_rate(&mut self, now_ns: u64, bps: u64) {
        self.mux.set_link(now_ns, bps);
        self.mux
            .set_rates(now_ns, std::iter::repeat_n(bps, self.mux.nclasses()));
    }

    /// The capacity is `bps` from now on, or as long as it is believed.
    pub fn set_capacity(&mut self, now_ns: u64, bps: u64) {
        self.pace.set_rate(now_ns, bps);
        self.reported_until_ns = self.stale_ns.map(|ns| now_ns + ns);
        if self.follow {
            self.update_scheduler(now_ns);
        }
    }

    /// The link, which is free ([`Link::channel_free_ns`]), is occupied by something that did not wait.
    pub fn occupy(&mut self, now_ns: u64, wire_bytes: u32) {
        if self.waiting_pkts == 0 {
            self.pace.idle();
        }
        self.pace.begin(now_ns, wire_bytes);
    }

    /// Whether [`Link::change`] would take these parameters over.
    ///
    /// # Errors
    /// What the policy refuses.
    pub fn accepts(
        &self,
        scheduler: &Scheduler,
        (old, new): (&Capacity, &Capacity),
    ) -> Result<(), Fault> {
        let scheduler_bps = if self.restarts(old, new) {
            new.nominal_bps
        } else {
            self.mux.link_bps()
        };
        self.mux
            .accepts(scheduler_bps, &scheduler.params, &scheduler.qparams)
    }

    /// Whether the capacity is what is configured again, once that is new.
    fn restarts(&self, old: &Capacity, new: &Capacity) -> bool {
        let other_source =
            old.command != new.command || old.feedback.is_some() != new.feedback.is_some();
        old.offered != new.offered
            || other_source
            // The floor would be believed for ever.
            || (self.at_floor(old) && new.stale_ns.is_none())
    }

    /// Whether the floor is what is believed.
    fn at_floor(&self, capacity: &Capacity) -> bool {
        capacity.stale_ns.is_some() && self.reported_until_ns.is_none() && !self.measured
    }

    /// Takes over what may change while packets wait: parameters, limits, and the capacity where it was configured anew.
    /// Queues and credit stay.
    ///
    /// # Errors
    /// Parameters the running policy refuses, which [`Link::accepts`] would have said.
    pub fn change(
        &mut self,
        now_ns: u64,
        scheduler: &Scheduler,
        classes: &[Class],
        (old, new): (&Capacity, &Capacity),
    ) -> Result<(), Fault> {
        let (restarts, at_floor) = (self.restarts(old, new), self.at_floor(old));
        if restarts {
            // What is reserved is judged by it.
            self.set_scheduler_rate(now_ns, new.nominal_bps);
        }
        self.mux
            .change(now_ns, &scheduler.params, &scheduler.qparams)?;
        for (at, class) in classes.iter().enumerate() {
            self.mux.set_limit(at, class.limit);
        }
        self.follow = new.follow;
        self.stale_ns = new.stale_ns;
        self.floor_bps = new.floor_bps;
        if restarts {
            let free_ns = self.pace.free_ns();
            self.pace = Pace::new(&new.offered, now_ns.max(free_ns.min(now_ns + 1_000_000)));
            let stale_ns = new.stale_ns.filter(|_| !self.measured);
            self.reported_until_ns = stale_ns.map(|ns| now_ns + ns);
        } else if at_floor && old.floor_bps != new.floor_bps {
            self.pace.set_rate(now_ns, new.floor_bps);
        } else if let (Some(until_ns), Some(old_ns)) = (self.reported_until_ns, old.stale_ns) {
            let reported_ns = until_ns.saturating_sub(old_ns);
            self.reported_until_ns = new.stale_ns.map(|ns| reported_ns + ns);
        } else if old.stale_ns.is_none() && !self.measured {
            self.reported_until_ns = new.stale_ns.map(|ns| now_ns + ns);
        }
        if let (Some((_, until_ns)), None) = (&mut self.below, new.stale_ns) {
            *until_ns = None;
        }
        Ok(())
    }

    /// Packets that wait.
    #[must_use]
    pub fn waiting_pkts(&self) -> u32 {
        self.waiting_pkts
    }

    /// The capacity now, bit/s.
    pub fn capacity_bps(&mut self, now_ns: u64) -> u64 {
        self.pace.rate_bps(now_ns)
    }

    /// The queues, for statistics.
    pub fn mux(&mut self) -> &mut Mux<CorePolicy, Waiting> {
        &mut self.mux
    }
}

#[cfg(test)]
mod tests;
