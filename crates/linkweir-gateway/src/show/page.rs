// SPDX-License-Identifier: BSD-3-Clause
//! The web page: live figures of a gateway, for users of its machine.
//!
//! A process of its own serves it, on loopback only, and asks at the control socket. Another site in the same browser
//! cannot read it: it would have to make its own name resolve to this host and ask with that name, and such names are
//! refused. Nor can it put the page into a frame. All files of the page are inside this program.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use crate::show::control::{self, Response};
use crate::show::http::{self, Answer, Request};

/// What the browser may load for the page: only what comes from here.
const HEAD: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
X-Content-Type-Options: nosniff\r\n\
Referrer-Policy: no-referrer\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n\
Cache-Control: no-store\r\n";

/// The files the page is made of, with their types.
const FILES: [(&str, &str, &[u8]); 6] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_bytes!("../../page/index.html"),
    ),
    (
        "/page.css",
        "text/css; charset=utf-8",
        include_bytes!("../../page/page.css"),
    ),
    (
        "/page.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../page/page.js"),
    ),
    (
        "/uPlot.min.css",
        "text/css; charset=utf-8",
        include_bytes!("../../../../python/linkweir/report/uPlot.min.css"),
    ),
    (
        "/uPlot.iife.min.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../../python/linkweir/report/uPlot.iife.min.js"),
    ),
    (
        "/icon.svg",
        "image/svg+xml",
        include_bytes!("../../page/icon.svg"),
    ),
];

/// Serves the page of the gateway at a control socket, for ever.
///
/// # Errors
/// When the address is none of loopback, or cannot be listened on.
pub fn serve(listen: SocketAddr, control: &Path) -> io::Result<()> {
    if !listen.ip().is_loopback() {
        let message = format!(
            "{listen}: the page is for this host only and knows no passwords; use 127.0.0.1:{port} or [::1]:{port}, \
             and come through ssh -L from elsewhere",
            port = listen.port()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    http::serve(listen, HEAD, |request| answer(request, control))
}

fn answer(request: Request<'_>, control: &Path) -> Answer {
    if !request.host.is_some_and(http::is_loopback) {
        return Answer::misdirected("ask for localhost, 127.0.0.1 or [::1]");
    }
    if request.path == "/show.json" {
        return show(control);
    }
    match FILES.iter().find(|(path, _, _)| *path == request.path) {
        Some((_, kind, body)) => Answer::ok(kind, *body),
        None => Answer::refusal("404 Not Found", "not found; ask for /"),
    }
}

fn show(control: &Path) -> Answer {
    let what = match control::ask(control, &control::Request::Show) {
        Ok(Response::Show(show)) => match serde_json::to_vec(&show) {
            Ok(json) => return Answer::ok("application/json", json),
            Err(error) => error.to_string(),
        },
        Ok(_) => {
            "the gateway is of another version than this program; restart the gateway".to_string()
        }
        Err(error) => error.to_string(),
    };
    Answer::refusal("502 Bad Gateway", &what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_no_other_host() {
        for (path, _, body) in FILES {
            let text = std::str::from_utf8(body).unwrap();
            let mut rest = text;
            while let Some(at) = rest.find("//") {
                let known = [
                    // Where uPlot comes from, in its first comment, and the names of vector graphics and their like.
                    "//github.com/leeoniya/uPlot",
                    "//www.w3.org/2000/svg",
                ];
                let before = &rest[..at];
                assert!(
                    !before.ends_with([':', '"', '\'', '(', '='])
                        || known.iter().any(|name| rest[at..].starts_with(name)),
                    "{path}: {}",
                    &rest[at..].chars().take(40).collect::<String>()
                );
                rest = &rest[at + 2..];
            }
        }
    }

    #[test]
    fn other_addresses_than_loopback_are_refused() {
        for listen in ["0.0.0.0:9706", "[::]:9706", "192.0.2.1:9706"] {
            let error = serve(listen.parse().unwrap(), Path::new("/nowhere")).unwrap_err();
            assert!(error.to_string().contains("for this host only"), "{error}");
        }
    }
}
