// SPDX-License-Identifier: BSD-3-Clause
//! Applications over TCP and voice, key by key.

use std::path::Path;

use linkweir_sim::experiment::{
    Amount, Application, Arrivals, Distribution, RateRule, Session, Traffic,
};
use linkweir_sim::scenario::{parse, Scenario};
use linkweir_sim::tcp;

use crate::{again, S};

fn scenario(flow: &str) -> Scenario {
    let text = format!(
        "duration = \"10s\"\n[link]\nrate = \"10Mbit\"\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"a\"\n\
         [[flow]]\nclass = \"a\"\n{flow}\n"
    );
    let scenario = parse(&text, Path::new("x.toml")).unwrap_or_else(|fault| panic!("{fault}"));
    let second = again(&scenario);
    assert_eq!(
        scenario.experiment, second.experiment,
        "{}",
        scenario.resolved_toml
    );
    assert_eq!(scenario.resolved_toml, second.resolved_toml);
    scenario
}

fn traffic(flow: &str) -> Traffic {
    scenario(flow).experiment.flows[0].traffic.clone()
}

fn application(flow: &str) -> Application {
    match traffic(flow) {
        Traffic::Application(application) => *application,
        other => panic!("{other:?}"),
    }
}

fn size(distribution: Distribution) -> Amount {
    Amount {
        distribution,
        least: 1.0,
        most: 1e12,
    }
}

fn pause(distribution: Distribution) -> Amount {
    Amount {
        distribution,
        least: 0.0,
        most: 315_360_000e9,
    }
}

#[test]
fn transfers() {
    let found = application(
        "kind = \"transfers\"\nsize = \"100kB\"\narrivals = { every = \"500ms\" }\ncc = \"newreno\"\nwindow = \"50p\"",
    );
    let expected = tcp::Config {
        max_window_segments: 50,
        bytes_to_send: Some(0),
        ..tcp::Config::new(tcp::Algorithm::NewReno, tcp::Profile::Linux)
    };
    assert_eq!(found.tcp, expected);
    let session = |arrivals, size, concurrent| Session::Transfers {
        arrivals,
        size,
        concurrent,
    };
    let fixed = size(Distribution::Fixed(1e5));
    let half_a_second = Arrivals::Poisson { mean_ns: 5e8 };
    assert_eq!(found.session, session(half_a_second, fixed, 1000));

    let found = application(
        "kind = \"transfers\"\nsize = { mean = \"2kB\", distribution = \"pareto\", shape = 1.2, max = \"1MB\" }\n\
         arrivals = { every = \"20ms\", process = \"periodic\" }\nconcurrent = 7",
    );
    let pareto = Amount {
        most: 1e6,
        ..size(Distribution::Pareto {
            mean: 2e3,
            shape: 1.2,
        })
    };
    let every = Arrivals::Periodic { every_ns: S / 50 };
    assert_eq!(found.session, session(every, pareto, 7));

    // 100 kB, on average, at 4 Mbit/s: one every 200 ms.
    let found = application(
        "kind = \"transfers\"\nsize = { mean = \"100kB\", distribution = \"lognormal\", deviation = \"250kB\" }\n\
         arrivals = { load = \"4Mbit\" }\nprofile = \"ns2\"",
    );
    let lognormal = size(Distribution::Lognormal {
        mean: 1e5,
        deviation: 2.5e5,
    });
    let poisson = Arrivals::Poisson { mean_ns: 2e8 };
    assert_eq!(found.session, session(poisson, lognormal, 1000));

    let found = application(
        "kind = \"transfers\"\nsize = { cdf = [[\"1kB\", 0.25], [\"3kB\", \"100%\"]] }\narrivals = { at = [\"0s\", \"1.5s\"] }",
    );
    let empirical = size(Distribution::Empirical([(1e3, 0.25), (3e3, 1.0)].into()));
    let at = Arrivals::At([0, 3 * S / 2].into());
    assert_eq!(found.session, session(at, empirical, 1000));
}

