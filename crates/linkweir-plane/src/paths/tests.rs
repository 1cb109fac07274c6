// SPDX-License-Identifier: BSD-3-Clause
//! A link over two paths and the receiving end behind them, in virtual time.

use std::collections::BTreeMap;

mod cuts;
mod outages;
mod recorded;

use super::*;
use crate::bytes::numbered::{Number, HEADER_BYTES};
use crate::link::{Link, Next};
use crate::restoring::{Dropped, Held, Restorer};
use crate::setup::tests::{Links, GROUND};
use crate::setup::LinkSetup;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const EPOCH: u32 = 7;

/// The classes of the ground station with these uses of paths; the reserved rate of the second is 5 Mbit/s.
fn classes(uses: [Uses; 3], resend: bool) -> Links {
    let mut links = Links::parse(GROUND);
    for (class, uses) in links.classes.iter_mut().zip(uses) {
        let numbered = matches!(uses, Uses::All | Uses::Stripe);
        class.reorder_ns = numbered.then_some(400 * MS);
        class.resend = resend && uses == Uses::Stripe;
        class.uses = uses;
    }
    links
}

fn setups(rates_bps: [u64; 2]) -> Vec<PathSetup> {
    let links = Links::parse(GROUND);
    let names = ["starlink", "lte"].into_iter().zip(rates_bps);
    let setup = |(at, (name, bps)): (usize, (&str, u64))| {
        let mut capacity = links.peers[0].clone();
        capacity.nominal_bps = bps;
        capacity.offered = linkweir_config::signal::Capacity::Rate(
            linkweir_config::signal::Signal::Constant(bps as f64),
        );
        PathSetup {
            name: name.to_string(),
            capacity,
            cost: at as u32,
        }
    };
    names.enumerate().map(setup).collect()
}

/// Over which path a packet is sent, its number, and the packet.
type UnderWay = (usize, Option<Number>, Vec<u8>);

/// A link, its paths with one-way delays, and the receiver.
struct Bonded {
    link: Link,
    restorer: Restorer,
    delays_ns: [u64; 2],
    /// Whether each path carries packets; they are lost if not.
    carries: [bool; 2],
    /// What is under way, by when it comes.
    under_way: BTreeMap<(u64, u64), UnderWay>,
    count: u64,
    now_ns: u64,
    /// Packets and bytes sent, by path and class.
    sent: BTreeMap<(usize, u8), (u64, u64)>,
    /// What came: class, number, and when.
    came: Vec<(u8, u32, u64)>,
    dropped: BTreeMap<&'static str, u64>,
}

impl Bonded {
    fn new(links: &Links, rates_bps: [u64; 2], delays_ms: [u64; 2]) -> Bonded {
        let paths = setups(rates_bps);
        let mut capacity = links.peers[0].clone();
        capacity.nominal_bps = rates_bps.iter().sum();
        let setup = LinkSetup {
            paths: &paths,
            capacity: &capacity,
            ..links.of_peer(0)
        };
        // Longer than it takes to notice that a path is dead, so that what it had can come over the other.
        let mut restorer = Restorer::new(vec![400 * MS; 3], 16_000_000);
        restorer.begin(0, EPOCH, (1, 1), |_| panic!("nothing is held"));
        let mut bonded = Bonded {
            link: Link::new(0, setup).unwrap(),
            restorer,
            delays_ns: delays_ms.map(|ms| ms * MS),
            carries: [true; 2],
            under_way: BTreeMap::new(),
            count: 0,
            now_ns: 0,
            sent: BTreeMap::new(),
            came: Vec::new(),
            dropped: BTreeMap::new(),
        };
        bonded.set_up([true; 2]);
        bonded
    }

    /// What probes have found.
    fn set_up(&mut self, up: [bool; 2]) {
        let state = |at: usize| State {
            is_up: up[at],
            delay_ns: self.delays_ns[at],
            arrived_ns: self.now_ns.saturating_sub(300 * MS),
        };
        let states = [state(0), state(1)];
        self.link.set_paths(self.now_ns, true, &states);
    }

    fn arrive(&mut self, class: u8, number: u32, bytes: usize) {
        let mut packet = vec![0; bytes];
        packet[0] = class;
        packet[1..5].copy_from_slice(&number.to_be_bytes());
        self.link
            .arrive(self.now_ns, usize::from(class), bytes as u32, &packet);
    }

