// SPDX-License-Identifier: BSD-3-Clause
//! Indices of sessions: random, so that datagrams do not tell how many peers there are or when a gateway started.

use std::collections::HashSet;
use std::io;

/// Bits of an index.
const MASK: u32 = 0xff_ffff;

/// The indices in use.
#[derive(Default)]
pub(crate) struct Indices {
    used: HashSet<u32>,
}

impl Indices {
    /// A random index that no other session has.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(crate) fn draw(&mut self) -> io::Result<u32> {
        loop {
            let mut bytes = [0; 4];
            getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
            let index = u32::from_ne_bytes(bytes) & MASK;
            if self.used.insert(index) {
                return Ok(index);
            }
        }
    }

    /// Frees all indices but these.
    pub(crate) fn keep(&mut self, used: impl Iterator<Item = u32>) {
        self.used = used.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_random_and_differ() {
        let mut indices = Indices::default();
        let first: Vec<u32> = (0..1000).map(|_| indices.draw().unwrap()).collect();
        assert_eq!(indices.used.len(), 1000);
        assert!(first.iter().all(|index| *index <= MASK));
        let again = Indices::default().draw().unwrap();
        let follows = first.windows(2).filter(|pair| pair[0] + 1 == pair[1]);
        assert!(follows.count() < 5 && again != first[0]);
        indices.keep([first[3]].into_iter());
        assert_eq!(indices.used, HashSet::from([first[3]]));
    }
}
