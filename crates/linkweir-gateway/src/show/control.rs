// SPDX-License-Identifier: BSD-3-Clause
//! The control socket: each request and each response is one line of JSON.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::linux::poll::Poll;
use crate::linux::privileges;
use crate::show::figures::Show;

/// Clients served at once. One more takes the place of the one that has been idle longest.
const CLIENTS: usize = 16;
/// How long a client may be idle, ns.
const IDLE_NS: u64 = 10_000_000_000;
/// How long no client is accepted once the system has no descriptor for one, ns.
const PAUSE_NS: u64 = 1_000_000_000;
/// Longest request, bytes.
const REQUEST_BYTES: usize = 4096;

/// Attempts to lock the folder of the socket, a millisecond apart.
const LOCK_ATTEMPTS: usize = 5000;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// All figures.
    Show,
    /// Sets the capacity towards one peer or all.
    SetCapacity {
        /// Name of the peer.
        peer: Option<String>,
        /// Name of the path, if peers have several.
        #[serde(default)]
        path: Option<String>,
        /// The capacity, bit/s; 0 is an outage.
        capacity_bps: u64,
    },
}

/// A response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// The figures.
    Show(Box<Show>),
    /// It was done.
    Done,
    /// It was not done, and why.
    Refused(String),
}

/// What answers requests.
pub trait Answers {
    /// Answers a request.
    fn answer(&mut self, request: Request) -> Reply;

    /// The figures of the peer of this number as JSON; none: there are no more.
    fn peer(&mut self, at: usize) -> Option<Vec<u8>>;
}

/// An answer.
pub enum Reply {
    /// Of one piece.
    Whole(Response),
    /// Figures; those of the peers are asked for later, as the client reads, since there may be thousands of them.
    Figures(Box<Show>),
}

/// What follows the last peer in an answer.
const END: &[u8] = b"]}}";
/// Bytes of an answer that may wait for the client before more are written.
const ROOM_BYTES: usize = 1 << 16;
/// Peers whose figures are written before packets have their turn again.
const AT_ONCE: usize = 16;

struct Client {
    stream: UnixStream,
    /// When it last asked, or read some of an answer, ns.
    active_ns: u64,
    request_bytes: Vec<u8>,
    answer: Vec<u8>,
    /// The next peer whose figures belong to the answer.
    next_peer: Option<usize>,
}

/// The listening end.
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    clients: BTreeMap<u64, Client>,
    next_key: u64,
    /// Key of the listening end in the poll.
    key: u64,
    /// Clients that are not served for a while.
    held: Vec<u64>,
    /// When clients are accepted again, ns; none: they are.
    paused_until_ns: Option<u64>,
}

