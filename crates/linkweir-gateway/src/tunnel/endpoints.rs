// SPDX-License-Identifier: BSD-3-Clause
//! Saves the last known endpoints of peers in a file next to the control socket, so that a restarted gateway finds peers
//! without a configured endpoint. The file only says where to send a handshake: peers prove who they are by their keys.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use crate::tunnel::seal::{self, Key};

/// Longest file that is read, bytes: of 10,000 peers.
const MOST_BYTES: u64 = 1 << 20;

/// Endpoints by public key, and their file.
#[derive(Default)]
pub(crate) struct Endpoints {
    file: Option<(PathBuf, File)>,
    saved: BTreeMap<Key, SocketAddr>,
}

impl Endpoints {
    /// Opens the file. It stays open, so that it can be written without privileges later. Malformed lines are ignored.
    ///
    /// # Errors
    /// When it can neither be opened nor made, or not be read: a sentence with the file, the reason and the cure.
    pub(crate) fn open(path: &Path) -> Result<Endpoints, String> {
        Endpoints::read(path).map_err(|error| {
            let path = path.display();
            format!(
                "cannot open {path}: {error}; the endpoints of peers are not saved, so after a restart a peer without a \
                 configured endpoint must send first; remove what is at {path} or make it writable, then restart"
            )
        })
    }

    fn read(path: &Path) -> io::Result<Endpoints> {
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
            file: Some((path.to_path_buf(), file)),
            saved,
        })
    }

    /// The saved endpoint of a peer.
    #[must_use]
    pub(crate) fn of(&self, key: &Key) -> Option<SocketAddr> {
        self.saved.get(key).copied()
    }

    /// Saves the present endpoints if they have changed.
    ///
    /// # Errors
    /// When they cannot be written: a sentence with the file, the reason and the cure. Nothing is saved from then on.
    pub(crate) fn save(
        &mut self,
        now: impl Iterator<Item = (Key, SocketAddr)>,
    ) -> Result<(), String> {
        let Some((path, file)) = &mut self.file else {
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
        let Err(error) = written else {
            return Ok(());
        };
        let path = path.display();
        let message = format!(
            "cannot write {path}: {error}; the endpoints of peers are no longer saved, so after a restart a peer without a \
             configured endpoint must send first; make room or remove {path}, then restart"
        );
        self.file = None;
        Err(message)
    }
}

/// Saves endpoints in a thread of its own, since packets must not wait for a disk.
pub(crate) struct Saver {
    /// None only while it ends.
    endpoints: Option<mpsc::Sender<Vec<(Key, SocketAddr)>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Saver {
    /// Saves to this file what it is given; `log` is given what goes wrong.
    pub(crate) fn new(mut file: Endpoints, log: fn(&str)) -> Saver {
        let (endpoints, given) = mpsc::channel::<Vec<_>>();
        let thread = thread::spawn(move || {
            while let Ok(now) = given.recv() {
                // Of several that wait only the last counts.
                let now = given.try_iter().last().unwrap_or(now);
                if let Err(fault) = file.save(now.into_iter()) {
                    log(&fault);
                }
            }
        });
        Saver {
            endpoints: Some(endpoints),
            thread: Some(thread),
        }
    }

    /// Saves the present endpoints soon.
    pub(crate) fn save(&self, now: Vec<(Key, SocketAddr)>) {
        if let Some(endpoints) = &self.endpoints {
            let _ = endpoints.send(now);
        }
    }
}

impl Drop for Saver {
    /// Waits until all is saved.
    fn drop(&mut self) {
        self.endpoints = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
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

        // What is left of a longer file, and lines that are no endpoints.
        let text = std::fs::read_to_string(&path).unwrap();
        let more = format!("{text}{} 192.0.2.9:9\nabc\n\u{0} x\n", seal::show_key(&two));
        std::fs::write(&path, more).unwrap();
        assert_eq!(Endpoints::open(&path).unwrap().of(&two), Some(at(3000)));
        again.save([(two, at(4))].into_iter()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{} 192.0.2.1:4\n", seal::show_key(&two)));

        // A symbolic link is refused, because another user may have made it.
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let fault = Endpoints::open(&path).err().unwrap();
        std::fs::remove_file(&path).unwrap();
        for part in [
            &format!("cannot open {}: ", path.display()),
            "Too many levels of symbolic links",
            &format!("remove what is at {}", path.display()),
        ] {
            assert!(fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn what_was_given_last_is_saved_before_the_end() {
        let name = format!("linkweir-saver-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let saver = Saver::new(Endpoints::open(&path).unwrap(), |fault| panic!("{fault}"));
        for port in 1..=1000 {
            saver.save(vec![([1; 32], at(port))]);
        }
        drop(saver);
        let saved = Endpoints::open(&path).unwrap().of(&[1; 32]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(saved, Some(at(1000)));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named_once() {
        // Everything written to this device fails, as on a full disk.
        let mut endpoints = Endpoints::open(Path::new("/dev/full")).unwrap();
        let fault = endpoints.save([([1; 32], at(1000))].into_iter());
        let fault = fault.unwrap_err();
        assert!(
            fault.starts_with("cannot write /dev/full: No space left on device"),
            "{fault}"
        );
        assert!(fault.contains("make room or remove"), "{fault}");
        assert_eq!(endpoints.save([([1; 32], at(2))].into_iter()), Ok(()));
    }
}
