// SPDX-License-Identifier: BSD-3-Clause
//! The `[link]` table.

use std::path::{Path, PathBuf};

use linkweir_config::keys::link::{RATE, TRACE};
use linkweir_config::keys::Form;
use linkweir_config::link::{self, Given, Source};
use linkweir_config::reader::{self, Section, Value};
use linkweir_config::trace::{self, Hints, Trace};
use linkweir_config::units::{self, Kind};
use linkweir_config::values::{self, Values};
use linkweir_config::Fault;

use crate::experiment::{Capacity, Link, Reorder, Satellite, Signal};

use super::beam;
use super::inputs::{self, Input, Told};
use super::keys::beam::CLEAR_SKY_ESN0_DB;
use super::keys::link::{
    BEAM, BURST, DELAY, FOLLOW, HELD_BACK, LOSS, MEAN_LOSS, MPU, NOMINAL, OVERHEAD, PROBABILITY,
    REORDER, RETURN_DELAY, RING, SATELLITE,
};
use super::keys::satellite::GROUND_DELAY;
use super::limits;
use super::overrides::Overrides;
use super::satellite;

const LOSSES: Values = Values {
    kind: Kind::Fraction,
    min: 0.0,
    max: 1.0,
};

/// Reads the link, in place of whose rate there may be a trace. What the user should know of its files and models is added
/// to `told`.
pub(super) fn read(
    section: &mut Section<'_, '_>,
    duration_ns: u64,
    seed: u64,
    overrides: &Overrides,
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<Link, Fault> {
    let given = Given::find(section);
    let beam = match section.find(BEAM.name) {
        Some(entry) => {
            alone(section, &given, overrides.trace.as_deref())?;
            Some(beam::read(&entry, seed, &folder(section), inputs, told)?)
        }
        None => None,
    };
    let source = match &beam {
        Some((beam, _)) => Offered::rate(beam::greatest(beam)),
        None => Offered::read(section, given, overrides, inputs, told)?,
    };
    let mean_bps = match &beam {
        Some((beam, _)) => beam::clear_sky_bps(beam),
        None => link::mean_bps(&source.capacity, duration_ns),
    };
    let nominal_bps = nominal(section, mean_bps)?;
    let follow = section.take(&FOLLOW)?;

    let satellite = match section.find(SATELLITE.name) {
        Some(entry) => {
            let folder = folder(section);
            let read = satellite::read(&entry, seed, duration_ns, &folder, inputs, told)?;
            Some(read)
        }
        None => None,
    };
    let replaced = overrides.trace.is_some();
    let has_delays = has_delays(satellite.as_ref().map(|(s, _)| s));
    let (delay_s, return_delay_ns) = delays(section, has_delays, source.delay_s, replaced)?;
    let (loss, loss_burst_pkts) = match bursts(section)? {
        Some((mean, burst_pkts, written)) if source.loss.is_none() => {
            section.write(LOSS.name, written);
            (Signal::Constant(mean), Some(burst_pkts))
        }
        _ => (
            varying(section, LOSS.name, LOSSES, source.loss, replaced)?,
            None,
        ),
    };
    let reorder = reorder(section)?;

    let ring = section.take(&RING)?;
    let overhead_bytes = section.take(&OVERHEAD)?;
    let mpu_bytes = section.take(&MPU)?;
    let (satellite, satellite_table) = satellite.unzip();
    let (beam, beam_table) = beam.unzip();
    for (key, table) in [(SATELLITE.name, satellite_table), (BEAM.name, beam_table)] {
        if let Some(table) = table {
            section.write(key, Value::Table(table));
        }
    }
    let link = Link {
        capacity: source.capacity,
        nominal_bps,
        follow,
        delay_s,
        return_delay_ns,
        loss,
        loss_burst_pkts,
        reorder,
        ring: u32::try_from(ring).unwrap_or(1),
        overhead_bytes: i32::try_from(overhead_bytes).unwrap_or(0),
        mpu_bytes,
        satellite,
        beam,
        bond: None,
    };
    if link.satellite.is_some() {
        before_satellite(section, &link)?;
    }
    in_flight(section, &link)?;
    told.notes.extend(arrives_late(&link, duration_ns));
    Ok(link)
}

/// Capacity of the link, with the columns for delay and loss that a trace may have.
struct Offered {
    capacity: Capacity,
    delay_s: Option<Signal>,
    loss: Option<Signal>,
}

impl Offered {
    fn rate(capacity: Capacity) -> Offered {
        Offered {
            capacity,
            delay_s: None,
            loss: None,
        }
    }

    /// Reads `rate` or `trace`, or the trace that takes their place.
    fn read(
        section: &mut Section<'_, '_>,
        given: Given<'_, '_>,
        overrides: &Overrides,
        inputs: &mut Vec<Input>,
        told: &mut Told,
    ) -> Result<Offered, Fault> {
        let (name, trace) = if let Some(path) = overrides.trace.as_deref() {
            let bytes = match &overrides.trace_content {
                Some(content) => content.clone(),
                None => link::bytes(overrides.files.as_deref(), path)?,
            };
            trace_of(path.into(), bytes, &overrides.hints, inputs, told)?
        } else {
            match given.read(1.0, "must be above 0 at some time")? {
                Source::Rate(signal, _) => {
                    section.write(RATE.name, RATE.form.written(&signal));
                    return Ok(Offered::rate(Capacity::Rate(signal)));
                }
                Source::Trace(entry, hints) => {
                    let (path, bytes) =
                        inputs::read(&entry, "times and capacities", &folder(section))?;
                    trace_of(path, bytes, &hints, inputs, told)?
                }
                Source::None => {
                    return Err(section.missing(
                        RATE.name,
                        "is missing; write rate = \"20Mbit\" or trace = \"capacity.csv\", or add a table [link.beam]",
                    ))
                }
            }
        };
        section.write(TRACE.name, name);
        trace.write(section);
        Ok(Offered {
            capacity: trace.capacity,
            delay_s: trace.delay_s,
            loss: trace.loss,
        })
    }
}

/// Reads `delay` and `return_delay`, which a satellite with delays of its own excludes.
fn delays(
    section: &mut Section<'_, '_>,
    satellite_has_delays: bool,
    from_trace: Option<Signal>,
    replaced: bool,
) -> Result<(Signal, u64), Fault> {
    if satellite_has_delays {
        for key in [DELAY.name, RETURN_DELAY.name] {
            if let Some(entry) = section.find(key) {
                return Err(entry.fault("link.satellite has delays of its own; leave one out"));
            }
        }
        if from_trace.is_some() {
            let message =
                "has delays of its own, and the trace has a column for them; leave one out";
            return Err(section.fault_at(SATELLITE.name, message));
        }
        section.remark("delay, return_delay: as link.satellite says");
        return Ok((Signal::Constant(0.0), 0));
    }
    let delay_s = varying(section, DELAY.name, DELAY.form, from_trace, replaced)?;
    let at_the_start_ns = (values::first(&delay_s) * 1e9 + 0.5) as u64;
    let return_delay_ns = section.take_or(&RETURN_DELAY, at_the_start_ns)?;
    Ok((delay_s, return_delay_ns))
}

/// Says that nothing arrives within the run, if the least delay is as long.
fn arrives_late(link: &Link, duration_ns: u64) -> Option<String> {
    let Signal::Steps { points, .. } = &link.delay_s else {
        return None;
    };
    let least_s = points
        .iter()
        .map(|point| point.1)
        .fold(f64::INFINITY, f64::min);
    (least_s * 1e9 >= duration_ns as f64).then(|| {
        format!(
            "link.delay: is never below {}, and the run lasts {}, so that nothing arrives; if a trace's delays are in ms, write \
             delay = {{ column = ..., unit = \"ms\" }} in columns",
            units::show_real(least_s, Kind::Seconds),
            units::show_whole(duration_ns, Kind::Time)
        )
    })
}

/// Refuses keys that a link from a satellite has no use for.
fn before_satellite(section: &Section<'_, '_>, link: &Link) -> Result<(), Fault> {
    const CODED: &str =
        "must be left out behind a satellite: every packet takes what link.satellite.packet codes";
    let wrong = [
        (link.ring > 1, RING.name, "must be 1 in front of a satellite"),
        (
            link.loss != Signal::Constant(0.0),
            LOSS.name,
            "must be left out behind a satellite: a packet is lost when its last attempt is",
        ),
        (
            link.reorder.is_some(),
            REORDER.name,
            "must be left out behind a satellite: repetitions reorder packets",
        ),
        (link.overhead_bytes != 0, OVERHEAD.name, CODED),
        (link.mpu_bytes != 0, MPU.name, CODED),
        (
            link.follow,
            FOLLOW.name,
            "must be left out behind a satellite: its rate is constant, and the channel decides what it carries",
        ),
    ];
    match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        Some((_, key, message)) => Err(section.fault_at(key, message)),
        None => Ok(()),
    }
}

