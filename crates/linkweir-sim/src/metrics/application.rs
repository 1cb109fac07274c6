// SPDX-License-Identifier: BSD-3-Clause
//! The columns of tables `transfers`, which has a row for each completion of an application, `completions` with one for
//! each flow, and `video` with one for each player.

use super::column::{bits_per_second, bytes, seconds, unitless, Column};
use super::flow::Flow;
use super::transfers::{Completions, Playback, Transfer};

fn to_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Columns of table `transfers`.
pub(super) const TRANSFERS: &[Column<Flow, Transfer>] = &[
    unitless("flow", "Name of the flow.").name(|f, _| &f.name),
    unitless("class", "Name of its class.").name(|f, _| &f.class_name),
    seconds(
        "start_s",
        "When the transfer, the request, the page or the segment of video began.",
    )
    .real(|_, t| Some(to_seconds(t.start_ns))),
    bytes("size_bytes", "Its bytes, without headers.").count(|_, t| t.bytes),
    seconds(
        "completion_s",
        "Time from then until the receiver had all of it.",
    )
    .real(|_, t| Some(to_seconds(t.took_ns))),
];

/// Columns of table `completions`.
pub(super) const COMPLETIONS: &[Column<Flow, Completions>] = &[
    unitless("flow", "Name of the flow.").name(|f, _| &f.name),
    unitless("class", "Name of its class.").name(|f, _| &f.class_name),
    unitless("kind", "Kind of the source.").name(|f, _| f.kind),
    unitless(
        "begun",
        "Transfers, requests, pages or segments of video that began.",
    )
    .count(|_, c| c.begun),
    unitless("finished", "Those of them that are complete.").count(|_, c| c.finished),
    unitless(
        "refused",
        "Transfers that did not begin because too many were there.",
    )
    .count(|_, c| c.refused),
    bytes("mean_bytes", "Mean size of those that are complete.").real(|_, c| c.mean_bytes()),
    seconds("completion_mean_s", "Their mean completion time.").real(|_, c| c.mean_s()),
    seconds("completion_p50_s", "Median of their completion times.").real(|_, c| c.quantile_s(0.5)),
    seconds("completion_p95_s", "Their 95th percentile.").real(|_, c| c.quantile_s(0.95)),
    seconds("completion_p99_s", "Their 99th percentile.").real(|_, c| c.quantile_s(0.99)),
    seconds("completion_max_s", "The longest of them.").real(|_, c| c.longest_s()),
];

/// Columns of table `video`.
pub(super) const VIDEO: &[Column<Flow, Playback>] = &[
    unitless("flow", "Name of the flow.").name(|f, _| &f.name),
    unitless("class", "Name of its class.").name(|f, _| &f.class_name),
    unitless("segments", "Segments received.").count(|_, p| p.segments),
    bits_per_second(
        "bitrate_mean_bps",
        "Mean of the rates at which they are encoded.",
    )
    .real(|_, p| (p.segments > 0).then(|| p.rates_bps / p.segments as f64)),
    unitless(
        "switches",
        "Times the rate changed from one segment to the next.",
    )
    .count(|_, p| p.switches),
    seconds(
        "startup_s",
        "Time from the flow's start until playing began; empty where it did not.",
    )
    .real(|_, p| p.startup_ns.map(to_seconds)),
    unitless(
        "stalls",
        "Times the buffer ran empty after that (rebuffering events).",
    )
    .count(|_, p| p.stalls),
    seconds(
        "stalled_s",
        "Time that playing stood still in them (rebuffering time).",
    )
    .real(|_, p| Some(to_seconds(p.stalled_ns))),
    seconds("played_s", "Time played.").real(|_, p| Some(to_seconds(p.played_ns))),
];
