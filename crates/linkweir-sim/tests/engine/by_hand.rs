// SPDX-License-Identifier: BSD-3-Clause
//! Small cases whose every packet was followed by hand. At 12 Mbit/s a packet of 1500 bytes takes 1 ms.

use crate::build::*;
use linkweir_sim::experiment::{
    Capacity, End, Experiment, Full, Reorder, Signal, Sizes, TimeLimit, Traffic,
};
use linkweir_sim::{run, tcp, RunError};

const BPS: u64 = 12_000_000;

fn strict(nclasses: usize, duration_ns: u64) -> Experiment {
    let queues = vec![&[][..]; nclasses];
    experiment(
        rate(BPS as f64),
        BPS,
        scheduler("strict", &[], &queues),
        nclasses,
        duration_ns,
    )
}

fn steps(points: &[(u64, f64)], end: End) -> Signal {
    Signal::Steps {
        points: points.into(),
        end,
    }
}

/// Columns of a table in ms.
fn ms(e: &Experiment, table: &str, column: &str) -> Vec<f64> {
    tables(e)
        .numbers(table, column)
        .iter()
        .map(|s| (s * 1e9).round() / 1e6)
        .collect()
}

#[test]
fn three_packets() {
    let mut e = strict(2, S);
    e.link.delay_s = Signal::Constant(0.01);
    e.flows = vec![
        packet(1, 0, 1500),
        packet(1, 0, 1500),
        packet(0, 500_000, 1500),
    ];
    // 0..1 the first, 1..2 the urgent one, 2..3 the second; 10 ms on the way.
    assert_eq!(ms(&e, "flows", "delay_max_s"), [11.0, 13.0, 11.5]);
    assert_eq!(ms(&e, "classes", "delay_mean_s"), [0.5, 1.0]);
    assert_eq!(ms(&e, "classes", "delay_max_s"), [0.5, 2.0]);
    // The second packet waited 2 ms of the second.
    let t = tables(&e);
    assert!((t.numbers("classes", "backlog_mean_pkts")[1] - 0.002).abs() < 1e-15);
    assert_eq!(t.numbers("link", "used_bps"), [36_000.0]);
}

#[test]
fn access_delay_comes_before_the_queue() {
    let mut e = strict(1, S);
    e.flows = vec![packet(0, 0, 1500), packet(0, 0, 1500)];
    e.flows[1].access_delay_ns = 500_000;
    // Created together; the second arrives at 0.5, waits until 1 and leaves at 2.
    assert_eq!(ms(&e, "flows", "delay_max_s"), [1.0, 2.0]);
    assert_eq!(ms(&e, "classes", "delay_max_s"), [0.5]);
}

#[test]
fn an_outage_interrupts_a_packet() {
    let mut e = strict(1, S);
    let points = [(0, BPS as f64), (500_000, 0.0), (10 * MS, BPS as f64)];
    e.link.capacity = Capacity::Rate(steps(&points, End::Hold));
    e.flows = vec![packet(0, 0, 1500), packet(0, 0, 1500)];
    assert_eq!(ms(&e, "flows", "delay_max_s"), [10.5, 11.5]);
    assert_eq!(ms(&e, "classes", "delay_max_s"), [10.5]);
    e.link.capacity = Capacity::Rate(steps(&points[..2], End::Hold));
    let t = tables(&e);
    assert_eq!(t.numbers("flows", "delivered_pkts"), [0.0, 0.0]);
    assert_eq!(
        t.numbers("link", "used_bps"),
        [6_000.0],
        "half a packet went out"
    );
    assert_eq!(t.numbers("link", "capacity_bps"), [6_000.0]);
}

