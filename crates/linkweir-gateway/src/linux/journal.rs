// SPDX-License-Identifier: BSD-3-Clause
//! The log: lines on standard error, or entries of systemd's journal with fields by which they can be found, where a service
//! manager keeps it. An event that comes again and again is written a few times a minute.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::net::UnixDatagram;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::linux::poll::now_ns;

/// Where systemd's journal takes entries (systemd.io/JOURNAL_NATIVE_PROTOCOL).
const JOURNAL: &str = "/run/systemd/journal/socket";
/// What the journal calls a message that tells, and one that warns.
const INFO: u8 = 6;
const WARNING: u8 = 4;
/// Entries of one event of one peer in a minute.
const IN_A_MINUTE: u64 = 5;
const MINUTE_NS: u64 = 60_000_000_000;
/// Most events that are counted.
const EVENTS: usize = 4096;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// There is a session with a peer.
    SessionOpened,
    /// There is none any more.
    SessionEnded,
    /// A peer sends from another address.
    PeerMoved,
    /// The name of a peer's endpoint has an address, or another one.
    EndpointFound,
    /// It has none.
    EndpointUnknown,
    /// The route to a peer leads into the tunnel itself.
    TunnelLooped,
    /// It leads past the tunnel again.
    TunnelUnlooped,
    /// Another underlay of a peer is used.
    UnderlayChanged,
    /// The path to a peer carries longer packets than was thought, or only shorter ones.
    PathMtuFound,
    /// A reported capacity has expired, and the floor holds.
    CapacityExpired,
    /// Packets of a class wait, and only other classes send.
    ClassStarved,
    /// The device was set down, so that nothing enters the tunnel.
    DeviceDown,
    /// It is up again.
    DeviceUp,
    /// Another program removed rules, routes or addresses, which were added again.
    NetworkRestored,
    /// It does so as fast as they are added.
    NetworkContested,
    /// Rules, routes and addresses are not kept any more.
    NetworkUnwatched,
    /// Addresses, routes or rules cannot be added.
    RouteMissing,
    /// All are there again.
    RouteFound,
    /// Recordings cannot be written.
    RecordFailed,
    /// They are written again.
    RecordResumed,
    /// Somebody without a place in the configuration began a handshake.
    UnknownPeer,
}

impl Event {
    fn name(self) -> &'static str {
        match self {
            Event::SessionOpened => "session_opened",
            Event::SessionEnded => "session_ended",
            Event::PeerMoved => "peer_moved",
            Event::EndpointFound => "endpoint_found",
            Event::EndpointUnknown => "endpoint_unknown",
            Event::TunnelLooped => "tunnel_looped",
            Event::TunnelUnlooped => "tunnel_unlooped",
            Event::UnderlayChanged => "underlay_changed",
            Event::PathMtuFound => "path_mtu_found",
            Event::CapacityExpired => "capacity_expired",
            Event::ClassStarved => "class_starved",
            Event::DeviceDown => "device_down",
            Event::DeviceUp => "device_up",
            Event::NetworkRestored => "network_restored",
            Event::NetworkContested => "network_contested",
            Event::NetworkUnwatched => "network_unwatched",
            Event::RouteMissing => "route_missing",
            Event::RouteFound => "route_found",
            Event::RecordFailed => "record_failed",
            Event::RecordResumed => "record_resumed",
            Event::UnknownPeer => "unknown_peer",
        }
    }

    fn priority(self) -> u8 {
        match self {
            Event::SessionOpened | Event::PeerMoved | Event::EndpointFound => INFO,
            _ => WARNING,
        }
    }
}

/// How often an event was written, and how often it was not, in the minute that began at a time, ns.
#[derive(Default)]
struct Count {
    began_ns: u64,
    written: u64,
    left_out: u64,
}

/// The events of a minute.
#[derive(Default)]
struct Counts {
    of: BTreeMap<(Event, String), Count>,
}

