// SPDX-License-Identifier: BSD-3-Clause
//! The `[[flow]]` tables. The kinds that need more than a few keys have files of their own.

mod amount;
mod capture;
mod replay;
mod requests;
mod segments;
mod transfers;
mod video;
mod voice;
mod web;

use std::collections::BTreeMap;
use std::ops::Range;

use linkweir_config::link::RATES;
use linkweir_config::reader::{nearest, quote, show_number, Entry, Section};
use linkweir_config::units::{self, Kind};
use linkweir_config::values;
use linkweir_config::Fault;

use crate::experiment::{Application, Class, Flow, Lengths, Link, Session, Sizes, Traffic};
use crate::tcp;

use super::inputs::{Input, Told};
use super::limits;
use super::link::{folder, has_delays, too_many_on_the_way};
use super::measures;

use amount::Files;

const KINDS: [&str; 11] = [
    "cbr",
    "poisson",
    "onoff",
    "greedy",
    "tcp",
    "voice",
    "replay",
    "transfers",
    "requests",
    "web",
    "video",
];
const TIMES: (u64, u64) = (0, limits::DURATION_NS);
const DEFAULT_PACKET_BYTES: u32 = 1500;
const WINDOW_PKTS: u32 = 1_000_000;

/// Reads entry `index` and appends its sources, copies counted, to `flows`.
pub(super) fn read(
    section: &mut Section<'_, '_>,
    (index, duration_ns): (usize, u64),
    classes: &BTreeMap<String, Range<usize>>,
    link: &Link,
    (inputs, told): (&mut Vec<Input>, &mut Told),
    flows: &mut Vec<Flow>,
) -> Result<(), Fault> {
    let kind = section.need("kind", "\"cbr\"")?;
    let kind = kind.choice(&KINDS).map_err(|mut fault| {
        if kind.text() == Ok("udp") {
            fault
                .message
                .push_str("; cbr, poisson and onoff send datagrams as over UDP");
        }
        fault
    })?;
    let name = section.text("name", &format!("{}{}", KINDS[kind], index + 1))?;
    if name.is_empty() {
        return Err(section.fault_at("name", "must not be empty"));
    }
    let range = class_of(section, classes)?;
    section.write("kind", quote(KINDS[kind]));
    let mut files = Files {
        folder: &folder(section),
        inputs,
        told,
    };
    let traffic = match KINDS[kind] {
        "cbr" => Traffic::Cbr {
            rate_bps: rate(section)?,
            jitter: section.real("jitter", 0.0, 1.0, 0.0)?,
            packet: packet(section, link)?,
        },
        "poisson" => Traffic::Poisson {
            rate_bps: rate(section)?,
            packet: packet(section, link)?,
        },
        "onoff" => on_off(section, link)?,
        "greedy" => greedy(section, link)?,
        "tcp" => Traffic::Tcp(bulk(section, link)?),
        "voice" => {
            let voice = voice::read(section)?;
            let bytes = smallest_bytes(&voice);
            accountable(section, "header", bytes, link)?;
            voice
        }
        "replay" => {
            let replay = replay::read(section, &mut files)?;
            if let Traffic::Replay { packets, .. } = &replay {
                let sizes = || packets.iter().map(|(_, bytes)| *bytes);
                for bytes in [sizes().min(), sizes().max()].into_iter().flatten() {
                    accountable(section, "file", bytes, link)?;
                }
            }
            replay
        }
        "transfers" => {
            let session = transfers::read(section, &mut files)?;
            application(section, session, link)?
        }
        "requests" => {
            let session = requests::read(section, &mut files)?;
            application(section, session, link)?
        }
        "web" => {
            let session = web::read(section, &mut files)?;
            application(section, session, link)?
        }
        _ => {
            let session = video::read(section, &mut files)?;
            application(section, session, link)?
        }
    };

    let start_ns = section.whole("start", Kind::Time, TIMES, 0)?;
    let stop_ns = section.whole("stop", Kind::Time, TIMES, duration_ns)?;
    let access_delay_ns = access_delay(section, link, &traffic)?;
    let measures = measures::read(section, &traffic)?;
    let (count, stagger_ns) = copies(section, start_ns, stop_ns, flows.len())?;
    for copy in 0..count {
        flows.push(Flow {
            name: if count == 1 {
                name.clone()
            } else {
                format!("{name}-{}", copy + 1)
            },
            class: range.start + (copy % range.len() as u64) as usize,
            start_ns: start_ns + copy * stagger_ns,
            stop_ns,
            access_delay_ns,
            traffic: traffic.clone(),
            measures: measures.clone(),
        });
    }
    Ok(())
}