#[test]
fn opportunities_are_shared_split_lost_and_repeated() {
    let mut e = strict(1, 9 * MS);
    // 3000 bytes at 1 ms, 1500 at 3 ms; again at 4 and 6, at 7 and (when the run is over) 9.
    e.link.capacity = Capacity::Opportunities {
        at_ns: [MS, MS, 3 * MS].into(),
        bytes: 1500,
    };
    e.flows = (0..4).map(|_| packet(0, 0, 1000)).collect();
    e.flows.push(packet(0, 3_500_000, 2000));
    e.flows.push(packet(0, 4_500_000, 1600));
    // Three share the first instant, one takes 3 ms and wastes 500 bytes; 2000 bytes are two opportunities of 4 ms;
    // of 1600 bytes 1500 go at 6 and the rest at 7.
    assert_eq!(
        ms(&e, "flows", "delay_max_s"),
        [1.0, 1.0, 1.0, 3.0, 0.5, 2.5]
    );
    // A packet is pulled when there are bytes for it.
    assert_eq!(ms(&e, "classes", "delay_max_s"), [3.0]);
    let t = tables(&e);
    assert_eq!(t.numbers("link", "capacity_bps"), [8.0 * 12_000.0 / 0.009]);
    assert_eq!(t.numbers("link", "used_bps"), [7_600.0 * 8.0 / 0.009]);
}

#[test]
fn a_ring_takes_its_packets_at_one_instant() {
    let mut e = strict(2, S);
    e.link.ring = 3;
    e.flows = (0..5).map(|_| packet(1, 0, 1500)).collect();
    e.flows.push(packet(0, 1_500_000, 1500));
    // At 0 there is one packet, at 1 the ring takes three; the urgent one waits for them until 4, then goes first.
    assert_eq!(
        ms(&e, "flows", "delay_max_s"),
        [1.0, 2.0, 3.0, 4.0, 6.0, 3.5]
    );
    let t = tables(&e);
    assert_eq!(t.numbers("classes", "delay_mean_s"), [0.0025, 0.0014]);
}

#[test]
fn limits_count_what_waits() {
    let mut e = strict(1, S);
    e.classes[0].limit_pkts = Some(2);
    e.flows = (0..5).map(|_| packet(0, 0, 1500)).collect();
    let t = tables(&e);
    assert_eq!(
        t.numbers("flows", "dropped_limit_pkts"),
        [0.0, 0.0, 0.0, 1.0, 1.0]
    );
    assert_eq!(t.numbers("classes", "loss"), [0.4]);
    e.classes[0].limit_pkts = None;
    e.classes[0].limit_bytes = Some(4499);
    assert_eq!(tables(&e).numbers("classes", "dropped_limit_pkts"), [2.0]);
}

#[test]
fn overhead_and_least_size_take_time_and_are_not_counted() {
    let mut e = strict(1, S);
    e.link.overhead_bytes = 38;
    e.link.mpu_bytes = 200;
    e.flows = vec![packet(0, 0, 100), packet(0, 0, 1462)];
    let ms: Vec<f64> = ms(&e, "flows", "delay_max_s");
    assert!(
        (ms[0] - 200.0 / 1500.0).abs() < 1e-6 && (ms[1] - 1700.0 / 1500.0).abs() < 2e-6,
        "{ms:?}"
    );
    let t = tables(&e);
    assert_eq!(t.numbers("classes", "sent_bytes"), [1562.0]);
    assert_eq!(t.numbers("link", "used_bps"), [13_600.0]);
}

#[test]
fn packets_do_not_overtake_when_the_way_gets_shorter() {
    let mut e = strict(1, S);
    e.link.delay_s = steps(&[(0, 0.1), (1_500_000, 0.01)], End::Hold);
    e.flows = vec![
        packet(0, 0, 1500),
        packet(0, MS, 1500),
        packet(0, 200 * MS, 1500),
    ];
    assert_eq!(ms(&e, "flows", "delay_max_s"), [101.0, 100.0, 11.0]);
}

#[test]
fn losses_happen_behind_the_scheduler() {
    let mut e = strict(1, 100 * S);
    e.flows = vec![flow(0, cbr(1.2e6, 1500))];
    e.link.loss = Signal::Constant(0.3);
    let t = tables(&e);
    let lost = t.numbers("classes", "lost_link_pkts")[0];
    assert_eq!(t.numbers("classes", "sent_pkts"), [10_000.0]);
    assert_eq!(t.numbers("flows", "delivered_pkts"), [10_000.0 - lost]);
    // Four standard deviations of a binomial of 10,000 and 0.3.
    assert!((lost - 3_000.0).abs() < 4.0 * 45.9, "{lost} packets lost");
    e.link.loss = steps(&[(0, 1.0), (10 * S, 0.0)], End::Hold);
    // The packet that leaves at 0.001 is the first to be lost, the one at 9.991 the last.
    assert_eq!(tables(&e).numbers("flows", "lost_link_pkts"), [1_000.0]);
}

