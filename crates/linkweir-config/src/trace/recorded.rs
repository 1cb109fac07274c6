// SPDX-License-Identifier: BSD-3-Clause
//! Throughput that other programs recorded as JSON: intervals of iperf3 (`iperf3 --json`) and the history of a Starlink
//! dish (`get_history` of its gRPC interface, as grpcurl prints it).
//!
//! iperf3: what one interval carried is its `bytes` over the time from the end of the interval before it. `start`,
//! `seconds` and `bits_per_second` are not used: after omitted intervals (`--omit`) iperf3 3.12 counts them twice in the
//! first one that is kept. Omitted intervals are left out. A last interval that is much shorter than the one before it is
//! joined with it: a receiver ends with one of a millisecond, whose rate means nothing and would be held.
//!
//! What a sender counts is what it wrote into its socket. So the intervals of a receiver are used if the file has them:
//! those of the other direction (`--bidir`) or of the server (`--get-server-output`).
//!
//! Starlink: one sample per second in a ring buffer. `current` counts all samples since the dish started, so the oldest
//! one is at `current` modulo the length; before the first wrap only the first `current` are valid (notes in
//! sparky8512/starlink-grpc-tools). JSON has no word for a float that is no number: grpcurl writes "NaN" in quotes, Python
//! without.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::Deserialize;

use crate::fault::{shorten, Fault};
use crate::limits;

use super::file::Reader;
use super::format::Format;

/// Columns of an iperf3 file, the first where none is named.
const IPERF3: [&str; 2] = ["sum", "sum_bidir_reverse"];
/// Columns of a Starlink file, the first where none is named.
const STARLINK: [&str; 2] = ["downlinkThroughputBps", "uplinkThroughputBps"];
/// What tells the programs' files, those of Starlink first.
const NAMES: [&str; 3] = [
    "\"dishGetHistory\"",
    "\"dish_get_history\"",
    "\"intervals\"",
];
const NS_PER_S: f64 = 1e9;

/// A last interval is joined with the one before it if that is at least this many times as long.
const SLIVER: u64 = 10;

#[derive(Deserialize)]
struct Iperf3 {
    #[serde(default)]
    start: Start,
    intervals: Option<Vec<Interval>>,
    error: Option<String>,
    /// The server's file inside the client's.
    server_output_json: Option<Box<Iperf3>>,
}

#[derive(Default, Deserialize)]
struct Start {
    /// Only a client has it.
    connecting_to: Option<serde::de::IgnoredAny>,
    /// Only a server has it.
    accepted_connection: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    test_start: TestStart,
    #[serde(default)]
    timestamp: Timestamp,
}

#[derive(Default, Deserialize)]
struct TestStart {
    protocol: Option<String>,
    reverse: Option<u8>,
}

#[derive(Default, Deserialize)]
struct Timestamp {
    time: Option<String>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Option<Sum>,
    sum_bidir_reverse: Option<Sum>,
}

#[derive(Deserialize)]
struct Sum {
    /// Seconds from the start of the test.
    end: f64,
    bytes: u64,
    #[serde(default)]
    omitted: bool,
    /// Not in files of iperf3 before 3.7.
    sender: Option<bool>,
}

#[derive(Deserialize)]
struct Starlink {
    #[serde(rename = "dishGetHistory", alias = "dish_get_history")]
    history: History,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    current: Option<Count>,
    #[serde(default, alias = "downlink_throughput_bps")]
    downlink_throughput_bps: Vec<Option<Sample>>,
    #[serde(default, alias = "uplink_throughput_bps")]
    uplink_throughput_bps: Vec<Option<Sample>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Sample {
    Number(f64),
    Text(String),
}

/// A 64-bit number, which JSON of protocol buffers writes as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Count {
    Number(u64),
    Text(String),
}

/// Rates over time: (start in ns, bit/s), the first start 0, and the end of the last, ns.
pub(super) struct Recording {
    pub(super) points: Vec<(u64, f64)>,
    pub(super) end_ns: u64,
    pub(super) column: &'static str,
    /// What of the file was not read, or not as it lies, a sentence each.
    pub(super) notes: Vec<String>,
}

