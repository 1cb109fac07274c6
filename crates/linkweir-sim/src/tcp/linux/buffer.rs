// SPDX-License-Identifier: BSD-3-Clause
//! The receive window as Linux 6.12 tunes it: a buffer that grows with what the application reads per round trip (dynamic
//! right-sizing, Fisk and Feng 2001), and a window that opens by two segments per segment received until it is as large as
//! the buffer.
//!
//! Half of a buffer of 128 KiB is offered at first. A segment takes 832 bytes of the buffer in addition to its payload, as
//! between network namespaces of one machine; with network cards it takes 2304 bytes or more. Segments that wait together for an
//! earlier one share these 832 bytes, at most 16 at a time. The application reads at once.

/// Buffer at first.
const INITIAL_BYTES: u64 = 131_072;
/// Bytes of the buffer that a segment takes in addition to its payload, and how many segments share them.
const DESCRIPTION_BYTES: u64 = 832;
const TOGETHER: u64 = 16;
/// Payload per round trip that the buffer is known to suffice for, at first: segments.
const INITIAL_SPACE: u64 = 10;
/// The window is offered in such steps.
const STEP_BYTES: u64 = 128;

/// What is in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    pub segments: u64,
    pub blocks: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Buffer {
    mss_bytes: u64,
    /// Payload in 256 bytes of buffer.
    ratio: u64,
    /// Size of the buffer, and how much payload is offered.
    size_bytes: u64,
    offered_bytes: u64,
    most_bytes: u64,
    /// One past the last segment ever offered, and the segments that the last acknowledgement offered.
    edge: u64,
    advertised: u64,
    /// A window that began at this time, microseconds, and ends with this segment.
    window: Option<(u64, u64)>,
    /// RTT as the receiver sees it, eighths of a microsecond; 0 before the first sample.
    rtt_us_8: u64,
    /// This round trip began at this time and segment; the greatest number of bytes read in one so far.
    began_us: u64,
    began: u64,
    space_bytes: u64,
}

impl Buffer {
    /// `most_segments`: the largest window.
    pub fn new(mss_bytes: u32, most_segments: u32) -> Buffer {
        let mss_bytes = u64::from(mss_bytes.max(1));
        let ratio = (mss_bytes * 256 / (mss_bytes + DESCRIPTION_BYTES)).max(1);
        let most_bytes = u64::from(most_segments.max(1)) * mss_bytes;
        let offered_bytes = (INITIAL_BYTES / 2).max(mss_bytes).min(most_bytes);
        Buffer {
            mss_bytes,
            ratio,
            size_bytes: INITIAL_BYTES
                .max((4 * mss_bytes).div_ceil(ratio) * 256)
                .min(most_bytes * 256 / ratio),
            offered_bytes,
            most_bytes,
            edge: 0,
            advertised: 1,
            window: None,
            rtt_us_8: 0,
            began_us: 0,
            began: 1,
            space_bytes: (INITIAL_SPACE * mss_bytes).min(but_one_bytes(mss_bytes)),
        }
    }

    /// The connection is established. Room for a segment is kept back.
    pub fn begin(&mut self, now_ns: u64) {
        self.offered_bytes = self.offered_bytes.min(but_one_bytes(self.mss_bytes));
        self.began_us = now_ns / 1000;
    }

    /// Segments below `next` have arrived. It takes a round trip or more until a whole window has; this is all that is known
    /// without timestamps, and where their milliseconds are too long.
    #[inline]
    pub fn on_arrival(&mut self, now_ns: u64, next: u64) {
        let now_us = now_ns / 1000;
        if let Some((began_us, end)) = self.window {
            if next < end {
                return;
            }
            let rtt_us_8 = 8 * (now_us - began_us).max(1);
            if self.rtt_us_8 == 0 || rtt_us_8 < self.rtt_us_8 {
                self.rtt_us_8 = rtt_us_8;
            }
        }
        self.window = Some((now_us, next + self.advertised));
    }

