// SPDX-License-Identifier: BSD-3-Clause
//! A hub with several addresses, and events of other programs: which address it sends from.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::life::comes_through;
use crate::place::{Socket, Tunnel, STRICT};
use crate::PATIENCE;

const TO: &str = "10.77.0.2:2000";
const BACK: &str = "10.77.0.1:1000";

/// A hub with a second address, which a client behind a stateful firewall has asked; `behind` is behind the client.
fn asked_at_its_second_address(behind: &str) -> Tunnel {
    let mut tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        1 => text
            .replace("endpoint = \"192.0.2.2:51820\"\n", "")
            .replace("listen = \"192.0.2.1:", "listen = \"0.0.0.0:")
            .replace("10.78.2.0/24", behind),
        _ => text
            .replace("listen = \"192.0.2.2:", "listen = \"0.0.0.0:")
            .replace("192.0.2.1:51820", "192.0.2.11:51820"),
    });
    tunnel
        .here
        .ip(&["address", "add", "192.0.2.11/24", "dev", "out"]);
    let input = ["-A", "INPUT", "-i", "out", "-p", "udp"];
    let stateful = ["-m", "conntrack", "!", "--ctstate", "ESTABLISHED"];
    let rule = [&input[..], &stateful, &["-j", "DROP"]].concat();
    assert!(tunnel.there.run("iptables", &rule).status.success());
    tunnel.gateways[1].signal(Signal::SIGKILL);
    tunnel.gateways[1].ended();
    tunnel.restart(2);
    tunnel
}

/// Sends so many datagrams from the hub to the client, with an event before each tenth; returns how many come, and those that
/// come twice count twice. The client sends nothing.
fn streamed(a: &Socket, b: &Socket, count: usize, mut event: impl FnMut(usize)) -> usize {
    for at in 0..count {
        if at % 10 == 0 {
            event(at / 10);
            // The gateway learns of it.
            std::thread::sleep(Duration::from_millis(20));
        }
        a.send_to(&at.to_le_bytes(), TO).unwrap();
    }
    b.set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let mut buffer = [0; 100];
    let (mut came, mut numbers) = (0, BTreeSet::new());
    let begun = Instant::now();
    // The gateways may be late; once all numbers are there, silence is the end.
    loop {
        match b.recv(&mut buffer) {
            Ok(8) => {
                let number = usize::from_le_bytes(buffer[..8].try_into().unwrap());
                assert!(number < count, "{number}");
                came += 1;
                numbers.insert(number);
            }
            // A word that was sent before.
            Ok(_) => {}
            Err(_) if numbers.len() == count || begun.elapsed() > PATIENCE => return came,
            Err(_) => {}
        }
    }
}

/// A renewed lease, a route of a router's advertisement, and a container's cable.
pub fn events_of_other_programs_do_not_change_the_address_that_a_hub_answers_from() {
    let tunnel = asked_at_its_second_address("10.78.2.0/24");
    let here = &tunnel.here;
    let (a, b) = (here.socket(BACK), tunnel.there.socket(TO));
    comes_through(&b, &a, BACK, b"asked");
    let lease = ["192.0.2.11/24", "dev", "out", "valid_lft", "3600"];
    let lease = [
        &["address", "replace"][..],
        &lease,
        &["preferred_lft", "3600"],
    ]
    .concat();
    let route = "2001:db8:1::/64";
    let came = streamed(&a, &b, 300, |at| match at % 5 {
        0 => here.ip(&lease),
        1 => here.ip(&["-6", "route", "add", route, "via", "2001:db8::2"]),
        2 => here.ip(&["-6", "route", "del", route]),
        3 => here.ip(&["link", "add", "veth0", "type", "veth", "peer", "veth1"]),
        _ => here.ip(&["link", "del", "veth0"]),
    });
    assert_eq!(came, 300);
}

/// Some programs remove an address and add it again. While it is gone the system chooses; afterwards it is used again.
pub fn an_address_that_comes_again_is_sent_from_again() {
    let tunnel = asked_at_its_second_address("10.78.2.0/24");
    let here = &tunnel.here;
    let (a, b) = (here.socket(BACK), tunnel.there.socket(TO));
    comes_through(&b, &a, BACK, b"asked");
    here.ip(&["address", "del", "192.0.2.11/24", "dev", "out"]);
    a.send_to(
        b"from another address, which the firewall does not let in",
        TO,
    )
    .unwrap();
    here.ip(&["address", "add", "192.0.2.11/24", "dev", "out"]);
    comes_through(&a, &b, TO, b"again");
    assert_eq!(streamed(&a, &b, 50, |_| {}), 50);
}

/// Where everything is behind the client, the hub's own datagrams have a mark and routes of their own; here the client is
/// reached by the default route.
pub fn a_hub_with_all_addresses_behind_a_peer_answers_from_the_address_that_was_asked() {
    let mut tunnel = asked_at_its_second_address("0.0.0.0/0");
    tunnel
        .here
        .ip(&["route", "add", "default", "via", "192.0.2.2"]);
    let far = "198.51.100.2";
    tunnel.there.ip(&["address", "add", far, "dev", "out"]);
    let route = ["route", "add", "192.0.2.11", "dev", "out", "src", far];
    tunnel.there.ip(&route);
    tunnel.gateways[1].signal(Signal::SIGKILL);
    tunnel.gateways[1].ended();
    tunnel.restart(2);
    let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
    comes_through(&b, &a, BACK, b"asked");
    let endpoint = tunnel.gateways[0].show().peers[0].endpoint;
    assert_eq!(endpoint, "198.51.100.2:51820".parse().ok());
    comes_through(&a, &b, TO, b"answered");
}
