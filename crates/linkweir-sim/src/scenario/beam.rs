// SPDX-License-Identifier: BSD-3-Clause
//! The `[link.beam]` table.

use std::path::Path;

use linkweir_config::keys::form::Real;
use linkweir_config::keys::Form;
use linkweir_config::reader::{Entry, Section, Value, Written};
use linkweir_config::trace;
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{Beam, Capacity, ClearSky, Link, Signal, Weather};
use crate::satellite::modcod::{Adaptation, DVB_S2, DVB_S2X};
use crate::satellite::rain::{Rain, MOST_DB};

use super::attenuation;
use super::inputs::{self, Input, Told};
use super::keys::beam::{
    ATTENUATION, CHANNEL_SEED, CLEAR_SKY_ESN0_DB, CORRELATION, CORRELATION_TIME, DECIMAL, ESN0_DB,
    EXCEEDED, HYSTERESIS_DB, M, MARGIN_DB, MODCODS, PROBABILITY, RAIN, SIGMA, START, SYMBOL_RATE,
    TICK,
};
use super::keys::link;
use super::keys::satellite::CSI_AGE;
use super::limits;

/// Reads the table; returns the beam and the table's resolved form. Files are looked for in `folder`.
pub(super) fn read(
    entry: &Entry<'_, '_>,
    seed: u64,
    folder: &Path,
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<(Beam, Written), Fault> {
    let mut section = entry
        .table()
        .ok_or_else(|| entry.fault("must be a table [link.beam]"))?;
    if let Some(entry) = section.stray(CSI_AGE.name) {
        return Err(entry.fault(
            "is only for [link.satellite]: a beam sends each packet at the rate that its tick reported, so that knowledge has no age; leave it out, or change tick",
        ));
    }
    let symbol_rate_bd = section.demand(&SYMBOL_RATE)?;
    let clear_sky = clear_sky(&mut section)?;
    let extended = section.take(&MODCODS)? == 1;
    let margin_db = section.take(&MARGIN_DB)?;
    let hysteresis_db = section.take(&HYSTERESIS_DB)?;
    let tick_ns = section.take(&TICK)?;
    let seed = section.take_or(&CHANNEL_SEED, seed)?;
    let mut rain_table = None;
    let weather = match (section.find(RAIN.name), section.find(ATTENUATION.name)) {
        (Some(_), Some(file)) => {
            return Err(file.fault("rain and attenuation exclude each other; leave one out"));
        }
        (Some(table), None) => {
            let (rain, written) = rain(&table, &mut told.notes)?;
            rain_table = Some(written);
            Weather::Rain(rain)
        }
        (None, Some(file)) => recorded(&mut section, &file, folder, inputs, told)?,
        (None, None) => Weather::Clear,
    };
    if let (Some(entry), false) = (
        section.find(DECIMAL.name),
        matches!(weather, Weather::Recorded(_)),
    ) {
        return Err(entry.fault("is only for a file of attenuations"));
    }
    let extra = if extended { &DVB_S2X[..] } else { &[] };
    let modcods = DVB_S2.iter().chain(extra).copied();
    let mut written = section.finish()?;
    if let Some(rain) = rain_table {
        written.write(RAIN.name, Value::Table(rain));
    }
    let beam = Beam {
        symbol_rate_bd,
        clear_sky,
        adaptation: Adaptation::new(modcods, margin_db, hysteresis_db),
        tick_ns,
        weather,
        seed,
    };
    Ok((beam, written))
}

/// Refuses Es/N0 and attenuations that are as many as neither one nor the users, each of whom has one class or several.
/// `section` is that of the link.
pub(super) fn fits(
    section: &mut Section<'_, '_>,
    link: &Link,
    (users, classes): (usize, usize),
) -> Result<(), Fault> {
    let Some(beam) = &link.beam else {
        return Ok(());
    };
    let wrong = match (&beam.clear_sky, &beam.weather) {
        (ClearSky::Each(all), _) if all.len() != users => {
            Some((CLEAR_SKY_ESN0_DB.name, all.len(), "values"))
        }
        (_, Weather::Recorded(recorded)) if ![1, users].contains(&recorded.columns()) => {
            Some((ATTENUATION.name, recorded.columns(), "columns of dB"))
        }
        _ => None,
    };
    let Some((key, found, what)) = wrong else {
        return Ok(());
    };
    let terminals = if users == classes { "classes" } else { "users" };
    let message = format!(
        "has {found} {what} where there are {users} {terminals}; give one for each or one for all"
    );
    let table = section.find(link::BEAM.name).and_then(|beam| beam.table());
    Err(match table {
        Some(table) => table.fault_at(key, message),
        None => section.fault(message),
    })
}

/// The greatest rate any terminal may have.
pub(super) fn greatest(beam: &Beam) -> Capacity {
    let efficiency = beam
        .adaptation
        .ladder()
        .last()
        .map_or(0.0, |m| m.efficiency);
    Capacity::Rate(Signal::Constant(beam.symbol_rate_bd * efficiency))
}

/// The rate of a terminal with the mean Es/N0 when there is no rain, bit/s.
pub(super) fn clear_sky_bps(beam: &Beam) -> f64 {
    let esn0_db = match &beam.clear_sky {
        ClearSky::Same(db) => *db,
        ClearSky::Each(all) => all.iter().sum::<f64>() / all.len() as f64,
        ClearSky::Between(least, most) => 0.5 * (least + most),
    };
    let place = beam.adaptation.first(esn0_db);
    beam.symbol_rate_bd * place.map_or(0.0, |i| beam.adaptation.ladder()[i].efficiency)
}

fn clear_sky(section: &mut Section<'_, '_>) -> Result<ClearSky, Fault> {
    let (least, most) = ESN0_DB;
    let entry = section.entry_of(&CLEAR_SKY_ESN0_DB)?;
    let (clear_sky, written) = if let Some(mut table) = entry.table() {
        let low = table.need("min", "8.0")?.real(least, most)?;
        let high = table.need("max", "14.0")?.real(low, most)?;
        table.finish()?;
        let written = Value::inline([("min", Value::Real(low)), ("max", Value::Real(high))]);
        (ClearSky::Between(low, high), written)
    } else if entry.is_list() {
        let all = entry
            .list(limits::CLASSES)?
            .iter()
            .map(|item| item.real(least, most))
            .collect::<Result<Vec<f64>, Fault>>()?;
        let written = all.iter().copied().map(Value::Real).collect();
        (ClearSky::Each(all.into()), Value::List(written))
    } else {
        let all = entry.real(least, most)?;
        (ClearSky::Same(all), Value::Real(all))
    };
    section.write(CLEAR_SKY_ESN0_DB.name, written);
    Ok(clear_sky)
}

/// The table `rain`.
fn rain(entry: &Entry<'_, '_>, notes: &mut Vec<String>) -> Result<(Rain, Written), Fault> {
    let mut section = entry
        .table()
        .ok_or_else(|| entry.fault("must be a table [link.beam.rain]"))?;
    let probability = section
        .find(PROBABILITY.name)
        .map_or(Ok(PROBABILITY.default.0), |entry| {
            PROBABILITY.form.read(&entry)
        })?;
    section.write(PROBABILITY.name, Value::Real(probability));
    let mut exceeded = Vec::new();
    let (m, sigma) = match (section.find(EXCEEDED.name), section.find(M.name)) {
        (Some(_), Some(m)) => {
            return Err(m.fault("exceeded and m exclude each other; leave one out"))
        }
        (Some(points), None) => {
            if let Some(sigma) = section.find(SIGMA.name) {
                return Err(sigma.fault("exceeded and sigma exclude each other; leave one out"));
            }
            fitted(&mut section, &points, probability, &mut exceeded)?
        }
        (None, m) => {
            let m = m.ok_or_else(|| {
                section.fault_at(
                    M.name,
                    "is missing; write m = -3.9 and sigma = 1.8, or exceeded = [[\"0.01%\", 14.5], [\"1%\", 1.2]]",
                )
            })?;
            let m = M.form.read(&m)?;
            let sigma = SIGMA.form.read(&section.need(SIGMA.name, "1.8")?)?;
            section.write(M.name, M.form.written(&m));
            section.write(SIGMA.name, SIGMA.form.written(&sigma));
            (m, sigma)
        }
    };
    let correlation_time_ns = section.take(&CORRELATION_TIME)?;
    let correlation = section.take(&CORRELATION)?;
    let start = match section.find(START.name) {
        Some(entry) => {
            let start = START.form.read(&entry)?;
            if correlation == 0.0 {
                return Err(entry.fault(
                    "is the state of the rain that all terminals share; give a correlation above 0",
                ));
            }
            section.write(START.name, Value::Real(start));
            Some(start)
        }
        None => {
            section.remark("start: drawn");
            None
        }
    };
    let rain = Rain {
        m,
        sigma,
        probability,
        correlation_time_s: correlation_time_ns as f64 * 1e-9,
        correlation,
        start,
    };
    notes.extend(misses(&mut section, &rain, &exceeded)?);
    Ok((rain, section.finish()?))
}

/// Parts of the time that differ by less need no remark.
const MISS: f64 = 0.01;
/// With an offset, the part of the time in which the model exceeds an attenuation may differ from the given one by this
/// factor, up or down.
const MOST_MISS: f64 = 2.0;

/// Says in which part of the time the model exceeds the attenuations given, where that is another one. Two things can cause
/// that: the offset that makes times without rain is taken off what was fitted, and more than two pairs need not lie on one
/// log-normal curve. Only a model that has an offset is refused.
fn misses(
    section: &mut Section<'_, '_>,
    rain: &Rain,
    exceeded: &[(f64, f64)],
) -> Result<Option<String>, Fault> {
    let has_offset = rain.offset_db() > 0.0;
    let mut missed = Vec::new();
    for (index, &(part, db)) in exceeded.iter().enumerate() {
        let found = rain.exceedance(db);
        let deviation = format!(
            "{db} dB in {} of the time instead of {}",
            per_cent(found),
            per_cent(part)
        );
        if has_offset && !(part / MOST_MISS..=part * MOST_MISS).contains(&found) {
            return Err(section.fault_at(
                EXCEEDED.name,
                format!(
                    "pair {}: the fitted model exceeds {deviation}, off by more than a factor of {MOST_MISS}; leave out pairs near the probability of rain or raise it, correct the pair, or give m and sigma",
                    index + 1
                ),
            ));
        }
        if (found / part - 1.0).abs() > MISS {
            missed.push(deviation);
        }
    }
    if missed.is_empty() {
        return Ok(None);
    }
    let cure = if has_offset {
        "Raise probability, or give m and sigma, to come nearer"
    } else {
        "The pairs do not lie on one log-normal curve; give two pairs, or m and sigma"
    };
    let note = format!(
        "link.beam.rain.exceeded: the fitted model exceeds {}. {cure}",
        missed.join(", ")
    );
    section.remark(&note);
    Ok(Some(note))
}

/// Three digits of a part of the time.
fn per_cent(part: f64) -> String {
    let value = 100.0 * part;
    let decimals = (2.0 - libm::floor(libm::log10(value))).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}%")
}

