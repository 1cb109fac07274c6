// SPDX-License-Identifier: BSD-3-Clause
//! Sets the rate of an HTB class so that packets wait in it, and not in front of a link whose capacity is unknown.
//!
//! ```text
//!   HTB class ── device ── the link's own queue ── link ── reflector
//!      ▲  its rate             pings and their answers        │
//!      └─────────────────── the rule of `feedback` ◀──────────┘
//! ```
//!
//! The decisions are those of [`Echoes`]. Here are the sockets, the class and what is printed. Probes pass the class, as a
//! gateway's marks pass its classes: they are to wait in the link's queue, not in the one above it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use linkweir_config::units::{self, Kind};
use linkweir_plane::echoes::Echoes;
use linkweir_plane::feedback::{Sent, Steer};
use linkweir_plane::setup::Bounds;
use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::linux::echo::Echo;
use crate::linux::poll::{now_ns, Poll};
use crate::linux::queue::{self, LineWriter, Queue};
use crate::linux::shaper::{ClassId, Shaper};
use crate::linux::{privileges, signals};

const SIGNALS: u64 = 0;
const ECHOES: u64 = 1;
/// Longest time between two looks at what the class has sent, ns.
const LOOK_NS: u64 = 100_000_000;
/// Time between two looks for a device or a class that is gone, and between two lines of output, ns.
const SECOND_NS: u64 = 1_000_000_000;
/// How long no reflector need answer at first before that is written, ns.
const FIRST_NS: u64 = 3 * SECOND_NS;
/// Most lines that wait to be written, and how long the end waits for them.
const WAITING: usize = 64;
const PATIENCE: Duration = Duration::from_secs(1);
/// The part by which the rate must have changed to be written.
const SHOWN: u64 = 20;

/// What `linkweir-gateway rate` is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The device that sends to the link.
    pub device: String,
    /// The class whose rate is set.
    pub class: ClassId,
    /// Hosts that answer pings.
    pub reflectors: Vec<IpAddr>,
    /// Least rate, bit/s.
    pub floor_bps: u64,
    /// Greatest rate, bit/s.
    pub ceiling_bps: u64,
    /// How long a queue in front of the link may be, ns.
    pub delay_ns: u64,
}

/// What is the case, for the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// No reflector has answered yet.
    Waiting,
    /// Pings are answered by this reflector.
    Answered(usize),
    /// None is answered, and little or nothing arrives.
    Outage,
    /// None is answered although packets arrive.
    Blind,
    /// The device or the class is gone.
    Gone,
}

struct Follower<'s> {
    settings: &'s Settings,
    shaper: Shaper,
    echoes: Echoes,
    echo: Echo,
    /// What is to be set, if the kernel has not taken it yet.
    steer: Steer,
    begun_ns: u64,
    /// When to look again for what is gone, ns.
    gone_until_ns: Option<u64>,
    /// The last line: when, ns, what was the case, and the rate, bit/s.
    shown: Option<(u64, Status, u64)>,
    /// Lines for standard output.
    lines: Arc<Queue<String>>,
}

/// Follows the link until a signal ends that; the class has its earlier rate then.
///
/// # Errors
/// `NotFound` if there is no such device or class, `PermissionDenied` if the class or the sockets may not be used, both with
/// the cure; and those of the system.
pub fn run(settings: &Settings) -> io::Result<()> {
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .collect();
    signals.thread_block()?;
    signals::survive_writes()?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let mut shaper = find(settings)?;
    let echo = Echo::open(
        &settings.reflectors,
        &settings.device,
        settings.class.direct(),
    )?;
    let mut poll = Poll::new()?;
    poll.add(&signals, SIGNALS)?;
    for socket in echo.sockets() {
        poll.add(socket, ECHOES)?;
    }
    let bounds = Bounds {
        floor_bps: settings.floor_bps,
        ceiling_bps: settings.ceiling_bps,
        delay_ns: settings.delay_ns,
        anticipate: false,
    };
    let begin_bps = shaper
        .rate_bps()
        .clamp(settings.floor_bps, settings.ceiling_bps);
    shaper
        .set(begin_bps, begin_bps)
        .map_err(|error| refused(settings, begin_bps, &error))?;
    privileges::keep_for_devices()?;
    let lines = Arc::new(Queue::new(WAITING, |lost| format!("{lost} lines lost")));
    let mut output = LineWriter::of(io::stdout())?;
    queue::start(lines.clone(), move |line| output.write(line))?;
    let mut follower = Follower {
        settings,
        shaper,
        echoes: Echoes::new(bounds, begin_bps, settings.reflectors.len()),
        echo,
        steer: Steer {
            pace_bps: begin_bps,
            capacity_bps: begin_bps,
            reported: false,
        },
        begun_ns: now_ns(),
        gone_until_ns: None,
        shown: None,
        lines,
    };
    let followed = follower.follow_until(&mut poll, &signals);
    let restored = follower.shaper.restore();
    follower.lines.flush(PATIENCE);
    match restored {
        Err(error) if !is_gone(&error) => followed.and(Err(error)),
        _ => followed,
    }
}

fn find(settings: &Settings) -> io::Result<Shaper> {
    let is_ours = |kind: &str| linkweir_core::policy(kind).is_some();
    Shaper::find(&settings.device, settings.class, is_ours)
}

/// The kernel's refusal of a rate, with what can be done about it.
fn refused(settings: &Settings, rate_bps: u64, error: &io::Error) -> io::Error {
    let Settings { device, class, .. } = settings;
    let cure = if error.kind() == io::ErrorKind::PermissionDenied {
        "run as root or with CAP_NET_ADMIN and CAP_NET_RAW"
    } else {
        "keep the rate within what the class takes, with --floor and --ceiling"
    };
    let rate = shown(rate_bps);
    let message = format!("cannot set class {class} of {device} to {rate}: {error}; {cure}");
    io::Error::new(error.kind(), message)
}

