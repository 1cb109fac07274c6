// SPDX-License-Identifier: BSD-3-Clause
//! Throughput that other programs recorded as JSON: intervals of iperf3 (`iperf3 --json`) and the history of a Starlink
//! dish (`get_history` of its gRPC interface, as grpcurl prints it).
//!
//! iperf3: what one interval carried is its `bytes` over the time from the end of the interval before it. `start`,
//! `seconds` and `bits_per_second` are not used: after omitted intervals (`--omit`) iperf3 3.12 counts them twice in the
//! first one that is kept. Omitted intervals are left out.
//!
//! Starlink: one sample per second in a ring buffer. `current` counts all samples since the dish started, so the oldest
//! one is at `current` modulo the length; before the first wrap only the first `current` are valid (notes in
//! sparky8512/starlink-grpc-tools).

use serde::Deserialize;

use crate::fault::{shorten, Fault};
use crate::limits;

use super::file::Reader;
use super::format::Format;

/// Columns of an iperf3 file, the first where none is named.
const IPERF3: [&str; 2] = ["sum", "sum_bidir_reverse"];
/// Columns of a Starlink file, the first where none is named.
const STARLINK: [&str; 2] = ["downlinkThroughputBps", "uplinkThroughputBps"];
const NS_PER_S: f64 = 1e9;

#[derive(Deserialize)]
struct Iperf3 {
    #[serde(default)]
    intervals: Vec<Interval>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Option<Sum>,
    sum_bidir_reverse: Option<Sum>,
}

#[derive(Deserialize)]
struct Sum {
    /// Seconds from the start of the test.
    end: f64,
    bytes: u64,
    #[serde(default)]
    omitted: bool,
}

#[derive(Deserialize)]
struct Starlink {
    #[serde(rename = "dishGetHistory")]
    history: History,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    current: Count,
    #[serde(default)]
    downlink_throughput_bps: Vec<f64>,
    #[serde(default)]
    uplink_throughput_bps: Vec<f64>,
}

/// A 64-bit number, which JSON of protocol buffers writes as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Count {
    Number(u64),
    Text(String),
}

/// Rates over time: (start in ns, bit/s), the first start 0, and the end of the last, ns.
pub(super) struct Recording {
    pub(super) points: Vec<(u64, f64)>,
    pub(super) end_ns: u64,
    pub(super) column: &'static str,
}

/// The program that wrote this text, if it is JSON.
pub(super) fn recognise(reader: &Reader, text: &str) -> Option<Result<Format, Fault>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    Some(if text.contains("\"dishGetHistory\"") {
        Ok(Format::Starlink)
    } else if text.contains("\"intervals\"") {
        Ok(Format::Iperf3)
    } else if text.contains("\"event\"") {
        Err(reader.whole_fault(
            "looks like iperf3 --json-stream, which is not read; record with iperf3 --json",
        ))
    } else {
        Err(reader.whole_fault(
            "is JSON, but neither of iperf3 (intervals) nor of Starlink (dishGetHistory)",
        ))
    })
}

/// Reads the file of a program.
pub(super) fn read(
    reader: &Reader,
    text: &str,
    format: Format,
    column: Option<&str>,
) -> Result<Recording, Fault> {
    let columns = if format == Format::Starlink {
        STARLINK
    } else {
        IPERF3
    };
    let column = match column {
        None => columns[0],
        Some(wanted) => *columns
            .iter()
            .find(|name| **name == wanted)
            .ok_or_else(|| {
                reader.whole_fault(format!(
                    "has no column {}; a file of {} has {}",
                    shorten(wanted),
                    format.name(),
                    columns.join(", ")
                ))
            })?,
    };
    if format == Format::Starlink {
        starlink(reader, text, column)
    } else {
        iperf3(reader, text, column)
    }
}

fn json<'t, T: Deserialize<'t>>(reader: &Reader, text: &'t str, program: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        let message = format!("is not complete JSON of {program}: {error}");
        Fault::in_file(
            reader.path.clone(),
            Some(error.line()).filter(|line| *line > 0),
            message,
        )
    })
}

fn iperf3(reader: &Reader, text: &str, column: &'static str) -> Result<Recording, Fault> {
    let file: Iperf3 = json(reader, text, "iperf3")?;
    if let Some(error) = file.error {
        return Err(reader.whole_fault(format!("iperf3 says it failed: {}", shorten(&error))));
    }
    let mut points = Vec::new();
    let mut end_ns = 0;
    for (i, interval) in file.intervals.iter().enumerate() {
        let place = format!("intervals[{i}].{column}");
        let sum = if column == IPERF3[0] {
            &interval.sum
        } else {
            &interval.sum_bidir_reverse
        };
        let sum = sum.as_ref().ok_or_else(|| {
            reader.whole_fault(format!("{place} is missing: choose another trace_column"))
        })?;
        if sum.omitted {
            continue;
        }
        let until_ns = (sum.end * NS_PER_S + 0.5) as u64;
        if !(0.0..=limits::DURATION_NS as f64 / NS_PER_S).contains(&sum.end)
            || until_ns < end_ns
            || (until_ns == end_ns && sum.bytes > 0)
        {
            let before = end_ns as f64 / NS_PER_S;
            return Err(reader.whole_fault(format!(
                "{place}.end = {}: must be seconds after the interval before, {before}",
                sum.end
            )));
        }
        if until_ns > end_ns {
            let span_s = (until_ns - end_ns) as f64 / NS_PER_S;
            points.push((
                end_ns,
                rate(reader, &place, 8.0 * sum.bytes as f64 / span_s)?,
            ));
            end_ns = until_ns;
        }
    }
    recording(reader, points, end_ns, column)
}

fn starlink(reader: &Reader, text: &str, column: &'static str) -> Result<Recording, Fault> {
    let Starlink { history } = json(reader, text, "Starlink")?;
    let samples = if column == STARLINK[0] {
        history.downlink_throughput_bps
    } else {
        history.uplink_throughput_bps
    };
    let current = match &history.current {
        Count::Number(count) => Some(*count),
        Count::Text(text) => text.parse().ok(),
    };
    let current: u64 = current.ok_or_else(|| {
        reader.whole_fault("dishGetHistory.current must be the number of samples so far")
    })?;
    let len = samples.len();
    let (oldest, valid) = match usize::try_from(current) {
        Ok(current) if current < len => (0, current),
        _ => ((current % (len as u64).max(1)) as usize, len),
    };
    let second_ns = NS_PER_S as u64;
    let points = (0..valid)
        .map(|i| {
            let at = (oldest + i) % len;
            let place = format!("dishGetHistory.{column}[{at}]");
            Ok((i as u64 * second_ns, rate(reader, &place, samples[at])?))
        })
        .collect::<Result<Vec<_>, Fault>>()?;
    recording(reader, points, valid as u64 * second_ns, column)
}

/// A rate that was recorded, bit/s; less than 1 is none.
fn rate(reader: &Reader, place: &str, bps: f64) -> Result<f64, Fault> {
    if !(0.0..=limits::RATE_BPS as f64).contains(&bps) {
        return Err(reader.whole_fault(format!("{place}: {bps} bit/s is not within 0 .. 400e9")));
    }
    Ok(if bps < 1.0 { 0.0 } else { bps })
}

fn recording(
    reader: &Reader,
    points: Vec<(u64, f64)>,
    end_ns: u64,
    column: &'static str,
) -> Result<Recording, Fault> {
    if points.is_empty() {
        return Err(reader.whole_fault(format!("holds no values of {column}")));
    }
    Ok(Recording {
        points,
        end_ns,
        column,
    })
}
