// SPDX-License-Identifier: BSD-3-Clause
//! Packets in the queues, among them super-packets: many segments of one flow behind one header, as a kernel with
//! segmentation offload hands them out. [`Packet::cutter`] makes the single packets, with all checksums.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};

use crate::bytes::checksum;
use crate::bytes::packet::{self, Header, TCP, UDP};
use crate::bytes::vnet::{
    VnetHeader, GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM,
};

/// Shortest TCP header, bytes.
pub const TCP_BYTES: usize = 20;
/// UDP header, bytes.
pub const UDP_BYTES: usize = 8;
/// Where the checksum of TCP is in its header.
pub const TCP_CHECKSUM: usize = 16;
/// Where the checksum of UDP is in its header.
pub const UDP_CHECKSUM: usize = 6;
/// Where TCP's flags are in its header.
pub const TCP_FLAGS: usize = 13;
/// TCP: the last segment.
pub const FIN: u8 = 1;
/// TCP: deliver at once.
pub const PSH: u8 = 8;
/// TCP: the window was reduced.
pub const CWR: u8 = 0x80;

/// How a super-packet is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    tcp: bool,
    /// Where the transport header begins.
    transport: u16,
    /// Where the payload begins.
    payload: u16,
    /// Payload of every segment but the last, bytes.
    segment_bytes: u16,
}

/// A packet or a super-packet, and the memory it lies in.
#[derive(Clone)]
pub struct Packet {
    buffer: Box<[u8]>,
    begin: u32,
    end: u32,
    train: Option<Train>,
}

