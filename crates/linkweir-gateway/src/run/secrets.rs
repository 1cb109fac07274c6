// SPDX-License-Identifier: BSD-3-Clause
//! The secret keys of a configuration: all of them, as a gateway needs them.

use crate::config::keys::KeyFile;
use crate::config::{Config, Fault};
use crate::tunnel::seal::Secret;

/// The secret keys of a configuration.
#[derive(Default)]
pub struct Secrets {
    /// This end's; none in cleartext mode.
    pub private: Option<Secret>,
    /// Those shared with peers, in the order of the configuration.
    pub preshared: Vec<Option<Secret>>,
}

impl Secrets {
    /// Reads all keys.
    ///
    /// # Errors
    /// The first that cannot be had.
    pub fn read(config: &Config) -> Result<Secrets, Fault> {
        let private = config.private_key_file.as_ref();
        Ok(Secrets {
            private: private
                .map(|file| file.read())
                .transpose()
                .map_err(|no| no.fault)?,
            preshared: Secrets::read_preshared(config)?,
        })
    }

    /// Reads the keys shared with peers.
    ///
    /// # Errors
    /// As [`Secrets::read`].
    pub fn read_preshared(config: &Config) -> Result<Vec<Option<Secret>>, Fault> {
        let files = config.peers.iter().map(|peer| &peer.preshared_key_file);
        files
            .map(|file| file.as_ref().map(KeyFile::read).transpose())
            .collect::<Result<_, _>>()
            .map_err(|no| no.fault)
    }
}

/// Reads all keys of a configuration; returns what this process may not look at.
///
/// # Errors
/// The first key that is missing or wrong.
pub fn check(config: &Config) -> Result<Vec<Fault>, Fault> {
    let peers = config.peers.iter();
    let files = peers.filter_map(|peer| peer.preshared_key_file.as_ref());
    let mut denied = Vec::new();
    for file in config.private_key_file.iter().chain(files) {
        match file.read() {
            Err(no) if no.denied => denied.push(no.fault),
            Err(no) => return Err(no.fault),
            Ok(_) => {}
        }
    }
    Ok(denied)
}
