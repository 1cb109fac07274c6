// SPDX-License-Identifier: BSD-3-Clause
//! What a link knows of the network: where packets go behind it, the ways of the flows that begin at it, and messages.

mod entries;
mod inbox;
mod letters;

pub(super) use entries::{Ends, Entry, First, Hop, Role, StationPlan, Target, UNKNOWN};
pub(super) use inbox::{Arriving, Inbox, Mail, Message, Notice};
pub(super) use letters::Letter;

use linkweir_config::signal::is_out;

use crate::experiment::Outages;
use crate::metrics::Seen;
use crate::network::OnBreak;

use super::packet::Packet;
use letters::{Held, Letters};

/// A link's part of a network.
#[derive(Debug)]
pub(super) struct Station {
    /// Place of the link.
    pub(super) place: u32,
    /// What is known of each entry that crosses the link.
    pub(super) hops: Vec<Option<Hop>>,
    /// The ways of the flows that begin here, by entry.
    ends: Vec<Ends>,
    /// Times at which the link does not exist, and what becomes of its packets then.
    absent: Outages,
    pub(super) on_break: OnBreak,
    /// When the last packet that left the link arrives: none overtakes another.
    pub(super) last_out_ns: u64,
    pub(super) mail: Mail,
    sent_notices: u64,
    pub(super) inbox: Inbox,
    pub(super) letters: Letters,
    pub(super) held: Held,
}

impl Station {
    pub(super) fn new(plan: &StationPlan) -> Box<Station> {
        Box::new(Station {
            place: plan.place,
            hops: plan.entries.iter().map(|entry| entry.hop).collect(),
            ends: plan.ends.clone(),
            absent: plan.absent.clone(),
            on_break: plan.on_break,
            last_out_ns: 0,
            mail: Mail::default(),
            sent_notices: 0,
            inbox: Inbox::new(),
            letters: Letters::default(),
            held: Held::default(),
        })
    }

    /// Whether what the receiver of a flow sends goes by links.
    pub(super) fn has_way_back(&self, entry: usize) -> bool {
        self.ends[entry].has_way_back()
    }

    /// The sum of the return delays of a flow's way at a time, ns.
    pub(super) fn return_delay_ns(&self, entry: usize, now_ns: u64) -> u64 {
        self.ends[entry].return_delay_ns(now_ns)
    }

    /// When the link next goes or is there again: after a time, or at all.
    pub(super) fn next_change_ns(&self, now_ns: Option<u64>) -> Option<u64> {
        let changes = self.absent.iter().flat_map(|(from, until)| [*from, *until]);
        let mut later = changes.skip_while(|ns| now_ns.is_some_and(|now_ns| *ns <= now_ns));
        later.next()
    }

    /// Whether the link does not exist now.
    pub(super) fn is_absent(&self, now_ns: u64) -> bool {
        !self.absent.is_empty() && is_out(&self.absent, now_ns)
    }

    /// Whether a packet that leaves the device now is lost before it arrives, as the link goes.
    #[inline]
    pub(super) fn breaks(&self, now_ns: u64, out_ns: u64) -> bool {
        if self.absent.is_empty() || self.on_break == OnBreak::Deliver {
            return false;
        }
        let next = self.absent.partition_point(|(from, _)| *from <= now_ns);
        let goes = self
            .absent
            .get(next)
            .is_some_and(|(from, _)| *from < out_ns);
        goes || is_out(&self.absent, now_ns)
    }

    /// Whether the entry is that of a flow's ends.
    #[inline]
    pub(super) fn is_end(&self, entry: u32) -> bool {
        (entry as usize) < self.ends.len()
    }

    /// Where a packet goes first that a flow's end lets into the network now.
    #[inline]
    pub(super) fn first(&mut self, packet: &Packet, now_ns: u64) -> Option<Target> {
        let ends = &mut self.ends[packet.flow as usize];
        if packet.has(Packet::LETTER) {
            ends.first_back(now_ns)
        } else {
            ends.first_there(now_ns)
        }
    }

    /// Tells the ends of a flow that they wait for a packet in vain: when it would have arrived at the earliest.
    #[cold]
    pub(super) fn tell(&mut self, now_ns: u64, packet: Seen) {
        let Some(hop) = self.hops[packet.flow as usize] else {
            return;
        };
        let notice = hop.notice(now_ns, (self.place, self.sent_notices), packet);
        self.sent_notices += 1;
        if hop.home == self.place {
            self.inbox.push_notice(notice);
        } else {
            self.mail.notices.push(notice);
        }
    }
}