impl Control {
    /// Listens at a path, for root and this group. The poll knows it by `key`, and clients by keys from `first_key` on.
    ///
    /// # Errors
    /// When another gateway listens there, or the system refuses.
    pub fn listen(
        path: &Path,
        group: Option<&str>,
        key: u64,
        first_key: u64,
    ) -> io::Result<Control> {
        let named = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!("control socket {}: {error}", path.display()),
            )
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(named)?;
        }
        if UnixStream::connect(path).is_ok() {
            let message =
                "another gateway listens there; stop it or name another path as gateway.control";
            return Err(named(io::Error::new(io::ErrorKind::AddrInUse, message)));
        }
        // The keeper of a gateway that was just killed may be removing its socket.
        let lock = lock_folder(path);
        unlink_left(path).map_err(named)?;
        let bind = || UnixListener::bind(path);
        let listener = privileges::as_group(group, bind).map_err(named)?;
        drop(lock);
        fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(named)?;
        listener.set_nonblocking(true)?;
        Ok(Control {
            listener,
            path: path.to_path_buf(),
            clients: BTreeMap::new(),
            next_key: first_key,
            key,
            held: Vec::new(),
            paused_until_ns: None,
        })
    }

    /// Accepts a client.
    pub fn accept(&mut self, now_ns: u64, poll: &Poll) {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                let gone = [io::ErrorKind::WouldBlock, io::ErrorKind::ConnectionAborted];
                if !gone.contains(&error.kind()) && error.kind() != io::ErrorKind::Interrupted {
                    // The system has no descriptor or memory left. The client stays in the queue, and the poll would report
                    // it at once again.
                    self.remove_idlest(poll);
                    let _ = poll.interest(&self.listener, self.key, false, false);
                    self.paused_until_ns = Some(now_ns + PAUSE_NS);
                }
                return;
            }
        };
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.clients.len() >= CLIENTS {
            self.remove_idlest(poll);
        }
        if poll.add(&stream, self.next_key).is_ok() {
            let client = Client {
                stream,
                active_ns: now_ns,
                request_bytes: Vec::new(),
                answer: Vec::new(),
                next_peer: None,
            };
            self.clients.insert(self.next_key, client);
            self.next_key += 1;
        }
    }

    /// Serves a client that is ready to be read or written.
    pub fn serve(&mut self, now_ns: u64, key: u64, poll: &Poll, answers: &mut impl Answers) {
        let Some(client) = self.clients.get_mut(&key) else {
            return;
        };
        client.active_ns = now_ns;
        if !client.advance(key, poll, answers).unwrap_or(false) {
            self.remove(key, poll);
        }
    }

    /// Does not serve a client until [`Control::release`]. The poll does not wait for it, as it would report one that hangs up
    /// again and again.
    pub fn hold(&mut self, key: u64, poll: &Poll) {
        if let Some(client) = self.clients.get(&key) {
            if poll.remove(&client.stream).is_ok() {
                self.held.push(key);
            }
        }
    }

    /// Whether clients are held.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Serves the clients again that were held.
    pub fn release(&mut self, poll: &Poll) {
        for key in std::mem::take(&mut self.held) {
            if let Some(client) = self.clients.get(&key) {
                let writes = client.has_more();
                if poll.add(&client.stream, key).is_ok() && writes {
                    let _ = poll.interest(&client.stream, key, false, true);
                }
            }
        }
    }

    /// Removes clients that have been idle too long, and accepts clients again after a pause. Returns when that is due
    /// again, ns.
    pub fn tidy(&mut self, now_ns: u64, poll: &Poll) -> Option<u64> {
        if self.paused_until_ns.is_some_and(|ns| ns <= now_ns) {
            self.paused_until_ns = None;
            let _ = poll.interest(&self.listener, self.key, true, false);
        }
        while let Some((key, active_ns)) = self.idlest() {
            if now_ns < active_ns + IDLE_NS {
                break;
            }
            self.remove(key, poll);
        }
        let idle_ns = self.idlest().map(|(_, active_ns)| active_ns + IDLE_NS);
        idle_ns.into_iter().chain(self.paused_until_ns).min()
    }

    /// The client that has been idle longest, and since when, ns.
    fn idlest(&self) -> Option<(u64, u64)> {
        let clients = self.clients.iter();
        let since = clients.map(|(key, client)| (client.active_ns, *key));
        since.min().map(|(active_ns, key)| (key, active_ns))
    }

    fn remove_idlest(&mut self, poll: &Poll) {
        if let Some((key, _)) = self.idlest() {
            self.remove(key, poll);
        }
    }

    fn remove(&mut self, key: u64, poll: &Poll) {
        if let Some(client) = self.clients.remove(&key) {
            let _ = poll.remove(&client.stream);
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Without privileges this may fail. The keeper removes the socket then.
        let _ = fs::remove_file(&self.path);
    }
}

