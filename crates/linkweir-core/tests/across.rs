// SPDX-License-Identifier: BSD-3-Clause
//! A policy across users and one inside each: replays the lives of `vectors/across/`, which the naive model in
//! `oracle/across.py` wrote and describes, and compares users with one class with queues of the policy itself.

mod made;

use std::fs;
use std::path::Path;

use linkweir_core::{
    policies, policy, CorePolicy, Limit, Mux, Nested, Param, Policy, PolicyInfo, Settings, Unit,
    View, UNSET,
};
use proptest::prelude::*;

/// Values of a policy, with one row per queue.
struct Values {
    info: &'static PolicyInfo,
    params: Vec<u64>,
    qparams: Vec<u64>,
}

impl Values {
    fn new(name: &str, nqueues: usize) -> Values {
        let info = policy(name).unwrap();
        Values {
            info,
            params: info.default_params(),
            qparams: info.default_qparams(nqueues),
        }
    }

    fn row(&mut self, q: usize) -> &mut [u64] {
        let n = self.info.qparams.len();
        &mut self.qparams[q * n..(q + 1) * n]
    }

    fn settings(&self) -> Settings<'_> {
        Settings {
            info: self.info,
            params: &self.params,
            qparams: &self.qparams,
        }
    }
}

fn set(table: &[Param], row: &mut [u64], words: &[&str]) {
    for (name, value) in words.iter().map(|word| word.split_once('=').unwrap()) {
        let at = table.iter().position(|param| param.name == name).unwrap();
        let choice = |word: &str| table[at].choices.iter().position(|known| *known == word);
        row[at] = match value {
            "unset" => UNSET,
            word if table[at].unit == Unit::Choice => choice(word).unwrap() as u64,
            number => number.parse().unwrap(),
        };
    }
}

/// Class and number of each packet that was dropped, of words like `drops Q NUMBER Q NUMBER`.
fn dropped(words: &[&str]) -> Vec<(usize, u64)> {
    let pairs = words.strip_prefix(&["drops"]).unwrap_or(&[]).chunks(2);
    pairs
        .map(|pair| (pair[0].parse().unwrap(), pair[1].parse().unwrap()))
        .collect()
}

/// Replays a file; returns how many packets left.
fn replay(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('#').next().unwrap().split_whitespace().collect())
        .collect();
    let header = |name: &str| {
        let found = lines.iter().find(|words| words.first() == Some(&name));
        found.unwrap()[1]
    };
    let nusers: usize = header("users").parse().unwrap();
    let nclasses = nusers * header("classes").parse::<usize>().unwrap();
    let users: Vec<usize> = (0..nclasses).map(|class| class % nusers).collect();
    let mut across = Values::new(header("across"), nusers);
    let mut inside = Values::new(header("inside"), nclasses);
    let mut rates_bps = vec![header("link").parse::<u64>().unwrap(); nclasses];
    let mut mux: Option<Mux<Nested, u64>> = None;
    let (mut number, mut sent) = (0, 0);
    for (at, words) in lines.iter().enumerate() {
        let place = format!("{}:{}: {}", path.display(), at + 1, words.join(" "));
        match words[..] {
            ["set", "across", ref rest @ ..] => set(&across.info.params, &mut across.params, rest),
            ["set", "inside", ref rest @ ..] => set(&inside.info.params, &mut inside.params, rest),
            ["row", "across", n, ref rest @ ..] => {
                set(&across.info.qparams, across.row(n.parse().unwrap()), rest);
            }
            ["row", "inside", n, ref rest @ ..] => {
                for user in 0..nusers {
                    let class = n.parse::<usize>().unwrap() * nusers + user;
                    set(&inside.info.qparams, inside.row(class), rest);
                }
            }
            ["at", ns, "init"] => {
                let bps = header("link").parse().unwrap();
                let limits = vec![Limit::NONE; nclasses];
                let made = Mux::new(ns.parse().unwrap(), bps, &limits, |view| {
                    Nested::new(view, &users, across.settings(), inside.settings())
                });
                mux = Some(made.unwrap());
            }
            ["at", ns, ref operation @ ..] => {
                let (now_ns, mux) = (ns.parse().unwrap(), mux.as_mut().unwrap());
                let mut gone = Vec::new();
                let drops = |item, class, _| gone.push((class, item));
                match operation {
                    ["arrive", class, bytes, rest @ ..] => {
                        let (class, bytes) = (class.parse().unwrap(), bytes.parse().unwrap());
                        mux.enqueue(now_ns, class, bytes, number, drops);
                        number += 1;
                        assert_eq!(gone, dropped(rest), "{place}");
                    }
                    ["depart", rest @ .., "none"] => {
                        assert_eq!(mux.dequeue(now_ns, |_| false, drops), None, "{place}");
                        assert_eq!(gone, dropped(rest), "{place}");
                    }
                    ["depart", rest @ .., "leaves", class, item] => {
                        let left = mux.dequeue(now_ns, |_| false, drops).expect(&place);
                        assert_eq!(gone, dropped(rest), "{place}");
                        let wanted = (class.parse().unwrap(), item.parse().unwrap());
                        assert_eq!((left.class, left.item), wanted, "{place}");
                        sent += 1;
                    }
                    ["channel", user, bps] => {
                        let user = user.parse::<usize>().unwrap();
                        for class in (0..nclasses).filter(|class| users[*class] == user) {
                            rates_bps[class] = bps.parse().unwrap();
                        }
                        mux.set_rates(now_ns, rates_bps.iter().copied());
                    }
                    ["link", bps] => mux.set_link(now_ns, bps.parse().unwrap()),
                    _ => panic!("{place}"),
                }
            }
            _ => {}
        }
    }
    sent
}

