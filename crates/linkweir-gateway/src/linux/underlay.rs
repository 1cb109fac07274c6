// SPDX-License-Identifier: BSD-3-Clause
//! The UDP socket that carries the tunnel.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{
    self, bind, recvmsg, sendmsg, setsockopt, sockopt, AddressFamily, ControlMessage,
    ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrLike, SockaddrStorage,
};

use linkweir_plane::bytes::outbox::{Outbox, Way};

/// Size of the socket's receive buffer, bytes.
const RECEIVE_BYTES: usize = 4 << 20;
/// Most ICMP messages discarded in one call.
const ERRORS: usize = 64;

/// A UDP socket that never blocks, and sends and receives the differentiated services field.
pub struct Underlay {
    socket: UdpSocket,
    v6: bool,
    /// Whether the kernel segments what is sent into datagrams (UDP_SEGMENT).
    segments: bool,
    /// Whether the socket reports when the interface below drops a datagram.
    reports_drops: bool,
    /// The field set for the last datagram.
    tos: u8,
    /// Room for the control messages of a datagram.
    control: Vec<u8>,
}

/// A received datagram, or several of one length from one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its length; if the kernel put several together, their total.
    pub bytes: usize,
    /// Length of each of them but the last.
    pub segment_bytes: usize,
    /// The sender's address.
    pub from: SocketAddr,
    /// Its differentiated services field.
    pub tos: u8,
}

impl Received {
    /// The number of datagrams.
    #[must_use]
    pub fn datagrams(&self) -> usize {
        self.bytes.div_ceil(self.segment_bytes.max(1)).max(1)
    }

    /// Where each of them lies in the buffer.
    pub fn places(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.datagrams()).map(move |at| {
            let begin = at * self.segment_bytes;
            begin..(begin + self.segment_bytes).min(self.bytes)
        })
    }
}

