// SPDX-License-Identifier: BSD-3-Clause
//! Runs over several links.

use std::path::Path;

use linkweir_sim::experiment::{
    Amount, Application, Arrivals, Distribution, Experiment, Flow, Outages, Reorder, Session,
    Signal, Traffic,
};
use linkweir_sim::network::{Hop, Network, OnBreak, Routed, Station, Way};
use linkweir_sim::table::Column;
use linkweir_sim::{run_network, scenario, tcp, RunError};

use crate::build::*;

/// The experiment as a network of one link.
pub fn of_one_link(e: &Experiment) -> Network {
    let routed = |flow: &Flow| Routed {
        there: vec![Way {
            from_ns: 0,
            hops: vec![Hop {
                link: 0,
                class: flow.class as u32,
            }],
        }],
        back: Vec::new(),
        flow: flow.clone(),
    };
    Network {
        name: e.name.clone(),
        duration_ns: e.duration_ns,
        warmup_ns: e.warmup_ns,
        interval_ns: e.interval_ns,
        seed: e.seed,
        flows: e.flows.iter().map(routed).collect(),
        links: vec![Station {
            name: "link".to_owned(),
            link: e.link.clone(),
            scheduler: e.scheduler.clone(),
            classes: e.classes.clone(),
            absent: Outages::default(),
        }],
        on_break: OnBreak::Lose,
        log_rows: e.log_rows,
    }
}

pub fn network_tables(network: &Network, threads: usize) -> Tables {
    let mut sink = Tables::default();
    run_network(network, threads, &mut sink).unwrap_or_else(|e| panic!("{e}"));
    sink
}

#[test]
fn distributions_that_are_not_wanted_are_left_out_and_the_other_tables_stay() {
    let fifo = scheduler("fifo", &[], &[&[]]);
    let mut one = experiment(rate(1e6), 1_000_000, fifo, 1, S);
    one.flows = vec![flow(0, cbr(5e5, 1000))];
    one.flows[0].measures.delays = true;
    let without = || Tables {
        unwanted: Some("delays"),
        ..Tables::default()
    };
    let (alone, _) = run_into(&one, without());
    let mut linked = without();
    run_network(&of_one_link(&one), 1, &mut linked).unwrap();
    for (found, mut all) in [
        (alone, tables(&one)),
        (linked, network_tables(&of_one_link(&one), 1)),
    ] {
        assert!(all.tables.remove("delays").is_some());
        assert_eq!(found.tables, all.tables);
    }
}

/// The columns of a network's table, without that of the link.
fn without_link(t: &Tables, table: &str) -> Vec<(String, Column)> {
    let Some(columns) = t.tables.get(table) else {
        panic!("there is no {table}, only {:?}", t.names());
    };
    let only = ["link", "absent_pkts", "direction"];
    let columns = columns.iter();
    columns
        .filter(|(name, _)| !only.contains(&name.as_str()))
        .cloned()
        .collect()
}

/// A column of numbers as real ones: statistics are whole with one link.
fn real(column: &Column) -> Column {
    match column {
        Column::Whole(values) => Column::Real(values.iter().map(|v| Some(*v as f64)).collect()),
        other => other.clone(),
    }
}

/// One link gives what it gives alone.
pub fn is_the_same_as_alone(name: &str, e: &Experiment) {
    let (alone, among) = (tables(e), network_tables(&of_one_link(e), 1));
    for table in alone.names() {
        let found = without_link(&among, table);
        let expected = alone.columns(table);
        assert_eq!(found.len(), expected.len(), "{name}: {table}");
        for ((column, found), (_, expected)) in found.iter().zip(expected) {
            assert_eq!(real(found), real(expected), "{name}: {table}.{column}");
        }
    }
}

/// A fifo link for packets of all kinds.
fn station(name: &str, bps: f64, delay_s: f64) -> Station {
    let e = experiment(rate(bps), bps as u64, scheduler("fifo", &[], &[&[]]), 1, S);
    let mut link = e.link;
    link.delay_s = Signal::Constant(delay_s);
    Station {
        name: name.to_owned(),
        link,
        scheduler: e.scheduler,
        classes: e.classes,
        absent: Outages::default(),
    }
}

/// A network of these links without flows.
fn network(links: Vec<Station>, duration_ns: u64) -> Network {
    Network {
        name: "test".to_owned(),
        duration_ns,
        warmup_ns: 0,
        interval_ns: duration_ns,
        seed: 1,
        links,
        flows: Vec::new(),
        on_break: OnBreak::Lose,
        log_rows: None,
    }
}

