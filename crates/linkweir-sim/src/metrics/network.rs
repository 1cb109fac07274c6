// SPDX-License-Identifier: BSD-3-Clause
//! What is measured in a run over several links: the tables of links have a column with the link's name, and table `hops`
//! shows each flow at each link of its ways.
//!
//! Each link has a [`Recorder`], in which every flow that crosses it is an entry. Flows that begin at the link have one more
//! entry, for what their two ends measure.

use linkweir_core::{Distribution, Stat};

use crate::table::Sink;

use super::class::{Class, ClassTotals, CLASSES, CLASSES_OF_LINKS};
use super::column::{packets, seconds, unitless, Column, TableOf};
use super::delay::{quantile_s, Jitter};
use super::delays::DelayTable;
use super::flow::{FlowCounts, FLOWS, FLOWS_OF_LINKS, HARQ};
use super::log::{Noted, PacketLog};
use super::seen::{Recorded, Seen};
use super::station::{StationRecord, Waits};
use super::tables::{heading, Tables};
use super::tally::{EntryTally, Tally};
use super::{Applications, Recorder};

impl Recorder {
    /// Makes this the recorder of a link in a network, whose first entries are those of flows' ends; `told` says of each entry
    /// whether its flow's ends must learn of packets that are dropped or lost, `has_source` whether its source is at the link.
    pub(crate) fn in_network(
        mut self,
        ends: usize,
        told: Vec<bool>,
        has_source: &[bool],
    ) -> Recorder {
        self.tables = None;
        if let Some(watch) = &mut self.watch {
            watch.leave_to_network(ends, has_source);
        }
        self.station = Some(Box::new(StationRecord::new(told)));
        self
    }

