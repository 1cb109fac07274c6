// SPDX-License-Identifier: BSD-3-Clause
//! Tests of links that peers share, in virtual time.

use super::*;
use crate::setup::tests::Links;
use linkweir_core::{CorePolicy, Limit, Mux, Nested, Policy, PolicyInfo, View};
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

mod flows;

const MS: u64 = 1_000_000;
/// One class, so that a peer is a queue.
const FIFO: &str = "[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"all\"\nlimit = \"9000p\"\n";

/// A hub with these peers, each with the keys of its table.
fn config(across: &str, scheduler: &str, peers: &[&str]) -> Links {
    let mut text = format!("[link]\nrate = \"8Mbit\"\nacross = {across}\n{scheduler}");
    for peer in peers {
        text.push_str(&format!("[[peer]]\n{peer}\n"));
    }
    Links::parse(&text)
}

struct Shared {
    hub: Hub,
    links: Vec<Boxed>,
    now_ns: u64,
}

struct Boxed(Link);

impl AsMut<Link> for Boxed {
    fn as_mut(&mut self) -> &mut Link {
        &mut self.0
    }
}

impl Shared {
    fn new(config: &Links) -> Shared {
        let mut links: Vec<Boxed> = (0..config.peers.len())
            .map(|at| Boxed(Link::new(0, config.of_peer(at)).unwrap()))
            .collect();
        let shown = links.iter_mut().map(|link| link.0.as_queue(0)).collect();
        let across = config.across.as_ref().unwrap();
        Shared {
            hub: Hub::new(0, across, config.fastest_bps(), shown).unwrap(),
            links,
            now_ns: 0,
        }
    }

    fn arrive(&mut self, at: usize, class: usize, wire_bytes: u32, number: u8) {
        let link = &mut self.links[at].0;
        link.arrive(self.now_ns, class, wire_bytes, &[number]);
        self.hub.update(self.now_ns, at, link);
        self.is_true();
    }

    /// Asserts that the view of the policy agrees with the packets that wait.
    fn is_true(&mut self) {
        for (at, link) in self.links.iter_mut().enumerate() {
            let mut waits = link.0.as_queue(self.now_ns);
            let seen = self.hub.across.users()[at];
            waits.rate_bps = seen.rate_bps;
            if waits.backlog_pkts == 0 {
                (waits.head_bytes, waits.head_arrival_ns) = (seen.head_bytes, seen.head_arrival_ns);
            }
            assert_eq!(seen, waits, "peer {at}");
        }
    }

    fn set_capacity(&mut self, at: usize, bps: u64) {
        let link = &mut self.links[at].0;
        link.set_capacity(self.now_ns, bps);
        self.hub.channel_changed(self.now_ns, at, link);
    }

    fn next(&mut self) -> (Next, usize) {
        let next = self.hub.next(self.now_ns, &mut self.links, |_| false);
        if matches!(next.0, Next::Send(..)) {
            self.is_true();
        }
        next
    }

    /// Serves until a time; returns peer and number of each packet.
    fn serve(&mut self, until_ns: u64) -> Vec<(usize, u8)> {
        let mut sent = Vec::new();
        while self.now_ns < until_ns {
            match self.next() {
                (Next::Send(packet, _), at) => sent.push((at, packet[0])),
                (Next::At(ns), _) => {
                    assert!(ns > self.now_ns, "time goes on");
                    self.now_ns = ns.min(until_ns);
                }
                (Next::Nothing, _) => break,
            }
        }
        self.now_ns = self.now_ns.max(until_ns);
        sent
    }

    /// Keeps all classes of all peers backlogged; returns the packets of each peer and class.
    fn saturate(&mut self, seconds: u64, wire_bytes: &[u32], classes: &[usize]) -> Vec<[u64; 4]> {
        let mut sent = vec![[0; 4]; self.links.len()];
        while self.now_ns < seconds * 1000 * MS {
            for (at, bytes) in wire_bytes.iter().enumerate() {
                for &class in classes {
                    while self.links[at].0.mux().queues()[class].backlog_pkts < 4 {
                        self.arrive(at, class, *bytes, class as u8);
                    }
                }
            }
            match self.next() {
                (Next::Send(packet, _), at) => sent[at][usize::from(packet[0])] += 1,
                (Next::At(ns), _) => self.now_ns = ns,
                (Next::Nothing, _) => panic!("something waits"),
            }
        }
        sent
    }
}

