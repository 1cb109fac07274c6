// SPDX-License-Identifier: BSD-3-Clause
//! A scenario's text with other values of some keys, as sliders set them. Keys are found by the parser, so comments and strings
//! do not matter; the rest of the text stays as it is written.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use linkweir_config::reader::{nearest, quote, Source};
use linkweir_config::Fault;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::limits;

const IS_TABLE: &str = "is a table; name one of its keys";

/// Where the value of a key goes.
enum Place {
    /// In place of these bytes.
    Value(Range<usize>),
    /// A line of its own behind the header that begins here, or at the beginning of the text.
    Line(Option<usize>),
}

/// The text with other values of some keys, each as (`class.af.memory`, `"2s"`): tables of a list are named by their `name`, flows
/// without one by their `class`, and all by their number from 0 unless it is a name. Of names that fit, the longest counts. A key
/// that its table lacks is added to it.
///
/// # Errors
/// The text is no TOML, a value is none, or a key names no table or several.
pub fn changed<'t>(
    text: &'t str,
    file: Option<&Path>,
    keys: &[(String, String)],
) -> Result<Cow<'t, str>, Fault> {
    let mut text = Cow::Borrowed(text);
    for (key, value) in keys {
        let source = Source::new(&text, file);
        let fault = |message: String| Fault {
            key: key.clone(),
            value: value.clone(),
            ..source.fault_whole(message)
        };
        let value = one_value(value).ok_or_else(|| fault("must be one TOML value".to_owned()))?;
        let document = source.parse(limits::SCENARIO_BYTES)?;
        let place = find(&text, document.get_ref(), None, key).map_err(fault)?;
        let (range, new) = match place {
            Place::Value(range) => (range, value.to_owned()),
            Place::Line(header) => {
                let name = key.rsplit('.').next().unwrap_or(key);
                let mark = if text.starts_with('\u{feff}') {
                    '\u{feff}'.len_utf8()
                } else {
                    0
                };
                let at = header.map_or(mark, |start| {
                    let line = text[start..].find('\n');
                    line.map_or(text.len(), |end| start + end + 1)
                });
                let before = if at == text.len() && !text.ends_with('\n') {
                    "\n"
                } else {
                    ""
                };
                (at..at, format!("{before}{name} = {value}\n"))
            }
        };
        let mut other = text.clone().into_owned();
        other.replace_range(range, &new);
        text = Cow::Owned(other);
    }
    Ok(text)
}

/// The value alone, if it is one.
fn one_value(value: &str) -> Option<&str> {
    let line = format!("v = {value}");
    let document = DeTable::parse(&line).ok()?;
    let (_, found) = document.get_ref().iter().next()?;
    let alone = document.get_ref().len() == 1 && !value.contains('\n');
    let span = found.span();
    alone
        .then(|| value.get(span.start - 4..span.end - 4))
        .flatten()
}

/// The place of a key below a table, which begins at `header`.
fn find(
    text: &str,
    table: &DeTable<'_>,
    header: Option<usize>,
    key: &str,
) -> Result<Place, String> {
    for (name, value) in table {
        let name: &str = name.get_ref();
        if key == name {
            let is_table = |value: &Spanned<DeValue<'_>>| {
                let is_inline = text[value.span()].starts_with('{');
                value.get_ref().is_table() && !is_inline
            };
            let members = value.get_ref().as_array();
            if is_table(value) || members.is_some_and(|members| members.iter().any(is_table)) {
                return Err(IS_TABLE.to_owned());
            }
            return Ok(Place::Value(value.span()));
        }
        let Some(rest) = key
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'))
        else {
            continue;
        };
        return match value.get_ref() {
            DeValue::Table(inner) => find(text, inner, Some(value.span().start), rest),
            DeValue::Array(members) => {
                let tables = members
                    .iter()
                    .filter_map(|member| Some((member.get_ref().as_table()?, member.span().start)));
                let tables: Vec<_> = tables.collect();
                if tables.is_empty() {
                    return Err(format!("{name} is not a table"));
                }
                let (table, start, rest) = member(&tables, rest)?;
                find(text, table, Some(start), rest)
            }
            _ => Err(format!("{name} is not a table")),
        };
    }
    let is_plain = key
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let has_lines = header.is_none_or(|start| text[start..].starts_with('['));
    match (is_plain && !key.is_empty(), has_lines) {
        (true, true) => Ok(Place::Line(header)),
        (true, false) => Err("is not in this table; write it there first".to_owned()),
        (false, _) => Err("the scenario has no such table".to_owned()),
    }
}

