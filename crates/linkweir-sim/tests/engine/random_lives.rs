// SPDX-License-Identifier: BSD-3-Clause
//! Experiments put together at random: nothing panics, no packet is lost or made, the link carries what it offers.

use linkweir_sim::experiment::{
    Beam, Capacity, ClearSky, End, Experiment, Flow, Full, Lengths, Measures, Playout, Signal,
    Sizes, TimeLimit, Traffic, Weather,
};
use linkweir_sim::satellite::modcod::{Adaptation, DVB_S2};
use linkweir_sim::satellite::rain::{Attenuation, Rain};
use linkweir_sim::tcp;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::build::*;

pub struct Dice(pub Pcg64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    pub fn signal(&mut self, mean: f64) -> Signal {
        let period_ns = self.one_of(&[1_000, 777_777, 90 * MS, 5 * S]);
        match self.below(6) {
            0 => Signal::Cosine {
                mean,
                amplitude: self.one_of(&[0.0, 0.3, 1.0]),
                period_ns,
                phase_rad: 1.0,
            },
            1 | 2 => {
                let points = [(0, mean), (period_ns / 3, 0.0), (period_ns / 2, 2.0 * mean)].into();
                let loops = End::Loop { period_ns };
                let end = self.one_of(&[
                    loops,
                    End::Hold,
                    End::Stop {
                        at_ns: 2 * period_ns,
                    },
                ]);
                Signal::Steps { points, end }
            }
            3 => {
                let points = [
                    (0, 0.0),
                    (period_ns, 2.0 * mean),
                    (3 * period_ns, 0.0),
                    (4 * period_ns, mean),
                ];
                Signal::Lines {
                    points: points.into(),
                }
            }
            _ => Signal::Constant(mean),
        }
    }

    fn sizes(&mut self) -> Sizes {
        match self.below(3) {
            0 => Sizes::Fixed(self.one_of(&[1, 64, 1500, 65_000])),
            1 => Sizes::Uniform(64, 1500),
            _ => Sizes::Mix([(40, 1.0), (1500, 0.5)].into()),
        }
    }

    pub fn traffic(&mut self) -> Traffic {
        let mean = self.one_of(&[1e5, 1e6, 5e6]);
        match self.below(6) {
            0 => Traffic::Cbr {
                rate_bps: self.signal(mean),
                jitter: self.one_of(&[0.0, 1.0]),
                packet: self.sizes(),
            },
            1 => Traffic::Poisson {
                rate_bps: self.signal(mean),
                packet: self.sizes(),
            },
            2 => Traffic::OnOff {
                rate_bps: mean,
                on_ns: self.one_of(&[MS / 100, MS, S]),
                off_ns: self.one_of(&[MS / 100, MS, S]),
                lengths: self.one_of(&[Lengths::Exponential, Lengths::Pareto { shape: 1.2 }]),
                packet: self.sizes(),
            },
            3 => Traffic::Greedy {
                backlog_pkts: self.one_of(&[1, 5, 50]),
                packet: self.sizes(),
            },
            _ => {
                let algorithm = self.one_of(&[tcp::Algorithm::Cubic, tcp::Algorithm::NewReno]);
                let profile = self.one_of(&[tcp::Profile::Linux, tcp::Profile::Ns2]);
                Traffic::Tcp(tcp::Config::new(algorithm, profile))
            }
        }
    }

    /// Makes the link a beam in changing weather.
    fn beam(&mut self, e: &mut Experiment) {
        let (correlation, start) = self.one_of(&[(0.0, None), (0.5, Some(0.01)), (1.0, None)]);
        let rain = Rain {
            m: self.one_of(&[-2.0, 1.0]),
            sigma: 1.5,
            probability: self.one_of(&[0.3, 1.0]),
            correlation_time_s: self.one_of(&[1.0, 60.0]),
            correlation,
            start,
        };
        let holes = Attenuation::new(vec![0, S, S + 1, 2 * S], vec![0.0, 40.0, 3.0, 9.0]).unwrap();
        let weather = match self.below(4) {
            0 => Weather::Clear,
            1 => Weather::Recorded(holes),
            _ => Weather::Rain(rain),
        };
        e.link.follow = false;
        e.link.ring = 1;
        e.link.beam = Some(Beam {
            symbol_rate_bd: self.one_of(&[1e6, 2.5e6]),
            clear_sky: ClearSky::Between(-3.0, 17.0),
            adaptation: Adaptation::new(DVB_S2, 0.5, self.one_of(&[0.0, 0.3])),
            tick_ns: self.one_of(&[MS, 100 * MS, 777_777_777]),
            weather,
            seed: e.seed,
        });
    }

    pub fn experiment(&mut self) -> Experiment {
        let nclasses = 1 + self.below(5) as usize;
        let names: Vec<&str> = linkweir_core::policies().iter().map(|p| p.name).collect();
        let policy = self.one_of(&names);
        let mut set = Vec::new();
        let mut queues: Vec<Vec<(&str, u64)>> = vec![Vec::new(); nclasses];
        match policy {
            "pss" => {
                for (q, queue) in queues.iter_mut().enumerate() {
                    queue.push(("level", 2 * q as u64));
                }
                queues[0].extend([("low_level", 1000), ("share", 300_000)]);
            }
            "pds" => {
                set.push(("limit", self.one_of(&["1", "25", "500"])));
                set.push(("qmin", "0"));
                set.push(("early", self.one_of(&["off", "peld"])));
            }
            "wrr" => set.push(("mode", self.one_of(&["burst", "smooth"]))),
            "drr" => queues[0].push(("quantum", 100)),
            _ => {}
        }
        let queues: Vec<&[_]> = queues.iter().map(Vec::as_slice).collect();
        let capacity = if self.below(4) == 0 {
            let at_ns = [0, MS, MS, 7 * MS / 2, 4 * MS].into();
            Capacity::Opportunities {
                at_ns,
                bytes: self.one_of(&[1, 1500, 9000]),
            }
        } else {
            Capacity::Rate(self.signal(4e6))
        };
        let duration_ns = self.one_of(&[3 * S, 4 * S + 123_456_789]);
        let mut e = experiment(
            capacity,
            4_000_000,
            scheduler(policy, &set, &queues),
            nclasses,
            duration_ns,
        );
        e.seed = self.0.next_u64();
        e.interval_ns = self.one_of(&[10 * MS, S, 7 * S]);
        e.link.follow = self.below(2) == 0;
        e.link.delay_s = self.signal(0.02);
        e.link.return_delay_ns = self.one_of(&[0, 20 * MS]);
        e.link.loss = Signal::Constant(self.one_of(&[0.0, 0.01, 1.0]));
        e.link.ring = self.one_of(&[1, 2, 16]);
        e.link.overhead_bytes = self.one_of(&[0, 38]);
        e.link.mpu_bytes = self.one_of(&[0, 84]);
        for class in &mut e.classes {
            class.limit_pkts = self.one_of(&[None, Some(0), Some(3), Some(100)]);
            class.limit_bytes = self.one_of(&[None, None, Some(20_000)]);
            class.max_age_ns = self.one_of(&[None, None, Some(MS), Some(50 * MS)]);
            class.full = self.one_of(&[Full::Tail, Full::Head]);
            class.least_ppm = self.one_of(&[0, 0, 50_000]);
            class.limit_time = self.one_of(&[
                None,
                None,
                Some(TimeLimit {
                    ns: 100 * MS,
                    least_bytes: 3000,
                }),
            ]);
        }
        e.flows = (0..1 + self.below(8))
            .map(|_| {
                let start_ns = self.below(2 * S);
                let stop_ns = self.one_of(&[0, S, u64::MAX]);
                let access_delay_ns = self.one_of(&[0, 0, 5 * MS]);
                let flow = flow(self.below(nclasses as u64) as usize, self.traffic());
                Flow {
                    start_ns,
                    stop_ns,
                    access_delay_ns,
                    measures: all_measures(&flow.traffic),
                    ..flow
                }
            })
            .collect();
        e
    }
}

