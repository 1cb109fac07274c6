// SPDX-License-Identifier: BSD-3-Clause
//! What a link knows of the network: where packets go behind it, the ways of the flows that begin at it, and messages.

use crate::metrics::Seen;

use super::super::bottleneck::Bottleneck;
use super::super::event;
use super::super::packet::Packet;
use super::inbox::{Inbox, Message, Notice};
use super::letters::Letters;
use super::plan::{Ends, Hop, StationPlan, Target};

/// A link's part of a network.
#[derive(Debug)]
pub(crate) struct Station {
    /// Place of the link.
    pub(super) place: u32,
    /// What is known of each entry that crosses the link.
    hops: Vec<Option<Hop>>,
    /// The ways of the flows that begin here, by entry.
    ends: Vec<Ends>,
    /// When the last packet that left the link arrives: none overtakes another.
    last_out_ns: u64,
    pub(super) outbox: Vec<Message>,
    pub(super) notices: Vec<Notice>,
    sent_notices: u64,
    pub(super) inbox: Inbox,
    pub(super) letters: Letters,
}

impl Station {
    pub(crate) fn new(plan: &StationPlan) -> Box<Station> {
        Box::new(Station {
            place: plan.place,
            hops: plan.entries.iter().map(|entry| entry.hop).collect(),
            ends: plan.ends.clone(),
            last_out_ns: 0,
            outbox: Vec::new(),
            notices: Vec::new(),
            sent_notices: 0,
            inbox: Inbox::new(plan.lines),
            letters: Letters::default(),
        })
    }

    /// Whether what the receiver of a flow sends goes by links.
    pub(super) fn has_way_back(&self, entry: usize) -> bool {
        self.ends[entry].has_way_back()
    }

    /// The sum of the return delays of a flow's way at a time, ns.
    pub(crate) fn return_delay_ns(&self, entry: usize, now_ns: u64) -> u64 {
        self.ends[entry].return_delay_ns(now_ns)
    }

    /// Whether the entry is that of a flow's ends.
    #[inline]
    pub(super) fn is_end(&self, entry: u32) -> bool {
        (entry as usize) < self.ends.len()
    }

    /// Where a packet that a flow's end creates now goes first.
    #[inline]
    pub(super) fn first(&mut self, packet: &Packet, now_ns: u64) -> Option<Target> {
        let ends = &mut self.ends[packet.flow as usize];
        if packet.has(Packet::LETTER) {
            ends.first_back(now_ns)
        } else {
            ends.first_there(packet.created_ns)
        }
    }

    /// Tells the ends of a flow that they wait for a packet in vain: when it would have arrived at the earliest.
    #[cold]
    fn tell(&mut self, now_ns: u64, packet: Seen) {
        let Some(hop) = self.hops[packet.flow as usize] else {
            return;
        };
        self.notices.push(Notice {
            at_ns: now_ns.saturating_add(hop.rest_ns),
            to: hop.home,
            entry: hop.home_entry,
            from: self.place,
            number: self.sent_notices,
            is_letter: hop.back,
            packet,
        });
        self.sent_notices += 1;
    }
}

impl Bottleneck<'_> {
    /// In a network: sends a packet on to the next link of its way or to its end, which it reaches at `out_ns`.
    #[inline]
    pub(in super::super) fn pass_on(&mut self, out_ns: u64, mut packet: Packet) {
        let Some(station) = &mut self.station else {
            return;
        };
        let out_ns = out_ns.max(station.last_out_ns);
        station.last_out_ns = out_ns;
        let Some(hop) = &station.hops[packet.flow as usize] else {
            return;
        };
        let next = hop.next;
        packet.flow = next.entry;
        if next.place == station.place {
            if let Some(first_ns) = self.propagation.push(out_ns, packet) {
                self.agenda.push(first_ns, event::ARRIVAL);
            }
        } else {
            station.outbox.push(next.message(out_ns, packet));
        }
    }

    /// Whether an entry is that of a flow's ends.
    #[inline]
    pub(super) fn is_end(&self, entry: u32) -> bool {
        self.station
            .as_ref()
            .is_some_and(|station| station.is_end(entry))
    }

    /// Sends notices of the packets that were dropped or lost.
    #[inline]
    pub(super) fn tell_ends(&mut self) {
        let gone = self.recorder.gone();
        if gone.is_empty() {
            return;
        }
        if let Some(station) = &mut self.station {
            for packet in gone.drain(..) {
                station.tell(self.now_ns, packet);
            }
        }
    }
}
