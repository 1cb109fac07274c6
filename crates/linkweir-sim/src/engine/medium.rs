// SPDX-License-Identifier: BSD-3-Clause
//! A medium lies between the scheduler and the receivers. It decides which packet the device sends next, and what happens to
//! packets that have left the device. The engine is compiled once for each medium, so the path of a plain link has no
//! branches for satellites.

use linkweir_core::Departure;

use crate::experiment::{Link, Reorder, Signal};
use crate::random::Random;
use crate::satellite::fading::Fading;
use crate::table::Sink;

use super::bottleneck::Bottleneck;
use super::event;
use super::line::DelayLine;
use super::packet::Packet;
use super::varying::{nanoseconds, Varying};

pub(super) trait Medium {
    /// The channel that a policy may look at: its fading, and the offset of each class in it, ns.
    fn channel(&self) -> Option<(&Fading, &[u64])> {
        None
    }

    /// Schedules the first events that are the medium's own.
    fn begin(&mut self, at: &mut Bottleneck);

    /// Puts what goes next on the idle device, if there is anything.
    fn pull(&mut self, at: &mut Bottleneck);

    /// A packet has left the device.
    fn leave(&mut self, at: &mut Bottleneck, packet: Packet);

    /// Runs an event of its own; returns when it is to run again.
    fn handle(&mut self, at: &mut Bottleneck, event: u32) -> Option<u64>;

    /// Delay between the sending end of the medium and the receivers, ns. Acknowledgements need it on their way back where
    /// access delays vary, as only a satellite makes them.
    fn receiver_delay_ns(&mut self, now_ns: u64) -> u64;

    /// Totals count from now on.
    fn begin_totals(&mut self, _at: &mut Bottleneck) {}

    /// Bits offered and carried since this was last asked.
    fn measure(&mut self, at: &mut Bottleneck) -> (f64, f64) {
        at.device.measure(at.now_ns)
    }

    /// Ends the medium's bin of the series.
    ///
    /// # Errors
    /// The sink's.
    fn end_bin(&mut self, _at: &mut Bottleneck, _sink: &mut dyn Sink) -> Result<(), String> {
        Ok(())
    }

    /// Writes the medium's totals.
    ///
    /// # Errors
    /// The sink's.
    fn finish(&mut self, _at: &mut Bottleneck, _sink: &mut dyn Sink) -> Result<(), String> {
        Ok(())
    }

    /// Lets an idle device pull packets.
    #[inline]
    fn start_device(&mut self, at: &mut Bottleneck) {
        // With opportunities, the next one pulls.
        if at.device.is_busy() || at.device.opportunity_ns().is_some() {
            return;
        }
        if let Some(ends_ns) = self.serve(at) {
            at.agenda.push(ends_ns, event::SENT);
        }
    }

    /// Begins the next packet of the ring, pulling when it is empty. Returns when the packet will have left.
    #[inline]
    fn serve(&mut self, at: &mut Bottleneck) -> Option<u64> {
        if !at.device.is_busy() {
            self.pull(at);
        }
        at.device.begin(at.now_ns)
    }
}

/// A wire or a trace of one: every packet arrives after the propagation delay, or is lost at random.
#[derive(Debug)]
pub(super) struct PlainLink {
    delay: Varying,
    loss: Varying,
    random: Random,
}

impl PlainLink {
    pub(super) fn new(link: &Link, seed: u64) -> PlainLink {
        PlainLink {
            delay: Varying::new(&link.delay_s),
            loss: Varying::new(&link.loss),
            random: Random::new(seed, 0),
        }
    }
}

impl PlainLink {
    #[inline]
    fn propagate(&mut self, at: &mut Bottleneck, packet: Packet) {
        let delay_ns = nanoseconds(self.delay.value(at.now_ns));
        at.send_on(at.now_ns + delay_ns, packet);
    }
}

impl Medium for PlainLink {
    fn begin(&mut self, _at: &mut Bottleneck) {}

    #[inline]
    fn pull(&mut self, at: &mut Bottleneck) {
        for _ in 0..at.link.ring {
            let Some(Departure {
                class,
                item,
                bytes,
                sojourn_ns,
                ..
            }) = at.dequeue()
            else {
                break;
            };
            at.recorder.sent(at.now_ns, class, &item, sojourn_ns);
            at.device.ring.push_back((bytes, item));
            if !at.lacking.is_empty() {
                at.refill();
            }
        }
    }

    #[inline]
    fn leave(&mut self, at: &mut Bottleneck, packet: Packet) {
        let loss = self.loss.value(at.now_ns);
        if loss > 0.0 && self.random.unit() < loss {
            at.recorder.lost(at.now_ns, &packet);
            return;
        }
        self.propagate(at, packet);
    }

    fn handle(&mut self, _at: &mut Bottleneck, event: u32) -> Option<u64> {
        unreachable!("a plain link has no events of its own, such as {event:#x}")
    }

    fn receiver_delay_ns(&mut self, _now_ns: u64) -> u64 {
        0
    }
}

