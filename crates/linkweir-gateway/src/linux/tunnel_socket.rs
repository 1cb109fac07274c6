// SPDX-License-Identifier: BSD-3-Clause
//! The UDP socket that carries the tunnel.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    self, bind, recvmsg, sendmsg, setsockopt, sockopt, AddressFamily, ControlMessage,
    ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrLike, SockaddrStorage,
};

use linkweir_plane::bytes::outbox::{Destination, Outbox, Source};

use crate::linux::journal::log;
use crate::linux::paths;

/// Size of the socket's receive buffer, bytes.
const RECEIVE_BYTES: usize = 4 << 20;
/// The reason of a datagram that the system refused to send.
const UNDERLAY_DOWN: &str = "underlay_down";
/// Most ICMP messages discarded in one call.
const ERRORS: usize = 64;

/// A UDP socket that never blocks, and sends and receives the differentiated services field.
pub struct TunnelSocket {
    socket: UdpSocket,
    v6: bool,
    /// Whether a socket of IPv6 carries IPv4, too.
    dual: bool,
    /// Whether the kernel segments what is sent into datagrams (UDP_SEGMENT).
    segments: bool,
    /// Whether the socket reports when the interface below drops a datagram.
    reports_drops: bool,
    /// Whether the socket takes what is sent to any address of this end, so that the address to send from must be named.
    any_address: bool,
    /// The only device that datagrams pass, and its number; none: any.
    device: Option<(String, u32)>,
    /// The number of the tunnel's own device, which nothing may come through.
    own: Option<u32>,
    /// An address of this end that is gone: the system chooses another.
    gone: Option<IpAddr>,
    /// The field set for the last datagram of IPv4, and of IPv6.
    tos: [u8; 2],
    /// Room for the control messages of a datagram.
    control: Vec<u8>,
}

/// Whether a datagram that was not sent says nothing about its way: only a queue was full, it was too long, or a rule of the
/// firewall refuses it.
pub fn is_passing(error: &io::Error) -> bool {
    use nix::libc::{EAGAIN, EMSGSIZE, ENOBUFS, EPERM};
    let number = error.raw_os_error();
    number.is_none_or(|number| [EAGAIN, EMSGSIZE, ENOBUFS, EPERM].contains(&number))
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
    /// Where it came in, if the socket is bound to no address.
    pub to: Option<Local>,
    /// Whether it came through another device than the only one, or through the tunnel's own.
    pub is_elsewhere: bool,
    /// Its differentiated services field.
    pub tos: u8,
}

/// An address of this end, and the number of the device that a datagram to it came in through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// The address.
    pub address: IpAddr,
    /// The device.
    pub device: u32,
}

impl From<Local> for Source {
    /// What answers to a datagram that came in there are sent from.
    fn from(local: Local) -> Source {
        Source {
            address: Some(local.address),
            device: 0,
        }
    }
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

impl TunnelSocket {
    /// A socket bound to an address.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind(listen: SocketAddr) -> io::Result<TunnelSocket> {
        TunnelSocket::bind_with(listen, true)
    }

