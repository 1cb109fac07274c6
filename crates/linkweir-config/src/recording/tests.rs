// SPDX-License-Identifier: BSD-3-Clause
use super::frames::crc32;
use super::version::MAGIC_BYTES;
use super::*;

const CONFIGURED: &str = "[[class]]\nname = \"voice\"\n[[class]]\nname = \"rest\"\n";

fn cell(sizes: &[(u32, u32)], sent: (u64, u64)) -> Cell {
    let mut cell = Cell {
        sent_pkts: sent.0,
        sent_bytes: sent.1,
        ..Cell::default()
    };
    for (pkts, bytes) in sizes {
        cell.arrive(*pkts, *bytes);
    }
    cell
}

/// A section that begins at a time, with some cells of one peer: (bin, class, cell).
fn section(origin_unix_ns: u64, cells: &[(u64, u32, Cell)]) -> Vec<u8> {
    let mut bytes = settings(Version::One, origin_unix_ns, false, CONFIGURED);
    bytes.extend(peer(7, "name = \"ship\""));
    let mut block = Writer::new(cells[0].0);
    block.capacity(cells[0].0 * BIN_NS + 1000, 7, 20_000_000);
    for (bin, class, cell) in cells {
        block.cell(*bin, 7, *class, cell);
    }
    bytes.extend(frame(&block.into_body()));
    bytes
}

fn blocks(bytes: &[u8]) -> (Vec<String>, Vec<Damage>) {
    let mut found = Vec::new();
    let damages = read(bytes, |block| found.push(format!("{block:?}")));
    (found, damages)
}

#[test]
fn the_checksum_is_that_of_ethernet() {
    // The check value of CRC-32/ISO-HDLC in the catalogue of Greg Cook.
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}

#[test]
fn size_classes_are_those_of_the_bounds() {
    for bytes in 1..5000 {
        let class = BOUNDS_BYTES.iter().rposition(|bound| *bound <= bytes);
        assert_eq!(Some(size_class(bytes)), class, "{bytes}");
    }
    assert_eq!(size_class(1 << 20), SIZES - 1);
}

#[test]
fn what_is_written_is_read_back() {
    let voice = cell(&[(3, 60), (2, 214)], (4, 400));
    let mut rest = cell(&[(1, 1500)], (0, 0));
    rest.tcp_pkts = 1;
    (rest.dropped_pkts, rest.dropped_bytes) = (9, 9 * 1500);
    let mut block = Writer::new(12);
    block.capacity(12 * BIN_NS + 77, 7, 0);
    block.cell(12, 7, 0, &voice);
    block.cell(12, 300, 200, &rest);
    block.packet(15 * BIN_NS + 5, 300, 31, (1500, true));
    block.packet(15 * BIN_NS + 5, 0, 30, (1, false));
    let bytes = [
        settings(Version::One, 5, true, CONFIGURED),
        frame(&block.into_body()),
    ]
    .concat();
    let mut entries = Vec::new();
    let damages = read(&bytes, |block| {
        if let Block::Counts(counts) = block {
            assert_eq!(counts.first_bin(), 12);
            entries.extend(counts.entries());
        }
    });
    assert_eq!(damages, []);
    let expected = [
        Entry::Capacity {
            at_ns: 12 * BIN_NS + 77,
            peer: 7,
            bps: 0,
        },
        Entry::Cell {
            bin: 12,
            peer: 7,
            class: 0,
            cell: voice,
        },
        Entry::Cell {
            bin: 12,
            peer: 300,
            class: 200,
            cell: rest,
        },
        Entry::Packet {
            at_ns: 15 * BIN_NS + 5,
            peer: 300,
            class: 31,
            bytes: 1500,
            tcp: true,
        },
        Entry::Packet {
            at_ns: 15 * BIN_NS + 5,
            peer: 0,
            class: 30,
            bytes: 1,
            tcp: false,
        },
    ];
    assert_eq!(entries, expected);
}

