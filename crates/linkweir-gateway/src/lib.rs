// SPDX-License-Identifier: BSD-3-Clause
//! A tunnel over UDP that schedules what it carries with the policies of the core, and an emulator of links to try it on.
//!
//! Everything happens around one [`linkweir_core::Mux`] per peer: packets come from a TUN device, are classified, wait,
//! leave when the peer's capacity has room for them, and are sealed on the way out.
#![forbid(unsafe_code)]

pub mod classify;
pub mod config;
pub mod packet;
