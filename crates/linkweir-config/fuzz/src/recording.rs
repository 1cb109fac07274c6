// SPDX-License-Identifier: BSD-3-Clause
//! Fuzzes what reads recordings of gateways. An input is the version of a section, then its blocks: two bytes for the length of
//! a body, and the body, which gets a sound checksum. A block of settings begins another section of the same version.
//!
//! Whatever they are, reading ends, and what is cut out of a recording is a recording without damage that says the same of
//! its paths.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linkweir_config::recording::{frame, packets_of, settings, Recording, Version, BIN_NS};

/// Longest recording that is looked at in intervals, ns.
const MOST_NS: u64 = 100_000 * BIN_NS;

fn words(words: [&str; 2]) -> [String; 2] {
    words.map(String::from)
}

fuzz_target!(|input: &[u8]| {
    let Some((version, mut rest)) = input.split_first() else {
        return;
    };
    let version = [Version::One, Version::Two][usize::from(version % 2)];
    let begin = &settings(version, 0, false, "")[..8];
    let mut bytes = begin.to_vec();
    while let [low, high, more @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (body, more) = more.split_at(more.len().min(length));
        if body.first() == Some(&1) && bytes.len() > begin.len() {
            bytes.extend(begin);
        }
        bytes.extend(frame(body));
        rest = more;
    }
    let _ = packets_of(&bytes, "a");
    let Ok(recording) = Recording::new(vec![bytes]) else {
        return;
    };
    let span_ns = recording.span_ns();
    let (paths, classes) = (words(["x", "y"]), words(["a", "b"]));
    let (_, to_ns) = span_ns;
    for peer in recording.peers().keys() {
        let carried = recording.carried(peer, (&paths, &classes), span_ns);
        let states = recording.path_states(peer, &paths, span_ns);
        for changes in &states {
            assert!(changes.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        if to_ns > MOST_NS {
            continue;
        }
        let _ = recording.sums(peer, &classes, span_ns, BIN_NS);
        let cut = recording.cut(peer, 0, span_ns).expect("there is a section");
        let cut = Recording::new(vec![cut]).expect("it has settings");
        assert_eq!(cut.damages, []);
        let all_ns = (0, cut.span_ns().1);
        let found = cut.carried(peer, (&paths, &classes), all_ns);
        for (now, before) in found.iter().flatten().zip(carried.iter().flatten()) {
            assert!(now.0 <= before.0 && now.1 <= before.1);
        }
    }
});
