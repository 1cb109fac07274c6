// SPDX-License-Identifier: BSD-3-Clause
//! All frames that pass the middle, and which of them are not the tunnel's.

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::{self, JoinHandle};

use linkweir_plane::bytes::packet;
use nix::sys::socket::{
    recv, setsockopt, socket, sockopt, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType,
};
use nix::sys::time::{TimeVal, TimeValLike};

use super::sites::PORT;
use super::Stop;
use crate::place::Namespace;

/// Room for frames that wait to be judged, bytes.
const WAIT_BYTES: usize = 64 << 20;
/// What is read of a frame, bytes.
const HEAD_BYTES: usize = 2048;
/// Most frames that are kept as examples.
const EXAMPLES: usize = 5;

/// What passed.
#[derive(Debug, Default)]
pub struct Seen {
    pub datagrams: u64,
    pub others: u64,
    /// Frames that nobody may send there.
    pub leaks: Vec<String>,
}

impl fmt::Display for Seen {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{} datagrams, {} other frames, {} leaks",
            self.datagrams,
            self.others,
            self.leaks.len()
        )
    }
}

pub struct Capture {
    stop: Stop,
    judge: JoinHandle<Seen>,
}

impl Capture {
    /// Reads all frames of a namespace.
    pub fn start(middle: &Namespace) -> Capture {
        let frames: OwnedFd = middle.inside(|| {
            let (family, kind) = (AddressFamily::Packet, SockType::Raw);
            let all = SockProtocol::EthAll;
            socket(family, kind, SockFlag::SOCK_CLOEXEC, all).expect("root may capture")
        });
        setsockopt(&frames, sockopt::RcvBufForce, &WAIT_BYTES).unwrap();
        setsockopt(
            &frames,
            sockopt::ReceiveTimeout,
            &TimeVal::milliseconds(100),
        )
        .unwrap();
        let stop = Stop::default();
        let stopped = stop.clone();
        let judge = thread::spawn(move || {
            let mut seen = Seen::default();
            let mut frame = [0; HEAD_BYTES];
            while !stopped.is_set() {
                if let Ok(bytes) = recv(frames.as_raw_fd(), &mut frame, MsgFlags::empty()) {
                    seen.judge(&frame[..bytes]);
                }
            }
            seen
        });
        Capture { stop, judge }
    }

    /// What was seen until now.
    pub fn end(self) -> Seen {
        drop(self.stop);
        self.judge.join().expect("the judge of frames ended well")
    }
}

impl Seen {
    fn judge(&mut self, frame: &[u8]) {
        match kind(frame) {
            Kind::Tunnel => self.datagrams += 1,
            Kind::Control => self.others += 1,
            Kind::Foreign => {
                self.others += 1;
                if self.leaks.len() < EXAMPLES {
                    self.leaks.push(describe(frame));
                }
            }
        }
    }
}

/// What a frame is, in a message: addresses and protocol of its packet.
fn describe(frame: &[u8]) -> String {
    match frame.get(14..).and_then(packet::parse) {
        Some(header) => format!(
            "{} to {}, protocol {}, ports {:?}",
            header.source, header.destination, header.protocol, header.ports
        ),
        None => format!("{frame:02x?}"),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Tunnel,
    Control,
    Foreign,
}

/// What a frame of Ethernet holds.
fn kind(frame: &[u8]) -> Kind {
    const ARP: [u8; 2] = [0x08, 0x06];
    const IPV4: [u8; 2] = [0x08, 0x00];
    const IPV6: [u8; 2] = [0x86, 0xdd];
    let Some((head, packet)) = frame.split_at_checked(14) else {
        return Kind::Foreign;
    };
    match [head[12], head[13]] {
        ARP => Kind::Control,
        IPV4 => kind_v4(packet),
        IPV6 => kind_v6(packet),
        _ => Kind::Foreign,
    }
}

fn kind_v4(packet: &[u8]) -> Kind {
    const ICMP: u8 = 1;
    const UDP: u8 = 17;
    let header_bytes = usize::from(packet.first().unwrap_or(&0) & 15) * 4;
    let (Some(protocol), Some(payload)) = (packet.get(9), packet.get(header_bytes..)) else {
        return Kind::Foreign;
    };
    match *protocol {
        UDP if is_of_tunnel(payload) => Kind::Tunnel,
        // Errors about datagrams of the tunnel: unreachable, time exceeded.
        ICMP if [3, 11].contains(payload.first().unwrap_or(&0)) => {
            match payload.get(8..).map(kind_v4) {
                Some(Kind::Tunnel) => Kind::Control,
                _ => Kind::Foreign,
            }
        }
        _ => Kind::Foreign,
    }
}

fn kind_v6(packet: &[u8]) -> Kind {
    const HOP_BY_HOP: u8 = 0;
    const ICMPV6: u8 = 58;
    let message = match packet.get(6) {
        Some(&ICMPV6) => packet.get(40..),
        Some(&HOP_BY_HOP) if packet.get(40) == Some(&ICMPV6) => packet.get(48..),
        _ => None,
    };
    // Groups (RFC 3810) and neighbour discovery (RFC 4861).
    match message.and_then(<[u8]>::first) {
        Some(130..=137 | 143) => Kind::Control,
        _ => Kind::Foreign,
    }
}

fn is_of_tunnel(udp: &[u8]) -> bool {
    let port = |at: usize| udp.get(at..at + 2) == Some(&PORT.to_be_bytes());
    port(0) && port(2)
}