impl Counts {
    /// Whether an event may be written, and how many like it were left out before.
    fn admit(&mut self, now_ns: u64, event: Event, peer: &str) -> Option<u64> {
        if self.of.len() >= EVENTS {
            self.of
                .retain(|_, count| now_ns < count.began_ns + MINUTE_NS);
        }
        if self.of.len() >= EVENTS && !self.of.contains_key(&(event, peer.to_string())) {
            return None;
        }
        let count = self.of.entry((event, peer.to_string())).or_default();
        if count.written == 0 || count.began_ns + MINUTE_NS <= now_ns {
            count.began_ns = now_ns;
            count.written = 0;
        }
        if count.written == IN_A_MINUTE {
            count.left_out += 1;
            return None;
        }
        count.written += 1;
        Some(std::mem::take(&mut count.left_out))
    }
}

/// Writes a message that is no event of a peer, such as the answer to a signal.
pub(crate) fn log(message: &str) {
    write(message, &[("PRIORITY", &WARNING.to_string())]);
}

/// Writes that something happened to a peer, unless it did so several times within a minute.
pub(crate) fn tell(event: Event, peer: &str, what: &str) {
    static COUNTS: OnceLock<Mutex<Counts>> = OnceLock::new();
    let counts = COUNTS.get_or_init(Mutex::default);
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(left_out) = counts.admit(now_ns(), event, peer) else {
        return;
    };
    let mut message = if peer.is_empty() {
        what.to_string()
    } else {
        format!("peer {peer}: {what}")
    };
    if left_out > 0 {
        let _ = write!(message, " ({left_out} more like this were left out)");
    }
    let priority = event.priority().to_string();
    let mut fields = vec![
        ("PRIORITY", priority.as_str()),
        ("LINKWEIR_EVENT", event.name()),
    ];
    if !peer.is_empty() {
        fields.push(("LINKWEIR_PEER", peer));
    }
    write(&message, &fields);
}

/// Writes an entry to the journal if standard error goes there, and a line to standard error otherwise.
fn write(message: &str, fields: &[(&str, &str)]) {
    static KEPT: OnceLock<Option<UnixDatagram>> = OnceLock::new();
    let journal = KEPT.get_or_init(|| {
        std::env::var_os("JOURNAL_STREAM")?;
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect(JOURNAL).ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(socket)
    });
    let sent = journal
        .as_ref()
        .is_some_and(|socket| socket.send(&entry(message, fields)).is_ok());
    if !sent {
        // In one piece, since other programs may write there, too.
        let line = format!("linkweir-gateway: {message}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// An entry as the journal takes it. A value with a line's end has its length in front.
fn entry(message: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let program = ("SYSLOG_IDENTIFIER", "linkweir-gateway");
    for (name, value) in [("MESSAGE", message), program].iter().chain(fields) {
        bytes.extend(name.as_bytes());
        if value.contains('\n') {
            bytes.push(b'\n');
            bytes.extend((value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend(value.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_written_a_few_times_a_minute() {
        let mut counts = Counts::default();
        let mut admitted = |ns, peer| counts.admit(ns, Event::PeerMoved, peer);
        for at in 0..5 {
            assert_eq!(admitted(at, "ship"), Some(0));
        }
        for at in 5..100 {
            assert_eq!(admitted(at, "ship"), None);
        }
        assert_eq!(admitted(100, "ground"), Some(0), "another has its own");
        assert_eq!(admitted(MINUTE_NS, "ship"), Some(95));
        assert_eq!(admitted(MINUTE_NS + 1, "ship"), Some(0));
    }

    #[test]
    fn names_without_end_take_no_memory_without_end() {
        let mut counts = Counts::default();
        for number in 0..3 * EVENTS {
            counts.admit(0, Event::UnknownPeer, &number.to_string());
        }
        assert_eq!(counts.of.len(), EVENTS);
        assert_eq!(
            counts.admit(MINUTE_NS, Event::UnknownPeer, "later"),
            Some(0)
        );
    }

    #[test]
    fn entries_are_as_the_journal_takes_them() {
        let fields = [("LINKWEIR_PEER", "ship"), ("OTHER", "a\nb")];
        let expected = b"MESSAGE=a session\nSYSLOG_IDENTIFIER=linkweir-gateway\nLINKWEIR_PEER=ship\nOTHER\n\x03\0\0\0\0\0\0\0a\nb\n";
        assert_eq!(entry("a session", &fields), expected);
    }
}
