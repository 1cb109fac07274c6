// SPDX-License-Identifier: BSD-3-Clause
//! The receiver of the `Linux` profile: cumulative and selective acknowledgements (RFC 2018), reports of segments received
//! twice (RFC 2883), delayed, quick and compressed acknowledgements as in Linux 6.12, and the echo of congestion marks
//! (RFC 3168, section 6.1.3).
//!
//! Every second segment is acknowledged, or a single one after 40 to 200 ms, by the pace at which segments come. At once:
//! the first segments of a connection, 16 after one received twice, two after a mark, a segment that fills the last gap,
//! and the first three while the same segment is missing. Further ones wait for a twentieth of the round-trip time, at most
//! 1 ms, so that one acknowledgement reports them together.

use std::collections::VecDeque;

use super::clock::Clock;
use crate::tcp::config::Config;
use crate::tcp::segment::{Ack, Block, Segment};

const DELAYED_MAX_NS: u64 = 200_000_000;
/// Acknowledgements at once after a segment received twice, and after a mark.
const QUICK_AFTER_DUPLICATE: u32 = 16;
const QUICK_AFTER_MARK: u32 = 2;
/// Acknowledgements at once while the same segment is missing.
const DUPLICATES_AT_ONCE: u32 = 3;
/// A compressed acknowledgement reports at most so many segments, after at most so long; the kernel's timer may be late by
/// its slack.
const COMPRESSED_MOST: u32 = 44;
const COMPRESSED_NS: u64 = 1_000_000;
const COMPRESSED_SLACK_NS: u64 = 100_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Receiver {
    clock: Clock,
    next: u64,
    /// Blocks held above `next`, ascending, not adjacent.
    held: VecDeque<Block>,
    /// One member of each of the blocks that arrived last, most recent first.
    recent: [u64; 4],
    nrecent: usize,
    /// SACK blocks an acknowledgement carries.
    max_blocks: usize,
    timestamps: bool,
    echo_ns: u64,
    /// `cumulative` of the last acknowledgement.
    last_acked: u64,

    delays: bool,
    quick_at_start: u32,
    quick: u32,
    /// Least delay, and the present one, ticks; 0 before the first segment.
    delay_min: u64,
    delay: u64,
    delay_fires_ns: u64,
    last_came: u64,
    /// Segments that wait in a compressed acknowledgement; segments acknowledged at once, and the one missing meanwhile.
    compressed: u32,
    compressed_fires_ns: u64,
    at_once: u32,
    at_once_next: u64,

    syn_ns: u64,
    rtt_ns: u64,
    rto: u64,
    min_rto_ns: u64,

    ecn: bool,
    ecn_seen: bool,
    echoes_mark: bool,
}

impl Receiver {
    /// A receiver that expects segment 0.
    pub fn new(config: &Config) -> Receiver {
        let clock = Clock::new(config.tick_ns);
        Receiver {
            clock,
            next: 0,
            held: VecDeque::with_capacity(16),
            recent: [0; 4],
            nrecent: 0,
            max_blocks: if config.timestamps { 3 } else { 4 },
            timestamps: config.timestamps,
            echo_ns: 0,
            last_acked: 0,
            delays: config.delayed_ack,
            quick_at_start: config.quick_ack_segments,
            quick: 0,
            delay_min: clock.ticks_for(config.delayed_ack_ns),
            delay: 0,
            delay_fires_ns: u64::MAX,
            last_came: 0,
            compressed: 0,
            compressed_fires_ns: u64::MAX,
            at_once: 0,
            at_once_next: 0,
            syn_ns: 0,
            rtt_ns: 0,
            rto: clock.ticks_for(config.initial_rto_ns),
            min_rto_ns: config.min_rto_ns,
            ecn: config.ecn,
            ecn_seen: false,
            echoes_mark: false,
        }
    }

