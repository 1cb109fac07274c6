// SPDX-License-Identifier: BSD-3-Clause
//! Result tables of a few mixed experiments, committed as text: a change of behaviour is a change of these files.
//!
//! `LINKWEIR_SNAPSHOTS=write cargo test -p linkweir-sim --test engine snapshots` writes them again; read the difference
//! before committing it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::build::*;
use linkweir_sim::experiment::{Capacity, End, Experiment, Lengths, Signal, Sizes, Traffic};
use linkweir_sim::table::{Column, Table};
use linkweir_sim::tcp;

fn cubic() -> Traffic {
    Traffic::Tcp(tcp::Config::new(tcp::Algorithm::Cubic, tcp::Profile::Linux))
}

/// PSS between voice and the rest on a link that swings and fails.
fn pss_on_a_fading_link() -> Experiment {
    let af = [
        ("level", 1),
        ("low_level", 3),
        ("rate", 4_000_000),
        ("memory", 2 * S),
    ];
    let pss = scheduler("pss", &[], &[&[("level", 0)], &af, &[("level", 2)]]);
    let points = [(0, 12e6), (2 * S, 6e6), (3 * S, 0.0), (3_200_000_000, 9e6)];
    let end = End::Loop { period_ns: 5 * S };
    let capacity = Capacity::Rate(Signal::Steps {
        points: points.into(),
        end,
    });
    let mut e = experiment(capacity, 10_000_000, pss, 3, 12 * S);
    e.interval_ns = 2 * S;
    e.warmup_ns = 2 * S;
    e.link.delay_s = Signal::Constant(0.25);
    e.link.loss = Signal::Constant(0.001);
    let packet = Sizes::Fixed(200);
    e.flows = vec![
        flow(
            0,
            Traffic::Cbr {
                rate_bps: Signal::Constant(2e6),
                jitter: 0.3,
                packet,
            },
        ),
        flow(1, greedy(1500)),
        flow(2, greedy(1000)),
    ];
    e
}

/// Two TCP classes and jittery bursts under DRR, with delays on the way.
fn tcp_under_drr() -> Experiment {
    let queues: [&[_]; 3] = [
        &[("level", 0)],
        &[("level", 1), ("quantum", 3000)],
        &[("level", 1), ("quantum", 1500)],
    ];
    let mut e = experiment(
        rate(10e6),
        10_000_000,
        scheduler("drr", &[], &queues),
        3,
        20 * S,
    );
    e.interval_ns = 5 * S;
    e.link.delay_s = Signal::Constant(0.04);
    e.link.return_delay_ns = 40 * MS;
    for class in &mut e.classes {
        class.limit_pkts = Some(60);
    }
    let voice = Traffic::OnOff {
        rate_bps: 1e6,
        on_ns: 500 * MS,
        off_ns: 50 * MS,
        lengths: Lengths::Exponential,
        packet: Sizes::Fixed(210),
    };
    let newreno = Traffic::Tcp(tcp::Config::new(tcp::Algorithm::NewReno, tcp::Profile::Ns2));
    e.flows = vec![
        flow(0, voice),
        flow(1, cubic()),
        flow(1, cubic()),
        flow(2, newreno),
    ];
    for (i, flow) in e.flows.iter_mut().enumerate() {
        flow.access_delay_ns = 5 * MS;
        flow.start_ns = i as u64 * 100 * MS;
    }
    e
}

/// Proportional delay and loss with Poisson, Pareto and mixed sizes over a recorded link with a ring.
fn pds_on_opportunities() -> Experiment {
    let queues: [&[_]; 3] = [
        &[("delay", 4), ("loss", 1)],
        &[("delay", 2), ("loss", 2)],
        &[("delay", 1), ("loss", 4)],
    ];
    let at_ns = (1..=400u64)
        .map(|i| i * 1_000_000 + (i * i % 7) * 100_000)
        .collect();
    let capacity = Capacity::Opportunities { at_ns, bytes: 1500 };
    let mut e = experiment(
        capacity,
        12_000_000,
        scheduler("pds", &[("limit", "60")], &queues),
        3,
        10 * S,
    );
    e.interval_ns = 5 * S;
    e.link.ring = 4;
    e.link.follow = true;
    let mixed = Sizes::Mix([(64, 1.0), (576, 1.0), (1500, 2.0)].into());
    let swing = Signal::Cosine {
        mean: 5e6,
        amplitude: 1.0,
        period_ns: 2 * S,
        phase_rad: 1.0,
    };
    e.flows = vec![
        flow(
            0,
            Traffic::Poisson {
                rate_bps: swing,
                packet: mixed,
            },
        ),
        flow(1, cbr(5e6, 1000)),
        flow(
            2,
            Traffic::OnOff {
                rate_bps: 12e6,
                on_ns: 100 * MS,
                off_ns: 100 * MS,
                lengths: Lengths::Pareto { shape: 1.5 },
                packet: Sizes::Uniform(64, 1500),
            },
        ),
    ];
    e
}