#[test]
fn losses_come_in_bursts() {
    let mut e = strict(1, 1000 * S);
    e.flows = vec![flow(0, cbr(1.2e6, 1500))];
    e.link.loss = Signal::Constant(0.1);
    for burst_pkts in [1.0, 4.0] {
        e.link.loss_burst_pkts = Some(burst_pkts);
        let lost = tables(&e).numbers("flows", "lost_link_pkts")[0];
        // A bin of one packet each shows where bursts begin: after a packet that came.
        let mut short = e.clone();
        short.interval_ns = 10 * MS;
        let lost_at = tables(&short).numbers("series", "lost_link_pkts");
        let bursts = lost_at.windows(2).filter(|w| w[0] == 0.0 && w[1] > 0.0);
        let mean_pkts = lost / bursts.count() as f64;
        // Four standard errors: the number of losses varies by (2 burst - 1) times that of independent ones, about.
        assert!(
            (lost - 10_000.0).abs() < 4.0 * 95.0 * (2.0 * burst_pkts).sqrt(),
            "{lost}"
        );
        assert!(
            (mean_pkts / burst_pkts - 1.0).abs() < 4.0 * (burst_pkts / 10_000.0).sqrt(),
            "{mean_pkts}"
        );
    }
}

#[test]
fn packets_held_back_are_overtaken() {
    let mut e = strict(1, 100 * S);
    e.flows = vec![flow(0, cbr(1.2e6, 1500))];
    e.link.delay_s = Signal::Constant(0.1);
    // A packet leaves every 10 ms, 1 ms after it was created, so that four or five overtake one held back by 45 ms.
    e.link.reorder = Some(Reorder {
        probability: 0.2,
        delay_ns: 45 * MS,
    });
    let t = tables(&e);
    assert_eq!(t.numbers("flows", "lost_link_pkts"), [0.0]);
    assert_eq!(ms(&e, "flows", "delay_max_s"), [146.0]);
    assert_eq!(ms(&e, "flows", "delay_p50_s")[0].round(), 101.0);
    let held = (ms(&e, "flows", "delay_mean_s")[0] - 101.0) / 45.0;
    // Four standard errors of a part of 0.2 of 10,000 packets.
    assert!((held - 0.2).abs() < 4.0 * 0.004, "{held}");
    e.link.reorder = Some(Reorder {
        probability: 1.0,
        delay_ns: 45 * MS,
    });
    assert_eq!(ms(&e, "flows", "jitter_mad_s"), [0.0]);
}

#[test]
fn a_cosine_carries_its_integral() {
    let signal = Signal::Cosine {
        mean: 20e6,
        amplitude: 0.3,
        period_ns: 15 * S,
        phase_rad: 0.0,
    };
    let mut e = experiment(
        Capacity::Rate(signal),
        20_000_000,
        scheduler("fifo", &[], &[&[]]),
        1,
        20 * S,
    );
    e.interval_ns = 5 * S;
    e.flows = vec![flow(0, greedy(1500))];
    let t = tables(&e);
    let (capacity, used) = (
        t.numbers("link", "capacity_bps"),
        t.numbers("link", "used_bps"),
    );
    let sent = t.numbers("series", "sent_bytes");
    let until = |s: f64| {
        20e6 * (s + 0.3 * 15.0 / std::f64::consts::TAU
            * libm::sin(std::f64::consts::TAU * s / 15.0))
    };
    for bin in 0..4 {
        let bits = until(5.0 * (bin as f64 + 1.0)) - until(5.0 * bin as f64);
        assert!(
            (capacity[bin] * 5.0 - bits).abs() < 1e-6 * bits,
            "bin {bin}"
        );
        assert!(
            (used[bin] - capacity[bin]).abs() < 1e-3,
            "bin {bin} is full"
        );
        assert!(
            (sent[bin] * 8.0 - bits).abs() <= 12_000.0,
            "bin {bin} to a packet"
        );
    }
}

