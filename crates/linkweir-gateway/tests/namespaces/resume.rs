// SPDX-License-Identifier: BSD-3-Clause
//! Traffic resumes within a second after both ends are up again, whatever had failed.
//!
//! The second is counted in attempts of 20 ms, so that a stalled machine is not taken for a stalled gateway: in each attempt that
//! fails, both gateways have answered at their control sockets, so they were running.

use std::fs;
use std::time::{Duration, Instant};

use linkweir_gateway::show::figures::Show;
use nix::sys::signal::Signal;

use crate::life::comes_through;
use crate::place::{environment, pss, Gateway, Socket, Tunnel, SLOW, STRICT};
use crate::PATIENCE;

const ATTEMPT: Duration = Duration::from_millis(20);
/// Attempts in a second.
const ATTEMPTS: usize = 50;
const TO: &str = "10.77.0.2:2000";
const BACK: &str = "10.77.0.1:1000";

/// Sends until a datagram arrives, within a second.
fn resumes(gateways: &[Gateway; 2], a: &Socket, b: &Socket, to: &str, word: &[u8]) {
    b.set_read_timeout(Some(ATTEMPT)).unwrap();
    let mut buffer = [0; 2000];
    // Late datagrams of earlier attempts are ignored.
    let mut comes = || loop {
        match b.recv(&mut buffer) {
            Ok(count) if buffer[..count] == *word => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    };
    let came = (0..ATTEMPTS).position(|_| {
        let _ = a.send_to(word, to);
        comes() || {
            gateways.iter().for_each(|gateway| drop(gateway.show()));
            false
        }
    });
    let text = String::from_utf8_lossy(word);
    assert!(came.is_some(), "{text}: nothing within {ATTEMPTS} attempts");
}

fn both_ways(tunnel: &Tunnel, word: &str) {
    let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
    resumes(&tunnel.gateways, &a, &b, TO, word.as_bytes());
    resumes(&tunnel.gateways, &b, &a, BACK, word.as_bytes());
}

fn kill(gateway: &mut Gateway) {
    gateway.signal(Signal::SIGKILL);
    gateway.ended();
}

fn kinds(change: fn(String) -> String) -> [Tunnel; 2] {
    [
        Tunnel::changed(STRICT, change),
        Tunnel::sealed(STRICT, |text, _| change(text)),
    ]
}

pub fn whichever_end_starts_first() {
    for mut tunnel in kinds(|text| text) {
        for [first, second] in [[1, 2], [2, 1]] {
            tunnel.gateways.iter_mut().for_each(kill);
            tunnel.restart(first);
            // The first end has traffic long before the second runs.
            let (namespace, own, other) = match first {
                1 => (&tunnel.here, BACK, TO),
                _ => (&tunnel.there, TO, BACK),
            };
            let early = namespace.socket(own);
            for _ in 0..100 {
                let _ = early.send_to(b"early", other);
                std::thread::sleep(ATTEMPT);
            }
            drop(early);
            tunnel.restart(second);
            both_ways(&tunnel, "after the start");
        }
    }
}

pub fn after_either_end_was_killed() {
    for mut tunnel in kinds(|text| text) {
        both_ways(&tunnel, "at first");
        for end in [1, 2, 2, 1] {
            kill(&mut tunnel.gateways[end - 1]);
            tunnel.restart(end);
            both_ways(&tunnel, "after a kill");
        }
    }
}

/// The killed end had no configured endpoint for the other, but received from it before.
pub fn after_a_kill_of_an_end_without_configured_endpoint() {
    let mut tunnel = Tunnel::sealed(STRICT, |text, last| match last {
        1 => text.replace("endpoint = \"192.0.2.2:51820\"\n", ""),
        _ => text,
    });
    both_ways(&tunnel, "at first");
    for _ in 0..2 {
        let peers = tunnel.folder.path("control1.peers");
        let begun = Instant::now();
        while !fs::read_to_string(&peers).is_ok_and(|text| text.ends_with(" 192.0.2.2:51820\n")) {
            assert!(
                begun.elapsed() < PATIENCE,
                "where the other is was not kept"
            );
            std::thread::sleep(ATTEMPT);
        }
        kill(&mut tunnel.gateways[0]);
        tunnel.restart(1);
        both_ways(&tunnel, "after a kill");
    }
}

pub fn after_a_device_below_or_above_was_down() {
    for tunnel in kinds(|text| text) {
        both_ways(&tunnel, "at first");
        for device in ["out", "lw0"] {
            for namespace in [&tunnel.here, &tunnel.there] {
                let (a, b) = (tunnel.here.socket(BACK), tunnel.there.socket(TO));
                namespace.ip(&["link", "set", device, "down"]);
                for _ in 0..20 {
                    let _ = a.send_to(b"lost", TO);
                    let _ = b.send_to(b"lost", BACK);
                }
                namespace.ip(&["link", "set", device, "up"]);
                drop((a, b));
                both_ways(&tunnel, &format!("after {device} was down"));
            }
        }
    }
}

/// `LINKWEIR_OUTAGE_S` is how long the outage lasts. After a minute the protocol has begun handshakes that could not be
/// answered.
pub fn after_an_outage_of_the_link() {
    let outage_s = environment("LINKWEIR_OUTAGE_S", 4);
    let tunnels = kinds(|text| text);
    for tunnel in &tunnels {
        both_ways(tunnel, "at first");
        tunnel.there.ip(&["link", "set", "out", "down"]);
    }
    let sockets = tunnels
        .each_ref()
        .map(|tunnel| (tunnel.here.socket(BACK), tunnel.there.socket(TO)));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(outage_s) {
        for (a, b) in &sockets {
            let _ = a.send_to(b"lost", TO);
            let _ = b.send_to(b"lost", BACK);
        }
        std::thread::sleep(5 * ATTEMPT);
    }
    drop(sockets);
    for tunnel in &tunnels {
        tunnel.there.ip(&["link", "set", "out", "up"]);
        both_ways(tunnel, "after the outage");
    }
}

/// Empty datagrams and rubbish between genuine ones, from the peer's own machine.
pub fn among_rubbish() {
    for tunnel in kinds(|text| text) {
        both_ways(&tunnel, "before");
        let stranger = tunnel.there.socket("192.0.2.2:4000");
        for round in 0..200_usize {
            for rubbish in [
                &b""[..],
                &[0x45; 1400],
                &[4, 0, 0, 0],
                &[1, 0, 0, 0],
                &[0xff; 148],
            ] {
                stranger.send_to(rubbish, "192.0.2.1:51820").unwrap();
            }
            if round % 50 == 0 {
                both_ways(&tunnel, "between");
            }
        }
        both_ways(&tunnel, "after");
    }
}

/// The numbers of the next datagrams.
fn numbers(socket: &Socket, wanted: usize) -> Vec<u32> {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 2000];
    (0..wanted)
        .map(|at| {
            let count = socket.recv(&mut buffer);
            count.unwrap_or_else(|error| panic!("packet {at} of {wanted} did not come: {error}"));
            u32::from_be_bytes(buffer[..4].try_into().unwrap())
        })
        .collect()
}