#[test]
fn stated_capacities_hold_from_the_beginning_of_a_bin() {
    let bytes = [
        settings(Version::One, 5, false, CONFIGURED),
        peer(7, "name = \"ship\""),
        peer(300, "name = \"boat\""),
        capacities(12, [(7, 20_000_000), (300, 0)], []),
        section(5, &[(13, 0, cell(&[(1, 100)], (1, 100)))]),
    ];
    let recording = Recording::new(vec![bytes.concat()]).unwrap();
    assert_eq!(recording.damages, []);
    let span_ns = recording.span_ns();
    assert_eq!(span_ns, (12 * BIN_NS, 14 * BIN_NS));
    // The same capacity again is no change.
    assert_eq!(recording.capacity("ship", span_ns), [(0, 20_000_000)]);
    assert_eq!(recording.capacity("boat", span_ns), [(0, 0)]);
}

#[test]
fn a_file_cut_off_anywhere_is_read_up_to_its_last_whole_block() {
    let one = section(1, &[(0, 0, cell(&[(1, 100)], (1, 100)))]);
    let two = frame(&Writer::new(9).into_body());
    let whole = [&one[..], &two].concat();
    let (all, damages) = blocks(&whole);
    assert_eq!((all.len(), damages), (4, vec![]));
    for length in MAGIC_BYTES..whole.len() {
        let (found, damages) = blocks(&whole[..length]);
        assert_eq!(found, all[..found.len()], "{length}");
        let read: usize = length - damages.iter().map(|damage| damage.bytes).sum::<usize>();
        assert!(damages.len() <= 1 && read <= length);
        if length >= one.len() {
            assert_eq!(found.len(), 3, "{length}");
            assert_eq!(read, one.len());
        }
    }
    // What is appended to a file that was cut off is read, too.
    let (found, damages) = blocks(&[&whole[..whole.len() - 1], &one[..]].concat());
    assert_eq!((found.len(), damages.len()), (6, 1));
}

#[test]
fn a_changed_byte_costs_its_section_at_most() {
    let one = section(1, &[(0, 0, cell(&[(1, 100)], (1, 100)))]);
    let whole = [&one[..], &one[..]].concat();
    let (all, _) = blocks(&one);
    for at in 0..one.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        let (found, damages) = blocks(&changed);
        assert_eq!(damages.len(), 1, "{at}");
        assert_eq!(found[found.len() - all.len()..], all, "{at}");
    }
}

/// A section with two paths to one of its peers: starlink, which carries 20 Mbit/s, and lte.
fn section_with_paths(version: Version, entries: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut bytes = settings(version, 5, false, CONFIGURED);
    bytes.extend(peer(7, "name = \"boat\"\npaths = [\"starlink\", \"lte\"]"));
    let mut block = Writer::new(12);
    entries(&mut block);
    bytes.extend(frame(&block.into_body()));
    bytes
}

const FAST: PathState = PathState {
    bps: 20_000_000,
    delay_ns: 30_000_001,
};
const DEAD: PathState = PathState {
    bps: 0,
    delay_ns: 45_000_000,
};

