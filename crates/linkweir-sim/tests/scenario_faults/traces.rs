// SPDX-License-Identifier: BSD-3-Clause
//! Faults of capacity traces.

use std::path::Path;

use linkweir_sim::scenario::{parse_trace, Format, Hints, TraceEnd};

fn trace_fault(content: &str) -> String {
    parse_trace(content.as_bytes(), Path::new("t.csv"), &Hints::default())
        .expect_err(content)
        .to_string()
}

/// What is wrong, and what the message says.
const TRACES: &[(&str, &str)] = &[
    ("", "t.csv: is empty"),
    ("# only remarks\n", "t.csv: is empty"),
    ("t_s,capacity_bps\n", "t.csv: has a header but no values"),
    (
        "t_s,capacity_bps\n0,1e6\n1,-5\n",
        "t.csv:3: capacity_bps = \"-5\": must be bit/s, 0 .. 400e9",
    ),
    (
        "t_s,capacity_bps\n0,1e6\n1,fast\n",
        "t.csv:3: capacity_bps = \"fast\": is not a number",
    ),
    (
        "t_s,capacity_bps\n0,nan\n",
        "t.csv:2: capacity_bps = \"nan\": is not a number",
    ),
    (
        "t_s,capacity_bps\n0,inf\n",
        "t.csv:2: capacity_bps = \"inf\": is not a number",
    ),
    ("t_s,capacity_bps\n0,1e12\n", "must be bit/s, 0 .. 400e9"),
    (
        "t_s,capacity_bps\n0,0.5\n",
        "t.csv:2: capacity_bps = \"0.5\": is below 1 bit/s: write 0 for an outage",
    ),
    (
        "t_s,capacity_bps\n0,1\n0,2\n",
        "t.csv:3: t_s = \"0\": must be later than the line before, 0",
    ),
    (
        "t_s,capacity_bps\n1,1\n",
        "t.csv:2: t_s = \"1\": the first time must be 0",
    ),
    (
        "t_s,capacity_bps\n0,1,2\n",
        "t.csv:2: has 3 fields where the header has 2",
    ),
    (
        "t_s,capacity\n0,1\n",
        "t.csv:1: cannot tell the trace's format",
    ),
    (
        "t_s,capacity_bps,dealy_s\n0,1,2\n",
        "unknown column \"dealy_s\"; did you mean delay_s?",
    ),
    (
        "t_s,capacity_bps,loss\n0,1,1.5\n",
        "t.csv:2: loss = \"1.5\": must be a probability",
    ),
    (
        "# end=lop\nt_s,capacity_bps\n0,1\n",
        "t.csv:1: end = \"lop\": must be one of loop, hold, stop",
    ),
    (
        "# edn=loop\nt_s,capacity_bps\n0,1\n",
        "t.csv:1: edn = \"loop\": unknown key; did you mean end?",
    ),
    (
        "# end=loop\nt_s,capacity_bps\n0,1\n",
        "needs a line # period_s=",
    ),
    (
        "# period_s=1\nt_s,capacity_bps\n0,1\n1,2\n",
        "t.csv:1: period_s must be larger than the time from the first line to the last",
    ),
    (
        "t_s,dl_mbit\n0,-1\n",
        "t.csv:2: dl_mbit = \"-1\": must be Mbit/s",
    ),
    ("hello\n", "t.csv:1: cannot tell the trace's format"),
    (
        "t_s,capacity_bps\n315360000,1\n",
        "t.csv:2: t_s = \"315360000\": the first time must be 0, or a UNIX",
    ),
    (
        "t_s,dl_mbit\n1700000000000,1\n1700000001000,2\n3400000000000000,2\n",
        "must be a time in s that is not negative and before the year 2500; is it in another unit?",
    ),
    (
        "t_s,dl_mbit\n5,1\n315360006,2\n",
        "t.csv:3: t_s = \"315360006\": must be at most 315360000 seconds after the first",
    ),
    ("t_s,dl_mbit\n-1,1\n", "t.csv:2: t_s = \"-1\": must be a time in s that is not negative"),
    (
        "t_s,dl_mbit\n31.1.2026 12:00,1\n",
        "t.csv:2: t_s = \"31.1.2026 12:00\": is not a number; must be seconds or ISO 8601",
    ),
    (
        "t_s,dl_mbit\n2026-01-31T12:00:00[Mars/Phobos],1\n",
        "there is no zone \"Mars/Phobos\"",
    ),
    ("t_s,dl_mbit\n1960-01-31,1\n", "t.csv:2: t_s = \"1960-01-31\": must be after 1970"),
    (
        "t_s,dl_mbit\n2026-01-31,1\n2026-01-30,1\n",
        "t.csv:3: t_s = \"2026-01-30\": must be later than the line before, 2026-01-31",
    ),
    ("{\"a\": 1}", "t.csv: is JSON, but neither of iperf3 (intervals) nor of Starlink"),
    (
        "{\"event\":\"start\",\"data\":{}}\n{\"event\":\"interval\"}\n",
        "t.csv: looks like iperf3 --json-stream, which is not read; record with iperf3 --json",
    ),
    ("{\n\"intervals\": [\n", "t.csv:3: is not complete JSON of iperf3: EOF"),
    (
        "{\"intervals\": [], \"error\": \"unable to connect\"}",
        "t.csv: iperf3 says it failed: unable to connect",
    ),
    ("{\"intervals\": []}", "t.csv: holds no values of sum"),
    (
        "{\"intervals\": [{\"sum\": {\"end\": 2, \"bytes\": 1}}, {\"sum\": {\"end\": 1, \"bytes\": 1}}]}",
        "t.csv: intervals[1].sum.end = 1: must be seconds after the interval before, 2",
    ),
    ("{\"intervals\": [{}]}", "t.csv: intervals[0].sum is missing"),
    (
        "{\"intervals\": [{\"sum\": {\"end\": 1e-6, \"bytes\": 1000000}}]}",
        "t.csv: intervals[0].sum: 8000000000000 bit/s is not within 0 .. 400e9",
    ),
    (
        "{\"dishGetHistory\": {\"current\": \"x\"}}",
        "t.csv: dishGetHistory.current must be the number of samples so far",
    ),
    (
        "{\"dishGetHistory\": {\"current\": \"3\"}}",
        "t.csv: holds no values of downlinkThroughputBps",
    ),
    (
        "{\"dishGetHistory\": {\"current\": \"3\", \"downlinkThroughputBps\": [1, -2]}}",
        "t.csv: dishGetHistory.downlinkThroughputBps[1]: -2 bit/s is not within",
    ),
    (
        "{\"dishGetHistory\": {\"current\": \"3\", \"downlinkThroughputBps\": [\"NaN\"]}}",
        "t.csv: holds no values of downlinkThroughputBps",
    ),
];

