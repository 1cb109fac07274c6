// SPDX-License-Identifier: BSD-3-Clause
//! The resolved form: every value that a parser read or assumed, with its type, and as it is written in TOML.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use crate::signal::{End, Signal};
use crate::units::{self, Decimal, Kind};

/// A value, which is shown as TOML.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    Text(String),
    /// True or false.
    Flag(bool),
    /// A bare whole number.
    Number(u64),
    /// A bare number.
    Real(f64),
    /// A quantity in whole base units.
    Whole(u64, Kind),
    /// A quantity in whole base units, of either sign.
    Signed(i64, Kind),
    /// A quantity in base units; a fraction is shown as a bare number.
    Amount(f64, Kind),
    /// A size that is shown in bytes even if it is thousands of them.
    Bytes(u64),
    /// A fraction in millionths, which is shown as percent.
    Ppm(u64),
    /// A quantity over time.
    OverTime(Signal, Kind),
    /// A list.
    List(Vec<Value>),
    /// A table on the line of its key.
    Inline(Written),
    /// A table with a header of its own.
    Table(Written),
    /// Tables with headers of their own.
    Tables(Vec<Written>),
}

impl Value {
    /// A table on the line of its key.
    #[must_use]
    pub fn inline<const N: usize>(keys: [(&str, Value); N]) -> Value {
        let mut table = Written::default();
        for (key, value) in keys {
            table.write(key, value);
        }
        Value::Inline(table)
    }

    /// A quantity as it is written in scenarios; none if this is no quantity with a unit.
    #[must_use]
    pub fn quantity(&self) -> Option<String> {
        match *self {
            Value::Whole(value, kind) => Some(units::show_whole(value, kind)),
            Value::Signed(value, kind) => {
                let sign = if value < 0 { "-" } else { "" };
                Some(format!(
                    "{sign}{}",
                    units::show_whole(value.unsigned_abs(), kind)
                ))
            }
            Value::Amount(_, Kind::Fraction) => None,
            Value::Amount(value, kind) => Some(units::show_real(value, kind)),
            Value::Bytes(value) => Some(format!("{value}B")),
            Value::Ppm(value) => Some(show_ppm(value)),
            _ => None,
        }
    }

    /// The kind of a quantity, and its value in base units, of times in s: the nearest double.
    #[must_use]
    pub fn amount(&self) -> Option<(Kind, f64)> {
        match *self {
            Value::Whole(value, Kind::Time) => Some((Kind::Seconds, seconds(Decimal::from(value)))),
            Value::Whole(value, kind) => Some((kind, value as f64)),
            Value::Signed(value, Kind::Time) => {
                let magnitude = seconds(Decimal::from(value.unsigned_abs()));
                let sign = if value < 0 { -1.0 } else { 1.0 };
                Some((Kind::Seconds, sign * magnitude))
            }
            Value::Signed(value, kind) => Some((kind, value as f64)),
            Value::Amount(value, Kind::Time) => {
                let exact = Decimal::parse(&value.to_string()).ok()?;
                Some((Kind::Seconds, seconds(exact)))
            }
            Value::Amount(value, kind) => Some((kind, value)),
            Value::Bytes(value) => Some((Kind::Size, value as f64)),
            Value::Ppm(value) => {
                let fraction = Decimal::from(value).shifted(-6).real();
                Some((Kind::Fraction, fraction))
            }
            _ => None,
        }
    }

