// SPDX-License-Identifier: BSD-3-Clause
//! Packets as bytes: reading, cutting, joining and gathering them. No clock, socket or file.

pub mod checksum;
pub mod coalesce;
pub mod fit;
pub mod numbered;
pub mod outbox;
pub mod packet;
pub mod superpacket;
pub mod vnet;

use std::io::IoSlice;

use smallvec::SmallVec;

/// The parts of what one system call writes. Those of a single packet need no allocated memory.
pub type Parts<'b> = SmallVec<[IoSlice<'b>; 4]>;
