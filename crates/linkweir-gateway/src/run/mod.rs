// SPDX-License-Identifier: BSD-3-Clause
//! The running gateway: one thread that carries packets between the device, the queues and the socket.
//!
//! It waits for the next event of any kind. It reads in batches, so that neither side starves the other, sends what may
//! leave, and sleeps until the next packet may leave.

mod answer;
mod capacity;
mod egress;
pub mod emulate;
mod ingress;
mod peers;
mod receive;
mod reload;
mod send;
mod sessions;
mod station;

use std::io;
use std::path::{Path, PathBuf};

use linkweir_plane::below::Below;
use linkweir_plane::bytes::outbox;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::config::Config;
use crate::linux::device::Device;
use crate::linux::poll::{now_ns, Poll};
use crate::linux::service::Service;
use crate::linux::underlay::Underlay;
use crate::linux::{privileges, tun};
use crate::show::control::Control;
use crate::tunnel::seal;
use egress::Egress;
use ingress::Ingress;
use peers::Peers;
use station::Reasons;

const DEVICE: u64 = 0;
const UNDERLAY: u64 = 1;
const SIGNALS: u64 = 2;
const CONTROL: u64 = 3;
/// Keys of the programs of peers, by number, and from there on those of the clients of the control socket.
const COMMANDS: u64 = 1 << 16;
const CLIENTS: u64 = 1 << 32;

/// A gateway that is set up.
pub struct Gateway {
    file: PathBuf,
    config: Config,
    device: Device,
    underlay: Underlay,
    signals: SignalFd,
    control: Control,
    poll: Poll,
    peers: Peers,
    ingress: Ingress,
    egress: Egress,
    started_ns: u64,
    /// Packets dropped that no peer is responsible for, by reason.
    dropped: Reasons,
    /// Until when packets that wait may still leave, once it stops, ns.
    stop_at_ns: Option<u64>,
}

/// The signals the gateway handles. They must be blocked before any thread begins.
fn handled_signals() -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .collect()
}

/// Writes a line to standard error, where a service manager keeps it.
fn log(message: &str) {
    eprintln!("linkweir-gateway: {message}");
}

impl Gateway {
    /// Makes the device, its routes and the sockets, and gives up the privileges they needed.
    ///
    /// # Errors
    /// What could not be set up, and why.
    pub fn set_up(file: &Path, config: Config) -> io::Result<Gateway> {
        let signals = handled_signals();
        signals.thread_block()?;
        let signals =
            SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let now_ns = now_ns();
        let mut peers = Peers::new(now_ns, &config)?;
        let mut underlay = Underlay::bind_with(config.listen, config.offload)?;
        let below = match config.below_bytes {
            Some(bytes) => {
                underlay.limit_below(bytes)?;
                Some(Below::default())
            }
            None => None,
        };
        let device = create_device(&config)?;
        // The file of endpoints is next to the control socket, whose folder this makes.
        let control = Control::listen(&config.control, CLIENTS)?;
        peers.restore_endpoints(&config);
        privileges::drop_all(config.user.as_deref())?;

        let poll = Poll::new()?;
        poll.add(&device, DEVICE)?;
        poll.add(&underlay, UNDERLAY)?;
        poll.add(&signals, SIGNALS)?;
        poll.add(&control, CONTROL)?;
        for at in 0..peers.stations.len() {
            peers.start_handshake(at, &mut underlay);
        }
        Ok(Gateway {
            file: file.to_path_buf(),
            ingress: Ingress::new(config.rules.clone(), &device),
            egress: Egress::new(below),
            config,
            device,
            underlay,
            signals,
            control,
            poll,
            peers,
            started_ns: now_ns,
            dropped: Reasons::new(),
            stop_at_ns: None,
        })
    }

