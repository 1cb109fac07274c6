// SPDX-License-Identifier: BSD-3-Clause
//! The recorder behind a link, in virtual time.

use linkweir_config::recording::{frame, peer, settings, Bin, Entry, Recording, Version};

use super::*;
use crate::link::{Link, Next};
use crate::setup::tests::{Links, GROUND};

const MS: u64 = 1_000_000;
const SETTINGS: &str =
    "[[class]]\nname = \"ef\"\n[[class]]\nname = \"af\"\n[[class]]\nname = \"rest\"\n";

fn names() -> Vec<String> {
    ["ef", "af", "rest"].map(String::from).to_vec()
}

/// What is recorded, as a reader finds it.
fn read(recorder: &Rc<RefCell<Recorder>>, now_ns: u64, packets: bool) -> Recording {
    let mut bytes = settings(Version::One, 1_000_000_000, packets, SETTINGS);
    for block in recorder.borrow_mut().take_all(now_ns) {
        for number in &block.peers {
            bytes.extend(peer(*number, &format!("name = \"peer{number}\"")));
        }
        bytes.extend(frame(&block.body));
    }
    let recording = Recording::new(vec![bytes]).unwrap();
    assert_eq!(recording.damages, []);
    recording
}

/// Serves until a time; returns packets and bytes sent, by class (the first byte of a packet).
fn serve(link: &mut Link, now_ns: &mut u64, until_ns: u64, sent: &mut [(u64, u64); 3]) {
    while *now_ns < until_ns {
        match link.next(*now_ns, |_| false) {
            Next::Send(packet, _) => {
                let of = &mut sent[usize::from(packet[0])];
                *of = (of.0 + 1, of.1 + packet.len() as u64);
            }
            Next::At(ns) => *now_ns = ns.min(until_ns),
            Next::Nothing => *now_ns = until_ns,
        }
    }
}

#[test]
fn sums_are_those_of_the_queues() {
    for packets in [false, true] {
        let config = Links::parse(GROUND);
        let mut link = Link::new(5, config.of_peer(0)).unwrap();
        let recorder = Rc::new(RefCell::new(Recorder::new(5, packets)));
        link.record_to(Some(Tap::new(recorder.clone(), 3, 3)));
        let (mut now_ns, mut sent) = (5, [(0, 0); 3]);
        for step in 0..2000_u64 {
            for (class, bytes) in [(0, 60 + step % 400), (1, 1500), (2, 1000 + step % 500)] {
                let packet = vec![class as u8; bytes as usize];
                link.arrive(now_ns, class, bytes as u32, &packet);
            }
            serve(&mut link, &mut now_ns, 5 + (step + 1) * MS, &mut sent);
        }
        let counters: Vec<_> = (0..3).map(|at| link.mux().counters(at).clone()).collect();
        let recording = read(&recorder, now_ns, packets);
        let span_ns = recording.span_ns();
        let sums = recording.sums("peer3", &names(), span_ns, 1000 * MS);
        assert_eq!(sums.len(), 2);
        for (class, counted) in counters.iter().enumerate() {
            let sum = |of: fn(&Bin) -> u64| sums.iter().map(|row| of(&row[class])).sum::<u64>();
            assert_eq!(sum(|bin| bin.arrived_pkts), counted.arrived_pkts);
            assert_eq!(sum(|bin| bin.arrived_bytes), counted.arrived_bytes);
            assert_eq!(sum(|bin| bin.sent_pkts), sent[class].0);
            assert_eq!(sum(|bin| bin.sent_bytes), sent[class].1);
            let dropped = counted.dropped_limit_pkts + counted.dropped_policy_pkts;
            assert_eq!(sum(|bin| bin.dropped_pkts), dropped);
        }
        let dropped: u64 = sums[1].iter().map(|bin| bin.dropped_pkts).sum();
        assert!(dropped > 0, "the link is overloaded");
        assert_eq!(recording.capacity("peer3", span_ns), [(0, 20_000_000)]);
    }
}