/// Of files that the user says are mahimahi's.
const MAHIMAHI: &[(&str, &str)] = &[
    (
        "1\n2\n-3\n",
        "t.csv:3: ms = \"-3\": must be a whole number of ms",
    ),
    ("1\n2\nx\n", "t.csv:3: ms = \"x\": is not a number"),
    (
        "1\n2.5\n",
        "t.csv:2: ms = \"2.5\": must be a whole number of ms",
    ),
    (
        "5\n4\n",
        "t.csv:2: ms = \"4\": must not be less than the line before, 5",
    ),
    ("0\n0\n", "the last number is the period"),
];

#[test]
fn trace_faults_name_the_line() {
    let mahimahi = Hints {
        format: Some(Format::Mahimahi),
        ..Hints::default()
    };
    for &(content, expected) in MAHIMAHI {
        let found = parse_trace(content.as_bytes(), Path::new("t.csv"), &mahimahi).unwrap_err();
        assert!(found.to_string().contains(expected), "{content:?}: {found}");
    }
    for &(content, expected) in TRACES {
        let message = trace_fault(content);
        assert!(
            message.contains(expected),
            "{content:?}\n     got {message}\n  wanted {expected}"
        );
    }
    // Only a time that is too large may be in a smaller unit, and only where the file can name the unit.
    for content in ["t_s,dl_mbit\n-1,1\n", "t_s,capacity_bps\n1e12,1\n"] {
        let message = trace_fault(content);
        assert!(message.ends_with("before the year 2500"), "{message}");
    }
    let latin1 = parse_trace(b"1\n2\n\xff\n", Path::new("t.csv"), &Hints::default()).unwrap_err();
    assert_eq!(latin1.to_string(), "t.csv:3: is not text (UTF-8)");
}

#[test]
fn mahimahi_only_loops() {
    let hints = Hints {
        format: Some(Format::Mahimahi),
        end: Some(TraceEnd::Hold),
        ..Hints::default()
    };
    assert!(parse_trace(b"1\n2\n", Path::new("t"), &hints)
        .unwrap_err()
        .to_string()
        .contains("always starts again"));
}
