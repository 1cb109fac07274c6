// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's clock for timers: whole ticks (jiffies), and a timer wheel that fires at the tick after the one asked
//! for, later ones on a coarser grid. A timer never fires early; it fires up to an eighth of its time late.

/// Ticks that the lowest level of the wheel spans, less one; each further level spans eight times as much, on a grid
/// eight times as coarse.
const LEVEL_TICKS: u64 = 63;
const LEVELS: u32 = 8;

/// Timestamps of the timestamps option: milliseconds.
pub fn stamp_ms(ns: u64) -> u64 {
    ns / 1_000_000
}

/// Ticks of one length.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    tick_ns: u64,
}

impl Clock {
    pub fn new(tick_ns: u64) -> Clock {
        Clock {
            tick_ns: tick_ns.max(1),
        }
    }

    /// The number of the current tick.
    #[inline]
    pub fn ticks(&self, now_ns: u64) -> u64 {
        now_ns / self.tick_ns
    }

    /// Ticks that last at least so long.
    #[inline]
    pub fn ticks_for(&self, ns: u64) -> u64 {
        ns.div_ceil(self.tick_ns)
    }

    /// Whole ticks in a 32nd of a second.
    #[inline]
    pub fn ticks_in_a_32nd(&self) -> u64 {
        1_000_000_000 / self.tick_ns / 32
    }

    /// How long so many ticks last.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.tick_ns)
    }

    /// When a timer fires that is set to so many ticks now.
    #[inline]
    pub fn fires_ns(&self, now_ns: u64, ticks: u64) -> u64 {
        let expires = self.ticks(now_ns).saturating_add(ticks);
        let mut shift = 0;
        let mut span = LEVEL_TICKS;
        while ticks >= span && shift < 3 * (LEVELS - 1) {
            shift += 3;
            span <<= 3;
        }
        self.ns(((expires >> shift).saturating_add(1)) << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_timer_fires_at_the_tick_after_the_one_asked_for() {
        let clock = Clock::new(10 * MS);
        // Tick 12 is current; 20 ticks later is tick 32, and the wheel waits for its end.
        assert_eq!(clock.fires_ns(123 * MS, 20), 330 * MS);
        assert_eq!(clock.fires_ns(120 * MS, 0), 130 * MS);
    }

    #[test]
    fn long_timers_lie_on_a_coarser_grid() {
        let clock = Clock::new(10 * MS);
        // 62 ticks: level 0. 63 ticks: level 1, whole multiples of 8 ticks. 504 ticks: level 2, multiples of 64.
        assert_eq!(clock.fires_ns(0, 62), 630 * MS);
        assert_eq!(clock.fires_ns(0, 63), 640 * MS);
        assert_eq!(clock.fires_ns(0, 70), 720 * MS);
        assert_eq!(clock.fires_ns(0, 72), 800 * MS);
        assert_eq!(clock.fires_ns(0, 504), 5120 * MS);
    }

    #[test]
    fn no_timer_is_early_or_an_eighth_late() {
        let clock = Clock::new(4 * MS);
        for ticks in (0..100_000).step_by(7) {
            let now_ns = ticks * 1_234_567;
            let waits_ns = clock.fires_ns(now_ns, ticks) - now_ns;
            assert!(waits_ns >= clock.ns(ticks));
            assert!(waits_ns <= clock.ns(ticks + ticks / 7 + 2));
        }
    }
}