fn shown(rate_bps: u64) -> String {
    units::show_whole(rate_bps / 1000 * 1000, Kind::Rate)
}

/// Whether an error says that the device or the class does not exist any more.
fn is_gone(error: &io::Error) -> bool {
    let codes = [libc::ENODEV, libc::ENOENT, libc::EINVAL, libc::EOPNOTSUPP];
    error.kind() == io::ErrorKind::NotFound
        || error
            .raw_os_error()
            .is_some_and(|code| codes.contains(&code))
}

impl Follower<'_> {
    /// Follows the link until a signal comes or something cannot be done.
    fn follow_until(&mut self, poll: &mut Poll, signals: &SignalFd) -> io::Result<()> {
        let mut happened = Vec::new();
        let mut sent = Sent::default();
        loop {
            poll.wait(Some(self.alarm_ns(sent)), &mut happened)?;
            if happened.contains(&SIGNALS) && matches!(signals.read_signal(), Ok(Some(_))) {
                return Ok(());
            }
            self.look(&mut sent)?;
            self.show();
        }
    }

    /// When something is due, ns.
    fn alarm_ns(&self, sent: Sent) -> u64 {
        match self.gone_until_ns {
            Some(ns) => ns,
            None => self.echoes.due_ns(sent.pkts).min(now_ns() + LOOK_NS),
        }
    }

    /// Does all that is due.
    fn look(&mut self, sent: &mut Sent) -> io::Result<()> {
        if self.gone_until_ns.is_some_and(|ns| ns > now_ns()) {
            while self.echo.receive().is_some() {}
            return Ok(());
        }
        match self.follow(sent) {
            Ok(()) => {
                self.gone_until_ns = None;
                Ok(())
            }
            Err(error) if is_gone(&error) => {
                self.gone_until_ns = Some(now_ns() + SECOND_NS);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn follow(&mut self, sent: &mut Sent) -> io::Result<()> {
        if self.gone_until_ns.is_some() {
            self.shaper = find(self.settings)?;
            self.echo.bind(&self.settings.device)?;
        }
        let (pkts, bytes) = self.shaper.sent()?;
        *sent = Sent {
            pkts,
            bytes,
            shared_bytes: None,
        };
        let now = now_ns();
        while let Some((at, sent_ns)) = self.echo.receive() {
            let steer = self.echoes.answered(now, at, sent_ns, *sent);
            self.steer = steer.unwrap_or(self.steer);
        }
        let received_pkts = if self.echoes.is_silent() {
            self.shaper.received_pkts()
        } else {
            0
        };
        let steer = self.echoes.turn(now, *sent, received_pkts);
        self.steer = steer.unwrap_or(self.steer);
        for at in self
            .echoes
            .probe(now, *sent, self.echo.wire_bytes(self.echoes.reflector()))
        {
            self.echo.send(at, now);
        }
        let Steer {
            pace_bps,
            capacity_bps,
            ..
        } = self.steer;
        self.shaper.set(pace_bps, capacity_bps).map_err(|error| {
            if error.raw_os_error() != Some(libc::EINVAL) {
                return error;
            }
            // Without the system's code, so that `is_gone` does not take this for a class that is gone.
            refused(self.settings, pace_bps, &error)
        })
    }

    fn status(&self) -> Status {
        match self.echoes.reflector() {
            _ if self.gone_until_ns.is_some() => Status::Gone,
            _ if self.echoes.is_blind() => Status::Blind,
            None => Status::Waiting,
            Some(_) if self.echoes.is_silent() => Status::Outage,
            Some(at) => Status::Answered(at),
        }
    }

    /// Writes a line if something has changed, at most one a second.
    fn show(&mut self) {
        let now = now_ns();
        let status = self.status();
        let Steer {
            pace_bps,
            capacity_bps,
            ..
        } = self.steer;
        let unchanged = |was_bps: u64| was_bps.abs_diff(capacity_bps) <= was_bps / SHOWN;
        let waits = status == Status::Waiting && now < self.begun_ns + FIRST_NS;
        let keeps = self.shown.is_some_and(|(at_ns, was, was_bps)| {
            now < at_ns + SECOND_NS || (was == status && unchanged(was_bps))
        });
        if waits || keeps {
            return;
        }
        self.shown = Some((now, status, capacity_bps));
        let Settings { device, class, .. } = self.settings;
        let ms = |ns: u64| format!("{:.1} ms", ns as f64 * 1e-6);
        let known = self.echoes.known();
        let leaf = self.shaper.leaf();
        let reported = leaf.map(|kind| format!(", reported to {kind}"));
        let what = match status {
            Status::Waiting => format!(
                "no reflector answers; the rate stays {}. Do they answer ping through {device}?",
                shown(pace_bps)
            ),
            Status::Answered(at) => format!(
                "capacity {}{}, queue {}, round trip {} to {}",
                shown(capacity_bps),
                reported.unwrap_or_default(),
                ms(known.queue_ns),
                ms(self.echoes.rtt_ns()),
                self.settings.reflectors[at]
            ),
            Status::Outage => format!(
                "no reflector answers: the link seems interrupted; rate {} until one does, then {}",
                shown(pace_bps),
                shown(capacity_bps)
            ),
            Status::Blind => format!(
                "no reflector answers, but packets arrive; the rate stays {} until one does",
                shown(pace_bps)
            ),
            Status::Gone => "it is gone; looking for it once a second".to_string(),
        };
        // The class needs its rate, whoever reads this.
        self.lines.push(format!("{device} {class}: {what}"));
    }
}
