// SPDX-License-Identifier: BSD-3-Clause
//! The operating system: devices, sockets, privileges, other programs, and waiting.

pub mod command;
pub mod device;
pub mod poll;
pub mod priority;
pub mod privileges;
pub mod service;
pub mod tun;
pub mod underlay;
