// SPDX-License-Identifier: BSD-3-Clause
//! Satellites whose orbits are listed, one by one, and which of them have links to each other.
//!
//! Time 0 is the latest epoch of all elements. The earth is the ellipsoid of WGS 84 for places on the ground, and the sphere of the
//! other model where it may be between two satellites; it turns by the sidereal time of Aoki and others (1982).
//!
//! The list does not say which planes there are. Satellites whose inclinations and altitudes differ by little from one to
//! the next are a shell, and those of a shell whose ascending nodes do are a plane. In its plane each satellite keeps links to
//! the next before and behind it. Satellites of adjacent planes keep one if each is nearest to the other along its
//! orbit. Planes are not adjacent that are more than half a turn apart: they are on both sides of the seam of a star.

use std::f64::consts::TAU;

use super::constellation::{distance_km, Place, Point, EARTH_KM};
use super::sgp4::Orbit;

/// Longer axis of the ellipsoid, km, and its flattening.
const ELLIPSOID_KM: f64 = 6378.137;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
const DEGREE: f64 = TAU / 360.0;
/// From the inclination of a satellite of a shell to that of the next.
const SHELL_RAD: f64 = DEGREE;
/// From the altitude of a satellite of a shell to that of the next, km.
const SHELL_KM: f64 = 20.0;
/// From the node of a satellite of a plane to that of the next.
const PLANE_RAD: f64 = DEGREE;
/// Closer to the equator, a plane has no node that matters.
const LEVEL_RAD: f64 = DEGREE;
/// By how much a satellite ahead counts as nearer than one behind. It decides where satellites of the next plane are half way
/// between two, so that all decide in the same way.
const AHEAD_RAD: f64 = DEGREE;

/// Satellites in the order of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    /// The orbits, with the time from their epoch to time 0, min.
    orbits: Vec<(Orbit, f64)>,
    /// Time 0, in days after noon of 1 January 2000.
    begin_days: f64,
    /// Least elevation at which the ground is linked with a satellite, degrees.
    pub min_elevation_deg: f64,
}

/// Into how many shells and planes satellites are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Divided {
    /// How many shells there are.
    pub shells: usize,
    /// Those of all shells.
    pub planes: usize,
    /// From the most western ascending node of a plane to its most eastern one, at most, degrees.
    pub spread_deg: f64,
}

/// A place on the ground, km, and where up is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground {
    pub(super) at: Point,
    up: Point,
}

impl Catalogue {
    /// Orbits with their epochs, in days after noon of 1 January 2000. There is at least one.
    #[must_use]
    pub fn new(orbits: &[(Orbit, f64)]) -> Catalogue {
        let epochs = orbits.iter().map(|(_, epoch_days)| *epoch_days);
        let begin_days = epochs.fold(f64::NEG_INFINITY, f64::max);
        let since = |epoch_days: f64| (begin_days - epoch_days) * 1440.0;
        let orbits = orbits.iter();
        Catalogue {
            orbits: orbits
                .map(|(orbit, epoch_days)| (*orbit, since(*epoch_days)))
                .collect(),
            begin_days,
            min_elevation_deg: 0.0,
        }
    }