    /// Sends and receives until a time.
    fn run_to(&mut self, until_ns: u64) {
        while self.now_ns < until_ns {
            let next_ns = match self.link.next(self.now_ns, |_| false) {
                Next::Send(packet, _) => {
                    let over = self.link.over().expect("several paths");
                    let sent = self.sent.entry((over.path, packet[0])).or_default();
                    *sent = (sent.0 + 1, sent.1 + packet.len() as u64);
                    let number = over.number.map(|(stream, sequence)| Number {
                        stream,
                        epoch: EPOCH,
                        sequence,
                    });
                    if self.carries[over.path] {
                        self.count += 1;
                        let at_ns = self.now_ns + self.delays_ns[over.path];
                        let packet = (over.path, number, packet.to_vec());
                        self.under_way.insert((at_ns, self.count), packet);
                    }
                    continue;
                }
                Next::At(ns) => {
                    assert!(ns > self.now_ns, "time goes on");
                    ns
                }
                Next::Nothing => u64::MAX,
            };
            let comes_ns = self.under_way.keys().next().map(|(at_ns, _)| *at_ns);
            let times = [Some(next_ns), comes_ns, self.restorer.due_ns()];
            let next_ns = times.into_iter().flatten().min().unwrap_or(until_ns);
            self.now_ns = next_ns.min(until_ns);
            self.receive();
        }
    }

    fn receive(&mut self) {
        let now_ns = self.now_ns;
        let mut out = Vec::new();
        self.restorer.expire(now_ns, |held| out.push(held.packet));
        while let Some(entry) = self.under_way.first_entry() {
            if entry.key().0 > now_ns {
                break;
            }
            let (_, number, packet) = entry.remove();
            let packet: Box<[u8]> = packet.into();
            let Some(number) = number else {
                out.push(packet);
                continue;
            };
            let held = Held {
                packet,
                outer_tos: 0,
            };
            let dropped = self
                .restorer
                .arrive(now_ns, number, held, |held| out.push(held.packet));
            let reason = match dropped {
                None => continue,
                Some(Dropped::Duplicate) => "duplicate",
                Some(Dropped::Late) => "late",
                Some(Dropped::Unknown) => "unknown",
                Some(Dropped::Congested) => "congested",
            };
            *self.dropped.entry(reason).or_default() += 1;
        }
        for packet in out {
            let number = u32::from_be_bytes(packet[1..5].try_into().unwrap());
            self.came.push((packet[0], number, now_ns));
        }
    }

    /// The numbers of a class that came, in order.
    fn numbers(&self, class: u8) -> Vec<u32> {
        let of = self.came.iter().filter(|(of, ..)| *of == class);
        of.map(|(_, number, _)| *number).collect()
    }
}

/// Overload of five times the sum; a path is lost in silence for some time, and detected 250 ms later.
fn cut(path: usize) -> Bonded {
    let links = classes([Uses::All, Uses::Stripe, Uses::Spill], true);
    let mut bonded = Bonded::new(&links, [20_000_000, 10_000_000], [20, 40]);
    let (mut voice, mut video, mut rest) = (0, 0, 0);
    for ms in 0..8000 {
        bonded.run_to(ms * MS);
        match ms {
            2000 => bonded.carries[path] = false,
            2250 => bonded.set_up([path != 0, path != 1]),
            5000 => bonded.carries[path] = true,
            5250 => bonded.set_up([true; 2]),
            _ => {}
        }
        if ms % 20 == 0 {
            bonded.arrive(0, voice, 200);
            voice += 1;
        }
        // 5 Mbit/s: 625 bytes in a millisecond; the rest 150 Mbit/s.
        bonded.arrive(1, video, 625);
        video += 1;
        for _ in 0..15 {
            bonded.arrive(2, rest, 1250);
            rest += 1;
        }
    }
    bonded.run_to(9 * S);
    bonded
}

#[test]
fn copies_lose_nothing_and_a_reservation_is_kept_when_either_path_is_cut() {
    for path in [0, 1] {
        let mut bonded = cut(path);
        assert_eq!(
            bonded.numbers(0),
            (0..400).collect::<Vec<_>>(),
            "path {path}"
        );
        // What the dead path had of the reserved class came over the other, in order and once.
        let video = bonded.numbers(1);
        let in_order = video.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(in_order, "path {path}");
        // Only the queue drops, while the path that is dead takes its part.
        let counters = bonded.link.mux().counters(1);
        let dropped = counters.dropped_limit_pkts + counters.dropped_policy_pkts;
        assert_eq!(video.len() as u64 + dropped, 8000, "path {path}: {dropped}");
        // At least 99 % of 5 Mbit/s in each second from detection on.
        for second in [3, 4, 6, 7] {
            let inside = second * S..(second + 1) * S;
            let of = bonded
                .came
                .iter()
                .filter(|(class, _, at_ns)| *class == 1 && inside.contains(at_ns));
            let count = of.count();
            assert!(count >= 990, "path {path}, second {second}: {count}");
        }
        assert!(bonded.dropped["duplicate"] > 100, "{:?}", bonded.dropped);
        assert_eq!(bonded.restorer.held(1), (0, 0), "nothing is left");
    }
}

