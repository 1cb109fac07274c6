// SPDX-License-Identifier: BSD-3-Clause
//! Hostile peers and paths against the receiving end. The expected answers are those of a set of the numbers that came.

use std::collections::BTreeSet;

use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::*;

const MS: u64 = 1_000_000;

fn held(number: u32, bytes: usize) -> Held {
    let mut packet = vec![0; bytes.max(4)];
    packet[..4].copy_from_slice(&number.to_be_bytes());
    Held {
        packet: packet.into(),
        outer_tos: 0,
    }
}

fn number_of(held: &Held) -> u32 {
    u32::from_be_bytes(held.packet[..4].try_into().unwrap())
}

fn number(epoch: u32, stream: u8, sequence: u32) -> Number {
    Number {
        stream,
        epoch,
        sequence,
    }
}

#[test]
fn two_epochs_are_taken_and_no_other() {
    let mut restorer = Restorer::new(vec![100 * MS; 2], 1_000_000);
    let mut out = Vec::new();
    let mut arrive = |restorer: &mut Restorer, now_ns, epoch, sequence| {
        let number = number(epoch, 1, sequence);
        restorer.arrive(now_ns, number, held(sequence, 40), |held| {
            out.push((epoch, number_of(&held)));
        })
    };
    assert_eq!(
        arrive(&mut restorer, 0, 5, 0),
        Some(Dropped::Unknown),
        "before any probe"
    );
    assert_eq!(restorer.begin(0, 5, (1, 10), |_| {}), Begun::New);
    assert_eq!(arrive(&mut restorer, 0, 5, 0), None);
    assert_eq!(arrive(&mut restorer, 0, 5, 2), None, "held");
    let begun = restorer.begin(MS, 6, (1, 11), |_| panic!("nothing of the last but one"));
    assert_eq!(begun, Begun::New);
    assert_eq!(arrive(&mut restorer, MS, 6, 0), None);
    assert_eq!(arrive(&mut restorer, MS, 5, 1), None, "still under way");
    let begun = restorer.begin(2 * MS, 5, (1, 9), |_| panic!("a probe that was overtaken"));
    assert_eq!(begun, Begun::Former);
    assert_eq!(
        arrive(&mut restorer, 2 * MS, 6, 0),
        Some(Dropped::Duplicate)
    );
    assert_eq!(arrive(&mut restorer, 2 * MS, 5, 3), None);
    assert_eq!(arrive(&mut restorer, 2 * MS, 9, 3), Some(Dropped::Unknown));
    // A class that this end does not have.
    let other = restorer.arrive(2 * MS, number(6, 2, 0), held(0, 40), |_| panic!("unknown"));
    assert_eq!(other, Some(Dropped::Unknown));
    let end_ns = restorer.due_ns().unwrap();
    restorer.expire(end_ns, |_| panic!("nothing is held"));
    assert_eq!(
        arrive(&mut restorer, end_ns, 5, 4),
        Some(Dropped::Unknown),
        "too late"
    );
    assert_eq!(out, [(5, 0), (6, 0), (5, 1), (5, 2), (5, 3)]);
    let counters = restorer.counters(1).unwrap();
    assert_eq!((counters.delivered_pkts, counters.duplicate_pkts), (5, 1));
    assert_eq!(restorer.counters(0), None);
}

/// Somebody keeps a probe of an epoch that is over, and lets it out when the epoch after it is in use.
#[test]
fn a_kept_probe_ends_no_epoch() {
    let mut restorer = Restorer::new(vec![100 * MS], 1_000_000);
    let arrive = |restorer: &mut Restorer, now_ns, epoch, sequence| {
        restorer.arrive(now_ns, number(epoch, 0, sequence), held(0, 40), |_| {})
    };
    assert_eq!(restorer.begin(0, 5, (0x701, 1000), |_| {}), Begun::New);
    assert_eq!(restorer.begin(MS, 6, (0x701, 2000), |_| {}), Begun::New);
    assert_eq!(arrive(&mut restorer, MS, 6, 0), None);
    let end_ns = restorer.due_ns().unwrap();
    restorer.expire(end_ns, |_| {});
    assert_eq!(
        restorer.begin(end_ns, 5, (0x701, 1001), |_| {}),
        Begun::Stale
    );
    assert_eq!(restorer.epoch(), Some(6));
    assert_eq!(
        arrive(&mut restorer, end_ns, 6, 0),
        Some(Dropped::Duplicate)
    );
    assert_eq!(arrive(&mut restorer, end_ns, 5, 9), Some(Dropped::Unknown));
    // The clock begins anew with another session, and probes of the one before are of no use from then on.
    assert_eq!(restorer.begin(end_ns, 7, (0x702, 10), |_| {}), Begun::New);
    assert_eq!(restorer.begin(end_ns, 8, (0x702, 9), |_| {}), Begun::Stale);
    // The peer's clock was ahead before it was started again.
    assert_eq!(
        restorer.begin(end_ns, 5, (0x701, 9000), |_| {}),
        Begun::Stale
    );
    assert_eq!(restorer.begin(end_ns, 9, (0x201, 1), |_| {}), Begun::New);
}

