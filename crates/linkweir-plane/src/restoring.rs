// SPDX-License-Identifier: BSD-3-Clause
//! The receiving end of several paths: each numbered class of the peer in order and once, with bounded time and memory.
//!
//! Numbers belong to an epoch, which the peer's probes name. With another epoch they begin anew; packets of the one before that
//! are still under way are handed out, too, for a while.

use std::collections::BTreeMap;

use linkweir_core::{Arrived, Resequencer, ResequencerCounters, Restoring};

use crate::bytes::numbered::Number;
use crate::bytes::packet;
use crate::tos::{self, Model};

/// Numbers that are remembered of a class: as many as the session's window has, beyond which nothing comes through.
pub const WINDOW: u32 = 8192;
/// How long packets wait for earlier ones where that is not configured, ns.
pub const USUAL_NS: u64 = match linkweir_config::bond::reorder_ns(false) {
    Some(ns) => ns,
    None => 0,
};
/// How long packets of the epoch before are taken, ns.
const FORMER_NS: u64 = 5_000_000_000;

/// A packet without its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The packet.
    pub packet: Box<[u8]>,
    /// The services field of its datagram.
    pub outer_tos: u8,
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It came before.
    Duplicate,
    /// It was given up before it came.
    Late,
    /// Its epoch or its class is not known.
    Unknown,
    /// It was marked on its path and cannot carry the mark, so it counts as lost there (RFC 6040, section 4.2). Its number has not
    /// come: a copy over another path is taken.
    Congested,
}

/// What a probe says of the epoch in which the peer numbers its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is the one in which the peer counts now.
    Known,
    /// It is the one before, whose packets are taken for a while.
    Former,
    /// It has begun.
    New,
    /// It is none: a probe that was sent later has shown another. Somebody has kept this one.
    Stale,
}

/// Counters of one epoch.
#[derive(Debug)]
struct Epoch {
    number: u32,
    streams: BTreeMap<u8, Resequencer<Held>>,
}

/// What comes from a peer over several paths.
#[derive(Debug)]
pub struct Restorer {
    /// How long packets of each class wait, ns.
    waits_ns: Vec<u64>,
    /// Most bytes that are held, of all classes and both epochs, and how many are.
    most_bytes: u64,
    held_bytes: u64,
    now: Option<Epoch>,
    former: Option<Epoch>,
    /// Until when packets of the former epoch are taken, ns.
    former_until_ns: u64,
    /// The session of the latest probe, and when it was sent, on the peer's clock, ns.
    latest: Option<(u32, u64)>,
    /// What was counted in earlier epochs.
    before: BTreeMap<u8, ResequencerCounters>,
}

impl Restorer {
    /// A receiver of classes whose packets wait so long, ns, or 0 if only duplicates are dropped; all of them together hold `most_bytes` at most.
    #[must_use]
    pub fn new(waits_ns: Vec<u64>, most_bytes: u64) -> Restorer {
        Restorer {
            waits_ns,
            most_bytes,
            held_bytes: 0,
            now: None,
            former: None,
            former_until_ns: 0,
            latest: None,
            before: BTreeMap::new(),
        }
    }

    /// The epoch in which the peer counts now, as far as is known.
    #[must_use]
    pub fn epoch(&self) -> Option<u32> {
        self.now.as_ref().map(|known| known.number)
    }

    /// When the latest probe was sent, on the peer's clock, ns; 0: none came.
    #[must_use]
    pub fn latest_ns(&self) -> u64 {
        self.latest.map_or(0, |(_, sent_ns)| sent_ns)
    }

    /// Whether a probe that was sent then, in a session with this index, was sent after all others that came. The clock of a
    /// peer that was started again may have begun anew; then so has the session, so times of an earlier session say nothing.
    fn is_latest(&self, (session, sent_ns): (u32, u64)) -> bool {
        self.latest.is_none_or(|(latest, latest_ns)| {
            is_later(session, latest) || session == latest && sent_ns > latest_ns
        })
    }