/// Reads `access_delay`, ns; a satellite with delays of its own has none.
fn access_delay(
    section: &mut Section<'_, '_>,
    link: &Link,
    traffic: &Traffic,
) -> Result<u64, Fault> {
    let access_delay_ns = if has_delays(link.satellite.as_ref()) {
        if let Some(entry) = section.find("access_delay") {
            return Err(entry.fault("link.satellite has delays of its own; leave one out"));
        }
        section.remark("access_delay: as link.satellite says");
        0
    } else {
        section.whole(
            "access_delay",
            Kind::Time,
            (0, (limits::DELAY_S * 1e9) as u64),
            0,
        )?
    };
    // Only TCP's segments are kept on the way to the queue; of other sources each knows its next packet.
    if let Traffic::Tcp(_) | Traffic::Application(_) = traffic {
        if let Some(message) = too_many_on_the_way(link, access_delay_ns as f64 / 1e9) {
            return Err(section.fault_at("access_delay", message));
        }
    }
    Ok(access_delay_ns)
}

/// Reads `count` and `stagger`, ns, of which the last copy must start before it stops; there are `before` flows already.
fn copies(
    section: &mut Section<'_, '_>,
    start_ns: u64,
    stop_ns: u64,
    before: usize,
) -> Result<(u64, u64), Fault> {
    let count = section.number("count", (1, limits::FLOWS), 1)?;
    let stagger_ns = section.whole("stagger", Kind::Time, TIMES, 0)?;
    let last_start = start_ns.saturating_add(stagger_ns.saturating_mul(count - 1));
    if last_start >= stop_ns {
        let key = if count > 1 && stagger_ns > 0 {
            "stagger"
        } else {
            "start"
        };
        let message = format!(
            "the last source would start at {}, not before its stop at {}; start earlier or stop later",
            units::show_whole(last_start, Kind::Time),
            units::show_whole(stop_ns, Kind::Time)
        );
        return Err(section.fault_at(key, message));
    }
    if before as u64 + count > limits::FLOWS {
        return Err(section.fault_at(
            "count",
            format!(
                "there would be more than {} flows; use fewer",
                limits::FLOWS
            ),
        ));
    }
    Ok((count, stagger_ns))
}

fn class_of(
    section: &mut Section<'_, '_>,
    classes: &BTreeMap<String, Range<usize>>,
) -> Result<Range<usize>, Fault> {
    let entry = section.need(
        "class",
        &quote(classes.keys().next().map_or("", String::as_str)),
    )?;
    let wanted = entry.text()?;
    section.write("class", quote(wanted));
    classes.get(wanted).cloned().ok_or_else(|| {
        const LISTED: usize = 20;
        let names: Vec<&str> = classes.keys().map(String::as_str).collect();
        let cure = match nearest(wanted, &names) {
            Some(near) => format!("did you mean {}?", quote(near)),
            None if names.len() > LISTED => {
                format!("there are {}, {} and so on", names[0], names[1])
            }
            None => format!("there are {}", names.join(", ")),
        };
        entry.fault(format!("no class has this name; {cure}"))
    })
}

