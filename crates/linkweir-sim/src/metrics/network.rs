// SPDX-License-Identifier: BSD-3-Clause
//! What is measured in a run over several links: the tables of links have a column with the link's name, and table `hops`
//! shows each flow at each link of its ways.
//!
//! Each link has a [`Recorder`], in which every flow that crosses it is an entry. Flows that begin at the link have one more
//! entry, for what their two ends measure.

use linkweir_core::{Distribution, Stat};

use crate::table::Sink;

use super::class::{Class, ClassTotals, CLASSES};
use super::column::{packets, seconds, unitless, Column, TableOf};
use super::delay::{quantile_s, Jitter};
use super::delays::DelayTable;
use super::flow::{FlowCounts, FLOWS, HARQ};
use super::tables::{heading, Tables};
use super::transfers::Transfer;
use super::{Recorded, Recorder, Seen};

/// What the recorder of a link in a network keeps in place of tables.
#[derive(Debug)]
pub(crate) struct StationRecord {
    /// Waiting times of each entry.
    hops: Vec<Waits>,
    /// Whether the ends of an entry's flow must learn of each packet that is dropped or lost.
    told: Vec<bool>,
    /// Such packets, to be taken by the engine.
    pub(crate) gone: Vec<Seen>,
    pub(super) transfers: Vec<(u32, Transfer)>,
}

/// Waiting times of a flow at a link.
#[derive(Clone, Debug, Default)]
struct Waits {
    sent_pkts: u64,
    sum_ns: u128,
    max_ns: u64,
    distribution_ns: Distribution,
}

impl Waits {
    fn add(&mut self, other: &Waits) {
        self.sent_pkts += other.sent_pkts;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.distribution_ns.add(&other.distribution_ns);
    }
}

impl StationRecord {
    #[inline]
    pub(super) fn sent(&mut self, entry: usize, sojourn_ns: u64) {
        let waits = &mut self.hops[entry];
        waits.sent_pkts += 1;
        waits.sum_ns += u128::from(sojourn_ns);
        waits.max_ns = waits.max_ns.max(sojourn_ns);
        waits.distribution_ns.record(sojourn_ns);
    }

    /// A packet was dropped or lost.
    #[cold]
    pub(super) fn gone(&mut self, packet: &impl Recorded) {
        if self.told[packet.flow()] {
            self.gone.push(packet.seen());
        }
    }

    pub(super) fn begin_totals(&mut self) {
        for waits in &mut self.hops {
            waits.distribution_ns.reset();
            *waits = Waits {
                distribution_ns: std::mem::take(&mut waits.distribution_ns),
                ..Waits::default()
            };
        }
    }
}

impl Recorder {
    /// Makes this the recorder of a link in a network; `told` says of each entry whether its flow's ends must learn of packets
    /// that are dropped or lost.
    pub(crate) fn in_network(mut self, told: Vec<bool>) -> Recorder {
        self.tables = None;
        self.station = Some(Box::new(StationRecord {
            hops: vec![Waits::default(); told.len()],
            told,
            gone: Vec::new(),
            transfers: Vec::new(),
        }));
        self
    }

    /// The packets dropped or lost since this was last asked of which ends must learn.
    #[inline]
    pub(crate) fn gone(&mut self) -> &mut Vec<Seen> {
        let station = self.station.as_mut();
        &mut station.expect("it is a network's").gone
    }

    /// A packet of this entry had no way at the time it was created.
    #[cold]
    pub(crate) fn astray(&mut self, entry: usize) {
        self.flows[entry].counts.lost_link_pkts += 1;
    }
}

/// Where the entries of a flow are.
#[derive(Clone, Debug)]
pub(crate) struct FlowEntries {
    /// The link whose recorder has the entry of its ends, and that entry.
    pub(crate) home: (u32, u32),
    /// The link whose class the flow's one-way delays are counted in, and the class: the last of its first way.
    pub(crate) last: (u32, u32),
    /// Its entries at the links it crosses: those there in the order of hops, then those back.
    pub(crate) hops: Vec<HopEntry>,
}

