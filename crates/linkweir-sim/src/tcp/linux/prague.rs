// SPDX-License-Identifier: BSD-3-Clause
//! TCP Prague: a window that shrinks by half the fraction of marked segments, and grows with the unmarked ones
//! (draft-briscoe-iccrg-prague-congestion-control-04, section 2; where it leaves a choice, as in version 0.7 of Linux's module).
//!
//! * The fraction is a moving average (`alpha`, section 2.3.2). The first mark of the connection sets it to 1, so that mark
//!   halves the window.
//! * Marks shrink the window once per round trip (section 2.4.2). It grows also in rounds with marks, by a segment per window of
//!   unmarked ones (section 2.4.3).
//! * Round trips below 25 ms count as 25 ms (section 2.4.4): four rounds after slow start, the window grows by the square of
//!   their ratio less, and fraction and window change at most once in 25 ms.
//! * A loss halves the window as Reno's (section 2.4.1), and nothing grows before it is repaired.
//! * Segments are paced (section 2.5.1), at twice the window's rate in slow start, which ends with the first mark or loss.
//!   Windows below two segments hold two, and the pace keeps them to their size, down to 100 kbit/s.
//!
//! The window is a fraction of segments here. The sender's is the next whole number, at least two, which it approaches by one
//! segment per acknowledgement, in slow start and after a timeout faster. Not modelled: segments that get smaller at low rates, and
//! the variation of the pace by 3 % where the window is four segments or less.

use super::alpha::Alpha;

/// Round trips below it count as this long.
const TARGET_NS: u64 = 25_000_000;
/// Rounds after slow start before that begins.
const ROUNDS: u32 = 4;
/// The sender's least window, segments.
const LEAST_WINDOW: u64 = 2;
const LEAST_BYTES_PER_S: f64 = 12_500.0;

/// The sender's state, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub now_ns: u64,
    pub una: u64,
    pub next: u64,
    /// 0 before the first sample.
    pub srtt_ns: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Prague {
    mss_bytes: f64,
    /// Segments.
    window: f64,
    is_slow_start: bool,
    /// Both as they were before the last loss.
    prior: (f64, bool),
    alpha: Alpha,
    /// The network marks segments.
    is_marked: bool,
    /// Since slow start ended, up to `ROUNDS`.
    rounds: u32,
    updated_ns: u64,
    /// The last answer to marks, and the segment after which it is over.
    reduced_ns: u64,
    reduced_end: u64,
}

impl Prague {
    pub fn new(mss_bytes: u32) -> Prague {
        Prague {
            mss_bytes: f64::from(mss_bytes),
            window: 0.0,
            is_slow_start: true,
            prior: (0.0, true),
            alpha: Alpha::new(0.0),
            is_marked: false,
            rounds: 0,
            updated_ns: 0,
            reduced_ns: 0,
            reduced_end: 0,
        }
    }

    /// The connection is established with this window.
    pub fn begin(&mut self, view: &View, cwnd: u64) {
        self.window = cwnd as f64;
        self.updated_ns = view.now_ns;
        self.alpha.round.begin(view.next);
    }

    /// The sender's window, which lets at least this one be used.
    #[inline]
    pub fn whole_window(&self) -> u64 {
        (libm::ceil(self.window) as u64).max(LEAST_WINDOW)
    }

    #[inline]
    fn counts_short_rounds_as_long(&self) -> bool {
        self.rounds >= ROUNDS
    }

    /// An acknowledgement reported so many segments.
    #[inline]
    pub fn count(&mut self, view: &View, acked: u64, marked: u64) {
        self.alpha.round.count(acked, marked);
        let since_ns = view.now_ns - self.updated_ns;
        if self.alpha.round.is_over(view.una)
            && (since_ns >= TARGET_NS || !self.counts_short_rounds_as_long())
        {
            self.alpha.update(view.next);
            self.updated_ns = view.now_ns;
            if !self.is_slow_start {
                self.rounds = (self.rounds + 1).min(ROUNDS);
            }
        }
        if marked > 0 && !self.is_marked {
            self.is_marked = true;
            self.alpha.set(1.0);
        }
    }

    /// Marks were reported; those of a round trip are answered once. Returns the threshold of slow start.
    pub fn answer_marks(&mut self, view: &View) -> u64 {
        self.is_slow_start = false;
        let since_ns = view.now_ns - self.reduced_ns;
        if view.una > self.reduced_end
            && (since_ns >= TARGET_NS || !self.counts_short_rounds_as_long())
        {
            self.reduced_ns = view.now_ns;
            self.reduced_end = view.next;
            let window = self.window * (1.0 - self.alpha.value() / 2.0);
            self.window = window.max(self.least_window(view));
        }
        self.whole_window()
    }

    fn least_window(&self, view: &View) -> f64 {
        LEAST_BYTES_PER_S / self.mss_bytes * view.srtt_ns as f64 / 1e9
    }