#[test]
fn a_following_scheduler_gets_the_capacity() {
    let link = steps(&[(0, 20e6), (10 * S, 10e6)], End::Hold);
    let queues: [&[_]; 2] = [
        &[("level", 0), ("low_level", 2), ("share", 500_000)],
        &[("level", 1)],
    ];
    let mut e = experiment(
        Capacity::Rate(link),
        20_000_000,
        scheduler("pss", &[], &queues),
        2,
        30 * S,
    );
    e.interval_ns = 10 * S;
    e.flows = vec![flow(0, greedy(1500)), flow(1, greedy(1500))];
    let rates = |e: &Experiment| -> Vec<f64> {
        tables(e)
            .numbers("series", "sent_bps")
            .iter()
            .map(|bps| (bps / 1e5).round() / 10.0)
            .collect()
    };
    // Half of the nominal rate is all of what is left.
    assert_eq!(rates(&e), [10.0, 10.0, 10.0, 0.0, 10.0, 0.0]);
    e.link.follow = true;
    assert_eq!(rates(&e), [10.0, 10.0, 5.0, 5.0, 5.0, 5.0]);
}

#[test]
fn a_following_scheduler_gets_the_mean_of_the_last_opportunities() {
    // 12 Mbit/s for 10 s, then 6 Mbit/s; half of what the scheduler knows is reserved, so that a rate reported x % too low or
    // too high shows as as much less or more of the first class.
    let at_ns: Vec<u64> = (1..=10_000_u64)
        .chain((10_002..=20_000).step_by(2))
        .map(|at| at * MS)
        .collect();
    let queues: [&[_]; 2] = [
        &[("level", 0), ("low_level", 2), ("share", 500_000)],
        &[("level", 1)],
    ];
    let mut e = experiment(
        Capacity::Opportunities {
            at_ns: at_ns.into(),
            bytes: 1500,
        },
        BPS,
        scheduler("pss", &[], &queues),
        2,
        20 * S,
    );
    e.interval_ns = 10 * S;
    e.link.follow = true;
    e.flows = vec![flow(0, greedy(1500)), flow(1, greedy(1500))];
    // The mean lags by at most 100 ms, 1 % of a bin, in which up to 3 Mbit/s too much are reserved.
    let sent = tables(&e).numbers("series", "sent_bps");
    for (bps, due_bps) in sent.iter().zip([6e6, 6e6, 3e6, 3e6]) {
        assert!((bps - due_bps).abs() <= 0.03e6 + 12_000.0, "{sent:?}");
    }
}

#[test]
fn greedy_flows_stay_inside_limits_and_survive_being_victims() {
    let mut e = strict(1, S);
    e.classes[0].limit_pkts = Some(5);
    e.flows = vec![flow(0, greedy(1500)), flow(0, cbr(12e6, 1500))];
    let t = tables(&e);
    assert_eq!(t.numbers("classes", "sent_pkts"), [1_000.0]);
    assert_eq!(t.numbers("flows", "dropped_limit_pkts")[0], 0.0);

    // Two greedy flows of 20 packets drive each other out of 10 places; the link stays full.
    let mut e = experiment(
        rate(12e6),
        BPS,
        scheduler("pds", &[("limit", "10")], &[&[], &[]]),
        2,
        S,
    );
    e.flows = vec![flow(0, greedy(1500)), flow(1, greedy(1500))];
    let t = tables(&e);
    assert_eq!(
        t.numbers("classes", "sent_pkts").iter().sum::<f64>(),
        1_000.0
    );
    assert!(t.numbers("series", "backlog_pkts").iter().sum::<f64>() <= 10.0);
}

#[test]
fn totals_begin_after_the_warm_up() {
    let mut e = strict(1, 3 * S);
    e.warmup_ns = S + 1;
    e.interval_ns = S;
    e.flows = vec![flow(0, cbr(24e6, 1500))];
    e.classes[0].limit_pkts = Some(10);
    let t = tables(&e);
    assert_eq!(
        t.numbers("series", "arrived_pkts"),
        [2_000.0, 2_000.0, 2_000.0]
    );
    // Packets at 0, 0.5, ... ms: 2 s - 1 ns hold 3999 arrivals and 1999 departures.
    assert_eq!(t.numbers("classes", "arrived_pkts"), [3_999.0]);
    assert_eq!(t.numbers("classes", "sent_pkts"), [1_999.0]);
    assert_eq!(
        t.numbers("classes", "rate_bps"),
        [1_999.0 * 12_000.0 / 1.999_999_999]
    );
    assert_eq!(t.numbers("flows", "delivered_pkts"), [1_999.0]);
    assert_eq!(t.numbers("series", "t_s"), [0.0, 1.0, 2.0]);
}

