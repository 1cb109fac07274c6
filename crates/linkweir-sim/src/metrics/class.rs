// SPDX-License-Identifier: BSD-3-Clause
//! Counters of a class, and the columns of the tables `series` and `classes`.

use super::column::{bits_per_second, bytes, packets, seconds, unitless, Column};
use super::delay::Jitter;
use super::tally::Tally;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClassCounts {
    pub(super) arrived_pkts: u64,
    pub(super) arrived_bytes: u64,
    pub(super) sent_pkts: u64,
    pub(super) sent_bytes: u64,
    pub(super) dropped_limit_pkts: u64,
    pub(super) dropped_policy_pkts: u64,
    pub(super) dropped_age_pkts: u64,
    pub(super) lost_link_pkts: u64,
    pub(super) marked_pkts: u64,
    /// In a network: lost because the link was absent when they came or while they waited.
    pub(super) absent_pkts: u64,
    pub(super) delay_ns: u128,
    /// Packets waiting, added up over time, packets times ns.
    pub(super) backlog_ns: u128,
}

#[derive(Debug)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) counts: ClassCounts,
    /// Counts at the start of the bin, and of what totals cover.
    pub(super) bin: ClassCounts,
    pub(super) total: ClassCounts,
    pub(super) bin_max_ns: u64,
    pub(super) total_max_ns: u64,
    /// Packets dropped of those that arrived after the warm-up.
    pub(super) total_dropped_pkts: u64,
    pub(super) backlog_pkts: u64,
    pub(super) backlog_bytes: u64,
    /// Time up to which `backlog_ns` is added up.
    backlog_at_ns: u64,
}

/// A bin of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bin {
    pub(super) t_s: f64,
    pub(super) span_s: f64,
}

/// Facts that the totals of a class need besides its counters.
#[derive(Debug)]
pub(super) struct ClassTotals {
    pub(super) span_s: f64,
    /// Percentiles 50, 95 and 99 of the waiting times.
    pub(super) delays_s: [Option<f64>; 3],
    /// Of all its flows.
    pub(super) jitter: Jitter,
}

impl Class {
    pub(super) fn new(name: &str) -> Class {
        Class {
            name: name.to_owned(),
            counts: ClassCounts::default(),
            bin: ClassCounts::default(),
            total: ClassCounts::default(),
            bin_max_ns: 0,
            total_max_ns: 0,
            total_dropped_pkts: 0,
            backlog_pkts: 0,
            backlog_bytes: 0,
            backlog_at_ns: 0,
        }
    }

    /// Adds the backlog up to now.
    #[inline]
    pub(super) fn advance(&mut self, now_ns: u64) {
        self.counts.backlog_ns +=
            u128::from(now_ns - self.backlog_at_ns) * u128::from(self.backlog_pkts);
        self.backlog_at_ns = now_ns;
    }

    /// Takes over what was counted up to now; `in_totals`: after the warm-up.
    pub(super) fn take(&mut self, tally: &mut Tally, now_ns: u64, in_totals: bool) {
        tally.advance(now_ns);
        let counts = &mut self.counts;
        counts.arrived_pkts += std::mem::take(&mut tally.arrived_pkts);
        counts.arrived_bytes += std::mem::take(&mut tally.arrived_bytes);
        counts.sent_pkts += std::mem::take(&mut tally.sent_pkts);
        counts.sent_bytes += std::mem::take(&mut tally.sent_bytes);
        counts.delay_ns += std::mem::take(&mut tally.delay_ns);
        counts.backlog_ns += std::mem::take(&mut tally.backlog_ns);
        let dropped_pkts = std::mem::take(&mut tally.dropped_pkts);
        counts.dropped_limit_pkts += dropped_pkts;
        self.total_dropped_pkts += dropped_pkts * u64::from(in_totals);
        let max_ns = std::mem::take(&mut tally.max_ns);
        self.bin_max_ns = self.bin_max_ns.max(max_ns);
        self.total_max_ns = self.total_max_ns.max(max_ns);
        self.backlog_pkts = tally.backlog_pkts;
        self.backlog_bytes = tally.backlog_bytes;
        self.backlog_at_ns = now_ns;
    }

