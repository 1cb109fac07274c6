// SPDX-License-Identifier: BSD-3-Clause
//! Tests of links, in virtual time.

use std::io::Write;
use std::sync::{Arc, Mutex};

use super::*;
use crate::setup::tests::{Links, GROUND};

pub(crate) mod flows;
pub(crate) mod traffic;

const MS: u64 = 1_000_000;

fn config(link: &str) -> Links {
    Links::parse(&GROUND.replacen("rate = \"20Mbit\"", link, 1))
}

fn link(config: &Links) -> Link {
    Link::new(0, config.of_peer(0)).unwrap()
}

/// Serves until `until_ns`; returns the first byte of each packet sent.
fn serve(link: &mut Link, mut now_ns: u64, until_ns: u64) -> Vec<u8> {
    let mut sent = Vec::new();
    while now_ns < until_ns {
        match link.next(now_ns, |_| false) {
            Next::Send(packet, _) => sent.push(packet[0]),
            Next::At(ns) => {
                assert!(ns > now_ns, "time goes on");
                now_ns = ns;
            }
            Next::Nothing => break,
        }
    }
    sent
}

#[test]
fn packets_leave_at_the_capacity_and_in_the_policys_order() {
    let config = config("rate = \"8Mbit\"");
    let mut link = link(&config);
    for packet in 0..10 {
        link.arrive(0, 2, 1000, &[20 + packet]);
    }
    link.arrive(0, 0, 1000, &[1]);
    // 1000 bytes take 1 ms.
    assert_eq!(serve(&mut link, 0, 4 * MS), [1, 20, 21, 22]);
    link.arrive(4 * MS, 0, 1000, &[2]);
    assert_eq!(serve(&mut link, 4 * MS, 6 * MS), [2, 23]);
    assert_eq!(link.waiting_pkts(), 6);
}

/// Text that is still there when the link is gone.
#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_calls_of_a_links_policy_are_recorded() {
    let config = config("rate = \"8Mbit\"");
    let text = Text::default();
    let out: Out = Box::new(text.clone());
    let mut link = Link::recorded(0, config.of_peer(0), Some(out)).unwrap();
    link.arrive(0, 2, 1000, &[20]);
    link.arrive(0, 0, 500, &[1]);
    assert_eq!(serve(&mut link, 0, 2 * MS), [1, 20]);
    link.set_capacity(3 * MS, 4_000_000);
    drop(link);
    let bytes = text.0.lock().unwrap().clone();
    let text = String::from_utf8(bytes).unwrap();
    let (_, calls) = text.split_once("at 0 init\n").unwrap();
    // 500 bytes take 0.5 ms. The policy is told the new capacity, which each class has unless it says otherwise.
    assert_eq!(
        calls,
        "at 0 enqueue 2 1000\nat 0 enqueue 0 500\nat 0 pick 0\nat 0 verdict pass\nat 0 send 0\nat 500000 pick 2\n\
         at 500000 verdict pass\nat 500000 send 2\nat 3000000 link 4000000\n\
         at 3000000 rate 0 4000000 1 4000000 2 4000000\n# end\n"
    );
}

#[test]
fn rates_are_those_of_theory() {
    // Finzi et al. 2023, equations (7) and (8): voice 10 of 20 Mbit/s, 4 Mbit/s reserved; the rest gets what is left.
    let mut config = config("rate = \"20Mbit\"");
    let row = config.scheduler.info.qparams.len();
    let rate = config.scheduler.info.qparam("rate").unwrap();
    config.scheduler.qparams[row + rate] = 4_000_000;
    let mut link = link(&config);
    let mut sent_bytes = [0_u64; 3];
    let end_ns = 60_000 * MS;
    let mut now_ns = 0;
    let mut voice_ns = 0;
    while now_ns < end_ns {
        while voice_ns <= now_ns {
            link.arrive(now_ns, 0, 1500, &[0]);
            voice_ns += 1_200_000;
        }
        for class in [1, 2] {
            while link.mux().queues()[class].backlog_pkts < 5 {
                link.arrive(now_ns, class, 1500, &[class as u8]);
            }
        }
        match link.next(now_ns, |_| false) {
            Next::Send(packet, _) => sent_bytes[usize::from(packet[0])] += 1500,
            Next::At(ns) => now_ns = ns.min(voice_ns),
            Next::Nothing => now_ns = voice_ns,
        }
    }
    let mbit = sent_bytes.map(|bytes| bytes as f64 * 8.0 / 60.0 / 1e6);
    for (mbit, expected) in mbit.into_iter().zip([10.0, 4.0, 6.0]) {
        assert!(
            (mbit / expected - 1.0).abs() < 0.005,
            "{mbit} for {expected}"
        );
    }
}

