// SPDX-License-Identifier: BSD-3-Clause
//! Bins of time and classes of sizes.

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
