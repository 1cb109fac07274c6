// SPDX-License-Identifier: BSD-3-Clause
//! Joins packets received together into super-packets for the device, as a network card's receive offload does: consecutive
//! segments of one TCP connection, or datagrams of one UDP flow that have one length.
//!
//! Only packets that can be cut into the same packets again are joined. Their checksums are verified before, because the
//! kernel does not check those of a super-packet. Packets of one flow keep their order.

use std::io::IoSlice;
use std::ops::Range;

use crate::bytes::checksum;
use crate::bytes::packet::{Header, TCP, UDP};
use crate::bytes::superpacket::{
    FIN, PSH, TCP_BYTES, TCP_CHECKSUM, TCP_FLAGS, UDP_BYTES, UDP_CHECKSUM,
};
use crate::bytes::vnet::{VnetHeader, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM};
use crate::bytes::Parts;

/// Most packets in one super-packet: every kernel accepts as many for UDP.
const MOST_PKTS: usize = 64;
/// Largest super-packet, bytes.
const MOST_BYTES: usize = 65_535;
/// A segment with other TCP flags than these is not joined.
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
/// Most flows joined at once. Packets of further flows are not joined.
const FLOWS: usize = 16;

/// A packet among those that came together.
#[derive(Clone, Debug)]
struct Member {
    place: Range<usize>,
    /// Where in the buffer its payload begins.
    payload: usize,
    /// The next one of its group.
    next: Option<usize>,
}

/// Packets that become one super-packet.
#[derive(Clone, Debug)]
struct Group {
    first: usize,
    last: usize,
    pkts: usize,
    /// Bytes of the super-packet.
    bytes: usize,
    /// Where the transport header begins, within the packet.
    transport: usize,
    /// Payload of each but the last, bytes.
    segment_bytes: usize,
    protocol: u8,
    v4: bool,
    /// Sequence number that continues it.
    sequence: u32,
    /// The checksum of the first was found to be right.
    verified: bool,
}

/// Packets of one batch on their way into the device.
#[derive(Debug, Default)]
pub struct Coalescer {
    udp: bool,
    tcp: bool,
    members: Vec<Member>,
    groups: Vec<Group>,
    /// Groups that may grow.
    open: Vec<usize>,
}

/// The pieces that one call writes into the device.
pub struct Whole<'b> {
    /// The bytes of its [`VnetHeader`], and behind these its parts in order.
    pub parts: Parts<'b>,
    /// Number of packets in it.
    pub pkts: usize,
    /// Bytes of these packets.
    pub bytes: usize,
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Where the payload of a packet begins that may become part of a super-packet.
fn payload(packet: &[u8], header: &Header) -> Option<usize> {
    let plain = if header.source.is_ipv4() { 20 } else { 40 };
    if header.fragment.is_some() || header.payload != plain {
        return None;
    }
    let above = &packet[plain..];
    let bytes = match header.protocol {
        TCP if above.len() > TCP_BYTES => {
            let flags = above[TCP_FLAGS];
            let bytes = usize::from(above[12] >> 4) * 4;
            // Only the first segment may report a reduced window (CWR), and cutting would repeat it.
            let data = flags & ACK != 0 && flags & !(ACK | ECE | PSH | FIN) == 0;
            (data && bytes >= TCP_BYTES).then_some(bytes)?
        }
        // Without a checksum there is nothing to verify.
        UDP if above.len() > UDP_BYTES && above[UDP_CHECKSUM..UDP_BYTES] != [0, 0] => {
            let length = usize::from(u16::from_be_bytes([above[4], above[5]]));
            (length == above.len()).then_some(UDP_BYTES)?
        }
        _ => return None,
    };
    (plain + bytes < packet.len()).then_some(plain + bytes)
}

fn checksum_holds(packet: &[u8], transport: usize, protocol: u8) -> bool {
    // The addresses are right before the transport header, and nothing else of the IP header is summed.
    let addresses_bytes = if transport == 20 { 8 } else { 32 };
    let bytes = (packet.len() - transport) as u16;
    let summed = checksum::sum(&packet[transport - addresses_bytes..]);
    checksum::add([summed, protocol.into(), bytes]) == 0xffff
}

