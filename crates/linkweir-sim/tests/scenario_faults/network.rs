// SPDX-License-Identifier: BSD-3-Clause
//! What is wrong with several links and with flows' ways through them.

use std::path::Path;

use linkweir_sim::scenario::{parse, parse_with, Overrides};

use crate::fault_with;

const BASE: &str = r#"duration = "10s"

[[link]]
name = "feeder"
rate = "50Mbit"
delay = "10ms"
[link.scheduler]
policy = "strict"
[[link.class]]
name = "voice"
match = [{ dscp = "EF" }]
level = 0
[[link.class]]
name = "rest"
level = 1

[[link]]
name = "beam1"
like = "feeder"
rate = "20Mbit"

[[link]]
name = "return1"
rate = "1Mbit"
[link.scheduler]
policy = "fifo"
[[link.class]]
name = "acks"

[[flow]]
name = "call"
kind = "voice"
codec = "g711"
dscp = "EF"
path = ["feeder", "beam1"]

[[flow]]
name = "load"
kind = "tcp"
class = { feeder = "rest", beam1 = "rest", return1 = "acks" }
path = ["feeder", "beam1"]
back = ["return1"]
"#;

/// The message for the base scenario with one piece of text replaced.
fn fault(from: &str, to: &str) -> String {
    fault_with(BASE, "net.toml", from, to)
}

#[track_caller]
fn is(from: &str, to: &str, wanted: &str) {
    assert_eq!(fault(from, to), format!("net.toml:{wanted}"));
}

#[test]
fn the_base_is_sound() {
    let scenario = parse(BASE, Path::new("net.toml")).unwrap();
    assert_eq!(scenario.network.unwrap().links.len(), 3);
}

#[test]
fn links_that_a_way_names_must_exist() {
    is(
        r#"back = ["return1"]"#,
        r#"back = ["retrun1"]"#,
        r#"42: flow[1].back[0] = "retrun1": no link has this name; did you mean "return1"?"#,
    );
    is(
        r#"path = ["feeder", "beam1"]"#,
        r#"path = ["feeder", "x"]"#,
        r#"35: flow[0].path[1] = "x": no link has this name; there are feeder, beam1, return1"#,
    );
    is(
        r#"path = ["feeder", "beam1"]"#,
        "",
        r#"30: flow[0].path: is missing; list the links that the packets pass, such as path = ["feeder"]"#,
    );
    is(
        r#"path = ["feeder", "beam1"]"#,
        "path = []",
        "35: flow[0].path = []: must name one link at least",
    );
    is(
        r#"path = ["feeder", "beam1"]"#,
        r#"path = "feeder""#,
        r#"35: flow[0].path = "feeder": must be a list, not a string"#,
    );
}

#[test]
fn a_way_has_no_loop() {
    is(
        r#"path = ["feeder", "beam1"]"#,
        r#"path = ["feeder", "beam1", "feeder"]"#,
        r#"35: flow[0].path[2] = "feeder": the way passes this link a second time, a loop; leave one out"#,
    );
}

#[test]
fn a_class_is_there_on_every_link_of_a_way() {
    is(
        "dscp = \"EF\"\npath",
        "class = \"voise\"\npath",
        r#"34: flow[0].class = "voise": no class on link.feeder has this name; did you mean "voice"?; where links call their classes differently, write class = { "feeder" = ..., ... }"#,
    );
    is(
        r#", return1 = "acks" }"#,
        " }",
        r#"40: flow[1].class = { feeder = "rest", beam1 = "rest" }: does not say which class on link.return1; add "return1" = "acks""#,
    );
    is(
        r#", return1 = "acks" }"#,
        r#", return1 = "acks", retrn = "acks" }"#,
        r#"40: flow[1].class.retrn = "acks": the flow passes no link of this name; did you mean "return1"?"#,
    );
    is(
        r#"return1 = "acks" }"#,
        r#"return1 = "ack" }"#,
        r#"40: flow[1].class.return1 = "ack": no class on link.return1 has this name; did you mean "acks"?"#,
    );
    is(
        "dscp = \"EF\"\npath",
        "path",
        r#"30: flow[0].class: is missing; write class = "rest", or dscp = "EF" for the class that matches it on each link"#,
    );
    is(
        "dscp = \"EF\"\npath",
        "dscp = \"EF\"\nclass = \"voice\"\npath",
        r#"34: flow[0].dscp = "EF": class and dscp exclude each other; leave one out"#,
    );
}

#[test]
fn a_code_point_has_a_class_on_every_link() {
    // Two classes without `match`: none of them is the one for the rest.
    is(
        r#"match = [{ dscp = "EF" }]"#,
        "",
        r#"34: flow[0].dscp = "EF": matches no class on link.feeder; add match = [{ dscp = "EF" }] to one of its classes, or leave match out of one, which then takes the rest"#,
    );
    is(
        r#"dscp = "EF"
path"#,
        r#"dscp = "EFF"
path"#,
        r#"34: flow[0].dscp = "EFF": must be a code point: EF, VOICE-ADMIT, AF11 .. AF43, CS0 .. CS7, LE, DF or 0 .. 63"#,
    );
}

