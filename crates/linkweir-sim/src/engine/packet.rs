// SPDX-License-Identifier: BSD-3-Clause
//! A packet in the simulator, copied at every step of its way.

use crate::metrics::{Recorded, Seen};

#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) created_ns: u64,
    /// TCP: number of the segment; otherwise the recorder's number of the packet. Above it are two bits, `SENT_BEFORE` and, of any packet, `IN_TOTALS`.
    pub(super) segment: u64,
    pub(super) flow: u32,
    /// Its own bytes, without the link's overhead.
    pub(super) bytes: u32,
}

impl Packet {
    pub(super) const SENT_BEFORE: u64 = 1 << 63;
    pub(super) const IN_TOTALS: u64 = 1 << 62;

    /// TCP: number of the segment; otherwise the recorder's number.
    pub(super) fn sequence(&self) -> u64 {
        self.segment & !(Packet::SENT_BEFORE | Packet::IN_TOTALS)
    }

    /// It arrived at its queue after the warm-up.
    pub(super) fn is_in_totals(&self) -> bool {
        self.segment & Packet::IN_TOTALS != 0
    }

    pub(super) fn is_retransmission(&self) -> bool {
        self.segment & Packet::SENT_BEFORE != 0
    }
}

impl Recorded for Packet {
    #[inline]
    fn flow(&self) -> usize {
        self.flow as usize
    }

    #[inline]
    fn bytes(&self) -> u32 {
        self.bytes
    }

    #[inline]
    fn created_ns(&self) -> u64 {
        self.created_ns
    }

    #[inline]
    fn seen(&self) -> Seen {
        Seen {
            flow: self.flow,
            bytes: self.bytes,
            created_ns: self.created_ns,
            number: self.sequence(),
            again: self.is_retransmission(),
        }
    }
}
