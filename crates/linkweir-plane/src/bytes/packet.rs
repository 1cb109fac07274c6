// SPDX-License-Identifier: BSD-3-Clause
//! What the gateway reads of an IP packet (RFC 791, RFC 8200): addresses, code point, protocol, ports, fragmentation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// ICMP (RFC 792).
pub const ICMP: u8 = 1;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// ICMPv6 (RFC 4443).
pub const ICMP6: u8 = 58;
/// SCTP.
pub const SCTP: u8 = 132;
/// UDP-Lite.
const UDP_LITE: u8 = 136;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// Extension headers that are followed; a packet with more of them has no known ports.
const MOST_EXTENSIONS: usize = 8;

/// Which part of a datagram a packet is, if that was fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Identification, with 16 bits in IPv4 and 32 in IPv6.
    pub id: u32,
    /// It begins with the header of the protocol above.
    pub first: bool,
    /// Others follow it.
    pub more: bool,
}

/// A packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Differentiated services field: six bits of code point, two of ECN.
    pub tos: u8,
    /// Protocol above IP; of a fragment, that of the datagram.
    pub protocol: u8,
    /// Source and destination port, where the protocol has them and they are in this packet.
    pub ports: Option<(u16, u16)>,
    /// Set when the packet is a fragment.
    pub fragment: Option<Fragment>,
    /// Where the protocol above begins.
    pub payload: usize,
}

impl Header {
    /// Code point (RFC 2474).
    #[must_use]
    pub fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    /// Bits of explicit congestion notification (RFC 3168).
    #[must_use]
    pub fn ecn(&self) -> u8 {
        self.tos & 3
    }
}

/// Reads the header of a packet; none when it is no whole IPv4 or IPv6 packet: too short, lengths that contradict each
/// other, or another version.
#[must_use]
#[inline]
pub fn parse(packet: &[u8]) -> Option<Header> {
    match packet.first()? >> 4 {
        4 => parse_v4(packet),
        6 => parse_v6(packet),
        _ => None,
    }
}

/// Whether a packet that was parsed before is one of TCP; behind extension headers of IPv6 that is not seen.
#[must_use]
#[inline]
pub fn is_tcp(packet: &[u8]) -> bool {
    let at = if packet.first().is_some_and(|byte| byte >> 4 == 4) {
        9
    } else {
        6
    };
    packet.get(at) == Some(&TCP)
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn address_v4(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(Ipv4Addr::from(octets).into())
}

fn address_v6(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
    Some(Ipv6Addr::from(octets).into())
}

fn ports(protocol: u8, payload: &[u8]) -> Option<(u16, u16)> {
    matches!(protocol, TCP | UDP | SCTP | UDP_LITE)
        .then(|| Some((be16(payload, 0)?, be16(payload, 2)?)))?
}

#[inline]
fn parse_v4(packet: &[u8]) -> Option<Header> {
    let payload = usize::from(packet[0] & 15) * 4;
    let total = usize::from(be16(packet, 2)?);
    if payload < 20 || total < payload || total != packet.len() {
        return None;
    }
    let flags = be16(packet, 6)?;
    let (offset, more) = (flags & 0x1fff, flags & 0x2000 != 0);
    let first = offset == 0;
    let protocol = packet[9];
    Some(Header {
        source: address_v4(packet, 12)?,
        destination: address_v4(packet, 16)?,
        tos: packet[1],
        protocol,
        ports: first.then(|| ports(protocol, &packet[payload..])).flatten(),
        fragment: (!first || more).then_some(Fragment {
            id: be16(packet, 4)?.into(),
            first,
            more,
        }),
        payload,
    })
}

fn parse_v6(packet: &[u8]) -> Option<Header> {
    const FIXED: usize = 40;
    if usize::from(be16(packet, 4)?) + FIXED != packet.len() {
        return None;
    }
    let mut protocol = packet[6];
    let mut at = FIXED;
    let mut fragment = None;
    for _ in 0..MOST_EXTENSIONS {
        let length = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION => {
                packet.get(at + 1).map(|n| 8 + 8 * usize::from(*n))
            }
            AUTHENTICATION => packet.get(at + 1).map(|n| 8 + 4 * usize::from(*n)),
            FRAGMENT => {
                let id = packet.get(at + 4..at + 8).and_then(|id| id.try_into().ok());
                let (Some(field), Some(id)) = (be16(packet, at + 2), id) else {
                    break;
                };
                let first = field >> 3 == 0;
                fragment = Some(Fragment {
                    id: u32::from_be_bytes(id),
                    first,
                    more: field & 1 != 0,
                });
                Some(8)
            }
            _ => break,
        };
        // A later fragment has the middle of the payload here, not the header of the protocol above.
        let within = length.filter(|length| at + length <= packet.len());
        let Some(length) = within else { break };
        protocol = packet[at];
        at += length;
        if fragment.is_some_and(|fragment| !fragment.first) {
            break;
        }
    }
    let first = fragment.is_none_or(|fragment| fragment.first);
    Some(Header {
        source: address_v6(packet, 8)?,
        destination: address_v6(packet, 24)?,
        tos: (packet[0] << 4) | (packet[1] >> 4),
        protocol,
        ports: first.then(|| ports(protocol, &packet[at..])).flatten(),
        fragment,
        payload: at,
    })
}

