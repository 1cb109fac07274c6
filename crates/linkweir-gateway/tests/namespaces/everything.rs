// SPDX-License-Identifier: BSD-3-Clause
//! A tunnel for all addresses, whose own datagrams must not go into it, and one that keeps to a device.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::life::comes_through;
use crate::place::{Namespace, Tunnel, STRICT};
use crate::PATIENCE;

/// Somewhere in the internet.
pub const FAR: &str = "203.0.113.7";
pub const FAR_V6: &str = "2001:db8:ffff::7";

pub fn rules(namespace: &Namespace) -> String {
    let of = |version| namespace.run("ip", &[version, "rule"]).stdout;
    String::from_utf8([of("-4"), of("-6")].concat()).unwrap()
}

pub fn text(tunnel: &Tunnel) -> String {
    fs::read_to_string(tunnel.folder.path("1.toml")).unwrap()
}

/// Gives the first end another configuration, which it reads.
pub fn rewrite(tunnel: &Tunnel, text: &str) {
    tunnel.folder.write("1.toml", text);
    tunnel.gateways[0].signal(Signal::SIGHUP);
}

/// A tunnel to a peer that leads to all addresses.
pub fn to_all(more: &'static str) -> Tunnel {
    Tunnel::sealed(STRICT, move |text, last| match last {
        1 => text
            .replace(
                "[\"10.77.0.2/32\", \"fd77::2/128\", \"10.78.2.0/24\"]",
                "[\"0.0.0.0/0\", \"::/0\"]",
            )
            .replace("device = \"lw0\"", &format!("device = \"lw0\"\n{more}")),
        _ => text,
    })
}

pub fn all_addresses_are_reached_through_the_tunnel_but_not_its_own_datagrams() {
    let mut tunnel = to_all("");
    for (far, net) in [(FAR, "203.0.113.7/32"), (FAR_V6, "2001:db8:ffff::7/128")] {
        tunnel.there.ip(&["address", "add", net, "dev", "lo"]);
        let route = tunnel.here.run("ip", &["route", "get", far]).stdout;
        let route = String::from_utf8(route).unwrap();
        assert!(route.contains("dev lw0 table 51820"), "{route}");
    }
    let far = format!("{FAR}:2000");
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:1000"),
        tunnel.there.socket(&far),
    );
    comes_through(&a, &b, &far, b"to the internet");
    comes_through(&b, &a, "10.77.0.1:1000", b"and back");
    // The networks that this host is in are reached as before.
    let near = tunnel.here.run("ip", &["route", "get", "192.0.2.2"]).stdout;
    assert!(String::from_utf8(near).unwrap().contains("dev out"));
    let made = rules(&tunnel.here);
    for expected in [
        "not from all fwmark 0xca6c lookup 51820",
        "suppress_prefixlength 0",
    ] {
        assert_eq!(made.matches(expected).count(), 2, "{made}");
    }

    // The device's routes come again when it was down.
    tunnel.here.ip(&["link", "set", "lw0", "down"]);
    tunnel.here.ip(&["link", "set", "lw0", "up"]);
    comes_through(&a, &b, &far, b"to the internet again");

    // However the gateway ends, its rules go, and another one makes them again.
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        tunnel.gateways[0].signal(signal);
        tunnel.gateways[0].ended();
        let begun = Instant::now();
        while rules(&tunnel.here).contains("51820") || rules(&tunnel.here).contains("suppress") {
            assert!(begun.elapsed() < PATIENCE, "{}", rules(&tunnel.here));
            std::thread::sleep(Duration::from_millis(5));
        }
        tunnel.restart(1);
        comes_through(&a, &b, &far, b"with the next one");
    }

    // A reload takes the routes away, unless the mark would have to change, which only root may do.
    let all = "[\"0.0.0.0/0\", \"::/0\"]";
    rewrite(&tunnel, &text(&tunnel).replace(all, "\"10.77.0.0/24\""));
    comes_through(&a, &b, &far, b"nothing changed");
}

