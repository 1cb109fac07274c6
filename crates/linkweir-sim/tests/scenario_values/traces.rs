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
