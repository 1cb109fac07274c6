// SPDX-License-Identifier: BSD-3-Clause
//! DCTCP: the window shrinks by half the moving average of the fraction of marked segments (RFC 8257). It grows as Reno's,
//! and losses halve it.
//!
//! Marks are counted (RFC 9768) where RFC 8257, section 3.2, has a protocol of its own that reports the same with one bit. All
//! else is as in Linux (net/ipv4/tcp_dctcp.c), where the RFC counts bytes with any precision:
//!
//! * Segments are counted. A round begins with the next segment to send, and ends when all before that is acknowledged. The RFC's
//!   begins with the first unacknowledged byte and ends with an acknowledgement beyond its last (section 3.3).
//! * The average is a whole number of 1024ths, from 1024 at the start. A sixteenth is taken off it, rounded down, and all of it
//!   below 16. A round adds 64 times its fraction, rounded down: less than one mark in 64 segments adds nothing. So windows of
//!   more than some hundred segments shrink only where marks come together.

use super::alpha::Round;

const GAIN_SHIFT: u32 = 4;
/// The average of a path that marks all.
const WHOLE: u64 = 1024;

/// See the module.
#[derive(Clone, Debug)]
pub struct Dctcp {
    /// Moving average of the fraction of marked segments, in 1024ths.
    alpha: u64,
    round: Round,
}

impl Dctcp {
    pub fn new() -> Dctcp {
        Dctcp {
            alpha: WHOLE,
            round: Round::default(),
        }
    }

    /// The connection is established, with `next` the first segment to send.
    pub fn begin(&mut self, next: u64) {
        self.round.begin(next);
    }

    /// An acknowledgement moved to `una` and reported so many segments.
    #[inline]
    pub fn count(&mut self, una: u64, next: u64, acked: u64, marked: u64) {
        self.round.count(acked, marked);
        if self.round.is_over(una) {
            let less = self.alpha >> GAIN_SHIFT;
            self.alpha -= if less == 0 { self.alpha } else { less };
            let more = self.round.marked_of(WHOLE >> GAIN_SHIFT);
            self.alpha = (self.alpha + more).min(WHOLE);
            self.round.begin(next);
        }
    }

    /// Slow start threshold after marks (section 3.3): whole segments are taken off.
    pub fn reduced(&self, cwnd: u64) -> u64 {
        (cwnd - cwnd * self.alpha / (2 * WHOLE)).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::alpha::lists;
    use super::*;

    #[test]
    fn window_and_average_are_those_of_the_oracle() {
        for (of, lines) in lists::read("dctcp") {
            let mut dctcp = Dctcp::new();
            let mut window = 0;
            for (at, line) in lines.iter().enumerate() {
                if line.word(0) == "begin" {
                    dctcp.begin(line.whole(2));
                    window = line.whole(3);
                    continue;
                }
                dctcp.count(line.whole(2), line.whole(3), line.whole(5), line.whole(6));
                assert!(
                    line.is_near(8, dctcp.alpha as f64 / WHOLE as f64),
                    "{of} {at}"
                );
                let reduced = dctcp.reduced(window);
                assert!(line.is_near(9, reduced as f64), "{of} {at}");
                window = match line.word(7) {
                    "marks" => reduced,
                    _ => window + line.whole(5),
                };
            }
        }
    }

    /// RFC 8257, section 3.3: cwnd = cwnd (1 - alpha / 2), alpha = (1 - g) alpha + g M.
    #[test]
    fn the_window_falls_by_half_of_alpha() {
        let mut dctcp = Dctcp::new();
        dctcp.begin(101);
        assert_eq!(dctcp.reduced(100), 50);
        // A round of 100 segments, of which 20 were marked: 15/16 + 1/80 = 0.95, rounded down twice.
        dctcp.count(51, 121, 50, 0);
        dctcp.count(101, 151, 50, 20);
        assert_eq!(dctcp.alpha, 960 + 12);
        // 47.46 less, in whole segments.
        assert_eq!(dctcp.reduced(100), 53);
        assert_eq!(dctcp.reduced(2), 2);
    }

    /// Linux 7.3, tcp_dctcp.c: alpha -= min_not_zero(alpha, alpha >> 4), then alpha += (marked << 6) / delivered.
    #[test]
    fn one_mark_in_more_than_64_segments_is_none() {
        let mut dctcp = Dctcp::new();
        dctcp.begin(0);
        let mut round = |acked, marked| {
            dctcp.count(0, 0, acked, marked);
            dctcp.alpha
        };
        assert_eq!(round(65, 1), 960);
        assert_eq!(round(64, 1), 901);
        let below_16 = (0..200).map(|_| round(100, 0)).find(|alpha| *alpha < 16);
        assert_eq!(below_16, Some(15));
        assert_eq!(round(100, 0), 0);
        // 1.5 % of 10,000 segments, again and again.
        assert_eq!((0..10).map(|_| round(10_000, 150)).sum::<u64>(), 0);
        assert_eq!(round(10_000, 160), 1);
        assert_eq!(dctcp.reduced(10_000), 10_000 - 4);
    }
}
