// SPDX-License-Identifier: BSD-3-Clause
//! What a program may count on. Expected times are by hand.

use linkweir_link::experiment::MAX_PACKET_BYTES;
use linkweir_link::{Counts, Link, Packet, Reason, Refused};

const MS: u64 = 1_000_000;

fn link(text: &str) -> Link<&'static str> {
    Link::from_toml(text).expect("a link")
}

/// 1500 bytes take 1 ms.
fn plain() -> Link<&'static str> {
    link("[link]\nrate = \"12Mbit\"\ndelay = \"5ms\"\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"all\"\n")
}

#[test]
fn an_idle_link_asks_for_nothing() {
    let mut link = plain();
    assert_eq!(link.next_ns(), None);
    link.send(7 * MS, 0, 1_500, "a").unwrap();
    assert_eq!(link.next_ns(), Some(8 * MS)); // it leaves the device
    assert_eq!(link.receive(8 * MS), None);
    assert_eq!(link.next_ns(), Some(13 * MS)); // it arrives
    assert_eq!(link.receive(13 * MS - 1), None);
    let packet = link.receive(13 * MS).unwrap();
    assert_eq!(
        (packet.sent_ns, packet.left_ns, packet.arrived_ns),
        (7 * MS, 7 * MS, 13 * MS)
    );
    assert_eq!(link.next_ns(), None);
}

#[test]
fn time_never_goes_back() {
    let mut link = plain();
    link.send(9 * MS, 0, 1_500, "a").unwrap();
    link.send(2 * MS, 0, 1_500, "b").unwrap();
    let arrived: Vec<_> = std::iter::from_fn(|| link.receive(1_000 * MS)).collect();
    let times: Vec<_> = arrived
        .iter()
        .map(|p| (p.payload, p.sent_ns, p.arrived_ns))
        .collect();
    assert_eq!(times, [("a", 9 * MS, 15 * MS), ("b", 9 * MS, 16 * MS)]);
    assert_eq!(link.receive(3 * MS), None);
}

#[test]
fn what_cannot_be_sent_is_refused_and_changes_nothing() {
    let mut link = plain();
    assert_eq!(link.end_ns(), 3_600_000 * MS);
    assert_eq!(link.send(0, 1, 1_500, "a"), Err(Refused::Class));
    assert_eq!(link.send(0, 0, 0, "a"), Err(Refused::Bytes));
    assert_eq!(link.send(0, 0, 1 << 20, "a"), Err(Refused::Bytes));
    assert_eq!(link.counts(0), Some(Counts::default()));
    link.send(0, 0, 1_500, "b").unwrap();
    assert_eq!(link.send(3_600_000 * MS, 0, 1_500, "a"), Err(Refused::Over));
    let packet = link.receive(3_600_000 * MS).unwrap();
    assert_eq!((packet.payload, packet.arrived_ns), ("b", 6 * MS));
    assert_eq!((link.next_ns(), link.counts(1)), (None, None));
}

/// Each of these was 1 s later than the packet that is sent next.
#[test]
fn a_refused_packet_does_not_move_the_links_clock() {
    let refused = [
        (3_600_000 * MS, 0, 1_500, Refused::Over),
        (1_000 * MS, 0, 0, Refused::Bytes),
        (1_000 * MS, 7, 1_500, Refused::Class),
    ];
    for (at_ns, class, bytes, why) in refused {
        let mut link = plain();
        assert_eq!(link.send(at_ns, class, bytes, "a"), Err(why));
        assert_eq!(link.send(0, 0, 1_500, "b"), Ok(()));
        let packet = link.receive(10 * MS).unwrap();
        assert_eq!((packet.sent_ns, packet.arrived_ns), (0, 6 * MS));
    }
}

/// The lengths are those with the link's overhead: 20 bits hold them.
#[test]
fn the_longest_packet_is_taken() {
    let mut link = plain();
    assert_eq!(link.send(0, 0, MAX_PACKET_BYTES - 1, "a"), Ok(()));
    assert_eq!(link.send(0, 0, MAX_PACKET_BYTES, "a"), Err(Refused::Bytes));
    let message = Refused::Bytes.to_string();
    assert!(message.contains("1 .. 1048575 bytes"), "{message}");
}

