// SPDX-License-Identifier: BSD-3-Clause
//! Capacity by feedback over links that nobody knows, in virtual time: how much of the link is used, and how long voice takes.
//!
//! Each row is one link and load, made from a seed: the rule of this tree, an oracle that knows the capacity one report late,
//! and the same packets without a gateway, in the link's own queue. `used` is the part of the link's capacity that carried
//! packets. `EF` is the 99th percentile of how much longer voice takes than with the same trace without load; `in all` is that
//! of the whole delay.

mod path;
mod trace;

use std::process::ExitCode;

use linkweir_plane::setup::Bounds;
use path::{Load, Outcome, Path, Rule};
use trace::{Kind, Trace, MS, S};

/// Load above every link, bit/s.
const ABOVE: Load = Load::Constant(24_000_000);
const STEADY: Kind = Kind {
    levels: false,
    ripple: 0.0,
    ends_only: false,
    jitter_ns: 0,
    loss: 0.0,
    outage_ns: None,
};

struct Case {
    name: &'static str,
    kind: Kind,
    load: Load,
    /// Least part used, %, and greatest delay of voice above the path's, ms.
    wanted: (f64, f64),
}

fn cases() -> Vec<Case> {
    let levels = Kind {
        levels: true,
        ..STEADY
    };
    let ripple = Kind {
        ripple: 0.17,
        ..levels
    };
    let rough = Kind {
        jitter_ns: 15 * MS,
        loss: 0.01,
        ..ripple
    };
    let case = |name, kind, load, wanted| Case {
        name,
        kind,
        load,
        wanted,
    };
    vec![
        case("a", levels, Load::Cubic, (92.0, 20.0)),
        case("b", ripple, Load::Cubic, (85.0, 50.0)),
        case("c", rough, ABOVE, (82.0, 60.0)),
        case("a above", levels, ABOVE, (0.0, f64::MAX)),
        case("b above", ripple, ABOVE, (0.0, f64::MAX)),
        case(
            "b ends",
            Kind {
                ends_only: true,
                ..ripple
            },
            Load::Cubic,
            (0.0, f64::MAX),
        ),
        case(
            "c ends",
            Kind {
                ends_only: true,
                ..rough
            },
            ABOVE,
            (0.0, f64::MAX),
        ),
        case(
            "c no loss",
            Kind { loss: 0.0, ..rough },
            ABOVE,
            (0.0, f64::MAX),
        ),
        case("c cubic", rough, Load::Cubic, (0.0, f64::MAX)),
    ]
}

/// The bounds and the first capacity when the user chooses none.
fn bounds() -> (Bounds, u64) {
    let bounds = Bounds {
        floor_bps: 1_000_000,
        ceiling_bps: 40_000_000,
        delay_ns: 25 * MS,
    };
    (bounds, 10_000_000)
}

fn run(trace: &Trace, rule: Rule, load: Load) -> Outcome {
    let (bounds, begin_bps) = bounds();
    Path::new(trace, rule, load, bounds, begin_bps).run()
}

fn percentile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (part * values.len() as f64).ceil() as usize;
    values[at.clamp(1, values.len()) - 1]
}

