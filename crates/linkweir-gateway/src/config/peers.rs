// SPDX-License-Identifier: BSD-3-Clause
//! `[[peer]]`: the other ends of the tunnel.

use std::net::SocketAddr;

use ipnet::IpNet;
use linkweir_config::reader::Section;

use super::{capacity, nets, socket_address, word, Capacity, Fault, Mode};

/// Another end of the tunnel.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Name shown in statistics.
    pub name: String,
    /// Where its datagrams go to.
    pub endpoint: SocketAddr,
    /// Addresses behind it: what is sent to these goes there, and only from these it may send.
    pub allowed: Vec<IpNet>,
    /// Capacity of the way there.
    pub capacity: Capacity,
}

/// Reads all peers; `link` is the capacity of those that do not say their own.
pub(super) fn read(
    sections: &mut [Section<'_, '_>],
    mode: Mode,
    listen: SocketAddr,
    link: Option<&Capacity>,
) -> Result<Vec<Peer>, Fault> {
    let mut peers: Vec<Peer> = Vec::new();
    for section in sections {
        let entry = section.need("name", "\"ground\"")?;
        let name = word(&entry)?;
        if peers.iter().any(|peer| peer.name == name) {
            return Err(entry.fault("two peers have this name; rename one"));
        }
        let entry = section.need("endpoint", "\"192.0.2.1:51820\"")?;
        let endpoint = socket_address(&entry)?;
        if endpoint.is_ipv6() != listen.is_ipv6() {
            let kind = if listen.is_ipv6() { "IPv6" } else { "IPv4" };
            return Err(entry.fault(format!("must be {kind}, as gateway.listen is {listen}")));
        }
        let same = peers.iter().find(|peer| peer.endpoint == endpoint);
        if let (Mode::Cleartext, Some(other)) = (mode, same) {
            return Err(entry.fault(format!(
                "is that of peer \"{}\" too, and in cleartext mode peers are known by it alone; change one",
                other.name
            )));
        }
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
        section.known()?;
        peers.push(Peer {
            name,
            endpoint,
            allowed,
            capacity,
        });
    }
    Ok(peers)
}

/// Refuses endpoints that routes would lead into the tunnel itself.
pub(super) fn endpoints_outside(peers: &[Peer], sections: &[Section<'_, '_>]) -> Result<(), Fault> {
    for (peer, section) in peers.iter().zip(sections) {
        let inside = peers
            .iter()
            .flat_map(|other| &other.allowed)
            .find(|net| net.contains(&peer.endpoint.ip()));
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
