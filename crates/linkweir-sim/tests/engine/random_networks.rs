// SPDX-License-Identifier: BSD-3-Clause
//! Networks put together at random: no packet is lost or made, and results depend neither on threads, nor on the order in which
//! links are written, nor on names from which no random number comes. A third of them have bonds.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use linkweir_sim::experiment::{
    Amount, Application, Arrivals, Bond, Bonded, Capacity, Distribution, End, Experiment, Flow,
    Link, Measures, Member, Outages, Paths, Reorder, Satellite, Session, Signal, Sizes, Traffic,
};
use linkweir_sim::network::{Hop, Network, OnBreak, Routed, Station, Way};
use linkweir_sim::satellite::harq::Harq;
use linkweir_sim::table::Column;
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
        let mut e: Experiment = self.experiment();
        if let Capacity::Rate(rate_bps) = &mut e.link.capacity {
            self.slow(rate_bps);
        }
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

    /// Puts one to three links in place of a station's, each with losses of its own. A policy that cannot serve several is replaced.
    fn bond(&mut self, station: &mut Station) {
        let policy = linkweir_core::policy(&station.scheduler.policy);
        if !policy.is_some_and(linkweir_core::PolicyInfo::bonds) {
            let queues: Vec<&[_]> = vec![&[]; station.classes.len()];
            station.scheduler = scheduler("fifo", &[], &queues);
        }
        let Link {
            overhead_bytes,
            mpu_bytes,
            ..
        } = station.link;
        let member = |dice: &mut Dice, at: u64| {
            let mut rate_bps = match dice.below(3) {
                0 => Signal::Constant(3e6),
                1 => dice.signal(4e6),
                _ => Signal::Steps {
                    points: [(0, 4e6), (S, 0.0), (3 * S / 2, 5e6)].into(),
                    end: End::Hold,
                },
            };
            dice.slow(&mut rate_bps);
            let mut delay_s = match dice.below(2) {
                0 => Signal::Constant(0.02 * at as f64),
                _ => dice.signal(0.02),
            };
            dice.slow(&mut delay_s);
            let at_ns = [0, MS, MS, 7 * MS / 2, 4 * MS].into();
            let loss = match dice.below(4) {
                0 => Signal::Constant(0.02),
                // It falls silent for a while.
                1 => Signal::Steps {
                    points: [(0, 0.0), (S, 1.0), (7 * S / 4, 0.0)].into(),
                    end: End::Hold,
                },
                _ => Signal::Constant(0.0),
            };
            let held = Reorder {
                probability: 0.1,
                delay_ns: 30 * MS,
            };
            Member {
                name: format!("{}-{at}", station.name),
                cost: dice.below(3),
                link: Link {
                    capacity: match dice.below(5) {
                        0 => Capacity::Opportunities { at_ns, bytes: 1500 },
                        _ => Capacity::Rate(rate_bps),
                    },
                    follow: dice.below(2) == 0,
                    delay_s,
                    loss,
                    reorder: Some(held).filter(|_| dice.below(4) == 0),
                    overhead_bytes,
                    mpu_bytes,
                    ..Link::of_rate(4_000_000)
                },
            }
        };
        let count = 1 + self.below(3);
        let members: Vec<Member> = (0..count).map(|at| member(self, at)).collect();
        let class = |dice: &mut Dice| {
            let some = 1 + dice.below((1 << count) - 1) as u32;
            let paths = dice.one_of(&[
                Paths::All,
                Paths::Stripe,
                Paths::Best,
                Paths::Spill,
                Paths::Named(some),
            ]);
            Bonded {
                paths,
                reorder_ns: dice.one_of(&[None, Some(0), Some(50 * MS), Some(S)]),
                resend: paths != Paths::All && dice.below(2) == 0,
            }
        };
        let bond = Bond {
            classes: station.classes.iter().map(|_| class(self)).collect(),
            members,
            room_ns: self.one_of(&[0, 20 * MS, S]),
            detect_ns: self.one_of(&[0, 200 * MS, S]),
        };
        station.absent = Outages::default();
        station.link = Link {
            follow: true,
            overhead_bytes,
            mpu_bytes,
            bond: Some(Box::new(bond)),
            ..Link::of_rate(4_000_000 * count)
        };
    }

    /// Of 50 signals that change each microsecond one stays: each of their networks takes as long as a hundred others.
    fn slow(&mut self, signal: &mut Signal) {
        let (Signal::Cosine { period_ns, .. }
        | Signal::Steps {
            end: End::Loop { period_ns },
            ..
        }) = signal
        else {
            return;
        };
        if *period_ns == 1_000 && self.below(50) > 0 {
            *period_ns = 777_777;
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
            let mut traffic = match self.below(4) {
                0 => self.application(),
                _ => self.traffic(),
            };
            if let Traffic::Cbr { rate_bps, .. } | Traffic::Poisson { rate_bps, .. } = &mut traffic
            {
                self.slow(rate_bps);
            }
            let start_ns = self.below(2 * S);
            let stop_ns = self.one_of(&[0, S, u64::MAX]);
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
                    start_ns,
                    stop_ns: stop_ns.min(start_ns + longest_ns(&traffic)),
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
            interval_ns: match self.below(30) {
                0 => 10 * MS, // its bins take most of the time, so it is rare
                _ => self.one_of(&[40 * MS, S, 7 * S]),
            },
            seed: self.below(1 << 60),
            links,
            flows,
            on_break: self.one_of(&[OnBreak::Lose, OnBreak::Deliver]),
            log_rows: None,
        }
    }
}

