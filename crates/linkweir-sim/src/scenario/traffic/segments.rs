// SPDX-License-Identifier: BSD-3-Clause
//! Super-packets of a capture, and the segments that the network carried in their place.
//!
//! Linux hands data to a card, or takes it from there, in pieces of up to 64 kB and more (TSO, GSO, GRO, LRO), which a
//! capture on that machine shows as packets. The network never carried them. Such a packet of TCP is longer than the other
//! end's maximum segment size allows (RFC 9293, section 3.7.1), which the SYNs of a connection announce. Without SYNs, and
//! over UDP, it is longer than Ethernet's MTU; then the longest packet of the connection that is not stands for the MTU, if
//! it is at least IPv6's least.
//!
//! Each segment has the headers of the packet it was part of.

use std::collections::BTreeMap;

/// Times, ns after some instant, and bytes.
pub(super) type Packets = Vec<(u64, u32)>;

/// Longest IP packet of Ethernet.
const ETHERNET_BYTES: u32 = 1500;
/// A shorter packet than this is no sign of the MTU: every network of IPv6 carries this one.
const LEAST_MTU_BYTES: u32 = 1280;
/// Least maximum segment size that is believed, the default of IPv4 less room for options.
const LEAST_MSS: u32 = 256;
/// Most packets of a capture after the split.
const MOST_PACKETS: usize = 1 << 24;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 0x02;
/// TCP's option with the maximum segment size.
const MSS_OPTION: u8 = 2;

/// A frame of a link layer that is known.
pub(super) struct Frame<'c> {
    /// Bytes of the link layer that count as the packet's.
    pub(super) outside: u32,
    /// What was captured behind the link layer's header.
    pub(super) packet: &'c [u8],
    /// Of Ethernet what follows the addresses.
    pub(super) ethertype: Option<&'c [u8]>,
}

/// Address and port of an end; 16 bytes as of IPv6.
type End = ([u8; 16], u16);
/// From where, to where, and the protocol.
type Connection = (End, End, u8);

/// A packet of TCP or UDP over IP.
struct Headers {
    connection: Connection,
    /// Bytes in front of the IP header that count as the packet's: tags of VLANs.
    tags: u32,
    /// Of IP, and of IP and TCP or UDP.
    ip_bytes: u32,
    bytes: u32,
    /// Of a SYN.
    mss: Option<u32>,
}

/// A packet as it lies in the capture.
struct Recorded {
    at_ns: u64,
    bytes: u32,
    /// None: nothing of TCP or UDP.
    cut: Option<Cut>,
}

/// How to split a packet.
struct Cut {
    connection: usize,
    /// Bytes of each segment in front of the IP header.
    outside: u32,
    /// Of IP, and of IP and TCP or UDP.
    ip_bytes: u32,
    headers: u32,
}

/// What is known of a direction of a connection.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The other direction.
    back: Option<usize>,
    /// What its sender announced.
    mss: Option<u32>,
    /// Its longest packet within Ethernet's MTU.
    ordinary: u32,
}

/// All packets of a capture.
#[derive(Default)]
pub(super) struct Capture {
    packets: Vec<Recorded>,
    numbers: BTreeMap<Connection, usize>,
    known: Vec<Known>,
}

impl Capture {
    /// Takes a packet of so many bytes.
    pub(super) fn add(&mut self, at_ns: u64, bytes: u32, frame: Option<Frame<'_>>) {
        let cut = frame.and_then(|frame| {
            let headers = Headers::read(&frame)?;
            let (from, to, protocol) = headers.connection;
            let connection = self.number(headers.connection);
            let back = self.numbers.get(&(to, from, protocol)).copied();
            let outside = frame.outside + headers.tags;
            let known = &mut self.known[connection];
            known.back = known.back.or(back);
            known.mss = headers.mss.or(known.mss);
            let ip_bytes = bytes.saturating_sub(outside);
            if ip_bytes <= ETHERNET_BYTES {
                known.ordinary = known.ordinary.max(ip_bytes);
            }
            if let Some(back) = back {
                self.known[back].back = Some(connection);
            }
            Some(Cut {
                connection,
                outside,
                ip_bytes: headers.ip_bytes,
                headers: headers.bytes,
            })
        });
        self.packets.push(Recorded { at_ns, bytes, cut });
    }

    fn number(&mut self, connection: Connection) -> usize {
        let next = self.known.len();
        let number = *self.numbers.entry(connection).or_insert(next);
        if number == next {
            self.known.push(Known::default());
        }
        number
    }