#[test]
fn dropped_packets_do_not_count_as_waiting() {
    let config = config("rate = \"8Mbit\"");
    let mut link = link(&config);
    for _ in 0..250 {
        link.arrive(0, 0, 1000, &[0]);
    }
    assert_eq!(link.waiting_pkts(), 100, "the limit of class ef");
    assert_eq!(link.mux().counters(0).dropped_limit_pkts, 150);
}

#[test]
fn one_call_drops_no_more_than_it_may_after_an_outage() {
    let (before, _) = GROUND.split_once("[scheduler]").unwrap();
    let (_, peers) = GROUND.split_once("[[peer]]").unwrap();
    let text = format!(
        "{before}[scheduler]\npolicy = \"codes\"\n[[class]]\nname = \"all\"\nlimit = \"60000p\"\ntimeout = \"100ms\"\n[[peer]]{peers}"
    );
    let config = Links::parse(&text);
    let mut link = link(&config);
    link.set_open(false);
    for _ in 0..60_000 {
        link.arrive(0, 0, 1000, &[0]);
    }
    let now_ns = 2000 * MS;
    link.arrive(now_ns, 0, 1000, &[1]);
    link.set_open(true);
    let mut waiting = link.waiting_pkts();
    let refused = link.mux().counters(0).dropped_limit_pkts as u32;
    assert_eq!((waiting, refused), (60_000, 0), "what expired made room");
    loop {
        let next = link.next(now_ns, |_| false);
        let dropped = waiting - link.waiting_pkts();
        waiting = link.waiting_pkts();
        // One may be the packet that leaves.
        assert!(dropped <= MOST_DROPS, "{dropped} in one call");
        match next {
            Next::At(ns) => {
                assert_eq!((ns, dropped), (now_ns, MOST_DROPS), "ask again at once")
            }
            next => {
                assert_eq!(next, Next::Send((&[1][..]).into(), false));
                break;
            }
        }
    }
    assert_eq!(waiting, 0);
}

#[test]
fn an_expired_capacity_falls_to_its_floor() {
    let config = config("rate = \"8Mbit\"\nstale = \"100ms\"\nfloor = \"5.6Mbit\"");
    let mut link = link(&config);
    link.set_capacity(0, 16_000_000);
    assert_eq!(link.mux().link_bps(), 16_000_000);
    for _ in 0..100 {
        link.arrive(0, 0, 2000, &[0]);
    }
    assert_eq!(serve(&mut link, 0, 99 * MS).len(), 99);
    link.arrive(100 * MS, 0, 1000, &[0]);
    serve(&mut link, 100 * MS, 101 * MS);
    assert_eq!(link.capacity_bps(100 * MS), 5_600_000);
}

