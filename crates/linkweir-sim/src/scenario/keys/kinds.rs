// SPDX-License-Identifier: BSD-3-Clause
//! The keys of each kind of traffic.

use linkweir_config::keys;
use linkweir_config::keys::form::{
    Flag, Number, Quantity, Real, Small, Special, Text, Whole, Words,
};
use linkweir_config::keys::hosts::WITH_ANOTHER;
use linkweir_config::keys::Treatment::{Adapted, Carried, LeftOut, Refused, Silent};
use linkweir_config::keys::{Hosts, Shape};
use linkweir_config::units::Kind;
use linkweir_config::values::Values;

use crate::codec;

use super::super::limits;
use super::shapes::{self, Drawn};

/// What hosts that have the kind send. [`super::KINDS`] says which have it; for the others a decision here means nothing.
const SENT: Hosts = Hosts {
    laboratory: Carried,
    gateway: Silent,
    tc: Silent,
    ns3: Carried,
    bounds: Carried,
};
const RATE: Hosts = SENT
    .in_ns3(LeftOut(
        "a rate that changes over time is left out, and with it the flow",
    ))
    .in_bounds(Refused(
        "has a rate that changes over time; give its envelope with --envelope",
    ));
const PACKET: Hosts = SENT.in_ns3(LeftOut("left out, its packets have several sizes"));
/// An arrival curve does not depend on it, or there is none.
const UNBOUNDED: Hosts = SENT.in_bounds(Silent);
const SEGMENT: Hosts = UNBOUNDED.in_laboratory(Refused(
    "the kernel's segments have 1448B and 52B of headers here",
));

keys! {
    /// Packets at regular intervals.
    CBR "flow.cbr" {
        CBR_RATE "rate": Values { kind: Kind::Rate, min: 0.0, max: limits::RATE_BPS as f64 }, required("\"20Mbit\""), RATE,
            "rate";
        CBR_JITTER "jitter": Real { min: 0.0, max: 1.0 }, usual(0.0), SENT.in_ns3(LeftOut("jitter = {value} is left out; the gaps are constant")),
            "each gap is multiplied by a uniform random number of 1 - jitter .. 1 + jitter";
        CBR_PACKET "packet": Special { shape: Shape::Packets(limits::PACKET_BYTES as u64) }, computed("`\"1500B\"`"), PACKET,
            "packet size";
    }
}

keys! {
    /// A Poisson process.
    POISSON "flow.poisson" {
        POISSON_RATE "rate": Values { kind: Kind::Rate, min: 0.0, max: limits::RATE_BPS as f64 }, required("\"20Mbit\""), RATE,
            "mean rate";
        POISSON_PACKET "packet": Special { shape: Shape::Packets(limits::PACKET_BYTES as u64) }, computed("`\"1500B\"`"), PACKET,
            "packet size";
    }
}

keys! {
    /// Bursts and silences.
    ONOFF "flow.onoff" {
        ONOFF_RATE "rate": Quantity { kind: Kind::Rate, min: 1.0, max: limits::RATE_BPS as f64 }, required("\"20Mbit\""), SENT,
            "rate during a burst";
        ONOFF_ON "on": Whole { kind: Kind::Time, min: 1_000, max: limits::DURATION_NS }, required("\"250ms\""), UNBOUNDED,
            "mean length of a burst";
        ONOFF_OFF "off": Whole { kind: Kind::Time, min: 1_000, max: limits::DURATION_NS }, required("\"250ms\""), UNBOUNDED,
            "mean length of a silence";
        ONOFF_LENGTHS "lengths": Words { of: &["exponential", "pareto"] }, usual(0), UNBOUNDED.in_ns3(Adapted("lengths = {value} are constant in the program")),
            "distribution of both";
        ONOFF_SHAPE "shape": Real { min: 1.01, max: 100.0 }, usual(1.5), WITH_ANOTHER,
            "Pareto's shape; only with pareto";
        ONOFF_PACKET "packet": Special { shape: Shape::Packets(limits::PACKET_BYTES as u64) }, computed("`\"1500B\"`"), PACKET,
            "packet size";
    }
}

