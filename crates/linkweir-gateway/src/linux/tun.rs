// SPDX-License-Identifier: BSD-3-Clause
//! Makes the TUN device and gives it addresses and routes. All of it disappears with the process.

use std::io;

use ipnet::IpNet;
use netlink_packet_core::{
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL,
    NLM_F_REQUEST,
};
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use tun_rs::{DeviceBuilder, SyncDevice};

/// The main routing table.
const MAIN: u8 = 254;

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
        io::ErrorKind::PermissionDenied => "; run as root or with CAP_NET_ADMIN",
        io::ErrorKind::NotFound => "; /dev/net/tun is missing: load the kernel module tun",
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
    ask(RouteNetlinkMessage::SetLink(link), 0)
}

/// Asks the kernel to change something.
fn ask(request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);

    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&bytes, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
        .map_err(|error| io::Error::other(format!("the kernel's answer: {error}")))?;
    match answer.payload {
        NetlinkPayload::Error(message) if message.code.is_some() => Err(message.to_io()),
        _ => Ok(()),
    }
}

/// Routes `net` through the device of this index. The route disappears with the device.
///
/// # Errors
/// The kernel's error; a route that exists already is none.
pub(crate) fn add_route(index: u32, net: &IpNet) -> io::Result<()> {
    let mut route = RouteMessage::default();
    route.header.address_family = match net {
        IpNet::V4(_) => AddressFamily::Inet,
        IpNet::V6(_) => AddressFamily::Inet6,
    };
    route.header.destination_prefix_length = net.prefix_len();
    route.header.table = MAIN;
    route.header.protocol = RouteProtocol::Static;
    route.header.scope = RouteScope::Link;
    route.header.kind = RouteType::Unicast;
    let destination = match net {
        IpNet::V4(net) => RouteAddress::Inet(net.network()),
        IpNet::V6(net) => RouteAddress::Inet6(net.network()),
    };
    route
        .attributes
        .push(RouteAttribute::Destination(destination));
    route.attributes.push(RouteAttribute::Oif(index));

    match ask(
        RouteNetlinkMessage::NewRoute(route),
        NLM_F_CREATE | NLM_F_EXCL,
    ) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let what = format!("cannot route {net} through the tunnel");
            Err(with_cure(&error, &what))
        }
        _ => Ok(()),
    }
}
