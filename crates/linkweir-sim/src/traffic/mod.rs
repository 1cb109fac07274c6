// SPDX-License-Identifier: BSD-3-Clause
//! Sources: open-loop ones, greedy ones, which keep a number of packets waiting, and applications over TCP.

mod action;
mod amount;
mod application;
mod greedy;
mod open_loop;
mod replay;
mod requests;
mod sizes;
mod transfers;
mod video;
mod web;

pub(crate) use action::{Action, Opener};
pub(crate) use application::Session;
pub(crate) use greedy::Greedy;
pub(crate) use open_loop::Source;
pub(crate) use replay::Replay;