/// The part used, %; how much longer voice takes than without load, ms; how long it takes in all, ms.
fn figures(trace: &Trace, outcome: &Outcome, empty: &Outcome) -> [f64; 4] {
    let used = 100.0 * outcome.carried.iter().sum::<f64>() / trace.bits(0, trace.end_ns);
    let mut longer = Vec::new();
    let mut without = empty.ef.iter().peekable();
    for (sent_ns, took_ns) in &outcome.ef {
        while without.peek().is_some_and(|(ns, _)| ns < sent_ns) {
            without.next();
        }
        if let Some((_, empty_ns)) = without.peek().filter(|(ns, _)| ns == sent_ns) {
            longer.push((*took_ns as f64 - *empty_ns as f64) / 1e6);
        }
    }
    let all = |outcome: &Outcome| {
        percentile(
            outcome.ef.iter().map(|(_, ns)| *ns as f64 / 1e6).collect(),
            0.99,
        )
    };
    [
        used,
        percentile(longer, 0.99),
        all(outcome) - all(empty),
        all(outcome),
    ]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seeds: u64 = arguments.first().and_then(|word| word.parse().ok()).unwrap_or(5);
    let only = arguments.get(1);
    let log = arguments.get(2).is_some();
    for case in cases() {
        if only.is_some_and(|only| only != case.name) {
            continue;
        }
        for seed in 1..=seeds {
            let trace = Trace::new(case.kind, seed, 600 * S);
            let empty = run(&trace, Rule::Fifo, Load::None);
            print!("{:9} {seed:2}", case.name);
            for rule in [Rule::Feedback, Rule::Oracle, Rule::Fifo] {
                if log && rule != Rule::Feedback {
                    continue;
                }
                let outcome = run(&trace, rule, case.load);
                let [used, longer, above, all] = figures(&trace, &outcome, &empty);
                let (least, most) = case.wanted;
                let fails = rule == Rule::Feedback && (used < least || longer > most);
                let sign = if fails { '!' } else { ' ' };
                print!(" | {rule:?} {used:5.1}{sign} {longer:6.1} {above:6.1} {all:6.1} {:5}", outcome.below_lost);
                if log && rule == Rule::Feedback {
                    dump(&trace, &outcome);
                }
            }
            println!();
        }
    }
    if only.is_none_or(|only| only == "outage") {
        outages(seeds);
    }
    ExitCode::SUCCESS
}

/// Writes what happened in steps of a tenth of a second.
fn dump(trace: &Trace, outcome: &Outcome) {
    println!();
    let mut told = outcome.log.iter().peekable();
    let mut last = (0.0, 0.0);
    for (at, bits) in outcome.carried.iter().enumerate() {
        let ns = at as u64 * S / 10;
        while let Some((_, bps, queue_s)) = told.next_if(|(at_ns, ..)| *at_ns < ns + S / 10) {
            last = (*bps, *queue_s);
        }
        let ef = outcome.ef.iter().filter(|(at_ns, _)| (ns..ns + S / 10).contains(at_ns));
        let most = ef.map(|(_, took_ns)| *took_ns).max().unwrap_or(0) as f64 / 1e6;
        let step = trace.at(ns);
        println!(
            "{:6.1} link {:5.2} carried {:5.2} rate {:5.2} queue {:6.1} ef {:6.1}",
            at as f64 / 10.0,
            step.bps / 1e6,
            bits / 1e5,
            last.0 / 1e6,
            1e3 * last.1,
            most - step.delay_ns as f64 / 1e6
        );
    }
}

/// How soon 90 % of a link is used again that was interrupted for 6.5 s.
fn outages(seeds: u64) {
    for load in [ABOVE, Load::Cubic] {
        for seed in 1..=seeds {
            let from_ns = 60 * S + seed * 370 * MS;
            let to_ns = from_ns + 6500 * MS;
            let kind = Kind {
                outage_ns: Some((from_ns, to_ns)),
                ..STEADY
            };
            let trace = Trace::new(kind, seed, 120 * S);
            let outcome = run(&trace, Rule::Feedback, load);
            let part = |at: usize| outcome.carried[at] / trace.bits(at as u64 * S / 10, (at as u64 + 1) * S / 10);
            let back = (to_ns / (S / 10)) as usize + 1;
            // From when on a second carries 90 % of the link.
            let again = (back..back + 500).find(|at| (*at..at + 10).map(part).sum::<f64>() >= 9.0);
            println!("outage {load:?} {seed}: 90 % after {:?} s", again.map(|at| at as f64 / 10.0 - to_ns as f64 / 1e9));
        }
    }
}
