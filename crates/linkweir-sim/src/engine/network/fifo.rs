// SPDX-License-Identifier: BSD-3-Clause
//! A link with one queue in the order of arrival, a constant rate, no losses, and a delay above 0 that is constant or has steps.
//! When a packet will leave is known when it arrives, so there is one event per packet, its arrival, and the message to the next
//! link is sent at once. Departures are counted when the link is next looked at.
//!
//! The results are those of the engine (`engine/mod.rs`) with policy `fifo`, to the last bit. In a large network every event of
//! a link begins with cache misses, so what an arrival needs lies close together.

use std::collections::VecDeque;

use linkweir_config::signal::{Capacity, Instant, Signal, Track};
use linkweir_core::{policy, Distribution, Full, Stat};

use crate::experiment::Experiment;
use crate::metrics::{EntryTally, Recorded, Recorder, Tally};

use super::super::bottleneck::wire_bytes;
use super::super::medium::ImpairedLink;
use super::super::packet::Packet;
use super::super::station::{Arriving, Hop, Inbox, Mail, StationPlan, Target};
use super::super::varying::nanoseconds;
use super::earliest::NEVER;
use super::process::Process;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    arrived_ns: u64,
    /// When the device begins with it, and when it has left; the end of time if not before the end of the run.
    begins: Instant,
    ends_ns: u64,
    entry: u32,
    bytes: u32,
    wire_bytes: u32,
}

/// The packet on the device.
#[derive(Clone, Copy, Debug)]
struct Sending {
    began: Instant,
    ends_ns: u64,
    bits: f64,
}

/// What an arrival needs of it is in one line of a cache.
#[derive(Debug)]
#[repr(C, align(64))]
struct Entry {
    next: Target,
    tally: EntryTally,
}

#[derive(Debug)]
pub(super) struct FifoLink<'p> {
    inbox: Inbox,
    waiting: VecDeque<Waiting>,
    sending: Option<Sending>,
    /// When the last packet that came will have left; none if not before the end of the run.
    free: Option<Instant>,
    last_out_ns: u64,
    bps: f64,
    /// The delay of what leaves before `delay_until_ns`.
    delay_ns: u64,
    delay_until_ns: u64,
    end_ns: u64,
    overhead_bytes: i32,
    mpu_bytes: u32,
    /// What the queue may hold, in accounted bytes, and what it holds.
    limit_pkts: u64,
    limit_bytes: u64,
    waiting_bytes: u64,
    packets: u64,
    /// Bits that have left since the start.
    sent_bits: f64,
    tally: Tally,
    entries: Vec<Entry>,
    rest: Box<Rest<'p>>,
}

/// What few events need.
#[derive(Debug)]
struct Rest<'p> {
    experiment: &'p Experiment,
    place: u32,
    hops: Vec<Hop>,
    sent_notices: u64,
    recorder: Recorder,
    meter: Track,
    delay: Track,
    /// Up to when and what was measured.
    measured_ns: u64,
    measured_bits: f64,
    /// Time up to which tallies were taken over.
    settled_ns: u64,
    /// Waiting times of all entries, at the end.
    waits_ns: Distribution,
}

