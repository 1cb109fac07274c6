// SPDX-License-Identifier: BSD-3-Clause
//! Capacity by feedback over links that nobody knows, in virtual time: how much of the link is used, and how long voice takes.
//!
//! Each row is one link and load, made from a seed: the rule of this tree, an oracle that knows the capacity one report late,
//! and the same packets without a gateway, in the link's own queue. `used` is the part of the link's capacity that carried
//! packets. `EF` is the 99th percentile of how much longer voice takes than with the same trace without load; `after` is that of
//! voice in the 2 s after a change of the level, `other` at all other times, and `in all` that of the whole delay.

mod autorate;
mod before;
mod path;
mod trace;

use std::process::ExitCode;

use linkweir_plane::setup::Bounds;
use path::{Far, Load, Outcome, Path, Rule};
use trace::{Kind, Step, Trace, MS, S};

/// Load above every link, bit/s.
const ABOVE: Load = Load::Constant(24_000_000);
/// The capacity to begin with when the user chooses none, bit/s.
const BEGIN_BPS: u64 = 10_000_000;
/// How soon constant load is to have 90 % of a link again after an outage, s.
const AGAIN_S: f64 = 3.0;
/// How long each link is tried, ns.
const END_NS: u64 = 600 * S;
const FEEDBACK: Rule = Rule::Feedback { anticipate: false };
const ANTICIPATING: Rule = Rule::Feedback { anticipate: true };
const STEADY: Kind = Kind {
    levels: false,
    stalls: false,
    ripple: 0.0,
    ends_only: false,
    further_ns: 0,
    back_ns: 25 * MS,
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
    let slots = Kind {
        stalls: true,
        ..ripple
    };
    // As over a geostationary satellite.
    let far = Kind {
        further_ns: 220 * MS,
        back_ns: 250 * MS,
        ..STEADY
    };
    let far_levels = Kind {
        levels: true,
        ..far
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
        case("slots", slots, Load::Cubic, (0.0, f64::MAX)),
        case("slots above", slots, ABOVE, (0.0, f64::MAX)),
        case("far", far, ABOVE, (0.0, f64::MAX)),
        case("far cubic", far, Load::Cubic, (0.0, f64::MAX)),
        case("far levels", far_levels, ABOVE, (0.0, f64::MAX)),
    ]
}

fn run(trace: &Trace, ends: (Rule, Far), load: Load) -> Outcome {
    // The rule of before needs numbers.
    let of = if ends.0 == Rule::Before {
        (1_000_000, 40_000_000)
    } else {
        (64_000, 1_000_000_000)
    };
    let bounds = Bounds {
        floor_bps: of.0,
        ceiling_bps: of.1,
        delay_ns: 25 * MS,
        anticipate: ends.0 == ANTICIPATING,
    };
    Path::new(trace, ends, load, (bounds, BEGIN_BPS)).run()
}

/// A percentile; not a number if there is no value.
fn percentile(mut values: Vec<f64>, part: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    values.sort_by(f64::total_cmp);
    let at = (part * values.len() as f64).ceil() as usize;
    values[at.clamp(1, values.len()) - 1]
}

/// How long after a change of the level voice counts as after it, ns.
const AFTER_NS: u64 = 2 * S;

/// The part used, %; how much longer voice takes than without load, ms, in the 2 s after a change, and at other times; how long
/// it takes in all, ms.
fn figures(trace: &Trace, outcome: &Outcome, empty: &Outcome) -> [f64; 5] {
    let used = 100.0 * outcome.carried.iter().sum::<f64>() / trace.bits(0, trace.end_ns);
    let (mut longer, mut after, mut other) = (Vec::new(), Vec::new(), Vec::new());
    let mut changes = trace.changes_ns.iter().peekable();
    let mut without = empty.ef.iter().peekable();
    for (sent_ns, took_ns) in &outcome.ef {
        while without.peek().is_some_and(|(ns, _)| ns < sent_ns) {
            without.next();
        }
        if let Some((_, empty_ns)) = without.peek().filter(|(ns, _)| ns == sent_ns) {
            let longer_ms = (*took_ns as f64 - *empty_ns as f64) / 1e6;
            longer.push(longer_ms);
            while changes.peek().is_some_and(|ns| **ns + AFTER_NS <= *sent_ns) {
                changes.next();
            }
            if changes.peek().is_some_and(|ns| **ns <= *sent_ns) {
                after.push(longer_ms);
            } else {
                other.push(longer_ms);
            }
        }
    }
    let all = outcome.ef.iter().map(|(_, ns)| *ns as f64 / 1e6);
    let [longer, after, other, all] =
        [longer, after, other, all.collect()].map(|values| percentile(values, 0.99));
    [used, longer, after, other, all]
}

