// SPDX-License-Identifier: BSD-3-Clause
//! Scenarios become the experiment they say, and their resolved form is the same experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use linkweir_sim::experiment::{
    Beam, Capacity, Channel, ClearSky, Delays, End, Lengths, Outages, Satellite, Signal, Sizes,
    Traffic, Weather,
};
use linkweir_sim::satellite::lms::Lms;
use linkweir_sim::satellite::modcod::{Adaptation, DVB_S2, DVB_S2X};
use linkweir_sim::satellite::perez_fontan::Environment;
use linkweir_sim::satellite::rain::Rain;
use linkweir_sim::scenario::{
    self, parse, parse_trace, Format, Hints, Overrides, Scenario, TraceEnd,
};
use linkweir_sim::tcp;

const S: u64 = 1_000_000_000;

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    files
}

/// Reads the resolved form as a run directory holds it.
fn again(scenario: &Scenario) -> Scenario {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("linkweir-resolved-{}-{number}", std::process::id()));
    fs::create_dir_all(folder.join("inputs")).unwrap();
    for input in &scenario.inputs {
        fs::write(folder.join(&input.name), &input.bytes).unwrap();
    }
    let file = folder.join("scenario.toml");
    fs::write(&file, &scenario.resolved_toml).unwrap();
    let read = scenario::load(&file, &Overrides::default()).unwrap();
    fs::remove_dir_all(folder).unwrap();
    read
}

#[test]
fn shipped_scenarios_resolve_to_themselves() {
    for file in shipped() {
        let scenario =
            scenario::load(&file, &Overrides::default()).unwrap_or_else(|fault| panic!("{fault}"));
        let second = again(&scenario);
        assert_eq!(scenario.experiment, second.experiment, "{}", file.display());
        assert_eq!(
            scenario.resolved_toml,
            second.resolved_toml,
            "{}",
            file.display()
        );
    }
}

const EVERYTHING: &str = r#"
name = "all kinds \"quoted\""
duration = "1min"
warmup = "0.5s"
interval = "250ms"
seed = 0xff
[link]
rate = { mean = "20Mbit", amplitude = 0.3, period = "15s", phase = 1.5 }
nominal = "18.5Mbit"
follow = true
delay = { steps = [["0s", "10ms"], ["4s", "20ms"]], end = "stop", at = "1h" }
return_delay = "1.5us"
loss = { lines = [["0s", 0.0], ["10s", "1%"]] }
ring = 4
overhead = "-4B"
mpu = "64B"
[scheduler]
policy = "pss"
sat = "paper"
[[class]]
name = "a"
level = 5
limit_bytes = "1MiB"
[[class]]
name = "b"
level = 1
low_level = 7
share = "33.3333%"
lr = "12kbit"
lm = "60kbit"
[[flow]]
name = "v"
class = "a"
kind = "cbr"
rate = { steps = [["0s", "1Mbit"], ["2s", "0bit"]], end = "loop", period = "3s" }
jitter = 0.25
packet = { sizes = ["40B", "1.5kB"], weights = [1, 2.5] }
[[flow]]
class = "a"
kind = "poisson"
rate = "1.000001Mbit"
packet = { min = "64B", max = "1500B" }
start = "1s"
stop = "2s"
count = 3
stagger = "100ms"
[[flow]]
class = "a"
kind = "onoff"
rate = "64kbit"
on = "500ms"
off = "50ms"
lengths = "pareto"
shape = 1.7
access_delay = "3ms"
[[flow]]
class = "b"
kind = "tcp"
cc = "newreno"
profile = "ns2"
mss = "1000B"
window = "500p"
initial_window = "4p"
bytes = "10MB"
delayed_ack = true
[[flow]]
class = "b"
kind = "greedy"
backlog = "7p"
"#;