/// Refuses what a beam's rates leave no room for.
fn alone(
    section: &mut Section<'_, '_>,
    given: &Given<'_, '_>,
    replacement: Option<&Path>,
) -> Result<(), Fault> {
    if let Some(entry) = given.any() {
        return Err(
            entry.fault("a beam's rates are those of its terminals; leave this or [link.beam] out")
        );
    }
    if let Some(entry) = section.find(SATELLITE.name) {
        return Err(entry.fault("satellite and beam exclude each other; leave one out"));
    }
    if let Some(path) = replacement {
        let message = format!(
            "the capacity trace {} cannot take its place; leave one of them out",
            path.display()
        );
        return Err(section.fault_at(BEAM.name, message));
    }
    if let Some(entry) = section.find(FOLLOW.name) {
        if entry.flag()? {
            return Err(entry.fault(
                "must be left out with a beam: every terminal's rate is reported to the scheduler",
            ));
        }
    }
    if let Some(entry) = section.find(REORDER.name) {
        return Err(entry.fault("must be left out with a beam: its packets keep their order"));
    }
    if let Some(entry) = section.find(LOSS.name) {
        let has_bursts = entry
            .table()
            .is_some_and(|mut table| table.find(BURST.name).is_some());
        if has_bursts {
            return Err(entry.fault("must not come in bursts with a beam; give a probability"));
        }
    }
    if let Some(entry) = section.find(RING.name) {
        if RING.form.read(&entry)? > 1 {
            return Err(entry.fault("must be 1 in front of a beam"));
        }
    }
    Ok(())
}

