// SPDX-License-Identifier: BSD-3-Clause
//! Recordings: what a gateway's flight recorder writes, as bytes. `docs/reference/recordings.md` describes the format.
//!
//! A recording is a list of sections; each begins with [`MAGIC`] and consists of blocks. A block is its length, its
//! checksum and its body, so a file that was cut off is read up to its last whole block, and files behind each other are one
//! recording. The first byte of a body is the kind of the block:
//!
//! * settings: TOML text, what was configured, and the origin of all times of the section;
//! * peer: a number and TOML text, once per peer before its first entry;
//! * counts: what happened, in bins of [`BIN_NS`]: per peer and class what arrived (packets and bytes by size), was sent
//!   and dropped; each change of the capacity; and, if asked for, each packet that arrived;
//! * gap: bins of which nothing is known, because the disk was too slow.

mod entries;
mod frames;
mod packets;
mod survey;

pub use entries::{Cell, Counts, Entry, Sizes, Writer, MOST_CELL_PKTS};
pub use frames::{frame, gap, is_recording, peer, read, settings, Block, Damage, MAGIC};
pub use packets::{packets_of, spread, MOST_PKTS};
pub use survey::{stamp, Bin, Recording, Section};

/// Length of a bin, ns.
pub const BIN_NS: u64 = 10_000_000;

/// Number of size classes.
pub const SIZES: usize = 24;

/// The smallest packet of each size class, bytes. All but the first are multiples of 16.
pub const BOUNDS_BYTES: [u32; SIZES] = [
    1, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024, 1152, 1280, 1344, 1408,
    1456, 1488, 1520, 1600, 2048,
];

/// The size class of a packet of 16 times so many bytes, up to 2048.
const CLASS_OF: [u8; 128] = class_of();

const fn class_of() -> [u8; 128] {
    let mut classes = [0; 128];
    let mut class = 1;
    while class < SIZES {
        let mut at = BOUNDS_BYTES[class] as usize / 16;
        while at < 128 {
            classes[at] = class as u8;
            at += 1;
        }
        class += 1;
    }
    classes
}

/// The size class of a packet.
#[inline]
#[must_use]
pub fn size_class(bytes: u32) -> usize {
    match CLASS_OF.get((bytes >> 4) as usize) {
        Some(class) => usize::from(*class),
        None => SIZES - 1,
    }
}

#[cfg(test)]
mod tests;
