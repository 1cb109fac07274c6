// SPDX-License-Identifier: BSD-3-Clause
//! The processes of a network, spread over threads.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use crate::network::Network;

use super::super::station::{Mail, Message, Notice};
use super::cut::Cut;
use super::earliest::{Earliest, NEVER};
use super::plan::Plan;
use super::process::Process;

/// How far a process may be ahead of the others, ns: what it has sent waits in their inboxes.
const MOST_AHEAD_NS: u64 = 100_000_000;

/// Where a process is: its partition, and its index there.
type Home = (u32, u32);

/// The processes of one thread.
struct Partition<'p> {
    number: u32,
    processes: Vec<Box<dyn Process + 'p>>,
    first: Earliest,
    senders: Senders,
    /// What a process sends; empty between two of them.
    mail: Mail,
    /// For each other partition, what is to go there.
    out: Vec<Mail>,
    events: u64,
}

/// Those of a partition that send to each of its processes.
#[derive(Debug, Default)]
struct Senders {
    all: Vec<Sender>,
    /// The part of `all` for each process. None for a process that shares a moment with another, as a message between them
    /// takes no time: it runs event by event.
    parts: Vec<Option<(u32, u32)>>,
}

impl Senders {
    fn new(senders: Vec<Option<Vec<Sender>>>) -> Senders {
        let mut found = Senders::default();
        for of_one in senders {
            let begin = found.all.len() as u32;
            found.parts.push(of_one.map(|of_one| {
                found.all.extend(of_one);
                (begin, found.all.len() as u32)
            }));
        }
        found
    }

    #[inline]
    fn of(&self, index: u32) -> Option<&[Sender]> {
        let (begin, end) = self.parts[index as usize]?;
        Some(&self.all[begin as usize..end as usize])
    }
}

/// A process that sends messages to another.
#[derive(Clone, Copy, Debug)]
struct Sender {
    index: u32,
    /// The least time of a message, ns.
    delay_ns: u64,
    /// The least time of a message to the sender, ns.
    reached_ns: u64,
}

impl Partition<'_> {
    /// Runs all events before a time.
    fn run_until(&mut self, until_ns: u64, homes: &[Home]) {
        loop {
            let (at_ns, index) = self.first.first();
            if at_ns >= until_ns {
                return;
            }
            let horizon_ns = self.horizon_ns(index, at_ns).min(until_ns);
            let process = &mut self.processes[index as usize];
            let (events, next_ns) = process.run(horizon_ns, &mut self.mail);
            self.events += events;
            self.first.set(index, next_ns);
            self.post(homes);
        }
    }

    /// The time up to which nothing can arrive at the process with the earliest event any more, which is at `at_ns`.
    #[inline]
    fn horizon_ns(&self, index: u32, at_ns: u64) -> u64 {
        let Some(senders) = self.senders.of(index) else {
            return at_ns;
        };
        let horizons = senders.iter().map(|sender| {
            // Nothing else has an event before `at_ns`, so nothing reaches the sender before this.
            let reached_ns = at_ns.saturating_add(sender.reached_ns);
            let acts_ns = self.first.at_ns(sender.index).min(reached_ns);
            acts_ns.saturating_add(sender.delay_ns)
        });
        let most_ns = at_ns.saturating_add(MOST_AHEAD_NS);
        horizons.fold(most_ns, u64::min)
    }

    /// Sends what a process has to send.
    #[inline]
    fn post(&mut self, homes: &[Home]) {
        // Its vectors go back, so that they keep their room.
        let mut mail = std::mem::take(&mut self.mail);
        for message in mail.messages.drain(..) {
            let (partition, to) = homes[message.to as usize];
            if partition == self.number {
                self.put(to, &message);
            } else {
                self.out[partition as usize].messages.push(message);
            }
        }
        for notice in mail.notices.drain(..) {
            let (partition, to) = homes[notice.to as usize];
            if partition == self.number {
                self.put_notice(to, notice);
            } else {
                self.out[partition as usize].notices.push(notice);
            }
        }
        self.mail = mail;
    }

    #[inline]
    fn put(&mut self, index: u32, message: &Message) {
        self.processes[index as usize].inbox().push(message);
        self.first.lower(index, message.at_ns);
    }

    fn put_notice(&mut self, index: u32, notice: Notice) {
        self.processes[index as usize].inbox().push_notice(notice);
        self.first.lower(index, notice.at_ns);
    }

    fn take_in(&mut self, parcel: &mut Mail, homes: &[Home]) {
        for message in parcel.messages.drain(..) {
            self.put(homes[message.to as usize].1, &message);
        }
        for notice in parcel.notices.drain(..) {
            self.put_notice(homes[notice.to as usize].1, notice);
        }
    }
}