impl Underlay {
    /// A socket bound to an address.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind(listen: SocketAddr) -> io::Result<Underlay> {
        Underlay::bind_with(listen, true)
    }

    /// As [`Underlay::bind`]; without `offloads` every datagram is a system call of its own.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind_with(listen: SocketAddr, offloads: bool) -> io::Result<Underlay> {
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
        // Only root may exceed the system's limit.
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES)?;
        }
        bind(socket.as_raw_fd(), &SockaddrStorage::from(listen)).map_err(|error| {
            io::Error::other(format!("cannot listen on {listen}: {}", error.desc()))
        })?;
        // Kernels before 4.18 cannot segment, and those before 5.0 cannot coalesce: then each datagram is sent and received
        // by itself.
        let segments = offloads && setsockopt(&socket, sockopt::UdpGsoSegment, &0).is_ok();
        if offloads {
            let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        }
        Ok(Underlay {
            socket: socket.into(),
            v6,
            segments,
            reports_drops: false,
            tos: 0,
            control: nix::cmsg_space!(i32, i32, i32),
        })
    }

    /// Limits the bytes that may wait below to about this many, and makes the socket report when the interface drops a
    /// datagram. Datagrams are then sent one by one: if the kernel segmented them behind the socket, a shaper could drop
    /// some of them unreported.
    ///
    /// # Errors
    /// Those of the system, and when it holds fewer bytes than that.
    pub fn limit_below(&mut self, bytes: u32) -> io::Result<()> {
        let bytes = bytes as usize;
        // Only root may exceed the system's limit.
        if setsockopt(&self.socket, sockopt::SndBufForce, &bytes).is_err() {
            setsockopt(&self.socket, sockopt::SndBuf, &bytes)?;
        }
        // The kernel doubles the value, for its own overhead per packet.
        let held_bytes = socket::getsockopt(&self.socket, sockopt::SndBuf)? / 2;
        if held_bytes < bytes {
            return Err(io::Error::other(format!(
                "link.below: the system holds at most {held_bytes} bytes; lower it, or raise net.core.wmem_max"
            )));
        }
        self.segments = false;
        // Without this option the kernel does not report what the interface drops.
        if self.v6 {
            setsockopt(&self.socket, sockopt::Ipv6RecvErr, &true)?;
        } else {
            setsockopt(&self.socket, sockopt::Ipv4RecvErr, &true)?;
        }
        self.reports_drops = true;
        Ok(())
    }

    /// Discards ICMP messages about datagrams sent earlier. Unread, they would wake the thread for ever.
    pub fn discard_errors(&mut self) {
        if !self.reports_drops {
            return;
        }
        let mut byte = [0];
        for _ in 0..ERRORS {
            let mut slices = [IoSliceMut::new(&mut byte)];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let fd = self.socket.as_raw_fd();
            if recvmsg::<SockaddrStorage>(fd, &mut slices, None, flags).is_err() {
                return;
            }
        }
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
        self.set_tos(tos)?;
        self.socket.send_to(datagram, to).map(drop)
    }

    /// Sends what an outbox holds until there is no room below; `lost` is called with what could not be sent: the peer, the
    /// number of datagrams and the reason.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room below, `ENOBUFS` when the interface dropped a datagram for that reason and
    /// [`Underlay::limit_below`] was called. What is left stays in the outbox.
    pub fn send_all(
        &mut self,
        outbox: &mut Outbox,
        mut lost: impl FnMut(usize, usize, &'static str),
    ) -> io::Result<()> {
        while let Some(call) = outbox.call() {
            let Way { station, to, tos } = call.way;
            let count = if self.segments { call.datagrams } else { 1 };
            let mut sent = self.send_call(outbox, count, to, tos);
            let error = sent.as_ref().err().and_then(io::Error::raw_os_error);
            let full = [Some(nix::libc::EAGAIN), Some(nix::libc::ENOBUFS)];
            if self.reports_drops && error.is_some() && !full.contains(&error) {
                // The error may be about an earlier datagram, so the call is tried again.
                sent = self.send_call(outbox, count, to, tos);
            }
            if count > 1 {
                let error = sent.as_ref().err().and_then(io::Error::raw_os_error);
                // EIO: the device below cannot segment, and says so late. The other errors are about this call alone.
                self.segments &= error != Some(nix::libc::EIO);
                if let Some(nix::libc::EIO | nix::libc::EINVAL | nix::libc::EMSGSIZE) = error {
                    outbox.scatter();
                    continue;
                }
            }
            if let Err(error) = sent {
                let reason = match error.raw_os_error() {
                    Some(nix::libc::EAGAIN) => return Err(error),
                    Some(nix::libc::ENOBUFS) if self.reports_drops => return Err(error),
                    Some(nix::libc::EMSGSIZE) => "too_big",
                    _ => "underlay_down",
                };
                lost(station, count, reason);
                outbox.given_up(count);
            } else {
                outbox.sent(count);
            }
        }
        Ok(())
    }

    fn set_tos(&mut self, tos: u8) -> io::Result<()> {
        if tos != self.tos {
            if self.v6 {
                setsockopt(&self.socket, sockopt::Ipv6TClass, &i32::from(tos))?;
            } else {
                setsockopt(&self.socket, sockopt::Ipv4Tos, &i32::from(tos))?;
            }
            self.tos = tos;
        }
        Ok(())
    }

    /// Sends the first `count` datagrams of the next call.
    fn send_call(
        &mut self,
        outbox: &Outbox,
        count: usize,
        to: SocketAddr,
        tos: u8,
    ) -> io::Result<()> {
        self.set_tos(tos)?;
        let parts: Vec<IoSlice<'_>> = outbox.parts(count);
        let segment = outbox.call().map_or(0, |call| call.segment_bytes) as u16;
        let cut = [ControlMessage::UdpGsoSegments(&segment)];
        let control = if count > 1 { &cut[..] } else { &[] };
        let to = SockaddrStorage::from(to);
        let flags = MsgFlags::MSG_DONTWAIT;
        sendmsg(self.socket.as_raw_fd(), &parts, control, flags, Some(&to))?;
        Ok(())
    }

    /// Receives a datagram, if there is one.
    ///
    /// # Errors
    /// `WouldBlock` when there is none; others of the system, such as an ICMP message about a datagram sent earlier.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut slices = [IoSliceMut::new(buffer)];
        let received = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut slices,
            Some(&mut self.control),
            MsgFlags::MSG_DONTWAIT,
        )?;
        let (mut tos, mut segment_bytes) = (0, received.bytes);
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::Ipv4Tos(field) => tos = field,
                ControlMessageOwned::Ipv6TClass(field) => tos = field as u8,
                ControlMessageOwned::UdpGroSegments(bytes) if bytes > 0 => {
                    segment_bytes = bytes as usize;
                }
                _ => {}
            }
        }
        let from = received.address.as_ref().and_then(address);
        Ok(Received {
            bytes: received.bytes,
            segment_bytes,
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
    fn datagrams_keep_their_services_field_both_ways() {
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
                        segment_bytes: payload.len(),
                        from,
                        tos
                    }
                );
                assert_eq!(&buffer[..payload.len()], payload);
            }
        }
    }

    /// Everything received until `count` datagrams are complete.
    fn receive_all(underlay: &mut Underlay, count: usize) -> (Vec<Vec<u8>>, usize) {
        let mut buffer = vec![0; 65_536];
        let (mut datagrams, mut calls) = (Vec::new(), 0);
        while datagrams.len() < count {
            let received = underlay.receive(&mut buffer).unwrap();
            assert_eq!(received.tos, 184);
            datagrams.extend(received.places().map(|place| buffer[place].to_vec()));
            calls += 1;
        }
        let more = underlay.receive(&mut buffer).map_err(|error| error.kind());
        assert_eq!(more, Err(io::ErrorKind::WouldBlock));
        (datagrams, calls)
    }

    #[test]
    fn batches_arrive_unchanged_with_and_without_offloads() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            for (sends, receives) in [(true, true), (true, false), (false, true), (false, false)] {
                let listen = listen.parse().unwrap();
                let mut one = Underlay::bind_with(listen, sends).unwrap();
                let mut two = Underlay::bind_with(listen, receives).unwrap();
                let way = Way {
                    station: 3,
                    to: two.local().unwrap(),
                    tos: 184,
                };
                let mut outbox = Outbox::default();
                let sent: Vec<Vec<u8>> = (0..100_u8)
                    .map(|at| vec![at; if at % 30 == 29 { 700 } else { 1000 }])
                    .collect();
                for datagram in &sent {
                    outbox.add_clear(way, (&datagram[..]).into());
                }
                one.send_all(&mut outbox, |_, _, reason| panic!("lost: {reason}"))
                    .unwrap();
                assert!(outbox.is_empty());
                let (received, calls) = receive_all(&mut two, sent.len());
                assert_eq!(received, sent);
                if !receives {
                    assert_eq!(calls, sent.len(), "one by one");
                } else if sends && two.segments {
                    assert!(calls < sent.len() / 5, "together: {calls}");
                }
            }
        }
    }

    #[test]
    fn a_limit_below_is_applied_or_refused() {
        let mut one = Underlay::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        // Beyond what the system allows by itself.
        let most: usize = std::fs::read_to_string("/proc/sys/net/core/wmem_max")
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let bytes = most + 100_000;
        match one.limit_below(bytes as u32) {
            Ok(()) => {
                let held_bytes = socket::getsockopt(&one.socket, sockopt::SndBuf).unwrap();
                assert_eq!(held_bytes, 2 * bytes);
                assert!(!one.segments);
            }
            Err(error) => assert!(error.to_string().contains("net.core.wmem_max"), "{error}"),
        }
    }

    #[test]
    fn refused_datagrams_are_reported_and_the_rest_is_sent() {
        let listen = "127.0.0.1:0".parse().unwrap();
        let mut one = Underlay::bind(listen).unwrap();
        let mut two = Underlay::bind(listen).unwrap();
        let way = |station, to| Way {
            station,
            to,
            tos: 184,
        };
        let mut outbox = Outbox::default();
        let here = two.local().unwrap();
        // Nobody sends to port 0.
        let nowhere = "127.0.0.1:0".parse().unwrap();
        outbox.add_clear(way(1, here), (&[1; 10][..]).into());
        for _ in 0..3 {
            outbox.add_clear(way(2, nowhere), (&[2; 10][..]).into());
        }
        outbox.add_clear(way(1, here), (&[3; 10][..]).into());
        let mut lost = Vec::new();
        one.send_all(&mut outbox, |station, count, reason| {
            lost.push((station, count, reason))
        })
        .unwrap();
        assert_eq!(receive_all(&mut two, 2).0, [[1; 10], [3; 10]]);
        assert!(lost
            .iter()
            .all(|(station, _, reason)| (*station, *reason) == (2, "underlay_down")));
        assert_eq!(lost.iter().map(|(_, count, _)| count).sum::<usize>(), 3);
    }
}