/// A reload every few packets while two classes are kept backlogged: all arrive, each once, in order.
pub fn a_reload_under_load_loses_nothing() {
    for tunnel in kinds(|text| text.replace("rate = \"1Gbit\"", "rate = \"20Mbit\"")) {
        let gateway = &tunnel.gateways[0];
        let file = tunnel.folder.path("1.toml");
        let text = fs::read_to_string(&file).unwrap();
        let receivers = [
            tunnel.there.socket(TO),
            tunnel.there.socket("10.77.0.2:5060"),
        ];
        comes_through(&tunnel.here.socket(BACK), &receivers[0], TO, b"word");
        let before = gateway.show().peers[0].classes.clone();
        let sender = tunnel.here.socket("10.77.0.1:3000");
        let (rounds, each) = (40_u32, 50_u32);
        let readers = receivers.map(|receiver| {
            std::thread::spawn(move || {
                let mut come = Vec::new();
                while come.len() < (rounds * each) as usize {
                    let number = numbers(&receiver, 1)[0];
                    // A late datagram of the first attempts.
                    if number != u32::from_be_bytes(*b"word") {
                        come.push(number);
                    }
                }
                come
            })
        });
        for round in 0..rounds {
            for number in round * each..(round + 1) * each {
                let mut datagram = [0; 1000];
                datagram[..4].copy_from_slice(&number.to_be_bytes());
                for to in [TO, "10.77.0.2:5060"] {
                    sender.send_to(&datagram, to).unwrap();
                }
            }
            let rate = ["20Mbit", "19Mbit", "25Mbit"][round as usize % 3];
            let limit = ["900p", "1000p"][round as usize % 2];
            let changed = text
                .replace("rate = \"20Mbit\"", &format!("rate = \"{rate}\""))
                .replace("limit = \"1000p\"", &format!("limit = \"{limit}\""));
            fs::write(&file, changed).unwrap();
            gateway.signal(Signal::SIGHUP);
            // Neither the device's own queue of 500 packets nor a class overflows.
            gateway.wait_until("there is room", |show| {
                let classes = &show.peers[0].classes;
                let arrived = |at: usize| classes[at].arrived_pkts - before[at].arrived_pkts;
                (0..2).all(|at| arrived(at) >= u64::from((round + 1) * each))
                    && classes.iter().all(|class| class.backlog_pkts < 700)
            });
        }
        for reader in readers {
            let come = reader.join().expect("all came");
            assert_eq!(come, (0..rounds * each).collect::<Vec<u32>>());
        }
        let show = gateway.show();
        for class in &show.peers[0].classes {
            assert_eq!(
                (class.dropped_limit_pkts, class.dropped_policy_pkts),
                (0, 0)
            );
        }
    }
}

