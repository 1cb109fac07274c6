// SPDX-License-Identifier: BSD-3-Clause
//! A link that peers share. One policy chooses among peers; each peer's own policy chooses among its classes.
//!
//! The policy across peers sees each peer as one queue ([`linkweir_core::Across`]). The rate is that of the channel to it: 0
//! without a session or in an outage, which blocks this peer and no other. The hub adds what a link has and a policy has not:
//! pacing, capacities that expire, and sessions.
//!
//! A packet occupies the link for its length over the channel's rate when it began, as in the simulator's beam, or shorter
//! if the channel becomes faster meanwhile. If all peers have one rate, this is a link of that rate. Each departure looks
//! at every peer once, because a peer's next packet may change as time passes.

use linkweir_config::signal::Instant;
use linkweir_core::{Across, Fault, Pick, Queue, Settings, Verdict, MOST_DROPS};

use crate::bytes::superpacket::Packet;
use crate::capacity::differs;
use crate::link::{Link, Next, LEAST_BPS};
use crate::pace::{Occupied, OWED_NS};
use crate::setup::Scheduler;

/// Shortest time until a link that could send nothing is tried again, ns. It bounds the work where a rate is near 0.
const MIN_RETRY_NS: u64 = 100_000;

/// The scheduler of a link that peers share.
#[derive(Debug)]
pub struct Hub {
    across: Across,
    /// Measured rate of the interface below, bit/s; none before the first measurement.
    below_bps: Option<u64>,
    occupied: Occupied,
    /// The peer of the packet in service, and its bytes.
    in_service: Option<(usize, u32)>,
    /// Time for which each peer's packets occupied the link, ns.
    airtime_ns: Vec<f64>,
    /// No packet of any peer is too old before this time, ns.
    aged_ns: u64,
}

impl Hub {
    /// A free link to peers with these queues. The policy is given `nominal_bps` as its first rate.
    ///
    /// # Errors
    /// Parameters the policy refuses.
    pub fn new(
        now_ns: u64,
        scheduler: &Scheduler,
        nominal_bps: u64,
        queues: Vec<Queue>,
    ) -> Result<Hub, Fault> {
        let npeers = queues.len();
        let across = Across::new(now_ns, nominal_bps, queues, settings(scheduler))?;
        Ok(Hub {
            across,
            below_bps: None,
            occupied: Occupied::new(),
            in_service: None,
            airtime_ns: vec![0.0; npeers],
            aged_ns: now_ns,
        })
    }

    /// Continues for a hub that had other peers, or these in another order; `places` gives the former number of each.
    pub fn take_over(&mut self, before: Hub, places: &[Option<usize>]) {
        self.occupied = before.occupied;
        self.below_bps = before.below_bps;
        let now_at = |old: usize| places.iter().position(|place| *place == Some(old));
        let in_service = before.in_service;
        self.in_service = in_service.and_then(|(old, bytes)| Some((now_at(old)?, bytes)));
        for (airtime_ns, place) in self.airtime_ns.iter_mut().zip(places) {
            *airtime_ns = place.map_or(0.0, |old| before.airtime_ns[old]);
        }
    }

    /// Reports to the policy what happened to the queues towards a peer. The policies of flows are not asked for their next
    /// packets before the link is free.
    pub fn update(&mut self, now_ns: u64, at: usize, link: &mut Link) {
        let head = link.head_so_far(now_ns);
        self.report(now_ns, at, link, head);
    }

    /// As [`Hub::update`], with the packet that goes next.
    fn report(&mut self, now_ns: u64, at: usize, link: &mut Link, head: Option<Queue>) {
        self.aged_ns = self.aged_ns.min(link.aged_ns().unwrap_or(u64::MAX));
        self.across.clock(now_ns);
        if self.across.waiting_pkts() == 0 && self.occupied.free_ns() <= now_ns {
            self.occupied.idle();
        }
        for event in link.events() {
            self.across.happened(at, event, head);
        }
    }

    /// The next packet, and its peer. It occupies the link from now on. After [`MOST_DROPS`] drops without a packet the
    /// answer is [`Next::At`] with the time now, as that of [`Link::next`].
    pub fn next<L: AsMut<Link>>(
        &mut self,
        now_ns: u64,
        links: &mut [L],
        ecn: impl Fn(&Packet) -> bool,
    ) -> (Next, usize) {
        self.across.clock(now_ns);
        self.drop_aged(now_ns, links);
        let (next, at) = self.choose(now_ns, links, ecn);
        (
            next.or_at(Some(self.aged_ns).filter(|ns| *ns != u64::MAX)),
            at,
        )
    }

