// SPDX-License-Identifier: BSD-3-Clause
//! Messages on their way to a process, in the order in which it takes them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::super::packet::Packet;
use crate::metrics::Seen;

/// A packet on its way to another process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) at_ns: u64,
    /// The process, and the line of its inbox.
    pub(super) to: u32,
    pub(super) line: u32,
    pub(super) packet: Packet,
}

/// A packet that the ends of its flow wait for in vain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice {
    pub(super) at_ns: u64,
    /// The process of the ends, and the flow's entry there.
    pub(super) to: u32,
    pub(super) entry: u32,
    /// The process that sends it, and the number of its notices before.
    pub(super) from: u32,
    pub(super) number: u64,
    /// It goes back, and its number is that of a letter.
    pub(super) is_letter: bool,
    pub(super) packet: Seen,
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
pub(super) enum Arriving {
    Packet(Packet),
    Notice(Notice),
}

/// Never.
const NEVER: u64 = u64::MAX;

/// A line for each process that sends packets here: its packets come in the order in which it sent them. At one time, lines
/// go by their number, and notices come last.
#[derive(Debug)]
pub(super) struct Inbox {
    lines: Vec<VecDeque<(u64, Packet)>>,
    /// The first packet of each line that has one.
    heads: BinaryHeap<Reverse<(u64, u32)>>,
    notices: BinaryHeap<Reverse<Notice>>,
    first_ns: u64,
}

impl Inbox {
    pub(super) fn new(lines: usize) -> Inbox {
        Inbox {
            lines: (0..lines).map(|_| VecDeque::new()).collect(),
            heads: BinaryHeap::new(),
            notices: BinaryHeap::new(),
            first_ns: NEVER,
        }
    }

    /// When the first message arrives; the end of time if there is none.
    #[inline]
    pub(super) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    #[inline]
    pub(super) fn push(&mut self, message: &Message) {
        let line = &mut self.lines[message.line as usize];
        debug_assert!(line.back().is_none_or(|last| last.0 <= message.at_ns));
        if line.is_empty() {
            self.heads.push(Reverse((message.at_ns, message.line)));
            self.first_ns = self.first_ns.min(message.at_ns);
        }
        line.push_back((message.at_ns, message.packet));
    }

    pub(super) fn push_notice(&mut self, notice: Notice) {
        self.first_ns = self.first_ns.min(notice.at_ns);
        self.notices.push(Reverse(notice));
    }

    /// Takes the first message.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Arriving> {
        let arriving = match self.heads.peek_mut() {
            Some(mut head) if head.0 .0 == self.first_ns => {
                let line = &mut self.lines[head.0 .1 as usize];
                let (_, packet) = line.pop_front()?;
                match line.front() {
                    Some((next_ns, _)) => head.0 .0 = *next_ns,
                    None => {
                        std::collections::binary_heap::PeekMut::pop(head);
                    }
                }
                Arriving::Packet(packet)
            }
            _ => Arriving::Notice(self.notices.pop()?.0),
        };
        let packets_ns = self.heads.peek().map_or(NEVER, |head| head.0 .0);
        let notices_ns = self.notices.peek().map_or(NEVER, |next| next.0.at_ns);
        self.first_ns = packets_ns.min(notices_ns);
        Some(arriving)
    }
}