    /// The longest IP packet of a connection, whether a SYN told it, and from which length on packets are longer.
    fn most(&self, cut: &Cut) -> (u32, bool, u32) {
        let known = self.known[cut.connection];
        let back = known.back.and_then(|back| self.known[back].mss);
        if let Some(mss) = known.mss.into_iter().chain(back).min() {
            let most = mss + cut.ip_bytes + 20;
            return (most, true, most);
        }
        let ordinary = Some(known.ordinary).filter(|bytes| *bytes >= LEAST_MTU_BYTES);
        (ordinary.unwrap_or(ETHERNET_BYTES), false, ETHERNET_BYTES)
    }

    /// The packets that the network carried, and a note if they are not those of the file; None: there are too many.
    pub(super) fn split(&self, mtu: Option<u32>) -> Option<(Packets, Option<String>)> {
        let mut packets = Packets::with_capacity(self.packets.len());
        let mut split = 0;
        let mut longest = 0;
        let (mut least, mut greatest) = (u32::MAX, 0);
        let mut told = [0; 2];
        for packet in &self.packets {
            let cut = packet.cut.as_ref().and_then(|cut| {
                let (most, by_syn, limit) = match mtu {
                    Some(mtu) => (mtu, false, mtu),
                    None => self.most(cut),
                };
                let ip_bytes = packet.bytes.saturating_sub(cut.outside);
                (ip_bytes > limit && most > cut.headers).then_some((cut, most, by_syn, ip_bytes))
            });
            let Some((cut, most, by_syn, ip_bytes)) = cut else {
                packets.push((packet.at_ns, packet.bytes));
                continue;
            };
            split += 1;
            longest = longest.max(packet.bytes);
            (least, greatest) = (least.min(most), greatest.max(most));
            told[usize::from(by_syn)] += 1;
            let mut payload = ip_bytes - cut.headers;
            while payload > 0 {
                let carried = payload.min(most - cut.headers);
                packets.push((packet.at_ns, carried + cut.headers + cut.outside));
                payload -= carried;
            }
            if packets.len() > MOST_PACKETS {
                return None;
            }
        }
        let segments = packets.len() + split - self.packets.len();
        let note = (split > 0).then(|| {
            let learnt = match (mtu, told) {
                (Some(_), _) => "as mtu says",
                (None, [0, _]) => "by the MSS of the SYNs",
                (None, [_, 0]) => {
                    "as the longest packet of the connection within Ethernet's MTU (it has no SYN)"
                }
                _ => "by the MSS of the SYNs, or as the longest packet within Ethernet's MTU where there is none",
            };
            let range = if least == greatest {
                format!("{least}B")
            } else {
                format!("{least}B to {greatest}B")
            };
            let one = if mtu.is_some() {
                ""
            } else {
                "; give mtu if the network carried longer packets"
            };
            format!(
                "{split} of {} packets, of up to {longest}B, are super-packets of segmentation offload, which the network did not \
                 carry; they are sent as {segments} segments in IP packets of at most {range}, {learnt}{one}",
                self.packets.len()
            )
        });
        Some((packets, note))
    }
}

impl Headers {
    /// Reads them from what was captured; None: not of TCP or UDP, or of a fragment.
    fn read(frame: &Frame<'_>) -> Option<Headers> {
        let mut tags = 0;
        if let Some([a, b]) = frame.ethertype {
            // 802.1Q and 802.1ad.
            let mut ethertype = [*a, *b];
            while matches!(ethertype, [0x81, 0x00] | [0x88, 0xa8]) {
                ethertype = frame.packet.get(tags + 2..tags + 4)?.try_into().ok()?;
                tags += 4;
            }
            if !matches!(ethertype, [0x08, 0x00] | [0x86, 0xdd]) {
                return None;
            }
        }
        let packet = frame.packet.get(tags..)?;
        let (from, to, protocol, ip_bytes) = match packet.first()? >> 4 {
            4 => {
                let fragment = u16::from_be_bytes(packet.get(6..8)?.try_into().ok()?);
                if fragment & 0x3fff != 0 {
                    return None;
                }
                let ip_bytes = usize::from(packet[0] & 15) * 4;
                let address = |at: usize| {
                    let mut address = [0; 16];
                    address[..4].copy_from_slice(packet.get(at..at + 4)?);
                    Some(address)
                };
                (address(12)?, address(16)?, packet[9], ip_bytes)
            }
            6 => {
                let address = |at: usize| packet.get(at..at + 16)?.try_into().ok();
                (address(8)?, address(24)?, packet[6], 40)
            }
            _ => return None,
        };
        if ip_bytes < 20 || ![TCP, UDP].contains(&protocol) {
            return None;
        }
        // What a short capture leaves out is taken to have no options.
        let inner = packet.get(ip_bytes..).unwrap_or_default();
        let port = |at: usize| match inner.get(at..at + 2) {
            Some(port) => u16::from_be_bytes([port[0], port[1]]),
            None => 0,
        };
        let inner_bytes = match protocol {
            UDP => 8,
            _ => inner
                .get(12)
                .map_or(20, |offset| usize::from(offset >> 4) * 4)
                .max(20),
        };
        let syn = protocol == TCP && inner.get(13).is_some_and(|flags| flags & SYN != 0);
        Some(Headers {
            connection: ((from, port(0)), (to, port(2)), protocol),
            tags: tags as u32,
            ip_bytes: ip_bytes as u32,
            bytes: (ip_bytes + inner_bytes) as u32,
            mss: if syn {
                announced(
                    inner
                        .get(20..inner_bytes.min(inner.len()))
                        .unwrap_or_default(),
                )
            } else {
                None
            },
        })
    }
}

