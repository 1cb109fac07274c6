// SPDX-License-Identifier: BSD-3-Clause
//! What becomes of a packet that is longer than the path carries: it is fragmented if it may be (RFC 791, section 3.2),
//! otherwise its sender is told how long packets may be (RFC 1191, section 4; RFC 4443, section 3.2).

use std::net::IpAddr;

use super::packet::{checksum, Header, ICMP, ICMP6};
use super::superpacket::Packet;

const V4_BYTES: usize = 20;
const V6_BYTES: usize = 40;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// Most bytes of an answer: what every host accepts.
const ANSWER_V4: usize = 576;
const ANSWER_V6: usize = 1280;
/// Messages of ICMP that an answer must not follow: errors.
const ERRORS_V4: [u8; 5] = [3, 4, 5, 11, 12];
/// Of ICMPv6, all below this are errors.
const FIRST_INFORMATION_V6: u8 = 128;

/// What becomes of a packet.
pub enum Fit {
    /// It passes as it is.
    Whole(Packet),
    /// These pass in its place.
    Fragments(Vec<Packet>),
    /// It does not pass; this is for its sender.
    Answer(Vec<u8>),
    /// It does not pass, and nobody may be told.
    Drop,
}

/// What becomes of a packet with this header on a path that carries packets of `mtu` bytes.
#[must_use]
pub fn fit(packet: Packet, header: &Header, mtu: u32) -> Fit {
    let longest = (0..packet.pkts()).map(|at| packet.pkt_bytes(at)).max();
    if longest.is_none_or(|bytes| bytes <= mtu as usize) {
        return Fit::Whole(packet);
    }
    if header.source.is_ipv4() && fragment_field(&packet) & DONT_FRAGMENT == 0 {
        let fragments: Option<Vec<Vec<Packet>>> = packet
            .split()
            .map(|one| fragments(&one, mtu as usize))
            .collect();
        return fragments.map_or(Fit::Drop, |all| Fit::Fragments(all.concat()));
    }
    answer(&packet, header, mtu).map_or(Fit::Drop, Fit::Answer)
}

fn fragment_field(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[6], packet[7]])
}

/// An IPv4 packet in fragments of at most `mtu` bytes; none if it has options, which few use and routers drop.
fn fragments(packet: &Packet, mtu: usize) -> Option<Vec<Packet>> {
    if packet.len() <= mtu {
        return Some(vec![Packet::copy(packet, None)]);
    }
    let (header, payload) = packet.split_at_checked(V4_BYTES)?;
    if header[0] != 0x45 {
        return None;
    }
    let field = fragment_field(packet);
    let begins = usize::from(field & OFFSET);
    let step = (mtu - V4_BYTES) / 8 * 8;
    let mut fragments = Vec::new();
    for (number, part) in payload.chunks(step).enumerate() {
        let ends = (number + 1) * step >= payload.len();
        let offset = u16::try_from(begins + number * step / 8).ok()?;
        let more = if ends { field & MORE } else { MORE };
        let mut fragment = [header, part].concat();
        let bytes = fragment.len() as u16;
        fragment[2..4].copy_from_slice(&bytes.to_be_bytes());
        fragment[6..8].copy_from_slice(&(offset & OFFSET | more).to_be_bytes());
        set_checksum(&mut fragment);
        fragments.push(Packet::copy(&fragment, None));
    }
    Some(fragments)
}

