// SPDX-License-Identifier: BSD-3-Clause
//! Parameters of a connection, and the sizes of its packets that follow from them.

use super::segment::{Ack, Segment};

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5681 and 6582 window rules; with [`Profile::Linux`] the same as `Reno`.
    NewReno,
    /// Linux's Reno; only with [`Profile::Linux`].
    Reno,
    /// Linux 6.12's CUBIC, or Linux 2.6.22's v2.1 with [`Profile::Ns2`].
    Cubic,
    /// Linux's BBR, version 1; only with [`Profile::Linux`].
    Bbr,
    /// TCP Prague, which needs `ecn`; only with [`Profile::Linux`].
    Prague,
    /// DCTCP (RFC 8257), which needs `ecn`; only with [`Profile::Linux`].
    Dctcp,
}

impl Algorithm {
    /// It answers each congestion mark a little, and needs the number of them, not only an echo.
    pub fn counts_marks(self) -> bool {
        matches!(self, Algorithm::Prague | Algorithm::Dctcp)
    }
}

/// The TCP implementation that is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Linux 6.12.
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
    /// HyStart in slow start (`Linux` with CUBIC only).
    pub hystart: bool,
    /// Explicit congestion notification (RFC 3168, and RFC 9768 with algorithms that count marks; `Linux` only).
    pub ecn: bool,
    /// Seed of the random choices that BBR makes.
    pub random: u64,
    /// Timestamps option (RFC 7323): RTT from every acknowledgement, one SACK block fewer.
    pub timestamps: bool,
    /// Payload to send, of which the last segment may hold less than the others; `None`: without end.
    pub bytes_to_send: Option<u64>,
}

/// Payload of a request, bytes: a small HTTP request with its headers.
pub const REQUEST_BYTES: u32 = 300;

