// SPDX-License-Identifier: BSD-3-Clause
//! A constellation becomes the network of its links.

use linkweir_sim::experiment::Signal;
use linkweir_sim::network::{Network, OnBreak, Way};

use super::*;

const TEXT: &str = r#"duration = "300s"
interval = "100s"

[constellation]
pattern = "delta"
planes = 24
per_plane = 20
phasing = 5
altitude_km = 550
inclination_deg = 53
stations = [
    { name = "paris", latitude = 48.9, longitude = 2.4 },
    { name = "new-york", latitude = 40.7, longitude = -74.0 },
    { name = "unused", latitude = 0, longitude = 0 },
]
routes = { every = "2s" }

[constellation.ground]
rate = "10Mbit"
mask = 25
[constellation.ground.scheduler]
policy = "strict"
[[constellation.ground.class]]
name = "voice"
level = 0
[[constellation.ground.class]]
name = "rest"
level = 1

[constellation.isl]
rate = "20Mbit"
[constellation.isl.scheduler]
policy = "fifo"
[[constellation.isl.class]]
name = "all"
count = 2

[[flow]]
name = "file"
kind = "tcp"
class = { ground = "rest", isl = "all" }
count = 2
from = "paris"
to = "new-york"

[[flow]]
name = "call"
kind = "cbr"
rate = "64kbit"
class = { ground = "voice", isl = "all" }
from = "new-york"
to = "paris"
"#;

fn scenario(text: &str) -> Scenario {
    parse(text, Path::new("leo.toml")).unwrap()
}

fn network(text: &str) -> Network {
    scenario(text).network.unwrap()
}

fn names<'n>(network: &'n Network, way: &Way) -> Vec<&'n str> {
    let links = way.hops.iter();
    links
        .map(|hop| network.links[hop.link as usize].name.as_str())
        .collect()
}

#[test]
fn ways_lead_from_station_to_station_and_back() {
    let network = network(TEXT);
    let [first, second, call] = &network.flows[..] else {
        panic!("three flows");
    };
    assert_eq!(first.there.len(), first.back.len());
    assert!(first.there.len() > 2, "satellites move");
    for (there, back) in first.there.iter().zip(&first.back) {
        assert_eq!(there.from_ns, back.from_ns);
        assert_eq!(there.from_ns % 2_000_000_000, 0);
        let turned = |name: &str| {
            let (from, to) = match name.strip_prefix("new-york-") {
                Some(to) => ("new-york", to),
                None => name.split_once('-').unwrap(),
            };
            format!("{to}-{from}")
        };
        let mut wanted: Vec<String> = names(&network, there).into_iter().map(turned).collect();
        wanted.reverse();
        assert_eq!(names(&network, back), wanted);
    }
    let way = names(&network, &first.there[0]);
    assert!(way[0].starts_with("paris-s"));
    assert!(way[way.len() - 1].ends_with("-new-york"));
    for two in way.windows(2) {
        let node = two[0].split('-').nth(1).unwrap();
        assert!(two[1].starts_with(&format!("{node}-")), "{way:?}");
    }
    // What is not acknowledged has no way back, and takes the same links as acknowledgements of the others.
    assert!(call.back.is_empty());
    let links = |ways: &[Way]| -> Vec<Vec<u32>> {
        let hops = ways.iter().map(|way| way.hops.iter());
        hops.map(|hops| hops.map(|hop| hop.link).collect())
            .collect()
    };
    assert_eq!(links(&call.there), links(&first.back));
    // Copies join the classes of a family in turn.
    let classes = |way: &Way| way.hops.iter().map(|hop| hop.class).collect::<Vec<_>>();
    assert_eq!(classes(&first.there[0])[..2], [1, 0]);
    assert_eq!(classes(&second.there[0])[..2], [1, 1]);
    assert_eq!(classes(&call.there[0])[..2], [0, 0]);
}