const COLUMNS: [(&str, Rule, Far); 9] = [
    ("feedback", FEEDBACK, Far::Today),
    ("before", Rule::Before, Far::Before),
    ("echoes", Rule::Echoes, Far::Today),
    ("today to before", FEEDBACK, Far::Before),
    ("before to today", Rule::Before, Far::Today),
    ("autorate", Rule::Autorate, Far::Today),
    ("oracle", Rule::Oracle, Far::Today),
    ("FIFO", Rule::Fifo, Far::Today),
    ("anticipating", ANTICIPATING, Far::Today),
];

/// `linkweir-rate [SEEDS [CASE [COLUMN | log | steps]]]`
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seeds = arguments.first().and_then(|word| word.parse().ok());
    let seeds: u64 = seeds.unwrap_or(5);
    let only = arguments.get(1);
    let log = arguments.get(2).is_some_and(|word| word == "log");
    let column = arguments.get(2).map(String::as_str);
    let column = if log { Some("feedback") } else { column };
    if column == Some("steps") {
        for case in cases()
            .iter()
            .filter(|case| only.is_some_and(|only| only == case.name))
        {
            (1..=seeds).for_each(|seed| print_steps(&Trace::new(case.kind, seed, END_NS)));
        }
        return ExitCode::SUCCESS;
    }
    let columns: Vec<_> = COLUMNS
        .into_iter()
        .filter(|(name, ..)| column.is_none_or(|only| only == *name))
        .collect();
    print!("| case | seed |");
    for (name, ..) in &columns {
        print!(" {name}: used, % | EF, ms | after | other | in all |");
    }
    println!("\n|---|---|{}", "---|".repeat(5 * columns.len()));
    let mut holds = true;
    for case in cases() {
        if only.is_some_and(|only| only != case.name) {
            continue;
        }
        for seed in 1..=seeds {
            let trace = Trace::new(case.kind, seed, END_NS);
            let empty = run(&trace, (Rule::Fifo, Far::Today), Load::None);
            print!("| {} | {seed} |", case.name);
            for (_, rule, far) in columns.iter().copied() {
                let outcome = run(&trace, (rule, far), case.load);
                let [used, longer, after, other, all] = figures(&trace, &outcome, &empty);
                let (least, most) = case.wanted;
                holds &= (rule, far) != (FEEDBACK, Far::Today) || (used >= least && longer <= most);
                print!(" {used:.1} | {longer:.1} | {after:.1} | {other:.1} | {all:.1} |");
                if log {
                    dump(&trace, &outcome);
                    break;
                }
            }
            println!();
        }
    }
    if only.is_none_or(|only| only == "outage") && column.is_none() {
        holds &= outages(seeds);
    }
    if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints a link as a line of JSON: from when on each step holds, ns, its capacity, bit/s, and its delay, ns.