/// Sets the checksum of an IPv4 header without options.
fn set_checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = checksum(&packet[..V4_BYTES]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The message to the sender of a packet that it is too long; none if it must not be answered (RFC 1122, section 3.2.2;
/// RFC 4443, section 2.4).
fn answer(packet: &[u8], header: &Header, mtu: u32) -> Option<Vec<u8>> {
    let kind = packet.get(header.payload).copied();
    let is_error = match header.protocol {
        ICMP => kind.is_none_or(|kind| ERRORS_V4.contains(&kind)),
        ICMP6 => kind.is_none_or(|kind| kind < FIRST_INFORMATION_V6),
        _ => false,
    };
    let later = header.fragment.is_some_and(|fragment| !fragment.first);
    let to_many = header.destination.is_multicast();
    if is_error
        || later
        || to_many
        || header.source.is_unspecified()
        || header.source.is_multicast()
    {
        return None;
    }
    match (header.source, header.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let quoted = &packet[..packet.len().min(ANSWER_V4 - V4_BYTES - 8)];
            let mut answer = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, ICMP, 0, 0];
            answer.extend(destination.octets());
            answer.extend(source.octets());
            // Destination unreachable: fragmentation needed.
            answer.extend([3, 4, 0, 0, 0, 0]);
            answer.extend((mtu as u16).to_be_bytes());
            answer.extend(quoted);
            let sum = checksum(&answer[V4_BYTES..]);
            answer[V4_BYTES + 2..V4_BYTES + 4].copy_from_slice(&sum.to_be_bytes());
            let bytes = answer.len() as u16;
            answer[2..4].copy_from_slice(&bytes.to_be_bytes());
            set_checksum(&mut answer);
            Some(answer)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let quoted = &packet[..packet.len().min(ANSWER_V6 - V6_BYTES - 8)];
            let bytes = 8 + quoted.len();
            let mut answer = vec![0x60, 0, 0, 0];
            answer.extend((bytes as u16).to_be_bytes());
            answer.extend([ICMP6, 64]);
            answer.extend(destination.octets());
            answer.extend(source.octets());
            // Packet too big.
            answer.extend([2, 0, 0, 0]);
            answer.extend(mtu.to_be_bytes());
            answer.extend(quoted);
            let mut summed = answer[8..V6_BYTES].to_vec();
            summed.extend((bytes as u32).to_be_bytes());
            summed.extend([0, 0, 0, ICMP6]);
            summed.extend(&answer[V6_BYTES..]);
            let sum = checksum(&summed);
            answer[V6_BYTES + 2..V6_BYTES + 4].copy_from_slice(&sum.to_be_bytes());
            Some(answer)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::{v4, v6};
    use super::super::packet::{parse, UDP};
    use super::*;

    fn fitted(packet: &[u8], mtu: u32) -> Fit {
        let header = parse(packet).unwrap();
        fit(Packet::copy(packet, None), &header, mtu)
    }

    fn payload(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn what_is_short_enough_passes_as_it_is() {
        for packet in [
            v4(UDP, 0, 7, DONT_FRAGMENT, &payload(1380)),
            v6(UDP, 0, &payload(1360)),
        ] {
            assert!(matches!(fitted(&packet, 1400), Fit::Whole(whole) if *whole == *packet));
        }
    }

    #[test]
    fn fragments_hold_all_of_the_packet_and_fit() {
        // A whole packet, a first fragment and a last one.
        for (bytes, field) in [(1420, 0), (1416, MORE), (1400, 40)] {
            let packet = v4(UDP, 184, 77, field, &payload(bytes));
            for mtu in [576, 1280, 1400] {
                let Fit::Fragments(fragments) = fitted(&packet, mtu) else {
                    panic!("{bytes} {mtu}");
                };
                let mut found = Vec::new();
                for (at, fragment) in fragments.iter().enumerate() {
                    assert!(fragment.len() <= mtu as usize);
                    assert_eq!(checksum(&fragment[..V4_BYTES]), 0);
                    let header = parse(fragment).unwrap();
                    assert_eq!((header.tos, header.fragment.unwrap().id), (184, 77));
                    let own = fragment_field(fragment);
                    let begins = usize::from(own & OFFSET) - usize::from(field & OFFSET);
                    assert_eq!(begins * 8, found.len());
                    let last = at + 1 == fragments.len();
                    let more = if last { field & MORE } else { MORE };
                    assert_eq!(own & MORE, more);
                    found.extend_from_slice(&fragment[V4_BYTES..]);
                }
                assert_eq!(found, payload(bytes));
            }
        }
    }

    #[test]
    fn senders_that_forbid_fragments_are_told_the_length() {
        let packet = v4(UDP, 0, 7, DONT_FRAGMENT, &payload(1480));
        let Fit::Answer(answer) = fitted(&packet, 1300) else {
            panic!("no answer");
        };
        let (asked, told) = (parse(&packet).unwrap(), parse(&answer).unwrap());
        assert_eq!(
            (told.source, told.destination),
            (asked.destination, asked.source)
        );
        assert_eq!((told.protocol, &answer[20..22]), (ICMP, &[3, 4][..]));
        assert_eq!(answer[26..28], 1300_u16.to_be_bytes());
        assert_eq!((checksum(&answer[..20]), checksum(&answer[20..])), (0, 0));
        assert!(answer.len() <= 576 && packet.starts_with(&answer[28..]));

        let packet = v6(UDP, 0, &payload(1400));
        let Fit::Answer(answer) = fitted(&packet, 1300) else {
            panic!("no answer");
        };
        let (asked, told) = (parse(&packet).unwrap(), parse(&answer).unwrap());
        assert_eq!(
            (told.source, told.destination),
            (asked.destination, asked.source)
        );
        assert_eq!((told.protocol, &answer[40..42]), (ICMP6, &[2, 0][..]));
        assert_eq!(answer[44..48], 1300_u32.to_be_bytes());
        assert!(answer.len() <= 1280 && packet.starts_with(&answer[48..]));
        let mut summed = answer[8..40].to_vec();
        summed.extend((answer.len() as u32 - 40).to_be_bytes());
        summed.extend([0, 0, 0, ICMP6]);
        summed.extend(&answer[40..]);
        assert_eq!(checksum(&summed), 0);
    }

    #[test]
    fn errors_and_later_fragments_and_options_are_not_answered() {
        let error = |kind| [&[kind, 0, 0, 0][..], &payload(1476)].concat();
        let mut options = v4(UDP, 0, 7, 0, &payload(1480));
        options[0] = 0x46;
        for packet in [
            v4(ICMP, 0, 7, DONT_FRAGMENT, &error(3)),
            v6(ICMP6, 0, &error(2)),
            v4(UDP, 0, 7, DONT_FRAGMENT | 5, &payload(1480)),
            options,
        ] {
            assert!(matches!(fitted(&packet, 1300), Fit::Drop));
        }
        let question = v4(ICMP, 0, 7, DONT_FRAGMENT, &error(8));
        assert!(matches!(fitted(&question, 1300), Fit::Answer(_)));
    }
}
