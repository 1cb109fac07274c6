// SPDX-License-Identifier: BSD-3-Clause
//! Cache of fading samples generated recently: runs over the same channel share its samples, and only the first of them generates them. A drive is the series of samples of one channel.
//!
//! Why a list of the whole process: an experiment is a plain value, which can be compared and run any number of times, so
//! nothing that the caller holds could keep the samples from one run to the next. The list changes no result, since a drive
//! follows from its parameters and its seed alone. It saves a third of the time where a plan compares policies over the same
//! channel: `scenarios/leo-voice.toml` takes 0.18 s of processor time, and 0.12 s when its drive of ten minutes is found.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fading::Fading;
use super::lms::Lms;

/// How many are kept. That is enough for plans that go through their runs seed by seed, or repeat at most this number of
/// seeds in turn.
const MOST_DRIVES: usize = 16;
/// Longer drives are not kept, so that all together take 64 MiB at most.
const MOST_SAMPLES: usize = 1 << 20;

#[derive(Debug)]
struct Drive {
    lms: Lms,
    seed: u64,
    step_ns: u64,
    samples: usize,
    fading: Fading,
}

/// Ordered by the last use, the latest last.
static RECENT: Mutex<Vec<Drive>> = Mutex::new(Vec::new());

/// A thread that panicked left no change of the list half done, so a poisoned lock is taken.
fn recent() -> MutexGuard<'static, Vec<Drive>> {
    RECENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of [`Lms::generate`], from memory if it was computed recently.
///
/// # Panics
/// As that does.
pub(crate) fn generate(lms: &Lms, seed: u64, step_ns: u64, samples: usize) -> Fading {
    if samples > MOST_SAMPLES {
        return lms.generate(seed, step_ns, samples);
    }
    let mut kept = recent();
    let found = kept.iter().position(|drive| {
        (drive.seed, drive.step_ns, drive.samples) == (seed, step_ns, samples) && drive.lms == *lms
    });
    if let Some(index) = found {
        kept[index..].rotate_left(1);
        return kept[kept.len() - 1].fading.clone();
    }
    drop(kept);
    let fading = lms.generate(seed, step_ns, samples);
    let mut kept = recent();
    if kept.len() == MOST_DRIVES {
        kept.remove(0);
    }
    kept.push(Drive {
        lms: lms.clone(),
        seed,
        step_ns,
        samples,
        fading: fading.clone(),
    });
    fading
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::satellite::perez_fontan::Environment;

    const STEP_NS: u64 = 1_000_000;

    /// One test, as all share the list: no drive is taken for another, and the list stays short.
    #[test]
    fn a_drive_from_memory_is_the_drive_generated() {
        let slow = Lms::new(Environment::Urban);
        let fast = Lms {
            speed_m_s: 50.0,
            ..slow.clone()
        };
        let asked = |n: u64| {
            let lms = if n % 2 == 0 { &slow } else { &fast };
            (lms, n / 4, STEP_NS * (1 + n / 2 % 2), 100 + n as usize % 3)
        };
        for n in (0..40).chain(20..40).chain([39, 30, 39, 0]) {
            let (lms, seed, step_ns, samples) = asked(n);
            let fading = generate(lms, seed, step_ns, samples);
            assert_eq!(fading, lms.generate(seed, step_ns, samples), "drive {n}");
            assert!(recent().len() <= MOST_DRIVES);
        }
        let (lms, seed, step_ns, samples) = asked(0);
        let again = generate(lms, seed, step_ns, samples);
        assert!(
            std::ptr::eq(
                again.samples_db(),
                generate(lms, seed, step_ns, samples).samples_db()
            ),
            "generated twice"
        );
    }
}
