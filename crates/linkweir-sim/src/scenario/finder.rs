// SPDX-License-Identifier: BSD-3-Clause
//! Who turns files into policies: what reads scenarios knows neither compilers nor Python.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use linkweir_core::Maker;

/// A policy that was found, and what its user should know.
#[derive(Debug)]
pub struct Found {
    /// Makes policies of it.
    pub maker: Arc<dyn Maker>,
    /// A sentence each.
    pub notes: Vec<String>,
}

/// Turns files into policies.
pub trait Finder: fmt::Debug + Send + Sync {
    /// Why it finds no policy at all, if it cannot; then no file is read.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// The policy in a C file. `trusted`: it runs in this process, where nothing stops it from doing harm.
    ///
    /// # Errors
    /// Why there is none.
    fn c(&self, file: &Path, bytes: &[u8], trusted: bool) -> Result<Found, String>;

    /// The policy that a class of a Python file is.
    ///
    /// # Errors
    /// Why there is none.
    fn python(&self, file: &Path, bytes: &[u8], class: &str) -> Result<Found, String>;
}
