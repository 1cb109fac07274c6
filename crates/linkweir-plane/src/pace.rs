// SPDX-License-Identifier: BSD-3-Clause
//! When the link is free for the next packet.
//!
//! A packet occupies the link until the capacity, added up over time, equals the packet's bits. The thread wakes a little
//! late each time. While packets wait, the next one therefore begins where the last one ended, not when the thread woke, so
//! that the rate is exact in the long run. Making good more than [`LATE_NS`] at once would be a burst, which would queue in
//! front of urgent packets on the link below, which is hardly faster. So the rest becomes a debt that is made good little
//! by little: packets occupy the link a little shorter.

use std::sync::Arc;

use linkweir_config::signal::{Capacity, Instant, Signal, Track};

/// How late a packet may be and still begin where the one before it ended, ns.
pub const LATE_NS: u64 = 1_000_000;
/// The same where instants are listed at which packets may leave; these cannot be made good later.
const LATE_FOR_OPPORTUNITIES_NS: u64 = 10_000_000;
/// Greatest debt, ns of the link's time.
pub const OWED_NS: u64 = 10_000_000;
/// Part of a packet's time by which it is shortened while there is a debt.
const SHORTER: f64 = 0.01;
/// Messages that are in no queue, such as probes, occupy the link so far ahead at most, ns, and in an outage only those sent so
/// long after its begin or before its end count. They may be more than a slow link carries.
pub const MOST_OCCUPIED_NS: u64 = 1_000_000_000;
/// How far back outages are added up where nobody has looked, ns.
const MOST_LOOKED_NS: u64 = 600_000_000_000;
/// Later than anything that happens, ns.
const NEVER_NS: u64 = u64::MAX / 4;

/// Until when a link is occupied, on the caller's clock.
#[derive(Debug)]
pub struct Occupied {
    /// When the last packet ends.
    free: Instant,
    /// Whether packets wait for it to end.
    busy: bool,
    /// The debt: time missed while packets waited that is still to be made good, in ns or bits, as the caller counts.
    owed: f64,
}

impl Occupied {
    /// A free link.
    #[must_use]
    pub fn new() -> Occupied {
        Occupied {
            free: Instant::at(0),
            busy: false,
            owed: 0.0,
        }
    }

    /// When the link is free, ns.
    #[must_use]
    pub fn free_ns(&self) -> u64 {
        let begun = self.free.since(Instant::at(self.free.ns)) > 0.0;
        self.free.ns + u64::from(begun)
    }

    /// Records that no packet waited, or none could be sent: the next begins when it comes, and nothing was missed.
    pub fn idle(&mut self) {
        self.busy = false;
        self.owed = 0.0;
    }

    /// When the last packet ended, if others wait since then.
    #[must_use]
    pub fn waited_since(&self) -> Option<Instant> {
        self.busy.then_some(self.free)
    }

    /// When a packet that is sent now begins: up to [`LATE_NS`] ago, or when the last one ends.
    #[must_use]
    pub fn begins(&self, now_ns: u64) -> Instant {
        let earliest = Instant::at(now_ns.saturating_sub(LATE_NS));
        match self.waited_since() {
            Some(since) if since.since(earliest) >= 0.0 => since,
            Some(_) => earliest,
            None if self.free.since(Instant::at(now_ns)) > 0.0 => self.free,
            None => Instant::at(now_ns),
        }
    }

    /// How much shorter a packet of this size is, after so much was missed. The debt is at most `most`.
    pub fn shorter(&mut self, size: f64, missed: f64, most: f64) -> f64 {
        self.owed = (self.owed + missed).min(most);
        let shorter = self.owed.min(SHORTER * size);
        self.owed -= shorter;
        shorter
    }

    /// Occupies the link until then.
    pub fn until(&mut self, end: Instant) {
        self.free = end;
        self.busy = true;
    }

    /// Frees the link at `end` if that is sooner; returns by how much, ns.
    pub fn no_later_than(&mut self, end: Instant) -> f64 {
        let sooner_ns = self.free.since(end);
        if sooner_ns <= 0.0 {
            return 0.0;
        }
        self.free = end;
        sooner_ns
    }
}

impl Default for Occupied {
    fn default() -> Occupied {
        Occupied::new()
    }
}