impl<'p> FifoLink<'p> {
    /// The link of an experiment, if it is as simple as that.
    pub(super) fn new(experiment: &'p Experiment, plan: &StationPlan) -> Option<FifoLink<'p>> {
        let link = &experiment.link;
        let (
            Capacity::Rate(Signal::Constant(bps)),
            Signal::Constant(_) | Signal::Steps { .. },
            Signal::Constant(loss),
        ) = (&link.capacity, &link.delay_s, &link.loss)
        else {
            return None;
        };
        let [class] = experiment.classes.as_slice() else {
            return None;
        };
        let limit = class.limit();
        let is_simple = experiment.scheduler.policy == "fifo"
            && experiment.scheduler.brought.is_none()
            && experiment.scheduler.across.is_none()
            && *loss == 0.0
            && !ImpairedLink::is_needed(link)
            && link.satellite.is_none()
            && link.beam.is_none()
            && link.bond.is_none()
            && link.ring == 1
            && nanoseconds(link.delay_s.least(experiment.duration_ns)) > 0
            && plan.ends.is_empty()
            && plan.absent.is_empty()
            && limit.time.is_none()
            && limit.max_age_ns.is_none()
            && limit.full == Full::Tail
            && class.flows.is_none();
        if !is_simple {
            return None;
        }
        let hops: Vec<Hop> = plan.entries.iter().filter_map(|entry| entry.hop).collect();
        let entries = hops.iter().map(|hop| Entry {
            next: hop.next,
            tally: EntryTally::default(),
        });
        Some(FifoLink {
            inbox: Inbox::new(),
            waiting: VecDeque::new(),
            sending: None,
            free: Some(Instant::at(0)),
            last_out_ns: 0,
            bps: *bps,
            delay_ns: 0,
            delay_until_ns: 0,
            end_ns: experiment.duration_ns,
            overhead_bytes: link.overhead_bytes,
            mpu_bytes: link.mpu_bytes,
            limit_pkts: limit.pkts.map_or(u64::MAX, u64::from),
            limit_bytes: limit.bytes.unwrap_or(u64::MAX),
            waiting_bytes: 0,
            packets: 0,
            sent_bits: 0.0,
            tally: Tally::default(),
            entries: entries.collect(),
            rest: Box::new(Rest {
                experiment,
                place: plan.place,
                hops,
                sent_notices: 0,
                recorder: Recorder::new(experiment, &[]).in_network(
                    0,
                    plan.told(),
                    &plan.sources(),
                ),
                meter: Track::new(&Signal::Constant(*bps)),
                delay: Track::new(&link.delay_s),
                measured_ns: 0,
                measured_bits: 0.0,
                settled_ns: 0,
                waits_ns: Distribution::default(),
            }),
        })
    }

    /// Counts what has left by now, the present nanosecond excluded: what arrives in it comes first.
    #[inline]
    fn depart(&mut self, now_ns: u64) {
        loop {
            if let Some(sending) = self.sending.filter(|sending| sending.ends_ns < now_ns) {
                self.sent_bits += sending.bits;
                self.sending = None;
            }
            let Some(next) = self.waiting.front().filter(|next| next.begins.ns < now_ns) else {
                return;
            };
            let next = *next;
            self.waiting.pop_front();
            if self.waiting.is_empty() {
                // The next packet comes into memory that was just in use.
                self.waiting.clear();
            }
            self.begin(&next);
        }
    }

    /// The device begins with a packet.
    #[inline]
    fn begin(&mut self, packet: &Waiting) {
        self.waiting_bytes -= u64::from(packet.wire_bytes);
        self.packets += 1;
        let wait_ns = packet.begins.ns - packet.arrived_ns;
        let entry = &mut self.entries[packet.entry as usize].tally;
        self.tally
            .sent(packet.begins.ns, packet.bytes, wait_ns, entry);
        self.sending = Some(Sending {
            began: packet.begins,
            ends_ns: packet.ends_ns,
            bits: 8.0 * f64::from(packet.wire_bytes),
        });
    }

    /// A packet arrives at the queue.
    #[inline]
    fn arrive(&mut self, now_ns: u64, mut packet: Packet, mail: &mut Mail) {
        self.depart(now_ns);
        let wire_bytes = packet
            .bytes
            .saturating_add_signed(self.overhead_bytes)
            .max(self.mpu_bytes);
        debug_assert_eq!(
            wire_bytes,
            self::wire_bytes(&self.rest.experiment.link, packet.bytes)
        );
        let entry = packet.flow;
        let Entry { next, tally } = &mut self.entries[entry as usize];
        self.tally.arrived(now_ns, packet.bytes, tally);
        let has_room = (self.waiting.len() as u64) < self.limit_pkts
            && self.waiting_bytes + u64::from(wire_bytes) <= self.limit_bytes;
        if !has_room {
            self.tally.dropped(packet.bytes, tally);
            return self.tell(now_ns, &packet, mail);
        }
        let next = *next;
        // At the end of the packet before it, if that is not over.
        let begins = match self.free {
            Some(free) if free.ns < now_ns => Some(Instant::at(now_ns)),
            free => free,
        };
        let bits = 8.0 * f64::from(wire_bytes);
        let before_end = |at: &Instant| at.ns < self.end_ns;
        let ends = begins
            .filter(|begins| before_end(begins) && self.bps > 0.0)
            .map(|begins| begins.plus(bits * 1e9 / self.bps))
            .filter(before_end);
        self.free = ends;
        let waiting = Waiting {
            arrived_ns: now_ns,
            begins: begins.unwrap_or(Instant::at(NEVER)),
            ends_ns: ends.map_or(NEVER, |ends| ends.ns),
            entry,
            bytes: packet.bytes,
            wire_bytes,
        };
        self.waiting_bytes += u64::from(wire_bytes);
        if self.sending.is_none() && self.waiting.is_empty() {
            self.begin(&waiting);
        } else {
            self.waiting.push_back(waiting);
        }
        let Some(ends) = ends else {
            return;
        };
        let out_ns = (ends.ns + self.delay_at_ns(ends.ns)).max(self.last_out_ns);
        self.last_out_ns = out_ns;
        packet.flow = next.entry;
        mail.messages.push(next.message(out_ns, packet));
    }

    /// The delay of a packet that leaves at a time, which is not before that of the packet before it, ns.
    #[inline]
    fn delay_at_ns(&mut self, out_ns: u64) -> u64 {
        if out_ns >= self.delay_until_ns {
            let delay = &mut self.rest.delay;
            self.delay_ns = nanoseconds(delay.value(out_ns));
            self.delay_until_ns = delay.next_change_ns(out_ns).unwrap_or(NEVER);
        }
        self.delay_ns
    }

    /// Tells the ends of a packet's flow that it was dropped, if they must know.
    #[cold]
    fn tell(&mut self, now_ns: u64, packet: &Packet, mail: &mut Mail) {
        let rest = &mut self.rest;
        let entry = packet.flow as usize;
        if rest.recorder.tells(entry) {
            let from = (rest.place, rest.sent_notices);
            let notice = rest.hops[entry].notice(now_ns, from, packet.seen());
            mail.notices.push(notice);
            rest.sent_notices += 1;
        }
    }
}

impl Process for FifoLink<'_> {
    #[inline]
    fn first_ns(&self) -> u64 {
        self.inbox.first_ns()
    }

