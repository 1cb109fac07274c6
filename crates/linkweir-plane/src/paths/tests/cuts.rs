// SPDX-License-Identifier: BSD-3-Clause
//! The cuts of `bench/bond.py` in virtual time: links of 40 and 30 Mbit/s get five times as much as they carry, and one of them is
//! lost, with its carrier or in silence, which probes find. Here no processor is late, so what is lost is lost by the rules.

use super::*;
use crate::underlays::{Probing, Underlays};

const CLASSES: &str = r#"[link]
rate = "69300kbit"
[scheduler]
policy = "pss"
[[class]]
name = "heartbeat"
level = 0
[[class]]
name = "voice"
level = 1
[[class]]
name = "af"
level = 2
low_level = 4
rate = "20Mbit"
[[class]]
name = "rest"
level = 3
limit = "690p"
[[peer]]
name = "other"
"#;
/// What the gateway takes of the links, bit/s, and their delays, ms.
const RATES_BPS: [u64; 2] = [39_600_000, 29_700_000];
const DELAYS_MS: [u64; 2] = [10, 30];
/// Packets of AF in a second, and their bytes on the link: 20 Mbit/s.
const AF_PPS: u64 = 2272;
const AF_BYTES: usize = 1100;
/// Packets of the rest in a millisecond, 350 Mbit/s.
const REST_PKTS: u32 = 35;
/// When a link is cut, when it is back, and the end, ms.
const CUT_MS: u64 = 4000;
const BACK_MS: u64 = 10_000;
const END_MS: u64 = 15_000;

/// How a link is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Silent,
    Carrier,
    /// It is not.
    Never,
}

struct Cut {
    bonded: Bonded,
    choice: Underlays,
    /// Answers under way: when they come, over which path, and when the probe was sent, ns.
    answers: Vec<(u64, usize, u64)>,
    /// How many packets of each class were sent.
    sent: [u32; 4],
}

impl Cut {
    fn new() -> Cut {
        let mut links = Links::parse(CLASSES);
        let uses = [Uses::All, Uses::Best, Uses::Stripe, Uses::Spill];
        for (class, uses) in links.classes.iter_mut().zip(uses) {
            class.reorder_ns = match uses {
                Uses::All => Some(0),
                Uses::Stripe => Some(400 * MS),
                _ => None,
            };
            class.resend = uses == Uses::Stripe;
            class.uses = uses;
        }
        let probing = Probing {
            every_ns: 50 * MS,
            failover_ns: 200 * MS,
            failback_ns: 10_000 * MS,
            at_once: true,
        };
        let mut bonded = Bonded::new(&links, RATES_BPS, DELAYS_MS);
        bonded.restorer = Restorer::new(vec![0, 0, 400 * MS, 0], 16_000_000);
        bonded.restorer.begin(0, EPOCH, (1, 1), |_| {});
        Cut {
            bonded,
            choice: Underlays::new(0, probing, 2),
            answers: Vec::new(),
            sent: [0; 4],
        }
    }

    /// Probes and their answers, and what the link is told of the paths.
    fn probe(&mut self) {
        let Cut {
            bonded,
            choice,
            answers,
            ..
        } = self;
        let now_ns = bonded.now_ns;
        for way in [0, 1] {
            choice.carries(way);
        }
        answers.retain(|(at_ns, way, sent_ns)| {
            if *at_ns <= now_ns && bonded.carries[*way] {
                choice.answered(now_ns, *way, *sent_ns);
            }
            *at_ns > now_ns
        });
        while let Some(way) = choice.probe(now_ns) {
            if bonded.carries[way] {
                answers.push((now_ns + 2 * DELAYS_MS[way] * MS, way, now_ns));
            }
        }
        choice.decide(now_ns);
        let state = |at: usize| State {
            is_up: choice.is_good(at),
            delay_ns: DELAYS_MS[at] * MS,
            arrived_ns: choice.arrived_ns(at),
        };
        let states = [state(0), state(1)];
        bonded.link.set_paths(now_ns, true, &states);
    }

    /// What is sent in a millisecond.
    fn send(&mut self, ms: u64) {
        let mut arrive = |class: u8, count: u32, bytes: usize| {
            for _ in 0..count {
                let number = &mut self.sent[usize::from(class)];
                self.bonded.arrive(class, *number, bytes);
                *number += 1;
            }
        };
        if ms % 20 == 0 {
            arrive(0, 1, 260);
            arrive(1, 1, 260);
        }
        let af = (ms + 1) * AF_PPS / 1000 - ms * AF_PPS / 1000;
        arrive(2, af as u32, AF_BYTES);
        arrive(3, REST_PKTS, 1260);
    }

