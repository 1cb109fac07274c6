// SPDX-License-Identifier: BSD-3-Clause
//! One connection over a bottleneck with a FIFO buffer: just enough network to test TCP without the engine.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use linkweir_sim::tcp::{Ack, Config, Counters, Receiver, Segment, Sender, Window};

/// The path from sender to receiver and back.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub rate_bps: u64,
    /// Segments that may wait besides the one being sent.
    pub buffer_segments: usize,
    /// Propagation, sender to receiver.
    pub forward_ns: u64,
    /// Propagation, receiver to sender, where the rate is the same but no queue forms.
    pub reverse_ns: u64,
}

/// What a test may watch and decide.
pub trait Observer {
    /// A segment leaves the sender; true drops it before the buffer. `nth` counts from 0.
    fn drops(&mut self, _nth: u64, _segment: &Segment) -> bool {
        false
    }
    /// A segment enters the buffer behind `waiting` others; true marks it, if it can carry a mark.
    fn marks(&mut self, _waiting: usize) -> bool {
        false
    }
    /// The link is free at `now_ns`; when it begins to send the next segment.
    fn serves_from(&mut self, now_ns: u64) -> u64 {
        now_ns
    }
    /// How much longer than the others this segment travels.
    fn delays(&mut self, _segment: &Segment) -> u64 {
        0
    }
    /// True drops an acknowledgement.
    fn drops_ack(&mut self) -> bool {
        false
    }
    /// True lets an acknowledgement arrive twice.
    fn repeats_ack(&mut self) -> bool {
        false
    }
    /// What the application writes, besides `bytes_to_send`: when, and how many segments.
    fn writes(&mut self) -> Vec<(u64, u64)> {
        Vec::new()
    }
    /// The receiver took in a segment, and answered with `ack`.
    fn on_receipt(&mut self, _now_ns: u64, _segment: &Segment, _ack: Option<&Ack>) {}
    /// The sender took in an acknowledgement and has not yet sent.
    fn on_ack(&mut self, _now_ns: u64, _ack: &Ack, _sender: &Sender) {}
    /// The sender sent a segment.
    fn on_segment(&mut self, _now_ns: u64, _segment: &Segment, _sender: &Sender) {}
    /// The retransmission timer expired; the sender has not yet sent.
    fn on_timeout(&mut self, _now_ns: u64, _sender: &Sender) {}
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    pub now_ns: u64,
    pub delivered: u64,
    pub acks: u64,
    pub buffer_drops: u64,
    pub marked: u64,
    pub window: Window,
    pub counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Departure,
    Arrival(usize),
    Return(usize),
    SenderTimer,
    ReceiverTimer,
    Write(u64),
}

/// Runs until `end_ns` or until all is delivered and acknowledged. Panics if the connection stalls: nothing on the way
/// and no timer armed before the end.
pub fn run(config: &Config, path: Path, end_ns: u64, observer: &mut impl Observer) -> Outcome {
    let mut run = Run {
        config: config.clone(),
        path,
        sender: Sender::new(config),
        receiver: Receiver::new(config),
        events: BinaryHeap::new(),
        order: 0,
        now_ns: 0,
        waiting: VecDeque::new(),
        busy: false,
        segments: Vec::new(),
        acks: Vec::new(),
        buffer_drops: 0,
        marked: 0,
        writes: 0,
    };
    for (at_ns, segments) in observer.writes() {
        run.writes += 1;
        run.at(at_ns, Event::Write(segments));
    }
    run.transmit(observer);
    while run.writes > 0 || !run.sender.is_done() {
        let Some(Reverse((at_ns, _, event))) = run.events.pop() else {
            panic!("the connection stalled")
        };
        if at_ns > end_ns {
            break;
        }
        run.now_ns = at_ns;
        run.handle(event, observer);
    }
    Outcome {
        now_ns: run.now_ns,
        delivered: run.receiver.delivered_segments(),
        acks: run.acks.len() as u64,
        buffer_drops: run.buffer_drops,
        marked: run.marked,
        window: run.sender.window(),
        counters: run.sender.counters(),
    }
}

