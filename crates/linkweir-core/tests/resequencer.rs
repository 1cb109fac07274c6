// SPDX-License-Identifier: BSD-3-Clause
//! The receiving end of a bond: by hand, and random arrivals against a model that keeps all it has seen.

use std::collections::BTreeSet;

use linkweir_core::{Arrived, Resequencer, ResequencerCounters, Restoring};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

const USUAL: Restoring = Restoring {
    wait_ns: Some(50 * MS),
    most_pkts: 100,
    most_bytes: 100_000,
    window: 256,
};

/// A receiver, and what it has handed out.
struct Receiver {
    inner: Resequencer<u32>,
    out: Vec<Arrived<u32>>,
}

impl Receiver {
    fn new(restoring: Restoring) -> Receiver {
        Receiver {
            inner: Resequencer::new(restoring),
            out: Vec::new(),
        }
    }

    fn arrive(&mut self, now_ns: u64, number: u32) -> Vec<Arrived<u32>> {
        let Receiver { inner, out } = self;
        inner.arrive(now_ns, number, 100, number, |arrived| out.push(arrived));
        std::mem::take(out)
    }

    fn expire(&mut self, now_ns: u64) -> Vec<Arrived<u32>> {
        let Receiver { inner, out } = self;
        inner.expire(now_ns, |arrived| out.push(arrived));
        std::mem::take(out)
    }
}

fn delivered(numbers: impl IntoIterator<Item = u32>) -> Vec<Arrived<u32>> {
    numbers.into_iter().map(Arrived::Delivered).collect()
}

#[test]
fn a_missing_packet_is_waited_for() {
    let mut receiver = Receiver::new(USUAL);
    assert_eq!(receiver.arrive(0, 0), delivered([0]));
    assert_eq!(receiver.arrive(MS, 2), []);
    assert_eq!(receiver.arrive(2 * MS, 3), []);
    assert_eq!(receiver.inner.due_ns(), Some(51 * MS));
    assert_eq!(
        (receiver.inner.held_pkts(), receiver.inner.held_bytes()),
        (2, 200)
    );
    assert_eq!(receiver.arrive(40 * MS, 1), delivered([1, 2, 3]));
    assert_eq!(receiver.inner.due_ns(), None);
    assert_eq!(receiver.inner.held_pkts(), 0);
    let counters = ResequencerCounters {
        delivered_pkts: 4,
        reordered_pkts: 1,
        held_pkts: 2,
        ..ResequencerCounters::default()
    };
    assert_eq!(*receiver.inner.counters(), counters);
}

#[test]
fn a_missing_packet_is_given_up_at_the_stated_time() {
    let mut receiver = Receiver::new(USUAL);
    receiver.arrive(0, 0);
    receiver.arrive(10 * MS, 3);
    receiver.arrive(30 * MS, 5);
    assert_eq!(receiver.expire(60 * MS - 1), []);
    assert_eq!(
        receiver.expire(60 * MS),
        delivered([3]),
        "4 is missing for 5 only since 30 ms"
    );
    assert_eq!(receiver.inner.due_ns(), Some(80 * MS));
    assert_eq!(receiver.arrive(65 * MS, 2), [Arrived::Late(2)]);
    assert_eq!(receiver.arrive(65 * MS, 3), [Arrived::Duplicate(3)]);
    assert_eq!(
        receiver.arrive(66 * MS, 5),
        [Arrived::Duplicate(5)],
        "also while it is held"
    );
    // An arrival does what is due.
    assert_eq!(receiver.arrive(90 * MS, 6), delivered([5, 6]));
    let counters = receiver.inner.counters();
    assert_eq!(
        (
            counters.given_up_pkts,
            counters.late_pkts,
            counters.duplicate_pkts
        ),
        (3, 1, 2)
    );
}