#[test]
fn only_links_that_flows_use_are_links_of_the_network() {
    let network = network(TEXT);
    let used = network.flows.iter().flat_map(|routed| {
        let ways = routed.there.iter().chain(&routed.back);
        ways.flat_map(|way| way.hops.iter().map(|hop| hop.link as usize))
    });
    let mut used: Vec<usize> = used.collect();
    let first_use = used.clone();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used, (0..network.links.len()).collect::<Vec<_>>());
    assert!(!network
        .links
        .iter()
        .any(|link| link.name.contains("unused")));
    // In the order of their first use.
    let mut seen = 0;
    for link in first_use {
        assert!(link <= seen, "{link}");
        seen = seen.max(link + 1);
    }
}

#[test]
fn links_go_and_their_delays_change() {
    let network = network(TEXT);
    let find = |wanted: &dyn Fn(&str) -> bool| {
        let mut links = network.links.iter();
        links.find(|link| wanted(&link.name)).unwrap()
    };
    let up = find(&|name| name.starts_with("paris-"));
    // 24 x 20 satellites leave the view of a station within five minutes.
    assert!(!up.absent.is_empty());
    let Signal::Steps { points, .. } = &up.link.delay_s else {
        panic!("{:?}", up.link.delay_s);
    };
    assert_eq!(points[0].0, 0);
    // At 550 km and 25 degrees: between 550 km and 1123 km away.
    assert!(points
        .iter()
        .all(|(_, s)| (0.001_834..0.003_747).contains(s)));
    // Satellites of a plane follow each other on a circle: 2 x 6921 km x sin(pi / 20).
    let plane = |satellite: &str| {
        satellite
            .strip_prefix('s')?
            .parse::<u32>()
            .ok()
            .map(|s| s / 20)
    };
    let along = find(&|name| {
        let (from, to) = name.split_once('-').unwrap();
        plane(from).is_some() && plane(from) == plane(to)
    });
    assert!(along.absent.is_empty());
    let long_s = along.link.delay_s.least(u64::MAX);
    assert!((long_s - 2.0 * 6_921e3 * 0.156_434_465 / 299_792_458.0).abs() < 2e-9);
    assert_eq!(network.on_break, OnBreak::Lose);
}

#[test]
fn the_resolved_form_is_the_same_network() {
    let first = scenario(TEXT);
    let second = scenario(&first.resolved_toml);
    assert_eq!(first.resolved_toml, second.resolved_toml);
    assert_eq!(first.network, second.network);
    for wanted in ["[constellation.isl]\n", "neighbours = 4\n", "mask = 25.0\n"] {
        assert!(
            first.resolved_toml.contains(wanted),
            "{}",
            first.resolved_toml
        );
    }
    assert!(
        !first.resolved_toml.contains("\ndelay ="),
        "{}",
        first.resolved_toml
    );
}

#[test]
fn each_link_alone_is_a_scenario() {
    let scenario = scenario(TEXT);
    let network = scenario.network.as_ref().unwrap();
    assert_eq!(scenario.links.len(), network.links.len());
    for (alone, link) in scenario.links.iter().zip(&network.links) {
        assert_eq!(alone.experiment.link, link.link, "{}", link.name);
        let again = parse(&alone.resolved_toml, Path::new("leo.toml"));
        if !alone.experiment.flows.is_empty() {
            assert_eq!(again.unwrap().experiment, alone.experiment, "{}", link.name);
        }
    }
}

#[test]
fn fewest_links_are_no_more_than_those_of_the_least_delay() {
    let far = TEXT.replace("mask = 25", "mask = 5").replace(
        "latitude = 40.7, longitude = -74.0",
        "latitude = -33.9, longitude = 151.2",
    );
    let least = network(&far);
    let fewest = network(&far.replace("every = \"2s\"", "every = \"2s\", metric = \"hops\""));
    let at = |network: &Network, time_ns: u64| {
        let ways = &network.flows[0].there;
        let way = ways.iter().rev().find(|way| way.from_ns <= time_ns);
        way.unwrap().hops.len()
    };
    let all = (0..150).map(|step| step * 2_000_000_000);
    assert!(all.clone().all(|ns| at(&fewest, ns) <= at(&least, ns)));
    assert!(all.clone().any(|ns| at(&fewest, ns) < at(&least, ns)));
}

