// SPDX-License-Identifier: BSD-3-Clause
//! Whatever happens to a scenario, a trace file or a capture, reading it ends in a scenario or a fault, never in a panic.

use std::fs;
use std::path::{Path, PathBuf};

use linkweir_config::trace::{Covers, EarlierTimes, EqualTimes, Gap};
use linkweir_sim::scenario::{parse, parse_trace, Column, Format, Hints, NamedColumns, Place};

mod elements;
use elements::{summed, LISTED};

const ROUNDS: u64 = 200;

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Pieces that have upset parsers before.
const PIECES: [&str; 24] = [
    "-1",
    "nan",
    "inf",
    "1e999",
    "99999999999999999999",
    "\"",
    "'''",
    "[",
    "]]",
    "{",
    "}",
    "=",
    "\n",
    "\0",
    "\u{feff}",
    "#",
    "0x",
    "1979-05-27",
    "[[class]]\n",
    "p",
    "%",
    "Mbit",
    ",,",
    "\\u{",
];

fn corrupt(original: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=draw.below(4) {
        let at = draw.below(bytes.len() + 1);
        match draw.below(7) {
            0 if at < bytes.len() => bytes[at] = draw.next() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << draw.below(8),
            2 => bytes.truncate(at),
            3 => {
                let end = (at + draw.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let from = draw.below(bytes.len() + 1);
                let end = (from + draw.below(200)).min(bytes.len());
                let copy = bytes[from..end].to_vec();
                bytes.splice(at..at, copy);
            }
            5 => {
                let piece = PIECES[draw.below(PIECES.len())];
                bytes.splice(at..at, piece.bytes());
            }
            _ => {
                // A digit becomes another: the text stays readable and its numbers move.
                if let Some(i) = bytes.iter().skip(at).position(u8::is_ascii_digit) {
                    bytes[at + i] = b'0' + draw.below(10) as u8;
                }
            }
        }
    }
    bytes
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn corrupted_scenarios_end_in_a_scenario_or_a_fault() {
    let (mut sound, mut faulty) = (0, 0);
    for (number, file) in files("", "toml").iter().enumerate() {
        let original = fs::read(file).unwrap();
        for round in 0..ROUNDS {
            let mut draw = Draw(round * 1000 + number as u64);
            let text = String::from_utf8_lossy(&corrupt(&original, &mut draw)).into_owned();
            match parse(&text, file) {
                Ok(_) => sound += 1,
                Err(fault) => {
                    faulty += 1;
                    let shown = fault.to_string();
                    assert!(
                        shown.contains(": ") && !shown.contains('\n') && shown.len() < 2000,
                        "{shown:?}"
                    );
                }
            }
        }
    }
    assert!(
        sound > 0 && faulty > ROUNDS,
        "{sound} sound, {faulty} faulty: the corruptions are too weak or too strong"
    );
}

/// A trace in each notation.
fn originals() -> Vec<Vec<u8>> {
    let mahimahi: String = (1..400).map(|i| format!("{}\n", i * 7 / 3)).collect();
    let mbit: String = (0..200)
        .map(|i| format!("{i},{}.5,{}\n", i % 40, i % 7))
        .collect();
    let mut originals: Vec<Vec<u8>> = files("traces", "csv")
        .iter()
        .map(|f| fs::read(f).unwrap())
        .collect();
    originals.push(mahimahi.into_bytes());
    originals.push(format!("t_s,dl_mbit,ul_mbit\n{mbit}").into_bytes());
    let stamps: String = (0..200)
        .map(|i| {
            format!(
                "2026-01-31T12:{:02}:{:02}.5+02:00,{}\n",
                i / 60,
                i % 60,
                i % 40
            )
        })
        .collect();
    originals.push(format!("when,down_mbit\n{stamps}").into_bytes());
    let intervals: Vec<String> = (1..200)
        .map(|i| {
            format!(
                "{{\"sum\":{{\"end\":{i}.25,\"bytes\":{},\"omitted\":false}}}}",
                i * 999
            )
        })
        .collect();
    originals.push(format!("{{\"intervals\":[{}]}}", intervals.join(",\n")).into_bytes());
    let samples: Vec<String> = (0..200).map(|i| format!("{}.5", i * 12_345)).collect();
    originals.push(
        format!(
            "{{\"dishGetHistory\":{{\"current\":\"777\",\"downlinkThroughputBps\":[{}]}}}}",
            samples.join(",\n")
        )
        .into_bytes(),
    );
    originals
}

#[test]
fn corrupted_traces_end_in_a_trace_or_a_fault() {
    let columns = NamedColumns {
        time: Some(Column {
            place: Place::Named("when".to_string()),
            unit: "s".to_string(),
            stated: false,
        }),
        time_of_day: None,
        delay: None,
        loss: None,
        capacity: Column {
            place: Place::Named("down_mbit".to_string()),
            stated: true,
            unit: "Mbit".to_string(),
        },
    };

    let rules = [
        (EqualTimes::Refuse, EarlierTimes::Refuse),
        (EqualTimes::Last, EarlierTimes::Append),
        (EqualTimes::Mean, EarlierTimes::Sort),
        (EqualTimes::Sum, EarlierTimes::Drop),
        (EqualTimes::Spread, EarlierTimes::Sort),
    ];
    let (mut sound, mut faulty) = (0, 0);
    for (number, original) in originals().iter().enumerate() {
        for round in 0..ROUNDS {
            let mut draw = Draw(round * 1000 + number as u64);
            let bytes = corrupt(original, &mut draw);
            for format in [
                None,
                Some(Format::Linkweir),
                Some(Format::Mahimahi),
                Some(Format::Mbit),
                Some(Format::Csv),
                Some(Format::Iperf3),
                Some(Format::Starlink),
                Some(Format::Rates),
            ] {
                let hints = Hints {
                    format,
                    columns: (format == Some(Format::Csv)).then(|| columns.clone()),
                    unit: (round % 2 == 0).then(|| "kbit".to_string()),
                    interval_ns: (format == Some(Format::Rates)).then_some(1_000_000_000),
                    covers: [Covers::After, Covers::Before][round as usize % 2],
                    equal_times: rules[round as usize % rules.len()].0,
                    earlier_times: rules[round as usize % rules.len()].1,
                    gap: [None, Some(Gap::Outage), Some(Gap::Refuse)][round as usize % 3],
                    ..Hints::default()
                };
                match parse_trace(&bytes, Path::new("trace"), &hints) {
                    Ok(_) => sound += 1,
                    Err(fault) => {
                        faulty += 1;
                        assert!(fault.to_string().starts_with("trace:"), "{fault}");
                    }
                }
            }
        }
    }
    assert!(
        sound > 0 && faulty > ROUNDS,
        "{sound} sound, {faulty} faulty"
    );
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

/// Lists of packets, and a capture in each notation.
fn recordings() -> Vec<Vec<u8>> {
    let lines: String = (0..60)
        .map(|i| format!("{}.25,{},f{}\n", i / 4, 40 + i * 20, i % 3))
        .collect();
    let mut pcap = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
    let mut pcapng = block(
        0x0a0d_0d0a,
        &words(&[0x1a2b_3c4d, 1, 0xffff_ffff, 0xffff_ffff]),
    );
    pcapng.extend(block(1, &words(&[1, 65_535, 9 | 1 << 16, 9, 0])));
    for i in 0..30 {
        pcap.extend(words(&[1_700_000_000 + i / 10, i * 1000, 8, 60 + i, 1, 2]));
        pcapng.extend(block(6, &words(&[0, i / 10, i * 9_999, 8, 60 + i, 1, 2])));
    }
    let list = format!("t_s,bytes,flow\n{lines}").into_bytes();
    vec![list, pcap, pcapng]
}

#[test]
fn corrupted_recordings_end_in_packets_or_a_fault() {
    let folder = std::env::temp_dir().join(format!("linkweir-corrupt-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let scenario =
        "duration = \"1s\"\n[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"fifo\"\n[[class]]\n\
        name = \"a\"\n[[flow]]\nclass = \"a\"\nkind = \"replay\"\nfile = \"packets\"\n";
    for (number, original) in recordings().iter().enumerate() {
        let (mut sound, mut faulty) = (0, 0);
        for round in 0..5 * ROUNDS {
            let mut draw = Draw(round * 1000 + number as u64);
            let bytes = match round {
                0 => original.clone(),
                _ => corrupt(original, &mut draw),
            };
            fs::write(folder.join("packets"), bytes).unwrap();
            match parse(scenario, &folder.join("x.toml")) {
                Ok(_) => sound += 1,
                Err(fault) => {
                    faulty += 1;
                    let shown = fault.to_string();
                    assert!(shown.contains("packets"), "{shown}");
                    assert!(!shown.contains('\n') && shown.len() < 2000, "{shown:?}");
                    assert!(round > 0, "{shown}");
                }
            }
        }
        assert!(
            sound > ROUNDS / 10 && faulty > ROUNDS,
            "{number}: {sound} sound, {faulty} faulty"
        );
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn corrupted_elements_end_in_satellites_or_a_fault() {
    let folder = std::env::temp_dir().join(format!("linkweir-elements-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let ways = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ways");
    let original = fs::read(ways.join("iridium.tle")).unwrap();
    let scenario = LISTED.replace("KEYS", "");
    let (mut sound, mut faulty) = (0, 0);
    for round in 0..2 * ROUNDS {
        let mut draw = Draw(round);
        let bytes = match round {
            0 => original.clone(),
            // Every other one has the right sums, so that what is behind their check is reached.
            _ if round % 2 == 0 => corrupt(&original, &mut draw),
            _ => summed(&corrupt(&original, &mut draw)),
        };
        fs::write(folder.join("f"), bytes).unwrap();
        match parse(&scenario, &folder.join("x.toml")) {
            Ok(_) => sound += 1,
            Err(fault) => {
                faulty += 1;
                let shown = fault.to_string();
                assert!(!shown.contains('\n') && shown.len() < 2000, "{shown:?}");
                assert!(round > 0, "{shown}");
            }
        }
    }
    assert!(
        sound > ROUNDS / 10 && faulty > ROUNDS / 2,
        "{sound} sound, {faulty} faulty"
    );
    fs::remove_dir_all(folder).unwrap();
}