    /// A segment arrived; returns the acknowledgement to send now, if one is due.
    #[inline]
    pub fn on_segment(&mut self, now_ns: u64, segment: &Segment) -> Option<Ack> {
        let sequence = segment.sequence;
        if sequence <= self.last_acked {
            self.echo_ns = segment.sent_ns;
        }
        if sequence == 0 {
            self.syn_ns = now_ns;
            self.next = self.next.max(1);
            return Some(self.acknowledge(None));
        }
        let mut now = false;
        if self.ecn {
            now = self.see_mark(segment);
        }
        if sequence < self.next {
            self.acknowledge_quickly(QUICK_AFTER_DUPLICATE);
            return Some(self.acknowledge(Some(sequence)));
        }
        if sequence > self.next {
            let duplicate = self.hold(sequence);
            return self.answer(now_ns, now, duplicate.then_some(sequence));
        }
        self.pace(now_ns);
        self.next += 1;
        if let Some(first) = self.held.front().filter(|first| first.start == self.next) {
            self.next = first.end;
            self.held.pop_front();
            now |= self.held.is_empty();
        }
        self.answer(now_ns, now, None)
    }

    /// When an acknowledgement held back is due.
    #[inline]
    pub fn deadline_ns(&self) -> Option<u64> {
        let at_ns = self.delay_fires_ns.min(self.compressed_fires_ns);
        (at_ns != u64::MAX).then_some(at_ns)
    }

    /// The acknowledgement held back, if it is due.
    pub fn on_timer(&mut self, now_ns: u64) -> Option<Ack> {
        if now_ns >= self.compressed_fires_ns {
            return Some(self.acknowledge(None));
        }
        if now_ns < self.delay_fires_ns {
            return None;
        }
        let most = self.rto.min(self.clock.ticks_for(DELAYED_MAX_NS));
        self.delay = (self.delay << 1).min(most);
        Some(self.acknowledge(None))
    }

    /// Segments received in order.
    #[inline]
    pub fn delivered_segments(&self) -> u64 {
        self.next
    }

    /// Adapts the delay to the gaps between segments in order.
    #[inline]
    fn pace(&mut self, now_ns: u64) {
        let tick = self.clock.ticks(now_ns);
        if self.delay == 0 {
            self.delay = self.delay_min;
            self.quick = self.quick.max(self.quick_at_start);
            self.rtt_ns = now_ns - self.syn_ns;
            let variance_ns = (2 * self.rtt_ns).max(self.min_rto_ns);
            self.rto = self.clock.ticks_for(self.rtt_ns + variance_ns);
        } else {
            let gap = tick - self.last_came;
            if gap <= self.delay_min / 2 {
                self.delay = (self.delay >> 1) + self.delay_min / 2;
            } else if gap < self.delay {
                let most = self.rto.min(self.clock.ticks_for(DELAYED_MAX_NS));
                self.delay = ((self.delay >> 1) + gap).min(most);
            } else if gap > self.rto {
                self.quick = self.quick.max(self.quick_at_start);
            }
        }
        self.last_came = tick;
    }

    /// Takes in the marks of a segment; true: they must be answered at once.
    fn see_mark(&mut self, segment: &Segment) -> bool {
        if segment.reduced {
            self.echoes_mark = false;
        }
        if segment.marked {
            if !self.echoes_mark {
                self.acknowledge_quickly(QUICK_AFTER_MARK);
                self.echoes_mark = true;
            }
            self.ecn_seen = true;
        } else if segment.ecn_capable {
            self.ecn_seen = true;
        } else if self.ecn_seen {
            // Probably a retransmission.
            self.acknowledge_quickly(QUICK_AFTER_MARK);
        }
        segment.reduced
    }

    fn acknowledge_quickly(&mut self, segments: u32) {
        self.quick = self.quick.max(segments);
        self.delay = self.delay_min;
    }