#[test]
fn every_key_arrives_in_the_experiment() {
    let scenario = parse(EVERYTHING, Path::new("x.toml")).unwrap_or_else(|fault| panic!("{fault}"));
    let e = &scenario.experiment;
    assert_eq!(e.name, "all kinds \"quoted\"");
    assert_eq!(
        (e.duration_ns, e.warmup_ns, e.interval_ns, e.seed),
        (60 * S, S / 2, S / 4, 255)
    );
    let link = &e.link;
    let cosine = Signal::Cosine {
        mean: 20e6,
        amplitude: 0.3,
        period_ns: 15 * S,
        phase_rad: 1.5,
    };
    assert_eq!(link.capacity, Capacity::Rate(cosine));
    assert_eq!(
        (link.nominal_bps, link.follow, link.ring),
        (18_500_000, true, 4)
    );
    let steps = Signal::Steps {
        points: vec![(0, 0.01), (4 * S, 0.02)].into(),
        end: End::Stop { at_ns: 3600 * S },
    };
    assert_eq!(link.delay_s, steps);
    assert_eq!(link.return_delay_ns, 1500);
    assert_eq!(
        link.loss,
        Signal::Lines {
            points: vec![(0, 0.0), (10 * S, 0.01)].into()
        }
    );
    assert_eq!((link.overhead_bytes, link.mpu_bytes), (-4, 64));

    let info = linkweir_core::policy("pss").unwrap();
    let width = info.qparams.len();
    let of_b = |name: &str| e.scheduler.qparams[width + info.qparam(name).unwrap()];
    assert_eq!(e.scheduler.params[info.param("sat").unwrap()], 1);
    assert_eq!(
        (
            of_b("level"),
            of_b("low_level"),
            of_b("share"),
            of_b("lr"),
            of_b("lm")
        ),
        (1, 7, 333_333, 12_000, 60_000)
    );
    assert_eq!(
        (e.classes[0].limit_pkts, e.classes[0].limit_bytes),
        (None, Some(1 << 20))
    );
    assert_eq!(
        (e.classes[1].limit_pkts, e.classes[1].limit_bytes),
        (Some(1000), None)
    );

    let names: Vec<&str> = e.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "v",
            "poisson2-1",
            "poisson2-2",
            "poisson2-3",
            "onoff3",
            "tcp4",
            "greedy5"
        ]
    );
    assert_eq!(
        e.flows[0].traffic,
        Traffic::Cbr {
            rate_bps: Signal::Steps {
                points: vec![(0, 1e6), (2 * S, 0.0)].into(),
                end: End::Loop { period_ns: 3 * S }
            },
            jitter: 0.25,
            packet: Sizes::Mix(vec![(40, 1.0), (1500, 2.5)].into()),
        }
    );
    assert_eq!(
        (e.flows[3].start_ns, e.flows[3].stop_ns),
        (S + 2 * S / 10, 2 * S)
    );
    let poisson = Traffic::Poisson {
        rate_bps: Signal::Constant(1_000_001.0),
        packet: Sizes::Uniform(64, 1500),
    };
    assert_eq!(e.flows[1].traffic, poisson);
    assert_eq!(e.flows[4].access_delay_ns, 3_000_000);
    assert!(
        matches!(e.flows[4].traffic, Traffic::OnOff { lengths: Lengths::Pareto { shape }, .. } if shape == 1.7)
    );
    let expected = tcp::Config {
        mss_bytes: 1000,
        max_window_segments: 500,
        initial_window_segments: 4,
        bytes_to_send: Some(10_000_000),
        delayed_ack: true,
        ..tcp::Config::new(tcp::Algorithm::NewReno, tcp::Profile::Ns2)
    };
    assert_eq!(e.flows[5].traffic, Traffic::Tcp(expected));
    assert_eq!(
        e.flows[6].traffic,
        Traffic::Greedy {
            backlog_pkts: 7,
            packet: Sizes::Fixed(1500)
        }
    );

    assert_eq!(scenario.experiment, again(&scenario).experiment);
}

