// SPDX-License-Identifier: BSD-3-Clause
//! The settings of a link, as plain data. The configuration fills them in; nothing here reads a file.

use linkweir_config::signal::{self, Signal};
use linkweir_core::{Isolation, Limit, PolicyInfo};

/// The policy and its parameters.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// The policy's table in the core.
    pub info: &'static PolicyInfo,
    /// One value per parameter.
    pub params: Vec<u64>,
    /// One row per queue.
    pub qparams: Vec<u64>,
}

/// A class: one queue towards every peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name shown in statistics.
    pub name: String,
    /// Most it may hold, per peer.
    pub limit: Limit,
    /// How its flows are isolated from each other, if they are.
    pub flows: Option<Isolation>,
    /// How it uses the paths to a peer that has several.
    pub uses: Uses,
    /// How long its packets wait at the far end for earlier ones, ns; 0: only duplicates are dropped; none: they are not
    /// numbered.
    pub reorder_ns: Option<u64>,
    /// Whether what a dead path held of it is sent again.
    pub resend: bool,
}

/// How a class uses several paths to a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Uses {
    /// The one with the least delay that has room.
    #[default]
    Best,
    /// Each packet goes over every path.
    All,
    /// The cheapest first, others when that is full.
    Spill,
    /// All of them, packet by packet.
    Stripe,
    /// Those of these names.
    Named(Vec<String>),
}

/// One of several paths to a peer that are used at once.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSetup {
    /// Its name.
    pub name: String,
    /// What it carries.
    pub capacity: Capacity,
    /// Its cost, in any unit.
    pub cost: u32,
}

/// The capacity of a link over time, and who reports changes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The rate, or instants at which packets may leave.
    pub offered: signal::Capacity,
    /// The capacity that the scheduler gets when it starts, bit/s.
    pub nominal_bps: u64,
    /// Whether the scheduler is given every change.
    pub follow: bool,
    /// A program that writes the rate, one line per change.
    pub command: Option<Vec<String>>,
    /// How long a capacity reported by the program or the control socket holds, ns.
    pub stale_ns: Option<u64>,
    /// The capacity from then on, bit/s.
    pub floor_bps: u64,
    /// Bounds on the capacity computed from the far end's reports; none: it is not asked for reports.
    pub feedback: Option<Bounds>,
}

/// Bounds on the capacity that is computed from the far end's reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Least capacity, bit/s.
    pub floor_bps: u64,
    /// Greatest capacity, bit/s.
    pub ceiling_bps: u64,
    /// How much longer than its shortest the way may take, ns.
    pub delay_ns: u64,
    /// Whether the capacity grows only so far that a fall to its lowest value of late makes a short queue.
    pub anticipate: bool,
}

/// The settings from which a link is made.
#[derive(Clone, Copy, Debug)]
pub struct LinkSetup<'c> {
    /// Policy of the queues towards the peer.
    pub scheduler: &'c Scheduler,
    /// Classes in queue order.
    pub classes: &'c [Class],
    /// Capacity of the way to the peer; of several paths, that of all together.
    pub capacity: &'c Capacity,
    /// The paths to it, where several are used at once.
    pub paths: &'c [PathSetup],
    /// Whether the rate of the interface below is measured.
    pub measured: bool,
    /// Whether peers share one link, so that a hub follows what happens to the queues.
    pub shared: bool,
}

/// The length of a packet on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Bytes beyond its own.
    pub overhead_bytes: i64,
    /// Smallest packet as it is accounted, bytes.
    pub mpu_bytes: u32,
}

impl Wire {
    /// Bytes that `pkts` packets of `bytes` in total take on the link: a lower bound where some are smaller than others.
    #[must_use]
    pub fn bytes(self, pkts: u64, bytes: u64) -> f64 {
        let whole = i128::from(bytes) + i128::from(pkts) * i128::from(self.overhead_bytes);
        whole.max(i128::from(pkts) * i128::from(self.mpu_bytes)) as f64
    }

    /// Bytes by which one packet of `bytes` is accounted on the link: 1 at least.
    #[must_use]
    pub fn packet_bytes(self, bytes: usize) -> u32 {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX) + self.overhead_bytes;
        u32::try_from(bytes.max(1))
            .unwrap_or(u32::MAX)
            .max(self.mpu_bytes)
    }

    /// How long a packet of `bytes` occupies a link of so many bit/s, ns.
    #[must_use]
    pub fn packet_ns(self, bytes: usize, link_bps: u64) -> u64 {
        u64::from(self.packet_bytes(bytes)) * 8_000_000_000 / link_bps.max(1)
    }
}

/// One direction of an emulated link.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// The rate, or instants at which packets may leave.
    pub offered: signal::Capacity,
    /// Delay over time, s.
    pub delay_s: Signal,
    /// Greatest additional delay, ns. Each packet's is uniform between 0 and this, and packets keep their order.
    pub jitter_ns: u64,
    /// Probability that a packet is lost behind the queue.
    pub loss: Signal,
    /// Packets that may wait.
    pub limit_pkts: u32,
    /// Bytes added to every packet on the link.
    pub overhead_bytes: i64,
}

#[cfg(test)]
pub(crate) mod tests;
