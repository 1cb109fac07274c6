// SPDX-License-Identifier: BSD-3-Clause
//! A tournament tree: finds the greatest of many scores, or all above a threshold, while single scores change.

/// The score of a queue that does not take part, below all others.
pub(super) const ABSENT: f64 = 0.0;

/// Each entry is a leaf of a binary tree; every other node has the greater score of the two below it.
#[derive(Debug, Default)]
pub(super) struct Tournament {
    /// The root is node 1, below node i are 2 i and 2 i + 1, and entry q is node `leaves` + q.
    nodes: Vec<f64>,
    /// A power of two, more than there are entries.
    leaves: usize,
}

impl Tournament {
    /// No queue takes part.
    pub(super) fn new(entries: usize) -> Tournament {
        let leaves = (entries + 1).next_power_of_two();
        Tournament {
            nodes: vec![ABSENT; 2 * leaves],
            leaves,
        }
    }

    pub(super) fn set(&mut self, q: usize, score: f64) {
        let mut node = self.leaves + q;
        self.nodes[node] = score;
        while node > 1 {
            node /= 2;
            let greater = self.greater_below(node);
            if self.nodes[node] == greater {
                return;
            }
            self.nodes[node] = greater;
        }
    }

    /// Sets the scores of the first entries, of all that there are.
    pub(super) fn set_all(&mut self, scores: impl Iterator<Item = f64>) {
        for (node, score) in self.nodes[self.leaves..].iter_mut().zip(scores) {
            *node = score;
        }
        for node in (1..self.leaves).rev() {
            self.nodes[node] = self.greater_below(node);
        }
    }

    /// The queue with the greatest score, the first of equals; none when no queue takes part.
    pub(super) fn first(&self) -> Option<usize> {
        if self.nodes[1] == ABSENT {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.nodes[node + 1] > self.nodes[node]);
        }
        Some(node - self.leaves)
    }

    /// The first from entry `q` on, at most the number of entries, that takes part with at least this score.
    pub(super) fn next(&self, q: usize, least: f64) -> Option<usize> {
        let beaten = |node: usize| self.nodes[node] < least || self.nodes[node] == ABSENT;
        let mut node = self.leaves + q;
        while beaten(node) {
            // On to the next subtree; there is none on the right edge.
            node >>= node.trailing_ones();
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            node += usize::from(beaten(node));
        }
        Some(node - self.leaves)
    }

    fn greater_below(&self, node: usize) -> f64 {
        let (a, b) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        if b > a {
            b
        } else {
            a
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn finds_who_a_look_at_all_finds() {
        let mut random = Random::new(1, 1);
        for entries in [1, 2, 3, 7, 8, 9, 40] {
            let mut below = |most: usize| (most as f64 * random.unit()) as usize;
            let mut scores = vec![ABSENT; entries];
            let mut tournament = Tournament::new(entries);
            assert_eq!(tournament.first(), None);
            for _ in 0..2000 {
                // Few values, so that there are equals.
                if below(20) == 0 {
                    scores.fill_with(|| below(4) as f64);
                    tournament.set_all(scores.iter().copied());
                }
                let (q, score) = (below(entries), below(6) as f64);
                scores[q] = score;
                tournament.set(q, score);
                let most = scores.iter().fold(ABSENT, |a, &b| a.max(b));
                let first = scores.iter().position(|&score| score == most);
                assert_eq!(tournament.first(), first.filter(|_| most > ABSENT));
                let (from, least) = (below(entries + 1), below(6) as f64);
                let wanted = (from..entries).find(|&q| scores[q] >= least && scores[q] > ABSENT);
                assert_eq!(tournament.next(from, least), wanted);
            }
        }
    }
}
