// SPDX-License-Identifier: BSD-3-Clause
//! The `[link.satellite]` table.

use std::path::Path;

use linkweir_config::keys::Form;
use linkweir_config::reader::{Entry, Section, Value, Written};
use linkweir_config::trace;
use linkweir_config::units::Kind;
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
use super::keys::satellite::{
    CARRIER_GHZ, CONSTELLATION, CSI_AGE, CSI_TICK, DECIMAL, DELAYS, DELAYS_BEFORE, DELAYS_SHIFT,
    DELAYS_START, ELEVATION_DEG, ENVIRONMENT, ESN0_DB, FADING, FADING_SEED, FIRST_ATTEMPT,
    GROUND_DELAY, MODEL, PACKET, PERIOD, REORDER, REORDER_PKTS, REORDER_TIMEOUT, REPEATS_SEE,
    SPEED_KMH, USERS, USER_OFFSET,
};
use super::limits;

/// In the order of [`ENVIRONMENT`]'s words.
const ENVIRONMENTS: [Environment; 4] = [
    Environment::IntermediateTrees,
    Environment::Open,
    Environment::Suburban,
    Environment::Urban,
];

/// Reads the table; returns the satellite and the table's resolved form. Files are looked for in `folder`.
pub(super) fn read(
    entry: &Entry<'_, '_>,
    seed: u64,
    duration_ns: u64,
    folder: &Path,
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<(Satellite, Written), Fault> {
    let mut section = entry
        .table()
        .ok_or_else(|| entry.fault("must be a table [link.satellite]"))?;
    let fading = section.find(FADING.name);
    let decimal = of_files(&mut section, &fading)?;
    let channel = match fading {
        Some(file) => recorded(&mut section, (&file, decimal), folder, inputs, told)?,
        None => generated(&mut section, seed)?,
    };
    let user_offset_ns = section.take(&USER_OFFSET)?;

    let users = section.take(&USERS)?;
    let (csi_tick_ns, csi_age_ns) = channel_knowledge(&mut section)?;

    let packet_bytes = PACKET.form.read(&section.entry_of(&PACKET)?)?;
    section.write(PACKET.name, Value::Bytes(packet_bytes));
    let esn0_db = section.take(&ESN0_DB)?;
    let packet_bits = 8 * packet_bytes as u32;
    let harq = Harq::designed(packet_bits, esn0_db as u32).ok_or_else(|| {
        section.fault_at(
            ESN0_DB.name,
            "must be 7 .. 13 for packets whose length is nearer to 210B than to 1115B",
        )
    })?;
    let ground_delay_ns = section.take(&GROUND_DELAY)?;
    let (delays, constellation) =
        delays(&mut section, duration_ns, (folder, decimal), inputs, told)?;
    let repeats = section.take(&REPEATS_SEE)?;
    let first = section.take(&FIRST_ATTEMPT)?;
    let reordering = reordering(&mut section)?;
    let mut written = section.finish()?;
    if let Some(constellation) = constellation {
        written.write(CONSTELLATION.name, Value::Table(constellation));
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
        written,
    ))
}

/// The mark in front of decimals of the files that the table names.
fn of_files(
    section: &mut Section<'_, '_>,
    fading: &Option<Entry<'_, '_>>,
) -> Result<Option<char>, Fault> {
    let decimal = section.find(DECIMAL.name);
    if let (Some(entry), None, None) = (decimal, fading, section.find(DELAYS.name)) {
        return Err(entry.fault("is only for a file of fading or delays"));
    }
    trace::decimal(section)
}

/// What the scheduler knows of the channels: how often it gets reports, or how old its knowledge is, ns.
fn channel_knowledge(section: &mut Section<'_, '_>) -> Result<(u64, Option<u64>), Fault> {
    const LONGEST_NS: u64 = (limits::DELAY_S * 1e9) as u64;
    const AGES: &str = "must be \"flight\", or a time like \"0s\" or \"20ms\"";
    let age = section.find(CSI_AGE.name);
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
    if let (Some(_), Some(tick)) = (age_ns, section.find(CSI_TICK.name)) {
        return Err(tick.fault(
            "is only for csi_age = \"flight\": at a fixed age the scheduler knows the channels whenever it chooses; leave one out",
        ));
    }
    let tick_ns = match age_ns {
        Some(age_ns) => {
            section.remark("csi_tick: the scheduler knows the channels whenever it chooses");
            section.write(CSI_AGE.name, Value::Whole(age_ns, Kind::Time));
            CSI_TICK.default.0
        }
        None => {
            let tick_ns = section.take(&CSI_TICK)?;
            section.write(CSI_AGE.name, "flight");
            tick_ns
        }
    };
    Ok((tick_ns, age_ns))
}

