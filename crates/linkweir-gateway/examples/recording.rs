// SPDX-License-Identifier: BSD-3-Clause
//! Packets through the queues towards a peer, with and without the flight recorder, to count what recording costs:
//!
//! ```text
//! cargo build --release -p linkweir-gateway --example recording
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/recording counts 100000
//! ```
//!
//! The first argument is `off`, `counts` or `packets`, the second the number of packets. The difference of two runs with other
//! numbers leaves the start out.

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;

use linkweir_gateway::config;
use linkweir_plane::link::{Link, Next};
use linkweir_plane::recorder::{Recorder, Tap};

const CLASSES: &str = r#"[gateway]
device = "lw0"
listen = "192.0.2.1:51820"
mode = "cleartext"
[link]
rate = "1Gbit"
[scheduler]
policy = "pss"
[[class]]
name = "voice"
level = 0
match = [{ dscp = "EF" }]
[[class]]
name = "video"
level = 1
low_level = 3
rate = "400Mbit"
match = [{ dscp = "AF41" }]
[[class]]
name = "rest"
level = 2
[[peer]]
name = "ship"
endpoint = "192.0.2.2:51820"
allowed_ips = "10.77.0.2/32"
"#;
/// Time of a packet of 1000 bytes at 1 Gbit/s, ns.
const PACKET_NS: u64 = 8000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, mode, pkts] = &arguments[..] else {
        return Err("recording off|counts|packets NUMBER".into());
    };
    let config = config::parse(CLASSES, Path::new("recording.toml"))?;
    let mut link = Link::new(0, config.link_setup(&config.peers[0].capacity))?;
    let recorder = Rc::new(RefCell::new(Recorder::new(0, mode == "packets")));
    if mode != "off" {
        link.record_to(Some(Tap::new(recorder.clone(), 0, config.classes.len())));
    }
    let (mut now_ns, mut bytes) = (0, 0);
    for number in 0..pkts.parse()? {
        let class = [0, 1, 1, 2][number as usize % 4];
        link.arrive(now_ns, class, 1000, &[0x45; 40]);
        now_ns += PACKET_NS;
        while let Next::Send(packet, _) = link.next(now_ns, |_| false) {
            bytes += packet.len();
        }
        if recorder.borrow().due_ns().is_some_and(|ns| ns <= now_ns) {
            recorder.borrow_mut().take(now_ns).for_each(drop);
        }
    }
    println!("{bytes} bytes were sent");
    Ok(())
}
