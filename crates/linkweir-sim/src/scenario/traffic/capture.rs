// SPDX-License-Identifier: BSD-3-Clause
//! Captures, pcap and pcapng. A length is that of the IP packet: the recorded length of the frame (not the captured part of
//! it) less the header of its link layer. Of the packets themselves only the headers are looked at, and only to make
//! segments of those that were too long for the network (`segments.rs`).
//!
//! A capture that was cut off in its last record is read up to there.

use std::path::Path;

use linkweir_config::Fault;
use pcap_parser::pcap::{
    parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};
use pcap_parser::pcapng::{parse_block_be, parse_block_le, Block};
use pcap_parser::Linktype;

use super::super::limits;
use super::segments::{Capture, Frame, Packets};

/// Which bytes of a frame count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    Ip,
    Frame,
}

/// The beginning of pcapng, whatever its order of bytes.
pub(super) const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Whether a file begins as pcap or pcapng does.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    const MAGIC: [[u8; 4]; 6] = [
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0x34, 0xcd, 0xb2, 0xa1],
        PCAPNG,
    ];
    MAGIC.iter().any(|magic| bytes.starts_with(magic))
}

/// Reads a capture; `path` is for messages only. Times are those after the first packet. IP packets longer than `mtu` are
/// split; without it the capture itself tells how long they may be. Returns the packets, and notes on what was not read as
/// it lies.
pub(super) fn read(
    bytes: &[u8],
    path: &Path,
    lengths: Lengths,
    mtu: Option<u32>,
) -> Result<(Packets, Vec<String>), Fault> {
    let mut found = Found {
        path,
        lengths,
        capture: Capture::default(),
        count: 0,
        first_ns: None,
        latest_ns: None,
        notes: Vec::new(),
    };
    if bytes.starts_with(&PCAPNG) {
        pcapng(bytes, &mut found)?;
    } else {
        pcap(bytes, &mut found)?;
    }
    if found.count == 0 {
        let cut = found.notes.first();
        let cut = cut.map_or_else(String::new, |note| format!(": {note}"));
        return Err(found.fault(0, format_args!("has no packets{cut}")));
    }
    let split = found.capture.split(mtu).ok_or_else(|| {
        found.fault(
            0,
            "holds too many segments of long packets; cut it (editcap -c), or give mtu",
        )
    })?;
    let (mut packets, note) = split;
    found.notes.extend(note);
    // Cards and threads write packets a little out of order.
    packets.sort_by_key(|(at_ns, _)| *at_ns);
    let first_ns = packets[0].0;
    for (at_ns, _) in &mut packets {
        *at_ns -= first_ns;
    }
    Ok((packets, found.notes))
}

/// The packets of a capture as they are found.
struct Found<'p> {
    path: &'p Path,
    lengths: Lengths,
    capture: Capture,
    count: usize,
    first_ns: Option<i128>,
    latest_ns: Option<i128>,
    notes: Vec<String>,
}

/// Times up to this far before the first packet of a file are kept in order.
const BEFORE_NS: i128 = 3600 * 1_000_000_000;
const DAY_NS: i128 = 86_400 * 1_000_000_000;
const YEAR_NS: i128 = 365 * DAY_NS;
/// A longer record was not cut off: its length is wrong. The longest that libpcap captures is 2^18 bytes, and the longest
/// super-packet 2^19.
const MOST_RECORD_BYTES: u32 = 1 << 20;
/// The packet block, which the enhanced packet block replaced (draft-ietf-opsawg-pcapng, appendix A).
const OBSOLETE_PACKET: u32 = 2;
/// A longer time without packets is no pause but a wrong time stamp.
const PAUSE_NS: i128 = 30 * DAY_NS;

