// SPDX-License-Identifier: BSD-3-Clause
//! Emulated links: which packets cross them, which do not, and what the emulator reports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linkweir_gateway::show::metrics;
use nix::sys::signal::Signal;

use crate::place::{config, keygen, sealed, Emulated, Folder, Gateway, STRICT};

fn sum(way: &serde_json::Value, keys: &[&str]) -> u64 {
    keys.iter().map(|key| way[key].as_u64().unwrap()).sum()
}

const GONE: [&str; 4] = [
    "delivered_pkts",
    "dropped_limit_pkts",
    "lost_pkts",
    "left_pkts",
];

pub fn packets_cross_in_order_and_no_sooner_than_the_delay() {
    let link = Emulated::new(
        "rate = \"100Mbit\"\ndelay = \"30ms\"",
        "rate = \"10Mbit\"\ndelay = \"20ms\"",
    );
    for (one, two) in [
        ("192.0.2.1", "192.0.2.2"),
        ("[2001:db8::1]", "[2001:db8::2]"),
    ] {
        let a = link.here.socket(&format!("{one}:1000"));
        let b = link.there.socket(&format!("{two}:2000"));
        let begun = Instant::now();
        for number in 0..50 {
            a.send_to(&[number; 1000], format!("{two}:2000")).unwrap();
        }
        let mut buffer = [0; 2000];
        for number in 0..50 {
            let (count, from) = b.recv_from(&mut buffer).unwrap();
            assert_eq!((count, buffer[0]), (1000, number));
            b.send_to(&buffer[..count], from).unwrap();
        }
        for number in 0..50 {
            assert_eq!(a.recv(&mut buffer).unwrap(), 1000);
            assert_eq!(buffer[0], number);
        }
        // 50 ms of delay, and 50 packets of 1028 bytes at 10 Mbit/s.
        assert!(begun.elapsed() >= Duration::from_micros(50_000 + 41_120));
    }
    let report = link.report();
    for (way, delay_ns) in [(0, 30_000_000), (1, 20_000_000)] {
        let way = &report["directions"][way];
        assert!(sum(way, &["delivered_pkts"]) >= 100, "{report}");
        assert_eq!(sum(way, &GONE), sum(way, &["arrived_pkts"]), "{report}");
        assert_eq!(sum(way, &["delay_ns"]), delay_ns, "{report}");
    }
}

pub fn drops_and_losses_are_counted() {
    let link = Emulated::new(
        "rate = \"1Mbit\"\nlimit = \"20p\"",
        "rate = \"100Mbit\"\nloss = 1.0",
    );
    let a = link.here.socket("192.0.2.1:1000");
    let b = link.there.socket("192.0.2.2:2000");
    for number in 0..200 {
        a.send_to(&[number; 1400], "192.0.2.2:2000").unwrap();
    }
    let mut buffer = [0; 2000];
    for number in 0..10 {
        b.recv(&mut buffer).unwrap();
        assert_eq!(buffer[0], number, "the tail is dropped");
    }
    for _ in 0..100 {
        b.send_to(b"lost", "192.0.2.1:1000").unwrap();
    }
    a.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(a.recv(&mut buffer).is_err());
    let report = link.report();
    let there = &report["directions"][0];
    assert!(sum(there, &["dropped_limit_pkts"]) > 0, "{report}");
    assert_eq!(sum(there, &GONE), sum(there, &["arrived_pkts"]), "{report}");
    let back = &report["directions"][1];
    assert_eq!(sum(back, &["delivered_pkts"]), 0, "{report}");
    assert!(sum(back, &["lost_pkts"]) >= 100, "{report}");
}

pub fn a_tunnel_runs_over_an_emulated_link() {
    let link = Emulated::new(
        "rate = \"20Mbit\"\ndelay = \"25ms\"",
        "rate = \"20Mbit\"\ndelay = \"25ms\"",
    );
    let folder = Folder::new();
    let gateways = [(&link.here, 1), (&link.there, 2)].map(|(namespace, last)| {
        let file = folder.write(&format!("{last}.toml"), &config(&folder, last, STRICT));
        Gateway::start(namespace, &file, &folder.path(&format!("control{last}")))
    });
    let a = link.here.socket("10.77.0.1:1000");
    let b = link.there.socket("10.77.0.2:2000");
    let begun = Instant::now();
    a.send_to(b"question", "10.77.0.2:2000").unwrap();
    let mut buffer = [0; 100];
    let (count, from) = b.recv_from(&mut buffer).unwrap();
    b.send_to(&buffer[..count], from).unwrap();
    assert_eq!(a.recv(&mut buffer).unwrap(), 8);
    assert!(begun.elapsed() >= Duration::from_millis(50));
    drop(gateways);
}

pub fn feedback_follows_an_emulated_link() {
    let way = "rate = \"4Mbit\"\ndelay = \"10ms\"\nlimit = \"1000p\"";
    let link = Emulated::new(way, way);
    let folder = Folder::new();
    let publics = [1, 2].map(|last| keygen(&folder, last));
    let mut gateways = [(&link.here, 1), (&link.there, 2)].map(|(namespace, last)| {
        let public = &publics[usize::from(2 - last)];
        let says = match last {
            1 => "rate = \"20Mbit\"\nstale = \"3s\"\nfloor = \"1Mbit\"\nfeedback = { ceiling = \"40Mbit\" }",
            _ => "report = true",
        };
        let text = sealed(&config(&folder, last, STRICT), last, public)
            .replace("allowed_ips", &format!("{says}\nallowed_ips"));
        let file = folder.write(&format!("{last}.toml"), &text);
        Gateway::start(namespace, &file, &folder.path(&format!("control{last}")))
    });
    let a = link.here.socket("10.77.0.1:1000");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let sender = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            for _ in 0..4 {
                let _ = a.send_to(&[7; 1200], "10.77.0.2:2000");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    // 20 Mbit/s were too much.
    let show = gateways[0].wait_until("the capacity is found", |show| {
        show.peers[0].capacity_bps < 5_000_000
    });
    let feedback = show.peers[0].feedback.as_ref().unwrap();
    assert!(
        feedback.reports > 0 && feedback.received_bps < 5_000_000,
        "{show:?}"
    );
    // Not the floor, but what it carries, once the queue below is emptied.
    gateways[0].wait_until("what the link carries is known", |show| {
        (3_400_000..5_000_000).contains(&show.peers[0].capacity_bps)
    });
    assert!(metrics::text(&show).contains("linkweir_feedback_queue_seconds{"));
    // No reports arrive any more.
    gateways[1].signal(Signal::SIGKILL);
    gateways[1].ended();
    gateways[0].wait_until("the floor holds", |show| {
        show.peers[0].capacity_bps == 1_000_000
    });
    stop.store(true, Ordering::Relaxed);
    sender.join().unwrap();
}
