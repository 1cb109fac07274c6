// SPDX-License-Identifier: BSD-3-Clause
//! The part of the gateway that decides: classes, queues, pace and capacity, and packets as [`bytes`].
//!
//! This crate reads no clock, opens no socket and no file. Callers pass the time in, so tests run in virtual time. It does not
//! depend on the gateway; `clippy.toml` and `tests/boundaries.rs` hold the rule.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod below;
pub mod bytes;
mod capacity;
pub mod classify;
pub mod conveyor;
pub mod deciding;
pub mod echoes;
pub mod feedback;
pub mod hub;
pub mod late_paths;
pub mod link;
pub mod mss;
pub mod pace;
pub mod path_mtu;
pub mod paths;
pub mod recorder;
pub mod reservation;
pub mod restoring;
pub mod routing;
pub mod setup;
mod starved;
pub mod tos;
pub mod underlays;
pub mod waiting;
pub mod waits;
