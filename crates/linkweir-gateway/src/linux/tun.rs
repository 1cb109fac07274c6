// SPDX-License-Identifier: BSD-3-Clause
//! Makes the TUN device and gives it addresses and routes. All of it disappears with the process.

use std::io;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::linux::{netlink, taken};

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
    change(RouteNetlinkMessage::SetLink(link), 0)
}

/// Asks the kernel to change something.
fn change(request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    netlink::ask(request, NLM_F_ACK | flags).map(drop)
}

/// Routes through the tunnel's device.
///
/// A route to all addresses is in a table of its own, of the mark's number. Two rules lead there: unmarked packets look in
/// that table, unless the main one has a more specific route. So the tunnel's own datagrams, which have the mark, and the
/// networks that this host is in, go the way they went before. wg-quick does the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routing {
    /// The number of the device.
    pub(crate) device: u32,
    /// The mark of the tunnel's datagrams; it is there if a route to all addresses is.
    pub(crate) mark: Option<u32>,
}

impl Routing {
    /// Routes `net` through the device. The route disappears with the device, but rules do not: see [`Routing::end`].
    ///
    /// # Errors
    /// The kernel's error; a route that exists already is none.
    pub(crate) fn add(&self, net: &IpNet) -> io::Result<()> {
        // Without a number of one's own the kernel makes the same rule again, and a gateway that was killed with all its
        // processes leaves some.
        self.end(net)?;
        let new = RouteNetlinkMessage::NewRoute(self.route(net));
        let rules = self.rules(net).into_iter();
        let all = [new]
            .into_iter()
            .chain(rules.map(RouteNetlinkMessage::NewRule));
        for one in all {
            match change(one, NLM_F_CREATE | NLM_F_EXCL) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    let what = format!("cannot route {net} through the tunnel");
                    return Err(with_cure(&error, &what));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Routes `net` no longer through the device. Routes through other devices stay.
    ///
    /// # Errors
    /// The kernel's error; that there is no such route is none.
    pub(crate) fn remove(&self, net: &IpNet) -> io::Result<()> {
        let route = RouteNetlinkMessage::DelRoute(self.route(net));
        match self.end(net).and_then(|()| change(route, 0)) {
            Err(error) if error.raw_os_error() != Some(nix::libc::ESRCH) => {
                let what = format!("cannot remove the route of {net} through the tunnel");
                Err(with_cure(&error, &what))
            }
            _ => Ok(()),
        }
    }

    /// Removes what stays when the device disappears: the rules, if `net` is all addresses.
    ///
    /// # Errors
    /// The kernel's error; that there are no such rules is none.
    pub(crate) fn end(&self, net: &IpNet) -> io::Result<()> {
        for rule in self.rules(net) {
            match change(RouteNetlinkMessage::DelRule(rule), 0) {
                Err(error) if error.raw_os_error() != Some(nix::libc::ENOENT) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The rules that a route to all addresses needs.
    fn rules(&self, net: &IpNet) -> Vec<RuleMessage> {
        let Some(mark) = self.table(net) else {
            return Vec::new();
        };
        let rule = |flags, attributes| {
            let mut rule = RuleMessage::default();
            rule.header.family = family(net);
            rule.header.action = RuleAction::ToTable;
            rule.header.flags = flags;
            rule.attributes = attributes;
            rule
        };
        let table = |table| RuleAttribute::Table(table);
        vec![
            rule(
                RuleFlags::Invert,
                vec![RuleAttribute::FwMark(mark), table(mark)],
            ),
            // It comes later and so is looked at before.
            rule(
                RuleFlags::empty(),
                vec![RuleAttribute::SuppressPrefixLen(0), table(u32::from(MAIN))],
            ),
        ]
    }

    /// The table of the route to `net`; none: the main one.
    fn table(&self, net: &IpNet) -> Option<u32> {
        self.mark.filter(|_| net.prefix_len() == 0)
    }

    /// The route of `net` through the device.
    fn route(&self, net: &IpNet) -> RouteMessage {
        let mut route = RouteMessage::default();
        route.header.address_family = family(net);
        route.header.destination_prefix_length = net.prefix_len();
        route.header.protocol = RouteProtocol::Static;
        route.header.scope = RouteScope::Link;
        route.header.kind = RouteType::Unicast;
        let destination = match net {
            IpNet::V4(net) => RouteAddress::Inet(net.network()),
            IpNet::V6(net) => RouteAddress::Inet6(net.network()),
        };
        route.attributes = vec![
            RouteAttribute::Destination(destination),
            RouteAttribute::Oif(self.device),
        ];
        match self.table(net) {
            None => route.header.table = MAIN,
            Some(table) => route.attributes.push(RouteAttribute::Table(table)),
        }
        route
    }
}

fn family(net: &IpNet) -> AddressFamily {
    match net {
        IpNet::V4(_) => AddressFamily::Inet,
        IpNet::V6(_) => AddressFamily::Inet6,
    }
}

/// Gives the device of this index an address, as it had before it was down.
///
/// # Errors
/// The kernel's error; that it has the address already is none.
pub(crate) fn add_address(index: u32, net: &IpNet) -> io::Result<()> {
    let mut address = AddressMessage::default();
    address.header.family = family(net);
    address.header.prefix_len = net.prefix_len();
    address.header.index = index;
    address.attributes = vec![
        AddressAttribute::Address(net.addr()),
        AddressAttribute::Local(net.addr()),
    ];
    let new = RouteNetlinkMessage::NewAddress(address);
    match change(new, NLM_F_CREATE | NLM_F_EXCL) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let what = format!("cannot give {net} to the device of the tunnel again");
            Err(with_cure(&error, &what))
        }
        _ => Ok(()),
    }
}
