// SPDX-License-Identifier: BSD-3-Clause
//! Ways between places on the ground through a constellation, with the satellites that they pass, and the delays of single
//! links. `constellation.rs` says where satellites are and which of them have links to each other.
//!
//! Delays are whole nanoseconds, rounded up, so that two ways can be compared exactly. A way has the least sum of delays, or the
//! fewest links and of those the least delay. It is found by A* (Hart, Nilsson, Raphael 1968): what is left of a way is no shorter than
//! the straight line to its end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::catalogue::{Catalogue, Ground};
use super::constellation::{distance_km, grounded, Constellation, Place, Point};
use super::LIGHT_M_S;

const NS_PER_KM: f64 = 1e12 / LIGHT_M_S;
/// What straight lines are shortened by, so that no rounding makes them longer than a way, ns.
const SLACK_NS: u64 = 2;
const NOWHERE: u64 = u64::MAX;

/// What a way has least of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The sum of its links' delays.
    Delay,
    /// The number of its links; at equal numbers the delay.
    Hops,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// A satellite, by its number: those of the first plane come first.
    Satellite(u32),
    /// A place on the ground, by its number.
    Station(u32),
}

/// Where satellites are, and which of them keep links to each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Orbits {
    /// Those of a pattern.
    Walker(Constellation),
    /// Those of a list.
    Listed(Catalogue),
}

impl Orbits {
    /// How many satellites there are.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Orbits::Walker(constellation) => constellation.count(),
            Orbits::Listed(catalogue) => catalogue.count(),
        }
    }

    /// Sets the least elevation at which the ground is linked with a satellite, degrees.
    pub fn set_mask(&mut self, elevation_deg: f64) {
        match self {
            Orbits::Walker(constellation) => constellation.min_elevation_deg = elevation_deg,
            Orbits::Listed(catalogue) => catalogue.min_elevation_deg = elevation_deg,
        }
    }

    /// The satellites that each keeps links to: two in its plane, then two in the adjacent ones.
    fn neighbours(&self) -> Vec<[Option<usize>; 4]> {
        match self {
            Orbits::Walker(constellation) => {
                let all = 0..constellation.count();
                all.map(|satellite| constellation.neighbours(satellite))
                    .collect()
            }
            Orbits::Listed(catalogue) => catalogue.neighbours(),
        }
    }

    fn satellites(&self, time_s: f64) -> Vec<Point> {
        match self {
            Orbits::Walker(constellation) => constellation.satellites(time_s),
            Orbits::Listed(catalogue) => catalogue.satellites(time_s),
        }
    }

    fn grounded(&self, place: Place, time_s: f64) -> Spot {
        match self {
            Orbits::Walker(_) => Spot::OnSphere(grounded(place, time_s)),
            Orbits::Listed(catalogue) => Spot::OnEllipsoid(catalogue.grounded(place, time_s)),
        }
    }
}

/// A place on the ground in the axes of the satellites.
#[derive(Clone, Debug)]
enum Spot {
    OnSphere(Point),
    OnEllipsoid(Ground),
}

impl Spot {
    fn at(&self) -> Point {
        match self {
            Spot::OnSphere(at) => *at,
            Spot::OnEllipsoid(ground) => ground.at,
        }
    }
}

/// Satellites, the links that they keep, and places on the ground.
#[derive(Clone, Debug)]
pub struct Mesh {
    orbits: Orbits,
    /// Places on the ground by their numbers.
    places: BTreeMap<u32, Place>,
    metric: Metric,
    /// The satellites that each satellite keeps a link to.
    neighbours: Vec<Vec<u32>>,
    /// The longest links between the satellites of a pattern and to the ground, km.
    longest_km: (f64, f64),
}

/// A way or a delay from a step on; none: there is no way, or no link.
pub type Since<T> = Vec<(u64, Option<T>)>;

/// The number of links and the delay in ns, the more important first.
type Cost = (u64, u64);