    /// A segment arrived, a round trip after the acknowledgement that let it be sent, if that is known. True: the window
    /// opened further, which is worth an acknowledgement.
    #[inline]
    pub fn on_segment(&mut self, rtt_ns: Option<u64>, held: Held) -> bool {
        if let Some(rtt_ns) = rtt_ns {
            let rtt_us = rtt_ns / 1000;
            self.rtt_us_8 = if self.rtt_us_8 == 0 || 8 * rtt_us < self.rtt_us_8 {
                8 * rtt_us
            } else {
                self.rtt_us_8 - (self.rtt_us_8 >> 3) + rtt_us
            };
        }
        let room_bytes = self.free_bytes(held);
        if room_bytes <= self.offered_bytes {
            return false;
        }
        self.offered_bytes = room_bytes.min(self.offered_bytes + 2 * self.mss_bytes);
        true
    }

    /// The application has read all segments below `next`, of which `more` came together with the segment before them, that
    /// had been missing. It reads in two steps then, and the round trip ends with the first, without what is still to read.
    #[inline]
    pub fn on_read(&mut self, now_ns: u64, next: u64, more: u64) {
        let now_us = now_ns / 1000;
        if self.rtt_us_8 == 0 || now_us - self.began_us < self.rtt_us_8 >> 3 {
            return;
        }
        let more = if more < TOGETHER { 0 } else { more };
        let read = (next - more).saturating_sub(self.began + more);
        let read_bytes = read * self.mss_bytes;
        if read_bytes > self.space_bytes {
            // Twice for losses, 16 segments for small variations, and for the growth of slow start.
            let window_bytes = 2 * read_bytes + 16 * self.mss_bytes;
            let growth_bytes = (u128::from(window_bytes)
                * u128::from(read_bytes - self.space_bytes)
                / u128::from(self.space_bytes)) as u64;
            let wanted_bytes = window_bytes + 2 * growth_bytes;
            let size_bytes = wanted_bytes.min(self.most_bytes) * 256 / self.ratio;
            self.size_bytes = self.size_bytes.max(size_bytes);
            self.space_bytes = read_bytes;
        }
        self.began = next - more;
        self.began_us = now_us;
    }

    /// Segments above `next` that there is room for.
    #[inline]
    pub fn window(&mut self, next: u64, held: Held) -> u64 {
        let offered_bytes = self.free_bytes(held).min(self.offered_bytes);
        let window_bytes = offered_bytes.next_multiple_of(STEP_BYTES);
        let offered = window_bytes.min(self.most_bytes) / self.mss_bytes;
        self.edge = self.edge.max(next + offered.max(1));
        self.advertised = self.edge - next;
        self.advertised
    }

    /// Payload that there is still room for.
    fn free_bytes(&self, held: Held) -> u64 {
        let descriptions = held.blocks + held.segments / TOGETHER;
        let taken_bytes = held.segments * self.mss_bytes + descriptions * DESCRIPTION_BYTES;
        self.size_bytes.saturating_sub(taken_bytes) * self.ratio / 256
    }
}

/// The first window but for one segment.
fn but_one_bytes(mss_bytes: u64) -> u64 {
    (INITIAL_BYTES / 2).saturating_sub(mss_bytes).max(mss_bytes)
}

