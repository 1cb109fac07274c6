// SPDX-License-Identifier: BSD-3-Clause
//! Sends ICMP echo requests to hosts that answer them, and reads the answers.
//!
//! The sockets are those of unprivileged ping, if the system allows them to this group (`net.ipv4.ping_group_range`), or else
//! raw ones, which need `CAP_NET_RAW` once.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{
    recvfrom, sendto, setsockopt, socket, sockopt, AddressFamily, MsgFlags, SockFlag, SockProtocol,
    SockType, SockaddrIn, SockaddrIn6, SockaddrStorage,
};

/// ICMP's request and answer, of both versions of IP.
const REQUEST: [u8; 2] = [8, 128];
const ANSWER: [u8; 2] = [0, 129];
/// Type, code, checksum, identifier, number, and then a key and the time.
const BYTES: usize = 24;
/// What the headers of Ethernet and of both versions of IP take on the link, bytes.
const HEADERS_BYTES: [u32; 2] = [14 + 20, 14 + 40];

/// A socket for the hosts of one version of IP.
struct Icmp {
    fd: OwnedFd,
    raw: bool,
}

/// Sockets for echoes.
pub(crate) struct Echo {
    hosts: Vec<IpAddr>,
    /// For IPv4 and IPv6.
    sockets: [Option<Icmp>; 2],
    /// What tells the answers from those to other programs, and from forged ones.
    key: [u8; 8],
    number: u16,
}

impl Echo {
    /// Opens what it takes to ask these hosts through this device. Packets have this priority, which HTB takes for a class.
    ///
    /// # Errors
    /// When the sockets are refused.
    pub(crate) fn open(hosts: &[IpAddr], device: &str, priority: u32) -> io::Result<Echo> {
        let mut key = [0; 8];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        let open = |six: bool| -> io::Result<Option<Icmp>> {
            if !hosts.iter().any(|host| host.is_ipv6() == six) {
                return Ok(None);
            }
            let icmp = Icmp::open(six)?;
            setsockopt(&icmp.fd, sockopt::Priority, &(priority as i32))?;
            Ok(Some(icmp))
        };
        let echo = Echo {
            hosts: hosts.to_vec(),
            sockets: [open(false)?, open(true)?],
            key,
            number: 0,
        };
        echo.bind(device)?;
        Ok(echo)
    }

