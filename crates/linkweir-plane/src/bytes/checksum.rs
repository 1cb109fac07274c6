// SPDX-License-Identifier: BSD-3-Clause
//! Sums of the internet checksum (RFC 1071) over large packets, and of the pseudo headers of TCP and UDP.
//!
//! All values are sums, not yet complemented, of big-endian words, folded to 16 bits.

use crate::bytes::packet::Header;

/// Number of independent sums of 64-bit words, so that an addition need not wait for the carry of the one before.
const SIDE_BY_SIDE: usize = 4;

fn fold(sum: u64) -> u16 {
    // At most 0x1_ffff_fffe, 0x2_fffd, 0x1_0000 and 0xffff.
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The word of 64 bits that `bytes` begin with.
fn word(bytes: &[u8]) -> u128 {
    let word = [
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
    ];
    u128::from(u64::from_ne_bytes(word))
}

/// The sum of `bytes`, with a zero behind an odd number of them.
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    // The sum depends neither on the byte order nor on the word length (RFC 1071, section 2), so words of the machine are
    // summed and the result is swapped. An addition and its carry take half the instructions of vectors of 32 bits in 64,
    // which must be unpacked.
    let mut sums = [0_u128; SIDE_BY_SIDE];
    let mut blocks = bytes.chunks_exact(8 * SIDE_BY_SIDE);
    for block in &mut blocks {
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum += word(&block[8 * at..]);
        }
    }
    let mut whole: u128 = sums.iter().sum();
    let mut words = blocks.remainder().chunks_exact(8);
    for rest in &mut words {
        whole += word(rest);
    }
    // 16 bits each, so that the total cannot overflow.
    let mut total = u64::from(fold(whole as u64)) + u64::from(fold((whole >> 64) as u64));
    let mut rest = words.remainder();
    if let Some((four, behind)) = rest.split_first_chunk() {
        total += u64::from(u32::from_ne_bytes(*four));
        rest = behind;
    }
    if let Some((two, behind)) = rest.split_first_chunk() {
        total += u64::from(u16::from_ne_bytes(*two));
        rest = behind;
    }
    if let [last] = *rest {
        total += u64::from(u16::from_ne_bytes([last, 0]));
    }
    u16::from_be(fold(total))
}

/// The sum of words or of other sums. Each but the last is of an even number of bytes.
#[must_use]
pub fn add<const N: usize>(words: [u16; N]) -> u16 {
    fold(words.into_iter().map(u64::from).sum())
}

/// The sum of the pseudo header of `bytes` of TCP or UDP (RFC 9293, section 3.1; RFC 8200, section 8.1).
#[must_use]
pub fn pseudo_header(packet: &[u8], header: &Header, bytes: usize) -> u16 {
    let v4 = header.source.is_ipv4();
    let addresses = if v4 { &packet[12..20] } else { &packet[8..40] };
    pseudo(addresses, header.protocol, bytes)
}

/// As above, with source and destination address as in a packet.
#[must_use]
pub fn pseudo(addresses: &[u8], protocol: u8, bytes: usize) -> u16 {
    let rest = u64::from(protocol) + (bytes as u64 & 0xffff) + (bytes as u64 >> 16);
    fold(u64::from(sum(addresses)) + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::packet::checksum;

    #[test]
    fn sums_are_those_of_the_words_one_by_one() {
        let bytes: Vec<u8> = (0..3000_u32).map(|at| (at * at / 7 + at) as u8).collect();
        for begin in 0..9 {
            for end in (begin..200).chain(2900..3000) {
                let part = &bytes[begin..end];
                assert_eq!(!sum(part), checksum(part), "{begin}..{end}");
            }
        }
        assert_eq!(sum(&[0xff; 65_535]), !checksum(&[0xff; 65_535]));
    }

    #[test]
    fn sums_add_up() {
        // RFC 1071, section 3: 0001 f203 f4f5 f6f7 sums to ddf2 with two carries.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes), 0xddf2);
        for at in [0, 2, 4, 6, 8] {
            assert_eq!(add([sum(&bytes[..at]), sum(&bytes[at..])]), 0xddf2);
        }
    }

    #[test]
    fn pseudo_headers_hold_addresses_protocol_and_length() {
        // 0a00 + 0001 + 0a00 + 0002 + 0011 + 0008 = 141c.
        assert_eq!(pseudo(&[10, 0, 0, 1, 10, 0, 0, 2], 17, 8), 0x141c);
        assert_eq!(pseudo(&[0; 32], 6, 0x1_0005), 6 + 6);
    }
}
