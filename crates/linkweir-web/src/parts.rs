// SPDX-License-Identifier: BSD-3-Clause
//! Lists of byte strings in one: each with its length in front, four bytes, the least significant first.

/// Adds a part.
///
/// # Panics
/// It is 4 GiB or longer.
pub fn add(to: &mut Vec<u8>, part: &[u8]) {
    let bytes = u32::try_from(part.len()).expect("a part is shorter than 4 GiB");
    to.extend(bytes.to_le_bytes());
    to.extend(part);
}

/// The parts; none if the last one is cut off.
#[must_use]
pub fn read(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        found.push(part);
        bytes = rest;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_were_added() {
        let mut bytes = Vec::new();
        add(&mut bytes, b"one");
        add(&mut bytes, b"");
        assert_eq!(bytes, b"\x03\0\0\0one\0\0\0\0");
        assert_eq!(read(&bytes), Some(vec![&b"one"[..], b""]));
        assert_eq!(read(b""), Some(vec![]));
    }

    #[test]
    fn parts_that_are_cut_off_are_refused() {
        assert_eq!(read(b"\x03\0\0\0on"), None);
        assert_eq!(read(b"\x03\0"), None);
    }
}