#[test]
fn times_without_a_way_are_noted() {
    let text = TEXT.replace("mask = 25", "mask = 42");
    let scenario = scenario(&text);
    let [note] = &scenario.notes[..] else {
        panic!("{:?}", scenario.notes);
    };
    let begins = "constellation: no satellites join \"paris\" and \"new-york\" for ";
    assert!(note.starts_with(begins), "{note}");
    assert!(
        note.contains("what is sent then is lost and counted as lost"),
        "{note}"
    );
    let ways = &scenario.network.as_ref().unwrap().flows[0].there;
    assert!(ways.iter().any(|way| way.hops.is_empty()));
}

#[test]
fn pairs_without_a_way_share_a_note() {
    let third = r#"
[[flow]]
name = "other"
kind = "cbr"
rate = "64kbit"
class = { ground = "voice", isl = "all" }
from = "unused"
to = "paris"
"#;
    let text = TEXT.replace("mask = 25", "mask = 42").replace(
        "latitude = 0, longitude = 0",
        "latitude = -33.9, longitude = 151.2",
    );
    let text = format!("{text}{third}");
    let scenario = scenario(&text);
    let flows = &scenario.network.as_ref().unwrap().flows;
    let without_ns = |flow: usize| -> u64 {
        let ways = &flows[flow].there;
        let ends = ways
            .iter()
            .skip(1)
            .map(|way| way.from_ns)
            .chain([300_000_000_000]);
        let spans = ways.iter().zip(ends).filter(|(way, _)| way.hops.is_empty());
        spans.map(|(way, end_ns)| end_ns - way.from_ns).sum()
    };
    let (first, other) = (without_ns(0), without_ns(3));
    assert!(first > 0 && other > 0 && first != other, "{first} {other}");
    let worst = if first > other {
        r#""paris" and "new-york""#
    } else {
        r#""paris" and "unused""#
    };
    let [note] = &scenario.notes[..] else {
        panic!("{:?}", scenario.notes);
    };
    let begins = format!(
        "constellation: at times no satellites join 2 pairs of stations, {worst} for longest: {}s of 300s, ",
        first.max(other) / 1_000_000_000
    );
    assert!(note.starts_with(&begins), "{note}");
}

#[test]
fn the_last_step_ends_with_the_run() {
    let text = TEXT
        .replace("duration = \"300s\"", "duration = \"299500ms\"")
        .replace("every = \"2s\"", "every = \"7s\"");
    let network = network(&text);
    for way in network.flows.iter().flat_map(|routed| &routed.there) {
        assert_eq!(way.from_ns % 7_000_000_000, 0);
        assert!(way.from_ns < 299_500_000_000);
    }
    let absent = network.links.iter().flat_map(|link| link.absent.iter());
    let ends: Vec<u64> = absent.map(|(_, until_ns)| *until_ns).collect();
    // Some link is gone for good: until the end of the run, and no longer.
    assert_eq!(ends.iter().max(), Some(&299_500_000_000));
    let changes = ends.iter().filter(|ns| **ns != 299_500_000_000);
    assert!(changes.clone().all(|ns| ns % 7_000_000_000 == 0));
}

