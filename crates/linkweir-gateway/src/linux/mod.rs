// SPDX-License-Identifier: BSD-3-Clause
//! The operating system: devices, sockets, privileges, other programs, and waiting.

pub(crate) mod calls;
pub mod command;
pub mod device;
pub(crate) mod echo;
pub mod journal;
pub(crate) mod leads;
mod netlink;
pub(crate) mod network;
pub(crate) mod paths;
pub mod poll;
pub(crate) mod printed;
pub(crate) mod priority;
pub mod privileges;
pub(crate) mod queue;
pub(crate) mod recording_files;
pub(crate) mod service;
pub mod shaper;
pub(crate) mod signals;
mod taken;
pub(crate) mod tun;
pub mod tunnel_socket;
pub(crate) mod watch;
