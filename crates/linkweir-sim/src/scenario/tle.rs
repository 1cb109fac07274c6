// SPDX-License-Identifier: BSD-3-Clause
//! Two-line elements of satellites, as CelesTrak and Space-Track publish them, with or without a line of the name above the two.
//!
//! The columns are those of Hoots and Roehrich (1980). Empty lines and lines that start with `#` are skipped.

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::ops::RangeInclusive;
use std::path::Path;

use linkweir_config::trace::Reader;
use linkweir_config::Fault;

use crate::satellite::sgp4::{Elements, Orbit, DEEP_MIN};

use super::limits;

/// A satellite of a file.
pub(super) struct Listed {
    /// The line that the two begin with, for messages.
    line: usize,
    number: String,
    /// Its epoch, as the file has it.
    written: String,
    /// Its epoch, as people write it.
    pub(super) epoch: String,
    /// Its orbit, and its epoch in days after noon of 1 January 2000.
    pub(super) orbit: (Orbit, f64),
}

/// Where a field is in its line, from 1, and what it is called.
type Field = (&'static str, RangeInclusive<usize>);

const COLUMNS: usize = 69;
/// How far an epoch may be from the median of all, days: positions are good for days, so an epoch further away is a wrong one.
const APART_DAYS: f64 = 30.0;
const EPOCH: Field = ("epoch", 19..=32);
const NUMBER: Field = ("satellite number", 3..=7);
const YEAR: Field = ("epoch year", 19..=20);
const DAY: Field = ("epoch day", 21..=32);
const BSTAR: Field = ("drag term", 54..=61);
const INCLINATION: Field = ("inclination", 9..=16);
const NODE: Field = ("ascending node", 18..=25);
const ECCENTRICITY: Field = ("eccentricity", 27..=33);
const PERIGEE: Field = ("argument of perigee", 35..=42);
const ANOMALY: Field = ("mean anomaly", 44..=51);
const MOTION: Field = ("mean motion", 53..=63);
const CHECKSUM: Field = ("checksum", 69..=69);

/// Reads the content of a file; `path` is for messages only.
pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Vec<Listed>, Fault> {
    let reader = Reader {
        path: path.to_path_buf(),
    };
    let text = reader.text(bytes)?;
    let lines = text.lines().map(str::trim_end);
    let mut lines = (1..)
        .zip(lines)
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    let mut all = Vec::new();
    let mut known = BTreeMap::new();
    while let Some((number, text)) = lines.next() {
        let line = Line {
            reader: &reader,
            number,
            text,
        };
        if is_line(text, '2') {
            return Err(line.fault("is the second line of elements, and the first is not above it"));
        }
        if !is_line(text, '1') {
            // A name.
            match lines.peek() {
                Some((_, next)) if is_line(next, '1') => continue,
                _ => return Err(line.fault("must be a name or a line of elements, with the two lines that start with 1 and 2 below")),
            }
        }
        let second = lines.next().filter(|(_, text)| is_line(text, '2'));
        let Some((number, text)) = second else {
            return Err(line.fault(
                "must have the second line of its elements, which starts with 2, below it",
            ));
        };
        let second = Line {
            reader: &reader,
            number,
            text,
        };
        let listed = satellite(&line, &second)?;
        if let Some(before) = known.insert(listed.number.clone(), line.number) {
            let message = format!("is also in line {before}; keep the elements of one epoch");
            return Err(line.field_fault(&NUMBER, &listed.number, message));
        }
        all.push(listed);
        if all.len() > limits::SATELLITES {
            let message = format!(
                "is of more than {} satellites; remove some",
                limits::SATELLITES
            );
            return Err(line.fault(message));
        }
    }
    if all.is_empty() {
        return Err(reader.whole_fault(
            "is empty; it must hold two-line elements, such as CelesTrak's with FORMAT=tle",
        ));
    }
    one_time(&reader, &all)?;
    Ok(all)
}

/// Whether a line is of elements and not a name, which may begin with a number, too.
fn is_line(text: &str, begin: char) -> bool {
    let columns = NUMBER.1.start() - 1..*NUMBER.1.end();
    let is_number = |text: &str| text.trim().bytes().all(|c| c.is_ascii_digit());
    text.strip_prefix(begin)
        .is_some_and(|rest| rest.starts_with(' '))
        && (text.len() == COLUMNS || text.get(columns).is_some_and(is_number))
}

/// Refuses an epoch far from those of the other satellites: it would move time 0, or this satellite anywhere.
fn one_time(reader: &Reader, all: &[Listed]) -> Result<(), Fault> {
    let mut sorted: Vec<&Listed> = all.iter().collect();
    sorted.sort_by(|a, b| a.orbit.1.total_cmp(&b.orbit.1));
    let median = sorted[(all.len() - 1) / 2];
    let far = |listed: &&Listed| (listed.orbit.1 - median.orbit.1).abs() > APART_DAYS;
    match all.iter().find(far) {
        None => Ok(()),
        Some(listed) => {
            let message = format!(
                "is more than {APART_DAYS} days from the median of the file, {}; remove this satellite, or load the file again",
                median.epoch
            );
            Err(reader.field_fault(listed.line, EPOCH.0, &listed.written, message))
        }
    }
}

/// A fault of a satellite that comes down.
pub(super) fn down(path: &Path, listed: &Listed) -> Fault {
    let reader = Reader {
        path: path.to_path_buf(),
    };
    let message = "comes down before the run ends; remove it, or take newer elements";
    reader.field_fault(listed.line, NUMBER.0, &listed.number, message)
}

/// A line of elements.
struct Line<'l> {
    reader: &'l Reader,
    number: usize,
    text: &'l str,
}

