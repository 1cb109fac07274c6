// SPDX-License-Identifier: BSD-3-Clause
//! The gateway's configuration: one TOML file, in the notation of scenarios.
//!
//! [`load`] checks everything before anything is set up, and returns the first fault with file, line, key and cure.

mod across;
mod capacity;
mod classes;
pub mod emulate;
pub mod keys;
mod mode;
mod names;
pub mod paths;
mod peer_paths;
mod peers;
mod record;
mod underlays;
mod warnings;
pub mod wg_quick;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use linkweir_config::keys::gateway as rows;
use linkweir_config::keys::Form;
use linkweir_config::matching::{code_point, Rules};
use linkweir_config::reader::{Entry, Section, Source};
use linkweir_config::units::{self, Kind};
use linkweir_config::{parameters, placeholders, trace};
use linkweir_core::{Limit, PolicyInfo};

use linkweir_plane::bytes::numbered;
use linkweir_plane::setup::{Capacity, Class, LinkSetup, Scheduler, Wire};
use linkweir_plane::tos::Model;

use across::Across;
pub use capacity::{capacity_bps, reported_bps};
use keys::KeyFile;
pub use linkweir_config::Fault;
pub use mode::Mode;
pub use names::HostName;
use names::{new_device, own_socket, word, WIREGUARD};
use paths::socket_path;
pub use peers::Peer;
pub use record::Record;
pub use underlays::Underlay;

/// Largest configuration, bytes: more than 500 for each peer.
const FILE_BYTES: u64 = 8 << 20;
/// Most classes.
const CLASSES: usize = 256;
/// Most peers.
const PEERS: usize = 16_384;
/// The mark of datagrams where routes to all addresses need one and none is given: that of wg-quick.
const FWMARK: u32 = 51_820;
/// Most bytes all queues together may hold.
const HELD_BYTES: u64 = 1_000_000_000;
/// Memory of a waiting packet in addition to its own bytes.
pub const PACKET_COST_BYTES: u64 = 112;
/// Smallest MTU that IPv6 allows (RFC 8200, section 5).
const MTU_V6: u32 = 1280;
/// The smallest packet is a header of this size.
const HEADER_BYTES: usize = 20;
/// IP and UDP headers outside, bytes.
const OUTER_V4: u32 = 28;
const OUTER_V6: u32 = 48;

/// A configuration without faults.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the TUN device.
    pub device: String,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
    /// Its MTU, bytes.
    pub mtu: u32,
    /// Bytes for the number in front of a packet, if some peer has paths.
    pub number_bytes: u32,
    /// Local address and port of the tunnel.
    pub listen: SocketAddr,
    /// The only device that the tunnel's datagrams pass; none: any.
    pub listen_device: Option<String>,
    /// The mark of the tunnel's datagrams, and the routing table of routes to all addresses; none: there is no mark.
    pub fwmark: Option<u32>,
    /// How packets travel.
    pub mode: Mode,
    /// File of this end's secret key.
    pub private_key_file: Option<KeyFile>,
    /// The user that the gateway becomes once it is set up; none: `nobody`.
    pub user: Option<String>,
    /// Path of the control socket.
    pub control: PathBuf,
    /// The group that may use the control socket besides root; none: only root.
    pub control_group: Option<String>,
    /// Whether the addresses behind peers are routed through the device.
    pub routes: bool,
    /// Whether packets to addresses behind peers are refused rather than sent in the clear while the routes are missing.
    pub refuses_leaks: bool,
    /// Whether the segment size of TCP connections is lowered to what fits.
    pub mss_clamp: bool,
    /// Whether the kernel's segmentation offloads are used, where it has them.
    pub offload: bool,
    /// How code points pass the tunnel.
    pub dscp: Model,
    /// How long packets that wait may still leave when the gateway stops, ns.
    pub drain_ns: u64,
    /// Bytes by which a packet grows on the link: outer headers, seal and `link.overhead`.
    pub overhead_bytes: i64,
    /// Smallest packet on the link, bytes, as it is accounted.
    pub mpu_bytes: u32,
    /// About how many bytes may wait in the system and the interface below; none: the system's default.
    pub below_bytes: Option<u32>,
    /// Policy among peers, where they share one link; a row of parameters per peer.
    pub across: Option<Scheduler>,
    /// Policy of the queues towards each peer.
    pub scheduler: Scheduler,
    /// Classes in queue order.
    pub classes: Vec<Class>,
    /// Rules that put packets into classes.
    pub rules: Rules,
    /// The other ends.
    pub peers: Vec<Peer>,
    /// The flight recorder; none: nothing is recorded.
    pub record: Option<Record>,
    /// What traces were taken for and what of them is doubtful, a line each.
    pub told: Vec<String>,
}

