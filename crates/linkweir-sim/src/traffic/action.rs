// SPDX-License-Identifier: BSD-3-Clause
//! What applications ask the engine for, and the numbers of their connections.

/// What an application wants done. It numbers its connections itself, from 0; a number is free again after
/// `Session::on_closed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Opens a connection. What is asked or written before it is open waits for that.
    Open { connection: u32, by: Opener },
    /// The sender writes this.
    Write { connection: u32, bytes: u64 },
    /// The receiver asks now; the sender writes this, so long after the request has reached it.
    Ask {
        connection: u32,
        bytes: u64,
        server_ns: u64,
    },
    /// Nothing more will be written.
    Close { connection: u32 },
    /// Calls `Session::on_wake` at this time.
    Wake { at_ns: u64 },
    /// Something whose completion is measured begins.
    Begun,
    /// It would have begun, had there been room for another connection.
    Refused,
    /// What began at this time is complete, with so many bytes.
    Finished { start_ns: u64, bytes: u64 },
}

/// The end that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opener {
    Sender,
    Receiver,
}

/// Numbers that are free, the lowest first time first.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    free: Vec<u32>,
    next: u32,
}

impl Numbers {
    /// A free number.
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }

    /// How many are in use.
    pub(super) fn used(&self) -> u32 {
        self.next - self.free.len() as u32
    }
}
