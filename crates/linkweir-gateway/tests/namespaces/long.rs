// SPDX-License-Identifier: BSD-3-Clause
//! Tests that take many minutes, for `make test-long`.

use std::time::Duration;

use crate::clear::{comes_through_both, full, until};
use crate::everything::{rules, FAR, FAR_V6};
use crate::place::environment;
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
    comes_through_both(&tunnel);
    let before = rules(&tunnel.here);
    let uplink = Uplink::watch(&tunnel.here, &[FAR, FAR_V6]);
    let _traffic = Traffic::start(&tunnel.here, &["203.0.113.7:9", "[2001:db8:ffff::7]:9"]);
    let all = "rule del priority 32702\\nrule del priority 32701\\nrule del priority 32700";
    let script = format!("printf '{all}\\n' | ip -batch - ; printf '{all}\\n' | ip -6 -batch -");
    let mut spans: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            uplink.take_span();
            assert!(tunnel.here.run("bash", &["-c", &script]).status.success());
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
