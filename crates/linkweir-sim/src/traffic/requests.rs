// SPDX-License-Identifier: BSD-3-Clause
//! Requests and responses over one connection, which the receiver of the responses opens. A request is sent when the user
//! has thought about the response before it. The completion time runs from the request (of the first one, from opening
//! the connection) to the last byte of the response.

use crate::experiment::Amount;
use crate::random::Random;

use super::action::{Action, Opener};

#[derive(Clone, Debug)]
pub(crate) struct Requests {
    random: Random,
    response: Amount,
    server_ns: Amount,
    think_ns: Amount,
    stop_ns: u64,
    /// Start and bytes of the request that waits for its response.
    asked: (u64, u64),
}

impl Requests {
    pub(super) fn new(
        response: &Amount,
        server_ns: &Amount,
        think_ns: &Amount,
        stop_ns: u64,
        random: Random,
    ) -> Requests {
        Requests {
            random,
            response: response.clone(),
            server_ns: server_ns.clone(),
            think_ns: think_ns.clone(),
            stop_ns,
            asked: (0, 0),
        }
    }

    pub(super) fn begin(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        actions.push(Action::Open {
            connection: 0,
            by: Opener::Receiver,
        });
        self.ask(now_ns, actions);
    }

    pub(super) fn ask(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        let bytes = self.response.draw(&mut self.random);
        let server_ns = self.server_ns.draw(&mut self.random);
        self.asked = (now_ns, bytes);
        actions.extend([
            Action::Begun,
            Action::Ask {
                connection: 0,
                bytes,
                server_ns,
            },
        ]);
    }

    pub(super) fn on_received(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        let (start_ns, bytes) = self.asked;
        actions.push(Action::Finished { start_ns, bytes });
        let at_ns = now_ns.saturating_add(self.think_ns.draw(&mut self.random));
        if at_ns < self.stop_ns {
            actions.push(Action::Wake { at_ns });
        }
    }
}
