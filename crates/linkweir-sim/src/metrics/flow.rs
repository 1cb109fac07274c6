// SPDX-License-Identifier: BSD-3-Clause
//! Counters of a flow, and the columns of the tables `flow_series`, `flows` and `harq`.

use crate::experiment::{self, Session, Traffic};
use crate::satellite::harq::ATTEMPTS;
use crate::tcp;

use super::class::Bin;
use super::column::{Column, Unit, Value};
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
    Column {
        name: "t_s",
        unit: Unit::Seconds,
        help: "Start of the bin.",
        value: Value::Real(|_, bin| Some(bin.t_s)),
    },
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
        name: "delivered_pkts",
        unit: Unit::Packets,
        help: "Packets that reached the receiver.",
        value: Value::Count(|f, _| f.counts.delivered_pkts - f.bin.delivered_pkts),
    },
    Column {
        name: "delivered_bytes",
        unit: Unit::Bytes,
        help: "Their bytes.",
        value: Value::Count(|f, _| f.counts.delivered_bytes - f.bin.delivered_bytes),
    },
    Column {
        name: "goodput_bps",
        unit: Unit::BitsPerSecond,
        help: "Rate of useful bytes: of TCP the payload in order, else whole packets.",
        value: Value::Real(|f, bin| Some(f.good_bytes(&f.bin) * 8.0 / bin.span_s)),
    },
    Column {
        name: "cwnd_pkts",
        unit: Unit::Packets,
        help: "TCP: congestion window at the end of the bin, segments.",
        value: Value::Real(|f, _| f.window.map(|(cwnd, _)| cwnd)),
    },
    Column {
        name: "srtt_s",
        unit: Unit::Seconds,
        help: "TCP: smoothed round-trip time at the end of the bin.",
        value: Value::Real(|f, _| f.srtt_s()),
    },
];

/// Columns of table `flows`; the context is the time that totals cover, s.
pub(super) const FLOWS: &[Column<Flow, f64>] = &[
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
        name: "arrived_pkts",
        unit: Unit::Packets,
        help: "Packets that arrived at the queue.",
        value: Value::Count(|f, _| f.counts.arrived_pkts - f.total.arrived_pkts),
    },
    Column {
        name: "delivered_pkts",
        unit: Unit::Packets,
        help: "Packets that reached the receiver.",
        value: Value::Count(|f, _| f.counts.delivered_pkts - f.total.delivered_pkts),
    },
    Column {
        name: "delivered_bytes",
        unit: Unit::Bytes,
        help: "Their bytes.",
        value: Value::Count(|f, _| f.counts.delivered_bytes - f.total.delivered_bytes),
    },
    Column {
        name: "rate_bps",
        unit: Unit::BitsPerSecond,
        help: "Rate of the packets that reached the receiver.",
        value: Value::Real(|f, span_s| {
            Some((f.counts.delivered_bytes - f.total.delivered_bytes) as f64 * 8.0 / span_s)
        }),
    },
    Column {
        name: "goodput_bps",
        unit: Unit::BitsPerSecond,
        help: "Rate of useful bytes: of TCP the payload in order, else whole packets.",
        value: Value::Real(|f, span_s| Some(f.good_bytes(&f.total) * 8.0 / span_s)),
    },
    Column {
        name: "dropped_limit_pkts",
        unit: Unit::Packets,
        help: "Packets dropped because a queue limit was reached.",
        value: Value::Count(|f, _| f.counts.dropped_limit_pkts - f.total.dropped_limit_pkts),
    },
    Column {
        name: "dropped_policy_pkts",
        unit: Unit::Packets,
        help: "Packets dropped by the policy.",
        value: Value::Count(|f, _| f.counts.dropped_policy_pkts - f.total.dropped_policy_pkts),
    },
    Column {
        name: "dropped_age_pkts",
        unit: Unit::Packets,
        help: "Packets dropped because they had waited longer than max_age.",
        value: Value::Count(|f, _| f.counts.dropped_age_pkts - f.total.dropped_age_pkts),
    },
    Column {
        name: "lost_link_pkts",
        unit: Unit::Packets,
        help: "Packets lost behind the scheduler.",
        value: Value::Count(|f, _| f.counts.lost_link_pkts - f.total.lost_link_pkts),
    },
    Column {
        name: "delay_mean_s",
        unit: Unit::Seconds,
        help: "Mean one-way delay.",
        value: Value::Real(|f, _| f.delays.mean_s()),
    },
    Column {
        name: "delay_p50_s",
        unit: Unit::Seconds,
        help: "Median of the one-way delays.",
        value: Value::Real(|f, _| f.delays.quantile_s(0.5)),
    },
    Column {
        name: "delay_p95_s",
        unit: Unit::Seconds,
        help: "Their 95th percentile.",
        value: Value::Real(|f, _| f.delays.quantile_s(0.95)),
    },
    Column {
        name: "delay_p99_s",
        unit: Unit::Seconds,
        help: "Their 99th percentile.",
        value: Value::Real(|f, _| f.delays.quantile_s(0.99)),
    },
    Column {
        name: "delay_max_s",
        unit: Unit::Seconds,
        help: "The longest of them.",
        value: Value::Real(|f, _| f.delays.max_s()),
    },
    Column {
        name: "jitter_rfc3550_s",
        unit: Unit::Seconds,
        help: "Running estimate of the delay variation, RFC 3550.",
        value: Value::Real(|f, _| f.delays.jitter_rfc3550_s()),
    },
    Column {
        name: "jitter_mad_s",
        unit: Unit::Seconds,
        help: "Mean difference between the delays of successive packets.",
        value: Value::Real(|f, _| f.delays.jitter.mean_s()),
    },
    Column {
        name: "jitter_p50_s",
        unit: Unit::Seconds,
        help: "Median of these differences.",
        value: Value::Real(|f, _| f.delays.jitter.quantile_s(0.5)),
    },
    Column {
        name: "jitter_p95_s",
        unit: Unit::Seconds,
        help: "Their 95th percentile.",
        value: Value::Real(|f, _| f.delays.jitter.quantile_s(0.95)),
    },
    Column {
        name: "jitter_p99_s",
        unit: Unit::Seconds,
        help: "Their 99th percentile.",
        value: Value::Real(|f, _| f.delays.jitter.quantile_s(0.99)),
    },
    Column {
        name: "transmitted_pkts",
        unit: Unit::Packets,
        help: "TCP: segments sent, retransmissions included.",
        value: Value::Real(|f, _| f.sender(|c| c.sent)),
    },
    Column {
        name: "retransmitted_pkts",
        unit: Unit::Packets,
        help: "TCP: retransmissions.",
        value: Value::Real(|f, _| f.sender(|c| c.retransmitted)),
    },
    Column {
        name: "retransmitted_fast_pkts",
        unit: Unit::Packets,
        help: "TCP: retransmissions in fast recovery.",
        value: Value::Real(|f, _| f.sender(|c| c.retransmitted_fast)),
    },
    Column {
        name: "retransmitted_rto_pkts",
        unit: Unit::Packets,
        help: "TCP: retransmissions after a timeout.",
        value: Value::Real(|f, _| f.sender(|c| c.retransmitted_rto)),
    },
    Column {
        name: "spurious_pkts",
        unit: Unit::Packets,
        help: "TCP: segments that the receiver got twice, as far as the sender learned.",
        value: Value::Real(|f, _| f.sender(|c| c.spurious)),
    },
    Column {
        name: "timeouts",
        unit: Unit::None,
        help: "TCP: retransmission timeouts.",
        value: Value::Real(|f, _| f.sender(|c| c.timeouts)),
    },
    Column {
        name: "cwnd_mean_pkts",
        unit: Unit::Packets,
        help: "TCP: mean congestion window over time, segments.",
        value: Value::Real(|f, _| f.cwnd_mean_pkts()),
    },
    Column {
        name: "srtt_mean_s",
        unit: Unit::Seconds,
        help: "TCP: mean smoothed round-trip time over time.",
        value: Value::Real(|f, _| f.srtt_mean_s()),
    },
];