#[test]
fn defaults_of_tcp_give_way_to_the_keys_that_are_set() {
    let config = |keys: &str| {
        let text = format!(
            "duration = \"1s\"\n[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"a\"\n\
             [[flow]]\nclass = \"a\"\nkind = \"tcp\"\n{keys}\n"
        );
        let scenario = parse(&text, Path::new("x.toml")).unwrap_or_else(|f| panic!("{f}"));
        assert_eq!(scenario.experiment, again(&scenario).experiment);
        match &scenario.experiment.flows[0].traffic {
            Traffic::Tcp(config) => config.clone(),
            other => panic!("{other:?}"),
        }
    };
    let windows = |keys: &str| {
        let config = config(keys);
        (config.max_window_segments, config.initial_window_segments)
    };
    assert_eq!(windows("window = \"5p\""), (5, 5));
    assert_eq!(windows("window = \"50p\""), (50, 10));
    assert_eq!(windows("window = \"1p\"\nprofile = \"ns2\""), (1, 1));
    let timeouts = |keys: &str| {
        let config = config(keys);
        (config.min_rto_ns / 1_000_000, config.max_rto_ns / 1_000_000)
    };
    assert_eq!(timeouts("max_rto = \"100ms\""), (100, 100));
    assert_eq!(timeouts("min_rto = \"200s\""), (200_000, 200_000));
    assert_eq!(timeouts("max_rto = \"10s\""), (200, 10_000));
}

#[test]
fn a_share_needs_a_burst_that_gains_a_bit_and_the_table_says_so() {
    let pss = linkweir_core::policy("pss").unwrap();
    let share = &pss.qparams[pss.qparam("share").unwrap()];
    assert!(share
        .help
        .ends_with("above 99.9995% it takes a larger burst"));
    let read = |rate: &str, share_ppm: u64, keys: &str| {
        let text = format!(
            "duration = \"1s\"\n[link]\nrate = \"{rate}\"\n[scheduler]\npolicy = \"pss\"\n[[class]]\nname = \"a\"\n\
             low_level = 9\nshare = {}\n{keys}\n[[flow]]\nclass = \"a\"\nkind = \"tcp\"\n",
            share_ppm as f64 / 1e6
        );
        parse(&text, Path::new("x.toml")).map_err(|fault| fault.to_string())
    };
    // A burst of n packets gains 8 mtu (n - 1) (1 - share) bits: 19 * 12112 * 5e-6 = 1.15, 83 * 12112 * 1e-6 = 1.005 and
    // 512 * 0.002 = 1.02, but 19 * 12112 * 4e-6 = 0.92, 82 * 12112 * 1e-6 = 0.99 and 512 * 0.0019 = 0.97.
    let small = "burst = \"2p\"\nmtu = \"64B\"";
    for rate in ["20Mbit", "1Gbit", "400Gbit"] {
        for (keys, most_ppm) in [
            ("", 999_995),
            ("burst = \"84p\"", share.max),
            ("lr = \"0bit\"\nlm = \"1kbit\"", share.max),
            (small, 998_000),
        ] {
            read(rate, most_ppm, keys).unwrap_or_else(|fault| panic!("{rate}: {fault}"));
        }
        for (keys, beyond_ppm) in [
            ("", 999_996),
            ("burst = \"83p\"", share.max),
            (small, 998_100),
        ] {
            let fault = read(rate, beyond_ppm, keys).unwrap_err();
            let cure = "give a smaller one or a larger burst";
            assert!(fault.contains(cure), "{fault}");
        }
    }
}

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

