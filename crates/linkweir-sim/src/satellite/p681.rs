// SPDX-License-Identifier: BSD-3-Clause
//! Shadowing after Recommendation ITU-R P.681-11 (2019), Annex 2: good and bad states alternate; when one begins, its length
//! and its Loo distribution are drawn.
//!
//! Lengths are lognormal, drawn again while shorter than a least one. The direct ray's mean level is normal, drawn again
//! while further from its mean than 1.645 deviations in the good state, 1.2816 (the quantiles 0.1 and 0.9) in the bad one;
//! its deviation and the scattered power follow from it along straight lines. Between two states is a transition whose length
//! grows with the difference of their levels; on it the parameters change linearly.
//!
//! A drive begins in the stationary state: it has gone 100 km before, through some hundred states or more.
//!
//! The parameters are those for rural wooded country at 1.5 to 3 GHz.

use crate::random::Random;

use super::loo::{Loo, Vehicle};

/// How far a vehicle has driven when its drive begins, m.
const DRIVEN_BEFORE_M: f64 = 100_000.0;

/// A straight line over the direct ray's mean level in dB: value per dB, and value at 0 dB.
type Line = (f64, f64);

/// The distributions from which the parameters of a state are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    /// Mean and deviation of the natural logarithm of its length in m.
    log_length: (f64, f64),
    least_m: f64,
    /// Mean and deviation of the direct ray's mean level, dB.
    alpha_db: (f64, f64),
    /// The most deviations by which that level differs from its mean.
    within: f64,
    /// Deviation of the direct ray's level, dB.
    psi_db: Line,
    /// Mean power of the scattered rays, dB.
    mp_db: Line,
}

/// Two states and the way between them.
#[derive(Clone, Debug, PartialEq)]
pub struct P681 {
    good: State,
    bad: State,
    /// Length of the way from one to the other over the difference of their levels: m per dB, and m.
    transition_m: Line,
}

/// Per state: mean and deviation of the logarithm of the length, least length, mean and deviation of the level, scattered
/// power over the level, deviation over the level.
type Row = [f64; 9];

/// Elevation, good state, bad state, correlation length, transition.
const RURAL_WOODED: [(u32, Row, Row, f64, Line); 5] = [
    (
        20,
        [
            2.1597, 1.3766, 2.0744, -0.8065, 1.5635, -0.9170, -12.1228, -0.0348, 0.9571,
        ],
        [
            1.9587, 1.5465, 1.3934, -10.6615, 2.6170, 0.8440, -1.4804, -0.1069, 1.6141,
        ],
        0.8845,
        (0.0550, 2.6383),
    ),
    (
        30,
        [
            2.5579, 1.2444, 3.5947, -1.3214, 1.6645, -1.0445, -14.3176, -0.1656, 0.7180,
        ],
        [
            2.3791, 1.1778, 2.2800, -10.4240, 2.4446, 0.6278, -4.8146, -0.0451, 2.2327,
        ],
        1.0942,
        (0.0256, 3.8527),
    ),
    (
        45,
        [
            3.1803, 1.3427, 6.7673, -0.9902, 1.0348, -0.4235, -16.8380, -0.1095, 0.6893,
        ],
        [
            2.5382, 1.1291, 3.3683, -10.2891, 2.3090, 0.3386, -9.7118, -0.0460, 2.1310,
        ],
        2.3956,
        (0.2803, 4.0004),
    ),
    (
        60,
        [
            2.9322, 1.3234, 5.7209, -0.6153, 1.1723, -1.4024, -16.9664, -0.2516, 0.5353,
        ],
        [
            2.1955, 1.1115, 1.6512, -9.9595, 2.2188, 0.2666, -9.0046, -0.0907, 1.4730,
        ],
        1.7586,
        (0.1099, 4.2183),
    ),
    (
        70,
        [
            3.8768, 1.4738, 16.0855, -0.7818, 0.7044, -2.9566, -20.0326, -0.2874, 0.4050,
        ],
        [
            1.8445, 0.8874, 2.9629, -6.7769, 2.1339, -0.3723, -14.9638, -0.1822, 0.1163,
        ],
        1.6546,
        (-0.3914, 6.6931),
    ),
];

impl P681 {
    /// Elevations there are parameters for, degrees.
    pub const ELEVATIONS_DEG: [u32; 5] = [20, 30, 45, 60, 70];

    /// Rural wooded country at an elevation, and the distance over which the direct ray's level loses its memory, m.
    pub(super) fn rural_wooded(elevation_deg: u32) -> Option<(P681, f64)> {
        let row = RURAL_WOODED.iter().find(|row| row.0 == elevation_deg)?;
        let (_, good, bad, correlation_m, transition_m) = *row;
        let p681 = P681 {
            good: State::new(good, 1.645),
            bad: State::new(bad, 1.2816),
            transition_m,
        };
        Some((p681, correlation_m))
    }

