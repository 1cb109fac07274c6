// SPDX-License-Identifier: BSD-3-Clause
//! Checks an experiment, and makes its flows and the delay lines they share.

use crate::experiment::{users, Capacity, Experiment, Sizes, Traffic};
use crate::random::Random;
use crate::tcp;
use crate::traffic::{Greedy, Replay, Source};

use super::access::{Access, Behind};
use super::application::Application;
use super::bottleneck::{wire_bytes, Codepoint};
use super::connection::Connection;
use super::flow::{Flow, Kind};
use super::line::DelayLine;
use super::packet::Packet;
use super::station::{Role, StationPlan};
use super::{beam, bond, codes, event};

/// The flows of an experiment and the lines of its connections.
pub(super) struct Flows {
    pub(super) flows: Vec<Flow>,
    /// From TCP senders to their queues.
    pub(super) access: Vec<DelayLine<Packet>>,
    /// From TCP receivers to their senders, with the flow.
    pub(super) acks: Vec<DelayLine<(u32, tcp::Ack)>>,
}

impl Flows {
    /// Of an experiment; `station` says whose flows they are, where it is a link of a network.
    pub(super) fn new(experiment: &Experiment, station: Option<&StationPlan>) -> Flows {
        let link = &experiment.link;
        let delays = link.satellite.as_ref().and_then(|s| s.delays.as_ref());
        let behind = delays.map(|delays| (Behind::new(delays), delays.shift_ns));
        let users = shared_users(experiment);
        let mut access_delays = Vec::new();
        let mut ack_delays = Vec::new();
        let mut flows = Vec::with_capacity(experiment.flows.len());
        for (index, flow) in experiment.flows.iter().enumerate() {
            let mut random = match station {
                None => Random::new(experiment.seed, index as u64 + 1),
                Some(plan) => Random::new(plan.seed, u64::from(plan.entries[index].flow) + 1),
            };
            let return_delay_ns = match station {
                None => Some(link.return_delay_ns),
                Some(plan) => plan.return_delay_ns(index),
            };
            let stop_ns = flow.stop_ns.min(experiment.duration_ns);
            let access = match &behind {
                Some((behind, shift_ns)) => {
                    let place = users.as_ref().map_or(index, |users| users[flow.class]);
                    Access::Varying(behind.lag(shift_ns.saturating_mul(place as u64)))
                }
                None => Access::Fixed(flow.access_delay_ns),
            };
            let fixed_ns = access.fixed_ns();
            let role = station.map(|plan| plan.entries[index].role);
            let kind = match &flow.traffic {
                _ if role.is_some_and(|role| role != Role::Source) => match role {
                    Some(Role::Crossing { application }) => Kind::Crossing { application },
                    _ => Kind::Free,
                },
                Traffic::Greedy {
                    backlog_pkts,
                    packet,
                } => Kind::Greedy {
                    source: Greedy::new(*backlog_pkts, packet, random),
                    listed: false,
                },
                Traffic::Tcp(config) => {
                    let back_ns = fixed_ns.zip(return_delay_ns).map(|(a, b)| a + b);
                    let config = crate::tcp::Config {
                        random: random.whole(),
                        ..config.clone()
                    };
                    Kind::Tcp(Box::new(Connection::new(
                        &config,
                        (fixed_ns != Some(0)).then(|| line_of(&mut access_delays, fixed_ns)),
                        line_of(&mut ack_delays, back_ns),
                    )))
                }
                Traffic::Replay { packets, period_ns } => {
                    Kind::Replay(Replay::new(packets, *period_ns, flow.start_ns, stop_ns))
                }
                Traffic::Application(application) => {
                    let back_ns = fixed_ns.zip(return_delay_ns).map(|(a, b)| a + b);
                    let lines = (
                        (fixed_ns != Some(0)).then(|| line_of(&mut access_delays, fixed_ns)),
                        line_of(&mut ack_delays, back_ns),
                    );
                    let times = (flow.start_ns, stop_ns);
                    let made = Application::new(application, times, lines, random);
                    Kind::Application(Box::new(made))
                }
                open => Kind::Open(
                    Source::new(open, flow.start_ns, stop_ns, random)
                        .expect("the other kinds are above"),
                ),
            };
            let number = match (station, &flow.traffic) {
                (Some(plan), _) => plan.entries[index].number,
                (None, Traffic::Application(_)) => experiment.flows.len() as u32,
                (None, _) => index as u32,
            };
            flows.push(Flow {
                class: flow.class,
                number,
                stop_ns,
                access,
                kind,
            });
        }
        Flows {
            flows,
            access: access_delays.iter().map(|_| DelayLine::new()).collect(),
            acks: ack_delays.iter().map(|_| DelayLine::new()).collect(),
        }
    }
}

/// The user of each class, if any class names one.
fn shared_users(experiment: &Experiment) -> Option<Vec<usize>> {
    let classes = &experiment.classes;
    let any = classes.iter().any(|class| class.user.is_some());
    any.then(|| users(classes))
}

/// The line with this delay: flows of the same delay share one; each flow whose delay varies has its own.
fn line_of(delays: &mut Vec<Option<u64>>, delay_ns: Option<u64>) -> u32 {
    let shared = delay_ns.and_then(|_| delays.iter().position(|d| *d == delay_ns));
    shared.unwrap_or_else(|| {
        delays.push(delay_ns);
        delays.len() - 1
    }) as u32
}