#[test]
fn what_a_hub_takes_and_drops_is_recorded() {
    let across = GROUND.replacen("rate", "across = { policy = \"pf\" }\nrate", 1);
    let config = Links::parse(&across);
    let mut link = Link::new(0, config.of_peer(0)).unwrap();
    let recorder = Rc::new(RefCell::new(Recorder::new(0, false)));
    link.record_to(Some(Tap::new(recorder.clone(), 1, 3)));
    for at in 0..250 {
        link.arrive(at * MS, 2, 1000, &[2; 1000]);
    }
    for at in 250..300 {
        assert!(link.take(at * MS, |_| false).is_some());
    }
    link.drop_head(300 * MS);
    let recording = read(&recorder, 301 * MS, false);
    let sums = recording.sums("peer1", &names(), (0, 1000 * MS), 1000 * MS);
    let rest = sums[0][2];
    // The limit is 200 packets.
    assert_eq!(
        (rest.arrived_pkts, rest.sent_pkts, rest.dropped_pkts),
        (250, 50, 51)
    );
    assert_eq!((rest.sent_bytes, rest.dropped_bytes), (50_000, 51_000));
}

#[test]
fn packets_of_a_train_are_counted_one_by_one() {
    let recorder = Rc::new(RefCell::new(Recorder::new(0, false)));
    let mut tap = Tap::new(recorder.clone(), 0, 3);
    let arrival = Arrival {
        pkts: 5,
        bytes: 4 * 1500 + 300,
        each_bytes: 1500,
        tcp: true,
    };
    tap.arrived(7, 1, arrival);
    let listed: Vec<_> = recorder
        .borrow()
        .listed
        .iter()
        .map(|one| (one.at_ns, one.bytes))
        .collect();
    assert_eq!(
        listed,
        [1500, 1500, 1500, 1500, 300].map(|bytes| (7, bytes))
    );
    recorder.borrow_mut().crowd();
    let cell = recorder.borrow().cells[0].cell;
    let class = linkweir_config::recording::size_class;
    assert_eq!(cell.arrived[class(1500)], (4, 6000));
    assert_eq!(cell.arrived[class(300)], (1, 300));
    assert_eq!(cell.tcp_pkts, 5);
}

#[test]
fn only_so_many_packets_are_listed_and_all_are_counted() {
    let recorder = Rc::new(RefCell::new(Recorder::new(0, false)));
    let mut tap = Tap::new(recorder.clone(), 0, 3);
    let arrival = Arrival {
        pkts: 1,
        bytes: 1000,
        each_bytes: 1000,
        tcp: true,
    };
    // 100,000 packets a second for two seconds, then 5000 a second.
    for at in 0..200_000 {
        tap.arrived(at * MS / 100, 1, arrival);
    }
    for at in 0..5000 {
        tap.arrived(2000 * MS + at * MS / 5, 2, arrival);
    }
    let mut bytes = settings(Version::One, 0, false, SETTINGS);
    bytes.extend(peer(0, "name = \"ship\""));
    for block in recorder.borrow_mut().take_all(3000 * MS) {
        bytes.extend(frame(&block.body));
    }
    let mut listed = [0; 3];
    let damages = linkweir_config::recording::read(&bytes, |block| {
        if let linkweir_config::recording::Block::Counts(counts) = block {
            for entry in counts.entries() {
                if let Entry::Packet { class, .. } = entry {
                    listed[class as usize] += 1;
                }
            }
        }
    });
    assert_eq!(damages, []);
    // In the first bins, and on average 250 in a bin after them.
    assert!((45_000..55_100).contains(&listed[1]), "{listed:?}");
    assert!(listed[2] > 4500, "{listed:?}");
    let recording = Recording::new(vec![bytes]).unwrap();
    let sums = recording.sums("ship", &names(), (0, 3000 * MS), 3000 * MS);
    for (class, pkts) in [(1, 200_000), (2, 5000)] {
        let sum = sums[0][class];
        let expected = (pkts, 1000 * pkts, pkts);
        assert_eq!(
            (sum.arrived_pkts, sum.arrived_bytes, sum.tcp_pkts),
            expected
        );
    }
}

