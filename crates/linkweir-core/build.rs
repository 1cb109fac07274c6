// SPDX-License-Identifier: BSD-3-Clause
//! Compiles the C core.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core");
    let layout = PathBuf::from("src/layout.c");

    let mut sources: Vec<PathBuf> = fs::read_dir(core.join("src"))
        .expect("core/src is readable")
        .map(|entry| entry.expect("core/src is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    sources.sort();

    cc::Build::new()
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