#[test]
fn the_seed_and_the_trace_can_be_replaced() {
    let folder = std::env::temp_dir().join(format!("linkweir-override-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("my trace.down");
    fs::write(&trace, "1\n2\n3\n4\n").unwrap();
    let overrides = Overrides {
        seed: Some(9),
        trace: Some(trace),
        ..Overrides::default()
    };
    let scenario = scenario::parse_with(EVERYTHING, None, &overrides).unwrap();
    assert_eq!(scenario.experiment.seed, 9);
    let at_ns = vec![1_000_000, 2_000_000, 3_000_000, 4_000_000];
    assert_eq!(
        scenario.experiment.link.capacity,
        Capacity::Opportunities {
            at_ns: at_ns.into(),
            bytes: 1500
        }
    );
    assert_eq!(scenario.inputs[0].name, "inputs/my_trace.down");
    assert!(scenario
        .resolved_toml
        .contains("trace = \"inputs/my_trace.down\"\ntrace_format = \"mahimahi\""));
    assert_eq!(scenario.experiment, again(&scenario).experiment);
    fs::remove_dir_all(folder).unwrap();
}

fn steps(points: &[(u64, f64)], end: End) -> Signal {
    Signal::Steps {
        points: points.into(),
        end,
    }
}

#[test]
fn traces_in_every_notation() {
    let read = |content: &str, hints: &Hints| {
        parse_trace(content.as_bytes(), Path::new("t"), hints).unwrap()
    };
    let plain = Hints::default();

    let own = read("# made by hand\n# end = loop\nt_s,capacity_bps,delay_s,loss\n0,1e6,0.25,0\r\n1.5,2000000,0.3,0.01\n", &plain);
    let end = End::Loop { period_ns: 3 * S };
    assert_eq!(own.format, Format::Linkweir);
    assert_eq!(
        own.capacity,
        Capacity::Rate(steps(&[(0, 1e6), (3 * S / 2, 2e6)], end))
    );
    assert_eq!(
        own.delay_s,
        Some(steps(&[(0, 0.25), (3 * S / 2, 0.3)], end))
    );
    assert_eq!(own.loss, Some(steps(&[(0, 0.0), (3 * S / 2, 0.01)], end)));

    let period = read("# end=stop\n# period_s=10\nt_s,capacity_bps\n0,5\n", &plain);
    assert_eq!(
        period.capacity,
        Capacity::Rate(steps(&[(0, 5.0)], End::Stop { at_ns: 10 * S }))
    );
    let held = read(
        "# end=stop\nt_s,capacity_bps\n0,5\n",
        &Hints {
            end: Some(TraceEnd::Hold),
            ..Hints::default()
        },
    );
    assert_eq!(held.capacity, Capacity::Rate(steps(&[(0, 5.0)], End::Hold)));

    let mbit = "# recorded\nt_s,dl_mbit,ul_mbit\n100,17.596,12.348\n101,0,3\n";
    let first = read(mbit, &plain);
    assert_eq!(first.column.as_deref(), Some("dl_mbit"));
    assert_eq!(
        first.capacity,
        Capacity::Rate(steps(&[(0, 17_596_000.0), (S, 0.0)], End::Hold))
    );
    let named = read(
        mbit,
        &Hints {
            column: Some("ul_mbit".into()),
            ..Hints::default()
        },
    );
    assert_eq!(
        named.capacity,
        Capacity::Rate(steps(&[(0, 12_348_000.0), (S, 3e6)], End::Hold))
    );

    let mahimahi = read("0\n0\n7\n\n7\n10\n", &plain);
    assert_eq!(
        (mahimahi.format, mahimahi.end),
        (Format::Mahimahi, TraceEnd::Loop)
    );
    let at_ns = vec![0, 0, 7_000_000, 7_000_000, 10_000_000];
    assert_eq!(
        mahimahi.capacity,
        Capacity::Opportunities {
            at_ns: at_ns.into(),
            bytes: 1500
        }
    );
}

#[test]
fn a_trace_begins_at_its_first_time_stamp() {
    let of = |content: String| {
        let hints = Hints::default();
        parse_trace(content.as_bytes(), Path::new("t"), &hints).unwrap_or_else(|f| panic!("{f}"))
    };
    for header in ["t_s,capacity_bps", "time,down_mbit"] {
        let scale = if header.contains("mbit") { 1.0 } else { 1e6 };
        let expected = steps(&[(0, 5e6), (3 * S / 2, 6e6)], End::Hold);
        for (first, second) in [
            ("1700000000", "1700000001.5"),
            ("1.7e9", "1700000001.500000000"),
            ("2026-01-31T23:59:59Z", "2026-02-01T00:00:00.5Z"),
            ("2026-01-31T12:00:00", "2026-01-31T12:00:01.5"),
            ("2026-01-31 12:00:00", "2026-01-31 12:00:01.5"),
            ("\"2026-01-31 12:00:00\"", "\"2026-01-31 12:00:01.5\""),
            // Zones change, and the day the clock goes back has 25 hours; without a zone it is UTC.
            ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:01.5+00:00"),
            ("2026-10-25T02:59:59.5+02:00", "2026-10-25T02:00:01+01:00"),
            ("2026-01-31T10:00:00", "2026-01-31T12:00:01.5+02:00"),
            ("2023-11-14T22:13:20Z", "1700000001.5"),
        ] {
            let (five, six) = (5.0 * scale, 6.0 * scale);
            let trace = of(format!("{header}\n{first},{five}\n{second},{six}\n"));
            assert_eq!(
                trace.capacity,
                Capacity::Rate(expected.clone()),
                "{header} {first}"
            );
        }
    }
}

/// A scenario over a trace of its own folder, with more lines in `[link]`.
fn over(content: &str, link: &str) -> Result<Scenario, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("linkweir-over-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("t.csv"), content).unwrap();
    let text = format!(
        "duration = \"10s\"\n[link]\ntrace = \"t.csv\"\n{link}\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"a\"\n[[flow]]\nclass = \"a\"\nkind = \"greedy\"\n"
    );
    let read = parse(&text, &folder.join("x.toml"));
    fs::remove_dir_all(folder).unwrap();
    read.map_err(|fault| format!("{}: {}", fault.key, fault.message))
}

#[test]
fn a_scenario_names_the_columns_of_a_csv() {
    let expected = Capacity::Rate(steps(&[(0, 5e6), (3 * S / 2, 6e6)], End::Hold));
    for (content, columns) in [
        // A unit in the name, none for times in seconds or ISO 8601, or said.
        (
            "when,down_mbit,x\n10,5,a\n11.5,6,b\n",
            r#"{ t = "when", capacity = "down_mbit" }"#,
        ),
        (
            "x,DL_KBIT,when\n,5000,2026-01-31T12:00:00Z\n,6000,2026-01-31T12:00:01.5Z\n",
            r#"{ t = "when", capacity = "DL_KBIT" }"#,
        ),
        (
            "at_ms,c_bps\n1700000000000,5e6\n1700000001500,6e6\n",
            r#"{ t = "at_ms", capacity = "c_bps" }"#,
        ),
        (
            "at,dl_mbps\n1700000000000,5\n1700000001500,6\n",
            r#"{ t = { column = "at", unit = "ms" }, capacity = { column = "dl_mbps", unit = "Mbit" } }"#,
        ),
        (
            "at,rx\n1700000000000000000,625\n1700000001500000000,750\n",
            r#"{ t = { column = "at", unit = "ns" }, capacity = { column = "rx", unit = "kB" } }"#,
        ),
        (
            "\"at\",\"rx \"\"\n0,5\n0.025,6\n",
            r#"{ t = { column = "at", unit = "min" }, capacity = { column = "rx \"", unit = "Mbit" } }"#,
        ),
    ] {
        let scenario =
            over(content, &format!("columns = {columns}")).unwrap_or_else(|f| panic!("{f}"));
        assert_eq!(scenario.experiment.link.capacity, expected, "{columns}");
        assert_eq!(
            again(&scenario).experiment,
            scenario.experiment,
            "{}",
            scenario.resolved_toml
        );
    }
    let looped = "# end=loop\n# period_s=2\nt,c_bps\n7,5e6\n";
    let scenario = over(looped, r#"columns = { t = "t", capacity = "c_bps" }"#).unwrap();
    let end = End::Loop { period_ns: 2 * S };
    assert_eq!(
        scenario.experiment.link.capacity,
        Capacity::Rate(steps(&[(0, 5e6)], end))
    );
}

#[test]
fn wrong_columns_are_named_with_their_cure() {
    let content = "when,dl,ul_mbit\n0,1,2\n";
    for (link, expected) in [
        (
            r#"columns = { t = "when", capacity = "dl" }"#,
            r#"link.columns.capacity: does not say its unit; write { column = "dl", unit = ... } with one of Gbit"#,
        ),
        (
            r#"columns = { t = "when", capacity = { column = "dl" } }"#,
            "link.columns.capacity.unit: is missing; write one of Gbit",
        ),
        (
            r#"columns = { t = "when", capacity = { column = "dl", unit = "mbps" } }"#,
            "link.columns.capacity.unit: must be one of Gbit",
        ),
        (
            r#"columns = { t = "when", capacity = { column = "dl", unit = "0Mbit" } }"#,
            "link.columns.capacity.unit: must be one of Gbit",
        ),
        (
            r#"columns = { t = "when", capacity = { column = "dl", unit = "ms" } }"#,
            "link.columns.capacity.unit: must be one of Gbit",
        ),
        (
            r#"columns = { t = { column = "when", unit = "Mbit" }, capacity = "ul_mbit" }"#,
            "link.columns.t.unit: must be one of s, ms",
        ),
        (
            r#"columns = { t = "time", capacity = "ul_mbit" }"#,
            ": has no column time; it has when, dl, ul_mbit",
        ),
        (
            r#"columns = { t = "when", capacity = "when_mbit" }"#,
            ": has no column when_mbit",
        ),
        (
            r#"columns = { t = "ul_mbit", capacity = "ul_mbit" }"#,
            "link.columns.capacity: must not be the column of the times",
        ),
        (
            r#"columns = { t = "when" }"#,
            "link.columns.capacity: is missing",
        ),
        (
            r#"columns = { t = "when", capacity = "ul_mbit", dealy = "x" }"#,
            "link.columns.dealy: unknown key",
        ),
        (r#"columns = "dl""#, "link.columns: must be a table like"),
        (
            "columns = { t = \"when\", capacity = \"ul_mbit\" }\ntrace_format = \"mbit\"",
            r#"is only for trace_format = "csv""#,
        ),
        (
            "columns = { t = \"when\", capacity = \"ul_mbit\" }\ntrace_column = \"dl\"",
            "link.trace_column: columns names it already",
        ),
        (
            "trace_format = \"csv\"",
            "link.trace_format: needs the names of its columns",
        ),
        ("", ": cannot tell the trace's format"),
    ] {
        let content = if link.is_empty() {
            "when,dl\n0,1\n"
        } else {
            content
        };
        let fault = over(content, link).unwrap_err();
        assert!(
            fault.contains(expected),
            "{link}\n   got {fault}\nwanted {expected}"
        );
    }
}

/// What iperf3 3.12 wrote over a loopback (`iperf3 --client ... --json --omit 1 --interval 0.5 --time 2 --bitrate 8M`); the
/// second interval has `start`, `seconds` and `bits_per_second` of two.
const IPERF3: &str = r#"{"start": {"version": "iperf 3.12"}, "intervals": [
{"streams": [], "sum": {"start": 0, "end": 0.501461, "seconds": 0.501461, "bytes": 524288, "bits_per_second": 8364167.4, "omitted": true, "sender": true}},
{"streams": [], "sum": {"start": 0.502745, "end": 0.501263, "seconds": 1.004008, "bytes": 524288, "bits_per_second": 4177560.1, "omitted": false, "sender": true}},
{"streams": [], "sum": {"start": 0.501263, "end": 1.000071, "seconds": 0.498808, "bytes": 0, "bits_per_second": 0, "omitted": false, "sender": true}},
{"streams": [], "sum": {"start": 1.000071, "end": 1.500073, "seconds": 0.500002, "bytes": 524288, "bits_per_second": 8388574.0, "omitted": false, "sender": true},
 "sum_bidir_reverse": {"end": 1.5, "bytes": 1}}
], "end": {}}"#;

#[test]
fn what_iperf3_recorded_is_a_trace() {
    let read = |end| {
        let hints = Hints {
            end,
            ..Hints::default()
        };
        parse_trace(IPERF3.as_bytes(), Path::new("t"), &hints).unwrap()
    };
    let points = [
        (0, 8.0 * 524_288.0 / 0.501_263),
        (501_263_000, 0.0),
        (1_000_071_000, 8.0 * 524_288.0 / 0.500_002),
    ];
    let trace = read(None);
    assert_eq!(
        (trace.format, trace.column.as_deref()),
        (Format::Iperf3, Some("sum"))
    );
    assert_eq!(trace.capacity, Capacity::Rate(steps(&points, End::Hold)));
    let end = End::Loop {
        period_ns: 1_500_073_000,
    };
    assert_eq!(
        read(Some(TraceEnd::Loop)).capacity,
        Capacity::Rate(steps(&points, end))
    );
    let scenario = over(IPERF3, "end = \"loop\"").unwrap();
    assert_eq!(again(&scenario).experiment, scenario.experiment);
}

#[test]
fn the_history_of_a_starlink_dish_is_a_trace_from_its_oldest_sample() {
    let read = |current: &str, column: Option<&str>| {
        let text = format!(
            r#"{{"apiVersion": "4", "dishGetHistory": {{"current": {current}, "popPingDropRate": [0, 1],
            "downlinkThroughputBps": [1e6, 2000000, 3000000.5, 0.25, 5e6], "uplinkThroughputBps": [10, 20, 30, 40, 50]}}}}"#
        );
        let hints = Hints {
            column: column.map(str::to_string),
            ..Hints::default()
        };
        let trace = parse_trace(text.as_bytes(), Path::new("t"), &hints).unwrap();
        assert_eq!(trace.format, Format::Starlink);
        let Capacity::Rate(Signal::Steps {
            points,
            end: End::Hold,
        }) = trace.capacity
        else {
            panic!("no steps");
        };
        assert!(points
            .iter()
            .enumerate()
            .all(|(i, (ns, _))| *ns == i as u64 * S));
        points.iter().map(|(_, bps)| *bps).collect::<Vec<_>>()
    };
    // The seventh sample was written last, at index 1.
    assert_eq!(read("\"7\"", None), [3_000_000.5, 0.0, 5e6, 1e6, 2e6]);
    assert_eq!(
        read("7", Some("uplinkThroughputBps")),
        [30.0, 40.0, 50.0, 10.0, 20.0]
    );
    assert_eq!(read("\"5\"", None), [1e6, 2e6, 3_000_000.5, 0.0, 5e6]);
    // The buffer was not full yet.
    assert_eq!(read("\"2\"", None), [1e6, 2e6]);
}

