// SPDX-License-Identifier: BSD-3-Clause
//! Which process goes to which thread.
//!
//! A good cut gives every thread the same load, and its lookahead is long. So processes that messages join in less than some
//! time are kept together, with the longest such time that still lets the load be shared. Then threads grow one after another
//! from the process with the greatest load, by those that most packets go to and from (Fiduccia and Mattheyses 1982 choose
//! moves in the same way). The load is what the flows are expected to send over each link; names play no part.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::experiment::{Signal, Sizes, Traffic};
use crate::network::{Network, Way};

use super::plan::Plan;

/// A partition for each process.
pub(super) struct Cut {
    /// By place.
    pub(super) parts: Vec<u32>,
    /// The least time of a message from one partition to another, ns.
    pub(super) lookahead_ns: u64,
}

/// Threads wait for each other after each window, which takes some 10 us. Processes that messages join in less than this
/// stay together, ns.
const WORTHWHILE_NS: u64 = 100_000;
/// Part of the load that a thread may have more than its share, as a divisor.
const SLACK: u64 = 10;
/// Work at the ends of a flow for each packet, in packets that cross a simple link: what it was on a shell of satellites.
const ENDS: u64 = 10;
/// Work of a link in which nothing happens, so that such links are shared, too.
const IDLE: u64 = 1;

impl Cut {
    pub(super) fn new(network: &Network, plan: &Plan, threads: usize) -> Cut {
        let links = plan.links();
        let edges: Vec<(u32, u32, u64)> = plan.edges().into_iter().collect();
        let load = Load::new(network, plan);
        let mut delays_ns: Vec<u64> = edges
            .iter()
            .map(|edge| edge.2)
            .filter(|ns| *ns > WORTHWHILE_NS)
            .collect();
        delays_ns.sort_unstable_by_key(|ns| Reverse(*ns));
        delays_ns.dedup();
        let most = load.all().div_ceil(threads.max(1) as u64);
        // The shorter the time, the fewer processes are together, so the longest one is found by halving.
        let too_heavy = |ns: &u64| {
            let groups = Groups::new(links, &edges, *ns);
            groups.heaviest(&load) > most + most / SLACK
        };
        let longest = delays_ns.partition_point(too_heavy);
        let least_ns = delays_ns.get(longest).unwrap_or(&WORTHWHILE_NS);
        let groups = Groups::new(links, &edges, *least_ns);
        let parts = groups.share(&load, threads);
        let cut_ns = edges
            .iter()
            .filter(|(from, to, _)| parts[*from as usize] != parts[*to as usize]);
        Cut {
            lookahead_ns: cut_ns.map(|edge| edge.2).min().unwrap_or(u64::MAX),
            parts,
        }
    }
}

/// Packets per second.
struct Load {
    /// Of each process, those at the ends of flows included.
    processes: Vec<u64>,
    /// Between two processes, the lower one first.
    between: BTreeMap<(u32, u32), u64>,
}

impl Load {
    fn new(network: &Network, plan: &Plan) -> Load {
        let rates = rates(network);
        let mut load = Load {
            processes: vec![IDLE; plan.links()],
            between: BTreeMap::new(),
        };
        for ((routed, flow), pkts) in network.flows.iter().zip(&plan.flows).zip(rates) {
            let home = flow.home.0;
            load.processes[home as usize] += ENDS * pkts;
            // Ways share the time.
            let nways = routed.there.len().max(1) as u64;
            for way in &routed.there {
                load.add_way(way, home, pkts.div_ceil(nways));
            }
            let nways = pkts_per_ack(&routed.flow.traffic) * routed.back.len().max(1) as u64;
            for way in &routed.back {
                load.add_way(way, home, pkts.div_ceil(nways));
            }
        }
        load
    }

    fn add_way(&mut self, way: &Way, home: u32, pkts: u64) {
        let mut at = home;
        let places = way.hops.iter().map(|hop| hop.link).chain([home]);
        for (position, place) in places.enumerate() {
            if position < way.hops.len() {
                self.processes[place as usize] += pkts;
            }
            if at != place {
                *self
                    .between
                    .entry((at.min(place), at.max(place)))
                    .or_default() += pkts;
            }
            at = place;
        }
    }

    fn all(&self) -> u64 {
        self.processes.iter().sum()
    }
}

/// Packets per second that each flow is expected to send.
fn rates(network: &Network) -> Vec<u64> {
    // Flows that take what they get share each link.
    let mut takers = vec![0u64; network.links.len()];
    for routed in &network.flows {
        if own_bps(&routed.flow.traffic).is_none() {
            for way in &routed.there {
                for hop in &way.hops {
                    takers[hop.link as usize] += 1;
                }
            }
        }
    }
    let rates = network.flows.iter().map(|routed| {
        let (bps, bytes) = own_bps(&routed.flow.traffic).unwrap_or_else(|| {
            let hops = routed.there.iter().flat_map(|way| &way.hops);
            let shares = hops.map(|hop| {
                let link = hop.link as usize;
                let nways = routed.there.len() as u64;
                network.links[link].link.nominal_bps * nways / takers[link].max(1)
            });
            (shares.min().unwrap_or(0) as f64, 1500)
        });
        (bps / 8.0 / f64::from(bytes.max(1))) as u64 + 1
    });
    rates.collect()
}

