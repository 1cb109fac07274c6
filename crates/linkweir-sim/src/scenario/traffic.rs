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

use linkweir_config::keys::Form;
use linkweir_config::reader::{Entry, Section, Value};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{Application, Class, Flow, Lengths, Link, Session, Sizes, Traffic};
use crate::tcp;

use super::inputs::{Input, Told};
use super::keys::class as queue;
use super::keys::flow::{ACCESS_DELAY, BACK, COUNT, KIND, NAME, STAGGER, START, STOP};
use super::keys::inner::{MAX, MIN, SIZES, WEIGHTS};
use super::keys::kinds::{
    CBR_JITTER, CBR_PACKET, CBR_RATE, GREEDY_BACKLOG, GREEDY_PACKET, ONOFF_LENGTHS, ONOFF_OFF,
    ONOFF_ON, ONOFF_PACKET, ONOFF_RATE, ONOFF_SHAPE, POISSON_PACKET, POISSON_RATE, REPLAY_FILE,
    TCP_ACK, TCP_BYTES, TCP_CC, TCP_DELAYED_ACK, TCP_DELAYED_ACK_TIMEOUT, TCP_ECN, TCP_HEADER,
    TCP_HYSTART, TCP_INITIAL_RTO, TCP_INITIAL_WINDOW, TCP_MAX_RTO, TCP_MIN_RTO, TCP_MSS,
    TCP_PROFILE, TCP_QUICK_ACKS, TCP_TICK, TCP_TIMESTAMPS, TCP_WINDOW, TRANSFERS_CONCURRENT,
    VOICE_HEADER, WEB_CONNECTIONS,
};
use super::keys::sources::Source;
use super::limits;
use super::link::{folder, has_delays, too_many_on_the_way};
use super::measures;
use super::route::{Route, Stop, Ways};

use amount::Files;

const DEFAULT_PACKET_BYTES: u32 = 1500;

/// Reads entry `index` and appends its sources, copies counted, to `flows`; returns their way.
pub(super) fn read<'a>(
    section: &mut Section<'_, '_>,
    (index, duration_ns): (usize, u64),
    ways: &Ways<'a>,
    (inputs, told): (&mut Vec<Input>, &mut Told),
    flows: &mut Vec<Flow>,
) -> Result<Route<'a>, Fault> {
    let kind = section.entry_of(&KIND)?;
    let chosen = KIND.form.read(&kind).map_err(|mut fault| {
        if kind.text() == Ok("udp") {
            fault
                .message
                .push_str("; cbr, poisson and onoff send datagrams as over UDP");
        }
        fault
    })?;
    let source = Source::ALL[chosen];
    let name = section.take_or(&NAME, format!("{}{}", source.name(), index + 1))?;
    if name.is_empty() {
        return Err(section.fault_at(NAME.name, "must not be empty"));
    }
    let mut route = ways.read(section)?;
    let path = &route.there[..];
    let first = &path[0];
    section.write(KIND.name, source.name());
    let mut files = Files {
        folder: &folder(section),
        inputs,
        told,
    };
    let traffic = match source {
        Source::Cbr => Traffic::Cbr {
            rate_bps: section.demand(&CBR_RATE)?,
            jitter: section.take(&CBR_JITTER)?,
            packet: packet(section, CBR_PACKET.name, path)?,
        },
        Source::Poisson => Traffic::Poisson {
            rate_bps: section.demand(&POISSON_RATE)?,
            packet: packet(section, POISSON_PACKET.name, path)?,
        },
        Source::OnOff => on_off(section, path)?,
        Source::Greedy if route.stations.is_some() => {
            let message = "greedy fills one queue, and ways between stations change; write \"tcp\", or \"cbr\" with a rate";
            return Err(section.fault_at(KIND.name, message));
        }
        Source::Greedy => greedy(section, path)?,
        Source::Tcp => Traffic::Tcp(bulk(section, path)?),
        Source::Voice => {
            let voice = voice::read(section)?;
            let bytes = smallest_bytes(&voice);
            accountable(section, VOICE_HEADER.name, bytes, path)?;
            voice
        }
        Source::Replay => {
            let replay = replay::read(section, &mut files)?;
            if let Traffic::Replay { packets, .. } = &replay {
                let sizes = || packets.iter().map(|(_, bytes)| *bytes);
                for bytes in [sizes().min(), sizes().max()].into_iter().flatten() {
                    accountable(section, REPLAY_FILE.name, bytes, path)?;
                }
            }
            replay
        }
        Source::Transfers => {
            let session = transfers::read(section, &mut files)?;
            application(section, session, path)?
        }
        Source::Requests => {
            let session = requests::read(section, &mut files)?;
            application(section, session, path)?
        }
        Source::Web => {
            let session = web::read(section, &mut files)?;
            application(section, session, path)?
        }
        Source::Video => {
            let session = video::read(section, &mut files)?;
            application(section, session, path)?
        }
    };

    let needs_no_way_back = !route.back.is_empty() && sizes_back_bytes(&traffic).is_none();
    if needs_no_way_back && route.stations.is_none() {
        let message = format!(
            "is the way of acknowledgements and requests, which {} has not; leave it out",
            source.name()
        );
        return Err(section.fault_at(BACK.name, message));
    }

    let start_ns = section.take(&START)?;
    let stop_ns = section.take_or(&STOP, duration_ns)?;
    let access_delay_ns = access_delay(section, path, &traffic)?;
    let measures = measures::read(section, &traffic, ways)?;
    let (count, stagger_ns) = copies(section, start_ns, stop_ns, flows.len())?;
    for copy in 0..count {
        flows.push(Flow {
            name: if count == 1 {
                name.clone()
            } else {
                format!("{name}-{}", copy + 1)
            },
            class: first.class_of(copy),
            start_ns: start_ns + copy * stagger_ns,
            stop_ns,
            access_delay_ns,
            traffic: traffic.clone(),
            measures: measures.clone(),
        });
    }
    if needs_no_way_back {
        route.back.clear();
    }
    Ok(route)
}

