// SPDX-License-Identifier: BSD-3-Clause
//! Numbers in sentences.

/// A number with at most six significant digits, without zeros at its end; very large and small ones with a power of ten.
pub(crate) fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let written = format!("{value:.5e}");
    let (digits, power) = written.split_once('e').unwrap_or((&written, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&power) {
        return trimmed(&format!(
            "{value:.*}",
            usize::try_from(5 - power).unwrap_or(0)
        ));
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), power.abs())
}

/// A whole number with commas between thousands.
pub(crate) fn thousands(value: usize) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What C's `%g` writes.
    #[test]
    fn numbers_are_as_short_as_people_write_them() {
        let cases = [
            (0.1, "0.1"),
            (10.0, "10"),
            (0.05, "0.05"),
            (123_456.7, "123457"),
            (1e6, "1e+06"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (100_000.0, "100000"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(999), "999");
    }
}