    /// Carries packets until a signal stops it.
    ///
    /// # Errors
    /// Why it cannot continue, such as the removal of its device.
    pub fn run(mut self) -> io::Result<()> {
        let mut happened = Vec::new();
        let mut alarm_ns = Some(0);
        let mut service = Service::ready(now_ns());
        loop {
            self.poll.wait(alarm_ns, &mut happened)?;
            let mut now_ns = now_ns();
            for key in &happened {
                self.handle(now_ns, *key)?;
            }
            if !happened.is_empty() {
                now_ns = self::now_ns();
            }
            self.start_commands(now_ns);
            if self.peers.identity.is_some() && self.peers.tick_at_ns <= now_ns {
                self.peers.tick(&self.config.peers, &mut self.underlay);
                self.peers.tick_at_ns = now_ns + seal::TICK_NS;
            }
            let times = [self.serve(now_ns), service.alive(now_ns), self.stop_at_ns];
            alarm_ns = times.into_iter().flatten().min();
            if self.is_drained(now_ns) {
                service.stopping();
                log(&format!(
                    "stopped; {} packets waited and were dropped",
                    self.peers.waiting_pkts()
                ));
                return Ok(());
            }
        }
    }

    /// Handles an event of the poll.
    fn handle(&mut self, now_ns: u64, key: u64) -> io::Result<()> {
        match key {
            DEVICE => self.read_device(now_ns)?,
            UNDERLAY => self.read_underlay(),
            SIGNALS => self.handle_signals(now_ns),
            CONTROL => self.control.accept(&self.poll),
            key if key >= CLIENTS => self.answer(now_ns, key),
            key => self.read_command(now_ns, (key - COMMANDS) as usize),
        }
        Ok(())
    }

    /// Reloads the configuration, or begins to stop: a second signal stops at once.
    fn handle_signals(&mut self, now_ns: u64) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo == Signal::SIGHUP as u32 {
                match self.reload(now_ns) {
                    Ok(refused) => {
                        log(&format!("reloaded {}", self.file.display()));
                        refused.iter().for_each(|message| log(message));
                    }
                    Err(message) => log(&format!("nothing changed: {message}")),
                }
            } else if self.stop_at_ns.is_none() {
                self.stop_at_ns = Some(now_ns + self.config.drain_ns);
                // Packets that come from now on stay in the device.
                let _ = self.poll.remove(&self.device);
            } else {
                self.stop_at_ns = Some(now_ns);
            }
        }
    }

    /// Whether the gateway is to stop and nothing waits, or what waits has had its time.
    fn is_drained(&self, now_ns: u64) -> bool {
        self.stop_at_ns.is_some_and(|stop_at_ns| {
            let nothing_waits = self.peers.waiting_pkts() == 0 && self.egress.outbox.is_empty();
            stop_at_ns <= now_ns || nothing_waits
        })
    }
}

/// Makes the device, with routes of what is behind peers.
fn create_device(config: &Config) -> io::Result<Device> {
    let device = Device::create(
        &config.device,
        config.mtu,
        &config.addresses,
        super_packet_bytes(config),
        config.offload,
    )?;
    if config.routes {
        let index = device.index()?;
        for net in config.peers.iter().flat_map(|peer| &peer.allowed) {
            // The system routes the networks of the device's own addresses by itself.
            if !config.addresses.iter().any(|own| own.contains(net)) {
                tun::add_route(index, net)?;
            }
        }
    }
    Ok(device)
}

/// Largest super-packet of the device, so that what it is cut into leaves in one system call.
fn super_packet_bytes(config: &Config) -> u32 {
    /// Least size of TCP's headers with timestamps, and what Linux subtracts for its own.
    const TCP_BYTES: u32 = 52;
    const LINUX_BYTES: u32 = 330;
    let datagram_bytes = config.mtu + config.mode.overhead_bytes();
    let datagrams = outbox::MOST_BYTES as u32 / datagram_bytes;
    datagrams * (config.mtu - TCP_BYTES) + LINUX_BYTES
}
