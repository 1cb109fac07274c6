// SPDX-License-Identifier: BSD-3-Clause
//! The transmitter behind the scheduler: it pulls a ring of packets at once and sends them one after another.
//!
//! With a rate, a packet occupies the link until the integral of the rate reaches its bits. A packet that begins in the
//! nanosecond in which another ended carries the fraction over, so the rate is exact, also of packets that take less than a
//! nanosecond. With opportunities, a number of bytes may leave at each
//! instant: a packet may need several opportunities, several packets may share one, and bytes without a packet are lost. A
//! beam's carrier has a rate for each terminal.

use std::collections::VecDeque;
use std::sync::Arc;

use linkweir_config::signal::{is_out, Instant, Track};

use crate::experiment::{Capacity, Link, Outages};

use super::carrier::Carrier;
use super::packet::Packet;

/// How far beyond the end of the run transmissions are computed for a scheduler that looks ahead, ns.
const BEYOND_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Device {
    /// Pulled packets, the one being sent in front, with their bytes on the wire.
    pub(super) ring: VecDeque<(u32, Packet)>,
    pace: Pace,
    horizon_ns: u64,
    /// Bits that have left since the start.
    sent_bits: f64,
    /// Bits offered and carried up to the last measurement, and its time.
    measured: Measured,
}

#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    carried: f64,
    offered: f64,
    at_ns: u64,
}

#[derive(Debug)]
enum Pace {
    Rate {
        rate: Track,
        /// A second walker over the rate, for measuring.
        meter: Track,
        /// The packet in front began at this time.
        began: Instant,
        /// When it will end; none if not before the end of the run.
        ends: Option<Instant>,
    },
    Opportunities {
        at_ns: Arc<[u64]>,
        /// Times at which there are none.
        outages: Outages,
        bits_each: f64,
        bytes_each: u32,
        next: usize,
        round_ns: u64,
        /// Bytes of the opportunity under way that no packet has taken yet.
        open_bytes: u32,
        /// Bytes the packet in front still needs.
        left_bytes: u32,
        offered_bits: f64,
    },
    Carrier(Carrier),
}

impl Device {
    /// The transmitter of a link; `terminals` are those of the flows, where it is a beam's. In `outages` it sends nothing.
    pub(super) fn new(
        link: &Link,
        terminals: &[usize],
        outages: Outages,
        horizon_ns: u64,
    ) -> Device {
        let pace = match &link.capacity {
            _ if link.beam.is_some() => Pace::Carrier(Carrier::new(terminals)),
            Capacity::Rate(signal) => Pace::Rate {
                rate: Track::interrupted(signal, &outages),
                meter: Track::interrupted(signal, &outages),
                began: Instant::at(0),
                ends: None,
            },
            Capacity::Opportunities { at_ns, bytes } => Pace::Opportunities {
                at_ns: at_ns.clone(),
                outages,
                bits_each: 8.0 * f64::from(*bytes),
                bytes_each: *bytes,
                next: 0,
                round_ns: 0,
                open_bytes: 0,
                left_bytes: 0,
                offered_bits: 0.0,
            },
        };
        Device {
            ring: VecDeque::with_capacity(link.ring as usize),
            pace,
            horizon_ns,
            sent_bits: 0.0,
            measured: Measured::default(),
        }
    }

