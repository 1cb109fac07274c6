// SPDX-License-Identifier: BSD-3-Clause
//! What the texts of settings and peers say.

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

/// The settings without the keys of the format, which are its first lines.
pub(super) fn configured(settings: &str) -> &str {
    const OWN: [&str; 4] = ["origin_unix_ns", "bin_ns", "sizes_bytes", "packets"];
    let mut rest = settings;
    while let Some((line, after)) = rest.split_once('\n') {
        if !OWN.iter().any(|key| line.starts_with(key)) {
            break;
        }
        rest = after;
    }
    rest
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