    /// A vehicle in the stationary state.
    pub(super) fn vehicle(&self, random: &mut Random) -> Alternating<'_> {
        let mut vehicle = self.beginning(random);
        vehicle.drive(DRIVEN_BEFORE_M, random);
        vehicle
    }

    /// A vehicle at the beginning of a state.
    fn beginning(&self, random: &mut Random) -> Alternating<'_> {
        let good = random.unit() < 0.5;
        let state = if good { &self.good } else { &self.bad };
        let loo = state.loo(random);
        Alternating {
            model: self,
            good,
            between: false,
            from: loo,
            to: loo,
            length_m: state.length_m(random),
            driven_m: 0.0,
        }
    }
}

impl State {
    fn new(row: Row, within: f64) -> State {
        State {
            log_length: (row[0], row[1]),
            least_m: row[2],
            alpha_db: (row[3], row[4]),
            within,
            mp_db: (row[5], row[6]),
            psi_db: (row[7], row[8]),
        }
    }

    fn length_m(&self, random: &mut Random) -> f64 {
        loop {
            let length_m = libm::exp(self.log_length.0 + self.log_length.1 * random.normal());
            if length_m >= self.least_m {
                return length_m;
            }
        }
    }

    fn loo(&self, random: &mut Random) -> Loo {
        let away = loop {
            let away = random.normal();
            if away.abs() <= self.within {
                break away;
            }
        };
        let alpha_db = self.alpha_db.0 + self.alpha_db.1 * away;
        Loo {
            alpha_db,
            psi_db: on(self.psi_db, alpha_db),
            mp_db: on(self.mp_db, alpha_db),
        }
    }
}

fn on(line: Line, level_db: f64) -> f64 {
    line.0 * level_db + line.1
}

/// A vehicle in a state, or between two.
pub(super) struct Alternating<'a> {
    model: &'a P681,
    /// The state it is in, or drives to.
    good: bool,
    between: bool,
    /// Distributions where this part of the way begins and ends.
    from: Loo,
    to: Loo,
    length_m: f64,
    driven_m: f64,
}

impl Alternating<'_> {
    fn state(&self) -> &State {
        if self.good {
            &self.model.good
        } else {
            &self.model.bad
        }
    }

    /// The next part of the way begins.
    fn next_part(&mut self, random: &mut Random) {
        self.from = self.to;
        if self.between {
            self.length_m = self.state().length_m(random);
        } else {
            self.good = !self.good;
            self.to = self.state().loo(random);
            let difference_db = (self.to.alpha_db - self.from.alpha_db).abs();
            self.length_m = on(self.model.transition_m, difference_db).max(0.0);
        }
        self.between = !self.between;
    }
}

