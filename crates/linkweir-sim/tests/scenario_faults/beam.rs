// SPDX-License-Identifier: BSD-3-Clause
//! Faults of `[link.beam]`.

use std::path::Path;

use linkweir_sim::scenario::{self, parse, Overrides};

use crate::{fault, BASE};

/// The message for a link that is a beam with these keys.
fn beam_fault(keys: &str) -> String {
    let table = format!("[link.beam]\n{keys}");
    let text = BASE.replacen("rate = \"20Mbit\"\n", "", 1);
    let text = text.replacen("[scheduler]", &format!("{table}\n[scheduler]"), 1);
    parse(&text, Path::new("geo.toml"))
        .expect_err(&text)
        .to_string()
}

/// What is wrong, and what the message says.
const BEAM: &[(&str, &str)] = &[
    ("", "geo.toml:6: link.beam.symbol_rate: is missing; write symbol_rate = \"50MBd\""),
    (
        "symbol_rate = 50",
        "geo.toml:7: link.beam.symbol_rate = 50: needs a unit: one of GBd, MBd, kBd, Bd, like \"50MBd\"",
    ),
    ("symbol_rate = \"50Bd\"", "link.beam.symbol_rate = \"50Bd\": must be 1kBd .. 10GBd"),
    ("symbol_rate = \"50MBd\"", "link.beam.clear_sky_esn0_db: is missing; write"),
    (
        "symbol_rate = \"50MBd\"\nclear_sky_esn0_db = 70",
        "geo.toml:8: link.beam.clear_sky_esn0_db = 70: must be a number -30 .. 60",
    ),
    (
        "symbol_rate = \"50MBd\"\nclear_sky_esn0_db = [12, 13]",
        "geo.toml:8: link.beam.clear_sky_esn0_db = [12, 13]: has 2 values where there are 3 classes; \
         give one for each or one for all",
    ),
    (
        "symbol_rate = \"50MBd\"\nclear_sky_esn0_db = { min = 12, max = 11 }",
        "link.beam.clear_sky_esn0_db.max = 11: must be a number 12 .. 60",
    ),
    (
        "symbol_rate = \"50MBd\"\nclear_sky_esn0_db = -20",
        "link.beam.clear_sky_esn0_db = -20: leaves no rate in clear sky; raise it, or give link.nominal",
    ),
];

