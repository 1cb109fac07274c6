// SPDX-License-Identifier: BSD-3-Clause
//! Names and addresses: words, devices, sockets and networks.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use linkweir_config::reader::Entry;
use linkweir_config::Fault;

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
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || name.len() > 15 || !name.chars().all(plain) || name.starts_with('.') {
        return Err(
            entry.fault("must be the name of a network device: 1 .. 15 letters, digits, _, - or .")
        );
    }
    Ok(name.to_string())
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

/// Addresses with prefix lengths.
pub(super) fn nets(entry: &Entry<'_, '_>) -> Result<Vec<IpNet>, Fault> {
    const MOST: usize = 1024;
    let net = |entry: &Entry<'_, '_>| {
        let text = entry.text()?;
        let net = text.parse::<IpNet>();
        net.or_else(|_| text.parse().map(|address: IpAddr| address.into()))
            .map_err(|_| {
                entry.fault(
                    "must be an address with a prefix length, like \"10.0.0.0/8\" or \"fd00::/8\"",
                )
            })
    };
    if entry.is_list() {
        entry.list(MOST)?.iter().map(net).collect()
    } else {
        Ok(vec![net(entry)?])
    }
}