/// Whether two packets have the same `N` bytes at a place. A constant length compiles to a comparison without a call.
fn same<const N: usize>(one: &[u8], other: &[u8], at: usize) -> bool {
    one[at..at + N] == other[at..at + N]
}

/// Whether two packets have the same headers but for the fields that cutting sets.
fn same_headers(one: &[u8], other: &[u8], group: &Group, header_bytes: usize) -> bool {
    // Not compared: length, identification and checksum.
    let ip_same = if group.v4 {
        same::<2>(one, other, 0) && same::<4>(one, other, 6) && same::<8>(one, other, 12)
    } else {
        same::<4>(one, other, 0) && same::<34>(one, other, 6)
    };
    let above = group.transport;
    let above_same = if group.protocol == TCP {
        let flags = one[above + TCP_FLAGS] ^ other[above + TCP_FLAGS];
        same::<4>(one, other, above)
            && same::<5>(one, other, above + 8)
            && flags & !(PSH | FIN) == 0
            && same::<2>(one, other, above + 14)
            && one[above + 18..header_bytes] == other[above + 18..header_bytes]
    } else {
        same::<4>(one, other, above)
    };
    ip_same && above_same
}

/// Whether two packets belong to one flow.
fn same_flow(one: &[u8], other: &[u8], group: &Group) -> bool {
    let ports = group.transport;
    let addresses_same = || {
        if group.v4 {
            same::<8>(one, other, 12)
        } else {
            same::<32>(one, other, 8)
        }
    };
    one[0] >> 4 == other[0] >> 4
        && other.len() >= ports + 4
        && addresses_same()
        && same::<4>(one, other, ports)
}

impl Coalescer {
    /// An empty coalescer. `tcp` and `udp` say which super-packets the device accepts.
    #[must_use]
    pub fn new(tcp: bool, udp: bool) -> Coalescer {
        Coalescer {
            tcp,
            udp,
            ..Coalescer::default()
        }
    }

    /// Whether there is nothing to deliver.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Takes the packet at `place` of `buffer`, whose header was read.
    pub fn add(&mut self, buffer: &[u8], place: Range<usize>, header: &Header) {
        let packet = &buffer[place.clone()];
        let wanted = match header.protocol {
            TCP => self.tcp,
            UDP => self.udp,
            _ => false,
        };
        let payload = wanted.then(|| payload(packet, header)).flatten();
        let at = self.members.len();
        let plain = if header.source.is_ipv4() { 20 } else { 40 };
        if header.ports.is_none() || header.fragment.is_some() || header.payload != plain {
            // It may belong to any open group, and packets of its flow must not overtake it.
            self.open.clear();
        } else if let Some(nth) = self.open_of(buffer, packet, header) {
            let group = &self.groups[self.open[nth]];
            match payload {
                Some(payload) if self.continues(buffer, group, packet, payload) => {
                    self.append(nth, place, payload, packet);
                    return;
                }
                _ => drop(self.open.swap_remove(nth)),
            }
        }
        self.members.push(Member {
            payload: place.start + payload.unwrap_or(0),
            place: place.clone(),
            next: None,
        });
        let segment_bytes = payload.map_or(0, |payload| packet.len() - payload);
        self.groups.push(Group {
            first: at,
            last: at,
            pkts: 1,
            bytes: packet.len(),
            transport: header.payload,
            segment_bytes,
            protocol: header.protocol,
            v4: header.source.is_ipv4(),
            sequence: match (header.protocol, payload) {
                (TCP, Some(_)) => {
                    be32(&packet[header.payload + 4..]).wrapping_add(segment_bytes as u32)
                }
                _ => 0,
            },
            verified: false,
        });
        let ends = header.protocol == TCP
            && payload.is_some()
            && packet[header.payload + TCP_FLAGS] & (PSH | FIN) != 0;
        if payload.is_some() && !ends && self.open.len() < FLOWS {
            self.open.push(self.groups.len() - 1);
        }
    }