#[test]
fn sizes_from_a_file() {
    let folder = std::env::temp_dir().join(format!("linkweir-sizes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("sizes.csv");
    std::fs::write(
        &file,
        "# measured\nbytes,cumulative\n100, 0.5\n1e3,0.9\n5e6,1\n",
    )
    .unwrap();
    let pauses = folder.join("pauses.csv");
    std::fs::write(&pauses, "s,cumulative\n0.5,0.5\n20,1\n").unwrap();
    let shown = |file: &Path| file.display().to_string();
    let scenario = scenario(&format!(
        "kind = \"requests\"\nresponse = {{ file = \"{}\" }}\nthink = {{ file = \"{}\" }}\ncount = 2",
        shown(&file),
        shown(&pauses)
    ));
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(scenario.inputs.len(), 2);
    assert_eq!(scenario.inputs[0].name, "inputs/sizes.csv");
    let Traffic::Application(found) = &scenario.experiment.flows[1].traffic else {
        panic!("no application");
    };
    let points = [(100.0, 0.5), (1e3, 0.9), (5e6, 1.0)].into();
    let pauses = [(5e8, 0.5), (2e10, 1.0)].into();
    let expected = Session::Requests {
        response: size(Distribution::Empirical(points)),
        server_ns: pause(Distribution::Fixed(0.0)),
        think_ns: pause(Distribution::Empirical(pauses)),
    };
    assert_eq!(found.session, expected);
}

#[test]
fn web_pages() {
    let found = application(
        "kind = \"web\"\nmain = \"10.71kB\"\nobjects = { mean = 5.64, distribution = \"pareto\", shape = 1.1, max = 53 }\n\
         object = { mean = \"7758B\" }\nthink = { mean = \"30s\" }\nserver_time = \"20ms\"",
    );
    let count = Amount {
        distribution: Distribution::Pareto {
            mean: 5.64,
            shape: 1.1,
        },
        least: 0.0,
        most: 53.0,
    };
    let expected = Session::Web {
        main: size(Distribution::Fixed(10_710.0)),
        objects: count,
        object: size(Distribution::Exponential { mean: 7758.0 }),
        connections: 6,
        server_ns: pause(Distribution::Fixed(2e7)),
        think_ns: pause(Distribution::Exponential { mean: 3e10 }),
    };
    assert_eq!(found.session, expected);
}

#[test]
fn video() {
    let found = application("kind = \"video\"\nladder = [\"1Mbit\", \"2.5Mbit\"]");
    let Session::Video(video) = found.session else {
        panic!("no video");
    };
    assert_eq!(video.ladder_bps[..], [1e6, 2.5e6]);
    assert_eq!(
        (video.segment_ns, video.buffer_ns, video.startup_ns),
        (4 * S, 240 * S, 4 * S)
    );
    // As in the paper.
    let bba = RateRule::Buffer {
        reservoir_ns: 90 * S,
        cushion_ns: 126 * S,
    };
    assert_eq!(video.adaptation, bba);
    let found = application(
        "kind = \"video\"\nladder = [\"1Mbit\"]\nsegment = \"2s\"\nbuffer = \"20s\"\nstartup = \"6s\"\n\
         adaptation = \"throughput\"\nhistory = 5\nsafety = 0.9",
    );
    let Session::Video(video) = found.session else {
        panic!("no video");
    };
    let throughput = RateRule::Throughput {
        segments: 5,
        safety: 0.9,
    };
    assert_eq!((video.startup_ns, video.adaptation), (6 * S, throughput));
}

#[test]
fn voice() {
    let voice = |packet_bytes, interval_ms: u64, talkspurts_ns| Traffic::Voice {
        packet_bytes,
        interval_ns: interval_ms * S / 1000,
        talkspurts_ns,
        jitter: 0.0,
    };
    let g711 = traffic("kind = \"voice\"\ncodec = \"g711\"");
    assert_eq!(g711, voice(200, 20, None));
    let spurts =
        traffic("kind = \"voice\"\ncodec = \"g723.1\"\ntalkspurts = true\nheader = \"60B\"");
    assert_eq!(spurts, voice(84, 30, Some((1_004_000_000, 1_587_000_000))));
    let shaky = traffic("kind = \"voice\"\ncodec = \"g711\"\njitter = 0.25");
    let Traffic::Voice { jitter, .. } = shaky else {
        panic!("no voice");
    };
    assert_eq!(jitter, 0.25);
}
