// SPDX-License-Identifier: BSD-3-Clause
//! A packet in the simulator, copied at every step of its way.

use crate::metrics::Seen;

#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) created_ns: u64,
    /// TCP: number of the segment; otherwise the recorder's number of the packet. Above it are bits: `SENT_BEFORE`, `BARE`,
    /// those of ECN, and, of any packet, `IN_TOTALS`.
    pub(super) segment: u64,
    pub(super) flow: u32,
    /// Its own bytes, without the link's overhead.
    pub(super) bytes: u32,
}

impl Packet {
    pub(super) const SENT_BEFORE: u64 = 1 << 63;
    pub(super) const IN_TOTALS: u64 = 1 << 62;
    /// It can carry a congestion mark (ECT).
    pub(super) const ECN_CAPABLE: u64 = 1 << 61;
    /// It carries one (CE).
    pub(super) const MARKED: u64 = 1 << 60;
    /// Its sender reduced the window for a mark (CWR).
    pub(super) const REDUCED: u64 = 1 << 59;
    /// It only acknowledges the answer to a SYN.
    pub(super) const BARE: u64 = 1 << 58;
    const SEQUENCE: u64 = Packet::BARE - 1;

    /// What the recorder sees of it.
    #[inline]
    pub(super) fn seen(&self) -> Seen {
        Seen {
            flow: self.flow,
            bytes: self.bytes,
            created_ns: self.created_ns,
            number: self.sequence(),
            again: self.is_retransmission(),
        }
    }

    /// TCP: number of the segment; otherwise the recorder's number.
    pub(super) fn sequence(&self) -> u64 {
        self.segment & Packet::SEQUENCE
    }

    /// It arrived at its queue after the warm-up.
    pub(super) fn is_in_totals(&self) -> bool {
        self.segment & Packet::IN_TOTALS != 0
    }

    pub(super) fn has(&self, bit: u64) -> bool {
        self.segment & bit != 0
    }

    pub(super) fn is_retransmission(&self) -> bool {
        self.segment & Packet::SENT_BEFORE != 0
    }
}