/// The senders of each process, by partition and index; see [`Senders`].
fn senders(plan: &Plan, homes: &[Home]) -> Vec<Vec<Option<Vec<Sender>>>> {
    let count = homes.iter().map(|home| home.0 + 1).max().unwrap_or(0);
    let edges = plan.edges();
    let mut reached_ns = vec![NEVER; homes.len()];
    let mut is_alone = vec![true; homes.len()];
    for (from, to, delay_ns) in edges.iter().filter(|edge| edge.0 != edge.1) {
        reached_ns[*to as usize] = reached_ns[*to as usize].min(*delay_ns);
        if *delay_ns == 0 {
            is_alone[*from as usize] = false;
            is_alone[*to as usize] = false;
        }
    }
    let mut all: Vec<Vec<Option<Vec<Sender>>>> = (0..count).map(|_| Vec::new()).collect();
    for ((partition, _), is_alone) in homes.iter().zip(&is_alone) {
        all[*partition as usize].push(is_alone.then(Vec::new));
    }
    for (from, to, delay_ns) in edges.iter().filter(|edge| edge.0 != edge.1) {
        let (sender, receiver) = (homes[*from as usize], homes[*to as usize]);
        if sender.0 != receiver.0 {
            continue;
        }
        if let Some(senders) = &mut all[receiver.0 as usize][receiver.1 as usize] {
            senders.push(Sender {
                index: sender.1,
                delay_ns: *delay_ns,
                reached_ns: reached_ns[*from as usize],
            });
        }
    }
    all
}

/// All processes of a network.
pub(super) struct Partitions<'p> {
    all: Vec<Partition<'p>>,
    /// Of each process, by place.
    homes: Vec<Home>,
    /// A message from one partition to another takes at least this time, ns.
    lookahead_ns: u64,
}

impl<'p> Partitions<'p> {
    pub(super) fn new(
        processes: Vec<Box<dyn Process + 'p>>,
        (network, plan): (&Network, &Plan),
        threads: usize,
    ) -> Partitions<'p> {
        let cut = Cut::new(network, plan, threads.clamp(1, processes.len()));
        let mut all: Vec<Vec<Box<dyn Process + 'p>>> = Vec::new();
        let mut homes = Vec::with_capacity(processes.len());
        for (process, partition) in processes.into_iter().zip(&cut.parts) {
            let number = *partition as usize;
            if all.len() <= number {
                all.resize_with(number + 1, Vec::new);
            }
            homes.push((*partition, all[number].len() as u32));
            all[number].push(process);
        }
        let mut senders = senders(plan, &homes);
        let count = all.len();
        let all = all.into_iter().enumerate();
        let all = all.map(|(number, processes)| {
            let mut first = Earliest::new(processes.len());
            for (index, process) in processes.iter().enumerate() {
                first.set(index as u32, process.first_ns());
            }
            Partition {
                number: number as u32,
                processes,
                first,
                senders: Senders::new(std::mem::take(&mut senders[number])),
                mail: Mail::default(),
                out: (0..count).map(|_| Mail::default()).collect(),
                events: 0,
            }
        });
        Partitions {
            all: all.collect(),
            homes,
            lookahead_ns: cut.lookahead_ns,
        }
    }

    /// Runs all events before a time; returns how many.
    pub(super) fn run_until(&mut self, until_ns: u64) -> u64 {
        let before = self.events();
        if let [one] = self.all.as_mut_slice() {
            one.run_until(until_ns, &self.homes);
        } else {
            self.run_windows(until_ns);
        }
        self.events() - before
    }

    /// The same with a thread for each partition.
    fn run_windows(&mut self, until_ns: u64) {
        let homes = &self.homes;
        let windows = Windows::new(self.all.len(), self.lookahead_ns, until_ns);
        std::thread::scope(|scope| {
            let mut all = self.all.iter_mut();
            let first = all.next();
            for partition in all {
                let windows = &windows;
                scope.spawn(move || windows.run(partition, homes));
            }
            if let Some(first) = first {
                windows.run(first, homes);
            }
        });
        let payload = windows.panicked().take();
        if let Some(payload) = payload {
            panic::resume_unwind(payload);
        }
    }

    /// The processes in the order of their places.
    pub(super) fn processes(&mut self) -> Vec<&mut Box<dyn Process + 'p>> {
        let mut by_place: Vec<_> = self.homes.iter().map(|_| None).collect();
        let mut places: Vec<Vec<usize>> = self.all.iter().map(|_| Vec::new()).collect();
        for (place, (partition, _)) in self.homes.iter().enumerate() {
            places[*partition as usize].push(place);
        }
        for (partition, places) in self.all.iter_mut().zip(&places) {
            for (process, place) in partition.processes.iter_mut().zip(places) {
                by_place[*place] = Some(process);
            }
        }
        by_place.into_iter().flatten().collect()
    }

    /// Events that were run.
    pub(super) fn events(&self) -> u64 {
        self.all.iter().map(|partition| partition.events).sum()
    }

    /// Packets that schedulers handed to links.
    pub(super) fn packets(&self) -> u64 {
        let processes = self.all.iter().flat_map(|partition| &partition.processes);
        processes.map(|process| process.packets()).sum()
    }

    /// What each class of each link has sent since the start, in order.
    pub(super) fn sent_bytes(&self) -> impl Iterator<Item = u64> + use<'_, 'p> {
        self.homes.iter().flat_map(|(partition, index)| {
            let process = &self.all[*partition as usize].processes[*index as usize];
            process.sent_bytes()
        })
    }
}

