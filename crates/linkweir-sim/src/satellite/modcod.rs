// SPDX-License-Identifier: BSD-3-Clause
//! Modulations and codes of DVB-S2 and DVB-S2X, and which of them a terminal gets.
//!
//! Efficiencies and thresholds are those of EN 302 307-1, table 13, and EN 302 307-2, table 20a: normal FECFRAMEs without
//! pilots over an ideal linear channel with white Gaussian noise, decoded quasi error free. An efficiency counts the data
//! field of a base-band frame per symbol of its physical-layer frame, header included. QPSK 2/9 of DVB-S2X is left out: it
//! needs the longer frames of very low signals. Where editions differ (32APSK 2/3-L, 64APSK 5/6) the value is the one that
//! follows from the code, which is DVB-S2's.

/// A modulation with a code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModCod {
    /// Its name in the standard.
    pub name: &'static str,
    /// Bits of data per symbol.
    pub efficiency: f64,
    /// Least Es/N0 at which it is decoded quasi error free, dB.
    pub esn0_db: f64,
}

const fn modcod(name: &'static str, efficiency: f64, esn0_db: f64) -> ModCod {
    ModCod {
        name,
        efficiency,
        esn0_db,
    }
}

/// DVB-S2: EN 302 307-1, table 13.
pub const DVB_S2: [ModCod; 28] = [
    modcod("QPSK 1/4", 0.490243, -2.35),
    modcod("QPSK 1/3", 0.656448, -1.24),
    modcod("QPSK 2/5", 0.789412, -0.30),
    modcod("QPSK 1/2", 0.988858, 1.00),
    modcod("QPSK 3/5", 1.188304, 2.23),
    modcod("QPSK 2/3", 1.322253, 3.10),
    modcod("QPSK 3/4", 1.487473, 4.03),
    modcod("QPSK 4/5", 1.587196, 4.68),
    modcod("QPSK 5/6", 1.654663, 5.18),
    modcod("QPSK 8/9", 1.766451, 6.20),
    modcod("QPSK 9/10", 1.788612, 6.42),
    modcod("8PSK 3/5", 1.779991, 5.50),
    modcod("8PSK 2/3", 1.980636, 6.62),
    modcod("8PSK 3/4", 2.228124, 7.91),
    modcod("8PSK 5/6", 2.478562, 9.35),
    modcod("8PSK 8/9", 2.646012, 10.69),
    modcod("8PSK 9/10", 2.679207, 10.98),
    modcod("16APSK 2/3", 2.637201, 8.97),
    modcod("16APSK 3/4", 2.966728, 10.21),
    modcod("16APSK 4/5", 3.165623, 11.03),
    modcod("16APSK 5/6", 3.300184, 11.61),
    modcod("16APSK 8/9", 3.523143, 12.89),
    modcod("16APSK 9/10", 3.567342, 13.13),
    modcod("32APSK 3/4", 3.703295, 12.73),
    modcod("32APSK 4/5", 3.951571, 13.64),
    modcod("32APSK 5/6", 4.119540, 14.28),
    modcod("32APSK 8/9", 4.397854, 15.69),
    modcod("32APSK 9/10", 4.453027, 16.05),
];