/// The program that wrote this text, if it is JSON.
pub(super) fn recognise(reader: &Reader, text: &str) -> Option<Result<Format, Fault>> {
    let json = beginning(text)?;
    let alone = text[..json].trim().is_empty();
    if !alone && !NAMES.iter().any(|name| text.contains(name)) {
        return None;
    }
    Some(if NAMES[..2].iter().any(|name| text.contains(name)) {
        Ok(Format::Starlink)
    } else if text.contains("\"intervals\"") {
        Ok(Format::Iperf3)
    } else if text.contains("\"event\"") {
        Err(reader.whole_fault(
            "looks like iperf3 --json-stream, which is not read; record with iperf3 --json",
        ))
    } else {
        Err(reader.whole_fault(
            "is JSON, but neither of iperf3 (intervals) nor of Starlink (dishGetHistory)",
        ))
    })
}

/// Reads the file of a program.
pub(super) fn read(
    reader: &Reader,
    text: &str,
    format: Format,
    column: Option<&str>,
) -> Result<Recording, Fault> {
    let columns = if format == Format::Starlink {
        STARLINK
    } else {
        IPERF3
    };
    let column = column
        .map(|wanted| {
            let found = columns.into_iter().find(|name| *name == wanted);
            found.ok_or_else(|| {
                reader.whole_fault(format!(
                    "has no column {}; a file of {} has {}",
                    shorten(wanted),
                    format.name(),
                    columns.join(", ")
                ))
            })
        })
        .transpose()?;
    if format == Format::Starlink {
        starlink(reader, text, column.unwrap_or(columns[0]))
    } else {
        iperf3(reader, text, column)
    }
}

/// Where the first line begins that begins with a brace; programs write messages in front of it.
fn beginning(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('{') {
            return Some(at + line.len() - line.trim_start().len());
        }
        at += line.len();
    }
    None
}

/// The documents of a program in a text, one after the other, with notes on text that belongs to none. Other objects of
/// JSON are none. Behind the first document, reading ends when much more was read than the text is long: each attempt may
/// read up to the end.
fn documents<T: DeserializeOwned>(
    reader: &Reader,
    text: &str,
    (program, is_one): (&str, fn(&T) -> bool),
    notes: &mut Vec<String>,
) -> Result<Vec<T>, Fault> {
    const NOTES: usize = 3;
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line_of = |at: usize| 1 + ends.partition_point(|end| *end < at);
    let mut skipped = 0;
    let mut skip = |from: usize, to: usize| {
        let rest = text[from..to].trim_start();
        if rest.trim_end().is_empty() {
            return;
        }
        skipped += 1;
        if skipped <= NOTES {
            let (line, shown) = (line_of(to - rest.len()), shorten(rest));
            notes.push(format!(
                "line {line}: text that is no complete JSON of {program} is skipped: {shown}"
            ));
        }
    };
    let mut left_bytes = text.len().saturating_mul(8);
    let mut found = Vec::new();
    // End of the last document, and where the next one may begin.
    let first = beginning(text).unwrap_or(0);
    let (mut end, mut from) = (0, first);
    loop {
        let mut documents = serde_json::Deserializer::from_str(&text[from..]).into_iter::<T>();
        match documents.next() {
            None => break,
            Some(Ok(document)) => {
                let until = from + documents.byte_offset();
                if is_one(&document) {
                    skip(end, from);
                    found.push(document);
                    end = until;
                }
                from = until;
            }
            Some(Err(error)) if from == first => {
                // The error's own place is relative to where the document begins.
                let what = error.to_string();
                let what = what.split(" at line ").next().unwrap_or_default();
                let column = error.column();
                let message =
                    format!("is not complete JSON of {program}: {what} (column {column})");
                let line = Some(error.line()).filter(|line| *line > 0);
                let line = line.map(|line| line_of(from) + line - 1);
                return Err(Fault::in_file(reader.path.clone(), line, message));
            }
            Some(Err(error)) => {
                let line = line_of(from) + error.line().saturating_sub(1);
                let read_to = ends.get(line - 1).copied().unwrap_or(text.len());
                let next = text[from..].find('\n').map(|at| from + at + 1);
                let next = next.and_then(|next| Some(next + beginning(&text[next..])?));
                let (Some(next), Some(left)) =
                    (next, left_bytes.checked_sub(read_to.saturating_sub(from)))
                else {
                    break;
                };
                (from, left_bytes) = (next, left);
            }
        }
    }
    skip(end, text.len());
    if skipped > NOTES {
        notes.push(format!("{} more such texts are skipped", skipped - NOTES));
    }
    if found.is_empty() {
        return Err(reader.whole_fault(format!("holds no JSON of {program}")));
    }
    Ok(found)
}

