// SPDX-License-Identifier: BSD-3-Clause
//! Completions of applications: table `transfers` has a row for each, `completions` one for each flow, and `video` one for
//! each player. Transfers, responses, pages and segments of video are all called transfers here.

use linkweir_core::Distribution;

use super::column::{Column, Unit, Value};
use super::delay::quantile_s;
use super::flow::Flow;

/// A transfer that is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) start_ns: u64,
    pub(super) bytes: u64,
    pub(super) took_ns: u64,
}

/// The transfers of a flow that began after the warm-up.
#[derive(Debug, Default)]
pub(super) struct Completions {
    pub(super) begun: u64,
    pub(super) refused: u64,
    finished: u64,
    bytes: u64,
    took_ns: u128,
    longest_ns: u64,
    distribution_ns: Distribution,
}

impl Completions {
    pub(super) fn add(&mut self, transfer: &Transfer) {
        self.finished += 1;
        self.bytes += transfer.bytes;
        self.took_ns += u128::from(transfer.took_ns);
        self.longest_ns = self.longest_ns.max(transfer.took_ns);
        self.distribution_ns.record(transfer.took_ns);
    }

    /// A mean over those that are complete.
    fn mean(&self, sum: f64) -> Option<f64> {
        (self.finished > 0).then(|| sum / self.finished as f64)
    }

    fn quantile_s(&self, q: f64) -> Option<f64> {
        // A histogram answers with the end of a range of values, which may lie above the greatest one.
        let found_s = quantile_s(&self.distribution_ns.whole(), q)?;
        Some(found_s.min(self.longest_ns as f64 / 1e9))
    }
}

/// What the viewer of a video saw, from the flow's start to its stop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Playback {
    /// Segments received.
    pub(crate) segments: u64,
    /// Sum of their rates, bit/s.
    pub(crate) rates_bps: f64,
    /// Times a segment's rate differed from that of the one before.
    pub(crate) switches: u64,
    /// From the start to the first picture, ns; none before that.
    pub(crate) startup_ns: Option<u64>,
    /// Times the buffer ran empty after that.
    pub(crate) stalls: u64,
    /// How long playing then stood still, ns.
    pub(crate) stalled_ns: u64,
    /// Time played, ns.
    pub(crate) played_ns: u64,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Columns of table `transfers`.
pub(super) const TRANSFERS: &[Column<Flow, Transfer>] = &[
    Column {
        name: "flow",
        unit: Unit::None,
        help: "Name of the flow.",
        value: Value::Name(|f, _| &f.name),
    },
    Column {
        name: "class",
        unit: Unit::None,
        help: "Name of its class.",
        value: Value::Name(|f, _| &f.class_name),
    },
    Column {
        name: "start_s",
        unit: Unit::Seconds,
        help: "When the transfer, the request, the page or the segment of video began.",
        value: Value::Real(|_, t| Some(seconds(t.start_ns))),
    },
    Column {
        name: "size_bytes",
        unit: Unit::Bytes,
        help: "Its bytes, without headers.",
        value: Value::Count(|_, t| t.bytes),
    },
    Column {
        name: "completion_s",
        unit: Unit::Seconds,
        help: "Time from then until the receiver had all of it.",
        value: Value::Real(|_, t| Some(seconds(t.took_ns))),
    },
];

