// SPDX-License-Identifier: BSD-3-Clause
//! Segments and acknowledgements.

/// Segments `start..end`, `end` excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// First segment.
    pub start: u64,
    /// One past the last segment.
    pub end: u64,
}

/// An acknowledgement of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Next segment expected.
    pub cumulative: u64,
    /// Segments held above `cumulative`, the block of the most recent arrival first.
    pub sack: [Block; 4],
    /// Valid entries of `sack`.
    pub nsack: u8,
    /// Segments above `cumulative` that the receiver has room for. `Ns2` has a fixed window instead and ignores it.
    pub window: u64,
    /// `sent_ns` of the segment whose timestamp is echoed (RFC 7323, section 4.3); `None` without timestamps.
    pub echo_ns: Option<u64>,
    /// The segment that caused this acknowledgement, if it had been received before (D-SACK, RFC 2883). With `Ns2` it feeds
    /// [`Counters::spurious`](super::Counters::spurious) and no decision.
    pub dsack: Option<u64>,
    /// A congestion mark arrived that the sender has not answered yet (ECE, RFC 3168).
    pub echoes_mark: bool,
    /// Segments with a congestion mark that arrived so far, if marks are counted (RFC 9768); else 0. On the wire there are
    /// three bits of the number, and counts of bytes in an option if there is room; here the number is exact without it, too.
    pub marked: u64,
}

/// A segment of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the segment in the stream.
    pub sequence: u64,
    /// Sent before.
    pub retransmission: bool,
    /// When it left the sender.
    pub sent_ns: u64,
    /// It carries nothing but an acknowledgement, that of the answer to the SYN; its number is 0.
    pub bare: bool,
    /// It can carry a congestion mark (ECT, RFC 3168).
    pub ecn_capable: bool,
    /// It carries one (CE).
    pub marked: bool,
    /// The sender has reduced its window for a mark (CWR).
    pub reduced: bool,
}
