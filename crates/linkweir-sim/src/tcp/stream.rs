// SPDX-License-Identifier: BSD-3-Clause
//! What an application writes into a connection, and which bytes each segment carries.
//!
//! The other files of this folder count segments; this one alone knows bytes. Each write begins a new segment, so only
//! the last segment of a write may be short. Linux does the same with `TCP_NODELAY` when a write finds everything before it
//! sent; where data of two writes wait together, Linux would join them in one segment.

use std::collections::VecDeque;

use super::config::Config;

/// The data of one connection.
#[derive(Clone, Debug)]
pub struct Stream {
    mss_bytes: u64,
    /// Writes of which some segment is not acknowledged, oldest first.
    writes: VecDeque<Write>,
    /// Segments supplied so far.
    segments: u64,
    /// Bytes supplied so far.
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    /// Its first segment.
    segment: u64,
    /// Bytes of all writes before it.
    before_bytes: u64,
    bytes: u64,
}

impl Stream {
    /// Nothing is written yet; segment 0 is the SYN, without payload.
    pub fn new(config: &Config) -> Stream {
        Stream {
            mss_bytes: u64::from(config.mss_bytes.max(1)),
            writes: VecDeque::new(),
            segments: 1,
            bytes: 0,
        }
    }

    /// Adds a write; returns the segments it takes.
    pub fn supply(&mut self, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        self.writes.push_back(Write {
            segment: self.segments,
            before_bytes: self.bytes,
            bytes,
        });
        let segments = bytes.div_ceil(self.mss_bytes);
        self.segments += segments;
        self.bytes += bytes;
        segments
    }

    /// Segments supplied so far.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Bytes supplied so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets the writes whose segments are all below `una`.
    pub fn acknowledged(&mut self, una: u64) {
        while let Some(first) = self.writes.front() {
            if first.segment + first.bytes.div_ceil(self.mss_bytes) > una {
                break;
            }
            self.writes.pop_front();
        }
    }

    /// Payload of a segment that is not acknowledged, bytes.
    pub fn segment_bytes(&self, sequence: u64) -> u32 {
        let (from, to) = (
            self.payload_bytes(sequence),
            self.payload_bytes(sequence + 1),
        );
        (to - from) as u32
    }

    /// Payload of the first so many segments, bytes, of which all that are acknowledged must be among them.
    pub fn payload_bytes(&self, segments: u64) -> u64 {
        if segments >= self.segments {
            return self.bytes;
        }
        let after = self
            .writes
            .partition_point(|write| write.segment < segments);
        match after.checked_sub(1).map(|at| self.writes[at]) {
            Some(write) => {
                let bytes = (segments - write.segment) * self.mss_bytes;
                write.before_bytes + bytes.min(write.bytes)
            }
            None => self
                .writes
                .front()
                .map_or(self.bytes, |write| write.before_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Algorithm, Profile, Receiver, Sender};

    #[test]
    fn each_write_begins_a_segment_and_only_its_last_one_is_short() {
        let config = Config {
            mss_bytes: 1000,
            ..Config::new(Algorithm::Cubic, Profile::Linux)
        };
        let mut stream = Stream::new(&config);
        assert_eq!([2500, 0, 1, 2000].map(|n| stream.supply(n)), [3, 0, 1, 2]);
        assert_eq!((stream.segments(), stream.bytes()), (7, 4501));
        let sizes: Vec<u32> = (1..7).map(|n| stream.segment_bytes(n)).collect();
        assert_eq!(sizes, [1000, 1000, 500, 1, 1000, 1000]);
        let sums = [1, 2, 4, 5, 6, 7, 10].map(|n| stream.payload_bytes(n));
        assert_eq!(sums, [0, 1000, 2500, 2501, 3501, 4501, 4501]);
        // With three segments acknowledged the first write is forgotten, and nothing else changes.
        stream.acknowledged(3);
        assert_eq!(stream.writes.len(), 3);
        stream.acknowledged(4);
        assert_eq!(stream.writes.len(), 2);
        assert_eq!(stream.payload_bytes(4), 2500);
        assert_eq!(stream.segment_bytes(4), 1);
        stream.acknowledged(7);
        assert_eq!(stream.payload_bytes(7), 4501);
        assert_eq!(stream.supply(1001), 2);
        assert_eq!([7, 8].map(|n| stream.segment_bytes(n)), [1000, 1]);
    }

    #[test]
    fn the_first_segment_has_no_payload() {
        let mut stream = Stream::new(&Config::new(Algorithm::NewReno, Profile::Ns2));
        assert_eq!(stream.supply(1500), 2);
        let sizes = [0, 1, 2].map(|n| stream.segment_bytes(n));
        assert_eq!(sizes, [0, 1000, 500]);
    }

    #[test]
    fn a_sender_sends_what_is_supplied_and_is_done_until_more_comes() {
        for profile in [Profile::Linux, Profile::Ns2] {
            let config = Config {
                bytes_to_send: Some(0),
                ..Config::new(Algorithm::Cubic, profile)
            };
            let (mut sender, mut receiver) = (Sender::new(&config), Receiver::new(&config));
            let mut stream = Stream::new(&config);
            let mut now_ns = 0;
            let mut sizes = Vec::new();
            for bytes in [100, 40_000, 3_000] {
                sender.supply(now_ns, stream.supply(bytes));
                assert!(!sender.is_done());
                for _ in 0..20 {
                    let mut acks = Vec::new();
                    while let Some(segment) = sender.next_segment(now_ns) {
                        sizes.push(u64::from(stream.segment_bytes(segment.sequence)));
                        acks.extend(receiver.on_segment(now_ns, &segment));
                    }
                    now_ns += 100_000_000;
                    acks.extend(receiver.on_timer(now_ns));
                    for ack in acks {
                        stream.acknowledged(ack.cumulative);
                        sender.on_ack(now_ns, &ack);
                    }
                }
                assert!(sender.is_done(), "{profile:?}");
                assert_eq!(sender.deadline_ns(), None);
                assert_eq!(receiver.delivered_segments(), stream.segments());
            }
            assert_eq!(sizes.iter().sum::<u64>(), 43_100);
            assert_eq!(sender.counters().timeouts, 0);
        }
    }
}
