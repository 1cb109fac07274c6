// SPDX-License-Identifier: BSD-3-Clause
//! Networks put together at random: no packet is lost or made, and results depend neither on threads, nor on the order in which
//! links are written, nor on names from which no random number comes.

use linkweir_sim::experiment::{
    Amount, Application, Arrivals, Distribution, Experiment, Flow, Measures, Outages, Satellite,
    Session, Signal, Traffic,
};
use linkweir_sim::network::{Hop, Network, OnBreak, Routed, Station, Way};
use linkweir_sim::satellite::harq::Harq;
use linkweir_sim::table::{Column, Table};
use linkweir_sim::{run_network, tcp};
use rand_pcg::rand_core::SeedableRng;
use rand_pcg::Pcg64;

use crate::build::*;
use crate::random_lives::Dice;
use crate::satellite::users_of;

/// Which links may follow a link.
enum Shape {
    Chain,
    /// The first link feeds all others.
    Tree,
    Ring,
}

impl Dice {
    fn station(&mut self, name: String) -> Station {
        let e: Experiment = self.experiment();
        let from_ns = self.below(3 * S);
        let absent = match self.below(4) {
            0 => vec![(from_ns, from_ns + self.one_of(&[1, 50 * MS, S]))],
            _ => Vec::new(),
        };
        Station {
            name,
            link: e.link,
            scheduler: e.scheduler,
            classes: e.classes,
            absent: Outages::from(absent),
        }
    }

    fn application(&mut self) -> Traffic {
        let amount = |value: f64| Amount {
            distribution: Distribution::Exponential { mean: value },
            least: 1.0,
            most: 1e9,
        };
        let profile = self.one_of(&[tcp::Profile::Linux, tcp::Profile::Ns2]);
        let mut tcp = tcp::Config::new(tcp::Algorithm::Cubic, profile);
        tcp.bytes_to_send = Some(0);
        let session = match self.below(3) {
            0 => Session::Transfers {
                arrivals: Arrivals::Poisson { mean_ns: 2e8 },
                size: amount(3e4),
                concurrent: 8,
            },
            1 => Session::Requests {
                response: amount(2e4),
                server_ns: amount(1e7),
                think_ns: amount(1e8),
            },
            _ => Session::Web {
                main: amount(1e4),
                objects: amount(5.0),
                object: amount(1e4),
                connections: 4,
                server_ns: amount(1e6),
                think_ns: amount(3e8),
            },
        };
        Traffic::Application(Box::new(Application { tcp, session }))
    }

    /// A way of up to so many links of those from `first` on.
    fn hops(&mut self, links: &[Station], shape: &Shape, first: usize) -> Vec<Hop> {
        let count = links.len();
        let all: Vec<usize> = match shape {
            Shape::Chain => (first..count).collect(),
            Shape::Tree if first > 0 => vec![0, first],
            Shape::Tree => vec![0],
            Shape::Ring => (0..count).map(|step| (first + step) % count).collect(),
        };
        let most = 1 + self.below(all.len() as u64) as usize;
        let links = all.into_iter().take(most).map(|link| {
            let class = self.below(links[link].classes.len() as u64) as u32;
            Hop {
                link: link as u32,
                class,
            }
        });
        links.collect()
    }