impl Iperf3 {
    /// Whether an object of JSON is what iperf3 writes for a test.
    fn is_test(&self) -> bool {
        self.intervals.is_some() || self.error.is_some()
    }

    fn intervals(&self) -> &[Interval] {
        self.intervals.as_deref().unwrap_or_default()
    }

    /// The sum of a column in an interval.
    fn sum<'i>(interval: &'i Interval, column: &str) -> Option<&'i Sum> {
        match column {
            "sum" => interval.sum.as_ref(),
            _ => interval.sum_bidir_reverse.as_ref(),
        }
    }

    /// Whether the values of a column are those of a sender, if the file says so.
    fn sends(&self, column: &str) -> Option<bool> {
        let sum = self.intervals().iter().find_map(|i| Self::sum(i, column))?;
        sum.sender.or_else(|| {
            let start = &self.start;
            let reverse = start.test_start.reverse? != 0;
            let client = start.connecting_to.is_some();
            let knows = client || start.accepted_connection.is_some();
            knows.then_some((client != reverse) == (column == IPERF3[0]))
        })
    }

    /// Whether each interval has this column, from a receiver.
    fn received(&self, column: &str) -> bool {
        let mut sums = self.intervals().iter().map(|i| Self::sum(i, column));
        self.sends(column) == Some(false) && sums.all(|sum| sum.is_some())
    }

    fn end_s(&self) -> f64 {
        let last = self.intervals().last();
        last.and_then(|last| Some(last.sum.as_ref()?.end))
            .unwrap_or(0.0)
    }
}