impl Mesh {
    /// Satellites that keep links to as many neighbours as `links`: 0, 2 in their plane, or 4.
    #[must_use]
    pub fn new(orbits: Orbits, places: BTreeMap<u32, Place>, links: usize, metric: Metric) -> Mesh {
        let of_each = orbits.neighbours();
        let neighbours = of_each.iter().enumerate().map(|(satellite, all)| {
            let all = all.iter().take(links);
            let mut others: Vec<u32> = Vec::with_capacity(links);
            for other in all.flatten().filter(|other| **other != satellite) {
                if !others.contains(&(*other as u32)) {
                    others.push(*other as u32);
                }
            }
            others
        });
        Mesh {
            neighbours: neighbours.collect(),
            longest_km: match &orbits {
                Orbits::Walker(shell) => {
                    (shell.horizon_km(), shell.slant_km(shell.min_elevation_deg))
                }
                Orbits::Listed(_) => (0.0, 0.0),
            },
            orbits,
            places,
            metric,
        }
    }

    /// Where everything is at a time.
    #[must_use]
    pub fn at(&self, time_s: f64) -> Snapshot<'_> {
        let places = self.places.iter();
        Snapshot {
            mesh: self,
            satellites: self.orbits.satellites(time_s),
            places: places
                .map(|(number, place)| (*number, self.orbits.grounded(*place, time_s)))
                .collect(),
            visible: BTreeMap::new(),
        }
    }

    /// The ways between pairs of places at these times, with the step from which each holds: the satellites that they pass.
    #[must_use]
    pub fn ways(
        &self,
        pairs: &[(u32, u32)],
        times_s: impl Iterator<Item = f64>,
    ) -> Vec<Since<Vec<u32>>> {
        let mut all = vec![Vec::new(); pairs.len()];
        for (step, time_s) in (0..).zip(times_s) {
            let mut now = self.at(time_s);
            for ((from, to), ways) in pairs.iter().zip(&mut all) {
                changes(ways, step, now.way(*from, *to));
            }
        }
        all
    }

    /// The delays of links at these times, ns, with the step from which each holds.
    #[must_use]
    pub fn delays_ns(
        &self,
        links: &[(Node, Node)],
        times_s: impl Iterator<Item = f64>,
    ) -> Vec<Since<u64>> {
        let mut all = vec![Vec::new(); links.len()];
        for (step, time_s) in (0..).zip(times_s) {
            let now = self.at(time_s);
            for ((a, b), delays) in links.iter().zip(&mut all) {
                changes(delays, step, now.delay_ns(*a, *b));
            }
        }
        all
    }
}

/// Adds a value, if it differs from the one before.
fn changes<T: PartialEq>(values: &mut Since<T>, step: u64, value: Option<T>) {
    if values.last().is_none_or(|(_, last)| *last != value) {
        values.push((step, value));
    }
}

/// Where satellites and places are at one time.
#[derive(Clone, Debug)]
pub struct Snapshot<'m> {
    mesh: &'m Mesh,
    satellites: Vec<Point>,
    places: BTreeMap<u32, Spot>,
    /// The satellites that a place is linked with, and their delays; of places that were looked at.
    visible: BTreeMap<u32, Vec<(u32, u64)>>,
}

