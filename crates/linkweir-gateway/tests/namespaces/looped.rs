// SPDX-License-Identifier: BSD-3-Clause
//! The route to a peer leads into the tunnel itself: nothing is sent into it, and that is said.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use linkweir_gateway::show::figures::Show;
use nix::sys::signal::Signal;

use crate::clear::{sysctl, until};
use crate::life::comes_through;
use crate::place::{program, Namespace, Tunnel, STRICT};

const TO: &str = "10.77.0.2:2000";

fn ip(namespace: &Namespace, words: &str) {
    namespace.ip(&words.split(' ').collect::<Vec<_>>());
}

/// Packets that the system has handed to the tunnel's device so far.
fn handed(namespace: &Namespace) -> u64 {
    let output = namespace.run("cat", &["/proc/net/dev"]).stdout;
    let text = String::from_utf8(output).unwrap();
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with("lw0:"))
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    words[10].parse().unwrap()
}

/// Starts the first gateway again by this command, whose log goes into a file. Only the test's packets enter its device: the
/// kernel would ask three times and more, seconds apart, for routers of IPv6.
fn logged(tunnel: &mut Tunnel, command: Command) -> PathBuf {
    sysctl(&tunnel.here, "net.ipv6.conf.default.router_solicitations=0");
    tunnel.restart_logged(1, Signal::SIGTERM, command)
}

fn says(log: &PathBuf, words: &str) -> bool {
    fs::read_to_string(log).unwrap().contains(words)
}

/// All addresses are behind the peer, by a default route that someone set by hand; the network of the peer is lost.
fn by_hand(text: String, last: u8) -> String {
    match last {
        1 => text
            .replace(
                "[\"10.77.0.2/32\", \"fd77::2/128\", \"10.78.2.0/24\"]",
                "\"0.0.0.0/0\"",
            )
            .replace("device =", "routes = false\ndevice ="),
        _ => text,
    }
}

/// Without the check each datagram comes back and is sealed again, as fast as a processor can.
pub fn datagrams_do_not_go_round_when_the_uplink_is_lost() {
    for sealed in [true, false] {
        let mut tunnel = match sealed {
            true => Tunnel::sealed(STRICT, by_hand),
            false => Tunnel::clear(STRICT, by_hand),
        };
        let log = logged(&mut tunnel, program());
        ip(&tunnel.here, "route add default dev lw0");
        let (a, b) = (
            tunnel.here.socket("10.77.0.1:1000"),
            tunnel.there.socket(TO),
        );
        comes_through(&a, &b, TO, b"at first");
        ip(&tunnel.here, "route del 192.0.2.0/24 dev out");
        let before = handed(&tunnel.here);
        for _ in 0..20 {
            let _ = a.send_to(b"round and round", TO);
            std::thread::sleep(Duration::from_millis(5));
        }
        tunnel.gateways[0].wait_until("it is noticed", |show| show.peers[0].looped);
        until("it is said", || {
            says(&log, "nothing is sent: the route to its endpoint 192.0.2.2:51820 leads into the tunnel itself")
        });
        std::thread::sleep(Duration::from_millis(100));
        let came = handed(&tunnel.here) - before;
        assert!(
            came <= 30,
            "{came} packets entered the tunnel, of which 20 were sent"
        );
        ip(&tunnel.here, "route add 192.0.2.0/24 dev out");
        tunnel.gateways[0].wait_until("it is over", |show| !show.peers[0].looped);
        until("it is said", || says(&log, "leads past the tunnel again"));
        comes_through(&a, &b, TO, b"again");
    }
}

