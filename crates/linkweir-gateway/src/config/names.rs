// SPDX-License-Identifier: BSD-3-Clause
//! Names and addresses: words, devices, sockets and networks.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use linkweir_config::matching::nets;
use linkweir_config::reader::Entry;
use linkweir_config::Fault;

/// Names of wg(8) and wg-quick(8) with those of keys here: theirs in small letters, the key, and how it is written.
pub(super) const WIREGUARD: [(&str, &str, &str); 11] = [
    ("interface", "gateway", "[gateway]"),
    ("address", "address", "address"),
    ("listenport", "listen", "listen = \"0.0.0.0:51820\""),
    (
        "privatekey",
        "private_key_file",
        "private_key_file, the file that holds the key",
    ),
    ("mtu", "mtu", "mtu"),
    ("publickey", "public_key", "public_key"),
    (
        "presharedkey",
        "preshared_key_file",
        "preshared_key_file, the file that holds the key",
    ),
    ("allowedips", "allowed_ips", "allowed_ips"),
    ("endpoint", "endpoint", "endpoint"),
    ("persistentkeepalive", "keepalive", "keepalive = \"25s\""),
    ("peer", "peer", "[[peer]]"),
];

/// Text without spaces.
pub(super) fn word(entry: &Entry<'_, '_>) -> Result<String, Fault> {
    let text = entry.text()?;
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(entry.fault("must be one word"));
    }
    Ok(text.to_string())
}

/// A name the kernel takes for a device.
pub(super) fn device(entry: &Entry<'_, '_>) -> Result<String, Fault> {
    let name = entry.text()?;
    if !is_device(name) {
        return Err(
            entry.fault("must be the name of a network device: 1 .. 15 letters, digits, _, - or .")
        );
    }
    Ok(name.to_string())
}

fn is_device(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (1..=15).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('.')
}

/// A name the kernel takes for a new device: `all` and `default` are folders of its settings, and every namespace has `lo`.
pub(super) fn new_device(entry: &Entry<'_, '_>) -> Result<String, Fault> {
    let name = device(entry)?;
    if ["all", "default", "lo"].contains(&name.as_str()) {
        return Err(
            entry.fault("is a name that the kernel keeps for itself; choose another, like \"lw0\"")
        );
    }
    Ok(name)
}

/// Addresses the kernel gives to a device.
pub(super) fn addresses(entry: &Entry<'_, '_>) -> Result<Vec<IpNet>, Fault> {
    let found = nets(entry)?;
    for (at, net) in found.iter().enumerate() {
        let IpAddr::V6(address) = net.addr() else {
            continue;
        };
        if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
            return Err(entry.fault(format!(
                "{address} cannot be the address of a device; choose one like \"fd77::1/64\""
            )));
        }
        if found[..at].iter().any(|other| other.addr() == net.addr()) {
            return Err(entry.fault(format!("has {address} twice; leave one of them out")));
        }
    }
    Ok(found)
}

/// An address to listen on. Linux cannot bind a socket of IPv6 to the others.
pub(super) fn own_socket(entry: &Entry<'_, '_>) -> Result<SocketAddr, Fault> {
    let listen = socket_address(entry)?;
    let SocketAddr::V6(v6) = listen else {
        return Ok(listen);
    };
    if let Some(v4) = v6.ip().to_ipv4_mapped() {
        return Err(entry.fault(format!(
            "is an address of IPv4; write \"{v4}:{}\"",
            v6.port()
        )));
    }
    let first = v6.ip().segments()[0];
    let holds_on_one_link =
        first & 0xffc0 == 0xfe80 || [0xff01, 0xff02].contains(&(first & 0xff0f));
    if holds_on_one_link && v6.scope_id() == 0 {
        return Err(entry.fault(format!(
            "holds on one link only; write \"[::]:{}\", and listen_device = \"eth0\" next to it",
            v6.port()
        )));
    }
    Ok(listen)
}

