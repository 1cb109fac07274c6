// SPDX-License-Identifier: BSD-3-Clause
//! Explains errors in TOML for which the parser's own message would not help: keys and tables written twice, curly
//! quotes, values without quotes.

use std::ops::Range;

use toml::de::{DeTable, Error};

use crate::fault::shorten;

/// The fault, in words for a person.
pub(crate) struct Explained {
    /// Byte of the document.
    pub offset: usize,
    /// Key at fault with its table, such as `class[1].rate`.
    pub key: String,
    /// Its value as written; empty for a table.
    pub value: String,
    /// The cure.
    pub message: String,
}

/// Explains `error`, which the parser found in `text`, if it is one of those known here.
pub(crate) fn explain(text: &str, error: &Error) -> Option<Explained> {
    let document = Document::new(text);
    let span = error.span()?;
    let at = document.line_at(span.start);
    if error.message().starts_with("duplicate key") {
        return match document.header(at) {
            Some(header) => document.table_twice(at, header),
            None => document.key_twice(at, span),
        };
    }
    document.quotes(at)
}

/// The header of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Header<'t> {
    name: &'t str,
    /// Written `[[name]]`.
    several: bool,
}

/// A line without the remark at its end.
fn without_remark(line: &str) -> &str {
    let mut open = None;
    let end = line.find(|c| {
        match (open, c) {
            (None, '"' | '\'') => open = Some(c),
            (Some(quote), c) if quote == c => open = None,
            _ => {}
        }
        open.is_none() && c == '#'
    });
    line[..end.unwrap_or(line.len())].trim()
}

/// The parts of the key that a line gives a value, without quotes, and that value.
fn assigned(line: &str) -> Option<(Vec<&str>, &str)> {
    let mut rest = line.trim_start();
    let mut path = Vec::new();
    loop {
        let (part, after) = match rest.chars().next()? {
            quote @ ('"' | '\'') => rest[1..].split_once(quote)?,
            _ => {
                let bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                rest.split_at(rest.find(|c| !bare(c)).filter(|end| *end > 0)?)
            }
        };
        path.push(part);
        rest = after.trim_start();
        if let Some(value) = rest.strip_prefix('=') {
            return Some((path, value));
        }
        rest = rest.strip_prefix('.')?.trim_start();
    }
}

struct Document<'t> {
    text: &'t str,
    /// Where each line starts.
    starts: Vec<usize>,
    lines: Vec<&'t str>,
}

impl<'t> Document<'t> {
    fn new(text: &'t str) -> Self {
        let mut start = 0;
        let (mut starts, mut lines) = (Vec::new(), Vec::new());
        for line in text.split('\n') {
            starts.push(start);
            lines.push(line);
            start += line.len() + 1;
        }
        Document {
            text,
            starts,
            lines,
        }
    }

    fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    fn header(&self, at: usize) -> Option<Header<'t>> {
        let line = without_remark(self.lines[at]);
        let (name, several) = match line.strip_prefix("[[").and_then(|l| l.strip_suffix("]]")) {
            Some(name) => (name, true),
            None => (line.strip_prefix('[')?.strip_suffix(']')?, false),
        };
        let name = name.trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        (!name.is_empty() && name.chars().all(plain)).then_some(Header { name, several })
    }

    /// The path of `key`, which is written in line `at`.
    fn path(&self, at: usize, key: &str) -> String {
        let Some((line, header)) = self.table_of(at) else {
            return key.to_string();
        };
        let table = if header.several {
            let before = (0..line).filter(|i| self.header(*i) == Some(header));
            format!("{}[{}]", header.name, before.count())
        } else {
            header.name.to_string()
        };
        format!("{table}.{key}")
    }

    /// The header above line `at`, and its line.
    fn table_of(&self, at: usize) -> Option<(usize, Header<'t>)> {
        (0..at)
            .rev()
            .find_map(|line| Some((line, self.header(line)?)))
    }

    fn table_twice(&self, at: usize, header: Header<'t>) -> Option<Explained> {
        let same = |i: &usize| self.header(*i).is_some_and(|h| h.name == header.name);
        // The nearest: under another `[[table]]` above, a table of this name is no second one.
        let Some(first) = (0..at).rev().find(same) else {
            return self.table_below_none(at, header);
        };
        let name = shorten(header.name);
        let (line, message) = if self.header(first) == Some(header) {
            let message = format!(
                "is a second table [{name}]; the first is in line {}: put all keys under one",
                first + 1
            );
            (at, message)
        } else {
            let (single, several) = if header.several {
                (first, at)
            } else {
                (at, first)
            };
            let message = format!(
                "is written [{name}] here and [[{name}]] in line {}: use one form; [[{name}]] only for what may be there several times",
                several + 1
            );
            (single, message)
        };
        Some(Explained {
            offset: self.starts[line],
            key: name,
            value: String::new(),
            message,
        })
    }

    /// Explains a table `[[a.b]]` above the first `[[a]]`, which is in line `at`.
    fn table_below_none(&self, at: usize, header: Header<'t>) -> Option<Explained> {
        let inner = |i: &usize| {
            let rest = self.header(*i)?.name.strip_prefix(header.name)?;
            rest.starts_with('.').then_some(*i)
        };
        let line = (0..at).find_map(|i| inner(&i)).filter(|_| header.several)?;
        let name = shorten(header.name);
        Some(Explained {
            offset: self.starts[line],
            key: shorten(self.header(line)?.name),
            value: String::new(),
            message: format!(
                "is above the first [[{name}]], in line {}; write it below the [[{name}]] that it belongs to",
                at + 1
            ),
        })
    }

    /// `span` is where the parser found the key again, in line `at`.
    fn key_twice(&self, at: usize, span: Range<usize>) -> Option<Explained> {
        let line = self.lines[at];
        let key = self.text.get(span.clone())?.trim();
        let before = self.text.get(self.starts[at]..span.start)?;
        let here = assigned(line);
        let (key, value, place) = if before.contains('{') {
            let mut path = here.map_or(Vec::new(), |(path, _)| path);
            path.push(key.trim_matches(['"', '\'']));
            (path.join("."), "", ", in one table".to_string())
        } else {
            let (path, value) = here.unwrap_or((vec![key], ""));
            let from = self.table_of(at).map_or(0, |(line, _)| line + 1);
            // `a.b = 1` makes a table of `a`.
            let same = |i: &usize| {
                assigned(self.lines[*i]).is_some_and(|(other, _)| other.starts_with(&path))
            };
            let first = (from..at).rev().find(same);
            let place = first.map_or(String::new(), |line| {
                format!(", first in line {}", line + 1)
            });
            (path.join("."), value, place)
        };
        Some(Explained {
            offset: self.starts[at],
            key: self.path(at, &key),
            value: without_remark(value).to_string(),
            message: format!("is given twice{place}; leave one of them out"),
        })
    }

    /// Whether the parser comes beyond line `at` when that line reads `repaired`.
    fn is_repaired(&self, at: usize, repaired: &str) -> bool {
        let end = self.starts[at] + self.lines[at].len();
        let text = [&self.text[..self.starts[at]], repaired, &self.text[end..]].concat();
        match DeTable::parse(&text) {
            Ok(_) => true,
            Err(error) => error
                .span()
                .is_some_and(|span| span.start > self.starts[at] + repaired.len()),
        }
    }

    /// Explains a line that would be valid with other quotes.
    fn quotes(&self, at: usize) -> Option<Explained> {
        let line = without_remark(self.lines[at]);
        let mut straight = String::new();
        let mut curly = None;
        for c in line.chars() {
            let plain = match c {
                '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}' => '"',
                '\u{2018}'..='\u{201b}' => '\'',
                c => c,
            };
            if plain != c {
                curly = curly.or(Some(c));
            }
            straight.push(plain);
        }
        let (key, value) = line.split_once('=').unwrap_or(("", line));
        let (key, value) = (key.trim(), value.trim());
        let message = if let Some(c) = curly {
            let cure = format!(
                "{c} is not a quotation mark of TOML; write {}",
                shorten(&straight)
            );
            self.is_repaired(at, &straight).then_some(cure)?
        } else {
            let lower = value.to_ascii_lowercase();
            let cured = if ["true", "false"].contains(&lower.as_str()) {
                lower
            } else {
                format!("\"{value}\"")
            };
            let worded = value.contains(|c: char| c.is_alphabetic() || c == '%');
            let repaired = format!("{key} = {cured}");
            (worded && !value.contains(['"', '\'', '[', '{']) && self.is_repaired(at, &repaired))
                .then(|| format!("needs quotes; write {}", shorten(&repaired)))?
        };
        Some(Explained {
            offset: self.starts[at],
            key: if key.is_empty() {
                String::new()
            } else {
                self.path(at, key)
            },
            value: value.to_string(),
            message,
        })
    }
}