#[test]
fn an_acknowledgement_fits_into_the_queues_of_its_way_back() {
    is(
        r#"name = "acks""#,
        "name = \"acks\"\nlimit_bytes = \"95B\"",
        r#"29: link[2].class[0].limit_bytes = "95B": must hold the largest packet of flow load on its way back, 96B on the wire; raise it"#,
    );
    is(
        r#"rate = "1Mbit""#,
        "rate = \"1Mbit\"\noverhead = \"-52B\"",
        "38: flow[1].ack: 52B with link.return1.overhead and link.return1.mpu counts as 0B; it must be 1B or more",
    );
    is(
        "dscp = \"EF\"\npath = [\"feeder\", \"beam1\"]",
        "dscp = \"EF\"\npath = [\"feeder\", \"beam1\"]\nback = [\"return1\"]",
        r#"36: flow[0].back = ["return1"]: is the way of acknowledgements and requests, which voice has not; leave it out"#,
    );
}

#[test]
fn a_link_is_like_another_one_and_not_like_itself() {
    is(
        r#"like = "feeder""#,
        r#"like = "feder""#,
        r#"19: link[1].like = "feder": no link has this name; did you mean "feeder"?"#,
    );
    is(
        r#"name = "feeder""#,
        "name = \"feeder\"\nlike = \"beam1\"",
        r#"5: link[0].like = "beam1": leads back to this link; give the keys in one of the links that are like each other"#,
    );
    is(
        r#"like = "feeder""#,
        r#"like = "beam1""#,
        r#"19: link[1].like = "beam1": leads back to this link; give the keys in one of the links that are like each other"#,
    );
}

#[test]
fn a_fault_of_a_key_that_is_taken_from_another_link_names_its_line() {
    is(
        r#"delay = "10ms""#,
        r#"dealy = "10ms""#,
        r#"6: link[0].dealy = "10ms": unknown key; did you mean delay?"#,
    );
    // Fits the feeder's 50 Mbit/s and not the beam's 20, which has it from there.
    let fault = fault(
        "policy = \"strict\"\n[[link.class]]\nname = \"voice\"\nmatch = [{ dscp = \"EF\" }]\nlevel = 0",
        "policy = \"pss\"\n[[link.class]]\nname = \"voice\"\nmatch = [{ dscp = \"EF\" }]\nlevel = 0\nlow_level = 2\nrate = \"30Mbit\"",
    );
    let place = r#"net.toml:14: link[1].class[0].rate = "30Mbit": "#;
    assert!(fault.starts_with(place), "{fault}");
}

#[test]
fn names_of_links_differ() {
    is(
        r#"name = "beam1""#,
        r#"name = "feeder""#,
        r#"18: link[1].name = "feeder": two links have this name; rename one"#,
    );
    is(
        r#"name = "beam1""#,
        r#"name = """#,
        r#"18: link[1].name = "": must not be empty"#,
    );
    is(
        r#"name = "beam1""#,
        r#"name = "beam\u001b[2J\nall is well""#,
        r#"18: link[1].name = "beam\u001b[2J\nall is well": must be one line without control characters"#,
    );
    is(
        "name = \"beam1\"\n",
        "",
        r#"17: link[1].name: is missing; write name = "feeder""#,
    );
}

#[test]
fn a_link_has_a_scheduler_and_classes_of_its_own() {
    is(
        "[link.scheduler]\npolicy = \"fifo\"\n",
        "",
        r#"22: link[2].scheduler: is missing; write a table [link.scheduler], such as one with policy = "pss""#,
    );
    is(
        "[[link.class]]\nname = \"acks\"\n",
        "",
        "22: link[2].class: is missing; write at least one table [[link.class]]",
    );
    is(
        "[[link.class]]\nname = \"acks\"\n",
        "[link.class]\nname = \"acks\"\n",
        "27: link[2].class: is one table [link.class], and there may be several; write [[link.class]] with two brackets",
    );
}

#[test]
fn the_forms_with_one_link_and_with_several_do_not_mix() {
    is(
        "[[flow]]\nname = \"call\"",
        "[scheduler]\npolicy = \"fifo\"\n[[flow]]\nname = \"call\"",
        "30: scheduler: belongs to a scenario with one [link], and this one has [[link]]; write [link.scheduler] below the [[link]] that it belongs to",
    );
    is(
        "[[flow]]\nname = \"call\"",
        "[[class]]\nname = \"all\"\n[[flow]]\nname = \"call\"",
        "30: class[0]: belongs to a scenario with one [link], and this one has [[link]]; write [[link.class]] below the [[link]] that it belongs to",
    );
    is(
        "[[link]]\nname = \"beam1\"",
        "[link]\nname = \"beam1\"",
        "17: link: is written [link] here and [[link]] in line 3: use one form; [[link]] only for what may be there several times",
    );
    is(
        "[[link]]\nname = \"feeder\"",
        "[[link.class]]\nname = \"early\"\n[[link]]\nname = \"feeder\"",
        "3: link.class: is above the first [[link]], in line 5; write it below the [[link]] that it belongs to",
    );
}