/// A name leads to an address that is behind the peer.
pub fn a_name_that_leads_into_the_tunnel_is_said() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, _| text);
    tunnel.gateways[1].signal(Signal::SIGKILL);
    let text = fs::read_to_string(tunnel.folder.path("1.toml")).unwrap();
    let hosts = tunnel.folder.write("hosts", "10.78.2.5 hub.test\n");
    tunnel.folder.write(
        "1.toml",
        &text.replace("endpoint = \"192.0.2.2:", "endpoint = \"hub.test:"),
    );
    // The resolver of this process alone reads this file.
    let mut command = Command::new("unshare");
    command.args([
        "-m",
        "bash",
        "-c",
        "mount --bind \"$0\" /etc/hosts && exec setpriv --pdeathsig KILL \"$@\"",
        hosts.to_str().unwrap(),
        env!("CARGO_BIN_EXE_linkweir-gateway"),
    ]);
    let log = logged(&mut tunnel, command);
    let a = tunnel.here.socket("10.77.0.1:1000");
    let _ = a.send_to(b"to the hub", TO);
    tunnel.gateways[0].wait_until("it is noticed", |show| show.peers[0].looped);
    until("it is said", || {
        says(
            &log,
            "the route to its endpoint 10.78.2.5:51820 leads into the tunnel itself",
        )
    });
    until("the packet has been read", || handed(&tunnel.here) > 0);
    let before = handed(&tunnel.here);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(handed(&tunnel.here), before, "nothing is sent into itself");
}

/// The peer sends through the tunnel to the tunnel's own socket: that must not move its endpoint into the tunnel.
pub fn a_peer_that_sends_through_the_tunnel_does_not_move_into_it() {
    for any in [true, false] {
        let tunnel = Tunnel::sealed(STRICT, |text, last| match last {
            1 if any => text.replace("listen = \"192.0.2.1:", "listen = \"0.0.0.0:"),
            _ => text.replace("listen = \"192.0.2.2:", "listen = \"0.0.0.0:"),
        });
        let (a, b) = (
            tunnel.here.socket("10.77.0.1:1000"),
            tunnel.there.socket(TO),
        );
        comes_through(&b, &a, "10.77.0.1:1000", b"at first");
        let before = tunnel.gateways[0].show().peers[0].endpoint;
        // The far end's route to this one leads into its tunnel: its datagrams come out of the tunnel here.
        let inside = if any { "10.77.0.1" } else { "192.0.2.1" };
        let forged = tunnel.there.socket("10.77.0.2:4000");
        if !any {
            ip(&tunnel.there, "route add 192.0.2.1/32 dev lw0");
        }
        let elsewhere = |show: &Show| {
            show.dropped_pkts
                .get("other_device")
                .copied()
                .unwrap_or_default()
        };
        for _ in 0..5 {
            let _ = forged.send_to(&[4; 64], (inside, 51820));
        }
        if any {
            tunnel.gateways[0].wait_until("they are dropped", |show| elsewhere(show) >= 5);
        }
        assert_eq!(tunnel.gateways[0].show().peers[0].endpoint, before);
    }
}

/// Two ways, of which one leads into the tunnel: the other is used.
pub fn a_way_that_leads_into_the_tunnel_is_not_used() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, last| {
        match last {
        1 => text
            .replace("listen = \"192.0.2.1:", "listen = \"0.0.0.0:")
            .replace(
                "endpoint = \"192.0.2.2:51820\"\n",
                "underlays = [{ name = \"a\", endpoint = \"198.51.100.2:51820\" }, { name = \"b\", endpoint = \"192.0.2.2:51820\" }]\n",
            ),
        _ => text
            .replace("listen = \"192.0.2.2:", "listen = \"0.0.0.0:")
            .replace("endpoint = \"192.0.2.1:51820\"\n", ""),
    }
    });
    let log = logged(&mut tunnel, program());
    ip(&tunnel.there, "address add 198.51.100.2/32 dev lo");
    ip(&tunnel.here, "route add 198.51.100.2/32 dev lw0");
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:1000"),
        tunnel.there.socket(TO),
    );
    comes_through(&a, &b, TO, b"over the second way");
    until("it is said", || {
        says(&log, "198.51.100.2:51820 leads into the tunnel itself")
    });
    // The second is lost to the tunnel, too, and comes again.
    ip(&tunnel.here, "route add 192.0.2.2/32 dev lw0");
    tunnel.gateways[0].wait_until("nothing is sent", |show| show.peers[0].looped);
    let before = handed(&tunnel.here);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(handed(&tunnel.here), before, "nothing is sent into itself");
    ip(&tunnel.here, "route del 192.0.2.2/32 dev lw0");
    comes_through(&a, &b, TO, b"over the second way again");
}