    /// Whether packets wait for their time on the link.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        !self.ring.is_empty()
    }

    /// Begins the packet in front, at the end of the one before it if that is in this nanosecond. Returns when it will end.
    #[inline]
    pub(super) fn begin(&mut self, now_ns: u64) -> Option<u64> {
        let (bytes, packet) = self.ring.front()?;
        let bytes = *bytes;
        match &mut self.pace {
            Pace::Rate {
                rate, began, ends, ..
            } => {
                *began = beginning(*ends, now_ns);
                *ends = rate.reaches(*began, 8.0 * f64::from(bytes), self.horizon_ns);
                ends.map(|end| end.ns)
            }
            Pace::Opportunities { left_bytes, .. } => {
                *left_bytes = bytes;
                None
            }
            Pace::Carrier(carrier) => {
                let end_ns = carrier.begin(now_ns, bytes, packet.flow);
                Some(end_ns).filter(|end_ns| *end_ns < self.horizon_ns)
            }
        }
    }

    /// When a packet of so many bytes would have left if it began now, as in [`Device::begin`]; none if that is more than
    /// [`BEYOND_NS`] after the end of the run.
    pub(super) fn would_end(&mut self, now_ns: u64, bytes: u32) -> Option<u64> {
        let horizon_ns = self.horizon_ns.saturating_add(BEYOND_NS);
        match &mut self.pace {
            Pace::Rate { rate, ends, .. } => {
                let begins = beginning(*ends, now_ns);
                let ends = rate.reaches(begins, 8.0 * f64::from(bytes), horizon_ns);
                ends.map(|end| end.ns)
            }
            Pace::Opportunities {
                at_ns,
                outages,
                bytes_each,
                next,
                round_ns,
                open_bytes,
                ..
            } => {
                let mut left_bytes = bytes.saturating_sub(*open_bytes);
                let (mut end_ns, mut next, mut round_ns) = (now_ns, *next, *round_ns);
                while left_bytes > 0 {
                    end_ns = round_ns.saturating_add(at_ns[next]);
                    if end_ns >= horizon_ns {
                        return None;
                    }
                    next += 1;
                    if next == at_ns.len() {
                        next = 0;
                        round_ns = end_ns;
                    }
                    if !is_out(outages, end_ns) {
                        left_bytes = left_bytes.saturating_sub(*bytes_each);
                    }
                }
                Some(end_ns)
            }
            Pace::Carrier(_) => None,
        }
    }

    /// The packet in front has left.
    #[inline]
    pub(super) fn end(&mut self) -> Option<Packet> {
        let (bytes, packet) = self.ring.pop_front()?;
        match &mut self.pace {
            Pace::Rate { .. } => self.sent_bits += 8.0 * f64::from(bytes),
            Pace::Carrier(carrier) => {
                self.sent_bits += 8.0 * f64::from(bytes);
                carrier.end();
            }
            Pace::Opportunities { .. } => {}
        }
        Some(packet)
    }

    /// Takes out all packets; what was sent of the first one stays sent.
    pub(super) fn abort(&mut self, now_ns: u64) -> Vec<Packet> {
        if let (Pace::Rate { meter, began, .. }, Some((bytes, _))) =
            (&mut self.pace, self.ring.front())
        {
            self.sent_bits += meter.sum_from(*began, now_ns).min(8.0 * f64::from(*bytes));
        }
        self.ring.drain(..).map(|(_, packet)| packet).collect()
    }

    /// So many bytes of the opportunity under way are left for what is pulled next.
    pub(super) fn offer(&mut self, budget: u32) {
        if let Pace::Opportunities { open_bytes, .. } = &mut self.pace {
            *open_bytes = budget;
        }
    }

    /// Gives the packet in front some of an opportunity's bytes; whether it leaves with them.
    pub(super) fn spend(&mut self, budget: &mut u32) -> bool {
        let Pace::Opportunities { left_bytes, .. } = &mut self.pace else {
            return false;
        };
        let used = (*budget).min(*left_bytes);
        *budget -= used;
        *left_bytes -= used;
        self.sent_bits += 8.0 * f64::from(used);
        *left_bytes == 0
    }

    /// Time of the next opportunity.
    pub(super) fn opportunity_ns(&self) -> Option<u64> {
        let Pace::Opportunities {
            at_ns,
            next,
            round_ns,
            ..
        } = &self.pace
        else {
            return None;
        };
        at_ns.get(*next).map(|at| round_ns.saturating_add(*at))
    }

    /// Takes the opportunity that is due; returns its bytes.
    pub(super) fn take_opportunity(&mut self, now_ns: u64) -> u32 {
        let Pace::Opportunities {
            at_ns,
            outages,
            bits_each,
            bytes_each,
            next,
            round_ns,
            offered_bits,
            ..
        } = &mut self.pace
        else {
            return 0;
        };
        *next += 1;
        if *next == at_ns.len() {
            *next = 0;
            *round_ns = round_ns.saturating_add(at_ns[at_ns.len() - 1]);
        }
        if is_out(outages, now_ns) {
            return 0;
        }
        *offered_bits += *bits_each;
        *bytes_each
    }

    /// Bits that opportunities have offered since the start.
    pub(super) fn offered_bits(&self) -> f64 {
        match &self.pace {
            Pace::Opportunities { offered_bits, .. } => *offered_bits,
            Pace::Rate { .. } | Pace::Carrier(_) => 0.0,
        }
    }

    /// The carrier, where the link is a beam's.
    pub(super) fn carrier(&mut self) -> Option<&mut Carrier> {
        match &mut self.pace {
            Pace::Carrier(carrier) => Some(carrier),
            Pace::Rate { .. } | Pace::Opportunities { .. } => None,
        }
    }

    /// Time that a beam's carrier has spent on each class since the start, ns.
    pub(super) fn airtimes_ns(&self, now_ns: u64) -> Vec<f64> {
        match &self.pace {
            Pace::Carrier(carrier) => carrier.airtimes_ns(now_ns),
            Pace::Rate { .. } | Pace::Opportunities { .. } => Vec::new(),
        }
    }

    /// Bits offered and carried since this was last asked.
    pub(super) fn measure(&mut self, now_ns: u64) -> (f64, f64) {
        let mut now = Measured {
            carried: self.sent_bits,
            at_ns: now_ns,
            ..self.measured
        };
        let offered = match &mut self.pace {
            Pace::Rate { meter, began, .. } => {
                let offered = meter.sum(self.measured.at_ns, now_ns);
                if let Some((bytes, _)) = self.ring.front() {
                    // The bits of the packet in front that have been sent.
                    now.carried += meter.sum_from(*began, now_ns).min(8.0 * f64::from(*bytes));
                }
                offered
            }
            Pace::Opportunities { offered_bits, .. } => {
                now.offered = *offered_bits;
                now.offered - self.measured.offered
            }
            Pace::Carrier(carrier) => {
                now.offered = carrier.offered_bits(now_ns);
                now.carried += carrier.under_way_bits(now_ns);
                now.offered - self.measured.offered
            }
        };
        let carried = now.carried - self.measured.carried;
        self.measured = now;
        (offered, carried)
    }
}

/// When a packet begins that is pulled now: at the end of the one before it, if that is in this nanosecond.
#[inline]
fn beginning(ends: Option<Instant>, now_ns: u64) -> Instant {
    ends.filter(|end| end.ns == now_ns)
        .unwrap_or(Instant::at(now_ns))
}