fn rate(section: &mut Section<'_, '_>) -> Result<crate::experiment::Signal, Fault> {
    let entry = section.need("rate", Kind::Rate.example())?;
    let (signal, shown) = values::read(&entry, RATES)?;
    section.write("rate", shown);
    Ok(signal)
}

/// Packet sizes, each of which the link can account.
fn packet(section: &mut Section<'_, '_>, link: &Link) -> Result<Sizes, Fault> {
    let entry = section.find("packet");
    let (sizes, shown) = match &entry {
        None => (
            Sizes::Fixed(DEFAULT_PACKET_BYTES),
            show_size(DEFAULT_PACKET_BYTES),
        ),
        Some(entry) => match entry.table() {
            None => {
                let bytes = size(entry)?;
                (Sizes::Fixed(bytes), show_size(bytes))
            }
            Some(mut table) => {
                let read = match table.find("sizes") {
                    Some(list) => mix(&mut table, &list)?,
                    None => between(&mut table)?,
                };
                table.finish()?;
                read
            }
        },
    };
    let (least, most) = match &sizes {
        Sizes::Fixed(bytes) => (*bytes, *bytes),
        Sizes::Uniform(min, max) => (*min, *max),
        Sizes::Mix(mix) => mix.iter().fold((u32::MAX, 0), |(least, most), (b, _)| {
            (least.min(*b), most.max(*b))
        }),
    };
    accountable(section, "packet", least, link)?;
    accountable(section, "packet", most, link)?;
    section.write("packet", shown);
    Ok(sizes)
}

/// Sizes with weights: all the same unless they are given.
fn mix(table: &mut Section<'_, '_>, sizes: &Entry<'_, '_>) -> Result<(Sizes, String), Fault> {
    let bytes = sizes
        .list(limits::MIX_SIZES)?
        .iter()
        .map(size)
        .collect::<Result<Vec<u32>, _>>()?;
    let weights = match table.find("weights") {
        Some(weights) => {
            let values = weights.list(limits::MIX_SIZES)?;
            if values.len() != bytes.len() {
                return Err(
                    weights.fault(format!("must hold {} weights, one per size", bytes.len()))
                );
            }
            values
                .iter()
                .map(|w| w.real(1e-9, 1e9))
                .collect::<Result<Vec<f64>, _>>()?
        }
        None => vec![1.0; bytes.len()],
    };
    let shown_sizes: Vec<String> = bytes.iter().map(|b| show_size(*b)).collect();
    let shown_weights: Vec<String> = weights.iter().map(|w| show_number(*w)).collect();
    let shown = format!(
        "{{ sizes = [{}], weights = [{}] }}",
        shown_sizes.join(", "),
        shown_weights.join(", ")
    );
    Ok((Sizes::Mix(bytes.into_iter().zip(weights).collect()), shown))
}

/// Sizes from `min` to `max`.
fn between(table: &mut Section<'_, '_>) -> Result<(Sizes, String), Fault> {
    let min = size(&table.need("min", "\"64B\"")?)?;
    let max_entry = table.need("max", "\"1500B\"")?;
    let max = size(&max_entry)?;
    if max < min {
        return Err(max_entry.fault(format!("must not be below min, {min}B")));
    }
    let shown = format!("{{ min = {}, max = {} }}", show_size(min), show_size(max));
    Ok((Sizes::Uniform(min, max), shown))
}

fn size(entry: &Entry<'_, '_>) -> Result<u32, Fault> {
    let bytes = entry.whole(Kind::Size, (1, limits::PACKET_BYTES.into()))?;
    Ok(u32::try_from(bytes).unwrap_or(limits::PACKET_BYTES))
}

fn show_size(bytes: u32) -> String {
    quote(&units::show_whole(bytes.into(), Kind::Size))
}