#[test]
fn one_class_gets_the_sum_of_the_paths_in_order() {
    let links = classes([Uses::Best, Uses::Best, Uses::Stripe], false);
    let mut bonded = Bonded::new(&links, [30_000_000, 8_000_000], [10, 30]);
    let mut number = 0;
    for ms in 0..4000 {
        bonded.run_to(ms * MS);
        while bonded.link.waiting_pkts() < 100 {
            bonded.arrive(2, number, 1000);
            number += 1;
        }
    }
    let numbers = bonded.numbers(2);
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    // 38 Mbit/s are 4750 packets of 1000 bytes in a second; the first come after 30 ms.
    let expected = 4 * 4750;
    assert!(
        (expected - 300..=expected).contains(&numbers.len()),
        "{} of {expected}",
        numbers.len()
    );
    assert!(bonded.dropped.is_empty(), "{:?}", bonded.dropped);
}

#[test]
fn until_the_peer_agrees_one_path_carries_all_without_numbers() {
    let links = classes(
        [
            Uses::All,
            Uses::Stripe,
            Uses::Named(vec!["lte".to_string()]),
        ],
        true,
    );
    let mut bonded = Bonded::new(&links, [8_000_000, 8_000_000], [10, 10]);
    let down = State::default();
    let up = State {
        is_up: true,
        ..State::default()
    };
    assert!(bonded.link.set_paths(0, false, &[up, down]));
    assert_eq!(bonded.link.known_bps(0), 8_000_000);
    for class in 0..3 {
        bonded.arrive(class, 0, 500);
    }
    let mut sent = 0;
    let mut now_ns = 0;
    while bonded.link.waiting_pkts() > 0 {
        match bonded.link.next(now_ns, |_| false) {
            Next::Send(..) => {
                let over = bonded.link.over().unwrap();
                assert_eq!((over.path, over.number), (0, None));
                sent += 1;
            }
            Next::At(ns) => now_ns = ns,
            Next::Nothing => break,
        }
    }
    assert_eq!(sent, 3);
    // Numbers count from the agreement on.
    bonded.link.set_paths(now_ns, true, &[up, up]);
    bonded.now_ns = now_ns + 10 * MS;
    bonded.arrive(1, 1, 500);
    let Next::Send(..) = bonded.link.next(bonded.now_ns, |_| false) else {
        panic!("a path is free");
    };
    assert_eq!(bonded.link.over().unwrap().number, Some((1, 0)));
    assert_eq!(bonded.link.number_bytes(1), HEADER_BYTES);
    assert_eq!(bonded.link.number_bytes(2), 0);
}

#[test]
fn what_cannot_be_kept_is_known_by_class_and_number() {
    let links = classes([Uses::Best, Uses::Best, Uses::Best], false);
    let mut bonded = Bonded::new(&links, [8_000_000, 3_000_000], [10, 30]);
    assert!(bonded.link.broken_promises().is_empty());
    bonded.set_up([false, true]);
    let broken = bonded.link.broken_promises();
    let kept: Vec<_> = broken
        .iter()
        .map(|kept| (kept.class, kept.promised_bps, kept.kept_bps))
        .collect();
    assert_eq!(kept, [(1, 5_000_000, 3_000_000)]);
    bonded.set_up([true, false]);
    assert!(bonded.link.broken_promises().is_empty());
}

