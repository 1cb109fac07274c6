// SPDX-License-Identifier: BSD-3-Clause
//! What is measured: counters and delays of classes and flows, written to tables per interval and at the end.
//!
//! Bytes are those of the packets, without the link's overhead, except in table `link`, which compares what the link
//! carried with what it offered. A packet counts as sent, and its waiting time ends, when
//! the scheduler hands it to the device.

mod application;
pub(crate) mod beam;
pub(crate) mod bond;
mod class;
mod column;
pub(crate) mod columns;
mod delay;
mod delays;
mod flow;
mod link;
mod log;
pub(crate) mod network;
mod playout;
mod rows;
mod seen;
mod station;
mod tables;
mod tally;
mod transfers;
mod watch;

use linkweir_core::{Distribution, DropReason, Stat};

use crate::experiment::Experiment;
use crate::table::Sink;
use crate::tcp;

use application::{COMPLETIONS, VIDEO};
use class::{Bin, Class, ClassTotals, CLASSES};
use column::TableOf;
use delay::{quantile_s, Jitter};
use delays::DelayTable;
use flow::{Flow, FLOWS, HARQ};
use link::LinkBin;
use station::StationRecord;
use tables::Tables;
use watch::Watch;

pub(crate) use log::Noted;
pub(crate) use seen::{Recorded, Seen};
pub(crate) use tally::{EntryTally, Tally};
use transfers::{Completions, Transfer};

pub(crate) use transfers::Playback;

/// Everything measured during a run.
#[derive(Debug)]
pub(crate) struct Recorder {
    classes: Vec<Class>,
    flows: Vec<Flow>,
    /// Start of the present bin.
    bin_ns: u64,
    /// Start of the time covered by totals.
    total_ns: u64,
    warmup_ns: u64,
    /// The tables that grow during the run; none where the network has them.
    tables: Option<Box<Tables>>,
    /// Where the network has them: what it has not been given yet.
    station: Option<Box<StationRecord>>,
    /// Whether attempts at packets are counted: the link is from a satellite.
    attempts: bool,
    /// Measurements that only some runs ask for.
    watch: Option<Box<Watch>>,
}

impl Recorder {
    pub(crate) fn new(experiment: &Experiment, stats: &[Stat]) -> Recorder {
        let classes = &experiment.classes;
        let flows = experiment.flows.iter();
        Recorder {
            flows: flows
                .map(|flow| Flow::new(flow, &classes[flow.class].name))
                .collect(),
            classes: classes
                .iter()
                .map(|class| Class::new(&class.name))
                .collect(),
            bin_ns: 0,
            total_ns: experiment.warmup_ns,
            warmup_ns: experiment.warmup_ns,
            tables: Some(Box::new(Tables::new(stats))),
            station: None,
            attempts: experiment.link.satellite.is_some(),
            watch: Watch::new(experiment),
        }
    }

    /// Makes this the recorder of an engine that its caller drives: it keeps no tables, and notes every step of every packet.
    pub(crate) fn note_steps(&mut self, experiment: &Experiment) {
        self.tables = None;
        self.watch = Some(Watch::noting(experiment));
    }

    /// The steps noted since these were last taken out.
    pub(crate) fn noted(&mut self) -> &mut Vec<Noted> {
        self.watch.as_mut().expect("steps are noted").noted()
    }

    // What happens to packets.

    /// The number of a flow's next packet, which tells the packets of a source other than TCP apart where they are watched.
    #[inline]
    pub(crate) fn number(&mut self, flow: u32) -> u64 {
        match &mut self.watch {
            Some(watch) => watch.number(flow),
            None => 0,
        }
    }