/// Columns of table `completions`.
pub(super) const COMPLETIONS: &[Column<Flow, Completions>] = &[
    Column {
        name: "flow",
        unit: Unit::None,
        help: "Name of the flow.",
        value: Value::Name(|f, _| &f.name),
    },
    Column {
        name: "class",
        unit: Unit::None,
        help: "Name of its class.",
        value: Value::Name(|f, _| &f.class_name),
    },
    Column {
        name: "kind",
        unit: Unit::None,
        help: "Kind of the source.",
        value: Value::Name(|f, _| f.kind),
    },
    Column {
        name: "begun",
        unit: Unit::None,
        help: "Transfers, requests, pages or segments of video that began.",
        value: Value::Count(|_, c| c.begun),
    },
    Column {
        name: "finished",
        unit: Unit::None,
        help: "Those of them that are complete.",
        value: Value::Count(|_, c| c.finished),
    },
    Column {
        name: "refused",
        unit: Unit::None,
        help: "Transfers that did not begin because too many were there.",
        value: Value::Count(|_, c| c.refused),
    },
    Column {
        name: "mean_bytes",
        unit: Unit::Bytes,
        help: "Mean size of those that are complete.",
        value: Value::Real(|_, c| c.mean(c.bytes as f64)),
    },
    Column {
        name: "completion_mean_s",
        unit: Unit::Seconds,
        help: "Their mean completion time.",
        value: Value::Real(|_, c| c.mean(c.took_ns as f64 / 1e9)),
    },
    Column {
        name: "completion_p50_s",
        unit: Unit::Seconds,
        help: "Median of their completion times.",
        value: Value::Real(|_, c| c.quantile_s(0.5)),
    },
    Column {
        name: "completion_p95_s",
        unit: Unit::Seconds,
        help: "Their 95th percentile.",
        value: Value::Real(|_, c| c.quantile_s(0.95)),
    },
    Column {
        name: "completion_p99_s",
        unit: Unit::Seconds,
        help: "Their 99th percentile.",
        value: Value::Real(|_, c| c.quantile_s(0.99)),
    },
    Column {
        name: "completion_max_s",
        unit: Unit::Seconds,
        help: "The longest of them.",
        value: Value::Real(|_, c| (c.finished > 0).then(|| seconds(c.longest_ns))),
    },
];

/// Columns of table `video`.
pub(super) const VIDEO: &[Column<Flow, Playback>] = &[
    Column {
        name: "flow",
        unit: Unit::None,
        help: "Name of the flow.",
        value: Value::Name(|f, _| &f.name),
    },
    Column {
        name: "class",
        unit: Unit::None,
        help: "Name of its class.",
        value: Value::Name(|f, _| &f.class_name),
    },
    Column {
        name: "segments",
        unit: Unit::None,
        help: "Segments received.",
        value: Value::Count(|_, p| p.segments),
    },
    Column {
        name: "bitrate_mean_bps",
        unit: Unit::BitsPerSecond,
        help: "Mean of the rates at which they are encoded.",
        value: Value::Real(|_, p| (p.segments > 0).then(|| p.rates_bps / p.segments as f64)),
    },
    Column {
        name: "switches",
        unit: Unit::None,
        help: "Times the rate changed from one segment to the next.",
        value: Value::Count(|_, p| p.switches),
    },
    Column {
        name: "startup_s",
        unit: Unit::Seconds,
        help: "Time from the flow's start until playing began; empty where it did not.",
        value: Value::Real(|_, p| p.startup_ns.map(seconds)),
    },
    Column {
        name: "stalls",
        unit: Unit::None,
        help: "Times the buffer ran empty after that (rebuffering events).",
        value: Value::Count(|_, p| p.stalls),
    },
    Column {
        name: "stalled_s",
        unit: Unit::Seconds,
        help: "Time that playing stood still in them (rebuffering time).",
        value: Value::Real(|_, p| Some(seconds(p.stalled_ns))),
    },
    Column {
        name: "played_s",
        unit: Unit::Seconds,
        help: "Time played.",
        value: Value::Real(|_, p| Some(seconds(p.played_ns))),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_worked_by_hand() {
        let mut all = Completions::default();
        assert_eq!((all.mean(0.0), all.quantile_s(0.5)), (None, None));
        for (bytes, ms) in [(1000, 100), (3000, 300), (2000, 900)] {
            all.add(&Transfer {
                start_ns: 0,
                bytes,
                took_ns: ms * 1_000_000,
            });
        }
        assert_eq!(all.mean(all.bytes as f64), Some(2000.0));
        assert!((all.quantile_s(0.5).unwrap() - 0.3).abs() < 0.003);
        assert_eq!(all.quantile_s(0.99), Some(0.9));
    }
}
