// SPDX-License-Identifier: BSD-3-Clause
//! The WireGuard protocol: sessions, who may open one, and where peers were last.

pub mod admission;
pub mod endpoints;
pub mod seal;
