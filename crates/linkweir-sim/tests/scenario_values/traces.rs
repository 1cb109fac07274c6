// SPDX-License-Identifier: BSD-3-Clause
//! Capacity traces in every notation.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use linkweir_sim::experiment::{Capacity, End, Signal};
use linkweir_sim::scenario::{parse, parse_trace, Format, Hints, Scenario, TraceEnd};

use crate::{again, steps, S};

#[test]
fn traces_in_every_notation() {
    let read = |content: &str, hints: &Hints| {
        parse_trace(content.as_bytes(), Path::new("t"), hints).unwrap()
    };
    let plain = Hints::default();

    let own = read("# made by hand\n# end = loop\nt_s,capacity_bps,delay_s,loss\n0,1e6,0.25,0\r\n1.5,2000000,0.3,0.01\n", &plain);
    let end = End::Loop { period_ns: 3 * S };
    assert_eq!(own.format, Format::Linkweir);
    assert_eq!(
        own.capacity,
        Capacity::Rate(steps(&[(0, 1e6), (3 * S / 2, 2e6)], end))
    );
    assert_eq!(
        own.delay_s,
        Some(steps(&[(0, 0.25), (3 * S / 2, 0.3)], end))
    );
    assert_eq!(own.loss, Some(steps(&[(0, 0.0), (3 * S / 2, 0.01)], end)));

    let period = read("# end=stop\n# period_s=10\nt_s,capacity_bps\n0,5\n", &plain);
    assert_eq!(
        period.capacity,
        Capacity::Rate(steps(&[(0, 5.0)], End::Stop { at_ns: 10 * S }))
    );
    let held = read(
        "# end=stop\nt_s,capacity_bps\n0,5\n",
        &Hints {
            end: Some(TraceEnd::Hold),
            ..Hints::default()
        },
    );
    assert_eq!(held.capacity, Capacity::Rate(steps(&[(0, 5.0)], End::Hold)));

    let mbit = "# recorded\nt_s,dl_mbit,ul_mbit\n100,17.596,12.348\n101,0,3\n";
    let first = read(mbit, &plain);
    assert_eq!(first.column.as_deref(), Some("dl_mbit"));
    assert_eq!(
        first.capacity,
        Capacity::Rate(steps(&[(0, 17_596_000.0), (S, 0.0)], End::Hold))
    );
    let named = read(
        mbit,
        &Hints {
            column: Some("ul_mbit".into()),
            ..Hints::default()
        },
    );
    assert_eq!(
        named.capacity,
        Capacity::Rate(steps(&[(0, 12_348_000.0), (S, 3e6)], End::Hold))
    );

    let mahimahi = read(
        "0\n0\n7\n\n7\n10\n",
        &Hints {
            format: Some(Format::Mahimahi),
            ..Hints::default()
        },
    );
    assert_eq!(
        (mahimahi.format, mahimahi.end),
        (Format::Mahimahi, TraceEnd::Loop)
    );
    let at_ns = vec![0, 0, 7_000_000, 7_000_000, 10_000_000];
    assert_eq!(
        mahimahi.capacity,
        Capacity::Opportunities {
            at_ns: at_ns.into(),
            bytes: 1500
        }
    );
}

/// mahimahi's lists are recognised by their names, or as long lists that never fall and begin near 0.
#[test]
fn a_list_is_mahimahi_only_if_it_can_be_nothing_else() {
    let read = |content: &str, name: &str| {
        parse_trace(content.as_bytes(), Path::new(name), &Hints::default())
            .map(|trace| trace.format)
            .map_err(|fault| fault.to_string())
    };
    let list = |numbers: &mut dyn Iterator<Item = u32>| -> String {
        numbers.map(|number| format!("{number}\n")).collect()
    };
    let long = list(&mut (0..300).map(|i| 3 * i / 2));
    assert_eq!(read(&long, "t"), Ok(Format::Mahimahi));
    assert_eq!(read("12\n12\n15\n20\n", "lte.down"), Ok(Format::Mahimahi));
    for rates in [
        "12\n12\n15\n20\n".to_string(),
        list(&mut (0..300).map(|_| 100_000)),
        list(&mut (0..300).map(|i| 100_000 + i)),
        list(&mut (0..300).map(|i| 1000 * (1 + i / 50))),
        "5\n4\n".to_string(),
        "5.5\n".to_string(),
    ] {
        let fault = read(&rates, "t").unwrap_err();
        for key in ["trace_unit = ", "trace_interval = "] {
            assert!(fault.contains(key), "{fault}");
        }
    }
}

