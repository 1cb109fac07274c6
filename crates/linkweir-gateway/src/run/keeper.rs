// SPDX-License-Identifier: BSD-3-Clause
//! The keeper: a process of its own that keeps the privileges a reload needs, so that the process that handles packets has
//! none.
//!
//! It reads the configuration and the keys shared with peers, changes the routes of the gateway's device to what the
//! configuration says, and restores what other programs remove of them. Its requests are two single bytes: whoever takes the
//! gateway over cannot make it read another file or set another route. It ends with the gateway, however that ends, also
//! while the file cannot be read because its disk hangs.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ipnet::IpNet;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{recv, socketpair, AddressFamily, MsgFlags, SockFlag, SockType};
use zeroize::Zeroizing;

use super::secrets::Secrets;
use super::upkeep::{Changes, Report, Thread, Upkeep, Wanted, REPORT_BYTES};
use crate::config::{self, Config};
use crate::linux::journal;
use crate::linux::network::{Entry, Network};
use crate::linux::poll::Poll;
use crate::linux::privileges;
use crate::show::control;
use crate::tunnel::seal::Secret;

/// The argument that makes this program a keeper.
pub const NAME: &str = "keep-for-gateway";
/// Asks for the configuration and the keys.
const READ: u8 = b'r';
/// Asks for the routes of the configuration that was read last.
const ROUTE: u8 = b't';
/// Bytes of a key in an answer: whether there is one, and the key.
const KEY_BYTES: usize = 33;
/// Longest text in a message, bytes.
const TEXT_BYTES: u32 = 1 << 24;
/// How long the keeper may take to begin to read a request, and to answer one that needs no disk.
const PATIENCE: Duration = Duration::from_secs(60);
/// Keys of the gateway and of the thread that reads the file among the keeper's events.
const GATEWAY: u64 = 0;
const READER: u64 = 1;

/// The gateway's end.
pub(super) struct Keeper {
    child: Child,
    stream: UnixStream,
    /// What it reports of the network.
    reports: OwnedFd,
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
    /// Starts the process, which keeps this network. It reads the `file` again from now on.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn start(file: &Path, control: &Path, network: &Network) -> io::Result<Keeper> {
        let (stream, theirs) = UnixStream::pair()?;
        // Unlike a pair of datagram sockets, this one tells that the other end has gone.
        let (family, kind) = (AddressFamily::Unix, SockType::SeqPacket);
        let (reports, their_reports) = socketpair(family, kind, None, SockFlag::SOCK_CLOEXEC)?;
        let child = Command::new("/proc/self/exe")
            .arg(NAME)
            .arg(file)
            .arg(control)
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(their_reports))
            // Ctrl-C at a terminal is for the gateway.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                io::Error::new(error.kind(), format!("cannot start its keeper: {error}"))
            })?;
        // An answer takes as long as the disk takes. A thread waits for it, packets do not.
        stream.set_write_timeout(Some(PATIENCE))?;
        write_text(&stream, &write_network(network))?;
        Ok(Keeper {
            child,
            stream,
            reports,
        })
    }

    /// The newest report of the network, if there is one since this was called last.
    ///
    /// # Errors
    /// When the keeper has ended.
    pub(super) fn report(&self) -> io::Result<Option<Report>> {
        let mut newest = None;
        let mut room = vec![0; REPORT_BYTES];
        loop {
            match recv(self.reports.as_raw_fd(), &mut room, MsgFlags::MSG_DONTWAIT) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => newest = serde_json::from_slice(&room[..bytes]).ok().or(newest),
                Err(Errno::EAGAIN) => return Ok(newest),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The end at which it is asked, which waits for answers.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn requests(&self) -> io::Result<Requests> {
        Ok(Requests {
            stream: Some(self.stream.try_clone()?),
            patience: PATIENCE,
        })
    }
}

/// Where the keeper is asked.
pub(super) struct Requests {
    /// None once an answer failed: the next could be that to an earlier request.
    stream: Option<UnixStream>,
    /// How long it may take to answer what needs no disk.
    patience: Duration,
}

impl Requests {
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

    /// Begins to change routes and MTU to those of the configuration read last. What could not be changed is in a later report.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn route(&mut self) -> Result<(), String> {
        let patience = self.patience;
        self.ask(|stream| {
            // This takes no time, whatever the disk does.
            stream.set_read_timeout(Some(patience))?;
            (&mut &*stream).write_all(&[ROUTE])?;
            read_flag(stream)?;
            stream.set_read_timeout(None)?;
            Ok(Ok(()))
        })
    }

    fn ask<T>(
        &mut self,
        ask: impl FnOnce(&UnixStream) -> io::Result<Result<T, String>>,
    ) -> Result<T, String> {
        let gone = "the process that reads the configuration has ended or does not answer; restart the gateway";
        let stream = self.stream.take().ok_or(gone)?;
        let answer = ask(&stream).map_err(|error| format!("{gone} ({error})"))?;
        self.stream = Some(stream);
        answer
    }
}

