// SPDX-License-Identifier: BSD-3-Clause
//! `linkweir-gateway`: the command line. Exit codes: 0 done, 1 failed, 2 bad input.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use ipnet::IpNet;
use linkweir_config::units::{self, Kind};
use linkweir_gateway::config::emulate::Emulation;
use linkweir_gateway::config::paths::CONTROL_FOLDER;
use linkweir_gateway::config::{self, Config, Mode};
use linkweir_gateway::linux::privileges;
use linkweir_gateway::run::emulate;
use linkweir_gateway::run::Gateway;
use linkweir_gateway::show::control::{self, Request, Response};
use linkweir_gateway::show::figures::Show;
use linkweir_gateway::show::{metrics, page};
use linkweir_gateway::tunnel::seal;
use linkweir_gateway::tunnel::seal::Identity;

/// Time between figures of `show --watch`.
const WATCH: Duration = Duration::from_secs(1);

/// A tunnel that schedules the packets it carries
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a secret key in a new file and print the public key
    Keygen {
        /// File of the secret key
        file: PathBuf,
    },
    /// Read a configuration and report what is wrong with it
    Check {
        /// Configuration file
        config: PathBuf,
    },
    /// Carry packets until stopped; SIGHUP reads the configuration again
    Up {
        /// Configuration file
        config: PathBuf,
        /// Allow mode = "cleartext": anyone on the path can read and forge packets
        #[arg(long)]
        cleartext: bool,
        /// Only report what would be set up; needs no privileges except to read the configuration and the keys
        #[arg(short = 'n', long)]
        dry_run: bool,
    },
    /// Show the queues, drops, waiting times and capacities of a running gateway
    Show {
        /// Print JSON; with --watch one object a line
        #[arg(long)]
        json: bool,
        /// Show it every second until stopped, with the rate of each class
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        gateway: Running,
    },
    /// Serve a web page with the figures of a running gateway to browsers on this host
    Page {
        /// Loopback address to serve it at
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9706")]
        listen: SocketAddr,
        #[command(flatten)]
        gateway: Running,
    },
    /// Print the figures of a running gateway for Prometheus, or serve them
    Metrics {
        /// Serve /metrics at this address, such as 127.0.0.1:9705, until stopped
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<SocketAddr>,
        #[command(flatten)]
        gateway: Running,
    },
    /// Emulate a link between two devices until stopped; exit with 1 if its rate, delay or loss was not as set
    Emulate {
        /// Configuration file of the link
        config: PathBuf,
        /// Stop after this time, such as 100s
        #[arg(long, value_parser = duration_ns)]
        duration: Option<u64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Do not ask for real-time priority
        #[arg(long)]
        normal_priority: bool,
        /// Only read the configuration and report what is wrong with it
        #[arg(long)]
        check: bool,
    },
    /// Change a running gateway
    Set {
        #[command(subcommand)]
        what: Setting,
    },
}

#[derive(Subcommand)]
enum Setting {
    /// Set the capacity of the link to a peer, until it is set again or `stale` has passed
    Capacity {
        /// Rate with its unit, such as 18Mbit; 0bit is an outage
        #[arg(value_parser = config::capacity_bps)]
        rate: u64,
        /// Name of the peer; by default all peers
        #[arg(long)]
        peer: Option<String>,
        #[command(flatten)]
        gateway: Running,
    },
}

