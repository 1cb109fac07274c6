// SPDX-License-Identifier: BSD-3-Clause
//! The link from a satellite: a packet that was not decoded is requested again and repeated before new packets.
//!
//! ```text
//!  repeats --+
//!            +--> device --delay--> decoder --> order --ground delay--> receiver
//!  Mux ------+                         |
//!     ^                                |
//!     +------ not decoded ---delay-----+
//! ```

use std::collections::VecDeque;

use linkweir_core::Departure;

use crate::experiment::{users, Experiment, Satellite};
use crate::satellite::fading::Fading;
use crate::satellite::harq::{Block, Outcome};
use crate::satellite::reorder::{Leaving, Reorder, Rule};

use super::bottleneck::Bottleneck;
use super::codes::Codes;
use super::csi::Csi;
use super::event;
use super::flow::Kind;
use super::line::DelayLine;
use super::medium::Medium;
use super::packet::Packet;
use super::varying::{nanoseconds, Varying};

/// A packet under way: its number for the reordering buffer, and the information gathered in earlier attempts.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    number: u64,
    block: Block,
    /// How it is coded, see [`Codes`].
    code: u32,
    /// Attenuation at the time the attempt under way is received, dB, once [`SatelliteLink::look_up`] has looked it up.
    attenuation_db: f64,
}

/// Offset of each user into the fading, ns, less than one round of it.
#[derive(Debug)]
pub(super) struct Offsets {
    /// For the packets of each flow.
    flows_ns: Vec<u64>,
    /// For the rates of each class that are reported to the scheduler.
    pub(super) classes_ns: Vec<u64>,
}

impl Offsets {
    pub(super) fn new(satellite: &Satellite, experiment: &Experiment) -> Offsets {
        let round_ns = u128::from(satellite.channel.period_ns());
        let of_user =
            |user: usize| (user as u128 * u128::from(satellite.user_offset_ns) % round_ns) as u64;
        let users = users(&experiment.classes);
        let flows = experiment.flows.iter().enumerate();
        let mut classes_ns: Vec<u64> = users.iter().map(|user| of_user(*user)).collect();
        if satellite.flows_are_users {
            for (user, flow) in flows.clone().rev() {
                classes_ns[flow.class] = of_user(user);
            }
        }
        let flow_is_user = satellite.flows_are_users;
        Offsets {
            flows_ns: flows
                .map(|(index, flow)| {
                    of_user(if flow_is_user {
                        index
                    } else {
                        users[flow.class]
                    })
                })
                .collect(),
            classes_ns,
        }
    }

    /// The latest time of the fading that any user needs, ns.
    pub(super) fn latest_ns(&self, duration_ns: u64) -> u64 {
        let all_ns = self.flows_ns.iter().chain(&self.classes_ns);
        duration_ns.saturating_add(all_ns.copied().max().unwrap_or(0))
    }
}

/// Rates already computed for samples of the fading. Users pass the same samples at different times, so most rates to
/// report have been computed before.
#[derive(Debug)]
struct ReportedRates {
    link_bps: u64,
    /// Samples from one report to the next.
    stride: u32,
    /// A sample and its rate, at the sample's number over the stride. Users whose offsets differ by a multiple of the tick
    /// have different places, so that they do not overwrite each other's rates.
    rates: Vec<(usize, u64)>,
    nrates: usize,
}

/// Most rates that are kept: 1 MiB.
const MOST_RATES: usize = 1 << 16;

impl ReportedRates {
    fn new(fading: &Fading, tick_ns: u64) -> ReportedRates {
        let samples = fading.round();
        let step_ns = fading.period_ns() / samples as u64;
        let stride = (tick_ns / step_ns).clamp(1, samples as u64) as usize;
        ReportedRates {
            link_bps: 0,
            stride: stride as u32,
            rates: Vec::new(),
            nrates: (samples / stride + 1).min(MOST_RATES),
        }
    }

    /// Forgets the rates of another link.
    fn follow(&mut self, link_bps: u64) {
        if self.link_bps != link_bps || self.rates.is_empty() {
            self.link_bps = link_bps;
            self.rates.clear();
            self.rates.resize(self.nrates, (usize::MAX, 0));
        }
    }

    #[inline]
    fn rate_bps(&mut self, sample: usize, rate_bps: impl FnOnce() -> u64) -> u64 {
        let place = (sample as u32 / self.stride) as usize;
        let place = if place < self.nrates {
            place
        } else {
            place % self.nrates
        };
        let kept = &mut self.rates[place];
        if kept.0 != sample {
            *kept = (sample, rate_bps());
        }
        kept.1
    }

