// SPDX-License-Identifier: BSD-3-Clause
//! Sums of the internet checksum (RFC 1071) over large packets, and what TCP and UDP sum beside their own bytes.
//!
//! All values are sums, not yet complemented, of big-endian words, folded to 16 bits.

use crate::packet::Header;

/// Words of 64 bits summed side by side, each with the carries of its own: the next need not wait for the one before.
const SIDE_BY_SIDE: usize = 4;

fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of `bytes`, with a zero behind an odd number of them.
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    // Neither the order of bytes within words nor the length of words matters to the sum (RFC 1071, section 2): the machine's
    // own are summed and the result turned. An addition and one of its carry take half the instructions that vectors of
    // 32 bits in 64 take, which must be unpacked.
    let mut sums = [0_u128; SIDE_BY_SIDE];
    let mut blocks = bytes.chunks_exact(8 * SIDE_BY_SIDE);
    for block in &mut blocks {
        for (sum, word) in sums.iter_mut().zip(block.chunks_exact(8)) {
            let word = [
                word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7],
            ];
            *sum += u128::from(u64::from_ne_bytes(word));
        }
    }
    let whole: u128 = sums.iter().sum();
    // 16 bits each, so that the total cannot overflow.
    let mut total = u64::from(fold(whole as u64)) + u64::from(fold((whole >> 64) as u64));
    for pair in blocks.remainder().chunks(2) {
        let word = [pair[0], pair.get(1).copied().unwrap_or(0)];
        total += u64::from(u16::from_ne_bytes(word));
    }
    u16::from_be(fold(total))
}

/// The sum of what two sums are of, the first of an even number of bytes.
#[must_use]
pub fn add(one: u16, two: u16) -> u16 {
    fold(u64::from(one) + u64::from(two))
}

/// The sum of the pseudo header of `bytes` of TCP or UDP (RFC 9293, section 3.1; RFC 8200, section 8.1).
#[must_use]
pub fn pseudo_header(packet: &[u8], header: &Header, bytes: usize) -> u16 {
    let v4 = header.source.is_ipv4();
    let addresses = if v4 { &packet[12..20] } else { &packet[8..40] };
    pseudo(addresses, header.protocol, bytes)
}

/// The same by source and destination address as they stand in a packet.
#[must_use]
pub fn pseudo(addresses: &[u8], protocol: u8, bytes: usize) -> u16 {
    let rest = u64::from(protocol) + (bytes as u64 & 0xffff) + (bytes as u64 >> 16);
    fold(u64::from(sum(addresses)) + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::checksum;

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
            assert_eq!(add(sum(&bytes[..at]), sum(&bytes[at..])), 0xddf2);
        }
    }

    #[test]
    fn pseudo_headers_hold_addresses_protocol_and_length() {
        // 0a00 + 0001 + 0a00 + 0002 + 0011 + 0008 = 141c.
        assert_eq!(pseudo(&[10, 0, 0, 1, 10, 0, 0, 2], 17, 8), 0x141c);
        assert_eq!(pseudo(&[0; 32], 6, 0x1_0005), 6 + 6);
    }
}
