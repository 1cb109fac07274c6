// SPDX-License-Identifier: BSD-3-Clause
//! The queues towards a peer with the flight recorder, in virtual time. Packets of 1000 bytes, to count what recording costs:
//!
//! ```text
//! cargo build --release -p linkweir-gateway --example recording
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/recording counts 100000
//! ```
//!
//! The first argument is `off`, `counts` or `packets`, the second the number of packets. The difference of two runs with other
//! numbers leaves the start out.
//!
//! With a configuration, and a file with a line `AT_NS,CLASS,BYTES,TCP` per packet in order of time, it writes a recording of
//! so many seconds:
//!
//! ```text
//! target/release/examples/recording counts SECONDS ground.toml arrivals.csv FILE.lwrec
//! ```

use std::error::Error;
use std::fs;

use virtual_link::{Arrival, Recorded, VirtualLink};

#[path = "../tests/virtual_link/mod.rs"]
mod virtual_link;

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

const USAGE: &str = "write: recording off|counts|packets NUMBER [CONFIG ARRIVALS FILE]";

/// The packet of a line.
fn arrival(line: &str) -> Result<Arrival, Box<dyn Error>> {
    let [at_ns, class, bytes, tcp] = line.split(',').collect::<Vec<_>>()[..] else {
        return Err(format!("\"{line}\" is not AT_NS,CLASS,BYTES,TCP").into());
    };
    Ok(Arrival {
        at_ns: at_ns.parse()?,
        class: class.parse()?,
        bytes: bytes.parse()?,
        tcp: tcp == "1",
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let what = match arguments.first().map(String::as_str) {
        Some("off") => Recorded::Nothing,
        Some("counts") => Recorded::Counts,
        Some("packets") => Recorded::Packets,
        _ => return Err(USAGE.into()),
    };
    match &arguments[1..] {
        [pkts] => {
            let pkts: u64 = pkts.parse()?;
            let arrivals = (0..pkts).map(|number| Arrival {
                at_ns: number * PACKET_NS,
                class: [0, 1, 1, 2][number as usize % 4],
                bytes: 1000,
                tcp: false,
            });
            let mut link = VirtualLink::new(CLASSES, what)?;
            link.serve(arrivals, pkts * PACKET_NS);
            println!("{} bytes were sent", link.sent_bytes);
        }
        [seconds, config, arrivals, file] => {
            let lines = fs::read_to_string(arrivals)?;
            let arrivals = lines.lines().map(arrival).collect::<Result<Vec<_>, _>>()?;
            let mut link = VirtualLink::new(&fs::read_to_string(config)?, what)?;
            link.serve(arrivals, seconds.parse::<u64>()? * 1_000_000_000);
            fs::write(file, link.recording(1_769_824_800_000_000_000))?;
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}
