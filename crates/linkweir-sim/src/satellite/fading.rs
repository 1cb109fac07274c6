// SPDX-License-Identifier: BSD-3-Clause
//! Attenuation over time: samples on a regular grid, repeated for ever.
//!
//! A file is text with a time in seconds and an attenuation in dB relative to the line of sight per line (a fade is
//! negative), separated by a comma, a semicolon or blanks; lines that start with `#` and a header line are skipped. Times
//! must be equally spaced, between 0 and ten years.

use std::path::Path;
use std::sync::Arc;

use crate::scenario::Fault;

/// Samples of a fading channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Fading {
    step_ns: u64,
    /// All of a round, or as many of its first ones as will be asked for.
    samples_db: Arc<[f32]>,
    /// Samples in a round.
    round: usize,
}

/// Deepest fade and strongest gain that are believed, dB.
const MOST_DB: f64 = 300.0;
/// Latest time that is believed, s: the longest run.
const MOST_S: f64 = 315_360_000.0;

impl Fading {
    /// Samples `step_ns` apart; `None` when there are none, the step is 0, all last longer than 2^63 ns or a sample is no
    /// number.
    #[must_use]
    pub fn new(step_ns: u64, samples_db: Vec<f32>) -> Option<Fading> {
        let period_ns = step_ns.checked_mul(samples_db.len() as u64);
        let times = period_ns.is_some_and(|ns| (1..=1 << 63).contains(&ns));
        let sound = times && samples_db.iter().all(|a| a.is_finite());
        sound.then(|| Fading {
            step_ns,
            round: samples_db.len(),
            samples_db: samples_db.into(),
        })
    }

    /// The same samples as the beginning of a round of so many, of whose rest nobody will ask.
    pub(crate) fn beginning_of(self, round: usize) -> Fading {
        debug_assert!(round >= self.samples_db.len());
        Fading { round, ..self }
    }

    /// Attenuation in dB at a time; the sample that began last holds, and the list starts again at its end.
    #[inline]
    #[must_use]
    pub fn at(&self, time_ns: u64) -> f64 {
        f64::from(self.samples_db[self.index(time_ns)])
    }

    /// Which sample that is.
    #[inline]
    pub(crate) fn index(&self, time_ns: u64) -> usize {
        let at = time_ns / self.step_ns;
        let round = self.round as u64;
        // Within two rounds, as nearly always, without another division.
        (if at / 2 < round {
            at.min(at.wrapping_sub(round))
        } else {
            at % round
        }) as usize
    }

    /// Samples in a round.
    pub(crate) fn round(&self) -> usize {
        self.round
    }

