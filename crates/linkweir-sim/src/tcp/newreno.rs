// SPDX-License-Identifier: BSD-3-Clause
//! NewReno's window rules (RFC 5681, section 3.1): one segment per window in congestion avoidance, counted in
//! segments acknowledged (RFC 3465), and half the window at a congestion event.

/// Window after `acked` segments in congestion avoidance.
#[inline]
pub fn grow(cwnd: f64, acked: u64) -> f64 {
    cwnd + acked as f64 / cwnd
}

/// Slow start threshold after a congestion event.
pub fn reduce(cwnd: f64) -> f64 {
    (cwnd * 0.5).max(2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_per_window() {
        let mut cwnd = 100.0;
        for _ in 0..100 {
            cwnd = grow(cwnd, 1);
        }
        // Sum of 1/w while w rises from 100 to 101: a little less than 1.
        assert!(cwnd > 100.99 && cwnd < 101.0);
    }

    #[test]
    fn halves_down_to_two() {
        assert_eq!(reduce(100.0), 50.0);
        assert_eq!(reduce(3.0), 2.0);
    }
}
