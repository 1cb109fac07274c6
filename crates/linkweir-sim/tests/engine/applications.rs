// SPDX-License-Identifier: BSD-3-Clause
//! Applications over TCP: small cases followed by hand, and comparisons with what they are made of. At 12 Mbit/s a packet of
//! 1500 bytes takes 1 ms and a SYN of 60 bytes 0.04 ms; it is 10 ms to the receiver and 10 ms back.

use crate::build::*;
use linkweir_sim::experiment::{
    Amount, Application, Arrivals, Distribution, End, Experiment, Flow, RateRule, Session, Signal,
    Traffic, Video,
};
use linkweir_sim::tcp::{Algorithm, Config, Profile};

fn fixed(amount: f64) -> Amount {
    Amount {
        distribution: Distribution::Fixed(amount),
        least: 0.0,
        most: 1e12,
    }
}

fn ms(amount: f64) -> Amount {
    fixed(amount * 1e6)
}

fn application(session: Session, profile: Profile) -> Traffic {
    Traffic::Application(Box::new(Application {
        tcp: Config {
            bytes_to_send: Some(0),
            ..Config::new(Algorithm::Cubic, profile)
        },
        session,
    }))
}

fn transfers(at_ns: &[u64], bytes: f64) -> Session {
    Session::Transfers {
        arrivals: Arrivals::At(at_ns.into()),
        size: fixed(bytes),
        concurrent: 1000,
    }
}

/// Two classes before a link of 12 Mbit/s and 10 ms.
fn link(flows: Vec<Flow>, duration_ns: u64) -> Experiment {
    let queues = scheduler("strict", &[], &[&[], &[]]);
    let mut e = experiment(rate(12e6), 12_000_000, queues, 2, duration_ns);
    e.link.delay_s = Signal::Constant(0.01);
    e.link.return_delay_ns = 10 * MS;
    e.flows = flows;
    e
}

/// Starts and completion times of the transfers of a run, ms.
fn completions(e: &Experiment) -> Vec<(f64, f64)> {
    let t = tables(e);
    let ms = |column| {
        let numbers = t.numbers("transfers", column).into_iter();
        numbers.map(|s| (s * 1e9).round() / 1e6).collect::<Vec<_>>()
    };
    ms("start_s").into_iter().zip(ms("completion_s")).collect()
}

#[test]
fn a_transfer_takes_a_round_trip_more_with_its_handshake() {
    for (profile, bytes, expected) in [
        // 0.04 + 10 to the receiver, 10 back, 0.034667 for the answer's acknowledgement, 1 + 10 for the segment.
        (Profile::Linux, 1448.0, 31.074_667),
        // A segment of 40 bytes stands for the SYN, and one of 1040 follows it at once.
        (Profile::Ns2, 1000.0, 10.72),
    ] {
        let traffic = application(transfers(&[0, 100 * MS], bytes), profile);
        let e = link(vec![flow(0, traffic)], S);
        let found = completions(&e);
        assert_eq!(found.len(), 2);
        for ((start, took), expected_start) in found.into_iter().zip([0.0, 100.0]) {
            assert_eq!(start, expected_start);
            assert!((took - expected).abs() < 1e-5, "{profile:?}: {took}");
        }
    }
}

#[test]
fn a_request_goes_up_the_server_works_and_the_response_comes_down() {
    let session = Session::Requests {
        response: fixed(1448.0),
        server_ns: ms(5.0),
        think_ns: ms(100.0),
    };
    let e = link(vec![flow(0, application(session, Profile::Linux))], S / 5);
    // 10 up, 0.04 + 10 down, 10 up with the request, 5 at the server, 1 + 10 down; later 10 + 5 + 11.
    assert_eq!(completions(&e), [(0.0, 46.04), (146.04, 26.0)]);
    let t = tables(&e);
    assert_eq!(t.numbers("completions", "begun"), [2.0]);
    assert_eq!(t.numbers("completions", "completion_max_s"), [0.04604]);
    // The payload in order, of two responses: SYNs are no payload.
    assert_eq!(
        t.numbers("flows", "goodput_bps"),
        [2.0 * 1448.0 * 8.0 / 0.2]
    );
    assert_eq!(t.numbers("flows", "delivered_pkts"), [3.0]);
    assert_eq!(t.numbers("flows", "transmitted_pkts"), [2.0]);
}