/// Packets of one byte, up to 625,000 a second, are sent for a short while: a few such flows would else take most of the time.
fn longest_ns(traffic: &Traffic) -> u64 {
    match traffic {
        Traffic::Cbr { packet, .. }
        | Traffic::Poisson { packet, .. }
        | Traffic::OnOff { packet, .. }
        | Traffic::Greedy { packet, .. }
            if matches!(packet, Sizes::Fixed(1)) =>
        {
            20 * MS
        }
        _ => 100 * S,
    }
}

fn run(network: &Network, threads: usize) -> Tables {
    let mut sink = Tables {
        keep_chunks: true,
        ..Tables::default()
    };
    run_network(network, threads, &mut sink).unwrap_or_else(|e| panic!("{e}: {network:#?}"));
    sink
}

/// All packets of each link are somewhere; returns how many were sent.
fn packets_are_kept(name: &str, network: &Network, t: &Tables) -> f64 {
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
    hops_follow_each_other(name, network, t);
    flows_are_their_hops(name, network, t);
    bonds_are_their_members(name, network, t, false);
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

/// Whether the ways there of a flow have a link first and later.
fn is_at_several_positions(routed: &Routed) -> bool {
    let ways = || routed.there.iter().map(|way| &way.hops[..]);
    let firsts: Vec<u32> = ways().filter_map(|hops| Some(hops.first()?.link)).collect();
    let mut later = ways().flat_map(|hops| hops.iter().skip(1));
    later.any(|hop| firsts.contains(&hop.link))
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
        let entered = t.numbers("flows", "arrived_pkts")[flow] - astray;
        let first = sum(&|row| if hop[row] > 1.0 { 0.0 } else { arrived[row] });
        // A link that is first in one way may come later in another; its row has the packets of both.
        assert!(first >= entered, "{name}, flow {flow}: {network:#?}");
        assert!(
            first == entered || is_at_several_positions(routed),
            "{name}, flow {flow}"
        );
        let passed_on = sum(&|row| arrived[row]) - entered;
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
        routed.flow.stop_ns = routed.flow.stop_ns.min(S);
    }
    for station in &mut stopped.links {
        station.link.beam = None;
        station.link.capacity = rate(1e7);
        for member in station
            .link
            .bond
            .iter_mut()
            .flat_map(|bond| &mut bond.members)
        {
            member.link.capacity = rate(1e7);
        }
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
    let mut remembered = bonds_are_their_members(name, &stopped, &t, true);
    for (flow, rows) in hops_there(&t, &stopped).iter().enumerate() {
        let waiting = |row: &usize| arrived[*row] - sent[*row] - dropped[*row] - absent[*row];
        let waiting: f64 = rows.iter().map(waiting).sum();
        let ends = t.numbers("flows", "delivered_pkts")[flow] + gone[flow] + waiting;
        let of_flow = t.numbers("flows", "arrived_pkts")[flow] - ends;
        assert!(of_flow >= 0.0, "{name}, flow {flow}: {stopped:#?}");
        remembered -= of_flow;
    }
    assert_eq!(remembered, 0.0, "{name}: {stopped:#?}");
}

/// Each packet that a class sent over a bond was handed out or lost there, or is under way; if all has `ended`, none is. What
/// came too late, and no copy in time, is lost. Returns how many were lost last by classes that send again, as their sender
/// remembers these until it sends more.
fn bonds_are_their_members(name: &str, network: &Network, t: &Tables, ended: bool) -> f64 {
    let mut remembered = 0.0;
    let names = |table: &str, column: &str| match t.column(table, column) {
        Column::Name(names) => names.clone(),
        other => panic!("{column} is {other:?}"),
    };
    for station in &network.links {
        let Some(bond) = &station.link.bond else {
            continue;
        };
        // A link that no flow passes has no rows.
        let rows = |table: &'static str, class: &str| -> Vec<usize> {
            if !t.names().contains(&table) {
                return Vec::new();
            }
            let (links, classes) = (names(table, "link"), names(table, "class"));
            (0..links.len())
                .filter(|row| links[*row] == station.name && classes[*row] == class)
                .collect()
        };
        for (class, bonded) in station.classes.iter().zip(&bond.classes) {
            let sum = |table: &'static str, column: &str| -> f64 {
                let rows = rows(table, &class.name);
                let values = if rows.is_empty() {
                    Vec::new()
                } else {
                    t.numbers(table, column)
                };
                rows.into_iter().map(|row| values[row]).sum()
            };
            let of = format!("{name}, {} of {}", class.name, station.name);
            let carried = |column: &str| sum("bond_paths", column);
            let received = |column: &str| sum("bond_receivers", column);
            let sent = sum("classes", "sent_pkts");
            assert_eq!(
                carried("sent_pkts") - carried("copied_pkts") - carried("resent_pkts"),
                sent,
                "{of}: {network:#?}"
            );
            for column in ["duplicate_pkts", "late_pkts"] {
                assert_eq!(carried(column), received(column), "{of}: {network:#?}");
            }
            let delivered = received("delivered_pkts");
            let under_way = carried("sent_pkts")
                - carried("lost_pkts")
                - carried("duplicate_pkts")
                - carried("late_pkts")
                - delivered;
            assert!(under_way >= 0.0, "{of}: {under_way}: {network:#?}");
            let once = bonded.paths != Paths::All && !bonded.resend;
            if once {
                assert_eq!(carried("copied_pkts") + carried("resent_pkts"), 0.0, "{of}");
                assert_eq!(carried("duplicate_pkts"), 0.0, "{of}");
            }
            let lost = sum("classes", "lost_link_pkts");
            let missing = sent - delivered - lost;
            assert!(missing >= 0.0, "{of}: {missing}: {network:#?}");
            if ended {
                assert_eq!(under_way, 0.0, "{of}: {network:#?}");
                let most = if bonded.resend {
                    carried("lost_pkts")
                } else {
                    0.0
                };
                assert!(missing <= most, "{of}: {missing}: {network:#?}");
                remembered += missing;
            }
            if once {
                let gone = carried("lost_pkts") + carried("late_pkts");
                assert_eq!(lost, gone, "{of}: {network:#?}");
            }
        }
    }
    remembered
}

