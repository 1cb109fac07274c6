// SPDX-License-Identifier: BSD-3-Clause
//! The receiver of the `Linux` profile: cumulative and selective acknowledgements (RFC 2018), reports of segments received
//! twice (RFC 2883), delayed, quick and compressed acknowledgements as in Linux 6.12, and congestion marks, echoed (RFC 3168,
//! section 6.1.3) or counted (RFC 9768, section 3.2).
//!
//! Every second segment is acknowledged, or a single one after 40 to 200 ms, by the pace at which segments come. At once:
//! the first segments of a connection, 16 after one received twice, two after a mark that is echoed, a segment with a mark after
//! one without or the other way round where marks are counted, a segment that fills the last gap, and the first three while the
//! same segment is missing. Further ones wait for a twentieth of the round-trip time, at most
//! 1 ms, so that one acknowledgement reports them together.

use std::collections::VecDeque;

use super::buffer::{Buffer, Held};
use super::clock::{stamp_ms, Clock};
use crate::tcp::blocks;
use crate::tcp::config::Config;
use crate::tcp::segment::{Ack, Block, Segment};

const DELAYED_MAX_NS: u64 = 200_000_000;
/// Acknowledgements at once after a segment received twice, and after a mark.
const QUICK_AFTER_DUPLICATE: u32 = 16;
const QUICK_AFTER_MARK: u32 = 2;
/// Marks that one acknowledgement reports, where marks are counted.
const MARKS_TOGETHER: u64 = 2;
/// Acknowledgements at once while the same segment is missing.
const DUPLICATES_AT_ONCE: u32 = 3;
/// A compressed acknowledgement reports at most so many segments, after at most so long; the kernel's timer may be late by
/// its slack.
const COMPRESSED_MOST: u32 = 44;
/// A compressed acknowledgement waits while the segments belong to so many blocks.
const BLOCKS_TOGETHER: usize = 2;
const COMPRESSED_NS: u64 = 1_000_000;
const COMPRESSED_SLACK_NS: u64 = 100_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Receiver {
    clock: Clock,
    next: u64,
    /// Blocks held above `next`, ascending, not adjacent.
    held: VecDeque<Block>,
    held_segments: u64,
    buffer: Buffer,
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
    /// The connection is established.
    begun: bool,
    /// Least delay, and the present one, ticks.
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
    /// How long acknowledgements travel.
    return_ns: u64,
    /// When acknowledgements left that segments may still echo, the first of each millisecond.
    acked_ns: VecDeque<u64>,
    stamped_ms: u64,
    echoed_ms: u64,
    rto: u64,
    min_rto_ns: u64,

    ecn: bool,
    ecn_seen: bool,
    echoes_mark: bool,
    /// Marks are counted, not echoed: their number, that at the last acknowledgement, and whether the last segment had one.
    counts: bool,
    marked: u64,
    marked_acked: u64,
    last_marked: bool,
}

impl Receiver {
    /// A receiver that expects segment 0.
    pub fn new(config: &Config) -> Receiver {
        let clock = Clock::new(config.tick_ns);
        Receiver {
            clock,
            next: 0,
            held: VecDeque::with_capacity(16),
            held_segments: 0,
            buffer: Buffer::new(config.mss_bytes, config.max_window_segments),
            recent: [0; 4],
            nrecent: 0,
            max_blocks: if config.timestamps { 3 } else { 4 },
            timestamps: config.timestamps,
            echo_ns: 0,
            last_acked: 0,
            delays: config.delayed_ack,
            quick_at_start: config.quick_ack_segments,
            quick: 0,
            begun: false,
            delay_min: clock.ticks_for(config.delayed_ack_ns).max(1),
            delay: 0,
            delay_fires_ns: u64::MAX,
            last_came: 0,
            compressed: 0,
            compressed_fires_ns: u64::MAX,
            at_once: 0,
            at_once_next: 0,
            syn_ns: 0,
            rtt_ns: 0,
            return_ns: 0,
            acked_ns: VecDeque::new(),
            stamped_ms: u64::MAX,
            echoed_ms: u64::MAX,
            rto: clock.ticks_for(config.initial_rto_ns),
            min_rto_ns: config.min_rto_ns,
            ecn: config.ecn,
            ecn_seen: false,
            echoes_mark: false,
            counts: config.has_accurate_ecn(),
            marked: 0,
            marked_acked: 0,
            last_marked: false,
        }
    }

