// SPDX-License-Identifier: BSD-3-Clause
//! The running gateway: one thread that carries packets between the device, the queues and the socket.
//!
//! It waits for the next event of any kind. It reads in batches, so that neither side starves the other, sends what may
//! leave, and sleeps until the next packet may leave.

mod answer;
mod bond;
mod candidates;
mod capacity;
pub mod described;
mod egress;
pub mod emulate;
mod flight_recorder;
mod handshake_queue;
mod handshake_work;
mod ingress;
pub mod keeper;
mod listening;
mod names;
mod network;
mod path_mtu;
mod peer_paths;
mod peer_programs;
mod peers;
mod probes;
mod programs;
pub mod rate;
mod receive;
mod recording;
mod reload;
mod reloading;
mod resolve;
pub mod resolver;
pub mod secrets;
mod send;
mod sessions;
mod silence;
mod station;
mod underlays;
mod upkeep;
mod wakes;
mod zones;

use std::io;
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net};
use linkweir_plane::below::Below;
use linkweir_plane::bytes::outbox;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::config::Config;
use crate::linux::device::Device;
use crate::linux::journal::{self, log};
use crate::linux::leads::Own;
use crate::linux::network::{last_metric, Missing, Network};
use crate::linux::paths::{self, Changes};
use crate::linux::poll::{now_ns, Poll};
use crate::linux::service::Service;
use crate::linux::tunnel_socket::TunnelSocket;
use crate::linux::{privileges, recording_files, signals};
use crate::show::control::Control;
use crate::show::figures::NetworkShow;
use crate::tunnel::seal;
use egress::Egress;
use flight_recorder::FlightRecorder;
use ingress::Ingress;
use keeper::Keeper;
use names::Names;
use peers::Peers;
use reloading::Reloading;
use secrets::Secrets;
use station::Reasons;

const DEVICE: u64 = 0;
const UNDERLAY: u64 = 1;
const SIGNALS: u64 = 2;
const CONTROL: u64 = 3;
const PATHS: u64 = 4;
const NAMES: u64 = 5;
const NETWORK: u64 = 6;
const RELOADING: u64 = 7;
/// Keys of what the programs of peers print and of their standard error, by number, and from there on those of the clients of
/// the control socket.
const COMMANDS: u64 = 1 << 16;
const ERRORS: u64 = 1 << 24;
const CLIENTS: u64 = 1 << 32;

/// A gateway that is set up.
pub struct Gateway {
    file: PathBuf,
    config: Config,
    device: Device,
    socket: TunnelSocket,
    signals: SignalFd,
    /// It ends before the keeper, which removes its socket.
    control: Control,
    keeper: Keeper,
    reloading: Reloading,
    /// What its keeper reported of the system's network.
    network: NetworkShow,
    /// Tells when addresses or routes of the system change.
    changes: Changes,
    /// The names of endpoints, where these have any.
    names: Option<Names>,
    poll: Poll,
    peers: Peers,
    ingress: Ingress,
    egress: Egress,
    /// The flight recorder, if there is one.
    recording: Option<FlightRecorder>,
    started_ns: u64,
    /// Packets dropped that no peer is responsible for, by reason.
    dropped: Reasons,
    /// Until when packets that wait may still leave, once it stops, ns.
    stop_at_ns: Option<u64>,
    /// Whether the device was up when that was last looked at.
    device_up: bool,
    /// Whether the address that it listens on was gone when that was last looked at.
    listen_gone: bool,
    /// When the device is read again after an error, ns.
    device_again_ns: Option<u64>,
}

/// The signals the gateway handles. They must be blocked before any thread begins.
fn handled_signals() -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .collect()
}

impl Gateway {
    /// Makes the device, its routes and the sockets, and gives up the privileges they needed.
    ///
    /// # Errors
    /// What could not be set up, and why.
    pub fn set_up(file: &Path, mut config: Config, secrets: Secrets) -> io::Result<Gateway> {
        journal::hold();
        signals::survive_writes()?;
        let signals = handled_signals();
        signals.thread_block()?;
        let signals =
            SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let now_ns = now_ns();
        zones::number(&mut config);
        let mut peers = Peers::new(now_ns, &config, secrets)?;
        let mut socket = TunnelSocket::bind_with(config.listen, config.offload)?;
        if let Some(mark) = config.fwmark {
            socket.mark(mark)?;
        }
        if let Some(device) = &config.listen_device {
            socket.bind_device(device)?;
        }
        let below = match config.below_bytes {
            Some(bytes) => {
                socket.limit_below(bytes)?;
                Some(Below::default())
            }
            None => None,
        };
        let names = Names::find_first(now_ns, &config)?;
        let (device, network) = create_device(&config)?;
        // From here on the keeper removes what would stay, if something else fails.
        let keeper = Keeper::start(file, &config.control, &network)
            .inspect_err(|_| drop(network.remove()))?;
        peers.own = Own {
            device: network.device,
            mark: config.fwmark,
            port: config.listen.port(),
            only: socket.device(),
        };
        socket.refuse_device(network.device);
        // The file of endpoints is next to the control socket, whose folder this makes.
        let group = config.control_group.as_deref();
        let control = Control::listen(&config.control, group, CONTROL, CLIENTS)?;
        peers.restore_endpoints(&config, &socket);
        if let Some(record) = &config.record {
            if let Err(message) =
                recording_files::make_folder(&record.folder, config.user.as_deref())
            {
                log(&message);
            }
        }
        privileges::drop_all(config.user.as_deref())?;
        journal::start()?;

        let poll = Poll::new()?;
        poll.add(&device, DEVICE)?;
        poll.add(&socket, UNDERLAY)?;
        poll.add(&signals, SIGNALS)?;
        poll.add(&control, CONTROL)?;
        let changes = Changes::new()?;
        poll.add(&changes, PATHS)?;
        poll.add(&keeper, NETWORK)?;
        let reloading = Reloading::new(file.to_path_buf(), keeper.requests()?)?;
        poll.add(&reloading, RELOADING)?;
        if let Some(readable) = names.as_ref().and_then(Names::readable) {
            poll.add(readable, NAMES)?;
        }
        peers.want_sessions(now_ns);
        let mut gateway = Gateway {
            file: file.to_path_buf(),
            ingress: Ingress::new(&config.rules, &config.classes, &device),
            egress: Egress::new(below, config.mtu),
            config,
            device,
            socket,
            signals,
            keeper,
            reloading,
            network: NetworkShow::new(),
            control,
            changes,
            names,
            poll,
            peers,
            recording: None,
            started_ns: now_ns,
            dropped: Reasons::new(),
            stop_at_ns: None,
            device_up: true,
            listen_gone: false,
            device_again_ns: None,
        };
        gateway.find_names(now_ns);
        gateway.start_recording(now_ns);
        gateway.warn();
        Ok(gateway)
    }