#[test]
fn a_trace_begins_at_its_first_time_stamp() {
    let of = |content: String| {
        let hints = Hints::default();
        parse_trace(content.as_bytes(), Path::new("t"), &hints).unwrap_or_else(|f| panic!("{f}"))
    };
    for header in ["t_s,capacity_bps", "time,down_mbit"] {
        let scale = if header.contains("mbit") { 1.0 } else { 1e6 };
        let expected = steps(&[(0, 5e6), (3 * S / 2, 6e6)], End::Hold);
        for (first, second) in [
            ("1700000000", "1700000001.5"),
            ("1.7e9", "1700000001.500000000"),
            ("2026-01-31T23:59:59Z", "2026-02-01T00:00:00.5Z"),
            ("2026-01-31T12:00:00", "2026-01-31T12:00:01.5"),
            ("2026-01-31 12:00:00", "2026-01-31 12:00:01.5"),
            ("\"2026-01-31 12:00:00\"", "\"2026-01-31 12:00:01.5\""),
            // Zones change, and the day the clock goes back has 25 hours; without a zone it is UTC.
            ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:01.5+00:00"),
            ("2026-10-25T02:59:59.5+02:00", "2026-10-25T02:00:01+01:00"),
            ("2026-01-31T10:00:00", "2026-01-31T12:00:01.5+02:00"),
            ("2023-11-14T22:13:20Z", "1700000001.5"),
        ] {
            let (five, six) = (5.0 * scale, 6.0 * scale);
            let trace = of(format!("{header}\n{first},{five}\n{second},{six}\n"));
            assert_eq!(
                trace.capacity,
                Capacity::Rate(expected.clone()),
                "{header} {first}"
            );
        }
    }
}

/// A scenario over a trace of its own folder, with more lines in `[link]`.
fn over(content: &str, link: &str) -> Result<Scenario, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("linkweir-over-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("t.csv"), content).unwrap();
    let text = format!(
        "duration = \"10s\"\n[link]\ntrace = \"t.csv\"\n{link}\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"a\"\n[[flow]]\nclass = \"a\"\nkind = \"greedy\"\n"
    );
    let read = parse(&text, &folder.join("x.toml"));
    fs::remove_dir_all(folder).unwrap();
    read.map_err(|fault| format!("{}: {}", fault.key, fault.message))
}