/// One upload fills the queue of its own connection. Another flow's packet waits for one of the upload's and for the one on the
/// link, 2 x 10 ms, whatever the flow's number; in the connection's queue it would wait behind many.
#[test]
fn flows_do_not_share_queues_with_connections_of_other_traffic() {
    let text = r#"
duration = "9s"
[link]
rate = "1200kbit"
[scheduler]
policy = "fifo"
[[class]]
name = "all"
flows = "drr"
limit = "100p"
[[flow]]
class = "all"
kind = "transfers"
arrivals = { at = ["0s"] }
size = "3MB"
"#;
    for flow in 0..12 {
        let mut link = link(text);
        let packet = Packet {
            flow,
            ..Packet::new(0, 1_500)
        };
        link.send_packet(3_000 * MS, packet, "a").unwrap();
        let packet = link.receive(8_000 * MS).unwrap();
        let waited_ms = (packet.left_ns - packet.sent_ns) / MS;
        assert!(waited_ms <= 30, "flow {flow} waited {waited_ms} ms");
    }
}

/// With a rate of 0 for ever, a packet stays inside, and asking again is of no use.
#[test]
fn a_link_that_stays_down_asks_for_nothing() {
    let text = r#"
[link]
rate = { steps = [["0s", "12Mbit"], ["5ms", "0bit"]] }
nominal = "12Mbit"
[scheduler]
policy = "fifo"
[[class]]
name = "all"
"#;
    let mut link = link(text);
    link.send(6 * MS, 0, 1_500, "a").unwrap();
    while let Some(now_ns) = link.next_ns() {
        assert_eq!(link.receive(now_ns), None);
    }
    assert_eq!(link.counts(0).unwrap().inside_pkts(), 1);
}

#[test]
fn a_full_queue_gives_packets_back() {
    let mut link = link("[link]\nrate = \"12Mbit\"\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"all\"\nlimit = \"1p\"\n");
    for payload in ["a", "b", "c"] {
        link.send(0, 0, 1_500, payload).unwrap();
    }
    let dropped = link.dropped(0).unwrap();
    assert_eq!(
        (dropped.payload, dropped.reason, dropped.dropped_ns),
        ("c", Reason::Limit, 0)
    );
    assert_eq!(link.dropped(MS), None);
    link.forget_dropped();
    link.send(MS, 0, 1_500, "d").unwrap();
    link.send(MS, 0, 1_500, "e").unwrap();
    assert_eq!(link.dropped(MS), None);
    while link.receive(9 * MS).is_some() {}
    let counts = link.counts(0).unwrap();
    assert_eq!(
        (counts.sent_pkts, counts.arrived_pkts, counts.dropped_pkts),
        (5, 3, 2)
    );
    assert_eq!(counts.inside_pkts(), 0);
}

/// CoDel marks after its interval of 100 ms above its target of 5 ms, what can be marked; the rest it drops.
#[test]
fn a_policy_marks_what_can_be_marked_and_drops_the_rest() {
    let text = "[link]\nrate = \"1200kbit\"\n[scheduler]\npolicy = \"codel\"\necn = \"yes\"\n[[class]]\nname = \"all\"\nlimit = \"1000p\"\n";
    for ecn_capable in [true, false] {
        let mut link = link(text);
        for _ in 0..60 {
            let packet = Packet {
                ecn_capable,
                ..Packet::new(0, 1_500)
            };
            link.send_packet(0, packet, "a").unwrap();
        }
        let mut marked = Vec::new();
        let mut reasons = Vec::new();
        while let Some(now_ns) = link.next_ns() {
            while let Some(packet) = link.receive(now_ns) {
                if packet.marked {
                    marked.push(packet.left_ns);
                }
            }
            reasons.extend(std::iter::from_fn(|| link.dropped(now_ns)).map(|packet| packet.reason));
        }
        let counts = link.counts(0).unwrap();
        assert_eq!(counts.marked_pkts, marked.len() as u64);
        if ecn_capable {
            assert!(marked.len() > 3 && marked[0] >= 100 * MS, "{marked:?}");
            assert_eq!((counts.arrived_pkts, reasons.len()), (60, 0));
        } else {
            assert!(marked.is_empty() && reasons.len() > 3);
            assert!(reasons.iter().all(|reason| *reason == Reason::Policy));
        }
    }
}