#[test]
fn users_are_served_as_the_naive_model_serves_them() {
    let (mut files, mut sent) = (0, 0);
    for file in fs::read_dir(made::vectors().join("across")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "life") {
            sent += replay(&path);
            files += 1;
        }
    }
    assert!(files >= 88 && sent > 5000, "{files} files, {sent} sent");
}

const CLASSES: usize = 4;
const RATE_BPS: u64 = 10_000_000;

/// Parameters with which a policy accepts queues, each at a level of its own where it has levels.
fn values(info: &'static PolicyInfo) -> Values {
    let mut values = Values::new(info.name, CLASSES);
    if let Some(level) = info.qparam("level").filter(|_| info.name != "drr") {
        for q in 0..CLASSES {
            values.row(q)[level] = q as u64;
        }
    }
    values
}

/// (arrival's class, bytes), or a departure, or new rates.
#[derive(Clone, Debug)]
enum Operation {
    Arrive(usize, u32),
    Depart,
    Rates([u64; CLASSES]),
}

fn operations() -> impl Strategy<Value = Vec<(u64, Operation)>> {
    let rate = prop_oneof![1 => Just(0), 6 => 100_000..RATE_BPS];
    let operation = prop_oneof![
        8 => (0..CLASSES, 40..1500_u32).prop_map(|(class, bytes)| Operation::Arrive(class, bytes)),
        7 => Just(Operation::Depart),
        1 => prop::array::uniform4(rate).prop_map(Operation::Rates),
    ];
    prop::collection::vec((0..3_000_000_u64, operation), 1..300)
}

/// What a policy lets leave and drops.
fn lived<P: Policy>(
    operations: &[(u64, Operation)],
    start: impl FnOnce(&View<'_>) -> P,
) -> Vec<(usize, u64, bool)> {
    let limits = [Limit::NONE; CLASSES];
    let mux = Mux::new(0, RATE_BPS, &limits, |view| Ok::<P, ()>(start(view)));
    let (mut mux, mut now_ns, mut number) = (mux.unwrap(), 0, 0);
    let mut lived = Vec::new();
    for (ns, operation) in operations {
        now_ns += ns;
        match operation {
            Operation::Arrive(class, bytes) => {
                mux.enqueue(now_ns, *class, *bytes, number, |_, _, _| {});
                number += 1;
            }
            Operation::Depart => {
                let drops = |item, class, _| lived.push((class, item, false));
                let left = mux.dequeue(now_ns, |_| false, drops);
                lived.extend(left.map(|left| (left.class, left.item, true)));
            }
            Operation::Rates(rates) => mux.set_rates(now_ns, *rates),
        }
    }
    lived
}

proptest! {
    #[test]
    fn a_user_with_one_class_is_a_queue_of_the_policy_across(operations in operations()) {
        let fifo = Values::new("fifo", CLASSES);
        for info in policies().iter().filter(|info| info.nests()) {
            let own = values(info);
            let flat = lived(&operations, |view| {
                CorePolicy::new(info, view, &own.params, &own.qparams).unwrap()
            });
            let nested = lived(&operations, |view| {
                Nested::new(view, &[0, 1, 2, 3], own.settings(), fifo.settings()).unwrap()
            });
            prop_assert_eq!(flat, nested, "{}", info.name);
        }
    }

    #[test]
    fn one_user_alone_is_served_by_the_policy_inside(operations in operations()) {
        let rr = Values::new("rr", 1);
        // Channels are not shared here, so only policies for which rates do not matter.
        let open = operations.into_iter().filter(|(_, o)| !matches!(o, Operation::Rates(_)));
        let operations: Vec<_> = open.collect();
        // Inside a user the policy is asked after each event, as in a hub, not only when a packet is to leave. These begin
        // a queue's turn when they are asked, so a packet that comes after that is too late for it.
        let begins_turns = |name| ["rr", "drr", "wrr", "fq_codel"].contains(&name);
        let inside = policies().iter().filter(|info| !begins_turns(info.name));
        for info in inside.filter(|info| info.max_queues >= CLASSES) {
            let own = values(info);
            let flat = lived(&operations, |view| {
                CorePolicy::new(info, view, &own.params, &own.qparams).unwrap()
            });
            let nested = lived(&operations, |view| {
                Nested::new(view, &[0; CLASSES], rr.settings(), own.settings()).unwrap()
            });
            prop_assert_eq!(flat, nested, "{}", info.name);
        }
    }
}

#[test]
fn a_fault_names_the_class_or_the_user() {
    let limits = [Limit::NONE; 4];
    let start = |across: &Values, inside: &Values| {
        let made: Result<Mux<Nested, ()>, _> = Mux::new(0, 1_000_000, &limits, |view| {
            Nested::new(view, &[0, 1, 0, 1], across.settings(), inside.settings())
        });
        made.unwrap_err().queue
    };
    let (rr, fifo) = (Values::new("rr", 2), Values::new("fifo", 4));
    let mut strict = Values::new("strict", 4);
    let level = strict.info.qparam("level").unwrap();
    for (q, of) in [0, 0, 1, 0].into_iter().enumerate() {
        strict.row(q)[level] = of;
    }
    // Classes 1 and 3 belong to one user and have one level.
    assert_eq!(start(&rr, &strict), Some(3));
    let mut pf = Values::new("pf", 2);
    let weight = pf.info.qparam("weight").unwrap();
    pf.row(1)[weight] = 0;
    assert_eq!(start(&pf, &fifo), Some(1));
}
