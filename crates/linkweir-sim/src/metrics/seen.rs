// SPDX-License-Identifier: BSD-3-Clause
//! Packets as they are measured.

/// A packet as it is seen at one step of its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) flow: u32,
    /// Its own bytes, without the link's overhead.
    pub(crate) bytes: u32,
    pub(crate) created_ns: u64,
    /// Of TCP the number of the segment, otherwise the one from [`super::Recorder::number`].
    pub(crate) number: u64,
    /// TCP: the segment was sent before.
    pub(crate) again: bool,
    /// It carries a congestion mark (CE).
    pub(crate) marked: bool,
    /// If it is of an application: what its connection is called, and the number of the segment in it.
    pub(crate) in_connection: (Address, u64),
}

/// A connection of an application: its place, and which of those at this place it is.
pub(crate) type Address = (u32, u16);

/// A packet as the engine hands it to the recorder. What a watch sees of it is put together only where there is one.
pub(crate) trait Recorded {
    fn flow(&self) -> usize;
    fn bytes(&self) -> u32;
    fn created_ns(&self) -> u64;
    fn seen(&self) -> Seen;
}
