// SPDX-License-Identifier: BSD-3-Clause
//! Numbers of variable length.

/// Appends a number: seven bits in each byte, the lowest first; the upper bit says that more follow.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the beginning; none if there is no whole one, or it is too large.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