/// Behind a bond, packets of a flow whose class there restores the order come in order and once; where its links are even, none is
/// held for longer than the stated time.
fn bonds_restore_the_order(name: &str, network: &Network) {
    let mut logged = network.clone();
    logged.log_rows = Some(200_000);
    let t = run(&logged, 1);
    if !t.names().contains(&"packets") {
        return;
    }
    let names = |column| match t.column("packets", column) {
        Column::Name(names) => names,
        other => panic!("{column} is {other:?}"),
    };
    let (event, link, flow) = (names("event"), names("link"), names("flow"));
    let direction = names("direction");
    let (number, t_ns) = (t.numbers("packets", "number"), t.numbers("packets", "t_ns"));
    for routed in &network.flows {
        let [Way { hops, .. }] = &routed.there[..] else {
            continue;
        };
        let is_plain = !matches!(
            routed.flow.traffic,
            Traffic::Tcp(_) | Traffic::Application(_)
        );
        let Some(first) = hops.first().filter(|_| is_plain) else {
            continue;
        };
        let station = &network.links[first.link as usize];
        let Some(bond) = &station.link.bond else {
            continue;
        };
        let bonded = bond.classes[first.class as usize];
        let Some(reorder_ns) = bonded.reorder_ns else {
            continue;
        };
        let behind = hops
            .get(1)
            .map(|hop| &network.links[hop.link as usize].name);
        let is_behind = |row: usize| match behind {
            // A way may come back to the bond.
            Some(behind) if *behind == station.name => false,
            Some(behind) => link[row] == *behind && event[row].starts_with("enq"),
            None => event[row] == "delivered",
        };
        let rows = (0..event.len())
            .filter(|row| flow[*row] == routed.flow.name && direction[*row] == "there");
        let (mut last, mut sent) = (None, std::collections::BTreeMap::new());
        for row in rows {
            if link[row] == station.name && event[row] == "sent" {
                sent.entry(number[row] as u64).or_insert(t_ns[row]);
            }
            if !is_behind(row) {
                continue;
            }
            let before = last.replace(number[row]);
            assert!(
                before.is_none_or(|before| before < number[row]),
                "{name}, {}: {} after {before:?}: {network:#?}",
                routed.flow.name,
                number[row]
            );
            let longest_ns = longest_even_ns(bond, bonded);
            let took_ns = sent.get(&(number[row] as u64)).map(|ns| t_ns[row] - ns);
            if let Some((took_ns, longest_ns)) = took_ns.zip(longest_ns) {
                assert!(
                    took_ns <= longest_ns + reorder_ns as f64,
                    "{name}, {}: {took_ns} ns: {network:#?}",
                    routed.flow.name
                );
            }
        }
    }
}

