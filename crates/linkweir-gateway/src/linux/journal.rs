// SPDX-License-Identifier: BSD-3-Clause
//! The log: lines on standard error, or entries of systemd's journal with fields by which they can be found, where a service
//! manager keeps it. An event that comes again and again is written a few times a minute.
//!
//! Packets never wait for the log. A gateway calls [`hold`] first; from then on lines wait in a [`Queue`], and a thread writes
//! them once [`start`] was called. If nobody reads the log, the thread waits and lines are lost, which is counted.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nix::sys::stat::fstat;

use crate::linux::poll::now_ns;
use crate::linux::queue::{self, LineWriter, Queue};

/// Where systemd's journal takes entries (systemd.io/JOURNAL_NATIVE_PROTOCOL).
const JOURNAL: &str = "/run/systemd/journal/socket";
/// What the journal calls a message that tells, and one that warns.
const INFO: u8 = 6;
const WARNING: u8 = 4;
/// Most entries that wait to be written.
const WAITING: usize = 1024;
/// Longest message, bytes: a longer one is cut. A line of this length goes into a pipe in one piece.
const MESSAGE_BYTES: usize = 4000;
/// How long the end of the program waits for the log.
const PATIENCE: Duration = Duration::from_secs(1);
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
    /// Other paths to a peer carry packets.
    PathChanged,
    /// A peer has another number of classes, so that several paths cannot be used at once.
    ClassesDiffer,
    /// Packets of a path come so late that they are dropped.
    PathLate,
    /// The paths to a peer that are up cannot carry what is reserved for a class.
    PromiseBroken,
    /// They can again.
    PromiseKept,
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
    /// The address that the gateway listens on has gone.
    ListenGone,
    /// It is there again.
    ListenBack,
    /// Recordings cannot be written.
    RecordFailed,
    /// They are written again.
    RecordResumed,
    /// Another program removed or changed the file that was being recorded to.
    RecordChanged,
    /// Somebody without a place in the configuration began a handshake.
    UnknownPeer,
    /// A peer's program cannot be started, or it wrote to standard error.
    ProgramSaid,
    /// A peer's program printed a line that is no capacity.
    ProgramMalformed,
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
            Event::PathChanged => "path_changed",
            Event::ClassesDiffer => "classes_differ",
            Event::PathLate => "path_late",
            Event::PromiseBroken => "promise_broken",
            Event::PromiseKept => "promise_kept",
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
            Event::ListenGone => "listen_gone",
            Event::ListenBack => "listen_back",
            Event::RecordFailed => "record_failed",
            Event::RecordResumed => "record_resumed",
            Event::RecordChanged => "record_changed",
            Event::UnknownPeer => "unknown_peer",
            Event::ProgramSaid => "program_said",
            Event::ProgramMalformed => "program_malformed",
        }
    }

    /// Entries about one peer in a minute.
    fn in_a_minute(self) -> u64 {
        match self {
            // The traceback of a script is whole.
            Event::ProgramSaid => 30,
            _ => 5,
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
        if count.written == event.in_a_minute() {
            count.left_out += 1;
            return None;
        }
        count.written += 1;
        Some(std::mem::take(&mut count.left_out))
    }
}

/// An entry of the log.
struct Entry {
    message: String,
    priority: u8,
    event: Option<Event>,
    /// Empty if it is about no peer.
    peer: String,
}

impl Entry {
    fn new(message: Cow<'_, str>, priority: u8) -> Entry {
        let mut message = message.into_owned();
        if message.len() > MESSAGE_BYTES {
            let whole = (0..=MESSAGE_BYTES).rfind(|at| message.is_char_boundary(*at));
            message.truncate(whole.unwrap_or(0));
            message.push_str(" ...");
        }
        Entry {
            message,
            priority,
            event: None,
            peer: String::new(),
        }
    }

    fn lost(lines: u64) -> Entry {
        let message = format!(
            "{lines} lines of this log were lost: it was not read in time, or could not be written"
        );
        Entry::new(message.into(), WARNING)
    }

    /// As a line of standard error.
    fn line(&self) -> String {
        format!("linkweir-gateway: {}", self.message)
    }

    /// As the journal takes it.
    fn fields(&self) -> Vec<u8> {
        let priority = self.priority.to_string();
        let mut fields = vec![("PRIORITY", priority.as_str())];
        if let Some(event) = self.event {
            fields.push(("LINKWEIR_EVENT", event.name()));
        }
        if !self.peer.is_empty() {
            fields.push(("LINKWEIR_PEER", &self.peer));
        }
        entry(&self.message, &fields)
    }
}

/// Entries that wait for the thread that writes them.
static WAITING_ENTRIES: Queue<Entry> = Queue::new(WAITING, Entry::lost);
/// Whether entries wait there. Otherwise they are written at once.
static HELD: AtomicBool = AtomicBool::new(false);
/// Whether the thread was started.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Lets entries wait from now on, also those of panics.
pub(crate) fn hold() {
    HELD.store(true, Ordering::Relaxed);
    std::panic::set_hook(Box::new(|panic| {
        let mut message = panic.to_string();
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            let _ = write!(message, "\n{backtrace}");
        }
        log(&message);
        WAITING_ENTRIES.flush(PATIENCE);
    }));
}

/// Starts the thread that writes the entries that wait. It has no capabilities.
///
/// # Errors
/// When the system starts no thread.
pub(crate) fn start() -> io::Result<()> {
    if STARTED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let mut sink = Sink::new(LineWriter::of(io::stderr())?);
    queue::start(&WAITING_ENTRIES, move |entry| sink.write(entry))
}

