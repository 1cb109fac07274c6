// SPDX-License-Identifier: BSD-3-Clause
//! Which notation a file is in, by what only that notation can be.

use std::path::Path;

use crate::fault::{shorten, Fault};
use crate::table::header::{self, RateUnit};
use crate::table::{data_lines, Clock};
use crate::units::Decimal;

use super::columns::{is_mbit, MBIT_TIMES};
use super::described::Hints;
use super::file::Reader;
use super::format::{Format, FORMATS};
use super::named::{Column, Measure, NamedColumns};
use super::recorded;

/// Endings of the names of mahimahi's files.
const MAHIMAHI: [&str; 5] = ["up", "down", "pps", "mahi", "mahimahi"];
/// A list of so many lines, with so many different numbers from near 0, is mahimahi's: rates that never fall, and so long,
/// are not measured.
const LINES: usize = 100;
const DIFFERENT: usize = 20;

/// A notation, and the columns of a table whose header says all that is needed.
pub(super) struct Recognised {
    pub(super) format: Format,
    pub(super) columns: Option<NamedColumns>,
}

impl Recognised {
    fn plain(format: Format) -> Recognised {
        Recognised {
            format,
            columns: None,
        }
    }
}

impl Reader {
    pub(super) fn recognise(&self, text: &str, hints: &Hints) -> Result<Recognised, Fault> {
        let Some((line, first)) = data_lines(text).next() else {
            return Err(self.whole_fault(format!("is empty; it must hold {FORMATS}")));
        };
        if let Some(found) = recorded::recognise(self, text) {
            return Ok(Recognised::plain(found?));
        }
        if is_mahimahi_name(&self.path) && Decimal::parse(first.trim()).is_ok() {
            return Ok(Recognised::plain(Format::Mahimahi));
        }
        let dialect = self.dialect(text, hints.decimal)?;
        let names = dialect.fields(first);
        if names.contains(&"capacity_bps") {
            return Ok(Recognised::plain(Format::Linkweir));
        }
        let is_number = |name: &&str| dialect.number(name).is_ok();
        if let ([_], true) = (&names[..], names.iter().all(is_number)) {
            return self.list(text).map(Recognised::plain);
        }
        let is_time: Vec<bool> = names.iter().map(|name| Clock::is_time(name)).collect();
        if names.len() > 1
            && names
                .iter()
                .zip(&is_time)
                .all(|(name, time)| *time || is_number(name))
        {
            return Err(self.fault(line, headless(&is_time)));
        }
        if names.iter().any(|name| is_mbit(name))
            && names.iter().any(|name| MBIT_TIMES.contains(name))
        {
            return Ok(Recognised::plain(Format::Mbit));
        }
        let columns = self.columns_of(line, &names, hints)?;
        Ok(Recognised {
            format: Format::Csv,
            columns: Some(columns),
        })
    }

    /// What one number per line is.
    fn list(&self, text: &str) -> Result<Format, Fault> {
        let (mut first, mut last, mut lines, mut different) = (0, 0, 0, 0);
        let mut is_mahimahi = true;
        for (_, field) in data_lines(text) {
            let whole = Decimal::parse(field.trim()).ok().and_then(Decimal::whole);
            let Some((number, true)) = whole else {
                is_mahimahi = false;
                break;
            };
            if lines == 0 {
                first = number;
            } else if number < last {
                is_mahimahi = false;
                break;
            }
            different += usize::from(lines == 0 || number > last);
            last = number;
            lines += 1;
        }
        if is_mahimahi && lines >= LINES && different >= DIFFERENT && first <= last / 2 {
            return Ok(Format::Mahimahi);
        }
        let times = if is_mahimahi {
            "may be times in ms at which 1500 bytes can leave (trace_format = \"mahimahi\") or "
        } else {
            "may be "
        };
        Err(self.whole_fault(format!(
            "holds one number per line, which {times}rates at a fixed interval, of which it says neither unit nor \
             interval (trace_unit = \"Mbit\", trace_interval = \"1s\"); write which"
        )))
    }

    /// The columns of a table whose header names one column of times and one of rates, with a unit.
    fn columns_of(
        &self,
        line: usize,
        names: &[&str],
        hints: &Hints,
    ) -> Result<NamedColumns, Fault> {
        let fault =
            |what: String| Err(self.fault(line, format!("cannot tell the trace's format; {what}")));
        let has = shorten(&names.join(", "));
        let is_rate = |name: &&&str| {
            header::rate_unit(name) != RateUnit::Missing && !header::is_no_rate(name)
        };
        let rates: Vec<&str> = names.iter().filter(is_rate).copied().collect();
        let times: Vec<&str> = names
            .iter()
            .filter(|name| header::is_time(name))
            .copied()
            .collect();
        let (&[time], &[rate]) = (&times[..], &rates[..]) else {
            if !times.is_empty() && rates.len() > 1 {
                return fault(format!(
                    "{} say that they are rates; name one: columns = {{ t = \"{}\", capacity = \"{}\" }}",
                    rates.join(", "),
                    times[0],
                    rates[0]
                ));
            }
            return fault(format!("it must start with {FORMATS}; it has {has}"));
        };
        let column = |name: &str, measure, unit| Column::of_header(name, measure, unit);
        let Some(capacity) = column(rate, Measure::Capacity, hints.unit.as_deref()) else {
            return fault(format!(
                "{} may be in bits or bytes; write trace_unit = \"Mbit\" or \"MB\", or what it is",
                shorten(rate)
            ));
        };
        Ok(NamedColumns {
            time: column(time, Measure::Time, None),
            time_of_day: None,
            capacity,
            delay: None,
            loss: None,
        })
    }
}

fn is_mahimahi_name(path: &Path) -> bool {
    let plain = path.extension().is_some_and(|ending| ending == "gz");
    let name = if plain {
        path.with_extension("")
    } else {
        path.to_path_buf()
    };
    name.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| MAHIMAHI.contains(&ending))
}

/// What to do about a table without a header; `is_time` says which of its columns have times as clocks write them.
fn headless(is_time: &[bool]) -> String {
    let times: Vec<usize> = (1..=is_time.len()).filter(|at| is_time[at - 1]).collect();
    let capacity =
        (1..=is_time.len()).find(|at| !is_time[at - 1] && (*at > 1 || is_time.contains(&true)));
    let time = match times[..] {
        [] => "1".to_string(),
        [date, clock] => format!("[{date}, {clock}]"),
        [time, ..] => time.to_string(),
    };
    format!(
        "has no header, so its {} columns have no names and units; write their numbers: columns = {{ t = {time}, \
         capacity = {{ column = {}, unit = \"Mbit\" }} }}",
        is_time.len(),
        capacity.unwrap_or(2)
    )
}