    #[inline]
    pub(super) fn leave(&mut self, now_ns: u64, bytes: u32) {
        self.advance(now_ns);
        self.backlog_pkts -= 1;
        self.backlog_bytes -= u64::from(bytes);
    }

    /// Mean waiting time of the packets sent since `then`, s.
    fn delay_mean_s(&self, then: &ClassCounts) -> Option<f64> {
        let sent_pkts = self.counts.sent_pkts - then.sent_pkts;
        let delay_ns = self.counts.delay_ns - then.delay_ns;
        (sent_pkts > 0).then(|| delay_ns as f64 / sent_pkts as f64 / 1e9)
    }

    /// The longest of them, s.
    fn delay_max_s(&self, then: &ClassCounts, max_ns: u64) -> Option<f64> {
        (self.counts.sent_pkts > then.sent_pkts).then_some(max_ns as f64 / 1e9)
    }

    fn sent_bps(&self, then: &ClassCounts, span_s: f64) -> f64 {
        (self.counts.sent_bytes - then.sent_bytes) as f64 * 8.0 / span_s
    }
}

/// Columns of table `series`.
pub(super) const SERIES: &[Column<Class, Bin>] = &[
    seconds("t_s", "Start of the bin.").real(|_, bin| Some(bin.t_s)),
    unitless("class", "Name of the class.").name(|c, _| &c.name),
    packets("arrived_pkts", "Packets that arrived at the queue.")
        .count(|c, _| c.counts.arrived_pkts - c.bin.arrived_pkts),
    bytes("arrived_bytes", "Their bytes.")
        .count(|c, _| c.counts.arrived_bytes - c.bin.arrived_bytes),
    packets(
        "sent_pkts",
        "Packets that the scheduler handed to the link.",
    )
    .count(|c, _| c.counts.sent_pkts - c.bin.sent_pkts),
    bytes("sent_bytes", "Their bytes.").count(|c, _| c.counts.sent_bytes - c.bin.sent_bytes),
    packets(
        "dropped_limit_pkts",
        "Packets dropped because a queue limit was reached.",
    )
    .count(|c, _| c.counts.dropped_limit_pkts - c.bin.dropped_limit_pkts),
    packets("dropped_policy_pkts", "Packets dropped by the policy.")
        .count(|c, _| c.counts.dropped_policy_pkts - c.bin.dropped_policy_pkts),
    packets(
        "dropped_age_pkts",
        "Packets dropped because they had waited longer than max_age.",
    )
    .count(|c, _| c.counts.dropped_age_pkts - c.bin.dropped_age_pkts),
    packets("lost_link_pkts", "Packets lost behind the scheduler.")
        .count(|c, _| c.counts.lost_link_pkts - c.bin.lost_link_pkts),
    bits_per_second("sent_bps", "Rate of the packets handed to the link.")
        .real(|c, bin| Some(c.sent_bps(&c.bin, bin.span_s))),
    seconds(
        "delay_mean_s",
        "Mean time that packets sent in the bin waited in the queue.",
    )
    .real(|c, _| c.delay_mean_s(&c.bin)),
    seconds("delay_max_s", "The longest of these times.")
        .real(|c, _| c.delay_max_s(&c.bin, c.bin_max_ns)),
    packets("backlog_pkts", "Packets waiting at the end of the bin.").count(|c, _| c.backlog_pkts),
    bytes("backlog_bytes", "Their bytes.").count(|c, _| c.backlog_bytes),
    packets("marked_pkts", "Packets sent that the policy marked (ECN).")
        .count(|c, _| c.counts.marked_pkts - c.bin.marked_pkts),
];

