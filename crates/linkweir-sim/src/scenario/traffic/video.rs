// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "video"`.

use linkweir_config::keys::Form;
use linkweir_config::reader::{Section, Value};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{RateRule, Session, Video};

use super::super::keys::kinds::{
    VIDEO_ADAPTATION, VIDEO_BUFFER, VIDEO_CUSHION, VIDEO_HISTORY, VIDEO_LADDER, VIDEO_RESERVOIR,
    VIDEO_SAFETY, VIDEO_SEGMENT, VIDEO_SERVER_TIME, VIDEO_STARTUP,
};
use super::super::limits;
use super::amount::{self, Files};

/// Segments in FESTIVE's mean, and the part of it that it uses (Jiang et al. 2012).
const HISTORY: u64 = 20;
const SAFETY: f64 = 0.85;

pub(super) fn read(section: &mut Section<'_, '_>, files: &mut Files<'_>) -> Result<Session, Fault> {
    let ladder_bps = ladder(section)?;
    let segment_ns = section.take(&VIDEO_SEGMENT)?;
    let buffer_ns = section.take(&VIDEO_BUFFER)?;
    if buffer_ns < segment_ns {
        let shown = units::show_whole(segment_ns, Kind::Time);
        return Err(section.fault_at(VIDEO_BUFFER.name, format!("must hold a segment, {shown}")));
    }
    let startup_ns = section.take_or(&VIDEO_STARTUP, segment_ns)?;
    // The player asks for a segment only when there is room for it.
    let most_ns = buffer_ns / segment_ns * segment_ns;
    if startup_ns > most_ns {
        let shown = units::show_whole(most_ns, Kind::Time);
        return Err(section.fault_at(
            VIDEO_STARTUP.name,
            format!("must not be above {shown}, the whole segments that buffer holds"),
        ));
    }
    let adaptation = adaptation(section, buffer_ns)?;
    let server_ns = amount::find(section, &VIDEO_SERVER_TIME, 0.0, files)?;
    Ok(Session::Video(Video {
        ladder_bps: ladder_bps.into(),
        segment_ns,
        buffer_ns,
        startup_ns,
        adaptation,
        server_ns,
    }))
}

fn ladder(section: &mut Section<'_, '_>) -> Result<Vec<f64>, Fault> {
    let mut ladder_bps: Vec<f64> = Vec::new();
    for rung in section.entry_of(&VIDEO_LADDER)?.list(limits::RUNGS)? {
        let bps = rung.quantity(Kind::Rate, 1000.0, limits::RUNG_BPS)?;
        if ladder_bps.last().is_some_and(|below| *below >= bps) {
            return Err(rung.fault("rates must rise from one to the next"));
        }
        ladder_bps.push(bps);
    }
    let rates = ladder_bps.iter().map(|bps| Value::Amount(*bps, Kind::Rate));
    section.write(VIDEO_LADDER.name, Value::List(rates.collect()));
    Ok(ladder_bps)
}

/// The rule, whose keys the other one does not have.
fn adaptation(section: &mut Section<'_, '_>, buffer_ns: u64) -> Result<RateRule, Fault> {
    let chosen = section.take(&VIDEO_ADAPTATION)?;
    let strange: [&'static str; 2] = match chosen {
        0 => [VIDEO_HISTORY.name, VIDEO_SAFETY.name],
        _ => [VIDEO_RESERVOIR.name, VIDEO_CUSHION.name],
    };
    for key in strange {
        if let Some(entry) = section.find(key) {
            if key == VIDEO_HISTORY.name {
                VIDEO_HISTORY.form.read(&entry)?;
            } else if key == VIDEO_SAFETY.name {
                VIDEO_SAFETY.form.read(&entry)?;
            } else {
                VIDEO_RESERVOIR.form.read(&entry)?;
            }
            let other = VIDEO_ADAPTATION.form.written(&(1 - chosen));
            return Err(entry.fault(format!("is a key of adaptation = {other}; leave one out")));
        }
    }
    if chosen == 0 {
        // 90 s and 126 s of 240 s.
        let reservoir_ns = section.take_or(&VIDEO_RESERVOIR, buffer_ns / 8 * 3)?;
        let cushion_ns = section.take_or(&VIDEO_CUSHION, buffer_ns / 40 * 21)?;
        if reservoir_ns + cushion_ns > buffer_ns {
            let message = "reservoir and cushion together must fit into buffer; lower one of them";
            return Err(section.fault_at(VIDEO_CUSHION.name, message));
        }
        return Ok(RateRule::Buffer {
            reservoir_ns,
            cushion_ns,
        });
    }
    let segments = section.take_or(&VIDEO_HISTORY, HISTORY)?;
    Ok(RateRule::Throughput {
        segments: u32::try_from(segments).unwrap_or(u32::MAX),
        safety: section.take_or(&VIDEO_SAFETY, SAFETY)?,
    })
}
