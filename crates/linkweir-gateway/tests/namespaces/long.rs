// SPDX-License-Identifier: BSD-3-Clause
//! Tests that take many minutes, for `make test-long`.

use std::time::Duration;

use crate::clear::{comes_through_both, full, until};
use crate::everything::{rules, FAR, FAR_V6};
use crate::place::{environment, Tunnel};
use crate::soak::soak;
use crate::uplink::{Traffic, Uplink};

const ROUNDS: usize = 20;

pub fn ten_minutes_of_events_take_nothing_from_voice_and_leak_nothing() {
    soak(environment("LINKWEIR_SOAK_LONG_S", 600));
}

/// A program removes the rules of a tunnel to all addresses as fast as it can, the one that refuses first. Prints how long
/// packets left in the clear.
pub fn all_rules_that_go_at_once_are_back_soon() {
    let tunnel = full();
    remove_all_rules(&tunnel, 0);
}

/// The same while the keeper compares a main table of 60,000 routes.
pub fn all_rules_that_go_at_once_are_back_soon_beside_many_routes() {
    let tunnel = full();
    let routes = (0..60_000).map(|at| {
        let (high, low) = (at >> 8 & 255, at & 255);
        format!(
            "route add 100.{}.{high}.{low}/32 dev out\n",
            64 + (at >> 16)
        )
    });
    let batch = tunnel.folder.write("routes", &routes.collect::<String>());
    let added = tunnel.here.run("ip", &["-batch", batch.to_str().unwrap()]);
    assert!(added.status.success(), "{added:?}");
    // A change of a prefix of the tunnel is compared with all of them, again and again.
    remove_all_rules(&tunnel, 400);
}

/// Each round also removes and adds a route in the main table so many times, to the network of the device's address.
fn remove_all_rules(tunnel: &Tunnel, changes: usize) {
    comes_through_both(tunnel);
    let before = rules(&tunnel.here);
    let uplink = Uplink::watch(&tunnel.here, &[FAR, FAR_V6]);
    let _traffic = Traffic::start(&tunnel.here, &["203.0.113.7:9", "[2001:db8:ffff::7]:9"]);
    let change =
        "route add 10.77.0.0/24 dev out metric 9\\nroute del 10.77.0.0/24 dev out metric 9\\n";
    let changes = change.repeat(changes);
    let all = "rule del priority 32702\\nrule del priority 32701\\nrule del priority 32700";
    let script = format!(
        "printf '{changes}' | ip -batch - & sleep 0.05; \
         printf '{all}\\n' | ip -batch - ; printf '{all}\\n' | ip -6 -batch - ; wait"
    );
    let mut spans: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            uplink.take_span();
            let output = tunnel.here.run("bash", &["-c", &script]);
            assert!(output.status.success(), "{output:?}");
            until("the rules are as before", || rules(&tunnel.here) == before);
            uplink.in_the_clear(&tunnel.here);
            // So much later the gateway does not take it for another fight.
            std::thread::sleep(Duration::from_millis(10_500));
            uplink.take_span()
        })
        .collect();
    spans.sort();
    println!(
        "in the clear after all rules went at once, of {ROUNDS} rounds: half {:?}, longest {:?}",
        spans[ROUNDS / 2],
        spans[ROUNDS - 1]
    );
}
