// SPDX-License-Identifier: BSD-3-Clause
//! `[[peer]]`: the other ends of the tunnel.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ipnet::IpNet;
use linkweir_config::across::OfUser;
use linkweir_config::keys::gateway::{
    ACROSS, ALLOWED_IPS, ENDPOINT, KEEPALIVE, PATHS, PEER_NAME, PRESHARED_KEY_FILE, PROBE_MTU,
    PUBLIC_KEY, RATE, REPORT, UNDERLAYS,
};
use linkweir_config::keys::Form;
use linkweir_config::matching::nets;
use linkweir_config::parameters::Nominal;
use linkweir_config::reader::Section;
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use super::across::{self, Across};
use super::capacity;
use super::keys::KeyFile;
use super::mode::Mode;
use super::names::{endpoint, host_name, word, Endpoint, HostName, WIREGUARD};
use super::peer_paths;
use super::underlays::{self, Underlay};
use crate::tunnel::seal::{self, Key};
use linkweir_plane::routing::Routing;
use linkweir_plane::setup::{Capacity, PathSetup};
use linkweir_plane::underlays::Probing;

/// Another end of the tunnel.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Name shown in statistics.
    pub name: String,
    /// Where its datagrams are sent, until it sends from elsewhere; none: it must send first.
    pub endpoint: Option<SocketAddr>,
    /// The device that a link-local `endpoint` is valid on; the number of the device in `endpoint` follows it.
    pub zone: Option<String>,
    /// The name that `endpoint` has instead of an address; it is resolved while the gateway runs.
    pub host: Option<HostName>,
    /// Its public key; none in cleartext mode.
    pub public_key: Option<Key>,
    /// File of a secret key that both ends share in addition.
    pub preshared_key_file: Option<KeyFile>,
    /// Longest time without a datagram to it, s.
    pub keepalive_s: Option<u16>,
    /// Addresses behind it: packets to these are sent to it, and only packets from these are accepted from it.
    pub allowed: Vec<IpNet>,
    /// Capacity of the path to it.
    pub capacity: Capacity,
    /// Whether its marks are answered with reports.
    pub report: bool,
    /// Whether the length that the path to it carries is probed.
    pub probe_mtu: bool,
    /// The ways to it in the order of preference; empty where there is but one, to `endpoint`.
    pub underlays: Vec<Underlay>,
    /// When these are probed; none where there is but one.
    pub probing: Option<Probing>,
    /// What each of these carries, where they are paths that are used at once.
    pub paths: Vec<PathSetup>,
}

/// Peers, and of each its parameters of the policy among peers and their table.
type Read<'s, 'i> = (Vec<Peer>, Vec<OfUser<'s, 'i>>);