    #[inline(always)] // it has callers for one link and for several, and is no longer inlined by itself
    pub(crate) fn arrived(&mut self, now_ns: u64, packet: &impl Recorded) {
        let bytes = packet.bytes();
        let flow = &mut self.flows[packet.flow()];
        flow.counts.arrived_pkts += 1;
        let class = &mut self.classes[flow.class];
        class.advance(now_ns);
        class.counts.arrived_pkts += 1;
        class.counts.arrived_bytes += u64::from(bytes);
        class.backlog_pkts += 1;
        class.backlog_bytes += u64::from(bytes);
        if let Some(watch) = &mut self.watch {
            watch.arrived(now_ns, &packet.seen());
        }
    }

    /// `in_totals`: the packet arrived after the warm-up.
    #[inline]
    pub(crate) fn dropped(
        &mut self,
        now_ns: u64,
        packet: &impl Recorded,
        in_totals: bool,
        reason: DropReason,
    ) {
        if let Some(watch) = &mut self.watch {
            let reason = match reason {
                DropReason::Limit | DropReason::Head => "limit",
                DropReason::Policy => "policy",
                DropReason::Age => "age",
            };
            watch.gone(now_ns, &packet.seen(), reason);
        }
        if let Some(station) = &mut self.station {
            station.gone(packet);
        }
        let flow = &mut self.flows[packet.flow()];
        let class = &mut self.classes[flow.class];
        class.leave(now_ns, packet.bytes());
        class.total_dropped_pkts += u64::from(in_totals);
        match reason {
            DropReason::Age => {
                flow.counts.dropped_age_pkts += 1;
                class.counts.dropped_age_pkts += 1;
            }
            DropReason::Limit | DropReason::Head => {
                flow.counts.dropped_limit_pkts += 1;
                class.counts.dropped_limit_pkts += 1;
            }
            DropReason::Policy => {
                flow.counts.dropped_policy_pkts += 1;
                class.counts.dropped_policy_pkts += 1;
            }
        }
    }

    #[inline(always)] // it has callers for one link and for several, and is no longer inlined by itself
    pub(crate) fn sent(
        &mut self,
        now_ns: u64,
        class: usize,
        packet: &impl Recorded,
        sojourn_ns: u64,
    ) {
        let class = &mut self.classes[class];
        class.leave(now_ns, packet.bytes());
        class.counts.sent_pkts += 1;
        class.counts.sent_bytes += u64::from(packet.bytes());
        class.counts.delay_ns += u128::from(sojourn_ns);
        class.bin_max_ns = class.bin_max_ns.max(sojourn_ns);
        class.total_max_ns = class.total_max_ns.max(sojourn_ns);
        if let Some(station) = &mut self.station {
            station.sent(packet.flow(), sojourn_ns);
        }
        if let Some(watch) = &mut self.watch {
            watch.sent(now_ns, &packet.seen(), sojourn_ns);
        }
    }

    /// The policy marked a packet that is sent now.
    pub(crate) fn marked(&mut self, class: usize) {
        self.classes[class].counts.marked_pkts += 1;
    }

    #[inline]
    pub(crate) fn lost(&mut self, now_ns: u64, packet: &impl Recorded) {
        self.lost_because(now_ns, packet, "link");
    }

    #[inline]
    fn lost_because(&mut self, now_ns: u64, packet: &impl Recorded, reason: &'static str) {
        if let Some(station) = &mut self.station {
            station.gone(packet);
        }
        let flow = &mut self.flows[packet.flow()];
        flow.counts.lost_link_pkts += 1;
        self.classes[flow.class].counts.lost_link_pkts += 1;
        if let Some(watch) = &mut self.watch {
            watch.gone(now_ns, &packet.seen(), reason);
        }
    }

    /// An attempt at a packet is sent, with this number of coded bits.
    pub(crate) fn attempted(&mut self, flow: usize, coded_bits: u32) {
        self.flows[flow].counts.coded_bits += u64::from(coded_bits);
    }

    /// A packet was decoded after this number of attempts.
    pub(crate) fn decoded(&mut self, flow: usize, attempts: u8) {
        self.flows[flow].counts.decoded_pkts[usize::from(attempts) - 1] += 1;
    }

