// SPDX-License-Identifier: BSD-3-Clause
//! The processes of a network, spread over threads.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use super::cut::Cut;
use super::earliest::{Earliest, NEVER};
use super::inbox::{Message, Notice};
use super::plan::Plan;
use super::process::Process;

/// Where a process is: its partition, and its index there.
type Home = (u32, u32);

/// The processes of one thread.
struct Partition<'p> {
    number: u32,
    processes: Vec<Box<dyn Process<'p> + 'p>>,
    first: Earliest,
    /// For each other partition, what is to go there.
    out: Vec<Parcel>,
    events: u64,
}

/// What goes from one partition to another.
#[derive(Debug, Default)]
struct Parcel {
    messages: Vec<Message>,
    notices: Vec<Notice>,
}

impl Parcel {
    fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.notices.is_empty()
    }

    fn append(&mut self, other: &mut Parcel) {
        self.messages.append(&mut other.messages);
        self.notices.append(&mut other.notices);
    }
}

impl Partition<'_> {
    /// Runs all events before a time.
    fn run_until(&mut self, until_ns: u64, homes: &[Home]) {
        loop {
            let (at_ns, index) = self.first.first();
            if at_ns >= until_ns {
                return;
            }
            let process = &mut self.processes[index as usize];
            process.step();
            self.events += 1;
            let next_ns = process.first_ns();
            self.first.set(index, next_ns);
            self.post(index, homes);
        }
    }

    /// Sends what a process has to send.
    #[inline]
    fn post(&mut self, index: u32, homes: &[Home]) {
        let Some(station) = &mut self.processes[index as usize].at().station else {
            return;
        };
        if station.outbox.is_empty() && station.notices.is_empty() {
            return;
        }
        let mut outbox = std::mem::take(&mut station.outbox);
        for message in outbox.drain(..) {
            let (partition, to) = homes[message.to as usize];
            if partition == self.number {
                self.put(to, &message);
            } else {
                self.out[partition as usize].messages.push(message);
            }
        }
        let Some(station) = &mut self.processes[index as usize].at().station else {
            return;
        };
        station.outbox = outbox;
        if station.notices.is_empty() {
            return;
        }
        for notice in std::mem::take(&mut station.notices) {
            let (partition, to) = homes[notice.to as usize];
            if partition == self.number {
                self.put_notice(to, notice);
            } else {
                self.out[partition as usize].notices.push(notice);
            }
        }
    }

    #[inline]
    fn put(&mut self, index: u32, message: &Message) {
        if let Some(station) = &mut self.processes[index as usize].at().station {
            station.inbox.push(message);
            self.first.lower(index, message.at_ns);
        }
    }

    fn put_notice(&mut self, index: u32, notice: Notice) {
        if let Some(station) = &mut self.processes[index as usize].at().station {
            station.inbox.push_notice(notice);
            self.first.lower(index, notice.at_ns);
        }
    }

    fn take_in(&mut self, parcel: &mut Parcel, homes: &[Home]) {
        for message in parcel.messages.drain(..) {
            self.put(homes[message.to as usize].1, &message);
        }
        for notice in parcel.notices.drain(..) {
            self.put_notice(homes[notice.to as usize].1, notice);
        }
    }
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
        processes: Vec<Box<dyn Process<'p> + 'p>>,
        plan: &Plan,
        threads: usize,
    ) -> Partitions<'p> {
        let cut = Cut::new(plan, threads);
        let mut all: Vec<Vec<Box<dyn Process<'p> + 'p>>> = Vec::new();
        let mut homes = Vec::with_capacity(processes.len());
        for (mut process, partition) in processes.into_iter().zip(&cut.parts) {
            let number = *partition as usize;
            if all.len() <= number {
                all.resize_with(number + 1, Vec::new);
            }
            process.begin();
            homes.push((*partition, all[number].len() as u32));
            all[number].push(process);
        }
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
                out: (0..count).map(|_| Parcel::default()).collect(),
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
    pub(super) fn processes(&mut self) -> Vec<&mut Box<dyn Process<'p> + 'p>> {
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
        processes.map(|process| process.peek().packets).sum()
    }

    /// What each class of each link has sent since the start, in order.
    pub(super) fn sent_bytes(&self) -> impl Iterator<Item = u64> + use<'_, 'p> {
        self.homes.iter().flat_map(|(partition, index)| {
            let process = &self.all[*partition as usize].processes[*index as usize];
            process.peek().recorder.sent_bytes()
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
    parcels: Vec<Mutex<Parcel>>,
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
