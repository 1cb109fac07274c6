// SPDX-License-Identifier: BSD-3-Clause
//! Recorded packets: lists and captures, which are written here byte by byte.

use std::sync::atomic::{AtomicU32, Ordering};

use linkweir_sim::experiment::Traffic;
use linkweir_sim::scenario::parse;

use crate::{again, S};

/// Packets and period.
type Found = (Vec<(u64, u32)>, Option<u64>);

/// The packets of a scenario that replays this file, or what is wrong with it.
fn replay(name: &str, content: &[u8], keys: &str) -> Result<Found, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("linkweir-replay-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), content).unwrap();
    let text = format!(
        "duration = \"10s\"\n[link]\nrate = \"10Mbit\"\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"a\"\n\
         [[flow]]\nclass = \"a\"\nkind = \"replay\"\nfile = \"{name}\"\n{keys}\n"
    );
    let read = parse(&text, &folder.join("x.toml"));
    let scenario = read.map_err(|fault| fault.to_string());
    let found = scenario.map(|scenario| {
        assert_eq!(scenario.experiment, again(&scenario).experiment);
        match &scenario.experiment.flows[0].traffic {
            Traffic::Replay { packets, period_ns } => (packets.to_vec(), *period_ns),
            other => panic!("{other:?}"),
        }
    });
    std::fs::remove_dir_all(&folder).unwrap();
    let place = format!("{}/", folder.display());
    found.map_err(|message| message.replace(&place, ""))
}

#[test]
fn a_list_of_packets() {
    let list = b"t_s,bytes,flow\n0.5,40,a\n0.5,1500,b\n# end\n1.25,60,a\n";
    let all = vec![(S / 2, 40), (S / 2, 1500), (5 * S / 4, 60)];
    assert_eq!(replay("p.csv", list, "").unwrap(), (all.clone(), None));
    let (packets, period_ns) = replay("p.csv", list, "only = \"a\"\nperiod = \"2s\"").unwrap();
    assert_eq!((packets, period_ns), (vec![all[0], all[2]], Some(2 * S)));
    let plain = b"t_s,bytes\n0,40\n";
    assert_eq!(replay("p.csv", plain, "").unwrap().0, [(0, 40)]);
}

