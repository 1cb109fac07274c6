// SPDX-License-Identifier: BSD-3-Clause
//! Two paths with the same round trip, of which one is slow on the way there and the other on the way back, in virtual time: what
//! comes too late is found at the receiving end, with the path and a cure that holds.

use linkweir_plane::bytes::numbered::Number;
use linkweir_plane::late_paths::{Came, Cause, Late, LatePaths};
use linkweir_plane::restoring::{Held, Restorer, WINDOW};

const MS: u64 = 1_000_000;
const SECOND_NS: u64 = 1000 * MS;
/// How long packets take over each path.
const WAYS_NS: [u64; 2] = [300 * MS, 20 * MS];
/// The clock of the sending end is ahead of that of the receiving one by this.
const AHEAD_NS: u64 = 5_000_000 * MS;

/// A class that waits so long gets so many packets a second, over each path in turn, for a while. Returns what was found, and how
/// many came too late.
fn run(wait_ns: u64, pkts_per_s: u64, seconds: u64) -> (Vec<Late>, u64) {
    let mut restorer = Restorer::new(vec![wait_ns], 100_000_000);
    restorer.begin(0, 5, (1, 1), |_| {});
    let mut late_paths = LatePaths::new(2);
    // What arrives: when, over which path, a probe's time or a packet's number.
    let mut coming: Vec<(u64, usize, bool, u64)> = Vec::new();
    for number in 0..pkts_per_s * seconds {
        let path = (number % 2) as usize;
        let sent_ns = number * SECOND_NS / pkts_per_s;
        coming.push((sent_ns + WAYS_NS[path], path, false, number));
    }
    for sent_ns in (0..seconds * SECOND_NS).step_by(50 * MS as usize) {
        for (path, way_ns) in WAYS_NS.into_iter().enumerate() {
            coming.push((sent_ns + way_ns, path, true, sent_ns + AHEAD_NS));
        }
    }
    coming.sort_unstable();
    let (mut found, mut pkts) = (Vec::new(), 0);
    for (now_ns, path, is_probe, value) in coming {
        restorer.expire(now_ns, |_| {});
        if is_probe {
            late_paths.probed(now_ns, path, value);
        } else {
            pkts += 1;
            let number = Number {
                stream: 0,
                epoch: 5,
                sequence: value as u32,
            };
            let held = Held {
                packet: vec![0; 40].into(),
                outer_tos: 0,
            };
            restorer.arrive(now_ns, number, held, |_| {});
        }
        let late = restorer.counters(0).map_or(0, |of| of.late_pkts);
        let came = Came {
            pkts,
            refused_pkts: 0,
            classes: &[(wait_ns, late)],
        };
        found.extend(late_paths.find(now_ns, came));
    }
    (found, restorer.counters(0).unwrap().late_pkts)
}

#[test]
fn a_slow_way_is_found_with_a_wait_that_is_long_enough() {
    let (found, late) = run(50 * MS, 2000, 5);
    assert!(late > 2000, "{late}");
    let [of] = found[..] else {
        panic!("said once: {found:?}");
    };
    assert_eq!((of.path, of.first, of.behind_ns), (0, 1, 280 * MS));
    let cause = Cause::Order {
        class: 0,
        wait_ns: 50 * MS,
    };
    assert_eq!(of.cause, cause);
    assert!(of.late_pkts > 100, "{of:?}");
    // The advice, followed.
    let reorder_ns = of.reorder_ns().unwrap();
    assert_eq!(reorder_ns, 420 * MS);
    assert_eq!(run(reorder_ns, 2000, 5), (Vec::new(), 0));
    // It is said again after a minute.
    let (found, ..) = run(50 * MS, 100, 70);
    assert_eq!(found.len(), 2, "{found:?}");
}

/// In 280 ms more packets pass than numbers are remembered: waiting longer does not help.
#[test]
fn a_way_behind_the_window_is_found() {
    let pkts_per_s = 40_000;
    let (found, late) = run(2000 * MS, pkts_per_s, 4);
    assert!(late > 10_000, "{late}");
    let [of] = found[..] else {
        panic!("said once: {found:?}");
    };
    let Cause::Window { behind_pkts } = of.cause else {
        panic!("{of:?}");
    };
    assert_eq!((of.path, of.reorder_ns()), (0, None));
    assert!(behind_pkts > u64::from(WINDOW), "{behind_pkts}");
    // At half the rate they are remembered.
    assert_eq!(run(2000 * MS, pkts_per_s / 2, 4), (Vec::new(), 0));
}

/// What comes late for another reason is no path's fault.
#[test]
fn paths_of_the_same_delay_are_not_blamed() {
    let mut late_paths = LatePaths::new(2);
    for second in 1..10 {
        let now_ns = second * SECOND_NS;
        for (path, way_ns) in [(0, 60 * MS), (1, 80 * MS)] {
            late_paths.probed(now_ns + way_ns, path, now_ns + AHEAD_NS);
        }
        let came = Came {
            pkts: second * 2000,
            refused_pkts: second * 500,
            classes: &[(50 * MS, second * 500)],
        };
        assert_eq!(late_paths.find(now_ns + 500 * MS, came), []);
    }
}

/// A peer may send any time. More than a minute is no way, whatever clock it has.
#[test]
fn times_that_are_none_blame_no_path() {
    let found = |behind_ns: u64| {
        let mut late_paths = LatePaths::new(2);
        let mut found = Vec::new();
        for second in 100..102 {
            let now_ns = second * SECOND_NS;
            late_paths.probed(now_ns, 0, now_ns);
            late_paths.probed(now_ns, 1, now_ns.wrapping_sub(behind_ns));
            let came = Came {
                pkts: second * 2000,
                refused_pkts: 0,
                classes: &[(50 * MS, second * 500)],
            };
            found.extend(late_paths.find(now_ns, came));
        }
        found
    };
    let at_most = found(60 * SECOND_NS);
    assert_eq!(at_most[0].behind_ns, 60 * SECOND_NS);
    for behind_ns in [60 * SECOND_NS + 1, u64::MAX / 2, u64::MAX / 2 + 1] {
        assert_eq!(found(behind_ns), [], "{behind_ns}");
    }
}