    /// As [`Underlay::bind`]; without `offloads` every datagram is a system call of its own.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind_with(listen: SocketAddr, offloads: bool) -> io::Result<TunnelSocket> {
        let any_address = listen.ip().is_unspecified();
        // A kernel without IPv6 still carries the IPv4 of a socket for both.
        let has_v6 = socket::socket(
            AddressFamily::Inet6,
            SockType::Datagram,
            SockFlag::empty(),
            None,
        );
        let none = has_v6.is_err_and(|error| error == Errno::EAFNOSUPPORT);
        let listen = if none && any_address && listen.is_ipv6() {
            log("this kernel has no IPv6: the tunnel's datagrams are of IPv4 only");
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, listen.port()))
        } else {
            listen
        };
        let v6 = listen.is_ipv6();
        let family = if v6 {
            AddressFamily::Inet6
        } else {
            AddressFamily::Inet
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket: OwnedFd = socket::socket(family, SockType::Datagram, flags, None)?;
        let dual = v6 && any_address;
        if v6 {
            setsockopt(&socket, sockopt::Ipv6V6Only, &!dual)?;
            setsockopt(&socket, sockopt::Ipv6RecvTClass, &true)?;
        }
        if !v6 || dual {
            setsockopt(&socket, sockopt::IpRecvTos, &true)?;
        }
        if any_address && v6 {
            setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        }
        if any_address {
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        }
        // Only root may exceed the system's limit.
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES)?;
        }
        bind(socket.as_raw_fd(), &SockaddrStorage::from(listen)).map_err(|error| {
            let cure = match error {
                Errno::EADDRNOTAVAIL => "; no device has this address, or IPv6 is disabled on it",
                Errno::EACCES => "; ports below 1024 need CAP_NET_BIND_SERVICE",
                _ => "",
            };
            io::Error::other(format!("cannot listen on {listen}: {}{cure}", error.desc()))
        })?;
        // Kernels before 4.18 cannot segment, and those before 5.0 cannot coalesce: then each datagram is sent and received
        // by itself.
        let segments = offloads && setsockopt(&socket, sockopt::UdpGsoSegment, &0).is_ok();
        if offloads {
            let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        }
        Ok(TunnelSocket {
            socket: socket.into(),
            v6,
            dual,
            segments,
            reports_drops: false,
            any_address,
            device: None,
            own: None,
            gone: None,
            tos: [0; 2],
            // A datagram of IPv4 on a socket of IPv6 comes with the messages of both.
            control: nix::cmsg_space!(i32, i32, i32, nix::libc::in_pktinfo, nix::libc::in6_pktinfo),
        })
    }

    /// Gives all datagrams a mark, by which the system may route them.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN.
    pub fn mark(&self, mark: u32) -> io::Result<()> {
        setsockopt(&self.socket, sockopt::Mark, &mark).map_err(|error| {
            let what = format!("cannot mark datagrams with {mark}: {}", error.desc());
            io::Error::other(format!("{what}; run as root or with CAP_NET_ADMIN"))
        })
    }

    /// Sends through the device of this name only, and takes no datagrams from others. The device may come and go: call
    /// [`Underlay::find_device`] then.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind_device(&mut self, name: &str) -> io::Result<()> {
        if self.v6 {
            setsockopt(&self.socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        }
        setsockopt(&self.socket, sockopt::Ipv4PacketInfo, &true)?;
        self.device = Some((name.to_string(), 0));
        self.find_device();
        Ok(())
    }

    /// Takes no datagrams that came through the tunnel's own device, which has this number: answers would go into it.
    pub fn refuse_device(&mut self, own: u32) {
        let mut tells =
            !self.v6 || setsockopt(&self.socket, sockopt::Ipv6RecvPacketInfo, &true).is_ok();
        tells &= setsockopt(&self.socket, sockopt::Ipv4PacketInfo, &true).is_ok();
        self.own = tells.then_some(own);
    }

    /// The number of the only device that datagrams pass; none: any.
    #[must_use]
    pub fn device(&self) -> Option<u32> {
        self.device.as_ref().map(|(_, number)| *number)
    }

    /// Whether datagrams can be sent there: a socket of IPv4 cannot send to IPv6, nor one of a fixed IPv6 address to IPv4.
    #[must_use]
    pub fn carries(&self, to: &SocketAddr) -> bool {
        self.dual || self.v6 == to.is_ipv6()
    }

    /// Finds the number of the device again, which may have come or gone.
    pub fn find_device(&mut self) {
        if let Some((name, number)) = &mut self.device {
            *number = paths::number_or_none(name);
        }
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
        }
        if !self.v6 || self.dual {
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

    /// Sends a datagram, from what is named; from another address of this end if that one is gone.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room below; others of the system.
    pub fn send(
        &mut self,
        datagram: &[u8],
        to: SocketAddr,
        from: Source,
        tos: u8,
    ) -> io::Result<()> {
        let destination = Destination {
            station: 0,
            to,
            from,
            tos,
        };
        self.send_parts(&[IoSlice::new(datagram)], None, destination)
    }

    /// Sends what an outbox holds until there is no room below; `lost` is called with what could not be sent: where to, the
    /// number of datagrams and the reason.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room below, `ENOBUFS` when the interface dropped a datagram for that reason and
    /// [`Underlay::limit_below`] was called. What is left stays in the outbox.
    pub fn send_all(
        &mut self,
        outbox: &mut Outbox,
        mut lost: impl FnMut(&Destination, usize, &'static str, bool),
    ) -> io::Result<()> {
        while let Some(call) = outbox.call() {
            let destination = call.destination;
            let count = if self.segments { call.datagrams } else { 1 };
            let mut sent = self.send_call(outbox, count, destination);
            let error = sent.as_ref().err().and_then(io::Error::raw_os_error);
            let full = [Some(nix::libc::EAGAIN), Some(nix::libc::ENOBUFS)];
            if self.reports_drops && error.is_some() && !full.contains(&error) {
                // The error may be about an earlier datagram, so the call is tried again.
                sent = self.send_call(outbox, count, destination);
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
                    _ => UNDERLAY_DOWN,
                };
                lost(&destination, count, reason, is_passing(&error));
                outbox.given_up(count);
            } else {
                outbox.sent(count);
            }
        }
        Ok(())
    }

    fn set_tos(&mut self, to: SocketAddr, tos: u8) -> io::Result<()> {
        let v6 = usize::from(to.is_ipv6());
        if tos != self.tos[v6] {
            if to.is_ipv6() {
                setsockopt(&self.socket, sockopt::Ipv6TClass, &i32::from(tos))?;
            } else {
                setsockopt(&self.socket, sockopt::Ipv4Tos, &i32::from(tos))?;
            }
            self.tos[v6] = tos;
        }
        Ok(())
    }

    /// Sends the first `count` datagrams of the next call.
    fn send_call(
        &mut self,
        outbox: &Outbox,
        count: usize,
        destination: Destination,
    ) -> io::Result<()> {
        let parts = outbox.parts(count);
        let segment_bytes = outbox.call().map_or(0, |call| call.segment_bytes) as u16;
        self.send_parts(&parts, (count > 1).then_some(segment_bytes), destination)
    }

    /// Sends a datagram in parts, or several datagrams that the kernel cuts at each `segment_bytes`. An address to send
    /// from that this end no longer has is left to the system.
    fn send_parts(
        &mut self,
        parts: &[IoSlice<'_>],
        segment_bytes: Option<u16>,
        destination: Destination,
    ) -> io::Result<()> {
        /// What the kernel says of a source that is no address of this end, or that cannot reach the destination.
        const NO_SOURCE: [i32; 3] = [
            nix::libc::EINVAL,
            nix::libc::EADDRNOTAVAIL,
            nix::libc::ENETUNREACH,
        ];
        self.set_tos(destination.to, destination.tos)?;
        let address = destination.from.address;
        let named = address.filter(|from| self.any_address && self.gone != Some(*from));
        let from = Source {
            address: named,
            ..destination.from
        };
        let sent = self.send_from(parts, segment_bytes, destination.to, from);
        match (&sent, named) {
            (Err(error), Some(gone))
                if error
                    .raw_os_error()
                    .is_some_and(|number| NO_SOURCE.contains(&number)) =>
            {
                let without = Source {
                    address: None,
                    ..from
                };
                let sent = self.send_from(parts, segment_bytes, destination.to, without);
                if sent.is_ok() {
                    self.gone = Some(gone);
                }
                sent
            }
            _ => sent,
        }
    }

    fn send_from(
        &self,
        parts: &[IoSlice<'_>],
        segment_bytes: Option<u16>,
        to: SocketAddr,
        from: Source,
    ) -> io::Result<()> {
        let segment = segment_bytes.unwrap_or_default();
        let (mut v4, mut v6);
        // A system that has no such device answers with an error, rather than to send elsewhere.
        let from = match &self.device {
            Some((_, number)) if from.device == 0 => Source {
                device: *number,
                ..from
            },
            _ => from,
        };
        let device = from.device;
        let source = match (to, from.address) {
            _ if from == Source::default() => None,
            (_, Some(IpAddr::V4(address))) => {
                v4 = no_source_v4();
                v4.ipi_spec_dst.s_addr = u32::from_ne_bytes(address.octets());
                v4.ipi_ifindex = device as i32;
                Some(ControlMessage::Ipv4PacketInfo(&v4))
            }
            (_, Some(IpAddr::V6(address))) => {
                v6 = no_source_v6();
                v6.ipi6_addr.s6_addr = address.octets();
                v6.ipi6_ifindex = device;
                Some(ControlMessage::Ipv6PacketInfo(&v6))
            }
            (SocketAddr::V4(_), None) => {
                v4 = no_source_v4();
                v4.ipi_ifindex = device as i32;
                Some(ControlMessage::Ipv4PacketInfo(&v4))
            }
            (SocketAddr::V6(_), None) => {
                v6 = no_source_v6();
                v6.ipi6_ifindex = device;
                Some(ControlMessage::Ipv6PacketInfo(&v6))
            }
        };
        // In an array, since a vector would be memory to allocate for each datagram.
        let segments = ControlMessage::UdpGsoSegments(&segment);
        let messages = [segments, source.unwrap_or(segments)];
        let first = usize::from(segment_bytes.is_none());
        let control = &messages[first..1 + usize::from(source.is_some())];
        let to = match to {
            SocketAddr::V4(v4) if self.v6 => {
                SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port()))
            }
            _ => to,
        };
        let to = SockaddrStorage::from(to);
        let flags = MsgFlags::MSG_DONTWAIT;
        sendmsg(self.socket.as_raw_fd(), parts, control, flags, Some(&to))?;
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
        let (mut tos, mut segment_bytes, mut to) = (0, received.bytes, None);
        let mut through = None;
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::Ipv4Tos(field) => tos = field,
                ControlMessageOwned::Ipv6TClass(field) => tos = field as u8,
                ControlMessageOwned::UdpGroSegments(bytes) if bytes > 0 => {
                    segment_bytes = bytes as usize;
                }
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    through = Some(info.ipi_ifindex as u32);
                    let octets = info.ipi_spec_dst.s_addr.to_ne_bytes();
                    to = Some(Local {
                        address: IpAddr::V4(Ipv4Addr::from(octets)),
                        device: info.ipi_ifindex as u32,
                    });
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    through = Some(info.ipi6_ifindex);
                    let address = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                    // One that is valid on a device only would have to be named with the device.
                    if !address.is_unicast_link_local() {
                        to = Some(Local {
                            address: IpAddr::V6(address).to_canonical(),
                            device: info.ipi6_ifindex,
                        });
                    }
                }
                _ => {}
            }
        }
        let from = received.address.as_ref().and_then(address);
        let device = self.device.as_ref().map(|(_, number)| *number);
        if to.is_some() && to.map(|to| to.address) == self.gone {
            self.gone = None;
        }
        Ok(Received {
            bytes: received.bytes,
            segment_bytes,
            from: from.ok_or_else(|| io::Error::other("a datagram without a sender"))?,
            to,
            is_elsewhere: (device.is_some() && device != through)
                || (through.is_some() && through == self.own),
            tos,
        })
    }
}