    /// The open group of a packet's flow.
    fn open_of(&self, buffer: &[u8], packet: &[u8], header: &Header) -> Option<usize> {
        self.open.iter().position(|group| {
            let group = &self.groups[*group];
            let first = &buffer[self.members[group.first].place.clone()];
            group.protocol == header.protocol
                && group.transport == header.payload
                && same_flow(first, packet, group)
        })
    }

    /// Whether a packet of a group's flow, with its payload at `payload`, continues the group.
    fn continues(&self, buffer: &[u8], group: &Group, packet: &[u8], payload: usize) -> bool {
        let first = &self.members[group.first];
        let bytes = packet.len() - payload;
        let header_bytes = first.payload - first.place.start;
        header_bytes == payload
            && bytes <= group.segment_bytes
            && group.pkts < MOST_PKTS
            && group.bytes + bytes <= MOST_BYTES
            && (group.protocol != TCP || be32(&packet[group.transport + 4..]) == group.sequence)
            && same_headers(&buffer[first.place.clone()], packet, group, payload)
            && (group.verified
                || checksum_holds(
                    &buffer[first.place.clone()],
                    group.transport,
                    group.protocol,
                ))
            && checksum_holds(packet, group.transport, group.protocol)
    }

    fn append(&mut self, nth: usize, place: Range<usize>, payload: usize, packet: &[u8]) {
        let at = self.members.len();
        let group = &mut self.groups[self.open[nth]];
        let bytes = packet.len() - payload;
        self.members[group.last].next = Some(at);
        group.last = at;
        group.pkts += 1;
        group.bytes += bytes;
        group.sequence = group.sequence.wrapping_add(bytes as u32);
        group.verified = true;
        let ends = group.protocol == TCP && packet[group.transport + TCP_FLAGS] & (PSH | FIN) != 0;
        if ends || bytes < group.segment_bytes || group.pkts == MOST_PKTS {
            self.open.swap_remove(nth);
        }
        self.members.push(Member {
            payload: place.start + payload,
            place,
            next: None,
        });
    }

