// SPDX-License-Identifier: BSD-3-Clause
//! Questions to the kernel about devices, addresses and routes.

use std::io;

use netlink_packet_core::{
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Most requests sent in one call: the answers to so many fit into the socket's memory.
const TOGETHER: usize = 64;

/// Asks the kernel with these flags besides that of a request; its answer.
///
/// # Errors
/// What the kernel refuses, and those of the system.
pub(super) fn ask(
    request: RouteNetlinkMessage,
    flags: u16,
) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
    let socket = connected()?;
    socket.send(&written(request, flags), 0)?;
    let (answer, _) = socket.recv_from_full()?;
    match parsed(&answer)? {
        NetlinkPayload::Error(message) if message.code.is_some() => Err(message.to_io()),
        payload => Ok(payload),
    }
}

/// Asks the kernel to change several things; its answer to each, in the same order.
///
/// # Errors
/// Those of the system.
pub(super) fn change_all(
    requests: Vec<(RouteNetlinkMessage, u16)>,
) -> io::Result<Vec<io::Result<()>>> {
    let socket = connected()?;
    // Without the requests in them, answers take less memory. Kernels before 4.3 cannot leave them out.
    let _ = socket.set_cap_ack(true);
    let mut answers = Vec::with_capacity(requests.len());
    let mut left = requests.into_iter();
    loop {
        let bytes: Vec<Vec<u8>> = left
            .by_ref()
            .take(TOGETHER)
            .map(|(request, flags)| written(request, NLM_F_ACK | flags))
            .collect();
        if bytes.is_empty() {
            return Ok(answers);
        }
        socket.send(&bytes.concat(), 0)?;
        let until = answers.len() + bytes.len();
        while answers.len() < until {
            let (together, _) = socket.recv_from_full()?;
            for answer in split(&together) {
                if let NetlinkPayload::Error(message) = parsed(answer)? {
                    answers.push(match message.code {
                        Some(_) => Err(message.to_io()),
                        None => Ok(()),
                    });
                }
            }
        }
    }
}

/// Asks the kernel for all there is of a kind, and calls `each` with it.
///
/// # Errors
/// What the kernel refuses, and those of the system.
pub(super) fn dump(
    request: RouteNetlinkMessage,
    mut each: impl FnMut(RouteNetlinkMessage),
) -> io::Result<()> {
    let socket = connected()?;
    // The kernel then keeps to a table that is asked for. Kernels before 4.20 answer with all.
    let _ = socket.set_netlink_get_strict_chk(true);
    socket.send(&written(request, NLM_F_DUMP), 0)?;
    loop {
        let (together, _) = socket.recv_from_full()?;
        for answer in split(&together) {
            match parsed(answer) {
                Ok(NetlinkPayload::Done(_)) => return Ok(()),
                Ok(NetlinkPayload::Error(message)) => return Err(message.to_io()),
                Ok(NetlinkPayload::InnerMessage(message)) => each(message),
                // What this program cannot read is nothing that it made.
                _ => {}
            }
        }
    }
}

fn connected() -> io::Result<Socket> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

fn written(request: RouteNetlinkMessage, flags: u16) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn parsed(bytes: &[u8]) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
    NetlinkMessage::deserialize(bytes)
        .map(|message| message.payload)
        .map_err(|error| io::Error::other(format!("the kernel's answer: {error}")))
}

/// The messages that came together. Each begins with its length, and at a multiple of four bytes.
pub(super) fn split(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let one = bytes.get(..length).filter(|one| !one.is_empty())?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_came_together_are_parted() {
        let message = |length: u32, byte: u8| {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.resize((length as usize).next_multiple_of(4), byte);
            bytes
        };
        let together = [message(6, 1), message(8, 2)].concat();
        let parts: Vec<&[u8]> = split(&together).collect();
        assert_eq!(parts, [&together[..6], &together[8..]]);
        for rubbish in [&[][..], &[0, 0, 0, 0, 7], &[1, 0], &message(9, 0)[..8]] {
            assert_eq!(split(rubbish).count(), 0, "{rubbish:?}");
        }
    }
}