/// With overhead and mpu, a packet must be at least one byte and shorter than the core's limit.
fn accountable(section: &Section<'_, '_>, key: &str, bytes: u32, link: &Link) -> Result<(), Fault> {
    if let Some(satellite) = &link.satellite {
        let most = satellite.harq.packet_bits / 8;
        if bytes > most {
            let message = format!(
                "makes packets of {bytes}B, more than the {most}B that link.satellite.packet codes; lower it or raise that"
            );
            return Err(section.fault_at(key, message));
        }
    }
    let accounted = on_wire_bytes(bytes, link);
    if (1..=i64::from(limits::PACKET_BYTES)).contains(&accounted) {
        return Ok(());
    }
    let message = format!(
        "{bytes}B with link.overhead and link.mpu counts as {accounted}B; it must be 1B .. {}B",
        limits::PACKET_BYTES
    );
    Err(section.fault_at(key, message))
}

/// The size with which the scheduler counts a packet.
fn on_wire_bytes(bytes: u32, link: &Link) -> i64 {
    (i64::from(bytes) + i64::from(link.overhead_bytes)).max(link.mpu_bytes.into())
}

fn on_off(section: &mut Section<'_, '_>, link: &Link) -> Result<Traffic, Fault> {
    let entry = section.need("rate", Kind::Rate.example())?;
    let rate_bps = entry.quantity(Kind::Rate, 1.0, limits::RATE_BPS as f64)?;
    section.write("rate", quote(&units::show_real(rate_bps, Kind::Rate)));
    let mut length = |key: &'static str, least: u64| -> Result<u64, Fault> {
        let ns = section
            .need(key, Kind::Time.example())?
            .whole(Kind::Time, (least, limits::DURATION_NS))?;
        section.write(key, quote(&units::show_whole(ns, Kind::Time)));
        Ok(ns)
    };
    let (on_ns, off_ns) = (length("on", 1000)?, length("off", 1000)?);
    let lengths = match section.choice("lengths", &["exponential", "pareto"], 0)? {
        0 => Lengths::Exponential,
        _ => Lengths::Pareto {
            shape: section.real("shape", 1.01, 100.0, 1.5)?,
        },
    };
    Ok(Traffic::OnOff {
        rate_bps,
        on_ns,
        off_ns,
        lengths,
        packet: packet(section, link)?,
    })
}

fn greedy(section: &mut Section<'_, '_>, link: &Link) -> Result<Traffic, Fault> {
    let most = u32::try_from(limits::QUEUED_PKTS).unwrap_or(u32::MAX);
    let backlog_pkts = section.small("backlog", Kind::Packets, (1, most), 20)?;
    Ok(Traffic::Greedy {
        backlog_pkts,
        packet: packet(section, link)?,
    })
}

/// An application, with TCP's keys.
fn application(
    section: &mut Section<'_, '_>,
    session: Session,
    link: &Link,
) -> Result<Traffic, Fault> {
    let mut tcp = tcp_config(section)?;
    tcp.bytes_to_send = Some(0);
    // A write may leave one byte for its last segment.
    accountable(section, "header", tcp.header_bytes + 1, link)?;
    accountable(section, "mss", tcp.segment_bytes(), link)?;
    accountable(section, "header", tcp.syn_bytes(), link)?;
    Ok(Traffic::Application(Box::new(Application { tcp, session })))
}

/// A transfer that begins with the flow.
fn bulk(section: &mut Section<'_, '_>, link: &Link) -> Result<tcp::Config, Fault> {
    let mut config = tcp_config(section)?;
    config.bytes_to_send = match section.find("bytes") {
        Some(entry) => {
            let bytes = entry.whole(Kind::Size, (1, 1_000_000_000_000_000))?;
            section.write("bytes", quote(&units::show_whole(bytes, Kind::Size)));
            Some(bytes)
        }
        None => {
            section.remark("bytes: without end");
            None
        }
    };
    accountable(section, "mss", config.segment_bytes(), link)?;
    accountable(section, "header", config.least_segment_bytes(), link)?;
    Ok(config)
}