/// A plain link that also loses packets in bursts, or holds some back so that later ones overtake them. It is a medium of its own,
/// so that plain links do not pay for it.
#[derive(Debug)]
pub(super) struct ImpairedLink {
    link: PlainLink,
    bursts: Option<Bursts>,
    reorder: Option<Reorder>,
    /// Packets held back; they propagate when they come out.
    held: DelayLine<Packet>,
}

/// The Gilbert model (Gilbert 1960; Elliott 1963, with losses in the bad state only): every packet meets a good or a bad state,
/// is lost in the bad one, and then the state may change. The first state is good.
#[derive(Debug)]
struct Bursts {
    is_bad: bool,
    /// Probability of going from good to bad, and back.
    to_bad: f64,
    to_good: f64,
}

impl Bursts {
    /// Bursts and the gaps between them are geometric, so their means are the inverses of the probabilities.
    fn new(loss: f64, burst_pkts: f64) -> Bursts {
        Bursts {
            is_bad: false,
            to_bad: loss / (1.0 - loss) / burst_pkts,
            to_good: 1.0 / burst_pkts,
        }
    }

    fn is_lost(&mut self, random: &mut Random) -> bool {
        let is_lost = self.is_bad;
        let change = if is_lost { self.to_good } else { self.to_bad };
        if random.unit() < change {
            self.is_bad = !is_lost;
        }
        is_lost
    }
}

impl ImpairedLink {
    pub(super) fn is_needed(link: &Link) -> bool {
        link.loss_burst_pkts.is_some() || link.reorder.is_some()
    }

    pub(super) fn new(link: &Link, seed: u64) -> ImpairedLink {
        let mut plain = PlainLink::new(link, seed);
        let loss = plain.loss.value(0);
        ImpairedLink {
            link: plain,
            bursts: link.loss_burst_pkts.map(|pkts| Bursts::new(loss, pkts)),
            reorder: link.reorder,
            held: DelayLine::new(),
        }
    }

    fn is_lost(&mut self, now_ns: u64) -> bool {
        let random = &mut self.link.random;
        match &mut self.bursts {
            Some(bursts) => bursts.is_lost(random),
            None => {
                let loss = self.link.loss.value(now_ns);
                loss > 0.0 && random.unit() < loss
            }
        }
    }

    /// The delay of what leaves now, and by how much it is held back before.
    pub(super) fn delays_ns(&mut self, now_ns: u64) -> (u64, u64) {
        let delay_ns = nanoseconds(self.link.delay.value(now_ns));
        (delay_ns, self.reorder.map_or(0, |reorder| reorder.delay_ns))
    }

    /// What becomes of the next packet that leaves the device.
    pub(super) fn fate(&mut self, now_ns: u64) -> Fate {
        if self.is_lost(now_ns) {
            return Fate::Lost;
        }
        match self.reorder {
            Some(Reorder { probability, .. }) if self.link.random.unit() < probability => {
                Fate::Held
            }
            _ => Fate::Passes,
        }
    }
}

/// What becomes of a packet behind the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It travels on.
    Passes,
    /// It is lost.
    Lost,
    /// It is held back first.
    Held,
}

/// What becomes of the first `count` packets of a link whose loss does not change, with these random numbers; others can
/// thus lose and hold back the same packets. `None` for a link whose loss changes over time.
pub fn fates(link: &Link, seed: u64, count: usize) -> Option<Vec<Fate>> {
    if !matches!(link.loss, Signal::Constant(_)) {
        return None;
    }
    let mut link = ImpairedLink::new(link, seed);
    Some((0..count).map(|_| link.fate(0)).collect())
}

impl Medium for ImpairedLink {
    fn begin(&mut self, _at: &mut Bottleneck) {}

    fn pull(&mut self, at: &mut Bottleneck) {
        self.link.pull(at);
    }

    fn leave(&mut self, at: &mut Bottleneck, packet: Packet) {
        match self.fate(at.now_ns) {
            Fate::Passes => self.link.propagate(at, packet),
            Fate::Lost => at.recorder.lost(at.now_ns, &packet),
            Fate::Held => {
                let delay_ns = self.reorder.map_or(0, |reorder| reorder.delay_ns);
                let out_ns = at.now_ns + delay_ns;
                // The link may go and be there again before the packet comes out.
                if at.breaks(out_ns) {
                    return at.recorder.lost(at.now_ns, &packet);
                }
                if let Some(first_ns) = self.held.push(out_ns, packet) {
                    at.agenda.push(first_ns, event::HELD_BACK);
                }
            }
        }
    }

    fn handle(&mut self, at: &mut Bottleneck, event: u32) -> Option<u64> {
        debug_assert_eq!(event, event::HELD_BACK);
        let packet = self.held.pop()?;
        self.link.propagate(at, packet);
        self.held.next_ns()
    }

    fn receiver_delay_ns(&mut self, now_ns: u64) -> u64 {
        self.link.receiver_delay_ns(now_ns)
    }
}
