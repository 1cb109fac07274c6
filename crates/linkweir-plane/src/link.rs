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
pub const WHOLE_NS: u64 = 1_000_000;

/// Capacities below this are told to the scheduler as this, bit/s.
pub const TOLD_LEAST_BPS: u64 = 1000;

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
pub fn is_news(bps: u64, told_bps: u64) -> bool {
    bps.abs_diff(told_bps) > told_bps / 100
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
    said_until_ns: Option<u64>,
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
            said_until_ns: capacity
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
        let whole_bytes = u128::from(self.known_bps(now_ns)) * u128::from(WHOLE_NS) / 8_000_000_000;
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
    fn doubt(&mut self, now_ns: u64) {
        if self
            .said_until_ns
            .is_some_and(|until_ns| until_ns <= now_ns)
        {
            self.said_until_ns = None;
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
            self.tell(now_ns);
        }
    }

    /// What the interface below takes as far as it is known, bit/s; none where nobody measures.
    pub fn below_bps(&mut self, now_ns: u64) -> Option<u64> {
        self.doubt(now_ns);
        self.below.map(|(bps, _)| bps)
    }

    /// The capacity as far as it is known, bit/s: that of the link, and that of the interface below.
    pub fn known_bps(&mut self, now_ns: u64) -> u64 {
        self.doubt(now_ns);
        let bps = self.pace.rate_bps(now_ns);
        self.below.map_or(bps, |(below_bps, _)| below_bps.min(bps))
    }

    /// What goes next. A packet that is sent occupies the link from now on. After [`MOST_DROPS`] drops without a packet it
    /// is time for other things: the answer is to ask again now.
    pub fn next(&mut self, now_ns: u64, ecn: impl Fn(&Packet) -> bool) -> Next {
        self.doubt(now_ns);
        if self.waiting_pkts == 0 || !self.open {
            return Next::Nothing;
        }
        let ready_ns = self.pace.ready_ns(now_ns);
        if now_ns < ready_ns {
            return Next::At(self.or_doubt_ns(ready_ns));
        }
        if self.follow {
            self.tell(now_ns);
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
    pub fn or_doubt_ns(&self, ns: u64) -> u64 {
        self.said_until_ns.map_or(ns, |until_ns| until_ns.min(ns))
    }

    /// What the channel to the peer carries now, bit/s; 0 while nothing can be sent.
    pub fn channel_bps(&mut self, now_ns: u64) -> u64 {
        self.doubt(now_ns);
        if self.open {
            self.pace.rate_bps(now_ns)
        } else {
            0
        }
    }

    /// When a packet towards the peer that begins at `from` is through: as the channel is now, or sooner where it becomes
    /// faster by itself.
    pub fn through(&mut self, now_ns: u64, from: Instant, bytes: u32) -> Instant {
        let rate_bps = self.channel_bps(now_ns).max(1);
        let end = from.plus(8e9 * f64::from(bytes) / rate_bps as f64);
        let sooner = self.pace.would_end(from, bytes);
        sooner
            .filter(|sooner| end.since(*sooner) >= 1.0)
            .unwrap_or(end)
    }

    /// When a link that is the peer's own is free, and a channel that carries nothing may carry something again by itself, ns.
    pub fn channel_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.doubt(now_ns);
        if !self.open {
            return None;
        }
        let ready_ns = self.pace.ready_ns(now_ns);
        Some(self.or_doubt_ns(ready_ns))
    }

    /// The queue whose head goes next, and whether that packet can carry a mark.
    pub fn head(&mut self, now_ns: u64, ecn: impl Fn(&Packet) -> bool) -> Option<(Queue, bool)> {
        if self.waiting_pkts == 0 {
            return None;
        }
        if self.follow {
            self.tell(now_ns);
        }
        let class = self.mux.next_class(now_ns)?;
        let head = self.mux.head(class)?;
        Some((self.mux.queues()[class], ecn(&head.packet)))
    }

    /// All that waits as one queue, as the policy across peers sees it.
    pub fn shown(&mut self, now_ns: u64) -> Queue {
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
        self.note(step)
    }

    /// Drops the packet whose turn it is: it has waited too long for the policy across peers.
    pub fn drop_head(&mut self, now_ns: u64) {
        let step = self
            .mux
            .next_class(now_ns)
            .and_then(|class| self.mux.drop_head(now_ns, class));
        if let Some(step) = step {
            self.note(step);
        }
    }

    fn note(&mut self, step: Step<Waiting>) -> Option<(Packet, bool)> {
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
    fn tell(&mut self, now_ns: u64) {
        let bps = self.known_bps(now_ns).max(TOLD_LEAST_BPS);
        if is_news(bps, self.mux.link_bps()) {
            self.say(now_ns, bps);
        }
    }

    /// The scheduler hears that the link carries so much, bit/s.
    fn say(&mut self, now_ns: u64, bps: u64) {
        self.mux.set_link(now_ns, bps);
        self.mux
            .set_rates(now_ns, std::iter::repeat_n(bps, self.mux.nclasses()));
    }

    /// The capacity is `bps` from now on, or as long as it is believed.
    pub fn set_capacity(&mut self, now_ns: u64, bps: u64) {
        self.pace.set_rate(now_ns, bps);
        self.said_until_ns = self.stale_ns.map(|ns| now_ns + ns);
        if self.follow {
            self.tell(now_ns);
        }
    }

    /// The link, which is free ([`Link::channel_ns`]), is occupied by something that did not wait.
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
        let told_bps = if self.begins_anew(old, new) {
            new.nominal_bps
        } else {
            self.mux.link_bps()
        };
        self.mux
            .accepts(told_bps, &scheduler.params, &scheduler.qparams)
    }

    /// Whether the capacity is what is configured again, once that is new.
    fn begins_anew(&self, old: &Capacity, new: &Capacity) -> bool {
        let another_says =
            old.command != new.command || old.feedback.is_some() != new.feedback.is_some();
        old.offered != new.offered
            || another_says
            // The floor would be believed for ever.
            || (self.doubted(old) && new.stale_ns.is_none())
    }

    /// Whether the floor is what is believed.
    fn doubted(&self, capacity: &Capacity) -> bool {
        capacity.stale_ns.is_some() && self.said_until_ns.is_none() && !self.measured
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
        let (begins_anew, doubted) = (self.begins_anew(old, new), self.doubted(old));
        if begins_anew {
            // What is reserved is judged by it.
            self.say(now_ns, new.nominal_bps);
        }
        self.mux
            .change(now_ns, &scheduler.params, &scheduler.qparams)?;
        for (at, class) in classes.iter().enumerate() {
            self.mux.set_limit(at, class.limit);
        }
        self.follow = new.follow;
        self.stale_ns = new.stale_ns;
        self.floor_bps = new.floor_bps;
        if begins_anew {
            let free_ns = self.pace.free_ns();
            self.pace = Pace::new(&new.offered, now_ns.max(free_ns.min(now_ns + 1_000_000)));
            let stale_ns = new.stale_ns.filter(|_| !self.measured);
            self.said_until_ns = stale_ns.map(|ns| now_ns + ns);
        } else if doubted && old.floor_bps != new.floor_bps {
            self.pace.set_rate(now_ns, new.floor_bps);
        } else if let (Some(until_ns), Some(old_ns)) = (self.said_until_ns, old.stale_ns) {
            let said_ns = until_ns.saturating_sub(old_ns);
            self.said_until_ns = new.stale_ns.map(|ns| said_ns + ns);
        } else if old.stale_ns.is_none() && !self.measured {
            self.said_until_ns = new.stale_ns.map(|ns| now_ns + ns);
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
mod tests {
    use super::*;
    use crate::setup::tests::{Links, GROUND};

    const MS: u64 = 1_000_000;

    fn config(link: &str) -> Links {
        Links::parse(&GROUND.replacen("rate = \"20Mbit\"", link, 1))
    }

    fn link(config: &Links) -> Link {
        Link::new(0, config.of_peer(0)).unwrap()
    }

    /// Serves until `until_ns`; returns the first byte of each packet sent.
    fn serve(link: &mut Link, mut now_ns: u64, until_ns: u64) -> Vec<u8> {
        let mut sent = Vec::new();
        while now_ns < until_ns {
            match link.next(now_ns, |_| false) {
                Next::Send(packet, _) => sent.push(packet[0]),
                Next::At(ns) => {
                    assert!(ns > now_ns, "time goes on");
                    now_ns = ns;
                }
                Next::Nothing => break,
            }
        }
        sent
    }

    #[test]
    fn packets_leave_at_the_capacity_and_in_the_policys_order() {
        let config = config("rate = \"8Mbit\"");
        let mut link = link(&config);
        for packet in 0..10 {
            link.arrive(0, 2, 1000, &[20 + packet]);
        }
        link.arrive(0, 0, 1000, &[1]);
        // 1000 bytes take 1 ms.
        assert_eq!(serve(&mut link, 0, 4 * MS), [1, 20, 21, 22]);
        link.arrive(4 * MS, 0, 1000, &[2]);
        assert_eq!(serve(&mut link, 4 * MS, 6 * MS), [2, 23]);
        assert_eq!(link.waiting_pkts(), 6);
    }

    #[test]
    fn rates_are_those_of_theory() {
        // Finzi et al. 2023, equations (7) and (8): voice 10 of 20 Mbit/s, 4 Mbit/s reserved; the rest gets what is left.
        let mut config = config("rate = \"20Mbit\"");
        let row = config.scheduler.info.qparams.len();
        let rate = config.scheduler.info.qparam("rate").unwrap();
        config.scheduler.qparams[row + rate] = 4_000_000;
        let mut link = link(&config);
        let mut sent_bytes = [0_u64; 3];
        let end_ns = 60_000 * MS;
        let mut now_ns = 0;
        let mut voice_ns = 0;
        while now_ns < end_ns {
            while voice_ns <= now_ns {
                link.arrive(now_ns, 0, 1500, &[0]);
                voice_ns += 1_200_000;
            }
            for class in [1, 2] {
                while link.mux().queues()[class].backlog_pkts < 5 {
                    link.arrive(now_ns, class, 1500, &[class as u8]);
                }
            }
            match link.next(now_ns, |_| false) {
                Next::Send(packet, _) => sent_bytes[usize::from(packet[0])] += 1500,
                Next::At(ns) => now_ns = ns.min(voice_ns),
                Next::Nothing => now_ns = voice_ns,
            }
        }
        let mbit = sent_bytes.map(|bytes| bytes as f64 * 8.0 / 60.0 / 1e6);
        for (mbit, expected) in mbit.into_iter().zip([10.0, 4.0, 6.0]) {
            assert!(
                (mbit / expected - 1.0).abs() < 0.005,
                "{mbit} for {expected}"
            );
        }
    }

    #[test]
    fn what_is_dropped_does_not_wait() {
        let config = config("rate = \"8Mbit\"");
        let mut link = link(&config);
        for _ in 0..250 {
            link.arrive(0, 0, 1000, &[0]);
        }
        assert_eq!(link.waiting_pkts(), 100, "the limit of class ef");
        assert_eq!(link.mux().counters(0).dropped_limit_pkts, 150);
    }

    #[test]
    fn one_call_drops_no_more_than_it_may_after_an_outage() {
        let (before, _) = GROUND.split_once("[scheduler]").unwrap();
        let (_, peers) = GROUND.split_once("[[peer]]").unwrap();
        let text = format!(
            "{before}[scheduler]\npolicy = \"codes\"\n[[class]]\nname = \"all\"\nlimit = \"60000p\"\ntimeout = \"100ms\"\n[[peer]]{peers}"
        );
        let config = Links::parse(&text);
        let mut link = link(&config);
        link.set_open(false);
        for _ in 0..60_000 {
            link.arrive(0, 0, 1000, &[0]);
        }
        let now_ns = 2000 * MS;
        link.arrive(now_ns, 0, 1000, &[1]);
        link.set_open(true);
        let mut waiting = link.waiting_pkts();
        let refused = link.mux().counters(0).dropped_limit_pkts as u32;
        assert_eq!((waiting, refused), (60_000, 0), "what expired made room");
        loop {
            let next = link.next(now_ns, |_| false);
            let dropped = waiting - link.waiting_pkts();
            waiting = link.waiting_pkts();
            // One may be the packet that leaves.
            assert!(dropped <= MOST_DROPS, "{dropped} in one call");
            match next {
                Next::At(ns) => {
                    assert_eq!((ns, dropped), (now_ns, MOST_DROPS), "ask again at once")
                }
                next => {
                    assert_eq!(next, Next::Send((&[1][..]).into(), false));
                    break;
                }
            }
        }
        assert_eq!(waiting, 0);
    }

    #[test]
    fn a_capacity_nobody_repeats_falls_to_its_floor() {
        let config = config("rate = \"8Mbit\"\nstale = \"100ms\"\nfloor = \"5.6Mbit\"");
        let mut link = link(&config);
        link.set_capacity(0, 16_000_000);
        assert_eq!(link.mux().link_bps(), 16_000_000);
        for _ in 0..100 {
            link.arrive(0, 0, 2000, &[0]);
        }
        assert_eq!(serve(&mut link, 0, 99 * MS).len(), 99);
        link.arrive(100 * MS, 0, 1000, &[0]);
        serve(&mut link, 100 * MS, 101 * MS);
        assert_eq!(link.capacity_bps(100 * MS), 5_600_000);
    }

    /// Reloads that say something else of the capacity.
    #[test]
    fn a_reload_leaves_no_time_behind_at_which_the_capacity_falls() {
        const STALE: &str = "rate = \"8Mbit\"\nstale = \"100ms\"\nfloor = \"2Mbit\"";
        const FEEDBACK: &str = "rate = \"8Mbit\"\nstale = \"3s\"\nfloor = \"2Mbit\"\nfeedback = { ceiling = \"20Mbit\" }";
        const PLAIN: &str = "rate = \"8Mbit\"";
        // What was, what is from 50 or 150 ms on, and the capacity 10 s after that where 5 Mbit/s were said at first.
        for (old, new, at_ms, mbit) in [
            (STALE, PLAIN, 50, 5),
            (STALE, PLAIN, 150, 8),
            (STALE, STALE, 50, 2),
            (PLAIN, STALE, 50, 2),
            (FEEDBACK, PLAIN, 50, 8),
            (FEEDBACK, PLAIN, 4000, 8),
            (PLAIN, PLAIN, 50, 5),
        ] {
            let (old_config, new_config) = (config(old), config(new));
            let mut link = link(&old_config);
            link.set_capacity(0, 5_000_000);
            let now_ns = at_ms * MS;
            link.channel_bps(now_ns);
            let peers = (&old_config.peers[0], &new_config.peers[0]);
            link.change(now_ns, &new_config.scheduler, &new_config.classes, peers)
                .unwrap();
            let bps = link.channel_bps(now_ns + 10_000 * MS);
            assert_eq!(bps, mbit * 1_000_000, "{old} to {new} at {at_ms} ms");
        }
        // Time that has passed since it was said counts.
        let (short, long) = (config(STALE), config(&STALE.replace("100ms", "1s")));
        let mut link = link(&short);
        link.set_capacity(0, 5_000_000);
        let peers = (&short.peers[0], &long.peers[0]);
        link.change(50 * MS, &long.scheduler, &long.classes, peers)
            .unwrap();
        assert_eq!(link.channel_bps(999 * MS), 5_000_000);
        assert_eq!(link.channel_bps(1000 * MS), 2_000_000);
    }

    /// Judged as if it had been started so.
    #[test]
    fn a_reload_in_a_fade_or_with_a_faster_link_is_not_refused() {
        let ground = |rate: &str, reserved: &str| {
            let text = GROUND.replacen("\"20Mbit\"", rate, 1);
            let text = text.replacen("\"5Mbit\"", reserved, 1);
            Links::parse(&text)
        };
        let slow = ground("\"8Mbit\"", "\"5Mbit\"");
        for (faded_bps, rate, reserved, refused) in [
            (1_000_000, "\"8Mbit\"", "\"6Mbit\"", false),
            (8_000_000, "\"20Mbit\"", "\"15Mbit\"", false),
            (1_000_000, "\"20Mbit\"", "\"15Mbit\"", false),
            // What is nominal is not what was told: a link that is as before carries no more for it.
            (
                8_000_000,
                "\"8Mbit\"\nnominal = \"20Mbit\"",
                "\"15Mbit\"",
                true,
            ),
        ] {
            let mut link = link(&slow);
            link.set_capacity(0, faded_bps);
            assert_eq!(link.mux().link_bps(), faded_bps);
            let new = ground(rate, reserved);
            let peers = (&slow.peers[0], &new.peers[0]);
            let accepts = link.accepts(&new.scheduler, peers);
            let changed = link.change(MS, &new.scheduler, &new.classes, peers);
            assert_eq!(accepts, changed);
            assert_eq!(accepts.is_err(), refused, "{rate}, {reserved}: {accepts:?}");
        }
    }

    #[test]
    fn what_did_not_wait_begins_when_the_link_is_free() {
        let config = config("rate = \"8Mbit\"");
        let mut link = link(&config);
        link.arrive(0, 0, 1000, &[1]);
        link.arrive(0, 0, 1000, &[2]);
        assert!(matches!(link.next(0, |_| false), Next::Send(..)));
        assert_eq!(link.channel_ns(0), Some(MS));
        link.occupy(MS, 500);
        assert_eq!(link.next(MS, |_| false), Next::At(MS + MS / 2));
        link.set_open(false);
        assert_eq!(link.channel_ns(2 * MS), None);
    }

    #[test]
    fn an_outage_begins_and_ends() {
        let config = config("rate = \"8Mbit\"");
        let mut link = link(&config);
        link.set_capacity(0, 0);
        link.arrive(0, 0, 1000, &[1]);
        link.arrive(0, 0, 1000, &[2]);
        assert!(serve(&mut link, 0, 60_000 * MS).is_empty());
        link.set_capacity(60_000 * MS, 8_000_000);
        assert_eq!(serve(&mut link, 60_000 * MS, 60_002 * MS), [1, 2]);
        // What comes 5 ms after the link fell idle begins then, not before.
        link.arrive(60_007 * MS, 0, 1000, &[3]);
        link.arrive(60_007 * MS, 0, 1000, &[4]);
        assert_eq!(serve(&mut link, 60_007 * MS, 60_008 * MS), [3]);
    }

    #[test]
    fn nothing_is_missed_while_nothing_can_be_sent() {
        let mut link = link(&config("rate = \"8Mbit\""));
        for number in 1..=3 {
            link.arrive(0, 0, 1000, &[number]);
        }
        assert_eq!(serve(&mut link, 0, 1), [1]);
        link.set_open(false);
        link.set_open(true);
        assert_eq!(serve(&mut link, 1000 * MS, 1000 * MS + 1), [2]);
        assert_eq!(link.channel_ns(1000 * MS), Some(1001 * MS));
        assert_eq!(serve(&mut link, 1001 * MS, 1001 * MS + 1), [3]);
        assert_eq!(link.channel_ns(1001 * MS), Some(1002 * MS));
        // Nor before something that did not wait.
        link.occupy(3000 * MS, 1000);
        assert_eq!(link.channel_ns(3000 * MS), Some(3001 * MS));
        link.arrive(3000 * MS, 0, 1000, &[4]);
        assert_eq!(serve(&mut link, 3001 * MS, 3001 * MS + 1), [4]);
        assert_eq!(link.channel_ns(3001 * MS), Some(3002 * MS));
    }

    #[test]
    fn a_change_keeps_queues_and_credit() {
        let config = config("rate = \"8Mbit\"");
        let mut link = link(&config);
        for packet in 0..50 {
            link.arrive(0, 1, 1000, &[packet]);
        }
        assert_eq!(serve(&mut link, 0, 20 * MS).len(), 20);
        let credit = |link: &mut Link| {
            let mut values = vec![0; config.scheduler.info.stats.len()];
            link.mux().observe(20 * MS, 1, &mut values);
            values
        };
        let before = credit(&mut link);
        let mut other = config.clone();
        let at = other.scheduler.info.qparams.len() + other.scheduler.info.qparam("burst").unwrap();
        other.scheduler.qparams[at] += 5;
        other.classes[1].limit.pkts = Some(31);
        let peers = (&config.peers[0], &other.peers[0]);
        link.change(20 * MS, &other.scheduler, &other.classes, peers)
            .unwrap();
        let level = config
            .scheduler
            .info
            .stats
            .iter()
            .position(|stat| stat.name == "credit")
            .unwrap();
        assert_eq!(credit(&mut link)[level], before[level]);
        assert_eq!(link.waiting_pkts(), 30);
        link.arrive(20 * MS, 1, 1000, &[50]);
        link.arrive(20 * MS, 1, 1000, &[51]);
        assert_eq!(link.waiting_pkts(), 31, "the new limit");
        assert_eq!(
            serve(&mut link, 20 * MS, 60 * MS),
            (20..51).collect::<Vec<u8>>()
        );
    }

    /// A super-packet of ten packets of 1000 bytes.
    fn whole() -> Packet {
        use crate::bytes::superpacket::tests::{payload, Flow};
        Flow::new(false, true, 1000).whole(0, 0, 0x10, &payload(9600), 960)
    }

    #[test]
    fn a_super_packet_goes_whole_while_it_is_short() {
        // 10000 bytes take 1 ms of 80 Mbit/s.
        for (rate, pkts) in [("80Mbit", 10), ("79Mbit", 1)] {
            let config = config(&format!("rate = \"{rate}\""));
            let mut link = link(&config);
            link.arrive_any(0, 2, whole(), |bytes| bytes as u32);
            assert_eq!(link.waiting_pkts(), 10);
            assert_eq!(link.mux().waiting_pkts(2), 10);
            assert_eq!(link.mux().queues()[2].backlog_bytes, 10_000);
            let Next::Send(first, _) = link.next(0, |_| false) else {
                panic!("it waits");
            };
            assert_eq!(first.pkts(), pkts, "{rate}");
            assert_eq!(link.waiting_pkts(), 10 - pkts as u32);
            // What was sent occupies the link as long as its packets would.
            assert_eq!(link.mux().counters(2).sent_pkts, pkts as u64);
            if pkts == 10 {
                link.arrive(0, 2, 1000, &[0]);
                assert_eq!(link.next(0, |_| false), Next::At(MS));
            }
        }
    }

    #[test]
    fn packets_of_a_super_packet_are_accounted_one_by_one() {
        let config = config("rate = \"1Gbit\"");
        let mut link = link(&config);
        // 60 bytes of headers below each.
        link.arrive_any(0, 2, whole(), |bytes| bytes as u32 + 60);
        assert_eq!(link.mux().queues()[2].backlog_bytes, 10_600);
        let counters = link.mux().counters(2);
        assert_eq!(
            (counters.arrived_pkts, counters.arrived_bytes),
            (10, 10_600)
        );
    }

    #[test]
    fn urgent_packets_wait_for_no_more_than_a_packet_of_a_slow_link() {
        let config = config("rate = \"8Mbit\"");
        let mut link = link(&config);
        link.arrive_any(0, 2, whole(), |bytes| bytes as u32);
        assert_eq!(serve(&mut link, 0, MS).len(), 1);
        link.arrive(MS / 2, 0, 1000, &[1]);
        assert_eq!(serve(&mut link, MS, 3 * MS)[0], 1);
    }

    #[test]
    fn a_super_packet_that_finds_too_little_room_is_cut() {
        // Class ef holds 100 packets.
        let config = config("rate = \"10Gbit\"");
        let mut link = link(&config);
        for _ in 0..11 {
            link.arrive_any(0, 0, whole(), |bytes| bytes as u32);
        }
        assert_eq!(link.mux().queues()[0].backlog_pkts, 10, "whole ones");
        assert_eq!(link.waiting_pkts(), 100);
        assert_eq!(link.mux().counters(0).dropped_limit_pkts, 10);
        for (at_ms, left) in [(10, 90), (20, 80)] {
            let now_ns = at_ms * MS;
            assert!(
                matches!(link.next(now_ns, |_| false), Next::Send(packet, _) if packet.pkts() == 10)
            );
            assert_eq!(link.waiting_pkts(), left);
        }
        for _ in 0..15 {
            link.arrive(30 * MS, 0, 1000, &[7]);
        }
        assert_eq!(link.waiting_pkts(), 95);
        link.arrive_any(30 * MS, 0, whole(), |bytes| bytes as u32);
        assert_eq!(link.waiting_pkts(), 100, "five of ten");
        assert_eq!(link.mux().counters(0).dropped_limit_pkts, 15);
    }

    #[test]
    fn nothing_goes_whole_in_an_outage() {
        let config = config("rate = \"10Gbit\"");
        let mut link = link(&config);
        link.set_capacity(0, 0);
        link.arrive_any(0, 2, whole(), |bytes| bytes as u32);
        assert_eq!(link.mux().queues()[2].backlog_pkts, 10);
    }
}