    /// Drops packets that have waited longer than their class lets them, up to [`MOST_DROPS`] of each peer.
    fn drop_aged<L: AsMut<Link>>(&mut self, now_ns: u64, links: &mut [L]) {
        if now_ns < self.aged_ns {
            return;
        }
        self.aged_ns = u64::MAX;
        for (at, link) in links.iter_mut().enumerate() {
            let link = link.as_mut();
            link.drop_aged(now_ns);
            self.update(now_ns, at, link);
        }
    }

    /// As [`Hub::next`], once nothing that waits is too old.
    fn choose<L: AsMut<Link>>(
        &mut self,
        now_ns: u64,
        links: &mut [L],
        ecn: impl Fn(&Packet) -> bool,
    ) -> (Next, usize) {
        let free_ns = self.occupied.free_ns();
        if now_ns < free_ns {
            return (self.busy_until(now_ns, free_ns, links), 0);
        }
        self.refresh(now_ns, links);
        for _ in 0..MOST_DROPS {
            let at = match self.across.pick() {
                Pick::Queue(at) => at,
                Pick::Nothing { retry_ns } => {
                    self.occupied.idle();
                    return (self.next_wake(now_ns, retry_ns, links), 0);
                }
            };
            let link = links[at].as_mut();
            let can_mark = link.head(now_ns, &ecn).is_some_and(|(_, ecn)| ecn);
            let verdict = self.across.leaving(at, can_mark);
            let taken = match verdict {
                Verdict::Drop => {
                    link.drop_head(now_ns);
                    None
                }
                Verdict::Pass | Verdict::Mark => link.take(now_ns, &ecn),
            };
            let before = self.across.users()[at];
            if taken.is_some() {
                self.update(now_ns, at, link);
            } else {
                // The next pick follows at once.
                let head = link.head(now_ns, |_| false);
                self.report(now_ns, at, link, head.map(|(head, _)| head));
            }
            let after = self.across.users()[at];
            if after.backlog_pkts == before.backlog_pkts {
                // Without this, a faulty policy that names an empty queue would be called for ever.
                debug_assert!(false, "nothing came of the pick");
                return (Next::Nothing, 0);
            }
            let Some((packet, marked)) = taken else {
                continue;
            };
            let bytes = (before.backlog_bytes - after.backlog_bytes) as u32;
            self.begin(now_ns, at, bytes, link);
            return (Next::Send(packet, marked || verdict == Verdict::Mark), at);
        }
        (Next::At(now_ns), 0)
    }

    /// When a packet that was in no queue may be sent to a peer, ns: the link is free and the channel's rate is not zero.
    pub fn free_ns(&self, now_ns: u64, link: &mut Link) -> Option<u64> {
        Some(self.occupied.free_ns().max(link.channel_free_ns(now_ns)?))
    }

    /// Occupies the link, which must be free ([`Hub::free_ns`]), with a packet towards a peer that was in no queue.
    pub fn occupy(&mut self, now_ns: u64, at: usize, bytes: u32, link: &mut Link) {
        debug_assert!(self.occupied.free_ns() <= now_ns, "something is sent");
        if self.across.waiting_pkts() == 0 {
            self.occupied.idle();
        }
        if link.channel_bps(now_ns) > 0 {
            self.begin(now_ns, at, bytes, link);
        }
    }

    /// Begins a packet towards a peer.
    fn begin(&mut self, now_ns: u64, at: usize, bytes: u32, link: &mut Link) {
        let from = self.occupied.begins(now_ns);
        let since = self.occupied.waited_since();
        // Beyond the grace of `begins` the link stood idle although packets waited; a part of that is made good.
        let missed_ns = since.map_or(0.0, |since| from.since(since));
        let mut end = link.finish_time(now_ns, from, bytes);
        let takes_ns = end.since(from);
        let shorter_ns = self.occupied.shorter(takes_ns, missed_ns, OWED_NS as f64);
        if shorter_ns > 0.0 {
            end = from.plus(takes_ns - shorter_ns);
        }
        self.occupied.until(end);
        self.airtime_ns[at] += end.since(from);
        self.in_service = Some((at, bytes));
    }

    /// The answer while the link is occupied: it is free at `free_ns`, or the capacity of the peer in service expires
    /// before.
    fn busy_until<L: AsMut<Link>>(&mut self, now_ns: u64, free_ns: u64, links: &mut [L]) -> Next {
        let in_service = self.in_service;
        let Some((at, link)) =
            in_service.and_then(|(at, _)| Some((at, links.get_mut(at)?.as_mut())))
        else {
            return Next::At(free_ns);
        };
        let expiry_ns = link.or_expiry_ns(free_ns);
        if expiry_ns <= now_ns {
            self.channel_changed(now_ns, at, link);
            return Next::At(self.occupied.free_ns());
        }
        Next::At(expiry_ns)
    }