/// An address with a port.
pub(super) fn socket_address(entry: &Entry<'_, '_>) -> Result<SocketAddr, Fault> {
    let text = entry.text()?;
    let address: SocketAddr = text.parse().map_err(|_| {
        entry.fault(
            "must be an address and a port, like \"192.0.2.1:51820\" or \"[2001:db8::1]:51820\"",
        )
    })?;
    if address.port() == 0 {
        return Err(entry.fault("must have a port 1 .. 65535"));
    }
    Ok(address)
}

/// The name of a host with a port; none: it is an address, or neither.
pub(super) fn host_name(entry: &Entry<'_, '_>) -> Result<Option<HostName>, Fault> {
    let Some(name) = host_name_of(entry.text()?) else {
        return Ok(None);
    };
    if name.port == 0 {
        return Err(entry.fault("must have a port 1 .. 65535"));
    }
    Ok(Some(name))
}

/// The name of a host with a port, 0 if that is none; none: it is an address, or neither.
pub(super) fn host_name_of(text: &str) -> Option<HostName> {
    let (host, port) = text.rsplit_once(':')?;
    // A dot at the end says that the name is complete; the resolver takes it, too.
    let dotted = host;
    let host = host.strip_suffix('.').unwrap_or(host);
    // RFC 1123, section 2.1: letters, digits and hyphens, in labels of 63 at most. An address has no letter in its last label.
    let good = |label: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=63).contains(&label.len()) && label.chars().all(plain) && !label.starts_with('-')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_name = host.len() <= 253
        && host.split('.').all(good)
        && last.contains(|c: char| c.is_ascii_alphabetic());
    is_name.then(|| HostName {
        host: dotted.to_string(),
        port: port.parse().unwrap_or_default(),
    })
}

/// A host by name, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName {
    /// Its name.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// An address with a port, and the device that a link-local address is valid on.
pub(super) type Endpoint = (SocketAddr, Option<String>);

/// The endpoint of a peer: an address of a version of IP that the gateway's own address carries. A link-local address may
/// name its device (RFC 4007, section 11).
pub(super) fn endpoint(entry: &Entry<'_, '_>, listen: SocketAddr) -> Result<Endpoint, Fault> {
    let endpoint = match scoped(entry.text()?) {
        Some((address, Some(zone))) => {
            let is_local = matches!(address, SocketAddr::V6(at) if at.ip().is_unicast_link_local());
            if !is_local {
                return Err(entry.fault("names a device, which only a link-local address, fe80::/10, needs; leave out what follows the %"));
            }
            if !is_device(&zone) {
                return Err(entry.fault("must have the name of a network device behind the %, like \"[fe80::1%eth0]:51820\""));
            }
            (address, Some(zone))
        }
        _ => (socket_address(entry)?, None),
    };
    let (address, _) = &endpoint;
    if address.port() == 0 {
        return Err(entry.fault("must have a port 1 .. 65535"));
    }
    if address.is_ipv6() == listen.is_ipv6() || is_dual(listen) {
        return Ok(endpoint);
    }
    let kind = if listen.is_ipv6() { "IPv6" } else { "IPv4" };
    Err(entry.fault(format!(
        "must be {kind}, as gateway.listen is {listen}; \"[::]:{}\" carries both",
        listen.port()
    )))
}

/// The parts of an address in brackets that names a device, like `[fe80::1%eth0]:51820`.
fn scoped(text: &str) -> Option<Endpoint> {
    let (address, rest) = text.strip_prefix('[')?.split_once('%')?;
    let (zone, port) = rest.rsplit_once("]:")?;
    let address = address.parse::<Ipv6Addr>().ok()?;
    let port = port.parse::<u16>().ok()?;
    Some((SocketAddr::from((address, port)), Some(zone.to_string())))
}

/// Whether a socket that listens there carries both versions of IP.
fn is_dual(listen: SocketAddr) -> bool {
    listen.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
}