/// One entry of a flow at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HopEntry {
    pub(crate) back: bool,
    /// Position in the way, from 0.
    pub(crate) hop: u32,
    pub(crate) link: u32,
    pub(crate) entry: u32,
}

/// A row of table `hops`.
#[derive(Debug)]
pub(super) struct Hop {
    flow: String,
    link: String,
    number: u64,
    back: bool,
    counts: FlowCounts,
    waits: Waits,
}

/// Columns of table `hops`.
pub(super) const HOPS: &[Column<Hop, ()>] = &[
    unitless("flow", "Name of the flow.").name(|h, ()| &h.flow),
    unitless("link", "Name of the link.").name(|h, ()| &h.link),
    unitless("hop", "Position of the link in the way, from 1.").count(|h, ()| h.number),
    unitless(
        "direction",
        "The way: there (from the source) or back (acknowledgements and requests).",
    )
    .name(|h, ()| if h.back { "back" } else { "there" }),
    packets("arrived_pkts", "Packets that arrived at the queue.")
        .count(|h, ()| h.counts.arrived_pkts),
    packets(
        "sent_pkts",
        "Packets that the scheduler handed to the link.",
    )
    .count(|h, ()| h.waits.sent_pkts),
    packets(
        "dropped_pkts",
        "Packets dropped from the queue or in front of it.",
    )
    .count(|h, ()| h.counts.dropped_pkts()),
    packets("lost_pkts", "Packets lost behind the scheduler.")
        .count(|h, ()| h.counts.lost_link_pkts),
    seconds(
        "delay_mean_s",
        "Mean time that packets waited in the queue.",
    )
    .real(|h, ()| {
        let waits = &h.waits;
        (waits.sent_pkts > 0).then(|| waits.sum_ns as f64 / waits.sent_pkts as f64 / 1e9)
    }),
    seconds("delay_p95_s", "Their 95th percentile.").real(|h, ()| {
        let found = quantile_s(&h.waits.distribution_ns.whole(), 0.95);
        found.map(|s| s.min(h.waits.max_ns as f64 / 1e9))
    }),
    seconds("delay_max_s", "The longest of them.")
        .real(|h, ()| (h.waits.sent_pkts > 0).then_some(h.waits.max_ns as f64 / 1e9)),
];

/// Writes the tables of a network.
#[derive(Debug)]
pub(crate) struct NetworkTables {
    tables: Tables,
    /// The statistics of all policies, each name once.
    stats: Vec<String>,
    classes: TableOf<Class, ClassTotals>,
    delays: DelayTable,
    warmup_ns: u64,
    duration_ns: u64,
}