    /// A probe says that the peer counts in this epoch; it came in a session with this index and was sent at this time, ns, on
    /// the peer's clock. Packets that are held of the last epoch but one are handed to `out`.
    pub fn begin(
        &mut self,
        now_ns: u64,
        epoch: u32,
        (session, sent_ns): (u32, u64),
        out: impl FnMut(Held),
    ) -> Begun {
        let is_latest = self.is_latest((session, sent_ns));
        if is_latest {
            let earlier = self.latest.map(|(latest, _)| latest);
            let latest = earlier.filter(|latest| !is_later(session, *latest));
            self.latest = Some((latest.unwrap_or(session), sent_ns));
        }
        let is = |known: &Option<Epoch>| known.as_ref().is_some_and(|known| known.number == epoch);
        // A probe of the epoch before may come late.
        if is(&self.now) {
            return Begun::Known;
        }
        if is(&self.former) && now_ns < self.former_until_ns {
            return Begun::Former;
        }
        if !is_latest {
            return Begun::Stale;
        }
        self.end_former(out);
        self.former = self.now.take();
        self.former_until_ns = now_ns + FORMER_NS;
        self.now = Some(Epoch {
            number: epoch,
            streams: BTreeMap::new(),
        });
        Begun::New
    }

    fn end_former(&mut self, mut out: impl FnMut(Held)) {
        let Some(former) = self.former.take() else {
            return;
        };
        for (stream, mut resequencer) in former.streams {
            self.held_bytes -= resequencer.held_bytes();
            resequencer.flush(|arrived| {
                if let Arrived::Delivered(held) = arrived {
                    out(held);
                }
            });
            add(
                self.before.entry(stream).or_default(),
                resequencer.counters(),
            );
        }
    }

    /// A packet comes. What may be handed out now is handed to `out`, in order. Returns why it was dropped, if it was. The
    /// congestion mark of a duplicate passes to the packet while that is held, as that of a fragment does (RFC 3168, section 5.3);
    /// what was handed out already stays as it was. A copy that cannot carry its mark is lost, and the mark says nothing of the other
    /// copies: anybody on a path can set it, as the services field of a datagram is not sealed.
    pub fn arrive(
        &mut self,
        now_ns: u64,
        number: Number,
        held: Held,
        mut out: impl FnMut(Held),
    ) -> Option<Dropped> {
        let Restorer {
            waits_ns,
            most_bytes,
            held_bytes,
            now,
            former,
            ..
        } = self;
        let bytes = u32::try_from(held.packet.len()).unwrap_or(u32::MAX);
        let mut epochs = now.iter_mut().chain(former);
        let epoch = epochs.find(|known| known.number == number.epoch);
        let wait_ns = waits_ns.get(usize::from(number.stream));
        let (Some(epoch), Some(wait_ns)) = (epoch, wait_ns) else {
            return Some(Dropped::Unknown);
        };
        let is_marked = held.outer_tos & tos::CE == tos::CE;
        if is_marked && !carries_mark(&held) {
            return Some(Dropped::Congested);
        }
        let resequencer = epoch.streams.entry(number.stream).or_insert_with(|| {
            Resequencer::new(Restoring {
                wait_ns: Some(*wait_ns).filter(|ns| *ns > 0),
                most_pkts: WINDOW,
                most_bytes: *most_bytes,
                window: WINDOW,
            })
        });
        let before_bytes = resequencer.held_bytes();
        let mut dropped = None;
        resequencer.arrive(
            now_ns,
            number.sequence,
            bytes,
            held,
            |arrived| match arrived {
                Arrived::Delivered(held) => out(held),
                Arrived::Duplicate(_) => dropped = Some(Dropped::Duplicate),
                Arrived::Late(_) => dropped = Some(Dropped::Late),
            },
        );
        if is_marked && dropped == Some(Dropped::Duplicate) {
            if let Some(held) = resequencer.held_mut(number.sequence) {
                held.outer_tos |= tos::CE;
            }
        }
        *held_bytes = *held_bytes - before_bytes + resequencer.held_bytes();
        self.make_room(out);
        dropped
    }

    /// Gives up the order of the class that holds most while all hold more than they may.
    fn make_room(&mut self, mut out: impl FnMut(Held)) {
        while self.held_bytes > self.most_bytes {
            let epochs = self.now.iter_mut().chain(&mut self.former);
            let streams = epochs.flat_map(|epoch| epoch.streams.values_mut());
            let Some(most) = streams.max_by_key(|resequencer| resequencer.held_bytes()) else {
                return;
            };
            self.held_bytes -= most.held_bytes();
            most.flush(|arrived| {
                if let Arrived::Delivered(held) = arrived {
                    out(held);
                }
            });
        }
    }