/// The error for what is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Completes the checksum of a packet that came with a [`VnetHeader`], or returns how the super-packet is cut.
///
/// # Errors
/// When the header contradicts the packet.
pub fn finish(work: VnetHeader, packet: &mut [u8]) -> Result<Option<Train>, Malformed> {
    if work.kind & !GSO_ECN != GSO_NONE {
        return Train::read(work, packet).map(Some).ok_or(Malformed);
    }
    if work.flags & NEEDS_CSUM != 0 {
        let start = usize::from(work.checksum_start);
        let at = start + usize::from(work.checksum_offset);
        if at + 2 > packet.len() {
            return Err(Malformed);
        }
        // The field holds the sum of the pseudo header and is part of what is summed.
        let sum = !checksum::sum(&packet[start..]);
        let udp = usize::from(work.checksum_offset) == UDP_CHECKSUM;
        put(packet, at, if udp && sum == 0 { 0xffff } else { sum });
    }
    Ok(None)
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

impl Train {
    /// How a super-packet is cut; none when the header contradicts it.
    fn read(work: VnetHeader, bytes: &[u8]) -> Option<Train> {
        let Header {
            source,
            protocol,
            fragment,
            payload: transport,
            ..
        } = packet::parse(bytes)?;
        let expected = match work.kind & !GSO_ECN {
            GSO_TCPV4 if source.is_ipv4() => TCP,
            GSO_TCPV6 if source.is_ipv6() => TCP,
            GSO_UDP_L4 => UDP,
            _ => return None,
        };
        let header_bytes = if protocol == TCP {
            usize::from(bytes.get(transport + 12)? >> 4) * 4
        } else {
            UDP_BYTES
        };
        let least = if protocol == TCP {
            TCP_BYTES
        } else {
            UDP_BYTES
        };
        let payload = transport + header_bytes;
        let sound = protocol == expected
            && fragment.is_none()
            && header_bytes >= least
            && payload < bytes.len()
            && work.segment_bytes > 0;
        if !sound {
            return None;
        }
        Some(Train {
            tcp: protocol == TCP,
            transport: u16::try_from(transport).ok()?,
            payload: u16::try_from(payload).ok()?,
            segment_bytes: work.segment_bytes,
        })
    }
}

impl Packet {
    /// A packet that lies at `place` of `buffer`.
    #[must_use]
    pub fn new(buffer: Box<[u8]>, place: Range<usize>, train: Option<Train>) -> Packet {
        Packet {
            begin: place.start as u32,
            end: place.end as u32,
            buffer,
            train,
        }
    }

    /// A copy in memory of its own.
    #[must_use]
    pub fn copy(bytes: &[u8], train: Option<Train>) -> Packet {
        Packet::new(bytes.into(), 0..bytes.len(), train)
    }

    /// The memory it lay in.
    #[must_use]
    pub fn into_buffer(self) -> Box<[u8]> {
        self.buffer
    }

    /// Bytes of that memory.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Number of packets in it.
    #[must_use]
    pub fn pkts(&self) -> usize {
        self.train.map_or(1, |train| {
            (self.len() - usize::from(train.payload)).div_ceil(train.segment_bytes.into())
        })
    }

    /// Bytes of the headers that are made for each of its packets; none of a single packet.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        self.train.map_or(0, |train| train.payload.into())
    }

    /// Length of the packet with this number, bytes.
    #[must_use]
    pub fn pkt_bytes(&self, at: usize) -> usize {
        self.header_bytes() + self.payload(at).len()
    }

    /// Bytes of all its packets on the link; `wire_bytes` gives those of a packet of some length.
    pub fn sum(&self, wire_bytes: impl Fn(usize) -> u32) -> u64 {
        // All packets but the last have one length.
        let last = self.pkts() - 1;
        last as u64 * u64::from(wire_bytes(self.pkt_bytes(0)))
            + u64::from(wire_bytes(self.pkt_bytes(last)))
    }

    /// Where the payload of the packet with this number lies; of a single packet, all of it.
    fn payload(&self, at: usize) -> Range<usize> {
        let Some(train) = self.train else {
            return 0..self.len();
        };
        let each = usize::from(train.segment_bytes);
        let begin = usize::from(train.payload) + at * each;
        begin..(begin + each).min(self.len())
    }

    /// A cutter that makes its packets one by one.
    #[must_use]
    pub fn cutter(&self) -> Cutter<'_> {
        let mut cutter = Cutter {
            whole: self,
            ip_sum: 0,
            above_sum: 0,
        };
        let Some(train) = self.train else {
            return cutter;
        };
        let header = &self[..train.payload.into()];
        let (ip, above) = header.split_at(train.transport.into());
        let sum = checksum::sum;
        let addresses = if ip[0] >> 4 == 4 {
            cutter.ip_sum = checksum::add([sum(&ip[..2]), sum(&ip[6..10]), sum(&ip[12..])]);
            &ip[12..20]
        } else {
            &ip[8..40]
        };
        let (protocol, rest) = if train.tcp {
            // Without sequence number, flags and checksum.
            let rest = [sum(&above[8..12]), sum(&above[14..16]), sum(&above[18..])];
            (TCP, checksum::add(rest))
        } else {
            (UDP, 0)
        };
        let pseudo = checksum::pseudo(addresses, protocol, 0);
        cutter.above_sum = checksum::add([pseudo, sum(&above[..4]), rest]);
        cutter
    }

    /// Its packets, each in memory of its own.
    pub fn split(&self) -> impl Iterator<Item = Packet> + '_ {
        let cutter = self.cutter();
        (0..self.pkts()).map(move |at| {
            let header_bytes = self.header_bytes();
            let mut bytes = vec![0; self.pkt_bytes(at)];
            let payload = cutter.cut(at, &mut bytes[..header_bytes]);
            bytes[header_bytes..].copy_from_slice(&self[payload]);
            let place = 0..bytes.len();
            Packet::new(bytes.into(), place, None)
        })
    }
}

/// Cuts a super-packet into its packets; a packet stays one.
pub struct Cutter<'p> {
    whole: &'p Packet,
    /// Sum of the IPv4 header, without what differs from packet to packet: length, identification and checksum.
    ip_sum: u16,
    /// Sum of pseudo and transport header without what differs there.
    above_sum: u16,
}

