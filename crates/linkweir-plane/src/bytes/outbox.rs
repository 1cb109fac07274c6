// SPDX-License-Identifier: BSD-3-Clause
//! Gathers datagrams into as few system calls as possible. Datagrams of one length to one peer are sent together, with a
//! shorter one as the last. They leave in the order in which they were added.
//!
//! In cleartext mode nothing is copied: the system gathers headers and payloads from where they are.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use crate::bytes::superpacket::Packet;
use crate::bytes::Parts;

/// Most datagrams in one system call that every kernel accepts.
const MOST_DATAGRAMS: usize = 64;
/// Most bytes in one system call: those of the largest IPv4 datagram.
pub const MOST_BYTES: usize = 65_507;
/// Bytes beyond which the outbox should be sent, while they are in the cache.
const FULL_BYTES: usize = 65_536;
/// Calls beyond which it should be sent.
const FULL_CALLS: usize = 64;

/// Where a part of a datagram lies.
#[derive(Clone, Debug)]
enum Part {
    /// In the outbox's own memory.
    Written(Range<usize>),
    /// In the packet with this number.
    Packet(usize, Range<usize>),
}

#[derive(Clone, Copy, Debug)]
struct Datagram {
    first_part: usize,
    bytes: usize,
}

/// What a datagram is sent from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The address of this end that the peer sends to, from which it expects what comes back; none: the system chooses one.
    pub address: Option<IpAddr>,
    /// The number of a device; 0: the one to which the routes lead.
    pub device: u32,
}

/// Where a datagram is sent, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The peer.
    pub station: usize,
    /// Its endpoint.
    pub to: SocketAddr,
    /// What it is sent from.
    pub from: Source,
    /// Differentiated services field.
    pub tos: u8,
}

/// Datagrams of one system call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Where they are sent.
    pub destination: Destination,
    /// Length of each but the last, bytes.
    pub segment_bytes: usize,
    first: usize,
    /// Number of datagrams.
    pub datagrams: usize,
    bytes: usize,
    closed: bool,
}

/// Datagrams that are to be sent.
#[derive(Debug, Default)]
pub struct Outbox {
    written: Vec<u8>,
    packets: Vec<Packet>,
    parts: Vec<Part>,
    datagrams: Vec<Datagram>,
    calls: Vec<Call>,
    /// Calls that were made.
    done: usize,
    bytes: usize,
    scratch: Vec<u8>,
    /// Datagrams sent since the start, and their bytes.
    total: (u64, u64),
}

