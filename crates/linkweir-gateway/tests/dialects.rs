// SPDX-License-Identifier: BSD-3-Clause
//! Gateways and emulated links read the files of `python/tests/data/dialects` as all other commands do: the steps are those
//! that were written there by hand.

use std::fs;
use std::path::{Path, PathBuf};

use linkweir_config::signal::{Capacity, Signal};
use linkweir_gateway::config::{self, emulate};
use toml::de::{DeString, DeTable, DeValue};

const SHIPPED: &str = include_str!("../configs/ground.toml");

/// Starts in ns and bit/s, without steps that change nothing.
fn joined(points: impl IntoIterator<Item = (u64, f64)>) -> Vec<(u64, f64)> {
    let mut found: Vec<(u64, f64)> = Vec::new();
    for (ns, bps) in points {
        if found.last().is_none_or(|last| last.1 != bps) {
            found.push((ns, bps));
        }
    }
    found
}

fn steps(capacity: &Capacity) -> Vec<(u64, f64)> {
    match capacity {
        Capacity::Rate(Signal::Steps { points, .. }) => joined(points.iter().copied()),
        other => panic!("{other:?}"),
    }
}

fn number(value: &DeValue<'_>) -> f64 {
    let whole = value.as_integer().map(|whole| whole.as_str());
    let text = whole.or(value.as_float().map(|real| real.as_str()));
    text.unwrap().parse().unwrap()
}

/// A case: the file's name, the keys that describe it, and its steps.
type Case = (String, String, Vec<(u64, f64)>);

fn cases(folder: &Path) -> Vec<Case> {
    let text = fs::read_to_string(folder.join("cases.toml")).unwrap();
    let cases = DeTable::parse(&text).unwrap();
    let of_case = |(name, case): (&toml::Spanned<DeString<'_>>, &toml::Spanned<DeValue<'_>>)| {
        let case = case.get_ref().as_table().unwrap();
        let steps = case.get("steps").unwrap().get_ref().as_array().unwrap();
        let steps = steps.iter().map(|step| {
            let step = step.get_ref().as_array().unwrap();
            let at = |index: usize| number(step.get(index).unwrap().get_ref());
            ((at(0) * 1e9).round() as u64, at(1))
        });
        let keys = case.get("keys").and_then(|keys| keys.get_ref().as_str());
        let name = name.get_ref().to_string();
        (name, keys.unwrap_or_default().to_string(), joined(steps))
    };
    cases.get_ref().iter().map(of_case).collect()
}

#[test]
fn gateways_and_emulated_links_read_every_dialect() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/data/dialects");
    let cases = cases(&folder);
    assert!(cases.len() >= 30, "{}", cases.len());
    for (name, keys, expected) in cases {
        let path: PathBuf = folder.join(&name);
        let trace = format!("trace = \"{}\"\n{keys}", path.display());
        let emulated = format!(
            "[a]\ndevice = \"sat0\"\n[b]\ndevice = \"sat1\"\n[a_to_b]\n{trace}\n[b_to_a]\nrate = \"1Mbit\"\n"
        );
        let link = emulate::parse(&emulated, Path::new("emulate.toml")).unwrap();
        assert_eq!(steps(&link.directions[0].offered), expected, "{name}");
        assert!(link.told[0].starts_with("read: "), "{name}");
        let text = SHIPPED.replacen("rate = \"20Mbit\"", &trace, 1);
        let text = text.replace("rate = \"5Mbit\"", "rate = \"1Mbit\""); // less than any of the traces
        let gateway = config::parse(&text, Path::new("ground.toml"));
        if name == "delay-and-loss.csv" {
            let fault = gateway.unwrap_err().to_string();
            assert!(
                fault.contains("the gateway takes capacity alone"),
                "{fault}"
            );
            continue;
        }
        let gateway = gateway.unwrap();
        assert_eq!(
            steps(&gateway.peers[0].capacity.offered),
            expected,
            "{name}"
        );
        assert_eq!(gateway.told[0], link.told[0], "{name}");
    }
}
