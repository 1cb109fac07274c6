// SPDX-License-Identifier: BSD-3-Clause
//! The link from a satellite: what was not understood is answered and sent again, before everything that waits.
//!
//! ```text
//!  repeats --+
//!            +--> device --delay--> decoder --ground delay--> receiver
//!  Mux ------+                         |
//!     ^                                |
//!     +---- not understood --delay-----+
//! ```

use std::collections::VecDeque;

use linkweir_core::{Departure, DropReason};

use crate::experiment::{Satellite, Signal};
use crate::satellite::fading::Fading;
use crate::satellite::harq::{Block, Outcome};

use super::line::DelayLine;
use super::{event, left, nanoseconds, Engine, Packet, Varying};

/// What is under way on the link.
#[derive(Debug)]
pub(super) struct Sky {
    satellite: Satellite,
    fading: Fading,
    /// Propagation delay, and where in it the run starts.
    delay: Varying,
    start_ns: u64,
    /// Attempts that go next.
    repeats: VecDeque<(Packet, Block)>,
    /// What was gathered before of the packet on the device.
    sending: Block,
    air: DelayLine<(Packet, Block)>,
    answers: DelayLine<(Packet, Block)>,
}

impl Sky {
    /// `delay_s` is the link's, which the satellite's own takes the place of.
    pub(super) fn new(satellite: &Satellite, fading: Fading, delay_s: &Signal) -> Sky {
        let (delay_s, start_ns) = match &satellite.delays {
            Some(delays) => (&delays.to_ground_s, delays.start_ns),
            None => (delay_s, 0),
        };
        Sky {
            satellite: satellite.clone(),
            fading,
            delay: Varying::new(delay_s),
            start_ns,
            repeats: VecDeque::new(),
            sending: Block::default(),
            air: DelayLine::new(),
            answers: DelayLine::new(),
        }
    }

    /// Propagation delay now, ns.
    fn delay_ns(&mut self, now_ns: u64) -> u64 {
        nanoseconds(self.delay.value(now_ns.saturating_add(self.start_ns)))
    }

    /// Delay between satellite and user now, ns.
    pub(super) fn receiver_delay_ns(&mut self, now_ns: u64) -> u64 {
        self.delay_ns(now_ns) + self.satellite.ground_delay_ns
    }
}

impl Engine<'_> {
    /// Puts the next attempt on the idle device: a repetition, or the first of what the scheduler picks.
    pub(super) fn pull_attempt(&mut self) {
        let sky = self.sky.as_mut().expect("there is a satellite");
        if let Some((packet, block)) = sky.repeats.pop_front() {
            let coded_bits = sky.satellite.harq.coded_bits(usize::from(block.attempts));
            sky.sending = block;
            self.device.ring.push_back((coded_bits / 8, packet));
            self.recorder.attempted(packet.flow as usize, coded_bits);
            return;
        }
        if let Some(most_ns) = self.mux.policy().timeout_ns() {
            self.expire(most_ns);
        }
        let Some(Departure {
            class,
            item,
            bytes,
            sojourn_ns,
        }) = self.dequeue()
        else {
            return;
        };
        let satellite = &self.sky.as_ref().expect("as above").satellite;
        let coded_bits = satellite.harq.coded_bits(0);
        let uncoded_bytes = if satellite.uncoded_too { bytes } else { 0 };
        self.device
            .ring
            .push_back((uncoded_bytes + coded_bits / 8, item));
        self.recorder
            .sent(self.now_ns, class, item.bytes, sojourn_ns);
        self.recorder.attempted(item.flow as usize, coded_bits);
        self.sky.as_mut().expect("as above").sending = Block::default();
        if !self.short.is_empty() {
            self.refill();
        }
    }

    /// Throws away what has waited longer.
    fn expire(&mut self, most_ns: u64) {
        let Engine {
            mux,
            recorder,
            flows,
            short,
            now_ns,
            ..
        } = self;
        for class in 0..mux.nclasses() {
            mux.expire(*now_ns, class, most_ns, |packet| {
                let flow = packet.flow as usize;
                recorder.dropped(*now_ns, flow, packet.bytes, DropReason::Policy);
                left(flows, short, packet.flow);
            });
        }
    }

    /// An attempt has left the device.
    pub(super) fn leave_sky(&mut self, packet: Packet) {
        let sky = self.sky.as_mut().expect("there is a satellite");
        let out_ns = self.now_ns + sky.delay_ns(self.now_ns);
        if let Some(first_ns) = sky.air.push(out_ns, (packet, sky.sending)) {
            self.heap.push(first_ns, event::DECODE);
        }
    }

    /// An attempt reaches the decoder.
    pub(super) fn decode(&mut self) -> Option<u64> {
        let sky = self.sky.as_mut()?;
        let answer_ns = self.now_ns + sky.delay_ns(self.now_ns);
        let (packet, mut block) = sky.air.pop()?;
        let satellite = &sky.satellite;
        let flow = packet.flow as usize;
        let user = if block.attempts > 0 && satellite.repeats_see_first_user {
            0
        } else {
            self.flows[flow].class as u64
        };
        let time_ns = self.now_ns + user * satellite.user_offset_ns;
        match block.receive(&satellite.harq, sky.fading.at(time_ns)) {
            Outcome::Decoded => {
                self.recorder.decoded(flow, block.attempts);
                let out_ns = self.now_ns + satellite.ground_delay_ns;
                if let Some(first_ns) = self.propagation.push(out_ns, packet) {
                    self.heap.push(first_ns, event::ARRIVAL);
                }
            }
            Outcome::Again => {
                if let Some(first_ns) = sky.answers.push(answer_ns, (packet, block)) {
                    self.heap.push(first_ns, event::ANSWER);
                }
            }
            Outcome::GivenUp => self.recorder.given_up(flow),
        }
        self.sky.as_ref()?.air.next_ns()
    }

    /// The answer that asks for another attempt is back at the satellite.
    pub(super) fn answer(&mut self) -> Option<u64> {
        let sky = self.sky.as_mut()?;
        let asked = sky.answers.pop()?;
        sky.repeats.push_back(asked);
        self.start_device();
        self.sky.as_ref()?.answers.next_ns()
    }
}
