// SPDX-License-Identifier: BSD-3-Clause
//! A bond: several links behind one scheduler, and a receiver that drops duplicates and restores the order.
//!
//! Each member has a transmitter, losses and a delay of its own. A transmitter that is free takes what `linkweir_core::Sender`
//! gives it, so the choice of paths is that of the gateway. What arrives goes through a `linkweir_core::Resequencer` of its
//! class to its receiver or to the next link.
//!
//! A member whose rate is 0 is known to be down at once, as a carrier that is lost, and so is its return; the packet on its
//! transmitter is lost, and what has left it arrives. A member that loses all packets is known to be dead after `detect_ns`,
//! as by probes, and to be alive again after the same time; until then packets are sent over it and lost.

use std::collections::BTreeMap;

use linkweir_config::signal::{Capacity, Signal, Track};
use linkweir_core::{self as core, Arrived, Departure, Path, Resequencer, Restoring, Sender, Why};

use crate::experiment::{Bond, Experiment, Member as Settings, Paths};
use crate::metrics::bond::BondRecorder;
use crate::random;
use crate::table::Sink;

use super::bottleneck::Bottleneck;
use super::device::Device;
use super::event;
use super::line::DelayLine;
use super::medium::{Fate, ImpairedLink, Medium};
use super::packet::Packet;
use super::reported::Reported;
use super::varying::{nanoseconds, Varying};

/// From one look at a member that changes smoothly to the next, ns.
const LOOK_NS: u64 = 10_000_000;
/// What the receiver of a class may hold, and how many numbers it remembers.
const MOST_HELD_PKTS: u32 = 65_536;
const MOST_HELD_BYTES: u64 = 1 << 26;
const WINDOW: u32 = 65_536;
/// What each member remembers to be sent again.
const MOST_REMEMBERED_BYTES: u64 = 1 << 26;
/// How long a packet of which nothing is on its way or remembered is looked for, ns.
const MISSED_NS: u64 = 1_000_000_000;

/// A packet on a member.
#[derive(Clone, Copy, Debug)]
struct Tagged {
    packet: Packet,
    class: u32,
    number: u32,
    member: u32,
}

#[derive(Debug)]
struct Member {
    device: Device,
    link: ImpairedLink,
    /// The capacity comes in opportunities.
    waits_for_turns: bool,
    rate: Varying,
    loss: Varying,
    delay: Varying,
    /// When to look at them next, if they have steps.
    steps: Vec<Track>,
    is_smooth: bool,
    reported: Option<(Reported, Capacity, u64)>,
    on_device: Option<Tagged>,
    /// When its transmitter took the last packet.
    begun_ns: u64,
    /// When the packet on the device will have left.
    ends_ns: Option<u64>,
    held: DelayLine<Tagged>,
    travelling: DelayLine<Tagged>,
    /// Since when it has lost all packets, or has lost them no longer; of a silence, when the first of these was begun.
    silent_ns: Option<u64>,
    silent_from_ns: u64,
    well_ns: Option<u64>,
    is_dead: bool,
    next_look_ns: u64,
}

/// The copies of a packet that may be sent more than once.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    packet: Packet,
    sent_ns: u64,
    on_the_way: u32,
}

/// The receiving end of a class.
#[derive(Debug)]
struct Receiver {
    order: Resequencer<Tagged>,
    /// When its timer is.
    due_ns: u64,
    /// Packets that may be sent more than once and have not arrived, by number; none in a class whose packets are sent once.
    tracked: Option<BTreeMap<u32, Tracked>>,
}

/// The members and the receivers of a bond.
#[derive(Debug)]
pub(super) struct BondLink {
    sender: Sender<Packet>,
    detect_ns: u64,
    members: Vec<Member>,
    receivers: Vec<Receiver>,
    recorder: BondRecorder,
    /// When idle members are asked again.
    retry_ns: u64,
    /// Bits that each member offered and carried in the bin that ended then.
    measured: (u64, Vec<(f64, f64)>),
    /// What a receiver hands out; empty between two events.
    out: Vec<Arrived<Tagged>>,
}

