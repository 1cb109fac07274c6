// SPDX-License-Identifier: BSD-3-Clause
//! Fuzzes a link that a program drives. The first byte of an input chooses the link; each operation is four bytes: what to do,
//! how long after the last one, the class and the length. Whatever they are, each packet comes out at most once, time and counts
//! are right, nothing happens before [`Link::next_ns`], and a second link does the same although it is asked at the end only.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linkweir_link::{Link, Packet};

/// Links with what may become of packets on them. The last two sort L4S packets: in a class, and into a class.
const LINKS: [&str; 10] = [
    "[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"fifo\"\n",
    "[link]\nrate = \"1Mbit\"\ndelay = \"30ms\"\nloss = 0.2\nring = 4\n[scheduler]\npolicy = \"strict\"\n",
    "[link]\nrate = \"1Mbit\"\nloss = { mean = \"20%\", burst = \"3p\" }\nreorder = { probability = 0.3, delay = \"9ms\" }\n[scheduler]\npolicy = \"drr\"\n",
    "[link]\nrate = { steps = [[\"0s\", \"1Mbit\"], [\"50ms\", \"0bit\"], [\"90ms\", \"9kbit\"]] }\nfollow = true\n[scheduler]\npolicy = \"wrr\"\n",
    "[link]\nrate = \"1Mbit\"\ndelay = \"9ms\"\n[link.satellite]\npacket = \"210B\"\nesn0_db = 9\nreorder = \"per_flow\"\n[scheduler]\npolicy = \"codes\"\n",
    "[link]\ndelay = \"9ms\"\n[link.beam]\nsymbol_rate = \"200kBd\"\nclear_sky_esn0_db = { min = 1.0, max = 9.0 }\n[scheduler]\npolicy = \"pf\"\n",
    "[link]\nrate = { mean = \"500kbit\", amplitude = 0.9, period = \"70ms\" }\n[scheduler]\npolicy = \"fq_codel\"\n",
    "[link]\nrate = \"300kbit\"\n[scheduler]\npolicy = \"codel\"\necn = \"yes\"\n",
    "[link]\nrate = \"300kbit\"\n[scheduler]\npolicy = \"drr\"\n",
    "[link]\nrate = \"300kbit\"\n[scheduler]\npolicy = \"dualpi2\"\n",
];
/// The second of two classes, and what only the last links' have.
const CLASSES: &str = "[[class]]\nname = \"a\"\nlimit = \"9p\"\n[[class]]\nname = \"b\"\nlimit = \"30p\"\n";
const OF_THE_LAST: [&str; 2] = ["flows = \"dualpi2\"\nl4s_step = \"20ms\"\n", "l4s = \"yes\"\n"];

/// A packet that came out: its payload, when, and whether it arrived.
type Out = (u64, u64, bool);

fn take(link: &mut Link<u64>, now_ns: u64, out: &mut Vec<Out>) {
    while let Some(packet) = link.receive(now_ns) {
        assert!(packet.sent_ns <= packet.left_ns && packet.left_ns <= packet.arrived_ns);
        assert!(packet.arrived_ns <= now_ns);
        out.push((packet.payload, packet.arrived_ns, true));
    }
    while let Some(packet) = link.dropped(now_ns) {
        assert!(packet.sent_ns <= packet.dropped_ns && packet.dropped_ns <= now_ns);
        out.push((packet.payload, packet.dropped_ns, false));
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((which, operations)) = input.split_first() else {
        return;
    };
    let at = usize::from(*which) % LINKS.len();
    let of_the_last = at.checked_sub(LINKS.len() - OF_THE_LAST.len());
    let sorted = of_the_last.map_or("", |at| OF_THE_LAST[at]);
    let text = format!("duration = \"5s\"\n{}{CLASSES}{sorted}", LINKS[at]);
    let mut asked: Link<u64> = Link::from_toml(&text).expect("a link");
    let mut late: Link<u64> = Link::from_toml(&text).expect("a link");
    let (mut now_ns, mut sent) = (0, 0);
    let (mut out, mut out_late) = (Vec::new(), Vec::new());
    for operation in operations.chunks_exact(4) {
        now_ns += u64::from(operation[1]).pow(3) * 17;
        // Nothing comes out before the time that the link tells.
        while let Some(next_ns) = asked.next_ns().filter(|next_ns| *next_ns < now_ns) {
            let before = out.len();
            if next_ns > 0 {
                take(&mut asked, next_ns - 1, &mut out);
                assert_eq!(out.len(), before, "something came before it was due");
            }
            take(&mut asked, next_ns, &mut out);
        }
        if operation[0] % 4 == 0 {
            take(&mut asked, now_ns, &mut out);
            continue;
        }
        let packet = Packet {
            ecn_capable: operation[0] & 8 != 0,
            l4s: operation[0] & 16 != 0,
            flow: u32::from(operation[0] >> 6),
            ..Packet::new(usize::from(operation[2]) % 3, u32::from(operation[3]) * 6)
        };
        let taken = asked.send_packet(now_ns, packet, sent);
        assert_eq!(late.send_packet(now_ns, packet, sent), taken);
        sent += u64::from(taken.is_ok());
        take(&mut asked, now_ns, &mut out); // what had no room
    }
    for (link, out) in [(&mut asked, &mut out), (&mut late, &mut out_late)] {
        take(link, 5_000_000_000, out);
        out.sort_unstable();
        assert!(out.windows(2).all(|pair| pair[0].0 < pair[1].0), "twice");
        let counts = [0, 1].map(|class| link.counts(class).expect("a class"));
        assert_eq!(counts.iter().map(|c| c.sent_pkts).sum::<u64>(), sent);
        let inside: u64 = counts.iter().map(|c| c.inside_pkts()).sum();
        assert_eq!(out.len() as u64 + inside, sent);
        assert_eq!(link.next_ns(), None);
    }
    assert_eq!(out, out_late);
});
