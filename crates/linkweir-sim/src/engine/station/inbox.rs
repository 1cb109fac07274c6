// SPDX-License-Identifier: BSD-3-Clause
//! Messages on their way to a process, in the order in which it takes them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::super::packet::Packet;
use crate::metrics::Seen;

/// A packet on its way to another process.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Message {
    pub(in super::super) at_ns: u64,
    /// The process, and the line of its inbox.
    pub(in super::super) to: u32,
    pub(in super::super) line: u32,
    pub(in super::super) packet: Packet,
}

/// A packet that the ends of its flow wait for in vain.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Notice {
    pub(in super::super) at_ns: u64,
    /// The process of the ends, and the flow's entry there.
    pub(in super::super) to: u32,
    pub(in super::super) entry: u32,
    /// The process that sends it, and the number of its notices before.
    pub(in super::super) from: u32,
    pub(in super::super) number: u64,
    /// It goes back, and its number is that of a letter.
    pub(in super::super) is_letter: bool,
    pub(in super::super) packet: Seen,
}

/// What a process has sent.
#[derive(Debug, Default)]
pub(in super::super) struct Mail {
    pub(in super::super) messages: Vec<Message>,
    pub(in super::super) notices: Vec<Notice>,
}

impl Mail {
    #[inline]
    pub(in super::super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.notices.is_empty()
    }

    pub(in super::super) fn append(&mut self, other: &mut Mail) {
        self.messages.append(&mut other.messages);
        self.notices.append(&mut other.notices);
    }
}

impl Notice {
    fn key(&self) -> (u64, u32, u64) {
        (self.at_ns, self.from, self.number)
    }
}