/// Mbit/s of each peer that always has something to send.
fn mbit(across: &str, peers: &[&str], wire_bytes: &[u32]) -> Vec<f64> {
    const SECONDS: u64 = 60;
    let config = config(across, FIFO, peers);
    let sent = Shared::new(&config).saturate(SECONDS, wire_bytes, &[0]);
    sent.iter()
        .zip(wire_bytes)
        .map(|(sent, bytes)| sent[0] as f64 * f64::from(*bytes) * 8e-6 / SECONDS as f64)
        .collect()
}

fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        assert!(
            (one / other - 1.0).abs() < 0.002,
            "{found:?} for {expected:?}"
        );
    }
}

/// As if the new parameters had come without a fade.
#[test]
fn a_reload_in_a_fade_is_not_refused() {
    let running = config(
        "{ policy = \"pss\" }",
        FIFO,
        &[
            "across = { level = 0 }",
            "across = { level = 1, low_level = 2, rate = \"5Mbit\" }",
        ],
    );
    let mut shared = Shared::new(&running);
    for link in &mut shared.links {
        link.0.set_capacity(0, 1_000_000);
    }
    shared.next();
    assert_eq!(shared.hub.across.link_bps(), 1_000_000);
    // The channels are known to have carried 8 Mbit/s.
    for (bps, refused) in [(7_000_000, false), (9_000_000, true)] {
        let mut across = running.across.clone().unwrap();
        let rate = across.info.qparam("rate").unwrap();
        across.qparams[across.info.qparams.len() + rate] = bps;
        let accepts = shared.hub.accepts(&across);
        assert_eq!(accepts.is_err(), refused, "{bps}: {accepts:?}");
        assert_eq!(shared.hub.change(MS, &across), accepts);
    }
}

#[test]
fn saturated_peers_have_what_theory_gives_them() {
    let fast_and_slow = ["rate = \"10Mbit\"", "rate = \"5Mbit\""];
    // Proportional fairness gives both the same time; equal bytes take 1 / (1/10 + 1/5) of each.
    assert_near(
        &mbit("{ policy = \"pf\" }", &fast_and_slow, &[1500, 1500]),
        &[5.0, 2.5],
    );
    for round_robin in ["{ policy = \"rr\" }", "{ policy = \"drr\" }"] {
        assert_near(
            &mbit(round_robin, &fast_and_slow, &[1500, 1500]),
            &[10.0 / 3.0, 10.0 / 3.0],
        );
    }
    // drr counts bytes, rr packets: 1500 and 500 bytes take 1.2 and 0.8 ms.
    let drr = mbit("{ policy = \"drr\" }", &fast_and_slow, &[1500, 500]);
    assert_near(&drr, &[10.0 / 3.0, 10.0 / 3.0]);
    let rr = mbit("{ policy = \"rr\" }", &fast_and_slow, &[1500, 500]);
    assert_near(&rr, &[6.0, 2.0]);
    // Without rates of their own peers share one capacity; 1:2:1 by their quanta.
    let quanta = ["", "across = { quantum = \"3000B\" }", ""];
    let across = "{ policy = \"drr\", quantum = \"1500B\" }";
    assert_near(&mbit(across, &quanta, &[1500, 1000, 300]), &[2.0, 4.0, 2.0]);
    // The peers share the time of an idle link.
    let with_weight = [
        "rate = \"10Mbit\"\nacross = { weight = 3 }",
        "rate = \"5Mbit\"",
    ];
    let pf = mbit(
        "{ policy = \"pf\", tc = \"2s\" }",
        &with_weight,
        &[1500, 1500],
    );
    assert_near(&pf, &[7.5, 1.25]);
}