impl Config {
    /// Largest packet that TCP may use, bytes; none: not limited.
    #[must_use]
    pub fn mss_mtu(&self) -> Option<u32> {
        self.mss_clamp.then_some(self.mtu)
    }

    /// First rate that the policy across peers is given, bit/s: the capacity of the fastest peer.
    #[must_use]
    pub fn fastest_bps(&self) -> u64 {
        peers::fastest_bps(&self.peers)
    }

    /// Lengths of packets on the link.
    #[must_use]
    pub fn wire(&self) -> Wire {
        Wire {
            overhead_bytes: self.overhead_bytes,
            mpu_bytes: self.mpu_bytes,
        }
    }

    /// Bytes by which a packet of `bytes` is accounted on the link.
    #[must_use]
    pub fn wire_bytes(&self, bytes: usize) -> u32 {
        self.wire().packet_bytes(bytes)
    }

    /// Settings of the link to a peer.
    #[must_use]
    pub fn link_setup<'c>(&'c self, peer: &'c Peer) -> LinkSetup<'c> {
        LinkSetup {
            scheduler: &self.scheduler,
            classes: &self.classes,
            capacity: &peer.capacity,
            paths: &peer.paths,
            measured: self.below_bytes.is_some(),
            shared: self.across.is_some(),
        }
    }
}

/// Reads a configuration file.
///
/// # Errors
/// When it cannot be read, or the first thing wrong with it.
pub fn load(file: &Path) -> Result<Config, Fault> {
    parse(&read_text(file)?, file)
}

/// Reads the text of a configuration file.
///
/// # Errors
/// When it cannot be read, or is too large.
pub fn read_text(file: &Path) -> Result<String, Fault> {
    trace::read_text(file, FILE_BYTES)
}

