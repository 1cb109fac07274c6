// SPDX-License-Identifier: BSD-3-Clause
//! The receive window as Linux 6.12 tunes it: a buffer that grows with what the application reads per round trip (dynamic
//! right-sizing, Fisk and Feng 2001), and a window that opens by two segments per segment received until it is as large as
//! the buffer.
//!
//! Half of a buffer of 128 KiB is offered at first. A segment takes 832 bytes of the buffer beside its payload, as between
//! network namespaces of one machine; with network cards it takes 2304 bytes or more. The application reads at once.

/// Buffer at first.
const INITIAL_BYTES: u64 = 131_072;
/// What a segment takes of the buffer beside its payload.
const DESCRIPTION_BYTES: u64 = 832;
/// Payload per round trip that the buffer is known to suffice for, at first: segments.
const INITIAL_SPACE: u64 = 10;
/// The window is offered in such steps.
const STEP_BYTES: u64 = 128;

/// See the module.
#[derive(Clone, Debug)]
pub struct Buffer {
    mss_bytes: u64,
    /// Payload in 256 bytes of buffer; and what a segment takes of the payload that there is room for.
    ratio: u64,
    taken_bytes: u64,
    most_bytes: u64,
    /// Payload that the buffer has room for, and how much of it is offered.
    clamp_bytes: u64,
    offered_bytes: u64,
    /// One past the last segment ever offered.
    edge: u64,
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
        let truesize_bytes = mss_bytes + DESCRIPTION_BYTES;
        let ratio = (mss_bytes * 256 / truesize_bytes).max(1);
        let most_bytes = u64::from(most_segments.max(1)) * mss_bytes;
        Buffer {
            mss_bytes,
            ratio,
            taken_bytes: truesize_bytes * ratio / 256,
            most_bytes,
            clamp_bytes: (INITIAL_BYTES * ratio / 256)
                .max(4 * mss_bytes)
                .min(most_bytes),
            offered_bytes: (INITIAL_BYTES / 2).max(mss_bytes).min(most_bytes),
            edge: 0,
            rtt_us_8: 0,
            began_us: 0,
            began: 1,
            space_bytes: INITIAL_SPACE * mss_bytes,
        }
    }

    /// The connection is established. Room for a segment is kept back.
    pub fn begin(&mut self, now_ns: u64) {
        let but_one_bytes = (INITIAL_BYTES / 2).saturating_sub(self.mss_bytes);
        self.offered_bytes = self.offered_bytes.min(but_one_bytes.max(self.mss_bytes));
        self.began_us = now_ns / 1000;
    }

    /// A segment arrived, a round trip after the acknowledgement that let it be sent, if that is known; `held` segments are
    /// in the buffer. True: the window opened further, which is worth an acknowledgement.
    #[inline]
    pub fn on_segment(&mut self, rtt_ns: Option<u64>, held: u64) -> bool {
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

    /// The application has read all segments below `next`.
    #[inline]
    pub fn on_read(&mut self, now_ns: u64, next: u64) {
        let now_us = now_ns / 1000;
        if self.rtt_us_8 == 0 || now_us - self.began_us < self.rtt_us_8 >> 3 {
            return;
        }
        let read_bytes = (next - self.began) * self.mss_bytes;
        if read_bytes > self.space_bytes {
            // Twice for losses, 16 segments for small variations, and for the growth of slow start.
            let window_bytes = 2 * read_bytes + 16 * self.mss_bytes;
            let growth_bytes = (u128::from(window_bytes)
                * u128::from(read_bytes - self.space_bytes)
                / u128::from(self.space_bytes)) as u64;
            let wanted_bytes = window_bytes + 2 * growth_bytes;
            let buffer_bytes = wanted_bytes.min(self.most_bytes) * 256 / self.ratio;
            self.clamp_bytes = self.clamp_bytes.max(buffer_bytes * self.ratio / 256);
            self.space_bytes = read_bytes;
        }
        self.began = next;
        self.began_us = now_us;
    }

    /// Segments above `next` that there is room for.
    #[inline]
    pub fn window(&mut self, next: u64, held: u64) -> u64 {
        let offered_bytes = self.free_bytes(held).min(self.offered_bytes);
        let window_bytes = offered_bytes.next_multiple_of(STEP_BYTES);
        let offered = window_bytes.min(self.most_bytes) / self.mss_bytes;
        self.edge = self.edge.max(next + offered.max(1));
        self.edge - next
    }

    fn free_bytes(&self, held: u64) -> u64 {
        self.clamp_bytes.saturating_sub(held * self.taken_bytes)
    }
}

#[cfg(test)]
impl Buffer {
    /// Offers all there is room for, and grows no more.
    pub(super) fn settle(&mut self) {
        self.clamp_bytes = self.most_bytes;
        self.offered_bytes = self.most_bytes;
        self.space_bytes = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn offers_half_of_128_kib_first_and_two_segments_more_for_each_received() {
        let mut buffer = Buffer::new(1448, 50_000);
        assert_eq!(buffer.window(1, 0), 45, "64 KiB");
        buffer.begin(0);
        // 65536 - 1448 bytes.
        assert_eq!(buffer.window(2, 0), 44);
        // Of 128 KiB, with 1448 bytes in 2280, 82944 can be filled. The segment itself takes 1442, so 81502 can be offered,
        // which seven steps of 2896 bytes reach.
        for n in 1..=7 {
            assert!(buffer.on_segment(Some(100 * MS), 1), "step {n}");
        }
        assert!(!buffer.on_segment(Some(100 * MS), 1));
        assert_eq!(buffer.window(9, 0), 56);
        assert_eq!(buffer.window(9, 20), 56, "the edge stays");
    }

    #[test]
    fn grows_with_what_is_read_per_round_trip() {
        let mut buffer = Buffer::new(1448, 50_000);
        buffer.on_segment(Some(100 * MS), 1);
        buffer.on_read(99 * MS, 41);
        assert_eq!(buffer.clamp_bytes, 82_944, "the round trip is not over");
        buffer.on_read(100 * MS, 41);
        // 57920 bytes in the first round trip, 14480 were provided for: 2 * 57920 + 16 * 1448 = 139008, and twice
        // 139008 * 43440 / 14480 = 417024 more, rounded to what a buffer of 1537668 bytes holds.
        assert_eq!(buffer.clamp_bytes, 973_055);
        buffer.on_read(200 * MS, 61);
        assert_eq!(
            buffer.space_bytes, 57_920,
            "fewer than before change nothing"
        );
    }

    #[test]
    fn the_edge_never_moves_back_and_the_window_is_at_most_the_one_set() {
        let mut buffer = Buffer::new(1448, 20);
        assert_eq!(buffer.window(1, 0), 20);
        assert_eq!(buffer.window(1, 15), 20);
        buffer.on_read(100 * MS, 1000);
        assert_eq!(buffer.window(21, 0), 20);
        assert_eq!(Buffer::new(40, 1).window(1, 0), 1);
    }
}