fn print_steps(trace: &Trace) {
    let of = |step: &Step| [step.from_ns as f64, step.bps, step.delay_ns as f64];
    println!("{:?}", trace.steps.iter().map(of).collect::<Vec<_>>());
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
        let ef = outcome
            .ef
            .iter()
            .filter(|(at_ns, _)| (ns..ns + S / 10).contains(at_ns));
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
///
/// Returns whether it is used within [`AGAIN_S`] under the rule of feedback, wherever the load is constant.
fn outages(seeds: u64) -> bool {
    let mut holds = true;
    println!(
        "\n| outage | seed | feedback: 90 % after, s | before | echoes |\n|---|---|---|---|---|"
    );
    for load in [ABOVE, Load::Cubic] {
        for seed in 1..=seeds {
            let from_ns = 60 * S + seed * 370 * MS;
            let to_ns = from_ns + 6500 * MS;
            let kind = Kind {
                outage_ns: Some((from_ns, to_ns)),
                ..STEADY
            };
            let trace = Trace::new(kind, seed, 120 * S);
            print!("| {load:?} | {seed} |");
            for (column, (_, rule, far)) in COLUMNS[..3].iter().enumerate() {
                let outcome = run(&trace, (*rule, *far), load);
                let part = |at: usize| {
                    let ns = at as u64 * S / 10;
                    outcome.carried[at] / trace.bits(ns, ns + S / 10)
                };
                let back = (to_ns / (S / 10)) as usize + 1;
                // From when on a second carries 90 % of the link.
                let again =
                    (back..back + 500).find(|at| (*at..at + 10).map(part).sum::<f64>() >= 9.0);
                let after_s = again.map(|at| at as f64 / 10.0 - to_ns as f64 / 1e9);
                let after_s = after_s.unwrap_or(f64::INFINITY);
                print!(" {after_s:.1} |");
                holds &= load == Load::Cubic || column > 0 || after_s <= AGAIN_S;
            }
            println!();
        }
    }
    holds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that the rule has to hold, each with one link; the program itself tries more.
    #[test]
    fn the_rule_uses_unknown_links_and_keeps_voice_short() {
        for case in cases().into_iter().take(3) {
            let trace = Trace::new(case.kind, 2, 600 * S);
            let empty = run(&trace, (Rule::Fifo, Far::Today), Load::None);
            let outcome = run(&trace, (FEEDBACK, Far::Today), case.load);
            let [used, longer, ..] = figures(&trace, &outcome, &empty);
            let (least, most) = case.wanted;
            assert!(used >= least, "{}: {used} %", case.name);
            assert!(longer <= most, "{}: {longer} ms", case.name);
        }
    }

    /// The aims of c also where the capacity jumps between the two ends of its range. Of twelve seeds two miss 60 ms, by 1.6 ms
    /// at most; docs/records/gateway.md has them.
    #[test]
    fn a_capacity_that_jumps_is_told_from_jitter() {
        let every = cases();
        let case = every.iter().find(|case| case.name == "c ends").unwrap();
        let trace = Trace::new(case.kind, 12, 600 * S);
        let empty = run(&trace, (Rule::Fifo, Far::Today), Load::None);
        let outcome = run(&trace, (FEEDBACK, Far::Today), case.load);
        let [used, longer, ..] = figures(&trace, &outcome, &empty);
        assert!(used >= 82.0, "{used} %");
        assert!(longer <= 60.0, "{longer} ms");
    }

    /// Voice takes at most 20 ms longer at times other than the 2 s after a change, and after one half of what it takes under
    /// cake-autorate's rule; 90 % of the link is used.
    #[test]
    fn anticipated_falls_keep_voice_short_on_a_link_with_slots() {
        let every = cases();
        let case = every.iter().find(|case| case.name == "slots").unwrap();
        let trace = Trace::new(case.kind, 21, 600 * S);
        let empty = run(&trace, (Rule::Fifo, Far::Today), Load::None);
        let of = |rule| figures(&trace, &run(&trace, (rule, Far::Today), case.load), &empty);
        let [used, _, after, other, _] = of(ANTICIPATING);
        let [_, _, after_autorate, ..] = of(Rule::Autorate);
        assert!(used >= 90.0, "{used} %");
        assert!(other <= 20.0, "{other} ms");
        assert!(
            after <= 0.5 * after_autorate,
            "{after} ms {after_autorate} ms"
        );
    }

    /// Either end may be of the version before.
    #[test]
    fn versions_work_together_both_ways() {
        let case = cases().remove(1);
        let trace = Trace::new(case.kind, 3, 120 * S);
        let empty = run(&trace, (Rule::Fifo, Far::Today), Load::None);
        let of = |rule, far| figures(&trace, &run(&trace, (rule, far), case.load), &empty);
        let [used, longer, ..] = of(FEEDBACK, Far::Before);
        assert!(used >= 85.0 && longer <= 150.0, "{used} % {longer} ms");
        // A sender of before is served as well as by its own far end.
        let [used, longer, ..] = of(Rule::Before, Far::Today);
        let [used_before, longer_before, ..] = of(Rule::Before, Far::Before);
        assert!(used > used_before - 2.0, "{used} % {used_before} %");
        assert!(
            longer < 1.2 * longer_before,
            "{longer} ms {longer_before} ms"
        );
    }

    #[test]
    fn a_trace_carries_what_its_steps_say() {
        let kind = Kind {
            levels: true,
            ..STEADY
        };
        let mut trace = Trace::new(kind, 4, 60 * S);
        let bits = trace.bits(0, 60 * S);
        let by_steps: f64 = trace.steps.iter().map(|step| 15.0 * step.bps).sum();
        assert!((bits - by_steps).abs() < 1.0, "{bits} {by_steps}");
        // 1000 bits of 1 Mbit/s around the end of an outage: half before, half after.
        trace.steps.truncate(3);
        for (at, (from_ns, bps)) in [(0, 1e6), (10 * MS, 0.0), (30 * MS, 1e6)]
            .into_iter()
            .enumerate()
        {
            trace.steps[at].from_ns = from_ns;
            trace.steps[at].bps = bps;
        }
        assert_eq!(trace.ends_ns(9_500_000, 1000.0), 30_500_000);
        assert_eq!(trace.ends_ns(15 * MS, 1000.0), 31 * MS);
    }

    #[test]
    fn a_stalled_link_is_interrupted_at_times_of_its_seed() {
        let kind = Kind {
            levels: true,
            stalls: true,
            ripple: 0.17,
            ..STEADY
        };
        let traces = [1, 2].map(|seed| Trace::new(kind, seed, 60 * S));
        assert_ne!(
            traces[0].changes_ns[0] % (15 * S),
            traces[1].changes_ns[0] % (15 * S)
        );
        for trace in &traces {
            assert!(trace.steps.is_sorted_by_key(|step| step.from_ns));
            for ns in &trace.changes_ns {
                assert!(trace.at(ns - 1).bps > 0.0);
                assert_eq!(trace.at(ns + 50 * MS - 1).bps, 0.0);
                assert!(trace.at(ns + 150 * MS).bps > 0.0);
            }
        }
    }
}
