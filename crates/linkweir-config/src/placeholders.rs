// SPDX-License-Identifier: BSD-3-Clause
//! Texts like `<public key of the peer>` that a person was meant to replace.

use std::fmt::Write as _;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::reader::{quote, Source};
use crate::Fault;

/// Refuses a document that still has placeholders, and names each of them.
///
/// # Errors
/// It has; the fault is at the first.
pub fn refuse(source: &Source<'_>, document: &DeTable<'_>) -> Result<(), Fault> {
    let mut found = Vec::new();
    for (key, value) in document {
        walk(key.get_ref(), value, &mut found);
    }
    found.sort_by_key(|place| place.offset);
    let Some((first, others)) = found.split_first() else {
        return Ok(());
    };
    let mut message = format!(
        "is a placeholder: put the {} in its place",
        first.text.trim_matches(['<', '>'])
    );
    if !others.is_empty() {
        let keys: Vec<&str> = others.iter().map(|place| &*place.key).collect();
        let _ = write!(message, "; so are {}", keys.join(", "));
    }
    Err(source.fault(first.offset, &first.key, &quote(first.text), message))
}

struct Place<'s> {
    key: String,
    text: &'s str,
    offset: usize,
}

fn walk<'s>(key: &str, value: &'s Spanned<DeValue<'_>>, found: &mut Vec<Place<'s>>) {
    match value.get_ref() {
        DeValue::String(text) if text.starts_with('<') && text.ends_with('>') => {
            found.push(Place {
                key: key.to_string(),
                text,
                offset: value.span().start,
            });
        }
        DeValue::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                walk(&format!("{key}[{number}]"), item, found);
            }
        }
        DeValue::Table(table) => {
            for (inner, value) in table {
                walk(&format!("{key}.{}", inner.get_ref()), value, found);
            }
        }
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<String> {
        let source = Source::new(text, None);
        let document = source.parse(10_000).unwrap();
        refuse(&source, document.get_ref())
            .err()
            .map(|fault| fault.to_string())
    }

    #[test]
    fn each_placeholder_is_named() {
        let text = "[gateway]\naddress = \"<address here>\"\n[[peer]]\nallowed_ips = [\"<addresses>\"]\npublic_key = \"<key>\"\n";
        let said = "gateway.address = \"<address here>\": is a placeholder: put the address here in its place; so are \
                    peer[0].allowed_ips[0], peer[0].public_key";
        assert_eq!(of(text).as_deref(), Some(said));
        assert_eq!(of("a = \"x<y>\"\nb = \"<\"\n"), None);
    }
}