impl Member {
    fn new(settings: &Settings, seed: u64, horizon_ns: u64) -> Member {
        let link = &settings.link;
        let rate = match &link.capacity {
            Capacity::Rate(signal) => signal.clone(),
            Capacity::Opportunities { .. } => Signal::Constant(1.0),
        };
        let signals = [&rate, &link.loss, &link.delay_s];
        let is_smooth =
            |signal: &&Signal| matches!(signal, Signal::Cosine { .. } | Signal::Lines { .. });
        let has_steps = |signal: &&Signal| matches!(signal, Signal::Steps { .. });
        Member {
            device: Device::new(link, &[], Default::default(), horizon_ns),
            waits_for_turns: matches!(link.capacity, Capacity::Opportunities { .. }),
            steps: signals
                .into_iter()
                .filter(has_steps)
                .map(Track::new)
                .collect(),
            is_smooth: signals.iter().any(is_smooth),
            rate: Varying::new(&rate),
            loss: Varying::new(&link.loss),
            delay: Varying::new(&link.delay_s),
            link: ImpairedLink::new(link, random::of_name(seed, &settings.name)),
            reported: link
                .follow
                .then(|| (Reported::new(&link.capacity), link.capacity.clone(), 0)),
            on_device: None,
            begun_ns: 0,
            ends_ns: None,
            held: DelayLine::new(),
            travelling: DelayLine::new(),
            silent_ns: None,
            silent_from_ns: 0,
            well_ns: None,
            is_dead: false,
            next_look_ns: 0,
        }
    }

    /// The path as it is known now; `before` is what was known. Sets when to look again.
    fn look(&mut self, now_ns: u64, detect_ns: u64, before: Path) -> Path {
        let mut next_ns = if self.is_smooth {
            now_ns + LOOK_NS
        } else {
            u64::MAX
        };
        for step in &mut self.steps {
            next_ns = next_ns.min(step.next_change_ns(now_ns).unwrap_or(u64::MAX));
        }
        if self.loss.value(now_ns) >= 1.0 {
            self.well_ns = None;
            if self.silent_ns.is_none() {
                // What is on the transmitter now leaves it in the silence. A signal without steps was last seen a while ago.
                let unseen_ns = if self.is_smooth { LOOK_NS } else { 0 };
                self.silent_from_ns = match self.on_device {
                    Some(_) => self.begun_ns.min(now_ns - now_ns.min(unseen_ns)),
                    None => now_ns - now_ns.min(unseen_ns),
                };
            }
            let since_ns = *self.silent_ns.get_or_insert(now_ns);
            let found_ns = since_ns.saturating_add(detect_ns);
            self.is_dead |= now_ns >= found_ns;
            if !self.is_dead {
                next_ns = next_ns.min(found_ns);
            }
        } else {
            self.silent_ns = None;
            if self.is_dead {
                let since_ns = *self.well_ns.get_or_insert(now_ns);
                let found_ns = since_ns.saturating_add(detect_ns);
                self.is_dead = now_ns < found_ns;
                if self.is_dead {
                    next_ns = next_ns.min(found_ns);
                }
            }
        }
        let mut rate_bps = before.rate_bps;
        if let Some((reported, capacity, due_ns)) = &mut self.reported {
            if *due_ns <= now_ns {
                let (found_bps, again_ns) =
                    reported.next(now_ns, capacity, self.device.offered_bits());
                rate_bps = found_bps.unwrap_or(rate_bps);
                *due_ns = again_ns.unwrap_or(u64::MAX);
            }
            next_ns = next_ns.min(*due_ns);
        }
        self.next_look_ns = next_ns;
        Path {
            up: self.rate.value(now_ns) > 0.0 && !self.is_dead,
            rate_bps,
            delay_ns: nanoseconds(self.delay.value(now_ns)),
            ..before
        }
    }
}

