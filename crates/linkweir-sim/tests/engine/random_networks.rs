// SPDX-License-Identifier: BSD-3-Clause
//! Networks put together at random: no packet is lost or made, and results do not depend on threads.

use linkweir_sim::experiment::{
    Amount, Application, Arrivals, Distribution, Experiment, Flow, Measures, Outages, Satellite,
    Session, Traffic,
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
                there.push(Way {
                    from_ns: change * S,
                    hops: self.hops(&links, &shape, first),
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