/// The credit of a class that sent ahead falls by its reserved rate and by nothing else, also across reloads.
pub fn a_reload_keeps_the_credit() {
    let tunnel = Tunnel::new(&pss(SLOW));
    let gateway = &tunnel.gateways[0];
    let (a, b) = (
        tunnel.here.socket("10.77.0.1:3000"),
        tunnel.there.socket(TO),
    );
    for _ in 0..30 {
        a.send_to(&[7; 1000], TO).unwrap();
    }
    numbers(&b, 30);
    let credit = || {
        let show = gateway.show();
        (show.uptime_s, show.peers[0].classes[1].state["credit_bits"])
    };
    let (first_s, first_bits) = credit();
    assert!(first_bits > 0, "it sent ahead: {first_bits}");
    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    for (round, limit) in ["800p", "700p", "600p"].into_iter().enumerate() {
        let changed = text.replace("900p", limit).replace(
            "rate = \"1Gbit\"",
            &format!("rate = \"{}Mbit\"", 500 + round),
        );
        fs::write(&file, changed).unwrap();
        gateway.signal(Signal::SIGHUP);
        gateway.wait_until("the reload", |show| {
            show.peers[0].capacity_bps == (500 + round as u64) * 1_000_000
        });
        let (now_s, bits) = credit();
        // 10 kbit/s are reserved; the credit shown is rounded.
        let fallen = (now_s - first_s) * 10_000.0;
        let off = (first_bits - bits) as f64 - fallen;
        assert!(
            off.abs() <= 2.0,
            "{first_bits} fell to {bits} in {} s",
            now_s - first_s
        );
    }
}

/// The same of a class that sends and has more to send: what it sent is added, and nothing else.
pub fn a_reload_under_load_keeps_the_credit() {
    let begun = Instant::now();
    // On a machine that stalls all may go before the first reload.
    while reloads_under_load() == 0 {
        assert!(begun.elapsed() < PATIENCE, "all had gone before");
    }
}

/// Reloads a few times while a class sends, and checks its credit; returns in how many of them it had more to send.
fn reloads_under_load() -> u32 {
    let slow = |rate: &str| format!("rate = \"{rate}\"");
    let tunnel = Tunnel::changed(&pss(SLOW), |text| {
        text.replace(&slow("1Gbit"), &slow("500kbit"))
    });
    let gateway = &tunnel.gateways[0];
    let file = tunnel.folder.path("1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let a = tunnel.here.socket("10.77.0.1:3000");
    // 120 packets of 1056 bytes, 2 s of the link, and less than the 100 of 1514 that may go ahead at the high level.
    for _ in 0..120 {
        a.send_to(&[7; 1000], TO).unwrap();
    }
    let af = |show: &Show| {
        let class = &show.peers[0].classes[1];
        let bits = class.state["credit_bits"] - 8 * class.sent_bytes as i64;
        (show.uptime_s, bits, class.backlog_pkts)
    };
    let show = gateway.wait_until("some were sent", |show| {
        show.peers[0].classes[1].sent_pkts >= 5
    });
    let (first_s, first_bits, _) = af(&show);
    let mut loaded = 0;
    for kbit in [510, 520, 530, 540, 550] {
        fs::write(&file, text.replace("500kbit", &format!("{kbit}kbit"))).unwrap();
        gateway.signal(Signal::SIGHUP);
        let show = gateway.wait_until("the reload", |show| {
            show.peers[0].capacity_bps == kbit * 1000
        });
        let (now_s, bits, backlog_pkts) = af(&show);
        loaded += u32::from(backlog_pkts > 0);
        // 10 kbit/s are reserved: 169 bits in the 17 ms of the packet that is under way, which counts from its end.
        let fallen = (now_s - first_s) * 10_000.0;
        let off = (first_bits - bits) as f64 - fallen;
        assert!(off.abs() <= 171.0, "{kbit}: off by {off} bits, {show:?}");
    }
    loaded
}
