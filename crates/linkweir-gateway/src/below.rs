// SPDX-License-Identifier: BSD-3-Clause
//! What the interface below takes, when it pushes back. No input or output and no clock.
//!
//! The socket is allowed little memory for what was sent and has not left the machine. When that is full, packets wait in the
//! queues, where the policy rules. Between two moments at which it was full, what was sent is what has left: the capacity.

/// Shortest time over which a rate is measured, ns.
const RATE_NS: u64 = 100_000_000;
/// Moments further apart than this have nothing to do with each other, ns: the interface may have been idle.
const APART_NS: u64 = 1_000_000_000;
/// How long after the interface dropped a datagram it is sent again, ns.
pub const AGAIN_NS: u64 = 1_000_000;

/// The interface below.
#[derive(Clone, Debug, Default)]
pub struct Below {
    /// The last moment from which a rate is measured, ns, and bytes sent until then.
    from: Option<(u64, u64)>,
    full_ns: u64,
    fulls: u64,
    capacity_bps: Option<u64>,
}

impl Below {
    /// There is no room, and `sent_bytes` have been sent since the start. Returns a capacity if one is known anew, bit/s.
    pub fn full(&mut self, now_ns: u64, sent_bytes: u64) -> Option<u64> {
        self.fulls += 1;
        let apart = now_ns.saturating_sub(self.full_ns) > APART_NS;
        self.full_ns = now_ns;
        let Some((from_ns, from_bytes)) = self.from.filter(|_| !apart) else {
            self.from = Some((now_ns, sent_bytes));
            return None;
        };
        let time_ns = now_ns - from_ns;
        if time_ns < RATE_NS {
            return None;
        }
        self.from = Some((now_ns, sent_bytes));
        let bits = 8 * u128::from(sent_bytes - from_bytes);
        let bps = bits * 1_000_000_000 / u128::from(time_ns);
        // Nothing was taken: that is an outage, of which the queues know without being told.
        let bps = u64::try_from(bps).ok().filter(|bps| *bps > 0)?;
        self.capacity_bps = Some(bps);
        Some(bps)
    }

    /// How often there was no room.
    #[must_use]
    pub fn fulls(&self) -> u64 {
        self.fulls
    }

    /// What it took last, bit/s.
    #[must_use]
    pub fn capacity_bps(&self) -> Option<u64> {
        self.capacity_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_left_between_two_full_moments_is_the_capacity() {
        let mut below = Below::default();
        // 1000 bytes each 2 ms are 4 Mbit/s.
        let mut known = Vec::new();
        for at in 0..=120 {
            known.extend(below.full(at * 2 * MS, 5000 + at * 1000));
        }
        assert_eq!(known, [4_000_000, 4_000_000]);
        // After a second without, it begins anew.
        assert_eq!(below.full(1500 * MS, 125_001), None);
        assert_eq!(below.full(1600 * MS, 150_001), Some(2_000_000));
        // An outage is not told.
        assert_eq!(below.full(1700 * MS, 150_001), None);
        assert_eq!(below.capacity_bps(), Some(2_000_000));
        assert_eq!(below.fulls(), 124);
    }
}
