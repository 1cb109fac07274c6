// SPDX-License-Identifier: BSD-3-Clause
//! What is wrong with a constellation whose links make a network.

use std::path::Path;

use linkweir_sim::scenario::{parse, parse_with, Overrides};

use crate::fault_with;

const BASE: &str = r#"duration = "10s"

[constellation]
pattern = "delta"
planes = 12
per_plane = 10
altitude_km = 1200
inclination_deg = 53
stations = [
    { name = "paris", latitude = 48.9, longitude = 2.4 },
    { name = "new-york", latitude = 40.7, longitude = -74.0 },
]
routes = { every = "1s" }

[constellation.ground]
rate = "10Mbit"
mask = 5
[constellation.ground.scheduler]
policy = "fifo"
[[constellation.ground.class]]
name = "all"

[constellation.isl]
rate = "20Mbit"
neighbours = 4
[constellation.isl.scheduler]
policy = "fifo"
[[constellation.isl.class]]
name = "all"

[[flow]]
name = "file"
kind = "tcp"
class = "all"
from = "paris"
to = "new-york"
"#;

/// The message for the base scenario with one piece of text replaced.
fn fault(from: &str, to: &str) -> String {
    fault_with(BASE, "leo.toml", from, to)
}

#[track_caller]
fn is(from: &str, to: &str, wanted: &str) {
    assert_eq!(fault(from, to), format!("leo.toml:{wanted}"));
}

#[test]
fn the_base_is_sound() {
    let scenario = parse(BASE, Path::new("leo.toml")).unwrap();
    assert!(scenario.network.unwrap().links.len() > 4);
}

#[test]
fn flows_name_stations() {
    is(
        r#"to = "new-york""#,
        r#"to = "new-yrok""#,
        r#"36: flow[0].to = "new-yrok": no station has this name; did you mean "new-york"?"#,
    );
    is(
        r#"to = "new-york""#,
        "",
        r#"31: flow[0].to: is missing; write to = "paris""#,
    );
    is(
        r#"from = "paris""#,
        "",
        r#"31: flow[0].from: is missing; write from = "paris""#,
    );
    is(
        r#"to = "new-york""#,
        r#"to = "paris""#,
        r#"36: flow[0].to = "paris": is the station of from, too; name another one"#,
    );
    is(
        r#"from = "paris""#,
        r#"path = ["paris-s1"]"#,
        r#"35: flow[0].path = ["paris-s1"]: is for [[link]]; with a [constellation], name stations in from and to"#,
    );
    is(
        r#"from = "paris""#,
        "from = \"paris\"\nback = [\"s1-paris\"]",
        r#"36: flow[0].back = ["s1-paris"]: is for [[link]]; with a [constellation], name stations in from and to"#,
    );
}

#[test]
fn stations_are_for_constellations() {
    let one = r#"duration = "1s"
[link]
rate = "1Mbit"
[scheduler]
policy = "fifo"
[[class]]
name = "all"
[[flow]]
kind = "tcp"
class = "all"
from = "paris"
"#;
    let read = parse(one, Path::new("one.toml")).unwrap_err().to_string();
    assert_eq!(
        read,
        r#"one.toml:11: flow[0].from = "paris": is for the stations of a [constellation]; leave it out"#
    );
    let several = r#"duration = "1s"
[[link]]
name = "a"
rate = "1Mbit"
[link.scheduler]
policy = "fifo"
[[link.class]]
name = "all"
[[flow]]
kind = "tcp"
class = "all"
to = "paris"
"#;
    let read = parse(several, Path::new("net.toml")).unwrap_err();
    assert_eq!(
        read.to_string(),
        r#"net.toml:12: flow[0].to = "paris": is for the stations of a [constellation]; list links in path"#
    );
}

