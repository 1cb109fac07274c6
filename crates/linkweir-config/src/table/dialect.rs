// SPDX-License-Identifier: BSD-3-Clause
//! What separates the fields of a table's lines, and whether its decimals have a point or a comma.
//!
//! The separator is the first of tab, `;`, `|` and `,` that is in the first two lines of data, outside double quotes; else
//! blanks. Numbers with a comma have decimals unless every one of them could also be thousands: `1,234` is refused until
//! the user says which.

use std::borrow::Cow;

use crate::units::Decimal;

/// Lines that are looked at to find the decimals.
const LOOKED_AT: usize = 1000;

/// What separates fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Character(char),
    Blanks,
    /// One field per line.
    Nothing,
}

/// How the lines of a table are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    separator: Separator,
    decimal_comma: bool,
}

/// Lines that hold data, with their numbers from 1: not empty ones, and not those that begin with `#`, `%` or `//`.
pub fn data_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim_matches([' ', '\r'])))
        .filter(|(_, line)| {
            let shown = line.trim();
            !shown.is_empty() && !shown.starts_with(['#', '%']) && !shown.starts_with("//")
        })
}

impl Default for Dialect {
    /// Commas between fields, and points in decimals.
    fn default() -> Dialect {
        Dialect {
            separator: Separator::Character(','),
            decimal_comma: false,
        }
    }
}

impl Dialect {
    /// That of a text; `decimal` is the mark in front of decimals, if the user names it.
    ///
    /// # Errors
    /// The line whose numbers have commas that may be either decimals or thousands, and that they may.
    pub fn find(text: &str, decimal: Option<char>) -> Result<Dialect, (usize, String)> {
        let mut lines = data_lines(text).map(|(_, line)| line);
        let first = lines.next().unwrap_or_default();
        let second = lines.next();
        let mut found = Dialect {
            separator: separator(first, second.unwrap_or(first), decimal),
            decimal_comma: decimal == Some(','),
        };
        if decimal.is_none() {
            found.decimal_comma = found.has_decimal_commas(text)?;
        }
        Ok(found)
    }

    fn has_decimal_commas(self, text: &str) -> Result<bool, (usize, String)> {
        let mut unclear = None;
        let mut fields = Vec::new();
        for (number, line) in data_lines(text).take(LOOKED_AT) {
            if !line.contains(',') {
                continue;
            }
            self.split(line, &mut fields);
            for field in &fields {
                match comma_in(field) {
                    Comma::Decimal => return Ok(true),
                    Comma::Unclear => {
                        unclear.get_or_insert_with(|| (number, (*field).to_string()));
                    }
                    Comma::None => {}
                }
            }
        }
        match unclear {
            None => Ok(false),
            Some((number, field)) => Err((
                number,
                format!(
                    "\"{field}\" may be {} or {}",
                    field.replace(',', "."),
                    field.replace(',', "")
                ),
            )),
        }
    }

    /// The fields of a line, without blanks or double quotes around them.
    pub fn split<'t>(&self, line: &'t str, fields: &mut Vec<&'t str>) {
        fields.clear();
        match self.separator {
            Separator::Blanks => split_blanks(line, fields),
            Separator::Nothing => fields.push(line.trim().trim_matches('"')),
            Separator::Character(mark) if line.contains('"') => split_quoted(line, mark, fields),
            Separator::Character(mark) => fields.extend(line.split(mark).map(str::trim)),
        }
    }

    /// As [`Dialect::split`], into a list of its own.
    pub fn fields<'t>(&self, line: &'t str) -> Vec<&'t str> {
        let mut fields = Vec::new();
        self.split(line, &mut fields);
        fields
    }

    /// A number as programs write it, with a point.
    pub fn plain<'t>(&self, field: &'t str) -> Cow<'t, str> {
        if self.decimal_comma && field.contains(',') && !field.contains('.') {
            Cow::Owned(field.replacen(',', ".", 1))
        } else {
            Cow::Borrowed(field)
        }
    }

    /// A number.
    ///
    /// # Errors
    /// Why it is none.
    pub fn number(&self, field: &str) -> Result<Decimal, &'static str> {
        Decimal::parse(&self.plain(field))
    }

    /// Whether fields are separated by blanks, so that a time with a blank is two of them.
    pub fn has_blanks(&self) -> bool {
        self.separator == Separator::Blanks
    }

    /// What is between fields, for the user.
    pub fn separator(&self) -> &'static str {
        match self.separator {
            Separator::Blanks => "blank",
            Separator::Nothing => "none",
            Separator::Character('\t') => "tab",
            Separator::Character(';') => ";",
            Separator::Character('|') => "|",
            Separator::Character(_) => ",",
        }
    }

    /// Whether decimals have a comma in front.
    pub fn decimal_comma(&self) -> bool {
        self.decimal_comma
    }
}

