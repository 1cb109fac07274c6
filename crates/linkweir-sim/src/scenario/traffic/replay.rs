// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "replay"`, and its files: CSV with a header `t_s,bytes` or `t_s,bytes,flow`, pcap and pcapng, and the
//! recordings of gateways, of which packets are made that have the counts of each bin.
//!
use std::path::Path;
use std::sync::Arc;

use linkweir_config::fault::shorten;
use linkweir_config::keys::Form;
use linkweir_config::reader::{quote, Entry, Section};
use linkweir_config::recording;
use linkweir_config::table::data_lines;
use linkweir_config::trace::{self, Reader};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::Traffic;

use super::super::inputs;
use super::super::keys::kinds::{
    REPLAY_DECIMAL, REPLAY_FILE, REPLAY_LENGTHS, REPLAY_MTU, REPLAY_ONLY, REPLAY_PERIOD,
};
use super::super::limits;
use super::amount::Files;
use super::capture::{self, Lengths};
use super::segments::Packets;

pub(super) fn read(section: &mut Section<'_, '_>, files: &mut Files<'_>) -> Result<Traffic, Fault> {
    let entry = section.entry_of(&REPLAY_FILE)?;
    let (path, bytes) = inputs::read(&entry, "recorded packets", files.folder)?;
    let only = section.find(REPLAY_ONLY.name);
    let lengths = section.find(REPLAY_LENGTHS.name);
    let mtu = section.given(&REPLAY_MTU)?;
    let of_frames = section.given(&REPLAY_LENGTHS)? == Some(1);
    if let (Some(entry), false) = (section.find(REPLAY_MTU.name), capture::is_capture(&bytes)) {
        return Err(entry.fault("is for a capture, of whose long packets it makes segments"));
    }
    let decimal = section.find(REPLAY_DECIMAL.name);
    let is_table = !recording::is_recording(&bytes) && !capture::is_capture(&bytes);
    if let (Some(entry), false) = (&decimal, is_table) {
        return Err(entry.fault("is for a list of packets as text"));
    }
    let columns;
    let packets: Packets = if recording::is_recording(&bytes) {
        if let Some(entry) = lengths {
            return Err(entry.fault("is for a capture; a recording has the bytes on the link"));
        }
        let Some(entry) = only else {
            return Err(section.missing(
                REPLAY_ONLY.name,
                "is missing; a recording has several classes, so write only = \"CLASS\"",
            ));
        };
        let class = entry.text()?;
        section.write(REPLAY_ONLY.name, class);
        columns = format!(
            "recording of a gateway; the packets of class {}",
            shorten(class)
        );
        recorded(&bytes, &path, class)?
    } else if capture::is_capture(&bytes) {
        if let Some(entry) = only {
            return Err(entry.fault(
                "is for a CSV with a column flow; filter a capture before (tcpdump -r, tshark -Y)",
            ));
        }
        let word = REPLAY_LENGTHS.form.of[usize::from(of_frames)];
        section.write(REPLAY_LENGTHS.name, word);
        let mtu = match mtu {
            Some(mtu) => {
                section.write(REPLAY_MTU.name, REPLAY_MTU.form.written(&mtu));
                Some(mtu as u32)
            }
            None => {
                section.remark("mtu: learnt from the capture");
                None
            }
        };
        let chosen = if of_frames {
            Lengths::Frame
        } else {
            Lengths::Ip
        };
        let (packets, notes) = capture::read(&bytes, &path, chosen, mtu)?;
        let of_file = |note: &String| format!("{}: {note}", path.display());
        files.told.notes.extend(notes.iter().map(of_file));
        let notation = if bytes.starts_with(&capture::PCAPNG) {
            "pcapng"
        } else {
            "pcap"
        };
        columns = format!("{notation}; times and lengths of {word} packets");
        packets
    } else {
        if let Some(entry) = lengths {
            return Err(entry.fault("is for a capture; the bytes of a CSV count as they are"));
        }
        let wanted = only.as_ref().map(Entry::text).transpose()?;
        if let Some(wanted) = wanted {
            section.write(REPLAY_ONLY.name, wanted);
        }
        let decimal = trace::decimal(section)?;
        let of_flow = wanted.map_or_else(String::new, |flow| {
            format!(" where flow is {}", shorten(flow))
        });
        columns = format!("packets; t from t_s in s, length from bytes in B{of_flow}");
        list(&bytes, &path, wanted, decimal)?
    };
    files.told.read(reading(&packets, &columns, &path));
    let period_ns = match section.find(REPLAY_PERIOD.name) {
        Some(entry) => Some(period(section, &entry, &packets)?),
        None => {
            section.remark("period: once");
            None
        }
    };
    let name = inputs::keep(path, bytes, files.inputs);
    section.write(REPLAY_FILE.name, name);
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
    let period_ns = REPLAY_PERIOD.form.read(entry)?;
    let last_ns = packets.last().map_or(0, |(at_ns, _)| *at_ns);
    if period_ns <= last_ns {
        let last = units::show_whole(last_ns, Kind::Time);
        return Err(entry.fault(format!(
            "must be longer than the last packet's time, {last}"
        )));
    }
    section.write(REPLAY_PERIOD.name, REPLAY_PERIOD.form.written(&period_ns));
    Ok(period_ns)
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

/// What a file was taken for, in one line.
fn reading(packets: &Packets, columns: &str, path: &Path) -> String {
    let time = |ns| units::show_whole(ns, Kind::Time);
    let bytes: u64 = packets.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
    let (first_ns, last_ns) = match &packets[..] {
        [first, .., last] => (first.0, last.0),
        [only] => (only.0, only.0),
        [] => (0, 0),
    };
    let pause = packets.windows(2).map(|pair| pair[1].0 - pair[0].0).max();
    let length = units::show_real((bytes as f64 / packets.len() as f64).round(), Kind::Size);
    let rate = match last_ns - first_ns {
        0 => String::new(),
        ns => {
            let bps = (8e9 * bytes as f64 / ns as f64).round();
            format!(", {}", units::show_real(bps, Kind::Rate))
        }
    };
    format!(
        "{}: {columns}; {} packets; from {} to {}; mean {length}{rate}; longest pause {}",
        path.display(),
        packets.len(),
        time(first_ns),
        time(last_ns),
        time(pause.unwrap_or(0))
    )
}

/// Reads a list of packets; `path` is for messages only.
fn list(
    bytes: &[u8],
    path: &Path,
    wanted: Option<&str>,
    decimal: Option<char>,
) -> Result<Packets, Fault> {
    let reader = Reader {
        path: path.to_path_buf(),
    };
    let text = reader.text(bytes)?;
    let text = text.as_ref();
    let dialect = reader.dialect(text, decimal)?;
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
