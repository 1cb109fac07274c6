// SPDX-License-Identifier: BSD-3-Clause
//! A medium lies between the scheduler and the receivers. It decides which packet the device sends next, and what happens to
//! packets that have left the device. The engine is compiled once for each medium, so the path of a plain link has no
//! branches for satellites.

use linkweir_core::Departure;

use crate::experiment::Link;
use crate::random::Random;
use crate::satellite::fading::Fading;
use crate::table::Sink;

use super::bottleneck::Bottleneck;
use super::event;
use super::packet::Packet;
use super::varying::{nanoseconds, Varying};

pub(super) trait Medium {
    /// The channel that a policy may look at: its fading, and the offset of each class in it, ns.
    fn channel(&self) -> Option<(&Fading, &[u64])> {
        None
    }

    /// Schedules the first events that are the medium's own.
    fn begin(&mut self, at: &mut Bottleneck<'_>);

    /// Puts what goes next on the idle device, if there is anything.
    fn pull(&mut self, at: &mut Bottleneck<'_>);

    /// A packet has left the device.
    fn leave(&mut self, at: &mut Bottleneck<'_>, packet: Packet);

    /// Runs an event of its own; returns when it is to run again.
    fn handle(&mut self, at: &mut Bottleneck<'_>, event: u32) -> Option<u64>;

    /// Delay between the sending end of the medium and the receivers, ns. Acknowledgements need it on their way back where
    /// access delays vary, as only a satellite makes them.
    fn receiver_delay_ns(&mut self, now_ns: u64) -> u64;

    /// Totals count from now on.
    fn begin_totals(&mut self, _at: &mut Bottleneck<'_>) {}

    /// Ends the medium's bin of the series.
    ///
    /// # Errors
    /// The sink's.
    fn end_bin(&mut self, _at: &mut Bottleneck<'_>, _sink: &mut dyn Sink) -> Result<(), String> {
        Ok(())
    }

    /// Writes the medium's totals.
    ///
    /// # Errors
    /// The sink's.
    fn finish(&mut self, _at: &mut Bottleneck<'_>, _sink: &mut dyn Sink) -> Result<(), String> {
        Ok(())
    }

    /// Lets an idle device pull packets.
    #[inline]
    fn start_device(&mut self, at: &mut Bottleneck<'_>) {
        // With opportunities, the next one pulls.
        if at.device.is_busy() || at.device.opportunity_ns().is_some() {
            return;
        }
        if let Some(ends_ns) = self.serve(at, false) {
            at.agenda.push(ends_ns, event::SENT);
        }
    }

    /// Begins the next packet of the ring, pulling when it is empty. Returns when the packet will have left.
    #[inline]
    fn serve(&mut self, at: &mut Bottleneck<'_>, follows: bool) -> Option<u64> {
        if !at.device.is_busy() {
            self.pull(at);
        }
        at.device.begin(at.now_ns, follows)
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

impl Medium for PlainLink {
    fn begin(&mut self, _at: &mut Bottleneck<'_>) {}

    #[inline]
    fn pull(&mut self, at: &mut Bottleneck<'_>) {
        for _ in 0..at.experiment.link.ring {
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
    fn leave(&mut self, at: &mut Bottleneck<'_>, packet: Packet) {
        let loss = self.loss.value(at.now_ns);
        if loss > 0.0 && self.random.unit() < loss {
            at.recorder.lost(at.now_ns, &packet);
            return;
        }
        let delay_ns = nanoseconds(self.delay.value(at.now_ns));
        at.send_on(at.now_ns + delay_ns, packet);
    }

    fn handle(&mut self, _at: &mut Bottleneck<'_>, event: u32) -> Option<u64> {
        unreachable!("a plain link has no events of its own, such as {event:#x}")
    }

    fn receiver_delay_ns(&mut self, _now_ns: u64) -> u64 {
        0
    }
}
