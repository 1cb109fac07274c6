// SPDX-License-Identifier: BSD-3-Clause
//! Fuzzes the readers of the other files that a scenario names: delays, fading, attenuations, lists of packets, captures,
//! recordings of gateways, distributions and two-line elements. The first byte of an input chooses the reader, the rest of the first line has
//! keys of its table, separated by `;`, and the rest is the file. Whatever they are, reading ends with a scenario or a fault.

#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use linkweir_sim::experiment::Traffic;
use linkweir_sim::scenario::{load, parse, Overrides, Scenario};

/// What is read with the reader of highest number.
#[path = "../../../linkweir-sim/tests/elements/mod.rs"]
mod elements;
use elements::{summed, LISTED};

const CBR: &str = "kind = \"cbr\"\nrate = \"10kbit\"\n";
const RATE: &str = "rate = \"1Mbit\"\n";
/// Keys of the link and of its flow, with places for the keys of an input.
const READERS: [(&str, &str); 6] = [
    (
        "rate = \"1Mbit\"\n[link.satellite]\npacket = \"1500B\"\ndelays = \"f\"\nKEYS\n",
        CBR,
    ),
    (
        "rate = \"1Mbit\"\n[link.satellite]\npacket = \"1500B\"\nfading = \"f\"\nKEYS\n",
        CBR,
    ),
    (
        "[link.beam]\nsymbol_rate = \"1MBd\"\nclear_sky_esn0_db = 12\nattenuation = \"f\"\nKEYS\n",
        CBR,
    ),
    (RATE, "kind = \"replay\"\nfile = \"f\"\nKEYS\n"),
    (
        RATE,
        "kind = \"transfers\"\narrivals = { load = \"200kbit\" }\nsize = { file = \"f\" KEYS }\n",
    ),
    (
        RATE,
        "kind = \"requests\"\nresponse = \"10kB\"\nthink = { file = \"f\" KEYS }\n",
    ),
];

/// A folder of this process, for the file.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let name = format!("linkweir-fuzz-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("inputs")).expect("a folder for the file");
        folder
    })
}

fuzz_target!(|input: &[u8]| {
    let cut = input.iter().position(|byte| *byte == b'\n');
    let (head, content) = cut.map_or((&b""[..], input), |at| (&input[..at], &input[at + 1..]));
    let first = head.first().copied().unwrap_or(b'0');
    let reader = usize::from(first.wrapping_sub(b'0')) % (READERS.len() + 1);
    let keys = String::from_utf8_lossy(head.get(1..).unwrap_or_default()).replace(';', "\n");
    let rest = "[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"a\"\n[[flow]]\nclass = \"a\"\n";
    let (text, content) = match READERS.get(reader) {
        Some((link, flow)) => (
            format!("duration = \"9s\"\n[link]\n{link}{rest}{flow}"),
            content.to_vec(),
        ),
        None => (LISTED.to_owned(), summed(content)),
    };
    let text = text.replace("KEYS", &keys);
    std::fs::write(folder().join("f"), content).expect("the file");
    let Ok(scenario) = parse(&text, &folder().join("s.toml")) else {
        return;
    };
    let first = scenario.experiment.flows.first();
    if let Some(Traffic::Replay { packets, .. }) = first.map(|flow| &flow.traffic) {
        assert!(!packets.is_empty());
        assert!(packets.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert!(packets.iter().all(|packet| packet.1 > 0));
    }
    // What a run directory keeps is the same experiment.
    for kept in &scenario.inputs {
        std::fs::write(folder().join(&kept.name), &kept.bytes).expect("its copy");
    }
    let file = folder().join("again.toml");
    std::fs::write(&file, &scenario.resolved_toml).expect("the scenario");
    let again = load(&file, &Overrides::default()).expect("a resolved scenario is sound");
    let same = |of: &Scenario| {
        let (mut alone, mut network) = (of.experiment.clone(), of.network.clone());
        alone.name = String::new();
        if let Some(network) = &mut network {
            network.name = String::new();
        }
        format!("{alone:?} {network:?}")
    };
    assert_eq!(same(&again), same(&scenario));
});