impl BondLink {
    /// `seed` is that of the run.
    pub(super) fn new(bond: &Bond, experiment: &Experiment, seed: u64) -> BondLink {
        let paths: Vec<Path> = bond
            .members
            .iter()
            .map(|member| Path {
                cost: member.cost,
                up: true,
                rate_bps: member.link.nominal_bps,
                delay_ns: 0,
            })
            .collect();
        let uses: Vec<Paths> = bond.classes.iter().map(|class| class.paths).collect();
        let resend: Vec<bool> = bond.classes.iter().map(|class| class.resend).collect();
        let delays = bond.members.iter().map(|member| &member.link.delay_s);
        let longest_s = delays.map(longest_s).fold(0.0, f64::max);
        let memory_ns = bond.detect_ns.saturating_add(nanoseconds(2.0 * longest_s));
        let receiver = |class: &crate::experiment::Bonded| Receiver {
            order: Resequencer::new(Restoring {
                wait_ns: class.reorder_ns,
                most_pkts: MOST_HELD_PKTS,
                most_bytes: MOST_HELD_BYTES,
                window: WINDOW,
            }),
            due_ns: u64::MAX,
            tracked: (class.resend || class.paths == Paths::All).then(BTreeMap::new),
        };
        let names: Vec<String> = bond.members.iter().map(|m| m.name.clone()).collect();
        BondLink {
            sender: Sender::new(
                core::Bond::new(&paths, &uses, bond.room_ns),
                &resend,
                memory_ns,
                MOST_REMEMBERED_BYTES,
            ),
            detect_ns: bond.detect_ns,
            members: bond
                .members
                .iter()
                .map(|member| Member::new(member, seed, experiment.duration_ns))
                .collect(),
            receivers: bond.classes.iter().map(receiver).collect(),
            recorder: BondRecorder::new(experiment, &names),
            retry_ns: u64::MAX,
            measured: (0, vec![(0.0, 0.0); bond.members.len()]),
            out: Vec::new(),
        }
    }

    /// That of a bond in a network.
    pub(super) fn in_network(mut self, link: &str) -> BondLink {
        self.recorder = self.recorder.in_network(link);
        self
    }

    // The sending end.

    /// Looks at a member; returns when to look again.
    fn look(&mut self, at: &mut Bottleneck, index: usize) -> Option<u64> {
        let now_ns = at.now_ns;
        self.sender.forget(now_ns);
        let member = &mut self.members[index];
        let before = self.sender.bond.paths()[index];
        let path = member.look(now_ns, self.detect_ns, before);
        let again_ns = Some(member.next_look_ns).filter(|ns| *ns != u64::MAX);
        if path == before {
            return again_ns;
        }
        if before.up != path.up {
            self.recorder.set_up(now_ns, index, path.up);
        }
        if before.up && !path.up {
            // What was lost: the packet on the transmitter, and in a silence all that left it since it began, or was on its way
            // for all that is known.
            let since_ns = match (member.is_dead, member.on_device) {
                (true, _) => member
                    .silent_from_ns
                    .min(now_ns.saturating_sub(self.detect_ns + before.delay_ns)),
                (false, Some(_)) => member.begun_ns,
                (false, None) => now_ns,
            };
            self.sender.set_path(index, path, since_ns);
            self.abort(at, index);
        } else {
            self.sender.set_path(index, path, now_ns);
        }
        let link_bps = self.sender.bond.rate_bps();
        if link_bps > 0 && link_bps != at.mux.link_bps() {
            at.mux.set_link(now_ns, link_bps);
        }
        self.start_device(at);
        again_ns
    }

    /// The member's transmitter loses its packet.
    fn abort(&mut self, at: &mut Bottleneck, index: usize) {
        let member = &mut self.members[index];
        member.device.abort(at.now_ns);
        member.ends_ns = None;
        if let Some(tagged) = member.on_device.take() {
            self.lose(at, tagged);
        }
    }