#[test]
fn a_page_ends_with_its_last_object() {
    let session = Session::Web {
        main: fixed(1448.0),
        objects: fixed(3.0),
        object: fixed(1448.0),
        connections: 2,
        server_ns: ms(0.0),
        think_ns: ms(50.0),
    };
    let e = link(vec![flow(0, application(session, Profile::Linux))], S / 4);
    // The main object is there after 41.04. The first connection asks again and has the next object 21 later, at 62.04, and
    // would have a third one at 83.04. The second connection's SYN is up at 51.04, with that request, so its answer waits
    // for 1 and is there at 62.08; its object is asked for at 72.08, waits until 73.04 for that of the first connection,
    // and is there at 84.04.
    let page = 84.04;
    assert_eq!(completions(&e), [(0.0, page), (134.04, page)]);
    assert_eq!(
        tables(&e).numbers("transfers", "size_bytes"),
        [5792.0, 5792.0]
    );
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    for session in [
        transfers(&[0], 1448.0),
        Session::Requests {
            response: fixed(1448.0),
            server_ns: ms(0.0),
            think_ns: ms(1e6),
        },
    ] {
        let asks = matches!(session, Session::Requests { .. });
        let mut e = link(vec![flow(0, application(session, Profile::Linux))], 9 * S);
        let points = [(0, 1.0), (1_500 * MS, 0.0)];
        e.link.loss = Signal::Steps {
            points: points.into(),
            end: End::Hold,
        };
        // Lost at 0 and after 1 s, give or take the coarse ticks of long timers; after another second it passes.
        let expected = if asks { 2041.04 } else { 2031.07 };
        let took = completions(&e)[0].1;
        assert!((took - expected).abs() < 70.0, "{took}");
    }
}

/// A row of table `flows` without kind, name, delays' percentiles and window.
fn counted(e: &Experiment) -> Vec<Vec<Option<f64>>> {
    let t = tables(e);
    let real = ["delay_mean_s", "goodput_bps", "rate_bps", "timeouts"];
    let sender = [
        "transmitted_pkts",
        "retransmitted_fast_pkts",
        "retransmitted_rto_pkts",
        "spurious_pkts",
    ];
    let mut rows: Vec<_> = real
        .iter()
        .chain(&sender)
        .map(|c| t.reals("flows", c))
        .collect();
    for count in [
        "arrived_pkts",
        "delivered_bytes",
        "lost_link_pkts",
        "dropped_limit_pkts",
    ] {
        let numbers = t.numbers("flows", count);
        rows.push(numbers.into_iter().map(Some).collect());
    }
    rows
}

#[test]
fn one_transfer_is_a_bulk_transfer_of_the_same_bytes() {
    for profile in [Profile::Linux, Profile::Ns2] {
        for algorithm in [Algorithm::Cubic, Algorithm::NewReno] {
            for (loss, limit, access_ns) in [(0.0, 20, 0), (0.02, 1000, 3 * MS), (0.2, 5, 0)] {
                const BYTES: u64 = 700_001;
                let config = Config {
                    bytes_to_send: Some(BYTES),
                    ..Config::new(algorithm, profile)
                };
                let bulk = flow(0, Traffic::Tcp(config.clone()));
                let alone = Traffic::Application(Box::new(Application {
                    tcp: Config {
                        bytes_to_send: Some(0),
                        ..config
                    },
                    session: transfers(&[0], BYTES as f64),
                }));
                let runs = [bulk, flow(0, alone)].map(|mut flow| {
                    flow.access_delay_ns = access_ns;
                    let mut e = link(vec![flow], 100 * S);
                    e.link.loss = Signal::Constant(loss);
                    e.classes[0].limit_pkts = Some(limit);
                    counted(&e)
                });
                assert_eq!(runs[0], runs[1], "{profile:?} {algorithm:?} {loss}");
            }
        }
    }
}