keys! {
    /// A source that always has packets.
    GREEDY "flow.greedy" {
        GREEDY_BACKLOG "backlog": Small { kind: Kind::Packets, min: 1, max: limits::QUEUED_PKTS as u32 }, usual(20), UNBOUNDED,
            "packets that the source keeps in its queue; the class's limit must not be smaller";
        GREEDY_PACKET "packet": Special { shape: Shape::Packets(limits::PACKET_BYTES as u64) }, computed("`\"1500B\"`"), PACKET,
            "packet size";
    }
}

keys! {
    /// TCP, also below applications.
    TCP "flow.tcp" {
        TCP_CC "cc": Words { of: &["cubic", "reno", "bbr", "newreno", "prague", "dctcp"] }, twofold(0, 0), UNBOUNDED.in_ns3(Adapted("ns-3's {value}, whose states and timers differ from Linux's")),
            "congestion control; ns2 has cubic and newreno, and with linux `newreno` is the same as `reno`";
        TCP_PROFILE "profile": Words { of: &["linux", "ns2"] }, twofold(0, 1), WITH_ANOTHER,
            "which TCP implementation is modelled";
        TCP_ECN "ecn": Flag {}, twofold(false, false), UNBOUNDED.in_ns3(LeftOut("ecn is left out; the program's TCP does not negotiate it")),
            "negotiates ECN (RFC 3168); prague and dctcp: always true; linux only";
        TCP_MSS "mss": Small { kind: Kind::Size, min: 1, max: 65_535 }, twofold(1_448, 1_000), SEGMENT,
            "payload of a segment";
        TCP_HEADER "header": Small { kind: Kind::Size, min: 0, max: 1_000 }, twofold(52, 40), SEGMENT.in_ns3(Silent),
            "IP and TCP headers of a segment; the SYN of linux has 8 bytes more";
        TCP_ACK "ack": Small { kind: Kind::Size, min: 1, max: 1_000 }, twofold(52, 40), WITH_ANOTHER,
            "size of an acknowledgement without SACK blocks and mark counts (8 bytes)";
        TCP_WINDOW "window": Small { kind: Kind::Packets, min: 1, max: 1_000_000 }, twofold(50_000, 50_000), WITH_ANOTHER,
            "linux: largest receive window, which begins with 64 KiB; ns2: receive window; in segments";
        TCP_INITIAL_WINDOW "initial_window": Small { kind: Kind::Packets, min: 1, max: 1_000_000 }, twofold(10, 2), WITH_ANOTHER,
            "first congestion window, at most window; by default window if that is less";
        TCP_MIN_RTO "min_rto": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, twofold(200_000_000, 200_000_000), WITH_ANOTHER,
            "linux: smallest difference of timeout and smoothed RTT; ns2: smallest timeout; by default max_rto if that is less";
        TCP_MAX_RTO "max_rto": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, twofold(120_000_000_000, 120_000_000_000), WITH_ANOTHER,
            "longest timeout; by default min_rto if that is more";
        TCP_INITIAL_RTO "initial_rto": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, twofold(1_000_000_000, 3_000_000_000), WITH_ANOTHER,
            "timeout before the first RTT sample";
        TCP_TICK "tick": Whole { kind: Kind::Time, min: 1, max: 10_000_000_000 }, twofold(4_000_000, 1_000_000), WITH_ANOTHER,
            "linux: length of a jiffy, in which timers and CUBIC count; 4 ms is 250 Hz, as most distributions have it; ns2: granularity of RTT measurement";
        TCP_DELAYED_ACK "delayed_ack": Flag {}, twofold(true, false), WITH_ANOTHER,
            "acknowledge every second segment, or after the timeout";
        TCP_DELAYED_ACK_TIMEOUT "delayed_ack_timeout": Whole { kind: Kind::Time, min: 1, max: 10_000_000_000 }, twofold(40_000_000, 40_000_000), WITH_ANOTHER,
            "delay of an acknowledgement; linux: at first, it adapts up to 200 ms";
        TCP_QUICK_ACKS "quick_acks": Small { kind: Kind::Packets, min: 0, max: 1_000_000 }, twofold(16, 0), WITH_ANOTHER,
            "segments acknowledged one by one at the start";
        TCP_HYSTART "hystart": Flag {}, twofold(true, false), WITH_ANOTHER,
            "HyStart ends slow start of cubic; linux only";
        TCP_TIMESTAMPS "timestamps": Flag {}, twofold(true, false), WITH_ANOTHER,
            "timestamps option (RFC 7323)";
    }
}