    /// How long one round lasts, ns.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.step_ns * self.round as u64
    }

    /// The samples of a round, as far as they will be asked for, dB.
    #[must_use]
    pub fn samples_db(&self) -> &[f32] {
        &self.samples_db
    }

    /// Reads the content of a file; `path` is for messages only.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str, path: &Path) -> Result<Fading, Fault> {
        let fault =
            |line: usize, message: String| Fault::in_file(path.to_path_buf(), Some(line), message);
        let mut times_s: Vec<f64> = Vec::new();
        let mut samples_db = Vec::new();
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let number = number + 1;
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line
                .split(|c: char| c == ',' || c == ';' || c.is_whitespace())
                .filter(|field| !field.is_empty())
                .collect();
            let header =
                times_s.is_empty() && lines.is_empty() && line.starts_with(char::is_alphabetic);
            if header && !line.starts_with("nan") && !line.starts_with("inf") {
                lines.push(number);
                continue;
            }
            let [time, attenuation] = fields[..] else {
                return Err(fault(
                    number,
                    format!(
                        "has {} fields; write a time in s and an attenuation in dB",
                        fields.len()
                    ),
                ));
            };
            let read = |field: &str, name: &str| {
                field
                    .parse::<f64>()
                    .ok()
                    .filter(|value| value.is_finite())
                    .ok_or_else(|| fault(number, format!("{name} = \"{field}\": is not a number")))
            };
            let time_s = read(time, "t_s")?;
            if !(0.0..=MOST_S).contains(&time_s) {
                let message = format!("t_s = \"{time}\": must be seconds, 0 .. {MOST_S}");
                return Err(fault(number, message));
            }
            let attenuation_db = read(attenuation, "attenuation_db")?;
            if attenuation_db.abs() > MOST_DB {
                let message =
                    format!("attenuation_db = \"{attenuation}\": must be dB, -{MOST_DB} .. {MOST_DB}; a fade is negative");
                return Err(fault(number, message));
            }
            if let Some(before) = times_s.last() {
                if time_s <= *before {
                    return Err(fault(
                        number,
                        format!("t_s = \"{time}\": must be later than the line before, {before} s"),
                    ));
                }
            }
            times_s.push(time_s);
            samples_db.push(attenuation_db as f32);
            lines.push(number);
        }
        if times_s.len() < 2 {
            let message =
                "needs at least two samples: a time in s and an attenuation in dB per line";
            return Err(Fault::in_file(path.to_path_buf(), None, message));
        }
        let step_s = (times_s[times_s.len() - 1] - times_s[0]) / (times_s.len() - 1) as f64;
        for (i, time_s) in times_s.iter().enumerate() {
            let due_s = times_s[0] + i as f64 * step_s;
            if (time_s - due_s).abs() > 0.01 * step_s {
                let message = format!(
                    "t_s = {time_s}: samples must be equally spaced; with a step of {step_s} s this one is due at {due_s} s"
                );
                return Err(fault(lines[lines.len() - times_s.len() + i], message));
            }
        }
        let step_ns = (step_s * 1e9).round() as u64;
        Fading::new(step_ns, samples_db).ok_or_else(|| {
            Fault::in_file(
                path.to_path_buf(),
                None,
                "has samples less than a nanosecond apart",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Fading, String> {
        Fading::parse(text, Path::new("f.txt")).map_err(|fault| fault.to_string())
    }

    #[test]
    fn samples_hold_and_repeat() {
        let fading = read("t_s,attenuation_db\n0,-1\n0.001,-2.5\n0.002,3\n").unwrap();
        assert_eq!(fading.period_ns(), 3_000_000);
        for (t_ns, db) in [
            (0, -1.0),
            (999_999, -1.0),
            (1_000_000, -2.5),
            (2_999_999, 3.0),
            (3_000_000, -1.0),
        ] {
            assert_eq!(fading.at(t_ns), db, "{t_ns}");
        }
        assert_eq!(read("0 -1\n0.5 -2\n").unwrap().period_ns(), 1_000_000_000);
        assert_eq!(
            read("# made by hand\n10;-1\n20;-2\n")
                .unwrap()
                .at(25_000_000_000),
            -1.0
        );
    }

    #[test]
    fn a_round_has_an_end_that_can_be_told() {
        let sound = |step_ns: u64, samples| Fading::new(step_ns, vec![0.0; samples]).is_some();
        assert!(sound(1 << 62, 2) && sound(1, 1));
        assert!(!sound(1 << 62, 3) && !sound(1 << 62, 4) && !sound(0, 1) && !sound(1, 0));
    }

    #[test]
    fn faults_name_the_line() {
        for (text, expected) in [
            ("", "f.txt: needs at least two samples"),
            ("0,-1\n", "f.txt: needs at least two samples"),
            ("0,-1\n1\n", "f.txt:2: has 1 fields"),
            (
                "0,-1\n1,deep\n",
                "f.txt:2: attenuation_db = \"deep\": is not a number",
            ),
            (
                "0,-1\n1,nan\n",
                "f.txt:2: attenuation_db = \"nan\": is not a number",
            ),
            (
                "0,-1\n1,-301\n",
                "f.txt:2: attenuation_db = \"-301\": must be dB, -300 .. 300",
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