impl PartialEq for Notice {
    fn eq(&self, other: &Notice) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Notice {}

impl PartialOrd for Notice {
    fn partial_cmp(&self, other: &Notice) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Notice {
    fn cmp(&self, other: &Notice) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// What is taken out of an inbox.
pub(in super::super) enum Arriving {
    Packet(Packet),
    Notice(Notice),
}

/// Never.
const NEVER: u64 = u64::MAX;

/// How many packets are moved at most to put one in its place.
const MOVED: usize = 64;

/// Packets and notices on their way here. Packets of a line come in the order in which they were sent. At one time, lines go
/// by their number, and notices come last.
///
/// Packets are sorted in one ring. Most come last or nearly so; those that would move many others go into a heap. What each
/// message needs is in one line of a cache, and the next packets are in the lines behind it.
#[derive(Debug)]
#[repr(align(64))]
pub(in super::super) struct Inbox {
    first_ns: u64,
    /// When the last packet arrives that was put last into the ring. What comes later goes behind it, which needs no look at it.
    last_ns: u64,
    /// When the first message of `rare` arrives.
    rare_ns: u64,
    packets: VecDeque<Coming>,
    rare: Option<Box<Rare>>,
}

/// A packet, and when it arrives on which line.
#[derive(Clone, Copy, Debug)]
struct Coming {
    at_ns: u64,
    packet: Packet,
    line: u32,
}

impl Coming {
    #[inline]
    fn key(&self) -> (u64, u32) {
        (self.at_ns, self.line)
    }
}

/// What few messages need.
#[derive(Debug, Default)]
struct Rare {
    notices: BinaryHeap<Reverse<Notice>>,
    /// Packets that are not in the ring. Those of equal time and line are behind those in the ring: a later packet has at
    /// least as many in front of its place.
    far: BinaryHeap<Reverse<Far>>,
    /// Packets put into `far`.
    count: u64,
}

#[derive(Debug)]
struct Far {
    coming: Coming,
    /// How many were put there before.
    number: u64,
}

impl Far {
    fn key(&self) -> (u64, u32, u64) {
        (self.coming.at_ns, self.coming.line, self.number)
    }
}

impl PartialEq for Far {
    fn eq(&self, other: &Far) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Far {}

impl PartialOrd for Far {
    fn partial_cmp(&self, other: &Far) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Far {
    fn cmp(&self, other: &Far) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Rare {
    fn far_key(&self) -> Option<(u64, u32)> {
        self.far.peek().map(|far| far.0.coming.key())
    }

    fn first_ns(&self) -> u64 {
        let notices_ns = self.notices.peek().map_or(NEVER, |next| next.0.at_ns);
        self.far_key().map_or(NEVER, |key| key.0).min(notices_ns)
    }
}

impl Inbox {
    pub(in super::super) fn new() -> Inbox {
        Inbox {
            first_ns: NEVER,
            last_ns: 0,
            rare_ns: NEVER,
            packets: VecDeque::new(),
            rare: None,
        }
    }

    /// When the first message arrives; the end of time if there is none.
    #[inline]
    pub(in super::super) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    #[inline]
    pub(in super::super) fn push(&mut self, message: &Message) {
        let coming = Coming {
            at_ns: message.at_ns,
            packet: message.packet,
            line: message.line,
        };
        self.first_ns = self.first_ns.min(coming.at_ns);
        if coming.at_ns > self.last_ns {
            self.last_ns = coming.at_ns;
            self.packets.push_back(coming);
        } else {
            self.insert(coming);
        }
    }

    /// Puts a packet in its place.
    #[inline(never)]
    fn insert(&mut self, coming: Coming) {
        let key = coming.key();
        let behind = self.packets.iter().rev().take(MOVED + 1);
        let moved = behind.take_while(|other| other.key() > key).count();
        if moved <= MOVED {
            let at = self.packets.len() - moved;
            return self.packets.insert(at, coming);
        }
        self.rare_ns = self.rare_ns.min(coming.at_ns);
        let rare = self.rare.get_or_insert_default();
        let number = rare.count;
        rare.count += 1;
        rare.far.push(Reverse(Far { coming, number }));
    }

    pub(in super::super) fn push_notice(&mut self, notice: Notice) {
        self.first_ns = self.first_ns.min(notice.at_ns);
        self.rare_ns = self.rare_ns.min(notice.at_ns);
        let rare = self.rare.get_or_insert_default();
        rare.notices.push(Reverse(notice));
    }

    /// Takes the first notice, whatever packets arrive before.
    pub(in super::super) fn pop_notice(&mut self) -> Option<Notice> {
        let rare = self.rare.as_mut()?;
        rare.notices.pop().map(|notice| notice.0)
    }

    /// Takes the first message.
    #[inline]
    pub(in super::super) fn pop(&mut self) -> Option<Arriving> {
        if self.rare_ns == self.first_ns {
            return self.pop_rare();
        }
        let first = self.packets.pop_front()?;
        self.look();
        Some(Arriving::Packet(first.packet))
    }

    /// The same while one of the few may be first.
    #[cold]
    #[inline(never)]
    fn pop_rare(&mut self) -> Option<Arriving> {
        let rare = self.rare.as_mut()?;
        let near = self.packets.front().map(Coming::key);
        let far = rare.far_key();
        let is_packet = |key: &(u64, u32)| key.0 == self.first_ns;
        let arriving = match (near.filter(is_packet), far.filter(is_packet)) {
            (Some(near), far) if far.is_none_or(|far| near <= far) => {
                Arriving::Packet(self.packets.pop_front()?.packet)
            }
            (_, Some(_)) => Arriving::Packet(rare.far.pop()?.0.coming.packet),
            _ => Arriving::Notice(rare.notices.pop()?.0),
        };
        self.rare_ns = rare.first_ns();
        self.look();
        Some(arriving)
    }

    /// Finds when the first message arrives.
    #[inline]
    fn look(&mut self) {
        let packets_ns = match self.packets.front() {
            Some(first) => first.at_ns,
            None => {
                // The next packet comes into memory that was just in use.
                self.packets.clear();
                NEVER
            }
        };
        self.first_ns = packets_ns.min(self.rare_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(at_ns: u64, line: u32, number: u64) -> Message {
        Message {
            at_ns,
            to: 0,
            line,
            packet: Packet {
                created_ns: 0,
                segment: number,
                flow: 0,
                bytes: 1,
            },
        }
    }

    fn notice(at_ns: u64, number: u64) -> Notice {
        let packet = crate::metrics::Recorded::seen(&message(0, 0, 0).packet);
        Notice {
            at_ns,
            to: 0,
            entry: 0,
            from: 0,
            number,
            is_letter: false,
            packet,
        }
    }

    #[test]
    fn messages_come_by_time_then_line_then_order_and_notices_last() {
        let mut state = 1u64;
        let mut below = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        for (lines, spread) in [(1, 3), (4, 20), (9, 5), (3, 2_000)] {
            let mut inbox = Inbox::new();
            let mut expected: Vec<(u64, u32, u64)> = Vec::new();
            // The first line is far ahead, so that much is put in front of what it has.
            let mut last: Vec<u64> = (0..lines).map(|line| spread / (line + 1)).collect();
            let (mut now_ns, mut number) = (0, 0);
            for _ in 0..6_000 {
                if below(5) < 3 {
                    let line = below(lines + 1);
                    number += 1;
                    if line == lines {
                        let at_ns = now_ns + below(spread);
                        inbox.push_notice(notice(at_ns, number));
                        expected.push((at_ns, u32::MAX, number));
                    } else {
                        let at_ns = last[line as usize].max(now_ns) + below(3);
                        last[line as usize] = at_ns;
                        inbox.push(&message(at_ns, line as u32, number));
                        expected.push((at_ns, line as u32, number));
                    }
                } else if let Some(first) = expected.iter().min().copied() {
                    expected.retain(|other| *other != first);
                    now_ns = first.0;
                    assert_eq!(inbox.first_ns(), now_ns);
                    let found = match inbox.pop() {
                        Some(Arriving::Packet(packet)) => packet.segment,
                        Some(Arriving::Notice(notice)) => notice.number,
                        None => 0,
                    };
                    assert_eq!(found, first.2, "{lines} lines");
                }
            }
            while let Some(first) = expected.iter().min().copied() {
                expected.retain(|other| *other != first);
                assert_eq!(inbox.first_ns(), first.0);
                assert!(inbox.pop().is_some());
            }
            assert_eq!(inbox.first_ns(), NEVER);
            assert!(inbox.pop().is_none());
        }
    }
}
