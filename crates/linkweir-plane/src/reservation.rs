// SPDX-License-Identifier: BSD-3-Clause
//! What a policy reserves for a class, and in what turns the class gets it. Only pss has reservations; they are read by the
//! names of its parameters.
//!
//! A class of pss that is at its high level sends until its credit is LM, and waits at its low level until the credit, which
//! falls at the reserved rate ρ, is LR again (core/src/pss_reserve.h). LM - LR is (burst - 1) packets times 1 - ρ/C on a link of
//! C bit/s, so a turn takes (burst - 1) packets at C, and the gap after it (LM - LR) / ρ. On a slow link that may be long.

use linkweir_core::UNSET;

use crate::setup::Scheduler;

const NS: u128 = 1_000_000_000;
const MILLIONTHS: u128 = 1_000_000;

/// The reservation of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    rate_bps: u64,
    share_ppm: u64,
    /// Packets sent back to back, beyond the first.
    turn_pkts: u64,
    packet_bits: u64,
    /// Whether LR or LM is set by hand, so that the turns are others.
    by_hand: bool,
}

impl Reservation {
    /// The reservation of the class of this number, if the policy has one for it.
    #[must_use]
    pub fn of(scheduler: &Scheduler, class: usize) -> Option<Reservation> {
        let params = &scheduler.info.qparams;
        let row = scheduler.qparams.get(class * params.len()..)?;
        let value = |name: &str| {
            let named = params.iter().zip(row).find(|(param, _)| param.name == name);
            named.map(|(_, value)| *value)
        };
        let reservation = Reservation {
            rate_bps: value("rate")?,
            share_ppm: value("share")?,
            turn_pkts: value("burst")?.saturating_sub(1),
            packet_bits: value("mtu")?.saturating_mul(8),
            by_hand: [value("lr")?, value("lm")?] != [UNSET; 2],
        };
        let reserves = reservation.rate_bps > 0 || reservation.share_ppm > 0;
        reserves.then_some(reservation)
    }

    /// All reservations of a policy, one for each class.
    #[must_use]
    pub fn all(scheduler: &Scheduler, classes: usize) -> Vec<Option<Reservation>> {
        let of = |class| Reservation::of(scheduler, class);
        (0..classes).map(of).collect()
    }

    /// The reserved rate on a link that carries `link_bps`.
    #[must_use]
    pub fn rate_bps(&self, link_bps: u64) -> u64 {
        let share = u128::from(link_bps) * u128::from(self.share_ppm) / MILLIONTHS;
        self.rate_bps.max(share as u64)
    }

    /// The packets of a turn.
    #[must_use]
    pub fn burst_pkts(&self) -> u64 {
        self.turn_pkts + 1
    }

    /// How long a turn takes, ns.
    #[must_use]
    pub fn turn_ns(&self, link_bps: u64) -> u64 {
        narrow(u128::from(self.turn_pkts) * self.packet_ns(link_bps))
    }

    /// How long the reserved rate takes for the packets of a turn, ns.
    #[must_use]
    pub fn paid_ns(&self, link_bps: u64) -> u64 {
        narrow(u128::from(self.burst_pkts()) * self.packet_ns(self.rate_bps(link_bps)))
    }

    /// How long so many bytes take at the reserved rate, ns.
    #[must_use]
    pub fn bytes_ns(&self, link_bps: u64, bytes: u64) -> u64 {
        let rate_bps = u128::from(self.rate_bps(link_bps).max(1));
        narrow(u128::from(bytes) * 8 * NS / rate_bps)
    }

    /// How long the class waits between two turns of so many packets, ns; none: its turns are set by hand.
    #[must_use]
    pub fn gap_ns(&self, link_bps: u64, burst_pkts: u64) -> Option<u64> {
        let left_bps = link_bps.saturating_sub(self.rate_bps(link_bps));
        let credit = u128::from(burst_pkts.saturating_sub(1)) * u128::from(left_bps);
        let gap_ns = credit * self.packet_ns(self.rate_bps(link_bps)) / u128::from(link_bps.max(1));
        (!self.by_hand).then_some(narrow(gap_ns))
    }

    fn packet_ns(&self, bps: u64) -> u128 {
        u128::from(self.packet_bits) * NS / u128::from(bps.max(1))
    }
}

fn narrow(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::tests::{Links, GROUND};

    #[test]
    fn turns_and_gaps_follow_from_burst_and_rates() {
        let links = Links::parse(&GROUND.replace("5Mbit", "20kbit"));
        let all = Reservation::all(&links.scheduler, 3);
        assert_eq!((all[0], all[2]), (None, None));
        let af = all[1].unwrap();
        assert_eq!((af.burst_pkts(), af.rate_bps(64_000)), (20, 20_000));
        // By hand: 19 packets of 12,112 bits take 3.595750 s at 64 kbit/s; 19 times 12,112 times 44/64 bits of credit take
        // 7.910650 s at 20 kbit/s.
        assert_eq!(af.turn_ns(64_000), 3_595_750_000);
        assert_eq!(af.gap_ns(64_000, 20), Some(7_910_650_000));
        assert_eq!(af.gap_ns(64_000, 2), Some(416_350_000));
        assert_eq!(af.paid_ns(64_000), 12_112_000_000);
        assert_eq!(af.bytes_ns(64_000, 2500), 1_000_000_000);
        let shared =
            Links::parse(&GROUND.replace("rate = \"5Mbit\"", "share = \"25%\"\nlm = \"9Mbit\""));
        let af = Reservation::of(&shared.scheduler, 1).unwrap();
        assert_eq!(af.rate_bps(64_000), 16_000);
        assert_eq!(af.gap_ns(64_000, 20), None);
    }

    #[test]
    fn other_policies_reserve_nothing() {
        let links = Links::parse("[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"drr\"\n[[class]]\nname = \"a\"\n[[peer]]\nname = \"b\"\n");
        assert_eq!(Reservation::all(&links.scheduler, 1), [None]);
    }
}
