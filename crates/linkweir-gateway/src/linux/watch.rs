// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's messages about what changes in the system's network.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::Socket;

use crate::linux::netlink;
use crate::linux::paths::{OTHER_GROUPS, RULE_GROUPS};

/// Room for one message, bytes.
const MESSAGE_BYTES: usize = 8192;
/// Memory for messages that wait, bytes.
const WAITING_BYTES: u32 = 1 << 20;
/// Most messages taken in one call.
const MESSAGES: usize = 4096;

/// Receives them. It becomes readable when there is one.
pub(crate) struct Watch {
    socket: Socket,
}

impl Watch {
    /// Messages about rules.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn of_rules() -> io::Result<Watch> {
        Watch::of(&RULE_GROUPS)
    }

    /// Messages about devices, addresses and routes.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn of_rest() -> io::Result<Watch> {
        Watch::of(&OTHER_GROUPS)
    }

    fn of(groups: &[u32]) -> io::Result<Watch> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        for group in groups {
            socket.add_membership(*group)?;
        }
        socket.set_non_blocking(true)?;
        // It works with the system's default, too: if messages are lost, everything is compared.
        let _ = socket.set_rx_buf_sz(WAITING_BYTES);
        Ok(Watch { socket })
    }

    /// Calls `each` with the messages that came; none: some were lost.
    pub(crate) fn take(&self, mut each: impl FnMut(Option<RouteNetlinkMessage>)) {
        let mut room = vec![0; MESSAGE_BYTES];
        for _ in 0..MESSAGES {
            match self.socket.recv(&mut &mut room[..], 0) {
                Ok(bytes) => {
                    for one in netlink::split(&room[..bytes.min(MESSAGE_BYTES)]) {
                        let message = NetlinkMessage::deserialize(one);
                        if let Ok(NetlinkPayload::InnerMessage(message)) =
                            message.map(|message| message.payload)
                        {
                            each(Some(message));
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => each(None),
            }
        }
        // More may wait. The socket is still readable then.
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