    /// A packet was not decoded after the last attempt.
    pub(crate) fn given_up(&mut self, now_ns: u64, packet: &impl Recorded) {
        self.flows[packet.flow()].counts.given_up_pkts += 1;
        self.lost_because(now_ns, packet, "decoder");
    }

    /// A packet was held for too long by the receiver that puts packets in order.
    pub(crate) fn dropped_late(&mut self, now_ns: u64, packet: &impl Recorded) {
        self.flows[packet.flow()].counts.dropped_late_pkts += 1;
        self.lost_because(now_ns, packet, "order");
    }

    #[inline(always)] // it has a caller for each medium, and is no longer inlined by itself
    pub(crate) fn delivered(&mut self, now_ns: u64, packet: &impl Recorded) {
        let flow = &mut self.flows[packet.flow()];
        flow.counts.delivered_pkts += 1;
        flow.counts.delivered_bytes += u64::from(packet.bytes());
        flow.delays.record(now_ns - packet.created_ns());
        if let Some(watch) = &mut self.watch {
            watch.delivered(now_ns, &packet.seen());
        }
    }

    /// A TCP sender's window from now on.
    #[inline]
    pub(crate) fn window(
        &mut self,
        now_ns: u64,
        flow: usize,
        cwnd_segments: f64,
        srtt_ns: Option<u64>,
    ) {
        let flow = &mut self.flows[flow];
        flow.advance(now_ns);
        flow.window = Some((cwnd_segments, srtt_ns));
    }

    /// Counters of a TCP connection, to be updated before [`Recorder::begin_totals`] and [`Recorder::end_bin`].
    pub(crate) fn connection(&mut self, flow: usize, sender: tcp::Counters, in_order_bytes: u64) {
        let flow = &mut self.flows[flow];
        flow.counts.sender = sender;
        flow.counts.in_order_bytes = in_order_bytes;
    }

    // What happens to applications. Totals are of what began after the warm-up.

    /// A transfer of an application begins now.
    pub(crate) fn begun(&mut self, now_ns: u64, flow: usize) {
        if let Some(completions) = &mut self.flows[flow].completions {
            completions.begun += u64::from(now_ns >= self.warmup_ns);
        }
    }

    /// A transfer is refused now.
    pub(crate) fn refused(&mut self, now_ns: u64, flow: usize) {
        if let Some(completions) = &mut self.flows[flow].completions {
            completions.refused += u64::from(now_ns >= self.warmup_ns);
        }
    }

    /// A transfer that began at `start_ns` is complete.
    pub(crate) fn finished(&mut self, now_ns: u64, index: usize, start_ns: u64, bytes: u64) {
        let transfer = Transfer {
            start_ns,
            bytes,
            took_ns: now_ns - start_ns,
        };
        let flow = &mut self.flows[index];
        if let Some(completions) = &mut flow.completions {
            if start_ns >= self.warmup_ns {
                completions.add(&transfer);
            }
        }
        match (&mut self.tables, &mut self.station) {
            (Some(tables), _) => tables.transfers.add(flow, &transfer),
            (None, Some(station)) => station.transfers.push((index as u32, transfer)),
            (None, None) => {}
        }
    }

    /// What the viewer of a video saw in all.
    pub(crate) fn played(&mut self, flow: usize, playback: &Playback) {
        self.flows[flow].playback = Some(*playback);
    }

    /// Hands out rows of transfers, if there are many.
    pub(crate) fn flush_transfers(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.tables
            .as_mut()
            .map_or(Ok(()), |tables| tables.transfers.flush_full(sink))
    }

    // What is written down.

    /// Totals count from now on.
    pub(crate) fn begin_totals(&mut self, now_ns: u64) {
        self.total_ns = now_ns;
        for class in &mut self.classes {
            class.advance(now_ns);
            class.total = class.counts;
            class.total_max_ns = 0;
        }
        for flow in &mut self.flows {
            flow.advance(now_ns);
            flow.total = flow.counts;
            flow.delays.reset();
        }
        if let Some(station) = &mut self.station {
            station.begin_totals();
        }
        if let Some(watch) = &mut self.watch {
            watch.begin_totals();
        }
    }