    fn network(&mut self) -> Network {
        let shape = match self.below(3) {
            0 => Shape::Chain,
            1 => Shape::Tree,
            _ => Shape::Ring,
        };
        let count = 1 + self.below(6) as usize;
        let links: Vec<Station> = (0..count)
            .map(|number| self.station(format!("l{number}")))
            .collect();
        let flows = (0..1 + self.below(8)).map(|number| {
            let traffic = match self.below(4) {
                0 => self.application(),
                _ => self.traffic(),
            };
            let mut there = Vec::new();
            let changes = match traffic {
                Traffic::Greedy { .. } => 1,
                _ => self.one_of(&[1, 1, 3]),
            };
            for change in 0..changes {
                let first = self.below(count as u64) as usize;
                let hops = self.hops(&links, &shape, first);
                // For a while some flows have no way at all.
                let none = change == 1 && number % 2 == 0;
                there.push(Way {
                    from_ns: change * S,
                    hops: if none { Vec::new() } else { hops },
                });
            }
            let back = match self.below(2) {
                0 => Vec::new(),
                _ => {
                    let first = self.below(count as u64) as usize;
                    vec![Way {
                        from_ns: 0,
                        hops: self.hops(&links, &shape, first),
                    }]
                }
            };
            Routed {
                flow: Flow {
                    name: format!("f{number}"),
                    class: 0,
                    start_ns: self.below(2 * S),
                    stop_ns: self.one_of(&[0, S, u64::MAX]),
                    access_delay_ns: self.one_of(&[0, 0, 5 * MS]),
                    traffic,
                    measures: Measures::default(),
                },
                there,
                back,
            }
        });
        let flows = flows.collect();
        Network {
            name: "random".to_owned(),
            duration_ns: self.one_of(&[2 * S, 3 * S + 123_456_789]),
            warmup_ns: 0,
            interval_ns: self.one_of(&[10 * MS, S, 7 * S]),
            seed: self.below(1 << 60),
            links,
            flows,
            on_break: self.one_of(&[OnBreak::Lose, OnBreak::Deliver]),
            log_rows: None,
        }
    }
}

fn chunks(network: &Network, threads: usize) -> Vec<Table> {
    let mut sink = Tables {
        keep_chunks: true,
        ..Tables::default()
    };
    run_network(network, threads, &mut sink).unwrap_or_else(|e| panic!("{e}: {network:#?}"));
    sink.chunks
}

/// All packets of each link are somewhere; returns how many were sent.
fn packets_are_kept(name: &str, network: &Network) -> f64 {
    let t = crate::networks::network_tables(network, 1);
    let n = |table, column| t.numbers(table, column);
    let classes: usize = network.links.iter().map(|link| link.classes.len()).sum();
    let backlog = n("series", "backlog_pkts");
    let backlog = &backlog[backlog.len() - classes..];
    let arrived = n("classes", "arrived_pkts");
    let sent = n("classes", "sent_pkts");
    let gone: Vec<Vec<f64>> = [
        "dropped_limit_pkts",
        "dropped_policy_pkts",
        "dropped_age_pkts",
        "absent_pkts",
    ]
    .map(|column| n("classes", column))
    .into();
    for row in 0..classes {
        let gone: f64 = gone.iter().map(|column| column[row]).sum();
        assert_eq!(
            arrived[row],
            sent[row] + gone + backlog[row],
            "{name}, row {row}: {network:#?}"
        );
    }
    hops_follow_each_other(name, network, &t);
    flows_are_their_hops(name, network, &t);
    assert_eq!(
        n("hops", "sent_pkts").iter().sum::<f64>(),
        sent.iter().sum::<f64>(),
        "{name}"
    );
    sent.iter().sum()
}

/// What arrives at a link was sent by the link before it, and not lost there.
fn hops_follow_each_other(name: &str, network: &Network, t: &Tables) {
    let Column::Name(flows) = t.column("hops", "flow") else {
        panic!("flows have names");
    };
    let n = |column| t.numbers("hops", column);
    let (arrived, sent, lost, hop) = (n("arrived_pkts"), n("sent_pkts"), n("lost_pkts"), n("hop"));
    for (flow, routed) in network.flows.iter().enumerate() {
        if routed.there.len() > 1 {
            continue;
        }
        let rows: Vec<usize> = (0..flows.len())
            .filter(|row| flows[*row] == routed.flow.name)
            .collect();
        let there = &rows[..routed.there[0].hops.len()];
        for two in there.windows(2) {
            assert!(hop[two[0]] < hop[two[1]], "{name}");
            assert!(
                arrived[two[1]] <= sent[two[0]] - lost[two[0]],
                "{name}, {}: {network:#?}",
                routed.flow.name
            );
        }
        let last = *there.last().unwrap();
        let delivered = t.numbers("flows", "delivered_pkts")[flow];
        assert!(
            delivered <= sent[last] - lost[last],
            "{name}, {}: {delivered} {network:#?}",
            routed.flow.name
        );
    }
}