/// The pace of one link.
#[derive(Debug)]
pub struct Pace {
    offered: Offered,
    /// When time 0 of the capacity was, ns.
    origin_ns: u64,
    /// On the capacity's clock.
    occupied: Occupied,
    /// Length of the last packet, bytes.
    last_bytes: u32,
    /// When the first of the packets was sent that each found the one before it under way, ns.
    under_way_ns: u64,
    /// Bits of the packets under way that are not yet carried while the capacity is 0. A packet that a trace's end stops counts
    /// whole.
    stuck_bits: f64,
    /// When the capacity was reported to be 0, ns, if it is since then.
    outage_ns: Option<u64>,
    /// Bits of messages sent in this outage, which wait in the link's queue.
    held_bits: f64,
    /// For how long the capacity was 0 until a time, and this time, ns; none: nobody has asked yet.
    empty_ns: u64,
    seen_ns: Option<u64>,
}

/// Times without capacity, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// Their sum so far, ns.
    pub sum_ns: u64,
    /// Whether there is no capacity now.
    pub lasts: bool,
    /// When there is some again, ns; none: that is not known.
    pub ends_ns: Option<u64>,
}

#[derive(Debug)]
enum Offered {
    Rate(Track),
    Opportunities(Opportunities),
}

/// Instants at which packets may leave, and how many bytes of the present one are left.
#[derive(Debug)]
struct Opportunities {
    at_ns: Arc<[u64]>,
    bytes_each: u32,
    round_ns: u64,
    next: usize,
    left_bytes: u32,
}

impl Opportunities {
    fn period_ns(&self) -> u64 {
        self.at_ns.last().copied().unwrap_or(1).max(1)
    }

    /// The end of a packet that begins at `from`; `follows`: right after another, whose opportunity it may share.
    fn end(&mut self, from: Instant, follows: bool, bytes: u32) -> Instant {
        if !follows {
            // Opportunities that found nothing to send are lost.
            let period_ns = self.period_ns();
            self.round_ns = from.ns - from.ns % period_ns;
            let inside = from.ns % period_ns;
            self.next = self.at_ns.partition_point(|at_ns| *at_ns < inside);
            self.left_bytes = 0;
        }
        let mut missing = bytes;
        let mut end_ns = from.ns;
        while missing > 0 {
            if self.left_bytes == 0 {
                if self.next == self.at_ns.len() {
                    self.next = 0;
                    self.round_ns += self.period_ns();
                }
                end_ns = self.round_ns + self.at_ns[self.next];
                self.next += 1;
                self.left_bytes = self.bytes_each;
            }
            let taken = missing.min(self.left_bytes);
            missing -= taken;
            self.left_bytes -= taken;
        }
        Instant::at(end_ns)
    }
}

impl Pace {
    /// A free link; time 0 of its capacity is `now_ns`.
    #[must_use]
    pub fn new(capacity: &Capacity, now_ns: u64) -> Pace {
        let offered = match capacity {
            Capacity::Rate(signal) => Offered::Rate(Track::new(signal)),
            Capacity::Opportunities { at_ns, bytes } => Offered::Opportunities(Opportunities {
                at_ns: Arc::clone(at_ns),
                bytes_each: *bytes,
                round_ns: 0,
                next: 0,
                left_bytes: 0,
            }),
        };
        Pace {
            offered,
            origin_ns: now_ns,
            occupied: Occupied::new(),
            last_bytes: 0,
            under_way_ns: 0,
            stuck_bits: 0.0,
            outage_ns: None,
            held_bits: 0.0,
            empty_ns: 0,
            seen_ns: None,
        }
    }

    /// Begins anew with another capacity, whose time 0 is `at_ns`. What was without capacity before still counts.
    pub fn restart(&mut self, now_ns: u64, capacity: &Capacity, at_ns: u64) {
        let empty_ns = self.look(now_ns);
        *self = Pace {
            empty_ns,
            seen_ns: self.seen_ns,
            ..Pace::new(capacity, at_ns)
        };
    }

