// SPDX-License-Identifier: BSD-3-Clause
//! Voice on links so slow that one large packet takes longer than a call would like to wait.

mod virtual_link;

use virtual_link::{Arrival, Recorded, VirtualLink};

const SECOND_NS: u64 = 1_000_000_000;

/// A link of this rate with voice first, and the rest.
fn link(rate: &str) -> VirtualLink {
    let text = format!(
        "[gateway]\ndevice = \"lw0\"\nlisten = \"0.0.0.0:51820\"\nmode = \"cleartext\"\n\
         [link]\nrate = \"{rate}\"\n[scheduler]\npolicy = \"strict\"\n\
         [[class]]\nname = \"ef\"\nmatch = [{{ dscp = \"EF\" }}]\nlevel = 0\n[[class]]\nname = \"rest\"\nlevel = 1\n\
         [[peer]]\nname = \"hub\"\nendpoint = \"192.0.2.1:51820\"\nallowed_ips = \"10.78.0.0/24\"\n"
    );
    VirtualLink::new(&text, Recorded::Nothing).unwrap()
}

/// Voice in front of packets of 1300 bytes that always wait: each of its packets leaves, however the times fall together.
#[test]
fn packets_of_voice_outlive_a_large_packet() {
    for (rate, every_ns) in [
        ("16kbit", 5 * SECOND_NS + 17_000_000),
        ("32kbit", 3 * SECOND_NS + 13_000_000),
        ("64kbit", SECOND_NS + 7_000_000),
    ] {
        let packet = |at_ns: u64, class: usize, bytes: u32| Arrival {
            at_ns,
            class,
            bytes,
            tcp: false,
        };
        let voice = (1..=36).map(|at| packet(at * every_ns, 0, 200));
        let rest = (0..900).map(|_| packet(0, 1, 1300));
        let mut link = link(rate);
        link.serve(rest.chain(voice), 40 * every_ns);
        assert_eq!(link.sent_and_aged_pkts(0), (36, 0), "{rate}");
        assert!(
            link.sent_and_aged_pkts(1).0 > 200,
            "{rate}: the link was busy"
        );
    }
}
