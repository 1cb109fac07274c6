// SPDX-License-Identifier: BSD-3-Clause
//! Classes whose flows are isolated. `tests/queues.rs` compares them with the naive data plane; here are the properties that
//! hold for every policy, and the comparison with the flows' policy alone.

use std::collections::VecDeque;

use linkweir_core::{
    policies, policy, Arrival, CorePolicy, Departure, DropReason, Full, Isolation, Limit, Mux,
    PolicyInfo, Step, FLOW_QUEUES, MAX_RATE_BPS,
};
use proptest::prelude::*;

const RATE_BPS: u64 = 10_000_000;

/// A packet: its number, its flow and its packets.
type Item = (u64, u32, u32);

/// Parameters with which a policy accepts `nqueues` queues.
fn rows(info: &PolicyInfo, nqueues: usize) -> Vec<u64> {
    let mut rows = info.default_qparams(nqueues);
    if let Some(level) = info.qparam("level").filter(|_| info.name != "drr") {
        for (at, row) in rows.chunks_mut(info.qparams.len()).enumerate() {
            row[level] = at as u64;
        }
    }
    // Of two queues, the second is that of L4S packets.
    if let Some(l4s) = info.qparam("l4s") {
        rows[info.qparams.len() + l4s] = 1;
    }
    rows
}

/// Queues of a class whose flows are isolated so.
fn queues_of(isolation: Isolation) -> usize {
    if isolation.sorts_by_ecn() {
        2
    } else {
        FLOW_QUEUES
    }
}

fn mux(info: &'static PolicyInfo, params: &[u64], limits: &[Limit]) -> Mux<CorePolicy, Item> {
    Mux::new(0, RATE_BPS, limits, |view| {
        CorePolicy::new(info, view, params, &rows(info, limits.len()))
    })
    .unwrap()
}

fn nesting() -> impl Iterator<Item = &'static PolicyInfo> {
    policies().iter().filter(|info| info.nests())
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Arrive {
        class: usize,
        flow: u32,
        bytes: u32,
        pkts: u32,
    },
    Depart,
}

/// Operations and the times between them, ns. Two of the flows have one queue.
fn operations() -> impl Strategy<Value = Vec<(u64, Operation)>> {
    let flow = prop_oneof![
        4 => Just(1),
        2 => Just(2_u32),
        1 => Just(1 + FLOW_QUEUES as u32),
        2 => 0..40_u32,
        1 => any::<u32>(),
    ];
    let arrive =
        (0..3_usize, flow, 40..3000_u32, 1..4_u32).prop_map(|(class, flow, bytes, pkts)| {
            Operation::Arrive {
                class,
                flow,
                bytes,
                pkts,
            }
        });
    let operation = prop_oneof![5 => arrive, 4 => Just(Operation::Depart)];
    let ns = prop_oneof![3 => Just(0), 6 => 0..3_000_000_u64, 1 => 0..150_000_000_u64];
    prop::collection::vec((ns, operation), 1..600)
}

fn can_mark(item: &Item) -> bool {
    item.0 % 3 == 0
}

/// What one operation did.
#[derive(Debug, PartialEq, Eq)]
struct Did {
    gone: Vec<Item>,
    left: Option<(Item, u64, bool)>,
}

/// A class that has the link to itself is served as its flows' policy serves queues of its own.
fn compare(outer: &'static PolicyInfo, isolation: Isolation, operations: &[(u64, Operation)]) {
    let info = isolation.info();
    let mut params = info.default_params();
    for (param, value) in info.params.iter().zip(&mut params) {
        if ["limit", "memory"].contains(&param.name) {
            *value = param.max;
        }
    }
    let nqueues = queues_of(isolation);
    let mut alone = mux(info, &params, &vec![Limit::NONE; nqueues]);
    let mut nested = mux(outer, &outer.default_params(), &[Limit::NONE]);
    nested.isolate(0, Some(isolation));
    let mut now_ns = 0;
    for (number, (ns, operation)) in operations.iter().enumerate() {
        now_ns += ns;
        let mut gone = [Vec::new(), Vec::new()];
        let [of_alone, of_nested] = &mut gone;
        let mut left = [None, None];
        match *operation {
            Operation::Arrive {
                flow, bytes, pkts, ..
            } => {
                let item = (number as u64, flow, pkts);
                let class = flow as usize % nqueues;
                let mut arrival = Arrival {
                    class,
                    flow: 0,
                    bytes,
                    pkts,
                };
                alone.arrive(now_ns, arrival, item, |item, _, _| of_alone.push(item));
                (arrival.class, arrival.flow) = (0, flow);
                nested.arrive(now_ns, arrival, item, |item, _, _| of_nested.push(item));
            }
            Operation::Depart => {
                let seen = |departure: Departure<Item>| {
                    (departure.item, departure.sojourn_ns, departure.marked)
                };
                left[0] = alone
                    .dequeue(now_ns, can_mark, |item, _, _| of_alone.push(item))
                    .map(seen);
                left[1] = nested
                    .dequeue(now_ns, can_mark, |item, _, why| {
                        assert_eq!(why, DropReason::Policy);
                        of_nested.push(item);
                    })
                    .map(seen);
            }
        }
        let did = gone.into_iter().zip(left);
        let did: Vec<_> = did.map(|(gone, left)| Did { gone, left }).collect();
        assert_eq!(did[0], did[1], "{} over {}", outer.name, isolation.name());
    }
}

