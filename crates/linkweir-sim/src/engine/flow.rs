// SPDX-License-Identifier: BSD-3-Clause
//! One source as the engine holds it: its class, its way to the queue, and what creates its packets. Connections of
//! applications are held in the same way.

use crate::traffic::{Greedy, Replay, Source};

use super::access::Access;
use super::application::Application;
use super::connection::Connection;

pub(super) struct Flow {
    pub(super) class: usize,
    /// Its number where its class isolates flows; of an application, that of its first connection.
    pub(super) number: u32,
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
    Replay(Replay),
    Application(Box<Application>),
    /// In a network, a flow of another link that crosses this one; whether it is an application's.
    Crossing {
        application: bool,
    },
    /// A place for a connection of an application.
    Free,
}

impl Default for Flow {
    fn default() -> Flow {
        Flow {
            class: 0,
            number: 0,
            stop_ns: 0,
            access: Access::Fixed(0),
            kind: Kind::Free,
        }
    }
}