/// The longest time from a bond's queue to its receiver, ns, if its links have one rate and one delay each and a packet is sent once.
fn longest_even_ns(bond: &Bond, bonded: Bonded) -> Option<f64> {
    if bonded.resend || bonded.paths == Paths::All {
        return None;
    }
    let mut longest_ns = 0.0_f64;
    for Member { link, .. } in &bond.members {
        let (Capacity::Rate(Signal::Constant(bps)), Signal::Constant(delay_s), None) =
            (&link.capacity, &link.delay_s, &link.reorder)
        else {
            return None;
        };
        // The largest packet, with its overhead.
        let bits = 8.0 * (65_000.0 + f64::from(link.overhead_bytes));
        longest_ns = longest_ns.max(1e9 * (bits / bps + delay_s) + 2.0);
    }
    Some(longest_ns)
}

/// A number of each row of each table with these names of links in place of theirs, sorted. Equal rows have equal numbers,
/// whatever the order of their columns; two that differ have the same one by chance once in 2^64.
fn sorted_rows(t: &Tables, named: &dyn Fn(&str) -> String) -> Vec<(&'static str, Vec<u64>)> {
    let sorted = |(table, columns): (&&'static str, &Vec<(String, Column)>)| {
        let mut rows = vec![DefaultHasher::new(); columns[0].1.len()];
        let mut columns: Vec<&(String, Column)> = columns.iter().collect();
        columns.sort_unstable_by_key(|(name, _)| name);
        for (name, column) in columns {
            rows.iter_mut().for_each(|row| name.hash(row));
            match column {
                Column::Real(values) => add(&mut rows, values.iter().map(|v| v.map(f64::to_bits))),
                Column::Count(values) => add(&mut rows, values.iter()),
                Column::Whole(values) => add(&mut rows, values.iter()),
                Column::Name(values) if name == "link" => {
                    add(&mut rows, values.iter().map(|v| named(v)));
                }
                Column::Name(values) => add(&mut rows, values.iter()),
            }
        }
        let mut rows: Vec<u64> = rows.iter().map(Hasher::finish).collect();
        rows.sort_unstable();
        (*table, rows)
    };
    t.tables.iter().map(sorted).collect()
}

/// Adds a cell to each row.
fn add(rows: &mut [DefaultHasher], cells: impl Iterator<Item = impl Hash>) {
    for (row, cell) in rows.iter_mut().zip(cells) {
        cell.hash(row);
    }
}

