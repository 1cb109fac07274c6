// SPDX-License-Identifier: BSD-3-Clause
//! Measures the rate of the interface below, where that pushes back.
//!
//! The socket is given little memory for datagrams that have not left the machine. When it is full, packets queue here,
//! under the policy's control. Between two moments at which it was full, as much has left as was sent: that is the
//! interface's rate, unless the queues were empty meanwhile, because then the interface may have been idle.

use crate::link;
use crate::setup::Wire;

/// Shortest time over which a rate is measured, ns.
const RATE_NS: u64 = 100_000_000;
/// Greatest distance between two such moments, ns. Beyond it the interface may have been idle.
const APART_NS: u64 = 1_000_000_000;
/// How long the interface may keep dropping one datagram before it is given up, ns.
const GIVE_UP_NS: u64 = 100_000_000;
/// Time until a datagram that the interface dropped is sent again, ns.
pub const RETRY_NS: u64 = 1_000_000;

/// The interface below.
#[derive(Clone, Debug, Default)]
pub struct Below {
    /// When the present measurement began, ns, and the datagrams and bytes sent until then.
    from: Option<(u64, (u64, u64))>,
    /// Since when the interface drops the next datagram, ns, and the datagrams sent before it.
    refused: Option<(u64, u64)>,
    full_ns: u64,
    fulls: u64,
    capacity_bps: Option<u64>,
    /// Until when that rate holds, ns; none: for ever.
    until_ns: Option<u64>,
}

impl Below {
    /// Records that the socket had no room; `sent` are the datagrams and bytes sent since the start, `wire` is what a
    /// datagram takes on the link. Returns a newly measured rate, bit/s, which holds for `stale_ns`.
    pub fn no_room(
        &mut self,
        now_ns: u64,
        sent: (u64, u64),
        wire: Wire,
        stale_ns: Option<u64>,
    ) -> Option<u64> {
        self.fulls += 1;
        let apart = now_ns.saturating_sub(self.full_ns) > APART_NS;
        self.full_ns = now_ns;
        let Some((from_ns, before)) = self.from.filter(|_| !apart) else {
            self.from = Some((now_ns, sent));
            return None;
        };
        let time_ns = now_ns.saturating_sub(from_ns);
        if time_ns < RATE_NS {
            return None;
        }
        self.from = Some((now_ns, sent));
        let bytes = wire.bytes(
            sent.0.saturating_sub(before.0),
            sent.1.saturating_sub(before.1),
        );
        // Nothing was sent. That is an outage, which shows by itself: the queues stop.
        let bps = Some((8e9 * bytes / time_ns as f64) as u64).filter(|bps| *bps > 0)?;
        self.capacity_bps = Some(bps);
        self.until_ns = stale_ns.map(|ns| now_ns + ns);
        Some(bps)
    }

    /// Bytes to gather before they are sent: 1 ms of the measured rate, or 0 while there is none. The rest stays in the
    /// queues.
    #[must_use]
    pub fn gather_bytes(&self, now_ns: u64) -> usize {
        let holds = self.until_ns.is_none_or(|ns| now_ns < ns);
        let bps = self.capacity_bps.filter(|_| holds).unwrap_or(0);
        (bps / 8 * link::SUPER_PACKET_NS / 1_000_000_000) as usize
    }

    /// Ends the measurement, because nothing waits and the interface may become idle.
    pub fn idle(&mut self) {
        self.from = None;
    }

    /// Records that the interface dropped the next call, of so many bytes, after so many datagrams were sent. Whether that
    /// call is to be given up: it was dropped for 100 ms, and for as long as two such calls take at the measured rate.
    pub fn gives_up(&mut self, now_ns: u64, call_bytes: usize, sent_datagrams: u64) -> bool {
        let since = self.refused.filter(|(_, before)| *before == sent_datagrams);
        let (since_ns, _) = *self
            .refused
            .insert(since.unwrap_or((now_ns, sent_datagrams)));
        let twice_ns = self
            .capacity_bps
            .map_or(0.0, |bps| 16e9 * call_bytes as f64 / bps as f64);
        let never = now_ns.saturating_sub(since_ns) >= GIVE_UP_NS.max(twice_ns as u64);
        if never {
            self.refused = None;
        }
        never
    }