impl AsFd for TunnelSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn no_source_v4() -> nix::libc::in_pktinfo {
    let none = nix::libc::in_addr { s_addr: 0 };
    nix::libc::in_pktinfo {
        ipi_ifindex: 0,
        ipi_spec_dst: none,
        ipi_addr: none,
    }
}

fn no_source_v6() -> nix::libc::in6_pktinfo {
    nix::libc::in6_pktinfo {
        ipi6_addr: nix::libc::in6_addr { s6_addr: [0; 16] },
        ipi6_ifindex: 0,
    }
}

fn address(raw: &SockaddrStorage) -> Option<SocketAddr> {
    match raw.family()? {
        AddressFamily::Inet => raw.as_sockaddr_in().map(|a| SocketAddr::V4((*a).into())),
        AddressFamily::Inet6 => raw.as_sockaddr_in6().map(|a| {
            let v6: SocketAddrV6 = (*a).into();
            match v6.ip().to_ipv4_mapped() {
                Some(v4) => SocketAddr::from((v4, v6.port())),
                None => SocketAddr::V6(v6),
            }
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_keep_their_services_field_both_ways() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let mut one = TunnelSocket::bind(listen.parse().unwrap()).unwrap();
            let mut two = TunnelSocket::bind(listen.parse().unwrap()).unwrap();
            let to = two.local().unwrap();
            let mut buffer = [0; 100];
            assert_eq!(
                two.receive(&mut buffer).unwrap_err().kind(),
                io::ErrorKind::WouldBlock
            );
            for (payload, tos) in [(&b"abc"[..], 46 << 2 | 2), (b"", 0), (b"d", 3)] {
                one.send(payload, to, Source::default(), tos).unwrap();
                let received = two.receive(&mut buffer).unwrap();
                let from = one.local().unwrap();
                assert_eq!(
                    received,
                    Received {
                        bytes: payload.len(),
                        segment_bytes: payload.len(),
                        from,
                        to: None,
                        is_elsewhere: false,
                        tos
                    }
                );
                assert_eq!(&buffer[..payload.len()], payload);
            }
        }
    }

    /// Everything received until `count` datagrams are complete.
    fn receive_all(underlay: &mut TunnelSocket, count: usize) -> (Vec<Vec<u8>>, usize) {
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
                let mut one = TunnelSocket::bind_with(listen, sends).unwrap();
                let mut two = TunnelSocket::bind_with(listen, receives).unwrap();
                let destination = Destination {
                    station: 3,
                    to: two.local().unwrap(),
                    from: Source::default(),
                    tos: 184,
                };
                let mut outbox = Outbox::default();
                let sent: Vec<Vec<u8>> = (0..100_u8)
                    .map(|at| vec![at; if at % 30 == 29 { 700 } else { 1000 }])
                    .collect();
                for datagram in &sent {
                    outbox.add_clear(destination, (&datagram[..]).into());
                }
                one.send_all(&mut outbox, |_, _, reason, _| panic!("lost: {reason}"))
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
    fn a_socket_of_any_ipv6_address_carries_ipv4_too() {
        let mut any = TunnelSocket::bind("[::]:0".parse().unwrap()).unwrap();
        let port = any.local().unwrap().port();
        let mut buffer = [0; 100];
        for (listen, other) in [("127.0.0.1:0", "127.0.0.2"), ("[::1]:0", "::1")] {
            let mut one = TunnelSocket::bind(listen.parse().unwrap()).unwrap();
            let from = one.local().unwrap();
            let address: IpAddr = other.parse().unwrap();
            one.send(b"there", (address, port).into(), Source::default(), 184)
                .unwrap();
            let received = any.receive(&mut buffer).unwrap();
            assert_eq!((received.from, received.tos), (from, 184));
            let local = received.to.unwrap();
            assert_eq!((local.address, local.device), (address, 1));
            any.send(b"back", from, local.into(), 46 << 2).unwrap();
            let back = one.receive(&mut buffer).unwrap();
            assert_eq!((back.from, back.tos), ((address, port).into(), 46 << 2));
        }
    }

    #[test]
    fn it_carries_the_versions_that_it_can_send_to() {
        let to = ["192.0.2.1:1", "[2001:db8::1]:1"].map(|to| to.parse::<SocketAddr>().unwrap());
        for (listen, carried) in [
            ("0.0.0.0:0", [true, false]),
            ("127.0.0.1:0", [true, false]),
            ("[::]:0", [true, true]),
            ("[::1]:0", [false, true]),
        ] {
            let mut socket = TunnelSocket::bind(listen.parse().unwrap()).unwrap();
            assert_eq!(to.map(|to| socket.carries(&to)), carried, "{listen}");
            // What it does not carry the system refuses, too.
            let refused = [nix::libc::EAFNOSUPPORT, nix::libc::ENETUNREACH];
            for (to, _) in to.iter().zip(carried).filter(|(_, carried)| !carried) {
                let sent = socket.send(b"x", *to, Source::default(), 0);
                let error = sent.unwrap_err().raw_os_error().unwrap();
                assert!(refused.contains(&error), "{listen} {to}: {error}");
            }
        }
    }

    #[test]
    fn a_limit_below_is_applied_or_refused() {
        let mut one = TunnelSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
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
        let mut one = TunnelSocket::bind(listen).unwrap();
        let mut two = TunnelSocket::bind(listen).unwrap();
        let destination = |station, to| Destination {
            station,
            to,
            from: Source::default(),
            tos: 184,
        };
        let mut outbox = Outbox::default();
        let here = two.local().unwrap();
        // Nobody sends to port 0.
        let nowhere = "127.0.0.1:0".parse().unwrap();
        outbox.add_clear(destination(1, here), (&[1; 10][..]).into());
        for _ in 0..3 {
            outbox.add_clear(destination(2, nowhere), (&[2; 10][..]).into());
        }
        outbox.add_clear(destination(1, here), (&[3; 10][..]).into());
        let mut lost = Vec::new();
        one.send_all(&mut outbox, |to, count, reason, _| {
            let station = to.station;
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
