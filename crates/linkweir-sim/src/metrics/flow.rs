// SPDX-License-Identifier: BSD-3-Clause
//! Counters of a flow, and the columns of the tables `flow_series`, `flows` and `harq`.

use crate::experiment::{self, Session, Traffic};
use crate::satellite::harq::ATTEMPTS;
use crate::tcp;

use super::class::Bin;
use super::column::{bits, bits_per_second, bytes, packets, seconds, unitless, Column};
use super::delay::Delays;
use super::transfers::{Completions, Playback};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowCounts {
    pub(super) arrived_pkts: u64,
    pub(super) delivered_pkts: u64,
    pub(super) delivered_bytes: u64,
    pub(super) dropped_limit_pkts: u64,
    pub(super) dropped_policy_pkts: u64,
    pub(super) dropped_age_pkts: u64,
    pub(super) lost_link_pkts: u64,
    /// In a network: lost because the link was absent when they came or while they waited.
    pub(super) absent_pkts: u64,
    /// Packets decoded after one attempt, two, ...
    pub(super) decoded_pkts: [u64; ATTEMPTS],
    pub(super) given_up_pkts: u64,
    pub(super) coded_bits: u64,
    /// Decoded packets that the receiver's buffer dropped.
    pub(super) dropped_late_pkts: u64,
    /// TCP: payload delivered in order.
    pub(super) in_order_bytes: u64,
    pub(super) sender: tcp::Counters,
    /// Congestion window, added up over time, segments times ns.
    pub(super) cwnd_ns: f64,
    pub(super) cwnd_known_ns: u64,
    /// Smoothed round-trip time, added up over the time it is known, ns times ns.
    pub(super) srtt_ns: f64,
    pub(super) srtt_known_ns: u64,
}

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) name: String,
    pub(super) class: usize,
    pub(super) class_name: String,
    pub(super) kind: &'static str,
    /// TCP sends it.
    tcp: bool,
    /// Of an application.
    pub(super) completions: Option<Box<Completions>>,
    /// Of a video, at the end.
    pub(super) playback: Option<Playback>,
    pub(super) counts: FlowCounts,
    pub(super) bin: FlowCounts,
    pub(super) total: FlowCounts,
    pub(super) delays: Delays,
    pub(super) window: Option<(f64, Option<u64>)>,
    /// Time up to which `cwnd_ns` and `srtt_ns` are added up.
    pub(super) window_at_ns: u64,
}

impl Flow {
    pub(super) fn new(flow: &experiment::Flow, class_name: &str) -> Flow {
        let kind = match &flow.traffic {
            Traffic::Cbr { .. } => "cbr",
            Traffic::Poisson { .. } => "poisson",
            Traffic::OnOff { .. } => "onoff",
            Traffic::Greedy { .. } => "greedy",
            Traffic::Tcp(_) => "tcp",
            Traffic::Voice { .. } => "voice",
            Traffic::Replay { .. } => "replay",
            Traffic::Application(application) => match application.session {
                Session::Transfers { .. } => "transfers",
                Session::Requests { .. } => "requests",
                Session::Web { .. } => "web",
                Session::Video(_) => "video",
            },
        };
        let applies = matches!(flow.traffic, Traffic::Application(_));
        Flow {
            name: flow.name.clone(),
            class: flow.class,
            class_name: class_name.to_owned(),
            kind,
            tcp: applies || matches!(flow.traffic, Traffic::Tcp(_)),
            completions: applies.then(Box::default),
            playback: None,
            counts: FlowCounts::default(),
            bin: FlowCounts::default(),
            total: FlowCounts::default(),
            delays: Delays::new(),
            window: None,
            window_at_ns: 0,
        }
    }

    /// Adds window and round-trip time up to now.
    #[inline]
    pub(super) fn advance(&mut self, now_ns: u64) {
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
        let bytes = if self.tcp {
            self.counts.in_order_bytes - then.in_order_bytes
        } else {
            self.counts.delivered_bytes - then.delivered_bytes
        };
        bytes as f64
    }

    /// A counter of TCP's sender since the start of what totals cover; none for other kinds of flows.
    fn sender(&self, count: fn(&tcp::Counters) -> u64) -> Option<f64> {
        let (now, then) = (count(&self.counts.sender), count(&self.total.sender));
        self.tcp.then(|| (now - then) as f64)
    }

