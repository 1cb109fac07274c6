// SPDX-License-Identifier: BSD-3-Clause
//! A tunnel over UDP that schedules what it carries with the policies of the core, and an emulator of links to try it on.
//!
//! Everything happens around one [`linkweir_core::Mux`] per peer: packets come from a TUN device, are classified, wait, and
//! leave over UDP when the peer's capacity has room for them.
#![forbid(unsafe_code)]

pub mod admission;
pub mod below;
pub mod checksum;
pub mod classify;
pub mod coalesce;
pub mod command;
pub mod config;
pub mod control;
pub mod conveyor;
pub mod device;
pub mod emulate;
pub mod endpoints;
pub mod feedback;
pub mod http;
pub mod hub;
pub mod link;
pub mod metrics;
pub mod mss;
pub mod outbox;
pub mod pace;
pub mod packet;
pub mod page;
pub mod poll;
pub mod priority;
pub mod privileges;
pub mod routing;
pub mod seal;
pub mod service;
pub mod show;
pub mod station;
pub mod superpacket;
pub mod tos;
pub mod tun;
pub mod underlay;
pub mod up;
pub mod vnet;