/// A way over class 0 of these links.
fn way(from_ns: u64, links: &[u32]) -> Way {
    let hops = links.iter().map(|link| Hop {
        link: *link,
        class: 0,
    });
    Way {
        from_ns,
        hops: hops.collect(),
    }
}

fn routed(flow: Flow, there: &[u32], back: &[u32]) -> Routed {
    Routed {
        flow,
        there: vec![way(0, there)],
        back: if back.is_empty() {
            Vec::new()
        } else {
            vec![way(0, back)]
        },
    }
}

fn cubic() -> tcp::Config {
    tcp::Config::new(tcp::Algorithm::Cubic, tcp::Profile::Linux)
}

/// Row of a flow at a link in table `hops`, there or back.
fn hop_row(t: &Tables, flow: &str, link: &str, direction: &str) -> usize {
    let names = |column| match t.column("hops", column) {
        Column::Name(names) => names.clone(),
        other => panic!("{column} is {other:?}"),
    };
    let (flows, links, directions) = (names("flow"), names("link"), names("direction"));
    let rows = 0..flows.len();
    let mut rows = rows.filter(|row| {
        (flows[*row].as_str(), links[*row].as_str()) == (flow, link)
            && directions[*row] == direction
    });
    let found = rows.next();
    found.unwrap_or_else(|| panic!("{flow} crosses {link} on its way {direction}"))
}

#[test]
fn a_packet_takes_the_time_of_each_link() {
    // 1000 bytes take 8 ms at 1 Mbit/s and 4 ms at 2 Mbit/s.
    let links = vec![station("a", 1e6, 0.03), station("b", 2e6, 0.05)];
    let mut n = network(links, S);
    n.flows = vec![routed(packet(0, 100 * MS, 1000), &[0, 1], &[])];
    n.flows[0].flow.access_delay_ns = 7 * MS;
    let t = network_tables(&n, 1);
    let delay_s = t.numbers("flows", "delay_mean_s")[0];
    assert!((delay_s - 0.099).abs() < 1e-12, "{delay_s}");
    assert_eq!(t.numbers("flows", "delivered_pkts"), [1.0]);
    assert_eq!(t.numbers("hops", "sent_pkts"), [1.0, 1.0]);
}

#[test]
fn the_log_has_each_step_at_each_link_in_the_order_of_time() {
    let links = vec![station("a", 8e6, 0.01), station("b", 4e6, 0.02)];
    let mut n = network(links, S);
    n.log_rows = Some(1_000);
    n.flows = vec![routed(packet(0, 0, 1000), &[0, 1], &[])];
    let t = network_tables(&n, 1);
    let name = |column| match t.column("packets", column) {
        Column::Name(names) => names.clone(),
        other => panic!("{column} is {other:?}"),
    };
    let events = [
        "created",
        "enqueued",
        "sent",
        "enqueued",
        "sent",
        "delivered",
    ];
    assert_eq!(name("event"), events);
    assert_eq!(name("link"), ["", "a", "a", "b", "b", ""]);
    let ms = [0.0, 0.0, 0.0, 11.0, 11.0, 33.0];
    assert_eq!(t.numbers("packets", "t_ns"), ms.map(|ms| ms * 1e6));
}

#[test]
fn the_second_link_queues_what_comes_together() {
    // Two packets leave the first link 1 ms apart and take 8 ms each on the second.
    let links = vec![station("a", 8e6, 0.01), station("b", 1e6, 0.0)];
    let mut n = network(links, S);
    n.flows = vec![
        routed(packet(0, 0, 1000), &[0, 1], &[]),
        routed(packet(0, 0, 1000), &[0, 1], &[]),
    ];
    n.flows[1].flow.name = "second".to_owned();
    let t = network_tables(&n, 1);
    let waits = t.numbers("hops", "delay_max_s");
    assert_eq!(waits, [0.0, 0.0, 0.001, 0.007]);
    assert_eq!(t.numbers("flows", "delay_mean_s"), [0.019, 0.027]);
}

