// SPDX-License-Identifier: BSD-3-Clause
//! Mutual information of QPSK with equally likely symbols over a channel with white Gaussian noise.
//!
//! A QPSK symbol is two BPSK symbols on axes of their own, each with half of the symbol's energy, so
//! `C(g) = 2 B(g / 2)` with `B(x) = 1 - E[log2(1 + exp(-4 x (1 + n / sqrt(2 x))))]`, n standard normal and x = Es/N0 of
//! BPSK (Brannstrom, Rasmussen and Grant 2005 give close fits of B; here it is integrated).

use std::sync::OnceLock;

/// Ends of the table, dB. Below, information is proportional to Es/N0; above, it is 2 bits to 1e-15.
const LEAST_DB: f64 = -40.0;
const MOST_DB: f64 = 20.0;
/// Entries per dB: linear interpolation then errs by less than 3e-6 bit.
const PER_DB: f64 = 50.0;

/// Step and end of the integral over the noise, in its standard deviations. The integrand is analytic in a strip wide
/// enough that the trapezoidal rule at this step is exact to 1e-8 at the top of the table.
const NOISE_STEP: f64 = 0.05;
const NOISE_END: f64 = 9.0;

/// Bits that a symbol carries at an Es/N0 in dB, 0 to 2.
#[must_use]
pub fn capacity(esn0_db: f64) -> f64 {
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let entries = ((MOST_DB - LEAST_DB) * PER_DB) as usize + 1;
        (0..entries)
            .map(|i| integrated(LEAST_DB + i as f64 / PER_DB))
            .collect()
    });
    if esn0_db >= MOST_DB {
        return 2.0;
    }
    if esn0_db <= LEAST_DB {
        return table[0] * decibels(esn0_db - LEAST_DB);
    }
    let at = (esn0_db - LEAST_DB) * PER_DB;
    let index = (at as usize).min(table.len() - 2);
    let part = at - index as f64;
    table[index] + part * (table[index + 1] - table[index])
}

/// A power ratio from dB.
pub(super) fn decibels(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

fn integrated(esn0_db: f64) -> f64 {
    let x = decibels(esn0_db) / 2.0;
    let slope = 2.0 * libm::sqrt(2.0 * x);
    let steps = (2.0 * NOISE_END / NOISE_STEP) as usize;
    let mut lost = 0.0;
    let mut weights = 0.0;
    for i in 0..=steps {
        let n = i as f64 * NOISE_STEP - NOISE_END;
        let weight = libm::exp(-n * n / 2.0);
        let exponent = -4.0 * x - slope * n;
        // log2(1 + e^z), without overflow
        let bits = (exponent.max(0.0) + libm::log1p(libm::exp(-exponent.abs())))
            * std::f64::consts::LOG2_E;
        lost += weight * bits;
        weights += weight;
    }
    2.0 * (1.0 - lost / weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of an independent 64-point Gauss-Hermite integration.
    #[test]
    fn known_values() {
        for (db, bits) in [
            (-20.0, 0.01436),
            (-10.0, 0.13749),
            (-4.8612, 0.40657),
            (0.0, 0.97189),
            (3.0, 1.44132),
            (5.0, 1.71839),
            (7.0, 1.90136),
            (10.0, 1.99351),
            (13.0, 1.99997),
        ] {
            let found = capacity(db);
            assert!((found - bits).abs() < 1e-5, "{db} dB: {found}");
        }
    }

    #[test]
    fn ends_and_in_between() {
        assert_eq!(capacity(60.0), 2.0);
        // At low power a symbol carries Es/N0 log2 e bits.
        let weak = decibels(-70.0) * std::f64::consts::LOG2_E;
        assert!((capacity(-70.0) / weak - 1.0).abs() < 2e-4);
        let mut before = 0.0;
        for i in 0..70_000 {
            let now = capacity(-45.0 + f64::from(i) / 1000.0);
            assert!(now >= before && now <= 2.0);
            before = now;
        }
        for db in [-33.333, -4.861, 2.003, 9.999] {
            assert!((capacity(db) - integrated(db)).abs() < 3e-6);
        }
    }
}