#[test]
fn a_scenario_names_the_columns_of_a_csv() {
    let expected = Capacity::Rate(steps(&[(0, 5e6), (3 * S / 2, 6e6)], End::Hold));
    for (content, columns) in [
        // A unit in the name, none for times in seconds or ISO 8601, or one in `columns`.
        (
            "when,down_mbit,x\n10,5,a\n11.5,6,b\n",
            r#"{ t = "when", capacity = "down_mbit" }"#,
        ),
        (
            "x,DL_KBIT,when\n,5000,2026-01-31T12:00:00Z\n,6000,2026-01-31T12:00:01.5Z\n",
            r#"{ t = "when", capacity = "DL_KBIT" }"#,
        ),
        (
            "at_ms,c_bps\n1700000000000,5e6\n1700000001500,6e6\n",
            r#"{ t = "at_ms", capacity = "c_bps" }"#,
        ),
        (
            "at,dl_mbps\n1700000000000,5\n1700000001500,6\n",
            r#"{ t = { column = "at", unit = "ms" }, capacity = { column = "dl_mbps", unit = "Mbit" } }"#,
        ),
        (
            "at,rx\n1700000000000000000,625\n1700000001500000000,750\n",
            r#"{ t = { column = "at", unit = "ns" }, capacity = { column = "rx", unit = "kB" } }"#,
        ),
        (
            "\"at\",\"rx \"\"\n0,5\n0.025,6\n",
            r#"{ t = { column = "at", unit = "min" }, capacity = { column = "rx \"", unit = "Mbit" } }"#,
        ),
    ] {
        let scenario =
            over(content, &format!("columns = {columns}")).unwrap_or_else(|f| panic!("{f}"));
        assert_eq!(scenario.experiment.link.capacity, expected, "{columns}");
        assert_eq!(
            again(&scenario).experiment,
            scenario.experiment,
            "{}",
            scenario.resolved_toml
        );
    }
    let looped = "# end=loop\n# period_s=2\nt,c_bps\n7,5e6\n";
    let scenario = over(looped, r#"columns = { t = "t", capacity = "c_bps" }"#).unwrap();
    let end = End::Loop { period_ns: 2 * S };
    assert_eq!(
        scenario.experiment.link.capacity,
        Capacity::Rate(steps(&[(0, 5e6)], end))
    );
}

#[test]
fn wrong_columns_are_named_with_their_cure() {
    let content = "when,dl,ul_mbit\n0,1,2\n";
    for (link, expected) in [
        (
            r#"columns = { t = "when", capacity = "dl" }"#,
            r#"link.columns.capacity: does not say its unit; write { column = "dl", unit = ... } with one of Gbit"#,
        ),
        (
            r#"columns = { t = "when", capacity = { column = "dl" } }"#,
            "link.columns.capacity.unit: is missing; write one of Gbit",
        ),
        (
            r#"columns = { t = "when", capacity = { column = "dl", unit = "mbps" } }"#,
            "link.columns.capacity.unit: must be one of Gbit",
        ),
        (
            r#"columns = { t = "when", capacity = { column = "dl", unit = "0Mbit" } }"#,
            "link.columns.capacity.unit: must be one of Gbit",
        ),
        (
            r#"columns = { t = "when", capacity = { column = "dl", unit = "ms" } }"#,
            "link.columns.capacity.unit: must be one of Gbit",
        ),
        (
            r#"columns = { t = { column = "when", unit = "Mbit" }, capacity = "ul_mbit" }"#,
            "link.columns.t.unit: must be one of s, ms",
        ),
        (
            r#"columns = { t = "time", capacity = "ul_mbit" }"#,
            ": has no column time; it has when, dl, ul_mbit",
        ),
        (
            r#"columns = { t = "when", capacity = "when_mbit" }"#,
            ": has no column when_mbit",
        ),
        (
            r#"columns = { t = "ul_mbit", capacity = "ul_mbit" }"#,
            "link.columns.capacity: must not be the column of the times",
        ),
        (
            r#"columns = { t = "when" }"#,
            "link.columns.capacity: is missing",
        ),
        (
            r#"columns = { t = "when", capacity = "ul_mbit", dealy = "x" }"#,
            "link.columns.dealy: unknown key",
        ),
        (r#"columns = "dl""#, "link.columns: must be a table like"),
        (
            "columns = { t = \"when\", capacity = \"ul_mbit\" }\ntrace_format = \"mbit\"",
            r#"is only for trace_format = "csv""#,
        ),
        (
            "columns = { t = \"when\", capacity = \"ul_mbit\" }\ntrace_column = \"dl\"",
            "link.trace_column: columns names it already",
        ),
        (
            "trace_format = \"csv\"",
            "link.trace_format: needs the names of its columns",
        ),
        ("", ": cannot tell the trace's format"),
    ] {
        let content = if link.is_empty() {
            "when,dl\n0,1\n"
        } else {
            content
        };
        let fault = over(content, link).unwrap_err();
        assert!(
            fault.contains(expected),
            "{link}\n   got {fault}\nwanted {expected}"
        );
    }
}

/// What iperf3 3.12 wrote over a loopback (`iperf3 --client ... --json --omit 1 --interval 0.5 --time 2 --bitrate 8M`); the
/// second interval has `start`, `seconds` and `bits_per_second` of two.
const IPERF3: &str = r#"{"start": {"version": "iperf 3.12"}, "intervals": [
{"streams": [], "sum": {"start": 0, "end": 0.501461, "seconds": 0.501461, "bytes": 524288, "bits_per_second": 8364167.4, "omitted": true, "sender": true}},
{"streams": [], "sum": {"start": 0.502745, "end": 0.501263, "seconds": 1.004008, "bytes": 524288, "bits_per_second": 4177560.1, "omitted": false, "sender": true}},
{"streams": [], "sum": {"start": 0.501263, "end": 1.000071, "seconds": 0.498808, "bytes": 0, "bits_per_second": 0, "omitted": false, "sender": true}},
{"streams": [], "sum": {"start": 1.000071, "end": 1.500073, "seconds": 0.500002, "bytes": 524288, "bits_per_second": 8388574.0, "omitted": false, "sender": true},
 "sum_bidir_reverse": {"end": 1.5, "bytes": 1}}
], "end": {}}"#;