fn iperf3(reader: &Reader, text: &str, wanted: Option<&'static str>) -> Result<Recording, Fault> {
    let mut notes = Vec::new();
    let mut tests: Vec<Iperf3> = documents(reader, text, ("iperf3", Iperf3::is_test), &mut notes)?;
    let count = tests.len();
    let longest = (0..count)
        .rev()
        .max_by(|a, b| tests[*a].end_s().total_cmp(&tests[*b].end_s()))
        .unwrap_or(0);
    let mut test = tests.swap_remove(longest);
    if let Some(error) = &test.error {
        let error = shorten(error);
        let Some(last) = test.intervals().len().checked_sub(1) else {
            return Err(reader.whole_fault(format!("iperf3 says it failed: {error}")));
        };
        notes.push(format!(
            "iperf3 says it failed ({error}); the intervals before, 0 to {last}, are read"
        ));
    }
    if count > 1 {
        let begun = test.start.timestamp.time.as_deref();
        let begun = begun.map_or_else(String::new, |time| format!(", begun {}", shorten(time)));
        notes.push(format!(
            "the file holds {count} tests; the longest, number {} of {} s{begun}, is read. For another cut the file",
            longest + 1,
            test.end_s()
        ));
    }
    let mut column = wanted.unwrap_or(IPERF3[0]);
    if test.sends(column) == Some(true) {
        let other = IPERF3[1];
        let server = test.server_output_json.take();
        if let Some(server) = server.filter(|server| server.received(column)) {
            test.intervals = server.intervals;
            notes.push(format!(
                "{column} is what this end sent; the server's report, which the file holds, of what it received is read"
            ));
        } else if wanted.is_none() && test.received(other) {
            notes.push(format!(
                "{column} is what this end sent; {other} is read, which it received: the other direction"
            ));
            column = other;
        } else {
            const CURE: &str = "record at the receiver: at the client with --reverse, or with --get-server-output, or at \
                                the server with --json";
            if test.start.test_start.protocol.as_deref() == Some("UDP") {
                return Err(reader.whole_fault(format!(
                    "is the report of a sender over UDP: its rates are those of --bitrate, not of the link; {CURE}"
                )));
            }
            notes.push(format!(
                "{column} is what this end wrote into its socket (\"sender\": true), which runs ahead of the link and is no \
                 capacity; {CURE}"
            ));
        }
    }
    // Number of the interval, from where, until when, ns, and bytes.
    let mut spans: Vec<(usize, u64, u64, u64)> = Vec::new();
    let mut end_ns = 0;
    for (i, interval) in test.intervals().iter().enumerate() {
        let place = format!("intervals[{i}].{column}");
        let sum = Iperf3::sum(interval, column).ok_or_else(|| {
            reader.whole_fault(format!("{place} is missing: choose another trace_column"))
        })?;
        if sum.omitted {
            continue;
        }
        let until_ns = (sum.end * NS_PER_S + 0.5) as u64;
        // A test that is cut off writes its last interval twice.
        let before = spans
            .last()
            .map(|(.., until_ns, bytes)| (*until_ns, *bytes));
        if before == Some((until_ns, sum.bytes)) {
            continue;
        }
        if !(0.0..=limits::DURATION_NS as f64 / NS_PER_S).contains(&sum.end)
            || until_ns < end_ns
            || (until_ns == end_ns && sum.bytes > 0)
        {
            let before = end_ns as f64 / NS_PER_S;
            return Err(reader.whole_fault(format!(
                "{place}.end = {}: must be seconds after the interval before, {before}",
                sum.end
            )));
        }
        if until_ns > end_ns {
            spans.push((i, end_ns, until_ns, sum.bytes));
            end_ns = until_ns;
        }
    }
    if let [.., (i, from_ns, middle_ns, bytes), (_, _, until_ns, more)] = spans[..] {
        if (until_ns - middle_ns).saturating_mul(SLIVER) <= middle_ns - from_ns {
            spans.truncate(spans.len() - 2);
            spans.push((i, from_ns, until_ns, bytes.saturating_add(more)));
        }
    }
    let points = spans
        .into_iter()
        .map(|(i, from_ns, until_ns, bytes)| {
            let span_s = (until_ns - from_ns) as f64 / NS_PER_S;
            let place = format!("intervals[{i}].{column}");
            Ok((from_ns, rate(reader, &place, 8.0 * bytes as f64 / span_s)?))
        })
        .collect::<Result<Vec<_>, Fault>>()?;
    recording(reader, points, end_ns, column, notes)
}

/// The samples of a poll in their order, `None` where they are no number; the count of all samples up to its end, if known.
struct Poll {
    samples: Vec<Option<f64>>,
    until: Option<u64>,
}

impl Poll {
    fn read(reader: &Reader, history: History, column: &str) -> Result<Poll, Fault> {
        let samples = if column == STARLINK[0] {
            history.downlink_throughput_bps
        } else {
            history.uplink_throughput_bps
        };
        let mut samples = samples
            .iter()
            .enumerate()
            .map(|(at, sample)| {
                let place = format!("dishGetHistory.{column}[{at}]");
                let bps = match sample {
                    None => return Ok(None),
                    Some(Sample::Number(bps)) => *bps,
                    Some(Sample::Text(text)) => text.parse().map_err(|_| {
                        reader.whole_fault(format!("{place}: \"{}\" is no number", shorten(text)))
                    })?,
                };
                bps.is_finite()
                    .then(|| rate(reader, &place, bps))
                    .transpose()
            })
            .collect::<Result<Vec<_>, Fault>>()?;
        let until = match history.current {
            None => None,
            Some(Count::Number(count)) => Some(count),
            Some(Count::Text(text)) => Some(text.parse().map_err(|_| {
                reader.whole_fault("dishGetHistory.current must be the number of samples so far")
            })?),
        };
        if let Some(until) = until {
            let len = samples.len();
            match usize::try_from(until) {
                Ok(until) if until < len => samples.truncate(until),
                _ => samples.rotate_left((until % (len as u64).max(1)) as usize),
            }
        }
        Ok(Poll { samples, until })
    }

