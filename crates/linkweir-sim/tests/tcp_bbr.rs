// SPDX-License-Identifier: BSD-3-Clause
//! BBR version 1 of the `Linux` profile over a link: what Cardwell et al. (2017) say that it does there.

mod tcp_link;

use linkweir_sim::tcp::{Ack, Algorithm, Config, Phase, Profile, Segment, Sender};
use tcp_link::{run, Observer, Path};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// 12 Mbit/s is one segment per millisecond; 80 ms: 80 segments are in the network when the link is just busy.
const PATH: Path = Path {
    rate_bps: 12_000_000,
    buffer_segments: 5000,
    forward_ns: 40 * MS,
    reverse_ns: 40 * MS,
};

#[derive(Default)]
struct Watch {
    sent_ns: Vec<u64>,
    /// Received in each second.
    received: Vec<u64>,
    /// Most segments that waited in each second.
    waiting: Vec<usize>,
    /// Times at which at most four segments were in the network.
    empty_ns: Vec<u64>,
    loses: bool,
}

fn at(list: &mut Vec<u64>, second: u64) -> &mut u64 {
    let second = second as usize;
    list.resize(list.len().max(second + 1), 0);
    &mut list[second]
}

impl Observer for Watch {
    fn marks(&mut self, waiting: usize) -> bool {
        let second = (*self.sent_ns.last().unwrap_or(&0) / S) as usize;
        self.waiting.resize(self.waiting.len().max(second + 1), 0);
        self.waiting[second] = self.waiting[second].max(waiting);
        false
    }

    fn drops(&mut self, nth: u64, _segment: &Segment) -> bool {
        self.loses && nth % 50 == 49
    }

    fn on_segment(&mut self, now_ns: u64, _segment: &Segment, _sender: &Sender) {
        self.sent_ns.push(now_ns);
    }

    fn on_receipt(&mut self, now_ns: u64, _segment: &Segment, _ack: Option<&Ack>) {
        *at(&mut self.received, now_ns / S) += 1;
    }

    fn on_ack(&mut self, now_ns: u64, _ack: &Ack, sender: &Sender) {
        if now_ns > S && sender.window().flight_segments <= 4 {
            self.empty_ns.push(now_ns);
        }
    }
}

fn watched(random: u64, loses: bool, seconds: u64) -> (Watch, tcp_link::Outcome) {
    let mut watch = Watch {
        loses,
        ..Watch::default()
    };
    let config = Config {
        random,
        ..Config::new(Algorithm::Bbr, Profile::Linux)
    };
    let outcome = run(&config, PATH, seconds * S, &mut watch);
    (watch, outcome)
}

#[test]
fn it_paces_its_segments() {
    let (watch, _) = watched(1, false, 9);
    let steady: Vec<u64> = watch
        .sent_ns
        .windows(2)
        .filter(|pair| pair[0] > 3 * S)
        .map(|pair| pair[1] - pair[0])
        .collect();
    // At most 5/4 of the rate: 0.8 ms apart, of which pacing may catch up a half. No two leave together.
    let least = *steady.iter().min().unwrap();
    assert!(least >= 400_000 * 95 / 100, "{least}");
    let tight = steady.iter().filter(|gap| **gap < 700_000).count();
    assert!(tight * 20 < steady.len(), "{tight} of {}", steady.len());
    // Reno, which is not paced, sends together what an acknowledgement lets go.
    let mut reno = Watch::default();
    let config = Config::new(Algorithm::Reno, Profile::Linux);
    run(&config, PATH, 9 * S, &mut reno);
    assert!(reno.sent_ns.windows(2).any(|pair| pair[0] == pair[1]));
}

#[test]
fn it_fills_the_link_with_little_queue() {
    for random in 1..=5 {
        let (watch, outcome) = watched(random, false, 30);
        assert_eq!((outcome.buffer_drops, outcome.counters.timeouts), (0, 0));
        // 1000 segments a second. A second with PROBE_RTT has 0.2 s and a round trip less.
        for second in 3..29 {
            let received = watch.received[second];
            let probes = watch.empty_ns.iter().any(|ns| {
                let at = (*ns / S) as usize;
                at == second || at + 1 == second
            });
            let least = if probes { 600 } else { 950 };
            assert!(
                (least..=1001).contains(&received),
                "{random}: {received} in second {second}"
            );
        }
        let mean = watch.received[3..29].iter().sum::<u64>() as f64 / 26.0;
        assert!((950.0..=1000.0).contains(&mean), "{mean}");
        // The window is twice the product of rate and RTT, and three super-packets more: one product may queue.
        let most = *watch.waiting[3..].iter().max().unwrap();
        assert!(most <= 80 + 20, "{most}");
    }
}

#[test]
fn it_drains_the_network_every_ten_seconds_to_measure_the_rtt() {
    let (watch, _) = watched(3, false, 45);
    let mut begins_ns: Vec<u64> = Vec::new();
    let mut ends_ns = 0;
    for &ns in &watch.empty_ns {
        if ns > ends_ns + S {
            begins_ns.push(ns);
        }
        ends_ns = ns;
    }
    assert_eq!(begins_ns.len(), 4, "{begins_ns:?}");
    for pair in begins_ns.windows(2) {
        let gap_ns = pair[1] - pair[0];
        assert!((10 * S..11 * S).contains(&gap_ns), "{gap_ns}");
    }
    // 200 ms at least, and a round trip; ticks of 4 ms.
    let first = begins_ns[0];
    let inside = watch.empty_ns.iter().filter(|ns| **ns < first + S);
    let length_ns = inside.max().unwrap() - first;
    assert!((200 * MS..400 * MS).contains(&length_ns), "{length_ns}");
}

#[test]
fn random_losses_cost_it_little() {
    let (watch, outcome) = watched(4, true, 20);
    assert!(outcome.counters.retransmitted > 300);
    let mean = watch.received[3..19].iter().sum::<u64>() as f64 / 16.0;
    assert!(mean > 900.0, "{mean}");
    let mut cubic = Watch {
        loses: true,
        ..Watch::default()
    };
    let config = Config::new(Algorithm::Cubic, Profile::Linux);
    run(&config, PATH, 20 * S, &mut cubic);
    let others = cubic.received[3..19].iter().sum::<u64>() as f64 / 16.0;
    assert!(others < 0.5 * mean, "{others} {mean}");
    assert_ne!(outcome.window.phase, Phase::Loss);
}
