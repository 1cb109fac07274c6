// SPDX-License-Identifier: BSD-3-Clause
//! Traces from their content. Expected values are worked out by hand.

use std::path::Path;

use super::*;

fn read(content: impl AsRef<[u8]>, keys: &str) -> Result<Trace, String> {
    let hints = Hints::parse(keys).unwrap();
    parse(content.as_ref(), Path::new("x.txt"), &hints).map_err(|fault| fault.to_string())
}

/// Starts in ms, and bit/s.
fn steps(trace: &Trace) -> Vec<(u64, f64)> {
    let Capacity::Rate(Signal::Steps { points, .. }) = &trace.capacity else {
        panic!("{:?} is no list of steps", trace.capacity);
    };
    let in_ms = |(ns, bps): &(u64, f64)| (ns / 1_000_000, *bps);
    points.iter().map(in_ms).collect()
}

const MBIT: f64 = 1e6;

fn losses(unit: &str, values: &str) -> Trace {
    let keys = format!(
        "columns = {{ t = \"t_s\", capacity = \"x_mbit\", loss = {{ column = \"loss\", unit = \"{unit}\" }} }}"
    );
    let lines = values.split(' ').enumerate();
    let lines: Vec<String> = lines.map(|(at, loss)| format!("{at},5,{loss}\n")).collect();
    read(format!("t_s,x_mbit,loss\n{}", lines.concat()), &keys).unwrap()
}

#[test]
fn a_loss_of_everything_is_doubted_without_asking_for_the_unit_it_has() {
    let doubts = losses("%", "0 100 0").understood.doubts;
    assert!(
        doubts[0].starts_with("loss is 100 %, so that everything is lost, in 1 of 3 lines"),
        "{doubts:?}"
    );
    assert!(!doubts[0].contains("unit = \"%\""), "{doubts:?}");
    let doubts = losses("1", "0 1 0").understood.doubts;
    assert!(doubts[0].contains("unit = \"%\""), "{doubts:?}");
    assert_eq!(losses("%", "0 1 0").understood.doubts, [""; 0]);
}

#[test]
fn a_first_gap_does_not_lengthen_the_interval_before_the_first_line() {
    let content = "t_s,x_mbit\n0,5\n30,6\n31,7\n32,8\n33,9\n";
    let trace = read(content, "covers = \"before\"").unwrap();
    let expected = [
        (0, 5.0),
        (1000, 6.0),
        (31_000, 7.0),
        (32_000, 8.0),
        (33_000, 9.0),
    ];
    assert_eq!(steps(&trace), expected.map(|(ms, mbit)| (ms, mbit * MBIT)));
    let trace = read(content, "covers = \"before\"\ngap = \"outage\"").unwrap();
    let expected = [
        (0, 5.0),
        (1000, 0.0),
        (30_000, 6.0),
        (31_000, 7.0),
        (32_000, 8.0),
        (33_000, 9.0),
    ];
    assert_eq!(steps(&trace), expected.map(|(ms, mbit)| (ms, mbit * MBIT)));
}

#[test]
fn equal_times_are_spread_over_the_interval_that_they_cover() {
    let keys = "covers = \"before\"\nequal_times = \"spread\"";
    for (content, expected) in [
        // Two lines share each second, the first of which ends at the first stamp.
        (
            "t_s,x_mbit\n0,1\n0,2\n1,3\n1,4\n2,5\n2,6\n",
            vec![
                (0, 1.0),
                (500, 2.0),
                (1000, 3.0),
                (1500, 4.0),
                (2000, 5.0),
                (2500, 6.0),
            ],
        ),
        // The line at 0 covers a second, those at 1 half a second each.
        (
            "t_s,x_mbit\n0,1\n1,2\n1,3\n2,4\n",
            vec![(0, 1.0), (1000, 2.0), (1500, 3.0), (2000, 4.0)],
        ),
    ] {
        let trace = read(content, keys).unwrap();
        let expected: Vec<_> = expected
            .iter()
            .map(|(ms, mbit)| (*ms, mbit * MBIT))
            .collect();
        assert_eq!(steps(&trace), expected, "{content}");
    }
    let keys = "equal_times = \"spread\"";
    let trace = read("t_s,x_mbit\n0,1\n1,2\n1,3\n2,4\n", keys).unwrap();
    let expected = [(0, 1.0), (1000, 2.0), (1500, 3.0), (2000, 4.0)];
    assert_eq!(steps(&trace), expected.map(|(ms, mbit)| (ms, mbit * MBIT)));
}

#[test]
fn sorted_lines_start_at_the_earliest() {
    let content =
        "when,x_mbps\n2020-01-01T00:00:02Z,5\n2020-01-01T00:00:00Z,6\n2020-01-01T00:00:01Z,7\n";
    let trace = read(content, "earlier_times = \"sort\"").unwrap();
    assert_eq!(trace.understood.start, "2020-01-01T00:00:00Z");
    assert_eq!(
        steps(&trace),
        [(0, 6.0 * MBIT), (1000, 7.0 * MBIT), (2000, 5.0 * MBIT)]
    );
}

