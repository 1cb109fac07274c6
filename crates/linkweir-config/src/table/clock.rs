// SPDX-License-Identifier: BSD-3-Clause
//! Times as clocks and programs write them: ISO 8601, dates with dots or slashes, the output of UNIX `date`, times of day.
//!
//! A time without a zone is that of the zone the user names, else UTC. Of the hour that comes twice when summer time ends,
//! a time is the later one if the earlier is before the line before. A time of day that falls by more than twelve hours is
//! on the next day.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// What comes first in a date whose year is last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dates {
    /// 31/1/2026.
    DayFirst,
    /// 1/31/2026.
    MonthFirst,
}

impl Dates {
    /// Names in scenarios, in the order of the variants.
    pub const NAMES: [&'static str; 2] = ["day_first", "month_first"];

    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        Dates::NAMES[self as usize]
    }
}

/// Reads times in the order of their lines.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    zone: Option<TimeZone>,
    dates: Option<Dates>,
    /// The time before, ns since 1970, or since midnight of the first day.
    before_ns: Option<i128>,
    /// Days that have passed, of times of day.
    days: i128,
}

const HOUR_NS: i128 = 3_600_000_000_000;
const DAY_NS: i128 = 24 * HOUR_NS;

impl Clock {
    /// A clock in a zone of the system's database, or in UTC.
    ///
    /// # Errors
    /// When there is no such zone.
    pub fn new(zone: Option<&str>, dates: Option<Dates>) -> Result<Clock, String> {
        let zone = zone.map(zone_named).transpose()?;
        Ok(Clock {
            zone,
            dates,
            ..Clock::default()
        })
    }

    /// A time that is no number, in ns since 1970, or of a time of day since midnight of the first.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(&mut self, field: &str) -> Result<i128, String> {
        let ns = self.at(field)?;
        self.before_ns = Some(ns);
        Ok(ns)
    }

    /// Whether a field is written as a time, even one that is unclear or that no calendar has.
    pub fn is_time(field: &str) -> bool {
        Clock::default()
            .at(field)
            .map_or_else(|what| what != UNKNOWN, |_| true)
    }

    fn at(&mut self, field: &str) -> Result<i128, String> {
        if has_leap_second(field) {
            return Err(LEAP_SECOND.to_string());
        }
        if let Ok(stamp) = field.parse::<jiff::Timestamp>() {
            return Ok(stamp.as_nanosecond());
        }
        if let Some((civil, zone)) = field.split_once('[') {
            let zone = zone_named(zone.trim_end_matches(']'))?;
            let civil = civil.trim().parse::<DateTime>().map_err(|_| UNKNOWN)?;
            return self.in_zone(civil, &zone);
        }
        if let Ok(civil) = field.parse::<DateTime>() {
            return self.local(civil);
        }
        let Parts { date, time, zone } = Parts::read(field, self.dates)?;
        let Some(date) = date else {
            return Ok(self.on_a_day(time));
        };
        let civil = DateTime::from_parts(date, time);
        match zone {
            Some(zone) => self.in_zone(civil, &zone),
            None => self.local(civil),
        }
    }

    fn local(&self, civil: DateTime) -> Result<i128, String> {
        let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
        self.in_zone(civil, &zone)
    }

    fn in_zone(&self, civil: DateTime, zone: &TimeZone) -> Result<i128, String> {
        let beyond = |_| "is beyond the years of calendars".to_string();
        let ambiguous = zone.to_ambiguous_timestamp(civil);
        let is_twice = matches!(ambiguous.offset(), AmbiguousOffset::Fold { .. });
        if !is_twice {
            return Ok(ambiguous.compatible().map_err(beyond)?.as_nanosecond());
        }
        let earlier = ambiguous.earlier().map_err(beyond)?.as_nanosecond();
        if self.before_ns.is_none_or(|before| before <= earlier) {
            return Ok(earlier);
        }
        Ok(ambiguous.later().map_err(beyond)?.as_nanosecond())
    }

    fn on_a_day(&mut self, time: Time) -> i128 {
        let of_day = i128::from(time.hour()) * HOUR_NS
            + i128::from(time.minute()) * 60_000_000_000
            + i128::from(time.second()) * 1_000_000_000
            + i128::from(time.subsec_nanosecond());
        let ns = self.days * DAY_NS + of_day;
        if self
            .before_ns
            .is_some_and(|before| before - ns > DAY_NS / 2)
        {
            self.days += 1;
            return ns + DAY_NS;
        }
        ns
    }
}

