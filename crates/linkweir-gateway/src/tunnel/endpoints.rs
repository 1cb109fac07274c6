// SPDX-License-Identifier: BSD-3-Clause
//! Saves the last known endpoints of peers in a file next to the control socket, so that a restarted gateway finds peers
//! without a configured endpoint. The file only says where to send a handshake: peers prove who they are by their keys.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::tunnel::seal::{self, Key};

/// Longest file that is read, bytes: of 10,000 peers.
const MOST_BYTES: u64 = 1 << 20;

/// Endpoints by public key, and their file.
#[derive(Default)]
pub struct Endpoints {
    file: Option<File>,
    saved: BTreeMap<Key, SocketAddr>,
}

impl Endpoints {
    /// Opens the file. It stays open, so that it can be written without privileges later. Malformed lines are ignored.
    ///
    /// # Errors
    /// When it can neither be opened nor made.
    pub fn open(path: &Path) -> io::Result<Endpoints> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(nix::libc::O_NOFOLLOW)
            .open(path)?;
        let mut bytes = Vec::new();
        (&file).take(MOST_BYTES).read_to_end(&mut bytes)?;
        let mut saved = BTreeMap::new();
        for line in String::from_utf8_lossy(&bytes).lines() {
            let Some((key, endpoint)) = line.split_once(' ') else {
                continue;
            };
            if let (Some(key), Ok(endpoint)) = (seal::key(key), endpoint.parse()) {
                // A gateway killed while writing leaves old lines behind the new ones, so the first line of a peer counts.
                saved.entry(key).or_insert(endpoint);
            }
        }
        Ok(Endpoints {
            file: Some(file),
            saved,
        })
    }

    /// The saved endpoint of a peer.
    #[must_use]
    pub fn of(&self, key: &Key) -> Option<SocketAddr> {
        self.saved.get(key).copied()
    }

    /// Saves the present endpoints if they have changed.
    ///
    /// # Errors
    /// The system's error; nothing is saved from then on.
    pub fn save(&mut self, now: impl Iterator<Item = (Key, SocketAddr)>) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let now: BTreeMap<Key, SocketAddr> = now.collect();
        if now == self.saved {
            return Ok(());
        }
        let mut text = String::new();
        for (key, endpoint) in &now {
            let _ = writeln!(text, "{} {endpoint}", seal::show_key(key));
        }
        self.saved = now;
        let written = file
            .rewind()
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64));
        if written.is_err() {
            self.file = None;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn saved_endpoints_are_read_back_despite_malformed_lines() {
        let name = format!("linkweir-endpoints-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let (one, two) = ([1; 32], [2; 32]);
        let mut endpoints = Endpoints::open(&path).unwrap();
        assert_eq!(endpoints.of(&one), None);
        endpoints
            .save([(one, at(1000)), (two, at(2000))].into_iter())
            .unwrap();
        endpoints.save([(two, at(3000))].into_iter()).unwrap();
        let mut again = Endpoints::open(&path).unwrap();
        assert_eq!((again.of(&one), again.of(&two)), (None, Some(at(3000))));

        // The rest of a longer file, and rubbish.
        let text = std::fs::read_to_string(&path).unwrap();
        let more = format!("{text}{} 192.0.2.9:9\nabc\n\u{0} x\n", seal::show_key(&two));
        std::fs::write(&path, more).unwrap();
        assert_eq!(Endpoints::open(&path).unwrap().of(&two), Some(at(3000)));
        again.save([(two, at(4))].into_iter()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{} 192.0.2.1:4\n", seal::show_key(&two)));

        // Nobody's link is followed.
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(Endpoints::open(&path).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
