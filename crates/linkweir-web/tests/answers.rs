// SPDX-License-Identifier: BSD-3-Clause
//! What a page gets for its requests.

use std::collections::BTreeMap;

use linkweir_web::{answer, parts};

const SCENARIO: &str = r#"duration = "10s"
[link]
rate = { steps = [["0s", "20Mbit"], ["4s", "3Mbit"], ["6s", "20Mbit"]] }
nominal = "20Mbit"
[scheduler]
policy = "pss"
[[class]]
name = "af"
level = 0
low_level = 2
rate = "5Mbit"
[[class]]
name = "rest"
level = 1
[[flow]]
class = "af"
kind = "greedy"
[[flow]]
class = "rest"
kind = "greedy"
"#;

fn asked(request: &[&str]) -> BTreeMap<String, String> {
    stopped(request, &mut |_| true)
}

fn stopped(request: &[&str], go_on: &mut dyn FnMut(f64) -> bool) -> BTreeMap<String, String> {
    let mut bytes = Vec::new();
    for part in request {
        parts::add(&mut bytes, part.as_bytes());
    }
    let answer = answer(&bytes, go_on);
    let found = parts::read(&answer).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    found
        .chunks(2)
        .map(|pair| (text(pair[0]), text(pair[1])))
        .collect()
}

#[test]
fn a_run_has_numbers_and_charts() {
    let found = asked(&["scenario", "one.toml", SCENARIO, "want", "charts"]);
    assert_eq!(found["text"], SCENARIO);
    assert_eq!(found["promised"], "{\"af\":5000000}");
    assert!(
        found["classes"].starts_with("{\"class\":[\"af\",\"rest\"],"),
        "{}",
        found["classes"]
    );
    assert!(
        found["outcome"].starts_with("{\"complete\":true,\"simulated_s\":10,"),
        "{}",
        found["outcome"]
    );
    assert!(found["charts"].contains("\"panels\":[{\"name\":\"rates\","));
    assert!(!found.contains_key("table") && !found.contains_key("fault"));
}

#[test]
fn a_line_has_the_points_that_are_asked_for() {
    // ten intervals of 1 s, two in a point
    let asked_for = |points| {
        asked(&[
            "scenario", "one.toml", SCENARIO, "points", points, "want", "charts",
        ])
    };
    let found = asked_for("5");
    assert!(
        found["charts"].contains("\"x\":[0,2,4,6,8"),
        "{}",
        &found["charts"][..600]
    );
    assert!(asked_for("0")["fault"].contains("points is no number from 1"));
}

#[test]
fn charts_have_the_panels_that_are_asked_for() {
    let bytes = |more: &[&str]| {
        let mut request = Vec::new();
        for part in ["scenario", "one.toml", SCENARIO].iter().chain(more) {
            parts::add(&mut request, part.as_bytes());
        }
        answer(&request, &mut |_| true)
    };
    let panels = |names: &[&str]| -> Vec<String> {
        let named = names.iter().flat_map(|name| ["panel", name]);
        let request: Vec<&str> = ["scenario", "one.toml", SCENARIO, "want", "charts"]
            .into_iter()
            .chain(named)
            .collect();
        let found = asked(&request);
        let panels = found["charts"].split("{\"name\":").skip(1);
        let ended = panels.map(|panel| panel.trim_end_matches([',', ']', '}']).to_owned());
        ended.collect()
    };
    let all = panels(&[]);
    let name = |panel: &String| {
        panel
            .trim_start_matches('"')
            .split('"')
            .next()
            .unwrap()
            .to_owned()
    };
    let every: Vec<String> = all.iter().map(name).collect();
    let each = every.iter().map(|name| vec![name.as_str()]);
    for names in each.chain([vec!["rates", "levels-credit_bits"], vec!["delays", "drops"]]) {
        let wanted: Vec<&String> = all
            .iter()
            .filter(|panel| {
                let mut names = names.iter();
                names.any(|name| panel.starts_with(&format!("\"{name}\"")))
            })
            .collect();
        assert_eq!(wanted.len(), names.len());
        assert_eq!(panels(&names).iter().collect::<Vec<_>>(), wanted);
    }
    // they change nothing else
    let tables = |more: &[&str]| -> Vec<Vec<u8>> {
        let answer = bytes(&[&["want", "tables", "want", "charts"][..], more].concat());
        let found = parts::read(&answer).unwrap();
        let tables = found.chunks(2).filter(|pair| pair[0] != b"charts");
        tables.map(<[&[u8]]>::concat).collect()
    };
    assert_eq!(tables(&["panel", "rates"]), tables(&[]));
}

