// SPDX-License-Identifier: BSD-3-Clause
//! Web pages. A page is a main object that names further ones. The browser opens a connection for the main object; when
//! it has arrived, it opens as many as there are objects for, up to a limit, and every connection fetches the next object
//! when it has one. The page is complete when all objects have arrived; then its connections are closed, and the next
//! page begins after the user has read it. The completion time is the page's, from opening the first connection on.

use crate::experiment::{self, Amount};
use crate::random::Random;

use super::action::{Action, Numbers, Opener};

#[derive(Clone, Debug)]
pub(crate) struct Web {
    random: Random,
    main: Amount,
    objects: Amount,
    object: Amount,
    connections: u32,
    server_ns: Amount,
    think_ns: Amount,
    stop_ns: u64,
    numbers: Numbers,
    page: Page,
}

/// The page that is loading.
#[derive(Clone, Debug, Default)]
struct Page {
    start_ns: u64,
    bytes: u64,
    /// The main object has arrived.
    begun: bool,
    /// Objects not asked for yet.
    left: u64,
    /// Objects on their way.
    waiting: u32,
    connections: Vec<u32>,
}

impl Web {
    /// `session` is [`experiment::Session::Web`].
    pub(super) fn new(session: experiment::Session, stop_ns: u64, random: Random) -> Web {
        let experiment::Session::Web {
            main,
            objects,
            object,
            connections,
            server_ns,
            think_ns,
        } = session
        else {
            unreachable!("for web pages only");
        };
        Web {
            random,
            main,
            objects,
            object,
            connections,
            server_ns,
            think_ns,
            stop_ns,
            numbers: Numbers::default(),
            page: Page::default(),
        }
    }

    pub(super) fn begin_page(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        let connections = std::mem::take(&mut self.page.connections);
        self.page = Page {
            start_ns: now_ns,
            left: self.objects.draw(&mut self.random),
            connections,
            ..Page::default()
        };
        let bytes = self.main.draw(&mut self.random);
        actions.push(Action::Begun);
        let connection = self.open(actions);
        self.ask(connection, bytes, actions);
    }

    pub(super) fn on_received(&mut self, now_ns: u64, connection: u32, actions: &mut Vec<Action>) {
        self.page.waiting -= 1;
        let first = !std::mem::replace(&mut self.page.begun, true);
        self.fetch(connection, actions);
        if first {
            while self.page.left > 0 && (self.page.connections.len() as u32) < self.connections {
                let another = self.open(actions);
                self.fetch(another, actions);
            }
        }
        if self.page.waiting == 0 {
            self.end_page(now_ns, actions);
        }
    }

    pub(super) fn on_closed(&mut self, connection: u32) {
        self.numbers.give_back(connection);
    }

    fn end_page(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        let closed = self.page.connections.drain(..);
        actions.extend(closed.map(|connection| Action::Close { connection }));
        actions.push(Action::Finished {
            start_ns: self.page.start_ns,
            bytes: self.page.bytes,
        });
        let at_ns = now_ns.saturating_add(self.think_ns.draw(&mut self.random));
        if at_ns < self.stop_ns {
            actions.push(Action::Wake { at_ns });
        }
    }

    fn open(&mut self, actions: &mut Vec<Action>) -> u32 {
        let connection = self.numbers.take();
        self.page.connections.push(connection);
        actions.push(Action::Open {
            connection,
            by: Opener::Receiver,
        });
        connection
    }

    /// The next object, if there is one left.
    fn fetch(&mut self, connection: u32, actions: &mut Vec<Action>) {
        if self.page.left > 0 {
            self.page.left -= 1;
            let bytes = self.object.draw(&mut self.random);
            self.ask(connection, bytes, actions);
        }
    }

    fn ask(&mut self, connection: u32, bytes: u64, actions: &mut Vec<Action>) {
        let server_ns = self.server_ns.draw(&mut self.random);
        self.page.bytes += bytes;
        self.page.waiting += 1;
        actions.push(Action::Ask {
            connection,
            bytes,
            server_ns,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Distribution;

    fn fixed(amount: f64) -> Amount {
        Amount {
            distribution: Distribution::Fixed(amount),
            least: 0.0,
            most: 1e12,
        }
    }

    fn web(objects: f64) -> Web {
        let session = experiment::Session::Web {
            main: fixed(5000.0),
            objects: fixed(objects),
            object: fixed(100.0),
            connections: 3,
            server_ns: fixed(7.0),
            think_ns: fixed(50.0),
        };
        Web::new(session, 1000, Random::new(1, 1))
    }

    fn ask(connection: u32, bytes: u64) -> Action {
        Action::Ask {
            connection,
            bytes,
            server_ns: 7,
        }
    }

    fn open(connection: u32) -> Action {
        Action::Open {
            connection,
            by: Opener::Receiver,
        }
    }

    fn received(web: &mut Web, now_ns: u64, connection: u32) -> Vec<Action> {
        let mut actions = Vec::new();
        web.on_received(now_ns, connection, &mut actions);
        actions
    }

    #[test]
    fn objects_are_fetched_over_several_connections_once_the_main_one_is_there() {
        let mut web = web(4.0);
        let mut actions = Vec::new();
        web.begin_page(10, &mut actions);
        assert_eq!(actions, [Action::Begun, open(0), ask(0, 5000)]);
        assert_eq!(
            received(&mut web, 20, 0),
            [ask(0, 100), open(1), ask(1, 100), open(2), ask(2, 100)]
        );
        assert_eq!(received(&mut web, 30, 1), [ask(1, 100)]);
        assert_eq!(received(&mut web, 31, 0), []);
        assert_eq!(received(&mut web, 32, 2), []);
        let close = |connection| Action::Close { connection };
        assert_eq!(
            received(&mut web, 33, 1),
            [
                close(0),
                close(1),
                close(2),
                Action::Finished {
                    start_ns: 10,
                    bytes: 5400
                },
                Action::Wake { at_ns: 83 }
            ]
        );
        // Numbers are taken again only when their connections are closed.
        web.on_closed(1);
        actions.clear();
        web.begin_page(83, &mut actions);
        assert_eq!(actions[1..], [open(1), ask(1, 5000)]);
    }

    #[test]
    fn a_page_may_be_one_object_and_the_last_one_ends_before_the_stop() {
        let mut web = web(0.0);
        let mut actions = Vec::new();
        web.begin_page(940, &mut actions);
        let actions = received(&mut web, 950, 0);
        assert_eq!(
            actions.last(),
            Some(&Action::Finished {
                start_ns: 940,
                bytes: 5000
            })
        );
    }
}