/// What DVB-S2X adds: EN 302 307-2, table 20a.
pub const DVB_S2X: [ModCod; 38] = [
    modcod("QPSK 13/45", 0.567805, -2.03),
    modcod("QPSK 9/20", 0.889135, 0.22),
    modcod("QPSK 11/20", 1.088581, 1.45),
    modcod("8APSK 5/9-L", 1.647211, 4.73),
    modcod("8APSK 26/45-L", 1.713601, 5.13),
    modcod("8PSK 23/36", 1.896173, 6.12),
    modcod("8PSK 25/36", 2.062148, 7.02),
    modcod("8PSK 13/18", 2.145136, 7.49),
    modcod("16APSK 1/2-L", 1.972253, 5.97),
    modcod("16APSK 8/15-L", 2.104850, 6.55),
    modcod("16APSK 5/9-L", 2.193247, 6.84),
    modcod("16APSK 26/45", 2.281645, 7.51),
    modcod("16APSK 3/5", 2.370043, 7.80),
    modcod("16APSK 3/5-L", 2.370043, 7.41),
    modcod("16APSK 28/45", 2.458441, 8.10),
    modcod("16APSK 23/36", 2.524739, 8.38),
    modcod("16APSK 2/3-L", 2.635236, 8.43),
    modcod("16APSK 25/36", 2.745734, 9.27),
    modcod("16APSK 13/18", 2.856231, 9.71),
    modcod("16APSK 7/9", 3.077225, 10.65),
    modcod("16APSK 77/90", 3.386618, 11.99),
    modcod("32APSK 2/3-L", 3.291954, 11.10),
    modcod("32APSK 32/45", 3.510192, 11.75),
    modcod("32APSK 11/15", 3.620536, 12.17),
    modcod("32APSK 7/9", 3.841226, 13.05),
    modcod("64APSK 32/45-L", 4.206428, 13.98),
    modcod("64APSK 11/15", 4.338659, 14.81),
    modcod("64APSK 7/9", 4.603122, 15.47),
    modcod("64APSK 4/5", 4.735354, 15.87),
    modcod("64APSK 5/6", 4.936639, 16.55),
    modcod("128APSK 3/4", 5.163248, 17.73),
    modcod("128APSK 7/9", 5.355556, 18.53),
    modcod("256APSK 29/45-L", 5.065690, 16.98),
    modcod("256APSK 2/3-L", 5.241514, 17.24),
    modcod("256APSK 31/45-L", 5.417338, 18.10),
    modcod("256APSK 32/45", 5.593162, 18.59),
    modcod("256APSK 11/15-L", 5.768987, 18.84),
    modcod("256APSK 3/4", 5.900855, 19.57),
];

/// Adaptive coding and modulation: the useful ModCods, and how far above its threshold each is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Adaptation {
    /// Least threshold first. Each carries more than those before it; what needs more signal for less is not here.
    ladder: Vec<ModCod>,
    margin_db: f64,
    hysteresis_db: f64,
}

impl Adaptation {
    /// Among these ModCods, one is used from `margin_db` above its threshold on; a terminal that has a weaker one gets it
    /// `hysteresis_db` later.
    #[must_use]
    pub fn new(
        modcods: impl IntoIterator<Item = ModCod>,
        margin_db: f64,
        hysteresis_db: f64,
    ) -> Adaptation {
        let mut all: Vec<ModCod> = modcods.into_iter().collect();
        all.sort_by(|a, b| {
            let by_threshold = a.esn0_db.total_cmp(&b.esn0_db);
            by_threshold.then(b.efficiency.total_cmp(&a.efficiency))
        });
        let mut ladder: Vec<ModCod> = Vec::new();
        for next in all {
            if ladder
                .last()
                .is_none_or(|last| next.efficiency > last.efficiency)
            {
                ladder.push(next);
            }
        }
        Adaptation {
            ladder,
            margin_db,
            hysteresis_db,
        }
    }

    /// The ModCods in use, least threshold first.
    #[must_use]
    pub fn ladder(&self) -> &[ModCod] {
        &self.ladder
    }

    /// The choice for a terminal that had none before: a place in [`Adaptation::ladder`], or none, an outage.
    #[must_use]
    pub fn first(&self, esn0_db: f64) -> Option<usize> {
        self.most(esn0_db - self.margin_db)
    }

    /// The choice for a terminal that had `present`.
    #[must_use]
    pub fn next(&self, present: Option<usize>, esn0_db: f64) -> Option<usize> {
        let level_db = esn0_db - self.margin_db;
        // None is less than every place.
        let up = self.most(level_db - self.hysteresis_db);
        if up > present {
            return up;
        }
        present.min(self.most(level_db))
    }

