// SPDX-License-Identifier: BSD-3-Clause
//! A gateway's link to a peer, a link below it that nobody controls, and the peer: in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use linkweir_config::signal::{Capacity as Offered, Signal};
use linkweir_core::{policy, Limit};
use linkweir_plane::echoes::Echoes;
use linkweir_plane::feedback::{Feedback, Message, Reporter, Sent, MESSAGE_BYTES};
use linkweir_plane::link::{Link, Next};
use linkweir_plane::setup::{Bounds, Capacity, Class, LinkSetup, Scheduler, Uses, Wire};
use linkweir_sim::tcp::{Ack, Algorithm, Config, Profile, Receiver, Segment, Sender};
use rand_pcg::rand_core::SeedableRng;
use rand_pcg::Pcg64;

use crate::autorate::{Autorate, Rates, ACHIEVED_NS, PROBE_NS};
use crate::before;
use crate::trace::{between, Trace, MS, S};

/// Bytes that the tunnel adds to a packet.
const OVERHEAD_BYTES: u32 = 60;
/// Voice: a packet of so many bytes every so many ns.
const EF_BYTES: u32 = 200;
const EF_NS: u64 = 10 * MS;
/// Packets that may wait in the class of the rest, and in the queue below.
const REST_PKTS: u32 = 200;
const BELOW_PKTS: usize = 100;
const FLOWS: usize = 4;
/// A probe that a reflector echoes, bytes on the link.
const PROBE_BYTES: u32 = 58;
/// How often the gateway looks whether a mark is due while nothing else happens, ns.
const TURN_NS: u64 = MS / 2;
/// Packets of the constant load, bytes.
const LOAD_BYTES: u32 = 1400;
/// The link back carries so much, bit/s.
const BACK_BPS: u64 = 100_000_000;
/// By how much the clock of the far end is ahead, ns.
const AHEAD_NS: u64 = 77 * S;
const WIRE: Wire = Wire {
    overhead_bytes: OVERHEAD_BYTES as i64,
    mpu_bytes: 0,
};

/// Who says how fast the gateway sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The rule for this project's feedback.
    Feedback { anticipate: bool },
    /// The same where no far end reports, but echoes probes.
    Echoes,
    /// The rule before that.
    Before,
    /// A model of cake-autorate's rule.
    Autorate,
    /// A rule that knows the capacity one report late.
    Oracle,
    /// Nobody: packets wait in the link's own queue.
    Fifo,
}

/// Which version the far end has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    Today,
    Before,
}

/// What is sent besides voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing.
    None,
    /// So much, bit/s.
    Constant(u64),
    /// Four downloads by CUBIC.
    Cubic,
}

#[derive(Clone, Copy, Debug)]
enum Pkt {
    Ef(u64),
    Load,
    Tcp(usize, Segment),
    Mark(u64),
    /// A probe of cake-autorate: its number, and when it was sent.
    Probe(u64, u64),
}

#[derive(Clone, Copy, Debug)]
enum What {
    Ef,
    Load,
    Serve,
    Below,
    Arrives,
    Ack(usize, Ack),
    Back(Message),
    Sender(usize),
    Receiver(usize),
    Told(f64),
    Turn,
    Report,
    Echo(u64),
    /// A probe of cake-autorate: to be sent, and answered with how long it took there.
    Probe(u64),
    Answer(u64, u64),
    Achieved(u64),
}

struct Event(u64, u64, What);

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Event) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// What a run gives.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Each voice packet: when it was sent, and how long it took, ns.
    pub ef: Vec<(u64, u64)>,
    /// Bits that the link carried in each tenth of a second.
    pub carried: Vec<f64>,
    /// Packets for which the link's own queue had no room.
    pub below_lost: u64,
    /// What was known over time, for a look at it: time, capacity, measured queue.
    pub log: Vec<(u64, f64, f64)>,
}

