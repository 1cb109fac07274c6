// SPDX-License-Identifier: BSD-3-Clause
//! The capacity of a link: `rate` (a value or one over time), `trace` or `command`, and what the scheduler is given of it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use linkweir_config::keys::gateway::{
    ANTICIPATE, CEILING, COMMAND, DELAY, FEEDBACK_OF, FLOOR, FOLLOW, NOMINAL, RATE, STALE, TRACE,
};
use linkweir_config::keys::Form;
use linkweir_config::link::{self, Given, Source};
use linkweir_config::reader::{Entry, Section};
use linkweir_config::signal::{self, Signal};
use linkweir_config::trace::{self, Trace};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use super::paths::{folder, path};
use linkweir_plane::setup::{Bounds, Capacity};

/// Slowest and fastest link, bit/s.
const LEAST_BPS: u64 = NOMINAL.form.min;
const MOST_BPS: u64 = NOMINAL.form.max;
/// Time over which the mean of a signal without end is taken, ns.
const MEAN_NS: u64 = 3_600_000_000_000;
/// Least `stale` with `feedback`, ns: three reports of an idle link.
const FEEDBACK_STALE_NS: u64 = 3_000_000_000;
/// The first capacity with `feedback` where none is given, bit/s.
const FIRST_BPS: u64 = 10_000_000;
/// The least capacity with `feedback` where none is given, bit/s.
const FEEDBACK_FLOOR_BPS: u64 = 64_000;
/// Most words of a command.
const WORDS: usize = 64;

/// Reads the keys of a capacity; none when none of `rate`, `trace` and `command` is given. What a trace was taken for is
/// added to `told`.
pub(super) fn read(
    section: &mut Section<'_, '_>,
    told: &mut Vec<String>,
) -> Result<Option<Capacity>, Fault> {
    let offered = offered(section, told)?;
    let command = match section.find(COMMAND.name) {
        Some(entry) => Some((command(&entry)?, entry)),
        None => None,
    };
    let nominal = section.find(NOMINAL.name);
    let follow = section.find(FOLLOW.name);
    let stale = section.find(STALE.name);
    let floor = section.find(FLOOR.name);
    let feedback = asked(section.find(FEEDBACK_OF.name))?;
    let unknown = Signal::Constant(FIRST_BPS as f64);
    let given = offered.is_some();
    let offered = offered.or_else(|| {
        let alone = feedback.is_some() && command.is_none();
        alone.then_some((signal::Capacity::Rate(unknown), None))
    });
    let Some((offered, trace)) = offered else {
        if let Some((_, entry)) = command {
            return Err(
                entry.fault("needs a rate to begin with; write rate = \"20Mbit\" next to it")
            );
        }
        return match nominal.or(follow).or(stale).or(floor).or(feedback) {
            Some(entry) => {
                Err(entry.fault("needs a capacity; write rate, trace or feedback next to it"))
            }
            None => Ok(None),
        };
    };
    capacity_alone(section, trace.as_ref())?;
    let reporter = (command.as_ref().map(|(_, entry)| entry), feedback.as_ref());
    reported_once(reporter, &offered)?;
    // With feedback, floor alone is the least capacity; nothing expires.
    let least_bps = match (&feedback, &stale, &floor) {
        (Some(_), None, Some(floor)) => Some(FLOOR.form.read(floor)?),
        (Some(_), None, None) => Some(FEEDBACK_FLOOR_BPS.min(mean_bps(&offered))),
        _ => None,
    };
    let floor = floor.filter(|_| feedback.is_none() || stale.is_some());
    let follow = follow.map_or(Ok(FOLLOW.default.0), |entry| FOLLOW.form.read(&entry))?;
    let (stale_ns, floor_bps) = read_stale(stale.as_ref(), floor.as_ref())?;
    let feedback = match feedback {
        Some(entry) => {
            let floor_bps = least_bps.unwrap_or(floor_bps);
            Some(read_bounds(&entry, (&offered, given), stale_ns, floor_bps)?)
        }
        None => None,
    };
    let offered = match feedback {
        Some(bounds) if !given => first(bounds),
        _ => offered,
    };
    let nominal_bps = match nominal {
        Some(entry) => NOMINAL.form.read(&entry)?,
        None => mean_bps(&offered).clamp(LEAST_BPS, MOST_BPS),
    };
    Ok(Some(Capacity {
        offered,
        nominal_bps,
        follow,
        command: command.map(|(words, _)| words),
        stale_ns,
        floor_bps,
        feedback,
    }))
}

/// Names the capacity of a table that no peer uses. A key that only says more of a capacity is refused, as it always is without one.
pub(super) fn unused(section: &Section<'_, '_>, told: &mut Vec<String>) -> Result<(), Fault> {
    const MESSAGE: &str = "is used by no peer: each [[peer.path]] has its own; move it there";
    let given = |key: &&str| section.stray(key).is_some();
    let whole = [RATE.name, TRACE.name, COMMAND.name, FEEDBACK_OF.name];
    if let Some(key) = whole.into_iter().find(given) {
        told.push(format!("link.{key} {MESSAGE}"));
        return Ok(());
    }
    let parts = [NOMINAL.name, FOLLOW.name, STALE.name, FLOOR.name];
    match parts.into_iter().find_map(|key| section.stray(key)) {
        Some(entry) => Err(entry.fault(MESSAGE)),
        None => Ok(()),
    }
}

