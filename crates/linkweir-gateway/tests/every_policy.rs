// SPDX-License-Identifier: BSD-3-Clause
//! Every policy of the core schedules in the gateway: the classes towards a peer, and the peers of a hub.
//!
//! Each is read from a configuration in which every queue has parameters of its own. It must then serve packets in the
//! order in which queues around the same policy, with the same parameters, serve them.

use std::path::Path;

use linkweir_config::parameters;
use linkweir_core::{policies, CorePolicy, Limit, Mux, PolicyInfo, Unit, UNSET};
use linkweir_gateway::config::{self, Config};
use linkweir_plane::hub::Hub;
use linkweir_plane::link::{Link, Next};
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

const QUEUES: usize = 3;
/// What each peer of a hub carries, bit/s.
const RATES: [u64; QUEUES] = [8_000_000, 4_000_000, 2_000_000];
const LIMIT: Limit = Limit {
    pkts: Some(9000),
    ..Limit::NONE
};

/// A row of parameters for each queue: numbers fall from queue to queue to their default, the rest has its default.
fn rows(info: &PolicyInfo) -> Vec<Vec<u64>> {
    let row = |at: usize| {
        let values = info.qparams.iter().map(|param| {
            if param.default == UNSET || param.unit == Unit::Choice {
                return param.default;
            }
            let times = (QUEUES - at) as u64;
            (param.default.saturating_mul(times)).clamp(param.min, param.max)
        });
        values.collect()
    };
    (0..QUEUES).map(row).collect()
}

/// The keys of one row, as a configuration has them.
fn keys(info: &PolicyInfo, row: &[u64]) -> Vec<String> {
    let given = info.qparams.iter().zip(row);
    given
        .filter(|(_, value)| **value != UNSET)
        .map(|(param, value)| format!("{} = {}", param.name, parameters::written(param, *value)))
        .collect()
}

fn parse(across: &str, scheduler: &str, peers: &str) -> Result<Config, String> {
    let text = format!(
        "[gateway]\ndevice = \"lw0\"\naddress = \"10.77.0.1/24\"\nlisten = \"0.0.0.0:51820\"\nmode = \"cleartext\"\n\
         [link]\nrate = \"8Mbit\"\n{across}\n[scheduler]\n{scheduler}\n{peers}"
    );
    let config = config::parse(&text, Path::new("gateway.toml"));
    config.map_err(|fault| format!("{fault}\n{text}"))
}

fn peer(at: usize, rest: &str) -> String {
    format!("[[peer]]\nname = \"p{at}\"\nendpoint = \"192.0.2.{at}:51820\"\nallowed_ips = \"10.78.{at}.0/24\"\n{rest}\n")
}

/// A gateway with one peer, whose classes the policy schedules.
fn with_classes(info: &PolicyInfo) -> Result<Config, String> {
    let mut scheduler = format!("policy = \"{}\"\n", info.name);
    for (at, row) in rows(info).iter().enumerate() {
        let rule = [
            "match = [{ dscp = \"AF21\" }]",
            "match = [{ dscp = \"AF11\" }]",
            "",
        ][at];
        let keys = keys(info, row).join("\n");
        scheduler += &format!("[[class]]\nname = \"c{at}\"\n{rule}\nlimit = \"9000p\"\n{keys}\n");
    }
    parse("", &scheduler, &peer(1, ""))
}

/// A hub, whose peers the policy schedules; each has one class, and so is one queue.
fn with_hub(info: &PolicyInfo) -> Result<Config, String> {
    let peers = rows(info).into_iter().enumerate().map(|(at, row)| {
        let keys = keys(info, &row).join(", ");
        let rate = format!("rate = \"{}bit\"\nacross = {{ {keys} }}", RATES[at]);
        peer(at + 1, &rate)
    });
    let across = format!("across = {{ policy = \"{}\" }}", info.name);
    let one = "policy = \"fifo\"\n[[class]]\nname = \"all\"\nlimit = \"9000p\"\n";
    parse(&across, one, &peers.collect::<String>())
}

/// What is compared: queues in the gateway.
trait Queues {
    fn arrive(&mut self, now_ns: u64, queue: usize, bytes: u32, number: u8);
    fn next(&mut self, now_ns: u64) -> Next;
}