/// How many packets an acknowledgement is for.
fn pkts_per_ack(traffic: &Traffic) -> u64 {
    match traffic {
        Traffic::Tcp(tcp) if !tcp.delayed_ack => 1,
        Traffic::Application(application) if !application.tcp.delayed_ack => 1,
        _ => 2,
    }
}

/// The mean rate of a source that has its own, bit/s, and about the bytes of its packets.
fn own_bps(traffic: &Traffic) -> Option<(f64, u32)> {
    let mean = |signal: &Signal| match signal {
        Signal::Constant(bps) | Signal::Cosine { mean: bps, .. } => *bps,
        Signal::Steps { points, .. } | Signal::Lines { points } => {
            points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64
        }
    };
    let bytes = |sizes: &Sizes| match sizes {
        Sizes::Fixed(bytes) => *bytes,
        Sizes::Uniform(least, most) => least / 2 + most / 2,
        Sizes::Mix(parts) => parts.iter().map(|part| part.0).max().unwrap_or(1),
    };
    match traffic {
        Traffic::Cbr {
            rate_bps, packet, ..
        }
        | Traffic::Poisson { rate_bps, packet } => Some((mean(rate_bps), bytes(packet))),
        Traffic::OnOff {
            rate_bps,
            on_ns,
            off_ns,
            packet,
            ..
        } => {
            let part = *on_ns as f64 / (*on_ns as f64 + *off_ns as f64).max(1.0);
            Some((rate_bps * part, bytes(packet)))
        }
        Traffic::Voice {
            packet_bytes,
            interval_ns,
            ..
        } => {
            let bits = 8.0 * f64::from(*packet_bytes);
            Some((bits * 1e9 / (*interval_ns).max(1) as f64, *packet_bytes))
        }
        Traffic::Replay { packets, .. } => {
            let bits: f64 = packets.iter().map(|p| 8.0 * f64::from(p.1)).sum();
            let span_s = packets.last().map_or(1.0, |last| last.0 as f64 / 1e9);
            Some((bits / span_s.max(1e-3), 1500))
        }
        Traffic::Greedy { .. } | Traffic::Tcp(_) | Traffic::Application(_) => None,
    }
}

/// Processes that stay together.
struct Groups {
    /// A process of the same group, up to the one that is its own.
    parent: Vec<u32>,
}

impl Groups {
    /// Those that messages join in less than a time, ns.
    fn new(processes: usize, edges: &[(u32, u32, u64)], least_ns: u64) -> Groups {
        let mut groups = Groups {
            parent: (0..processes as u32).collect(),
        };
        for (from, to, delay_ns) in edges {
            if *delay_ns < least_ns {
                let (from, to) = (groups.of(*from), groups.of(*to));
                let (low, high) = (from.min(to), from.max(to));
                groups.parent[high as usize] = low;
            }
        }
        for process in 0..processes {
            // That of a lower process is its group already.
            groups.parent[process] = groups.parent[groups.parent[process] as usize];
        }
        groups
    }

    /// The least process of a process's group.
    fn of(&self, mut process: u32) -> u32 {
        while self.parent[process as usize] != process {
            process = self.parent[process as usize];
        }
        process
    }

    /// Load of each group, by its least process.
    fn loads(&self, load: &Load) -> BTreeMap<u32, u64> {
        let mut loads = BTreeMap::new();
        for (process, pkts) in load.processes.iter().enumerate() {
            *loads.entry(self.of(process as u32)).or_default() += pkts;
        }
        loads
    }

    fn heaviest(&self, load: &Load) -> u64 {
        self.loads(load).into_values().max().unwrap_or(0)
    }

    /// A part for each process; at most `threads` parts, each with about the same load.
    fn share(&self, load: &Load, threads: usize) -> Vec<u32> {
        let loads = self.loads(load);
        let mut near: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for ((one, other), pkts) in &load.between {
            let (one, other) = (self.of(*one), self.of(*other));
            if one != other {
                near.entry(one).or_default().push((other, *pkts));
                near.entry(other).or_default().push((one, *pkts));
            }
        }
        let mut free: BTreeMap<u32, u64> = loads.clone();
        let mut left: u64 = loads.values().sum();
        let mut part_of: BTreeMap<u32, u32> = BTreeMap::new();
        for part in 0..threads as u32 {
            let share = left.div_ceil(threads as u64 - u64::from(part));
            let mut own = 0;
            let mut joined: BTreeMap<u32, u64> = BTreeMap::new();
            let mut next = BinaryHeap::new();
            while own < share {
                let group = std::iter::from_fn(|| next.pop())
                    .find(|(pkts, Reverse(group))| {
                        free.contains_key(group) && joined.get(group) == Some(pkts)
                    })
                    .map(|(_, Reverse(group))| group);
                let Some(group) = group.or_else(|| heaviest(&free)) else {
                    break;
                };
                let pkts = free.remove(&group).unwrap_or(0);
                // One more would be farther from the share than one less.
                if own > 0 && own + pkts > share && own + pkts - share > share - own {
                    free.insert(group, pkts);
                    break;
                }
                own += pkts;
                part_of.insert(group, part);
                for (neighbour, pkts) in near.get(&group).into_iter().flatten() {
                    let all = joined.entry(*neighbour).or_default();
                    *all += pkts;
                    next.push((*all, Reverse(*neighbour)));
                }
            }
            left -= own;
        }
        // What is left is more than its share for all threads; the last one has the fewest packets.
        let last = threads.max(1) as u32 - 1;
        let parts = (0..load.processes.len() as u32)
            .map(|process| part_of.get(&self.of(process)).copied().unwrap_or(last));
        packed(parts.collect())
    }
}