impl AsFd for Keeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It ends once this is shut down, after it has removed its rules, so that they are gone before the next gateway makes
        // its own. If it hangs, as when its disk does, the gateway ends all the same.
        let _ = self.stream.shutdown(Shutdown::Both);
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
pub fn keep(file: &Path, control: &Path) -> io::Result<()> {
    // A service manager ends all processes of a service at once; this one is needed until the gateway has ended.
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]
        .into_iter()
        .collect();
    signals.thread_block()?;
    // The log may have no reader, which must not keep a thread that panics from ending.
    journal::hold();
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let reports = io::stdout().as_fd().try_clone_to_owned()?;
    let network = read_network(&read_text(&stream)?).ok_or(io::ErrorKind::InvalidData)?;
    privileges::keep_for_reload()?;
    journal::start()?;
    let wanted = Wanted::of(&network);
    // Tens of thousands of routes take seconds, in which a reload must not wait for an answer.
    let (threads, changes) = Upkeep::start(&network, reports, &stream)?;
    let mut kept = Kept {
        file: file.to_path_buf(),
        wanted,
        changes,
    };
    let served = kept.serve(&stream);
    drop(kept);
    let left = end_upkeep(threads);
    // If this or a thread of the upkeep failed, the rules stay, so that nothing leaves in the clear: the gateway runs on.
    let ended = served.and(left).and_then(|left| {
        let refused = network.remove_entries(&left)?;
        refused.into_values().next().map_or(Ok(()), Err)
    });
    remove_socket(control);
    ended
}

/// Ends the threads; what would stay of all that they kept.
fn end_upkeep(threads: Vec<Thread>) -> io::Result<BTreeSet<Entry>> {
    let panicked = |_| io::Error::other("upkeep panicked");
    let left = threads
        .into_iter()
        .map(|thread| thread.join().map_err(panicked)?);
    Ok(left
        .collect::<io::Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect())
}