impl Snapshot<'_> {
    /// Delay of a link between two nodes that may have one, ns; none while the earth is between two satellites, or the satellite is
    /// too low over the horizon.
    #[must_use]
    pub fn delay_ns(&self, a: Node, b: Node) -> Option<u64> {
        match (a, b) {
            (Node::Satellite(a), Node::Satellite(b)) => self.between(a, b),
            (Node::Satellite(satellite), Node::Station(place))
            | (Node::Station(place), Node::Satellite(satellite)) => {
                self.to_ground(&self.places[&place], self.satellites[satellite as usize])
            }
            (Node::Station(_), Node::Station(_)) => None,
        }
    }

    fn between(&self, a: u32, b: u32) -> Option<u64> {
        let (a, b) = (self.satellites[a as usize], self.satellites[b as usize]);
        let km = distance_km(a, b);
        let is_clear = match &self.mesh.orbits {
            Orbits::Walker(_) => km <= self.mesh.longest_km.0,
            Orbits::Listed(_) => Catalogue::is_clear(a, b),
        };
        is_clear.then(|| nanoseconds(km))
    }

    fn to_ground(&self, spot: &Spot, satellite: Point) -> Option<u64> {
        let km = distance_km(spot.at(), satellite);
        let is_seen = match (&self.mesh.orbits, spot) {
            (Orbits::Listed(catalogue), Spot::OnEllipsoid(ground)) => {
                catalogue.sees(ground, satellite)
            }
            _ => km <= self.mesh.longest_km.1,
        };
        is_seen.then(|| nanoseconds(km))
    }

    /// The satellites of the best way from one place to another; none if there is no way.
    #[must_use]
    pub fn way(&mut self, from: u32, to: u32) -> Option<Vec<u32>> {
        for place in [from, to] {
            if !self.visible.contains_key(&place) {
                let found = self.look_up(place);
                self.visible.insert(place, found);
            }
        }
        let (begins, ends) = (&self.visible[&from], &self.visible[&to]);
        let mut down_ns = vec![NOWHERE; self.satellites.len()];
        for (satellite, ns) in ends {
            down_ns[*satellite as usize] = *ns;
        }
        let goal = self.places[&to].at();
        let mut best = vec![(NOWHERE, NOWHERE); self.satellites.len()];
        let mut before = vec![u32::MAX; self.satellites.len()];
        let mut open = BinaryHeap::new();
        for (satellite, ns) in begins {
            let cost = self.cost(*ns);
            best[*satellite as usize] = cost;
            open.push(Reverse((
                self.bound(cost, *satellite, goal),
                cost,
                *satellite,
            )));
        }
        let mut found: Option<(Cost, u32)> = None;
        while let Some(Reverse((bound, cost, satellite))) = open.pop() {
            if found.is_some_and(|(least, _)| bound >= least) {
                break;
            }
            if cost > best[satellite as usize] {
                continue;
            }
            let last_ns = down_ns[satellite as usize];
            if last_ns != NOWHERE {
                let whole = sum(cost, self.cost(last_ns));
                if found.is_none_or(|least| (whole, satellite) < least) {
                    found = Some((whole, satellite));
                }
            }
            for other in &self.mesh.neighbours[satellite as usize] {
                let Some(ns) = self.between(satellite, *other) else {
                    continue;
                };
                let through = sum(cost, self.cost(ns));
                if through < best[*other as usize] {
                    best[*other as usize] = through;
                    before[*other as usize] = satellite;
                    open.push(Reverse((
                        self.bound(through, *other, goal),
                        through,
                        *other,
                    )));
                }
            }
        }
        let mut way = vec![found?.1];
        while let Some(previous) = way.last().map(|last| before[*last as usize]) {
            if previous == u32::MAX {
                break;
            }
            way.push(previous);
        }
        way.reverse();
        Some(way)
    }

    /// The satellites that are high enough above a place.
    fn look_up(&self, place: u32) -> Vec<(u32, u64)> {
        let here = &self.places[&place];
        let all = (0..).zip(&self.satellites);
        all.filter_map(|(satellite, at)| Some((satellite, self.to_ground(here, *at)?)))
            .collect()
    }

    /// What a link costs.
    fn cost(&self, ns: u64) -> Cost {
        match self.mesh.metric {
            Metric::Delay => (ns, 1),
            Metric::Hops => (1, ns),
        }
    }

    /// What a way costs at least that comes to a satellite at this cost.
    fn bound(&self, cost: Cost, satellite: u32, goal: Point) -> Cost {
        match self.mesh.metric {
            Metric::Delay => {
                let line_km = distance_km(self.satellites[satellite as usize], goal);
                (cost.0 + nanoseconds(line_km).saturating_sub(SLACK_NS), 0)
            }
            Metric::Hops => (cost.0 + 1, 0),
        }
    }
}

fn sum(a: Cost, b: Cost) -> Cost {
    (a.0 + b.0, a.1 + b.1)
}

