// SPDX-License-Identifier: BSD-3-Clause
//! What is measured: counters and delays of classes and flows, written to tables per interval and at the end.
//!
//! Bytes are those of the packets, without the link's overhead, except in table `link`, which compares what the link
//! carried with what it offered. A packet counts as sent when the scheduler hands it over; that is also when its waiting
//! time ends.

pub(crate) mod beam;
mod delay;
mod rows;

use linkweir_core::{Distribution, DropReason, Stat};

use crate::experiment::{Experiment, Traffic};
use crate::satellite::harq::ATTEMPTS;
use crate::table::Sink;
use crate::tcp;

use delay::{quantile_s, Delays, Jitter};
use rows::{Kind, Rows};

/// Kind of the flows that TCP sends.
const TCP: &str = "tcp";

/// Everything measured during a run.
#[derive(Debug)]
pub(crate) struct Recorder {
    classes: Vec<Class>,
    flows: Vec<Flow>,
    /// Start of the present bin.
    bin_ns: u64,
    /// Start of the time covered by totals.
    total_ns: u64,
    series: Rows,
    link: Rows,
    flow_series: Rows,
    levels: Rows,
    /// Whether attempts at packets are counted: the link is from a satellite.
    attempts: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct ClassCounts {
    arrived_pkts: u64,
    arrived_bytes: u64,
    sent_pkts: u64,
    sent_bytes: u64,
    dropped_limit_pkts: u64,
    dropped_policy_pkts: u64,
    lost_link_pkts: u64,
    delay_ns: u128,
    /// Packets waiting, added up over time, packets times ns.
    backlog_ns: u128,
}

#[derive(Debug)]
struct Class {
    name: String,
    counts: ClassCounts,
    bin: ClassCounts,
    total: ClassCounts,
    bin_max_ns: u64,
    total_max_ns: u64,
    /// Packets dropped of those that arrived after the warm-up.
    total_dropped_pkts: u64,
    backlog_pkts: u64,
    backlog_bytes: u64,
    /// Time up to which `backlog_ns` is added up.
    backlog_at_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct FlowCounts {
    arrived_pkts: u64,
    delivered_pkts: u64,
    delivered_bytes: u64,
    dropped_limit_pkts: u64,
    dropped_policy_pkts: u64,
    lost_link_pkts: u64,
    /// Packets decoded after one attempt, two, ...
    decoded_pkts: [u64; ATTEMPTS],
    given_up_pkts: u64,
    coded_bits: u64,
    /// Decoded packets that the receiver's buffer dropped.
    dropped_late_pkts: u64,
    /// TCP: payload delivered in order.
    in_order_bytes: u64,
    sender: tcp::Counters,
    /// Congestion window, added up over time, segments times ns.
    cwnd_ns: f64,
    cwnd_known_ns: u64,
    /// Smoothed round-trip time, added up over the time it is known, ns times ns.
    srtt_ns: f64,
    srtt_known_ns: u64,
}

#[derive(Debug)]
struct Flow {
    name: String,
    class: usize,
    kind: &'static str,
    counts: FlowCounts,
    bin: FlowCounts,
    total: FlowCounts,
    delays: Delays,
    window: Option<(f64, Option<u64>)>,
    /// Time up to which `cwnd_ns` and `srtt_ns` are added up.
    window_at_ns: u64,
}

impl Recorder {
    pub(crate) fn new(experiment: &Experiment, stats: &[Stat]) -> Recorder {
        let classes = experiment
            .classes
            .iter()
            .map(|class| Class {
                name: class.name.clone(),
                counts: ClassCounts::default(),
                bin: ClassCounts::default(),
                total: ClassCounts::default(),
                bin_max_ns: 0,
                total_max_ns: 0,
                total_dropped_pkts: 0,
                backlog_pkts: 0,
                backlog_bytes: 0,
                backlog_at_ns: 0,
            })
            .collect();
        let flows = experiment
            .flows
            .iter()
            .map(|flow| {
                let kind = match &flow.traffic {
                    Traffic::Cbr { .. } => "cbr",
                    Traffic::Poisson { .. } => "poisson",
                    Traffic::OnOff { .. } => "onoff",
                    Traffic::Greedy { .. } => "greedy",
                    Traffic::Tcp(_) => TCP,
                };
                Flow {
                    name: flow.name.clone(),
                    class: flow.class,
                    kind,
                    counts: FlowCounts::default(),
                    bin: FlowCounts::default(),
                    total: FlowCounts::default(),
                    delays: Delays::new(),
                    window: None,
                    window_at_ns: 0,
                }
            })
            .collect();
        let stats: Vec<String> = stats
            .iter()
            .map(|s| format!("{}{}", s.name, s.unit.suffix()))
            .collect();
        let mut levels = vec![("t_s", Kind::Real), ("class", Kind::Name)];
        levels.extend(stats.iter().map(|name| (name.as_str(), Kind::Whole)));
        Recorder {
            classes,
            flows,
            bin_ns: 0,
            total_ns: experiment.warmup_ns,
            series: Rows::new(
                "series",
                &[
                    ("t_s", Kind::Real),
                    ("class", Kind::Name),
                    ("arrived_pkts", Kind::Count),
                    ("arrived_bytes", Kind::Count),
                    ("sent_pkts", Kind::Count),
                    ("sent_bytes", Kind::Count),
                    ("dropped_limit_pkts", Kind::Count),
                    ("dropped_policy_pkts", Kind::Count),
                    ("lost_link_pkts", Kind::Count),
                    ("sent_bps", Kind::Real),
                    ("delay_mean_s", Kind::Real),
                    ("delay_max_s", Kind::Real),
                    ("backlog_pkts", Kind::Count),
                    ("backlog_bytes", Kind::Count),
                ],
            ),
            link: Rows::new(
                "link",
                &[
                    ("t_s", Kind::Real),
                    ("capacity_bps", Kind::Real),
                    ("used_bps", Kind::Real),
                ],
            ),
            flow_series: Rows::new(
                "flow_series",
                &[
                    ("t_s", Kind::Real),
                    ("flow", Kind::Name),
                    ("class", Kind::Name),
                    ("delivered_pkts", Kind::Count),
                    ("delivered_bytes", Kind::Count),
                    ("goodput_bps", Kind::Real),
                    ("cwnd_pkts", Kind::Real),
                    ("srtt_s", Kind::Real),
                ],
            ),
            levels: Rows::new("levels", &levels),
            attempts: experiment.link.satellite.is_some(),
        }
    }