#[test]
fn a_later_deadline_in_front_does_not_hold_an_earlier_one() {
    let mut receiver = Receiver::new(USUAL);
    receiver.arrive(0, 9);
    receiver.arrive(20 * MS, 4);
    assert_eq!(receiver.expire(50 * MS), delivered([4, 9]));
}

#[test]
fn numbers_wrap() {
    let mut receiver = Receiver::new(Restoring {
        window: 64,
        ..USUAL
    });
    // A receiver begins at 0; it follows a jump, giving up what is between.
    for number in [1 << 30, 2 << 30, 3 << 30, u32::MAX - 1] {
        receiver.arrive(0, number);
        receiver.expire(100 * MS);
    }
    let mut receiver = Receiver {
        out: Vec::new(),
        ..receiver
    };
    assert_eq!(receiver.arrive(200 * MS, 0), []);
    assert_eq!(
        receiver.arrive(200 * MS, u32::MAX),
        delivered([u32::MAX, 0])
    );
    assert_eq!(receiver.arrive(200 * MS, 1), delivered([1]));
    assert_eq!(
        receiver.arrive(200 * MS, u32::MAX),
        [Arrived::Duplicate(u32::MAX)]
    );
}

#[test]
fn memory_is_bounded_in_packets_and_bytes() {
    let mut receiver = Receiver::new(Restoring {
        most_pkts: 3,
        ..USUAL
    });
    receiver.arrive(0, 0);
    for number in [2, 3, 5] {
        assert_eq!(receiver.arrive(0, number), []);
    }
    assert_eq!(
        receiver.arrive(0, 7),
        delivered([2, 3]),
        "the missing 1 is given up"
    );
    let mut receiver = Receiver::new(Restoring {
        most_bytes: 250,
        ..USUAL
    });
    for number in [2, 4] {
        assert_eq!(receiver.arrive(0, number), []);
    }
    assert_eq!(receiver.arrive(0, 6), delivered([2]));
    assert_eq!(receiver.inner.held_bytes(), 200);
    // What is too long to be held goes at once, and nothing overtakes it.
    let Receiver { inner, out } = &mut receiver;
    inner.arrive(0, 9, 251, 9, |arrived| out.push(arrived));
    assert_eq!(*out, delivered([4, 6, 9]));
}

#[test]
fn memory_follows_what_is_held_whatever_numbers_come() {
    let wide = Restoring {
        most_pkts: 8192,
        window: 8192,
        ..USUAL
    };
    let mut receiver = Receiver::new(wide);
    let empty = receiver.inner.memory_bytes();
    // One packet as far ahead as the window goes.
    receiver.arrive(0, 8191);
    assert_eq!(receiver.inner.held_pkts(), 1);
    assert!(receiver.inner.memory_bytes() < empty + 1024);
    // Each pair is swapped and held for no time, 100,000 packets within the time of waiting.
    let mut receiver = Receiver::new(wide);
    for number in 0..50_000 {
        receiver.arrive(MS, 2 * number + 1);
        receiver.arrive(MS, 2 * number);
        assert!(receiver.inner.memory_bytes() < empty + 4096);
    }
    // What was held for long is given back.
    for number in 100_001..101_000 {
        receiver.arrive(2 * MS, number);
    }
    receiver.expire(52 * MS);
    assert_eq!(receiver.inner.memory_bytes(), empty);
}

#[test]
fn without_a_time_only_duplicates_are_dropped() {
    let mut receiver = Receiver::new(Restoring {
        wait_ns: None,
        window: 64,
        ..USUAL
    });
    for number in [1, 0, 3, 70] {
        assert_eq!(receiver.arrive(0, number), delivered([number]));
    }
    assert_eq!(
        receiver.arrive(0, 3),
        [Arrived::Late(3)],
        "behind the window"
    );
    assert_eq!(receiver.arrive(0, 7), delivered([7]), "at its edge");
    assert_eq!(receiver.arrive(0, 6), [Arrived::Late(6)], "behind it");
    assert_eq!(receiver.arrive(0, 7), [Arrived::Duplicate(7)]);
    assert_eq!(receiver.inner.counters().reordered_pkts, 2);
    assert_eq!(receiver.inner.due_ns(), None);
}

