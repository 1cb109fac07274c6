// SPDX-License-Identifier: BSD-3-Clause
//! A recording of a link in virtual time, made by the code that a gateway runs. The Python tests replay it in the simulator,
//! and it stands for the format: later versions must read it.
//!
//! `LINKWEIR_WRITE_RECORDING=1 cargo test -p linkweir-gateway --test recorded` writes it again.

use std::fs;
use std::path::Path;

use linkweir_config::recording::Recording;
use linkweir_plane::paths::State;
use rand_pcg::rand_core::Rng;
use rand_pcg::Pcg32;
use virtual_link::{Arrival, Recorded, VirtualLink};

mod virtual_link;

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

/// The ship with two paths: the first fades, the second is dead for 3 s and has a longer way afterwards.
const PATHS: &str = r#"[gateway]
device = "lw0"
listen = "0.0.0.0:51820"
mode = "wireguard"
private_key_file = "ship.key"
[link]
[scheduler]
policy = "pss"
[[class]]
name = "voice"
level = 0
match = [{ dscp = "EF" }]
paths = "all"
[[class]]
name = "video"
level = 1
low_level = 3
rate = "4Mbit"
memory = "15s"
limit = "300p"
match = [{ dscp = "AF41" }]
paths = "stripe"
reorder = "400ms"
[[class]]
name = "rest"
level = 2
limit = "300p"
paths = "spill"
[[peer]]
name = "ship"
public_key = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="
allowed_ips = "10.77.0.2/32"
[[peer.path]]
name = "starlink"
rate = { steps = [["0s", "12Mbit"], ["5.004s", "5Mbit"], ["9s", "11Mbit"]] }
nominal = "12Mbit"
follow = true
cost = 1
[[peer.path]]
name = "lte"
rate = "8Mbit"
follow = true
cost = 10
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

/// The packets of three sources: 2 + 7 + 14 Mbit/s, more than the link carries at any time.
fn arrivals() -> impl Iterator<Item = Arrival> {
    let mut random = Pcg32::new(1, 1);
    let source = |class, sizes, bps| Source {
        class,
        sizes,
        bps,
        next_ns: 0,
    };
    let mut sources = [
        source(0, &[200], 2e6),
        source(1, &[1500, 1500, 1500, 700], 7e6),
        source(2, &[1500, 1500, 1500, 1500, 576, 64], 14e6),
    ];
    std::iter::from_fn(move || {
        let source = sources.iter_mut().min_by_key(|source| source.next_ns)?;
        let bytes = source.sizes[random.next_u32() as usize % source.sizes.len()];
        let arrival = Arrival {
            at_ns: source.next_ns,
            class: source.class,
            bytes,
            // The rest is TCP, the others are UDP.
            tcp: source.class == 2,
        };
        let gap_s = 8.0 * f64::from(bytes) / source.bps;
        source.next_ns += (gap_s * (0.5 + uniform(&mut random)) * 1e9) as u64;
        Some(arrival)
    })
}

/// A recording of counts, or of each packet.
fn recorded(text: &str, recorded: Recorded, duration_ns: u64) -> Vec<u8> {
    let mut link = VirtualLink::new(text, recorded).unwrap();
    link.serve(arrivals(), duration_ns);
    link.recording(BEGAN_UNIX_NS)
}

/// 12 s over two paths. What the recording says that each sent of each class is what each was seen to send.
fn recorded_over_paths() -> Vec<u8> {
    let mut link = VirtualLink::new(PATHS, Recorded::Counts).unwrap();
    let states = |lte_is_up, lte_ms| {
        [(true, 25), (lte_is_up, lte_ms)].map(|(is_up, delay_ms)| State {
            is_up,
            delay_ns: delay_ms * MS,
            arrived_ns: u64::MAX,
        })
    };
    let mut arrivals = arrivals().peekable();
    for (until_s, lte_is_up, lte_ms) in [(3, true, 40), (6, false, 40), (12, true, 70)] {
        link.set_paths(&states(lte_is_up, lte_ms));
        let until_ns = until_s * S;
        let inside = std::iter::from_fn(|| arrivals.next_if(|one| one.at_ns < until_ns));
        link.serve(inside, until_ns);
    }
    let carried = [0, 1].map(|path| link.carried(path));
    let sent = link.sent_over.clone();
    let bytes = link.recording(BEGAN_UNIX_NS);
    let recording = Recording::new(vec![bytes.clone()]).unwrap();
    let paths = ["starlink", "lte"].map(String::from);
    let classes = ["voice", "video", "rest"].map(String::from);
    let found = recording.carried("ship", (&paths, &classes), recording.span_ns());
    for (path, row) in found.iter().enumerate() {
        for (class, of) in row.iter().enumerate() {
            assert_eq!(*of, sent[&(path, class)], "path {path}, class {class}");
        }
        let sum = row
            .iter()
            .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        assert_eq!(
            sum,
            (carried[path].pkts, carried[path].bytes),
            "path {path}"
        );
    }
    bytes
}

/// What a reader finds in a recording.
fn content(bytes: &[u8]) -> impl PartialEq + std::fmt::Debug {
    let recording = Recording::new(vec![bytes.to_vec()]).unwrap();
    assert_eq!(recording.damages, []);
    let span_ns = recording.span_ns();
    let classes = ["voice", "video", "rest"].map(String::from);
    let paths = ["starlink", "lte"].map(String::from);
    let sums = recording.sums("ship", &classes, span_ns, 10 * MS);
    let carried = recording.carried("ship", (&paths, &classes), span_ns);
    let states = recording.path_states("ship", &paths, span_ns);
    (sums, recording.capacity("ship", span_ns), carried, states)
}

/// The blocks behind the settings, which name the version.
fn behind_settings(bytes: &[u8]) -> &[u8] {
    let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    &bytes[16 + length as usize..]
}

#[test]
fn the_recordings_of_the_tests_are_what_the_gateway_writes() {
    let soon = TEXT.replace("15.004s", "5.004s");
    let listed = recorded(&soon, Recorded::Counts, 12 * S);
    for (name, bytes) in [
        // Of a version that listed no packets unless asked to, so it is not written again.
        ("voyage.lwrec", recorded(TEXT, Recorded::Counts, 40 * S)),
        ("voyage-listed.lwrec", listed),
        (
            "voyage-packets.lwrec",
            recorded(TEXT, Recorded::Packets, 18 * S),
        ),
        ("voyage-paths.lwrec", recorded_over_paths()),
    ] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(FOLDER)
            .join(name);
        if std::env::var_os("LINKWEIR_WRITE_RECORDING").is_some() && name != "voyage.lwrec" {
            fs::write(&file, &bytes).unwrap();
        }
        let kept = fs::read(&file).unwrap();
        // The settings name the version, so the bytes differ from one to the next.
        assert_eq!(content(&kept), content(&bytes), "{name}");
        if name != "voyage.lwrec" {
            assert_eq!(kept[..8], bytes[..8], "{name}: the version of the format");
            assert!(behind_settings(&kept) == behind_settings(&bytes), "{name}");
        }
    }
}