impl Line<'_> {
    fn fault(&self, message: impl Into<String>) -> Fault {
        self.reader.fault(self.number, message)
    }

    fn field_fault(&self, field: &Field, value: &str, message: impl Into<String>) -> Fault {
        self.reader
            .field_fault(self.number, field.0, value, message)
    }

    /// Checks what all lines have: characters, columns and the sum of their digits.
    fn check(&self) -> Result<(), Fault> {
        if !self.text.is_ascii() || self.text.len() != COLUMNS {
            let message = format!(
                "must have {COLUMNS} ASCII characters and has {}; load the file again as TLE",
                self.text.chars().count()
            );
            return Err(self.fault(message));
        }
        let of_digit = |c: u8| match c {
            b'0'..=b'9' => u32::from(c - b'0'),
            b'-' => 1,
            _ => 0,
        };
        let sum: u32 = self.text.bytes().take(COLUMNS - 1).map(of_digit).sum();
        let written = self.field(&CHECKSUM);
        if written != (sum % 10).to_string() {
            let message = format!(
                "is not that of the line, {}; a character is wrong, load the file again",
                sum % 10
            );
            return Err(self.field_fault(&CHECKSUM, written, message));
        }
        Ok(())
    }

    /// A field of a line that was checked, without blanks around it.
    fn field(&self, (_, columns): &Field) -> &str {
        let found = self.text.get(columns.start() - 1..*columns.end());
        found.unwrap_or_default().trim()
    }

    /// A number without exponent in a range.
    fn number(&self, field: &Field, (min, max): (f64, f64), unit: &str) -> Result<f64, Fault> {
        let text = self.field(field);
        let plain = text
            .bytes()
            .all(|c| matches!(c, b'0'..=b'9' | b'.' | b'+' | b'-'));
        let value = text.parse::<f64>().ok().filter(|_| plain);
        value
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| self.field_fault(field, text, format!("must be {unit}, {min} .. {max}")))
    }

    fn angle(&self, field: &Field, most_deg: f64) -> Result<f64, Fault> {
        let degrees = self.number(field, (0.0, most_deg), "degrees")?;
        Ok(degrees * TAU / 360.0)
    }

    /// A number like -11606-4, which is -0.11606e-4.
    fn with_exponent(&self, field: &Field) -> Result<f64, Fault> {
        let text = self.field(field);
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text.strip_prefix('+').unwrap_or(text)),
        };
        let at = rest.find(['-', '+']);
        let value = at.and_then(|at| {
            let (digits, exponent) = rest.split_at(at);
            let plain = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
            let fraction = format!("0.{digits}e{exponent}").parse::<f64>();
            fraction.ok().filter(|value| plain && value.is_finite())
        });
        value.map(|value| sign * value).ok_or_else(|| {
            self.field_fault(
                field,
                text,
                "must be a number like -11606-4 for -0.11606e-4",
            )
        })
    }
}