    /// Adds up for how long the capacity was 0 since somebody asked first, ns. A capacity of instants at which packets may leave has no
    /// outages. Each piece of a rate is gone through, so of a long time in which nobody asked only the end counts.
    fn look(&mut self, now_ns: u64) -> u64 {
        let Some(seen_ns) = self.seen_ns.filter(|seen_ns| *seen_ns < now_ns) else {
            return self.empty_ns;
        };
        if let Offered::Rate(rate) = &mut self.offered {
            let since = |ns: u64| ns.saturating_sub(self.origin_ns);
            let from_ns = seen_ns.max(now_ns.saturating_sub(MOST_LOOKED_NS));
            self.empty_ns += rate.empty_ns(since(from_ns), since(now_ns));
        }
        self.seen_ns = Some(now_ns);
        self.empty_ns
    }

    /// Times without capacity, configured and reported.
    pub fn outages(&mut self, now_ns: u64) -> Outages {
        let sum_ns = self.look(now_ns);
        self.seen_ns.get_or_insert(now_ns);
        let lasts = self.rate_bps(now_ns) == 0;
        let now = Instant::at(now_ns.saturating_sub(self.origin_ns));
        let ends = match &mut self.offered {
            Offered::Rate(rate) if lasts => rate.reaches(now, 0.0, NEVER_NS),
            _ => None,
        };
        Outages {
            sum_ns,
            lasts,
            // A rate may be above 0 and not carry a bit.
            ends_ns: ends
                .map(|end| self.origin_ns + end.ns)
                .filter(|ns| *ns > now_ns),
        }
    }

    /// When the link is free, ns.
    #[must_use]
    pub fn free_ns(&self) -> u64 {
        self.origin_ns + self.occupied.free_ns()
    }

    /// When a packet may begin at the earliest, ns: the link is free, and there is no outage.
    pub fn ready_ns(&mut self, now_ns: u64) -> u64 {
        let free_ns = self.free_ns();
        if now_ns < free_ns {
            return free_ns;
        }
        let Offered::Rate(rate) = &mut self.offered else {
            return now_ns;
        };
        let now = Instant::at(now_ns.saturating_sub(self.origin_ns));
        if rate.value(now.ns) > 0.0 {
            return now_ns;
        }
        match rate.reaches(now, 0.0, NEVER_NS) {
            Some(at) => self.origin_ns + at.ns,
            None => NEVER_NS,
        }
    }

    /// Records that no packet waited, or none could be sent: the next begins when it comes, and nothing was missed.
    pub fn idle(&mut self) {
        self.occupied.idle();
    }

    /// As [`Pace::idle`], unless a packet is under way, which the next one then follows.
    pub fn idle_if_free(&mut self, now_ns: u64) {
        if self.free_ns() <= now_ns {
            self.idle();
        }
    }

    /// Begins a packet of `bytes` now, or when the link became free if that is not too long ago. Returns when it ends, ns.
    pub fn begin(&mut self, now_ns: u64, bytes: u32) -> u64 {
        if self.under_way_since_ns(now_ns).is_none() {
            self.under_way_ns = now_ns;
        }
        let now_ns = now_ns.saturating_sub(self.origin_ns);
        let is_under_way = self.free_ns() > self.origin_ns + now_ns;
        let since = self.occupied.waited_since();
        let end = match &mut self.offered {
            Offered::Rate(rate) => {
                let from = self.occupied.begins(now_ns);
                let missed = since
                    .filter(|since| from.since(*since) > 0.0)
                    .map_or(0.0, |since| rate.sum_from(since, from.ns));
                let most = rate.value(now_ns) * OWED_NS as f64 * 1e-9;
                let bits = 8.0 * f64::from(bytes);
                let bits = bits - self.occupied.shorter(bits, missed, most);
                rate.reaches(from, bits, NEVER_NS).unwrap_or_else(|| {
                    self.stuck_bits += bits;
                    Instant::at(NEVER_NS)
                })
            }
            Offered::Opportunities(opportunities) => {
                let late_ns = |since: &Instant| now_ns.saturating_sub(since.ns);
                let since = since.or(is_under_way.then_some(self.occupied.free));
                let follows = since.filter(|since| late_ns(since) <= LATE_FOR_OPPORTUNITIES_NS);
                let from = follows.unwrap_or(Instant::at(now_ns));
                opportunities.end(from, follows.is_some(), bytes)
            }
        };
        self.occupied.until(end);
        self.last_bytes = bytes;
        self.free_ns()
    }

