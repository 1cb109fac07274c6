// SPDX-License-Identifier: BSD-3-Clause
//! Keys of `[link.satellite]`.

use std::fs;
use std::path::Path;

use linkweir_sim::experiment::{Channel, Delays, End, Outages, Satellite, Signal};
use linkweir_sim::satellite::lms::Lms;
use linkweir_sim::satellite::perez_fontan::Environment;
use linkweir_sim::scenario::{self, parse, Overrides, Scenario};

use crate::{again, steps, S};

const SATELLITE: &str = r#"duration = "2.5s"
[link]
rate = "10Mbit"
[link.satellite]
packet = "210B"
SATELLITE
[scheduler]
policy = "fifo"
[[class]]
name = "a"
[[flow]]
class = "a"
kind = "cbr"
rate = "1Mbit"
packet = "210B"
"#;

fn satellite_of(scenario: &Scenario) -> &Satellite {
    scenario.experiment.link.satellite.as_ref().unwrap()
}

#[test]
fn delays_and_fading_come_from_files() {
    let folder = std::env::temp_dir().join(format!("linkweir-satellite-{}", std::process::id()));
    fs::create_dir_all(folder.join("other")).unwrap();
    fs::write(
        folder.join("day.csv"),
        "# period_s=20\n# end=loop\nto_ground_s,t_s,to_satellite_s\n0.004,0,0.069\n0.005,7,0.08\n0.006,7,0.075\n",
    )
    .unwrap();
    fs::write(folder.join("other/day.csv"), "0,-1\n0.001,-2\n").unwrap();
    let keys = "delays = \"day.csv\"\ndelays_start = \"1min\"\ndelays_shift = \"10s\"\nfading = \"other/day.csv\"";
    let text = SATELLITE.replace("SATELLITE", keys);
    let scenario = parse(&text, &folder.join("x.toml")).unwrap_or_else(|fault| panic!("{fault}"));
    let end = End::Loop { period_ns: 20 * S };
    let expected = Delays {
        to_satellite_s: steps(&[(0, 0.069), (7 * S, 0.075)], end),
        to_ground_s: steps(&[(0, 0.004), (7 * S, 0.006)], end),
        start_ns: 60 * S,
        shift_ns: 10 * S,
        before_s: 0.069,
        outages: Outages::default(),
    };
    assert_eq!(satellite_of(&scenario).delays, Some(expected));
    // Files of one name are kept apart.
    let names: Vec<&str> = scenario.inputs.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["inputs/day.csv", "inputs/2-day.csv"]);
    assert!(scenario.inputs[0].bytes != scenario.inputs[1].bytes);
    let second = again(&scenario);
    assert_eq!(scenario.experiment, second.experiment);
    assert_eq!(scenario.resolved_toml, second.resolved_toml);

    fs::create_dir_all(folder.join("third")).unwrap();
    fs::write(folder.join("third/day.csv"), "t_s,capacity_bps\n0,1e6\n").unwrap();
    let overrides = Overrides {
        trace: Some(folder.join("third/day.csv")),
        ..Overrides::default()
    };
    let replaced = scenario::parse_with(&text, Some(&folder.join("x.toml")), &overrides).unwrap();
    let names: Vec<&str> = replaced.inputs.iter().map(|i| i.name.as_str()).collect();
    let expected = ["inputs/day.csv", "inputs/2-day.csv", "inputs/3-day.csv"];
    assert_eq!(names, expected);
    assert_eq!(again(&replaced).experiment, replaced.experiment);

    let text = text.replace("\"10s\"", "\"10s\"\ndelays_before = \"100ms\"");
    let scenario = parse(&text, &folder.join("x.toml")).unwrap();
    let delays = satellite_of(&scenario).delays.as_ref().unwrap();
    assert_eq!(delays.before_s, 0.1);

    fs::write(folder.join("other/day.csv"), b"0,-1\n1,\xff\n").unwrap();
    let found = parse(&text, &folder.join("x.toml")).unwrap_err();
    assert!(
        found
            .to_string()
            .ends_with("day.csv:2: is not text (UTF-8)"),
        "{found}"
    );
    fs::remove_dir_all(folder).unwrap();
}

/// A knowledge that arrives with reports is written as that, and one of a fixed age has no tick.
#[test]
fn knowledge_of_the_channel_is_reported_or_has_an_age() {
    for (keys, age_ns, lines) in [
        ("", None, "csi_tick = \"10ms\"\ncsi_age = \"flight\"\n"),
        (
            "csi_age = \"flight\"\ncsi_tick = \"20ms\"",
            None,
            "csi_tick = \"20ms\"\ncsi_age = \"flight\"\n",
        ),
        (
            "csi_age = \"0s\"",
            Some(0),
            "# csi_tick: the scheduler knows the channels whenever it chooses\ncsi_age = \"0s\"\n",
        ),
        (
            "csi_age = \"1.5ms\"",
            Some(1_500_000),
            "csi_age = \"1.5ms\"\n",
        ),
    ] {
        let text = SATELLITE.replace("SATELLITE", keys);
        let scenario = parse(&text, Path::new("x.toml")).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(satellite_of(&scenario).csi_age_ns, age_ns);
        let resolved = &scenario.resolved_toml;
        assert!(resolved.contains(lines), "{resolved}");
        assert_eq!(scenario.experiment, again(&scenario).experiment);
    }
}