    /// The keys of a table, if it is one.
    #[must_use]
    pub fn table(&self) -> Option<&Written> {
        match self {
            Value::Inline(table) | Value::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// Seconds of an exact number of ns.
fn seconds(ns: Decimal) -> f64 {
    ns.shifted(-9).real()
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Flag(flag)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(quantity) = self.quantity() {
            return f.write_str(&quote(&quantity));
        }
        match self {
            Value::Text(text) => f.write_str(&quote(text)),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::Real(value) | Value::Amount(value, _) => f.write_str(&show_number(*value)),
            Value::OverTime(signal, kind) => f.write_str(&show_signal(signal, *kind)),
            Value::List(members) => listed(f, members),
            Value::Tables(tables) => {
                let members: Vec<Value> = tables.iter().cloned().map(Value::Inline).collect();
                listed(f, &members)
            }
            Value::Inline(table) | Value::Table(table) => table.inline(f),
            Value::Whole(..) | Value::Signed(..) | Value::Bytes(_) | Value::Ppm(_) => Ok(()),
        }
    }
}

fn listed(f: &mut fmt::Formatter<'_>, members: &[Value]) -> fmt::Result {
    f.write_char('[')?;
    for (at, member) in members.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        write!(f, "{comma}{member}")?;
    }
    f.write_char(']')
}

/// A signal of this kind in TOML.
fn show_signal(signal: &Signal, kind: Kind) -> String {
    let value = |value| Value::Amount(value, kind);
    let list = |points: &[(u64, f64)]| {
        let rows: Vec<String> = points
            .iter()
            .map(|(t, v)| format!("[{}, {}]", show_time(*t), value(*v)))
            .collect();
        format!("[{}]", rows.join(", "))
    };
    match signal {
        Signal::Constant(constant) => value(*constant).to_string(),
        Signal::Cosine {
            mean,
            amplitude,
            period_ns,
            phase_rad,
        } => format!(
            "{{ mean = {}, amplitude = {}, period = {}, phase = {} }}",
            value(*mean),
            show_number(*amplitude),
            show_time(*period_ns),
            show_number(*phase_rad)
        ),
        Signal::Steps { points, end } => {
            let end = match end {
                End::Loop { period_ns } => {
                    format!("end = \"loop\", period = {}", show_time(*period_ns))
                }
                End::Hold => "end = \"hold\"".to_string(),
                End::Stop { at_ns } => format!("end = \"stop\", at = {}", show_time(*at_ns)),
            };
            format!("{{ steps = {}, {end} }}", list(points))
        }
        Signal::Lines { points } => format!("{{ lines = {} }}", list(points)),
    }
}

fn show_time(ns: u64) -> Value {
    Value::Whole(ns, Kind::Time)
}

/// A table of the resolved form: its keys in their order, and remarks between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq)]
enum Line {
    Key(String, Value),
    Remark(String),
}

impl Written {
    /// Adds a key.
    pub fn write(&mut self, key: &str, value: impl Into<Value>) {
        self.lines.push(Line::Key(key.to_owned(), value.into()));
    }

    /// Adds a remark.
    pub fn remark(&mut self, text: &str) {
        self.lines.push(Line::Remark(text.to_owned()));
    }

    /// Adds the keys and remarks of another table.
    pub fn extend(&mut self, other: Written) {
        self.lines.extend(other.lines);
    }

    /// The same with one key in place of several, where the first of them was.
    #[must_use]
    pub fn replaced(&self, several: &[&str], key: &str, value: Value) -> Written {
        let mut one = Some(Line::Key(key.to_owned(), value));
        let lines = self.lines.iter().filter_map(|line| match line {
            Line::Key(name, _) if several.contains(&name.as_str()) => one.take(),
            line => Some(line.clone()),
        });
        Written {
            lines: lines.collect(),
        }
    }

    /// The same without some keys.
    #[must_use]
    pub fn without(&self, several: &[&str]) -> Written {
        let stays =
            |line: &&Line| !matches!(line, Line::Key(name, _) if several.contains(&name.as_str()));
        Written {
            lines: self.lines.iter().filter(stays).cloned().collect(),
        }
    }

    /// The keys with their values, in their order.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.lines.iter().filter_map(|line| match line {
            Line::Key(key, value) => Some((key.as_str(), value)),
            Line::Remark(_) => None,
        })
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.keys()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// The tables that are written with headers under this key.
    #[must_use]
    pub fn tables(&self, key: &str) -> &[Written] {
        match self.get(key) {
            Some(Value::Tables(tables)) => tables,
            Some(Value::Table(table)) => std::slice::from_ref(table),
            _ => &[],
        }
    }

    /// As TOML: keys, then the tables with headers of their own.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut text = String::new();
        self.add_to(&mut text, "");
        text
    }

    fn add_to(&self, text: &mut String, path: &str) {
        for line in &self.lines {
            let _ = match line {
                Line::Key(_, Value::Table(_) | Value::Tables(_)) => Ok(()),
                Line::Key(key, value) => writeln!(text, "{} = {value}", written_key(key)),
                Line::Remark(remark) => writeln!(text, "# {remark}"),
            };
        }
        for (key, value) in self.keys() {
            let below = if path.is_empty() {
                key.to_owned()
            } else {
                format!("{path}.{key}")
            };
            match value {
                Value::Table(table) => {
                    let _ = write!(text, "\n[{below}]\n");
                    table.add_to(text, &below);
                }
                Value::Tables(tables) => {
                    for table in tables {
                        let _ = write!(text, "\n[[{below}]]\n");
                        table.add_to(text, &below);
                    }
                }
                _ => {}
            }
        }
    }

    fn inline(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.keys().next().is_none() {
            return f.write_str("{}");
        }
        for (at, (key, value)) in self.keys().enumerate() {
            let before = if at > 0 { ", " } else { "{ " };
            write!(f, "{before}{} = {value}", written_key(key))?;
        }
        f.write_str(" }")
    }
}

