// SPDX-License-Identifier: BSD-3-Clause
//! What the caller gives in place of keys of the scenario, and what finds the policies that it brings along.

use std::path::PathBuf;
use std::sync::Arc;

use linkweir_config::reader::Files;
use linkweir_config::trace::Hints;

use super::finder::Finder;

/// Values that take the place of the scenario's own.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Seed.
    pub seed: Option<u64>,
    /// A trace in place of `link.rate` or `link.trace`; its path is taken as it is.
    pub trace: Option<PathBuf>,
    /// Content of that trace; its path is then used as a name only.
    pub trace_content: Option<Vec<u8>>,
    /// What the caller knows of that trace.
    pub hints: Hints,
    /// The caller sends packets itself. The scenario may have no flows, and no duration (an hour), but not several links.
    pub driven: bool,
    /// Keys and the values that they get, written as in TOML; see [`changed`](super::changed). For programs that embed the
    /// simulator and let their users change a scenario; the command line has no option for it. Faults name lines of the changed
    /// text, which has a line more for each key that is added.
    pub keys: Vec<(String, String)>,
    /// Where the files that the scenario names are, if not in the file system. For programs that embed the simulator where there
    /// is none; the command line reads the file system.
    pub files: Option<Arc<dyn Files>>,
    /// Turns files into policies; without it a scenario can only name policies.
    pub policies: Option<Arc<dyn Finder>>,
}
