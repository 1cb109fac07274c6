// SPDX-License-Identifier: BSD-3-Clause
//! Configurations with tens of thousands of prefixes.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::life::comes_through;
use crate::place::{program, Namespace, Tunnel, STRICT};
use crate::PATIENCE;

const PEERS: usize = 20;
const PREFIXES: usize = 1000;

/// An address behind one of the peers, by its number.
fn address(number: usize) -> String {
    format!(
        "100.{}.{}.{}",
        64 + (number >> 16),
        number >> 8 & 255,
        number & 255
    )
}

/// More peers, with so many prefixes each.
fn peers(prefixes: usize) -> String {
    let mut text = String::new();
    for peer in 0..PEERS {
        let nets: Vec<String> = (0..prefixes)
            .map(|at| format!("\"{}/32\"", address(peer * PREFIXES + at)))
            .collect();
        let port = 20_000 + peer;
        let _ = writeln!(
            text,
            "[[peer]]\nname = \"p{peer}\"\nendpoint = \"192.0.2.2:{port}\"\nallowed_ips = [\"172.16.{peer}.0/24\", {}]",
            nets.join(", ")
        );
    }
    text
}

fn is_routed(namespace: &Namespace, number: usize) -> bool {
    let found = namespace.run("ip", &["route", "get", &address(number)]);
    String::from_utf8(found.stdout).unwrap().contains("dev lw0")
}

/// While the system adds or removes routes, packets do not wait for it.
pub fn packets_pass_while_a_reload_changes_many_routes() {
    let mut tunnel = Tunnel::changed(STRICT, |text| text.replace("1000p", "50p"));
    let log = tunnel.restart_logged(1, Signal::SIGKILL, program());
    let file = tunnel.folder.path("1.toml");
    let base = std::fs::read_to_string(&file).unwrap();
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:1000"),
        tunnel.there.socket("10.77.0.2:2000"),
    );
    comes_through(&a, &b, "10.77.0.2:2000", b"before");
    let last = PEERS * PREFIXES - 1;
    let passed = (0..10).any(|round| {
        let add = round % 2 == 0;
        let more = peers(if add { PREFIXES } else { 0 });
        std::fs::write(&file, format!("{base}{more}")).unwrap();
        tunnel.gateways[0].signal(Signal::SIGHUP);
        let begun = Instant::now();
        loop {
            let begins = is_routed(&tunnel.here, 0) == add;
            let word = begun.elapsed().as_nanos().to_le_bytes();
            comes_through(&a, &b, "10.77.0.2:2000", &word);
            let ends = is_routed(&tunnel.here, last) == add;
            if ends {
                return false;
            }
            if begins {
                return true;
            }
            assert!(begun.elapsed() < PATIENCE, "the routes do not change");
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    assert!(passed, "packets wait until the last route has changed");
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(
        !said.contains("has ended"),
        "the keeper was given up: {said}"
    );
}