#[test]
fn a_bad_first_value_is_no_header() {
    let columns = "columns = { t = 1, capacity = { column = 2, unit = \"Mbit\" } }";
    let rates = "trace_unit = \"Mbit\"\ntrace_interval = \"1s\"";
    for (content, keys) in [
        ("0,-\n1,6\n", columns),
        ("2020-01-01 00:00:00,n/a\n2020-01-01 00:00:01,6\n", columns),
        ("0,five\n1,6\n", columns),
        ("n/a\n6\n", rates),
        ("nan\n6\n", rates),
        ("-\n6\n", rates),
        ("5 Mbit\n6 Mbit\n", rates),
    ] {
        let fault = read(content, keys).unwrap_err();
        assert!(fault.starts_with("x.txt:1: "), "{content:?}: {fault}");
    }
    for (content, keys) in [
        ("t,rate\n1,6\n", columns),
        ("Zeit,Rate\n1,6\n", columns),
        // As pandas writes a data frame: its index has no name.
        (",rate\n1,6\n", columns),
        ("rate\n6\n", rates),
        ("\"down, in Mbit\"\n6\n", rates),
    ] {
        let trace = read(content, keys).unwrap();
        assert_eq!(steps(&trace), [(0, 6.0 * MBIT)], "{content:?}");
    }
}

#[test]
fn a_table_of_clock_times_without_header_is_refused_with_its_columns() {
    for (content, cure) in [
        (
            "2020-01-01T00:00:00Z,5\n2020-01-01T00:00:01Z,6\n",
            "columns = { t = 1, capacity = { column = 2, unit = \"Mbit\" } }",
        ),
        (
            "01/02/2020 00:00:00;5;7\n01/02/2020 00:00:01;6;8\n",
            "columns = { t = 1, capacity = { column = 2, unit = \"Mbit\" } }",
        ),
        (
            "5,12:11:21\n6,12:11:22\n",
            "columns = { t = 2, capacity = { column = 1, unit = \"Mbit\" } }",
        ),
        (
            "2020-01-01,12:11:21,5\n2020-01-01,12:11:22,6\n",
            "columns = { t = [1, 2], capacity = { column = 3, unit = \"Mbit\" } }",
        ),
    ] {
        let fault = read(content, "").unwrap_err();
        assert!(
            fault.contains("has no header") && fault.contains(cure),
            "{content:?}: {fault}"
        );
        let keys = format!("{cure}\ndates = \"day_first\"");
        assert_eq!(
            read(content, &keys).unwrap().understood.values,
            2,
            "{content:?}"
        );
    }
}

#[test]
fn gzip_padded_with_zeros_is_read_as_by_gzip() {
    // printf 't_s,x_mbit\n0,5\n' | gzip -n, twice one after the other, of which gzip -dc prints both.
    let first = gzip(b"t_s,x_mbit\n0,5\n");
    let second = gzip(b"1,6\n");
    for zeros in [0, 1, 700] {
        let content = [&first[..], &second[..], &vec![0; zeros]].concat();
        let expected = [(0, 5.0 * MBIT), (1000, 6.0 * MBIT)];
        assert_eq!(steps(&read(content, "").unwrap()), expected, "{zeros}");
    }
    let fault = read([&first[..], b"more"].concat(), "").unwrap_err();
    assert!(fault.contains("is not complete gzip"), "{fault}");
}

fn gzip(text: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    zipped.write_all(text).unwrap();
    zipped.finish().unwrap()
}

/// A test of iperf3 with two intervals.
const TEST: &str = r#"{"intervals": [{"sum": {"end": 1, "bytes": 1000000, "sender": false}},
{"sum": {"end": 2, "bytes": 2000000, "sender": false}}]}
"#;

#[test]
fn only_objects_of_the_program_count_as_its_tests() {
    let expected = [(0, 8.0 * MBIT), (1000, 16.0 * MBIT)];
    for content in [
        format!("{TEST}{{}}\n{{\"a\": 1}}\n"),
        format!("{{\"a\": 1}}\n{TEST}"),
        // A second test that was cut off behind one of its intervals.
        format!("{TEST}{{\"intervals\": [\n{{\"sum\": {{\"end\": 1, \"bytes\": 1}}}},\n"),
    ] {
        let trace = read(&content, "").unwrap();
        assert_eq!(steps(&trace), expected, "{content}");
        assert_eq!(trace.notes.len(), 1, "{:?}", trace.notes);
        assert!(
            trace.notes[0].contains("no complete JSON of iperf3"),
            "{:?}",
            trace.notes
        );
    }
    let twice = read(format!("{TEST}{TEST}"), "").unwrap();
    assert!(
        twice.notes[0].contains("holds 2 tests"),
        "{:?}",
        twice.notes
    );
}

#[test]
fn a_file_without_a_test_is_refused() {
    for format in ["iperf3", "starlink"] {
        let keys = format!("trace_format = \"{format}\"");
        for content in ["", " \n", "no JSON\n", "{}\n", "# a remark\n"] {
            let fault = read(content, &keys).unwrap_err();
            assert!(fault.starts_with("x.txt"), "{fault}");
        }
    }
}

#[test]
fn many_texts_that_are_skipped_make_few_notes() {
    let broken = "{\"intervals\": oh\n".repeat(50_000);
    let content =
        format!("{TEST}{broken}{TEST}").replace("oh\n{\"intervals\": [", "oh\n\n{\"intervals\": [");
    let trace = read(&content, "").unwrap();
    assert!(trace.notes.len() <= 5, "{:?}", trace.notes);
    let many = format!("{TEST}oh\n").repeat(2_000);
    let notes = read(&many, "").unwrap().notes;
    assert!(notes.len() <= 6, "{} notes", notes.len());
    assert!(
        notes.iter().any(|note| note.contains("1997 more")),
        "{notes:?}"
    );
}
