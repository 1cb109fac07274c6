// SPDX-License-Identifier: BSD-3-Clause
//! Acknowledgements, SYNs and requests that go back by links. Their packets wait in queues and carry only a number; their
//! contents stay here, with both ends.

use std::collections::BTreeMap;

use crate::tcp;

use super::super::application::{Address, Request};
use super::super::packet::Packet;

/// The content of a packet that goes back.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Letter {
    /// An acknowledgement of this connection, by its index among the flows.
    Ack(u32, tcp::Ack),
    /// The receiver opens a connection.
    Syn(Address),
    /// The receiver asks.
    Ask(Request),
}

/// The letters under way from a process's receivers to its senders.
#[derive(Debug, Default)]
pub(in super::super) struct Letters {
    under_way: Vec<Option<Letter>>,
    free: Vec<u32>,
}

impl Letters {
    /// Keeps a letter; returns its number.
    pub(in super::super) fn keep(&mut self, letter: Letter) -> u32 {
        if let Some(number) = self.free.pop() {
            self.under_way[number as usize] = Some(letter);
            return number;
        }
        self.under_way.push(Some(letter));
        self.under_way.len() as u32 - 1
    }

    /// The letter of this number, which has arrived or is lost.
    pub(in super::super) fn take(&mut self, number: u64) -> Option<Letter> {
        let letter = self.under_way.get_mut(number as usize)?.take();
        if letter.is_some() {
            self.free.push(number as u32);
        }
        letter
    }
}

/// Letters that take the access delays of their senders, which differ.
#[derive(Debug, Default)]
pub(in super::super) struct Held {
    /// By time, then in the order in which they came.
    packets: BTreeMap<(u64, u64), Packet>,
    came: u64,
}

impl Held {
    pub(in super::super) fn push(&mut self, out_ns: u64, packet: Packet) {
        self.packets.insert((out_ns, self.came), packet);
        self.came += 1;
    }

    pub(in super::super) fn pop(&mut self) -> Option<Packet> {
        self.packets.pop_first().map(|(_, packet)| packet)
    }
}
