// SPDX-License-Identifier: BSD-3-Clause
//! The control socket: each request and each response is one line of JSON.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::linux::poll::Poll;
use crate::show::figures::Show;

/// Clients served at once; more wait until one has gone.
const CLIENTS: usize = 16;
/// Longest request, bytes.
const REQUEST_BYTES: usize = 4096;

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

struct Client {
    stream: UnixStream,
    request_bytes: Vec<u8>,
    answer: Vec<u8>,
}

/// The listening end.
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    clients: BTreeMap<u64, Client>,
    next_key: u64,
}

impl Control {
    /// Listens at a path; clients have keys from `first_key` on.
    ///
    /// # Errors
    /// When another gateway listens there, or the system refuses.
    pub fn listen(path: &Path, first_key: u64) -> io::Result<Control> {
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
        // What a killed gateway left.
        let _ = fs::remove_file(path);
        let listener = UnixListener::bind(path).map_err(named)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(named)?;
        listener.set_nonblocking(true)?;
        Ok(Control {
            listener,
            path: path.to_path_buf(),
            clients: BTreeMap::new(),
            next_key: first_key,
        })
    }

    /// Accepts a client.
    pub fn accept(&mut self, poll: &Poll) {
        let Ok((stream, _)) = self.listener.accept() else {
            return;
        };
        if self.clients.len() >= CLIENTS || stream.set_nonblocking(true).is_err() {
            return;
        }
        if poll.add(&stream, self.next_key).is_ok() {
            let client = Client {
                stream,
                request_bytes: Vec::new(),
                answer: Vec::new(),
            };
            self.clients.insert(self.next_key, client);
            self.next_key += 1;
        }
    }

    /// Serves a client that is ready to be read or written.
    pub fn serve(&mut self, key: u64, poll: &Poll, answer: impl FnOnce(Request) -> Response) {
        let Some(client) = self.clients.get_mut(&key) else {
            return;
        };
        if !client.advance(key, poll, answer).unwrap_or(false) {
            let _ = poll.remove(&client.stream);
            self.clients.remove(&key);
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
        // Without privileges this may fail. The next gateway removes the socket then.
        let _ = fs::remove_file(&self.path);
    }
}

impl Client {
    /// Reads a request, or writes the rest of a response; returns whether the client stays.
    fn advance(
        &mut self,
        key: u64,
        poll: &Poll,
        answer: impl FnOnce(Request) -> Response,
    ) -> io::Result<bool> {
        if self.answer.is_empty() {
            let mut part = [0; REQUEST_BYTES];
            match self.stream.read(&mut part) {
                Ok(0) => return Ok(false),
                Ok(count) => self.request_bytes.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            let Some(end) = self.request_bytes.iter().position(|byte| *byte == b'\n') else {
                return Ok(self.request_bytes.len() < REQUEST_BYTES);
            };
            let response = match serde_json::from_slice(&self.request_bytes[..end]) {
                Ok(request) => answer(request),
                Err(error) => Response::Refused(format!("cannot read the request: {error}")),
            };
            self.request_bytes.drain(..=end);
            self.answer = serde_json::to_vec(&response)?;
            self.answer.push(b'\n');
        }
        match self.stream.write(&self.answer) {
            Ok(count) => drop(self.answer.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let more = !self.answer.is_empty();
        poll.interest(&self.stream, key, !more, more)?;
        Ok(true)
    }
}

/// Asks the gateway at a control socket.
///
/// # Errors
/// When there is none, or it does not answer.
pub fn ask(path: &Path, request: &Request) -> io::Result<Response> {
    let named = |error: io::Error| {
        let cure = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => "; no gateway runs there",
            io::ErrorKind::PermissionDenied => "; run as root",
            _ => "",
        };
        io::Error::new(error.kind(), format!("{}: {error}{cure}", path.display()))
    };
    let mut stream = UnixStream::connect(path).map_err(named)?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
    let mut request_bytes = serde_json::to_vec(request)?;
    request_bytes.push(b'\n');
    stream.write_all(&request_bytes).map_err(named)?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .map_err(named)?;
    Ok(serde_json::from_str(&answer)?)
}