    /// Sends for so long, while a path is cut. The process stalls at some times for some time, ms: what was sent meanwhile comes to
    /// it afterwards.
    fn run(&mut self, path: usize, how: How, stalls: &[(u64, u64)]) {
        for ms in 0..END_MS {
            let stalled =
                |(from_ms, for_ms): &(u64, u64)| (*from_ms..from_ms + for_ms).contains(&ms);
            if stalls.iter().any(stalled) {
                continue;
            }
            self.bonded.run_to(ms * MS);
            // What waited in the device.
            let late = stalls
                .iter()
                .find(|(from_ms, for_ms)| from_ms + for_ms == ms);
            for ms in late.map_or(ms, |(from_ms, _)| *from_ms)..ms {
                self.send(ms);
            }
            let is_there = |ms: u64| how == How::Never || !(CUT_MS..BACK_MS).contains(&ms);
            if is_there(ms) != self.bonded.carries[path] {
                self.bonded.carries[path] = is_there(ms);
                self.bonded.under_way.retain(|_, (over, ..)| *over != path);
                if how == How::Carrier {
                    self.choice.set_broken(ms * MS, path, !is_there(ms));
                }
            }
            self.probe();
            self.send(ms);
        }
        self.bonded.run_to((END_MS + 1000) * MS);
    }

    /// Whether at least 99 % of AF's rate comes in every second that begins 500 ms after the cut or later.
    fn is_in_time(&self) -> bool {
        let af = self.bonded.came.iter().filter(|(class, ..)| *class == 2);
        let times: Vec<u64> = af.map(|(.., at_ns)| *at_ns).collect();
        let mut starts = (CUT_MS + 500..END_MS - 1000).step_by(100);
        starts.all(|ms| {
            let from = times.partition_point(|ns| *ns < ms * MS);
            let until = times.partition_point(|ns| *ns < (ms + 1000) * MS);
            100 * (until - from) as u64 >= 99 * AF_PPS
        })
    }

    /// The longest time without voice, ms, from the beginning to the end, and how many packets of it came.
    fn voice(&self) -> (u64, u32) {
        let voice = self.bonded.came.iter().filter(|(class, ..)| *class == 1);
        let mut times = vec![0];
        times.extend(voice.map(|(.., at_ns)| *at_ns));
        let came = times.len() as u32 - 1;
        times.push(END_MS * MS);
        let gaps = times.windows(2).map(|two| two[1].saturating_sub(two[0]));
        (gaps.max().unwrap() / MS, came)
    }

    fn dropped(&mut self) -> u64 {
        let counters = self.bonded.link.mux().counters(2);
        counters.dropped_limit_pkts + counters.dropped_policy_pkts
    }
}

#[test]
fn nothing_of_af_is_lost_when_a_link_is_cut() {
    for path in [0, 1] {
        for how in [How::Silent, How::Carrier] {
            let of = format!("path {path}, {how:?}");
            let mut cut = Cut::new();
            cut.run(path, how, &[]);
            // In no order, as the class does not ask for it.
            let mut heartbeat = cut.bonded.numbers(0);
            heartbeat.sort_unstable();
            assert_eq!(heartbeat, (0..cut.sent[0]).collect::<Vec<_>>(), "{of}");
            let most_ms = if how == How::Silent { 300 } else { 100 };
            let (gap_ms, voice) = cut.voice();
            assert!(gap_ms <= most_ms, "{of}: {gap_ms} ms");
            // One packet in 20 ms, on the path that is cut until that is noticed.
            let lost = cut.sent[1] - voice;
            assert!(u64::from(lost) <= most_ms / 20, "{of}: {lost}");
            let af = cut.bonded.numbers(2);
            assert!(
                af.windows(2).all(|two| two[0] < two[1]),
                "{of}: in order, once"
            );
            assert_eq!(cut.dropped(), 0, "{of}");
            // What was under way on the dead path comes over the other.
            assert_eq!(af.len(), cut.sent[2] as usize, "{of}");
            assert!(cut.is_in_time(), "{of}");
        }
    }
}

/// A gateway that does not run for 200 ms, again and again, gives AF afterwards what it did not send: its queue has room for what
/// waited in the device.
#[test]
fn nothing_of_af_is_lost_in_the_queues_of_a_gateway_that_stalls() {
    let stalls: Vec<(u64, u64)> = (2..14).map(|second| (second * 1000, 200)).collect();
    let mut cut = Cut::new();
    cut.run(0, How::Never, &stalls);
    assert_eq!(cut.dropped(), 0);
    assert_eq!(cut.bonded.numbers(2).len(), cut.sent[2] as usize);
}
