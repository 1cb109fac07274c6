// SPDX-License-Identifier: BSD-3-Clause
//! The `[link.satellite.constellation]` table.

use std::ops::Range;

use linkweir_config::reader::{show_number, Entry, Section, Value, Written};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{End, Outages, Signal};
use crate::satellite::constellation::{Constellation, Pattern, Place};

use super::keys::satellite::{
    ALTITUDE_KM, INCLINATION_DEG, MIN_ELEVATION_DEG, PATTERN, PER_PLANE, PHASING, PLANES,
};
use super::limits;

/// Times, ns, and values of the two hops.
type Points = [Vec<(u64, f64)>; 2];

/// The link's delays and outages through a constellation.
pub(super) struct Path {
    /// Delays to the last satellite and from there to the ground.
    pub(super) delays: [Signal; 2],
    /// Times of the run without any path.
    pub(super) outages: Outages,
    /// The table's resolved form.
    pub(super) written: Written,
}

/// Reads the table. Delays are computed from `from_ns` until `run_ns` ends, outages within `run_ns` only.
pub(super) fn read(
    entry: &Entry<'_, '_>,
    from_ns: u64,
    run_ns: Range<u64>,
    notes: &mut Vec<String>,
) -> Result<Path, Fault> {
    let mut section = entry
        .table()
        .ok_or_else(|| entry.fault("must be a table [link.satellite.constellation]"))?;
    section.expect(&["inclination_deg", "min_elevation_deg"]);
    let mut constellation = walker(&mut section)?;
    constellation.min_elevation_deg = section.take(&MIN_ELEVATION_DEG)?;
    let from = place(&mut section, "from", "{ lat_deg = -33.9, lon_deg = 151.2 }")?;
    let to = place(&mut section, "to", "{ lat_deg = 40.7, lon_deg = -74.0 }")?;
    let step_ns = section.whole(
        "step",
        Kind::Time,
        (1_000_000, 3_600_000_000_000),
        1_000_000_000,
    )?;
    section.known()?;

    let steps = (run_ns.end - from_ns).div_ceil(step_ns);
    let satellites = constellation.count() as u64;
    if steps.saturating_mul(satellites) > limits::SATELLITE_STEPS {
        let message = format!(
            "{satellites} satellites at {steps} times are more than {} places to compute; raise step, or shorten duration or delays_start",
            limits::SATELLITE_STEPS
        );
        return Err(section.fault_at("step", message));
    }
    let times_ns = (0..steps).map(|step| from_ns + step * step_ns);
    let (points, outages) = path(&constellation, (from, to), times_ns, step_ns, &run_ns);
    if let Some(note) = outage_note(&section, &outages, run_ns.end - run_ns.start)? {
        section.remark(&note);
        notes.push(note);
    }
    let delays = points.map(|points| Signal::Steps {
        points: points.into(),
        end: End::Hold,
    });
    Ok(Path {
        delays,
        outages: outages.into(),
        written: section.finish()?,
    })
}

/// Reads how many satellites there are and how they move. From which elevation on the ground sees them is left at 0.
pub(super) fn walker(section: &mut Section<'_, '_>) -> Result<Constellation, Fault> {
    let pattern = match section.take(&PATTERN)? {
        0 => Pattern::Star,
        _ => Pattern::Delta,
    };
    let planes = section.demand(&PLANES)? as u32;
    let per_plane = section.demand(&PER_PLANE)? as u32;
    let spacing_deg = spacing(section, pattern, planes)?;
    let phasing = section.number(PHASING.name, (0, u64::from(planes) - 1), 0)? as u32;
    Ok(Constellation {
        pattern,
        spacing_deg,
        planes,
        per_plane,
        phasing,
        altitude_km: section.demand(&ALTITUDE_KM)?,
        inclination_deg: section.demand(&INCLINATION_DEG)?,
        min_elevation_deg: 0.0,
    })
}

