// SPDX-License-Identifier: BSD-3-Clause
//! A list of the queues that may be served, so that the others need not be visited.

use linkweir_core::View;

use super::means::eligible;

#[derive(Debug)]
pub(super) struct Servable {
    /// A bit for each queue.
    words: Vec<u64>,
}

impl Servable {
    pub(super) fn new(nqueues: usize) -> Servable {
        Servable {
            words: vec![0; nqueues.div_ceil(64)],
        }
    }

    /// After anything that happened to a queue.
    pub(super) fn follow(&mut self, view: &View<'_>, q: usize) {
        let bit = 1 << (q % 64);
        if eligible(&view.queues[q]) {
            self.words[q / 64] |= bit;
        } else {
            self.words[q / 64] &= !bit;
        }
    }

    /// By index.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(64 * at + bit)
            })
        })
    }
}