#[test]
fn a_reload_with_other_paths_keeps_the_queues() {
    let links = classes(
        [Uses::Best, Uses::Best, Uses::Named(vec!["lte".to_string()])],
        false,
    );
    let mut bonded = Bonded::new(&links, [8_000_000, 8_000_000], [10, 10]);
    bonded.set_up([true, false]);
    for number in 0..5 {
        bonded.arrive(2, number, 500);
    }
    // The class waits for its path alone, and is withheld from the policy.
    assert_eq!(bonded.link.next(0, |_| false), Next::Nothing);
    let (old, one) = (setups([8_000_000; 2]), setups([8_000_000; 2])[..1].to_vec());
    bonded.link.change_paths(0, (&old, &one), &links.classes);
    assert_eq!(bonded.link.waiting_pkts(), 5);
    let up = State {
        is_up: true,
        ..State::default()
    };
    bonded.link.set_paths(0, true, &[up]);
    assert!(
        matches!(bonded.link.next(0, |_| false), Next::Send(..)),
        "as best"
    );
    bonded.link.change_paths(0, (&one, &[]), &links.classes);
    assert_eq!(bonded.link.waiting_pkts(), 4);
    assert!(matches!(bonded.link.next(0, |_| false), Next::Send(..)));
    assert_eq!(bonded.link.over(), None);
}

/// Of two paths that are free, the nearer takes the packet, whichever is listed first.
#[test]
fn the_nearer_of_two_free_paths_takes_a_packet() {
    let links = classes([Uses::Stripe, Uses::Stripe, Uses::Stripe], false);
    let mut bonded = Bonded::new(&links, [8_000_000; 2], [60, 20]);
    for number in 0..10 {
        bonded.now_ns += 10 * MS;
        bonded.arrive(1, number, 500);
        assert!(matches!(
            bonded.link.next(bonded.now_ns, |_| false),
            Next::Send(..)
        ));
        assert_eq!(bonded.link.over().unwrap().path, 1);
    }
}

/// A packet that finds a path idle takes its whole time from then on, whatever was sent before.
#[test]
fn an_idle_path_saves_nothing() {
    let links = classes([Uses::Stripe, Uses::Stripe, Uses::Stripe], false);
    let mut bonded = Bonded::new(&links, [8_000_000; 2], [20, 60]);
    let mut send_at = |now_ns: u64, number: u32| {
        bonded.now_ns = now_ns;
        bonded.arrive(1, number, 1000);
        assert!(matches!(
            bonded.link.next(now_ns, |_| false),
            Next::Send(..)
        ));
        assert_eq!(bonded.link.next(now_ns, |_| false), Next::Nothing);
        bonded.link.path_free_ns(now_ns, 0).unwrap()
    };
    assert_eq!(send_at(0, 0), MS);
    // Idle for half a millisecond, and for longer than is made good.
    assert_eq!(send_at(3 * MS / 2, 1), 5 * MS / 2);
    assert_eq!(send_at(40 * MS, 2), 41 * MS);
    bonded.link.occupy_path(50 * MS, 0, 1000);
    assert_eq!(bonded.link.path_free_ns(50 * MS, 0), Some(51 * MS));
    bonded.link.occupy_path(51 * MS + MS / 2, 0, 1000);
    assert_eq!(bonded.link.path_free_ns(52 * MS, 0), Some(52 * MS + MS / 2));
}

/// A link over a path of 100 kbit/s and one of 1 kbit/s.
fn slow() -> Bonded {
    let links = classes([Uses::Stripe, Uses::Stripe, Uses::Stripe], false);
    let mut bonded = Bonded::new(&links, [8_000_000; 2], [20, 60]);
    bonded.link.set_path_capacity(0, 0, 100_000);
    bonded.link.set_path_capacity(0, 1, 1000);
    bonded
}

#[test]
fn a_probe_does_not_shorten_what_a_path_carries() {
    let mut bonded = slow();
    bonded.arrive(1, 0, 1000);
    assert!(matches!(bonded.link.next(0, |_| false), Next::Send(..)));
    assert_eq!(bonded.link.path_free_ns(MS, 0), Some(80 * MS));
    bonded.link.occupy_path(MS, 0, 140);
    assert_eq!(bonded.link.path_free_ns(MS, 0), Some(91_200_000));
}

/// Each probe takes 1.12 s of the path, and ten are sent in a second.
#[test]
fn probes_of_a_slow_path_do_not_add_up() {
    let mut bonded = slow();
    for number in 0..100 {
        let now_ns = number * 100 * MS;
        bonded.link.occupy_path(now_ns, 1, 140);
        let free_ns = bonded.link.path_free_ns(now_ns, 1).unwrap();
        assert!(free_ns > now_ns);
        assert!(free_ns <= now_ns + S + 1120 * MS, "{free_ns}");
    }
}

/// The queue of the link below a path, bits, at what this was told to carry.
#[derive(Default)]
struct Below {
    waiting_bits: f64,
    bps: u64,
    since_ns: u64,
}