/// Packets are neither lost nor doubled, flows keep their order, limits hold, and the policy of the classes sees what waits.
fn live(
    info: &'static PolicyInfo,
    limits: [Limit; 3],
    isolations: [Option<Isolation>; 3],
    operations: &[(u64, Operation)],
) {
    let mut mux = mux(info, &info.default_params(), &limits);
    for (class, isolation) in isolations.into_iter().enumerate() {
        mux.isolate(class, isolation);
    }
    // What waits, in order of arrival: class, item, bytes.
    let mut waiting: VecDeque<(usize, Item, u32)> = VecDeque::new();
    let mut now_ns = 0;
    let take = |waiting: &mut VecDeque<(usize, Item, u32)>, class, item: Item| {
        let at = waiting
            .iter()
            .position(|row| (row.0, row.1) == (class, item));
        waiting.remove(at.expect("what goes has waited"))
    };
    for (number, (ns, operation)) in operations.iter().enumerate() {
        now_ns += ns;
        match *operation {
            Operation::Arrive {
                class,
                flow,
                bytes,
                pkts,
            } => {
                let item = (number as u64, flow, pkts);
                waiting.push_back((class, item, bytes));
                let arrival = Arrival {
                    class,
                    flow,
                    bytes,
                    pkts,
                };
                mux.arrive(now_ns, arrival, item, |item, class, _| {
                    take(&mut waiting, class, item);
                });
            }
            Operation::Depart => {
                mux.next_class(now_ns);
                let heads: Vec<_> = (0..3).map(|class| mux.head(class).copied()).collect();
                match mux.step(now_ns, can_mark) {
                    Some(Step::Leaves(departure)) => {
                        let Departure { class, item, .. } = departure;
                        assert_eq!(heads[class], Some(item), "the head leaves");
                        let before = waiting.iter();
                        let mut before = before.take_while(|row| row.1 .0 < item.0);
                        let nqueues = isolations[class].map_or(1, queues_of);
                        let flow = |item: Item| item.1 as usize % nqueues;
                        let passed = before.find(|row| row.0 == class && flow(row.1) == flow(item));
                        assert_eq!(passed, None, "a flow keeps its order");
                        take(&mut waiting, class, item);
                    }
                    Some(Step::Dropped { class, item, .. }) => {
                        take(&mut waiting, class, item);
                    }
                    None => {}
                }
            }
        }
        for (class, queue) in mux.queues().iter().enumerate() {
            let mine = || waiting.iter().filter(move |row| row.0 == class);
            assert_eq!(queue.backlog_pkts as usize, mine().count());
            let bytes: u64 = mine().map(|row| u64::from(row.2)).sum();
            assert_eq!(queue.backlog_bytes, bytes);
            let pkts: u32 = mine().map(|row| row.1 .2).sum();
            assert_eq!(mux.waiting_pkts(class), pkts);
            assert!(limits[class].pkts.is_none_or(|most| pkts <= most));
            assert!(limits[class].bytes.is_none_or(|most| bytes <= most));
            let head = mux.head(class);
            let shown = mine().find(|row| Some(&row.1) == head).map(|row| row.2);
            assert_eq!(shown, head.map(|_| queue.head_bytes));
            assert_eq!(head.is_some(), pkts > 0);
        }
    }
}

fn limit() -> impl Strategy<Value = Limit> {
    let some = |most: std::ops::Range<u32>| prop::option::of(most);
    (some(1..60), some(3000..60_000), some(0..200), any::<bool>()).prop_map(
        |(pkts, bytes, age_ms, head)| Limit {
            pkts,
            bytes: bytes.map(u64::from),
            max_age_ns: age_ms.map(|ms| u64::from(ms) * 1_000_000),
            full: if head { Full::Head } else { Full::Tail },
            ..Limit::NONE
        },
    )
}