    /// Appends a later poll of the same dish that begins no later than this one ends, if it is one.
    fn join(&mut self, later: &Poll) -> bool {
        let (Some(until), Some(later_until)) = (self.until, later.until) else {
            return false;
        };
        let first = later_until.saturating_sub(later.samples.len() as u64);
        if later_until < until || first > until {
            return false;
        }
        let common = usize::try_from(until - first).unwrap_or(usize::MAX);
        let mine = self.samples.len().saturating_sub(common);
        let theirs = common.saturating_sub(self.samples.len());
        if later.samples.get(theirs..common) != Some(&self.samples[mine..]) {
            return false;
        }
        self.samples.extend_from_slice(&later.samples[common..]);
        self.until = later.until;
        true
    }
}

fn starlink(reader: &Reader, text: &str, column: &'static str) -> Result<Recording, Fault> {
    let mut notes = Vec::new();
    let text = with_null_for_nan(text);
    let files: Vec<Starlink> = documents(reader, &text, ("Starlink", |_| true), &mut notes)?;
    let count = files.len();
    let mut parts: Vec<Poll> = Vec::new();
    for file in files {
        let poll = Poll::read(reader, file.history, column)?;
        if !parts.last_mut().is_some_and(|before| before.join(&poll)) {
            parts.push(poll);
        }
    }
    let all: usize = parts.iter().map(|part| part.samples.len()).sum();
    let longest = parts
        .into_iter()
        .rev()
        .max_by_key(|part| part.samples.len());
    let Poll { samples, until } = longest.ok_or_else(|| reader.whole_fault("is empty"))?;
    let len = samples.len();
    if count > 1 && all == len {
        notes.push(format!(
            "the file holds {count} polls, which join to {len} s"
        ));
    } else if count > 1 {
        notes.push(format!(
            "the file holds {count} polls that do not all join; the longest part without a gap, {len} s, is read, and {} s are not",
            all - len
        ));
    }
    if until.is_none() {
        notes.push(
            "the history has no count of its samples (current), so they are taken in the file's order; in a dish's ring buffer \
             the oldest one need not be the first"
                .to_string(),
        );
    }
    let first = samples.iter().position(Option::is_some).unwrap_or(len);
    let missing = samples[first..].iter().filter(|bps| bps.is_none()).count();
    if first > 0 && first < len {
        notes.push(format!(
            "the first {first} values of {column} are no numbers and are left out"
        ));
    }
    if missing > 0 {
        notes.push(format!(
            "{missing} of {len} values of {column} are no numbers; the value before holds in their place"
        ));
    }
    let second_ns = NS_PER_S as u64;
    let points: Vec<_> = samples[first..]
        .iter()
        .zip(0..)
        .filter_map(|(bps, second)| Some((second * second_ns, (*bps)?)))
        .collect();
    recording(
        reader,
        points,
        (len - first) as u64 * second_ns,
        column,
        notes,
    )
}

/// The text with null for each NaN and infinity outside of strings.
fn with_null_for_nan(text: &str) -> Cow<'_, str> {
    const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
    if !WORDS.iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let found = WORDS.iter().find(|word| rest.starts_with(**word));
        let (taken, put) = match (next, found) {
            ('"', _) => (string_bytes(rest), None),
            (_, Some(word)) => (word.len(), Some("null")),
            _ => (next.len_utf8(), None),
        };
        written.push_str(put.unwrap_or(&rest[..taken]));
        rest = &rest[taken..];
    }
    Cow::Owned(written)
}

/// Length of the string of JSON at the beginning of a text, with its quotes.
fn string_bytes(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// A rate that was recorded, bit/s; less than 1 is none.
fn rate(reader: &Reader, place: &str, bps: f64) -> Result<f64, Fault> {
    if !(0.0..=limits::RATE_BPS as f64).contains(&bps) {
        return Err(reader.whole_fault(format!("{place}: {bps} bit/s is not within 0 .. 400e9")));
    }
    Ok(if bps < 1.0 { 0.0 } else { bps })
}

fn recording(
    reader: &Reader,
    points: Vec<(u64, f64)>,
    end_ns: u64,
    column: &'static str,
    notes: Vec<String>,
) -> Result<Recording, Fault> {
    if points.is_empty() {
        return Err(reader.whole_fault(format!("holds no values of {column}")));
    }
    Ok(Recording {
        points,
        end_ns,
        column,
        notes,
    })
}