#[test]
fn a_reservation_within_a_peer_is_kept_from_its_part_of_the_link() {
    let pss = "[scheduler]\npolicy = \"pss\"\n[[class]]\nname = \"af\"\nmatch = [{ dscp = \"AF11\" }]\nlevel = 0\n\
               low_level = 2\nrate = \"1Mbit\"\n[[class]]\nname = \"rest\"\nlevel = 1\n";
    let config = config("{ policy = \"drr\", quantum = \"1500B\" }", pss, &["", ""]);
    let sent = Shared::new(&config).saturate(120, &[1500, 1500], &[0, 1]);
    for sent in sent {
        let mbit = sent.map(|pkts| pkts as f64 * 12e-3 / 120.0);
        assert_near(&mbit[..1], &[1.0]);
        assert_near(&mbit[1..2], &[3.0]);
    }
}

/// A peer with one queue is a queue: the hub does what the policy does with queues of its own.
#[test]
fn peers_with_one_class_are_served_as_queues_of_the_policy() {
    let nesting = linkweir_core::policies().iter().filter(|info| info.nests());
    let mut names = Vec::new();
    for info in nesting {
        names.push(info.name);
        let queues = |view: &View<'_>, across: &Scheduler| -> Box<dyn Policy> {
            let made = CorePolicy::new(info, view, &across.params, &across.qparams);
            Box::new(made.unwrap())
        };
        compare(info, (FIFO, 1), queues);
    }
    for (name, nests) in [
        ("pf", true),
        ("codes", true),
        ("mlwdf", true),
        ("codel", false),
        ("pds", false),
        ("fq_codel", false),
    ] {
        assert_eq!(names.contains(&name), nests, "{name}");
    }
}

/// A peer with two queues is a user of the simulator, whose queues are all in one place: the hub does what
/// [`linkweir_core::Nested`] does there.
#[test]
fn peers_with_two_classes_are_served_as_users_are_in_the_simulator() {
    const STRICT: &str = "[scheduler]\npolicy = \"strict\"\n[[class]]\nname = \"call\"\nmatch = [{ dscp = \"EF\" }]\nlevel = 0\nlimit = \"9000p\"\nmax_age = \"3600s\"\nfull = \"tail\"\n\
                          [[class]]\nname = \"data\"\nlevel = 1\nlimit = \"9000p\"\n";
    let strict = linkweir_core::policy("strict").unwrap();
    let level = strict.qparam("level").unwrap();
    let mut rows = strict.default_qparams(6);
    for (class, row) in rows.chunks_mut(strict.qparams.len()).enumerate() {
        row[level] = class as u64 % 2;
    }
    for info in linkweir_core::policies().iter().filter(|info| info.nests()) {
        let users = |view: &View<'_>, across: &Scheduler| -> Box<dyn Policy> {
            let inside = Settings {
                info: strict,
                params: &strict.default_params(),
                qparams: &rows,
            };
            let made = Nested::new(view, &[0, 0, 1, 1, 2, 2], settings(across), inside);
            Box::new(made.unwrap())
        };
        compare(info, (STRICT, 2), users);
    }
}

/// Within a peer, `pds` prefers a class whose packets become urgent faster: its next packet is another one then, though none
/// has come or gone. `fifo` across peers must follow.
#[test]
fn a_head_that_changes_as_time_passes_counts_across_peers() {
    let pds = "[scheduler]\npolicy = \"pds\"\n[[class]]\nname = \"slow\"\nmatch = [{ dscp = \"AF11\" }]\ndelay = 1\n\
               [[class]]\nname = \"fast\"\ndelay = 4\n";
    let mut shared = Shared::new(&config("{ policy = \"fifo\" }", pds, &["", ""]));
    shared.arrive(1, 1, 1500, 0);
    assert!(
        matches!(shared.next(), (Next::Send(..), 1)),
        "it takes 1.5 ms"
    );
    for (us, at, class, number) in [(100, 0, 0, 1), (500, 1, 1, 2), (1000, 0, 1, 3)] {
        shared.now_ns = us * 1000;
        shared.arrive(at, class, 1500, number);
    }
    // At 1.5 ms the packet of 1 ms has four times 0.5 ms, that of 0.1 ms only 1.4 ms.
    assert_eq!(shared.serve(10 * MS), [(1, 2), (0, 3), (0, 1)]);
}