    /// A message of `bytes` is sent in an outage. It waits in the link's queue and occupies the link when the outage is over
    /// ([`MOST_OCCUPIED_NS`]).
    pub fn hold(&mut self, now_ns: u64, bytes: u32) {
        if self.ready_ns(now_ns) <= now_ns + MOST_OCCUPIED_NS {
            self.begin(now_ns, bytes);
        } else if self
            .outage_ns
            .is_some_and(|since_ns| now_ns < since_ns + MOST_OCCUPIED_NS)
        {
            self.held_bits += 8.0 * f64::from(bytes);
        }
    }

    /// Bits of messages held in an outage that occupy the link from now on, at a rate of `bps`.
    fn release_bits(&mut self, now_ns: u64, bps: u64) -> f64 {
        if bps == 0 {
            self.outage_ns.get_or_insert(now_ns);
            return 0.0;
        }
        self.outage_ns = None;
        let most_bits = bps as f64 * MOST_OCCUPIED_NS as f64 * 1e-9;
        let held_bits = std::mem::take(&mut self.held_bits).min(most_bits);
        if held_bits > 0.0 && self.under_way_since_ns(now_ns).is_none() {
            self.under_way_ns = now_ns;
        }
        held_bits
    }

    /// Since when packets are under way that have not been carried yet, ns; none: the link is free. A packet that others follow
    /// before it has ended counts until these have.
    #[must_use]
    pub fn under_way_since_ns(&self, now_ns: u64) -> Option<u64> {
        (self.free_ns() > now_ns).then_some(self.under_way_ns)
    }

    /// When a packet of `bytes` that begins at `from` would end, both on the caller's clock; none where instants are
    /// listed, or if the capacity never suffices.
    pub fn would_end(&mut self, mut from: Instant, bytes: u32) -> Option<Instant> {
        let Offered::Rate(rate) = &mut self.offered else {
            return None;
        };
        from.ns = from.ns.saturating_sub(self.origin_ns);
        let mut end = rate.reaches(from, 8.0 * f64::from(bytes), NEVER_NS)?;
        end.ns += self.origin_ns;
        Some(end)
    }

    /// Sets the capacity to `bps`. What is left of the packets under way is carried at the new rate. Of opportunities that is not
    /// known: there the last packet ends when it would have, or sooner if all of it takes less time at the new rate.
    pub fn set_rate(&mut self, now_ns: u64, bps: u64) {
        self.look(now_ns);
        let now = Instant::at(now_ns.saturating_sub(self.origin_ns));
        let left_bits = self.left_bits(now) + self.release_bits(now_ns, bps);
        if self.rate_bps(now_ns) == 0 {
            self.occupied.idle();
        }
        let mut rate = Track::new(&Signal::Constant(bps as f64));
        self.stuck_bits = 0.0;
        if left_bits > 0.0 {
            let end = rate.reaches(now, left_bits, NEVER_NS);
            self.stuck_bits = if end.is_none() { left_bits } else { 0.0 };
            let latest_ns = match self.offered {
                Offered::Rate(_) => NEVER_NS,
                Offered::Opportunities(_) => self.occupied.free.ns,
            };
            self.occupied.free = match end {
                Some(end) if end.ns < latest_ns => end,
                Some(_) => Instant::at(latest_ns),
                None => Instant::at(NEVER_NS),
            };
        }
        self.offered = Offered::Rate(rate);
    }

    /// Follows an estimate of the capacity, `bps`. It says nothing of what is under way, so that ends when it would have, or
    /// sooner if the last packet, begun now, would.
    pub fn steer(&mut self, now_ns: u64, bps: u64) {
        self.look(now_ns);
        let now = Instant::at(now_ns.saturating_sub(self.origin_ns));
        self.release_bits(now_ns, bps);
        if self.rate_bps(now_ns) == 0 {
            self.occupied.idle();
        }
        let mut rate = Track::new(&Signal::Constant(bps as f64));
        if self.occupied.free.since(now) > 0.0 {
            if let Some(again) = rate.reaches(now, 8.0 * f64::from(self.last_bytes), NEVER_NS) {
                self.occupied.no_later_than(again);
                self.stuck_bits = 0.0;
            }
        }
        self.offered = Offered::Rate(rate);
    }

