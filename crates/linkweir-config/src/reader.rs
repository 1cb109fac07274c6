// SPDX-License-Identifier: BSD-3-Clause
//! Reading tables of a TOML document: every key is looked up once, other keys are unknown, and every value is written
//! down in full, so that the resolved form contains exactly what was read.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::fault::{shorten, Fault};
use crate::syntax;
use crate::units::{self, Decimal, Kind};

pub use crate::spelling::nearest;
pub use crate::written::{quote, show_number, show_ppm, Value, Written};

/// Where the files that a document names are, if not in the file system.
pub trait Files: std::fmt::Debug + Send + Sync {
    /// The content of the file of this path, of at most `max_bytes`.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, String>;
}

/// A document and where it came from.
pub struct Source<'a> {
    text: &'a str,
    file: Option<&'a Path>,
    files: Option<&'a dyn Files>,
    line_starts: Vec<usize>,
}

impl<'a> Source<'a> {
    /// A document; without a file its faults carry no line.
    pub fn new(text: &'a str, file: Option<&'a Path>) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(
            text.bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(i, _)| i + 1),
        );
        Source {
            text,
            file,
            files: None,
            line_starts,
        }
    }

    /// The same, with the files that it names in another place than the file system.
    #[must_use]
    pub fn with_files(self, files: Option<&'a dyn Files>) -> Self {
        Source { files, ..self }
    }

    /// Where the files that it names are, if not in the file system.
    pub fn files(&self) -> Option<&'a dyn Files> {
        self.files
    }

    /// Where it came from.
    pub fn file(&self) -> Option<&'a Path> {
        self.file
    }

    fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// Its tables.
    ///
    /// # Errors
    /// When it is longer than `max_bytes` or no TOML.
    pub fn parse(&self, max_bytes: u64) -> Result<Spanned<DeTable<'a>>, Fault> {
        if self.text.len() as u64 > max_bytes {
            return Err(self.fault_whole(format!(
                "is too large; at most {} MiB are read",
                max_bytes >> 20
            )));
        }
        DeTable::parse(self.text).map_err(|error| {
            if let Some(known) = syntax::explain(self.text, &error) {
                let (key, value) = (shorten(&known.key), shorten(&known.value));
                return self.fault(known.offset, &key, &value, known.message);
            }
            let offset = error.span().map_or(0, |span| span.start);
            let message = format!("is not TOML: {}", error.message().replace('\n', "; "));
            self.fault(offset, "", "", message)
        })
    }

    /// A fault of the document as a whole.
    pub fn fault_whole(&self, message: impl Into<String>) -> Fault {
        Fault {
            line: None,
            ..self.fault(0, "", "", message)
        }
    }

    /// A fault at a byte of the document.
    pub fn fault(
        &self,
        offset: usize,
        key: &str,
        value: &str,
        message: impl Into<String>,
    ) -> Fault {
        Fault {
            file: self.file.map(Path::to_path_buf),
            line: self.file.map(|_| self.line(offset)),
            key: key.to_string(),
            value: value.to_string(),
            message: message.into(),
        }
    }
}

/// A value of the document, with its place.
#[derive(Clone)]
pub struct Entry<'s, 'i> {
    source: &'s Source<'i>,
    value: &'s DeValue<'i>,
    start: usize,
    end: usize,
    /// The key, shared by the members of a list, which differ in their indices.
    key: Rc<str>,
    indices: [Option<usize>; 2],
}

/// Inclusive bounds of a whole number.
pub type Bounds = (u64, u64);

impl<'s, 'i> Entry<'s, 'i> {
    fn key(&self) -> String {
        let mut key = self.key.to_string();
        for index in self.indices.iter().flatten() {
            let _ = write!(key, "[{index}]");
        }
        key
    }

    fn member(
        &self,
        value: &'s Spanned<DeValue<'i>>,
        indices: [Option<usize>; 2],
    ) -> Entry<'s, 'i> {
        Entry {
            source: self.source,
            value: value.get_ref(),
            start: value.span().start,
            end: value.span().end,
            key: Rc::clone(&self.key),
            indices,
        }
    }

    /// The document.
    pub fn source(&self) -> &'s Source<'i> {
        self.source
    }