pub struct Path<'t> {
    trace: &'t Trace,
    rule: Rule,
    load: Load,
    now_ns: u64,
    events: BinaryHeap<Reverse<Event>>,
    count: u64,
    link: Link,
    served_ns: u64,
    feedback: Feedback,
    echoes: Echoes,
    before: before::Feedback,
    autorate: Autorate,
    far: Far,
    /// When a far end of before may report again, ns.
    report_ns: u64,
    reporter: Reporter,
    sent: Sent,
    slab: Vec<(Pkt, u32)>,
    below: VecDeque<usize>,
    /// The packet on the link below.
    sending: Option<usize>,
    way: VecDeque<(u64, usize)>,
    random: Pcg64,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// When the timers of both are looked at, ns; 0: never.
    armed_ns: [Vec<u64>; 2],
    config: Config,
    outcome: Outcome,
}

fn scheduler() -> Scheduler {
    let info = policy("strict").expect("a policy of the core");
    let mut qparams = info.default_qparams(2);
    let level = info.qparam("level").expect("its parameter");
    let row = info.qparams.len();
    qparams[level] = 0;
    qparams[row + level] = 1;
    Scheduler {
        info,
        params: info.default_params(),
        qparams,
    }
}

impl<'t> Path<'t> {
    /// A path over this trace; the bounds and the first capacity are those of the rule.
    pub fn new(
        trace: &'t Trace,
        (rule, far): (Rule, Far),
        load: Load,
        (bounds, begin_bps): (Bounds, u64),
    ) -> Path<'t> {
        let scheduler = scheduler();
        let classes = [("ef", 100), ("rest", REST_PKTS)].map(|(name, pkts)| Class {
            name: name.to_string(),
            limit: Limit {
                pkts: Some(pkts),
                ..Limit::NONE
            },
            flows: None,
            uses: Uses::Best,
            reorder_ns: None,
            resend: false,
        });
        let capacity = Capacity {
            offered: Offered::Rate(Signal::Constant(begin_bps as f64)),
            nominal_bps: begin_bps,
            follow: true,
            command: None,
            stale_ns: None,
            floor_bps: 1000,
            feedback: Some(bounds),
        };
        let link = Link::new(
            0,
            LinkSetup {
                scheduler: &scheduler,
                classes: &classes,
                capacity: &capacity,
                measured: false,
                shared: false,
                paths: &[],
            },
        )
        .expect("the parameters are sound");
        let rates = Rates {
            least: trace.range_bps().0,
            base: trace.bits(0, trace.end_ns) / (trace.end_ns as f64 * 1e-9),
            greatest: trace.range_bps().1,
        };
        let config = Config::new(Algorithm::Cubic, Profile::Linux);
        let flows = if load == Load::Cubic { FLOWS } else { 0 };
        let mut path = Path {
            trace,
            rule,
            load,
            now_ns: 0,
            events: BinaryHeap::new(),
            count: 0,
            link,
            served_ns: u64::MAX,
            feedback: Feedback::new(bounds, begin_bps),
            echoes: Echoes::new(bounds, begin_bps, 1),
            before: before::Feedback::new(bounds, begin_bps),
            autorate: Autorate::new(rates),
            far,
            report_ns: 0,
            reporter: Reporter::default(),
            sent: Sent::default(),
            slab: Vec::new(),
            below: VecDeque::new(),
            sending: None,
            way: VecDeque::new(),
            random: Pcg64::seed_from_u64(11),
            senders: (0..flows).map(|_| Sender::new(&config)).collect(),
            receivers: (0..flows).map(|_| Receiver::new(&config)).collect(),
            armed_ns: [vec![0; flows], vec![0; flows]],
            config,
            outcome: Outcome {
                carried: vec![0.0; (trace.end_ns / (S / 10)) as usize + 1],
                ..Outcome::default()
            },
        };
        path.at(0, What::Ef);
        if let Load::Constant(_) = load {
            path.at(0, What::Load);
        }
        for flow in 0..flows {
            path.at(flow as u64 * 37 * MS, What::Sender(flow));
        }
        match rule {
            Rule::Feedback { .. } | Rule::Echoes | Rule::Before => path.at(0, What::Turn),
            Rule::Oracle => {
                for step in &trace.steps {
                    path.at(
                        step.from_ns + step.delay_ns + trace.back_ns,
                        What::Told(step.bps),
                    );
                }
            }
            Rule::Autorate => {
                path.link.set_capacity(0, path.autorate.bps() as u64);
                path.at(0, What::Probe(0));
                path.at(ACHIEVED_NS, What::Achieved(0));
            }
            Rule::Fifo => {}
        }
        path
    }

    fn at(&mut self, ns: u64, what: What) {
        self.count += 1;
        self.events.push(Reverse(Event(ns, self.count, what)));
    }

    /// Runs until the trace ends.
    pub fn run(mut self) -> Outcome {
        while let Some(Reverse(Event(ns, _, what))) = self.events.pop() {
            if ns >= self.trace.end_ns {
                break;
            }
            self.now_ns = ns;
            self.handle(what);
        }
        self.outcome.ef.sort_unstable();
        self.outcome
    }

    fn handle(&mut self, what: What) {
        let now_ns = self.now_ns;
        match what {
            What::Ef => {
                self.offer(0, Pkt::Ef(now_ns), EF_BYTES);
                self.at(now_ns + EF_NS, What::Ef);
            }
            What::Load => {
                let Load::Constant(bps) = self.load else {
                    return;
                };
                self.offer(1, Pkt::Load, LOAD_BYTES);
                let bits = 8 * u64::from(LOAD_BYTES + OVERHEAD_BYTES);
                self.at(now_ns + bits * S / bps, What::Load);
            }
            What::Serve => {
                if self.served_ns == now_ns {
                    self.served_ns = u64::MAX;
                    self.serve();
                }
            }
            What::Below => self.below_done(),
            What::Arrives => self.arrives(),
            What::Ack(flow, ack) => {
                self.senders[flow].on_ack(now_ns, &ack);
                self.pull(flow);
            }
            What::Back(message) => {
                let Message::Report(report) = message else {
                    return;
                };
                if self.rule == Rule::Before {
                    if let Some(bps) = self.before.reported(now_ns, report, WIRE) {
                        self.link.set_capacity(now_ns, bps);
                    }
                    self.serve();
                } else if let Some(steer) = self.feedback.reported(now_ns, report, self.sent, WIRE)
                {
                    self.link.steer(now_ns, steer);
                    let queue_s = self.feedback.known().queue_ns as f64 * 1e-9;
                    self.outcome
                        .log
                        .push((now_ns, steer.pace_bps as f64, queue_s));
                    self.serve();
                }
            }
            What::Sender(flow) => {
                self.armed_ns[0][flow] = 0;
                if self.senders[flow]
                    .deadline_ns()
                    .is_some_and(|ns| ns <= now_ns)
                {
                    self.senders[flow].on_timer(now_ns);
                }
                self.pull(flow);
            }
            What::Receiver(flow) => {
                self.armed_ns[1][flow] = 0;
                if self.receivers[flow]
                    .deadline_ns()
                    .is_some_and(|ns| ns <= now_ns)
                {
                    if let Some(ack) = self.receivers[flow].on_timer(now_ns) {
                        self.at(now_ns + self.trace.back_ns, What::Ack(flow, ack));
                    }
                }
                self.arm_receiver(flow);
            }
            What::Told(bps) => {
                self.link.set_capacity(now_ns, bps as u64);
                self.serve();
            }
            What::Turn => {
                self.turn();
                self.at(now_ns + TURN_NS, What::Turn);
            }
            What::Report => self.report(),
            What::Echo(sent_ns) => {
                if let Some(steer) = self.echoes.answered(now_ns, 0, sent_ns, self.sent) {
                    self.link.steer(now_ns, steer);
                    self.serve();
                }
            }
            What::Probe(number) => {
                self.link.occupy(now_ns, PROBE_BYTES);
                let probe = self.keep(Pkt::Probe(number, now_ns), PROBE_BYTES);
                self.put_below(probe);
                self.at(now_ns + PROBE_NS, What::Probe(number + 1));
            }
            What::Answer(number, took_ns) => {
                self.autorate.answered(now_ns, number, took_ns);
                let bps = self.autorate.bps();
                self.link.set_capacity(now_ns, bps as u64);
                self.outcome.log.push((now_ns, bps, 0.0));
                self.serve();
            }
            What::Achieved(before_bytes) => {
                let bits = 8 * (self.sent.bytes - before_bytes);
                self.autorate
                    .achieved(bits as f64 / (ACHIEVED_NS as f64 * 1e-9));
                self.at(now_ns + ACHIEVED_NS, What::Achieved(self.sent.bytes));
            }
        }
    }

    /// Sends a mark that is due; a link that is busy delays it.
    fn mark(&mut self) {
        let now_ns = self.now_ns;
        let due_ns = match self.rule {
            Rule::Feedback { .. } => self.feedback.due_ns(self.sent.pkts),
            Rule::Echoes => self.echoes.due_ns(self.sent.pkts),
            Rule::Before => self.before.due_ns(self.sent.pkts),
            Rule::Autorate | Rule::Oracle | Rule::Fifo => return,
        };
        if due_ns > now_ns
            || self
                .link
                .channel_free_ns(now_ns)
                .is_none_or(|ns| ns > now_ns)
        {
            return;
        }
        let wire_bytes = WIRE.packet_bytes(MESSAGE_BYTES);
        if self.rule == Rule::Echoes {
            // Probes are short, and the tunnel adds nothing to them.
            if !self.echoes.probe(now_ns, self.sent, PROBE_BYTES).is_empty() {
                self.link.occupy(now_ns, PROBE_BYTES);
                let pkt = self.keep(Pkt::Mark(now_ns), PROBE_BYTES);
                self.put_below(pkt);
            }
            return;
        }
        let message = if self.rule == Rule::Before {
            self.before.mark(now_ns, self.sent, wire_bytes)
        } else {
            self.feedback.mark(now_ns, self.sent, wire_bytes)
        };
        if let Message::Mark { sent_ns } = message {
            self.link.occupy(now_ns, wire_bytes);
            let pkt = self.keep(Pkt::Mark(sent_ns), wire_bytes);
            self.put_below(pkt);
        }
    }

    /// Lets the rule change its rate as time passes.
    fn turn(&mut self) {
        let feeds_back = matches!(self.rule, Rule::Feedback { .. });
        if feeds_back && self.feedback.turn_ns() <= self.now_ns {
            let steer = self.feedback.turn(self.now_ns, self.sent);
            self.link.steer(self.now_ns, steer);
        }
        if self.rule == Rule::Echoes {
            if let Some(steer) = self.echoes.turn(self.now_ns, self.sent, 0) {
                self.link.steer(self.now_ns, steer);
            }
        }
        self.serve();
    }

    fn keep(&mut self, pkt: Pkt, wire_bytes: u32) -> usize {
        self.slab.push((pkt, wire_bytes));
        self.slab.len() - 1
    }

    /// Sends a packet of an application.
    fn offer(&mut self, class: usize, pkt: Pkt, bytes: u32) {
        let wire_bytes = bytes + OVERHEAD_BYTES;
        let at = self.keep(pkt, wire_bytes);
        if self.rule == Rule::Fifo {
            self.put_below(at);
            return;
        }
        self.link
            .arrive(self.now_ns, class, wire_bytes, &(at as u32).to_le_bytes());
        self.serve();
    }

    /// Lets the gateway send.
    fn serve(&mut self) {
        loop {
            self.mark();
            match self.link.next(self.now_ns, |_| false) {
                Next::Send(packet, _) => {
                    let mut number = [0; 4];
                    number.copy_from_slice(&packet[..4]);
                    let at = u32::from_le_bytes(number) as usize;
                    self.sent.pkts += 1;
                    self.sent.bytes += u64::from(self.slab[at].1);
                    self.put_below(at);
                }
                Next::At(ns) => {
                    let ns = ns.max(self.now_ns + 1);
                    if ns < self.served_ns || self.served_ns <= self.now_ns {
                        self.served_ns = ns;
                        self.at(ns, What::Serve);
                    }
                    return;
                }
                Next::Nothing => return,
            }
        }
    }

    fn put_below(&mut self, at: usize) {
        if self.sending.is_none() {
            self.begin_below(at);
        } else if self.below.len() < BELOW_PKTS {
            self.below.push_back(at);
        } else {
            self.outcome.below_lost += 1;
        }
    }

    fn begin_below(&mut self, at: usize) {
        self.sending = Some(at);
        let ns = self
            .trace
            .ends_ns(self.now_ns, 8.0 * f64::from(self.slab[at].1));
        self.at(ns, What::Below);
    }

    fn below_done(&mut self) {
        let Some(at) = self.sending.take() else {
            return;
        };
        let now_ns = self.now_ns;
        if let Some(next) = self.below.pop_front() {
            self.begin_below(next);
        }
        self.outcome.carried[(now_ns / (S / 10)) as usize] += 8.0 * f64::from(self.slab[at].1);
        if self.trace.loss > 0.0 && between(&mut self.random, 0.0, 1.0) < self.trace.loss {
            return;
        }
        let mut due_ns = now_ns + self.trace.at(now_ns).delay_ns;
        if self.trace.jitter_ns > 0 {
            due_ns += between(&mut self.random, 0.0, self.trace.jitter_ns as f64) as u64;
        }
        // Packets keep their order.
        due_ns = due_ns.max(self.way.back().map_or(0, |(ns, _)| *ns));
        self.way.push_back((due_ns, at));
        self.at(due_ns, What::Arrives);
    }

    fn arrives(&mut self) {
        let Some((_, at)) = self.way.pop_front() else {
            return;
        };
        let now_ns = self.now_ns;
        let (pkt, wire_bytes) = self.slab[at];
        if !matches!(pkt, Pkt::Mark(_) | Pkt::Probe(..)) {
            self.reporter.count((wire_bytes - OVERHEAD_BYTES) as usize);
        }
        match pkt {
            Pkt::Ef(sent_ns) => self.outcome.ef.push((sent_ns, now_ns - sent_ns)),
            Pkt::Load => {}
            Pkt::Tcp(flow, segment) => {
                if let Some(ack) = self.receivers[flow].on_segment(now_ns, &segment) {
                    self.at(now_ns + self.trace.back_ns, What::Ack(flow, ack));
                }
                self.arm_receiver(flow);
            }
            Pkt::Probe(number, sent_ns) => {
                let answer = What::Answer(number, now_ns - sent_ns);
                self.at(now_ns + self.trace.back_ns, answer);
            }
            Pkt::Mark(sent_ns) if self.rule == Rule::Echoes => {
                self.at(now_ns + self.trace.back_ns, What::Echo(sent_ns));
            }
            Pkt::Mark(sent_ns) => {
                self.reporter.marked(now_ns + AHEAD_NS, sent_ns);
                self.report();
            }
        }
    }

    /// Sends the report that is due.
    fn report(&mut self) {
        let clock_ns = self.now_ns + AHEAD_NS;
        if self.far == Far::Before && self.reporter.due_ns().is_some() {
            if self.report_ns > self.now_ns {
                self.at(self.report_ns, What::Report);
                return;
            }
            self.report_ns = self.now_ns + before::REPORT_NS;
        }
        match self.reporter.due_ns() {
            Some(ns) if ns > clock_ns => self.at(ns - AHEAD_NS, What::Report),
            Some(_) => {
                let wire_bytes = WIRE.packet_bytes(MESSAGE_BYTES);
                let report = self.reporter.report(clock_ns, wire_bytes, BACK_BPS, 1);
                if let Some(report) = report {
                    self.at(self.now_ns + self.trace.back_ns, What::Back(report));
                }
            }
            None => {}
        }
    }

    fn arm_receiver(&mut self, flow: usize) {
        if let Some(ns) = self.receivers[flow].deadline_ns() {
            let armed_ns = &mut self.armed_ns[1][flow];
            if *armed_ns == 0 || ns < *armed_ns {
                *armed_ns = ns;
                self.at(ns.max(self.now_ns), What::Receiver(flow));
            }
        }
    }

    /// Sends what a TCP sender may send.
    fn pull(&mut self, flow: usize) {
        while let Some(segment) = self.senders[flow].next_segment(self.now_ns) {
            let bytes = self.config.segment_wire_bytes(&segment);
            self.offer(1, Pkt::Tcp(flow, segment), bytes);
        }
        if let Some(ns) = self.senders[flow].deadline_ns() {
            let armed_ns = &mut self.armed_ns[0][flow];
            if *armed_ns == 0 || ns < *armed_ns {
                *armed_ns = ns;
                self.at(ns.max(self.now_ns + 1), What::Sender(flow));
            }
        }
    }
}