#[test]
fn what_iperf3_recorded_is_a_trace() {
    let read = |end| {
        let hints = Hints {
            end,
            ..Hints::default()
        };
        parse_trace(IPERF3.as_bytes(), Path::new("t"), &hints).unwrap()
    };
    let points = [
        (0, 8.0 * 524_288.0 / 0.501_263),
        (501_263_000, 0.0),
        (1_000_071_000, 8.0 * 524_288.0 / 0.500_002),
    ];
    let trace = read(None);
    assert_eq!(
        (trace.format, trace.column.as_deref()),
        (Format::Iperf3, Some("sum"))
    );
    assert_eq!(trace.capacity, Capacity::Rate(steps(&points, End::Hold)));
    let end = End::Loop {
        period_ns: 1_500_073_000,
    };
    assert_eq!(
        read(Some(TraceEnd::Loop)).capacity,
        Capacity::Rate(steps(&points, end))
    );
    let scenario = over(IPERF3, "end = \"loop\"").unwrap();
    assert_eq!(again(&scenario).experiment, scenario.experiment);
}

#[test]
fn the_history_of_a_starlink_dish_is_a_trace_from_its_oldest_sample() {
    let read = |current: &str, column: Option<&str>| {
        let text = format!(
            r#"{{"apiVersion": "4", "dishGetHistory": {{"current": {current}, "popPingDropRate": [0, 1],
            "downlinkThroughputBps": [1e6, 2000000, 3000000.5, 0.25, 5e6], "uplinkThroughputBps": [10, 20, 30, 40, 50]}}}}"#
        );
        let hints = Hints {
            column: column.map(str::to_string),
            ..Hints::default()
        };
        let trace = parse_trace(text.as_bytes(), Path::new("t"), &hints).unwrap();
        assert_eq!(trace.format, Format::Starlink);
        let Capacity::Rate(Signal::Steps {
            points,
            end: End::Hold,
        }) = trace.capacity
        else {
            panic!("no steps");
        };
        assert!(points
            .iter()
            .enumerate()
            .all(|(i, (ns, _))| *ns == i as u64 * S));
        points.iter().map(|(_, bps)| *bps).collect::<Vec<_>>()
    };
    // The seventh sample was written last, at index 1.
    assert_eq!(read("\"7\"", None), [3_000_000.5, 0.0, 5e6, 1e6, 2e6]);
    assert_eq!(
        read("7", Some("uplinkThroughputBps")),
        [30.0, 40.0, 50.0, 10.0, 20.0]
    );
    assert_eq!(read("\"5\"", None), [1e6, 2e6, 3_000_000.5, 0.0, 5e6]);
    // The buffer was not full yet.
    assert_eq!(read("\"2\"", None), [1e6, 2e6]);
}

/// Rates of a trace in the order of time, bit/s, and its notes.
fn recorded(text: &str, column: Option<&str>) -> Result<(Vec<f64>, String, Vec<String>), String> {
    let hints = Hints {
        column: column.map(str::to_string),
        ..Hints::default()
    };
    let trace = parse_trace(text.as_bytes(), Path::new("t"), &hints).map_err(|f| f.to_string())?;
    let Capacity::Rate(Signal::Steps { points, .. }) = trace.capacity else {
        panic!("no steps");
    };
    let rates = points.iter().map(|(_, bps)| *bps).collect();
    Ok((rates, trace.column.unwrap(), trace.notes))
}

/// A test of iperf3 with a second per sum: bytes, and whether this end sent them; `more` follows the intervals.
fn test_of(start: &str, sums: &[(u64, Option<bool>)], more: &str) -> String {
    let sums: Vec<String> = (1..)
        .zip(sums)
        .map(|(end, (bytes, sender))| {
            let sender =
                sender.map_or_else(String::new, |sender| format!(", \"sender\": {sender}"));
            format!("{{\"sum\": {{\"end\": {end}, \"bytes\": {bytes}{sender}}}}}")
        })
        .collect();
    let sums = sums.join(", ");
    format!("{{\"start\": {{{start}}}, \"intervals\": [{sums}], \"end\": {{}}{more}}}\n")
}

