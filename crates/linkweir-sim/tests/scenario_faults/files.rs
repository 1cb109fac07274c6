// SPDX-License-Identifier: BSD-3-Clause
//! Faults of files of delays and attenuations.

use linkweir_sim::experiment::Weather;
use linkweir_sim::satellite::rain::Attenuation;
use linkweir_sim::scenario::parse;

use crate::BASE;

/// What is wrong, and what the message says.
const DELAYS: &[(&str, &str)] = &[
    (
        "",
        "d.csv: is empty; it must hold a header t_s,to_satellite_s,to_ground_s",
    ),
    (
        "t_s,to_satellite_s,to_ground_s\n",
        "d.csv: has a header but no values",
    ),
    (
        "0,0.07,0.004\n",
        "d.csv:1: unknown column \"0\"; expected a header t_s,to_satellite_s,to_ground_s",
    ),
    (
        "t_s,to_satelite_s,to_ground_s\n0,1,1\n",
        "unknown column \"to_satelite_s\"; did you mean to_satellite_s?",
    ),
    (
        "t_s,to_satellite_s\n0,1\n",
        "d.csv:1: has no column to_ground_s; expected a header",
    ),
    (
        "t_s,t_s,to_satellite_s,to_ground_s\n0,0,1,1\n",
        "d.csv:1: column t_s appears twice",
    ),
    (
        "t_s,to_satellite_s,to_ground_s\n0,70,-1\n",
        "d.csv:2: to_ground_s = \"-1\": must be seconds, 0 .. 3600",
    ),
    (
        "t_s,to_satellite_s,to_ground_s\n0,70ms,1\n",
        "d.csv:2: to_satellite_s = \"70ms\": is not a number",
    ),
    (
        "t_s,to_satellite_s,to_ground_s\n0,nan,1\n",
        "d.csv:2: to_satellite_s = \"nan\": is not a number",
    ),
    (
        "t_s,to_satellite_s,to_ground_s\n1,1,1\n",
        "d.csv:2: t_s = \"1\": the first time must be 0",
    ),
    (
        "t_s,to_satellite_s,to_ground_s\n0,1,1\n5,1,1\n4,1,1\n",
        "d.csv:4: t_s = \"4\": must be later than the line before, 5",
    ),
    (
        "t_s,to_satellite_s,to_ground_s\n0,1\n",
        "d.csv:2: has 2 fields where the header has 3",
    ),
    (
        "# end=stop\nt_s,to_satellite_s,to_ground_s\n0,1,1\n",
        "d.csv: has end=stop, but delays cannot stop: write loop or hold",
    ),
    (
        "# end=loop\nt_s,to_satellite_s,to_ground_s\n0,1,1\n",
        "d.csv: has one line only, so end=loop needs a line # period_s=",
    ),
];

#[test]
fn faults_of_a_file_of_delays_name_the_line() {
    let folder = std::env::temp_dir().join(format!("linkweir-delays-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("d.csv");
    let text = BASE.replacen(
        "delay = \"250ms\"",
        "[link.satellite]\npacket = \"1500B\"\ndelays = \"d.csv\"",
        1,
    );
    for &(content, expected) in DELAYS {
        std::fs::write(&file, content).unwrap();
        let found = parse(&text, &folder.join("geo.toml"))
            .unwrap_err()
            .to_string();
        assert!(
            found.contains(expected),
            "{content:?}\n     got {found}\n  wanted {expected}"
        );
    }
    std::fs::write(&file, "t_s,to_satellite_s,to_ground_s\n0,0.07,0.004\n").unwrap();
    std::fs::write(
        folder.join("t.csv"),
        "t_s,capacity_bps,delay_s\n0,20e6,0.1\n",
    )
    .unwrap();
    let twice = text.replacen("rate = \"20Mbit\"", "trace = \"t.csv\"", 1);
    let found = parse(&twice, &folder.join("geo.toml")).unwrap_err();
    assert_eq!(
        (found.key.as_str(), found.line),
        ("link.satellite", Some(5))
    );
    assert!(
        found.message
            == "has delays of its own, and the trace has a column for them; leave one out",
        "{found}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn faults_of_an_attenuation_file_name_the_line() {
    let folder = std::env::temp_dir().join(format!("linkweir-attenuation-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = BASE.replacen(
        "rate = \"20Mbit\"",
        "beam = { symbol_rate = \"50MBd\", clear_sky_esn0_db = 12, attenuation = \"rain.csv\" }",
        1,
    );
    let read = |content: &str| {
        std::fs::write(folder.join("rain.csv"), content).unwrap();
        parse(&text, &folder.join("geo.toml"))
    };
    for (content, expected) in [
        (
            "",
            "rain.csv: is empty; it must hold a header t_s,attenuation_db",
        ),
        (
            "0,1\n",
            "rain.csv:1: must be a header: t_s,attenuation_db, or t_s and one name per class",
        ),
        ("t_s\n0\n", "rain.csv:1: must be a header"),
        ("t_s,a\n", "rain.csv: has a header but no values"),
        (
            "t_s,a\n0,1,2\n",
            "rain.csv:2: has 3 fields where the header has 2",
        ),
        (
            "t_s,a\n# rain\n1,2\n",
            "rain.csv:3: t_s = \"1\": the first time must be 0",
        ),
        (
            "t_s,a\n0,1\n0,2\n",
            "rain.csv:3: t_s = \"0\": must be later than the line before, 0s",
        ),
        (
            "t_s,a\n0,x\n",
            "rain.csv:2: a = \"x\": is not a number; must be dB, 0 .. 300; a fade is positive",
        ),
        (
            "t_s,a\n0,-1\n",
            "rain.csv:2: a = \"-1\": must be dB, 0 .. 300; a fade is positive",
        ),
        (
            "t_s,a\n0,301\n",
            "rain.csv:2: a = \"301\": must be dB, 0 .. 300",
        ),
        ("t_s,a\n0,nan\n", "rain.csv:2: a = \"nan\": is not a number"),
        (
            "# south\n# end=loop\nt_s,a\n0,1\n",
            "rain.csv:2: end = \"loop\": the last values of this file stay; leave this line out",
        ),
        (
            "t_s,a\n0,1\n# period_s=60\n",
            "rain.csv:3: period_s: the last values of this file stay; leave this line out",
        ),
        (
            "t_s,a,b\n0,1,2\n",
            "link.beam.attenuation = \"rain.csv\": has 2 columns of dB where there are 3 classes",
        ),
    ] {
        let found = read(content).expect_err(content).to_string();
        assert!(found.contains(expected), "{found}\n  not {expected}");
    }
    let each = read("# site=south\n# end=hold\nt_s,a,b,c\n0,1,2,3\n10.5,4,5,6.25\n").unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(each.inputs[0].name, "inputs/rain.csv");
    let beam = each.experiment.link.beam.unwrap();
    let expected =
        Attenuation::new(vec![0, 10_500_000_000], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.25]).unwrap();
    assert_eq!(beam.weather, Weather::Recorded(expected));
}