struct Classes(Link);

impl Queues for Classes {
    fn arrive(&mut self, now_ns: u64, queue: usize, bytes: u32, number: u8) {
        self.0.arrive(now_ns, queue, bytes, &[number]);
    }

    fn next(&mut self, now_ns: u64) -> Next {
        self.0.next(now_ns, |_| false)
    }
}

struct Boxed(Link);

impl AsMut<Link> for Boxed {
    fn as_mut(&mut self) -> &mut Link {
        &mut self.0
    }
}

struct Peers {
    hub: Hub,
    links: Vec<Boxed>,
}

impl Queues for Peers {
    fn arrive(&mut self, now_ns: u64, queue: usize, bytes: u32, number: u8) {
        let link = &mut self.links[queue].0;
        link.arrive(now_ns, 0, bytes, &[number]);
        self.hub.update(now_ns, queue, link);
    }

    fn next(&mut self, now_ns: u64) -> Next {
        self.hub.next(now_ns, &mut self.links, |_| false).0
    }
}

/// Serves random packets by the gateway's queues and by queues around the policy, which must agree on each.
fn compare(info: &'static PolicyInfo, queues: &mut dyn Queues, rates: [u64; QUEUES]) {
    let mut mux = Mux::new(0, rates[0], &[LIMIT; QUEUES], |view| {
        CorePolicy::new(info, view, &info.default_params(), &rows(info).concat())
    })
    .unwrap();
    mux.set_rates(0, rates);
    let mut random = Pcg64::seed_from_u64(7);
    let mut draw = |below: u64| random.next_u64() % below;
    let (mut now_ns, mut free_ns, mut sent) = (0, 0, 0);
    for step in 0..2000_u64 {
        for _ in 0..draw(4) {
            let (queue, bytes, number) = (draw(3) as usize, 40 + 50 * draw(30) as u32, step as u8);
            queues.arrive(now_ns, queue, bytes, number);
            mux.enqueue(now_ns, queue, bytes, number, |_, _, _| ());
        }
        if free_ns <= now_ns {
            let next = loop {
                let next = queues.next(now_ns);
                if next != Next::At(now_ns) {
                    break next; // many drops take several calls
                }
            };
            match (next, mux.dequeue(now_ns, |_| false, |_, _, _| ())) {
                (Next::Send(packet, _), Some(expected)) => {
                    assert_eq!(packet[0], expected.item, "{} at step {step}", info.name);
                    let bits_ns = 8_000_000_000 * u64::from(expected.bytes);
                    free_ns = now_ns + bits_ns.div_ceil(rates[expected.class]);
                    sent += 1;
                }
                (Next::Send(..), None) | (_, Some(_)) => panic!("{} at step {step}", info.name),
                _ => {}
            }
        }
        now_ns += draw(2_000_000);
    }
    assert!(sent > 500, "{}: {sent} sent", info.name);
}

#[test]
fn the_classes_of_a_peer_are_served_as_the_policy_says() {
    for info in policies().iter().filter(|info| !info.sorted_by_ecn) {
        let config = with_classes(info).unwrap();
        let link = Link::new(0, config.link_setup(&config.peers[0])).unwrap();
        compare(info, &mut Classes(link), [RATES[0]; QUEUES]);
    }
}

#[test]
fn the_peers_of_a_hub_are_served_as_the_policy_says() {
    for info in policies() {
        let config = with_hub(info);
        if !info.nests() {
            assert!(config.unwrap_err().contains("link.across.policy"));
            continue;
        }
        let config = config.unwrap();
        let setups = config.peers.iter().map(|peer| config.link_setup(peer));
        let mut links: Vec<Boxed> = setups
            .map(|setup| Boxed(Link::new(0, setup).unwrap()))
            .collect();
        let shown = links.iter_mut().map(|link| link.0.as_queue(0)).collect();
        let across = config.across.as_ref().unwrap();
        let hub = Hub::new(0, across, config.fastest_bps(), shown).unwrap();
        compare(info, &mut Peers { hub, links }, RATES);
    }
}
