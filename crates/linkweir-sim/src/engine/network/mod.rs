// SPDX-License-Identifier: BSD-3-Clause
//! Several links: each is an engine of its own, and packets go from one to the next as messages with a time.
//!
//! A link and the two ends of the flows that begin at it are a logical process: it has its own agenda, and its own order of
//! events. What leaves the link is a message to the next process, at the time at which it arrives there. A flow's receiver is
//! with its sender, at the first link of its first way, so what both know needs no message.
//!
//! Order of events: time; then the process, by the link's place; then messages from other processes, by the sender's place
//! and in the order in which it sent them; then the process's own events as with one link. Nothing in this order depends on
//! how processes are spread over threads, so neither does a result.
//!
//! Threads run conservative windows (Chandy and Misra 1979; Bryant 1977): a message between processes of two threads takes at
//! least the *lookahead*, the least delay of the links between them, so everything up to that time after the earliest event
//! of all is known when a window begins. Processes joined by a delay of 0 are in the same thread.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the network as one experiment per link; where packets go behind each |
//! | `ends`, `passing` | sources and receivers at a link; what leaves the link |
//! | `fifo` | the process of a simple link, with an event per packet |
//! | `process`, `earliest` | a link as a process; which process is next |
//! | `partition`, `cut` | the processes of a thread; which process goes to which thread |
//! | `bins` | when tables are written |
//!
//! What a link knows of its network is in `engine/station`.

mod bins;
mod cut;
mod earliest;
mod ends;
mod fifo;
mod partition;
mod passing;
mod plan;
mod process;

use crate::network::Network;
use crate::table::Sink;

use super::{Outcome, RunError};

use bins::NetworkBins;
use partition::Partitions;
use plan::Plan;

/// Simulates a network; its tables go to `sink` as they fill. Results do not depend on `threads`.
///
/// # Errors
/// A network that contradicts itself or that has a part which runs only over one link, parameters that a policy refuses, a
/// sink that refuses a chunk.
pub fn run(network: &Network, threads: usize, sink: &mut dyn Sink) -> Result<Outcome, RunError> {
    run_with((network, true), threads, sink)
}

/// The same; the word says whether links that can be are simple processes.
fn run_with(
    (network, simple): (&Network, bool),
    threads: usize,
    sink: &mut dyn Sink,
) -> Result<Outcome, RunError> {
    let network = &*network.in_order();
    let plan = Plan::new(network).map_err(RunError::Invalid)?;
    // A simple link notes no steps for a log.
    let has_log = network.log_rows.is_some();
    let processes = plan.processes(network, simple && !has_log)?;
    let mut partitions = Partitions::new(processes, (network, &plan), threads);
    let mut bins = NetworkBins::new(network, &plan, &mut partitions);
    let end_ns = network.duration_ns;
    let mut slice = Slice::new(has_log);
    let mut complete = true;
    bins.begin(&mut partitions);
    let mut now_ns = 0;
    loop {
        let boundary_ns = bins.next_ns();
        let until_ns = slice.end_ns(now_ns).min(boundary_ns).min(end_ns);
        let events = partitions.run_until(until_ns);
        slice.took(events);
        now_ns = until_ns;
        if has_log {
            bins.write_log(&mut partitions, sink)
                .map_err(RunError::Sink)?;
        }
        if now_ns == boundary_ns && now_ns < end_ns {
            bins.cross(now_ns, &mut partitions, sink)
                .map_err(RunError::Sink)?;
        }
        let mut sent_bytes = partitions.sent_bytes();
        if sink.progress(now_ns, &mut sent_bytes).is_break() {
            complete = false;
        }
        drop(sent_bytes);
        if !complete || now_ns == end_ns {
            break;
        }
    }
    bins.finish(now_ns, &plan, &mut partitions, sink)
        .map_err(RunError::Sink)?;
    Ok(Outcome {
        complete,
        simulated_ns: now_ns,
        events: partitions.events(),
        packets: partitions.packets(),
        log_cut_ns: bins.log_cut_ns(),
    })
}

/// How long to simulate between two looks at the sink, so that it is asked neither rarely nor all the time.
struct Slice {
    ns: u64,
    /// Events after which to look, about.
    events: u64,
}

impl Slice {
    /// With a log, whose rows wait until the end of a slice, slices are short.
    fn new(has_log: bool) -> Slice {
        Slice {
            ns: 1_000_000,
            events: if has_log { 1 << 16 } else { 1 << 20 },
        }
    }

    fn end_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.ns)
    }

    /// The last slice, or the part of it up to a bin's end, took so many events.
    fn took(&mut self, events: u64) {
        if events < self.events / 2 {
            self.ns = self.ns.saturating_mul(2);
        } else if events > self.events {
            self.ns = (self.ns / 2).max(1);
        }
    }
}