    /// Reports the rate that each class's channel gives it at these samples.
    fn report(
        &mut self,
        at: &mut Bottleneck,
        satellite: &Satellite,
        fading: &Fading,
        samples: impl Iterator<Item = usize>,
    ) {
        let link_bps = at.mux.link_bps();
        self.follow(link_bps);
        let rates_bps = samples.map(|sample| {
            self.rate_bps(sample, || {
                let attenuation_db = f64::from(fading.samples_db()[sample]);
                let part = satellite.harq.useful_part(attenuation_db);
                (link_bps as f64 * part).max(1.0) as u64
            })
        });
        at.mux.set_rates(at.now_ns, rates_bps);
    }
}

/// The link from the satellite, with the attempts and answers that are under way.
#[derive(Debug)]
pub(super) struct SatelliteLink {
    satellite: Satellite,
    codes: Codes,
    fading: Fading,
    offsets: Offsets,
    /// Propagation delay, and where in it the run starts.
    delay: Varying,
    start_ns: u64,
    /// Attempts that go next.
    repeats: VecDeque<(Packet, Piece)>,
    /// The same of the packet on the device.
    sending: Piece,
    air: DelayLine<(Packet, Piece)>,
    /// Number of the last attempts in the air whose attenuation has not been looked up. Users are far apart in the fading,
    /// so each look-up is a cache miss, and they are batched.
    unseen: usize,
    /// What the scheduler knows of the channels, where that has a fixed age.
    csi: Option<Csi>,
    reported: ReportedRates,
    answers: DelayLine<(Packet, Piece)>,
    /// Packets each flow has sent over the link.
    numbers: Vec<u64>,
    order: Option<Reorder<Packet>>,
    /// The timer of `order` has an entry among the pending events.
    order_timed: bool,
    leaving: Leaving<Packet>,
}

impl SatelliteLink {
    pub(super) fn new(satellite: &Satellite, experiment: &Experiment) -> SatelliteLink {
        let nflows = experiment.flows.len();
        let offsets = Offsets::new(satellite, experiment);
        let until_ns = offsets.latest_ns(experiment.duration_ns);
        let fading = satellite.channel.fading(until_ns);
        let codes = Codes::new(satellite, &experiment.classes);
        // The satellite's own delays take the place of the link's.
        let (delay_s, start_ns) = match &satellite.delays {
            Some(delays) => (&delays.to_ground_s, delays.start_ns),
            None => (&experiment.link.delay_s, 0),
        };
        SatelliteLink {
            satellite: satellite.clone(),
            csi: satellite.csi_age_ns.map(|age_ns| {
                let classes = 0..experiment.classes.len();
                let first_bytes = |class| codes.at(codes.first_of(class)).coded_bits(0) / 8;
                let first_bytes = classes.map(first_bytes).collect();
                let lengths_vary = satellite.uncoded_too || codes.differ();
                Csi::new(age_ns, experiment.duration_ns, first_bytes, lengths_vary)
            }),
            codes,
            reported: ReportedRates::new(&fading, satellite.csi_tick_ns),
            fading,
            offsets,
            delay: Varying::new(delay_s),
            start_ns,
            repeats: VecDeque::new(),
            sending: Piece::default(),
            air: DelayLine::new(),
            unseen: 0,
            answers: DelayLine::new(),
            numbers: vec![0; nflows],
            order: satellite
                .reordering
                .as_ref()
                .map(|reordering| Reorder::new(reordering, nflows)),
            order_timed: false,
            leaving: Leaving::default(),
        }
    }

    /// Propagation delay now, ns.
    fn delay_ns(&mut self, now_ns: u64) -> u64 {
        nanoseconds(self.delay.value(now_ns.saturating_add(self.start_ns)))
    }

    /// Looks up the attenuation for the attempts in the air. Those that come out after `end_ns` are not received.
    #[inline(never)]
    fn look_up(&mut self, end_ns: u64) {
        for (out_ns, (packet, piece)) in self.air.latest_mut(self.unseen) {
            let offset_ns = if piece.block.attempts > 0 && self.satellite.repeats_see_first_user {
                0
            } else {
                self.offsets.flows_ns[packet.flow as usize]
            };
            piece.attenuation_db = self.fading.at(out_ns.min(end_ns) + offset_ns);
        }
        self.unseen = 0;
    }

    /// Takes the first attempt out of the air.
    fn receive(&mut self, end_ns: u64) -> Option<(Packet, Piece)> {
        if self.unseen == self.air.len() {
            self.look_up(end_ns);
        }
        self.air.pop()
    }