const UNKNOWN: &str =
    "is not a number; must be seconds or ISO 8601 like 2026-01-31T12:00:00Z (UTC without a zone)";

const LEAP_SECOND: &str =
    "is a leap second, which the clocks of other stamps leave out; write second 59, or 00 of the next minute";

/// Whether a time of day, like `23:59:60.5` or `235960`, has the second 60, which the parser of ISO 8601 would read as 59.
fn has_leap_second(field: &str) -> bool {
    let mut clocks = field.split(['T', 't', ' ', '_']);
    let with_colons = clocks.any(|word| {
        word.split(|c: char| !c.is_ascii_digit()).nth(2) == Some("60") && word.contains(':')
    });
    let basic = field
        .split_once(['T', 't', ' ', '_'])
        .is_some_and(|(_, clock)| {
            let digits = clock.split(|c: char| !c.is_ascii_digit()).next();
            digits.is_some_and(|digits| digits.len() == 6 && digits.ends_with("60"))
        });
    with_colons || basic
}

fn zone_named(name: &str) -> Result<TimeZone, String> {
    if let Some(hours) = hours_of(name) {
        return Ok(hours);
    }
    TimeZone::get(name).map_err(|_| {
        format!("there is no zone {name:?} in this system's database; write one like Europe/Paris, or an offset in the times")
    })
}

/// The zone of an abbreviation that means one zone only.
fn hours_of(name: &str) -> Option<TimeZone> {
    let hours = match name {
        "UTC" | "GMT" | "UT" | "Z" | "WET" => 0,
        "CET" | "MEZ" | "WEST" => 1,
        "CEST" | "MESZ" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "EST" => -5,
        "EDT" => -4,
        "CDT" => -5,
        "MDT" => -6,
        "PST" => -8,
        "PDT" => -7,
        "JST" | "KST" => 9,
        _ => return None,
    };
    Some(TimeZone::fixed(Offset::constant(hours)))
}

/// A time as words.
struct Parts {
    date: Option<Date>,
    time: Time,
    zone: Option<TimeZone>,
}

impl Parts {
    fn read(field: &str, dates: Option<Dates>) -> Result<Parts, String> {
        let mut date: Option<Date> = None;
        let mut time: Option<Time> = None;
        let (mut year, mut month, mut day, mut zone) = (None, None, None, None);
        let mut afternoon = None;
        let unknown = || UNKNOWN.to_string();
        for word in field.split(|c: char| c.is_whitespace() || c == '_') {
            let word = word.trim_end_matches(',');
            if word.is_empty() || is_weekday(word) {
                continue;
            }
            let letters = word.chars().all(|c| c.is_ascii_alphabetic());
            if let Some(number) = month_named(word).filter(|_| month.is_none()) {
                month = Some(number);
            } else if letters && ["AM", "PM"].contains(&word.to_uppercase().as_str()) {
                afternoon = Some(word.eq_ignore_ascii_case("PM"));
            } else if time.is_none() && (date.is_some() || word.contains(':')) && is_clock(word) {
                time = Some(clock(word).ok_or_else(unknown)?);
            } else if let Some(found) = numbers_of(word, ['-', '/', '.']).filter(|_| date.is_none())
            {
                date = Some(date_of(&found, dates)?);
            } else if word.bytes().all(|byte| byte.is_ascii_digit()) && month.is_some() {
                match word.len() {
                    4 => year = word.parse().ok(),
                    1 | 2 => day = word.parse().ok(),
                    _ => return Err(unknown()),
                }
            } else if word.bytes().all(|byte| byte.is_ascii_digit()) && word.len() <= 2 {
                day = word.parse().ok();
            } else if let Some(offset) = offset_of(word).filter(|_| time.is_some()) {
                zone = Some(offset);
            } else if letters && time.is_some() && word.len() <= 5 {
                zone = Some(hours_of(word).ok_or_else(|| {
                    format!("{word} names more than one zone, or none; write its offset, as in +01:00, or a zone like Europe/Paris")
                })?);
            } else if word.contains('/') && time.is_some() {
                zone = Some(zone_named(word)?);
            } else {
                return Err(unknown());
            }
        }
        if let (None, Some(year), Some(month), Some(day)) = (date, year, month, day) {
            date = Some(Date::new(year, month, day).map_err(|_| unknown())?);
        } else if year.is_some() || month.is_some() || day.is_some() {
            return Err(unknown());
        }
        let time = time.ok_or_else(unknown)?;
        let time = match afternoon {
            Some(_) if !(1..=12).contains(&time.hour()) => return Err(unknown()),
            Some(pm) => {
                let hour = time.hour() % 12 + if pm { 12 } else { 0 };
                Time::new(hour, time.minute(), time.second(), time.subsec_nanosecond())
                    .map_err(|_| unknown())?
            }
            None => time,
        };
        Ok(Parts { date, time, zone })
    }
}

fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let small = word.to_lowercase();
    small.len() >= 3
        && DAYS
            .iter()
            .any(|day| *day == small || (small.len() == 3 && day.starts_with(&small)))
}

fn month_named(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let small = word.to_lowercase();
    let is = |month: &str| month == small || (small.len() == 3 && month.starts_with(&small));
    let at = MONTHS.iter().position(|month| is(month))?;
    i8::try_from(at + 1).ok()
}

/// Whether a word looks like a time of day: `12:11:21`, or `12.11.21` behind a date.
fn is_clock(word: &str) -> bool {
    let digits = word
        .bytes()
        .all(|b| b.is_ascii_digit() || b":.,".contains(&b));
    digits && word.bytes().filter(|b| b":.".contains(b)).count() >= 2
}

fn clock(word: &str) -> Option<Time> {
    let mut parts = word.splitn(4, [':', '.', ',']);
    let mut number = || -> Option<i8> {
        let part = parts.next()?;
        (part.len() <= 2).then(|| part.parse().ok())?
    };
    let (hour, minute, second) = (number()?, number()?, number()?);
    let fraction = match parts.next() {
        None => 0,
        Some(digits) if (1..=9).contains(&digits.len()) => {
            format!("{digits:0<9}").parse::<i32>().ok()?
        }
        Some(_) => return None,
    };
    Time::new(hour, minute, second, fraction).ok()
}

