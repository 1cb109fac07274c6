// SPDX-License-Identifier: BSD-3-Clause
//! One source as the engine holds it: its class, its way to the queue, and what creates its packets.

use crate::traffic::{Greedy, Source};

use super::access::Access;
use super::connection::Connection;

pub(super) struct Flow {
    pub(super) class: usize,
    pub(super) stop_ns: u64,
    pub(super) access: Access,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Open(Source),
    Greedy {
        source: Greedy,
        /// It is in the list of greedy flows that lack packets.
        listed: bool,
    },
    Tcp(Box<Connection>),
}
