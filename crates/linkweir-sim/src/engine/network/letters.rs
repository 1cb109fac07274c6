// SPDX-License-Identifier: BSD-3-Clause
//! Acknowledgements, SYNs and requests that go back by links. Their packets wait in queues and carry only a number; their
//! contents stay here, with both ends.

use crate::tcp;

use super::super::application::{Address, Pending};

/// The content of a packet that goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Letter {
    /// An acknowledgement of this connection, by its index among the flows.
    Ack(u32, tcp::Ack),
    /// The receiver opens a connection.
    Syn(Address),
    /// The receiver asks; the server then needs this time, ns, before it writes.
    Ask(Pending, u64),
}

/// The letters under way from a process's receivers to its senders.
#[derive(Debug, Default)]
pub(super) struct Letters {
    under_way: Vec<Option<Letter>>,
    free: Vec<u32>,
}

impl Letters {
    /// Keeps a letter; returns its number.
    pub(super) fn keep(&mut self, letter: Letter) -> u32 {
        if let Some(number) = self.free.pop() {
            self.under_way[number as usize] = Some(letter);
            return number;
        }
        self.under_way.push(Some(letter));
        self.under_way.len() as u32 - 1
    }

    /// The letter of this number, which has arrived or is lost.
    pub(super) fn take(&mut self, number: u64) -> Option<Letter> {
        let letter = self.under_way.get_mut(number as usize)?.take();
        if letter.is_some() {
            self.free.push(number as u32);
        }
        letter
    }
}
