// SPDX-License-Identifier: BSD-3-Clause
//! Voice over a fading satellite link with repetitions, as in the simulations of Tauran et al. 2018 and its journal version.

use linkweir_sim::experiment::{
    Capacity, Channel, Delays, End, Experiment, Flow, Lengths, Measures, Outages, Satellite,
    Scheduler, Signal, Sizes, Traffic,
};
use linkweir_sim::satellite::fading::Fading;
use linkweir_sim::satellite::harq::Harq;
use linkweir_sim::satellite::lms::Lms;
use linkweir_sim::satellite::perez_fontan::Environment;
use linkweir_sim::satellite::reorder::{Reordering, Rule};
use linkweir_sim::tcp::{self, Algorithm, Profile};

use crate::build::{cbr, experiment, flow, greedy, packet, rate, scheduler, tables, Tables, MS, S};

const PACKET_BYTES: u32 = 210;

/// One FIFO of so many packets for all users, or a queue for each under a policy.
enum Queues {
    Shared(u32),
    Own(&'static str, u32),
}

fn voice(users: usize, queues: &Queues, packet_bits: u32, seed: u64) -> Experiment {
    let (policy, nclasses, limit) = match queues {
        Queues::Shared(limit) => ("fifo", 1, *limit),
        Queues::Own(policy, limit) => (*policy, users, *limit),
    };
    let chosen = if policy.starts_with("tauran") {
        Scheduler {
            policy: policy.to_owned(),
            brought: None,
            params: if policy == "tauran_codes" {
                vec![100 * MS]
            } else {
                Vec::new()
            },
            qparams: Vec::new(),
            across: None,
        }
    } else {
        scheduler(policy, &[], &vec![&[][..]; nclasses])
    };
    let rate = Capacity::Rate(Signal::Constant(50e6));
    let mut e = experiment(rate, 50_000_000, chosen, nclasses, 100 * S);
    e.seed = seed;
    e.link.delay_s = Signal::Constant(0.0076);
    e.link.satellite = Some(Satellite {
        channel: Channel::Drive {
            lms: Box::new(Lms::new(Environment::IntermediateTrees)),
            seed,
            period_ns: 600 * S,
        },
        user_offset_ns: 51 * S,
        flows_are_users: false,
        csi_tick_ns: 10 * MS,
        csi_age_ns: None,
        harq: Harq::designed(packet_bits, 10).unwrap(),
        ground_delay_ns: MS,
        delays: None,
        repeats_see_first_user: true,
        uncoded_too: true,
        reordering: None,
    });
    for class in &mut e.classes {
        class.limit_pkts = Some(limit);
    }
    for user in 0..users {
        e.flows.push(Flow {
            name: format!("user{user}"),
            class: if nclasses == 1 { 0 } else { user },
            start_ns: 500 * MS + 100 * MS * user as u64,
            stop_ns: 100 * S,
            access_delay_ns: 100 * MS,
            traffic: Traffic::OnOff {
                rate_bps: 64e3,
                on_ns: 500 * MS,
                off_ns: 50 * MS,
                lengths: Lengths::Pareto { shape: 1.5 },
                packet: Sizes::Fixed(if packet_bits == 1680 {
                    PACKET_BYTES
                } else {
                    1115
                }),
            },
            measures: Measures::default(),
        });
    }
    e
}

/// Per cent of the packets decoded after one to four attempts, and given up; and per cent of all packets lost.
type Split = ([f64; 5], f64);

fn split(e: &Experiment) -> Split {
    let tables = tables(e);
    let sum = |table: &str, column: &str| tables.numbers(table, column).iter().sum::<f64>();
    let counts = [
        sum("harq", "decoded_first_pkts"),
        sum("harq", "decoded_second_pkts"),
        sum("harq", "decoded_third_pkts"),
        sum("harq", "decoded_fourth_pkts"),
        sum("harq", "given_up_pkts"),
    ];
    let all: f64 = counts.iter().sum();
    let lost = sum("flows", "dropped_limit_pkts") + counts[4];
    (
        counts.map(|n| 100.0 * n / all),
        100.0 * lost / sum("flows", "arrived_pkts"),
    )
}

/// One packet in the line of sight, one behind a hill: times and attempts by hand.
#[test]
fn attempts_worked_by_hand() {
    let harq = Harq::designed(1680, 10).unwrap();
    let mut e = experiment(rate(1e6), 1_000_000, scheduler("fifo", &[], &[&[]]), 1, S);
    e.link.delay_s = Signal::Constant(0.010);
    e.link.satellite = Some(Satellite {
        // From 20 ms on nothing comes through.
        channel: Channel::Recorded(
            Fading::new(20 * MS, [vec![0.0f32], vec![-60.0f32; 60]].concat()).unwrap(),
        ),
        user_offset_ns: 0,
        flows_are_users: false,
        csi_tick_ns: 10 * MS,
        csi_age_ns: None,
        harq: harq.clone(),
        ground_delay_ns: MS,
        delays: None,
        repeats_see_first_user: false,
        uncoded_too: false,
        reordering: None,
    });
    e.flows = vec![packet(0, 0, 210), packet(0, 100 * MS, 210)];
    let found = tables(&e);
    // 2290 coded bits at 1 Mbit/s are 286 whole bytes, 2.288 ms; 10 ms to the decoder, 1 ms to the user.
    assert_eq!(found.numbers("flows", "delivered_pkts"), [1.0, 0.0]);
    let delay_s = found.reals("flows", "delay_mean_s")[0].unwrap();
    assert!((delay_s - 13.288e-3).abs() < 1e-9, "{delay_s}");
    assert_eq!(found.numbers("harq", "decoded_first_pkts"), [1.0, 0.0]);
    assert_eq!(found.numbers("harq", "given_up_pkts"), [0.0, 1.0]);
    assert_eq!(found.numbers("flows", "lost_link_pkts"), [0.0, 1.0]);
    let all_bits: u32 = (0..4).map(|attempt| harq.coded_bits(attempt)).sum();
    assert_eq!(
        found.numbers("harq", "coded_bits"),
        [2290.0, f64::from(all_bits)]
    );
}

/// One satellite link for users whose places in a recorded fading are so far apart.
pub(crate) fn users_of(samples_db: &[f32], step_ns: u64, user_offset_ns: u64) -> Satellite {
    Satellite {
        channel: Channel::Recorded(Fading::new(step_ns, samples_db.to_vec()).unwrap()),
        user_offset_ns,
        flows_are_users: false,
        csi_tick_ns: 10 * MS,
        csi_age_ns: None,
        harq: Harq::designed(1680, 10).unwrap(),
        ground_delay_ns: 0,
        delays: None,
        repeats_see_first_user: false,
        uncoded_too: false,
        reordering: None,
    }
}

fn tauran_pf() -> Scheduler {
    Scheduler {
        policy: "tauran_pf".to_owned(),
        brought: None,
        params: Vec::new(),
        qparams: Vec::new(),
        across: None,
    }
}

/// The published PF looks at the channel that packets meet: that of the flow, whatever the order of the classes.
#[test]
fn published_pf_sees_the_channels_of_flows() {
    for classes in [[0, 1], [1, 0]] {
        let mut e = experiment(rate(1e6), 1_000_000, tauran_pf(), 2, S);
        e.link.satellite = Some(Satellite {
            flows_are_users: true,
            ..users_of(&[0.0, -60.0], 100 * S, 100 * S)
        });
        e.flows = classes.map(|class| flow(class, greedy(210))).to_vec();
        let found = tables(&e);
        // 286 bytes and 2.288 ms each; the last is still on its way, and nothing is sent to the flow behind a hill.
        let bits = found.numbers("harq", "coded_bits");
        assert_eq!(bits, [438.0 * 2290.0, 0.0], "{classes:?}");
        assert_eq!(found.numbers("harq", "decoded_first_pkts"), [437.0, 0.0]);
    }
}

/// 4 s beyond whole rounds of the fading lie between users, so that every seventh sees the first sample.
#[test]
fn users_may_be_ages_apart() {
    for policy in [scheduler("rr", &[], &[&[][..]; 70]), tauran_pf()] {
        let mut e = experiment(rate(1e9), 1_000_000_000, policy, 70, S);
        let fading = [vec![0.0f32], vec![-60.0f32; 6]].concat();
        e.link.satellite = Some(users_of(&fading, S, 315_360_000 * S));
        e.flows = (0..70).map(|class| packet(class, 0, 210)).collect();
        let seen = |user| f64::from(u8::from(user % 7 == 0));
        let expected: Vec<f64> = (0..70).map(seen).collect();
        let found = tables(&e);
        assert_eq!(found.numbers("harq", "decoded_first_pkts"), expected);
        assert_eq!(found.numbers("flows", "delivered_pkts"), expected);
    }
}

/// Of a drive only what a run looks at is generated, which changes nothing: neither where rounds are longer than all looks
/// nor where some begin again.
#[test]
fn a_drive_is_generated_as_far_as_it_is_looked_at() {
    let drive = |period_ns| Channel::Drive {
        lms: Box::new(Lms::new(Environment::IntermediateTrees)),
        seed: 5,
        period_ns,
    };
    let day = drive(86_400 * S);
    let short = day.fading(S);
    assert_eq!(short.samples_db().len(), 1001);
    assert_eq!(short.period_ns(), 86_400 * S);
    for period_ns in [10 * S, 3 * S] {
        let whole = drive(period_ns).fading(u64::MAX);
        assert_eq!(whole.samples_db().len() as u64, period_ns / MS);
        assert_eq!(whole.samples_db()[..1001], *short.samples_db());
        for policy in ["rr", "pf", "tauran_pf"] {
            let run = |channel: Channel| {
                let mut e = voice(4, &Queues::Own(policy, 11), 1680, 1);
                e.duration_ns = S;
                e.interval_ns = 100 * MS;
                let satellite = e.link.satellite.as_mut().unwrap();
                satellite.channel = channel;
                satellite.user_offset_ns = 900 * MS;
                tables(&e).tables
            };
            assert_eq!(
                run(drive(period_ns)),
                run(Channel::Recorded(whole.clone())),
                "{policy}, {period_ns} ns"
            );
        }
    }
}

/// A repetition goes before packets that wait, and the uncoded packet costs its bytes.
#[test]
fn repetitions_go_first() {
    let mut e = experiment(rate(1e6), 1_000_000, scheduler("fifo", &[], &[&[]]), 1, S);
    e.link.delay_s = Signal::Constant(0.001);
    // Behind a hill up to 5 ms: the first attempt at the first packet is not understood, nor known to be before 7 ms.
    e.link.satellite = Some(Satellite {
        channel: Channel::Recorded(
            Fading::new(5 * MS, [vec![-60.0f32], vec![0.0f32; 250]].concat()).unwrap(),
        ),
        user_offset_ns: 0,
        flows_are_users: false,
        csi_tick_ns: 10 * MS,
        csi_age_ns: None,
        harq: Harq::new(1680, [1145, 1145, 1145, 1145], 10.0),
        ground_delay_ns: 0,
        delays: None,
        repeats_see_first_user: false,
        uncoded_too: true,
        reordering: None,
    });
    e.flows = vec![packet(0, 0, 210), packet(0, 0, 210), packet(0, 0, 210)];
    let found = tables(&e);
    // First attempts have 210 + 286 bytes, 3.968 ms; repetitions 286, 2.288 ms. The first arrives at 4.968 and is asked
    // for again at 5.968, while the second goes up to 7.936; its repetition goes up to 10.224, and only then the third.
    let delays: Vec<f64> = found
        .reals("flows", "delay_mean_s")
        .iter()
        .map(|s| (s.unwrap() * 1e6).round())
        .collect();
    assert_eq!(delays, [11_224.0, 8_936.0, 15_192.0]);
    assert_eq!(
        found.numbers("harq", "decoded_second_pkts"),
        [1.0, 0.0, 0.0]
    );
}

/// The packets of [`repetitions_go_first`], all of one flow: the first comes at 11.224 ms, the second at 8.936, the third
/// at 15.192, unless they are put in order.
#[test]
fn packets_are_put_in_order_behind_the_decoder() {
    let delays_us = |reordering: Option<Reordering>| {
        let mut e = experiment(rate(1e6), 1_000_000, scheduler("fifo", &[], &[&[]]), 1, S);
        e.link.delay_s = Signal::Constant(0.001);
        e.link.satellite = Some(Satellite {
            channel: Channel::Recorded(
                Fading::new(5 * MS, [vec![-60.0f32], vec![0.0f32; 250]].concat()).unwrap(),
            ),
            user_offset_ns: 0,
            flows_are_users: false,
            csi_tick_ns: 10 * MS,
            csi_age_ns: None,
            harq: Harq::new(1680, [1145, 1145, 1145, 1145], 10.0),
            ground_delay_ns: 0,
            repeats_see_first_user: false,
            uncoded_too: true,
            delays: None,
            reordering,
        });
        // One more comes at once when the first begins.
        let three = Traffic::Greedy {
            backlog_pkts: 2,
            packet: Sizes::Fixed(210),
        };
        e.flows = vec![Flow {
            traffic: three,
            ..packet(0, 0, 210)
        }];
        let found = tables(&e);
        assert_eq!(found.numbers("flows", "delivered_pkts"), [3.0]);
        (found.reals("flows", "delay_mean_s")[0].unwrap() * 3e6).round()
    };
    let with = |rule, timeout_ns| {
        Some(Reordering {
            rule,
            buffer_pkts: 125,
            timeout_ns,
        })
    };
    assert_eq!(delays_us(None), 11_224.0 + 8_936.0 + 15_192.0);
    let in_order = delays_us(with(Rule::PerFlow, S));
    assert_eq!(in_order, 11_224.0 + 11_224.0 + 15_192.0);
    // The second is held for 1 ms at most.
    let impatient = delays_us(with(Rule::PerFlow, MS));
    assert_eq!(impatient, 11_224.0 + 9_936.0 + 15_192.0);
    // With one buffer for all, what is seen first is what was expected: the second.
    let shared = delays_us(with(Rule::Shared, S));
    assert_eq!(shared, 11_224.0 + 8_936.0 + 15_192.0);
}

/// TCP in queues that never fill: packets out of order make it repeat what arrives anyway, and packets in order leave
/// only those to repeat that the decoder gave up.
#[test]
fn order_spares_tcp_needless_retransmissions() {
    let run = |rule: Option<Rule>| {
        let mut e = voice(1, &Queues::Own("rr", 1000), 8920, 1);
        let mut config = tcp::Config::new(Algorithm::NewReno, Profile::Ns2);
        config.max_window_segments = 40;
        e.flows[0].traffic = Traffic::Tcp(config);
        e.link.return_delay_ns = 9 * MS;
        e.link.satellite.as_mut().unwrap().reordering = rule.map(|rule| Reordering {
            rule,
            buffer_pkts: 1000,
            timeout_ns: S,
        });
        let found = tables(&e);
        let sum = |table: &str, column: &str| found.numbers(table, column).iter().sum::<f64>();
        assert_eq!(sum("flows", "dropped_limit_pkts"), 0.0);
        (
            sum("flows", "retransmitted_pkts"),
            sum("flows", "spurious_pkts"),
            sum("harq", "given_up_pkts"),
            sum("flows", "retransmitted_rto_pkts"),
            sum("flows", "goodput_bps"),
        )
    };
    let (repeated, needless, given_up, late, bps) = run(None);
    assert_eq!(repeated, needless + given_up);
    assert!(needless > late + 10.0, "{needless} {late}");
    let (repeated, needless, given_up, late, bps_in_order) = run(Some(Rule::PerFlow));
    assert_eq!(repeated, needless + given_up);
    // Only the timer can still be wrong.
    assert!(needless <= late, "{needless} {late}");
    assert!(given_up > 0.0 && bps_in_order > bps);
}

/// The mean of [`split`] over three channels.
fn mean_split(queues: &Queues) -> Split {
    let all: Vec<Split> = (1..=3)
        .map(|seed| split(&voice(300, queues, 1680, seed)))
        .collect();
    let mean = |value: &dyn Fn(&Split) -> f64| all.iter().map(value).sum::<f64>() / 3.0;
    (
        std::array::from_fn(|i| mean(&|found| found.0[i])),
        mean(&|found| found.1),
    )
}

/// Delays that fall after a second, and a link so fast that a packet's 286 coded bytes take 2.288 us.
fn falling_delays() -> Experiment {
    let steps = |before_s: f64, after_s: f64| Signal::Steps {
        points: [(0, before_s), (S, after_s)].into(),
        end: End::Hold,
    };
    let mut e = experiment(
        rate(1e9),
        1_000_000_000,
        scheduler("fifo", &[], &[&[]]),
        1,
        10 * S,
    );
    e.link.satellite = Some(Satellite {
        channel: Channel::Recorded(Fading::new(S, vec![0.0]).unwrap()),
        user_offset_ns: 0,
        flows_are_users: false,
        csi_tick_ns: 10 * MS,
        csi_age_ns: None,
        harq: Harq::designed(1680, 10).unwrap(),
        ground_delay_ns: MS,
        delays: Some(Delays {
            to_satellite_s: steps(0.050, 0.020),
            to_ground_s: steps(0.010, 0.004),
            start_ns: 0,
            shift_ns: 500 * MS,
            before_s: 0.100,
            outages: Outages::default(),
        }),
        repeats_see_first_user: false,
        uncoded_too: false,
        reordering: None,
    });
    e
}

fn delays_of(e: &mut Experiment) -> &mut Delays {
    let satellite = e.link.satellite.as_mut().unwrap();
    satellite.delays.as_mut().unwrap()
}

/// A column of the flows in us.
fn us(e: &Experiment, column: &str) -> Vec<f64> {
    let all = tables(e).numbers("flows", column);
    all.iter().map(|s| (s * 1e9).round() / 1e3).collect()
}

#[test]
fn each_flow_is_further_behind_in_the_delays() {
    let mut e = falling_delays();
    // Created 0, 500 and 1000 ms after the start of the flow's own delays, then before it, then in the middle.
    e.flows = [0, 1000, 2000, 1400, 2900]
        .map(|ms| packet(0, ms * MS, 210))
        .to_vec();
    // 50 or 20 or 100 ms up; 10 ms down until 1 s, then 4; 1 ms to the user.
    let all = [61_002.288, 55_002.288, 25_002.288, 105_002.288, 55_002.288];
    assert_eq!(us(&e, "delay_mean_s"), all);
    // A second later all but the last two are past the fall, or past the beginning.
    delays_of(&mut e).start_ns = S;
    let all = [25_002.288, 25_002.288, 25_002.288, 55_002.288, 25_002.288];
    assert_eq!(us(&e, "delay_mean_s"), all);
}

#[test]
fn nothing_is_sent_while_no_path_joins_the_two_ends() {
    let mut e = falling_delays();
    e.interval_ns = S;
    e.link.capacity = rate(2288e3); // a packet takes 1 ms: 2288 coded bits
    delays_of(&mut e).outages = [(0, 100 * MS), (2 * S, 4 * S)].into();
    // Behind 50 or 20 ms of access the packets wait at 80, 1999.5 and 2500 ms. They leave at 101, at 4000.5, when what was
    // left of it has been sent, and at 4001.5 ms; then there are 10 or 4 ms down and 1 to the user.
    delays_of(&mut e).shift_ns = 0;
    e.flows = [30_000u64, 1_979_500, 2_480_000]
        .map(|us| packet(0, us * 1000, 210))
        .to_vec();
    let found = tables(&e);
    assert_eq!(us(&e, "delay_mean_s"), [82_000.0, 2_026_000.0, 1_526_500.0]);
    let capacity: Vec<f64> = found.numbers("link", "capacity_bps")[..5]
        .iter()
        .map(|bps| (bps / 2288.0).round() / 1e3)
        .collect();
    assert_eq!(capacity, [0.9, 1.0, 0.0, 0.0, 1.0]);

    // Opportunities of an outage are none.
    e.link.capacity = Capacity::Opportunities {
        at_ns: [100 * MS].into(),
        bytes: 286,
    };
    let found = tables(&e);
    // The first packet leaves at 100 ms. Those of 2 s and after are lost, so that 4.0 and 4.1 s carry the other two.
    assert_eq!(us(&e, "delay_mean_s"), [81_000.0, 2_025_500.0, 1_625_000.0]);
    let capacity = found.numbers("link", "capacity_bps");
    assert_eq!(capacity[2..4], [0.0, 0.0]);
}

#[test]
fn packets_of_a_flow_do_not_overtake_each_other_on_the_way_up() {
    let mut e = falling_delays();
    // Every 10 ms from 980 ms on: the two up to 990 ms arrive at 1030 and 1040; those of 1000 and 1010 ms would at 1020 and
    // 1030 and wait for the second; that of 1020 ms arrives at 1040 as well.
    e.flows = vec![Flow {
        start_ns: 980 * MS,
        stop_ns: 1021 * MS,
        ..flow(0, cbr(168e3, 210))
    }];
    let found = tables(&e);
    assert_eq!(found.numbers("flows", "delivered_pkts"), [5.0]);
    // Up 50, 50, 40, 30, 20 ms; 4 ms down and 1 to the user; the four that arrive at 1040 ms leave one after another.
    let mean_us =
        (50e3 + 50e3 + 40e3 + 30e3 + 20e3) / 5.0 + 5e3 + 2.288 * (1 + 1 + 2 + 3 + 4) as f64 / 5.0;
    let found_us = found.numbers("flows", "delay_mean_s")[0] * 1e6;
    assert!(
        (found_us - mean_us).abs() < 1e-3,
        "{found_us}, not {mean_us}"
    );
}

#[test]
fn answers_and_repetitions_take_the_delay_of_their_time() {
    let mut e = falling_delays();
    // Nothing is understood before 1.005 s.
    let fading = [vec![-60.0f32; 201], vec![0.0f32; 2000]].concat();
    e.link.satellite.as_mut().unwrap().channel =
        Channel::Recorded(Fading::new(5 * MS, fading).unwrap());
    e.link.satellite.as_mut().unwrap().harq = Harq::new(1680, [1145; 4], 10.0);
    e.flows = vec![packet(0, 940 * MS, 210)];
    // Sent at 990 ms, not understood at 1000.002288; answered in 4 ms; again in 2.288 us and 4 ms, at 1008.004576; 1 ms more.
    assert_eq!(us(&e, "delay_mean_s"), [69_004.576]);
    assert_eq!(tables(&e).numbers("harq", "decoded_second_pkts"), [1.0]);
}

/// Acknowledgements go back through the same delays.
#[test]
fn round_trips_take_the_delays_twice() {
    for (start_ns, one_way_ms) in [(0, 61.0), (S, 25.0)] {
        let mut e = falling_delays();
        e.duration_ns = S;
        e.interval_ns = S;
        delays_of(&mut e).start_ns = start_ns;
        e.link.satellite.as_mut().unwrap().harq = Harq::designed(12_000, 10).unwrap();
        let config = tcp::Config {
            bytes_to_send: Some(100_000),
            ..tcp::Config::new(tcp::Algorithm::NewReno, tcp::Profile::Ns2)
        };
        e.flows = vec![flow(0, Traffic::Tcp(config))];
        let found = tables(&e);
        let srtt_ms = found.reals("flows", "srtt_mean_s")[0].unwrap() * 1e3;
        // Ticks of 1 ms, and a few segments that wait for each other.
        assert!(
            (srtt_ms - 2.0 * one_way_ms).abs() < 1.5,
            "{srtt_ms} ms, one way {one_way_ms}"
        );
    }
}

/// What `make check` leaves out.
mod slow {
    use super::*;