/// Reloads that change the keys of the capacity.
#[test]
fn a_reload_sets_when_the_capacity_expires() {
    const STALE: &str = "rate = \"8Mbit\"\nstale = \"100ms\"\nfloor = \"2Mbit\"";
    const FEEDBACK: &str =
        "rate = \"8Mbit\"\nstale = \"3s\"\nfloor = \"2Mbit\"\nfeedback = { ceiling = \"20Mbit\" }";
    const PLAIN: &str = "rate = \"8Mbit\"";
    // The old and the new configuration, when it changes, and the capacity 10 s later where 5 Mbit/s were reported at
    // first.
    for (old, new, at_ms, mbit) in [
        (STALE, PLAIN, 50, 5),
        (STALE, PLAIN, 150, 8),
        (STALE, STALE, 50, 2),
        (PLAIN, STALE, 50, 2),
        (FEEDBACK, PLAIN, 50, 8),
        (FEEDBACK, PLAIN, 4000, 8),
        (PLAIN, PLAIN, 50, 5),
    ] {
        let (old_config, new_config) = (config(old), config(new));
        let mut link = link(&old_config);
        link.set_capacity(0, 5_000_000);
        let now_ns = at_ms * MS;
        link.channel_bps(now_ns);
        let peers = (&old_config.peers[0], &new_config.peers[0]);
        link.change(now_ns, &new_config.scheduler, &new_config.classes, peers)
            .unwrap();
        let bps = link.channel_bps(now_ns + 10_000 * MS);
        assert_eq!(bps, mbit * 1_000_000, "{old} to {new} at {at_ms} ms");
    }
    // Time since the report counts.
    let (short, long) = (config(STALE), config(&STALE.replace("100ms", "1s")));
    let mut link = link(&short);
    link.set_capacity(0, 5_000_000);
    let peers = (&short.peers[0], &long.peers[0]);
    link.change(50 * MS, &long.scheduler, &long.classes, peers)
        .unwrap();
    assert_eq!(link.channel_bps(999 * MS), 5_000_000);
    assert_eq!(link.channel_bps(1000 * MS), 2_000_000);
}

/// The policy decides as if it had been started with the new parameters.
#[test]
fn a_reload_in_a_fade_or_with_a_faster_link_is_not_refused() {
    let ground = |rate: &str, reserved: &str| {
        let text = GROUND.replacen("\"20Mbit\"", rate, 1);
        let text = text.replacen("\"5Mbit\"", reserved, 1);
        Links::parse(&text)
    };
    let slow = ground("\"8Mbit\"", "\"5Mbit\"");
    for (faded_bps, rate, reserved, refused) in [
        (1_000_000, "\"8Mbit\"", "\"6Mbit\"", false),
        (8_000_000, "\"20Mbit\"", "\"15Mbit\"", false),
        (1_000_000, "\"20Mbit\"", "\"15Mbit\"", false),
        // `nominal` is not the link's rate: to change it does not change what the link carries.
        (
            8_000_000,
            "\"8Mbit\"\nnominal = \"20Mbit\"",
            "\"15Mbit\"",
            true,
        ),
    ] {
        let mut link = link(&slow);
        link.set_capacity(0, faded_bps);
        assert_eq!(link.mux().link_bps(), faded_bps);
        let new = ground(rate, reserved);
        let peers = (&slow.peers[0], &new.peers[0]);
        let accepts = link.accepts(&new.scheduler, peers);
        let changed = link.change(MS, &new.scheduler, &new.classes, peers);
        assert_eq!(accepts, changed);
        assert_eq!(accepts.is_err(), refused, "{rate}, {reserved}: {accepts:?}");
    }
}