/// One class whose head is dropped once it has waited 100 ms, behind a link that is down until `up_ns`.
fn impatient(up_ns: u64, arrivals_ms: &[f64]) -> Experiment {
    let mut e = experiment(
        Capacity::Rate(steps(&[(0, 0.0), (up_ns, BPS as f64)], End::Hold)),
        BPS,
        scheduler("codes", &[], &[&[("timeout", 100 * MS)]]),
        1,
        2 * S,
    );
    e.warmup_ns = 500 * MS;
    let at = |ms: &f64| packet(0, (ms * 1e6) as u64, 1500);
    e.flows = arrivals_ms.iter().map(at).collect();
    e
}

#[test]
fn loss_is_of_the_packets_that_arrived_after_the_warm_up() {
    // The first packet of 0 is on the link, the seven behind it are dropped when it has left. Of what arrived after the
    // warm-up nothing is lost.
    let mut e = impatient(600 * MS, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 700.0]);
    let t = tables(&e);
    assert_eq!(t.numbers("classes", "dropped_policy_pkts"), [7.0]);
    assert_eq!(t.numbers("classes", "arrived_pkts"), [1.0]);
    assert_eq!(t.numbers("classes", "loss"), [0.0]);

    // The link comes up at 1 s. The packet of 450 ms came before the warm-up ended, that of 500 ms just after. Both are too
    // old by then, as is that of 560 ms. At the end one packet is on the link and one waits, which counts as not lost. So
    // two are lost of the six that arrived after the warm-up.
    e = impatient(
        S,
        &[0.0, 450.0, 500.0, 560.0, 950.0, 1200.0, 1999.5, 1999.6],
    );
    let t = tables(&e);
    assert_eq!(t.numbers("classes", "dropped_policy_pkts"), [3.0]);
    assert_eq!(t.numbers("classes", "arrived_pkts"), [6.0]);
    assert_eq!(t.numbers("classes", "loss"), [2.0 / 6.0]);
}

#[test]
fn loss_has_no_value_without_arrivals() {
    let e = impatient(600 * MS, &[0.0, 0.0]);
    assert_eq!(tables(&e).reals("classes", "loss"), [None]);
}

#[test]
fn the_largest_delay_is_of_the_time_after_the_warm_up() {
    // Three packets at once wait 2 ms; later ones wait for one packet at most.
    let mut e = strict(1, 2 * S);
    e.warmup_ns = S;
    let at = |ns| packet(0, ns, 1500);
    e.flows = vec![at(0), at(0), at(0), at(S), at(S)];
    let t = tables(&e);
    assert_eq!(t.numbers("classes", "delay_max_s"), [0.001]);
    assert_eq!(
        t.reals("flows", "delay_max_s"),
        [None, None, None, Some(0.001), Some(0.002)]
    );
    // Series know nothing of a warm-up.
    assert_eq!(t.numbers("series", "delay_max_s"), [0.002]);
}

/// One TCP flow with so much to send, over a link without loss.
fn transfer(profile: tcp::Profile, bytes: u64) -> Experiment {
    let mut e = strict(1, 10 * S);
    e.link.delay_s = Signal::Constant(0.01);
    e.link.return_delay_ns = 10 * MS;
    let config = tcp::Config {
        bytes_to_send: Some(bytes),
        ..tcp::Config::new(tcp::Algorithm::Cubic, profile)
    };
    e.flows = vec![flow(0, Traffic::Tcp(config))];
    e
}

