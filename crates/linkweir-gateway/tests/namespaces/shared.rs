// SPDX-License-Identifier: BSD-3-Clause
//! A hub whose peers share one link.
//!
//! ```text
//!                                  ┌ out1 192.0.2.1    ═══ out 192.0.2.2    ── gateway ── lw0 10.77.0.2 :peers[0]
//!   hub: lw0 10.77.0.1 ── gateway ─┤
//!                                  └ out2 198.51.100.1 ═══ out 198.51.100.2 ── gateway ── lw0 10.77.0.3 :peers[1]
//! ```

use std::fs;

use linkweir_gateway::metrics;
use nix::sys::signal::Signal;

use crate::place::{Folder, Gateway, Namespace};

const RATES: &str = "rate = \"1kbit\"\n";

/// What an end has in its file; `link` stands in its table, `peers` are its peers.
fn config(folder: &Folder, last: u8, link: &str, peers: &str) -> String {
    format!(
        r#"[gateway]
device = "lw0"
address = "10.77.0.{last}/24"
listen = "0.0.0.0:51820"
mode = "cleartext"
user = "root"
control = "{}"
[link]
{link}
[scheduler]
policy = "fifo"
[[class]]
name = "all"
limit = "1000p"
{peers}"#,
        folder.path(&format!("control{last}")).display()
    )
}

fn peer(name: &str, endpoint: &str, allowed: &str, rate: &str) -> String {
    format!("[[peer]]\nname = \"{name}\"\nendpoint = \"{endpoint}:51820\"\nallowed_ips = \"{allowed}\"\n{rate}\n")
}

pub fn peers_of_a_hub_share_one_link_by_their_air_time() {
    let hub = Namespace::new();
    let peers = [Namespace::new(), Namespace::new()];
    let folder = Folder::new();
    let nets = ["192.0.2", "198.51.100"];
    for ((peer, net), device) in peers.iter().zip(nets).zip(["out1", "out2"]) {
        hub.cable(device, peer);
        for (namespace, device, last) in [(&hub, device, 1), (peer, "out", 2)] {
            let address = format!("{net}.{last}/24");
            namespace.ip(&["address", "add", &address, "dev", device]);
            namespace.ip(&["link", "set", device, "up"]);
        }
    }
    let of_hub = |rates: [&str; 2]| {
        let both = peer("near", "192.0.2.2", "10.77.0.2/32", rates[0])
            + &peer("far", "198.51.100.2", "10.77.0.3/32", rates[1]);
        config(
            &folder,
            1,
            "across = { policy = \"pf\", tc = \"100s\" }",
            &both,
        )
    };
    let file = folder.write("1.toml", &of_hub([RATES, RATES]));
    let gateway = Gateway::start(&hub, &file, &folder.path("control1"));
    let ends = [2_u8, 3].map(|last| {
        let at = usize::from(last - 2);
        let towards = peer("hub", &format!("{}.1", nets[at]), "10.77.0.1/32", "");
        let text = config(&folder, last, "rate = \"1Gbit\"", &towards);
        let file = folder.write(&format!("{last}.toml"), &text);
        Gateway::start(&peers[at], &file, &folder.path(&format!("control{last}")))
    });

    gateway.set_capacity(0);
    let a = hub.socket("10.77.0.1:1000");
    let sockets = [
        peers[0].socket("10.77.0.2:2000"),
        peers[1].socket("10.77.0.3:2000"),
    ];
    for (at, to) in ["10.77.0.2:2000", "10.77.0.3:2000"].iter().enumerate() {
        // In portions: the device's own queue holds 500.
        for portion in 1..=4 {
            for _ in 0..100 {
                a.send_to(&[at as u8; 1400], to).unwrap();
            }
            gateway.wait_until("the portion waits", |show| {
                show.peers[at].classes[0].backlog_pkts >= 100 * portion
            });
        }
    }
    // Both channels begin at once.
    fs::write(&file, of_hub(["rate = \"2Mbit\"", "rate = \"1Mbit\""])).unwrap();
    gateway.signal(Signal::SIGHUP);
    let show = gateway.wait_until("half of one peer's are sent", |show| {
        show.peers[0].classes[0].sent_pkts >= 200
    });
    let sent = [0, 1].map(|at: usize| show.peers[at].classes[0].sent_pkts);
    // Equal times at 2 and 1 Mbit/s, to within a packet of each, 11.6 and 5.8 ms, and what is forgotten of 1.2 s in 100 s.
    let airtimes_ns = [0, 1].map(|at: usize| show.peers[at].across.as_ref().unwrap().airtime_ns);
    assert!(
        airtimes_ns[0].abs_diff(airtimes_ns[1]) <= 32_000_000,
        "{show:?}"
    );
    assert!(sent[0].abs_diff(2 * sent[1]) <= 6, "{show:?}");
    assert_eq!(show.across.as_deref(), Some("pf"));
    let text = metrics::text(&show);
    assert!(
        text.contains("linkweir_peer_airtime_seconds_total{device=\"lw0\",peer=\"far\"} "),
        "{text}"
    );
    for (at, socket) in sockets.iter().enumerate() {
        let mut buffer = [0; 2000];
        assert_eq!(socket.recv(&mut buffer).unwrap(), 1400);
        assert_eq!(usize::from(buffer[0]), at);
    }
    // One goes, another comes, and the third keeps what waits and how long it had the link.
    let left = peer("other", "192.0.2.3", "10.77.0.4/32", "rate = \"2Mbit\"")
        + &peer("far", "198.51.100.2", "10.77.0.3/32", "rate = \"1Mbit\"");
    let text = config(
        &folder,
        1,
        "across = { policy = \"pf\", tc = \"100s\" }",
        &left,
    );
    fs::write(&file, text).unwrap();
    gateway.signal(Signal::SIGHUP);
    let show = gateway.wait_until("another has come", |show| show.peers[0].name == "other");
    assert!(
        show.peers[1].across.as_ref().unwrap().airtime_ns >= airtimes_ns[1],
        "{show:?}"
    );
    assert_eq!(show.peers[0].across.as_ref().unwrap().airtime_ns, 0);
    gateway.set_capacity(100_000_000);
    let show = gateway.wait_until("nothing waits", |show| {
        show.peers[1].classes[0].backlog_pkts == 0
    });
    assert_eq!(show.peers[1].classes[0].sent_pkts, 400, "{show:?}");
    drop(ends);
}
