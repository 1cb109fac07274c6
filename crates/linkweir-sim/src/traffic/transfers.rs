// SPDX-License-Identifier: BSD-3-Clause
//! Transfers of finite size, a TCP connection each. The sender opens the connection when the transfer arrives; the
//! completion time ends when the receiver has the last byte.

use crate::experiment::{Amount, Arrivals};
use crate::random::Random;

use super::action::{Action, Numbers, Opener};

#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    random: Random,
    arrivals: Arrivals,
    /// Arrivals so far.
    arrived: usize,
    size: Amount,
    concurrent: u32,
    /// The last arrival.
    at_ns: u64,
    start_ns: u64,
    stop_ns: u64,
    numbers: Numbers,
    /// Start and bytes of the transfer of each connection.
    running: Vec<(u64, u64)>,
}

impl Transfers {
    pub(super) fn new(
        arrivals: &Arrivals,
        size: &Amount,
        concurrent: u32,
        (start_ns, stop_ns): (u64, u64),
        random: Random,
    ) -> Transfers {
        Transfers {
            random,
            arrivals: arrivals.clone(),
            arrived: 0,
            size: size.clone(),
            concurrent,
            at_ns: start_ns,
            start_ns,
            stop_ns,
            numbers: Numbers::default(),
            running: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, actions: &mut Vec<Action>) {
        self.wait(actions);
    }

    /// A transfer begins, and the next one is waited for.
    pub(super) fn arrive(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        let bytes = self.size.draw(&mut self.random);
        if self.numbers.used() < self.concurrent {
            let connection = self.numbers.take();
            let place = connection as usize;
            if place == self.running.len() {
                self.running.push((0, 0));
            }
            self.running[place] = (now_ns, bytes);
            actions.extend([
                Action::Begun,
                Action::Open {
                    connection,
                    by: Opener::Sender,
                },
                Action::Write { connection, bytes },
            ]);
        } else {
            actions.push(Action::Refused);
        }
        self.wait(actions);
    }

    pub(super) fn on_received(&mut self, connection: u32, actions: &mut Vec<Action>) {
        let (start_ns, bytes) = self.running[connection as usize];
        actions.extend([
            Action::Finished { start_ns, bytes },
            Action::Close { connection },
        ]);
    }

    pub(super) fn on_closed(&mut self, connection: u32) {
        self.numbers.give_back(connection);
    }

    /// Until the next arrival, if there is one.
    fn wait(&mut self, actions: &mut Vec<Action>) {
        let next_ns = match &self.arrivals {
            Arrivals::Poisson { mean_ns } => {
                let gap_ns = mean_ns * self.random.exponential();
                Some(self.at_ns.saturating_add((gap_ns + 0.5) as u64))
            }
            Arrivals::Periodic { every_ns } => match self.arrived {
                0 => Some(self.start_ns),
                _ => Some(self.at_ns.saturating_add(*every_ns)),
            },
            Arrivals::At(times) => times
                .get(self.arrived)
                .map(|after_ns| self.start_ns.saturating_add(*after_ns)),
        };
        if let Some(at_ns) = next_ns.filter(|at_ns| *at_ns < self.stop_ns) {
            self.arrived += 1;
            self.at_ns = at_ns;
            actions.push(Action::Wake { at_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Distribution;

    const S: u64 = 1_000_000_000;

    fn transfers(arrivals: Arrivals, concurrent: u32, stop_ns: u64) -> Transfers {
        let size = Amount {
            distribution: Distribution::Fixed(1000.0),
            least: 1.0,
            most: 1e9,
        };
        Transfers::new(
            &arrivals,
            &size,
            concurrent,
            (S, stop_ns),
            Random::new(4, 1),
        )
    }

    /// Arrivals until there are no more.
    fn times(mut transfers: Transfers) -> Vec<u64> {
        let (mut actions, mut times) = (Vec::new(), Vec::new());
        transfers.begin(&mut actions);
        while let Some(Action::Wake { at_ns }) = actions.last().copied() {
            times.push(at_ns);
            actions.clear();
            transfers.arrive(at_ns, &mut actions);
        }
        times
    }

    #[test]
    fn arrivals_are_periodic_listed_or_poisson() {
        let periodic = Arrivals::Periodic { every_ns: S / 2 };
        assert_eq!(times(transfers(periodic, 9, 2 * S)), [S, S + S / 2]);
        let listed = Arrivals::At([0, 3, 3, S].into());
        assert_eq!(times(transfers(listed, 9, 2 * S)), [S, S + 3, S + 3]);
        let poisson = Arrivals::Poisson { mean_ns: 1e6 };
        let count = times(transfers(poisson, 9, 101 * S)).len() as f64;
        assert!((count - 1e5).abs() < 4.0 * 316.3, "{count}");
    }

    #[test]
    fn a_transfer_beyond_the_most_is_refused_until_a_connection_is_closed() {
        let mut all = transfers(Arrivals::Periodic { every_ns: 1 }, 2, 100 * S);
        let begun = |all: &mut Transfers, now_ns| {
            let mut actions = Vec::new();
            all.arrive(now_ns, &mut actions);
            actions[0]
        };
        assert_eq!(
            [1, 2, 3].map(|t| begun(&mut all, t)),
            [Action::Begun, Action::Begun, Action::Refused]
        );
        let mut actions = Vec::new();
        all.on_received(1, &mut actions);
        assert_eq!(
            actions,
            [
                Action::Finished {
                    start_ns: 2,
                    bytes: 1000
                },
                Action::Close { connection: 1 }
            ]
        );
        // It may still have to repeat a segment.
        assert_eq!(begun(&mut all, 4), Action::Refused);
        all.on_closed(1);
        assert_eq!(begun(&mut all, 5), Action::Begun);
    }
}
