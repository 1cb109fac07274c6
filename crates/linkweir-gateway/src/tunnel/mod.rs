// SPDX-License-Identifier: BSD-3-Clause
//! The WireGuard protocol: keys and sessions, limits on handshakes, and the last endpoints of peers.

pub mod admission;
mod attempts;
pub(crate) mod endpoints;
pub(crate) mod indices;
pub mod seal;