    /// Bits of the packets under way that are not yet carried; of opportunities, all of the last packet.
    fn left_bits(&mut self, now: Instant) -> f64 {
        let free = self.occupied.free;
        if free.since(now) <= 0.0 {
            return 0.0;
        }
        match &mut self.offered {
            Offered::Rate(_) if free.ns >= NEVER_NS => self.stuck_bits,
            Offered::Rate(rate) => {
                let begun = free.since(Instant::at(free.ns)) * 1e-9;
                rate.sum_from(now, free.ns) + rate.value(free.ns) * begun
            }
            Offered::Opportunities(_) => 8.0 * f64::from(self.last_bytes),
        }
    }

    /// When the configured rate changes its course next, ns; none: never, or it is no rate.
    pub(crate) fn next_change_ns(&mut self, now_ns: u64) -> Option<u64> {
        let Offered::Rate(rate) = &mut self.offered else {
            return None;
        };
        let next_ns = rate.next_change_ns(now_ns.saturating_sub(self.origin_ns));
        next_ns.map(|ns| ns.saturating_add(self.origin_ns))
    }

    /// The capacity now, bit/s; of listed instants, their mean.
    pub fn rate_bps(&mut self, now_ns: u64) -> u64 {
        match &mut self.offered {
            Offered::Rate(rate) => {
                (rate.value(now_ns.saturating_sub(self.origin_ns)).max(0.0) + 0.5) as u64
            }
            Offered::Opportunities(opportunities) => {
                let bits =
                    8 * opportunities.at_ns.len() as u128 * u128::from(opportunities.bytes_each);
                (bits * 1_000_000_000 / u128::from(opportunities.period_ns())) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 5_000_000_000;
    const MS: u64 = 1_000_000;

    fn constant(bps: f64) -> Pace {
        Pace::new(&Capacity::Rate(Signal::Constant(bps)), START_NS)
    }

    #[test]
    fn waking_late_does_not_cost_rate() {
        // 3 Mbit/s and 1000 bytes: 8000 / 3e6 s = 2 666 666.67 ns.
        let mut pace = constant(3e6);
        let mut now_ns = START_NS;
        for packet in 1..=3000_u64 {
            let end_ns = pace.begin(now_ns, 1000);
            assert_eq!(
                end_ns,
                START_NS + (packet * 8_000_000).div_ceil(3),
                "packet {packet}"
            );
            now_ns = end_ns + packet * 7919 % LATE_NS;
        }
    }

    #[test]
    fn packets_of_less_than_a_nanosecond_take_their_time() {
        // 49 bytes take 0.98 ns at 400 Gbit/s.
        let mut pace = constant(400e9);
        let mut now_ns = START_NS;
        for packet in 1..=1000_u64 {
            now_ns = pace.begin(now_ns, 49);
            assert_eq!(now_ns, START_NS + (packet * 98).div_ceil(100), "{packet}");
        }
        // Without a packet that waits, the next one begins in a later nanosecond.
        for _ in 0..1000 {
            pace.idle();
            assert!(pace.free_ns() >= now_ns);
            let end_ns = pace.begin(now_ns, 49);
            assert_eq!(end_ns, now_ns + 1);
            now_ns = end_ns;
        }
    }

    /// When packets of 1000 bytes end at 8 Mbit/s, which take 1 ms, when the first one is followed `stall_ns` late.
    fn ends_after_a_stall(stall_ns: u64, packets: usize) -> Vec<u64> {
        let mut pace = constant(8e6);
        let mut now_ns = pace.begin(START_NS, 1000) + stall_ns;
        let sent = std::iter::repeat_with(|| {
            let end_ns = pace.begin(now_ns, 1000);
            now_ns = now_ns.max(end_ns);
            end_ns
        });
        sent.take(packets).collect()
    }

    #[test]
    fn a_stall_is_not_made_good_by_a_burst() {
        let ends_ns = ends_after_a_stall(5 * MS, 1000);
        let stalled_until_ns = START_NS + MS + 5 * MS;
        // One begins a millisecond late at once; of the others each takes 0.99 ms, until 4 ms are made good.
        for (number, end_ns) in ends_ns.iter().enumerate() {
            let number = number as u64 + 1;
            let shorter_ns = (number * 10_000).min(4 * MS);
            assert_eq!(
                *end_ns,
                stalled_until_ns - MS + number * MS - shorter_ns,
                "{number}"
            );
        }
        // As if nothing had happened.
        assert_eq!(ends_ns[999], START_NS + 1001 * MS);
    }

    #[test]
    fn no_more_than_10_ms_are_made_good() {
        let mut pace = constant(8e6);
        let mut now_ns = pace.begin(START_NS, 1000);
        for stall_ns in [3_600_000 * MS, 9 * MS] {
            now_ns += stall_ns;
            assert_eq!(pace.begin(now_ns, 1000), now_ns - MS / 100);
        }
        for _ in 0..2000 {
            now_ns = pace.begin(now_ns, 1000).max(now_ns);
        }
        let first_ns = START_NS + MS + 3_600_000 * MS + 9 * MS - MS;
        assert_eq!(now_ns, first_ns + 2001 * MS - OWED_NS);
    }

    #[test]
    fn a_configured_outage_is_not_made_good() {
        // 8 Mbit/s for 1 ms, nothing for 99 ms, and again.
        let steps = Signal::Steps {
            points: vec![(0, 8e6), (MS, 0.0)].into(),
            end: linkweir_config::signal::End::Loop {
                period_ns: 100 * MS,
            },
        };
        let mut pace = Pace::new(&Capacity::Rate(steps), START_NS);
        for round in 0..10 {
            let begun_ns = START_NS + round * 100 * MS;
            // The second of two halves wakes 0.2 ms late.
            assert_eq!(pace.begin(begun_ns, 500), begun_ns + MS / 2, "{round}");
            let end_ns = pace.begin(begun_ns + 7 * MS / 10, 499);
            assert_eq!(end_ns, begun_ns + 999 * MS / 1000, "{round}");
            assert_eq!(pace.begin(end_ns, 1), begun_ns + MS, "{round}");
            assert_eq!(pace.ready_ns(begun_ns + MS), begun_ns + 100 * MS);
        }
    }

    #[test]
    fn a_packet_is_no_shorter_for_the_outage_it_spans() {
        // 8 Mbit/s for 20 ms, nothing for 80 ms, and again.
        let steps = Signal::Steps {
            points: vec![(0, 8e6), (20 * MS, 0.0)].into(),
            end: linkweir_config::signal::End::Loop {
                period_ns: 100 * MS,
            },
        };
        let mut pace = Pace::new(&Capacity::Rate(steps), START_NS);
        let at = |tenths_us: u64| START_NS + tenths_us * 100;
        assert_eq!(pace.begin(START_NS, 1000), at(10_000));
        // From 18.5 ms on, 17.5 late: 1.5 ms before the outage, and 8.4 ms, not 8.5, after it.
        assert_eq!(pace.begin(at(195_000), 10_000), at(1_084_000));
        // 9.9 of 10 ms are owed; the outage does not change what was missed before it.
        let rest = pace.begin(at(1_084_000), 9900);
        assert_eq!(rest, at(1_084_000 + 99_000 - 990));
    }

    #[test]
    fn a_reported_outage_is_not_made_good() {
        let mut pace = constant(8e6);
        assert_eq!(pace.begin(START_NS, 1000), START_NS + MS);
        pace.set_rate(START_NS + MS, 0);
        let over_ns = START_NS + 60_000 * MS;
        pace.set_rate(over_ns, 8_000_000);
        assert_eq!(pace.begin(over_ns, 1000), over_ns + MS);
        assert_eq!(pace.begin(over_ns + MS, 1000), over_ns + 2 * MS);
    }

    /// Opportunities for 1500 bytes, one in each of 100 ms.
    fn each_ms() -> Capacity {
        Capacity::Opportunities {
            at_ns: (1..=100).map(|at| at * MS).collect(),
            bytes: 1500,
        }
    }

    #[test]
    fn opportunities_of_a_long_stall_are_lost() {
        let capacity = each_ms();
        for (late, used) in [(10, 2), (11, 12)] {
            let mut pace = Pace::new(&capacity, START_NS);
            assert_eq!(pace.begin(START_NS, 1500), START_NS + MS);
            let end_ns = pace.begin(START_NS + (1 + late) * MS, 1500);
            assert_eq!(end_ns, START_NS + used * MS, "{late} ms late");
        }
    }

    #[test]
    fn an_idle_link_saves_nothing() {
        let mut pace = constant(8e6);
        let end_ns = pace.begin(START_NS, 1000);
        pace.idle();
        assert_eq!(pace.begin(end_ns + MS, 1000), end_ns + 2 * MS);
    }

    #[test]
    fn a_packet_begins_after_what_is_under_way_also_when_none_waited() {
        // 8000 bits take 80 ms, 1120 bits 11.2 ms.
        let mut pace = constant(1e5);
        assert_eq!(pace.begin(START_NS, 1000), START_NS + 80 * MS);
        pace.idle();
        let end_ns = START_NS + 80 * MS + 112 * MS / 10;
        assert_eq!(pace.begin(START_NS + MS, 140), end_ns);
        // After an outage what was stuck goes first.
        let mut pace = constant(8e6);
        pace.begin(START_NS, 1000);
        pace.set_rate(START_NS + MS / 2, 0);
        pace.set_rate(START_NS + 5 * MS, 8_000_000);
        let end_ns = pace.begin(START_NS + 5 * MS, 1000);
        assert!(end_ns.abs_diff(START_NS + 6 * MS + MS / 2) <= 1, "{end_ns}");
        // Opportunities are used once.
        let mut pace = Pace::new(&each_ms(), START_NS);
        assert_eq!(pace.begin(START_NS, 3000), START_NS + 2 * MS);
        pace.idle();
        assert_eq!(pace.begin(START_NS + MS, 1500), START_NS + 3 * MS);
    }

    #[test]
    fn a_rate_in_place_of_opportunities_prolongs_no_packet() {
        let mut pace = Pace::new(&each_ms(), START_NS);
        assert_eq!(pace.begin(START_NS, 4500), START_NS + 3 * MS);
        // How much of it was carried is not known: at 1.2 kbit/s all of it would take 30 s, at 36 Mbit/s 1 ms.
        pace.set_rate(START_NS + MS, 1200);
        assert_eq!(pace.free_ns(), START_NS + 3 * MS);
        let mut pace = Pace::new(&each_ms(), START_NS);
        pace.begin(START_NS, 4500);
        pace.set_rate(START_NS + MS, 36_000_000);
        assert_eq!(pace.free_ns(), START_NS + 2 * MS);
        // An outage holds it, whole.
        let mut pace = Pace::new(&each_ms(), START_NS);
        pace.begin(START_NS, 4500);
        pace.set_rate(START_NS + MS, 0);
        assert!(pace.free_ns() > START_NS + (1 << 60));
        pace.set_rate(START_NS + 10 * MS, 36_000_000);
        assert_eq!(pace.free_ns(), START_NS + 11 * MS);
    }

    #[test]
    fn a_packet_takes_what_the_capacity_adds_up_to() {
        // 8 Mbit/s for 1 ms, nothing for 3 ms, and again.
        let steps = Signal::Steps {
            points: vec![(0, 8e6), (MS, 0.0)].into(),
            end: linkweir_config::signal::End::Loop { period_ns: 4 * MS },
        };
        let mut pace = Pace::new(&Capacity::Rate(steps), START_NS);
        assert_eq!(pace.begin(START_NS, 500), START_NS + MS / 2);
        assert_eq!(
            pace.begin(START_NS + MS / 2, 1000),
            START_NS + 4 * MS + MS / 2
        );
        let mut pace = constant(0.0);
        assert!(pace.ready_ns(START_NS) > START_NS + (1 << 60));
    }

    #[test]
    fn an_outage_ends_when_the_capacity_is_set() {
        let mut pace = constant(0.0);
        assert!(pace.begin(START_NS, 1000) > START_NS + (1 << 60));
        pace.set_rate(START_NS + 5 * MS, 8_000_000);
        assert_eq!(pace.free_ns(), START_NS + 6 * MS);
        assert_eq!(pace.rate_bps(START_NS + 5 * MS), 8_000_000);
        assert_eq!(pace.ready_ns(START_NS + 5 * MS), START_NS + 6 * MS);
    }

    #[test]
    fn an_estimate_does_not_prolong_what_is_under_way() {
        let half = MS / 2;
        let mut pace = constant(8e6);
        assert_eq!(pace.begin(START_NS, 1000), START_NS + MS);
        pace.steer(START_NS + half, 4_000_000);
        assert_eq!(pace.free_ns(), START_NS + MS);
        pace.steer(START_NS + half, 80_000_000);
        assert_eq!(pace.free_ns(), START_NS + half + MS / 10);
        // It ends an outage, too.
        pace.set_rate(START_NS + half, 0);
        pace.steer(START_NS + MS, 8_000_000);
        assert_eq!(pace.free_ns(), START_NS + 2 * MS);
    }

    #[test]
    fn what_is_under_way_takes_as_long_as_its_rest_does_at_a_new_rate() {
        let half = MS / 2;
        // Sums of bits are floats.
        let is_free_at = |pace: &Pace, ns: u64| assert!(pace.free_ns().abs_diff(ns) <= 1);
        let mut pace = constant(8e6);
        assert_eq!(pace.begin(START_NS, 1000), START_NS + MS);
        pace.set_rate(START_NS + half, 4_000_000);
        is_free_at(&pace, START_NS + half + MS);
        // 2000 bits are left, and wait for the end of the outage.
        pace.set_rate(START_NS + MS, 0);
        assert!(pace.free_ns() > START_NS + (1 << 60));
        pace.set_rate(START_NS + 5 * MS, 2_000_000);
        is_free_at(&pace, START_NS + 6 * MS);
        // A rate that is taken back leaves no trace.
        pace.set_rate(START_NS + 5 * MS, 1000);
        pace.set_rate(START_NS + 5 * MS, 2_000_000);
        is_free_at(&pace, START_NS + 6 * MS);
        // Of two, the second has not begun.
        let mut pace = constant(8e6);
        pace.begin(START_NS, 1000);
        assert_eq!(pace.begin(START_NS, 1000), START_NS + 2 * MS);
        pace.set_rate(START_NS + half, 16_000_000);
        is_free_at(&pace, START_NS + half + 3 * MS / 4);
        // Nor in an outage.
        pace.set_rate(START_NS + half, 0);
        pace.begin(START_NS + half, 1000);
        pace.set_rate(START_NS + MS, 8_000_000);
        is_free_at(&pace, START_NS + MS + 3 * half + MS);
    }

    #[test]
    fn configured_and_reported_outages_add_up() {
        // 8 Mbit/s for 20 ms, nothing for 80 ms, and again.
        let steps = Signal::Steps {
            points: vec![(0, 8e6), (20 * MS, 0.0)].into(),
            end: linkweir_config::signal::End::Loop {
                period_ns: 100 * MS,
            },
        };
        let mut pace = Pace::new(&Capacity::Rate(steps.clone()), START_NS);
        let at = |ms: u64| START_NS + ms * MS;
        let so_far = |sum_ms: u64, ends_ms: Option<u64>| Outages {
            sum_ns: sum_ms * MS,
            lasts: ends_ms.is_some(),
            ends_ns: ends_ms.map(at),
        };
        assert_eq!(pace.outages(at(10)), so_far(0, None));
        assert_eq!(pace.outages(at(50)), so_far(30, Some(100)));
        assert_eq!(pace.outages(at(310)), so_far(240, None));
        // From 315 ms on a report holds, which says 0 from 400 to 430 ms.
        pace.set_rate(at(315), 1_000_000);
        pace.set_rate(at(400), 0);
        let Outages {
            sum_ns,
            lasts,
            ends_ns,
        } = pace.outages(at(420));
        assert_eq!((sum_ns, lasts, ends_ns), (260 * MS, true, None));
        pace.steer(at(430), 1_000_000);
        assert_eq!(pace.outages(at(500)), so_far(270, None));
        // A reload brings the configured capacity back.
        pace.restart(at(500), &Capacity::Rate(steps), at(500));
        assert_eq!(pace.outages(at(600)), so_far(350, None));
    }

    #[test]
    fn opportunities_are_used_or_lost() {
        let capacity = Capacity::Opportunities {
            at_ns: vec![MS, 2 * MS, 2 * MS, 10 * MS].into(),
            bytes: 1500,
        };
        let mut pace = Pace::new(&capacity, START_NS);
        // Two packets of 750 bytes share one, one of 3000 bytes takes two.
        assert_eq!(pace.begin(START_NS, 750), START_NS + MS);
        assert_eq!(pace.begin(START_NS + MS, 750), START_NS + MS);
        assert_eq!(pace.begin(START_NS + MS, 3000), START_NS + 2 * MS);
        pace.idle();
        // The one at 10 ms passes unused; the list begins again there.
        assert_eq!(pace.begin(START_NS + 10 * MS + 1, 1500), START_NS + 11 * MS);
        assert_eq!(pace.rate_bps(START_NS), 4 * 1500 * 8 * 100);
    }
}