/// Removes the control socket, which the gateway may not. One that was killed listens there for a moment more.
fn remove_socket(control: &Path) {
    for _ in 0..50 {
        if control::remove_left(control).unwrap_or(true) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// What a keeper answers about.
struct Kept {
    file: PathBuf,
    /// What the configuration that was read last says.
    wanted: Wanted,
    changes: Changes,
}

impl Kept {
    /// Answers until the gateway has ended.
    ///
    /// # Errors
    /// Those of the system, and requests that are none; the gateway runs on then.
    fn serve(&mut self, stream: &UnixStream) -> io::Result<()> {
        let gone = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
        loop {
            match self.answer(stream) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if gone.contains(&error.kind()) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Answers a request; false: the gateway has ended.
    fn answer(&mut self, mut stream: &UnixStream) -> io::Result<bool> {
        let mut request = [0];
        if stream.read(&mut request)? == 0 {
            return Ok(false);
        }
        match request[0] {
            READ => match self.read(stream) {
                Some(Ok((text, config, preshared))) => {
                    self.wanted = Wanted {
                        nets: routes(&config),
                        refuses: config.refuses_leaks,
                        mtu: config.mtu,
                    };
                    stream.write_all(&[1])?;
                    write_text(stream, &text)?;
                    write_keys(stream, &preshared)?;
                }
                Some(Err(fault)) => {
                    stream.write_all(&[0])?;
                    write_text(stream, &fault)?;
                }
                None => return Ok(false),
            },
            ROUTE => {
                self.changes.route(&self.wanted);
                stream.write_all(&[1])?;
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(true)
    }

    /// What it read; none: the gateway has ended meanwhile.
    fn read(&self, gateway: &UnixStream) -> Option<Reading> {
        self.read_beside(gateway).unwrap_or_else(|error| {
            let fault = format!(
                "the system lacks what it takes to read {}: {error}; SIGHUP tries again",
                self.file.display()
            );
            Some(Err(fault))
        })
    }

    /// Reads the file in a thread, since a disk that hangs blocks without end; none: the gateway has ended meanwhile.
    fn read_beside(&self, gateway: &UnixStream) -> io::Result<Option<Reading>> {
        let mut poll = Poll::new()?;
        let (done, bell) = UnixStream::pair()?;
        let (sender, reading) = mpsc::channel();
        // A gateway that waits for this answer sends nothing: if there is something to read, it has ended.
        poll.add(gateway, GATEWAY)?;
        poll.add(&done, READER)?;
        let file = self.file.clone();
        thread::Builder::new().spawn(move || {
            // Dropped last, which is seen at the other end.
            let _bell = bell;
            let _ = sender.send(read(&file));
        })?;
        let mut happened = Vec::new();
        while happened.is_empty() {
            poll.wait(None, &mut happened)?;
        }
        if happened.contains(&GATEWAY) {
            return Ok(None);
        }
        let panicked = "the thread that reads the configuration panicked; the gateway runs on with the one that it has";
        let reading = reading.recv().unwrap_or_else(|_| Err(panicked.to_string()));
        Ok(Some(reading))
    }
}

/// The text of a configuration, what it says, and the keys shared with peers, or what is wrong with it.
type Reading = Result<(String, Config, Vec<Option<Secret>>), String>;

fn read(file: &Path) -> Reading {
    let text = config::read_text(file).map_err(|fault| fault.to_string())?;
    let config = config::parse(&text, file).map_err(|fault| fault.to_string())?;
    let preshared = Secrets::read_preshared(&config).map_err(|fault| fault.to_string())?;
    Ok((text, config, preshared))
}

/// What the gateway set up, as it tells its keeper.
fn write_network(network: &Network) -> String {
    let Network {
        device,
        mtu,
        mark,
        refuses,
        last_metric,
        addresses,
        nets,
    } = network;
    let mark = mark.unwrap_or_default();
    let addresses: Vec<String> = addresses.iter().map(IpNet::to_string).collect();
    let nets: Vec<String> = nets.iter().map(IpNet::to_string).collect();
    format!(
        "{device} {mtu} {mark} {} {last_metric}\n{}\n{}",
        u8::from(*refuses),
        addresses.join(" "),
        nets.join("\n")
    )
}

fn read_network(text: &str) -> Option<Network> {
    let mut lines = text.lines();
    let numbers = lines.next()?.split(' ').map(|number| number.parse().ok());
    let [device, mtu, mark, refuses, last_metric] = numbers.collect::<Option<Vec<u32>>>()?[..]
    else {
        return None;
    };
    let addresses = lines.next().unwrap_or_default().split_whitespace();
    Some(Network {
        device,
        mtu,
        mark: Some(mark).filter(|mark| *mark != 0),
        refuses: refuses == 1,
        last_metric,
        addresses: addresses.filter_map(|net| net.parse().ok()).collect(),
        nets: lines.filter_map(|net| net.parse().ok()).collect(),
    })
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
    fn the_keeper_keeps_what_the_gateway_set_up() {
        for (mark, refuses) in [(None, false), (Some(51_820), true)] {
            let network = Network {
                device: 7,
                mtu: 1440,
                mark,
                refuses,
                last_metric: u32::MAX - 7,
                addresses: vec![
                    "10.77.0.1/24".parse().unwrap(),
                    "fd77::1/64".parse().unwrap(),
                ],
                nets: BTreeSet::from(["0.0.0.0/0".parse().unwrap(), "fd99::/16".parse().unwrap()]),
            };
            assert_eq!(read_network(&write_network(&network)), Some(network));
        }
        assert_eq!(read_network("7 1440"), None);
    }

    #[test]
    fn a_keeper_that_does_not_answer_is_said_and_not_asked_again() {
        let (here, _silent) = UnixStream::pair().unwrap();
        let mut requests = Requests {
            stream: Some(here),
            patience: Duration::from_millis(10),
        };
        for _ in 0..2 {
            let fault = requests.route().unwrap_err();
            assert!(fault.contains("restart the gateway"), "{fault}");
        }
    }

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