#[test]
fn acknowledgements_wait_in_the_queue_of_the_way_back() {
    // The way back is 300 kbit/s: with 52 bytes for two segments of 1500 it lets 2.2 Mbit/s through.
    let mut links = vec![station("down", 20e6, 0.02), station("up", 300e3, 0.02)];
    links[1].classes[0].limit_pkts = Some(2000);
    let mut n = network(links, 20 * S);
    n.warmup_ns = 5 * S;
    let mut tcp = cubic();
    tcp.max_window_segments = 400;
    tcp.quick_ack_segments = 0;
    n.flows = vec![routed(flow(0, Traffic::Tcp(tcp)), &[0], &[1])];
    let t = network_tables(&n, 1);
    let (down, up) = (
        hop_row(&t, "f0", "down", "there"),
        hop_row(&t, "f0", "up", "back"),
    );
    let sent = t.numbers("hops", "sent_pkts");
    let waits = t.reals("hops", "delay_mean_s");
    // Nothing is lost, so acknowledgements have 52 bytes, and the way back is always busy: 300,000 / 416 a second.
    let expected = 15.0 * 300e3 / 416.0;
    assert!(
        (sent[up] / expected - 1.0).abs() < 0.01,
        "{} of {expected}",
        sent[up]
    );
    assert!(
        (sent[down] / (2.0 * sent[up]) - 1.0).abs() < 0.02,
        "{sent:?}"
    );
    assert!(
        waits[up].unwrap() > 0.1 && waits[down].unwrap() < 0.01,
        "{waits:?}"
    );
    let bytes = t.numbers("classes", "sent_bytes");
    assert_eq!(bytes[1], 52.0 * sent[up]);
    // The round trip: propagation, transmission, both queues, and the segments that an acknowledgement waits for.
    let rtt_s = t.numbers("flows", "srtt_mean_s")[0];
    let sum_s = 0.04 + 0.0006 + 0.001387 + waits[up].unwrap() + waits[down].unwrap();
    assert!(
        rtt_s > sum_s && rtt_s < sum_s + 0.005,
        "{rtt_s} for {sum_s}"
    );
}

/// Connections opened by the receiver, with requests.
fn requests(think_ms: f64) -> Traffic {
    let fixed = |value: f64| Amount {
        distribution: Distribution::Fixed(value),
        least: 0.0,
        most: 1e12,
    };
    let mut tcp = cubic();
    tcp.bytes_to_send = Some(0);
    Traffic::Application(Box::new(Application {
        tcp,
        session: Session::Requests {
            response: fixed(20_000.0),
            server_ns: fixed(0.0),
            think_ns: fixed(think_ms * 1e6),
        },
    }))
}

#[test]
fn requests_take_the_way_back_and_are_sent_again_when_lost() {
    for (loss, least, most) in [(0.0, 105.0, 115.0), (0.3, 20.0, 90.0)] {
        let mut links = vec![station("down", 20e6, 0.01), station("up", 1e6, 0.01)];
        links[1].link.loss = Signal::Constant(loss);
        let mut n = network(links, 20 * S);
        n.flows = vec![routed(flow(0, requests(150.0)), &[0], &[1])];
        let t = network_tables(&n, 1);
        let finished = t.numbers("completions", "finished")[0];
        assert!(
            (least..=most).contains(&finished),
            "{finished} at loss {loss}"
        );
        let lost = t.numbers("hops", "lost_pkts")[1];
        assert_eq!(lost > 0.0, loss > 0.0);
    }
}

#[test]
fn transfers_end_although_their_acknowledgements_are_lost() {
    let mut links = vec![station("down", 20e6, 0.01), station("up", 1e6, 0.01)];
    links[1].link.loss = Signal::Constant(0.5);
    let mut n = network(links, 30 * S);
    let size = Amount {
        distribution: Distribution::Fixed(10_000.0),
        least: 0.0,
        most: 1e12,
    };
    let mut tcp = cubic();
    tcp.bytes_to_send = Some(0);
    let arrivals = Arrivals::Periodic { every_ns: 100 * MS };
    let session = Session::Transfers {
        arrivals,
        size,
        concurrent: 40,
    };
    let transfers = Traffic::Application(Box::new(Application { tcp, session }));
    n.flows = vec![routed(flow(0, transfers), &[0], &[1])];
    let t = network_tables(&n, 1);
    // Places come free again, so none is refused.
    assert_eq!(t.numbers("completions", "refused"), [0.0]);
    assert!(t.numbers("completions", "finished")[0] > 270.0);
}

#[test]
fn ways_change_and_packets_keep_theirs() {
    // 10 packets a second; from 1 s on over b, whose delay is shorter, and from 2 s on nowhere.
    let links = vec![station("a", 8e6, 0.3), station("b", 8e6, 0.1)];
    let mut n = network(links, 4 * S);
    n.flows = vec![Routed {
        flow: flow(0, cbr(80e3, 1000)),
        there: vec![way(0, &[0]), way(S, &[1]), way(2 * S, &[])],
        back: Vec::new(),
    }];
    let t = network_tables(&n, 1);
    assert_eq!(t.numbers("hops", "sent_pkts"), [10.0, 10.0]);
    let delay_s = t.numbers("flows", "delay_mean_s")[0];
    assert!((delay_s - 0.201).abs() < 1e-12, "{delay_s}");
    assert_eq!(t.numbers("flows", "arrived_pkts"), [40.0]);
    assert_eq!(t.numbers("flows", "lost_link_pkts"), [20.0]);
    assert_eq!(t.numbers("flows", "delivered_pkts"), [20.0]);
}

