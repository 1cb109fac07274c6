// SPDX-License-Identifier: BSD-3-Clause
//! Recordings: what a gateway's flight recorder writes, as bytes. `docs/reference/recordings.md` describes the format.
//!
//! A recording is a list of sections; each begins with its [`Version`] and consists of blocks. A block is its length, its
//! checksum and its body, so a file that was cut off is read up to its last whole block, and files behind each other are one
//! recording. The first byte of a body is the kind of the block:
//!
//! * settings: TOML text, what was configured, and the origin of all times of the section;
//! * peer: a number and TOML text, once per peer before its first entry;
//! * counts: what happened, in bins of [`BIN_NS`]: per peer and class what arrived (packets and bytes by size), was sent
//!   and dropped; each change of the capacity; if asked for, each packet that arrived; and where several paths lead to a peer,
//!   what each of them sent, and each change of its capacity and delay;
//! * gap: bins of which nothing is known, because the disk was too slow.

mod bins;
mod entries;
mod frames;
mod numbers;
mod packets;
mod settings;
mod survey;
mod version;

pub use bins::{size_class, BIN_NS, BOUNDS_BYTES, SIZES};
pub use entries::{Cell, Counts, Entry, PathState, Sizes, Writer, MOST_CELL_PKTS};
pub use frames::{capacities, frame, gap, is_recording, peer, read, settings, Block, Damage};
pub use packets::{packets_of, spread, MOST_PKTS};
pub use survey::{stamp, Bin, Recording, Section};
pub use version::Version;

#[cfg(test)]
mod tests;