#[test]
fn what_paths_are_and_sent_is_written_and_read_back() {
    let voice = cell(&[(3, 60)], (3, 180));
    let bytes = section_with_paths(Version::Two, |block| {
        block.path(12 * BIN_NS + 77, 7, 0, FAST);
        block.path(12 * BIN_NS + 78, 7, 7, DEAD);
        block.capacity(12 * BIN_NS + 78, 7, 20_000_000);
        block.cell(12, 7, 0, &voice);
        block.carried(12, (7, 0, 0), (3, 180));
        block.carried(13, (7, 200, 7), (1, 1500));
    });
    let mut entries = Vec::new();
    let damages = read(&bytes, |block| match block {
        Block::Counts(counts) => entries.extend(counts.entries()),
        Block::Settings(version, _) => assert_eq!(version, Version::Two),
        _ => {}
    });
    assert_eq!(damages, []);
    let path = |at_ns, path, state| Entry::Path {
        at_ns,
        peer: 7,
        path,
        state,
    };
    let carried = |bin, class, path, (pkts, bytes)| Entry::Carried {
        bin,
        peer: 7,
        class,
        path,
        pkts,
        bytes,
    };
    let expected = [
        path(12 * BIN_NS + 77, 0, FAST),
        path(12 * BIN_NS + 78, 7, DEAD),
        Entry::Capacity {
            at_ns: 12 * BIN_NS + 78,
            peer: 7,
            bps: 20_000_000,
        },
        Entry::Cell {
            bin: 12,
            peer: 7,
            class: 0,
            cell: voice,
        },
        carried(12, 0, 0, (3, 180)),
        carried(13, 200, 7, (1, 1500)),
    ];
    assert_eq!(entries, expected);
}

#[test]
fn paths_are_known_by_name_in_every_section() {
    let boat = |bytes: u64, paths: &str| {
        let mut found = settings(Version::Two, 5, false, CONFIGURED);
        found.extend(peer(7, &format!("name = \"boat\"\npaths = [{paths}]")));
        found.extend(capacities(
            12,
            [(7, 20_000_000)],
            [((7, 0), FAST), ((7, 1), DEAD)],
        ));
        let mut block = Writer::new(12);
        block.carried(12, (7, 1, 0), (1, bytes));
        found.extend(frame(&block.into_body()));
        found
    };
    let files = vec![
        boat(100, "\"starlink\", \"lte\""),
        boat(1000, "\"lte\", \"five\""),
    ];
    let recording = Recording::new(files).unwrap();
    assert_eq!(recording.damages, []);
    let paths = ["lte", "starlink", "five", "none"].map(String::from);
    let classes = ["rest".to_string()];
    let span_ns = recording.span_ns();
    let found = recording.carried("boat", (&paths, &classes), span_ns);
    assert_eq!(found, [[(1, 1000)], [(1, 100)], [(0, 0)], [(0, 0)]]);
    let states = recording.path_states("boat", &paths, span_ns);
    assert_eq!(states[1], [(0, FAST)]);
    assert_eq!(states[0], [(0, FAST)], "what came last at the same time");
    assert_eq!(states[2..], [vec![(0, DEAD)], vec![]]);
    assert_eq!(recording.capacity("boat", span_ns), [(0, 20_000_000)]);
    // Paths that the first section has not are left out of what is cut out with its settings.
    let cut = recording.cut("boat", 0, span_ns).unwrap();
    let cut = Recording::new(vec![cut]).unwrap();
    assert_eq!(cut.damages, []);
    let found = cut.carried("boat", (&paths, &classes), cut.span_ns());
    assert_eq!(found, [[(1, 1000)], [(1, 100)], [(0, 0)], [(0, 0)]]);
}

/// Entries about paths are damage where the section says that there are none.
#[test]
fn the_first_version_has_no_paths() {
    let entries: [fn(&mut Writer); 2] = [
        |block| block.path(12 * BIN_NS, 7, 1, FAST),
        |block| block.carried(12, (7, 0, 0), (3, 180)),
    ];
    for write in entries {
        let found = |version| read(&section_with_paths(version, write), |_| {}).len();
        assert_eq!((found(Version::One), found(Version::Two)), (1, 0));
    }
    // As older readers do, it leaves out the class of a capacity.
    let body = [3, 12, 2 | 2 << 3, 7, 1, 100];
    let bytes = [settings(Version::One, 5, false, CONFIGURED), frame(&body)].concat();
    let mut entries = Vec::new();
    let damages = read(&bytes, |block| {
        if let Block::Counts(counts) = block {
            entries.extend(counts.entries());
        }
    });
    let capacity = Entry::Capacity {
        at_ns: 13 * BIN_NS - 1,
        peer: 7,
        bps: 100,
    };
    assert_eq!((damages, entries), (vec![], vec![capacity]));
}