/// The three numbers of a word with two marks between them.
fn numbers_of(word: &str, marks: [char; 3]) -> Option<[&str; 3]> {
    let mark = marks.into_iter().find(|mark| word.contains(*mark))?;
    let parts: Vec<&str> = word.split(mark).collect();
    let is_number = |part: &str| {
        (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    parts.iter().all(|part| is_number(part)).then_some(())?;
    <[&str; 3]>::try_from(parts).ok()
}

fn date_of(numbers: &[&str; 3], dates: Option<Dates>) -> Result<Date, String> {
    let [a, b, c] = *numbers;
    let (year, month, day) = match (a.len(), c.len(), dates) {
        (4, 1 | 2, _) => (a, b, c),
        (1 | 2, 4, Some(Dates::DayFirst)) => (c, b, a),
        (1 | 2, 4, Some(Dates::MonthFirst)) => (c, a, b),
        (1 | 2, 4, None) => {
            return Err(format!(
                "{UNKNOWN}; of a date like this say what comes first: dates = \"day_first\" or dates = \"month_first\""
            ))
        }
        _ => return Err(UNKNOWN.to_string()),
    };
    let number = |text: &str| text.parse::<i8>().ok();
    year.parse::<i16>()
        .ok()
        .zip(number(month))
        .zip(number(day))
        .and_then(|((year, month), day)| Date::new(year, month, day).ok())
        .ok_or_else(|| "is no date of the calendar".to_string())
}

/// `+0100`, `+01:00` or `-5`.
fn offset_of(word: &str) -> Option<TimeZone> {
    let sign = match word.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = word[1..].chars().filter(|c| *c != ':').collect();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = match digits.len() {
        1 | 2 => (digits.parse::<i32>().ok()?, 0),
        4 => (digits[..2].parse().ok()?, digits[2..].parse::<i32>().ok()?),
        _ => return None,
    };
    let seconds = sign * (hours * 3600 + minutes * 60);
    Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2019-12-01T12:11:21Z, by `date -u -d 2019-12-01T12:11:21 +%s`.
    const NOON: i128 = 1_575_202_281_000_000_000;

    fn one(field: &str) -> Result<i128, String> {
        Clock::default().read(field)
    }

    #[test]
    fn times_as_clocks_write_them() {
        for field in [
            "2019-12-01T12:11:21Z",
            "2019-12-01 12:11:21",
            "2019.12.01_12.11.21",
            "2019/12/01 12:11:21",
            "2019/12/1 12:11:21",
            "Sun Dec  1 12:11:21 UTC 2019",
            "Sun Dec  1 13:11:21 CET 2019",
            "Sun 01 Dec 2019 12:11:21 PM UTC",
            "Sun, 1 Dec 2019 13:11:21 +0100",
            "2019-12-01 13:11:21 Europe/Paris",
            "2019-12-01T13:11:21[Europe/Paris]",
            "2019-12-01 07:11:21 EST",
            "2019-12-01T14:11:21+02:00",
        ] {
            assert_eq!(one(field), Ok(NOON), "{field}");
        }
        for field in ["2019-12-01 12:11:21,500", "2019.12.01_12.11.21.500"] {
            assert_eq!(one(field), Ok(NOON + 500_000_000), "{field}");
        }
        let day_first = Clock::new(None, Some(Dates::DayFirst)).unwrap();
        assert_eq!(day_first.clone().read("1.12.2019 12:11:21"), Ok(NOON));
        let month_first = Clock::new(None, Some(Dates::MonthFirst)).unwrap();
        assert_eq!(month_first.clone().read("12/01/2019 12:11:21"), Ok(NOON));
    }

    #[test]
    fn unclear_times_are_refused_with_the_choices() {
        for (field, expected) in [
            (
                "12/01/2019 12:11:21",
                "dates = \"day_first\" or dates = \"month_first\"",
            ),
            ("2019-12-01 12:11:21 IST", "IST names more than one zone"),
            ("2019-12-01 12:11:21 Mars/Phobos", "no zone \"Mars/Phobos\""),
            ("12:11", "is not a number; must be seconds or ISO 8601"),
            ("hello", "is not a number; must be seconds or ISO 8601"),
            ("2019.13.01_12.11.21", "is no date of the calendar"),
            ("13:11:21 PM", "is not a number"),
            ("-5€", "is not a number"),
            ("+1é1", "is not a number"),
            ("2016-12-31T23:59:60Z", "is a leap second"),
            ("2016-12-31 23:59:60.5", "is a leap second"),
            ("23:59:60", "is a leap second"),
            ("20161231T235960Z", "is a leap second"),
            ("20161231T235960.5+00", "is a leap second"),
        ] {
            let found = one(field).unwrap_err();
            assert!(found.contains(expected), "{field}: {found}");
        }
    }

    #[test]
    fn times_of_day_pass_midnight() {
        let mut clock = Clock::default();
        let seconds = 1_000_000_000;
        assert_eq!(clock.read("23:59:59"), Ok(86_399 * seconds));
        assert_eq!(clock.read("0:00:01.5"), Ok(86_401 * seconds + 500_000_000));
        assert_eq!(clock.read("0:00:01,25"), Ok(86_401 * seconds + 250_000_000));
    }

    /// In Paris clocks go from 3:00 back to 2:00 on 2026-10-25 and from 2:00 to 3:00 on 2026-03-29.
    #[test]
    fn a_named_zone_changes_to_summer_time_and_back() {
        let mut clock = Clock::new(Some("Europe/Paris"), None).unwrap();
        let times = [
            "2026-10-25 02:59:59",
            "2026-10-25 02:00:00",
            "2026-10-25 03:00:00",
        ];
        let read: Vec<i128> = times.iter().map(|t| clock.read(t).unwrap()).collect();
        assert_eq!(read[1] - read[0], 1_000_000_000);
        assert_eq!(read[2] - read[1], HOUR_NS);
        let mut clock = Clock::new(Some("Europe/Paris"), None).unwrap();
        let before = clock.read("2026-03-29 01:59:59").unwrap();
        assert_eq!(
            clock.read("2026-03-29 03:00:00").unwrap() - before,
            1_000_000_000
        );
    }
}