/// The maximum segment size in the options of a SYN.
fn announced(mut options: &[u8]) -> Option<u32> {
    loop {
        match options {
            [1, rest @ ..] => options = rest,
            [MSS_OPTION, 4, a, b, ..] => {
                let mss = u32::from(u16::from_be_bytes([*a, *b]));
                return (mss >= LEAST_MSS).then_some(mss);
            }
            [kind, length, ..] if *kind != 0 && *length >= 2 => {
                options = options.get(usize::from(*length)..)?;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_pcg::rand_core::Rng;
    use rand_pcg::Pcg64;

    use super::*;

    fn below(draw: &mut Pcg64, most: u32) -> u32 {
        draw.next_u32() % most
    }

    /// A connection in one direction, written out.
    #[derive(Clone)]
    struct Spoken {
        is_v6: bool,
        is_tcp: bool,
        tags: usize,
        port: u16,
        /// Of TCP, in words of 4 bytes.
        options: u8,
    }

    impl Spoken {
        fn drawn(draw: &mut Pcg64, port: u16) -> Spoken {
            Spoken {
                is_v6: below(draw, 2) == 0,
                is_tcp: below(draw, 3) > 0,
                tags: below(draw, 3) as usize,
                port,
                options: below(draw, 11) as u8,
            }
        }

        /// Bytes of IP, and of TCP or UDP.
        fn header_bytes(&self) -> [u32; 2] {
            let inner = if self.is_tcp {
                20 + 4 * u32::from(self.options)
            } else {
                8
            };
            [if self.is_v6 { 40 } else { 20 }, inner]
        }

        /// The tags and headers of a packet (RFC 791, 8200, 9293, 768), and the rest of the type in front of them.
        fn written(&self, back: bool, mss: Option<u16>) -> ([u8; 2], Vec<u8>) {
            let kind: [u8; 2] = if self.is_v6 { [0x86, 0xdd] } else { [8, 0] };
            let mut bytes = Vec::new();
            for tag in 0..self.tags {
                let next = if tag + 1 < self.tags { [0x81, 0] } else { kind };
                bytes.extend([0, 7]);
                bytes.extend(next);
            }
            let protocol = if self.is_tcp { TCP } else { UDP };
            let (from, to) = if back { (2, 1) } else { (1, 2) };
            if self.is_v6 {
                bytes.extend([0x60, 0, 0, 0, 0, 0, protocol, 64]);
                bytes.extend([from; 16]);
                bytes.extend([to; 16]);
            } else {
                bytes.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
                bytes.extend([from; 4]);
                bytes.extend([to; 4]);
            }
            let ports = if back {
                [443, self.port]
            } else {
                [self.port, 443]
            };
            bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
            if self.is_tcp {
                let words = if mss.is_some() { 6 } else { 5 + self.options };
                bytes.extend([0; 8]);
                bytes.extend([words << 4, if mss.is_some() { SYN } else { 0x10 }]);
                bytes.extend([0; 6]);
                match mss {
                    Some(mss) => {
                        bytes.extend([MSS_OPTION, 4]);
                        bytes.extend(mss.to_be_bytes());
                    }
                    None => bytes.extend(vec![1; 4 * usize::from(self.options)]),
                }
            } else {
                bytes.extend([0; 4]);
            }
            let first = if self.tags > 0 { [0x81, 0] } else { kind };
            (first, bytes)
        }
    }

    /// Bytes that a packet carries above TCP or UDP, cut into pieces: an independent computation.
    fn expected(spoken: &Spoken, ip_bytes: u32, most: u32) -> Vec<u32> {
        let headers: u32 = spoken.header_bytes().iter().sum();
        let piece = most - headers;
        let mut pieces: Vec<u32> = Vec::new();
        let mut carried = 0;
        while carried < ip_bytes - headers {
            let next = piece.min(ip_bytes - headers - carried);
            pieces.push(next + headers + 4 * spoken.tags as u32);
            carried += next;
        }
        pieces
    }

    /// Random connections with SYNs in one direction, both or none, and packets of any length. What the network carried is
    /// computed a second time by the rules of the first comment.
    #[test]
    fn super_packets_become_the_segments_of_their_connection() {
        let mut split = 0;
        for seed in 0..300 {
            let draw = &mut Pcg64::new(seed, 1);
            let mut capture = Capture::default();
            let mut expected_packets = Packets::new();
            let mut mtu = None;
            if below(draw, 5) == 0 {
                mtu = Some(576 + below(draw, 9000));
            }
            for number in 0..4 {
                let spoken = Spoken::drawn(draw, 1000 + number);
                let headers: u32 = spoken.header_bytes().iter().sum();
                let tags = 4 * spoken.tags as u32;
                let add = |capture: &mut Capture, at_ns, bytes, back, mss| {
                    let (ethertype, packet) = spoken.written(back, mss);
                    let frame = Frame {
                        outside: 0,
                        packet: &packet,
                        ethertype: Some(&ethertype),
                    };
                    capture.add(at_ns, bytes, Some(frame));
                };
                let mut announced: Vec<u32> = Vec::new();
                for back in [false, true] {
                    if spoken.is_tcp && below(draw, 2) == 0 {
                        let mss = 256 + below(draw, 8700) as u16;
                        announced.push(mss.into());
                        let [ip, _] = spoken.header_bytes();
                        add(&mut capture, 1, ip + 24 + tags, back, Some(mss));
                        expected_packets.push((1, ip + 24 + tags));
                    }
                }
                let lengths: Vec<u32> = (0..20)
                    .map(|_| match below(draw, 3) {
                        0 => headers + 1 + below(draw, 65_535),
                        1 => headers + 1 + below(draw, 1500 - headers),
                        _ => headers + below(draw, 3000),
                    })
                    .collect();
                let ordinary = lengths.iter().copied().filter(|bytes| *bytes <= 1500).max();
                let [ip, _] = spoken.header_bytes();
                let least = announced.iter().min().map(|mss| mss + ip + 20);
                let learnt = ordinary.filter(|bytes| *bytes >= 1280).unwrap_or(1500);
                // From which length on a packet is split, and into which.
                let (limit, most) = match (mtu, least) {
                    (Some(mtu), _) => (mtu, mtu),
                    (None, Some(most)) => (most, most),
                    (None, None) => (1500, learnt),
                };
                for (at, bytes) in lengths.iter().enumerate() {
                    let at_ns = 10 + at as u64;
                    add(&mut capture, at_ns, bytes + tags, false, None);
                    if *bytes > limit {
                        split += 1;
                        let pieces = expected(&spoken, *bytes, most);
                        expected_packets.extend(pieces.iter().map(|bytes| (at_ns, *bytes)));
                    } else {
                        expected_packets.push((at_ns, bytes + tags));
                    }
                }
            }
            let (packets, note) = capture.split(mtu).unwrap();
            assert_eq!(packets, expected_packets, "seed {seed}");
            assert_eq!(
                note.is_some(),
                packets.len() > capture.packets.len(),
                "seed {seed}"
            );
        }
        assert!(split > 1000, "{split}");
    }

    /// Headers that were cut off or damaged anywhere do no harm, and no packet gets lost.
    #[test]
    fn damaged_headers_do_no_harm() {
        for seed in 0..3000 {
            let draw = &mut Pcg64::new(seed, 1);
            let mut capture = Capture::default();
            let mut sum = 0;
            for number in 0..6 {
                let spoken = Spoken::drawn(draw, number % 2);
                let mss = (below(draw, 3) == 0).then(|| draw.next_u32() as u16);
                let (ethertype, mut packet) = spoken.written(number % 2 == 0, mss);
                packet.truncate(below(draw, packet.len() as u32 + 1) as usize);
                for _ in 0..below(draw, 4) {
                    if !packet.is_empty() {
                        let at = below(draw, packet.len() as u32) as usize;
                        packet[at] = draw.next_u32() as u8;
                    }
                }
                let frame = Frame {
                    outside: below(draw, 30),
                    packet: &packet,
                    ethertype: (below(draw, 2) == 0).then_some(&ethertype),
                };
                let scale = below(draw, 21);
                let bytes = 1 + below(draw, 1 << scale);
                sum += u64::from(bytes);
                capture.add(u64::from(number), bytes, Some(frame));
            }
            let mtu = (below(draw, 2) == 0).then(|| 576 + below(draw, 2000));
            let (packets, _) = capture.split(mtu).unwrap();
            let total: u64 = packets.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
            assert!(packets.len() >= 6 && total >= sum, "seed {seed}");
        }
    }
}
