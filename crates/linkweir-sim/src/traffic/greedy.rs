// SPDX-License-Identifier: BSD-3-Clause
//! A source that keeps a number of packets waiting in its queue: it creates one for each that leaves.

use crate::experiment::Sizes;
use crate::random::Random;

#[derive(Debug)]
pub(crate) struct Greedy {
    backlog_pkts: u32,
    waiting_pkts: u32,
    next_bytes: u32,
    sizes: Sizes,
    random: Random,
}

impl Greedy {
    /// A source with nothing waiting yet.
    pub(crate) fn new(backlog_pkts: u32, sizes: &Sizes, mut random: Random) -> Greedy {
        Greedy {
            backlog_pkts,
            waiting_pkts: 0,
            next_bytes: sizes.draw(&mut random),
            sizes: sizes.clone(),
            random,
        }
    }

    /// Whether all its packets wait.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting_pkts >= self.backlog_pkts
    }

    pub(crate) fn waiting_pkts(&self) -> u32 {
        self.waiting_pkts
    }

    /// Length of the packet that is created next.
    pub(crate) fn next_bytes(&self) -> u32 {
        self.next_bytes
    }

    /// Creates a packet, which waits from now on.
    pub(crate) fn create(&mut self) {
        self.next_bytes = self.sizes.draw(&mut self.random);
        self.waiting_pkts += 1;
    }

    /// One of its packets no longer waits: it was sent or dropped.
    #[inline]
    pub(crate) fn left(&mut self) {
        self.waiting_pkts -= 1;
    }
}
