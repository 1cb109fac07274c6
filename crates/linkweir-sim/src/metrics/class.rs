// SPDX-License-Identifier: BSD-3-Clause
//! Counters of a class, and the columns of the tables `series` and `classes`.

use super::column::{Column, Unit, Value};
use super::delay::Jitter;

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
    Column {
        name: "t_s",
        unit: Unit::Seconds,
        help: "Start of the bin.",
        value: Value::Real(|_, bin| Some(bin.t_s)),
    },
    Column {
        name: "class",
        unit: Unit::None,
        help: "Name of the class.",
        value: Value::Name(|c, _| &c.name),
    },
    Column {
        name: "arrived_pkts",
        unit: Unit::Packets,
        help: "Packets that arrived at the queue.",
        value: Value::Count(|c, _| c.counts.arrived_pkts - c.bin.arrived_pkts),
    },
    Column {
        name: "arrived_bytes",
        unit: Unit::Bytes,
        help: "Their bytes.",
        value: Value::Count(|c, _| c.counts.arrived_bytes - c.bin.arrived_bytes),
    },
    Column {
        name: "sent_pkts",
        unit: Unit::Packets,
        help: "Packets that the scheduler handed to the link.",
        value: Value::Count(|c, _| c.counts.sent_pkts - c.bin.sent_pkts),
    },
    Column {
        name: "sent_bytes",
        unit: Unit::Bytes,
        help: "Their bytes.",
        value: Value::Count(|c, _| c.counts.sent_bytes - c.bin.sent_bytes),
    },
    Column {
        name: "dropped_limit_pkts",
        unit: Unit::Packets,
        help: "Packets dropped because a queue limit was reached.",
        value: Value::Count(|c, _| c.counts.dropped_limit_pkts - c.bin.dropped_limit_pkts),
    },
    Column {
        name: "dropped_policy_pkts",
        unit: Unit::Packets,
        help: "Packets dropped by the policy.",
        value: Value::Count(|c, _| c.counts.dropped_policy_pkts - c.bin.dropped_policy_pkts),
    },
    Column {
        name: "dropped_age_pkts",
        unit: Unit::Packets,
        help: "Packets dropped because they had waited longer than max_age.",
        value: Value::Count(|c, _| c.counts.dropped_age_pkts - c.bin.dropped_age_pkts),
    },
    Column {
        name: "lost_link_pkts",
        unit: Unit::Packets,
        help: "Packets lost behind the scheduler.",
        value: Value::Count(|c, _| c.counts.lost_link_pkts - c.bin.lost_link_pkts),
    },
    Column {
        name: "sent_bps",
        unit: Unit::BitsPerSecond,
        help: "Rate of the packets handed to the link.",
        value: Value::Real(|c, bin| Some(c.sent_bps(&c.bin, bin.span_s))),
    },
    Column {
        name: "delay_mean_s",
        unit: Unit::Seconds,
        help: "Mean time that packets sent in the bin waited in the queue.",
        value: Value::Real(|c, _| c.delay_mean_s(&c.bin)),
    },
    Column {
        name: "delay_max_s",
        unit: Unit::Seconds,
        help: "The longest of these times.",
        value: Value::Real(|c, _| c.delay_max_s(&c.bin, c.bin_max_ns)),
    },
    Column {
        name: "backlog_pkts",
        unit: Unit::Packets,
        help: "Packets waiting at the end of the bin.",
        value: Value::Count(|c, _| c.backlog_pkts),
    },
    Column {
        name: "backlog_bytes",
        unit: Unit::Bytes,
        help: "Their bytes.",
        value: Value::Count(|c, _| c.backlog_bytes),
    },
    Column {
        name: "marked_pkts",
        unit: Unit::Packets,
        help: "Packets sent that the policy marked (ECN).",
        value: Value::Count(|c, _| c.counts.marked_pkts - c.bin.marked_pkts),
    },
];

