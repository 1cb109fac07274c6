// SPDX-License-Identifier: BSD-3-Clause
//! Replays the lives of `vectors/queues/`, which the naive data plane in `oracle/queues.py` wrote: what classes with limits
//! drop, why, and what leaves. The format is described there.

mod made;

use std::fs;
use std::path::Path;

use linkweir_core::{
    policy, Arrival, CorePolicy, DropReason, Full, Isolation, Limit, Mux, Param, TimeLimit, Unit,
    UNSET,
};

fn values<'l>(words: &[&'l str]) -> Vec<(&'l str, &'l str)> {
    let pairs = words.iter().map(|word| word.split_once('=').unwrap());
    pairs.collect()
}

fn set(table: &[Param], row: &mut [u64], words: &[&str]) {
    for (name, value) in values(words) {
        let at = table.iter().position(|param| param.name == name).unwrap();
        let choice = |word: &str| table[at].choices.iter().position(|known| *known == word);
        row[at] = match value {
            "unset" => UNSET,
            word if table[at].unit == Unit::Choice => choice(word).unwrap() as u64,
            number => number.parse().unwrap(),
        };
    }
}

fn limit(words: &[&str]) -> Limit {
    let mut limit = Limit::NONE;
    let mut time = TimeLimit {
        ns: 0,
        least_bytes: 0,
    };
    for (name, value) in values(words) {
        let number = value.parse::<u64>();
        match name {
            "pkts" => limit.pkts = Some(number.unwrap() as u32),
            "bytes" => limit.bytes = Some(number.unwrap()),
            "time" => time.ns = number.unwrap(),
            "floor" => time.least_bytes = number.unwrap(),
            "least" => limit.least_ppm = number.unwrap() as u32,
            "age" => limit.max_age_ns = Some(number.unwrap()),
            "full" if value == "head" => limit.full = Full::Head,
            "full" => limit.full = Full::Tail,
            other => panic!("{other}"),
        }
    }
    limit.time = Some(time).filter(|time| time.ns > 0);
    limit
}

/// What a step dropped, as the file writes it; the policy's reasons are one here.
type Gone = Vec<(&'static str, usize, u64)>;

fn reason(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Limit => "limit",
        DropReason::Head => "head",
        DropReason::Age => "age",
        DropReason::Policy => "policy",
    }
}

fn expected(words: &[&str]) -> Vec<(String, usize, u64)> {
    let reasons = |word: &str| match word {
        "expired" | "victim" | "late" => "policy".to_string(),
        word => word.to_string(),
    };
    let drops = words.chunks(3).map(|drop| {
        let [why, class, number] = drop else {
            panic!("{words:?}");
        };
        (
            reasons(why),
            class.parse().unwrap(),
            number.parse().unwrap(),
        )
    });
    drops.collect()
}

fn same(place: &str, gone: &Gone, words: &[&str]) {
    let gone: Vec<_> = gone
        .iter()
        .map(|(r, q, n)| (r.to_string(), *q, *n))
        .collect();
    assert_eq!(gone, expected(words), "{place}");
}

/// Replays a file; returns how many packets were dropped for their age.
fn replay(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| line.split('#').next().unwrap());
    let lines: Vec<Vec<&str>> = lines
        .map(|line| line.split_whitespace().collect())
        .collect();
    let header = |name: &str| {
        let found = lines.iter().find(|words| words.first() == Some(&name));
        found.unwrap()[1]
    };
    let info = policy(header("policy")).unwrap();
    let nqueues: usize = header("queues").parse().unwrap();
    let (mut params, mut qparams) = (info.default_params(), info.default_qparams(nqueues));
    let mut limits = vec![Limit::NONE; nqueues];
    let mut isolations = Vec::new();
    let mut mux: Option<Mux<CorePolicy, u64>> = None;
    let mut number = 0;
    for (at, words) in lines.iter().enumerate() {
        let place = format!("{}:{}: {}", path.display(), at + 1, words.join(" "));
        let n = info.qparams.len();
        match words[..] {
            ["set", ref rest @ ..] => set(&info.params, &mut params, rest),
            ["queue", q, ref rest @ ..] => {
                let q: usize = q.parse().unwrap();
                set(&info.qparams, &mut qparams[q * n..(q + 1) * n], rest);
            }
            ["limit", q, ref rest @ ..] => limits[q.parse::<usize>().unwrap()] = limit(rest),
            ["flows", q, name] => {
                let known = Isolation::ALL.into_iter();
                let isolation = known.into_iter().find(|known| known.name() == name);
                isolations.push((q.parse().unwrap(), isolation));
            }
            ["at", ns, "init"] => {
                let bps = header("link").parse().unwrap();
                let made = Mux::new(ns.parse().unwrap(), bps, &limits, |view| {
                    CorePolicy::new(info, view, &params, &qparams)
                });
                let made = mux.insert(made.unwrap());
                for (class, isolation) in &isolations {
                    made.isolate(*class, *isolation);
                }
            }
            ["at", ns, operation, ref rest @ ..] => {
                let (now_ns, mux) = (ns.parse().unwrap(), mux.as_mut().unwrap());
                let mut gone = Gone::new();
                let mut drops = |item, class, why| gone.push((reason(why), class, item));
                match (operation, rest) {
                    ("arrive", [q, bytes, rest @ ..]) => {
                        let (class, flow) = q.split_once('.').unwrap_or((q, "0"));
                        let arrival = Arrival {
                            class: class.parse().unwrap(),
                            flow: flow.parse().unwrap(),
                            bytes: bytes.parse().unwrap(),
                            pkts: 1,
                        };
                        mux.arrive(now_ns, arrival, number, &mut drops);
                        number += 1;
                        same(&place, &gone, rest);
                    }
                    ("look", rest) => {
                        mux.drop_aged(now_ns, u32::MAX, &mut drops);
                        same(&place, &gone, rest);
                    }
                    ("depart", [rest @ .., "none"]) => {
                        let left = mux.dequeue(now_ns, |_| false, &mut drops);
                        same(&place, &gone, rest);
                        assert_eq!(left, None, "{place}");
                    }
                    ("depart", [rest @ .., "leaves", q, of, waited]) => {
                        let left = mux.dequeue(now_ns, |_| false, &mut drops).expect(&place);
                        same(&place, &gone, rest);
                        let left = (left.class, left.item, left.sojourn_ns);
                        let wanted = (q.parse(), of.parse(), waited.parse());
                        assert_eq!((Ok(left.0), Ok(left.1), Ok(left.2)), wanted, "{place}");
                    }
                    ("link", [bps]) => mux.set_link(now_ns, bps.parse().unwrap()),
                    ("rate", [q, bps]) => {
                        mux.set_rate(now_ns, q.parse().unwrap(), bps.parse().unwrap());
                    }
                    ("limit", [q, rest @ ..]) => mux.set_limit(q.parse().unwrap(), limit(rest)),
                    _ => panic!("{place}"),
                }
            }
            _ => {}
        }
    }
    let mux = mux.unwrap();
    let counted = |class| mux.counters(class).dropped_age_pkts;
    (0..nqueues).map(counted).sum()
}

#[test]
fn classes_with_limits_drop_and_send_what_the_naive_data_plane_does() {
    let (mut files, mut aged) = (0, 0);
    for file in fs::read_dir(made::vectors().join("queues")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "life") {
            aged += replay(&path);
            files += 1;
        }
    }
    assert!(files >= 39 && aged > 3000, "{files} files, {aged} too old");
}
