// SPDX-License-Identifier: BSD-3-Clause
//! Which device leads to an address, and when that may have changed.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::Socket;

use crate::linux::netlink;

/// Groups of messages about devices, addresses and routes (linux/rtnetlink.h): RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR,
/// RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV6_ROUTE.
pub(super) const OTHER_GROUPS: [u32; 5] = [1, 5, 7, 9, 11];
/// Those about rules: RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE.
pub(super) const RULE_GROUPS: [u32; 2] = [8, 19];
/// Messages about addresses of IPv6: RTNLGRP_IPV6_IFADDR.
pub(super) const V6_ADDRESS_GROUP: u32 = 9;
/// Most messages taken in one call, and room for one, bytes.
const MESSAGES: usize = 256;
const MESSAGE_BYTES: usize = 8192;

/// The number of the device through which the system sends datagrams with this mark to an address, `from` an address of this
/// end or any.
///
/// # Errors
/// Those of the system; there may be no such device.
pub(crate) fn device_to(to: IpAddr, from: Option<IpAddr>, mark: Option<u32>) -> io::Result<u32> {
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    };
    let (family, bits) = match to {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    let mut route = RouteMessage::default();
    route.header.address_family = family;
    route.header.destination_prefix_length = bits;
    route.attributes = vec![RouteAttribute::Destination(address(to))];
    if let Some(from) = from {
        route.header.source_prefix_length = bits;
        route.attributes.push(RouteAttribute::Source(address(from)));
    }
    route.attributes.extend(mark.map(RouteAttribute::Mark));
    let none = || io::Error::from(io::ErrorKind::NetworkUnreachable);
    match netlink::ask(RouteNetlinkMessage::GetRoute(route), 0)? {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => {
            let device = route.attributes.iter().find_map(|one| match one {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            });
            device.ok_or_else(none)
        }
        _ => Err(none()),
    }
}

/// Whether the device of this number is up.
///
/// # Errors
/// When it has gone.
pub(crate) fn is_up(index: u32) -> io::Result<bool> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    match netlink::ask(RouteNetlinkMessage::GetLink(link), 0)? {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
            Ok(link.header.flags.contains(LinkFlags::Up))
        }
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Whether the device of this number can send: it is up, and what it is connected to is there (IFF_LOWER_UP).
pub(crate) fn carries(index: u32) -> bool {
    let mut link = LinkMessage::default();
    link.header.index = index;
    let answer = netlink::ask(RouteNetlinkMessage::GetLink(link), 0);
    let Ok(NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link))) = answer else {
        return false;
    };
    link.header
        .flags
        .contains(LinkFlags::Up | LinkFlags::LowerUp)
}

/// The number of the device of this name. If there is none, a number that no device has, so that nothing is sent elsewhere.
pub(crate) fn number_or_none(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).unwrap_or(i32::MAX as u32)
}

/// The devices, or `all`, whose packets of IPv4 the system drops if it would not answer through the same device
/// (net.ipv4.conf.*.rp_filter = 1). Their answers to marked datagrams are dropped where unmarked ones are routed elsewhere.
pub(crate) fn with_strict_reverse_paths() -> Vec<String> {
    let Ok(places) = std::fs::read_dir("/proc/sys/net/ipv4/conf") else {
        return Vec::new();
    };
    let names = places.filter_map(|place| place.ok()?.file_name().into_string().ok());
    let strict = |name: &String| {
        let path = format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
        std::fs::read_to_string(path).is_ok_and(|value| value.trim() == "1")
    };
    let mut strict: Vec<String> = names
        .filter(|name| name != "default" && name != "lo" && strict(name))
        .collect();
    strict.sort_unstable();
    strict
}

/// Becomes readable when a device, an address or a route of the system changes.
pub(crate) struct Changes {
    socket: Socket,
}

impl Changes {
    /// # Errors
    /// Those of the system.
    pub(crate) fn new() -> io::Result<Changes> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        for group in OTHER_GROUPS.into_iter().chain(RULE_GROUPS) {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Changes { socket })
    }

    /// Takes what was told; returns whether the device of this number was down meanwhile.
    pub(crate) fn take(&mut self, device: u32) -> bool {
        let mut room = vec![0; MESSAGE_BYTES];
        let mut was_down = false;
        for _ in 0..MESSAGES {
            match self.socket.recv(&mut &mut room[..], 0) {
                Ok(bytes) => was_down |= tells_down(&room[..bytes.min(MESSAGE_BYTES)], device),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // There was more to tell than the system keeps.
                Err(_) => {}
            }
        }
        was_down
    }
}

/// Whether a message says that the device of this number is down.
fn tells_down(message: &[u8], device: u32) -> bool {
    let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(message);
    match message.map(|message| message.payload) {
        Ok(NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link))) => {
            link.header.index == device && !link.header.flags.contains(LinkFlags::Up)
        }
        _ => false,
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_to_this_host_is_found() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            // The first device of every network namespace is its loopback.
            for from in [None, Some(address)] {
                assert_eq!(device_to(address, from, None).unwrap(), 1, "{address}");
            }
        }
        let nowhere = "192.0.2.77".parse().unwrap();
        assert!(
            device_to("127.0.0.1".parse().unwrap(), Some(nowhere), None).is_err(),
            "no address of this host"
        );
    }
}