    /// Gives a free member a packet; returns whether there was one.
    fn take(&mut self, at: &mut Bottleneck, index: usize) -> bool {
        let now_ns = at.now_ns;
        let carried = match self.sender.before(&mut at.mux, now_ns, index) {
            Some(carried) => Some(carried),
            None => {
                if let Some(departure) = self.dequeue(at, index) {
                    self.leaves(at, index, departure);
                    return true;
                }
                self.sender.after(now_ns, index)
            }
        };
        let Some(carried) = carried else {
            return false;
        };
        let counters = self.recorder.of(carried.class as u32, index as u32);
        counters.sent_pkts += 1;
        counters.sent_bytes += u64::from(carried.bytes);
        match carried.why {
            Why::Copy => counters.copied_pkts += 1,
            Why::Again => counters.resent_pkts += 1,
        }
        let tagged = Tagged {
            packet: carried.item,
            class: carried.class as u32,
            number: carried.number,
            member: index as u32,
        };
        let tracked = self.receivers[carried.class].tracked.as_mut();
        if let Some(entry) = tracked.and_then(|tracked| tracked.get_mut(&carried.number)) {
            entry.on_the_way += 1;
        }
        self.put(now_ns, index, carried.bytes, tagged);
        true
    }

    /// What the policy lets go over a member, as [`Bottleneck::dequeue`] asks it.
    fn dequeue(&mut self, at: &mut Bottleneck, index: usize) -> Option<Departure<Packet>> {
        if !self.sender.bond.paths()[index].up {
            return None;
        }
        let now_ns = at.now_ns;
        self.sender.allow(&mut at.mux, now_ns, index);
        let mut departure = at.take();
        if departure.is_none() && !at.lacking.is_empty() {
            at.refill();
            // Classes that were empty may have packets now.
            self.sender.allow(&mut at.mux, now_ns, index);
            departure = at.take();
        }
        if departure.is_none() {
            let own_ns = at.mux.retry_ns();
            let path_ns = self.sender.bond.retry_ns(index, at.mux.queues(), now_ns);
            let retry_ns = own_ns.into_iter().chain(path_ns).min();
            if let Some(retry_ns) = retry_ns.filter(|ns| *ns < self.retry_ns) {
                self.retry_ns = retry_ns.max(now_ns + 1);
                at.agenda.push(self.retry_ns, event::RETRY);
            }
        }
        departure
    }

    /// A packet leaves the queues over a member.
    fn leaves(&mut self, at: &mut Bottleneck, index: usize, departure: Departure<Packet>) {
        let now_ns = at.now_ns;
        let number = self.sender.left(now_ns, index, &departure);
        let Departure {
            class,
            item,
            bytes,
            sojourn_ns,
            ..
        } = departure;
        at.packets += 1;
        at.recorder.sent(now_ns, class, &item, sojourn_ns);
        if at.any_greedy {
            at.lacking.left(&mut at.flows, item.flow);
            if !at.lacking.is_empty() {
                at.refill();
            }
        }
        let counters = self.recorder.of(class as u32, index as u32);
        counters.sent_pkts += 1;
        counters.sent_bytes += u64::from(bytes);
        if let Some(tracked) = &mut self.receivers[class].tracked {
            let entry = Tracked {
                packet: item,
                sent_ns: now_ns,
                on_the_way: 1,
            };
            tracked.insert(number, entry);
            self.miss(at, class);
        }
        let tagged = Tagged {
            packet: item,
            class: class as u32,
            number,
            member: index as u32,
        };
        self.put(now_ns, index, bytes, tagged);
    }

