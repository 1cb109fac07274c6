// SPDX-License-Identifier: BSD-3-Clause
//! The folders of the gateway use each other in one direction only. What decides is the crate `linkweir-plane`, where the
//! compiler holds the same.

use std::fs;
use std::path::{Path, PathBuf};

/// Each folder, and the folders and crates of this project that it may use: none that stands after it.
const WINGS: [(&str, &[&str]); 5] = [
    ("tunnel", &[]),
    ("linux", &["linkweir_plane::bytes"]),
    ("config", &["linkweir_plane", "tunnel"]),
    ("show", &["linkweir_plane", "linux", "config"]),
    (
        "run",
        &["linkweir_plane", "tunnel", "linux", "config", "show"],
    ),
];

/// What a source uses of the folders of the gateway and of the plane: `config`, or `linkweir_plane::bytes`.
fn uses(source: &str) -> Vec<String> {
    let mut uses = Vec::new();
    let code = source.lines().map(|line| line.split("//").next().unwrap());
    for line in code {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        for word in words {
            let parts: Vec<&str> = word.split("::").collect();
            match parts[..] {
                ["crate", wing, ..] => uses.push(wing.to_string()),
                ["linkweir_plane", part, ..] => uses.push(format!("linkweir_plane::{part}")),
                _ => {}
            }
        }
    }
    uses
}

/// What a source of a folder uses and may not.
fn forbidden(wing: &str, source: &str) -> Vec<String> {
    let (_, allowed) = WINGS.iter().find(|(name, _)| *name == wing).unwrap();
    let may = |used: &String| {
        let whole = used.split("::").next().unwrap();
        used == wing || allowed.contains(&used.as_str()) || allowed.contains(&whole)
    };
    let mut found = uses(source);
    found.retain(|used| !may(used));
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn folders_use_each_other_in_one_direction() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wings: Vec<String> = sources(&src)
        .iter()
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_string())
        .collect();
    wings.sort();
    let mut known: Vec<&str> = WINGS.iter().map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(wings, known);
    for (at, (wing, allowed)) in WINGS.iter().enumerate() {
        let later = WINGS[at..].iter().map(|(name, _)| name);
        assert!(!later.clone().any(|name| allowed.contains(name)), "{wing}");
        for path in sources(&src.join(wing)) {
            let source = fs::read_to_string(&path).unwrap();
            assert_eq!(forbidden(wing, &source), [""; 0], "{}", path.display());
        }
    }
    // Planted.
    for (wing, source, found) in [
        ("config", "use crate::show::control;", 1),
        ("linux", "use linkweir_plane::link::Link;", 1),
        ("linux", "use linkweir_plane::bytes::packet;", 0),
        ("tunnel", "let config = crate::config::load(file)?;", 1),
        ("show", "use crate::run::Gateway;", 1),
        ("show", "// crate::run is not used", 0),
    ] {
        assert_eq!(forbidden(wing, source).len(), found, "{source}");
    }
}