    /// How many satellites there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.orbits.len()
    }

    /// The first satellite that has come down at a time.
    #[must_use]
    pub fn down(&self, time_s: f64) -> Option<usize> {
        let mut orbits = self.orbits.iter();
        orbits.position(|(orbit, since_min)| orbit.position_km(since_min + time_s / 60.0).is_none())
    }

    /// Where the satellites are, km; those that have come down are in the middle of the earth.
    pub(super) fn satellites(&self, time_s: f64) -> Vec<Point> {
        let orbits = self.orbits.iter();
        let found = orbits.map(|(orbit, since_min)| orbit.position_km(since_min + time_s / 60.0));
        found.map(Option::unwrap_or_default).collect()
    }

    /// A place in the axes of the satellites.
    pub(super) fn grounded(&self, place: Place, time_s: f64) -> Ground {
        let lat = place.lat_deg * DEGREE;
        let lon = place.lon_deg * DEGREE + sidereal_rad(self.begin_days + time_s / 86_400.0);
        let (lat_sin, lat_cos) = (libm::sin(lat), libm::cos(lat));
        let up = [lat_cos * libm::cos(lon), lat_cos * libm::sin(lon), lat_sin];
        let squeezed = FLATTENING * (2.0 - FLATTENING);
        let normal_km = ELLIPSOID_KM / libm::sqrt(1.0 - squeezed * lat_sin * lat_sin);
        Ground {
            at: [
                normal_km * up[0],
                normal_km * up[1],
                normal_km * (1.0 - squeezed) * up[2],
            ],
            up,
        }
    }

    /// Whether a satellite is high enough above the horizon of a place.
    pub(super) fn sees(&self, ground: &Ground, satellite: Point) -> bool {
        let rise = (0..3).map(|i| (satellite[i] - ground.at[i]) * ground.up[i]);
        let least = libm::sin(self.min_elevation_deg * DEGREE);
        rise.sum::<f64>() >= least * distance_km(satellite, ground.at)
    }

    /// Whether the earth leaves the line between two satellites free.
    pub(super) fn is_clear(a: Point, b: Point) -> bool {
        let to_horizon_km = |point: Point| {
            let radius_km = distance_km(point, [0.0; 3]);
            libm::sqrt((radius_km * radius_km - EARTH_KM * EARTH_KM).max(0.0))
        };
        distance_km(a, b) <= to_horizon_km(a) + to_horizon_km(b)
    }

    /// The satellites that each keeps links to: ahead and behind in its plane, east and west in the adjacent planes.
    pub(super) fn neighbours(&self) -> Vec<[Option<usize>; 4]> {
        let mut neighbours = vec![[None; 4]; self.count()];
        for planes in self.shells() {
            for Plane { along, .. } in planes.iter().filter(|plane| plane.along.len() > 1) {
                for (at, (_, satellite)) in along.iter().enumerate() {
                    let next = along[(at + 1) % along.len()].1;
                    neighbours[*satellite][0] = Some(next);
                    neighbours[next][1] = Some(*satellite);
                }
            }
            for at in (0..planes.len()).filter(|_| planes.len() > 1) {
                let (west, east) = (&planes[at], &planes[(at + 1) % planes.len()]);
                if turned(east.node - west.node) > TAU / 2.0 + PLANE_RAD {
                    continue;
                }
                for (from, to) in nearest(&west.along, &east.along) {
                    neighbours[from][2] = Some(to);
                    neighbours[to][3] = Some(from);
                }
            }
        }
        neighbours
    }

    /// How the satellites were told apart.
    #[must_use]
    pub fn divided(&self) -> Divided {
        let shells = self.shells();
        let planes = || shells.iter().flatten();
        let spread = planes().map(|plane| plane.spread).fold(0.0, f64::max);
        Divided {
            shells: shells.len(),
            planes: planes().count(),
            spread_deg: spread / DEGREE,
        }
    }

    /// The planes of each shell, from west to east.
    fn shells(&self) -> Vec<Vec<Plane>> {
        let tilt = |at: &usize| self.orbits[*at].0.inclination();
        let axis_km = |at: &usize| self.orbits[*at].0.axis_km();
        let mut shells = Vec::new();
        for tilted in split((0..self.count()).collect(), tilt, SHELL_RAD) {
            for shell in split(tilted, axis_km, SHELL_KM) {
                shells.push(self.planes(shell));
            }
        }
        shells
    }

    fn planes(&self, shell: Vec<usize>) -> Vec<Plane> {
        let node = |at: &usize| self.place(*at).0;
        let mut planes = split(shell, node, PLANE_RAD);
        // The last ones may be those before the first across 0 degrees.
        if let [first, .., last] = &planes[..] {
            if turned(node(&first[0]) - node(&last[last.len() - 1])) < PLANE_RAD {
                let last = planes.pop().unwrap_or_default();
                planes[0].splice(0..0, last);
            }
        }
        let plane = |satellites: Vec<usize>| {
            let of = satellites.iter();
            let mut along: Vec<(f64, usize)> = of.map(|at| (self.place(*at).1, *at)).collect();
            along.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let (first, last) = (&satellites[0], &satellites[satellites.len() - 1]);
            Plane {
                node: node(&satellites[satellites.len() / 2]),
                spread: turned(node(last) - node(first)),
                along,
            }
        };
        planes.into_iter().map(plane).collect()
    }

    /// The node of a satellite's plane and the angle from there, at time 0.
    fn place(&self, at: usize) -> (f64, f64) {
        let (orbit, since_min) = &self.orbits[at];
        let (node, along) = orbit.plane_at(*since_min);
        let tilt = orbit.inclination();
        if libm::sin(tilt) >= libm::sin(LEVEL_RAD) {
            return (turned(node), turned(along));
        }
        let is_forwards = libm::cos(tilt) > 0.0;
        (
            0.0,
            turned(if is_forwards {
                along + node
            } else {
                along - node
            }),
        )
    }
}