/// TCP's keys.
fn tcp_config(section: &mut Section<'_, '_>) -> Result<tcp::Config, Fault> {
    let algorithm = match section.choice("cc", &["cubic", "reno", "bbr", "newreno"], 0)? {
        0 => tcp::Algorithm::Cubic,
        1 => tcp::Algorithm::Reno,
        2 => tcp::Algorithm::Bbr,
        _ => tcp::Algorithm::NewReno,
    };
    let profile = match section.choice("profile", &["linux", "ns2"], 0)? {
        0 => tcp::Profile::Linux,
        _ => tcp::Profile::Ns2,
    };
    use tcp::Algorithm::{Bbr, Reno};
    if profile == tcp::Profile::Ns2 && matches!(algorithm, Reno | Bbr) {
        return Err(section.fault_at(
            "cc",
            "must be cubic or newreno with profile = \"ns2\"; the linux profile has reno and bbr"
                .to_owned(),
        ));
    }
    let mut config = tcp::Config::new(algorithm, profile);
    const RTO: (u64, u64) = (1_000_000, 3_600_000_000_000);

    config.mss_bytes = section.small("mss", Kind::Size, (1, 65_535), config.mss_bytes)?;
    config.header_bytes = section.small("header", Kind::Size, (0, 1000), config.header_bytes)?;
    config.ack_bytes = section.small("ack", Kind::Size, (1, 1000), config.ack_bytes)?;
    config.max_window_segments = section.small(
        "window",
        Kind::Packets,
        (1, WINDOW_PKTS),
        config.max_window_segments,
    )?;
    // Defaults give way to the keys that the user sets.
    let window_segments = config.max_window_segments;
    config.initial_window_segments = section.small(
        "initial_window",
        Kind::Packets,
        (1, WINDOW_PKTS),
        config.initial_window_segments.min(window_segments),
    )?;
    if let Some(entry) = section.find("max_rto") {
        config.min_rto_ns = config.min_rto_ns.min(entry.whole(Kind::Time, RTO)?);
    }
    config.min_rto_ns = section.whole("min_rto", Kind::Time, RTO, config.min_rto_ns)?;
    let max_rto_ns = config.max_rto_ns.max(config.min_rto_ns);
    config.max_rto_ns = section.whole("max_rto", Kind::Time, RTO, max_rto_ns)?;
    config.initial_rto_ns = section.whole("initial_rto", Kind::Time, RTO, config.initial_rto_ns)?;
    config.tick_ns = section.whole("tick", Kind::Time, (1, 10_000_000_000), config.tick_ns)?;
    config.delayed_ack = section.flag("delayed_ack", config.delayed_ack)?;
    config.delayed_ack_ns = section.whole(
        "delayed_ack_timeout",
        Kind::Time,
        (1, 10_000_000_000),
        config.delayed_ack_ns,
    )?;
    config.quick_ack_segments = section.small(
        "quick_acks",
        Kind::Packets,
        (0, WINDOW_PKTS),
        config.quick_ack_segments,
    )?;
    config.hystart = section.flag("hystart", config.hystart)?;
    config.timestamps = section.flag("timestamps", config.timestamps)?;
    config.ecn = section.flag("ecn", config.ecn)?;
    if config.ecn && profile == tcp::Profile::Ns2 {
        return Err(section.fault_at("ecn", "must be false with profile = \"ns2\"".to_owned()));
    }
    if config.initial_window_segments > config.max_window_segments {
        return Err(section.fault_at(
            "initial_window",
            format!("must not exceed window, {}p", config.max_window_segments),
        ));
    }
    if config.max_rto_ns < config.min_rto_ns {
        let least = units::show_whole(config.min_rto_ns, Kind::Time);
        return Err(section.fault_at("max_rto", format!("must not be below min_rto, {least}")));
    }
    Ok(config)
}