#[test]
fn planes_of_a_star_are_as_far_apart_as_spacing_says() {
    let text = TEXT
        .replace("pattern = \"delta\"", "pattern = \"star\"\nspacing_deg = 7")
        .replace("inclination_deg = 53", "inclination_deg = 90")
        .replace("phasing = 5", "phasing = 0")
        .replace("mask = 25", "mask = 5")
        .replace(
            "latitude = 48.9, longitude = 2.4",
            "latitude = 0, longitude = 0",
        )
        .replace(
            "latitude = 40.7, longitude = -74.0",
            "latitude = 0, longitude = 40",
        );
    let network = network(&text);
    let plane = |satellite: &str| {
        satellite
            .strip_prefix('s')?
            .parse::<u32>()
            .ok()
            .map(|s| s / 20)
    };
    // Two satellites at the same argument of latitude u in polar planes d apart: 2 R cos(u) sin(d / 2) from each other, d / 2 = 3.5 degrees.
    let widest_s = 2.0 * 6_921e3 * 0.061_048_540 / 299_792_458.0;
    let mut most_s: f64 = 0.0;
    for link in &network.links {
        let Some((from, to)) = link.name.split_once('-') else {
            continue;
        };
        if let (Some(from), Some(to)) = (plane(from), plane(to)) {
            if from.abs_diff(to) == 1 {
                most_s = most_s.max(match &link.link.delay_s {
                    Signal::Constant(s) => *s,
                    Signal::Steps { points, .. } => {
                        points.iter().map(|(_, s)| *s).fold(0.0, f64::max)
                    }
                    other => panic!("{other:?}"),
                });
            }
        }
    }
    assert!(most_s < widest_s + 2e-9, "{most_s} {widest_s}");
    // u is below 10 degrees at some step of the run.
    assert!(most_s > widest_s * 0.984_807_753, "{most_s} {widest_s}");
}

/// The ways of a file of the oracle and their lengths in mm, between two stations, at whole multiples of a time.
struct Listed {
    mask: String,
    stations: Vec<[String; 3]>,
    ways: Vec<Wanted>,
}

/// Time in ns, names of both ends, and the length and nodes of the way, if there is one.
type Wanted = (u64, [String; 2], Option<(f64, Vec<String>)>);

fn listed(path: &Path) -> Listed {
    let text = std::fs::read_to_string(path).unwrap();
    let mut found = Listed {
        mask: String::new(),
        stations: Vec::new(),
        ways: Vec::new(),
    };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match words[0].as_str() {
            "list" => found.mask = words[1].clone(),
            "station" => found.stations.push([1, 2, 3].map(|at| words[at].clone())),
            _ => {
                let way = words[5].parse().ok().map(|mm| (mm, words[6..].to_vec()));
                let ends = [words[3].clone(), words[4].clone()];
                found.ways.push((words[1].parse().unwrap(), ends, way));
            }
        }
    }
    found
}

#[test]
fn ways_over_listed_satellites_are_those_of_the_oracle() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ways");
    for (name, least) in [("iridium", 30), ("delta", 20), ("shells", 36)] {
        let wanted = listed(&folder.join(format!("{name}.listed")));
        let stations = wanted.stations.iter().map(|[name, latitude, longitude]| {
            format!("{{ name = \"{name}\", latitude = {latitude}, longitude = {longitude} }},\n")
        });
        let stations: String = stations.collect();
        let (head, rest) = TEXT.split_once("pattern").unwrap();
        let (_, rest) = rest.split_once("routes").unwrap();
        let (rest, _) = rest.split_once("[[flow]]").unwrap();
        let mut text =
            format!("{head}tle = \"{name}.tle\"\nstations = [\n{stations}]\nroutes{rest}")
                .replace("300s", "7000s")
                .replace("\"2s\"", "\"600s\"")
                .replace("mask = 25", &format!("mask = {}", wanted.mask));
        let mut pairs: Vec<&[String; 2]> = wanted.ways.iter().map(|(_, ends, _)| ends).collect();
        pairs.sort();
        pairs.dedup();
        for [from, to] in &pairs {
            text += &format!("[[flow]]\nname = \"{from} {to}\"\nkind = \"tcp\"\nfrom = \"{from}\"\nto = \"{to}\"\nclass = {{ ground = \"rest\", isl = \"all\" }}\n");
        }
        let read = parse(&text, &folder.join("x.toml")).unwrap();
        let network = read.network.unwrap();
        let mut compared = 0;
        for (at_ns, [from, to], wanted) in &wanted.ways {
            let of = format!("{from} {to}");
            let mut flows = network.flows.iter();
            let flow = flows.find(|flow| flow.flow.name == of).unwrap();
            let mut ways = flow.there.iter().rev();
            let way = ways.find(|way| way.from_ns <= *at_ns).unwrap();
            let (mm, nodes) = match wanted {
                Some(wanted) => wanted.clone(),
                None => (0.0, Vec::new()),
            };
            let links: Vec<String> = nodes
                .windows(2)
                .map(|two| format!("{}-{}", two[0], two[1]))
                .collect();
            assert_eq!(names(&network, way), links, "{name}, {of}, {at_ns}");
            let delays = way.hops.iter().map(|hop| {
                let link = &network.links[hop.link as usize].link;
                match &link.delay_s {
                    Signal::Constant(delay_s) => *delay_s,
                    Signal::Steps { points, .. } => {
                        points
                            .iter()
                            .rev()
                            .find(|point| point.0 <= *at_ns)
                            .unwrap()
                            .1
                    }
                    other => panic!("{other:?}"),
                }
            });
            let apart_ns = delays.sum::<f64>() * 1e9 - mm * 1e6 / 299_792_458.0;
            // Each link's delay is rounded up, and another sidereal time moves stations by less than 1 m.
            assert!(
                (-5.0..nodes.len() as f64 + 5.0).contains(&apart_ns),
                "{apart_ns}"
            );
            compared += 1;
        }
        assert!(compared >= least, "{compared}");
    }
}

