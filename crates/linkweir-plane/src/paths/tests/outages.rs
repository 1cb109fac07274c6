// SPDX-License-Identifier: BSD-3-Clause
//! Outages of a tenth of a second that are told, as of a handover.

use linkweir_config::signal::{Capacity, End, Signal};

use super::*;
use crate::underlays::{Probing, Underlays};

fn from_zero(count: u32) -> Vec<u32> {
    (0..count).collect()
}

/// What a dead path held waits for the only one that is left while that carries nothing, which is told before or after the death.
#[test]
fn what_waits_to_be_sent_again_survives_an_outage_of_the_last_path() {
    for (dies_ms, out_ms) in [(300, 302), (302, 300)] {
        let links = classes([Uses::Best, Uses::Stripe, Uses::Stripe], true);
        let mut bonded = Bonded::new(&links, [8_000_000; 2], [20, 60]);
        for ms in 0..600 {
            bonded.run_to(ms * MS);
            match ms {
                100 => bonded.carries[0] = false,
                _ if ms == dies_ms => {
                    // Its last probe with an answer was sent at 90 ms.
                    let state = |is_up, delay_ns| State {
                        is_up,
                        delay_ns,
                        arrived_ns: 90 * MS,
                    };
                    let states = [state(false, 20 * MS), state(true, 60 * MS)];
                    bonded.link.set_paths(bonded.now_ns, true, &states);
                }
                _ if ms == out_ms => bonded.link.set_path_capacity(ms * MS, 1, 0),
                400 => bonded.link.set_path_capacity(ms * MS, 1, 8_000_000),
                _ => {}
            }
            if ms < 300 {
                bonded.arrive(1, ms as u32, 1000);
            }
        }
        bonded.run_to(2 * S);
        assert_eq!(bonded.numbers(1), from_zero(300), "dies at {dies_ms} ms");
    }
}

/// Copies wait for a path that carries nothing for a tenth of a second, and go when it is back.
#[test]
fn copies_survive_an_outage_of_their_path() {
    let links = classes([Uses::All, Uses::Stripe, Uses::Stripe], true);
    let mut bonded = Bonded::new(&links, [8_000_000, 80_000], [20, 60]);
    // A copy takes the second path for 20 ms, so four of them wait for it.
    for number in 0..5 {
        bonded.arrive(0, number, 200);
    }
    bonded.run_to(5 * MS);
    bonded.link.set_path_capacity(5 * MS, 1, 0);
    bonded.run_to(105 * MS);
    bonded.link.set_path_capacity(105 * MS, 1, 80_000);
    bonded.run_to(S);
    assert_eq!(bonded.numbers(0), from_zero(5));
    assert_eq!(bonded.sent[&(0, 0)].0 + bonded.sent[&(1, 0)].0, 10);
}

/// Those of a trace in the configuration, of which nothing is told: a probe that was sent just before one waits for its end.
#[test]
fn a_configured_outage_is_not_taken_for_silence() {
    (700..750).for_each(is_not_taken_for_silence);
}

/// Outages begin so many ms after the begin of each second.
fn is_not_taken_for_silence(begin: u64) {
    let links = classes([Uses::Best, Uses::Stripe, Uses::Stripe], false);
    let mut paths = setups([8_000_000; 2]);
    paths[0].capacity.offered = Capacity::Rate(Signal::Steps {
        points: vec![(0, 8e6), (begin * MS, 0.0), ((begin + 190) * MS, 8e6)].into(),
        end: End::Loop { period_ns: S },
    });
    let setup = LinkSetup {
        paths: &paths,
        ..links.of_peer(0)
    };
    let mut link = Link::new(0, setup).unwrap();
    let probing = Probing {
        every_ns: 50 * MS,
        failover_ns: 200 * MS,
        failback_ns: 10_000 * MS,
        at_once: true,
    };
    let mut choice = Underlays::new(0, probing, 1);
    let mut waiting: Vec<u64> = Vec::new();
    let mut coming: Vec<(u64, u64)> = Vec::new();
    for ms in 0..5000 {
        let now_ns = ms * MS;
        let outages = link.path_outages(now_ns, 0);
        assert_eq!(outages.lasts, (begin..begin + 190).contains(&(ms % 1000)));
        choice.set_outages(now_ns, 0, outages, true);
        choice.carries(0);
        if !outages.lasts {
            coming.extend(waiting.drain(..).map(|sent_ns| (now_ns + 60 * MS, sent_ns)));
        }
        coming.retain(|(at_ns, sent_ns)| {
            if *at_ns <= now_ns {
                choice.answered(now_ns, 0, *sent_ns);
            }
            *at_ns > now_ns
        });
        choice.decide(now_ns);
        assert!(ms < 500 || choice.is_good(0), "{ms} ms");
        while choice.probe(now_ns).is_some() {
            waiting.push(now_ns);
        }
    }
}