    /// Table 2 of the journal version, 300 users: per cent decoded after one to four attempts, and given up; its drop of 2.34
    /// under RR is a misprint, since the other four leave 0.42.
    #[test]
    fn schedulers_differ_as_published() {
        let (rr, rr_lost) = mean_split(&Queues::Own("rr", 11));
        let (pf, pf_lost) = mean_split(&Queues::Own("tauran_pf", 11));
        let (_, short_lost) = mean_split(&Queues::Shared(11));
        for (found, published) in rr.iter().zip([50.96, 25.73, 19.07, 3.82, 0.42]) {
            assert!((found - published).abs() < 2.5, "{rr:?}");
        }
        for (found, published) in pf.iter().zip([54.84, 26.75, 15.49, 2.63, 0.29]) {
            assert!((found - published).abs() < 2.5, "{pf:?}");
        }
        assert!(pf[0] > rr[0] && pf_lost < rr_lost);
        assert!(
            pf_lost <= 3.0 && short_lost > 12.0,
            "{pf_lost} {short_lost}"
        );
    }

    /// CoDeS holds waiting below its timeout, and so lowers delay and jitter; it loses hardly more than PF.
    #[test]
    fn a_timeout_holds_delays_down() {
        let (pf, codes) = (
            tables(&voice(300, &Queues::Own("tauran_pf", 11), 1680, 2)),
            tables(&voice(300, &Queues::Own("tauran_codes", 11), 1680, 2)),
        );
        let most = |of: &Tables, column: &str| {
            of.reals("classes", column)
                .iter()
                .flatten()
                .fold(0.0, |a: f64, b| a.max(*b))
        };
        let mean =
            |of: &Tables, column: &str| of.numbers("flows", column).iter().sum::<f64>() / 300.0;
        assert!(most(&codes, "delay_max_s") <= 0.1 && most(&pf, "delay_max_s") > 0.2);
        assert!(mean(&codes, "delay_mean_s") < mean(&pf, "delay_mean_s"));
        assert!(mean(&codes, "jitter_mad_s") < mean(&pf, "jitter_mad_s"));
    }
}