/// Reads a configuration; paths in it are relative to the folder of `file`.
///
/// # Errors
/// The first thing wrong with it.
pub fn parse(text: &str, file: &Path) -> Result<Config, Fault> {
    let source = Source::new(text, Some(file));
    let document = source.parse(FILE_BYTES)?;
    placeholders::refuse(&source, document.get_ref())?;
    let mut top = Section::new(&source, document.get_ref(), String::new(), 0);

    top.renamed(&WIREGUARD)?;
    let number_bytes = if peer_paths::are_given(&top, PEERS) {
        numbered::HEADER_BYTES as u32
    } else {
        0
    };
    let own = Own::read(&mut top, number_bytes)?;
    let mut told = Vec::new();
    let link = Shared::read(&mut top, &mut told)?;
    let mut scheduler = top.need_table("scheduler", "policy = \"pss\"")?;
    let (mut known, by_ecn): (Vec<&PolicyInfo>, Vec<&PolicyInfo>) = linkweir_core::policies()
        .iter()
        .partition(|info| !info.sorted_by_ecn);
    let listed = known.len();
    known.extend(by_ecn);
    let names: Vec<&str> = known.iter().map(|info| info.name).collect();
    let entry = scheduler.need("policy", "\"pss\"")?;
    let info = known[entry.choice_of(&names, listed)?];
    if info.sorted_by_ecn {
        return Err(entry.fault(
            "needs packets sorted by their ECN codepoint, which no match of the gateway does; name another policy, or write flows = \"dualpi2\" in a class",
        ));
    }
    let params = info
        .params
        .iter()
        .map(|param| parameters::read(&mut scheduler, param))
        .collect::<Result<Vec<_>, _>>()?;

    let mut sections = top.tables(rows::CLASS.path, CLASSES)?;
    let mut peer_sections = top.tables(rows::PEER.path, PEERS)?;
    let (peers, of_peers) = peers::read(
        &mut peer_sections,
        own.mode,
        own.listen,
        link.capacity.as_ref(),
        link.across.as_ref(),
        &mut told,
    )?;
    if peers.iter().any(|peer| !peer.paths.is_empty()) && !info.bonds() {
        let able = linkweir_core::policies().iter().filter(|info| info.bonds());
        let able: Vec<&str> = able.map(|info| info.name).collect();
        let message = format!(
            "cannot serve several paths to a peer, since it would notice which classes must wait for which path; choose one of {}",
            able.join(", ")
        );
        return Err(scheduler.fault_at("policy", message));
    }
    peers::underlays_outside(&peers, &peer_sections, &own.device)?;
    let wire = Wire {
        overhead_bytes: link.overhead_bytes + i64::from(own.outer_bytes),
        mpu_bytes: link.mpu_bytes,
    };
    let full_bytes = wire.packet_bytes(own.mtu as usize);
    let full_ns = wire.packet_ns(own.mtu as usize, peers::slowest_bps(&peers));
    let (mut classes, rules, qparams) =
        classes::read(&mut sections, info, full_ns, peers::resend_ns(&peers))?;
    let uses: Vec<_> = classes.iter().map(|class| class.uses.clone()).collect();
    let with_paths: Vec<_> = peers
        .iter()
        .filter(|peer| !peer.paths.is_empty())
        .map(|peer| (peer.name.as_str(), &peer.paths[..]))
        .collect();
    peer_paths::known(&sections, &uses, &with_paths)?;
    link.one_interface(&peers)?;
    let record = record::read(&mut top)?;
    peers::own_addresses(&peers, &peer_sections, &own.addresses)?;
    let mut fwmark = own.fwmark;
    let mut allowed = peers.iter().flat_map(|peer| &peer.allowed);
    let all = own.routes && allowed.any(|net| net.prefix_len() == 0);
    if own.routes {
        peers::endpoints_outside(&peers, &peer_sections)?;
    }
    if all {
        fwmark = fwmark.or(Some(FWMARK));
    }
    top.finish()?;

    // Unknown keys are reported before the core checks the values: a misspelt one may be what the core misses.
    scheduler.known()?;
    for section in &sections {
        section.known()?;
    }
    let places: Vec<&Section<'_, '_>> = sections.iter().collect();
    for peer in &peers {
        let nominal = peers::nominal(peer);
        parameters::check(info, &nominal, &params, &qparams, &scheduler, &places)?;
    }
    let across = link.across.as_ref();
    let across = across
        .map(|across| across::scheduler(across, peers::fastest_bps(&peers), &of_peers))
        .transpose()?;
    for class in &mut classes {
        limit_by_time(&mut class.limit, full_bytes.into(), greatest_bps(&peers));
    }
    let whole = top_level(&source, &document);
    held(&whole, &classes, (own.mtu, wire), peers.len())?;

    Ok(Config {
        device: own.device,
        addresses: own.addresses,
        mtu: own.mtu,
        number_bytes,
        listen: own.listen,
        listen_device: own.listen_device,
        fwmark,
        mode: own.mode,
        private_key_file: own.private_key_file,
        user: own.user,
        control: own.control,
        control_group: own.control_group,
        routes: own.routes,
        refuses_leaks: own.refuses_leaks.unwrap_or(all),
        mss_clamp: own.mss_clamp,
        offload: own.offload,
        dscp: own.dscp,
        drain_ns: own.drain_ns,
        overhead_bytes: wire.overhead_bytes,
        mpu_bytes: wire.mpu_bytes,
        below_bytes: link.below_bytes,
        across,
        scheduler: Scheduler {
            info,
            params,
            qparams,
        },
        classes,
        rules,
        peers,
        record,
        told,
    })
}

