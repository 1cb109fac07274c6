// SPDX-License-Identifier: BSD-3-Clause
//! The least or greatest of the samples within a sliding window, from the three best candidates (Kathleen Nichols'
//! algorithm, as Linux uses it for the least round-trip time and for BBR's bandwidth).

use std::marker::PhantomData;

/// Which of two samples counts.
pub trait Order {
    /// Whether `new` replaces `old`; true for equal values.
    fn replaces(new: u64, old: u64) -> bool;
}

/// Keeps the least sample.
#[derive(Clone, Copy, Debug)]
pub struct Least;

/// Keeps the greatest sample.
#[derive(Clone, Copy, Debug)]
pub struct Greatest;

impl Order for Least {
    #[inline]
    fn replaces(new: u64, old: u64) -> bool {
        new <= old
    }
}

impl Order for Greatest {
    #[inline]
    fn replaces(new: u64, old: u64) -> bool {
        new >= old
    }
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: u64,
    value: u64,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Window<O> {
    /// The best sample, the best after it, and the best after that.
    best: [Sample; 3],
    order: PhantomData<O>,
}

impl<O: Order> Window<O> {
    pub fn new(at: u64, value: u64) -> Window<O> {
        Window {
            best: [Sample { at, value }; 3],
            order: PhantomData,
        }
    }

    #[inline]
    pub fn value(&self) -> u64 {
        self.best[0].value
    }

    /// Takes in a sample at `at`; samples older than `length` no longer count.
    #[inline]
    pub fn add(&mut self, length: u64, at: u64, value: u64) {
        let new = Sample { at, value };
        if O::replaces(value, self.best[0].value) || at - self.best[2].at > length {
            self.best = [new; 3];
            return;
        }
        if O::replaces(value, self.best[1].value) {
            self.best[1] = new;
            self.best[2] = new;
        } else if O::replaces(value, self.best[2].value) {
            self.best[2] = new;
        }
        self.expire(length, new);
    }

    /// Drops candidates that are too old, and keeps the second and third from later parts of the window.
    #[inline]
    fn expire(&mut self, length: u64, new: Sample) {
        let age = new.at - self.best[0].at;
        if age > length {
            self.best = [self.best[1], self.best[2], new];
            if new.at - self.best[0].at > length {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].at == self.best[0].at && age > length / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].at == self.best[1].at && age > length / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_sample_is_its_own_extreme_and_steps_are_followed() {
        let mut least = Window::<Least>::new(0, 50);
        for at in 0..1000 {
            least.add(100, at, 50);
            assert_eq!(least.value(), 50);
        }
        least.add(100, 1000, 20);
        assert_eq!(least.value(), 20);
        for at in 1001..=1100 {
            least.add(100, at, 50);
            assert_eq!(least.value(), 20);
        }
        least.add(100, 1101, 50);
        assert_eq!(least.value(), 50);
    }

    /// The candidates are approximate: the value is a sample of the window, and at most a quarter window late.
    #[test]
    fn the_value_is_between_that_of_the_window_and_that_of_its_last_quarter() {
        let mut state = 1_u64;
        let mut greatest = Window::<Greatest>::new(0, 0);
        let mut samples: Vec<(u64, u64)> = Vec::new();
        for at in 1..5000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let value = state >> 40;
            samples.push((at, value));
            greatest.add(80, at, value);
            let within = |length: u64| {
                let recent = samples.iter().filter(|sample| at - sample.0 <= length);
                recent.map(|sample| sample.1).max().unwrap()
            };
            assert!(greatest.value() <= within(80));
            assert!(greatest.value() >= within(20));
        }
    }
}