impl Cutter<'_> {
    /// Writes the headers of the packet with this number into `header`, which has [`Packet::header_bytes`]; returns where
    /// in the whole its payload lies.
    pub fn cut(&self, at: usize, header: &mut [u8]) -> Range<usize> {
        let whole = self.whole;
        let payload = whole.payload(at);
        let Some(train) = whole.train else {
            return payload;
        };
        header.copy_from_slice(&whole[..train.payload.into()]);
        let bytes = header.len() + payload.len();
        let (ip, above) = header.split_at_mut(train.transport.into());
        if ip[0] >> 4 == 4 {
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(at as u16);
            put(ip, 2, bytes as u16);
            put(ip, 4, id);
            put(ip, 10, !checksum::add([self.ip_sum, bytes as u16, id]));
        } else {
            put(ip, 4, (bytes - 40) as u16);
        }
        let above_bytes = above.len() + payload.len();
        let payload_sum = checksum::sum(&whole[payload.clone()]);
        let sum = [self.above_sum, above_bytes as u16, payload_sum];
        if train.tcp {
            let first = u32::from_be_bytes([above[4], above[5], above[6], above[7]]);
            let before_bytes = at * usize::from(train.segment_bytes);
            let sequence = first.wrapping_add(before_bytes as u32);
            above[4..8].copy_from_slice(&sequence.to_be_bytes());
            let mut flags = above[TCP_FLAGS];
            if payload.end < whole.len() {
                flags &= !(FIN | PSH);
            }
            if at > 0 {
                flags &= !CWR;
            }
            above[TCP_FLAGS] = flags;
            let differs = [
                (sequence >> 16) as u16,
                sequence as u16,
                u16::from_be_bytes([above[TCP_FLAGS - 1], flags]),
            ];
            let sum = checksum::add([checksum::add(sum), checksum::add(differs)]);
            put(above, TCP_CHECKSUM, !sum);
        } else {
            put(above, 4, above_bytes as u16);
            let sum = !checksum::add([checksum::add(sum), above_bytes as u16]);
            // In UDP a checksum of zero means that there is none.
            put(above, UDP_CHECKSUM, if sum == 0 { 0xffff } else { sum });
        }
        payload
    }
}

impl Deref for Packet {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.begin as usize..self.end as usize]
    }
}

impl DerefMut for Packet {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.begin as usize..self.end as usize]
    }
}

impl From<&[u8]> for Packet {
    fn from(bytes: &[u8]) -> Packet {
        Packet::copy(bytes, None)
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Packet) -> bool {
        self[..] == other[..] && self.train == other.train
    }
}

