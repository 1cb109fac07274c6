// SPDX-License-Identifier: BSD-3-Clause
//! Faults of `[link.satellite]`.

use std::path::Path;

use linkweir_sim::scenario::parse;

use crate::{fault, BASE};

/// What is wrong, and what the message says.
const SATELLITE: &[(&str, &str)] = &[
    (
        "",
        "geo.toml:6: link.satellite.packet: is missing; write packet = \"210B\"",
    ),
    (
        "packet = \"210B\"\nesn0_db = 15",
        "geo.toml:8: link.satellite.esn0_db = 15: must be 7 .. 13 for packets",
    ),
    (
        "packet = \"210B\"\nesn0_db = 6",
        "link.satellite.esn0_db = 6: must be a whole number 7 .. 20",
    ),
    (
        "packet = \"1500B\"\nesn0_db = 7.5",
        "link.satellite.esn0_db = 7.5: must be a whole number 7 .. 20, without a point",
    ),
    (
        "packet = \"210B\"\nfading = \"none.txt\"",
        "link.satellite.fading = \"none.txt\": none.txt: cannot be read",
    ),
    (
        "packet = \"210B\"\nfading = \"f.txt\"\nspeed_kmh = 50",
        "geo.toml:9: link.satellite.speed_kmh = 50: is only for a generated channel; leave this or fading out",
    ),
    (
        "packet = \"210B\"\nenviroment = \"open\"",
        "link.satellite.enviroment = \"open\": unknown key; did you mean environment?",
    ),
    (
        "packet = \"210B\"\nenvironment = \"forest\"",
        "must be one of intermediate_trees, open, suburban, urban",
    ),
    (
        "packet = \"210B\"\nreorder = \"all\"",
        "link.satellite.reorder = \"all\": must be one of none, shared, per_flow",
    ),
    (
        "packet = \"210B\"\ncsi_age = \"late\"",
        "geo.toml:8: link.satellite.csi_age = \"late\": must be \"flight\", or a time like \"0s\" or \"20ms\"",
    ),
    (
        "packet = \"210B\"\ncsi_age = 0",
        "link.satellite.csi_age = 0: must be \"flight\", or a time like \"0s\" or \"20ms\"",
    ),
    (
        "packet = \"210B\"\ncsi_age = \"20\"",
        "link.satellite.csi_age = \"20\": needs a unit",
    ),
    (
        "packet = \"210B\"\ncsi_age = \"3601s\"",
        "link.satellite.csi_age = \"3601s\": must be 0s .. 3600s",
    ),
    (
        "packet = \"210B\"\ncsi_age = \"-1ms\"",
        "link.satellite.csi_age = \"-1ms\": must be 0s .. 3600s",
    ),
    (
        "packet = \"210B\"\ncsi_age = \"0s\"\ncsi_tick = \"20ms\"",
        "geo.toml:9: link.satellite.csi_tick = \"20ms\": is only for csi_age = \"flight\"",
    ),
    (
        "packet = \"210B\"\nreorder_pkts = \"9p\"",
        "geo.toml:8: link.satellite.reorder_pkts = \"9p\": is only for reorder = \"shared\" or",
    ),
    (
        "packet = \"210B\"\nreorder = \"per_flow\"\nreorder_pkts = \"0p\"",
        "link.satellite.reorder_pkts = \"0p\": must be 1p .. 1000000p",
    ),
    (
        "packet = \"210B\"\nreorder = \"shared\"\nreorder_timeout = \"1us\"",
        "link.satellite.reorder_timeout = \"1us\": must be 1ms .. 3600s",
    ),
    (
        "packet = \"210B\"",
        "more than the 210B that link.satellite.packet codes",
    ),
];