/// Windows of time that all threads run at once.
struct Windows {
    lookahead_ns: u64,
    until_ns: u64,
    barrier: Barrier,
    /// The earliest event of each partition.
    first_ns: Vec<AtomicU64>,
    /// What each partition is to take in before the next window.
    parcels: Vec<Mutex<Mail>>,
    /// Why a partition ended early, if one did.
    panic: Mutex<Option<Payload>>,
}

/// What a panic carries.
type Payload = Box<dyn Any + Send>;

impl Windows {
    fn new(partitions: usize, lookahead_ns: u64, until_ns: u64) -> Windows {
        Windows {
            lookahead_ns,
            until_ns,
            barrier: Barrier::new(partitions),
            first_ns: (0..partitions).map(|_| AtomicU64::new(NEVER)).collect(),
            parcels: (0..partitions).map(|_| Mutex::default()).collect(),
            panic: Mutex::new(None),
        }
    }

    /// Runs one partition; the others run theirs in threads of their own.
    fn run(&self, partition: &mut Partition<'_>, homes: &[Home]) {
        let number = partition.number as usize;
        loop {
            let own_ns = partition.first.first().0;
            self.first_ns[number].store(own_ns, Ordering::Release);
            self.barrier.wait();
            let all_ns = self.first_ns.iter().map(|ns| ns.load(Ordering::Acquire));
            let first_ns = all_ns.min().unwrap_or(NEVER);
            if first_ns >= self.until_ns {
                return;
            }
            let end_ns = first_ns.saturating_add(self.lookahead_ns);
            self.run_one(partition, end_ns.min(self.until_ns), homes);
            for (to, parcel) in partition.out.iter_mut().enumerate() {
                if !parcel.is_empty() {
                    let all = &self.parcels[to];
                    all.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .append(parcel);
                }
            }
            self.barrier.wait();
            if self.panicked().is_some() {
                return;
            }
            let mut own = self.parcels[number]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            partition.take_in(&mut own, homes);
        }
    }

    /// Runs a window of one partition. A panic, as of a policy that breaks, must reach the other threads, or they would wait.
    fn run_one(&self, partition: &mut Partition<'_>, end_ns: u64, homes: &[Home]) {
        let run = AssertUnwindSafe(|| partition.run_until(end_ns, homes));
        if let Err(payload) = panic::catch_unwind(run) {
            self.panicked().get_or_insert(payload);
        }
    }

    fn panicked(&self) -> MutexGuard<'_, Option<Payload>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