    /// Logs what does not do what it seems to at the configured rates.
    fn warn(&self) {
        for warning in self.config.warnings() {
            log(&format!("warning: {warning}"));
        }
    }

    /// Carries packets until a signal stops it.
    ///
    /// # Errors
    /// Why it cannot continue, such as the removal of its device.
    pub fn run(mut self) -> io::Result<()> {
        let mut happened = Vec::new();
        let mut alarm_ns = Some(0);
        let mut service = Service::ready(now_ns())?;
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
                self.peers.tick(&self.config.peers);
                self.peers.tick_at_ns = now_ns + seal::TICK_NS;
            }
            self.shake_hands(now_ns);
            self.retry_device(now_ns);
            self.ask_names(now_ns);
            let times = [
                self.serve(now_ns),
                self.control.tidy(now_ns, &self.poll),
                self.release_clients(now_ns),
                self.note_slow_reload(now_ns),
                service.alive(now_ns),
                self.write_recording(now_ns, false),
                self.stop_at_ns,
                self.device_again_ns,
                self.names.as_ref().map(|names| names.again_ns),
            ];
            alarm_ns = times.into_iter().flatten().min();
            if self.is_drained(now_ns) {
                service.stopping();
                self.write_recording(now_ns, true);
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
            CONTROL => self.control.accept(now_ns, &self.poll),
            NAMES => self.take_names(now_ns),
            NETWORK => self.take_network(),
            RELOADING => self.continue_reload(now_ns),
            PATHS => {
                let was_down = self
                    .device
                    .index()
                    .is_ok_and(|device| self.changes.take(device));
                self.check_device(was_down);
                self.socket.find_device();
                self.peers.renumber_zones(&mut self.config);
                self.check_listen(now_ns);
                self.peers.doubt_paths(now_ns, self.socket.device());
            }
            key if key >= CLIENTS => self.answer(now_ns, key),
            key if key >= ERRORS => self.read_errors(now_ns, peer_programs::at_place(key - ERRORS)),
            key => self.read_command(now_ns, peer_programs::at_place(key - COMMANDS)),
        }
        Ok(())
    }

    /// Begins to reload the configuration, or to stop: a second signal stops at once.
    fn handle_signals(&mut self, now_ns: u64) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo == Signal::SIGHUP as u32 {
                self.reloading.want(now_ns);
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

/// Makes the device, with addresses, and with routes to what is behind peers.
fn create_device(config: &Config) -> io::Result<(Device, Network)> {
    let device = Device::create(
        &config.device,
        config.mtu,
        super_packet_bytes(config),
        config.offload,
    )?;
    let network = Network {
        device: device.index()?,
        mtu: config.mtu,
        mark: config.fwmark,
        refuses: config.refuses_leaks,
        last_metric: last_metric(&config.device),
        addresses: config.addresses.clone(),
        nets: keeper::routes(config),
    };
    // Before there are rules, since with another gateway's mark they would be its own, and be removed with this one.
    let refused = |missing: &&Missing| {
        missing.shares_table() || config.refuses_leaks && missing.is_conflict()
    };
    if let Some(conflict) = network.conflicts()?.iter().find(refused) {
        return Err(io::Error::other(conflict.to_string()));
    }
    let set_up = network.restore().and_then(|outcome| {
        let failed = |missing: &&Missing| matches!(missing, Missing::Failed(_));
        match outcome.missing.iter().find(failed) {
            Some(missing) => Err(io::Error::other(missing.to_string())),
            None => Ok(()),
        }
    });
    if let Err(error) = set_up {
        let _ = network.remove();
        return Err(error);
    }
    warn_of_strict_paths(config, &network);
    Ok((device, network))
}

/// Says which devices drop what peers send.
fn warn_of_strict_paths(config: &Config, network: &Network) {
    let mut strict = paths::with_strict_reverse_paths();
    strict.retain(|name| *name != config.device);
    let all = IpNet::from(Ipv4Net::default());
    if network.nets.contains(&all) && !strict.is_empty() {
        log(&format!(
            "net.ipv4.conf.{}.rp_filter is 1: the system drops what peers send, as it would send elsewhere by itself; set it to 2",
            strict.join(".rp_filter and net.ipv4.conf.")
        ));
    }
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