impl Found<'_> {
    /// A fault of the record at this byte.
    fn fault(&self, at: usize, message: impl std::fmt::Display) -> Fault {
        let message = match at {
            0 => format!("{message}"),
            _ => format!("byte {at}: {message}"),
        };
        Fault::in_file(self.path.to_path_buf(), None, message)
    }

    /// Ends the reading of a file at a record that it does not hold whole.
    fn cut_off(&mut self, at: usize, rest: usize) {
        self.notes.push(format!(
            "the capture was cut off in its last record, at byte {at}; the {} packets before it are read, and the {rest} bytes \
             from there are not",
            self.count
        ));
    }

    fn unreadable(&self, at: usize, incomplete: bool) -> Fault {
        self.fault(
            at.max(1),
            if incomplete {
                "the record there is longer than the rest of the file and than records are; the file is damaged"
            } else {
                "no record of a capture begins there; the file is damaged"
            },
        )
    }

    /// Takes a packet, of whose frame the first bytes were captured; `trailer` bytes of the frame are the link layer's,
    /// behind the packet.
    fn add(
        &mut self,
        at: usize,
        time_ns: i128,
        frame: u32,
        captured: &[u8],
        (link, trailer): (Linktype, u32),
    ) -> Result<(), Fault> {
        let known = header_bytes(link);
        let header = match (self.lengths, known) {
            (Lengths::Frame, _) => 0,
            (Lengths::Ip, Some(header)) => header + trailer,
            (Lengths::Ip, None) => {
                return Err(self.fault(
                    at,
                    format_args!(
                        "its link type is {}, whose header's length is not known here; write lengths = \"frame\"",
                        link.0
                    ),
                ))
            }
        };
        let bytes = frame.saturating_sub(header);
        if !(1..=limits::PACKET_BYTES).contains(&bytes) {
            let message = format!(
                "a packet of {frame}B, {header}B of them its link layer's; 1B .. {}B must remain",
                limits::PACKET_BYTES
            );
            return Err(self.fault(at, message));
        }
        let first_ns = *self.first_ns.get_or_insert(time_ns);
        let number = self.count + 1;
        let after_ns = u64::try_from(time_ns - first_ns + BEFORE_NS).map_err(|_| {
            let message =
                format!("packet {number} is more than an hour earlier than the first one. The clock was wrong, or the file is \
                         damaged; cut the capture where it jumps (editcap -r)");
            self.fault(at, message)
        })?;
        if after_ns > limits::DURATION_NS {
            let message = format!(
                "packet {number} is {} years later than the first one; a replay may last {}. The clock was wrong, or the file is \
                 damaged; cut the capture where it jumps (editcap -r)",
                (time_ns - first_ns) / YEAR_NS,
                i128::from(limits::DURATION_NS) / YEAR_NS
            );
            return Err(self.fault(at, message));
        }
        let latest_ns = self.latest_ns.unwrap_or(time_ns);
        if time_ns - latest_ns > PAUSE_NS {
            let message = format!(
                "packet {number} is {} days later than those before it; a pause may last {}. The clock was wrong, or the file is \
                 damaged; cut the capture where it jumps (editcap -r)",
                (time_ns - latest_ns) / DAY_NS,
                PAUSE_NS / DAY_NS
            );
            return Err(self.fault(at, message));
        }
        self.latest_ns = Some(latest_ns.max(time_ns));
        self.count += 1;
        let outside = match self.lengths {
            Lengths::Ip => 0,
            Lengths::Frame => known.unwrap_or(0) + trailer,
        };
        self.capture.add(
            after_ns,
            bytes,
            known.map(|header| Frame {
                outside,
                packet: captured.get(header as usize..).unwrap_or_default(),
                ethertype: (link == Linktype::ETHERNET)
                    .then(|| captured.get(12..14))
                    .flatten(),
            }),
        );
        Ok(())
    }
}

impl Found<'_> {
    /// Takes a packet of pcapng, whose time is in units of its interface.
    fn stamped(
        &mut self,
        at: usize,
        (high, low): (u32, u32),
        frame: u32,
        captured: &[u8],
        interface: Option<&Interface>,
    ) -> Result<(), Fault> {
        let Some(interface) = interface else {
            return Err(self.fault(at, "a packet of an interface that is not described"));
        };
        let stamp = i128::from(high) << 32 | i128::from(low);
        let time_ns = stamp * 1_000_000_000 / i128::from(interface.units)
            + i128::from(interface.offset_s) * 1_000_000_000;
        self.add(at, time_ns, frame, captured, (interface.link, 0))
    }
}

/// A number of a pcapng block.
fn word(bytes: &[u8], at: usize, big_endian: bool) -> Option<u32> {
    let word = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(match big_endian {
        true => u32::from_be_bytes(word),
        false => u32::from_le_bytes(word),
    })
}

/// Bytes in front of the IP packet.
fn header_bytes(link: Linktype) -> Option<u32> {
    Some(match link {
        Linktype::ETHERNET => 14,
        Linktype::NULL | Linktype::LOOP => 4,
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => 0,
        // Raw IP in files that have the number of some system in place of the common one.
        Linktype(12) | Linktype(14) => 0,
        Linktype::LINUX_SLL => 16,
        Linktype::LINUX_SLL2 => 20,
        _ => return None,
    })
}

/// The link type of a pcap file, and the bytes of the check sequence behind each packet. Both are in one field: bit 26 says
/// that the four uppermost count its 16-bit words, bit 27 is to be ignored, and the ten below them are reserved
/// (draft-ietf-opsawg-pcap, section 4).
fn link_of(field: u32, found: &Found<'_>) -> Result<(Linktype, u32), Fault> {
    const RESERVED: u32 = 0x03ff_0000;
    if field & RESERVED != 0 {
        let message = format!(
            "has the link type {field:#010x}, of which bits 16 to 25 must be 0; the file is damaged"
        );
        return Err(found.fault(0, message));
    }
    let trailer = if field & 1 << 26 == 0 {
        0
    } else {
        2 * (field >> 28)
    };
    Ok((Linktype((field & 0xffff) as i32), trailer))
}