#[test]
fn what_is_held_can_be_flushed() {
    let mut receiver = Receiver::new(USUAL);
    receiver.arrive(0, 2);
    receiver.arrive(0, 5);
    let Receiver { inner, out } = &mut receiver;
    inner.flush(|arrived| out.push(arrived));
    assert_eq!(std::mem::take(out), delivered([2, 5]));
    assert_eq!(receiver.inner.held_pkts(), 0);
    assert_eq!(receiver.arrive(0, 6), delivered([6]));
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    /// A number this far ahead of the greatest so far, or behind it.
    Arrive {
        ahead: i64,
        bytes: u32,
    },
    Expire,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..30 * MS).prop_map(Step::Wait),
        8 => (-20..6i64, 1..400u32).prop_map(|(ahead, bytes)| Step::Arrive { ahead, bytes }),
        1 => (-300..300i64, 1..400u32).prop_map(|(ahead, bytes)| Step::Arrive { ahead, bytes }),
        2 => Just(Step::Expire),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #[test]
    fn nothing_is_handed_out_twice_out_of_order_or_too_late(
        steps in steps(),
        wait_ns in prop::option::of(0..100 * MS),
        most_pkts in 1..20u32,
        most_bytes in 300..4_000u64,
    ) {
        let restoring = Restoring { wait_ns, most_pkts, most_bytes, window: 128 };
        let mut inner: Resequencer<(i64, u64)> = Resequencer::new(restoring);
        let (mut now_ns, mut top) = (0, 0i64);
        let mut seen = BTreeSet::new();
        let mut handed_out: Vec<i64> = Vec::new();
        let mut offered = 0;
        for step in &steps {
            let mut out = Vec::new();
            let mut came = None;
            match *step {
                Step::Wait(ns) => now_ns += ns,
                Step::Arrive { ahead, bytes } => {
                    let number = (top + ahead).max(0);
                    came = Some(number);
                    offered += 1;
                    top = top.max(number + 1);
                    inner.arrive(now_ns, number as u32, bytes, (number, now_ns), |arrived| out.push(arrived));
                }
                Step::Expire => inner.expire(now_ns, |arrived| out.push(arrived)),
            }
            for arrived in out {
                match arrived {
                    Arrived::Delivered((number, at_ns)) => {
                        prop_assert!(seen.insert(number), "{} was handed out twice", number);
                        if let Some(wait_ns) = wait_ns {
                            prop_assert!(handed_out.last().is_none_or(|last| *last < number));
                            // Time passes in steps here, so it may be handed out later than it is due, but not after another step.
                            let due = inner.due_ns();
                            prop_assert!(due.is_none_or(|due| due > now_ns) || at_ns + wait_ns >= now_ns);
                        }
                        handed_out.push(number);
                    }
                    Arrived::Duplicate((number, _)) => prop_assert_eq!(came, Some(number)),
                    Arrived::Late((number, _)) => {
                        prop_assert_eq!(came, Some(number));
                        let behind = top - number > 128;
                        let passed = handed_out.last().is_some_and(|last| *last > number);
                        prop_assert!(behind || (wait_ns.is_some() && passed));
                    }
                }
            }
            prop_assert!(inner.held_pkts() <= most_pkts);
            prop_assert!(inner.held_bytes() <= most_bytes);
            if !matches!(step, Step::Wait(_)) {
                prop_assert!(inner.due_ns().is_none_or(|due_ns| due_ns > now_ns));
            }
            let counters = inner.counters();
            let known = counters.delivered_pkts + counters.duplicate_pkts + counters.late_pkts;
            prop_assert_eq!(known + u64::from(inner.held_pkts()), offered);
            prop_assert_eq!(counters.delivered_pkts, handed_out.len() as u64);
        }
    }
}
