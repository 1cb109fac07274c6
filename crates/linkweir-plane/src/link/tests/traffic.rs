// SPDX-License-Identifier: BSD-3-Clause
//! Traffic in virtual time for tests of links and hubs: sources, what becomes of their packets, and how long that takes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::classify::{Classifier, Label};
use crate::link::{Link, Next};
use linkweir_config::matching::{Rule, Rules};
use linkweir_core::Isolation;

const S: f64 = 1e9;
const RTT_NS: u64 = 20_000_000;
/// A connection without any departure for so long sends again.
const TIMEOUT_NS: u64 = 1_000_000_000;

/// What sends the packets of a link or a hub.
pub(crate) trait Server {
    fn arrive(&mut self, now_ns: u64, peer: usize, label: Label, bytes: u32, packet: &[u8]);
    fn next(&mut self, now_ns: u64) -> Next;
}

impl Server for Link {
    fn arrive(&mut self, now_ns: u64, _: usize, label: Label, bytes: u32, packet: &[u8]) {
        Link::arrive(self, now_ns, label, bytes, packet);
    }

    fn next(&mut self, now_ns: u64) -> Next {
        Link::next(self, now_ns, |_| false)
    }
}

/// When a source sends.
#[derive(Clone, Copy)]
pub(crate) enum Pattern {
    /// At this rate, bit/s, at random times.
    Random(f64),
    /// At this rate, bit/s, so many packets at once.
    Bursts(f64, u32),
    /// A round trip after one of its packets has left, so that as many are on the way as it may have.
    Window(u32),
}

#[derive(Clone, Copy)]
pub(crate) struct Source {
    pub(crate) peer: usize,
    pub(crate) class: usize,
    pub(crate) bytes: u32,
    pub(crate) pattern: Pattern,
}

/// A source while it runs.
struct Running {
    source: Source,
    label: Label,
    /// When each of its packets arrived, ns.
    arrivals_ns: Vec<u64>,
    /// The packets before this number have left or are lost.
    expected: u32,
    /// Number of the last that left.
    last: Option<u32>,
    left_ns: u64,
}

/// What became of the packets of a source.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// How long each packet took from its arrival to the end of its transmission, s, in order of size.
    pub(crate) delays_s: Vec<f64>,
    pub(crate) bytes: u64,
}

impl Served {
    /// Mean, 99th percentile and maximum of the delays, s.
    pub(crate) fn delays(&self) -> [f64; 3] {
        let n = self.delays_s.len();
        let mean = self.delays_s.iter().sum::<f64>() / n as f64;
        [mean, self.delays_s[n * 99 / 100], self.delays_s[n - 1]]
    }
}

/// Labels of sources as the classifier gives them: each source is a UDP flow of its own, and the destination port says which
/// class it belongs to.
fn labels(sources: &[Source], isolating: &[bool]) -> Vec<Label> {
    let rules = (0..isolating.len()).map(|class| Rule {
        class,
        ports: vec![class as u16..=class as u16],
        ..Rule::default()
    });
    let rules = Rules {
        rules: rules.collect(),
        rest: 0,
    };
    let apart = isolating.iter().map(|one| one.then_some(Isolation::Drr));
    let mut classifier = Classifier::new(rules).isolating(apart, [1, 2]);
    let labels = sources.iter().enumerate().map(|(at, source)| {
        let ports = [0x80, at as u8, 0, source.class as u8];
        let packet = crate::bytes::packet::tests::v4(17, 0, 0, 0, &ports);
        classifier.label(0, &crate::bytes::packet::parse(&packet).unwrap())
    });
    labels.collect()
}

