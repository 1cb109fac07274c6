// SPDX-License-Identifier: BSD-3-Clause
//! The UDP socket outside.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{
    self, bind, recvmsg, setsockopt, sockopt, AddressFamily, ControlMessageOwned, MsgFlags,
    SockFlag, SockType, SockaddrLike, SockaddrStorage,
};

/// Bytes the kernel may hold of what was not read yet.
const RECEIVE_BYTES: usize = 4 << 20;

/// A UDP socket that never blocks, and knows the differentiated services field of what it sends and receives.
pub struct Underlay {
    socket: UdpSocket,
    v6: bool,
    /// Field of the packet before.
    tos: u8,
    /// Room for what comes beside a datagram.
    beside: Vec<u8>,
}

/// A datagram that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its length.
    pub bytes: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// Its differentiated services field.
    pub tos: u8,
}

impl Underlay {
    /// A socket bound to an address.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind(listen: SocketAddr) -> io::Result<Underlay> {
        let v6 = listen.is_ipv6();
        let family = if v6 {
            AddressFamily::Inet6
        } else {
            AddressFamily::Inet
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket: OwnedFd = socket::socket(family, SockType::Datagram, flags, None)?;
        if v6 {
            setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
            setsockopt(&socket, sockopt::Ipv6RecvTClass, &true)?;
        } else {
            setsockopt(&socket, sockopt::IpRecvTos, &true)?;
        }
        // Beyond the system's limit only root may go.
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES)?;
        }
        bind(socket.as_raw_fd(), &SockaddrStorage::from(listen)).map_err(|error| {
            io::Error::other(format!("cannot listen on {listen}: {}", error.desc()))
        })?;
        Ok(Underlay {
            socket: socket.into(),
            v6,
            tos: 0,
            beside: nix::cmsg_space!(i32, i32),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room below; others of the system.
    pub fn send(&mut self, datagram: &[u8], to: SocketAddr, tos: u8) -> io::Result<()> {
        if tos != self.tos {
            if self.v6 {
                setsockopt(&self.socket, sockopt::Ipv6TClass, &i32::from(tos))?;
            } else {
                setsockopt(&self.socket, sockopt::Ipv4Tos, &i32::from(tos))?;
            }
            self.tos = tos;
        }
        self.socket.send_to(datagram, to).map(drop)
    }

    /// Receives a datagram, if there is one.
    ///
    /// # Errors
    /// `WouldBlock` when there is none; others of the system, such as what an ICMP message told of a datagram sent.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut slices = [IoSliceMut::new(buffer)];
        let received = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut slices,
            Some(&mut self.beside),
            MsgFlags::MSG_DONTWAIT,
        )?;
        let mut tos = 0;
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::Ipv4Tos(field) => tos = field,
                ControlMessageOwned::Ipv6TClass(field) => tos = field as u8,
                _ => {}
            }
        }
        let from = received.address.as_ref().and_then(address);
        Ok(Received {
            bytes: received.bytes,
            from: from.ok_or_else(|| io::Error::other("a datagram without a sender"))?,
            tos,
        })
    }
}

impl AsFd for Underlay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn address(raw: &SockaddrStorage) -> Option<SocketAddr> {
    match raw.family()? {
        AddressFamily::Inet => raw.as_sockaddr_in().map(|a| SocketAddr::V4((*a).into())),
        AddressFamily::Inet6 => raw.as_sockaddr_in6().map(|a| SocketAddr::V6((*a).into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_carry_their_field_both_ways() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let mut one = Underlay::bind(listen.parse().unwrap()).unwrap();
            let mut two = Underlay::bind(listen.parse().unwrap()).unwrap();
            let to = two.local().unwrap();
            let mut buffer = [0; 100];
            assert_eq!(
                two.receive(&mut buffer).unwrap_err().kind(),
                io::ErrorKind::WouldBlock
            );
            for (payload, tos) in [(&b"abc"[..], 46 << 2 | 2), (b"", 0), (b"d", 3)] {
                one.send(payload, to, tos).unwrap();
                let received = two.receive(&mut buffer).unwrap();
                let from = one.local().unwrap();
                assert_eq!(
                    received,
                    Received {
                        bytes: payload.len(),
                        from,
                        tos
                    }
                );
                assert_eq!(&buffer[..payload.len()], payload);
            }
        }
    }
}