impl NetworkTables {
    /// For policies with these statistics.
    pub(crate) fn new<'s>(
        stats: impl Iterator<Item = &'s [Stat]>,
        (warmup_ns, duration_ns): (u64, u64),
    ) -> NetworkTables {
        let mut names: Vec<String> = Vec::new();
        for stat in stats.flatten() {
            let name = heading(stat);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        NetworkTables {
            tables: Tables::of_links(&names),
            stats: names,
            classes: TableOf::of_links("classes", CLASSES),
            delays: DelayTable::of_links(),
            warmup_ns,
            duration_ns,
        }
    }

    /// A policy's statistics of one class, now.
    pub(crate) fn level(
        &mut self,
        (link, recorder): (&str, &Recorder),
        now_ns: u64,
        class: usize,
        (stats, values): (&[Stat], &[i64]),
    ) {
        let levels = &mut self.tables.levels;
        levels
            .name(link)
            .real(Some(now_ns as f64 / 1e9))
            .name(&recorder.classes[class].name);
        for name in &self.stats {
            let at = stats.iter().position(|stat| heading(stat) == *name);
            levels.real(at.map(|at| values[at] as f64));
        }
    }

    /// A bin of a link ends; the link offered and carried these bits in it. The rows of its flows come next.
    pub(crate) fn end_bin(
        &mut self,
        (link, recorder): (&str, &mut Recorder),
        now_ns: u64,
        (offered, carried): (f64, f64),
    ) {
        self.tables.series.set_link(link);
        self.tables.link.set_link(link);
        let bin = recorder.bin(now_ns);
        recorder.add_link_bin(&bin, offered, carried, &mut self.tables);
    }

    /// The same bin of a flow, in the recorder that has its ends.
    pub(crate) fn end_flow_bin(&mut self, recorder: &mut Recorder, entry: u32, now_ns: u64) {
        let bin = recorder.bin(now_ns);
        recorder.add_flow_bin(entry as usize, &bin, &mut self.tables);
    }

    /// Both are done for all links and flows.
    ///
    /// # Errors
    /// The sink's.
    pub(crate) fn bins_ended<'r>(
        &mut self,
        recorders: impl Iterator<Item = &'r mut Recorder>,
        now_ns: u64,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        for recorder in recorders {
            recorder.bin_ns = now_ns;
        }
        self.tables.flush_full(sink)
    }

    /// Takes the transfers that were completed since the last time, in the order in which they were.
    pub(crate) fn take_transfers(&mut self, recorders: &mut [&mut Recorder]) {
        let mut all = Vec::new();
        for (link, recorder) in recorders.iter_mut().enumerate() {
            if let Some(station) = &mut recorder.station {
                let done = station.transfers.drain(..);
                all.extend(done.map(|(entry, transfer)| (link, entry, transfer)));
            }
        }
        all.sort_by_key(|(_, _, transfer)| transfer.start_ns + transfer.took_ns);
        for (link, entry, transfer) in all {
            let flow = &recorders[link].flows[entry as usize];
            self.tables.transfers.add(flow, &transfer);
        }
    }

    /// Writes all totals. `links` are the links' names, recorders and waiting times of classes, in order.
    ///
    /// # Errors
    /// The sink's.
    pub(crate) fn finish(
        &mut self,
        links: &mut [(&str, &mut Recorder, Vec<&Distribution>)],
        flows: &[FlowEntries],
        now_ns: u64,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        debug_assert!(now_ns <= self.duration_ns);
        self.tables.flush_series(sink)?;
        self.tables.transfers.flush(sink)?;
        let span_s = now_ns.saturating_sub(self.warmup_ns) as f64 / 1e9;
        for flow in flows {
            let (home, entry) = flow.home;
            let flow = &mut links[home as usize].1.flows[entry as usize];
            flow.delays.settle();
            flow.advance(now_ns);
        }
        self.class_totals(links, flows, (now_ns, span_s), sink)?;
        hops(links, flows, sink)?;
        end_to_end(links, flows, span_s, sink)
    }

    /// Tables `classes` and `delays`.
    fn class_totals(
        &mut self,
        links: &mut [(&str, &mut Recorder, Vec<&Distribution>)],
        flows: &[FlowEntries],
        (now_ns, span_s): (u64, f64),
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let mut jitters: Vec<Vec<Jitter>> = Vec::with_capacity(links.len());
        let mut one_way_ns: Vec<Vec<Distribution>> = Vec::with_capacity(links.len());
        for (_, recorder, _) in links.iter() {
            jitters.push(vec![Jitter::new(); recorder.classes.len()]);
            one_way_ns.push(vec![Distribution::default(); recorder.classes.len()]);
        }
        for flow in flows {
            let (link, class) = (flow.last.0 as usize, flow.last.1 as usize);
            let delays = &links[flow.home.0 as usize].1.flows[flow.home.1 as usize].delays;
            jitters[link][class].add(&delays.jitter);
            one_way_ns[link][class].add(delays.distribution_ns());
        }
        for (place, jitters) in jitters.into_iter().enumerate() {
            let (name, recorder, sojourn_ns) = &mut links[place];
            self.classes.set_link(name);
            self.delays.set_link(name);
            let waits = |class: usize| sojourn_ns[class];
            recorder.add_class_totals(now_ns, span_s, jitters, waits, &mut self.classes);
            for (class, one_way_ns) in one_way_ns[place].iter().enumerate() {
                let name = &recorder.classes[class].name;
                self.delays
                    .add(name, "", "queueing", sojourn_ns[class], sink)?;
                self.delays.add(name, "", "one-way", one_way_ns, sink)?;
            }
            self.classes.flush_full(sink)?;
        }
        self.classes.flush(sink)?;
        self.delays.finish(sink)
    }
}

