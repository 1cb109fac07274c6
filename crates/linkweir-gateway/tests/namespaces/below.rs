// SPDX-License-Identifier: BSD-3-Clause
//! Interfaces that push back: a shaper of the kernel (tbf) behind the cable's device.

use linkweir_gateway::metrics;

use crate::carry::connected;
use crate::place::{set_tos, Namespace, Tunnel, STRICT};

/// Whether the kernel can be asked for a slow interface.
pub fn has_shaper() -> bool {
    let namespace = Namespace::new();
    let slow = ["qdisc", "add", "dev", "lo", "root", "tbf"];
    let output = namespace.run(
        "tc",
        &[
            &slow[..],
            &["rate", "1mbit", "burst", "3000", "limit", "9000"],
        ]
        .concat(),
    );
    output.status.success()
}

/// A tunnel from behind an interface of this rate whose own queue holds `limit` bytes; its gateway's own capacity is no
/// limit.
fn behind(rate: &str, limit: &str, below: &str) -> Tunnel {
    let tunnel = Tunnel::clear(STRICT, |text, last| match last {
        1 => text.replace(
            "[link]\n",
            &format!("[link]\noverhead = \"14B\"\nbelow = \"{below}\"\n"),
        ),
        _ => text,
    });
    let output = tunnel.here.run(
        "tc",
        &[
            "qdisc", "add", "dev", "out", "root", "tbf", "rate", rate, "burst", "3000", "limit",
            limit,
        ],
    );
    assert!(output.status.success(), "{output:?}");
    tunnel
}

/// Sends 300 packets and then an urgent one; returns how many came before that.
fn before_the_urgent(tunnel: &Tunnel) -> usize {
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    for portion in 1..=3 {
        for _ in 0..100 {
            a.send_to(&[0; 1000], "10.77.0.2:2000").unwrap();
        }
        tunnel.gateways[0].wait_until("the portion has come", |show| {
            show.peers[0].classes[1].arrived_pkts >= 100 * portion
        });
    }
    set_tos(&a, 46 << 2);
    a.send_to(&[1; 1000], "10.77.0.2:2000").unwrap();
    let mut buffer = [0; 2000];
    let mut before = None;
    for at in 0..301 {
        assert_eq!(b.recv(&mut buffer).unwrap(), 1000, "packet {at}");
        if buffer[0] == 1 {
            before = Some(at);
        }
    }
    before.expect("the urgent one came")
}

pub fn what_the_interface_cannot_take_waits_where_the_policy_rules() {
    // All that was sent could wait in the interface's queue. 1056 bytes and 14 take 8.6 ms each.
    let tunnel = behind("1mbit", "2mb", "16kB");
    let before = before_the_urgent(&tunnel);
    assert!(before < 200, "{before} of 300 were sent first");
    let show = tunnel.gateways[0].show();
    let below = show.below.as_ref().unwrap();
    assert!(below.fulls > 0, "{show:?}");
    let (told_bps, bps) = (show.peers[0].told_bps, below.capacity_bps.unwrap());
    assert!(told_bps.abs_diff(bps) <= bps / 50, "{show:?}");
    // The shaper may let 3000 bytes go at once; more than it carries it has not carried.
    let most_bps = 1_000_000 + 2 * 3000 * 8 * 10;
    assert!((1..most_bps).contains(&bps), "{show:?}");
    assert!(metrics::text(&show).contains("linkweir_below_capacity_bytes_per_second{"));
}

pub fn what_the_interface_drops_is_sent_again() {
    // Its queue holds four packets, the socket sixteen: it is the interface that has no room.
    let tunnel = behind("1mbit", "5000", "32kB");
    let before = before_the_urgent(&tunnel);
    assert!(before < 200, "{before} of 300 were sent first");
    let show = tunnel.gateways[0].show();
    assert_eq!(
        show.peers[0].dropped_pkts.get("underlay_down"),
        None,
        "{show:?}"
    );
    let output = tunnel
        .here
        .run("tc", &["-s", "qdisc", "show", "dev", "out"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.contains("dropped 0,"), "{said}");
}

pub fn super_packets_pass_a_slow_interface() {
    use std::io::{Read, Write};
    const BYTES: usize = 1_000_000;
    // The least that may wait below is less than a super-packet.
    for limit in ["2mb", "5000"] {
        let tunnel = behind("20mbit", limit, "3kB");
        let [mut here, mut there] = connected(&tunnel, "10.77.0.2:80");
        let sender = std::thread::spawn(move || {
            here.write_all(&[5; BYTES]).unwrap();
            drop(here);
        });
        let mut received = Vec::new();
        there.set_read_timeout(Some(crate::PATIENCE)).unwrap();
        there.read_to_end(&mut received).unwrap();
        assert!(received == vec![5; BYTES], "{limit}");
        sender.join().unwrap();
    }
}