fn isolation() -> impl Strategy<Value = Option<Isolation>> {
    prop_oneof![
        Just(None),
        Just(Some(Isolation::FqCodel)),
        Just(Some(Isolation::Drr)),
        Just(Some(Isolation::DualPi2 { step_ns: None }))
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_class_with_the_link_to_itself_is_served_as_by_the_policy_of_its_flows(
        operations in operations(),
    ) {
        // These drop nothing themselves.
        for outer in ["fifo", "rr", "strict", "drr", "wrr", "pss"] {
            for isolation in Isolation::ALL {
                compare(policy(outer).unwrap(), isolation, &operations);
            }
        }
    }

    #[test]
    fn no_packet_is_lost_and_no_flow_changes_its_order(
        operations in operations(),
        limits in [limit(), limit(), limit()],
        isolations in [isolation(), isolation(), isolation()],
    ) {
        for info in nesting() {
            live(info, limits, isolations, &operations);
        }
    }
}

fn packet(flow: u32, bytes: u32) -> Arrival {
    Arrival {
        class: 0,
        flow,
        bytes,
        pkts: 1,
    }
}

/// One flow fills the class; packets of another still find room, and are sent next.
#[test]
fn a_full_class_drops_from_the_flow_with_most_bytes() {
    for (full, lost) in [(Full::Tail, 99), (Full::Head, 0)] {
        for isolation in [Isolation::FqCodel, Isolation::Drr] {
            let limit = Limit {
                pkts: Some(100),
                full,
                ..Limit::NONE
            };
            let mut mux = mux(policy("fifo").unwrap(), &[], &[limit]);
            mux.isolate(0, Some(isolation));
            for number in 0..100 {
                mux.arrive(0, packet(1, 1500), (number, 1, 1), |_, _, _| {
                    panic!("there was room")
                });
            }
            let mut gone = Vec::new();
            mux.arrive(1, packet(2, 100), (100, 2, 1), |item, _, why| {
                gone.push((item.0, why));
            });
            assert_eq!(gone, [(lost, DropReason::Head)]);
            // The flow that fills the class gets no more room.
            gone.clear();
            mux.arrive(2, packet(1, 1500), (101, 1, 1), |item, _, why| {
                gone.push((item.0, why));
            });
            let (refused, why) = match full {
                Full::Tail => (101, DropReason::Limit),
                Full::Head => (1, DropReason::Head),
            };
            assert_eq!(gone, [(refused, why)]);
            let left = std::iter::from_fn(|| mux.dequeue(3, |_| false, |_, _, _| {}));
            let left: Vec<_> = left.take(3).map(|departure| departure.item.0).collect();
            assert!(left[..3].contains(&100), "{left:?}");
            assert_eq!(mux.counters(0).dropped_limit_pkts, 2);
        }
    }
}

/// L4S and classic packets share one buffer, as those of Linux's DualPI2 do: the packet that comes is refused, or the oldest
/// is dropped, whichever kind has more.
#[test]
fn a_full_class_of_two_kinds_drops_as_one_queue() {
    for (full, lost) in [
        (Full::Tail, (100, DropReason::Limit)),
        (Full::Head, (0, DropReason::Head)),
    ] {
        let limit = Limit {
            pkts: Some(100),
            full,
            ..Limit::NONE
        };
        let mut mux = mux(policy("fifo").unwrap(), &[], &[limit]);
        mux.isolate(0, Some(Isolation::DualPi2 { step_ns: None }));
        for number in 0..100 {
            let kind = u32::from(number % 20 == 0);
            mux.arrive(0, packet(kind, 1500), (number, kind, 1), |_, _, _| {
                panic!("there was room")
            });
        }
        let mut gone = Vec::new();
        mux.arrive(1, packet(1, 100), (100, 1, 1), |item, _, why| {
            gone.push((item.0, why));
        });
        assert_eq!(gone, [lost]);
    }
}

/// A class of less than its part of the link is judged by how long its packets wait: with the same arrivals and departures as
/// alone, whatever the link and other classes do, it marks and drops the same.
#[test]
fn marks_depend_on_the_class_alone() {
    let mut marks = Vec::new();
    for (outer, nclasses) in [("fifo", 1), ("strict", 2), ("drr", 2), ("pss", 2)] {
        let mut mux = mux(
            policy(outer).unwrap(),
            &policy(outer).unwrap().default_params(),
            &vec![Limit::NONE; nclasses],
        );
        mux.isolate(0, Some(Isolation::DualPi2 { step_ns: None }));
        let mut found = Vec::new();
        for number in 0..6000_u64 {
            let now_ns = number * 1_000_000;
            // Of each five packets that come four leave.
            let kind = u32::from(number % 3 == 0);
            mux.arrive(now_ns, packet(kind, 1500), (number, kind, 1), |_, _, _| {});
            if number % 5 == 0 {
                continue;
            }
            for class in 1..nclasses {
                mux.set_rate(now_ns, class, 0);
            }
            let left = mux.dequeue(
                now_ns + 500_000,
                |_| true,
                |item, _, _| found.push((item.0, 0)),
            );
            found.extend(left.map(|left| (left.item.0, 1 + u64::from(left.marked))));
            for class in 1..nclasses {
                let arrival = Arrival {
                    class,
                    ..packet(0, 700)
                };
                mux.set_rate(now_ns + 500_000, class, RATE_BPS);
                mux.arrive(now_ns + 500_000, arrival, (number, 0, 1), |_, _, _| {});
            }
        }
        marks.push(found);
    }
    let count = |what| marks[0].iter().filter(|row| row.1 == what).count();
    assert!(
        count(0) > 100 && count(2) > 500,
        "{} {}",
        count(0),
        count(2)
    );
    for other in &marks[1..] {
        assert_eq!(*other, marks[0]);
    }
}

/// Two classes with the same packets at the same times have the same probability, and each its own random numbers. Of 400 or
/// more marks each, the marks that both make are as many as chance makes, within four standard deviations.
#[test]
fn classes_mark_independently() {
    let outer = policy("rr").unwrap();
    let mut mux = mux(outer, &outer.default_params(), &[Limit::NONE; 2]);
    for class in 0..2 {
        mux.isolate(class, Some(Isolation::DualPi2 { step_ns: None }));
    }
    let mut marked = [Vec::new(), Vec::new()];
    for number in 0..20_000_u64 {
        let now_ns = number * 1_000_000;
        for class in 0..2 {
            let arrival = Arrival {
                class,
                ..packet(0, 1500)
            };
            mux.arrive(now_ns, arrival, (number, 0, 1), |_, _, _| {});
        }
        // Packets wait for 40 ms at first, so the probability rises; then for as long as the target.
        let wait = if number < 400 { 40 } else { 15 };
        for _ in 0..2 {
            while mux.queues().iter().any(|queue| queue.backlog_pkts > wait) {
                let left = mux.dequeue(now_ns, |_| true, |_, _, _| panic!("all can be marked"));
                let left = left.expect("packets wait");
                marked[left.class].push(left.marked);
            }
        }
    }
    let [one, other] = &marked;
    let count = |marks: &[bool]| marks.iter().filter(|marked| **marked).count() as f64;
    let judged = one.len() as f64;
    assert_eq!(one.len(), other.len());
    let chance = count(one) * count(other) / judged;
    let both = one
        .iter()
        .zip(other)
        .filter(|(one, other)| **one && **other);
    let both = both.count() as f64;
    println!(
        "{} and {} of {judged} marked, {both} by both",
        count(one),
        count(other)
    );
    assert!(count(one) > 400.0 && count(other) > 400.0);
    assert!(
        (both - chance).abs() < 4.0 * chance.sqrt(),
        "{both}, by chance {chance}"
    );
}

/// CoDel's drops inside a class are drops by the policy.
#[test]
fn drops_of_the_flows_policy_are_counted_as_the_policys() {
    let mut mux = mux(policy("strict").unwrap(), &[], &[Limit::NONE]);
    mux.isolate(0, Some(Isolation::FqCodel));
    let mut gone = 0;
    for number in 0..2000 {
        let now_ns = number * 1_200_000;
        for flow in [1, 1, 2] {
            mux.arrive(now_ns, packet(flow, 1500), (number, flow, 1), |_, _, _| {
                panic!("there was room")
            });
        }
        mux.dequeue(
            now_ns,
            |_| false,
            |_, _, why| {
                assert_eq!(why, DropReason::Policy);
                gone += 1;
            },
        );
    }
    let counters = mux.counters(0);
    assert!(gone > 10, "{gone}");
    assert_eq!(counters.dropped_policy_pkts, gone);
    assert_eq!(counters.dropped_limit_pkts, 0);
}

#[test]
#[should_panic(expected = "packets of the class wait")]
fn packets_that_wait_are_not_sorted_again() {
    let mut mux = mux(policy("fifo").unwrap(), &[], &[Limit::NONE]);
    mux.enqueue(0, 0, 100, (0, 0, 1), |_, _, _| {});
    mux.isolate(0, Some(Isolation::Drr));
}

/// The rates of the queues do not matter inside a class, but a class whose channel is blocked sends nothing.
#[test]
fn a_blocked_class_sends_nothing() {
    let mut mux = mux(policy("rr").unwrap(), &[], &[Limit::NONE; 2]);
    mux.isolate(0, Some(Isolation::FqCodel));
    mux.arrive(0, packet(1, 100), (0, 1, 1), |_, _, _| {});
    mux.set_rate(0, 0, 0);
    assert_eq!(mux.dequeue(1, |_| false, |_, _, _| {}), None);
    mux.set_rate(2, 0, MAX_RATE_BPS);
    assert!(mux.dequeue(3, |_| false, |_, _, _| {}).is_some());
}
