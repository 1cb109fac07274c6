// SPDX-License-Identifier: BSD-3-Clause
//! Parameters of a connection, and the sizes of its packets that follow from them.

use super::segment::{Ack, Segment};

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5681 and 6582 window rules.
    NewReno,
    /// RFC 9438, or Linux 2.6.22's CUBIC v2.1 with [`Profile::Ns2`].
    Cubic,
}

/// The TCP implementation that is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The RFCs a present Linux follows.
    Linux,
    /// Agent/TCP/Linux and TCPSink/Sack1 of ns-2.35.
    Ns2,
}

/// Parameters of one connection; [`Config::new`] gives a profile's defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Congestion control.
    pub algorithm: Algorithm,
    /// The TCP implementation whose rules apply.
    pub profile: Profile,
    /// Payload of a segment, bytes.
    pub mss_bytes: u32,
    /// IP and TCP headers of a segment, bytes.
    pub header_bytes: u32,
    /// Size of an acknowledgement without SACK blocks, bytes; see [`Config::ack_wire_bytes`].
    pub ack_bytes: u32,
    /// First congestion window, segments; at least 1.
    pub initial_window_segments: u32,
    /// Receive window, segments; at least 1. With `Ns2` it caps the congestion window, as `window_` does.
    pub max_window_segments: u32,
    /// `Linux`: least distance of the timeout above the smoothed RTT, as in Linux. `Ns2`: least timeout.
    pub min_rto_ns: u64,
    /// Greatest timeout, backed off or not.
    pub max_rto_ns: u64,
    /// Timeout before the first RTT sample.
    pub initial_rto_ns: u64,
    /// Clock granularity of RTT measurement; `Ns2` rounds to it, `Linux` uses it as G of RFC 6298.
    pub tick_ns: u64,
    /// Receiver acknowledges every second segment or after `delayed_ack_ns`.
    pub delayed_ack: bool,
    /// Longest delay of an acknowledgement.
    pub delayed_ack_ns: u64,
    /// Segments acknowledged one by one at the start of the connection although `delayed_ack` is set.
    pub quick_ack_segments: u32,
    /// HyStart++ in the first slow start (`Linux` only).
    pub hystart: bool,
    /// Timestamps option (RFC 7323): RTT from every acknowledgement, one SACK block fewer.
    pub timestamps: bool,
    /// Payload to send, of which the last segment may hold less than the others; `None`: without end.
    pub bytes_to_send: Option<u64>,
}

impl Config {
    /// The defaults of a profile.
    pub fn new(algorithm: Algorithm, profile: Profile) -> Config {
        match profile {
            Profile::Linux => Config {
                algorithm,
                profile,
                mss_bytes: 1448,
                header_bytes: 52,
                ack_bytes: 52,
                initial_window_segments: 10,
                max_window_segments: 50_000,
                min_rto_ns: 200_000_000,
                max_rto_ns: 120_000_000_000,
                initial_rto_ns: 1_000_000_000,
                tick_ns: 1_000_000,
                delayed_ack: true,
                delayed_ack_ns: 40_000_000,
                quick_ack_segments: 16,
                hystart: true,
                timestamps: true,
                bytes_to_send: None,
            },
            Profile::Ns2 => Config {
                algorithm,
                profile,
                mss_bytes: 1000,
                header_bytes: 40,
                ack_bytes: 40,
                initial_window_segments: 2,
                max_window_segments: 50_000,
                min_rto_ns: 200_000_000,
                max_rto_ns: 120_000_000_000,
                initial_rto_ns: 3_000_000_000,
                // ns-2's default is 10 ms, but choosing an algorithm (`select_ca`) sets it to 1 ms.
                tick_ns: 1_000_000,
                delayed_ack: false,
                delayed_ack_ns: 40_000_000,
                quick_ack_segments: 0,
                hystart: false,
                timestamps: false,
                bytes_to_send: None,
            },
        }
    }

    /// Bytes of a full segment on the wire.
    pub fn segment_bytes(&self) -> u32 {
        self.mss_bytes + self.header_bytes
    }

    /// Bytes of a SYN on the wire: its options are 8 bytes longer than those of a segment with timestamps, as in Linux.
    pub fn syn_bytes(&self) -> u32 {
        self.header_bytes + 8
    }