    fn put(&mut self, now_ns: u64, index: usize, bytes: u32, tagged: Tagged) {
        let member = &mut self.members[index];
        member.begun_ns = now_ns;
        debug_assert!(member.on_device.is_none());
        member.device.ring.push_back((bytes, tagged.packet));
        member.on_device = Some(tagged);
    }

    /// All opportunities of a member at this instant.
    fn opportunity(&mut self, at: &mut Bottleneck, index: usize) -> Option<u64> {
        while self.members[index].device.opportunity_ns() == Some(at.now_ns) {
            let mut budget = self.members[index].device.take_opportunity(at.now_ns);
            while budget > 0 {
                if !self.members[index].device.is_busy() {
                    if !self.take(at, index) {
                        break;
                    }
                    self.members[index].device.begin(at.now_ns);
                }
                if self.members[index].device.spend(&mut budget) {
                    self.leave_device(at, index);
                }
            }
        }
        // Copies may wait for others.
        self.start_device(at);
        self.members[index].device.opportunity_ns()
    }

    /// The packet on a member's device has left.
    fn leave_device(&mut self, at: &mut Bottleneck, index: usize) {
        let now_ns = at.now_ns;
        let member = &mut self.members[index];
        member.device.end();
        let Some(tagged) = member.on_device.take() else {
            return;
        };
        let fate = member.link.fate(now_ns);
        let (delay_ns, held_ns) = member.link.delays_ns(now_ns);
        match fate {
            Fate::Lost => self.lose(at, tagged),
            Fate::Passes => self.travel(at, index, delay_ns, tagged),
            Fate::Held => {
                if let Some(first_ns) = member.held.push(now_ns + held_ns, tagged) {
                    at.agenda.push(first_ns, event::HELD_BACK | index as u32);
                }
            }
        }
    }

    fn travel(&mut self, at: &mut Bottleneck, index: usize, delay_ns: u64, tagged: Tagged) {
        let line = &mut self.members[index].travelling;
        if let Some(first_ns) = line.push(at.now_ns + delay_ns, tagged) {
            at.agenda.push(first_ns, event::DECODE | index as u32);
        }
    }

    /// A packet is lost on a member. It is lost in all if no copy of it is on its way or remembered.
    fn lose(&mut self, at: &mut Bottleneck, tagged: Tagged) {
        self.recorder.of(tagged.class, tagged.member).lost_pkts += 1;
        let Some(tracked) = &mut self.receivers[tagged.class as usize].tracked else {
            return at.recorder.lost(at.now_ns, &tagged.packet);
        };
        let Some(entry) = tracked.get_mut(&tagged.number) else {
            return;
        };
        entry.on_the_way -= 1;
        if entry.on_the_way == 0 && !self.sender.keeps(tagged.class as usize, tagged.number) {
            tracked.remove(&tagged.number);
            at.recorder.lost(at.now_ns, &tagged.packet);
        }
    }

    /// Counts packets as lost that have not arrived for long and of which nothing is left.
    fn miss(&mut self, at: &mut Bottleneck, class: usize) {
        let Some(tracked) = &mut self.receivers[class].tracked else {
            return;
        };
        while let Some((number, entry)) = tracked.first_key_value() {
            let is_over = entry.sent_ns.saturating_add(MISSED_NS) < at.now_ns
                && entry.on_the_way == 0
                && !self.sender.keeps(class, *number);
            if !is_over {
                return;
            }
            if let Some((_, entry)) = tracked.pop_first() {
                at.recorder.lost(at.now_ns, &entry.packet);
            }
        }
    }

    // The receiving end.