/// A capture in the classic notation.
fn pcap(magic: u32, link: u32, packets: &[(u32, u32, u32, u32)], big_endian: bool) -> Vec<u8> {
    let word = |value: u32| {
        if big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let mut bytes = Vec::new();
    let version = if big_endian { 0x0002_0004 } else { 0x0004_0002 };
    for value in [magic, version, 0, 0, 65_535, link] {
        bytes.extend(word(value));
    }
    for (seconds, fraction, captured, length) in packets {
        for value in [*seconds, *fraction, *captured, *length] {
            bytes.extend(word(value));
        }
        bytes.extend(vec![0xee; *captured as usize]);
    }
    bytes
}

const PACKETS: [(u32, u32, u32, u32); 3] = [
    (1_700_000_000, 999_999, 60, 1514),
    (1_700_000_001, 5, 54, 54),
    (1_700_000_002, 0, 20, 74),
];

#[test]
fn captures_in_both_orders_of_bytes() {
    let expected = [(0, 1500), (6_000, 40), (1_000_001_000, 60)];
    for big_endian in [false, true] {
        let capture = pcap(0xa1b2_c3d4, 1, &PACKETS, big_endian);
        assert_eq!(replay("c.pcap", &capture, "").unwrap().0, expected);
    }
    // Nanoseconds.
    let capture = pcap(0xa1b2_3c4d, 1, &PACKETS, false);
    let (packets, _) = replay("c.pcap", &capture, "").unwrap();
    let times: Vec<u64> = packets.iter().map(|packet| packet.0).collect();
    assert_eq!(times, [0, 1_000_000_005 - 999_999, 2_000_000_000 - 999_999]);
}

#[test]
fn which_bytes_of_a_frame_count() {
    let sizes = |link: u32, keys: &str| -> Vec<u32> {
        let capture = pcap(0xa1b2_c3d4, link, &PACKETS, false);
        let (packets, _) = replay("c.pcap", &capture, keys).unwrap();
        packets.iter().map(|packet| packet.1).collect()
    };
    assert_eq!(sizes(1, "lengths = \"frame\""), [1514, 54, 74]);
    // Raw IP, and Linux's cooked captures.
    assert_eq!(sizes(101, ""), [1514, 54, 74]);
    assert_eq!(sizes(113, ""), [1498, 38, 58]);
    assert_eq!(sizes(276, ""), [1494, 34, 54]);
    let strange = pcap(0xa1b2_c3d4, 147, &PACKETS, false);
    assert_eq!(
        replay("c.pcap", &strange, "").unwrap_err(),
        "c.pcap: byte 24: its link type is 147, whose header's length is not known here; write lengths = \"frame\""
    );
    assert!(replay("c.pcap", &strange, "lengths = \"frame\"").is_ok());
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// A capture of two interfaces: Ethernet in microseconds, raw IP in 2^-10 s.
fn pcapng() -> Vec<u8> {
    let header = block(
        0x0a0d_0d0a,
        &words(&[0x1a2b_3c4d, 1, 0xffff_ffff, 0xffff_ffff]),
    );
    let ethernet = block(1, &words(&[1, 65_535]));
    let options = words(&[9 | 1 << 16, 0x8a, 0]);
    let raw = block(1, &[words(&[101, 65_535]), options].concat());
    let packet = |interface: u32, time: u64, length: u32| {
        let fields = [interface, (time >> 32) as u32, time as u32, 8, length];
        block(6, &[words(&fields), vec![0xee; 8]].concat())
    };
    [
        header,
        ethernet,
        raw,
        packet(0, 1_700_000_000_000_000, 114),
        block(5, &words(&[0, 0, 0])),
        packet(1, 1_700_000_001 << 10 | 512, 100),
        packet(0, 1_700_000_000_250_000, 64),
    ]
    .concat()
}

#[test]
fn a_capture_with_interfaces_of_its_own() {
    let expected = [(0, 100), (S / 4, 50), (3 * S / 2, 100)];
    assert_eq!(replay("c.pcapng", &pcapng(), "").unwrap().0, expected);
}

#[test]
fn what_is_wrong_with_a_capture_names_the_byte() {
    let capture = pcap(0xa1b2_c3d4, 1, &PACKETS, false);
    assert_eq!(
        replay("c.pcap", &capture[..24], "").unwrap_err(),
        "c.pcap: has no packets"
    );
    let mut damaged = pcapng();
    damaged[28] = 3;
    let found = replay("c.pcapng", &damaged, "").unwrap_err();
    assert!(found.starts_with("c.pcapng: byte 28: "), "{found}");
    let short = pcap(0xa1b2_c3d4, 1, &[(1, 0, 10, 14)], false);
    assert_eq!(
        replay("c.pcap", &short, "").unwrap_err(),
        "c.pcap: byte 24: a packet of 14B, 14B of them its link layer's; 1B .. 1048575B must remain"
    );
    let found = replay("c.pcap", &capture, "only = \"a\"").unwrap_err();
    assert!(found.contains("only = \"a\": is for a CSV"), "{found}");
}

#[test]
fn a_time_that_cannot_be_names_the_packet() {
    let capture = |magic: u32, seconds: u32, fraction: u32| {
        let packets = [(0, 0, 20, 64), (seconds, fraction, 20, 64)];
        replay("c.pcap", &pcap(magic, 1, &packets, false), "")
    };
    assert_eq!(
        capture(0xa1b2_c3d4, 1_700_000_000, 0).unwrap_err(),
        "c.pcap: byte 60: packet 2 is 53 years later than the first one; a replay may last 10. The clock was wrong, or the file \
         is damaged; cut the capture where it jumps (editcap -r)"
    );
    assert_eq!(
        capture(0xa1b2_c3d4, 1, 1_000_000).unwrap_err(),
        "c.pcap: byte 60: packet 2 has a time with the fraction 1000000 of a second; at most 999999 is possible. The file is damaged"
    );
    assert!(capture(0xa1b2_c3d4, 1, 999_999).is_ok());
    assert!(capture(0xa1b2_3c4d, 1, 1_000_000).is_ok());
    assert!(capture(0xa1b2_3c4d, 1, 1_000_000_000).is_err());
}

#[test]
fn check_sequences_behind_frames_are_no_part_of_packets() {
    let packets = |link: u32, keys: &str| {
        let capture = pcap(0xa1b2_c3d4, link, &[(1, 0, 20, 118)], false);
        replay("c.pcap", &capture, keys).unwrap().0
    };
    // Ethernet with two words of 16 bits behind each frame; bit 26 says that they are counted.
    let counted = 1 | 1 << 26 | 2 << 28;
    assert_eq!(packets(counted, ""), [(0, 100)]);
    assert_eq!(packets(counted, "lengths = \"frame\""), [(0, 118)]);
    assert_eq!(packets(1 | 2 << 28, ""), [(0, 104)]);
    // Bit 27 says nothing; those from 16 to 25 are 0.
    assert_eq!(packets(counted | 1 << 27, ""), [(0, 100)]);
    let capture = pcap(0xa1b2_c3d4, 0x0001_0001, &PACKETS, false);
    let damaged = "c.pcap: has the link type 0x00010001, of which bits 16 to 25 must be 0; the file is damaged";
    assert_eq!(
        replay("c.pcap", &capture, "lengths = \"frame\"").unwrap_err(),
        damaged
    );
}

#[test]
fn a_time_far_after_the_one_before_names_the_packet() {
    const DAY: u32 = 24 * 3600;
    let after = |days: u32| {
        let late = (PACKETS[1].0 + days * DAY, 0, 0, 60);
        let packets = [PACKETS[0], PACKETS[1], late, PACKETS[2]];
        replay("c.pcap", &pcap(0xa1b2_c3d4, 1, &packets, false), "")
    };
    assert_eq!(
        after(3 * 365).unwrap_err(),
        "c.pcap: byte 170: packet 3 is 1094 days later than those before it; a pause may last 30. The clock was wrong, or the \
         file is damaged; cut the capture where it jumps (editcap -r)"
    );
    // A pause of a month is one.
    assert!(after(30).is_ok());

    let mut late = pcapng();
    let place = late.len() - 40 + 12;
    late[place..place + 4].copy_from_slice(&0x0006_1000_u32.to_le_bytes());
    let found = replay("c.pcapng", &late, "").unwrap_err();
    let wanted = "c.pcapng: byte 184: packet 3 is ";
    assert!(
        found.starts_with(wanted) && found.contains("days later"),
        "{found}"
    );

    let early = pcap(0xa1b2_c3d4, 1, &[PACKETS[2], (5, 0, 0, 60)], false);
    let found = replay("c.pcap", &early, "").unwrap_err();
    let wanted = "c.pcap: byte 60: packet 2 is more than an hour earlier than the first one.";
    assert!(found.starts_with(wanted), "{found}");
}

#[test]
fn what_is_wrong_with_a_list_names_the_line() {
    for (content, keys, expected) in [
        ("", "", "p.csv: is empty; it must hold a header t_s,bytes"),
        ("t_s,bytes\n", "", "p.csv: has a header but no packets"),
        (
            "time,len\n0,1\n",
            "",
            "p.csv:1: must be a header: t_s,bytes or t_s,bytes,flow",
        ),
        (
            "t_s,bytes\n0,40\n",
            "only = \"a\"",
            "p.csv:1: must have a third column, flow",
        ),
        (
            "t_s,bytes,flow\n0,40,b\n",
            "only = \"a\"",
            "p.csv: has no packet of flow \"a\"",
        ),
        (
            "t_s,bytes\n0,40,1\n",
            "",
            "p.csv:2: has 3 fields where the header has 2",
        ),
        (
            "t_s,bytes\n1,40\n0.5,40\n",
            "",
            "p.csv:3: t_s = \"0.5\": must not be earlier than the line before, 1s",
        ),
        (
            "t_s,bytes\n-1,40\n",
            "",
            "p.csv:2: t_s = \"-1\": must be seconds",
        ),
        (
            "t_s,bytes\n0,0\n",
            "",
            "p.csv:2: bytes = \"0\": must be a whole number of bytes, 1 .. 1048575",
        ),
        (
            "t_s,bytes\n0,1.5\n",
            "",
            "p.csv:2: bytes = \"1.5\": must be a whole number of bytes",
        ),
        (
            "t_s,bytes\n0,big\n",
            "",
            "p.csv:2: bytes = \"big\": must be a whole number of bytes",
        ),
    ] {
        let found = replay("p.csv", content.as_bytes(), keys).unwrap_err();
        assert!(found.starts_with(expected), "{found}\n  wanted {expected}");
    }
}

#[test]
fn a_capture_that_was_cut_off_is_read_up_to_there() {
    let capture = pcap(0xa1b2_c3d4, 1, &PACKETS, false);
    assert_eq!(
        replay("c.pcap", &capture[..110], "").unwrap().0,
        [(0, 1500)]
    );
    assert_eq!(
        replay("c.pcap", &capture[..105], "").unwrap().0,
        [(0, 1500)]
    );
    let fault = replay("c.pcap", &capture[..50], "").unwrap_err();
    assert!(
        fault.starts_with("c.pcap: has no packets: the capture was cut off"),
        "{fault}"
    );
    let mut damaged = capture.clone();
    damaged[111] = 0x7f; // of the second record's captured length
    let fault = replay("c.pcap", &damaged, "").unwrap_err();
    assert!(
        fault.starts_with("c.pcap: byte 100: the record there is longer"),
        "{fault}"
    );
    let whole = pcapng();
    for left in [1, 13, 39] {
        let found = replay("c.pcapng", &whole[..whole.len() - left], "").unwrap();
        assert_eq!(found.0, [(0, 100), (3 * S / 2, 100)], "{left}");
    }
}

#[test]
fn obsolete_packet_blocks_are_read() {
    let mut capture = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    capture.extend(block(1, &words(&[101, 65_535])));
    for (time, length) in [(1_000_000_u32, 100), (1_250_000, 64)] {
        capture.extend(block(
            2,
            &[words(&[7 << 16, 0, time, 8, length]), vec![0xee; 8]].concat(),
        ));
    }
    let expected = [(0, 100), (S / 4, 64)];
    assert_eq!(replay("c.pcapng", &capture, "").unwrap().0, expected);
}

/// A packet of TCP over IPv4 in Ethernet: ports, flags, options of TCP and all of its IP packet's bytes.
fn tcp(ports: (u16, u16), flags: u8, options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    let forth = ports.0 > ports.1;
    bytes.extend([10, 0, 0, 1 + u8::from(forth), 10, 0, 0, 2 - u8::from(forth)]);
    bytes.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat());
    bytes.extend([0; 8]);
    bytes.extend([
        ((20 + options.len() as u8) / 4) << 4,
        flags,
        0,
        0,
        0,
        0,
        0,
        0,
    ]);
    bytes.extend(options);
    bytes
}

fn captured(packets: &[(Vec<u8>, u32)]) -> Vec<u8> {
    let mut bytes = pcap(0xa1b2_c3d4, 1, &[], false);
    for (headers, ip_bytes) in packets {
        bytes.extend(words(&[1, 0, headers.len() as u32, 14 + ip_bytes]));
        bytes.extend(headers);
    }
    bytes
}

#[test]
fn super_packets_are_sent_as_the_segments_that_the_network_carried() {
    let sizes = |packets: &[(Vec<u8>, u32)], keys: &str| -> Vec<u32> {
        let found = replay("c.pcap", &captured(packets), keys).unwrap();
        found.0.iter().map(|packet| packet.1).collect()
    };
    let syn = |ports, mss: u16| {
        (
            tcp(ports, 2, &[&[2, 4][..], &mss.to_be_bytes()].concat()),
            44,
        )
    };
    let data = |options: &[u8], bytes| (tcp((5000, 443), 0x10, options), bytes);
    // 3000 bytes of payload and a maximum segment size of 1360: 1360 + 1360 + 280, each with 40 bytes of headers.
    let told = [
        syn((5000, 443), 1460),
        syn((443, 5000), 1360),
        data(&[], 3040),
    ];
    assert_eq!(sizes(&told, ""), [44, 44, 1400, 1400, 320]);
    assert_eq!(
        sizes(&told, "lengths = \"frame\""),
        [58, 58, 1414, 1414, 334]
    );
    // Options take room of the segment: 12 bytes of time stamps leave 1348.
    let stamps = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        sizes(&[syn((443, 5000), 1360), data(&stamps, 2748)], ""),
        [44, 1400, 1400]
    );
    // A network with jumbo frames.
    assert_eq!(
        sizes(&[syn((443, 5000), 8960), data(&[], 9000)], ""),
        [44, 9000]
    );
    // Without SYNs: the longest packet of the connection within Ethernet's MTU, or that.
    assert_eq!(
        sizes(&[data(&[], 1440), data(&[], 2840)], ""),
        [1440, 1440, 1440]
    );
    assert_eq!(
        sizes(&[data(&[], 500), data(&[], 2960)], ""),
        [500, 1500, 1500]
    );
    assert_eq!(sizes(&[data(&[], 2960)], "mtu = \"9000B\""), [2960]);
    assert_eq!(
        sizes(&[data(&[], 2960)], "mtu = \"1000B\""),
        [1000, 1000, 1000, 80]
    );
    // UDP with segmentation offload, and a short capture of TCP.
    let mut udp = tcp((5000, 443), 0, &[]);
    udp[23] = 17;
    assert_eq!(sizes(&[(udp, 2972)], ""), [1500, 1500]);
    let (mut short, _) = data(&[], 0);
    short.truncate(34);
    assert_eq!(sizes(&[(short, 2960)], ""), [1500, 1500]);
    // A tag of a VLAN counts for each segment.
    let (mut tagged, _) = data(&[], 0);
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    assert_eq!(sizes(&[(tagged, 2964)], ""), [1504, 1504]);
    // No TCP, no UDP: whole.
    let mut other = tcp((5000, 443), 0, &[]);
    other[23] = 50;
    assert_eq!(sizes(&[(other, 9000)], ""), [9000]);
}

#[test]
fn nanoseconds_of_both_orders_of_bytes() {
    for big_endian in [false, true] {
        let capture = pcap(0xa1b2_3c4d, 1, &PACKETS, big_endian);
        let (packets, _) = replay("c.pcap", &capture, "").unwrap();
        assert_eq!(packets[1].0, 1_000_000_005 - 999_999);
    }
}