keys! {
    /// A transfer that begins with the flow.
    BULK "flow.bulk" after [&TCP] {
        TCP_BYTES "bytes": Whole { kind: Kind::Size, min: 1, max: 1_000_000_000_000_000 }, otherwise("without end"), UNBOUNDED,
            "payload to send; the last segment may be shorter than the others. The SYN carries no payload";
    }
}

keys! {
    /// One direction of a call.
    VOICE "flow.voice" {
        VOICE_CODEC "codec": Words { of: &codec::NAMES }, required("\"g711\""), SENT,
            "the codec, which gives size and interval of packets, see below";
        VOICE_HEADER "header": Small { kind: Kind::Size, min: 0, max: 1_000 }, usual(40), SENT,
            "IP, UDP and RTP headers; over IPv6 they are 60 bytes";
        VOICE_TALKSPURTS "talkspurts": Flag {}, usual(false), WITH_ANOTHER,
            "send only while the speaker talks: talk spurts and pauses of exponential length, on average 1.004 s and 1.587 s as in ITU-T P.59 (table 1) for conversations";
        VOICE_JITTER "jitter": Real { min: 0.0, max: 1.0 }, usual(0.0), SENT,
            "each interval is multiplied by a uniform random number of 1 - jitter .. 1 + jitter";
    }
}

keys! {
    /// Recorded packets.
    REPLAY "flow.replay" {
        REPLAY_FILE "file": Text { what: "path" }, required("\"capture.pcap\""), SENT,
            "a list of packets, a capture, or a recording of a gateway; relative to the scenario's folder";
        REPLAY_ONLY "only": Text { what: "text" }, otherwise("all; required for a recording"), SENT,
            "for a list: send only the packets of this flow; for a recording: those of this class";
        REPLAY_DECIMAL "decimal": Words { of: &[".", ","] }, otherwise("as the numbers show"), SENT,
            "for a list: mark in front of decimals, \".\" or \",\"", values "text";
        REPLAY_LENGTHS "lengths": Words { of: &["ip", "frame"] }, otherwise("ip"), SENT,
            "for a capture: whether a packet's size is that of the IP packet or of the whole frame";
        REPLAY_MTU "mtu": Whole { kind: Kind::Size, min: 576, max: limits::PACKET_BYTES as u64 }, otherwise("learnt from the capture"), SENT,
            "for a capture: longest IP packet of its network; longer ones are sent as segments";
        REPLAY_PERIOD "period": Whole { kind: Kind::Time, min: 1, max: limits::DURATION_NS }, otherwise("once"), SENT,
            "period after which the packets are sent again; longer than the last packet's time", values "time";
    }
}

keys! {
    /// Files of finite size.
    TRANSFERS "flow.transfers" after [&TCP] {
        TRANSFERS_ARRIVALS "arrivals": Special { shape: Shape::Arrivals }, required("{ every = \"500ms\" }"), WITH_ANOTHER,
            "when transfers begin, see below", values "table";
        TRANSFERS_SIZE "size": Drawn { of: shapes::BYTES }, required("\"100kB\""), WITH_ANOTHER,
            "bytes of a transfer";
        TRANSFERS_CONCURRENT "concurrent": Number { min: 1, max: limits::CONNECTIONS }, usual(1000), WITH_ANOTHER,
            "largest number of connections at once; a transfer that arrives when all are in use is refused and counted, and the run [warns](diagnosis.md#refused-transfers)";
    }
}