    /// Bytes of the shortest segment on the wire.
    pub fn least_segment_bytes(&self) -> u32 {
        match (self.profile, self.bytes_to_send) {
            (Profile::Ns2, _) => self.header_bytes,
            (Profile::Linux, Some(_)) => self.wire_bytes(self.segments_to_send().saturating_sub(1)),
            (Profile::Linux, None) => self.segment_bytes(),
        }
    }

    /// Bytes of one segment on the wire. With `Ns2` segment 0 is the SYN and has no payload.
    pub fn segment_wire_bytes(&self, segment: &Segment) -> u32 {
        self.wire_bytes(segment.sequence)
    }

    fn wire_bytes(&self, sequence: u64) -> u32 {
        let payload_bytes = self.payload_bytes(sequence + 1) - self.payload_bytes(sequence);
        self.header_bytes + payload_bytes as u32
    }

    /// Payload of the first so many segments.
    pub fn payload_bytes(&self, segments: u64) -> u64 {
        let bytes = segments.saturating_sub(self.syn_segments()) * u64::from(self.mss_bytes);
        bytes.min(self.bytes_to_send.unwrap_or(u64::MAX))
    }

    /// Bytes of an acknowledgement on the wire: 8 for each SACK block, and the option's head with `Linux`.
    pub fn ack_wire_bytes(&self, ack: &Ack) -> u32 {
        match (self.profile, u32::from(ack.nsack)) {
            (_, 0) => self.ack_bytes,
            (Profile::Linux, blocks) => self.ack_bytes + 4 + 8 * blocks,
            (Profile::Ns2, blocks) => self.ack_bytes + 8 * blocks,
        }
    }

    /// Segments to send; `u64::MAX` without end.
    pub(super) fn segments_to_send(&self) -> u64 {
        match self.bytes_to_send {
            Some(bytes) => self.syn_segments() + bytes.div_ceil(u64::from(self.mss_bytes.max(1))),
            None => u64::MAX,
        }
    }

    /// Segments before the first payload.
    fn syn_segments(&self) -> u64 {
        u64::from(self.profile == Profile::Ns2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Block;

    #[test]
    fn sizes_on_the_wire() {
        let segment = |sequence| Segment {
            sequence,
            retransmission: false,
            sent_ns: 0,
        };
        let mut ack = Ack {
            cumulative: 1,
            sack: [Block::default(); 4],
            nsack: 0,
            echo_ns: None,
            duplicate: false,
        };
        let linux = Config::new(Algorithm::Cubic, Profile::Linux);
        assert_eq!(linux.segment_wire_bytes(&segment(0)), 1500);
        let ns2 = Config::new(Algorithm::Cubic, Profile::Ns2);
        assert_eq!(ns2.segment_wire_bytes(&segment(0)), 40);
        assert_eq!(ns2.segment_wire_bytes(&segment(1)), 1040);
        let sizes = [linux.ack_wire_bytes(&ack), ns2.ack_wire_bytes(&ack)];
        assert_eq!(sizes, [52, 40]);
        let config = Config {
            bytes_to_send: Some(2500),
            ..ns2
        };
        assert_eq!(config.segments_to_send(), 4);
        let sizes = [0, 1, 2, 3].map(|n| config.segment_wire_bytes(&segment(n)));
        assert_eq!(sizes, [40, 1040, 1040, 540]);
        assert_eq!(config.least_segment_bytes(), 40);
        let config = Config {
            bytes_to_send: Some(2 * 1448 + 1),
            ..linux
        };
        let sizes = [0, 1, 2].map(|n| config.segment_wire_bytes(&segment(n)));
        assert_eq!(sizes, [1500, 1500, 53]);
        assert_eq!(config.least_segment_bytes(), 53);
        let payloads = [0, 1, 2, 3, 9].map(|n| config.payload_bytes(n));
        assert_eq!(payloads, [0, 1448, 2896, 2897, 2897]);
        let (linux, ns2) = (
            Config::new(Algorithm::Cubic, Profile::Linux),
            Config::new(Algorithm::Cubic, Profile::Ns2),
        );
        ack.nsack = 3;
        // 20 IP, 20 TCP, 12 timestamps, 4 + 24 SACK: the 40 bytes of options are full.
        let sizes = [linux.ack_wire_bytes(&ack), ns2.ack_wire_bytes(&ack)];
        assert_eq!(sizes, [80, 64]);
    }
}