#[test]
fn places_of_closed_connections_are_taken_again() {
    // At least 600 generations at each of 16 places, of which a packet tells 512 apart, with losses, so that segments come after their
    // connection is closed.
    let session = Session::Transfers {
        arrivals: Arrivals::Poisson { mean_ns: 5e6 },
        size: Amount {
            distribution: Distribution::Pareto {
                mean: 4000.0,
                shape: 1.5,
            },
            least: 1.0,
            most: 1e6,
        },
        concurrent: 8,
    };
    let traffic = application(session, Profile::Linux);
    let mut e = link(vec![flow(0, traffic.clone()), flow(1, traffic)], 120 * S);
    e.link.loss = Signal::Constant(0.05);
    e.interval_ns = S;
    e.warmup_ns = 10 * S;
    let t = tables(&e);
    let (begun, finished) = (
        t.numbers("completions", "begun"),
        t.numbers("completions", "finished"),
    );
    for flow in 0..2 {
        assert!(begun[flow] > 5000.0, "{begun:?}");
        assert!(
            begun[flow] - finished[flow] <= 8.0,
            "{begun:?} {finished:?}"
        );
    }
    // What is written down is what was delivered in order, but for what is on its way.
    let written: f64 = t.numbers("transfers", "size_bytes").iter().sum();
    let goodput = t.numbers("flow_series", "goodput_bps");
    let delivered: f64 = goodput.iter().sum::<f64>() / 8.0;
    assert!(
        delivered >= written && delivered - written < 3e6,
        "{delivered} {written}"
    );
}

#[test]
fn a_segment_of_a_closed_connection_is_none_of_the_next_one() {
    // The link stands still from 20.5 ms, when half of the first transfer's segment has left, to 2 s. The segment is sent again
    // behind 40 other packets. Its first copy is there at 2011 ms and acknowledged at 2021. The next transfer then takes the
    // place; its SYN is behind the other copies, which it must not take for its own data.
    let traffic = application(transfers(&[0, 2030 * MS], 1448.0), Profile::Linux);
    let others = vec![(100 * MS, 1500); 40];
    let others = Traffic::Replay {
        packets: others.into(),
        period_ns: None,
    };
    let mut e = link(vec![flow(0, traffic), flow(0, others)], 9 * S);
    let points = [(0, 12e6), (20_500_000, 0.0), (2 * S, 12e6)];
    e.link.capacity = linkweir_sim::experiment::Capacity::Rate(Signal::Steps {
        points: points.into(),
        end: End::Hold,
    });
    let t = tables(&e);
    let copies = t.numbers("flows", "delivered_pkts")[0] - 6.0;
    assert!(copies >= 1.0, "{copies}");
    // The SYN waits for the rest of the 40 packets and the copies, and then all is as on an empty link.
    let expected = 2040.575 + copies - 2030.0 + 31.075;
    let found = completions(&e);
    assert!((found[1].1 - expected).abs() < 0.1, "{found:?} {expected}");
}

#[test]
fn too_many_transfers_are_refused() {
    let session = Session::Transfers {
        arrivals: Arrivals::Periodic { every_ns: MS },
        size: fixed(1448.0),
        concurrent: 10,
    };
    let e = link(vec![flow(0, application(session, Profile::Linux))], S / 2);
    let t = tables(&e);
    // A connection lasts for 31 ms and the acknowledgement's 10.
    let (begun, refused) = (
        t.numbers("completions", "begun")[0],
        t.numbers("completions", "refused")[0],
    );
    assert_eq!(begun + refused, 500.0);
    assert!((begun - 500.0 * 10.0 / 42.0).abs() <= 10.0, "{begun}");
}