impl Outbox {
    /// Whether nothing is left to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.done == self.calls.len()
    }

    /// Whether it should be sent before more is added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes >= FULL_BYTES || self.calls.len() >= FULL_CALLS
    }

    /// The packets of `packet` as they are.
    pub fn add_clear(&mut self, destination: Destination, packet: Packet) {
        let number = self.packets.len();
        let header_bytes = packet.header_bytes();
        let cutter = packet.cutter();
        for at in 0..packet.pkts() {
            let first_part = self.parts.len();
            let begin = self.written.len();
            self.written.resize(begin + header_bytes, 0);
            let payload = cutter.cut(at, &mut self.written[begin..]);
            if header_bytes > 0 {
                self.parts.push(Part::Written(begin..begin + header_bytes));
            }
            let bytes = header_bytes + payload.len();
            self.parts.push(Part::Packet(number, payload));
            self.add(destination, Datagram { first_part, bytes });
        }
        self.packets.push(packet);
    }

    /// The packets of `packet`, each sealed by `seal` into memory that is `overhead_bytes` longer; returns how many could
    /// not be sealed.
    pub fn add_sealed(
        &mut self,
        destination: Destination,
        packet: Packet,
        overhead_bytes: usize,
        mut seal: impl FnMut(&[u8], &mut [u8]) -> Option<usize>,
    ) -> usize {
        let header_bytes = packet.header_bytes();
        let cutter = packet.cutter();
        let mut refused = 0;
        for at in 0..packet.pkts() {
            let bytes = packet.pkt_bytes(at);
            let begin = self.written.len();
            self.written.resize(begin + bytes + overhead_bytes, 0);
            let clear = if header_bytes == 0 {
                &packet[..]
            } else {
                self.scratch.resize(bytes, 0);
                let payload = cutter.cut(at, &mut self.scratch[..header_bytes]);
                self.scratch[header_bytes..].copy_from_slice(&packet[payload]);
                &self.scratch[..]
            };
            let Some(bytes) = seal(clear, &mut self.written[begin..]) else {
                self.written.truncate(begin);
                refused += 1;
                continue;
            };
            self.written.truncate(begin + bytes);
            let first_part = self.parts.len();
            self.parts.push(Part::Written(begin..begin + bytes));
            self.add(destination, Datagram { first_part, bytes });
        }
        self.packets.push(packet);
        refused
    }

    fn add(&mut self, destination: Destination, datagram: Datagram) {
        let bytes = datagram.bytes;
        self.bytes += bytes;
        let first = self.datagrams.len();
        self.datagrams.push(datagram);
        if let Some(call) = self.calls[self.done..].last_mut() {
            if call.destination == destination
                && !call.closed
                && bytes <= call.segment_bytes
                && call.datagrams < MOST_DATAGRAMS
                && call.bytes + bytes <= MOST_BYTES
            {
                call.datagrams += 1;
                call.bytes += bytes;
                call.closed = bytes < call.segment_bytes;
                return;
            }
        }
        self.calls.push(Call {
            destination,
            segment_bytes: bytes,
            first,
            datagrams: 1,
            bytes,
            // An empty datagram is the last of its call: nothing is shorter, and several could not be distinguished.
            closed: bytes == 0,
        });
    }

    /// The next call that is to be made.
    #[must_use]
    pub fn call(&self) -> Option<&Call> {
        self.calls.get(self.done)
    }

    /// Where the first `most` datagrams of the next call lie.
    #[must_use]
    pub fn parts(&self, most: usize) -> Parts<'_> {
        let Some(call) = self.call() else {
            return Parts::new();
        };
        let end = call.first + call.datagrams.min(most);
        let begin = self.datagrams[call.first].first_part;
        let end = self
            .datagrams
            .get(end)
            .map_or(self.parts.len(), |datagram| datagram.first_part);
        let slice = |part: &Part| match part {
            Part::Written(place) => &self.written[place.clone()],
            Part::Packet(number, place) => &self.packets[*number][place.clone()],
        };
        let mut parts = Parts::new();
        for part in &self.parts[begin..end] {
            parts.push(IoSlice::new(slice(part)));
        }
        parts
    }

    /// Records that the first `count` datagrams of the next call were sent.
    pub fn sent(&mut self, count: usize) {
        let Some(call) = self.calls.get(self.done) else {
            return;
        };
        let gone = &self.datagrams[call.first..call.first + count];
        self.total.0 += count as u64;
        self.total.1 += gone
            .iter()
            .map(|datagram| datagram.bytes as u64)
            .sum::<u64>();
        self.given_up(count);
    }

    /// Gives up the first `count` datagrams of the next call.
    pub fn given_up(&mut self, count: usize) {
        let Some(call) = self.calls.get_mut(self.done) else {
            return;
        };
        call.first += count;
        call.datagrams -= count;
        if call.datagrams == 0 {
            self.done += 1;
        }
    }

    /// Datagrams sent since the start, and their bytes.
    #[must_use]
    pub fn sent_total(&self) -> (u64, u64) {
        self.total
    }

    /// Bytes of all it holds or has sent since it was empty.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes each datagram of the next call a call of its own, because the system refuses them together.
    pub fn scatter(&mut self) {
        let Some(call) = self.calls.get(self.done).cloned() else {
            return;
        };
        let one = |at: usize| Call {
            first: call.first + at,
            datagrams: 1,
            bytes: self.datagrams[call.first + at].bytes,
            segment_bytes: self.datagrams[call.first + at].bytes,
            closed: true,
            ..call.clone()
        };
        let ones: Vec<Call> = (0..call.datagrams).map(one).collect();
        self.calls.splice(self.done..=self.done, ones);
    }

    /// Renumbers the stations of the calls that are left. Those of a station that is gone are given up.
    pub fn move_stations(&mut self, place: impl Fn(usize) -> Option<usize>) {
        let mut left = self.calls.split_off(self.done);
        left.retain_mut(|call| {
            let place = place(call.destination.station);
            call.destination.station = place.unwrap_or(0);
            place.is_some()
        });
        self.calls.extend(left);
    }

    /// Empties it; the packets go to `recycle`.
    pub fn clear(&mut self, recycle: impl FnMut(Packet)) {
        self.packets.drain(..).for_each(recycle);
        self.written.clear();
        self.parts.clear();
        self.datagrams.clear();
        self.calls.clear();
        self.done = 0;
        self.bytes = 0;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bytes::superpacket::tests::{payload, Flow};

    pub(crate) fn destination(station: usize, tos: u8) -> Destination {
        Destination {
            station,
            to: "192.0.2.2:51820".parse().unwrap(),
            from: Source::default(),
            tos,
        }
    }

    fn packet(bytes: usize, fill: u8) -> Packet {
        Packet::from(&vec![fill; bytes][..])
    }

    /// The calls an outbox would make: station, services field, and the datagrams.
    fn calls(outbox: &mut Outbox) -> Vec<(usize, u8, Vec<Vec<u8>>)> {
        let mut calls = Vec::new();
        while let Some(call) = outbox.call().cloned() {
            let bytes: Vec<u8> = outbox
                .parts(call.datagrams)
                .iter()
                .flat_map(|part| part.to_vec())
                .collect();
            let datagrams: Vec<Vec<u8>> = bytes
                .chunks(call.segment_bytes.max(1))
                .map(<[u8]>::to_vec)
                .collect();
            assert!(bytes.is_empty() || datagrams.len() == call.datagrams);
            calls.push((call.destination.station, call.destination.tos, datagrams));
            outbox.sent(call.datagrams);
        }
        assert!(outbox.is_empty());
        calls
    }

    fn counts(outbox: &mut Outbox) -> Vec<usize> {
        calls(outbox)
            .iter()
            .map(|(_, _, datagrams)| datagrams.len())
            .collect()
    }

    #[test]
    fn datagrams_of_one_length_go_together_with_a_shorter_one_last() {
        let mut outbox = Outbox::default();
        for (at, bytes) in [100, 100, 60, 60, 100, 101].into_iter().enumerate() {
            outbox.add_clear(destination(0, 0), packet(bytes, at as u8));
        }
        let expected = [
            (0, 0, vec![vec![0; 100], vec![1; 100], vec![2; 60]]),
            (0, 0, vec![vec![3; 60]]),
            (0, 0, vec![vec![4; 100]]),
            (0, 0, vec![vec![5; 101]]),
        ];
        assert_eq!(calls(&mut outbox), expected);
    }

    #[test]
    fn another_peer_or_field_is_another_call() {
        let mut outbox = Outbox::default();
        for destination in [
            destination(0, 0),
            destination(0, 0),
            destination(1, 0),
            destination(1, 8),
            destination(1, 8),
            destination(0, 8),
        ] {
            outbox.add_clear(destination, packet(100, 1));
        }
        let calls: Vec<_> = calls(&mut outbox)
            .into_iter()
            .map(|(station, tos, datagrams)| (station, tos, datagrams.len()))
            .collect();
        assert_eq!(calls, [(0, 0, 2), (1, 0, 1), (1, 8, 2), (0, 8, 1)]);
    }

    #[test]
    fn calls_have_bounds() {
        let mut outbox = Outbox::default();
        for _ in 0..150 {
            outbox.add_clear(destination(0, 0), packet(50, 1));
        }
        assert_eq!(counts(&mut outbox), [64, 64, 22]);
        outbox.clear(drop);
        // 44 times 1472 is 64768; 45 times is more than 65507.
        for _ in 0..50 {
            outbox.add_clear(destination(0, 0), packet(1472, 1));
        }
        assert!(outbox.is_full());
        assert_eq!(counts(&mut outbox), [44, 6]);
        outbox.clear(drop);
        assert!(!outbox.is_full());
    }

    #[test]
    fn super_packets_leave_cut_and_sealed_ones_sealed() {
        let flow = Flow::new(false, true, 1000);
        let whole = flow.whole(5, 6, 0x18, &payload(2500), 1000);
        let cut: Vec<Vec<u8>> = whole.split().map(|packet| packet.to_vec()).collect();
        let mut outbox = Outbox::default();
        outbox.add_clear(destination(0, 0), whole.clone());
        assert_eq!(calls(&mut outbox), [(0, 0, cut.clone())]);
        outbox.clear(drop);

        // A seal that turns every bit and puts three bytes behind, and refuses the second packet.
        let mut count = 0;
        let refused = outbox.add_sealed(destination(0, 0), whole, 5, |clear, sealed| {
            count += 1;
            sealed[..clear.len()].copy_from_slice(clear);
            sealed[..clear.len()]
                .iter_mut()
                .for_each(|byte| *byte = !*byte);
            sealed[clear.len()..clear.len() + 3].fill(9);
            (count != 2).then_some(clear.len() + 3)
        });
        assert_eq!(refused, 1);
        let sealed =
            |clear: &[u8]| -> Vec<u8> { clear.iter().map(|byte| !byte).chain([9; 3]).collect() };
        let expected = vec![sealed(&cut[0]), sealed(&cut[2])];
        assert_eq!(calls(&mut outbox), [(0, 0, expected)]);
    }

    #[test]
    fn a_call_the_system_refuses_is_sent_one_by_one() {
        let mut outbox = Outbox::default();
        for fill in 0..5 {
            outbox.add_clear(destination(0, 0), packet(100, fill));
        }
        outbox.add_clear(destination(1, 0), packet(100, 5));
        outbox.sent(1);
        outbox.scatter();
        let expected: Vec<_> = (1..6)
            .map(|fill| (usize::from(fill == 5), 0, vec![vec![fill; 100]]))
            .collect();
        assert_eq!(calls(&mut outbox), expected);
    }

    #[test]
    fn given_up_datagrams_do_not_count_as_sent() {
        let mut outbox = Outbox::default();
        for fill in 0..3 {
            outbox.add_clear(destination(0, 0), packet(100, fill));
        }
        outbox.sent(1);
        outbox.given_up(1);
        assert_eq!(outbox.sent_total(), (1, 100));
        outbox.sent(1);
        assert_eq!(outbox.sent_total(), (2, 200));
        assert!(outbox.is_empty());
    }

    #[test]
    fn unsent_datagrams_follow_their_peer() {
        let mut outbox = Outbox::default();
        for station in [0, 1, 2] {
            outbox.add_clear(destination(station, 0), packet(100, station as u8));
        }
        outbox.sent(1);
        outbox.move_stations(|station| (station == 2).then_some(7));
        assert_eq!(calls(&mut outbox), [(7, 0, vec![vec![2; 100]])]);
        let mut packets = 0;
        outbox.clear(|_| packets += 1);
        assert_eq!(packets, 3);
    }
}
