// SPDX-License-Identifier: BSD-3-Clause
//! Bonds: what simulator and gateway take for the keys of a class that are left out.

/// How long the receiver restores the order unless the class says so, ns.
const USUAL_REORDER_NS: u64 = 50_000_000;

/// How long the receiver restores the order of a class, ns; none: it drops duplicates only. Packets that are sent over all
/// paths are not held: one that came over none of them would only delay those behind it.
#[must_use]
pub const fn reorder_ns(over_all: bool) -> Option<u64> {
    if over_all {
        None
    } else {
        Some(USUAL_REORDER_NS)
    }
}

/// The same in words.
pub const REORDER: &str = "`\"50ms\"`, with `all` `\"none\"`";
