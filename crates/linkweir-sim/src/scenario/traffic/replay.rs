// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "replay"`, and its files: CSV with a header `t_s,bytes` or `t_s,bytes,flow`, pcap and pcapng, and the
//! recordings of gateways, of which packets are made that have the counts of each bin.
//!
//! Of a capture, times and lengths count and nothing else: no byte of a packet is looked at. A length is that of the IP
//! packet: the recorded length of the frame (not the captured part of it) less the header of its link layer.

use std::path::Path;
use std::sync::Arc;

use linkweir_config::reader::{quote, Entry, Section};
use linkweir_config::recording;
use linkweir_config::table::data_lines;
use linkweir_config::trace::Reader;
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;
use pcap_parser::pcap::{
    parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};
use pcap_parser::pcapng::{parse_block_be, parse_block_le, Block};
use pcap_parser::Linktype;

use crate::experiment::Traffic;

use super::super::inputs;
use super::super::limits;
use super::amount::Files;

/// Times, ns after some instant, and bytes.
type Packets = Vec<(u64, u32)>;

const LENGTHS: [&str; 2] = ["ip", "frame"];

/// Which bytes of a frame count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lengths {
    Ip,
    Frame,
}

pub(super) fn read(section: &mut Section<'_, '_>, files: &mut Files<'_>) -> Result<Traffic, Fault> {
    let entry = section.need("file", "\"capture.pcap\"")?;
    let (path, bytes) = inputs::read(&entry, "recorded packets", files.folder)?;
    let only = section.find("only");
    let lengths = section.find("lengths");
    let chosen = match lengths.as_ref().map_or(Ok(0), |e| e.choice(&LENGTHS))? {
        0 => Lengths::Ip,
        _ => Lengths::Frame,
    };
    let packets: Packets = if recording::is_recording(&bytes) {
        if let Some(entry) = lengths {
            return Err(entry.fault("is for a capture; a recording has the bytes on the link"));
        }
        let Some(entry) = only else {
            return Err(section.missing(
                "only",
                "is missing; a recording has several classes, so write only = \"CLASS\"",
            ));
        };
        let class = entry.text()?;
        section.write("only", quote(class));
        recorded(&bytes, &path, class)?
    } else if is_capture(&bytes) {
        if let Some(entry) = only {
            return Err(entry.fault(
                "is for a CSV with a column flow; filter a capture before (tcpdump -r, tshark -Y)",
            ));
        }
        let word = LENGTHS[usize::from(chosen == Lengths::Frame)];
        section.write("lengths", quote(word));
        capture(&bytes, &path, chosen)?
    } else {
        if let Some(entry) = lengths {
            return Err(entry.fault("is for a capture; the bytes of a CSV count as they are"));
        }
        let wanted = only.as_ref().map(Entry::text).transpose()?;
        if let Some(wanted) = wanted {
            section.write("only", quote(wanted));
        }
        list(&bytes, &path, wanted)?
    };
    let period_ns = match section.find("period") {
        Some(entry) => Some(period(section, &entry, &packets)?),
        None => {
            section.remark("period: once");
            None
        }
    };
    let name = inputs::keep(path, bytes, files.inputs);
    section.write("file", quote(&name));
    Ok(Traffic::Replay {
        packets: Arc::from(packets),
        period_ns,
    })
}

fn period(
    section: &mut Section<'_, '_>,
    entry: &Entry<'_, '_>,
    packets: &Packets,
) -> Result<u64, Fault> {
    let period_ns = entry.whole(Kind::Time, (1, limits::DURATION_NS))?;
    let last_ns = packets.last().map_or(0, |(at_ns, _)| *at_ns);
    if period_ns <= last_ns {
        let last = units::show_whole(last_ns, Kind::Time);
        return Err(entry.fault(format!(
            "must be longer than the last packet's time, {last}"
        )));
    }
    section.write("period", quote(&units::show_whole(period_ns, Kind::Time)));
    Ok(period_ns)
}

/// Whether a file begins as pcap or pcapng does.
fn is_capture(bytes: &[u8]) -> bool {
    const MAGIC: [[u8; 4]; 6] = [
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0x34, 0xcd, 0xb2, 0xa1],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    MAGIC.iter().any(|magic| bytes.starts_with(magic))
}

/// The packets of a class of a gateway's recording; `path` is for messages only.
fn recorded(bytes: &[u8], path: &Path, class: &str) -> Result<Packets, Fault> {
    let fault = |message: String| Fault::in_file(path.to_path_buf(), None, message);
    let packets = recording::packets_of(bytes, class).map_err(fault)?;
    let too_large = packets
        .iter()
        .find(|(_, bytes)| *bytes > limits::PACKET_BYTES);
    if let Some((_, bytes)) = too_large {
        let most = limits::PACKET_BYTES;
        return Err(fault(format!(
            "has a packet of {bytes}B in class {class}; at most {most}B are possible"
        )));
    }
    Ok(packets)
}