/// Columns of table `classes`.
pub(super) const CLASSES: &[Column<Class, ClassTotals>] = &[
    unitless("class", "Name of the class.").name(|c, _| &c.name),
    packets("arrived_pkts", "Packets that arrived at the queue.")
        .count(|c, _| c.counts.arrived_pkts - c.total.arrived_pkts),
    bytes("arrived_bytes", "Their bytes.")
        .count(|c, _| c.counts.arrived_bytes - c.total.arrived_bytes),
    packets(
        "sent_pkts",
        "Packets that the scheduler handed to the link.",
    )
    .count(|c, _| c.counts.sent_pkts - c.total.sent_pkts),
    bytes("sent_bytes", "Their bytes.").count(|c, _| c.counts.sent_bytes - c.total.sent_bytes),
    packets(
        "dropped_limit_pkts",
        "Packets dropped because a queue limit was reached.",
    )
    .count(|c, _| c.counts.dropped_limit_pkts - c.total.dropped_limit_pkts),
    packets("dropped_policy_pkts", "Packets dropped by the policy.")
        .count(|c, _| c.counts.dropped_policy_pkts - c.total.dropped_policy_pkts),
    packets(
        "dropped_age_pkts",
        "Packets dropped because they had waited longer than max_age.",
    )
    .count(|c, _| c.counts.dropped_age_pkts - c.total.dropped_age_pkts),
    packets("lost_link_pkts", "Packets lost behind the scheduler.")
        .count(|c, _| c.counts.lost_link_pkts - c.total.lost_link_pkts),
    bits_per_second("rate_bps", "Rate of the packets handed to the link.")
        .real(|c, totals| Some(c.sent_bps(&c.total, totals.span_s))),
    unitless(
        "loss",
        "Part of the packets that arrived which were dropped.",
    )
    .real(loss),
    seconds(
        "delay_mean_s",
        "Mean time that packets waited in the queue.",
    )
    .real(|c, _| c.delay_mean_s(&c.total)),
    seconds("delay_p50_s", "Median of these times.").real(|_, totals| totals.delays_s[0]),
    seconds("delay_p95_s", "Their 95th percentile.").real(|_, totals| totals.delays_s[1]),
    seconds("delay_p99_s", "Their 99th percentile.").real(|_, totals| totals.delays_s[2]),
    seconds("delay_max_s", "The longest of them.")
        .real(|c, _| c.delay_max_s(&c.total, c.total_max_ns)),
    seconds(
        "jitter_mad_s",
        "Mean difference between the one-way delays of successive packets of a flow.",
    )
    .real(|_, totals| totals.jitter.mean_s()),
    seconds("jitter_p50_s", "Median of these differences.")
        .real(|_, totals| totals.jitter.quantile_s(0.5)),
    seconds("jitter_p95_s", "Their 95th percentile.")
        .real(|_, totals| totals.jitter.quantile_s(0.95)),
    seconds("jitter_p99_s", "Their 99th percentile.")
        .real(|_, totals| totals.jitter.quantile_s(0.99)),
    packets(
        "backlog_mean_pkts",
        "Packets waiting, on average over time.",
    )
    .real(|c, totals| Some(backlog_mean_pkts(c, totals))),
    packets("marked_pkts", "Packets sent that the policy marked (ECN).")
        .count(|c, _| c.counts.marked_pkts - c.total.marked_pkts),
];

/// Further columns of table `series` in a run over several links.
pub(super) const SERIES_OF_LINKS: &[Column<Class, Bin>] = &[packets(
    "absent_pkts",
    "Packets lost because the link did not exist when they came or while they waited.",
)
.count(|c, _| c.counts.absent_pkts - c.bin.absent_pkts)];

/// Further columns of table `classes` in a run over several links.
pub(super) const CLASSES_OF_LINKS: &[Column<Class, ClassTotals>] = &[packets(
    "absent_pkts",
    "Packets lost because the link did not exist when they came or while they waited.",
)
.count(|c, _| c.counts.absent_pkts - c.total.absent_pkts)];

fn loss(class: &Class, totals: &ClassTotals) -> Option<f64> {
    let arrived_pkts = class.counts.arrived_pkts - class.total.arrived_pkts;
    (totals.span_s > 0.0).then(|| class.total_dropped_pkts as f64 / arrived_pkts as f64)
}

fn backlog_mean_pkts(class: &Class, totals: &ClassTotals) -> f64 {
    (class.counts.backlog_ns - class.total.backlog_ns) as f64 / 1e9 / totals.span_s
}