#[test]
fn a_constellation_makes_all_links() {
    let others = [
        ("[link]\nrate = \"1Mbit\"\n", "31: link: is not for a scenario with [constellation], which makes the links; leave it or [constellation] out"),
        ("[[link]]\nname = \"a\"\n", "31: link[0]: is not for a scenario with [constellation], which makes the links; leave it or [constellation] out"),
        ("[scheduler]\npolicy = \"fifo\"\n", "31: scheduler: is not for a scenario with [constellation], which makes the links; write [constellation.ground.scheduler] and [[constellation.ground.class]], and the same below isl"),
        ("[[class]]\nname = \"all\"\n", "31: class[0]: is not for a scenario with [constellation], which makes the links; write [constellation.ground.scheduler] and [[constellation.ground.class]], and the same below isl"),
    ];
    for (table, wanted) in others {
        is("[[flow]]\n", &format!("{table}[[flow]]\n"), wanted);
    }
    let overrides = Overrides {
        trace: Some("lte.csv".into()),
        ..Overrides::default()
    };
    let read = parse_with(BASE, Some(Path::new("leo.toml")), &overrides);
    assert_eq!(
        read.unwrap_err().to_string(),
        "leo.toml:3: constellation: lte.csv cannot take the place of several links' rates; write it as trace of ground or isl"
    );
}

#[test]
fn stations_have_names_and_places() {
    let paris = r#"{ name = "paris", latitude = 48.9, longitude = 2.4 }"#;
    is(
        paris,
        r#"{ name = "s3-west", latitude = 48.9, longitude = 2.4 }"#,
        r#"10: constellation.stations[0].name = "s3-west": must not be empty, nor have a part like s17, as satellites are called"#,
    );
    is(
        paris,
        r#"{ name = "new-york", latitude = 48.9, longitude = 2.4 }"#,
        r#"11: constellation.stations[1].name = "new-york": two stations have this name; rename one"#,
    );
    is(
        paris,
        r#"{ name = "paris", latitude = 98.9, longitude = 2.4 }"#,
        "10: constellation.stations[0].latitude = 98.9: must be a number -90 .. 90",
    );
    is(
        paris,
        r#"{ name = "paris", longitude = 2.4 }"#,
        "10: constellation.stations[0].latitude: is missing; write latitude = 48.9",
    );
    is(
        paris,
        r#""paris""#,
        r#"10: constellation.stations[0] = "paris": must be a station like { name = "paris", latitude = 48.9, longitude = 2.4 }"#,
    );
}

#[test]
fn links_have_what_the_geometry_does_not_say() {
    is(
        "mask = 5",
        "mask = 95",
        "17: constellation.ground.mask = 95: must be a number 0 .. 90",
    );
    is(
        "neighbours = 4",
        "neighbours = 3",
        "25: constellation.isl.neighbours = 3: must be 2 or 4",
    );
    is(
        "mask = 5",
        "delay = \"5ms\"",
        r#"17: constellation.ground.delay = "5ms": is computed from where the satellites are; leave it out"#,
    );
    is(
        "neighbours = 4",
        "name = \"a\"",
        r#"25: constellation.isl.name = "a": is for [[link]]; links of a constellation have names like s17-s18"#,
    );
    is(
        "mask = 5",
        "satellite = {}",
        "17: constellation.ground.satellite = {}: is not possible on links of a constellation; leave it out",
    );
    is(
        "rate = \"10Mbit\"\n",
        "",
        "15: constellation.ground.rate: is missing; write rate = \"20Mbit\" or trace = \"capacity.csv\"",
    );
    is(
        "[[constellation.ground.class]]\nname = \"all\"\n",
        "",
        "15: constellation.ground.class: is missing; write at least one table [[constellation.ground.class]]",
    );
    is(
        "name = \"all\"\n\n[[flow]]",
        "name = \"other\"\n\n[[flow]]",
        r#"34: flow[0].class = "all": no class on constellation.isl has this name; there are other; where links call their classes differently, write class = { "isl" = ..., ... }"#,
    );
}