/// Checks the assumptions of the engine.
pub(super) fn validate(experiment: &Experiment) -> Result<(), String> {
    let refuse = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
    refuse(
        experiment.duration_ns > 0,
        "the duration must be longer than 0",
    )?;
    refuse(
        experiment.interval_ns > 0,
        "the interval must be longer than 0",
    )?;
    refuse(
        experiment.warmup_ns < experiment.duration_ns,
        "the warm-up must be shorter than the duration",
    )?;
    refuse(
        experiment.link.ring > 0,
        "the ring must hold at least one packet",
    )?;
    refuse(!experiment.classes.is_empty(), "there must be a class")?;
    refuse(
        experiment.link.satellite.is_none() || experiment.link.ring == 1,
        "a satellite's device pulls one packet at a time",
    )?;
    if let Some(across) = &experiment.scheduler.across {
        refuse(
            experiment.scheduler.brought.is_none(),
            "inside users there must be a policy of the core",
        )?;
        let nests = linkweir_core::policy(&across.policy).is_none_or(|info| info.nests());
        refuse(nests, "the policy across users must be one that nests")?;
    }
    codes::validate(experiment)?;
    if let Some(beam) = &experiment.link.beam {
        beam::validate(beam, experiment)?;
    }
    if let Some(bond) = &experiment.link.bond {
        bond::validate(bond, experiment)?;
    }
    // An event holds the number of its flow in INDEX's bits.
    refuse(
        experiment.flows.len() <= event::INDEX as usize,
        "there are too many flows",
    )?;
    let connections = experiment.flows.iter().map(|flow| match &flow.traffic {
        Traffic::Application(application) => u64::from(application.connections()),
        _ => 0,
    });
    // Those of a page may not be closed yet when the next one opens its own.
    refuse(
        connections.sum::<u64>() <= u64::from(Packet::PLACES / 4),
        "applications may have too many connections",
    )?;
    if let Capacity::Opportunities { at_ns, bytes } = &experiment.link.capacity {
        let ordered = at_ns.windows(2).all(|pair| pair[0] <= pair[1]);
        refuse(
            at_ns.last().is_some_and(|last| *last > 0) && ordered,
            "opportunities must be in order and end after 0",
        )?;
        refuse(*bytes > 0, "an opportunity must carry at least one byte")?;
    }
    for flow in &experiment.flows {
        if flow.class >= experiment.classes.len() {
            return Err(format!(
                "flow {} belongs to class {}, which does not exist",
                flow.name, flow.class
            ));
        }
        let (least, most) = sizes_bytes(&flow.traffic);
        // Both ends of the range: `mpu` and overhead lengthen the shortest packet, and a negative overhead may leave it 0 bytes.
        let carried = wire_bytes(&experiment.link, most) < linkweir_core::MAX_PACKET_BYTES;
        if least == 0 || least > most || !carried || wire_bytes(&experiment.link, least) == 0 {
            return Err(format!(
                "flow {}: packets must have 1 .. {} bytes, the link's overhead included",
                flow.name,
                linkweir_core::MAX_PACKET_BYTES - 1
            ));
        }
    }
    Ok(())
}

/// What is known of the ECN codepoints of each flow's packets before they come.
pub(super) fn codepoints(experiment: &Experiment, station: Option<&StationPlan>) -> Vec<Codepoint> {
    let classes = experiment.scheduler.l4s();
    let flows = experiment.flows.iter().enumerate();
    let known = flows.map(|(index, flow)| {
        let tcp = flow.traffic.tcp();
        if experiment.classes[flow.class].sorts_by_ecn() {
            let in_network = station.map(|plan| plan.entries[index].scalable);
            let scalable = in_network.unwrap_or_else(|| flow.traffic.is_scalable());
            return Codepoint::Sorted { scalable };
        }
        if tcp.is_none() && classes.get(flow.class) == Some(&true) {
            Codepoint::Ect1
        } else {
            Codepoint::Own
        }
    });
    known.collect()
}

/// The least and the most bytes of a source's packets, without the link's overhead.
pub(super) fn sizes_bytes(traffic: &Traffic) -> (u32, u32) {
    let sizes = match traffic {
        Traffic::Cbr { packet, .. }
        | Traffic::Poisson { packet, .. }
        | Traffic::OnOff { packet, .. }
        | Traffic::Greedy { packet, .. } => packet.clone(),
        Traffic::Tcp(config) => {
            Sizes::Uniform(config.least_segment_bytes(), config.segment_bytes())
        }
        Traffic::Voice { packet_bytes, .. } => Sizes::Fixed(*packet_bytes),
        Traffic::Replay { packets, .. } => {
            let sizes = || packets.iter().map(|(_, bytes)| *bytes);
            Sizes::Uniform(sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
        }
        Traffic::Application(application) => {
            let tcp = &application.tcp;
            let most = tcp.segment_bytes().max(tcp.syn_bytes());
            Sizes::Uniform(tcp.header_bytes + u32::from(tcp.header_bytes == 0), most)
        }
    };
    match &sizes {
        Sizes::Fixed(bytes) => (*bytes, *bytes),
        Sizes::Uniform(least, most) => (*least, *most),
        Sizes::Mix(parts) => {
            let sizes = || parts.iter().map(|part| part.0);
            (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
        }
    }
}