/// One class may hold what all may hold; what does not fit ends the waiting of the class that holds most.
#[test]
fn all_classes_share_what_may_be_held() {
    let mut restorer = Restorer::new(vec![100 * MS; 8], 10_000);
    restorer.begin(0, 5, (1, 1), |_| {});
    let mut out = Vec::new();
    let mut arrive = |restorer: &mut Restorer, stream, sequence| {
        let number = number(5, stream, sequence);
        restorer.arrive(0, number, held(sequence, 1000), |held| {
            out.push(number_of(&held))
        });
    };
    for sequence in 1..=9 {
        arrive(&mut restorer, 0, sequence);
    }
    arrive(&mut restorer, 7, 1);
    assert_eq!((restorer.held(0), restorer.held(7)), ((9, 9000), (1, 1000)));
    arrive(&mut restorer, 7, 2);
    assert_eq!((restorer.held(0), restorer.held(7)), ((0, 0), (2, 2000)));
    assert_eq!(out, (1..=9).collect::<Vec<_>>());
}

/// Without a time to wait, packets are handed out as they come, and once.
#[test]
fn without_a_time_only_duplicates_are_dropped() {
    let mut restorer = Restorer::new(vec![0], 10_000);
    restorer.begin(0, 5, (1, 1), |_| {});
    let mut out = Vec::new();
    let mut dropped = Vec::new();
    for sequence in [2, 0, 2, 1, 0] {
        let number = number(5, 0, sequence);
        let arrived = restorer.arrive(0, number, held(sequence, 40), |held| {
            out.push(number_of(&held));
        });
        dropped.extend(arrived);
    }
    assert_eq!(out, [2, 0, 1]);
    assert_eq!(dropped, [Dropped::Duplicate; 2]);
}

/// An empty UDP packet of IPv4 or IPv6 (RFC 791, section 3.1; RFC 8200, section 3) with these ECN bits, in a datagram with those.
fn marked(is_v6: bool, inner: u8, outer: u8) -> Held {
    let mut packet = vec![0; if is_v6 { 48 } else { 28 }];
    if is_v6 {
        packet[..8].copy_from_slice(&[0x60, inner << 4, 0, 0, 0, 8, 17, 64]);
        packet[45] = 8;
    } else {
        packet[..10].copy_from_slice(&[0x45, inner, 0, 28, 0, 0, 0, 0, 64, 17]);
        packet[25] = 8;
    }
    let header = packet::parse(&packet).expect("a packet");
    assert_eq!(header.tos, inner);
    Held {
        packet: packet.into(),
        outer_tos: outer,
    }
}

/// A path that marks what cannot carry a mark loses its own copy, not that of another path, whichever comes first and whether or
/// not it is held for order. The expected fields are those of RFC 6040, figure 4, for the copies that remain.
#[test]
fn a_mark_that_a_packet_cannot_carry_costs_only_its_copy() {
    const CE: u8 = 3;
    for (is_v6, wait_ns) in [(false, 100 * MS), (true, 100 * MS), (false, 0), (true, 0)] {
        for (inner, outers, expected) in [
            (0, [0, CE], [None, Some(Dropped::Congested)]),
            (0, [CE, 0], [Some(Dropped::Congested), None]),
            (2, [0, CE], [None, Some(Dropped::Duplicate)]),
            (2, [CE, 0], [None, Some(Dropped::Duplicate)]),
        ] {
            let what = format!("IPv6: {is_v6}, wait {wait_ns}, inner {inner}, outer {outers:?}");
            let mut restorer = Restorer::new(vec![wait_ns], 10_000);
            restorer.begin(0, 5, (1, 1), |_| {});
            let mut out = Vec::new();
            let mut arrive = |sequence, outer| {
                let held = marked(is_v6, inner, outer);
                restorer.arrive(0, number(5, 0, sequence), held, |held| {
                    out.push(Model::Out.decapsulate(inner, held.outer_tos));
                })
            };
            // The packet with number 1 is held until 0 has come, if there is an order.
            assert_eq!(outers.map(|outer| arrive(1, outer)), expected, "{what}");
            assert_eq!(arrive(0, 0), None, "{what}");
            out.sort_unstable();
            let is_kept = wait_ns > 0 || outers[0] == CE;
            let of_marked = if inner > 0 && is_kept { CE } else { inner };
            assert_eq!(out, [Some(inner), Some(of_marked)], "{what}");
        }
    }
}

