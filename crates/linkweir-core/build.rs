// SPDX-License-Identifier: BSD-3-Clause
//! Compiles the C core.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    // In a package of this crate a folder of its own, which is a link in the repository; else the folder beside the crates.
    let folders = ["core", "../../core"].map(|at| Path::new(env!("CARGO_MANIFEST_DIR")).join(at));
    let core = folders.iter().find(|folder| folder.join("src").is_dir());
    let core = core.expect("the core's sources are there");
    let core = core.canonicalize().expect("the folder is there");
    let layout = PathBuf::from("src/layout.c");

    let mut sources: Vec<PathBuf> = fs::read_dir(core.join("src"))
        .expect("core/src is readable")
        .map(|entry| entry.expect("core/src is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    sources.sort();

    let mut build = cc::Build::new();
    if env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        build.include("src/freestanding");
    }
    build
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported("-Wshadow")
        .include(core.join("include"))
        .files(&sources)
        .file(&layout)
        .compile("linkweir_core_c");

    println!("cargo:rerun-if-changed={}", core.join("src").display());
    println!("cargo:rerun-if-changed={}", core.join("include").display());
    println!("cargo:rerun-if-changed={}", layout.display());
    println!("cargo:rerun-if-changed=build.rs");
}