/// Refuses a trace with columns that only the emulator takes.
fn capacity_alone(section: &Section<'_, '_>, trace: Option<&Trace>) -> Result<(), Fault> {
    let Some(trace) = trace.filter(|t| t.delay_s.is_some() || t.loss.is_some()) else {
        return Ok(());
    };
    let column = if trace.delay_s.is_some() {
        "delay_s"
    } else {
        "loss"
    };
    let message = format!("has a column {column}, which is for `linkweir-gateway emulate`; the gateway takes capacity alone");
    Err(section.fault_at(TRACE.name, message))
}

/// Refuses two sources of reports, and one where the configured rate changes by itself.
fn reported_once(
    (command, feedback): (Option<&Entry<'_, '_>>, Option<&Entry<'_, '_>>),
    offered: &signal::Capacity,
) -> Result<(), Fault> {
    if let (Some(_), Some(entry)) = (command, feedback) {
        return Err(
            entry.fault("and command exclude each other: both report the capacity; leave one out")
        );
    }
    let constant = matches!(offered, signal::Capacity::Rate(Signal::Constant(_)));
    match command.or(feedback) {
        Some(entry) if !constant => {
            Err(entry.fault("needs a rate that does not change by itself; leave one out"))
        }
        _ => Ok(()),
    }
}

/// Reads when a reported capacity expires, ns, and the rate that holds from then on, bit/s.
fn read_stale(
    stale: Option<&Entry<'_, '_>>,
    floor: Option<&Entry<'_, '_>>,
) -> Result<(Option<u64>, u64), Fault> {
    let stale_ns = stale.map(|entry| STALE.form.read(entry)).transpose()?;
    let floor_bps = match (floor, stale) {
        (Some(floor), Some(_)) => FLOOR.form.read(floor)?,
        (Some(floor), None) => {
            return Err(floor.fault("needs stale, the time after which it holds"))
        }
        (None, Some(stale)) => {
            return Err(stale.fault("needs floor, the rate that holds from then on"))
        }
        (None, None) => LEAST_BPS,
    };
    Ok((stale_ns, floor_bps))
}

/// `feedback`, if it is asked for; false is as if it was not written.
fn asked<'a, 's>(entry: Option<Entry<'a, 's>>) -> Result<Option<Entry<'a, 's>>, Fault> {
    let Some(entry) = entry else {
        return Ok(None);
    };
    let is_asked = match entry.flag() {
        Ok(flag) => flag,
        Err(_) if entry.table().is_some() => true,
        Err(_) => return Err(entry.fault("must be true, or a table like { ceiling = \"40Mbit\" }")),
    };
    Ok(is_asked.then_some(entry))
}

/// The capacity to begin with where none is given.
fn first(bounds: Bounds) -> signal::Capacity {
    let bps = FIRST_BPS.clamp(bounds.floor_bps, bounds.ceiling_bps);
    signal::Capacity::Rate(Signal::Constant(bps as f64))
}

/// Reads `feedback`, a table or true, next to a capacity that may be `given`; `floor_bps` is the least capacity.
fn read_bounds(
    entry: &Entry<'_, '_>,
    (offered, given): (&signal::Capacity, bool),
    stale_ns: Option<u64>,
    floor_bps: u64,
) -> Result<Bounds, Fault> {
    if stale_ns.is_some_and(|ns| ns < FEEDBACK_STALE_NS) {
        return Err(entry.fault(format!(
            "needs stale = \"{}\" at least, because an idle link is reported once a second",
            units::show_whole(FEEDBACK_STALE_NS, Kind::Time)
        )));
    }
    let mut bounds = Bounds {
        floor_bps,
        ceiling_bps: CEILING.default.0.max(floor_bps),
        delay_ns: DELAY.default.0,
        anticipate: ANTICIPATE.default.0,
    };
    let begin_bps = mean_bps(offered);
    if given {
        bounds.ceiling_bps = bounds.ceiling_bps.max(begin_bps);
    }
    let place = match entry.table() {
        Some(mut table) => {
            let ceiling = table.find(CEILING.name);
            if let Some(ceiling) = &ceiling {
                bounds.ceiling_bps = ceiling.whole(Kind::Rate, (floor_bps, CEILING.form.max))?;
            }
            bounds.delay_ns = table.take(&DELAY)?;
            bounds.anticipate = table.take(&ANTICIPATE)?;
            table.finish()?;
            ceiling
        }
        None => None,
    };
    if given && !(bounds.floor_bps..=bounds.ceiling_bps).contains(&begin_bps) {
        return Err(place.as_ref().unwrap_or(entry).fault(format!(
            "rate is the first capacity and must lie between floor and ceiling, {} .. {}",
            units::show_whole(bounds.floor_bps, Kind::Rate),
            units::show_whole(bounds.ceiling_bps, Kind::Rate)
        )));
    }
    Ok(bounds)
}

