// SPDX-License-Identifier: BSD-3-Clause
//! The crate has no clock, socket or file, and does not depend on the gateway. `clippy.toml` says the same of calls; these
//! tests also run where clippy does not, and look at dependencies.
//!
//! The table in `python/tests/test_modules.py` says which modules may use which: `bytes` uses nothing else of the project.
// The rule is for the crate; its test reads the sources.
#![allow(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What the crate depends on. A new one must have neither clock nor socket nor file.
const DEPENDENCIES: [&str; 6] = [
    "hdrhistogram",
    "ipnet",
    "linkweir-config",
    "linkweir-core",
    "rand_pcg",
    "smallvec",
];
/// Packages that must not come in through others. The lock file also lists what only tests of those need, such as libc.
const FORBIDDEN_PACKAGES: [&str; 8] = [
    "linkweir-gateway",
    "linkweir-sim",
    "mio",
    "netlink-sys",
    "nix",
    "socket2",
    "tokio",
    "tun-rs",
];

/// Parts of the standard library that are, or lead to, a clock, a socket, a file or another program.
const FORBIDDEN_MODULES: [&str; 6] = ["env", "fs", "os", "process", "thread", "time"];
const FORBIDDEN_NAMES: [&str; 12] = [
    "File",
    "Instant::now",
    "SystemTime",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "UnixDatagram",
    "UnixListener",
    "UnixStream",
    "stdin",
    "libc",
    "nix",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All packages of a lock file, each with its dependencies.
fn packages(lock: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = "";
    for line in lock.lines() {
        if let Some(rest) = line.strip_prefix("name = \"") {
            name = rest.trim_end_matches('"');
            packages.entry(name).or_default();
        } else if let Some(rest) = line.strip_prefix(" \"") {
            // A version follows the name where there are several.
            let dependency = rest.trim_end_matches(['"', ',']);
            let dependency = dependency.split(' ').next().unwrap();
            packages.get_mut(name).unwrap().push(dependency);
        }
    }
    packages
}

/// Packages that `linkweir-plane` depends on and may not, directly or through others.
fn forbidden_packages(lock: &str) -> Vec<&str> {
    let packages = packages(lock);
    let direct = &packages["linkweir-plane"];
    let unknown = direct.iter().filter(|name| !DEPENDENCIES.contains(name));
    let mut found: Vec<&str> = unknown.copied().collect();
    let mut reached = BTreeSet::new();
    let mut next = direct.clone();
    while let Some(name) = next.pop() {
        if reached.insert(name) {
            next.extend(&packages[name]);
        }
    }
    let indirect = FORBIDDEN_PACKAGES.iter();
    found.extend(indirect.filter(|name| reached.contains(*name)));
    found
}

/// The statements of a source without its comments, so that prose may name what code may not.
fn statements(source: &str) -> Vec<String> {
    let code: Vec<&str> = source
        .lines()
        .map(|line| line.split("//").next().unwrap())
        .collect();
    let code = code.join("\n");
    code.split(';').map(str::to_string).collect()
}

/// What a source uses of the standard library that it may not, also in `use std::{fs, io}`.
fn forbidden_uses(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for statement in statements(source) {
        let mut within_std = false;
        let words = statement.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        for word in words.filter(|word| !word.is_empty()) {
            within_std |= word == "std::";
            let mut parts = word.split("::");
            let first = parts.next().unwrap();
            let module = match first {
                "std" => parts.next(),
                _ => within_std.then_some(first),
            };
            let module = module.is_some_and(|module| FORBIDDEN_MODULES.contains(&module));
            let path = format!("::{word}::");
            let named = |name: &&str| path.contains(&format!("::{name}::"));
            if module || FORBIDDEN_NAMES.iter().any(named) {
                found.push(word.to_string());
            }
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources.extend(self::sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            sources.push(path);
        }
    }
    sources
}

#[test]
fn no_dependency_leads_to_the_operating_system_or_the_gateway() {
    let lock = fs::read_to_string(folder().join("../../Cargo.lock")).unwrap();
    assert_eq!(forbidden_packages(&lock), [""; 0]);
    // Planted: a direct dependency, and one behind another package.
    for name in ["libc", "nix"] {
        let with = format!(" \"{name}\",\n \"rand_pcg\",\n");
        let direct = lock.replace(" \"rand_pcg\",\n", &with);
        assert!(forbidden_packages(&direct).contains(&name), "{name}");
    }
    let gateway = "name = \"linkweir-config\"\nversion = \"0.1.0\"\ndependencies = [\n";
    assert!(lock.contains(gateway));
    let behind = lock.replace(gateway, &format!("{gateway} \"linkweir-gateway\",\n"));
    assert!(forbidden_packages(&behind).contains(&"linkweir-gateway"));
}

#[test]
fn no_source_uses_a_clock_a_socket_or_a_file() {
    let sources = sources(&folder().join("src"));
    assert!(sources.len() > 15, "{sources:?}");
    for path in sources {
        let source = fs::read_to_string(&path).unwrap();
        assert_eq!(forbidden_uses(&source), [""; 0], "{}", path.display());
    }
    for (planted, found) in [
        ("let now = std::time::Instant::now();", 1),
        ("use std::{collections::HashMap, fs, io};", 1),
        ("use std::{\n    fs::File,\n    time::SystemTime,\n};", 2),
        ("use std::net::{IpAddr, UdpSocket};", 1),
        ("use std::net::IpAddr;\nuse std::fs::read;", 1),
        ("let text = std::fs::read_to_string(path)?;", 1),
        ("use nix::sys::socket;", 1),
        ("std::thread::sleep(wait);", 1),
        ("// std::fs is not used\nuse std::io::IoSlice;", 0),
        (
            "use linkweir_config::signal::Instant;\nInstant::at(now_ns);",
            0,
        ),
    ] {
        assert_eq!(forbidden_uses(planted).len(), found, "{planted}");
    }
}
