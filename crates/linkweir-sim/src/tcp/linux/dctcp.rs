// SPDX-License-Identifier: BSD-3-Clause
//! DCTCP: the window shrinks by half the moving average of the fraction of marked segments (RFC 8257). It grows as Reno's,
//! and losses halve it.
//!
//! The average begins at 1 (section 3.3). Marks are counted (RFC 9768) where RFC 8257, section 3.2, has a protocol of its own
//! that reports the same with one bit. Segments are counted, where the RFC has bytes. Fractions are numbers of double precision;
//! Linux counts in 1024ths. A round is Linux's: it begins with the next segment to send, and ends when all before that is
//! acknowledged. The RFC's begins with the first unacknowledged byte and ends with an acknowledgement beyond its last (section 3.3).

use super::alpha::Alpha;

/// See the module.
#[derive(Clone, Debug)]
pub struct Dctcp {
    alpha: Alpha,
}

impl Dctcp {
    pub fn new() -> Dctcp {
        Dctcp {
            alpha: Alpha::new(1.0),
        }
    }

    /// The connection is established, with `next` the first segment to send.
    pub fn begin(&mut self, next: u64) {
        self.alpha.begin(next);
    }

    /// An acknowledgement moved to `una` and reported so many segments.
    #[inline]
    pub fn count(&mut self, una: u64, next: u64, acked: u64, marked: u64) {
        self.alpha.count(acked, marked);
        if self.alpha.is_over(una) {
            self.alpha.update(next);
        }
    }

    /// Slow start threshold after marks (section 3.3): whole segments are taken off.
    pub fn reduced(&self, cwnd: u64) -> u64 {
        let less = (cwnd as f64 * self.alpha.value() / 2.0) as u64;
        (cwnd - less).max(2)
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
                assert!(line.is_near(8, dctcp.alpha.value()), "{of} {at}");
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
        // A round of 100 segments, of which 20 were marked: 15/16 + 1/80 = 0.95.
        dctcp.count(51, 121, 50, 0);
        dctcp.count(101, 151, 50, 20);
        assert!((dctcp.alpha.value() - 0.95).abs() < 1e-12);
        // 47.5 less, in whole segments.
        assert_eq!(dctcp.reduced(100), 53);
        assert_eq!(dctcp.reduced(2), 2);
    }
}