    #[inline]
    fn run(&mut self, until_ns: u64, mail: &mut Mail) -> (u64, u64) {
        let mut events = 0;
        loop {
            let now_ns = self.inbox.first_ns();
            // Notices go to ends, and there are none here.
            if let Some(Arriving::Packet(packet)) = self.inbox.pop() {
                self.arrive(now_ns, packet, mail);
            }
            events += 1;
            let next_ns = self.inbox.first_ns();
            if next_ns >= until_ns {
                return (events, next_ns);
            }
        }
    }

    #[inline]
    fn inbox(&mut self) -> &mut Inbox {
        &mut self.inbox
    }

    fn settle(&mut self, now_ns: u64) {
        self.depart(now_ns);
        let rest = &mut self.rest;
        let in_totals = rest.settled_ns >= rest.experiment.warmup_ns;
        let entries = self.entries.iter_mut().map(|entry| &mut entry.tally);
        rest.recorder
            .take(&mut self.tally, entries, now_ns, in_totals);
        rest.settled_ns = now_ns;
    }

    fn recorder(&mut self) -> &mut Recorder {
        &mut self.rest.recorder
    }

    fn sent_bytes(&self) -> Vec<u64> {
        let taken = self.rest.recorder.sent_bytes();
        taken.map(|bytes| bytes + self.tally.sent_bytes()).collect()
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn measure(&mut self, now_ns: u64) -> (f64, f64) {
        let rest = &mut self.rest;
        let offered = rest.meter.sum(rest.measured_ns, now_ns);
        let mut bits = self.sent_bits;
        if let Some(sending) = &self.sending {
            bits += rest.meter.sum_from(sending.began, now_ns).min(sending.bits);
        }
        let carried = bits - rest.measured_bits;
        rest.measured_ns = now_ns;
        rest.measured_bits = bits;
        (offered, carried)
    }

    fn stats(&self) -> &'static [Stat] {
        policy("fifo").map_or(&[], |fifo| &fifo.stats)
    }

    fn begin_totals(&mut self) {
        let rest = &mut self.rest;
        rest.recorder.begin_totals(rest.settled_ns);
        for entry in &mut self.entries {
            entry.tally.begin_totals();
        }
    }

    fn totals(&mut self) -> (&mut Recorder, Vec<&Distribution>) {
        let rest = &mut self.rest;
        for entry in &mut self.entries {
            rest.waits_ns.add(entry.tally.waits_ns());
        }
        let entries = self.entries.iter_mut().map(|entry| &mut entry.tally);
        rest.recorder.take_waits(entries);
        (&mut rest.recorder, vec![&rest.waits_ns])
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Class, End, Flow, Link, Measures, Outages, Scheduler, Sizes, Traffic};
    use crate::network::{Network, OnBreak, Routed, Station, Way};
    use crate::random::Random;
    use crate::table::{Sink, Table};
    use crate::tcp;