/// A key, in quotes if it needs them.
fn written_key(key: &str) -> Cow<'_, str> {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match !key.is_empty() && key.chars().all(is_bare) {
        true => Cow::Borrowed(key),
        false => Cow::Owned(quote(key)),
    }
}

/// A TOML string.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A TOML float.
pub fn show_number(value: f64) -> String {
    format!("{value:?}")
}

/// A fraction from millionths.
pub fn show_ppm(ppm: u64) -> String {
    let (percent, rest) = (ppm / 10_000, ppm % 10_000);
    if rest == 0 {
        return format!("{percent}%");
    }
    format!("{percent}.{}%", format!("{rest:04}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    #[test]
    fn strings_are_quoted_for_toml() {
        let text = "a \"b\" \\ \u{1}\n\u{7f}\u{e9}";
        let quoted = format!("x = {}", quote(text));
        let table = DeTable::parse(&quoted).unwrap();
        assert_eq!(
            table.get_ref().get("x").unwrap().get_ref().as_str(),
            Some(text)
        );
    }

    #[test]
    fn amounts_are_those_of_the_text() {
        let times = [
            0,
            1,
            999,
            100_000_001,
            9_007_199_254_740_993,
            315_360_000_000_000_000,
        ];
        for ns in times {
            let value = Value::Whole(ns, Kind::Time);
            let read = units::parse(&value.quantity().unwrap(), Kind::Seconds).unwrap();
            assert_eq!(value.amount(), Some((Kind::Seconds, read.real())), "{ns}");
        }
        for ns in [0.0, 0.1, 1.0 / 3.0, 1e9 / 3.0, 123_456_789.123, 3e17] {
            let value = Value::Amount(ns, Kind::Time);
            let read = units::parse(&value.quantity().unwrap(), Kind::Seconds).unwrap();
            assert_eq!(value.amount(), Some((Kind::Seconds, read.real())), "{ns}");
        }
        for ppm in [0, 1, 333_333, 900_000, 1_000_000] {
            let value = Value::Ppm(ppm);
            let read = units::parse(&value.quantity().unwrap(), Kind::Fraction).unwrap();
            assert_eq!(value.amount(), Some((Kind::Fraction, read.real())), "{ppm}");
        }
        let overhead = Value::Signed(-20, Kind::Size);
        assert_eq!(overhead.to_string(), "\"-20B\"");
        assert_eq!(overhead.amount(), Some((Kind::Size, -20.0)));
    }

    #[test]
    fn tables_with_headers_come_after_all_keys() {
        let mut inner = Written::default();
        inner.write("a", Value::Number(1));
        let mut outer = Written::default();
        outer.write("inner", Value::Table(inner.clone()));
        outer.remark("b: none");
        outer.write(
            "c",
            Value::inline([("x", Value::Real(1.0)), ("y", "z".into())]),
        );
        let mut all = Written::default();
        all.write("outer", Value::Table(outer));
        all.write("each", Value::Tables(vec![inner.clone(), inner]));
        all.write(
            "d",
            Value::List(vec![Value::Flag(true), Value::Bytes(1000)]),
        );
        let expected =
            "d = [true, \"1000B\"]\n\n[outer]\n# b: none\nc = { x = 1.0, y = \"z\" }\n\n\
                        [outer.inner]\na = 1\n\n[[each]]\na = 1\n\n[[each]]\na = 1\n";
        assert_eq!(all.toml(), expected);
        assert_eq!(all.tables("each").len(), 2);
    }

    #[test]
    fn millionths_are_shown_as_percent() {
        assert_eq!(show_ppm(250_000), "25%");
        assert_eq!(show_ppm(1), "0.0001%");
        assert_eq!(show_ppm(999_999), "99.9999%");
        assert_eq!(show_ppm(0), "0%");
    }
}
