// SPDX-License-Identifier: BSD-3-Clause
//! The greatest segment a TCP connection through the tunnel may use (RFC 9293, section 3.7.1; RFC 6691): SYN segments that
//! offer more are changed to what fits, in both directions, so that connections do not depend on ICMP messages arriving.

use crate::bytes::packet::{Header, TCP};

const TCP_HEADER_BYTES: usize = 20;
const SYN: u8 = 2;
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;

/// Lowers what a SYN segment offers to what fits into packets of `mtu` bytes; whether something was changed.
pub fn clamp(packet: &mut [u8], header: &Header, mtu: u32) -> bool {
    let first = header.fragment.is_none_or(|fragment| fragment.first);
    if header.protocol != TCP || !first {
        return false;
    }
    let ip_bytes = if header.source.is_ipv4() { 20 } else { 40 };
    let most = mtu.saturating_sub(ip_bytes + TCP_HEADER_BYTES as u32);
    let Ok(most) = u16::try_from(most) else {
        return false;
    };
    let Some(segment) = packet.get_mut(header.payload..) else {
        return false;
    };
    if segment.len() < TCP_HEADER_BYTES || segment[13] & SYN == 0 {
        return false;
    }
    let end = (usize::from(segment[12] >> 4) * 4).min(segment.len());
    let mut at = TCP_HEADER_BYTES;
    let mut changed = false;
    while at < end {
        match segment[at] {
            END => return changed,
            NO_OPERATION => at += 1,
            kind => {
                let Some(&length) = segment[..end].get(at + 1) else {
                    return changed;
                };
                let length = usize::from(length);
                if length < 2 || at + length > end {
                    return changed;
                }
                // Linux takes the last of several.
                if kind == MSS && length == 4 {
                    changed |= lower(segment, at + 2, most);
                }
                at += length;
            }
        }
    }
    changed
}

/// Lowers the value at `at`; the checksum follows by the difference (RFC 1624, equation 3).
fn lower(segment: &mut [u8], at: usize, most: u16) -> bool {
    let offered = u16::from_be_bytes([segment[at], segment[at + 1]]);
    if offered <= most {
        return false;
    }
    segment[at..at + 2].copy_from_slice(&most.to_be_bytes());
    let sum = u16::from_be_bytes([segment[16], segment[17]]);
    let (mut old, mut new) = (offered, most);
    if at % 2 == 1 {
        // The value lies across two words of the sum.
        (old, new) = (old.swap_bytes(), new.swap_bytes());
    }
    let mut changed = u32::from(!sum) + u32::from(!old) + u32::from(new);
    while changed >> 16 != 0 {
        changed = (changed & 0xffff) + (changed >> 16);
    }
    segment[16..18].copy_from_slice(&(!(changed as u16)).to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::packet::tests::{v4, v6};
    use crate::bytes::packet::{checksum, parse};

    /// A segment with these flags and options, and its checksum for the addresses of the test packets.
    fn segment(flags: u8, options: &[u8], v6: bool) -> Vec<u8> {
        let mut segment = vec![
            0, 80, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, flags, 1, 0, 0, 0, 0, 0,
        ];
        segment.extend(options);
        segment[12] = (segment.len() as u8 / 4) << 4;
        let sum = sum(&segment, v6);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        segment
    }

    /// Checksum over a segment and its pseudo header; 0 when the segment's own is right.
    fn sum(segment: &[u8], v6: bool) -> u16 {
        let packet = if v6 {
            self::v6(TCP, 0, segment)
        } else {
            v4(TCP, 0, 0, 0, segment)
        };
        let mut all = if v6 {
            packet[8..40].to_vec()
        } else {
            packet[12..20].to_vec()
        };
        all.extend([0, TCP]);
        all.extend((segment.len() as u16).to_be_bytes());
        all.extend(segment);
        checksum(&all)
    }

    fn clamped(mut packet: Vec<u8>, mtu: u32) -> (bool, Vec<u8>) {
        let header = parse(&packet).unwrap();
        let changed = clamp(&mut packet, &header, mtu);
        (changed, packet[header.payload..].to_vec())
    }

    #[test]
    fn too_large_offers_are_lowered_and_checksums_stay_true() {
        // MSS first, behind a no-operation (at an odd place), and behind window scale and timestamps.
        let places: [&[u8]; 3] = [
            &[2, 4, 5, 180],
            &[1, 2, 4, 5, 180, 1, 1, 1],
            &[
                3, 3, 7, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 5, 180, 0, 0, 0,
            ],
        ];
        for options in places {
            for flags in [SYN, SYN | 16] {
                for v6_too in [false, true] {
                    let segment = segment(flags, options, v6_too);
                    assert_eq!(sum(&segment, v6_too), 0);
                    let packet = if v6_too {
                        v6(TCP, 0, &segment)
                    } else {
                        v4(TCP, 0, 0, 0, &segment)
                    };
                    let (changed, after) = clamped(packet, 1400);
                    assert!(changed);
                    let at = options.windows(2).position(|pair| pair == [2, 4]).unwrap() + 22;
                    let expected: u16 = if v6_too { 1340 } else { 1360 };
                    assert_eq!(after[at..at + 2], expected.to_be_bytes());
                    assert_eq!(sum(&after, v6_too), 0, "{options:?}");
                }
            }
        }
    }

    /// A receiver may take any of several offers; Linux takes the last.
    #[test]
    fn each_of_several_offers_is_lowered() {
        for options in [
            [2, 4, 5, 180, 2, 4, 5, 180],
            [2, 4, 1, 0, 2, 4, 5, 180],
            [2, 4, 5, 180, 2, 4, 1, 0],
        ] {
            let segment = segment(SYN, &options, false);
            let (changed, after) = clamped(v4(TCP, 0, 0, 0, &segment), 1400);
            assert!(changed);
            for at in [22, 26] {
                let offered = u16::from_be_bytes([options[at - 20], options[at - 19]]);
                let expected = offered.min(1360).to_be_bytes();
                assert_eq!(after[at..at + 2], expected, "{options:?}");
            }
            assert_eq!(sum(&after, false), 0, "{options:?}");
        }
        // What follows an offer cannot be read: the offer counts all the same.
        let cut = segment(SYN, &[2, 4, 5, 180, 3, 40, 1, 1], false);
        let (changed, after) = clamped(v4(TCP, 0, 0, 0, &cut), 1400);
        assert!(changed && after[22..24] == 1360_u16.to_be_bytes());
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let fits = segment(SYN, &[2, 4, 5, 80], false); // 1360
        let data = segment(16, &[2, 4, 5, 180], false);
        let none = segment(SYN, &[1, 1, 1, 0], false);
        let after_end = segment(SYN, &[0, 1, 1, 1, 2, 4, 5, 180], false);
        let endless = segment(SYN, &[3, 0, 2, 4], false);
        let cut = segment(SYN, &[1, 1, 1, 2], false);
        let too_long = segment(SYN, &[2, 40, 5, 180], false);
        for segment in [fits, data, none, after_end, endless, cut, too_long] {
            assert_eq!(clamped(v4(TCP, 0, 0, 0, &segment), 1400), (false, segment));
        }
        let syn = segment(SYN, &[2, 4, 5, 180], false);
        assert!(!clamped(v4(crate::bytes::packet::UDP, 0, 0, 0, &syn), 1400).0);
        assert!(
            !clamped(v4(TCP, 0, 0, 100, &syn), 1400).0,
            "a later fragment"
        );
        for end in 0..syn.len() {
            clamped(v4(TCP, 0, 0, 0, &syn[..end]), 1400);
        }
    }
}
