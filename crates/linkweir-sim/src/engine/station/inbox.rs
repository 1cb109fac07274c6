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

/// A line for each process that sends packets here: its packets come in the order in which it sent them. At one time, lines
/// go by their number, and notices come last.
#[derive(Debug)]
pub(in super::super) struct Inbox {
    lines: Vec<VecDeque<(u64, Packet)>>,
    /// The first packet of each line that has one.
    heads: BinaryHeap<Reverse<(u64, u32)>>,
    notices: BinaryHeap<Reverse<Notice>>,
    first_ns: u64,
}

impl Inbox {
    pub(in super::super) fn new(lines: usize) -> Inbox {
        Inbox {
            lines: (0..lines).map(|_| VecDeque::new()).collect(),
            heads: BinaryHeap::new(),
            notices: BinaryHeap::new(),
            first_ns: NEVER,
        }
    }

    /// When the first message arrives; the end of time if there is none.
    #[inline]
    pub(in super::super) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    #[inline]
    pub(in super::super) fn push(&mut self, message: &Message) {
        let line = &mut self.lines[message.line as usize];
        debug_assert!(line.back().is_none_or(|last| last.0 <= message.at_ns));
        if line.is_empty() {
            self.heads.push(Reverse((message.at_ns, message.line)));
            self.first_ns = self.first_ns.min(message.at_ns);
        }
        line.push_back((message.at_ns, message.packet));
    }

    pub(in super::super) fn push_notice(&mut self, notice: Notice) {
        self.first_ns = self.first_ns.min(notice.at_ns);
        self.notices.push(Reverse(notice));
    }

    /// Takes the first notice, whatever packets arrive before.
    pub(in super::super) fn pop_notice(&mut self) -> Option<Notice> {
        self.notices.pop().map(|notice| notice.0)
    }

    /// Takes the first message.
    #[inline]
    pub(in super::super) fn pop(&mut self) -> Option<Arriving> {
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