    /// Applies a new rate of the channel to a peer: its packet in service ends no later than if it began now. A lower rate does not
    /// prolong it, because a modem codes a whole frame for the channel that it knows when the frame begins; the simulator's beam
    /// (`engine/carrier.rs`) keeps that rate, too. The pace of a link is another rule: there what is not yet carried takes its
    /// time at the new rate.
    pub fn channel_changed(&mut self, now_ns: u64, at: usize, link: &mut Link) {
        let rate_bps = link.channel_bps(now_ns);
        if let Some((_, bytes)) = self.in_service.filter(|(of, _)| *of == at && rate_bps > 0) {
            let end = link.finish_time(now_ns, Instant::at(now_ns), bytes);
            self.airtime_ns[at] -= self.occupied.no_later_than(end);
        }
    }

    /// Updates the view: the rate of each peer's channel, its next packet, and the measured rate of the interface below.
    fn refresh<L: AsMut<Link>>(&mut self, now_ns: u64, links: &mut [L]) {
        let mut changed = false;
        let mut below_bps = None;
        for (at, link) in links.iter_mut().enumerate() {
            let link = link.as_mut();
            let rate_bps = link.channel_bps(now_ns);
            below_bps = below_bps.max(link.below_bps(now_ns));
            let head = link.head(now_ns, |_| false).map(|(head, _)| head);
            let known_bps = self.across.users()[at].rate_bps;
            let new_bps = Some(rate_bps).filter(|bps| differs(*bps, known_bps));
            changed |= self.across.show(at, new_bps, head);
        }
        if changed || below_bps != self.below_bps {
            self.below_bps = below_bps;
            let link_bps = self.link_bps();
            if changed || differs(link_bps, self.across.link_bps()) {
                self.across.rated(link_bps);
            }
        }
    }

    /// The link's rate: that of the fastest channel, bit/s. While all are blocked it stays as it was.
    fn link_bps(&self) -> u64 {
        let rates = self.across.users().iter().map(|peer| peer.rate_bps);
        let Some(greatest_bps) = rates.max().filter(|bps| *bps > 0) else {
            return self.across.link_bps();
        };
        let below_bps = self.below_bps.unwrap_or(greatest_bps);
        greatest_bps.min(below_bps).max(LEAST_BPS)
    }

    /// When to try again after nothing could be sent.
    fn next_wake<L: AsMut<Link>>(
        &mut self,
        now_ns: u64,
        retry_ns: Option<u64>,
        links: &mut [L],
    ) -> Next {
        let waiting = links.iter_mut().map(AsMut::as_mut);
        waiting
            .filter(|link| link.waiting_pkts() > 0)
            .filter_map(|link| link.channel_free_ns(now_ns))
            .chain(retry_ns)
            .min()
            .map_or(Next::Nothing, |ns| Next::At(ns.max(now_ns + MIN_RETRY_NS)))
    }

    /// Whether the policy would accept these parameters.
    ///
    /// # Errors
    /// A setting that the policy refuses.
    pub fn accepts(&self, scheduler: &Scheduler) -> Result<(), Fault> {
        self.across.accepts(&scheduler.params, &scheduler.qparams)
    }

    /// Changes the parameters. Queues and credit stay.
    ///
    /// # Errors
    /// Parameters that the running policy refuses; then nothing has changed.
    pub fn change(&mut self, now_ns: u64, scheduler: &Scheduler) -> Result<(), Fault> {
        self.across.clock(now_ns);
        self.across.change(&scheduler.params, &scheduler.qparams)
    }

    /// Time for which a peer's packets occupied the link, ns.
    #[must_use]
    pub fn airtime_ns(&self, at: usize) -> u64 {
        self.airtime_ns[at] as u64
    }

    /// The policy's statistics of a peer.
    pub fn observe(&mut self, now_ns: u64, at: usize, values: &mut [i64]) {
        self.across.clock(now_ns);
        self.across.observe(at, values);
    }
}

/// The policy and its parameters, as the core takes them.
fn settings(scheduler: &Scheduler) -> Settings<'_> {
    Settings {
        info: scheduler.info,
        params: &scheduler.params,
        qparams: &scheduler.qparams,
    }
}

#[cfg(test)]
mod tests;
