// SPDX-License-Identifier: BSD-3-Clause
//! Measurements that are made packet by packet: distributions of delays, play-out buffers, the log of packets.

use linkweir_sim::experiment::{Capacity, End, Experiment, Playout, Signal, Traffic};
use linkweir_sim::table::Column;
use linkweir_sim::tcp;

use crate::build::*;

const BPS: u64 = 12_000_000;

/// 12 Mbit/s, on which 1500 bytes take 1 ms, and 10 ms on the way.
fn strict(nclasses: usize, duration_ns: u64) -> Experiment {
    let queues = vec![&[][..]; nclasses];
    let policy = scheduler("strict", &[], &queues);
    let mut e = experiment(rate(BPS as f64), BPS, policy, nclasses, duration_ns);
    e.link.delay_s = Signal::Constant(0.01);
    e
}

fn names(found: &Tables, table: &str, column: &str) -> Vec<String> {
    match found.column(table, column) {
        Column::Name(values) => values.clone(),
        other => panic!("{table}.{column} is {other:?}"),
    }
}

/// Packets and bounds, ms, of the buckets of one distribution.
fn buckets(found: &Tables, class: &str, flow: &str, kind: &str) -> Vec<(u64, f64, f64)> {
    let owners = names(found, "delays", "class")
        .into_iter()
        .zip(names(found, "delays", "flow"))
        .zip(names(found, "delays", "kind"));
    let bounds = found
        .numbers("delays", "lower_s")
        .into_iter()
        .zip(found.numbers("delays", "upper_s"));
    owners
        .zip(bounds)
        .zip(found.numbers("delays", "count_pkts"))
        .filter(|((((c, f), k), _), _)| (c.as_str(), f.as_str(), k.as_str()) == (class, flow, kind))
        .map(|((_, (lower_s, upper_s)), pkts)| (pkts as u64, lower_s * 1e3, upper_s * 1e3))
        .collect()
}

/// Whether a distribution holds these delays, ms, with these numbers of packets.
fn holds(found: &[(u64, f64, f64)], wanted: &[(u64, f64)]) {
    assert_eq!(found.len(), wanted.len(), "{found:?}, not {wanted:?}");
    for ((pkts, lower_ms, upper_ms), (wanted_pkts, delay_ms)) in found.iter().zip(wanted) {
        assert_eq!(pkts, wanted_pkts, "{found:?}, not {wanted:?}");
        let within = *lower_ms <= *delay_ms && *delay_ms < *upper_ms;
        assert!(within, "{found:?}, not {wanted:?}");
        assert!(
            upper_ms - lower_ms <= lower_ms.max(256e-6) / 128.0,
            "{found:?}"
        );
    }
}

#[test]
fn delays_of_classes_and_of_a_flow() {
    let mut e = strict(2, S);
    // 0..1 ms f1, 1..2 ms the urgent one, 2..3 and 3..4 ms the other two.
    e.flows = vec![
        packet(1, 0, 1500),
        packet(1, 0, 1500),
        packet(1, 0, 1500),
        packet(0, 500_000, 1500),
    ];
    e.flows[2].name = "asked".to_owned();
    e.flows[2].measures.delays = true;
    let found = tables(&e);
    let of = |class, flow, kind| buckets(&found, class, flow, kind);
    holds(&of("c0", "", "queueing"), &[(1, 0.5)]);
    holds(&of("c0", "", "one-way"), &[(1, 11.5)]);
    holds(&of("c1", "", "queueing"), &[(1, 0.0), (1, 2.0), (1, 3.0)]);
    holds(&of("c1", "", "one-way"), &[(1, 11.0), (1, 13.0), (1, 14.0)]);
    holds(&of("c1", "asked", "queueing"), &[(1, 3.0)]);
    holds(&of("c1", "asked", "one-way"), &[(1, 14.0)]);
    assert_eq!(found.numbers("delays", "count_pkts").len(), 10);
}

#[test]
fn delays_count_from_the_warm_up() {
    let mut e = strict(1, S);
    e.flows = vec![packet(0, 0, 1500), packet(0, 500 * MS, 1500)];
    e.flows[0].measures.delays = true;
    e.flows[1].name = "later".to_owned();
    e.flows[1].measures.delays = true;
    e.warmup_ns = 400 * MS;
    let found = tables(&e);
    holds(&buckets(&found, "c0", "", "queueing"), &[(1, 0.0)]);
    assert_eq!(buckets(&found, "c0", "f0", "queueing"), []);
    assert_eq!(buckets(&found, "c0", "f0", "one-way"), []);
    holds(&buckets(&found, "c0", "later", "queueing"), &[(1, 0.0)]);
    holds(&buckets(&found, "c0", "later", "one-way"), &[(1, 11.0)]);
}