struct Run {
    config: Config,
    path: Path,
    sender: Sender,
    receiver: Receiver,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    now_ns: u64,
    waiting: VecDeque<usize>,
    busy: bool,
    segments: Vec<Segment>,
    acks: Vec<Ack>,
    buffer_drops: u64,
    marked: u64,
    /// Writes that are still to come.
    writes: usize,
}

impl Run {
    fn at(&mut self, at_ns: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at_ns, self.order, event)));
    }

    fn handle(&mut self, event: Event, observer: &mut impl Observer) {
        match event {
            Event::Departure => match self.waiting.pop_front() {
                Some(index) => self.serve(index, observer),
                None => self.busy = false,
            },
            Event::Arrival(index) => {
                let segment = self.segments[index];
                let ack = self.receiver.on_segment(self.now_ns, &segment);
                observer.on_receipt(self.now_ns, &segment, ack.as_ref());
                self.reply(ack, observer);
                if let Some(due_ns) = self.receiver.deadline_ns() {
                    self.at(due_ns, Event::ReceiverTimer);
                }
            }
            Event::ReceiverTimer => {
                let ack = self.receiver.on_timer(self.now_ns);
                self.reply(ack, observer);
            }
            Event::Return(index) => {
                let ack = self.acks[index];
                self.sender.on_ack(self.now_ns, &ack);
                observer.on_ack(self.now_ns, &ack, &self.sender);
                self.transmit(observer);
            }
            Event::SenderTimer => {
                if self
                    .sender
                    .deadline_ns()
                    .is_some_and(|due_ns| due_ns <= self.now_ns)
                {
                    let timeouts = self.sender.counters().timeouts;
                    self.sender.on_timer(self.now_ns);
                    if self.sender.counters().timeouts > timeouts {
                        observer.on_timeout(self.now_ns, &self.sender);
                    }
                    self.transmit(observer);
                }
            }
            Event::Write(segments) => {
                self.writes -= 1;
                self.sender.supply(self.now_ns, segments);
                self.transmit(observer);
            }
        }
    }

    fn reply(&mut self, ack: Option<Ack>, observer: &mut impl Observer) {
        let Some(ack) = ack else { return };
        self.acks.push(ack);
        if !observer.drops_ack() {
            let sent_ns = self.now_ns + self.transmission_ns(self.config.ack_wire_bytes(&ack));
            for _ in 0..=usize::from(observer.repeats_ack()) {
                self.at(
                    sent_ns + self.path.reverse_ns,
                    Event::Return(self.acks.len() - 1),
                );
            }
        }
    }

    fn transmit(&mut self, observer: &mut impl Observer) {
        while let Some(segment) = self.sender.next_segment(self.now_ns) {
            assert_eq!(segment.sent_ns, self.now_ns);
            observer.on_segment(self.now_ns, &segment, &self.sender);
            let index = self.segments.len();
            self.segments.push(segment);
            if observer.drops(index as u64, &segment) {
                continue;
            }
            if observer.marks(self.waiting.len()) && segment.ecn_capable {
                self.segments[index].marked = true;
                self.marked += 1;
            }
            if !self.busy {
                self.serve(index, observer);
            } else if self.waiting.len() < self.path.buffer_segments {
                self.waiting.push_back(index);
            } else {
                self.buffer_drops += 1;
            }
        }
        if let Some(due_ns) = self.sender.deadline_ns() {
            self.at(due_ns, Event::SenderTimer);
        }
    }

    fn serve(&mut self, index: usize, observer: &mut impl Observer) {
        self.busy = true;
        let sent_ns = observer.serves_from(self.now_ns)
            + self.transmission_ns(self.config.segment_wire_bytes(&self.segments[index]));
        self.at(sent_ns, Event::Departure);
        let travels_ns = self.path.forward_ns + observer.delays(&self.segments[index]);
        self.at(sent_ns + travels_ns, Event::Arrival(index));
    }

    fn transmission_ns(&self, bytes: u32) -> u64 {
        u64::from(bytes) * 8 * 1_000_000_000 / self.path.rate_bps
    }
}

/// A small generator (PCG multiplier and increment, upper bits), so that tests repeat.
pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
