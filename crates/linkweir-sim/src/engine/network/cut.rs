// SPDX-License-Identifier: BSD-3-Clause
//! Which process goes to which thread.

use super::plan::Plan;

/// A partition for each process.
pub(super) struct Cut {
    /// By place.
    pub(super) parts: Vec<u32>,
    /// The least time of a message from one partition to another, ns.
    pub(super) lookahead_ns: u64,
}

impl Cut {
    pub(super) fn new(plan: &Plan, _threads: usize) -> Cut {
        Cut {
            parts: vec![0; plan.links()],
            lookahead_ns: u64::MAX,
        }
    }
}