fn separator(first: &str, second: &str, decimal: Option<char>) -> Separator {
    let has = |mark: char| outside_quotes(first, mark) && outside_quotes(second, mark);
    for mark in ['\t', ';', '|', ','] {
        let is_decimal =
            mark == ',' && decimal == Some(',') && !first.contains('"') && !second.contains('"');
        if has(mark) && !is_decimal && !(mark == ',' && numbers_between_blanks(second)) {
            return Separator::Character(mark);
        }
    }
    let blanks = |line: &str| line.split_whitespace().count() > 1;
    if blanks(first) && blanks(second) {
        Separator::Blanks
    } else if decimal == Some(',') {
        Separator::Nothing
    } else {
        Separator::Character(',')
    }
}

/// Whether a line is numbers with commas, and times, with blanks between them, such as `0,5 1,25`.
fn numbers_between_blanks(line: &str) -> bool {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let is_number = |field: &&str| {
        let is_time =
            !field.contains(',') && (field.contains(':') || field.matches('-').count() == 2);
        is_time || Decimal::parse(&field.replacen(',', ".", 1)).is_ok()
    };
    fields.len() > 1
        && fields.iter().all(is_number)
        && fields
            .iter()
            .all(|field| !field.starts_with(',') && !field.ends_with(','))
        && fields.iter().any(|field| field.contains(','))
}

fn outside_quotes(line: &str, mark: char) -> bool {
    let mut quoted = false;
    line.chars().any(|letter| {
        quoted ^= letter == '"';
        letter == mark && !quoted
    })
}

/// A field in quotes ends at the first quote that the separator or the end of the line follows.
fn split_quoted<'t>(line: &'t str, mark: char, fields: &mut Vec<&'t str>) {
    let ends = |text: &'t str, at: usize| {
        let after = text[at + 1..].trim_start_matches(' ');
        (after.is_empty() || after.starts_with(mark)).then_some((at, after))
    };
    // Bytes from the last quote that ends a field to the line's end: behind it no field needs to look for one.
    let last = line
        .rmatch_indices('"')
        .find(|(at, _)| ends(line, *at).is_some());
    let last = last.map(|(at, _)| line.len() - at);
    let may_end = |inside: &&str| last.is_some_and(|last| inside.len() >= last);
    let mut rest = line;
    loop {
        // Blanks are no part of a field, except where they separate fields.
        let trimmed = rest.trim_start_matches(' ');
        if let Some(inside) = trimmed.strip_prefix('"').filter(may_end) {
            let end = inside
                .match_indices('"')
                .find_map(|(at, _)| ends(inside, at));
            if let Some((at, after)) = end {
                fields.push(inside[..at].trim());
                match after.strip_prefix(mark) {
                    Some(next) => rest = next,
                    None => return,
                }
                continue;
            }
        }
        match rest.split_once(mark) {
            Some((field, next)) => {
                fields.push(field.trim());
                rest = next;
            }
            None => {
                fields.push(rest.trim());
                return;
            }
        }
    }
}

fn split_blanks<'t>(line: &'t str, fields: &mut Vec<&'t str>) {
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (field, after) = match rest.strip_prefix('"').and_then(|inside| {
            let at = inside.find('"')?;
            Some((&inside[..at], &inside[at + 1..]))
        }) {
            Some(quoted) => quoted,
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        fields.push(field.trim());
        rest = after.trim_start();
    }
}

