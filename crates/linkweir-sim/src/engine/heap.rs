// SPDX-License-Identifier: BSD-3-Clause
//! The pending events: a 4-ary heap ordered by time, then by the order in which they were scheduled.

/// Time, sequence number and event from the most significant bit down, so that one comparison orders entries.
type Key = u128;

#[derive(Debug, Default)]
pub(super) struct Heap {
    keys: Vec<Key>,
    scheduled: u32,
}

/// When, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry(Key);

impl Entry {
    pub(super) fn time_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub(super) fn event(self) -> u32 {
        self.0 as u32
    }
}

impl Heap {
    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        self.keys.first().copied().map(Entry)
    }

    #[inline]
    pub(super) fn push(&mut self, time_ns: u64, event: u32) {
        let key = self.key(time_ns, event);
        let mut at = self.keys.len();
        self.keys.push(key);
        while at > 0 {
            let parent = (at - 1) / 4;
            if key >= self.keys[parent] {
                break;
            }
            self.keys[at] = self.keys[parent];
            at = parent;
        }
        self.keys[at] = key;
    }

    /// Takes the first entry off.
    #[inline]
    pub(super) fn pop(&mut self) {
        let last = self.keys.pop().expect("there is a first entry");
        if !self.keys.is_empty() {
            self.sink(last);
        }
    }

    /// Gives the first entry's event a new time.
    #[inline]
    pub(super) fn postpone(&mut self, time_ns: u64) {
        let event = self.keys[0] as u32;
        let key = self.key(time_ns, event);
        self.sink(key);
    }

    #[inline]
    fn key(&mut self, time_ns: u64, event: u32) -> Key {
        if self.scheduled == u32::MAX {
            self.renumber();
        }
        let sequence = self.scheduled;
        self.scheduled += 1;
        Key::from(time_ns) << 64 | Key::from(sequence) << 32 | Key::from(event)
    }

    /// Puts an entry where the first one was and lets it sink to its place.
    #[inline]
    fn sink(&mut self, key: Key) {
        let keys = self.keys.as_mut_slice();
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            let (least, least_key) = if let Some(four) = keys.get(first..first + 4) {
                let left = if four[1] < four[0] {
                    (1, four[1])
                } else {
                    (0, four[0])
                };
                let right = if four[3] < four[2] {
                    (3, four[3])
                } else {
                    (2, four[2])
                };
                let (child, child_key) = if right.1 < left.1 { right } else { left };
                (first + child, child_key)
            } else {
                let rest = keys.get(first..).unwrap_or(&[]);
                let Some((child, child_key)) = rest.iter().enumerate().min_by_key(|(_, key)| **key)
                else {
                    break;
                };
                (first + child, *child_key)
            };
            if key <= least_key {
                break;
            }
            keys[at] = least_key;
            at = least;
        }
        keys[at] = key;
    }

    /// Begins the sequence numbers anew, in the order the entries have: a sorted list is a heap.
    #[cold]
    fn renumber(&mut self) {
        self.keys.sort_unstable();
        for (sequence, key) in self.keys.iter_mut().enumerate() {
            *key = *key & !(Key::from(u32::MAX) << 32) | (sequence as Key) << 32;
        }
        self.scheduled = self.keys.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_by_time_then_by_order_of_scheduling() {
        // The sequence numbers begin anew at several places, the first entry being handled at one of them.
        for start in [0, u32::MAX - 20, u32::MAX - 500, u32::MAX - 503] {
            let mut heap = Heap {
                scheduled: start,
                ..Heap::default()
            };
            let mut expected = Vec::new();
            let mut state = 1u64;
            for event in 0..500 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let time_ns = (state >> 33) % 50;
                heap.push(time_ns, event);
                expected.push((time_ns, event));
            }
            expected.sort_by_key(|e| e.0);
            for (i, (time_ns, event)) in expected.into_iter().enumerate() {
                let first = heap.first().unwrap();
                assert_eq!((first.time_ns(), first.event()), (time_ns, event));
                if i % 3 == 0 {
                    heap.postpone(1_000 + i as u64);
                } else {
                    heap.pop();
                }
            }
            let mut last = 0;
            while let Some(first) = heap.first() {
                assert!(first.time_ns() > last);
                last = first.time_ns();
                heap.pop();
            }
            assert_eq!(last, 1_000 + 498);
        }
    }
}