impl Client {
    /// Reads a request and answers it, or writes the rest of a response; returns whether the client stays. It answers one
    /// request at a time, so that packets have their turn between them.
    fn advance(&mut self, key: u64, poll: &Poll, answers: &mut impl Answers) -> io::Result<bool> {
        if self.answer.is_empty() && self.next_peer.is_none() {
            let mut end = self.end_of_request();
            if end.is_none() {
                let mut part = [0; REQUEST_BYTES];
                match self.stream.read(&mut part) {
                    Ok(0) => return Ok(false),
                    Ok(count) => self.request_bytes.extend_from_slice(&part[..count]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
                end = self.end_of_request();
            }
            let Some(end) = end else {
                poll.interest(&self.stream, key, true, false)?;
                return Ok(self.request_bytes.len() < REQUEST_BYTES);
            };
            let reply = match serde_json::from_slice(&self.request_bytes[..end]) {
                Ok(request) => answers.answer(request),
                Err(error) => Reply::Whole(Response::Refused(format!(
                    "cannot read the request: {error}"
                ))),
            };
            self.request_bytes.drain(..=end);
            match reply {
                Reply::Whole(response) => {
                    self.answer = serde_json::to_vec(&response)?;
                    self.answer.push(b'\n');
                }
                Reply::Figures(show) => {
                    self.answer = serde_json::to_vec(&Response::Show(show))?;
                    // The list of peers is the last, and empty so far.
                    self.answer.truncate(self.answer.len() - END.len());
                    self.next_peer = Some(0);
                }
            }
        }
        if self.answer.len() < ROOM_BYTES {
            self.write_peers(answers);
        }
        match self.stream.write(&self.answer) {
            Ok(count) => drop(self.answer.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        // A request that was read already is answered when the client has room for more.
        let more = self.has_more();
        poll.interest(&self.stream, key, !more, more)?;
        Ok(true)
    }

    /// Whether there is something to write, or to answer.
    fn has_more(&self) -> bool {
        !self.answer.is_empty() || self.next_peer.is_some() || self.end_of_request().is_some()
    }

    /// Writes the figures of the next peers into the answer.
    fn write_peers(&mut self, answers: &mut impl Answers) {
        let Some(first) = self.next_peer else {
            return;
        };
        for at in first..first + AT_ONCE {
            let Some(peer) = answers.peer(at) else {
                self.answer.extend_from_slice(END);
                self.answer.push(b'\n');
                self.next_peer = None;
                return;
            };
            if at > 0 {
                self.answer.push(b',');
            }
            self.answer.extend(peer);
            self.next_peer = Some(at + 1);
        }
    }

    /// Where the first request that was read ends.
    fn end_of_request(&self) -> Option<usize> {
        self.request_bytes.iter().position(|byte| *byte == b'\n')
    }
}

/// Removes the socket of a gateway that has ended. One at which a gateway listens stays. Returns whether there is none now.
///
/// # Errors
/// When there is something else at the path, or the system refuses.
pub fn remove_left(path: &Path) -> io::Result<bool> {
    let _lock = lock_folder(path);
    unlink_left(path)
}

/// As [`remove_left`] does, for a caller that holds the folder's lock. Without it, another gateway could take the path between
/// the attempt to connect and the removal, which would remove its socket; or it might have one at which it does not listen yet.
fn unlink_left(path: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let message =
            "there is a file that is no socket; remove it, or name another path as gateway.control";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            match fs::remove_file(path) {
                // A gateway that ends removes its socket without the lock.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
                removed => removed.map(|()| true),
            }
        }
        _ => Ok(false),
    }
}

/// Locks the folder of a control socket for those that make and remove one, until the lock is dropped. None: it cannot be locked,
/// or another program, which may be of any user, has held it for [`LOCK_ATTEMPTS`].
fn lock_folder(path: &Path) -> Option<Flock<File>> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let mut folder = File::open(folder.unwrap_or(Path::new("."))).ok()?;
    for _ in 0..LOCK_ATTEMPTS {
        folder = match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((folder, Errno::EWOULDBLOCK | Errno::EINTR)) => folder,
            Err(_) => return None,
        };
        thread::sleep(Duration::from_millis(1));
    }
    None
}

/// Asks the gateway at a control socket.
///
/// # Errors
/// When there is none, or it does not answer.
pub fn ask(path: &Path, request: &Request) -> io::Result<Response> {
    let named = |error: io::Error| {
        let cure = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => "; no gateway runs there",
            io::ErrorKind::PermissionDenied => {
                "; run as root or in the group gateway.control_group"
            }
            _ => "",
        };
        io::Error::new(error.kind(), format!("{}: {error}{cure}", path.display()))
    };
    let mut stream = UnixStream::connect(path).map_err(named)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut request_bytes = serde_json::to_vec(request)?;
    request_bytes.push(b'\n');
    stream.write_all(&request_bytes).map_err(named)?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .map_err(named)?;
    Ok(serde_json::from_str(&answer)?)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::linux::poll::now_ns;

    /// A gateway that is started again just after it was killed, whose keeper removes the socket that was left.
    #[test]
    fn a_new_socket_is_not_taken_for_the_one_that_was_left() {
        let folder = std::env::temp_dir().join(format!("linkweir-left-{}", std::process::id()));
        let path = folder.join("control");
        fs::create_dir_all(&folder).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|threads| {
            let keeper = threads.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    remove_left(&path).unwrap();
                }
            });
            let lost = (0..3000).find_map(|round| {
                let mut killed = match Control::listen(&path, None, 1, 100) {
                    Ok(control) => control,
                    Err(error) => return Some(format!("round {round}: {error}")),
                };
                let found = UnixStream::connect(&path);
                // A process that is killed leaves its socket.
                killed.path.clear();
                found.err().map(|error| format!("round {round}: {error}"))
            });
            over.store(true, Ordering::Relaxed);
            keeper.join().unwrap();
            assert_eq!(lost, None);
        });
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_client_that_hangs_up_while_it_is_held_wakes_nobody() {
        let path = std::env::temp_dir().join(format!("linkweir-held-{}", std::process::id()));
        let mut poll = Poll::new().unwrap();
        let mut control = Control::listen(&path, None, 1, 100).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        control.accept(0, &poll);
        control.hold(100, &poll);
        drop(client);
        let mut happened = Vec::new();
        for _ in 0..3 {
            poll.wait(Some(now_ns() + 1_000_000), &mut happened)
                .unwrap();
            assert_eq!(happened, [0; 0]);
            control.hold(100, &poll);
        }
        assert_eq!(control.held, [100], "once");
        control.release(&poll);
        poll.wait(None, &mut happened).unwrap();
        assert_eq!(happened, [100]);
    }
}