impl Vehicle for Alternating<'_> {
    fn loo(&self) -> Loo {
        let part = self.driven_m / self.length_m;
        let between = |from: f64, to: f64| from + part * (to - from);
        Loo {
            alpha_db: between(self.from.alpha_db, self.to.alpha_db),
            psi_db: between(self.from.psi_db, self.to.psi_db),
            mp_db: between(self.from.mp_db, self.to.mp_db),
        }
    }

    fn drive(&mut self, step_m: f64, random: &mut Random) {
        self.driven_m += step_m;
        while self.driven_m >= self.length_m {
            self.driven_m -= self.length_m;
            self.next_part(random);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::satellite::lms::{tests::part_at_least, Lms, Shadowing};

    const LEVELS_DB: [f64; 7] = [-2.87, -3.51, -4.00, -4.36, -5.06, -5.62, -6.16];

    /// Parts of a drive of 10 000 km that are at least so strong. States and the ways between them are some 50 m long and
    /// as uneven as lognormal lengths are: the part spent in the good one has a deviation of 0.002.
    fn parts(elevation_deg: u32, with_transitions: bool) -> [f64; 7] {
        let (mut p681, _) = P681::rural_wooded(elevation_deg).unwrap();
        if !with_transitions {
            p681.transition_m = (0.0, 0.0);
        }
        let lms = Lms {
            shadowing: Shadowing::P681(p681),
            speed_m_s: 20.0,
            ..Lms::rural_wooded(elevation_deg).unwrap()
        };
        let fadings: Vec<_> = (0..8)
            .map(|seed| lms.generate(seed, 100_000_000, 625_000))
            .collect();
        LEVELS_DB.map(|db| part_at_least(&fadings, db))
    }

    /// Figures of an independent integration (lengths, levels and Loo's distribution drawn apart, each weighted with its
    /// length), without and with the ways between states; its own error is 0.0005. Between them are figures known of a
    /// sampled drive without those ways, 0.004 to 0.010 below the integrated ones.
    #[test]
    fn parts_are_those_of_other_programs() {
        for (elevation_deg, states_only, known, with_transitions) in [
            (
                20,
                [0.4432, 0.4822, 0.5104, 0.5304, 0.5683, 0.5976, 0.6255],
                [0.438, 0.476, 0.504, 0.523, 0.560, 0.589, 0.617].map(Some),
                [0.4317, 0.4733, 0.5035, 0.5250, 0.5656, 0.5969, 0.6264],
            ),
            (
                30,
                [0.4805, 0.5262, 0.5575, 0.5790, 0.6179, 0.6470, 0.6737],
                [Some(0.476), None, None, None, None, None, Some(0.668)],
                [0.4571, 0.5054, 0.5393, 0.5627, 0.6055, 0.6375, 0.6668],
            ),
            (
                45,
                [0.6484, 0.6924, 0.7166, 0.7308, 0.7537, 0.7698, 0.7847],
                [Some(0.642), None, None, None, None, None, Some(0.775)],
                [0.6043, 0.6516, 0.6795, 0.6968, 0.7258, 0.7467, 0.7658],
            ),
        ] {
            let (still, moving) = (parts(elevation_deg, false), parts(elevation_deg, true));
            for level in 0..LEVELS_DB.len() {
                let shown = format!("{elevation_deg} degrees, {} dB", LEVELS_DB[level]);
                let (still, moving) = (still[level], moving[level]);
                assert!(
                    (still - states_only[level]).abs() < 0.006,
                    "{shown}: {still}"
                );
                assert!(
                    (moving - with_transitions[level]).abs() < 0.006,
                    "{shown}: {moving}"
                );
                assert!(
                    known[level].is_none_or(|known| (still - known).abs() < 0.012),
                    "{shown}"
                );
            }
        }
    }

    #[test]
    fn every_row_is_sound() {
        for elevation_deg in P681::ELEVATIONS_DEG {
            let (p681, correlation_m) = P681::rural_wooded(elevation_deg).unwrap();
            assert!(correlation_m > 0.0);
            let mut random = Random::new(1, 1);
            for state in [&p681.good, &p681.bad] {
                for _ in 0..10_000 {
                    let loo = state.loo(&mut random);
                    let away_db = (loo.alpha_db - state.alpha_db.0).abs();
                    assert!(away_db <= state.within * state.alpha_db.1 && loo.psi_db > 0.0);
                    assert!(state.length_m(&mut random) >= state.least_m);
                }
            }
        }
        assert_eq!(P681::ELEVATIONS_DEG, RURAL_WOODED.map(|row| row.0));
        assert!(P681::rural_wooded(40).is_none());
    }

    /// Where drives begin, compared with the parts of the time that follow from the mean lengths: an integration of the truncated
    /// distributions apart from this program.
    #[test]
    fn drives_begin_in_the_stationary_state() {
        for (elevation_deg, good, between) in [(20, 0.4363, 0.1064), (45, 0.6382, 0.1191)] {
            let (p681, _) = P681::rural_wooded(elevation_deg).unwrap();
            let drives = 4000;
            let vehicles: Vec<(bool, bool)> = (0..drives)
                .map(|seed| {
                    let vehicle = p681.vehicle(&mut Random::new(seed, 0));
                    (vehicle.good, vehicle.between)
                })
                .collect();
            let part = |of: &dyn Fn(&(bool, bool)) -> bool| {
                vehicles.iter().filter(|v| of(v)).count() as f64 / drives as f64
            };
            let (found_good, found_between) = (part(&|v| v.0 && !v.1), part(&|v| v.1));
            // Four deviations of a part of 4000 drives.
            let slack = |part: f64| 4.0 * libm::sqrt(part * (1.0 - part) / drives as f64);
            assert!(
                (found_good - good).abs() < slack(good),
                "{elevation_deg}: {found_good}"
            );
            assert!(
                (found_between - between).abs() < slack(between),
                "{elevation_deg}: {found_between}"
            );
        }
    }

    /// On the way from one state to the other the parameters lie on straight lines, and the state lasts after it.
    #[test]
    fn a_way_between_states() {
        let (p681, _) = P681::rural_wooded(45).unwrap();
        let mut random = Random::new(3, 0);
        let mut vehicle = p681.beginning(&mut random);
        let before = vehicle.loo();
        vehicle.drive(vehicle.length_m, &mut random);
        assert!(vehicle.between && vehicle.loo() == before);
        let (length_m, to) = (vehicle.length_m, vehicle.to);
        let expected_m = 0.2803 * (to.alpha_db - before.alpha_db).abs() + 4.0004;
        assert!((length_m - expected_m).abs() < 1e-12);
        vehicle.drive(0.25 * length_m, &mut random);
        let now = vehicle.loo();
        let part = (now.alpha_db - before.alpha_db) / (to.alpha_db - before.alpha_db);
        let scattered = (now.mp_db - before.mp_db) / (to.mp_db - before.mp_db);
        assert!((part - 0.25).abs() < 1e-12 && (scattered - 0.25).abs() < 1e-12);
        vehicle.drive(0.75 * length_m + 1.0, &mut random);
        assert!(!vehicle.between && vehicle.loo() == to);
        assert!((vehicle.driven_m - 1.0).abs() < 1e-9);
    }
}