    /// A segment arrived; returns the acknowledgement to send now, if one is due.
    #[inline]
    pub fn on_segment(&mut self, now_ns: u64, segment: &Segment) -> Option<Ack> {
        let sequence = segment.sequence;
        if segment.bare {
            if self.counts {
                // No acknowledgement answers it; the next one has the number.
                self.count_mark(segment.marked);
            }
            if !self.begun {
                self.begin(now_ns, segment.sent_ns);
            }
            return None;
        }
        if sequence <= self.last_acked {
            self.echo_ns = self.echo_ns.max(segment.sent_ns);
        }
        if sequence == 0 {
            self.syn_ns = now_ns;
            self.next = self.next.max(1);
            return Some(self.acknowledge(now_ns, None));
        }
        let mut now = false;
        if self.ecn {
            now = self.see_mark(segment);
        }
        if sequence < self.next {
            self.acknowledge_quickly(QUICK_AFTER_DUPLICATE);
            return Some(self.acknowledge(now_ns, Some(sequence)));
        }
        if !self.begun {
            self.begin(now_ns, segment.sent_ns);
        }
        let rtt_ns = self.round_trip(now_ns, segment.sent_ns);
        if sequence > self.next {
            if self.compressed > 0 && self.place_of(sequence) >= BLOCKS_TOGETHER {
                return Some(self.flush(now_ns, segment, rtt_ns));
            }
            let duplicate = self.hold(sequence, rtt_ns);
            return self.answer(now_ns, now, duplicate.then_some(sequence));
        }
        self.pace(now_ns);
        self.buffer.on_arrival(now_ns, self.next + 1);
        // It is not read yet.
        let mut in_buffer = self.in_buffer();
        in_buffer.segments += 1;
        in_buffer.blocks += 1;
        let opened = self.buffer.on_segment(rtt_ns, in_buffer);
        self.quick |= u32::from(opened);
        self.next += 1;
        if let Some(first) = self.held.front().filter(|first| first.start == self.next) {
            self.next = first.end;
            self.held_segments -= first.end - first.start;
            self.held.pop_front();
            now |= self.held.is_empty();
        }
        let ack = self.answer(now_ns, now, None);
        let more = self.next - sequence - 1;
        self.buffer.on_read(now_ns, self.next, more);
        ack
    }

    /// Place of the block that a segment belongs to or is next to, among the most recent ones.
    fn place_of(&self, sequence: u64) -> usize {
        (0..self.nrecent)
            .find(|&place| {
                let block = self.block_of(self.recent[place]).unwrap_or_default();
                block.start <= sequence + 1 && sequence <= block.end
            })
            .unwrap_or(self.nrecent)
    }

    /// Reports what waits in a compressed acknowledgement before a segment that would push its blocks out; that segment
    /// is reported as soon as it may be.
    fn flush(&mut self, now_ns: u64, segment: &Segment, rtt_ns: Option<u64>) -> Ack {
        let known = self.block_of(segment.sequence).is_some();
        let ack = self.acknowledge(now_ns, known.then_some(segment.sequence));
        self.hold(segment.sequence, rtt_ns);
        if self.quick > 0 || self.at_once < DUPLICATES_AT_ONCE {
            self.at_once += 1;
            self.compressed_fires_ns = now_ns;
        } else {
            self.compress(now_ns);
        }
        ack
    }