/// What a reload makes of a reserved rate holds at once: nobody is owed, or has to wait for, service by the change itself.
#[test]
fn a_reload_with_another_rate_or_memory_gives_the_class_its_new_rate_at_once() {
    let ground = |mbit: u64, memory: &str| {
        let text = GROUND.replacen("\"5Mbit\"", &format!("\"{mbit}Mbit\""), 1);
        Links::parse(&text.replacen("memory = \"1s\"", &format!("memory = \"{memory}\""), 1))
    };
    for ((old_mbit, old_memory), (new_mbit, new_memory)) in [
        ((5, "5s"), (9, "5s")),
        ((9, "5s"), (5, "5s")),
        ((3, "1s"), (3, "4s")),
        ((3, "4s"), (3, "1s")),
        ((3, "15s"), (3, "1s")),
        ((3, "1s"), (3, "15s")),
    ] {
        let (old, new) = (ground(old_mbit, old_memory), ground(new_mbit, new_memory));
        let mut link = link(&old);
        let (mut arrived, mut sent) = ([0_u32; 3], [0_u32; 3]);
        let mut now_ns = 0;
        // Voice takes 2 Mbit/s. The other two classes always have packets.
        let mut serve = |link: &mut Link, until_ns: u64| {
            let before = sent;
            while now_ns < until_ns {
                for (class, waits) in [(0, 0), (1, 5), (2, 5)] {
                    while if class == 0 {
                        u64::from(arrived[0]) * 6 * MS <= now_ns
                    } else {
                        link.mux().queues()[class].backlog_pkts < waits
                    } {
                        let number = arrived[class].to_be_bytes();
                        link.arrive(now_ns, class, 1500, &[&[class as u8][..], &number].concat());
                        arrived[class] += 1;
                    }
                }
                match link.next(now_ns, |_| false) {
                    Next::Send(packet, _) => {
                        let class = usize::from(packet[0]);
                        assert_eq!(packet[1..], sent[class].to_be_bytes(), "lost or reordered");
                        sent[class] += 1;
                    }
                    Next::At(ns) => now_ns = ns,
                    Next::Nothing => unreachable!("packets wait"),
                }
            }
            [1, 2].map(|class| f64::from(sent[class] - before[class]) * 0.012)
        };
        serve(&mut link, 10_000 * MS);
        let peers = (&old.peers[0], &new.peers[0]);
        link.change(10_000 * MS, &new.scheduler, &new.classes, peers)
            .unwrap();
        for second in 11..=15 {
            let [af, rest] = serve(&mut link, second * 1000 * MS);
            let of = f64::from(new_mbit as u32);
            let what = format!(
                "{old_mbit} Mbit/s, {old_memory} to {new_mbit}, {new_memory}: {af} and {rest} Mbit/s in second {second}"
            );
            assert!((af / of - 1.0).abs() < 0.05, "{what}");
            assert!((rest / (18.0 - of) - 1.0).abs() < 0.05, "{what}");
        }
    }
}

#[test]
fn a_message_that_was_in_no_queue_occupies_the_link() {
    let config = config("rate = \"8Mbit\"");
    let mut link = link(&config);
    link.arrive(0, 0, 1000, &[1]);
    link.arrive(0, 0, 1000, &[2]);
    assert!(matches!(link.next(0, |_| false), Next::Send(..)));
    assert_eq!(link.channel_free_ns(0), Some(MS));
    link.occupy(MS, 500);
    assert_eq!(link.next(MS, |_| false), Next::At(MS + MS / 2));
    link.set_open(false);
    assert_eq!(link.channel_free_ns(2 * MS), None);
}

#[test]
fn an_outage_begins_and_ends() {
    let config = config("rate = \"8Mbit\"");
    let mut link = link(&config);
    link.set_capacity(0, 0);
    link.arrive(0, 0, 1000, &[1]);
    link.arrive(0, 0, 1000, &[2]);
    assert!(serve(&mut link, 0, 60_000 * MS).is_empty());
    link.set_capacity(60_000 * MS, 8_000_000);
    assert_eq!(serve(&mut link, 60_000 * MS, 60_002 * MS), [1, 2]);
    // A packet that arrives 5 ms after the link became idle begins then, not before.
    link.arrive(60_007 * MS, 0, 1000, &[3]);
    link.arrive(60_007 * MS, 0, 1000, &[4]);
    assert_eq!(serve(&mut link, 60_007 * MS, 60_008 * MS), [3]);
}