/// The keys of the buffer that puts packets back into order.
fn reordering(section: &mut Section<'_, '_>) -> Result<Option<Reordering>, Fault> {
    let rule = match section.take(&REORDER)? {
        0 => {
            for key in [REORDER_PKTS.name, REORDER_TIMEOUT.name] {
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
        buffer_pkts: section.take(&REORDER_PKTS)?,
        timeout_ns: section.take(&REORDER_TIMEOUT)?,
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
    let generated = [
        MODEL.name,
        ENVIRONMENT.name,
        ELEVATION_DEG.name,
        SPEED_KMH.name,
        CARRIER_GHZ.name,
        PERIOD.name,
        FADING_SEED.name,
    ];
    for key in generated {
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
    section.write(FADING.name, inputs::keep(path, bytes, inputs));
    Ok(Channel::Recorded(fading))
}

/// A channel from a model of a land-mobile satellite.
fn generated(section: &mut Section<'_, '_>, seed: u64) -> Result<Channel, Fault> {
    let model = section.take(&MODEL)?;
    let mut lms = if model == 0 {
        let environment = ENVIRONMENTS[section.take(&ENVIRONMENT)?];
        let lms = Lms::new(environment);
        if section.take(&ELEVATION_DEG)? != ELEVATION_DEG.default.0 {
            return Err(section.fault_at(
                ELEVATION_DEG.name,
                "must be 40, for which perez_fontan has its tables; model = \"itu_p681\" has others",
            ));
        }
        lms
    } else {
        section.choice(ENVIRONMENT.name, &["rural_wooded"], 0)?;
        let elevations: Vec<String> = P681::ELEVATIONS_DEG.iter().map(u32::to_string).collect();
        let elevations = elevations.join(", ");
        let elevation = section.find(ELEVATION_DEG.name).ok_or_else(|| {
            let message = format!("is missing; with itu_p681 it is one of {elevations}");
            section.fault_at(ELEVATION_DEG.name, message)
        })?;
        let elevation_deg = ELEVATION_DEG.form.read(&elevation)?;
        section.write(
            ELEVATION_DEG.name,
            ELEVATION_DEG.form.written(&elevation_deg),
        );
        Lms::rural_wooded(elevation_deg as u32)
            .ok_or_else(|| elevation.fault(format!("must be one of {elevations}")))?
    };
    lms.speed_m_s = section.take(&SPEED_KMH)? / 3.6;
    lms.carrier_hz = section.take(&CARRIER_GHZ)? * 1e9;
    let period_ns = section.take(&PERIOD)?;
    let seed = section.take_or(&FADING_SEED, seed)?;
    Ok(Channel::Drive {
        lms: Box::new(lms),
        seed,
        period_ns,
    })
}

/// Delays from a file or through a constellation, with the resolved form of the latter's table.
fn delays(
    section: &mut Section<'_, '_>,
    duration_ns: u64,
    (folder, decimal): (&Path, Option<char>),
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<(Option<Delays>, Option<Written>), Fault> {
    let file = section.find(DELAYS.name);
    let shell = section.find(CONSTELLATION.name);
    let start = section.find(DELAYS_START.name);
    let shift = section.find(DELAYS_SHIFT.name);
    let before = section.find(DELAYS_BEFORE.name);
    let time = |entry: &Option<Entry<'_, '_>>| match entry {
        Some(entry) => DELAYS_START.form.read(entry),
        None => Ok(0),
    };
    let (start_ns, shift_ns) = (time(&start)?, time(&shift)?);
    let before_s = before
        .as_ref()
        .map(|entry| DELAYS_BEFORE.form.read(entry))
        .transpose()?;

    let mut written = None;
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
            section.write(DELAYS.name, inputs::keep(path, bytes, inputs));
            delays
        }
        (None, Some(shell)) => {
            // Flows that are behind look at what was before the start.
            let from_ns = if shift_ns > 0 { 0 } else { start_ns };
            let run_ns = start_ns..start_ns.saturating_add(duration_ns);
            let path = constellation::read(&shell, from_ns, run_ns, &mut told.notes)?;
            written = Some(path.written);
            outages = path.outages;
            path.delays
        }
    };
    section.write(DELAYS_START.name, DELAYS_START.form.written(&start_ns));
    section.write(DELAYS_SHIFT.name, DELAYS_SHIFT.form.written(&shift_ns));
    if let (Some(entry), 0) = (&before, shift_ns) {
        return Err(entry.fault("is only for flows that are behind; give a delays_shift above 0"));
    }
    let before_s = before_s.unwrap_or_else(|| values::first(&to_satellite_s));
    if shift_ns > 0 {
        section.write(DELAYS_BEFORE.name, DELAYS_BEFORE.form.written(&before_s));
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
    Ok((Some(delays), written))
}
