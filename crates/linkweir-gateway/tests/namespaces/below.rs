// SPDX-License-Identifier: BSD-3-Clause
//! Interfaces that push back: a shaper of the kernel (tbf) behind the cable's device.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use linkweir_gateway::show::figures::Show;
use linkweir_gateway::show::metrics;
use nix::sys::signal::Signal;

use crate::carry::{connected, ASKS};
use crate::life::comes_through;
use crate::place::{rests, set_tos, Folder, Namespace, Tunnel, STRICT};
use crate::PATIENCE;

/// What a packet of 1000 bytes takes of the shaper's rate: with its headers inside and outside, and those of Ethernet.
const SHAPED_BYTES: u32 = 1000 + 28 + 28 + 14;

/// Whether the kernel has the shaper that makes a slow interface.
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

/// Limits the device below to this rate, with room for `limit` bytes. It drops packets of more than `burst` bytes.
fn slow_down(here: &Namespace, rate: &str, burst: &str, limit: &str) {
    let shaper = ["rate", rate, "burst", burst, "limit", limit];
    let output = here.run(
        "tc",
        &[&["qdisc", "add", "dev", "out", "root", "tbf"][..], &shaper].concat(),
    );
    assert!(output.status.success(), "{output:?}");
}

/// A tunnel from behind an interface of this rate whose own queue holds `limit` bytes. The gateway's own capacity is no
/// limit.
fn behind(rate: &str, limit: &str, below: &str) -> Tunnel {
    let link = format!("overhead = \"14B\"\nbelow = \"{below}\"");
    let tunnel = with_link(&link);
    slow_down(&tunnel.here, rate, "3000", limit);
    tunnel
}

/// A tunnel whose first end has these keys in `[link]`, too.
fn with_link(says: &str) -> Tunnel {
    Tunnel::clear(STRICT, |text, last| match last {
        1 => text.replace("[link]\n", &format!("[link]\n{says}\n")),
        _ => text,
    })
}