/// The rate of each peer, bit/s.
const RATES: [u64; 3] = [8_000_000, 4_000_000, 2_000_000];

/// Keys of a peer: levels and reservations differ where a policy has them.
fn own_keys(info: &PolicyInfo, at: usize) -> String {
    let has = |name: &str| info.qparam(name).is_some();
    let mut keys = Vec::new();
    if has("level") {
        keys.push(format!("level = {at}"));
    }
    if info.name == "pss" && at == 1 {
        keys.push("low_level = 3, rate = \"1Mbit\"".to_string());
    }
    if has("timeout") {
        keys.push("timeout = \"30ms\"".to_string());
    }
    format!(
        "rate = \"{}bit\"\nacross = {{ {} }}",
        RATES[at],
        keys.join(", ")
    )
}

/// A channel of the hub and of the plain queues fails, or comes back.
fn change_channel(shared: &mut Shared, mux: &mut Mux<Box<dyn Policy>, u8>, at: usize, bps: u64) {
    shared.set_capacity(at, bps);
    let classes = mux.nclasses() / RATES.len();
    let rates = mux.queues().iter().map(|queue| queue.rate_bps).enumerate();
    let rates: Vec<u64> = rates
        .map(|(class, before)| if class / classes == at { bps } else { before })
        .collect();
    mux.set_rates(shared.now_ns, rates);
    // The hub gives the policy the greatest rate of its peers as the link's.
    let rates = mux.queues().iter().map(|queue| queue.rate_bps);
    let greatest = rates.max().unwrap();
    if greatest > 0 {
        mux.set_link(shared.now_ns, greatest);
    }
    shared.hub.refresh(shared.now_ns, &mut shared.links);
}

