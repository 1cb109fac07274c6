// SPDX-License-Identifier: BSD-3-Clause
//! The arguments of the command line, with the help that the manual page and the shells' completions are made of.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use linkweir_config::units::{self, Kind};
use linkweir_gateway::config;
use linkweir_gateway::linux::shaper::ClassId;

/// A tunnel that schedules the packets it carries
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a secret key in a new file and print the public key
    Keygen {
        /// File of the secret key
        file: PathBuf,
    },
    /// Read a configuration and report what is wrong with it
    Check {
        /// Configuration file
        config: PathBuf,
        /// Allow mode = "cleartext", as for up
        #[arg(long)]
        cleartext: bool,
    },
    /// Make a configuration and its key files of a file of wg-quick, with voice first
    Import {
        /// File of wg-quick, such as /etc/wireguard/wg0.conf; its name without the end is the device's
        file: PathBuf,
        /// Capacity of the link, a little less than it carries, such as 18Mbit
        #[arg(long, value_parser = rate)]
        rate: String,
        /// Folder for the configuration and the keys
        #[arg(long, default_value = "/etc/linkweir")]
        folder: PathBuf,
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
        /// Name of this host by which Prometheus asks, where it does not ask by an address; may be given several times
        #[arg(long, value_name = "HOST", requires = "listen")]
        name: Vec<String>,
        /// Give the figures of each peer also where there are more than 100; otherwise those of all together
        #[arg(long)]
        per_peer: bool,
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
    /// Follow a link whose capacity is unknown with the rate of an HTB class, until stopped; no tunnel, no gateway at the far end
    Rate {
        /// Device that sends to the link
        #[arg(long, value_name = "DEVICE")]
        device: String,
        /// Class of HTB whose rate is set, as tc writes it
        #[arg(long, default_value = "1:1", value_parser = ClassId::parse)]
        class: ClassId,
        /// Host behind the link that answers pings, up to 50 a second; may be given several times
        #[arg(long, value_name = "ADDRESS", required = true)]
        reflector: Vec<IpAddr>,
        /// Least rate that is set
        #[arg(long, value_name = "RATE", default_value = "64kbit", value_parser = rate_bps)]
        floor: u64,
        /// Greatest rate that is set
        #[arg(long, value_name = "RATE", default_value = "1Gbit", value_parser = rate_bps)]
        ceiling: u64,
        /// Queue in front of the link that is tolerated
        #[arg(long, value_name = "TIME", default_value = "25ms", value_parser = tolerated_ns)]
        delay: u64,
    },
    /// Change a running gateway
    Set {
        #[command(subcommand)]
        what: Setting,
    },
}

#[derive(Subcommand)]
pub(crate) enum Setting {
    /// Set the capacity of the link to a peer, until it is set again or `stale` has passed
    Capacity {
        /// Rate with its unit, such as 18Mbit; 0bit is an outage
        #[arg(value_parser = config::capacity_bps)]
        rate: u64,
        /// Name of the peer; by default all peers
        #[arg(long)]
        peer: Option<String>,
        /// Name of the path, for peers that have several
        #[arg(long)]
        path: Option<String>,
        #[command(flatten)]
        gateway: Running,
    },
}

/// Which gateway
#[derive(Args)]
pub(crate) struct Running {
    /// Control socket; by default the only one in /run/linkweir
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
}

/// A rate as it is written.
fn rate(text: &str) -> Result<String, String> {
    config::capacity_bps(text)?;
    Ok(text.to_string())
}

/// A rate above 0, bit/s.
fn rate_bps(text: &str) -> Result<u64, String> {
    const LEAST_BPS: u64 = 8000;
    match config::capacity_bps(text)? {
        bps if bps < LEAST_BPS => Err("must be 8kbit at least".to_string()),
        bps => Ok(bps),
    }
}

/// A queue that may be tolerated, as of `feedback`, ns.
fn tolerated_ns(text: &str) -> Result<u64, String> {
    match duration_ns(text)? {
        ns @ 1_000_000..=1_000_000_000 => Ok(ns),
        _ => Err("must be from 1ms to 1s".to_string()),
    }
}

fn duration_ns(text: &str) -> Result<u64, String> {
    let (ns, _) = units::parse(text, Kind::Time)?
        .whole()
        .ok_or("must be positive")?;
    Ok(ns)
}
