// SPDX-License-Identifier: BSD-3-Clause
//! The header is that of the sources, and a C program runs with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use linkweir_link_c as _; // so that the library is built

/// The library in C's form, of the build that this test belongs to.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    let folders = program.ancestors().skip(1).take(2);
    let files = folders.flat_map(|folder| fs::read_dir(folder).expect("a folder of the build"));
    let files = files.map(|file| file.expect("a file").path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("liblinkweir_link_c") && name.ends_with(".a")
    };
    let changed = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).ok();
    let newest = files.filter(is_it).max_by_key(changed);
    newest.expect("the library is built with the test")
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".to_owned())
}

/// By hand: 1500 bytes take 1 ms at 12 Mbit/s. The first packet is on the link when the voice comes, the second waits, and the
/// fourth finds the queue full.
#[test]
fn the_example_runs() {
    let scratch = tempfile::tempdir().expect("a folder");
    let program = scratch.path().join("link");
    let done = Command::new(compiler())
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg("-I")
        .arg(here().join("include"))
        .arg(here().join("examples/link.c"))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("a C compiler");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let done = Command::new(&program).output().expect("it runs");
    let expected = "4 was dropped at 0 ns for reason 1\n1 arrived at 21000000 ns\n\
                    3 arrived at 22000000 ns\n2 arrived at 23000000 ns\nrest: 2 of 3 arrived\n";
    assert_eq!(String::from_utf8_lossy(&done.stdout), expected);
    assert!(done.status.success());
}

/// Without what differs between versions of cbindgen: spaces and line breaks.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn the_header_is_made_of_the_sources() {
    let made = Command::new("cbindgen")
        .args(["--quiet", "--config", "cbindgen.toml", "src/lib.rs"])
        .current_dir(here())
        .output()
        .expect("cbindgen, which ./setup.sh test installs");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let kept = fs::read_to_string(here().join("include/linkweir/link.h")).expect("the header");
    let made = String::from_utf8(made.stdout).expect("text");
    assert_eq!(words(&kept), words(&made));
}