    /// Packets decoded after this many attempts and one.
    fn decoded_pkts(&self, repetitions: usize) -> u64 {
        self.counts.decoded_pkts[repetitions] - self.total.decoded_pkts[repetitions]
    }

    fn srtt_s(&self) -> Option<f64> {
        let (_, srtt_ns) = self.window?;
        srtt_ns.map(|ns| ns as f64 / 1e9)
    }

    fn cwnd_mean_pkts(&self) -> Option<f64> {
        let known_ns = self.counts.cwnd_known_ns - self.total.cwnd_known_ns;
        (known_ns > 0).then(|| (self.counts.cwnd_ns - self.total.cwnd_ns) / known_ns as f64)
    }

    fn srtt_mean_s(&self) -> Option<f64> {
        let known_ns = self.counts.srtt_known_ns - self.total.srtt_known_ns;
        (known_ns > 0).then(|| (self.counts.srtt_ns - self.total.srtt_ns) / known_ns as f64 / 1e9)
    }
}

/// Columns of table `flow_series`.
pub(super) const FLOW_SERIES: &[Column<Flow, Bin>] = &[
    seconds("t_s", "Start of the bin.").real(|_, bin| Some(bin.t_s)),
    unitless("flow", "Name of the flow.").name(|f, _| &f.name),
    unitless("class", "Name of its class.").name(|f, _| &f.class_name),
    packets("delivered_pkts", "Packets that reached the receiver.")
        .count(|f, _| f.counts.delivered_pkts - f.bin.delivered_pkts),
    bytes("delivered_bytes", "Their bytes.")
        .count(|f, _| f.counts.delivered_bytes - f.bin.delivered_bytes),
    bits_per_second(
        "goodput_bps",
        "Rate of useful bytes: of TCP the payload in order, else whole packets.",
    )
    .real(|f, bin| Some(f.good_bytes(&f.bin) * 8.0 / bin.span_s)),
    packets(
        "cwnd_pkts",
        "TCP: congestion window at the end of the bin, segments.",
    )
    .real(|f, _| f.window.map(|(cwnd, _)| cwnd)),
    seconds(
        "srtt_s",
        "TCP: smoothed round-trip time at the end of the bin.",
    )
    .real(|f, _| f.srtt_s()),
];

