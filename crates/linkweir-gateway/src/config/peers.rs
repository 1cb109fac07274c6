// SPDX-License-Identifier: BSD-3-Clause
//! `[[peer]]`: the other ends of the tunnel.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use linkweir_config::reader::{Entry, Section};
use linkweir_config::units::Kind;
use linkweir_config::Fault;

use super::across::{self, Across};
use super::capacity;
use super::mode::Mode;
use super::names::{nets, socket_address, word};
use super::paths::path;
use crate::tunnel::seal::{self, Key};
use linkweir_plane::setup::Capacity;

/// Another end of the tunnel.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Name shown in statistics.
    pub name: String,
    /// Where its datagrams are sent, until it sends from elsewhere; none: it must send first.
    pub endpoint: Option<SocketAddr>,
    /// Its public key; none in cleartext mode.
    pub public_key: Option<Key>,
    /// File of a secret key that both ends share in addition.
    pub preshared_key_file: Option<PathBuf>,
    /// Longest time without a datagram to it, s.
    pub keepalive_s: Option<u16>,
    /// Addresses behind it: packets to these are sent to it, and only packets from these are accepted from it.
    pub allowed: Vec<IpNet>,
    /// Capacity of the path to it.
    pub capacity: Capacity,
    /// Whether its marks are answered with reports.
    pub report: bool,
}

/// Peers, and of each its parameters of the policy among peers and their table.
type Read<'s, 'i> = (Vec<Peer>, Vec<Vec<u64>>, Vec<Option<Section<'s, 'i>>>);

/// Reads all peers; `link` is the capacity of those that do not give their own, `across` the policy among them.
pub(super) fn read<'s, 'i>(
    sections: &mut [Section<'s, 'i>],
    mode: Mode,
    listen: SocketAddr,
    link: Option<&Capacity>,
    across: Option<&Across<'_, '_>>,
) -> Result<Read<'s, 'i>, Fault> {
    let mut peers: Vec<Peer> = Vec::new();
    let (mut rows, mut tables) = (Vec::new(), Vec::new());
    for section in sections {
        let entry = section.need("name", "\"ground\"")?;
        let name = word(&entry)?;
        if peers.iter().any(|peer| peer.name == name) {
            return Err(entry.fault("two peers have this name; rename one"));
        }
        let endpoint = match section.find("endpoint") {
            Some(entry) => Some(endpoint(&entry, listen)?),
            None => None,
        };
        let keys = Keys::read(section, mode)?;
        only_one(&peers, section, mode, endpoint, &keys)?;
        let entry = section.need("allowed_ips", "[\"10.0.0.0/8\"]")?;
        let allowed: Vec<IpNet> = nets(&entry)?.iter().map(IpNet::trunc).collect();
        for other in &peers {
            if let Some(net) = other.allowed.iter().find(|net| allowed.contains(net)) {
                return Err(entry.fault(format!(
                    "peer \"{}\" has {net} already; give it to one of them",
                    other.name
                )));
            }
        }
        let report = section.flag("report", false)?;
        let capacity = match (capacity::read(section)?, link) {
            (Some(capacity), _) => capacity,
            (None, Some(capacity)) => capacity.clone(),
            (None, None) => {
                return Err(section.fault_at(
                    "rate",
                    "is missing here and in [link]; write rate = \"20Mbit\" in one of them",
                ));
            }
        };
        if let Some(across) = across {
            across.fits(&capacity, section)?;
        }
        let (row, table) = across::of_peer(across, section)?;
        rows.push(row);
        tables.push(table);
        section.known()?;
        peers.push(Peer {
            name,
            endpoint,
            public_key: keys.public_key,
            preshared_key_file: keys.preshared_key_file,
            keepalive_s: keys.keepalive_s,
            allowed,
            capacity,
            report,
        });
    }
    Ok((peers, rows, tables))
}

