// SPDX-License-Identifier: BSD-3-Clause
//! Attenuation of a beam's terminals from a file: CSV with a header, a column `t_s` of times in seconds that rise from 0,
//! and one column of dB for all terminals or one for each in the order of the classes. A value holds until the
//! next line, the last one for ever; a line `# period_s=...`, or `# end=...` other than hold, is refused. Other lines that start with
//! `#` and empty ones are skipped.

use std::path::Path;

use linkweir_config::fault::shorten;
use linkweir_config::table::{data_lines, Dialect};
use linkweir_config::trace::{Reader, Series};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::satellite::rain::{Attenuation, MOST_DB};

use super::limits;

/// Reads the content of a file, and what it was taken for; `path` is for messages only.
pub(super) fn parse(
    bytes: &[u8],
    path: &Path,
    decimal: Option<char>,
) -> Result<(Attenuation, Series), Fault> {
    let reader = Reader {
        path: path.to_path_buf(),
    };
    let text = reader.text(bytes)?;
    let text = text.as_ref();
    reader.holds(text)?;
    let dialect = reader.dialect(text, decimal)?;
    let mut lines = data_lines(text);
    let Some((header_line, header)) = lines.next() else {
        return Err(reader.whole_fault("is empty; it must hold a header t_s,attenuation_db"));
    };
    let names = dialect.fields(header);
    if names[0] != "t_s" || names.len() < 2 {
        let message = "must be a header: t_s,attenuation_db, or t_s and one name per class";
        return Err(reader.fault(header_line, message));
    }
    if names.len() > limits::CLASSES + 1 {
        let message = format!("has more than {} columns", limits::CLASSES + 1);
        return Err(reader.fault(header_line, message));
    }
    let mut times_ns: Vec<u64> = Vec::new();
    let mut values_db = Vec::new();
    let mut fields = Vec::new();
    for (line, text) in lines {
        dialect.split(text, &mut fields);
        let count = fields.len();
        if count != names.len() {
            let message = format!("has {count} fields where the header has {}", names.len());
            return Err(reader.fault(line, message));
        }
        for (column, (name, field)) in names.iter().zip(fields.iter().copied()).enumerate() {
            if column > 0 {
                values_db.push(attenuation_db(&reader, line, name, field, &dialect)? as f32);
                continue;
            }
            let time_ns = reader.time(line, name, field, &dialect)?;
            match times_ns.last() {
                None if time_ns != 0 => {
                    return Err(reader.field_fault(line, name, field, "the first time must be 0"));
                }
                Some(before) if time_ns <= *before => {
                    let before = units::show_whole(*before, Kind::Time);
                    let message = format!("must be later than the line before, {before}");
                    return Err(reader.field_fault(line, name, field, message));
                }
                _ => times_ns.push(time_ns),
            }
        }
    }
    let of_row = |row: &[f32]| row.iter().map(|db| f64::from(*db)).sum::<f64>() / row.len() as f64;
    let rows_db: Vec<f64> = values_db.chunks(names.len() - 1).map(of_row).collect();
    let columns: Vec<String> = names[1..].iter().map(|name| shorten(name)).collect();
    let series = Series {
        notation: "attenuations".to_string(),
        columns: format!(
            "t from t_s in s, attenuation from {} in dB",
            columns.join(", ")
        ),
        start: "0".to_string(),
        end: "hold".to_string(),
        mean: shown_db(mean_db(&times_ns, &rows_db)),
        ..Series::at(&times_ns)
    };
    let attenuation = Attenuation::new(times_ns, values_db)
        .ok_or_else(|| reader.whole_fault("has a header but no values"))?;
    Ok((attenuation, series))
}

/// Mean over time, the last value for as long as the one before.
fn mean_db(times_ns: &[u64], values_db: &[f64]) -> f64 {
    let spans = times_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64);
    let mut spans: Vec<f64> = spans.collect();
    spans.push(spans.last().copied().unwrap_or(1.0));
    let area: f64 = spans
        .iter()
        .zip(values_db)
        .map(|(span, db)| span * db)
        .sum();
    area / spans.iter().sum::<f64>()
}

/// A level with two decimals.
pub(super) fn shown_db(db: f64) -> String {
    // Adding 0 turns -0 into 0.
    format!("{} dB", (db * 100.0).round() / 100.0 + 0.0)
}

fn attenuation_db(
    reader: &Reader,
    line: usize,
    name: &str,
    field: &str,
    dialect: &Dialect,
) -> Result<f64, Fault> {
    let range = format!("must be dB, 0 .. {MOST_DB}; a fade is positive");
    let value = dialect
        .number(field)
        .map_err(|what| reader.field_fault(line, name, field, format!("{what}; {range}")))?
        .real();
    if (0.0..=MOST_DB).contains(&value) {
        Ok(value)
    } else {
        Err(reader.field_fault(line, name, field, range))
    }
}