/// A flow of 200 bytes each 20 ms from 0 on, with these buffers. On the link a packet takes 0.1333 ms and 10 ms.
fn call(duration_ns: u64, buffers_ms: &[u64]) -> Experiment {
    let mut e = strict(1, duration_ns);
    let mut voice = flow(0, cbr(80e3, 200));
    voice.measures.playout = buffers_ms
        .iter()
        .map(|ms| Playout {
            name: format!("{ms}ms"),
            buffer_ns: Some(ms * MS),
        })
        .collect();
    e.flows = vec![voice];
    e
}

/// The link carries nothing between these times, s.
fn outage(e: &mut Experiment, from_ns: u64, to_ns: u64) {
    e.link.capacity = Capacity::Rate(Signal::Steps {
        points: [(0, BPS as f64), (from_ns, 0.0), (to_ns, BPS as f64)].into(),
        end: End::Hold,
    });
}

/// Due, lost and late packets, and gaps, of each row of table `voice`.
fn heard(found: &Tables) -> Vec<[u64; 4]> {
    let column = |name| found.numbers("voice", name);
    let columns = ["due_pkts", "lost_pkts", "late_pkts", "gaps"].map(column);
    (0..columns[0].len())
        .map(|row| [0, 1, 2, 3].map(|at: usize| columns[at][row] as u64))
        .collect()
}

#[test]
fn a_fixed_buffer_loses_what_comes_later() {
    let mut e = call(10 * S, &[60, 200]);
    outage(&mut e, S, S + 100 * MS);
    // The packet of 1.00 s comes 100 ms later than the others, the next ones 80.13, 60.27, 40.40 and 20.53 ms.
    let found = tables(&e);
    assert_eq!(names(&found, "voice", "buffer"), ["60ms", "200ms"]);
    assert_eq!(heard(&found), [[500, 0, 3, 1], [500, 0, 0, 0]]);
    let burst_r = found.numbers("voice", "burst_r");
    assert!((burst_r[0] - 3.0 * 497.0 / 500.0).abs() < 1e-12);
    assert_eq!(burst_r[1], 1.0);
    assert_eq!(found.numbers("voice", "loss"), [3.0 / 500.0, 0.0]);
    let delay_ms = found.numbers("voice", "delay_s").map_ms();
    assert_eq!(delay_ms, [70.133, 210.133]);

    // One packet is on the device and two wait; those of 1.06, 1.08 and 1.10 s are lost, in the same gap.
    e.classes[0].limit_pkts = Some(2);
    assert_eq!(heard(&tables(&e)), [[500, 3, 3, 1], [500, 3, 0, 1]]);
}

trait Milliseconds {
    fn map_ms(self) -> Vec<f64>;
}

impl Milliseconds for Vec<f64> {
    fn map_ms(self) -> Vec<f64> {
        self.into_iter().map(|s| (s * 1e6).round() / 1e3).collect()
    }
}

#[test]
fn packets_that_never_come_are_late() {
    let mut e = call(10 * S, &[60]);
    outage(&mut e, S, 20 * S);
    // Those of 1.00 .. 9.92 s should have been played before 10 s; those of 9.94, 9.96 and 9.98 s not yet.
    assert_eq!(heard(&tables(&e)), [[497, 0, 447, 1]]);
    // The link loses all: nothing says when a packet is due, but it is lost.
    let mut e = call(10 * S, &[60]);
    e.link.loss = Signal::Constant(1.0);
    let found = tables(&e);
    assert_eq!(heard(&found), [[500, 500, 0, 1]]);
    assert_eq!(found.reals("voice", "delay_s"), [None]);
    assert_eq!(found.numbers("voice", "burst_r"), [1.0]);
}

#[test]
fn intervals_begin_at_the_warm_up_and_the_last_one_takes_the_rest() {
    let mut e = call(28 * S, &[60]);
    e.warmup_ns = 3 * S;
    outage(&mut e, 12 * S + 960 * MS, 13 * S + 100 * MS);
    // Late are the packets of 12.96 and 12.98 s, and those of 13.00, 13.02 and 13.04 s: a gap in each interval.
    let found = tables(&e);
    assert_eq!(found.numbers("voice", "t_s"), [3.0, 13.0]);
    assert_eq!(heard(&found), [[500, 0, 2, 1], [750, 0, 3, 1]]);
}

#[test]
fn the_adaptive_buffer_follows_the_delay() {
    let mut e = call(20 * S, &[]);
    e.flows[0].measures.playout = vec![Playout {
        name: "adaptive".to_owned(),
        buffer_ns: None,
    }];
    e.link.delay_s = Signal::Steps {
        points: [(0, 0.01), (10 * S + 500 * MS, 0.31)].into(),
        end: End::Hold,
    };
    let found = tables(&e);
    let delay_s = found.numbers("voice", "delay_s");
    // 15 ms of variation at the start, then none: 10 ms above the delay of 10.13 ms, but for the first second.
    let first_s = 0.010133 + (0.060 + 9.0 * 0.010) / 10.0;
    assert!((delay_s[0] - first_s).abs() < 1e-3, "{}", delay_s[0]);
    // The play-out delay is set at 10 s and at 11 s: the packets from the step until then are late.
    let [before, after] = heard(&found)[..] else {
        panic!("two intervals")
    };
    assert_eq!(before, [500, 0, 0, 0]);
    // Those of the last 310 ms are still under way.
    assert_eq!(after, [485, 0, 25, 1]);
    assert!((0.27..0.33).contains(&delay_s[1]), "{}", delay_s[1]);
}

