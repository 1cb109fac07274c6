// SPDX-License-Identifier: BSD-3-Clause
//! Fuzzes what reads recordings of gateways. An input is the version of a section, then its blocks: two bytes for the length of
//! a body, and the body, which gets a sound checksum. A block of settings begins another section of the same version.
//!
//! Whatever they are, reading ends. What is cut out of a recording is a recording without damage. It has the same of each class
//! and path that its first section names, and nothing of others.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linkweir_config::recording::{frame, packets_of, settings, Bin, Recording, Version, BIN_NS};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Most paths to a peer.
const MOST_PATHS: usize = 8;
/// Longest recording that is looked at in intervals, ns.
const MOST_NS: u64 = 100_000 * BIN_NS;

fn words(words: [&str; 2]) -> [String; 2] {
    words.map(String::from)
}

/// The names of the paths to a peer and of the classes in the first section; none if it does not know the peer.
fn known(recording: &Recording, peer: &str) -> (Vec<String>, Vec<String>) {
    let section = &recording.sections[0];
    let of_peer = section.peers.values().find_map(|text| {
        let table = DeTable::parse(text).ok()?.into_inner();
        let is_it = match table.get("name")?.get_ref() {
            DeValue::String(name) => name == peer,
            DeValue::Integer(number) => number.to_string() == peer,
            DeValue::Boolean(flag) => flag.to_string() == peer,
            _ => false,
        };
        is_it.then_some(table)
    });
    let Some(of_peer) = of_peer else {
        return (Vec::new(), Vec::new());
    };
    let settings = DeTable::parse(&section.settings).map(Spanned::into_inner);
    let names = |values: Option<&Spanned<DeValue<'_>>>, key: Option<&str>| -> Vec<String> {
        let values = values.and_then(|values| values.get_ref().as_array());
        let values = values.into_iter().flat_map(|values| values.iter());
        let name = |value: &Spanned<DeValue<'_>>| {
            let value = match key {
                Some(key) => value.get_ref().as_table().and_then(|table| table.get(key)),
                None => Some(value),
            };
            let text = value.and_then(|value| value.get_ref().as_str());
            text.unwrap_or_default().to_string()
        };
        values.map(name).collect()
    };
    let mut paths = names(of_peer.get("paths"), None);
    paths.truncate(MOST_PATHS);
    let classes = settings.ok();
    let classes = classes.map_or_else(Vec::new, |table| names(table.get("class"), Some("name")));
    (paths, classes)
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
        let (known_paths, known_classes) = known(&recording, peer);
        let whole_ns = to_ns.next_multiple_of(BIN_NS).max(BIN_NS);
        let _ = recording.sums(peer, &classes, span_ns, BIN_NS);
        let before = recording.sums(peer, &classes, span_ns, whole_ns);
        let cut = recording.cut(peer, 0, span_ns).expect("there is a section");
        let cut = Recording::new(vec![cut]).expect("it has settings");
        assert_eq!(cut.damages, []);
        let all_ns = (0, cut.span_ns().1);
        let found = cut.carried(peer, (&paths, &classes), all_ns);
        for (path, (found, carried)) in paths.iter().zip(found.iter().zip(&carried)) {
            for (class, (now, before)) in classes.iter().zip(found.iter().zip(carried)) {
                let is_known = known_paths.contains(path) && known_classes.contains(class);
                assert_eq!(*now, if is_known { *before } else { (0, 0) });
            }
        }
        let now = cut.sums(peer, &classes, all_ns, whole_ns);
        for (at, class) in classes.iter().enumerate() {
            let sum = |rows: &[Vec<Bin>]| rows.first().map_or(Bin::default(), |row| row[at]);
            let is_known = known_classes.contains(class);
            assert_eq!(sum(&now), if is_known { sum(&before) } else { Bin::default() });
        }
    }
});