    /// A policy's statistics of one class, now.
    pub(crate) fn level(&mut self, now_ns: u64, class: usize, values: &[i64]) {
        let Some(tables) = &mut self.tables else {
            return;
        };
        let levels = &mut tables.levels;
        levels
            .real(Some(now_ns as f64 / 1e9))
            .name(&self.classes[class].name);
        for value in values {
            levels.whole(*value);
        }
    }

    /// Ends the present bin; the link offered and carried these bits in it.
    pub(crate) fn end_bin(
        &mut self,
        now_ns: u64,
        offered: f64,
        carried: f64,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let bin = self.bin(now_ns);
        if let Some(mut tables) = self.tables.take() {
            self.add_link_bin(&bin, offered, carried, &mut tables);
            for flow in 0..self.flows.len() {
                self.add_flow_bin(flow, &bin, &mut tables);
            }
            tables.flush_full(sink)?;
            self.tables = Some(tables);
        }
        self.bin_ns = now_ns;
        self.flush_watch(sink)
    }

    /// The bin that ends now.
    fn bin(&self, now_ns: u64) -> Bin {
        Bin {
            t_s: self.bin_ns as f64 / 1e9,
            span_s: (now_ns - self.bin_ns) as f64 / 1e9,
        }
    }

    /// Adds the rows of the classes and of the link for the bin that ends now.
    fn add_link_bin(&mut self, bin: &Bin, offered: f64, carried: f64, tables: &mut Tables) {
        for class in &mut self.classes {
            tables.series.add(class, bin);
            class.bin = class.counts;
            class.bin_max_ns = 0;
        }
        tables.link.add(&LinkBin { offered, carried }, bin);
    }

    /// Adds the row of a flow for the bin that ends now.
    fn add_flow_bin(&mut self, flow: usize, bin: &Bin, tables: &mut Tables) {
        let flow = &mut self.flows[flow];
        tables.flow_series.add(flow, bin);
        flow.bin = flow.counts;
    }

    /// Hands out rows of packets, of which an interval may have many.
    pub(crate) fn flush_watch(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.watch
            .as_mut()
            .map_or(Ok(()), |watch| watch.flush_full(sink))
    }

    /// When the log of packets was cut, if it was.
    pub(crate) fn log_cut_ns(&self) -> Option<u64> {
        self.watch.as_ref().and_then(|watch| watch.log_cut_ns())
    }

