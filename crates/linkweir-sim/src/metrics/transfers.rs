// SPDX-License-Identifier: BSD-3-Clause
//! What is counted of applications. Transfers, responses, pages and segments of video are all called transfers here.

use linkweir_core::Distribution;

use super::delay::quantile_s;

/// A transfer that is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) start_ns: u64,
    pub(super) bytes: u64,
    pub(super) took_ns: u64,
}

/// The transfers of a flow that began after the warm-up.
#[derive(Debug, Default)]
pub(super) struct Completions {
    pub(super) begun: u64,
    pub(super) refused: u64,
    pub(super) finished: u64,
    bytes: u64,
    took_ns: u128,
    longest_ns: u64,
    distribution_ns: Distribution,
}

impl Completions {
    pub(super) fn add(&mut self, transfer: &Transfer) {
        self.finished += 1;
        self.bytes += transfer.bytes;
        self.took_ns += u128::from(transfer.took_ns);
        self.longest_ns = self.longest_ns.max(transfer.took_ns);
        self.distribution_ns.record(transfer.took_ns);
    }

    pub(super) fn mean_bytes(&self) -> Option<f64> {
        self.mean(self.bytes as f64)
    }

    pub(super) fn mean_s(&self) -> Option<f64> {
        self.mean(self.took_ns as f64 / 1e9)
    }

    pub(super) fn longest_s(&self) -> Option<f64> {
        (self.finished > 0).then_some(self.longest_ns as f64 / 1e9)
    }

    /// A mean over those that are complete.
    fn mean(&self, sum: f64) -> Option<f64> {
        (self.finished > 0).then(|| sum / self.finished as f64)
    }

    pub(super) fn quantile_s(&self, q: f64) -> Option<f64> {
        // A histogram answers with the end of a range of values, which may lie above the greatest one.
        let found_s = quantile_s(&self.distribution_ns.whole(), q)?;
        Some(found_s.min(self.longest_ns as f64 / 1e9))
    }
}

/// What the viewer of a video saw, from the flow's start to its stop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Playback {
    /// Segments received.
    pub(crate) segments: u64,
    /// Sum of their rates, bit/s.
    pub(crate) rates_bps: f64,
    /// Times a segment's rate differed from that of the one before.
    pub(crate) switches: u64,
    /// From the start to the first picture, ns; none before that.
    pub(crate) startup_ns: Option<u64>,
    /// Times the buffer ran empty after that.
    pub(crate) stalls: u64,
    /// How long playing then stood still, ns.
    pub(crate) stalled_ns: u64,
    /// Time played, ns.
    pub(crate) played_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_worked_by_hand() {
        let mut all = Completions::default();
        assert_eq!((all.mean_s(), all.quantile_s(0.5)), (None, None));
        for (bytes, ms) in [(1000, 100), (3000, 300), (2000, 900)] {
            all.add(&Transfer {
                start_ns: 0,
                bytes,
                took_ns: ms * 1_000_000,
            });
        }
        assert_eq!(all.mean_bytes(), Some(2000.0));
        assert!((all.quantile_s(0.5).unwrap() - 0.3).abs() < 0.003);
        assert_eq!(all.quantile_s(0.99), Some(0.9));
    }
}