    /// The last ModCod with a threshold of at most this.
    fn most(&self, level_db: f64) -> Option<usize> {
        self.ladder
            .partition_point(|modcod| modcod.esn0_db <= level_db)
            .checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data bits and symbols of a frame from the name alone: LDPC code of 64,800 bits, BCH parity, 80 bits of base-band
    /// header, and a header of one slot of 90 symbols before the slots of the frame.
    fn computed(name: &str, of_s2: bool) -> f64 {
        let (modulation, rate) = name.split_once(' ').unwrap();
        let points = modulation.trim_end_matches("PSK").trim_end_matches('A');
        let bits = match points {
            "Q" => 2,
            number => number.parse::<u32>().unwrap().ilog2(),
        };
        let (over, under) = rate.trim_end_matches("-L").split_once('/').unwrap();
        let coded = 64_800 * over.parse::<u32>().unwrap() / under.parse::<u32>().unwrap();
        // BCH corrects 10 errors (160 bits) or 8 (128) with some codes of DVB-S2, 12 (192) with all others.
        let s2_code = of_s2 || ["32APSK 2/3-L", "64APSK 4/5", "64APSK 5/6"].contains(&name);
        let parity = match rate.trim_end_matches("-L") {
            "2/3" | "5/6" if s2_code => 160,
            "8/9" | "9/10" => 128,
            _ => 192,
        };
        let slots = 64_800_u32.div_ceil(90 * bits);
        f64::from(coded - parity - 80) / f64::from(90 * (slots + 1))
    }

    #[test]
    fn efficiencies_follow_from_the_frames() {
        for (table, of_s2) in [(&DVB_S2[..], true), (&DVB_S2X[..], false)] {
            for modcod in table {
                let found = computed(modcod.name, of_s2);
                assert!(
                    (found - modcod.efficiency).abs() < 6e-7,
                    "{}: {found}",
                    modcod.name
                );
            }
        }
    }

    /// No code beats Shannon's bound, and none of these is further than 4 dB from it.
    #[test]
    fn thresholds_are_above_the_bound() {
        for modcod in DVB_S2.iter().chain(&DVB_S2X) {
            let bound = 10.0 * libm::log10(libm::exp2(modcod.efficiency) - 1.0);
            let above = modcod.esn0_db - bound;
            assert!(above > 0.0 && above < 4.0, "{}: {above}", modcod.name);
        }
    }

    #[test]
    fn the_ladder_rises() {
        for more in [0, 38] {
            let all = DVB_S2.into_iter().chain(DVB_S2X.into_iter().take(more));
            let adaptation = Adaptation::new(all.clone(), 0.0, 0.0);
            let ladder = adaptation.ladder();
            for pair in ladder.windows(2) {
                assert!(
                    pair[0].esn0_db < pair[1].esn0_db && pair[0].efficiency < pair[1].efficiency
                );
            }
            // Whatever the signal, the ladder's choice is the most efficient of all that are met.
            for step in -400..2500 {
                let esn0_db = f64::from(step) / 100.0;
                let best = all
                    .clone()
                    .filter(|m| m.esn0_db <= esn0_db)
                    .map(|m| m.efficiency)
                    .fold(0.0, f64::max);
                let found = adaptation
                    .first(esn0_db)
                    .map_or(0.0, |i| ladder[i].efficiency);
                assert_eq!(found, best, "{esn0_db}");
            }
        }
        let names = |esn0_db| {
            let s2 = Adaptation::new(DVB_S2, 0.0, 0.0);
            s2.first(esn0_db).map(|i| s2.ladder()[i].name)
        };
        assert_eq!(names(-2.36), None);
        assert_eq!(names(-2.35), Some("QPSK 1/4"));
        assert_eq!(names(6.3), Some("8PSK 3/5")); // QPSK 8/9 carries less
        assert_eq!(names(12.9), Some("32APSK 3/4"));
        assert_eq!(names(30.0), Some("32APSK 9/10"));
    }

    #[test]
    fn upwards_later_than_downwards() {
        let adaptation = Adaptation::new(DVB_S2, 1.0, 0.5);
        let place = |name| {
            let found = adaptation.ladder().iter().position(|m| m.name == name);
            assert!(found.is_some(), "{name}");
            found
        };
        let (half, three_fifths) = (place("QPSK 1/2"), place("QPSK 3/5")); // 1.00 and 2.23 dB
        assert_eq!(adaptation.first(3.23), three_fifths);
        assert_eq!(adaptation.first(3.22), half);
        assert_eq!(adaptation.next(half, 3.72), half);
        assert_eq!(adaptation.next(half, 3.73), three_fifths);
        assert_eq!(adaptation.next(three_fifths, 3.23), three_fifths);
        assert_eq!(adaptation.next(three_fifths, 3.22), half);
        // Into and out of an outage, and over many places at once.
        assert_eq!(adaptation.next(half, -1.36), None);
        assert_eq!(adaptation.next(None, -0.86), None);
        assert_eq!(adaptation.next(None, -0.85), place("QPSK 1/4"));
        assert_eq!(adaptation.next(None, 17.56), place("32APSK 9/10"));
        assert_eq!(adaptation.next(place("32APSK 9/10"), 3.0), half);
    }
}
