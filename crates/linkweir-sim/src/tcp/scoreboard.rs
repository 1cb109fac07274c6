// SPDX-License-Identifier: BSD-3-Clause
//! Which outstanding segments are SACKed, lost or retransmitted.
//!
//! The board covers `una..high`, where `high` is one past the highest segment anything is known of; beyond
//! it every segment is in flight, first transmission. Without losses the board stays empty and costs
//! nothing. Each segment enters and leaves each set at most once per transmission, so the work per
//! acknowledgement is amortised constant; sets are bit rings (`ring_bits.rs`).

use super::ring_bits::RingBits;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    una: u64,
    high: u64,
    /// Covered and not SACKed.
    pending: RingBits,
    /// Lost, to be retransmitted: a subset of `pending`.
    queue: RingBits,
    /// Retransmitted and outstanding: a subset of `pending`, disjoint from `queue`.
    retransmitted: RingBits,
    sacked: u64,
    queued: u64,
}

/// The state of a segment on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In flight, sent once.
    Original,
    /// Lost, not yet retransmitted.
    Lost,
    /// In flight again.
    Retransmitted,
}

impl Scoreboard {
    /// Nothing is known of any segment.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.high == self.una
    }

    /// SACKed segments.
    #[inline]
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Segments that wait for retransmission.
    #[inline]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// One past the highest segment covered.
    #[inline]
    pub fn high(&self) -> u64 {
        self.high
    }

    /// Numbers the bit rings hold: a power of two, or 0.
    pub fn capacity(&self) -> u64 {
        self.pending.capacity()
    }

    /// Covers up to `to`. True if the rings were laid out again.
    pub fn cover(&mut self, to: u64) -> bool {
        if to <= self.high {
            return false;
        }
        let span = to - self.una;
        let grows = span > self.pending.capacity();
        if grows {
            for ring in [&mut self.pending, &mut self.queue, &mut self.retransmitted] {
                ring.grow(span, self.una, self.high);
            }
        }
        self.pending.insert_range(self.high, to);
        self.high = to;
        grows
    }

    /// All below `una` arrived. `retransmission` is called with each retransmitted segment among them that had not been
    /// SACKed. Returns how many of them had been SACKed before.
    #[inline]
    pub fn advance(&mut self, una: u64, retransmission: impl FnMut(u64)) -> u64 {
        if self.is_empty() {
            self.una = una;
            self.high = una;
            return 0;
        }
        self.advance_covered(una, retransmission)
    }

    fn advance_covered(&mut self, una: u64, mut retransmission: impl FnMut(u64)) -> u64 {
        let end = una.min(self.high);
        let pending = self.pending.remove_range(self.una, end);
        let sacked = end - self.una - pending;
        self.sacked -= sacked;
        if self.queued > 0 {
            self.queued -= self.queue.remove_range(self.una, end);
        }
        let mut at = self.una;
        while let Some(sequence) = self.retransmitted.next(at, end) {
            self.retransmitted.remove(sequence);
            retransmission(sequence);
            at = sequence + 1;
        }
        self.una = una;
        self.high = self.high.max(una);
        sacked
    }

    /// Takes in one SACK block, which the board must cover up to its end; `newly` is called with each segment SACKed
    /// for the first time and how it stood, in rising order.
    #[inline]
    pub fn sack(&mut self, start: u64, end: u64, mut newly: impl FnMut(u64, Standing)) {
        let mut at = start.max(self.una);
        while let Some(sequence) = self.pending.next(at, end) {
            self.pending.remove(sequence);
            self.sacked += 1;
            let standing = if self.queue.remove(sequence) {
                self.queued -= 1;
                Standing::Lost
            } else if self.retransmitted.remove(sequence) {
                Standing::Retransmitted
            } else {
                Standing::Original
            };
            newly(sequence, standing);
            at = sequence + 1;
        }
    }

    /// The first segment of `from..to` not SACKed, both within what is covered.
    #[inline]
    pub fn next_pending(&self, from: u64, to: u64) -> Option<u64> {
        self.pending.next(from, to)
    }

    /// The lowest segment from `from` on that waits for retransmission.
    #[inline]
    pub fn next_lost(&self, from: u64) -> Option<u64> {
        if self.queued == 0 {
            return None;
        }
        self.queue.next(from.max(self.una), self.high)
    }

    /// Whether a covered segment was retransmitted and is outstanding.
    #[inline]
    pub fn is_retransmitted(&self, sequence: u64) -> bool {
        self.retransmitted.contains(sequence)
    }

    /// Whether a covered segment waits for retransmission.
    #[inline]
    pub fn is_lost(&self, sequence: u64) -> bool {
        self.queue.contains(sequence)
    }

    /// A covered segment, not SACKed, is held for lost; a retransmission of it too.
    #[inline]
    pub fn mark_lost(&mut self, sequence: u64) {
        debug_assert!(self.pending.contains(sequence) && !self.queue.contains(sequence));
        self.retransmitted.remove(sequence);
        self.queue.insert(sequence);
        self.queued += 1;
    }

    /// A covered segment, not SACKed, is on its way again.
    #[inline]
    pub fn mark_retransmitted(&mut self, sequence: u64) {
        debug_assert!(self.pending.contains(sequence));
        if self.queue.remove(sequence) {
            self.queued -= 1;
        }
        self.retransmitted.insert(sequence);
    }

    /// Everything below `next` that is not SACKed is lost. True if the rings were laid out again.
    pub fn mark_all_lost(&mut self, next: u64) -> bool {
        let grown = self.cover(next);
        if !self.is_empty() {
            self.queue.copy_from(&self.pending);
            self.retransmitted.remove_range(self.una, self.high);
            self.queued = self.high - self.una - self.sacked;
        }
        grown
    }

    /// Forgets everything but `una`.
    pub fn clear(&mut self) {
        self.pending.remove_range(self.una, self.high);
        self.queue.remove_range(self.una, self.high);
        self.retransmitted.remove_range(self.una, self.high);
        self.sacked = 0;
        self.queued = 0;
        self.high = self.una;
    }
}