/// A plane of satellites.
struct Plane {
    /// The ascending node of one of them, rad.
    node: f64,
    /// From the most western node to the most eastern, rad.
    spread: f64,
    /// In the order of the angle from the node, rad.
    along: Vec<(f64, usize)>,
}

/// An angle, from 0 to a turn.
fn turned(angle: f64) -> f64 {
    let rest = libm::fmod(angle, TAU);
    if rest < 0.0 {
        rest + TAU
    } else {
        rest
    }
}

/// In order, cut where a value is further from the one before.
fn split(mut all: Vec<usize>, of: impl Fn(&usize) -> f64, apart: f64) -> Vec<Vec<usize>> {
    all.sort_by(|a, b| of(a).total_cmp(&of(b)).then(a.cmp(b)));
    let close = |a: &usize, b: &usize| of(b) - of(a) < apart;
    all.chunk_by(close).map(<[usize]>::to_vec).collect()
}

/// Pairs of satellites of two planes each of which is nearest to the other along its orbit.
fn nearest(west: &[(f64, usize)], east: &[(f64, usize)]) -> Vec<(usize, usize)> {
    let apart = |from: f64, to: f64| {
        let ahead = turned(to - from - AHEAD_RAD);
        ahead.min(TAU - ahead)
    };
    let least = |apart: &mut dyn Iterator<Item = f64>| {
        let all = apart.enumerate();
        let found = all.min_by(|a, b| a.1.total_cmp(&b.1));
        found.map(|(at, _)| at)
    };
    let mut pairs = Vec::new();
    for (at, (from, satellite)) in west.iter().enumerate() {
        let Some(other) = least(&mut east.iter().map(|(to, _)| apart(*from, *to))) else {
            continue;
        };
        let to = east[other].0;
        if least(&mut west.iter().map(|(from, _)| apart(*from, to))) == Some(at) {
            pairs.push((*satellite, east[other].1));
        }
    }
    pairs
}

/// How far the earth has turned from the vernal equinox so many days after noon of 1 January 2000, rad.
fn sidereal_rad(days: f64) -> f64 {
    let centuries = days / 36_525.0;
    let seconds = 67_310.548_41
        + (876_600.0 * 3600.0 + 8_640_184.812_866) * centuries
        + 0.093_104 * centuries * centuries
        - 6.2e-6 * centuries * centuries * centuries;
    turned(libm::fmod(seconds, 86_400.0) / 86_400.0 * TAU)
}

#[cfg(test)]
mod tests {
    use super::super::sgp4::Elements;
    use super::*;

    /// A circular orbit, by its inclination, node, angle from there (degrees) and revolutions per day.
    fn orbit(inclination: f64, node: f64, along: f64, per_day: f64) -> (Orbit, f64) {
        let elements = Elements {
            inclination: inclination * DEGREE,
            node: node * DEGREE,
            eccentricity: 0.0,
            perigee: 0.0,
            anomaly: along * DEGREE,
            motion: per_day * TAU / 1440.0,
            bstar: 0.0,
        };
        (Orbit::new(elements).unwrap(), 0.0)
    }