#[test]
fn faults_of_a_satellite_name_the_cure() {
    let satellite = |keys: &str| {
        let table = format!("delay = \"250ms\"\n[link.satellite]\n{keys}");
        fault("delay = \"250ms\"", &table)
    };
    for &(keys, expected) in SATELLITE {
        let found = satellite(keys);
        assert!(found.contains(expected), "{found}");
    }
    let ring = fault(
        "delay = \"250ms\"",
        "ring = 4\nsatellite = { packet = \"1500B\" }",
    );
    assert!(
        ring.contains("link.ring = 4: must be 1 in front of a satellite"),
        "{ring}"
    );
    let loss = fault(
        "delay = \"250ms\"",
        "loss = \"1%\"\nsatellite = { packet = \"1500B\" }",
    );
    assert!(
        loss.contains("link.loss = \"1%\": must be left out behind a satellite"),
        "{loss}"
    );
    for (key, message) in [
        (
            "overhead = \"20B\"",
            "link.overhead = \"20B\": must be left out behind a satellite",
        ),
        (
            "mpu = \"400B\"",
            "link.mpu = \"400B\": must be left out behind a satellite",
        ),
        (
            "follow = true",
            "link.follow = true: must be left out behind a satellite",
        ),
    ] {
        let found = fault(
            "delay = \"250ms\"",
            &format!("{key}\nsatellite = {{ packet = \"1500B\" }}"),
        );
        assert!(found.contains(message), "{found}");
    }
    let alone = "duration = \"1s\"\n[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"tauran_pf\"\n[[class]]\nname = \"a\"\n\
                 [[flow]]\nclass = \"a\"\nkind = \"greedy\"\n";
    let found = parse(alone, Path::new("a.toml")).unwrap_err().to_string();
    assert_eq!(
        found,
        "a.toml:5: scheduler.policy = \"tauran_pf\": knows its users by a satellite's channel: add a table [link.satellite]"
    );
}

const SHELL: &str = "packet = \"1500B\"\n[link.satellite.constellation]\nplanes = 6\nper_plane = 11\naltitude_km = 800\n\
     inclination_deg = 86.4\nfrom = { lat_deg = -33.9, lon_deg = 151.2 }\nto = { lat_deg = 40.7, lon_deg = -74.0 }\n";

/// What is wrong, and what the message says.
const DELAYS: &[(&str, &str)] = &[
    (
        "packet = \"1500B\"\nelevation_deg = 45",
        "geo.toml:7: link.satellite.elevation_deg = 45: must be 40, for which perez_fontan has its tables; \
         model = \"itu_p681\" has others",
    ),
    (
        "packet = \"1500B\"\nmodel = \"itu_p681\"",
        "link.satellite.elevation_deg: is missing; with itu_p681 it is one of 20, 30, 45, 60, 70",
    ),
    (
        "packet = \"1500B\"\nmodel = \"itu_p681\"\nelevation_deg = 40",
        "geo.toml:8: link.satellite.elevation_deg = 40: must be one of 20, 30, 45, 60, 70",
    ),
    (
        "packet = \"1500B\"\nmodel = \"itu_p681\"\nelevation_deg = 45\nenvironment = \"urban\"",
        "link.satellite.environment = \"urban\": must be one of rural_wooded",
    ),
    (
        "packet = \"1500B\"\ncarrier_ghz = 12",
        "link.satellite.carrier_ghz = 12: must be a number 1.5 .. 3",
    ),
    (
        "packet = \"1500B\"\ndelays_shift = \"10s\"",
        "geo.toml:7: link.satellite.delays_shift = \"10s\": is only for a satellite with delays or a constellation",
    ),
    (
        "delays_before = \"1s\"\npacket = \"1500B\"\n[link.satellite.constellation]\nplanes = 6\nper_plane = 11\n\
         altitude_km = 800\ninclination_deg = 86.4\nfrom = { lat_deg = 0, lon_deg = 0 }\n\
         to = { lat_deg = 9, lon_deg = 0 }",
        "geo.toml:6: link.satellite.delays_before = \"1s\": is only for flows that are behind; give a delays_shift above 0",
    ),
    (
        "packet = \"1500B\"\ndelays = \"none.csv\"",
        "geo.toml:7: link.satellite.delays = \"none.csv\": none.csv: cannot be read",
    ),
];

