// SPDX-License-Identifier: BSD-3-Clause
//! Greedy flows that lack packets, in the order in which they take turns.

use super::flow::{Flow, Kind};

#[derive(Debug, Default)]
pub(super) struct Lacking {
    flows: Vec<u32>,
    /// Those of them that have their turn now.
    turns: Vec<u32>,
}

impl Lacking {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Lists a greedy flow, once.
    #[inline]
    pub(super) fn add(&mut self, flows: &mut [Flow], flow: u32) {
        if let Kind::Greedy { listed, .. } = &mut flows[flow as usize].kind {
            if !std::mem::replace(listed, true) {
                self.flows.push(flow);
            }
        }
    }

    /// A packet of this flow no longer waits: a greedy flow lacks it.
    #[inline]
    pub(super) fn left(&mut self, flows: &mut [Flow], flow: u32) {
        if let Kind::Greedy { source, listed } = &mut flows[flow as usize].kind {
            source.left();
            if !std::mem::replace(listed, true) {
                self.flows.push(flow);
            }
        }
    }

    /// Gives each listed flow a turn; returns how many. Flows that lack packets from now on wait for another round.
    pub(super) fn begin_turns(&mut self, flows: &mut [Flow]) -> usize {
        std::mem::swap(&mut self.flows, &mut self.turns);
        for flow in &self.turns {
            if let Kind::Greedy { listed, .. } = &mut flows[*flow as usize].kind {
                *listed = false;
            }
        }
        self.turns.len()
    }

    /// The flow that takes turn number `at`.
    pub(super) fn turn(&self, at: usize) -> u32 {
        self.turns[at]
    }

    pub(super) fn end_turns(&mut self) {
        self.turns.clear();
    }
}
