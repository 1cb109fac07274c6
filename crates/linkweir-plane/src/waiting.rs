// SPDX-License-Identifier: BSD-3-Clause
//! A packet in a queue of a link.

use crate::bytes::superpacket::Packet;

/// A packet in a queue.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub(crate) packet: Packet,
    /// Bytes it takes on the link.
    pub(crate) wire_bytes: u32,
    /// Whether the policy marked it when it left: copies of it, and repetitions, are marked as well.
    pub(crate) marked: bool,
}
