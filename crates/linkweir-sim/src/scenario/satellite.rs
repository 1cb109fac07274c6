// SPDX-License-Identifier: BSD-3-Clause
//! The `[link.satellite]` table.

use std::path::Path;

use crate::experiment::{Channel, Satellite};
use crate::satellite::fading::Fading;
use crate::satellite::harq::Harq;
use crate::satellite::lms::Lms;
use crate::satellite::perez_fontan::Environment;

use super::fault::Fault;
use super::limits;
use super::reader::{quote, Entry, Section};
use super::trace;
use super::units::Kind;
use super::Input;

const ENVIRONMENTS: [(&str, Environment); 4] = [
    ("intermediate_trees", Environment::IntermediateTrees),
    ("open", Environment::Open),
    ("suburban", Environment::Suburban),
    ("urban", Environment::Urban),
];

/// Reads the table; returns the satellite and the lines of the resolved form. Files are looked for in `folder`.
pub(super) fn read(
    entry: &Entry<'_, '_>,
    seed: u64,
    folder: &Path,
    inputs: &mut Vec<Input>,
) -> Result<(Satellite, String), Fault> {
    let mut section = entry
        .table()
        .ok_or_else(|| entry.fault("must be a table [link.satellite]"))?;
    let channel = match section.find("fading") {
        Some(file) => recorded(&mut section, &file, folder, inputs)?,
        None => generated(&mut section, seed)?,
    };
    let user_offset_ns = section.whole(
        "user_offset",
        Kind::Time,
        (0, limits::DURATION_NS),
        51_000_000_000,
    )?;

    let packet = section.need("packet", "\"210B\"")?;
    let packet_bytes = packet.whole(Kind::Size, (1, 8191))?;
    section.write("packet", quote(&format!("{packet_bytes}B")));
    let esn0_db = section.number("esn0_db", (7, 20), 10)?;
    let packet_bits = 8 * packet_bytes as u32;
    let harq = Harq::designed(packet_bits, esn0_db as u32).ok_or_else(|| {
        section.fault_at(
            "esn0_db",
            "must be 7 .. 13 for packets whose length is nearer to 210B than to 1115B",
        )
    })?;
    let ground_delay_ns = section.whole(
        "ground_delay",
        Kind::Time,
        (0, (limits::DELAY_S * 1e9) as u64),
        0,
    )?;
    let repeats = section.choice("repeats_see", &["own", "first_user"], 0)?;
    let first = section.choice("first_attempt", &["coded", "coded_and_plain"], 0)?;
    let lines = section.finish()?;
    Ok((
        Satellite {
            channel,
            user_offset_ns,
            harq,
            ground_delay_ns,
            delays: None,
            repeats_see_first_user: repeats == 1,
            uncoded_too: first == 1,
        },
        lines,
    ))
}

/// A channel from a file.
fn recorded(
    section: &mut Section<'_, '_>,
    file: &Entry<'_, '_>,
    folder: &Path,
    inputs: &mut Vec<Input>,
) -> Result<Channel, Fault> {
    let text = file.text()?;
    if text.is_empty() || text.contains('\0') {
        return Err(file.fault("must be the path of a file with times and attenuations"));
    }
    let path = folder.join(text);
    let bytes = trace::read_limited(&path, limits::TRACE_BYTES)
        .map_err(|fault| file.fault(format!("{}: {}", path.display(), fault.message)))?;
    let content = std::str::from_utf8(&bytes)
        .map_err(|_| Fault::in_file(path.clone(), None, "is not text (UTF-8)"))?;
    let fading = Fading::parse(content, &path)?;
    let name = super::link::input_name(&path);
    section.write("fading", quote(&name));
    inputs.push(Input { name, path, bytes });
    Ok(Channel::Recorded(fading))
}

/// A channel from the model of a land-mobile satellite.
fn generated(section: &mut Section<'_, '_>, seed: u64) -> Result<Channel, Fault> {
    let names = ENVIRONMENTS.map(|(name, _)| name);
    let environment = ENVIRONMENTS[section.choice("environment", &names, 0)?].1;
    let mut lms = Lms::new(environment);
    lms.speed_m_s = section.real("speed_kmh", 0.1, 1000.0, 60.0)? / 3.6;
    let period_ns = section.whole(
        "period",
        Kind::Time,
        (1_000_000, 86_400_000_000_000),
        600_000_000_000,
    )?;
    let seed = section.number("fading_seed", (0, i64::MAX.unsigned_abs()), seed)?;
    Ok(Channel::Drive {
        lms: Box::new(lms),
        seed,
        period_ns,
    })
}