/// Rows of the log: time in us, event with its reason, flow, and number.
fn log(found: &Tables) -> Vec<(f64, String, String, f64)> {
    let steps = names(found, "packets", "event");
    let reasons = names(found, "packets", "reason");
    let steps = steps.iter().zip(reasons).map(|(s, r)| format!("{s} {r}"));
    found
        .numbers("packets", "t_ns")
        .into_iter()
        .map(|ns| ns / 1e3)
        .zip(steps)
        .zip(names(found, "packets", "flow"))
        .zip(found.numbers("packets", "number"))
        .map(|(((t_us, step), flow), number)| (t_us, step.trim().to_owned(), flow, number))
        .collect()
}

#[test]
fn the_log_has_every_step_of_every_packet() {
    let mut e = strict(1, S);
    e.classes[0].limit_pkts = Some(1);
    e.log_rows = Some(1000);
    // The first is sent, the second waits, the third does not fit.
    let mut burst = flow(0, cbr(1e9, 1500));
    burst.stop_ns = 25_000;
    burst.access_delay_ns = 5000;
    e.flows = vec![burst];
    let wanted = [
        (0.0, "created", 0.0),
        (5.0, "enqueued", 0.0),
        (5.0, "sent", 0.0),
        (12.0, "created", 1.0),
        (17.0, "enqueued", 1.0),
        (24.0, "created", 2.0),
        (29.0, "enqueued", 2.0),
        (29.0, "dropped limit", 2.0),
        (1005.0, "sent", 1.0),
        (11_005.0, "delivered", 0.0),
        (12_005.0, "delivered", 1.0),
    ];
    let wanted = wanted.map(|(t, step, number)| (t, step.to_owned(), "f0".to_owned(), number));
    assert_eq!(log(&tables(&e)), wanted);

    e.link.loss = Signal::Constant(1.0);
    let found = log(&tables(&e));
    assert_eq!(found.len(), 11);
    let (t_us, step, _, number) = &found[8];
    assert_eq!(
        (*t_us, step.as_str(), *number),
        (1005.0, "dropped link", 0.0)
    );

    // Cut behind six rows, and said so.
    e.log_rows = Some(6);
    let (cut, outcome) = run_into(&e, Tables::default());
    assert_eq!(log(&cut), found[..6]);
    assert_eq!(outcome.log_cut_ns, Some(29_000));
    e.log_rows = Some(11);
    assert_eq!(run_into(&e, Tables::default()).1.log_cut_ns, None);
}

#[test]
fn the_log_changes_nothing_and_agrees_with_the_totals() {
    let mut e = strict(2, 5 * S);
    e.link.loss = Signal::Constant(0.02);
    e.classes[1].limit_pkts = Some(20);
    e.flows = vec![
        flow(0, cbr(1e6, 200)),
        flow(
            1,
            Traffic::Tcp(tcp::Config::new(tcp::Algorithm::Cubic, tcp::Profile::Linux)),
        ),
        flow(1, greedy(1500)),
    ];
    e.flows[2].name = "greedy".to_owned();
    if let Traffic::Greedy { backlog_pkts, .. } = &mut e.flows[2].traffic {
        *backlog_pkts = 5;
    }
    let plain = tables(&e);
    e.log_rows = Some(u64::MAX);
    let found = tables(&e);
    for table in plain.names() {
        assert_eq!(plain.columns(table), found.columns(table), "{table}");
    }
    let steps = log(&found);
    for (index, flow) in e.flows.iter().enumerate() {
        let count = |step: &str| {
            let own = steps.iter().filter(|(_, _, name, _)| *name == flow.name);
            own.filter(|(_, found, _, _)| found == step).count() as f64
        };
        let total = |column| found.numbers("flows", column)[index];
        assert!(count("delivered") > 100.0);
        assert_eq!(count("created"), total("arrived_pkts"));
        assert_eq!(count("enqueued"), total("arrived_pkts"));
        assert_eq!(count("delivered"), total("delivered_pkts"));
        assert_eq!(count("dropped limit"), total("dropped_limit_pkts"));
        assert_eq!(count("dropped link"), total("lost_link_pkts"));
    }
    // Of TCP the number is the segment's, which a retransmission repeats.
    let again = found.numbers("packets", "retransmission");
    let repeated = steps
        .iter()
        .zip(&again)
        .filter(|((_, step, name, _), again)| step == "created" && name == "f1" && **again > 0.0);
    assert_eq!(
        Some(repeated.count() as f64),
        found.reals("flows", "retransmitted_pkts")[1]
    );
}