/// `[gateway]`: this end.
struct Own {
    device: String,
    addresses: Vec<IpNet>,
    mtu: u32,
    listen: SocketAddr,
    listen_device: Option<String>,
    fwmark: Option<u32>,
    mode: Mode,
    private_key_file: Option<KeyFile>,
    user: Option<String>,
    control: PathBuf,
    control_group: Option<String>,
    routes: bool,
    /// None: where all addresses are routed through the device.
    refuses_leaks: Option<bool>,
    mss_clamp: bool,
    offload: bool,
    dscp: Model,
    drain_ns: u64,
    /// Bytes by which the tunnel lengthens a packet.
    outer_bytes: u32,
}

impl Own {
    /// Reads it; a packet may have `number_bytes` in front of it.
    fn read(top: &mut Section<'_, '_>, number_bytes: u32) -> Result<Own, Fault> {
        let mut gateway = top.need_table(rows::GATEWAY.path, "device = \"lw0\"")?;
        gateway.renamed(&WIREGUARD)?;
        let mode = match gateway.demand(&rows::MODE)? {
            0 => Mode::Wireguard,
            _ => Mode::Cleartext,
        };
        let private_key_file = private_key_file(&mut gateway, mode)?;
        let device = new_device(&gateway.entry_of(&rows::DEVICE)?)?;
        let listen = own_socket(&gateway.entry_of(&rows::LISTEN)?)?;
        let listen_device = match gateway.find(rows::LISTEN_DEVICE.name) {
            Some(entry) if entry.text()? == device => {
                return Err(entry.fault("is the tunnel itself; name the device towards the peers"));
            }
            Some(entry) => Some(names::device(&entry)?),
            None => None,
        };
        let fwmark = gateway.given(&rows::FWMARK)?.map(|mark| mark as u32);
        let addresses = match gateway.find(rows::ADDRESS.name) {
            Some(entry) => names::addresses(&entry)?,
            None => Vec::new(),
        };
        let user = match gateway.find(rows::USER.name) {
            Some(entry) => Some(word(&entry)?),
            None => None,
        };
        let control = match gateway.find(rows::CONTROL.name) {
            Some(entry) => socket_path(&entry)?,
            None => paths::control_socket(&device),
        };
        let control_group = match gateway.find(rows::CONTROL_GROUP.name) {
            Some(entry) => Some(word(&entry)?),
            None => None,
        };
        let routes = gateway.take(&rows::ROUTES)?;
        let refuses_leaks = match gateway.find(rows::LEAK.name) {
            Some(entry) if !routes => {
                return Err(entry.fault(
                    "is only for routes that the gateway sets; remove it, or routes = false",
                ));
            }
            Some(entry) => Some(rows::LEAK.form.read(&entry)? == 0),
            None => None,
        };
        let mss_clamp = gateway.take(&rows::MSS_CLAMP)?;
        let offload = gateway.take(&rows::OFFLOAD)?;
        let dscp = dscp(&mut gateway)?;
        let drain_ns = gateway.take(&rows::DRAIN)?;
        let headers_bytes = if listen.is_ipv6() { OUTER_V6 } else { OUTER_V4 };
        let outer_bytes = headers_bytes + mode.overhead_bytes();
        let below = gateway.take(&rows::UNDERLAY_MTU)?;
        let mtu = mtu(&mut gateway, below, outer_bytes + number_bytes, &addresses)?;
        gateway.finish()?;
        Ok(Own {
            device,
            addresses,
            mtu,
            listen,
            listen_device,
            fwmark,
            mode,
            private_key_file,
            user,
            control,
            control_group,
            routes,
            refuses_leaks,
            mss_clamp,
            offload,
            dscp,
            drain_ns,
            outer_bytes,
        })
    }
}

