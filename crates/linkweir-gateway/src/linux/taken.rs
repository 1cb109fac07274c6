// SPDX-License-Identifier: BSD-3-Clause
//! Whether the name of a device is free. The system would hand out a persistent TUN device of that name, with all that
//! another program set on it.

use std::io;

use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};
use netlink_packet_route::RouteNetlinkMessage;

use crate::linux::netlink;

/// Refuses the name of a device that exists.
///
/// # Errors
/// What has the name, and what to do.
pub(crate) fn refuse(name: &str) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.attributes = vec![LinkAttribute::IfName(name.to_string())];
    let answer = netlink::ask(RouteNetlinkMessage::GetLink(link), 0);
    let Ok(NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link))) = answer else {
        // There is none. If it cannot be asked for, making the device will tell.
        return Ok(());
    };
    let kind = link.attributes.iter().find_map(|one| match one {
        LinkAttribute::LinkInfo(infos) => infos.iter().find_map(|info| match info {
            LinkInfo::Kind(kind) => Some(kind),
            _ => None,
        }),
        _ => None,
    });
    let what = match kind {
        Some(InfoKind::Tun) => {
            "a TUN device, which another program uses or has made persistent".to_string()
        }
        Some(kind) => format!("of the kind {kind}"),
        None => "of the system's own".to_string(),
    };
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!(
            "cannot make the TUN device {name}: there is a device of this name, {what}; choose another name, or remove it \
             with `ip link delete {name}`"
        ),
    ))
}