/// What a path cannot be: the ninth, slower than an hour, faster than any link, with more bytes than its packets have.
#[test]
fn impossible_paths_are_damage() {
    for entry in [
        &[2 | 4 | 9 << 3, 1, 100, 0][..],
        &[
            2 | 4 | 1 << 3,
            1,
            100,
            0x80,
            0x80,
            0x80,
            0x80,
            0x80,
            0x80,
            1,
        ],
        &[2 | 4 | 1 << 3, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0],
        &[2 | 4 | 1 << 3, 0, 100, 0],
        &[2 | 4 | 1 << 3, 1, 100],
        &[1 | 4, 31 << 3, 1, 0x80, 0x80, 0x80, 1],
        &[1 | 4, 31 << 3, 1],
    ] {
        let body = [&[3, 12][..], entry].concat();
        let bytes = [settings(Version::Two, 5, false, CONFIGURED), frame(&body)].concat();
        let damages = read(&bytes, |block| {
            assert!(!matches!(block, Block::Counts(_)), "{entry:?}");
        });
        assert_eq!(damages.len(), 1, "{entry:?}");
    }
    let body = [3, 12, 2 | 4 | 8 << 3, 1, 100, 5, 1 | 4, 31 << 3 | 7, 1, 100];
    let bytes = [settings(Version::Two, 5, false, CONFIGURED), frame(&body)].concat();
    assert_eq!(read(&bytes, |_| {}), []);
}

#[test]
fn a_version_that_is_not_known_is_named() {
    let mut bytes = section_with_paths(Version::Two, |block| block.path(12 * BIN_NS, 7, 0, FAST));
    assert_eq!(bytes[..8], *b"\x89LWREC\x02\n");
    bytes[6] = 3;
    let said = "is of version 3 of the format, and this Linkweir reads versions up to 2; read it with a newer one";
    assert_eq!(Recording::new(vec![bytes.clone()]).unwrap_err(), said);
    assert_eq!(packets_of(&bytes, "voice").unwrap_err(), said);
    // Of several files, those that are known are read.
    let known = section(1, &[(0, 0, cell(&[(1, 100)], (1, 100)))]);
    let recording = Recording::new(vec![bytes, known]).unwrap();
    assert_eq!((recording.sections.len(), recording.damages.len()), (1, 1));
}

/// What a stranger wrote as the time of its beginning.
#[test]
fn times_beyond_all_clocks_are_read() {
    let voice = || cell(&[(1, 100)], (1, 100));
    let last = 10 * 366 * 86_400 * 100;
    let files: Vec<Vec<u8>> = [0, u64::MAX / 2, u64::MAX, 7, u64::MAX]
        .iter()
        .map(|origin_unix_ns| section(*origin_unix_ns, &[(0, 0, voice()), (last, 0, voice())]))
        .collect();
    let recording = Recording::new(files).unwrap();
    let (from_ns, to_ns) = recording.span_ns();
    assert!(from_ns == 0 && to_ns < u64::MAX / 8, "{to_ns}");
    assert_eq!(recording.peers()["ship"].sent_pkts, 10);
    let classes = ["voice".to_string()];
    let sums = recording.sums("ship", &classes, (from_ns, to_ns), to_ns);
    assert_eq!(sums[0][0].sent_pkts, 10);
}