/// Reads all peers; `link` is the capacity of those that do not give their own, `across` the policy among them.
/// What traces were taken for is added to `told`.
pub(super) fn read<'s, 'i>(
    sections: &mut [Section<'s, 'i>],
    mode: Mode,
    listen: SocketAddr,
    link: Option<&Capacity>,
    across: Option<&Across<'s, 'i>>,
    told: &mut Vec<String>,
) -> Result<Read<'s, 'i>, Fault> {
    let mut peers: Vec<Peer> = Vec::new();
    let mut known = Known::default();
    let mut of_peers = Vec::new();
    for section in sections {
        section.renamed(&WIREGUARD)?;
        let entry = section.entry_of(&PEER_NAME)?;
        let name = word(&entry)?;
        if known.names.insert(name.clone(), peers.len()).is_some() {
            return Err(entry.fault("two peers have this name; rename one"));
        }
        let (underlays, probing, paths) = match peer_paths::read(section, (mode, listen), told)? {
            Some((ways, paths)) => (ways, Some(underlays::of_paths(section)?), paths),
            None => {
                let (ways, probing) = underlays::read(section, mode, listen)?;
                (ways, probing, Vec::new())
            }
        };
        let (mut host, mut zone) = (None, None);
        let endpoint = match (section.find(ENDPOINT.name), underlays.first()) {
            (Some(entry), Some(_)) => {
                return Err(entry.fault("and underlays exclude each other: each of these has an endpoint; leave one out"));
            }
            (Some(entry), None) => {
                // In cleartext mode a peer is known by its address.
                host = match mode {
                    Mode::Wireguard => host_name(&entry)?,
                    Mode::Cleartext => None,
                };
                match host {
                    Some(_) => None,
                    None => {
                        let address;
                        (address, zone) = endpoint(&entry, listen)?;
                        Some(address)
                    }
                }
            }
            (None, first) => first.and_then(|way| way.endpoint),
        };
        let keys = Keys::read(section, mode)?;
        known.only_one(
            &peers,
            section,
            mode,
            endpoint.zip(Some(zone.clone())),
            &keys,
        )?;
        let entry = section.entry_of(&ALLOWED_IPS)?;
        let allowed: Vec<IpNet> = nets(&entry)?.iter().map(IpNet::trunc).collect();
        for net in &allowed {
            let before = known.nets.insert(*net, peers.len());
            if let Some(other) = before.and_then(|other| peers.get(other)) {
                return Err(entry.fault(format!(
                    "peer \"{}\" has {net} already; give it to one of them",
                    other.name
                )));
            }
        }
        let report = section.take(&REPORT)?;
        let probe_mtu = match section.find(PROBE_MTU.name) {
            Some(entry) if mode == Mode::Cleartext => {
                return Err(entry.fault("is only for mode = \"wireguard\""));
            }
            _ => section.take(&PROBE_MTU)?,
        };
        let capacity = match (capacity::read(section, told)?, link) {
            (Some(_), _) if !paths.is_empty() => {
                let given = [RATE.name, "trace", "feedback"];
                let given = given.into_iter().find(|key| section.stray(key).is_some());
                let message =
                    "is of the whole peer, and each [[peer.path]] has its own; move it there";
                return Err(section.fault_at(given.unwrap_or(RATE.name), message));
            }
            (None, _) if !paths.is_empty() => peer_paths::sum(&paths),
            (Some(capacity), _) => capacity,
            (None, Some(capacity)) => capacity.clone(),
            (None, None) => {
                section.expect(&[ACROSS.name]);
                section.known()?; // a misspelt key may be what is missing
                return Err(section.missing(
                    RATE.name,
                    "is missing here and in [link]; write rate = \"20Mbit\" in one of them",
                ));
            }
        };
        if let (Some(_), Some(entry)) = (across, section.stray(PATHS.name)) {
            return Err(entry.fault("is not for peers that share one link; leave link.across out"));
        }
        if across.is_some() {
            across::fits(&capacity, section)?;
        }
        of_peers.push(across::of_peer(across, section)?);
        section.known()?;
        peers.push(Peer {
            name,
            endpoint,
            zone,
            host,
            public_key: keys.public_key,
            preshared_key_file: keys.preshared_key_file,
            keepalive_s: keys.keepalive_s,
            allowed,
            capacity,
            report,
            probe_mtu,
            underlays,
            probing,
            paths,
        });
    }
    Ok((peers, of_peers))
}

/// The numbers of the peers read so far, by what only one of them may have.
#[derive(Default)]
struct Known {
    names: BTreeMap<String, usize>,
    keys: BTreeMap<Option<Key>, usize>,
    endpoints: BTreeMap<Option<Endpoint>, usize>,
    nets: BTreeMap<IpNet, usize>,
}

impl Known {
    /// Refuses a peer that could not be distinguished from one before: by its key, or by its endpoint in cleartext mode.
    fn only_one(
        &mut self,
        peers: &[Peer],
        section: &Section<'_, '_>,
        mode: Mode,
        endpoint: Option<Endpoint>,
        keys: &Keys,
    ) -> Result<(), Fault> {
        let (key, message) = match mode {
            Mode::Wireguard => {
                let before = self.keys.insert(keys.public_key, peers.len());
                let Some(other) = before.map(|other| &peers[other]) else {
                    return Ok(());
                };
                let message = format!(
                    "is that of peer \"{}\" too; each peer needs its own",
                    other.name
                );
                (PUBLIC_KEY.name, message)
            }
            Mode::Cleartext if endpoint.is_none() => {
                let message = "is missing, and in cleartext mode peers are known by it alone; write endpoint = \"192.0.2.1:51820\"";
                return Err(section.missing(ENDPOINT.name, message));
            }
            Mode::Cleartext => {
                let before = self.endpoints.insert(endpoint, peers.len());
                let Some(other) = before.map(|other| &peers[other]) else {
                    return Ok(());
                };
                let message = format!(
                "is that of peer \"{}\" too, and in cleartext mode peers are known by it alone; change one",
                other.name
            );
                (ENDPOINT.name, message)
            }
        };
        Err(section.fault_at(key, message))
    }
}

/// The keys of a peer in the WireGuard protocol.
struct Keys {
    public_key: Option<Key>,
    preshared_key_file: Option<KeyFile>,
    keepalive_s: Option<u16>,
}