#[test]
fn a_transfer_delivers_the_bytes_that_were_asked_for() {
    for (profile, bytes, sent_bytes) in [
        // A SYN of 60 bytes, the acknowledgement of its answer of 52, and seven segments of 1448 bytes and 52 of headers; the last one has 10,000 - 6 * 1448 bytes
        // of payload.
        (tcp::Profile::Linux, 10_000, 60 + 52 + 10_000 + 7 * 52),
        (tcp::Profile::Linux, 1448, 60 + 52 + 1500),
        (tcp::Profile::Linux, 1, 60 + 52 + 53),
        // Segments of 1000 bytes and 40 of headers, and a SYN of headers alone.
        (tcp::Profile::Ns2, 10_000, 10_000 + 11 * 40),
        (tcp::Profile::Ns2, 1001, 1001 + 3 * 40),
        (tcp::Profile::Ns2, 1, 81),
    ] {
        let t = tables(&transfer(profile, bytes));
        let good_bits = t.numbers("flows", "goodput_bps")[0] * 10.0;
        assert!(
            (good_bits - 8.0 * bytes as f64).abs() < 1e-6,
            "{profile:?} {bytes}: {good_bits} bits"
        );
        assert_eq!(t.numbers("flows", "delivered_bytes"), [sent_bytes as f64]);
        assert_eq!(t.numbers("flows", "retransmitted_pkts"), [0.0]);
        let in_bins: f64 = t.numbers("flow_series", "goodput_bps").iter().sum();
        assert!((in_bins * 10.0 - good_bits).abs() < 1e-6);
    }
}

#[test]
fn a_last_segment_that_is_lost_is_sent_again_as_short_as_it_was() {
    let mut e = transfer(tcp::Profile::Linux, 1449);
    // The SYN of 60 bytes has left after 0.04 ms and is answered after 20.04 ms. Then its acknowledgement of 52 bytes and the
    // segments leave, by 20.0747, 21.0747 and 21.11 ms; the second segment is lost, and sent again as a probe.
    e.link.loss = steps(&[(0, 0.0), (21_080_000, 1.0), (22 * MS, 0.0)], End::Hold);
    let t = tables(&e);
    assert_eq!(t.numbers("flows", "retransmitted_pkts"), [1.0]);
    assert_eq!(
        t.numbers("flows", "delivered_bytes"),
        [60.0 + 52.0 + 1500.0 + 53.0]
    );
    assert_eq!(
        t.numbers("classes", "sent_bytes"),
        [60.0 + 52.0 + 1500.0 + 2.0 * 53.0]
    );
}

#[test]
fn every_packet_is_accounted_for() {
    let mut e = experiment(
        rate(10e6),
        10_000_000,
        scheduler("pds", &[("limit", "50")], &[&[], &[]]),
        2,
        20 * S,
    );
    e.link.delay_s = Signal::Constant(0.05);
    e.link.return_delay_ns = 50 * MS;
    e.link.loss = Signal::Constant(0.01);
    e.classes[1].limit_pkts = Some(30);
    let packet = Sizes::Mix([(64, 1.0), (576, 1.0), (1500, 2.0)].into());
    e.flows = vec![
        flow(
            0,
            Traffic::Poisson {
                rate_bps: Signal::Constant(6e6),
                packet,
            },
        ),
        flow(
            1,
            Traffic::Tcp(linkweir_sim::tcp::Config::new(
                linkweir_sim::tcp::Algorithm::Cubic,
                linkweir_sim::tcp::Profile::Linux,
            )),
        ),
        flow(1, cbr(5e6, 1500)),
    ];
    for flow in &mut e.flows {
        flow.stop_ns = 15 * S;
    }
    let t = tables(&e);
    let n = |table, column| t.numbers(table, column);
    for flow in 0..3 {
        assert_eq!(
            n("flows", "arrived_pkts")[flow],
            n("flows", "delivered_pkts")[flow]
                + n("flows", "dropped_limit_pkts")[flow]
                + n("flows", "dropped_policy_pkts")[flow]
                + n("flows", "lost_link_pkts")[flow],
            "flow {flow}"
        );
        assert!(n("flows", "lost_link_pkts")[flow] > 0.0);
    }
    for class in 0..2 {
        let dropped =
            n("classes", "dropped_limit_pkts")[class] + n("classes", "dropped_policy_pkts")[class];
        assert_eq!(
            n("classes", "arrived_pkts")[class],
            n("classes", "sent_pkts")[class] + dropped
        );
    }
    assert!(t.reals("flows", "retransmitted_pkts")[1] > Some(0.0));
    assert_eq!(
        t.reals("flows", "timeouts")[0],
        None,
        "a Poisson source knows no timeouts"
    );
    assert!(n("classes", "dropped_policy_pkts").iter().sum::<f64>() > 0.0);
}