/// `[link]`: what holds for the links to all peers.
struct Shared<'s, 'i> {
    /// The capacity of peers that do not give their own.
    capacity: Option<Capacity>,
    overhead_bytes: i64,
    mpu_bytes: u32,
    below: Option<Entry<'s, 'i>>,
    below_bytes: Option<u32>,
    across: Option<Across<'s, 'i>>,
}

impl<'s, 'i> Shared<'s, 'i> {
    fn read(top: &mut Section<'s, 'i>, told: &mut Vec<String>) -> Result<Shared<'s, 'i>, Fault> {
        let mut link = top.need_table(rows::LINK.path, "rate = \"20Mbit\"")?;
        if peer_paths::are_everywhere(top, PEERS) && link.stray(rows::ACROSS.name).is_none() {
            capacity::unused(&link, told)?;
        }
        let capacity = capacity::read(&mut link, told)?;
        let overhead_bytes = link.take(&rows::OVERHEAD)?;
        let mpu_bytes = link.take(&rows::MPU)?;
        let below = link.find(rows::BELOW.name);
        let below_bytes = link.given(&rows::BELOW)?;
        let across = across::read(&mut link)?;
        if let (Some(_), Some(capacity)) = (&across, &capacity) {
            across::fits(capacity, &link)?;
        }
        link.finish()?;
        Ok(Shared {
            capacity,
            overhead_bytes,
            mpu_bytes,
            below,
            below_bytes,
            across,
        })
    }

    /// Refuses `below` for several peers that do not share a link: they would share the interface.
    fn one_interface(&self, peers: &[Peer]) -> Result<(), Fault> {
        if let (Some(entry), Some(peer)) = (
            &self.below,
            peers.iter().find(|peer| !peer.paths.is_empty()),
        ) {
            return Err(entry.fault(format!(
                "measures one interface, and peer \"{}\" has several paths; leave it out",
                peer.name
            )));
        }
        let peers = peers.len();
        if let (Some(entry), None, 2..) = (&self.below, &self.across, peers) {
            return Err(entry.fault(format!(
                "measures one interface, which {peers} peers share; write across = {{ policy = \"drr\" }} next to it"
            )));
        }
        Ok(())
    }
}

fn top_level<'s, 'i>(
    source: &'s Source<'i>,
    document: &'s toml::Spanned<toml::de::DeTable<'i>>,
) -> Section<'s, 'i> {
    Section::new(source, document.get_ref(), String::new(), 0)
}

fn private_key_file(gateway: &mut Section<'_, '_>, mode: Mode) -> Result<Option<KeyFile>, Fault> {
    match (mode, gateway.find(rows::PRIVATE_KEY_FILE.name)) {
        (Mode::Wireguard, Some(entry)) => KeyFile::of(&entry).map(Some),
        (Mode::Wireguard, None) => Err(gateway.missing(
            rows::PRIVATE_KEY_FILE.name,
            "is missing; make a key with `linkweir-gateway keygen FILE` and write private_key_file = \"FILE\"",
        )),
        (Mode::Cleartext, Some(entry)) => Err(entry.fault("is only for mode = \"wireguard\"")),
        (Mode::Cleartext, None) => Ok(None),
    }
}

fn dscp(gateway: &mut Section<'_, '_>) -> Result<Model, Fault> {
    let model = gateway.take(&rows::DSCP)?;
    let outer = gateway.find(rows::OUTER_DSCP.name);
    match (model, outer) {
        (2, Some(entry)) => Ok(Model::Pipe(code_point(&entry)?)),
        (2, None) => Ok(Model::Pipe(0)),
        (_, Some(entry)) => Err(entry.fault("is only for dscp = \"pipe\"")),
        (1, None) => Ok(Model::Uniform),
        (_, None) => Ok(Model::Out),
    }
}

