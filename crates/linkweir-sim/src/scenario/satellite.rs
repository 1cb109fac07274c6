// SPDX-License-Identifier: BSD-3-Clause
//! The `[link.satellite]` table.

use std::path::Path;

use linkweir_config::reader::{quote, Entry, Section};
use linkweir_config::trace;
use linkweir_config::units::{self, Kind};
use linkweir_config::values;
use linkweir_config::Fault;

use crate::experiment::{Channel, Delays, Outages, Satellite};
use crate::satellite::harq::Harq;
use crate::satellite::lms::Lms;
use crate::satellite::p681::P681;
use crate::satellite::perez_fontan::Environment;
use crate::satellite::reorder::{Reordering, Rule};

use super::constellation;
use super::fading;
use super::inputs::{self, Input, Told};
use super::limits;

const ENVIRONMENTS: [(&str, Environment); 4] = [
    ("intermediate_trees", Environment::IntermediateTrees),
    ("open", Environment::Open),
    ("suburban", Environment::Suburban),
    ("urban", Environment::Urban),
];

/// The keys of a generated channel.
const GENERATED: [&str; 7] = [
    "model",
    "environment",
    "elevation_deg",
    "speed_kmh",
    "carrier_ghz",
    "period",
    "fading_seed",
];

/// Reads the table; returns the satellite and the lines of the resolved form. Files are looked for in `folder`.
pub(super) fn read(
    entry: &Entry<'_, '_>,
    seed: u64,
    duration_ns: u64,
    folder: &Path,
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<(Satellite, String), Fault> {
    let mut section = entry
        .table()
        .ok_or_else(|| entry.fault("must be a table [link.satellite]"))?;
    let fading = section.find("fading");
    let decimal = of_files(&mut section, &fading)?;
    let channel = match fading {
        Some(file) => recorded(&mut section, (&file, decimal), folder, inputs, told)?,
        None => generated(&mut section, seed)?,
    };
    let user_offset_ns = section.whole(
        "user_offset",
        Kind::Time,
        (0, limits::DURATION_NS),
        51_000_000_000,
    )?;

    let users = section.choice("users", &["classes", "flows"], 0)?;
    let (csi_tick_ns, csi_age_ns) = channel_knowledge(&mut section)?;

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
    let (delays, constellation_lines) =
        delays(&mut section, duration_ns, (folder, decimal), inputs, told)?;
    let repeats = section.choice("repeats_see", &["own", "first_user"], 0)?;
    let first = section.choice("first_attempt", &["coded", "coded_and_plain"], 0)?;
    let reordering = reordering(&mut section)?;
    let mut lines = section.finish()?;
    if let Some(constellation_lines) = constellation_lines {
        lines.push_str("\n[link.satellite.constellation]\n");
        lines.push_str(&constellation_lines);
    }
    Ok((
        Satellite {
            channel,
            user_offset_ns,
            harq,
            ground_delay_ns,
            delays,
            flows_are_users: users == 1,
            csi_tick_ns,
            csi_age_ns,
            repeats_see_first_user: repeats == 1,
            uncoded_too: first == 1,
            reordering,
        },
        lines,
    ))
}

/// The mark in front of decimals of the files that the table names.
fn of_files(
    section: &mut Section<'_, '_>,
    fading: &Option<Entry<'_, '_>>,
) -> Result<Option<char>, Fault> {
    let decimal = section.find("decimal");
    if let (Some(entry), None, None) = (decimal, fading, section.find("delays")) {
        return Err(entry.fault("is only for a file of fading or delays"));
    }
    trace::decimal(section)
}

/// What the scheduler knows of the channels: how often it gets reports, or how old its knowledge is, ns.
fn channel_knowledge(section: &mut Section<'_, '_>) -> Result<(u64, Option<u64>), Fault> {
    const TICK_NS: u64 = 10_000_000;
    const LONGEST_NS: u64 = (limits::DELAY_S * 1e9) as u64;
    const AGES: &str = "must be \"flight\", or a time like \"0s\" or \"20ms\"";
    let age = section.find("csi_age");
    let is_word = |text: &str| text.starts_with(|first: char| first.is_ascii_alphabetic());
    let age_ns = match &age {
        Some(age) => match age.text() {
            Ok("flight") => None,
            Ok(text) if is_word(text) => return Err(age.fault(AGES)),
            Ok(_) => Some(age.whole(Kind::Time, (0, LONGEST_NS))?),
            Err(_) => return Err(age.fault(AGES)),
        },
        None => None,
    };
    if let (Some(_), Some(tick)) = (age_ns, section.find("csi_tick")) {
        return Err(tick.fault(
            "is only for csi_age = \"flight\": at a fixed age the scheduler knows the channels whenever it chooses; leave one out",
        ));
    }
    let tick_ns = match age_ns {
        Some(age_ns) => {
            section.remark("csi_tick: the scheduler knows the channels whenever it chooses");
            section.write("csi_age", quote(&units::show_whole(age_ns, Kind::Time)));
            TICK_NS
        }
        None => {
            let bounds = (1_000_000, 10_000_000_000);
            let tick_ns = section.whole("csi_tick", Kind::Time, bounds, TICK_NS)?;
            section.write("csi_age", quote("flight"));
            tick_ns
        }
    };
    Ok((tick_ns, age_ns))
}

/// The keys of the buffer that puts packets back into order.
fn reordering(section: &mut Section<'_, '_>) -> Result<Option<Reordering>, Fault> {
    let rule = match section.choice("reorder", &["none", "shared", "per_flow"], 0)? {
        0 => {
            for key in ["reorder_pkts", "reorder_timeout"] {
                if let Some(entry) = section.find(key) {
                    return Err(
                        entry.fault("is only for reorder = \"shared\" or reorder = \"per_flow\"")
                    );
                }
            }
            return Ok(None);
        }
        1 => Rule::Shared,
        _ => Rule::PerFlow,
    };
    Ok(Some(Reordering {
        rule,
        buffer_pkts: section.small(
            "reorder_pkts",
            Kind::Packets,
            (1, limits::REORDERED_PKTS),
            125,
        )?,
        timeout_ns: section.whole(
            "reorder_timeout",
            Kind::Time,
            (1_000_000, (limits::DELAY_S * 1e9) as u64),
            1_000_000_000,
        )?,
    }))
}

/// A channel from a file.
fn recorded(
    section: &mut Section<'_, '_>,
    (file, decimal): (&Entry<'_, '_>, Option<char>),
    folder: &Path,
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<Channel, Fault> {
    for key in GENERATED {
        if let Some(entry) = section.find(key) {
            return Err(entry.fault("is only for a generated channel; leave this or fading out"));
        }
    }
    let (path, bytes) = inputs::read(file, "times and gains", folder)?;
    let (fading, series) = fading::parse(&bytes, &path, decimal)?;
    told.read(series.of_file(&path));
    if let Some(note) = fading::doubt(&fading) {
        told.notes.push(format!("{}: {note}", path.display()));
    }
    section.write("fading", quote(&inputs::keep(path, bytes, inputs)));
    Ok(Channel::Recorded(fading))
}

/// A channel from a model of a land-mobile satellite.
fn generated(section: &mut Section<'_, '_>, seed: u64) -> Result<Channel, Fault> {
    let model = section.choice("model", &["perez_fontan", "itu_p681"], 0)?;
    let mut lms = if model == 0 {
        let names = ENVIRONMENTS.map(|(name, _)| name);
        let environment = ENVIRONMENTS[section.choice("environment", &names, 0)?].1;
        let lms = Lms::new(environment);
        if section.number("elevation_deg", (0, 90), 40)? != 40 {
            return Err(section.fault_at(
                "elevation_deg",
                "must be 40, for which perez_fontan has its tables; model = \"itu_p681\" has others",
            ));
        }
        lms
    } else {
        section.choice("environment", &["rural_wooded"], 0)?;
        let elevations: Vec<String> = P681::ELEVATIONS_DEG.iter().map(u32::to_string).collect();
        let elevations = elevations.join(", ");
        let elevation = section.find("elevation_deg").ok_or_else(|| {
            let message = format!("is missing; with itu_p681 it is one of {elevations}");
            section.fault_at("elevation_deg", message)
        })?;
        let elevation_deg = elevation.number((0, 90))?;
        section.write("elevation_deg", elevation_deg.to_string());
        Lms::rural_wooded(elevation_deg as u32)
            .ok_or_else(|| elevation.fault(format!("must be one of {elevations}")))?
    };
    lms.speed_m_s = section.real("speed_kmh", 0.1, 1000.0, 60.0)? / 3.6;
    lms.carrier_hz = section.real("carrier_ghz", 1.5, 3.0, 2.2)? * 1e9;
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

/// Delays from a file or through a constellation, with the resolved lines of the latter's table.
fn delays(
    section: &mut Section<'_, '_>,
    duration_ns: u64,
    (folder, decimal): (&Path, Option<char>),
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<(Option<Delays>, Option<String>), Fault> {
    const TIMES: (u64, u64) = (0, limits::DURATION_NS);
    let file = section.find("delays");
    let shell = section.find("constellation");
    let start = section.find("delays_start");
    let shift = section.find("delays_shift");
    let before = section.find("delays_before");
    let time = |entry: &Option<Entry<'_, '_>>| match entry {
        Some(entry) => entry.whole(Kind::Time, TIMES),
        None => Ok(0),
    };
    let (start_ns, shift_ns) = (time(&start)?, time(&shift)?);
    let before_s = before
        .as_ref()
        .map(|entry| entry.quantity(Kind::Seconds, 0.0, limits::DELAY_S))
        .transpose()?;

    let mut lines = None;
    let mut outages = Outages::default();
    let [to_satellite_s, to_ground_s] = match (file, shell) {
        (Some(file), Some(_)) => {
            return Err(file.fault("delays and constellation exclude each other; leave one out"))
        }
        (None, None) => {
            return match start.or(shift).or(before) {
                Some(entry) => {
                    Err(entry.fault("is only for a satellite with delays or a constellation"))
                }
                None => Ok((None, None)),
            }
        }
        (Some(file), None) => {
            let (path, bytes) = inputs::read(&file, "times and delays", folder)?;
            let (delays, series) = trace::parse_delays(&bytes, &path, decimal)?;
            told.read(series.of_file(&path));
            section.write("delays", quote(&inputs::keep(path, bytes, inputs)));
            delays
        }
        (None, Some(shell)) => {
            // Flows that are behind look at what was before the start.
            let from_ns = if shift_ns > 0 { 0 } else { start_ns };
            let run_ns = start_ns..start_ns.saturating_add(duration_ns);
            let path = constellation::read(&shell, from_ns, run_ns, &mut told.notes)?;
            lines = Some(path.lines);
            outages = path.outages;
            path.delays
        }
    };
    let show = |ns: u64| quote(&units::show_whole(ns, Kind::Time));
    section.write("delays_start", show(start_ns));
    section.write("delays_shift", show(shift_ns));
    if let (Some(entry), 0) = (&before, shift_ns) {
        return Err(entry.fault("is only for flows that are behind; give a delays_shift above 0"));
    }
    let before_s = before_s.unwrap_or_else(|| values::first(&to_satellite_s));
    if shift_ns > 0 {
        section.write(
            "delays_before",
            quote(&units::show_real(before_s, Kind::Seconds)),
        );
    } else {
        section.remark("delays_before: no flow is behind");
    }
    let delays = Delays {
        to_satellite_s,
        to_ground_s,
        start_ns,
        shift_ns,
        before_s,
        outages,
    };
    Ok((Some(delays), lines))
}
