// SPDX-License-Identifier: BSD-3-Clause
//! Values as they are written in TOML.

use std::fmt::Write as _;

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
    fn millionths_are_shown_as_percent() {
        assert_eq!(show_ppm(250_000), "25%");
        assert_eq!(show_ppm(1), "0.0001%");
        assert_eq!(show_ppm(999_999), "99.9999%");
        assert_eq!(show_ppm(0), "0%");
    }
}
