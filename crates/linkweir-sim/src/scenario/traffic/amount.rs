// SPDX-License-Identifier: BSD-3-Clause
//! Random amounts of a flow's keys: a quantity, or a table with a distribution of quantities.

use std::path::Path;
use std::sync::Arc;

use linkweir_config::keys::{Computed, Form, Key, Required};
use linkweir_config::reader::{show_number, Entry, Section, Value, Written};
use linkweir_config::table::data_lines;
use linkweir_config::trace::{self, Reader};
use linkweir_config::units::{self, Kind};
use linkweir_config::Fault;

use crate::experiment::{Amount, Distribution};

use super::super::inputs::{self, Input, Told};
use super::super::keys::inner::{
    CDF, DEVIATION, DISTRIBUTION, RANDOM_DECIMAL, RANDOM_FILE, RANDOM_MAX, RANDOM_MEAN, SHAPE,
};
use super::super::keys::shapes::{Drawn, Measure};
use super::super::limits;

impl Measure {
    fn read(self, entry: &Entry<'_, '_>) -> Result<f64, Fault> {
        match self.kind {
            Some(kind) => entry.quantity(kind, self.least, self.most),
            None => entry.real(self.least, self.most),
        }
    }

    fn written(self, value: f64) -> Value {
        match self.kind {
            Some(kind) => Value::Amount(value, kind),
            None => Value::Real(value),
        }
    }

    /// The column of amounts of a file, and how many base units one of its numbers is.
    fn column(self) -> (&'static str, f64) {
        match self.kind {
            Some(Kind::Size) => ("bytes", 1.0),
            Some(_) => ("s", 1e9),
            None => ("count", 1.0),
        }
    }

    fn amount(self, distribution: Distribution) -> Amount {
        Amount {
            distribution,
            least: self.least,
            most: self.most,
        }
    }
}

/// Keys of a distribution that is not measured.
const OF_A_MODEL: [&str; 5] = [
    RANDOM_MEAN.name,
    DISTRIBUTION.name,
    SHAPE.name,
    DEVIATION.name,
    RANDOM_MAX.name,
];

/// Reads a key that must be given, and writes its resolved form.
pub(super) fn need(
    section: &mut Section<'_, '_>,
    key: &Key<Drawn, Required>,
    files: &mut Files<'_>,
) -> Result<Amount, Fault> {
    let entry = section.entry_of(key)?;
    read(section, key.name, &entry, key.form.of, files)
}

/// Reads a key with a default, in base units.
pub(super) fn find(
    section: &mut Section<'_, '_>,
    key: &Key<Drawn, Computed>,
    default: f64,
    files: &mut Files<'_>,
) -> Result<Amount, Fault> {
    let measure = key.form.of;
    if let Some(entry) = section.find(key.name) {
        return read(section, key.name, &entry, measure, files);
    }
    section.write(key.name, measure.written(default));
    Ok(measure.amount(Distribution::Fixed(default)))
}

/// Where files lie that flows name, and those that were read.
pub(super) struct Files<'f> {
    pub(super) folder: &'f Path,
    pub(super) inputs: &'f mut Vec<Input>,
    pub(super) told: &'f mut Told,
}

fn read(
    section: &mut Section<'_, '_>,
    key: &'static str,
    entry: &Entry<'_, '_>,
    measure: Measure,
    files: &mut Files<'_>,
) -> Result<Amount, Fault> {
    let Some(mut table) = entry.table() else {
        let value = measure.read(entry)?;
        section.write(key, measure.written(value));
        return Ok(measure.amount(Distribution::Fixed(value)));
    };
    let mut foreign = Vec::new();
    let mark = table.find(RANDOM_DECIMAL.name);
    let (amount, written) = if let Some(points) = table.find(CDF.name) {
        let message = "not with cdf, which gives the whole distribution; leave one out";
        foreign.extend(
            [RANDOM_FILE.name]
                .into_iter()
                .chain(OF_A_MODEL)
                .map(|key| (key, message)),
        );
        of_file(&mark)?;
        listed(&points, measure)?
    } else if let Some(file) = table.find(RANDOM_FILE.name) {
        let message = "not with file, which gives the whole distribution; leave one out";
        foreign.extend(OF_A_MODEL.map(|key| (key, message)));
        let (path, bytes) =
            inputs::read(&file, "amounts and their cumulative parts", files.folder)?;
        let decimal = trace::decimal(&mut table)?;
        let points = points_of(&bytes, &path, measure, decimal)?;
        let amount = measure.amount(Distribution::Empirical(points));
        files.told.read(reading(&amount, measure, &path));
        let name = inputs::keep(path, bytes, files.inputs);
        let mut written = Written::default();
        written.write(RANDOM_FILE.name, name);
        if let Some(entry) = mark {
            written.write(RANDOM_DECIMAL.name, entry.text()?);
        }
        (amount, Value::Inline(written))
    } else {
        let (amount, written) = drawn(&mut table, measure)?;
        of_file(&mark)?;
        if !matches!(amount.distribution, Distribution::Pareto { .. }) {
            foreign.push((
                SHAPE.name,
                "is a key of distribution = \"pareto\"; add that or leave this out",
            ));
        }
        if !matches!(amount.distribution, Distribution::Lognormal { .. }) {
            foreign.push((
                DEVIATION.name,
                "is a key of distribution = \"lognormal\"; add that or leave this out",
            ));
        }
        (amount, written)
    };
    finish(table, &foreign)?;
    section.write(key, written);
    Ok(amount)
}

