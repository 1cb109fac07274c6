// SPDX-License-Identifier: BSD-3-Clause
//! A delay line that keeps the order of its items, so that only the first needs an entry among the pending events.

use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct DelayLine<T> {
    items: VecDeque<(u64, T)>,
    last_ns: u64,
}

impl<T> DelayLine<T> {
    pub(super) fn new() -> DelayLine<T> {
        DelayLine {
            items: VecDeque::new(),
            last_ns: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Puts an item in that comes out at `out_ns`, or with the item before it if that is later. Returns the time when it
    /// is the first one, which must then be scheduled.
    #[inline]
    pub(super) fn push(&mut self, out_ns: u64, item: T) -> Option<u64> {
        let out_ns = out_ns.max(self.last_ns);
        self.last_ns = out_ns;
        let first = self.items.is_empty();
        self.items.push_back((out_ns, item));
        first.then_some(out_ns)
    }

    /// When the last item that was put in comes out, or came out; 0 before the first.
    pub(super) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// When each of the last `most` items comes out, and the item; the last one first.
    #[inline]
    pub(super) fn latest_mut(&mut self, most: usize) -> impl Iterator<Item = (u64, &mut T)> {
        let latest = self.items.iter_mut().rev().take(most);
        latest.map(|(out_ns, item)| (*out_ns, item))
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        self.items.pop_front().map(|(_, item)| item)
    }

    /// When the first item comes out.
    #[inline]
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.items.front().map(|(out_ns, _)| *out_ns)
    }
}
