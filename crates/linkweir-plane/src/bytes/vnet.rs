// SPDX-License-Identifier: BSD-3-Clause
//! The header before each packet of a TUN device with offloads: what its sender left to be done (Virtual I/O Device 1.2,
//! section 5.1.6). A TUN device uses the ten bytes without the number of buffers, in the machine's byte order.

/// Bytes of the header.
pub const BYTES: usize = 10;
/// The transport checksum is still to be completed.
pub const NEEDS_CSUM: u8 = 1;
/// One packet.
pub const GSO_NONE: u8 = 0;
/// A super-packet of TCP over IPv4.
pub const GSO_TCPV4: u8 = 1;
/// A super-packet of TCP over IPv6.
pub const GSO_TCPV6: u8 = 4;
/// A super-packet of UDP datagrams over either version.
pub const GSO_UDP_L4: u8 = 5;
/// Flag of the TCP kinds: the sender has reduced its window, which only the first segment reports.
pub const GSO_ECN: u8 = 0x80;

/// The work that the sender left to be done on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// [`NEEDS_CSUM`]; other flags are ignored.
    pub flags: u8,
    /// One of the `GSO_` values.
    pub kind: u8,
    /// Bytes of all headers, a hint.
    pub header_bytes: u16,
    /// Payload of each segment of a super-packet, bytes.
    pub segment_bytes: u16,
    /// Where the transport header begins.
    pub checksum_start: u16,
    /// Where in it the checksum is.
    pub checksum_offset: u16,
}

impl VnetHeader {
    /// Reads the header and what is behind it; none when it is not whole.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(VnetHeader, &[u8])> {
        let (header, packet) = bytes.split_first_chunk::<BYTES>()?;
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let header = VnetHeader {
            flags: header[0],
            kind: header[1],
            header_bytes: word(2),
            segment_bytes: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        };
        Some((header, packet))
    }

    /// The header as it is written.
    #[must_use]
    pub fn bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = self.flags;
        bytes[1] = self.kind;
        let words = [
            self.header_bytes,
            self.segment_bytes,
            self.checksum_start,
            self.checksum_offset,
        ];
        for (place, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_as_written() {
        let header = VnetHeader {
            flags: NEEDS_CSUM,
            kind: GSO_TCPV4,
            header_bytes: 52,
            segment_bytes: 1448,
            checksum_start: 20,
            checksum_offset: 16,
        };
        let mut bytes = header.bytes().to_vec();
        assert_eq!(bytes[..2], [1, 1]);
        assert_eq!(bytes[4..6], 1448_u16.to_ne_bytes());
        bytes.extend([9, 8]);
        assert_eq!(VnetHeader::split(&bytes), Some((header, &[9, 8][..])));
        for end in 0..BYTES {
            assert_eq!(VnetHeader::split(&bytes[..end]), None);
        }
    }
}