#[test]
fn a_run_that_is_stopped_keeps_what_it_has() {
    let mut e = strict(1, 1_000 * S);
    e.interval_ns = S;
    e.flows = vec![flow(0, cbr(6e6, 1500))];
    let (t, outcome) = run_into(
        &e,
        Tables {
            stop_at_ns: Some(50 * S),
            ..Tables::default()
        },
    );
    assert!(
        !outcome.complete && outcome.simulated_ns >= 50 * S && outcome.simulated_ns < 1_000 * S
    );
    let seconds = outcome.simulated_ns as f64 / 1e9;
    assert_eq!(t.numbers("series", "t_s").len(), seconds.ceil() as usize);
    let rate_bps = t.numbers("classes", "rate_bps")[0];
    assert!(
        (rate_bps - 6e6).abs() <= 12_000.0 / seconds,
        "{rate_bps} over the time that was simulated"
    );
}

#[test]
fn a_run_that_is_stopped_in_its_warm_up_has_no_loss() {
    let mut e = strict(1, 1_000 * S);
    e.warmup_ns = 900 * S;
    e.interval_ns = S;
    e.flows = vec![flow(0, cbr(24e6, 1500))];
    let sink = Tables {
        stop_at_ns: Some(50 * S),
        ..Tables::default()
    };
    let t = run_into(&e, sink).0;
    assert!(t.numbers("classes", "dropped_limit_pkts")[0] > 0.0);
    assert_eq!(t.reals("classes", "loss"), [None]);
}