    #[test]
    fn shells_have_no_links_to_each_other() {
        // Two shells of two planes of three, first with another inclination, then with another altitude (15 and 14 a day).
        for (inclination, per_day) in [(70.0, 15.0), (53.0, 14.0)] {
            let shell = |inclination, per_day| {
                [0.0, 90.0].into_iter().flat_map(move |node| {
                    [0.0, 120.0, 240.0].map(|along| orbit(inclination, node, along, per_day))
                })
            };
            let orbits: Vec<_> = shell(53.0, 15.0)
                .chain(shell(inclination, per_day))
                .collect();
            let catalogue = Catalogue::new(&orbits);
            let divided = catalogue.divided();
            assert_eq!((divided.shells, divided.planes), (2, 4));
            let neighbours = catalogue.neighbours();
            for shell in [0, 6] {
                for at in 0..3 {
                    let (west, east) = (shell + at, shell + 3 + at);
                    let (next, last) = ((at + 1) % 3, (at + 2) % 3);
                    assert_eq!(
                        neighbours[west],
                        [Some(shell + next), Some(shell + last), Some(east), None]
                    );
                    assert_eq!(
                        neighbours[east],
                        [
                            Some(shell + 3 + next),
                            Some(shell + 3 + last),
                            None,
                            Some(west)
                        ]
                    );
                }
            }
        }
    }

    #[test]
    fn orbits_above_the_equator_are_one_plane_whatever_their_nodes() {
        // Where each is: node and angle added eastwards, subtracted westwards.
        let places = [(10.0, 20.0), (200.0, 250.0), (300.0, 210.0), (100.0, 170.0)];
        for (inclination, order) in [(0.05, [0, 1, 2, 3]), (179.95, [1, 2, 3, 0])] {
            let orbits = places.map(|(node, along)| orbit(inclination, node, along, 14.0));
            let catalogue = Catalogue::new(&orbits);
            let divided = catalogue.divided();
            assert_eq!((divided.shells, divided.planes), (1, 1));
            assert_eq!(divided.spread_deg, 0.0);
            let neighbours = catalogue.neighbours();
            let angle = |at: usize| {
                let (node, along): (f64, f64) = places[at];
                (if inclination < 90.0 {
                    along + node
                } else {
                    along - node
                })
                .rem_euclid(360.0)
            };
            let mut sorted = order;
            sorted.sort_by(|a, b| angle(*a).total_cmp(&angle(*b)));
            for at in 0..4 {
                assert_eq!(
                    neighbours[sorted[at]],
                    [
                        Some(sorted[(at + 1) % 4]),
                        Some(sorted[(at + 3) % 4]),
                        None,
                        None
                    ]
                );
            }
        }
    }

    #[test]
    fn planes_of_one_satellite_have_links_to_adjacent_planes_only() {
        let orbits: Vec<_> = (0..4)
            .map(|plane| orbit(53.0, 90.0 * f64::from(plane), 0.0, 15.0))
            .collect();
        let neighbours = Catalogue::new(&orbits).neighbours();
        for (at, found) in neighbours.iter().enumerate() {
            assert_eq!(*found, [None, None, Some((at + 1) % 4), Some((at + 3) % 4)]);
        }
        let alone = Catalogue::new(&orbits[..1]).neighbours();
        assert_eq!(alone, [[None; 4]]);
    }

    #[test]
    fn satellites_between_planes_make_one_plane_that_is_wide() {
        let apart = |nodes: &[f64]| {
            let orbits: Vec<_> = nodes
                .iter()
                .map(|node| orbit(53.0, *node, 0.0, 15.0))
                .collect();
            Catalogue::new(&orbits).divided()
        };
        let planes = apart(&[358.0, 2.0, 2.5]);
        assert_eq!(planes.planes, 2);
        assert!((planes.spread_deg - 0.5).abs() < 1e-9, "{planes:?}");
        // Across 0 degrees.
        let joined = apart(&[2.5, 358.0, 358.9, 359.8, 0.7, 1.6]);
        assert_eq!(joined.planes, 1);
        assert!((joined.spread_deg - 4.5).abs() < 1e-9, "{joined:?}");
    }
}