/// Which gateway
#[derive(Args)]
struct Running {
    /// Control socket; by default the only one in /run/linkweir
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// Why a command failed, which decides its exit code.
enum Failure {
    Input(String),
    Failed(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Failed(error.to_string())
    }
}

fn main() -> ExitCode {
    let (message, code) = match execute(Arguments::parse().command) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Input(message)) => (message, 2),
        Err(Failure::Failed(message)) => (message, 1),
    };
    eprintln!("linkweir-gateway: {message}");
    ExitCode::from(code)
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Keygen { file } => {
            println!("{}", seal::show_key(&seal::generate(&file)?));
            Ok(())
        }
        Command::Check { config } => {
            let sound = load(&config)?;
            println!(
                "{}: valid; {} with {} classes towards {} peers, MTU {} bytes",
                config.display(),
                sound.scheduler.info.name,
                sound.classes.len(),
                sound.peers.len(),
                sound.mtu
            );
            Ok(())
        }
        Command::Up {
            config,
            cleartext,
            dry_run,
        } => up(&config, cleartext, dry_run),
        Command::Page { listen, gateway } => {
            page::serve(listen, &gateway.path()?).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput => Failure::Input(error.to_string()),
                _ => Failure::from(error),
            })
        }
        Command::Metrics {
            listen: Some(listen),
            gateway,
        } => Ok(metrics::serve(listen, &gateway.path()?)?),
        Command::Metrics {
            listen: None,
            gateway,
        } => {
            print!("{}", metrics::text(&gateway.show()?));
            Ok(())
        }
        Command::Emulate {
            config,
            duration,
            json,
            normal_priority,
            check,
        } => {
            let link = config::emulate::load(&config)
                .map_err(|fault| Failure::Input(fault.to_string()))?;
            if check {
                println!("{}: valid", config.display());
                return Ok(());
            }
            emulate(&link, duration, !normal_priority, json)
        }
        Command::Show {
            json,
            watch,
            gateway,
        } => show(&gateway, json, watch),
        Command::Set {
            what:
                Setting::Capacity {
                    rate,
                    peer,
                    gateway,
                },
        } => {
            let request = Request::SetCapacity {
                peer,
                capacity_bps: rate,
            };
            match gateway.ask(&request)? {
                Response::Done => Ok(()),
                other => Err(unexpected(other)),
            }
        }
    }
}

/// Runs a gateway, or reports what it would set up.
fn up(file: &Path, cleartext: bool, dry_run: bool) -> Result<(), Failure> {
    let config = load(file)?;
    if config.mode == Mode::Cleartext && !cleartext {
        let message = "mode = \"cleartext\" protects nothing: anyone on the path can read and forge packets; \
                       add --cleartext if that is what you want";
        return Err(Failure::Input(message.to_string()));
    }
    if dry_run {
        print!("{}", describe_setup(file, &config)?);
        return Ok(());
    }
    Ok(Gateway::set_up(file, config)?.run()?)
}

/// Emulates a link and prints what it did.
fn emulate(
    link: &Emulation,
    duration_ns: Option<u64>,
    realtime: bool,
    json: bool,
) -> Result<(), Failure> {
    let report = emulate::run(link, duration_ns, realtime)?;
    if json {
        println!(
            "{}",
            serde_json::to_string_pretty(&report).map_err(io::Error::from)?
        );
    } else {
        print!("{}", report.text());
    }
    if report.directions.iter().any(|way| !way.faults.is_empty()) {
        return Err(Failure::Failed(
            "the rate, delay or loss of the link was not as set; the report names the direction"
                .to_string(),
        ));
    }
    Ok(())
}

