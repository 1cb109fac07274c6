// SPDX-License-Identifier: BSD-3-Clause
//! What the flight recorder says of paths, beside what each was seen to send.

use std::cell::RefCell;
use std::rc::Rc;

use linkweir_config::recording::{frame, peer, settings, Recording, Version};

use super::*;
use crate::recorder::{Recorder, Tap};

const SETTINGS: &str =
    "[[class]]\nname = \"ef\"\n[[class]]\nname = \"af\"\n[[class]]\nname = \"rest\"\n";
const PEER: &str = "name = \"boat\"\npaths = [\"starlink\", \"lte\"]";

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// A link over two paths that is recorded.
fn recorded(
    links: &Links,
    rates_bps: [u64; 2],
    delays_ms: [u64; 2],
) -> (Bonded, Rc<RefCell<Recorder>>) {
    let mut bonded = Bonded::new(links, rates_bps, delays_ms);
    let recorder = Rc::new(RefCell::new(Recorder::new(0, false)));
    let tap = Tap::new(recorder.clone(), 4, links.classes.len());
    bonded.link.record_to(Some(tap));
    (bonded, recorder)
}

/// What is recorded until now, as a reader finds it.
fn read(bonded: &Bonded, recorder: &RefCell<Recorder>) -> Recording {
    let mut bytes = settings(Version::Two, 1_000_000_000, false, SETTINGS);
    bytes.extend(peer(4, PEER));
    for block in recorder.borrow_mut().take_all(bonded.now_ns) {
        bytes.extend(frame(&block.body));
    }
    let recording = Recording::new(vec![bytes]).unwrap();
    assert_eq!(recording.damages, []);
    recording
}

/// Path, its changes: ms, bit/s, delay in ms.
fn states(recording: &Recording, path: usize) -> Vec<(u64, u64, u64)> {
    let paths = words(&["starlink", "lte"]);
    let found = recording.path_states("boat", &paths, (0, recording.span_ns().1));
    let changes = found[path].iter();
    changes
        .map(|(ns, state)| (ns / MS, state.bps, state.delay_ns / MS))
        .collect()
}

/// Overload of copies, stripes with repetitions and the rest, while a path is lost and its capacity and delay change.
#[test]
fn what_each_path_sent_and_was_is_recorded() {
    let links = classes([Uses::All, Uses::Stripe, Uses::Spill], true);
    let (mut bonded, recorder) = recorded(&links, [20_000_000, 10_000_000], [20, 40]);
    for ms in 0..4000 {
        bonded.run_to(ms * MS);
        match ms {
            500 => bonded.link.set_path_capacity(ms * MS, 0, 15_000_000),
            1000 => bonded.carries[1] = false,
            1250 => bonded.set_up([true, false]),
            2500 => {
                bonded.carries[1] = true;
                bonded.delays_ns[1] = 70 * MS;
                bonded.set_up([true; 2]);
            }
            _ => {}
        }
        if ms % 20 == 0 {
            bonded.arrive(0, ms as u32, 200);
        }
        bonded.arrive(1, ms as u32, 625);
        for _ in 0..4 {
            bonded.arrive(2, ms as u32, 1250);
        }
    }
    bonded.run_to(5 * S);
    let carried = [0, 1].map(|path| bonded.link.carried(path));
    assert!(
        carried[1].copied_pkts > 0 && carried[0].resent_pkts > 0,
        "{carried:?}"
    );
    let recording = read(&bonded, &recorder);
    let (paths, classes) = (words(&["starlink", "lte"]), words(&["ef", "af", "rest"]));
    let span_ns = recording.span_ns();
    let found = recording.carried("boat", (&paths, &classes), span_ns);
    for path in 0..2 {
        for (class, found) in found[path].iter().enumerate() {
            let seen = &bonded.sent[&(path, class as u8)];
            assert_eq!(found, seen, "path {path}, class {class}");
        }
        let sum = found[path]
            .iter()
            .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        assert_eq!(
            sum,
            (carried[path].pkts, carried[path].bytes),
            "path {path}"
        );
    }
    // What the queues sent has neither copies nor repetitions in it.
    let sums = recording.sums("boat", &classes, span_ns, span_ns.1);
    let sent: u64 = sums[0].iter().map(|bin| bin.sent_pkts).sum();
    let again: u64 = carried
        .iter()
        .map(|of| of.copied_pkts + of.resent_pkts)
        .sum();
    assert_eq!(sent + again, carried[0].pkts + carried[1].pkts);
    assert_eq!(
        states(&recording, 0),
        [(0, 20_000_000, 20), (500, 15_000_000, 20)]
    );
    let lost_and_back = [(0, 10_000_000, 40), (1250, 0, 40), (2500, 10_000_000, 70)];
    assert_eq!(states(&recording, 1), lost_and_back);
    let capacity = recording.capacity("boat", span_ns);
    let capacity: Vec<_> = capacity.iter().map(|(ns, bps)| (ns / MS, *bps)).collect();
    let sum = [
        (0, 30_000_000),
        (500, 25_000_000),
        (1250, 15_000_000),
        (2500, 25_000_000),
    ];
    assert_eq!(capacity, sum);
    // A part of it has what happened in this part, also as a recording of its own.
    let part_ns = (S, 3 * S);
    let cut = recording.cut("boat", 0, part_ns).unwrap();
    let part = Recording::new(vec![cut]).unwrap();
    let before = recording.carried("boat", (&paths, &classes), part_ns);
    let all_ns = (0, part.span_ns().1);
    assert_eq!(part.carried("boat", (&paths, &classes), all_ns), before);
    assert_eq!(states(&part, 1), [(0, 0, 40), (1500, 10_000_000, 70)]);
}