/// Sets the differentiated services field of a packet that [`parse`] accepted, and updates the checksum of an IPv4 header.
pub fn set_tos(packet: &mut [u8], tos: u8) {
    if packet[0] >> 4 == 4 {
        packet[1] = tos;
        let length = usize::from(packet[0] & 15) * 4;
        packet[10..12].fill(0);
        let sum = checksum(&packet[..length]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        packet[0] = packet[0] & 0xf0 | tos >> 4;
        packet[1] = packet[1] & 0x0f | tos << 4;
    }
}

/// The internet checksum (RFC 1071).
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    });
    let mut sum = words.fold(0_u64, |sum, word| sum + u64::from(word));
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An IPv4 packet; `fragment` is the third 16-bit word of the header's fragment line.
    pub(crate) fn v4(protocol: u8, tos: u8, id: u16, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, tos, 0, 0];
        packet[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        packet.extend(id.to_be_bytes());
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(payload);
        packet
    }

    /// An IPv6 packet whose payload begins with the header `next`.
    pub(crate) fn v6(next: u8, traffic_class: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60 | traffic_class >> 4, traffic_class << 4, 0, 0];
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([next, 64]);
        packet.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).octets());
        packet.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).octets());
        packet.extend(payload);
        packet
    }

    #[test]
    fn headers_are_read() {
        let header = parse(&v4(UDP, 0xb9, 7, 0, &[0x13, 0xc4, 0, 53, 0, 8, 0, 0])).unwrap();
        assert_eq!((header.dscp(), header.ecn()), (46, 1));
        assert_eq!(header.ports, Some((5060, 53)));
        assert_eq!(header.fragment, None);
        assert_eq!(header.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(header.destination, IpAddr::from([10, 0, 0, 2]));

        let header = parse(&v6(TCP, 0xb9, &[0, 80, 1, 0])).unwrap();
        assert_eq!((header.dscp(), header.ecn()), (46, 1));
        assert_eq!((header.protocol, header.ports), (TCP, Some((80, 256))));
        assert_eq!(header.destination, "fd00::2".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn options_and_extensions_are_passed_over() {
        let mut packet = v4(UDP, 0, 0, 0, &[0, 0, 0, 0, 0, 1, 0, 2]);
        packet[0] = 0x46; // one word of options
        assert_eq!(parse(&packet).unwrap().ports, Some((1, 2)));

        let options = [UDP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let payload: Vec<u8> = options.into_iter().chain([0, 1, 0, 2]).collect();
        let header = parse(&v6(HOP_BY_HOP, 0, &payload)).unwrap();
        assert_eq!((header.protocol, header.ports), (UDP, Some((1, 2))));
        assert_eq!(header.payload, 56);
    }

    #[test]
    fn fragments_are_recognised() {
        let first = parse(&v4(UDP, 0, 9, 0x2000, &[0, 1, 0, 2])).unwrap();
        assert_eq!(first.ports, Some((1, 2)));
        assert_eq!(
            first.fragment,
            Some(Fragment {
                id: 9,
                first: true,
                more: true
            })
        );
        let last = parse(&v4(UDP, 0, 9, 0x00b9, &[0, 1, 0, 2])).unwrap();
        assert_eq!(last.ports, None);
        assert_eq!(
            last.fragment,
            Some(Fragment {
                id: 9,
                first: false,
                more: false
            })
        );
        // Do not fragment is no fragment.
        assert_eq!(
            parse(&v4(UDP, 0, 9, 0x4000, &[0, 1, 0, 2]))
                .unwrap()
                .fragment,
            None
        );

        let v6_fragment = |field: u16| {
            let mut payload = vec![UDP, 0];
            payload.extend(field.to_be_bytes());
            payload.extend([0, 0, 1, 0, 0, 1, 0, 2]);
            parse(&v6(FRAGMENT, 0, &payload)).unwrap()
        };
        let first = v6_fragment(1);
        assert_eq!((first.protocol, first.ports), (UDP, Some((1, 2))));
        assert_eq!(
            first.fragment,
            Some(Fragment {
                id: 256,
                first: true,
                more: true
            })
        );
        let last = v6_fragment(8);
        assert_eq!((last.protocol, last.ports), (UDP, None));
        assert_eq!(
            last.fragment,
            Some(Fragment {
                id: 256,
                first: false,
                more: false
            })
        );
    }

    #[test]
    fn the_services_field_is_put() {
        // The header of RFC 1071's algorithm applied by hand: 4500 001c 0007 0000 4011 .... 0a00 0001 0a00 0002.
        let mut packet = v4(UDP, 0, 7, 0, &[0; 8]);
        set_tos(&mut packet, 0);
        // 4500 + 001c + 0007 + 4011 + 0a00 + 0001 + 0a00 + 0002 = 9937; its complement is 66c8.
        assert_eq!(packet[10..12], [0x66, 0xc8]);
        set_tos(&mut packet, 0xba);
        assert_eq!(packet[10..12], [0x66, 0x0e], "less by ba");
        assert_eq!(parse(&packet).unwrap().tos, 0xba);
        let mut packet = v6(UDP, 0x03, &[1, 2, 3, 4, 5, 6, 7, 8]);
        packet[1] |= 5; // flow label
        set_tos(&mut packet, 0xba);
        assert_eq!(parse(&packet).unwrap().tos, 0xba);
        assert_eq!((packet[0], packet[1]), (0x6b, 0xa5));
    }

    #[test]
    fn incomplete_packets_are_refused() {
        let good = v4(UDP, 0, 0, 0, &[0; 8]);
        for end in 0..good.len() {
            assert_eq!(parse(&good[..end]), None, "{end} bytes");
        }
        let good = v6(HOP_BY_HOP, 0, &[UDP, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2]);
        for end in 0..good.len() {
            assert_eq!(parse(&good[..end]), None, "{end} bytes");
        }
        let mut short = v4(UDP, 0, 0, 0, &[]);
        short[0] = 0x44;
        assert_eq!(parse(&short), None);
        // An extension header that reaches over the end leaves the packet without ports.
        let header = parse(&v6(HOP_BY_HOP, 0, &[UDP, 9, 0, 0])).unwrap();
        assert_eq!(header.ports, None);
    }
}