#[test]
fn nominal_is_the_mean_of_the_capacity() {
    let nominal = |rate: &str| {
        let text = format!(
            "duration = \"10s\"\n[link]\nrate = {rate}\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"a\"\n[[flow]]\nclass = \"a\"\nkind = \"greedy\"\n"
        );
        parse(&text, Path::new("x.toml"))
            .unwrap()
            .experiment
            .link
            .nominal_bps
    };
    assert_eq!(nominal("\"7Mbit\""), 7_000_000);
    assert_eq!(
        nominal("{ mean = \"3Mbit\", amplitude = 1.0, period = \"1s\" }"),
        3_000_000
    );
    assert_eq!(
        nominal("{ steps = [[\"0s\", \"1Mbit\"], [\"4s\", \"2Mbit\"]] }"),
        1_600_000
    );
    assert_eq!(nominal("{ steps = [[\"0s\", \"1Mbit\"], [\"4s\", \"2Mbit\"]], end = \"loop\", period = \"5s\" }"), 1_200_000);
    assert_eq!(
        nominal("{ lines = [[\"0s\", \"0bit\"], [\"10s\", \"2Mbit\"]] }"),
        1_000_000
    );
}

#[test]
fn copies_of_a_class_take_copies_of_a_flow_in_turn() {
    let text = r#"duration = "1s"
[link]
rate = "1Mbit"
[scheduler]
policy = "drr"
[[class]]
name = "first"
[[class]]
name = "user"
count = 3
quantum = "700B"
[[flow]]
class = "user"
name = "all"
count = 5
kind = "greedy"
backlog = "1p"
[[flow]]
class = "user-2"
name = "one"
kind = "greedy"
[[flow]]
class = "first"
name = "other"
kind = "greedy"
"#;
    let e = scenario::parse(text, Path::new("copies.toml"))
        .unwrap()
        .experiment;
    let names: Vec<&str> = e.classes.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["first", "user-1", "user-2", "user-3"]);
    let classes: Vec<usize> = e.flows.iter().map(|f| f.class).collect();
    assert_eq!(classes, [1, 2, 3, 1, 2, 2, 0]);
    let rows: Vec<&[u64]> = e.scheduler.qparams.chunks(2).collect();
    assert!(rows[0] != rows[1] && rows[1] == rows[2] && rows[2] == rows[3]);

    let fault = |from: &str, to: &str| {
        scenario::parse(&text.replacen(from, to, 1), Path::new("copies.toml"))
            .unwrap_err()
            .to_string()
    };
    assert!(fault("\"first\"", "\"user-3\"")
        .contains("class[1].name = \"user\": two classes have this name"));
    assert!(fault("count = 3", "count = 65536")
        .contains("class[1].count = 65536: there would be more than 65536 classes"));
    assert!(
        fault("count = 5", "count = 3001").contains("limit: must hold the 1001 packets"),
        "{}",
        fault("count = 5", "count = 3001")
    );
}

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
fn classes_of_ubmt_like_have_targets_of_their_own() {
    let text = "duration = \"1s\"\n[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"ubmt_like\"\ntarget = \"80ms\"\n\
                [[class]]\nname = \"a\"\ncount = 2\n[[class]]\nname = \"b\"\ntarget = \"20ms\"\n\
                [[class]]\nname = \"c\"\ntarget = \"0s\"\n\
                [[class]]\nname = \"d\"\ntarget = \"0s\"\ntarget_rate = \"200kbit\"\n\
                [[flow]]\nclass = \"a\"\nkind = \"greedy\"\n[[flow]]\nclass = \"d\"\nkind = \"greedy\"\n";
    let read = |text: &str| parse(text, Path::new("u.toml"));
    let scenario = read(text).unwrap_or_else(|fault| panic!("{fault}"));
    let ms = 1_000_000;
    let rows = [80 * ms, 0, 80 * ms, 0, 20 * ms, 0, 0, 0, 0, 200_000];
    assert_eq!(scenario.experiment.scheduler.qparams, rows);
    assert_eq!(again(&scenario).experiment, scenario.experiment);
    for (from, to, expected) in [
        (
            "target = \"20ms\"",
            "target = \"1us\"",
            "u.toml:12: class[1].target = \"1us\": must be 0s, which makes the class elastic, or 1ms .. 60s",
        ),
        (
            "target = \"20ms\"",
            "target_rate = \"1Mbit\"",
            "u.toml:12: class[1].target_rate = \"1Mbit\": is only for an elastic class: target = \"0s\"",
        ),
        (
            "\"200kbit\"",
            "\"0bit\"",
            "u.toml:19: class[3].target_rate = \"0bit\": must be 1kbit .. 400Gbit",
        ),
        (
            "ubmt_like\"\ntarget = \"80ms\"",
            "bbs_like\"",
            "u.toml:11: class[1].target = \"20ms\": unknown key",
        ),
    ] {
        let found = read(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(found.starts_with(expected), "{found}");
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
