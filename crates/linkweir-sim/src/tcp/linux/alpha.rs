// SPDX-License-Identifier: BSD-3-Clause
//! How many of its segments a sender finds marked: a moving average of the fraction in each round, with a gain of 1/16
//! (RFC 8257, section 3.3; draft-briscoe-iccrg-prague-congestion-control-04, section 2.3.2).

const GAIN: f64 = 1.0 / 16.0;

/// See the module. A round ends when all is acknowledged that had been sent when it began.
#[derive(Clone, Debug)]
pub struct Alpha {
    value: f64,
    round_end: u64,
    /// Segments of this round that were delivered, and those that had a mark.
    acked: u64,
    marked: u64,
}

impl Alpha {
    pub fn new(value: f64) -> Alpha {
        Alpha {
            value,
            round_end: 0,
            acked: 0,
            marked: 0,
        }
    }

    pub fn value(&self) -> f64 {
        self.value
    }

    pub fn set(&mut self, value: f64) {
        self.value = value;
    }

    /// Begins a round; `next` is the first segment that has not been sent.
    pub fn begin(&mut self, next: u64) {
        self.round_end = next;
        self.acked = 0;
        self.marked = 0;
    }

    /// An acknowledgement reported so many segments.
    #[inline]
    pub fn count(&mut self, acked: u64, marked: u64) {
        self.acked += acked;
        self.marked += marked;
    }

    #[inline]
    pub fn is_over(&self, una: u64) -> bool {
        una >= self.round_end
    }

    /// Takes in the fraction of this round, and begins the next one. Of segments received twice there can be more marks
    /// than deliveries, which count as all.
    pub fn update(&mut self, next: u64) {
        let fraction = self.marked as f64 / self.acked.max(1) as f64;
        self.value += GAIN * (fraction.min(1.0) - self.value);
        self.begin(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_what_was_outstanding_when_it_began() {
        let mut alpha = Alpha::new(1.0);
        alpha.begin(11);
        assert!(!alpha.is_over(10));
        assert!(alpha.is_over(11));
    }

    #[test]
    fn more_marks_than_deliveries_count_as_all() {
        let mut alpha = Alpha::new(0.0);
        alpha.count(2, 3);
        alpha.update(0);
        assert_eq!(alpha.value(), 1.0 / 16.0);
        alpha.update(0);
        assert_eq!(alpha.value(), 15.0 / 256.0, "nothing was acknowledged");
        alpha.count(0, 1);
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