    /// What each class has sent since the start.
    pub(crate) fn sent_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.classes.iter().map(|class| class.counts.sent_bytes)
    }

    /// Start of the present bin.
    pub(crate) fn bin_ns(&self) -> u64 {
        self.bin_ns
    }

    /// Writes the totals and hands out all rows that wait. `sojourn_ns` is the distribution of a class's waiting times.
    pub(crate) fn finish<'h>(
        &mut self,
        now_ns: u64,
        sojourn_ns: impl Fn(usize) -> &'h Distribution,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let mut tables = self.tables.take();
        if let Some(tables) = &mut tables {
            tables.flush_series(sink)?;
        }
        if let Some(watch) = &mut self.watch {
            watch.finish(now_ns, sink)?;
        }
        if let Some(tables) = &mut tables {
            tables.transfers.flush(sink)?;
        }
        for flow in &mut self.flows {
            flow.delays.settle();
        }
        let span_s = now_ns.saturating_sub(self.total_ns) as f64 / 1e9;
        self.class_totals(now_ns, span_s, &sojourn_ns, sink)?;
        let mut flows = TableOf::new("flows", FLOWS);
        let mut harq = TableOf::new("harq", HARQ);
        for flow in &mut self.flows {
            flow.advance(now_ns);
            flows.add(flow, &span_s);
            if self.attempts {
                harq.add(flow, &());
            }
        }
        flows.flush(sink)?;
        harq.flush(sink)?;
        self.applications(sink)?;
        self.delays(sojourn_ns, sink)
    }

    /// Totals of applications.
    fn applications(&self, sink: &mut dyn Sink) -> Result<(), String> {
        let mut applications = Applications::new();
        for flow in &self.flows {
            applications.add(flow);
        }
        applications.flush(sink)
    }

    /// Writes the distributions of delays: of every class, and of the flows that ask for it.
    fn delays<'h>(
        &self,
        sojourn_ns: impl Fn(usize) -> &'h Distribution,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        if !sink.wants(delays::NAME) {
            return Ok(());
        }
        let mut one_way_ns = vec![Distribution::default(); self.classes.len()];
        for flow in &self.flows {
            one_way_ns[flow.class].add(flow.delays.distribution_ns());
        }
        let mut table = DelayTable::new();
        for (index, class) in self.classes.iter().enumerate() {
            table.add(&class.name, "", "queueing", sojourn_ns(index), sink)?;
            table.add(&class.name, "", "one-way", &one_way_ns[index], sink)?;
        }
        if let Some(watch) = &self.watch {
            for (index, flow) in self.flows.iter().enumerate() {
                let Some(queueing_ns) = watch.queueing_ns(index) else {
                    continue;
                };
                let class = &self.classes[flow.class].name;
                table.add(class, &flow.name, "queueing", queueing_ns, sink)?;
                let one_way_ns = flow.delays.distribution_ns();
                table.add(class, &flow.name, "one-way", one_way_ns, sink)?;
            }
        }
        table.finish(sink)
    }

    fn class_totals<'h>(
        &mut self,
        now_ns: u64,
        span_s: f64,
        sojourn_ns: impl Fn(usize) -> &'h Distribution,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let mut jitters: Vec<Jitter> = self.classes.iter().map(|_| Jitter::new()).collect();
        for flow in &self.flows {
            jitters[flow.class].add(&flow.delays.jitter);
        }
        let mut classes = TableOf::new("classes", CLASSES);
        self.add_class_totals(now_ns, span_s, jitters, sojourn_ns, &mut classes);
        classes.flush(sink)
    }

    /// Adds the row of each class; `jitters` are those of its flows.
    fn add_class_totals<'h>(
        &mut self,
        now_ns: u64,
        span_s: f64,
        jitters: Vec<Jitter>,
        sojourn_ns: impl Fn(usize) -> &'h Distribution,
        classes: &mut TableOf<Class, ClassTotals>,
    ) {
        for (index, (class, jitter)) in self.classes.iter_mut().zip(jitters).enumerate() {
            class.advance(now_ns);
            let sojourn_ns = sojourn_ns(index).whole();
            // A histogram answers with the end of a range of values, which may lie above the greatest one.
            let max_s = class.total_max_ns as f64 / 1e9;
            let totals = ClassTotals {
                span_s,
                delays_s: [0.5, 0.95, 0.99]
                    .map(|q| quantile_s(&sojourn_ns, q).map(|s| s.min(max_s))),
                jitter,
            };
            classes.add(class, &totals);
        }
    }
}

/// The tables of applications' totals.
struct Applications {
    completions: TableOf<Flow, Completions>,
    video: TableOf<Flow, Playback>,
}

impl Applications {
    fn new() -> Applications {
        Applications {
            completions: TableOf::new("completions", COMPLETIONS),
            video: TableOf::new("video", VIDEO),
        }
    }

    fn add(&mut self, flow: &Flow) {
        if let Some(all) = &flow.completions {
            self.completions.add(flow, all);
        }
        if let Some(playback) = &flow.playback {
            self.video.add(flow, playback);
        }
    }

    fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.completions.flush(sink)?;
        self.video.flush(sink)
    }
}