/// Refuses a peer that could not be distinguished from one before: by its key, or by its endpoint in cleartext mode.
fn only_one(
    peers: &[Peer],
    section: &Section<'_, '_>,
    mode: Mode,
    endpoint: Option<SocketAddr>,
    keys: &Keys,
) -> Result<(), Fault> {
    let (key, message) = match mode {
        Mode::Wireguard => {
            let mut peers = peers.iter();
            let Some(other) = peers.find(|peer| peer.public_key == keys.public_key) else {
                return Ok(());
            };
            let message = format!(
                "is that of peer \"{}\" too; each peer needs its own",
                other.name
            );
            ("public_key", message)
        }
        Mode::Cleartext if endpoint.is_none() => {
            let message = "is missing, and in cleartext mode peers are known by it alone; write endpoint = \"192.0.2.1:51820\"";
            ("endpoint", message.to_string())
        }
        Mode::Cleartext => {
            let mut peers = peers.iter();
            let Some(other) = peers.find(|peer| peer.endpoint == endpoint) else {
                return Ok(());
            };
            let message = format!(
                "is that of peer \"{}\" too, and in cleartext mode peers are known by it alone; change one",
                other.name
            );
            ("endpoint", message)
        }
    };
    Err(section.fault_at(key, message))
}

fn endpoint(entry: &Entry<'_, '_>, listen: SocketAddr) -> Result<SocketAddr, Fault> {
    let endpoint = socket_address(entry)?;
    if endpoint.is_ipv6() == listen.is_ipv6() {
        return Ok(endpoint);
    }
    let kind = if listen.is_ipv6() { "IPv6" } else { "IPv4" };
    Err(entry.fault(format!("must be {kind}, as gateway.listen is {listen}")))
}

/// The keys of a peer in the WireGuard protocol.
struct Keys {
    public_key: Option<Key>,
    preshared_key_file: Option<PathBuf>,
    keepalive_s: Option<u16>,
}

impl Keys {
    fn read(section: &mut Section<'_, '_>, mode: Mode) -> Result<Keys, Fault> {
        let public_key = section.find("public_key");
        let preshared_key_file = section.find("preshared_key_file");
        let keepalive = section.find("keepalive");
        if mode == Mode::Cleartext {
            return match public_key.or(preshared_key_file).or(keepalive) {
                Some(entry) => Err(entry.fault("is only for mode = \"wireguard\"")),
                None => Ok(Keys {
                    public_key: None,
                    preshared_key_file: None,
                    keepalive_s: None,
                }),
            };
        }
        let Some(entry) = public_key else {
            return Err(section.fault_at(
                "public_key",
                "is missing; `linkweir-gateway keygen` prints that of a new key",
            ));
        };
        let public_key = seal::key(entry.text()?)
            .ok_or_else(|| entry.fault("must be a key: 32 bytes in base64, 44 characters"))?;
        let preshared_key_file = preshared_key_file.map(|entry| path(&entry)).transpose()?;
        let keepalive_s = match keepalive {
            Some(entry) => {
                let ns = entry.whole(Kind::Time, (1_000_000_000, 65_535_000_000_000))?;
                Some(u16::try_from(ns / 1_000_000_000).unwrap_or(u16::MAX))
            }
            None => None,
        };
        Ok(Keys {
            public_key: Some(public_key),
            preshared_key_file,
            keepalive_s,
        })
    }
}

/// First rate that the policy across peers is given, bit/s: the capacity of the fastest peer.
pub(super) fn fastest_bps(peers: &[Peer]) -> u64 {
    let capacities = peers.iter().map(|peer| peer.capacity.nominal_bps);
    capacities.max().unwrap_or_default()
}

/// Refuses endpoints that would be routed into the tunnel itself.
pub(super) fn endpoints_outside(peers: &[Peer], sections: &[Section<'_, '_>]) -> Result<(), Fault> {
    for (peer, section) in peers.iter().zip(sections) {
        let mut allowed = peers.iter().flat_map(|other| &other.allowed);
        let inside = peer
            .endpoint
            .and_then(|at| allowed.find(|net| net.contains(&at.ip())));
        if let Some(net) = inside {
            return Err(section.fault_at(
                "endpoint",
                format!(
                    "lies in {net}, which would be routed into the tunnel itself; set gateway.routes = false and route by hand"
                ),
            ));
        }
    }
    Ok(())
}
