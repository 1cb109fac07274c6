// SPDX-License-Identifier: BSD-3-Clause
//! How many of its segments a sender finds marked in each round, and Prague's moving average of these fractions, with a gain of
//! 1/16 (draft-briscoe-iccrg-prague-congestion-control-04, section 2.3.2).

const GAIN: f64 = 1.0 / 16.0;

/// The segments of a round: those that are acknowledged until all is that had been sent when it began.
#[derive(Clone, Debug, Default)]
pub struct Round {
    end: u64,
    /// Segments that were delivered, and those that had a mark.
    acked: u64,
    marked: u64,
}

impl Round {
    /// Begins one; `next` is the first segment that has not been sent.
    pub fn begin(&mut self, next: u64) {
        *self = Round {
            end: next,
            ..Round::default()
        };
    }

    /// An acknowledgement reported so many segments.
    #[inline]
    pub fn count(&mut self, acked: u64, marked: u64) {
        self.acked += acked;
        self.marked += marked;
    }

    #[inline]
    pub fn is_over(&self, una: u64) -> bool {
        una >= self.end
    }

    /// The part of its segments that had a mark, times `whole` and rounded down. Of segments received twice there can be more
    /// marks than deliveries.
    pub fn marked_of(&self, whole: u64) -> u64 {
        self.marked * whole / self.acked.max(1)
    }

    /// The same as a number, at most 1.
    fn fraction(&self) -> f64 {
        (self.marked as f64 / self.acked.max(1) as f64).min(1.0)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Alpha {
    value: f64,
    pub round: Round,
}

impl Alpha {
    pub fn new(value: f64) -> Alpha {
        Alpha {
            value,
            round: Round::default(),
        }
    }

    pub fn value(&self) -> f64 {
        self.value
    }

    pub fn set(&mut self, value: f64) {
        self.value = value;
    }

    /// Takes in the fraction of this round, and begins the next one.
    pub fn update(&mut self, next: u64) {
        self.value += GAIN * (self.round.fraction() - self.value);
        self.round.begin(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_what_was_outstanding_when_it_began() {
        let mut round = Round::default();
        round.begin(11);
        assert!(!round.is_over(10));
        assert!(round.is_over(11));
    }

    #[test]
    fn more_marks_than_deliveries_count_as_all() {
        let mut alpha = Alpha::new(0.0);
        alpha.round.count(2, 3);
        alpha.update(0);
        assert_eq!(alpha.value(), 1.0 / 16.0);
        alpha.update(0);
        assert_eq!(alpha.value(), 15.0 / 256.0, "nothing was acknowledged");
        alpha.round.count(0, 1);
        alpha.set(0.0);
        alpha.update(0);
        assert_eq!(alpha.value(), 1.0 / 16.0, "only one received twice");
    }
}

/// The lists of `tests/marks`, which `oracle/scalable.py` writes.
#[cfg(test)]
pub mod lists {
    use std::path::Path;

    pub struct Line(Vec<String>);

    impl Line {
        pub fn word(&self, at: usize) -> &str {
            &self.0[at]
        }

        pub fn whole(&self, at: usize) -> u64 {
            self.0[at].parse().unwrap()
        }

        /// This word is the number, but for rounding.
        pub fn is_near(&self, at: usize, number: f64) -> bool {
            let wanted: f64 = self.0[at].parse().unwrap();
            (wanted - number).abs() <= 1e-9 * wanted.max(1e-3)
        }
    }

    /// The lines of each list of an algorithm.
    pub fn read(algorithm: &str) -> Vec<(String, Vec<Line>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/marks");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.starts_with(algorithm) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let words = |line: &str| Line(line.split(' ').map(str::to_owned).collect());
            found.push((name, lines.map(words).collect()));
        }
        assert!(found.len() > 1, "{algorithm}");
        found
    }
}
