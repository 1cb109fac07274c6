// SPDX-License-Identifier: BSD-3-Clause
//! Keys of `[link.beam]`.

use std::path::Path;

use linkweir_sim::experiment::{Beam, Capacity, ClearSky, Signal, Weather};
use linkweir_sim::satellite::modcod::{Adaptation, DVB_S2, DVB_S2X};
use linkweir_sim::satellite::rain::Rain;
use linkweir_sim::scenario::parse;

use crate::{again, S};

#[test]
fn every_key_of_a_beam_arrives_in_the_experiment() {
    let text = |beam: &str| {
        format!(
            "duration = \"10s\"\nseed = 7\n[link]\ndelay = \"250ms\"\n[link.beam]\nsymbol_rate = \"12.5MBd\"\n{beam}\n\
             [scheduler]\npolicy = \"rr\"\n[[class]]\nname = \"a\"\ncount = 3\n[[flow]]\nclass = \"a\"\nkind = \"greedy\"\n"
        )
    };
    let read = |beam: &str| {
        let scenario = parse(&text(beam), Path::new("x.toml")).unwrap_or_else(|f| panic!("{f}"));
        let second = again(&scenario);
        assert_eq!(scenario.experiment.link, second.experiment.link, "{beam}");
        assert_eq!(scenario.resolved_toml, second.resolved_toml, "{beam}");
        scenario.experiment.link
    };
    let plain = read("clear_sky_esn0_db = 10.5");
    assert_eq!(
        plain.beam,
        Some(Beam {
            symbol_rate_bd: 12.5e6,
            clear_sky: ClearSky::Same(10.5),
            adaptation: Adaptation::new(DVB_S2, 1.0, 0.5),
            tick_ns: S / 10,
            weather: Weather::Clear,
            seed: 7,
        })
    );
    // 9.5 dB are left: 16APSK 2/3. What may come at most is 32APSK 9/10.
    assert_eq!(plain.nominal_bps, 32_965_013);
    assert_eq!(
        plain.capacity,
        Capacity::Rate(Signal::Constant(12.5e6 * 4.453027))
    );
    let full = read(
        "clear_sky_esn0_db = { min = 8, max = 14 }\nmodcods = \"dvb_s2x\"\nmargin_db = 2\nhysteresis_db = 0.25\n\
         tick = \"20ms\"\nchannel_seed = 3\nrain = { m = -1, sigma = 1.25, probability = \"5%\", correlation = 0.5, \
         correlation_time = \"1h\", start = 0.001 }",
    );
    let rain = Rain {
        m: -1.0,
        sigma: 1.25,
        probability: 0.05,
        correlation_time_s: 3600.0,
        correlation: 0.5,
        start: Some(0.001),
    };
    assert_eq!(
        full.beam,
        Some(Beam {
            symbol_rate_bd: 12.5e6,
            clear_sky: ClearSky::Between(8.0, 14.0),
            adaptation: Adaptation::new(DVB_S2.into_iter().chain(DVB_S2X), 2.0, 0.25),
            tick_ns: S / 50,
            weather: Weather::Rain(rain.clone()),
            seed: 3,
        })
    );
    // 11 - 2 dB in the middle: 16APSK 2/3 needs 8.97.
    assert_eq!(full.nominal_bps, 32_965_013);
    let each = read(
        "clear_sky_esn0_db = [8, 9.5, 10]\nrain = { exceeded = [[\"0.1%\", 4.770342718694], [0.01, 1.206141200677]] }",
    );
    let beam = each.beam.unwrap();
    assert_eq!(beam.clear_sky, ClearSky::Each([8.0, 9.5, 10.0].into()));
    let Weather::Rain(fitted) = beam.weather else {
        panic!("it rains");
    };
    // exp(-4 + 1.8 x) goes through both points.
    assert!((fitted.m + 4.0).abs() < 1e-9 && (fitted.sigma - 1.8).abs() < 1e-9);
    assert_eq!(
        (fitted.probability, fitted.correlation, fitted.start),
        (1.0, 0.0, None)
    );
    assert_eq!(fitted.correlation_time_s, 5000.0);
}

/// Computed apart, with Python's NormalDist.
#[test]
fn rain_tells_by_how_much_its_model_misses_what_it_was_fitted_to() {
    let notes = |rain: &str| {
        let text = format!(
            "duration = \"10s\"\n[link.beam]\nsymbol_rate = \"1MBd\"\nclear_sky_esn0_db = 10\nrain = {{ {rain} }}\n\
             [scheduler]\npolicy = \"rr\"\n[[class]]\nname = \"a\"\n[[flow]]\nclass = \"a\"\nkind = \"greedy\"\n"
        );
        let scenario = parse(&text, Path::new("x.toml")).unwrap_or_else(|f| panic!("{f}"));
        assert_eq!(again(&scenario).notes, scenario.notes);
        for note in &scenario.notes {
            assert!(scenario.resolved_toml.contains(&format!("\n# {note}\n")));
        }
        scenario.notes
    };
    let pairs = "exceeded = [[\"0.01%\", 14.5], [\"1%\", 1.2]]";
    assert_eq!(
        notes(&format!("{pairs}, probability = \"5%\"")),
        ["link.beam.rain.exceeded: the fitted model exceeds 14.5 dB in 0.00948% of the time instead of 0.01%, 1.2 dB in 0.674% of the time instead of 1%. Raise probability, or give m and sigma, to come nearer"]
    );
    // Where it always rains there is no offset, and two pairs are met.
    assert!(notes(pairs).is_empty());
    // More need not lie on one curve, however far they are from it, and probability is no cure.
    for apart in [
        "exceeded = [[\"0.01%\", 14.487], [\"0.1%\", 8], [\"1%\", 1.2]]",
        "exceeded = [[\"0.01%\", 20], [\"0.1%\", 12], [\"1%\", 2], [\"5%\", 0.2]]",
    ] {
        let [note] = &notes(apart)[..] else {
            panic!("{apart}");
        };
        let cure = ". The pairs do not lie on one log-normal curve; give two pairs, or m and sigma";
        assert!(note.ends_with(cure), "{note}");
    }
    assert!(notes("m = -4, sigma = 1.8, probability = \"5%\"").is_empty());
}