#[test]
fn nothing_is_missed_while_nothing_can_be_sent() {
    let mut link = link(&config("rate = \"8Mbit\""));
    for number in 1..=3 {
        link.arrive(0, 0, 1000, &[number]);
    }
    assert_eq!(serve(&mut link, 0, 1), [1]);
    link.set_open(false);
    link.set_open(true);
    assert_eq!(serve(&mut link, 1000 * MS, 1000 * MS + 1), [2]);
    assert_eq!(link.channel_free_ns(1000 * MS), Some(1001 * MS));
    assert_eq!(serve(&mut link, 1001 * MS, 1001 * MS + 1), [3]);
    assert_eq!(link.channel_free_ns(1001 * MS), Some(1002 * MS));
    // Nor before a message that was in no queue.
    link.occupy(3000 * MS, 1000);
    assert_eq!(link.channel_free_ns(3000 * MS), Some(3001 * MS));
    link.arrive(3000 * MS, 0, 1000, &[4]);
    assert_eq!(serve(&mut link, 3001 * MS, 3001 * MS + 1), [4]);
    assert_eq!(link.channel_free_ns(3001 * MS), Some(3002 * MS));
}

#[test]
fn a_change_keeps_queues_and_credit() {
    let config = config("rate = \"8Mbit\"");
    let mut link = link(&config);
    for packet in 0..50 {
        link.arrive(0, 1, 1000, &[packet]);
    }
    assert_eq!(serve(&mut link, 0, 20 * MS).len(), 20);
    let credit = |link: &mut Link| {
        let mut values = vec![0; config.scheduler.info.stats.len()];
        link.mux().observe(20 * MS, 1, &mut values);
        values
    };
    let before = credit(&mut link);
    let mut other = config.clone();
    let at = other.scheduler.info.qparams.len() + other.scheduler.info.qparam("burst").unwrap();
    other.scheduler.qparams[at] += 5;
    other.classes[1].limit.pkts = Some(31);
    let peers = (&config.peers[0], &other.peers[0]);
    link.change(20 * MS, &other.scheduler, &other.classes, peers)
        .unwrap();
    let level = config
        .scheduler
        .info
        .stats
        .iter()
        .position(|stat| stat.name == "credit")
        .unwrap();
    assert_eq!(credit(&mut link)[level], before[level]);
    assert_eq!(link.waiting_pkts(), 30);
    link.arrive(20 * MS, 1, 1000, &[50]);
    link.arrive(20 * MS, 1, 1000, &[51]);
    assert_eq!(link.waiting_pkts(), 31, "the new limit");
    assert_eq!(
        serve(&mut link, 20 * MS, 60 * MS),
        (20..51).collect::<Vec<u8>>()
    );
}

/// A super-packet of ten packets of 1000 bytes.
fn whole() -> Packet {
    use crate::bytes::superpacket::tests::{payload, Flow};
    Flow::new(false, true, 1000).whole(0, 0, 0x10, &payload(9600), 960)
}

#[test]
fn a_super_packet_goes_whole_while_it_is_short() {
    // 10000 bytes take 1 ms of 80 Mbit/s.
    for (rate, pkts) in [("80Mbit", 10), ("79Mbit", 1)] {
        let config = config(&format!("rate = \"{rate}\""));
        let mut link = link(&config);
        link.arrive_any(0, 2, whole(), |bytes| bytes as u32);
        assert_eq!(link.waiting_pkts(), 10);
        assert_eq!(link.mux().waiting_pkts(2), 10);
        assert_eq!(link.mux().queues()[2].backlog_bytes, 10_000);
        let Next::Send(first, _) = link.next(0, |_| false) else {
            panic!("it waits");
        };
        assert_eq!(first.pkts(), pkts, "{rate}");
        assert_eq!(link.waiting_pkts(), 10 - pkts as u32);
        // What was sent occupies the link as long as its packets would.
        assert_eq!(link.mux().counters(2).sent_pkts, pkts as u64);
        if pkts == 10 {
            link.arrive(0, 2, 1000, &[0]);
            assert_eq!(link.next(0, |_| false), Next::At(MS));
        }
    }
}

#[test]
fn packets_of_a_super_packet_are_accounted_one_by_one() {
    let config = config("rate = \"1Gbit\"");
    let mut link = link(&config);
    // 60 bytes of headers below each.
    link.arrive_any(0, 2, whole(), |bytes| bytes as u32 + 60);
    assert_eq!(link.mux().queues()[2].backlog_bytes, 10_600);
    let counters = link.mux().counters(2);
    assert_eq!(
        (counters.arrived_pkts, counters.arrived_bytes),
        (10, 10_600)
    );
}

