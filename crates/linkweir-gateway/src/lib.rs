// SPDX-License-Identifier: BSD-3-Clause
//! A tunnel over UDP that schedules what it carries with the policies of the core, and an emulator of links to try it on.
//!
//! Everything happens around one [`linkweir_core::Mux`] per peer: packets come from a TUN device, are classified, wait, and
//! leave over UDP when the peer's capacity has room for them.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod config;
pub mod linux;
pub mod run;
pub mod show;
pub mod tunnel;
