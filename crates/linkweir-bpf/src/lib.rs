// SPDX-License-Identifier: BSD-3-Clause
//! Loads the policies of the core as BPF queueing disciplines: settings, the memory of a discipline, and its commands. The programs
//! themselves are built from `bpf/`.
#![forbid(unsafe_code)]

use std::fmt;

#[cfg(feature = "kernel")]
pub mod kernel;
pub mod layout;
pub mod recording;
#[cfg(feature = "kernel")]
pub mod replay;
pub mod settings;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// What the user wrote is wrong; exit code 2.
    Input(String),
    /// The kernel, or what is in it, refuses; exit code 1.
    Kernel(String),
}

impl Failure {
    /// The exit code of the program.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) => 2,
            Failure::Kernel(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Input(what) | Failure::Kernel(what) => f.write_str(what),
        }
    }
}

impl From<linkweir_config::Fault> for Failure {
    fn from(fault: linkweir_config::Fault) -> Failure {
        Failure::Input(fault.to_string())
    }
}
