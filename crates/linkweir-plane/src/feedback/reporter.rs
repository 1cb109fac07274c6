// SPDX-License-Identifier: BSD-3-Clause
//! The receiver's end of the feedback: it counts what came and answers marks.

use super::message::{apart_ns, Message, Report};

/// Least time between reports, ns.
pub(super) const REPORT_NS: u64 = 10_000_000;

/// The receiver's end: counts what came from a peer, and reports it when a mark asks.
#[derive(Debug, Default)]
pub struct Reporter {
    pkts: u64,
    pub(super) bytes: u64,
    next_ns: u64,
    /// The report on the last mark, not sent yet.
    pending: Option<Report>,
}

impl Reporter {
    /// Counts a packet.
    pub fn count(&mut self, bytes: usize) {
        self.pkts += 1;
        self.bytes += bytes as u64;
    }

    /// Takes a mark. Of several without a report only the last is answered.
    pub fn marked(&mut self, now_ns: u64, sent_ns: u64) {
        self.pending = Some(Report {
            sent_ns,
            received_ns: now_ns,
            pkts: self.pkts,
            bytes: self.bytes,
        });
    }

    /// When a report is due, ns; none while no mark waits for one.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        self.pending.map(|_| self.next_ns)
    }

    /// Makes the report that is due now. It takes `wire_bytes` on a link of this capacity, bit/s, that so many peers share.
    pub fn report(
        &mut self,
        now_ns: u64,
        wire_bytes: u32,
        capacity_bps: u64,
        peers: u64,
    ) -> Option<Message> {
        let report = self.pending.take()?;
        let apart_ns = apart_ns(wire_bytes, capacity_bps as f64, peers).max(REPORT_NS);
        self.next_ns = now_ns.saturating_add(apart_ns);
        Some(Message::Report(report))
    }
}
