// SPDX-License-Identifier: BSD-3-Clause
//! The keeper: a process of its own that keeps the privileges a reload needs, so that the process that handles packets has
//! none.
//!
//! It reads the configuration and the keys shared with peers, and changes the routes of the gateway's device to what the
//! configuration says. Its requests are three single bytes: whoever takes the gateway over cannot make it read another file
//! or set another route. It ends with the gateway, however that ends.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use ipnet::IpNet;
use nix::sys::signal::{SigSet, Signal};
use zeroize::Zeroizing;

use super::secrets::Secrets;
use crate::config::{self, Config};
use crate::linux::{privileges, tun};
use crate::tunnel::seal::Secret;

/// The argument that makes this program a keeper.
pub const NAME: &str = "keep-for-gateway";
/// Asks for the configuration and the keys.
const READ: u8 = b'r';
/// Asks for the routes of the configuration that was read last.
const ROUTE: u8 = b't';
/// Asks for the addresses and routes that the device lost when it was down.
const RESTORE: u8 = b'd';
/// Bytes of a key in an answer: whether there is one, and the key.
const KEY_BYTES: usize = 33;
/// Longest text in a message, bytes.
const TEXT_BYTES: u32 = 1 << 24;
/// How long an answer may take: packets wait for it, and a service manager for a sign of life.
const PATIENCE: Duration = Duration::from_secs(4);

/// The gateway's end.
pub(super) struct Keeper {
    child: Child,
    /// None once an answer failed: the next could be that to an earlier request.
    stream: Option<UnixStream>,
}

/// The prefixes behind peers that are routed into the device. The system routes the networks of the device's own addresses
/// by itself.
pub(super) fn routes(config: &Config) -> BTreeSet<IpNet> {
    if !config.routes {
        return BTreeSet::new();
    }
    let inside = |net: &&IpNet| config.addresses.iter().any(|own| own.contains(*net));
    let allowed = config.peers.iter().flat_map(|peer| &peer.allowed);
    allowed.filter(|net| !inside(net)).copied().collect()
}

impl Keeper {
    /// Starts the process for the device of this index, which has the addresses and routes of the configuration. It reads
    /// the `file` again from now on.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn start(file: &Path, index: u32, config: &Config) -> io::Result<Keeper> {
        let (stream, theirs) = UnixStream::pair()?;
        let child = Command::new("/proc/self/exe")
            .arg(NAME)
            .arg(file)
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // Ctrl-C at a terminal is for the gateway.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                io::Error::new(error.kind(), format!("cannot start its keeper: {error}"))
            })?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let addresses: Vec<String> = config.addresses.iter().map(IpNet::to_string).collect();
        let nets: Vec<String> = routes(config).iter().map(IpNet::to_string).collect();
        let mark = config.fwmark.unwrap_or_default();
        let first = format!(
            "{index} {mark}\n{}\n{}",
            addresses.join(" "),
            nets.join("\n")
        );
        write_text(&stream, &first)?;
        Ok(Keeper {
            child,
            stream: Some(stream),
        })
    }

    /// Reads the configuration; returns its text and the keys shared with its peers, in their order.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(&mut self) -> Result<(String, Vec<Option<Secret>>), String> {
        self.ask(|stream| {
            (&mut &*stream).write_all(&[READ])?;
            if !read_flag(stream)? {
                return Ok(Err(read_text(stream)?));
            }
            Ok(Ok((read_text(stream)?, read_keys(stream)?)))
        })
    }

    /// Changes the routes to those of the configuration read last; returns what could not be changed.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn route(&mut self) -> Result<Vec<String>, String> {
        self.change(ROUTE)
    }

    /// Gives the device the addresses and routes again that it lost when it was down; returns what could not be done.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn restore(&mut self) -> Result<Vec<String>, String> {
        self.change(RESTORE)
    }

    fn change(&mut self, request: u8) -> Result<Vec<String>, String> {
        self.ask(|stream| {
            (&mut &*stream).write_all(&[request])?;
            let faults = read_text(stream)?;
            Ok(Ok(faults.lines().map(str::to_string).collect()))
        })
    }

    fn ask<T>(
        &mut self,
        ask: impl FnOnce(&UnixStream) -> io::Result<Result<T, String>>,
    ) -> Result<T, String> {
        let gone = "the process that reads the configuration has ended; restart the gateway";
        let stream = self.stream.take().ok_or(gone)?;
        let answer = ask(&stream).map_err(|error| format!("{gone} ({error})"))?;
        self.stream = Some(stream);
        answer
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It ends once this is closed, after it has removed its rules, so that they are gone before the next gateway makes
        // its own. If it hangs, as when its disk does, the gateway ends all the same.
        self.stream = None;
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The keeper's end: serves the gateway that started it, at standard input, until that has ended.
///
/// # Errors
/// When it was not started by a gateway, or the system refuses.
pub fn keep(file: &Path) -> io::Result<()> {
    // A service manager ends all processes of a service at once; this one is needed until the gateway has ended.
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]
        .into_iter()
        .collect();
    signals.thread_block()?;
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let first = read_text(&stream)?;
    let mut lines = first.lines();
    let numbers = lines.next().and_then(|line| line.split_once(' '));
    let (device, mark) = numbers.ok_or(io::ErrorKind::InvalidData)?;
    let parse = |number: &str| number.parse().map_err(|_| io::ErrorKind::InvalidData);
    let routing = tun::Routing {
        device: parse(device)?,
        mark: Some(parse(mark)?).filter(|mark| *mark != 0),
    };
    let addresses = lines.next().unwrap_or_default().split_whitespace();
    let addresses: Vec<IpNet> = addresses.filter_map(|net| net.parse().ok()).collect();
    let mut routed: BTreeSet<IpNet> = lines.filter_map(|net| net.parse().ok()).collect();
    privileges::keep_for_reload()?;
    let kept = Kept {
        file,
        addresses,
        routing,
    };
    let served = kept.serve(&stream, &mut routed);
    for net in &routed {
        kept.routing.end(net)?;
    }
    served
}