fn pcap(bytes: &[u8], found: &mut Found<'_>) -> Result<(), Fault> {
    let (mut rest, header) =
        parse_pcap_header(bytes).map_err(|error| found.unreadable(0, error.is_incomplete()))?;
    let frame = match (header.is_bigendian(), header.is_modified_format()) {
        (true, _) => parse_pcap_frame_be,
        (false, true) => parse_pcap_frame_modified,
        (false, false) => parse_pcap_frame,
    };
    let (fraction_ns, most) = if header.is_nanosecond_precision() {
        (1, 999_999_999)
    } else {
        (1000, 999_999)
    };
    let (link, trailer) = link_of(header.network.0 as u32, found)?;
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let (after, record) = match frame(rest) {
            Ok(read) => read,
            Err(error) => {
                // A record's third word is the length of what was captured.
                let captured = rest.get(8..12).and_then(|word| word.try_into().ok());
                let captured = captured.map_or(0, |word| match header.is_bigendian() {
                    true => u32::from_be_bytes(word),
                    false => u32::from_le_bytes(word),
                });
                if error.is_incomplete() && captured <= MOST_RECORD_BYTES {
                    found.cut_off(at, rest.len());
                    return Ok(());
                }
                return Err(found.unreadable(at, error.is_incomplete()));
            }
        };
        if record.ts_usec > most {
            let number = found.count + 1;
            let message = format!(
                "packet {number} has a time with the fraction {} of a second; at most {most} is possible. The file is damaged",
                record.ts_usec
            );
            return Err(found.fault(at, message));
        }
        let time_ns =
            i128::from(record.ts_sec) * 1_000_000_000 + i128::from(record.ts_usec) * fraction_ns;
        found.add(at, time_ns, record.origlen, record.data, (link, trailer))?;
        rest = after;
    }
    Ok(())
}

/// An interface of a section of pcapng.
struct Interface {
    link: Linktype,
    /// Units of its time stamps per second.
    units: u64,
    offset_s: i64,
}

/// Units per second of the option `if_tsresol`: a power of ten, or with the upper bit of two.
fn units_of(resolution: u8) -> Option<u64> {
    let exponent = u32::from(resolution & 0x7f);
    match resolution & 0x80 {
        0 => 10_u64.checked_pow(exponent),
        _ => 1_u64.checked_shl(exponent),
    }
}

fn pcapng(bytes: &[u8], found: &mut Found<'_>) -> Result<(), Fault> {
    let mut rest = bytes;
    let mut big_endian = false;
    let mut interfaces: Vec<Interface> = Vec::new();
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let parsed = if big_endian {
            parse_block_be(rest)
        } else {
            parse_block_le(rest)
        };
        let (after, block) = match parsed {
            Ok(read) => read,
            Err(error) => {
                let length = word(rest, 4, big_endian).unwrap_or(0);
                let plausible = length <= MOST_RECORD_BYTES && length % 4 == 0;
                if error.is_incomplete() && plausible {
                    found.cut_off(at, rest.len());
                    return Ok(());
                }
                return Err(found.unreadable(at, error.is_incomplete()));
            }
        };
        if after.len() >= rest.len() {
            return Err(found.unreadable(at, false));
        }
        match block {
            Block::SectionHeader(section) => {
                big_endian = section.big_endian();
                interfaces.clear();
            }
            Block::InterfaceDescription(described) => {
                let units = units_of(described.if_tsresol).ok_or_else(|| {
                    found.fault(at, "an interface whose time stamps have no known unit")
                })?;
                interfaces.push(Interface {
                    link: described.linktype,
                    units,
                    offset_s: described.if_tsoffset,
                });
            }
            Block::EnhancedPacket(packet) => {
                let stamp = (packet.ts_high, packet.ts_low);
                let interface = interfaces.get(packet.if_id as usize);
                found.stamped(at, stamp, packet.origlen, packet.data, interface)?;
            }
            Block::Unknown(block)
                if [block.block_type, block.block_type.swap_bytes()].contains(&OBSOLETE_PACKET) =>
            {
                let data = block.data;
                let field = |at| word(data, at, big_endian);
                let (Some(first), Some(high), Some(low), Some(captured), Some(length)) =
                    (field(0), field(4), field(8), field(12), field(16))
                else {
                    return Err(found.unreadable(at, false));
                };
                // Two numbers of 16 bits: the interface and the packets lost before.
                let number = if big_endian {
                    first >> 16
                } else {
                    first & 0xffff
                };
                let captured = data.get(20..20 + captured as usize).unwrap_or_default();
                let interface = interfaces.get(number as usize);
                found.stamped(at, (high, low), length, captured, interface)?;
            }
            Block::SimplePacket(_) => {
                return Err(found.fault(
                    at,
                    "a packet without a time (a simple packet block), which cannot be replayed; record with times (tcpdump -w)",
                ));
            }
            _ => {}
        }
        rest = after;
    }
    Ok(())
}