    /// Numbers a packet that enters the link. The receiver with one buffer for all sees TCP's own numbers, which a
    /// retransmission repeats.
    fn number(&mut self, packet: &Packet, code: u32, is_tcp: bool) {
        let flow = packet.flow as usize;
        let shared = matches!(&self.satellite.reordering, Some(r) if r.rule == Rule::Shared);
        let number = if shared && is_tcp {
            packet.sequence()
        } else {
            self.numbers[flow]
        };
        self.numbers[flow] += 1;
        self.sending = Piece {
            number,
            code,
            ..Piece::default()
        };
    }

    /// An attempt reaches the decoder.
    fn decode(&mut self, at: &mut Bottleneck) -> Option<u64> {
        let answer_ns = at.now_ns + self.delay_ns(at.now_ns);
        let (packet, mut piece) = self.receive(at.times.duration_ns)?;
        let Piece {
            number,
            block,
            code,
            attenuation_db,
        } = &mut piece;
        let flow = packet.flow as usize;
        match block.receive(self.codes.at(*code), *attenuation_db) {
            Outcome::Decoded => {
                at.recorder.decoded(flow, block.attempts);
                match &mut self.order {
                    Some(order) => {
                        order.decoded(at.now_ns, flow, *number, packet, &mut self.leaving);
                    }
                    None => self.leaving.on.push(packet),
                }
            }
            Outcome::Again => {
                if let Some(first_ns) = self.answers.push(answer_ns, (packet, piece)) {
                    at.agenda.push(first_ns, event::ANSWER);
                }
            }
            Outcome::GivenUp => {
                at.recorder.given_up(at.now_ns, &packet);
                if let Some(order) = &mut self.order {
                    order.given_up(flow, *number, &mut self.leaving);
                }
            }
        }
        self.release(at);
        self.air.next_ns()
    }

    /// Sends on what left the receiver's buffer, and arms the buffer's timer.
    fn release(&mut self, at: &mut Bottleneck) {
        let out_ns = at.now_ns + self.satellite.ground_delay_ns;
        for packet in self.leaving.on.drain(..) {
            at.send_on(out_ns, packet);
        }
        for packet in self.leaving.dropped.drain(..) {
            at.recorder.dropped_late(at.now_ns, &packet);
        }
        if self.order_timed {
            return;
        }
        if let Some(due_ns) = self.order.as_ref().and_then(Reorder::deadline_ns) {
            self.order_timed = true;
            at.agenda.push(due_ns, event::ORDER);
        }
    }

    /// Reports to the scheduler the rate that the channel gives each class.
    fn report_channels(&mut self, at: &mut Bottleneck) -> u64 {
        let known_ns = at.now_ns.saturating_sub(self.delay_ns(at.now_ns));
        let SatelliteLink {
            satellite,
            fading,
            offsets,
            reported,
            ..
        } = self;
        let offsets_ns = offsets.classes_ns.iter();
        let samples = offsets_ns.map(|offset_ns| fading.index(known_ns + offset_ns));
        reported.report(at, satellite, fading, samples);
        at.now_ns + satellite.csi_tick_ns
    }

    /// Lets a scheduler whose knowledge has a fixed age know what it then knows, before it chooses.
    fn foresee(&mut self, at: &mut Bottleneck) {
        let SatelliteLink {
            satellite,
            codes,
            fading,
            offsets,
            delay,
            start_ns,
            air,
            csi: Some(csi),
            reported,
            ..
        } = self
        else {
            return;
        };
        let Bottleneck { device, mux, .. } = at;
        let (now_ns, end_ns) = (at.now_ns, at.times.duration_ns);
        let first_bytes = |class: usize| {
            let code = match mux.head(class) {
                Some(head) => codes.of(satellite, class, head.bytes),
                None => codes.first_of(class),
            };
            let head_bytes = mux.queues()[class].head_bytes;
            let uncoded_bytes = if satellite.uncoded_too { head_bytes } else { 0 };
            uncoded_bytes + codes.at(code).coded_bits(0) / 8
        };
        let received_ns = |bytes: u32| {
            let left_ns = device.would_end(now_ns, bytes).unwrap_or(end_ns);
            let delay_ns = nanoseconds(delay.value(left_ns.saturating_add(*start_ns)));
            (left_ns + delay_ns).max(air.last_ns())
        };
        let looked = (first_bytes, received_ns);
        let changed = csi.look(mux.queues(), fading, &offsets.classes_ns, looked);
        let takes_rates = mux.policy().is_channel_aware();
        // The rate of a channel is a part of the link's, so it changes with that, too.
        let is_due = changed || takes_rates && reported.link_bps != mux.link_bps();
        if !is_due {
            return;
        }
        if takes_rates {
            reported.report(at, satellite, fading, csi.samples().iter().copied());
        } else {
            mux.policy_mut().foresee(csi.samples());
        }
    }