impl Eq for Packet {}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("bytes", &self.len())
            .field("train", &self.train)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bytes::packet::tests::{v4, v6};
    use crate::bytes::packet::{checksum, parse, set_tos};

    /// A flow whose packets are made one by one, by other means than cutting.
    #[derive(Clone, Debug)]
    pub(crate) struct Flow {
        pub(crate) v6: bool,
        pub(crate) tcp: bool,
        pub(crate) port: u16,
        pub(crate) tos: u8,
        pub(crate) options: Vec<u8>,
        /// An extension header of IPv6 before TCP or UDP.
        pub(crate) extension: bool,
    }

    impl Flow {
        pub(crate) fn new(v6: bool, tcp: bool, port: u16) -> Flow {
            Flow {
                v6,
                tcp,
                port,
                tos: 0,
                options: Vec::new(),
                extension: false,
            }
        }

        /// A packet of the flow; UDP has neither sequence number nor flags.
        pub(crate) fn packet(&self, id: u16, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
            let mut above = self.port.to_be_bytes().to_vec();
            above.extend(443_u16.to_be_bytes());
            if self.tcp {
                above.extend(sequence.to_be_bytes());
                above.extend([1, 2, 3, 4]);
                above.push(((20 + self.options.len()) as u8 / 4) << 4);
                above.extend([flags, 5, 6, 0, 0, 0, 0]);
                above.extend(&self.options);
            } else {
                above.extend((8 + payload.len() as u16).to_be_bytes());
                above.extend([0, 0]);
            }
            above.extend(payload);
            let protocol = if self.tcp { TCP } else { UDP };
            let blank = if self.v6 {
                v6(protocol, self.tos, &[])
            } else {
                v4(protocol, self.tos, id, 0x4000, &[])
            };
            let mut summed = if self.v6 {
                blank[8..40].to_vec()
            } else {
                blank[12..20].to_vec()
            };
            summed.extend([0, protocol]);
            summed.extend((above.len() as u16).to_be_bytes());
            summed.extend(&above);
            let sum = checksum(&summed);
            let (at, sum) = match (self.tcp, sum) {
                (true, sum) => (16, sum),
                (false, 0) => (6, 0xffff),
                (false, sum) => (6, sum),
            };
            above[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            let mut packet = match (self.v6, self.extension) {
                (true, true) => {
                    let options = [protocol, 0, 1, 4, 0, 0, 0, 0];
                    v6(0, self.tos, &[&options[..], &above].concat())
                }
                (true, false) => v6(protocol, self.tos, &above),
                (false, _) => v4(protocol, self.tos, id, 0x4000, &above),
            };
            // This puts the checksum of an IPv4 header, too.
            set_tos(&mut packet, self.tos);
            packet
        }

        /// What the kernel would say of a super-packet of the flow.
        pub(crate) fn work(&self, segment_bytes: u16) -> VnetHeader {
            let kind = match (self.tcp, self.v6) {
                (true, false) => GSO_TCPV4,
                (true, true) => GSO_TCPV6,
                (false, _) => GSO_UDP_L4,
            };
            VnetHeader {
                flags: NEEDS_CSUM,
                kind,
                segment_bytes,
                ..VnetHeader::default()
            }
        }

        /// A super-packet as it comes from the kernel, its checksum not yet one.
        pub(crate) fn whole(
            &self,
            id: u16,
            sequence: u32,
            flags: u8,
            payload: &[u8],
            segment_bytes: u16,
        ) -> Packet {
            let mut bytes = self.packet(id, sequence, flags, payload);
            let above = parse(&bytes).unwrap().payload;
            let at = above + if self.tcp { 16 } else { 6 };
            bytes[at..at + 2].copy_from_slice(&[0xab, 0xcd]);
            let train = finish(self.work(segment_bytes), &mut bytes).unwrap();
            assert!(train.is_some());
            Packet::copy(&bytes, train)
        }
    }

    pub(crate) fn payload(bytes: usize) -> Vec<u8> {
        (0..bytes as u32)
            .map(|at| (at * at / 3 + at / 256) as u8)
            .collect()
    }

    fn flows() -> Vec<Flow> {
        let mut flows = Vec::new();
        for v6 in [false, true] {
            for tcp in [false, true] {
                let plain = Flow::new(v6, tcp, 1000);
                let timestamps = Flow {
                    options: vec![1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8],
                    ..plain.clone()
                };
                let marked = Flow {
                    tos: 46 << 2 | 1,
                    extension: v6,
                    ..plain.clone()
                };
                flows.extend([plain, timestamps, marked]);
            }
        }
        flows
    }

    #[test]
    fn a_super_packet_is_cut_into_the_packets_it_stands_for() {
        const ACK: u8 = 0x10;
        const EACH: usize = 701;
        // The sequence number and the identification turn over on the way.
        let (id, sequence) = (65_533_u16, 0xffff_fa00_u32);
        for flow in flows() {
            for bytes in [1, EACH - 1, EACH, EACH + 1, 5 * EACH, 5 * EACH + 7] {
                for flags in [ACK, ACK | PSH, ACK | PSH | FIN | CWR] {
                    let all = payload(bytes);
                    let whole = flow.whole(id, sequence, flags, &all, EACH as u16);
                    let count = bytes.div_ceil(EACH);
                    assert_eq!(whole.pkts(), count);
                    let cut: Vec<Packet> = whole.split().collect();
                    assert_eq!(cut.len(), count);
                    for (at, part) in all.chunks(EACH).enumerate() {
                        let mut flags = flags;
                        if at + 1 < count {
                            flags &= !(PSH | FIN);
                        }
                        if at > 0 {
                            flags &= !CWR;
                        }
                        let id = id.wrapping_add(at as u16);
                        let sequence = sequence.wrapping_add((at * EACH) as u32);
                        let expected = flow.packet(id, sequence, flags, part);
                        assert_eq!(cut[at][..], expected[..], "{flow:?}, {bytes} bytes, {at}");
                        assert_eq!(whole.pkt_bytes(at), expected.len());
                    }
                }
            }
        }
    }

    #[test]
    fn checksums_left_to_us_are_completed() {
        for flow in flows() {
            let expected = flow.packet(7, 8, 0x10, &payload(99));
            let mut bytes = expected.clone();
            let header = parse(&bytes).unwrap();
            let start = header.payload;
            let offset = if flow.tcp { 16 } else { 6 };
            // The kernel leaves the sum of the pseudo header there.
            let pseudo = checksum::pseudo_header(&bytes, &header, bytes.len() - start);
            bytes[start + offset..start + offset + 2].copy_from_slice(&pseudo.to_be_bytes());
            let work = VnetHeader {
                flags: NEEDS_CSUM,
                checksum_start: start as u16,
                checksum_offset: offset as u16,
                ..VnetHeader::default()
            };
            assert_eq!(finish(work, &mut bytes), Ok(None));
            assert_eq!(bytes, expected, "{flow:?}");
        }
    }

    #[test]
    fn a_udp_checksum_is_never_zero() {
        // Two bytes of payload that make the sum of everything ffff, so that its complement is zero.
        let flow = Flow::new(false, false, 1000);
        let found = (0..=u16::MAX).find(|word| {
            let packet = flow.packet(0, 0, 0, &word.to_be_bytes());
            packet[26..28] == [0xff, 0xff]
        });
        let word = found.unwrap().to_be_bytes();
        let whole = flow.whole(0, 0, 0, &[word, word].concat(), 2);
        for packet in whole.split() {
            assert_eq!(packet[26..28], [0xff, 0xff]);
        }
    }

    #[test]
    fn headers_that_contradict_the_packet_are_refused() {
        for flow in flows() {
            let good = flow.packet(0, 0, 0x10, &payload(3000));
            let work = flow.work(1000);
            let refused =
                |work: VnetHeader, bytes: &[u8]| finish(work, &mut bytes.to_vec()).is_err();
            assert!(!refused(work, &good));
            for end in 0..good.len() {
                assert!(refused(work, &good[..end]), "cut at {end}");
            }
            for kind in [2, 3, 6, 0x7f, 0xff] {
                assert!(refused(VnetHeader { kind, ..work }, &good), "kind {kind}");
            }
            let other = if flow.tcp { GSO_UDP_L4 } else { GSO_TCPV4 };
            assert!(refused(
                VnetHeader {
                    kind: other,
                    ..work
                },
                &good
            ));
            let segment_bytes = 0;
            assert!(refused(
                VnetHeader {
                    segment_bytes,
                    ..work
                },
                &good
            ));
            let empty = flow.packet(0, 0, 0x10, &[]);
            assert!(refused(work, &empty), "nothing to cut");
            let beyond = VnetHeader {
                flags: NEEDS_CSUM,
                checksum_start: good.len() as u16 - 4,
                checksum_offset: 3,
                ..VnetHeader::default()
            };
            assert!(refused(beyond, &good));
        }
        let fragment = v4(UDP, 0, 0, 0x2000, &[0; 100]);
        let work = Flow::new(false, false, 1).work(10);
        assert_eq!(finish(work, &mut fragment.clone()), Err(Malformed));
    }

    #[test]
    fn a_single_packet_is_itself() {
        let packet = Packet::from(&payload(100)[..]);
        assert_eq!((packet.pkts(), packet.header_bytes()), (1, 0));
        let split: Vec<Packet> = packet.split().collect();
        assert_eq!(split, [packet]);
    }
}