enum Comma {
    None,
    Decimal,
    /// It may mark thousands.
    Unclear,
}

fn comma_in(field: &str) -> Comma {
    let Some((whole, rest)) = field.split_once(',') else {
        return Comma::None;
    };
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let groups: Vec<&str> = rest.split(',').collect();
    if !is_digits(digits) || !groups.iter().all(|group| is_digits(group)) {
        let exponent = Decimal::parse(&field.replacen(',', ".", 1)).is_ok();
        return if exponent {
            Comma::Decimal
        } else {
            Comma::None
        };
    }
    let may_be_thousands = digits.len() <= 3
        && !digits.starts_with('0')
        && groups.iter().all(|group| group.len() == 3);
    match (may_be_thousands, groups.len()) {
        (true, _) => Comma::Unclear,
        (false, 1) => Comma::Decimal,
        (false, _) => Comma::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Dialect {
        Dialect::find(text, None).unwrap_or_else(|(line, what)| panic!("{line}: {what}"))
    }

    #[test]
    fn separators_and_decimals_are_found() {
        for (text, separator, comma) in [
            ("t_s,x\n0,1\n", ",", false),
            ("t_s\tx\n0\t1,5\n", "\t", true),
            ("t_s;x\n0;0,123\n", ";", true),
            ("t_s x\n0 1.5\n", " ", false),
            ("t_s x\n0,5 1,25\n", " ", true),
            ("0,0 1,5\n0,1 1,6\n", " ", true),
            ("t|x\n0|1\n", "|", false),
            ("\"t\",\"x\"\n\"0,5\",\"1,25\"\n", ",", true),
            ("when,x\n2019-12-01 12:11:21,5.2\n", ",", false),
            (
                "2019-12-01T12:11:21Z 5,25\n2019-12-01T12:11:22Z 5,5\n",
                " ",
                true,
            ),
            ("0|5,25\n1|5,5\n", "|", true),
            ("t; a, b\n0;1\n", ";", false),
            ("12\n12\n", ",", false),
        ] {
            let found = of(text);
            let name = match separator {
                " " => "blank",
                "\t" => "tab",
                other => other,
            };
            assert_eq!(
                (found.separator(), found.decimal_comma()),
                (name, comma),
                "{text:?}"
            );
        }
    }

    #[test]
    fn quotes_hold_separators_and_blanks() {
        let comma = of("a,b\n1,2\n");
        assert_eq!(
            comma.fields("\"a, b\" , 2,\"c \"\",x"),
            ["a, b", "2", "c \"", "x"]
        );
        assert_eq!(comma.fields("\"open,2"), ["\"open", "2"]);
        assert_eq!(comma.fields("1,,"), ["1", "", ""]);
        let blank = of("t rate\n\"1 2\"  3\n");
        assert_eq!(blank.fields("\"1 2\"  3"), ["1 2", "3"]);
    }

    /// Were the rest of the line searched for a quote in every field, these would take minutes.
    #[test]
    fn long_lines_of_open_quotes_are_split_in_one_pass() {
        let comma = of("a,b\n1,2\n");
        let open = "\"x,".repeat(500_000);
        assert_eq!(comma.fields(&open).len(), 500_001);
        let closed = format!("{open}\"a, b\",c");
        let fields = comma.fields(&closed);
        assert_eq!(fields.len(), 2);
        assert_eq!(fields[1], "c");
    }

    #[test]
    fn a_comma_that_may_be_thousands_is_refused() {
        let (line, what) = Dialect::find("t;x\n0;1,234\n1;2,345\n", None).unwrap_err();
        assert_eq!(line, 2);
        assert!(what.contains("may be 1.234 or 1234"), "{what}");
        assert!(of("t;x\n0;1,234\n1;2,5\n").decimal_comma());
        let told = Dialect::find("t;x\n0;1,234\n", Some(',')).unwrap();
        assert_eq!(told.number("1,234").unwrap().real(), 1.234);
        let list = Dialect::find("1,5\n2,25\n", Some(',')).unwrap();
        assert_eq!(list.fields("2,25"), ["2,25"]);
    }
}