/// A scenario with one link.
const ONE: &str = r#"duration = "1s"
[link]
rate = "1Mbit"
[scheduler]
policy = "fifo"
[[class]]
name = "all"
[[flow]]
class = "all"
kind = "tcp"
"#;

#[track_caller]
fn of_one_is(from: &str, to: &str, wanted: &str) {
    assert!(parse(ONE, Path::new("one.toml")).is_ok());
    let text = ONE.replacen(from, to, 1);
    let fault = parse(&text, Path::new("one.toml")).expect_err(&text);
    assert_eq!(fault.to_string(), format!("one.toml:{wanted}"));
}

#[test]
fn one_link_has_no_keys_of_several() {
    of_one_is(
        "class = \"all\"",
        "class = \"all\"\npath = [\"link\"]",
        r#"10: flow[0].path = ["link"]: is for links with names: write [[link]] with a name, [link.scheduler] and [[link.class]], or leave this out"#,
    );
    of_one_is(
        "class = \"all\"",
        "dscp = \"EF\"",
        r#"9: flow[0].dscp = "EF": is for links with names: write [[link]] with a name, [link.scheduler] and [[link.class]], or leave this out"#,
    );
    of_one_is(
        "rate = \"1Mbit\"",
        "rate = \"1Mbit\"\nname = \"a\"",
        r#"4: link.name = "a": is for several links; write [[link]] with two brackets, or leave this out"#,
    );
    of_one_is(
        "[[class]]",
        "[[link.class]]",
        "6: link.class[0]: [[link.class]] must be below a [[link]] with a name; write [[link]] above it, or [[class]] for one [link]",
    );
    of_one_is(
        "[scheduler]",
        "[link.scheduler]",
        "4: link.scheduler: [link.scheduler] must be below a [[link]] with a name; write [[link]] above it, or [scheduler] for one [link]",
    );
    of_one_is(
        "class = \"all\"",
        "class = { link = \"all\" }",
        r#"9: flow[0].class = { link = "all" }: must be a string, not a table"#,
    );
}

#[test]
fn a_trace_has_no_place_among_several_links() {
    let overrides = Overrides {
        trace: Some("lte.csv".into()),
        ..Overrides::default()
    };
    let fault = parse_with(BASE, Some(Path::new("net.toml")), &overrides).unwrap_err();
    assert!(
        fault.message == "lte.csv cannot take the place of several links' rates; write it as trace of one of them",
        "{fault}"
    );
}

#[test]
fn what_a_packet_counts_names_the_link() {
    is(
        "rate = \"20Mbit\"",
        "rate = \"20Mbit\"\noverhead = \"-200B\"",
        "31: flow[0].header: 200B with link.beam1.overhead and link.beam1.mpu counts as 0B; it must be 1B .. 1048575B",
    );
}

#[test]
fn what_is_simulated_for_one_link_is_refused_among_several() {
    let beam = "rate = \"20Mbit\"";
    let with = |keys: &str| format!("{beam}\n[link.satellite]\n{keys}");
    is(
        beam,
        &with("reorder = \"shared\""),
        "22: link[1].satellite.reorder = \"shared\": is for one [link]: among several, each flow has a buffer of its own; write reorder = \"per_flow\", or one [link]",
    );
    let fixed = "is for one [link]: among several, the path to a satellite has a fixed delay; leave this out and give delay to the [[link]], or write one [link]";
    is(
        beam,
        &with("delays = \"path.csv\""),
        &format!("22: link[1].satellite.delays = \"path.csv\": {fixed}"),
    );
    let shell = "[link.satellite.constellation]\npattern = \"star\"\nplanes = 6\nper_plane = 11";
    is(
        beam,
        &with(shell),
        &format!("22: link[1].satellite.constellation: {fixed}"),
    );
}

#[test]
fn queues_that_hold_too_much_are_those_of_a_link() {
    is(
        "name = \"rest\"",
        "name = \"rest\"\nlimit = \"60000000p\"",
        "9: link[0].class = [[link.class]]: the queues together may hold 120003000 packets, more than 100000000; lower limit",
    );
}

#[test]
fn greedy_sources_have_no_play_out_among_links_with_names() {
    is(
        "kind = \"voice\"\ncodec = \"g711\"",
        "kind = \"greedy\"\nplayout = \"60ms\"",
        "33: flow[0].playout = \"60ms\": is for one [link] if the source is greedy; leave it out, or write kind = \"cbr\" with a rate",
    );
}
