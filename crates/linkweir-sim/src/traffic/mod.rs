// SPDX-License-Identifier: BSD-3-Clause
//! Sources of packets that need no acknowledgements: open-loop ones, which send whatever happens to their packets, and
//! greedy ones, which keep a number of packets waiting. TCP is in `tcp/`.

mod greedy;
mod open_loop;
mod sizes;

pub(crate) use greedy::Greedy;
pub(crate) use open_loop::Source;