#[test]
fn faults_of_delays_and_channels_name_the_cure() {
    let satellite = |keys: &str| {
        let table = format!("[link.satellite]\n{keys}");
        fault("delay = \"250ms\"", &table)
    };
    for &(keys, expected) in DELAYS {
        let found = satellite(keys);
        assert!(found.contains(expected), "{found}");
    }
    let shell = |from: &str, to: &str| {
        assert!(SHELL.contains(from), "{from}");
        satellite(&SHELL.replacen(from, to, 1))
    };
    for (from, to, expected) in [
        ("planes = 6\n", "", "geo.toml:7: link.satellite.constellation.planes: is missing; write planes = 6"),
        ("planes = 6", "planes = 0", "geo.toml:8: link.satellite.constellation.planes = 0: must be a whole number 1 .. 1000"),
        ("planes = 6", "planes = 6\nphasing = 6", "link.satellite.constellation.phasing = 6: must be a whole number 0 .. 5"),
        ("800", "8", "link.satellite.constellation.altitude_km = 8: must be a number 160 .. 50000"),
        ("lat_deg = 40.7", "lat_deg = 140.7", "geo.toml:13: link.satellite.constellation.to.lat_deg = 140.7: must be a number -90 .. 90"),
        ("lat_deg = 40.7, ", "", "geo.toml:13: link.satellite.constellation.to.lat_deg: is missing; write lat_deg = -33.9"),
        ("inclination_deg = 86.4", "min_elevation_deg = 10", "link.satellite.constellation.inclination_deg: is missing; write inclination_deg = 86.4"),
        ("lat_deg = 40.7", "lat_dg = 40.7", "constellation.to.lat_dg = 40.7: unknown key; did you mean lat_deg?"),
        (", lon_deg = -74.0", "", "link.satellite.constellation.to.lon_deg: is missing; write lon_deg = 151.2"),
        ("{ lat_deg = 40.7, lon_deg = -74.0 }", "\"New York\"", "constellation.to = \"New York\": must be a place like { lat_deg = 40.7"),
        ("planes = 6", "planes = 6\nmin_elevation_deg = 80", "at no time of the run do satellites join the two places; lower min_elevation_deg"),
        ("planes = 6", "planes = 6\nspacing_deg = 36", "constellation.spacing_deg = 36: leaves nothing of 180 degrees for the seam between the last of 6 planes and the first; it must be below 36"),
        ("planes = 6", "planes = 6\nspacing_deg = 30\npattern = \"delta\"", "constellation.spacing_deg = 30: is only for a star of two planes or more; leave it out"),
        ("planes = 6\n", "planes = 6\nstep = \"1ms\"\npattern = \"polar\"\n", "must be one of star, delta"),
        ("planes = 6\nper_plane = 11", "planes = 900\nper_plane = 900\nstep = \"100ms\"", "constellation.step = \"100ms\": 810000 satellites at 100 times are more than"),
        ("planes = 6", "plains = 6", "constellation.plains = 6: unknown key; did you mean planes?"),
        ("planes = 6", "planes = 6\nphasings = 1", "constellation.phasings = 1: unknown key; did you mean phasing?"),
        ("packet = \"1500B\"\n", "packet = \"1500B\"\ndelays = \"a.csv\"\n", "link.satellite.delays = \"a.csv\": delays and constellation exclude each other; leave one out"),
    ] {
        let found = shell(from, to);
        assert!(found.contains(expected), "{found}");
    }
    for (key, place) in [
        ("delay", "geo.toml:5: link.delay = "),
        ("return_delay", "geo.toml:5: link.return_delay = "),
    ] {
        let table = format!("{key} = \"250ms\"\n[link.satellite]\n{SHELL}");
        let found = fault("delay = \"250ms\"", &table);
        assert!(
            found.starts_with(place) && found.ends_with("has delays of its own; leave one out"),
            "{found}"
        );
    }
    let table = format!("[link.satellite]\n{SHELL}");
    let text = BASE.replacen("delay = \"250ms\"", &table, 1).replacen(
        "kind = \"greedy\"",
        "kind = \"greedy\"\naccess_delay = \"5ms\"",
        1,
    );
    let found = parse(&text, Path::new("geo.toml")).unwrap_err().to_string();
    assert!(
        found.ends_with(
            "flow[1].access_delay = \"5ms\": link.satellite has delays of its own; leave one out"
        ),
        "{found}"
    );
}
