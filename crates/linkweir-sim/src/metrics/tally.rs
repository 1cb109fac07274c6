// SPDX-License-Identifier: BSD-3-Clause
//! Counters of a link with one class and no drops but at its tail, close together in memory. A [`Recorder`] takes them over
//! whenever tables are written.
//!
//! [`Recorder`]: super::Recorder

use linkweir_core::Distribution;

/// What happened since the recorder last took it over, and what waits.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(super) arrived_pkts: u64,
    pub(super) arrived_bytes: u64,
    pub(super) sent_pkts: u64,
    pub(super) sent_bytes: u64,
    pub(super) dropped_pkts: u64,
    pub(super) delay_ns: u128,
    pub(super) max_ns: u64,
    pub(super) backlog_pkts: u64,
    pub(super) backlog_bytes: u64,
    /// Packets waiting, added up over time, packets times ns, up to a time.
    pub(super) backlog_ns: u128,
    pub(super) at_ns: u64,
}

/// The same of one entry, without what waits. What a packet that does not wait counts is in front.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct EntryTally {
    pub(super) delay_ns: u128,
    pub(super) arrived_pkts: u64,
    pub(super) sent_pkts: u64,
    /// Packets that did not wait, since the start of what totals cover. They are not in `waits_ns`.
    at_once_pkts: u64,
    pub(super) max_ns: u64,
    pub(super) dropped_pkts: u64,
    /// Waiting times since the start of what totals cover.
    waits_ns: Distribution,
}

impl EntryTally {
    /// Waiting times since the start of what totals cover.
    pub(crate) fn waits_ns(&mut self) -> &Distribution {
        let at_once_pkts = std::mem::take(&mut self.at_once_pkts);
        if at_once_pkts > 0 {
            self.waits_ns.record_n(0, at_once_pkts);
        }
        &self.waits_ns
    }

    /// The same, at the end: they are forgotten here.
    pub(super) fn take_waits_ns(&mut self) -> Distribution {
        self.waits_ns();
        std::mem::take(&mut self.waits_ns)
    }

    pub(crate) fn begin_totals(&mut self) {
        self.at_once_pkts = 0;
        self.waits_ns.reset();
    }
}

impl Tally {
    /// Adds the backlog up to now.
    #[inline]
    pub(crate) fn advance(&mut self, now_ns: u64) {
        self.backlog_ns += u128::from(now_ns - self.at_ns) * u128::from(self.backlog_pkts);
        self.at_ns = now_ns;
    }

    /// A packet comes, and waits.
    #[inline]
    pub(crate) fn arrived(&mut self, now_ns: u64, bytes: u32, entry: &mut EntryTally) {
        self.advance(now_ns);
        self.arrived_pkts += 1;
        self.arrived_bytes += u64::from(bytes);
        self.backlog_pkts += 1;
        self.backlog_bytes += u64::from(bytes);
        entry.arrived_pkts += 1;
    }

    /// It does not wait: there is no room.
    #[cold]
    pub(crate) fn dropped(&mut self, bytes: u32, entry: &mut EntryTally) {
        self.backlog_pkts -= 1;
        self.backlog_bytes -= u64::from(bytes);
        self.dropped_pkts += 1;
        entry.dropped_pkts += 1;
    }

    /// A packet goes to the device.
    #[inline]
    pub(crate) fn sent(&mut self, now_ns: u64, bytes: u32, wait_ns: u64, entry: &mut EntryTally) {
        self.advance(now_ns);
        self.backlog_pkts -= 1;
        self.backlog_bytes -= u64::from(bytes);
        self.sent_pkts += 1;
        self.sent_bytes += u64::from(bytes);
        self.delay_ns += u128::from(wait_ns);
        self.max_ns = self.max_ns.max(wait_ns);
        entry.sent_pkts += 1;
        if wait_ns == 0 {
            entry.at_once_pkts += 1;
            return;
        }
        entry.delay_ns += u128::from(wait_ns);
        entry.max_ns = entry.max_ns.max(wait_ns);
        entry.waits_ns.record(wait_ns);
    }

    /// Bytes sent that the recorder does not know of.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}
