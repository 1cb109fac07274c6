// SPDX-License-Identifier: BSD-3-Clause
//! Flows inside a class of the gateway, in virtual time: the same delays and rates as in the simulator
//! (`linkweir-sim/tests/engine/flows.rs`).

use linkweir_config::matching::Rules;

use super::traffic::{serve, Pattern, Served, Source};
use super::*;
use crate::bytes::packet::parse;
use crate::bytes::packet::tests::v4;
use crate::classify::Classifier;
use linkweir_core::Isolation;

const MBIT: f64 = 1e6;
const SECONDS: u64 = 60;
const LARGE_BYTES: u32 = 1500;

pub(crate) fn source(peer: usize, class: usize, bytes: u32, pattern: Pattern) -> Source {
    Source {
        peer,
        class,
        bytes,
        pattern,
    }
}

/// A voice call's rate in packets at random times.
pub(crate) fn sparse() -> Source {
    source(0, 0, 172, Pattern::Random(64e3))
}

/// What loads a class of this rate: connections that take what they get, and a source that sends more than its share.
pub(crate) fn load(peer: usize, class: usize, bps: f64) -> Vec<Source> {
    let connection = source(peer, class, LARGE_BYTES, Pattern::Window(40));
    let mut sources = vec![connection; 4];
    sources.push(source(
        peer,
        class,
        LARGE_BYTES,
        Pattern::Bursts(0.5 * bps, 1),
    ));
    sources
}

/// Classes with these keys towards one peer, and how the flows of each are isolated.
fn classes(bps: f64, policy: &str, keys: &[&str], flows: &[Option<Isolation>]) -> Links {
    let mut text = format!("[link]\nrate = \"{bps}bit\"\n[scheduler]\npolicy = \"{policy}\"\n");
    for (at, keys) in keys.iter().enumerate() {
        text.push_str(&format!("[[class]]\nname = \"c{at}\"\n{keys}\n"));
    }
    text.push_str("[[peer]]\nname = \"ship\"\n");
    let mut links = Links::parse(&text);
    for (class, flows) in links.classes.iter_mut().zip(flows) {
        class.flows = *flows;
    }
    links
}

fn run(links: &Links, bps: f64, sources: &[Source]) -> Vec<Served> {
    let mut link = link(links);
    let isolating: Vec<_> = links.classes.iter().map(|c| c.flows.is_some()).collect();
    serve(&mut link, sources, &isolating, bps, SECONDS)
}

/// The delays of the sparse flow behind FQ-CoDel alone at this rate, each source in a queue of its own.
pub(crate) fn alone(bps: f64) -> [f64; 3] {
    let mut sources = vec![sparse()];
    sources.extend(load(0, 0, bps));
    for (at, source) in sources.iter_mut().enumerate() {
        source.class = at;
    }
    let links = classes(bps, "fq_codel", &vec![""; sources.len()], &[]);
    run(&links, bps, &sources)[0].delays()
}

pub(crate) fn within(found: [f64; 3], bounds: [f64; 3], what: &str) {
    println!("{what}: {found:?} of {bounds:?} s");
    for (found, bound) in found.into_iter().zip(bounds) {
        assert!(found <= bound, "{what}: {found} s, not {bound} s");
    }
}

/// Mbit/s of a class.
pub(crate) fn mbit(sources: &[Source], served: &[Served], peer: usize, class: usize) -> f64 {
    let mine = sources.iter().zip(served);
    let mine = mine.filter(|(source, _)| (source.peer, source.class) == (peer, class));
    let bytes: u64 = mine.map(|(_, served)| served.bytes).sum();
    8.0 * bytes as f64 / (SECONDS - 5) as f64 / MBIT
}

pub(crate) fn near(found: f64, wanted: f64, what: &str) {
    println!("{what}: {found} of {wanted} Mbit/s");
    assert!(
        (found / wanted - 1.0).abs() < 0.01,
        "{what}: {found} Mbit/s, not {wanted} Mbit/s"
    );
}

#[test]
fn a_class_with_the_link_to_itself_delays_a_sparse_flow_as_fq_codel_does() {
    for bps in [2.0 * MBIT, 10.0 * MBIT, 100.0 * MBIT] {
        let mut sources = vec![sparse()];
        sources.extend(load(0, 0, bps));
        let links = classes(bps, "drr", &[""], &[Some(Isolation::FqCodel)]);
        let found = run(&links, bps, &sources)[0].delays();
        within(found, alone(bps).map(|s| 1.2 * s), &format!("{bps} bit/s"));
    }
}

#[test]
fn a_class_with_a_share_delays_a_sparse_flow_as_fq_codel_does_at_its_rate() {
    for nclasses in [2, 4] {
        let bps = 10.0 * MBIT;
        let mut sources = vec![sparse()];
        for class in 0..nclasses {
            sources.extend(load(0, class, bps));
        }
        let all_bps = nclasses as f64 * bps;
        let keys = vec!["quantum = \"1514B\""; nclasses];
        let links = classes(all_bps, "drr", &keys, &[Some(Isolation::FqCodel)]);
        let found = run(&links, all_bps, &sources)[0].delays();
        within(
            found,
            alone(bps).map(|s| 1.2 * s),
            &format!("{nclasses} classes"),
        );
    }
}