#[test]
fn a_video_on_a_fast_link_fills_its_buffer_and_stands_still_in_an_outage() {
    let video = Video {
        ladder_bps: [1e6, 3e6].into(),
        segment_ns: 2 * S,
        buffer_ns: 20 * S,
        startup_ns: 4 * S,
        adaptation: RateRule::Buffer {
            reservoir_ns: 5 * S,
            cushion_ns: 10 * S,
        },
        server_ns: ms(0.0),
    };
    let traffic = application(Session::Video(video), Profile::Linux);
    let mut e = link(vec![flow(0, traffic)], 100 * S);
    let t = tables(&e);
    assert_eq!(t.numbers("video", "stalls"), [0.0]);
    assert_eq!(t.numbers("video", "switches"), [1.0]);
    let startup_s = t.numbers("video", "startup_s")[0];
    // Two segments of 250 kB at 12 Mbit/s and less than half a second of slow start.
    assert!((0.35..0.85).contains(&startup_s), "{startup_s}");
    let played_s = t.numbers("video", "played_s")[0];
    assert!((played_s + startup_s - 100.0).abs() < 1e-9);
    let segments = t.numbers("video", "segments")[0];
    assert!((58.0..=60.0).contains(&segments), "{segments}");
    // The map reaches the highest rate at 15 s: nine segments before, of which one is on its way.
    let mean_bps = t.numbers("video", "bitrate_mean_bps")[0];
    let expected_bps = (9.0 * 1e6 + (segments - 9.0) * 3e6) / segments;
    assert!((mean_bps - expected_bps).abs() < 1.0, "{mean_bps}");

    // 30 s without a link empty a buffer of 20 s.
    let points = [(0, 12e6), (50 * S, 0.0), (80 * S, 12e6)];
    e.link.capacity = linkweir_sim::experiment::Capacity::Rate(Signal::Steps {
        points: points.into(),
        end: End::Hold,
    });
    let t = tables(&e);
    assert_eq!(t.numbers("video", "stalls"), [1.0]);
    let stalled_s = t.numbers("video", "stalled_s")[0];
    assert!((10.0..15.0).contains(&stalled_s), "{stalled_s}");
    let all_s = stalled_s + t.numbers("video", "played_s")[0] + startup_s;
    assert!((all_s - 100.0).abs() < 1e-9);
}

#[test]
fn replayed_packets_arrive_when_they_were_recorded() {
    let packets = [(0, 1500), (500_000, 1500), (20 * MS, 750)].into();
    let traffic = Traffic::Replay {
        packets,
        period_ns: Some(50 * MS),
    };
    let mut e = link(vec![flow(0, traffic)], 100 * MS);
    e.flows[0].access_delay_ns = 2 * MS;
    let t = tables(&e);
    assert_eq!(t.numbers("flows", "delivered_pkts"), [6.0]);
    // The second one waits for half a ms: 2 + 0.5 + 1 + 10.
    assert_eq!(t.numbers("flows", "delay_max_s"), [0.0135]);
    let mean_s = t.numbers("flows", "delay_mean_s")[0];
    assert!((mean_s - (13.0 + 13.5 + 12.5) / 3e3).abs() < 1e-12);
}