/// Columns of table `flows`; the context is the time that totals cover, s.
pub(super) const FLOWS: &[Column<Flow, f64>] = &[
    unitless("flow", "Name of the flow.").name(|f, _| &f.name),
    unitless("class", "Name of its class.").name(|f, _| &f.class_name),
    unitless("kind", "Kind of the source.").name(|f, _| f.kind),
    packets("arrived_pkts", "Packets that arrived at the queue.")
        .count(|f, _| f.counts.arrived_pkts - f.total.arrived_pkts),
    packets("delivered_pkts", "Packets that reached the receiver.")
        .count(|f, _| f.counts.delivered_pkts - f.total.delivered_pkts),
    bytes("delivered_bytes", "Their bytes.")
        .count(|f, _| f.counts.delivered_bytes - f.total.delivered_bytes),
    bits_per_second("rate_bps", "Rate of the packets that reached the receiver.").real(
        |f, span_s| {
            Some((f.counts.delivered_bytes - f.total.delivered_bytes) as f64 * 8.0 / span_s)
        },
    ),
    bits_per_second(
        "goodput_bps",
        "Rate of useful bytes: of TCP the payload in order, else whole packets.",
    )
    .real(|f, span_s| Some(f.good_bytes(&f.total) * 8.0 / span_s)),
    packets(
        "dropped_limit_pkts",
        "Packets dropped because a queue limit was reached.",
    )
    .count(|f, _| f.counts.dropped_limit_pkts - f.total.dropped_limit_pkts),
    packets("dropped_policy_pkts", "Packets dropped by the policy.")
        .count(|f, _| f.counts.dropped_policy_pkts - f.total.dropped_policy_pkts),
    packets(
        "dropped_age_pkts",
        "Packets dropped because they had waited longer than max_age.",
    )
    .count(|f, _| f.counts.dropped_age_pkts - f.total.dropped_age_pkts),
    packets("lost_link_pkts", "Packets lost behind the scheduler.")
        .count(|f, _| f.counts.lost_link_pkts - f.total.lost_link_pkts),
    seconds("delay_mean_s", "Mean one-way delay.").real(|f, _| f.delays.mean_s()),
    seconds("delay_p50_s", "Median of the one-way delays.").real(|f, _| f.delays.quantile_s(0.5)),
    seconds("delay_p95_s", "Their 95th percentile.").real(|f, _| f.delays.quantile_s(0.95)),
    seconds("delay_p99_s", "Their 99th percentile.").real(|f, _| f.delays.quantile_s(0.99)),
    seconds("delay_max_s", "The longest of them.").real(|f, _| f.delays.max_s()),
    seconds(
        "jitter_rfc3550_s",
        "Running estimate of the delay variation, RFC 3550.",
    )
    .real(|f, _| f.delays.jitter_rfc3550_s()),
    seconds(
        "jitter_mad_s",
        "Mean difference between the delays of successive packets.",
    )
    .real(|f, _| f.delays.jitter.mean_s()),
    seconds("jitter_p50_s", "Median of these differences.")
        .real(|f, _| f.delays.jitter.quantile_s(0.5)),
    seconds("jitter_p95_s", "Their 95th percentile.").real(|f, _| f.delays.jitter.quantile_s(0.95)),
    seconds("jitter_p99_s", "Their 99th percentile.").real(|f, _| f.delays.jitter.quantile_s(0.99)),
    packets(
        "transmitted_pkts",
        "TCP: segments sent, retransmissions included.",
    )
    .real(|f, _| f.sender(|c| c.sent)),
    packets("retransmitted_pkts", "TCP: retransmissions.")
        .real(|f, _| f.sender(|c| c.retransmitted)),
    packets(
        "retransmitted_fast_pkts",
        "TCP: retransmissions in fast recovery.",
    )
    .real(|f, _| f.sender(|c| c.retransmitted_fast)),
    packets(
        "retransmitted_rto_pkts",
        "TCP: retransmissions after a timeout.",
    )
    .real(|f, _| f.sender(|c| c.retransmitted_rto)),
    packets(
        "spurious_pkts",
        "TCP: segments that the receiver got twice, as far as the sender learned.",
    )
    .real(|f, _| f.sender(|c| c.spurious)),
    unitless("timeouts", "TCP: retransmission timeouts.").real(|f, _| f.sender(|c| c.timeouts)),
    packets(
        "cwnd_mean_pkts",
        "TCP: mean congestion window over time, segments.",
    )
    .real(|f, _| f.cwnd_mean_pkts()),
    seconds(
        "srtt_mean_s",
        "TCP: mean smoothed round-trip time over time.",
    )
    .real(|f, _| f.srtt_mean_s()),
];

/// More columns of table `flows` in a run over several links.
pub(super) const FLOWS_OF_LINKS: &[Column<Flow, f64>] = &[packets(
    "absent_pkts",
    "Packets lost because a link did not exist when they came or while they waited.",
)
.count(|f, _| f.counts.absent_pkts - f.total.absent_pkts)];

/// Columns of table `harq`.
pub(super) const HARQ: &[Column<Flow, ()>] = &[
    unitless("flow", "Name of the flow.").name(|f, ()| &f.name),
    unitless("class", "Name of its class.").name(|f, ()| &f.class_name),
    packets("decoded_first_pkts", "Packets decoded after attempt 1.")
        .count(|f, ()| f.decoded_pkts(0)),
    packets("decoded_second_pkts", "Packets decoded after attempt 2.")
        .count(|f, ()| f.decoded_pkts(1)),
    packets("decoded_third_pkts", "Packets decoded after attempt 3.")
        .count(|f, ()| f.decoded_pkts(2)),
    packets("decoded_fourth_pkts", "Packets decoded after attempt 4.")
        .count(|f, ()| f.decoded_pkts(3)),
    packets(
        "given_up_pkts",
        "Packets not decoded after the last attempt.",
    )
    .count(|f, ()| f.counts.given_up_pkts - f.total.given_up_pkts),
    bits("coded_bits", "Coded bits sent.").count(|f, ()| f.counts.coded_bits - f.total.coded_bits),
    packets(
        "dropped_late_pkts",
        "Decoded packets that the receiver's buffer dropped.",
    )
    .count(|f, ()| f.counts.dropped_late_pkts - f.total.dropped_late_pkts),
];