const SENT: [(u64, Option<bool>); 2] = [(1_000_000, Some(true)), (2_000_000, Some(true))];
const RECEIVED: [(u64, Option<bool>); 2] = [(500_000, Some(false)), (750_000, Some(false))];

#[test]
fn what_a_sender_of_iperf3_counts_is_no_capacity() {
    let (rates, _, notes) = recorded(&test_of("", &SENT, ""), None).unwrap();
    assert_eq!((rates, notes.len()), (vec![8e6, 16e6], 1));
    assert!(
        notes[0].starts_with("sum is what this end wrote into its socket"),
        "{notes:?}"
    );
    assert!(notes[0].contains("--reverse"), "{notes:?}");
    let (_, _, notes) = recorded(&test_of("", &RECEIVED, ""), None).unwrap();
    assert_eq!(notes, [""; 0]);
    // A sender over UDP sends at a rate of its own.
    let udp = "\"test_start\": {\"protocol\": \"UDP\", \"reverse\": 0}";
    let fault = recorded(&test_of(udp, &SENT, ""), None).unwrap_err();
    assert!(
        fault.starts_with("t: is the report of a sender over UDP"),
        "{fault}"
    );
    assert!(fault.contains("--get-server-output"), "{fault}");
    assert!(recorded(&test_of(udp, &RECEIVED, ""), None).is_ok());
    // Files of iperf3 before 3.7 say it only by who connected and which way.
    for (end, reverse, sends) in [
        ("connecting_to", 0, true),
        ("connecting_to", 1, false),
        ("accepted_connection", 0, false),
        ("accepted_connection", 1, true),
    ] {
        let start = format!(
            "\"{end}\": {{}}, \"test_start\": {{\"protocol\": \"TCP\", \"reverse\": {reverse}}}"
        );
        let old = test_of(&start, &[(1_000_000, None)], "");
        let (_, _, notes) = recorded(&old, None).unwrap();
        assert_eq!(
            notes.len(),
            usize::from(sends),
            "{end} {reverse}: {notes:?}"
        );
    }
}

#[test]
fn the_receivers_intervals_of_iperf3_are_read_if_the_file_has_them() {
    let server = format!(", \"server_output_json\": {}", test_of("", &RECEIVED, ""));
    let (rates, column, notes) = recorded(&test_of("", &SENT, &server), None).unwrap();
    assert_eq!((rates, column.as_str()), (vec![4e6, 6e6], "sum"));
    assert!(notes[0].contains("the server's report"), "{notes:?}");
    let udp = "\"test_start\": {\"protocol\": \"UDP\"}";
    assert_eq!(
        recorded(&test_of(udp, &SENT, &server), None).unwrap().0,
        [4e6, 6e6]
    );
    // With --reverse the server is the sender.
    let server = format!(", \"server_output_json\": {}", test_of("", &SENT, ""));
    let (rates, _, notes) = recorded(&test_of("", &RECEIVED, &server), None).unwrap();
    assert_eq!((rates, notes.len()), (vec![4e6, 6e6], 0));

    // Both directions at once.
    let sums = |bytes: u64, sender: bool| {
        format!("{{\"end\": 1, \"bytes\": {bytes}, \"sender\": {sender}}}")
    };
    let both = format!(
        "{{\"intervals\": [{{\"sum\": {}, \"sum_bidir_reverse\": {}}}]}}",
        sums(125_000, true),
        sums(250_000, false)
    );
    let (rates, column, notes) = recorded(&both, None).unwrap();
    assert_eq!((rates, column.as_str()), (vec![2e6], "sum_bidir_reverse"));
    assert!(notes[0].contains("the other direction"), "{notes:?}");
    let (rates, column, notes) = recorded(&both, Some("sum")).unwrap();
    assert_eq!((rates, column.as_str(), notes.len()), (vec![1e6], "sum", 1));
}

