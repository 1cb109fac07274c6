// SPDX-License-Identifier: BSD-3-Clause
//! The receive window as Linux 6.12 tunes it: a buffer that grows with what the application reads per round trip (dynamic
//! right-sizing, Fisk and Feng 2001), and a window that opens by two segments per segment received until it is as large as
//! the buffer.
//!
//! Half of a buffer of 128 KiB is offered at first. A segment then takes 1.6 times its payload of the buffer, as with
//! network cards that give each packet 2 KiB. The application reads at once.

/// Window at first, of which a segment is kept back; and the part of the buffer that payload can fill: 64 KiB, and 160 / 256
/// of 128 KiB.
const INITIAL_BYTES: u64 = 65_536;
const CLAMP_BYTES: u64 = 131_072 * 160 / 256;
/// Payload per round trip that the buffer is known to suffice for, at first: segments.
const INITIAL_SPACE: u64 = 10;

/// See the module.
#[derive(Clone, Debug)]
pub struct Buffer {
    mss_bytes: u64,
    most_bytes: u64,
    /// Payload that the buffer has room for, and how much of it is offered.
    clamp_bytes: u64,
    offered_bytes: u64,
    /// One past the last segment ever offered.
    edge: u64,
    /// RTT as the receiver sees it; 0 before the first sample.
    rtt_ns: u64,
    /// This round trip began at this time and segment; the greatest number of segments read in one so far.
    began_ns: u64,
    began: u64,
    space: u64,
}

impl Buffer {
    /// `most_segments`: the largest window.
    pub fn new(mss_bytes: u32, most_segments: u32) -> Buffer {
        let mss_bytes = u64::from(mss_bytes.max(1));
        let most_bytes = u64::from(most_segments.max(1)) * mss_bytes;
        let offered_bytes = INITIAL_BYTES.saturating_sub(mss_bytes).max(mss_bytes);
        Buffer {
            mss_bytes,
            most_bytes,
            clamp_bytes: CLAMP_BYTES.max(4 * mss_bytes).min(most_bytes),
            offered_bytes: offered_bytes.min(most_bytes),
            edge: 0,
            rtt_ns: 0,
            began_ns: 0,
            began: 1,
            space: INITIAL_SPACE,
        }
    }

    /// The connection is established.
    pub fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
    }

    /// A segment arrived, a round trip after the acknowledgement that let it be sent, if that is known; `held` segments
    /// wait for earlier ones. True: the window opened further, which is worth an acknowledgement.
    #[inline]
    pub fn on_segment(&mut self, rtt_ns: Option<u64>, held: u64) -> bool {
        if let Some(rtt_ns) = rtt_ns {
            self.rtt_ns = if self.rtt_ns == 0 || rtt_ns < self.rtt_ns {
                rtt_ns
            } else {
                self.rtt_ns - (self.rtt_ns >> 3) + (rtt_ns >> 3)
            };
        }
        let room_bytes = self.clamp_bytes.saturating_sub(held * self.mss_bytes);
        if room_bytes <= self.offered_bytes {
            return false;
        }
        self.offered_bytes = room_bytes.min(self.offered_bytes + 2 * self.mss_bytes);
        true
    }

    /// The application has read all segments below `next`.
    #[inline]
    pub fn on_read(&mut self, now_ns: u64, next: u64) {
        if self.rtt_ns == 0 || now_ns - self.began_ns < self.rtt_ns {
            return;
        }
        let read = next - self.began;
        if read > self.space {
            // Twice for losses, 16 segments for small variations, and for the growth of slow start.
            let window = 2 * read + 16;
            let growth = window * (read - self.space) / self.space;
            let wanted_bytes = (window + 2 * growth) * self.mss_bytes;
            self.clamp_bytes = self.clamp_bytes.max(wanted_bytes.min(self.most_bytes));
            self.space = read;
        }
        self.began = next;
        self.began_ns = now_ns;
    }

    /// Segments above `next` that there is room for.
    #[inline]
    pub fn window(&mut self, next: u64, held: u64) -> u64 {
        let free_bytes = self.clamp_bytes.saturating_sub(held * self.mss_bytes);
        let offered = free_bytes.min(self.offered_bytes) / self.mss_bytes;
        self.edge = self.edge.max(next + offered.max(1));
        self.edge - next
    }
}

#[cfg(test)]
impl Buffer {
    /// Offers all there is room for, and grows no more.
    pub(super) fn settle(&mut self) {
        self.clamp_bytes = self.most_bytes;
        self.offered_bytes = self.most_bytes;
        self.space = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn offers_half_of_128_kib_first_and_two_segments_more_for_each_received() {
        let mut buffer = Buffer::new(1448, 50_000);
        // 65536 - 1448 bytes.
        assert_eq!(buffer.window(1, 0), 44);
        // The buffer holds 81920 bytes, which seven steps reach.
        for n in 1..=7 {
            assert!(buffer.on_segment(Some(100 * MS), 0), "step {n}");
        }
        assert!(!buffer.on_segment(Some(100 * MS), 0));
        assert_eq!(buffer.window(8, 0), 56);
        assert_eq!(buffer.window(8, 20), 56, "the edge stays");
    }

    #[test]
    fn grows_with_what_is_read_per_round_trip() {
        let mut buffer = Buffer::new(1448, 50_000);
        buffer.on_segment(Some(100 * MS), 0);
        buffer.on_read(100 * MS, 41);
        // 40 segments in the first round trip, 10 were provided for: 2 * 40 + 16, and 2 * 96 * 30 / 10 more.
        assert_eq!(buffer.clamp_bytes, (96 + 2 * 288) * 1448);
        buffer.on_read(150 * MS, 200);
        assert_eq!(buffer.space, 40, "the round trip is not over");
        buffer.on_read(200 * MS, 61);
        assert_eq!(
            buffer.space, 40,
            "fewer segments than before change nothing"
        );
    }

    #[test]
    fn the_edge_never_moves_back_and_the_window_is_at_most_the_one_set() {
        let mut buffer = Buffer::new(1448, 20);
        assert_eq!(buffer.window(1, 0), 20);
        assert_eq!(buffer.window(1, 15), 20);
        buffer.on_read(100 * MS, 1000);
        assert_eq!(buffer.window(21, 0), 20);
    }
}