/// The rows of each flow at the links of its ways there, in table `hops`.
fn hops_there(t: &Tables, network: &Network) -> Vec<Vec<usize>> {
    let (Column::Name(flows), Column::Name(directions)) =
        (t.column("hops", "flow"), t.column("hops", "direction"))
    else {
        panic!("flows and directions have names");
    };
    let there = |row: &usize| directions[*row] == "there";
    let of = |routed: &Routed| {
        let rows = (0..flows.len()).filter(there);
        rows.filter(|row| flows[*row] == routed.flow.name).collect()
    };
    network.flows.iter().map(of).collect()
}

/// The packets of each flow that were lost anywhere.
fn gone_of_flows(t: &Tables) -> Vec<f64> {
    let columns = [
        "dropped_limit_pkts",
        "dropped_policy_pkts",
        "dropped_age_pkts",
        "lost_link_pkts",
        "absent_pkts",
    ]
    .map(|column| t.numbers("flows", column));
    let rows = 0..columns[0].len();
    rows.map(|row| columns.iter().map(|column| column[row]).sum())
        .collect()
}

/// What arrived of a flow was delivered or lost, or waits at a link or travels from one to the next.
fn flows_are_their_hops(name: &str, network: &Network, t: &Tables) {
    let n = |column| t.numbers("hops", column);
    let (hop, arrived, sent) = (n("hop"), n("arrived_pkts"), n("sent_pkts"));
    let (dropped, lost, absent) = (n("dropped_pkts"), n("lost_pkts"), n("absent_pkts"));
    let gone = gone_of_flows(t);
    for (flow, rows) in hops_there(t, network).iter().enumerate() {
        let routed = &network.flows[flow];
        let sum = |of: &dyn Fn(usize) -> f64| rows.iter().map(|row| of(*row)).sum::<f64>();
        let waiting = |row: usize| arrived[row] - sent[row] - dropped[row] - absent[row];
        for row in rows {
            assert!(waiting(*row) >= 0.0, "{name}, row {row}: {network:#?}");
        }
        // Those without a way are lost where they begin.
        let astray = t.numbers("flows", "lost_link_pkts")[flow] - sum(&|row| lost[row]);
        let is_routed = routed.there.iter().all(|way| !way.hops.is_empty());
        assert!(astray >= 0.0 && !(is_routed && astray > 0.0), "{name}");
        let passed_on = sum(&|row| if hop[row] > 1.0 { arrived[row] } else { 0.0 });
        let delivered = t.numbers("flows", "delivered_pkts")[flow];
        let travelling = sum(&|row| sent[row] - lost[row]) - passed_on - delivered;
        assert!(travelling >= 0.0, "{name}, flow {flow}: {network:#?}");
        assert_eq!(
            t.numbers("flows", "arrived_pkts")[flow],
            delivered + gone[flow] + sum(&waiting) + travelling,
            "{name}, flow {flow}: {network:#?}"
        );
    }
}

