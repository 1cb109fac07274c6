// SPDX-License-Identifier: BSD-3-Clause
//! Fading of a satellite's channel from a file: text with a time in seconds and a gain in dB relative to the line of
//! sight per line (a fade is negative), separated by a comma, a semicolon or blanks. Lines that start with `#` and a header
//! line are skipped. Times must be equally spaced, between 0 and ten years.

use std::path::Path;

use linkweir_config::fault::shorten;
use linkweir_config::table::{data_lines, Dialect};
use linkweir_config::trace::{Reader, Series};
use linkweir_config::Fault;

use crate::satellite::fading::Fading;

use super::attenuation::shown_db;

/// Deepest fade and strongest gain accepted, dB.
const MOST_DB: f64 = 300.0;
/// Latest time accepted, s: the longest run.
const MOST_S: f64 = 315_360_000.0;

/// Samples in the order of the file.
#[derive(Default)]
struct Samples {
    times_s: Vec<f64>,
    gains_db: Vec<f32>,
    /// Line of each sample.
    lines: Vec<usize>,
    /// The first time, as it is written.
    start: String,
}

/// Reads the content of a file, and what it was taken for; `path` is for messages only, and `decimal` is the mark in front of
/// decimals, if the user names it.
///
/// # Errors
/// The first line that is wrong.
pub(super) fn parse(
    bytes: &[u8],
    path: &Path,
    decimal: Option<char>,
) -> Result<(Fading, Series), Fault> {
    let fault =
        |line: Option<usize>, message: String| Fault::in_file(path.to_path_buf(), line, message);
    let reader = Reader {
        path: path.to_path_buf(),
    };
    let text = reader.text(bytes)?;
    let text = text.as_ref();
    let dialect = reader.dialect(text, decimal)?;
    let mut samples = Samples::default();
    let mut header_seen = false;
    for (number, line) in data_lines(text) {
        let line = line.trim();
        let first = line.trim_start_matches('"');
        let may_be_header =
            !header_seen && samples.lines.is_empty() && first.starts_with(char::is_alphabetic);
        if may_be_header && !first.starts_with("nan") && !first.starts_with("inf") {
            header_seen = true;
            continue;
        }
        samples
            .add(number, line, &dialect)
            .map_err(|message| fault(Some(number), message))?;
    }
    let step_ns = samples
        .step_ns()
        .map_err(|(line, message)| fault(line, message))?;
    let series = samples.series(step_ns);
    let fading = Fading::new(step_ns, samples.gains_db)
        .ok_or_else(|| fault(None, "has samples less than a nanosecond apart".to_owned()))?;
    Ok((fading, series))
}

/// Reflections add a few dB to the line of sight, never more than this for long.
const DOUBTFUL_DB: f32 = 10.0;

/// A note on a series that cannot be gains: one that never fades, or is far above the line of sight half of the time.
pub(super) fn doubt(fading: &Fading) -> Option<String> {
    let gains_db = fading.samples_db();
    let far = gains_db.iter().filter(|db| **db > DOUBTFUL_DB).count();
    let least_db = gains_db.iter().copied().fold(f32::INFINITY, f32::min);
    let greatest_db = gains_db.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let never = least_db >= 0.0 && greatest_db > 0.0;
    (never || 2 * far > gains_db.len()).then(|| {
        format!(
            "its gains are {least_db} .. {greatest_db} dB relative to the line of sight, where a fade is negative; if they are \
             attenuations, change their sign"
        )
    })
}