const LINK_BPS: f64 = 20.0 * MBIT;
const RESERVED_BPS: f64 = 5.0 * MBIT;
const EF_BPS: f64 = 2.0 * MBIT;
const EF_BYTES: u32 = 500;
/// Packets of EF that come at once.
const EF_BURST: u32 = 10;

/// AF with a reserved rate between bursts of EF and a best effort that takes what is left.
fn reserved(af: Vec<Source>, burst: u32, flows: Option<Isolation>) -> (Vec<Source>, Vec<Served>) {
    let af_keys = format!(
        "level = 1\nlow_level = 3\nrate = \"5Mbit\"\nmtu = \"1500B\"\nburst = \"{burst}p\""
    );
    let keys = [&af_keys, "level = 0", "level = 2"];
    let links = classes(LINK_BPS, "pss", &keys, &[flows]);
    let mut sources = vec![sparse()];
    sources.extend(af);
    sources.push(source(0, 1, EF_BYTES, Pattern::Bursts(EF_BPS, EF_BURST)));
    sources.push(source(0, 2, LARGE_BYTES, Pattern::Window(200)));
    let served = run(&links, LINK_BPS, &sources);
    (sources, served)
}

#[test]
fn a_reserved_rate_delays_a_sparse_flow_by_its_bound() {
    for burst in [2, 20] {
        let af = load(0, 0, RESERVED_BPS);
        let (_, served) = reserved(af, burst, Some(Isolation::FqCodel));
        // LM - LR = (burst - 1) mtu (1 - rho/C); the bursts of EF and a packet that has begun go before.
        let large_bits = 8.0 * f64::from(LARGE_BYTES);
        let ahead_bits = f64::from(burst - 1) * large_bits * (1.0 - RESERVED_BPS / LINK_BPS);
        let burst_bits = 8.0 * f64::from(EF_BURST * EF_BYTES);
        let above_s = (burst_bits + large_bits) / (LINK_BPS - EF_BPS);
        let more_s = (ahead_bits + large_bits) / RESERVED_BPS + above_s;
        let bounds = alone(RESERVED_BPS).map(|s| 1.2 * s + more_s);
        within(served[0].delays(), bounds, &format!("bursts of {burst}"));
    }
}

#[test]
fn reserved_rates_and_shares_are_kept_with_flows_as_without() {
    for flows in [None, Some(Isolation::FqCodel), Some(Isolation::Drr)] {
        let (sources, served) = reserved(load(0, 0, RESERVED_BPS), 20, flows);
        near(
            mbit(&sources, &served, 0, 0),
            5.0,
            &format!("pss, {flows:?}"),
        );
        near(mbit(&sources, &served, 0, 1), 2.0, "EF");
        let keys = ["quantum = \"3000B\"", "quantum = \"1000B\""];
        let links = classes(20.0 * MBIT, "drr", &keys, &[flows, flows]);
        let mut sources = vec![sparse()];
        sources.extend(load(0, 0, 15.0 * MBIT));
        sources.extend(load(0, 1, 5.0 * MBIT));
        let served = run(&links, 20.0 * MBIT, &sources);
        near(
            mbit(&sources, &served, 0, 0),
            15.0,
            &format!("drr, {flows:?}"),
        );
        near(mbit(&sources, &served, 0, 1), 5.0, "the other quarter");
    }
}

/// RFC 9332, section 2.1: while both kinds wait, L4S packets have nine tenths of the bytes, and go first; one that waited for
/// longer than 1 ms is marked. A packet takes 1 ms here.
#[test]
fn l4s_packets_go_first_and_are_marked_after_the_step() {
    let sorts = Some(Isolation::DualPi2 { step_ns: None });
    for policy in ["fifo", "drr", "pss"] {
        let links = classes(8.0 * MBIT, policy, &[""], &[sorts]);
        let mut link = link(&links);
        let (rules, rest) = (Vec::new(), 0);
        let mut classifier =
            Classifier::new(Rules { rules, rest }).isolating([sorts].into_iter(), [1, 2]);
        let mut sent = Vec::new();
        for (number, ecn) in [2, 2, 0, 1, 1, 3, 0].into_iter().enumerate() {
            let packet = v4(17, ecn, 0, 0, &[0, number as u8, 0, 2]);
            let label = classifier.label(0, &parse(&packet).unwrap());
            link.arrive(0, label, 1000, &packet);
        }
        let mut now_ns = 0;
        loop {
            match link.next(now_ns, |packet| packet[1] & 3 != 0) {
                Next::Send(packet, marked) => sent.push((packet[21], marked)),
                Next::At(ns) => now_ns = ns,
                Next::Nothing => break,
            }
        }
        let order: Vec<u8> = sent.iter().map(|one| one.0).collect();
        assert_eq!(order, [3, 4, 5, 0, 1, 2, 6], "{policy}");
        let marks: Vec<u8> = sent.iter().filter(|one| one.1).map(|one| one.0).collect();
        assert_eq!(marks, [5], "{policy}");
    }
}
