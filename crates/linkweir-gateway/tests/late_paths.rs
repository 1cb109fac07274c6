// SPDX-License-Identifier: BSD-3-Clause
//! Two paths with the same round trip, of which one is slow on the way there and the other on the way back, in virtual time: what
//! comes too late is found at the receiving end, with the path and a cure that holds.

use linkweir_plane::bytes::numbered::Number;
use linkweir_plane::late_paths::{Cause, Late, LatePaths};
use linkweir_plane::restoring::{Dropped, Held, Restorer, WINDOW};

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
    let mut found = Vec::new();
    for (now_ns, path, is_probe, value) in coming {
        restorer.expire(now_ns, |_| {});
        if is_probe {
            late_paths.probed(now_ns, path, value);
        } else {
            let number = Number {
                stream: 0,
                epoch: 5,
                sequence: value as u32,
            };
            let held = Held {
                packet: vec![0; 40].into(),
                outer_tos: 0,
            };
            let dropped = restorer.arrive(now_ns, number, held, |_| {});
            late_paths.came(path);
            late_paths.came_of(now_ns, path, 0, dropped == Some(Dropped::Late));
        }
        found.extend(late_paths.find(now_ns, &[wait_ns]));
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

/// So many packets of a class come over a path, all of them late or none.
fn came(
    late_paths: &mut LatePaths,
    now_ns: u64,
    path: usize,
    (class, pkts): (usize, u64),
    is_late: bool,
) {
    for _ in 0..pkts {
        late_paths.came(path);
        late_paths.came_of(now_ns, path, class, is_late);
    }
}

/// What comes late for another reason is no path's fault.
#[test]
fn paths_of_the_same_delay_are_not_blamed() {
    let mut late_paths = LatePaths::new(2);
    for second in 1..10 {
        let now_ns = second * SECOND_NS;
        for (path, way_ns) in [(0, 60 * MS), (1, 80 * MS)] {
            late_paths.probed(now_ns + way_ns, path, now_ns + AHEAD_NS);
            came(&mut late_paths, now_ns, path, (0, 500), false);
            came(&mut late_paths, now_ns, path, (0, 250), true);
            late_paths.refused(path);
        }
        assert_eq!(late_paths.find(now_ns + 500 * MS, &[50 * MS]), []);
    }
}

/// Class 0 comes over paths 0 and 1, class 1 over all. What comes late of class 0 is laid to path 0, and none of it to path 2,
/// which is slower.
#[test]
fn a_path_that_a_class_does_not_use_is_not_blamed_for_it() {
    let mut late_paths = LatePaths::new(3);
    let mut found = Vec::new();
    for second in 1..5 {
        let now_ns = second * SECOND_NS;
        for (path, way_ms) in [(0, 300), (1, 20), (2, 400)] {
            late_paths.probed(now_ns + way_ms * MS, path, now_ns + AHEAD_NS);
            came(&mut late_paths, now_ns, path, (1, 100), false);
        }
        came(&mut late_paths, now_ns, 0, (0, 100), true);
        came(&mut late_paths, now_ns, 1, (0, 100), false);
        found.extend(late_paths.find(now_ns + 500 * MS, &[50 * MS, 1000 * MS]));
    }
    let [of] = found[..] else {
        panic!("one path: {found:?}");
    };
    assert_eq!((of.path, of.first, of.late_pkts), (0, 1, 100));
}

/// A path that is faster has no part in it if the class does not use it: class 0 comes over paths 0 and 1, which differ by 20 ms,
/// and what is late of it is so for another reason.
#[test]
fn a_faster_path_that_a_class_does_not_use_does_not_count() {
    let mut late_paths = LatePaths::new(3);
    for second in 1..5 {
        let now_ns = second * SECOND_NS;
        for (path, way_ms) in [(0, 300), (1, 320), (2, 20)] {
            late_paths.probed(now_ns + way_ms * MS, path, now_ns + AHEAD_NS);
        }
        for path in [0, 1] {
            came(&mut late_paths, now_ns, path, (0, 100), false);
            came(&mut late_paths, now_ns, path, (0, 100), true);
        }
        came(&mut late_paths, now_ns, 2, (1, 100), false);
        let waits_ns = [50 * MS, 1000 * MS];
        assert_eq!(late_paths.find(now_ns + 500 * MS, &waits_ns), []);
    }
}

/// Probes every 10 s, of which every second one is lost, over one path this one and over the other that one. Clocks that differ by
/// one part in ten thousand change nothing.
#[test]
fn ways_that_are_probed_seldom_are_known() {
    let mut late_paths = LatePaths::new(2);
    let mut found = Vec::new();
    for second in 1..600 {
        let now_ns = second * SECOND_NS;
        if second % 10 == 0 {
            let path = (second / 10 % 2) as usize;
            let sent_ns = now_ns + AHEAD_NS + now_ns / 10_000;
            late_paths.probed(now_ns + WAYS_NS[path], path, sent_ns);
        }
        came(&mut late_paths, now_ns, 0, (0, 100), true);
        came(&mut late_paths, now_ns, 1, (0, 100), false);
        found.extend(late_paths.find(now_ns + 500 * MS, &[50 * MS]));
    }
    // Once a minute, from the first probes of both on.
    assert!((9..=10).contains(&found.len()), "{}", found.len());
    for of in found {
        assert_eq!((of.path, of.first), (0, 1));
        // Probes are 10 s apart, in which the clocks move by 1 ms.
        assert!(of.behind_ns.abs_diff(280 * MS) <= MS, "{of:?}");
    }
}

/// A path over which no probe came for a minute is not known any more.
#[test]
fn a_way_is_forgotten_after_a_minute_without_probes() {
    for (seconds, is_known) in [(59, true), (61, false)] {
        let mut late_paths = LatePaths::new(2);
        late_paths.probed(WAYS_NS[0], 0, AHEAD_NS);
        late_paths.probed(WAYS_NS[1], 1, AHEAD_NS);
        late_paths.find(SECOND_NS, &[50 * MS]);
        let now_ns = seconds * SECOND_NS;
        came(&mut late_paths, now_ns, 0, (0, 100), true);
        came(&mut late_paths, now_ns, 1, (0, 100), false);
        let found = late_paths.find(now_ns, &[50 * MS]);
        assert_eq!(!found.is_empty(), is_known, "{found:?}");
    }
}

/// Replays that are refused behind the window are laid to the path over which they come.
#[test]
fn what_is_refused_is_laid_to_its_path() {
    let mut late_paths = LatePaths::new(3);
    let mut found = Vec::new();
    for second in 1..3 {
        let now_ns = second * SECOND_NS;
        for (path, way_ms) in [(0, 500), (1, 20), (2, 600)] {
            late_paths.probed(now_ns + way_ms * MS, path, now_ns + AHEAD_NS);
            came(&mut late_paths, now_ns, path, (0, 10_000), false);
        }
        (0..100).for_each(|_| late_paths.refused(0));
        found.extend(late_paths.find(now_ns + 900 * MS, &[2000 * MS]));
    }
    let [of] = found[..] else {
        panic!("one path: {found:?}");
    };
    assert_eq!((of.path, of.first, of.late_pkts), (0, 1, 100));
    assert!(matches!(of.cause, Cause::Window { .. }), "{of:?}");
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
            came(&mut late_paths, now_ns, 0, (0, 1500), false);
            came(&mut late_paths, now_ns, 1, (0, 500), true);
            found.extend(late_paths.find(now_ns, &[50 * MS]));
        }
        found
    };
    let at_most = found(60 * SECOND_NS);
    assert_eq!(at_most[0].behind_ns, 60 * SECOND_NS);
    for behind_ns in [60 * SECOND_NS + 1, u64::MAX / 2, u64::MAX / 2 + 1] {
        assert_eq!(found(behind_ns), [], "{behind_ns}");
    }
}