#[test]
fn the_good_intervals_of_a_test_that_failed_are_read() {
    let failed = test_of(
        "",
        &RECEIVED,
        ", \"error\": \"interrupt - the client has terminated\"",
    );
    let (rates, _, notes) = recorded(&failed, None).unwrap();
    assert_eq!(rates, [4e6, 6e6]);
    assert!(
        notes[0].contains("(interrupt - the client has terminated)"),
        "{notes:?}"
    );
    // iperf3 3.12 writes the last interval twice when the other end dies.
    let last = "{\"sum\": {\"end\": 2, \"bytes\": 750000, \"sender\": false}}";
    let twice = failed.replace(last, &format!("{last}, {last}"));
    assert_ne!(twice, failed);
    assert_eq!(recorded(&twice, None).unwrap().0, [4e6, 6e6]);
    let nothing = test_of("", &[], ", \"error\": \"unable to connect\"");
    let fault = recorded(&nothing, None).unwrap_err();
    assert_eq!(fault, "t: iperf3 says it failed: unable to connect");
}

#[test]
fn text_around_json_is_skipped_and_said() {
    let test = test_of("", &RECEIVED, "");
    let text = format!("warning: no route\n{test}iperf3: interrupt - the client has terminated\n");
    let (rates, _, notes) = recorded(&text, None).unwrap();
    assert_eq!(rates, [4e6, 6e6]);
    let skipped = "text that is no complete JSON of iperf3 is skipped";
    let expected = [
        format!("line 1: {skipped}: warning: no route"),
        format!("line 3: {skipped}: iperf3: interrupt - the client has terminated"),
    ];
    assert_eq!(notes, expected);
    // A second test that was cut off.
    let (rates, _, notes) = recorded(&format!("{test}{}", &test[..40]), None).unwrap();
    assert_eq!((rates, notes.len()), (vec![4e6, 6e6], 1));
    assert!(
        notes[0].starts_with("line 2: text that is no complete JSON"),
        "{notes:?}"
    );
    // One alone is refused as before, with its line.
    let fault = recorded(&format!("\n{}", &test[..60]), None).unwrap_err();
    assert!(
        fault.starts_with("t:2: is not complete JSON of iperf3: EOF"),
        "{fault}"
    );
}

#[test]
fn of_several_tests_in_a_file_the_longest_is_read() {
    let longer = [&RECEIVED[..], &RECEIVED[..1]].concat();
    let start = "\"timestamp\": {\"time\": \"Sat, 31 Jan 2026 10:04:07 GMT\"}";
    let text = [
        test_of("", &RECEIVED, ""),
        test_of(start, &longer, ""),
        test_of("", &RECEIVED, ""),
    ]
    .concat();
    let (rates, _, notes) = recorded(&text, None).unwrap();
    assert_eq!(rates, [4e6, 6e6, 4e6]);
    let expected = "the file holds 3 tests; the longest, number 2 of 3 s, begun Sat, 31 Jan 2026 10:04:07 GMT, is read. For \
                    another cut the file";
    assert_eq!(notes, [expected]);
}

#[test]
fn a_receivers_last_instant_is_not_held_as_a_rate() {
    // What a server of iperf3 3.12 wrote at the end: 262144 bytes in 0.2 ms, which are 10 Gbit/s.
    let sums = [
        (0.500_063, 4_000_000),
        (1.000_063, 4_000_000),
        (1.000_257, 262_144),
    ];
    let sums = sums.map(|(end, bytes)| {
        format!("{{\"sum\": {{\"end\": {end}, \"bytes\": {bytes}, \"sender\": false}}}}")
    });
    let text = format!("{{\"intervals\": [{}]}}", sums.join(", "));
    let (rates, ..) = recorded(&text, None).unwrap();
    let expected = [32_000_000.0 / 0.500_063, 8.0 * 4_262_144.0 / 0.500_194];
    assert_eq!(rates.len(), 2);
    for (rate, expected) in rates.iter().zip(expected) {
        assert!((rate - expected).abs() < 1.0, "{rates:?}");
    }
}

fn poll(current: Option<u64>, samples: &str) -> String {
    let current = current.map_or_else(String::new, |n| format!("\"current\": \"{n}\", "));
    format!("{{\"dishGetHistory\": {{{current}\"downlinkThroughputBps\": [{samples}]}}}}\n")
}