#[test]
fn contradictions_are_refused() {
    let refused = |change: &dyn Fn(&mut Experiment)| {
        let mut e = strict(1, S);
        e.flows = vec![flow(0, cbr(1e6, 1500))];
        change(&mut e);
        match run(&e, &mut Tables::default()) {
            Err(RunError::Invalid(message)) => message,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(&|e| e.flows[0].class = 1).contains("class 1"));
    assert!(refused(&|e| e.warmup_ns = S).contains("warm-up"));
    assert!(refused(&|e| e.link.ring = 0).contains("ring"));
    assert!(refused(&|e| e.scheduler.policy = "best".to_owned()).contains("best"));
    assert!(refused(&|e| e.flows[0].traffic = cbr(1e6, 1 << 20)).contains("bytes"));
    assert!(refused(&|e| e.link.overhead_bytes = -1500).contains("bytes"));

    let mut e = strict(2, S);
    e.scheduler = scheduler("strict", &[], &[&[("level", 3)], &[("level", 3)]]);
    let error = run(&e, &mut Tables::default()).unwrap_err();
    assert!(
        matches!(&error, RunError::Policy(fault) if fault.param == Some("level")),
        "{error}"
    );

    struct Full;
    impl linkweir_sim::table::Sink for Full {
        fn chunk(&mut self, _: linkweir_sim::table::Table) -> Result<(), String> {
            Err("the disk is full".to_owned())
        }
    }
    assert_eq!(
        run(&strict(1, S), &mut Full),
        Err(RunError::Sink("the disk is full".to_owned()))
    );
}

#[test]
fn a_full_class_may_drop_its_oldest_and_be_limited_by_time() {
    let mut e = strict(1, S);
    e.classes[0].limit_pkts = Some(2);
    e.classes[0].full = Full::Head;
    e.flows = (0..5).map(|_| packet(0, 0, 1500)).collect();
    // The first is on the link; the second and third are the oldest when the fourth and fifth come.
    let dropped = |e: &Experiment| tables(e).numbers("flows", "dropped_limit_pkts");
    assert_eq!(dropped(&e), [0.0, 1.0, 1.0, 0.0, 0.0]);
    e.classes[0].limit_pkts = None;
    e.classes[0].full = Full::Tail;
    // The link carries two packets in 2 ms.
    e.classes[0].limit_time = Some(TimeLimit {
        ns: 2 * MS,
        least_bytes: 1500,
    });
    assert_eq!(dropped(&e), [0.0, 0.0, 0.0, 1.0, 1.0]);
    e.classes[0].limit_time = Some(TimeLimit {
        ns: MS / 2,
        least_bytes: 1500,
    });
    assert_eq!(dropped(&e), [0.0, 0.0, 1.0, 1.0, 1.0]);
}

#[test]
fn packets_leave_when_they_are_too_old_also_in_an_outage() {
    let up_ns = 600 * MS;
    let mut e = strict(1, S);
    e.link.capacity = Capacity::Rate(steps(&[(0, 0.0), (up_ns, BPS as f64)], End::Hold));
    e.interval_ns = 100 * MS;
    e.classes[0].max_age_ns = Some(100 * MS);
    let at = |ms: u64| packet(0, ms * MS, 1500);
    e.flows = [0, 10, 15, 450, 560].map(at).into();
    let t = tables(&e);
    // The first is on the link. The next two become too old at 110 and 115 ms, the fourth at 550 ms.
    let mut expected = [0.0; 10];
    (expected[1], expected[5]) = (2.0, 1.0);
    assert_eq!(t.numbers("series", "dropped_age_pkts"), expected);
    assert_eq!(
        t.numbers("flows", "dropped_age_pkts"),
        [0.0, 1.0, 1.0, 1.0, 0.0]
    );
    assert_eq!(t.numbers("series", "backlog_pkts")[..3], [2.0, 0.0, 0.0]);
    assert_eq!(t.numbers("classes", "sent_pkts"), [2.0]);
    assert_eq!(t.numbers("classes", "loss"), [0.6]);
    // The last waits until the first has left, at 601 ms.
    assert_eq!(t.numbers("classes", "delay_max_s"), [0.041]);
}

#[test]
fn a_least_share_is_kept_where_the_policy_gives_nothing() {
    let mut e = strict(2, S);
    e.flows = vec![flow(0, greedy(1500)), flow(1, greedy(1500))];
    e.classes[1].least_ppm = 50_000;
    // Twenty of the others' packets pay for the first, from then on nineteen, as its own pays a twentieth of the next.
    assert_eq!(tables(&e).numbers("classes", "sent_pkts"), [951.0, 49.0]);
}

#[test]
fn packets_of_less_than_a_nanosecond_take_their_time_on_the_link() {
    // At 400 Gbit/s 49 bytes take 0.98 ns, and a nanosecond is the least time between events.
    const BPS: f64 = 400e9;
    const BIN_NS: u64 = 10;
    for bytes in [20, 49, 50, 64] {
        let mut e = strict(1, 200_000);
        e.link.capacity = Capacity::Rate(Signal::Constant(BPS));
        e.link.nominal_bps = BPS as u64;
        e.interval_ns = BIN_NS;
        e.flows = vec![flow(
            0,
            Traffic::Poisson {
                rate_bps: Signal::Constant(0.8 * BPS),
                packet: Sizes::Fixed(bytes),
            },
        )];
        let t = tables(&e);
        // No bin carries more than the link can in its time, and one packet, which may begin in the one before.
        let packet_bits = 8.0 * f64::from(bytes);
        let most = BPS * BIN_NS as f64 * 1e-9 + packet_bits;
        for (bin, used_bps) in t.numbers("link", "used_bps").iter().enumerate() {
            let bits = used_bps * BIN_NS as f64 * 1e-9;
            assert!(
                bits <= most,
                "{bytes} bytes, bin {bin}: {bits} of {most} bit"
            );
        }
        // M/D/1 (Pollaczek and Khinchine): a packet waits for load / (2 (1 - load)) = 2 times the packet's own time on
        // average. The instants at which it arrives and leaves the queue are those of a clock that counts nanoseconds.
        let expected_ns = 2.0 * packet_bits / BPS * 1e9;
        let mean_ns = t.numbers("classes", "delay_mean_s")[0] * 1e9;
        assert!(
            (mean_ns - expected_ns).abs() < 0.5 + 0.15 * expected_ns,
            "{bytes} bytes: {mean_ns} ns instead of {expected_ns}"
        );
    }
}
