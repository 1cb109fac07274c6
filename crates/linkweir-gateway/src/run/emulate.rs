// SPDX-License-Identifier: BSD-3-Clause
//! Emulates a link in user space: two TUN devices, often in two network namespaces, and a [`Conveyor`] each way. It
//! measures itself, and reports where rate, delay or loss was not as set.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use linkweir_config::values;
use nix::sched::{setns, CloneFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::Serialize;
use tun_rs::SyncDevice;

use crate::config::emulate::{Emulation, End};
use crate::linux::poll::{now_ns, Poll};
use crate::linux::priority;
use crate::linux::tun;
use linkweir_plane::conveyor::{Conveyor, Tally};
use linkweir_plane::setup::Direction;

/// Packets read from one device before the other has its turn.
const BATCH: usize = 64;
const PACKET_BYTES: usize = 65_536;
const SIGNALS: u64 = 2;
/// The namespace of the calling thread.
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Settings and results of one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionReport {
    /// `a_to_b` or `b_to_a`.
    pub direction: &'static str,
    /// Packets that arrived.
    pub arrived_pkts: u64,
    /// Packets for which the queue had no room.
    pub dropped_limit_pkts: u64,
    /// Packets lost on the way.
    pub lost_pkts: u64,
    /// Packets that waited or travelled at the end.
    pub left_pkts: u64,
    /// Packets delivered.
    pub delivered_pkts: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets the kernel dropped because the emulator read them too late.
    pub missed_pkts: u64,
    /// Rate over the configured one, while packets waited; none when none did.
    pub rate_kept: Option<f64>,
    /// Mean configured delay, jitter included, ns.
    pub delay_ns: u64,
    /// One of 100 packets was later than this, ns.
    pub late_p99_ns: u64,
    /// Greatest lateness, ns.
    pub late_max_ns: u64,
    /// Settings that were not kept, a sentence each.
    pub faults: Vec<String>,
}

/// The report of an emulated link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// When it began, on the monotonic clock, ns. Capacities, delays and losses over time count from then.
    pub began_ns: u64,
    /// Duration of the run, s.
    pub duration_s: f64,
    /// Whether it had real-time priority.
    pub realtime: bool,
    /// From a to b, and back.
    pub directions: [DirectionReport; 2],
}

/// A link that is set up.
pub struct Emulator {
    devices: [SyncDevice; 2],
    ends: [End; 2],
    conveyors: [Conveyor; 2],
    signals: SignalFd,
    poll: Poll,
    started_ns: u64,
}

/// Runs `job` in another namespace.
fn inside<T>(netns: Option<&Path>, job: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(path) = netns else { return job() };
    let own = File::open(OWN_NAMESPACE)?;
    let other = File::open(path)
        .and_then(|other| Ok(setns(other, CloneFlags::CLONE_NEWNET)?))
        .map_err(|error| {
            let message = format!("cannot enter {}: {error}; run as root", path.display());
            io::Error::new(error.kind(), message)
        });
    other?;
    let done = job();
    setns(own, CloneFlags::CLONE_NEWNET)?;
    done
}

/// Packets that a device of this namespace dropped because its queue was full.
fn missed_pkts(device: &str) -> io::Result<u64> {
    let table = fs::read_to_string("/proc/thread-self/net/dev")?;
    let row = table
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'));
    // Eight columns of what it received, then bytes, packets, errors and drops of what it sent.
    let drops = row.and_then(|row| row.split_whitespace().nth(11)?.parse().ok());
    Ok(drops.unwrap_or(0))
}

impl Emulator {
    /// Makes both devices.
    ///
    /// # Errors
    /// What could not be set up, and why.
    pub fn set_up(emulation: &Emulation) -> io::Result<Emulator> {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        signals.thread_block()?;
        let signals =
            SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let make = |end: &End| {
            inside(end.netns.as_deref(), || {
                tun::create(&end.device, emulation.mtu, &end.addresses)
            })
        };
        let devices = [make(&emulation.ends[0])?, make(&emulation.ends[1])?];
        let poll = Poll::new()?;
        poll.add(&devices[0], 0)?;
        poll.add(&devices[1], 1)?;
        poll.add(&signals, SIGNALS)?;
        let started_ns = now_ns();
        let conveyor = |at: usize| {
            Conveyor::new(
                &emulation.directions[at],
                started_ns,
                emulation.seed.wrapping_mul(2) + at as u64,
            )
        };
        Ok(Emulator {
            devices,
            ends: emulation.ends.clone(),
            conveyors: [conveyor(0), conveyor(1)],
            signals,
            poll,
            started_ns,
        })
    }

    /// Carries packets for `duration_ns`, or until a signal stops it; returns what it did.
    ///
    /// # Errors
    /// Why it cannot continue, such as the removal of a device.
    pub fn run(mut self, duration_ns: Option<u64>) -> io::Result<[(Tally, u64); 2]> {
        let stop_ns = duration_ns.map(|ns| self.started_ns.saturating_add(ns));
        let mut buffer = vec![0; PACKET_BYTES];
        let mut happened = Vec::new();
        loop {
            let next_ns = self
                .conveyors
                .iter()
                .filter_map(Conveyor::next_ns)
                .chain(stop_ns)
                .min();
            self.poll.wait(next_ns, &mut happened)?;
            if happened.contains(&SIGNALS) && matches!(self.signals.read_signal(), Ok(Some(_))) {
                break;
            }
            for from in 0..2 {
                if happened.contains(&(from as u64)) {
                    self.read(from, &mut buffer)?;
                }
                let to = &self.devices[1 - from];
                // A device that is down loses packets, as a cable would.
                self.conveyors[from].deliver(now_ns, |packet| drop(to.send(packet)));
            }
            if stop_ns.is_some_and(|stop_ns| stop_ns <= now_ns()) {
                break;
            }
        }
        let missed = [0, 1].map(|at: usize| {
            let End { device, netns, .. } = &self.ends[at];
            inside(netns.as_deref(), || missed_pkts(device))
        });
        let [a_to_b, b_to_a] = self.conveyors;
        let [from_a, from_b] = missed;
        Ok([(a_to_b.tally, from_a?), (b_to_a.tally, from_b?)])
    }

