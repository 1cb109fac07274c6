// SPDX-License-Identifier: BSD-3-Clause
//! Numbers of events: the kind in the upper four bits, an index below.

// Kinds with at most one pending event, at index 0: they have lanes (agenda.rs).
pub(super) const SENT: u32 = 0;
pub(super) const ARRIVAL: u32 = 1 << 28;
pub(super) const DECODE: u32 = 2 << 28;
pub(super) const ANSWER: u32 = 3 << 28;
pub(super) const ACCESS: u32 = 4 << 28;
pub(super) const ACK: u32 = 5 << 28;
pub(super) const LANES: usize = 6;

pub(super) const SOURCE: u32 = 6 << 28;
pub(super) const SENDER_TIMER: u32 = 7 << 28;
pub(super) const RECEIVER_TIMER: u32 = 8 << 28;
pub(super) const OPPORTUNITY: u32 = 9 << 28;
pub(super) const REPORT: u32 = 10 << 28;
pub(super) const RETRY: u32 = 11 << 28;
/// Packets become too old.
pub(super) const AGE: u32 = RETRY | 1;
/// In a network: the link goes, or is there again.
pub(super) const ABSENCE: u32 = RETRY | 2;
/// In a network: a letter has taken the access delay of its sender.
pub(super) const LETTER: u32 = RETRY | 3;
pub(super) const ORDER: u32 = 12 << 28;
pub(super) const CSI: u32 = 13 << 28;
pub(super) const CHANNEL: u32 = 14 << 28;
pub(super) const HELD_BACK: u32 = 15 << 28;
pub(super) const INDEX: u32 = (1 << 28) - 1;

/// The lane of an event that has one.
pub(super) fn lane(event: u32) -> Option<usize> {
    let kind = (event >> 28) as usize;
    (kind < LANES && event & INDEX == 0).then_some(kind)
}
