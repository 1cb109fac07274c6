// SPDX-License-Identifier: BSD-3-Clause
//! Puts the core's headers into the crate, so that a user's file is compiled with those of this very version.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core");
    let mut list = String::from("&[\n");
    for (folder, shown) in [("include/linkweir", "linkweir/"), ("src", "")] {
        let folder = core.join(folder);
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut files: Vec<PathBuf> = fs::read_dir(&folder)
            .expect("the core's headers are readable")
            .map(|entry| entry.expect("the core's headers are readable").path())
            .filter(|path| path.extension().is_some_and(|e| e == "h" || e == "def"))
            .collect();
        files.sort();
        for file in files {
            let name = file
                .file_name()
                .expect("a file has a name")
                .to_string_lossy();
            writeln!(list, "    (\"{shown}{name}\", include_str!({file:?})),")
                .expect("a string takes text");
        }
    }
    list.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo gives a folder"));
    fs::write(out.join("headers.rs"), list).expect("the folder is writable");
}