/// Delays of both hops, s, at these times, `step_ns` apart, and outages within `run_ns`, from its start on.
fn path(
    constellation: &Constellation,
    (from, to): (Place, Place),
    times_ns: impl Iterator<Item = u64>,
    step_ns: u64,
    run_ns: &Range<u64>,
) -> (Points, Vec<(u64, u64)>) {
    let mut points: Points = [Vec::new(), Vec::new()];
    let mut outages: Vec<(u64, u64)> = Vec::new();
    // The caller bounds the times: satellites times steps are at most `limits::SATELLITE_STEPS`.
    for time_ns in times_ns {
        let Some(way) = constellation.way(from, to, time_ns as f64 * 1e-9) else {
            // The first step may begin before the run and the last end after it. Delays keep absolute times, outages do not.
            let end_ns = (time_ns + step_ns).min(run_ns.end);
            let begin_ns = time_ns.max(run_ns.start);
            if begin_ns < end_ns {
                extend(&mut outages, begin_ns - run_ns.start, end_ns - run_ns.start);
            }
            continue;
        };
        // In an outage the delays before it hold; in one at the beginning, those after it.
        let time_ns = if points[0].is_empty() { 0 } else { time_ns };
        for (points, delay_s) in points.iter_mut().zip([way.to_satellite_s, way.to_ground_s]) {
            points.push((time_ns, delay_s));
        }
    }
    (points, outages)
}

/// Angle between the planes of a star, where the user gives it.
fn spacing(
    section: &mut Section<'_, '_>,
    pattern: Pattern,
    planes: u32,
) -> Result<Option<f64>, Fault> {
    let Some(entry) = section.find("spacing_deg") else {
        if pattern == Pattern::Star {
            section.remark("spacing_deg: 180 / planes");
        }
        return Ok(None);
    };
    if pattern == Pattern::Delta || planes == 1 {
        return Err(entry.fault("is only for a star of two planes or more; leave it out"));
    }
    let spacing_deg = entry.real(0.1, 180.0)?;
    let seam_deg = 180.0 - spacing_deg * f64::from(planes - 1);
    if seam_deg <= 0.0 {
        return Err(entry.fault(format!(
            "leaves nothing of 180 degrees for the seam between the last of {planes} planes and the first; it must be below {}",
            show_number(180.0 / f64::from(planes - 1))
        )));
    }
    section.write("spacing_deg", Value::Real(spacing_deg));
    Ok(Some(spacing_deg))
}

/// Adds a time to outages that end before it or at its beginning.
fn extend(outages: &mut Vec<(u64, u64)>, begin_ns: u64, end_ns: u64) {
    match outages.last_mut() {
        Some(last) if last.1 == begin_ns => last.1 = end_ns,
        _ => outages.push((begin_ns, end_ns)),
    }
}

/// A note on outages, if there are any; they must leave some of the run.
fn outage_note(
    section: &Section<'_, '_>,
    outages: &[(u64, u64)],
    duration_ns: u64,
) -> Result<Option<String>, Fault> {
    let Some(&(begin_ns, end_ns)) = outages.first() else {
        return Ok(None);
    };
    let time = |ns| units::show_whole(ns, Kind::Time);
    let out_ns: u64 = outages
        .iter()
        .map(|(begin_ns, end_ns)| end_ns - begin_ns)
        .sum();
    if out_ns == duration_ns {
        return Err(section.fault(
            "at no time of the run do satellites join the two places; lower min_elevation_deg or take more satellites",
        ));
    }
    let times = match outages.len() {
        1 => format!("from {} to {}", time(begin_ns), time(end_ns)),
        n => format!(
            "in {n} outages, the first from {} to {}",
            time(begin_ns),
            time(end_ns)
        ),
    };
    Ok(Some(format!(
        "link.satellite.constellation: no satellites join the two places for {} of {}, {times}; the link is down then. Lower min_elevation_deg or take more satellites to avoid it",
        time(out_ns),
        time(duration_ns)
    )))
}

fn needed(
    section: &mut Section<'_, '_>,
    key: &'static str,
    (min, max): (f64, f64),
    example: &str,
) -> Result<f64, Fault> {
    let value = section.need(key, example)?.real(min, max)?;
    section.write(key, Value::Real(value));
    Ok(value)
}

fn place(section: &mut Section<'_, '_>, key: &'static str, example: &str) -> Result<Place, Fault> {
    let entry = section.need(key, example)?;
    let mut table = entry
        .table()
        .ok_or_else(|| entry.fault(format!("must be a place like {example}")))?;
    table.expect(&["lat_deg", "lon_deg"]);
    let place = Place {
        lat_deg: needed(&mut table, "lat_deg", (-90.0, 90.0), "-33.9")?,
        lon_deg: needed(&mut table, "lon_deg", (-180.0, 180.0), "151.2")?,
    };
    section.write(key, Value::Inline(table.finish()?));
    Ok(place)
}
