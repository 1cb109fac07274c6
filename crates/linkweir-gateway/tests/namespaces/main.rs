// SPDX-License-Identifier: BSD-3-Clause
//! Real gateways with real devices and sockets, in network namespaces of their own.
//!
//! ```text
//!   here: lw0 10.77.0.1 ── gateway ── out 192.0.2.1 ═══ out 192.0.2.2 ── gateway ── lw0 10.77.0.2 :there
//! ```
//!
//! Nothing is timed: what is asserted are counts, orders and upper bounds. All waits end after [`PATIENCE`].

mod carry;
mod emulated;
mod life;
mod place;
mod sealed;

/// How long anything is waited for.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
