// SPDX-License-Identifier: BSD-3-Clause
//! The columns of tables `transfers`, which has a row for each completion of an application, `completions` with one for
//! each flow, and `video` with one for each player.

use super::column::{Column, Unit, Value};
use super::flow::Flow;
use super::transfers::{Completions, Playback, Transfer};

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
        value: Value::Real(|_, c| c.mean_bytes()),
    },
    Column {
        name: "completion_mean_s",
        unit: Unit::Seconds,
        help: "Their mean completion time.",
        value: Value::Real(|_, c| c.mean_s()),
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
        value: Value::Real(|_, c| c.longest_s()),
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
