// SPDX-License-Identifier: BSD-3-Clause
//! The payloads of packets inside the link, by class and number. Most packets leave in the order in which they came.

use std::collections::VecDeque;

/// A packet inside the link.
#[derive(Debug)]
pub(crate) struct Carried<P> {
    pub(crate) payload: P,
    pub(crate) bytes: u32,
    pub(crate) sent_ns: u64,
    pub(crate) left_ns: u64,
}

/// The packets of one class.
#[derive(Debug)]
pub(crate) struct Inside<P> {
    /// Number of the first one kept.
    first: u64,
    kept: VecDeque<Option<Carried<P>>>,
}

impl<P> Inside<P> {
    pub(crate) fn new() -> Inside<P> {
        Inside {
            first: 0,
            kept: VecDeque::new(),
        }
    }

    /// The next number's packet enters.
    pub(crate) fn put(&mut self, packet: Carried<P>) {
        self.kept.push_back(Some(packet));
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Carried<P>> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.kept.get_mut(place)?.as_mut()
    }

    pub(crate) fn take(&mut self, number: u64) -> Option<Carried<P>> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let taken = self.kept.get_mut(place)?.take();
        while matches!(self.kept.front(), Some(None)) {
            self.kept.pop_front();
            self.first += 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_once_and_in_any_order() {
        let mut inside = Inside::new();
        for payload in 0..5u64 {
            inside.put(Carried {
                payload,
                bytes: 1,
                sent_ns: payload,
                left_ns: 0,
            });
        }
        for number in [2, 0, 4, 1, 3] {
            assert_eq!(inside.take(number).map(|kept| kept.payload), Some(number));
            assert!(inside.take(number).is_none() && inside.get_mut(number).is_none());
        }
        assert!(inside.kept.is_empty() && inside.first == 5);
        assert!(inside.take(5).is_none());
    }
}
