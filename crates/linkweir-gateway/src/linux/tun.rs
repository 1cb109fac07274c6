// SPDX-License-Identifier: BSD-3-Clause
//! Makes TUN devices. They disappear with the process.

use std::io;

use caps::Capability;
use ipnet::IpNet;
use netlink_packet_core::NLM_F_ACK;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::RouteNetlinkMessage;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::linux::{netlink, privileges, taken};

/// Makes a device that is up, never blocks, and has these addresses.
///
/// # Errors
/// What went wrong and, where it is known, what to do.
pub(crate) fn create(name: &str, mtu: u32, addresses: &[IpNet]) -> io::Result<SyncDevice> {
    create_with(name, mtu, addresses, false)
}

/// As [`create`], with the kernel's offloads if they are wanted and available: `tcp_gso` and `udp_gso` of the device say
/// which.
///
/// # Errors
/// As those of [`create`].
pub(crate) fn create_with(
    name: &str,
    mtu: u32,
    addresses: &[IpNet],
    offloads: bool,
) -> io::Result<SyncDevice> {
    taken::refuse(name)?;
    let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
    let build = |offloads| {
        let builder = DeviceBuilder::new().name(name).mtu(mtu);
        let builder = builder.with(|builder| {
            let _ = builder.offload(offloads);
        });
        builder.build_sync()
    };
    let device = match build(offloads) {
        Err(_) if offloads => build(false),
        built => built,
    };
    let device =
        device.map_err(|error| with_cure(&error, &format!("cannot make the TUN device {name}")))?;
    for net in addresses {
        let added = match net {
            IpNet::V4(net) => device.add_address_v4(net.addr(), net.prefix_len()),
            IpNet::V6(net) => device.add_address_v6(net.addr(), net.prefix_len()),
        };
        added.map_err(|error| with_cure(&error, &format!("cannot give {net} to {name}")))?;
    }
    device.set_nonblocking(true)?;
    Ok(device)
}

fn with_cure(error: &io::Error, what: &str) -> io::Error {
    let cure = match error.kind() {
        io::ErrorKind::PermissionDenied if privileges::has(Capability::CAP_NET_ADMIN) => {
            "; this process has CAP_NET_ADMIN, so something else forbids it: allow it the device /dev/net/tun (in a \
             container --device /dev/net/tun, in a unit DeviceAllow=/dev/net/tun rw)"
        }
        io::ErrorKind::PermissionDenied => "; run as root or with CAP_NET_ADMIN",
        io::ErrorKind::NotFound => "; /dev/net/tun is missing: load the kernel module tun (in a container --device /dev/net/tun)",
        io::ErrorKind::ResourceBusy => "; another program has it: choose another name or end that",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{what}: {error}{cure}"))
}

/// Limits the super-packets that the system hands out through the device of this index to `bytes`.
///
/// # Errors
/// The kernel's error.
pub(crate) fn limit_super_packets(index: u32, bytes: u32) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.attributes.push(LinkAttribute::GsoMaxSize(bytes));
    netlink::ask(RouteNetlinkMessage::SetLink(link), NLM_F_ACK).map(drop)
}