#[cfg(test)]
impl Buffer {
    /// Offers all there is room for, and grows no more.
    pub(super) fn settle(&mut self) {
        self.size_bytes = self.most_bytes * 256 / self.ratio;
        self.offered_bytes = self.most_bytes;
        self.space_bytes = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn held(segments: u64, blocks: u64) -> Held {
        Held { segments, blocks }
    }

    #[test]
    fn segments_of_a_block_share_a_description_up_to_16() {
        let buffer = Buffer::new(1448, 50_000);
        // 162 / 256 of the buffer less 1448 bytes a segment and 832 a description, as the laboratory's kernel printed it for
        // a buffer of 374828 bytes and 0, 1, 2 and 3 segments.
        let mut large = buffer.clone();
        large.size_bytes = 374_828;
        let free = [0, 1, 2, 3].map(|n| large.free_bytes(held(n, n.min(1))));
        assert_eq!(free, [237_195, 235_753, 234_836, 233_920]);
        let more = large.free_bytes(held(15, 1)) - large.free_bytes(held(16, 1));
        assert_eq!(more, 1443);
        let more = large.free_bytes(held(15, 1)) - large.free_bytes(held(15, 2));
        assert_eq!(more, 526);
    }

    #[test]
    fn offers_half_of_128_kib_first_and_two_segments_more_for_each_received() {
        let mut buffer = Buffer::new(1448, 50_000);
        assert_eq!(buffer.window(1, held(0, 0)), 45, "64 KiB");
        buffer.begin(0);
        // 65536 - 1448 bytes.
        assert_eq!(buffer.window(2, held(0, 0)), 44);
        // Of 128 KiB, with 1448 bytes in 2280, 82944 can be filled. The segment itself takes 1442, so 81502 can be offered,
        // which seven steps of 2896 bytes reach.
        for n in 1..=7 {
            assert!(buffer.on_segment(Some(100 * MS), held(1, 1)), "step {n}");
        }
        assert!(!buffer.on_segment(Some(100 * MS), held(1, 1)));
        assert_eq!(buffer.offered_bytes, 81_501);
        assert_eq!(buffer.window(9, held(0, 0)), 56);
        assert_eq!(buffer.window(9, held(20, 1)), 56, "the edge stays");
    }

    #[test]
    fn grows_with_what_is_read_per_round_trip() {
        let mut buffer = Buffer::new(1448, 50_000);
        buffer.on_segment(Some(100 * MS), held(1, 1));
        buffer.on_read(99 * MS, 41, 0);
        assert_eq!(buffer.size_bytes, 131_072, "the round trip is not over");
        buffer.on_read(100 * MS, 41, 0);
        // 57920 bytes in the first round trip, 14480 were provided for: 2 * 57920 + 16 * 1448 = 139008, and twice
        // 139008 * 43440 / 14480 = 417024 more, of which 162 bytes take 256.
        assert_eq!(buffer.size_bytes, 1_537_668);
        buffer.on_read(200 * MS, 61, 0);
        assert_eq!(
            buffer.space_bytes, 57_920,
            "fewer than before change nothing"
        );
    }

    #[test]
    fn what_a_late_segment_lets_be_read_counts_for_the_next_round_trip() {
        let mut buffer = Buffer::new(1448, 50_000);
        buffer.on_segment(Some(100 * MS), held(1, 1));
        // Of 60 segments, 40 waited for the twentieth: 20 are read and 40 are left to read.
        buffer.on_read(100 * MS, 61, 40);
        assert_eq!((buffer.size_bytes, buffer.began), (131_072, 21));
        // Up to 16 are read with it.
        buffer.on_read(200 * MS, 81, 15);
        assert_eq!((buffer.space_bytes, buffer.began), (60 * 1448, 81));
    }

    #[test]
    fn without_timestamps_a_round_trip_is_the_time_of_a_window() {
        let mut buffer = Buffer::new(1448, 50_000);
        assert_eq!(buffer.window(1, held(0, 0)), 45);
        buffer.begin(0);
        buffer.on_arrival(MS, 2);
        buffer.on_arrival(MS + MS / 5, 46);
        assert_eq!(buffer.rtt_us_8, 0, "44 of 45");
        buffer.on_arrival(MS + MS / 4, 47);
        assert_eq!(buffer.rtt_us_8, 8 * 250);
        buffer.on_read(2 * MS, 47, 0);
        assert!(buffer.size_bytes > 131_072, "it grows");
        buffer.on_arrival(9 * MS, 300);
        assert_eq!(
            buffer.rtt_us_8,
            8 * 250,
            "longer times are windows not filled"
        );
    }

    #[test]
    fn grows_with_segments_of_which_ten_do_not_fit() {
        let mut buffer = Buffer::new(32_768, 1000);
        buffer.begin(0);
        buffer.on_segment(Some(MS), held(1, 1));
        buffer.on_read(MS, 3, 0);
        assert!(
            buffer.size_bytes > 131_072,
            "two were read, room for one was known"
        );
    }

    #[test]
    fn the_edge_never_moves_back_and_the_window_is_at_most_the_one_set() {
        let mut buffer = Buffer::new(1448, 20);
        assert_eq!(buffer.window(1, held(0, 0)), 20);
        assert_eq!(buffer.window(1, held(15, 1)), 20);
        buffer.on_read(100 * MS, 1000, 0);
        assert_eq!(buffer.window(21, held(0, 0)), 20);
        assert_eq!(Buffer::new(40, 1).window(1, held(0, 0)), 1);
    }
}
