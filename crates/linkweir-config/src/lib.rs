// SPDX-License-Identifier: BSD-3-Clause
//! How inputs are written, the same for simulator and gateway: quantities with units, TOML tables in which every key is
//! read once, faults with file, line, key and cure, values over time, capacity traces, what a link offers, which
//! packets belong to a class, and the parameters of the core's policies, also across users. [`mod@keys`] declares what the keys of both mean.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod across;
pub mod bond;
pub mod fault;
pub mod keys;
pub mod limits;
pub mod link;
pub mod matching;
pub mod parameters;
pub mod placeholders;
pub mod queue;
pub mod reader;
pub mod recording;
pub mod signal;
mod spelling;
mod syntax;
pub mod table;
pub mod trace;
pub mod units;
pub mod values;
mod written;

pub use fault::Fault;
