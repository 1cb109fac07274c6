// SPDX-License-Identifier: BSD-3-Clause
//! What people see of a running gateway: its figures, and the ways to ask for them.

pub mod control;
pub mod figures;
mod http;
pub mod metrics;
pub mod page;
mod totals;
