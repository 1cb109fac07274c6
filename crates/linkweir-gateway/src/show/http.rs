// SPDX-License-Identifier: BSD-3-Clause
//! A minimal HTTP server for figures: GET, and one answer for each connection. Every client has a thread, so that a slow or
//! silent one delays no other; the number of threads is limited.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Largest request, bytes.
const REQUEST_BYTES: usize = 8192;
/// How long a client may take to ask, and to read.
const PATIENCE: Duration = Duration::from_secs(2);
/// Clients served at once. Connections beyond are closed.
const CLIENTS: usize = 32;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'r> {
    /// The path, without a query.
    pub path: &'r str,
    /// The `Host` header as the client wrote it; none where there is none or there are several.
    pub host: Option<&'r str>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Status with its reason.
    pub status: &'static str,
    /// Type of the body.
    pub kind: &'static str,
    /// The body.
    pub body: Cow<'static, [u8]>,
}

impl Answer {
    /// An answer with the content of the request.
    #[must_use]
    pub(super) fn ok(kind: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Answer {
        Answer {
            status: "200 OK",
            kind,
            body: body.into(),
        }
    }

    /// The answer to a request with another name than this host's; `cure`: the names it has.
    #[must_use]
    pub(super) fn misdirected(cure: &str) -> Answer {
        Answer::refusal("421 Misdirected Request", cure)
    }

    /// Why there is nothing.
    #[must_use]
    pub(super) fn refusal(status: &'static str, why: &str) -> Answer {
        Answer {
            status,
            kind: "text/plain; charset=utf-8",
            body: format!("{why}\n").into_bytes().into(),
        }
    }
}

/// Answers requests at an address, with these lines in every head, for ever.
///
/// # Errors
/// When the address cannot be listened on.
pub(super) fn serve(
    listen: SocketAddr,
    head: &str,
    answer: impl Fn(Request<'_>) -> Answer + Sync,
) -> io::Result<()> {
    let listener = TcpListener::bind(listen).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}"))
    })?;
    let clients = AtomicUsize::new(0);
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // The system is short of memory or descriptors. A client that leaves frees some.
                thread::sleep(PATIENCE / 20);
                continue;
            };
            if clients.fetch_add(1, Ordering::AcqRel) >= CLIENTS {
                clients.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let (clients, answer) = (&clients, &answer);
            let begun = thread::Builder::new().spawn_scoped(scope, move || {
                // A client that hangs up or takes too long gets no answer.
                let _ = exchange(stream, head, answer);
                clients.fetch_sub(1, Ordering::AcqRel);
            });
            if begun.is_err() {
                clients.fetch_sub(1, Ordering::AcqRel);
            }
        }
    });
    Ok(())
}

fn exchange(
    mut stream: TcpStream,
    head: &str,
    answer: impl Fn(Request<'_>) -> Answer,
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let begun = Instant::now();
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        // The limit is for the whole request, so that a client cannot send it byte by byte for ever.
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if left.is_zero() || request.len() >= REQUEST_BYTES {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(count) => request.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let answer = match std::str::from_utf8(&request).ok().and_then(parse) {
        Some(request) => answer(request),
        None => Answer::refusal("400 Bad Request", "only GET is supported"),
    };
    let (status, kind, length) = (answer.status, answer.kind, answer.body.len());
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n{head}\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&answer.body)
}

fn parse(text: &str) -> Option<Request<'_>> {
    let mut lines = text.split("\r\n");
    let target = lines.next()?.strip_prefix("GET ")?;
    let (target, version) = target.split_once(' ')?;
    if !version.starts_with("HTTP/1.") {
        return None;
    }
    let path = target.split('?').next().unwrap_or(target);
    let mut hosts = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim());
    let host = match (hosts.next(), hosts.next()) {
        (host, None) => host,
        _ => None,
    };
    Some(Request { path, host })
}

/// Whether this `Host` header names loopback, with any port.
pub(super) fn is_loopback(host: &str) -> bool {
    let name = without_port(host);
    name.eq_ignore_ascii_case("localhost")
        || address(name).is_some_and(|address| address.is_loopback())
}

/// Whether this `Host` header is an address, with any port: a site that makes its own name resolve to this host asks with
/// that name.
pub(super) fn is_address(host: &str) -> bool {
    address(without_port(host)).is_some()
}

/// Whether this `Host` header is this name, with any port.
pub(super) fn is_name(host: &str, name: &str) -> bool {
    without_port(host).eq_ignore_ascii_case(name)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if !name.is_empty() && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) =>
        {
            name
        }
        _ => host,
    }
}

/// The address that a name is. Names are never resolved.
fn address(name: &str) -> Option<IpAddr> {
    let inner = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    inner.unwrap_or(name).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_browsers_write_them() {
        let request = |path, host| Some(Request { path, host });
        for (text, read) in [
            (
                "GET / HTTP/1.1\r\nHost: a:1\r\n\r\n",
                request("/", Some("a:1")),
            ),
            (
                "GET /x?y=/z HTTP/1.0\r\nhOsT:  b \r\nX: y\r\n\r\n",
                request("/x", Some("b")),
            ),
            (
                "GET /x HTTP/1.1\r\n\r\nHost: body\r\n\r\n",
                request("/x", None),
            ),
            (
                "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                request("/x", None),
            ),
            ("POST / HTTP/1.1\r\n\r\n", None),
            ("GET /\r\n\r\n", None),
            ("GET / FTP/1\r\n\r\n", None),
            ("", None),
        ] {
            assert_eq!(parse(text), read, "{text:?}");
        }
    }

    #[test]
    fn only_names_of_loopback_are_answered() {
        for host in [
            "localhost",
            "LocalHost:9706",
            "127.0.0.1:9706",
            "127.0.0.1",
            "[::1]:9706",
            "[::1]",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            ":9706",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:9706",
            "192.0.2.1:9706",
            "[2001:db8::1]:9706",
            "localhost:evil",
            "0.0.0.0:9706",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn addresses_and_given_names_are_told_from_others() {
        for host in ["192.0.2.1:9705", "192.0.2.1", "[2001:db8::1]:9705"] {
            assert!(is_address(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "192.0.2.1.evil.example:9705",
            "localhost",
        ] {
            assert!(!is_address(host), "{host}");
        }
        assert!(is_name("Gateway.example:9705", "gateway.example"));
        assert!(is_name("gateway.example", "gateway.example"));
        assert!(!is_name(
            "gateway.example.evil.example:9705",
            "gateway.example"
        ));
    }
}
