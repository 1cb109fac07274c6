// SPDX-License-Identifier: BSD-3-Clause
//! Panels as the JSON that `report.js` draws: numbers with as many digits as a chart can show.

use std::fmt::Write as _;

use crate::panel::{Line, Panel};

/// Significant digits of values, more than a chart can show.
const DIGITS: usize = 4;
const TIME_DIGITS: usize = 7;

/// A panel.
#[must_use]
pub fn written(panel: &Panel) -> String {
    let range = match panel.y_range {
        Some((low, high)) => format!("[{low},{high}]"),
        None => "null".to_owned(),
    };
    let lines: Vec<String> = panel.lines.iter().map(line).collect();
    format!(
        "{{\"name\":{},\"title\":{},\"note\":{},\"xLabel\":{},\"yLabel\":{},\"overTime\":{},\"steps\":{},\"logX\":{},\
         \"logY\":{},\"yRange\":{range},\"fromZero\":{},\"x\":[{}],\"lines\":[{}]}}",
        quoted(&panel.name),
        quoted(&panel.title),
        quoted(&panel.note),
        quoted(&panel.x_label),
        quoted(&panel.y_label),
        panel.over_time,
        panel.steps,
        panel.log_x,
        panel.log_y,
        panel.from_zero,
        numbers(&panel.x, TIME_DIGITS).join(","),
        lines.join(",")
    )
}

fn line(line: &Line) -> String {
    let of = line.of.map_or("null".to_owned(), |class| class.to_string());
    let turn = line.turn.map_or("null".to_owned(), |(place, count)| {
        format!("[{place},{count}]")
    });
    let values = numbers(&line.y, DIGITS);
    // The value alone of a line that never changes.
    let y = match &values[..] {
        [first, others @ ..] if others.iter().all(|value| value == first) => first.clone(),
        all => format!("[{}]", all.join(",")),
    };
    format!(
        "{{\"label\":{},\"of\":{of},\"look\":\"{}\",\"off\":{},\"turn\":{turn},\"y\":{y}}}",
        quoted(&line.label),
        line.look.name(),
        line.off
    )
}

/// Numbers with few digits; null where there is no value.
fn numbers(values: &[f64], digits: usize) -> Vec<String> {
    let short = |value: &f64| {
        if !value.is_finite() {
            return "null".to_owned();
        }
        let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(*value);
        if rounded == 0.0 {
            return "0".to_owned();
        }
        match rounded.abs() {
            1e-3..1e15 => rounded.to_string(),
            _ => format!("{rounded:e}"),
        }
    };
    values.iter().map(short).collect()
}

/// A text as JSON, which may stand in a script element: a class may be called `</script>`.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\u{0}'..='\u{1f}' | '<' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::Look;

    #[test]
    fn values_have_four_digits_and_times_seven() {
        let values = [1.234_56, f64::NAN, 0.0, 123_456.0, 1e-9, 1e21, -0.0];
        assert_eq!(
            numbers(&values, 4),
            ["1.235", "null", "0", "123500", "1e-9", "1e21", "0"]
        );
        assert_eq!(numbers(&[1_234.567_89], 7), ["1234.568"]);
    }

    #[test]
    fn a_line_that_never_changes_is_one_value_and_names_are_safe() {
        let flat = Line::new("a\"</script>\n", vec![2.0, 2.0], Some(1), Look::Area);
        let text = "{\"label\":\"a\\\"\\u003c/script>\\u000a\",\"of\":1,\"look\":\"area\",\"off\":false,\"turn\":null,\"y\":2}";
        assert_eq!(line(&flat), text);
    }
}