/// Reads `access_delay`, ns; a satellite with delays of its own has none.
fn access_delay(
    section: &mut Section<'_, '_>,
    path: &[Stop<'_>],
    traffic: &Traffic,
) -> Result<u64, Fault> {
    let own_delays = |stop: &&Stop<'_>| has_delays(stop.link.satellite.as_ref());
    let access_delay_ns = if let Some(Stop { key, .. }) = path.iter().find(own_delays) {
        if let Some(entry) = section.find(ACCESS_DELAY.name) {
            let message = format!("{key}.satellite has delays of its own; leave one out");
            return Err(entry.fault(message));
        }
        section.remark(&format!("access_delay: as {key}.satellite says"));
        0
    } else {
        section.take(&ACCESS_DELAY)?
    };
    // Only TCP's segments are kept on the way to the queue; of other sources each knows its next packet.
    if let Traffic::Tcp(_) | Traffic::Application(_) = traffic {
        if let Some(message) = too_many_on_the_way(path[0].link, access_delay_ns as f64 / 1e9) {
            return Err(section.fault_at(ACCESS_DELAY.name, message));
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
    let count = section.take(&COUNT)?;
    let stagger_ns = section.take(&STAGGER)?;
    let last_start = start_ns.saturating_add(stagger_ns.saturating_mul(count - 1));
    if last_start >= stop_ns {
        let key = if count > 1 && stagger_ns > 0 {
            STAGGER.name
        } else {
            START.name
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
            COUNT.name,
            format!(
                "there would be more than {} flows; use fewer",
                limits::FLOWS
            ),
        ));
    }
    Ok((count, stagger_ns))
}

/// Packet sizes, each of which the links can account.
fn packet(
    section: &mut Section<'_, '_>,
    key: &'static str,
    path: &[Stop<'_>],
) -> Result<Sizes, Fault> {
    let entry = section.find(key);
    let (sizes, written) = match &entry {
        None => (
            Sizes::Fixed(DEFAULT_PACKET_BYTES),
            written_size(DEFAULT_PACKET_BYTES),
        ),
        Some(entry) => match entry.table() {
            None => {
                let bytes = size(entry)?;
                (Sizes::Fixed(bytes), written_size(bytes))
            }
            Some(mut table) => {
                let read = match table.find(SIZES.name) {
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
    accountable(section, key, least, path)?;
    accountable(section, key, most, path)?;
    section.write(key, written);
    Ok(sizes)
}

/// Sizes with weights: all the same unless they are given.
fn mix(table: &mut Section<'_, '_>, sizes: &Entry<'_, '_>) -> Result<(Sizes, Value), Fault> {
    let bytes = sizes
        .list(limits::MIX_SIZES)?
        .iter()
        .map(size)
        .collect::<Result<Vec<u32>, _>>()?;
    let weights = match table.find(WEIGHTS.name) {
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
    let written_sizes = bytes.iter().map(|b| written_size(*b)).collect();
    let written_weights = weights.iter().map(|w| Value::Real(*w)).collect();
    let written = Value::inline([
        (SIZES.name, Value::List(written_sizes)),
        (WEIGHTS.name, Value::List(written_weights)),
    ]);
    Ok((
        Sizes::Mix(bytes.into_iter().zip(weights).collect()),
        written,
    ))
}

/// Sizes from `min` to `max`.
fn between(table: &mut Section<'_, '_>) -> Result<(Sizes, Value), Fault> {
    let min = size(&table.need(MIN.name, "\"64B\"")?)?;
    let max_entry = table.need(MAX.name, "\"1500B\"")?;
    let max = size(&max_entry)?;
    if max < min {
        return Err(max_entry.fault(format!("must not be below min, {min}B")));
    }
    let written = Value::inline([(MIN.name, written_size(min)), (MAX.name, written_size(max))]);
    Ok((Sizes::Uniform(min, max), written))
}

fn size(entry: &Entry<'_, '_>) -> Result<u32, Fault> {
    let bytes = entry.whole(Kind::Size, (1, limits::PACKET_BYTES.into()))?;
    Ok(u32::try_from(bytes).unwrap_or(limits::PACKET_BYTES))
}

fn written_size(bytes: u32) -> Value {
    Value::Whole(bytes.into(), Kind::Size)
}

/// With overhead and mpu of each link, a packet must be at least one byte and shorter than the core's limit.
fn accountable(
    section: &Section<'_, '_>,
    key: &str,
    bytes: u32,
    path: &[Stop<'_>],
) -> Result<(), Fault> {
    for Stop {
        link,
        key: called,
        coded_bytes,
        ..
    } in path
    {
        if let Some(most) = coded_bytes.filter(|most| bytes > *most) {
            let message = format!(
                "makes packets of {bytes}B, more than the {most}B that {called}.satellite.packet codes, or coded of its class; lower it or raise that"
            );
            return Err(section.fault_at(key, message));
        }
        let accounted = on_wire_bytes(bytes, link);
        if !(1..=i64::from(limits::PACKET_BYTES)).contains(&accounted) {
            let message = format!(
                "{bytes}B with {called}.overhead and {called}.mpu counts as {accounted}B; it must be 1B .. {}B",
                limits::PACKET_BYTES
            );
            return Err(section.fault_at(key, message));
        }
    }
    Ok(())
}

/// The size with which the scheduler counts a packet.
pub(super) fn on_wire_bytes(bytes: u32, link: &Link) -> i64 {
    (i64::from(bytes) + i64::from(link.overhead_bytes)).max(link.mpu_bytes.into())
}

fn on_off(section: &mut Section<'_, '_>, path: &[Stop<'_>]) -> Result<Traffic, Fault> {
    let rate_bps = section.demand(&ONOFF_RATE)?;
    let (on_ns, off_ns) = (section.demand(&ONOFF_ON)?, section.demand(&ONOFF_OFF)?);
    let lengths = match section.take(&ONOFF_LENGTHS)? {
        0 => Lengths::Exponential,
        _ => Lengths::Pareto {
            shape: section.take(&ONOFF_SHAPE)?,
        },
    };
    Ok(Traffic::OnOff {
        rate_bps,
        on_ns,
        off_ns,
        lengths,
        packet: packet(section, ONOFF_PACKET.name, path)?,
    })
}

fn greedy(section: &mut Section<'_, '_>, path: &[Stop<'_>]) -> Result<Traffic, Fault> {
    let backlog_pkts = section.take(&GREEDY_BACKLOG)?;
    Ok(Traffic::Greedy {
        backlog_pkts,
        packet: packet(section, GREEDY_PACKET.name, path)?,
    })
}

/// An application, with TCP's keys.
fn application(
    section: &mut Section<'_, '_>,
    session: Session,
    path: &[Stop<'_>],
) -> Result<Traffic, Fault> {
    let mut tcp = tcp_config(section)?;
    tcp.bytes_to_send = Some(0);
    // A write may leave one byte for its last segment.
    accountable(section, TCP_HEADER.name, tcp.header_bytes + 1, path)?;
    accountable(section, TCP_MSS.name, tcp.segment_bytes(), path)?;
    accountable(section, TCP_HEADER.name, tcp.syn_bytes(), path)?;
    Ok(Traffic::Application(Box::new(Application { tcp, session })))
}

/// A transfer that begins with the flow.
fn bulk(section: &mut Section<'_, '_>, path: &[Stop<'_>]) -> Result<tcp::Config, Fault> {
    let mut config = tcp_config(section)?;
    config.bytes_to_send = section.given(&TCP_BYTES)?;
    match &config.bytes_to_send {
        Some(bytes) => section.write(TCP_BYTES.name, TCP_BYTES.form.written(bytes)),
        None => section.remark("bytes: without end"),
    }
    accountable(section, TCP_MSS.name, config.segment_bytes(), path)?;
    accountable(section, TCP_HEADER.name, config.least_segment_bytes(), path)?;
    Ok(config)
}

/// TCP's keys.
fn tcp_config(section: &mut Section<'_, '_>) -> Result<tcp::Config, Fault> {
    let algorithm = match section.take_or(&TCP_CC, TCP_CC.default.0)? {
        0 => tcp::Algorithm::Cubic,
        1 => tcp::Algorithm::Reno,
        2 => tcp::Algorithm::Bbr,
        3 => tcp::Algorithm::NewReno,
        4 => tcp::Algorithm::Prague,
        _ => tcp::Algorithm::Dctcp,
    };
    let profile = match section.take_or(&TCP_PROFILE, TCP_PROFILE.default.0)? {
        0 => tcp::Profile::Linux,
        _ => tcp::Profile::Ns2,
    };
    use tcp::Algorithm::{Cubic, NewReno};
    if profile == tcp::Profile::Ns2 && !matches!(algorithm, Cubic | NewReno) {
        return Err(section.fault_at(
            TCP_CC.name,
            "must be cubic or newreno with profile = \"ns2\"; only the linux profile has the others"
                .to_owned(),
        ));
    }
    let mut config = tcp::Config::new(algorithm, profile);
    config.mss_bytes = section.take_or(&TCP_MSS, config.mss_bytes)?;
    config.header_bytes = section.take_or(&TCP_HEADER, config.header_bytes)?;
    config.ack_bytes = section.take_or(&TCP_ACK, config.ack_bytes)?;
    config.max_window_segments = section.take_or(&TCP_WINDOW, config.max_window_segments)?;
    // Defaults give way to the keys that the user sets.
    let window_segments = config.max_window_segments;
    config.initial_window_segments = section.take_or(
        &TCP_INITIAL_WINDOW,
        config.initial_window_segments.min(window_segments),
    )?;
    if let Some(entry) = section.find(TCP_MAX_RTO.name) {
        config.min_rto_ns = config.min_rto_ns.min(TCP_MAX_RTO.form.read(&entry)?);
    }
    config.min_rto_ns = section.take_or(&TCP_MIN_RTO, config.min_rto_ns)?;
    let max_rto_ns = config.max_rto_ns.max(config.min_rto_ns);
    config.max_rto_ns = section.take_or(&TCP_MAX_RTO, max_rto_ns)?;
    config.initial_rto_ns = section.take_or(&TCP_INITIAL_RTO, config.initial_rto_ns)?;
    config.tick_ns = section.take_or(&TCP_TICK, config.tick_ns)?;
    config.delayed_ack = section.take_or(&TCP_DELAYED_ACK, config.delayed_ack)?;
    config.delayed_ack_ns = section.take_or(&TCP_DELAYED_ACK_TIMEOUT, config.delayed_ack_ns)?;
    config.quick_ack_segments = section.take_or(&TCP_QUICK_ACKS, config.quick_ack_segments)?;
    config.hystart = section.take_or(&TCP_HYSTART, config.hystart)?;
    config.timestamps = section.take_or(&TCP_TIMESTAMPS, config.timestamps)?;
    config.ecn = section.take_or(&TCP_ECN, algorithm.counts_marks())?;
    if !config.ecn && algorithm.counts_marks() {
        return Err(section.fault_at(
            TCP_ECN.name,
            "must be true with cc = \"prague\" or \"dctcp\", which count marks; without ECN choose reno, as Linux does"
                .to_owned(),
        ));
    }
    if config.ecn && profile == tcp::Profile::Ns2 {
        return Err(section.fault_at(
            TCP_ECN.name,
            "must be false with profile = \"ns2\"".to_owned(),
        ));
    }
    if config.initial_window_segments > config.max_window_segments {
        return Err(section.fault_at(
            TCP_INITIAL_WINDOW.name,
            format!("must not exceed window, {}p", config.max_window_segments),
        ));
    }
    if config.max_rto_ns < config.min_rto_ns {
        let least = units::show_whole(config.min_rto_ns, Kind::Time);
        return Err(section.fault_at(
            TCP_MAX_RTO.name,
            format!("must not be below min_rto, {least}"),
        ));
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
        Session::Transfers { .. } => (TRANSFERS_CONCURRENT.name, "concurrent or count"),
        Session::Web { .. } => (WEB_CONNECTIONS.name, "connections or count"),
        Session::Requests { .. } | Session::Video(_) => (COUNT.name, "count"),
    };
    let message = format!(
        "all flows together may have {all} connections at once, more than {}; lower {cure}",
        limits::ALL_CONNECTIONS
    );
    Some((at, key, message))
}

/// Packets that a greedy source keeps waiting in front of the link at which it begins; 0 of other sources.
fn backlog_pkts(flow: &Flow) -> u64 {
    match flow.traffic {
        Traffic::Greedy { backlog_pkts, .. } => u64::from(backlog_pkts),
        _ => 0,
    }
}

/// Checks that the packets which greedy sources keep waiting fit into the queues, and a packet of every source. `begins`
/// says which flows begin at this link.
pub(super) fn fits(
    classes: &[Class],
    flows: &[Flow],
    begins: &dyn Fn(usize) -> bool,
    link: &Link,
    places: &[&Section<'_, '_>],
) -> Result<(), Fault> {
    let mut kept = vec![0_u64; classes.len()];
    for (at, flow) in flows.iter().enumerate() {
        if begins(at) {
            kept[flow.class] += backlog_pkts(flow);
        }
    }
    for ((class, kept), section) in classes.iter().zip(kept).zip(places) {
        if class
            .limit_pkts
            .is_some_and(|limit| kept > u64::from(limit))
        {
            let message = format!("must hold the {kept} packets its greedy flows keep waiting; raise it or lower their backlog");
            return Err(section.fault_at(queue::LIMIT.name, message));
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
            return Err(places[flow.class].fault_at(queue::LIMIT_BYTES.name, message));
        }
    }
    Ok(())
}

/// Refuses TCP without ECN in the classes of L4S packets, which carry ECT(1), and senders that count marks in the others.
pub(super) fn carry_marks(
    l4s: &[bool],
    flows: &[Flow],
    places: &[&Section<'_, '_>],
) -> Result<(), Fault> {
    for flow in flows {
        let Some(tcp) = flow.traffic.tcp() else {
            continue;
        };
        if l4s.get(flow.class) == Some(&true) && !tcp.ecn {
            let message = format!(
                "must be no, as packets of flow {} cannot carry a congestion mark; or write ecn = true in the flow, or give it another class",
                flow.name
            );
            return Err(places[flow.class].fault_at("l4s", message));
        }
        if l4s.get(flow.class) == Some(&false) && tcp.algorithm.counts_marks() {
            let message = format!(
                "must be yes, as flow {} answers each mark a little, and would starve classic flows; or write another cc in the flow",
                flow.name
            );
            return Err(places[flow.class].fault_at("l4s", message));
        }
    }
    Ok(())
}

/// The smallest and the largest packet that a flow over TCP sends back, bytes.
pub(super) fn sizes_back_bytes(traffic: &Traffic) -> Option<(u32, u32)> {
    match traffic {
        Traffic::Tcp(config) => Some(config.sizes_back_bytes(false)),
        Traffic::Application(application) => Some(application.tcp.sizes_back_bytes(true)),
        _ => None,
    }
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
    begins: &dyn Fn(usize) -> bool,
    scheduler: &Section<'_, '_>,
) -> Result<(), Fault> {
    let here = flows.iter().enumerate().filter(|(at, _)| begins(*at));
    let kept: u64 = here.map(|(_, flow)| backlog_pkts(flow)).sum();
    if kept <= limit_pkts {
        return Ok(());
    }
    let message = format!("must hold the {kept} packets that greedy flows keep waiting; raise it or lower their backlog");
    Err(scheduler.fault_at(limit, message))
}