#[test]
fn urgent_packets_wait_for_no_more_than_a_packet_of_a_slow_link() {
    let config = config("rate = \"8Mbit\"");
    let mut link = link(&config);
    link.arrive_any(0, 2, whole(), |bytes| bytes as u32);
    assert_eq!(serve(&mut link, 0, MS).len(), 1);
    link.arrive(MS / 2, 0, 1000, &[1]);
    assert_eq!(serve(&mut link, MS, 3 * MS)[0], 1);
}

#[test]
fn a_super_packet_that_finds_too_little_room_is_cut() {
    // Class ef holds 100 packets.
    let config = config("rate = \"10Gbit\"");
    let mut link = link(&config);
    for _ in 0..11 {
        link.arrive_any(0, 0, whole(), |bytes| bytes as u32);
    }
    assert_eq!(link.mux().queues()[0].backlog_pkts, 10, "whole ones");
    assert_eq!(link.waiting_pkts(), 100);
    assert_eq!(link.mux().counters(0).dropped_limit_pkts, 10);
    for (at_ms, left) in [(10, 90), (20, 80)] {
        let now_ns = at_ms * MS;
        assert!(
            matches!(link.next(now_ns, |_| false), Next::Send(packet, _) if packet.pkts() == 10)
        );
        assert_eq!(link.waiting_pkts(), left);
    }
    for _ in 0..15 {
        link.arrive(30 * MS, 0, 1000, &[7]);
    }
    assert_eq!(link.waiting_pkts(), 95);
    link.arrive_any(30 * MS, 0, whole(), |bytes| bytes as u32);
    assert_eq!(link.waiting_pkts(), 100, "five of ten");
    assert_eq!(link.mux().counters(0).dropped_limit_pkts, 15);
}

#[test]
fn super_packets_of_flows_are_scheduled_whole_and_make_room_for_others() {
    let label = |flow| Label { class: 0, flow };
    use linkweir_core::Isolation;
    for flows in [Isolation::FqCodel, Isolation::Drr] {
        // Class ef holds 100 packets: ten super-packets of one flow.
        let mut config = config("rate = \"10Gbit\"");
        config.classes[0].flows = Some(flows);
        let mut link = link(&config);
        for _ in 0..10 {
            link.arrive_any(0, label(1), whole(), |bytes| bytes as u32);
        }
        assert_eq!(link.waiting_pkts(), 100);
        // The newest of these makes room for a packet of another flow.
        link.arrive_any(0, label(2), [7_u8; 1][..].into(), |_| 100);
        assert_eq!(link.waiting_pkts(), 91);
        assert_eq!(link.mux().counters(0).dropped_limit_pkts, 10);
        // A super-packet of a third flow is cut, because the class has no room for all of it; its packets find room.
        link.arrive_any(0, label(3), whole(), |bytes| bytes as u32);
        assert_eq!(link.mux().waiting_pkts(0), 91 + 9 - 10 + 1);
        assert_eq!(link.waiting_pkts(), link.mux().waiting_pkts(0));
        let (mut pkts, mut now_ns) = (Vec::new(), 0);
        loop {
            match link.next(now_ns, |_| false) {
                Next::Send(packet, _) => pkts.push(packet.pkts()),
                Next::At(ns) => now_ns = ns,
                Next::Nothing => break,
            }
        }
        assert_eq!(pkts.iter().sum::<usize>(), 91);
        assert!(pkts.contains(&10), "{flows:?}: {pkts:?}");
        assert!(pkts.contains(&1));
    }
}

#[test]
fn super_packets_are_cut_in_an_outage() {
    let config = config("rate = \"10Gbit\"");
    let mut link = link(&config);
    link.set_capacity(0, 0);
    link.arrive_any(0, 2, whole(), |bytes| bytes as u32);
    assert_eq!(link.mux().queues()[2].backlog_pkts, 10);
}