    // What happens to packets.

    #[inline]
    pub(crate) fn arrived(&mut self, now_ns: u64, flow: usize, bytes: u32) {
        let flow = &mut self.flows[flow];
        flow.counts.arrived_pkts += 1;
        let class = &mut self.classes[flow.class];
        class.pass(now_ns);
        class.counts.arrived_pkts += 1;
        class.counts.arrived_bytes += u64::from(bytes);
        class.backlog_pkts += 1;
        class.backlog_bytes += u64::from(bytes);
    }

    /// `in_totals`: the packet arrived after the warm-up.
    #[inline]
    pub(crate) fn dropped(
        &mut self,
        now_ns: u64,
        flow: usize,
        bytes: u32,
        in_totals: bool,
        reason: DropReason,
    ) {
        let flow = &mut self.flows[flow];
        let class = &mut self.classes[flow.class];
        class.leave(now_ns, bytes);
        class.total_dropped_pkts += u64::from(in_totals);
        match reason {
            DropReason::Limit => {
                flow.counts.dropped_limit_pkts += 1;
                class.counts.dropped_limit_pkts += 1;
            }
            DropReason::Policy => {
                flow.counts.dropped_policy_pkts += 1;
                class.counts.dropped_policy_pkts += 1;
            }
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self, now_ns: u64, class: usize, bytes: u32, sojourn_ns: u64) {
        let class = &mut self.classes[class];
        class.leave(now_ns, bytes);
        class.counts.sent_pkts += 1;
        class.counts.sent_bytes += u64::from(bytes);
        class.counts.delay_ns += u128::from(sojourn_ns);
        class.bin_max_ns = class.bin_max_ns.max(sojourn_ns);
        class.total_max_ns = class.total_max_ns.max(sojourn_ns);
    }

    #[inline]
    pub(crate) fn lost(&mut self, flow: usize) {
        let flow = &mut self.flows[flow];
        flow.counts.lost_link_pkts += 1;
        self.classes[flow.class].counts.lost_link_pkts += 1;
    }

    /// An attempt at a packet goes out, with so many coded bits.
    pub(crate) fn attempted(&mut self, flow: usize, coded_bits: u32) {
        self.flows[flow].counts.coded_bits += u64::from(coded_bits);
    }

    /// A packet was decoded after so many attempts.
    pub(crate) fn decoded(&mut self, flow: usize, attempts: u8) {
        self.flows[flow].counts.decoded_pkts[usize::from(attempts) - 1] += 1;
    }

    /// A packet was not decoded after the last attempt.
    pub(crate) fn given_up(&mut self, flow: usize) {
        self.flows[flow].counts.given_up_pkts += 1;
        self.lost(flow);
    }

    /// A packet was held for too long by the receiver that puts packets in order.
    pub(crate) fn dropped_late(&mut self, flow: usize) {
        self.flows[flow].counts.dropped_late_pkts += 1;
        self.lost(flow);
    }

    #[inline]
    pub(crate) fn delivered(&mut self, flow: usize, bytes: u32, delay_ns: u64) {
        let flow = &mut self.flows[flow];
        flow.counts.delivered_pkts += 1;
        flow.counts.delivered_bytes += u64::from(bytes);
        flow.delays.record(delay_ns);
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
        flow.pass(now_ns);
        flow.window = Some((cwnd_segments, srtt_ns));
    }

    /// What a TCP connection has done so far; asked for before [`Recorder::begin_totals`] and every end of a bin.
    pub(crate) fn connection(&mut self, flow: usize, sender: tcp::Counters, in_order_bytes: u64) {
        let flow = &mut self.flows[flow];
        flow.counts.sender = sender;
        flow.counts.in_order_bytes = in_order_bytes;
    }

    // What is written down.

    /// Totals count from now on.
    pub(crate) fn begin_totals(&mut self, now_ns: u64) {
        self.total_ns = now_ns;
        for class in &mut self.classes {
            class.pass(now_ns);
            class.total = class.counts;
            class.total_max_ns = 0;
        }
        for flow in &mut self.flows {
            flow.pass(now_ns);
            flow.total = flow.counts;
            flow.delays.reset();
        }
    }

    /// A policy's statistics of one class, now.
    pub(crate) fn level(&mut self, now_ns: u64, class: usize, values: &[i64]) {
        self.levels
            .real(Some(now_ns as f64 / 1e9))
            .name(&self.classes[class].name);
        for value in values {
            self.levels.whole(*value);
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
        let t_s = self.bin_ns as f64 / 1e9;
        let span_s = (now_ns - self.bin_ns) as f64 / 1e9;
        for class in &mut self.classes {
            let (now, then) = (&class.counts, &class.bin);
            let sent_pkts = now.sent_pkts - then.sent_pkts;
            let sent_bytes = now.sent_bytes - then.sent_bytes;
            self.series
                .real(Some(t_s))
                .name(&class.name)
                .count(now.arrived_pkts - then.arrived_pkts)
                .count(now.arrived_bytes - then.arrived_bytes)
                .count(sent_pkts)
                .count(sent_bytes)
                .count(now.dropped_limit_pkts - then.dropped_limit_pkts)
                .count(now.dropped_policy_pkts - then.dropped_policy_pkts)
                .count(now.lost_link_pkts - then.lost_link_pkts)
                .real(Some(sent_bytes as f64 * 8.0 / span_s))
                .real(
                    (sent_pkts > 0)
                        .then(|| (now.delay_ns - then.delay_ns) as f64 / sent_pkts as f64 / 1e9),
                )
                .real((sent_pkts > 0).then_some(class.bin_max_ns as f64 / 1e9))
                .count(class.backlog_pkts)
                .count(class.backlog_bytes);
            class.bin = class.counts;
            class.bin_max_ns = 0;
        }
        self.link
            .real(Some(t_s))
            .real(Some(offered / span_s))
            .real(Some(carried / span_s));
        for flow in &mut self.flows {
            let (now, then) = (&flow.counts, &flow.bin);
            let (cwnd, srtt_ns) = flow
                .window
                .map_or((None, None), |(cwnd, srtt)| (Some(cwnd), srtt));
            self.flow_series
                .real(Some(t_s))
                .name(&flow.name)
                .name(&self.classes[flow.class].name)
                .count(now.delivered_pkts - then.delivered_pkts)
                .count(now.delivered_bytes - then.delivered_bytes)
                .real(Some(flow.good_bytes(then) * 8.0 / span_s))
                .real(cwnd)
                .real(srtt_ns.map(|ns| ns as f64 / 1e9));
            flow.bin = flow.counts;
        }
        self.bin_ns = now_ns;
        for rows in [
            &mut self.series,
            &mut self.link,
            &mut self.flow_series,
            &mut self.levels,
        ] {
            rows.flush_full(sink)?;
        }
        Ok(())
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
        for rows in [
            &mut self.series,
            &mut self.link,
            &mut self.flow_series,
            &mut self.levels,
        ] {
            rows.flush(sink)?;
        }
        for flow in &mut self.flows {
            flow.delays.settle();
        }
        let span_s = now_ns.saturating_sub(self.total_ns) as f64 / 1e9;
        self.class_totals(now_ns, span_s, sojourn_ns).flush(sink)?;
        self.flow_totals(now_ns, span_s).flush(sink)?;
        if self.attempts {
            self.attempt_totals().flush(sink)?;
        }
        Ok(())
    }

    fn attempt_totals(&self) -> Rows {
        let mut rows = Rows::new(
            "harq",
            &[
                ("flow", Kind::Name),
                ("class", Kind::Name),
                ("decoded_first_pkts", Kind::Count),
                ("decoded_second_pkts", Kind::Count),
                ("decoded_third_pkts", Kind::Count),
                ("decoded_fourth_pkts", Kind::Count),
                ("given_up_pkts", Kind::Count),
                ("coded_bits", Kind::Count),
                ("dropped_late_pkts", Kind::Count),
            ],
        );
        for flow in &self.flows {
            let (now, then) = (&flow.counts, &flow.total);
            rows.name(&flow.name).name(&self.classes[flow.class].name);
            for (now, then) in now.decoded_pkts.iter().zip(then.decoded_pkts) {
                rows.count(now - then);
            }
            rows.count(now.given_up_pkts - then.given_up_pkts)
                .count(now.coded_bits - then.coded_bits)
                .count(now.dropped_late_pkts - then.dropped_late_pkts);
        }
        rows
    }

    fn class_totals<'h>(
        &mut self,
        now_ns: u64,
        span_s: f64,
        sojourn_ns: impl Fn(usize) -> &'h Distribution,
    ) -> Rows {
        let mut rows = Rows::new(
            "classes",
            &[
                ("class", Kind::Name),
                ("arrived_pkts", Kind::Count),
                ("arrived_bytes", Kind::Count),
                ("sent_pkts", Kind::Count),
                ("sent_bytes", Kind::Count),
                ("dropped_limit_pkts", Kind::Count),
                ("dropped_policy_pkts", Kind::Count),
                ("lost_link_pkts", Kind::Count),
                ("rate_bps", Kind::Real),
                ("loss", Kind::Real),
                ("delay_mean_s", Kind::Real),
                ("delay_p50_s", Kind::Real),
                ("delay_p95_s", Kind::Real),
                ("delay_p99_s", Kind::Real),
                ("delay_max_s", Kind::Real),
                ("jitter_mad_s", Kind::Real),
                ("jitter_p50_s", Kind::Real),
                ("jitter_p95_s", Kind::Real),
                ("jitter_p99_s", Kind::Real),
                ("backlog_mean_pkts", Kind::Real),
            ],
        );
        let mut jitters: Vec<Jitter> = self.classes.iter().map(|_| Jitter::new()).collect();
        for flow in &self.flows {
            jitters[flow.class].add(&flow.delays.jitter);
        }
        for (index, (class, jitter)) in self.classes.iter_mut().zip(jitters).enumerate() {
            class.pass(now_ns);
            let (now, then) = (&class.counts, &class.total);
            let arrived_pkts = now.arrived_pkts - then.arrived_pkts;
            let sent_pkts = now.sent_pkts - then.sent_pkts;
            let sent_bytes = now.sent_bytes - then.sent_bytes;
            let limit_pkts = now.dropped_limit_pkts - then.dropped_limit_pkts;
            let policy_pkts = now.dropped_policy_pkts - then.dropped_policy_pkts;
            let max_s = class.total_max_ns as f64 / 1e9;
            let sojourn_ns = sojourn_ns(index).whole();
            let quantile = |q| quantile_s(&sojourn_ns, q).map(|s| s.min(max_s));
            rows.name(&class.name)
                .count(arrived_pkts)
                .count(now.arrived_bytes - then.arrived_bytes)
                .count(sent_pkts)
                .count(sent_bytes)
                .count(limit_pkts)
                .count(policy_pkts)
                .count(now.lost_link_pkts - then.lost_link_pkts)
                .real(Some(sent_bytes as f64 * 8.0 / span_s))
                .real((span_s > 0.0).then(|| class.total_dropped_pkts as f64 / arrived_pkts as f64))
                .real(
                    (sent_pkts > 0)
                        .then(|| (now.delay_ns - then.delay_ns) as f64 / sent_pkts as f64 / 1e9),
                )
                .real(quantile(0.5))
                .real(quantile(0.95))
                .real(quantile(0.99))
                .real((sent_pkts > 0).then_some(max_s))
                .real(jitter.mean_s())
                .real(jitter.quantile_s(0.5))
                .real(jitter.quantile_s(0.95))
                .real(jitter.quantile_s(0.99))
                .real(Some(
                    (now.backlog_ns - then.backlog_ns) as f64 / 1e9 / span_s,
                ));
        }
        rows
    }

    fn flow_totals(&mut self, now_ns: u64, span_s: f64) -> Rows {
        let mut rows = Rows::new(
            "flows",
            &[
                ("flow", Kind::Name),
                ("class", Kind::Name),
                ("kind", Kind::Name),
                ("arrived_pkts", Kind::Count),
                ("delivered_pkts", Kind::Count),
                ("delivered_bytes", Kind::Count),
                ("rate_bps", Kind::Real),
                ("goodput_bps", Kind::Real),
                ("dropped_limit_pkts", Kind::Count),
                ("dropped_policy_pkts", Kind::Count),
                ("lost_link_pkts", Kind::Count),
                ("delay_mean_s", Kind::Real),
                ("delay_p50_s", Kind::Real),
                ("delay_p95_s", Kind::Real),
                ("delay_p99_s", Kind::Real),
                ("delay_max_s", Kind::Real),
                ("jitter_rfc3550_s", Kind::Real),
                ("jitter_mad_s", Kind::Real),
                ("jitter_p50_s", Kind::Real),
                ("jitter_p95_s", Kind::Real),
                ("jitter_p99_s", Kind::Real),
                ("transmitted_pkts", Kind::Real),
                ("retransmitted_pkts", Kind::Real),
                ("retransmitted_fast_pkts", Kind::Real),
                ("retransmitted_rto_pkts", Kind::Real),
                ("spurious_pkts", Kind::Real),
                ("timeouts", Kind::Real),
                ("cwnd_mean_pkts", Kind::Real),
                ("srtt_mean_s", Kind::Real),
            ],
        );
        for flow in &mut self.flows {
            flow.pass(now_ns);
            let (now, then) = (&flow.counts, &flow.total);
            let delivered_bytes = now.delivered_bytes - then.delivered_bytes;
            let tcp = |count: fn(&tcp::Counters) -> u64| {
                (flow.kind == TCP).then(|| (count(&now.sender) - count(&then.sender)) as f64)
            };
            let cwnd_known_ns = now.cwnd_known_ns - then.cwnd_known_ns;
            let srtt_known_ns = now.srtt_known_ns - then.srtt_known_ns;
            rows.name(&flow.name)
                .name(&self.classes[flow.class].name)
                .name(flow.kind)
                .count(now.arrived_pkts - then.arrived_pkts)
                .count(now.delivered_pkts - then.delivered_pkts)
                .count(delivered_bytes)
                .real(Some(delivered_bytes as f64 * 8.0 / span_s))
                .real(Some(flow.good_bytes(then) * 8.0 / span_s))
                .count(now.dropped_limit_pkts - then.dropped_limit_pkts)
                .count(now.dropped_policy_pkts - then.dropped_policy_pkts)
                .count(now.lost_link_pkts - then.lost_link_pkts)
                .real(flow.delays.mean_s())
                .real(flow.delays.quantile_s(0.5))
                .real(flow.delays.quantile_s(0.95))
                .real(flow.delays.quantile_s(0.99))
                .real(flow.delays.max_s())
                .real(flow.delays.jitter_rfc3550_s())
                .real(flow.delays.jitter.mean_s())
                .real(flow.delays.jitter.quantile_s(0.5))
                .real(flow.delays.jitter.quantile_s(0.95))
                .real(flow.delays.jitter.quantile_s(0.99))
                .real(tcp(|c| c.sent))
                .real(tcp(|c| c.retransmitted))
                .real(tcp(|c| c.retransmitted_fast))
                .real(tcp(|c| c.retransmitted_rto))
                .real(tcp(|c| c.spurious))
                .real(tcp(|c| c.timeouts))
                .real(
                    (cwnd_known_ns > 0)
                        .then(|| (now.cwnd_ns - then.cwnd_ns) / cwnd_known_ns as f64),
                )
                .real(
                    (srtt_known_ns > 0)
                        .then(|| (now.srtt_ns - then.srtt_ns) / srtt_known_ns as f64 / 1e9),
                );
        }
        rows
    }
}

impl Class {
    /// Adds the backlog up to now.
    #[inline]
    fn pass(&mut self, now_ns: u64) {
        self.counts.backlog_ns +=
            u128::from(now_ns - self.backlog_at_ns) * u128::from(self.backlog_pkts);
        self.backlog_at_ns = now_ns;
    }

    #[inline]
    fn leave(&mut self, now_ns: u64, bytes: u32) {
        self.pass(now_ns);
        self.backlog_pkts -= 1;
        self.backlog_bytes -= u64::from(bytes);
    }
}

impl Flow {
    /// Adds window and round-trip time up to now.
    #[inline]
    fn pass(&mut self, now_ns: u64) {
        if let Some((cwnd_segments, srtt_ns)) = self.window {
            let span_ns = now_ns - self.window_at_ns;
            self.counts.cwnd_ns += cwnd_segments * span_ns as f64;
            self.counts.cwnd_known_ns += span_ns;
            if let Some(srtt_ns) = srtt_ns {
                self.counts.srtt_ns += srtt_ns as f64 * span_ns as f64;
                self.counts.srtt_known_ns += span_ns;
            }
        }
        self.window_at_ns = now_ns;
    }

    /// Useful bytes delivered since `then`: TCP's payload in order, whole packets otherwise.
    fn good_bytes(&self, then: &FlowCounts) -> f64 {
        let bytes = match self.kind {
            TCP => self.counts.in_order_bytes - then.in_order_bytes,
            _ => self.counts.delivered_bytes - then.delivered_bytes,
        };
        bytes as f64
    }
}