#[test]
fn keys_are_changed_through_the_parser() {
    let found = asked(&[
        "scenario",
        "one.toml",
        SCENARIO,
        "key",
        "class.af.rate",
        "\"2Mbit\"",
    ]);
    assert_eq!(found["text"], SCENARIO.replace("5Mbit", "2Mbit"));
    assert_eq!(found["promised"], "{\"af\":2000000}");
}

#[test]
fn a_fault_has_line_and_key() {
    let found = asked(&[
        "scenario",
        "one.toml",
        SCENARIO,
        "key",
        "class.af.rate",
        "\"2\"",
    ]);
    let sentence = "{\"sentence\":\"one.toml:11: class[0].rate = \\\"2\\\": needs a unit";
    assert!(found["fault"].starts_with(sentence), "{}", found["fault"]);
    assert!(
        found["fault"].ends_with("\"line\":11,\"key\":\"class[0].rate\"}"),
        "{}",
        found["fault"]
    );
    assert!(!found.contains_key("outcome"));
}

#[test]
fn policies_of_the_users_own_are_refused_before_their_files_are_read() {
    for policy in ["{ c = \"mine.c\" }", "{ python = \"mine.py:Mine\" }"] {
        let found = asked(&[
            "scenario",
            "one.toml",
            SCENARIO,
            "key",
            "scheduler.policy",
            policy,
        ]);
        let fault = &found["fault"];
        assert!(
            fault.contains("a policy of your own does not run in a browser"),
            "{fault}"
        );
        assert!(
            fault.contains("\"line\":6,\"key\":\"scheduler.policy\""),
            "{fault}"
        );
    }
}

#[test]
fn files_come_with_the_request() {
    let text = SCENARIO.replace(
        "rate = { steps = [[\"0s\", \"20Mbit\"], [\"4s\", \"3Mbit\"], [\"6s\", \"20Mbit\"]] }",
        "trace = \"traces/lte.csv\"",
    );
    let scenario = ["scenario", "own/one.toml", &text];
    let found = asked(&scenario);
    let fault = &found["fault"];
    assert!(
        fault.contains("own/traces/lte.csv: is not among the files of this page"),
        "{fault}"
    );
    let file = [
        "file",
        "own/traces/lte.csv",
        "t_s,capacity_bps\n0,8000000\n10,8000000\n",
    ];
    let found = asked(&[&scenario[..], &file[..]].concat());
    assert!(found.contains_key("outcome"), "{:?}", found.get("fault"));
    let trace = [
        "trace",
        "mine.csv",
        "t_s,capacity_bps\n0,8000000\n10,8000000\n",
    ];
    let found = asked(&[&["scenario", "one.toml", SCENARIO], &trace[..]].concat());
    assert!(found.contains_key("outcome"), "{:?}", found.get("fault"));
}

#[test]
fn a_run_is_stopped() {
    let long = SCENARIO.replace("\"10s\"", "\"10000s\"");
    let mut last_s = 0.0;
    let found = stopped(
        &["scenario", "one.toml", &long, "want", "charts"],
        &mut |simulated_s| {
            last_s = simulated_s;
            simulated_s < 50.0
        },
    );
    assert!(
        found["outcome"].starts_with("{\"complete\":false,"),
        "{}",
        found["outcome"]
    );
    assert!((50.0..10_000.0).contains(&last_s), "{last_s}");
    assert!(found.contains_key("charts"));
}