/// Applications of every kind with both profiles.
fn all_kinds() -> Vec<Traffic> {
    let exponential = |mean: f64| Amount {
        distribution: Distribution::Exponential { mean },
        least: 1.0,
        most: 1e7,
    };
    let sessions = [
        Session::Transfers {
            arrivals: Arrivals::Poisson { mean_ns: 3e8 },
            size: exponential(20_000.0),
            concurrent: 20,
        },
        Session::Requests {
            response: exponential(8000.0),
            server_ns: ms(5.0),
            think_ns: ms(200.0),
        },
        Session::Web {
            main: exponential(5000.0),
            objects: exponential(8.0),
            object: exponential(3000.0),
            connections: 4,
            server_ns: ms(1.0),
            think_ns: ms(0.0),
        },
        Session::Video(Video {
            ladder_bps: [1e5, 3e5].into(),
            segment_ns: S,
            buffer_ns: 10 * S,
            startup_ns: 2 * S,
            adaptation: RateRule::Throughput {
                segments: 5,
                safety: 0.8,
            },
            server_ns: ms(0.0),
        }),
    ];
    let made = [Profile::Linux, Profile::Ns2].map(|profile| {
        sessions
            .clone()
            .map(|session| application(session, profile))
    });
    made.into_iter().flatten().collect()
}

#[test]
fn applications_run_over_every_medium() {
    for name in [
        "starlink",
        "lte-drive",
        "leo-voice",
        "leo-constellation",
        "geo-beam-rain",
    ] {
        let file = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let read = linkweir_sim::scenario::load(file.as_ref(), &Default::default());
        let mut e = read.unwrap_or_else(|fault| panic!("{fault}")).experiment;
        e.duration_ns = 40 * S;
        e.warmup_ns = 2 * S;
        let (classes, mut flows) = (e.classes.len(), Vec::new());
        for (index, traffic) in all_kinds().into_iter().enumerate() {
            let access_delay_ns = (index as u64 % 3) * 5 * MS;
            flows.push(Flow {
                name: format!("f{index}"),
                access_delay_ns,
                stop_ns: if index == 2 { 30 * S } else { 40 * S },
                ..flow(index % classes, traffic)
            });
        }
        e.flows = flows;
        // A satellite's packets are coded at this length, which the scenario checks.
        if let Some(satellite) = &e.link.satellite {
            let most = satellite.harq.packet_bits / 8;
            for flow in &mut e.flows {
                if let Traffic::Application(application) = &mut flow.traffic {
                    application.tcp.mss_bytes = most - application.tcp.header_bytes;
                }
            }
        }
        let t = tables(&e);
        let begun = t.numbers("completions", "begun");
        let finished = t.numbers("completions", "finished");
        for flow in 0..e.flows.len() {
            assert!(finished[flow] > 0.0, "{name}: {begun:?} {finished:?}");
            assert!(
                begun[flow] >= finished[flow],
                "{name}: {begun:?} {finished:?}"
            );
            assert!(
                begun[flow] - finished[flow] <= 20.0,
                "{name}: {begun:?} {finished:?}"
            );
        }
        // There and back, and then the data there: the way back alone is most of a half of it.
        let least_s = e.link.return_delay_ns as f64 / 1e9;
        assert!(t
            .numbers("transfers", "completion_s")
            .iter()
            .all(|s| *s > least_s));
        let stalled = t.numbers("video", "stalled_s");
        let played = t.numbers("video", "played_s");
        assert!(stalled.iter().zip(&played).all(|(s, p)| s + p <= 40.0));
    }
}

/// In a class that isolates flows, each of two transfers has as much of the link as a connection of another source.
#[test]
fn connections_of_an_application_are_flows_of_their_own_inside_a_class() {
    let transfers = application(transfers(&[0, MS], 1e9), Profile::Linux);
    let other = Traffic::Tcp(Config::new(Algorithm::Cubic, Profile::Linux));
    let mut e = link(vec![flow(0, transfers), flow(0, other)], 60 * S);
    e.warmup_ns = 10 * S;
    e.classes[0].flows = Some(linkweir_core::Isolation::Drr);
    let rates_bps = tables(&e).numbers("flows", "rate_bps");
    for (found, wanted) in rates_bps.iter().zip([8e6, 4e6]) {
        assert!((found / wanted - 1.0).abs() < 0.01, "{rates_bps:?}");
    }
}