/// Columns of table `harq`.
pub(super) const HARQ: &[Column<Flow, ()>] = &[
    Column {
        name: "flow",
        unit: Unit::None,
        help: "Name of the flow.",
        value: Value::Name(|f, ()| &f.name),
    },
    Column {
        name: "class",
        unit: Unit::None,
        help: "Name of its class.",
        value: Value::Name(|f, ()| &f.class_name),
    },
    Column {
        name: "decoded_first_pkts",
        unit: Unit::Packets,
        help: "Packets decoded after attempt 1.",
        value: Value::Count(|f, ()| f.decoded_pkts(0)),
    },
    Column {
        name: "decoded_second_pkts",
        unit: Unit::Packets,
        help: "Packets decoded after attempt 2.",
        value: Value::Count(|f, ()| f.decoded_pkts(1)),
    },
    Column {
        name: "decoded_third_pkts",
        unit: Unit::Packets,
        help: "Packets decoded after attempt 3.",
        value: Value::Count(|f, ()| f.decoded_pkts(2)),
    },
    Column {
        name: "decoded_fourth_pkts",
        unit: Unit::Packets,
        help: "Packets decoded after attempt 4.",
        value: Value::Count(|f, ()| f.decoded_pkts(3)),
    },
    Column {
        name: "given_up_pkts",
        unit: Unit::Packets,
        help: "Packets not decoded after the last attempt.",
        value: Value::Count(|f, ()| f.counts.given_up_pkts - f.total.given_up_pkts),
    },
    Column {
        name: "coded_bits",
        unit: Unit::Bits,
        help: "Coded bits sent.",
        value: Value::Count(|f, ()| f.counts.coded_bits - f.total.coded_bits),
    },
    Column {
        name: "dropped_late_pkts",
        unit: Unit::Packets,
        help: "Decoded packets that the receiver's buffer dropped.",
        value: Value::Count(|f, ()| f.counts.dropped_late_pkts - f.total.dropped_late_pkts),
    },
];