#[test]
fn a_link_at_several_positions_of_a_flows_ways_has_one_row() {
    // Three packets at once wait 0, 8 and 16 ms at b, their first link; five wait 0 to 4 ms at a, and 0 to 28 ms at b, their
    // second.
    let links = vec![station("a", 8e6, 0.1), station("b", 1e6, 0.1)];
    let mut n = network(links, 4 * S);
    let times_ns = [vec![0; 3], vec![S; 5]].concat();
    let packets = times_ns.into_iter().map(|at_ns| (at_ns, 1000));
    let replay = Traffic::Replay {
        packets: packets.collect(),
        period_ns: None,
    };
    n.flows = vec![Routed {
        flow: flow(0, replay),
        there: vec![way(0, &[1]), way(S, &[0, 1])],
        back: Vec::new(),
    }];
    let t = network_tables(&n, 1);
    let Column::Name(names) = t.column("hops", "link") else {
        panic!("links have names");
    };
    assert_eq!(names[..], ["b", "a"]);
    assert_eq!(t.numbers("hops", "hop"), [1.0, 1.0]);
    assert_eq!(t.numbers("hops", "arrived_pkts"), [8.0, 5.0]);
    let waits_ms = [0.0, 8.0, 16.0, 0.0, 7.0, 14.0, 21.0, 28.0];
    let of_b = |column| t.numbers("hops", column)[0] * 1e3;
    assert!((of_b("delay_mean_s") - waits_ms.iter().sum::<f64>() / 8.0).abs() < 1e-9);
    assert_eq!(of_b("delay_max_s"), 28.0);
    // The eighth of eight.
    assert!((of_b("delay_p95_s") / 28.0 - 1.0).abs() < 0.02);
}

#[test]
fn a_packet_takes_the_way_of_when_it_reaches_the_network() {
    // a gives way to b at 1 s. A packet created at 0.7 s reaches the network at 1.2 s.
    let mut links = vec![station("a", 8e6, 0.3), station("b", 8e6, 0.1)];
    links[0].absent = [(S, 4 * S)].into();
    let mut n = network(links, 4 * S);
    let mut source = packet(0, 700 * MS, 1000);
    source.access_delay_ns = 500 * MS;
    n.flows = vec![Routed {
        flow: source,
        there: vec![way(0, &[0]), way(S, &[1])],
        back: Vec::new(),
    }];
    let t = network_tables(&n, 1);
    assert_eq!(t.numbers("flows", "absent_pkts"), [0.0]);
    assert_eq!(t.numbers("flows", "delivered_pkts"), [1.0]);
    assert_eq!(t.numbers("hops", "sent_pkts"), [0.0, 1.0]);
    let delay_s = t.numbers("flows", "delay_mean_s")[0];
    assert!((delay_s - 0.601).abs() < 1e-12, "{delay_s}");
}

#[test]
fn what_is_held_back_on_a_link_that_goes_is_lost() {
    // The link sends a packet at 0.801 s and holds it back until 1.301 s. In between the link goes.
    for (on_break, delivered) in [(OnBreak::Lose, 0.0), (OnBreak::Deliver, 1.0)] {
        let mut links = vec![station("a", 8e6, 0.01)];
        links[0].absent = [(S, S + 200 * MS)].into();
        links[0].link.reorder = Some(Reorder {
            probability: 1.0,
            delay_ns: 500 * MS,
        });
        let mut n = network(links, 4 * S);
        n.on_break = on_break;
        n.flows = vec![routed(packet(0, 800 * MS, 1000), &[0], &[])];
        let t = network_tables(&n, 1);
        let of = |column| t.numbers("flows", column)[0];
        assert_eq!(of("delivered_pkts"), delivered, "{on_break:?}");
        assert_eq!(of("lost_link_pkts"), 1.0 - delivered, "{on_break:?}");
    }
}