#[test]
fn ways_must_exist_and_be_few_enough() {
    is(
        "mask = 5",
        "mask = 90",
        r#"36: flow[0].to = "new-york": at no time of the run do satellites join the two stations; lower constellation.ground.mask, add [constellation.isl], or take more satellites"#,
    );
    let text = BASE
        .replace("10s", "1000s")
        .replace(r#"every = "1s""#, r#"every = "1ms""#);
    let read = parse(&text, Path::new("leo.toml")).unwrap_err();
    assert_eq!(
        read.to_string(),
        r#"leo.toml:13: constellation.routes = { every = "1ms" }: 120 satellites at 1000000 times are more than 10000000 places to compute; raise every, or shorten duration"#
    );
    is(
        r#"every = "1s""#,
        r#"every = "0s""#,
        r#"13: constellation.routes.every = "0s": must be 1ms .. 3600s"#,
    );
    is(
        r#"every = "1s""#,
        r#"metric = "cost""#,
        r#"13: constellation.routes.metric = "cost": must be one of delay, hops"#,
    );
    is(
        "kind = \"tcp\"",
        "kind = \"greedy\"",
        r#"33: flow[0].kind = "greedy": greedy fills one queue, and ways between stations change; write "tcp", or "cbr" with a rate"#,
    );
}

#[test]
fn a_constellation_has_two_stations() {
    let new_york = "    { name = \"new-york\", latitude = 40.7, longitude = -74.0 },\n";
    let one = fault(new_york, "");
    assert!(
        one.starts_with("leo.toml:9: constellation.stations = "),
        "{one}"
    );
    assert!(one.ends_with(": must have two stations at least"), "{one}");
}

#[test]
fn satellites_keep_two_or_four_links() {
    for wrong in ["1", "3", "5", "\"four\""] {
        is(
            "neighbours = 4",
            &format!("neighbours = {wrong}"),
            &format!("25: constellation.isl.neighbours = {wrong}: must be 2 or 4"),
        );
    }
}

#[test]
fn without_links_between_satellites_flows_choose_classes_on_the_ground_only() {
    let (before, isl) = BASE.split_once("[constellation.isl]").unwrap();
    let (_, flow) = isl.split_once("[[flow]]").unwrap();
    // New York is too far away for one satellite: London is not.
    let text = format!("{before}[[flow]]{flow}").replace(
        r#""new-york", latitude = 40.7, longitude = -74.0"#,
        r#""new-york", latitude = 51.5, longitude = -0.1"#,
    );
    let of = |class: &str| {
        let text = text.replace(r#"class = "all""#, &format!("class = {class}"));
        parse(&text, Path::new("leo.toml"))
    };
    let network = of(r#"{ ground = "all" }"#).unwrap().network.unwrap();
    assert!(network.flows[0].there.iter().all(|way| way.hops.len() < 3));
    let read = of(r#"{ ground = "all", isl = "all" }"#).unwrap_err();
    assert_eq!(
        read.to_string(),
        r#"leo.toml:26: flow[0].class.isl = "all": the flow passes no link of this name; there are ground"#
    );
}

/// The base with these stations, by latitude and longitude, and a flow between each two of these pairs.
fn with_flows(
    places: impl Iterator<Item = (f64, f64)>,
    pairs: impl Iterator<Item = (usize, usize)>,
) -> String {
    let (head, rest) = BASE.split_once("stations = [\n").unwrap();
    let (_, rest) = rest.split_once("]\n").unwrap();
    let (rest, _) = rest.split_once("[[flow]]").unwrap();
    let station = |(at, (latitude, longitude)): (usize, (f64, f64))| {
        format!("    {{ name = \"p{at}\", latitude = {latitude}, longitude = {longitude} }},\n")
    };
    let flow = |(from, to): (usize, usize)| {
        format!(
            "[[flow]]\nname = \"{from}:{to}\"\nkind = \"tcp\"\nclass = \"all\"\nfrom = \"p{from}\"\nto = \"p{to}\"\n"
        )
    };
    let stations: String = places.enumerate().map(station).collect();
    let flows: String = pairs.map(flow).collect();
    format!("{head}stations = [\n{stations}]\n{rest}{flows}")
}

/// Places one degree apart.
fn in_a_row(count: usize) -> impl Iterator<Item = (f64, f64)> {
    (0..count).map(|at| (20.0, -179.0 + (at % 358) as f64))
}

/// The message for a text, without the name of the file and the line.
fn message(text: &str) -> String {
    let read = parse(text, Path::new("leo.toml")).expect_err("it is refused");
    let read = read.to_string();
    let (_, message) = read.split_once(": ").unwrap();
    message.to_owned()
}

fn without_isl(text: &str) -> String {
    let (before, isl) = text.split_once("[constellation.isl]").unwrap();
    let (_, flows) = isl.split_once("[[flow]]").unwrap();
    format!("{before}[[flow]]{flows}")
}

#[test]
fn ways_to_compute_are_few_enough() {
    let every_two =
        |count: usize| (0..count).flat_map(move |to| (0..to).map(move |from| (from, to)));
    let text = with_flows(in_a_row(6), every_two(6))
        .replace("10s", "80s")
        .replace(r#"every = "1s""#, r#"every = "1ms""#);
    assert_eq!(
        message(&text),
        r#"constellation.routes = { every = "1ms" }: 15 pairs of stations at 80000 times are more than 1000000 ways to compute; raise every, or shorten duration"#
    );
    let text = with_flows(in_a_row(23), every_two(23))
        .replace("10s", "2000s")
        .replace("planes = 12", "planes = 100")
        .replace("per_plane = 10", "per_plane = 50");
    assert_eq!(
        message(&text),
        r#"constellation.routes = { every = "1s" }: ways of 253 pairs of stations through 5000 satellites at 2000 times take too long to compute, more than 2000000000 satellites to visit; raise every, or shorten duration"#
    );
}

#[test]
fn links_of_ways_are_few_enough() {
    let pairs = |count: usize| (0..count).map(|at| (2 * at, 2 * at + 1));
    let places = |count| {
        in_a_row(count)
            .zip(0..)
            .map(|((_, longitude), at)| (f64::from(at % 90) - 45.0, longitude))
    };
    let text = without_isl(&with_flows(places(3000), pairs(1500)))
        .replace("mask = 5", "mask = 0")
        .replace("10s", "6000s")
        .replace(r#"every = "1s""#, r#"every = "600s""#);
    let read = message(&text);
    let (begin, end) = read.split_once("flows use ").unwrap();
    assert!(begin.starts_with("constellation.stations = "), "{begin}");
    assert!(
        end.ends_with(
            " links, more than 20000; use fewer stations, raise every, or shorten duration"
        ),
        "{end}"
    );
    let text = without_isl(&with_flows(places(4), pairs(2))).replace("10s", "20000s");
    let read = message(&text);
    let (begin, end) = read.split_once(": ").unwrap();
    assert_eq!(begin, r#"constellation.routes = { every = "1s" }"#);
    assert!(
        end.ends_with(" links at 20000 times are more than 5000000 delays to compute; raise every, or shorten duration"),
        "{end}"
    );
}

#[test]
fn copies_over_changing_ways_are_few_enough() {
    let text = BASE.replace("10s", "3000s").replace(
        "kind = \"tcp\"",
        "kind = \"cbr\"\nrate = \"1kbit\"\ncount = 100000",
    );
    let read = message(&text);
    assert!(read.starts_with("flow[0].count = 100000: "), "{read}");
    assert!(
        read.ends_with(
            "more than 100000, which take 0.3 GB of memory, and 3 GB if many packets wait on each; lower count, raise constellation.routes.every, or shorten duration"
        ),
        "{read}"
    );
}

/// Elements of two satellites of Iridium's kind.
const ELEMENTS: [&str; 4] = [
    "1 10006U 20001A   26333.01472222  .00000100  00000-0  67187-4 0  9991",
    "2 10006  86.4108 359.9261 0005832 236.4674  35.7946 14.35663288    12",
    "1 10014U 20001A   26333.02814583  .00000100  00000-0  31979-4 0  9991",
    "2 10014  86.4108 359.9261 0005832 236.4674  35.7946 14.35663288    11",
];

/// The message for a file of elements, without the folder.
fn of_elements(lines: &[&str], more: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("linkweir-tle-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("f.tle"), lines.join("\n")).unwrap();
    let (head, rest) = BASE.split_once("pattern").unwrap();
    let (_, rest) = rest.split_once("stations").unwrap();
    let text = format!("{head}tle = \"f.tle\"\n{more}stations{rest}");
    let fault = parse(&text, &folder.join("leo.toml")).expect_err("it is refused");
    let message = fault.to_string();
    std::fs::remove_dir_all(&folder).unwrap();
    message.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn a_list_of_satellites_is_in_place_of_a_pattern() {
    assert_eq!(
        of_elements(&ELEMENTS[..2], "planes = 6\n"),
        "leo.toml:5: constellation.planes = 6: is of a pattern of satellites, and tle lists them; leave one of the two out"
    );
    assert!(of_elements(&ELEMENTS[..2], "spacing_deg = 30\n")
        .contains("constellation.spacing_deg = 30: is of a pattern"));
}

#[test]
fn faults_of_elements_have_the_line_and_the_field() {
    let second = ELEMENTS[3];
    let with = |line: &str, at: usize| {
        let mut lines = ELEMENTS;
        lines[at] = line;
        of_elements(&lines, "")
    };
    for (at, line, wanted) in [
        (
            3,
            "2 10014  86.4108 359.9261 0005832 236.4674  35.7946 14.35663288    12",
            r#"f.tle:4: checksum = "2": is not that of the line, 1; a character is wrong, load the file again"#,
        ),
        (
            3,
            "2 10014  86.4108 359.9261 0005832 236.4674  35.7946 14.356632",
            "f.tle:4: must have 69 ASCII characters and has 61; load the file again as TLE",
        ),
        (
            3,
            "2 10015  86.4108 359.9261 0005832 236.4674  35.7946 14.35663288    12",
            r#"f.tle:4: satellite number = "10015": must be that of the line above, 10014"#,
        ),
        (
            3,
            "2 10014 186.4108 359.9261 0005832 236.4674  35.7946 14.35663288    12",
            r#"f.tle:4: inclination = "186.4108": must be degrees, 0 .. 180"#,
        ),
        (
            3,
            "2 10014  86.4108 359.9261 00O5832 236.4674  35.7946 14.35663288    11",
            r#"f.tle:4: eccentricity = "00O5832": must be the seven digits behind the decimal point"#,
        ),
        (
            3,
            "2 10014  86.4108 359.9261 0005832 236.4674  35.7946  6.35663288    12",
            r#"f.tle:4: mean motion = "6.35663288": is an orbit of 225 minutes or more, on which moon and sun act; they are not computed, so remove this satellite"#,
        ),
        (
            3,
            "2 10014  86.4108 359.9261 5005832 236.4674  35.7946 14.35663288    16",
            r#"f.tle:4: mean motion = "14.35663288": is, with the eccentricity, an orbit into the earth; remove this satellite"#,
        ),
        (
            3,
            "x",
            "f.tle:3: must have the second line of its elements, which starts with 2, below it",
        ),
        (
            2,
            second,
            "f.tle:3: is the second line of elements, and the first is not above it",
        ),
        (
            2,
            "IRIDIUM 14",
            "f.tle:3: must be a name or a line of elements, with the two lines that start with 1 and 2 below",
        ),
        (
            2,
            "1 10014U 20001A   26333.02814583  .00000100  00000-0  31979 4 0  9990",
            r#"f.tle:3: drag term = "31979 4": must be a number like -11606-4 for -0.11606e-4"#,
        ),
        (
            2,
            "1 10014U 20001A   26398.02814583  .00000100  00000-0  31979-4 0  9992",
            r#"f.tle:3: epoch day = "398.02814583": must be days of the year, 1 .. 367"#,
        ),
        (
            2,
            "1 10014U 20001A   26333.02814583  .00000100  00000-0  99999+9 0  9991",
            r#"f.tle:3: satellite number = "10014": comes down before the run ends; remove it, or take newer elements"#,
        ),
    ] {
        assert_eq!(with(line, at), wanted);
    }
    assert_eq!(
        of_elements(&[], ""),
        "f.tle: is empty; it must hold two-line elements, such as CelesTrak's with FORMAT=tle"
    );
    let twice = [&ELEMENTS[..2], &ELEMENTS[..2]].concat();
    assert_eq!(
        of_elements(&twice, ""),
        r#"f.tle:3: satellite number = "10006": is also in line 1; keep the elements of one epoch"#
    );
}

/// A line of elements with its last digit, the sum of all others; a minus counts as 1.
fn summed(line: &str) -> String {
    let of = |c: char| c.to_digit(10).unwrap_or(u32::from(c == '-'));
    let sum: u32 = line.chars().map(of).sum();
    format!("{line}{}", sum % 10)
}

#[test]
fn an_epoch_far_from_the_others_is_refused() {
    let first = |number: u32, epoch: &str| {
        summed(&format!(
            "1 {number}U 20001A   {epoch}  .00000100  00000-0  67187-4 0  999"
        ))
    };
    let second = |number: u32| {
        summed(&format!(
            "2 {number}  86.4108 359.9261 0005832 236.4674  35.7946 14.35663288    1"
        ))
    };
    let with = |epoch: &str| {
        let lines = [
            first(10006, "26333.01472222"),
            second(10006),
            first(10007, epoch),
            second(10007),
            first(10008, "26332.50000000"),
            second(10008),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        of_elements(&lines, "")
    };
    for epoch in [
        "56333.01472222",
        "27001.00000000",
        "26302.00000000",
        "57300.00000000",
    ] {
        let read = with(epoch);
        let begin = format!(
            "f.tle:3: epoch = \"{epoch}\": is more than 30 days from the median of the file, day "
        );
        assert!(read.starts_with(&begin), "{read}");
        assert!(
            read.ends_with("; remove this satellite, or load the file again"),
            "{read}"
        );
    }
    // 29 days before and after the others are not refused for that.
    for epoch in ["26304.01472222", "26361.50000000"] {
        let read = with(epoch);
        assert!(!read.contains("epoch"), "{read}");
    }
}

#[test]
fn names_of_satellites_may_begin_with_a_number() {
    let named = [
        "1 HOPE",
        ELEMENTS[0],
        ELEMENTS[1],
        "2 HOPE",
        ELEMENTS[2],
        ELEMENTS[3],
    ];
    // Both are read; they do not join the stations.
    assert!(of_elements(&named, "").contains("do satellites join the two stations"));
    assert_eq!(
        of_elements(&["1 HOPE", "2 HOPE"], ""),
        "f.tle:1: must be a name or a line of elements, with the two lines that start with 1 and 2 below"
    );
}

#[test]
fn a_constellation_without_satellites_is_told_of_both_kinds() {
    let (head, rest) = BASE.split_once("pattern").unwrap();
    let (_, rest) = rest.split_once("stations").unwrap();
    assert_eq!(
        message(&format!("{head}stations{rest}")),
        r#"constellation: lacks satellites; write planes, per_plane, altitude_km and inclination_deg, or tle = "elements.tle""#
    );
}