/// The group with the greatest load, the first one of equal ones.
fn heaviest(free: &BTreeMap<u32, u64>) -> Option<u32> {
    let all = free.iter();
    all.max_by_key(|(group, pkts)| (**pkts, Reverse(**group)))
        .map(|(group, _)| *group)
}

/// The same parts with numbers from 0 on.
fn packed(parts: Vec<u32>) -> Vec<u32> {
    let mut numbers = BTreeMap::new();
    for part in &parts {
        let next = numbers.len() as u32;
        numbers.entry(*part).or_insert(next);
    }
    parts.iter().map(|part| numbers[part]).collect()
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Class, Flow, Link, Measures, Outages, Scheduler};
    use crate::network::{Hop, OnBreak, Routed, Station};
    use crate::tcp;

    use super::*;

    fn station(name: usize, delay_s: f64) -> Station {
        Station {
            name: name.to_string(),
            link: Link {
                delay_s: Signal::Constant(delay_s),
                ..Link::of_rate(10_000_000)
            },
            scheduler: Scheduler::fifo(),
            classes: vec![Class::named("all")],
            absent: Outages::default(),
        }
    }

    fn way(links: &[u32]) -> Vec<Way> {
        let hops = links.iter().map(|link| Hop {
            link: *link,
            class: 0,
        });
        vec![Way {
            from_ns: 0,
            hops: hops.collect(),
        }]
    }

    /// Links with these delays, and a TCP flow over each of these ways there and back.
    fn network(delays_s: &[f64], ways: &[(&[u32], &[u32])]) -> Network {
        let tcp = tcp::Config::new(tcp::Algorithm::Cubic, tcp::Profile::Linux);
        let flows = ways.iter().map(|(there, back)| Routed {
            flow: Flow {
                name: "f".to_owned(),
                class: 0,
                start_ns: 0,
                stop_ns: u64::MAX,
                access_delay_ns: 0,
                traffic: Traffic::Tcp(tcp.clone()),
                measures: Measures::default(),
            },
            there: way(there),
            back: way(back),
        });
        Network {
            name: "test".to_owned(),
            duration_ns: 1_000_000_000,
            warmup_ns: 0,
            interval_ns: 1_000_000_000,
            seed: 1,
            flows: flows.collect(),
            links: delays_s
                .iter()
                .enumerate()
                .map(|(i, s)| station(i, *s))
                .collect(),
            on_break: OnBreak::Lose,
            log_rows: None,
        }
    }

    fn cut(network: &Network, threads: usize) -> Cut {
        Cut::new(network, &Plan::new(network).unwrap(), threads)
    }

    #[test]
    fn flows_apart_are_shared_without_a_message() {
        let ways: [(&[u32], &[u32]); 4] = [(&[0], &[1]), (&[2], &[3]), (&[4], &[5]), (&[6], &[7])];
        let found = cut(&network(&[0.01; 8], &ways), 2);
        for flow in found.parts.chunks(2) {
            assert_eq!(flow[0], flow[1]);
        }
        assert_eq!(found.parts.iter().filter(|part| **part == 0).count(), 4);
        assert_eq!(found.lookahead_ns, u64::MAX);
    }

    #[test]
    fn long_delays_are_cut_and_short_ones_are_not() {
        // A chain of six links, the third one long; the way back is a seventh without delay of its own.
        let delays_s = [1e-6, 1e-6, 0.05, 1e-6, 1e-6, 0.01, 0.0];
        let found = cut(&network(&delays_s, &[(&[0, 1, 2, 3, 4, 5], &[6])]), 2);
        let parts = &found.parts;
        assert_eq!([parts[0], parts[1], parts[2], parts[6]], [parts[0]; 4]);
        assert_eq!([parts[3], parts[4], parts[5]], [1 - parts[0]; 3]);
        assert_eq!(found.lookahead_ns, 10_000_000);
    }

    #[test]
    fn what_takes_no_time_stays_in_one_thread() {
        let found = cut(&network(&[0.0; 3], &[(&[0, 1], &[2])]), 8);
        assert_eq!((found.parts, found.lookahead_ns), (vec![0; 3], u64::MAX));
    }
}