/// What a keeper answers about.
struct Kept<'k> {
    file: &'k Path,
    addresses: Vec<IpNet>,
    routing: tun::Routing,
}

impl Kept<'_> {
    /// Answers until the gateway has ended.
    fn serve(&self, mut stream: &UnixStream, routed: &mut BTreeSet<IpNet>) -> io::Result<()> {
        let mut wanted = routed.clone();
        loop {
            let mut request = [0];
            if stream.read(&mut request)? == 0 {
                return Ok(());
            }
            match request[0] {
                READ => match read(self.file) {
                    Ok((text, config, preshared)) => {
                        wanted = routes(&config);
                        stream.write_all(&[1])?;
                        write_text(stream, &text)?;
                        write_keys(stream, &preshared)?;
                    }
                    Err(fault) => {
                        stream.write_all(&[0])?;
                        write_text(stream, &fault)?;
                    }
                },
                ROUTE => {
                    let faults = change_routes(self.routing, routed, &wanted);
                    write_text(stream, &faults.join("\n"))?;
                }
                RESTORE => {
                    let device = self.routing.device;
                    let given = self.addresses.iter();
                    let given = given.map(|net| tun::add_address(device, net));
                    let mut faults: Vec<String> = given
                        .filter_map(|given| Some(given.err()?.to_string()))
                        .collect();
                    routed.clear();
                    faults.extend(change_routes(self.routing, routed, &wanted));
                    write_text(stream, &faults.join("\n"))?;
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }
}

fn read(file: &Path) -> Result<(String, Config, Vec<Option<Secret>>), String> {
    let text = config::read_text(file).map_err(|fault| fault.to_string())?;
    let config = config::parse(&text, file).map_err(|fault| fault.to_string())?;
    let preshared = Secrets::read_preshared(&config).map_err(|fault| fault.to_string())?;
    Ok((text, config, preshared))
}

/// Changes the routes of a device from those it has to those wanted; returns what failed.
fn change_routes(
    routing: tun::Routing,
    routed: &mut BTreeSet<IpNet>,
    wanted: &BTreeSet<IpNet>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let gone: Vec<IpNet> = routed.difference(wanted).copied().collect();
    for net in gone {
        match routing.remove(&net) {
            Ok(()) => drop(routed.remove(&net)),
            Err(error) => faults.push(error.to_string()),
        }
    }
    let new: Vec<IpNet> = wanted.difference(routed).copied().collect();
    for net in new {
        match routing.add(&net) {
            Ok(()) => drop(routed.insert(net)),
            Err(error) => faults.push(error.to_string()),
        }
    }
    faults
}

fn write_text(mut stream: &UnixStream, text: &str) -> io::Result<()> {
    let length = u32::try_from(text.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    stream.write_all(&length.to_ne_bytes())?;
    stream.write_all(text.as_bytes())
}

fn read_text(mut stream: &UnixStream) -> io::Result<String> {
    let mut text = vec![0; read_length(stream)?];
    stream.read_exact(&mut text)?;
    String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn read_length(mut stream: &UnixStream) -> io::Result<usize> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_ne_bytes(length);
    if length > TEXT_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(length as usize)
}

fn read_flag(mut stream: &UnixStream) -> io::Result<bool> {
    let mut flag = [0];
    stream.read_exact(&mut flag)?;
    Ok(flag[0] == 1)
}

fn write_keys(mut stream: &UnixStream, keys: &[Option<Secret>]) -> io::Result<()> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(keys.len() * KEY_BYTES));
    for key in keys {
        bytes.push(u8::from(key.is_some()));
        bytes.extend_from_slice(&**key.as_ref().unwrap_or(&Secret::default()));
    }
    let count = u32::try_from(keys.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    stream.write_all(&count.to_ne_bytes())?;
    stream.write_all(&bytes)
}

fn read_keys(mut stream: &UnixStream) -> io::Result<Vec<Option<Secret>>> {
    let mut bytes = Zeroizing::new(vec![0; read_length(stream)? * KEY_BYTES]);
    stream.read_exact(&mut bytes)?;
    let keys = bytes.chunks_exact(KEY_BYTES).map(|key| {
        let mut secret = Secret::default();
        secret.copy_from_slice(&key[1..]);
        (key[0] == 1).then_some(secret)
    });
    Ok(keys.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_end_writes_the_other_reads() {
        let (here, there) = UnixStream::pair().unwrap();
        let keys = [Some(Secret::new([7; 32])), None, Some(Secret::new([9; 32]))];
        write_text(&here, "text\n").unwrap();
        write_keys(&here, &keys).unwrap();
        write_text(&here, "").unwrap();
        assert_eq!(read_text(&there).unwrap(), "text\n");
        assert_eq!(read_keys(&there).unwrap(), keys);
        assert_eq!(read_text(&there).unwrap(), "");
        (&here).write_all(&u32::MAX.to_ne_bytes()).unwrap();
        assert!(read_text(&there).is_err(), "too long");
        drop(here);
        assert!(read_text(&there).is_err(), "the other end has gone");
    }
}