    fn read(&mut self, from: usize, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            match self.devices[from].recv(buffer) {
                Ok(bytes) => self.conveyors[from].arrive(now_ns(), &buffer[..bytes]),
                Err(error) => match error.raw_os_error() {
                    Some(nix::libc::EIO | nix::libc::EAGAIN | nix::libc::EINTR) => return Ok(()),
                    _ => {
                        let message =
                            format!("the device {} has gone: {error}", self.ends[from].device);
                        return Err(io::Error::new(error.kind(), message));
                    }
                },
            }
        }
        Ok(())
    }
}

impl DirectionReport {
    /// Compares what a direction did with its configuration.
    #[must_use]
    pub fn new(
        name: &'static str,
        asked: &Direction,
        tally: &Tally,
        missed_pkts: u64,
    ) -> DirectionReport {
        let (asked_ns, took_ns) = tally.between_ns;
        let rate_kept = (took_ns > 0).then(|| asked_ns as f64 / took_ns as f64);
        let delay_ns = tally
            .delays_ns
            .checked_div(u128::from(tally.delivered_pkts))
            .unwrap_or(0) as u64;
        let late_p99_ns = tally.late_ns.value_at_quantile(0.99);
        let mut faults = Vec::new();
        // Over less than a second the lateness of single packets hides the rate.
        if let Some(kept) = rate_kept.filter(|_| asked_ns > 1_000_000_000) {
            if (kept - 1.0).abs() > 0.01 {
                faults.push(format!("rate: {:.1} % of the configured one", kept * 100.0));
            }
        }
        let allowed_ns = 1_000_000 + delay_ns / 100;
        if late_p99_ns > allowed_ns {
            faults.push(format!(
                "delay: one of 100 packets was more than {} us late; 1 ms and 1 % are allowed",
                late_p99_ns / 1000
            ));
        }
        let (expected, variance) = tally.expected_losses;
        let deviation = tally.lost_pkts as f64 - expected;
        // Five standard deviations and one packet.
        if deviation.abs() > 5.0 * variance.sqrt() + 1.0 {
            faults.push(format!(
                "loss: {} packets instead of {expected:.0}",
                tally.lost_pkts
            ));
        }
        if missed_pkts > 0 {
            faults.push(format!("{missed_pkts} packets were lost in front of the emulator, which read them too late"));
        }
        if values::greatest(&asked.loss) == 0.0 && tally.lost_pkts > 0 {
            faults.push("loss: none was configured".to_string());
        }
        let gone = tally.dropped_pkts + tally.lost_pkts + tally.delivered_pkts;
        DirectionReport {
            direction: name,
            arrived_pkts: tally.arrived_pkts,
            dropped_limit_pkts: tally.dropped_pkts,
            lost_pkts: tally.lost_pkts,
            left_pkts: tally.arrived_pkts - gone,
            delivered_pkts: tally.delivered_pkts,
            delivered_bytes: tally.delivered_bytes,
            missed_pkts,
            rate_kept,
            delay_ns,
            late_p99_ns,
            late_max_ns: tally.late_ns.max(),
            faults,
        }
    }
}

/// Emulates a link for `duration_ns` or until a signal stops it, with real-time priority if that is wanted and allowed.
///
/// # Errors
/// What could not be set up, or why it cannot continue.
pub fn run(emulation: &Emulation, duration_ns: Option<u64>, realtime: bool) -> io::Result<Report> {
    let realtime = realtime && priority::raise();
    let emulator = Emulator::set_up(emulation)?;
    let began_ns = emulator.started_ns;
    let [(there, from_a), (back, from_b)] = emulator.run(duration_ns)?;
    let duration_s = (now_ns() - began_ns) as f64 * 1e-9;
    let [a_to_b, b_to_a] = &emulation.directions;
    Ok(Report {
        began_ns,
        duration_s,
        realtime,
        directions: [
            DirectionReport::new("a_to_b", a_to_b, &there, from_a),
            DirectionReport::new("b_to_a", b_to_a, &back, from_b),
        ],
    })
}

impl Report {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let priority = if self.realtime { "real-time" } else { "normal" };
        let mut text = format!("ran {:.1} s with {priority} priority\n", self.duration_s);
        for way in &self.directions {
            let rate = way.rate_kept.map_or_else(
                || "no queue".to_string(),
                |kept| format!("{:.2} %", kept * 100.0),
            );
            text.push_str(&format!(
                "{}: {} packets arrived, {} delivered, {} dropped by the limit, {} lost; rate kept {rate}; \
                 delay {} us, late p99 {} us, max {} us\n",
                way.direction,
                way.arrived_pkts,
                way.delivered_pkts,
                way.dropped_limit_pkts,
                way.lost_pkts,
                way.delay_ns / 1000,
                way.late_p99_ns / 1000,
                way.late_max_ns / 1000,
            ));
            for fault in &way.faults {
                text.push_str(&format!("  not as set: {fault}\n"));
            }
        }
        text
    }
}
