// SPDX-License-Identifier: BSD-3-Clause
//! A recording of a link in virtual time, made by the code that a gateway runs. The Python tests replay it in the simulator,
//! and it stands for the format: later versions must read it.
//!
//! `LINKWEIR_WRITE_RECORDING=1 cargo test -p linkweir-gateway --test recorded` writes it again.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use linkweir_config::recording::{frame, peer, settings, Recording};
use linkweir_gateway::config;
use linkweir_gateway::run::described::{describe, describe_peer};
use linkweir_plane::link::{Link, Next};
use linkweir_plane::recorder::{Recorder, Tap};
use rand_pcg::rand_core::Rng;
use rand_pcg::Pcg32;

const FOLDER: &str = "../../python/tests/data";
const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
/// 2026-01-31 02:00 UTC.
const BEGAN_UNIX_NS: u64 = 1_769_824_800 * S;

/// A ship: calls, video with a reservation, and the rest; the link fades from 20 to 8 Mbit/s and back.
const TEXT: &str = r#"[gateway]
device = "lw0"
listen = "192.0.2.1:51820"
mode = "cleartext"
[link]
rate = { steps = [["0s", "20Mbit"], ["15.004s", "8Mbit"], ["27s", "16Mbit"]] }
nominal = "20Mbit"
[scheduler]
policy = "pss"
[[class]]
name = "voice"
level = 0
match = [{ dscp = "EF" }]
[[class]]
name = "video"
level = 1
low_level = 3
rate = "4Mbit"
memory = "15s"
limit = "300p"
match = [{ dscp = "AF41" }]
[[class]]
name = "rest"
level = 2
limit = "300p"
[[peer]]
name = "ship"
endpoint = "192.0.2.2:51820"
allowed_ips = "10.77.0.2/32"
"#;

/// Packets of a class at random times.
struct Source {
    class: usize,
    sizes: &'static [u32],
    bps: f64,
    next_ns: u64,
}

/// A random number between 0 and 1.
fn uniform(random: &mut Pcg32) -> f64 {
    f64::from(random.next_u32()) / 4_294_967_296.0
}

/// A recording of counts, or of each packet.
fn recorded(text: &str, packets: bool, duration_ns: u64) -> Vec<u8> {
    let config = config::parse(text, Path::new("ground.toml")).unwrap();
    let mut link = Link::new(0, config.link_setup(&config.peers[0].capacity)).unwrap();
    let recorder = Rc::new(RefCell::new(Recorder::new(0, packets)));
    link.record_to(Some(Tap::new(recorder.clone(), 0, config.classes.len())));
    let mut random = Pcg32::new(1, 1);
    let source = |class, sizes, bps| Source {
        class,
        sizes,
        bps,
        next_ns: 0,
    };
    // More than the link carries at any time: 2 + 7 + 14 Mbit/s.
    let mut sources = [
        source(0, &[200], 2e6),
        source(1, &[1500, 1500, 1500, 700], 7e6),
        source(2, &[1500, 1500, 1500, 1500, 576, 64], 14e6),
    ];
    let mut now_ns = 0;
    while now_ns < duration_ns {
        for source in &mut sources {
            while source.next_ns <= now_ns {
                let bytes = source.sizes[random.next_u32() as usize % source.sizes.len()];
                let mut packet = vec![0; 60];
                packet[0] = 0x45;
                // The rest is TCP, the others are UDP.
                packet[9] = if source.class == 2 { 6 } else { 17 };
                link.arrive(source.next_ns, source.class, bytes, &packet);
                let gap_s = 8.0 * f64::from(bytes) / source.bps;
                source.next_ns += (gap_s * (0.5 + uniform(&mut random)) * 1e9) as u64;
            }
        }
        let arrival_ns = sources.iter().map(|source| source.next_ns).min().unwrap();
        now_ns = match link.next(now_ns, |_| false) {
            Next::Send(..) => now_ns,
            Next::At(ns) => ns.min(arrival_ns),
            Next::Nothing => arrival_ns,
        };
    }
    let described = describe(&config, false);
    let mut bytes = settings(BEGAN_UNIX_NS, packets, &described);
    for block in recorder.borrow_mut().take_all(duration_ns) {
        for number in &block.peers {
            let text = describe_peer(&config.peers[*number as usize], false);
            bytes.extend(peer(*number, &text));
        }
        bytes.extend(frame(&block.body));
    }
    bytes
}

/// What a reader finds in a recording.
fn content(bytes: &[u8]) -> impl PartialEq + std::fmt::Debug {
    let recording = Recording::new(vec![bytes.to_vec()]).unwrap();
    assert_eq!(recording.damages, []);
    let span_ns = recording.span_ns();
    let classes = ["voice", "video", "rest"].map(String::from);
    let sums = recording.sums("ship", &classes, span_ns, 10 * MS);
    (sums, recording.capacity("ship", span_ns))
}

#[test]
fn the_recordings_of_the_tests_are_what_the_gateway_writes() {
    // One percent of each class's rate is more than a burst here.
    let smooth = TEXT
        .replace("memory = \"15s\"", "memory = \"15s\"\nburst = \"2p\"")
        .replace("8Mbit", "12Mbit");
    for (name, text, packets, duration_ns) in [
        ("voyage.lwrec", TEXT, false, 40 * S),
        ("voyage-smooth.lwrec", &smooth, false, 30 * S),
        ("voyage-packets.lwrec", TEXT, true, 18 * S),
    ] {
        let bytes = recorded(text, packets, duration_ns);
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(FOLDER)
            .join(name);
        if std::env::var_os("LINKWEIR_WRITE_RECORDING").is_some() {
            fs::write(&file, &bytes).unwrap();
        }
        // The settings name the version, so the bytes differ from one to the next.
        assert_eq!(
            content(&fs::read(&file).unwrap()),
            content(&bytes),
            "{name}"
        );
    }
}
