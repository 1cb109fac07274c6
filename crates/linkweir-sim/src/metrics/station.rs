// SPDX-License-Identifier: BSD-3-Clause
//! What is measured at a link of a network beyond what is measured at a single link.

use linkweir_core::Distribution;

use super::seen::{Recorded, Seen};
use super::transfers::Transfer;

/// What the recorder of a link in a network keeps in place of tables.
#[derive(Debug)]
pub(crate) struct StationRecord {
    /// Waiting times of each entry.
    pub(super) hops: Vec<Waits>,
    /// Whether the ends of an entry's flow must learn of each packet that is dropped or lost.
    told: Vec<bool>,
    /// Such packets, to be taken by the engine.
    pub(crate) gone: Vec<Seen>,
    pub(super) transfers: Vec<(u32, Transfer)>,
}

/// Waiting times of a flow at a link.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    pub(super) sent_pkts: u64,
    pub(super) sum_ns: u128,
    pub(super) max_ns: u64,
    pub(super) distribution_ns: Distribution,
}

impl Waits {
    pub(super) fn add(&mut self, other: &Waits) {
        self.sent_pkts += other.sent_pkts;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.distribution_ns.add(&other.distribution_ns);
    }
}

impl StationRecord {
    pub(super) fn new(told: Vec<bool>) -> StationRecord {
        StationRecord {
            hops: vec![Waits::default(); told.len()],
            told,
            gone: Vec::new(),
            transfers: Vec::new(),
        }
    }

    #[inline(never)] // a link alone has none of it in its way
    pub(super) fn sent(&mut self, entry: usize, sojourn_ns: u64) {
        let waits = &mut self.hops[entry];
        waits.sent_pkts += 1;
        waits.sum_ns += u128::from(sojourn_ns);
        waits.max_ns = waits.max_ns.max(sojourn_ns);
        waits.distribution_ns.record(sojourn_ns);
    }

    pub(super) fn tells(&self, entry: usize) -> bool {
        self.told[entry]
    }

    /// A packet was dropped or lost.
    #[cold]
    pub(super) fn gone(&mut self, packet: &impl Recorded) {
        if self.told[packet.flow()] {
            self.gone.push(packet.seen());
        }
    }

    pub(super) fn begin_totals(&mut self) {
        for waits in &mut self.hops {
            waits.distribution_ns.reset();
            *waits = Waits {
                distribution_ns: std::mem::take(&mut waits.distribution_ns),
                ..Waits::default()
            };
        }
    }
}