/// A longer wait holds at once for what comes next and leaves the deadline of what is held; other changes need an epoch.
#[test]
fn a_longer_wait_holds_at_once_and_a_shorter_one_from_the_next_epoch_on() {
    let mut restorer = Restorer::new(vec![50 * MS, 0, 50 * MS], 10_000);
    restorer.begin(0, 5, (1, 1), |_| {});
    let arrive = |restorer: &mut Restorer, now_ns, epoch, (stream, sequence)| {
        let number = number(epoch, stream, sequence);
        restorer.arrive(now_ns, number, held(sequence, 40), |_| {})
    };
    for stream in 0..3 {
        arrive(&mut restorer, 0, 5, (stream, 1));
    }
    restorer.set_waits(vec![400 * MS, 400 * MS, 20 * MS]);
    assert_eq!(restorer.due_ns(), Some(50 * MS), "as when it came");
    let waits = |restorer: &Restorer| [0, 1, 2].map(|class| restorer.wait_ns(class));
    assert_eq!(waits(&restorer), [400 * MS, 0, 50 * MS]);
    restorer.expire(50 * MS, |_| {});
    arrive(&mut restorer, 60 * MS, 5, (0, 3));
    assert_eq!(restorer.due_ns(), Some(460 * MS));
    assert_eq!(arrive(&mut restorer, 459 * MS, 5, (0, 2)), None, "in time");
    restorer.begin(500 * MS, 6, (1, 2), |_| {});
    assert_eq!(waits(&restorer), [400 * MS, 400 * MS, 20 * MS]);
}

/// Packets that are delayed, duplicated, reordered, lost and of any number: nothing is handed out twice or out of order, and
/// what is held stays within the bounds.
#[test]
fn a_hundred_thousand_hostile_packets_are_handed_out_once_in_order_within_the_bounds() {
    const MOST_BYTES: u64 = 200_000;
    for seed in 0..4 {
        let mut random = Pcg32::seed_from_u64(seed);
        let mut draw = |below: u32| random.next_u32() % below;
        let mut restorer = Restorer::new(vec![20 * MS; 4], MOST_BYTES);
        let mut came: [Vec<(u32, u32)>; 4] = Default::default();
        let mut sent: [u32; 4] = [u32::MAX - 5000; 4];
        let (mut now_ns, mut epoch) = (0, 1);
        let mut epochs = 1;
        restorer.begin(0, epoch, (1, 0), |_| {});
        for step in 0..25_000_u32 {
            now_ns += u64::from(draw(400_000));
            if draw(4000) == 0 {
                epochs += 1;
                epoch = epoch.wrapping_mul(48_271);
                restorer.begin(now_ns, epoch, (1, now_ns), |held| record(&mut came, &held));
                sent = [draw(3); 4];
            }
            let stream = draw(5) as u8;
            let place = usize::from(stream.min(3));
            sent[place] = sent[place].wrapping_add(1);
            let sequence = match draw(20) {
                0..=9 => sent[place],
                10..=15 => sent[place].wrapping_sub(draw(30)),
                16 => sent[place].wrapping_sub(draw(20_000)),
                // A leap gives up all between, so there are few.
                17 if step % 500 == 0 => sent[place].wrapping_add(draw(3000)),
                18 if step % 100 == 0 => draw(u32::MAX),
                _ => continue,
            };
            let of = if draw(50) == 0 { draw(u32::MAX) } else { epoch };
            let bytes = 20 + draw(1480) as usize;
            let mut packet = held(sequence, bytes).packet;
            packet[4..8].copy_from_slice(&of.to_be_bytes());
            packet[8] = stream;
            let held = Held {
                packet,
                outer_tos: 0,
            };
            let arrived = number(of, stream, sequence);
            restorer.arrive(now_ns, arrived, held, |held| record(&mut came, &held));
            restorer.expire(now_ns, |held| record(&mut came, &held));
            let held_bytes: u64 = (0..4).map(|class| restorer.held(class).1).sum();
            assert!(held_bytes <= MOST_BYTES, "{held_bytes} bytes are held");
            assert!(
                restorer.due_ns().is_none_or(|ns| ns > now_ns),
                "step {step}"
            );
        }
        assert!(epochs > 2, "{epochs}");
        for of_stream in &came {
            let once: BTreeSet<_> = of_stream.iter().collect();
            assert_eq!(once.len(), of_stream.len(), "nothing twice");
            let numbers: BTreeSet<u32> = of_stream.iter().map(|(epoch, _)| *epoch).collect();
            for epoch in numbers {
                let of = of_stream.iter().filter(|(other, _)| *other == epoch);
                let numbers: Vec<u32> = of.map(|(_, number)| *number).collect();
                let forwards = |pair: &[u32]| (pair[1].wrapping_sub(pair[0]) as i32) > 0;
                assert!(numbers.windows(2).all(forwards), "in order");
            }
        }
        let all: usize = came.iter().map(Vec::len).sum();
        assert!(all > 5000, "{all} were handed out");
    }
}

fn record(came: &mut [Vec<(u32, u32)>; 4], held: &Held) {
    let epoch = u32::from_be_bytes(held.packet[4..8].try_into().unwrap());
    came[usize::from(held.packet[8])].push((epoch, number_of(held)));
}