#[test]
fn samples_of_a_dish_that_are_no_numbers_hold_the_value_before() {
    for nan in ["NaN", "\"NaN\"", "null", "\"Infinity\"", "-Infinity"] {
        let text = poll(Some(6), &format!("{nan}, 1e6, 2e6, {nan}, {nan}, 3e6"));
        let trace = parse_trace(text.as_bytes(), Path::new("t"), &Hints::default()).unwrap();
        let points = [(0, 1e6), (S, 2e6), (4 * S, 3e6)];
        assert_eq!(
            trace.capacity,
            Capacity::Rate(steps(&points, End::Hold)),
            "{nan}"
        );
        let expected = [
            "the first 1 values of downlinkThroughputBps are no numbers and are left out",
            "2 of 6 values of downlinkThroughputBps are no numbers; the value before holds in their place",
        ];
        assert_eq!(trace.notes, expected);
    }
    let none = recorded(&poll(Some(2), "NaN, NaN"), None).unwrap_err();
    assert_eq!(none, "t: holds no values of downlinkThroughputBps");
    let word = recorded(&poll(Some(2), "1, \"fast\""), None).unwrap_err();
    assert_eq!(
        word,
        "t: dishGetHistory.downlinkThroughputBps[1]: \"fast\" is no number"
    );
    // Words inside of strings stay.
    let text = poll(Some(1), "1e6").replace("{\"dish", "{\"NaN \\\" Infinity\": \"NaN\", \"dish");
    assert_eq!(recorded(&text, None).unwrap().0, [1e6]);
}

#[test]
fn a_history_without_a_count_is_taken_in_the_order_of_its_file() {
    let (rates, _, notes) = recorded(&poll(None, "1e6, 2e6, 3e6"), None).unwrap();
    assert_eq!(rates, [1e6, 2e6, 3e6]);
    assert!(
        notes[0].starts_with("the history has no count of its samples (current)"),
        "{notes:?}"
    );
    let snake =
        "{\"dish_get_history\": {\"current\": 4, \"downlink_throughput_bps\": [4e6, 2e6, 3e6]}}";
    assert_eq!(recorded(snake, None).unwrap().0, [2e6, 3e6, 4e6]);
}

#[test]
fn polls_of_a_dish_are_joined_where_they_overlap() {
    // Ring buffers of four samples, number n being n Mbit/s: up to sample 6, and up to sample 8.
    let first = poll(Some(6), "5e6, 6e6, 3e6, 4e6");
    let joined = recorded(
        &[&first[..], &poll(Some(8), "5e6, 6e6, 7e6, 8e6")].concat(),
        None,
    )
    .unwrap();
    assert_eq!(joined.0, [3e6, 4e6, 5e6, 6e6, 7e6, 8e6]);
    assert_eq!(joined.2, ["the file holds 2 polls, which join to 6 s"]);
    // The same poll twice, and one that begins where the first ends.
    assert_eq!(
        recorded(&[&first[..], &first].concat(), None)
            .unwrap()
            .0
            .len(),
        4
    );
    let next = poll(Some(10), "9e6, 10e6, 7e6, 8e6");
    let joined = recorded(&[&first[..], &next].concat(), None).unwrap();
    assert_eq!(joined.0.len(), 8);
    // A gap, a restart, another dish: the longest part.
    let after = "the file holds 2 polls that do not all join; the longest part without a gap, 4 s, is read, and";
    for (later, lost) in [
        (poll(Some(11), "9e6, 10e6, 11e6, 8e6"), 4),
        (poll(Some(2), "1e6, 2e6, 0, 0"), 2),
        (poll(Some(8), "5e6, 6.5e6, 7e6, 8e6"), 4),
    ] {
        let (rates, _, notes) = recorded(&[&first[..], &later].concat(), None).unwrap();
        assert_eq!(rates, [3e6, 4e6, 5e6, 6e6], "{later}");
        assert_eq!(notes, [format!("{after} {lost} s are not")]);
    }
}

#[test]
fn a_scenario_says_what_of_its_trace_was_not_read() {
    let scenario = over(&test_of("", &SENT, ""), "").unwrap();
    assert_eq!(scenario.notes.len(), 1);
    assert!(
        scenario.notes[0].contains(": sum is what this end wrote"),
        "{:?}",
        scenario.notes
    );
}
