// SPDX-License-Identifier: BSD-3-Clause
//! Sources other than TCP: open-loop ones, and greedy ones, which keep a number of packets waiting.

mod greedy;
mod open_loop;
mod sizes;

pub(crate) use greedy::Greedy;
pub(crate) use open_loop::Source;
