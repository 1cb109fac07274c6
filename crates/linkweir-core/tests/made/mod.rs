// SPDX-License-Identifier: BSD-3-Clause
//! The vectors, of which most are made when they are needed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the vectors, in which all random ones are made.
pub fn vectors() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let made = Command::new("sh").arg(folder.join("make.sh")).status();
    assert!(
        made.is_ok_and(|code| code.success()),
        "the vectors are not made"
    );
    folder
}