    /// The receiver's buffer may have held a packet for long enough.
    fn order_timer(&mut self, at: &mut Bottleneck) -> Option<u64> {
        let order = self.order.as_mut()?;
        order.on_timer(at.now_ns, &mut self.leaving);
        let again_ns = order.deadline_ns();
        self.order_timed = again_ns.is_some();
        self.release(at);
        again_ns
    }

    /// The answer that asks for another attempt is back at the satellite.
    fn answer(&mut self, at: &mut Bottleneck) -> Option<u64> {
        let asked = self.answers.pop()?;
        self.repeats.push_back(asked);
        self.start_device(at);
        self.answers.next_ns()
    }
}

impl Medium for SatelliteLink {
    fn channel(&self) -> Option<(&Fading, &[u64])> {
        Some((&self.fading, &self.offsets.classes_ns))
    }

    fn begin(&mut self, at: &mut Bottleneck) {
        let policy = at.mux.policy();
        if !policy.is_channel_aware() && !policy.reads_channels() {
            self.csi = None;
        } else if policy.is_channel_aware() && self.csi.is_none() {
            at.agenda.push(0, event::CSI);
        }
    }

    /// Puts the next attempt on the idle device: a repetition, or the first of what the scheduler picks.
    fn pull(&mut self, at: &mut Bottleneck) {
        if let Some((packet, piece)) = self.repeats.pop_front() {
            let attempt = usize::from(piece.block.attempts);
            let coded_bits = self.codes.at(piece.code).coded_bits(attempt);
            self.sending = piece;
            at.device.ring.push_back((coded_bits / 8, packet));
            at.recorder.attempted(packet.flow as usize, coded_bits);
            return;
        }
        at.expire();
        if self.csi.is_some() {
            self.foresee(at);
        }
        let Some(Departure {
            class,
            item,
            bytes,
            sojourn_ns,
            ..
        }) = at.dequeue()
        else {
            return;
        };
        let code = self.codes.of(&self.satellite, class, item.bytes);
        let coded_bits = self.codes.at(code).coded_bits(0);
        let uncoded_bytes = if self.satellite.uncoded_too { bytes } else { 0 };
        at.device
            .ring
            .push_back((uncoded_bytes + coded_bits / 8, item));
        at.recorder.sent(at.now_ns, class, &item, sojourn_ns);
        at.recorder.attempted(item.flow as usize, coded_bits);
        let is_tcp = matches!(at.flows[item.flow as usize].kind, Kind::Tcp(_));
        self.number(&item, code, is_tcp);
        if !at.lacking.is_empty() {
            at.refill();
        }
    }

    /// An attempt has left the device.
    fn leave(&mut self, at: &mut Bottleneck, packet: Packet) {
        let delay_ns = self.delay_ns(at.now_ns);
        let attempt = (packet, self.sending);
        self.unseen += 1;
        if let Some(first_ns) = self.air.push(at.now_ns + delay_ns, attempt) {
            at.agenda.push(first_ns, event::DECODE);
        }
    }

    fn handle(&mut self, at: &mut Bottleneck, event: u32) -> Option<u64> {
        match event {
            event::DECODE => self.decode(at),
            event::ANSWER => self.answer(at),
            event::ORDER => self.order_timer(at),
            event::CSI => Some(self.report_channels(at)),
            _ => unreachable!("a satellite has no event {event:#x}"),
        }
    }

    fn receiver_delay_ns(&mut self, now_ns: u64) -> u64 {
        self.delay_ns(now_ns) + self.satellite.ground_delay_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reported_before_is_that_of_its_sample_and_link() {
        const SAMPLES: usize = 20;
        let fading = Fading::new(1_000_000, vec![0.0; SAMPLES]).unwrap();
        for tick_ns in [1, 1_000_000, 3_000_000, 10_000_000_000] {
            let mut reported = ReportedRates::new(&fading, tick_ns);
            for link_bps in [7, 7, 11] {
                reported.follow(link_bps);
                let (mut asked, mut computed) = (0, 0);
                // Each sample twice in turn, samples that share a place between them.
                for sample in (0..4 * SAMPLES).map(|i| i / 2 * 7 % SAMPLES) {
                    let rate_bps = reported.rate_bps(sample, || {
                        computed += 1;
                        link_bps * sample as u64
                    });
                    assert_eq!(rate_bps, link_bps * sample as u64);
                    asked += 1;
                }
                assert!(computed <= asked / 2, "{computed} of {asked}");
            }
        }
    }
}
