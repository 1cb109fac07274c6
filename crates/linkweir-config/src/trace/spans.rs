// SPDX-License-Identifier: BSD-3-Clause
//! The times between the lines of a measured series: which is usual, and which are gaps.

/// A time without lines is a gap if it is longer than so many usual intervals.
pub(super) const GAP: u64 = 3;
/// Fewest lines of which an interval is usual.
pub(super) const LEAST: usize = 4;

/// The times between lines.
pub(super) struct Spans {
    /// Their median, ns.
    pub(super) usual_ns: u64,
    /// Whether three of four are nearly the median.
    pub(super) is_regular: bool,
}

impl Spans {
    /// Those between lines at these times.
    pub(super) fn of(times_ns: &[u64]) -> Spans {
        let mut spans: Vec<u64> = times_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if times_ns.len() < LEAST {
            return Spans {
                usual_ns: u64::MAX / GAP,
                is_regular: false,
            };
        }
        let middle = spans.len() / 2;
        let (_, usual_ns, _) = spans.select_nth_unstable(middle);
        let usual_ns = *usual_ns;
        let near = spans
            .iter()
            .filter(|span| span.abs_diff(usual_ns) <= usual_ns / 2)
            .count();
        Spans {
            usual_ns,
            is_regular: 4 * near >= 3 * spans.len(),
        }
    }

    /// Whether there are enough lines to tell which interval is usual.
    pub(super) fn is_known(&self) -> bool {
        self.usual_ns < u64::MAX / GAP
    }

    /// Whether a time without lines is a gap.
    pub(super) fn is_gap(&self, span_ns: u64) -> bool {
        span_ns > self.usual_ns.saturating_mul(GAP)
    }

    /// The lines that gaps follow.
    pub(super) fn gaps(&self, times_ns: &[u64]) -> Vec<usize> {
        let spans = times_ns.windows(2).map(|pair| pair[1] - pair[0]);
        spans
            .enumerate()
            .filter(|(_, span)| self.is_gap(*span))
            .map(|(at, _)| at)
            .collect()
    }
}