/// The table of a list that the first part of `path` names, where it begins, and the rest of `path`.
fn member<'d, 'i, 'p>(
    tables: &[(&'d DeTable<'i>, usize)],
    path: &'p str,
) -> Result<(&'d DeTable<'i>, usize, &'p str), String> {
    let text = |table: &'d DeTable<'i>, key: &str| {
        table.get(key).and_then(|value| value.get_ref().as_str())
    };
    let label = |table| text(table, "name").or_else(|| text(table, "class"));
    let names: Vec<&str> = tables
        .iter()
        .filter_map(|(table, _)| label(table))
        .collect();
    let fits = |name: &&&str| {
        let rest = path.strip_prefix(**name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let first = path.split('.').next().unwrap_or(path);
    let wanted = names.iter().filter(fits).max_by_key(|name| name.len());
    let wanted = wanted.copied().unwrap_or(first);
    let mut found: Vec<usize> = (0..tables.len())
        .filter(|number| label(tables[*number].0) == Some(wanted))
        .collect();
    if found.is_empty() {
        let number = wanted.parse().ok();
        found.extend(number.filter(|number: &usize| *number < tables.len()));
    }
    match found[..] {
        [] => {}
        [number] => {
            let (table, start) = tables[number];
            let rest = path[wanted.len()..].strip_prefix('.');
            return rest
                .map(|rest| (table, start, rest))
                .ok_or_else(|| IS_TABLE.to_owned());
        }
        _ => {
            let numbers: Vec<String> = found.iter().map(ToString::to_string).collect();
            return Err(format!(
                "{} tables are called {}; name one by its number: {}",
                found.len(),
                quote(wanted),
                numbers.join(", ")
            ));
        }
    }
    let cure = match nearest(wanted, &names) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => format!("there are {}", names.join(", ")),
    };
    Err(format!("no table is called {}; {cure}", quote(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{parse_with, Overrides};

    const TEXT: &str = r#"# memory = "9s" and rate = "1bit" are comments
duration = "10s"
[link] # rate = "3Mbit"
rate = { steps = [["0s", "20Mbit"], ["5s", "8Mbit"]] }
[scheduler]
policy = "pss"
[[class]]
name = "a.f" # memory = "8s"
level = 0
low_level = 1
rate = "5Mbit"
[[class]]
name = "rest"
level = 2
[[flow]]
class = "a.f"
kind = "cbr"
rate = "1Mbit"
"#;

    fn with(key: &str, value: &str) -> Result<String, Fault> {
        let keys = [(key.to_owned(), value.to_owned())];
        changed(TEXT, None, &keys).map(Cow::into_owned)
    }

    #[test]
    fn a_key_that_is_there_gets_the_value_and_nothing_else_changes() {
        let found = with("class.a.f.rate", "\"2Mbit\"").unwrap();
        assert_eq!(found, TEXT.replace("rate = \"5Mbit\"", "rate = \"2Mbit\""));
        let found = with("flow.a.f.rate", "\"7Mbit\" # more").unwrap();
        assert_eq!(
            found,
            TEXT.replace("rate = \"1Mbit\"\n", "rate = \"7Mbit\"\n")
        );
        let found = with("link.rate", "\"4Mbit\"").unwrap();
        let steps = "{ steps = [[\"0s\", \"20Mbit\"], [\"5s\", \"8Mbit\"]] }";
        assert_eq!(found, TEXT.replace(steps, "\"4Mbit\""));
        assert_eq!(
            with("flow.0.kind", "\"greedy\"").unwrap(),
            TEXT.replace("cbr", "greedy")
        );
    }

    #[test]
    fn a_key_that_its_table_lacks_is_added_to_it() {
        let found = with("class.a.f.memory", "\"2s\"").unwrap();
        assert_eq!(
            found,
            TEXT.replacen("[[class]]\n", "[[class]]\nmemory = \"2s\"\n", 1)
        );
        assert_eq!(
            with("warmup", "\"1s\"").unwrap(),
            format!("warmup = \"1s\"\n{TEXT}")
        );
        let found = with("link.delay", "\"1ms\"").unwrap();
        assert!(found.contains("[link] # rate = \"3Mbit\"\ndelay = \"1ms\"\nrate = {"));
    }

    #[test]
    fn the_parser_reads_the_changed_text_and_names_its_faults() {
        let overrides = |value: &str| Overrides {
            keys: vec![("class.a.f.memory".to_owned(), value.to_owned())],
            ..Overrides::default()
        };
        let file = Path::new("one.toml");
        let scenario = parse_with(TEXT, Some(file), &overrides("\"2s\"")).unwrap();
        assert!(scenario.resolved_toml.contains("memory = \"2s\""));
        let fault = parse_with(TEXT, Some(file), &overrides("\"2\"")).unwrap_err();
        assert!(
            fault
                .to_string()
                .starts_with("one.toml:8: class[0].memory = \"2\": "),
            "{fault}"
        );
    }

    #[test]
    fn keys_that_name_no_table_and_values_that_are_none_are_refused() {
        let message = |key: &str, value: &str| with(key, value).unwrap_err().message;
        assert_eq!(
            message("class.rset.level", "1"),
            "no table is called \"rset\"; did you mean \"rest\"?"
        );
        assert_eq!(message("nothing.x", "1"), "the scenario has no such table");
        assert_eq!(message("duration.x", "1"), "duration is not a table");
        assert_eq!(message("link", "1"), "is a table; name one of its keys");
        assert_eq!(
            message("link.rate.end", "\"hold\""),
            "is not in this table; write it there first"
        );
        for value in ["", "1\nx = 2", "\"a\nb\"", "1 2", "x"] {
            assert_eq!(message("class.rest.level", value), "must be one TOML value");
        }
    }

    fn with_text(text: &str, key: &str, value: &str) -> Result<String, String> {
        let keys = [(key.to_owned(), value.to_owned())];
        let found = changed(text, None, &keys).map(Cow::into_owned);
        found.map_err(|fault| fault.message)
    }

    #[test]
    fn a_table_is_named_by_its_whole_name() {
        let text =
            "[[class]]\nname = \"a\"\nf.x = 1\n[[class]]\nname = \"a.f\"\nrate = \"1Mbit\"\n";
        assert_eq!(
            with_text(text, "class.a.f.rate", "\"2Mbit\"").unwrap(),
            text.replace("1Mbit", "2Mbit")
        );
    }

    #[test]
    fn names_come_before_numbers() {
        let text = "[[class]]\nname = \"x\"\nlevel = 7\n[[class]]\nname = \"y\"\nlevel = 8\n[[class]]\nname = \"1\"\nlevel = 9\n";
        assert_eq!(
            with_text(text, "class.1.level", "5").unwrap(),
            text.replace("9", "5")
        );
        assert_eq!(
            with_text(text, "class.0.level", "5").unwrap(),
            text.replace("7", "5")
        );
    }

    #[test]
    fn a_name_of_several_tables_is_refused() {
        let text = "[[flow]]\nclass = \"af\"\nrate = 1\n[[flow]]\nclass = \"ef\"\n[[flow]]\nclass = \"af\"\nrate = 2\n";
        assert_eq!(
            with_text(text, "flow.af.rate", "3").unwrap_err(),
            "2 tables are called \"af\"; name one by its number: 0, 2"
        );
        assert_eq!(
            with_text(text, "flow.2.rate", "3").unwrap(),
            text.replace("rate = 2", "rate = 3")
        );
    }

    #[test]
    fn tables_with_headers_are_no_values() {
        for key in ["class", "flow", "class.rest", "class.0"] {
            let message = with_text(TEXT, key, "1").unwrap_err();
            assert_eq!(message, "is a table; name one of its keys", "{key}");
        }
        let text = "[[class]]\nname = \"a\"\nmatch = [{ dscp = \"EF\" }]\n";
        assert_eq!(
            with_text(text, "class.a.match", "[]").unwrap(),
            "[[class]]\nname = \"a\"\nmatch = []\n"
        );
        assert_eq!(
            with_text(TEXT, "link.rate.steps.0", "1").unwrap_err(),
            "steps is not a table"
        );
    }

    #[test]
    fn a_table_without_a_header_of_its_own_gets_no_line_in_another() {
        for text in [
            "[link.beam]\nrate = 1\n",
            "[link.beam.x]\nrate = 1\n[link.beam]\nshape = 2\n",
            "link.rate = 1\n[scheduler]\n",
        ] {
            assert_eq!(
                with_text(text, "link.delay", "1").unwrap_err(),
                "is not in this table; write it there first",
                "{text}"
            );
        }
        let text = "[link.beam]\nrate = 1\n[link]\n";
        assert_eq!(
            with_text(text, "link.delay", "1").unwrap(),
            "[link.beam]\nrate = 1\n[link]\ndelay = 1\n"
        );
        assert_eq!(
            with_text(text, "link.beam.delay", "1").unwrap(),
            "[link.beam]\ndelay = 1\nrate = 1\n[link]\n"
        );
        let text = "[[class]]\nname = \"a\"\n[class.x]\nrate = 1\n";
        assert_eq!(
            with_text(text, "class.a.x.delay", "1").unwrap(),
            "[[class]]\nname = \"a\"\n[class.x]\ndelay = 1\nrate = 1\n"
        );
        assert_eq!(
            with_text(text, "class.a.delay", "1").unwrap(),
            "[[class]]\ndelay = 1\nname = \"a\"\n[class.x]\nrate = 1\n"
        );
    }

    #[test]
    fn a_byte_order_mark_stays_first() {
        assert_eq!(
            with_text("\u{feff}[link]\nrate = 1\n", "seed", "1").unwrap(),
            "\u{feff}seed = 1\n[link]\nrate = 1\n"
        );
        assert_eq!(
            with_text("\u{feff}[link]\nrate = 1\n", "link.rate", "2").unwrap(),
            "\u{feff}[link]\nrate = 2\n"
        );
    }
}