    /// A fault of this value.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        let shown = self
            .source
            .text
            .get(self.start..self.end)
            .unwrap_or_default();
        self.source
            .fault(self.start, &self.key(), &shorten(shown), message)
    }

    /// The table it is, if it is one.
    pub fn table(&self) -> Option<Section<'s, 'i>> {
        let table = self.value.as_table()?;
        Some(Section::new(self.source, table, self.key(), self.start))
    }

    /// A string.
    pub fn text(&self) -> Result<&'s str, Fault> {
        self.value
            .as_str()
            .ok_or_else(|| self.fault(format!("must be a string, not {}", kind_of(self.value))))
    }

    /// A name, which is printed in lines and tables: text that is not empty and has no control characters.
    pub fn name(&self) -> Result<&'s str, Fault> {
        let name = self.text()?;
        if name.is_empty() {
            return Err(self.fault("must not be empty"));
        }
        if name.contains(char::is_control) {
            return Err(self.fault("must be one line without control characters"));
        }
        Ok(name)
    }

    /// A truth value.
    pub fn flag(&self) -> Result<bool, Fault> {
        self.value.as_bool().ok_or_else(|| {
            self.fault(format!(
                "must be true or false, not {}",
                kind_of(self.value)
            ))
        })
    }

    /// A bare whole number, as for counts and seeds.
    pub fn number(&self, (min, max): Bounds) -> Result<u64, Fault> {
        let range = || format!("must be a whole number {min} .. {max}");
        let integer = self.value.as_integer().ok_or_else(|| match self.value {
            DeValue::Float(_) => self.fault(format!("{}, without a point", range())),
            other => self.fault(format!("{}, not {}", range(), kind_of(other))),
        })?;
        u64::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .filter(|n| (min..=max).contains(n))
            .ok_or_else(|| self.fault(range()))
    }

    /// A bare number that may have a fraction.
    pub fn real(&self, min: f64, max: f64) -> Result<f64, Fault> {
        let range = format!("must be a number {min} .. {max}");
        let value = self
            .bare()
            .ok_or_else(|| self.fault(format!("{range}, not {}", kind_of(self.value))))?;
        let value = value
            .map_err(|what| self.fault(format!("{what}; {range}")))?
            .real();
        if (min..=max).contains(&value) {
            Ok(value)
        } else {
            Err(self.fault(range))
        }
    }

    /// A TOML number as an exact decimal; `None` when this is no number.
    fn bare(&self) -> Option<Result<Decimal, &'static str>> {
        match self.value {
            DeValue::Float(f) => Some(Decimal::parse(f.as_str())),
            DeValue::Integer(i) => Some(if i.radix() == 10 {
                Decimal::parse(i.as_str())
            } else {
                u64::from_str_radix(i.as_str(), i.radix())
                    .map_err(|_| "is not a number")
                    .and_then(|n| Decimal::parse(&n.to_string()))
            }),
            _ => None,
        }
    }

    /// A quantity with its unit (a fraction may be bare).
    fn decimal(&self, kind: Kind) -> Result<Decimal, Fault> {
        if let Some(bare) = self.bare() {
            return match kind {
                Kind::Fraction => {
                    bare.map_err(|what| self.fault(format!("{what}; write {}", kind.example())))
                }
                _ => Err(self.fault(units::needs_unit(kind))),
            };
        }
        let text = self.value.as_str().ok_or_else(|| {
            self.fault(format!(
                "must be {} like {}, not {}",
                kind.noun(),
                kind.example(),
                kind_of(self.value)
            ))
        })?;
        units::parse(text, kind).map_err(|what| self.fault(what))
    }

    /// A quantity in whole base units: rates, times and bits are rounded to the nearest, sizes and packets must be whole.
    pub fn whole(&self, kind: Kind, (min, max): Bounds) -> Result<u64, Fault> {
        let range = || {
            format!(
                "must be {} .. {}",
                units::show_whole(min, kind),
                units::show_whole(max, kind)
            )
        };
        match self.decimal(kind)?.whole() {
            Some((0, false)) => Err(self.too_small(kind)),
            Some((_, false)) if matches!(kind, Kind::Size | Kind::Packets) => {
                Err(self.fault(format!("must be whole; {}", range())))
            }
            Some((value, _)) if (min..=max).contains(&value) => Ok(value),
            _ => Err(self.fault(range())),
        }
    }

    /// A quantity in whole base units, -`most` .. `most`.
    pub fn signed(&self, kind: Kind, most: u64) -> Result<i64, Fault> {
        let shown = units::show_whole(most, kind);
        let decimal = self.decimal(kind)?;
        decimal
            .magnitude()
            .whole()
            .filter(|(value, exact)| *exact && *value <= most)
            .and_then(|(value, _)| i64::try_from(value).ok())
            .map(|value| if decimal.is_negative() { -value } else { value })
            .ok_or_else(|| self.fault(format!("must be whole and -{shown} .. {shown}")))
    }

    fn too_small(&self, kind: Kind) -> Fault {
        self.fault(format!(
            "is less than half of {one}, the smallest step, and would count as 0; write {zero}, or {one} or more",
            one = units::show_whole(1, kind),
            zero = units::show_whole(0, kind),
        ))
    }

    /// A quantity in base units. Times count in whole ns.
    pub fn quantity(&self, kind: Kind, min: f64, max: f64) -> Result<f64, Fault> {
        let decimal = self.decimal(kind)?;
        if kind == Kind::Seconds && decimal.shifted(9).whole() == Some((0, false)) {
            return Err(self.too_small(Kind::Time));
        }
        let value = decimal.real();
        if (min..=max).contains(&value) {
            Ok(value)
        } else {
            Err(self.fault(format!(
                "must be {} .. {}",
                units::show_real(min, kind),
                units::show_real(max, kind)
            )))
        }
    }

    /// A fraction in millionths, rounded to the nearest.
    pub fn ppm(&self, (min, max): Bounds) -> Result<u64, Fault> {
        let range = || format!("must be {} .. {}", show_ppm(min), show_ppm(max));
        let found = self.decimal(Kind::Fraction)?.shifted(6).whole();
        if found == Some((0, false)) {
            let cure = "is less than half of 0.0001%, the smallest step, and would count as 0; write 0%, or 0.0001% or more";
            return Err(self.fault(cure.to_string()));
        }
        found
            .map(|(value, _)| value)
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| self.fault(range()))
    }

    /// One of some words.
    pub fn choice(&self, words: &[&str]) -> Result<usize, Fault> {
        self.choice_of(words, words.len())
    }

    /// One of some words, of which messages list only the first `listed`.
    pub fn choice_of(&self, words: &[&str], listed: usize) -> Result<usize, Fault> {
        let all = words[..listed].join(", ");
        let text = self.value.as_str().ok_or_else(|| {
            self.fault(format!(
                "must be one of {all}, in quotes, not {}",
                kind_of(self.value)
            ))
        })?;
        words.iter().position(|w| *w == text).ok_or_else(|| {
            let cure = nearest(text, words)
                .map_or_else(String::new, |w| format!("; did you mean \"{w}\"?"));
            self.fault(format!("must be one of {all}{cure}"))
        })
    }

    /// Whether it is a whole number.
    pub fn is_whole(&self) -> bool {
        self.value.as_integer().is_some()
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        self.value.as_array().is_some()
    }

    /// The members of a list of 1 .. `max` values.
    pub fn list(&self, max: usize) -> Result<Vec<Entry<'s, 'i>>, Fault> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.fault(format!("must be a list, not {}", kind_of(self.value))))?;
        if items.is_empty() || items.len() > max {
            return Err(self.fault(format!(
                "must hold 1 .. {max} values; it holds {}",
                items.len()
            )));
        }
        Ok(items
            .iter()
            .enumerate()
            .map(|(i, item)| self.member(item, [Some(i), None]))
            .collect())
    }

    /// Whether it is a list without members.
    #[must_use]
    pub fn is_empty_list(&self) -> bool {
        self.value.as_array().is_some_and(|items| items.is_empty())
    }

    /// The members of a list of pairs, such as `[["0s", "20Mbit"], ...]`.
    pub fn pairs(&self, what: &str, max: usize) -> Result<Vec<[Entry<'s, 'i>; 2]>, Fault> {
        self.list(max)?
            .into_iter()
            .map(|row| match row.value.as_array().map(|a| &a[..]) {
                Some([a, b]) => {
                    let i = row.indices[0];
                    Ok([row.member(a, [i, Some(0)]), row.member(b, [i, Some(1)])])
                }
                _ => Err(row.fault(format!("must be a pair {what}"))),
            })
            .collect()
    }
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A table being read.
pub struct Section<'s, 'i> {
    source: &'s Source<'i>,
    table: &'s DeTable<'i>,
    path: String,
    start: usize,
    asked: Vec<&'static str>,
    written: Written,
}

