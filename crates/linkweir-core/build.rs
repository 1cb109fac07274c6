// SPDX-License-Identifier: BSD-3-Clause
//! Compiles the C core.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core");
    let layout = PathBuf::from("src/layout.c");

    let mut sources: Vec<PathBuf> = fs::read_dir(core.join("src"))
        .expect("core/src is readable")
        .map(|entry| entry.expect("core/src is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    sources.sort();
    let registry = registry(&core);
    if registry.is_some() {
        sources.retain(|path| !path.ends_with("policies.c"));
        sources.extend(registry);
    }

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

/// While some policies of the list are not written: a registry of those that are.
fn registry(core: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(core.join("include/linkweir/policies.def")).expect("policies.def is readable");
    let all: Vec<&str> =
        text.lines().filter_map(|l| l.strip_prefix("LW_POLICY(")?.split_once(')').map(|(n, _)| n)).collect();
    let written: Vec<&str> = all.iter().copied().filter(|n| core.join(format!("src/{n}.c")).exists()).collect();
    if written.len() == all.len() {
        return None;
    }
    let rows: String = written.iter().map(|n| format!("&lw_policy_{n},\n")).collect();
    let path = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("policies.c");
    fs::write(
        &path,
        format!(
            "#include <linkweir/policy.h>\nconst struct lw_policy *const lw_policies[] = {{\n{rows}}};\n\
             const uint32_t lw_npolicies = {};\n",
            written.len()
        ),
    )
    .expect("OUT_DIR is writable");
    Some(path)
}
