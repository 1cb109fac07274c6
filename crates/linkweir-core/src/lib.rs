// SPDX-License-Identifier: BSD-3-Clause
//! The scheduler core for Rust: what its policies are ([`policies`]), a safe wrapper of one ([`CorePolicy`]), and the
//! packet queues around it ([`Mux`]), without any input or output.

mod across;
mod bond;
mod core_policy;
mod distribution;
mod ffi;
mod flows;
mod info;
#[cfg(not(target_family = "wasm"))]
mod loaded;
mod maker;
mod mux;
mod policy;
mod recorded_calls;
mod resequencer;
mod waiting;

pub use across::{Across, Event, Nested, Settings};
pub use bond::{
    Bond, BondCounters, Carried, Kept, Path, Paths, Sender, Why, MOST_COPIES, MOST_PATHS,
};
pub use core_policy::{check, in_range, refused, state_size, Adjust, CorePolicy, Fault, Snapshot};
pub use distribution::Distribution;
pub use ffi::Queue;
pub use flows::{Isolation, FLOW_QUEUES};
pub use info::{
    policies, policy, Declaration, Param, PolicyInfo, Stat, Unit, MAX_NOW_NS, MAX_PACKET_BYTES,
    MAX_QUEUES, MAX_RATE_BPS, MIN_RATE_BPS, MOST_DROPS, UNSET,
};
#[cfg(not(target_family = "wasm"))]
pub use loaded::load;
pub use maker::Maker;
pub use mux::{Arrival, Counters, Departure, DropReason, Full, Limit, Mux, Step, TimeLimit};
pub use policy::{Broken, Pick, Policy, Verdict, Victim, View};
pub use recorded_calls::{beginning, Recorded};
pub use resequencer::{Arrived, Resequencer, ResequencerCounters, Restoring};