impl Below {
    fn pass(&mut self, now_ns: u64) {
        let passed = (now_ns - self.since_ns) as f64 * 1e-9 * self.bps as f64;
        self.waiting_bits = (self.waiting_bits - passed).max(0.0);
        self.since_ns = now_ns;
    }

    fn add(&mut self, now_ns: u64, bytes: u32) {
        self.pass(now_ns);
        self.waiting_bits += 8.0 * f64::from(bytes);
    }
}

/// In each second a path that always has packets is told to carry nothing for 150 ms, in which three probes are sent. They wait in
/// the link's queue, which no later packet may find longer: at all of the capacity it would never drain.
#[test]
fn probes_sent_in_outages_leave_nothing_in_the_queue_below() {
    // Packets leave up to so much late, which the pace makes good.
    const LATE_NS: usize = 10_000;
    let links = classes([Uses::Stripe, Uses::Stripe, Uses::Stripe], false);
    let mut bonded = Bonded::new(&links, [8_000_000; 2], [20, 60]);
    let full = 8_000_000;
    let mut below = Below {
        bps: full,
        ..Below::default()
    };
    let mut number = 0;
    for ms in 0..3000 {
        bonded.now_ns = ms * MS;
        let bps = match ms % 1000 {
            500 => Some(0),
            650 => Some(full),
            _ => None,
        };
        if let Some(bps) = bps {
            below.pass(bonded.now_ns);
            below.bps = bps;
            bonded.link.set_path_capacity(bonded.now_ns, 0, bps);
        }
        if [510, 560, 610].contains(&(ms % 1000)) {
            bonded.link.occupy_path(bonded.now_ns, 0, 140);
            below.add(bonded.now_ns, 140);
        }
        for _ in 0..3 {
            bonded.arrive(1, number, 1000);
            number += 1;
        }
        for now_ns in (ms * MS..(ms + 1) * MS).step_by(LATE_NS) {
            bonded.now_ns = now_ns;
            while let Next::Send(..) = bonded.link.next(now_ns, |_| false) {
                if bonded.link.over().unwrap().path == 0 {
                    below.pass(now_ns);
                    let waiting_ns = below.waiting_bits * 1e9 / full as f64;
                    assert!(
                        waiting_ns <= 1.01 * LATE_NS as f64,
                        "{ms} ms: {waiting_ns} ns"
                    );
                    below.add(now_ns, 1000);
                }
            }
        }
    }
}

/// However many probes an outage had, and however slow the path is then, they occupy it for a second at most, and after a long
/// outage only those of its first second count.
#[test]
fn probes_sent_in_an_outage_do_not_add_up() {
    let after = |bps: u64, probes: u64| {
        let mut bonded = slow();
        bonded.link.set_path_capacity(0, 1, 0);
        for number in 0..probes {
            bonded.link.occupy_path(number * 100 * MS, 1, 140);
        }
        let now_ns = probes * 100 * MS;
        bonded.link.set_path_capacity(now_ns, 1, bps);
        bonded.link.path_free_ns(now_ns, 1).unwrap() - now_ns
    };
    // Sums of bits are floats.
    assert!(after(1000, 3).abs_diff(S) <= 1);
    assert_eq!(after(1_000_000, 3), 3_360_000);
    for probes in [10, 100, 36_000] {
        assert_eq!(after(1_000_000, probes), 11_200_000);
    }
}

/// A report of no capacity ends with the next one, when it expires, or when other settings take its place.
#[test]
fn a_reported_outage_ends_with_its_report() {
    let links = classes([Uses::Stripe, Uses::Stripe, Uses::Stripe], false);
    let old = setups([8_000_000; 2]);
    let mut new = old.clone();
    new[0].capacity.stale_ns = Some(S);
    new[0].capacity.floor_bps = 64_000;
    let out = || {
        let mut bonded = Bonded::new(&links, [8_000_000; 2], [20, 60]);
        bonded.link.change_paths(0, (&old, &new), &links.classes);
        bonded.link.set_path_capacity(0, 0, 0);
        assert!(
            bonded.link.path_outages(S - 1, 0).lasts && !bonded.link.path_outages(S - 1, 1).lasts
        );
        bonded.link
    };
    assert!(!out().path_outages(S, 0).lasts, "it expires");
    let mut told = out();
    told.set_path_capacity(S - 1, 0, 1000);
    assert!(!told.path_outages(S - 1, 0).lasts);
    let mut changed = out();
    let other = setups([9_000_000, 8_000_000]);
    changed.change_paths(S - 1, (&new, &other), &links.classes);
    assert!(!changed.path_outages(S - 1, 0).lasts);
}

