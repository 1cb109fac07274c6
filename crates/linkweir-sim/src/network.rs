// SPDX-License-Identifier: BSD-3-Clause
//! A network to simulate: links, and the ways of flows through them, as plain values in base units.
//!
//! A link is what an [`Experiment`](crate::experiment::Experiment) has: queues behind a policy, a device, a medium, a delay.
//! There are no routers: a packet that leaves a link arrives at the queue of the next link of its way after the delay of the
//! first. An experiment with one link and no queue on the way back stays an `Experiment`.

use std::borrow::Cow;

use crate::experiment::{Class, Flow, Link, Outages, Scheduler};

/// One simulation run over several links.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Name shown in reports.
    pub name: String,
    /// Simulated time, ns.
    pub duration_ns: u64,
    /// Start of the time that totals and distributions cover, ns; series always start at 0.
    pub warmup_ns: u64,
    /// Width of the bins of every series, ns.
    pub interval_ns: u64,
    /// Seed of every random number of the run.
    pub seed: u64,
    /// The links. A run takes them in the order of [`Network::in_order`].
    pub links: Vec<Station>,
    /// Traffic, already expanded: one entry per source.
    pub flows: Vec<Routed>,
    /// What happens to packets under way on a link that goes.
    pub on_break: OnBreak,
    /// Most rows of the log of packets, if there is one.
    pub log_rows: Option<u64>,
}

impl Network {
    /// The same network with its links in the order in which flows first use them, those that none uses behind them. At equal
    /// times events run in this order, so results depend neither on the links' names nor on where the scenario has them.
    #[must_use]
    pub fn in_order(&self) -> Cow<'_, Network> {
        let ways = self.flows.iter().flat_map(Routed::ways);
        let used = ways.flat_map(|way| way.hops.iter().map(|hop| hop.link as usize));
        let mut numbers = vec![None; self.links.len()];
        let mut order = Vec::with_capacity(numbers.len());
        for link in used.chain(0..self.links.len()) {
            // A run refuses a way over a link that there is not.
            if let Some(number @ None) = numbers.get_mut(link) {
                *number = Some(order.len() as u32);
                order.push(link);
            }
        }
        if order.is_sorted() {
            return Cow::Borrowed(self);
        }
        let mut sorted = self.clone();
        sorted.links = order.iter().map(|at| self.links[*at].clone()).collect();
        for way in sorted.flows.iter_mut().flat_map(Routed::ways_mut) {
            for hop in &mut way.hops {
                if let Some(Some(number)) = numbers.get(hop.link as usize) {
                    hop.link = *number;
                }
            }
        }
        Cow::Owned(sorted)
    }
}

/// One link with its scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// Its name. The random numbers of its losses come from the seed and this name, so that another link changes none of them.
    pub name: String,
    /// The link. Its `return_delay_ns` counts for flows that have no way back of their own.
    pub link: Link,
    /// Policy and its parameters.
    pub scheduler: Scheduler,
    /// Classes in queue order: class `i` is the scheduler's queue `i`.
    pub classes: Vec<Class>,
    /// Times of the run at which the link does not exist, as when two satellites are out of sight of each other.
    pub absent: Outages,
}

/// A source, its sink, and its ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed {
    /// The source. Its `class` is the class on the first link of its first way; its `access_delay_ns` lies in front of the first
    /// link, and behind the last one of the way back.
    pub flow: Flow,
    /// Ways there, in the order of time; the first begins at 0. A packet keeps the way it began on.
    pub there: Vec<Way>,
    /// Ways back for acknowledgements and requests. Empty: they take the return delays of the links of the way there, and wait
    /// in no queue.
    pub back: Vec<Way>,
}

impl Routed {
    fn ways(&self) -> impl Iterator<Item = &Way> {
        self.there.iter().chain(&self.back)
    }

    fn ways_mut(&mut self) -> impl Iterator<Item = &mut Way> {
        self.there.iter_mut().chain(&mut self.back)
    }
}

/// A way through the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Packets that reach its first link from this time on take it, ns: an access delay is over then.
    pub from_ns: u64,
    /// The links in turn; none: there is no way at this time, and what comes then is lost.
    pub hops: Vec<Hop>,
}

/// One link of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index of the link.
    pub link: u32,
    /// Index of its class that the packets wait in.
    pub class: u32,
}

/// What happens to packets under way on a link that goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBreak {
    /// Those that wait and those that travel are lost.
    #[default]
    Lose,
    /// Those that travel arrive, and those that wait are still sent; only new ones are lost.
    Deliver,
}
