// SPDX-License-Identifier: BSD-3-Clause
//! The `[link.satellite.constellation]` table.

use crate::experiment::{End, Signal};
use crate::satellite::constellation::{Constellation, Pattern, Place};

use super::fault::Fault;
use super::limits;
use super::reader::{show_number, Entry, Section};
use super::units::{self, Kind};

/// Reads the table; returns the delays to the last satellite and from there to the ground, from one time to another, and the
/// lines of the resolved form.
pub(super) fn read(
    entry: &Entry<'_, '_>,
    from_ns: u64,
    until_ns: u64,
) -> Result<([Signal; 2], String), Fault> {
    let mut section = entry
        .table()
        .ok_or_else(|| entry.fault("must be a table [link.satellite.constellation]"))?;
    let pattern = match section.choice("pattern", &["star", "delta"], 0)? {
        0 => Pattern::Star,
        _ => Pattern::Delta,
    };
    let planes = count(&mut section, "planes", "6")?;
    let per_plane = count(&mut section, "per_plane", "11")?;
    let phasing = section.number("phasing", (0, u64::from(planes) - 1), 0)? as u32;
    let constellation = Constellation {
        pattern,
        planes,
        per_plane,
        phasing,
        altitude_km: needed(&mut section, "altitude_km", (160.0, 50_000.0), "800")?,
        inclination_deg: needed(&mut section, "inclination_deg", (0.0, 180.0), "86.4")?,
        min_elevation_deg: section.real("min_elevation_deg", 0.0, 90.0, 10.0)?,
    };
    let from = place(&mut section, "from", "{ lat_deg = -33.9, lon_deg = 151.2 }")?;
    let to = place(&mut section, "to", "{ lat_deg = 40.7, lon_deg = -74.0 }")?;
    let step_ns = section.whole(
        "step",
        Kind::Time,
        (1_000_000, 3_600_000_000_000),
        1_000_000_000,
    )?;
    section.known()?;

    let steps = (until_ns - from_ns).div_ceil(step_ns);
    let satellites = u64::from(planes) * u64::from(per_plane);
    if steps.saturating_mul(satellites) > limits::SATELLITE_STEPS {
        let message = format!(
            "{satellites} satellites at {steps} times are more than {} places to compute; raise step, or shorten duration or delays_start",
            limits::SATELLITE_STEPS
        );
        return Err(section.fault_at("step", message));
    }
    let mut points: [Vec<(u64, f64)>; 2] = [Vec::new(), Vec::new()];
    for step in 0..steps {
        let time_ns = from_ns + step * step_ns;
        let way = constellation
            .way(from, to, time_ns as f64 * 1e-9)
            .ok_or_else(|| {
                section.fault(format!(
                    "at {} no satellites join the two places; lower min_elevation_deg or take more satellites",
                    units::show_whole(time_ns, Kind::Time)
                ))
            })?;
        // Nobody asks for a time before the first.
        let time_ns = if step == 0 { 0 } else { time_ns };
        for (points, delay_s) in points.iter_mut().zip([way.to_satellite_s, way.to_ground_s]) {
            points.push((time_ns, delay_s));
        }
    }
    let delays = points.map(|points| Signal::Steps {
        points: points.into(),
        end: End::Hold,
    });
    Ok((delays, section.finish()?))
}

fn count(section: &mut Section<'_, '_>, key: &'static str, example: &str) -> Result<u32, Fault> {
    let value = section.need(key, example)?.number((1, 1000))?;
    section.write(key, value.to_string());
    Ok(value as u32)
}

fn needed(
    section: &mut Section<'_, '_>,
    key: &'static str,
    (min, max): (f64, f64),
    example: &str,
) -> Result<f64, Fault> {
    let value = section.need(key, example)?.real(min, max)?;
    section.write(key, show_number(value));
    Ok(value)
}

fn place(section: &mut Section<'_, '_>, key: &'static str, example: &str) -> Result<Place, Fault> {
    let entry = section.need(key, example)?;
    let mut table = entry
        .table()
        .ok_or_else(|| entry.fault(format!("must be a place like {example}")))?;
    let place = Place {
        lat_deg: needed(&mut table, "lat_deg", (-90.0, 90.0), "-33.9")?,
        lon_deg: needed(&mut table, "lon_deg", (-180.0, 180.0), "151.2")?,
    };
    table.finish()?;
    let shown = format!(
        "{{ lat_deg = {}, lon_deg = {} }}",
        show_number(place.lat_deg),
        show_number(place.lon_deg)
    );
    section.write(key, shown);
    Ok(place)
}
