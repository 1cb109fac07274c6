// SPDX-License-Identifier: BSD-3-Clause
//! A packet, or a train of packets, in a queue.

#[derive(Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) arrival_ns: u64,
    pub(crate) bytes: u32,
    /// Packets in it: more than one in a train.
    pub(crate) pkts: u32,
    pub(crate) item: T,
}