    /// Writes everything, in the order of the first packet of each super-packet, and is empty then.
    pub fn deliver(&mut self, buffer: &mut [u8], mut write: impl FnMut(Whole<'_>)) {
        for group in &self.groups {
            let work = if group.pkts == 1 {
                VnetHeader::default()
            } else {
                join(group, &self.members, buffer)
            };
            let first = &self.members[group.first];
            let mut parts = Parts::with_capacity(group.pkts + 1);
            let header = work.bytes();
            parts.push(IoSlice::new(&header));
            parts.push(IoSlice::new(&buffer[first.place.clone()]));
            let mut bytes = first.place.len();
            let mut next = first.next;
            while let Some(at) = next {
                let member = &self.members[at];
                parts.push(IoSlice::new(&buffer[member.payload..member.place.end]));
                bytes += member.place.len();
                next = member.next;
            }
            write(Whole {
                parts,
                pkts: group.pkts,
                bytes,
            });
        }
        self.members.clear();
        self.groups.clear();
        self.open.clear();
    }
}

/// Makes the header of a group's first packet that of all.
fn join(group: &Group, members: &[Member], buffer: &mut [u8]) -> VnetHeader {
    let transport = group.transport;
    let first = &members[group.first];
    let header_bytes = first.payload - first.place.start;
    let last = members[group.last].place.start + transport;
    // Read before `packet` borrows the buffer. Only the last packet may carry PSH or FIN; cutting gives them back to the last.
    let last_flags = if group.protocol == TCP {
        buffer[last + TCP_FLAGS]
    } else {
        0
    };
    let packet = &mut buffer[first.place.clone()];
    let above_bytes = group.bytes - transport;
    let mut put = |at: usize, value: u16| {
        packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
    };
    let addresses = if group.v4 {
        put(2, group.bytes as u16); // fits: a group is closed before its length exceeds 65535
        put(10, 0); // the checksum of IPv4 is summed with its own field 0, so the order matters
        let sum = !checksum::sum(&packet[..transport]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        12..20
    } else {
        put(4, (group.bytes - 40) as u16);
        8..40
    };
    // With NEEDS_CSUM the field holds the sum of the pseudo-header; the kernel adds the rest.
    let pseudo = checksum::pseudo(&packet[addresses], group.protocol, above_bytes);
    let above = &mut packet[transport..];
    let (kind, place) = if group.protocol == TCP {
        above[TCP_FLAGS] |= last_flags & (PSH | FIN);
        let kind = if group.v4 { GSO_TCPV4 } else { GSO_TCPV6 };
        (kind, TCP_CHECKSUM)
    } else {
        above[4..6].copy_from_slice(&(above_bytes as u16).to_be_bytes());
        (GSO_UDP_L4, UDP_CHECKSUM)
    };
    above[place..place + 2].copy_from_slice(&pseudo.to_be_bytes());
    VnetHeader {
        flags: NEEDS_CSUM,
        kind,
        header_bytes: header_bytes as u16,
        segment_bytes: group.segment_bytes as u16,
        checksum_start: transport as u16,
        checksum_offset: place as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::packet::{parse, ICMP};
    use crate::bytes::superpacket::tests::{payload, Flow};
    use crate::bytes::superpacket::{finish, Packet};

    const DATA: u8 = ACK;

    /// The packets that come out of joined ones, each cut again.
    fn coalesced(packets: &[Vec<u8>], tcp: bool, udp: bool) -> Vec<Vec<Vec<u8>>> {
        let mut buffer = Vec::new();
        let mut coalescer = Coalescer::new(tcp, udp);
        let places: Vec<_> = packets
            .iter()
            .map(|packet| {
                let begin = buffer.len();
                buffer.extend(packet);
                begin..buffer.len()
            })
            .collect();
        for (packet, place) in packets.iter().zip(places) {
            coalescer.add(&buffer, place, &parse(packet).unwrap());
        }
        let mut wholes = Vec::new();
        coalescer.deliver(&mut buffer, |whole| {
            let written: Vec<u8> = whole.parts.iter().flat_map(|part| part.to_vec()).collect();
            let (work, bytes) = VnetHeader::split(&written).unwrap();
            let mut bytes = bytes.to_vec();
            let train = finish(work, &mut bytes).unwrap();
            let cut: Vec<Vec<u8>> = Packet::copy(&bytes, train)
                .split()
                .map(|packet| packet.to_vec())
                .collect();
            assert_eq!(cut.len(), whole.pkts);
            assert_eq!(cut.iter().map(Vec::len).sum::<usize>(), whole.bytes);
            wholes.push(cut);
        });
        assert!(coalescer.is_empty());
        wholes
    }

    fn lengths(wholes: &[Vec<Vec<u8>>]) -> Vec<usize> {
        wholes.iter().map(Vec::len).collect()
    }

    /// Packets of one flow that continue each other, with payloads of these lengths.
    fn run(flow: &Flow, lengths: &[usize]) -> Vec<Vec<u8>> {
        let mut sequence = 0xffff_ff00_u32;
        let mut packets = Vec::new();
        for (at, bytes) in lengths.iter().enumerate() {
            packets.push(flow.packet(
                65_530_u16.wrapping_add(at as u16),
                sequence,
                DATA,
                &payload(*bytes),
            ));
            sequence = sequence.wrapping_add(*bytes as u32);
        }
        packets
    }

    #[test]
    fn consecutive_packets_are_joined_and_cutting_restores_them() {
        for v6 in [false, true] {
            for tcp in [false, true] {
                let flow = Flow::new(v6, tcp, 1000);
                for lengths in [&[500; 10][..], &[500, 500, 499], &[1, 1]] {
                    let packets = run(&flow, lengths);
                    assert_eq!(coalesced(&packets, true, true), [packets]);
                }
            }
        }
    }

    #[test]
    fn nothing_grows_beyond_its_bounds() {
        for tcp in [false, true] {
            let flow = Flow::new(false, tcp, 1000);
            let packets = run(&flow, &[10; 150]);
            assert_eq!(lengths(&coalesced(&packets, true, true)), [64, 64, 22]);
            // 46 of 1400 bytes and the headers fit into 65535, 47 do not.
            let packets = run(&flow, &[1400; 50]);
            assert_eq!(lengths(&coalesced(&packets, true, true)), [46, 4]);
            // A shorter one is the last, a longer one begins a new super-packet.
            let packets = run(&flow, &[500, 500, 400, 400, 500, 500]);
            assert_eq!(lengths(&coalesced(&packets, true, true)), [3, 1, 2]);
        }
    }

    #[test]
    fn devices_get_only_super_packets_they_accept() {
        let tcp = run(&Flow::new(false, true, 1000), &[500; 3]);
        let udp = run(&Flow::new(false, false, 1000), &[500; 3]);
        for (tcp_taken, udp_taken) in [(false, false), (true, false), (true, true)] {
            let both = [
                coalesced(&tcp, tcp_taken, udp_taken),
                coalesced(&udp, tcp_taken, udp_taken),
            ];
            assert_eq!(both[0].len(), if tcp_taken { 1 } else { 3 });
            assert_eq!(both[1].len(), if udp_taken { 1 } else { 3 });
        }
    }

    /// Three segments of a connection, the middle one changed.
    fn changed(change: impl Fn(&Flow, &mut Vec<u8>)) -> Vec<usize> {
        let flow = Flow::new(false, true, 1000);
        let mut packets = run(&flow, &[500; 3]);
        change(&flow, &mut packets[1]);
        let wholes = coalesced(&packets, true, true);
        assert_eq!(
            wholes.concat(),
            packets,
            "nothing is lost, changed or moved"
        );
        lengths(&wholes)
    }

    #[test]
    fn packets_that_cutting_could_not_restore_are_not_joined() {
        let again = |flow: &Flow, flags, sequence, bytes: usize| {
            flow.packet(65_531, sequence, flags, &payload(bytes))
        };
        assert_eq!(changed(|_, _| {}), [3]);
        assert_eq!(
            changed(|_, packet| packet[100] ^= 1),
            [1, 1, 1],
            "a wrong checksum"
        );
        assert_eq!(
            changed(|flow, packet| *packet = again(flow, DATA, 7, 500)),
            [1, 1, 1],
            "a gap"
        );
        let next = 0xffff_ff00_u32.wrapping_add(500);
        for flags in [DATA | 2, DATA | 4, DATA | 0x20, DATA | 0x80, DATA | ECE, 0] {
            let lengths = changed(|flow, packet| *packet = again(flow, flags, next, 500));
            assert_eq!(lengths, [1, 1, 1], "flags {flags:02x}");
        }
        assert_eq!(
            changed(|flow, packet| *packet = again(flow, DATA, next, 0)),
            [1, 1, 1],
            "no data"
        );
        let lengths = changed(|flow, packet| *packet = again(flow, DATA | PSH, next, 500));
        assert_eq!(lengths, [2, 1], "handed on at once");
        let marked = |flow: &Flow, packet: &mut Vec<u8>| {
            let flow = Flow {
                tos: 3,
                ..flow.clone()
            };
            *packet = again(&flow, DATA, next, 500);
        };
        assert_eq!(changed(marked), [1, 1, 1], "another services field");
        let options = |flow: &Flow, packet: &mut Vec<u8>| {
            let options = vec![1, 1, 1, 1];
            let flow = Flow {
                options,
                ..flow.clone()
            };
            *packet = again(&flow, DATA, next, 500);
        };
        assert_eq!(changed(options), [1, 1, 1], "other options");
    }

    #[test]
    fn a_wrong_checksum_of_the_first_is_not_repaired() {
        let mut packets = run(&Flow::new(true, true, 1000), &[500; 3]);
        packets[0][200] ^= 1;
        let wholes = coalesced(&packets, true, true);
        assert_eq!(lengths(&wholes), [1, 2]);
        assert_eq!(wholes.concat(), packets);
        // UDP without a checksum over IPv4 has nothing to verify.
        let mut packets = run(&Flow::new(false, false, 1000), &[500; 3]);
        for packet in &mut packets {
            packet[26..28].fill(0);
        }
        assert_eq!(coalesced(&packets, true, true).concat(), packets);
    }

    #[test]
    fn headers_that_end_early_pass_as_they_are() {
        use crate::bytes::packet::tests::{v4, v6};
        for tcp in [false, true] {
            let flow = Flow::new(false, tcp, 1000);
            let good = run(&flow, &[500; 2]);
            let protocol = if tcp { TCP } else { UDP };
            for end in 0..=28 {
                for packet in [
                    v4(protocol, 0, 1, 0, &good[1][20..20 + end]),
                    v6(protocol, 0, &good[1][20..20 + end]),
                ] {
                    let packets = [good[0].clone(), packet, good[1].clone()];
                    let mut all = coalesced(&packets, true, true).concat();
                    let mut expected = packets.to_vec();
                    all.sort();
                    expected.sort();
                    assert_eq!(all, expected);
                }
            }
        }
    }

    #[test]
    fn flows_do_not_keep_each_other_apart_but_messages_do() {
        let flows = [
            Flow::new(false, true, 1),
            Flow::new(true, true, 1),
            Flow::new(false, false, 1),
        ];
        let runs: Vec<_> = flows.iter().map(|flow| run(flow, &[300; 6])).collect();
        let mixed: Vec<Vec<u8>> = (0..6)
            .flat_map(|at| runs.iter().map(move |run| run[at].clone()))
            .collect();
        assert_eq!(coalesced(&mixed, true, true), runs);
        let mut parted = runs[0].clone();
        parted.insert(
            2,
            crate::bytes::packet::tests::v4(ICMP, 0, 0, 0, &[3, 4, 0, 0]),
        );
        assert_eq!(lengths(&coalesced(&parted, true, true)), [2, 1, 4]);
    }

    #[test]
    fn every_flow_keeps_its_packets_and_their_order() {
        // A linear congruential generator: Knuth's constants for 64 bits.
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut joined = 0;
        for _ in 0..300 {
            let mut flows: Vec<(Flow, u16, u32)> = (0..5)
                .map(|at| (Flow::new(at & 1 != 0, at & 2 != 0, 1000 + at), at * 100, 7))
                .collect();
            let mut packets: Vec<Vec<u8>> = Vec::new();
            let mut sent: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 5];
            for _ in 0..draw(60) {
                let of = draw(5) as usize;
                let (flow, id, sequence) = &mut flows[of];
                let bytes = [400, 400, 400, 400, 399, 401, 0][draw(7) as usize];
                let flags = DATA | [0, 0, 0, 0, PSH, FIN, 2][draw(7) as usize];
                if draw(12) == 0 {
                    *sequence = sequence.wrapping_add(1000);
                }
                let mut packet = flow.packet(*id, *sequence, flags, &payload(bytes));
                if draw(12) == 0 {
                    let last = packet.len() - 1;
                    packet[last] ^= 0x55;
                }
                *id += 1;
                *sequence = sequence.wrapping_add(bytes as u32);
                sent[of].push(packet.clone());
                packets.push(packet);
            }
            let wholes = coalesced(&packets, true, true);
            joined += packets.len() - wholes.len();
            let mut received: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 5];
            for packet in wholes.into_iter().flatten() {
                let (port, _) = parse(&packet).unwrap().ports.unwrap();
                received[usize::from(port) - 1000].push(packet);
            }
            assert_eq!(received, sent);
        }
        assert!(joined > 1000, "{joined} packets were put to others");
    }
}
