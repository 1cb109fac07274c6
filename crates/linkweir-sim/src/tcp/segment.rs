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
    /// `sent_ns` of the segment whose timestamp is echoed (RFC 7323, section 4.3); `None` without timestamps.
    pub echo_ns: Option<u64>,
    /// The segment that caused this acknowledgement had been received before (as D-SACK reports, RFC 2883).
    /// It feeds [`Counters::spurious`](super::Counters::spurious) and no decision.
    pub duplicate: bool,
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
}
