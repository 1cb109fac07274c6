// SPDX-License-Identifier: BSD-3-Clause
//! Random lives of packet queues under every policy, compared at each step with a model that keeps its own counts.

use std::collections::VecDeque;

use linkweir_core::{
    policies, Arrival, CorePolicy, Departure, DropReason, Fault, Limit, Mux, Pick, Policy,
    PolicyInfo, View, MOST_DROPS,
};
use proptest::prelude::*;

/// A packet that differs from any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    serial: u64,
    class: usize,
    bytes: u32,
    arrival_ns: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Arrive { class: usize, bytes: u32 },
    Depart,
    Block(usize),
    Unblock(usize),
    Rates(u16),
    Link(u64),
    Limit { class: usize, limit: Limit },
    Expire { class: usize, most_ns: u64 },
}

fn steps(nclasses: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..3_000_000u64).prop_map(Step::Wait),
        8 => (0..nclasses, 40..1600u32).prop_map(|(class, bytes)| Step::Arrive { class, bytes }),
        5 => Just(Step::Depart),
        1 => (0..nclasses).prop_map(Step::Block),
        1 => (0..nclasses).prop_map(Step::Unblock),
        1 => (0..u16::MAX).prop_map(Step::Rates),
        1 => (1_000_000..100_000_000u64).prop_map(Step::Link),
        1 => (0..nclasses, limit()).prop_map(|(class, limit)| Step::Limit { class, limit }),
        1 => (0..nclasses, 0..9_000_000u64).prop_map(|(class, most_ns)| Step::Expire { class, most_ns }),
    ];
    prop::collection::vec(step, 1..300)
}

fn limit() -> impl Strategy<Value = Limit> {
    (prop::option::of(0..20u32), prop::option::of(0..20_000u64)).prop_map(|(pkts, bytes)| Limit {
        pkts,
        bytes,
        ..Limit::NONE
    })
}

/// Parameters that the policy accepts for these classes, with limits small enough to be reached.
fn configured(info: &'static PolicyInfo, nclasses: usize, early: bool) -> (Vec<u64>, Vec<u64>) {
    let mut params = info.default_params();
    let mut qparams = info.default_qparams(nclasses);
    let mut set = |queue: usize, name: &str, value: u64| {
        qparams[queue * info.qparams.len() + info.qparam(name).unwrap()] = value;
    };
    match info.name {
        "pss" => {
            for q in 0..nclasses {
                set(q, "level", 2 * q as u64);
            }
            set(0, "low_level", 2 * nclasses as u64 + 1);
            set(0, "rate", 100_000);
        }
        "pds" => {
            for q in 0..nclasses {
                set(q, "loss", 1 + q as u64);
            }
            params[info.param("limit").unwrap()] = 12;
            params[info.param("qmin").unwrap()] = 4;
            params[info.param("early").unwrap()] = u64::from(early);
        }
        "codes" => {
            for q in 1..nclasses {
                set(q, "timeout", 500_000 * q as u64);
            }
        }
        "mlwdf" | "exp_rule" | "exp_pf" => {
            for q in 1..nclasses {
                set(q, "target", 500_000 * q as u64);
            }
            params[info.param("expire").unwrap()] = u64::from(early);
        }
        "codel" | "fq_codel" => {
            params[info.param("target").unwrap()] = 1_000;
            params[info.param("interval").unwrap()] = 1_000_000;
            params[info.param("mtu").unwrap()] = 0;
            params[info.param("ecn").unwrap()] = u64::from(early);
            if info.name == "fq_codel" {
                params[info.param("limit").unwrap()] = 12;
            }
        }
        _ => {}
    }
    (params, qparams)
}

/// What must be in the queues and in the counters.
struct Model {
    info: &'static PolicyInfo,
    limits: Vec<Limit>,
    now_ns: u64,
    /// Packets that have come.
    serial: u64,
    waiting: Vec<VecDeque<Packet>>,
    arrived: Vec<(u64, u64)>,
    sent: Vec<(u64, u64)>,
    refused: Vec<(u64, u64)>,
    victims: Vec<(u64, u64)>,
}

type Queues = Mux<CorePolicy, Packet>;

impl Model {
    fn new(info: &'static PolicyInfo, limits: &[Limit]) -> Model {
        let nclasses = limits.len();
        Model {
            info,
            limits: limits.to_vec(),
            now_ns: 0,
            serial: 0,
            waiting: vec![VecDeque::new(); nclasses],
            arrived: vec![(0, 0); nclasses],
            sent: vec![(0, 0); nclasses],
            refused: vec![(0, 0); nclasses],
            victims: vec![(0, 0); nclasses],
        }
    }