/// A rate or a trace, with the trace's other columns.
pub(super) type Offered = (signal::Capacity, Option<Trace>);

/// Reads `rate` or `trace`, if either is given. What a trace was taken for is added to `told`, a line each, and what of it
/// is doubtful.
pub(super) fn offered(
    section: &mut Section<'_, '_>,
    told: &mut Vec<String>,
) -> Result<Option<Offered>, Fault> {
    let least = units::show_whole(LEAST_BPS, Kind::Rate);
    let too_low = format!("must be at least {least} at some time");
    let (entry, hints) = match Given::find(section).read(LEAST_BPS as f64, &too_low)? {
        Source::None => return Ok(None),
        Source::Rate(signal, ..) => return Ok(Some((signal::Capacity::Rate(signal), None))),
        Source::Trace(entry, hints) => (entry, hints),
    };
    let path = path(&entry)?;
    let trace = trace::parse(&link::content(&entry, &path)?, &path, &hints)?;
    let lines = trace.told(&path);
    told.extend(
        lines
            .into_iter()
            .filter(|line| !told.contains(line))
            .collect::<Vec<_>>(),
    );
    if mean_bps(&trace.capacity) < LEAST_BPS {
        let path = path.display();
        let message = format!("{path}: the mean capacity must be at least {least}");
        return Err(entry.fault(message));
    }
    Ok(Some((trace.capacity.clone(), Some(trace))))
}

/// The mean over a round, or over an hour, bit/s: of a rate the nearest whole number, of opportunities the next below.
pub(super) fn mean_bps(capacity: &signal::Capacity) -> u64 {
    let mean_bps = link::mean_bps(capacity, MEAN_NS);
    match capacity {
        signal::Capacity::Rate(_) => (mean_bps + 0.5) as u64,
        signal::Capacity::Opportunities { .. } => mean_bps as u64,
    }
}

fn command(entry: &Entry<'_, '_>) -> Result<Vec<String>, Fault> {
    let mut words = entry
        .list(WORDS)?
        .iter()
        .map(|word| word.text().map(str::to_string))
        .collect::<Result<Vec<_>, _>>()?;
    if words[0].contains('/') {
        words[0] = program(entry, &words[0])?;
    }
    Ok(words)
}

/// A program next to the configuration, or one at an absolute path: the whole path, because it is started elsewhere.
fn program(entry: &Entry<'_, '_>, word: &str) -> Result<String, Fault> {
    let program = folder(entry.source()).join(word);
    let shown = program.display();
    let meta = program.metadata().ok().filter(Metadata::is_file);
    let Some(meta) = meta else {
        return Err(entry.fault(format!("{shown} is not a file; name a program")));
    };
    if meta.mode() & 0o111 == 0 {
        return Err(entry.fault(format!("{shown} may not be executed; run chmod +x")));
    }
    let whole = std::path::absolute(&program).unwrap_or(program);
    let whole = whole.into_os_string().into_string();
    whole.map_err(|_| entry.fault("must be at a path of UTF-8"))
}

/// A capacity that a program or a person sets while the gateway runs, bit/s: a rate with its unit.
///
/// # Errors
/// What is wrong and how to write it.
pub fn capacity_bps(text: &str) -> Result<u64, String> {
    let whole = units::parse(text, Kind::Rate)?.whole();
    match whole {
        Some((0, false)) | None => Err(range()), // 0.4bit is not an outage
        Some((bps, _)) => reported_bps(bps),
    }
}

/// The same capacity if it is one that a link can have, bit/s.
///
/// # Errors
/// Which it can have.
pub fn reported_bps(bps: u64) -> Result<u64, String> {
    let carries = (LEAST_BPS..=MOST_BPS).contains(&bps);
    (bps == 0 || carries).then_some(bps).ok_or_else(range)
}

fn range() -> String {
    format!(
        "must be {}, which is an outage, or {} .. {}",
        units::show_whole(0, Kind::Rate),
        units::show_whole(LEAST_BPS, Kind::Rate),
        units::show_whole(MOST_BPS, Kind::Rate)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_have_units() {
        assert_eq!(capacity_bps("18Mbit"), Ok(18_000_000));
        assert_eq!(capacity_bps("0bit"), Ok(0));
        assert_eq!(capacity_bps("1kbit"), Ok(1000));
        let range = Err("must be 0bit, which is an outage, or 1kbit .. 400Gbit".to_string());
        assert_eq!(capacity_bps("999bit"), range);
        assert_eq!(capacity_bps("500Gbit"), range);
        assert_eq!(capacity_bps("-1Mbit"), range);
        assert!(capacity_bps("18").unwrap_err().contains("needs a unit"));
        let fault = capacity_bps("abc").unwrap_err();
        assert!(fault.starts_with("is not a number"), "{fault}");
    }
}
