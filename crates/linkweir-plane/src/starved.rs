// SPDX-License-Identifier: BSD-3-Clause
//! Classes that send nothing while others do: their packets wait, and the policy gives all of the link to other classes. This
//! is what a fade below the reservations does to the rest.
//!
//! A class that gets its reserved rate is not starved, however far apart its turns are: what it sent pays for the time that the
//! reserved rate would have taken for it. Nor is a class that waits for the turns of others, which take seconds on a slow link.

use linkweir_core::Queue;

use crate::reservation::Reservation;

/// How long a class may be passed over before that is told, ns.
pub(crate) const TOLD_NS: u64 = 1_000_000_000;
/// How often classes are looked at, ns.
const LOOK_NS: u64 = 10_000_000;
/// The turns of others are no excuse for longer than this, ns.
const TURNS_NS: u64 = 30_000_000_000;

/// What is known of the classes of a link.
#[derive(Clone, Debug)]
pub(crate) struct Starved {
    classes: Vec<Class>,
    look_ns: u64,
    told: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Class {
    reservation: Option<Reservation>,
    /// Sent since the last look, bytes.
    sent_bytes: u64,
    /// Until when the reserved rate would have taken for what was sent, ns.
    paid_until_ns: u64,
    /// Since when others sent while this one waited, and until when they did, ns.
    passed_over: Option<(u64, u64)>,
    total_ns: u64,
}

impl Class {
    /// Counts what was sent since the last look.
    fn pay(&mut self, now_ns: u64, link_bps: u64) {
        let bytes = std::mem::take(&mut self.sent_bytes);
        let Some(reservation) = self.reservation.filter(|_| bytes > 0) else {
            return;
        };
        let until_ns = self.paid_until_ns.max(now_ns) + reservation.bytes_ns(link_bps, bytes);
        // What the link carried while it was free beyond the reserved rate does not pay for more than a turn.
        let most_ns = now_ns.saturating_add(reservation.paid_ns(link_bps));
        self.paid_until_ns = until_ns.min(most_ns);
    }
}

impl Starved {
    pub(crate) fn new(reservations: Vec<Option<Reservation>>) -> Starved {
        let class = |reservation| Class {
            reservation,
            ..Class::default()
        };
        Starved {
            classes: reservations.into_iter().map(class).collect(),
            look_ns: 0,
            told: None,
        }
    }

    /// Takes over changed reservations.
    pub(crate) fn change(&mut self, reservations: &[Option<Reservation>]) {
        for (class, reservation) in self.classes.iter_mut().zip(reservations) {
            class.reservation = *reservation;
        }
    }

    /// The reservations.
    pub(crate) fn reservations(&self) -> impl Iterator<Item = Option<Reservation>> + '_ {
        self.classes.iter().map(|class| class.reservation)
    }

    /// A packet of a class has left, which took so many bytes on a link of so many bit/s; `queues` are those that are left.
    #[inline]
    pub(crate) fn left(
        &mut self,
        now_ns: u64,
        (class, bytes): (usize, u32),
        link_bps: u64,
        queues: &[Queue],
    ) {
        let sent = &mut self.classes[class];
        sent.passed_over = None;
        sent.sent_bytes += u64::from(bytes);
        if now_ns >= self.look_ns {
            self.look(now_ns, class, link_bps, queues);
        }
    }

    fn look(&mut self, now_ns: u64, sent: usize, link_bps: u64, queues: &[Queue]) {
        self.look_ns = now_ns + LOOK_NS;
        let turn_ns = |class: &Class| class.reservation.map_or(0, |of| of.turn_ns(link_bps));
        let turns_ns = self
            .classes
            .iter()
            .fold(0u64, |sum, class| sum.saturating_add(turn_ns(class)));
        for (at, (class, queue)) in self.classes.iter_mut().zip(queues).enumerate() {
            class.pay(now_ns, link_bps);
            if at == sent {
                continue;
            }
            if queue.backlog_pkts == 0 {
                class.passed_over = None;
                continue;
            }
            // Time in which nobody sent is an outage.
            let (since_ns, until_ns) = class
                .passed_over
                .filter(|(_, until_ns)| now_ns - until_ns < TOLD_NS)
                .unwrap_or((now_ns, now_ns));
            class.passed_over = Some((since_ns, now_ns));
            let others_ns = turns_ns.saturating_sub(turn_ns(class)).min(TURNS_NS);
            let told_at_ns = since_ns.max(class.paid_until_ns) + TOLD_NS + others_ns;
            if now_ns < told_at_ns {
                continue;
            }
            if until_ns < told_at_ns {
                self.told = Some(at);
            }
            class.total_ns += now_ns - until_ns.max(told_at_ns);
        }
    }

    /// For how long a class was passed over, ns, from when on that is told.
    pub(crate) fn total_ns(&self, class: usize) -> u64 {
        self.classes[class].total_ns
    }

    /// The class that has been passed over for a second last, once.
    pub(crate) fn take(&mut self) -> Option<usize> {
        self.told.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_class_that_waits_while_another_sends_is_told_once_and_counted() {
        let waits = Queue {
            backlog_pkts: 1,
            ..Queue::default()
        };
        let both = [waits, waits];
        let mut starved = Starved::new(vec![None; 2]);
        let mut told = Vec::new();
        for ms in 0..3000 {
            starved.left(ms * MS, (0, 100), 1_000_000, &both);
            told.extend(starved.take().map(|class| (class, ms)));
        }
        assert_eq!(told, [(1, 1000)]);
        assert_eq!(starved.total_ns(1), 1990 * MS);
        starved.left(3000 * MS, (1, 100), 1_000_000, &both);
        for ms in 3001..3900 {
            starved.left(ms * MS, (0, 100), 1_000_000, &both);
        }
        assert_eq!(starved.take(), None, "it begins anew");
        starved.left(3900 * MS, (0, 100), 1_000_000, &[waits, Queue::default()]);
        starved.left(5000 * MS, (0, 100), 1_000_000, &both);
        assert_eq!(starved.take(), None, "nothing waited");
        assert_eq!(starved.total_ns(0), 0);
        starved.left(5100 * MS, (0, 100), 1_000_000, &both);
        starved.left(66_000 * MS, (0, 100), 1_000_000, &both);
        assert_eq!(starved.take(), None, "an outage");
    }
}
