// SPDX-License-Identifier: BSD-3-Clause
//! Measurements packet by packet that only some runs ask for. Without them a run has no [`Watch`], and each packet costs
//! a comparison at each step of its way.

use linkweir_core::Distribution;

use crate::experiment::{self, Experiment, Traffic};
use crate::table::Sink;

use super::column::TableOf;
use super::log::{Logged, Noted, PacketLog};
use super::playout::{Call, Fate, Receiver, VOICE};
use super::seen::Seen;

/// What is measured of the packets of all flows.
#[derive(Debug)]
pub(super) struct Watch {
    flows: Vec<Watched>,
    voice: TableOf<Receiver, ()>,
    log: Option<PacketLog>,
    /// In a network: steps for its log. Where the caller drives the engine: steps for the caller.
    noted: Option<Vec<Noted>>,
}

/// What is measured of one flow.
#[derive(Debug)]
struct Watched {
    queueing_ns: Option<Box<Distribution>>,
    call: Option<Box<Call>>,
    /// Number of the next packet; none if packets have numbers of their own.
    next: Option<u64>,
    /// In a network: its packets are created in the queue, as it is greedy.
    creates: bool,
}

impl Watched {
    fn new(flow: &experiment::Flow, experiment: &Experiment) -> Watched {
        let class = &experiment.classes[flow.class].name;
        let call = Call::new(flow, class, experiment.warmup_ns, experiment.duration_ns);
        Watched {
            queueing_ns: flow.measures.delays.then(Box::default),
            call: call.map(Box::new),
            next: match flow.traffic {
                Traffic::Cbr { .. }
                | Traffic::Poisson { .. }
                | Traffic::OnOff { .. }
                | Traffic::Voice { .. }
                | Traffic::Replay { .. }
                | Traffic::Greedy { .. } => Some(0),
                Traffic::Tcp(_) | Traffic::Application(_) => None,
            },
            creates: false,
        }
    }
}

impl Watch {
    /// What the experiment asks for, if anything.
    pub(super) fn new(experiment: &Experiment) -> Option<Box<Watch>> {
        let flows = experiment.flows.iter();
        let asked = |flow: &experiment::Flow| flow.measures != experiment::Measures::default();
        let logged = |flow: &experiment::Flow| Logged {
            names: (
                flow.name.clone(),
                experiment.classes[flow.class].name.clone(),
            ),
            has_connections: matches!(flow.traffic, Traffic::Application(_)),
        };
        let log = experiment
            .log_rows
            .map(|rows| PacketLog::new(flows.clone().map(logged).collect(), rows));
        (log.is_some() || flows.clone().any(asked)).then(|| {
            Box::new(Watch {
                flows: flows.map(|flow| Watched::new(flow, experiment)).collect(),
                voice: TableOf::new("voice", VOICE),
                log,
                noted: None,
            })
        })
    }

    /// Notes all steps, and numbers the packets that are not TCP's.
    pub(super) fn noting(experiment: &Experiment) -> Box<Watch> {
        let flows = experiment.flows.iter();
        Box::new(Watch {
            flows: flows.map(|flow| Watched::new(flow, experiment)).collect(),
            voice: TableOf::new("voice", VOICE),
            log: None,
            noted: Some(Vec::new()),
        })
    }

    /// The steps since these were last taken out.
    pub(super) fn noted(&mut self) -> &mut Vec<Noted> {
        self.noted.get_or_insert_default()
    }

    /// In a network: the log is written elsewhere, and only packets of entries that have their source at the link are numbered
    /// there. The first entries are those of flows' ends.
    pub(super) fn leave_to_network(&mut self, ends: usize, has_source: &[bool]) {
        self.noted = self.log.take().map(|_| Vec::new());
        for (entry, (flow, has_source)) in self.flows.iter_mut().zip(has_source).enumerate() {
            if !has_source {
                flow.next = None;
            }
            flow.creates = *has_source && entry >= ends;
        }
    }

    /// In a network: a packet of a source enters its way.
    #[cold]
    pub(super) fn entered(&mut self, now_ns: u64, packet: &Seen) {
        self.note(now_ns, (packet.created_ns, "created", ""), packet);
        if let Some(call) = &mut self.flows[packet.flow as usize].call {
            call.created(packet.created_ns);
        }
    }

    /// In a network: a packet of a flow was dropped or lost somewhere.
    #[cold]
    pub(super) fn learned(&mut self, packet: &Seen) {
        self.ended(packet, Fate::Lost);
    }