#[test]
fn what_is_on_a_link_that_goes_is_lost_or_delivered() {
    // A packet every 10 ms that takes 20 ms: at 1 s, 100 have come, 50 have left, of which 25 are on the way, and 50 wait.
    for (on_break, delivered) in [(OnBreak::Lose, 25.0), (OnBreak::Deliver, 100.0)] {
        let mut links = vec![station("a", 400e3, 0.5)];
        links[0].absent = [(S, 20 * S)].into();
        let mut n = network(links, 10 * S);
        n.on_break = on_break;
        let mut source = flow(0, cbr(800e3, 1000));
        source.stop_ns = 2 * S;
        n.flows = vec![routed(source, &[0], &[])];
        let t = network_tables(&n, 1);
        let of = |table, column| t.numbers(table, column)[0];
        let got = of("flows", "delivered_pkts");
        assert!((got - delivered).abs() <= 1.0, "{on_break:?}: {got}");
        assert_eq!(of("classes", "arrived_pkts"), 200.0);
        let lost = of("classes", "absent_pkts") + of("classes", "lost_link_pkts");
        assert_eq!(got + lost, 200.0, "{on_break:?}");
        for table in ["hops", "flows"] {
            let absent = of(table, "absent_pkts");
            assert_eq!(absent, of("classes", "absent_pkts"), "{table}");
        }
        let waiting = of("classes", "arrived_pkts") - of("classes", "sent_pkts");
        assert_eq!(of("classes", "absent_pkts"), waiting, "{on_break:?}");
    }
}

#[test]
fn a_link_is_there_again() {
    let mut links = vec![station("a", 8e6, 0.01)];
    links[0].absent = [(S, 2 * S), (3 * S, 4 * S)].into();
    let mut n = network(links, 5 * S);
    n.interval_ns = S;
    let mut steady = flow(0, cbr(80e3, 1000));
    steady.name = "steady".to_owned();
    n.flows = vec![
        routed(flow(0, greedy(1000)), &[0], &[]),
        routed(steady, &[0], &[]),
    ];
    let t = network_tables(&n, 1);
    let sent_bps = t.numbers("series", "sent_bps");
    for (bin, bps) in sent_bps.iter().enumerate() {
        let expected = if bin % 2 == 0 { 8e6 } else { 0.0 };
        // As many as the device holds are sent twice or not at all.
        assert!((bps - expected).abs() < 10e3, "bin {bin}: {bps}");
    }
}

#[test]
fn contradictions_are_refused() {
    let whole = || {
        let mut n = network(vec![station("a", 1e6, 0.0)], S);
        n.flows = vec![routed(flow(0, cbr(1e5, 100)), &[0], &[])];
        n
    };
    let refused = |what: &str, change: &dyn Fn(&mut Network)| {
        let mut n = whole();
        change(&mut n);
        match run_network(&n, 1, &mut Tables::default()) {
            Err(RunError::Invalid(message)) => {
                assert!(message.contains(what), "{message} has no {what}");
            }
            other => panic!("{what}: {other:?}"),
        }
    };
    refused("there must be a link", &|n| {
        n.links.clear();
        n.flows.clear();
    });
    refused("no link 1", &|n| n.flows[0].there[0].hops[0].link = 1);
    refused("no class 3", &|n| n.flows[0].there[0].hops[0].class = 3);
    refused("twice", &|n| n.flows[0].there = vec![way(0, &[0, 0])]);
    refused("begin at 0", &|n| n.flows[0].there[0].from_ns = 1);
    refused("order of time", &|n| {
        n.flows[0].there = vec![way(0, &[0]), way(0, &[])];
    });
    refused("no way", &|n| n.flows[0].there.clear());
    refused("apart", &|n| n.links[0].absent = [(0, 5), (5, 6)].into());
    refused("greedy", &|n| {
        n.flows[0].flow.traffic = greedy(100);
        n.flows[0].there.push(way(5, &[]));
    });
    refused("there is no policy", &|n| {
        n.links[0].scheduler.policy = "none".to_owned();
    });
}

/// What `make check` leaves out.
mod slow {
    use super::*;

    #[test]
    fn networks_of_one_link_are_the_same_as_the_link() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut compared = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let scenario = scenario::load(&path, &scenario::Overrides::default()).unwrap();
            let mut e = scenario.experiment;
            e.duration_ns = e.duration_ns.min(12 * S);
            e.warmup_ns = e.warmup_ns.min(3 * S);
            for flow in &mut e.flows {
                // A network has no distribution of one flow's waiting times.
                flow.measures.delays = false;
            }
            e.log_rows = Some(5_000);
            match run_network(&of_one_link(&e), 1, &mut Tables::default()) {
                Ok(_) => {}
                Err(RunError::Invalid(message)) => {
                    println!("{}: {message}", path.display());
                    continue;
                }
                Err(other) => panic!("{other}"),
            }
            is_the_same_as_alone(&path.display().to_string(), &e);
            compared += 1;
        }
        assert!(compared >= 20, "only {compared} scenarios fit");
    }
}