/// Reads a list of packets; `path` is for messages only.
fn list(bytes: &[u8], path: &Path, wanted: Option<&str>) -> Result<Packets, Fault> {
    let reader = Reader {
        path: path.to_path_buf(),
    };
    let text = reader.text(bytes)?;
    let text = text.as_ref();
    let dialect = reader.dialect(text)?;
    let mut lines = data_lines(text);
    let Some((header_line, header)) = lines.next() else {
        return Err(reader.whole_fault("is empty; it must hold a header t_s,bytes"));
    };
    let columns = dialect.fields(header);
    let named = columns == ["t_s", "bytes", "flow"];
    if !named && columns != ["t_s", "bytes"] {
        let message = "must be a header: t_s,bytes or t_s,bytes,flow (a capture begins otherwise)";
        return Err(reader.fault(header_line, message));
    }
    if wanted.is_some() && !named {
        let message = "must have a third column, flow, because the scenario says only";
        return Err(reader.fault(header_line, message));
    }
    let mut packets: Packets = Vec::new();
    let mut before_ns = 0;
    let mut fields = Vec::new();
    for (line, text) in lines {
        dialect.split(text, &mut fields);
        if fields.len() != columns.len() {
            let message = format!(
                "has {} fields where the header has {}",
                fields.len(),
                columns.len()
            );
            return Err(reader.fault(line, message));
        }
        let at_ns = reader.time(line, "t_s", fields[0], &dialect)?;
        if at_ns < before_ns {
            let before = units::show_whole(before_ns, Kind::Time);
            let message = format!("must not be earlier than the line before, {before}");
            return Err(reader.field_fault(line, "t_s", fields[0], message));
        }
        before_ns = at_ns;
        let range = format!(
            "must be a whole number of bytes, 1 .. {}",
            limits::PACKET_BYTES
        );
        let length = dialect
            .number(fields[1])
            .ok()
            .and_then(|decimal| decimal.whole())
            .filter(|(bytes, exact)| *exact && (1..=limits::PACKET_BYTES.into()).contains(bytes));
        let Some((length, _)) = length else {
            return Err(reader.field_fault(line, "bytes", fields[1], range));
        };
        if wanted.is_none_or(|wanted| wanted == fields[2]) {
            packets.push((at_ns, length as u32));
        }
    }
    if packets.is_empty() {
        return Err(reader.whole_fault(match wanted {
            Some(wanted) => format!("has no packet of flow {}", quote(wanted)),
            None => "has a header but no packets".to_string(),
        }));
    }
    Ok(packets)
}

/// Reads a capture; `path` is for messages only. Times are those after the first packet.
fn capture(bytes: &[u8], path: &Path, lengths: Lengths) -> Result<Packets, Fault> {
    let mut found = Found {
        path,
        lengths,
        packets: Vec::new(),
        first_ns: None,
        latest_ns: None,
    };
    if bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
        pcapng(bytes, &mut found)?;
    } else {
        pcap(bytes, &mut found)?;
    }
    if found.packets.is_empty() {
        return Err(found.fault(0, "has no packets"));
    }
    // Cards and threads write packets a little out of order.
    found.packets.sort_by_key(|(at_ns, _)| *at_ns);
    let first_ns = found.packets[0].0;
    for (at_ns, _) in &mut found.packets {
        *at_ns -= first_ns;
    }
    Ok(found.packets)
}

/// The packets of a capture as they are found.
struct Found<'p> {
    path: &'p Path,
    lengths: Lengths,
    packets: Packets,
    first_ns: Option<i128>,
    latest_ns: Option<i128>,
}

/// Times up to this far before the first packet of a file are kept in order.
const BEFORE_NS: i128 = 3600 * 1_000_000_000;
const DAY_NS: i128 = 86_400 * 1_000_000_000;
const YEAR_NS: i128 = 365 * DAY_NS;
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

    fn unreadable(&self, at: usize, incomplete: bool) -> Fault {
        self.fault(
            at.max(1),
            if incomplete {
                "the record there is longer than the rest of the file; the capture was cut off or is damaged"
            } else {
                "no record of a capture begins there; the file is damaged"
            },
        )
    }

    /// Takes a packet; `trailer` bytes of its frame are the link layer's, behind the packet.
    fn add(
        &mut self,
        at: usize,
        time_ns: i128,
        frame: u32,
        link: Linktype,
        trailer: u32,
    ) -> Result<(), Fault> {
        let header = match self.lengths {
            Lengths::Frame => 0,
            Lengths::Ip => header_bytes(link).ok_or_else(|| {
                self.fault(
                    at,
                    format_args!(
                        "its link type is {}, whose header's length is not known here; write lengths = \"frame\"",
                        link.0
                    ),
                )
            })?,
        };
        let header = header
            + match self.lengths {
                Lengths::Frame => 0,
                Lengths::Ip => trailer,
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
        let number = self.packets.len() + 1;
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
        self.packets.push((after_ns, bytes));
        Ok(())
    }
}

/// Bytes in front of the IP packet.
fn header_bytes(link: Linktype) -> Option<u32> {
    Some(match link {
        Linktype::ETHERNET => 14,
        Linktype::NULL | Linktype::LOOP => 4,
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => 0,
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
        let (after, record) =
            frame(rest).map_err(|error| found.unreadable(at, error.is_incomplete()))?;
        if record.ts_usec > most {
            let number = found.packets.len() + 1;
            let message = format!(
                "packet {number} has a time with the fraction {} of a second; at most {most} is possible. The file is damaged",
                record.ts_usec
            );
            return Err(found.fault(at, message));
        }
        let time_ns =
            i128::from(record.ts_sec) * 1_000_000_000 + i128::from(record.ts_usec) * fraction_ns;
        found.add(at, time_ns, record.origlen, link, trailer)?;
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
        let (after, block) = parsed.map_err(|error| found.unreadable(at, error.is_incomplete()))?;
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
                let Some(interface) = interfaces.get(packet.if_id as usize) else {
                    return Err(found.fault(at, "a packet of an interface that is not described"));
                };
                let stamp = i128::from(packet.ts_high) << 32 | i128::from(packet.ts_low);
                let time_ns = stamp * 1_000_000_000 / i128::from(interface.units)
                    + i128::from(interface.offset_s) * 1_000_000_000;
                found.add(at, time_ns, packet.origlen, interface.link, 0)?;
            }
            Block::SimplePacket(_) => {
                return Err(found.fault(at, "a packet without a time (a simple packet block)"));
            }
            _ => {}
        }
        rest = after;
    }
    Ok(())
}