/// Everything that can be measured of a flow.
fn all_measures(traffic: &Traffic) -> Measures {
    let playout = [("60ms", Some(60 * MS)), ("adaptive", None)];
    let playout = playout.map(|(name, buffer_ns)| Playout {
        name: name.to_owned(),
        buffer_ns,
    });
    Measures {
        delays: true,
        playout: match traffic {
            Traffic::Tcp(_) => Vec::new(),
            _ => playout.into(),
        },
    }
}

/// The receivers were due no more packets than arrived, and all that did not come.
fn calls_are_whole(name: &str, e: &Experiment, t: &Tables) {
    let Some(rows) = t.tables.get("voice") else {
        return;
    };
    let rows = rows[0].1.len();
    let n = |column| t.numbers("voice", column);
    let (due, lost, late) = (n("due_pkts"), n("lost_pkts"), n("late_pkts"));
    for row in 0..rows {
        assert!(
            lost[row] + late[row] <= due[row],
            "{name}, row {row}: {e:#?}"
        );
    }
    let open = |flow: &&Flow| !matches!(flow.traffic, Traffic::Tcp(_));
    let open: Vec<bool> = e.flows.iter().map(|flow| open(&flow)).collect();
    let of_flows = |columns: &[&str]| -> f64 {
        let values = columns.iter().map(|column| t.numbers("flows", column));
        values
            .flat_map(|values| values.into_iter().zip(&open).filter(|(_, open)| **open))
            .map(|(value, _)| value)
            .sum()
    };
    let gone = of_flows(&[
        "dropped_limit_pkts",
        "dropped_policy_pkts",
        "dropped_age_pkts",
        "lost_link_pkts",
    ]);
    // Twice, as there are two buffers.
    assert_eq!(lost.iter().sum::<f64>(), 2.0 * gone, "{name}: {e:#?}");
    let arrived = 2.0 * of_flows(&["arrived_pkts"]);
    let ended = 2.0 * (gone + of_flows(&["delivered_pkts"]));
    let due: f64 = due.iter().sum();
    assert!(
        (ended..=arrived).contains(&due),
        "{name}: {due} of {arrived}"
    );
}