    /// A packet has come over a member.
    fn arrive(&mut self, at: &mut Bottleneck, tagged: Tagged) {
        let receiver = &mut self.receivers[tagged.class as usize];
        let out = &mut self.out;
        receiver.order.arrive(
            at.now_ns,
            tagged.number,
            tagged.packet.bytes,
            tagged,
            |arrived| out.push(arrived),
        );
        // Only the packet itself can be a duplicate or late; otherwise the receiver has it now, also while it holds it.
        let is_taken = |arrived: &Arrived<Tagged>| matches!(arrived, Arrived::Delivered(_));
        if let Some(tracked) = &mut receiver.tracked {
            if out.iter().all(is_taken) {
                tracked.remove(&tagged.number);
            } else if let Some(entry) = tracked.get_mut(&tagged.number) {
                entry.on_the_way -= 1;
            }
        }
        self.hand_out(at, tagged.class as usize);
    }

    /// Hands on what a receiver has handed out, and sets its timer.
    fn hand_out(&mut self, at: &mut Bottleneck, class: usize) {
        let receiver = &mut self.receivers[class];
        let mut forget = |number: u32| match &mut receiver.tracked {
            Some(tracked) => tracked.remove(&number).is_some(),
            None => true,
        };
        for arrived in self.out.drain(..) {
            match arrived {
                Arrived::Delivered(tagged) => at.send_on(at.now_ns, tagged.packet),
                Arrived::Duplicate(tagged) => {
                    self.recorder.of(tagged.class, tagged.member).duplicate_pkts += 1;
                }
                Arrived::Late(tagged) => {
                    self.recorder.of(tagged.class, tagged.member).late_pkts += 1;
                    if forget(tagged.number) {
                        at.recorder.dropped_late(at.now_ns, &tagged.packet);
                    }
                }
            }
        }
        if let Some(due_ns) = receiver.order.due_ns().filter(|ns| *ns < receiver.due_ns) {
            receiver.due_ns = due_ns;
            at.agenda.push(due_ns, event::ORDER | class as u32);
        }
    }

    /// A receiver's timer.
    fn expire(&mut self, at: &mut Bottleneck, class: usize) -> Option<u64> {
        let receiver = &mut self.receivers[class];
        if receiver.due_ns <= at.now_ns {
            receiver.due_ns = u64::MAX;
        }
        let out = &mut self.out;
        receiver
            .order
            .expire(at.now_ns, |arrived| out.push(arrived));
        self.hand_out(at, class);
        None
    }

    /// Bits that each member offered and carried since the last bin ended.
    fn measure_members(&mut self, now_ns: u64) -> &[(f64, f64)] {
        if self.measured.0 != now_ns {
            let members = self.members.iter_mut();
            let bits = members.map(|member| member.device.measure(now_ns));
            self.measured = (now_ns, bits.collect());
        }
        &self.measured.1
    }
}

/// The greatest value of a delay, s.
fn longest_s(signal: &Signal) -> f64 {
    match signal {
        Signal::Constant(value) => *value,
        Signal::Cosine {
            mean, amplitude, ..
        } => mean * (1.0 + amplitude),
        Signal::Steps { points, .. } | Signal::Lines { points } => {
            points.iter().map(|point| point.1).fold(0.0, f64::max)
        }
    }
}

impl Medium for BondLink {
    fn begin(&mut self, at: &mut Bottleneck) {
        for index in 0..self.members.len() {
            at.agenda.push(0, event::CSI | index as u32);
            if let Some(at_ns) = self.members[index].device.opportunity_ns() {
                at.agenda.push(at_ns, event::ANSWER | index as u32);
            }
        }
    }

    fn pull(&mut self, _at: &mut Bottleneck) {}

    fn leave(&mut self, _at: &mut Bottleneck, _packet: Packet) {}