    /// Lets one thing happen to the queues and compares what comes of it with what must.
    fn step(&mut self, mux: &mut Queues, step: &Step) {
        let now_ns = self.now_ns;
        match *step {
            Step::Wait(ns) => self.now_ns += ns,
            Step::Arrive { class, bytes } => self.arrives(mux, class, bytes),
            Step::Depart => self.departs(mux),
            Step::Block(class) => mux.set_rate(now_ns, class, 0),
            Step::Unblock(class) => mux.set_rate(now_ns, class, 10_000_000),
            Step::Rates(open) => self.rates(mux, open),
            Step::Link(bps) => mux.set_link(now_ns, bps),
            Step::Limit { class, limit } => {
                self.limits[class] = limit;
                mux.set_limit(class, limit);
            }
            Step::Expire { class, most_ns } => self.expires(mux, class, most_ns),
        }
    }

    fn arrives(&mut self, mux: &mut Queues, class: usize, bytes: u32) {
        self.serial += 1;
        let packet = Packet {
            serial: self.serial,
            class,
            bytes,
            arrival_ns: self.now_ns,
        };
        count(&mut self.arrived[class], bytes);
        self.waiting[class].push_back(packet);
        let mut refused = false;
        mux.enqueue(self.now_ns, class, bytes, packet, |item, of, reason| {
            assert_eq!(item.class, of);
            if reason == DropReason::Limit {
                refused = true;
                assert_eq!(self.waiting[of].pop_back(), Some(item));
                assert_eq!(item, packet, "the limit refuses the packet that comes");
                count(&mut self.refused[of], item.bytes);
            } else {
                assert!(
                    !refused,
                    "no victim is asked for a packet that never came in"
                );
                self.drops(item);
            }
        });
        if refused {
            let mut with = self.waiting[class].clone();
            with.push_back(packet);
            assert!(
                !within(&with, self.limits[class]),
                "what fits is not refused"
            );
        } else {
            assert!(
                within(&self.waiting[class], self.limits[class]),
                "what does not fit is refused"
            );
        }
    }

    /// The policy dropped a head or a tail: heads where it judges what leaves, tails elsewhere.
    fn drops(&mut self, item: Packet) {
        let queue = &mut self.waiting[item.class];
        let heads = !matches!(self.info.name, "pds");
        let end = if heads {
            queue.pop_front()
        } else {
            queue.pop_back()
        };
        assert_eq!(end, Some(item), "an end of the queue goes");
        count(&mut self.victims[item.class], item.bytes);
    }

    fn departs(&mut self, mux: &mut Queues) {
        let can_carry_mark = |item: &Packet| item.serial % 3 == 0;
        let could_send = is_ready(mux);
        let departure = mux.dequeue(self.now_ns, can_carry_mark, |item, of, reason| {
            assert_eq!((item.class, reason), (of, DropReason::Policy));
            self.drops(item);
        });
        assert!(departure.is_none() || could_send);
        // The policy may have dropped all that was ready.
        assert!(departure.is_some() || !is_ready(mux), "work conservation");
        let Some(Departure {
            class,
            item,
            bytes,
            sojourn_ns,
            marked,
        }) = departure
        else {
            return;
        };
        assert!(
            !marked || can_carry_mark(&item),
            "only a packet that can carry a mark is marked"
        );
        assert_eq!(
            self.waiting[class].pop_front(),
            Some(item),
            "the head leaves"
        );
        assert_eq!((item.class, item.bytes), (class, bytes));
        assert_eq!(sojourn_ns, self.now_ns - item.arrival_ns);
        assert_ne!(
            mux.queues()[class].rate_bps,
            0,
            "a blocked class sends nothing"
        );
        count(&mut self.sent[class], bytes);
    }

    /// Sets the rates of all classes at once; a bit of `open` for each class says whether it is open.
    fn rates(&mut self, mux: &mut Queues, open: u16) {
        let rate_bps = |class: usize| {
            let is_open = open >> (class % 16) & 1;
            u64::from(is_open) * 1_000_000 * (class as u64 + 1)
        };
        mux.set_rates(self.now_ns, (0..self.limits.len()).map(rate_bps));
        for (class, queue) in mux.queues().iter().enumerate() {
            assert_eq!(queue.rate_bps, rate_bps(class));
        }
    }

