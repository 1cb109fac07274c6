// SPDX-License-Identifier: BSD-3-Clause
//! Measures the engine of networks on a shell of satellites: a torus of 72 planes with 22 satellites each, four links from each
//! to its neighbours at 20 Mbit/s, ground stations at 10 Mbit/s, queues of 100 packets, a CUBIC flow for each pair of stations,
//! acknowledgements by links, too. Prints one JSON object.
//!
//! `cargo run --release --example shell -- 10 1` simulates 10 s with one thread. `-- 10 2 30` lets stations of a pair be up to
//! 30 planes apart in place of 18.

use std::process::ExitCode;
use std::time::Instant;

use linkweir_sim::experiment::{Class, Flow, Link, Measures, Outages, Scheduler, Signal, Traffic};
use linkweir_sim::network::{Hop, Network, OnBreak, Routed, Station, Way};
use linkweir_sim::table::{Sink, Table};
use linkweir_sim::{run_network, tcp};

const PLANES: i64 = 72;
const PER_PLANE: i64 = 22;
const PAIRS: u32 = 100;
/// Along a plane, and from plane to plane.
const DELAYS_S: [f64; 2] = [0.0066, 0.0018];
const GROUND_DELAY_S: f64 = 0.003;

/// Counts rows and bytes of a hash, so that runs can be compared.
#[derive(Default)]
struct Digest {
    hash: u64,
    delivered_pkts: u64,
}

impl Sink for Digest {
    fn chunk(&mut self, table: Table) -> Result<(), String> {
        for byte in format!("{table:?}").bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if table.name == "flows" {
            for (name, column) in &table.columns {
                if let (linkweir_sim::table::Column::Count(values), "delivered_pkts") =
                    (column, name.as_str())
                {
                    self.delivered_pkts += values.iter().sum::<u64>();
                }
            }
        }
        Ok(())
    }
}

/// Links as they are needed.
#[derive(Default)]
struct Links {
    all: Vec<Station>,
    /// Of each satellite, to the neighbour in each of four directions.
    between: Vec<[u32; 4]>,
}

impl Links {
    fn add(&mut self, name: String, bps: u64, delay_s: f64) -> u32 {
        self.all.push(station(name, bps, delay_s));
        self.all.len() as u32 - 1
    }
}

fn station(name: String, bps: u64, delay_s: f64) -> Station {
    Station {
        name,
        link: Link {
            delay_s: Signal::Constant(delay_s),
            ..Link::of_rate(bps)
        },
        scheduler: Scheduler::fifo(),
        classes: vec![Class {
            limit_pkts: Some(100),
            ..Class::named("all")
        }],
        absent: Outages::default(),
    }
}

/// The next satellite in a direction.
fn neighbour(satellite: usize, direction: usize) -> usize {
    let (plane, at) = (satellite as i64 / PER_PLANE, satellite as i64 % PER_PLANE);
    let (plane, at) = match direction {
        0 => (plane, at + 1),
        1 => (plane, at - 1),
        2 => (plane + 1, at),
        _ => (plane - 1, at),
    };
    (plane.rem_euclid(PLANES) * PER_PLANE + at.rem_euclid(PER_PLANE)) as usize
}

/// The links from one satellite to another, so many steps along the plane and so many planes away.
fn path(links: &Links, from: usize, (along, across): (i64, i64)) -> (Vec<u32>, Vec<u32>, usize) {
    let (mut there, mut back, mut at) = (Vec::new(), Vec::new(), from);
    for (steps, directions) in [(across, [2, 3]), (along, [0, 1])] {
        for _ in 0..steps.abs() {
            let direction = directions[usize::from(steps < 0)];
            there.push(links.between[at][direction]);
            at = neighbour(at, direction);
            back.insert(0, links.between[at][direction ^ 1]);
        }
    }
    (there, back, at)
}

fn way(links: Vec<u32>) -> Vec<Way> {
    let hops = links.into_iter().map(|link| Hop { link, class: 0 });
    vec![Way {
        from_ns: 0,
        hops: hops.collect(),
    }]
}

fn shell(duration_ns: u64, farthest: i64) -> Network {
    let mut links = Links::default();
    let satellites = (PLANES * PER_PLANE) as usize;
    for satellite in 0..satellites {
        let mut all = [0; 4];
        for (direction, link) in all.iter_mut().enumerate() {
            let name = format!("s{satellite}-s{}", neighbour(satellite, direction));
            *link = links.add(name, 20_000_000, DELAYS_S[direction / 2]);
        }
        links.between.push(all);
    }
    let mut state = 7u64;
    let mut below = |n: i64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as i64 % n
    };
    let flows = (0..PAIRS).map(|pair| {
        let from = below(satellites as i64) as usize;
        let steps = (below(11) - 5, below(2 * farthest + 1) - farthest);
        let (there, back, to) = path(&links, from, steps);
        let mut ground = |name: String| links.add(name, 10_000_000, GROUND_DELAY_S);
        let up = ground(format!("a{pair}-s{from}"));
        let down = ground(format!("s{to}-b{pair}"));
        let back_up = ground(format!("b{pair}-s{to}"));
        let back_down = ground(format!("s{from}-a{pair}"));
        let there = [vec![up], there, vec![down]].concat();
        let back = [vec![back_up], back, vec![back_down]].concat();
        Routed {
            flow: Flow {
                name: format!("pair{pair}"),
                class: 0,
                start_ns: u64::from(pair) * 1_000_000,
                stop_ns: u64::MAX,
                access_delay_ns: 0,
                traffic: Traffic::Tcp(tcp::Config::new(tcp::Algorithm::Cubic, tcp::Profile::Linux)),
                measures: Measures::default(),
            },
            there: way(there),
            back: way(back),
        }
    });
    let flows = flows.collect();
    Network {
        name: "shell".to_owned(),
        duration_ns,
        warmup_ns: 0,
        interval_ns: 1_000_000_000,
        seed: 1,
        links: links.all,
        flows,
        on_break: OnBreak::Lose,
        log_rows: None,
    }
}

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let mut next = |default| numbers.next().unwrap_or(Ok(default));
    let (Ok(seconds), Ok(threads), Ok(farthest)) = (next(10), next(1), next(18)) else {
        eprintln!("usage: shell [seconds] [threads] [planes]");
        return ExitCode::from(2);
    };
    let network = shell(seconds * 1_000_000_000, farthest as i64);
    let mut sink = Digest::default();
    #[allow(clippy::disallowed_methods)] // the time of the run, which the simulation does not see
    let began = Instant::now();
    let outcome = match run_network(&network, threads as usize, &mut sink) {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let took_s = began.elapsed().as_secs_f64();
    println!(
        "{{\"links\": {}, \"simulated_s\": {seconds}, \"threads\": {threads}, \"took_s\": {took_s:.3}, \"packet_hops\": {}, \"events\": {}, \"ns_per_packet_hop\": {:.1}, \"delivered_pkts\": {}, \"hash\": \"{:016x}\"}}",
        network.links.len(),
        outcome.packets,
        outcome.events,
        took_s * 1e9 / outcome.packets as f64,
        sink.delivered_pkts,
        sink.hash
    );
    ExitCode::SUCCESS
}