    /// The round trip of the last acknowledgement that the sender had when it sent this segment, by timestamps of 1 ms;
    /// `None` if the last segment had the same timestamp. A paced segment leaves later than that acknowledgement came.
    #[inline]
    fn round_trip(&mut self, now_ns: u64, sent_ns: u64) -> Option<u64> {
        if !self.timestamps {
            return None;
        }
        let left_ns = sent_ns.saturating_sub(self.return_ns);
        while self
            .acked_ns
            .get(1)
            .is_some_and(|&next_ns| next_ns <= left_ns)
        {
            self.acked_ns.pop_front();
        }
        let echoed_ms = stamp_ms(*self.acked_ns.front()?);
        if echoed_ms == self.echoed_ms {
            return None;
        }
        self.echoed_ms = echoed_ms;
        let rtt_ms = stamp_ms(now_ns) - echoed_ms;
        (rtt_ms > 0).then_some(rtt_ms * 1_000_000)
    }

    /// The acknowledgement of the SYN's answer arrived, or the first data.
    fn begin(&mut self, now_ns: u64, sent_ns: u64) {
        self.begun = true;
        self.delay = self.delay_min;
        self.quick = self.quick.max(self.quick_at_start);
        self.rtt_ns = now_ns - self.syn_ns;
        self.return_ns = sent_ns.saturating_sub(self.syn_ns);
        self.buffer.begin(now_ns);
        let variance_ns = (2 * self.rtt_ns).max(self.min_rto_ns);
        self.rto = self.clock.ticks_for(self.rtt_ns + variance_ns);
        self.last_came = self.clock.ticks(now_ns);
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
            return Some(self.acknowledge(now_ns, None));
        }
        if now_ns < self.delay_fires_ns {
            return None;
        }
        let most = self.rto.min(self.clock.ticks_for(DELAYED_MAX_NS));
        self.delay = (self.delay << 1).min(most);
        Some(self.acknowledge(now_ns, None))
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
        let gap = tick - self.last_came;
        if gap <= self.delay_min / 2 {
            self.delay = ((self.delay >> 1) + self.delay_min / 2).max(1);
        } else if gap < self.delay {
            let most = self.rto.min(self.clock.ticks_for(DELAYED_MAX_NS));
            self.delay = ((self.delay >> 1) + gap).min(most);
        } else if gap > self.rto {
            self.quick = self.quick.max(self.quick_at_start);
        }
        self.last_came = tick;
    }

    /// Takes in the marks of a segment; true: they must be answered at once.
    fn see_mark(&mut self, segment: &Segment) -> bool {
        if self.counts {
            return self.count_mark(segment.marked);
        }
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

    /// RFC 9768, section 3.2.2.5.1: the first mark after a segment without one is reported at once, and every second one. As in
    /// Linux 7.3, the first segment without a mark is, too: it may end the answer to marks, so that the window grows.
    fn count_mark(&mut self, marked: bool) -> bool {
        let changes = marked != self.last_marked;
        self.last_marked = marked;
        self.marked += u64::from(marked);
        changes || self.marked - self.marked_acked >= MARKS_TOGETHER
    }

    fn acknowledge_quickly(&mut self, segments: u32) {
        self.quick = self.quick.max(segments);
        self.delay = self.delay_min;
    }

    /// Acknowledges now, later, or together with others.
    #[inline]
    fn answer(&mut self, now_ns: u64, now: bool, dsack: Option<u64>) -> Option<Ack> {
        if now || !self.delays || self.quick > 0 || self.next - self.last_acked >= 2 {
            return Some(self.acknowledge(now_ns, dsack));
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
            return Some(self.acknowledge(now_ns, dsack));
        }
        if self.compressed >= COMPRESSED_MOST || dsack.is_some() {
            return Some(self.acknowledge(now_ns, dsack));
        }
        self.compress(now_ns);
        None
    }

    /// Lets the acknowledgement of a segment wait for others.
    fn compress(&mut self, now_ns: u64) {
        self.compressed += 1;
        if self.compressed_fires_ns == u64::MAX {
            let delay_ns = (self.rtt_ns / 20).min(COMPRESSED_NS);
            self.compressed_fires_ns = now_ns + delay_ns + COMPRESSED_SLACK_NS;
        }
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

    /// What waits for missing segments.
    #[inline]
    fn in_buffer(&self) -> Held {
        Held {
            segments: self.held_segments,
            blocks: self.held.len() as u64,
        }
    }

    /// Holds a segment while others are missing; true for one that is held already. The first of a block is not yet counted
    /// when the window opens.
    fn hold(&mut self, sequence: u64, rtt_ns: Option<u64>) -> bool {
        let before = self.in_buffer();
        let duplicate = self.place(sequence);
        if !duplicate {
            self.held_segments += 1;
            let after = self.in_buffer();
            let is_first = after.blocks > before.blocks;
            let counted = if is_first { before } else { after };
            let opened = self.buffer.on_segment(rtt_ns, counted);
            self.quick |= u32::from(opened);
        }
        duplicate
    }

    /// Adds a segment to the blocks held; true if one has it already.
    fn place(&mut self, sequence: u64) -> bool {
        let duplicate = blocks::add(&mut self.held, sequence);
        self.remember(sequence);
        duplicate
    }

    /// The block of this segment is the most recent one.
    fn remember(&mut self, sequence: u64) {
        let block = self.block_of(sequence).unwrap_or_default();
        let mut recent = [sequence; 4];
        let mut count = 1;
        for &member in &self.recent[..self.nrecent] {
            if count < recent.len() && !(block.start <= member && member < block.end) {
                recent[count] = member;
                count += 1;
            }
        }
        self.recent = recent;
        self.nrecent = count;
    }

    /// The acknowledgement of all that arrived; `dsack`: the segment that caused it had arrived before.
    #[inline]
    fn acknowledge(&mut self, now_ns: u64, dsack: Option<u64>) -> Ack {
        if self.timestamps && self.stamped_ms != stamp_ms(now_ns) {
            self.stamped_ms = stamp_ms(now_ns);
            self.acked_ns.push_back(now_ns);
        }
        self.last_acked = self.next;
        self.marked_acked = self.marked;
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
            window: self.buffer.window(self.next, self.in_buffer()),
            echo_ns: self.timestamps.then_some(self.echo_ns),
            dsack,
            echoes_mark: self.echoes_mark,
            marked: self.marked,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Algorithm, Profile};

    const MS: u64 = 1_000_000;

    fn segment(sequence: u64, sent_ns: u64) -> Segment {
        Segment {
            sequence,
            retransmission: false,
            sent_ns,
            bare: false,
            ecn_capable: false,
            marked: false,
            reduced: false,
        }
    }

    fn config() -> Config {
        let mut config = Config::new(Algorithm::Reno, Profile::Linux);
        config.tick_ns = MS;
        config.quick_ack_segments = 0;
        config
    }

    /// A connection of 100 ms of round-trip time, established, whose window no longer opens.
    fn established(config: &Config) -> Receiver {
        let mut receiver = Receiver::new(config);
        assert_eq!(
            receiver.on_segment(0, &segment(0, 0)).unwrap().cumulative,
            1
        );
        receiver.begin(100 * MS, 50 * MS);
        receiver.buffer.settle();
        receiver
    }

    fn blocks(ack: &Ack) -> Vec<(u64, u64)> {
        ack.sack[..usize::from(ack.nsack)]
            .iter()
            .map(|block| (block.start, block.end))
            .collect()
    }

    #[test]
    fn a_delay_of_one_tick_does_not_make_every_segment_the_first() {
        let mut config = Config::new(Algorithm::Reno, Profile::Linux);
        config.delayed_ack_ns = 1;
        let mut receiver = Receiver::new(&config);
        receiver.on_segment(0, &segment(0, 0));
        let acks = (1..=200)
            .filter(|n| receiver.on_segment(n * MS, &segment(*n, n * MS)).is_some())
            .count();
        // 16 quick ones and one for each step of the window; every second of the rest.
        assert!((100..130).contains(&acks), "{acks}");
    }

    #[test]
    fn the_timestamp_echoed_never_goes_back() {
        let mut receiver = Receiver::new(&Config::new(Algorithm::Reno, Profile::Linux));
        receiver.on_segment(0, &segment(0, 0));
        receiver.on_segment(100 * MS, &segment(1, 50 * MS));
        receiver.on_segment(200 * MS, &segment(2, 150 * MS));
        let again = receiver.on_segment(201 * MS, &segment(2, 51 * MS)).unwrap();
        assert_eq!((again.dsack, again.echo_ns), (Some(2), Some(150 * MS)));
    }

    #[test]
    fn a_paced_segment_echoes_the_last_acknowledgement_its_sender_had() {
        let mut receiver = Receiver::new(&Config::new(Algorithm::Bbr, Profile::Linux));
        receiver.on_segment(100 * MS, &segment(0, 60 * MS));
        let mut bare = segment(0, 140 * MS);
        bare.bare = true;
        receiver.on_segment(180 * MS, &bare);
        // The acknowledgement of the SYN, which took 40 ms.
        assert_eq!(receiver.round_trip(180 * MS, 140 * MS), Some(80 * MS));
        assert_eq!(receiver.round_trip(190 * MS, 150 * MS), None, "the same");
        receiver.acknowledge(180 * MS, None);
        receiver.acknowledge(190 * MS, None);
        // At 229 ms the sender has that of 180 ms only.
        assert_eq!(receiver.round_trip(269 * MS, 229 * MS), Some(89 * MS));
        assert_eq!(receiver.round_trip(270 * MS, 230 * MS), Some(80 * MS));
    }

    #[test]
    fn the_first_segments_are_acknowledged_one_by_one_then_every_second() {
        let mut config = config();
        config.quick_ack_segments = 16;
        let mut receiver = established(&config);
        let acks = (1..117)
            .filter(|&n| {
                receiver
                    .on_segment(100 * MS + n * MS, &segment(n, 51 * MS))
                    .is_some()
            })
            .count();
        // 16 quick ones, then every second of 100.
        assert_eq!(acks, 66);
        assert_eq!(receiver.deadline_ns(), None);
    }

    #[test]
    fn a_single_segment_waits_for_40_ms_and_longer_where_segments_come_slowly() {
        let mut receiver = established(&config());
        assert!(receiver
            .on_segment(100 * MS, &segment(1, 50 * MS))
            .is_none());
        // The wheel fires at the end of the 40th tick.
        assert_eq!(receiver.deadline_ns(), Some(141 * MS));
        assert!(receiver.on_timer(140 * MS).is_none());
        assert_eq!(
            receiver.on_timer(141 * MS).map(|ack| ack.cumulative),
            Some(2)
        );
        // It came too early: 80 ms next, but no more than a round trip.
        assert!(receiver
            .on_segment(200 * MS, &segment(2, 150 * MS))
            .is_none());
        let waits_ms = receiver.deadline_ns().unwrap() / MS - 200;
        assert!((80..=90).contains(&waits_ms), "{waits_ms}");
    }

    #[test]
    fn gaps_are_acknowledged_three_times_at_once_then_together() {
        let mut receiver = established(&config());
        for n in 2..5 {
            assert!(receiver
                .on_segment(100 * MS, &segment(n, 50 * MS))
                .is_some());
        }
        assert!(receiver
            .on_segment(100 * MS, &segment(5, 50 * MS))
            .is_none());
        assert!(receiver
            .on_segment(100 * MS, &segment(6, 50 * MS))
            .is_none());
        // A twentieth of 100 ms is more than 1 ms.
        assert_eq!(receiver.deadline_ns(), Some(101 * MS + 100_000));
        let together = receiver.on_timer(101 * MS + 100_000).unwrap();
        assert_eq!((together.cumulative, blocks(&together)), (1, vec![(2, 7)]));
        let fill = receiver.on_segment(102 * MS, &segment(1, 90 * MS)).unwrap();
        assert_eq!((fill.cumulative, fill.nsack, fill.dsack), (7, 0, None));
    }

    #[test]
    fn a_segment_received_twice_is_reported_and_sixteen_are_acknowledged_at_once() {
        let mut receiver = established(&config());
        receiver.on_segment(100 * MS, &segment(1, 50 * MS));
        receiver.on_segment(100 * MS, &segment(2, 50 * MS));
        let again = receiver.on_segment(100 * MS, &segment(1, 60 * MS)).unwrap();
        assert_eq!((again.cumulative, again.dsack), (3, Some(1)));
        let acks = (3..43)
            .filter(|&n| {
                receiver
                    .on_segment(101 * MS, &segment(n, 61 * MS))
                    .is_some()
            })
            .count();
        // The report was the first of sixteen; then every second of 25.
        assert_eq!(acks, 15 + 12);
        // One that is held is reported, too.
        receiver.on_segment(101 * MS, &segment(50, 61 * MS));
        let held = receiver
            .on_segment(101 * MS, &segment(50, 62 * MS))
            .unwrap();
        assert_eq!((held.dsack, blocks(&held)), (Some(50), vec![(50, 51)]));
    }

    #[test]
    fn most_recent_block_first_and_at_most_four_are_remembered() {
        let mut receiver = established(&config());
        receiver.quick = 1000;
        let mut reported = Vec::new();
        for n in [2, 6, 10, 14, 7, 8, 9, 18, 1] {
            reported.push(blocks(
                &receiver.on_segment(100 * MS, &segment(n, 50 * MS)).unwrap(),
            ));
        }
        assert_eq!(reported[3], [(14, 15), (10, 11), (6, 7)]);
        assert_eq!(reported[4], [(6, 8), (14, 15), (10, 11)]);
        // 6 to 11 are now one block; 2 to 3, reported first of all, comes back.
        assert_eq!(reported[6], [(6, 11), (14, 15), (2, 3)]);
        assert_eq!(reported[7], [(18, 19), (6, 11), (14, 15)]);
        assert_eq!(reported[8], [(18, 19), (6, 11), (14, 15)]);
    }

    #[test]
    fn four_blocks_without_timestamps() {
        let mut config = config();
        config.timestamps = false;
        let mut receiver = established(&config);
        receiver.quick = 1000;
        let acks: Vec<Ack> = [3, 5, 7, 9, 11]
            .iter()
            .filter_map(|&n| receiver.on_segment(100 * MS, &segment(n, 50 * MS)))
            .collect();
        assert_eq!(blocks(&acks[4]), [(11, 12), (9, 10), (7, 8), (5, 6)]);
        assert_eq!(acks[4].echo_ns, None);
    }

    #[test]
    fn echoes_the_segment_that_advanced_the_window() {
        let mut receiver = established(&config());
        receiver.on_segment(100 * MS, &segment(1, 10));
        // Of two segments acknowledged together, the first.
        let both = receiver.on_segment(100 * MS, &segment(2, 11)).unwrap();
        assert_eq!(both.echo_ns, Some(10));
        // Out of order: the last one in order.
        let above = receiver.on_segment(100 * MS, &segment(4, 13)).unwrap();
        assert_eq!(above.echo_ns, Some(10));
        let fill = receiver.on_segment(100 * MS, &segment(3, 20)).unwrap();
        assert_eq!(fill.echo_ns, Some(20));
    }

    /// RFC 3168, section 6.1.3: every acknowledgement carries the echo until a segment says that the window was reduced.
    #[test]
    fn a_mark_is_echoed_until_the_sender_answers() {
        let mut config = config();
        config.ecn = true;
        let mut receiver = established(&config);
        receiver.quick = 1000;
        let mut echoed = Vec::new();
        for (n, marked, reduced) in [
            (1, false, false),
            (2, true, false),
            (3, false, false),
            (4, true, false),
            (5, false, true),
            (6, false, false),
            // A mark on the segment that answers: the answer was to the earlier one.
            (7, true, true),
            (8, false, false),
        ] {
            let segment = Segment {
                bare: false,
                ecn_capable: true,
                marked,
                reduced,
                ..segment(n, 50 * MS)
            };
            echoed.push(receiver.on_segment(100 * MS, &segment).unwrap().echoes_mark);
        }
        assert_eq!(echoed, [false, true, true, true, false, false, true, true]);
    }

    /// RFC 9768, sections 3.2.1 and 3.2.2.5.1; Linux 7.3, include/net/tcp_ecn.h: an acknowledgement at each change.
    #[test]
    fn marks_are_counted_and_each_change_is_reported_at_once() {
        let mut config = config();
        config.algorithm = Algorithm::Prague;
        config.ecn = true;
        let mut receiver = established(&config);
        let mut reported = Vec::new();
        // The last segment but one arrives above a gap; those are acknowledged at once, too.
        for (n, marked) in [
            (1, false),
            (2, false),
            (3, true),
            (4, true),
            (5, true),
            (6, false),
            (7, true),
            (8, false),
            (10, true),
            (9, false),
        ] {
            let segment = Segment {
                ecn_capable: true,
                marked,
                ..segment(n, 50 * MS)
            };
            let ack = receiver.on_segment(100 * MS, &segment);
            assert!(ack.is_none_or(|ack| !ack.echoes_mark));
            reported.push(ack.map(|ack| ack.marked));
        }
        let at_once = [
            None,
            Some(0),
            Some(1),
            None,
            Some(3),
            Some(3),
            Some(4),
            Some(4),
        ];
        assert_eq!(reported[..8], at_once);
        assert_eq!(reported[8..], [Some(5), Some(5)]);
        // One received twice is a packet with a mark, too.
        let again = Segment {
            marked: true,
            ..segment(10, 60 * MS)
        };
        assert_eq!(receiver.on_segment(100 * MS, &again).unwrap().marked, 6);
    }

    #[test]
    fn blocks_equal_the_set_of_segments_held() {
        for seed in 1..30_u64 {
            let mut state = seed;
            let mut draw = move |bound: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % bound
            };
            let mut receiver = established(&config());
            let mut have: std::collections::BTreeSet<u64> = [0].into();
            for _ in 0..2000 {
                receiver.quick = 1000;
                let sequence = (receiver.next + draw(40)).saturating_sub(3).max(1);
                let known = !have.insert(sequence);
                let ack = receiver
                    .on_segment(100 * MS, &segment(sequence, 50 * MS))
                    .unwrap();
                assert_eq!(ack.dsack, known.then_some(sequence));
                assert_eq!(ack.cumulative, (0..).find(|n| !have.contains(n)).unwrap());
                let mut above: Vec<(u64, u64)> = Vec::new();
                for &n in have.range(ack.cumulative..) {
                    match above.last_mut() {
                        Some((_, end)) if *end == n => *end += 1,
                        _ => above.push((n, n + 1)),
                    }
                }
                let held: u64 = above.iter().map(|block| block.1 - block.0).sum();
                assert_eq!(receiver.held_segments, held);
                let reported = blocks(&ack);
                assert!(
                    reported.iter().all(|block| above.contains(block)),
                    "{reported:?} of {above:?}"
                );
                if sequence > ack.cumulative && !known {
                    assert!(reported[0].0 <= sequence && sequence < reported[0].1);
                }
            }
        }
    }
}
