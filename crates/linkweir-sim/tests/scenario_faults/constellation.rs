// SPDX-License-Identifier: BSD-3-Clause
//! What is wrong with a constellation whose links make a network.

use std::path::Path;

use linkweir_sim::scenario::{parse, parse_with, Overrides};

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
    assert!(BASE.contains(from), "{from}");
    let text = BASE.replacen(from, to, 1);
    let read = parse(&text, Path::new("leo.toml"));
    read.expect_err(&text).to_string()
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
        r#"34: flow[0].class = "all": no class on link isl has this name; there are other; where links call their classes differently, write class = { "isl" = ..., ... }"#,
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