/// The first flow with whose connections there are too many, the key that says how many it has, and what is wrong.
pub(super) fn too_many_connections(flows: &[Flow]) -> Option<(usize, &'static str, String)> {
    let mut all = 0_u64;
    let mut exceeds = None;
    for (at, flow) in flows.iter().enumerate() {
        if let Traffic::Application(application) = &flow.traffic {
            all += u64::from(application.connections());
            if all > limits::ALL_CONNECTIONS && exceeds.is_none() {
                exceeds = Some((at, &application.session));
            }
        }
    }
    let (at, session) = exceeds?;
    let (key, cure) = match session {
        Session::Transfers { .. } => ("concurrent", "concurrent or count"),
        Session::Web { .. } => ("connections", "connections or count"),
        Session::Requests { .. } | Session::Video(_) => ("count", "count"),
    };
    let message = format!(
        "all flows together may have {all} connections at once, more than {}; lower {cure}",
        limits::ALL_CONNECTIONS
    );
    Some((at, key, message))
}

/// Checks that the packets which greedy sources keep waiting fit into the queues, and a packet of every source.
pub(super) fn fits(
    classes: &[Class],
    flows: &[Flow],
    link: &Link,
    places: &[&Section<'_, '_>],
) -> Result<(), Fault> {
    let mut kept = vec![0_u64; classes.len()];
    for flow in flows {
        if let Traffic::Greedy { backlog_pkts, .. } = flow.traffic {
            kept[flow.class] += u64::from(backlog_pkts);
        }
    }
    for ((class, kept), section) in classes.iter().zip(kept).zip(places) {
        if class
            .limit_pkts
            .is_some_and(|limit| kept > u64::from(limit))
        {
            let message = format!("must hold the {kept} packets its greedy flows keep waiting; raise it or lower their backlog");
            return Err(section.fault_at("limit", message));
        }
    }
    for flow in flows {
        let least = on_wire_bytes(smallest_bytes(&flow.traffic), link);
        let held = classes[flow.class].limit_bytes;
        if held.is_some_and(|bytes| i64::try_from(bytes).is_ok_and(|bytes| bytes < least)) {
            let message = format!(
                "must hold a packet of flow {}, {least}B on the wire; raise it or send smaller packets",
                flow.name
            );
            return Err(places[flow.class].fault_at("limit_bytes", message));
        }
    }
    Ok(())
}

/// The smallest packet a source sends; of TCP the first segment with data.
fn smallest_bytes(traffic: &Traffic) -> u32 {
    match traffic {
        Traffic::Cbr { packet, .. }
        | Traffic::Poisson { packet, .. }
        | Traffic::OnOff { packet, .. }
        | Traffic::Greedy { packet, .. } => match packet {
            Sizes::Fixed(bytes) | Sizes::Uniform(bytes, _) => *bytes,
            Sizes::Mix(parts) => parts.iter().map(|part| part.0).min().unwrap_or(0),
        },
        Traffic::Voice { packet_bytes, .. } => *packet_bytes,
        Traffic::Replay { packets, .. } => packets.iter().map(|(_, b)| *b).min().unwrap_or(0),
        Traffic::Application(application) => application.tcp.segment_bytes(),
        Traffic::Tcp(config) => {
            let bytes = config.bytes_to_send.unwrap_or(u64::MAX);
            config.header_bytes + u64::from(config.mss_bytes).min(bytes) as u32
        }
    }
}

/// The same for a limit that all queues share.
pub(super) fn fits_all(
    (limit, limit_pkts): (&str, u64),
    flows: &[Flow],
    scheduler: &Section<'_, '_>,
) -> Result<(), Fault> {
    let kept: u64 = flows
        .iter()
        .map(|flow| match flow.traffic {
            Traffic::Greedy { backlog_pkts, .. } => u64::from(backlog_pkts),
            _ => 0,
        })
        .sum();
    if kept <= limit_pkts {
        return Ok(());
    }
    let message = format!("must hold the {kept} packets that greedy flows keep waiting; raise it or lower their backlog");
    Err(scheduler.fault_at(limit, message))
}
