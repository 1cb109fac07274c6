// SPDX-License-Identifier: BSD-3-Clause
//! Classes whose flows are isolated, towards peers that share a link: a policy of flows below one of classes below one of
//! peers.

use super::*;
use crate::classify::Label;
use crate::link::tests::flows::{alone, load, mbit, near, source, sparse, within};
use crate::link::tests::traffic::{serve, Pattern, Server, Source};
use linkweir_core::Isolation;

impl Server for Shared {
    fn arrive(&mut self, now_ns: u64, peer: usize, label: Label, bytes: u32, packet: &[u8]) {
        self.now_ns = now_ns;
        let link = &mut self.links[peer].0;
        link.arrive(now_ns, label, bytes, packet);
        self.hub.update(now_ns, peer, link);
    }

    fn next(&mut self, now_ns: u64) -> Next {
        self.now_ns = now_ns;
        self.hub.next(now_ns, &mut self.links, |_| false).0
    }
}

/// Two peers on a link of 20 Mbit/s with quanta of a packet, so that each has 10.
fn shared(scheduler: &str, flows: &[Option<Isolation>]) -> Shared {
    let across = "{ policy = \"drr\", quantum = \"1514B\" }";
    let mut config = config(across, scheduler, &["rate = \"20Mbit\""; 2]);
    for (class, flows) in config.classes.iter_mut().zip(flows) {
        class.flows = *flows;
    }
    Shared::new(&config)
}

#[test]
fn a_sparse_flow_towards_a_peer_waits_as_behind_fq_codel_at_the_peers_rate() {
    let mut sources = vec![sparse()];
    sources.extend(load(0, 0, 10e6));
    sources.extend(load(1, 0, 10e6));
    let flows = [Some(Isolation::FqCodel)];
    let served = serve(&mut shared(FIFO, &flows), &sources, &[true], 20e6, 60);
    within(
        served[0].delays(),
        alone(10e6).map(|s| 1.2 * s),
        "towards one of two peers",
    );
    for peer in [0, 1] {
        near(mbit(&sources, &served, peer, 0), 10.0, "a peer");
    }
}

#[test]
fn classes_keep_their_rates_towards_each_peer_with_flows_as_without() {
    let scheduler = "[scheduler]\npolicy = \"pss\"\n[[class]]\nname = \"ef\"\nlevel = 0\n\
        [[class]]\nname = \"af\"\nlevel = 1\nlow_level = 3\nrate = \"3Mbit\"\n\
        [[class]]\nname = \"rest\"\nlevel = 2\n";
    let mut sources: Vec<Source> = Vec::new();
    for peer in [0, 1] {
        sources.push(source(peer, 0, 500, Pattern::Bursts(1e6, 4)));
        sources.extend(load(peer, 1, 3e6));
        sources.extend(load(peer, 2, 10e6));
    }
    for of_flows in [None, Some(Isolation::FqCodel), Some(Isolation::Drr)] {
        let flows = [None, of_flows, of_flows];
        let isolating = flows.map(|flows| flows.is_some());
        let mut shared = shared(scheduler, &flows);
        let served = serve(&mut shared, &sources, &isolating, 20e6, 60);
        for peer in [0, 1] {
            for (class, wanted) in [1.0, 3.0, 6.0].into_iter().enumerate() {
                let found = mbit(&sources, &served, peer, class);
                near(
                    found,
                    wanted,
                    &format!("peer {peer}, class {class}, {of_flows:?}"),
                );
            }
        }
        // The policy across peers was told of everything.
        let waiting = shared.links.iter().map(|link| link.0.waiting_pkts());
        let held: u32 = waiting.sum();
        assert!(held > 0 && u64::from(held) == shared.hub.across.waiting_pkts());
    }
}