/// When sources have stopped for long and links have a rate, nothing travels any more: what arrived and does not wait was
/// delivered or lost.
fn sources_that_stop_leave_nothing_on_the_way(name: &str, network: &Network) {
    let mut stopped = network.clone();
    stopped.flows.retain(|routed| {
        !matches!(
            routed.flow.traffic,
            Traffic::Tcp(_) | Traffic::Application(_)
        )
    });
    for routed in &mut stopped.flows {
        routed.flow.stop_ns = S;
    }
    for station in &mut stopped.links {
        station.link.beam = None;
        station.link.capacity = rate(1e7);
    }
    stopped.duration_ns = 10 * S;
    stopped.interval_ns = 10 * S;
    if stopped.flows.is_empty() {
        return;
    }
    let t = crate::networks::network_tables(&stopped, 1);
    let n = |column| t.numbers("hops", column);
    let (arrived, sent) = (n("arrived_pkts"), n("sent_pkts"));
    let (dropped, absent) = (n("dropped_pkts"), n("absent_pkts"));
    let gone = gone_of_flows(&t);
    for (flow, rows) in hops_there(&t, &stopped).iter().enumerate() {
        let waiting = |row: &usize| arrived[*row] - sent[*row] - dropped[*row] - absent[*row];
        let waiting: f64 = rows.iter().map(waiting).sum();
        assert_eq!(
            t.numbers("flows", "arrived_pkts")[flow],
            t.numbers("flows", "delivered_pkts")[flow] + gone[flow] + waiting,
            "{name}, flow {flow}: {stopped:#?}"
        );
    }
}

/// The rows of each table with these names of links in place of theirs, sorted, as are their columns.
fn sorted_rows(t: &Tables, named: &dyn Fn(&str) -> String) -> Vec<(&'static str, Vec<String>)> {
    let cells = |(name, column): &(String, Column)| -> Vec<String> {
        let all: Vec<String> = match column {
            Column::Real(values) => values.iter().map(|v| format!("{v:?}")).collect(),
            Column::Count(values) => values.iter().map(u64::to_string).collect(),
            Column::Whole(values) => values.iter().map(i64::to_string).collect(),
            Column::Name(values) if name == "link" => values.iter().map(|v| named(v)).collect(),
            Column::Name(values) => values.clone(),
        };
        all.iter().map(|cell| format!("{name}={cell}")).collect()
    };
    let sorted = |(table, columns): (&&'static str, &Vec<(String, Column)>)| {
        let mut columns: Vec<&(String, Column)> = columns.iter().collect();
        columns.sort_unstable_by_key(|(name, _)| name);
        let columns: Vec<Vec<String>> = columns.into_iter().map(cells).collect();
        let row = |row: usize| {
            let cells: Vec<&str> = columns.iter().map(|cells| &*cells[row]).collect();
            cells.join(" ")
        };
        let mut rows: Vec<String> = (0..columns[0].len()).map(row).collect();
        rows.sort_unstable();
        (*table, rows)
    };
    t.tables.iter().map(sorted).collect()
}

/// Links that are written in another order give the same tables, as do other names where no random number comes from them.
fn order_and_names_change_nothing(name: &str, network: &Network, dice: &mut Dice) {
    let mut order: Vec<usize> = (0..network.links.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, dice.below(at as u64 + 1) as usize);
    }
    let mut turned = network.clone();
    for (from, to) in order.iter().enumerate() {
        turned.links[*to] = network.links[from].clone();
    }
    for routed in &mut turned.flows {
        for way in routed.there.iter_mut().chain(&mut routed.back) {
            for hop in &mut way.hops {
                hop.link = order[hop.link as usize] as u32;
            }
        }
    }
    // Losses, reordering and channels are drawn by the link's name.
    let draws = |station: &Station| {
        let link = &station.link;
        let loses = link.loss != Signal::Constant(0.0) || link.reorder.is_some();
        loses || link.satellite.is_some() || link.beam.is_some()
    };
    let renamed = |station: &Station| format!("z{}", station.name);
    let named = |old: &str| {
        let station = network.links.iter().find(|station| station.name == old);
        station
            .filter(|station| !draws(station))
            .map_or(old.to_owned(), renamed)
    };
    for station in &mut turned.links {
        station.name = named(&station.name);
    }
    let tables = |network: &Network| crate::networks::network_tables(network, 1);
    let before = sorted_rows(&tables(network), &named);
    let after = sorted_rows(&tables(&turned), &str::to_owned);
    for (before, after) in before.iter().zip(&after) {
        assert!(
            before == after,
            "{name}, {order:?}, {}: {network:#?}",
            before.0
        );
    }
    assert_eq!(before.len(), after.len(), "{name}");
}