/// Runs it, and returns how many packets left queues and how many were dropped.
fn life(name: &str, e: &Experiment) -> (f64, f64) {
    let (mut moved, mut dropped) = (0.0, 0.0);
    let t = tables(e);
    calls_are_whole(name, e, &t);
    let n = |table, column| t.numbers(table, column);
    let bins = n("link", "t_s").len();
    for class in 0..e.classes.len() {
        let last = (bins - 1) * e.classes.len() + class;
        let gone = n("classes", "dropped_limit_pkts")[class]
            + n("classes", "dropped_policy_pkts")[class]
            + n("classes", "dropped_age_pkts")[class];
        let sent = n("classes", "sent_pkts")[class];
        assert_eq!(
            n("classes", "arrived_pkts")[class],
            sent + gone + n("series", "backlog_pkts")[last],
            "{name}, class {class}: {e:#?}"
        );
        let flows = e
            .flows
            .iter()
            .enumerate()
            .filter(|(_, flow)| flow.class == class)
            .map(|(i, _)| i);
        let seen: f64 = flows
            .map(|i| n("flows", "delivered_pkts")[i] + n("flows", "lost_link_pkts")[i])
            .sum();
        assert!(
            seen <= sent,
            "{name}, class {class}: {seen} of {sent} came out"
        );
        moved += sent;
        dropped += gone;
    }
    for (capacity, used) in n("link", "capacity_bps").iter().zip(n("link", "used_bps")) {
        // Bins of tiny pieces differ by roundings; -1 bit/s would be a packet taken back.
        assert!(
            used > -1.0 && used <= capacity * (1.0 + 1e-6) + 1.0,
            "{name}: {used} of {capacity}"
        );
    }
    (moved, dropped)
}

#[test]
fn random_beams_keep_their_packets() {
    let mut dice = Dice(Pcg64::seed_from_u64(3));
    let (mut moved, mut dropped) = (0.0, 0.0);
    for number in 0..120 {
        let mut e = dice.experiment();
        dice.beam(&mut e);
        let name = format!("beam {number}");
        let (sent, gone) = life(&name, &e);
        let t = tables(&e);
        for (occupancy, outage) in t
            .numbers("carrier", "occupancy")
            .iter()
            .zip(t.numbers("carrier", "outage"))
        {
            // A packet that comes in the nanosecond in which another one ends does not wait for its last fraction.
            assert!(
                (-1e-6..=1.0 + 1e-6).contains(occupancy) && (0.0..=1.0 + 1e-9).contains(&outage),
                "{name}: {occupancy}, {outage}"
            );
        }
        moved += sent;
        dropped += gone;
    }
    assert!(
        moved > 50_000.0 && dropped > 50_000.0,
        "the lives are eventful: {moved} moved, {dropped} dropped"
    );
}

/// What `make check` leaves out.
mod slow {
    use super::*;

    #[test]
    fn random_experiments_keep_their_packets() {
        let mut dice = Dice(Pcg64::seed_from_u64(2));
        let (mut moved, mut dropped) = (0.0, 0.0);
        for number in 0..100 {
            let e = dice.experiment();
            let (sent, gone) = life(&format!("life {number}"), &e);
            moved += sent;
            dropped += gone;
        }
        assert!(
            moved > 100_000.0 && dropped > 100_000.0,
            "the lives are eventful: {moved} moved, {dropped} dropped"
        );
    }
}
