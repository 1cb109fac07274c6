// SPDX-License-Identifier: BSD-3-Clause
//! The configuration of an emulated link: `[a]` and `[b]`, the devices at its ends, and `[a_to_b]` and `[b_to_a]`.

pub mod keys;

use std::path::{Path, PathBuf};

use ipnet::IpNet;
use linkweir_config::keys::{Form, Key, Otherwise};
use linkweir_config::reader::{Entry, Section, Source};
use linkweir_config::signal::Signal;
use linkweir_config::trace;
use linkweir_config::values::{self, Values};
use linkweir_config::Fault;

use super::capacity::{mean_bps, offered};
use super::names::{addresses, new_device};
use super::FILE_BYTES;
use keys::{ADDRESS, DELAY, DEVICE, JITTER, LIMIT, LOSS, MTU, NETNS, OVERHEAD, SEED};
use linkweir_plane::setup::Direction;

/// Where `ip netns` keeps namespaces.
const NAMESPACES: &str = "/run/netns";

/// One end of an emulated link: a device in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Name of the device.
    pub device: String,
    /// The network namespace it is made in; none: that of the emulator.
    pub netns: Option<PathBuf>,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
}

/// An emulated link.
#[derive(Clone, Debug, PartialEq)]
pub struct Emulation {
    /// Its ends, a and b.
    pub ends: [End; 2],
    /// Its directions: from a to b, and back.
    pub directions: [Direction; 2],
    /// MTU of both devices, bytes.
    pub mtu: u32,
    /// Seed of losses and jitter.
    pub seed: u64,
    /// What traces were taken for and what of them is doubtful, a line each.
    pub told: Vec<String>,
}

/// Reads the configuration of an emulated link.
///
/// # Errors
/// When it cannot be read, or the first thing wrong with it.
pub fn load(file: &Path) -> Result<Emulation, Fault> {
    parse(&trace::read_text(file, FILE_BYTES)?, file)
}

/// As [`load`], from text; paths in it are relative to the folder of `file`.
///
/// # Errors
/// The first thing wrong with it.
pub fn parse(text: &str, file: &Path) -> Result<Emulation, Fault> {
    let source = Source::new(text, Some(file));
    let document = source.parse(FILE_BYTES)?;
    let mut top = Section::new(&source, document.get_ref(), String::new(), 0);
    let mtu = top.take(&MTU)?;
    let seed = top.take(&SEED)?;
    let mut a = top.need_table("a", "device = \"sat0\"")?;
    let mut b = top.need_table("b", "device = \"sat0\"")?;
    let ends = [end(&mut a)?, end(&mut b)?];
    if ends[0].device == ends[1].device && ends[0].netns == ends[1].netns {
        return Err(b.fault_at(
            DEVICE.name,
            "is the name of the other end too; change one of them, or its netns",
        ));
    }
    a.finish()?;
    b.finish()?;
    let mut directions = Vec::new();
    let mut told = Vec::new();
    const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];
    top.expect(&DIRECTIONS);
    for key in DIRECTIONS {
        let mut section = top.need_table(key, "rate = \"20Mbit\"")?;
        directions.push(direction(&mut section, &mut told)?);
        section.finish()?;
    }
    top.finish()?;
    let directions = directions
        .try_into()
        .unwrap_or_else(|_| unreachable!("two were read"));
    Ok(Emulation {
        ends,
        directions,
        mtu,
        seed,
        told,
    })
}

fn end(section: &mut Section<'_, '_>) -> Result<End, Fault> {
    let device = new_device(&section.entry_of(&DEVICE)?)?;
    let netns = match section.find(NETNS.name) {
        Some(entry) => Some(namespace(&entry)?),
        None => None,
    };
    let addresses = match section.find(ADDRESS.name) {
        Some(entry) => addresses(&entry)?,
        None => Vec::new(),
    };
    Ok(End {
        device,
        netns,
        addresses,
    })
}

/// A namespace by its name in `ip netns`, or by a path such as `/proc/1234/ns/net`.
fn namespace(entry: &Entry<'_, '_>) -> Result<PathBuf, Fault> {
    let path = Path::new(NAMESPACES).join(entry.text()?);
    if path.exists() {
        return Ok(path);
    }
    Err(entry.fault(format!(
        "{} does not exist; make it with `ip netns add`, or give the path of a namespace",
        path.display()
    )))
}

/// Reads the table of one direction. By default twice as many packets may wait as there are packets of 1500 bytes on the
/// way.
fn direction(section: &mut Section<'_, '_>, told: &mut Vec<String>) -> Result<Direction, Fault> {
    let Some((offered, trace)) = offered(section, told)? else {
        return Err(section.missing(
            "rate",
            "is missing; write rate = \"20Mbit\" or trace = \"capacity.csv\"",
        ));
    };
    let (trace_delay, trace_loss) = trace.map_or((None, None), |trace| (trace.delay_s, trace.loss));
    let delay_s = varying(section, &DELAY, trace_delay)?;
    let loss = varying(section, &LOSS, trace_loss)?;
    let jitter_ns = section.take(&JITTER)?;
    let in_flight = mean_bps(&offered) as f64 * values::greatest(&delay_s) / (8.0 * 1500.0);
    let room = (2.0 * in_flight) as u64 + 100;
    let most = LIMIT.form.max;
    let room_pkts = u32::try_from(room).unwrap_or(most).min(most);
    let limit_pkts = section.take_or(&LIMIT, room_pkts)?;
    let overhead_bytes = section.take(&OVERHEAD)?;
    if in_flight > IN_FLIGHT_PKTS {
        let message = format!("at this rate keeps {in_flight:.0} packets of 1500B on the way, more than {IN_FLIGHT_PKTS:.0}; lower either");
        return Err(section.fault_at(DELAY.name, message));
    }
    Ok(Direction {
        offered,
        delay_s,
        jitter_ns,
        loss,
        limit_pkts,
        overhead_bytes,
    })
}

/// Most packets it may have on the way.
const IN_FLIGHT_PKTS: f64 = 1e6;

/// A signal from either the table or the trace.
fn varying(
    section: &mut Section<'_, '_>,
    key: &Key<Values, Otherwise>,
    from_trace: Option<Signal>,
) -> Result<Signal, Fault> {
    match (section.find(key.name), from_trace) {
        (Some(entry), Some(_)) => Err(entry.fault("the trace has a column for it; leave one out")),
        (Some(entry), None) => key.form.read(&entry),
        (None, from_trace) => Ok(from_trace.unwrap_or(Signal::Constant(0.0))),
    }
}