pub fn a_reload_makes_and_removes_the_rules_of_a_mark_that_stays() {
    let tunnel = to_all("fwmark = 0x1234");
    let made = rules(&tunnel.here);
    assert_eq!(
        made.matches("fwmark 0x1234 lookup 4660").count(),
        2,
        "{made}"
    );
    let all = text(&tunnel);
    for (text, expected) in [
        (all.replace("\"::/0\"", "\"fd77::/64\""), 1),
        (
            all.replace("\"0.0.0.0/0\", \"::/0\"", "\"10.77.0.0/24\""),
            0,
        ),
        (all.clone(), 2),
    ] {
        rewrite(&tunnel, &text);
        let begun = Instant::now();
        while rules(&tunnel.here).matches("lookup 4660").count() != expected {
            assert!(begun.elapsed() < PATIENCE, "{}", rules(&tunnel.here));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A path that carries less than its ends know, as when a router filters ICMP.
pub fn packets_are_made_to_fit_a_path_that_does_not_say_what_it_carries() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        // The filter would take several datagrams that the system is handed together for one.
        1 => text
            .replace("name = \"other\"", "name = \"other\"\nprobe_mtu = true")
            .replace("device = \"lw0\"", "device = \"lw0\"\noffload = false"),
        _ => text,
    });
    for filter in ["iptables", "ip6tables"] {
        let long = [
            "-p",
            "udp",
            "-i",
            "out",
            "-m",
            "length",
            "--length",
            "1401:65535",
        ];
        let rule = [&["-A", "INPUT"][..], &long, &["-j", "DROP"]].concat();
        assert!(tunnel.there.run(filter, &rule).status.success());
    }
    tunnel.gateways[0].signal(Signal::SIGKILL);
    tunnel.gateways[0].ended();
    tunnel.restart(1);
    // 60 bytes are headers and seal outside.
    let fits = |bytes: u32| (1337..=1340).contains(&bytes);
    tunnel.gateways[0].wait_until("the length is found", |show| {
        show.peers[0].path_mtu_bytes.is_some_and(fits)
    });
    let there = tunnel.there.socket("10.77.0.2:2000");
    let there_v6 = tunnel.there.socket("[fd77::2]:2000");
    let long = vec![7; 1400];
    // Packets that may be fragmented, then those that may not.
    for no_discovery in ["1", "0"] {
        let setting = format!("net.ipv4.ip_no_pmtu_disc={no_discovery}");
        assert!(tunnel
            .here
            .run("sysctl", &["-q", "-w", &setting])
            .status
            .success());
        let here = tunnel.here.socket(&format!("10.77.0.1:100{no_discovery}"));
        comes_through(&here, &there, "10.77.0.2:2000", &long);
        let told = tunnel.gateways[0].show().peers[0]
            .dropped_pkts
            .contains_key("too_big");
        assert_eq!(told, no_discovery == "0");
    }
    let here = tunnel.here.socket("[fd77::1]:1000");
    comes_through(&here, &there_v6, "[fd77::2]:2000", &long);
}

/// A second cable between the two, with the same peer at its other end.
pub fn a_gateway_keeps_to_its_device_also_when_that_comes_again() {
    let tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        1 => text
            .replace("listen = \"192.0.2.1:", "listen = \"0.0.0.0:")
            .replace("endpoint = \"192.0.2.2:", "endpoint = \"198.51.100.2:")
            .replace(
                "device = \"lw0\"",
                "device = \"lw0\"\nlisten_device = \"lte\"",
            ),
        _ => text
            .replace("listen = \"192.0.2.2:", "listen = \"0.0.0.0:")
            .replace("endpoint = \"192.0.2.1:51820\"\n", ""),
    });
    let other = "198.51.100.2/32";
    tunnel.there.ip(&["address", "add", other, "dev", "lo"]);
    // The main table leads through the first cable, the gateway's device is the second, which is not there yet.
    tunnel.here.ip(&["route", "add", other, "via", "192.0.2.2"]);
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:1000"),
        tunnel.there.socket("10.77.0.2:2000"),
    );
    for round in 0..2 {
        let lost = tunnel.gateways[0].show().peers[0].session;
        assert!(
            round == 1 || lost == Some(false),
            "nothing may go through the first cable"
        );
        tunnel.here.cable_named("lte", &tunnel.there, "lte");
        for (namespace, last) in [(&tunnel.here, 1), (&tunnel.there, 2)] {
            let address = format!("198.18.0.{last}/24");
            namespace.ip(&["address", "add", &address, "dev", "lte"]);
            namespace.ip(&["link", "set", "lte", "up"]);
        }
        tunnel
            .here
            .ip(&["route", "add", other, "via", "198.18.0.2", "metric", "9"]);
        comes_through(&a, &b, "10.77.0.2:2000", b"through the second cable");
        comes_through(&b, &a, "10.77.0.1:1000", b"and back");
        let endpoint = tunnel.gateways[1].show().peers[0].endpoint.unwrap();
        assert_eq!(endpoint.ip().to_string(), "198.18.0.1");
        tunnel.here.ip(&["link", "del", "lte"]);
    }
    // What a peer sends to another device's address is not taken.
    let forged = tunnel.there.socket("192.0.2.2:7");
    let before = tunnel.gateways[0].show().dropped_pkts;
    assert!(!before.contains_key("other_device"), "{before:?}");
    forged.send_to(b"elsewhere", "192.0.2.1:51820").unwrap();
    tunnel.gateways[0].wait_until("it is dropped", |show| {
        show.dropped_pkts.get("other_device") == Some(&1)
    });
}