    /// Sends through this device from now on. A device that was made again is another one, whatever its name is.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn bind(&self, device: &str) -> io::Result<()> {
        let name = OsString::from(device.to_string());
        for socket in self.sockets() {
            setsockopt(&socket, sockopt::BindToDevice, &name)?;
        }
        Ok(())
    }

    /// What an echo to this host takes on an Ethernet link, bytes; without one the first host counts.
    pub(crate) fn wire_bytes(&self, at: Option<usize>) -> u32 {
        let host = self.hosts.get(at.unwrap_or(0));
        BYTES as u32 + HEADERS_BYTES[usize::from(host.is_some_and(IpAddr::is_ipv6))]
    }

    /// The sockets to wait for.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().flatten().map(|icmp| icmp.fd.as_fd())
    }

    /// Asks the host at this place of the list. An error of the network counts as a lost packet.
    pub(crate) fn send(&mut self, at: usize, sent_ns: u64) {
        let host = self.hosts[at];
        let six = usize::from(host.is_ipv6());
        let Some(icmp) = &self.sockets[six] else {
            return;
        };
        self.number = self.number.wrapping_add(1);
        let mut packet = [0; BYTES];
        packet[0] = REQUEST[six];
        packet[4..6].copy_from_slice(&self.key[..2]);
        packet[6..8].copy_from_slice(&self.number.to_be_bytes());
        packet[8..16].copy_from_slice(&self.key);
        packet[16..].copy_from_slice(&sent_ns.to_be_bytes());
        // The kernel computes ICMPv6's checksum, which covers addresses.
        let sum = if six == 0 { checksum(&packet) } else { 0 };
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        let to = SocketAddr::new(host, 0);
        let fd = icmp.fd.as_raw_fd();
        let _ = match to {
            SocketAddr::V4(to) => sendto(fd, &packet, &SockaddrIn::from(to), MsgFlags::empty()),
            SocketAddr::V6(to) => sendto(fd, &packet, &SockaddrIn6::from(to), MsgFlags::empty()),
        };
    }

    /// The next answer: which host it is from, and when the request was sent, ns; none if there is no more.
    pub(crate) fn receive(&self) -> Option<(usize, u64)> {
        let mut buffer = [0; 256];
        for (six, icmp) in self.sockets.iter().enumerate() {
            let Some(icmp) = icmp else { continue };
            // An error is that of a request, which is lost then; the next call reads on.
            while let Ok((count, from)) =
                recvfrom::<SockaddrStorage>(icmp.fd.as_raw_fd(), &mut buffer)
            {
                let packet = &buffer[..count];
                let skipped = match packet.first() {
                    // A raw socket of IPv4 reads the header, too.
                    Some(first) if icmp.raw && six == 0 => usize::from(first & 15) * 4,
                    _ => 0,
                };
                let from = from.and_then(|from| address(&from));
                let at = self.hosts.iter().position(|host| Some(*host) == from);
                let sent_ns = packet
                    .get(skipped..)
                    .and_then(|packet| read(packet, ANSWER[six], self.key));
                if let (Some(at), Some(sent_ns)) = (at, sent_ns) {
                    return Some((at, sent_ns));
                }
            }
        }
        None
    }
}

impl Icmp {
    fn open(six: bool) -> io::Result<Icmp> {
        let (family, protocol) = if six {
            (AddressFamily::Inet6, SockProtocol::IcmpV6)
        } else {
            (AddressFamily::Inet, SockProtocol::Icmp)
        };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        if let Ok(fd) = socket(family, SockType::Datagram, flags, protocol) {
            return Ok(Icmp { fd, raw: false });
        }
        let fd = socket(family, SockType::Raw, flags, protocol).map_err(|error| {
            let message = format!(
                "cannot send echo requests: {error}; run as root or with CAP_NET_RAW, or allow ping to this group with \
                 sysctl net.ipv4.ping_group_range"
            );
            io::Error::new(io::Error::from(error).kind(), message)
        })?;
        Ok(Icmp { fd, raw: true })
    }
}

fn address(from: &SockaddrStorage) -> Option<IpAddr> {
    let four = from.as_sockaddr_in().map(|from| IpAddr::V4(from.ip()));
    four.or_else(|| from.as_sockaddr_in6().map(|from| IpAddr::V6(from.ip())))
}

/// The time in an answer to a request of ours.
fn read(packet: &[u8], kind: u8, key: [u8; 8]) -> Option<u64> {
    if packet.len() != BYTES || packet[..2] != [kind, 0] || packet[8..16] != key {
        return None;
    }
    packet[16..].try_into().ok().map(u64::from_be_bytes)
}

/// The checksum of RFC 1071.
fn checksum(packet: &[u8]) -> u16 {
    let mut sum: u32 = packet
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // RFC 1071, section 3: 0001 f203 f4f5 f6f7 add up to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&bytes), !0xddf2);
    }

    #[test]
    fn only_answers_to_this_process_count() {
        let key = *b"thisone!";
        let mut packet = [0; BYTES];
        packet[8..16].copy_from_slice(&key);
        packet[16..].copy_from_slice(&77_u64.to_be_bytes());
        assert_eq!(read(&packet, 0, key), Some(77));
        assert_eq!(read(&packet, 129, key), None, "another type");
        assert_eq!(read(&packet, 0, *b"another!"), None);
        assert_eq!(read(&packet[..BYTES - 1], 0, key), None);
        assert_eq!(read(&[], 0, key), None);
    }
}