    fn expires(&mut self, mux: &mut Queues, class: usize, most_ns: u64) {
        let now_ns = self.now_ns;
        mux.expire(now_ns, class, most_ns, |item| {
            assert_eq!(self.waiting[class].pop_front(), Some(item), "the head goes");
            assert!(now_ns - item.arrival_ns > most_ns);
            count(&mut self.victims[class], item.bytes);
        });
        let oldest = self.waiting[class].front();
        assert!(oldest.is_none_or(|p| now_ns - p.arrival_ns <= most_ns));
    }
}

/// Whether a packet waits whose class is not blocked.
fn is_ready(mux: &Queues) -> bool {
    let mut queues = mux.queues().iter();
    queues.any(|q| q.backlog_pkts > 0 && q.rate_bps > 0)
}

/// Nothing is dropped.
fn none<T>(_: T, class: usize, reason: DropReason) {
    panic!("class {class}: {reason:?}");
}

fn within(waiting: &VecDeque<Packet>, limit: Limit) -> bool {
    let held: u64 = waiting.iter().map(|p| u64::from(p.bytes)).sum();
    limit.pkts.is_none_or(|most| waiting.len() <= most as usize)
        && limit.bytes.is_none_or(|most| held <= most)
}

fn count(place: &mut (u64, u64), bytes: u32) {
    place.0 += 1;
    place.1 += u64::from(bytes);
}

fn live(info: &'static PolicyInfo, early: bool, limits: &[Limit], steps: &[Step]) {
    let nclasses = limits.len();
    let (params, qparams) = configured(info, nclasses, early);
    let mut mux: Queues = Mux::new(0, 10_000_000, limits, |view| {
        CorePolicy::new(info, view, &params, &qparams)
    })
    .unwrap();
    let mut model = Model::new(info, limits);
    for step in steps {
        model.step(&mut mux, step);
        for class in 0..nclasses {
            agree(&mux, &model, class);
        }
    }
}