keys! {
    /// Requests and responses.
    REQUESTS "flow.requests" after [&TCP] {
        REQUESTS_RESPONSE "response": Drawn { of: shapes::BYTES }, required("\"100kB\""), WITH_ANOTHER,
            "bytes of a response";
        REQUESTS_THINK "think": Drawn { of: shapes::PAUSE }, required("\"5s\""), WITH_ANOTHER,
            "time from the end of a response to the next request";
        REQUESTS_SERVER_TIME "server_time": Drawn { of: shapes::PAUSE }, computed("`\"0s\"`"), WITH_ANOTHER,
            "time from the request's arrival to the response";
    }
}

keys! {
    /// Pages.
    WEB "flow.web" after [&TCP] {
        WEB_MAIN "main": Drawn { of: shapes::BYTES }, required("\"100kB\""), WITH_ANOTHER,
            "bytes of the main object";
        WEB_OBJECTS "objects": Drawn { of: shapes::COUNT }, required("30"), WITH_ANOTHER,
            "number of further objects";
        WEB_OBJECT "object": Drawn { of: shapes::BYTES }, required("\"100kB\""), WITH_ANOTHER,
            "bytes of each further object";
        WEB_CONNECTIONS "connections": Number { min: 1, max: limits::PAGE_CONNECTIONS }, usual(6), WITH_ANOTHER,
            "largest number of connections of a page";
        WEB_THINK "think": Drawn { of: shapes::PAUSE }, required("\"5s\""), WITH_ANOTHER,
            "time from the end of a page to the next one";
        WEB_SERVER_TIME "server_time": Drawn { of: shapes::PAUSE }, computed("`\"0s\"`"), WITH_ANOTHER,
            "time from a request's arrival to its response";
    }
}

keys! {
    /// Adaptive video.
    VIDEO "flow.video" after [&TCP] {
        VIDEO_LADDER "ladder": Special { shape: Shape::Rates }, required("[\"750kbit\", \"1.5Mbit\", \"3Mbit\"]"), WITH_ANOTHER,
            "encoding rates of the video, in rising order; every segment is available at each";
        VIDEO_SEGMENT "segment": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, usual(4_000_000_000), WITH_ANOTHER,
            "playing time of a segment";
        VIDEO_BUFFER "buffer": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, usual(240_000_000_000), WITH_ANOTHER,
            "capacity of the play-out buffer, in playing time; the player requests the next segment only when it fits";
        VIDEO_STARTUP "startup": Whole { kind: Kind::Time, min: 1_000_000, max: limits::DELAY_NS }, computed("segment"), WITH_ANOTHER,
            "playing time that must be in the buffer before playing begins, and before it resumes after a stall";
        VIDEO_ADAPTATION "adaptation": Words { of: &["bba0", "throughput"] }, usual(0), WITH_ANOTHER,
            "how the player chooses the rate of the next segment, see below";
        VIDEO_RESERVOIR "reservoir": Whole { kind: Kind::Time, min: 0, max: limits::DELAY_NS }, otherwise("3/8 of buffer"), WITH_ANOTHER,
            "bba0: up to this buffer level the player takes the lowest rate";
        VIDEO_CUSHION "cushion": Whole { kind: Kind::Time, min: 0, max: limits::DELAY_NS }, otherwise("21/40 of buffer"), WITH_ANOTHER,
            "bba0: length of the range above the reservoir, at whose end the player takes the highest rate";
        VIDEO_HISTORY "history": Number { min: 1, max: 1000 }, otherwise("20"), WITH_ANOTHER,
            "throughput: number of segments over which the mean is taken";
        VIDEO_SAFETY "safety": Real { min: 0.01, max: 1.0 }, otherwise("0.85"), WITH_ANOTHER,
            "throughput: fraction of the mean that the rate may reach";
        VIDEO_SERVER_TIME "server_time": Drawn { of: shapes::PAUSE }, computed("`\"0s\"`"), WITH_ANOTHER,
            "time from a request's arrival to its segment";
    }
}
