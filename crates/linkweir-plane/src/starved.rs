// SPDX-License-Identifier: BSD-3-Clause
//! Classes that send nothing while others do: their packets wait, and the policy gives all of the link to other classes. This
//! is what a fade below the reservations does to the rest.

use linkweir_core::Queue;

/// How long a class may be passed over before that is told, ns.
pub(crate) const TOLD_NS: u64 = 1_000_000_000;
/// How often classes are looked at, ns.
const LOOK_NS: u64 = 10_000_000;

/// What is known of the classes of a link.
#[derive(Clone, Debug)]
pub(crate) struct Starved {
    classes: Vec<Class>,
    look_ns: u64,
    told: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Class {
    /// Since when others sent while this one waited, and until when they did, ns.
    passed_over: Option<(u64, u64)>,
    total_ns: u64,
}

impl Starved {
    pub(crate) fn new(classes: usize) -> Starved {
        Starved {
            classes: vec![Class::default(); classes],
            look_ns: 0,
            told: None,
        }
    }

    /// A packet of a class has left; `queues` are those that are left.
    #[inline]
    pub(crate) fn left(&mut self, now_ns: u64, class: usize, queues: &[Queue]) {
        self.classes[class].passed_over = None;
        if now_ns >= self.look_ns {
            self.look(now_ns, class, queues);
        }
    }

    fn look(&mut self, now_ns: u64, sent: usize, queues: &[Queue]) {
        self.look_ns = now_ns + LOOK_NS;
        for (at, (class, queue)) in self.classes.iter_mut().zip(queues).enumerate() {
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
            let told_at_ns = since_ns + TOLD_NS;
            if now_ns < told_at_ns {
                continue;
            }
            if until_ns < told_at_ns {
                self.told = Some(at);
            }
            class.total_ns += now_ns - until_ns.max(told_at_ns);
        }
    }

    /// For how long a class was passed over, beyond the first second of each time, ns.
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
        let mut starved = Starved::new(2);
        let mut told = Vec::new();
        for ms in 0..3000 {
            starved.left(ms * MS, 0, &both);
            told.extend(starved.take().map(|class| (class, ms)));
        }
        assert_eq!(told, [(1, 1000)]);
        assert_eq!(starved.total_ns(1), 1990 * MS);
        starved.left(3000 * MS, 1, &both);
        for ms in 3001..3900 {
            starved.left(ms * MS, 0, &both);
        }
        assert_eq!(starved.take(), None, "it begins anew");
        starved.left(3900 * MS, 0, &[waits, Queue::default()]);
        starved.left(5000 * MS, 0, &both);
        assert_eq!(starved.take(), None, "nothing waited");
        assert_eq!(starved.total_ns(0), 0);
        starved.left(5100 * MS, 0, &both);
        starved.left(66_000 * MS, 0, &both);
        assert_eq!(starved.take(), None, "an outage");
    }
}