/// Parameters from points of the distribution.
fn fitted(
    section: &mut Section<'_, '_>,
    points: &Entry<'_, '_>,
    probability: f64,
    exceeded: &mut Vec<(f64, f64)>,
) -> Result<(f64, f64), Fault> {
    let mut written = Vec::new();
    for [part, attenuation] in points.pairs("[part of the time, dB]", limits::POINTS)? {
        let value = part.quantity(Kind::Fraction, 1e-6, 0.5)?;
        if value >= probability {
            return Err(part.fault(format!(
                "must be below the probability of rain, {}",
                units::show_real(probability, Kind::Fraction)
            )));
        }
        let db = attenuation.real(0.001, MOST_DB)?;
        exceeded.push((value, db));
        written.push(Value::List(vec![Value::Real(value), Value::Real(db)]));
    }
    let (m, sigma) = Rain::fitted(exceeded).ok_or_else(|| {
        points.fault("must hold two parts of the time or more, and more dB for less time")
    })?;
    let within = |value: f64, range: &Real| (range.min..=range.max).contains(&value);
    if !within(m, &M.form) || !within(sigma, &SIGMA.form) {
        return Err(points.fault(format!(
            "gives m = {m:.4}, which must be {} .. {}, and sigma = {sigma:.4}, which must be {} .. {}; correct a part of the time or its dB",
            M.form.min, M.form.max, SIGMA.form.min, SIGMA.form.max
        )));
    }
    section.write(EXCEEDED.name, Value::List(written));
    Ok((m, sigma))
}

/// Attenuation from a file.
fn recorded(
    section: &mut Section<'_, '_>,
    file: &Entry<'_, '_>,
    folder: &Path,
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<Weather, Fault> {
    let (path, bytes) = inputs::read(file, "times and attenuations", folder)?;
    let decimal = trace::decimal(section)?;
    let (attenuation, series) = attenuation::parse(&bytes, &path, decimal)?;
    told.read(series.of_file(&path));
    section.write(ATTENUATION.name, inputs::keep(path, bytes, inputs));
    Ok(Weather::Recorded(attenuation))
}
