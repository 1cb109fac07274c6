// SPDX-License-Identifier: BSD-3-Clause
//! Scenarios become the experiment they say, and their resolved form is the same experiment.

mod applications;
mod beam;
mod constellation;
mod network;
mod readings;
mod replay;
mod satellite;
mod traces;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use linkweir_sim::experiment::{Capacity, End, Lengths, Measures, Signal, Sizes, Traffic};
use linkweir_sim::scenario::{self, parse, Overrides, Scenario};
use linkweir_sim::tcp;

const S: u64 = 1_000_000_000;

fn steps(points: &[(u64, f64)], end: End) -> Signal {
    Signal::Steps {
        points: points.into(),
        end,
    }
}

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
log = "packets"
log_rows = 77
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
delays = true
playout = ["60ms", "adaptive", "0.2s"]
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

fn everything() -> Scenario {
    parse(EVERYTHING, Path::new("x.toml")).unwrap_or_else(|fault| panic!("{fault}"))
}

#[test]
fn every_key_of_the_scenario_arrives() {
    let scenario = everything();
    let e = &scenario.experiment;
    assert_eq!(e.name, "all kinds \"quoted\"");
    assert_eq!(
        (e.duration_ns, e.warmup_ns, e.interval_ns, e.seed),
        (60 * S, S / 2, S / 4, 255)
    );
    assert_eq!(e.log_rows, Some(77));
    assert_eq!(scenario.experiment, again(&scenario).experiment);
}

#[test]
fn every_key_of_the_link_arrives() {
    let scenario = everything();
    let e = &scenario.experiment;
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
}

#[test]
fn bursts_and_reordering_arrive_and_are_written_back() {
    let text = EVERYTHING.replace(
        r#"loss = { lines = [["0s", 0.0], ["10s", "1%"]] }"#,
        r#"loss = { mean = "1%", burst = "2.5p" }
reorder = { probability = 0.25, delay = "10ms" }"#,
    );
    let scenario = parse(&text, Path::new("bursts.toml")).unwrap();
    let link = &scenario.experiment.link;
    assert_eq!(link.loss, Signal::Constant(0.01));
    assert_eq!(link.loss_burst_pkts, Some(2.5));
    let reorder = link.reorder.unwrap();
    assert_eq!((reorder.probability, reorder.delay_ns), (0.25, 10_000_000));
    let again = parse(&scenario.resolved_toml, Path::new("bursts.toml")).unwrap();
    assert_eq!(again.experiment, scenario.experiment);
}

#[test]
fn every_key_of_scheduler_and_classes_arrives() {
    let scenario = everything();
    let e = &scenario.experiment;
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
}

#[test]
fn every_key_of_the_flows_arrives() {
    let scenario = everything();
    let e = &scenario.experiment;
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
    let buffers = e.flows[4].measures.playout.iter();
    let buffers: Vec<_> = buffers.map(|b| (b.name.as_str(), b.buffer_ns)).collect();
    assert_eq!(
        buffers,
        [
            ("60ms", Some(60_000_000)),
            ("adaptive", None),
            ("200ms", Some(S / 5))
        ]
    );
    assert!(e.flows[4].measures.delays);
    assert_eq!(e.flows[0].measures, Measures::default());
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