/// A satellite's two lines.
fn satellite(first: &Line<'_>, second: &Line<'_>) -> Result<Listed, Fault> {
    first.check()?;
    second.check()?;
    let number = first.field(&NUMBER);
    let other = second.field(&NUMBER);
    if other != number {
        let message = format!("must be that of the line above, {number}");
        return Err(second.field_fault(&NUMBER, other, message));
    }
    let year = first.number(&YEAR, (0.0, 99.0), "the last two digits of a year")?;
    let day = first.number(&DAY, (1.0, 367.0), "days of the year")?;
    let digits = second.field(&ECCENTRICITY);
    if digits.len() != 7 || !digits.bytes().all(|c| c.is_ascii_digit()) {
        let message = "must be the seven digits behind the decimal point";
        return Err(second.field_fault(&ECCENTRICITY, digits, message));
    }
    let per_day = second.number(&MOTION, (0.01, 20.0), "revolutions per day")?;
    let elements = Elements {
        inclination: second.angle(&INCLINATION, 180.0)?,
        node: second.angle(&NODE, 360.0)?,
        eccentricity: digits.parse::<f64>().unwrap_or_default() * 1e-7,
        perigee: second.angle(&PERIGEE, 360.0)?,
        anomaly: second.angle(&ANOMALY, 360.0)?,
        motion: per_day * TAU / 1440.0,
        bstar: first.with_exponent(&BSTAR)?,
    };
    let Some(orbit) = Orbit::new(elements) else {
        let message = if 1440.0 / per_day >= DEEP_MIN - 1.0 {
            format!("is an orbit of {DEEP_MIN} minutes or more, on which moon and sun act; they are not computed, so remove this satellite")
        } else {
            "is, with the eccentricity, an orbit into the earth; remove this satellite".to_owned()
        };
        return Err(second.field_fault(&MOTION, second.field(&MOTION), message));
    };
    Ok(Listed {
        line: first.number,
        number: number.to_owned(),
        written: first.field(&EPOCH).to_owned(),
        epoch: format!("day {day} of {}", full_year(year as i64)),
        orbit: (orbit, epoch_days(year as i64, day)),
    })
}

/// Years begin with that of the first satellite, 1957.
fn full_year(two_digits: i64) -> i64 {
    two_digits + if two_digits < 57 { 2000 } else { 1900 }
}

/// Days after noon of 1 January 2000.
fn epoch_days(two_digits: i64, day: f64) -> f64 {
    let year = full_year(two_digits);
    let before = |year: i64| 365 * year + year / 4 - year / 100 + year / 400;
    (before(year - 1) - before(1999)) as f64 + day - 1.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_days_after_noon_of_the_first_of_january_2000() {
        for (year, day, wanted) in [
            (0, 1.5, 0.0),
            (0, 367.0, 365.5),
            (1, 1.0, 365.5),
            (99, 365.5, -1.0),
            (57, 1.5, -15_705.0),
            (26, 333.0, 9_828.5),
        ] {
            assert_eq!(epoch_days(year, day), wanted, "{year} {day}");
        }
    }
}
