// SPDX-License-Identifier: BSD-3-Clause
//! What the caller gives in place of keys of the scenario.

use std::path::PathBuf;

/// Values that take the place of the scenario's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Seed.
    pub seed: Option<u64>,
    /// A trace in place of `link.rate` or `link.trace`; its path is taken as it is.
    pub trace: Option<PathBuf>,
    /// Content of that trace; its path is then used as a name only.
    pub trace_content: Option<Vec<u8>>,
}
