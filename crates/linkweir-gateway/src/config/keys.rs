// SPDX-License-Identifier: BSD-3-Clause
//! The files of secret keys that a configuration names. They are read apart from it: who may read the configuration need
//! not be allowed to read the keys.

use std::io;
use std::path::{Path, PathBuf};

use linkweir_config::reader::Entry;
use linkweir_config::Fault;

use super::paths::path;
use crate::tunnel::seal::{self, Secret};

/// A file of a secret key, and where the configuration names it.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
    /// The fault that a bad key is, without its message.
    place: Fault,
}

impl PartialEq for KeyFile {
    fn eq(&self, other: &KeyFile) -> bool {
        self.path == other.path
    }
}

/// Why there is no key.
#[derive(Clone, Debug)]
pub struct NoKey {
    /// What is wrong, where, and what to do.
    pub fault: Fault,
    /// Whether this process may not look at the file, which may be sound.
    pub denied: bool,
}

impl KeyFile {
    pub(super) fn of(entry: &Entry<'_, '_>) -> Result<KeyFile, Fault> {
        Ok(KeyFile {
            path: path(entry)?,
            place: entry.fault(""),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the key.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn read(&self) -> Result<Secret, NoKey> {
        seal::read_key(&self.path).map_err(|error| NoKey {
            fault: Fault {
                message: error.to_string(),
                ..self.place.clone()
            },
            denied: error.kind() == io::ErrorKind::PermissionDenied,
        })
    }
}
