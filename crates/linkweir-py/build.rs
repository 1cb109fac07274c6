// SPDX-License-Identifier: BSD-3-Clause
//! Notes which commit the module is built from, for the provenance of runs.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    if !std::path::Path::new("../../.git").exists() {
        return None; // unpacked inside somebody else's repository
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
        "..",
        "build.rs",
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
}