/// Where the files lie that the scenario names.
pub(super) fn folder(section: &Section<'_, '_>) -> PathBuf {
    let file = section.source().file();
    file.and_then(Path::parent)
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Reads a trace and keeps its file; returns it with the file's name in a run directory.
fn trace_of(
    path: PathBuf,
    bytes: Vec<u8>,
    hints: &Hints,
    inputs: &mut Vec<Input>,
    told: &mut Told,
) -> Result<(String, Trace), Fault> {
    let trace = trace::parse(&bytes, &path, hints)?;
    told.read(trace.reading(&path));
    let doubts = trace.understood.doubts.iter();
    told.notes
        .extend(doubts.map(|doubt| format!("link.trace: {doubt}")));
    let of_file = |note: &String| format!("{}: {note}", path.display());
    told.notes.extend(trace.notes.iter().map(of_file));
    let peak = match &trace.capacity {
        Capacity::Rate(signal) => values::greatest(signal),
        Capacity::Opportunities { .. } => 1.0,
    };
    if peak < 1.0 {
        let message = "the capacity must be above 0 at some time";
        return Err(Fault::in_file(path, None, message));
    }
    Ok((inputs::keep(path, bytes, inputs), trace))
}

/// The capacity that the scheduler assumes: the mean, unless the scenario gives one.
fn nominal(section: &mut Section<'_, '_>, mean_bps: f64) -> Result<u64, Fault> {
    let bounds = (NOMINAL.form.min, NOMINAL.form.max);
    let value = if let Some(entry) = section.find(NOMINAL.name) {
        NOMINAL.form.read(&entry)?
    } else {
        let mean = (mean_bps + 0.5) as u64;
        if mean < bounds.0 {
            if let Some(beam) = section.find(BEAM.name).and_then(|beam| beam.table()) {
                return Err(beam.fault_at(
                    CLEAR_SKY_ESN0_DB.name,
                    "leaves no rate in clear sky; raise it, or give link.nominal",
                ));
            }
        }
        if !(bounds.0..=bounds.1).contains(&mean) {
            let message = format!(
                "is missing and the mean capacity, {}, is no use for it; give one of {} .. {}",
                units::show_whole(mean, Kind::Rate),
                units::show_whole(bounds.0, Kind::Rate),
                units::show_whole(bounds.1, Kind::Rate)
            );
            return Err(section.fault_at(NOMINAL.name, message));
        }
        mean
    };
    section.write(NOMINAL.name, NOMINAL.form.written(&value));
    Ok(value)
}

/// A signal that either the scenario or the trace gives.
fn varying(
    section: &mut Section<'_, '_>,
    key: &'static str,
    values: Values,
    from_trace: Option<Signal>,
    replaced: bool,
) -> Result<Signal, Fault> {
    let entry = section.find(key);
    if let Some(signal) = from_trace {
        if let (Some(entry), false) = (entry, replaced) {
            return Err(entry.fault("the trace has a column for it; leave one out"));
        }
        section.remark(&format!("{key}: as the trace says"));
        return Ok(signal);
    }
    let signal = match entry {
        Some(entry) => values.read(&entry)?,
        None => Signal::Constant(0.0),
    };
    section.write(key, values.written(&signal));
    Ok(signal)
}

/// Mean loss and mean burst of losses that come in bursts, which are written `loss = { mean = "1%", burst = "5p" }`, and their
/// resolved form.
fn bursts(section: &mut Section<'_, '_>) -> Result<Option<(f64, f64, Value)>, Fault> {
    let Some(mut table) = section.find(LOSS.name).and_then(|entry| entry.table()) else {
        return Ok(None);
    };
    let Some(burst) = table.find(BURST.name) else {
        return Ok(None);
    };
    let burst_pkts = BURST.form.read(&burst)?;
    let entry = table.need(MEAN_LOSS.name, "\"1%\"")?;
    let mean = MEAN_LOSS.form.read(&entry)?;
    let most = burst_pkts / (burst_pkts + 1.0);
    if mean > most {
        let shown = units::show_real(burst_pkts, Kind::Packets);
        return Err(entry.fault(format!(
            "must be at most {} with a mean burst of {shown}, as at least one packet arrives between two bursts; \
             lower it, or raise burst",
            reader::show_number((most * 1e6).floor() / 1e6)
        )));
    }
    table.finish()?;
    let written = Value::inline([
        (MEAN_LOSS.name, MEAN_LOSS.form.written(&mean)),
        (BURST.name, BURST.form.written(&burst_pkts)),
    ]);
    Ok(Some((mean, burst_pkts, written)))
}

/// Reads `reorder`, the packets that are held back behind the scheduler.
fn reorder(section: &mut Section<'_, '_>) -> Result<Option<Reorder>, Fault> {
    let Some(entry) = section.find(REORDER.name) else {
        return Ok(None);
    };
    let Some(mut table) = entry.table() else {
        return Err(entry.fault("must be a table like { probability = \"1%\", delay = \"10ms\" }"));
    };
    let probability = table.demand(&PROBABILITY)?;
    let delay_ns = table.demand(&HELD_BACK)?;
    section.write(REORDER.name, Value::Inline(table.finish()?));
    Ok(Some(Reorder {
        probability,
        delay_ns,
    }))
}

/// Refuses delays that keep too many packets on the way from the queue to the receiver, and from the satellite's sources.
fn in_flight(section: &mut Section<'_, '_>, link: &Link) -> Result<(), Fault> {
    let Some(message) = too_many_on_the_way(link, 0.0) else {
        return Ok(());
    };
    let satellite = section.find(SATELLITE.name).and_then(|entry| entry.table());
    let [link_s, ground_s] = delays_s(link);
    Err(match satellite {
        Some(satellite) if ground_s > link_s => satellite.fault_at(GROUND_DELAY.name, message),
        Some(_) if has_delays(link.satellite.as_ref()) => section.fault_at(SATELLITE.name, message),
        _ => section.fault_at(DELAY.name, message),
    })
}

/// The message for a link with too many packets in flight, `access_delay_s` before it included; none if there are not.
pub(super) fn too_many_on_the_way(link: &Link, access_delay_s: f64) -> Option<String> {
    let rate_bps = match &link.capacity {
        Capacity::Rate(signal) => values::greatest(signal),
        Capacity::Opportunities { .. } => link.nominal_bps as f64,
    };
    let delay_s = access_delay_s + delays_s(link).iter().sum::<f64>();
    let pkts = rate_bps * delay_s / (8.0 * 1500.0);
    (pkts > limits::IN_FLIGHT_PKTS).then(|| {
        format!(
            "{} and {} on the way keep {pkts:.0} packets of 1500B there, more than {:.0}; lower either",
            units::show_real(rate_bps, Kind::Rate),
            units::show_real(delay_s, Kind::Seconds),
            limits::IN_FLIGHT_PKTS
        )
    })
}

/// The longest delay of the link or through its satellite, and that behind a satellite's receiver, s.
fn delays_s(link: &Link) -> [f64; 2] {
    let satellite = link.satellite.as_ref();
    let link_s = match satellite.and_then(|s| s.delays.as_ref()) {
        Some(delays) => {
            let to_satellite_s = values::greatest(&delays.to_satellite_s).max(delays.before_s);
            to_satellite_s + values::greatest(&delays.to_ground_s)
        }
        None => {
            let held_ns = link.reorder.map_or(0, |reorder| reorder.delay_ns);
            values::greatest(&link.delay_s) + held_ns as f64 / 1e9
        }
    };
    [
        link_s,
        satellite.map_or(0.0, |s| s.ground_delay_ns as f64 / 1e9),
    ]
}

/// Whether there is a satellite with delays of its own.
pub(super) fn has_delays(satellite: Option<&Satellite>) -> bool {
    satellite.is_some_and(|satellite| satellite.delays.is_some())
}