/// Columns of table `classes`.
pub(super) const CLASSES: &[Column<Class, ClassTotals>] = &[
    Column {
        name: "class",
        unit: Unit::None,
        help: "Name of the class.",
        value: Value::Name(|c, _| &c.name),
    },
    Column {
        name: "arrived_pkts",
        unit: Unit::Packets,
        help: "Packets that arrived at the queue.",
        value: Value::Count(|c, _| c.counts.arrived_pkts - c.total.arrived_pkts),
    },
    Column {
        name: "arrived_bytes",
        unit: Unit::Bytes,
        help: "Their bytes.",
        value: Value::Count(|c, _| c.counts.arrived_bytes - c.total.arrived_bytes),
    },
    Column {
        name: "sent_pkts",
        unit: Unit::Packets,
        help: "Packets that the scheduler handed to the link.",
        value: Value::Count(|c, _| c.counts.sent_pkts - c.total.sent_pkts),
    },
    Column {
        name: "sent_bytes",
        unit: Unit::Bytes,
        help: "Their bytes.",
        value: Value::Count(|c, _| c.counts.sent_bytes - c.total.sent_bytes),
    },
    Column {
        name: "dropped_limit_pkts",
        unit: Unit::Packets,
        help: "Packets dropped because a queue limit was reached.",
        value: Value::Count(|c, _| c.counts.dropped_limit_pkts - c.total.dropped_limit_pkts),
    },
    Column {
        name: "dropped_policy_pkts",
        unit: Unit::Packets,
        help: "Packets dropped by the policy.",
        value: Value::Count(|c, _| c.counts.dropped_policy_pkts - c.total.dropped_policy_pkts),
    },
    Column {
        name: "dropped_age_pkts",
        unit: Unit::Packets,
        help: "Packets dropped because they had waited longer than max_age.",
        value: Value::Count(|c, _| c.counts.dropped_age_pkts - c.total.dropped_age_pkts),
    },
    Column {
        name: "lost_link_pkts",
        unit: Unit::Packets,
        help: "Packets lost behind the scheduler.",
        value: Value::Count(|c, _| c.counts.lost_link_pkts - c.total.lost_link_pkts),
    },
    Column {
        name: "rate_bps",
        unit: Unit::BitsPerSecond,
        help: "Rate of the packets handed to the link.",
        value: Value::Real(|c, totals| Some(c.sent_bps(&c.total, totals.span_s))),
    },
    Column {
        name: "loss",
        unit: Unit::None,
        help: "Part of the packets that arrived which were dropped.",
        value: Value::Real(loss),
    },
    Column {
        name: "delay_mean_s",
        unit: Unit::Seconds,
        help: "Mean time that packets waited in the queue.",
        value: Value::Real(|c, _| c.delay_mean_s(&c.total)),
    },
    Column {
        name: "delay_p50_s",
        unit: Unit::Seconds,
        help: "Median of these times.",
        value: Value::Real(|_, totals| totals.delays_s[0]),
    },
    Column {
        name: "delay_p95_s",
        unit: Unit::Seconds,
        help: "Their 95th percentile.",
        value: Value::Real(|_, totals| totals.delays_s[1]),
    },
    Column {
        name: "delay_p99_s",
        unit: Unit::Seconds,
        help: "Their 99th percentile.",
        value: Value::Real(|_, totals| totals.delays_s[2]),
    },
    Column {
        name: "delay_max_s",
        unit: Unit::Seconds,
        help: "The longest of them.",
        value: Value::Real(|c, _| c.delay_max_s(&c.total, c.total_max_ns)),
    },
    Column {
        name: "jitter_mad_s",
        unit: Unit::Seconds,
        help: "Mean difference between the one-way delays of successive packets of a flow.",
        value: Value::Real(|_, totals| totals.jitter.mean_s()),
    },
    Column {
        name: "jitter_p50_s",
        unit: Unit::Seconds,
        help: "Median of these differences.",
        value: Value::Real(|_, totals| totals.jitter.quantile_s(0.5)),
    },
    Column {
        name: "jitter_p95_s",
        unit: Unit::Seconds,
        help: "Their 95th percentile.",
        value: Value::Real(|_, totals| totals.jitter.quantile_s(0.95)),
    },
    Column {
        name: "jitter_p99_s",
        unit: Unit::Seconds,
        help: "Their 99th percentile.",
        value: Value::Real(|_, totals| totals.jitter.quantile_s(0.99)),
    },
    Column {
        name: "backlog_mean_pkts",
        unit: Unit::Packets,
        help: "Packets waiting, on average over time.",
        value: Value::Real(|c, totals| Some(backlog_mean_pkts(c, totals))),
    },
    Column {
        name: "marked_pkts",
        unit: Unit::Packets,
        help: "Packets sent that the policy marked (ECN).",
        value: Value::Count(|c, _| c.counts.marked_pkts - c.total.marked_pkts),
    },
];

fn loss(class: &Class, totals: &ClassTotals) -> Option<f64> {
    let arrived_pkts = class.counts.arrived_pkts - class.total.arrived_pkts;
    (totals.span_s > 0.0).then(|| class.total_dropped_pkts as f64 / arrived_pkts as f64)
}

fn backlog_mean_pkts(class: &Class, totals: &ClassTotals) -> f64 {
    (class.counts.backlog_ns - class.total.backlog_ns) as f64 / 1e9 / totals.span_s
}
