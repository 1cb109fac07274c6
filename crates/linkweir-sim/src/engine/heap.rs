// SPDX-License-Identifier: BSD-3-Clause
//! The pending events: a 4-ary heap ordered by time, then by the order in which they were scheduled.

/// When, in which order among those of the same time, and what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) time_ns: u64,
    sequence: u32,
    pub(super) event: u32,
}

impl Entry {
    /// Sequence numbers wrap: entries of one time are less than 2^31 apart.
    #[inline]
    fn before(&self, other: &Entry) -> bool {
        if self.time_ns != other.time_ns {
            return self.time_ns < other.time_ns;
        }
        (self.sequence.wrapping_sub(other.sequence) as i32) < 0
    }
}

#[derive(Debug, Default)]
pub(super) struct Heap {
    entries: Vec<Entry>,
    scheduled: u32,
}

impl Heap {
    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    #[inline]
    pub(super) fn push(&mut self, time_ns: u64, event: u32) {
        let entry = self.entry(time_ns, event);
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / 4;
            if !entry.before(&self.entries[parent]) {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    /// Takes the first entry off.
    #[inline]
    pub(super) fn pop(&mut self) {
        let last = self.entries.pop().expect("there is a first entry");
        if !self.entries.is_empty() {
            self.sink(last);
        }
    }

    /// Gives the first entry's event a new time.
    #[inline]
    pub(super) fn postpone(&mut self, time_ns: u64) {
        let entry = self.entry(time_ns, self.entries[0].event);
        self.sink(entry);
    }

    fn entry(&mut self, time_ns: u64, event: u32) -> Entry {
        let sequence = self.scheduled;
        self.scheduled = self.scheduled.wrapping_add(1);
        Entry {
            time_ns,
            sequence,
            event,
        }
    }

    /// Puts an entry where the first one was and lets it sink to its place.
    #[inline]
    fn sink(&mut self, entry: Entry) {
        let entries = self.entries.as_mut_slice();
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            if first >= entries.len() {
                break;
            }
            let mut least = first;
            for child in first + 1..entries.len().min(first + 4) {
                if entries[child].before(&entries[least]) {
                    least = child;
                }
            }
            if !entries[least].before(&entry) {
                break;
            }
            entries[at] = entries[least];
            at = least;
        }
        entries[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_by_time_then_by_order_of_scheduling() {
        let mut heap = Heap {
            scheduled: u32::MAX - 20,
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
            assert_eq!((first.time_ns, first.event), (time_ns, event));
            if i % 3 == 0 {
                heap.postpone(1_000 + i as u64);
            } else {
                heap.pop();
            }
        }
        let mut last = 0;
        while let Some(first) = heap.first() {
            assert!(first.time_ns > last);
            last = first.time_ns;
            heap.pop();
        }
        assert_eq!(last, 1_000 + 498);
    }
}
