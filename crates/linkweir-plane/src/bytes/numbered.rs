// SPDX-License-Identifier: BSD-3-Clause
//! Numbers of packets that several paths carry, so that the far end can drop duplicates and restore the order.
//!
//! The number is in twelve bytes in front of the packet, inside the tunnel. They look like the beginning of a header of IPv4
//! without length (IHL 0), which no packet of IP has:
//!
//! ```text
//!   0x40 │ stream, 1 byte │ length of all, 2 bytes │ epoch, 4 bytes │ number, 4 bytes │ packet
//! ```

/// Bytes in front of a packet.
pub const HEADER_BYTES: usize = 12;

/// Version 4 of IP with a header of no length.
const FIRST: u8 = 0x40;

/// The shortest packet is a header of IPv4.
const LEAST_PACKET_BYTES: usize = 20;

/// Which packet of a stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The stream: the sender's class.
    pub stream: u8,
    /// A number that the sender drew when it began to count.
    pub epoch: u32,
    /// Its number in the stream, from 0; after the last the next is 0 again.
    pub sequence: u32,
}

impl Number {
    /// Writes the bytes in front of a packet of this length; none: it is too long for them.
    #[must_use]
    pub fn header(self, packet_bytes: usize) -> Option<[u8; HEADER_BYTES]> {
        let whole = u16::try_from(packet_bytes.checked_add(HEADER_BYTES)?).ok()?;
        let mut header = [0; HEADER_BYTES];
        header[..2].copy_from_slice(&[FIRST, self.stream]);
        header[2..4].copy_from_slice(&whole.to_be_bytes());
        header[4..8].copy_from_slice(&self.epoch.to_be_bytes());
        header[8..].copy_from_slice(&self.sequence.to_be_bytes());
        Some(header)
    }

    /// Reads the bytes in front of a packet, which lies behind them; none: they are malformed.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Number> {
        let (header, packet) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [FIRST, stream, high, low, e0, e1, e2, e3, sequence @ ..] = *header else {
            return None;
        };
        let whole = usize::from(u16::from_be_bytes([high, low]));
        let sound = whole == bytes.len() && packet.len() >= LEAST_PACKET_BYTES;
        sound.then_some(Number {
            stream,
            epoch: u32::from_be_bytes([e0, e1, e2, e3]),
            sequence: u32::from_be_bytes(sequence),
        })
    }
}

/// Whether a packet of the tunnel has a number in front of it, well formed or not.
#[must_use]
#[inline]
pub fn is_numbered(packet: &[u8]) -> bool {
    packet.first() == Some(&FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::packet;

    #[test]
    fn a_number_is_in_front_of_its_packet() {
        let number = Number {
            stream: 3,
            epoch: 0x0a0b_0c0d,
            sequence: 0x0102_0304,
        };
        let mut whole = number.header(20).unwrap().to_vec();
        assert_eq!(whole, [0x40, 3, 0, 32, 10, 11, 12, 13, 1, 2, 3, 4]);
        whole.extend([9; 20]);
        assert!(is_numbered(&whole));
        assert_eq!(Number::read(&whole), Some(number));
        assert_eq!(packet::parse(&whole), None, "no packet of IP");
        assert_eq!(number.header(65_523).unwrap()[2..4], [0xff, 0xff]);
        assert_eq!(number.header(65_524), None, "too long");
        assert_eq!(number.header(usize::MAX), None, "too long");
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let number = Number {
            stream: 0,
            epoch: 1,
            sequence: 7,
        };
        let mut whole = number.header(20).unwrap().to_vec();
        whole.extend([0; 20]);
        for bytes in 0..whole.len() {
            assert_eq!(Number::read(&whole[..bytes]), None, "{bytes} bytes");
        }
        for first in (0..=255).filter(|first| *first != FIRST) {
            whole[0] = first;
            assert_eq!(Number::read(&whole), None, "{first}");
        }
        let mut short = number.header(19).unwrap().to_vec();
        short.extend([0; 19]);
        assert_eq!(Number::read(&short), None, "shorter than a header of IPv4");
        short.push(0);
        assert_eq!(Number::read(&short), None, "longer than it says");
    }
}