#[test]
fn listed_satellites_have_a_reading_and_their_file_is_kept() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ways");
    let (head, rest) = TEXT.split_once("pattern").unwrap();
    let (_, rest) = rest.split_once("stations").unwrap();
    let text =
        format!("{head}tle = \"iridium.tle\"\nstations{rest}").replace("mask = 25", "mask = 8");
    let read = parse(&text, &folder.join("x.toml")).unwrap();
    let [reading] = &read.readings[..] else {
        panic!("{:?}", read.readings);
    };
    assert!(
        reading.contains(
            "iridium.tle: two-line elements, 66 satellites, 1 shell, 6 planes; time 0 is the latest epoch, day 333.0386875 of 2026"
        ),
        "{reading}"
    );
    assert_eq!(read.inputs[0].name, "inputs/iridium.tle");
    assert!(read.resolved_toml.contains("tle = \"inputs/iridium.tle\""));
    assert!(!read.resolved_toml.contains("planes"));
}

#[test]
fn satellites_between_planes_are_warned_of_until_they_are_removed() {
    let folder = std::env::temp_dir().join(format!("linkweir-strays-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ways = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ways");
    let list = std::fs::read_to_string(ways.join("iridium.tle")).unwrap();
    let (head, rest) = TEXT.split_once("pattern").unwrap();
    let (_, rest) = rest.split_once("stations").unwrap();
    let text =
        format!("{head}tle = \"strays.tle\"\nstations{rest}").replace("mask = 25", "mask = 8");
    let notes = |nodes_deg: &[f64]| {
        let mut list = list.clone();
        for (number, node) in (90_001..).zip(nodes_deg) {
            for line in [
                format!("1 {number}U 20001A   26333.01472222  .00000100  00000-0  67187-4 0  999"),
                format!(
                    "2 {number}  86.4108 {node:8.4} 0005832 236.4674  35.7946 14.35663288    1"
                ),
            ] {
                let digits = line
                    .chars()
                    .map(|c| c.to_digit(10).unwrap_or(u32::from(c == '-')));
                list.push_str(&format!("{line}{}\n", digits.sum::<u32>() % 10));
            }
        }
        std::fs::write(folder.join("strays.tle"), list).unwrap();
        parse(&text, &folder.join("x.toml")).unwrap().notes
    };
    // The nodes of the list's second plane are 29.9 to 30.1 degrees. Three strays make it 2.9 degrees wide, four 3.8.
    assert!(notes(&[31.0, 31.9, 32.8]).is_empty());
    let [note] = &notes(&[31.0, 31.9, 32.8, 33.7])[..] else {
        panic!("one note");
    };
    assert_eq!(
        note,
        "constellation.tle: the satellites of a plane are spread over 3.8 degrees of node, because each is less than 1 degree from the next; links between planes may lack. Remove satellites that are between planes"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
