// SPDX-License-Identifier: BSD-3-Clause
//! How a section begins: the version of its format.

/// The beginning of a section, without the version of the format and the byte behind it.
pub(super) const SIGN: [u8; 6] = [0x89, b'L', b'W', b'R', b'E', b'C'];
/// Length of the beginning of a section, bytes.
pub(super) const MAGIC_BYTES: usize = SIGN.len() + 2;

/// The version of a section's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Of a gateway without paths, and of every one before 2026-12.
    One = 1,
    /// Also says what each of several paths to a peer is and sent.
    Two = 2,
}

impl Version {
    /// How a section begins.
    pub(super) fn magic(self) -> [u8; MAGIC_BYTES] {
        let [a, b, c, d, e, f] = SIGN;
        [a, b, c, d, e, f, self as u8, b'\n']
    }

    /// The version of the section that begins here; none: none does, or it is of a later version.
    pub(super) fn of(bytes: &[u8]) -> Option<Version> {
        [Version::One, Version::Two]
            .into_iter()
            .find(|version| bytes.starts_with(&version.magic()))
    }
}
