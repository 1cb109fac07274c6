// SPDX-License-Identifier: BSD-3-Clause
//! Which of many processes is next: a tree of winners (Knuth, volume 3, section 5.4.1). Every node has the earlier of the two
//! below it, the one with the lower index at equal times.

/// A process without an event.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Earliest {
    /// Time and index; the leaves are the second half, the root is 1.
    nodes: Vec<(u64, u32)>,
    leaves: usize,
}

impl Earliest {
    /// For so many processes, none of which has an event.
    pub(super) fn new(processes: usize) -> Earliest {
        let leaves = processes.next_power_of_two().max(1);
        let mut nodes = vec![(NEVER, 0); 2 * leaves];
        for at in (1..2 * leaves).rev() {
            nodes[at].1 = if at >= leaves {
                (at - leaves) as u32
            } else {
                nodes[2 * at].1
            };
        }
        Earliest { nodes, leaves }
    }

    /// Time and index of the next one.
    #[inline]
    pub(super) fn first(&self) -> (u64, u32) {
        self.nodes[1]
    }

    /// When the next event of a process is.
    #[inline]
    pub(super) fn at_ns(&self, index: u32) -> u64 {
        self.nodes[self.leaves + index as usize].0
    }

    /// A process has its next event at this time.
    #[inline]
    pub(super) fn set(&mut self, index: u32, at_ns: u64) {
        let mut at = self.leaves + index as usize;
        if self.nodes[at].0 == at_ns {
            return;
        }
        self.nodes[at].0 = at_ns;
        while at > 1 {
            let (left, right) = (self.nodes[at & !1], self.nodes[at | 1]);
            let winner = if right.0 < left.0 { right } else { left };
            at /= 2;
            if self.nodes[at] == winner {
                return;
            }
            self.nodes[at] = winner;
        }
    }

    /// A process has an event at this time, and maybe an earlier one.
    #[inline]
    pub(super) fn lower(&mut self, index: u32, at_ns: u64) {
        if at_ns < self.nodes[self.leaves + index as usize].0 {
            self.set(index, at_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_at_equal_times_the_lowest() {
        let mut state = 1u64;
        for processes in [1, 2, 3, 7, 8, 33] {
            let mut tree = Earliest::new(processes);
            let mut times = vec![NEVER; processes];
            for _ in 0..2_000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let index = (state >> 33) as usize % processes;
                let at_ns = match (state >> 20) % 8 {
                    7 => NEVER,
                    at_ns => at_ns,
                };
                if (state >> 50) % 2 == 0 {
                    tree.set(index as u32, at_ns);
                    times[index] = at_ns;
                } else {
                    tree.lower(index as u32, at_ns);
                    times[index] = times[index].min(at_ns);
                }
                let first = (0..processes).min_by_key(|i| times[*i]).unwrap();
                assert_eq!(tree.first().0, times[first]);
                if times[first] < NEVER {
                    assert_eq!(tree.first(), (times[first], first as u32));
                }
            }
        }
    }
}