/// Bytes of strangers: whatever they are, reading ends, allocates little and does not panic.
#[test]
fn random_bytes_are_read_without_harm() {
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    };
    let mut entries = 0;
    let sound = [Version::One, Version::Two].map(|version| {
        let mut block = Writer::new(100);
        for bin in 100..110 {
            block.capacity(bin * BIN_NS, 7, bin * 1_000_000);
            block.cell(bin, 7, 0, &cell(&[(3, 60), (200, 1500)], (4, 400)));
            block.cell(bin, 8, 1, &cell(&[], (1, 1500)));
            block.packet(bin * BIN_NS + 500, 8, 40, (1500, true));
            if version == Version::Two {
                block.path(bin * BIN_NS, 7, 1, FAST);
                block.carried(bin, (7, 0, 1), (4, 400));
            }
        }
        (version, block.into_body())
    });
    for _ in 0..20_000 {
        // A sound frame, so that changed entries and noise are read as entries.
        let (version, mut body) = sound[random() as usize % 2].clone();
        if random() % 4 == 0 {
            body = vec![1 + (random() % 4) as u8];
            body.extend((0..random() % 40).map(|_| random() as u8));
        }
        for _ in 0..1 + random() % 3 {
            let at = random() as usize % body.len();
            body[at] = random() as u8;
        }
        let mut bytes = settings(version, 1, false, CONFIGURED);
        bytes.extend(peer(7, "name = \"ship\"\npaths = [\"a\", \"b\"]"));
        bytes.extend(frame(&body));
        if random() % 4 == 0 {
            let at = random() as usize % bytes.len();
            bytes[at] = random() as u8;
        }
        read(&bytes, |block| {
            if let Block::Counts(counts) = block {
                entries += counts.entries().count();
            }
        });
        if let Ok(recording) = Recording::new(vec![bytes.clone()]) {
            let (from_ns, to_ns) = recording.span_ns();
            let classes = ["voice".to_string()];
            let _ = recording.sums("ship", &classes, (from_ns, to_ns), 1_000_000_000);
            let paths = ["b".to_string()];
            let _ = recording.carried("ship", (&paths, &classes), (from_ns, to_ns));
            let _ = recording.path_states("ship", &paths, (from_ns, to_ns));
            let _ = recording.cut("ship", 0, (from_ns, to_ns));
        }
    }
    assert!(entries > 10_000, "{entries} entries were sound by chance");
}

#[test]
fn packets_have_the_counts_of_their_bin() {
    let mut counted = cell(&[(3, 60), (1, 1500), (2, 1499)], (0, 0));
    counted.arrive(1, 61);
    let mut packets = Vec::new();
    spread(50 * BIN_NS, &counted.arrived, 3, &mut packets);
    let sum: u64 = packets.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
    assert_eq!((packets.len() as u64, sum), counted.arrived());
    let mut sizes: Vec<u32> = packets.iter().map(|(_, bytes)| *bytes).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [60, 60, 60, 61, 1499, 1499, 1500]);
    let times: Vec<u64> = packets.iter().map(|(at_ns, _)| *at_ns).collect();
    assert_eq!(times[0], 50 * BIN_NS + BIN_NS / 14);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= BIN_NS / 7));
    assert!(times[6] < 51 * BIN_NS);
    let mut again = Vec::new();
    spread(50 * BIN_NS, &counted.arrived, 3, &mut again);
    assert_eq!(packets, again);
}

#[test]
fn files_of_one_run_and_of_two_are_on_one_clock() {
    const S: u64 = 1_000_000_000;
    let voice = |bytes| cell(&[(1, bytes)], (1, u64::from(bytes)));
    let first = section(1000 * S, &[(0, 0, voice(100)), (150, 0, voice(101))]);
    let second = section(1000 * S, &[(200, 0, voice(102))]);
    let later = section(1007 * S, &[(3, 1, voice(103))]);
    // The clock was set back.
    let earlier = section(900 * S, &[(0, 0, voice(104))]);
    let recording = Recording::new(vec![first, second, later, earlier]).unwrap();
    let classes = ["voice".to_string(), "rest".to_string()];
    let span_ns = recording.span_ns();
    assert_eq!(span_ns, (0, 7 * S + 5 * BIN_NS));
    let sums = recording.sums("ship", &classes, span_ns, S);
    let voice: Vec<u64> = sums.iter().map(|row| row[0].sent_bytes).collect();
    assert_eq!(voice, [100, 101, 102, 0, 0, 0, 0, 104]);
    assert_eq!(sums[7][1].arrived_bytes, 103);
    assert_eq!(recording.peers()["ship"].sent_pkts, 5);

    let cut = recording.cut("ship", 0, (S, 3 * S)).unwrap();
    let part = Recording::new(vec![cut.clone()]).unwrap();
    assert_eq!(part.sections[0].origin_unix_ns, 1001 * S);
    assert_eq!(part.span_ns().1, S + BIN_NS);
    let sums = part.sums("ship", &classes, (0, 2 * S), S);
    let voice: Vec<u64> = sums.iter().map(|row| row[0].sent_bytes).collect();
    assert_eq!(voice, [101, 102]);
    let packets = packets_of(&cut, "voice").unwrap();
    assert_eq!(
        packets,
        [
            (50 * BIN_NS + BIN_NS / 2, 101),
            (100 * BIN_NS + BIN_NS / 2, 102)
        ]
    );
    assert_eq!(
        packets_of(&cut, "video").unwrap_err(),
        "has no class video; it has voice, rest"
    );
}