    /// A segment was lost. Returns the threshold of slow start.
    pub fn answer_loss(&mut self, view: &View) -> u64 {
        self.prior = (self.window, self.is_slow_start);
        self.is_slow_start = false;
        self.window = (self.window / 2.0).max(self.least_window(view));
        self.whole_window()
    }

    /// The loss was spurious.
    pub fn undo(&mut self) {
        self.window = self.window.max(self.prior.0);
        self.is_slow_start = self.prior.1;
    }

    /// So many unmarked segments were acknowledged while the window was used.
    #[inline]
    pub fn grow(&mut self, view: &View, unmarked: u64) {
        self.window += if self.is_slow_start {
            unmarked as f64
        } else {
            unmarked as f64 * self.growth(view) / self.window
        };
    }

    /// Segments by which the window grows per window of unmarked segments.
    #[inline]
    fn growth(&self, view: &View) -> f64 {
        if view.srtt_ns >= TARGET_NS || !self.counts_short_rounds_as_long() {
            return 1.0;
        }
        let ratio = view.srtt_ns as f64 / TARGET_NS as f64;
        ratio * ratio
    }

    /// Time between two segments. A window that shrinks lets the segments leave first that are too many in the network.
    #[inline]
    pub fn gap_ns(&self, srtt_ns: u64, in_flight: u64) -> u64 {
        let mut window = self.window;
        if window >= LEAST_WINDOW as f64 {
            window = window.max(in_flight as f64);
        }
        if self.is_slow_start {
            window *= 2.0;
        }
        (srtt_ns as f64 / window) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::alpha::lists;
    use super::*;

    const MS: u64 = 1_000_000;

    fn view(now_ns: u64, srtt_ns: u64) -> View {
        View {
            now_ns,
            una: 1,
            next: 1,
            srtt_ns,
        }
    }

    /// A connection with this window, in slow start.
    fn established(window: u64) -> Prague {
        let mut prague = Prague::new(1448);
        prague.begin(&view(0, 100 * MS), window);
        prague
    }

    #[test]
    fn window_and_average_are_those_of_the_oracle() {
        for (of, lines) in lists::read("prague") {
            let mut prague = Prague::new(1448);
            for (at, line) in lines.iter().enumerate() {
                let now = View {
                    now_ns: line.whole(1),
                    una: line.whole(2),
                    next: line.whole(3),
                    srtt_ns: 0,
                };
                if line.word(0) == "begin" {
                    let begin = View {
                        next: line.whole(2),
                        ..now
                    };
                    prague.begin(&begin, line.whole(3));
                    continue;
                }
                let now = View {
                    srtt_ns: line.whole(4),
                    ..now
                };
                let (acked, marked) = (line.whole(5), line.whole(6));
                prague.count(&now, acked, marked);
                match line.word(7) {
                    "marks" => {
                        prague.answer_marks(&now);
                    }
                    "loss" => {
                        prague.answer_loss(&now);
                    }
                    "undo" => prague.undo(),
                    _ => {}
                }
                if line.word(7) != "loss" && acked > marked {
                    prague.grow(&now, acked - marked);
                }
                assert!(line.is_near(8, prague.alpha.value()), "{of} {at}");
                assert!(line.is_near(9, prague.window), "{of} {at}");
            }
        }
    }

    /// Section 2.4.4: at 5 ms, a fifth of 25 ms, a window of unmarked segments is worth a 25th of a segment.
    #[test]
    fn short_round_trips_count_as_long_after_four_rounds() {
        let mut prague = established(100);
        prague.answer_loss(&view(0, 5 * MS));
        for round in 1..=ROUNDS {
            let before = prague.window;
            prague.grow(&view(0, 5 * MS), 50);
            assert!((prague.window - before - 50.0 / before).abs() < 1e-9);
            prague.window = before;
            prague.count(&view(u64::from(round) * 5 * MS, 5 * MS), 50, 0);
        }
        prague.grow(&view(0, 5 * MS), 50);
        assert!((prague.window - 50.04).abs() < 1e-9, "{}", prague.window);
        // A window of 0.5 segments in 5 ms is a segment in 10 ms.
        prague.window = 0.5;
        assert_eq!(prague.gap_ns(5 * MS, 2), 10 * MS);
        assert_eq!(prague.whole_window(), 2);
    }

    /// Section 2.5.1.
    #[test]
    fn the_pace_is_twice_the_windows_in_slow_start() {
        let mut prague = established(20);
        assert_eq!(prague.gap_ns(100 * MS, 20), 100 * MS / 40);
        prague.count(&view(0, 100 * MS), 20, 1);
        assert_eq!(prague.answer_marks(&view(0, 100 * MS)), 10);
        assert_eq!(prague.gap_ns(100 * MS, 10), 100 * MS / 10);
        // More is in the network than the window holds, until it is acknowledged.
        assert_eq!(prague.gap_ns(100 * MS, 20), 100 * MS / 20);
    }
}
