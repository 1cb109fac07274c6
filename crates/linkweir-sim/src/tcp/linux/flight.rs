// SPDX-License-Identifier: BSD-3-Clause
//! The outstanding segments: when each was sent last, and whether it is SACKed, lost or retransmitted.
//!
//! Times lie in a ring, one entry per segment. Segments of which nothing is known but that they were sent have no
//! marks; marks exist only below `high`, so that without losses no set is touched. Sets are rings of bits
//! (`ring_bits.rs`), and each segment enters and leaves each of them at most once per transmission.

use std::collections::VecDeque;

use crate::tcp::ring_bits::RingBits;

pub const SACKED: u8 = 1;
/// Held for lost.
pub const LOST: u8 = 2;
/// A retransmission is in the network.
pub const RETRANS: u8 = 4;
/// Was retransmitted at some time.
pub const EVER: u8 = 8;

/// A transmission, with the state of the connection then; from these, an acknowledgement gives a delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    pub at_ns: u64,
    /// Segments delivered by then, shifted by one; lowest bit: the application limited the rate.
    delivered_2: u64,
    /// When the last of those was delivered; 0 once the transmission was counted.
    pub delivered_ns: u64,
    /// When the segment was sent whose delivery began this window.
    pub first_ns: u64,
}

impl Sent {
    pub fn new(
        at_ns: u64,
        delivered: u64,
        delivered_ns: u64,
        first_ns: u64,
        limited: bool,
    ) -> Sent {
        Sent {
            at_ns,
            delivered_2: delivered << 1 | u64::from(limited),
            delivered_ns,
            first_ns,
        }
    }

    pub fn delivered(&self) -> u64 {
        self.delivered_2 >> 1
    }