#[test]
fn names_in_messages_do_not_control_a_terminal() {
    let strange = "[[class]]\nname = \"a\\u001b[2J\"\n[[class]]\nname = \"b\\nc\"\n";
    let bytes = settings(Version::One, 0, false, strange);
    let message = packets_of(&bytes, "video").unwrap_err();
    assert_eq!(message, "has no class video; it has a\\u{1b}[2J, b...");
}

#[test]
fn a_cut_has_all_classes_wherever_the_settings_have_the_keys_of_the_format() {
    let written = format!(
        "device = \"lw0\"\npackets_seen = 3\nbin_ns = {BIN_NS} # of the format\norigin_unix_ns = 7\n\
         sizes_bytes = [\n  1,\n  64,\n]\npackets = false\n{CONFIGURED}"
    );
    let mut body = vec![1];
    body.extend(written.as_bytes());
    let mut bytes = settings(Version::One, 0, false, "")[..MAGIC_BYTES].to_vec();
    bytes.extend(frame(&body));
    bytes.extend(peer(7, "name = \"ship\""));
    let mut block = Writer::new(0);
    block.cell(0, 7, 1, &cell(&[(1, 100)], (1, 100)));
    bytes.extend(frame(&block.into_body()));
    let recording = Recording::new(vec![bytes]).unwrap();
    let cut = recording.cut("ship", 0, recording.span_ns()).unwrap();
    assert_eq!(packets_of(&cut, "rest").unwrap(), [(BIN_NS / 2, 100)]);
    let cut = Recording::new(vec![cut]).unwrap();
    let text = &cut.sections[0].settings;
    assert_eq!(text.matches("bin_ns").count(), 1, "{text}");
    assert!(
        text.contains("device = \"lw0\"\npackets_seen = 3\n"),
        "{text}"
    );
}

#[test]
fn a_cut_of_blocks_that_are_not_in_order_has_all_of_them() {
    let mut bytes = settings(Version::One, 0, false, CONFIGURED);
    bytes.extend(peer(7, "name = \"ship\""));
    let mut later = Writer::new(50);
    later.packet(50 * BIN_NS, 7, 0, (100, false));
    later.cell(99, 7, 0, &cell(&[], (1, 100)));
    let mut earlier = Writer::new(60);
    earlier.packet(60 * BIN_NS, 7, 0, (200, false));
    for block in [later, earlier] {
        bytes.extend(frame(&block.into_body()));
    }
    let recording = Recording::new(vec![bytes]).unwrap();
    assert_eq!(recording.damages, []);
    let cut = recording.cut("ship", 0, recording.span_ns()).unwrap();
    let found = Recording::new(vec![cut.clone()]).unwrap();
    assert_eq!(found.damages, []);
    let packets = packets_of(&cut, "voice").unwrap();
    assert_eq!(packets, [(0, 100), (10 * BIN_NS, 200)]);
}
