// SPDX-License-Identifier: BSD-3-Clause
//! Policies that users bring along.
//!
//! A C file is compiled against the headers of this version ([`c_policy`]). Unless its user trusts it, it then runs in a
//! process of its own (`guarded`), where a crash, a loop or a write outside its state ends that process and is told with
//! the call that did it; otherwise it is loaded into this one. Answers that the contract does not allow end a run in
//! either case, and those of policies in other languages, too ([`Watched`]).

#![deny(unsafe_code)]

mod build;
mod guarded;
mod trusted;
mod watched;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use linkweir_core::Maker;

pub use watched::Watched;

/// A policy that was made of a C file, and what the compiler said of it.
#[derive(Clone, Debug)]
pub struct CPolicy {
    /// Makes policies of it.
    pub maker: Arc<dyn Maker>,
    /// The compiler's warnings; empty if there are none.
    pub warnings: String,
}

/// Path and content of a file, and whether it is trusted.
type Key = (PathBuf, Vec<u8>, bool);

/// The policy in a C file, whose name is the file's: `mine.c` defines `const struct lw_policy lw_policy_mine`. `bytes` is the
/// file's content. `trusted`: it runs in this process, as fast as the core's own.
///
/// A file is compiled once as long as its content stays the same.
///
/// # Errors
/// What is wrong with it, or that there is no compiler.
pub fn c_policy(file: &Path, bytes: &[u8], trusted: bool) -> Result<CPolicy, String> {
    static KNOWN: OnceLock<Mutex<HashMap<Key, CPolicy>>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (file.to_owned(), bytes.to_vec(), trusted);
    if let Some(policy) = known.get(&key) {
        return Ok(policy.clone());
    }
    let source = build::Source::new(file, bytes)?;
    let (maker, warnings): (Arc<dyn Maker>, String) = if trusted {
        let (maker, warnings) = trusted::make(&source)?;
        (Arc::new(maker), warnings)
    } else {
        let (maker, warnings) = guarded::make(&source)?;
        (Arc::new(maker), warnings)
    };
    let policy = CPolicy { maker, warnings };
    known.insert(key, policy.clone());
    Ok(policy)
}