fn compare(
    info: &'static PolicyInfo,
    (inside, classes): (&str, usize),
    start: impl FnOnce(&View<'_>, &Scheduler) -> Box<dyn Policy>,
) {
    let peers = [0, 1, 2].map(|at| own_keys(info, at));
    let peers: Vec<&str> = peers.iter().map(String::as_str).collect();
    let config = config(&format!("{{ policy = \"{}\" }}", info.name), inside, &peers);
    let mut shared = Shared::new(&config);
    let across = config.across.as_ref().unwrap();
    let limit = Limit {
        pkts: Some(9000),
        ..Limit::NONE
    };
    let limits = vec![limit; 3 * classes];
    let mux = Mux::new(0, RATES[0], &limits, |view| {
        Ok::<_, ()>(start(view, across))
    });
    let mut mux: Mux<Box<dyn Policy>, u8> = mux.unwrap();
    mux.set_rates(0, (0..3 * classes).map(|class| RATES[class / classes]));
    let mut random = Pcg64::seed_from_u64(7);
    let (mut sent, mut dropped) = (0, 0);
    let mut free_ns = 0;
    for step in 0..4000_u64 {
        let mut draw = |below: u64| random.next_u64() % below;
        for _ in 0..draw(4) {
            let at = draw(3) as usize;
            let bytes = 40 + draw(30) as u32 * 50;
            let class = if classes > 1 {
                draw(classes as u64) as usize
            } else {
                0
            };
            let number = (step * classes as u64 + class as u64) as u8;
            shared.arrive(at, class, bytes, number);
            mux.enqueue(
                shared.now_ns,
                at * classes + class,
                bytes,
                number,
                |_, _, _| panic!("no limit"),
            );
        }
        // A channel may fail, and come back.
        if draw(50) == 0 {
            let at = draw(3) as usize;
            let bps = if draw(4) == 0 { 0 } else { RATES[at] };
            change_channel(&mut shared, &mut mux, at, bps);
        }
        if free_ns <= shared.now_ns {
            let (next, at) = loop {
                let next = shared.next();
                // Many drops take several calls.
                if next.0 != Next::At(shared.now_ns) {
                    break next;
                }
            };
            let expected = mux.dequeue(shared.now_ns, |_| false, |_, _, _| dropped += 1);
            match (next, expected) {
                (Next::Send(packet, _), Some(departure)) => {
                    assert_eq!(
                        (at, packet[0]),
                        (departure.class / classes, departure.item),
                        "{} at step {step}",
                        info.name
                    );
                    let time_ns = 8_000_000_000 * u64::from(departure.bytes);
                    free_ns = shared.now_ns + time_ns.div_ceil(RATES[at]);
                    sent += 1;
                }
                (Next::Send(..), None) | (_, Some(_)) => panic!("{} at step {step}", info.name),
                _ => {}
            }
        }
        shared.now_ns += draw(2 * MS);
    }
    let waiting: u32 = mux.queues().iter().map(|queue| queue.backlog_pkts).sum();
    let hub_waiting: u32 = shared.links.iter().map(|link| link.0.waiting_pkts()).sum();
    assert_eq!(hub_waiting, waiting, "{}", info.name);
    assert!(sent > 1000, "{}: {sent} sent", info.name);
    let drops: u64 = (0..3)
        .flat_map(|at| (0..classes).map(move |class| (at, class)))
        .map(|(at, class)| shared.links[at].0.mux().counters(class).dropped_policy_pkts)
        .sum();
    assert_eq!(drops, dropped, "{}", info.name);
    let has_timeout = info.qparam("timeout").is_some();
    assert!(dropped > 0 || !has_timeout, "{}: none dropped", info.name);
}

/// Dropped by the policy across peers, or by that of a peer.
#[test]
fn one_call_drops_no_more_than_it_may_after_an_outage() {
    let codes = "[scheduler]\npolicy = \"codes\"\n[[class]]\nname = \"all\"\nlimit = \"9000p\"\ntimeout = \"100ms\"\n";
    for (across, scheduler) in [
        ("{ policy = \"codes\", timeout = \"100ms\" }", FIFO),
        ("{ policy = \"rr\" }", codes),
    ] {
        let config = config(across, scheduler, &["", ""]);
        let mut shared = Shared::new(&config);
        shared.set_capacity(0, 0);
        for _ in 0..5000 {
            shared.arrive(0, 0, 1000, 0);
        }
        shared.now_ns = 2000 * MS;
        shared.arrive(0, 0, 1000, 1);
        shared.set_capacity(0, 8_000_000);
        let mut waiting = shared.links[0].0.waiting_pkts();
        assert_eq!(waiting, 5001);
        loop {
            let (next, _) = shared.next();
            let dropped = waiting - shared.links[0].0.waiting_pkts();
            waiting -= dropped;
            // One may be the packet that leaves.
            assert!(dropped <= MOST_DROPS, "{dropped} in one call");
            match next {
                Next::At(ns) => assert_eq!((ns, dropped), (shared.now_ns, MOST_DROPS)),
                next => {
                    assert_eq!(next, Next::Send((&[1][..]).into(), false));
                    break;
                }
            }
        }
        assert_eq!(waiting, 0);
    }
}

#[test]
fn packets_too_old_when_their_peer_is_picked_are_dropped() {
    let strict = "[scheduler]\npolicy = \"strict\"\n[[class]]\nname = \"ef\"\nmatch = [{ dscp = \"EF\" }]\nlevel = 0\n[[class]]\nname = \"rest\"\nlevel = 1\n";
    let across = "{ policy = \"codes\", timeout = \"10ms\" }";
    let config = config(across, strict, &["", "across = { timeout = \"0ms\" }"]);
    let mut shared = Shared::new(&config);
    // 1000 bytes take 1 ms. Numbers from 100 on are of the second peer, who has no timeout.
    shared.set_capacity(0, 0);
    shared.set_capacity(1, 0);
    for number in 0..3 {
        shared.arrive(0, 1, 1000, number);
        shared.arrive(1, 1, 1000, 100 + number);
    }
    assert_eq!(shared.serve(11 * MS), []);
    shared.arrive(0, 0, 1000, 50);
    shared.set_capacity(0, 8_000_000);
    // What would go next is not too old; what is goes when its turn comes.
    assert_eq!(shared.serve(12 * MS), [(0, 50)]);
    assert_eq!(shared.serve(13 * MS), []);
    assert_eq!(shared.links[0].0.mux().counters(1).dropped_policy_pkts, 3);
    assert_eq!(shared.links[0].0.waiting_pkts(), 0);
    shared.set_capacity(1, 8_000_000);
    assert_eq!(shared.serve(20 * MS), [(1, 100), (1, 101), (1, 102)]);
}

#[test]
fn an_outage_or_no_session_blocks_its_peer_alone() {
    let config = config("{ policy = \"rr\" }", FIFO, &["", "", ""]);
    let mut shared = Shared::new(&config);
    for number in 0..4 {
        for at in 0..3 {
            shared.arrive(at, 0, 1000, number);
        }
    }
    shared.set_capacity(0, 0);
    shared.links[1].0.set_open(false);
    assert_eq!(shared.serve(3 * MS), [(2, 0), (2, 1), (2, 2)]);
    shared.links[1].0.set_open(true);
    assert_eq!(shared.serve(5 * MS), [(2, 3), (1, 0)]);
    shared.set_capacity(0, 8_000_000);
    assert_eq!(shared.serve(8 * MS), [(1, 1), (0, 0), (1, 2)]);
}

#[test]
fn a_packet_keeps_its_time_but_is_not_held_by_a_channel_that_has_become_faster() {
    let config = config("{ policy = \"rr\" }", FIFO, &["", ""]);
    let mut shared = Shared::new(&config);
    for number in 0..3 {
        shared.arrive(0, 0, 1000, number);
    }
    assert!(matches!(shared.next(), (Next::Send(..), 0)));
    // At a lower rate, or none: the packet in service keeps its time.
    shared.set_capacity(0, 0);
    shared.now_ns = MS;
    assert!(matches!(shared.next().0, Next::At(ns) if ns > 1 << 60));
    shared.set_capacity(0, 8000);
    assert!(matches!(shared.next(), (Next::Send(..), 0)), "1 s");
    assert_eq!(shared.next().0, Next::At(1001 * MS));
    shared.now_ns = 11 * MS;
    shared.set_capacity(0, 8_000_000);
    assert_eq!(shared.next().0, Next::At(12 * MS));
    assert_eq!(shared.hub.airtime_ns(0), 12 * MS);
    shared.now_ns = 12 * MS;
    assert!(matches!(shared.next(), (Next::Send(..), 0)));
}

#[test]
fn a_packet_begun_in_a_fade_ends_by_the_trace() {
    use linkweir_config::signal::{Capacity, End, Signal};
    let mut config = config("{ policy = \"rr\" }", FIFO, &["", ""]);
    // 80 bits in 10 ms, and 7920 more in 0.99 ms.
    config.peers[0].offered = Capacity::Rate(Signal::Steps {
        points: vec![(0, 8000.0), (10 * MS, 8e6), (40 * MS, 0.0)].into(),
        end: End::Hold,
    });
    let mut shared = Shared::new(&config);
    shared.arrive(0, 0, 1000, 0);
    shared.arrive(1, 0, 1000, 0);
    assert!(matches!(shared.next(), (Next::Send(..), 0)));
    assert_eq!(shared.next().0, Next::At(10_990_000));
    assert_eq!(shared.hub.airtime_ns(0), 10_990_000);
    // What begins before an outage keeps the time it began with and delays no other for longer.
    shared.now_ns = 10_990_000;
    assert!(matches!(shared.next(), (Next::Send(..), 1)));
    shared.now_ns = 39_500_000;
    shared.arrive(0, 0, 1000, 1);
    assert!(matches!(shared.next(), (Next::Send(..), 0)));
    assert_eq!(shared.next().0, Next::At(40_500_000));
}

#[test]
fn a_message_that_was_in_no_queue_occupies_the_shared_link() {
    let config = config("{ policy = \"rr\" }", FIFO, &["", ""]);
    let mut shared = Shared::new(&config);
    shared.arrive(0, 0, 1000, 1);
    shared.arrive(0, 0, 1000, 2);
    assert!(matches!(shared.next(), (Next::Send(..), 0)));
    let Shared { hub, links, .. } = &mut shared;
    assert_eq!(hub.free_ns(0, &mut links[1].0), Some(MS), "after it");
    hub.occupy(MS, 1, 1000, &mut links[1].0);
    shared.now_ns = MS;
    assert_eq!(shared.next().0, Next::At(2 * MS));
    // The peer that had its turn before has become faster, and that is not its packet.
    shared.set_capacity(0, 80_000_000);
    assert_eq!(shared.next().0, Next::At(2 * MS));
    assert_eq!([0, 1].map(|at| shared.hub.airtime_ns(at)), [MS, MS]);
    shared.set_capacity(1, 80_000_000);
    assert_eq!(shared.next().0, Next::At(MS + MS / 10));
    assert_eq!(shared.hub.airtime_ns(1), MS / 10);
    // After the rest has left and the link was free for long, it begins when it comes.
    shared.now_ns = 2 * MS;
    assert!(matches!(shared.next(), (Next::Send(..), 0)));
    let Shared { hub, links, .. } = &mut shared;
    hub.occupy(50 * MS, 1, 10_000, &mut links[1].0);
    assert_eq!(hub.free_ns(50 * MS, &mut links[1].0), Some(51 * MS));
    assert_eq!(shared.hub.airtime_ns(1), MS + MS / 10);
    // No message is sent to a peer without a session.
    let Shared { hub, links, .. } = &mut shared;
    links[1].0.set_open(false);
    assert_eq!(hub.free_ns(MS, &mut links[1].0), None);
}

#[test]
fn a_measured_rate_below_expires() {
    let peer = "rate = \"8Mbit\"\nstale = \"100ms\"\nfloor = \"1Mbit\"";
    let mut config = config("{ policy = \"rr\" }", FIFO, &[peer, peer]);
    config.measured = true;
    let mut shared = Shared::new(&config);
    let capacity = |shared: &mut Shared, now_ns| {
        shared.hub.refresh(now_ns, &mut shared.links);
        shared.hub.across.link_bps()
    };
    assert_eq!(capacity(&mut shared, 0), 8_000_000);
    for link in &mut shared.links {
        link.0.set_below(0, 2_000_000);
    }
    assert_eq!(capacity(&mut shared, 1), 2_000_000);
    assert_eq!(capacity(&mut shared, 99 * MS), 2_000_000);
    assert_eq!(capacity(&mut shared, 100 * MS), 1_000_000, "the floor");
}

#[test]
fn a_floor_frees_the_link() {
    let peers = ["stale = \"100ms\"\nfloor = \"8Mbit\"\nrate = \"8Mbit\"", ""];
    let config = config("{ policy = \"rr\" }", FIFO, &peers);
    let mut shared = Shared::new(&config);
    shared.set_capacity(0, 8000);
    shared.arrive(0, 0, 1000, 1);
    shared.arrive(0, 0, 1000, 2);
    shared.arrive(1, 0, 1000, 3);
    // 1 s at 8 kbit/s, a report that is not repeated for 100 ms.
    assert_eq!(shared.serve(102 * MS), [(0, 1), (1, 3)]);
    assert_eq!(shared.serve(103 * MS), [(0, 2)]);
}

#[test]
fn waking_late_does_not_cost_rate() {
    let config = config(
        "{ policy = \"rr\" }",
        FIFO,
        &["rate = \"3Mbit\"", "rate = \"3Mbit\""],
    );
    let mut shared = Shared::new(&config);
    for number in 0..250 {
        shared.arrive(0, 0, 1000, number);
        shared.arrive(1, 0, 1000, number);
    }
    for packet in 1..=500_u64 {
        assert!(matches!(shared.next(), (Next::Send(..), _)), "{packet}");
        // 8000 / 3e6 s each.
        let end_ns = (packet * 8_000_000).div_ceil(3);
        assert_eq!(shared.hub.occupied.free_ns(), end_ns);
        shared.now_ns = end_ns + packet * 7919 % crate::pace::LATE_NS;
    }
}

#[test]
fn a_stall_is_made_good_little_by_little() {
    let mut shared = Shared::new(&config("{ policy = \"rr\" }", FIFO, &["", ""]));
    for number in 0..150 {
        shared.arrive(0, 0, 1000, number);
        shared.arrive(1, 0, 1000, number);
    }
    assert!(matches!(shared.next(), (Next::Send(..), _)));
    // 1 ms each, and the second 3 ms late: 1 ms is made good at once, the other two by 200 packets.
    shared.now_ns = 4 * MS;
    for packet in 1..=200_u64 {
        assert!(matches!(shared.next(), (Next::Send(..), _)), "{packet}");
        let end_ns = 3 * MS + packet * MS - packet * 10_000;
        assert_eq!(shared.hub.occupied.free_ns(), end_ns);
        shared.now_ns = end_ns.max(4 * MS);
    }
    assert_eq!(shared.now_ns, 201 * MS, "as without the stall");
    let airtime_ns: u64 = (0..2).map(|at| shared.hub.airtime_ns(at)).sum();
    assert_eq!(airtime_ns, 199 * MS, "less the unused time");
}

#[test]
fn a_change_keeps_queues_and_credit() {
    let config = config("{ policy = \"pf\", tc = \"10s\" }", FIFO, &["", ""]);
    let mut shared = Shared::new(&config);
    for number in 0..100 {
        shared.arrive(0, 0, 1000, number);
    }
    shared.serve(50 * MS);
    let mean = |shared: &mut Shared| {
        let mut values = [0];
        shared.hub.observe(50 * MS, 0, &mut values);
        values[0]
    };
    let before = mean(&mut shared);
    assert!(before > 0);
    let mut other = config.across.clone().unwrap();
    other.qparams[1] = 5;
    shared.hub.change(50 * MS, &other).unwrap();
    assert_eq!(mean(&mut shared), before);
    assert_eq!(shared.links[0].0.waiting_pkts(), 50);
    // A newcomer begins with the claim of the best; from there on weight 5 is five packets for one.
    for number in 0..100 {
        shared.arrive(1, 0, 1000, number);
    }
    let sent = shared.serve(60 * MS);
    let peers: Vec<usize> = sent.iter().map(|(at, _)| *at).collect();
    assert_eq!(peers, [0, 1, 1, 1, 1, 1, 0, 1, 1, 1]);

    // Other peers are another state; what waits stays, and so does the time each had.
    let shown = [1, 0].map(|at: usize| shared.links[at].0.as_queue(60 * MS));
    let across = config.across.as_ref().unwrap();
    let mut hub = Hub::new(60 * MS, across, config.fastest_bps(), shown.to_vec()).unwrap();
    std::mem::swap(&mut hub, &mut shared.hub);
    shared.hub.take_over(hub, &[Some(1), Some(0)]);
    shared.links.swap(0, 1);
    assert_eq!(shared.hub.airtime_ns(1), 52 * MS);
    assert_eq!(shared.hub.airtime_ns(0), 8 * MS);
    assert_eq!(shared.serve(62 * MS).len(), 2);
}

#[test]
fn packets_too_old_are_dropped_while_their_peer_or_the_whole_link_is_out() {
    let mut config = config("{ policy = \"rr\" }", FIFO, &["", ""]);
    // A tenth of this is left for the way.
    config.classes[0].limit.max_age_ns = Some(11 * MS);
    let mut shared = Shared::new(&config);
    shared.set_capacity(0, 0);
    for number in 0..3 {
        shared.arrive(0, 0, 1000, number);
    }
    shared.arrive(1, 0, 1000, 100);
    assert_eq!(shared.serve(5 * MS), [(1, 100)]);
    // 8000 bytes keep the link busy for 8 ms, so only a look at the time of age finds these.
    shared.arrive(1, 0, 8000, 101);
    assert_eq!(shared.serve(9 * MS), [(1, 101)]);
    assert_eq!(shared.links[0].0.waiting_pkts(), 3);
    assert_eq!(shared.serve(11 * MS), []);
    assert_eq!(shared.links[0].0.waiting_pkts(), 0);
    assert_eq!(shared.links[0].0.mux().counters(0).dropped_age_pkts, 3);
    shared.is_true();
    shared.arrive(0, 0, 1000, 3);
    shared.set_capacity(0, 8_000_000);
    assert_eq!(shared.serve(20 * MS), [(0, 3)]);
}
