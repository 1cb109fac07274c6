// SPDX-License-Identifier: BSD-3-Clause
//! The keys of `kind = "video"`.

use linkweir_config::reader::{quote, Section};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{RateRule, Session, Video};

use super::super::limits;
use super::amount::{self, Files};

const S: u64 = 1_000_000_000;
/// The player of Huang et al. 2014 holds four minutes.
const DEFAULT_BUFFER_NS: u64 = 240 * S;
/// Segments in FESTIVE's mean, and the part of it that it uses (Jiang et al. 2012).
const HISTORY: u64 = 20;
const SAFETY: f64 = 0.85;
const HISTORIES: (u64, u64) = (1, 1000);
/// Levels of the buffer, ns.
const LEVELS: (u64, u64) = (0, 3600 * S);

pub(super) fn read(section: &mut Section<'_, '_>, files: &mut Files<'_>) -> Result<Session, Fault> {
    let ladder_bps = ladder(section)?;
    let times = (1_000_000, 3600 * S);
    let segment_ns = section.whole("segment", Kind::Time, times, 4 * S)?;
    let buffer_ns = section.whole("buffer", Kind::Time, times, DEFAULT_BUFFER_NS)?;
    if buffer_ns < segment_ns {
        let shown = units::show_whole(segment_ns, Kind::Time);
        return Err(section.fault_at("buffer", format!("must hold a segment, {shown}")));
    }
    let startup_ns = section.whole("startup", Kind::Time, times, segment_ns)?;
    // The player asks for a segment only when there is room for it.
    let most_ns = buffer_ns / segment_ns * segment_ns;
    if startup_ns > most_ns {
        let shown = units::show_whole(most_ns, Kind::Time);
        return Err(section.fault_at(
            "startup",
            format!("must not be above {shown}, the whole segments that buffer holds"),
        ));
    }
    let adaptation = adaptation(section, buffer_ns)?;
    let server_ns = amount::find(section, "server_time", amount::PAUSE, 0.0, files)?;
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
    let example = "[\"750kbit\", \"1.5Mbit\", \"3Mbit\"]";
    let mut ladder_bps: Vec<f64> = Vec::new();
    for rung in section.need("ladder", example)?.list(limits::RUNGS)? {
        let bps = rung.quantity(Kind::Rate, 1000.0, limits::RUNG_BPS)?;
        if ladder_bps.last().is_some_and(|below| *below >= bps) {
            return Err(rung.fault("rates must rise from one to the next"));
        }
        ladder_bps.push(bps);
    }
    let shown: Vec<String> = ladder_bps
        .iter()
        .map(|bps| quote(&units::show_real(*bps, Kind::Rate)))
        .collect();
    section.write("ladder", format!("[{}]", shown.join(", ")));
    Ok(ladder_bps)
}

/// The rule, whose keys the other one does not have.
fn adaptation(section: &mut Section<'_, '_>, buffer_ns: u64) -> Result<RateRule, Fault> {
    let words = ["bba0", "throughput"];
    let chosen = section.choice("adaptation", &words, 0)?;
    let strange: [&'static str; 2] = match chosen {
        0 => ["history", "safety"],
        _ => ["reservoir", "cushion"],
    };
    for key in strange {
        if let Some(entry) = section.find(key) {
            match key {
                "history" => entry.number(HISTORIES).map(drop)?,
                "safety" => entry.real(0.01, 1.0).map(drop)?,
                _ => entry.whole(Kind::Time, LEVELS).map(drop)?,
            }
            let other = quote(words[1 - chosen]);
            return Err(entry.fault(format!("is a key of adaptation = {other}; leave one out")));
        }
    }
    if chosen == 0 {
        // 90 s and 126 s of 240 s.
        let reservoir_ns = section.whole("reservoir", Kind::Time, LEVELS, buffer_ns / 8 * 3)?;
        let cushion_ns = section.whole("cushion", Kind::Time, LEVELS, buffer_ns / 40 * 21)?;
        if reservoir_ns + cushion_ns > buffer_ns {
            let message = "reservoir and cushion together must fit into buffer; lower one of them";
            return Err(section.fault_at("cushion", message));
        }
        return Ok(RateRule::Buffer {
            reservoir_ns,
            cushion_ns,
        });
    }
    let segments = section.number("history", HISTORIES, HISTORY)?;
    Ok(RateRule::Throughput {
        segments: u32::try_from(segments).unwrap_or(u32::MAX),
        safety: section.real("safety", 0.01, 1.0, SAFETY)?,
    })
}