    /// Records that the interface accepted a datagram, or had none to accept.
    pub fn accepted(&mut self) {
        self.refused = None;
    }

    /// Number of times the socket had no room.
    #[must_use]
    pub fn fulls(&self) -> u64 {
        self.fulls
    }

    /// The rate measured last, bit/s.
    #[must_use]
    pub fn capacity_bps(&self) -> Option<u64> {
        self.capacity_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    const WIRE: Wire = Wire {
        overhead_bytes: 0,
        mpu_bytes: 0,
    };

    #[test]
    fn an_idle_interface_is_not_measured_as_slow() {
        let mut below = Below::default();
        assert_eq!(below.no_room(0, (0, 0), WIRE, None), None);
        below.idle();
        assert_eq!(below.no_room(400 * MS, (10, 10_000), WIRE, None), None);
        assert_eq!(
            below.no_room(500 * MS, (60, 60_000), WIRE, None),
            Some(4_000_000),
            "50 kB in 0.1 s"
        );
        // 10 datagrams of 20 bytes that take 84 each: 67.2 kbit/s.
        let wire = Wire {
            mpu_bytes: 84,
            ..WIRE
        };
        assert_eq!(
            below.no_room(600 * MS, (70, 60_200), wire, None),
            Some(67_200)
        );
    }

    #[test]
    fn a_datagram_dropped_for_too_long_is_given_up() {
        let mut below = Below::default();
        for at_ms in 0..100 {
            assert!(!below.gives_up(at_ms * MS, 1500, 7), "{at_ms} ms");
        }
        assert!(below.gives_up(100 * MS, 1500, 7));
        // The time starts over for the next datagram, and after one that was accepted.
        assert!(!below.gives_up(101 * MS, 1500, 7));
        assert!(!below.gives_up(190 * MS, 1500, 8));
        assert!(!below.gives_up(289 * MS, 1500, 8));
        below.accepted();
        assert!(!below.gives_up(291 * MS, 1500, 8));
        // 1500 bytes take 187.5 ms of 64 kbit/s.
        below.capacity_bps = Some(64_000);
        assert!(!below.gives_up(291 * MS + 374 * MS, 1500, 8));
        assert!(below.gives_up(291 * MS + 375 * MS, 1500, 8));
    }

    #[test]
    fn bytes_sent_between_two_full_moments_give_the_capacity() {
        let mut below = Below::default();
        // 1000 bytes each 2 ms are 4 Mbit/s.
        let mut known = Vec::new();
        for at in 0..=120 {
            known.extend(below.no_room(at * 2 * MS, (at, 5000 + at * 1000), WIRE, None));
        }
        assert_eq!(known, [4_000_000, 4_000_000]);
        // After a second without, the measurement starts over.
        assert_eq!(below.no_room(1500 * MS, (0, 125_001), WIRE, None), None);
        assert_eq!(
            below.no_room(1600 * MS, (0, 150_001), WIRE, None),
            Some(2_000_000)
        );
        // An outage is not reported.
        assert_eq!(below.no_room(1700 * MS, (0, 150_001), WIRE, None), None);
        assert_eq!(below.capacity_bps(), Some(2_000_000));
        assert_eq!(below.fulls(), 124);
    }

    #[test]
    fn at_most_1_ms_of_the_measured_rate_is_gathered() {
        let mut below = Below::default();
        assert_eq!(below.gather_bytes(0), 0, "nothing is known");
        below.no_room(0, (0, 0), WIRE, Some(2000 * MS));
        // 800 kB in 0.1 s are 64 Mbit/s, and 8 kB in 1 ms.
        below.no_room(100 * MS, (800, 800_000), WIRE, Some(2000 * MS));
        assert_eq!(below.gather_bytes(2100 * MS - 1), 8000);
        assert_eq!(below.gather_bytes(2100 * MS), 0, "expired");
        assert_eq!(below.capacity_bps(), Some(64_000_000), "shown all the same");
        below.no_room(2200 * MS, (800, 800_000), WIRE, None);
        below.no_room(2300 * MS, (900, 900_000), WIRE, None);
        assert_eq!(below.gather_bytes(u64::MAX), 1000);
    }
}