    fn handle(&mut self, at: &mut Bottleneck, event: u32) -> Option<u64> {
        let index = (event & event::INDEX) as usize;
        match event & !event::INDEX {
            event::CSI => self.look(at, index),
            event::CHANNEL => {
                // If the packet was lost meanwhile, this is the end of nothing.
                if self.members[index].ends_ns == Some(at.now_ns) {
                    self.members[index].ends_ns = None;
                    self.leave_device(at, index);
                    self.start_device(at);
                }
                None
            }
            event::ANSWER => self.opportunity(at, index),
            event::HELD_BACK => {
                let tagged = self.members[index].held.pop()?;
                let (delay_ns, _) = self.members[index].link.delays_ns(at.now_ns);
                self.travel(at, index, delay_ns, tagged);
                self.members[index].held.next_ns()
            }
            event::DECODE => {
                let tagged = self.members[index].travelling.pop()?;
                self.arrive(at, tagged);
                self.members[index].travelling.next_ns()
            }
            event::ORDER => self.expire(at, index),
            _ => unreachable!("a bond has no event {event:#x}"),
        }
    }

    fn receiver_delay_ns(&mut self, _now_ns: u64) -> u64 {
        0
    }

    /// Lets idle members take packets, those of the least delay first.
    fn start_device(&mut self, at: &mut Bottleneck) {
        if self.retry_ns <= at.now_ns {
            self.retry_ns = u64::MAX;
        }
        // What one member takes may leave a copy for another, and a greedy flow's next packet.
        let mut found = true;
        while std::mem::take(&mut found) {
            for place in 0..self.members.len() {
                let index = self.sender.bond.by_delay()[place];
                let member = &self.members[index];
                if member.device.is_busy() || member.waits_for_turns || !self.take(at, index) {
                    continue;
                }
                found = true;
                let member = &mut self.members[index];
                member.ends_ns = member.device.begin(at.now_ns);
                if let Some(ends_ns) = member.ends_ns {
                    at.agenda.push(ends_ns, event::CHANNEL | index as u32);
                }
            }
        }
    }

    fn begin_totals(&mut self, at: &mut Bottleneck) {
        let orders = self
            .receivers
            .iter()
            .map(|receiver| receiver.order.counters());
        self.recorder.begin_totals(at.now_ns, orders);
    }

    fn measure(&mut self, at: &mut Bottleneck) -> (f64, f64) {
        let bits = self.measure_members(at.now_ns);
        bits.iter().fold((0.0, 0.0), |sum, member| {
            (sum.0 + member.0, sum.1 + member.1)
        })
    }

    fn end_bin(&mut self, at: &mut Bottleneck, sink: &mut dyn Sink) -> Result<(), String> {
        self.measure_members(at.now_ns);
        self.recorder.end_bin(at.now_ns, &self.measured.1, sink)
    }

    fn finish(&mut self, at: &mut Bottleneck, sink: &mut dyn Sink) -> Result<(), String> {
        let orders = self
            .receivers
            .iter()
            .map(|receiver| receiver.order.counters());
        self.recorder.finish(at.now_ns, orders, sink)
    }
}

/// Checks the assumptions of the engine.
pub(super) fn validate(bond: &Bond, experiment: &Experiment) -> Result<(), String> {
    let refuse = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
    refuse(
        (1..=core::MOST_PATHS).contains(&bond.members.len()),
        "a bond has 1 .. 8 links",
    )?;
    refuse(
        bond.classes.len() == experiment.classes.len(),
        "a bond needs the paths of every class",
    )?;
    let named = |class: &crate::experiment::Bonded| match class.paths {
        Paths::Named(named) => named != 0 && named < 1 << bond.members.len(),
        _ => true,
    };
    refuse(
        bond.classes.iter().all(named),
        "a class of a bond must name links of it",
    )?;
    let plain = |link: &crate::experiment::Link| {
        link.ring == 1 && link.satellite.is_none() && link.beam.is_none() && link.bond.is_none()
    };
    refuse(
        bond.members.iter().all(|member| plain(&member.link)),
        "the links of a bond must be plain ones with a ring of 1",
    )?;
    let policy = linkweir_core::policy(&experiment.scheduler.policy);
    refuse(
        policy.is_some_and(|info| info.bonds())
            && experiment.scheduler.brought.is_none()
            && experiment.scheduler.across.is_none(),
        "the policy of a bond must be one that bonds, without one across users",
    )
}
