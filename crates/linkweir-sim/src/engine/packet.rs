// SPDX-License-Identifier: BSD-3-Clause
//! A packet in the simulator, copied at every step of its way.

use crate::metrics::{Recorded, Seen};
use crate::tcp::Segment;

#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) created_ns: u64,
    /// TCP: number of the segment; otherwise the recorder's number of the packet. Above it are bits: `SENT_BEFORE`, `BARE`,
    /// `LETTER`, those of ECN, and, of any packet, `IN_TOTALS`.
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
    /// It comes from outside, and carries ECT(1) or CE.
    pub(super) const L4S: u64 = Packet::BARE;
    /// In a network: it goes back, and its number is that of a letter (`station/letters.rs`).
    pub(super) const LETTER: u64 = 1 << 57;
    const SEQUENCE: u64 = Packet::LETTER - 1;

    /// How many connections at a place are told apart.
    pub(super) const GENERATIONS: u16 = 1 << 9;
    /// Places for connections of applications.
    pub(super) const PLACES: u32 = 1 << 20;
    /// Bits of a segment's number that a packet of an application carries. No window is half as wide.
    const SEQUENCE_BITS: u32 = 28;

    /// The bits that say of a segment what its number does not.
    #[inline]
    pub(super) fn marks(segment: &Segment) -> u64 {
        (u64::from(segment.retransmission) * Packet::SENT_BEFORE)
            | (u64::from(segment.bare) * Packet::BARE)
            | (u64::from(segment.ecn_capable) * Packet::ECN_CAPABLE)
            | (u64::from(segment.reduced) * Packet::REDUCED)
    }

    /// As the segment of this number.
    #[inline]
    pub(super) fn as_segment(&self, sequence: u64) -> Segment {
        Segment {
            sequence,
            retransmission: self.is_retransmission(),
            sent_ns: self.created_ns,
            bare: self.has(Packet::BARE),
            ecn_capable: self.has(Packet::ECN_CAPABLE),
            marked: self.has(Packet::MARKED),
            reduced: self.has(Packet::REDUCED),
        }
    }

    /// What marks the packets of an application's connection: the place in bits 28 to 47, the generation in 48 to 56.
    pub(super) fn tag(place: u32, generation: u16) -> u64 {
        debug_assert!(place < Packet::PLACES && generation < Packet::GENERATIONS);
        (u64::from(place) << Packet::SEQUENCE_BITS) | (u64::from(generation) << 48)
    }

    /// Place and generation of its connection, of an application.
    pub(super) fn address(&self) -> (u32, u16) {
        let place = (self.segment >> Packet::SEQUENCE_BITS) as u32 & (Packet::PLACES - 1);
        let generation = (self.segment >> 48) as u16 & (Packet::GENERATIONS - 1);
        (place, generation)
    }

    /// The bits of a segment's number that a packet of an application carries.
    pub(super) fn sequence_bits(sequence: u64) -> u64 {
        sequence & ((1 << Packet::SEQUENCE_BITS) - 1)
    }

    /// The segment of an application's connection: the number nearest to `next` that has these bits.
    pub(super) fn sequence_near(&self, next: u64) -> u64 {
        let round = 1 << Packet::SEQUENCE_BITS;
        let ahead = Packet::sequence_bits(self.segment.wrapping_sub(next));
        if ahead < round / 2 || next + ahead < round {
            next + ahead
        } else {
            next + ahead - round
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
            marked: self.has(Packet::MARKED),
            in_connection: (self.address(), Packet::sequence_bits(self.segment)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_an_application_carries_connection_and_segment() {
        for (place, generation) in [(0, 0), (1, 511), (Packet::PLACES - 1, 300)] {
            for (sequence, next) in [
                (0, 0),
                (0, 5),
                (9, 2),
                (1 << 28, (1 << 28) - 1),
                ((1 << 28) - 1, 1 << 28),
                ((7 << 28) + 3, (7 << 28) + 1_000_000),
                ((7 << 28) - 3, (7 << 28) + 1_000_000),
                ((7 << 28) + 1_000_000, 7 << 28),
            ] {
                for marks in [
                    0,
                    Packet::SENT_BEFORE,
                    Packet::IN_TOTALS,
                    Packet::BARE,
                    Packet::MARKED,
                ] {
                    let packet = Packet {
                        created_ns: 0,
                        segment: Packet::sequence_bits(sequence)
                            | Packet::tag(place, generation)
                            | marks,
                        flow: 0,
                        bytes: 0,
                    };
                    assert_eq!(packet.sequence_near(next), sequence);
                    assert_eq!(packet.address(), (place, generation));
                }
            }
        }
    }
}