/// Not-ECT never becomes CE (RFC 3168, section 5), in a class of L4S packets neither.
#[test]
fn l4s_packets_are_marked_only_if_the_program_lets_them() {
    let text = "[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"dualpi2\"\n[[class]]\nname = \"l\"\nl4s = \"yes\"\n";
    for ecn_capable in [true, false] {
        let mut link = link(text);
        for _ in 0..40 {
            let packet = Packet {
                ecn_capable,
                ..Packet::new(0, 1_500)
            };
            link.send_packet(0, packet, "a").unwrap();
        }
        let (mut marked, mut dropped) = (0, 0);
        while let Some(now_ns) = link.next_ns() {
            while let Some(packet) = link.receive(now_ns) {
                marked += u32::from(packet.marked);
            }
            while link.dropped(now_ns).is_some() {
                dropped += 1;
            }
        }
        assert_eq!(marked > 0, ecn_capable);
        assert!(dropped > 0); // overload drops both
    }
}

/// A class that isolates flows gives each the same; one flow's burst does not delay the other.
#[test]
fn flows_of_a_class_are_told_apart_where_it_isolates_them() {
    let text = "[link]\nrate = \"12Mbit\"\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"all\"\nflows = \"drr\"\n";
    let mut link = link(text);
    for (flow, payload) in [(1, "a"), (1, "b"), (1, "c"), (2, "d")] {
        let packet = Packet {
            flow,
            ..Packet::new(0, 1_500)
        };
        link.send_packet(0, packet, payload).unwrap();
    }
    let order: Vec<_> = std::iter::from_fn(|| link.receive(9 * MS))
        .map(|p| p.payload)
        .collect();
    assert_eq!(order, ["a", "b", "d", "c"]);
}

/// A class that sorts by ECN serves two queues, of which that of L4S packets has nine tenths; the flow's number counts for
/// nothing. RFC 9332, section 2.1: an L4S packet is marked once it has waited for longer than the step.
#[test]
fn l4s_packets_of_a_class_go_first_and_are_marked_after_the_step() {
    for (step, marked) in [
        ("", 2),
        ("l4s_step = \"2.5ms\"\n", 1),
        ("l4s_step = \"4ms\"\n", 0),
    ] {
        let text = format!(
            "[link]\nrate = \"12Mbit\"\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"all\"\nflows = \"dualpi2\"\n{step}"
        );
        let mut link = link(&text);
        for (flow, l4s, payload) in [
            (1, false, "a"),
            (1, false, "b"),
            (1, false, "c"),
            (2, true, "d"),
            (1, true, "e"),
            (2, true, "f"),
        ] {
            let packet = Packet {
                flow,
                ecn_capable: !l4s, // an L4S packet always is
                l4s,
                ..Packet::new(0, 1_500)
            };
            link.send_packet(0, packet, payload).unwrap();
        }
        // Each takes 1 ms; "a" is on the link when the others come.
        let came: Vec<_> = std::iter::from_fn(|| link.receive(9 * MS)).collect();
        let order: Vec<_> = came.iter().map(|packet| packet.payload).collect();
        assert_eq!(order, ["a", "d", "e", "f", "b", "c"]);
        let marks = came.iter().filter(|packet| packet.marked);
        assert_eq!(marks.count(), marked, "{step}");
    }
}

#[test]
fn faults_name_the_key() {
    let fault = |text: &str| match Link::<()>::from_toml(text) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is a link"),
    };
    let rest = "[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"all\"\n";
    let wrong = fault(&format!("[link]\nrate = \"12\"\n{rest}"));
    assert!(
        wrong.starts_with("link.rate = \"12\": needs a unit"),
        "{wrong}"
    );
    let several = r#"
[[link]]
name = "a"
rate = "1Mbit"
[link.scheduler]
policy = "fifo"
[[link.class]]
name = "all"
[[flow]]
path = ["a"]
class = "all"
kind = "greedy"
"#;
    let message = "link: must be one link here; write one [link] instead of several";
    assert_eq!(fault(several), message);
    let without_flows = several.split("[[flow]]").next().unwrap();
    assert_eq!(fault(without_flows), message);
}

#[test]
fn a_link_can_be_sent_to_a_thread() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&plain());
}