/// Prints the figures of a gateway, once or every second.
fn show(gateway: &Running, json: bool, watch: bool) -> Result<(), Failure> {
    let mut before = None;
    loop {
        let show = gateway.show()?;
        match write_show(&show, before.as_ref(), json, watch) {
            // The reader has gone, as `head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
        if !watch {
            return Ok(());
        }
        before = Some(show);
        std::thread::sleep(WATCH);
    }
}

/// Writes the figures of a gateway; `before` are those written last.
fn write_show(show: &Show, before: Option<&Show>, json: bool, watch: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match (json, watch) {
        (true, true) => writeln!(out, "{}", serde_json::to_string(show)?)?,
        (true, false) => writeln!(out, "{}", serde_json::to_string_pretty(show)?)?,
        (false, false) => write!(out, "{}", show.text())?,
        (false, true) => {
            // A terminal's screen is written over; elsewhere an empty line parts what is shown.
            let parted = match (out.is_terminal(), before) {
                (true, _) => "\x1b[H\x1b[2J",
                (false, Some(_)) => "\n",
                (false, None) => "",
            };
            write!(out, "{parted}{}", show.text_since(before))?;
        }
    }
    out.flush()
}

/// The text of `up --dry-run`.
fn describe_setup(file: &Path, config: &Config) -> Result<String, Failure> {
    let mut lines = vec![format!(
        "device {}: MTU {} bytes, {}",
        config.device,
        config.mtu,
        listed(&config.addresses, "no address")
    )];
    lines.push(match &config.private_key_file {
        Some(file) => format!(
            "listens on {} as {}",
            config.listen,
            seal::show_key(&Identity::new(seal::read_key(file)?).public())
        ),
        None => format!("listens on {} in cleartext", config.listen),
    });
    lines.push(format!("control socket {}", config.control.display()));
    lines.push(format!(
        "then becomes user {}",
        config.user.as_deref().unwrap_or(privileges::NOBODY)
    ));
    for peer in &config.peers {
        if let Some(file) = &peer.preshared_key_file {
            seal::read_key(file)?;
        }
        let inside = |net: &&IpNet| !config.addresses.iter().any(|own| own.contains(*net));
        let routed: Vec<IpNet> = peer.allowed.iter().filter(inside).copied().collect();
        lines.push(format!(
            "peer {}: {}, {} at first, {}",
            peer.name,
            peer.endpoint.map_or_else(
                || "endpoint unknown until it sends".to_string(),
                |endpoint| format!("at {endpoint}")
            ),
            units::show_whole(peer.capacity.nominal_bps, Kind::Rate),
            if config.routes {
                format!("routes: {}", listed(&routed, "none"))
            } else {
                "no routes".to_string()
            }
        ));
    }
    let text: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    Ok(format!("{}: would set up\n{text}", file.display()))
}

fn listed(nets: &[IpNet], none: &str) -> String {
    if nets.is_empty() {
        return none.to_string();
    }
    let nets: Vec<String> = nets.iter().map(IpNet::to_string).collect();
    nets.join(", ")
}

fn duration_ns(text: &str) -> Result<u64, String> {
    let (ns, _) = units::parse(text, Kind::Time)?
        .whole()
        .ok_or("must be positive")?;
    Ok(ns)
}

fn load(file: &Path) -> Result<Config, Failure> {
    config::load(file).map_err(|fault| Failure::Input(fault.to_string()))
}

fn unexpected(response: Response) -> Failure {
    match response {
        Response::Refused(why) => Failure::Failed(why),
        _ => Failure::Failed(
            "the gateway is of another version than this program; restart the gateway".to_string(),
        ),
    }
}

impl Running {
    fn path(&self) -> Result<PathBuf, Failure> {
        self.control.clone().map_or_else(only_socket, Ok)
    }

    fn show(&self) -> Result<Show, Failure> {
        match self.ask(&Request::Show)? {
            Response::Show(show) => Ok(*show),
            other => Err(unexpected(other)),
        }
    }

    fn ask(&self, request: &Request) -> Result<Response, Failure> {
        Ok(control::ask(&self.path()?, request)?)
    }
}

/// The control socket, where there is but one.
fn only_socket() -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(CONTROL_FOLDER)
        .into_iter()
        .flatten()
        .flatten();
    let mut sockets: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "sock"))
        .collect();
    sockets.sort();
    match &sockets[..] {
        [one] => Ok(one.clone()),
        [] => {
            let message = format!(
                "no gateway has a control socket in {}; start one, or name its socket with --control",
                CONTROL_FOLDER
            );
            Err(Failure::Failed(message))
        }
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            Err(Failure::Input(format!(
                "several gateways run; name the control socket of one with --control: {}",
                names.join(", ")
            )))
        }
    }
}