fn agree(mux: &Queues, model: &Model, class: usize) {
    let (queue, counters, waiting) = (
        mux.queues()[class],
        mux.counters(class),
        &model.waiting[class],
    );
    assert_eq!(queue.backlog_pkts as usize, waiting.len());
    assert_eq!(
        queue.backlog_bytes,
        waiting.iter().map(|p| u64::from(p.bytes)).sum::<u64>()
    );
    if let Some(head) = waiting.front() {
        assert_eq!(
            (queue.head_bytes, queue.head_arrival_ns),
            (head.bytes, head.arrival_ns)
        );
    }
    assert_eq!(
        (counters.arrived_pkts, counters.arrived_bytes),
        model.arrived[class]
    );
    assert_eq!((counters.sent_pkts, counters.sent_bytes), model.sent[class]);
    assert_eq!(
        (counters.dropped_limit_pkts, counters.dropped_limit_bytes),
        model.refused[class]
    );
    assert_eq!(
        (counters.dropped_policy_pkts, counters.dropped_policy_bytes),
        model.victims[class]
    );
    assert_eq!(counters.sojourn_ns.whole().len(), counters.sent_pkts);
    assert_eq!(
        counters.arrived_pkts,
        counters.sent_pkts
            + counters.dropped_limit_pkts
            + counters.dropped_policy_pkts
            + u64::from(queue.backlog_pkts)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_and_bytes_are_conserved(
        (limits, steps) in (1..6usize).prop_flat_map(|n| (prop::collection::vec(limit(), n), steps(n))),
        early: bool,
    ) {
        for info in policies() {
            live(info, early, &limits, &steps);
        }
    }
}

#[test]
fn time_never_goes_back() {
    let info = linkweir_core::policy("fifo").unwrap();
    let mut mux: Mux<CorePolicy, ()> = Mux::new(0, 1_000_000, &[Limit::default()], |view| {
        CorePolicy::new(info, view, &[], &[])
    })
    .unwrap();
    mux.enqueue(1_000, 0, 100, (), |(), _, _| {});
    assert_eq!(mux.dequeue(400, |()| false, none).unwrap().sojourn_ns, 0);
    mux.enqueue(400, 0, 100, (), |(), _, _| {});
    assert_eq!(
        mux.dequeue(1_700, |()| false, none).unwrap().sojourn_ns,
        700
    );
}

#[test]
fn the_packets_of_a_train_are_counted_and_scheduled_as_one() {
    let strict = linkweir_core::policy("strict").unwrap();
    let limits = [Limit {
        pkts: Some(11),
        bytes: Some(9000),
        ..Limit::NONE
    }];
    let mut mux = Mux::new(0, 1_000_000, &limits, |view| {
        let (params, qparams) = (strict.default_params(), strict.default_qparams(1));
        CorePolicy::new(strict, view, &params, &qparams)
    })
    .unwrap();
    let mut refused = Vec::new();
    // Name, packets, bytes: the third is one packet too many, the fifth a byte.
    for (name, pkts, bytes) in [
        ('a', 4, 4000),
        ('b', 5, 500),
        ('c', 3, 100),
        ('d', 1, 4500),
        ('e', 1, 1),
    ] {
        let train = Arrival {
            class: 0,
            flow: 0,
            bytes,
            pkts,
        };
        mux.arrive(0, train, name, |name, _, reason| {
            assert_eq!(reason, DropReason::Limit);
            refused.push(name);
        });
    }
    assert_eq!(refused, ['c', 'e']);
    assert_eq!((mux.waiting_pkts(0), mux.queues()[0].backlog_pkts), (10, 3));
    let next = mux.dequeue(7, |_| false, |_, _, _| {}).unwrap();
    assert_eq!((next.item, next.bytes), ('a', 4000));
    let counters = mux.counters(0);
    assert_eq!((counters.arrived_pkts, counters.arrived_bytes), (14, 9101));
    assert_eq!((counters.dropped_limit_pkts, counters.sent_pkts), (4, 4));
    assert_eq!(counters.sojourn_ns.whole().len(), 4);
    mux.expire(100, 0, 50, drop);
    assert_eq!(mux.counters(0).dropped_policy_pkts, 6);
    assert_eq!(mux.waiting_pkts(0), 0);
}

#[test]
fn a_packet_expires_when_it_has_waited_longer_not_as_long() {
    let fifo = linkweir_core::policy("fifo").unwrap();
    let mut mux = Mux::new(0, 1_000_000, &[Limit::default()], |view| {
        CorePolicy::new(fifo, view, &[], &[])
    })
    .unwrap();
    for at_ns in [0, 1, 2] {
        mux.enqueue(at_ns, 0, 100, at_ns, |_, _, _| {});
    }
    let mut expired = |now_ns| {
        let mut gone = Vec::new();
        mux.expire(now_ns, 0, 50, |item| gone.push(item));
        gone
    };
    assert_eq!(expired(50), []);
    assert_eq!(expired(51), [0]);
    assert_eq!(expired(51), []);
    assert_eq!(expired(53), [1, 2]);
    assert_eq!(expired(1000), []);
}

#[test]
#[should_panic(expected = "at least one packet")]
fn a_train_without_packets_is_refused() {
    let fifo = linkweir_core::policy("fifo").unwrap();
    let mut mux = Mux::new(0, 1_000_000, &[Limit::default()], |view| {
        CorePolicy::new(fifo, view, &[], &[])
    })
    .unwrap();
    let train = Arrival {
        class: 0,
        flow: 0,
        bytes: 100,
        pkts: 0,
    };
    mux.arrive(0, train, (), |(), _, _| {});
}

#[test]
fn each_arrival_leaves_fewer_packets_until_a_lowered_limit_is_reached() {
    for (name, most) in [("pds", 2), ("fq_codel", MOST_DROPS as usize)] {
        let info = linkweir_core::policy(name).unwrap();
        let nclasses = 3;
        let with_limit = |pkts| {
            let mut params = info.default_params();
            params[info.param("limit").unwrap()] = pkts;
            params
        };
        let qparams = info.default_qparams(nclasses);
        let mut mux = Mux::new(0, 1_000_000, &vec![Limit::default(); nclasses], |view| {
            CorePolicy::new(info, view, &with_limit(2000), &qparams)
        })
        .unwrap();
        for packet in 0..2000 {
            mux.enqueue(0, packet % nclasses, 100, packet, none);
        }
        mux.change(0, &with_limit(10), &qparams).unwrap();
        let held = |mux: &Mux<CorePolicy, usize>| {
            (0..nclasses)
                .map(|class| mux.waiting_pkts(class) as usize)
                .sum::<usize>()
        };
        let mut arrivals = 0;
        while held(&mux) > 10 {
            let before = held(&mux);
            let mut dropped = 0;
            mux.enqueue(0, 0, 100, 0, |_, _, reason| {
                assert_eq!(reason, DropReason::Policy);
                dropped += 1;
            });
            assert!(dropped <= most, "{name}: {dropped} drops for one arrival");
            assert_eq!(held(&mux), before + 1 - dropped);
            assert!(held(&mux) < before, "{name}: {before} packets stay");
            arrivals += 1;
        }
        assert!(
            arrivals >= (2000 - 10) / most,
            "{name}: {arrivals} arrivals"
        );
        mux.enqueue(0, 0, 100, 0, |_, _, _| {});
        assert!(held(&mux) <= 10, "{name}: the limit holds from then on");
    }
}

#[test]
fn a_bounded_number_of_old_packets_makes_room_for_one_that_comes() {
    let codes = linkweir_core::policy("codes").unwrap();
    let limit = |pkts| Limit {
        pkts: Some(pkts),
        ..Limit::NONE
    };
    let mut mux = Mux::new(0, 1_000_000, &[limit(200)], |view| {
        CorePolicy::new(
            codes,
            view,
            &codes.default_params(),
            &codes.default_qparams(1),
        )
    })
    .unwrap();
    for packet in 0..200 {
        mux.enqueue(0, 0, 100, packet, none);
    }
    mux.set_limit(0, limit(80));
    let later_ns = 1_000_000_000; // all have waited too long
    let mut reasons = Vec::new();
    let mut arrive = |packet| {
        reasons.clear();
        mux.enqueue(later_ns, 0, 100, packet, |_, _, reason| {
            reasons.push(reason);
        });
        (reasons.clone(), mux.waiting_pkts(0))
    };
    let old = MOST_DROPS as usize;
    let mut expected = vec![DropReason::Policy; old];
    expected.push(DropReason::Limit);
    assert_eq!(
        arrive(200),
        (expected, 200 - 64),
        "64 go, 136 still fill 80"
    );
    let (reasons, left) = arrive(201);
    assert_eq!(reasons, vec![DropReason::Policy; 136 - 79]);
    assert_eq!(left, 80, "the newcomer is in");
}

#[test]
fn new_rates_of_all_classes_are_one_report_to_the_policy() {
    /// Keeps the rates of each report.
    struct Reports(Vec<Vec<u64>>);
    impl Policy for Reports {
        fn pick(&mut self, _: &View<'_>) -> Pick {
            Pick::Nothing { retry_ns: None }
        }

        fn rated(&mut self, view: &View<'_>) {
            self.0
                .push(view.queues.iter().map(|q| q.rate_bps).collect());
        }
    }
    let limits = [Limit::default(); 3];
    let mut mux: Mux<Reports, ()> =
        Mux::new(0, 5, &limits, |_| Ok::<_, Fault>(Reports(Vec::new()))).unwrap();
    mux.set_rates(1, [7, 0, 9]);
    mux.set_rates(2, [8]);
    assert_eq!(mux.policy().0, [vec![7, 0, 9], vec![8, 0, 9]]);
}

#[test]
fn counters_begin_again_and_waiting_times_are_known_to_one_percent() {
    let info = linkweir_core::policy("fifo").unwrap();
    let mut mux: Mux<CorePolicy, u64> = Mux::new(0, 1_000_000, &[Limit::default()], |view| {
        CorePolicy::new(info, view, &[], &[])
    })
    .unwrap();
    mux.enqueue(0, 0, 100, 0, |_, _, _| {});
    mux.dequeue(5, |_| false, none);
    mux.reset_counters();
    assert_eq!(
        mux.counters(0).arrived_pkts
            + mux.counters(0).sent_pkts
            + mux.counters(0).sojourn_ns.whole().len(),
        0
    );
    let mut now_ns = 5;
    for wait_ns in 1..=10_000u64 {
        mux.enqueue(now_ns, 0, 100, wait_ns, |_, _, _| {});
        now_ns += wait_ns * 1_000;
        mux.dequeue(now_ns, |_| false, none);
    }
    for q in [0.5, 0.9, 0.99, 1.0] {
        let found = mux.counters(0).sojourn_ns.whole().value_at_quantile(q) as f64;
        let exact = q * 1e7;
        assert!(
            (found - exact).abs() <= 0.01 * exact,
            "{q}: {found} instead of {exact}"
        );
    }
}

#[test]
fn a_refused_configuration_names_parameter_queue_value_range_and_cure() {
    let info = linkweir_core::policy("drr").unwrap();
    let mut qparams = info.default_qparams(2);
    let quantum = info.qparam("quantum").unwrap();
    qparams[info.qparams.len() + quantum] = 1 << 30;
    let start = Mux::<CorePolicy, ()>::new(0, 1_000_000, &[Limit::default(); 2], |view| {
        CorePolicy::new(info, view, &info.default_params(), &qparams)
    });
    let fault = start.unwrap_err();
    assert_eq!((fault.param, fault.queue), (Some("quantum"), Some(1)));
    let range = info.qparams[quantum].range();
    assert_eq!(
        fault.to_string(),
        format!("drr: queue 1: quantum = 1073741824 bytes (allowed: {range}): give a value inside the range")
    );
}
