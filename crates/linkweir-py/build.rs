// SPDX-License-Identifier: BSD-3-Clause
//! Notes which commit and which sources the module is built from, for the provenance of runs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What decides the results of the module: files and folders, from the root of the repository, one a line. `packages.lock` is
/// `Cargo.lock` by a name that cargo leaves alone: in a source distribution cargo takes from `Cargo.lock` what is not needed.
const SOURCES: &str = include_str!("sources.txt");
const ROOT: &str = "../..";

/// A file, or all files under a folder; nothing if it is not there.
fn files(path: &Path) -> Vec<PathBuf> {
    match std::fs::read_dir(path) {
        Ok(entries) => entries
            .flatten()
            .flat_map(|entry| files(&entry.path()))
            .collect(),
        Err(_) if path.is_file() => vec![path.to_path_buf()],
        Err(_) => Vec::new(),
    }
}

/// 64-bit FNV-1a over names and contents of the sources, as docs/site/playground.py computes it too: it distinguishes builds, but does not prevent forged ones.
fn hash_of_sources() -> u64 {
    let mut found: Vec<PathBuf> = SOURCES
        .lines()
        .flat_map(|name| files(&Path::new(ROOT).join(name)))
        .collect();
    found.sort();
    found.iter().fold(0xcbf2_9ce4_8422_2325, |hash, path| {
        let name = path.strip_prefix(ROOT).unwrap_or(path).to_string_lossy();
        let content = std::fs::read(path).unwrap_or_default();
        name.bytes().chain(content).fold(hash, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    })
}

fn git(arguments: &[&str]) -> Option<String> {
    if !std::path::Path::new("../../.git").exists() {
        return None; // unpacked inside another repository
    }
    let output = Command::new("git")
        .args(arguments)
        .output()
        .ok()
        .filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn main() {
    for path in [
        "../../.git/HEAD",
        "../../.git/logs/HEAD",
        "../../core",
        "../../Cargo.lock",
        "..",
        "build.rs",
        "sources.txt",
    ] {
        if std::path::Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = match git(&["rev-parse", "HEAD"]) {
        Some(commit) => {
            let changed = git(&[
                "status",
                "--porcelain",
                "--untracked-files=no",
                "--",
                "..",
                "../../core",
            ]);
            let mark = if changed.is_none_or(|c| !c.is_empty()) {
                "-dirty"
            } else {
                ""
            };
            format!("{commit}{mark}")
        }
        None => "unknown".to_string(),
    };
    println!("cargo::rustc-env=LINKWEIR_COMMIT={commit}");
    println!(
        "cargo::rustc-env=LINKWEIR_SOURCES={:016x}",
        hash_of_sources()
    );
}
