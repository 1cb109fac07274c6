// SPDX-License-Identifier: BSD-3-Clause
//! The receiver of the `Ns2` profile, TCPSink/Sack1: every segment is acknowledged at once, or every second with
//! delayed acknowledgements.
//!
//! The SACK blocks are: the block of the segment received, unless it is below the cumulative acknowledgement, and the first
//! blocks of the last three acknowledgements that had one, as they were then, except those the new block or the cumulative
//! acknowledgement contains. Blocks no longer among these are never reported again, which slows down the recoveries of the
//! original and of this model.

use std::collections::VecDeque;

use super::blocks;
use super::config::Config;
use super::segment::{Ack, Block, Segment};

/// SACK blocks an acknowledgement carries.
const MOST_BLOCKS: usize = 3;

/// See the module.
#[derive(Clone, Debug)]
pub struct Receiver {
    next: u64,
    /// Blocks held above `next`, ascending, not adjacent.
    held: VecDeque<Block>,
    /// The blocks that were reported last, most recent first, as they were then.
    recent: [Block; 4],
    nrecent: usize,
    timestamps: bool,
    echo_ns: u64,
    /// `cumulative` of the last acknowledgement.
    last_acked: u64,
    delayed_ack: bool,
    delay_ns: u64,
    quick_left: u32,
    /// When the acknowledgement held back is due; `u64::MAX`: none is.
    deadline_ns: u64,
}

impl Receiver {
    /// A receiver that expects segment 0.
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            next: 0,
            held: VecDeque::with_capacity(16),
            recent: [Block::default(); 4],
            nrecent: 0,
            timestamps: config.timestamps,
            echo_ns: 0,
            last_acked: 0,
            delayed_ack: config.delayed_ack,
            delay_ns: config.delayed_ack_ns,
            quick_left: config.quick_ack_segments,
            deadline_ns: u64::MAX,
        }
    }

    /// A segment arrived; returns the acknowledgement to send now, if one is due.
    #[inline]
    pub fn on_segment(&mut self, now_ns: u64, segment: &Segment) -> Option<Ack> {
        let sequence = segment.sequence;
        if sequence <= self.last_acked {
            self.echo_ns = segment.sent_ns;
        }
        if sequence == self.next && self.held.is_empty() {
            self.next += 1;
            if !self.delayed_ack {
                return Some(self.acknowledge(None));
            }
            if self.quick_left > 0 {
                self.quick_left -= 1;
                return Some(self.acknowledge(None));
            }
            if self.next - self.last_acked >= 2 {
                return Some(self.acknowledge(None));
            }
            self.deadline_ns = now_ns + self.delay_ns;
            return None;
        }
        let duplicate = self.hold(sequence);
        let mut ack = self.acknowledge(duplicate.then_some(sequence));
        self.report(&mut ack, sequence);
        Some(ack)
    }

    /// When an acknowledgement held back is due.
    #[inline]
    pub fn deadline_ns(&self) -> Option<u64> {
        (self.deadline_ns != u64::MAX).then_some(self.deadline_ns)
    }

    /// The acknowledgement held back, if it is due.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Ack> {
        (now_ns >= self.deadline_ns).then(|| self.acknowledge(None))
    }

    /// Segments received in order.
    #[inline]
    pub fn delivered_segments(&self) -> u64 {
        self.next
    }

    /// Takes in a segment while others are missing, or a duplicate; true for a duplicate.
    fn hold(&mut self, sequence: u64) -> bool {
        if sequence < self.next {
            return true;
        }
        if sequence == self.next {
            self.next += 1;
            if let Some(first) = self.held.front().filter(|first| first.start == self.next) {
                self.next = first.end;
                self.held.pop_front();
            }
            return false;
        }
        blocks::add(&mut self.held, sequence)
    }

    #[inline]
    fn acknowledge(&mut self, dsack: Option<u64>) -> Ack {
        self.last_acked = self.next;
        self.deadline_ns = u64::MAX;
        Ack {
            cumulative: self.next,
            sack: [Block::default(); 4],
            nsack: 0,
            window: 0,
            echo_ns: self.timestamps.then_some(self.echo_ns),
            dsack,
            echoes_mark: false,
            marked: 0,
        }
    }

    /// The block held that contains `sequence`.
    fn block_of(&self, sequence: u64) -> Option<Block> {
        let at = self.held.partition_point(|block| block.end <= sequence);
        self.held
            .get(at)
            .copied()
            .filter(|block| block.start <= sequence)
    }

    /// Fills in the SACK blocks as TCPSink/Sack1 does; see the module.
    fn report(&mut self, ack: &mut Ack, sequence: u64) {
        if self.held.is_empty() {
            self.nrecent = 0;
            return;
        }
        let mut count = 0;
        let reported = self.block_of(sequence);
        if let Some(block) = reported {
            ack.sack[0] = block;
            count = 1;
        }
        let covers = reported.unwrap_or(Block {
            start: 0,
            end: self.next,
        });
        let mut at = 0;
        while count < MOST_BLOCKS && at < self.nrecent {
            let earlier = self.recent[at];
            if covers.start <= earlier.start && earlier.end <= covers.end {
                self.recent.copy_within(at + 1..self.nrecent, at);
                self.nrecent -= 1;
                continue;
            }
            ack.sack[count] = earlier;
            count += 1;
            at += 1;
        }
        if let Some(block) = reported {
            self.nrecent = self.nrecent.min(MOST_BLOCKS - 1);
            self.push_recent(block);
        }
        ack.nsack = count as u8;
    }

    fn push_recent(&mut self, block: Block) {
        let kept = self.nrecent.min(self.recent.len() - 1);
        self.recent.copy_within(0..kept, 1);
        self.recent[0] = block;
        self.nrecent = kept + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Algorithm, Profile};

    fn receive(receiver: &mut Receiver, sequences: &[u64]) -> Vec<Vec<(u64, u64)>> {
        let segment = |sequence| Segment {
            sequence,
            retransmission: false,
            sent_ns: 0,
            bare: false,
            ecn_capable: false,
            marked: false,
            reduced: false,
        };
        sequences
            .iter()
            .filter_map(|&n| receiver.on_segment(0, &segment(n)))
            .map(|ack| {
                ack.sack[..usize::from(ack.nsack)]
                    .iter()
                    .map(|block| (block.start, block.end))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn blocks_of_the_ns2_sink() {
        let mut receiver = Receiver::new(&Config::new(Algorithm::NewReno, Profile::Ns2));
        let reported = receive(&mut receiver, &[2, 6, 10, 14, 7, 8, 9, 15, 2, 0, 1, 3]);
        assert_eq!(reported[3], [(14, 15), (10, 11), (6, 7)]);
        // 6 to 7 has left the three remembered; the block that holds 7 is reported in full.
        assert_eq!(reported[4], [(6, 8), (14, 15), (10, 11)]);
        assert_eq!(reported[6], [(6, 11), (14, 15)]);
        assert_eq!(reported[7], [(14, 16), (6, 11)]);
        // A duplicate is reported like a new segment.
        assert_eq!(reported[8], [(2, 3), (14, 16), (6, 11)]);
        assert_eq!(reported[9], [(2, 3), (14, 16), (6, 11)]);
        assert_eq!(reported[10], [(14, 16), (6, 11)]);
        assert_eq!(reported[11], [(14, 16), (6, 11)]);
    }
}