/// Table `hops`: entries of the same link at the same position of a flow's ways are one row.
fn hops(
    links: &mut [(&str, &mut Recorder, Vec<&Distribution>)],
    flows: &[FlowEntries],
    sink: &mut dyn Sink,
) -> Result<(), String> {
    let mut table = TableOf::new("hops", HOPS);
    for flow in flows {
        let name = links[flow.home.0 as usize].1.flows[flow.home.1 as usize]
            .name
            .clone();
        let same = |a: &HopEntry, b: &HopEntry| (a.back, a.hop, a.link) == (b.back, b.hop, b.link);
        for entries in flow.hops.chunk_by(same) {
            let (link, recorder, _) = &links[entries[0].link as usize];
            let mut row = Hop {
                flow: name.clone(),
                link: (*link).to_owned(),
                number: u64::from(entries[0].hop) + 1,
                back: entries[0].back,
                counts: FlowCounts::default(),
                waits: Waits::default(),
            };
            for entry in entries {
                let at = entry.entry as usize;
                let crossing = &recorder.flows[at];
                row.counts.add_hop(&crossing.counts, &crossing.total, true);
                if let Some(station) = &recorder.station {
                    row.waits.add(&station.hops[at]);
                }
            }
            table.add(&row, &());
        }
        table.flush_full(sink)?;
    }
    table.flush(sink)
}

/// Tables `flows`, `harq`, `completions` and `video`. A flow's drops and losses are those at all links there.
fn end_to_end(
    links: &mut [(&str, &mut Recorder, Vec<&Distribution>)],
    flows: &[FlowEntries],
    span_s: f64,
    sink: &mut dyn Sink,
) -> Result<(), String> {
    let mut table = TableOf::new("flows", FLOWS);
    let mut harq = TableOf::new("harq", HARQ);
    let attempts = links.iter().any(|(_, recorder, _)| recorder.attempts);
    let mut applications = super::Applications::new();
    for entries in flows {
        let mut all = FlowCounts::default();
        for hop in entries.hops.iter().filter(|hop| !hop.back) {
            let crossing = &links[hop.link as usize].1.flows[hop.entry as usize];
            all.add_hop(&crossing.counts, &crossing.total, hop.hop == 0);
        }
        let (home, entry) = entries.home;
        let flow = &mut links[home as usize].1.flows[entry as usize];
        let counts = &mut flow.counts;
        counts.add_hop(&all, &FlowCounts::default(), true);
        table.add(flow, &span_s);
        if attempts {
            harq.add(flow, &());
        }
        applications.add(flow);
        table.flush_full(sink)?;
    }
    table.flush(sink)?;
    harq.flush(sink)?;
    applications.flush(sink)
}

impl FlowCounts {
    fn dropped_pkts(&self) -> u64 {
        self.dropped_limit_pkts + self.dropped_policy_pkts + self.dropped_age_pkts
    }

    /// Adds what was counted at a hop since `then`; arrivals only where `first` says so.
    fn add_hop(&mut self, hop: &FlowCounts, then: &FlowCounts, first: bool) {
        if first {
            self.arrived_pkts += hop.arrived_pkts - then.arrived_pkts;
        }
        self.dropped_limit_pkts += hop.dropped_limit_pkts - then.dropped_limit_pkts;
        self.dropped_policy_pkts += hop.dropped_policy_pkts - then.dropped_policy_pkts;
        self.dropped_age_pkts += hop.dropped_age_pkts - then.dropped_age_pkts;
        self.lost_link_pkts += hop.lost_link_pkts - then.lost_link_pkts;
        for (pkts, (now, then)) in self
            .decoded_pkts
            .iter_mut()
            .zip(hop.decoded_pkts.iter().zip(&then.decoded_pkts))
        {
            *pkts += now - then;
        }
        self.given_up_pkts += hop.given_up_pkts - then.given_up_pkts;
        self.coded_bits += hop.coded_bits - then.coded_bits;
        self.dropped_late_pkts += hop.dropped_late_pkts - then.dropped_late_pkts;
    }
}
