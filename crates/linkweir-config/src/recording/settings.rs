// SPDX-License-Identifier: BSD-3-Clause
//! What the texts of settings and peers say.

use std::ops::Range;

use linkweir_core::MOST_PATHS;
use toml::de::{DeTable, DeValue};

/// The value of a key at the top of a text of TOML, as it is written.
fn value_of(text: &str, key: &str) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let value = table.get_ref().get(key)?.get_ref();
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

pub(super) fn name_of(text: &str) -> Option<String> {
    value_of(text, "name")
}

pub(super) fn number_of(text: &str, key: &str) -> u64 {
    value_of(text, key)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

pub(super) fn flag_of(text: &str, key: &str) -> bool {
    value_of(text, key).as_deref() == Some("true")
}

/// The settings without the keys of the format, wherever a writer has put them.
pub(super) fn configured(settings: &str) -> String {
    const OWN: [&str; 4] = ["origin_unix_ns", "bin_ns", "sizes_bytes", "packets"];
    let settings = settings.trim_start_matches('\u{feff}');
    let Ok(table) = DeTable::parse(settings) else {
        return settings.to_string();
    };
    let found = OWN.iter().filter_map(|key| {
        let (key, value) = table.get_ref().get_key_value(*key)?;
        Some(key.span().start..value.span().end)
    });
    let mut places: Vec<Range<usize>> = found.collect();
    places.sort_by_key(|place| place.start);
    let mut rest = settings.to_string();
    for place in places.into_iter().rev() {
        rest.replace_range(place, "");
    }
    rest.trim_start_matches('\n').to_string()
}

/// The names of the paths to a peer, in order; none if one is used at a time. A gateway has [`MOST_PATHS`] at most; what a
/// stranger's file has more is left out.
pub(super) fn paths_of(peer: &str) -> Vec<String> {
    let Ok(table) = DeTable::parse(peer) else {
        return Vec::new();
    };
    let paths = table
        .get_ref()
        .get("paths")
        .and_then(|value| value.get_ref().as_array());
    let name = |path: &toml::Spanned<DeValue<'_>>| match path.get_ref() {
        DeValue::String(name) => name.to_string(),
        _ => String::new(),
    };
    paths.map_or_else(Vec::new, |paths| {
        paths.iter().take(MOST_PATHS).map(name).collect()
    })
}

/// The names of the classes, in order.
pub(super) fn classes_of(settings: &str) -> Vec<String> {
    let Ok(table) = DeTable::parse(settings) else {
        return Vec::new();
    };
    let Some(DeValue::Array(classes)) = table.get_ref().get("class").map(|value| value.get_ref())
    else {
        return Vec::new();
    };
    let name = |class: &DeValue<'_>| match class {
        DeValue::Table(table) => match table.get("name").map(|value| value.get_ref()) {
            Some(DeValue::String(name)) => name.to_string(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    classes.iter().map(|class| name(class.get_ref())).collect()
}