    /// Acknowledges now, later, or together with others.
    #[inline]
    fn answer(&mut self, now_ns: u64, now: bool, dsack: Option<u64>) -> Option<Ack> {
        if now || !self.delays || self.quick > 0 || self.next - self.last_acked >= 2 {
            return Some(self.acknowledge(dsack));
        }
        if self.held.is_empty() {
            return self.delay(now_ns);
        }
        if self.at_once_next != self.next {
            self.at_once_next = self.next;
            self.at_once = 0;
        }
        if self.at_once < DUPLICATES_AT_ONCE {
            self.at_once += 1;
            return Some(self.acknowledge(dsack));
        }
        if self.compressed >= COMPRESSED_MOST || dsack.is_some() {
            return Some(self.acknowledge(dsack));
        }
        self.compressed += 1;
        if self.compressed_fires_ns == u64::MAX {
            let delay_ns = (self.rtt_ns / 20).min(COMPRESSED_NS);
            self.compressed_fires_ns = now_ns + delay_ns + COMPRESSED_SLACK_NS;
        }
        None
    }

    #[inline]
    fn delay(&mut self, now_ns: u64) -> Option<Ack> {
        let mut ticks = self.delay;
        if ticks > self.delay_min {
            let rtt = self.clock.ticks(self.rtt_ns).max(self.delay_min);
            ticks = ticks.min(rtt).min(self.clock.ticks_for(500_000_000));
        }
        let most = self
            .clock
            .ticks_for(self.min_rto_ns.min(DELAYED_MAX_NS))
            .max(2)
            - 1;
        ticks = ticks.min(most);
        self.delay_fires_ns = self.clock.fires_ns(now_ns, ticks);
        None
    }

    /// Holds a segment while others are missing; true for one that is held already.
    fn hold(&mut self, sequence: u64) -> bool {
        // The first block that ends at or after `sequence`.
        let at = self.held.partition_point(|block| block.end < sequence);
        let mut duplicate = false;
        match self.held.get(at).copied() {
            Some(block) if block.start <= sequence && sequence < block.end => duplicate = true,
            Some(block) if block.end == sequence => {
                let next = self.held.get(at + 1).copied();
                if let Some(next) = next.filter(|next| next.start == sequence + 1) {
                    self.held[at].end = next.end;
                    self.held.remove(at + 1);
                } else {
                    self.held[at].end += 1;
                }
            }
            Some(block) if block.start == sequence + 1 => self.held[at].start = sequence,
            _ => self.held.insert(
                at,
                Block {
                    start: sequence,
                    end: sequence + 1,
                },
            ),
        }
        let kept = self.nrecent.min(self.recent.len() - 1);
        self.recent.copy_within(0..kept, 1);
        self.recent[0] = sequence;
        self.nrecent = kept + 1;
        duplicate
    }

    /// The acknowledgement of all that arrived; `dsack`: the segment that caused it had arrived before.
    #[inline]
    fn acknowledge(&mut self, dsack: Option<u64>) -> Ack {
        self.last_acked = self.next;
        self.delay_fires_ns = u64::MAX;
        self.compressed = 0;
        self.compressed_fires_ns = u64::MAX;
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = self.delay_min;
            }
        }
        let mut ack = Ack {
            cumulative: self.next,
            sack: [Block::default(); 4],
            nsack: 0,
            echo_ns: self.timestamps.then_some(self.echo_ns),
            dsack,
            echoes_mark: self.echoes_mark,
        };
        if !self.held.is_empty() {
            self.report(&mut ack);
        }
        ack
    }

    /// The block held that contains `sequence`.
    fn block_of(&self, sequence: u64) -> Option<Block> {
        let at = self.held.partition_point(|block| block.end <= sequence);
        self.held
            .get(at)
            .copied()
            .filter(|block| block.start <= sequence)
    }

    /// Fills in the SACK blocks, most recent first. A D-SACK takes the place of one.
    fn report(&mut self, ack: &mut Ack) {
        let most = self.max_blocks - usize::from(ack.dsack.is_some());
        let (mut count, mut kept) = (0, 0);
        let mut blocks = [Block::default(); 4];
        for i in 0..self.nrecent {
            let member = self.recent[i];
            let Some(block) = self.block_of(member) else {
                continue;
            };
            if blocks[..kept].contains(&block) {
                continue;
            }
            blocks[kept] = block;
            self.recent[kept] = member;
            kept += 1;
            if count < most {
                ack.sack[count] = block;
                count += 1;
            }
        }
        self.nrecent = kept;
        ack.nsack = count as u8;
    }
}
