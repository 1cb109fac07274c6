// SPDX-License-Identifier: BSD-3-Clause
//! The pending events, ordered by time, then by the order in which they were scheduled.
//!
//! The frequent kinds of events have at most one pending event each: the end of a transmission, the first items of pipes.
//! Each of these kinds has a lane, so that scheduling it moves nothing else; the others are in a 4-ary heap.

use super::event;

/// Time, sequence number and event from the most significant bit down, so that one comparison orders entries.
type Key = u128;

/// After every entry.
const NOTHING: Key = Key::MAX;

#[derive(Debug)]
pub(super) struct Agenda {
    lanes: [Key; event::LANES],
    heap: Vec<Key>,
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

impl Agenda {
    pub(super) fn new() -> Agenda {
        Agenda {
            lanes: [NOTHING; event::LANES],
            heap: Vec::new(),
            scheduled: 0,
        }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        let [a, b, c, d, e, f] = self.lanes;
        let lane = a.min(b).min(c.min(d)).min(e.min(f));
        let first = self.heap.first().map_or(lane, |first| lane.min(*first));
        (first != NOTHING).then_some(Entry(first))
    }

    #[inline]
    pub(super) fn push(&mut self, time_ns: u64, event: u32) {
        let key = self.key(time_ns, event);
        if let Some(lane) = event::lane(event) {
            debug_assert!(self.lanes[lane] == NOTHING, "the lane is taken");
            self.lanes[lane] = key;
            return;
        }
        let mut at = self.heap.len();
        self.heap.push(key);
        while at > 0 {
            let parent = (at - 1) / 4;
            if key >= self.heap[parent] {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = key;
    }

    /// Takes the first entry, which is this event's, off; or gives it a new time.
    #[inline(always)] // it has a caller for each medium, and is no longer inlined by itself
    pub(super) fn done(&mut self, event: u32, again_ns: Option<u64>) {
        let key = again_ns.map(|time_ns| self.key(time_ns, event));
        if let Some(lane) = event::lane(event) {
            self.lanes[lane] = key.unwrap_or(NOTHING);
            return;
        }
        let last = key.or_else(|| self.heap.pop().filter(|_| !self.heap.is_empty()));
        if let Some(key) = last {
            self.sink(key);
        }
    }

    /// Takes the entry of a kind that has a lane off, if there is one.
    pub(super) fn cancel(&mut self, event: u32) {
        if let Some(lane) = event::lane(event) {
            self.lanes[lane] = NOTHING;
        }
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
        let keys = self.heap.as_mut_slice();
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

    /// Starts the sequence numbers again at 0, in the order of the entries. A sorted list is a heap.
    #[cold]
    fn renumber(&mut self) {
        self.heap.sort_unstable();
        let mut keys: Vec<&mut Key> = self.heap.iter_mut().chain(&mut self.lanes).collect();
        keys.retain(|key| **key != NOTHING);
        keys.sort_unstable();
        self.scheduled = keys.len() as u32;
        for (sequence, key) in keys.into_iter().enumerate() {
            *key = *key & !(Key::from(u32::MAX) << 32) | (sequence as Key) << 32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_by_time_then_by_order_of_scheduling() {
        // The sequence numbers start again at several places, at one of them while the first entry is handled.
        for start in [0, u32::MAX - 20, u32::MAX - 500, u32::MAX - 503] {
            let mut agenda = Agenda {
                scheduled: start,
                ..Agenda::new()
            };
            let mut expected = Vec::new();
            let mut state = 1u64;
            for number in 0..500 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let time_ns = (state >> 33) % 50;
                // Some take each lane, between those without.
                let kind = number / 50;
                let event = if number % 50 == 7 {
                    kind << 28
                } else {
                    event::SOURCE | number
                };
                agenda.push(time_ns, event);
                expected.push((time_ns, event));
            }
            expected.sort_by_key(|e| e.0);
            for (i, (time_ns, event)) in expected.into_iter().enumerate() {
                let first = agenda.first().unwrap();
                assert_eq!((first.time_ns(), first.event()), (time_ns, event));
                let again_ns = 1_000 + i as u64;
                agenda.done(event, (i % 3 == 0).then_some(again_ns));
            }
            let mut last = 0;
            while let Some(first) = agenda.first() {
                assert!(first.time_ns() > last);
                last = first.time_ns();
                agenda.done(first.event(), None);
            }
            assert_eq!(last, 1_000 + 498);
        }
    }

    #[test]
    fn lanes_come_out_among_the_others() {
        let mut agenda = Agenda::new();
        let mut expected = Vec::new();
        for lane in 0..event::LANES as u32 {
            for (time_ns, event) in [
                (5, lane << 28),
                (5, event::SOURCE | lane),
                (3, event::ACK | (1 + lane)),
            ] {
                agenda.push(time_ns, event);
                expected.push((time_ns, event));
            }
        }
        // Each lane once more, at its own time and after all of that time.
        let again: Vec<(u64, u32)> = (0..event::LANES as u32).map(|l| (5, l << 28)).collect();
        expected.extend(again);
        expected.sort_by_key(|e| e.0);
        let mut left = event::LANES;
        for (time_ns, event) in expected {
            let first = agenda.first().unwrap();
            assert_eq!((first.time_ns(), first.event()), (time_ns, event));
            let again = event::lane(event).is_some() && left > 0;
            left -= usize::from(again);
            agenda.done(event, again.then_some(5));
        }
        assert_eq!(agenda.first(), None);
    }
}
