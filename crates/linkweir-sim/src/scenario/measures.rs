// SPDX-License-Identifier: BSD-3-Clause
//! Keys that ask for measurements: of a flow, and of all packets.

use linkweir_config::keys::Form;
use linkweir_config::reader::{quote, Entry, Section, Value};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use linkweir_core::Distribution;

use crate::experiment::{Flow, Measures, Playout, Traffic, CALL_INTERVAL_NS};

use super::keys::flow::{DELAYS, PLAYOUT};
use super::keys::top::{LOG, LOG_ROWS};
use super::limits;
use super::route::Ways;

/// Lengths of a play-out buffer, ns.
const BUFFERS_NS: (u64, u64) = (1_000_000, 10_000_000_000);
/// The buffer of flows of kind voice that name none.
const VOICE_NS: u64 = 60_000_000;
/// Most buffers of a flow.
const BUFFERS: usize = 8;
const ADAPTIVE: &str = "adaptive";
/// Rows of the log of packets, of which each takes about 10 bytes on the disk.
const DEFAULT_LOG_ROWS: u64 = 100_000_000;

/// Reads `log` and `log_rows`: the most rows of the log of packets, if there is to be one.
pub(super) fn log(top: &mut Section<'_, '_>) -> Result<Option<u64>, Fault> {
    match top.take(&LOG)? {
        0 => match top.find(LOG_ROWS.name) {
            Some(entry) => {
                LOG_ROWS.form.read(&entry)?;
                Err(entry.fault("needs log = \"packets\"; add it or leave this out"))
            }
            None => Ok(None),
        },
        _ => top.take_or(&LOG_ROWS, DEFAULT_LOG_ROWS).map(Some),
    }
}

/// The first flow with which the measurements that flows ask for take too much, the key that asks, and what is wrong.
/// Totals count from the warm-up to the end.
pub(super) fn too_large(
    flows: &[Flow],
    (warmup_ns, duration_ns): (u64, u64),
) -> Option<(usize, &'static str, String)> {
    too_many_delays(flows).or_else(|| too_many_intervals(flows, (warmup_ns, duration_ns)))
}

/// Each flow with `delays` has a histogram of queueing delays, and one of one-way delays in the table.
fn too_many_delays(flows: &[Flow]) -> Option<(usize, &'static str, String)> {
    let each_bytes = 2 * Distribution::MOST_BYTES;
    let most = limits::DELAY_BYTES / each_bytes;
    let asking = (0..).zip(flows).filter(|(_, flow)| flow.measures.delays);
    let at = asking.clone().nth(usize::try_from(most).ok()?)?.0;
    let count = asking.count() as u64;
    let message = format!(
        "histograms of {count} flows may take {} of memory, more than {}; ask for those of at most {most} flows",
        in_memory(count * each_bytes),
        in_memory(limits::DELAY_BYTES)
    );
    Some((at, DELAYS.name, message))
}

/// Each buffer of a flow gives a row for each interval in which the flow sends.
fn too_many_intervals(
    flows: &[Flow],
    (warmup_ns, duration_ns): (u64, u64),
) -> Option<(usize, &'static str, String)> {
    let most = ((duration_ns - warmup_ns) / CALL_INTERVAL_NS).max(1);
    let rows = |flow: &Flow| {
        let counted_ns = flow
            .stop_ns
            .min(duration_ns)
            .saturating_sub(flow.start_ns.max(warmup_ns));
        // A flow that begins within an interval may end within one more.
        let intervals = (counted_ns / CALL_INTERVAL_NS + 2).min(most);
        intervals * flow.measures.playout.len() as u64
    };
    let mut all = 0_u64;
    let at = flows.iter().position(|flow| {
        all = all.saturating_add(rows(flow));
        all > limits::VOICE_ROWS
    })?;
    let all: u64 = flows.iter().map(rows).fold(0, u64::saturating_add);
    let message = format!(
        "the table voice may have {all} rows, one each {} for each buffer of each flow, more than {}; \
         use fewer flows or buffers, or a shorter duration",
        units::show_whole(CALL_INTERVAL_NS, Kind::Time),
        limits::VOICE_ROWS
    );
    Some((at, PLAYOUT.name, message))
}

/// Bytes as people read them.
fn in_memory(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// Reads `delays` and `playout`.
pub(super) fn read(
    section: &mut Section<'_, '_>,
    traffic: &Traffic,
    ways: &Ways<'_>,
) -> Result<Measures, Fault> {
    Ok(Measures {
        delays: section.take(&DELAYS)?,
        playout: playout(section, traffic, ways)?,
    })
}

/// Reads `playout`: a buffer, or a list of them. TCP has none, as its receivers wait for what is late. A greedy source fills a
/// queue itself; the ends of its flow see no packet enter a network.
fn playout(
    section: &mut Section<'_, '_>,
    traffic: &Traffic,
    ways: &Ways<'_>,
) -> Result<Vec<Playout>, Fault> {
    let Some(entry) = section.find(PLAYOUT.name) else {
        if let Traffic::Voice { .. } = traffic {
            let name = units::show_whole(VOICE_NS, Kind::Time);
            let buffers = vec![Playout {
                name,
                buffer_ns: Some(VOICE_NS),
            }];
            section.write(PLAYOUT.name, written(&buffers));
            return Ok(buffers);
        }
        section.remark("playout: none");
        return Ok(Vec::new());
    };
    if let Traffic::Tcp(_) | Traffic::Application(_) = traffic {
        return Err(
            entry.fault("not over TCP, whose receivers wait for what is late; leave it out")
        );
    }
    if let (Traffic::Greedy { .. }, Ways::Network(_)) = (traffic, ways) {
        return Err(entry.fault(
            "is for one [link] if the source is greedy; leave it out, or write kind = \"cbr\" with a rate",
        ));
    }
    let buffers = if entry.is_list() {
        let entries = entry.list(BUFFERS)?;
        entries.iter().map(buffer).collect::<Result<Vec<_>, _>>()?
    } else {
        vec![buffer(&entry)?]
    };
    for (index, one) in buffers.iter().enumerate() {
        if buffers[..index].contains(one) {
            return Err(entry.fault(format!("names {} twice; leave one out", quote(&one.name))));
        }
    }
    section.write(PLAYOUT.name, written(&buffers));
    Ok(buffers)
}

fn written(buffers: &[Playout]) -> Value {
    let each = |buffer: &Playout| match buffer.buffer_ns {
        Some(ns) => Value::Whole(ns, Kind::Time),
        None => ADAPTIVE.into(),
    };
    Value::List(buffers.iter().map(each).collect())
}

fn buffer(entry: &Entry<'_, '_>) -> Result<Playout, Fault> {
    if entry.text() == Ok(ADAPTIVE) {
        return Ok(Playout {
            name: ADAPTIVE.to_owned(),
            buffer_ns: None,
        });
    }
    let buffer_ns = entry.whole(Kind::Time, BUFFERS_NS).map_err(|mut fault| {
        let word = entry
            .text()
            .is_ok_and(|text| text.starts_with(char::is_alphabetic));
        if word {
            fault.message.push_str(", or \"adaptive\"");
        }
        fault
    })?;
    Ok(Playout {
        name: units::show_whole(buffer_ns, Kind::Time),
        buffer_ns: Some(buffer_ns),
    })
}
