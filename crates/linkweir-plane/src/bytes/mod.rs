// SPDX-License-Identifier: BSD-3-Clause
//! Packets as bytes: reading, cutting, joining and gathering them. No clock, socket or file.

pub mod checksum;
pub mod coalesce;
pub mod fit;
pub mod outbox;
pub mod packet;
pub mod superpacket;
pub mod vnet;