    use super::super::run_with;
    use super::*;

    #[derive(Default)]
    struct Chunks(Vec<Table>);

    impl Sink for Chunks {
        fn chunk(&mut self, table: Table) -> Result<(), String> {
            self.0.push(table);
            Ok(())
        }
    }

    /// A delay that grows and shrinks, also by more than the time between two packets.
    fn changing(one_of: &mut impl FnMut(&[f64]) -> f64) -> Signal {
        let mut at_ns = 0;
        let points = (0..40).map(|_| {
            let point = (at_ns, one_of(&[1e-6, 1e-3, 1.001e-3, 0.02]));
            at_ns += one_of(&[1e5, 1e6, 5e7]) as u64;
            point
        });
        Signal::Steps {
            points: points.collect(),
            end: End::Hold,
        }
    }

    fn station(name: String, random: &mut Random) -> Station {
        let mut one_of = |choices: &[f64]| choices[(random.unit() * choices.len() as f64) as usize];
        let bps = one_of(&[1e5, 1e6, 3_333_333.0, 1e9, 0.0]);
        let limit = one_of(&[0.0, 1.0, 7.0, 100.0]);
        Station {
            name,
            link: Link {
                nominal_bps: bps as u64 + 1,
                delay_s: match one_of(&[0.0, 1.0, 2.0]) {
                    2.0 => changing(&mut one_of),
                    _ => Signal::Constant(one_of(&[0.0, 1e-3, 0.02])),
                },
                overhead_bytes: one_of(&[0.0, 38.0]) as i32,
                mpu_bytes: one_of(&[0.0, 84.0]) as u32,
                ..Link::of_rate(bps as u64)
            },
            scheduler: Scheduler::fifo(),
            classes: vec![Class {
                limit_pkts: (limit < 100.0).then_some(limit as u32),
                limit_bytes: (limit > 10.0).then_some(20_000),
                ..Class::named("all")
            }],
            absent: Outages::default(),
        }
    }

    fn network(seed: u64) -> Network {
        let mut random = Random::new(seed, 9);
        let count = 2 + (random.unit() * 5.0) as u32;
        let links = (0..count).map(|i| station(format!("l{i}"), &mut random));
        let links = links.collect();
        let flows = (0..5).map(|number| {
            let traffic = if random.unit() < 0.4 {
                Traffic::Tcp(tcp::Config::new(tcp::Algorithm::Cubic, tcp::Profile::Linux))
            } else {
                // Equal gaps: many packets meet in the same nanosecond.
                Traffic::Cbr {
                    rate_bps: Signal::Constant(8e5),
                    jitter: 0.0,
                    packet: Sizes::Fixed(1000),
                }
            };
            let hops = |from: u32| {
                let hops = (from..count).map(|link| crate::network::Hop { link, class: 0 });
                vec![Way {
                    from_ns: 0,
                    hops: hops.collect(),
                }]
            };
            Routed {
                flow: Flow {
                    name: format!("f{number}"),
                    class: 0,
                    start_ns: 0,
                    stop_ns: u64::MAX,
                    access_delay_ns: 0,
                    traffic,
                    measures: Measures::default(),
                },
                there: hops(0),
                back: hops(1),
            }
        });
        Network {
            name: "random".to_owned(),
            duration_ns: 2_000_000_000,
            warmup_ns: 300_000_000,
            interval_ns: 7_000_000,
            seed,
            flows: flows.collect(),
            links,
            on_break: OnBreak::Lose,
            log_rows: None,
        }
    }

    #[test]
    fn simple_links_give_what_engines_give() {
        let mut sent = 0;
        for seed in 0..60 {
            let network = network(seed);
            let run = |simple| {
                let mut sink = Chunks::default();
                let outcome = run_with((&network, simple), 1, &mut sink).unwrap();
                (sink.0, outcome.packets)
            };
            let (simple, engines) = (run(true), run(false));
            sent += simple.1;
            assert_eq!(simple.1, engines.1, "{network:#?}");
            for (one, other) in simple.0.iter().zip(&engines.0) {
                assert_eq!(one, other, "{network:#?}");
            }
            assert_eq!(simple.0.len(), engines.0.len());
        }
        assert!(sent > 10_000, "only {sent} packets");
    }
}
