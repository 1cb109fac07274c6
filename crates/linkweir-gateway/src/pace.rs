// SPDX-License-Identifier: BSD-3-Clause
//! When the link is free for the next packet.
//!
//! A packet occupies the link until its capacity has added up to the packet's bits. Whoever serves the link wakes a little
//! late each time; as long as packets wait, the next one begins where the one before it ended, not when somebody woke,
//! so that the rate is exact in the long run. Made good at once, more than [`LATE_NS`] would be a burst, which waits below
//! in front of whatever is urgent then, and long, as the link below is hardly faster. So what is missed beyond is made good
//! little by little, and of that no more than [`OWED_NS`].

use std::sync::Arc;

use linkweir_config::signal::{Capacity, Instant, Signal, Track};

/// How late a packet may be and still begin where the one before it ended, ns.
pub const LATE_NS: u64 = 1_000_000;
/// The most that is made good little by little, ns.
pub const OWED_NS: u64 = 10_000_000;
/// By how much a packet is shorter while something is made good, of its time.
const SHORTER: f64 = 0.01;
/// Later than anything that happens, ns.
const NEVER_NS: u64 = u64::MAX / 4;

/// Until when a link is occupied, on the clock of whoever asks.
#[derive(Debug)]
pub struct Occupied {
    /// End of the packet before.
    free: Instant,
    /// Packets waited when it ended.
    busy: bool,
    /// What was missed since packets wait, and is still to be made good, ns.
    owed_ns: f64,
}

impl Occupied {
    /// A free link.
    #[must_use]
    pub fn new() -> Occupied {
        Occupied {
            free: Instant::at(0),
            busy: false,
            owed_ns: 0.0,
        }
    }

    /// When it is free, ns.
    #[must_use]
    pub fn free_ns(&self) -> u64 {
        let begun = self.free.since(Instant::at(self.free.ns)) > 0.0;
        self.free.ns + u64::from(begun)
    }

    /// Nobody waited when the link became free: the next packet begins when it comes.
    pub fn idle(&mut self) {
        self.busy = false;
        self.owed_ns = 0.0;
    }

    /// When a packet begins that is sent now, which may be `late_ns` ago; and when the one before it ended, if packets
    /// wait since then.
    #[must_use]
    pub fn begins(&self, now_ns: u64, late_ns: u64) -> (Instant, Option<Instant>) {
        if !self.busy {
            return (Instant::at(now_ns), None);
        }
        let earliest = Instant::at(now_ns.saturating_sub(late_ns));
        let from = if self.free.since(earliest) >= 0.0 {
            self.free
        } else {
            earliest
        };
        (from, Some(self.free))
    }

    /// A packet is being sent from then until then, after so much time was missed; it may be a little shorter. Returns how long
    /// it takes, ns.
    pub fn until(&mut self, from: Instant, end: Instant, missed_ns: f64) -> f64 {
        let takes_ns = end.since(from);
        self.owed_ns = (self.owed_ns + missed_ns).min(OWED_NS as f64);
        let shorter_ns = self.owed_ns.min(SHORTER * takes_ns);
        self.owed_ns -= shorter_ns;
        self.free = if shorter_ns > 0.0 {
            from.plus(takes_ns - shorter_ns)
        } else {
            end
        };
        self.busy = true;
        takes_ns - shorter_ns
    }

    /// What is being sent ends then, if that is sooner; returns by how much, ns.
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
    /// Length of the packet before, bytes.
    last_bytes: u32,
}

#[derive(Debug)]
enum Offered {
    Rate(Track),
    Opportunities(Opportunities),
}

/// Instants at which packets may leave, and how much of the present one is used.
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

/// What a link would have carried from then until then, as far as that is made good, bits.
fn missed(rate: &mut Track, after: Instant, from: Instant) -> f64 {
    if from.since(after) <= 0.0 {
        return 0.0;
    }
    let earliest = Instant::at(from.ns.saturating_sub(OWED_NS));
    let begun = if after.since(earliest) >= 0.0 {
        after
    } else {
        earliest
    };
    rate.sum_from(begun, from.ns)
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

    /// Nobody waited when the link became free: the next packet begins when it comes.
    pub fn idle(&mut self) {
        self.occupied.idle();
    }

    /// A packet of `bytes` begins now, or began when the link became free. Returns when it ends, ns.
    pub fn begin(&mut self, now_ns: u64, bytes: u32) -> u64 {
        let now_ns = now_ns.saturating_sub(self.origin_ns);
        match &mut self.offered {
            Offered::Rate(rate) => {
                let bits = 8.0 * f64::from(bytes);
                let (from, after) = self.occupied.begins(now_ns, LATE_NS);
                let missed_bits = after.map_or(0.0, |after| missed(rate, after, from));
                let end = rate.reaches(from, bits, NEVER_NS);
                let end = end.unwrap_or(Instant::at(NEVER_NS));
                let missed_ns = missed_bits * end.since(from) / bits.max(1.0);
                self.occupied.until(from, end, missed_ns);
            }
            Offered::Opportunities(opportunities) => {
                // They are where they are, so those of the last moments are used at once.
                let (from, after) = self.occupied.begins(now_ns, OWED_NS);
                let end = opportunities.end(from, after == Some(from), bytes);
                self.occupied.until(from, end, 0.0);
            }
        }
        self.last_bytes = bytes;
        self.free_ns()
    }

    /// When a packet of `bytes` would end that begins then and has the capacity to itself; none where that does not add up.
    /// Both on the clock of whoever asks.
    pub fn would_end(&mut self, mut from: Instant, bytes: u32) -> Option<Instant> {
        let Offered::Rate(rate) = &mut self.offered else {
            return None;
        };
        from.ns = from.ns.saturating_sub(self.origin_ns);
        let mut end = rate.reaches(from, 8.0 * f64::from(bytes), NEVER_NS)?;
        end.ns += self.origin_ns;
        Some(end)
    }

    /// The capacity is `bps` from now on. A packet under way ends no later than if it began now.
    pub fn set_rate(&mut self, now_ns: u64, bps: u64) {
        let mut rate = Track::new(&Signal::Constant(bps as f64));
        let now = Instant::at(now_ns.saturating_sub(self.origin_ns));
        if self.occupied.free.ns > now.ns {
            if let Some(again) = rate.reaches(now, 8.0 * f64::from(self.last_bytes), NEVER_NS) {
                self.occupied.no_later_than(again);
            }
        }
        self.offered = Offered::Rate(rate);
    }

    /// The capacity now, bit/s; of opportunities, their mean.
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
    fn of_a_long_stall_10_ms_are_made_good() {
        let ends_ns = ends_after_a_stall(3_600_000 * MS, 2000);
        let stalled_until_ns = START_NS + MS + 3_600_000 * MS;
        assert_eq!(ends_ns[1999], stalled_until_ns - MS + 2000 * MS - OWED_NS);
    }

    #[test]
    fn nothing_is_missed_in_an_outage() {
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
    fn an_idle_link_saves_nothing() {
        let mut pace = constant(8e6);
        let end_ns = pace.begin(START_NS, 1000);
        pace.idle();
        assert_eq!(pace.begin(end_ns + MS, 1000), end_ns + 2 * MS);
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
        // A slower link does not prolong what is under way.
        pace.set_rate(START_NS + 5 * MS, 1000);
        assert_eq!(pace.free_ns(), START_NS + 6 * MS);
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