impl Keys {
    fn read(section: &mut Section<'_, '_>, mode: Mode) -> Result<Keys, Fault> {
        let public_key = section.find(PUBLIC_KEY.name);
        let preshared_key_file = section.find(PRESHARED_KEY_FILE.name);
        let keepalive = section.find(KEEPALIVE.name);
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
            return Err(section.missing(
                PUBLIC_KEY.name,
                "is missing; `linkweir-gateway keygen` prints that of a new key",
            ));
        };
        let public_key = seal::key(entry.text()?)
            .ok_or_else(|| entry.fault("must be a key: 32 bytes in base64, 44 characters"))?;
        let preshared_key_file = preshared_key_file
            .map(|entry| KeyFile::of(&entry))
            .transpose()?;
        let keepalive_s = match keepalive {
            Some(entry) => {
                let ns = KEEPALIVE.form.read(&entry)?;
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

/// The least capacity that is configured for a peer, bit/s.
pub(super) fn slowest_bps(peers: &[Peer]) -> u64 {
    let capacities = peers.iter().flat_map(|peer| {
        let of_paths = peer.paths.iter().map(|path| &path.capacity);
        std::iter::once(&peer.capacity).chain(of_paths)
    });
    let rates = capacities.map(|capacity| capacity.nominal_bps);
    rates.min().unwrap_or_default()
}

/// Refuses underlays that would be sent through the tunnel's own `device`.
pub(super) fn underlays_outside(
    peers: &[Peer],
    sections: &[Section<'_, '_>],
    device: &str,
) -> Result<(), Fault> {
    for (peer, section) in peers.iter().zip(sections) {
        let mut devices = peer.underlays.iter().map(|way| way.device.as_deref());
        if devices.any(|other| other == Some(device)) {
            let message = format!(
                "device = \"{device}\" is the tunnel itself; name the device towards the peer"
            );
            let key = if peer.paths.is_empty() {
                UNDERLAYS.name
            } else {
                PATHS.name
            };
            return Err(section.fault_at(key, message));
        }
    }
    Ok(())
}

/// Refuses a peer behind which one of this end's own addresses would be: what is sent there never leaves this host.
pub(super) fn own_addresses(
    peers: &[Peer],
    sections: &[Section<'_, '_>],
    own: &[IpNet],
) -> Result<(), Fault> {
    for (peer, section) in peers.iter().zip(sections) {
        let mut hosts = own.iter().map(|net| IpNet::from(net.addr()));
        if let Some(host) = hosts.find(|host| peer.allowed.contains(host)) {
            return Err(section.fault_at(
                ALLOWED_IPS.name,
                format!("{host} is an address of this gateway itself; leave it out, or correct gateway.address"),
            ));
        }
    }
    Ok(())
}

/// What to do instead of routing `net` into the tunnel.
fn cure(net: &IpNet) -> String {
    match net {
        net if net.prefix_len() > 1 => "set gateway.routes = false and route by hand".to_string(),
        IpNet::V4(_) => halves("0.0.0.0/0", "0.0.0.0/1 and 128.0.0.0/1"),
        IpNet::V6(_) => halves("::/0", "::/1 and 8000::/1"),
    }
}

fn halves(whole: &str, halves: &str) -> String {
    format!("write {whole} instead of {halves}: that route leaves the tunnel's own datagrams out")
}

/// Refuses endpoints that would be routed into the tunnel itself. Routes to all addresses do not: they leave out what has
/// the mark of the tunnel's datagrams.
pub(super) fn endpoints_outside(peers: &[Peer], sections: &[Section<'_, '_>]) -> Result<(), Fault> {
    let routing = Routing::new(peers.iter().map(|peer| peer.allowed.as_slice()));
    for (peer, section) in peers.iter().zip(sections) {
        let ways = peer.underlays.iter().filter_map(|way| way.endpoint);
        let inside = peer.endpoint.into_iter().chain(ways).find_map(|at| {
            let mut nets = peers[routing.peer(at.ip())?].allowed.iter();
            nets.find(|net| net.prefix_len() > 0 && net.contains(&at.ip()))
        });
        if let Some(net) = inside {
            return Err(section.fault_at(
                ENDPOINT.name,
                format!(
                    "lies in {net}, which would be routed into the tunnel itself; {}",
                    cure(net)
                ),
            ));
        }
    }
    Ok(())
}

/// The least `reorder` with which packets that are sent again come in time to all peers; none: no peer has paths.
pub(super) fn resend_ns(peers: &[Peer]) -> Option<u64> {
    let probing = peers.iter().filter_map(|peer| peer.probing);
    let at_once = probing.filter(|probing| probing.at_once);
    let longest =
        at_once.map(|probing| peer_paths::with_turns(probing.every_ns + probing.failover_ns));
    longest.max().map(|ns| ns.min(peer_paths::REORDER_NS.1))
}

/// The capacity that the policy of a peer begins with, and how a message names it.
pub(super) fn nominal(peer: &Peer) -> Nominal {
    let bps = peer.capacity.nominal_bps;
    if peer.paths.is_empty() {
        return Nominal::of_link(bps);
    }
    let shown = |bps| units::show_whole(bps, Kind::Rate);
    let each = peer.paths.iter();
    let each = each.map(|path| format!("{} with {}", path.name, shown(path.capacity.nominal_bps)));
    Nominal {
        bps,
        told: format!(
            "peer {} begins with {}: {}; write rate or nominal in its [[peer.path]]",
            peer.name,
            shown(bps),
            each.collect::<Vec<_>>().join(", ")
        ),
    }
}