/// A configured outage ends by itself; what is sent in its last second occupies the path then.
#[test]
fn probes_sent_in_a_configured_outage_take_their_time_after_it() {
    let links = classes([Uses::Stripe, Uses::Stripe, Uses::Stripe], false);
    let mut bonded = Bonded::new(&links, [8_000_000; 2], [20, 60]);
    let old = setups([8_000_000; 2]);
    let mut new = old.clone();
    new[0].capacity.offered =
        linkweir_config::signal::Capacity::Rate(linkweir_config::signal::Signal::Steps {
            points: vec![(0, 8e6), (100 * MS, 0.0), (2000 * MS, 8e6)].into(),
            end: linkweir_config::signal::End::Hold,
        });
    bonded.link.change_paths(0, (&old, &new), &links.classes);
    for now_ns in [200 * MS, 900 * MS, 1100 * MS, 1900 * MS] {
        bonded.link.occupy_path(now_ns, 0, 140);
    }
    assert_eq!(
        bonded.link.path_free_ns(1950 * MS, 0),
        Some(2000 * MS + 280_000)
    );
}

/// What a path had not yet carried when it is told to carry nothing goes over the other at once, as it might wait for long. What
/// it had carried does not.
#[test]
fn what_is_under_way_in_an_outage_goes_over_another_path() {
    let links = classes([Uses::Best, Uses::Stripe, Uses::Stripe], true);
    let mut bonded = Bonded::new(&links, [8_000_000; 2], [20, 60]);
    let sent = |bonded: &mut Bonded| {
        let next = bonded.link.next(bonded.now_ns, |_| false);
        let Next::Send(..) = next else {
            return Err(next);
        };
        let over = bonded.link.over().unwrap();
        Ok((over.path, over.number.unwrap().1, over.is_again))
    };
    bonded.arrive(1, 0, 1000);
    assert_eq!(sent(&mut bonded), Ok((0, 0, false)));
    bonded.now_ns = 5 * MS;
    bonded.arrive(1, 1, 1000);
    assert_eq!(sent(&mut bonded), Ok((0, 1, false)));
    bonded.now_ns = 5 * MS + MS / 2;
    bonded.link.set_path_capacity(bonded.now_ns, 0, 0);
    assert_eq!(bonded.link.known_bps(bonded.now_ns), 8_000_000);
    assert_eq!(sent(&mut bonded), Ok((1, 1, true)));
    assert_eq!(sent(&mut bonded), Err(Next::Nothing));
    // It carries packets again as soon as it is told to, the rest of the one that was under way first: half a millisecond.
    bonded.now_ns = 100 * MS;
    bonded.link.set_path_capacity(bonded.now_ns, 0, 8_000_000);
    assert_eq!(bonded.link.known_bps(bonded.now_ns), 16_000_000);
    bonded.now_ns = 101 * MS;
    bonded.arrive(1, 2, 1000);
    assert_eq!(sent(&mut bonded), Ok((0, 2, false)));
}

/// A path may have lost more than what was under way when it was told to carry nothing: its probes show that.
#[test]
fn what_was_lost_before_an_outage_was_told_is_sent_again_when_probes_fail() {
    let links = classes([Uses::Best, Uses::Stripe, Uses::Stripe], true);
    let mut bonded = Bonded::new(&links, [8_000_000; 2], [20, 60]);
    for number in 0..3 {
        bonded.now_ns = u64::from(number) * 10 * MS;
        bonded.arrive(1, number, 1000);
        let next = bonded.link.next(bonded.now_ns, |_| false);
        assert!(matches!(next, Next::Send(..)));
    }
    bonded.now_ns = 30 * MS;
    bonded.link.set_path_capacity(bonded.now_ns, 0, 0);
    assert_eq!(bonded.link.next(bonded.now_ns, |_| false), Next::Nothing);
    // The last probe with an answer was sent at 5 ms.
    bonded.now_ns = 305 * MS;
    bonded.set_up([false, true]);
    let mut again = Vec::new();
    while bonded.now_ns < 330 * MS {
        if let Next::Send(..) = bonded.link.next(bonded.now_ns, |_| false) {
            let over = bonded.link.over().unwrap();
            again.push((over.path, over.number.unwrap().1));
        }
        bonded.now_ns += MS;
    }
    assert_eq!(again, [(1, 1), (1, 2)]);
}