/// Keys added to valid ones, and what the message says.
const WEATHER: &[(&str, &str)] = &[
    ("modcods = \"dvb_s\"", "must be one of dvb_s2, dvb_s2x; did you mean \"dvb_s2\"?"),
    ("margin = 1", "link.beam.margin = 1: unknown key; did you mean margin_db?"),
    ("tick = \"0s\"", "link.beam.tick = \"0s\": must be 1ms .. 3600s"),
    ("rain = {}", "link.beam.rain.m: is missing; write m = -3.9 and sigma = 1.8, or exceeded = "),
    ("rain = { m = 0 }", "link.beam.rain.sigma: is missing; write sigma = 1.8"),
    ("rain = 3", "geo.toml:9: link.beam.rain = 3: must be a table [link.beam.rain]"),
    (
        "rain = { exceeded = [[\"1%\", 3]] }",
        "link.beam.rain.exceeded = [[\"1%\", 3]]: must hold two parts of the time or more",
    ),
    (
        "rain = { exceeded = [[\"1%\", 3], [\"2%\", 4]] }",
        "must hold two parts of the time or more, and more dB for less time",
    ),
    (
        "rain = { exceeded = [[\"10%\", 300], [\"10.00001%\", 0.001]] }",
        "link.beam.rain.exceeded = [[\"10%\", 300], [\"10.00001%\", 0.001]]: gives m = -28364634.",
    ),
    (
        "rain = { exceeded = [[\"1%\", 3.01], [\"5%\", 3]] }",
        ", which must be -20 .. 10, and sigma = 0.0049, which must be 0.01 .. 10; correct a part of the time or its dB",
    ),
    (
        "rain = { exceeded = [[\"1%\", 3], [\"5%\", 1]], probability = \"4%\" }",
        "link.beam.rain.exceeded[1][0] = \"5%\": must be below the probability of rain, 4%",
    ),
    (
        // Computed apart, with Python's NormalDist: 1.9526 %.
        "rain = { exceeded = [[\"1%\", 3], [\"4%\", 1]], probability = \"5%\" }",
        "link.beam.rain.exceeded = [[\"1%\", 3], [\"4%\", 1]]: pair 2: the fitted model exceeds 1 dB in 1.95% of the time instead of 4%, off by more than a factor of 2; leave out pairs near the probability of rain",
    ),
    (
        "rain = { exceeded = [[\"1%\", 3], [\"5%\", 0]] }",
        "link.beam.rain.exceeded[1][1] = 0: must be a number 0.001 .. 300",
    ),
    (
        "rain = { exceeded = [[\"1%\", 3], [\"5%\", 1]], sigma = 1 }",
        "link.beam.rain.sigma = 1: exceeded and sigma exclude each other",
    ),
    (
        "rain = { exceeded = [[\"1%\", 3], [\"5%\", 1]], m = 1 }",
        "link.beam.rain.m = 1: exceeded and m exclude each other",
    ),
    (
        "rain = { m = 0, sigma = 1, start = \"1%\" }",
        "link.beam.rain.start = \"1%\": is the state of the rain that all terminals share; give a correlation above 0",
    ),
    (
        "rain = { m = 0, sigma = 1, correlaton = 0.5 }",
        "link.beam.rain.correlaton = 0.5: unknown key; did you mean correlation?",
    ),
    (
        "rain = { m = 0, sigma = 1 }\nattenuation = \"rain.csv\"",
        "link.beam.attenuation = \"rain.csv\": rain and attenuation exclude each other",
    ),
    (
        "csi_age = \"0s\"",
        "link.beam.csi_age = \"0s\": is only for [link.satellite]: a beam sends each packet at the rate that its tick reported",
    ),
    (
        "attenuation = \"none.csv\"",
        "link.beam.attenuation = \"none.csv\": none.csv: cannot be read",
    ),
    ("attenuation = \"\"", "must be the path of a file"),
];

/// Keys of the link of a beam, and what the message says.
const LINK: &[(&str, &str)] = &[
    (
        "rate = \"20Mbit\"",
        "geo.toml:4: link.rate = \"20Mbit\": a beam's rates are those of its terminals; leave this or [link.beam] out",
    ),
    ("trace = \"a.csv\"", "link.trace = \"a.csv\": a beam's rates are those of its terminals"),
    ("end = \"loop\"", "link.end = \"loop\": a beam's rates are those of its terminals"),
    (
        "satellite = { packet = \"1500B\" }",
        "satellite and beam exclude each other; leave one out",
    ),
    ("follow = true", "link.follow = true: must be left out with a beam"),
    ("ring = 2", "link.ring = 2: must be 1 in front of a beam"),
];

#[test]
fn faults_of_a_beam_name_the_cure() {
    let mut wrong = String::new();
    let sound = "symbol_rate = \"50MBd\"\nclear_sky_esn0_db = 12\n";
    for &(keys, expected) in BEAM {
        let found = beam_fault(keys);
        if !found.contains(expected) {
            wrong.push_str(&format!("{found}\n  not {expected}\n"));
        }
    }
    for &(keys, expected) in WEATHER {
        let found = beam_fault(&format!("{sound}{keys}"));
        if !found.contains(expected) {
            wrong.push_str(&format!("{found}\n  not {expected}\n"));
        }
    }
    let inline = "beam = { symbol_rate = \"50MBd\", clear_sky_esn0_db = 12 }";
    for &(keys, expected) in LINK {
        let found = fault("rate = \"20Mbit\"", &format!("{keys}\n{inline}"));
        if !found.contains(expected) {
            wrong.push_str(&format!("{found}\n  not {expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let text = BASE.replacen("rate = \"20Mbit\"", inline, 1);
    let overrides = Overrides {
        trace: Some("my.csv".into()),
        ..Overrides::default()
    };
    let found = scenario::parse_with(&text, Some(Path::new("geo.toml")), &overrides);
    let found = found.unwrap_err().to_string();
    assert!(
        found.contains("link.beam = ")
            && found
                .contains("the capacity trace my.csv cannot take its place; leave one of them out"),
        "{found}"
    );
}
