// SPDX-License-Identifier: BSD-3-Clause
//! A set of sequence numbers within a sliding window, as a ring of bits with one summary bit per word.
//!
//! A number's bit is its remainder by the capacity, so the window moves without moving bits. The caller
//! keeps all numbers of the set within one capacity of each other. Finding the next member skips 4096
//! absent numbers per step: 16 steps for the largest window in use.

/// Least capacity: one summary word.
const MIN_CAPACITY: u64 = 64 * 64;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct RingBits {
    words: Vec<u64>,
    summary: Vec<u64>,
    /// Capacity - 1; the capacity is a power of two, or 0 before the first `grow`.
    mask: u64,
}

impl RingBits {
    /// Numbers the ring can hold; 0 before the first `grow`.
    pub fn capacity(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    /// Makes room for `span` consecutive numbers. The members lie in `from..to`.
    pub fn grow(&mut self, span: u64, from: u64, to: u64) {
        if span <= self.capacity() {
            return;
        }
        let capacity = span.next_power_of_two().max(MIN_CAPACITY);
        let words = (capacity / 64) as usize;
        let mut grown = RingBits {
            words: vec![0; words],
            summary: vec![0; words / 64],
            mask: capacity - 1,
        };
        let mut at = from;
        while let Some(sequence) = self.next(at, to) {
            grown.insert(sequence);
            at = sequence + 1;
        }
        *self = grown;
    }

    #[inline]
    fn locate(&self, sequence: u64) -> (usize, u64) {
        let slot = sequence & self.mask;
        ((slot / 64) as usize, 1 << (slot % 64))
    }

    /// Adds a number.
    #[inline]
    pub fn insert(&mut self, sequence: u64) {
        let (word, bit) = self.locate(sequence);
        self.words[word] |= bit;
        self.summary[word / 64] |= 1 << (word % 64);
    }

    /// Removes a number; true if it was there.
    #[inline]
    pub fn remove(&mut self, sequence: u64) -> bool {
        let (word, bit) = self.locate(sequence);
        if self.words[word] & bit == 0 {
            return false;
        }
        self.words[word] &= !bit;
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        true
    }

    /// Whether a number is a member.
    #[inline]
    pub fn contains(&self, sequence: u64) -> bool {
        let (word, bit) = self.locate(sequence);
        self.words[word] & bit != 0
    }

    /// The first member in `from..to`, a range no longer than the capacity.
    #[inline]
    pub fn next(&self, from: u64, to: u64) -> Option<u64> {
        let mut at = from;
        while at < to && !self.words.is_empty() {
            let slot = at & self.mask;
            let word = (slot / 64) as usize;
            let bits = self.words[word] >> (slot % 64);
            if bits != 0 {
                let found = at + u64::from(bits.trailing_zeros());
                return (found < to).then_some(found);
            }
            at += 64 - slot % 64;
            let word = ((at & self.mask) / 64) as usize;
            let summary = self.summary[word / 64] >> (word % 64);
            at += 64
                * if summary == 0 {
                    64 - word as u64 % 64
                } else {
                    u64::from(summary.trailing_zeros())
                };
        }
        None
    }

    /// Adds `from..to`.
    pub fn insert_range(&mut self, from: u64, to: u64) {
        self.each_word(from, to, |word, mask| *word |= mask);
    }

    /// Removes `from..to`; returns how many were members.
    pub fn remove_range(&mut self, from: u64, to: u64) -> u64 {
        let mut removed = 0;
        self.each_word(from, to, |word, mask| {
            removed += u64::from((*word & mask).count_ones());
            *word &= !mask;
        });
        removed
    }

    /// Takes over the members of a ring of the same capacity.
    pub fn copy_from(&mut self, other: &RingBits) {
        self.words.copy_from_slice(&other.words);
        self.summary.copy_from_slice(&other.summary);
    }

    #[inline]
    fn each_word(&mut self, from: u64, to: u64, mut apply: impl FnMut(&mut u64, u64)) {
        let mut at = from;
        while at < to {
            let slot = at & self.mask;
            let index = (slot / 64) as usize;
            let offset = slot % 64;
            let count = (64 - offset).min(to - at);
            let mask = (u64::MAX >> (64 - count)) << offset;
            let word = &mut self.words[index];
            apply(word, mask);
            let bit = 1 << (index % 64);
            if *word == 0 {
                self.summary[index / 64] &= !bit;
            } else {
                self.summary[index / 64] |= bit;
            }
            at += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_an_ordered_set_while_the_window_slides() {
        for seed in 1..20_u64 {
            let mut state = seed;
            let mut draw = move |bound: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % bound
            };
            let (mut ring, mut set) = (RingBits::default(), BTreeSet::new());
            let mut base = draw(1 << 40);
            let mut span = 4000;
            ring.grow(span, base, base);
            for step in 0..2000 {
                let low = base + draw(span);
                let high = base + draw(span);
                let (low, high) = (low.min(high), low.max(high));
                match draw(7) {
                    0 => {
                        ring.insert(low);
                        set.insert(low);
                    }
                    1 => assert_eq!(ring.remove(low), set.remove(&low)),
                    2 if high - low < 300 || step % 50 == 0 => {
                        ring.insert_range(low, high);
                        set.extend(low..high);
                    }
                    3 => {
                        let count = (low..high).filter(|n| set.remove(n)).count();
                        assert_eq!(ring.remove_range(low, high), count as u64);
                    }
                    4 => {
                        let count = (base..low).filter(|n| set.remove(n)).count();
                        assert_eq!(ring.remove_range(base, low), count as u64);
                        base = low;
                    }
                    5 if span < 40_000 && step % 100 == 0 => {
                        ring.grow(span * 2, base, base + span);
                        span *= 2;
                    }
                    _ => {
                        assert_eq!(ring.next(low, high), set.range(low..high).next().copied());
                        assert_eq!(ring.contains(low), set.contains(&low));
                    }
                }
            }
        }
    }
}