/// Writes a last message, if there is one, of any length, and waits a second at most until all entries are written.
pub fn finish(message: Option<&str>) {
    if message.is_none() && !HELD.load(Ordering::Relaxed) {
        return;
    }
    hold();
    if let Some(message) = message {
        let whole = message.to_string();
        WAITING_ENTRIES.push(Entry {
            message: whole,
            ..Entry::new("".into(), WARNING)
        });
    }
    if start().is_ok() {
        WAITING_ENTRIES.flush(PATIENCE);
    }
}

/// Entries that were lost, because the log was not read or could not be written.
pub(crate) fn lost_lines() -> u64 {
    WAITING_ENTRIES.lost()
}

/// Writes a message that is no event of a peer, such as the answer to a signal.
pub(crate) fn log(message: &str) {
    write(Entry::new(message.into(), WARNING));
}

/// Writes that something happened to a peer, unless it did so several times within a minute: then it is false.
pub(crate) fn tell(event: Event, peer: &str, what: &str) -> bool {
    static COUNTS: OnceLock<Mutex<Counts>> = OnceLock::new();
    let counts = COUNTS.get_or_init(Mutex::default);
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(left_out) = counts.admit(now_ns(), event, peer) else {
        return false;
    };
    let mut message = if peer.is_empty() {
        what.to_string()
    } else {
        format!("peer {peer}: {what}")
    };
    if left_out > 0 {
        let _ = write!(message, " ({left_out} more like this were left out)");
    }
    write(Entry {
        event: Some(event),
        peer: peer.to_string(),
        ..Entry::new(message.into(), event.priority())
    });
    true
}

fn write(entry: Entry) {
    if HELD.load(Ordering::Relaxed) {
        WAITING_ENTRIES.push(entry);
    } else {
        let _ = io::stderr().write_all(format!("{}\n", entry.line()).as_bytes());
    }
}

/// Where entries are written.
struct Sink {
    stderr: LineWriter,
    /// A socket to the journal, if standard error goes there.
    journal: Option<UnixDatagram>,
}

impl Sink {
    fn new(stderr: LineWriter) -> Sink {
        let journal = is_journal(&stderr.file).then(UnixDatagram::unbound);
        Sink {
            stderr,
            journal: journal.and_then(Result::ok),
        }
    }

    /// Writes an entry to the journal, and to standard error if the journal does not take it. Waits for its reader.
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let journal = self.journal.as_ref();
        // By its path, so that it is found again after a restart of the journal.
        if journal.is_some_and(|socket| socket.send_to(&entry.fields(), JOURNAL).is_ok()) {
            return Ok(());
        }
        self.stderr.write(&entry.line())
    }
}

/// Whether a file is the stream to the journal that the service manager gave this program. The variable alone does not
/// say so: programs in a desktop's terminal inherit it, too.
fn is_journal(stderr: &File) -> bool {
    is_stream(stderr, &std::env::var("JOURNAL_STREAM").unwrap_or_default())
}

/// Whether this is the file with this device and inode.
fn is_stream(file: &File, stream: &str) -> bool {
    fstat(file).is_ok_and(|file| stream == format!("{}:{}", file.st_dev, file.st_ino))
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
        // What a program prints has a budget of its own.
        let lines = 0..100;
        let admitted = lines.filter(|_| counts.admit(0, Event::ProgramSaid, "ship").is_some());
        assert_eq!(admitted.count(), 30);
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let entry = Entry::new("€".repeat(2000).into(), INFO);
        assert_eq!(entry.message, "€".repeat(1333) + " ...");
        // A pipe takes it in one piece (PIPE_BUF).
        assert!(entry.line().len() <= 4096);
        assert_eq!(Entry::new("short".into(), INFO).message, "short");
    }

    #[test]
    fn a_line_that_was_cut_off_is_ended_before_the_next() {
        const CHILD: &str = "LINKWEIR_TEST_OF_A_FULL_LOG";
        if let Ok(file) = std::env::var(CHILD) {
            crate::linux::signals::survive_writes().unwrap();
            let log = File::options().append(true).open(file).unwrap();
            let mut sink = Sink::new(LineWriter::new(log));
            let entry = |message: &str| Entry::new(message.into(), INFO);
            sink.write(&entry(&"x".repeat(1000))).unwrap();
            let error = sink.write(&entry("beyond the limit")).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(nix::libc::EFBIG));
            sink.stderr.file.set_len(1000).unwrap();
            sink.write(&entry("a")).unwrap();
            return;
        }
        let file = std::env::temp_dir().join(format!("linkweir-log-{}", std::process::id()));
        File::create(&file).unwrap();
        // This test again, in a process whose files are limited to 1024 bytes; the signal would end it.
        let done = std::process::Command::new("prlimit")
            .arg("--fsize=1024")
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "linux::journal::tests::a_line_that_was_cut_off_is_ended_before_the_next",
            ])
            .env(CHILD, &file)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(text.ends_with("x\nlinkweir-gateway: a\n"), "{text}");
    }

    #[test]
    fn standard_error_is_the_journal_only_if_it_is_that_stream() {
        let file = File::open("/dev/null").unwrap();
        let stat = fstat(&file).unwrap();
        let stream = format!("{}:{}", stat.st_dev, stat.st_ino);
        assert!(is_stream(&file, &stream));
        for other in ["", "8:1", "nonsense"] {
            assert!(!is_stream(&file, other), "{other}");
        }
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