    pub fn is_app_limited(&self) -> bool {
        self.delivered_2 & 1 != 0
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Flight {
    una: u64,
    next: u64,
    /// One past the highest segment with marks.
    high: u64,
    mask: u64,
    sent: Vec<Sent>,
    marks: Vec<u8>,
    /// Below `high` and not SACKed.
    open: RingBits,
    /// Of those, the ones sent once and not yet held for lost by RACK.
    fresh: RingBits,
    /// Lost, to be retransmitted.
    queue: RingBits,
    /// Retransmissions in the order they were sent, with their times; those that no longer count are dropped when they
    /// come to the front.
    again: VecDeque<(u64, u64)>,
    sacked: u64,
    lost: u64,
    retrans: u64,
    /// Losses ever, lost retransmissions included.
    losses: u64,
    /// One past the highest segment ever SACKed.
    sacked_below: u64,
}

const MIN_CAPACITY: usize = 64;

impl Flight {
    pub fn new() -> Flight {
        Flight {
            una: 0,
            next: 0,
            high: 0,
            mask: MIN_CAPACITY as u64 - 1,
            sent: vec![Sent::default(); MIN_CAPACITY],
            marks: vec![0; MIN_CAPACITY],
            open: RingBits::default(),
            fresh: RingBits::default(),
            queue: RingBits::default(),
            again: VecDeque::new(),
            sacked: 0,
            lost: 0,
            retrans: 0,
            losses: 0,
            sacked_below: 0,
        }
    }

    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Outstanding segments.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    #[inline]
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    #[inline]
    pub fn retrans(&self) -> u64 {
        self.retrans
    }

    #[inline]
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Segments held to be in the network.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.next - self.una - self.sacked - self.lost + self.retrans
    }

    /// One past the highest segment SACKed; `una` if none is.
    #[inline]
    pub fn sacked_below(&self) -> u64 {
        if self.sacked == 0 {
            self.una
        } else {
            self.sacked_below
        }
    }

    #[inline]
    pub fn marks(&self, sequence: u64) -> u8 {
        self.marks[(sequence & self.mask) as usize]
    }

    #[inline]
    pub fn sent(&self, sequence: u64) -> &Sent {
        &self.sent[(sequence & self.mask) as usize]
    }

    /// The transmission is counted; it will not be again.
    #[inline]
    pub fn count(&mut self, sequence: u64) {
        self.sent[(sequence & self.mask) as usize].delivered_ns = 0;
    }

    /// Sends the next new segment; returns its number.
    #[inline]
    pub fn push(&mut self, sent: Sent) -> u64 {
        if self.next - self.una > self.mask {
            self.grow();
        }
        let sequence = self.next;
        let at = (sequence & self.mask) as usize;
        self.sent[at] = sent;
        self.marks[at] = 0;
        self.next += 1;
        sequence
    }

    #[cold]
    fn grow(&mut self) {
        let capacity = 2 * self.sent.len();
        let mask = capacity as u64 - 1;
        let (mut sent, mut marks) = (vec![Sent::default(); capacity], vec![0; capacity]);
        for sequence in self.una..self.next {
            sent[(sequence & mask) as usize] = *self.sent(sequence);
            marks[(sequence & mask) as usize] = self.marks(sequence);
        }
        (self.sent, self.marks, self.mask) = (sent, marks, mask);
    }

    /// Lets the segments below `to` have marks.
    #[inline]
    fn cover(&mut self, to: u64) {
        if to <= self.high {
            return;
        }
        let from = self.high.max(self.una);
        for ring in [&mut self.open, &mut self.fresh, &mut self.queue] {
            ring.grow(to - self.una, self.una, from);
        }
        self.open.insert_range(from, to);
        self.fresh.insert_range(from, to);
        self.high = to;
    }

    /// Acknowledges one segment more; returns its marks.
    #[inline]
    pub fn acknowledge(&mut self) -> u8 {
        let sequence = self.una;
        self.una += 1;
        if sequence >= self.high {
            return 0;
        }
        let marks = self.marks(sequence);
        self.retrans -= u64::from(marks & RETRANS != 0);
        self.lost -= u64::from(marks & LOST != 0);
        if marks & SACKED != 0 {
            self.sacked -= 1;
        } else {
            self.open.remove(sequence);
            self.fresh.remove(sequence);
            self.queue.remove(sequence);
        }
        marks
    }

    /// The first segment of `from..to` that is not SACKed.
    #[inline]
    pub fn next_open(&mut self, from: u64, to: u64) -> Option<u64> {
        self.cover(to);
        self.open.next(from.max(self.una), to)
    }

    /// SACKs a segment that is not; returns its marks before. A retransmission of it that was answered by this no longer
    /// counts as in the network.
    pub fn sack(&mut self, sequence: u64) -> u8 {
        let before = self.marks(sequence);
        debug_assert!(before & SACKED == 0 && sequence < self.high);
        let mut marks = before;
        if before & LOST != 0 {
            self.lost -= 1;
            marks &= !LOST;
            if before & RETRANS != 0 {
                self.retrans -= 1;
                marks &= !RETRANS;
            } else {
                self.queue.remove(sequence);
            }
        }
        self.open.remove(sequence);
        self.fresh.remove(sequence);
        self.sacked += 1;
        self.sacked_below = self.sacked_below.max(sequence + 1);
        self.marks[(sequence & self.mask) as usize] = marks | SACKED;
        before
    }

    /// A segment received twice: its retransmission is no longer in the network.
    pub fn end_retransmission(&mut self, sequence: u64) {
        let marks = &mut self.marks[(sequence & self.mask) as usize];
        if *marks & RETRANS != 0 {
            *marks &= !RETRANS;
            self.retrans -= 1;
        }
    }

    /// Holds a segment for lost, or its retransmission if it already was.
    pub fn mark_lost(&mut self, sequence: u64) {
        self.cover(sequence + 1);
        let at = (sequence & self.mask) as usize;
        let marks = self.marks[at];
        if marks & SACKED != 0 {
            return;
        }
        if marks & LOST == 0 {
            self.marks[at] |= LOST;
            self.lost += 1;
            self.losses += 1;
            if marks & RETRANS == 0 {
                self.queue.insert(sequence);
            }
        } else if marks & RETRANS != 0 {
            self.marks[at] &= !RETRANS;
            self.retrans -= 1;
            self.losses += 1;
            self.queue.insert(sequence);
        }
    }

    /// No segment is held for lost any more.
    pub fn unmark_lost(&mut self) {
        for sequence in self.una..self.high.max(self.una) {
            self.marks[(sequence & self.mask) as usize] &= !LOST;
        }
        if self.high > self.una {
            self.queue.remove_range(self.una, self.high);
        }
        self.lost = 0;
    }

    /// The lowest segment that waits for retransmission.
    #[inline]
    pub fn next_lost(&self) -> Option<u64> {
        if self.lost <= self.retrans {
            return None;
        }
        self.queue.next(self.una, self.high)
    }

    /// Sends a segment again; `counted`: its retransmission counts as in the network, other than a probe's.
    pub fn retransmit(&mut self, sequence: u64, sent: Sent, counted: bool) {
        self.cover(sequence + 1);
        let at = (sequence & self.mask) as usize;
        self.sent[at] = sent;
        self.marks[at] |= EVER;
        self.fresh.remove(sequence);
        if counted && self.marks[at] & RETRANS == 0 {
            self.marks[at] |= RETRANS;
            self.retrans += 1;
            self.queue.remove(sequence);
        }
        if self.marks[at] & SACKED == 0 {
            self.again.push_back((sequence, sent.at_ns));
        }
    }

    /// RACK's list of segments by the time of their last transmission: calls `judge` with each that was sent before
    /// (`at_ns`, `sequence`), is neither SACKed nor waits for retransmission; it says whether the segment is lost.
    pub fn each_sent_before(
        &mut self,
        (at_ns, end): (u64, u64),
        mut judge: impl FnMut(u64) -> bool,
    ) {
        let before = |sent_ns: u64, sequence: u64| {
            sent_ns < at_ns || (sent_ns == at_ns && sequence + 1 < end)
        };
        // Those sent once: their order is that of their numbers.
        let mut at = self.una;
        while at < self.next {
            if at >= self.high {
                if !before(self.sent(at).at_ns, at) {
                    break;
                }
                self.cover(at + 1);
            }
            let Some(sequence) = self.fresh.next(at, self.high) else {
                at = self.high;
                continue;
            };
            let sent_ns = self.sent(sequence).at_ns;
            if !before(sent_ns, sequence) {
                break;
            }
            if self.marks(sequence) & LOST == 0 && judge(sent_ns) {
                self.fresh.remove(sequence);
                self.mark_lost(sequence);
            }
            at = sequence + 1;
        }
        let mut nth = 0;
        while let Some(&(sequence, sent_ns)) = self.again.get(nth) {
            let marks = self.marks(sequence);
            let stale =
                sequence < self.una || marks & SACKED != 0 || self.sent(sequence).at_ns != sent_ns;
            if stale && nth == 0 {
                self.again.pop_front();
                continue;
            }
            // One that a timeout held for lost stays: the timeout may have been spurious.
            if !stale && marks & (LOST | RETRANS) != LOST {
                if !before(sent_ns, sequence) {
                    break;
                }
                if judge(sent_ns) {
                    self.mark_lost(sequence);
                    self.again.remove(nth);
                    continue;
                }
            }
            nth += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// One segment, in the words of the kernel: SACKED, LOST, RETRANS and EVER, and whether it is in the list of RACK.
    #[derive(Clone, Copy, Debug)]
    struct Plain {
        marks: u8,
        sent_ns: u64,
        listed: bool,
    }

    #[derive(Default)]
    struct Naive {
        segments: BTreeMap<u64, Plain>,
        losses: u64,
    }

    impl Naive {
        fn count(&self, mark: u8) -> u64 {
            self.segments
                .values()
                .filter(|s| s.marks & mark != 0)
                .count() as u64
        }

        fn mark_lost(&mut self, sequence: u64) {
            let segment = self.segments.get_mut(&sequence).unwrap();
            if segment.marks & SACKED != 0 {
                return;
            }
            if segment.marks & LOST == 0 {
                segment.marks |= LOST;
                self.losses += 1;
            } else if segment.marks & RETRANS != 0 {
                segment.marks &= !RETRANS;
                self.losses += 1;
            }
        }

        fn next_lost(&self) -> Option<u64> {
            if self.count(LOST) <= self.count(RETRANS) {
                return None;
            }
            let waits = |s: &Plain| s.marks & (LOST | RETRANS | SACKED) == LOST;
            self.segments
                .iter()
                .find(|(_, s)| waits(s))
                .map(|(n, _)| *n)
        }

        /// All that RACK looks at, in the order in which it was sent.
        fn sent_before(&self, at_ns: u64, end: u64) -> Vec<(u64, u64)> {
            let mut list: Vec<(u64, u64)> = self
                .segments
                .iter()
                .filter(|(_, s)| s.listed && s.marks & SACKED == 0)
                .filter(|(_, s)| s.marks & (LOST | RETRANS) != LOST)
                .map(|(n, s)| (s.sent_ns, *n))
                .filter(|(sent_ns, n)| (*sent_ns, n + 1) < (at_ns, end))
                .collect();
            list.sort_unstable();
            list
        }
    }

    fn life(seed: u64) {
        let mut state = seed;
        let mut draw = move |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let (mut flight, mut naive) = (Flight::new(), Naive::default());
        for now_ns in 1..4000_u64 {
            let any = |draw: &mut dyn FnMut(u64) -> u64, flight: &Flight| {
                flight.una() + draw(flight.outstanding().max(1))
            };
            match draw(12) {
                0..=4 => {
                    let sequence = flight.push(Sent::new(now_ns, 0, 1, 0, false));
                    let plain = Plain {
                        marks: 0,
                        sent_ns: now_ns,
                        listed: true,
                    };
                    assert!(naive.segments.insert(sequence, plain).is_none());
                }
                5 => {
                    for _ in 0..draw(4).min(flight.outstanding()) {
                        let (_, plain) = naive.segments.pop_first().unwrap();
                        assert_eq!(flight.acknowledge(), plain.marks);
                    }
                }
                6 => {
                    let from = any(&mut draw, &flight);
                    let to = (from + draw(4)).min(flight.next());
                    let expected = naive
                        .segments
                        .range(from..to.max(from))
                        .find(|(_, s)| s.marks & SACKED == 0)
                        .map(|(n, _)| *n);
                    assert_eq!(flight.next_open(from, to), expected);
                    if let Some(sequence) = expected {
                        let plain = naive.segments.get_mut(&sequence).unwrap();
                        assert_eq!(flight.sack(sequence), plain.marks);
                        if plain.marks & LOST != 0 {
                            plain.marks &= !(LOST | RETRANS);
                        }
                        plain.marks |= SACKED;
                        plain.listed = false;
                    }
                }
                7 if flight.outstanding() > 0 => {
                    let sequence = any(&mut draw, &flight);
                    flight.mark_lost(sequence);
                    naive.mark_lost(sequence);
                }
                8 | 9 => {
                    let lost = naive.next_lost();
                    assert_eq!(flight.next_lost(), lost);
                    if let Some(sequence) = lost {
                        flight.retransmit(sequence, Sent::new(now_ns, 0, 1, 0, false), true);
                        let plain = naive.segments.get_mut(&sequence).unwrap();
                        plain.marks |= RETRANS | EVER;
                        (plain.sent_ns, plain.listed) = (now_ns, true);
                    }
                }
                10 if draw(8) == 0 => {
                    flight.unmark_lost();
                    for plain in naive.segments.values_mut() {
                        plain.marks &= !LOST;
                    }
                }
                11 => {
                    let (at_ns, end) = (now_ns - draw(60).min(now_ns), draw(4000));
                    let lost_before_ns = at_ns.saturating_sub(draw(40));
                    let mut judged = Vec::new();
                    flight.each_sent_before((at_ns, end), |sent_ns| {
                        judged.push(sent_ns);
                        sent_ns < lost_before_ns
                    });
                    let list = naive.sent_before(at_ns, end);
                    judged.sort_unstable();
                    let expected: Vec<u64> = list.iter().map(|entry| entry.0).collect();
                    assert_eq!(judged, expected, "seed {seed} at {now_ns}");
                    for (sent_ns, sequence) in list {
                        if sent_ns < lost_before_ns {
                            naive.mark_lost(sequence);
                            naive.segments.get_mut(&sequence).unwrap().listed = false;
                        }
                    }
                }
                _ => {}
            }
            let counts = [flight.sacked(), flight.lost(), flight.retrans()];
            assert_eq!(
                counts,
                [SACKED, LOST, RETRANS].map(|mark| naive.count(mark))
            );
            assert_eq!(flight.losses(), naive.losses);
            let outstanding = naive.segments.len() as u64;
            assert_eq!(flight.outstanding(), outstanding);
            assert_eq!(
                flight.in_flight(),
                outstanding - counts[0] - counts[1] + counts[2]
            );
            let highest = naive.segments.iter().rfind(|(_, s)| s.marks & SACKED != 0);
            if let Some((sequence, _)) = highest {
                assert_eq!(flight.sacked_below(), sequence + 1);
            }
        }
    }

    #[test]
    fn agrees_with_a_map_that_is_looked_through() {
        for seed in 1..=60 {
            life(seed);
        }
    }
}