fn cell(column: &Column, row: usize) -> String {
    match column {
        Column::Real(values) => values[row].map_or("-".to_owned(), |v| format!("{v}")),
        Column::Count(values) => values[row].to_string(),
        Column::Whole(values) => values[row].to_string(),
        Column::Name(values) => values[row].clone(),
    }
}

/// The tables as text, one value per line below its row's names.
fn text(e: &Experiment) -> String {
    let t = tables(e);
    let mut text = String::new();
    // Without the hundreds of buckets of `delays`, whose percentiles are in `classes` and `flows`.
    for name in t.names().into_iter().filter(|name| *name != "delays") {
        let columns = t.columns(name);
        writeln!(text, "{name}").unwrap();
        let heads: Vec<&str> = columns.iter().map(|(head, _)| head.as_str()).collect();
        let mut rows = vec![heads
            .iter()
            .map(|head| (*head).to_owned())
            .collect::<Vec<String>>()];
        for row in 0..columns[0].1.len() {
            rows.push(
                columns
                    .iter()
                    .map(|(_, column)| cell(column, row))
                    .collect(),
            );
        }
        // Turned on its side, columns become lines that fit.
        let widths: Vec<usize> = rows
            .iter()
            .map(|row| row.iter().map(String::len).max().unwrap_or(0))
            .collect();
        for column in 0..heads.len() {
            for (row, width) in rows.iter().zip(&widths) {
                write!(text, " {:>width$}", row[column]).unwrap();
            }
            writeln!(text).unwrap();
        }
        writeln!(text).unwrap();
    }
    text
}

fn matches_snapshot(name: &str, e: &Experiment) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(format!("{name}.txt"));
    let found = text(e);
    if std::env::var("LINKWEIR_SNAPSHOTS").is_ok_and(|v| v == "write") {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &found).unwrap();
        return;
    }
    let expected = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let difference = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
    assert!(
        expected == found,
        "{} differs, first in (expected, found)\n{difference:#?}",
        file.display()
    );
}

#[test]
fn snapshots_pss_on_a_fading_link() {
    matches_snapshot("pss_on_a_fading_link", &pss_on_a_fading_link());
}

#[test]
fn snapshots_tcp_under_drr() {
    matches_snapshot("tcp_under_drr", &tcp_under_drr());
}

#[test]
fn snapshots_pds_on_opportunities() {
    matches_snapshot("pds_on_opportunities", &pds_on_opportunities());
}

/// FNV-1a over everything the sink was given, chunk by chunk.
fn hash(chunks: &[Table]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    for table in chunks {
        add(table.name.as_bytes());
        for (name, column) in &table.columns {
            add(name.as_bytes());
            match column {
                Column::Real(values) => {
                    values
                        .iter()
                        .for_each(|v| add(&v.map_or(u64::MAX, f64::to_bits).to_le_bytes()));
                }
                Column::Count(values) => values.iter().for_each(|v| add(&v.to_le_bytes())),
                Column::Whole(values) => values.iter().for_each(|v| add(&v.to_le_bytes())),
                Column::Name(values) => values.iter().for_each(|v| add(v.as_bytes())),
            }
        }
    }
    hash
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_does_not() {
    for mut e in [
        pss_on_a_fading_link(),
        tcp_under_drr(),
        pds_on_opportunities(),
    ] {
        e.interval_ns = MS;
        let bytes = |e: &Experiment| {
            let (t, _) = run_into(
                e,
                Tables {
                    keep_chunks: true,
                    ..Tables::default()
                },
            );
            assert!(
                t.chunks.iter().filter(|c| c.name == "series").count() > 1,
                "rows come in chunks"
            );
            assert!(
                t.chunks.iter().all(|c| c.columns[0].1.len() <= 4096),
                "chunks stay small"
            );
            hash(&t.chunks)
        };
        let first = bytes(&e);
        assert_eq!(first, bytes(&e));
        e.seed += 1;
        assert_ne!(first, bytes(&e));
    }
}

#[test]
fn one_more_flow_leaves_the_others_random_numbers_alone() {
    let mut e = experiment(
        rate(100e6),
        100_000_000,
        scheduler("fifo", &[], &[&[], &[]]),
        2,
        10 * S,
    );
    let poisson = Traffic::Poisson {
        rate_bps: Signal::Constant(5e6),
        packet: Sizes::Uniform(64, 1500),
    };
    e.flows = vec![flow(0, poisson.clone())];
    let alone = tables(&e).numbers("flows", "delivered_bytes")[0];
    e.flows.push(flow(1, poisson));
    let both = tables(&e).numbers("flows", "delivered_bytes");
    assert_eq!(alone, both[0]);
    assert_ne!(both[0], both[1]);
}
