// SPDX-License-Identifier: BSD-3-Clause
//! Event simulator of links whose capacity changes: a scheduler of the core between sources, TCP among them, and a
//! link that fades.
//!
//! An [`Experiment`](experiment::Experiment) says what to simulate; [`run`] simulates it and hands result tables to a
//! [`Sink`](table::Sink) while it goes on. The same experiment gives the same bytes on any machine.
#![forbid(unsafe_code)]

pub mod experiment;
pub mod scenario;
pub mod table;
pub mod tcp;

mod engine;
mod metrics;
mod random;
mod signal;
mod traffic;

pub use engine::{run, Outcome, RunError};