    /// Takes over what was counted of the only class and of each entry up to now; `in_totals`: after the warm-up.
    pub(crate) fn take<'t>(
        &mut self,
        tally: &mut Tally,
        entries: impl Iterator<Item = &'t mut EntryTally>,
        now_ns: u64,
        in_totals: bool,
    ) {
        self.classes[0].take(tally, now_ns, in_totals);
        let waits = self
            .station
            .iter_mut()
            .flat_map(|station| &mut station.hops);
        for ((flow, waits), entry) in self.flows.iter_mut().zip(waits).zip(entries) {
            flow.counts.arrived_pkts += std::mem::take(&mut entry.arrived_pkts);
            flow.counts.dropped_limit_pkts += std::mem::take(&mut entry.dropped_pkts);
            waits.sent_pkts += std::mem::take(&mut entry.sent_pkts);
            waits.sum_ns += std::mem::take(&mut entry.delay_ns);
            waits.max_ns = waits.max_ns.max(std::mem::take(&mut entry.max_ns));
        }
    }

    /// Takes over the waiting times of each entry, at the end.
    pub(crate) fn take_waits<'t>(&mut self, entries: impl Iterator<Item = &'t mut EntryTally>) {
        let waits = self
            .station
            .iter_mut()
            .flat_map(|station| &mut station.hops);
        for (waits, entry) in waits.zip(entries) {
            waits.distribution_ns = entry.take_waits_ns();
        }
    }

    /// Whether the ends of an entry's flow must learn of packets that are dropped.
    pub(crate) fn tells(&self, entry: usize) -> bool {
        let station = self.station.as_ref();
        station.is_some_and(|station| station.tells(entry))
    }

    /// The packets dropped or lost since this was last asked of which ends must learn.
    #[inline]
    pub(crate) fn gone(&mut self) -> &mut Vec<Seen> {
        let station = self.station.as_mut();
        &mut station.expect("it is a network's").gone
    }

    /// Whether single packets are looked at.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// A packet of a source enters its way.
    #[cold]
    pub(crate) fn entered(&mut self, now_ns: u64, packet: &impl Recorded) {
        if let Some(watch) = &mut self.watch {
            watch.entered(now_ns, &packet.seen());
        }
    }

    /// A packet of the flow with these ends was dropped or lost somewhere.
    #[cold]
    pub(crate) fn learned(&mut self, packet: &Seen) {
        if let Some(watch) = &mut self.watch {
            watch.learned(packet);
        }
    }

    /// A packet that waits is lost, as the link goes.
    #[cold]
    pub(crate) fn lost_waiting(&mut self, now_ns: u64, packet: &impl Recorded) {
        let class = self.flows[packet.flow()].class;
        self.classes[class].leave(now_ns, packet.bytes());
        if let Some(watch) = &mut self.watch {
            watch.gone(now_ns, &packet.seen(), "absent");
        }
        self.absent(packet);
    }

    /// A packet is lost that comes while the link does not exist.
    #[cold]
    pub(crate) fn lost_on_arrival(&mut self, now_ns: u64, packet: &impl Recorded) {
        self.arrived(now_ns, packet);
        self.lost_waiting(now_ns, packet);
    }

    fn absent(&mut self, packet: &impl Recorded) {
        if let Some(station) = &mut self.station {
            station.gone(packet);
        }
        let flow = &mut self.flows[packet.flow()];
        flow.counts.absent_pkts += 1;
        self.classes[flow.class].counts.absent_pkts += 1;
    }

    /// A packet of this entry has no way: it arrives at no queue, and is lost.
    #[cold]
    pub(crate) fn astray(&mut self, now_ns: u64, packet: &impl Recorded) {
        let counts = &mut self.flows[packet.flow()].counts;
        counts.arrived_pkts += 1;
        counts.lost_link_pkts += 1;
        if let Some(watch) = &mut self.watch {
            watch.gone(now_ns, &packet.seen(), "way");
        }
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

/// The log of packets of a network.
#[derive(Debug)]
struct NetworkLog {
    rows: PacketLog,
    /// Of each entry of each link: its flow, and whether it goes back. Those of a link begin at its place in `first`.
    entries: Vec<(usize, bool)>,
    first: Vec<usize>,
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
    unitless(
        "hop",
        "Position of the link in the way, from 1; the least if it changes.",
    )
    .count(|h, ()| h.number),
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
    packets(
        "absent_pkts",
        "Packets lost because the link did not exist when they came or while they waited.",
    )
    .count(|h, ()| h.counts.absent_pkts),
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
    log: Option<NetworkLog>,
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
            classes: TableOf::of_links("classes", CLASSES, CLASSES_OF_LINKS),
            delays: DelayTable::of_links(),
            log: None,
            warmup_ns,
            duration_ns,
        }
    }

    /// Keeps a log of so many rows. `entries` are the flow of each entry of each link and whether it goes back, and
    /// `applications` says which flows are such.
    pub(crate) fn with_log(
        mut self,
        rows: u64,
        recorders: &[&mut Recorder],
        entries: Vec<Vec<(usize, bool)>>,
        applications: impl Iterator<Item = bool>,
    ) -> NetworkTables {
        let mut names = Vec::new();
        let mut first = Vec::new();
        for recorder in recorders {
            first.push(names.len());
            let flows = recorder.flows.iter();
            names.extend(flows.map(|flow| (flow.name.clone(), flow.class_name.clone())));
        }
        self.log = Some(NetworkLog {
            rows: PacketLog::of_links(names, applications, rows),
            entries: entries.into_iter().flatten().collect(),
            first,
        });
        self
    }

    /// Writes what links have noted for the log, in the order of time, at equal times that of the links.
    ///
    /// # Errors
    /// The sink's.
    pub(crate) fn write_log(
        &mut self,
        links: &mut [(&str, &mut Recorder)],
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let more = log.rows.cut_ns().is_none();
        let mut all: Vec<(usize, Noted)> = Vec::new();
        for (place, (_, recorder)) in links.iter_mut().enumerate() {
            if let Some(watch) = &mut recorder.watch {
                let noted = watch.take_noted(more).into_iter();
                all.extend(noted.map(|noted| (place, noted)));
            }
        }
        all.sort_by_key(|(_, noted)| noted.at_ns);
        for (place, noted) in all {
            let name = log.first[place] + noted.packet.flow as usize;
            let (flow, back) = log.entries[name];
            // What happens at a flow's ends happens at no link.
            let at_ends = matches!(noted.event, "created" | "delivered");
            log.rows.set_link(if at_ends { "" } else { links[place].0 });
            let step = (noted.t_ns, noted.event, noted.reason);
            log.rows.write_as((name, flow, back), step, &noted.packet);
            log.rows.flush_full(sink)?;
        }
        Ok(())
    }

    /// When the first step was left out of the log, if any was.
    pub(crate) fn log_cut_ns(&self) -> Option<u64> {
        self.log.as_ref().and_then(|log| log.rows.cut_ns())
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
            recorder.flush_watch(sink)?;
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
        if let Some(log) = &mut self.log {
            log.rows.flush(sink)?;
        }
        self.tables.transfers.flush(sink)?;
        for (_, recorder, _) in links.iter_mut() {
            if let Some(watch) = &mut recorder.watch {
                watch.finish(now_ns, sink)?;
            }
        }
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
        for flow in flows {
            let (link, class) = (flow.last.0 as usize, flow.last.1 as usize);
            let (home, entry) = (flow.home.0 as usize, flow.home.1 as usize);
            let watch = links[home].1.watch.as_ref();
            if watch.is_none_or(|watch| watch.queueing_ns(entry).is_none()) {
                continue;
            }
            self.delays.set_link(links[link].0);
            let class = &links[link].1.classes[class].name;
            let flow = &links[home].1.flows[entry];
            let one_way_ns = flow.delays.distribution_ns();
            self.delays
                .add(class, &flow.name, "one-way", one_way_ns, sink)?;
        }
        self.delays.finish(sink)
    }
}

/// Table `hops`: a row for each link of a flow's ways in a direction, at the first of the positions that it has in them.
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
        let mut entries: Vec<&HopEntry> = flow.hops.iter().collect();
        entries.sort_unstable_by_key(|entry| (entry.back, entry.link, entry.hop, entry.entry));
        let same = |a: &&HopEntry, b: &&HopEntry| (a.back, a.link) == (b.back, b.link);
        let mut rows: Vec<&[&HopEntry]> = entries.chunk_by(same).collect();
        rows.sort_by_key(|row| (row[0].back, row[0].hop));
        for entries in rows {
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
    let mut table = TableOf::with("flows", FLOWS, FLOWS_OF_LINKS);
    let mut harq = TableOf::new("harq", HARQ);
    let attempts = links.iter().any(|(_, recorder, _)| recorder.attempts);
    let mut applications = Applications::new();
    for entries in flows {
        let mut all = FlowCounts::default();
        for hop in entries.hops.iter().filter(|hop| !hop.back) {
            let crossing = &links[hop.link as usize].1.flows[hop.entry as usize];
            all.add_hop(&crossing.counts, &crossing.total, hop.hop == 0);
        }
        let (home, entry) = entries.home;
        let flow = &mut links[home as usize].1.flows[entry as usize];
        flow.counts.add_hop(&all, &FlowCounts::default(), true);
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
        self.absent_pkts += hop.absent_pkts - then.absent_pkts;
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