    /// Hands out what must not wait any longer.
    pub fn expire(&mut self, now_ns: u64, mut out: impl FnMut(Held)) {
        for epoch in self.now.iter_mut().chain(&mut self.former) {
            for resequencer in epoch.streams.values_mut() {
                let before_bytes = resequencer.held_bytes();
                resequencer.expire(now_ns, |arrived| {
                    if let Arrived::Delivered(held) = arrived {
                        out(held);
                    }
                });
                self.held_bytes -= before_bytes - resequencer.held_bytes();
            }
        }
        if self.former.is_some() && self.former_until_ns <= now_ns {
            self.end_former(out);
        }
    }

    /// When something must be handed out, ns.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        let epochs = self.now.iter().chain(&self.former);
        let due_ns =
            epochs.flat_map(|epoch| epoch.streams.values().filter_map(Resequencer::due_ns));
        let former_ns = self.former.as_ref().map(|_| self.former_until_ns);
        due_ns.chain(former_ns).min()
    }

    /// How long packets of each class wait, ns. Where packets came already, a longer time holds at once and any other change from
    /// the next epoch on.
    pub fn set_waits(&mut self, waits_ns: Vec<u64>) {
        self.waits_ns = waits_ns;
        for epoch in self.now.iter_mut().chain(&mut self.former) {
            for (stream, resequencer) in &mut epoch.streams {
                if let Some(wait_ns) = self.waits_ns.get(usize::from(*stream)) {
                    resequencer.raise_wait(*wait_ns);
                }
            }
        }
    }

    /// How long packets of a class wait now, ns; 0: not at all.
    #[must_use]
    pub fn wait_ns(&self, class: usize) -> u64 {
        let running = self.now.as_ref().and_then(|epoch| {
            let stream = u8::try_from(class).ok()?;
            epoch.streams.get(&stream)
        });
        match running {
            Some(resequencer) => resequencer.wait_ns().unwrap_or(0),
            None => self.waits_ns.get(class).copied().unwrap_or(0),
        }
    }

    /// Packets of a class that are held now, and their bytes.
    #[must_use]
    pub fn held(&self, class: usize) -> (u64, u64) {
        let streams = self.streams(class);
        streams.fold((0, 0), |(pkts, bytes), resequencer| {
            let held_pkts = u64::from(resequencer.held_pkts());
            (pkts + held_pkts, bytes + resequencer.held_bytes())
        })
    }

    /// What happened to a class of the peer; none: nothing came.
    #[must_use]
    pub fn counters(&self, class: usize) -> Option<ResequencerCounters> {
        let stream = u8::try_from(class).ok()?;
        let before = self.before.get(&stream).copied();
        let mut known = before.is_some();
        let mut all = before.unwrap_or_default();
        for resequencer in self.streams(class) {
            known = true;
            add(&mut all, resequencer.counters());
        }
        known.then_some(all)
    }

    fn streams(&self, class: usize) -> impl Iterator<Item = &Resequencer<Held>> {
        let stream = u8::try_from(class).ok();
        let epochs = self.now.iter().chain(&self.former);
        epochs.filter_map(move |epoch| epoch.streams.get(&stream?))
    }
}

/// Whether a packet can take over the mark of its datagram. One that is no IP packet is dropped elsewhere.
fn carries_mark(held: &Held) -> bool {
    packet::parse(&held.packet).is_none_or(|header| {
        let tos = Model::Out.decapsulate(header.tos, held.outer_tos);
        tos.is_some()
    })
}

/// Whether the session with an index began after one with another: the last byte counts the handshakes, and the others differ
/// when one end was started again.
fn is_later(index: u32, other: u32) -> bool {
    index >> 8 != other >> 8 || (index as u8).wrapping_sub(other as u8) as i8 > 0
}

fn add(all: &mut ResequencerCounters, one: &ResequencerCounters) {
    all.delivered_pkts += one.delivered_pkts;
    all.duplicate_pkts += one.duplicate_pkts;
    all.late_pkts += one.late_pkts;
    all.given_up_pkts += one.given_up_pkts;
    all.reordered_pkts += one.reordered_pkts;
    all.held_pkts += one.held_pkts;
}

#[cfg(test)]
mod tests;