/// Most bytes that blocks of received segments add to an acknowledgement.
const MOST_SACK_BYTES: u32 = 4 + 8 * 5;
/// Options of a segment, at most, and that with the receiver's counts of marked and unmarked bytes (RFC 9768, section 3.2.3).
const OPTION_BYTES: u32 = 40;
const COUNTS_BYTES: u32 = 8;

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
                tick_ns: 4_000_000,
                delayed_ack: true,
                delayed_ack_ns: 40_000_000,
                quick_ack_segments: 16,
                hystart: true,
                ecn: false,
                random: 1,
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
                ecn: false,
                random: 1,
                timestamps: false,
                bytes_to_send: None,
            },
        }
    }

    /// Bytes of a full segment on the wire.
    pub fn segment_bytes(&self) -> u32 {
        self.mss_bytes + self.header_bytes
    }

    /// Bytes of the shortest segment on the wire.
    pub fn least_segment_bytes(&self) -> u32 {
        let last = self.segments_to_send().saturating_sub(1);
        self.header_bytes.min(self.wire_bytes(last))
    }

    /// Bytes of one segment on the wire. Segment 0 is the SYN and has no payload.
    pub fn segment_wire_bytes(&self, segment: &Segment) -> u32 {
        if segment.bare {
            return self.header_bytes;
        }
        self.wire_bytes(segment.sequence)
    }

    fn wire_bytes(&self, sequence: u64) -> u32 {
        if sequence == 0 {
            return self.syn_bytes();
        }
        let payload_bytes = self.payload_bytes(sequence + 1) - self.payload_bytes(sequence);
        self.header_bytes + payload_bytes as u32
    }

    /// Bytes of the SYN on the wire. That of Linux has more options: segment size, permission of SACK and window scale.
    pub fn syn_bytes(&self) -> u32 {
        match self.profile {
            Profile::Linux => self.header_bytes + 8,
            Profile::Ns2 => self.header_bytes,
        }
    }

    /// The smallest and the largest packet that the receiver sends; `asks` says whether it opens connections and asks for
    /// what it wants.
    pub fn sizes_back_bytes(&self, asks: bool) -> (u32, u32) {
        let most = self.ack_bytes + MOST_SACK_BYTES;
        if asks {
            let request = self.header_bytes + REQUEST_BYTES;
            let least = self.ack_bytes.min(self.syn_bytes());
            (least.max(1), most.max(request).max(self.syn_bytes()))
        } else {
            (self.ack_bytes.max(1), most)
        }
    }

    /// Payload of the first so many segments.
    pub fn payload_bytes(&self, segments: u64) -> u64 {
        let bytes = segments
            .saturating_sub(1)
            .saturating_mul(u64::from(self.mss_bytes));
        bytes.min(self.bytes_to_send.unwrap_or(u64::MAX))
    }

    /// Marks are counted and reported as numbers (AccECN, RFC 9768), not echoed as one bit.
    pub(crate) fn has_accurate_ecn(&self) -> bool {
        self.ecn && self.algorithm.counts_marks()
    }

    /// Bytes of an acknowledgement on the wire: 8 for each SACK block, and the option's head with `Linux`, where a D-SACK is
    /// one more block. Counts of marks are left out where blocks leave no room for them.
    pub fn ack_wire_bytes(&self, ack: &Ack) -> u32 {
        let dsacks = u32::from(self.profile == Profile::Linux && ack.dsack.is_some());
        let sack_bytes = match (self.profile, u32::from(ack.nsack) + dsacks) {
            (_, 0) => 0,
            (Profile::Linux, blocks) => 4 + 8 * blocks,
            (Profile::Ns2, blocks) => 8 * blocks,
        };
        let stamps_bytes = 12 * u32::from(self.timestamps);
        let counts =
            self.has_accurate_ecn() && stamps_bytes + sack_bytes + COUNTS_BYTES <= OPTION_BYTES;
        self.ack_bytes + sack_bytes + COUNTS_BYTES * u32::from(counts)
    }

    /// Segments to send; `u64::MAX` without end.
    pub(super) fn segments_to_send(&self) -> u64 {
        match self.bytes_to_send {
            Some(bytes) => 1 + bytes.div_ceil(u64::from(self.mss_bytes.max(1))),
            None => u64::MAX,
        }
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
            bare: false,
            ecn_capable: false,
            marked: false,
            reduced: false,
        };
        let mut ack = Ack {
            cumulative: 1,
            sack: [Block::default(); 4],
            nsack: 0,
            window: 0,
            echo_ns: None,
            dsack: None,
            echoes_mark: false,
            marked: 0,
        };
        let linux = Config::new(Algorithm::Cubic, Profile::Linux);
        assert_eq!(linux.segment_wire_bytes(&segment(0)), 60);
        assert_eq!(linux.segment_wire_bytes(&segment(1)), 1500);
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
        let sizes = [0, 1, 2, 3].map(|n| config.segment_wire_bytes(&segment(n)));
        assert_eq!(sizes, [60, 1500, 1500, 53]);
        assert_eq!(config.least_segment_bytes(), 52);
        let payloads = [0, 1, 2, 3, 4, 9].map(|n| config.payload_bytes(n));
        assert_eq!(payloads, [0, 0, 1448, 2896, 2897, 2897]);
        let (linux, ns2) = (
            Config::new(Algorithm::Cubic, Profile::Linux),
            Config::new(Algorithm::Cubic, Profile::Ns2),
        );
        ack.nsack = 3;
        // 20 IP, 20 TCP, 12 timestamps, 4 + 24 SACK: the 40 bytes of options are full.
        let sizes = [linux.ack_wire_bytes(&ack), ns2.ack_wire_bytes(&ack)];
        assert_eq!(sizes, [80, 64]);
    }

    /// RFC 9768, section 3.2.3: two heads and two counters of 3 bytes, if 40 bytes of options have room for them.
    #[test]
    fn counts_of_marks_take_eight_bytes_where_there_is_room() {
        let mut ack = Ack {
            cumulative: 1,
            sack: [Block::default(); 4],
            nsack: 0,
            window: 0,
            echo_ns: None,
            dsack: None,
            echoes_mark: false,
            marked: 0,
        };
        let mut config = Config::new(Algorithm::Prague, Profile::Linux);
        config.ecn = true;
        assert_eq!(config.ack_wire_bytes(&ack), 60);
        ack.nsack = 2;
        assert_eq!(config.ack_wire_bytes(&ack), 60 + 20);
        ack.nsack = 3;
        assert_eq!(config.ack_wire_bytes(&ack), 52 + 28);
        config.algorithm = Algorithm::Cubic;
        ack.nsack = 0;
        assert_eq!(config.ack_wire_bytes(&ack), 52);
    }
}
