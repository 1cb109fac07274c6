// SPDX-License-Identifier: BSD-3-Clause
//! HyStart++ (RFC 9406, sections 4.2 and 4.3): slow start ends when the round-trip time grows, through a phase of
//! slower growth that a fall of the round-trip time takes back.

const MIN_RTT_THRESH_NS: u64 = 4_000_000;
const MAX_RTT_THRESH_NS: u64 = 16_000_000;
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// L for senders without pacing: segments one acknowledgement may count for.
const LIMIT: u64 = 8;

/// See the module.
#[derive(Clone, Debug)]
pub struct HyStart {
    window_end: u64,
    last_min_ns: u64,
    current_min_ns: u64,
    samples: u32,
    /// Round-trip time at which conservative slow start began.
    baseline_ns: Option<u64>,
    css_rounds: u32,
}

impl HyStart {
    /// Before the first segment.
    pub fn new() -> HyStart {
        HyStart {
            window_end: 0,
            last_min_ns: u64::MAX,
            current_min_ns: u64::MAX,
            samples: 0,
            baseline_ns: None,
            css_rounds: 0,
        }
    }

    /// An acknowledgement of `acked` segments in slow start. `una` is the segment now expected, `next` the next new
    /// one to send. Returns the segments to add to the window, or `None` when slow start is over.
    #[inline]
    pub fn grow(&mut self, acked: u64, rtt_ns: Option<u64>, una: u64, next: u64) -> Option<f64> {
        let mut growth = acked.min(LIMIT) as f64;
        if self.baseline_ns.is_some() {
            growth /= CSS_GROWTH_DIVISOR;
        }
        if let Some(rtt_ns) = rtt_ns {
            self.current_min_ns = self.current_min_ns.min(rtt_ns);
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE {
            match self.baseline_ns {
                None if self.last_min_ns != u64::MAX => {
                    let thresh_ns = (self.last_min_ns / MIN_RTT_DIVISOR)
                        .clamp(MIN_RTT_THRESH_NS, MAX_RTT_THRESH_NS);
                    if self.current_min_ns >= self.last_min_ns + thresh_ns {
                        self.baseline_ns = Some(self.current_min_ns);
                        self.css_rounds = 0;
                    }
                }
                Some(baseline_ns) if self.current_min_ns < baseline_ns => self.baseline_ns = None,
                _ => {}
            }
        }
        if una >= self.window_end {
            if self.baseline_ns.is_some() {
                self.css_rounds += 1;
                if self.css_rounds >= CSS_ROUNDS {
                    return None;
                }
            }
            self.last_min_ns = self.current_min_ns;
            self.current_min_ns = u64::MAX;
            self.samples = 0;
            self.window_end = next;
        }
        Some(growth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round of `n` acknowledgements with one RTT; returns the growth of the last, or `None` at the end.
    fn round(hystart: &mut HyStart, base: &mut u64, n: u64, rtt_ms: u64) -> Option<f64> {
        let mut growth = Some(0.0);
        for i in 1..=n {
            growth = hystart.grow(1, Some(rtt_ms * 1_000_000), *base + i, *base + n + i);
            growth?;
        }
        *base += n;
        growth
    }

    #[test]
    fn leaves_slow_start_five_rounds_after_the_delay_rose() {
        let (mut hystart, mut base) = (HyStart::new(), 0);
        for _ in 0..3 {
            assert_eq!(round(&mut hystart, &mut base, 20, 100), Some(1.0));
        }
        // Threshold: clamp(100 / 8, 4, 16) = 12.5 ms; 112 stays, 113 leaves.
        assert_eq!(round(&mut hystart, &mut base, 20, 112), Some(1.0));
        assert_eq!(round(&mut hystart, &mut base, 20, 125), Some(1.0));
        // 125 + 125 / 8 = 140.625: 141 leaves. The round that rose counts; the sixth round opens with the end.
        for _ in 0..5 {
            assert_eq!(round(&mut hystart, &mut base, 20, 141), Some(0.25));
        }
        assert_eq!(round(&mut hystart, &mut base, 20, 141), None);
    }

    #[test]
    fn grows_a_quarter_in_conservative_slow_start_and_returns_when_the_delay_falls() {
        let (mut hystart, mut base) = (HyStart::new(), 0);
        round(&mut hystart, &mut base, 20, 100);
        round(&mut hystart, &mut base, 20, 100);
        assert_eq!(round(&mut hystart, &mut base, 20, 130), Some(0.25));
        assert_eq!(round(&mut hystart, &mut base, 20, 130), Some(0.25));
        assert_eq!(round(&mut hystart, &mut base, 20, 129), Some(1.0));
    }

    #[test]
    fn seven_samples_are_too_few() {
        let (mut hystart, mut base) = (HyStart::new(), 0);
        for rtt_ms in [100, 100, 200, 400, 800] {
            assert_eq!(round(&mut hystart, &mut base, 7, rtt_ms), Some(1.0));
        }
    }

    #[test]
    fn an_acknowledgement_counts_for_eight_segments_at_most() {
        assert_eq!(HyStart::new().grow(20, None, 1, 30), Some(8.0));
    }
}