#[test]
fn tables_are_handed_out_by_column() {
    let mut request = Vec::new();
    for part in ["scenario", "one.toml", SCENARIO, "want", "tables"] {
        parts::add(&mut request, part.as_bytes());
    }
    let answer = answer(&request, &mut |_| true);
    let found = parts::read(&answer).unwrap();
    let tables = found.chunks(2).filter(|pair| pair[0] == b"table");
    let classes = tables
        .map(|pair| parts::read(pair[1]).unwrap())
        .find(|table| table[0] == b"classes")
        .unwrap();
    assert_eq!(classes[1..3], [&b"class"[..], b"name"]);
    assert_eq!(classes[3], [0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(parts::read(classes[5]).unwrap(), [&b"af"[..], b"rest"]);
}

#[test]
fn requests_that_lack_something_are_refused() {
    for (request, sentence) in [
        (&["scenario", "one.toml"][..], "the request is cut off"),
        (
            &["want", "all"],
            "the request has an unknown wish \\\"all\\\"",
        ),
        (&["song"], "the request has an unknown part \\\"song\\\""),
    ] {
        let found = asked(request);
        assert_eq!(
            found["fault"],
            format!("{{\"sentence\":\"{sentence}\",\"line\":null,\"key\":\"\"}}")
        );
    }
}

#[test]
fn classes_whose_flows_send_at_rates_of_their_own_are_named() {
    let scenario = ["scenario", "one.toml", SCENARIO];
    let found = asked(&scenario);
    assert_eq!(found["open_loop"], "[]");
    let text = SCENARIO.replacen("\"greedy\"", "\"cbr\"\nrate = \"1Mbit\"", 1);
    let found = asked(&["scenario", "one.toml", &text]);
    assert_eq!(found["open_loop"], "[\"af\"]", "{:?}", found.get("fault"));
}

#[test]
fn a_network_has_promises_and_charts_by_link() {
    let network = r#"duration = "2s"
warmup = "500ms"
[[link]]
name = "up"
rate = "10Mbit"
[link.scheduler]
policy = "pss"
[[link.class]]
name = "af"
level = 0
low_level = 2
rate = "2Mbit"
[[link.class]]
name = "rest"
level = 1
[[link]]
name = "down"
rate = "30Mbit"
[link.scheduler]
policy = "pss"
[[link.class]]
name = "af"
level = 0
low_level = 2
rate = "3Mbit"
[[link.class]]
name = "rest"
level = 1
[[flow]]
class = "af"
kind = "greedy"
path = ["up"]
"#;
    let found = asked(&["scenario", "net.toml", network, "want", "charts"]);
    assert_eq!(
        found.get("promised").map(String::as_str),
        Some("{\"up: af\":2000000,\"down: af\":3000000}"),
        "{:?}",
        found.get("fault")
    );
    assert!(
        found["outcome"].contains(",\"simulated_s\":2,\"warmup_s\":0.5,"),
        "{}",
        found["outcome"]
    );
    let classes = &found["classes"];
    assert!(
        classes.contains("\"link\":[\"up\",\"up\",\"down\",\"down\"]"),
        "{classes}"
    );
    let charts = &found["charts"];
    assert!(
        charts.contains("\"links\":[{\"name\":\"up\",\"classes\":[\"af\",\"rest\"],"),
        "{charts}"
    );
    assert!(
        charts.contains("{\"name\":\"down\",\"classes\":[\"af\",\"rest\"],"),
        "{charts}"
    );
}

#[test]
fn knobs_are_those_of_the_policys_tables() {
    let found = asked(&["scenario", "one.toml", SCENARIO, "want", "knobs"]);
    let memory = found["knobs"]
        .split('{')
        .find(|knob| knob.contains("class.af.memory"));
    let memory = memory.unwrap();
    assert!(
        memory.contains("\"table\":\"class af\",\"name\":\"memory\""),
        "{memory}"
    );
    assert!(memory.contains("\"stops\":[\"\\\"0s\\\"\","), "{memory}");
    assert!(memory.contains("\"\\\"10s\\\"\"]"), "{memory}"); // the duration
    assert!(!asked(&["scenario", "one.toml", SCENARIO]).contains_key("knobs"));
}

#[test]
fn classes_that_sent_most_come_first_in_charts() {
    let classes: Vec<String> = (0..9).map(|n| format!("c{n}")).collect();
    let tables = classes.iter().map(|name| {
        format!("[[class]]\nname = \"{name}\"\n[[flow]]\nclass = \"{name}\"\nkind = \"cbr\"\nrate = \"1Mbit\"\n")
    });
    let text = format!(
        "duration = \"1s\"\n[link]\nrate = \"20Mbit\"\n[scheduler]\npolicy = \"fifo\"\n{}",
        tables.collect::<String>()
    );
    let found = asked(&[
        "scenario", "one.toml", &text, "want", "charts", "sent", "c8", "2", "sent", "c3", "1",
    ]);
    assert!(
        found["charts"].contains("\"classes\":[\"c8\",\"c3\",\"c0\","),
        "{}",
        found["charts"]
    );
    let found = asked(&["scenario", "one.toml", &text, "sent", "c8", "many"]);
    assert!(found["fault"].contains("is no number"));
}