/// Links that are written in another order give the same tables, as do other names where no random number comes from them;
/// `before` has the tables of one thread.
fn order_and_names_change_nothing(
    name: &str,
    network: &Network,
    before: &Tables,
    threads: usize,
    dice: &mut Dice,
) {
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
        loses || link.satellite.is_some() || link.beam.is_some() || link.bond.is_some()
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
    let before = sorted_rows(before, &named);
    let after = sorted_rows(&run(&turned, threads), &str::to_owned);
    for (before, after) in before.iter().zip(&after) {
        assert!(
            before == after,
            "{name}, {order:?}, {threads} threads, {}: {network:#?}",
            before.0
        );
    }
    assert_eq!(before.len(), after.len(), "{name}");
}

/// Packets leave each link in the order in which they came, class by class, where one flow's do; and `unlogged`, the tables
/// without a log, are the same with one.
fn none_overtakes(name: &str, network: &Network, unlogged: &Tables) {
    let mut logged = network.clone();
    logged.log_rows = Some(20_000);
    // Droppers at the head or from within change no order; links that hold packets back do.
    let mut t = run(&logged, 1);
    let log = t.tables.remove("packets");
    assert!(t.tables == unlogged.tables, "{name}: {network:#?}");
    let Some(log) = log else {
        return;
    };
    t.tables.insert("packets", log);
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
    for row in 0..event.len() {
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
                came.entry(packet).or_insert_with(Vec::new).push(row);
            }
            "sent" => {
                // Of equal packets, as two retransmissions in one nanosecond, it may be any that was not sent yet.
                let before = last.get(&queue).copied().unwrap_or(0);
                let arrivals = came.get_mut(&packet).expect("it has arrived");
                let Some(at) = arrivals.iter().position(|row| *row >= before) else {
                    panic!("{name}, row {row}: {packet:?}: {network:#?}");
                };
                last.insert(queue, arrivals.remove(at));
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

/// How many packets one network moved. `every` is whether it runs with each number of threads; else one in 20 does, and the
/// others run with one of them.
fn life(seed: u64, number: u64, every: bool) -> f64 {
    let mut dice = Dice(Pcg64::seed_from_u64(seed << 32 | number));
    let mut network = dice.network();
    if number % 5 == 4 {
        let ground_delay_ns = [0, MS][number as usize / 5 % 2];
        over_a_satellite(&mut network.links[0], ground_delay_ns);
    }
    if number % 3 == 1 {
        let first = usize::from(number % 5 == 4);
        for station in network.links.iter_mut().skip(first).step_by(2) {
            dice.bond(station);
        }
    }
    let name = format!("network {number} of {seed}");
    let mut threads = [2, 3, 8];
    threads.rotate_left(number as usize % 3);
    let one = run(&network, 1);
    none_overtakes(&name, &network, &one);
    if number % 3 == 1 {
        bonds_restore_the_order(&name, &network);
    }
    if number % 2 == 0 {
        sources_that_stop_leave_nothing_on_the_way(&name, &network);
    }
    order_and_names_change_nothing(&name, &network, &one, threads[1], &mut dice);
    let every = every || number % 20 == 0;
    for threads in &threads[..if every { 3 } else { 1 }] {
        assert!(
            one.chunks == run(&network, *threads).chunks,
            "{name} with {threads} threads: {network:#?}"
        );
    }
    packets_are_kept(&name, &network, &one)
}

/// Ends the work of all when one panics.
struct LastNumber<'a>(&'a AtomicU64);

impl Drop for LastNumber<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(u64::MAX / 2, Ordering::Relaxed);
        }
    }
}

/// The packets that so many networks moved. Several run at once, as the threads of one wait for each other most of the time.
fn lives(seed: u64, count: u64, every: bool) -> f64 {
    let next = AtomicU64::new(0);
    let worker = || {
        let _last = LastNumber(&next);
        let mut moved = 0.0;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return moved;
            }
            moved += life(seed, number, every);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(worker)).collect();
        let moved = workers.into_iter().map(|worker| worker.join());
        moved
            .map(|moved| moved.expect("the message above says what failed"))
            .sum()
    })
}

#[test]
fn random_networks_keep_their_packets_with_any_number_of_threads() {
    let moved = lives(5, 200, true);
    assert!(moved > 5e4, "the lives are eventful: {moved} moved");
}

mod long {
    #[test]
    fn ten_thousand_random_networks() {
        let moved = super::lives(6, 10_000, false);
        assert!(moved > 3e6, "the lives are eventful: {moved} moved");
    }
}