/// A configured capacity that changes is recorded as of then; one without a session, and of a path that is down, is 0.
#[test]
fn capacities_of_paths_are_recorded_when_they_change() {
    let links = classes([Uses::Best, Uses::Best, Uses::Best], false);
    let (mut bonded, recorder) = recorded(&links, [20_000_000, 10_000_000], [20, 40]);
    let mut stepped = setups([20_000_000, 10_000_000]);
    let steps = linkweir_config::signal::Signal::Steps {
        points: vec![(0, 10e6), (1003 * MS + 7, 4e6)].into(),
        end: linkweir_config::signal::End::Hold,
    };
    stepped[1].capacity.offered = linkweir_config::signal::Capacity::Rate(steps);
    let before = setups([20_000_000, 10_000_000]);
    bonded
        .link
        .change_paths(0, (&before, &stepped), &links.classes);
    for ms in [1, 400, 1030, 1100, 1500, 2100] {
        bonded.run_to(ms * MS);
        match ms {
            1100 => bonded.set_up([true, false]),
            1500 => bonded.link.set_open(false),
            2100 => {
                bonded.link.set_open(true);
                bonded.set_up([true; 2]);
            }
            _ => {}
        }
        bonded.link.record_capacity(ms * MS);
        bonded.arrive(0, ms as u32, 200);
    }
    bonded.run_to(2200 * MS);
    let recording = read(&bonded, &recorder);
    let paths = words(&["starlink", "lte"]);
    let found = recording.path_states("boat", &paths, (0, recording.span_ns().1));
    let changes = |path: usize| -> Vec<_> {
        let changes = found[path].iter();
        changes.map(|(ns, state)| (*ns, state.bps)).collect()
    };
    assert_eq!(
        changes(0),
        [(0, 20_000_000), (1500 * MS, 0), (2100 * MS, 20_000_000)]
    );
    let of_lte = [
        (0, 10_000_000),
        (1003 * MS + 7, 4_000_000),
        (1100 * MS, 0),
        (2100 * MS, 4_000_000),
    ];
    assert_eq!(changes(1), of_lte);
}

/// Of a peer to which nothing is sent nothing is recorded, however often its paths change.
#[test]
fn a_peer_with_paths_is_recorded_from_its_first_packet() {
    let links = classes([Uses::Best, Uses::Best, Uses::Best], false);
    let (mut bonded, recorder) = recorded(&links, [20_000_000, 10_000_000], [20, 40]);
    for step in 0..100 {
        bonded.run_to(step * 50 * MS);
        bonded.set_up([step % 2 == 0, true]);
        bonded
            .link
            .set_path_capacity(bonded.now_ns, 1, 1_000_000 * step);
    }
    assert_eq!(recorder.borrow_mut().take_all(bonded.now_ns).count(), 0);
    bonded.arrive(0, 0, 60);
    bonded.run_to(6 * S);
    let blocks = recorder.borrow_mut().take_all(bonded.now_ns).count();
    assert_eq!(blocks, 1);
}

/// A capacity that wavers by less than 0.8 % is recorded once in a bin.
#[test]
fn small_changes_of_a_path_take_one_entry_in_a_bin() {
    let links = classes([Uses::Best, Uses::Best, Uses::Best], false);
    let (mut bonded, recorder) = recorded(&links, [20_000_000, 10_000_000], [20, 40]);
    for step in 0..10_000 {
        let now_ns = step * MS / 10;
        bonded.run_to(now_ns);
        bonded.arrive(0, step as u32, 60);
        let bps = 10_000_000 + step % 2 * 50_000;
        bonded.link.set_path_capacity(now_ns, 1, bps);
    }
    bonded.run_to(S);
    let blocks: Vec<_> = recorder.borrow_mut().take_all(bonded.now_ns).collect();
    let changes: usize = blocks.iter().map(|block| block.paths.len()).sum();
    assert!((50..=101).contains(&changes), "{changes}");
}