impl<'s, 'i> Section<'s, 'i> {
    /// A table at `start` of the document; `path` is its key.
    pub fn new(source: &'s Source<'i>, table: &'s DeTable<'i>, path: String, start: usize) -> Self {
        Section {
            source,
            table,
            path,
            start,
            asked: Vec::new(),
            written: Written::default(),
        }
    }

    /// The document.
    pub fn source(&self) -> &'s Source<'i> {
        self.source
    }

    /// A fault of this table, at its header.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        self.source.fault(self.start, &self.path, "", message)
    }

    /// A fault of one of its keys: at the key's value, or at the header when the key is absent.
    pub fn fault_at(&self, key: &str, message: impl Into<String>) -> Fault {
        match self.entry(key) {
            Some(entry) => entry.fault(message),
            None => self
                .source
                .fault(self.start, &self.key_of(key), "", message),
        }
    }

    fn key_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_string()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// How a table in this one is headed: without the numbers of `[[tables]]`.
    fn header_of(&self, key: &str) -> String {
        let path = self.key_of(key);
        let parts = path.split('.');
        let names: Vec<&str> = parts.filter_map(|part| part.split('[').next()).collect();
        names.join(".")
    }

    fn entry(&self, key: &str) -> Option<Entry<'s, 'i>> {
        let value = self.table.get(key)?;
        Some(Entry {
            source: self.source,
            value: value.get_ref(),
            start: value.span().start,
            end: value.span().end,
            key: self.key_of(key).into(),
            indices: [None, None],
        })
    }

    /// The value of a key, if it is given; asking makes the key known.
    pub fn find(&mut self, key: &'static str) -> Option<Entry<'s, 'i>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.entry(key)
    }

    /// The keys that are given, in their order. Asking does not make them known.
    pub fn names(&self) -> Vec<&'s str> {
        let table: &'s DeTable<'i> = self.table;
        let mut keys: Vec<_> = table.keys().collect();
        keys.sort_by_key(|key| key.span().start);
        keys.into_iter().map(|key| key.get_ref().as_ref()).collect()
    }

    /// The value of a key that belongs elsewhere, if it is given: for a refusal with a cure. Asking does not make it known.
    pub fn stray(&self, key: &str) -> Option<Entry<'s, 'i>> {
        self.entry(key)
    }

    /// Keys that will be asked for later: none of them is another key misspelt, however near their names are.
    pub fn expect(&mut self, keys: &[&'static str]) {
        self.asked.extend(keys);
    }

    /// The value of a key that must be given.
    pub fn need(&mut self, key: &'static str, example: &str) -> Result<Entry<'s, 'i>, Fault> {
        self.find(key)
            .ok_or_else(|| self.missing(key, format!("is missing; write {key} = {example}")))
    }

    /// The fault of a key that must be given and is not: `message`, unless one of nearly that name is given.
    pub fn missing(&self, key: &'static str, message: impl Into<String>) -> Fault {
        self.misspelt(key, key).unwrap_or_else(|| {
            self.source
                .fault(self.start, &self.key_of(key), "", message)
        })
    }

    /// The fault of an unknown key that is nearly called `key`; `shown` is how `key` is written.
    fn misspelt(&self, key: &'static str, shown: &str) -> Option<Fault> {
        let unknown =
            |written: &str| !self.asked.contains(&written) && nearest(written, &[key]).is_some();
        let (written, value) = self.table.iter().find(|(k, _)| unknown(k.get_ref()))?;
        Some(self.unknown(written, value, &format!("did you mean {shown}?")))
    }

    /// Refuses keys as other programs write them: `names` lists theirs, in small letters and without underscores, with the
    /// key here and how it is written.
    ///
    /// # Errors
    /// The first such key, with its name here.
    pub fn renamed(&self, names: &[(&str, &str, &str)]) -> Result<(), Fault> {
        for (written, value) in self.table {
            let folded = written.get_ref().to_lowercase().replace('_', "");
            let known = |(theirs, key, _): &&(&str, &str, &str)| {
                folded == *theirs && written.get_ref() != *key
            };
            if let Some((_, _, shown)) = names.iter().find(known) {
                return Err(self.unknown(written, value, &format!("did you mean {shown}?")));
            }
        }
        Ok(())
    }

    fn unknown(
        &self,
        key: &Spanned<Cow<'i, str>>,
        value: &Spanned<DeValue<'i>>,
        cure: &str,
    ) -> Fault {
        let holds_tables =
            |list: &[Spanned<DeValue<'_>>]| list.iter().all(|v| v.get_ref().is_table());
        let shown = match value.get_ref() {
            DeValue::Table(_) => "",
            DeValue::Array(list) if holds_tables(list) => "",
            _ => self.source.text.get(value.span()).unwrap_or_default(),
        };
        self.source.fault(
            key.span().start,
            &shorten(&self.key_of(key.get_ref())),
            &shorten(shown),
            format!("unknown key; {cure}"),
        )
    }

    /// A table that must be given.
    pub fn need_table(
        &mut self,
        key: &'static str,
        example: &str,
    ) -> Result<Section<'s, 'i>, Fault> {
        let header = self.header_of(key);
        let entry = self.find(key).ok_or_else(|| {
            self.misspelt(key, &format!("[{header}]"))
                .unwrap_or_else(|| {
                    let message =
                        format!("is missing; write a table [{header}], such as one with {example}");
                    let place = match self.path.is_empty() {
                        true => format!("[{key}]"),
                        false => self.key_of(key),
                    };
                    self.source.fault(self.start, &place, "", message)
                })
        })?;
        entry
            .table()
            .ok_or_else(|| entry.fault(format!("must be a table [{header}]")))
    }

    /// The tables `[[key]]`, of which there must be one at least.
    ///
    /// # Errors
    /// When there is none, or this is something else.
    pub fn tables(&mut self, key: &'static str, max: usize) -> Result<Vec<Self>, Fault> {
        let header = self.header_of(key);
        let entry = self.find(key).ok_or_else(|| {
            self.misspelt(key, &format!("[[{header}]]"))
                .unwrap_or_else(|| {
                    let message = format!("is missing; write at least one table [[{header}]]");
                    self.source
                        .fault(self.start, &self.key_of(key), "", message)
                })
        })?;
        if entry.table().is_some() {
            let message = format!(
                "is one table [{header}], and there may be several; write [[{header}]] with two brackets"
            );
            return Err(self
                .source
                .fault(entry.start, &self.key_of(key), "", message));
        }
        entry
            .list(max)?
            .into_iter()
            .map(|item| {
                item.table()
                    .ok_or_else(|| item.fault(format!("must be a table [[{header}]]")))
            })
            .collect()
    }

    /// Writes a key of the resolved form.
    pub fn write(&mut self, key: &str, value: impl Into<Value>) {
        self.written.write(key, value);
    }

    /// Writes a remark into the resolved form.
    pub fn remark(&mut self, text: &str) {
        self.written.remark(text);
    }

    /// A string with a default.
    pub fn text(&mut self, key: &'static str, default: &str) -> Result<String, Fault> {
        let value = self.find(key).map_or(Ok(default), |e| e.text())?;
        self.write(key, value);
        Ok(value.to_string())
    }

    /// A truth value with a default.
    pub fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, Fault> {
        let value = self.find(key).map_or(Ok(default), |e| e.flag())?;
        self.write(key, value);
        Ok(value)
    }

    /// A bare whole number with a default.
    pub fn number(
        &mut self,
        key: &'static str,
        bounds: Bounds,
        default: u64,
    ) -> Result<u64, Fault> {
        let value = self.find(key).map_or(Ok(default), |e| e.number(bounds))?;
        self.write(key, Value::Number(value));
        Ok(value)
    }

    /// A bare number with a default.
    pub fn real(
        &mut self,
        key: &'static str,
        min: f64,
        max: f64,
        default: f64,
    ) -> Result<f64, Fault> {
        let value = self.find(key).map_or(Ok(default), |e| e.real(min, max))?;
        self.write(key, Value::Real(value));
        Ok(value)
    }

    /// A quantity in whole base units with a default.
    pub fn whole(
        &mut self,
        key: &'static str,
        kind: Kind,
        bounds: Bounds,
        default: u64,
    ) -> Result<u64, Fault> {
        let value = self
            .find(key)
            .map_or(Ok(default), |e| e.whole(kind, bounds))?;
        self.write(key, Value::Whole(value, kind));
        Ok(value)
    }

    /// A quantity below 2^32 in base units.
    pub fn small(
        &mut self,
        key: &'static str,
        kind: Kind,
        bounds: (u32, u32),
        default: u32,
    ) -> Result<u32, Fault> {
        let value = self.whole(
            key,
            kind,
            (bounds.0.into(), bounds.1.into()),
            default.into(),
        )?;
        Ok(u32::try_from(value).unwrap_or(bounds.1))
    }

    /// One of some words with a default, as its index.
    pub fn choice(
        &mut self,
        key: &'static str,
        words: &[&str],
        default: usize,
    ) -> Result<usize, Fault> {
        let value = self.find(key).map_or(Ok(default), |e| e.choice(words))?;
        self.write(key, words[value]);
        Ok(value)
    }

    /// Refuses keys that were not asked for and returns the resolved form.
    pub fn finish(self) -> Result<Written, Fault> {
        self.known()?;
        Ok(self.written)
    }

    /// As [`Section::finish`], for a section that is still needed.
    pub fn known(&self) -> Result<&Written, Fault> {
        for (key, value) in self.table {
            if !self.asked.contains(&key.get_ref().as_ref()) {
                let cure = match nearest(key.get_ref(), &self.asked) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("known here: {}", self.asked.join(", ")),
                };
                return Err(self.unknown(key, value, &cure));
            }
        }
        Ok(&self.written)
    }
}