impl Samples {
    /// Reads one line.
    fn add(&mut self, number: usize, line: &str, dialect: &Dialect) -> Result<(), String> {
        let mut fields = Vec::new();
        dialect.split(line, &mut fields);
        fields.retain(|field| !field.is_empty());
        let [time, gain] = fields[..] else {
            return Err(format!(
                "has {} fields; write a time in s and a gain in dB",
                fields.len()
            ));
        };
        let read = |field: &str, name: &str| {
            dialect
                .plain(field)
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite())
                .ok_or_else(|| format!("{name} = \"{field}\": is not a number"))
        };
        let time_s = read(time, "t_s")?;
        if !(0.0..=MOST_S).contains(&time_s) {
            return Err(format!("t_s = \"{time}\": must be seconds, 0 .. {MOST_S}"));
        }
        let gain_db = read(gain, "gain_db")?;
        if gain_db.abs() > MOST_DB {
            return Err(format!(
                "gain_db = \"{gain}\": must be dB, -{MOST_DB} .. {MOST_DB}; a fade is negative"
            ));
        }
        if let Some(before) = self.times_s.last() {
            if time_s <= *before {
                return Err(format!(
                    "t_s = \"{time}\": must be later than the line before, {before} s"
                ));
            }
        }
        if self.times_s.is_empty() {
            self.start = shorten(time);
        }
        self.times_s.push(time_s);
        self.gains_db.push(gain_db as f32);
        self.lines.push(number);
        Ok(())
    }

    /// What the samples were taken for.
    fn series(&self, step_ns: u64) -> Series {
        let count = self.gains_db.len();
        let sum: f64 = self.gains_db.iter().map(|db| f64::from(*db)).sum();
        Series {
            notation: "fading".to_string(),
            columns: "a time in s and a gain in dB per line".to_string(),
            values: count,
            usual_ns: Some(step_ns),
            start: self.start.clone(),
            length_ns: Some(step_ns.saturating_mul(count as u64)),
            end: "loop".to_string(),
            mean: shown_db(sum / count as f64),
            ..Series::default()
        }
    }

    /// The step, which must be the same everywhere; else the line that deviates, and what is wrong.
    fn step_ns(&self) -> Result<u64, (Option<usize>, String)> {
        let Samples { times_s, lines, .. } = self;
        if times_s.len() < 2 {
            let message = "needs at least two samples: a time in s and a gain in dB per line";
            return Err((None, message.to_owned()));
        }
        let step_s = (times_s[times_s.len() - 1] - times_s[0]) / (times_s.len() - 1) as f64;
        for (i, (time_s, line)) in times_s.iter().zip(lines).enumerate() {
            let due_s = times_s[0] + i as f64 * step_s;
            if (time_s - due_s).abs() > 0.01 * step_s {
                let message = format!(
                    "t_s = {time_s}: samples must be equally spaced; with a step of {step_s} s this one is due at {due_s} s"
                );
                return Err((Some(*line), message));
            }
        }
        Ok((step_s * 1e9).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Fading, String> {
        let read = parse(text.as_bytes(), Path::new("f.txt"), None);
        read.map(|(fading, _)| fading)
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn separators_headers_and_comments() {
        let fading = read("t_s,gain_db\n0,-1\n0.001,-2.5\n0.002,3\n").unwrap();
        let expected = Fading::new(1_000_000, vec![-1.0, -2.5, 3.0]);
        assert_eq!(Some(fading), expected);
        assert_eq!(read("0 -1\n0.5 -2\n").unwrap().period_ns(), 1_000_000_000);
        assert_eq!(
            read("# made by hand\n10;-1\n20;-2\n")
                .unwrap()
                .at(25_000_000_000),
            -1.0
        );
    }

    #[test]
    fn a_series_that_cannot_be_gains_is_noted() {
        let noted = |text: &str| doubt(&read(text).unwrap()).is_some();
        // Attenuations, and levels with an offset.
        assert!(noted("0,0\n1,10\n2,0\n") && noted("0,40\n1,-5\n2,45\n"));
        // Fades, reflections that add, and a clear sky.
        assert!(!noted("0,0\n1,-10\n2,4\n") && !noted("0,0\n1,0\n") && !noted("0,-3\n1,-2\n"));
    }

    #[test]
    fn faults_name_the_line() {
        for (text, expected) in [
            ("", "f.txt: needs at least two samples"),
            ("0,-1\n", "f.txt: needs at least two samples"),
            ("0,-1\n1\n", "f.txt:2: has 1 fields"),
            (
                "0,-1\n1,deep\n",
                "f.txt:2: gain_db = \"deep\": is not a number",
            ),
            (
                "0,-1\n1,nan\n",
                "f.txt:2: gain_db = \"nan\": is not a number",
            ),
            (
                "0,-1\n1,-301\n",
                "f.txt:2: gain_db = \"-301\": must be dB, -300 .. 300",
            ),
            (
                "0,-1\n1e200,-1\n",
                "f.txt:2: t_s = \"1e200\": must be seconds, 0 .. 315360000",
            ),
            (
                "-1,-1\n0,-1\n",
                "f.txt:1: t_s = \"-1\": must be seconds, 0 .. 315360000",
            ),
            ("0,-1\n0,-1\n", "f.txt:2: t_s = \"0\": must be later"),
            (
                "t a\n0,-1\n1,-1\n3,-1\n",
                "f.txt:3: t_s = 1: samples must be equally spaced",
            ),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