/// How many packets the shaper has dropped.
fn dropped_below(here: &Namespace) -> u64 {
    let output = here.run("tc", &["-s", "qdisc", "show", "dev", "out"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let count = text
        .split("dropped ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    count
        .and_then(|count| count.parse().ok())
        .expect("tc counts drops")
}

/// Sends 300 packets and then an urgent one through an interface of 1 Mbit/s. Those before it are less than 100 that wait in
/// the socket and the interface, and what the interface has sent until the urgent one came.
fn urgent_goes_first(tunnel: &Tunnel) {
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    let begun = Instant::now();
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
    tunnel.gateways[0].wait_until("the urgent one has come", |show| {
        show.peers[0].classes[0].arrived_pkts == 1
    });
    let sent_pkts = begun.elapsed().as_secs_f64() * 1e6 / (8.0 * f64::from(SHAPED_BYTES));
    let mut buffer = [0; 2000];
    let mut before = None;
    for at in 0..301 {
        assert_eq!(b.recv(&mut buffer).unwrap(), 1000, "packet {at}");
        if buffer[0] == 1 {
            before = Some(at);
        }
    }
    let before = before.expect("the urgent one came");
    assert!(
        (before as f64) < 100.0 + sent_pkts,
        "{before} of 300 were sent first, {sent_pkts} could be"
    );
}

pub fn packets_queue_under_the_policy_when_the_interface_is_full() {
    // The interface's queue has room for all that was sent, and each packet takes 8.6 ms.
    let tunnel = behind("1mbit", "2mb", "16kB");
    urgent_goes_first(&tunnel);
    let show = tunnel.gateways[0].show();
    let below = show.below.as_ref().unwrap();
    assert!(below.fulls > 0, "{show:?}");
    let (told_bps, bps) = (show.peers[0].told_bps, below.capacity_bps.unwrap());
    assert!(told_bps.abs_diff(bps) <= bps / 50, "{show:?}");
    // The shaper may send 3000 bytes at once, and after that no more than its rate.
    let most_bps = 1_000_000 + 2 * 3000 * 8 * 10;
    assert!((1..most_bps).contains(&bps), "{show:?}");
    assert!(metrics::text(&show).contains("linkweir_below_capacity_bytes_per_second{"));
}

pub fn datagrams_dropped_by_the_interface_are_sent_again() {
    // The interface's queue holds four packets and the socket sixteen, so the interface is what is full.
    let tunnel = behind("1mbit", "5000", "32kB");
    urgent_goes_first(&tunnel);
    let show = tunnel.gateways[0].show();
    assert_eq!(
        show.peers[0].dropped_pkts.get("underlay_down"),
        None,
        "{show:?}"
    );
    assert!(dropped_below(&tunnel.here) > 0);
}

/// A packet that is always dropped is given up, and those behind it are sent.
pub fn datagrams_the_interface_always_drops_are_given_up() {
    let tunnel = with_link("below = \"16kB\"");
    slow_down(&tunnel.here, "10mbit", "1000", "100000");
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    // Packets that wait for the neighbour's address are dropped unreported.
    comes_through(&a, &b, "10.77.0.2:2000", b"at first");
    // At another port, as the first word may come more than once.
    let b = tunnel.there.socket("10.77.0.2:2001");
    for bytes in [1400, 1400, 100, 1400, 101] {
        a.send_to(&[7; 1400][..bytes], "10.77.0.2:2001").unwrap();
    }
    let mut buffer = [0; 2000];
    for bytes in [100, 101] {
        assert_eq!(b.recv(&mut buffer).unwrap(), bytes);
    }
    let dropped = &tunnel.gateways[0].show().peers[0].dropped_pkts;
    assert_eq!(dropped.get("underlay_down"), Some(&3), "{dropped:?}");
}

/// Also when other events wake the gateway.
pub fn a_dropped_datagram_is_retried_once_a_millisecond() {
    let tunnel = behind("1kbit", "5000", "32kB");
    let a = tunnel.here.socket("10.77.0.1:1000");
    let begun = Instant::now();
    for _ in 0..100 {
        a.send_to(&[0; 1000], "10.77.0.2:2000").unwrap();
    }
    let gateway = &tunnel.gateways[0];
    gateway.wait_until("there is no room", |show| {
        show.below.as_ref().unwrap().fulls > 0 && show.peers[0].classes[1].backlog_pkts > 0
    });
    for _ in 0..2000 {
        gateway.show();
    }
    let dropped = dropped_below(&tunnel.here);
    let most = begun.elapsed().as_millis() as u64 + 1;
    // Some are the kernel's own.
    assert!(dropped <= most + 20, "{dropped} were dropped in {most} ms");
}

/// Other work is done while nothing may be sent.
pub fn programs_are_started_while_the_interface_has_no_room() {
    let rates = Folder::new();
    let file = rates.write("runs", "");
    let command = format!(
        "command = [\"sh\", \"-c\", \"echo 1Gbit; echo run >> {}\"]",
        file.display()
    );
    let tunnel = with_link(&format!("below = \"16kB\"\n{command}"));
    slow_down(&tunnel.here, "1kbit", "3000", "2mb");
    // Nothing else may wake it, such as the kernel looking for routers.
    tunnel.here.ip(&["-6", "address", "flush", "dev", "lw0"]);
    let a = tunnel.here.socket("10.77.0.1:1000");
    for _ in 0..100 {
        a.send_to(&[0; 1000], "10.77.0.2:2000").unwrap();
    }
    tunnel.gateways[0].wait_until("there is no room", |show| {
        show.below.as_ref().unwrap().fulls > 0 && show.peers[0].classes[1].backlog_pkts > 0
    });
    let runs = || fs::read_to_string(&file).unwrap().lines().count();
    let (before, begun) = (runs(), Instant::now());
    while runs() < before + 4 {
        assert!(begun.elapsed() < PATIENCE, "it is not started again");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The idle time between two bursts is not part of a measurement.
pub fn an_idle_interface_is_not_measured_as_slow() {
    let tunnel = behind("1mbit", "2mb", "16kB");
    let gateway = &tunnel.gateways[0];
    let a = tunnel.here.socket("10.77.0.1:1000");
    // The gateway finds all of them together; packets that come one by one would leave in between.
    let send = |pkts: u64| {
        let before = gateway.show().peers[0].classes[1].sent_pkts;
        gateway.signal(Signal::SIGSTOP);
        for _ in 0..pkts {
            a.send_to(&[0; 1000], "10.77.0.2:2000").unwrap();
        }
        gateway.signal(Signal::SIGCONT);
        gateway.wait_until("all has left", |show| {
            let class = &show.peers[0].classes[1];
            class.backlog_pkts == 0 && class.sent_pkts >= before + pkts
        })
    };
    let below = |show: &Show| {
        let below = show.below.as_ref().unwrap();
        (below.capacity_bps.unwrap_or(0), below.fulls)
    };
    // A stalled machine makes the interface look slow now and then; counting idle time would do so always.
    let begun = Instant::now();
    let mut low = Vec::new();
    loop {
        let (_, fulls) = below(&send(60));
        thread::sleep(Duration::from_millis(600));
        // More than the socket and the shaper take at once, and less than 0.1 s of waiting.
        let (bps, more) = below(&send(24));
        if more == fulls {
            // The gateway itself was kept waiting in between.
            assert!(begun.elapsed() < PATIENCE, "there was room for all");
            continue;
        }
        if bps >= 500_000 {
            return;
        }
        low.push(bps);
        assert!(low.len() < 5, "{low:?}");
    }
}

/// Datagrams that wait below for a peer that a reload removes are dropped, and sending continues.
pub fn unsent_datagrams_of_a_removed_peer_are_dropped() {
    const GOES: &str = "[[peer]]\nname = \"goes\"\nendpoint = \"192.0.2.3:51820\"\nallowed_ips = \"10.99.0.0/24\"\n";
    for limit in ["2mb", "5000"] {
        let tunnel = Tunnel::clear(STRICT, |before, last| match last {
            1 => {
                let link = "[link]\nbelow = \"16kB\"\nacross = { policy = \"drr\" }\n";
                before.replace("[link]\n", link) + GOES
            }
            _ => before,
        });
        let file = tunnel.folder.path("1.toml");
        let text = fs::read_to_string(&file).unwrap();
        slow_down(&tunnel.here, "1kbit", "3000", limit);
        // No host answers for this address.
        let far = ["lladdr", "02:00:00:00:00:03", "dev", "out"];
        tunnel
            .here
            .ip(&[&["neighbour", "add", "192.0.2.3"][..], &far].concat());
        let a = tunnel.here.socket("10.77.0.1:1000");
        for _ in 0..100 {
            a.send_to(&[0; 1000], "10.99.0.1:2000").unwrap();
        }
        let gateway = &tunnel.gateways[0];
        gateway.wait_until("there is no room", |show| {
            show.below.as_ref().unwrap().fulls > 0 && show.peers[1].classes[1].backlog_pkts > 0
        });
        fs::write(&file, text.replace(GOES, "")).unwrap();
        gateway.signal(Signal::SIGHUP);
        gateway.wait_until("it has gone", |show| show.peers.len() == 1);
        tunnel.here.ip(&["-6", "address", "flush", "dev", "lw0"]);
        rests(gateway);
        let output = tunnel
            .here
            .run("tc", &["qdisc", "del", "dev", "out", "root"]);
        assert!(output.status.success(), "{output:?}");
        rests(gateway);
        let b = tunnel.there.socket("10.77.0.2:2000");
        comes_through(&a, &b, "10.77.0.2:2000", b"after");
    }
}

/// Where the socket reports drops, the system also queues ICMP errors, and wakes the gateway until they are read.
pub fn icmp_errors_are_read_and_discarded() {
    let mut tunnel = with_link("below = \"16kB\"");
    let a = tunnel.here.socket("10.77.0.1:1000");
    let b = tunnel.there.socket("10.77.0.2:2000");
    comes_through(&a, &b, "10.77.0.2:2000", b"at first");
    tunnel.gateways[1].signal(Signal::SIGKILL);
    tunnel.gateways[1].ended();
    let gateway = &tunnel.gateways[0];
    let sent = |show: &Show| show.peers[0].classes[1].sent_pkts;
    let before = sent(&gateway.show());
    // No socket listens there now, and the kernel reports that each time.
    for _ in 0..100 {
        let _ = a.send_to(b"lost", "10.77.0.2:2000");
    }
    gateway.wait_until("all have left", |show| sent(show) >= before + 100);
    rests(gateway);
    tunnel.restart(2);
    comes_through(&a, &b, "10.77.0.2:2000", b"after");
}

/// A full interface does not keep an end from sending reports.
pub fn reports_come_from_behind_a_full_interface() {
    let tunnel = Tunnel::clear(STRICT, |text, last| match last {
        1 => text
            .replace("[link]\n", "[link]\nbelow = \"16kB\"\n")
            .replace("allowed_ips", "report = true\nallowed_ips"),
        _ => text.replace("allowed_ips", &format!("{ASKS}\nallowed_ips")),
    });
    slow_down(&tunnel.here, "1mbit", "3000", "2mb");
    let a = tunnel.here.socket("10.77.0.1:1000");
    let over = Arc::new(AtomicBool::new(false));
    let flood = {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                for _ in 0..5 {
                    let _ = a.send_to(&[0; 1000], "10.77.0.2:2000");
                }
                thread::sleep(Duration::from_millis(5));
            }
        })
    };
    let [one, two] = &tunnel.gateways;
    one.wait_until("there is no room", |show| {
        show.below.as_ref().unwrap().fulls > 0
    });
    let reports = |show: &Show| show.peers[0].feedback.as_ref().unwrap().reports;
    let before = reports(&two.show());
    two.wait_until("reports come", |show| reports(show) >= before + 3);
    over.store(true, Ordering::Relaxed);
    flood.join().unwrap();
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