/// Voice of 50 packets/s into an outage of a minute, then for 2 s more: the queue at its longest, and the ages of the packets
/// that leave, ns.
fn outage(mut link: Link, end: impl Fn(&mut Link, u64)) -> (u32, Vec<u64>) {
    let (mut longest, mut ages) = (0, Vec::new());
    let mut now_ns = 0;
    let mut sent = 0;
    while now_ns < 62_000 * MS {
        if now_ns == 60_000 * MS {
            end(&mut link, now_ns);
        }
        if now_ns % (20 * MS) == 0 {
            link.arrive(now_ns, 0, 200, &[1]);
        }
        while let Next::Send(..) = link.next(now_ns, |_| false) {}
        longest = longest.max(link.waiting_pkts());
        let waits = link.waits(0);
        let (count, max_ns) = waits.map_or((0, 0), |waits| {
            let whole = waits.whole();
            (whole.pkts, whole.max_ns)
        });
        if count > sent {
            ages.push(max_ns);
            sent = count;
        }
        now_ns += MS;
    }
    (longest, ages)
}

#[test]
fn nothing_too_old_waits_for_the_end_of_an_outage() {
    let mut config = config("rate = \"8Mbit\"");
    config.classes[0].limit.max_age_ns = Some(200 * MS);
    let mut faded = link(&config);
    faded.set_capacity(0, 0);
    let (longest, ages) = outage(faded, |link, now_ns| link.set_capacity(now_ns, 8_000_000));
    assert_eq!(longest, 10, "of 195 ms");
    assert!(ages.len() > 90 && ages[0] <= 195 * MS, "{ages:?}");
    let mut closed = link(&config);
    closed.set_open(false);
    let (longest, ages) = outage(closed, |link, _| link.set_open(true));
    assert_eq!(longest, 10, "of 195 ms");
    assert!(ages.len() > 90 && ages[0] <= 195 * MS, "{ages:?}");
    // Without a bound the class keeps the oldest 100.
    let mut faded = link(&Links::parse(GROUND));
    faded.set_capacity(0, 0);
    let (longest, ages) = outage(faded, |link, now_ns| link.set_capacity(now_ns, 8_000_000));
    assert_eq!((longest, ages[0]), (100, 60_000 * MS));
}

#[test]
fn a_link_that_sends_nothing_is_looked_at_when_a_packet_is_too_old() {
    let mut config = config("rate = \"8Mbit\"");
    config.classes[0].limit.max_age_ns = Some(200 * MS);
    let mut link = link(&config);
    link.set_capacity(0, 0);
    link.arrive(MS, 0, 200, &[1]);
    link.arrive(2 * MS, 0, 200, &[1]);
    assert_eq!(link.next(3 * MS, |_| false), Next::At(196 * MS + 1));
    assert_eq!(link.next(196 * MS + 1, |_| false), Next::At(197 * MS + 1));
    link.set_open(false);
    assert_eq!(link.next(197 * MS, |_| false), Next::At(197 * MS + 1));
    assert_eq!(link.next(197 * MS + 1, |_| false), Next::Nothing);
    assert_eq!(link.mux().counters(0).dropped_age_pkts, 2);
}

#[test]
fn a_class_with_a_least_share_gets_it_in_a_fade_below_the_reservation() {
    for (least_ppm, rest, starved) in [(0, 0..=0, true), (50_000, 49..=52, false)] {
        let mut config = config("rate = \"8Mbit\"");
        // 5 Mbit/s are reserved for class af.
        config.classes[2].limit.least_ppm = least_ppm;
        let mut link = link(&config);
        link.set_capacity(0, 3_000_000);
        let (mut sent, mut told) = ([0u32; 3], None);
        let mut now_ns = 0;
        // 1500 bytes take 4 ms: a thousand packets.
        while now_ns < 4000 * MS {
            for class in [1, 2] {
                while link.mux().queues()[class].backlog_pkts < 4 {
                    link.arrive(now_ns, class, 1500, &[class as u8]);
                }
            }
            match link.next(now_ns, |_| false) {
                Next::Send(packet, _) => sent[usize::from(packet[0])] += 1,
                Next::At(ns) => now_ns = ns,
                Next::Nothing => panic!("something waits"),
            }
            told = told.or(link.take_starved());
        }
        // PSS tops the class's credit up at the start, so what is sent before the fade is told counts as well.
        assert!(rest.contains(&sent[2]), "{sent:?}");
        assert_eq!(told, starved.then_some(2));
        assert_eq!(link.starved_ns(2) > 2500 * MS, starved);
    }
}

