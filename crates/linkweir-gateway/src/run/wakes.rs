// SPDX-License-Identifier: BSD-3-Clause
//! Which peers are served next: those for which something happened, and those whose time has come. What has nothing to do
//! costs nothing, however many peers there are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// No time.
const NEVER: u64 = u64::MAX;

/// Peers by number, and when they are served.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    ready: VecDeque<usize>,
    is_ready: Vec<bool>,
    /// Times and peers; those that are not the peer's time of `at_ns` count no more.
    alarms: BinaryHeap<Reverse<(u64, usize)>>,
    at_ns: Vec<u64>,
}

impl Wakes {
    /// For so many peers, all of which are served next.
    pub(super) fn new(peers: usize) -> Wakes {
        Wakes {
            ready: (0..peers).collect(),
            is_ready: vec![true; peers],
            alarms: BinaryHeap::new(),
            at_ns: vec![NEVER; peers],
        }
    }

    /// A peer is served next.
    pub(super) fn wake(&mut self, at: usize) {
        if !self.is_ready[at] {
            self.is_ready[at] = true;
            self.ready.push_back(at);
        }
    }

    /// Sets when a peer is served again if nothing happens before, ns.
    pub(super) fn set(&mut self, at: usize, ns: Option<u64>) {
        let ns = ns.unwrap_or(NEVER);
        if self.at_ns[at] == ns {
            return;
        }
        self.at_ns[at] = ns;
        if ns != NEVER {
            if self.alarms.len() > 4 * self.at_ns.len() + 1024 {
                let counts = |Reverse((ns, at)): &Reverse<(u64, usize)>| self.at_ns[*at] == *ns;
                self.alarms.retain(counts);
            }
            self.alarms.push(Reverse((ns, at)));
        }
    }

    /// Makes those ready whose time has come.
    pub(super) fn take_due(&mut self, now_ns: u64) {
        while let Some(Reverse((ns, at))) = self.alarms.peek().copied() {
            let counts = self.at_ns[at] == ns;
            if counts && now_ns < ns {
                return;
            }
            self.alarms.pop();
            if counts {
                self.at_ns[at] = NEVER;
                self.wake(at);
            }
        }
    }

    /// The number of peers that are ready.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The next that is ready.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let at = self.ready.pop_front()?;
        self.is_ready[at] = false;
        Some(at)
    }

    /// When the next has its time, ns.
    pub(super) fn next_ns(&self) -> Option<u64> {
        // One that counts no more may come too early; then it is taken out.
        self.alarms.peek().map(|Reverse((ns, _))| *ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(wakes: &mut Wakes) -> Vec<usize> {
        std::iter::from_fn(|| wakes.pop()).collect()
    }

    #[test]
    fn each_is_served_once_in_order_and_at_its_last_time() {
        let mut wakes = Wakes::new(3);
        assert_eq!(all(&mut wakes), [0, 1, 2], "all at first");
        wakes.wake(2);
        wakes.wake(0);
        wakes.wake(2);
        assert_eq!(wakes.ready(), 2);
        assert_eq!(all(&mut wakes), [2, 0]);

        wakes.set(0, Some(50));
        wakes.set(1, Some(20));
        wakes.set(0, Some(30));
        wakes.set(2, Some(25));
        wakes.set(2, None);
        assert_eq!(wakes.next_ns(), Some(20));
        wakes.take_due(19);
        assert_eq!(wakes.ready(), 0);
        wakes.take_due(30);
        assert_eq!(all(&mut wakes), [1, 0]);
        wakes.take_due(100);
        assert_eq!(all(&mut wakes), [0; 0], "its former time counts no more");
        assert_eq!(wakes.next_ns(), None);
    }

    #[test]
    fn times_that_count_no_more_do_not_pile_up() {
        let mut wakes = Wakes::new(2);
        for ns in (1_000_000..2_000_000).rev() {
            wakes.set(0, Some(ns));
        }
        assert!(wakes.alarms.len() < 2000, "{}", wakes.alarms.len());
        wakes.take_due(1_000_000);
        assert_eq!(all(&mut wakes), [0, 1]);
    }
}