#[test]
fn every_packet_of_20_mbit_is_listed_down_to_100_bytes() {
    let recorder = Rc::new(RefCell::new(Recorder::new(0, false)));
    let mut tap = Tap::new(recorder.clone(), 0, 3);
    let arrival = Arrival {
        pkts: 1,
        bytes: 100,
        each_bytes: 100,
        tcp: false,
    };
    let pkts = 10 * 20_000_000 / 800;
    for at in 0..pkts {
        tap.arrived(at * 40_000, 1, arrival);
        assert!(!recorder.borrow().crowded, "packet {at}");
    }
}

#[test]
fn changes_of_the_capacity_are_recorded_when_they_happen() {
    let config = Links::parse(GROUND);
    let mut link = Link::new(0, config.of_peer(0)).unwrap();
    let recorder = Rc::new(RefCell::new(Recorder::new(0, false)));
    link.record_to(Some(Tap::new(recorder.clone(), 0, 3)));
    link.set_capacity(MS, 7_000_000);
    link.arrive(2 * MS, 0, 100, &[0; 100]);
    link.set_capacity(3 * MS + 7, 5_000_000);
    link.set_capacity(3 * MS + 9, 5_010_000);
    link.arrive(30 * MS, 0, 100, &[0; 100]);
    link.set_capacity(44 * MS, 0);
    link.arrive(700 * MS, 0, 100, &[0; 100]);
    let recording = read(&recorder, 800 * MS, false);
    // A change of less than 1 % counts from the next bin on in which something happens.
    let expected = [
        (0, 7_000_000),
        (3 * MS + 7, 5_000_000),
        (30 * MS, 5_010_000),
        (44 * MS, 0),
    ];
    assert_eq!(recording.capacity("peer0", (0, 800 * MS)), expected);
}

/// Whoever loses a block knows which capacities changed in it.
#[test]
fn a_block_names_the_capacities_that_changed_in_it() {
    let config = Links::parse(GROUND);
    let recorder = Rc::new(RefCell::new(Recorder::new(0, false)));
    let mut links = [0, 1].map(|_| Link::new(0, config.of_peer(0)).unwrap());
    for (peer, link) in (0..).zip(&mut links) {
        link.record_to(Some(Tap::new(recorder.clone(), peer, 3)));
    }
    links[0].set_capacity(MS, 7_000_000);
    links[0].arrive(2 * MS, 0, 100, &[0; 100]);
    links[1].arrive(3 * MS, 0, 100, &[0; 100]);
    links[0].set_capacity(4 * MS, 5_000_000);
    links[0].set_capacity(1500 * MS, 0);
    links[1].arrive(2500 * MS, 0, 100, &[0; 100]);
    let mut recorder = recorder.borrow_mut();
    let changes: Vec<_> = recorder
        .take_all(2600 * MS)
        .map(|block| (block.first_bin, block.capacities))
        .collect();
    let first = vec![(0, 7_000_000), (1, 20_000_000), (0, 5_000_000)];
    assert_eq!(changes, [(0, first), (150, vec![(0, 0)]), (250, vec![])]);
}

#[test]
fn idle_peers_take_no_memory_and_blocks_are_due() {
    let recorder = Rc::new(RefCell::new(Recorder::new(0, false)));
    let mut taps: Vec<Tap> = (0..10_000)
        .map(|at| Tap::new(recorder.clone(), at, 4))
        .collect();
    assert_eq!(recorder.borrow().due_ns(), None);
    for round in 0..300_u64 {
        let at = (round * 7919 % 10_000) as usize;
        taps[at].sent(round * 10 * MS, 1, 1, 100);
    }
    let mut recorder = recorder.borrow_mut();
    assert_eq!(recorder.cells.len(), 1, "one peer in each bin");
    assert_eq!(recorder.due_ns(), Some(0), "two blocks are finished");
    let blocks: Vec<Block> = recorder.take(2_999 * MS).collect();
    assert_eq!(blocks.len(), 2);
    assert_eq!((blocks[1].first_bin, blocks[1].bins), (100, 100));
    assert_eq!(blocks[1].peers.len(), 100);
    assert_eq!(recorder.due_ns(), Some(3000 * MS));
    assert_eq!(recorder.take(2_999 * MS).count(), 0);
    assert_eq!(recorder.take(3_000 * MS).count(), 1);
    assert_eq!(recorder.due_ns(), None);
}