    /// The number of the next packet of a flow.
    #[cold]
    pub(super) fn number(&mut self, flow: u32) -> u64 {
        let Some(next) = &mut self.flows[flow as usize].next else {
            return 0;
        };
        *next += 1;
        *next - 1
    }

    #[cold]
    pub(super) fn arrived(&mut self, now_ns: u64, packet: &Seen) {
        if let Some(log) = &mut self.log {
            log.write(packet.created_ns, "created", "", packet);
            log.write(now_ns, "enqueued", "", packet);
        }
        if self.flows[packet.flow as usize].creates {
            self.note(now_ns, (packet.created_ns, "created", ""), packet);
        }
        self.note(now_ns, (now_ns, "enqueued", ""), packet);
        if let Some(call) = &mut self.flows[packet.flow as usize].call {
            call.created(packet.created_ns);
        }
    }

    #[cold]
    pub(super) fn sent(&mut self, now_ns: u64, packet: &Seen, sojourn_ns: u64) {
        if let Some(log) = &mut self.log {
            log.write(now_ns, "sent", "", packet);
        }
        self.note(now_ns, (now_ns, "sent", ""), packet);
        if let Some(queueing_ns) = &mut self.flows[packet.flow as usize].queueing_ns {
            queueing_ns.record(sojourn_ns);
        }
    }

    /// A packet was dropped or lost, for this reason.
    #[cold]
    pub(super) fn gone(&mut self, now_ns: u64, packet: &Seen, reason: &'static str) {
        if let Some(log) = &mut self.log {
            log.write(now_ns, "dropped", reason, packet);
        }
        self.note(now_ns, (now_ns, "dropped", reason), packet);
        self.ended(packet, Fate::Lost);
    }

    #[cold]
    pub(super) fn delivered(&mut self, now_ns: u64, packet: &Seen) {
        if let Some(log) = &mut self.log {
            log.write(now_ns, "delivered", "", packet);
        }
        self.note(now_ns, (now_ns, "delivered", ""), packet);
        self.ended(packet, Fate::Received(now_ns - packet.created_ns));
    }

    /// In a network: a step for its log, if there is one.
    fn note(
        &mut self,
        at_ns: u64,
        (t_ns, event, reason): (u64, &'static str, &'static str),
        packet: &Seen,
    ) {
        if let Some(noted) = &mut self.noted {
            noted.push(Noted {
                at_ns,
                t_ns,
                event,
                reason,
                packet: *packet,
            });
        }
    }

    /// In a network: the steps since this was last asked, and whether more are wanted.
    pub(super) fn take_noted(&mut self, more: bool) -> Vec<Noted> {
        let noted = self.noted.take().unwrap_or_default();
        self.noted = more.then(Vec::new);
        noted
    }

    fn ended(&mut self, packet: &Seen, fate: Fate) {
        let Watch { flows, voice, .. } = self;
        if let Some(call) = &mut flows[packet.flow as usize].call {
            call.ended(packet.number, fate, &mut |receiver| {
                voice.add(receiver, &())
            });
        }
    }

    /// Distributions count from now on.
    pub(super) fn begin_totals(&mut self) {
        let all = self.flows.iter_mut();
        for queueing_ns in all.filter_map(|flow| flow.queueing_ns.as_mut()) {
            queueing_ns.reset();
        }
    }

    /// Queueing delays of a flow, where they are asked for.
    pub(super) fn queueing_ns(&self, flow: usize) -> Option<&Distribution> {
        self.flows[flow].queueing_ns.as_deref()
    }

    /// Hands full chunks of rows out.
    pub(super) fn flush_full(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        if let Some(log) = &mut self.log {
            log.flush_full(sink)?;
        }
        self.voice.flush_full(sink)
    }

    /// When the first row of the log was left out, if any was.
    pub(super) fn log_cut_ns(&self) -> Option<u64> {
        self.log.as_ref().and_then(PacketLog::cut_ns)
    }

    /// Ends all calls and hands out all rows.
    pub(super) fn finish(&mut self, now_ns: u64, sink: &mut dyn Sink) -> Result<(), String> {
        let Watch {
            flows, voice, log, ..
        } = self;
        if let Some(log) = log {
            log.flush(sink)?;
        }
        for call in flows.iter_mut().filter_map(|flow| flow.call.as_mut()) {
            call.finish(now_ns, &mut |receiver| voice.add(receiver, &()));
            voice.flush_full(sink)?;
        }
        voice.flush(sink)
    }
}