/// Refuses the mark of decimals where no file has them.
fn of_file(decimal: &Option<Entry<'_, '_>>) -> Result<(), Fault> {
    match decimal {
        Some(entry) => Err(entry.fault("is only for a file; leave it out")),
        None => Ok(()),
    }
}

/// Refuses keys that were not asked for. Of those in `foreign` it says why they do not belong there.
pub(super) fn finish(
    mut table: Section<'_, '_>,
    foreign: &[(&'static str, &str)],
) -> Result<(), Fault> {
    let Some(unknown) = table.known().err() else {
        return Ok(());
    };
    let known = foreign
        .iter()
        .find_map(|(key, message)| Some(table.find(key)?.fault(*message)));
    Err(known.unwrap_or(unknown))
}

/// A distribution with a mean.
fn drawn(table: &mut Section<'_, '_>, measure: Measure) -> Result<(Amount, Value), Fault> {
    let Some(entry) = table.find(RANDOM_MEAN.name) else {
        return Err(table.missing(
            RANDOM_MEAN.name,
            format!(
                "is missing; write mean = {}, or cdf or file for a measured distribution",
                measure.example
            ),
        ));
    };
    let mean = measure.read(&entry)?;
    if mean <= 0.0 {
        return Err(entry.fault("must be above 0"));
    }
    let chosen = table.given(&DISTRIBUTION)?.unwrap_or(0);
    let mut written = Written::default();
    written.write(RANDOM_MEAN.name, measure.written(mean));
    written.write(DISTRIBUTION.name, DISTRIBUTION.form.written(&chosen));
    let distribution = match chosen {
        0 => Distribution::Exponential { mean },
        1 => {
            let shape = table.given(&SHAPE)?.unwrap_or(1.5);
            written.write(SHAPE.name, SHAPE.form.written(&shape));
            Distribution::Pareto { mean, shape }
        }
        _ => {
            let entry = table.need(DEVIATION.name, measure.example)?;
            let deviation = measure.read(&entry)?;
            written.write(DEVIATION.name, measure.written(deviation));
            Distribution::Lognormal { mean, deviation }
        }
    };
    let mut amount = measure.amount(distribution);
    if let Some(entry) = table.find(RANDOM_MAX.name) {
        amount.most = measure.read(&entry)?;
        if amount.most < mean {
            return Err(entry.fault(format!("must not be below mean, {}", measure.written(mean))));
        }
    }
    written.write(RANDOM_MAX.name, measure.written(amount.most));
    Ok((amount, Value::Inline(written)))
}

/// An empirical distribution written into the scenario.
fn listed(points: &Entry<'_, '_>, measure: Measure) -> Result<(Amount, Value), Fault> {
    let what = format!(
        "[{}, 0.5] of an amount and the part of all up to it",
        measure.example
    );
    let mut found: Vec<(f64, f64)> = Vec::new();
    let mut written = Vec::new();
    for [value, part] in points.pairs(&what, limits::POINTS)? {
        let (amount, cumulative) = (
            measure.read(&value)?,
            part.quantity(Kind::Fraction, 0.0, 1.0)?,
        );
        if let Some(message) = wrong_order(found.last(), amount, cumulative) {
            return Err(part.fault(message));
        }
        found.push((amount, cumulative));
        written.push(Value::List(vec![
            measure.written(amount),
            Value::Real(cumulative),
        ]));
    }
    if found.last().is_none_or(|(_, part)| *part < 1.0) {
        return Err(points.fault("must end with a part of 1: all amounts are below the last one"));
    }
    let amount = measure.amount(Distribution::Empirical(found.into()));
    Ok((amount, Value::inline([(CDF.name, Value::List(written))])))
}

fn wrong_order(before: Option<&(f64, f64)>, amount: f64, part: f64) -> Option<&'static str> {
    let (before, before_part) = before?;
    if amount <= *before {
        return Some("amounts must rise from pair to pair");
    }
    (part < *before_part).then_some("parts must not fall from pair to pair")
}

/// An empirical distribution from CSV with a header `bytes,cumulative`, or `s,cumulative` for times and `count,cumulative`
/// for numbers.
fn points_of(
    bytes: &[u8],
    path: &Path,
    measure: Measure,
    decimal: Option<char>,
) -> Result<Arc<[(f64, f64)]>, Fault> {
    let (name, factor) = measure.column();
    let reader = Reader {
        path: path.to_path_buf(),
    };
    let text = reader.text(bytes)?;
    let text = text.as_ref();
    let dialect = reader.dialect(text, decimal)?;
    let mut lines = data_lines(text);
    let header = format!("{name},cumulative");
    let Some((line, first)) = lines.next() else {
        return Err(reader.whole_fault(format!("is empty; it must hold a header {header}")));
    };
    let columns = dialect.fields(first);
    if columns != [name, "cumulative"] {
        return Err(reader.fault(line, format!("must be a header: {header}")));
    }
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (line, text) in lines {
        let fields = dialect.fields(text);
        let &[amount, part] = &fields[..] else {
            let message = format!("has {} fields where the header has 2", fields.len());
            return Err(reader.fault(line, message));
        };
        let number = |column: &str, field: &str, least: f64, most: f64| {
            let range = format!("must be {least} .. {most}");
            dialect
                .number(field)
                .map_err(|what| reader.field_fault(line, column, field, format!("{what}; {range}")))
                .map(|decimal| decimal.real())
                .and_then(|value| {
                    if (least..=most).contains(&value) {
                        Ok(value)
                    } else {
                        Err(reader.field_fault(line, column, field, range))
                    }
                })
        };
        let found = (
            factor * number(name, amount, measure.least / factor, measure.most / factor)?,
            number("cumulative", part, 0.0, 1.0)?,
        );
        if let Some(message) = wrong_order(points.last(), found.0, found.1) {
            return Err(reader.fault(line, message));
        }
        points.push(found);
    }
    if points.last().is_none_or(|(_, part)| *part < 1.0) {
        let message = "must end with a part of 1: all amounts are below the last one";
        return Err(reader.whole_fault(message));
    }
    Ok(points.into())
}

/// What the file of a distribution was taken for, in one line.
fn reading(amount: &Amount, measure: Measure, path: &Path) -> String {
    let show = |value: f64| match measure.kind {
        Some(kind) => units::show_real(value, kind),
        None => show_number(value),
    };
    let points = match &amount.distribution {
        Distribution::Empirical(points) => &points[..],
        _ => &[],
    };
    let ends = points.first().zip(points.last());
    let ((least, _), (most, _)) = ends.unwrap_or((&(0.0, 0.0), &(0.0, 0.0)));
    format!(
        "{}: distribution; amounts from {}, parts of all from cumulative; {} values; {} to {}; mean {}",
        path.display(),
        measure.column().0,
        points.len(),
        show(*least),
        show(*most),
        show((mean(amount) * 1000.0).round() / 1000.0)
    )
}

/// The mean of the draws, without their bounds.
pub(super) fn mean(amount: &Amount) -> f64 {
    match &amount.distribution {
        Distribution::Fixed(mean)
        | Distribution::Exponential { mean }
        | Distribution::Pareto { mean, .. }
        | Distribution::Lognormal { mean, .. } => *mean,
        Distribution::Empirical(points) => {
            let first = points.first().map_or(0.0, |(amount, part)| amount * part);
            let pieces = points.windows(2).map(|pair| {
                let [(below, below_part), (above, above_part)] = [pair[0], pair[1]];
                (above_part - below_part) * (above + below) / 2.0
            });
            first + pieces.sum::<f64>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::keys::kinds;
    use super::*;

    #[test]
    fn the_mean_of_an_empirical_distribution() {
        let points = [(100.0, 0.2), (300.0, 0.5), (1000.0, 1.0)].into();
        let amount = kinds::TRANSFERS_SIZE
            .form
            .of
            .amount(Distribution::Empirical(points));
        assert!((mean(&amount) - 405.0).abs() < 1e-9);
    }
}