/// How long light takes, ns, rounded up.
fn nanoseconds(km: f64) -> u64 {
    libm::ceil(km * NS_PER_KM) as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::constellation::Pattern;
    use super::*;

    /// Time, ends, and the best way with its length in mm.
    type Wanted = (f64, [u32; 2], Option<(u64, Vec<String>)>);

    /// A file of `tests/ways`, which `oracle/ways.py` writes.
    struct Vectors {
        mesh: Mesh,
        names: Vec<String>,
        ways: Vec<Wanted>,
    }

    fn read(path: &Path) -> Vectors {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let shell: Vec<&str> = lines.next().unwrap().split(' ').collect();
        let number = |at: usize| shell[at].parse::<f64>().unwrap();
        let pattern = match shell[1] {
            "star" => Pattern::Star,
            _ => Pattern::Delta,
        };
        let metric = match shell[9] {
            "hops" => Metric::Hops,
            _ => Metric::Delay,
        };
        let (mut names, mut places, mut ways) = (Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            if words[0] == "station" {
                names.push(words[1].to_owned());
                places.push(Place {
                    lat_deg: words[2].parse().unwrap(),
                    lon_deg: words[3].parse().unwrap(),
                });
                continue;
            }
            let end = |name: &str| names.iter().position(|known| known == name).unwrap() as u32;
            let nodes = words.iter().skip(6).map(|&word| word.to_owned());
            let found = words[5].parse::<u64>().ok().map(|mm| (mm, nodes.collect()));
            let time_s = words[1].parse::<f64>().unwrap() / 1e9;
            ways.push((time_s, [end(words[3]), end(words[4])], found));
        }
        let constellation = Constellation {
            pattern,
            spacing_deg: None,
            planes: number(2) as u32,
            per_plane: number(3) as u32,
            phasing: number(4) as u32,
            altitude_km: number(5),
            inclination_deg: number(6),
            min_elevation_deg: number(7),
        };
        let places = (0..).zip(places).collect();
        let mesh = Mesh::new(
            Orbits::Walker(constellation),
            places,
            number(8) as usize,
            metric,
        );
        Vectors { mesh, names, ways }
    }

    #[test]
    fn ways_and_delays_are_those_of_the_oracle() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ways");
        let mut compared = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "ways") {
                continue;
            }
            let Vectors { mesh, names, ways } = read(&path);
            for (time_s, [from, to], wanted) in ways {
                let mut now = mesh.at(time_s);
                let found = now.way(from, to);
                let Some((wanted_mm, wanted)) = wanted else {
                    assert_eq!(found, None, "{}: {time_s} s", path.display());
                    continue;
                };
                let mut nodes = vec![Node::Station(from)];
                nodes.extend(found.unwrap().into_iter().map(Node::Satellite));
                nodes.push(Node::Station(to));
                let called = nodes.iter().map(|node| match node {
                    Node::Satellite(number) => format!("s{number}"),
                    Node::Station(index) => names[*index as usize].clone(),
                });
                let called: Vec<String> = called.collect();
                assert_eq!(called, wanted, "{}: {time_s} s", path.display());
                let delays = nodes.windows(2).map(|two| now.delay_ns(two[0], two[1]));
                let sum_ns: u64 = delays.map(Option::unwrap).sum();
                let exact_ns = wanted_mm as f64 * 1e6 / LIGHT_M_S;
                let rounded_ns = sum_ns as f64 - exact_ns;
                // Each link's delay is rounded up.
                assert!(
                    (-0.01..=nodes.len() as f64 - 1.0).contains(&rounded_ns),
                    "{}: {time_s} s: {rounded_ns}",
                    path.display()
                );
                // The way back is the same.
                let mut back = now.way(to, from).unwrap();
                back.reverse();
                let there: Vec<u32> = nodes
                    .iter()
                    .filter_map(|node| match node {
                        Node::Satellite(number) => Some(*number),
                        Node::Station(_) => None,
                    })
                    .collect();
                assert_eq!(back, there);
                compared += 1;
            }
        }
        assert!(compared > 150, "{compared}");
    }

    #[test]
    fn a_satellite_alone_has_no_neighbours_and_is_its_own_way() {
        let alone = Constellation {
            pattern: Pattern::Delta,
            spacing_deg: None,
            planes: 1,
            per_plane: 1,
            phasing: 0,
            altitude_km: 800.0,
            inclination_deg: 0.0,
            min_elevation_deg: 10.0,
        };
        let below = |lon_deg| Place {
            lat_deg: 0.0,
            lon_deg,
        };
        let places = (0..).zip([below(0.0), below(5.0), below(90.0)]);
        let mesh = Mesh::new(Orbits::Walker(alone), places.collect(), 4, Metric::Delay);
        let mut now = mesh.at(0.0);
        assert_eq!(now.way(0, 1), Some(vec![0]));
        assert_eq!(now.way(0, 2), None);
    }
}