/// Packets leave each link in the order in which they came, class by class, where one flow's do.
fn none_overtakes(name: &str, network: &Network) {
    let mut logged = network.clone();
    logged.log_rows = Some(20_000);
    // Droppers at the head or from within change no order; links that hold packets back do.
    let t = crate::networks::network_tables(&logged, 1);
    let Some(columns) = t.tables.get("packets") else {
        return;
    };
    let names = |column| match t.column("packets", column) {
        Column::Name(names) => names,
        other => panic!("{column} is {other:?}"),
    };
    let (event, link, class) = (names("event"), names("link"), names("class"));
    let (flow, direction) = (names("flow"), names("direction"));
    let (number, created) = (
        t.numbers("packets", "number"),
        t.numbers("packets", "created_ns"),
    );
    let connection = t.numbers("packets", "connection");
    let mut came = std::collections::BTreeMap::new();
    let mut last = std::collections::BTreeMap::new();
    for row in 0..columns[0].1.len() {
        let queue = (&link[row], &class[row]);
        let packet = (
            queue,
            (&flow[row], &direction[row]),
            (
                connection[row] as u64,
                number[row] as u64,
                created[row] as u64,
            ),
        );
        match event[row].as_str() {
            "enqueued" => {
                came.insert(packet, row);
            }
            "sent" => {
                // Equal packets, as two retransmissions in one nanosecond, count with the one that came last.
                let arrived = came[&packet];
                let before = last.insert(queue, arrived);
                assert!(
                    before.is_none_or(|before| before <= arrived),
                    "{name}, row {row}: {packet:?}: {network:#?}"
                );
            }
            _ => {}
        }
    }
}

/// Sends packets of a link again until they are decoded, so that they come when nothing is sent.
fn over_a_satellite(station: &mut Station, ground_delay_ns: u64) {
    station.absent = Outages::default();
    station.link.beam = None;
    station.link.ring = 1;
    station.link.satellite = Some(Satellite {
        harq: Harq::designed(8 * 1_500, 10).unwrap(),
        ground_delay_ns,
        ..users_of(&[0.0, -12.0, 3.0], 70 * MS, 20 * MS)
    });
}

fn lives(seed: u64, count: u64) -> f64 {
    let mut dice = Dice(Pcg64::seed_from_u64(seed));
    let mut orders = Dice(Pcg64::seed_from_u64(seed + 1));
    let mut moved = 0.0;
    for number in 0..count {
        let mut network = dice.network();
        if number % 5 == 4 {
            let ground_delay_ns = [0, MS][number as usize / 5 % 2];
            over_a_satellite(&mut network.links[0], ground_delay_ns);
        }
        let name = format!("network {number}");
        moved += packets_are_kept(&name, &network);
        none_overtakes(&name, &network);
        if number % 2 == 0 {
            sources_that_stop_leave_nothing_on_the_way(&name, &network);
        }
        order_and_names_change_nothing(&name, &network, &mut orders);
        let one = chunks(&network, 1);
        for threads in [2, 3, 8] {
            let many = chunks(&network, threads);
            assert!(one == many, "{name} with {threads} threads: {network:#?}");
        }
    }
    moved
}

#[test]
fn random_networks_keep_their_packets_with_any_number_of_threads() {
    let moved = lives(5, 200);
    assert!(moved > 1e6, "the lives are eventful: {moved} moved");
}

mod long {
    #[test]
    fn ten_thousand_random_networks() {
        let moved = super::lives(6, 10_000);
        assert!(moved > 5e7, "the lives are eventful: {moved} moved");
    }
}