#[test]
fn a_constellation_makes_delays() {
    let table = "[link.satellite.constellation]\nplanes = 6\nper_plane = 11\nphasing = 2\naltitude_km = 800\n\
                 inclination_deg = 86.4\nmin_elevation_deg = 8.2\nfrom = { lat_deg = -33.87, lon_deg = 151.21 }\n\
                 to = { lat_deg = 40.71, lon_deg = -74.01 }";
    let read = |keys: &str| {
        let text = SATELLITE.replace("SATELLITE", &format!("{keys}\n{table}"));
        let scenario = parse(&text, Path::new("x.toml")).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(scenario.experiment, again(&scenario).experiment);
        satellite_of(&scenario).delays.clone().unwrap()
    };
    let points = |signal: &Signal| match signal {
        Signal::Steps {
            points,
            end: End::Hold,
        } => points.to_vec(),
        other => panic!("{other:?}"),
    };
    // As another program has them, see the constellation's own tests.
    let delays = read("delays_start = \"1234s\"");
    let (up, down) = (points(&delays.to_satellite_s), points(&delays.to_ground_s));
    let times: Vec<u64> = up.iter().map(|point| point.0).collect();
    assert_eq!(times, [0, 1235 * S, 1236 * S]);
    assert!((up[0].1 - 77.590049e-3).abs() < 2e-9 && (down[0].1 - 5.410433e-3).abs() < 2e-9);
    assert_eq!((delays.start_ns, delays.before_s), (1234 * S, up[0].1));
    // Flows that are behind need what was before.
    let delays = read("delays_start = \"1234s\"\ndelays_shift = \"1s\"");
    let all = points(&delays.to_satellite_s);
    assert_eq!(
        (all.len(), all[1234], all[1236]),
        (1237, (1234 * S, up[0].1), up[2])
    );
    assert!((all[0].1 - 77.698939e-3).abs() < 2e-9);
}

/// Where 66 satellites leave gaps and where they leave none was computed apart, with vectors of numpy.
#[test]
fn a_time_without_a_path_is_an_outage_that_a_narrow_seam_avoids() {
    let read = |keys: &str, shell: &str| {
        let text = SATELLITE.replace("2.5s", "30s").replace(
            "SATELLITE",
            &format!(
                "{keys}\n[link.satellite.constellation]\nplanes = 6\nper_plane = 11\nphasing = 3\naltitude_km = 800\n\
                 inclination_deg = 86.4\nmin_elevation_deg = 8.2\nfrom = {{ lat_deg = -33.87, lon_deg = 151.21 }}\n\
                 to = {{ lat_deg = 40.71, lon_deg = -74.01 }}\n{shell}"
            ),
        );
        let scenario = parse(&text, Path::new("x.toml")).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(scenario.experiment.duration_ns, 30 * S);
        assert_eq!(scenario.experiment, again(&scenario).experiment);
        scenario
    };
    let outages = |scenario: &Scenario| {
        let delays = satellite_of(scenario).delays.as_ref().unwrap();
        delays.outages.to_vec()
    };
    // From 2723 s until 2733 s New York sees no satellite.
    for keys in [
        "delays_start = \"2715s\"",
        "delays_start = \"2715s\"\ndelays_shift = \"1s\"",
    ] {
        let scenario = read(keys, "");
        assert_eq!(outages(&scenario), [(8 * S, 18 * S)]);
        let note = "link.satellite.constellation: no satellites join the two places for 10s of 30s, from 8s to 18s; the link is down then. Lower min_elevation_deg or take more satellites to avoid it";
        assert_eq!(scenario.notes, [note]);
        assert!(scenario.resolved_toml.contains(&format!("\n# {note}\n")));
    }
    // The run begins in an outage; the delays are those of its end.
    let scenario = read("delays_start = \"2725s\"", "");
    assert_eq!(outages(&scenario), [(0, 8 * S)]);
    let delays = satellite_of(&scenario).delays.as_ref().unwrap();
    assert!(
        matches!(&delays.to_ground_s, Signal::Steps { points, .. } if points[0].0 == 0 && points[1].0 == 2734 * S)
    );
    // A step that is too long does not see it.
    let scenario = read("delays_start = \"2700s\"", "step = \"30s\"");
    assert_eq!((outages(&scenario), scenario.notes.len()), (vec![], 0));
    // Iridium's planes are 31.6 degrees apart and leave 22 for the seam.
    for start in ["2715s", "3290s", "3860s"] {
        let keys = format!("delays_start = \"{start}\"");
        assert!(!outages(&read(&keys, "")).is_empty());
        let scenario = read(&keys, "spacing_deg = 31.6");
        assert_eq!((outages(&scenario), scenario.notes.len()), (vec![], 0));
    }
}

#[test]
fn channels_are_those_of_their_models() {
    let lms = |keys: &str| {
        let text = SATELLITE.replace("SATELLITE", keys);
        let scenario = parse(&text, Path::new("x.toml")).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(scenario.experiment, again(&scenario).experiment);
        match &satellite_of(&scenario).channel {
            Channel::Drive { lms, .. } => (**lms).clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(lms(""), Lms::new(Environment::IntermediateTrees));
    let wooded = Lms {
        carrier_hz: 1.6e9,
        speed_m_s: 10.0,
        ..Lms::rural_wooded(60).unwrap()
    };
    let keys = "model = \"itu_p681\"\nelevation_deg = 60\ncarrier_ghz = 1.6\nspeed_kmh = 36";
    assert_eq!(lms(keys), wooded);
    assert_eq!(wooded.elevation_deg, 60.0);
}