/// Greatest rate that the configuration gives a peer, bit/s.
fn greatest_bps(peers: &[Peer]) -> u64 {
    let greatest_bps = |capacity: &Capacity| {
        let ceiling_bps = capacity.feedback.map_or(0, |bounds| bounds.ceiling_bps);
        capacity.nominal_bps.max(ceiling_bps)
    };
    let rates = peers.iter().map(|peer| {
        let of_paths = peer.paths.iter().map(|path| greatest_bps(&path.capacity));
        greatest_bps(&peer.capacity).max(of_paths.sum())
    });
    rates.max().unwrap_or(0)
}

/// Completes a limit by time: two full packets have room however low the capacity is, and a capacity beyond the configured
/// ones does not fill the memory.
fn limit_by_time(limit: &mut Limit, full_bytes: u64, greatest_bps: u64) {
    let Some(time) = &mut limit.time else {
        return;
    };
    time.least_bytes = 2 * full_bytes;
    let most = 2 * u128::from(greatest_bps) * u128::from(time.ns) / 8_000_000_000;
    let most = u64::try_from(most)
        .unwrap_or(u64::MAX)
        .max(time.least_bytes);
    limit.bytes = Some(limit.bytes.unwrap_or(u64::MAX).min(most));
}

/// Refuses queues that together could fill the memory.
fn held(
    top: &Section<'_, '_>,
    classes: &[Class],
    (mtu, wire): (u32, Wire),
    peers: usize,
) -> Result<(), Fault> {
    let per_peer: u64 = classes
        .iter()
        .map(|class| held_bytes(class.limit, mtu, wire))
        .sum();
    let held = per_peer.saturating_mul(peers as u64);
    if held <= HELD_BYTES {
        return Ok(());
    }
    let message = format!(
        "{} classes towards {peers} peers may hold {}, more than {}; lower limit or limit_bytes",
        classes.len(),
        units::show_whole(held, Kind::Size),
        units::show_whole(HELD_BYTES, Kind::Size)
    );
    Err(top.fault_at(rows::CLASS.path, message))
}

/// Most memory a queue of this limit takes.
fn held_bytes(limit: Limit, mtu: u32, wire: Wire) -> u64 {
    let least_bytes = u64::from(wire.packet_bytes(HEADER_BYTES));
    let by_bytes = limit
        .bytes
        .map(|bytes| bytes.saturating_add(bytes.saturating_mul(PACKET_COST_BYTES) / least_bytes));
    let by_pkts = limit
        .pkts
        .map(|pkts| u64::from(pkts) * (u64::from(mtu) + PACKET_COST_BYTES));
    by_bytes
        .unwrap_or(u64::MAX)
        .min(by_pkts.unwrap_or(u64::MAX))
}

fn mtu(
    gateway: &mut Section<'_, '_>,
    below: u32,
    outer: u32,
    addresses: &[IpNet],
) -> Result<u32, Fault> {
    let most = below - outer;
    let v6 = addresses.iter().any(|net| net.addr().is_ipv6());
    let (least, why) = if v6 {
        (MTU_V6, " for IPv6")
    } else {
        (rows::MTU.form.min, "")
    };
    if most < least {
        let message = format!(
            "leaves {most} bytes inside the tunnel, and {least}{why} are needed; raise it to at least {}B",
            least + outer
        );
        return Err(gateway.fault_at(rows::UNDERLAY_MTU.name, message));
    }
    match gateway.find(rows::MTU.name) {
        Some(entry) => entry
            .whole(Kind::Size, (least.into(), most.into()))
            .map(|mtu| u32::try_from(mtu).unwrap_or(most))
            .map_err(|mut fault| {
                fault.message.push_str(&format!(
                    " ({outer} bytes of outer headers below {below}{why})"
                ));
                fault
            }),
        None => Ok(most),
    }
}