/// On a slow link a class gets its reserved rate in turns that are far apart. That is neither starvation of the class nor of
/// those that wait for its turn.
#[test]
fn classes_that_get_their_rates_in_turns_are_not_starved() {
    for (capacity_bps, starved) in [(64_000, None), (19_000, Some(2))] {
        let links = GROUND
            .replace("20Mbit", "64kbit")
            .replace("5Mbit", "20kbit")
            .replace("memory = \"1s\"\n", "");
        let mut link = link(&Links::parse(&links));
        link.set_capacity(0, capacity_bps);
        let (mut now_ns, mut told, mut sent) = (0, None, [0u64; 3]);
        let mut gap_ns = 0;
        let mut last_ns = 0;
        while now_ns < 300_000 * MS {
            for class in [1, 2] {
                while link.mux().queues()[class].backlog_pkts < 4 {
                    link.arrive(now_ns, class, 1500, &[class as u8]);
                }
            }
            match link.next(now_ns, |_| false) {
                Next::Send(packet, _) => {
                    let class = usize::from(packet[0]);
                    sent[class] += 1500 * 8;
                    if class == 1 {
                        gap_ns = gap_ns.max(now_ns - last_ns);
                        last_ns = now_ns;
                    }
                }
                Next::At(ns) => now_ns = ns,
                Next::Nothing => panic!("something waits"),
            }
            told = told.or(link.take_starved());
        }
        assert_eq!(told, starved, "at {capacity_bps}");
        let starved_ns = [1, 2].map(|class| link.starved_ns(class));
        if starved.is_some() {
            assert!(starved_ns[1] > 200_000 * MS, "{starved_ns:?}");
            continue;
        }
        assert_eq!(starved_ns, [0, 0]);
        assert!(gap_ns > 7_000 * MS, "the turns are far apart: {gap_ns}");
        let af_bps = sent[1] / 300;
        assert!((19_500..=21_500).contains(&af_bps), "{af_bps}");
    }
}

/// Feedback paces at another rate than the capacity that it estimates. Only its reports take over from another source.
#[test]
fn feedback_steers_the_pace_and_the_scheduler_gets_the_capacity() {
    let config = config("rate = \"20Mbit\"");
    let mut link = link(&config);
    let steer = |pace_bps, reported| Steer {
        pace_bps,
        capacity_bps: 12_000_000,
        reported,
    };
    link.steer(0, steer(1_000_000, false));
    assert_eq!(link.capacity_bps(0), 20_000_000, "nothing was reported");
    link.steer(0, steer(8_000_000, true));
    for _ in 0..10 {
        link.arrive(0, 2, 1000, &[1]);
    }
    // 1000 bytes take 1 ms of the pace.
    assert_eq!(serve(&mut link, 0, 4 * MS).len(), 4);
    assert_eq!(link.capacity_bps(4 * MS), 12_000_000);
    assert_eq!(link.mux().link_bps(), 12_000_000);
    link.steer(4 * MS, steer(4_000_000, false));
    assert_eq!(serve(&mut link, 4 * MS, 8 * MS).len(), 2);
    // An operator reports an outage.
    link.set_capacity(8 * MS, 0);
    link.steer(9 * MS, steer(4_000_000, false));
    assert_eq!(link.capacity_bps(9 * MS), 0);
}