/// Serves sources for `seconds` on a link of `link_bps`; the first five seconds do not count. `isolating` says which classes
/// isolate flows.
pub(crate) fn serve(
    server: &mut impl Server,
    sources: &[Source],
    isolating: &[bool],
    link_bps: f64,
    seconds: u64,
) -> Vec<Served> {
    let (end_ns, warm_ns) = (seconds * 1_000_000_000, 5_000_000_000);
    let mut random = Pcg64::seed_from_u64(7);
    let mut running: Vec<Running> = labels(sources, isolating)
        .into_iter()
        .zip(sources)
        .map(|(label, source)| Running {
            source: *source,
            label,
            arrivals_ns: Vec::new(),
            expected: 0,
            last: None,
            left_ns: 0,
        })
        .collect();
    let flows: std::collections::BTreeSet<_> = running
        .iter()
        .map(|one| (one.source.peer, one.source.class, one.label.flow % 1024))
        .collect();
    let wanted = running.iter().filter(|one| isolating[one.source.class]);
    assert!(
        flows.len() >= wanted.count(),
        "with this key no two sources share a queue"
    );
    let mut served: Vec<Served> = sources.iter().map(|_| Served::default()).collect();
    let mut events = BinaryHeap::new();
    for at in 0..running.len() {
        events.push(Reverse((at as u64, at, true)));
    }
    let (mut now_ns, mut again) = (0, 0);
    while now_ns < end_ns {
        let next_ns = events.peek().map_or(end_ns, |Reverse((ns, ..))| *ns);
        if next_ns <= now_ns {
            let Some(Reverse((_, at, timer))) = events.pop() else {
                break;
            };
            let (packets, then_ns) = running[at].sends(now_ns, timer, &mut random);
            for _ in 0..packets {
                let Running {
                    source,
                    label,
                    arrivals_ns,
                    ..
                } = &mut running[at];
                let mut packet = vec![at as u8];
                packet.extend((arrivals_ns.len() as u32).to_le_bytes());
                arrivals_ns.push(now_ns);
                server.arrive(now_ns, source.peer, *label, source.bytes, &packet);
            }
            events.extend(then_ns.map(|ns| Reverse((ns, at, true))));
            continue;
        }
        match server.next(now_ns) {
            Next::Send(packet, _) => {
                let at = usize::from(packet[0]);
                let number = u32::from_le_bytes(packet[1..5].try_into().unwrap());
                let one = &mut running[at];
                assert!(one.last < Some(number), "a flow keeps its order");
                one.last = Some(number);
                one.left_ns = now_ns;
                let bytes = one.source.bytes;
                let arrival_ns = one.arrivals_ns[number as usize];
                if arrival_ns >= warm_ns {
                    let waited_s = (now_ns - arrival_ns) as f64 / S;
                    let delay_s = waited_s + 8.0 * f64::from(bytes) / link_bps;
                    served[at].delays_s.push(delay_s);
                }
                if now_ns >= warm_ns {
                    served[at].bytes += u64::from(bytes);
                }
                // Those before it that have not left are lost: a connection sends others for them, too.
                if let Pattern::Window(_) = one.source.pattern {
                    for _ in one.expected..=number {
                        events.push(Reverse((now_ns + RTT_NS, at, false)));
                    }
                }
                one.expected = one.expected.max(number + 1);
            }
            Next::At(ns) => {
                // At once after the most drops of one call, but not without end.
                again = if ns > now_ns { 0 } else { again + 1 };
                assert!(ns >= now_ns && again < 20, "time goes on");
                now_ns = ns.min(next_ns);
            }
            Next::Nothing => now_ns = next_ns,
        }
    }
    for one in &mut served {
        one.delays_s.sort_by(f64::total_cmp);
    }
    served
}

impl Running {
    /// How many packets it sends now, and when its timer expires next, ns. An event without the timer is one packet of a
    /// connection that has left.
    fn sends(&mut self, now_ns: u64, timer: bool, random: &mut Pcg64) -> (u32, Option<u64>) {
        let gap_ns = |bps: f64, packets: u32| {
            8.0 * f64::from(self.source.bytes) * f64::from(packets) / bps * S
        };
        match self.source.pattern {
            Pattern::Random(bps) => {
                let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                let wait_ns = -(1.0 - uniform).ln() * gap_ns(bps, 1);
                (1, Some(now_ns + wait_ns as u64 + 1))
            }
            Pattern::Bursts(bps, packets) => (packets, Some(now_ns + gap_ns(bps, packets) as u64)),
            Pattern::Window(most) => {
                let mut on_the_way = self.arrivals_ns.len() as u32 - self.expected;
                if timer && now_ns >= self.left_ns + TIMEOUT_NS {
                    self.expected += on_the_way;
                    on_the_way = 0;
                }
                let packets = match (timer, on_the_way) {
                    (true, 0) => most,
                    (true, _) => 0,
                    (false, _) => u32::from(on_the_way < most),
                };
                (packets, timer.then_some(now_ns + TIMEOUT_NS))
            }
        }
    }
}
